package wasm

import (
	"bytes"

	"agentrun.dev/proc"
)

// Task is one call of a guest as the program of a process (proc.Process.RunAs). Wherever the guest waits or computes the process can be captured, and
// goes on in copies of it: Task is a proc.Cloner.
type Task struct {
	in    *Instance // while it runs
	entry string    // what is called; "" to go on with a call that was captured
	end   func(p *proc.Process, results []uint64, err error) int
	kind  string // by which it is saved; "": it can't be
}

var _ proc.Cloner = (*Task)(nil)

// Task returns a program that calls a function without arguments and closes the instance. end makes an exit status of what Call returned; it is shared by
// copies.
func (in *Instance) Task(entry string, end func(p *proc.Process, results []uint64, err error) int) *Task {
	return &Task{in: in, entry: entry, end: end}
}

// SaveAs makes what is captured of the task a proc.Saver of this kind: what it saves Restore takes. It returns t.
func (t *Task) SaveAs(kind string) *Task {
	t.kind = kind
	return t
}

// Restore returns the state of a task of this module that was saved. c and end are as when it was begun.
func (m *Module) Restore(kind string, data []byte, c Config, end func(p *proc.Process, results []uint64, err error) int) (proc.State, error) {
	l, err := m.LoadLive(data, c)
	if err != nil {
		return nil, err
	}
	return &savedTask{taskState{l, end, kind}}, nil
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
	if t.kind != "" {
		return &savedTask{taskState{l, t.end, t.kind}}, nil
	}
	return &taskState{l, t.end, ""}, nil
}

// taskState is a captured Task.
type taskState struct {
	*Live
	end  func(p *proc.Process, results []uint64, err error) int
	kind string
}

// savedTask is one that can leave memory.
type savedTask struct{ taskState }

// Save implements proc.Saver.
func (s *savedTask) Save() (kind string, data []byte, err error) {
	var b bytes.Buffer
	if err := s.Live.Save(&b); err != nil {
		return "", nil, err
	}
	return s.kind, b.Bytes(), nil
}

// Resume implements proc.State.
func (s *taskState) Resume(p *proc.Process) (proc.Program, error) {
	in, err := s.Start(p)
	if err != nil {
		return nil, err
	}
	return &Task{in, "", s.end, s.kind}, nil
}
