package shell

import (
	"fmt"
	"hash/fnv"
	"reflect"
	"strings"

	"agentrun.dev/errs"
	"agentrun.dev/proc"
	"mvdan.cc/sh/v3/syntax"
)

// Kind is what Save calls a shell.
const Kind = "shell"

// saveMagic begins a saved shell.
const saveMagic = "agentrun shell 1\n"

// maxRestored bounds a saved shell; values take at most restoredGrowth times the bytes that say them.
const (
	maxRestored    = 4 << 30
	restoredGrowth = 64
	restoredFree   = 1 << 20
)

// reading conditions of a unit: what its text means depends on them.
const (
	unitExtglob uint8 = 1 << iota
	unitPosix
	unitInteractive
	unitComments
)

// newUnit keeps text with what was read from it.
func (sh *Shell) newUnit(text string, stmts []*syntax.Stmt) *unit {
	u := &unit{text: text, stmts: stmts}
	for _, f := range []struct {
		bit uint8
		on  bool
	}{
		{unitExtglob, sh.shopts.get("extglob")}, {unitPosix, sh.opts.posix}, {unitInteractive, sh.opts.interactive},
		{unitComments, sh.shopts.get("interactive_comments")},
	} {
		if f.on {
			u.flags |= f.bit
		}
	}
	return u
}

// keepLoose remembers a word that was read while the script runs, such as the inside of arithmetic, if a process may be
// started from it: that process's script is this word.
func (sh *Shell) keepLoose(text string, mode wordMode, w *syntax.Word) {
	if !strings.ContainsAny(text, "(`") || !startsProcess(w) {
		return
	}
	u := sh.newUnit(text, nil)
	u.word, u.mode = w, mode
	sh.loose = append(sh.loose, u)
}

func startsProcess(w *syntax.Word) bool {
	found := false
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			found = true
		}
		return !found
	})
	return found
}

// unitOf returns the unit that a substitution was read in.
func (sh *Shell) unitOf(c syntax.Node) *unit {
	for i := len(sh.loose) - 1; i >= 0; i-- {
		found := false
		syntax.Walk(sh.loose[i].word, func(n syntax.Node) bool {
			found = found || n == c
			return !found
		})
		if found {
			return sh.loose[i]
		}
	}
	return sh.unit
}

// nodes lists what was read, in the order of its text, and a sum of its shape.
func (u *unit) nodes() ([]syntax.Node, uint64) {
	var out []syntax.Node
	h := fnv.New64a()
	visit := func(n syntax.Node) bool {
		if n == nil {
			h.Write([]byte{')'})
			return true
		}
		out = append(out, n)
		h.Write([]byte(reflect.TypeOf(n).Elem().Name()))
		return true
	}
	if u.word != nil {
		syntax.Walk(u.word, visit)
	}
	for _, s := range u.stmts {
		syntax.Walk(s, visit)
	}
	return out, h.Sum64()
}

// reread reads the unit's text again, as a unit of its own. It is nil if that isn't possible.
func (u *unit) reread() *unit {
	sh := &Shell{}
	sh.shopts.on = shoptDefaults()
	sh.opts.posix, sh.opts.interactive = u.flags&unitPosix != 0, u.flags&unitInteractive != 0
	sh.shopts.set("extglob", u.flags&unitExtglob != 0)
	sh.shopts.set("interactive_comments", u.flags&unitComments != 0)
	sh.shopts.set("expand_aliases", false)
	c := &unit{text: u.text, mode: u.mode, flags: u.flags}
	if u.word != nil {
		if c.word = sh.textWord(u.text, u.mode); c.word == nil {
			return nil
		}
		return c
	}
	r := sh.newReader(u.text)
	if c.stmts = r.lineOf(); r.err != nil {
		return nil
	}
	return c
}

// Save implements proc.Saver: what the shell is, with the text of each unit of its scripts, which Restore reads again.
func (st *State) Save() (kind string, data []byte, err error) {
	sh := *st.sh
	root := reflect.ValueOf(&sh).Elem()
	first := &encoder{names: map[string]uint64{}, unit: map[*unit]uint64{}}
	first.fields(root)
	e := &encoder{names: map[string]uint64{}, units: first.units, unit: first.unit, nodes: map[syntax.Node][2]uint64{}}
	e.out = append(e.out, saveMagic...)
	e.uint(uint64(len(e.units)))
	for i, u := range e.units {
		nodes, shape := u.nodes()
		for k, n := range nodes {
			e.nodes[n] = [2]uint64{uint64(i), uint64(k)}
		}
		again := u.reread()
		if again == nil {
			return "", nil, errs.Msg(errs.Unsupported, "save shell", "", "a part of its script can't be read again")
		}
		if _, s := again.nodes(); s != shape {
			return "", nil, errs.Msg(errs.Unsupported, "save shell", "", "a part of its script is read differently the second time")
		}
		e.string(u.text)
		e.uint(uint64(u.flags))
		e.uint(uint64(u.mode))
		e.uint(uint64(b2i(u.word != nil)))
		e.uint(shape)
	}
	if _, known := e.nodes[sh.now.node]; !known {
		sh.now = running{}
	}
	e.fields(root)
	if e.err != nil {
		return "", nil, errs.New(errs.Unsupported, "save shell", "", e.err)
	}
	return Kind, e.out, nil
}

