package proc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentrun.dev/proc"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
)

// table is a set of programs.
type table map[string]proc.Program

func (t table) Lookup(name string) (proc.Program, bool) { p, ok := t[name]; return p, ok }
func (t table) Names() []string {
	var out []string
	for n := range t {
		out = append(out, n)
	}
	sort.Strings(out)
	return out
}

func programs() table {
	return table{
		"exit": proc.Func(func(p *proc.Process) int { var n int; fmt.Sscan(p.Args()[1], &n); return n }),
		"cat":  proc.Func(func(p *proc.Process) int { _, err := io.Copy(p.Stdout(), p.Stdin()); return status(err) }),
		"yes": proc.Func(func(p *proc.Process) int {
			return spin(p, func() error { _, err := p.Stdout().Write([]byte("y\n")); return err })
		}),
		"nap":   proc.Func(func(p *proc.Process) int { return status(p.Sleep(time.Hour)) }),
		"env":   proc.Func(func(p *proc.Process) int { fmt.Fprintln(p.Stdout(), strings.Join(p.Environ(), " ")); return 0 }),
		"panic": proc.Func(func(p *proc.Process) int { panic("a defect") }),
	}
}

func status(err error) int {
	if err != nil {
		return 1
	}
	return 0
}

func spin(p *proc.Process, f func() error) int {
	for p.Context().Err() == nil {
		if err := f(); err != nil {
			return 1
		}
	}
	return 2
}

func sandbox(t testing.TB, l proc.Limits) *proc.Sandbox {
	t.Helper()
	return sandboxWith(t, proc.Options{Limits: l})
}

