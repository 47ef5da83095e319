package git

import (
	"bytes"
	"math"
)

// Lines are compared as git's xdiff does it: unique lines are left out of the search, then Myers' algorithm in linear
// space runs from both ends, then runs of changes are moved to where people expect them.

// lines splits a text; each line keeps its end.
func lines(b []byte) [][]byte {
	list := make([][]byte, 0, bytes.Count(b, []byte{'\n'})+1)
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n') + 1
		if i == 0 {
			i = len(b)
		}
		list = append(list, b[:i])
		b = b[i:]
	}
	return list
}

// spaceMode says which differences in white space count.
type spaceMode uint8

const (
	spaceAll    spaceMode = iota // all
	spaceChange                  // -b: amount doesn't
	spaceNone                    // -w: none
	spaceEOL                     // --ignore-space-at-eol
	spaceCR                      // --ignore-cr-at-eol
)

// normal returns a line as it is compared.
func (m spaceMode) normal(line []byte) []byte {
	isSpace := func(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
	switch m {
	case spaceAll:
		return line
	case spaceCR:
		if l := bytes.TrimSuffix(line, []byte("\r\n")); len(l) < len(line) {
			return append(l[:len(l):len(l)], '\n')
		}
		return line
	case spaceEOL:
		return bytes.TrimRight(line, " \t\r\n\v\f")
	}
	out := make([]byte, 0, len(line))
	pending := false
	for _, c := range line {
		if isSpace(c) {
			pending = true
			continue
		}
		if pending && m == spaceChange {
			out = append(out, ' ')
		}
		pending = false
		out = append(out, c)
	}
	return out
}

// hunk is a changed range: lines a0 to a1 of the old file became b0 to b1 of the new one.
type hunk struct{ a0, a1, b0, b1 int }

// side is one file in a comparison.
type side struct {
	lines   [][]byte
	class   []int  // of each line: equal lines have the same
	changed []bool // one more at each end, shifted by one
	index   []int  // lines that take part in the search
}

func (s *side) ch(i int) bool { return s.changed[i+1] }

// diff is one comparison.
type diff struct {
	a, b    side
	ha, hb  []int // classes of the lines that take part
	kf, kb  []int
	offset  int
	maxCost int
	step    func(int)
}

// diffLines compares two lists of lines.
func diffLines(a, b [][]byte, mode spaceMode, step func(int)) []hunk {
	d := &diff{step: step}
	d.a.lines, d.b.lines = a, b
	d.classify(mode)
	d.trimAndPrune()
	n := len(d.ha) + len(d.hb) + 3
	d.kf, d.kb = make([]int, n), make([]int, n)
	d.offset = len(d.hb) + 1
	d.maxCost = max(256, bogosqrt(n))
	d.search(0, len(d.ha), 0, len(d.hb), false)
	d.compact(&d.a, &d.b)
	d.compact(&d.b, &d.a)
	return d.script()
}

func bogosqrt(n int) int {
	i := 1
	for ; n > 0; n >>= 2 {
		i <<= 1
	}
	return i
}

func (d *diff) classify(mode spaceMode) {
	classes := make(map[string]int, len(d.a.lines))
	for _, s := range []*side{&d.a, &d.b} {
		s.class = make([]int, len(s.lines))
		s.changed = make([]bool, len(s.lines)+2)
		for i, l := range s.lines {
			key := mode.normal(l)
			c, ok := classes[string(key)]
			if !ok {
				c = len(classes)
				classes[string(key)] = c
			}
			s.class[i] = c
		}
	}
}

// trimAndPrune leaves out the common ends, and lines that have no counterpart or too many.
func (d *diff) trimAndPrune() {
	lo, hiA, hiB := 0, len(d.a.lines), len(d.b.lines)
	for lo < hiA && lo < hiB && d.a.class[lo] == d.b.class[lo] {
		lo++
	}
	for hiA > lo && hiB > lo && d.a.class[hiA-1] == d.b.class[hiB-1] {
		hiA--
		hiB--
	}
	count := func(s *side) map[int]int {
		m := make(map[int]int)
		for _, c := range s.class {
			m[c]++
		}
		return m
	}
	inA, inB := count(&d.a), count(&d.b)
	d.ha = prune(&d.a, lo, hiA, inB)
	d.hb = prune(&d.b, lo, hiB, inA)
}

// prune marks lines without a counterpart as changed, and those with very many if what surrounds them has none.
func prune(s *side, lo, hi int, other map[int]int) []int {
	limit := min(bogosqrt(len(s.lines)), 1024)
	kind := make([]byte, len(s.lines))
	for i := lo; i < hi; i++ {
		switch n := other[s.class[i]]; {
		case n == 0:
		case n >= limit:
			kind[i] = 2
		default:
			kind[i] = 1
		}
	}
	var classes []int
	for i := lo; i < hi; i++ {
		if kind[i] == 1 || kind[i] == 2 && !discard(kind, i, lo, hi-1) {
			s.index = append(s.index, i)
			classes = append(classes, s.class[i])
		} else {
			s.changed[i+1] = true
		}
	}
	return classes
}

// discard decides on a line with many counterparts by its neighbours, as xdl_clean_mmatch.
func discard(kind []byte, i, s, e int) bool {
	const window, factor = 100, 4
	if i-s > window {
		s = i - window
	}
	if e-i > window {
		e = i + window
	}
	r, rdis0, rpdis0 := 1, 0, 1
	for ; i-r >= s; r++ {
		if kind[i-r] == 0 {
			rdis0++
		} else if kind[i-r] == 2 {
			rpdis0++
		} else {
			break
		}
	}
	if rdis0 == 0 {
		return false
	}
	r, rdis1, rpdis1 := 1, 0, 1
	for ; i+r <= e; r++ {
		if kind[i+r] == 0 {
			rdis1++
		} else if kind[i+r] == 2 {
			rpdis1++
		} else {
			break
		}
	}
	if rdis1 == 0 {
		return false
	}
	rdis1 += rdis0
	rpdis1 += rpdis0
	return rpdis1*factor < rpdis1+rdis1
}

// search marks what is changed between two boxes, recursively.
func (d *diff) search(off1, lim1, off2, lim2 int, needMin bool) {
	for off1 < lim1 && off2 < lim2 && d.ha[off1] == d.hb[off2] {
		off1++
		off2++
	}
	for off1 < lim1 && off2 < lim2 && d.ha[lim1-1] == d.hb[lim2-1] {
		lim1--
		lim2--
	}
	if off1 == lim1 {
		for ; off2 < lim2; off2++ {
			d.b.changed[d.b.index[off2]+1] = true
		}
		return
	}
	if off2 == lim2 {
		for ; off1 < lim1; off1++ {
			d.a.changed[d.a.index[off1]+1] = true
		}
		return
	}
	i1, i2, minLo, minHi := d.split(off1, lim1, off2, lim2, needMin)
	d.search(off1, i1, off2, i2, minLo)
	d.search(i1, lim1, i2, lim2, minHi)
}

const (
	snakeCount = 20
	heurMin    = 256
	kHeur      = 4
)

// split finds where to divide a box, as xdl_split: the middle of an optimal path, or a good guess if that costs too much.
func (d *diff) split(off1, lim1, off2, lim2 int, needMin bool) (i1, i2 int, minLo, minHi bool) {
	dmin, dmax := off1-lim2, lim1-off2
	fmid, bmid := off1-off2, lim1-lim2
	odd := (fmid-bmid)&1 != 0
	fmin, fmax, bmin, bmax := fmid, fmid, bmid, bmid
	kf, kb, o := d.kf, d.kb, d.offset
	kf[o+fmid], kb[o+bmid] = off1, lim1
	for ec := 1; ; ec++ {
		gotSnake := false
		d.step(1 + (fmax-fmin)/16)
		if fmin > dmin {
			fmin--
			kf[o+fmin-1] = -1
		} else {
			fmin++
		}
		if fmax < dmax {
			fmax++
			kf[o+fmax+1] = -1
		} else {
			fmax--
		}
		for k := fmax; k >= fmin; k -= 2 {
			x := kf[o+k+1]
			if kf[o+k-1] >= x {
				x = kf[o+k-1] + 1
			}
			prev := x
			y := x - k
			for x < lim1 && y < lim2 && d.ha[x] == d.hb[y] {
				x++
				y++
			}
			gotSnake = gotSnake || x-prev > snakeCount
			kf[o+k] = x
			if odd && bmin <= k && k <= bmax && kb[o+k] <= x {
				return x, y, true, true
			}
		}
		if bmin > dmin {
			bmin--
			kb[o+bmin-1] = math.MaxInt
		} else {
			bmin++
		}
		if bmax < dmax {
			bmax++
			kb[o+bmax+1] = math.MaxInt
		} else {
			bmax--
		}
		for k := bmax; k >= bmin; k -= 2 {
			x := kb[o+k+1] - 1
			if kb[o+k-1] < kb[o+k+1] {
				x = kb[o+k-1]
			}
			prev := x
			y := x - k
			for x > off1 && y > off2 && d.ha[x-1] == d.hb[y-1] {
				x--
				y--
			}
			gotSnake = gotSnake || prev-x > snakeCount
			kb[o+k] = x
			if !odd && fmin <= k && k <= fmax && x <= kf[o+k] {
				return x, y, true, true
			}
		}
		if needMin {
			continue
		}
		if gotSnake && ec > heurMin {
			if x, y, lo, hi, ok := d.heuristic(off1, lim1, off2, lim2, fmid, bmid, fmin, fmax, bmin, bmax, ec); ok {
				return x, y, lo, hi
			}
		}
		if ec >= d.maxCost {
			return d.giveUp(off1, lim1, off2, lim2, fmin, fmax, bmin, bmax)
		}
	}
}

// heuristic takes a diagonal that has come far and ends with a long run of equal lines.
func (d *diff) heuristic(off1, lim1, off2, lim2, fmid, bmid, fmin, fmax, bmin, bmax, ec int) (x, y int, lo, hi, ok bool) {
	abs := func(n int) int { return max(n, -n) }
	best := 0
	for k := fmax; k >= fmin; k -= 2 {
		i1 := d.kf[d.offset+k]
		i2 := i1 - k
		v := i1 - off1 + i2 - off2 - abs(k-fmid)
		if v > kHeur*ec && v > best && off1+snakeCount <= i1 && i1 < lim1 && off2+snakeCount <= i2 && i2 < lim2 {
			for n := 1; d.ha[i1-n] == d.hb[i2-n]; n++ {
				if n == snakeCount {
					best, x, y = v, i1, i2
					break
				}
			}
		}
	}
	if best > 0 {
		return x, y, true, false, true
	}
	for k := bmax; k >= bmin; k -= 2 {
		i1 := d.kb[d.offset+k]
		i2 := i1 - k
		v := lim1 - i1 + lim2 - i2 - abs(k-bmid)
		if v > kHeur*ec && v > best && off1 < i1 && i1 <= lim1-snakeCount && off2 < i2 && i2 <= lim2-snakeCount {
			for n := 0; d.ha[i1+n] == d.hb[i2+n]; n++ {
				if n == snakeCount-1 {
					best, x, y = v, i1, i2
					break
				}
			}
		}
	}
	return x, y, false, true, best > 0
}

// giveUp takes the furthest point reached from either end.
func (d *diff) giveUp(off1, lim1, off2, lim2, fmin, fmax, bmin, bmax int) (i1, i2 int, lo, hi bool) {
	fbest, fbest1 := -1, -1
	for k := fmax; k >= fmin; k -= 2 {
		x := min(d.kf[d.offset+k], lim1)
		y := x - k
		if lim2 < y {
			x, y = lim2+k, lim2
		}
		if fbest < x+y {
			fbest, fbest1 = x+y, x
		}
	}
	bbest, bbest1 := math.MaxInt, math.MaxInt
	for k := bmax; k >= bmin; k -= 2 {
		x := max(off1, d.kb[d.offset+k])
		y := x - k
		if y < off2 {
			x, y = off2+k, off2
		}
		if x+y < bbest {
			bbest, bbest1 = x+y, x
		}
	}
	if lim1+lim2-bbest < fbest-(off1+off2) {
		return fbest1, fbest - fbest1, true, false
	}
	return bbest1, bbest - bbest1, false, true
}

// script lists the changed ranges.
func (d *diff) script() (list []hunk) {
	i, j := 0, 0
	for i < len(d.a.lines) || j < len(d.b.lines) {
		if !d.a.ch(i) && !d.b.ch(j) {
			i++
			j++
			continue
		}
		h := hunk{a0: i, b0: j}
		for d.a.ch(i) {
			i++
		}
		for d.b.ch(j) {
			j++
		}
		h.a1, h.b1 = i, j
		list = append(list, h)
	}
	return list
}

// group is a run of changed lines, maybe empty, between unchanged ones: start to end, exclusive.
type group struct{ start, end int }

func (s *side) firstGroup() (g group) {
	for s.ch(g.end) {
		g.end++
	}
	return g
}

func (s *side) next(g *group) bool {
	if g.end == len(s.lines) {
		return false
	}
	g.start = g.end + 1
	for g.end = g.start; s.ch(g.end); g.end++ {
	}
	return true
}

func (s *side) previous(g *group) bool {
	if g.start == 0 {
		return false
	}
	g.end = g.start - 1
	for g.start = g.end; s.ch(g.start - 1); g.start-- {
	}
	return true
}

func (s *side) slideDown(g *group) bool {
	if g.end < len(s.lines) && s.class[g.start] == s.class[g.end] {
		s.changed[g.start+1] = false
		s.changed[g.end+1] = true
		g.start++
		g.end++
		for s.ch(g.end) {
			g.end++
		}
		return true
	}
	return false
}

func (s *side) slideUp(g *group) bool {
	if g.start > 0 && s.class[g.start-1] == s.class[g.end-1] {
		g.start--
		g.end--
		s.changed[g.start+1] = true
		s.changed[g.end+1] = false
		for s.ch(g.start - 1) {
			g.start--
		}
		return true
	}
	return false
}

// compact moves each group of changes, as xdl_change_compact: down to a group of the other file if there is one in reach,
// else to where the indentation makes it read best.
func (d *diff) compact(s, other *side) {
	g, o := s.firstGroup(), other.firstGroup()
	for {
		d.step(1)
		if g.end != g.start {
			var earliest, matching, size int
			for {
				size = g.end - g.start
				matching = -1
				for s.slideUp(&g) {
					other.previous(&o)
				}
				earliest = g.end
				if o.end > o.start {
					matching = g.end
				}
				for s.slideDown(&g) {
					other.next(&o)
					if o.end > o.start {
						matching = g.end
					}
				}
				if size == g.end-g.start {
					break
				}
			}
			switch {
			case g.end == earliest:
			case matching != -1:
				for o.end == o.start {
					s.slideUp(&g)
					other.previous(&o)
				}
			default:
				best := bestShift(s, g, earliest, size)
				for g.end > best {
					s.slideUp(&g)
					other.previous(&o)
				}
			}
		}
		if !s.next(&g) {
			return
		}
		other.next(&o)
	}
}

// The numbers below are those of git's indent heuristic.
const (
	maxIndent  = 200
	maxBlanks  = 20
	maxSliding = 100
)

// bestShift tries the places where a group may end.
func bestShift(s *side, g group, earliest, size int) int {
	shift := max(earliest, g.end-size-1, g.end-maxSliding)
	best, bestScore := -1, score{}
	for ; shift <= g.end; shift++ {
		var sc score
		sc.add(measure(s, shift))
		sc.add(measure(s, shift-size))
		if best == -1 || sc.compare(bestScore) <= 0 {
			best, bestScore = shift, sc
		}
	}
	return best
}

// measurement describes what surrounds a split before a line.
type measurement struct {
	eof                         bool
	indent, preBlank, preIndent int
	postBlank, postIndent       int
}

func indentOf(line []byte) int {
	n := 0
	for _, c := range line {
		switch c {
		case ' ':
			n++
		case '\t':
			n += 8 - n%8
		case '\n', '\v', '\f', '\r':
		default:
			return n
		}
		if n >= maxIndent {
			return maxIndent
		}
	}
	return -1
}

func measure(s *side, at int) (m measurement) {
	m.indent, m.preIndent, m.postIndent = -1, -1, -1
	if at >= len(s.lines) {
		m.eof = true
	} else {
		m.indent = indentOf(s.lines[at])
	}
	for i := at - 1; i >= 0; i-- {
		if m.preIndent = indentOf(s.lines[i]); m.preIndent != -1 {
			break
		}
		if m.preBlank++; m.preBlank == maxBlanks {
			m.preIndent = 0
			break
		}
	}
	for i := at + 1; i < len(s.lines); i++ {
		if m.postIndent = indentOf(s.lines[i]); m.postIndent != -1 {
			break
		}
		if m.postBlank++; m.postBlank == maxBlanks {
			m.postIndent = 0
			break
		}
	}
	return m
}

type score struct{ indent, penalty int }

func (s *score) add(m measurement) {
	if m.preIndent == -1 && m.preBlank == 0 {
		s.penalty += 1 // start of file
	}
	if m.eof {
		s.penalty += 21
	}
	postBlank := 0
	if m.indent == -1 {
		postBlank = 1 + m.postBlank
	}
	total := m.preBlank + postBlank
	s.penalty += -30 * total
	s.penalty += 6 * postBlank
	indent := m.indent
	if indent == -1 {
		indent = m.postIndent
	}
	blank := total != 0
	s.indent += indent
	pick := func(with, without int) int {
		if blank {
			return with
		}
		return without
	}
	switch {
	case indent == -1, m.preIndent == -1:
	case indent > m.preIndent:
		s.penalty += pick(10, -4)
	case indent == m.preIndent:
	case m.postIndent != -1 && m.postIndent > indent:
		s.penalty += pick(17, 24)
	default:
		s.penalty += pick(17, 23)
	}
}

func (s score) compare(o score) int {
	cmp := 0
	if s.indent > o.indent {
		cmp = 1
	} else if s.indent < o.indent {
		cmp = -1
	}
	return 60*cmp + s.penalty - o.penalty
}
