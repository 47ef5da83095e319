package calc

import (
	"fmt"
	"strings"
)

// node is an expression or a statement.
type node struct {
	op   string // see eval and exec
	text string // a name, a number's digits, an operator
	kids []*node
	adr  int // where GNU bc would be in its code, for messages
	// paren says that an assignment or a relation was in parentheses, so that it is printed.
	paren bool
}

// function is one that was defined.
type function struct {
	params, autos []variable
	body          []*node
	void          bool
}

// variable is a parameter or a local: a name, perhaps of an array, perhaps one of the caller's.
type variable struct {
	name       string
	array, ref bool
}

// parser reads statements.
type parser struct {
	*lexer
	adr    int
	depth  int // of what is nested
	loops  int
	inFunc bool
	quit   bool
	define func(name string, f *function)
	limits func()
	failed bool
}

// maxDepth bounds how deep expressions and statements are nested.
const maxDepth = 2000

type syntaxError struct{}

func (p *parser) fail() { panic(syntaxError{}) }

func (p *parser) is(kind tokKind, text string) bool {
	return p.tok.kind == kind && (text == "" || p.tok.text == text)
}

func (p *parser) want(kind tokKind) string {
	if p.tok.kind != kind {
		p.fail()
	}
	text := p.tok.text
	p.advance()
	return text
}

func (p *parser) skipNewlines() {
	for p.tok.kind == '\n' {
		p.advance()
	}
}

func (p *parser) nested() func() {
	if p.depth++; p.depth > maxDepth {
		p.fail()
	}
	return func() { p.depth-- }
}

// line reads the statements of one line; end says that there is no more. After a mistake the rest of the line is left
// out.
func (p *parser) line() (list []*node, end bool) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		if _, ok := r.(syntaxError); !ok {
			panic(r)
		}
		p.bad("syntax error")
		for p.tok.kind != '\n' && p.tok.kind != tokEOF {
			p.advance()
		}
		p.depth, p.loops, p.inFunc = 0, 0, false
		list, end = nil, p.tok.kind == tokEOF
		p.tok.kind = '\n'
	}()
	p.adr, p.failed = 0, false
	p.advance()
	for {
		switch {
		case p.tok.kind == tokEOF:
			if len(list) > 0 {
				p.fail() // the last line lacks its end
			}
			return list, true
		case p.tok.kind == '\n':
			if p.failed {
				return nil, false
			}
			return list, false
		case p.tok.kind == ';':
			p.advance()
			continue
		case p.is(tokKeyword, "define"):
			p.definition()
			return list, false
		}
		list = append(list, p.statement())
		if p.quit {
			return list, true
		}
		if p.tok.kind != '\n' && p.tok.kind != ';' && p.tok.kind != tokEOF {
			p.fail()
		}
	}
}

func (p *parser) statement() *node {
	defer p.nested()()
	switch p.tok.kind {
	case '{':
		p.advance()
		return &node{op: "block", kids: p.block()}
	case tokString:
		n := &node{op: "string", text: p.tok.text}
		p.adr += len(n.text) + 2
		p.advance()
		return n
	case tokKeyword:
		if n := p.keyword(); n != nil {
			return n
		}
	}
	e := p.expression()
	p.adr++
	if strings.HasPrefix(e.op, "assign") && !e.paren {
		return &node{op: "drop", kids: []*node{e}}
	}
	return &node{op: "show", kids: []*node{e}}
}

// block reads statements up to the closing brace.
func (p *parser) block() (list []*node) {
	for {
		switch p.tok.kind {
		case '\n', ';':
			p.advance()
			continue
		case '}':
			p.advance()
			return list
		case tokEOF:
			p.fail()
		}
		list = append(list, p.statement())
		if p.tok.kind != '\n' && p.tok.kind != ';' && p.tok.kind != '}' {
			p.fail()
		}
	}
}

