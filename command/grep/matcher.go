package grep

import (
	"bytes"
	"regexp"
	"sort"
	"strings"

	"agentrun.dev/command/posixre"
	"agentrun.dev/command/tool"
)

// matcher finds matches in a line.
type matcher struct {
	res []*posixre.Regexp
	// inner are used for all matches but the first of a line with -w: they begin with the character before.
	inner []*posixre.Regexp
	// literal is a string that every matching line contains; exact says that it is enough.
	literal []byte
	exact   bool
	fold    *folded // the literal in any case, instead of literal
	words   bool
	all     bool // every line matches
}

// compile builds the matcher from the patterns.
func (s *searcher) compile() {
	o := posixre.Options{Flavor: posixre.Basic, Fold: s.fold, Grep: true, NoNewline: s.delim == '\n'}
	if s.delim == 0 {
		o.Multiline = true
	}
	s.m.words = s.words && !s.lines
	patterns := s.patterns
	switch s.kind {
	case 'F':
		o.Flavor = posixre.Perl
		patterns = s.fixed()
	case 'E':
		o.Flavor = posixre.Extended
	case 'P':
		o.Flavor = posixre.Perl
		if len(patterns) > 1 {
			s.t.Fatal(2, "the -P option only supports a single pattern")
		}
	}
	if len(patterns) == 0 {
		patterns = []string{never}
		o.Flavor = posixre.Perl
	}
	s.m.res = s.compileAll(patterns, o, true)
	if s.m.words {
		o.NotBOL = true
		s.m.inner = s.compileAll(patterns, o, false)
	}
	if len(s.m.res) == 1 {
		lit, exact := s.m.res[0].Literal()
		if s.fold {
			plain := o
			plain.Fold = false
			if all, err := posixre.CompileAny(patterns, plain); err == nil && len(all) == 1 {
				if lit, exact = all[0].Literal(); lit != "" {
					s.m.fold = newFolded(lit)
				}
			}
			lit = ""
		}
		s.m.literal, s.m.exact = []byte(lit), exact && !s.words && !s.lines && (!s.fold || s.m.fold != nil)
		s.m.all = len(s.patterns) == 1 && s.patterns[0] == "" && !s.words && !s.lines
	}
}

// never is a Perl pattern that matches nothing.
const never = `[^\x00-\x{10FFFF}]`

// wording is an error's text as grep prints it.
func wording(err error) string {
	text := err.Error()
	switch {
	case strings.Contains(text, "missing closing )"):
		return "missing closing parenthesis"
	case strings.Contains(text, "missing closing ]"):
		return "missing terminating ] for character class"
	}
	return strings.TrimPrefix(text, "error parsing regexp: ")
}

// fixed turns strings into a Perl pattern; the longest comes first, since the first alternative wins there.
func (s *searcher) fixed() []string {
	sorted := append([]string(nil), s.patterns...)
	for i, p := range sorted {
		sorted[i] = regexp.QuoteMeta(p)
	}
	if len(sorted) > 1 {
		sortByLength(sorted)
	}
	return sorted
}

func (s *searcher) compileAll(patterns []string, o posixre.Options, first bool) []*posixre.Regexp {
	open, end := "", ""
	switch {
	case s.lines:
		open, end = `\A(?:`, `)\z`
		if o.Multiline {
			open, end = `(?m:^)(?:`, `)(?m:$)`
		}
	case s.words:
		open, end = `(?:\A|[^_\p{L}\p{Nd}])(`, `)(?:\z|[^_\p{L}\p{Nd}])`
		if !first {
			open = `[^_\p{L}\p{Nd}](`
		}
	}
	o.Wrap = [2]string{open, end}
	all, err := posixre.CompileAny(patterns, o)
	if err != nil {
		s.t.Fatal(2, "%s", wording(err))
	}
	if first {
		for _, re := range all {
			for _, w := range re.Warnings() {
				s.t.Warn("warning: %s", w)
			}
		}
	}
	return all
}

