package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// frame is one level of a running script. step is called when it is on top: it starts the next thing, perhaps a frame above
// it, or pops itself. sh.status is that of what ended last.
type frame interface {
	step(sh *Shell)
	// clone copies what step changes; everything else is shared with the copy.
	clone() frame
}

// leaver is a frame that puts something back when it is popped, however that happens.
type leaver interface{ leave(sh *Shell) }

// catcher is a frame that may take control that passes through it; true means that it did.
type catcher interface{ catch(sh *Shell) bool }

func (sh *Shell) push(f frame) { sh.frames = append(sh.frames, f) }

func (sh *Shell) pop() {
	n := len(sh.frames) - 1
	f := sh.frames[n]
	sh.frames[n] = nil
	sh.frames = sh.frames[:n]
	if l, ok := f.(leaver); ok {
		l.leave(sh)
	}
}

// run steps until only base frames are left.
func (sh *Shell) run(base int) {
	for !sh.runSome(base) {
	}
}

// runSome steps until it is done, or an expansion was aborted.
func (sh *Shell) runSome(base int) (done bool) {
	defer func() {
		if r := recover(); r != nil {
			a, ok := r.(abort)
			if !ok {
				panic(r)
			}
			sh.aborted(a)
		}
	}()
	if sh.try.redo && sh.pinned == 0 {
		sh.again()
	}
	for len(sh.frames) > base {
		if sh.p.Step(1) != nil {
			sh.ctl, sh.exitTrap = ctlExit, true
		}
		if sh.pinned == 0 {
			sh.try.on = false
			sh.p.Rest(nil)
			if sh.probe != nil {
				sh.probe(sh)
			}
		}
		top := sh.frames[len(sh.frames)-1]
		if sh.ctl != ctlNone {
			if c, ok := top.(catcher); !ok || !c.catch(sh) {
				sh.pop()
			}
			continue
		}
		if sh.signalsWaiting() {
			sh.pushTraps()
			continue
		}
		top.step(sh)
	}
	return true
}

func (sh *Shell) aborted(a abort) {
	sh.arithDepth = 0
	if a.kind == abortAgain {
		return
	}
	sh.status = a.status
	switch a.kind {
	case abortExit:
		sh.exitNow(a.status)
	case abortDiscard:
		sh.ctl = ctlDiscard
	case abortCommand:
		sh.checkErr()
	}
}

// nested runs frames that f pushes, to their end, in the middle of something else: the shell can't be captured in them.
func (sh *Shell) nested(f func()) {
	sh.touch()
	sh.pinned++
	base, stmt := len(sh.frames), sh.stmtNow
	f()
	sh.run(base)
	sh.stmtNow = stmt
	sh.pinned--
}

// listFrame runs statements one after the other.
type listFrame struct {
	stmts []*syntax.Stmt
	i     int
}

func (f *listFrame) step(sh *Shell) {
	if f.i == len(f.stmts) {
		sh.pop()
		return
	}
	s := f.stmts[f.i]
	f.i++
	sh.stmt(s)
}

func (sh *Shell) list(stmts []*syntax.Stmt) {
	if len(stmts) > 0 {
		sh.push(&listFrame{stmts: stmts})
	}
}

// raised counts a frame's part in sh.noerr.
type raised struct{ on bool }

func (r *raised) raise(sh *Shell) {
	if !r.on {
		r.on = true
		sh.noerr++
	}
}

func (r *raised) lower(sh *Shell) {
	if r.on {
		r.on = false
		sh.noerr--
	}
}

func (r *raised) leave(sh *Shell) { r.lower(sh) }

// negFrame inverts a status.
type negFrame struct{ raised }

func (f *negFrame) step(sh *Shell) {
	if sh.status == 0 {
		sh.status = 1
	} else {
		sh.status = 0
	}
	sh.pop()
}

// andOrFrame runs x && y and x || y.
type andOrFrame struct {
	raised
	cmd  *syntax.BinaryCmd
	done bool
}

