package system

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// utilLinux is the version that util-linux's commands report.
const utilLinux = "util-linux) 2.38.1"

// start runs a command as a child, and words what went wrong as the exec family's users do.
func start(t *tool.T, args []string) (*proc.Process, int) {
	t.Out.Flush()
	child, err := t.Spawn(proc.Spawn{Args: args})
	if err == nil {
		return child, 0
	}
	t.Warn("failed to execute %s: %s", args[0], tool.Strerror(err))
	if errors.Is(err, syscall.ENOENT) {
		return nil, 127
	}
	return nil, 126
}

// Setsid runs a command in a session of its own.
func Setsid(t *tool.T) int {
	spec := tool.Spec{Usage: []string{"[options] <program> [arguments ...]"}, About: "Run a program in a new session.", Package: utilLinux, Order: getopt.POSIX, Options: []getopt.Option{
		{Short: 'c', Long: "ctty", Help: "set the controlling terminal to the current one"}, {Short: 'f', Long: "fork", Help: "always fork"}, {Short: 'w', Long: "wait", Help: "wait program to exit, and use the same return"}}}
	opts, args := t.Parse(&spec)
	fork := t.Pgid() == t.Pid()
	wait, ctty := false, false
	for _, o := range opts {
		switch o.Key {
		case 'f':
			fork = true
		case 'w':
			wait = true
		case 'c':
			ctty = true
		}
	}
	if len(args) == 0 {
		t.Warn("no command specified")
		t.Try(1)
	}
	if !fork {
		t.SetSid()
		if ctty {
			t.SetControllingTTY(0)
		}
		child, status := start(t, args)
		if child == nil {
			return status
		}
		status, _ = t.WaitQuiet(child)
		return status
	}
	child, err := t.Fork()
	if err != nil {
		t.Fatal(1, "fork: %s", tool.Strerror(err))
	}
	child.SetSid()
	if ctty {
		child.SetControllingTTY(0)
	}
	prog, words, err := child.Program(args[0], args)
	if err != nil || prog == nil {
		if file, ferr := t.Find(args[0], t.Getenv("PATH")); ferr == nil {
			prog, words, err = child.Program(file, args)
		} else {
			err = ferr
		}
	}
	if err != nil {
		child.Abandon(127)
		t.Wait(child)
		t.Warn("failed to execute %s: %s", args[0], tool.Strerror(err))
		return 127
	}
	child.SetArgs(words)
	child.Start(prog)
	if wait {
		status, _ := t.WaitQuiet(child)
		return status
	}
	return 0
}

// Renice is accepted: processes of a sandbox have no priorities, so none changes.
func Renice(t *tool.T) int {
	args, ids, kind, prio := t.Args()[1:], []string(nil), "process ID", ""
	for len(args) > 0 {
		switch a := args[0]; {
		case a == "-h" || a == "--help":
			t.Out.WriteString("\nUsage:\n renice [-n] <priority> [-p|--pid] <pid>...\n renice [-n] <priority>  -g|--pgrp <pgid>...\n renice [-n] <priority>  -u|--user <user>...\n")
			return 0
		case a == "-V" || a == "--version":
			t.Out.WriteString("renice from util-linux 2.38.1\n")
			return 0
		case (a == "-n" || a == "--priority" || a == "--relative") && len(args) > 1:
			prio, args = args[1], args[1:]
		case a == "-p" || a == "--pid":
			kind = "process ID"
		case a == "-g" || a == "--pgrp":
			kind = "process group ID"
		case a == "-u" || a == "--user":
			kind = "user ID"
		case prio == "":
			prio = a
		default:
			ids = append(ids, a)
		}
		args = args[1:]
	}
	if prio == "" || len(ids) == 0 {
		t.Warn("not enough arguments")
		t.Try(1)
	}
	n, err := strconv.Atoi(prio)
	if err != nil {
		t.Warn("invalid priority '%s'", prio)
		t.Try(1)
	}
	status := 0
	for _, id := range ids {
		num, err := strconv.Atoi(id)
		if uid, ok := t.Accounts().LookupUID(id); err != nil && kind == "user ID" && ok {
			num, err = int(uid), nil
		}
		if err != nil {
			t.Warn("bad %s value: %s", kind, id)
			status = 1
			continue
		}
		if kind == "process ID" && t.Sandbox().Lookup(num) == nil {
			t.Warn("failed to get priority for %d (%s): No such process", num, kind)
			status = 1
			continue
		}
		fmt.Fprintf(t.Out, "%d (%s) old priority 0, new priority %d\n", num, kind, max(min(n, 19), -20))
	}
	return status
}

