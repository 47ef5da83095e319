package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
)

// Workload holds all that commands start.
type Workload interface {
	// Group is for one command and what it starts.
	Group() (Group, error)
	// Freeze returns when nothing of the workload runs, and Thaw lets it go on. A Freeze that fails is followed by Thaw.
	Freeze(ctx context.Context) error
	Thaw() error
	// Limit bounds how many processes and threads there can be at once; zero: no limit.
	Limit(processes int) error
	// Usage is of all that ran in it, Pids those that run.
	Usage() (Usage, error)
	Pids() ([]int, error)
}

// Usage is what a workload has used; zero is what isn't known.
type Usage struct {
	CPU                time.Duration
	Memory, MemoryPeak int64
}

// Group is a command with all that it starts.
type Group interface {
	Attr(sys *syscall.SysProcAttr) // before the start
	Started(pid int)               // after it
	Kill() error
	Empty() bool
	Close() error // what still runs in it stays in the workload
}

// Cgroup is a workload in a control group of the second version: nothing gets out of it, and all of it freezes at once.
type Cgroup struct {
	path string
	// The files that a fork needs are open: each file that is opened takes pages of it.
	freeze, events *os.File

	mu      sync.Mutex
	next    int
	retired map[string]struct{} // that weren't empty when they were closed
	limit   string              // that was set last
}

// NewCgroup makes the group at path, under a mounted cgroup2.
func NewCgroup(path string) (*Cgroup, error) {
	// What the parent doesn't hand down can't be counted or limited; without any of it the workload can still be held.
	for _, controller := range []string{"+memory", "+pids", "+cpu"} {
		_ = os.WriteFile(filepath.Join(filepath.Dir(path), "cgroup.subtree_control"), []byte(controller), 0)
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, errs.New(errs.Unavailable, "workload", path, err)
	}
	c := &Cgroup{path: path, retired: make(map[string]struct{})}
	var err error
	if c.freeze, err = os.OpenFile(filepath.Join(path, "cgroup.freeze"), os.O_WRONLY, 0); err == nil {
		c.events, err = os.Open(filepath.Join(path, "cgroup.events"))
	}
	if err != nil {
		return nil, errs.New(errs.Unsupported, "workload", path, errors.Join(err, c.Close()))
	}
	return c, nil
}

// Close closes the group's files; the group stays.
func (c *Cgroup) Close() error {
	err := c.freeze.Close()
	if c.events != nil {
		err = errors.Join(err, c.events.Close())
	}
	return err
}

// Group implements Workload.
func (c *Cgroup) Group() (Group, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for old := range c.retired {
		if os.Remove(old) == nil {
			delete(c.retired, old)
		}
	}
	c.next++
	g := &cgroupGroup{c: c, path: filepath.Join(c.path, "c"+strconv.Itoa(c.next)), fd: -1}
	if err := os.Mkdir(g.path, 0o755); err != nil {
		return nil, errs.New(errs.Limit, "workload", "", err)
	}
	var err error
	if g.fd, err = unix.Open(g.path, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return nil, errs.New(errs.Limit, "workload", "", err)
	}
	return g, nil
}

// yields is how often processes get the processor at once, until they stand still: with a timer that would take a millisecond at least.
const yields = 4

// Freeze implements Workload.
func (c *Cgroup) Freeze(ctx context.Context) error {
	if _, err := c.freeze.WriteAt([]byte("1"), 0); err != nil {
		return errs.New(errs.Other, "freeze", "", err)
	}
	for i, wait := 0, 100*time.Microsecond; ; wait = min(2*wait, 10*time.Millisecond) {
		if frozen, err := flagged(c.events, "frozen"); err != nil || frozen {
			return err
		}
		if i++; i <= yields {
			_, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
			continue
		}
		select {
		case <-ctx.Done():
			return errs.Msg(errs.Unavailable, "freeze", "", "processes don't stand still in time")
		case <-time.After(wait):
		}
	}
}

// Thaw implements Workload.
func (c *Cgroup) Thaw() error {
	if _, err := c.freeze.WriteAt([]byte("0"), 0); err != nil {
		return errs.New(errs.Other, "thaw", "", err)
	}
	return nil
}

