package shell

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// A pattern is compiled into elements, which are matched by sets of positions: an element maps the positions where it may
// begin to those where it may end. So matching takes polynomial time whatever the pattern.

type elemKind uint8

const (
	elemLit   elemKind = iota // one rune
	elemAny                   // ?
	elemStar                  // *
	elemClass                 // [...]
	elemExt                   // ?( *( +( @( !(
)

type elem struct {
	kind  elemKind
	r     rune
	class *class
	op    byte
	alts  [][]elem
}

type class struct {
	neg    bool
	ranges [][2]rune
	preds  []func(rune) bool
}

type pattern struct {
	elems   []elem
	literal string // the whole of it, when plain
	plain   bool
	fold    bool // ignore case
	ext     bool // has extended elements
	bytes   bool // a character is a byte
	sh      *Shell
	work    int // since the shell's last step
	of      string
	starts  []int // where matches in of begin
}

// patternStep is how many positions are tried between two steps of the shell.
const patternStep = 1 << 14

// did counts work; what the shell is to end for ends it.
func (p *pattern) did(n int) {
	if p.work += n; p.work < patternStep || p.sh == nil {
		return
	}
	p.sh.mayGoOn(p.work / patternStep)
	p.work = 0
}

// mayGoOn counts steps of work, and ends what is being done when the shell is to end.
func (sh *Shell) mayGoOn(steps int) {
	if sh.p.Step(steps) != nil {
		panic(abort{kind: abortExit, status: 1})
	}
}

// hasMeta tells whether a pattern can match anything but itself.
func hasMeta(p string) bool {
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '*', '?', '[':
			return true
		case '(':
			if i > 0 && strings.IndexByte("@!+", p[i-1]) >= 0 {
				return true
			}
		}
	}
	return false
}

// compile parses a pattern in which a backslash quotes, in the locale of the shell.
func (sh *Shell) compile(p string, ext, fold bool) *pattern {
	out := compilePattern(p, ext, fold, sh.bytes)
	out.sh = sh
	return out
}

// patternKey is what a compiled pattern depends on.
type patternKey struct {
	word      *syntax.Word // one that is always the same, or nil
	text      string
	ext, fold bool
	bytes     bool
}

// maxPatterns bounds how many compiled patterns a shell keeps.
const maxPatterns = 256

// wordPattern compiles a word's expansion. What has been compiled is kept for the next time.
func (sh *Shell) wordPattern(w *syntax.Word, ext, fold bool) *pattern {
	k := patternKey{ext: ext, fold: fold, bytes: sh.bytes}
	if constant(w) {
		k.word = w
		if p, ok := sh.patterns[k]; ok {
			return p
		}
	}
	text := sh.patternOf(w)
	if k.word == nil {
		k.text = text
		if p, ok := sh.patterns[k]; ok {
			return p
		}
	}
	p := sh.compile(text, ext, fold)
	if len(text) < 256 {
		if sh.patterns == nil || len(sh.patterns) >= maxPatterns {
			sh.patterns = make(map[patternKey]*pattern)
		}
		sh.patterns[k] = p
	}
	return p
}

// constant tells whether a word expands to the same pattern each time.
func constant(w *syntax.Word) bool {
	if w == nil {
		return false
	}
	for i, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if i == 0 && strings.HasPrefix(p.Value, "~") {
				return false
			}
		case *syntax.SglQuoted:
		default:
			return false
		}
	}
	return true
}

func compilePattern(p string, ext, fold, bytes bool) *pattern {
	c := &patParser{s: p, ext: ext, fold: fold, bytes: bytes}
	elems := c.parse(0)
	out := &pattern{elems: elems, fold: fold, ext: c.sawExt, bytes: bytes}
	out.plain = !fold
	var lit strings.Builder
	for _, e := range elems {
		if e.kind != elemLit {
			out.plain = false
			break
		}
		writeRune(&lit, e.r)
	}
	if out.plain {
		out.literal = lit.String()
	}
	return out
}

// Bytes that aren't UTF-8 are runes of their own, beyond Unicode.
const badByte = 0x200000

func decode(s string) (rune, int) {
	if s[0] < utf8.RuneSelf {
		return rune(s[0]), 1
	}
	r, n := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && n == 1 {
		return badByte + rune(s[0]), 1
	}
	return r, n
}

func decodeLast(s string) (rune, int) {
	r, n := utf8.DecodeLastRuneInString(s)
	if r == utf8.RuneError && n == 1 {
		return badByte + rune(s[len(s)-1]), 1
	}
	return r, n
}

func writeRune(b *strings.Builder, r rune) {
	if r >= badByte {
		b.WriteByte(byte(r - badByte))
	} else {
		b.WriteRune(r)
	}
}

// decode is a character of the pattern's locale.
func (p *pattern) decode(s string) (rune, int) { return decodeIn(s, p.bytes) }

