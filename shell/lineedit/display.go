package lineedit

import (
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// prompt is what stands before the line: its last line is drawn again with it, what is above only once.
type prompt struct {
	above, last string // without the marks of what takes no room
	marked      string // last with them
}

func (e *Editor) setPrompt(s string) {
	above, last := "", s
	if i := strings.LastIndexByte(s, '\n'); i >= 0 {
		above, last = s[:i+1], s[i+1:]
	}
	strip := strings.NewReplacer("\x01", "", "\x02", "")
	e.prompt = prompt{above: strings.ReplaceAll(strip.Replace(above), "\n", "\r\n"), last: strip.Replace(last), marked: last}
}

// runeWidth returns how many columns a character takes.
func runeWidth(r rune) int {
	switch {
	case r < 0x20 || r == 0x7f:
		return 2 // ^X
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf), r == 0x200b, r >= 0x1160 && r <= 0x11ff:
		return 0
	case r >= 0x1f300 && r <= 0x1faff:
		return 2
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// screen lays text out in rows of a terminal.
type screen struct {
	b        strings.Builder
	cols     int
	row, col int
	markRow  int // where the cursor is to be
	markCol  int
}

// char writes a character that takes n columns.
func (s *screen) char(text string, n int) {
	if s.col+n > s.cols {
		s.wrap()
	}
	s.b.WriteString(text)
	if s.col += n; s.col >= s.cols {
		// A terminal waits with the cursor at the margin; this takes it to the next row for certain.
		s.b.WriteString(" \r")
		s.row, s.col = s.row+1, 0
	}
}

func (s *screen) wrap() {
	s.b.WriteString("\x1b[K\r\n")
	s.row, s.col = s.row+1, 0
}

func (s *screen) mark() { s.markRow, s.markCol = s.row, s.col }

// rune writes a character as it is shown: control characters as ^X, tabs as blanks.
func (s *screen) rune(r rune) {
	switch {
	case r == '\n':
		s.wrap()
	case r == '\t':
		for n := 8 - s.col%8; n > 0 && s.col < s.cols; n-- {
			s.char(" ", 1)
		}
	case r < 0x20 || r == 0x7f:
		s.char("^", 1)
		s.char(string(r^0x40), 1)
	case r == unicode.ReplacementChar || r >= 0x80 && r < 0xa0:
		s.char("?", 1)
	default:
		s.char(string(r), runeWidth(r))
	}
}

// marked writes a prompt's last line: what is between \x01 and \x02 takes no room.
func (s *screen) marked(text string) {
	hidden := false
	for _, r := range text {
		switch {
		case r == 1:
			hidden = true
		case r == 2:
			hidden = false
		case hidden:
			s.b.WriteRune(r)
		case r == 0x1b || r == '\a' || r == '\r' || r == '\b':
			s.b.WriteRune(r) // unmarked, as careless prompts have it: no width is better than that of ^[
		default:
			s.rune(r)
		}
	}
}

// redraw writes prompt and line anew and puts the cursor to point.
func (e *Editor) redraw() {
	if !e.shown {
		e.put(e.prompt.above)
		e.shown = true
	} else {
		if e.row > 0 {
			e.put("\x1b[" + strconv.Itoa(e.row) + "A")
		}
		e.put("\r")
	}
	s := &screen{cols: e.cfg.Columns}
	if e.search.on {
		s.marked(e.search.prompt())
	} else {
		s.marked(e.prompt.marked)
	}
	buf, point := e.buf, e.point
	if e.search.on && e.search.kind != 'i' {
		buf, point = e.search.pattern, len(e.search.pattern)
	}
	for i, r := range buf {
		if i == point {
			s.mark()
		}
		s.rune(r)
	}
	if point == len(buf) {
		s.mark()
	}
	e.put(s.b.String())
	e.put("\x1b[J")
	if up := s.row - s.markRow; up > 0 {
		e.put("\x1b[" + strconv.Itoa(up) + "A")
	}
	if s.col != s.markCol || s.row != s.markRow {
		e.put("\r")
		if s.markCol > 0 {
			e.put("\x1b[" + strconv.Itoa(s.markCol) + "C")
		}
	}
	e.row = s.markRow
}

// place lays out what is before point.
func (e *Editor) place(upto int) (row, col int) {
	s := &screen{cols: e.cfg.Columns}
	s.marked(e.prompt.marked)
	for _, r := range e.buf[:upto] {
		s.rune(r)
	}
	return s.row, s.col
}

// typed shows a character that was inserted at the end, without drawing everything again where that is enough.
func (e *Editor) typed(r rune) {
	if e.point == len(e.buf) && r >= 0x20 && r < 0x7f && !e.search.on {
		if row, col := e.place(e.point - 1); col+1 < e.cfg.Columns && row == e.row {
			e.put(string(r))
			return
		}
	}
	e.redraw()
}

// leave takes the cursor beneath the line.
func (e *Editor) leave() {
	if e.point != len(e.buf) {
		e.point = len(e.buf)
		e.redraw()
	}
	e.put("\r\n")
	e.unpaste()
}

// Redraw shows prompt and line again on a new line, after something else was written.
func (e *Editor) Redraw() {
	e.row, e.shown = 0, false
	e.redraw()
}

// Print writes a text beneath the line and then the line again.
func (e *Editor) Print(text string) {
	row, _ := e.place(len(e.buf))
	if n := row - e.row; n > 0 {
		e.put("\x1b[" + strconv.Itoa(n) + "B")
	}
	e.put("\r\n" + strings.ReplaceAll(text, "\n", "\r\n"))
	e.Redraw()
}

// Insert replaces the bytes of the line from a place to point.
func (e *Editor) Insert(from int, text string) {
	start := len([]rune(e.Text()[:min(from, e.Point())]))
	old := string(e.buf[start:e.point])
	if old == text {
		return
	}
	e.save(false)
	if strings.HasPrefix(text, old) {
		e.insert([]rune(text[len(old):]))
	} else {
		e.remove(start, e.point)
		e.insert([]rune(text))
	}
	e.redraw()
}

// List shows completions in columns; if they are many, after a question. What could command the terminal is shown as ?.
func (e *Editor) List(items []string) {
	clean := make([]string, len(items))
	for i, s := range items {
		clean[i] = strings.Map(func(r rune) rune {
			if r < 0x20 || r >= 0x7f && r < 0xa0 {
				return '?'
			}
			return r
		}, s)
	}
	items = clean
	if e.cfg.Query > 0 && len(items) >= e.cfg.Query {
		e.query = &query{items}
		row, _ := e.place(len(e.buf))
		if n := row - e.row; n > 0 {
			e.put("\x1b[" + strconv.Itoa(n) + "B")
		}
		e.put("\r\nDisplay all " + strconv.Itoa(len(items)) + " possibilities? (y or n)")
		return
	}
	e.Print(columns(items, e.cfg.Columns))
}

func (e *Editor) answer(b byte) Event {
	switch b {
	case 'y', 'Y', ' ':
		items := e.query.items
		e.query = nil
		e.put("\r\n" + strings.ReplaceAll(columns(items, e.cfg.Columns), "\n", "\r\n"))
		e.Redraw()
	case 'n', 'N', 0x7f, 7:
		e.query = nil
		e.put("\r\n")
		e.Redraw()
	default:
		e.Ding()
	}
	return None
}

// columns lays items out in columns, down first.
func columns(items []string, total int) string {
	cell := 0
	for _, s := range items {
		cell = max(cell, textWidth(s))
	}
	cell += 2
	n := max(1, total/cell)
	if n*cell == total && n > 1 {
		n = max(1, (total-1)/cell)
	}
	rows := (len(items) + n - 1) / n
	var b strings.Builder
	for r := range rows {
		for i := r; i < len(items); i += rows {
			b.WriteString(items[i])
			if i+rows < len(items) {
				b.WriteString(strings.Repeat(" ", max(0, cell-textWidth(items[i]))))
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func textWidth(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// Again tells whether the command before this one was the same: completion shows what it found only the second time.
func (e *Editor) Again() bool { return e.last == e.command }

// Hide takes the line off the screen.
func (e *Editor) Hide() {
	if e.row > 0 {
		e.put("\x1b[" + strconv.Itoa(e.row) + "A")
	}
	e.put("\r\x1b[J")
	e.row, e.shown = 0, false
}
