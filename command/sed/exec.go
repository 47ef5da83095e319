package sed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

// space is the pattern space.
type space struct {
	text    []byte
	chomped bool // its line ended with the delimiter, which printing adds again
}

// rangeState is where a command with two addresses is in its range.
type rangeState struct {
	active bool
	closed bool // a range from line 0 or a number can begin only once
	end    int64
}

// output is where lines go. A last line without its newline gets it only if something follows.
type output struct {
	w       io.Writer
	file    vfs.File
	missing bool
}

type executor struct {
	t       *tool.T
	o       options
	prog    []command
	in      input
	states  []rangeState
	out     *output // of the present file
	std     *output
	files   map[string]*output
	readers map[string]*lineReader // of R
	space   space
	hold    []byte
	scratch []byte
	last    *regex
	appends []appended
	status  int
	quit    bool
	replace bool // a substitution was made since the last line was read, or t
	again   bool // D: run the script again without reading
	temp    *inPlace
}

// appended is what a, r and R put out at the end of the cycle.
type appended struct {
	text []byte
	file string // r
}

type lineReader struct {
	in    *tool.Input
	lines *tool.Lines
}

func (x *executor) openFiles(names []string) error {
	x.files = map[string]*output{}
	for _, name := range names {
		if x.files[name] != nil {
			continue
		}
		switch name {
		case "/dev/stdout":
			x.files[name] = x.std
		case "/dev/stderr":
			x.files[name] = &output{w: x.t.Stderr()}
		default:
			f, err := x.t.Create(name)
			if err != nil {
				return fmt.Errorf("couldn't open file %s: %s", name, tool.Strerror(err))
			}
			x.files[name] = &output{w: f, file: f}
		}
	}
	return nil
}

func (x *executor) closeAll() {
	for _, f := range x.files {
		if f.file != nil {
			f.file.Close()
		}
	}
	for _, r := range x.readers {
		if r != nil {
			r.in.Close()
		}
	}
	x.in.close()
	if x.temp != nil {
		x.temp.abandon(x.t)
	}
}

// write puts text out, with the delimiter if eol.
func (x *executor) write(o *output, text []byte, eol bool) {
	if o.missing {
		o.missing = false
		x.put(o, []byte{x.o.delim})
	}
	x.put(o, text)
	if eol {
		x.put(o, []byte{x.o.delim})
	} else {
		o.missing = true
	}
	if x.o.unbuffered && o == x.std {
		x.t.Out.Flush()
	}
}

func (x *executor) put(o *output, text []byte) {
	if len(text) == 0 {
		return
	}
	if _, err := o.w.Write(text); err != nil {
		if errors.Is(err, syscall.EPIPE) {
			x.t.Exit(128 + int(syscall.SIGPIPE))
		}
		x.t.Fatal(exitPanic, "couldn't write %d items to output: %s", len(text), tool.Strerror(err))
	}
}

// run processes all input.
func (x *executor) run() int {
	for x.readLine() {
		x.cycle()
		x.endCycle()
		if x.quit {
			break
		}
	}
	x.finishFile()
	if x.in.failed && x.status == 0 {
		x.status = exitInput
	}
	return x.status
}

// readLine reads the next line into the pattern space, unless D kept what is there.
func (x *executor) readLine() bool {
	if x.again {
		x.again = false
		return true
	}
	x.replace = false
	return x.fetch(false)
}

// fetch reads a line; add appends it to the pattern space after a newline.
func (x *executor) fetch(add bool) bool {
	line, chomped, ok := x.in.next(x)
	if !ok {
		return false
	}
	if add {
		x.space.text = append(append(x.space.text, x.o.delim), line...)
		if len(x.space.text) > tool.MaxLine {
			x.t.Fatal(exitPanic, "memory exhausted")
		}
	} else {
		x.space.text = append(x.space.text[:0], line...)
		if x.space.text == nil {
			x.space.text = []byte{} // an empty line; nil is one that was deleted
		}
	}
	x.space.chomped = chomped
	return true
}

