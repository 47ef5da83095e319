package lineedit

import (
	"strings"
)

// search is one of the history that is going on: 'i' finds while it is typed; 'n' and '/' once the text is complete.
type search struct {
	on      bool
	kind    byte
	forth   bool
	failed  bool
	pattern []rune
	from    int    // where it began,
	saved   []rune // with this line,
	point   int    // and point
	last    string // the text of the search before
	at      int    // the line that was found
}

func (s *search) prompt() string {
	switch {
	case s.kind == '/' && s.forth:
		return "?"
	case s.kind == '/':
		return "/"
	case s.kind == 'n':
		return ":"
	}
	var b strings.Builder
	b.WriteByte('(')
	if s.failed {
		b.WriteString("failed ")
	}
	if !s.forth {
		b.WriteString("reverse-")
	}
	b.WriteString("i-search)`" + string(s.pattern) + "': ")
	return b.String()
}

// line returns a line of the history as it is now, with changes.
func (e *Editor) line(i int) string {
	if s, ok := e.edited[i]; ok {
		return s
	}
	if i < len(e.cfg.Lines) {
		return e.cfg.Lines[i]
	}
	return ""
}

// visit goes to a line of the history, keeping changes of the one that was shown.
func (e *Editor) visit(i int) bool {
	if i < 0 || i > len(e.cfg.Lines) || i == e.at {
		return i == e.at
	}
	if s := string(e.buf); s != e.line(e.at) {
		if e.edited == nil {
			e.edited = make(map[int]string)
		}
		e.edited[e.at] = s
	}
	e.at = i
	e.buf = []rune(e.line(i))
	e.point = len(e.buf)
	e.undo = nil
	return true
}

// historyCommand runs the commands that move in the history; false for others.
func (e *Editor) historyCommand(fn string, n int) bool {
	to := e.at
	switch fn {
	case "previous-history":
		to -= n
	case "next-history":
		to += n
	case "beginning-of-history":
		to = 0
	case "end-of-history":
		to = len(e.cfg.Lines)
	case "fetch-history":
		to = len(e.cfg.Lines)
		if e.hasArg {
			to = e.arg - 1
		}
	case "history-search-backward":
		e.prefixSearch(-1, strings.HasPrefix)
		return true
	case "history-search-forward":
		e.prefixSearch(1, strings.HasPrefix)
		return true
	case "history-substring-search-backward":
		e.prefixSearch(-1, strings.Contains)
		return true
	case "history-substring-search-forward":
		e.prefixSearch(1, strings.Contains)
		return true
	case "reverse-search-history", "forward-search-history":
		e.search = search{on: true, kind: 'i', forth: fn == "forward-search-history", from: e.at, at: e.at, saved: append([]rune(nil), e.buf...), point: e.point, last: e.search.last}
		e.redraw()
		return true
	case "non-incremental-reverse-search-history", "non-incremental-forward-search-history":
		e.askSearch('n', fn == "non-incremental-forward-search-history")
		return true
	default:
		return false
	}
	to = max(0, min(to, len(e.cfg.Lines)))
	if to == e.at {
		e.Ding()
		return true
	}
	e.visit(to)
	e.redraw()
	return true
}

// prefixSearch looks for a line that begins with, or contains, what is before point.
func (e *Editor) prefixSearch(step int, match func(s, part string) bool) {
	part := string(e.buf[:e.point])
	for i := e.at + step; i >= 0 && i <= len(e.cfg.Lines); i += step {
		if s := e.line(i); match(s, part) && s != string(e.buf) {
			point := e.point
			e.visit(i)
			e.point = min(point, len(e.buf))
			e.redraw()
			return
		}
	}
	e.Ding()
}

func (e *Editor) askSearch(kind byte, forth bool) {
	e.search = search{on: true, kind: kind, forth: forth, from: e.at, last: e.search.last}
	e.want = want{kind: 's'}
	e.redraw()
}

// askedSearch takes a character of the text of a search that begins with its end.
func (e *Editor) askedSearch(r rune) {
	s := &e.search
	switch r {
	case '\r', '\n':
		s.on = false
		text := string(s.pattern)
		if text == "" {
			text = s.last
		}
		e.searchFor(text, s.forth)
		e.redraw()
		return
	case 7, 3, 0x1b:
		s.on = false
		e.redraw()
		return
	case 0x7f, 8:
		if len(s.pattern) == 0 {
			s.on = false
			e.redraw()
			return
		}
		s.pattern = s.pattern[:len(s.pattern)-1]
	default:
		s.pattern = append(s.pattern, r)
	}
	e.want = want{kind: 's'}
	e.redraw()
}

// searchFor goes to the next line that has a text.
func (e *Editor) searchFor(text string, forth bool) {
	e.search.last, e.search.forth = text, forth
	step := -1
	if forth {
		step = 1
	}
	for i := e.at + step; text != "" && i >= 0 && i < len(e.cfg.Lines); i += step {
		s := e.line(i)
		if rest, ok := strings.CutPrefix(text, "^"); ok && strings.HasPrefix(s, rest) || !ok && strings.Contains(s, text) {
			e.visit(i)
			e.point = 0
			return
		}
	}
	e.Ding()
}

// searchKey takes a byte of an incremental search; done is false when it ends the search and is a key of its own.
func (e *Editor) searchKey(b byte) (Event, bool) {
	s := &e.search
	fn, _ := e.lookup(string([]byte{b}))
	switch {
	case fn == "reverse-search-history" || fn == "forward-search-history":
		if s.forth = fn == "forward-search-history"; len(s.pattern) == 0 {
			s.pattern = []rune(s.last)
			e.findLine(e.at)
		} else {
			e.findLine(e.at + map[bool]int{false: -1, true: 1}[s.forth])
		}
	case b == 7: // abort
		s.on = false
		e.at, e.buf, e.point = s.from, s.saved, s.point
		e.Ding()
	case fn == "backward-delete-char":
		if len(s.pattern) > 0 {
			s.pattern = s.pattern[:len(s.pattern)-1]
			s.failed = false
			e.findLine(s.from - 1)
		}
	case fn == "unix-line-discard":
		s.pattern = nil
	case b >= 0x20 && b != 0x7f:
		if r, ok := e.rune(b); ok {
			s.pattern = append(s.pattern, r)
			e.findLine(e.at)
		}
	default:
		s.on = false
		e.redraw()
		return None, false
	}
	if s.on {
		s.last = string(s.pattern)
	}
	e.redraw()
	return None, true
}

// findLine shows the first line from a place on that has the pattern.
func (e *Editor) findLine(from int) {
	s := &e.search
	step := -1
	if s.forth {
		step = 1
	}
	text := string(s.pattern)
	for i := from; text != "" && i >= 0 && i <= len(e.cfg.Lines); i += step {
		if k := strings.LastIndex(e.line(i), text); k >= 0 {
			e.visit(i)
			e.point = len([]rune(e.line(i)[:k]))
			s.failed = false
			return
		}
	}
	if s.failed = text != ""; s.failed {
		e.Ding()
	}
}
