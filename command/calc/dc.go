package calc

import (
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
)

const dcHelp = `Usage: dc [OPTION] [file ...]
  -e, --expression=EXPR    evaluate expression
  -f, --file=FILE          evaluate contents of file
  -h, --help               display this help and exit
  -V, --version            output version information and exit

Email bug reports to:  bug-dc@gnu.org .
`

// item is what is on the stack: a number, or a string.
type item struct {
	num  number
	text string
	str  bool
}

// register is a stack of items, each with an array.
type register struct {
	items  []item
	arrays []map[int]item
}

// frame is a string that is executed.
type frame struct {
	text string
	pos  int
	more func() (string, bool) // gets more of it, for what comes from a file
}

// dc is a running dc.
type dc struct {
	t                  *tool.T
	stack              []item
	registers          map[byte]*register
	frames             []*frame
	scale, base, obase int
	width, col         int
	lines              *tool.Lines
	inFile             int // the status of q: 1 in a file, as the original has it
}

// maxStack bounds the stack and how deep macros may be nested.
const maxStack = 1 << 20

// Dc is a calculator in reverse Polish notation.
func Dc(t *tool.T) int {
	d := &dc{t: t, registers: map[byte]*register{}, base: 10, obase: 10, width: 70}
	if n, err := strconv.Atoi(t.Getenv("DC_LINE_LENGTH")); err == nil && (n == 0 || n > 1) && n < 1<<30 {
		d.width = n
	}
	d.lines = tool.NewLines(t.Stdin(), '\n')
	options := []getopt.Option{{Short: 'e', Long: "expression", Arg: getopt.Required}, {Short: 'f', Long: "file", Arg: getopt.Required}, {Short: 'h', Long: "help"}, {Short: 'V', Long: "version"}}
	opts, files, err := getopt.Parse(options, t.Args()[1:], getopt.Permute)
	if err != nil {
		t.Warn("%s", err)
		help, mail, _ := strings.Cut(dcHelp, "Email")
		io.WriteString(t.Stderr(), help)
		t.Out.WriteString("Email" + mail)
		return 1
	}
	done := false
	for _, o := range opts {
		switch o.Key {
		case 'h':
			t.Out.WriteString(dcHelp)
			return 0
		case 'V':
			t.Out.WriteString("dc (GNU bc 1.07.1) 1.4.1\nThis is AgentRun's own implementation, which behaves like the version above.\n")
			return 0
		case 'e':
			d.run(&frame{text: o.Arg})
		case 'f':
			d.file(o.Arg)
		}
		done = true
	}
	for _, f := range files {
		d.file(f)
		done = true
	}
	if !done {
		d.run(&frame{more: d.line})
	}
	return 0
}

// line is the next line of standard input, with its newline.
func (d *dc) line() (string, bool) {
	line, ok := d.lines.Next()
	if !ok {
		return "", false
	}
	return string(line) + "\n", true
}

func (d *dc) file(name string) {
	if name == "-" {
		d.run(&frame{more: d.line})
		return
	}
	text, err := d.t.ReadFile(name, maxDigits)
	if err != nil {
		d.t.Warn("Could not open file %s", name)
		return
	}
	d.inFile = 1
	defer func() { d.inFile = 0 }()
	d.run(&frame{text: string(text)})
}

// say reports a mistake; dc goes on.
func (d *dc) say(format string, args ...any) {
	d.t.Out.Flush()
	fmt.Fprintf(d.t.Stderr(), "dc: "+format+"\n", args...)
}

// unknown reports a byte that is no command; all but the name goes to standard output.
func (d *dc) unknown(format string, args ...any) {
	d.t.Out.Flush()
	io.WriteString(d.t.Stderr(), "dc: ")
	fmt.Fprintf(d.t.Out, format+"\n", args...)
}

