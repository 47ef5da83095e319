package codec

import (
	"math/bits"
)

// Codes of the deflate format, RFC 1951.
const (
	litCodes  = 286
	distCodes = 30
	bitCodes  = 19
	endBlock  = 256
	litBuffer = 1 << 15 // symbols of a block
	heapSize  = 2*litCodes + 1
)

var (
	extraLen   = [29]uint8{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0}
	extraDist  = [30]uint8{0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13}
	extraBits  = [19]uint8{16: 2, 17: 3, 18: 7}
	bitOrder   = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}
	lenBase    [29]int
	lenCode    [256]uint8 // of a length less minMatch
	distBase   [30]int
	staticLit  = staticTree()
	staticDist = staticDistTree()
)

type code struct{ bits, length uint16 }

// staticTree fills in the tables of lengths and distances, too.
func staticTree() (t [288]code) {
	n := 0
	for c := range 28 {
		lenBase[c] = n
		for range 1 << extraLen[c] {
			if n < 256 {
				lenCode[n] = uint8(c)
			}
			n++
		}
	}
	lenBase[28] = 255 // a match of 258 has a code of its own
	lenCode[255] = 28
	n = 0
	for c := range distBase {
		distBase[c] = n
		n += 1 << extraDist[c]
	}
	for i := range t {
		switch {
		case i < 144:
			t[i].length = 8
		case i < 256:
			t[i].length = 9
		case i < 280:
			t[i].length = 7
		default:
			t[i].length = 8
		}
	}
	setCodes(t[:])
	return t
}

func staticDistTree() (t [30]code) {
	for i := range t {
		t[i] = code{bits.Reverse16(uint16(i)) >> 11, 5}
	}
	return t
}

// setCodes gives codes to lengths.
func setCodes(t []code) {
	var count, next [16]uint16
	for _, c := range t {
		count[c.length]++
	}
	count[0] = 0
	for i := 1; i < 16; i++ {
		next[i] = (next[i-1] + count[i-1]) << 1
	}
	for i := range t {
		if n := t[i].length; n > 0 {
			t[i].bits = bits.Reverse16(next[n]) >> (16 - n)
			next[n]++
		}
	}
}

// distCode is the code of a distance less 1.
func distCode(d int) int {
	if d < 2 {
		return d
	}
	n := bits.Len(uint(d)) - 1
	return 2*n + d>>(n-1)&1
}

// symbol is a literal (dist 0) or a match: its length less minMatch, and its distance.
type symbol struct {
	dist uint16
	lc   uint8
}

// tree is a Huffman tree that is made for a block.
type tree struct {
	freq   []uint16
	codes  []code
	static []code
	extra  []uint8
	base   int // of the codes that have extra bits
	elems  int
	limit  uint16 // longest code
	max    int    // largest code that is used
}

type treeCoder struct {
	syms              []symbol
	matches           int
	lit, dist, bl     tree
	optLen, staticLen int
	heap              [heapSize]int
	heapLen, heapMax  int
	depth             [heapSize]uint8
	dad               [heapSize]uint16
	started           bool
}

func (t *treeCoder) reset() {
	if !t.started {
		t.started = true
		t.syms = make([]symbol, 0, litBuffer)
		t.lit = tree{freq: make([]uint16, heapSize), codes: make([]code, heapSize), static: staticLit[:], extra: extraLen[:], base: 257, elems: litCodes, limit: 15}
		t.dist = tree{freq: make([]uint16, heapSize), codes: make([]code, heapSize), static: staticDist[:], extra: extraDist[:], elems: distCodes, limit: 15}
		t.bl = tree{freq: make([]uint16, heapSize), codes: make([]code, heapSize), extra: extraBits[:], elems: bitCodes, limit: 7}
	}
	clear(t.lit.freq)
	clear(t.dist.freq)
	clear(t.bl.freq)
	t.lit.freq[endBlock] = 1
	t.optLen, t.staticLen, t.matches = 0, 0, 0
	t.syms = t.syms[:0]
}

