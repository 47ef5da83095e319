package posixre

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// Errors, worded as the C library words them.
var (
	ErrBracket   = errors.New("Unmatched [, [^, [:, [., or [=")
	ErrParen     = errors.New(`Unmatched ( or \(`)
	ErrRParen    = errors.New(`Unmatched ) or \)`)
	ErrBrace     = errors.New(`Unmatched \{`)
	ErrClassForm = errors.New("character class syntax is [[:space:]], not [:space:]")
	ErrBraceBody = errors.New(`Invalid content of \{\}`)
	ErrRange     = errors.New("Invalid range end")
	ErrRepeat    = errors.New("Invalid preceding regular expression")
	ErrEscape    = errors.New("Trailing backslash")
	ErrBackref   = errors.New("Invalid back reference")
	ErrClass     = errors.New("Invalid character class name")
	ErrCollate   = errors.New("Invalid collation character")
	ErrTooBig    = errors.New("Regular expression too big")
)

// Limits: repetition counts as in the C library, and how deep groups may nest.
const (
	maxRepeat = 0x7fff
	maxDepth  = 250
	maxNodes  = 1 << 16
)

type parser struct {
	s       string
	flavor  Flavor
	groups  int
	open    []int // groups not yet closed
	closed  map[int]bool
	backref bool
	depth   int
	nodes   int
	grep    bool
	warned  []string
}

// warn notes an operator that has nothing to repeat.
func (p *parser) warn(operator string) {
	p.warned = append(p.warned, operator+" at start of expression")
}

func (p *parser) ere() bool { return p.flavor == Extended }

// at reports whether the rest begins with an operator, which has a backslash in basic syntax.
func (p *parser) at(c byte) bool {
	if p.ere() {
		return len(p.s) > 0 && p.s[0] == c
	}
	return len(p.s) > 1 && p.s[0] == '\\' && p.s[1] == c
}

// skip moves past an operator that at has seen.
func (p *parser) skip() {
	if p.ere() {
		p.s = p.s[1:]
	} else {
		p.s = p.s[2:]
	}
}

// alternatives parses up to the end or the ) of the present group.
func (p *parser) alternatives() (*node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, ErrTooBig
	}
	defer func() { p.depth-- }()
	var alts []*node
	for {
		n, err := p.sequence()
		if err != nil {
			return nil, err
		}
		alts = append(alts, n)
		if !p.at('|') {
			break
		}
		p.skip()
	}
	if len(alts) == 1 {
		return alts[0], nil
	}
	return &node{op: opAlt, sub: alts}, nil
}

func (p *parser) sequence() (*node, error) {
	seq := &node{op: opConcat}
	for p.s != "" && !p.at('|') {
		if p.at(')') {
			if len(p.open) > 0 {
				break
			}
			if !p.grep || !p.ere() {
				return nil, ErrRParen
			}
			n, _ := p.literal()
			seq.sub = append(seq.sub, n)
			continue
		}
		if p.nodes++; p.nodes > maxNodes {
			return nil, ErrTooBig
		}
		n, err := p.atom(len(seq.sub) == 0)
		if err != nil {
			return nil, err
		}
		if n == nil {
			continue
		}
		if n, err = p.repeats(n); err != nil {
			return nil, err
		}
		seq.sub = append(seq.sub, n)
	}
	return seq, nil
}

// atom parses one item; first says that it begins a sequence, where * is a literal. A nil node without an error means
// that there was nothing but an operator to ignore.
func (p *parser) atom(first bool) (*node, error) {
	c := p.s[0]
	switch {
	case p.at('('):
		return p.group()
	case c == '\\':
		return p.escape(first)
	case c == '[':
		p.s = p.s[1:]
		return p.bracket()
	case c == '.':
		p.s = p.s[1:]
		return &node{op: opAny}, nil
	case c == '^' && (p.ere() || first):
		p.s = p.s[1:]
		return &node{op: opBOL}, nil
	case c == '$' && p.dollar():
		p.s = p.s[1:]
		return &node{op: opEOL}, nil
	case c == '*' && first && !p.ere():
		return p.literal()
	case (c == '*' || c == '+' || c == '?') && p.ere():
		p.warn(string(c))
		p.s = p.s[1:] // at the start of an expression these are ignored
		return nil, nil
	case c == '{' && p.ere():
		_, _, n, ok, _ := p.interval(p.s[1:])
		if !p.grep {
			return nil, ErrRepeat
		}
		if ok && first {
			p.warn("{...}")
			p.s = p.s[1+n:]
			return nil, nil
		}
		return p.literal()
	}
	return p.literal()
}

