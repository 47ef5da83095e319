package yq

import (
	"fmt"
	"strings"
)

type tokenKind uint8

const (
	tokenEnd tokenKind = iota
	tokenString
	tokenNumber
	tokenWord  // function or keyword
	tokenVar   // $name
	tokenPath  // .name
	tokenPunct // operators and brackets
	tokenFormat
)

// token is a piece of an expression.
type token struct {
	kind   tokenKind
	text   string
	quoted bool // a path element in quotes
	at     int
	space  bool // blanks before it
}

// puncts are the operators, longest first.
var puncts = []string{"...", "..", "*=", "/=", "%=", "//=", "//", "|=", "+=", "-=", "==", "!=", "<=", ">=", "|", ",", ";", ":", "(", ")", "[", "]", "{", "}",
	"=", "+", "-", "*", "/", "%", "<", ">", "?"}

// lexer splits an expression.
type lexer struct {
	s   string
	at  int
	out []token
	e   *evaluator // knows the names
}

func (l *lexer) fail() error {
	rest := l.s[l.at:]
	text := fmt.Sprintf("%q", rest)
	if r := []rune(rest); len(r) > 16 {
		text = fmt.Sprintf("%q", string(r[:16])+"...")
	}
	row := 1 + strings.Count(l.s[:l.at], "\n")
	col := l.at - strings.LastIndexByte(l.s[:l.at], '\n')
	return fmt.Errorf("%d:%d: lexer: invalid input text %s", row, col, text)
}

func (e *evaluator) lex(s string) ([]token, error) {
	l := &lexer{s: s, e: e}
	for {
		start := l.at
		l.blanks()
		space := l.at > start
		if l.at >= len(l.s) {
			l.out = append(l.out, token{kind: tokenEnd, at: l.at})
			return l.out, nil
		}
		n := len(l.out)
		if err := l.next(); err != nil {
			return nil, err
		}
		l.out[n].space = space
		if len(l.out) > maxTokens {
			return nil, fmt.Errorf("expression too long")
		}
	}
}

// maxTokens bounds an expression.
const maxTokens = 100000

func (l *lexer) blanks() {
	for l.at < len(l.s) {
		switch c := l.s[l.at]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			l.at++
		case c == '#':
			for l.at < len(l.s) && l.s[l.at] != '\n' {
				l.at++
			}
		default:
			return
		}
	}
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func (l *lexer) emit(k tokenKind, text string, size int) {
	l.out = append(l.out, token{kind: k, text: text, at: l.at})
	l.at += size
}

func (l *lexer) next() error {
	c := l.s[l.at]
	rest := l.s[l.at:]
	switch {
	case c == '"':
		text, size, ok := l.quoted(rest)
		if !ok {
			return l.fail()
		}
		l.emit(tokenString, text, size)
	case c == '.' && len(rest) > 1 && pathStart(rest[1]):
		return l.path(rest)
	case isDigit(c) || c == '-' && len(rest) > 1 && isDigit(rest[1]) && l.operand():
		l.number(rest)
	case c == '$' && len(rest) > 1 && isWord(rest[1]):
		size := 1
		for size < len(rest) && (isWord(rest[size]) || rest[size] == '-') {
			size++
		}
		l.emit(tokenVar, rest[1:size], size)
	case c == '@':
		size := 1
		for size < len(rest) && isWord(rest[size]) {
			size++
		}
		if _, ok := l.e.formats[rest[:size]]; !ok {
			return l.fail()
		}
		l.emit(tokenFormat, rest[:size], size)
	case isWord(c) || c == '~':
		return l.word(rest)
	case c == '.':
		size := 1
		for size < 3 && size < len(rest) && rest[size] == '.' {
			size++
		}
		l.emit(tokenPunct, rest[:size], size)
	default:
		for _, p := range puncts {
			if strings.HasPrefix(rest, p) {
				l.punct(p, rest)
				return nil
			}
		}
		return l.fail()
	}
	return nil
}

// punct takes an operator; "*" and "*=" may carry flags.
func (l *lexer) punct(p, rest string) {
	if p != "*" && p != "*=" {
		l.emit(tokenPunct, p, len(p))
		return
	}
	size := 1
	if p == "*=" {
		size = 2
	}
	for size < len(rest) && strings.IndexByte("+?dnc", rest[size]) >= 0 {
		if isWord(rest[size]) && size+1 < len(rest) && isWord(rest[size+1]) && strings.IndexByte("+?dnc", rest[size+1]) < 0 {
			break
		}
		size++
	}
	if p == "*" && size < len(rest) && rest[size] == '=' && size > 1 {
		l.emit(tokenPunct, "*="+rest[1:size], size+1)
		return
	}
	l.emit(tokenPunct, rest[:size], size)
}

