package shell

import (
	"strconv"
	"strings"
	"time"

	"agentrun.dev/vfs"
	"mvdan.cc/sh/v3/syntax"
)

// testClause runs [[ … ]].
func (sh *Shell) testClause(c *syntax.TestClause) {
	sh.debugTrap(c)
	ok, bad := sh.cond(c.X)
	switch {
	case bad:
		sh.done(2)
	case ok:
		sh.done(0)
	default:
		sh.done(1)
	}
}

// cond evaluates a condition; bad tells of an error that was reported.
func (sh *Shell) cond(x syntax.TestExpr) (ok, bad bool) {
	switch x := x.(type) {
	case *syntax.Word:
		s := sh.string(x)
		sh.traceCond("-n " + orEmpty(s))
		return s != "", false
	case *syntax.ParenTest:
		return sh.cond(x.X)
	case *syntax.UnaryTest:
		if x.Op == syntax.TsNot {
			ok, bad = sh.cond(x.X)
			return !ok, bad
		}
		w, isWord := x.X.(*syntax.Word)
		if !isWord {
			return false, true
		}
		s := sh.string(w)
		if sh.opts.xtrace {
			sh.traceCond(x.Op.String() + " " + orEmpty(s))
		}
		return sh.unaryTest(x.Op.String(), s)
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.AndTest:
			if ok, bad = sh.cond(x.X); !ok || bad {
				return ok, bad
			}
			return sh.cond(x.Y)
		case syntax.OrTest:
			if ok, bad = sh.cond(x.X); ok || bad {
				return ok, bad
			}
			return sh.cond(x.Y)
		}
		l, _ := x.X.(*syntax.Word)
		r, _ := x.Y.(*syntax.Word)
		if l == nil || r == nil {
			return false, true
		}
		return sh.binaryCond(x.Op, l, r)
	}
	return false, true
}

// orEmpty shows a word of a condition in set -x.
func orEmpty(s string) string {
	if s == "" {
		return "''"
	}
	return s
}

func (sh *Shell) traceCond(s string) {
	if sh.opts.xtrace {
		sh.trace("[[ " + s + " ]]")
	}
}

func (sh *Shell) binaryCond(op syntax.BinTestOperator, l, r *syntax.Word) (ok, bad bool) {
	left := sh.string(l)
	switch op {
	case syntax.TsMatch, syntax.TsMatchShort, syntax.TsNoMatch:
		if sh.opts.xtrace {
			sh.traceCond(orEmpty(left) + " " + op.String() + " " + sh.patternOf(r))
		}
		m := sh.wordPattern(r, true, sh.shopts.get("nocasematch")).match(left)
		return m != (op == syntax.TsNoMatch), false
	case syntax.TsReMatch:
		return sh.regexCond(left, r)
	}
	right := sh.string(r)
	sh.traceCond(orEmpty(left) + " " + op.String() + " " + orEmpty(right))
	switch op {
	case syntax.TsBefore:
		return left < right, false
	case syntax.TsAfter:
		return left > right, false
	case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
		x, err := sh.evalArith(left)
		if err != nil {
			sh.arithFailed("[[: ", left, err)
			return false, false
		}
		y, err := sh.evalArith(right)
		if err != nil {
			sh.arithFailed("[[: ", right, err)
			return false, false
		}
		return compareInts(op.String(), x, y), false
	}
	return sh.compareFiles(op.String(), left, right), false
}

func compareInts(op string, x, y int64) bool {
	switch op {
	case "-eq":
		return x == y
	case "-ne":
		return x != y
	case "-le":
		return x <= y
	case "-ge":
		return x >= y
	case "-lt":
		return x < y
	}
	return x > y
}

func (sh *Shell) compareFiles(op, l, r string) bool {
	a, err1 := sh.p.Stat(l)
	b, err2 := sh.p.Stat(r)
	switch op {
	case "-nt":
		return err1 == nil && (err2 != nil || a.Mtime.After(b.Mtime))
	case "-ot":
		return err2 == nil && (err1 != nil || a.Mtime.Before(b.Mtime))
	}
	return err1 == nil && err2 == nil && a.Dev == b.Dev && a.Ino == b.Ino
}