// run executes a text and what it calls.
func (d *dc) run(f *frame) {
	d.frames = []*frame{f}
	for len(d.frames) > 0 {
		if d.t.Step(1) != nil {
			d.t.Check()
		}
		c, ok := d.next()
		if !ok {
			d.frames = d.frames[:len(d.frames)-1]
			continue
		}
		d.command(c)
	}
}

// next returns the next byte of the innermost frame.
func (d *dc) next() (byte, bool) {
	f := d.frames[len(d.frames)-1]
	for f.pos >= len(f.text) {
		if f.more == nil {
			return 0, false
		}
		text, ok := f.more()
		if !ok {
			return 0, false
		}
		f.text, f.pos = text, 0
	}
	f.pos++
	return f.text[f.pos-1], true
}

func (d *dc) back() { d.frames[len(d.frames)-1].pos-- }

func (d *dc) push(i item) {
	if len(d.stack) >= maxStack || d.t.Charge(int64(len(i.text))) != nil {
		d.say("out of memory")
		d.t.Exit(1)
	}
	d.stack = append(d.stack, i)
}

func (d *dc) pushNum(n number) { d.push(item{num: n}) }

// pop takes the top, or complains.
func (d *dc) pop() (item, bool) {
	if len(d.stack) == 0 {
		d.say("stack empty")
		return item{}, false
	}
	i := d.stack[len(d.stack)-1]
	d.stack = d.stack[:len(d.stack)-1]
	return i, true
}

// numbers takes n numbers, or none and complains.
func (d *dc) numbers(n int) ([]number, bool) {
	if len(d.stack) < n {
		d.say("stack empty")
		return nil, false
	}
	top := d.stack[len(d.stack)-n:]
	out := make([]number, n)
	for i, it := range top {
		if it.str {
			d.say("non-numeric value")
			return nil, false
		}
		out[i] = it.num
	}
	d.stack = d.stack[:len(d.stack)-n]
	return out, true
}

func (d *dc) command(c byte) {
	switch {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
	case c >= '0' && c <= '9' || c >= 'A' && c <= 'F' || c == '.' || c == '_':
		d.number(c)
	case strings.IndexByte("+-*/%~^|v", c) >= 0:
		d.math(c)
	case strings.IndexByte("slSL:;", c) >= 0:
		d.register(c)
	case strings.IndexByte("<>=!", c) >= 0:
		d.compare(c)
	case strings.IndexByte("pnPf", c) >= 0:
		d.print(c)
	case strings.IndexByte("iokIOKzZXa", c) >= 0:
		d.settings(c)
	default:
		d.other(c)
	}
}

func (d *dc) other(c byte) {
	switch c {
	case 'c':
		d.stack = d.stack[:0]
	case 'd':
		if i, ok := d.pop(); ok {
			d.push(i)
			d.push(i)
		}
	case 'r':
		if n := len(d.stack); n < 2 {
			d.say("stack empty")
		} else {
			d.stack[n-1], d.stack[n-2] = d.stack[n-2], d.stack[n-1]
		}
	case 'R':
		d.rotate()
	case '[':
		d.str()
	case 'x':
		if i, ok := d.pop(); ok {
			d.execute(i)
		}
	case '?':
		if line, ok := d.line(); ok {
			d.call(line)
		}
	case '#':
		for c, ok := d.next(); ok && c != '\n'; c, ok = d.next() {
		}
	case 'q':
		if n := len(d.frames); n > 2 {
			d.frames = d.frames[:n-2]
		} else {
			d.t.Exit(d.inFile)
		}
	case 'Q':
		d.leave()
	default:
		if c >= 32 && c < 127 {
			d.unknown("'%c' (0%o) unimplemented", c, c)
		} else {
			d.unknown("0%o unimplemented", c)
		}
	}
}

