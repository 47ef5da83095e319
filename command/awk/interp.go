package awk

import (
	"math"
	"math/rand"
	"strconv"
	"strings"

	"agentrun.dev/command/posixre"
	"agentrun.dev/command/tool"
)

// specials are the variables that the interpreter knows, in the order of their slots.
var specials = []string{"NF", "NR", "FNR", "FS", "OFS", "ORS", "RS", "SUBSEP", "CONVFMT", "OFMT", "RSTART", "RLENGTH", "FILENAME", "ENVIRON", "ARGV", "ARGC", "RT"}

const (
	vNF = iota
	vNR
	vFNR
	vFS
	vOFS
	vORS
	vRS
	vSUBSEP
	vCONVFMT
	vOFMT
	vRSTART
	vRLENGTH
	vFILENAME
	vENVIRON
	vARGV
	vARGC
	vRT
)

// control says how a statement ended.
type control uint8

const (
	ctlNone control = iota
	ctlNext
	ctlNextFile
	ctlBreak
	ctlContinue
	ctlExit
	ctlReturn
)

// slot is a variable: a scalar or an array.
type slot struct {
	v   value
	arr *array
	ref *slot // of a parameter that became an array: the caller's variable
}

// Limits.
const (
	maxCalls  = 10000
	maxFields = 10 << 20
	maxRegexs = 500
)

type interp struct {
	t       *tool.T
	prog    *program
	globals []slot
	frame   []slot
	depth   int
	owed    int64 // bytes of arrays that aren't charged yet
	ret     value
	status  int

	record  string
	fields  []value // from 1
	nf      int
	split   bool // fields are up to date
	joined  bool // record is up to date
	ranges  []bool
	regexes map[string]*posixre.Regexp
	convfmt string
	ofmt    string
	subsep  string
	io      streams
	rng     *rand.Rand
	seed    float64
	steps   int
}

func newInterp(t *tool.T, prog *program, args []string) *interp {
	in := &interp{t: t, prog: prog, globals: make([]slot, len(prog.globals)), ranges: make([]bool, len(prog.rules)),
		regexes: map[string]*posixre.Regexp{}, convfmt: "%.6g", ofmt: "%.6g", subsep: "\x1c", split: true, joined: true, rng: rand.New(rand.NewSource(0))}
	for i, s := range map[int]string{vFS: " ", vOFS: " ", vORS: "\n", vRS: "\n", vSUBSEP: "\x1c", vCONVFMT: "%.6g", vOFMT: "%.6g"} {
		in.globals[i].v = str(s)
	}
	in.globals[vRLENGTH].v = num(-1)
	in.globals[vARGC].v = num(float64(len(args)))
	argv, env := newArray(), newArray()
	for i, a := range args {
		argv.get(strconv.Itoa(i)).v = input(a)
	}
	for _, kv := range t.Environ() {
		name, v, _ := strings.Cut(kv, "=")
		env.get(name).v = input(v)
	}
	in.globals[vARGV].arr, in.globals[vENVIRON].arr = argv, env
	in.io.init(in)
	return in
}

func (in *interp) fail(format string, args ...any) { in.t.Fatal(2, format, args...) }

// run runs BEGIN, the rules, and END.
func (in *interp) run() int {
	defer in.io.closeAll()
	ctl := ctlNone
	for _, b := range in.prog.begin {
		if ctl = in.top(b); ctl == ctlExit {
			break
		}
	}
	if ctl != ctlExit && (len(in.prog.rules) > 0 || len(in.prog.end) > 0) {
		for in.io.nextRecord() {
			if ctl = in.rules(); ctl == ctlExit {
				break
			}
			if ctl == ctlNextFile {
				in.io.skipFile()
			}
		}
	}
	if !(ctl == ctlExit && len(in.prog.rules) == 0 && len(in.prog.end) == 0) {
		for _, b := range in.prog.end { // exit runs END too, unless it is in END
			if in.top(b) == ctlExit {
				break
			}
		}
	}
	return in.status
}

func (in *interp) rules() control {
	for _, r := range in.prog.rules {
		if !in.selects(r) {
			continue
		}
		if r.print {
			in.t.Out.WriteString(in.line())
			in.t.Out.WriteString(in.special(vORS))
			continue
		}
		switch ctl := in.top(r.body); ctl {
		case ctlNext:
			return ctlNone
		case ctlNextFile, ctlExit:
			return ctl
		}
	}
	return ctlNone
}

