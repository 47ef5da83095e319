package shell

import (
	"bytes"
	"strconv"
	"syscall"

	"agentrun.dev/proc"
	"agentrun.dev/vfs"
	"mvdan.cc/sh/v3/syntax"
)

// procFd is a descriptor that holds a process substitution.
type procFd struct {
	p  *proc.Process // whose descriptor: this shell's, or a child's that is being prepared
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
	c.begin = push
	c.p.Start(c)
}

// Run implements proc.Program: it begins, or goes on where the shell was captured, to the end of the process.
func (sh *Shell) Run(p *proc.Process) int {
	if begin := sh.begin; begin != nil {
		sh.begin = nil
		sh.applySignals()
		sh.guard(func() { begin(sh) })
	}
	for {
		sh.run(0)
		if sh.p.Killed() != 0 {
			return 128 + sh.p.Killed()
		}
		if sh.ctl == ctlExit {
			sh.status = sh.exitStatus
		}
		sh.ctl = ctlNone
		if sh.exitTrap || !sh.pushExitTrap() {
			sh.flush()
			sh.endHistory()
			if sh.dying != 0 {
				sh.p.SetSignal(sh.dying, proc.Default)
				sh.p.Post(sh.dying)
				return 128 + sh.dying
			}
			return sh.status & 0xff
		}
	}
}

// guard runs f; an error of an expansion takes its effect.
func (sh *Shell) guard(f func()) {
	defer func() {
		if r := recover(); r != nil {
			a, ok := r.(abort)
			if !ok {
				panic(r)
			}
			sh.aborted(a)
		}
	}()
	f()
}

