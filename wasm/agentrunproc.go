package wasm

import (
	"encoding/binary"
	"strings"
	"sync"
	"syscall"
	"time"

	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

func processFunctions() []hostFunc {
	return []hostFunc{
		{"dup", "iiii", "i", func(in *Instance, s []uint64) error {
			if fd(s[1]) < 0 {
				return syscall.EINVAL
			}
			n, err := in.p.Dup(fd(s[0]), fd(s[1]), uint32(s[2]) != 0)
			if err != nil {
				return err
			}
			in.host.closed(int32(n))
			return in.put32(s[3], uint32(n))
		}, nil},
		{"dup2", "iii", "i", func(in *Instance, s []uint64) error {
			from, to := fd(s[0]), fd(s[1])
			if err := in.p.Dup2(from, to); err != nil {
				return err
			}
			if from != to {
				in.host.closed(int32(to))
			}
			in.p.SetCloseOnExec(to, uint32(s[2]) != 0)
			return nil
		}, nil},
		{"pipe", "ii", "i", agentrunPipe, nil},
		{"cloexec", "iii", "i", agentrunCloexec, nil},
		{"isatty", "ii", "i", func(in *Instance, s []uint64) error {
			if _, err := in.p.File(fd(s[0])); err != nil {
				return err
			}
			yes := uint32(0)
			if in.p.IsTerminal(fd(s[0])) {
				yes = 1
			}
			return in.put32(s[1], yes)
		}, nil},
		{"winsize", "ii", "i", agentrunWinsize, nil},
		{"tcgetattr", "ii", "i", agentrunTcgetattr, nil},
		{"tcsetattr", "iii", "i", agentrunTcsetattr, nil},
		{"ids", "i", "i", func(in *Instance, s []uint64) error {
			c := in.p.Cred()
			for i, v := range [8]uint32{uint32(in.p.Pid()), uint32(in.p.Ppid()), uint32(in.p.Pgid()), uint32(in.p.Sid()), c.UID, c.UID, c.GID, c.GID} {
				if err := in.put32(uint64(uint32(s[0])+4*uint32(i)), v); err != nil {
					return err
				}
			}
			return nil
		}, nil},
		{"hostname", "iii", "i", func(in *Instance, s []uint64) error {
			return in.fill(in.p.Sandbox().Hostname(), s[0], s[1], s[2])
		}, nil},
		{"spawn", "ii", "i", agentrunSpawn, nil},
		{"exec", "i", "i", agentrunExec, nil},
		{"wait", "iiii", "i", agentrunWait, nil},
		{"kill", "ii", "i", func(in *Instance, s []uint64) error {
			err := in.p.Signal(fd(s[0]), fd(s[1]))
			in.checkEnd()
			in.checkSignals()
			return err
		}, nil},
		{"getpgid", "ii", "i", func(in *Instance, s []uint64) error {
			p, err := in.process(fd(s[0]))
			if err != nil {
				return err
			}
			return in.put32(s[1], uint32(p.Pgid()))
		}, nil},
		{"getsid", "ii", "i", func(in *Instance, s []uint64) error {
			p, err := in.process(fd(s[0]))
			if err != nil {
				return err
			}
			return in.put32(s[1], uint32(p.Sid()))
		}, nil},
		{"setpgid", "ii", "i", func(in *Instance, s []uint64) error {
			p, err := in.process(fd(s[0]))
			switch {
			case err != nil:
				return err
			case fd(s[1]) < 0:
				return syscall.EINVAL
			case p != in.p && p.Ppid() != in.p.Pid():
				return syscall.ESRCH
			}
			p.SetPgid(fd(s[1]))
			return nil
		}, nil},
		{"setsid", "", "i", func(in *Instance, s []uint64) error {
			if in.p.Pgid() == in.p.Pid() {
				return syscall.EPERM
			}
			in.p.SetSid()
			return nil
		}, nil},
		{"lock", "iiiIIi", "i", agentrunLock, nil},
		{"lockquery", "iiIIi", "i", agentrunLockQuery, nil},
		{"times", "i", "i", func(in *Instance, s []uint64) error {
			in.account()
			in.resume()
			for i, v := range [4]time.Duration{in.p.CPU(), 0, in.host.childCPU, 0} {
				if err := in.put64(uint64(uint32(s[0])+8*uint32(i)), uint64(v)); err != nil {
					return err
				}
			}
			return nil
		}, nil},
		{"rlimit", "iii", "i", agentrunRlimit, nil},
	}
}

// process finds a process; 0 is the guest's own.
func (in *Instance) process(pid int) (*proc.Process, error) {
	if pid == 0 {
		return in.p, nil
	}
	if p := in.p.Sandbox().Lookup(pid); p != nil {
		return p, nil
	}
	return nil, syscall.ESRCH
}

func agentrunPipe(in *Instance, s []uint64) error {
	flags := fd(s[1])
	if flags&^(oCloexec|syscall.O_NONBLOCK) != 0 {
		return syscall.EINVAL
	}
	if _, err := in.bytes(s[0], 8); err != nil {
		return err
	}
	r, w, err := in.p.Pipe()
	if err != nil {
		return err
	}
	for i, f := range []vfs.File{r, w} {
		n := in.p.Fd(f)
		in.host.closed(int32(n))
		in.p.SetCloseOnExec(n, flags&oCloexec != 0)
		if flags&syscall.O_NONBLOCK != 0 {
			fdSetFlags(in, []uint64{uint64(n), flagNonblock})
		}
		in.put32(s[0]+4*uint64(i), uint32(n))
	}
	return nil
}

// spawnArgs is a struct agentrun_spawn as it was read.
type spawnArgs struct {
	file, dir string
	args, env []string // env nil: as it is
	fds       [][2]int
	flags     uint32
	pgid      int
	umask     int32
}

const (
	spawnPath   = 1
	spawnSetsid = 2
	spawnPgroup = 4
	maxArgs     = 2 << 20 // bytes of arguments, and of the environment
	maxFds      = 4096
)

func (in *Instance) spawnArgs(ptr uint64) (a spawnArgs, err error) {
	b, err := in.bytes(ptr, 56)
	if err != nil {
		return a, err
	}
	u := func(i int) uint64 { return uint64(binary.LittleEndian.Uint32(b[4*i:])) }
	list := func(i int) []string {
		if u(i+1) > maxArgs && err == nil {
			err = syscall.E2BIG
		}
		var text []byte
		if err == nil {
			text, err = in.bytes(u(i), u(i+1))
		}
		if len(text) == 0 {
			return []string{}
		}
		return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	}
	if a.file, err = in.text(u(0), u(1)); err != nil {
		return a, err
	}
	a.args = list(2)
	if u(4) != 0 {
		a.env = list(4)
	}
	if u(6) != 0 && err == nil {
		a.dir, err = in.text(u(6), u(7))
	}
	if err != nil {
		return a, err
	}
	if u(9) > maxFds {
		return a, syscall.EINVAL
	}
	pairs, err := in.bytes(u(8), 8*u(9))
	for ; len(pairs) >= 8; pairs = pairs[8:] {
		a.fds = append(a.fds, [2]int{int(int32(binary.LittleEndian.Uint32(pairs))), int(int32(binary.LittleEndian.Uint32(pairs[4:])))})
	}
	a.flags, a.pgid, a.umask = uint32(u(10)), int(int32(u(11))), int32(u(12))
	if strings.Contains(a.file, "\x00") || strings.Contains(a.dir, "\x00") || a.pgid < 0 {
		return a, syscall.EINVAL
	}
	return a, err
}

func agentrunSpawn(in *Instance, s []uint64) error {
	a, err := in.spawnArgs(s[0])
	if err != nil {
		return err
	}
	if _, err := in.bytes(s[1], 4); err != nil {
		return err
	}
	c, err := in.p.Fork()
	if err != nil {
		return err
	}
	if err := in.waits(func() error { return prepare(c, a) }); err != nil {
		c.Abandon(127)
		in.p.WaitQuiet(c)
		return err
	}
	return in.put32(s[1], uint32(c.Pid()))
}

// prepare makes a child what it shall be, and starts it.
func prepare(c *proc.Process, a spawnArgs) error {
	if err := passFds(c, a.fds); err != nil {
		return err
	}
	if a.env != nil {
		c.SetEnviron(a.env)
	}
	if a.umask >= 0 {
		c.Umask(vfs.Mode(a.umask))
	}
	switch {
	case a.flags&spawnSetsid != 0:
		c.SetSid()
	case a.flags&spawnPgroup != 0:
		c.SetPgid(a.pgid)
	}
	if a.dir != "" {
		if err := c.Chdir(a.dir); err != nil {
			return err
		}
	}
	file := a.file
	if a.flags&spawnPath != 0 {
		var err error
		if file, err = c.Find(file, c.Getenv("PATH")); err != nil {
			return err
		}
	}
	return c.StartFile(file, a.args)
}

// passFds leaves a child those descriptors that are named, under their new numbers.
func passFds(c *proc.Process, fds [][2]int) error {
	top := 0
	for _, f := range fds {
		if f[1] < 0 {
			return syscall.EBADF
		}
		top = max(top, f[0]+1, f[1]+1)
	}
	for i, f := range fds { // first out of each other's way
		n, err := c.Dup(f[0], top, true)
		if err != nil {
			return err
		}
		fds[i][0] = n
	}
	for _, f := range fds {
		if err := c.Dup2(f[0], f[1]); err != nil {
			return err
		}
	}
	keep := make(map[int]bool, len(fds))
	for _, f := range fds {
		keep[f[1]] = true
	}
	for _, n := range c.Fds() {
		if !keep[n] {
			c.CloseFd(n)
		}
	}
	return nil
}

// ExecError ends a call whose guest wants its process to go on as another program: whoever runs it closes the instance and returns what Run returns.
type ExecError struct {
	Program proc.Program
	Args    []string
}

func (e *ExecError) Error() string { return "executes " + e.Args[0] }

// Run replaces p's program.
func (e *ExecError) Run(p *proc.Process) int { return p.Become(e.Program, e.Args) }

func agentrunExec(in *Instance, s []uint64) error {
	a, err := in.spawnArgs(s[0])
	if err != nil {
		return err
	}
	search := in.p.Getenv("PATH")
	for _, v := range a.env {
		if x, ok := strings.CutPrefix(v, "PATH="); ok {
			search = x
		}
	}
	if a.flags&spawnPath != 0 {
		if a.file, err = in.p.Find(a.file, search); err != nil {
			return err
		}
	}
	if len(a.args) == 0 {
		return syscall.EINVAL
	}
	prog, args, err := in.p.Program(a.file, a.args)
	if err != nil {
		return err
	}
	if a.env != nil {
		in.p.SetEnviron(a.env)
	}
	in.stop(&ExecError{prog, args})
	return nil
}

const (
	waitNohang = 1
)

func agentrunWait(in *Instance, s []uint64) error {
	pid, options := fd(s[0]), uint32(s[1])
	if _, err := in.bytes(s[2], 4); err != nil {
		return err
	}
	if _, err := in.bytes(s[3], 4); err != nil {
		return err
	}
	of := in.children(pid)
	if len(of) == 0 {
		return syscall.ECHILD
	}
	var child *proc.Process
	for _, c := range of {
		select {
		case <-c.Done():
			child = c
		default:
			continue
		}
		break
	}
	if child == nil && options&waitNohang != 0 {
		return in.put32(s[2], 0)
	}
	var status int
	err := in.waits(func() (err error) {
		if child == nil {
			if child, err = in.p.WaitAny(of); err != nil {
				return err
			}
		}
		status, err = in.p.Wait(child)
		return err
	})
	if err != nil {
		return err
	}
	in.host.childCPU += child.CPU()
	if sig := child.Signaled(); sig != 0 {
		status = sig
	} else {
		status <<= 8
	}
	in.put32(s[3], uint32(status))
	return in.put32(s[2], uint32(child.Pid()))
}

// children returns those that waitpid's argument means.
func (in *Instance) children(pid int) (of []*proc.Process) {
	me := in.p.Pid()
	for _, c := range in.p.Sandbox().Processes() {
		switch {
		case c.Ppid() != me || c.Pid() == me:
		case pid > 0 && c.Pid() != pid, pid == 0 && c.Pgid() != in.p.Pgid(), pid < -1 && c.Pgid() != -pid:
		default:
			of = append(of, c)
		}
	}
	return of
}

// itimer sends ALRM.
type itimer struct {
	mu       sync.Mutex
	t        *time.Timer
	next     time.Time
	interval time.Duration
}

func (t *itimer) stop() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.t.Stop()
	t.next, t.interval = time.Time{}, 0
}

