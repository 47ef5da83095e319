package coreutils

import (
	"strconv"
	"strings"
	"time"

	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

var testSpec = tool.Spec{
	Usage: []string{"EXPRESSION", "[ EXPRESSION ]"},
	About: `Exit with the status determined by EXPRESSION.

  ( EXPRESSION )  ! EXPRESSION  E1 -a E2  E1 -o E2
  -n STRING  -z STRING  STRING1 = STRING2  STRING1 != STRING2
  INTEGER1 -eq|-ge|-gt|-le|-lt|-ne INTEGER2   (-l STRING is the length of STRING)
  FILE1 -ef|-nt|-ot FILE2
  -b -c -d -e -f -g -G -h -k -L -N -O -p -r -s -S -u -w -x FILE   -t FD`,
	Package: tool.Coreutils,
}

// maxTestDepth bounds nested parentheses and negations.
const maxTestDepth = 1000

type tester struct {
	t     *tool.T
	args  []string
	pos   int
	depth int
}

// Test evaluates an expression; named [ it wants a closing ].
func Test(t *tool.T) int {
	args := t.Args()[1:]
	t.FailStatus(2)
	if name := t.Name[strings.LastIndexByte(t.Name, '/')+1:]; name == "[" {
		if len(args) == 1 && args[0] == "--help" {
			t.Help(&testSpec)
			return 0
		}
		if len(args) == 1 && args[0] == "--version" {
			t.Version(&testSpec)
			return 0
		}
		if len(args) == 0 || args[len(args)-1] != "]" {
			t.Fatal(2, "missing %s", tool.Quote("]"))
		}
		args = args[:len(args)-1]
	}
	x := tester{t: t, args: args}
	if len(args) == 0 {
		return 1
	}
	if x.posix(len(args)) {
		return 0
	}
	return 1
}

// posix evaluates by the number of arguments, as POSIX defines for up to four.
func (x *tester) posix(n int) bool {
	v := false
	switch n {
	case 1:
		v = x.one()
	case 2:
		v = x.two()
	case 3:
		v = x.three()
	case 4:
		switch {
		case x.args[x.pos] == "!":
			x.pos++
			v = !x.three()
		case x.args[x.pos] == "(" && x.args[x.pos+3] == ")":
			x.pos++
			v = x.two()
			x.pos++
		default:
			v = x.or()
		}
	default:
		v = x.or()
	}
	if x.pos < len(x.args) && n == len(x.args) {
		x.t.Fatal(2, "extra argument %s", tool.Quote(x.args[x.pos]))
	}
	return v
}

func (x *tester) one() bool {
	x.pos++
	return x.args[x.pos-1] != ""
}

func (x *tester) two() bool {
	if x.args[x.pos] == "!" {
		x.pos++
		return !x.one()
	}
	a := x.args[x.pos]
	if len(a) == 2 && a[0] == '-' {
		if isUnary(a) {
			return x.unary()
		}
		x.t.Fatal(2, "%s: unary operator expected", tool.Quote(a))
	}
	x.beyond()
	return false
}

func (x *tester) three() bool {
	switch {
	case isBinary(x.args[x.pos+1]):
		return x.binary(false)
	case x.args[x.pos] == "!":
		x.pos++
		return !x.two()
	case x.args[x.pos] == "(" && x.args[x.pos+2] == ")":
		x.pos++
		v := x.one()
		x.pos++
		return v
	case x.args[x.pos+1] == "-a" || x.args[x.pos+1] == "-o":
		return x.or()
	}
	x.t.Fatal(2, "%s: binary operator expected", tool.Quote(x.args[x.pos+1]))
	return false
}

func (x *tester) beyond() {
	x.t.Fatal(2, "missing argument after %s", tool.Quote(x.args[len(x.args)-1]))
}

func (x *tester) at(i int) string {
	if i < len(x.args) {
		return x.args[i]
	}
	return ""
}

func (x *tester) or() bool {
	v := x.and()
	for x.at(x.pos) == "-o" {
		x.pos++
		v = x.and() || v
	}
	return v
}

func (x *tester) and() bool {
	v := x.term()
	for x.at(x.pos) == "-a" {
		x.pos++
		v = x.term() && v
	}
	return v
}

func (x *tester) term() bool {
	if x.depth++; x.depth > maxTestDepth {
		x.t.Fatal(2, "expression is nested too deeply")
	}
	defer func() { x.depth-- }()
	negated := false
	for x.pos < len(x.args) && x.args[x.pos] == "!" {
		x.pos++
		negated = !negated
	}
	if x.pos >= len(x.args) {
		x.beyond()
	}
	v := false
	left := len(x.args) - x.pos
	a := x.args[x.pos]
	switch {
	case a == "(":
		v = x.parenthesis()
	case left >= 4 && a == "-l" && isBinary(x.args[x.pos+2]):
		v = x.binary(true)
	case left >= 3 && isBinary(x.args[x.pos+1]):
		v = x.binary(false)
	case len(a) == 2 && a[0] == '-' && left >= 2 && isUnary(a):
		v = x.unary()
	case len(a) == 2 && a[0] == '-' && isUnary(a) && left == 1:
		v = x.one()
	default:
		v = x.one()
	}
	return v != negated
}

// parenthesis evaluates up to the closing parenthesis, by the number of arguments where it is small.
func (x *tester) parenthesis() bool {
	x.pos++
	if x.pos >= len(x.args) {
		x.beyond()
	}
	n := 1
	for x.pos+n < len(x.args) && x.args[x.pos+n] != ")" {
		if n == 4 {
			n = len(x.args) - x.pos
			break
		}
		n++
	}
	var v bool
	if n <= 4 && x.pos+n <= len(x.args) && n < len(x.args)-x.pos+1 && n < 4 {
		v = x.posix(n)
	} else {
		v = x.or()
	}
	if x.at(x.pos) != ")" || x.pos >= len(x.args) {
		if x.pos >= len(x.args) {
			x.t.Fatal(2, "%s expected", tool.Quote(")"))
		}
		x.t.Fatal(2, "%s expected, found %s", tool.Quote(")"), x.args[x.pos])
	}
	x.pos++
	return v
}

func isUnary(a string) bool {
	return len(a) == 2 && strings.IndexByte("bcdefgGhkLNOprsStuwxnz", a[1]) >= 0
}

func isBinary(a string) bool {
	switch a {
	case "=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef":
		return true
	}
	return false
}

func (x *tester) unary() bool {
	op, arg := x.args[x.pos][1], x.at(x.pos+1)
	if x.pos+1 >= len(x.args) {
		x.beyond()
	}
	x.pos += 2
	switch op {
	case 'n':
		return arg != ""
	case 'z':
		return arg == ""
	case 't':
		fd, err := strconv.Atoi(x.integer(arg))
		return err == nil && x.t.IsTerminal(fd)
	}
	return FileTest(x.t, op, arg)
}

// FileTest evaluates a unary file operator of test, such as 'e' for -e.
func FileTest(t *tool.T, op byte, name string) bool {
	switch op {
	case 'r':
		return t.Access(name, 4) == nil
	case 'w':
		return t.Access(name, 2) == nil
	case 'x':
		return t.Access(name, 1) == nil
	case 'h', 'L':
		a, err := t.Lstat(name)
		return err == nil && a.Mode.IsSymlink()
	}
	a, err := t.Stat(name)
	if err != nil {
		return false
	}
	kind := a.Mode & vfs.ModeType
	switch op {
	case 'e':
		return true
	case 'b':
		return kind == vfs.ModeBlock
	case 'c':
		return kind == vfs.ModeChar
	case 'd':
		return kind == vfs.ModeDir
	case 'f':
		return kind == vfs.ModeRegular
	case 'g':
		return a.Mode&0o2000 != 0
	case 'u':
		return a.Mode&0o4000 != 0
	case 'k':
		return a.Mode&0o1000 != 0
	case 'p':
		return kind == vfs.ModeFIFO
	case 'S':
		return kind == vfs.ModeSocket
	case 's':
		return a.Size > 0
	case 'G':
		return a.GID == t.Cred().GID
	case 'O':
		return a.UID == t.Cred().UID
	case 'N':
		return a.Mtime.After(a.Atime)
	}
	return false
}

// integer checks an integer of any length and returns it without blanks and plus.
func (x *tester) integer(s string) string {
	t := strings.Trim(s, " \t\n")
	digits := strings.TrimPrefix(t, "+")
	if digits == t {
		digits = strings.TrimPrefix(t, "-")
	}
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		x.t.Fatal(2, "invalid integer %s", tool.Quote(s))
	}
	return strings.TrimPrefix(t, "+")
}

