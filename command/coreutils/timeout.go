package coreutils

import (
	"errors"
	"strconv"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
)

const (
	keyForeground = tool.KeyOwn + iota
	keyPreserveStatus
)

var timeoutSpec = tool.Spec{
	Usage: []string{"[OPTION] DURATION COMMAND [ARG]...", "[OPTION]"},
	About: "Start COMMAND, and kill it if still running after DURATION.",
	Options: []getopt.Option{
		{Long: "preserve-status", Key: keyPreserveStatus, Help: "exit with the same status as COMMAND, even when the command times out"},
		{Long: "foreground", Key: keyForeground, Help: "do not run COMMAND in a process group of its own; children of COMMAND will not be timed out"},
		{Short: 'k', Long: "kill-after", Arg: getopt.Required, Name: "DURATION", Help: "also send a KILL signal if COMMAND is still running this long after the initial signal was sent"},
		{Short: 's', Long: "signal", Arg: getopt.Required, Name: "SIGNAL", Help: "specify the signal to be sent on timeout"},
		{Short: 'v', Long: "verbose", Help: "diagnose to stderr any signal sent upon timeout"},
	},
	Notes:   "DURATION is a floating point number with an optional suffix: 's' for seconds (the default), 'm', 'h' or 'd'.\nA duration of 0 disables the associated timeout.",
	Package: tool.Coreutils, Fail: 125, Order: getopt.POSIX,
}

// signalNumber reads a signal's name or number, with or without SIG, in any case.
func signalNumber(s string) (int, bool) {
	if n, err := strconv.Atoi(s); err == nil {
		return n, n >= 0 && n <= proc.MaxSignal
	}
	s = strings.TrimPrefix(strings.ToUpper(s), "SIG")
	return proc.SignalNumber(s)
}

// timeouter waits for a command, and ends it.
type timeouter struct {
	t                             *tool.T
	child                         *proc.Process
	name                          string
	sig                           int
	foreground, preserve, verbose bool
	limit, killAfter              time.Duration
	timedOut                      bool
}

// Timeout runs a command for a limited time.
func Timeout(t *tool.T) int {
	t.FailStatus(125)
	x := timeouter{t: t, sig: proc.SIGTERM}
	opts, args := t.Parse(&timeoutSpec)
	for _, o := range opts {
		switch o.Key {
		case keyPreserveStatus:
			x.preserve = true
		case keyForeground:
			x.foreground = true
		case 'k':
			x.killAfter = x.duration(o.Arg)
		case 's':
			n, ok := signalNumber(o.Arg)
			if !ok {
				t.UsageError(125, "%s: invalid signal", tool.Quote(o.Arg))
			}
			x.sig = n
		case 'v':
			x.verbose = true
		}
	}
	if len(args) < 2 {
		t.Try(125)
	}
	x.limit = x.duration(args[0])
	x.name = args[1]
	if !x.foreground {
		t.SetPgid(0) // what the command starts is ended with it
	}
	for _, s := range []int{proc.SIGTERM, proc.SIGINT, proc.SIGHUP, proc.SIGQUIT, proc.SIGALRM, x.sig} {
		if s > 0 {
			t.SetSignal(s, proc.Handle)
		}
	}
	t.Out.Flush()
	child, err := t.Spawn(proc.Spawn{Args: args[1:]})
	if err != nil {
		t.Warn("failed to run command %s: %s", tool.Quote(args[1]), tool.Strerror(err))
		if errors.Is(err, syscall.ENOENT) {
			return 127
		}
		return 126
	}
	x.child = child
	return x.wait()
}

func (x *timeouter) duration(s string) time.Duration {
	d, ok := parseInterval(s)
	if !ok {
		x.t.UsageError(125, "invalid time interval %s", tool.Quote(s))
	}
	return d
}

func (x *timeouter) wait() int {
	t := x.t
	var timer *time.Timer
	var fire <-chan time.Time
	set := func(d time.Duration) {
		if d > 0 {
			timer = time.NewTimer(d)
			fire = timer.C
		}
	}
	set(x.limit)
	for running := true; running; {
		select {
		case <-x.child.Done():
			running = false
		case <-fire:
			fire, x.timedOut = nil, true
			x.send(x.sig)
			if d := x.killAfter; d > 0 {
				x.killAfter = 0
				set(d)
				x.sig = proc.SIGKILL
			}
		case <-t.Interrupt():
			t.Check()
			for _, s := range t.TakeSignals() {
				if s == proc.SIGALRM {
					x.timedOut, s = true, x.sig
				}
				x.send(s)
			}
		}
	}
	if timer != nil {
		timer.Stop()
	}
	t.TakeSignals()
	status, err := t.WaitQuiet(x.child)
	if err != nil {
		return 125
	}
	switch {
	case x.timedOut && x.child.Signaled() == proc.SIGKILL:
		return status
	case x.timedOut && !x.preserve:
		return 124
	}
	return status
}

// send sends a signal to the command and, unless it runs in the foreground, to all that it started.
func (x *timeouter) send(sig int) {
	if x.verbose && x.timedOut {
		x.t.Warn("sending signal %s to command %s", signalWord(sig), tool.Quote(x.name))
	}
	x.t.Signal(x.child.Pid(), sig)
	if x.foreground {
		return
	}
	if sig != proc.SIGKILL {
		x.t.SetSignal(sig, proc.Ignore)
	}
	for _, p := range x.t.Sandbox().Processes() { // not this process itself, which reports
		if p.Pgid() == x.t.Pgid() && p.Pid() != x.t.Pid() && p.Pid() != x.child.Pid() {
			x.t.Signal(p.Pid(), sig)
		}
	}
	if sig != proc.SIGKILL {
		x.t.Signal(x.child.Pid(), proc.SIGCONT)
	}
}

func signalWord(sig int) string {
	if name := proc.SignalName(sig); name != "" {
		return strings.TrimPrefix(name, "SIG")
	}
	return strconv.Itoa(sig)
}
