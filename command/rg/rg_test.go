package rg_test

import (
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func TestRg(t *testing.T) {
	setup := []string{"f a.txt foo bar\nbaz\nFoo\nx foo foo\nqux\na\nb\nc\nfoo", "d sub", "d sub/deep", "d .hid", "f .hid/h foo\n", "f sub/b.c foo bar\nbaz\nFoo\nx foo foo\n", "f sub/deep/k.go foo\n", "f sub/keep.log foo\n", "f sub/drop.log foo\n", "f sub/deep/drop.log foo\n", "f .ignore ign\n*.log\n!keep.log\n/build/\n# c\n", "f sub/.ignore deep/k.*\n", "f ign foo\n", "d build", "f build/x foo\n", "d sub/build", "f sub/build/y foo\n", "f bin foo\x00bar\n", "f crlf foo\r\nb\n", "f pats foo\nqux\n", "f empty ",
		"d repo", "d repo/.git", "f repo/.gitignore *.o\n**/tmp\n", "f repo/m.o foo\n", "f repo/m.c foo\n", "d repo/tmp", "f repo/tmp/z foo\n"}
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: setup, Loose: true, Stdin: "in foo\nno\n", Lines: []string{
		"rg foo", "rg --sort path foo .", "rg foo a.txt", "rg -n foo a.txt", "rg -i foo a.txt", "rg -S foo a.txt", "rg -S Foo a.txt", "rg -w fo a.txt", "rg -x foo a.txt", "rg -v foo a.txt", "rg -c foo a.txt", "rg --sort path -c foo .", "rg -c zzz a.txt", "rg --sort path -l foo .", "rg --sort path --files-without-match foo .", "rg -o foo a.txt", "rg -ob foo a.txt", "rg -N foo a.txt", "rg -H foo a.txt", "rg -I --sort path foo .", "rg -n -A1 foo a.txt", "rg -B1 foo a.txt", "rg --sort path -C1 foo a.txt sub", "rg -e foo -e qux a.txt", "rg -f pats a.txt", "rg -F ( a.txt", "rg ( a.txt", "rg --sort path -g *.c foo .", "rg --sort path -g !*.c foo .", "rg --sort path -g *.c -g *.log foo .", "rg --sort path -t c foo .", "rg --sort path -T c foo .", "rg -t nope foo .", "rg -r X foo a.txt", "rg -or 'X$0' foo a.txt", "rg -r '[$1]' '(b)a' a.txt", "rg -q foo a.txt", "rg -q zzz a.txt", "rg --sort path --files .", "rg --sort path --files", "rg --sort path --hidden --files .", "rg --sort path --no-ignore --files .", "rg --sort path -uu --files .", "rg --sort path --files sub", "rg --sort path --files sub/", "rg --sort path --files repo", "rg -m1 foo a.txt", "rg --sort path --max-depth 1 --files .", "rg --vimgrep foo a.txt", "rg --column foo a.txt", "rg -bo --column foo a.txt", "rg -nA1 --column foo a.txt", "rg --sort path -l0 foo .", "rg foo bin", "rg -a foo bin", "rg foo bin a.txt --sort path", "rg -c foo bin", "rg -l foo bin", "rg zzz bin", "rg foo crlf", "rg foo nope", "rg foo nope a.txt", "rg foo ign", "rg -v foo empty", "rg --count-matches foo a.txt", "rg -cv foo a.txt", "rg -ov foo a.txt", "rg", "rg -m x foo a.txt", "rg --zz", "rg foo -", "rg -n '^' a.txt", "rg -- foo a.txt", "rg --sort path --iglob *.C foo ."}})
}