// operand reports whether an operand is due, so that a minus sign belongs to a number.
func (l *lexer) operand() bool {
	if len(l.out) == 0 {
		return true
	}
	t := l.out[len(l.out)-1]
	return t.kind == tokenPunct && t.text != ")" && t.text != "]" && t.text != "}" && t.text != "." && t.text != ".."
}

func (l *lexer) number(rest string) {
	size := 1
	if strings.HasPrefix(rest, "0x") {
		for size = 2; size < len(rest) && (isDigit(rest[size]) || rest[size]|0x20 >= 'a' && rest[size]|0x20 <= 'f'); size++ {
		}
		l.emit(tokenNumber, rest[:size], size)
		return
	}
	for size < len(rest) && isDigit(rest[size]) {
		size++
	}
	if size+1 < len(rest) && rest[size] == '.' && isDigit(rest[size+1]) {
		for size++; size < len(rest) && isDigit(rest[size]); size++ {
		}
	}
	if size+1 < len(rest) && rest[size]|0x20 == 'e' {
		end := size + 1
		if rest[end] == '+' || rest[end] == '-' {
			end++
		}
		if end < len(rest) && isDigit(rest[end]) {
			for size = end; size < len(rest) && isDigit(rest[size]); size++ {
			}
		}
	}
	l.emit(tokenNumber, rest[:size], size)
}

func pathStart(c byte) bool {
	return isWord(c) || c == '"' || c == '*' || c == '-' || c == '$' || c >= 0x80
}

// path takes ".name", `."name"` or ".na*me".
func (l *lexer) path(rest string) error {
	if rest[1] == '"' {
		end := strings.IndexByte(rest[2:], '"')
		if end < 0 || strings.ContainsAny(rest[2:2+end], " ") {
			l.at += 3
			return l.fail()
		}
		l.emit(tokenPath, rest[2:2+end], end+3)
		l.out[len(l.out)-1].quoted = true
		return nil
	}
	size := 1
	for size < len(rest) && strings.IndexByte(" \t\n\r}{:[],|.();=!\"?", rest[size]) < 0 {
		if rest[size] == '*' && size > 1 && size+1 < len(rest) && rest[size+1] == '=' {
			break
		}
		size++
	}
	l.emit(tokenPath, rest[1:size], size)
	return nil
}

// word takes the name of a function or a keyword.
func (l *lexer) word(rest string) error {
	size := 1
	for size < len(rest) && isWord(rest[size]) {
		size++
	}
	if _, ok := l.e.functions[rest[:size]]; !ok && !keywords[rest[:size]] {
		return l.fail()
	}
	l.emit(tokenWord, rest[:size], size)
	if name := rest[:size]; (name == "env" || name == "strenv" || name == "envsubst") && strings.HasPrefix(rest[size:], "(") {
		return l.names()
	}
	return nil
}

// names takes the bare words in brackets that env and the like have as arguments.
func (l *lexer) names() error {
	end := strings.IndexByte(l.s[l.at:], ')')
	if end < 0 {
		return l.fail()
	}
	inner := l.s[l.at+1 : l.at+end]
	l.emit(tokenPunct, "(", 1)
	for i, name := range strings.Split(inner, ",") {
		if i > 0 {
			l.emit(tokenPunct, ",", 0)
		}
		l.emit(tokenVar, strings.TrimSpace(name), 0)
	}
	l.at += len(inner)
	l.emit(tokenPunct, ")", 1)
	return nil
}

// keywords are words that aren't functions.
var keywords = map[string]bool{"and": true, "or": true, "as": true, "ref": true, "ireduce": true, "reduce": true, "true": true, "false": true,
	"null": true, "True": true, "False": true, "TRUE": true, "FALSE": true, "Null": true, "NULL": true, "~": true}

// quoted reads a string literal. "\(…)" stays as it is, for the parser.
func (l *lexer) quoted(rest string) (text string, size int, ok bool) {
	var b strings.Builder
	depth := 0
	for i := 1; i < len(rest); i++ {
		c := rest[i]
		switch {
		case c == '\\' && i+1 < len(rest) && depth == 0:
			i++
			switch rest[i] {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case 'r':
				b.WriteByte('\r')
			case '"':
				b.WriteByte('"')
			case '\\':
				b.WriteByte('\\')
			case '(':
				b.WriteString(interpolation)
				depth = 1
			default:
				b.WriteByte('\\')
				b.WriteByte(rest[i])
			}
		case depth > 0:
			if c == '(' {
				depth++
			} else if c == ')' {
				if depth--; depth == 0 {
					b.WriteString(interpolationEnd)
					continue
				}
			}
			b.WriteByte(c)
		case c == '"':
			return b.String(), i + 1, true
		default:
			b.WriteByte(c)
		}
	}
	return "", 0, false
}

// Marks of an interpolated expression within a string; no text has them.
const (
	interpolation    = "\x00\x01"
	interpolationEnd = "\x00\x02"
)
