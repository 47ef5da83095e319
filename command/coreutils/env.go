package coreutils

import (
	"errors"
	"path"
	"strings"
	"syscall"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
)

var envSpec = tool.Spec{
	Usage: []string{"[OPTION]... [-] [NAME=VALUE]... [COMMAND [ARG]...]"},
	About: "Set each NAME to VALUE in the environment and run COMMAND.",
	Options: []getopt.Option{
		{Short: 'i', Long: "ignore-environment", Help: "start with an empty environment"},
		{Short: '0', Long: "null", Help: "end each output line with NUL, not newline"},
		{Short: 'u', Long: "unset", Arg: getopt.Required, Name: "NAME", Help: "remove variable from the environment"},
		{Short: 'C', Long: "chdir", Arg: getopt.Required, Name: "DIR", Help: "change working directory to DIR"},
		{Short: 'S', Long: "split-string", Arg: getopt.Required, Name: "S", Help: "process and split S into separate arguments; used to pass multiple arguments on shebang lines"},
		{Short: 'v', Long: "debug", Help: "(accepted)"},
	},
	Package: tool.Coreutils, Fail: 125, Order: getopt.POSIX,
}

// Env runs a command in a changed environment, or prints the environment.
func Env(t *tool.T) int {
	t.FailStatus(125)
	args := splitStrings(t.Args()[1:])
	opts, rest := t.ParseArgs(&envSpec, args)
	env := t.Environ()
	null, dir := false, ""
	for _, o := range opts {
		switch o.Key {
		case 'i':
			env = nil
		}
	}
	for _, o := range opts {
		switch o.Key {
		case '0':
			null = true
		case 'u':
			if o.Arg == "" || strings.Contains(o.Arg, "=") {
				t.Fatal(125, "cannot unset %s: Invalid argument", tool.QuoteAF(o.Arg))
			}
			env = without(env, o.Arg)
		case 'C':
			dir = o.Arg
		}
	}
	if len(rest) > 0 && rest[0] == "-" {
		env, rest = nil, rest[1:]
	}
	for len(rest) > 0 && strings.Contains(rest[0], "=") {
		name, _, _ := strings.Cut(rest[0], "=")
		env = append(without(env, name), rest[0])
		rest = rest[1:]
	}
	if len(rest) == 0 {
		if dir != "" {
			t.UsageError(125, "must specify command with --chdir (-C)")
		}
		end := byte('\n')
		if null {
			end = 0
		}
		for _, kv := range env {
			t.Out.WriteString(kv)
			t.Out.WriteByte(end)
		}
		return 0
	}
	if null {
		t.UsageError(125, "cannot specify --null (-0) with command")
	}
	if dir != "" {
		if err := t.Chdir(dir); err != nil {
			t.Fatal(125, "cannot change directory to %s: %s", tool.QuoteAF(dir), tool.Strerror(err))
		}
	}
	if env == nil {
		env = []string{}
	}
	return runCommand(t, rest, env)
}

func without(env []string, name string) []string {
	out := make([]string, 0, len(env)+1)
	for _, kv := range env {
		if !strings.HasPrefix(kv, name+"=") {
			out = append(out, kv)
		}
	}
	return out
}

// runCommand runs another command in place of this one: 127 if there is none, 126 if it can't be run. A nil environment
// stays as it is.
func runCommand(t *tool.T, args, env []string) int {
	t.Out.Flush()
	if env != nil {
		t.SetEnviron(env)
	}
	prog, argv, err := findProgram(t, args)
	if err != nil {
		if name := path.Base(t.Name); name == "env" || name == "nice" {
			t.Warn("%s: %s", tool.QuoteAFIfPath(args[0]), tool.Strerror(err))
		} else {
			t.Warn("failed to run command %s: %s", tool.QuoteAF(args[0]), tool.Strerror(err))
		}
		if errors.Is(err, syscall.ENOENT) {
			return 127
		}
		return 126
	}
	return t.Become(prog, argv)
}

// findProgram does what execvp does: a file that isn't a program is a script of sh.
func findProgram(t *tool.T, args []string) (proc.Program, []string, error) {
	file, err := t.Find(args[0], t.Getenv("PATH"))
	if err != nil {
		return nil, nil, err
	}
	prog, argv, err := t.Program(file, args)
	if errors.Is(err, syscall.ENOEXEC) {
		return t.Program("/bin/sh", append([]string{"sh", file}, args[1:]...))
	}
	return prog, argv, err
}

// splitStrings expands -S, which may only come first.
func splitStrings(args []string) []string {
	if len(args) == 0 {
		return args
	}
	s, ok := strings.CutPrefix(args[0], "-S")
	if !ok {
		if s, ok = strings.CutPrefix(args[0], "--split-string="); !ok {
			return args
		}
	}
	rest := args[1:]
	if s == "" && len(rest) > 0 {
		s, rest = rest[0], rest[1:]
	}
	return append(SplitWords(s), rest...)
}

// SplitWords splits a text at blanks, respecting quotes and backslashes.
func SplitWords(s string) []string {
	var out []string
	var b strings.Builder
	in := false
	quote := byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote == 0 && (c == ' ' || c == '\t' || c == '\n'):
			if in {
				out = append(out, b.String())
				b.Reset()
			}
			in = false
			continue
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == quote && quote != 0:
			quote = 0
		case c == '\\' && quote != '\'' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
		in = true
	}
	if in {
		out = append(out, b.String())
	}
	return out
}

var printenvSpec = tool.Spec{
	Usage:   []string{"[OPTION]... [VARIABLE]..."},
	About:   "Print the values of the specified environment VARIABLE(s).\nIf no VARIABLE is specified, print name and value pairs for them all.",
	Options: []getopt.Option{{Short: '0', Long: "null", Help: "end each output line with NUL, not newline"}},
	Package: tool.Coreutils, Fail: 2,
}

// Printenv prints variables of the environment.
func Printenv(t *tool.T) int {
	opts, names := t.Parse(&printenvSpec)
	end := byte('\n')
	if len(opts) > 0 {
		end = 0
	}
	if len(names) == 0 {
		for _, kv := range t.Environ() {
			t.Out.WriteString(kv)
			t.Out.WriteByte(end)
		}
		return 0
	}
	missing := false
	for _, n := range names {
		v, ok := t.LookupEnv(n)
		if !ok || strings.Contains(n, "=") {
			missing = true
			continue
		}
		t.Out.WriteString(v)
		t.Out.WriteByte(end)
	}
	return status(missing)
}
