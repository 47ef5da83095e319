// Package proc is processes without a kernel: virtual pids, parents, descriptors, pipes and exit statuses.
//
// A Sandbox is a set of processes that share a vfs.Namespace, limits, a clock and randomness. A Process runs one
// Program, which sees the sandbox only through the Process: nothing of the host is visible or used. Every call of a
// Process is a gate at which it can be stopped.
package proc

// Program is code that a process runs: a command, a shell, a guest. Run returns the exit status, 0–255. It must return
// soon after p.Context() is done; all that it writes goes through p.
type Program interface {
	Run(p *Process) int
}

// Func is a Program that is a function.
type Func func(p *Process) int

// Run calls f.
func (f Func) Run(p *Process) int { return f(p) }
