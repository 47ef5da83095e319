package shell

import (
	"errors"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/dlclark/regexp2"
	"mvdan.cc/sh/v3/syntax"
)

// regexCond does =~ : a POSIX extended expression, whose quoted parts match themselves.
func (sh *Shell) regexCond(left string, r *syntax.Word) (ok, bad bool) {
	e := &expander{sh: sh, pattern: true}
	parts := r.Parts
	e.regexParts(parts)
	e.finish()
	var b strings.Builder
	for _, f := range e.fields {
		for _, x := range f {
			if x.q {
				b.WriteString(quoteRegex(x.s))
			} else {
				b.WriteString(x.s)
			}
		}
	}
	src := b.String()
	sh.traceCond(quoteSet(left) + " =~ " + src)
	groups, err := sh.matchRegex(src, left)
	if err != nil {
		return false, true
	}
	v := sh.own("BASH_REMATCH")
	v.attr, v.arr, v.set, v.str = attrIndexed, &indexed{}, true, ""
	for i, g := range groups {
		v.arr.put(int64(i), g)
	}
	return groups != nil, false
}

var errRegex = errors.New("not an expression")

// matchRegex returns the match and its groups, nil if there is none. Expressions are matched in linear time, but for those
// that refer back to a group and a few others, which have a time limit.
func (sh *Shell) matchRegex(src, s string) ([]string, error) {
	conv, valid := posixRegex(src)
	if !valid {
		return nil, errRegex
	}
	fold := sh.shopts.get("nocasematch")
	if re := sh.linearRegex(conv, fold); re != nil {
		return sh.matchLinear(re, s), nil
	}
	opts := regexp2.RegexOptions(regexp2.None)
	if fold {
		opts = regexp2.IgnoreCase
	}
	re, err := regexp2.Compile(conv, opts)
	if err != nil {
		return nil, err
	}
	re.MatchTimeout = regexTimeout
	m, err := re.FindStringMatch(s)
	if m == nil || err != nil {
		return nil, err
	}
	var out []string
	for _, g := range longest(re, s, m).Groups() {
		out = append(out, g.String())
	}
	return out, nil
}

// maxRegexes bounds how many compiled expressions a shell keeps.
const maxRegexes = 64

// linearRegex compiles an expression of posixRegex for Go's matcher; nil if that can't match it as POSIX does.
func (sh *Shell) linearRegex(conv string, fold bool) *regexp.Regexp {
	if fold {
		conv = "(?i)" + conv
	}
	if re, ok := sh.regexes[conv]; ok {
		return re
	}
	re, err := regexp.Compile(conv)
	if err == nil {
		re.Longest()
	}
	if sh.regexes == nil || len(sh.regexes) >= maxRegexes {
		sh.regexes = make(map[string]*regexp.Regexp)
	}
	sh.regexes[conv] = re
	return re
}

// maxAtOnce is the length of a text that is matched without looking whether the shell is to end.
const maxAtOnce = 64 << 10

func (sh *Shell) matchLinear(re *regexp.Regexp, s string) []string {
	if len(s) <= maxAtOnce {
		return re.FindStringSubmatch(s)
	}
	at := re.FindReaderSubmatchIndex(&stoppable{sh: sh, r: strings.NewReader(s)})
	sh.mayGoOn(1)
	if at == nil {
		return nil
	}
	out := make([]string, len(at)/2)
	for i := range out {
		if at[2*i] >= 0 {
			out[i] = s[at[2*i]:at[2*i+1]]
		}
	}
	return out
}

// stoppable is a text that ends when the shell is to end.
type stoppable struct {
	sh *Shell
	r  *strings.Reader
	n  int
}

func (t *stoppable) ReadRune() (rune, int, error) {
	if t.n++; t.n%patternStep == 0 && t.sh.p.Step(1) != nil {
		return 0, 0, io.EOF
	}
	return t.r.ReadRune()
}

// longest prefers, as POSIX asks, a longer match at the same place, where an alternation took a shorter one.
func longest(re *regexp2.Regexp, s string, m *regexp2.Match) *regexp2.Match {
	if !strings.Contains(re.String(), "|") {
		return m
	}
	anchored, err := regexp2.Compile("(?:"+re.String()+")$", regexp2.None)
	if err != nil {
		return m
	}
	anchored.MatchTimeout = regexTimeout
	runes := []rune(s)
	until := time.Now().Add(regexTimeout)
	for end := len(runes); end > m.Index+m.Length && len(runes) < 4096 && time.Now().Before(until); end-- {
		if x, err := anchored.FindRunesMatchStartingAt(runes[:end], m.Index); err == nil && x != nil && x.Index == m.Index && x.Length > m.Length {
			return x
		}
	}
	return m
}

