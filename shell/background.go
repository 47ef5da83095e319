package shell

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"agentrun.dev/proc"
	"mvdan.cc/sh/v3/syntax"
)

// background runs stmt & as a job.
func (sh *Shell) background(s *syntax.Stmt) {
	c, isPipe := s.Cmd.(*syntax.BinaryCmd)
	isPipe = isPipe && (c.Op == syntax.Pipe || c.Op == syntax.PipeAll) && len(s.Redirs) == 0 && !s.Negated
	var g group
	var texts []string
	if isPipe {
		g = *sh.startPipeline(c, true)
		texts = g.texts
	} else if child, sub := sh.fork(); child != nil {
		texts = []string{sh.jobText(s)}
		sh.aside(child, true, s)
		g.add(sh, child, false)
		sub.noerr = 0
		sub.start(func(x *Shell) { x.one(s) })
	}
	if len(g.kids) == 0 {
		sh.done(254)
		return
	}
	runtime.Gosched() // jobs begin in the order in which they were started, as far as that can be had
	j := sh.addJob(g.kids, g.pgid, texts)
	sh.markNew(j)
	sh.lastBg = j.pid()
	if sh.opts.interactive && sh.subshell == 0 {
		sh.stderr(fmt.Sprintf("[%d] %d\n", j.id, j.pid()))
	}
	sh.status = 0
}

// aside prepares a child without job control for the background: nothing comes from its input, and the terminal's
// interrupts aren't meant for it.
func (sh *Shell) aside(child *proc.Process, first bool, s *syntax.Stmt) {
	if sh.controls() {
		return
	}
	if first && !redirectsInput(s) {
		if err := child.OpenAt(0, "/dev/null", syscall.O_RDONLY, 0); err != nil {
			child.CloseFd(0)
		}
	}
	child.SetSignal(proc.SIGINT, proc.Ignore)
	child.SetSignal(proc.SIGQUIT, proc.Ignore)
}

// group is the processes of a pipeline.
type group struct {
	kids  []kid
	pgid  int
	texts []string
	short int // stages that couldn't be started
}

func (g *group) add(sh *Shell, child *proc.Process, front bool) {
	sh.join(child, &g.pgid, front)
	g.kids = append(g.kids, newKid(child))
}

func redirectsInput(s *syntax.Stmt) bool {
	for _, r := range s.Redirs {
		if r.N == nil && defaultFd(r.Op) == 0 {
			return true
		}
	}
	return false
}

// coproc runs a command with pipes to its input and from its output.
func (sh *Shell) coproc(c *syntax.CoprocClause) {
	name := "COPROC"
	if c.Name != nil {
		name = sh.string(c.Name)
	}
	child, sub := sh.fork()
	if child == nil {
		sh.done(254)
		return
	}
	r1, w1 := sh.p.Sandbox().RawPipe()
	r2, w2 := sh.p.Sandbox().RawPipe()
	child.Install(0, r1)
	child.Install(1, w2)
	rfd, wfd := 63, 60
	free := func(n int) int {
		for n > 10 {
			if _, err := sh.p.File(n); err != nil {
				break
			}
			n--
		}
		return n
	}
	rfd = free(rfd)
	sh.p.Install(rfd, r2)
	wfd = free(wfd)
	sh.p.Install(wfd, w1)
	sh.p.SetCloseOnExec(rfd, true)
	sh.p.SetCloseOnExec(wfd, true)
	stmt := c.Stmt
	sub.start(func(s *Shell) {
		s.p.CloseFd(rfd)
		s.p.CloseFd(wfd)
		s.one(stmt)
	})
	j := sh.addJob([]kid{newKid(child)}, 0, []string{"coproc " + name + " " + sh.commandText(stmt)})
	sh.markNew(j)
	j.coproc, j.fds = name, [2]int{rfd, wfd}
	sh.lastBg = child.Pid()
	v := sh.own(name)
	v.attr, v.set, v.arr = v.attr|attrIndexed, true, &indexed{dense: []string{strconv.Itoa(rfd), strconv.Itoa(wfd)}}
	sh.set(name+"_PID", strconv.Itoa(child.Pid()))
	sh.status = 0
}

// reap takes in children that have ended, without waiting.
func (sh *Shell) reap() {
	kids := sh.kids[:0]
	for _, k := range sh.kids {
		if k.ended(sh) {
			k.collect(sh)
			continue
		}
		kids = append(kids, k)
	}
	sh.kids = kids
	doneJobs := 0
	for _, j := range sh.jobs {
		if sh.poll(j); j.done {
			doneJobs++
		}
	}
	for i := 0; doneJobs > maxDoneJobs && i < len(sh.jobs); {
		if sh.jobs[i].done {
			sh.jobs = append(sh.jobs[:i:i], sh.jobs[i+1:]...)
			doneJobs--
			continue
		}
		i++
	}
}

// endJob takes in a job whose process has ended.
func (sh *Shell) endJob(j *job) {
	j.sts = make([]int, len(j.procs))
	for i := range j.procs {
		k := &j.procs[i]
		j.status, j.sig = k.collect(sh)
		j.sts[i], k.sig = j.status, j.sig
	}
	if sh.opts.pipefail {
		for _, st := range j.sts {
			if st != 0 {
				j.status = st
			}
		}
	}
	j.done, j.stopped, j.told = true, 0, false
	if j.coproc != "" {
		sh.p.CloseFd(j.fds[0])
		sh.p.CloseFd(j.fds[1])
		sh.unset(j.coproc)
		sh.unset(j.coproc + "_PID")
	}
}

func (sh *Shell) dropJob(j *job) {
	for i, x := range sh.jobs {
		if x == j {
			sh.jobs = append(sh.jobs[:i:i], sh.jobs[i+1:]...)
			return
		}
	}
}

// findJob finds a job by %n, %+, %-, %name, %?text or a process's number.
func (sh *Shell) findJob(spec string) *job {
	if !strings.HasPrefix(spec, "%") {
		pid, err := strconv.Atoi(spec)
		if err != nil {
			return nil
		}
		for i := len(sh.jobs) - 1; i >= 0; i-- {
			for _, p := range sh.jobs[i].procs {
				if p.pid == pid {
					return sh.jobs[i]
				}
			}
		}
		return nil
	}
	spec = spec[1:]
	live := sh.jobs
	switch spec {
	case "", "%", "+":
		j, _ := sh.marks()
		return j
	case "-":
		_, j := sh.marks()
		return j
	}
	if n, err := strconv.Atoi(spec); err == nil {
		return sh.jobOf(n)
	}
	if sh.ambiguous(spec) {
		return nil
	}
	part, anywhere := strings.CutPrefix(spec, "?")
	for _, j := range live {
		if anywhere && strings.Contains(j.text, part) || !anywhere && strings.HasPrefix(j.text, spec) {
			return j
		}
	}
	return nil
}
