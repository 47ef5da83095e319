package shell

import (
	"fmt"

	"mvdan.cc/sh/v3/syntax"
)

// testCommand reads [[ … ]].
func (r *reader) testCommand(t token) syntax.Command {
	r.take()
	c := &syntax.TestClause{Left: r.pos(t.from)}
	oldExt, oldAlias := r.ext, r.noAlias
	r.cond, r.noAlias = true, true
	defer func() { r.cond, r.ext, r.noAlias = false, oldExt, oldAlias }()
	c.X = r.testOr()
	if r.err != nil {
		return c
	}
	e := r.peek()
	if e.kind != tokWord || e.text != "]]" {
		r.testError(e, "syntax error in conditional expression: unexpected token `%s'", "syntax error in conditional expression")
		return c
	}
	c.Right = r.pos(e.from)
	r.cond = false
	r.ext, r.noAlias = oldExt, oldAlias
	r.take()
	return c
}

// testError refuses a token within [[ ]].
func (r *reader) testError(t token, format, plain string) {
	if r.err != nil {
		return
	}
	text := t.text
	switch t.kind {
	case tokEOF:
		r.fail(&readError{text: fmt.Sprintf(format, "newline"), line: r.lineAt(t.from), incomplete: true})
		return
	case tokNewline:
		text = "newline"
	}
	msg := fmt.Sprintf(format, text)
	if t.kind == tokWord && plain != "" {
		msg = plain
	}
	r.fail(&readError{text: msg, line: r.lineAt(t.from), near: plain == "", quiet: true})
}

func (r *reader) testOr() syntax.TestExpr {
	left := r.testAnd()
	for r.err == nil && r.isOp("||") {
		t := r.take()
		r.newlines()
		left = &syntax.BinaryTest{OpPos: r.pos(t.from), Op: syntax.OrTest, X: left, Y: r.testAnd()}
	}
	return left
}

func (r *reader) testAnd() syntax.TestExpr {
	left := r.testTerm()
	r.testNewlines()
	for r.err == nil && r.isOp("&&") {
		t := r.take()
		r.newlines()
		left = &syntax.BinaryTest{OpPos: r.pos(t.from), Op: syntax.AndTest, X: left, Y: r.testTerm()}
		r.testNewlines()
	}
	return left
}

// testNewlines skips lines that end within [[ ]].
func (r *reader) testNewlines() { r.newlines() }

// testTerm reads ! term, ( … ), and operators with their words.
func (r *reader) testTerm() syntax.TestExpr {
	if !r.deeper() {
		return nil
	}
	defer func() { r.depth-- }()
	r.newlines()
	t := r.peek()
	switch {
	case t.kind == tokWord && t.text == "!":
		r.take()
		return &syntax.UnaryTest{OpPos: r.pos(t.from), Op: syntax.TsNot, X: r.testTerm()}
	case t.kind == tokOp && t.text == "(":
		r.take()
		x := &syntax.ParenTest{Lparen: r.pos(t.from), X: r.testOr()}
		if r.err != nil {
			return x
		}
		e := r.peek()
		x.Rparen = r.pos(e.from)
		if !r.gotOp(")") {
			plain := "expected `)'"
			if e.text == "]]" {
				plain = "unexpected token `]]', expected `)'"
			}
			r.testError(e, "unexpected token `%s', expected `)'", plain)
		}
		return x
	case t.kind != tokWord || t.text == "]]":
		r.testError(t, "unexpected token `%s' in conditional command", "syntax error near `"+t.text+"'")
		return nil
	}
	if op, ok := unaryTestOp(t.text); ok {
		return r.testUnary(t, op)
	}
	r.take()
	return r.testBinary(t)
}

// testUnary reads the word after an operator such as -f, which may also be a word itself.
func (r *reader) testUnary(t token, op syntax.UnTestOperator) syntax.TestExpr {
	r.take()
	w := r.peek()
	if w.kind != tokWord {
		r.testError(w, "unexpected argument `%s' to conditional unary operator", "")
		return nil
	}
	if w.text == "]]" {
		r.testError(token{kind: tokOp, text: w.text, from: w.from}, "unexpected argument `%s' to conditional unary operator", "")
		r.err.near = false
		return nil
	}
	if _, ok := binaryTestOp(w.text); ok && w.text != "]]" {
		// -f == x compares two words.
		saved := *r
		r.take()
		if after := r.peek(); after.kind == tokWord && after.text != "]]" {
			*r = saved
			return r.testBinary(t)
		}
		*r = saved
	}
	r.take()
	return &syntax.UnaryTest{OpPos: r.pos(t.from), Op: op, X: w.word}
}

// testBinary reads what follows a word.
func (r *reader) testBinary(left token) syntax.TestExpr {
	t := r.peek()
	if r.err != nil {
		return nil
	}
	op, ok := binaryTestOp(t.text)
	if t.kind == tokWord && t.text == "]]" || t.kind == tokOp && (t.text == "&&" || t.text == "||" || t.text == ")") || t.kind == tokNewline {
		return left.word
	}
	if !ok || t.kind != tokWord && t.kind != tokOp {
		r.testError(t, "unexpected token `%s', conditional binary operator expected", "conditional binary operator expected")
		return nil
	}
	switch op {
	case syntax.TsReMatch:
		r.regex = true
	case syntax.TsMatch, syntax.TsMatchShort, syntax.TsNoMatch:
		r.ext = true
	}
	ext := r.ext
	r.take()
	w := r.peek()
	r.regex = false
	if w.kind != tokWord || w.text == "]]" {
		if w.kind != tokEOF && w.kind != tokNewline {
			w.kind = tokOp
		}
		r.testError(token{kind: w.kind, text: w.text, from: w.from}, "unexpected argument `%s' to conditional binary operator", "")
		if r.err != nil {
			r.err.near = false
		}
		return nil
	}
	r.ext = ext
	r.take()
	return &syntax.BinaryTest{OpPos: r.pos(t.from), Op: op, X: left.word, Y: w.word}
}

func unaryTestOp(s string) (syntax.UnTestOperator, bool) {
	switch s {
	case "-e", "-a":
		return syntax.TsExists, true
	case "-h", "-L":
		return syntax.TsSmbLink, true
	}
	for op := syntax.TsExists; op <= syntax.TsRefVar; op++ {
		if op.String() == s {
			return op, true
		}
	}
	return 0, false
}

func binaryTestOp(s string) (syntax.BinTestOperator, bool) {
	for op := syntax.TsReMatch; op <= syntax.TsGtr; op++ {
		if op.String() == s {
			return op, true
		}
	}
	switch s {
	case "=":
		return syntax.TsMatchShort, true
	case "==":
		return syntax.TsMatch, true
	case "!=":
		return syntax.TsNoMatch, true
	case "<":
		return syntax.TsBefore, true
	case ">":
		return syntax.TsAfter, true
	}
	return 0, false
}
