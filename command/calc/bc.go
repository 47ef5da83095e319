package calc

import (
	"fmt"
	"io"
	"maps"
	"math/big"
	"strconv"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

const bcHelp = `usage: bc [options] [file ...]
  -h  --help         print this usage and exit
  -i  --interactive  force interactive mode
  -l  --mathlib      use the predefined math routines
  -q  --quiet        don't print initial banner
  -s  --standard     non-standard bc constructs are errors
  -w  --warn         warn about non-standard bc constructs
  -v  --version      print version information and exit
`

// Limits of bc.
const (
	maxArray = 16777215
	maxScale = 1 << 20
	maxCalls = 5000
)

// bc is a running bc.
type bc struct {
	t                  *tool.T
	vars               map[string]number
	arrays             map[string]map[int]number
	functions          map[string]*function
	mathlib            bool
	scale, base, obase int
	last               number
	width, col         int
	depth              int
	where              string // the function that runs, for messages
	seed               uint64
	lines              *tool.Lines // of standard input
	p                  *parser
}

// control is how a statement ended.
type control int

const (
	goOn control = iota
	breaks
	continues
	returns
	halts
)

// runtimeError ends the line that runs.
type runtimeError struct{}

// Bc is a calculator with a language like C's.
func Bc(t *tool.T) int {
	b := &bc{t: t, vars: map[string]number{}, arrays: map[string]map[int]number{}, functions: map[string]*function{}, base: 10, obase: 10, last: zero, width: 70, where: "(main)"}
	options := []getopt.Option{{Short: 'h', Long: "help"}, {Short: 'i', Long: "interactive"}, {Short: 'l', Long: "mathlib"}, {Short: 'q', Long: "quiet"}, {Short: 's', Long: "standard"}, {Short: 'w', Long: "warn"}, {Short: 'v', Long: "version"}, {Short: 'c', Long: "compile"}}
	opts, files, err := getopt.Parse(options, t.Args()[1:], getopt.Permute)
	if err != nil {
		t.Warn("%s", err)
		io.WriteString(t.Out, bcHelp)
		return 1
	}
	for _, o := range opts {
		switch o.Key {
		case 'h':
			t.Out.WriteString(bcHelp)
			return 0
		case 'v':
			t.Out.WriteString("bc 1.07.1\nThis is AgentRun's own implementation, which behaves like the version above.\n")
			return 0
		case 'l':
			b.mathlib, b.scale = true, 20
		}
	}
	if s := t.Getenv("BC_LINE_LENGTH"); s != "" {
		if n, err := strconv.Atoi(s); err == nil && (n == 0 || n >= 3) && n < 1<<30 {
			b.width = n
		}
	}
	b.lines = tool.NewLines(t.Stdin(), '\n')
	for _, name := range files {
		in, err := t.OpenFile(name)
		if err != nil {
			t.Out.Flush()
			fmt.Fprintf(t.Stderr(), "File %s is unavailable.\n", name)
			return 1
		}
		halted := b.run(name, tool.NewLines(in, '\n'))
		in.Close()
		if halted {
			return 0
		}
	}
	b.run("(standard_in)", b.lines)
	return 0
}

// run runs an input; it reports whether bc is to end.
func (b *bc) run(name string, lines *tool.Lines) bool {
	lex := &lexer{name: name, no: 1}
	lex.next = func() (string, bool) {
		line, ok := lines.Next()
		if !ok {
			return "", false
		}
		if lines.Terminated {
			return string(line) + "\n", true
		}
		return string(line), true
	}
	lex.bad = func(format string, args ...any) {
		b.t.Out.Flush()
		io.WriteString(b.t.Stderr(), bcMessage(name, lex.no, format, args...))
	}
	b.p = &parser{lexer: lex, define: func(name string, f *function) { b.functions[name] = f }}
	for {
		b.t.Check()
		list, end := b.p.line()
		if b.p.quit && len(list) > 0 {
			list = list[:0] // quit acts as soon as it is read
		}
		if b.line(list) == halts || b.p.quit {
			return true
		}
		if end {
			return false
		}
	}
}

// line runs the statements of a line, up to a runtime error.
func (b *bc) line(list []*node) (c control) {
	vars, arrays := b.depth, b.where
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		if _, ok := r.(runtimeError); !ok {
			panic(r)
		}
		b.depth, b.where = vars, arrays
		c = goOn
	}()
	c, _ = b.block(list)
	return c
}

// fail reports an error of the running program.
func (b *bc) fail(adr int, format string, args ...any) {
	b.message("error", adr, format, args...)
	panic(runtimeError{})
}

