package shell

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// place is a byte of a word's literal parts.
type place struct{ part, off int }

// maxBraces bounds how many words a brace expansion may make.
const maxBraces = 1 << 20

// braces expands {a,b} and {x..y..step} in a word's parts, from left to right.
func (sh *Shell) braces(parts []syntax.WordPart) [][]syntax.WordPart {
	budget := maxBraces
	return sh.braceParts(parts, &budget, 0)
}

func (sh *Shell) braceParts(parts []syntax.WordPart, budget *int, depth int) [][]syntax.WordPart {
	from := place{}
	for depth < 500 {
		open, shut, commas, ok := findBrace(parts, from)
		if !ok {
			break
		}
		var alts [][]syntax.WordPart
		if len(commas) > 0 {
			begin := open
			for _, c := range append(commas, shut) {
				alts = append(alts, sh.braceParts(slice(parts, place{begin.part, begin.off + 1}, c), budget, depth+1)...)
				begin = c
			}
		} else {
			text, plain := flatten(slice(parts, place{open.part, open.off + 1}, shut))
			seq, isSeq := parseSeq(text, maxBraces)
			if !plain || !isSeq {
				from = place{open.part, open.off + 1}
				continue
			}
			for i, s := range sh.sequence(nil, seq) {
				sh.braceMade(i)
				alts = append(alts, []syntax.WordPart{&syntax.SglQuoted{Value: s}})
			}
		}
		prefix := slice(parts, place{}, open)
		rest := sh.braceParts(slice(parts, place{shut.part, shut.off + 1}, place{len(parts), 0}), budget, depth+1)
		if *budget -= len(alts) * len(rest); *budget < 0 {
			sh.errorf("brace expansion: failed to allocate memory for %d elements", maxBraces)
			panic(abort{kind: abortDiscard, status: 1})
		}
		out := make([][]syntax.WordPart, 0, len(alts)*len(rest))
		for _, a := range alts {
			for _, r := range rest {
				sh.braceMade(len(out))
				w := make([]syntax.WordPart, 0, len(prefix)+len(a)+len(r))
				out = append(out, mergeLits(append(append(append(w, prefix...), a...), r...)))
			}
		}
		return out
	}
	return [][]syntax.WordPart{parts}
}

// stepsOfBraces is how many words are made between two looks whether the shell is to go on.
const stepsOfBraces = 256

func (sh *Shell) braceMade(n int) {
	if n%stepsOfBraces == stepsOfBraces-1 {
		sh.mayGoOn(stepsOfBraces)
	}
}

// findBrace finds the first brace expression from a place on: { with a matching }, and the commas between.
func findBrace(parts []syntax.WordPart, from place) (open, shut place, commas []place, ok bool) {
	for pi := from.part; pi < len(parts); pi++ {
		l, isLit := parts[pi].(*syntax.Lit)
		if !isLit {
			continue
		}
		i := 0
		if pi == from.part {
			i = from.off
		}
		for ; i < len(l.Value); i++ {
			switch l.Value[i] {
			case '\\':
				i++
			case '{':
				open = place{pi, i}
				if shut, commas, ok = closeBrace(parts, open); ok {
					return
				}
			}
		}
	}
	return
}

func closeBrace(parts []syntax.WordPart, open place) (shut place, commas []place, ok bool) {
	depth := 0
	for pi := open.part; pi < len(parts); pi++ {
		l, isLit := parts[pi].(*syntax.Lit)
		if !isLit {
			continue
		}
		i := 0
		if pi == open.part {
			i = open.off
		}
		for ; i < len(l.Value); i++ {
			switch l.Value[i] {
			case '\\':
				i++
			case '{':
				depth++
			case ',':
				if depth == 1 {
					commas = append(commas, place{pi, i})
				}
			case '}':
				if depth--; depth == 0 {
					if len(commas) == 0 {
						text, plain := flatten(slice(parts, place{open.part, open.off + 1}, place{pi, i}))
						if _, isSeq := parseSeq(text, maxBraces); !plain || !isSeq {
							return shut, nil, false
						}
					}
					return place{pi, i}, commas, true
				}
			}
		}
	}
	return shut, nil, false
}

// slice returns the parts between two places.
func slice(parts []syntax.WordPart, from, to place) []syntax.WordPart {
	var out []syntax.WordPart
	for pi := from.part; pi < len(parts) && pi <= to.part; pi++ {
		l, isLit := parts[pi].(*syntax.Lit)
		if !isLit {
			if pi < to.part {
				out = append(out, parts[pi])
			}
			continue
		}
		lo, hi := 0, len(l.Value)
		if pi == from.part {
			lo = from.off
		}
		if pi == to.part {
			hi = to.off
		}
		if lo < hi {
			if lo == 0 && hi == len(l.Value) {
				out = append(out, l)
			} else {
				out = append(out, &syntax.Lit{ValuePos: l.ValuePos, ValueEnd: l.ValueEnd, Value: l.Value[lo:hi]})
			}
		}
	}
	return out
}