// endCycle prints the pattern space, unless told not to, and what was appended.
func (x *executor) endCycle() {
	if !x.o.quiet && !x.again && x.space.text != nil {
		x.write(x.out, x.space.text, x.space.chomped)
	}
	x.flushAppends()
}

func (x *executor) flushAppends() {
	for _, a := range x.appends {
		if a.file == "" {
			if x.out.missing {
				x.out.missing = false
				x.put(x.out, []byte{x.o.delim})
			}
			x.put(x.out, a.text)
			continue
		}
		name := a.file
		if name == "/dev/stdin" {
			name = "-"
		}
		in, err := x.t.Open(name)
		if err != nil {
			continue // a file that can't be read is as if empty
		}
		if x.out.missing {
			x.out.missing = false
			x.put(x.out, []byte{x.o.delim})
		}
		buf := make([]byte, 32<<10)
		for {
			n, err := in.Read(buf)
			x.put(x.out, buf[:n])
			if err != nil {
				break
			}
		}
		in.Close()
	}
	x.appends = x.appends[:0]
}

// resolve returns the regular expression of a command, the last one used if it is empty.
func (x *executor) resolve(re *regex, c *command) *regex {
	if re == nil {
		if x.last == nil {
			x.t.Fatal(exitUsage, "%sno previous regular expression", c.where)
		}
		return x.last
	}
	x.last = re
	return re
}

func (x *executor) matches(re *regex, c *command) bool {
	ok, err := x.resolve(re, c).re.Match(x.space.text)
	if err != nil {
		x.t.Fatal(exitPanic, "%s", err)
	}
	return ok
}

func (x *executor) matchAddress(a *address, c *command) bool {
	switch a.kind {
	case addrLine:
		return x.in.line == a.n
	case addrStep:
		if a.step <= 0 {
			return x.in.line == a.n
		}
		return x.in.line >= a.n && (x.in.line-a.n)%a.step == 0
	case addrLast:
		return x.in.isLast(x)
	case addrRegex:
		return x.matches(a.re, c)
	}
	return false
}

// selected reports whether a command's addresses select the line.
func (x *executor) selected(c *command) bool {
	if c.a1.kind == addrNone {
		return true
	}
	if c.a2.kind == addrNone {
		return x.matchAddress(&c.a1, c)
	}
	s := &x.states[c.state]
	if !s.active {
		if c.a1.kind == addrZero && !s.closed {
			s.closed = true // begins before the first line, which may end it
			s.active = true
		} else {
			if !x.matchAddress(&c.a1, c) {
				return false
			}
			return x.beginRange(s, c)
		}
	}
	return x.inRange(s, c)
}

// beginRange is called on the first line of a range.
func (x *executor) beginRange(s *rangeState, c *command) bool {
	line := x.in.line
	switch c.a2.kind {
	case addrLine:
		s.active = c.a2.n > line
		s.end = c.a2.n
	case addrPlus:
		s.end = line + c.a2.n
		s.active = c.a2.n > 0
	case addrMultiple:
		s.end = line
		if c.a2.n > 0 {
			s.end = (line + c.a2.n - 1) / c.a2.n * c.a2.n
		}
		s.active = s.end > line
	case addrLast:
		s.active = !x.in.isLast(x)
	default:
		s.active = true
	}
	return true
}

func (x *executor) inRange(s *rangeState, c *command) bool {
	line := x.in.line
	switch c.a2.kind {
	case addrLine, addrPlus, addrMultiple:
		if line >= s.end {
			s.active = false
		}
		if c.a2.kind == addrLine && line > s.end {
			// The end has been passed over, by n or N: only a first address can select the line.
			if x.matchAddress(&c.a1, c) {
				return x.beginRange(s, c)
			}
			return false
		}
	case addrLast:
		s.active = !x.in.isLast(x)
	default:
		s.active = !x.matchAddress(&c.a2, c)
	}
	return true
}