const (
	keyVerboseLock = tool.KeyOwn + 80
)

// Flock runs a command while it holds a lock, or takes one for whoever called it.
//
// Locks are advisory and known to flock alone: a file in /tmp, named after the device and inode of what is locked, says
// which process holds it by which descriptor. A holder that has ended, or has closed that descriptor, holds nothing.
func Flock(t *tool.T) int {
	spec := tool.Spec{Usage: []string{"[options] <file>|<directory> <command> [<argument>...]", "[options] <file>|<directory> -c <command>", "[options] <file descriptor number>"},
		About: "Manage file locks from shell scripts.", Package: utilLinux, Fail: 64, Order: getopt.POSIX, Options: []getopt.Option{
			{Short: 's', Long: "shared", Help: "get a shared lock"}, {Short: 'x', Long: "exclusive", Help: "get an exclusive lock (default)"}, {Short: 'e', Key: 'x'}, {Short: 'u', Long: "unlock", Help: "remove a lock"},
			{Short: 'n', Long: "nonblock", Help: "fail rather than wait"}, {Long: "nb", Key: 'n'}, {Short: 'w', Long: "timeout", Arg: getopt.Required, Name: "secs", Help: "wait for a limited amount of time"}, {Long: "wait", Key: 'w', Arg: getopt.Required},
			{Short: 'E', Long: "conflict-exit-code", Arg: getopt.Required, Name: "number", Help: "exit code after conflict or timeout"}, {Short: 'o', Long: "close", Help: "close file descriptor before running command"},
			{Short: 'F', Long: "no-fork", Help: "execute command without forking"}, {Long: "verbose", Key: keyVerboseLock, Help: "increase verbosity"}}}
	opts, args := t.Parse(&spec)
	l := flocker{t: t, conflict: 1, limit: -1}
	for _, o := range opts {
		switch o.Key {
		case 's':
			l.shared = true
		case 'u':
			l.unlock = true
		case 'n':
			l.limit = 0
		case 'w':
			s, err := strconv.ParseFloat(o.Arg, 64)
			if err != nil || s < 0 || s > 1e9 {
				t.Fatal(64, "invalid timeout value: '%s'", o.Arg)
			}
			l.limit = time.Duration(s * float64(time.Second))
		case 'E':
			n, err := strconv.Atoi(o.Arg)
			if err != nil || n < 0 || n > 255 {
				t.Fatal(64, "exit code out of range (expected 0 to 255)")
			}
			l.conflict = n
		case keyVerboseLock:
			l.verbose = true
		}
	}
	if len(args) == 0 {
		t.Warn("not enough arguments")
		t.Try(64)
	}
	if len(args) == 1 {
		return l.descriptor(args[0])
	}
	command := args[1:]
	if command[0] == "-c" || command[0] == "--command" {
		if len(command) != 2 {
			t.Fatal(64, "-c requires exactly one command argument")
		}
		shell := t.Getenv("SHELL")
		if shell == "" {
			shell = "/bin/sh"
		}
		command = []string{shell, "-c", command[1]}
	}
	return l.file(args[0], command)
}

// flocker is a running flock.
type flocker struct {
	t                       *tool.T
	shared, unlock, verbose bool
	limit                   time.Duration // -1: for ever
	conflict                int
}

// descriptor locks a descriptor that the caller has open.
func (l *flocker) descriptor(arg string) int {
	fd, err := strconv.Atoi(arg)
	if err != nil || fd < 0 {
		l.t.Fatal(64, "bad file descriptor: '%s'", arg)
	}
	f, err := l.t.File(fd)
	if err != nil {
		if parent := l.t.Parent(); parent != nil { // commands inherit 0, 1 and 2; the caller has the others
			f, err = parent.File(fd)
		}
	}
	if err != nil {
		l.t.Fatal(65, "%d: %s", fd, tool.Strerror(syscall.EBADF))
	}
	at, err := f.Attr()
	if err != nil {
		l.t.Fatal(65, "%d: %s", fd, tool.Strerror(err))
	}
	return l.take(at, l.t.Ppid(), fd)
}

