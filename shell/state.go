package shell

import (
	"agentrun.dev/errs"
	"agentrun.dev/proc"
)

// State is a shell at a moment: its variables, functions, options, jobs and frames. It never changes.
type State struct{ sh *Shell }

// Capture implements proc.Cloner. It is called while the shell rests, and copies no variable: both sides copy what they
// change from now on.
func (sh *Shell) Capture() (proc.State, error) {
	if sh.pinned > 0 || sh.try.on && sh.try.dirty || sh.begin != nil {
		return nil, errs.Msg(errs.Unavailable, "capture shell", "", "it is in the middle of a command")
	}
	sh.tok = &owner{}
	c := sh.copyState()
	c.tok = nil         // belongs to nobody
	c.memory = memory{} // its process has been charged nothing yet
	t := &c.try
	if !t.on {
		*t = attempt{}
	}
	if t.kind != attemptStmt {
		t.stmt = nil
	}
	if t.kind != attemptCommand && t.kind != attemptSimple {
		t.cmd = nil
	}
	if t.kind != attemptSimple {
		t.redirs = nil
	}
	if t.on {
		t.redo, t.dirty = true, false
		if t.kind != attemptOutput {
			c.rewind()
		}
	}
	return &State{c}, nil
}

// Resume implements proc.State: the shell that goes on in p.
func (st *State) Resume(p *proc.Process) (proc.Program, error) {
	c := st.sh.copyState()
	c.p, c.tok = p, &owner{}
	for i := range c.procFds {
		if c.procFds[i].fd >= 0 {
			c.procFds[i].p = p
		}
	}
	return c, nil
}

// Close implements proc.State.
func (st *State) Close() error { return nil }

// copyState copies what a shell is but for its process and token. What is changed in place is copied, what is replaced on
// change is shared.
func (sh *Shell) copyState() *Shell {
	c := *sh
	c.stmtNow = nil
	c.p, c.arithCache, c.loose, c.regexes, c.patterns = nil, nil, nil, nil, nil
	c.scopes = make([]*scope, len(sh.scopes))
	for i, s := range sh.scopes {
		d := *s
		c.scopes[i] = &d
	}
	c.frames = make([]frame, len(sh.frames))
	for i, f := range sh.frames {
		c.frames[i] = f.clone()
	}
	c.calls = append([]call(nil), sh.calls...)
	c.dirs = append([]string(nil), sh.dirs...)
	c.pending = append([]int(nil), sh.pending...)
	c.kids = copyKids(sh.kids)
	c.jobs = make([]*job, len(sh.jobs))
	for i, j := range sh.jobs {
		d := *j
		d.procs = copyKids(j.procs)
		c.jobs[i] = &d
	}
	c.procFds = make([]procFd, len(sh.procFds))
	for i, f := range sh.procFds {
		if c.procFds[i].fd = f.fd; f.p != sh.p {
			c.procFds[i].fd = -1 // a child's, which has its own
		}
	}
	c.out = append([]byte(nil), sh.out...)
	c.seeded = false // two copies must not make the same random numbers
	t := &c.try
	t.log = append([]result(nil), t.log...)
	t.flight.kid.proc = nil
	t.flight.out = append([]byte(nil), t.flight.out...)
	return &c
}

// rewind takes the shell back to where the attempt began.
func (c *Shell) rewind() {
	t := &c.try
	c.frames, c.scopes, c.procFds = c.frames[:t.frames], c.scopes[:t.scopes], c.procFds[:t.procFds]
	c.noerr, c.status, c.lastArg = t.noerr, t.status, t.lastArg
}