func (p *pattern) decodeLast(s string) (rune, int) {
	if p.bytes {
		return decodeIn(s[len(s)-1:], true)
	}
	return decodeLast(s)
}

func decodeIn(s string, bytes bool) (rune, int) {
	if bytes && s[0] >= utf8.RuneSelf {
		return badByte + rune(s[0]), 1
	}
	return decode(s)
}

type patParser struct {
	bytes  bool
	s      string
	i      int
	ext    bool
	fold   bool
	sawExt bool
}

// maxPatternDepth bounds nested extended patterns.
const maxPatternDepth = 100

// parse reads elements up to the end, or within parentheses up to | or ).
func (c *patParser) parse(depth int) []elem {
	var out []elem
	for c.i < len(c.s) {
		ch := c.s[c.i]
		if depth > 0 && (ch == '|' || ch == ')') {
			return out
		}
		if c.ext && depth < maxPatternDepth && strings.IndexByte("?*+@!", ch) >= 0 && c.i+1 < len(c.s) && c.s[c.i+1] == '(' {
			if e, ok := c.group(depth); ok {
				out = append(out, e)
				continue
			}
		}
		switch ch {
		case '*':
			if n := len(out); n == 0 || out[n-1].kind != elemStar {
				out = append(out, elem{kind: elemStar})
			}
			c.i++
		case '?':
			out = append(out, elem{kind: elemAny})
			c.i++
		case '[':
			if cl, end := parseClass(c.s, c.i); cl != nil {
				out = append(out, elem{kind: elemClass, class: cl})
				c.i = end
				continue
			}
			out = append(out, elem{kind: elemLit, r: '['})
			c.i++
		case '\\':
			if c.i++; c.i == len(c.s) {
				out = append(out, elem{kind: elemLit, r: '\\'})
				return out
			}
			fallthrough
		default:
			r, n := decodeIn(c.s[c.i:], c.bytes)
			out = append(out, elem{kind: elemLit, r: r})
			c.i += n
		}
	}
	return out
}

func (c *patParser) group(depth int) (elem, bool) {
	start := c.i
	e := elem{kind: elemExt, op: c.s[c.i]}
	c.i += 2
	for {
		e.alts = append(e.alts, c.parse(depth+1))
		if c.i >= len(c.s) {
			c.i = start
			return e, false
		}
		c.i++
		if c.s[c.i-1] == ')' {
			c.sawExt = true
			return e, true
		}
	}
}

// parseClass reads a bracket expression at s[i]; nil when it isn't one.
func parseClass(s string, i int) (*class, int) {
	cl := &class{}
	j := i + 1
	if j < len(s) && (s[j] == '!' || s[j] == '^') {
		cl.neg = true
		j++
	}
	for first := true; ; first = false {
		if j >= len(s) {
			return nil, 0
		}
		if s[j] == ']' && !first {
			return cl, j + 1
		}
		if s[j] == '[' && j+1 < len(s) && strings.IndexByte(":.=", s[j+1]) >= 0 {
			if end := strings.Index(s[j+2:], string(s[j+1])+"]"); end >= 0 {
				name := s[j+2 : j+2+end]
				if s[j+1] == ':' {
					if p := classPred(name); p != nil {
						cl.preds = append(cl.preds, p)
					}
					j += end + 4
					continue
				}
				if name != "" {
					r, _ := decode(name)
					cl.ranges = append(cl.ranges, [2]rune{r, r})
					j += end + 4
					continue
				}
			}
		}
		lo, n, ok := classRune(s[j:])
		if !ok {
			return nil, 0
		}
		j += n
		hi := lo
		if j+1 < len(s) && s[j] == '-' && s[j+1] != ']' {
			r, n, ok := classRune(s[j+1:])
			if !ok {
				return nil, 0
			}
			hi = r
			j += 1 + n
		}
		cl.ranges = append(cl.ranges, [2]rune{lo, hi})
	}
}

func classRune(s string) (rune, int, bool) {
	if s[0] == '\\' {
		if len(s) == 1 {
			return 0, 0, false
		}
		r, n := decode(s[1:])
		return r, n + 1, true
	}
	r, n := decode(s)
	return r, n, true
}