// regexParts is parts, but backslashes of literal text stay, since they quote in the expression.
func (e *expander) regexParts(parts []syntax.WordPart) {
	for i, part := range parts {
		if l, ok := part.(*syntax.Lit); ok {
			s := l.Value
			if i == 0 && strings.HasPrefix(s, "~") {
				s = e.tilde(s, len(parts) > 1)
			}
			for {
				j := strings.IndexByte(s, '\\')
				if j < 0 || j+1 >= len(s) {
					e.add(s, false)
					break
				}
				e.add(s[:j], false)
				_, n := decode(s[j+1:])
				if s[j+1] != '\n' {
					e.add(s[j+1:j+1+n], true)
				}
				s = s[j+1+n:]
			}
			continue
		}
		e.parts([]syntax.WordPart{part}, false)
	}
}

func quoteRegex(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if strings.IndexByte(`\.[]{}()*+?^$|`, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// posixRegex turns an extended expression of POSIX into one of regexp2, whose brackets and backslashes differ.
func posixRegex(s string) (string, bool) {
	var b strings.Builder
	b.WriteString("(?s)")
	if strings.HasPrefix(s, "*") || strings.HasPrefix(s, "+") || strings.HasPrefix(s, "?") {
		return s, s[0] == '*'
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			if i+1 >= len(s) {
				return "", false
			}
			i++
			switch {
			case strings.IndexByte("wWsSbB<>`'", s[i]) >= 0:
				b.WriteString(map[byte]string{'<': `\b(?=\w)`, '>': `\b(?<=\w)`, '`': `\A`, '\'': `\z`}[s[i]])
				if strings.IndexByte("wWsSbB", s[i]) >= 0 {
					b.WriteString(`\` + s[i:i+1])
				}
			case s[i] >= '1' && s[i] <= '9':
				b.WriteString(`\` + s[i:i+1])
			case isAlnum(s[i]):
				b.WriteByte(s[i])
			default:
				b.WriteString(`\` + s[i:i+1])
			}
		case '[':
			end := i + 1
			if end < len(s) && s[end] == '^' {
				end++
			}
			if end < len(s) && s[end] == ']' {
				end++
			}
			for end < len(s) && s[end] != ']' {
				if s[end] == '[' && end+1 < len(s) && strings.IndexByte(":.=", s[end+1]) >= 0 {
					if k := strings.Index(s[end+2:], s[end+1:end+2]+"]"); k >= 0 {
						end += k + 3
					}
				}
				end++
			}
			if end >= len(s) {
				return "", false
			}
			b.WriteString(bracketRegex(s[i+1 : end]))
			i = end
		case '$':
			b.WriteString(`\z`)
		case '^':
			b.WriteString(`\A`)
		case '(':
			b.WriteByte('(')
			if i+1 < len(s) && s[i+1] == '?' {
				return "", false
			}
		case '{':
			// An interval or itself.
			j := i + 1
			for j < len(s) && (s[j] >= '0' && s[j] <= '9' || s[j] == ',') {
				j++
			}
			if j > i+1 && j < len(s) && s[j] == '}' {
				b.WriteByte('{')
				if s[i+1] == ',' {
					b.WriteByte('0')
				}
			} else {
				b.WriteString(`\{`)
			}
		case '*', '+', '?':
			// Several in a row are what all of them together allow.
			run := i
			for run+1 < len(s) && strings.IndexByte("*+?", s[run+1]) >= 0 {
				run++
			}
			if strings.Trim(s[i:run+1], s[i:i+1]) != "" {
				c = '*'
			}
			b.WriteByte(c)
			i = run
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), true
}

func bracketRegex(s string) string {
	var b strings.Builder
	b.WriteByte('[')
	if strings.HasPrefix(s, "^") {
		b.WriteByte('^')
		s = s[1:]
	}
	for i := 0; i < len(s); i++ {
		if s[i] == '[' && i+1 < len(s) && strings.IndexByte(":.=", s[i+1]) >= 0 {
			if k := strings.Index(s[i+2:], s[i+1:i+2]+"]"); k >= 0 {
				name := s[i+2 : i+2+k]
				if s[i+1] == ':' {
					b.WriteString(map[string]string{"alpha": `\p{L}`, "digit": `0-9`, "alnum": `\p{L}\p{Nd}`, "upper": `\p{Lu}`, "lower": `\p{Ll}`, "space": `\s`, "blank": ` \t`,
						"punct": "!-/:-@\\[-`{-~", "cntrl": `\x00-\x1f\x7f`, "graph": `!-~`, "print": ` -~`, "xdigit": `0-9A-Fa-f`, "word": `\w`}[name])
				} else {
					b.WriteString(quoteRegex(name))
				}
				i += k + 3
				continue
			}
		}
		if s[i] == '\\' || s[i] == '[' || s[i] == ']' || s[i] == '^' || s[i] == '-' && (i == 0 || i == len(s)-1) {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	b.WriteByte(']')
	return b.String()
}