func (b *bc) message(kind string, adr int, format string, args ...any) {
	b.t.Out.Flush()
	fmt.Fprintf(b.t.Stderr(), "Runtime %s (func=%s, adr=%d): %s\n", kind, b.where, adr, fmt.Sprintf(format, args...))
}

// put writes characters, and breaks lines that get too long.
func (b *bc) put(s string) {
	for i := 0; i < len(s); i++ {
		if s[i] == '\n' {
			b.col = 0
			b.t.Out.WriteByte('\n')
			continue
		}
		if b.col++; b.width > 0 && b.col == b.width-1 {
			b.t.Out.WriteString("\\\n")
			b.col = 1
		}
		b.t.Out.WriteByte(s[i])
	}
}

func (b *bc) block(list []*node) (control, number) {
	for _, n := range list {
		if c, v := b.exec(n); c != goOn {
			return c, v
		}
	}
	return goOn, zero
}

// exec runs a statement.
func (b *bc) exec(n *node) (control, number) {
	if b.t.Step(1) != nil {
		b.t.Check()
	}
	switch n.op {
	case "block":
		return b.block(n.kids)
	case "string":
		b.put(n.text)
	case "drop":
		b.eval(n.kids[0])
	case "show":
		e := n.kids[0]
		v := b.eval(e)
		if f := b.functions[e.text]; e.op == "call" && f != nil && f.void {
			break
		}
		b.last = v
		b.put(v.text(b.obase, false) + "\n")
	case "print":
		b.print(n)
	case "halt":
		return halts, zero
	case "limits":
		b.t.Out.WriteString("BC_BASE_MAX     = 2147483647\nBC_DIM_MAX      = 16777215\nBC_SCALE_MAX    = 1048576\nBC_STRING_MAX   = 2147483647\nMAX Exponent    = 9223372036854775807\nNumber of vars  = 32767\n")
	case "break":
		return breaks, zero
	case "continue":
		return continues, zero
	case "return":
		if n.kids[0] == nil {
			return returns, zero
		}
		return returns, b.eval(n.kids[0])
	case "if":
		if !b.eval(n.kids[0]).isZero() {
			return b.exec(n.kids[1])
		} else if n.kids[2] != nil {
			return b.exec(n.kids[2])
		}
	case "while":
		return b.loop(n.kids[0], nil, n.kids[1])
	case "for":
		if n.kids[0] != nil {
			b.eval(n.kids[0])
		}
		return b.loop(n.kids[1], n.kids[2], n.kids[3])
	}
	return goOn, zero
}

func (b *bc) loop(cond, step, body *node) (control, number) {
	for cond == nil || !b.eval(cond).isZero() {
		if b.t.Step(1) != nil {
			b.t.Check()
		}
		c, v := b.exec(body)
		if c == breaks {
			break
		}
		if c == returns || c == halts {
			return c, v
		}
		if step != nil {
			b.eval(step)
		}
	}
	return goOn, zero
}

func (b *bc) print(n *node) {
	for _, k := range n.kids {
		if k.op != "text" {
			v := b.eval(k)
			b.last = v
			b.put(v.text(b.obase, false))
			continue
		}
		s := k.text
		for i := 0; i < len(s); i++ {
			if s[i] != '\\' {
				b.put(s[i : i+1])
				continue
			}
			if i++; i >= len(s) {
				break
			}
			if at := strings.IndexByte(`abfnrtq\e`, s[i]); at >= 0 {
				b.put("\a\b\f\n\r\t\"\\\\"[at : at+1])
			}
		}
	}
}

// eval computes an expression.
func (b *bc) eval(n *node) number {
	if b.t.Step(1) != nil {
		b.t.Check()
	}
	switch n.op {
	case "number":
		return parseNumber(n.text, b.base)
	case "var":
		if v, ok := b.vars[n.text]; ok {
			return v
		}
		return zero
	case "element":
		if v, ok := b.arrays[n.text][b.index(n)]; ok {
			return v
		}
		return zero
	case "special":
		switch n.text {
		case "scale":
			return integer(int64(b.scale))
		case "ibase":
			return integer(int64(b.base))
		case "obase":
			return integer(int64(b.obase))
		}
		return b.last
	case "neg":
		return b.eval(n.kids[0]).neg()
	case "math":
		x := b.eval(n.kids[0])
		return b.math(n, n.text, x, b.eval(n.kids[1]))
	case "call":
		return b.call(n)
	case "assign":
		return b.assign(n)
	case "pre", "post":
		return b.step(n)
	}
	return b.test(n)
}