// cycle runs the script on the pattern space.
func (x *executor) cycle() {
	for pc := 0; pc < len(x.prog); {
		c := &x.prog[pc]
		pc++
		if x.selected(c) == c.negate {
			if c.name == '{' {
				pc = c.target
			}
			continue
		}
		switch c.name {
		case '{':
		case 'b':
			pc = x.jump(c)
		case 't':
			if x.replace {
				x.replace = false
				pc = x.jump(c)
			}
		case 'T':
			if !x.replace {
				pc = x.jump(c)
			}
			x.replace = false
		default:
			if !x.execute(c) {
				return
			}
		}
	}
}

// jump goes to a label; loops without input end when the process is killed.
func (x *executor) jump(c *command) int {
	x.t.Check()
	return c.target
}

// execute runs a simple command; it returns false if the cycle is over.
func (x *executor) execute(c *command) bool {
	switch c.name {
	case '=':
		x.putText(x.out, strconv.FormatInt(x.in.line, 10)+"\n")
	case 'a':
		x.appends = append(x.appends, appended{text: []byte(c.text)})
	case 'i':
		x.putText(x.out, c.text)
	case 'c':
		if c.a2.kind == addrNone || c.negate || !x.states[c.state].active {
			x.putText(x.out, c.text)
		}
		x.space.text = nil
		return false
	case 'd':
		x.space.text = nil
		return false
	case 'D':
		i := bytes.IndexByte(x.space.text, x.o.delim)
		if i < 0 {
			x.space.text = nil
			return false
		}
		x.space.text = append(x.space.text[:0], x.space.text[i+1:]...)
		x.again = true
		x.t.Check()
		return false
	case 'e':
		x.shell(c)
	case 'F':
		name := x.in.name
		if name == "" {
			name = "-"
		}
		x.putText(x.out, name+"\n")
	case 'g':
		x.space.text = append(x.space.text[:0], x.hold...)
	case 'G':
		x.space.text = append(append(x.space.text, x.o.delim), x.hold...)
		x.bound(len(x.space.text))
	case 'h':
		x.hold = append(x.hold[:0], x.space.text...)
	case 'H':
		x.hold = append(append(x.hold, x.o.delim), x.space.text...)
		x.bound(len(x.hold))
	case 'x':
		x.hold, x.space.text = x.space.text, x.hold
		if x.space.text == nil {
			x.space.text = []byte{}
		}
	case 'l':
		x.list(c)
	case 'n', 'N':
		return x.nextLine(c)
	case 'p':
		x.write(x.out, x.space.text, x.space.chomped)
	case 'P':
		text, chomped := x.space.text, x.space.chomped
		if i := bytes.IndexByte(text, x.o.delim); i >= 0 {
			text, chomped = text[:i], true
		}
		x.write(x.out, text, chomped)
	case 'q', 'Q':
		x.quit = true
		x.status = max(c.num, 0)
		if c.name == 'Q' {
			x.space.text = nil
		}
		return false
	case 'r':
		x.appends = append(x.appends, appended{file: c.text})
	case 'R':
		x.readOne(c.text)
	case 's':
		x.subst(c)
	case 'w':
		x.write(x.files[c.text], x.space.text, x.space.chomped)
	case 'W':
		text, chomped := x.space.text, x.space.chomped
		if i := bytes.IndexByte(text, x.o.delim); i >= 0 {
			text, chomped = text[:i], true
		}
		x.write(x.files[c.text], text, chomped)
	case 'y':
		x.transliterate(c.trans)
	case 'z':
		x.space.text = x.space.text[:0]
	}
	return true
}

func (x *executor) bound(n int) {
	if n > tool.MaxLine {
		x.t.Fatal(exitPanic, "memory exhausted")
	}
}

// putText writes text that brings its own newline.
func (x *executor) putText(o *output, text string) {
	if o.missing {
		o.missing = false
		x.put(o, []byte{x.o.delim})
	}
	x.put(o, []byte(text))
}

