package tool

import (
	"fmt"
	"strings"

	"agentrun.dev/command/getopt"
)

// Package names the GNU package whose behaviour a command follows, as its --version says.
type Package string

// The packages that the commands follow.
const (
	Coreutils Package = "GNU coreutils) 9.1"
	Grep      Package = "GNU grep) 3.8"
	Sed       Package = "GNU sed) 4.9"
	Findutils Package = "GNU findutils) 4.9.0"
	Diffutils Package = "GNU diffutils) 3.8"
	Own       Package = "AgentRun) 1.0"
)

// Spec describes a command's line.
type Spec struct {
	Usage   []string // synopses, without the command's name
	About   string   // what the command does
	Options []getopt.Option
	Notes   string // follows the options in the help text
	Package Package
	Fail    int // exit status of a mistake in the arguments; zero means 1
	Order   getopt.Order
	NoHelp  bool // --help and --version are no options of this command
	Terse   bool // a mistake prints the first synopsis, before the pointer to --help
	Chatty  bool // a mistake prints the whole help text
}

// Keys of the options that every command has, and the first of those that commands number themselves.
const (
	keyHelp rune = 0x110000 + iota
	keyVersion
	KeyOwn
)

var common = []getopt.Option{
	{Long: "help", Key: keyHelp, Help: "display this help and exit"},
	{Long: "version", Key: keyVersion, Help: "output version information and exit"},
}

// Parse reads the process's arguments. Mistakes, --help and --version end the command.
func (t *T) Parse(s *Spec) (opts []getopt.Opt, operands []string) {
	args := t.Args()
	if len(args) > 0 {
		args = args[1:]
	}
	return t.ParseArgs(s, args)
}

// ParseArgs is Parse for given arguments.
func (t *T) ParseArgs(s *Spec, args []string) (opts []getopt.Opt, operands []string) {
	table := s.Options
	if !s.NoHelp {
		table = append(append(make([]getopt.Option, 0, len(s.Options)+2), s.Options...), common...)
	}
	found, operands, err := getopt.Parse(table, args, s.Order)
	for _, o := range found {
		switch o.Key {
		case keyHelp:
			t.Help(s)
			t.Exit(0)
		case keyVersion:
			t.Version(s)
			t.Exit(0)
		}
	}
	if err != nil {
		t.Warn("%s", err)
		t.Misused(s)
	}
	return found, operands
}

// Misused ends the command after a mistake in its arguments has been reported.
func (t *T) Misused(s *Spec) {
	t.Out.Flush()
	if s.Chatty {
		t.Out.Reset(t.Stderr())
		t.Help(s)
		t.Out.Flush()
		t.Exit(s.failure())
	}
	if s.Terse {
		fmt.Fprintf(t.Stderr(), "Usage: %s %s\n", t.Name, s.Usage[0])
	}
	t.Try(s.failure())
}

func (s *Spec) failure() int {
	if s.Fail == 0 {
		return 1
	}
	return s.Fail
}

// Help writes the help text to Out.
func (t *T) Help(s *Spec) {
	for i, u := range s.Usage {
		head := "Usage:"
		if i > 0 {
			head = "  or: "
		}
		fmt.Fprintf(t.Out, "%s %s\n", head, strings.TrimSpace(t.Name+" "+u))
	}
	t.Out.WriteString(s.About + "\n")
	table := s.Options
	if !s.NoHelp {
		table = append(append([]getopt.Option{}, s.Options...), common...)
	}
	if h := getopt.Help(table); h != "" {
		t.Out.WriteString("\n" + h)
	}
	if s.Notes != "" {
		t.Out.WriteString("\n" + s.Notes + "\n")
	}
}

// Version writes what --version prints. Scripts look at the first line for the GNU package and its version.
func (t *T) Version(s *Spec) {
	name := t.Name[strings.LastIndexByte(t.Name, '/')+1:]
	fmt.Fprintf(t.Out, "%s (%s\nThis is AgentRun's own implementation, which behaves like the version above.\n", name, s.Package)
}

// Missing ends the command for want of an operand.
func (t *T) Missing(status int) { t.UsageError(status, "missing operand") }

// Extra ends the command for an operand too many.
func (t *T) Extra(status int, operand string) {
	t.UsageError(status, "extra operand %s", Quote(operand))
}

// Choice finds an argument among words, of which it may be an unambiguous prefix, as GNU's argmatch does. Words that
// share an index are synonyms. On failure it lists what is possible and ends the command.
func (t *T) Choice(status int, option, arg string, words [][]string) int {
	found, ambiguous := -1, false
	for i, group := range words {
		for _, w := range group {
			if w == arg {
				return i
			}
			if strings.HasPrefix(w, arg) {
				ambiguous = ambiguous || found >= 0 && found != i
				found = i
			}
		}
	}
	if found >= 0 && !ambiguous {
		return found
	}
	kind := "invalid"
	if ambiguous {
		kind = "ambiguous"
	}
	t.Warn("%s argument %s for %s", kind, Quote(arg), Quote(option))
	var b strings.Builder
	b.WriteString("Valid arguments are:\n")
	for _, group := range words {
		for i, w := range group {
			if i == 0 {
				b.WriteString("  - ")
			} else {
				b.WriteString(", ")
			}
			b.WriteString(Quote(w))
		}
		b.WriteByte('\n')
	}
	t.Stderr().Write([]byte(b.String()))
	t.Try(status)
	return 0
}