// dollar reports whether $ is an anchor here: always in extended syntax, at the end of a branch in basic syntax.
func (p *parser) dollar() bool {
	if p.ere() {
		return true
	}
	rest := p.s[1:]
	return rest == "" || strings.HasPrefix(rest, `\)`) || strings.HasPrefix(rest, `\|`)
}

func (p *parser) literal() (*node, error) {
	r, n := utf8.DecodeRuneInString(p.s)
	if r == utf8.RuneError && n == 1 {
		r = invalidByte + rune(p.s[0])
	}
	p.s = p.s[n:]
	return &node{op: opRune, r: r}, nil
}

// invalidByte is added to a byte that isn't valid UTF-8: a literal of such a byte matches any invalid byte.
const invalidByte = 0x200000

func (p *parser) group() (*node, error) {
	p.skip()
	p.groups++
	g := &node{op: opGroup, n: p.groups}
	p.open = append(p.open, g.n)
	body, err := p.alternatives()
	if err != nil {
		return nil, err
	}
	if !p.at(')') {
		return nil, ErrParen
	}
	p.skip()
	p.open = p.open[:len(p.open)-1]
	p.closed[g.n] = true
	g.sub = []*node{body}
	return g, nil
}

func (p *parser) escape(first bool) (*node, error) {
	if len(p.s) == 1 {
		return nil, ErrEscape
	}
	c := p.s[1]
	if !p.ere() && c == '{' {
		return nil, ErrRepeat // an interval after an item is read by repeats
	}
	if !p.ere() && p.flavor != Emacs && (c == '+' || c == '?') && first {
		p.s = p.s[1:]
		return p.literal()
	}
	p.s = p.s[2:]
	switch c {
	case 'w', 'W':
		return &node{op: opSet, set: &set{negated: c == 'W', classes: []string{"word"}}}, nil
	case 's', 'S':
		return &node{op: opSet, set: &set{negated: c == 'S', classes: []string{"space"}}}, nil
	case 'b':
		return &node{op: opWordB}, nil
	case 'B':
		return &node{op: opNotWordB}, nil
	case '<':
		return &node{op: opWordBeg}, nil
	case '>':
		return &node{op: opWordEnd}, nil
	case '`':
		return &node{op: opBegin}, nil
	case '\'':
		return &node{op: opEnd}, nil
	}
	if c >= '1' && c <= '9' {
		n := int(c - '0')
		if !p.closed[n] {
			return nil, ErrBackref
		}
		p.backref = true
		return &node{op: opBackref, n: n}, nil
	}
	if c >= utf8.RuneSelf {
		p.s = string([]byte{c}) + p.s
		return p.literal()
	}
	return &node{op: opRune, r: rune(c)}, nil
}

// repeats parses the repetition operators after an item.
func (p *parser) repeats(n *node) (*node, error) {
	for p.s != "" {
		lo, hi := 0, -1
		switch {
		case p.s[0] == '*':
			p.s = p.s[1:]
		case p.plusOr('+'):
			lo = 1
			p.skipPlus()
		case p.plusOr('?'):
			hi = 1
			p.skipPlus()
		case p.at('{') && p.flavor != Emacs:
			rest := p.s[1:]
			if !p.ere() {
				rest = p.s[2:]
			}
			a, b, size, ok, err := p.interval(rest)
			if err != nil {
				return nil, err
			}
			if !ok {
				return n, nil // in extended syntax a { that begins no interval is a literal
			}
			lo, hi = a, b
			p.s = rest[size:]
		default:
			return n, nil
		}
		switch n.op {
		case opBOL:
			if !p.ere() {
				// In basic syntax ^* is an anchor and a literal star.
				n = &node{op: opConcat, sub: []*node{n, {op: opRune, r: '*'}}}
				continue
			}
		case opRepeat:
			// a** is a*, and flattening keeps nested stars linear.
			if n.min <= 1 && n.max < 0 && lo <= 1 && hi < 0 {
				n.min = min(n.min, lo)
				continue
			}
		}
		if p.nodes++; p.nodes > maxNodes {
			return nil, ErrTooBig
		}
		n = &node{op: opRepeat, sub: []*node{n}, min: lo, max: hi}
	}
	return n, nil
}

// plusOr reports whether + or ? stands here: bare in extended and Emacs syntax, with a backslash in basic syntax.
func (p *parser) plusOr(c byte) bool {
	if p.flavor == Emacs {
		return p.s[0] == c
	}
	return p.at(c)
}

func (p *parser) skipPlus() {
	if p.flavor == Emacs {
		p.s = p.s[1:]
	} else {
		p.skip()
	}
}