func (f *andOrFrame) step(sh *Shell) {
	f.lower(sh)
	if !f.done && (sh.status == 0) == (f.cmd.Op == syntax.AndStmt) {
		f.done = true
		sh.stmt(f.cmd.Y)
		return
	}
	sh.pop()
}

// ifFrame runs if, elif and else.
type ifFrame struct {
	raised
	c    *syntax.IfClause
	cond bool // the condition is running
}

func (f *ifFrame) step(sh *Shell) {
	if f.cond {
		f.lower(sh)
		f.cond = false
		if sh.status == 0 {
			sh.pop()
			sh.list(f.c.Then)
			return
		}
		f.c = f.c.Else
	}
	switch {
	case f.c == nil:
		sh.status = 0
		sh.pop()
	case len(f.c.Cond) == 0: // else
		sh.pop()
		sh.list(f.c.Then)
	default:
		f.raise(sh)
		f.cond = true
		sh.list(f.c.Cond)
	}
}

func (l *loop) leave(sh *Shell) {
	l.lower(sh)
	sh.loops--
}

func (f *whileFrame) step(sh *Shell) {
	if !f.cond {
		if f.ran {
			f.last = sh.status
		}
		f.cond, f.ran = true, true
		f.raise(sh)
		sh.list(f.c.Cond)
		return
	}
	f.cond = false
	f.lower(sh)
	if (sh.status == 0) == f.c.Until {
		sh.status = f.last
		sh.pop()
		return
	}
	sh.list(f.c.Do)
}

func (f *whileFrame) catch(sh *Shell) bool {
	taken, _ := f.caught(sh)
	f.cond = false
	return taken
}

func (f *forFrame) step(sh *Shell) {
	if f.i == len(f.words) {
		if f.i == 0 {
			sh.status = 0
		}
		sh.pop()
		return
	}
	w := f.words[f.i]
	f.i++
	sh.setLine(f.c.Pos())
	if v, _ := sh.find(f.name); v != nil && v.attr&attrNameref != 0 {
		if !sh.retarget(f.name, w) {
			sh.status = 1
			sh.pop()
			return
		}
	} else if !sh.set(f.name, w) {
		sh.status = 1
		sh.pop()
		if sh.opts.posix {
			sh.exitNow(sh.fatalStatus())
		}
		return
	}
	if sh.opts.xtrace {
		sh.traceFor(f.c, f.words)
	}
	sh.debugTrap(f.c)
	sh.list(f.c.Do)
}

func (f *forFrame) catch(sh *Shell) bool {
	taken, _ := f.caught(sh)
	return taken
}

func (f *cForFrame) step(sh *Shell) {
	sh.setLine(f.c.Pos())
	eval := func(x syntax.ArithmExpr, def int64) (int64, bool) {
		if x == nil {
			return def, true
		}
		text := sh.arithText(x)
		sh.now = running{text: "((" + strings.TrimLeft(text, " \t\n") + "))"}
		sh.debugTrap(nil)
		if sh.opts.xtrace {
			sh.trace("(( " + strings.TrimLeft(text, " \t\n") + " ))")
		}
		n, err := sh.evalArith(text)
		if err != nil {
			sh.arithFailed("((: ", text, err)
			return 0, false
		}
		return n, true
	}
	sh.attemptAt(attemptStep)
	switch f.stage {
	case 0:
		if _, ok := eval(f.l.Init, 0); !ok {
			sh.status = 1
			sh.pop()
		}
		f.stage = 1
	case 1:
		n, ok := eval(f.l.Cond, 1)
		if !ok {
			sh.status = 1
			sh.pop()
			return
		}
		if n == 0 {
			sh.status = f.last
			sh.pop()
			return
		}
		f.stage = 2
		sh.list(f.c.Do)
	case 2:
		f.last = sh.status
		if _, ok := eval(f.l.Post, 0); !ok {
			sh.status = 1
			sh.pop()
		}
		f.stage = 1
	}
}

func (f *cForFrame) catch(sh *Shell) bool {
	taken, _ := f.caught(sh)
	return taken
}

