package awk

import (
	"fmt"
	"strconv"
	"strings"
)

// kind is the kind of a token.
type kind uint8

const (
	tEOF kind = iota
	tNewline
	tNumber
	tString
	tRegex
	tName
	tFunc    // a name right before a parenthesis
	tBuiltin // a built-in function
	tKeyword
	tOp
)

type token struct {
	kind kind
	text string
	num  float64
	line int
}

var keywords = map[string]bool{"BEGIN": true, "END": true, "function": true, "func": true, "if": true, "else": true, "while": true, "for": true,
	"do": true, "break": true, "continue": true, "next": true, "nextfile": true, "exit": true, "return": true, "delete": true, "in": true,
	"getline": true, "print": true, "printf": true, "switch": true, "case": true, "default": true}

var builtins = map[string]bool{"length": true, "substr": true, "index": true, "split": true, "sub": true, "gsub": true, "match": true,
	"sprintf": true, "sin": true, "cos": true, "atan2": true, "exp": true, "log": true, "sqrt": true, "int": true, "rand": true, "srand": true,
	"tolower": true, "toupper": true, "system": true, "close": true, "fflush": true, "gensub": true, "strftime": true, "systime": true,
	"mktime": true, "and": true, "or": true, "xor": true, "lshift": true, "rshift": true, "compl": true, "strtonum": true, "asort": true, "asorti": true,
	"isarray": true, "typeof": true, "patsplit": true}

// syntaxError carries a message up to Compile.
type syntaxError struct {
	line int
	text string
}

func (e *syntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.text) }

// lexer splits a program into tokens. Whether a slash begins a regular expression depends on the token before it.
type lexer struct {
	src  string
	pos  int
	line int
	last token
}

func (l *lexer) fail(format string, args ...any) {
	panic(&syntaxError{l.line, fmt.Sprintf(format, args...)})
}

// regexAllowed reports whether a slash here begins a regular expression.
func (l *lexer) regexAllowed() bool {
	switch l.last.kind {
	case tNumber, tString, tRegex, tName, tBuiltin:
		return false
	case tOp:
		return !(l.last.text == ")" || l.last.text == "]" || l.last.text == "$" || l.last.text == "++" || l.last.text == "--")
	case tKeyword:
		return l.last.text != "getline"
	}
	return true
}

func (l *lexer) next() token {
	t := l.scan()
	l.last = t
	return t
}

func (l *lexer) scan() token {
	for l.pos < len(l.src) {
		c := l.src[l.pos]
		switch {
		case c == ' ' || c == '\t' || c == '\r':
			l.pos++
		case c == '\\' && strings.HasPrefix(l.src[l.pos:], "\\\n"):
			l.pos += 2
			l.line++
		case c == '\\' && strings.HasPrefix(l.src[l.pos:], "\\\r\n"):
			l.pos += 3
			l.line++
		case c == '#':
			for l.pos < len(l.src) && l.src[l.pos] != '\n' {
				l.pos++
			}
		default:
			return l.token(c)
		}
	}
	return token{kind: tEOF, line: l.line}
}

func isLetter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

func (l *lexer) token(c byte) token {
	start := l.pos
	t := token{line: l.line}
	switch {
	case c == '\n':
		l.pos++
		l.line++
		t.kind = tNewline
		return t
	case isDigit(c) || c == '.' && l.pos+1 < len(l.src) && isDigit(l.src[l.pos+1]):
		n, size := scanNumber(l.src[l.pos:])
		if strings.HasPrefix(l.src[l.pos:], "0x") || strings.HasPrefix(l.src[l.pos:], "0X") {
			end := l.pos + 2
			for end < len(l.src) && strings.IndexByte("0123456789abcdefABCDEF", l.src[end]) >= 0 {
				end++
			}
			if v, err := strconv.ParseUint(l.src[l.pos+2:end], 16, 64); err == nil {
				n, size = float64(v), end-l.pos
			}
		}
		l.pos += size
		t.kind, t.num, t.text = tNumber, n, l.src[start:l.pos]
		return t
	case isLetter(c):
		for l.pos < len(l.src) && (isLetter(l.src[l.pos]) || isDigit(l.src[l.pos])) {
			l.pos++
		}
		t.text = l.src[start:l.pos]
		switch {
		case keywords[t.text]:
			t.kind = tKeyword
			if t.text == "func" {
				t.text = "function"
			}
		case builtins[t.text]:
			t.kind = tBuiltin
		case l.pos < len(l.src) && l.src[l.pos] == '(':
			t.kind = tFunc
		default:
			t.kind = tName
		}
		return t
	case c == '"':
		t.kind, t.text = tString, l.str()
		return t
	case c == '/' && l.regexAllowed():
		t.kind, t.text = tRegex, l.regex()
		return t
	}
	for _, op := range []string{"**=", "**", "&&", "||", "++", "--", "+=", "-=", "*=", "/=", "%=", "^=", "==", "!=", "<=", ">=", ">>", "!~", "|&"} {
		if strings.HasPrefix(l.src[l.pos:], op) {
			l.pos += len(op)
			t.kind, t.text = tOp, strings.Replace(op, "**", "^", 1)
			return t
		}
	}
	if strings.IndexByte("+-*/%^!<>|?:~$=(){}[];,&", c) < 0 {
		l.fail("unexpected character '%c'", c)
	}
	l.pos++
	t.kind, t.text = tOp, string(c)
	return t
}

