package diff

import (
	"strings"
	"unicode/utf8"

	"agentrun.dev/command/tool"
)

// columns is the geometry of two texts side by side.
type columns struct {
	p            *pair
	half, second int // a half line's width, and where the second begins
}

// geometry is how two texts stand side by side.
func (p *pair) geometry() columns {
	const gutter = 3
	tab := p.d.tabSize
	if p.d.expandTabs {
		tab = 1
	}
	w := p.d.width
	off := (w + tab + gutter) / (2 * tab) * tab
	c := columns{p: p, half: max(0, min(off-gutter, w-off)), second: off}
	if c.half == 0 {
		c.second = w
	}
	return c
}

// sideBySide writes both texts in two columns.
func (p *pair) sideBySide() {
	c := p.geometry()
	i, j := 0, 0
	for k := range p.changes {
		p.d.t.Check()
		ch := &p.changes[k]
		c.common(&i, &j, ch.a)
		c.hunk(ch)
		i, j = ch.a+ch.deleted, ch.b+ch.inserted
	}
	c.common(&i, &j, len(p.a.lines))
}

// hunk writes the lines of a change.
func (c *columns) hunk(ch *change) {
	sep := byte('|')
	n := min(ch.deleted, ch.inserted)
	if ch.ignore {
		sep = '('
	}
	for m := range n {
		c.line(ch.a+m, sep, ch.b+m)
	}
	for m := n; m < ch.inserted; m++ {
		c.line(-1, '>', ch.b+m)
	}
	for m := n; m < ch.deleted; m++ {
		c.line(ch.a+m, '<', -1)
	}
}

func (c *columns) common(i, j *int, end int) {
	for ; *i < end; *i, *j = *i+1, *j+1 {
		switch {
		case c.p.d.suppressCommon:
		case c.p.d.leftColumn:
			c.line(*i, '(', -1)
		default:
			c.line(*i, ' ', *j)
		}
	}
}

// line writes one line; -1 is none.
func (c *columns) line(left int, sep byte, right int) {
	out := c.p.d.t.Out
	column, newline := 0, false
	switch sep {
	case '<':
		c.p.d.paint(deleteColor)
	case '>':
		c.p.d.paint(addColor)
	}
	if left >= 0 {
		newline = c.p.a.complete(left)
		column = c.text(c.p.a.lines[left], 0)
	}
	if sep != ' ' {
		column = c.pad(column, (c.half+c.second-1)/2) + 1
		if sep == '|' && newline != c.p.b.complete(right) {
			if sep = '\\'; newline {
				sep = '/'
			}
		}
		out.WriteByte(sep)
	}
	if right >= 0 {
		newline = newline || c.p.b.complete(right)
		if len(c.p.b.lines[right]) > 0 {
			column = c.pad(column, c.second)
			c.text(c.p.b.lines[right], column)
		}
	}
	if newline {
		out.WriteByte('\n')
	}
	if sep == '<' || sep == '>' {
		c.p.d.paint(noColor)
	}
}

// pad goes from one column to another, by tabs where they fit.
func (c *columns) pad(from, to int) int {
	out := c.p.d.t.Out
	if !c.p.d.expandTabs {
		for stop := from + c.p.d.tabSize - from%c.p.d.tabSize; stop <= to; stop = from + c.p.d.tabSize - from%c.p.d.tabSize {
			out.WriteByte('\t')
			from = stop
		}
	}
	if from < to {
		out.WriteString(strings.Repeat(" ", to-from))
	}
	return max(from, to)
}

// text writes as much of a line as fits in a half, and returns the column it ends in.
func (c *columns) text(line []byte, indent int) int {
	out := c.p.d.t.Out
	in, at := 0, 0 // columns of the line, and of what was written
	for len(line) > 0 {
		r, n := utf8.DecodeRune(line)
		ch := line[:n]
		line = line[n:]
		switch r {
		case '\t':
			spaces := c.p.d.tabSize - in%c.p.d.tabSize
			if in == at {
				stop := at + spaces
				if c.p.d.expandTabs {
					for stop = min(stop, c.half); at < stop; at++ {
						out.WriteByte(' ')
					}
				} else if stop < c.half {
					at = stop
					out.WriteByte('\t')
				}
			}
			in += spaces
		case '\r':
			out.WriteByte('\r')
			c.pad(0, indent)
			in, at = 0, 0
		case '\b':
			if in > 0 {
				if in--; in < c.half {
					if at <= in {
						for ; at < in; at++ {
							out.WriteByte(' ')
						}
					} else {
						at = in
						out.WriteByte('\b')
					}
				}
			}
		case '\f', '\v':
			if in < c.half {
				out.Write(ch)
			}
		default:
			width := 1
			if r != utf8.RuneError || n > 1 {
				width = tool.RuneWidth(r)
			}
			if in += width; in <= c.half {
				at = in
				out.Write(ch)
			}
		}
	}
	return at
}