func (in *interp) selects(r *rule) bool {
	switch {
	case r.from == nil:
		return true
	case r.to == nil:
		return in.eval(r.from).truth()
	case !in.ranges[r.state]:
		if !in.eval(r.from).truth() {
			return false
		}
		in.ranges[r.state] = true
	}
	if in.eval(r.to).truth() {
		in.ranges[r.state] = false
	}
	return true
}

// top runs the action of a rule; exit and next may come out of functions, too.
func (in *interp) top(list []stmt) (ctl control) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(escapeCall)
			if !ok {
				panic(r)
			}
			in.frame, in.depth, ctl = nil, 0, e.ctl
		}
	}()
	return in.block(list)
}

func (in *interp) block(list []stmt) control {
	for _, s := range list {
		if ctl := in.exec(s); ctl != ctlNone {
			return ctl
		}
	}
	return ctlNone
}

// step lets endless loops end when the process is killed.
func (in *interp) step() {
	if in.steps++; in.steps&0xfff == 0 {
		in.t.Check()
	}
}

func (in *interp) exec(s stmt) control {
	switch s := s.(type) {
	case *exprStmt:
		in.eval(s.x)
	case *printStmt:
		in.print(s)
	case *ifStmt:
		if in.eval(s.c).truth() {
			return in.block(s.a)
		}
		return in.block(s.b)
	case *whileStmt:
		for first := s.post; first || in.eval(s.c).truth(); first = false {
			in.step()
			switch ctl := in.block(s.body); ctl {
			case ctlBreak:
				return ctlNone
			case ctlNone, ctlContinue:
			default:
				return ctl
			}
		}
	case *forStmt:
		if s.init != nil {
			in.exec(s.init)
		}
		for s.c == nil || in.eval(s.c).truth() {
			in.step()
			switch ctl := in.block(s.body); ctl {
			case ctlBreak:
				return ctlNone
			case ctlNone, ctlContinue:
			default:
				return ctl
			}
			if s.post != nil {
				in.exec(s.post)
			}
		}
	case *forIn:
		a := in.array(s.array)
		for _, k := range a.list() {
			in.step()
			if a.m[k] == nil {
				continue
			}
			in.store(s.v, input(k))
			switch ctl := in.block(s.body); ctl {
			case ctlBreak:
				return ctlNone
			case ctlNone, ctlContinue:
			default:
				return ctl
			}
		}
	case *blockStmt:
		return in.block(s.body)
	case *jumpStmt:
		return s.kind
	case *exitStmt:
		if s.x != nil {
			v := in.eval(s.x)
			in.status = int(int64(v.number())) & 0xff
		}
		return ctlExit
	case *returnStmt:
		in.ret = value{}
		if s.x != nil {
			in.ret = in.eval(s.x)
		}
		return ctlReturn
	case *deleteStmt:
		a := in.array(s.array)
		if s.subs == nil {
			in.forget(a)
			a.clear()
		} else {
			key := in.key(s.subs)
			if c := a.m[key]; c != nil {
				in.charge(a, -int64(cellSize+len(key)+len(c.v.s)))
			}
			a.delete(key)
		}
	}
	return ctlNone
}

func (in *interp) slot(v *varRef) *slot {
	if v.local {
		return &in.frame[v.slot]
	}
	return &in.globals[v.slot]
}

// array returns a variable's array; a variable not used so far becomes one.
func (in *interp) array(v *varRef) *array {
	s := in.slot(v)
	if s.arr == nil {
		if s.v.kind != uninit {
			in.fail("type error: %s is used as an array, but it is a scalar", v.name)
		}
		s.arr = newArray()
		// The caller's variable becomes the same array.
		for r := s.ref; r != nil && r.arr == nil; r = r.ref {
			r.arr = s.arr
		}
	}
	return s.arr
}

// key joins subscripts.
func (in *interp) key(subs []expr) string {
	if len(subs) == 1 {
		v := in.eval(subs[0])
		return v.text(in.convfmt)
	}
	parts := make([]string, len(subs))
	for i, s := range subs {
		v := in.eval(s)
		parts[i] = v.text(in.convfmt)
	}
	return strings.Join(parts, in.subsep)
}

func (in *interp) special(i int) string {
	v := in.globals[i].v
	return v.text(in.convfmt)
}

func (in *interp) text(x expr) string {
	v := in.eval(x)
	return v.text(in.convfmt)
}

