package shell

import (
	"strconv"
	"strings"
)

// expandHistory replaces the history designators of a line: !!, !-2, !string, ^a^b^ and the rest. changed tells that there
// were some; fail is the message if one stands for nothing. With :p, histOnly is set.
func (sh *Shell) expandHistory(line string) (out string, changed bool, fail string) {
	x := &histExpander{sh: sh, line: line}
	return x.expand()
}

type histExpander struct {
	sh     *Shell
	line   string
	i      int
	search string // of the last !?string?
	lhs    string // of the last substitution,
	rhs    string
}

const histDelims = " \t\n;&()|<>"

func (x *histExpander) char() byte {
	if c := x.sh.str("histchars"); c != "" {
		return c[0]
	}
	return '!'
}

func (x *histExpander) expand() (string, bool, string) {
	if strings.HasPrefix(x.line, "^") {
		x.line = "!!:s" + x.line
	}
	var b strings.Builder
	bang := x.char()
	changed, single, double := false, false, false
	for x.i < len(x.line) {
		c := x.line[x.i]
		switch {
		case c == '\\' && !single && x.i+1 < len(x.line):
			b.WriteString(x.line[x.i : x.i+2])
			x.i += 2
			continue
		case c == '\'' && !double:
			single = !single
		case c == '"' && !single:
			double = !double
		case c == '#' && !single && !double && (x.i == 0 || strings.IndexByte(histDelims, x.line[x.i-1]) >= 0):
			b.WriteString(x.line[x.i:])
			return b.String(), changed, ""
		case c == bang && !single && x.begins(b.String(), double):
			start := x.i
			text, ok := x.event(b.String())
			if !ok {
				name := x.line[start:x.i]
				return "", false, name + ": event not found"
			}
			words := historyWords(text)
			if x.marks() {
				if text, ok = x.words(words, text); !ok {
					return "", false, x.line[start:x.i] + ": bad word specifier"
				}
			}
			text, msg := x.modify(text)
			if msg != "" {
				return "", false, msg
			}
			b.WriteString(text)
			changed = true
			continue
		}
		b.WriteByte(c)
		x.i++
	}
	return b.String(), changed, ""
}

// begins tells whether a ! begins an expansion.
func (x *histExpander) begins(before string, double bool) bool {
	rest := x.line[x.i+1:]
	if rest == "" || strings.IndexByte(" \t\n\r=", rest[0]) >= 0 || rest[0] == '(' && x.sh.shopts.get("extglob") || double && rest[0] == '"' {
		return false
	}
	return !strings.HasSuffix(before, "${") && (len(before) < 2 || !strings.HasSuffix(before, "$")) && !strings.HasSuffix(before, "[")
}

// event reads which line is meant and returns it.
func (x *histExpander) event(before string) (string, bool) {
	h := &x.sh.hist
	list := h.list
	at := func(i int) (string, bool) {
		if i < 0 || i >= len(list) {
			return "", false
		}
		return list[i].text, true
	}
	bang := x.char()
	x.i++
	rest := x.line[x.i:]
	switch c := rest[0]; {
	case c == bang:
		x.i++
		return at(len(list) - 1)
	case c == '#':
		x.i++
		return before, true
	case strings.IndexByte(":^$*%", c) >= 0: // of the last line
		return at(len(list) - 1)
	case c >= '0' && c <= '9' || c == '-' && len(rest) > 1 && rest[1] >= '0' && rest[1] <= '9':
		n := 1
		for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
			n++
		}
		x.i += n
		num, err := strconv.Atoi(rest[:n])
		if err != nil {
			return "", false
		}
		if num < 0 {
			return at(len(list) + num)
		}
		return at(num - h.number(0))
	case c == '?':
		s, after, closed := strings.Cut(rest[1:], "?")
		if !closed {
			s, after = strings.TrimSuffix(rest[1:], "\n"), ""
		}
		x.i = len(x.line) - len(after)
		if s == "" {
			s = x.search
		}
		x.search = s
		for i := len(list) - 1; i >= 0 && s != ""; i-- {
			if strings.Contains(list[i].text, s) {
				return list[i].text, true
			}
		}
		return "", false
	}
	n := 0
	for n < len(rest) && strings.IndexByte(histDelims+":^$*%\"'", rest[n]) < 0 && rest[n] != bang {
		n++
	}
	x.i += n
	for i := len(list) - 1; i >= 0 && n > 0; i-- {
		if strings.HasPrefix(list[i].text, rest[:n]) {
			return list[i].text, true
		}
	}
	return "", false
}

// marks tells whether a designator of words follows.
func (x *histExpander) marks() bool {
	rest := x.line[x.i:]
	if rest == "" {
		return false
	}
	if strings.IndexByte("^$*%", rest[0]) >= 0 {
		return true
	}
	if rest[0] == ':' && len(rest) > 1 && (rest[1] >= '0' && rest[1] <= '9' || strings.IndexByte("^$*%-", rest[1]) >= 0) {
		x.i++
		return true
	}
	return false
}

