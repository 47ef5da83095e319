package ed

import (
	"strings"
)

// change are the commands that change the buffer.
func (e *editor) change(c *cursor, ch byte, a, b, count int) {
	needs := func() {
		if a < 1 || b < 1 {
			e.fail("Invalid address")
		}
	}
	how := ""
	switch ch {
	case 'a', 'i':
		how = e.suffix(c)
		e.save()
		if ch == 'i' {
			b = max(b-1, 0)
		}
		if list := e.text(); len(list) > 0 {
			e.insert(b, list)
		} else if e.current = b; ch == 'i' {
			e.current = min(b+1, len(e.lines))
		}
	case 'c':
		a, b = max(a, 1), max(b, 1)
		how = e.suffix(c)
		e.save()
		list := e.text()
		if len(e.lines) > 0 {
			e.cut = e.remove(a, b)
		}
		e.insert(a-1, list)
		if len(list) == 0 {
			e.current = min(a, len(e.lines))
		}
	case 'd':
		needs()
		how = e.suffix(c)
		e.save()
		e.cut = e.remove(a, b)
		e.current = min(a, len(e.lines))
	case 'j':
		if count == 0 {
			a, b = e.current, e.current+1
		}
		if needs(); b > len(e.lines) {
			e.fail("Invalid address")
		}
		how = e.suffix(c)
		if a < b {
			e.save()
			var joined strings.Builder
			e.cut = e.remove(a, b)
			for _, l := range e.cut {
				joined.WriteString(l.text)
			}
			e.insert(a-1, []*line{{joined.String()}})
		}
	case 'y':
		needs()
		how = e.suffix(c)
		e.cut = append([]*line(nil), e.lines[a-1:b]...)
	case 'x':
		how = e.suffix(c)
		if len(e.cut) == 0 {
			e.fail("Nothing to put")
		}
		e.save()
		e.insert(b, copies(e.cut))
	case 'm', 't':
		needs()
		how = e.transfer(c, ch, a, b)
	case 's', '&':
		how = e.substitution(c, a, b, ch == '&')
	case 'k':
		mark := c.peek()
		c.i++
		if mark < 'a' || mark > 'z' {
			e.fail("Invalid mark character")
		}
		if b < 1 {
			e.fail("Invalid address")
		}
		how = e.suffix(c)
		e.marks[mark] = e.lines[b-1]
	case 'u':
		if count > 0 {
			e.fail("Unexpected address")
		}
		how = e.suffix(c)
		if e.undo == nil {
			e.fail("Nothing to undo")
		}
		old := e.undo
		e.undo = &state{e.lines, e.current}
		e.lines, e.current, e.modified = old.lines, old.current, true
	}
	if how != "" && len(e.lines) > 0 {
		e.show(e.current, e.current, how)
	}
}

func copies(list []*line) []*line {
	out := make([]*line, len(list))
	for i, l := range list {
		out[i] = &line{l.text}
	}
	return out
}

// transfer is m and t.
func (e *editor) transfer(c *cursor, ch byte, a, b int) string {
	to, ok := e.address(c)
	if !ok {
		to = e.current
	}
	if to < 0 || to > len(e.lines) {
		e.fail("Invalid address")
	}
	how := e.suffix(c)
	if ch == 't' {
		e.save()
		e.insert(to, copies(e.lines[a-1:b]))
		return how
	}
	if to >= a && to < b {
		e.fail("Invalid destination")
	}
	e.save()
	moved := e.remove(a, b)
	if to >= b {
		to -= len(moved)
	}
	e.insert(to, moved)
	return how
}

// substitution reads an s command and runs it.
func (e *editor) substitution(c *cursor, a, b int, again bool) string {
	if a < 1 || b < 1 {
		e.fail("Invalid address")
	}
	fold := false
	delim := c.peek()
	pattern := ""
	if again || delim == 0 || strings.IndexByte("gprln123456789", delim) >= 0 {
		if !e.substituted || e.last == nil {
			e.fail("No previous substitution")
		}
		if rest := c.rest(); rest != "" && !again {
			e.flags = rest
		}
	} else {
		if delim == ' ' || delim == '\n' {
			e.fail("Invalid pattern delimiter")
		}
		c.i++
		text, closed := c.pattern(delim)
		pattern = text
		e.flags = ""
		e.replacement = e.readReplacement(c, delim)
		if flags := c.rest(); closed {
			e.flags = flags
		}
		if strings.HasSuffix(c.s, string(rune(delim))) && e.flags == "" || e.flags != "" {
			fold = strings.Contains(e.flags, "I")
		} else if !strings.HasSuffix(c.s, string(rune(delim))) {
			e.flags = "p" // the last delimiter may be left out
		}
	}
	nth, global, how := 0, false, ""
	for _, f := range e.flags {
		switch {
		case f == 'g':
			global = true
		case f >= '0' && f <= '9':
			nth = nth*10 + int(f-'0')
		case f == 'p' || f == 'l' || f == 'n':
			how += string(f)
		case f == 'I' || f == 'r':
		default:
			e.fail("Invalid command suffix")
		}
		if nth > 1<<20 {
			e.fail("Number out of range")
		}
	}
	re := e.compile(pattern, fold)
	e.substituted = true
	e.substitute(re, a, b, max(nth, 1), global)
	return how
}

