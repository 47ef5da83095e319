package posixre

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"sort"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Whether a text contains a match at all is what most searches ask. Go's engine finds out with sets of positions or by
// backtracking, some ten times slower than a table would. So for texts of some size there is one: the states of a
// deterministic automaton, made when they are first come to, over classes of characters that the expression doesn't tell
// apart. Memory is bounded: a full table is emptied, and one that is emptied too often is given up.

const (
	dfaAfter   = 4 << 10  // bytes that are searched without it first: making it takes about as long
	dfaInsts   = 1 << 10  // longest program
	dfaEntries = 64 << 10 // of the table, or as much memory
	dfaWorth   = 64       // bytes that each state must have served when the table is full
)

// dfa says whether texts contain a match. One search at a time uses it: mu.
type dfa struct {
	mu   sync.Mutex
	prog *syntax.Prog

	lines, words bool // the program asks for the ends of lines, or of words
	ascii        [utf8.RuneSelf]uint16
	bounds       []rune   // where the intervals of characters begin that no instruction tells apart
	classes      []uint16 // of these intervals
	sample       []rune   // a character of each class; -1, the end of the text, is the last
	matching     [][]bool // by class: which instructions take it

	stride int      // entries of a state: one for each class
	table  []uint32 // what follows a state, which is the index of its first entry; 0 is unknown
	states map[string]uint32
	sets   []string // of the states: the character before, then the instructions
	size   int      // in entries
	served int      // bytes, since the table was empty
	failed bool

	least int // bytes of the shortest text that can match

	seen  []bool // scratch, by instruction
	stack []uint32
	next  []uint32
}

// States that have no entries of their own. The first state is behind them.
const (
	dfaUnknown = iota
	dfaMatch
	dfaNever
	dfaFirst
)

// newDFA returns the automaton of a pattern in Go's syntax, nil if it would be too large.
func newDFA(pattern string) *dfa {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil || len(prog.Inst) > dfaInsts {
		return nil
	}
	d := &dfa{prog: prog, least: leastBytes(tree), seen: make([]bool, len(prog.Inst))}
	d.classify()
	d.stride = len(d.sample)
	if d.stride*16 > dfaEntries {
		return nil
	}
	d.empty()
	return d
}

