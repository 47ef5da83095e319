package grep

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"syscall"
	"unicode/utf8"

	"agentrun.dev/command/tool"
)

// bufferSize is how much is read at once. A longer line makes the buffer grow up to tool.MaxLine.
const bufferSize = 64 << 10

// scanner searches one file.
type scanner struct {
	s    *searcher
	name string
	in   *tool.Input

	buf         []byte
	start, end  int
	base        int64 // offset of buf[0] in the file
	binary      bool
	line        int64 // number of the line at the point up to which newlines were counted
	counted     int64 // that point, an offset
	selected    int64
	left        int64 // lines to select still; negative is unlimited
	pending     int   // lines of trailing context still to print
	before      []held
	lastPrinted int64 // offset behind the last line printed
	done        bool
	width       int  // least width of numbers, for -T
	suppressed  bool // a line of a binary file would have been printed
}

// held is a line kept as leading context.
type held struct {
	text []byte
	at   int64
}

// scan goes through the file.
func (c *scanner) scan() error {
	c.lastPrinted = -1
	c.buf = make([]byte, bufferSize)
	for !c.done {
		eof, err := c.fill()
		if err != nil {
			return err
		}
		region := c.buf[c.start:c.end]
		if c.checkBinary(region) {
			return nil
		}
		cut := bytes.LastIndexByte(region, c.s.delim) + 1
		if eof {
			cut = len(region)
		}
		c.start += c.region(region[:cut])
		if eof {
			break
		}
	}
	if c.done && c.in.IsStdin() && c.in.File != nil {
		// Leave the offset behind the last line selected, for whoever reads next.
		c.in.File.Seek(int64(c.start-c.end), io.SeekCurrent)
	}
	return nil
}

// fill reads until the buffer holds at least one whole line, or the end of the file.
func (c *scanner) fill() (eof bool, err error) {
	if c.start > 0 {
		copy(c.buf, c.buf[c.start:c.end])
		c.base += int64(c.start)
		c.end -= c.start
		c.start = 0
	}
	scanned := 0
	for {
		if c.end == len(c.buf) {
			if len(c.buf) >= tool.MaxLine {
				return false, syscall.ENOMEM
			}
			c.buf = append(c.buf, make([]byte, len(c.buf))...)
		}
		n, err := c.in.Read(c.buf[c.end:])
		c.end += n
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if bytes.IndexByte(c.buf[scanned:c.end], c.s.delim) >= 0 {
			return false, nil
		}
		scanned = c.end
	}
}

// checkBinary looks for NUL bytes; it returns true if the file needn't be searched any further.
func (c *scanner) checkBinary(region []byte) bool {
	if c.binary || c.s.binary == "text" || c.s.delim == 0 || bytes.IndexByte(region, 0) < 0 {
		return false
	}
	if c.s.binary == "without-match" {
		c.selected, c.done = 0, true
		return true
	}
	c.binary = true
	return false
}

// region searches whole lines, and returns how far it came.
func (c *scanner) region(b []byte) int {
	m := &c.s.m
	quick := !c.s.invert && c.s.before == 0 && c.s.after == 0 && (len(m.literal) > 0 || m.fold != nil && !m.fold.unsure(b))
	at, where := 0, positions{-1, -1}
	for at < len(b) && !c.done {
		if quick {
			// Skip to the next line that has the string every match contains.
			i := 0
			if m.fold != nil {
				if i = m.fold.index(b, at, &where); i >= 0 {
					i -= at
				}
			} else {
				i = bytes.Index(b[at:], m.literal)
			}
			if i < 0 {
				break
			}
			if j := bytes.LastIndexByte(b[at:at+i], c.s.delim); j >= 0 {
				at += j + 1
			}
		}
		end := at
		if i := bytes.IndexByte(b[at:], c.s.delim); i >= 0 {
			end = at + i
		} else {
			end = len(b)
		}
		line := b[at:end]
		next := min(end+1, len(b))
		if quick && c.s.m.exact || c.s.match(line) != c.s.invert {
			c.selectLine(b, line, at)
		} else {
			c.contextLine(b, line, at)
		}
		at = next
	}
	if !c.done {
		at = len(b)
	}
	c.countTo(b, at)
	return at
}

// countTo counts line ends in b up to an index.
func (c *scanner) countTo(b []byte, to int) {
	if !c.s.numbers {
		return
	}
	from := int(c.counted - c.base - int64(c.start))
	if from < to {
		c.line += int64(bytes.Count(b[from:to], []byte{c.s.delim}))
		c.counted = c.base + int64(c.start) + int64(to)
	}
}

// quietly reports whether only the fact of a match counts.
func (c *scanner) quietly() bool { return c.s.quiet || c.s.list != 0 }

func (c *scanner) selectLine(b, line []byte, at int) {
	c.selected++
	s := c.s
	if c.quietly() {
		c.done = true
		return
	}
	if !s.count {
		c.flushBefore(b, at)
		c.print(b, line, at, true)
		c.pending = s.after
	}
	if c.left > 0 {
		if c.left--; c.left == 0 {
			c.done = s.after == 0 || s.count
			c.left = -2 // only trailing context is left
		}
	}
}

// contextLine handles a line that isn't selected.
func (c *scanner) contextLine(b, line []byte, at int) {
	s := c.s
	if s.count || c.quietly() {
		return
	}
	switch {
	case c.pending > 0:
		c.print(b, line, at, false)
		if c.pending--; c.pending == 0 && c.left == -2 {
			c.done = true
		}
	case s.before > 0:
		if len(c.before) >= s.before {
			first := c.before[0]
			copy(c.before, c.before[1:])
			c.before[len(c.before)-1] = held{append(first.text[:0], line...), c.base + int64(c.start+at)}
		} else {
			c.before = append(c.before, held{append([]byte(nil), line...), c.base + int64(c.start+at)})
		}
	}
}