// interval reads "m,n}" (with a backslash before the brace in basic syntax). ok is false when it is no interval, which
// is an error in basic syntax only.
func (p *parser) interval(s string) (lo, hi, size int, ok bool, err error) {
	i := 0
	number := func() int {
		if i == len(s) || s[i] < '0' || s[i] > '9' {
			return -1
		}
		v := 0
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			v = min(v*10+int(s[i]-'0'), maxRepeat+1)
			i++
		}
		return v
	}
	lo = number()
	hi = lo
	if i < len(s) && s[i] == ',' {
		i++
		if hi = number(); lo < 0 {
			lo = 0
		}
	} else if lo < 0 {
		return p.badInterval(s, i)
	}
	if !p.ere() {
		if i >= len(s) || s[i] != '\\' {
			return p.badInterval(s, i)
		}
		i++
	}
	if i >= len(s) || s[i] != '}' {
		return p.badInterval(s, i)
	}
	if hi >= 0 && lo > hi {
		return 0, 0, 0, false, ErrBraceBody
	}
	if lo > maxRepeat || hi > maxRepeat {
		return 0, 0, 0, false, ErrTooBig
	}
	return lo, hi, i + 1, true, nil
}

func (p *parser) badInterval(s string, i int) (int, int, int, bool, error) {
	if p.ere() && p.grep {
		return 0, 0, 0, false, nil // a literal
	}
	if i >= len(s) {
		return 0, 0, 0, false, ErrBrace
	}
	return 0, 0, 0, false, ErrBraceBody
}

// bracket parses a bracket expression after its [.
func (p *parser) bracket() (*node, error) {
	if p.grep && p.s != "" && p.s[0] == ':' {
		if body, _, ok := strings.Cut(p.s, "]"); ok && len(body) > 1 && strings.HasSuffix(body, ":") {
			return nil, ErrClassForm
		}
	}
	if p.s == "" {
		return nil, errors.New("Invalid regular expression")
	}
	st := &set{}
	if strings.HasPrefix(p.s, "^") {
		st.negated = true
		p.s = p.s[1:]
	}
	for first := true; ; first = false {
		if p.s == "" {
			return nil, ErrBracket
		}
		if p.s[0] == ']' && !first {
			p.s = p.s[1:]
			return &node{op: opSet, set: st}, nil
		}
		if strings.HasPrefix(p.s, "[:") {
			if err := p.class(st); err != nil {
				return nil, err
			}
			continue
		}
		lo, err := p.element()
		if err != nil {
			return nil, err
		}
		hi := lo
		if len(p.s) > 1 && p.s[0] == '-' && p.s[1] != ']' {
			p.s = p.s[1:]
			if strings.HasPrefix(p.s, "[:") {
				return nil, ErrRange
			}
			if hi, err = p.element(); err != nil {
				return nil, err
			}
			if lo > hi {
				return nil, ErrRange
			}
		}
		st.add(lo, hi)
	}
}

func (p *parser) class(st *set) error {
	name, rest, ok := strings.Cut(p.s[2:], ":]")
	if !ok {
		return ErrBracket
	}
	if classes[name] == "" || name == "word" {
		return ErrClass
	}
	st.classes = append(st.classes, name)
	p.s = rest
	return nil
}

// element reads one character of a bracket expression, also as [.x.] or [=x=].
func (p *parser) element() (rune, error) {
	if len(p.s) > 1 && p.s[0] == '[' && (p.s[1] == '.' || p.s[1] == '=') {
		name, rest, ok := strings.Cut(p.s[2:], p.s[1:2]+"]")
		if !ok {
			return 0, ErrBracket
		}
		if name == "" && strings.HasPrefix(rest, p.s[1:2]+"]") { // [===] and [...]
			name, rest = p.s[1:2], rest[2:]
		}
		r, n := utf8.DecodeRuneInString(name)
		if n != len(name) || n == 0 {
			named, ok := collating[name]
			if !ok {
				return 0, ErrCollate
			}
			r = named
		}
		p.s = rest
		return r, nil
	}
	r, n := utf8.DecodeRuneInString(p.s)
	p.s = p.s[n:]
	return r, nil
}

// collating names some characters, as POSIX does.
var collating = map[string]rune{"space": ' ', "hyphen": '-', "hyphen-minus": '-', "period": '.', "slash": '/', "tab": '\t',
	"newline": '\n', "left-square-bracket": '[', "right-square-bracket": ']', "circumflex": '^', "dollar-sign": '$',
	"asterisk": '*', "backslash": '\\', "comma": ',', "colon": ':', "semicolon": ';', "underscore": '_', "equals-sign": '='}
