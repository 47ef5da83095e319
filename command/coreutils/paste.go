package coreutils

import (
	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

var pasteSpec = tool.Spec{
	Usage: []string{"[OPTION]... [FILE]..."},
	About: "Write lines consisting of the sequentially corresponding lines from\neach FILE, separated by TABs, to standard output.\n\nWith no FILE, or when FILE is -, read standard input.",
	Options: []getopt.Option{
		{Short: 'd', Long: "delimiters", Arg: getopt.Required, Name: "LIST", Help: "reuse characters from LIST instead of TABs"},
		{Short: 's', Long: "serial", Help: "paste one file at a time instead of in parallel"},
		{Short: 'z', Long: "zero-terminated", Help: "line delimiter is NUL, not newline"},
	},
	Package: tool.Coreutils,
}

// noDelimiter stands for \0, the empty delimiter.
const noDelimiter = -1

// Paste joins lines of files.
func Paste(t *tool.T) int {
	opts, files := t.Parse(&pasteSpec)
	delims, serial, end := []int{'\t'}, false, byte('\n')
	for _, o := range opts {
		switch o.Key {
		case 'd':
			delims = pasteDelims(t, o.Arg)
		case 's':
			serial = true
		case 'z':
			end = 0
		}
	}
	files = names(files)
	if serial {
		return t.Inputs(files, func(in *tool.Input) error {
			l := tool.NewLines(in, end)
			for n := 0; ; n++ {
				line, ok := l.Next()
				if !ok {
					t.Out.WriteByte(end)
					return l.Err
				}
				if n > 0 {
					pasteDelim(t, delims, n-1)
				}
				t.Out.Write(line)
			}
		})
	}
	return pasteParallel(t, files, delims, end)
}

func pasteDelims(t *tool.T, s string) []int {
	var out []int
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out = append(out, int(s[i]))
			continue
		}
		if i++; i == len(s) {
			t.Fatal(1, "delimiter list ends with an unescaped backslash: %s", s)
		}
		switch b, ok := simpleEscape(s[i]); {
		case s[i] == '0':
			out = append(out, noDelimiter)
		case ok && s[i] != 'a' && s[i] != 'e':
			out = append(out, int(b))
		default:
			out = append(out, int(s[i]))
		}
	}
	if len(out) == 0 {
		out = []int{noDelimiter}
	}
	return out
}

func pasteDelim(t *tool.T, delims []int, i int) {
	if d := delims[i%len(delims)]; d != noDelimiter {
		t.Out.WriteByte(byte(d))
	}
}

func pasteParallel(t *tool.T, files []string, delims []int, end byte) int {
	lines := make([]*tool.Lines, len(files))
	var std *tool.Lines
	for i, f := range files {
		in, err := t.Open(f)
		if err != nil {
			t.Fatal(1, "%s: %s", tool.QuoteF(f), tool.Strerror(err))
		}
		defer in.Close()
		lines[i] = tool.NewLines(in, end)
		if f == "-" { // all dashes read one stream
			if std == nil {
				std = lines[i]
			}
			lines[i] = std
		}
	}
	done := make([]bool, len(files))
	for {
		row := make([][]byte, len(files))
		got := false
		for i, l := range lines {
			if done[i] {
				continue
			}
			line, ok := l.Next()
			if !ok {
				done[i] = true
				continue
			}
			row[i] = append([]byte(nil), line...)
			got = true
		}
		if !got {
			return 0
		}
		for i, f := range row {
			if i > 0 {
				pasteDelim(t, delims, i-1)
			}
			t.Out.Write(f)
		}
		t.Out.WriteByte(end)
	}
}