// compareIntegers compares decimal texts of any length.
func compareIntegers(a, b string) int {
	na, nb := strings.HasPrefix(a, "-"), strings.HasPrefix(b, "-")
	da, db := strings.TrimLeft(strings.TrimPrefix(a, "-"), "0"), strings.TrimLeft(strings.TrimPrefix(b, "-"), "0")
	na, nb = na && da != "", nb && db != ""
	if na != nb {
		if na {
			return -1
		}
		return 1
	}
	c := len(da) - len(db)
	if c == 0 {
		c = strings.Compare(da, db)
	}
	if na {
		return -c
	}
	return c
}

func (x *tester) binary(leftLength bool) bool {
	if leftLength {
		x.pos++
	}
	left, op := x.args[x.pos], x.args[x.pos+1]
	x.pos += 2
	rightLength := x.at(x.pos) == "-l" && x.pos+1 < len(x.args) && strings.HasPrefix(op, "-")
	if rightLength {
		x.pos++
	}
	if x.pos >= len(x.args) {
		x.beyond()
	}
	right := x.args[x.pos]
	x.pos++
	switch op {
	case "=", "==":
		return left == right
	case "!=":
		return left != right
	case "-nt", "-ot", "-ef":
		return CompareFiles(x.t, left, op, right)
	}
	length := func(s string, is bool) string {
		if is {
			return strconv.Itoa(len(s))
		}
		return x.integer(s)
	}
	c := compareIntegers(length(left, leftLength), length(right, rightLength))
	switch op {
	case "-eq":
		return c == 0
	case "-ne":
		return c != 0
	case "-lt":
		return c < 0
	case "-le":
		return c <= 0
	case "-gt":
		return c > 0
	}
	return c >= 0
}

// CompareFiles evaluates -nt, -ot and -ef.
func CompareFiles(t *tool.T, left, op, right string) bool {
	a, aerr := t.Stat(left)
	b, berr := t.Stat(right)
	var at, bt time.Time
	if aerr == nil {
		at = a.Mtime
	}
	if berr == nil {
		bt = b.Mtime
	}
	switch op {
	case "-nt":
		return aerr == nil && (berr != nil || at.After(bt))
	case "-ot":
		return berr == nil && (aerr != nil || at.Before(bt))
	}
	return aerr == nil && berr == nil && a.Ino == b.Ino && a.Dev == b.Dev
}
