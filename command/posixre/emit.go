package posixre

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// emitter writes a tree in Go's syntax or in that of regexp2 (which is .NET's).
type emitter struct {
	b       strings.Builder
	dotnet  bool
	newline bool // ^ and $ match at lines
	noNL    bool // . and negated sets don't match a newline
	fold    bool
	notBOL  bool
	shift   int // groups around the expression, which back-references must count
	// complex is set when Go's syntax can't say it: back-references, and word edges next to what may be a word
	// character or not.
	complex bool
}

func (e *emitter) node(n *node) {
	switch n.op {
	case opEmpty:
		e.b.WriteString("(?:)")
	case opRune:
		e.rune(n.r)
	case opAny:
		if e.noNL {
			e.b.WriteString(`[^\n]`)
		} else {
			e.b.WriteString("(?s:.)")
		}
	case opSet:
		e.set(n.set)
	case opConcat:
		e.concat(n)
	case opAlt:
		e.b.WriteString("(?:")
		for i, s := range n.sub {
			if i > 0 {
				e.b.WriteByte('|')
			}
			e.node(s)
		}
		e.b.WriteByte(')')
	case opGroup:
		e.b.WriteByte('(')
		e.node(n.sub[0])
		e.b.WriteByte(')')
	case opRepeat:
		e.repeat(n)
	case opBackref:
		e.complex = true
		fmt.Fprintf(&e.b, `(?:\%d)`, n.n+e.shift)
	default:
		e.assertion(n)
	}
}

func (e *emitter) assertion(n *node) {
	switch n.op {
	case opBOL, opBegin:
		switch {
		case e.notBOL:
			e.b.WriteString(never(e.dotnet))
		case n.op == opBOL && e.newline:
			e.b.WriteString("(?m:^)")
		default:
			e.b.WriteString(`\A`)
		}
	case opEOL:
		if e.newline {
			e.b.WriteString("(?m:$)")
		} else {
			e.b.WriteString(`\z`)
		}
	case opEnd:
		e.b.WriteString(`\z`)
	case opWordB:
		e.b.WriteString(`\b`)
	case opNotWordB:
		e.b.WriteString(`\B`)
	case opWordBeg:
		e.complex = true
		e.b.WriteString(`\b(?=\w)`)
	case opWordEnd:
		e.complex = true
		e.b.WriteString(`\b(?<=\w)`)
	}
}

// concat writes a sequence. A word edge next to an item that certainly begins (or ends) with a word character, or with
// none, is a plain \b, which Go has too.
func (e *emitter) concat(n *node) {
	for i, s := range n.sub {
		switch {
		case s.op == opWordBeg && i+1 < len(n.sub) && edge(n.sub[i+1], false) == wordYes,
			s.op == opWordEnd && i > 0 && edge(n.sub[i-1], true) == wordYes,
			// an edge after a character that isn't of a word begins one, and the other way round
			s.op == opWordBeg && i > 0 && edge(n.sub[i-1], true) == wordNo,
			s.op == opWordEnd && i+1 < len(n.sub) && edge(n.sub[i+1], false) == wordNo:
			e.b.WriteString(`\b`)
		default:
			e.node(s)
		}
	}
	if len(n.sub) == 0 {
		e.b.WriteString("(?:)")
	}
}

type wordness uint8

const (
	wordMaybe wordness = iota
	wordYes
	wordNo
)

// edge tells whether an item's first (or last) character is of a word.
func edge(n *node, last bool) wordness {
	switch n.op {
	case opRune:
		if n.r >= 0x80 {
			return wordMaybe
		}
		if asciiClass("word", n.r) {
			return wordYes
		}
		return wordNo
	case opSet:
		all, none := n.set.wordness()
		for _, c := range n.set.classes {
			if c == "word" || c == "alpha" || c == "alnum" || c == "upper" || c == "lower" {
				return wordMaybe // letters beyond ASCII, which \b doesn't know
			}
		}
		switch {
		case all && !none:
			return wordYes
		case none && !all:
			return wordNo
		}
	case opConcat:
		if len(n.sub) > 0 {
			at := 0
			if last {
				at = len(n.sub) - 1
			}
			return edge(n.sub[at], last)
		}
	case opGroup:
		return edge(n.sub[0], last)
	case opAlt:
		w := edge(n.sub[0], last)
		for _, s := range n.sub[1:] {
			if edge(s, last) != w {
				return wordMaybe
			}
		}
		return w
	case opRepeat:
		if n.min > 0 {
			return edge(n.sub[0], last)
		}
	}
	return wordMaybe
}