// leastBytes is how short a match can be, or less.
func leastBytes(re *syntax.Regexp) (n int) {
	switch re.Op {
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpCharClass:
		return 1
	case syntax.OpLiteral:
		return len(re.Rune) // of letters in any case, some are shorter than others
	case syntax.OpCapture, syntax.OpPlus:
		return leastBytes(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min * leastBytes(re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			n += leastBytes(sub)
		}
	case syntax.OpAlternate:
		n = leastBytes(re.Sub[0])
		for _, sub := range re.Sub[1:] {
			n = min(n, leastBytes(sub))
		}
	}
	return n
}

// classify makes the classes.
func (d *dfa) classify() {
	at := map[rune]bool{0: true}
	interval := func(lo, hi rune) { at[lo], at[hi+1] = true, true }
	for i := range d.prog.Inst {
		in := &d.prog.Inst[i]
		switch in.Op {
		case syntax.InstEmptyWidth:
			op := syntax.EmptyOp(in.Arg)
			d.lines = d.lines || op&(syntax.EmptyBeginLine|syntax.EmptyEndLine) != 0
			d.words = d.words || op&(syntax.EmptyWordBoundary|syntax.EmptyNoWordBoundary) != 0
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			if len(in.Rune) == 1 {
				interval(in.Rune[0], in.Rune[0])
				for r := unicode.SimpleFold(in.Rune[0]); r != in.Rune[0]; r = unicode.SimpleFold(r) {
					interval(r, r)
				}
			}
			for k := 0; k+1 < len(in.Rune); k += 2 {
				interval(in.Rune[k], in.Rune[k+1])
			}
		}
	}
	if d.lines {
		interval('\n', '\n')
	}
	if d.words {
		for _, w := range []string{"09", "AZ", "__", "az"} {
			interval(rune(w[0]), rune(w[1]))
		}
	}
	for r := range at {
		if r <= unicode.MaxRune {
			d.bounds = append(d.bounds, r)
		}
	}
	slices.Sort(d.bounds)
	d.merge()
	for c := range d.ascii {
		d.ascii[c] = d.class(rune(c))
	}
}

// merge finds the intervals that are the same to the program.
func (d *dfa) merge() {
	number := map[string]uint16{}
	var key []byte
	for _, r := range d.bounds {
		takes := make([]bool, len(d.prog.Inst))
		key = append(key[:0], d.kind(r))
		for i := range d.prog.Inst {
			switch in := &d.prog.Inst[i]; in.Op {
			case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
				if takes[i] = in.MatchRune(r); takes[i] {
					key = binary.AppendUvarint(key, uint64(i))
				}
			}
		}
		n, ok := number[string(key)]
		if !ok {
			n = uint16(len(d.sample))
			number[string(key)] = n
			d.sample = append(d.sample, r)
			d.matching = append(d.matching, takes)
		}
		d.classes = append(d.classes, n)
	}
	d.sample = append(d.sample, -1)
}

// What the character before a place is, as far as the program asks.
const (
	kindOther = iota
	kindStart
	kindNewline
	kindWord
)

func (d *dfa) kind(r rune) byte {
	switch {
	case d.words && syntax.IsWordChar(r):
		return kindWord
	case d.lines && r == '\n':
		return kindNewline
	}
	return kindOther
}

func (d *dfa) class(r rune) uint16 {
	i := sort.Search(len(d.bounds), func(i int) bool { return d.bounds[i] > r }) - 1
	return d.classes[i]
}

// empty begins the table anew, with the state in which a text begins.
func (d *dfa) empty() {
	d.table, d.states, d.sets, d.served = d.table[:0], map[string]uint32{}, d.sets[:0], 0
	d.size = 0
	d.state(string([]byte{kindStart}))
}

// state returns the number of a set, a new one if there is room.
func (d *dfa) state(set string) (n uint32, ok bool) {
	if n, ok = d.states[set]; ok {
		return n, true
	}
	if d.size += d.stride + len(set)/4 + 16; d.size > dfaEntries {
		return 0, false
	}
	n = uint32(dfaFirst + len(d.table))
	d.table = append(d.table, make([]uint32, d.stride)...)
	d.states[set] = n
	d.sets = append(d.sets, set)
	return n, true
}

// match reports whether b contains a match; known is false if the automaton was given up.
func (d *dfa) match(b []byte) (found, known bool) {
	if len(b) < d.least {
		return false, true
	}
	n := uint32(dfaFirst)
	table, ascii := d.table, &d.ascii
	d.served += len(b)
	for i := 0; i < len(b); {
		var class uint16
		if c := b[i]; c < utf8.RuneSelf {
			class = ascii[c]
			i++
		} else {
			r, size := utf8.DecodeRune(b[i:])
			class = d.class(r)
			i += size
		}
		to := table[n-dfaFirst+uint32(class)]
		if to < dfaFirst {
			if to == dfaUnknown {
				if to = d.follow(n, class); d.failed {
					return false, false
				}
				table = d.table
			}
			if to < dfaFirst {
				return to == dfaMatch, true
			}
		}
		n = to
	}
	end := uint16(d.stride - 1)
	to := d.table[n-dfaFirst+uint32(end)]
	if to == dfaUnknown {
		to = d.follow(n, end)
	}
	return to == dfaMatch, true
}

// follow makes the state that follows another one.
func (d *dfa) follow(n uint32, class uint16) uint32 {
	set := d.sets[(n-dfaFirst)/uint32(d.stride)]
	to := d.step(set, class)
	if to == dfaUnknown {
		next := string(d.key(class))
		var ok bool
		if to, ok = d.state(next); !ok {
			if d.served < dfaWorth*len(d.sets) {
				d.failed = true
				return 0
			}
			d.empty()
			to, _ = d.state(next)
			return to // the state that it follows is gone
		}
	}
	d.table[n-dfaFirst+uint32(class)] = to
	return to
}

// step goes on from the positions of a set, and a new one at the program's beginning, over a character of a class: d.next
// is what there is then, unless that is known to be a match or none.
func (d *dfa) step(set string, class uint16) uint32 {
	before := [...]rune{kindOther: ' ', kindStart: -1, kindNewline: '\n', kindWord: 'a'}[set[0]]
	cond := syntax.EmptyOpContext(before, d.sample[class])
	clear(d.seen)
	d.next, d.stack = d.next[:0], append(d.stack[:0], uint32(d.prog.Start))
	for rest := []byte(set[1:]); len(rest) > 0; {
		pc, k := binary.Uvarint(rest)
		d.stack, rest = append(d.stack, uint32(pc)), rest[k:]
	}
	end := int(class) == d.stride-1
	for len(d.stack) > 0 {
		pc := d.stack[len(d.stack)-1]
		d.stack = d.stack[:len(d.stack)-1]
		if d.seen[pc] {
			continue
		}
		d.seen[pc] = true
		switch in := &d.prog.Inst[pc]; in.Op {
		case syntax.InstMatch:
			return dfaMatch
		case syntax.InstAlt, syntax.InstAltMatch:
			d.stack = append(d.stack, in.Out, in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			d.stack = append(d.stack, in.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^cond == 0 {
				d.stack = append(d.stack, in.Out)
			}
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			if !end && d.matching[class][pc] {
				d.next = append(d.next, in.Out)
			}
		}
	}
	if end || len(d.next) == 0 && d.prog.StartCond()&syntax.EmptyBeginText != 0 {
		return dfaNever
	}
	return dfaUnknown
}

// key is the set of d.next, after a character of a class.
func (d *dfa) key(class uint16) []byte {
	slices.Sort(d.next)
	key := []byte{d.kind(d.sample[class])}
	for _, pc := range slices.Compact(d.next) {
		key = binary.AppendUvarint(key, uint64(pc))
	}
	return key
}
