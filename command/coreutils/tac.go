package coreutils

import (
	"bytes"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/posixre"
	"agentrun.dev/command/tool"
)

var tacSpec = tool.Spec{
	Usage: []string{"[OPTION]... [FILE]..."},
	About: "Write each FILE to standard output, last line first.\n\nWith no FILE, or when FILE is -, read standard input.",
	Options: []getopt.Option{
		{Short: 'b', Long: "before", Help: "attach the separator before instead of after"},
		{Short: 'r', Long: "regex", Help: "interpret the separator as a regular expression"},
		{Short: 's', Long: "separator", Arg: getopt.Required, Name: "STRING", Help: "use STRING as the separator instead of newline"},
	},
	Package: tool.Coreutils,
}

// Tac prints lines in reverse order. A file is held in memory, at most MaxHeld bytes.
func Tac(t *tool.T) int {
	opts, files := t.Parse(&tacSpec)
	sep, before, regex := "\n", false, false
	for _, o := range opts {
		switch o.Key {
		case 'b':
			before = true
		case 'r':
			regex = true
		case 's':
			if sep = o.Arg; sep == "" {
				sep = "\x00"
			}
		}
	}
	var re *posixre.Regexp
	if regex {
		var err error
		if re, err = posixre.Compile(sep, posixre.Options{}); err != nil {
			t.Fatal(1, "%s", err)
		}
	}
	failed := false
	for _, f := range names(files) {
		b, err := t.ReadFile(f, MaxHeld)
		if err != nil {
			if _, oerr := t.Open(f); oerr != nil {
				t.Warn("failed to open %s for reading: %s", tool.QuoteAF(f), tool.Strerror(err))
			} else {
				t.Warn("%s: read error: %s", tool.QuoteF(f), tool.Strerror(err))
			}
			failed = true
			continue
		}
		tacWrite(t, b, separators(t, b, sep, re), before)
	}
	return status(failed)
}

// separators finds where the separators are.
func separators(t *tool.T, b []byte, sep string, re *posixre.Regexp) [][2]int {
	var at [][2]int
	if re != nil {
		all, err := re.FindAll(b, -1)
		if err != nil {
			t.Fatal(1, "%s", err)
		}
		for _, loc := range all {
			if loc[1] > loc[0] {
				at = append(at, [2]int{loc[0], loc[1]})
			}
		}
		return at
	}
	for i := 0; ; {
		j := bytes.Index(b[i:], []byte(sep))
		if j < 0 {
			return at
		}
		at = append(at, [2]int{i + j, i + j + len(sep)})
		i += j + len(sep)
	}
}

func tacWrite(t *tool.T, b []byte, at [][2]int, before bool) {
	end := len(b)
	for i := len(at) - 1; i >= 0; i-- {
		cut := at[i][1]
		if before {
			cut = at[i][0]
		}
		if cut < end || before {
			t.Out.Write(b[cut:end])
		}
		end = cut
	}
	t.Out.Write(b[:end])
}