func (in *interp) number(x expr) float64 {
	v := in.eval(x)
	return v.number()
}

func (in *interp) eval(x expr) value {
	switch x := x.(type) {
	case *numLit:
		return x.v
	case *strLit:
		return x.v
	case *regexLit:
		return boolean(in.matches(x.re, in.line()))
	case *varRef:
		if !x.local && x.slot == vNF {
			in.splitRecord()
			return num(float64(in.nf))
		}
		s := in.slot(x)
		if s.arr != nil {
			in.fail("can't use array %s in a scalar context", x.name)
		}
		return s.v
	case *fieldRef:
		return in.field(in.fieldIndex(x.x))
	case *indexRef:
		a := in.array(x.array)
		k := in.key(x.subs)
		if len(a.m) > maxFields {
			in.fail("too many array elements")
		}
		return a.get(k).v
	case *assign:
		return in.assign(x)
	case *cond:
		if in.eval(x.c).truth() {
			return in.eval(x.a)
		}
		return in.eval(x.b)
	case *binary:
		return in.binary(x)
	case *unary:
		switch v := in.eval(x.x); x.op {
		case '!':
			return boolean(!v.truth())
		case '-':
			return num(-v.number())
		default:
			return num(v.number())
		}
	case *incdec:
		old := in.number(x.x)
		in.store(x.x, num(old+x.delta))
		if x.prefix {
			return num(old + x.delta)
		}
		return num(old)
	case *inExpr:
		k := in.key(x.subs)
		return boolean(in.array(x.array).m[k] != nil)
	case *matchExpr:
		s := in.text(x.l)
		return boolean(in.matches(in.regex(x.r), s) != x.negate)
	case *call:
		return in.call(x)
	case *builtinCall:
		return in.builtin(x)
	case *getline:
		return in.io.getline(x)
	case *group:
		if len(x.list) == 1 {
			return in.eval(x.list[0])
		}
		return str(in.key(x.list))
	}
	return value{}
}

func (in *interp) fieldIndex(x expr) int {
	n := in.number(x)
	if n < 0 || math.IsNaN(n) {
		in.fail("attempt to access field %d", int(n))
	}
	if n > maxFields {
		in.fail("field number %v is too large", n)
	}
	return int(n)
}

func (in *interp) assign(x *assign) value {
	if x.op == '=' {
		v := in.eval(x.r)
		if v.kind == isStrNum {
			v = v.settle()
		}
		in.store(x.l, v)
		return v
	}
	r := in.number(x.r)
	v := num(in.arith(string(x.op), in.number(x.l), r))
	in.store(x.l, v)
	return v
}

func (in *interp) arith(op string, a, b float64) float64 {
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	case "/":
		if b == 0 {
			in.fail("division by zero")
		}
		return a / b
	case "%":
		if b == 0 {
			in.fail("division by zero in %%")
		}
		return math.Mod(a, b)
	}
	return math.Pow(a, b)
}

func (in *interp) binary(x *binary) value {
	switch x.op {
	case "&&":
		return boolean(in.eval(x.l).truth() && in.eval(x.r).truth())
	case "||":
		return boolean(in.eval(x.l).truth() || in.eval(x.r).truth())
	case " ":
		l := in.text(x.l)
		s := l + in.text(x.r)
		if len(s) > tool.MaxLine {
			in.fail("memory exhausted")
		}
		return str(s)
	case "<", "<=", "==", "!=", ">", ">=":
		l := in.eval(x.l)
		c := compare(l, in.eval(x.r), in.convfmt)
		switch x.op {
		case "<":
			return boolean(c < 0)
		case "<=":
			return boolean(c <= 0)
		case "==":
			return boolean(c == 0)
		case "!=":
			return boolean(c != 0)
		case ">":
			return boolean(c > 0)
		}
		return boolean(c >= 0)
	}
	l := in.number(x.l)
	return num(in.arith(x.op, l, in.number(x.r)))
}

// store assigns to a variable, field or element.
func (in *interp) store(x expr, v value) {
	switch x := x.(type) {
	case *varRef:
		if !x.local && x.slot < len(specials) {
			in.setSpecial(x.slot, v)
			return
		}
		s := in.slot(x)
		if s.arr != nil {
			in.fail("can't assign to %s; it's an array name.", x.name)
		}
		s.v = v
	case *fieldRef:
		in.setField(in.fieldIndex(x.x), v)
	case *indexRef:
		a := in.array(x.array)
		in.put(a, in.key(x.subs), v)
	}
}

