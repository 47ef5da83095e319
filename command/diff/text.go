package diff

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// text is a file's content as lines, without their newlines.
type text struct {
	lines   [][]byte
	partial bool // the last line lacks its newline
}

func newText(b []byte) *text {
	t := &text{}
	if len(b) == 0 {
		return t
	}
	t.lines = make([][]byte, 0, bytes.Count(b, []byte("\n"))+1)
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			t.lines = append(t.lines, b)
			t.partial = true
			break
		}
		t.lines = append(t.lines, b[:i])
		b = b[i+1:]
	}
	return t
}

// complete reports whether line i ends with a newline.
func (t *text) complete(i int) bool { return !t.partial || i != len(t.lines)-1 }

// ignoring says what differences within lines don't count.
type ignoring struct {
	fold                        bool // -i
	all, change, trailing, tabs bool // -w, -b, -Z, -E
	tabSize                     int
	endings                     bool // a missing newline at the end is none either
}

func (g *ignoring) any() bool { return g.fold || g.all || g.change || g.trailing || g.tabs }

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// key is what is compared of a line.
func (g *ignoring) key(line []byte) string {
	if g.all {
		out := make([]byte, 0, len(line))
		for _, c := range line {
			if !isSpace(c) {
				out = append(out, c)
			}
		}
		line = out
	} else if g.change || g.trailing || g.tabs {
		line = g.spaces(line)
	}
	if g.fold {
		return strings.Map(func(r rune) rune { return unicode.ToLower(r) }, string(line))
	}
	return string(line)
}

func (g *ignoring) spaces(line []byte) []byte {
	if g.change || g.trailing {
		line = bytes.TrimRightFunc(line, func(r rune) bool { return r < utf8.RuneSelf && isSpace(byte(r)) })
	}
	out := make([]byte, 0, len(line))
	column := 0
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case g.change && isSpace(c):
			for i+1 < len(line) && isSpace(line[i+1]) {
				i++
			}
			out = append(out, ' ')
		case g.tabs && c == '\t':
			n := g.tabSize - column%g.tabSize
			out = append(out, strings.Repeat(" ", n)...)
			column += n
		default:
			out = append(out, c)
			if column++; c == '\b' {
				column = max(0, column-2)
			}
		}
	}
	return out
}

// change replaces lines of the first text by lines of the second: deleted lines from a, inserted ones from b.
type change struct {
	a, b              int
	deleted, inserted int
	ignore            bool // -B or -I: it doesn't count
}

// script compares two texts. horizon is how many equal lines before and after the differences take part.
func script(x, y *text, g *ignoring, minimal bool, horizon int, check func()) []change {
	classes := map[string]int{}
	classOf := func(t *text, i int) int {
		k := ""
		if g.any() {
			k = g.key(t.lines[i])
		} else {
			k = string(t.lines[i])
		}
		if !t.complete(i) && !g.endings {
			k += "\n\\"
		}
		n := classes[k]
		if n == 0 {
			n = len(classes) + 1
			classes[k] = n
		}
		return n
	}
	same := func(i, j int) bool {
		return bytes.Equal(x.lines[i], y.lines[j]) && x.complete(i) == y.complete(j)
	}
	first := 0
	for first < len(x.lines) && first < len(y.lines) && same(first, first) {
		first++
	}
	if first == len(x.lines) && first == len(y.lines) {
		return nil
	}
	endX, endY := len(x.lines), len(y.lines)
	for endX > first && endY > first && same(endX-1, endY-1) {
		endX--
		endY--
	}
	first = max(0, first-horizon)
	endX, endY = min(endX+horizon, len(x.lines)), min(endY+horizon, len(y.lines))
	a, b := &side{class: make([]int, endX-first)}, &side{class: make([]int, endY-first)}
	for i := range a.class {
		a.class[i] = classOf(x, first+i)
	}
	for i := range b.class {
		b.class[i] = classOf(y, first+i)
	}
	compare(a, b, minimal, check)
	return build(a, b, first)
}

// build makes the list of changes out of the marks.
func build(a, b *side, offset int) []change {
	var out []change
	i, j := 0, 0
	for i < len(a.class) || j < len(b.class) {
		if !a.changed[i+1] && !b.changed[j+1] {
			i++
			j++
			continue
		}
		c := change{a: i + offset, b: j + offset}
		for a.changed[i+1] {
			i++
		}
		for b.changed[j+1] {
			j++
		}
		c.deleted, c.inserted = i+offset-c.a, j+offset-c.b
		out = append(out, c)
	}
	return out
}