// keyword reads a statement that begins with one; nil if it begins an expression.
func (p *parser) keyword() *node {
	word := p.tok.text
	switch word {
	case "quit":
		p.quit = true
		return &node{op: "halt"}
	case "halt":
		p.advance()
		return &node{op: "halt"}
	case "limits", "warranty":
		p.advance()
		return &node{op: word}
	case "break", "continue":
		p.advance()
		if p.loops == 0 {
			what := "Break"
			if word == "continue" {
				what = "Continue"
			}
			if p.tok.kind == '\n' {
				p.no--
				defer func() { p.no++ }()
			}
			p.bad("%s outside a for%s", what, map[bool]string{true: "/while"}[word == "break"])
			p.failed = true
		}
		return &node{op: word}
	case "return":
		p.advance()
		n := &node{op: "return", kids: []*node{nil}}
		if k := p.tok.kind; k != '\n' && k != ';' && k != '}' && k != tokEOF {
			n.kids[0] = p.expression()
		}
		if !p.inFunc {
			if p.tok.kind == '\n' {
				p.no++
				defer func() { p.no-- }()
			}
			p.bad("Return outside of a function.")
			p.failed = true
		}
		return n
	case "print":
		p.advance()
		n := &node{op: "print"}
		for {
			if p.tok.kind == tokString {
				n.kids = append(n.kids, &node{op: "text", text: p.tok.text})
				p.advance()
			} else {
				n.kids = append(n.kids, p.expression())
			}
			if p.tok.kind != ',' {
				return n
			}
			p.advance()
		}
	case "if":
		return p.ifStatement()
	case "while":
		p.advance()
		p.want('(')
		cond := p.expression()
		p.want(')')
		p.skipNewlines()
		p.loops++
		body := p.statement()
		p.loops--
		return &node{op: "while", kids: []*node{cond, body}}
	case "for":
		return p.forStatement()
	}
	return nil
}

func (p *parser) ifStatement() *node {
	p.advance()
	p.want('(')
	cond := p.expression()
	p.want(')')
	p.adr += 3
	p.skipNewlines()
	n := &node{op: "if", kids: []*node{cond, p.statement(), nil}}
	if p.is(tokKeyword, "else") {
		p.advance()
		p.skipNewlines()
		n.kids[2] = p.statement()
	}
	return n
}

func (p *parser) forStatement() *node {
	p.advance()
	p.want('(')
	var parts [3]*node
	for i, end := range []tokKind{';', ';', ')'} {
		if p.tok.kind != end {
			parts[i] = p.expression()
		}
		p.want(end)
	}
	p.skipNewlines()
	p.loops++
	body := p.statement()
	p.loops--
	return &node{op: "for", kids: []*node{parts[0], parts[1], parts[2], body}}
}

// definition reads a function.
func (p *parser) definition() {
	p.advance()
	f := &function{}
	if p.is(tokKeyword, "void") {
		f.void = true
		p.advance()
	}
	name := p.want(tokName)
	p.want('(')
	f.params = p.variables(')')
	p.want(')')
	p.skipNewlines()
	p.want('{')
	p.skipNewlines()
	if p.is(tokKeyword, "auto") {
		p.advance()
		f.autos = p.variables('\n')
		if p.tok.kind != '\n' && p.tok.kind != ';' {
			p.fail()
		}
	}
	loops := p.loops
	p.inFunc, p.loops = true, 0
	f.body = p.block()
	p.inFunc, p.loops = false, loops
	if p.tok.kind != '\n' && p.tok.kind != ';' && p.tok.kind != tokEOF {
		p.fail()
	}
	p.define(name, f)
}

func (p *parser) variables(end tokKind) (list []variable) {
	for p.tok.kind != end && p.tok.kind != ';' {
		v := variable{}
		if p.tok.kind == '*' || p.tok.kind == '&' {
			v.ref = true
			p.advance()
		}
		v.name = p.want(tokName)
		if p.tok.kind == '[' {
			p.advance()
			p.want(']')
			v.array = true
		}
		list = append(list, v)
		if p.tok.kind != ',' {
			break
		}
		p.advance()
	}
	return list
}

// expression is ||, the weakest operator.
func (p *parser) expression() *node {
	defer p.nested()()
	return p.binary(0)
}

// binary parses || (0), && (1), ! (2), relations (3), assignments (4).
func (p *parser) binary(level int) *node {
	switch level {
	case 0, 1:
		kind, op := tokOr, "||"
		if level == 1 {
			kind, op = tokAnd, "&&"
		}
		n := p.binary(level + 1)
		for p.tok.kind == kind {
			p.advance()
			n = p.make(op, op, n, p.binary(level+1))
		}
		return n
	case 2:
		if p.tok.kind == '!' {
			p.advance()
			defer p.nested()()
			return p.make("!", "!", p.binary(2))
		}
		return p.binary(3)
	case 3:
		n := p.assignment()
		for p.tok.kind == tokRel {
			op := p.tok.text
			p.advance()
			n = p.make("rel", op, n, p.assignment())
		}
		return n
	}
	return p.assignment()
}

