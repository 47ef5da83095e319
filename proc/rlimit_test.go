package proc_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

func TestRlimits(t *testing.T) {
	s := sandbox(t, proc.Limits{Files: 50, Processes: 40})
	p, _ := s.NewProcess(proc.Root{Args: []string{"p"}, Env: []string{"PATH=/bin"}, Cred: vfs.Cred{UID: 1000}})
	p.Start(proc.Func(func(p *proc.Process) int {
		set := func(res int, soft, hard uint64, want error) {
			t.Helper()
			if err := p.SetRlimit(res, proc.Rlimit{Soft: soft, Hard: hard}); err != want {
				t.Errorf("limit %d of %d, %d: %v, want %v", res, soft, hard, err, want)
			}
		}
		if l, err := p.Rlimit(proc.LimitNofile); err != nil || l != (proc.Rlimit{Soft: 50, Hard: 50}) {
			t.Errorf("descriptors: %+v, %v", l, err)
		}
		set(-1, 0, 0, syscall.EINVAL)
		set(proc.LimitNofile, 10, 5, syscall.EINVAL)
		set(proc.LimitNofile, 51, 51, syscall.EPERM)
		set(proc.LimitNofile, 5, 20, nil)
		set(proc.LimitNofile, 5, 21, syscall.EPERM)
		for i := 0; ; i++ {
			if f, err := p.Open("/dev/null", syscall.O_RDONLY, 0); err != nil {
				if err != syscall.EMFILE || i != 2 {
					t.Errorf("descriptor %d: %v", i, err)
				}
				break
			} else if i == 5 {
				f.Close()
			}
		}
		set(proc.LimitNofile, 20, 20, nil)
		p.SetSignal(proc.SIGXFSZ, proc.Ignore)
		set(proc.LimitFsize, 10, proc.Unlimited, nil)
		f, err := p.Open("/f", syscall.O_RDWR|syscall.O_CREAT, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := f.Write([]byte("0123456")); n != 7 || err != nil {
			t.Errorf("below: %d, %v", n, err)
		}
		if n, err := f.Write([]byte("789abc")); n != 3 || err != syscall.EFBIG {
			t.Errorf("across: %d, %v", n, err)
		}
		if n, err := f.Write([]byte("x")); n != 0 || err != syscall.EFBIG {
			t.Errorf("past: %d, %v", n, err)
		}
		if n, err := f.WriteAt([]byte("abcd"), 8); n != 2 || err != syscall.EFBIG {
			t.Errorf("at: %d, %v", n, err)
		}
		size := int64(11)
		if err := f.SetAttr(vfs.SetAttr{Size: &size}); err != syscall.EFBIG {
			t.Errorf("truncate: %v", err)
		}
		set(proc.LimitNproc, 2, 40, nil)
		c, err := p.Fork()
		if err != nil {
			t.Fatal(err)
		}
		if l, _ := c.Rlimit(proc.LimitFsize); l.Soft != 10 {
			t.Errorf("not inherited: %+v", l)
		}
		if _, err := p.Fork(); err != syscall.EAGAIN {
			t.Errorf("a third process: %v", err)
		}
		c.Abandon(0)
		p.Wait(c)
		set(proc.LimitAS, 100, 100, nil)
		if err := p.Charge(101); err != syscall.ENOMEM {
			t.Errorf("memory: %v", err)
		}
		if text, err := readFile(p, "/proc/self/limits"); err != nil || !strings.Contains(text, "Max file size             10                   unlimited            bytes     \n") {
			t.Errorf("/proc: %q, %v", text, err)
		}
		set(proc.LimitCPU, 1, 3, nil)
		p.SetSignal(proc.SIGXCPU, proc.Handle)
		if err := p.AddCPU(1500 * time.Millisecond); err != nil || len(p.TakeSignals()) != 1 {
			t.Errorf("past the soft limit: %v", err)
		}
		if err := p.AddCPU(2 * time.Second); err != syscall.EINTR {
			t.Errorf("past the hard limit: %v", err)
		}
		return 0
	}))
	if st := wait(t, p); st != 128+proc.SIGKILL {
		t.Errorf("status %d", st)
	}
}

// The views of a process tell of the sandbox, and of nothing else.
func TestProcViews(t *testing.T) {
	s := sandbox(t, proc.Limits{SandboxMemory: 64 << 20})
	p, _ := s.NewProcess(proc.Root{Args: []string{"/bin/a program", "x"}, Env: []string{"A=1"}, Dir: "/", Cred: vfs.Cred{UID: 1000, GID: 100, Groups: []uint32{100, 5}}})
	p.Start(proc.Func(func(p *proc.Process) int {
		p.Charge(4 << 20)
		p.SetSignal(proc.SIGINT, proc.Ignore)
		p.SetSignal(proc.SIGUSR1, proc.Handle)
		for name, want := range map[string][]string{
			"/proc/self/status":  {"Name:\ta program\n", "Uid:\t1000\t1000\t1000\t1000\n", "Groups:\t100 5 \n", "VmRSS:\t    4096 kB\n", "SigIgn:\t0000000000000002\n", "SigCgt:\t0000000000000200\n"},
			"/proc/self/stat":    {"(a program) R 1 "},
			"/proc/self/statm":   {"1024 1024 "},
			"/proc/self/cmdline": {"/bin/a program\x00x\x00"},
			"/proc/self/mounts":  {" /proc ", " / "},
			"/proc/meminfo":      {"MemTotal:          65536 kB\n", "MemFree:           61440 kB\n"},
			"/proc/loadavg":      {"/1 "},
			"/proc/cpuinfo":      {"AgentRun"},
			"/proc/version":      {"Linux version"},
			"/proc/uptime":       {"."},
			"/proc/filesystems":  {"proc"},
			"/proc/stat":         {"btime ", "processes "},
		} {
			text, err := readFile(p, name)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for _, w := range want {
				if !strings.Contains(text, w) {
					t.Errorf("%s has no %q: %q", name, w, text)
				}
			}
		}
		if text, _ := readFile(p, "/proc/self/stat"); len(strings.Fields(text)) != 53 { // the name has a blank
			t.Errorf("stat has %d fields", len(strings.Fields(text)))
		}
		p.OpenAt(5, "/dev/null", syscall.O_RDONLY, 0)
		r, _, _ := p.Pipe()
		for name, want := range map[string]string{"/proc/self/cwd": "/", "/proc/self/root": "/", "/proc/self/exe": "/bin/a program", "/proc/self/fd/5": "/dev/null"} {
			if got, err := p.Readlink(name); got != want || err != nil {
				t.Errorf("%s leads to %q, %v", name, got, err)
			}
		}
		if got, err := p.Readlink("/proc/self/fd/" + string(rune('0'+p.Fd(r)))); !strings.HasPrefix(got, "pipe:[") {
			t.Errorf("a pipe is %q, %v", got, err)
		}
		if _, err := p.ReadDir("/proc/self/cwd"); err != nil {
			t.Errorf("through cwd: %v", err)
		}
		return 0
	}))
	wait(t, p)
}
