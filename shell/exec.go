package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// stmt starts a statement. What takes more than a moment is left to a frame.
func (sh *Shell) stmt(s *syntax.Stmt) {
	tail := sh.tail
	sh.tail = false
	sh.line = sh.base + int(s.Pos().Line())
	if sh.opts.noexec && !sh.opts.interactive {
		return
	}
	if s.Background || s.Disown || s.Coprocess {
		sh.background(s)
		return
	}
	sh.tail = tail
	sh.foreground(s)
}

// foreground starts a statement, whether or not a & follows it.
func (sh *Shell) foreground(s *syntax.Stmt) {
	tail := sh.tail
	sh.tail = false
	sh.line = sh.base + int(s.Pos().Line())
	sh.stmtNow = s
	t := sh.attemptAt(attemptStmt)
	if sh.pinned == 0 {
		if sh.loose = sh.loose[:0]; sh.memory.brief > 0 {
			sh.giveRoom()
		}
		t.stmt, t.tail = s, tail
	}
	if s.Negated {
		f := &negFrame{}
		f.raise(sh)
		sh.push(f)
	}
	if call, ok := s.Cmd.(*syntax.CallExpr); ok {
		sh.simple(call, s.Redirs, tail && !s.Negated)
		return
	}
	if c, ok := s.Cmd.(*syntax.Subshell); ok {
		sh.nowRuns(c, s.Redirs)
	}
	if s.Cmd == nil {
		sh.onlyRedirs(s.Redirs)
		return
	}
	if len(s.Redirs) > 0 {
		_, isDecl := s.Cmd.(*syntax.DeclClause)
		if _, isFunc := s.Cmd.(*syntax.FuncDecl); !isFunc {
			f := &restoreFrame{check: true, fds: len(sh.procFds)}
			undo, ok := sh.redirect(s.Redirs, true)
			f.undo = undo
			if !ok {
				sh.status = 1
				f.leave(sh)
				sh.checkErr()
				return
			}
			f.check = isDecl
			sh.push(f)
			if t := sh.attemptAt(attemptCommand); sh.pinned == 0 {
				t.cmd = s.Cmd
			}
		}
	}
	sh.compound(s.Cmd)
}

func (sh *Shell) onlyRedirs(redirs []*syntax.Redirect) {
	mark := len(sh.procFds)
	sh.substSt = -1
	for _, r := range redirs {
		if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
			sh.redirsAside(redirs)
			return
		}
	}
	undo, ok := sh.redirect(redirs, true)
	sh.restoreFds(undo)
	sh.closeProcFds(mark)
	sh.status = 0
	if sh.substSt >= 0 {
		sh.status = sh.substSt
	}
	if !ok {
		sh.status = 1
	}
	sh.checkErr()
}

// redirsAside performs redirections without a command in a process of their own, where bash does it too if a variable is
// to hold the descriptor: so the variable isn't set.
func (sh *Shell) redirsAside(redirs []*syntax.Redirect) {
	child, sub := sh.fork()
	if child == nil {
		sh.done(254)
		return
	}
	sub.start(func(s *Shell) {
		if _, ok := s.redirect(redirs, false); !ok {
			s.status = 1
		} else {
			s.status = 0
		}
	})
	sh.waitOne(child, afterCommand, len(sh.procFds))
}

// compound starts any command but a simple one.
func (sh *Shell) compound(cmd syntax.Command) {
	switch c := cmd.(type) {
	case *syntax.Block:
		sh.list(c.Stmts)
	case *syntax.Subshell:
		sh.subshellCmd(c)
	case *syntax.IfClause:
		sh.push(&ifFrame{c: c})
	case *syntax.WhileClause:
		f := &whileFrame{c: c}
		f.enter(sh)
		sh.push(f)
	case *syntax.ForClause:
		sh.forClause(c)
	case *syntax.CaseClause:
		sh.debugTrap(c)
		if sh.opts.xtrace {
			sh.trace(strings.TrimRight(sh.commandText(c), " "))
		}
		value := sh.string(c.Word)
		sh.push(&caseFrame{c: c, value: value})
	case *syntax.BinaryCmd:
		if c.Op == syntax.Pipe || c.Op == syntax.PipeAll {
			sh.pipeline(c)
			return
		}
		f := &andOrFrame{cmd: c}
		f.raise(sh)
		sh.push(f)
		sh.stmt(c.X)
	case *syntax.FuncDecl:
		sh.defineFunc(c)
	case *syntax.ArithmCmd:
		sh.arithCmd(c)
	case *syntax.TestClause:
		sh.testClause(c)
	case *syntax.DeclClause:
		sh.declClause(c)
	case *syntax.TimeClause:
		sh.timeClause(c)
	case *syntax.CoprocClause:
		sh.coproc(c)
	default:
		sh.errorf("unsupported command")
		sh.status = 2
	}
}

