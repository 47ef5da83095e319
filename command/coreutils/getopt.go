package coreutils

import (
	"fmt"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

var getoptSpec = tool.Spec{
	Usage: []string{"<optstring> <parameters>", "[options] [--] <optstring> <parameters>", "[options] -o|--options <optstring> [options] [--] <parameters>"},
	About: "Parse command options.",
	Options: []getopt.Option{
		{Short: 'a', Long: "alternative", Help: "allow long options starting with single -"},
		{Short: 'l', Long: "longoptions", Arg: getopt.Required, Name: "<longopts>", Help: "the long options to be recognized"},
		{Long: "longopts", Key: 'l', Arg: getopt.Required, Hidden: true},
		{Short: 'n', Long: "name", Arg: getopt.Required, Name: "<progname>", Help: "the name under which errors are reported"},
		{Short: 'o', Long: "options", Arg: getopt.Required, Name: "<optstring>", Help: "the short options to be recognized"},
		{Short: 'q', Long: "quiet", Help: "disable error reporting by getopt(3)"},
		{Short: 'Q', Long: "quiet-output", Help: "no normal output"},
		{Short: 's', Long: "shell", Arg: getopt.Required, Name: "<shell>", Help: "set quoting conventions to those of <shell>"},
		{Short: 'T', Long: "test", Help: "test for getopt(1) version"},
		{Short: 'u', Long: "unquoted", Help: "do not quote the output"},
	},
	Package: tool.Own,
	Fail:    2,
	Order:   getopt.POSIX,
}

// optionParser is a run of getopt: it parses somebody else's options.
type optionParser struct {
	t                          *tool.T
	name, short                string
	long                       []getopt.Option
	alternative, quiet, silent bool
	unquoted, csh, failed      bool
	out                        strings.Builder
}

// Getopt parses options for shell scripts.
func Getopt(t *tool.T) int {
	args := t.Args()[1:]
	p := &optionParser{t: t, name: "getopt"}
	compatible := t.Getenv("GETOPT_COMPATIBLE") != ""
	if len(args) == 0 {
		if compatible {
			t.Out.WriteString(" --\n")
			return 0
		}
		t.UsageError(2, "missing optstring argument")
	}
	if args[0] == "" || args[0][0] != '-' || compatible {
		p.unquoted, p.short = true, strings.TrimLeft(args[0], "-+")
		return p.run(args[1:])
	}
	opts, rest := t.Parse(&getoptSpec)
	given := false
	for _, o := range opts {
		switch o.Key {
		case 'a':
			p.alternative = true
		case 'l':
			p.addLong(o.Arg)
		case 'n':
			p.name = o.Arg
		case 'o':
			p.short, given = o.Arg, true
		case 'q':
			p.quiet = true
		case 'Q':
			p.silent = true
		case 's':
			switch o.Arg {
			case "sh", "bash":
				p.csh = false
			case "csh", "tcsh":
				p.csh = true
			default:
				t.UsageError(2, "unknown shell after -s or --shell argument")
			}
		case 'T':
			return 4
		case 'u':
			p.unquoted = true
		}
	}
	if !given {
		if len(rest) == 0 {
			t.UsageError(2, "missing optstring argument")
		}
		p.short, rest = rest[0], rest[1:]
	}
	return p.run(rest)
}

// addLong adds long options: names apart by commas or blanks, each perhaps with one or two colons.
func (p *optionParser) addLong(list string) {
	for _, name := range strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(", \t\n", r) }) {
		o := getopt.Option{Long: strings.TrimSuffix(strings.TrimSuffix(name, ":"), ":")}
		o.Arg = getopt.Arg(len(name) - len(o.Long))
		if o.Long == "" {
			p.t.UsageError(2, "empty long option after -l or --long argument")
		}
		p.long = append(p.long, o)
	}
}

