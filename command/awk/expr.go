package awk

import (
	"agentrun.dev/command/posixre"
)

func (p *parser) expr() expr {
	p.enter()
	defer func() { p.depth-- }()
	return p.ternary()
}

func isLvalue(x expr) bool {
	switch x.(type) {
	case *varRef, *fieldRef, *indexRef:
		return true
	}
	return false
}

func (p *parser) ternary() expr {
	c := p.or()
	if p.accept("?") {
		p.newlines()
		a := p.expr()
		p.newlines()
		p.expect(":")
		p.newlines()
		return &cond{c, a, p.expr()}
	}
	return p.assignment(c)
}

// assignment continues an lvalue with an assignment.
func (p *parser) assignment(l expr) expr {
	if p.tok.kind != tOp || !isLvalue(l) {
		return l
	}
	switch op := p.tok.text; op {
	case "=", "+=", "-=", "*=", "/=", "%=", "^=":
		p.advance()
		p.newlines()
		return &assign{op[0], l, p.expr()}
	}
	return l
}

func (p *parser) or() expr {
	l := p.and()
	for p.is("||") {
		p.advance()
		p.newlines()
		l = &binary{"||", l, p.and()}
	}
	return l
}

func (p *parser) and() expr {
	l := p.in()
	for p.is("&&") {
		p.advance()
		p.newlines()
		l = &binary{"&&", l, p.in()}
	}
	return l
}

func (p *parser) in() expr {
	l := p.match()
	for p.key("in") && !p.noIn {
		p.advance()
		if p.tok.kind != tName {
			p.fail("syntax error at or near %s", p.tok.text)
		}
		subs := []expr{l}
		if g, ok := l.(*group); ok {
			subs = g.list
		}
		l = &inExpr{subs, p.variable(p.tok.text)}
		p.advance()
	}
	return l
}

func (p *parser) match() expr {
	l := p.comparison()
	for p.is("~") || p.is("!~") {
		negate := p.is("!~")
		p.advance()
		l = &matchExpr{l, p.comparison(), negate}
	}
	return l
}

func (p *parser) comparison() expr {
	l := p.concat(false)
	for p.tok.kind == tOp {
		switch op := p.tok.text; op {
		case ">":
			if p.noGT {
				return l
			}
			fallthrough
		case "<", "<=", "==", "!=", ">=":
			p.advance()
			l = &binary{op, l, p.concat(false)}
			continue
		case "|":
			// command | getline
			save, lex := p.tok, p.lex
			p.advance()
			if p.key("getline") {
				p.advance()
				l = &getline{kind: '|', src: l, to: p.optionalLvalue()}
				continue
			}
			p.tok, p.lex = save, lex
		}
		return l
	}
	return l
}

// startsOperand reports whether the token begins an operand of a concatenation.
func (p *parser) startsOperand() bool {
	switch p.tok.kind {
	case tNumber, tString, tRegex, tName, tFunc, tBuiltin:
		return true
	case tOp:
		switch p.tok.text {
		case "$", "!", "(", "-", "+", "++", "--":
			return true
		}
	}
	return false
}

// concat parses a concatenation; dest says that it is the destination of a redirection.
func (p *parser) concat(dest bool) expr {
	l := p.additive()
	for p.startsOperand() && !(dest && p.is("(")) {
		if p.is("-") || p.is("+") { // these were additive's to take
			break
		}
		l = &binary{" ", l, p.additive()}
	}
	return l
}

func (p *parser) additive() expr {
	l := p.multiplicative()
	for p.is("+") || p.is("-") {
		op := p.tok.text
		p.advance()
		l = &binary{op, l, p.multiplicative()}
	}
	return l
}

func (p *parser) multiplicative() expr {
	l := p.unary()
	for p.is("*") || p.is("/") || p.is("%") {
		op := p.tok.text
		p.advance()
		l = &binary{op, l, p.unary()}
	}
	return l
}

func (p *parser) unary() expr {
	p.enter()
	defer func() { p.depth-- }()
	if p.is("!") || p.is("-") || p.is("+") {
		op := p.tok.text[0]
		p.advance()
		return &unary{op, p.unary()}
	}
	return p.power()
}

func (p *parser) power() expr {
	l := p.postfix()
	if p.is("^") {
		p.advance()
		// Right-associative; a sign may stand before the exponent.
		if p.is("-") || p.is("+") || p.is("!") {
			op := p.tok.text[0]
			p.advance()
			return &binary{"^", l, &unary{op, p.power()}}
		}
		return &binary{"^", l, p.power()}
	}
	return l
}

