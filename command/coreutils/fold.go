package coreutils

import (
	"strconv"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

var foldSpec = tool.Spec{
	Usage: []string{"[OPTION]... [FILE]..."},
	About: "Wrap input lines in each FILE, writing to standard output.\n\nWith no FILE, or when FILE is -, read standard input.",
	Options: []getopt.Option{
		{Short: 'b', Long: "bytes", Help: "count bytes rather than columns"},
		{Short: 's', Long: "spaces", Help: "break at spaces"},
		{Short: 'w', Long: "width", Arg: getopt.Required, Name: "WIDTH", Help: "use WIDTH columns instead of 80"},
	},
	Package: tool.Coreutils,
}

// Fold wraps lines.
func Fold(t *tool.T) int {
	var args []string
	for _, a := range t.Args()[1:] { // -N is -w N
		if len(a) > 1 && a[0] == '-' && a[1] >= '0' && a[1] <= '9' {
			a = "-w" + a[1:]
		}
		args = append(args, a)
	}
	opts, files := t.ParseArgs(&foldSpec, args)
	bytes, spaces, width := false, false, 80
	for _, o := range opts {
		switch o.Key {
		case 'b':
			bytes = true
		case 's':
			spaces = true
		case 'w':
			n, err := strconv.ParseUint(o.Arg, 10, 31)
			if err == nil && n == 0 {
				t.Fatal(1, "invalid number of columns: %s: Numerical result out of range", tool.Quote(o.Arg))
			}
			if err != nil {
				t.Fatal(1, "invalid number of columns: %s", tool.Quote(o.Arg))
			}
			width = int(n)
		}
	}
	return t.Inputs(files, func(in *tool.Input) error {
		l := tool.NewLines(in, '\n')
		for {
			line, ok := l.Next()
			if !ok {
				return l.Err
			}
			foldLine(t, line, width, bytes, spaces)
			if l.Terminated {
				t.Out.WriteByte('\n')
			}
		}
	})
}

// foldLine writes a line with newlines put in.
func foldLine(t *tool.T, line []byte, width int, bytes, spaces bool) {
	start, col, blank := 0, 0, -1
	advance := func(col int, c byte) int {
		switch {
		case bytes:
			return col + 1
		case c == '\b':
			return max(col-1, 0)
		case c == '\r':
			return 0
		case c == '\t':
			return col + 8 - col%8
		}
		return col + 1
	}
	for i := 0; i < len(line); i++ {
		next := advance(col, line[i])
		if next > width && i > start {
			cut := i
			if spaces && blank >= start {
				cut = blank + 1
			}
			t.Out.Write(line[start:cut])
			t.Out.WriteByte('\n')
			start, blank, col = cut, -1, 0
			for j := cut; j < i; j++ {
				col = advance(col, line[j])
				if line[j] == ' ' || line[j] == '\t' {
					blank = j
				}
			}
			next = advance(col, line[i])
		}
		if line[i] == ' ' || line[i] == '\t' {
			blank = i
		}
		col = next
	}
	t.Out.Write(line[start:])
}