// run parses the arguments and writes them in order.
func (p *optionParser) run(args []string) int {
	posix := p.t.Getenv("POSIXLY_CORRECT") != ""
	inOrder := false
	if p.short != "" && (p.short[0] == '+' || p.short[0] == '-') {
		posix, inOrder = p.short[0] == '+', p.short[0] == '-'
		p.short = p.short[1:]
	}
	if strings.HasPrefix(p.short, ":") {
		p.short, p.quiet = p.short[1:], true
	}
	var operands []string
loop:
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		switch {
		case a == "--":
			operands = append(operands, args...)
			break loop
		case strings.HasPrefix(a, "--"):
			args = p.longOption(a[2:], "--", args)
		case len(a) > 1 && a[0] == '-':
			if p.alternative && (len(a) > 2 || !p.knows(a[1])) && (p.find(a[1:]) != nil || !p.knows(a[1])) {
				args = p.longOption(a[1:], "-", args)
			} else {
				args = p.cluster(a[1:], args)
			}
		case inOrder:
			p.out.WriteString(" " + p.quote(a))
		case posix:
			operands = append(append(operands, a), args...)
			break loop
		default:
			operands = append(operands, a)
		}
	}
	if !p.silent {
		p.out.WriteString(" --")
		for _, a := range operands {
			p.out.WriteString(" " + p.quote(a))
		}
		p.t.Out.WriteString(p.out.String() + "\n")
	}
	return status(p.failed)
}

func (p *optionParser) fail(format string, args ...any) {
	p.failed = true
	if !p.quiet {
		fmt.Fprintf(p.t.Stderr(), "%s: %s\n", p.name, fmt.Sprintf(format, args...))
	}
}

func (p *optionParser) knows(c byte) bool {
	return c != ':' && strings.IndexByte(p.short, c) >= 0
}

// find returns the long option that s names or begins; nil if there is none or several.
func (p *optionParser) find(s string) *getopt.Option {
	name, _, _ := strings.Cut(s, "=")
	var found *getopt.Option
	for i := range p.long {
		o := &p.long[i]
		if o.Long == name {
			return o
		}
		if strings.HasPrefix(o.Long, name) {
			if found != nil {
				return nil
			}
			found = o
		}
	}
	return found
}

func (p *optionParser) longOption(s, dashes string, rest []string) []string {
	name, value, has := strings.Cut(s, "=")
	o := p.find(s)
	if o == nil {
		var possible []string
		for i := range p.long {
			if strings.HasPrefix(p.long[i].Long, name) {
				possible = append(possible, " '"+dashes+p.long[i].Long+"'")
			}
		}
		if len(possible) > 0 {
			p.fail("option '%s%s' is ambiguous; possibilities:%s", dashes, s, strings.Join(possible, ""))
		} else {
			p.fail("unrecognized option '%s%s'", dashes, name)
		}
		return rest
	}
	if o.Arg == getopt.No && has {
		p.fail("option '%s%s' doesn't allow an argument", dashes, o.Long)
		return rest
	}
	if o.Arg == getopt.Required && !has {
		if len(rest) == 0 {
			p.fail("option '%s%s' requires an argument", dashes, o.Long)
			return rest
		}
		value, rest = rest[0], rest[1:]
	}
	p.out.WriteString(" --" + o.Long)
	if o.Arg != getopt.No {
		p.out.WriteString(" " + p.quote(value))
	}
	return rest
}

// cluster parses letters, the last of which may have an argument.
func (p *optionParser) cluster(s string, rest []string) []string {
	for s != "" {
		c := s[0]
		s = s[1:]
		if !p.knows(c) {
			p.fail("invalid option -- '%c'", c)
			continue
		}
		spec := p.short[strings.IndexByte(p.short, c)+1:]
		switch {
		case !strings.HasPrefix(spec, ":"):
			p.out.WriteString(" -" + string(rune(c)))
			continue
		case strings.HasPrefix(spec, "::"), s != "":
			p.out.WriteString(" -" + string(rune(c)) + " " + p.quote(s))
		case len(rest) == 0:
			p.fail("option requires an argument -- '%c'", c)
		default:
			p.out.WriteString(" -" + string(rune(c)) + " " + p.quote(rest[0]))
			rest = rest[1:]
		}
		return rest
	}
	return rest
}

// quote makes an argument safe for the shell's eval.
func (p *optionParser) quote(s string) string {
	if p.unquoted {
		return s
	}
	if !p.csh {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return "'" + strings.NewReplacer("'", `'\''`, `\`, `\\`, "!", `'\!'`, "\n", `\n`, " ", `'\ '`, "\t", `'\	'`).Replace(s) + "'"
}
