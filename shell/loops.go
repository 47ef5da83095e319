package shell

import (
	"mvdan.cc/sh/v3/syntax"
)

// loop is what all loops share.
type loop struct {
	raised
	last int // status of the last body
}

func (l *loop) enter(sh *Shell) { sh.loops++ }

// caught handles break and continue; again tells that the loop goes on.
func (l *loop) caught(sh *Shell) (taken, again bool) {
	switch sh.ctl {
	case ctlBreak, ctlContinue:
		l.lower(sh)
		if sh.ctlN--; sh.ctlN > 0 {
			return false, false
		}
		again = sh.ctl == ctlContinue
		sh.ctl = ctlNone
		l.last = sh.status
		if !again {
			sh.pop()
		}
		return true, again
	}
	return false, false
}

// whileFrame runs while and until.
type whileFrame struct {
	loop
	c    *syntax.WhileClause
	cond bool
	ran  bool
}

// forFrame runs for name in words.
type forFrame struct {
	loop
	c     *syntax.ForClause
	name  string
	words []string
	i     int
}

// cForFrame runs for ((init; cond; post)).
type cForFrame struct {
	loop
	c     *syntax.ForClause
	l     *syntax.CStyleLoop
	stage uint8 // 0 init, 1 cond, 2 post
}

// selectFrame runs select name in words.
type selectFrame struct {
	loop
	c       *syntax.ForClause
	name    string
	words   []string
	listing bool // the menu was shown
	asked   bool // the answer is being read, or was
}