func classPred(name string) func(rune) bool {
	switch name {
	case "alpha":
		return unicode.IsLetter
	case "digit":
		return func(r rune) bool { return r >= '0' && r <= '9' }
	case "alnum":
		return func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	case "upper":
		return unicode.IsUpper
	case "lower":
		return unicode.IsLower
	case "space":
		return func(r rune) bool { return r == ' ' || r >= '\t' && r <= '\r' || r > 0x80 && unicode.IsSpace(r) }
	case "blank":
		return func(r rune) bool { return r == ' ' || r == '\t' }
	case "punct":
		return func(r rune) bool {
			return r < 0x80 && r > 0x20 && r < 0x7f && !unicode.IsLetter(r) && !unicode.IsDigit(r) || r >= 0x80 && (unicode.IsPunct(r) || unicode.IsSymbol(r))
		}
	case "cntrl":
		return unicode.IsControl
	case "graph":
		return func(r rune) bool { return r != ' ' && unicode.IsGraphic(r) && !unicode.IsSpace(r) }
	case "print":
		return unicode.IsPrint
	case "xdigit":
		return func(r rune) bool {
			return r >= '0' && r <= '9' || r >= 'a' && r <= 'f' || r >= 'A' && r <= 'F'
		}
	case "word":
		return func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
	case "ascii":
		return func(r rune) bool { return r < 0x80 }
	}
	return nil
}

func (c *class) has(r rune, fold bool) bool {
	in := c.in(r)
	if !in && fold {
		in = c.in(unicode.ToLower(r)) || c.in(unicode.ToUpper(r))
	}
	return in != c.neg
}

func (c *class) in(r rune) bool {
	for _, x := range c.ranges {
		if r >= x[0] && r <= x[1] {
			return true
		}
	}
	for _, p := range c.preds {
		if p(r) {
			return true
		}
	}
	return false
}

func (e *elem) one(r rune, fold bool) bool {
	switch e.kind {
	case elemLit:
		return r == e.r || fold && unicode.ToLower(r) == unicode.ToLower(e.r)
	case elemClass:
		return e.class.has(r, fold)
	}
	return true
}

// match tells whether the pattern matches the whole of s.
func (p *pattern) match(s string) bool {
	if p.plain {
		return s == p.literal
	}
	if !p.ext {
		return p.glob(s)
	}
	ends := p.ends(p.elems, s, []int{0}, true)
	return len(ends) > 0 && ends[len(ends)-1] == len(s)
}

// glob is the usual matcher with one point to return to.
func (p *pattern) glob(s string) bool {
	i, j, star, mark := 0, 0, -1, 0
	for i < len(s) {
		if j < len(p.elems) {
			e := &p.elems[j]
			if e.kind == elemStar {
				star, mark = j, i
				j++
				continue
			}
			if r, n := p.decode(s[i:]); e.one(r, p.fold) {
				i, j = i+n, j+1
				continue
			}
		}
		if star < 0 {
			return false
		}
		p.did(i - mark + 1)
		_, n := p.decode(s[mark:])
		mark += n
		i, j = mark, star+1
	}
	for j < len(p.elems) && p.elems[j].kind == elemStar {
		j++
	}
	return j == len(p.elems)
}

// ends returns, ascending and without repetition, where elems can end when they begin at one of the positions. Backwards,
// positions are ends and what comes back are beginnings, still ascending.
func (p *pattern) ends(elems []elem, s string, at []int, forward bool) []int {
	for k := range elems {
		e := &elems[k]
		if !forward {
			e = &elems[len(elems)-1-k]
		}
		if len(at) == 0 {
			return nil
		}
		p.did(len(at))
		switch e.kind {
		case elemStar:
			at = p.span(s, at, forward)
		case elemExt:
			at = p.extEnds(e, s, at, forward)
		default:
			next := make([]int, 0, len(at))
			for _, i := range at {
				if forward && i < len(s) {
					if r, n := p.decode(s[i:]); e.one(r, p.fold) {
						next = append(next, i+n)
					}
				} else if !forward && i > 0 {
					if r, n := p.decodeLast(s[:i]); e.one(r, p.fold) {
						next = append(next, i-n)
					}
				}
			}
			at = next
		}
	}
	return at
}

// span returns all positions from the first on, or up to the last.
func (p *pattern) span(s string, at []int, forward bool) []int {
	lo, hi := at[0], len(s)
	if !forward {
		lo, hi = 0, at[len(at)-1]
	}
	p.did(hi - lo)
	out := make([]int, 0, hi-lo+1)
	for i := lo; ; {
		out = append(out, i)
		if i >= hi {
			return out
		}
		_, n := p.decode(s[i:])
		i += n
	}
}

func (p *pattern) extEnds(e *elem, s string, at []int, forward bool) []int {
	once := func(at []int) []int {
		var out []int
		for _, alt := range e.alts {
			out = union(out, p.ends(alt, s, at, forward))
		}
		return out
	}
	switch e.op {
	case '@':
		return once(at)
	case '?':
		return union(at, once(at))
	case '*', '+':
		return p.repeated(e.op == '*', len(s), at, once)
	}
	var out []int // !(…): from each position, whatever the alternatives don't match
	for _, i := range at {
		not := once([]int{i})
		all := p.span(s, []int{i}, forward)
		var keep []int
		for _, x := range all {
			if k := searchInt(not, x); k == len(not) || not[k] != x {
				keep = append(keep, x)
			}
		}
		out = union(out, keep)
	}
	return out
}