// tally adds a symbol; true if the block shall end.
func (t *treeCoder) tally(d *Deflater, dist, lc int) bool {
	t.syms = append(t.syms, symbol{uint16(dist), uint8(lc)})
	if dist == 0 {
		t.lit.freq[lc]++
	} else {
		t.matches++
		t.lit.freq[257+int(lenCode[lc])]++
		t.dist.freq[distCode(dist-1)]++
	}
	// End a block early if it compresses well, so that the next has codes of its own.
	if n := len(t.syms); d.level > 2 && n&0xfff == 0 {
		out, in := n*8, d.start-d.block
		for c, f := range t.dist.freq[:distCodes] {
			out += int(f) * (5 + int(extraDist[c]))
		}
		if t.matches < n/2 && out>>3 < in/2 {
			return true
		}
	}
	return len(t.syms) == litBuffer-1
}

// flush writes a block in the shortest of the three forms.
func (t *treeCoder) flush(w *bitWriter, stored []byte, canStore bool, length int, last bool) {
	t.build(&t.lit)
	t.build(&t.dist)
	t.scan(&t.lit)
	t.scan(&t.dist)
	t.build(&t.bl)
	maxBL := 18
	for ; maxBL >= 3; maxBL-- {
		if t.bl.codes[bitOrder[maxBL]].length != 0 {
			break
		}
	}
	t.optLen += 3*(maxBL+1) + 14
	opt, static := (t.optLen+10)>>3, (t.staticLen+10)>>3
	opt = min(opt, static)
	eof := uint32(0)
	if last {
		eof = 1
	}
	switch {
	case length+4 <= opt && canStore:
		w.bits(eof, 3)
		w.windUp()
		w.bits(uint32(uint16(length)), 16)
		w.bits(uint32(^uint16(length)), 16)
		w.buf = append(w.buf, stored...)
	case static == opt:
		w.bits(1<<1|eof, 3)
		t.block(w, staticLit[:], staticDist[:])
	default:
		w.bits(2<<1|eof, 3)
		w.bits(uint32(t.lit.max+1-257), 5)
		w.bits(uint32(t.dist.max+1-1), 5)
		w.bits(uint32(maxBL+1-4), 4)
		for _, o := range bitOrder[:maxBL+1] {
			w.bits(uint32(t.bl.codes[o].length), 3)
		}
		t.send(w, &t.lit)
		t.send(w, &t.dist)
		t.block(w, t.lit.codes, t.dist.codes)
	}
	t.reset()
}

func (t *treeCoder) block(w *bitWriter, lit, dist []code) {
	for _, s := range t.syms {
		if s.dist == 0 {
			w.bits(uint32(lit[s.lc].bits), uint(lit[s.lc].length))
			continue
		}
		c := int(lenCode[s.lc])
		w.bits(uint32(lit[257+c].bits), uint(lit[257+c].length))
		if n := extraLen[c]; n > 0 {
			w.bits(uint32(int(s.lc)-lenBase[c]), uint(n))
		}
		d := int(s.dist) - 1
		c = distCode(d)
		w.bits(uint32(dist[c].bits), uint(dist[c].length))
		if n := extraDist[c]; n > 0 {
			w.bits(uint32(d-distBase[c]), uint(n))
		}
	}
	w.bits(uint32(lit[endBlock].bits), uint(lit[endBlock].length))
}

// runs cuts the code lengths of a tree into single lengths and repetitions: f gets a code of the bit-length tree and
// how often the length occurs beyond what the code's least stands for.
func runs(tr *tree, f func(sym, extra int)) {
	prev, next := -1, int(tr.codes[0].length)
	count, most, least := 0, 7, 4
	if next == 0 {
		most, least = 138, 3
	}
	for n := 0; n <= tr.max; n++ {
		cur := next
		next = -1
		if n < tr.max {
			next = int(tr.codes[n+1].length)
		}
		if count++; count < most && cur == next {
			continue
		}
		switch {
		case count < least:
			for range count {
				f(cur, 0)
			}
		case cur != 0:
			if cur != prev {
				f(cur, 0)
				count--
			}
			f(16, count-3)
		case count <= 10:
			f(17, count-3)
		default:
			f(18, count-11)
		}
		count, prev = 0, cur
		switch {
		case next == 0:
			most, least = 138, 3
		case cur == next:
			most, least = 6, 3
		default:
			most, least = 7, 4
		}
	}
}

