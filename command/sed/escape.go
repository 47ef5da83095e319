package sed

import (
	"strings"
)

// charEscape reads what GNU sed adds to the escapes: \a \f \n \r \t \v, \cX, \dNNN, \oNNN, \xHH. s begins behind the
// backslash. n is the length read; 0 means that it is none of them. numeric says that the character was given by its code.
func charEscape(s string) (c byte, n int, numeric bool) {
	if s == "" {
		return 0, 0, false
	}
	switch s[0] {
	case 'a':
		return '\a', 1, false
	case 'f':
		return '\f', 1, false
	case 'n':
		return '\n', 1, false
	case 'r':
		return '\r', 1, false
	case 't':
		return '\t', 1, false
	case 'v':
		return '\v', 1, false
	case 'c':
		if len(s) > 1 {
			u := s[1]
			if u >= 'a' && u <= 'z' {
				u -= 'a' - 'A'
			}
			return u ^ 0x40, 2, true
		}
	case 'd':
		return code(s, 10, 3)
	case 'o':
		return code(s, 8, 3)
	case 'x':
		return code(s, 16, 2)
	}
	return 0, 0, false
}

// code reads a character's code of at most limit digits.
func code(s string, base, limit int) (byte, int, bool) {
	v, n := 0, 1
	for n < len(s) && n <= limit {
		d := strings.IndexByte("0123456789abcdef", s[n]|0x20)
		if s[n] >= '0' && s[n] <= '9' {
			d = int(s[n] - '0')
		} else if s[n] < 'A' {
			d = -1
		}
		if d < 0 || d >= base {
			break
		}
		v = v*base + d
		n++
	}
	if n == 1 {
		return 0, 0, false
	}
	return byte(v), n, true
}

// unescapeRegex turns the escapes of characters in a regular expression into these characters. One that is special and
// was given by its code stays literal.
func unescapeRegex(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	bracket := 0 // 0 outside of a bracket expression; else how many characters of it have been seen
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\\' && i+1 < len(s):
			if bracket == 0 && s[i+1] != 'n' && strings.IndexByte("cdox", s[i+1]) < 0 && strings.IndexByte("afrtv", s[i+1]) < 0 {
				b.WriteString(s[i : i+2])
				i++
				continue
			}
			ch, n, numeric := charEscape(s[i+1:])
			if n == 0 {
				b.WriteByte(c)
				if bracket == 0 {
					i++
					b.WriteByte(s[i])
				}
				continue
			}
			switch {
			case numeric && bracket == 0 && strings.IndexByte(`*[.$+?{}()|`, ch) >= 0:
				b.WriteString("[" + string(rune(ch)) + "]") // in both syntaxes a literal
			case numeric && bracket == 0 && (ch == '\\' || ch == ']'):
				b.WriteString("\\" + string(rune(ch)))
			default:
				b.WriteByte(ch)
			}
			i += n
		case bracket > 0:
			b.WriteByte(c)
			switch {
			case c == ']' && bracket > 1:
				bracket = 0
				continue
			case c == '[' && i+1 < len(s) && strings.IndexByte(":.=", s[i+1]) >= 0:
				// a class runs to its own end
				if end := strings.Index(s[i+2:], s[i+1:i+2]+"]"); end >= 0 {
					b.WriteString(s[i+1 : i+2+end+2])
					i += 2 + end + 1
				}
			case c == '^' && bracket == 1 && s[i-1] == '[':
				continue
			}
			bracket++
		default:
			if c == '[' {
				bracket = 1
			}
			b.WriteByte(c)
		}
	}
	return b.String()
}

// unescapeText handles the text of a, i and c: escapes of characters, and backslashes before others go.
func unescapeText(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			if s[i] != '\\' {
				b.WriteByte(s[i])
			}
			continue
		}
		if ch, n, _ := charEscape(s[i+1:]); n > 0 {
			b.WriteByte(ch)
			i += n
			continue
		}
		i++
		b.WriteByte(s[i])
	}
	return b.String()
}

// unescapeY handles the strings of y: \\ and escapes of characters; other backslashes stay.
func unescapeY(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			if s[i+1] == '\\' {
				i++
			} else if ch, n, _ := charEscape(s[i+1:]); n > 0 {
				b.WriteByte(ch)
				i += n
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
