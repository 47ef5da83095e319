package shell

import (
	"bytes"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"agentrun.dev/proc"
	"agentrun.dev/vfs"
	"mvdan.cc/sh/v3/syntax"
)

// procFd is a descriptor that holds a process substitution.
type procFd struct {
	p  *proc.Process
	fd int
}

// maxSubshell bounds nested subshells: each holds its parent's statement.
const maxSubshell = 2000

// fork makes a child process and a copy of the shell for it. A failure is reported.
func (sh *Shell) fork() (*proc.Process, *Shell) {
	sh.reap()
	if sh.subshell >= maxSubshell {
		sh.errorf("fork: too many nested subshells")
		return nil, nil
	}
	child, err := sh.p.Fork()
	if err != nil {
		sh.errorf("fork: %s", forkError(err))
		return nil, nil
	}
	c := sh.clone()
	c.p = child
	return child, c
}

// start runs what push prepares in the child, to the end of the process.
func (c *Shell) start(push func(*Shell)) {
	c.p.Start(proc.Func(func(p *proc.Process) int {
		c.applySignals()
		return c.finish(func() { push(c) })
	}))
}

// finish runs what push prepares and the EXIT trap, and returns the status to exit with.
func (sh *Shell) finish(push func()) int {
	func() {
		defer func() {
			if r := recover(); r != nil {
				a, ok := r.(abort)
				if !ok {
					panic(r)
				}
				sh.aborted(a)
			}
		}()
		push()
	}()
	sh.run(0)
	if sh.p.Killed() != 0 {
		return 128 + sh.p.Killed()
	}
	if sh.ctl == ctlExit {
		sh.status = sh.exitStatus
	}
	sh.ctl = ctlNone
	if !sh.exitTrap {
		sh.runExitTrap()
	}
	sh.flush()
	return sh.status & 0xff
}

func (sh *Shell) subshellCmd(c *syntax.Subshell) {
	child, sub := sh.fork()
	if child == nil {
		sh.done(254)
		return
	}
	sub.start(func(s *Shell) { s.body(c.Stmts) })
	st, err := sh.p.WaitQuiet(child)
	if err != nil {
		return
	}
	sh.reportSignal(child)
	sh.done(st)
}

// body runs the statements of a subshell; the last may take the process over.
func (sh *Shell) body(stmts []*syntax.Stmt) {
	if len(stmts) == 1 && !hasSubst(stmts[0]) {
		sh.tail = true
		sh.stmt(stmts[0])
		return
	}
	sh.list(stmts)
}

// hasSubst tells whether a statement's redirections could still need the shell after it was replaced.
func hasSubst(s *syntax.Stmt) bool {
	found := false
	for _, r := range s.Redirs {
		syntax.Walk(r, func(n syntax.Node) bool {
			if _, ok := n.(*syntax.ProcSubst); ok {
				found = true
			}
			return !found
		})
	}
	return found
}

// pipeline runs x | y | z: each stage in a process of its own.
func (sh *Shell) pipeline(c *syntax.BinaryCmd) {
	stages := []*syntax.Stmt{c.Y}
	errs := []bool{c.Op == syntax.PipeAll}
	for {
		x, ok := c.X.Cmd.(*syntax.BinaryCmd)
		if !ok || x.Op != syntax.Pipe && x.Op != syntax.PipeAll || len(c.X.Redirs) > 0 || c.X.Negated {
			break
		}
		c = x
		stages = append(stages, c.Y)
		errs = append(errs, c.Op == syntax.PipeAll)
	}
	stages = append(stages, c.X)
	n := len(stages)
	lastHere := sh.shopts.get("lastpipe") && !sh.opts.monitor
	var kids []*proc.Process
	var subs []*Shell
	var in vfs.File
	for i := 0; i < n; i++ {
		s := stages[n-1-i]
		if i == n-1 && lastHere {
			for k := len(subs) - 1; k >= 0; k-- {
				subs[k].start(func(s2 *Shell) { s2.body([]*syntax.Stmt{stages[n-1-k]}) })
			}
			sh.lastStage(s, in, kids)
			return
		}
		child, sub := sh.fork()
		if child == nil {
			if in != nil {
				in.Close()
			}
			break
		}
		if in != nil {
			child.Install(0, in)
			in = nil
		}
		if i < n-1 {
			r, w := sh.p.Sandbox().RawPipe()
			child.Install(1, w)
			if errs[n-2-i] {
				child.Dup2(1, 2)
			}
			in = r
		}
		kids, subs = append(kids, child), append(subs, sub)
	}
	// The last one first: the one started last runs first, and so the stages begin from the left, as a kernel's do.
	for i := len(subs) - 1; i >= 0; i-- {
		subs[i].start(func(s2 *Shell) { s2.body([]*syntax.Stmt{stages[n-1-i]}) })
	}
	sts := make([]int, 0, n)
	for i, k := range kids {
		st, err := sh.p.WaitQuiet(k)
		if err != nil {
			return
		}
		if i == len(kids)-1 {
			sh.reportSignal(k)
		}
		sts = append(sts, st)
	}
	for len(sts) < n {
		sts = append(sts, 254)
	}
	sh.endPipeline(sts)
}

