package awk

import (
	"fmt"

	"agentrun.dev/command/posixre"
)

type (
	expr interface{}
	stmt interface{}

	numLit   struct{ v value }
	strLit   struct{ v value }
	regexLit struct {
		re    *posixre.Regexp
		empty bool // //, which splits into characters
	}
	varRef struct {
		name    string
		slot    int
		local   bool
		special int
	}
	fieldRef struct{ x expr }
	indexRef struct {
		array *varRef
		subs  []expr
	}
	assign struct {
		op   byte // '=' or the operator
		l, r expr
	}
	cond   struct{ c, a, b expr }
	binary struct {
		op   string
		l, r expr
	}
	unary struct {
		op byte
		x  expr
	}
	incdec struct {
		x      expr
		delta  float64
		prefix bool
	}
	inExpr struct {
		subs  []expr
		array *varRef
	}
	matchExpr struct {
		l, r   expr
		negate bool
	}
	call struct {
		name string
		fn   *function
		args []expr
		line int
	}
	builtinCall struct {
		name string
		args []expr
	}
	getline struct {
		kind byte // 0 plain, '<' file, '|' command
		src  expr
		to   expr
	}
	group struct{ list []expr }

	exprStmt  struct{ x expr }
	printStmt struct {
		args   []expr
		format bool
		redir  string
		dest   expr
	}
	ifStmt struct {
		c    expr
		a, b []stmt
	}
	whileStmt struct {
		c    expr
		body []stmt
		post bool // do … while
	}
	forStmt struct {
		init, post stmt
		c          expr
		body       []stmt
	}
	forIn struct {
		v     *varRef
		array *varRef
		body  []stmt
	}
	blockStmt  struct{ body []stmt }
	jumpStmt   struct{ kind control }
	exitStmt   struct{ x expr }
	returnStmt struct{ x expr }
	deleteStmt struct {
		array *varRef
		subs  []expr // nil deletes all
	}

	function struct {
		name    string
		params  []string
		body    []stmt
		defined bool
		line    int
	}
	rule struct {
		from, to expr // to is set for a range
		body     []stmt
		print    bool // no action
		state    int
	}
	program struct {
		begin, end [][]stmt
		rules      []*rule
		funcs      map[string]*function
		globals    map[string]int
	}
)

// maxDepth bounds how deep expressions and statements nest.
const maxDepth = 1000

type parser struct {
	lex    lexer
	tok    token
	prog   *program
	locals map[string]int
	depth  int
	noIn   bool // in is no operator: the head of a for
	noGT   bool // > redirects: the arguments of print
	calls  []*call
}

// compile parses a program.
func compile(src string) (prog *program, err error) {
	defer func() {
		if r := recover(); r != nil {
			se, ok := r.(*syntaxError)
			if !ok {
				panic(r)
			}
			err = se
		}
	}()
	p := &parser{lex: lexer{src: src, line: 1}, prog: &program{funcs: map[string]*function{}, globals: map[string]int{}}}
	for i, name := range specials {
		p.prog.globals[name] = i
	}
	p.advance()
	p.program()
	for _, c := range p.calls {
		if !c.fn.defined {
			panic(&syntaxError{c.line, fmt.Sprintf("function %s never defined", c.name)})
		}
		if len(c.args) > len(c.fn.params) {
			panic(&syntaxError{c.line, fmt.Sprintf("too many arguments in call to %s", c.name)})
		}
	}
	return p.prog, nil
}

func (p *parser) advance() { p.tok = p.lex.next() }
func (p *parser) fail(format string, args ...any) {
	panic(&syntaxError{p.tok.line, fmt.Sprintf(format, args...)})
}
func (p *parser) is(op string) bool    { return p.tok.kind == tOp && p.tok.text == op }
func (p *parser) key(word string) bool { return p.tok.kind == tKeyword && p.tok.text == word }
func (p *parser) accept(op string) bool {
	if p.is(op) {
		p.advance()
		return true
	}
	return false
}

func (p *parser) expect(op string) {
	if !p.accept(op) {
		near := p.tok.text
		switch p.tok.kind {
		case tEOF:
			near = "end of file"
		case tNewline:
			near = "end of line"
		}
		p.fail("syntax error at or near %s", near)
	}
}

