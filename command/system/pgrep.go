package system

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/posixre"
	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
)

const (
	keySignal = tool.KeyOwn + iota
	keyOlder
	keyIgnoreAncestors
	keyUsage
)

var pgrepOptions = []getopt.Option{
	{Short: 'd', Long: "delimiter", Arg: getopt.Required, Name: "string", Help: "specify output delimiter"},
	{Short: 'l', Long: "list-name", Help: "list PID and process name"},
	{Short: 'a', Long: "list-full", Help: "list PID and full command line"},
	{Short: 'v', Long: "inverse", Help: "negates the matching"},
	{Short: 'w', Long: "lightweight", Help: "list all TID"},
	{Short: 'q', Long: "quiet"},
	{Short: 'c', Long: "count", Help: "count of matching processes"},
	{Short: 'f', Long: "full", Help: "use full process name to match"},
	{Short: 'g', Long: "pgroup", Arg: getopt.Required, Name: "PGID,...", Help: "match listed process group IDs"},
	{Short: 'G', Long: "group", Arg: getopt.Required, Name: "GID,...", Help: "match real group IDs"},
	{Short: 'i', Long: "ignore-case", Help: "match case insensitively"},
	{Short: 'n', Long: "newest", Help: "select most recently started"},
	{Short: 'o', Long: "oldest", Help: "select least recently started"},
	{Short: 'O', Long: "older", Arg: getopt.Required, Name: "seconds", Help: "select where older than seconds"},
	{Short: 'P', Long: "parent", Arg: getopt.Required, Name: "PPID,...", Help: "match only child processes of the given parent"},
	{Short: 's', Long: "session", Arg: getopt.Required, Name: "SID,...", Help: "match session IDs"},
	{Long: "signal", Key: keySignal, Arg: getopt.Required, Name: "sig", Help: "signal to send (either number or name)"},
	{Short: 't', Long: "terminal", Arg: getopt.Required, Name: "tty,...", Help: "match by controlling terminal"},
	{Short: 'u', Long: "euid", Arg: getopt.Required, Name: "ID,...", Help: "match by effective IDs"},
	{Short: 'U', Long: "uid", Arg: getopt.Required, Name: "ID,...", Help: "match by real IDs"},
	{Short: 'x', Long: "exact", Help: "match exactly with the command name"},
	{Short: 'F', Long: "pidfile", Arg: getopt.Required, Name: "file", Help: "read PIDs from file"},
	{Short: 'L', Long: "logpidfile", Help: "fail if PID file is not locked"},
	{Short: 'r', Long: "runstates", Arg: getopt.Required, Name: "state", Help: "match runstates [D,S,Z,...]"},
	{Short: 'A', Long: "ignore-ancestors", Help: "exclude our ancestors from results"},
	{Short: 'e', Long: "echo", Help: "display what is killed"},
	{Short: 'h', Long: "help", Key: keyUsage},
	{Short: 'V', Long: "version"},
}

// selector picks processes.
type selector struct {
	t                                    *tool.T
	kill                                 bool
	delimiter                            string
	name, full, inverse, counted, quiet  bool
	matchFull, fold, newest, oldest      bool
	exact, echo, criteria, noAncestors   bool
	pgids, parents, sessions, pids, gids []int
	euids, uids                          []int
	ttys                                 []string
	states                               string
	older                                time.Duration
	sig                                  int
	pattern                              *posixre.Regexp
}

// Pgrep lists processes that match a pattern and other criteria.
func Pgrep(t *tool.T) int { return (&selector{t: t, delimiter: "\n"}).run() }

// Pkill signals them.
func Pkill(t *tool.T) int {
	return (&selector{t: t, kill: true, sig: proc.SIGTERM, delimiter: "\n"}).run()
}

// fail reports a mistake in the arguments.
func (s *selector) fail(format string, args ...any) {
	s.t.Warn(format, args...)
	fmt.Fprintf(s.t.Stderr(), "Try `%s --help' for more information.\n", s.t.Name)
	s.t.Exit(2)
}

func (s *selector) run() int {
	args := slices.Clone(s.t.Args()[1:])
	if s.kill {
		for i, a := range args {
			if a == "--" || !strings.HasPrefix(a, "-") {
				break
			}
			if n, ok := signalOf(a[1:]); ok && a != "-" {
				s.sig = n
				args = slices.Delete(args, i, i+1)
				break
			}
		}
	}
	spec := tool.Spec{Usage: []string{"[options] <pattern>"}, Options: pgrepOptions, NoHelp: true, Fail: 2}
	opts, patterns, err := getopt.Parse(spec.Options, args, getopt.Permute)
	if err != nil {
		s.t.Warn("%s", err)
		s.usage()
	}
	for _, o := range opts {
		switch o.Key {
		case keyUsage:
			s.help()
			return 0
		case 'V':
			fmt.Fprintf(s.t.Out, "%s from procps-ng 4.0.2\n", s.t.Name)
			return 0
		}
		s.option(o)
	}
	switch {
	case len(patterns) == 0 && !s.criteria:
		s.fail("no matching criteria specified")
	case len(patterns) > 1:
		s.fail("only one pattern can be provided")
	case s.newest && s.oldest:
		s.usage()
	case s.inverse && s.kill:
		s.fail("invalid option -- 'v'")
	}
	if len(patterns) == 1 {
		s.compile(patterns[0])
	}
	return s.finish(s.matches())
}

