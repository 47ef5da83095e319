package coreutils

import (
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentrun.dev/command/posixre"
	"agentrun.dev/command/tool"
)

var exprSpec = tool.Spec{
	Usage: []string{"EXPRESSION", "OPTION"},
	About: `Print the value of EXPRESSION to standard output.

  ARG1 | ARG2   ARG1 & ARG2   ARG1 < ARG2 (also <= = != >= >)
  ARG1 + ARG2 (also - * / %)   STRING : REGEXP
  match STRING REGEXP   substr STRING POS LENGTH   index STRING CHARS   length STRING   + TOKEN   ( EXPRESSION )`,
	Package: tool.Coreutils, Fail: 2,
}

// exprValue is an integer or a string.
type exprValue struct {
	n *big.Int // nil for a string
	s string
}

func (v exprValue) text() string {
	if v.n != nil {
		return v.n.String()
	}
	return v.s
}

// number converts a string that looks like an integer.
func (v exprValue) number() (*big.Int, bool) {
	if v.n != nil {
		return v.n, true
	}
	s := strings.TrimPrefix(v.s, "-")
	if s == "" || strings.Trim(s, "0123456789") != "" || len(s) > maxExprDigits {
		return nil, false
	}
	return new(big.Int).SetString(v.s, 10)
}

// null reports whether a value counts as false: empty, or zero.
func (v exprValue) null() bool {
	if v.n != nil {
		return v.n.Sign() == 0
	}
	if v.s == "" {
		return true
	}
	return strings.Trim(strings.TrimPrefix(v.s, "-"), "0") == "" && v.s != "-"
}

// Limits on an expression.
const (
	maxExprDigits = 100000
	maxExprDepth  = 1000
)

type exprParser struct {
	t     *tool.T
	args  []string
	pos   int
	depth int
}

// Expr evaluates an expression.
func Expr(t *tool.T) int {
	t.FailStatus(3)
	args := t.Args()[1:]
	if len(args) == 1 {
		switch args[0] {
		case "--help":
			t.Help(&exprSpec)
			return 0
		case "--version":
			t.Version(&exprSpec)
			return 0
		}
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		t.Missing(2)
	}
	p := exprParser{t: t, args: args}
	v := p.or(true)
	if p.pos < len(args) {
		t.Fatal(2, "syntax error: unexpected argument %s", tool.Quote(args[p.pos]))
	}
	t.Out.WriteString(v.text() + "\n")
	return status(v.null())
}

func (p *exprParser) is(ops ...string) string {
	if p.pos < len(p.args) {
		for _, op := range ops {
			if p.args[p.pos] == op {
				p.pos++
				return op
			}
		}
	}
	return ""
}

func integer(n int64) exprValue { return exprValue{n: big.NewInt(n)} }

func (p *exprParser) or(eval bool) exprValue {
	l := p.and(eval)
	for p.is("|") != "" {
		r := p.and(eval && l.null())
		if l.null() {
			if l = r; l.null() {
				l = integer(0)
			}
		}
	}
	return l
}

func (p *exprParser) and(eval bool) exprValue {
	l := p.compare(eval)
	for p.is("&") != "" {
		r := p.compare(eval && !l.null())
		if l.null() || r.null() {
			l = integer(0)
		}
	}
	return l
}

func (p *exprParser) compare(eval bool) exprValue {
	l := p.sum(eval)
	for {
		op := p.is("<", "<=", "=", "==", "!=", ">=", ">")
		if op == "" {
			return l
		}
		r := p.sum(eval)
		c := strings.Compare(l.text(), r.text())
		if a, ok := l.number(); ok {
			if b, ok := r.number(); ok {
				c = a.Cmp(b)
			}
		}
		v := false
		switch op {
		case "<":
			v = c < 0
		case "<=":
			v = c <= 0
		case "=", "==":
			v = c == 0
		case "!=":
			v = c != 0
		case ">=":
			v = c >= 0
		case ">":
			v = c > 0
		}
		l = integer(0)
		if v {
			l = integer(1)
		}
	}
}

// operands are two integers; anything else ends the command.
func (p *exprParser) operands(l, r exprValue, eval bool) (a, b *big.Int) {
	a, ok1 := l.number()
	b, ok2 := r.number()
	if !ok1 || !ok2 {
		if !eval {
			return new(big.Int), big.NewInt(1)
		}
		p.t.Fatal(2, "non-integer argument")
	}
	return a, b
}

