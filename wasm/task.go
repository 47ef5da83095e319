package wasm

import (
	"agentrun.dev/proc"
)

// Task is one call of a guest as the program of a process (proc.Process.RunAs). Wherever the guest waits or computes the process can be captured, and
// goes on in copies of it: Task is a proc.Cloner.
type Task struct {
	in    *Instance // while it runs
	entry string    // what is called; "" to go on with a call that was captured
	end   func(p *proc.Process, results []uint64, err error) int
}

var _ proc.Cloner = (*Task)(nil)

// Task returns a program that calls a function without arguments and closes the instance. end makes an exit status of what Call returned; it is shared by
// copies.
func (in *Instance) Task(entry string, end func(p *proc.Process, results []uint64, err error) int) *Task {
	return &Task{in, entry, end}
}

// Run implements proc.Program.
func (t *Task) Run(p *proc.Process) int {
	var results []uint64
	var err error
	if t.entry == "" {
		results, err = t.in.Continue(p.Context())
	} else {
		results, err = t.in.Call(p.Context(), t.entry)
	}
	t.in.Close()
	return t.end(p, results, err)
}

// Capture implements proc.Cloner.
func (t *Task) Capture() (proc.State, error) {
	l, err := t.in.Live()
	if err != nil {
		return nil, err
	}
	return &taskState{l, t.end}, nil
}

// taskState is a captured Task.
type taskState struct {
	*Live
	end func(p *proc.Process, results []uint64, err error) int
}

// Resume implements proc.State.
func (s *taskState) Resume(p *proc.Process) (proc.Program, error) {
	in, err := s.Start(p)
	if err != nil {
		return nil, err
	}
	return &Task{in, "", s.end}, nil
}