// leave is Q: as many levels as the top says.
func (d *dc) leave() {
	v, ok := d.numbers(1)
	if !ok {
		return
	}
	n := v[0].at(0).v
	if !n.IsInt64() || n.Int64() < 1 {
		d.say("Q command requires a number >= 1")
		return
	}
	levels := len(d.frames) - 1
	if n.Int64() > int64(levels) {
		d.say("Q command argument exceeded string execution depth")
		d.frames = d.frames[:1]
		return
	}
	d.frames = d.frames[:len(d.frames)-int(n.Int64())]
}

// rotate is R: the top |n| items go round, up or down.
func (d *dc) rotate() {
	it, ok := d.pop()
	if !ok || it.str {
		return
	}
	i := it.num.at(0).v
	if !i.IsInt64() {
		return
	}
	n := i.Int64()
	size := min(max(n, -n), int64(len(d.stack)))
	if size < 2 {
		return
	}
	top := d.stack[int64(len(d.stack))-size:]
	if n > 0 {
		first := top[0]
		copy(top, top[1:])
		top[len(top)-1] = first
	} else {
		last := top[len(top)-1]
		copy(top[1:], top)
		top[0] = last
	}
}

func (d *dc) str() {
	var b strings.Builder
	for depth := 1; ; {
		c, ok := d.next()
		if !ok {
			break
		}
		if c == '[' {
			depth++
		} else if c == ']' {
			if depth--; depth == 0 {
				break
			}
		}
		if b.Len() > maxDigits {
			d.say("string too long")
			break
		}
		b.WriteByte(c)
	}
	d.push(item{text: b.String(), str: true})
}

// number reads one; _ is its sign.
func (d *dc) number(c byte) {
	negative := c == '_'
	ok := true
	if negative {
		if c, ok = d.next(); !ok {
			d.pushNum(zero)
			return
		}
	}
	whole, base, frac, point := new(big.Int), big.NewInt(int64(d.base)), 0, false
	for digits := 0; ok; c, ok = d.next() {
		if c == '.' && !point {
			point = true
			continue
		}
		if !(c >= '0' && c <= '9' || c >= 'A' && c <= 'F') || digits > maxDigits {
			d.back()
			break
		}
		digits++
		if d.t.Step(1+digits/256) != nil {
			d.t.Check()
		}
		whole.Mul(whole, base).Add(whole, big.NewInt(int64(digitValue(c))))
		if point {
			frac++
		}
	}
	n := number{whole, 0}
	if d.base == 10 {
		n.scale = frac
	} else if frac > 0 {
		n = n.div(number{new(big.Int).Exp(base, big.NewInt(int64(frac)), nil), 0}, frac)
	}
	if negative {
		n = n.neg()
	}
	d.pushNum(n)
}

func (d *dc) math(c byte) {
	n := 2
	switch c {
	case 'v':
		n = 1
	case '|':
		n = 3
	}
	v, ok := d.numbers(n)
	if !ok {
		return
	}
	giveBack := func(what string) {
		for _, x := range v {
			d.pushNum(x)
		}
		d.say("%s", what)
	}
	x := v[0]
	if n > 1 && (c == '/' || c == '%' || c == '~') && v[1].isZero() {
		giveBack(map[bool]string{true: "divide by zero", false: "remainder by zero"}[c != '%'])
		return
	}
	switch c {
	case '+':
		d.pushNum(x.add(v[1]))
	case '-':
		d.pushNum(x.sub(v[1]))
	case '*':
		if x.v.BitLen()+v[1].v.BitLen() > 4*maxDigits {
			giveBack("out of memory")
			return
		}
		d.pushNum(x.mul(v[1], d.scale))
	case '/':
		d.pushNum(x.div(v[1], d.scale))
	case '%':
		d.pushNum(x.mod(v[1], d.scale))
	case '~':
		d.pushNum(x.div(v[1], d.scale))
		d.pushNum(x.mod(v[1], d.scale))
	case '^':
		if v[1].scale > 0 && v[1].at(0).cmp(v[1]) != 0 {
			d.t.Out.Flush()
			fmt.Fprintln(d.t.Stderr(), "Runtime warning: non-zero scale in exponent")
		}
		r, err := x.pow(v[1], d.scale)
		if err != nil {
			giveBack(err.Error())
			return
		}
		d.pushNum(r)
	case '|':
		e, m := v[1].at(0).v, v[2].at(0).v
		switch {
		case m.Sign() == 0:
			giveBack("remainder by zero")
		case e.Sign() < 0:
			giveBack("negative exponent")
		default:
			d.pushNum(number{new(big.Int).Exp(x.at(0).v, e, new(big.Int).Abs(m)), 0})
		}
	case 'v':
		if x.v.Sign() < 0 {
			d.say("square root of negative number")
			return
		}
		d.pushNum(x.sqrt(d.scale))
	}
}

