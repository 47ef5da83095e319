package make

import (
	"strings"
)

// closing returns where the parenthesis or brace that opens at s[at] closes, or -1.
func closing(s string, at int) int {
	open, end := s[at], byte(')')
	if open == '{' {
		end = '}'
	}
	depth := 0
	for i := at; i < len(s); i++ {
		switch s[i] {
		case open:
			depth++
		case end:
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// expand replaces the references in a text.
func (m *maker) expand(s string) string {
	if strings.IndexByte(s, '$') < 0 {
		return s
	}
	if m.depth++; m.depth > maxDepth {
		m.fatal(m.loc, "expansions are nested too deep")
	}
	defer func() { m.depth-- }()
	m.step()
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 || i == len(s)-1 {
			if i >= 0 {
				s = s[:i] // a lone dollar sign at the end is nothing
			}
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		s = s[i+1:]
		switch s[0] {
		case '$':
			b.WriteByte('$')
			s = s[1:]
		case '(', '{':
			end := closing(s, 0)
			if end < 0 {
				m.unterminated(s)
			}
			b.WriteString(m.reference(s[1:end], s[0]))
			s = s[end+1:]
		default:
			b.WriteString(m.value(s[:1]))
			s = s[1:]
		}
		if b.Len() > maxText {
			m.fatal(m.loc, "%v", errTooLarge)
		}
	}
	return b.String()
}

func (m *maker) unterminated(s string) {
	if f, _ := m.functionOf(s[1:]); f != nil {
		m.fatal(m.loc, "unterminated call to function '%s': missing '%s'", f.name, map[byte]string{'(': ")", '{': "}"}[s[0]])
	}
	m.fatal(m.loc, "unterminated variable reference")
}

// reference expands what stands between parentheses or braces.
func (m *maker) reference(body string, open byte) string {
	if f, args := m.functionOf(body); f != nil {
		return m.function(f, args, open)
	}
	if strings.IndexByte(body, '$') >= 0 {
		body = m.expand(body)
	}
	if colon := strings.IndexByte(body, ':'); colon > 0 {
		if from, to, ok := strings.Cut(body[colon+1:], "="); ok {
			if strings.IndexByte(from, '%') < 0 {
				from, to = "%"+from, "%"+to
			}
			return patsubst(from, to, m.value(body[:colon]))
		}
	}
	return m.value(body)
}

// splitArgs splits the arguments of a function at commas outside of parentheses; the last takes the rest.
func splitArgs(s string, open byte, most int) []string {
	end := byte(')')
	if open == '{' {
		end = '}'
	}
	var args []string
	depth, start := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case open:
			depth++
		case end:
			depth--
		case ',':
			if depth == 0 && (most == 0 || len(args) < most-1) {
				args = append(args, s[start:i])
				start = i + 1
			}
		}
	}
	return append(args, s[start:])
}

// words splits at blanks.
func words(s string) []string { return strings.Fields(s) }

// matchPattern matches a word against a pattern with %, and returns what the % stands for.
func matchPattern(pattern, word string) (stem string, ok bool) {
	before, after, wild := cutPercent(pattern)
	if !wild {
		return "", before == word
	}
	if len(word) < len(before)+len(after) || !strings.HasPrefix(word, before) || !strings.HasSuffix(word, after) {
		return "", false
	}
	return word[len(before) : len(word)-len(after)], true
}

// cutPercent splits a pattern at its first %; \% is a plain one.
func cutPercent(p string) (before, after string, found bool) {
	if strings.IndexByte(p, '%') < 0 {
		return p, "", false
	}
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		if p[i] == '\\' && i+1 < len(p) {
			j := i
			for j < len(p) && p[j] == '\\' {
				j++
			}
			if j < len(p) && p[j] == '%' {
				n := j - i
				b.WriteString(p[i : i+n/2])
				if n%2 == 0 {
					return b.String(), p[j+1:], true
				}
				b.WriteByte('%')
				i = j
				continue
			}
			b.WriteString(p[i:j])
			i = j - 1
			continue
		}
		if p[i] == '%' {
			return b.String(), p[i+1:], true
		}
		b.WriteByte(p[i])
	}
	return b.String(), "", false
}

func patsubst(pattern, with, text string) string {
	before, after, wild := cutPercent(with)
	var out []string
	_, _, patternWild := cutPercent(pattern)
	for _, w := range words(text) {
		switch stem, ok := matchPattern(pattern, w); {
		case !ok:
			out = append(out, w)
		case wild && patternWild:
			out = append(out, before+stem+after)
		case patternWild:
			out = append(out, before)
		default:
			out = append(out, with)
		}
	}
	return strings.Join(out, " ")
}