// regexTimeout bounds one match of =~ .
const regexTimeout = time.Second

// unaryTest evaluates -f file and the like.
func (sh *Shell) unaryTest(op, s string) (ok, bad bool) {
	switch op {
	case "-z":
		return s == "", false
	case "-n":
		return s != "", false
	case "-o":
		p, known := sh.opts.byName(s)
		return known && *p, false
	case "-v":
		return sh.isSet(s), false
	case "-R":
		v, _ := sh.find(s)
		return v != nil && v.attr&attrNameref != 0 && v.set, false
	case "-t":
		fd, err := strconv.Atoi(strings.TrimSpace(s))
		return err == nil && sh.p.IsTerminal(fd), false
	case "-r", "-w", "-x":
		return sh.p.Access(s, map[string]int{"-r": 4, "-w": 2, "-x": 1}[op]) == nil, false
	case "-h", "-L":
		a, err := sh.p.Lstat(s)
		return err == nil && a.Mode.IsSymlink(), false
	}
	if s == "" {
		return false, false
	}
	a, err := sh.p.Stat(s)
	if err != nil {
		return false, false
	}
	switch op {
	case "-e", "-a":
		return true, false
	case "-f":
		return a.Mode.IsRegular(), false
	case "-d":
		return a.Mode.IsDir(), false
	case "-s":
		return a.Size > 0, false
	case "-b":
		return a.Mode&vfs.ModeType == vfs.ModeBlock, false
	case "-c":
		return a.Mode&vfs.ModeType == vfs.ModeChar, false
	case "-p":
		return a.Mode&vfs.ModeType == vfs.ModeFIFO, false
	case "-S":
		return a.Mode&vfs.ModeType == vfs.ModeSocket, false
	case "-k":
		return a.Mode&0o1000 != 0, false
	case "-g":
		return a.Mode&0o2000 != 0, false
	case "-u":
		return a.Mode&0o4000 != 0, false
	case "-O":
		return a.UID == sh.p.Cred().UID, false
	case "-G":
		return a.GID == sh.p.Cred().GID, false
	case "-N":
		return a.Mtime.After(a.Atime), false
	}
	return false, true
}

// isSet is -v: a variable, an element, a positional parameter.
func (sh *Shell) isSet(s string) bool {
	if isSpecialParam(s) {
		_, ok := sh.special(s)
		return ok
	}
	name, sub, hasSub := splitRef(s)
	v := sh.lookup(name)
	if v == nil {
		return false
	}
	if !hasSub {
		_, ok := v.scalar()
		return ok
	}
	if sub == "@" || sub == "*" {
		if v.attr&attrAssoc != 0 {
			_, ok := v.assoc.m[sub]
			return ok
		}
		vals, _ := elements(v)
		return len(vals) > 0
	}
	sub = sh.expandSubText(name, sub)
	if v.attr&attrAssoc == 0 && v.arr == nil {
		n, err := sh.evalArith(sub)
		return err == nil && n == 0 && v.set
	}
	_, ok := sh.element(v, name, sub)
	return ok
}

// testParser evaluates the arguments of test and [.
type testParser struct {
	sh   *Shell
	name string
	args []string
	err  string
}

func isUnary(op string) bool {
	return len(op) == 2 && op[0] == '-' && strings.IndexByte("abcdefghknoprstuvwxzGLNORS", op[1]) >= 0
}

func isBinary(op string) bool {
	switch op {
	case "=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef":
		return true
	}
	return false
}

func builtinTest(sh *Shell, args []string) int {
	name := args[0]
	args = args[1:]
	if name == "[" {
		if len(args) == 0 || args[len(args)-1] != "]" {
			sh.errorf("[: missing `]'")
			return 2
		}
		args = args[:len(args)-1]
	}
	t := &testParser{sh: sh, name: name, args: args}
	ok := t.top()
	if t.err != "" {
		sh.errorf("%s: %s", name, t.err)
		return 2
	}
	return int(b2i(!ok))
}