func (sh *Shell) endPipeline(sts []int) {
	sh.pipestatus = sts
	sh.status = sts[len(sts)-1]
	if sh.opts.pipefail {
		for _, st := range sts {
			if st != 0 {
				sh.status = st
			}
		}
	}
	sh.checkErr()
}

// lastStageFrame ends a pipeline whose last stage ran in this shell.
type lastStageFrame struct {
	raised
	kids []*proc.Process
	undo []undoFd
}

func (f *lastStageFrame) step(sh *Shell) {
	st := sh.status
	sh.pop()
	sts := make([]int, 0, len(f.kids)+1)
	for _, k := range f.kids {
		s, err := sh.p.WaitQuiet(k)
		if err != nil {
			return
		}
		sts = append(sts, s)
	}
	sh.endPipeline(append(sts, st))
}

func (f *lastStageFrame) leave(sh *Shell) {
	f.lower(sh)
	sh.restoreFds(f.undo)
}

func (sh *Shell) lastStage(s *syntax.Stmt, in vfs.File, kids []*proc.Process) {
	f := &lastStageFrame{kids: kids}
	sh.keep(0, true, &f.undo)
	sh.p.Install(0, in)
	f.raise(sh)
	sh.push(f)
	sh.stmt(s)
}

// commandSubst runs $(…) and returns its output without the newlines at the end.
func (sh *Shell) commandSubst(c *syntax.CmdSubst) string {
	if c.TempFile || c.ReplyVar {
		return sh.funSubst(c)
	}
	if len(c.Stmts) == 0 {
		sh.substSt = 0
		return ""
	}
	if s := c.Stmts[0]; len(c.Stmts) == 1 && s.Cmd == nil && len(s.Redirs) == 1 && s.Redirs[0].Op == syntax.RdrIn && s.Redirs[0].N == nil && !s.Negated && !s.Background {
		return sh.readSubst(s.Redirs[0])
	}
	child, sub := sh.fork()
	if child == nil {
		panic(abort{kind: abortDiscard, status: 254})
	}
	r, w := sh.p.Sandbox().RawPipe()
	child.Install(1, w)
	if !sh.opts.posix && !sh.shopts.get("inherit_errexit") {
		sub.opts.errexit = false
	}
	sub.start(func(s *Shell) { s.body(c.Stmts) })
	limit := int(sh.p.Sandbox().Limits().Memory)
	out, err := sh.p.Drain(r, limit)
	r.Close()
	if err == syscall.EFBIG {
		sh.errorf("command substitution: memory limit exceeded")
		child.Post(proc.SIGKILL)
		panic(abort{kind: abortDiscard, status: 1})
	}
	st, _ := sh.p.WaitQuiet(child)
	sh.substSt, sh.status = st, st
	return sh.substText(out)
}

func (sh *Shell) substText(out []byte) string {
	if bytes.IndexByte(out, 0) >= 0 {
		sh.errorf("warning: command substitution: ignored null byte in input")
		out = bytes.ReplaceAll(out, []byte{0}, nil)
	}
	return string(bytes.TrimRight(out, "\n"))
}

// readSubst is $(<file).
func (sh *Shell) readSubst(r *syntax.Redirect) string {
	name, ok := sh.redirName(r)
	sh.substSt = 1
	if !ok {
		return ""
	}
	data, err := sh.readFile(name, int(sh.p.Sandbox().Limits().Memory))
	if err != nil {
		sh.errorf("%s: %s", name, strerror(err))
		sh.status = 1
		return ""
	}
	sh.substSt = 0
	return sh.substText(data)
}