func (l *flocker) file(name string, command []string) int {
	t := l.t
	f, err := t.Process.Open(name, os.O_RDONLY|os.O_CREATE, 0o666)
	if errors.Is(err, syscall.EISDIR) {
		f, err = t.Process.Open(name, os.O_RDONLY, 0)
	}
	if err != nil {
		t.Fatal(66, "cannot open lock file %s: %s", name, tool.Strerror(err))
	}
	at, err := f.Attr()
	if err != nil {
		t.Fatal(65, "%s: %s", name, tool.Strerror(err))
	}
	begun := time.Now()
	if status := l.take(at, t.Pid(), -1); status != 0 {
		return status
	}
	defer l.change(at, t.Pid(), -1, 'u')
	if l.verbose {
		fmt.Fprintf(t.Out, "flock: getting lock took %f seconds\nflock: executing %s\n", time.Since(begun).Seconds(), command[0])
	}
	child, status := start(t, command)
	if child == nil {
		return 69
	}
	status, _ = t.WaitQuiet(child)
	return status
}

// take waits for the lock.
func (l *flocker) take(at vfs.Attr, pid, fd int) int {
	kind := byte('x')
	if l.unlock {
		kind = 'u'
	} else if l.shared {
		kind = 's'
	}
	deadline := time.Now().Add(max(l.limit, 0))
	for pause := time.Millisecond; !l.change(at, pid, fd, kind); pause = min(2*pause, 50*time.Millisecond) {
		if l.limit >= 0 && !time.Now().Add(pause).Before(deadline) {
			if l.verbose {
				l.t.Warn("failed to get lock")
			}
			return l.conflict
		}
		if l.t.Sleep(pause) != nil {
			l.t.Check()
			return 1
		}
	}
	return 0
}

// maxHolders bounds the file that says who holds a lock.
const maxHolders = 1 << 20

// change takes the lock for a process, or gives it up; it reports whether it could. Only one changes the file at a time:
// whoever made the directory beside it, unless that is older than anyone needs.
func (l *flocker) change(at vfs.Attr, pid, fd int, kind byte) bool {
	t := l.t
	name := fmt.Sprintf("/tmp/.flock-%d-%d", at.Dev, at.Ino)
	guard := name + ".busy"
	for t.Mkdir(guard, 0o777) != nil {
		if a, err := t.Lstat(guard); err == nil && t.Now().Sub(a.Mtime) > 5*time.Second {
			t.Rmdir(guard)
		}
		if t.Sleep(time.Millisecond) != nil {
			return kind == 'u'
		}
	}
	defer t.Rmdir(guard)
	text, _ := t.ReadFile(name, maxHolders)
	var kept []string
	free := true
	for _, line := range strings.Fields(string(text)) {
		var k byte
		var p, n int
		if c, err := fmt.Sscanf(line, "%c:%d:%d", &k, &p, &n); err != nil || c != 3 || p == pid && n == fd || !l.holds(p, n, at) {
			continue
		}
		kept = append(kept, line)
		free = free && k == 's' && kind == 's'
	}
	if kind != 'u' && (free || len(kept) == 0) {
		kept, free = append(kept, fmt.Sprintf("%c:%d:%d", kind, pid, fd)), true
	} else if kind != 'u' {
		free = false
	}
	if len(kept) == 0 {
		t.Unlink(name)
	} else if f, err := t.Create(name); err == nil {
		io.WriteString(f, strings.Join(kept, "\n"))
		f.Close()
	}
	return free || kind == 'u'
}

// holds reports whether a process still has what it locked.
func (l *flocker) holds(pid, fd int, at vfs.Attr) bool {
	p := l.t.Sandbox().Lookup(pid)
	if p == nil {
		return false
	}
	select {
	case <-p.Done():
		return false
	default:
	}
	if fd < 0 {
		return true
	}
	f, err := p.File(fd)
	if err != nil {
		return false
	}
	a, err := f.Attr()
	return err == nil && a.Dev == at.Dev && a.Ino == at.Ino
}