func (p *parser) make(op, text string, kids ...*node) *node {
	p.adr++
	return &node{op: op, text: text, kids: kids, adr: p.adr}
}

func (n *node) assignable() bool {
	return (n.op == "var" || n.op == "element" || n.op == "special") && !n.paren
}

func (p *parser) assignment() *node {
	defer p.nested()()
	n := p.sum()
	if p.tok.kind == tokAssign && n.assignable() {
		op := p.tok.text
		p.advance()
		if op == "=" && n.op == "var" {
			p.adr -= 2 // its value isn't loaded
		}
		n = p.make("assign", strings.TrimSuffix(op, "="), n, p.assignment())
		p.adr++
	}
	return n
}

func (p *parser) sum() *node {
	n := p.product()
	for p.tok.kind == '+' || p.tok.kind == '-' {
		op := p.tok.text
		p.advance()
		n = p.make("math", op, n, p.product())
	}
	return n
}

func (p *parser) product() *node {
	n := p.power()
	for p.tok.kind == '*' || p.tok.kind == '/' || p.tok.kind == '%' {
		op := p.tok.text
		p.advance()
		n = p.make("math", op, n, p.power())
	}
	return n
}

func (p *parser) power() *node {
	n := p.unary()
	if p.tok.kind == '^' {
		p.advance()
		defer p.nested()()
		n = p.make("math", "^", n, p.power())
	}
	return n
}

func (p *parser) unary() *node {
	switch p.tok.kind {
	case '-':
		p.advance()
		defer p.nested()()
		return p.make("neg", "-", p.unary())
	case tokIncr:
		op := p.tok.text
		p.advance()
		n := p.primary()
		if !n.assignable() {
			p.fail()
		}
		return p.make("pre", op, n)
	}
	n := p.primary()
	if p.tok.kind == tokIncr && n.assignable() {
		n = p.make("post", p.tok.text, n)
		p.advance()
	}
	return n
}

func (p *parser) primary() *node {
	switch p.tok.kind {
	case tokNumber:
		n := &node{op: "number", text: p.tok.text}
		if p.adr++; n.text != "0" && n.text != "1" {
			p.adr += len(n.text) + 1
		}
		p.advance()
		return n
	case '(':
		p.advance()
		n := p.expression()
		p.want(')')
		n.paren = true
		return n
	case tokName:
		return p.named()
	case tokKeyword:
		return p.builtin()
	}
	p.fail()
	return nil
}

// named is a variable, an element or a call.
func (p *parser) named() *node {
	name := p.want(tokName)
	switch p.tok.kind {
	case '[':
		p.advance()
		if p.tok.kind == ']' {
			p.advance()
			return &node{op: "array", text: name}
		}
		i := p.expression()
		p.want(']')
		p.adr += 2
		return &node{op: "element", text: name, kids: []*node{i}, adr: p.adr}
	case '(':
		p.advance()
		n := &node{op: "call", text: name}
		for p.tok.kind != ')' {
			n.kids = append(n.kids, p.expression())
			if p.tok.kind != ',' {
				break
			}
			p.advance()
			if p.tok.kind == ')' {
				p.fail()
			}
		}
		p.want(')')
		p.adr += 2 + len(n.kids)
		n.adr = p.adr
		p.adr++
		return n
	}
	p.adr += 2
	return &node{op: "var", text: name}
}

func (p *parser) builtin() *node {
	word := p.tok.text
	switch word {
	case "ibase", "obase", "last":
		p.advance()
		p.adr += 2
		return &node{op: "special", text: word}
	case "scale":
		p.advance()
		if p.tok.kind != '(' {
			p.adr += 2
			return &node{op: "special", text: word}
		}
		p.advance()
		n := p.expression()
		p.want(')')
		return p.make("scale", word, n)
	case "length", "sqrt":
		p.advance()
		p.want('(')
		n := p.expression()
		p.want(')')
		if word == "sqrt" {
			defer func() { p.adr++ }()
		}
		return p.make(word, word, n)
	case "read", "random":
		p.advance()
		p.want('(')
		p.want(')')
		return p.make(word, word)
	}
	p.fail()
	return nil
}

// bcMessage is a message about a line of an input.
func bcMessage(name string, line int, format string, args ...any) string {
	return fmt.Sprintf("%s %d: %s\n", name, max(line, 1), fmt.Sprintf(format, args...))
}