func searchInt(a []int, x int) int {
	lo, hi := 0, len(a)
	for lo < hi {
		if m := (lo + hi) / 2; a[m] < x {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

// repeated goes on from where once can end until it comes to nothing new.
func (p *pattern) repeated(none bool, n int, at []int, once func([]int) []int) []int {
	seen := make([]bool, n+1)
	var out []int
	fresh := func(list []int) []int {
		from := len(out)
		for _, x := range list {
			if !seen[x] {
				seen[x] = true
				out = append(out, x)
			}
		}
		return slices.Clone(out[from:])
	}
	next := at
	if none {
		next = fresh(at)
	}
	for len(next) > 0 {
		p.did(len(next))
		next = fresh(once(next))
	}
	slices.Sort(out)
	return out
}

func union(a, b []int) []int {
	if len(a) == 0 {
		return b
	}
	if len(b) == 0 {
		return a
	}
	out := make([]int, 0, len(a)+len(b))
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0] < b[0]:
			out, a = append(out, a[0]), a[1:]
		case len(a) == 0 || b[0] < a[0]:
			out, b = append(out, b[0]), b[1:]
		default:
			out, a, b = append(out, a[0]), a[1:], b[1:]
		}
	}
	return out
}

// prefix returns the length of the shortest or longest prefix of s that matches, -1 for none.
func (p *pattern) prefix(s string, longest bool) int {
	if p.plain {
		if strings.HasPrefix(s, p.literal) {
			return len(p.literal)
		}
		return -1
	}
	if len(s) <= shortText && !p.ext {
		return p.cut(s, longest, func(n int) bool { return p.glob(s[:n]) })
	}
	ends := p.ends(p.elems, s, []int{0}, true)
	switch {
	case len(ends) == 0:
		return -1
	case longest:
		return ends[len(ends)-1]
	}
	return ends[0]
}

// shortText is the length of texts in which all places to cut are tried, which takes no memory.
const shortText = 128

// cut tries the places between characters, from the end or the beginning on, and returns the first that fits, or -1.
func (p *pattern) cut(s string, fromEnd bool, fits func(int) bool) int {
	if fromEnd {
		for i := len(s); ; {
			if fits(i) {
				return i
			}
			if i == 0 {
				return -1
			}
			_, n := p.decodeLast(s[:i])
			i -= n
		}
	}
	for i := 0; ; {
		if fits(i) {
			return i
		}
		if i >= len(s) {
			return -1
		}
		_, n := p.decode(s[i:])
		i += n
	}
}

// suffix returns where the shortest or longest suffix of s that matches begins, -1 for none.
func (p *pattern) suffix(s string, longest bool) int {
	if p.plain {
		if strings.HasSuffix(s, p.literal) {
			return len(s) - len(p.literal)
		}
		return -1
	}
	if len(s) <= shortText && !p.ext {
		return p.cut(s, !longest, func(i int) bool { return p.glob(s[i:]) })
	}
	starts := p.ends(p.elems, s, []int{len(s)}, false)
	switch {
	case len(starts) == 0:
		return -1
	case longest:
		return starts[0]
	}
	return starts[len(starts)-1]
}

// find returns the leftmost, longest match from position i on; start is -1 for none.
func (p *pattern) find(s string, i int) (start, end int) {
	if p.plain {
		if k := strings.Index(s[i:], p.literal); k >= 0 {
			return i + k, i + k + len(p.literal)
		}
		return -1, -1
	}
	if p.varies() && len(s) <= maxStarts {
		if p.of != s || p.starts == nil {
			p.of, p.starts = s, append([]int{}, p.ends(p.elems, s, p.span(s, []int{0}, true), false)...)
		}
		k := searchInt(p.starts, i)
		if k == len(p.starts) {
			p.of, p.starts = "", nil
			return -1, -1
		}
		ends := p.ends(p.elems, s, p.starts[k:k+1:k+1], true)
		return p.starts[k], ends[len(ends)-1]
	}
	for {
		if ends := p.ends(p.elems, s, []int{i}, true); len(ends) > 0 {
			return i, ends[len(ends)-1]
		}
		if i >= len(s) {
			return -1, -1
		}
		_, n := p.decode(s[i:])
		i += n
	}
}

// maxStarts is the length of texts in which all places where a match begins are looked for at once.
const maxStarts = 16 << 20

// varies tells whether matches may have different lengths.
func (p *pattern) varies() bool {
	for i := range p.elems {
		if k := p.elems[i].kind; k == elemStar || k == elemExt {
			return true
		}
	}
	return false
}

// quotePattern makes a string match only itself.
func quotePattern(s string) string {
	if !strings.ContainsAny(s, "*?[]\\()|!@+-^") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if strings.IndexByte("*?[]\\()|!@+-^", s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