// usage ends the command after a mistake that needs no words.
func (s *selector) usage() {
	s.t.Out.Reset(s.t.Stderr())
	s.help()
	s.t.Exit(2)
}

func (s *selector) help() {
	fmt.Fprintf(s.t.Out, "\nUsage:\n %s [options] <pattern>\n\nOptions:\n%s -h, --help     display this help and exit\n -V, --version  output version information and exit\n\nFor more details see pgrep(1).\n", s.t.Name, getopt.Help(pgrepOptions))
}

func (s *selector) compile(pattern string) {
	if s.exact {
		pattern = "^(" + pattern + ")$"
	}
	re, err := posixre.Compile(pattern, posixre.Options{Flavor: posixre.Extended, Fold: s.fold})
	if err != nil {
		s.fail("%s", err)
	}
	s.pattern = re
}

func (s *selector) option(o getopt.Opt) {
	s.criteria = s.criteria || strings.ContainsRune("gGnoOPstuUFrvA", o.Key)
	switch o.Key {
	case 'd':
		s.delimiter = o.Arg
	case 'l':
		s.name = true
	case 'a':
		s.full = true
	case 'v':
		s.inverse = true
	case 'c':
		s.counted = true
	case 'q':
		s.quiet = true
	case 'f':
		s.matchFull = true
	case 'i':
		s.fold = true
	case 'n':
		s.newest = true
	case 'o':
		s.oldest = true
	case 'x':
		s.exact = true
	case 'e':
		s.echo = true
	case 'A':
		s.noAncestors = true
	case 'r':
		s.states = o.Arg
	case keySignal:
		n, ok := signalOf(o.Arg)
		if !ok {
			s.fail("Unknown signal %q.", o.Arg)
		}
		s.sig = n
	default:
		s.list(o)
	}
}

// list reads the options that have lists.
func (s *selector) list(o getopt.Opt) {
	words := strings.Split(o.Arg, ",")
	numbers := func(own int, by func(string) (uint32, bool)) (list []int) {
		for _, w := range words {
			n, err := strconv.Atoi(w)
			if err != nil && by != nil {
				if id, ok := by(w); ok {
					n, err = int(id), nil
				} else {
					s.t.Warn("invalid user name: %s", w)
					s.t.Exit(2)
				}
			}
			if err != nil {
				s.fail("not a number: %s", w)
			}
			if n == 0 && own != 0 {
				n = own
			}
			list = append(list, n)
		}
		return list
	}
	accounts := s.t.Accounts()
	switch o.Key {
	case 'g':
		s.pgids = numbers(s.t.Pgid(), nil)
	case 's':
		s.sessions = numbers(s.t.Sid(), nil)
	case 'P':
		s.parents = numbers(0, nil)
	case 'G':
		s.gids = numbers(0, accounts.LookupGID)
	case 'u':
		s.euids = numbers(0, accounts.LookupUID)
	case 'U':
		s.uids = numbers(0, accounts.LookupUID)
	case 'O':
		words = []string{o.Arg}
		s.older = time.Duration(numbers(0, nil)[0]) * time.Second
	case 't':
		for _, w := range words {
			s.ttys = append(s.ttys, strings.TrimPrefix(w, "/dev/"))
		}
	case 'F':
		text, err := s.t.ReadFile(o.Arg, maxProcFile)
		n, aerr := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil || aerr != nil {
			s.fail("pidfile not valid")
		}
		s.pids = []int{n}
	}
}

// matches are the processes picked, but for this one.
func (s *selector) matches() (list []*process) {
	all := processes(s.t)
	parents := map[int]int{}
	for _, p := range all {
		parents[p.pid] = p.ppid
	}
	ancestors := map[int]bool{}
	if s.noAncestors {
		for pid := s.t.Ppid(); pid > 0 && !ancestors[pid]; pid = parents[pid] {
			ancestors[pid] = true
		}
	}
	for _, p := range all {
		if p.pid != s.t.Pid() && !ancestors[p.pid] && s.match(p) != s.inverse {
			list = append(list, p)
		}
	}
	if (s.newest || s.oldest) && len(list) > 0 {
		best := list[0]
		for _, p := range list {
			if s.newest && !p.start.Before(best.start) || s.oldest && p.start.Before(best.start) {
				best = p
			}
		}
		list = []*process{best}
	}
	return list
}