// Time runs a command and tells how long it took; a shell has its own, which times pipelines.
func Time(t *tool.T) int {
	spec := tool.Spec{Usage: []string{"[-apvV] [-f format] [-o file] [--append] [--verbose] [--portability] [--format=format] [--output=file] command [arg...]"}, Package: "GNU time) UNKNOWN", Order: getopt.POSIX, Fail: 125, Options: []getopt.Option{
		{Short: 'p', Long: "portability", Help: "print POSIX standard 1003.2 conformant string"}, {Short: 'f', Long: "format", Arg: getopt.Required, Name: "FORMAT", Help: "use the specified FORMAT instead of the default"},
		{Short: 'o', Long: "output", Arg: getopt.Required, Name: "FILE", Help: "write to FILE instead of STDERR"}, {Short: 'a', Long: "append", Help: "with -o FILE, append instead of overwriting"},
		{Short: 'q', Long: "quiet", Help: "do not print information about abnormal program termination"}, {Short: 'v', Long: "verbose", Help: "print all resource usage information"}, {Short: 'V', Long: "version"}}}
	opts, args := t.Parse(&spec)
	format, output, add, quiet := "%Uuser %Ssystem %Eelapsed %PCPU (%Xavgtext+%Davgdata %Mmaxresident)k\n%Iinputs+%Ooutputs (%Fmajor+%Rminor)pagefaults %Wswaps", "", false, false
	if f := t.Getenv("TIME"); f != "" {
		format = f
	}
	for _, o := range opts {
		switch o.Key {
		case 'p':
			format = "real %e\nuser %U\nsys %S"
		case 'f':
			format = o.Arg
		case 'o':
			output = o.Arg
		case 'a':
			add = true
		case 'q':
			quiet = true
		case 'v':
			format = "\tCommand being timed: \"%C\"\n\tUser time (seconds): %U\n\tSystem time (seconds): %S\n\tPercent of CPU this job got: %P\n\tElapsed (wall clock) time (h:mm:ss or m:ss): %E\n\tMaximum resident set size (kbytes): %M\n\tPage size (bytes): %Z\n\tExit status: %x"
		case 'V':
			t.Version(&spec)
			return 0
		}
	}
	if len(args) == 0 {
		t.Misused(&spec)
	}
	begun := t.Now()
	t.Out.Flush()
	child, err := t.Spawn(proc.Spawn{Args: args})
	status := 0
	if err != nil {
		t.Warn("cannot run %s: %s", args[0], tool.Strerror(err))
		if status = 126; errors.Is(err, syscall.ENOENT) {
			status = 127
		}
	} else {
		status, _ = t.WaitQuiet(child)
	}
	var w io.Writer = t.Stderr()
	if output != "" {
		open := t.Create
		if add {
			open = t.Append
		}
		f, err := open(output)
		if err != nil {
			t.Fatal(125, "cannot open %s: %s", output, tool.Strerror(err))
		}
		defer f.Close()
		w = f
	}
	var cpu time.Duration
	if child != nil {
		cpu = child.CPU()
	}
	if status != 0 && !quiet && !strings.HasPrefix(format, "real") {
		fmt.Fprintf(w, "Command exited with non-zero status %d\n", status)
	}
	fmt.Fprintln(w, timed(format, t.Now().Sub(begun), cpu, status, args))
	return status
}

// timed fills in time's format.
func timed(format string, real, cpu time.Duration, status int, args []string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		c := format[i]
		if c == '\\' && i+1 < len(format) {
			i++
			switch format[i] {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			default:
				b.WriteByte(format[i])
			}
			continue
		}
		if c != '%' || i+1 >= len(format) {
			b.WriteByte(c)
			continue
		}
		i++
		switch format[i] {
		case '%':
			b.WriteByte('%')
		case 'e':
			fmt.Fprintf(&b, "%.2f", real.Seconds())
		case 'E':
			h := int64(real.Hours())
			if h > 0 {
				fmt.Fprintf(&b, "%d:%02d:%02d", h, int64(real.Minutes())%60, int64(real.Seconds())%60)
			} else {
				fmt.Fprintf(&b, "%d:%05.2f", int64(real.Minutes()), real.Seconds()-60*float64(int64(real.Minutes())))
			}
		case 'U':
			fmt.Fprintf(&b, "%.2f", cpu.Seconds())
		case 'S':
			b.WriteString("0.00")
		case 'P':
			if real < 10*time.Millisecond {
				b.WriteString("?%")
			} else {
				fmt.Fprintf(&b, "%d%%", int(cpu*100/real))
			}
		case 'C':
			b.WriteString(strings.Join(args, " "))
		case 'x':
			b.WriteString(strconv.Itoa(status))
		case 'Z':
			b.WriteString("4096")
		case 'X', 'D', 'M', 'I', 'O', 'F', 'R', 'W', 'K', 'k', 'p', 'c', 'w', 'r', 's', 't':
			b.WriteByte('0')
		default:
			b.WriteString("?" + format[i:i+1])
		}
	}
	return b.String()
}
