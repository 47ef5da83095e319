// Package proc is processes without a kernel: virtual pids, parents, descriptors, pipes, signals and exit statuses.
//
// A Sandbox is a set of processes that share a vfs.Namespace, limits, a clock and randomness. A Process runs one
// Program, which sees the sandbox only through the Process: nothing of the host is visible or used. A descriptor is a
// small number that refers to an open file description (a vfs.File and its counted references), as in POSIX. A child
// is made in two steps, as fork and exec are: Fork copies the parent's state into an embryo, which may be changed, and
// Start or Exec runs a program in it.
//
// Every call of a Process is a gate: there it can be stopped, a signal interrupts it, and nothing of a program's state
// in between is hidden in a kernel. A wait status is 0–255: an exit status, or 128+n after signal n.
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
