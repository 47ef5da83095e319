package system

import (
	"fmt"
	"strconv"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

// maxProcessors bounds the numbers of processors that taskset reads; further ones are no processors of any machine.
const maxProcessors = 1 << 16

// badUsage ends a command of util-linux whose operands are wrong.
func badUsage(t *tool.T) {
	t.Warn("bad usage")
	t.Try(1)
}

// run runs a command and returns its status.
func run(t *tool.T, args []string) int {
	child, status := start(t, args)
	if child != nil {
		status, _ = t.WaitQuiet(child)
	}
	return status
}

// existing reads the number of a process that there is; what says what was to be done with it.
func existing(t *tool.T, arg, what string) int {
	pid, err := strconv.Atoi(arg)
	if err != nil || pid < 0 {
		t.Fatal(1, "invalid PID argument: '%s'", arg)
	}
	if pid == 0 {
		return t.Pid()
	}
	if t.Sandbox().Lookup(pid) == nil {
		t.Fatal(1, what+": No such process", pid)
	}
	return pid
}

// Taskset shows the one processor that a sandbox has. A process may be bound to it, and to no other.
func Taskset(t *tool.T) int {
	spec := tool.Spec{Usage: []string{"[options] [mask | cpu-list] [pid|cmd [args...]]"}, About: "\nShow or change the CPU affinity of a process.  A sandbox has one processor, number 0.", Package: utilLinux, Order: getopt.POSIX, Options: []getopt.Option{
		{Short: 'a', Long: "all-tasks", Help: "operate on all the tasks (threads) for a given pid"}, {Short: 'p', Long: "pid", Help: "operate on existing given pid"}, {Short: 'c', Long: "cpu-list", Help: "display and specify cpus in list format"}}}
	opts, args := t.Parse(&spec)
	existingPid, list := false, false
	for _, o := range opts {
		existingPid = existingPid || o.Key == 'p'
		list = list || o.Key == 'c'
	}
	if len(args) == 0 || !existingPid && len(args) == 1 || existingPid && len(args) > 2 {
		badUsage(t)
	}
	kind, shown := "mask", "1"
	if list {
		kind, shown = "list", "0"
	}
	pid := t.Pid()
	if existingPid {
		pid = existing(t, args[len(args)-1], "failed to get pid %d's affinity")
		fmt.Fprintf(t.Out, "pid %d's current affinity %s: %s\n", pid, kind, shown)
		if len(args) == 1 {
			return 0
		}
	}
	first, ok := maskHasFirst(args[0])
	if list {
		kind = "CPU list"
		first, ok = listHasFirst(args[0])
	}
	if !ok {
		t.Fatal(1, "failed to parse %s: %s", map[bool]string{true: "CPU list", false: "CPU mask"}[list], args[0])
	}
	if !first {
		t.Fatal(1, "failed to set pid %d's affinity: Invalid argument", pid)
	}
	if existingPid {
		fmt.Fprintf(t.Out, "pid %d's new affinity %s: %s\n", pid, strings.TrimPrefix(kind, "CPU "), shown)
		return 0
	}
	return run(t, args[1:])
}

// maskHasFirst reads a hexadecimal mask, perhaps with commas between groups, and reports whether processor 0 is in it.
func maskHasFirst(s string) (first, ok bool) {
	if h, prefixed := strings.CutPrefix(s, "0x"); prefixed {
		s = h
	}
	if s == "" || strings.Trim(s, "0123456789abcdefABCDEF,") != "" || s[0] == ',' || s[len(s)-1] == ',' {
		return false, false
	}
	last, err := strconv.ParseUint(s[len(s)-1:], 16, 8)
	return last&1 != 0, err == nil
}

// listHasFirst reads a list such as 0,3-5,8-12:2.
func listHasFirst(s string) (first, ok bool) {
	for _, part := range strings.Split(s, ",") {
		span, stride, strided := strings.Cut(part, ":")
		from, to, ranged := strings.Cut(span, "-")
		if !ranged {
			to = from
		}
		a, err := strconv.ParseUint(from, 10, 32)
		b, err2 := strconv.ParseUint(to, 10, 32)
		step, err3 := uint64(1), error(nil)
		if strided {
			step, err3 = strconv.ParseUint(stride, 10, 32)
		}
		if err != nil || err2 != nil || err3 != nil || b < a || step == 0 || strided && !ranged || b >= maxProcessors {
			return false, false
		}
		first = first || a == 0
	}
	return first, true
}

// policies are the scheduling policies by chrt's letters: their names, and whether they have priorities 1 to 99.
var policies = map[rune]struct {
	name     string
	realtime bool
}{
	'o': {"SCHED_OTHER", false}, 'f': {"SCHED_FIFO", true}, 'r': {"SCHED_RR", true},
	'b': {"SCHED_BATCH", false}, 'i': {"SCHED_IDLE", false}, 'd': {"SCHED_DEADLINE", false},
}

// Chrt shows that all processes of a sandbox are scheduled alike. A command runs under the ordinary policies, which make no
// difference; the others need a right that nobody in a sandbox has.
func Chrt(t *tool.T) int {
	spec := tool.Spec{Usage: []string{"[options] <priority> <command> [<arg>...]", "[options] --pid <priority> <pid>", "[options] -p <pid>"}, About: "Show or change the real-time scheduling attributes of a process.  The processes of a sandbox are all SCHED_OTHER.", Package: utilLinux, Order: getopt.POSIX, Options: []getopt.Option{
		{Short: 'b', Long: "batch", Help: "set policy to SCHED_BATCH"}, {Short: 'd', Long: "deadline", Help: "set policy to SCHED_DEADLINE"}, {Short: 'f', Long: "fifo", Help: "set policy to SCHED_FIFO"}, {Short: 'i', Long: "idle", Help: "set policy to SCHED_IDLE"},
		{Short: 'o', Long: "other", Help: "set policy to SCHED_OTHER"}, {Short: 'r', Long: "rr", Help: "set policy to SCHED_RR (default)"}, {Short: 'R', Long: "reset-on-fork", Help: "set reset-on-fork flag"},
		{Short: 'T', Long: "sched-runtime", Arg: getopt.Required, Name: "ns", Help: "runtime parameter for DEADLINE"}, {Short: 'P', Long: "sched-period", Arg: getopt.Required, Name: "ns", Help: "period parameter for DEADLINE"}, {Short: 'D', Long: "sched-deadline", Arg: getopt.Required, Name: "ns", Help: "deadline parameter for DEADLINE"},
		{Short: 'a', Long: "all-tasks", Help: "operate on all the tasks (threads) for a given pid"}, {Short: 'm', Long: "max", Help: "show min and max valid priorities"}, {Short: 'p', Long: "pid", Help: "operate on existing given pid"}, {Short: 'v', Long: "verbose", Help: "display status information"}}}
	opts, args := t.Parse(&spec)
	policy, byPid, verbose := policies['r'], false, false
	for _, o := range opts {
		switch o.Key {
		case 'p':
			byPid = true
		case 'v':
			verbose = true
		case 'm':
			for _, k := range "ofrbid" {
				low, high := 0, 0
				if policies[k].realtime {
					low, high = 1, 99
				}
				fmt.Fprintf(t.Out, "%s min/max priority\t: %d/%d\n", policies[k].name, low, high)
			}
			return 0
		case 'T', 'P', 'D':
			if _, err := strconv.ParseUint(o.Arg, 10, 64); err != nil {
				t.Fatal(1, "invalid %s argument: '%s'", map[rune]string{'T': "runtime", 'P': "period", 'D': "deadline"}[o.Key], o.Arg)
			}
		default:
			if p, ok := policies[o.Key]; ok {
				policy = p
			}
		}
	}
	if byPid && len(args) == 1 {
		pid := existing(t, args[0], "failed to get pid %d's policy")
		fmt.Fprintf(t.Out, "pid %d's current scheduling policy: SCHED_OTHER\npid %[1]d's current scheduling priority: 0\n", pid)
		return 0
	}
	if len(args) < 2 || byPid && len(args) > 2 {
		badUsage(t)
	}
	pid := 0
	if byPid {
		pid = existing(t, args[1], "failed to get pid %d's policy")
	}
	prio, err := strconv.ParseUint(args[0], 10, 31)
	if err != nil {
		t.Fatal(1, "invalid priority argument: '%s'", args[0])
	}
	if policy.realtime && (prio < 1 || prio > 99) || !policy.realtime && prio != 0 {
		t.Fatal(1, "unsupported priority value for the policy: %d: see --max for valid range", prio)
	}
	if policy.realtime || policy.name == "SCHED_DEADLINE" {
		t.Fatal(1, "failed to set pid %d's policy: Operation not permitted", pid)
	}
	if byPid {
		return 0
	}
	if verbose {
		fmt.Fprintf(t.Out, "pid %d's new scheduling policy: %s\npid %[1]d's new scheduling priority: 0\n", t.Pid(), policy.name)
	}
	return run(t, args[1:])
}

// ioClasses are the classes of ionice by number.
var ioClasses = []string{"none", "realtime", "best-effort", "idle"}

// Ionice shows that the processes of a sandbox have no classes of input and output. Commands run as they would without it.
func Ionice(t *tool.T) int {
	spec := tool.Spec{Usage: []string{"[options] -p <pid>...", "[options] -P <pgid>...", "[options] -u <uid>...", "[options] <command>"}, About: "\nShow or change the I/O-scheduling class and priority of a process.  The processes of a sandbox have no class.", Package: utilLinux, Order: getopt.POSIX, Options: []getopt.Option{
		{Short: 'c', Long: "class", Arg: getopt.Required, Name: "class", Help: "name or number of scheduling class, 0: none, 1: realtime, 2: best-effort, 3: idle"}, {Short: 'n', Long: "classdata", Arg: getopt.Required, Name: "num", Help: "priority (0..7) in the specified scheduling class, only for the realtime and best-effort classes"},
		{Short: 'p', Long: "pid", Arg: getopt.Required, Name: "pid", Help: "act on these already running processes"}, {Short: 'P', Long: "pgid", Arg: getopt.Required, Name: "pgrp", Help: "act on already running processes in these groups"}, {Short: 't', Long: "ignore", Help: "ignore failures"},
		{Short: 'u', Long: "uid", Arg: getopt.Required, Name: "uid", Help: "act on already running processes owned by these users"}}}
	opts, args := t.Parse(&spec)
	class, set, data, ignore := -1, false, false, false
	what, which := rune(0), ""
	for _, o := range opts {
		switch o.Key {
		case 'c':
			set, class = true, ioClass(t, o.Arg)
		case 'n':
			if _, err := strconv.ParseInt(o.Arg, 10, 32); err != nil {
				t.Fatal(1, "invalid class data argument: '%s'", o.Arg)
			}
			set, data = true, true
		case 't':
			ignore = true
		default:
			if what != 0 {
				t.Fatal(1, "can handle only one of pid, pgid or uid at once")
			}
			what, which = o.Key, o.Arg
		}
	}
	if class == 0 && data && !ignore {
		t.Warn("ignoring given class data for none class")
	}
	if class == 3 && data && !ignore {
		t.Warn("ignoring given class data for idle class")
	}
	if class > 3 && !ignore {
		t.Warn("unknown prio class %d", class)
	}
	if what == 0 {
		switch {
		case len(args) > 0:
			return run(t, args)
		case set:
			badUsage(t)
		}
		t.Out.WriteString("none: prio 0\n")
		return 0
	}
	for _, id := range append([]string{which}, args...) {
		n, err := strconv.Atoi(id)
		if err != nil {
			t.Fatal(1, "invalid %s argument: '%s'", map[rune]string{'p': "PID", 'P': "PGID", 'u': "UID"}[what], id)
		}
		found := n == 0
		for _, p := range t.Sandbox().Processes() {
			found = found || what == 'p' && p.Pid() == n || what == 'P' && p.Pgid() == n || what == 'u' && int(p.Cred().UID) == n
		}
		switch {
		case !found && !ignore:
			t.Fatal(1, "%s failed: No such process", map[bool]string{true: "ioprio_set", false: "ioprio_get"}[set])
		case found && !set:
			t.Out.WriteString("none: prio 0\n")
		}
	}
	return 0
}

func ioClass(t *tool.T, s string) int {
	for i, name := range ioClasses {
		if strings.EqualFold(s, name) {
			return i
		}
	}
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		t.Fatal(1, "unknown scheduling class: '%s'", s)
	}
	return int(n)
}