func (p *parser) postfix() expr {
	x := p.primary()
	if isLvalue(x) {
		switch {
		case p.is("++"):
			p.advance()
			return &incdec{x, 1, false}
		case p.is("--"):
			p.advance()
			return &incdec{x, -1, false}
		case p.tok.kind == tOp && (p.is("=") || p.is("+=") || p.is("-=") || p.is("*=") || p.is("/=") || p.is("%=") || p.is("^=")):
			return p.assignment(x)
		}
	}
	return x
}

func (p *parser) optionalLvalue() expr {
	if p.is("$") || p.tok.kind == tName {
		return p.primary()
	}
	return nil
}

func (p *parser) primary() expr {
	t := p.tok
	switch t.kind {
	case tNumber:
		p.advance()
		return &numLit{num(t.num)}
	case tString:
		p.advance()
		return &strLit{str(t.text)}
	case tRegex:
		p.advance()
		re, err := compileRegex(t.text)
		if err != nil {
			p.fail("%s in /%s/", err, t.text)
		}
		return &regexLit{re, t.text == ""}
	case tName:
		p.advance()
		v := p.variable(t.text)
		if p.accept("[") {
			return &indexRef{v, p.list("]")}
		}
		return v
	case tFunc:
		p.advance()
		p.expect("(")
		c := &call{name: t.text, fn: p.fn(t.text), args: p.list(")"), line: t.line}
		p.calls = append(p.calls, c)
		return c
	case tBuiltin:
		p.advance()
		if p.accept("(") {
			return p.builtin(t.text, p.list(")"))
		}
		if t.text != "length" {
			p.fail("syntax error at or near %s", p.tok.text)
		}
		return &builtinCall{name: "length"}
	case tKeyword:
		if t.text == "getline" {
			p.advance()
			g := &getline{to: p.optionalLvalue()}
			if p.is("<") {
				p.advance()
				g.kind, g.src = '<', p.postfix()
			}
			return g
		}
	case tOp:
		switch t.text {
		case "$":
			p.advance()
			if p.is("++") || p.is("--") {
				return &fieldRef{p.primary()}
			}
			if p.is("-") || p.is("+") || p.is("!") {
				return &fieldRef{p.unary()}
			}
			return &fieldRef{p.primary()}
		case "++", "--":
			p.advance()
			x := p.primary()
			if !isLvalue(x) {
				p.fail("syntax error: %s needs a variable", t.text)
			}
			if t.text == "++" {
				return &incdec{x, 1, true}
			}
			return &incdec{x, -1, true}
		case "(":
			p.advance()
			list := p.list(")")
			if len(list) == 0 {
				p.fail("syntax error at or near )")
			}
			return &group{list}
		}
	}
	p.expect("an expression")
	return nil
}

// minArgs and maxArgs are how many arguments built-in functions take.
var arity = map[string][2]int{"length": {0, 1}, "substr": {2, 3}, "index": {2, 2}, "split": {2, 4}, "sub": {2, 3}, "gsub": {2, 3}, "match": {2, 3},
	"sprintf": {1, 1 << 20}, "sin": {1, 1}, "cos": {1, 1}, "atan2": {2, 2}, "exp": {1, 1}, "log": {1, 1}, "sqrt": {1, 1}, "int": {1, 1},
	"rand": {0, 0}, "srand": {0, 1}, "tolower": {1, 1}, "toupper": {1, 1}, "system": {1, 1}, "close": {1, 2}, "fflush": {0, 1},
	"gensub": {3, 4}, "strftime": {0, 3}, "systime": {0, 0}, "mktime": {1, 2}, "and": {2, 99}, "or": {2, 99}, "xor": {2, 99}, "lshift": {2, 2},
	"rshift": {2, 2}, "compl": {1, 1}, "strtonum": {1, 1}, "asort": {1, 2}, "asorti": {1, 2}, "isarray": {1, 1}, "typeof": {1, 1}, "patsplit": {2, 3}}

// arrayArgs are the arguments that must be arrays.
var arrayArgs = map[string][]int{"split": {1}, "match": {2}, "asort": {0, 1}, "asorti": {0, 1}, "patsplit": {1}}

func (p *parser) builtin(name string, args []expr) expr {
	if a := arity[name]; len(args) < a[0] || len(args) > a[1] {
		p.fail("wrong number of arguments in call to %s", name)
	}
	for _, i := range arrayArgs[name] {
		if i < len(args) {
			if _, ok := args[i].(*varRef); !ok {
				p.fail("%s: argument %d must be an array", name, i+1)
			}
		}
	}
	if (name == "sub" || name == "gsub") && len(args) == 3 {
		if g, ok := args[2].(*group); ok && len(g.list) == 1 {
			args[2] = g.list[0]
		}
	}
	return &builtinCall{name, args}
}

// compileRegex compiles an extended regular expression with awk's escapes.
func compileRegex(s string) (*posixre.Regexp, error) {
	return posixre.Compile(regexEscapes(s), posixre.Options{Flavor: posixre.Extended, Grep: true})
}