// top follows POSIX's rules by the number of arguments, then the grammar.
func (t *testParser) top() bool {
	a := t.args
	switch len(a) {
	case 0:
		return false
	case 1:
		return a[0] != ""
	case 2:
		if a[0] == "!" {
			return a[1] == ""
		}
		if isUnary(a[0]) {
			return t.unary(a[0], a[1])
		}
		t.fail(a[0] + ": unary operator expected")
		return false
	case 3:
		return t.three(a)
	case 4:
		if a[0] == "!" {
			return !t.three(a[1:])
		}
		if a[0] == "(" && a[3] == ")" {
			t.args = a[1:3]
			return t.top()
		}
	}
	v := t.or()
	if t.err == "" && len(t.args) > 0 {
		t.fail("too many arguments")
	}
	return v
}

func (t *testParser) three(a []string) bool {
	switch {
	case isBinary(a[1]):
		return t.binary(a[0], a[1], a[2])
	case a[1] == "-a":
		return a[0] != "" && a[2] != ""
	case a[1] == "-o":
		return a[0] != "" || a[2] != ""
	case a[0] == "!":
		t.args = a[1:]
		return !t.top()
	case a[0] == "(" && a[2] == ")":
		return a[1] != ""
	}
	t.fail(a[1] + ": binary operator expected")
	return false
}

func (t *testParser) fail(s string) {
	if t.err == "" {
		t.err = s
	}
}

func (t *testParser) or() bool {
	v := t.and()
	for len(t.args) > 0 && t.args[0] == "-o" {
		t.args = t.args[1:]
		v = t.and() || v
	}
	return v
}

func (t *testParser) and() bool {
	v := t.not()
	for len(t.args) > 0 && t.args[0] == "-a" {
		t.args = t.args[1:]
		v = t.not() && v
	}
	return v
}

func (t *testParser) not() bool {
	neg := false
	for len(t.args) > 0 && t.args[0] == "!" {
		neg = !neg
		t.args = t.args[1:]
	}
	return t.primary() != neg
}

func (t *testParser) primary() bool {
	a := t.args
	switch {
	case len(a) == 0:
		t.fail("argument expected")
		return false
	case a[0] == "(":
		t.args = a[1:]
		v := t.or()
		if len(t.args) == 0 || t.args[0] != ")" {
			t.fail("`)' expected")
			return false
		}
		t.args = t.args[1:]
		return v
	case len(a) >= 3 && isBinary(a[1]):
		t.args = a[3:]
		return t.binary(a[0], a[1], a[2])
	case len(a) >= 2 && isUnary(a[0]):
		t.args = a[2:]
		return t.unary(a[0], a[1])
	}
	t.args = a[1:]
	return a[0] != ""
}

func (t *testParser) unary(op, s string) bool {
	if op == "-t" {
		if _, err := strconv.Atoi(strings.TrimSpace(s)); err != nil {
			t.fail(s + ": integer expression expected")
			return false
		}
	}
	ok, bad := t.sh.unaryTest(op, s)
	if bad {
		t.fail(op + ": unary operator expected")
	}
	return ok
}

func (t *testParser) binary(l, op, r string) bool {
	switch op {
	case "=", "==":
		return l == r
	case "!=":
		return l != r
	case "<":
		return l < r
	case ">":
		return l > r
	case "-nt", "-ot", "-ef":
		return t.sh.compareFiles(op, l, r)
	}
	x, err1 := strconv.ParseInt(strings.TrimSpace(l), 10, 64)
	y, err2 := strconv.ParseInt(strings.TrimSpace(r), 10, 64)
	if err1 != nil {
		t.fail(l + ": integer expression expected")
		return false
	}
	if err2 != nil {
		t.fail(r + ": integer expression expected")
		return false
	}
	return compareInts(op, x, y)
}