func sortByLength(list []string) {
	sort.SliceStable(list, func(i, j int) bool { return len(list[i]) > len(list[j]) })
}

// match reports whether a line matches.
func (s *searcher) match(line []byte) bool {
	m := &s.m
	if m.all {
		return true
	}
	if m.fold != nil && !m.fold.unsure(line) {
		if m.fold.index(line, 0, &positions{-1, -1}) < 0 {
			return false
		}
		if m.exact {
			return true
		}
	}
	if len(m.literal) > 0 {
		if !bytes.Contains(line, m.literal) {
			return false
		}
		if m.exact {
			return true
		}
	}
	for _, re := range m.res {
		ok, err := re.Match(line)
		if err != nil {
			s.t.Fatal(2, "%s", err)
		}
		if ok {
			return true
		}
	}
	return false
}

// findWord finds a match with -w: the group between what aren't word characters.
func (s *searcher) findWord(line []byte, from int) (start, end int, ok bool) {
	res, base := s.m.res, 0
	if from > 0 {
		// Begin with the character before, which the match of a word needs to see.
		base = from - 1
		for base > 0 && line[base]&0xc0 == 0x80 {
			base--
		}
		res = s.m.inner
	}
	for _, re := range res {
		loc, err := re.Find(line[base:])
		if err != nil {
			s.t.Fatal(2, "%s", err)
		}
		if loc == nil {
			continue
		}
		b, e := base+loc[2], base+loc[3]
		if !ok || b < start || b == start && e > end {
			start, end, ok = b, e, true
		}
	}
	return start, end, ok
}

// matches returns all nonempty matches of a line, in order, without overlaps.
func (s *searcher) matches(line []byte) [][2]int {
	var out [][2]int
	if s.m.words {
		for from := 0; from <= len(line); {
			b, e, ok := s.findWord(line, from)
			if !ok {
				break
			}
			if e > b {
				out = append(out, [2]int{b, e})
				from = e
			} else {
				from = max(b, from) + 1
			}
		}
		return out
	}
	for i, re := range s.m.res {
		all, err := re.FindAll(line, -1)
		if err != nil {
			s.t.Fatal(2, "%s", err)
		}
		for _, loc := range all {
			if loc[1] > loc[0] {
				out = append(out, [2]int{loc[0], loc[1]})
			}
		}
		if i > 0 {
			out = leftmost(out)
		}
	}
	return out
}

// leftmost keeps of overlapping matches those that begin first, of these the longest.
func leftmost(all [][2]int) [][2]int {
	var out [][2]int
	for at := 0; ; {
		best := -1
		for i, m := range all {
			if m[0] >= at && (best < 0 || m[0] < all[best][0] || m[0] == all[best][0] && m[1] > all[best][1]) {
				best = i
			}
		}
		if best < 0 {
			return out
		}
		out = append(out, all[best])
		at = all[best][1]
	}
}

// palette are the colors of GREP_COLORS.
type palette struct{ selected, context, match, matchContext, file, line, offset, sep string }

func newPalette(env string) *palette {
	p := &palette{match: "01;31", matchContext: "01;31", file: "35", line: "32", offset: "32", sep: "36"}
	for _, item := range strings.Split(env, ":") {
		key, v, _ := strings.Cut(item, "=")
		if strings.Trim(v, "0123456789;") != "" {
			break
		}
		switch key {
		case "sl":
			p.selected = v
		case "cx":
			p.context = v
		case "mt":
			p.match, p.matchContext = v, v
		case "ms":
			p.match = v
		case "mc":
			p.matchContext = v
		case "fn":
			p.file = v
		case "ln":
			p.line = v
		case "bn":
			p.offset = v
		case "se":
			p.sep = v
		}
	}
	return p
}

// paint writes a text in a color.
func paint(t *tool.T, code, text string) {
	if code == "" {
		t.Out.WriteString(text)
		return
	}
	t.Out.WriteString("\x1b[" + code + "m\x1b[K" + text + "\x1b[m\x1b[K")
}
