package ed

import (
	"fmt"
	"strings"

	"agentrun.dev/proc"
)

// cursor reads a command line.
type cursor struct {
	s string
	i int
}

func (c *cursor) peek() byte {
	if c.i < len(c.s) {
		return c.s[c.i]
	}
	return 0
}

func (c *cursor) blanks() {
	for c.i < len(c.s) && (c.s[c.i] == ' ' || c.s[c.i] == '\t') {
		c.i++
	}
}

func (c *cursor) rest() string {
	s := c.s[min(c.i, len(c.s)):]
	c.i = len(c.s)
	return s
}

// number reads digits; ok is false if there are none.
func (c *cursor) number() (n int, ok bool) {
	for c.i < len(c.s) && c.s[c.i] >= '0' && c.s[c.i] <= '9' {
		n, ok = min(n*10+int(c.s[c.i]-'0'), 1<<30), true
		c.i++
	}
	return n, ok
}

// pattern reads up to a delimiter, which it takes; inside of brackets there is none.
func (c *cursor) pattern(delim byte) (text string, closed bool) {
	var b strings.Builder
	for c.i < len(c.s) {
		ch := c.s[c.i]
		switch {
		case ch == delim:
			c.i++
			return b.String(), true
		case ch == '\\' && c.i+1 < len(c.s):
			if c.s[c.i+1] != delim || delim == '&' {
				b.WriteByte(ch)
			}
			c.i++
			b.WriteByte(c.s[c.i])
		case ch == '[':
			end := c.i + 1
			if end < len(c.s) && c.s[end] == '^' {
				end++
			}
			if end < len(c.s) && c.s[end] == ']' {
				end++
			}
			for end < len(c.s) && c.s[end] != ']' {
				end++
			}
			b.WriteString(c.s[c.i:min(end+1, len(c.s))])
			c.i = end
		default:
			b.WriteByte(ch)
		}
		c.i++
	}
	return b.String(), false
}

// address reads one address; ok is false if there is none.
func (e *editor) address(c *cursor) (n int, ok bool) {
	c.blanks()
	switch ch := c.peek(); {
	case ch == '.':
		c.i++
		n, ok = e.current, true
	case ch == '$':
		c.i++
		n, ok = len(e.lines), true
	case ch >= '0' && ch <= '9':
		n, ok = c.number()
	case ch == '\'':
		c.i++
		mark := c.peek()
		c.i++
		if mark < 'a' || mark > 'z' {
			e.fail("Invalid mark character")
		}
		n, ok = e.find(e.marks[mark]), true
		if n == 0 {
			e.fail("Invalid address")
		}
	case ch == '/' || ch == '?':
		c.i++
		text, _ := c.pattern(ch)
		n, ok = e.search(text, ch == '?'), true
	case ch == '+' || ch == '-' || ch == '^':
		n, ok = e.current, true
	default:
		return 0, false
	}
	for {
		c.blanks()
		ch := c.peek()
		sign := 0
		switch {
		case ch == '+':
			sign = 1
			c.i++
		case ch == '-' || ch == '^':
			sign = -1
			c.i++
		case ch >= '0' && ch <= '9':
			d, _ := c.number()
			n += d
			continue
		default:
			return n, ok
		}
		if d, has := c.number(); has {
			n += sign * d
		} else {
			n += sign
		}
	}
}

// find returns the number of a line, 0 if it isn't in the buffer any more.
func (e *editor) find(l *line) int {
	for i, x := range e.lines {
		if x == l && l != nil {
			return i + 1
		}
	}
	return 0
}

// search goes round the buffer, from the current line on.
func (e *editor) search(pattern string, back bool) int {
	re := e.compile(pattern, false)
	total := len(e.lines)
	for k := 1; k <= total; k++ {
		n := (e.current - 1 + k) % total
		if back {
			n = ((e.current-1-k)%total + total) % total
		}
		if e.match(re, n+1) {
			return n + 1
		}
	}
	e.fail("No match")
	return 0
}