// flushBefore prints the leading context, after a separator if it doesn't follow what was printed last.
func (c *scanner) flushBefore(b []byte, at int) {
	s := c.s
	if !s.context {
		return
	}
	first := c.base + int64(c.start+at)
	if len(c.before) > 0 {
		first = c.before[0].at
	}
	if s.sep != nil && !c.binary && s.anyOutput && first != c.lastPrinted {
		if s.color != nil {
			paint(s.t, s.color.sep, *s.sep)
		} else {
			s.t.Out.WriteString(*s.sep)
		}
		s.t.Out.WriteByte('\n')
	}
	c.countTo(b, at)
	for i, h := range c.before {
		c.write(h.text, h.at, c.line+1-int64(len(c.before)-i), false)
	}
	c.before = c.before[:0]
}

// print writes a line of the region.
func (c *scanner) print(b, line []byte, at int, selected bool) {
	c.countTo(b, at)
	c.write(line, c.base+int64(c.start+at), c.line+1, selected)
}

func (c *scanner) write(line []byte, at, number int64, selected bool) {
	s := c.s
	if c.binary {
		c.suppressed = c.suppressed || selected
		c.done = c.done || c.suppressed
		return
	}
	if !s.only && c.garbled(line) {
		return
	}
	c.lastPrinted = at + int64(len(line)) + 1
	s.anyOutput = true
	sep := byte(':')
	if !selected {
		sep = '-'
	}
	// Matches show in selected lines, or with -v in those that aren't.
	showsMatches := selected != s.invert
	if s.only {
		if showsMatches && selected {
			for _, m := range s.matches(line) {
				if c.garbled(line[m[0]:m[1]]) {
					continue
				}
				c.prefix(at+int64(m[0]), number, sep)
				if s.color != nil {
					paint(s.t, s.color.match, string(line[m[0]:m[1]]))
				} else {
					s.t.Out.Write(line[m[0]:m[1]])
				}
				s.t.Out.WriteByte(s.delim)
			}
		}
	} else {
		c.prefix(at, number, sep)
		c.text(line, selected, showsMatches)
		s.t.Out.WriteByte(s.delim)
	}
	if s.flush {
		s.t.Out.Flush()
	}
}

// garbled reports whether a text can't be shown since it isn't UTF-8; that makes the file a binary one.
func (c *scanner) garbled(text []byte) bool {
	if c.s.binary == "text" || c.s.delim == 0 || utf8.Valid(text) {
		return false
	}
	if c.s.binary == "without-match" {
		c.done = true
	} else {
		c.suppressed = true
	}
	return true
}

// text writes a line, its matches in color.
func (c *scanner) text(line []byte, selected, showsMatches bool) {
	s := c.s
	if s.color == nil {
		s.t.Out.Write(line)
		return
	}
	lineColor, matchColor := s.color.selected, s.color.match
	if !selected {
		lineColor, matchColor = s.color.context, s.color.matchContext
	}
	at := 0
	if showsMatches {
		for _, m := range s.matches(line) {
			if m[0] > at {
				paint(s.t, lineColor, string(line[at:m[0]]))
			}
			paint(s.t, matchColor, string(line[m[0]:m[1]]))
			at = m[1]
		}
	}
	if at < len(line) {
		paint(s.t, lineColor, string(line[at:]))
	}
}

// prefix writes file name, line number and offset, as far as asked for.
func (c *scanner) prefix(at, number int64, sep byte) {
	s := c.s
	any := false
	put := func(code, text string, null bool) {
		any = true
		if s.color == nil {
			s.t.Out.WriteString(text)
		} else {
			paint(s.t, code, text)
		}
		switch {
		case null:
			s.t.Out.WriteByte(0)
		case s.color != nil:
			paint(s.t, s.color.sep, string(sep))
		default:
			s.t.Out.WriteByte(sep)
		}
	}
	var p palette
	if s.color != nil {
		p = *s.color
	}
	if s.withName {
		put(p.file, c.name, s.null)
	}
	if s.numbers {
		put(p.line, fmt.Sprintf("%*d", c.width, number), false)
	}
	if s.offsets {
		put(p.offset, fmt.Sprintf("%*d", c.width, at), false)
	}
	if s.tab && any {
		s.t.Out.WriteByte('\t')
	}
}

// finish prints what stands for the whole file, and reports whether it counts as found.
func (c *scanner) finish() bool {
	s := c.s
	found := c.selected > 0
	name := func() {
		if s.color != nil {
			paint(s.t, s.color.file, c.name)
		} else {
			s.t.Out.WriteString(c.name)
		}
	}
	switch {
	case s.quiet:
	case s.count && !(s.list != 0):
		if s.withName {
			name()
			switch {
			case s.null:
				s.t.Out.WriteByte(0)
			case s.color != nil:
				paint(s.t, s.color.sep, ":")
			default:
				s.t.Out.WriteByte(':')
			}
		}
		s.t.Out.WriteString(strconv.FormatInt(c.selected, 10) + "\n")
	case s.list == 'l' && found, s.list == 'L' && !found:
		name()
		if s.null {
			s.t.Out.WriteByte(0)
		} else {
			s.t.Out.WriteByte('\n')
		}
	case c.suppressed:
		s.t.Warn("%s: binary file matches", c.name)
	}
	return found
}