func (sh *Shell) subshellCmd(c *syntax.Subshell) {
	child, sub := sh.fork()
	if child == nil {
		sh.done(254)
		return
	}
	pgid := 0
	sh.join(child, &pgid, true)
	sub.start(func(s *Shell) { s.body(c.Stmts) })
	sh.waitFor(child, pgid, afterCommand, len(sh.procFds))
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

// one runs a single statement in a process of its own, the & at its end not heeded.
func (sh *Shell) one(s *syntax.Stmt) {
	sh.tail = !hasSubst(s)
	sh.foreground(s)
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
	stmt := sh.stmtNow
	if g := sh.startPipeline(c, false); g != nil {
		sh.push(&waitFrame{kids: g.kids, then: afterPipeline, fds: len(sh.procFds), short: g.short, last: -1, pgid: g.pgid, stmt: stmt})
	}
}

// startPipeline starts the stages; nil if the last one runs in this shell.
func (sh *Shell) startPipeline(c *syntax.BinaryCmd, background bool) *group {
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
	if sh.hasTrap(sigDebug) {
		for i := len(stages) - 1; i >= 0; i-- {
			if call, ok := stages[i].Cmd.(*syntax.CallExpr); ok {
				sh.nowRuns(call, stages[i].Redirs)
				sh.debugTrap(nil)
			}
		}
	}
	g := &group{}
	n := len(stages)
	if background {
		for i := n - 1; i >= 0; i-- {
			g.texts = append(g.texts, sh.jobText(stages[i]))
		}
	}
	lastHere := sh.shopts.get("lastpipe") && !sh.controls() && !background
	var subs []*Shell
	var in vfs.File
	for i := 0; i < n; i++ {
		s := stages[n-1-i]
		if i == n-1 && lastHere {
			for k := len(subs) - 1; k >= 0; k-- {
				stage := stages[n-1-k]
				subs[k].start(func(s2 *Shell) { s2.stage(stage) })
			}
			sh.lastStage(s, in, g.kids)
			return nil
		}
		child, sub := sh.fork()
		if child == nil {
			if in != nil {
				in.Close()
			}
			break
		}
		if background {
			sh.aside(child, i == 0, s)
			sub.noerr = 0
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
		g.add(sh, child, !background)
		subs = append(subs, sub)
	}
	// The last one first: the one started last runs first, and so the stages begin from the left, as a kernel's do.
	for i := len(subs) - 1; i >= 0; i-- {
		stage := stages[n-1-i]
		subs[i].start(func(s2 *Shell) { s2.stage(stage) })
	}
	g.short = n - len(g.kids)
	return g
}

// stage runs one of a pipeline's commands. A simple one that fails is no error of its own: the pipeline's status tells.
func (sh *Shell) stage(s *syntax.Stmt) {
	_, sh.pastDebug = s.Cmd.(*syntax.CallExpr) // the DEBUG trap ran before the pipeline began
	if c, ok := s.Cmd.(*syntax.CallExpr); ok && sh.hasTrap(sigErr) && len(c.Args) > 0 {
		switch name := c.Args[0].Lit(); name {
		case "", "eval", "source", ".", "command", "builtin":
		default:
			if sh.funcs[name] == nil {
				sh.noerr++
			}
		}
	}
	sh.one(s)
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
	kids []kid
	undo []undoFd
}

func (f *lastStageFrame) step(sh *Shell) {
	st := sh.status
	sh.pop()
	sh.push(&waitFrame{kids: f.kids, then: afterPipeline, fds: len(sh.procFds), last: st})
}

func (f *lastStageFrame) clone() frame {
	c := *f
	c.kids = copyKids(f.kids)
	return &c
}

func (f *lastStageFrame) leave(sh *Shell) {
	f.lower(sh)
	sh.restoreFds(f.undo)
}

func (sh *Shell) lastStage(s *syntax.Stmt, in vfs.File, kids []kid) {
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
	r, ok := sh.logged()
	if !ok {
		if !sh.try.flight.on {
			sh.launch(c)
		}
		r = sh.land()
		sh.log(r)
	}
	sh.substSt, sh.status = r.status, r.status
	return r.out
}

// launch starts the process of a command substitution.
func (sh *Shell) launch(c *syntax.CmdSubst) {
	child, sub := sh.fork()
	if child == nil {
		panic(abort{kind: abortDiscard, status: 254})
	}
	r, w := sh.p.Sandbox().RawPipe()
	child.Install(1, w)
	fd, err := sh.hide(r)
	if err != nil {
		child.Abandon(1)
		sh.errorf("cannot make pipe for command substitution: %s", strerror(err))
		panic(abort{kind: abortDiscard, status: 1})
	}
	if !sh.opts.posix && !sh.shopts.get("inherit_errexit") {
		sub.opts.errexit = false
	}
	sub.traceLevel++
	fl := &sh.try.flight
	fl.on, fl.kid, fl.fd, fl.out = true, newKid(child), fd, fl.out[:0]
	sub.unit = sh.unitOf(c)
	sub.start(func(s *Shell) { s.body(c.Stmts) })
}

// land waits for the command substitution in flight: for its output, then for its process.
func (sh *Shell) land() result {
	fl := &sh.try.flight
	f, err := sh.p.File(fl.fd)
	limit := int(sh.p.Sandbox().Limits().Memory)
	read := func() error {
		n, err := f.Read(fl.out[len(fl.out):cap(fl.out)])
		fl.out = fl.out[:len(fl.out)+n]
		return err
	}
	for err == nil && len(fl.out) <= limit {
		if len(fl.out) == cap(fl.out) {
			sh.makeRoom(cap(fl.out))
			fl.out = append(make([]byte, 0, max(512, 2*cap(fl.out))), fl.out...)
		}
		if err = sh.rest(read); err == syscall.EINTR && sh.p.Killed() == 0 {
			sh.takeSignals()
			err = nil
		}
	}
	if len(fl.out) > limit {
		sh.errorf("command substitution: memory limit exceeded")
		if c := fl.kid.process(sh); c != nil {
			c.Post(proc.SIGKILL)
		}
		sh.landed()
		panic(abort{kind: abortDiscard, status: 1})
	}
	st, _, _ := sh.await(&fl.kid)
	text := sh.substText(fl.out)
	sh.landed()
	return result{out: text, status: st}
}

// landed ends a flight.
func (sh *Shell) landed() {
	fl := &sh.try.flight
	sh.p.CloseFd(fl.fd)
	if fl.on = false; cap(fl.out) > maxBuiltinOut {
		fl.out = nil
	}
}

// minHidden is where descriptors begin that scripts aren't meant to see.
const minHidden = 64

// hide gives a file a descriptor out of the way, which commands don't inherit.
func (sh *Shell) hide(f vfs.File) (int, error) {
	n := minHidden
	if n >= sh.p.Sandbox().Limits().Files {
		n = minSaved
	}
	for {
		if _, err := sh.p.File(n); err != nil {
			break
		}
		n++
	}
	err := sh.p.Install(n, f)
	sh.p.SetCloseOnExec(n, true)
	return n, err
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
	if r, ok := sh.logged(); ok {
		sh.substSt = 0
		return r.out
	}
	data, err := sh.readFile(name, int(sh.p.Sandbox().Limits().Memory))
	if err != nil {
		sh.errorf("%s: %s", name, strerror(err))
		sh.status = 1
		return ""
	}
	sh.substSt = 0
	text := sh.substText(data)
	sh.log(result{out: text})
	return text
}

// funSubst runs ${ …; } and ${| …; } in this shell.
func (sh *Shell) funSubst(c *syntax.CmdSubst) string {
	r, w := sh.p.Sandbox().RawPipe()
	var undo []undoFd
	if !c.ReplyVar {
		sh.keep(1, true, &undo)
		sh.p.Install(1, w)
	}
	sh.touch()
	sh.pinned++
	defer func() { sh.pinned-- }()
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
	if r, ok := sh.logged(); ok {
		sh.procFds = append(sh.procFds, procFd{sh.p, r.fd})
		return r.out
	}
	child, sub := sh.fork()
	if child == nil {
		panic(abort{kind: abortDiscard, status: 254})
	}
	sub.traceLevel++
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
	sub.unit = sh.unitOf(c)
	sub.start(func(s *Shell) { s.body(c.Stmts) })
	sh.lastBg = child.Pid()
	sh.kids = append(sh.kids, newKid(child))
	name := "/dev/fd/" + strconv.Itoa(n)
	sh.log(result{out: name, fd: n})
	return name
}

// closeProcFds closes the descriptors of process substitutions after the first n.
func (sh *Shell) closeProcFds(n int) {
	for len(sh.procFds) > n {
		f := sh.procFds[len(sh.procFds)-1]
		sh.procFds = sh.procFds[:len(sh.procFds)-1]
		if f.p != nil {
			f.p.CloseFd(f.fd)
		}
	}
}

// maxDoneJobs is how many ended jobs are remembered for wait.
const maxDoneJobs = 1024
