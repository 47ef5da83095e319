package proc

import "io"

// A Cloner is a Program that can go on in a copy of its process. Capture is called only while it rests, from another
// goroutine: it copies what the program keeps on the heap.
type Cloner interface {
	Program
	Capture() (State, error)
}

// State is a program's state at a moment. It shares nothing mutable with the program that it was captured from.
type State interface {
	// Resume returns the program that goes on in p, which has the same pid and the same descriptors in another sandbox.
	// It may be called many times, concurrently. References to other processes are found again by p.Sandbox().Lookup(pid).
	Resume(p *Process) (Program, error)
	Close() error
}

// Saver is a State that can leave memory. kind names who can restore it: "shell", "python", "sleep" …
type Saver interface {
	State
	Save() (kind string, data []byte, err error)
}

// Rest runs one blocking call of the process (a read, a wait, a sleep until a moment) as a place where the process may
// be captured. The program promises that its state is on the heap, that none of its goroutines calls p meanwhile, and
// that a copy of it which begins by making the same call again goes on as this one would. So a call must do at most one
// thing that takes or gives something: one Read, one Write, one Wait.
//
// A Write that Rest runs may be short, without an error, when a freeze interrupts it after a part: the program keeps the
// count in its state and rests again for what is left, as WriteAll does.
//
// A nil call is a safe point without waiting: one atomic load unless a freeze is asked for. The error is the call's, or
// EINTR when the process has been killed.
func (p *Process) Rest(call func() error) error {
	if call == nil && p.attn.Load() == 0 && !p.sb.cycle.Load().on.Load() {
		return nil
	}
	if !p.cloner.Load() || p.rest.Load() != outside {
		if err := p.gate(); err != nil || call == nil {
			return err
		}
		return call()
	}
	p.rest.Store(untouched)
	defer p.rest.Store(outside)
	if err := p.gate(); err != nil || call == nil {
		return err
	}
	return call()
}

// RestAbroad is Rest for a call that waits for something outside of the sandbox, such as whoever runs it: the process is at
// rest until the call returns, and a freeze that the call itself asks for doesn't wait for it. The call must not use p.
func (p *Process) RestAbroad(call func() error) error {
	return p.Rest(func() error {
		p.enter(waits)
		defer p.leave()
		return call()
	})
}

// WriteAll writes *b to w and cuts off from it what has been written, resting: *b is part of the program's state.
func (p *Process) WriteAll(w io.Writer, b *[]byte) error {
	for len(*b) > 0 {
		err := p.Rest(func() error {
			n, err := w.Write(*b)
			*b = (*b)[n:]
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Running returns the program that the process runs: what Start, Become or RunAs was given last, nil before.
func (p *Process) Running() Program {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.prog
}

// setProgram notes what runs. p.mu is held.
func (p *Process) setProgram(prog Program) {
	p.prog = prog
	_, ok := prog.(Cloner)
	p.cloner.Store(ok)
}

// RunAs goes on as another program, with the descriptors, arguments and signals as they are, and returns its exit status,
// which must be the caller's too. A program shared by processes makes itself a Cloner by this: it reads its arguments
// and goes on as a value that holds the state of this process.
func (p *Process) RunAs(prog Program) int {
	p.mu.Lock()
	p.setProgram(prog)
	p.mu.Unlock()
	return prog.Run(p)
}