func (f *selectFrame) step(sh *Shell) {
	if len(f.words) == 0 {
		sh.pop()
		return
	}
	if !f.asked {
		if !f.listing || sh.str("REPLY") == "" {
			sh.stderr(sh.menu(f.words))
		}
		ps3, ok := sh.get("PS3")
		if !ok {
			ps3 = "#? "
		}
		sh.stderr(ps3)
		f.listing, f.asked = true, true
		sh.push(&readFrame{o: readOpts{delim: '\n', chars: -1, raw: true}})
		return
	}
	f.asked = false
	if sh.status != 0 {
		sh.stderr("\n")
		sh.status = 1
		sh.pop()
		return
	}
	line := sh.str("REPLY")
	if line == "" {
		return
	}
	value := ""
	if n, ok := plainInt(trimIFS(line)); ok && n >= 1 && n <= int64(len(f.words)) {
		value = f.words[n-1]
	}
	sh.set(f.name, value)
	sh.status = 0
	sh.list(f.c.Do)
}

func (f *selectFrame) catch(sh *Shell) bool {
	taken, _ := f.caught(sh)
	return taken
}

// caseFrame goes through the items after a match with ;& and ;;&.
type caseFrame struct {
	c     *syntax.CaseClause
	value string
	i     int
	fall  bool
	hit   bool
}

func (f *caseFrame) step(sh *Shell) {
	for f.i < len(f.c.Items) {
		item := f.c.Items[f.i]
		sh.attemptAt(attemptStep)
		hit := f.fall || sh.caseMatch(item, f.value)
		if f.i++; !hit {
			continue
		}
		f.fall = item.Op == syntax.Fallthrough
		if !f.fall && item.Op != syntax.Resume && item.Op != syntax.ResumeKorn {
			f.i = len(f.c.Items)
		}
		if f.hit = true; len(item.Stmts) == 0 {
			sh.status = 0
		}
		sh.list(item.Stmts)
		return
	}
	if !f.hit {
		sh.status = 0
	}
	sh.pop()
}

func (sh *Shell) caseMatch(item *syntax.CaseItem, value string) bool {
	for _, w := range item.Patterns {
		if sh.wordPattern(w, true, sh.shopts.get("nocasematch")).match(value) {
			return true
		}
	}
	return false
}

// restoreFrame ends a command with redirections or temporary variables: it puts them back, then checks the status.
type restoreFrame struct {
	undo  []undoFd
	temp  bool // a scope of temporary variables
	check bool // set -e and the ERR trap apply
	fds   int  // descriptors of process substitutions before the command
}

func (f *restoreFrame) step(sh *Shell) {
	sh.pop()
	if f.check {
		sh.checkErr()
	}
}

func (f *restoreFrame) leave(sh *Shell) {
	sh.restoreFds(f.undo)
	if f.temp {
		sh.popScope()
	}
	sh.closeProcFds(f.fds)
}

// funcFrame is a function call.
type funcFrame struct {
	params []string
	base   int
	unit   *unit
	source string
	line   int
	loops  int
	optPos int
	fn     *function
	traps  map[int]string // DEBUG, RETURN and ERR that the function doesn't inherit
	begun  bool
	over   bool // only the RETURN trap is left
}

func (f *funcFrame) step(sh *Shell) {
	if !f.begun {
		f.begun = true
		sh.debugTrap(f.fn.decl)
		sh.stmt(f.fn.decl.Body)
		return
	}
	if f.over || !sh.pushReturnTrap(false) {
		sh.pop()
	}
	f.over = true
}

func (f *funcFrame) catch(sh *Shell) bool {
	if sh.ctl != ctlReturn {
		return false
	}
	sh.ctl = ctlNone
	if f.over || !sh.pushReturnTrap(true) {
		sh.pop()
	}
	f.over = true
	return true
}

func (f *funcFrame) leave(sh *Shell) {
	sh.popScope()
	sh.params, sh.base, sh.unit, sh.source, sh.line, sh.loops, sh.optPos = f.params, f.base, f.unit, f.source, f.line, f.loops, f.optPos
	sh.calls = sh.calls[:len(sh.calls)-1]
	sh.depth--
	sh.restoreTraps(f.traps)
}