func (t *treeCoder) scan(tr *tree) { runs(tr, func(sym, _ int) { t.bl.freq[sym]++ }) }

func (t *treeCoder) send(w *bitWriter, tr *tree) {
	runs(tr, func(sym, extra int) {
		c := t.bl.codes[sym]
		w.bits(uint32(c.bits), uint(c.length))
		if n := extraBits[sym]; n > 0 {
			w.bits(uint32(extra), uint(n))
		}
	})
}

func (t *treeCoder) smaller(tr *tree, a, b int) bool {
	return tr.freq[a] < tr.freq[b] || tr.freq[a] == tr.freq[b] && t.depth[a] <= t.depth[b]
}

func (t *treeCoder) down(tr *tree, k int) {
	v := t.heap[k]
	for j := 2 * k; j <= t.heapLen; j *= 2 {
		if j < t.heapLen && t.smaller(tr, t.heap[j+1], t.heap[j]) {
			j++
		}
		if t.smaller(tr, v, t.heap[j]) {
			break
		}
		t.heap[k] = t.heap[j]
		k = j
	}
	t.heap[k] = v
}

// build makes a tree's codes from its frequencies, and adds up how long the block becomes.
func (t *treeCoder) build(tr *tree) {
	t.heapLen, t.heapMax, tr.max = 0, heapSize, -1
	for n := range tr.elems {
		tr.codes[n] = code{}
		if tr.freq[n] != 0 {
			t.heapLen++
			t.heap[t.heapLen] = n
			tr.max = n
			t.depth[n] = 0
		}
	}
	for t.heapLen < 2 { // the format wants two codes at least
		n := 0
		if tr.max < 2 {
			tr.max++
			n = tr.max
		}
		t.heapLen++
		t.heap[t.heapLen] = n
		tr.freq[n] = 1
		t.depth[n] = 0
		t.optLen--
		if tr.static != nil {
			t.staticLen -= int(tr.static[n].length)
		}
	}
	for n := t.heapLen / 2; n >= 1; n-- {
		t.down(tr, n)
	}
	for node := tr.elems; t.heapLen >= 2; node++ {
		n := t.heap[1]
		t.heap[1] = t.heap[t.heapLen]
		t.heapLen--
		t.down(tr, 1)
		m := t.heap[1]
		t.heapMax -= 2
		t.heap[t.heapMax+1], t.heap[t.heapMax] = n, m
		tr.freq[node] = tr.freq[n] + tr.freq[m]
		t.depth[node] = max(t.depth[n], t.depth[m]) + 1
		t.dad[n], t.dad[m] = uint16(node), uint16(node)
		t.heap[1] = node
		t.down(tr, 1)
	}
	t.heapMax--
	t.heap[t.heapMax] = t.heap[1]
	t.lengths(tr)
	setCodes(tr.codes[:tr.max+1])
}

// lengths gives each code its length, none above the limit.
func (t *treeCoder) lengths(tr *tree) {
	var count [16]int
	overflow := 0
	tr.codes[t.heap[t.heapMax]].length = 0
	h := t.heapMax + 1
	for ; h < heapSize; h++ {
		n := t.heap[h]
		length := tr.codes[t.dad[n]].length + 1
		if length > tr.limit {
			length = tr.limit
			overflow++
		}
		tr.codes[n].length = length
		if n > tr.max {
			continue // no leaf
		}
		count[length]++
		extra := 0
		if n >= tr.base {
			extra = int(tr.extra[n-tr.base])
		}
		f := int(tr.freq[n])
		t.optLen += f * (int(length) + extra)
		if tr.static != nil {
			t.staticLen += f * (int(tr.static[n].length) + extra)
		}
	}
	if overflow == 0 {
		return
	}
	for ; overflow > 0; overflow -= 2 {
		b := tr.limit - 1
		for count[b] == 0 {
			b--
		}
		count[b]--
		count[b+1] += 2
		count[tr.limit]--
	}
	for length := tr.limit; length != 0; length-- {
		for n := count[length]; n != 0; {
			h--
			m := t.heap[h]
			if m > tr.max {
				continue
			}
			if c := &tr.codes[m]; c.length != length {
				t.optLen += (int(length) - int(c.length)) * int(tr.freq[m])
				c.length = length
			}
			n--
		}
	}
}
