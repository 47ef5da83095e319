package shell

import (
	"fmt"
	"strconv"
	"strings"
)

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
