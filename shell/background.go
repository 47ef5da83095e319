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
	child, sub := sh.fork()
	if child == nil {
		sh.done(254)
		return
	}
	if !sh.opts.monitor && !redirectsInput(s) {
		if err := child.OpenAt(0, "/dev/null", syscall.O_RDONLY, 0); err != nil {
			child.CloseFd(0)
		}
	}
	if sh.opts.monitor {
		child.SetPgid(0)
	} else {
		child.SetSignal(proc.SIGINT, proc.Ignore)
		child.SetSignal(proc.SIGQUIT, proc.Ignore)
	}
	fg := *s
	fg.Background, fg.Disown, fg.Coprocess = false, false, false
	sub.noerr = 0
	sub.start(func(x *Shell) { x.one(s) })
	runtime.Gosched() // jobs begin in the order in which they were started, as far as that can be had
	j := sh.addJob([]kid{newKid(child)}, sh.commandText(&fg))
	sh.lastBg = child.Pid()
	if sh.opts.interactive {
		sh.stderr(fmt.Sprintf("[%d] %d\n", j.id, child.Pid()))
	}
	sh.status = 0
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
	j := sh.addJob([]kid{newKid(child)}, "coproc "+name+" "+sh.commandText(stmt))
	j.coproc, j.fds = name, [2]int{rfd, wfd}
	sh.lastBg = child.Pid()
	v := sh.own(name)
	v.attr, v.set, v.arr = v.attr|attrIndexed, true, &indexed{dense: []string{strconv.Itoa(rfd), strconv.Itoa(wfd)}}
	sh.set(name+"_PID", strconv.Itoa(child.Pid()))
	sh.status = 0
}

// job is a command in the background.
type job struct {
	id     int
	procs  []kid
	text   string
	done   bool
	status int
	sig    int  // that ended it
	told   bool // its end was reported
	coproc string
	fds    [2]int
	nohup  bool
}

func (j *job) pid() int { return j.procs[len(j.procs)-1].pid }

func (sh *Shell) addJob(ps []kid, text string) *job {
	if len(sh.jobs) == 0 {
		sh.nextJob = 1
	}
	j := &job{id: sh.nextJob, procs: ps, text: strings.TrimSuffix(strings.TrimSpace(text), "&")}
	sh.nextJob++
	sh.jobs = append(sh.jobs, j)
	return j
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
		if !j.done && j.procs[len(j.procs)-1].ended(sh) {
			sh.endJob(j)
		}
		if j.done {
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
	for i := range j.procs {
		j.status, j.sig = j.procs[i].collect(sh)
	}
	j.done = true
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
		if len(live) > 0 {
			return live[len(live)-1]
		}
		return nil
	case "-":
		if len(live) > 1 {
			return live[len(live)-2]
		}
		return nil
	}
	n, err := strconv.Atoi(spec)
	for _, j := range live {
		switch {
		case err == nil:
			if j.id == n {
				return j
			}
		case strings.HasPrefix(spec, "?"):
			if strings.Contains(j.text, spec[1:]) {
				return j
			}
		case strings.HasPrefix(j.text, spec):
			return j
		}
	}
	return nil
}