func (d *dc) of(name byte) *register {
	r := d.registers[name]
	if r == nil {
		r = &register{}
		d.registers[name] = r
	}
	return r
}

// register stores to and loads from the register that the next byte names.
func (d *dc) register(c byte) {
	name, ok := d.next()
	if !ok {
		return
	}
	r := d.of(name)
	top := len(r.items) - 1
	switch c {
	case 's', 'S':
		i, ok := d.pop()
		if !ok {
			return
		}
		if c == 's' && top >= 0 {
			r.items[top] = i
			return
		}
		if len(r.items) >= maxStack {
			d.say("out of memory")
			return
		}
		r.items, r.arrays = append(r.items, i), append(r.arrays, nil)
	case 'l':
		if top < 0 {
			d.pushNum(zero)
			return
		}
		d.push(r.items[top])
	case 'L':
		if top < 0 {
			d.say("stack register '%c' (0%o) is empty", name, name)
			return
		}
		d.push(r.items[top])
		r.items, r.arrays = r.items[:top], r.arrays[:top]
	case ':', ';':
		d.element(r, c)
	}
}

// element stores to or loads from the array of a register.
func (d *dc) element(r *register, c byte) {
	v, ok := d.numbers(1)
	if !ok {
		return
	}
	i := v[0].at(0).v
	if !i.IsInt64() || i.Sign() < 0 || i.Int64() > maxArray {
		d.say("array index must be a nonnegative integer")
		return
	}
	if len(r.items) == 0 {
		r.items, r.arrays = append(r.items, item{num: zero}), append(r.arrays, nil)
	}
	top := len(r.items) - 1
	if c == ';' {
		it, ok := r.arrays[top][int(i.Int64())]
		if !ok {
			it.num = zero
		}
		d.push(it)
		return
	}
	it, ok := d.pop()
	if !ok {
		return
	}
	if r.arrays[top] == nil {
		r.arrays[top] = map[int]item{}
	}
	if d.t.Charge(64) != nil {
		d.say("out of memory")
		d.t.Exit(1)
	}
	r.arrays[top][int(i.Int64())] = it
}

// compare runs a register if two numbers compare so; ! runs a shell's command, or turns a comparison round.
func (d *dc) compare(c byte) {
	not := false
	if c == '!' {
		n, ok := d.next()
		if !ok || strings.IndexByte("<>=", n) < 0 {
			if ok {
				d.back()
			}
			d.shell()
			return
		}
		c, not = n, true
	}
	name, ok := d.next()
	if !ok {
		return
	}
	v, ok := d.numbers(2)
	if !ok {
		return
	}
	order := v[1].cmp(v[0])
	hit := c == '<' && order < 0 || c == '>' && order > 0 || c == '=' && order == 0
	if hit == not {
		return
	}
	if r := d.of(name); len(r.items) > 0 {
		d.execute(r.items[len(r.items)-1])
	}
}