func (sh *Shell) forClause(c *syntax.ForClause) {
	if l, ok := c.Loop.(*syntax.CStyleLoop); ok {
		f := &cForFrame{c: c, l: l}
		f.enter(sh)
		sh.push(f)
		return
	}
	l := c.Loop.(*syntax.WordIter)
	name := l.Name.Value
	if !validName(name) {
		sh.errorf("`%s': not a valid identifier", name)
		sh.status = 1
		return
	}
	mark := len(sh.procFds)
	words := sh.params
	if l.InPos.IsValid() {
		words = sh.words(l.Items)
	}
	if len(sh.procFds) > mark {
		sh.push(&restoreFrame{fds: mark})
	}
	if c.Select {
		sh.debugTrap(c)
		if sh.opts.xtrace {
			sh.trace(sh.commandText(c))
		}
		f := &selectFrame{c: c, name: name, words: words}
		f.enter(sh)
		sh.push(f)
		return
	}
	f := &forFrame{c: c, name: name, words: words}
	f.enter(sh)
	sh.push(f)
}

func (sh *Shell) defineFunc(c *syntax.FuncDecl) {
	name := c.Name.Value
	if sh.opts.posix && isSpecialBuiltin(name) {
		sh.errorf("`%s': is a special builtin", name)
		sh.exitNow(2)
		return
	}
	if strings.ContainsAny(name, "'\"\\$`") {
		sh.errorf("`%s': not a valid identifier", name)
		sh.status = 1
		return
	}
	if f := sh.funcs[name]; f != nil && f.ro {
		sh.errorf("%s: readonly function", name)
		sh.status = 1
		return
	}
	sh.setFunc(name, &function{decl: c, base: sh.base, unit: sh.unit, source: sh.sourceName()})
	sh.status = 0
}

func (sh *Shell) sourceName() string {
	if len(sh.calls) > 0 && sh.source != "" {
		return sh.source
	}
	if sh.scriptFile != "" {
		return sh.scriptFile
	}
	return "environment"
}

// setFunc defines a function, nil removes it.
func (sh *Shell) setFunc(name string, f *function) {
	if sh.funcsOwn != sh.tok {
		m := make(map[string]*function, len(sh.funcs)+1)
		for k, v := range sh.funcs {
			m[k] = v
		}
		sh.funcs, sh.funcsOwn = m, sh.tok
	}
	if f == nil {
		delete(sh.funcs, name)
	} else {
		sh.funcs[name] = f
	}
	sh.envStale = true
	sh.charge(functionSize)
}

// checkErr is passed by each command that has ended: the ERR trap and set -e.
func (sh *Shell) checkErr() {
	if sh.status == 0 || sh.noerr > 0 || sh.ctl != ctlNone {
		return
	}
	if sh.hasTrap(sigErr) && !sh.inTrap[sigErr] {
		sh.push(&trapFrame{sig: sigErr}) // errexit follows it
		return
	}
	sh.errexit()
}

// errexit ends the shell after a failure, with set -e.
func (sh *Shell) errexit() {
	if sh.opts.errexit && sh.ctl == ctlNone {
		sh.exitNow(sh.status)
	}
}

// setStatus sets $? and PIPESTATUS to what a command ended with.
func (sh *Shell) setStatus(status int) {
	sh.status = status
	sh.pipestatus = append(sh.pipestatus[:0:0], status)
}

// done ends a command with a status.
func (sh *Shell) done(status int) {
	sh.setStatus(status)
	sh.checkErr()
}

// simple runs assignments and a command.
func (sh *Shell) simple(c *syntax.CallExpr, redirs []*syntax.Redirect, tail bool) {
	sh.nowRuns(c, redirs)
	past := sh.pastDebug
	sh.pastDebug = false
	if sh.hasTrap(sigDebug) && !sh.inTrap[sigDebug] && !past {
		sh.push(&debugFrame{cmd: c, redirs: redirs})
		return
	}
	sh.simpleNow(c, redirs, tail)
}