// Restore makes a shell's state of what Save wrote: errs.Corrupt for anything else.
func Restore(data []byte) (st proc.State, err error) {
	defer func() {
		if r := recover(); r != nil {
			d, ok := r.(decodeError)
			if !ok {
				panic(r)
			}
			st, err = nil, errs.New(errs.Corrupt, "restore shell", "", d.error)
		}
	}()
	d := &decoder{in: data, kinds: map[string]reflect.Type{}, budget: restoredFree + restoredGrowth*len(data)}
	for _, f := range frameKinds() {
		t := reflect.TypeOf(f).Elem()
		d.kinds[t.Name()] = t
	}
	if len(data) > maxRestored || string(d.bytes(uint64(min(len(data), len(saveMagic))))) != saveMagic {
		d.fail("this isn't a saved shell of version 1")
	}
	d.readUnits()
	sh := &Shell{}
	d.fields(reflect.ValueOf(sh).Elem())
	if len(d.in) > 0 {
		d.fail("%d bytes more than a shell", len(d.in))
	}
	if err := sh.plausible(); err != nil {
		return nil, errs.New(errs.Corrupt, "restore shell", "", err)
	}
	sh.envStale = true
	return &State{sh}, nil
}

func (d *decoder) readUnits() {
	for i := range d.take(d.uint(), 1) {
		u := &unit{text: d.string(), flags: uint8(d.uint()), mode: wordMode(d.uint())}
		if d.uint() != 0 {
			u.word = &syntax.Word{}
		}
		shape := d.uint()
		if len(u.text) > maxScript {
			d.fail("unit %d has %d bytes", i, len(u.text))
		}
		if tooDeep(u.text) {
			d.fail("unit %d nests too deep", i)
		}
		again := u.reread()
		if again == nil {
			d.fail("unit %d can't be read again", i)
		}
		nodes, s := again.nodes()
		if s != shape {
			d.fail("unit %d is read differently", i)
		}
		d.units, d.nodes = append(d.units, again), append(d.nodes, nodes)
	}
}

func isSimple(c syntax.Command) bool {
	_, ok := c.(*syntax.CallExpr)
	return ok
}

// plausible refuses a shell whose parts contradict each other.
func (sh *Shell) plausible() error {
	bad := func(what string) error { return fmt.Errorf("%s out of range", what) }
	t := &sh.try
	switch {
	case len(sh.scopes) == 0:
		return bad("scopes")
	case t.frames < 0 || t.scopes < 0 || t.procFds < 0 || t.on && (t.frames > len(sh.frames) || t.scopes > len(sh.scopes) || t.procFds > len(sh.procFds)):
		return bad("attempt")
	case t.at < 0 || t.at > len(t.log):
		return bad("log")
	case t.on && t.kind == attemptStmt && t.stmt == nil, t.on && t.kind == attemptCommand && t.cmd == nil:
		return bad("what is attempted")
	case t.on && t.kind == attemptSimple && !isSimple(t.cmd):
		return bad("the command that is attempted")
	case t.on && t.kind == attemptStep && t.frames == 0:
		return bad("the frame that is attempted")
	case sh.pinned != 0:
		return bad("pins")
	}
	calls, scopes := 0, 1
	for _, f := range sh.frames {
		ok := true
		switch f := f.(type) {
		case *listFrame:
			ok = f.i >= 0 && f.i <= len(f.stmts)
		case *textFrame:
			if ok = f.r != nil && f.i >= 0 && f.i <= len(f.stmts); f.kind == textSource {
				calls++
			}
		case *assignFrame:
			ok = f.i >= 0 && f.i <= len(f.assigns)
		case *andOrFrame:
			ok = f.cmd != nil
		case *whileFrame:
			ok = f.c != nil
		case *forFrame:
			ok = f.c != nil && f.i >= 0 && f.i <= len(f.words)
		case *cForFrame:
			ok = f.c != nil && f.l != nil
		case *selectFrame:
			ok = f.c != nil
		case *caseFrame:
			ok = f.c != nil && f.i >= 0 && f.i <= len(f.c.Items)
		case *restoreFrame:
			scopes += int(b2i(f.temp))
		case *funcFrame:
			ok = f.fn != nil && f.fn.decl != nil
			calls++
			scopes++
		case *waitFrame:
			ok = len(f.kids) > 0 && len(f.sts) <= len(f.kids)
		}
		if !ok {
			return bad(reflect.TypeOf(f).Elem().Name())
		}
	}
	if calls > len(sh.calls) || scopes > len(sh.scopes) {
		return bad("calls")
	}
	for name, f := range sh.funcs {
		if f.decl == nil {
			return bad(name)
		}
	}
	for _, j := range sh.jobs {
		if len(j.procs) == 0 {
			return bad("job")
		}
	}
	return nil
}

var _ proc.Saver = (*State)(nil)
