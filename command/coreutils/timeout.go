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

// Timeout runs a command for a limited time.
func Timeout(t *tool.T) int {
	t.FailStatus(125)
	x := &timing{Sig: proc.SIGTERM}
	opts, args := t.Parse(&timeoutSpec)
	for _, o := range opts {
		switch o.Key {
		case keyPreserveStatus:
			x.Preserve = true
		case keyForeground:
			x.Foreground = true
		case 'k':
			x.KillAfter = timeoutDuration(t, o.Arg)
		case 's':
			n, ok := signalNumber(o.Arg)
			if !ok {
				t.UsageError(125, "%s: invalid signal", tool.Quote(o.Arg))
			}
			x.Sig = n
		case 'v':
			x.Verbose = true
		}
	}
	if len(args) < 2 {
		t.Try(125)
	}
	limit := timeoutDuration(t, args[0])
	x.Name = args[1]
	if !x.Foreground {
		t.SetPgid(0) // what the command starts is ended with it
	}
	for _, s := range []int{proc.SIGTERM, proc.SIGINT, proc.SIGHUP, proc.SIGQUIT, proc.SIGALRM, x.Sig} {
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
	x.Child = child.Pid()
	if limit > 0 {
		x.Deadline = t.Sandbox().Now().Add(limit)
	}
	return t.RunAs(x)
}

func timeoutDuration(t *tool.T, s string) time.Duration {
	d, ok := parseInterval(s)
	if !ok {
		t.UsageError(125, "invalid time interval %s", tool.Quote(s))
	}
	return d
}

func (x *timing) run(t *tool.T) int {
	t.FailStatus(125)
	child := t.Child(x.Child)
	if child == nil {
		return 125
	}
	for status := 0; ; {
		err := t.Rest(func() (err error) {
			status, err = t.WaitUntil(child, x.Deadline)
			return err
		})
		switch {
		case err == nil && x.TimedOut && child.Signaled() == proc.SIGKILL:
			return status
		case err == nil && x.TimedOut && !x.Preserve:
			return 124
		case err == nil:
			return status
		case errors.Is(err, syscall.ETIMEDOUT):
			x.TimedOut, x.Deadline = true, time.Time{}
			x.send(t, child, x.Sig)
			if x.KillAfter > 0 {
				x.Deadline, x.KillAfter, x.Sig = t.Sandbox().Now().Add(x.KillAfter), 0, proc.SIGKILL
			}
		case errors.Is(err, syscall.EINTR):
			t.Check()
			for _, s := range t.TakeSignals() {
				if s == proc.SIGALRM {
					x.TimedOut, s = true, x.Sig
				}
				x.send(t, child, s)
			}
		default:
			return 125
		}
	}
}

// send sends a signal to the command and, unless it runs in the foreground, to all that it started.
func (x *timing) send(t *tool.T, child *proc.Process, sig int) {
	if x.Verbose && x.TimedOut {
		t.Warn("sending signal %s to command %s", signalWord(sig), tool.Quote(x.Name))
	}
	t.Signal(child.Pid(), sig)
	if x.Foreground {
		return
	}
	if sig != proc.SIGKILL {
		t.SetSignal(sig, proc.Ignore)
	}
	for _, p := range t.Sandbox().Processes() { // not this process itself, which reports
		if p.Pgid() == t.Pgid() && p.Pid() != t.Pid() && p.Pid() != child.Pid() {
			t.Signal(p.Pid(), sig)
		}
	}
	if sig != proc.SIGKILL {
		t.Signal(child.Pid(), proc.SIGCONT)
	}
}

func signalWord(sig int) string {
	if name := proc.SignalName(sig); name != "" {
		return strings.TrimPrefix(name, "SIG")
	}
	return strconv.Itoa(sig)
}
