package shell

import (
	"agentrun.dev/proc"
)

// kid is a child process. Only its number is state: in a copy of the shell the process is found by it again.
type kid struct {
	pid  int
	proc *proc.Process // nil in a copy, until it is asked for
}

func newKid(p *proc.Process) kid { return kid{p.Pid(), p} }

// process returns the child, nil when there is none of that number any more.
func (k *kid) process(sh *Shell) *proc.Process {
	if k.proc == nil {
		k.proc = sh.p.Sandbox().Lookup(k.pid)
	}
	return k.proc
}

// ended tells whether the child has ended; one that is gone has.
func (k *kid) ended(sh *Shell) bool {
	c := k.process(sh)
	if c == nil {
		return true
	}
	select {
	case <-c.Done():
		return true
	default:
		return false
	}
}

// collect reaps a child that has ended. One that is gone counts as killed.
func (k *kid) collect(sh *Shell) (status, sig int) {
	c := k.process(sh)
	if c == nil {
		return 128 + proc.SIGKILL, proc.SIGKILL
	}
	if st, err := sh.p.Wait(c); err == nil {
		return st, c.Signaled()
	}
	return c.Status(), c.Signaled()
}

// copyKids copies children without what belongs to one sandbox only.
func copyKids(kids []kid) []kid {
	out := make([]kid, len(kids))
	for i, k := range kids {
		out[i].pid = k.pid
	}
	return out
}

// await waits for a child in the foreground; handled signals stay pending meanwhile. ok is false when this shell is to end.
func (sh *Shell) await(k *kid) (status, sig int, ok bool) {
	if !k.ended(sh) {
		of := []*proc.Process{k.proc}
		err := sh.rest(func() error {
			_, err := sh.p.WaitEvent(of, proc.WaitKeep|proc.WaitDeaf)
			return err
		})
		if err != nil {
			return 0, 0, false
		}
	}
	status, sig = k.collect(sh)
	return status, sig, true
}

// rest makes a call that does nothing but wait. Where all of the shell's state is in frames, or the statement can be begun
// again from its log, it is a place where the shell can be captured.
func (sh *Shell) rest(call func() error) error {
	if sh.pinned > 0 || sh.try.on && sh.try.dirty {
		return call()
	}
	if sh.probe != nil && sh.probe(sh) {
		panic(abort{kind: abortAgain})
	}
	return sh.p.Rest(call)
}

// waitFrame waits for the children in the foreground: a command, a subshell, the stages of a pipeline.
type waitFrame struct {
	kids  []kid
	sts   []int // of those that have ended
	then  after
	fds   int // descriptors of process substitutions before the command
	short int // stages that couldn't be started
	last  int // of a pipeline: the status of the stage that ran in this shell, -1 without one
}

// after is what the end of the children completes.
type after uint8

const (
	afterCommand  after = iota // a command with its status
	afterPipeline              // PIPESTATUS, pipefail
	afterBuiltin               // a builtin that ran a file; whoever called it checks the status
)

// waitOne pushes the frame that waits for one child.
func (sh *Shell) waitOne(c *proc.Process, then after, fds int) {
	sh.push(&waitFrame{kids: []kid{newKid(c)}, then: then, fds: fds, last: -1})
}

func (f *waitFrame) step(sh *Shell) {
	for len(f.sts) < len(f.kids) {
		k := &f.kids[len(f.sts)]
		st, sig, ok := sh.await(k)
		if !ok {
			return
		}
		if f.sts = append(f.sts, st); len(f.sts) == len(f.kids) && f.last < 0 {
			sh.reportSignal(k.pid, sig)
		}
	}
	sh.pop()
	switch f.then {
	case afterPipeline:
		for range f.short {
			f.sts = append(f.sts, 254)
		}
		if f.last >= 0 {
			f.sts = append(f.sts, f.last)
		}
		sh.endPipeline(f.sts)
	case afterBuiltin:
		sh.setStatus(f.sts[0])
	default:
		sh.done(f.sts[0])
	}
}

func (f *waitFrame) leave(sh *Shell) { sh.closeProcFds(f.fds) }

func (f *waitFrame) clone() frame {
	c := *f
	c.kids, c.sts = copyKids(f.kids), append([]int(nil), f.sts...)
	return &c
}