// sandboxWith makes a sandbox in memory with the test's programs.
func sandboxWith(t testing.TB, o proc.Options) *proc.Sandbox {
	t.Helper()
	root := memfs.New(memfs.Options{Mode: 0o777})
	ns := vfs.NewNamespace(vfs.Mount{FS: root, Special: proc.OpenSpecial})
	cmds := programs()
	o.Namespace, o.Commands = ns, cmds
	s, err := proc.New(o)
	if err != nil {
		t.Fatal(err)
	}
	for path, fs := range map[string]vfs.FS{"/bin": proc.NewBin(cmds), "/dev": proc.NewDev(), "/proc": proc.NewProc(s)} {
		if err := ns.Mount(context.Background(), vfs.Mount{Path: path, FS: fs, Special: proc.OpenSpecial}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

// within runs f as a process and returns its wait status.
func within(t testing.TB, s *proc.Sandbox, f func(p *proc.Process) int) int {
	t.Helper()
	p, err := s.NewProcess(proc.Root{Args: []string{"test"}, Env: []string{"PATH=/bin", "A=1"}})
	if err != nil {
		t.Fatal(err)
	}
	p.Start(proc.Func(f))
	select {
	case <-p.Done():
	case <-time.After(30 * time.Second):
		t.Fatal("the process hangs")
	}
	return p.Status()
}

func TestSpawnAndWait(t *testing.T) {
	s := sandbox(t, proc.Limits{})
	within(t, s, func(p *proc.Process) int {
		for _, n := range []int{0, 3, 255} {
			c, err := p.Spawn(proc.Spawn{Args: []string{"exit", fmt.Sprint(n)}})
			if err != nil {
				t.Fatal(err)
			}
			if c.Ppid() != p.Pid() || c.Pgid() != p.Pgid() || c.Sid() != p.Sid() {
				t.Error("not a child of its parent")
			}
			if st, err := p.Wait(c); st != n || err != nil {
				t.Errorf("status %d, %v; want %d", st, err, n)
			}
			if _, err := p.Wait(c); err != syscall.ECHILD {
				t.Errorf("waiting twice: %v", err)
			}
		}
		if _, err := p.Spawn(proc.Spawn{Args: []string{"nosuch"}}); err != syscall.ENOENT {
			t.Errorf("missing command: %v", err)
		}
		if _, err := p.Spawn(proc.Spawn{Args: []string{"/bin"}}); err != syscall.EACCES {
			t.Errorf("a directory: %v", err)
		}
		c, _ := p.Spawn(proc.Spawn{Args: []string{"panic"}})
		if st, _ := p.Wait(c); st != 128+proc.SIGABRT {
			t.Errorf("a defect's status %d", st)
		}
		a, _ := p.Spawn(proc.Spawn{Args: []string{"nap"}})
		b, _ := p.Spawn(proc.Spawn{Args: []string{"exit", "1"}})
		if first, err := p.WaitAny([]*proc.Process{a, b}); first != b || err != nil {
			t.Errorf("the first to end: %v, %v", first, err)
		}
		return 0
	})
	if n := len(s.Processes()); n > 1 { // the orphan naps on
		t.Errorf("%d processes are left", n)
	}
}

func TestPipes(t *testing.T) {
	s := sandbox(t, proc.Limits{})
	within(t, s, func(p *proc.Process) int {
		r, w, err := p.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r2, w2, _ := p.Pipe()
		c, err := p.Spawn(proc.Spawn{Args: []string{"cat"}, Files: map[int]vfs.File{0: r, 1: w2}})
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		w2.Close()
		big := strings.Repeat("0123456789abcdef", 20000) // more than both pipes hold
		go func() { io.WriteString(w, big); w.Close() }()
		got, err := io.ReadAll(r2)
		if string(got) != big || err != nil {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if st, _ := p.Wait(c); st != 0 {
			t.Errorf("status %d", st)
		}
		if _, err := r2.Seek(0, 0); err != syscall.ESPIPE {
			t.Errorf("seek: %v", err)
		}
		return 0
	})
}

// A writer without readers is ended by PIPE, or told so if it ignores that.
func TestBrokenPipe(t *testing.T) {
	s := sandbox(t, proc.Limits{})
	within(t, s, func(p *proc.Process) int {
		r, w, _ := p.Pipe()
		c, _ := p.Spawn(proc.Spawn{Args: []string{"yes"}, Files: map[int]vfs.File{1: w}})
		w.Close()
		io.ReadFull(r, make([]byte, 100))
		r.Close()
		if st, _ := p.Wait(c); st != 128+proc.SIGPIPE {
			t.Errorf("status %d", st)
		}
		p.SetSignal(proc.SIGPIPE, proc.Ignore)
		r, w, _ = p.Pipe()
		r.Close()
		if _, err := w.Write([]byte("x")); err != syscall.EPIPE {
			t.Errorf("ignored: %v", err)
		}
		return 0
	})
}

func TestSignals(t *testing.T) {
	s := sandbox(t, proc.Limits{})
	within(t, s, func(p *proc.Process) int {
		for _, sig := range []int{proc.SIGTERM, proc.SIGKILL, proc.SIGINT, proc.SIGUSR1} {
			c, _ := p.Spawn(proc.Spawn{Args: []string{"nap"}})
			if err := p.Signal(c.Pid(), sig); err != nil {
				t.Error(err)
			}
			if st, _ := p.Wait(c); st != 128+sig {
				t.Errorf("signal %d: status %d", sig, st)
			}
		}
		if err := p.Signal(99999, proc.SIGTERM); err != syscall.ESRCH {
			t.Errorf("no such process: %v", err)
		}
		if err := p.Signal(p.Pid(), 0); err != nil {
			t.Errorf("signal 0: %v", err)
		}
		if _, err := p.SetSignal(proc.SIGKILL, proc.Ignore); err != syscall.EINVAL {
			t.Errorf("KILL can be ignored: %v", err)
		}
		p.SetSignal(proc.SIGUSR1, proc.Handle)
		p.Signal(p.Pid(), proc.SIGUSR1)
		if err := p.Sleep(time.Hour); err != syscall.EINTR {
			t.Errorf("a handled signal doesn't interrupt: %v", err)
		}
		if got := p.TakeSignals(); len(got) != 1 || got[0] != proc.SIGUSR1 {
			t.Errorf("pending: %v", got)
		}
		if err := p.Sleep(time.Millisecond); err != nil {
			t.Errorf("after taking it: %v", err)
		}
		// A child in a group of its own is reached through the group.
		c, _ := p.Fork()
		c.SetPgid(0)
		c.Start(programs()["nap"])
		if err := p.Signal(-c.Pid(), proc.SIGHUP); err != nil {
			t.Error(err)
		}
		if st, _ := p.Wait(c); st != 128+proc.SIGHUP {
			t.Errorf("group: status %d", st)
		}
		return 0
	})
}

func TestDescriptors(t *testing.T) {
	s := sandbox(t, proc.Limits{Files: 20})
	within(t, s, func(p *proc.Process) int {
		f, err := p.Open("/f", syscall.O_RDWR|syscall.O_CREAT, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		n := p.Fd(f)
		d, err := p.Dup(n, 10, false)
		if d != 10 || err != nil {
			t.Fatalf("dup: %d, %v", d, err)
		}
		f.Write([]byte("abc"))
		g, _ := p.File(d)
		g.Write([]byte("def")) // one offset
		f.Close()
		if _, err := f.Write([]byte("x")); err != syscall.EBADF {
			t.Errorf("a write after close: %v", err)
		}
		g.Seek(0, io.SeekStart)
		if b, _ := io.ReadAll(g); string(b) != "abcdef" {
			t.Errorf("read %q", b)
		}
		if err := p.Dup2(10, 50); err != syscall.EBADF {
			t.Errorf("beyond the limit: %v", err)
		}
		// Descriptors above 2 stay behind on exec if they say so.
		p.SetCloseOnExec(10, true)
		c, _ := p.Fork()
		if len(c.Fds()) != 1 {
			t.Errorf("a fork has %v", c.Fds())
		}
		seen := make(chan []int, 1)
		c.Start(proc.Func(func(c *proc.Process) int {
			return c.Become(proc.Func(func(c *proc.Process) int { seen <- c.Fds(); return 0 }), []string{"x"})
		}))
		p.Wait(c)
		if got := <-seen; len(got) != 0 {
			t.Errorf("after exec: %v", got)
		}
		for err = nil; err == nil; {
			_, err = p.Open("/f", syscall.O_RDONLY, 0)
		}
		if err != syscall.EMFILE {
			t.Errorf("at the limit: %v", err)
		}
		return 0
	})
}

func TestDevices(t *testing.T) {
	s := sandbox(t, proc.Limits{})
	within(t, s, func(p *proc.Process) int {
		read := func(name string, n int) (string, error) {
			f, err := p.Open(name, syscall.O_RDONLY, 0)
			if err != nil {
				return "", err
			}
			defer f.Close()
			b := make([]byte, n)
			n, err = io.ReadFull(f, b)
			return string(b[:n]), err
		}
		if s, err := read("/dev/null", 4); s != "" || err != io.EOF {
			t.Errorf("null: %q %v", s, err)
		}
		if s, err := read("/dev/zero", 4); s != "\x00\x00\x00\x00" || err != nil {
			t.Errorf("zero: %q %v", s, err)
		}
		if a, err := read("/dev/urandom", 16); err != nil || a == strings.Repeat("\x00", 16) {
			t.Errorf("urandom: %q %v", a, err)
		}
		f, _ := p.Open("/dev/full", syscall.O_WRONLY, 0)
		if _, err := f.Write([]byte("x")); err != syscall.ENOSPC {
			t.Errorf("full: %v", err)
		}
		f.Close()
		if _, err := p.Open("/dev/tty", syscall.O_RDWR, 0); err != syscall.ENXIO {
			t.Errorf("tty without a terminal: %v", err)
		}
		m, _ := p.MemFile([]byte("through /dev/fd"))
		if s, _ := read(fmt.Sprintf("/dev/fd/%d", p.Fd(m)), 7); s != "through" {
			t.Errorf("fd: %q", s)
		}
		if s, _ := read("/proc/self/comm", 100); s != "test\n" {
			t.Errorf("comm: %q", s)
		}
		if s, _ := read("/proc/self/environ", 100); s != "PATH=/bin\x00A=1\x00" {
			t.Errorf("environ: %q", s)
		}
		return 0
	})
}

func TestFIFO(t *testing.T) {
	s := sandbox(t, proc.Limits{})
	within(t, s, func(p *proc.Process) int {
		if err := p.Mknod("/fifo", vfs.ModeFIFO|0o600, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Open("/fifo", syscall.O_WRONLY|syscall.O_NONBLOCK, 0); err != syscall.ENXIO {
			t.Errorf("no reader: %v", err)
		}
		c, _ := p.Fork()
		c.Start(proc.Func(func(c *proc.Process) int {
			f, err := c.Open("/fifo", syscall.O_WRONLY, 0)
			if err != nil {
				return 1
			}
			io.WriteString(f, "through")
			return 0
		}))
		f, err := p.Open("/fifo", syscall.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(f); string(b) != "through" || err != nil {
			t.Errorf("%q %v", b, err)
		}
		p.Wait(c)
		return 0
	})
}

func TestLimits(t *testing.T) {
	s := sandbox(t, proc.Limits{Processes: 10, OutputBytes: 1000, Steps: 100})
	within(t, s, func(p *proc.Process) int {
		var err error
		n := 0
		for ; err == nil && n < 100; n++ {
			_, err = p.Spawn(proc.Spawn{Args: []string{"nap"}})
		}
		if err != syscall.EAGAIN || n != 10 {
			t.Errorf("processes: %d, %v", n, err)
		}
		// Once there is room, it lasts a moment until processes can fork again.
		c := p.Children()[0]
		p.Signal(c.Pid(), proc.SIGKILL)
		p.Wait(c)
		for err != nil {
			if err = p.Sleep(time.Millisecond); err == nil {
				_, err = p.Spawn(proc.Spawn{Args: []string{"nap"}})
			}
			if err != nil && err != syscall.EAGAIN {
				t.Fatal(err)
			}
		}
		return 0
	})
	s2 := sandbox(t, proc.Limits{OutputBytes: 1000, Steps: 100})
	p, _ := s2.NewProcess(proc.Root{Args: []string{"yes"}, Files: map[int]vfs.File{1: s2.NewOutput(io.Discard, false)}})
	p.Start(programs()["yes"])
	<-p.Done()
	if p.Status() != 128+proc.SIGXFSZ || s2.Exceeded() != "output" {
		t.Errorf("output: %d %q", p.Status(), s2.Exceeded())
	}
	s3 := sandbox(t, proc.Limits{Steps: 100})
	if st := within(t, s3, func(p *proc.Process) int { return spin(p, func() error { return p.Step(1) }) }); st != 128+proc.SIGXCPU {
		t.Errorf("steps: %d", st)
	}
}

// A program that doesn't listen is given up after its grace; its gates fail.
func TestDeafProgram(t *testing.T) {
	s := sandbox(t, proc.Limits{})
	release := make(chan struct{})
	p, _ := s.NewProcess(proc.Root{Args: []string{"deaf"}})
	failed := make(chan error, 1)
	p.Start(proc.Func(func(p *proc.Process) int {
		<-release
		_, err := p.Open("/f", syscall.O_WRONLY|syscall.O_CREAT, 0o644)
		failed <- err
		return 0
	}))
	p.Post(proc.SIGTERM)
	<-p.Done()
	if p.Status() != 128+proc.SIGTERM {
		t.Errorf("status %d", p.Status())
	}
	close(release)
	if err := <-failed; !errors.Is(err, syscall.EINTR) {
		t.Errorf("its gate: %v", err)
	}
}

// Many processes at once, with pipes and signals between them: for the race detector.
func TestStorm(t *testing.T) {
	s := sandbox(t, proc.Limits{Processes: 4096})
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			within(t, s, func(p *proc.Process) int {
				for i := range 40 {
					r, w, err := p.Pipe()
					if err != nil {
						t.Error(err)
						return 1
					}
					a, _ := p.Spawn(proc.Spawn{Args: []string{"yes"}, Files: map[int]vfs.File{1: w}})
					b, _ := p.Spawn(proc.Spawn{Args: []string{"cat"}, Files: map[int]vfs.File{0: r}})
					r.Close()
					w.Close()
					if i%2 == 0 {
						p.Signal(a.Pid(), proc.SIGTERM)
						p.Wait(a)
						p.Wait(b)
					} else {
						p.Signal(b.Pid(), proc.SIGKILL)
						p.Wait(b)
						p.Wait(a)
					}
				}
				return 0
			})
		}()
	}
	wg.Wait()
	if n := len(s.Processes()); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

func TestSignalNames(t *testing.T) {
	for n := 1; n <= proc.MaxSignal; n++ {
		if name := proc.SignalName(n); name != "" {
			if m, ok := proc.SignalNumber("sig" + strings.ToLower(name)); !ok || m != n {
				t.Errorf("%d is %s is %d", n, name, m)
			}
		}
	}
}

func TestParseTZ(t *testing.T) {
	at := time.Date(2024, 7, 1, 12, 0, 0, 0, time.UTC)
	for tz, want := range map[string]string{"": "12", "UTC": "12", "EST5": "07", "Europe/Berlin": "14", "<+03>-3": "15", "../../etc/passwd": "12", "XXX-1:30": "13", "XX-1:30": "12", "EST5EDT,M3.2.0,M11.1.0": "08", "no such": "12"} {
		if got := at.In(proc.ParseTZ(tz)).Format("15"); got != want {
			t.Errorf("%q: %s, want %s", tz, got, want)
		}
	}
}
