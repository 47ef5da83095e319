package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// arithText turns a parsed expression back into text, its words expanded as in double quotes.
func (sh *Shell) arithText(x syntax.ArithmExpr) string {
	if w, ok := x.(*syntax.Word); ok {
		return sh.arithWord(w)
	}
	var b strings.Builder
	sh.writeArith(&b, x)
	return b.String()
}

func (sh *Shell) arithWord(w *syntax.Word) string {
	if len(w.Parts) == 1 {
		if l, ok := w.Parts[0].(*syntax.Lit); ok && strings.IndexByte(l.Value, '\\') < 0 {
			if raw, ok := decodeRaw(l.Value, rawArith); ok {
				return sh.expandArithText(raw)
			}
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
			if !p.Dollar.IsValid() && p.Index != nil && p.Short {
				b.WriteString(p.Param.Value + "[" + sh.subscript(p.Index, p.Param.Value) + "]")
				continue
			}
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

func (sh *Shell) writeArith(b *strings.Builder, x syntax.ArithmExpr) {
	switch x := x.(type) {
	case *syntax.Word:
		b.WriteString(sh.arithWord(x))
	case *syntax.ParenArithm:
		b.WriteByte('(')
		sh.writeArith(b, x.X)
		b.WriteByte(')')
	case *syntax.UnaryArithm:
		if x.Post {
			sh.writeArith(b, x.X)
			b.WriteString(x.Op.String())
		} else {
			b.WriteString(x.Op.String())
			sh.writeArith(b, x.X)
		}
	case *syntax.BinaryArithm:
		// With the spaces of the source: the text may be a key.
		sh.writeArith(b, x.X)
		if x.OpPos.Offset() > x.X.End().Offset() {
			b.WriteByte(' ')
		}
		b.WriteString(x.Op.String())
		if x.Y.Pos().Offset() > x.OpPos.Offset()+uint(len(x.Op.String())) {
			b.WriteByte(' ')
		}
		sh.writeArith(b, x.Y)
	}
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
		lead := int(c.X.Pos().Offset()) - int(c.Left.Offset()) - 2
		trail := int(c.Right.Offset()) - int(c.X.End().Offset())
		sh.trace("((" + strings.Repeat(" ", 1+max(0, min(lead, 80))) + text + strings.Repeat(" ", 1+max(0, min(trail, 80))) + "))")
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

func (sh *Shell) letClause(c *syntax.LetClause) {
	sh.debugTrap(c)
	st := 1
	for _, x := range c.Exprs {
		var text string
		if w, ok := x.(*syntax.Word); ok {
			text = sh.string(w) // quotes are the shell's here
		} else {
			text = sh.arithText(x)
		}
		if sh.opts.xtrace {
			sh.trace("let " + text)
		}
		n, err := sh.evalArith(text)
		if err != nil {
			sh.arithFailed("let: ", text, err)
			st = 1
			break
		}
		st = int(b2i(n == 0))
	}
	sh.done(st)
}