// textFrame runs text that is parsed as it goes: a script, the argument of eval, a sourced file.
type textFrame struct {
	r     *textReader
	kind  textKind
	ready bool // what goes before a prompt has been done
	flat  bool // counts for nothing in set -x
	over  bool // only the RETURN trap is left
	stmts []*syntax.Stmt
	i     int
	ran   bool

	// What eval and source put back.
	base   int
	unit   *unit
	line   int
	source string
	loops  int
	own    bool           // a sourced file with parameters of its own
	params []string       // those of before
	hidden map[int]string // the DEBUG trap, which a sourced file doesn't inherit
}

type textKind uint8

const (
	textScript textKind = iota // the script itself: an expansion's error ends only its line
	textEval
	textSource // return ends it
	textTrap   // what a trap runs, or a callback
)

func (f *textFrame) step(sh *Shell) {
	if f.i < len(f.stmts) {
		s := f.stmts[f.i]
		f.i++
		if f.kind == textScript && sh.opts.noexec && !sh.opts.interactive {
			return
		}
		sh.tail = f.kind == textScript && f.i == len(f.stmts) && f.r.atEnd()
		sh.stmt(s)
		return
	}
	if f.r.input && sh.opts.interactive && f.r.fed == "" && !f.r.asked {
		if sh.toTop = false; !f.ready {
			f.ready = true
			if !sh.hist.used {
				sh.beginHistory()
			}
			if sh.beforePrompt() {
				return
			}
		}
	}
	sh.base = f.r.base
	sh.attemptAt(attemptStep)
	f.stmts, f.i = f.r.next(sh), 0
	if f.ready = false; f.stmts != nil && f.r.input && sh.opts.interactive {
		sh.commandNo++
		if ps0 := sh.promptText("PS0"); ps0 != "" {
			sh.say([]byte(plainPrompt(ps0)))
		}
	}
	if f.stmts == nil {
		if !f.ran && f.kind != textScript && !f.r.bad {
			sh.status = 0
		}
		if f.kind == textSource && !f.over {
			f.flat, f.over = true, true
			if sh.pushReturnTrap(false) {
				return
			}
		}
		sh.pop()
		return
	}
	f.ran = true
	sh.base, sh.unit = f.r.base, f.r.parsed
}

func (f *textFrame) catch(sh *Shell) bool {
	switch {
	case sh.ctl == ctlReturn && f.kind == textSource:
		sh.ctl = ctlNone
		if f.over || !sh.pushReturnTrap(true) {
			sh.pop()
		}
		f.over, f.stmts, f.i, f.r = true, nil, 0, newTextReader("", f.r.base)
		f.ran = true // the status stays
		return true
	case sh.ctl == ctlDiscard && sh.toTop && f.kind != textScript:
		return false
	case sh.ctl == ctlDiscard:
		// The statements of one line are a unit: what follows it goes on, also in eval and source.
		for f.i > 0 && f.i < len(f.stmts) && f.stmts[f.i].Pos().Line() <= f.stmts[f.i-1].End().Line() {
			f.i++
		}
		sh.ctl = ctlNone
		if sh.opts.errexit && sh.noerr == 0 {
			sh.exitNow(sh.status)
		}
		return true
	}
	return false
}

func (f *textFrame) leave(sh *Shell) {
	switch f.kind {
	case textEval:
		sh.base, sh.unit, sh.line = f.base, f.unit, f.line
		sh.depth--
	case textSource:
		sh.base, sh.unit, sh.line, sh.source, sh.loops = f.base, f.unit, f.line, f.source, f.loops
		if f.own {
			sh.params = f.params
		}
		sh.calls = sh.calls[:len(sh.calls)-1]
		sh.depth--
		sh.restoreTraps(f.hidden)
	case textTrap:
		sh.base, sh.unit = f.base, f.unit
	}
}

// trapText makes the frame of a trap's command.
func (sh *Shell) trapText(text string) *textFrame {
	return &textFrame{r: newTextReader(text, max(0, sh.line-1)), kind: textTrap, base: sh.base, unit: sh.unit}
}

func (sh *Shell) setLine(pos syntax.Pos) { sh.line = sh.base + int(pos.Line()) }