func (s *selector) match(p *process) bool {
	in := func(list []int, n int) bool { return len(list) == 0 || slices.Contains(list, n) }
	if !in(s.pgids, p.pgrp) || !in(s.sessions, p.session) || !in(s.parents, p.ppid) || !in(s.gids, int(p.gid)) || !in(s.euids, int(p.euid)) || !in(s.uids, int(p.uid)) || !in(s.pids, p.pid) ||
		len(s.ttys) > 0 && !slices.Contains(s.ttys, p.tty) || s.states != "" && !strings.Contains(s.states, p.state) || s.older > 0 && s.t.Now().Sub(p.start) < s.older {
		return false
	}
	if s.pattern == nil {
		return true
	}
	subject := p.comm
	if s.matchFull {
		subject = p.args
	}
	ok, err := s.pattern.Match([]byte(subject))
	return ok && err == nil
}

// finish prints or signals.
func (s *selector) finish(list []*process) int {
	status := 1
	if len(list) > 0 {
		status = 0
	}
	if !s.kill {
		if s.counted {
			fmt.Fprintln(s.t.Out, len(list))
			return status
		}
		for i, p := range list {
			if s.quiet {
				break
			}
			if i > 0 {
				s.t.Out.WriteString(s.delimiter)
			}
			switch {
			case s.full:
				fmt.Fprintf(s.t.Out, "%d %s", p.pid, p.args)
			case s.name:
				fmt.Fprintf(s.t.Out, "%d %s", p.pid, p.comm)
			default:
				fmt.Fprint(s.t.Out, p.pid)
			}
		}
		if len(list) > 0 && !s.quiet {
			s.t.Out.WriteString("\n")
		}
		return status
	}
	done := 0
	for _, p := range list {
		err := s.t.Signal(p.pid, s.sig)
		if err == nil {
			done++
			if s.echo {
				fmt.Fprintf(s.t.Out, "%s killed (pid %d)\n", p.comm, p.pid)
			}
		} else if !errors.Is(err, syscall.ESRCH) {
			s.t.Warn("killing pid %d failed: %s", p.pid, tool.Strerror(err))
		}
	}
	if s.counted {
		fmt.Fprintln(s.t.Out, len(list))
	}
	if done == 0 {
		return 1
	}
	return 0
}

// signalOf reads a signal's name, with or without SIG, or number.
func signalOf(s string) (int, bool) {
	if n, err := strconv.Atoi(s); err == nil {
		return n, n >= 0 && n <= proc.MaxSignal
	}
	s = strings.TrimPrefix(strings.ToUpper(s), "SIG")
	if s == "IOT" {
		s = "ABRT"
	}
	return proc.SignalNumber(s)
}

// Pidof prints the numbers of the processes of a program, the newest first.
func Pidof(t *tool.T) int {
	spec := tool.Spec{Usage: []string{"[options] [program [...]]"}, About: "Find the process ID of a running program.", Package: "procps-ng 4.0.2", Options: []getopt.Option{
		{Short: 's', Long: "single-shot", Help: "return one PID only"}, {Short: 'c', Long: "check-root", Help: "omit processes with different root"}, {Short: 'q', Help: "quiet mode, only set the exit code"},
		{Short: 'w', Long: "with-workers", Help: "show kernel workers too"}, {Short: 'x', Help: "also find shells running the named scripts"},
		{Short: 'o', Long: "omit-pid", Arg: getopt.Required, Name: "PID,...", Help: "omit processes with PID"}, {Short: 'S', Long: "separator", Arg: getopt.Required, Name: "SEP", Help: "use SEP as separator put between PIDs"}}}
	opts, names := t.Parse(&spec)
	single, quiet, scripts, sep := false, false, false, " "
	omit := map[int]bool{t.Pid(): true}
	for _, o := range opts {
		switch o.Key {
		case 's':
			single = true
		case 'q':
			quiet = true
		case 'x':
			scripts = true
		case 'S':
			sep = o.Arg
		case 'o':
			for _, w := range strings.Split(o.Arg, ",") {
				n, err := strconv.Atoi(w)
				if w == "%PPID" {
					n, err = t.Ppid(), nil
				}
				if err == nil {
					omit[n] = true
				}
			}
		}
	}
	list := processes(t)
	slices.Reverse(list)
	base := func(s string) string { return s[strings.LastIndexByte(s, '/')+1:] }
	var found []string
	for _, name := range names {
		for _, p := range list {
			if omit[p.pid] || single && len(found) > 0 {
				continue
			}
			hit := len(p.argv) > 0 && (p.argv[0] == name || base(p.argv[0]) == base(name) && !strings.Contains(name, "/")) || p.comm == name
			hit = hit || scripts && len(p.argv) > 1 && (p.argv[1] == name || base(p.argv[1]) == name)
			if hit {
				found = append(found, strconv.Itoa(p.pid))
			}
		}
	}
	if len(found) == 0 {
		return 1
	}
	if !quiet {
		fmt.Fprintln(t.Out, strings.Join(found, sep))
	}
	return 0
}