// Limit implements Workload.
func (c *Cgroup) Limit(processes int) error {
	most := "max"
	if processes > 0 {
		most = strconv.Itoa(processes)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.limit == most {
		return nil
	}
	err := os.WriteFile(filepath.Join(c.path, "pids.max"), []byte(most), 0)
	if errors.Is(err, os.ErrNotExist) && processes <= 0 {
		return nil // a kernel that counts no processes bounds none
	}
	if err != nil {
		return errs.New(errs.Unsupported, "limit", "processes", err)
	}
	c.limit = most
	return nil
}

// flag reads a flag of cgroup.events.
func flag(path, name string) (bool, error) {
	f, err := os.Open(filepath.Join(path, "cgroup.events"))
	if err != nil {
		return false, errs.New(errs.Other, "workload", "", err)
	}
	defer f.Close()
	return flagged(f, name)
}

func flagged(events *os.File, name string) (bool, error) {
	var b [256]byte
	n, err := events.ReadAt(b[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, errs.New(errs.Other, "workload", "", err)
	}
	return strings.Contains("\n"+string(b[:n]), "\n"+name+" 1\n"), nil
}

// Usage implements Workload.
func (c *Cgroup) Usage() (Usage, error) {
	var u Usage
	b, err := os.ReadFile(filepath.Join(c.path, "cpu.stat"))
	if err != nil {
		return u, errs.New(errs.Other, "stats", "", err)
	}
	for line := range strings.Lines(string(b)) {
		if n, ok := strings.CutPrefix(line, "usage_usec "); ok {
			us, _ := strconv.ParseInt(strings.TrimSpace(n), 10, 64)
			u.CPU = time.Duration(us) * time.Microsecond
		}
	}
	u.Memory, u.MemoryPeak = c.number("memory.current"), c.number("memory.peak")
	return u, nil
}

func (c *Cgroup) number(name string) int64 {
	b, err := os.ReadFile(filepath.Join(c.path, name))
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n
}

// Pids implements Workload.
func (c *Cgroup) Pids() (pids []int, err error) {
	groups, err := filepath.Glob(filepath.Join(c.path, "c*", "cgroup.procs"))
	for _, g := range groups {
		b, err := os.ReadFile(g)
		if err != nil {
			continue // it has just ended
		}
		for line := range strings.FieldsSeq(string(b)) {
			if pid, err := strconv.Atoi(line); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
	}
	return pids, err
}

type cgroupGroup struct {
	c    *Cgroup
	path string
	fd   int
}

func (g *cgroupGroup) Attr(sys *syscall.SysProcAttr) { sys.UseCgroupFD, sys.CgroupFD = true, g.fd }

func (g *cgroupGroup) Started(int) { g.shut() }

func (g *cgroupGroup) shut() {
	if g.fd >= 0 {
		unix.Close(g.fd)
		g.fd = -1
	}
}

func (g *cgroupGroup) Kill() error {
	return os.WriteFile(filepath.Join(g.path, "cgroup.kill"), []byte("1"), 0)
}

func (g *cgroupGroup) Empty() bool {
	populated, err := flag(g.path, "populated")
	return err != nil || !populated
}

func (g *cgroupGroup) Close() error {
	g.shut()
	if os.Remove(g.path) != nil {
		g.c.mu.Lock()
		defer g.c.mu.Unlock()
		g.c.retired[g.path] = struct{}{}
	}
	return nil
}

// Sessions is a workload in sessions of the kernel's, for machines without a control group that the agent may use: a process that begins a
// session of its own gets out of it.
type Sessions struct {
	mu      sync.Mutex
	groups  map[int]struct{} // by the session's number
	stopped []int            // whom Freeze has stopped
}

// NewSessions returns one.
func NewSessions() *Sessions { return &Sessions{groups: make(map[int]struct{})} }

// Group implements Workload.
func (s *Sessions) Group() (Group, error) { return &session{s: s}, nil }

// Freeze implements Workload. Who is stopped already stays so at Thaw.
func (s *Sessions) Freeze(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		all, err := s.members()
		if err != nil {
			return err
		}
		moving := 0
		for _, p := range all {
			if p.state == 'T' || p.state == 't' || p.state == 'Z' || p.state == 'X' {
				continue
			}
			moving++
			if unix.Kill(p.pid, unix.SIGSTOP) == nil && !slices.Contains(s.stopped, p.pid) {
				s.stopped = append(s.stopped, p.pid)
			}
			// The parent of vfork(2) can't stop before its child executes a program: the child has to go on once more.
			for _, child := range all {
				if p.state == 'D' && child.parent == p.pid && slices.Contains(s.stopped, child.pid) {
					_ = unix.Kill(child.pid, unix.SIGCONT)
				}
			}
		}
		if moving == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return errs.Msg(errs.Unavailable, "freeze", "", fmt.Sprintf("%d processes don't stand still in time", moving))
		case <-time.After(time.Millisecond):
		}
	}
}

// Thaw implements Workload.
func (s *Sessions) Thaw() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var failed error
	for _, pid := range s.stopped {
		if err := unix.Kill(pid, unix.SIGCONT); err != nil && !errors.Is(err, unix.ESRCH) {
			failed = errors.Join(failed, err)
		}
	}
	s.stopped = nil
	return failed
}

// Limit implements Workload: what isn't in a control group can't be counted for sure.
func (s *Sessions) Limit(processes int) error {
	if processes > 0 {
		return errs.Msg(errs.Unsupported, "limit", "processes", "that needs control groups")
	}
	return nil
}

// members are the processes of all sessions.
func (s *Sessions) members() ([]process, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	found := all[:0]
	for _, p := range all {
		if _, ok := s.groups[p.session]; ok {
			found = append(found, p)
		}
	}
	return found, nil
}

// Usage implements Workload: of those that run now.
func (s *Sessions) Usage() (Usage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.members()
	var u Usage
	for _, p := range all {
		u.CPU += p.cpu
		u.Memory += p.memory
	}
	return u, err
}

// Pids implements Workload.
func (s *Sessions) Pids() ([]int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.members()
	pids := make([]int, len(all))
	for i, p := range all {
		pids[i] = p.pid
	}
	return pids, err
}

type session struct {
	s   *Sessions
	pid int
}

func (g *session) Attr(*syscall.SysProcAttr) {}

func (g *session) Started(pid int) {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	g.pid = pid
	g.s.groups[pid] = struct{}{}
}

func (g *session) members() []process {
	all, _ := processes()
	found := all[:0]
	for _, p := range all {
		if p.session == g.pid && g.pid > 0 && p.state != 'Z' {
			found = append(found, p)
		}
	}
	return found
}

// Kill kills until nobody is left: some may be forking.
func (g *session) Kill() error {
	for range 100 {
		left := g.members()
		if len(left) == 0 {
			return nil
		}
		for _, p := range left {
			_ = unix.Kill(p.pid, unix.SIGKILL)
		}
		time.Sleep(time.Millisecond)
	}
	return errs.Msg(errs.Unavailable, "kill", "", "processes don't end")
}

func (g *session) Empty() bool { return len(g.members()) == 0 }

func (g *session) Close() error {
	if g.Empty() {
		g.s.mu.Lock()
		defer g.s.mu.Unlock()
		delete(g.s.groups, g.pid)
	}
	return nil
}
