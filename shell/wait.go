package shell

import (
	"syscall"

	"agentrun.dev/proc"
	"mvdan.cc/sh/v3/syntax"
)

// kid is a child process. Only its number is state: in a copy of the shell the process is found by it again.
type kid struct {
	pid  int
	proc *proc.Process // nil in a copy, until it is asked for
	sig  int           // that has ended it, once that is known
}

func newKid(p *proc.Process) kid { return kid{pid: p.Pid(), proc: p} }

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

// stopped returns the signal that has stopped a child which hasn't ended, 0 if it runs or is about to end.
func (k *kid) stopped() int {
	if k.proc.Killed() != 0 {
		return 0
	}
	return k.proc.Stopped()
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
		out[i].pid, out[i].sig = k.pid, k.sig
	}
	return out
}

// await waits for a child in the foreground; handled signals stay pending meanwhile. ok is false when this shell is to end.
func (sh *Shell) await(k *kid) (status, sig int, ok bool) {
	if !sh.awaitNews(k, 0) {
		return 0, 0, false
	}
	status, sig = k.collect(sh)
	return status, sig, true
}

// awaitNews waits for a child to end, or for more; false when this shell is to end.
func (sh *Shell) awaitNews(k *kid, more proc.WaitFlags) bool {
	if k.ended(sh) || more&proc.WaitStopped != 0 && k.stopped() != 0 {
		return true
	}
	flags := proc.WaitKeep | proc.WaitDeaf | more
	if sh.hasTrap(sigExit) {
		flags &^= proc.WaitDeaf // a signal that ends the shell isn't put off
	}
	for !k.ended(sh) {
		of := []*proc.Process{k.proc}
		err := sh.rest(func() error {
			_, err := sh.p.WaitEvent(of, flags)
			return err
		})
		if err != syscall.EINTR || sh.p.Killed() != 0 || flags&proc.WaitDeaf != 0 {
			return err == nil
		}
		sh.takeSignals()
		for _, sig := range sh.pending {
			if sh.dies(sig) {
				sh.die(sig)
				return false
			}
		}
	}
	return true
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

	pgid    int          // the group that has the terminal, 0 without job control
	stopped int          // the signal that has stopped one of them
	stmt    *syntax.Stmt `save:"weak"` // what they run, for people
	job     int          // the one that fg waits for, 0 for none
}

// after is what the end of the children completes.
type after uint8

const (
	afterCommand  after = iota // a command with its status
	afterPipeline              // PIPESTATUS, pipefail
	afterBuiltin               // a builtin that ran a file; whoever called it checks the status
)

// waitOne pushes the frame that waits for one child.
func (sh *Shell) waitOne(c *proc.Process, then after, fds int) { sh.waitFor(c, 0, then, fds) }

// waitFor does so for a child in a group of its own, which gets the terminal.
func (sh *Shell) waitFor(c *proc.Process, pgid int, then after, fds int) {
	sh.push(&waitFrame{kids: []kid{newKid(c)}, then: then, fds: fds, last: -1, pgid: pgid, stmt: sh.stmtNow})
}

func (f *waitFrame) step(sh *Shell) {
	flags := proc.WaitFlags(0)
	if f.pgid != 0 {
		flags = proc.WaitStopped
	}
	for len(f.sts) < len(f.kids) {
		k := &f.kids[len(f.sts)]
		if !sh.awaitNews(k, flags) {
			return
		}
		if !k.ended(sh) {
			if s := k.stopped(); s != 0 {
				f.stopped = s
				f.sts = append(f.sts, 128+s)
			}
			continue // it goes on already
		}
		st, sig := k.collect(sh)
		f.sts, k.sig = append(f.sts, st), sig
	}
	sh.pop()
	if f.pgid != 0 {
		sh.takeTerminal()
	}
	if f.stopped != 0 {
		sh.stoppedHere(f)
		return
	}
	sig := f.kids[len(f.kids)-1].sig
	if j := sh.jobOf(f.job); j != nil {
		sh.endJob(j)
		sh.dropJob(j)
	}
	if f.last < 0 {
		sh.reportSignal(f, sig)
	}
	f.finish(sh)
	if sig == proc.SIGINT && f.pgid != 0 && sh.opts.interactive && f.last < 0 {
		// The terminal's interrupt was meant for the line, too.
		sh.stderr("\n")
		sh.ctl, sh.toTop = ctlDiscard, true
	}
}

// finish completes what was waited for.
func (f *waitFrame) finish(sh *Shell) {
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
		sh.setStatus(f.sts[len(f.sts)-1])
	default:
		sh.done(f.sts[0])
	}
	if len(sh.jobs) > 0 && !sh.opts.interactive {
		sh.notify()
	}
}

// texts are those of the processes.
func (f *waitFrame) texts(sh *Shell) []string {
	if f.stmt == nil {
		return []string{""}
	}
	if c, ok := f.stmt.Cmd.(*syntax.BinaryCmd); ok && len(f.kids) > 1 && len(f.stmt.Redirs) == 0 {
		var out []string
		for {
			out = append([]string{sh.commandText(c.Y)}, out...)
			x, ok := c.X.Cmd.(*syntax.BinaryCmd)
			if !ok || len(out) == len(f.kids)-1 {
				return append([]string{sh.commandText(c.X)}, out...)
			}
			c = x
		}
	}
	s := *f.stmt
	s.Background, s.Negated = false, false
	return []string{sh.commandText(&s)}
}

// stoppedHere makes a job of what a signal has stopped in the foreground. Loops around it end.
func (sh *Shell) stoppedHere(f *waitFrame) {
	j := sh.jobOf(f.job)
	if j == nil {
		j = sh.addJob(f.kids, f.pgid, f.texts(sh))
	}
	j.stopped, j.told, j.front = f.stopped, true, false
	sh.tellStopped(j)
	sh.setStatus(128 + f.stopped)
	if sh.loops > 0 {
		sh.ctl, sh.ctlN = ctlBreak, sh.loops
	}
}

func (sh *Shell) tellStopped(j *job) {
	sh.mark(j)
	sh.stderr("\n" + sh.jobLine(j, false))
}

func (f *waitFrame) leave(sh *Shell) { sh.closeProcFds(f.fds) }

func (f *waitFrame) clone() frame {
	c := *f
	c.kids, c.sts = copyKids(f.kids), append([]int(nil), f.sts...)
	return &c
}
