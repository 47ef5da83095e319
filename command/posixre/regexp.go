// Package posixre is POSIX regular expressions with GNU's extensions, on bytes that are mostly UTF-8.
//
// A flavor is a syntax: basic, extended, Emacs (which find uses) or Perl. The first three are parsed here and handed to
// Go's engine, which runs in linear time and, asked so, finds the leftmost-longest match as POSIX wants. What that engine
// can't do (back-references, \< and \> in general, Perl's look-around) goes to regexp2, which backtracks; it has a time
// limit, so that no pattern can hold a processor.
//
// Deviations: among equally long matches the groups are those of a backtracking search, not POSIX's leftmost-longest
// groups; patterns with back-references find the first alternative that matches, not the longest; \b treats letters
// beyond ASCII as no word characters.
package posixre

import (
	"bytes"
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// Flavor is a syntax of regular expressions.
type Flavor uint8

const (
	Basic    Flavor = iota // grep, sed
	Extended               // grep -E, sed -E, awk
	Emacs                  // find's default: \( \| \) as in basic, + and ? bare, no intervals
	Perl                   // grep -P
)

// Options say how a pattern is read and matched.
type Options struct {
	Flavor    Flavor
	Fold      bool // ignore case
	Multiline bool // ^ and $ match at every line
	NoNewline bool // . and negated sets don't match a newline
	First     bool // prefer the first alternative, not the longest match
	Grep      bool // as grep reads extended syntax: a ) alone is a literal, an interval with nothing before it is ignored
	// Wrap is put before and after the expression, in a syntax that both engines read.
	Wrap   [2]string
	NotBOL bool // the text's start is no start of a line: ^ and \` don't match
}

// MatchTimeout bounds one search by the backtracking engine.
const MatchTimeout = 10 * time.Second

// MaxPattern bounds a pattern's length; a longer one is ErrTooBig.
const MaxPattern = 1 << 20

// ErrTimeout says that a search took longer than MatchTimeout.
var ErrTimeout = errors.New("exceeded the regular expression's time limit")

// Regexp is a compiled expression. It may be used concurrently.
type Regexp struct {
	fast    *regexp.Regexp
	slow    *regexp2.Regexp
	groups  int
	literal string
	exact   bool
	warned  []string

	searched atomic.Int64 // bytes, until there is an automaton
	once     sync.Once
	dfa      *dfa // of fast; nil if there is none (yet)
}

// Warnings are remarks on the pattern, as grep prints them.
func (re *Regexp) Warnings() []string { return re.warned }

// Compile compiles a pattern.
func Compile(pattern string, o Options) (*Regexp, error) {
	all, err := CompileAny([]string{pattern}, o)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// CompileAny compiles patterns of which any may match: into one expression if the engine can, else into several.
func CompileAny(patterns []string, o Options) ([]*Regexp, error) {
	if o.Flavor == Perl {
		re, err := compilePerl(strings.Join(patterns, "|"), o)
		return []*Regexp{re}, err
	}
	trees := make([]*node, len(patterns))
	p := parser{flavor: o.Flavor, grep: o.Grep}
	for i, pattern := range patterns {
		if len(pattern) > MaxPattern {
			return nil, ErrTooBig
		}
		p.s, p.closed, p.open, p.nodes = pattern, map[int]bool{}, nil, 0
		if len(patterns) > 1 {
			p.groups = 0 // back-references count within their own pattern
		}
		tree, err := p.alternatives()
		if err != nil {
			return nil, err
		}
		trees[i] = tree
	}
	if len(trees) == 1 || !p.backref {
		tree := trees[0]
		if len(trees) > 1 {
			tree = &node{op: opAlt, sub: trees}
		}
		re, err := compileTree(tree, p.groups, o)
		if err != nil {
			return nil, err
		}
		re.warned = p.warned
		if re.fast != nil || len(trees) == 1 {
			return []*Regexp{re}, nil
		}
	}
	all := make([]*Regexp, len(trees))
	for i, tree := range trees {
		var err error
		if all[i], err = compileTree(tree, 9, o); err != nil {
			return nil, err
		}
	}
	all[0].warned = p.warned
	return all, nil
}

func compileTree(tree *node, groups int, o Options) (re *Regexp, err error) {
	re = &Regexp{groups: groups}
	if !o.Fold {
		re.literal, re.exact = required(tree)
	}
	e := emitter{newline: o.Multiline, noNL: o.NoNewline, fold: o.Fold, notBOL: o.NotBOL}
	if o.Fold {
		e.b.WriteString("(?i)")
	}
	e.b.WriteString(o.Wrap[0])
	e.node(tree)
	e.b.WriteString(o.Wrap[1])
	if o.Wrap[0] != "" {
		re.exact = false
	}
	if !e.complex {
		if re.fast, err = regexp.Compile(e.b.String()); err == nil {
			re.groups = re.fast.NumSubexp()
			if !o.First {
				re.fast.Longest()
			}
			return re, nil
		}
		var se *syntax.Error
		if !errors.As(err, &se) || se.Code != syntax.ErrInvalidRepeatSize && se.Code != syntax.ErrLarge {
			return nil, ErrTooBig
		}
	}
	e = emitter{dotnet: true, newline: o.Multiline, noNL: o.NoNewline, fold: o.Fold, notBOL: o.NotBOL}
	if strings.HasSuffix(o.Wrap[0], "(") && !strings.HasSuffix(o.Wrap[0], "(?:") {
		e.shift = 1
	}
	e.b.WriteString(o.Wrap[0])
	e.node(tree)
	e.b.WriteString(o.Wrap[1])
	return re.backtracking(e.b.String(), o.Fold)
}

// backtracking compiles for regexp2.
func (re *Regexp) backtracking(pattern string, fold bool) (*Regexp, error) {
	var flags regexp2.RegexOptions
	if fold {
		flags |= regexp2.IgnoreCase
	}
	slow, err := regexp2.Compile(pattern, flags)
	if err != nil {
		return nil, err
	}
	slow.MatchTimeout = MatchTimeout
	re.slow, re.fast = slow, nil
	re.groups = len(slow.GetGroupNumbers()) - 1
	return re, nil
}

// NumSubexp returns the number of groups.
func (re *Regexp) NumSubexp() int { return re.groups }

// Literal returns a string that every match contains, "" if none is known, and whether the pattern is just that string.
func (re *Regexp) Literal() (s string, exact bool) { return re.literal, re.exact }

// Match reports whether b contains a match.
func (re *Regexp) Match(b []byte) (bool, error) {
	if re.fast != nil {
		if re.exact {
			return bytes.Contains(b, []byte(re.literal)), nil
		}
		if found, known := re.quick(b); known {
			return found, nil
		}
		return re.fast.Match(b), nil
	}
	m, err := re.slow.MatchRunes(runes(b))
	return m, wrap(err)
}

// quick is Match by the automaton, if there is one that nobody else uses now.
func (re *Regexp) quick(b []byte) (found, known bool) {
	if re.searched.Load() < dfaAfter {
		re.searched.Add(int64(len(b)) + 1)
		return false, false
	}
	re.once.Do(func() { re.dfa = newDFA(re.fast.String()) })
	d := re.dfa
	if d == nil || !d.mu.TryLock() {
		return false, false
	}
	defer d.mu.Unlock()
	if d.failed {
		return false, false
	}
	return d.match(b)
}

// Find returns the leftmost match as byte offsets: pairs for the match and each group, -1 for a group that took no
// part; nil if there is none.
func (re *Regexp) Find(b []byte) ([]int, error) {
	if re.fast != nil {
		if found, known := re.quick(b); known && !found {
			return nil, nil
		}
		return re.fast.FindSubmatchIndex(b), nil
	}
	all, err := re.FindAll(b, 1)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[0], nil
}

// FindAll returns up to n successive matches, all if n < 0. An empty match right after a match doesn't count.
func (re *Regexp) FindAll(b []byte, n int) ([][]int, error) {
	if re.fast != nil {
		if found, known := re.quick(b); known && !found {
			return nil, nil
		}
		return re.fast.FindAllSubmatchIndex(b, n), nil
	}
	rs := runes(b)
	offsets := byteOffsets(b, len(rs))
	var all [][]int
	m, err := re.slow.FindRunesMatch(rs)
	for last := -1; m != nil && err == nil && (n < 0 || len(all) < n); {
		if start, end := m.Index, m.Index+m.Length; start < end || start != last {
			all = append(all, re.location(m, offsets))
			last = end
		}
		m, err = re.slow.FindNextMatch(m)
	}
	return all, wrap(err)
}

func (re *Regexp) location(m *regexp2.Match, offsets []int) []int {
	groups := m.Groups()
	loc := make([]int, 2*len(groups))
	for i := range groups {
		loc[2*i], loc[2*i+1] = -1, -1
		if g := &groups[i]; len(g.Captures) > 0 {
			loc[2*i], loc[2*i+1] = offsets[g.Index], offsets[g.Index+g.Length]
		}
	}
	return loc
}

func wrap(err error) error {
	if err != nil && strings.Contains(err.Error(), "timeout") {
		return ErrTimeout
	}
	return err
}

// runes decodes b; an invalid byte is one U+FFFD.
func runes(b []byte) []rune {
	rs := make([]rune, 0, len(b))
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		rs = append(rs, r)
		b = b[n:]
	}
	return rs
}

// byteOffsets returns where each rune of b begins, and b's length.
func byteOffsets(b []byte, n int) []int {
	offsets := make([]int, 0, n+1)
	for i := 0; i < len(b); {
		offsets = append(offsets, i)
		_, size := utf8.DecodeRune(b[i:])
		i += size
	}
	return append(offsets, len(b))
}

// required returns the longest string that every match of the tree contains, and whether the tree is exactly it.
func required(n *node) (literal string, exact bool) {
	switch n.op {
	case opRune:
		if n.r >= utf8.RuneError {
			return "", false
		}
		return string(n.r), true
	case opSet:
		if s := n.set; !s.negated && len(s.classes) == 0 && len(s.ranges) == 2 && s.ranges[0] == s.ranges[1] && s.ranges[0] < utf8.RuneError {
			return string(s.ranges[0]), true
		}
	case opEmpty:
		return "", true
	case opGroup:
		l, _ := required(n.sub[0])
		return l, false
	case opRepeat:
		if n.min > 0 {
			l, _ := required(n.sub[0])
			return l, false
		}
	case opConcat:
		exact = true
		var run, best strings.Builder
		keep := func() {
			if run.Len() > best.Len() {
				best.Reset()
				best.WriteString(run.String())
			}
			run.Reset()
		}
		for _, s := range n.sub {
			l, whole := required(s)
			if whole {
				run.WriteString(l)
				continue
			}
			exact = false
			keep()
			run.WriteString(l)
			keep()
		}
		keep()
		return best.String(), exact && best.Len() > 0
	}
	return "", false
}

// compilePerl compiles Perl's syntax: for Go's engine if that reads it the same way, else for regexp2.
func compilePerl(pattern string, o Options) (*Regexp, error) {
	flags := ""
	if o.Fold {
		flags += "i"
	}
	if o.Multiline {
		flags += "m"
	}
	if flags != "" {
		flags = "(?" + flags + ")"
	}
	re := &Regexp{}
	open, end := o.Wrap[0], o.Wrap[1]
	if open == "" {
		open, end = "(?:", ")"
	}
	if fast, err := regexp.Compile(flags + open + pattern + end); err == nil && !strings.Contains(pattern, `\C`) {
		re.fast, re.groups = fast, fast.NumSubexp()
		if tree, err := syntax.Parse(pattern, syntax.Perl); err == nil && !o.Fold && tree.Op == syntax.OpLiteral && tree.Flags&syntax.FoldCase == 0 {
			re.literal, re.exact = string(tree.Rune), o.Wrap[0] == ""
		}
		return re, nil
	}
	return re.backtracking(flags+open+perlRewrite(pattern)+end, o.Fold)
}

// perlRewrite turns what PCRE has and regexp2 lacks into what it has. \K becomes a look-behind around what precedes it,
// possessive quantifiers become atomic groups where they follow one item.
func perlRewrite(pattern string) string {
	if before, after, ok := strings.Cut(pattern, `\K`); ok && !strings.HasSuffix(before, `\`) {
		pattern = "(?<=" + before + ")" + after
	}
	pattern = strings.NewReplacer(`\\`, `\\`, `\h`, `[ \t]`, `\R`, `(?:\r\n|\n|\r)`, `\N`, `[^\n]`, `(?P<`, `(?<`, `(?P=`, `\k<`).Replace(pattern)
	for _, q := range []string{"++", "*+", "?+"} {
		for {
			i := indexUnescaped(pattern, q)
			if i < 1 {
				break
			}
			start := itemStart(pattern, i)
			pattern = pattern[:start] + "(?>" + pattern[start:i+1] + ")" + pattern[i+2:]
		}
	}
	return pattern
}

// indexUnescaped finds q outside of escapes and bracket expressions.
func indexUnescaped(s, q string) int {
	bracket := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case bracket:
			bracket = s[i] != ']'
		case s[i] == '[':
			bracket = true
		case strings.HasPrefix(s[i:], q):
			return i
		}
	}
	return -1
}

// itemStart finds where the item that ends before end begins: a group, a bracket expression, an escape or a character.
func itemStart(s string, end int) int {
	var stack []int
	item := 0
	for i := 0; i < end; i++ {
		switch s[i] {
		case '\\':
			item = i
			i++
		case '[':
			item = i
			for i++; i < end && (s[i] != ']' || i == item+1); i++ {
				if s[i] == '\\' {
					i++
				}
			}
		case '(':
			stack = append(stack, i)
		case ')':
			if len(stack) > 0 {
				item, stack = stack[len(stack)-1], stack[:len(stack)-1]
			}
		default:
			item = i
			for i+1 < end && !utf8.RuneStart(s[i+1]) {
				i++
			}
		}
	}
	return item
}