// nextLine is n and N. Without another line the script ends; GNU prints the pattern space then.
func (x *executor) nextLine(c *command) bool {
	if x.in.isLast(x) {
		if x.o.posix && c.name == 'N' {
			x.space.text = nil
		}
		x.quit = x.in.atEnd() // with -s and -i the next file goes on
		return false
	}
	if c.name == 'n' {
		if !x.o.quiet {
			x.write(x.out, x.space.text, x.space.chomped)
		}
		x.flushAppends()
		return x.fetch(false)
	}
	x.flushAppends()
	return x.fetch(true)
}

func (x *executor) subst(c *command) {
	if !x.substitute(c) {
		return
	}
	x.replace = true
	s := c.sub
	if s.print == 2 {
		x.write(x.out, x.space.text, x.space.chomped)
	}
	if s.eval {
		out := x.command(string(x.space.text))
		x.space.text = append(x.space.text[:0], bytes.TrimSuffix(out, []byte{x.o.delim})...)
	}
	if s.print == 1 {
		x.write(x.out, x.space.text, x.space.chomped)
	}
	if s.file != "" {
		x.write(x.files[s.file], x.space.text, x.space.chomped)
	}
}

// shell is e: it puts out what a command prints, or runs the pattern space and replaces it by that.
func (x *executor) shell(c *command) {
	if c.text != "" {
		x.putText(x.out, string(x.command(c.text)))
		return
	}
	out := x.command(string(x.space.text))
	x.space.text = append(x.space.text[:0], bytes.TrimSuffix(out, []byte{x.o.delim})...)
}

func (x *executor) command(line string) []byte {
	x.t.Out.Flush()
	out, _, err := x.t.Output(tool.MaxLine, "sh", "-c", line)
	if err != nil {
		x.t.Fatal(exitPanic, "error running command: %s", tool.Strerror(err))
	}
	return out
}

// readOne is R: one line of a file each time.
func (x *executor) readOne(name string) {
	if x.readers == nil {
		x.readers = map[string]*lineReader{}
	}
	r, ok := x.readers[name]
	if !ok {
		open := name
		if name == "/dev/stdin" {
			open = "-"
		}
		if in, err := x.t.Open(open); err == nil {
			r = &lineReader{in, tool.NewLines(in, x.o.delim)}
		}
		x.readers[name] = r
	}
	if r == nil {
		return
	}
	if line, ok := r.lines.Next(); ok {
		x.appends = append(x.appends, appended{text: append(append([]byte(nil), line...), x.o.delim)})
	}
}

func (x *executor) transliterate(table map[rune]rune) {
	out := x.scratch[:0]
	for b := x.space.text; len(b) > 0; {
		r, n := utf8.DecodeRune(b)
		if to, ok := table[r]; ok && !(r == utf8.RuneError && n == 1) {
			out = utf8.AppendRune(out, to)
		} else {
			out = append(out, b[:n]...)
		}
		b = b[n:]
	}
	x.scratch, x.space.text = x.space.text, out
}

// list is l: the pattern space in an unambiguous form, wrapped.
func (x *executor) list(c *command) {
	width := x.o.wrap
	if c.num >= 0 {
		width = c.num
	} else if width == 1 {
		width = 0
	}
	var b strings.Builder
	col := 0
	for text := x.space.text; len(text) > 0; {
		n := 1
		item := ""
		switch {
		case text[0] == '\\':
			item = `\\`
		case strings.IndexByte("\a\b\f\n\r\t\v", text[0]) >= 0:
			item = `\` + string("abfnrtv"[strings.IndexByte("\a\b\f\n\r\t\v", text[0])])
		case text[0] >= ' ' && text[0] < 0x7f:
			item = string(text[0])
		default:
			item = fmt.Sprintf(`\%03o`, text[0])
		}
		if width > 0 && col+len(item) > width-1 {
			b.WriteString("\\\n")
			col = 0
		}
		b.WriteString(item)
		col += len(item)
		text = text[n:]
	}
	b.WriteString("$\n")
	x.putText(x.out, b.String())
}