func (p *parser) newlines() {
	for p.tok.kind == tNewline {
		p.advance()
	}
}

func (p *parser) terminators() {
	for p.tok.kind == tNewline || p.is(";") {
		p.advance()
	}
}

func (p *parser) enter() {
	if p.depth++; p.depth > maxDepth {
		p.fail("the program is nested too deeply")
	}
}

func (p *parser) program() {
	for p.terminators(); p.tok.kind != tEOF; p.terminators() {
		switch {
		case p.key("BEGIN"):
			p.advance()
			p.newlines()
			p.prog.begin = append(p.prog.begin, p.block())
		case p.key("END"):
			p.advance()
			p.newlines()
			p.prog.end = append(p.prog.end, p.block())
		case p.key("function"):
			p.function()
		default:
			p.rule()
		}
	}
}

func (p *parser) rule() {
	r := &rule{state: len(p.prog.rules)}
	if !p.is("{") {
		r.from = p.expr()
		if p.accept(",") {
			p.newlines()
			r.to = p.expr()
		}
	}
	if p.is("{") {
		r.body = p.block()
	} else {
		r.print = true
	}
	p.prog.rules = append(p.prog.rules, r)
}

func (p *parser) fn(name string) *function {
	f := p.prog.funcs[name]
	if f == nil {
		f = &function{name: name}
		p.prog.funcs[name] = f
	}
	return f
}

func (p *parser) function() {
	p.advance()
	if p.tok.kind != tName && p.tok.kind != tFunc {
		p.fail("syntax error at or near %s", p.tok.text)
	}
	f := p.fn(p.tok.text)
	if f.defined {
		p.fail("function %s redefined", f.name)
	}
	f.defined = true
	p.advance()
	p.expect("(")
	p.locals = map[string]int{}
	for !p.is(")") {
		if p.tok.kind != tName {
			p.fail("syntax error at or near %s", p.tok.text)
		}
		p.locals[p.tok.text] = len(f.params)
		f.params = append(f.params, p.tok.text)
		p.advance()
		if !p.accept(",") {
			break
		}
		p.newlines()
	}
	p.expect(")")
	p.newlines()
	f.body = p.block()
	p.locals = nil
}

func (p *parser) block() []stmt {
	p.expect("{")
	var body []stmt
	for p.terminators(); !p.is("}"); p.terminators() {
		if p.tok.kind == tEOF {
			p.fail("syntax error: unexpected end of program, missing }")
		}
		body = append(body, p.stmt())
	}
	p.advance()
	return body
}

// body is the statement that if, while and for control.
func (p *parser) body() []stmt {
	p.newlines()
	if p.is("{") {
		return p.block()
	}
	if p.accept(";") {
		return nil
	}
	return []stmt{p.stmt()}
}

// ended checks what follows a simple statement.
func (p *parser) ended() {
	switch {
	case p.tok.kind == tNewline || p.is(";"):
		p.advance()
	case p.is("}") || p.tok.kind == tEOF:
	default:
		p.expect(";")
	}
}

func (p *parser) stmt() stmt {
	p.enter()
	defer func() { p.depth-- }()
	if p.is("{") {
		return &blockStmt{p.block()}
	}
	if p.tok.kind == tKeyword {
		switch p.tok.text {
		case "if":
			return p.ifStmt()
		case "while":
			p.advance()
			p.expect("(")
			c := p.expr()
			p.expect(")")
			if p.accept(";") {
				return &whileStmt{c: c}
			}
			return &whileStmt{c: c, body: p.body()}
		case "do":
			p.advance()
			body := p.body()
			p.terminators()
			if !p.key("while") {
				p.fail("syntax error: expected while")
			}
			p.advance()
			p.expect("(")
			c := p.expr()
			p.expect(")")
			p.ended()
			return &whileStmt{c: c, body: body, post: true}
		case "for":
			return p.forStmt()
		}
	}
	s := p.simple()
	p.ended()
	return s
}