func (e *emitter) repeat(n *node) {
	s := n.sub[0]
	switch s.op {
	case opRune, opAny, opSet, opGroup:
		e.node(s)
	default:
		e.b.WriteString("(?:")
		e.node(s)
		e.b.WriteByte(')')
	}
	switch {
	case n.min == 0 && n.max < 0:
		e.b.WriteByte('*')
	case n.min == 1 && n.max < 0:
		e.b.WriteByte('+')
	case n.min == 0 && n.max == 1:
		e.b.WriteByte('?')
	case n.max < 0:
		fmt.Fprintf(&e.b, "{%d,}", n.min)
	case n.max == n.min:
		fmt.Fprintf(&e.b, "{%d}", n.min)
	default:
		fmt.Fprintf(&e.b, "{%d,%d}", n.min, n.max)
	}
	if n.min > 1000 || n.max > 1000 {
		e.complex = true // beyond what Go's engine takes
	}
}

func (e *emitter) rune(r rune) {
	switch {
	case r >= invalidByte:
		e.b.WriteString("\uFFFD") // what both engines read an invalid byte as
	case r < utf8.RuneSelf:
		e.b.WriteString(regexp.QuoteMeta(string(r)))
	default:
		e.b.WriteRune(r)
	}
}

func (e *emitter) set(s *set) {
	// A set that holds one character is that character.
	if len(s.ranges) == 2 && s.ranges[0] == s.ranges[1] && len(s.classes) == 0 && !s.negated {
		e.rune(s.ranges[0])
		return
	}
	e.b.WriteByte('[')
	if s.negated {
		e.b.WriteByte('^')
		if e.noNL {
			e.b.WriteString(`\n`)
		}
	}
	for i := 0; i < len(s.ranges); i += 2 {
		e.setRune(s.ranges[i])
		if s.ranges[i+1] != s.ranges[i] {
			e.b.WriteByte('-')
			e.setRune(s.ranges[i+1])
		}
	}
	for _, c := range s.classes {
		switch {
		case e.fold && (c == "upper" || c == "lower"):
			e.class("alpha")
		default:
			e.class(c)
		}
	}
	e.b.WriteByte(']')
}

func (e *emitter) class(name string) {
	body := classes[name]
	if e.dotnet {
		body = dotnetEscapes.Replace(body)
	}
	e.b.WriteString(body)
}

// dotnetEscapes turns \x{hhhh} into \uhhhh for the classes above.
var dotnetEscapes = strings.NewReplacer(`\x{1680}`, `\u1680`, `\x{2000}`, `\u2000`, `\x{2006}`, `\u2006`, `\x{2008}`, `\u2008`,
	`\x{200a}`, `\u200a`, `\x{2028}`, `\u2028`, `\x{2029}`, `\u2029`, `\x{205f}`, `\u205f`, `\x{3000}`, `\u3000`, `\x{9f}`, `\x9f`)

func (e *emitter) setRune(r rune) {
	switch r {
	case '\\', ']', '[', '^', '-', '&', '~':
		e.b.WriteByte('\\')
		e.b.WriteRune(r)
	case '\n':
		e.b.WriteString(`\n`)
	default:
		e.b.WriteRune(r)
	}
}

// never is an expression that matches nothing.
func never(dotnet bool) string {
	if dotnet {
		return "(?!)"
	}
	return `[^\x00-\x{10FFFF}]`
}
