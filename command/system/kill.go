package system

import (
	"errors"
	"fmt"
	"io"
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

const killUsage = `
Usage:
 kill [options] <pid> [...]

Options:
 <pid> [...]            send signal to every <pid> listed
 -<signal>, -s, --signal <signal>
                        specify the <signal> to be sent
 -q, --queue <value>    integer value to be sent with the signal
 -l, --list=[<signal>]  list all signal names, or convert one to a name
 -L, --table            list all signal names in a nice table

 -h, --help     display this help and exit
 -V, --version  output version information and exit

For more details see kill(1).
`

// maxListed is the last signal that has a name of its own.
const maxListed = 31

// Kill signals processes, as procps does; a shell has its own, which knows jobs.
func Kill(t *tool.T) int {
	usage := func() int {
		t.Out.Flush()
		io.WriteString(t.Stderr(), killUsage)
		return 1
	}
	sig, args := proc.SIGTERM, t.Args()[1:]
	var pids []string
	for options := true; len(args) > 0; {
		a := args[0]
		args = args[1:]
		if !options || a == "" || a[0] != '-' || len(a) == 1 {
			pids = append(pids, a)
			continue
		}
		name, value, has := strings.Cut(a, "=")
		switch {
		case a == "--":
			options = false
		case a == "-h" || a == "--help":
			t.Out.WriteString(killUsage)
			return 0
		case a == "-V" || a == "--version":
			t.Out.WriteString("kill from procps-ng 4.0.2\n")
			return 0
		case a == "-L" || a == "--table":
			signalTable(t)
			return 0
		case a == "-l" || name == "--list":
			if !has && len(args) > 0 {
				value = args[0]
			}
			return listSignals(t, value)
		case a == "-s" || name == "--signal" || a == "-n" || a == "-q" || name == "--queue":
			if !has {
				if len(args) == 0 {
					return usage()
				}
				value, args = args[0], args[1:]
			}
			if a == "-q" || name == "--queue" {
				continue
			}
			var ok bool
			if sig, ok = signalOf(value); !ok {
				sig = -1 // invalid for every process
			}
		default:
			if n, ok := signalOf(strings.TrimPrefix(a[1:], "s")); ok && len(pids) == 0 {
				sig = n
			} else if _, err := strconv.Atoi(a); err == nil && len(pids) > 0 {
				pids = append(pids, a)
			} else {
				t.Warn("invalid argument %s", a[1:])
				return usage()
			}
		}
	}
	if len(pids) == 0 {
		return usage()
	}
	return signalAll(t, sig, pids)
}

func signalAll(t *tool.T, sig int, pids []string) (status int) {
	for _, word := range pids {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Warn("failed to parse argument: '%s'", word)
			status = 1
			continue
		}
		if err := t.Signal(pid, sig); err != nil {
			t.Warn("(%d): %s", pid, tool.Strerror(err))
			status = 1
		}
	}
	return status
}

// listSignals is -l: all names, or the name of a number, or the number of a name.
func listSignals(t *tool.T, word string) int {
	if word == "" {
		line := ""
		for n := 1; n <= maxListed; n++ {
			if name := signalName(n); len(line)+1+len(name) > 76 {
				fmt.Fprintln(t.Out, line)
				line = name
			} else {
				line = strings.TrimPrefix(line+" "+name, " ")
			}
		}
		fmt.Fprintln(t.Out, line)
		return 0
	}
	n, ok := signalOf(word)
	if number, err := strconv.Atoi(word); err == nil {
		if name := signalName(number); name != "" {
			fmt.Fprintln(t.Out, name)
			return 0
		}
		ok = false
	}
	if !ok {
		t.Warn("unknown signal name %s", word)
		return 0
	}
	fmt.Fprintln(t.Out, n)
	return 0
}

// signalName is a signal's name as procps has it.
func signalName(n int) string {
	if name := strings.TrimPrefix(proc.SignalName(n), "SIG"); name != "IO" {
		return name
	}
	return "POLL"
}

func signalTable(t *tool.T) {
	for n := 1; n <= maxListed; n++ {
		switch {
		case n == maxListed:
			fmt.Fprintf(t.Out, "%2d %-8s\n", n, signalName(n))
		case n%7 == 0:
			fmt.Fprintf(t.Out, "%2d %s\n", n, signalName(n))
		default:
			fmt.Fprintf(t.Out, "%2d %-7s ", n, signalName(n))
		}
	}
}

var killallOptions = []getopt.Option{
	{Short: 'e', Long: "exact", Help: "require exact match for very long names"}, {Short: 'I', Long: "ignore-case", Help: "case insensitive process name match"},
	{Short: 'g', Long: "process-group", Help: "kill process group instead of process"}, {Short: 'y', Long: "younger-than", Arg: getopt.Required, Name: "TIME", Help: "kill processes younger than TIME"},
	{Short: 'o', Long: "older-than", Arg: getopt.Required, Name: "TIME", Help: "kill processes older than TIME"}, {Short: 'i', Long: "interactive", Help: "ask for confirmation before killing"},
	{Short: 'l', Long: "list", Help: "list all known signal names"}, {Short: 'q', Long: "quiet", Help: "don't print complaints"}, {Short: 'r', Long: "regexp", Help: "interpret NAME as an extended regular expression"},
	{Short: 's', Long: "signal", Arg: getopt.Required, Name: "SIGNAL", Help: "send this signal instead of SIGTERM"}, {Short: 'u', Long: "user", Arg: getopt.Required, Name: "USER", Help: "kill only process(es) running as USER"},
	{Short: 'v', Long: "verbose", Help: "report if the signal was successfully sent"}, {Short: 'V', Long: "version"}, {Short: 'w', Long: "wait", Help: "wait for processes to die"},
}

