package shell

import (
	"errors"
	"strconv"
	"strings"
)

// Arithmetic works on text, as bash's does: words are expanded first, then the text is parsed and evaluated. Parsed
// expressions are kept by their text.

type arithOp uint8

const (
	opNum arithOp = iota
	opVar
	opUnary
	opBinary
	opTernary
	opAssign
	opPre
	opPost
)

type arithNode struct {
	op      arithOp
	tok     string
	n       int64
	name    string
	sub     string // subscript's text
	hasSub  bool
	x, y, z *arithNode
}

// arithError is an error in an expression; its text follows the expression and a colon.
type arithError struct{ text, rest string }

func (e *arithError) Error() string {
	return e.text + ` (error token is "` + e.rest + `")`
}

// maxArithDepth bounds nested parentheses and variables that hold expressions.
const maxArithDepth = 1024

type arithParser struct {
	s     string
	i     int
	tok   string // current token, "" at the end
	at    int    // where it begins
	num   int64
	kind  byte // 'n' number, 'v' name, 'o' operator, 0 end
	depth int
	err   error
}

func parseArith(s string) (*arithNode, error) {
	p := &arithParser{s: s}
	p.next()
	if p.err == nil && p.kind == 0 {
		return &arithNode{}, nil
	}
	n := p.expr(0)
	if p.err == nil && p.kind != 0 {
		switch {
		case p.kind == 'o' && (p.tok == "=" || strings.HasSuffix(p.tok, "=") && binPrec(p.tok) == 0):
			p.fail("attempted assignment to non-variable")
		case p.kind == 'o':
			p.fail("syntax error in expression")
		default:
			p.fail("syntax error in expression")
		}
	}
	return n, p.err
}

func (p *arithParser) fail(text string) {
	if p.err == nil {
		p.err = &arithError{text, p.s[min(p.at, len(p.s)):]}
		p.kind = 0
	}
}

func (p *arithParser) next() {
	if p.err != nil {
		p.kind = 0
		return
	}
	for p.i < len(p.s) && strings.IndexByte(" \t\n\r", p.s[p.i]) >= 0 {
		p.i++
	}
	value := p.kind == 'n' || p.kind == 'v' || p.kind == 'o' && (p.tok == ")" || p.tok == "]")
	number := p.kind == 'n'
	p.at = p.i
	if p.i >= len(p.s) {
		p.kind, p.tok = 0, ""
		return
	}
	c := p.s[p.i]
	switch {
	case c >= '0' && c <= '9':
		j := p.i
		for j < len(p.s) && (isAlnum(p.s[j]) || p.s[j] == '#' || p.s[j] == '@') {
			j++
		}
		p.tok, p.kind = p.s[p.i:j], 'n'
		n, err := parseNumber(p.tok)
		if err != nil {
			p.err = &arithError{err.Error(), p.s[p.i:]}
			p.kind = 0
			return
		}
		p.num, p.i = n, j
	case isAlnum(c):
		j := p.i
		for j < len(p.s) && isAlnum(p.s[j]) {
			j++
		}
		p.tok, p.kind, p.i = p.s[p.i:j], 'v', j
	default:
		for _, op := range [...]string{"<<=", ">>=", "**", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^="} {
			if strings.HasPrefix(p.s[p.i:], op) && !(number && (op == "++" || op == "--")) {
				p.tok, p.kind = op, 'o'
				p.i += len(op)
				return
			}
		}
		p.tok, p.kind = string(c), 'o'
		p.i++
		if strings.IndexByte("+-*/%<>=!&|^~?:,()", c) < 0 {
			if value {
				p.fail("syntax error: invalid arithmetic operator")
			} else {
				p.fail("syntax error: operand expected")
			}
		}
	}
}

func isAlnum(c byte) bool {
	return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
}

// parseNumber reads an integer constant: decimal, 0x, 0 (octal), base#digits.
func parseNumber(s string) (int64, error) {
	base := int64(10)
	digits := s
	switch i := strings.IndexByte(s, '#'); {
	case i >= 0:
		b, err := strconv.Atoi(s[:i])
		if err != nil || b < 2 || b > 64 {
			return 0, errors.New("invalid arithmetic base")
		}
		base, digits = int64(b), s[i+1:]
		if digits == "" {
			return 0, errors.New("invalid integer constant")
		}
	case strings.HasPrefix(s, "0x") || strings.HasPrefix(s, "0X"):
		base, digits = 16, s[2:]
	case len(s) > 1 && s[0] == '0':
		base, digits = 8, s[1:]
	}
	var n int64
	for i := 0; i < len(digits); i++ {
		c := digits[i]
		var d int64
		switch {
		case c >= '0' && c <= '9':
			d = int64(c - '0')
		case c >= 'a' && c <= 'z':
			d = int64(c-'a') + 10
		case c >= 'A' && c <= 'Z' && base <= 36:
			d = int64(c-'A') + 10
		case c >= 'A' && c <= 'Z':
			d = int64(c-'A') + 36
		case c == '@':
			d = 62
		case c == '_':
			d = 63
		default:
			return 0, errors.New("syntax error: invalid arithmetic operator")
		}
		if d >= base {
			return 0, errors.New("value too great for base")
		}
		n = n*base + d
	}
	return n, nil
}