// simpleNow does so without a trap before.
func (sh *Shell) simpleNow(c *syntax.CallExpr, redirs []*syntax.Redirect, tail bool) {
	mark := len(sh.procFds)
	sh.substSt = -1
	args := sh.words(c.Args)
	if len(args) == 0 {
		sh.bareAssigns(c, redirs, mark)
		return
	}
	if sh.opts.xtrace && len(c.Assigns) == 0 {
		sh.traceArgs(args)
	}
	name := args[0]
	sh.lastArg = args[len(args)-1]
	fn := sh.funcs[name]
	if fn != nil && !(sh.opts.posix && isSpecialBuiltin(name)) {
		sh.callWith(c, redirs, mark, args, func() { sh.callFunc(fn, args) })
		return
	}
	if b := sh.builtin(name); b != nil {
		sh.runBuiltin(c, redirs, mark, args, b)
		return
	}
	sh.external(c, redirs, mark, args, tail)
}

// bareAssigns runs a command that is only assignments and redirections.
func (sh *Shell) bareAssigns(c *syntax.CallExpr, redirs []*syntax.Redirect, mark int) {
	if len(redirs) > 0 {
		undo, ok := sh.redirect(redirs, true)
		sh.restoreFds(undo)
		if !ok {
			sh.lastArg = ""
			sh.closeProcFds(mark)
			sh.done(1)
			return
		}
	}
	f := &assignFrame{assigns: c.Assigns, fds: mark}
	if len(c.Assigns) > 1 && sh.pinned == 0 {
		sh.push(f)
		return
	}
	for f.i < len(f.assigns) {
		if !f.one(sh) {
			f.leave(sh)
			return
		}
	}
	f.leave(sh)
	f.end(sh)
}

// assignFrame performs several assignments, each an attempt of its own.
type assignFrame struct {
	assigns []*syntax.Assign
	i       int
	fds     int
}

func (f *assignFrame) step(sh *Shell) {
	if f.i < len(f.assigns) {
		sh.attemptAt(attemptStep)
		if !f.one(sh) {
			sh.pop()
		}
		return
	}
	sh.pop()
	f.end(sh)
}

// one performs the next assignment.
func (f *assignFrame) one(sh *Shell) bool {
	if sh.assign(f.assigns[f.i]) {
		f.i++
		return true
	}
	sh.status = 1
	if sh.ctl == ctlNone {
		sh.ctl = ctlDiscard
	}
	if sh.opts.posix {
		sh.exitNow(sh.fatalStatus())
	}
	return false
}

func (f *assignFrame) end(sh *Shell) { sh.done(max(0, sh.substSt)) }

func (f *assignFrame) leave(sh *Shell) {
	sh.closeProcFds(f.fds)
	sh.lastArg = ""
}

// callWith applies redirections and temporary variables around what push starts.
func (sh *Shell) callWith(c *syntax.CallExpr, redirs []*syntax.Redirect, mark int, args []string, push func()) {
	f := &restoreFrame{check: true, fds: mark}
	undo, ok := sh.redirect(redirs, true)
	f.undo = undo
	if !ok {
		f.leave(sh)
		sh.done(1)
		return
	}
	sh.push(f)
	if len(c.Assigns) > 0 {
		f.temp = true
		sh.pushTemp(c.Assigns)
		if sh.opts.xtrace {
			sh.traceArgs(args)
		}
	}
	push()
}

// pushTemp makes a scope of the variables before a command.
func (sh *Shell) pushTemp(assigns []*syntax.Assign) {
	sc := &scope{own: sh.tok, temp: true}
	sh.scopes = append(sh.scopes, sc)
	for _, a := range assigns {
		if a.Index != nil {
			sh.errorf("`%s[%s]': not a valid identifier", a.Name.Value, sh.subscript(a.Index, a.Name.Value))
			continue
		}
		value := sh.value(a.Value)
		if a.Array != nil { // no list for one command, but its text
			value = strings.TrimPrefix(sh.cmdPrinter(sh.unit, false).assign(a), a.Name.Value+"=")
		}
		name, _ := sh.resolve(a.Name.Value)
		if old, _ := sh.find(name); old != nil && old.attr&attrReadonly != 0 {
			sh.errorf("%s: readonly variable", name)
			continue
		}
		if a.Append {
			value = sh.str(name) + value
		}
		v := &variable{own: sh.tok, attr: attrExport, set: true, temp: true}
		if old, _ := sh.find(name); old != nil && !old.isArray() {
			v.attr |= old.attr & (attrInteger | attrLower | attrUpper | attrCapital)
			value, _ = sh.combine(v, "", value, false)
		}
		v.str = value
		sc.mutable(sh.tok, name)[name] = v
		sh.changed(name)
		if sh.opts.xtrace {
			sh.trace(name + "=" + quoteSet(value))
		}
	}
	sh.envStale = true
}

