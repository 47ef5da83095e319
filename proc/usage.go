package proc

import (
	"syscall"
	"time"
)

// Usage is what a sandbox has used.
type Usage struct {
	CPU         time.Duration // that programs have reported by AddCPU or, of those that don't, computed between two waits
	Memory      int64         // bytes charged now
	MemoryPeak  int64         // the most at any time
	Processes   int           // now
	OutputBytes int64         // written to streams that leave the sandbox
	FileBytes   int64         // written to files through descriptors
	Steps       int64         // metered steps
}

// Usage returns what the sandbox has used so far.
func (s *Sandbox) Usage() Usage {
	s.mu.Lock()
	n := len(s.procs)
	s.mu.Unlock()
	return Usage{
		CPU: time.Duration(s.cpu.Load()), Memory: s.memory.Load(), MemoryPeak: s.memoryPeak.Load(), Processes: n,
		OutputBytes: min(s.output.Load(), s.limits.OutputBytes), FileBytes: s.written.Load(), Steps: s.steps.Load(),
	}
}

// Charge accounts for memory that the program holds, in bytes; a negative number gives it back. ENOMEM, and nothing is
// charged, when the sandbox would have more than Limits.SandboxMemory, or the process more than its limit. What is left is given back when the program has
// returned. Any goroutine may call it.
func (p *Process) Charge(bytes int64) error {
	s := p.sb
	p.memMu.Lock()
	defer p.memMu.Unlock()
	if p.memOver && bytes > 0 {
		return syscall.ENOMEM // it has ended: nobody would give this back
	}
	bytes = max(bytes, -p.memory)
	if l, _ := p.Rlimit(LimitAS); bytes > 0 && uint64(p.memory+bytes) > l.Soft {
		return syscall.ENOMEM
	}
	total := s.memory.Add(bytes)
	if bytes > 0 && total > s.limits.SandboxMemory {
		s.memory.Add(-bytes)
		s.exceed("memory")
		return syscall.ENOMEM
	}
	p.memory += bytes
	for {
		peak := s.memoryPeak.Load()
		if total <= peak || s.memoryPeak.CompareAndSwap(peak, total) {
			return nil
		}
	}
}

// MemoryUsed returns the bytes that are charged to the process.
func (p *Process) MemoryUsed() int64 {
	p.memMu.Lock()
	defer p.memMu.Unlock()
	return p.memory
}

// uncharge gives back what a program that has returned still holds.
func (p *Process) uncharge() {
	p.memMu.Lock()
	defer p.memMu.Unlock()
	p.sb.memory.Add(-p.memory)
	p.memory, p.memOver = 0, true
}

// AddCPU accounts for processor time that the program has used. Past Limits.CPU the process is killed with XCPU, and the
// error is EINTR. Any goroutine may call it.
func (p *Process) AddCPU(d time.Duration) error {
	if !p.reports.Load() {
		p.reports.Store(true)
	}
	return p.addCPU(d)
}

func (p *Process) addCPU(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	own := time.Duration(p.cpu.Add(int64(d)))
	if used, l := p.sb.cpu.Add(int64(d)), p.sb.limits.CPU; l > 0 && used > int64(l) {
		p.sb.exceed("cpu")
		p.kill(SIGXCPU)
		return syscall.EINTR
	}
	return p.cpuLimit(own-d, own)
}

// CPU returns the processor time of the program.
func (p *Process) CPU() time.Duration { return time.Duration(p.cpu.Load()) }