// binPrec returns a binary operator's precedence, 0 for none. Comma is 1, assignment 2, ?: 3.
func binPrec(op string) int {
	switch op {
	case ",":
		return 1
	case "||":
		return 4
	case "&&":
		return 5
	case "|":
		return 6
	case "^":
		return 7
	case "&":
		return 8
	case "==", "!=":
		return 9
	case "<", ">", "<=", ">=":
		return 10
	case "<<", ">>":
		return 11
	case "+", "-":
		return 12
	case "*", "/", "%":
		return 13
	case "**":
		return 14
	}
	return 0
}

func isAssign(op string) bool {
	switch op {
	case "=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=":
		return true
	}
	return false
}

func (p *arithParser) expr(min int) *arithNode {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxArithDepth {
		p.fail("expression recursion level exceeded")
		return nil
	}
	left := p.unary()
	for p.err == nil && p.kind == 'o' {
		op := p.tok
		switch prec := binPrec(op); {
		case isAssign(op) && min <= 2:
			if left == nil || left.op != opVar {
				p.fail("attempted assignment to non-variable")
				return nil
			}
			p.next()
			right := p.expr(2)
			left = &arithNode{op: opAssign, tok: strings.TrimSuffix(op, "="), x: left, y: right}
		case op == "?" && min <= 3:
			p.next()
			if p.kind == 'o' && p.tok == ":" || p.kind == 0 {
				p.fail("expression expected")
				return nil
			}
			yes := p.expr(1)
			if p.err == nil && (p.kind != 'o' || p.tok != ":") {
				p.fail("`:' expected for conditional expression")
				return nil
			}
			p.next()
			if p.kind == 0 {
				p.fail("expression expected")
				return nil
			}
			no := p.expr(3)
			left = &arithNode{op: opTernary, x: left, y: yes, z: no}
		case prec == 0 || prec < min:
			return left
		default:
			p.next()
			next := prec + 1
			if op == "**" {
				next = prec
			}
			right := p.expr(next)
			left = &arithNode{op: opBinary, tok: op, x: left, y: right}
		}
	}
	return left
}

func (p *arithParser) unary() *arithNode {
	if p.err != nil {
		return nil
	}
	switch p.kind {
	case 'n':
		n := &arithNode{op: opNum, n: p.num}
		p.next()
		return n
	case 'v':
		return p.variable()
	case 'o':
		switch op := p.tok; op {
		case "(":
			p.next()
			n := p.expr(0)
			if p.err == nil && (p.kind != 'o' || p.tok != ")") {
				p.fail("missing `)'")
				return nil
			}
			p.next()
			return n
		case "++", "--":
			p.next()
			if p.kind == 'v' {
				v := p.primary()
				return &arithNode{op: opPre, tok: op[:1], x: v}
			}
			// "--5" is two signs.
			p.depth++
			defer func() { p.depth-- }()
			if p.depth > maxArithDepth {
				p.fail("expression recursion level exceeded")
				return nil
			}
			x := p.unary()
			return &arithNode{op: opUnary, tok: op[:1], x: &arithNode{op: opUnary, tok: op[:1], x: x}}
		case "+", "-", "!", "~":
			p.depth++
			defer func() { p.depth-- }()
			if p.depth > maxArithDepth {
				p.fail("expression recursion level exceeded")
				return nil
			}
			p.next()
			return &arithNode{op: opUnary, tok: op, x: p.unary()}
		}
	}
	if p.kind == 0 {
		p.at = p.lastToken()
	}
	p.fail("syntax error: operand expected")
	return nil
}

// lastToken is where bash points when an operand is missing at the end: the operator before.
func (p *arithParser) lastToken() int {
	i := len(strings.TrimRight(p.s, " \t\n\r"))
	for i > 0 && !isAlnum(p.s[i-1]) && p.s[i-1] != ' ' {
		i--
		if i > 0 && strings.IndexByte("+-*/<>=&|", p.s[i-1]) < 0 {
			break
		}
	}
	return i
}

func (p *arithParser) primary() *arithNode {
	n := &arithNode{op: opVar, name: p.tok}
	if p.i < len(p.s) && p.s[p.i] == '[' {
		depth := 0
		for j := p.i; j < len(p.s); j++ {
			switch p.s[j] {
			case '[':
				depth++
			case ']':
				depth--
			}
			if depth == 0 {
				n.sub, n.hasSub = p.s[p.i+1:j], true
				p.i = j + 1
				p.next()
				return n
			}
		}
		p.err = &arithError{"bad array subscript", p.s[p.at:]}
		return nil
	}
	p.next()
	return n
}

func (p *arithParser) variable() *arithNode {
	n := p.primary()
	if p.err == nil && p.kind == 'o' && (p.tok == "++" || p.tok == "--") {
		op := p.tok[:1]
		p.next()
		return &arithNode{op: opPost, tok: op, x: n}
	}
	return n
}

// arithCacheSize bounds how many parsed expressions a shell keeps.
const arithCacheSize = 512

// errAborted follows an error whose message was written already.
var errAborted = errors.New("aborted")