// str reads a string literal.
func (l *lexer) str() string {
	var b strings.Builder
	l.pos++
	for {
		if l.pos >= len(l.src) || l.src[l.pos] == '\n' {
			l.fail("unterminated string")
		}
		c := l.src[l.pos]
		l.pos++
		if c == '"' {
			return b.String()
		}
		if c != '\\' || l.pos >= len(l.src) {
			b.WriteByte(c)
			continue
		}
		if l.src[l.pos] == '\n' {
			l.pos++
			l.line++
			continue
		}
		n := escape(&b, l.src[l.pos:])
		l.pos += n
	}
}

// escape writes what an escape stands for; s begins behind the backslash. It returns the length read.
func escape(b *strings.Builder, s string) int {
	c := s[0]
	if i := strings.IndexByte(`abfnrtv\"/`, c); i >= 0 {
		b.WriteByte("\a\b\f\n\r\t\v\\\"/"[i])
		return 1
	}
	if c >= '0' && c <= '7' {
		v, n := 0, 0
		for n < 3 && n < len(s) && s[n] >= '0' && s[n] <= '7' {
			v = v*8 + int(s[n]-'0')
			n++
		}
		b.WriteByte(byte(v))
		return n
	}
	b.WriteByte('\\')
	b.WriteByte(c)
	return 1
}

// unescape handles the escapes of a -v assignment.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] == '\\' && i+1 < len(s) {
			i += 1 + escape(&b, s[i+1:])
			continue
		}
		b.WriteByte(s[i])
		i++
	}
	return b.String()
}

// regex reads a regular expression literal; \/ loses its backslash.
func (l *lexer) regex() string {
	var b strings.Builder
	l.pos++
	bracket := false
	for {
		if l.pos >= len(l.src) || l.src[l.pos] == '\n' {
			l.fail("unterminated regexp")
		}
		c := l.src[l.pos]
		l.pos++
		switch {
		case c == '\\' && l.pos < len(l.src):
			if l.src[l.pos] != '/' {
				b.WriteByte('\\')
			}
			b.WriteByte(l.src[l.pos])
			l.pos++
			continue
		case c == '[' && !bracket:
			bracket = true
			b.WriteByte(c)
			if strings.HasPrefix(l.src[l.pos:], "^") {
				b.WriteByte('^')
				l.pos++
			}
			if strings.HasPrefix(l.src[l.pos:], "]") {
				b.WriteByte(']')
				l.pos++
			}
			continue
		case c == '[' && strings.HasPrefix(l.src[l.pos:], ":"):
			if end := strings.Index(l.src[l.pos:], ":]"); end >= 0 {
				b.WriteString("[" + l.src[l.pos:l.pos+end+2])
				l.pos += end + 2
				continue
			}
		case c == ']':
			bracket = false
		case c == '/' && !bracket:
			return b.String()
		}
		b.WriteByte(c)
	}
}

// scanNumber reads a decimal number at the start of s.
func scanNumber(s string) (v float64, size int) {
	i := 0
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	digits := 0
	for i < len(s) && isDigit(s[i]) {
		i++
		digits++
	}
	if i < len(s) && s[i] == '.' {
		i++
		for i < len(s) && isDigit(s[i]) {
			i++
			digits++
		}
	}
	if digits == 0 {
		return 0, 0
	}
	if i < len(s) && s[i]|0x20 == 'e' {
		j := i + 1
		if j < len(s) && (s[j] == '+' || s[j] == '-') {
			j++
		}
		if j < len(s) && isDigit(s[j]) {
			for j < len(s) && isDigit(s[j]) {
				j++
			}
			i = j
		}
	}
	if i <= 15 && !strings.ContainsAny(s[:i], ".eE+-") { // short integers, the usual case
		n := 0
		for k := range i {
			n = n*10 + int(s[k]-'0')
		}
		return float64(n), i
	}
	v, _ = strconv.ParseFloat(s[:i], 64)
	return v, i
}