func truth(v bool) number {
	if v {
		return one
	}
	return zero
}

// test is relations, logic, and the functions of the language itself.
func (b *bc) test(n *node) number {
	switch n.op {
	case "rel":
		c := b.eval(n.kids[0]).cmp(b.eval(n.kids[1]))
		return truth(n.text == "==" && c == 0 || n.text == "!=" && c != 0 || n.text[0] == '<' && c < 0 || n.text[0] == '>' && c > 0 || len(n.text) == 2 && n.text != "!=" && c == 0)
	case "!":
		return truth(b.eval(n.kids[0]).isZero())
	case "&&":
		return truth(!b.eval(n.kids[0]).isZero() && !b.eval(n.kids[1]).isZero())
	case "||":
		return truth(!b.eval(n.kids[0]).isZero() || !b.eval(n.kids[1]).isZero())
	case "length":
		return integer(int64(b.eval(n.kids[0]).digits()))
	case "scale":
		return integer(int64(b.eval(n.kids[0]).scale))
	case "sqrt":
		v := b.eval(n.kids[0])
		if v.v.Sign() < 0 {
			b.fail(n.adr, "Square root of a negative number")
		}
		return v.sqrt(b.scale)
	case "random":
		if b.seed == 0 {
			b.seed = 1
		}
		b.seed = b.seed*6364136223846793005 + 1442695040888963407
		return integer(int64(b.seed >> 33))
	case "read":
		line, ok := b.lines.Next()
		s := strings.TrimSpace(string(line))
		sign := strings.HasPrefix(s, "-")
		if !ok {
			return zero
		}
		v := parseNumber(strings.Map(func(r rune) rune {
			if r == '.' || r >= '0' && r <= '9' || r >= 'A' && r <= 'F' {
				return r
			}
			return -1
		}, s), b.base)
		if sign {
			v = v.neg()
		}
		return v
	case "array":
		b.fail(n.adr, "array %s used as a number", n.text)
	}
	return zero
}

// math computes a binary operator.
func (b *bc) math(n *node, op string, x, y number) number {
	switch op {
	case "+":
		return x.add(y)
	case "-":
		return x.sub(y)
	case "*":
		if x.v.BitLen()+y.v.BitLen() > 4*maxDigits {
			b.fail(n.adr, "%s", errTooBig)
		}
		return x.mul(y, b.scale)
	case "/", "%":
		if y.isZero() {
			if op == "%" {
				b.fail(n.adr, "Modulo by zero")
			}
			b.fail(n.adr, "Divide by zero")
		}
		if op == "%" {
			return x.mod(y, b.scale)
		}
		return x.div(y, b.scale)
	}
	if y.scale > 0 && y.at(0).cmp(y) != 0 {
		b.message("warning", n.adr-1, "non-zero scale in exponent")
	}
	v, err := x.pow(y, b.scale)
	if err == errDivide {
		b.fail(n.adr, "Divide by zero")
	} else if err != nil {
		b.fail(n.adr, "exponent too large in raise")
	}
	return v
}

func (b *bc) index(n *node) int {
	i := b.eval(n.kids[0]).at(0).v
	if !i.IsInt64() || i.Int64() < 0 || i.Int64() > maxArray {
		b.fail(n.adr, "Array %s subscript out of bounds.", n.text)
	}
	return int(i.Int64())
}

// store sets a variable, an element or one of the special variables.
func (b *bc) store(n *node, at int, v number) {
	switch n.op {
	case "var":
		b.vars[n.text] = v
		return
	case "element":
		a := b.arrays[n.text]
		if a == nil {
			a = map[int]number{}
			b.arrays[n.text] = a
		}
		if _, ok := a[at]; !ok {
			if err := b.t.Charge(64 + int64(len(v.v.Bits()))*8); err != nil {
				b.fail(n.adr, "%s", errTooBig)
			}
		}
		a[at] = v
		return
	}
	if n.text == "last" {
		b.last = v
		return
	}
	i, small := v.at(0).v, int64(0)
	if i.IsInt64() {
		small = i.Int64()
	} else {
		small = int64(i.Sign()) << 62
	}
	switch n.text {
	case "scale":
		if small < 0 {
			b.message("warning", n.adr, "negative scale, set to 0")
		} else if small > maxScale {
			b.message("warning", n.adr, "scale too large, set to %d", maxScale)
		}
		b.scale = int(min(max(small, 0), maxScale))
	case "ibase":
		if small < 2 {
			b.message("warning", n.adr, "ibase too small, set to 2")
		} else if small > 36 {
			b.message("warning", n.adr, "ibase too large, set to 36")
		}
		b.base = int(min(max(small, 2), 36))
	case "obase":
		if small < 2 {
			b.message("warning", n.adr, "obase too small, set to 2")
		} else if small > 2147483647 {
			b.message("warning", n.adr, "obase too large, set to 2147483647")
		}
		b.obase = int(min(max(small, 2), 2147483647))
	}
}

