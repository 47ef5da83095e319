package coreutils

import (
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

var basenameSpec = tool.Spec{
	Usage: []string{"NAME [SUFFIX]", "OPTION... NAME..."},
	About: "Print NAME with any leading directory components removed.\nIf specified, also remove a trailing SUFFIX.",
	Options: []getopt.Option{
		{Short: 'a', Long: "multiple", Help: "support multiple arguments and treat each as a NAME"},
		{Short: 's', Long: "suffix", Arg: getopt.Required, Name: "SUFFIX", Help: "remove a trailing SUFFIX; implies -a"},
		{Short: 'z', Long: "zero", Help: "end each output line with NUL, not newline"},
	},
	Package: tool.Coreutils, Order: getopt.POSIX,
}

// Basename strips directories and a suffix from names.
func Basename(t *tool.T) int {
	opts, names := t.Parse(&basenameSpec)
	multiple, suffix, end := false, "", byte('\n')
	for _, o := range opts {
		switch o.Key {
		case 'a':
			multiple = true
		case 's':
			multiple, suffix = true, o.Arg
		case 'z':
			end = 0
		}
	}
	if len(names) == 0 {
		t.Missing(1)
	}
	if !multiple && len(names) > 2 {
		t.Extra(1, names[2])
	}
	if !multiple && len(names) == 2 {
		suffix, names = names[1], names[:1]
	}
	for _, n := range names {
		base := strings.TrimRight(n, "/")
		if base == "" && n != "" {
			base = "/"
		} else {
			base = base[strings.LastIndexByte(base, '/')+1:]
		}
		if base != suffix {
			base = strings.TrimSuffix(base, suffix)
		}
		t.Out.WriteString(base)
		t.Out.WriteByte(end)
	}
	return 0
}

var dirnameSpec = tool.Spec{
	Usage:   []string{"[OPTION] NAME..."},
	About:   "Output each NAME with its last non-slash component and trailing slashes\nremoved; if NAME contains no /'s, output '.' (meaning the current directory).",
	Options: []getopt.Option{{Short: 'z', Long: "zero", Help: "end each output line with NUL, not newline"}},
	Package: tool.Coreutils,
}

// Dirname strips the last component from names.
func Dirname(t *tool.T) int {
	opts, names := t.Parse(&dirnameSpec)
	end := byte('\n')
	if len(opts) > 0 {
		end = 0
	}
	if len(names) == 0 {
		t.Missing(1)
	}
	for _, n := range names {
		d := strings.TrimRight(n, "/")
		i := strings.LastIndexByte(d, '/')
		switch {
		case d == "" && n != "":
			d = "/"
		case i < 0:
			d = "."
		default:
			if d = strings.TrimRight(d[:i], "/"); d == "" {
				d = "/"
			}
		}
		t.Out.WriteString(d)
		t.Out.WriteByte(end)
	}
	return 0
}