// funSubst runs ${ …; } and ${| …; } in this shell.
func (sh *Shell) funSubst(c *syntax.CmdSubst) string {
	r, w := sh.p.Sandbox().RawPipe()
	var undo []undoFd
	if !c.ReplyVar {
		sh.keep(1, true, &undo)
		sh.p.Install(1, w)
	}
	done := make(chan []byte, 1)
	go func() {
		out, _ := sh.p.Drain(r, int(sh.p.Sandbox().Limits().Memory))
		r.Close()
		done <- out
	}()
	if sh.depth++; sh.depth < maxSubshell {
		sh.nested(func() { sh.list(c.Stmts) })
	}
	sh.depth--
	sh.substSt = sh.status
	if c.ReplyVar {
		w.Close()
		<-done
		return sh.str("REPLY")
	}
	sh.restoreFds(undo)
	return sh.substText(<-done)
}

// procSubst runs <(…) and >(…) and returns the name of its descriptor.
func (sh *Shell) procSubst(c *syntax.ProcSubst) string {
	child, sub := sh.fork()
	if child == nil {
		panic(abort{kind: abortDiscard, status: 254})
	}
	r, w := sh.p.Sandbox().RawPipe()
	mine, theirs, fd := r, w, 1
	if c.Op == syntax.CmdOut {
		mine, theirs, fd = w, r, 0
	}
	child.Install(fd, theirs)
	n := 63
	for n > 10 {
		if _, err := sh.p.File(n); err != nil {
			break
		}
		n--
	}
	if err := sh.p.Install(n, mine); err != nil {
		child.Abandon(1)
		sh.errorf("cannot make pipe for process substitution: %s", strerror(err))
		panic(abort{kind: abortDiscard, status: 1})
	}
	sh.procFds = append(sh.procFds, procFd{sh.p, n})
	sub.opts.errexit = false
	sub.start(func(s *Shell) { s.body(c.Stmts) })
	sh.lastBg = child.Pid()
	sh.kids = append(sh.kids, child)
	return "/dev/fd/" + strconv.Itoa(n)
}

// closeProcFds closes the descriptors of process substitutions after the first n.
func (sh *Shell) closeProcFds(n int) {
	for len(sh.procFds) > n {
		f := sh.procFds[len(sh.procFds)-1]
		sh.procFds = sh.procFds[:len(sh.procFds)-1]
		f.p.CloseFd(f.fd)
	}
}

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
	sub.start(func(x *Shell) { x.body([]*syntax.Stmt{&fg}) })
	runtime.Gosched() // jobs begin in the order in which they were started, as far as that can be had
	j := sh.addJob([]*proc.Process{child}, sh.nodeText(&fg))
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
		s.body([]*syntax.Stmt{stmt})
	})
	j := sh.addJob([]*proc.Process{child}, "coproc "+name+" "+sh.nodeText(stmt))
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
	procs  []*proc.Process
	text   string
	done   bool
	status int
	told   bool // its end was reported
	coproc string
	fds    [2]int
	nohup  bool
}

func (j *job) pid() int { return j.procs[len(j.procs)-1].Pid() }

func (sh *Shell) addJob(ps []*proc.Process, text string) *job {
	if len(sh.jobs) == 0 {
		sh.nextJob = 1
	}
	j := &job{id: sh.nextJob, procs: ps, text: strings.TrimSuffix(strings.TrimSpace(text), "&")}
	sh.nextJob++
	sh.jobs = append(sh.jobs, j)
	return j
}

// maxDoneJobs is how many ended jobs are remembered for wait.
const maxDoneJobs = 1024

// reap takes in children that have ended, without waiting.
func (sh *Shell) reap() {
	kids := sh.kids[:0]
	for _, k := range sh.kids {
		select {
		case <-k.Done():
			sh.p.Wait(k)
		default:
			kids = append(kids, k)
		}
	}
	sh.kids = kids
	doneJobs := 0
	for _, j := range sh.jobs {
		if !j.done {
			select {
			case <-j.procs[len(j.procs)-1].Done():
				sh.endJob(j)
			default:
			}
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
	for _, p := range j.procs {
		st, err := sh.p.Wait(p)
		if err == nil {
			j.status = st
		} else {
			j.status = p.Status()
		}
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
				if p.Pid() == pid {
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