// cellSize is what an element takes beside its strings, roughly.
const cellSize = 160

// put sets an element of an array, and charges the sandbox for it.
func (in *interp) put(a *array, key string, v value) {
	n := len(a.m)
	c := a.get(key)
	grown := int64(len(v.s) - len(c.v.s))
	if len(a.m) > n {
		grown += int64(cellSize + len(key))
	}
	c.v = v
	in.charge(a, grown)
}

// charge accounts for memory of an array, in steps that are worth the call.
func (in *interp) charge(a *array, n int64) {
	a.size += n
	in.owed += n
	if in.owed > 64<<10 || in.owed < -64<<10 {
		if in.t.Charge(in.owed) != nil {
			in.fail("memory exhausted")
		}
		in.owed = 0
	}
}

// forget gives back what an array took that nobody has any more.
func (in *interp) forget(a *array) { in.charge(a, -a.size) }

func (in *interp) setSpecial(i int, v value) {
	switch i {
	case vNF:
		in.splitRecord()
		n := int(max(0, min(v.number(), maxFields)))
		in.resize(n)
		in.joined = false
		return
	case vCONVFMT:
		in.convfmt = v.text(in.convfmt)
	case vOFMT:
		in.ofmt = v.text(in.convfmt)
	case vSUBSEP:
		in.subsep = v.text(in.convfmt)
	case vFS:
		in.splitRecord() // the present record is split as FS was when it was read
	}
	in.globals[i].v = v
}

// assignArg makes an assignment var=value of the command line.
func (in *interp) assignArg(arg string) bool {
	name, v, ok := strings.Cut(arg, "=")
	if !ok || name == "" || !isLetter(name[0]) {
		return false
	}
	for i := range len(name) {
		if !isLetter(name[i]) && !isDigit(name[i]) {
			return false
		}
	}
	slot, known := in.prog.globals[name]
	if !known {
		return true // the program doesn't use it
	}
	if slot < len(specials) {
		in.setSpecial(slot, input(unescape(v)))
	} else {
		in.globals[slot].v = input(unescape(v)).settle()
	}
	return true
}

// regex returns the expression that an operand of ~ stands for.
func (in *interp) regex(x expr) *posixre.Regexp {
	if r, ok := x.(*regexLit); ok {
		return r.re
	}
	if g, ok := x.(*group); ok && len(g.list) == 1 {
		return in.regex(g.list[0])
	}
	return in.dynamic(in.text(x))
}

// dynamic compiles an expression, or takes it from a cache.
func (in *interp) dynamic(s string) *posixre.Regexp {
	if re := in.regexes[s]; re != nil {
		return re
	}
	re, err := compileRegex(s)
	if err != nil {
		in.fail("%s in /%s/", err, s)
	}
	if len(in.regexes) >= maxRegexs {
		clear(in.regexes)
	}
	in.regexes[s] = re
	return re
}

func (in *interp) matches(re *posixre.Regexp, s string) bool {
	ok, err := re.Match([]byte(s))
	if err != nil {
		in.fail("%s", err)
	}
	return ok
}

// call calls a function of the program. Arrays are passed by reference.
func (in *interp) call(x *call) value {
	if in.depth++; in.depth > maxCalls {
		in.fail("function calls are nested too deeply")
	}
	in.step()
	frame := make([]slot, len(x.fn.params))
	for i, a := range x.args {
		if v, ok := a.(*varRef); ok && !(!v.local && v.slot < vENVIRON) {
			s := in.slot(v)
			if s.arr != nil {
				frame[i].arr = s.arr
				continue
			}
			if s.v.kind == uninit {
				frame[i].ref = s
				continue
			}
		}
		frame[i].v = in.eval(a)
	}
	saved := in.frame
	in.frame = frame
	in.ret = value{}
	ctl := in.block(x.fn.body)
	in.frame = saved
	in.depth--
	for i := len(x.args); i < len(frame); i++ {
		if a := frame[i].arr; a != nil {
			in.forget(a)
		}
	}
	if ctl == ctlExit || ctl == ctlNext || ctl == ctlNextFile {
		panic(escapeCall{ctl})
	}
	v := in.ret
	in.ret = value{}
	return v
}

// escapeCall carries exit and next out of a function to the rule that called it.
type escapeCall struct{ ctl control }