func (p *parser) ifStmt() stmt {
	p.advance()
	p.expect("(")
	s := &ifStmt{c: p.expr()}
	p.expect(")")
	s.a = p.body()
	// An else may follow after newlines and a semicolon; if it doesn't, these end the statement.
	save, lex := p.tok, p.lex
	p.terminators()
	if p.key("else") {
		p.advance()
		s.b = p.body()
	} else if save.kind != tNewline && !(save.kind == tOp && save.text == ";") {
		return s
	} else {
		p.tok, p.lex = save, lex
	}
	return s
}

func (p *parser) forStmt() stmt {
	p.advance()
	p.expect("(")
	if p.tok.kind == tName {
		// for (name in array)
		save, lex := p.tok, p.lex
		name := p.tok.text
		p.advance()
		if p.key("in") {
			p.advance()
			if p.tok.kind == tName {
				array := p.tok.text
				p.advance()
				if p.accept(")") {
					return &forIn{p.variable(name), p.variable(array), p.body()}
				}
			}
		}
		p.tok, p.lex = save, lex
	}
	s := &forStmt{}
	if !p.is(";") {
		s.init = p.simple()
	}
	p.expect(";")
	p.newlines()
	if !p.is(";") {
		s.c = p.expr()
	}
	p.expect(";")
	p.newlines()
	if !p.is(")") {
		s.post = p.simple()
	}
	p.expect(")")
	if p.accept(";") {
		return s
	}
	s.body = p.body()
	return s
}

func (p *parser) endOfSimple() bool {
	return p.tok.kind == tNewline || p.tok.kind == tEOF || p.is(";") || p.is("}")
}

func (p *parser) simple() stmt {
	if p.tok.kind != tKeyword || p.tok.text == "getline" {
		return &exprStmt{p.expr()}
	}
	word := p.tok.text
	p.advance()
	switch word {
	case "print", "printf":
		return p.print(word == "printf")
	case "next":
		return &jumpStmt{ctlNext}
	case "nextfile":
		return &jumpStmt{ctlNextFile}
	case "break":
		return &jumpStmt{ctlBreak}
	case "continue":
		return &jumpStmt{ctlContinue}
	case "exit":
		s := &exitStmt{}
		if !p.endOfSimple() {
			s.x = p.expr()
		}
		return s
	case "return":
		s := &returnStmt{}
		if !p.endOfSimple() {
			s.x = p.expr()
		}
		return s
	case "delete":
		paren := p.accept("(")
		if p.tok.kind != tName {
			p.fail("syntax error at or near %s", p.tok.text)
		}
		s := &deleteStmt{array: p.variable(p.tok.text)}
		p.advance()
		if p.accept("[") {
			s.subs = p.list("]")
		}
		if paren {
			p.expect(")")
		}
		return s
	}
	p.fail("syntax error at or near %s", word)
	return nil
}

func (p *parser) print(format bool) stmt {
	s := &printStmt{format: format}
	p.noGT = true
	if !p.endOfSimple() && !p.is(">") && !p.is(">>") && !p.is("|") {
		x := p.expr()
		if g, ok := x.(*group); ok && len(g.list) != 1 {
			s.args = g.list
		} else {
			s.args = []expr{x}
		}
		for p.accept(",") {
			p.newlines()
			s.args = append(s.args, p.expr())
		}
	}
	p.noGT = false
	if p.is(">") || p.is(">>") || p.is("|") {
		s.redir = p.tok.text
		p.advance()
		s.dest = p.concat(true)
	}
	if format && len(s.args) == 0 {
		p.fail("printf: no format")
	}
	return s
}

func (p *parser) list(end string) []expr {
	noGT, noIn := p.noGT, p.noIn
	p.noGT, p.noIn = false, false
	var out []expr
	p.newlines()
	for !p.is(end) {
		out = append(out, p.expr())
		p.newlines()
		if !p.accept(",") {
			break
		}
		p.newlines()
	}
	p.noGT, p.noIn = noGT, noIn
	p.expect(end)
	return out
}

func (p *parser) variable(name string) *varRef {
	if slot, ok := p.locals[name]; ok {
		return &varRef{name: name, slot: slot, local: true}
	}
	slot, ok := p.prog.globals[name]
	if !ok {
		slot = len(p.prog.globals)
		p.prog.globals[name] = slot
	}
	return &varRef{name: name, slot: slot}
}