// readReplacement reads up to the delimiter; a backslash at the end of a line continues it.
func (e *editor) readReplacement(c *cursor, delim byte) string {
	var b strings.Builder
	for {
		ch := c.peek()
		switch {
		case c.i >= len(c.s):
			return e.sameReplacement(b.String())
		case ch == delim:
			c.i++
			return e.sameReplacement(b.String())
		case ch == '\\' && c.i+1 >= len(c.s):
			next, ok := e.next()
			if !ok {
				return b.String()
			}
			b.WriteString("\\\n")
			c.s, c.i = next, 0
			continue
		case ch == '\\':
			if c.s[c.i+1] == delim && delim != '&' {
				c.i++
			} else {
				b.WriteByte('\\')
				c.i++
			}
			b.WriteByte(c.s[c.i])
		default:
			b.WriteByte(ch)
		}
		c.i++
	}
}

// sameReplacement: a lone % stands for the last one.
func (e *editor) sameReplacement(s string) string {
	if s == "%" {
		if !e.substituted {
			e.fail("No previous substitution")
		}
		return e.replacement
	}
	return s
}

// expand fills matches into the replacement.
func (e *editor) expand(text string, m []int) string {
	var b strings.Builder
	r := e.replacement
	group := func(n int) {
		if 2*n+1 < len(m) && m[2*n] >= 0 {
			b.WriteString(text[m[2*n]:m[2*n+1]])
		}
	}
	for i := 0; i < len(r); i++ {
		switch {
		case r[i] == '&':
			group(0)
		case r[i] == '\\' && i+1 < len(r):
			if i++; r[i] >= '0' && r[i] <= '9' {
				group(int(r[i] - '0'))
			} else if r[i] == 'n' {
				b.WriteByte('\n')
			} else {
				b.WriteByte(r[i])
			}
		default:
			b.WriteByte(r[i])
		}
	}
	return b.String()
}

// substitute replaces in lines a to b: the nth match, or all from there on.
func (e *editor) substitute(re matcher, a, b, nth int, global bool) {
	saved := false
	last := 0
	for n := a; n <= b; n++ {
		if e.t.Step(1) != nil {
			e.t.Check()
		}
		text := e.lines[n-1].text
		list, err := re.FindAll([]byte(text), -1)
		if err != nil || len(list) < nth {
			continue
		}
		var out strings.Builder
		at := 0
		for i, m := range list {
			if i+1 < nth || i+1 > nth && !global {
				continue
			}
			out.WriteString(text[at:m[0]] + e.expand(text, m))
			at = m[1]
			if out.Len() > maxBuffer {
				e.fail("Out of memory")
			}
		}
		out.WriteString(text[at:])
		if !saved {
			e.save()
			saved = true
		}
		var list2 []*line
		for _, part := range strings.Split(out.String(), "\n") {
			list2 = append(list2, &line{part})
		}
		e.remove(n, n)
		e.insert(n-1, list2)
		extra := len(list2) - 1
		n, b = n+extra, b+extra
		last = n
	}
	if last == 0 {
		if e.global {
			return
		}
		e.fail("No match")
	}
	e.current = last
}

// matcher is what substitute needs of a regular expression.
type matcher interface {
	FindAll(b []byte, n int) ([][]int, error)
}

// globally runs a list of commands for each line that matches, or doesn't.
func (e *editor) globally(c *cursor, ch byte, a, b int) {
	if e.global {
		e.fail("Cannot nest global commands")
	}
	delim := c.peek()
	if delim == 0 || delim == ' ' {
		e.fail("Invalid pattern delimiter")
	}
	c.i++
	text, _ := c.pattern(delim)
	re := e.compile(text, false)
	if c.peek() == 'I' {
		c.i++
		re = e.compile(text, true)
	}
	commands := e.list(c)
	var hits []*line
	for n := max(a, 1); n <= b; n++ {
		if e.match(re, n) == (ch == 'g' || ch == 'G') {
			hits = append(hits, e.lines[n-1])
		}
	}
	if len(hits) == 0 {
		return
	}
	interactive := ch == 'G' || ch == 'V'
	previous := []string(nil)
	e.undo = nil
	e.save()
	keep := e.undo
	for _, l := range hits {
		n := e.find(l)
		if n == 0 {
			continue
		}
		e.t.Check()
		e.current = n
		if interactive {
			e.show(n, n, "p")
			s, ok := e.next()
			if !ok {
				e.fail("Unexpected end-of-file")
			}
			switch s {
			case "":
				continue
			case "&":
				commands = previous
			default:
				commands = e.list(&cursor{s: s})
			}
			previous = commands
		}
		e.global = true
		e.pushed = append([]string(nil), commands...)
		for len(e.pushed) > 0 {
			s, _ := e.next()
			e.exec(s)
		}
		e.global = false
		e.undo = keep
	}
}

// list reads a global command's list, which goes on after lines that end in a backslash.
func (e *editor) list(c *cursor) []string {
	s := c.rest()
	var lines []string
	for strings.HasSuffix(s, `\`) {
		lines = append(lines, s[:len(s)-1])
		// A substitution's line that ends so continues the replacement.
		if isSubstitution(lines[len(lines)-1]) {
			lines[len(lines)-1] = s
		}
		next, ok := e.next()
		if !ok {
			break
		}
		s = next
	}
	lines = append(lines, s)
	if len(lines) == 1 && lines[0] == "" {
		lines[0] = "p"
	}
	return lines
}

// isSubstitution reports whether a line is an s command whose replacement isn't ended.
func isSubstitution(s string) bool {
	s = strings.TrimLeft(s, "0123456789.,;$+- ")
	return len(s) > 1 && s[0] == 's' && strings.Count(s[2:], s[1:2]) < 2
}