// words picks those that a designator means.
func (x *histExpander) words(words []string, text string) (string, bool) {
	last := len(words) - 1
	number := func() (int, bool) {
		n := 0
		rest := x.line[x.i:]
		for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
			n++
		}
		if n == 0 {
			return 0, false
		}
		v, err := strconv.Atoi(rest[:n])
		x.i += n
		return v, err == nil
	}
	peek := func() byte {
		if x.i < len(x.line) {
			return x.line[x.i]
		}
		return 0
	}
	from, to := 0, 0
	switch c := peek(); c {
	case '%':
		x.i++
		for _, w := range words {
			if x.search != "" && strings.Contains(w, x.search) {
				return w, true
			}
		}
		return "", x.search == ""
	case '*':
		x.i++
		if last < 1 {
			return "", true
		}
		return strings.Join(words[1:], " "), true
	case '$':
		x.i++
		from, to = last, last
		if last < 0 {
			return "", true
		}
		return words[last], true
	case '^':
		x.i++
		from, to = 1, 1
	case '-':
	default:
		from, _ = number()
		to = from
	}
	switch peek() {
	case '-':
		x.i++
		switch c := peek(); {
		case c == '$':
			x.i++
			to = last
		case c == '^':
			x.i++
			to = 1
		case c >= '0' && c <= '9':
			to, _ = number()
		default:
			to = last - 1
		}
	case '*':
		x.i++
		if to = last; from == last+1 {
			return "", true
		}
	}
	if from < 0 || from > last || to > last || to < from {
		return "", false
	}
	return strings.Join(words[from:to+1], " "), true
}

// modify applies the modifiers that follow.
func (x *histExpander) modify(text string) (out, fail string) {
	for x.i+1 < len(x.line) && x.line[x.i] == ':' {
		start := x.i
		x.i++
		global, byWord := false, false
		for x.i < len(x.line) && strings.IndexByte("gaG", x.line[x.i]) >= 0 {
			global = global || x.line[x.i] != 'G'
			byWord = byWord || x.line[x.i] == 'G'
			x.i++
		}
		if x.i >= len(x.line) {
			return text, x.line[start:] + ": unrecognized history modifier"
		}
		c := x.line[x.i]
		x.i++
		switch c {
		case 'h':
			if i := strings.LastIndexByte(text, '/'); i >= 0 {
				text = text[:max(i, 1)]
			}
		case 't':
			text = text[strings.LastIndexByte(text, '/')+1:]
		case 'r':
			if i := strings.LastIndexByte(text, '.'); i >= 0 {
				text = text[:i]
			}
		case 'e':
			if i := strings.LastIndexByte(text, '.'); i >= 0 {
				text = text[i:]
			}
		case 'p':
			x.sh.histOnly = true
		case 'q':
			text = quoteSingle(text)
		case 'x':
			words := strings.Fields(text)
			for i, w := range words {
				words[i] = quoteSingle(w)
			}
			text = strings.Join(words, " ")
		case 's', '&':
			if c == 's' && !x.readSubst() {
				return text, x.line[start:] + ": bad substitution"
			}
			if x.lhs == "" || !strings.Contains(text, x.lhs) {
				return text, x.line[start:x.i] + ": substitution failed"
			}
			switch {
			case byWord:
				words := historyWords(text)
				for i, w := range words {
					words[i] = strings.Replace(w, x.lhs, x.rhs, 1)
				}
				text = strings.Join(words, " ")
			case global:
				text = strings.ReplaceAll(text, x.lhs, x.rhs)
			default:
				text = strings.Replace(text, x.lhs, x.rhs, 1)
			}
		default:
			return text, x.line[start:x.i] + ": unrecognized history modifier"
		}
	}
	return text, ""
}

// readSubst reads what follows :s.
func (x *histExpander) readSubst() bool {
	if x.i >= len(x.line) {
		return false
	}
	delim := x.line[x.i]
	x.i++
	part := func(rhs bool) string {
		var b strings.Builder
		for x.i < len(x.line) {
			c := x.line[x.i]
			if c == delim || c == '\n' {
				if c == delim {
					x.i++
				}
				break
			}
			if c == '\\' && x.i+1 < len(x.line) && (x.line[x.i+1] == delim || rhs && x.line[x.i+1] == '&') {
				x.i++
				c = x.line[x.i]
			} else if rhs && c == '&' {
				b.WriteString(x.lhs)
				x.i++
				continue
			}
			b.WriteByte(c)
			x.i++
		}
		return b.String()
	}
	if s := part(false); s != "" {
		x.lhs = s
	} else if x.lhs == "" {
		x.lhs = x.search
	}
	x.rhs = part(true)
	return x.lhs != ""
}

// historyWords splits a line as the shell would: quotes hold together, operators are words.
func historyWords(s string) []string {
	var out []string
	for i := 0; i < len(s); {
		if strings.IndexByte(" \t\n", s[i]) >= 0 {
			i++
			continue
		}
		from := i
		if strings.IndexByte(";&()|<>", s[i]) >= 0 {
			for i < len(s) && strings.IndexByte(";&|<>()", s[i]) >= 0 && (i == from || s[i] == s[from] || s[i] == '&') && s[from] != '(' && s[from] != ')' || i == from {
				i++
			}
			out = append(out, s[from:i])
			continue
		}
		var quote byte
		for i < len(s) {
			c := s[i]
			if quote == 0 && strings.IndexByte(histDelims, c) >= 0 {
				break
			}
			switch {
			case c == '\\' && quote != '\'' && i+1 < len(s):
				i++
			case quote != 0 && c == quote:
				quote = 0
			case quote == 0 && (c == '\'' || c == '"' || c == '`'):
				quote = c
			}
			i++
		}
		i = min(i, len(s))
		out = append(out, s[from:i])
	}
	return out
}
