package tree

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

const usage = `usage: tree [-adfhiprstuDFJNQ] [-L level] [-P pattern] [-I pattern]
	[--ignore-case] [--dirsfirst] [--prune] [--noreport] [--version]
	[--help] [--] [directory ...]
`

// mistake ends the command after a wrong argument; withUsage adds the synopsis.
func (l *lister) mistake(withUsage bool, format string, args ...any) {
	fmt.Fprintf(l.t.Stderr(), "tree: "+format+".\n", args...)
	if withUsage {
		l.t.Stderr().Write([]byte(usage))
	}
	l.t.Exit(1)
}

// parse reads the arguments and returns the starting points. An option's argument is the next word that no other option
// of the same cluster has taken.
func (l *lister) parse(args []string) (roots []string) {
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		switch {
		case a == "--":
			return append(roots, args...)
		case strings.HasPrefix(a, "--"):
			l.long(a)
		case len(a) > 1 && a[0] == '-':
			args = l.cluster(a[1:], args)
		default:
			roots = append(roots, a)
		}
	}
	return roots
}

func (l *lister) long(a string) {
	switch a {
	case "--dirsfirst":
		l.dirsFirst = true
	case "--filesfirst":
		l.filesFirst = true
	case "--prune":
		l.prune = true
	case "--noreport":
		l.report = false
	case "--ignore-case":
		l.fold = true
	case "--help":
		l.t.Out.WriteString(usage)
		l.t.Exit(0)
	case "--version":
		l.t.Out.WriteString("tree v2.1.0 (AgentRun's own implementation)\n")
		l.t.Exit(0)
	default:
		l.mistake(true, "Invalid argument `%s'", a)
	}
}

func (l *lister) cluster(letters string, rest []string) []string {
	for i := 0; i < len(letters); i++ {
		switch c := letters[i]; c {
		case 'L':
			var n string
			n, rest = l.argument(c, rest)
			l.level(n)
		case 'P', 'I':
			var p string
			if p, rest = l.argument(c, rest); c == 'P' {
				l.only = append(l.only, p)
			} else {
				l.ignore = append(l.ignore, p)
			}
		default:
			if !l.letter(c) {
				l.mistake(true, "Invalid argument -`%c'", c)
			}
		}
	}
	return rest
}

func (l *lister) argument(c byte, rest []string) (string, []string) {
	if len(rest) == 0 {
		l.mistake(false, "Missing argument to -%c option", c)
	}
	return rest[0], rest[1:]
}

// level sets the depth. A number's tail is ignored, as atoi does.
func (l *lister) level(s string) {
	s = s[:len(s)-len(strings.TrimLeft(s, "0123456789"))]
	n, err := strconv.Atoi(s)
	if err != nil && s != "" {
		n = math.MaxInt32
	}
	if n <= 0 {
		l.mistake(false, "Invalid level, must be greater than 0")
	}
	l.depth = n
}

func (l *lister) letter(c byte) bool {
	switch c {
	case 'a':
		l.all = true
	case 'd':
		l.dirs = true
	case 'f':
		l.full = true
	case 'F':
		l.classify = true
	case 'h':
		l.human, l.size = true, true
	case 's':
		l.size = true
	case 'p':
		l.perm = true
	case 'D':
		l.date = true
	case 'J':
		l.json = true
	case 'i':
		l.flat = true
	case 'r':
		l.reverse = true
	case 't':
		l.byTime = true
	case 'N':
		l.literal = true
	case 'Q':
		l.quote = true
	case 'n':
	default:
		return false
	}
	return true
}
