package shell

import (
	"mvdan.cc/sh/v3/syntax"
)

// attempt is what is being begun: a statement whose words are expanded, or the step of a frame. Expansion happens on Go's
// stack, where a command substitution has to be waited for. So that the shell can be captured meanwhile, the results of
// what the expansion has started are kept: a copy begins again from the start, where frames, status and descriptors are
// those of before, takes the results from the log, and goes on waiting for what was in flight. That works until the
// expansion changes something else: then it is dirty, and no place to be captured at.
type attempt struct {
	on     bool
	dirty  bool
	redo   bool // begin again: log is of an earlier attempt
	kind   attemptKind
	stmt   *syntax.Stmt
	tail   bool
	cmd    syntax.Command
	redirs []*syntax.Redirect // of a simple command
	name   string             // of a builtin whose output is written,
	pop    bool               // and the frame on top is that of its redirections

	frames, scopes, procFds int // how many there were
	noerr                   int
	status                  int
	lastArg                 string

	log    []result
	at     int    // results of the log that were taken
	flight flight // the substitution that is waited for
}

// attemptKind tells how to begin again.
type attemptKind uint8

const (
	attemptStmt    attemptKind = iota // a statement
	attemptCommand                    // a compound command, its redirections in force
	attemptStep                       // the frame on top, which hasn't changed itself yet
	attemptOutput                     // writing what a builtin has printed
	attemptSimple                     // a simple command, after the DEBUG trap
)

// result is what a substitution came to.
type result struct {
	out    string
	status int // of $(…)
	fd     int // of <(…)
}

// flight is a command substitution in progress.
type flight struct {
	on  bool
	kid kid
	fd  int // where its output is read
	out []byte
}

// attemptAt notes the state that an attempt begins with.
func (sh *Shell) attemptAt(kind attemptKind) *attempt {
	t := &sh.try
	if sh.pinned > 0 {
		return t
	}
	t.on, t.dirty, t.kind, t.at = true, false, kind, 0
	if t.redo {
		t.redo = false
	} else if len(t.log) > 0 {
		clear(t.log)
		t.log = t.log[:0]
	}
	t.frames, t.scopes, t.procFds, t.noerr, t.status, t.lastArg = len(sh.frames), len(sh.scopes), len(sh.procFds), sh.noerr, sh.status, sh.lastArg
	return t
}

// again begins an attempt once more, in a copy.
func (sh *Shell) again() {
	t := &sh.try
	switch t.kind {
	case attemptStmt:
		sh.tail = t.tail
		sh.foreground(t.stmt)
	case attemptCommand:
		sh.compound(t.cmd)
	case attemptOutput:
		t.redo = false
		sh.builtinDone(t.name, t.status, t.pop)
	case attemptSimple:
		sh.simpleNow(t.cmd.(*syntax.CallExpr), t.redirs, false)
	default:
		sh.frames[len(sh.frames)-1].step(sh)
	}
}

// touch notes that the attempt has changed something beyond what it is begun again with.
func (sh *Shell) touch() {
	if sh.pinned == 0 {
		sh.try.dirty = true
	}
}

// logged takes the next result of an earlier attempt.
func (sh *Shell) logged() (result, bool) {
	t := &sh.try
	if sh.pinned > 0 || t.at >= len(t.log) {
		return result{}, false
	}
	t.at++
	return t.log[t.at-1], true
}

// log keeps a result for a later attempt.
func (sh *Shell) log(r result) {
	if t := &sh.try; t.on && sh.pinned == 0 && !t.dirty {
		t.log = append(t.log, r)
		t.at = len(t.log)
	}
}
