package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// arithText is an expression's text, its words expanded as in double quotes.
func (sh *Shell) arithText(x syntax.ArithmExpr) string {
	if w, ok := x.(*syntax.Word); ok {
		return sh.arithWord(w)
	}
	return ""
}

func (sh *Shell) arithWord(w *syntax.Word) string {
	if len(w.Parts) == 1 {
		if l, ok := w.Parts[0].(*syntax.Lit); ok && strings.IndexByte(l.Value, '\\') < 0 {
			return l.Value
		}
	}
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(unescapeDouble(p.Value, false))
		case *syntax.SglQuoted:
			if p.Dollar {
				b.WriteString(ansiC(p.Value))
			} else {
				b.WriteString("'" + p.Value + "'")
			}
		case *syntax.ParamExp:
			e := &expander{sh: sh}
			sh.param(e, p, true)
			b.WriteString(e.joined())
		default:
			e := &expander{sh: sh}
			e.quoted([]syntax.WordPart{part}, false)
			b.WriteString(e.joined())
		}
	}
	return b.String()
}

// arith evaluates an expression; an error ends the command's line.
func (sh *Shell) arith(x syntax.ArithmExpr) int64 {
	if x == nil {
		return 0
	}
	text := sh.arithText(x)
	n, err := sh.evalArith(text)
	if err != nil {
		sh.arithFailed("", text, err)
		panic(abort{kind: abortDiscard, status: 1})
	}
	return n
}

func (sh *Shell) arithExp(x *syntax.ArithmExp) string {
	return strconv.FormatInt(sh.arith(x.X), 10)
}

// arithCmd runs ((…)).
func (sh *Shell) arithCmd(c *syntax.ArithmCmd) {
	sh.debugTrap(c)
	text := sh.arithText(c.X)
	if sh.opts.xtrace {
		// As bash does: the source's text, spaces and all, within spaces.
		sh.trace("(( " + text + " ))")
	}
	n, err := sh.evalArith(text)
	switch {
	case err != nil:
		sh.arithFailed("((: ", text, err)
		sh.done(1)
	case n != 0:
		sh.done(0)
	default:
		sh.done(1)
	}
}