// left returns how long it is until the timer rings, 0 if it won't, and its interval.
func (t *itimer) left() (left, interval time.Duration) {
	if t == nil {
		return 0, 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next.IsZero() {
		return 0, 0
	}
	return max(time.Until(t.next), 1), t.interval
}

const minInterval = time.Millisecond

func agentrunItimer(in *Instance, s []uint64) error {
	value, interval := int64(s[0]), int64(s[1])
	if value < -1 || interval < 0 {
		return syscall.EINVAL
	}
	left, _ := in.host.timer.left()
	if err := in.put64(s[2], uint64(left)); err != nil || value == -1 {
		return err
	}
	in.host.timer.stop()
	in.host.timer = nil
	if value == 0 {
		return nil
	}
	if interval > 0 {
		interval = max(interval, int64(minInterval))
	}
	in.host.timer = newItimer(in.p, time.Duration(value), time.Duration(interval))
	return nil
}

// newItimer sends ALRM to p after value, and every interval from then on unless that is 0.
func newItimer(p *proc.Process, value, interval time.Duration) *itimer {
	t := &itimer{next: time.Now().Add(value), interval: interval}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.t = time.AfterFunc(value, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.next.IsZero() {
			return
		}
		p.Post(proc.SIGALRM)
		if t.next = (time.Time{}); t.interval > 0 && p.Context().Err() == nil {
			t.next = time.Now().Add(t.interval)
			t.t.Reset(t.interval)
		}
	})
	return t
}