func (p *exprParser) sum(eval bool) exprValue {
	l := p.product(eval)
	for {
		op := p.is("+", "-")
		if op == "" {
			return l
		}
		a, b := p.operands(l, p.product(eval), eval)
		if op == "+" {
			l = exprValue{n: new(big.Int).Add(a, b)}
		} else {
			l = exprValue{n: new(big.Int).Sub(a, b)}
		}
	}
}

func (p *exprParser) product(eval bool) exprValue {
	l := p.match(eval)
	for {
		op := p.is("*", "/", "%")
		if op == "" {
			return l
		}
		a, b := p.operands(l, p.match(eval), eval)
		if op != "*" && b.Sign() == 0 {
			if !eval {
				continue
			}
			p.t.Fatal(2, "division by zero")
		}
		switch op {
		case "*":
			if a.BitLen()+b.BitLen() > 4*maxExprDigits {
				p.t.Fatal(3, "memory exhausted")
			}
			l = exprValue{n: new(big.Int).Mul(a, b)}
		case "/":
			l = exprValue{n: new(big.Int).Quo(a, b)}
		case "%":
			l = exprValue{n: new(big.Int).Rem(a, b)}
		}
	}
}

func (p *exprParser) match(eval bool) exprValue {
	l := p.primary(eval)
	for p.is(":") != "" {
		r := p.primary(eval)
		if eval {
			l = p.regex(l.text(), r.text())
		}
	}
	return l
}

// regex matches at the start: it returns the first group, or the number of characters matched.
func (p *exprParser) regex(s, pattern string) exprValue {
	re, err := posixre.Compile(pattern, posixre.Options{Wrap: [2]string{`\A(?:`, `)`}})
	if err != nil {
		p.t.Fatal(2, "%s", err)
	}
	loc, err := re.Find([]byte(s))
	if err != nil {
		p.t.Fatal(2, "%s", err)
	}
	switch {
	case re.NumSubexp() > 0 && loc == nil:
		return exprValue{}
	case loc == nil:
		return integer(0)
	case re.NumSubexp() > 0:
		if loc[2] < 0 {
			return exprValue{}
		}
		return exprValue{s: s[loc[2]:loc[3]]}
	}
	return integer(int64(utf8.RuneCountInString(s[:loc[1]])))
}

func (p *exprParser) need() {
	if p.pos >= len(p.args) {
		p.t.Fatal(2, "syntax error: missing argument after %s", tool.Quote(p.args[len(p.args)-1]))
	}
}

func (p *exprParser) primary(eval bool) exprValue {
	if p.depth++; p.depth > maxExprDepth {
		p.t.Fatal(2, "expression is nested too deeply")
	}
	defer func() { p.depth-- }()
	p.need()
	a := p.args[p.pos]
	p.pos++
	switch a {
	case "(":
		v := p.or(eval)
		if p.is(")") == "" {
			if p.pos >= len(p.args) {
				p.t.Fatal(2, "syntax error: expecting ')' after %s", tool.Quote(p.args[len(p.args)-1]))
			}
			p.t.Fatal(2, "syntax error: expecting ')' instead of %s", tool.Quote(p.args[p.pos]))
		}
		return v
	case ")":
		p.t.Fatal(2, "syntax error: unexpected ')'")
	case "+":
		p.need()
		p.pos++
		return exprValue{s: p.args[p.pos-1]}
	case "length":
		return integer(int64(utf8.RuneCountInString(p.primary(eval).text())))
	case "match":
		s := p.primary(eval)
		r := p.primary(eval)
		if !eval {
			return s
		}
		return p.regex(s.text(), r.text())
	case "index":
		s, chars := p.primary(eval).text(), p.primary(eval).text()
		i := strings.IndexAny(s, chars)
		if i < 0 {
			return integer(0)
		}
		return integer(int64(utf8.RuneCountInString(s[:i])) + 1)
	case "substr":
		s, from, n := p.primary(eval).text(), p.primary(eval).text(), p.primary(eval).text()
		pos, err1 := strconv.Atoi(from)
		count, err2 := strconv.Atoi(n)
		r := []rune(s)
		if err1 != nil || err2 != nil || pos < 1 || count < 1 || pos > len(r) {
			return exprValue{}
		}
		return exprValue{s: string(r[pos-1 : min(len(r), pos-1+min(count, len(r)))])}
	}
	return exprValue{s: a}
}
