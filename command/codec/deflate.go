package codec

import (
	"io"
)

// Deflater compresses as gzip and zip do. It makes the same choices as they (how matches are searched, when one is
// put off for a better one, where blocks end), so that its output has the same bytes: sizes that scripts print, and
// sums of archives, agree.
type Deflater struct {
	out    bitWriter
	conf   deflateConf
	level  int
	window []byte
	prev   []uint16
	head   []uint16
	hash   uint32

	start, block, look int // where it is, where the block began, how much is ahead
	matchStart         int
	matchLen, prevLen  int
	available          bool // the byte before start is held back for a better match
	begun              bool
	pending            []byte // input that isn't in the window yet
	trees              treeCoder
}

type deflateConf struct{ good, lazy, nice, chain int }

var deflateConfs = [10]deflateConf{{}, {4, 4, 8, 4}, {4, 5, 16, 8}, {4, 6, 32, 32}, {4, 4, 16, 16}, {8, 16, 32, 32}, {8, 16, 128, 128},
	{8, 32, 128, 256}, {32, 128, 258, 1024}, {32, 258, 258, 4096}}

const (
	winSize  = 1 << 15
	winMask  = winSize - 1
	hashSize = 1 << 15
	maxMatch = 258
	minMatch = 3
	minLook  = maxMatch + minMatch + 1
	maxDist  = winSize - minLook
	tooFar   = 4096 // a match of three bytes isn't worth a longer distance
)

// NewDeflater returns a compressor into w; level is 1 to 9. Close ends the stream, not w.
func NewDeflater(w io.Writer, level int) *Deflater {
	d := &Deflater{level: level, conf: deflateConfs[level], window: make([]byte, 2*winSize+maxMatch+8),
		prev: make([]uint16, winSize), head: make([]uint16, hashSize)}
	d.out.w = w
	d.prevLen, d.matchLen = minMatch-1, 0
	if level > 3 {
		d.matchLen = minMatch - 1
	}
	d.trees.reset()
	return d
}

// inputChunk is how much input is gathered before the window is filled.
const inputChunk = 2 * winSize

// Write implements io.Writer.
func (d *Deflater) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		take := min(len(p), inputChunk-len(d.pending))
		d.pending = append(d.pending, p[:take]...)
		p = p[take:]
		if len(d.pending) == inputChunk {
			d.run(false)
		}
	}
	return n, d.out.err
}

// Close compresses what is left and ends the last block.
func (d *Deflater) Close() error {
	d.run(true)
	if d.available {
		d.trees.tally(d, 0, int(d.window[d.start-1]))
	}
	d.flushBlock(true)
	d.out.windUp()
	d.out.flush()
	return d.out.err
}

// run compresses while there is enough ahead, or up to the end.
func (d *Deflater) run(end bool) {
	if !d.begun {
		d.begun = true
		d.fill()
		d.update(d.window[0])
		d.update(d.window[1])
	}
	for {
		if d.look < minLook {
			d.fill()
			if d.look < minLook && !end || d.look == 0 {
				return
			}
		}
		if d.level <= 3 {
			d.fast()
		} else {
			d.lazy()
		}
	}
}

// fill slides the window if it has to, and reads pending input into it.
func (d *Deflater) fill() {
	for {
		more := 2*winSize - d.look - d.start
		if d.start >= winSize+maxDist {
			// Slide only when there is more to come, or all that is there fits.
			copy(d.window[:winSize], d.window[winSize:2*winSize])
			d.matchStart -= winSize
			d.start -= winSize
			d.block -= winSize
			for _, t := range [][]uint16{d.head, d.prev} {
				for i, v := range t {
					if v >= winSize {
						t[i] = v - winSize
					} else {
						t[i] = 0
					}
				}
			}
			more += winSize
		}
		n := copy(d.window[d.start+d.look:d.start+d.look+more], d.pending)
		d.pending = append(d.pending[:0], d.pending[n:]...)
		d.look += n
		if n == 0 || d.look >= minLook {
			return
		}
	}
}

func (d *Deflater) update(c byte) { d.hash = (d.hash<<5 ^ uint32(c)) & (hashSize - 1) }

// insert puts the string at a position into the table, and returns the last one with the same hash.
func (d *Deflater) insert(at int) int {
	d.update(d.window[at+2])
	h := d.head[d.hash]
	d.prev[at&winMask] = h
	d.head[d.hash] = uint16(at)
	return int(h)
}