func (sh *Shell) popScope() {
	n := len(sh.scopes) - 1
	sc := sh.scopes[n]
	sh.scopes[n] = nil
	sh.scopes = sh.scopes[:n]
	for name, v := range sc.vars {
		if v.attr&attrExport != 0 {
			sh.envStale = true
		}
		sh.changed(name)
	}
	sh.envStale = true
	if sc.opts != nil {
		sh.opts = *sc.opts
	}
}

// callFunc pushes the frame of a function.
func (sh *Shell) callFunc(fn *function, args []string) {
	name := args[0]
	limit := sh.p.Sandbox().Limits().Depth
	if n, ok := plainInt(sh.str("FUNCNEST")); ok && n > 0 {
		limit = min(limit, int(n))
	}
	if sh.depth >= limit {
		sh.errorf("%s: maximum function nesting level exceeded (%d)", name, limit)
		sh.status, sh.ctl = 1, ctlDiscard
		return
	}
	if len(args) > manyWords {
		sh.charge(wordSize * len(args))
	}
	f := &funcFrame{params: sh.params, base: sh.base, unit: sh.unit, source: sh.source, line: sh.line, loops: sh.loops, optPos: sh.optPos, fn: fn}
	sh.scopes = append(sh.scopes, &scope{own: sh.tok})
	sh.calls = append(sh.calls, call{name: name, source: fn.source, line: sh.line})
	sh.params, sh.base, sh.unit, sh.source, sh.loops = args[1:], fn.base, fn.unit, fn.source, 0
	f.traps = sh.hideTraps()
	sh.depth++
	sh.push(f)
}

// runBuiltin runs a builtin in this process.
func (sh *Shell) runBuiltin(c *syntax.CallExpr, redirs []*syntax.Redirect, mark int, args []string, b builtinFunc) {
	special := isSpecialBuiltin(args[0])
	if args[0] == "exec" {
		sh.execBuiltin(c, redirs, args)
		return
	}
	if len(c.Assigns) == 0 && len(redirs) == 0 && len(sh.procFds) == mark {
		n := len(sh.frames)
		st := b(sh, args)
		if st == pushed {
			// Its frames are on top: what follows them checks the status.
			sh.insert(n, &restoreFrame{check: true, fds: mark})
			return
		}
		sh.builtinDone(args[0], st, false)
		return
	}
	f := &restoreFrame{check: true, fds: mark}
	undo, ok := sh.redirect(redirs, true)
	f.undo = undo
	if !ok {
		f.leave(sh)
		if special && sh.opts.posix {
			sh.exitNow(1)
			return
		}
		sh.done(1)
		return
	}
	sh.push(f)
	if len(c.Assigns) > 0 {
		if special && sh.opts.posix {
			for _, a := range c.Assigns {
				sh.assign(a)
			}
		} else {
			f.temp = true
			sh.pushTemp(c.Assigns)
		}
		if sh.opts.xtrace {
			sh.traceArgs(args)
		}
	}
	st := b(sh, args)
	if st == pushed {
		return
	}
	sh.builtinDone(args[0], st, len(sh.frames) > 0 && sh.frames[len(sh.frames)-1] == frame(f))
}

// insert puts a frame beneath those from n on.
func (sh *Shell) insert(n int, f frame) {
	sh.frames = append(sh.frames, nil)
	copy(sh.frames[n+1:], sh.frames[n:])
	sh.frames[n] = f
}

func (sh *Shell) flushBuiltin(name string, st *int) {
	if err := sh.flush(); err != nil {
		if sh.p.Killed() == 0 {
			sh.errorf("%s: write error: %s", name, strerror(err))
		}
		*st = 1
	}
}

// builtinDone writes what a builtin has printed and ends it, and with pop the frame of its redirections. Where nobody
// reads it rests.
func (sh *Shell) builtinDone(name string, st int, pop bool) {
	if len(sh.out) > 0 {
		if t := sh.attemptAt(attemptOutput); sh.pinned == 0 {
			t.name, t.status, t.pop = name, st, pop
		}
	}
	sh.flushBuiltin(name, &st)
	sh.try.on = sh.try.on && sh.pinned > 0
	if pop {
		sh.pop()
	}
	if sh.ctl == ctlReturn || sh.ctl == ctlExit {
		return
	}
	sh.done(st)
}

// Internal statuses of program, turned into messages by notFound.
const (
	statusBinary = 1000
	statusErrno  = 2000 // + errno
)
