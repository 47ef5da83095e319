package proc_test

import (
	"syscall"
	"testing"
	"time"

	"agentrun.dev/proc"
)

// Memory is limited over all processes together, and comes back when they end.
func TestCharge(t *testing.T) {
	s := sandbox(t, proc.Limits{SandboxMemory: 1000})
	within(t, s, func(p *proc.Process) int {
		c, _ := p.Fork()
		charged := make(chan error)
		c.Start(proc.Func(func(c *proc.Process) int {
			charged <- c.Charge(600)
			c.Sleep(time.Hour)
			return 0
		}))
		if err := <-charged; err != nil {
			t.Error(err)
		}
		if err := p.Charge(401); err != syscall.ENOMEM {
			t.Errorf("past the limit: %v", err)
		}
		if err := p.Charge(400); err != nil {
			t.Errorf("up to the limit: %v", err)
		}
		if err := p.Charge(-500); err != nil || p.MemoryUsed() != 0 {
			t.Errorf("giving back more than there is: %v, %d", err, p.MemoryUsed())
		}
		p.Signal(c.Pid(), proc.SIGTERM)
		p.Wait(c)
		if u := s.Usage(); u.Memory != 0 || u.MemoryPeak != 1000 || u.Processes != 1 {
			t.Errorf("after its end: %+v", u)
		}
		return 0
	})
}

func TestCPULimit(t *testing.T) {
	s := sandbox(t, proc.Limits{CPU: time.Second})
	st := within(t, s, func(p *proc.Process) int {
		if err := p.AddCPU(time.Second); err != nil || p.CPU() != time.Second {
			t.Errorf("up to the limit: %v", err)
		}
		if err := p.AddCPU(1); err != syscall.EINTR {
			t.Errorf("past it: %v", err)
		}
		return 0
	})
	if st != 128+proc.SIGXCPU || s.Exceeded() != "cpu" {
		t.Errorf("status %d, %q", st, s.Exceeded())
	}
}

// Programs of other formats run from PATH, and see the arguments as they are.
func TestLoad(t *testing.T) {
	var heads []string
	s := sandboxWith(t, proc.Options{Load: func(p *proc.Process, file string, head []byte) (proc.Program, bool) {
		heads = append(heads, file+" "+string(head))
		return programs()["exit"], string(head) == "\x00asm\n1"
	}})
	within(t, s, func(p *proc.Process) int {
		for name, text := range map[string]string{"/exe": "\x00asm\n1", "/other": "x"} {
			f, _ := p.Open(name, syscall.O_WRONLY|syscall.O_CREAT, 0o755)
			f.Write([]byte(text))
			f.Close()
		}
		c, err := p.Spawn(proc.Spawn{Args: []string{"/exe", "7"}})
		if err != nil {
			t.Fatal(err)
		}
		if st, _ := p.Wait(c); st != 7 {
			t.Errorf("status %d", st)
		}
		if _, err := p.Spawn(proc.Spawn{Args: []string{"/other"}}); err != syscall.ENOEXEC {
			t.Errorf("another format: %v", err)
		}
		if _, err := p.Spawn(proc.Spawn{Args: []string{"exit", "0"}}); err != nil || len(heads) != 2 {
			t.Errorf("%v, asked for %q", err, heads)
		}
		return 0
	})
}