// longest finds the longest match of at least prevLen+1 bytes along a chain, and sets matchStart.
func (d *Deflater) longest(cur int) int {
	chain, best := d.conf.chain, d.prevLen
	limit := max(d.start-maxDist, 0)
	if d.prevLen >= d.conf.good {
		chain >>= 2
	}
	w := d.window
	scan := w[d.start : d.start+maxMatch]
	for {
		if w[cur+best] == scan[best] && w[cur+best-1] == scan[best-1] && w[cur] == scan[0] && w[cur+1] == scan[1] {
			n := 2
			m := w[cur : cur+maxMatch]
			for n < maxMatch && m[n] == scan[n] {
				n++
			}
			if n > best {
				d.matchStart, best = cur, n
				if n >= d.conf.nice || n == maxMatch {
					break
				}
			}
		}
		cur = int(d.prev[cur&winMask])
		if chain--; cur <= limit || chain == 0 {
			break
		}
	}
	return best
}

func (d *Deflater) fast() {
	head := d.insert(d.start)
	if head != 0 && d.start-head <= maxDist && d.start <= 2*winSize-minLook {
		d.matchLen = min(d.longest(head), d.look)
	}
	flush := false
	if d.matchLen >= minMatch {
		flush = d.trees.tally(d, d.start-d.matchStart, d.matchLen-minMatch)
		d.look -= d.matchLen
		if d.matchLen <= d.conf.lazy {
			for d.matchLen--; d.matchLen > 0; d.matchLen-- {
				d.start++
				d.insert(d.start)
			}
			d.start++
		} else {
			d.start += d.matchLen
			d.matchLen = 0
			d.hash = uint32(d.window[d.start])
			d.update(d.window[d.start+1])
		}
	} else {
		flush = d.trees.tally(d, 0, int(d.window[d.start]))
		d.look--
		d.start++
	}
	if flush {
		d.flushBlock(false)
	}
}

func (d *Deflater) lazy() {
	head := d.insert(d.start)
	d.prevLen = d.matchLen
	prevMatch := d.matchStart
	d.matchLen = minMatch - 1
	if head != 0 && d.prevLen < d.conf.lazy && d.start-head <= maxDist && d.start <= 2*winSize-minLook {
		d.matchLen = min(d.longest(head), d.look)
		if d.matchLen == minMatch && d.start-d.matchStart > tooFar {
			d.matchLen--
		}
	}
	switch {
	case d.prevLen >= minMatch && d.matchLen <= d.prevLen:
		flush := d.trees.tally(d, d.start-1-prevMatch, d.prevLen-minMatch)
		d.look -= d.prevLen - 1
		for n := d.prevLen - 2; n > 0; n-- {
			d.start++
			d.insert(d.start)
		}
		d.prevLen = 0
		d.available = false
		d.matchLen = minMatch - 1
		d.start++
		if flush {
			d.flushBlock(false)
		}
	case d.available:
		if d.trees.tally(d, 0, int(d.window[d.start-1])) {
			d.flushBlock(false)
		}
		d.start++
		d.look--
	default:
		d.available = true
		d.start++
		d.look--
	}
}

func (d *Deflater) flushBlock(last bool) {
	var stored []byte
	if d.block >= 0 {
		stored = d.window[d.block:d.start]
	}
	d.trees.flush(&d.out, stored, d.block >= 0, d.start-d.block, last)
	d.block = d.start
}

// bitWriter writes bits, the lowest first.
type bitWriter struct {
	w   io.Writer
	acc uint64
	n   uint
	buf []byte
	err error
}

func (b *bitWriter) bits(v uint32, n uint) {
	b.acc |= uint64(v) << b.n
	b.n += n
	for b.n >= 8 {
		b.buf = append(b.buf, byte(b.acc))
		b.acc >>= 8
		b.n -= 8
	}
	if len(b.buf) >= 32<<10 {
		b.flush()
	}
}

// windUp fills up the last byte.
func (b *bitWriter) windUp() {
	if b.n > 0 {
		b.buf = append(b.buf, byte(b.acc))
		b.acc, b.n = 0, 0
	}
}

func (b *bitWriter) flush() {
	if b.err == nil && len(b.buf) > 0 {
		_, b.err = b.w.Write(b.buf)
	}
	b.buf = b.buf[:0]
}
