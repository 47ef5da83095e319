package shell

import (
	"errors"
	"fmt"
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
			if strings.HasPrefix(p.s[p.i:], op) {
				p.tok, p.kind = op, 'o'
				p.i += len(op)
				return
			}
		}
		p.tok, p.kind = string(c), 'o'
		p.i++
		if strings.IndexByte("+-*/%<>=!&|^~?:,()", c) < 0 {
			p.fail("syntax error: invalid arithmetic operator")
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

// evalArith evaluates an expression's text, already expanded.
func (sh *Shell) evalArith(text string) (int64, error) {
	if n, ok := plainInt(text); ok {
		return n, nil
	}
	node, ok := sh.arithCache[text]
	if !ok {
		var err error
		if node, err = parseArith(text); err != nil {
			return 0, err
		}
		if sh.arithCache == nil || len(sh.arithCache) >= arithCacheSize {
			sh.arithCache = make(map[string]*arithNode)
		}
		sh.arithCache[text] = node
	}
	sh.arithDepth++
	defer func() { sh.arithDepth-- }()
	if sh.arithDepth > maxArithDepth {
		return 0, &arithError{"expression recursion level exceeded", text}
	}
	return sh.evalNode(node, text)
}

func plainInt(s string) (int64, bool) {
	if s == "" || len(s) > 18 || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	var n int64
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(s[i]-'0')
	}
	return n, true
}

var errDivZero = errors.New("division by 0")

func (sh *Shell) evalNode(n *arithNode, text string) (int64, error) {
	switch n.op {
	case opNum:
		return n.n, nil
	case opVar:
		return sh.arithVar(n)
	case opUnary:
		x, err := sh.evalNode(n.x, text)
		if err != nil {
			return 0, err
		}
		switch n.tok {
		case "-":
			return -x, nil
		case "!":
			return b2i(x == 0), nil
		case "~":
			return ^x, nil
		}
		return x, nil
	case opPre, opPost:
		x, err := sh.evalNode(n.x, text)
		if err != nil {
			return 0, err
		}
		y := x + 1
		if n.tok == "-" {
			y = x - 1
		}
		if err := sh.arithSet(n.x, y); err != nil {
			return 0, err
		}
		if n.op == opPost {
			return x, nil
		}
		return y, nil
	case opTernary:
		c, err := sh.evalNode(n.x, text)
		if err != nil {
			return 0, err
		}
		if c != 0 {
			return sh.evalNode(n.y, text)
		}
		return sh.evalNode(n.z, text)
	case opAssign:
		y, err := sh.evalNode(n.y, text)
		if err != nil {
			return 0, err
		}
		if n.tok != "" {
			x, err := sh.evalNode(n.x, text)
			if err != nil {
				return 0, err
			}
			if y, err = binaryOp(n.tok, x, y, text); err != nil {
				return 0, err
			}
		}
		return y, sh.arithSet(n.x, y)
	}
	x, err := sh.evalNode(n.x, text)
	if err != nil {
		return 0, err
	}
	switch {
	case n.tok == "&&" && x == 0:
		return 0, nil
	case n.tok == "||" && x != 0:
		return 1, nil
	}
	y, err := sh.evalNode(n.y, text)
	if err != nil {
		return 0, err
	}
	return binaryOp(n.tok, x, y, text)
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func binaryOp(op string, x, y int64, text string) (int64, error) {
	switch op {
	case ",":
		return y, nil
	case "||":
		return b2i(x != 0 || y != 0), nil
	case "&&":
		return b2i(x != 0 && y != 0), nil
	case "|":
		return x | y, nil
	case "^":
		return x ^ y, nil
	case "&":
		return x & y, nil
	case "==":
		return b2i(x == y), nil
	case "!=":
		return b2i(x != y), nil
	case "<":
		return b2i(x < y), nil
	case ">":
		return b2i(x > y), nil
	case "<=":
		return b2i(x <= y), nil
	case ">=":
		return b2i(x >= y), nil
	case "<<":
		return x << (uint64(y) & 63), nil
	case ">>":
		return x >> (uint64(y) & 63), nil
	case "+":
		return x + y, nil
	case "-":
		return x - y, nil
	case "*":
		return x * y, nil
	case "/", "%":
		if y == 0 {
			// bash points at the divisor.
			i := strings.LastIndex(text, op)
			return 0, &arithError{"division by 0", strings.TrimLeft(text[i+1:], " ")}
		}
		if y == -1 { // the smallest integer has no positive counterpart
			if op == "/" {
				return -x, nil
			}
			return 0, nil
		}
		if op == "/" {
			return x / y, nil
		}
		return x % y, nil
	case "**":
		if y < 0 {
			i := strings.LastIndex(text, "-")
			return 0, &arithError{"exponent less than 0", strings.TrimLeft(text[max(0, i):], "- ")}
		}
		r := int64(1)
		for ; y > 0; y >>= 1 {
			if y&1 != 0 {
				r *= x
			}
			x *= x
		}
		return r, nil
	}
	return 0, fmt.Errorf("unknown operator %s", op)
}

// arithVar reads a variable, whose value is an expression itself.
func (sh *Shell) arithVar(n *arithNode) (int64, error) {
	var s string
	ok := true
	if n.hasSub {
		v := sh.lookup(n.name)
		if v != nil {
			target, _ := sh.resolve(n.name)
			s, ok = sh.element(v, target, sh.expandSubText(target, n.sub))
		} else {
			if sh.opts.nounset {
				sh.unbound(n.name)
				return 0, errAborted
			}
			if _, err := sh.evalArith(n.sub); err != nil && !sh.isAssoc(n.name) {
				return 0, err
			}
		}
	} else {
		s, ok = sh.get(n.name)
	}
	if !ok && sh.opts.nounset {
		sh.unbound(n.name)
		return 0, errAborted
	}
	if s == "" {
		return 0, nil
	}
	if x, ok := plainInt(s); ok {
		return x, nil
	}
	return sh.evalArith(s)
}

// errAborted follows an error whose message was written already.
var errAborted = errors.New("aborted")

func (sh *Shell) arithSet(n *arithNode, x int64) error {
	s := strconv.FormatInt(x, 10)
	if n.hasSub {
		target, _ := sh.resolve(n.name)
		if !sh.assignElement(target, sh.expandSubText(target, n.sub), s, false) {
			return errAborted
		}
		return nil
	}
	if !sh.set(n.name, s) {
		return errAborted
	}
	return nil
}

// arithValue evaluates a value that is being assigned to an integer variable.
func (sh *Shell) arithValue(s string) (int64, bool) {
	n, err := sh.evalArith(strings.TrimSpace(s))
	if err != nil {
		sh.arithFailed("", s, err)
		return 0, false
	}
	return n, true
}

// arithFailed writes an expression's error and makes the command fail.
func (sh *Shell) arithFailed(prefix, text string, err error) {
	if err != errAborted {
		sh.errorf("%s%s: %s", prefix, strings.TrimLeft(text, " \t\n"), err)
	}
}
