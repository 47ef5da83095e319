package text_test

import (
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func TestColumn(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f t a b c\nlonger x yy\n", "f csv a,b,,c\n,,x\n1,2,3,4,\n", "f gaps x\n\ny z\n", "f uni ä b\nlong c\n", "f n 1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\n", "f tree 1 0 root\n2 1 kid\n3 2 grand\n4 1 other\n", "f e "}, Stdin: "x y\nzz\n",
		Lines: []string{"column -t t", "column t", "column -x n", "column n", "column -c 20 n", "column -c 40 -x n", "column -t -s , csv", "column -s , -t csv -o ' | '", "column -t -s,; csv", "column -t gaps", "column -tL gaps", "column -t uni", "column -t", "column", "column -t -o '|' t", "column -t -N A,B,C t", "column -t -N A,B,C -R 2 t", "column -t -N A,B,C -R A,C t", "column -t -N A,B,C -H B t", "column -t -N A,B,C -O C,A t", "column -J -N a,b,c t", "column -J -n tab -N a,b,c t", "column -J -N a,b t", "column -J t", "column -J -N A,b,c,d,e -s, csv", "column -t -l 2 t", "column -t -N a,b,c -d t", "column -t -H 2 t", "column -t -R 1 t", "column -t -R 9 t", "column -t -N A -H X t", "column -t -T 1 -c 9 t",
			"column nope t", "column -Z", "column e", "column -t e", "column -t -N a,b e", "column -J -N a e", "column -c x t", "column -l 0 -t t", "column -t --table-noheadings -N x t", "column -t -s '' t", "column -r 3 -i 1 -p 2 tree", "column -t -r 3 tree", "column -t t gaps", "column --table --separator=, csv", "column -V"},
	})
}

func TestSmallTools(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f w apple\nApril\nbanana\nband\nzoo\n", "f t abc\tdef\n0123456789\n", "f crlf a\r\nb\r\n", "f lf a\nb\n", "f a.txt 1", "f b.txt 2", "f bin x\x00y\r\n", "l link a.txt"}, Stdin: "0123456789\nab\tcd\n",
		Lines: []string{"look ban w", "look -f AP w", "look -df a.p w", "look x w", "look", "look a nope", "look -t n banx w", "colrm 3", "colrm 3 5", "colrm", "colrm x", "dos2unix crlf", "dos2unix lf crlf", "dos2unix -n crlf new", "unix2dos lf", "dos2unix -q crlf", "dos2unix bin", "dos2unix -f bin", "dos2unix nope", "dos2unix -O crlf", "unix2dos", "dos2unix -i crlf lf bin", "uuencode lf name", "uuencode -m lf name", "uuencode x"},
	})
	for line, want := range map[string]string{
		"cal 2 2024":                  "   February 2024    \nSu Mo Tu We Th Fr Sa\n             1  2  3\n 4  5  6  7  8  9 10\n11 12 13 14 15 16 17\n18 19 20 21 22 23 24\n25 26 27 28 29      \n                    \n",
		"cal 9 1752":                  "   September 1752   \nSu Mo Tu We Th Fr Sa\n       1  2 14 15 16\n17 18 19 20 21 22 23\n24 25 26 27 28 29 30\n                    \n                    \n                    \n",
		"cal -m jan 2000":             "    January 2000    \nMo Tu We Th Fr Sa Su\n                1  2\n 3  4  5  6  7  8  9\n10 11 12 13 14 15 16\n17 18 19 20 21 22 23\n24 25 26 27 28 29 30\n31                  \n",
		"cal 13 2000":                 "cal: illegal month value: use 1-12\n",
		"rename txt md a.txt b.txt x": "",
		"uudecode -o - u":             "some text\n",
		"asa f":                       "one\n\ntwo\rover\n",
	} {
		table := commandtest.Table{Setup: []string{"f a.txt 1", "f b.txt 2", "f u begin 644 x\n*<V]M92!T97AT\"@``\n`\nend\n", "f f  one\n0two\n+over\n"}}
		words, _ := commandtest.Split(line)
		r := table.Sandbox(t, command.NewSet(nil), words, "")
		if got := r.Stdout + r.Stderr; got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
		if words[0] == "rename" && r.Tree != "a.md 100644 \"1\"\nb.md 100644 \"2\"\nf 100644 \" one\\n0two\\n+over\\n\"\nu 100644 \"begin 644 x\\n*<V]M92!T97AT\\\"@``\\n`\\nend\\n\"\n" {
			t.Errorf("rename: %s", r.Tree)
		}
	}
}

func TestIconv(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f u äöü €\n", "f l1 \xe4\xf6\n", "f bad a\xffb\n", "f cut a\xc3", "f jp 日本語\n", "f q “x” – …\n", "f a plain\n"}, Stdin: "größe\n",
		Lines: []string{"iconv -f ISO-8859-1 -t UTF-8 l1", "iconv -f utf-8 -t latin1", "iconv -f UTF-8 -t UTF-16LE u", "iconv -f UTF-8 -t UTF-16 u", "iconv -t UTF-16BE u", "iconv -t UTF-32 a", "iconv -f UTF-8 -t ASCII//TRANSLIT", "iconv -f UTF-8 -t ASCII//IGNORE", "iconv -c -t ASCII", "iconv -t ASCII a", "iconv bad", "iconv -c bad", "iconv cut", "iconv -f UTF-8 -t SHIFT_JIS jp", "iconv -t EUC-JP jp", "iconv -t ASCII//TRANSLIT q", "iconv -f nope u", "iconv -t nope u", "iconv -f nope -t nada u", "iconv nofile", "iconv -t CP1252 u", "iconv -o out -t latin1", "iconv -f latin1 -t koi8-r a", "iconv -f ASCII -t UTF-8 l1"},
	})
}

func TestCol(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f bold a\bab\bb _\bx_\by\n", "f tab a\tb        c  \n", "f cr ab\rcd\nx\n", "f end no newline", "f blank \n\n  \nx\n\n\n", "f so x\x0ey\x0fz\n", "f ctl \x01a\x02b\n", "f back a\b\b\bxyz\n", "f uni äö\b\bx\n", "f man N\bNA\bAM\bME\bE\n       _\bl_\bs - list\n", "f e "},
		Lines: []string{"col < bold", "col -b < bold", "col -bx < tab", "col -x < tab", "col < tab", "col -h < tab", "col < cr", "col -b < cr", "col < end", "col < blank", "col < so", "col < ctl", "col -p < ctl", "col < back", "col -b < uni", "col < uni", "col -bx < man", "col -f < man", "col < e", "col -l 0 < e", "col -l x < e", "col a", "col -Z",
			"colcrt tab", "colcrt nope", "colcrt -Z", "colcrt e"},
		Differs: map[string]commandtest.Deviation{
			"colcrt man":   {Want: "NAME\n       ls - list\n       --\n", Reason: "util-linux 2.38 doesn't go back at a backspace"},
			"colcrt - man": {Want: "NAME\n       ls - list\n", Reason: "the same"},
			"colcrt end":   {Want: "no newline\n", Reason: "lines end with newlines"},
		},
	})
	deep := commandtest.Table{Setup: []string{"f up one\ntwo\x1b7three\n\x1b9half\n"}}
	if r := deep.Sandbox(t, command.NewSet(nil), []string{"col"}, "one\ntwo\x1b7three\nx\n"); r.Stdout != "onethree\nt\bxwo\n" {
		t.Errorf("reverse line feed: %q", r.Stdout)
	}
	deep.Survives(t, command.NewSet(nil), "colcrt", "up")
}
