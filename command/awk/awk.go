// Package awk is the AWK language of POSIX, with what scripts use of gawk's additions.
//
// A program is parsed into a tree (lex.go, parse.go, expr.go) and interpreted (interp.go). Values are numbers and strings
// (value.go). Records come from the files of the command line, further ones by getline (io.go). Arrays are enumerated in
// the order in which their elements were made.
package awk

import (
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

var spec = tool.Spec{
	Usage: []string{"[POSIX or GNU style options] -f progfile [--] file ...", "[POSIX or GNU style options] [--] 'program' file ..."},
	About: "Scan FILEs for patterns and process what matches.",
	Options: []getopt.Option{
		{Short: 'f', Long: "file", Arg: getopt.Required, Name: "progfile", Help: "read the program from a file"},
		{Short: 'F', Long: "field-separator", Arg: getopt.Required, Name: "fs", Help: "set FS"},
		{Short: 'v', Long: "assign", Arg: getopt.Required, Name: "var=val", Help: "set a variable before the program begins"},
		{Short: 'e', Long: "source", Arg: getopt.Required, Name: "program-text", Help: "add program text"},
		{Short: 'W', Arg: getopt.Required},
	},
	Package: "AgentRun awk) 1.0", Fail: 2, Order: getopt.POSIX,
}

// maxProgram bounds a program's text.
const maxProgram = 16 << 20

// Awk runs AWK programs.
func Awk(t *tool.T) int {
	t.FailStatus(2)
	opts, args := t.Parse(&spec)
	var src []string
	var assigns []string
	fs, hasFS := "", false
	for _, o := range opts {
		switch o.Key {
		case 'f':
			b, err := t.ReadFile(o.Arg, maxProgram)
			if err != nil {
				t.Fatal(2, "cannot open %s (%s)", o.Arg, tool.Strerror(err))
			}
			src = append(src, string(b))
		case 'e':
			src = append(src, o.Arg)
		case 'F':
			fs, hasFS = o.Arg, true
		case 'v':
			assigns = append(assigns, o.Arg)
		}
	}
	if len(src) == 0 {
		if len(args) == 0 {
			t.Misused(&spec)
		}
		src, args = args[:1], args[1:]
	}
	prog, err := compile(strings.Join(src, "\n"))
	if err != nil {
		t.Fatal(2, "%s", err)
	}
	in := newInterp(t, prog, append([]string{t.Name}, args...))
	if hasFS {
		if fs == "t" {
			fs = "\t"
		}
		in.setSpecial(vFS, str(unescape(fs)))
	}
	for _, a := range assigns {
		if !in.assignArg(a) {
			t.Fatal(2, "improper assignment: -v %s", a)
		}
	}
	return in.run()
}