func (b *bc) assign(n *node) number {
	target, at := n.kids[0], 0
	target.adr = n.adr - 1
	if target.op == "element" {
		at = b.index(target)
	}
	v := b.eval(n.kids[1])
	if n.text != "" {
		v = b.math(n, n.text, b.load(target, at), v)
	}
	b.store(target, at, v)
	return v
}

func (b *bc) load(n *node, at int) number {
	if n.op == "element" {
		if v, ok := b.arrays[n.text][at]; ok {
			return v
		}
		return zero
	}
	return b.eval(n)
}

// step is ++ and --.
func (b *bc) step(n *node) number {
	target, at := n.kids[0], 0
	if target.op == "element" {
		at = b.index(target)
	}
	old := b.load(target, at)
	v := old.add(one)
	if n.text == "--" {
		v = old.sub(one)
	}
	b.store(target, at, v)
	if n.op == "post" {
		return old
	}
	return v
}

// call calls a function: one that was defined, or one of the library.
func (b *bc) call(n *node) number {
	f := b.functions[n.text]
	if f == nil {
		if v, ok := b.libraryCall(n); ok {
			return v
		}
		b.fail(n.adr-len(n.kids), "Function %s not defined.", n.text)
	}
	if len(f.params) != len(n.kids) {
		b.fail(n.adr, "Parameter number mismatch")
	}
	if b.depth++; b.depth > maxCalls {
		b.fail(n.adr, "%s", errTooBig)
	}
	undo := b.bind(n, f)
	where := b.where
	b.where = n.text
	defer func() {
		b.depth--
		b.where = where
		undo()
	}()
	c, v := b.block(f.body)
	if c == halts {
		b.t.Exit(0)
	}
	return v
}

// bind gives parameters and locals their values; undo gives the names back to the caller.
func (b *bc) bind(n *node, f *function) (undo func()) {
	type saved struct {
		v     variable
		value number
		array map[int]number
	}
	var old []saved
	values := make([]number, len(f.params))
	arrays := make([]map[int]number, len(f.params))
	for i, p := range f.params {
		if k := n.kids[i]; p.array != (k.op == "array") {
			b.fail(n.adr, "Parameter type mismatch, parameter %s.", p.name)
		} else if !p.array {
			values[i] = b.eval(k)
		} else {
			if b.arrays[k.text] == nil {
				b.arrays[k.text] = map[int]number{}
			}
			if arrays[i] = b.arrays[k.text]; !p.ref {
				arrays[i] = maps.Clone(arrays[i])
			}
		}
	}
	set := func(v variable, value number, array map[int]number) {
		old = append(old, saved{v, b.vars[v.name], b.arrays[v.name]})
		if v.array {
			b.arrays[v.name] = array
		} else {
			b.vars[v.name] = value
		}
	}
	for i, p := range f.params {
		set(p, values[i], arrays[i])
	}
	for _, a := range f.autos {
		set(a, zero, map[int]number{})
	}
	return func() {
		for i := len(old) - 1; i >= 0; i-- {
			if s := old[i]; s.v.array {
				b.arrays[s.v.name] = s.array
			} else if s.value.v == nil {
				delete(b.vars, s.v.name)
			} else {
				b.vars[s.v.name] = s.value
			}
		}
	}
}

func (b *bc) libraryCall(n *node) (number, bool) {
	want := 1
	if n.text == "j" {
		want = 2
	}
	if !b.mathlib || len(n.text) != 1 || !strings.Contains("scalej", n.text) {
		return zero, false
	}
	if len(n.kids) != want {
		b.fail(n.adr, "Parameter number mismatch")
	}
	check := func() {
		if b.t.Step(1+b.scale/64) != nil {
			b.t.Check()
		}
	}
	var v number
	var err error
	if n.text == "j" {
		order := b.eval(n.kids[0]).at(0).v
		if !order.IsInt64() {
			order = big.NewInt(1 << 40)
		}
		v, err = bessel(order.Int64(), b.eval(n.kids[1]), b.scale, check)
	} else {
		v, err = library(n.text[0], b.eval(n.kids[0]), b.scale, check)
	}
	if err != nil {
		b.fail(n.adr, "%s", err)
	}
	return v, true
}