// Killall signals processes by name.
func Killall(t *tool.T) int {
	sig, args := proc.SIGTERM, slices.Clone(t.Args()[1:])
	for i, a := range args {
		if n, ok := signalOf(strings.TrimPrefix(a, "-")); ok && len(a) > 1 && a[0] == '-' {
			sig, args = n, slices.Delete(args, i, i+1)
			break
		}
	}
	k := killer{t: t, spec: tool.Spec{Usage: []string{"[OPTION]... [--] NAME..."}, About: "Send a signal to processes by name.", Options: killallOptions, Package: "PSmisc) 23.6", Chatty: true}}
	opts, names := t.ParseArgs(&k.spec, args)
	for _, o := range opts {
		switch o.Key {
		case 'l':
			return listSignals(t, "")
		case 'V':
			t.Version(&k.spec)
			return 0
		case 's':
			n, ok := signalOf(o.Arg)
			if !ok {
				fmt.Fprintf(t.Stderr(), "%s: unknown signal; %s -l lists signals.\n", o.Arg, t.Name)
				return 1
			}
			sig = n
		}
		k.options = append(k.options, o)
	}
	if len(names) == 0 && !k.has('u') {
		t.Misused(&k.spec)
	}
	return k.run(sig, names)
}

// killer is a running killall.
type killer struct {
	t       *tool.T
	spec    tool.Spec
	options []getopt.Opt
}

func (k *killer) has(key rune) bool {
	return slices.ContainsFunc(k.options, func(o getopt.Opt) bool { return o.Key == key })
}

func (k *killer) run(sig int, names []string) (status int) {
	t := k.t
	if len(names) == 0 {
		names = []string{""}
	}
	var signaled []int
	for _, name := range names {
		found := false
		for _, p := range processes(t) {
			if p.pid == t.Pid() || !k.match(name, p) {
				continue
			}
			target := p.pid
			if k.has('g') {
				target = -p.pgrp
			}
			if err := t.Signal(target, sig); err != nil {
				if !errors.Is(err, syscall.ESRCH) {
					fmt.Fprintf(t.Stderr(), "%s(%d): %s\n", p.comm, p.pid, tool.Strerror(err))
				}
				continue
			}
			found = true
			signaled = append(signaled, p.pid)
			if k.has('v') {
				fmt.Fprintf(t.Stderr(), "Killed %s(%d) with signal %d\n", p.comm, p.pid, sig)
			}
		}
		if !found {
			if status = 1; !k.has('q') {
				fmt.Fprintf(t.Stderr(), "%s: no process found\n", name)
			}
		}
	}
	for k.has('w') && len(signaled) > 0 {
		signaled = slices.DeleteFunc(signaled, func(pid int) bool {
			p := t.Sandbox().Lookup(pid)
			return p == nil || readProcess(t, pid, time.Time{}) == nil || readProcess(t, pid, time.Time{}).state == "Z"
		})
		if t.Sleep(50*time.Millisecond) != nil {
			t.Check()
			break
		}
	}
	return status
}

func (k *killer) match(name string, p *process) bool {
	for _, o := range k.options {
		switch o.Key {
		case 'u':
			if id, ok := k.t.Accounts().LookupUID(o.Arg); !ok || id != p.uid {
				return false
			}
		case 'y', 'o':
			age, ok := ageOf(o.Arg)
			if !ok {
				fmt.Fprintf(k.t.Stderr(), "%s: Invalid time format\n", k.t.Name)
				k.t.Exit(1)
			}
			if old := k.t.Now().Sub(p.start) > age; old == (o.Key == 'y') {
				return false
			}
		}
	}
	if name == "" {
		return true
	}
	if k.has('r') {
		re, err := posixre.Compile(name, posixre.Options{Flavor: posixre.Extended, Fold: k.has('I')})
		if err != nil {
			fmt.Fprintf(k.t.Stderr(), "%s: Bad regular expression: %s\n", k.t.Name, name)
			k.t.Exit(1)
		}
		ok, err := re.Match([]byte(p.comm))
		return ok && err == nil
	}
	name = name[strings.LastIndexByte(name, '/')+1:]
	comm := p.comm
	if len(comm) == 15 && len(name) > 15 { // the rest of the name is in the arguments
		if len(p.argv) > 0 {
			comm = p.argv[0][strings.LastIndexByte(p.argv[0], '/')+1:]
		}
	}
	return comm == name || k.has('I') && strings.EqualFold(comm, name)
}

// ageOf reads a time such as 30s, 5m or 2d.
func ageOf(s string) (time.Duration, bool) {
	if s == "" {
		return 0, false
	}
	unit := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour, 'M': 30 * 24 * time.Hour, 'y': 365 * 24 * time.Hour}[s[len(s)-1]]
	n, err := strconv.ParseFloat(s[:len(s)-1], 64)
	return time.Duration(n * float64(unit)), err == nil && unit > 0 && n >= 0 && n < 1e6
}