func (d *dc) shell() {
	var b strings.Builder
	for c, ok := d.next(); ok && c != '\n'; c, ok = d.next() {
		b.WriteByte(c)
	}
	d.t.Out.Flush()
	child, err := d.t.Spawn(proc.Spawn{Args: []string{"sh", "-c", b.String()}})
	if err != nil {
		d.say("%s", tool.Strerror(err))
		return
	}
	d.t.WaitQuiet(child)
}

// execute runs a string; a number goes back to the stack.
func (d *dc) execute(i item) {
	if !i.str {
		d.push(i)
		return
	}
	d.call(i.text)
}

// call runs a text; if it is the last thing that the frame does, it takes the frame's place.
func (d *dc) call(text string) {
	n := len(d.frames)
	if f := d.frames[n-1]; f.pos >= len(f.text) && f.more == nil && n > 1 {
		d.frames = d.frames[:n-1]
	}
	if len(d.frames) > maxStack {
		d.say("out of memory")
		d.t.Exit(1)
	}
	d.frames = append(d.frames, &frame{text: text})
}

func (d *dc) print(c byte) {
	switch c {
	case 'f':
		for i := len(d.stack) - 1; i >= 0; i-- {
			d.show(d.stack[i], "\n")
		}
	case 'p':
		if len(d.stack) == 0 {
			d.say("stack empty")
			return
		}
		d.show(d.stack[len(d.stack)-1], "\n")
	case 'n':
		if i, ok := d.pop(); ok {
			d.show(i, "")
		}
	case 'P':
		i, ok := d.pop()
		if !ok {
			return
		}
		if i.str {
			d.t.Out.WriteString(i.text)
			return
		}
		d.t.Out.Write(i.num.at(0).v.Bytes())
	}
}

func (d *dc) show(i item, end string) {
	if i.str {
		d.t.Out.WriteString(i.text + end)
		return
	}
	text := i.num.text(d.obase, false)
	for d.width > 0 && len(text) > d.width-1 {
		d.t.Out.WriteString(text[:d.width-1] + "\\\n")
		text = text[d.width-1:]
	}
	d.t.Out.WriteString(text + end)
}

// settings are scale and bases, and what counts things.
func (d *dc) settings(c byte) {
	switch c {
	case 'I':
		d.pushNum(integer(int64(d.base)))
	case 'O':
		d.pushNum(integer(int64(d.obase)))
	case 'K':
		d.pushNum(integer(int64(d.scale)))
	case 'z':
		d.pushNum(integer(int64(len(d.stack))))
	case 'Z', 'X', 'a':
		i, ok := d.pop()
		if !ok {
			return
		}
		d.measure(c, i)
	default:
		v, ok := d.numbers(1)
		if !ok {
			return
		}
		i := v[0].at(0).v
		n := int64(1) << 40
		if i.IsInt64() {
			n = i.Int64()
		}
		switch {
		case c == 'k' && (n < 0 || n > maxScale):
			d.say("scale must be a nonnegative integer")
		case c == 'k':
			d.scale = int(n)
		case c == 'i' && (n < 2 || n > 16):
			d.say("input base must be a number between 2 and 16 (inclusive)")
		case c == 'i':
			d.base = int(n)
		case n < 2 || n > 1<<31:
			d.say("output base must be a number greater than 1")
		default:
			d.obase = int(n)
		}
	}
}

func (d *dc) measure(c byte, i item) {
	switch {
	case c == 'a' && i.str:
		d.push(item{text: i.text[:min(1, len(i.text))], str: true})
	case c == 'a':
		low := new(big.Int).And(new(big.Int).Abs(i.num.at(0).v), big.NewInt(255))
		d.push(item{text: string([]byte{byte(low.Int64())}), str: true})
	case i.str && c == 'Z':
		d.pushNum(integer(int64(len(i.text))))
	case i.str:
		d.pushNum(zero)
	case c == 'X':
		d.pushNum(integer(int64(i.num.scale)))
	default:
		d.pushNum(integer(int64(i.num.digits())))
	}
}
