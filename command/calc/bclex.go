package calc

import (
	"fmt"
	"strings"
)

// tokKind is a kind of token: a character of itself, or one of those below.
type tokKind int

const (
	tokEOF tokKind = iota + 256
	tokNumber
	tokString
	tokName
	tokKeyword
	tokAssign // =, += and the like
	tokRel    // ==, <= and the like
	tokIncr   // ++ and --
	tokAnd
	tokOr
)

type token struct {
	kind tokKind
	text string
}

var keywords = map[string]bool{"define": true, "auto": true, "if": true, "else": true, "while": true, "for": true, "break": true, "continue": true, "return": true, "quit": true, "halt": true, "print": true, "length": true, "scale": true, "sqrt": true, "read": true,
	"ibase": true, "obase": true, "last": true, "void": true, "limits": true, "warranty": true, "random": true}

// lexer takes lines of the inputs apart.
type lexer struct {
	next func() (line string, ok bool) // with its newline, if it has one
	line string
	pos  int
	done bool
	no   int    // the line's number, for messages
	tok  token  // the current token
	name string // of the input
	bad  func(format string, args ...any)
}

// fill gets the next line; false at the end.
func (l *lexer) fill() bool {
	if l.done {
		return false
	}
	line, ok := l.next()
	if !ok {
		l.done = true
		l.line, l.pos = "", 0
		return false
	}
	l.line, l.pos = line, 0
	return true
}

// peek returns the next byte, 0 at the end of all.
func (l *lexer) peek() byte {
	for l.pos >= len(l.line) {
		if !l.fill() {
			return 0
		}
	}
	return l.line[l.pos]
}

// advance reads the next token into tok.
func (l *lexer) advance() {
	for {
		c := l.peek()
		switch {
		case l.done:
			l.tok = token{kind: tokEOF}
			return
		case c == ' ' || c == '\t' || c == '\r':
			l.pos++
		case c == '\\' && strings.HasPrefix(l.line[l.pos:], "\\\n"):
			l.pos += 2
			l.no++
		case c == '#':
			if l.pos = len(l.line); strings.HasSuffix(l.line, "\n") {
				l.pos--
			}
		case c == '/' && strings.HasPrefix(l.line[l.pos:], "/*"):
			l.pos += 2
			l.comment()
		default:
			l.token(c)
			return
		}
	}
}

func (l *lexer) comment() {
	for {
		c := l.peek()
		if l.done {
			l.bad("EOF encountered in a comment.")
			return
		}
		if c == '\n' {
			l.no++
		}
		if c == '*' && strings.HasPrefix(l.line[l.pos:], "*/") {
			l.pos += 2
			return
		}
		l.pos++
	}
}

// token reads one that begins with c.
func (l *lexer) token(c byte) {
	rest := l.line[l.pos:]
	take := func(kind tokKind, n int) {
		l.tok = token{kind, rest[:n]}
		l.pos += n
	}
	switch {
	case c == '\n':
		l.no++
		take('\n', 1)
	case c == '"':
		l.str()
	case c >= 'a' && c <= 'z':
		n := 1
		for n < len(rest) && (rest[n] >= 'a' && rest[n] <= 'z' || rest[n] >= '0' && rest[n] <= '9' || rest[n] == '_') {
			n++
		}
		if take(tokName, n); keywords[l.tok.text] {
			l.tok.kind = tokKeyword
		}
	case c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c == '.' && len(rest) > 1 && (rest[1] >= '0' && rest[1] <= '9' || rest[1] >= 'A' && rest[1] <= 'Z'):
		l.number()
	case c == '.':
		take(tokKeyword, 1)
		l.tok.text = "last"
	case strings.HasPrefix(rest, "&&"):
		take(tokAnd, 2)
	case strings.HasPrefix(rest, "||"):
		take(tokOr, 2)
	case strings.HasPrefix(rest, "++"), strings.HasPrefix(rest, "--"):
		take(tokIncr, 2)
	case strings.HasPrefix(rest, "=="), strings.HasPrefix(rest, "<="), strings.HasPrefix(rest, ">="), strings.HasPrefix(rest, "!="):
		take(tokRel, 2)
	case c == '<' || c == '>':
		take(tokRel, 1)
	case len(rest) > 1 && rest[1] == '=' && strings.IndexByte("+-*/%^", c) >= 0:
		take(tokAssign, 2)
	case c == '=':
		take(tokAssign, 1)
	case strings.IndexByte("+-*/%^()[]{},;!", c) >= 0:
		take(tokKind(c), 1)
	default:
		l.pos++
		text := string(rune(c))
		if c < ' ' || c >= 0x7f {
			text = fmt.Sprintf("\\%03o", c)
		}
		l.bad("illegal character: %s", text)
		l.advance()
	}
}

func (l *lexer) number() {
	var b strings.Builder
	point := false
	for {
		c := byte(0)
		if l.pos < len(l.line) {
			c = l.line[l.pos]
		}
		switch {
		case c >= '0' && c <= '9' || c >= 'A' && c <= 'Z':
		case c == '.' && !point:
			point = true
		case c == '\\' && strings.HasPrefix(l.line[l.pos:], "\\\n"):
			l.pos += 2
			l.no++
			l.peek()
			continue
		default:
			l.tok = token{tokNumber, b.String()}
			return
		}
		b.WriteByte(c)
		l.pos++
	}
}

func (l *lexer) str() {
	var b strings.Builder
	for l.pos++; ; l.pos++ {
		c := l.peek()
		if l.done {
			l.bad("illegal character: \"")
			l.tok = token{kind: tokEOF}
			return
		}
		if c == '"' {
			l.pos++
			l.tok = token{tokString, b.String()}
			return
		}
		if c == '\n' {
			l.no++
		}
		if b.Len() > maxDigits {
			l.bad("string too long")
			return
		}
		b.WriteByte(c)
	}
}