// addresses reads those before a command: how many there were, and the last two.
func (e *editor) addresses(c *cursor) (a, b, count int) {
	saved := e.current
	defer func() { e.current = saved }()
	a, b = e.current, e.current
	n, ok := e.address(c)
	if ok {
		a, b, count = n, n, 1
	}
	for {
		c.blanks()
		ch := c.peek()
		if ch == '%' && count == 0 {
			ch = ','
		} else if ch != ',' && ch != ';' {
			break
		}
		c.i++
		first := b
		if count == 0 {
			if first = 1; ch == ';' {
				first = e.current
			}
		}
		if ch == ';' {
			e.current = first
			if first < 0 || first > len(e.lines) {
				e.fail("Invalid address")
			}
		}
		n, ok := e.address(c)
		switch {
		case ok:
			a, b = first, n
		case count == 0:
			a, b = min(first, len(e.lines)), len(e.lines)
		default:
			a, b = first, first
		}
		count = 2
	}
	if ch := c.peek(); a < 0 || b < 0 || b > len(e.lines) || a > len(e.lines) || (a > b && count == 2 && ch != 0) || a > b {
		e.fail("Invalid address")
	}
	if count == 1 {
		a = b
	}
	saved = e.current
	if strings.Contains(c.s[:c.i], ";") {
		return a, b, count
	}
	return a, b, count
}

// suffix reads the letters p, l and n after a command, which must end there.
func (e *editor) suffix(c *cursor) string {
	start := c.i
	for c.i < len(c.s) && strings.IndexByte("pln", c.s[c.i]) >= 0 {
		c.i++
	}
	if c.i < len(c.s) {
		e.fail("Invalid command suffix")
	}
	return c.s[start:]
}

// name reads a file's name after a command: the remembered one if there is none.
func (e *editor) name(c *cursor) string {
	if ch := c.peek(); ch != 0 && ch != ' ' && ch != '\t' {
		e.fail("Unexpected command suffix")
	}
	c.blanks()
	s := c.rest()
	if s == "" {
		if e.file == "" {
			e.fail("No current filename")
		}
		return e.file
	}
	if !strings.HasPrefix(s, "!") && e.file == "" {
		e.file = s
	}
	return s
}

// lose refuses to lose changes the first time.
func (e *editor) lose() {
	if e.modified && !e.warned {
		e.warned = true
		e.fail("Warning: buffer modified")
	}
}

// exec runs a command line; it returns whether to quit.
func (e *editor) exec(text string) bool {
	c := &cursor{s: text}
	a, b, count := e.addresses(c)
	c.blanks()
	ch := c.peek()
	c.i++
	needs := func() {
		if b < 1 || a < 1 {
			e.fail("Invalid address")
		}
	}
	none := func() {
		if count > 0 {
			e.fail("Unexpected address")
		}
	}
	switch ch {
	case 0:
		if count == 0 {
			if b = e.current; !e.global {
				b++
			}
		}
		if b < 1 {
			e.fail("Invalid address")
		}
		e.show(b, b, "p")
	case 'p', 'l', 'n':
		c.i--
		needs()
		how := e.suffix(c)
		e.show(a, b, how)
	case 'q', 'Q':
		none()
		e.suffix(c)
		if ch == 'q' {
			e.lose()
		}
		return true
	case 'a', 'i', 'c', 'd', 'j', 'y', 'x', 'm', 't', 's', '&', 'k', 'u':
		e.change(c, ch, a, b, count)
	case 'g', 'v', 'G', 'V':
		if count == 0 {
			a, b = min(1, len(e.lines)), len(e.lines)
		}
		e.globally(c, ch, a, b)
	case 'e', 'E', 'r', 'w', 'W', 'f':
		return e.files(c, ch, a, b, count)
	default:
		e.others(c, ch, a, b, count)
	}
	return false
}