func flatten(parts []syntax.WordPart) (string, bool) {
	var b strings.Builder
	for _, p := range parts {
		l, ok := p.(*syntax.Lit)
		if !ok {
			return "", false
		}
		b.WriteString(l.Value)
	}
	return b.String(), true
}

// braceCount tells how many words a sequence of numbers makes, if they are too many.
func braceCount(s string) (n uint64, tooMany bool) {
	f := strings.Split(s, "..")
	if len(f) < 2 || len(f) > 3 {
		return 0, false
	}
	x, err1 := strconv.ParseInt(f[0], 10, 64)
	y, err2 := strconv.ParseInt(f[1], 10, 64)
	step := int64(1)
	if len(f) == 3 {
		step, _ = strconv.ParseInt(f[2], 10, 64)
	}
	if err1 != nil || err2 != nil {
		return 0, false
	}
	n = uint64(max(x, y)-min(x, y))/uint64(max(step, -step, 1)) + 1
	return n, n > maxBraces
}

// maxSequence bounds a sequence that is a word by itself, and whose elements need no further expansion.
const maxSequence = 8 << 20

// wholeSeq reads a word that is {x..y} and nothing else.
func wholeSeq(w *syntax.Word) (q seq, ok bool) {
	if len(w.Parts) != 1 {
		return q, false
	}
	l, ok := w.Parts[0].(*syntax.Lit)
	if !ok || len(l.Value) < 6 || l.Value[0] != '{' || l.Value[len(l.Value)-1] != '}' {
		return q, false
	}
	text := l.Value[1 : len(l.Value)-1]
	if strings.Trim(text, "-.0123456789") != "" {
		return q, false
	}
	return parseSeq(text, maxSequence)
}

// seq is x..y..step.
type seq struct {
	from, step int64 // step is negative when it goes down
	n          int
	width      int // that numbers are padded to
	chars      bool
}

// parseSeq reads x..y and x..y..step, unless that has more elements than limit.
func parseSeq(s string, limit uint64) (q seq, ok bool) {
	f := strings.Split(s, "..")
	if len(f) < 2 || len(f) > 3 {
		return q, false
	}
	step := int64(1)
	if len(f) == 3 {
		n, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			return q, false
		}
		if n != 0 {
			step = max(n, -max(n, -math.MaxInt64))
		}
	}
	x, err1 := strconv.ParseInt(f[0], 10, 64)
	y, err2 := strconv.ParseInt(f[1], 10, 64)
	if err1 != nil || err2 != nil {
		if len(f[0]) != 1 || len(f[1]) != 1 || !isLetter(f[0][0]) || !isLetter(f[1][0]) {
			return q, false
		}
		x, y, q.chars = int64(f[0][0]), int64(f[1][0]), true
	}
	if uint64(max(x, y)-min(x, y))/uint64(step) >= limit {
		return q, false
	}
	if !q.chars && (padded(f[0]) || padded(f[1])) {
		q.width = max(len(f[0]), len(f[1]))
	}
	q.from, q.step, q.n = x, step, int(uint64(max(x, y)-min(x, y))/uint64(step))+1
	if x > y {
		q.step = -step
	}
	return q, true
}

// sequence appends the elements of q.
func (sh *Shell) sequence(out []string, q seq) []string {
	out = slices.Grow(out, q.n)
	for i := range q.n {
		sh.braceMade(i)
		out = append(out, q.at(i))
	}
	return out
}

func (q seq) at(i int) string {
	n := q.from + int64(i)*q.step
	if q.chars {
		return seqChar(n)
	}
	s := strconv.FormatInt(n, 10)
	pad := q.width - len(s)
	if pad <= 0 {
		return s
	}
	if n < 0 {
		return "-" + strings.Repeat("0", pad) + s[1:]
	}
	return strings.Repeat("0", pad) + s
}

// seqChar is a character of {x..y}; a backslash is gone with the quotes.
func seqChar(c int64) string {
	if c == '\\' {
		return ""
	}
	return string(rune(c))
}

func isLetter(c byte) bool { return c < utf8.RuneSelf && (c|0x20 >= 'a' && c|0x20 <= 'z') }

func padded(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return len(s) > 1 && s[0] == '0'
}

// mergeLits joins neighbouring literals, so that a tilde sees what follows it.
func mergeLits(parts []syntax.WordPart) []syntax.WordPart {
	out := parts[:0]
	for _, p := range parts {
		if l, ok := p.(*syntax.Lit); ok && len(out) > 0 {
			if prev, ok := out[len(out)-1].(*syntax.Lit); ok {
				out[len(out)-1] = &syntax.Lit{ValuePos: prev.ValuePos, ValueEnd: l.ValueEnd, Value: prev.Value + l.Value}
				continue
			}
		}
		out = append(out, p)
	}
	return out
}
