package world

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/services"
	"agentrun.dev/command/tool"
	"agentrun.dev/errs"
	"agentrun.dev/proc"
)

const forkAbout = `Make copies of this running sandbox: files, processes, shells and interpreters.

Everything goes on in the copies from where it is, as fork(2) has it: the script
that calls fork goes on in the parent and in every child. In the parent, fork
prints the children's ids, one a line; in a child it prints "child" and its
number, so that a script can tell them apart. Nothing that a child does is seen
by the parent or by other children until it is merged.`

const forkNotes = `Examples:
  fork                      # one child; prints its id
  fork -n 3 --name try      # three: try-1, try-2, try-3

  case $(fork -n 2) in      # go separate ways
    "child 1") ./solve --fast ;;
    "child 2") ./solve --thorough ;;
    *) echo "both are under way" ;;
  esac

  merge try-1               # later, in the parent: take what the child did
  fork --self               # who am I?

Exit status: 0 done, 1 failed, 2 usage, 3 the name is taken, or a process can't
be copied now, 5 this sandbox can't be forked; --self: 1 if this is no fork.

See also: snapshot --help, merge --help.`

const keySelf = keyConflicts + 1

// maxForks bounds one call; the engine may allow less.
const maxForks = 1000

var forkSpec = tool.Spec{
	Usage: []string{"[-n COUNT] [--name NAME] [--lease DURATION] [--kill] [--json]", "--self [--json]"},
	About: forkAbout,
	Options: []getopt.Option{
		{Short: 'n', Long: "count", Arg: getopt.Required, Name: "COUNT", Help: "how many children to make; 1 by default"},
		{Long: "name", Key: 'N', Arg: getopt.Required, Name: "NAME", Help: "name the child; of several, NAME-1, NAME-2 …"},
		{Long: "lease", Key: keyLease, Arg: getopt.Required, Name: "DURATION", Help: "how long children live unless used, such as 600 or 2h"},
		{Long: "kill", Key: keyKill, Help: "leave out processes that can't be copied"},
		{Long: "self", Key: keySelf, Help: "print which fork this sandbox is"},
		{Long: "json", Key: keyJSON, Help: "print JSON, one object a line"},
	},
	Notes: forkNotes, Package: tool.Own, Fail: misused,
}

// Fork forks the sandbox.
func Fork(t *tool.T) int {
	f := parseFork(t)
	control(t)
	if f.Child {
		return f.child(t)
	}
	return t.RunAs(f)
}

// Forked is what a Fork goes on with in a child, where it can't be copied: called with the same arguments, it says which child this is.
func Forked(t *tool.T) int { return parseFork(t).child(t) }

func parseFork(t *tool.T) *forking {
	opts, operands := t.Parse(&forkSpec)
	f := &forking{Options: services.ForkOptions{Count: 1}}
	for _, o := range opts {
		switch o.Key {
		case 'n':
			n, err := strconv.Atoi(o.Arg)
			if err != nil || n < 1 || n > maxForks {
				t.UsageError(misused, "invalid count %s: give 1 to %d", tool.Quote(o.Arg), maxForks)
			}
			f.Options.Count = n
		case 'N':
			f.Options.Name = o.Arg
		case keyLease:
			f.Options.Lease = lease(t, o.Arg)
		case keyKill:
			f.Options.Kill = true
		case keySelf:
			f.Child = true
		case keyJSON:
			f.JSON = true
		}
	}
	if len(operands) > 0 {
		t.Extra(misused, operands[0])
	}
	return f
}

// lease reads a duration in seconds, or in Go's notation.
func lease(t *tool.T, s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		var n int64
		if n, err = strconv.ParseInt(s, 10, 32); err == nil {
			d = time.Duration(n) * time.Second
		}
	}
	if err != nil || d <= 0 {
		t.UsageError(misused, "invalid duration %s", tool.Quote(s))
	}
	return d
}

// forking is a fork under way. It is what of the command is copied into the children: there, Child is set, and instead of
// asking for the fork again it asks who it has become.
type forking struct {
	Options     services.ForkOptions
	JSON, Child bool
}

// Run implements proc.Program.
func (f *forking) Run(p *proc.Process) int {
	if f.Child {
		return tool.Func(f.child).Run(p)
	}
	var made []services.Forked
	err := p.RestAbroad(func() (err error) {
		made, err = services.From(p).Control.Fork(p.Context(), f.Options)
		return err
	})
	return tool.Func(func(t *tool.T) int {
		check(t, err)
		for i := range made {
			if f.JSON {
				printJSON(t, made[i])
			} else {
				fmt.Fprintln(t.Out, clean(made[i].ID))
			}
		}
		return 0
	}).Run(p)
}

// child says which fork this is.
func (f *forking) child(t *tool.T) int {
	self, err := control(t).Self(t.Context())
	check(t, err)
	switch {
	case self == nil:
		t.Warn("this sandbox isn't a fork")
		return failed
	case f.JSON:
		printJSON(t, self)
	default:
		fmt.Fprintf(t.Out, "child %d\n", self.Index)
	}
	return 0
}

// Capture implements proc.Cloner.
func (f *forking) Capture() (proc.State, error) {
	c := *f
	c.Child = true
	return (*forkState)(&c), nil
}

// forkState is a forking as it goes on in a child.
type forkState forking

// Resume implements proc.State.
func (s *forkState) Resume(*proc.Process) (proc.Program, error) {
	c := forking(*s)
	return &c, nil
}

// Close implements proc.State.
func (s *forkState) Close() error { return nil }

// ForkKind is what Save calls a fork under way.
const ForkKind = "fork"

// Save implements proc.Saver.
func (s *forkState) Save() (string, []byte, error) {
	b, err := json.Marshal(forking(*s))
	return ForkKind, b, err
}

// LoadFork restores what Save wrote.
func LoadFork(data []byte) (proc.State, error) {
	s := &forkState{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, errs.New(errs.Corrupt, "restore", ForkKind, err)
	}
	return s, nil
}