// files are the commands about files.
func (e *editor) files(c *cursor, ch byte, a, b, count int) bool {
	switch ch {
	case 'f':
		if count > 0 {
			e.fail("Unexpected address")
		}
		if name := strings.TrimSpace(e.rawName(c)); name != "" {
			if strings.HasPrefix(name, "!") {
				e.fail("Invalid redirection")
			}
			e.file = name
		}
		if e.file == "" {
			e.fail("No current filename")
		}
		fmt.Fprintln(e.t.Out, e.file)
	case 'e', 'E':
		if count > 0 {
			e.fail("Unexpected address")
		}
		name := e.rawName(c)
		if ch == 'e' {
			e.lose()
		}
		if name == "" {
			name = e.name(&cursor{})
		}
		e.lines, e.current, e.undo, e.size, e.marks = nil, 0, nil, 0, map[byte]*line{}
		if !strings.HasPrefix(name, "!") {
			e.file = name
		}
		e.read(name, 0)
		e.modified = false
	case 'r':
		if count == 0 {
			b = len(e.lines)
		}
		name := e.name(c)
		e.save()
		before := len(e.lines)
		if e.read(name, b); len(e.lines) == before {
			e.current = b
		}
	default:
		quit := false
		if q := c.peek(); q == 'q' || q == 'Q' {
			quit = true
			c.i++
		}
		if count == 0 {
			a, b = min(1, len(e.lines)), len(e.lines)
		} else if a < 1 {
			e.fail("Invalid address")
		}
		e.write(e.name(c), a, b, ch == 'W')
		return quit
	}
	return false
}

func (e *editor) rawName(c *cursor) string {
	if ch := c.peek(); ch != 0 && ch != ' ' && ch != '\t' {
		e.fail("Unexpected command suffix")
	}
	c.blanks()
	return c.rest()
}

// others are the commands that change nothing.
func (e *editor) others(c *cursor, ch byte, a, b, count int) {
	none := func() {
		if count > 0 {
			e.fail("Unexpected address")
		}
		e.suffix(c)
	}
	switch ch {
	case '=':
		if count == 0 {
			b = len(e.lines)
		}
		how := e.suffix(c)
		fmt.Fprintln(e.t.Out, b)
		if how != "" {
			e.show(b, b, how)
		}
	case 'h':
		none()
		if e.message != "" {
			e.t.Out.WriteString(e.message + "\n")
		}
	case 'H':
		none()
		if e.verbose = !e.verbose; e.verbose && e.message != "" {
			e.t.Out.WriteString(e.message + "\n")
		}
	case 'P':
		none()
		e.prompted = !e.prompted
	case 'z':
		if count == 0 {
			b = min(e.current+1, len(e.lines))
			if e.current+1 > len(e.lines) {
				e.fail("Invalid address")
			}
		}
		if n, ok := c.number(); ok {
			e.scroll = max(n, 1)
		}
		how := e.suffix(c)
		e.show(max(b, 1), min(max(b, 1)+e.scroll-1, len(e.lines)), "p"+how)
	case '!':
		e.shellCommand(c, count)
	case '#':
	default:
		e.fail("Unknown command")
	}
}

func (e *editor) shellCommand(c *cursor, count int) {
	if count > 0 {
		e.fail("Unexpected address")
	}
	e.allowShell()
	cmd := c.rest()
	shown := false
	if strings.HasPrefix(cmd, "!") {
		if e.shell == "" {
			e.fail("No previous command")
		}
		cmd, shown = e.shell+cmd[1:], true
	}
	var b strings.Builder
	for i := 0; i < len(cmd); i++ {
		switch {
		case cmd[i] == '\\' && i+1 < len(cmd) && cmd[i+1] == '%':
			i++
			b.WriteByte('%')
		case cmd[i] == '%':
			if e.file == "" {
				e.fail("No current filename")
			}
			b.WriteString(e.file)
			shown = true
		default:
			b.WriteByte(cmd[i])
		}
	}
	e.shell = b.String()
	if shown {
		e.t.Out.WriteString(e.shell + "\n")
	}
	e.t.Out.Flush()
	if child, err := e.t.Spawn(proc.Spawn{Args: []string{"sh", "-c", e.shell}}); err == nil {
		e.t.WaitQuiet(child)
	}
	if !e.script {
		e.t.Out.WriteString("!\n")
	}
}
