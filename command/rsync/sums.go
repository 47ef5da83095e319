package rsync

import (
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
)

// sumSize is the length of a strong checksum.
const sumSize = md5.Size

// Bounds of blocks.
const (
	minBlock  = 700
	maxBlock  = 128 << 10
	maxBlocks = 1 << 24
)

// sumHead describes the checksums of a file's blocks.
type sumHead struct{ count, length, strong, remainder int32 }

func (h sumHead) send(w *writer) {
	w.int(h.count)
	w.int(h.length)
	w.int(h.strong)
	w.int(h.remainder)
}

func receiveHead(r *reader) (h sumHead, err error) {
	h = sumHead{r.int(), r.int(), r.int(), r.int()}
	if r.err != nil {
		return h, r.err
	}
	if h.count < 0 || h.count > maxBlocks || h.length < 0 || h.length > 1<<29 || h.strong < 0 || h.strong > sumSize || h.remainder < 0 || h.remainder > h.length ||
		h.count > 0 && h.length == 0 {
		return h, fmt.Errorf("invalid checksum header: %w", protocolError)
	}
	return h, nil
}

// size is the length of a block.
func (h sumHead) size(i int32) int64 {
	if i == h.count-1 && h.remainder != 0 {
		return int64(h.remainder)
	}
	return int64(h.length)
}

// headFor chooses blocks for a file.
func headFor(size int64) sumHead {
	length := int64(minBlock)
	if size > minBlock*minBlock {
		c := int64(1)
		for l := size >> 2; l > 0; l >>= 2 {
			c <<= 1
		}
		if c >= maxBlock {
			length = maxBlock
		} else {
			length = 0
			for ; c >= 8; c >>= 1 {
				length |= c
				if size < length*length {
					length &^= c
				}
			}
			length = max(length, minBlock)
		}
	}
	count := (size + length - 1) / length
	if count > maxBlocks {
		return sumHead{} // so large that it is sent whole
	}
	// The number of bits that make a false match unlikely.
	b := 10 + 2*(bits.Len64(uint64(size))-1) - (bits.Len64(uint64(length)) - 1)
	strong := min(max((b+1-32+7)/8, 2), sumSize)
	return sumHead{int32(count), int32(length), int32(strong), int32(size % length)}
}

// weak is the rolling checksum of a block.
func weak(p []byte) uint32 {
	var s1, s2 uint32
	for _, b := range p {
		s1 += uint32(int32(int8(b)))
		s2 += s1
	}
	return s1&0xffff | s2<<16
}

// strong is the strong checksum of a block.
func (s *session) strong(p []byte) []byte {
	h := md5.New()
	var seed [4]byte
	binary.LittleEndian.PutUint32(seed[:], uint32(s.seed))
	if s.seedFirst && s.seed != 0 {
		h.Write(seed[:])
	}
	h.Write(p)
	if !s.seedFirst && s.seed != 0 {
		h.Write(seed[:])
	}
	return h.Sum(nil)
}

// sendSums reads a file and writes the checksums of its blocks.
func (s *session) sendSums(f io.ReaderAt, h sumHead) error {
	h.send(s.w)
	buf := make([]byte, h.length)
	at := int64(0)
	for i := range h.count {
		p := buf[:h.size(i)]
		if _, err := f.ReadAt(p, at); err != nil && err != io.EOF {
			clear(p) // the block won't match
		}
		at += int64(len(p))
		s.w.int(int32(weak(p)))
		if _, err := s.w.Write(s.strong(p)[:h.strong]); err != nil {
			return err
		}
	}
	return nil
}

// blockSum is what the other side has of a block.
type blockSum struct {
	weak   uint32
	strong []byte
	next   int32 // of the same hash, or -1
}

// signature is the checksums of a file that the other side has.
type signature struct {
	sumHead
	sums  []blockSum
	table map[uint32]int32 // weak checksum → first block
}

func (s *session) receiveSums() (*signature, error) {
	h, err := receiveHead(s.r)
	if err != nil {
		return nil, err
	}
	g := &signature{sumHead: h, table: map[uint32]int32{}}
	for i := range h.count {
		b := blockSum{weak: uint32(s.r.int()), strong: s.r.bytes(int(h.strong)), next: -1}
		if s.r.err != nil {
			return nil, s.r.err
		}
		if first, ok := g.table[b.weak]; ok {
			b.next = first
		}
		g.table[b.weak] = i
		g.sums = append(g.sums, b)
	}
	return g, nil
}

// window is how much of a file is held while it is matched, beyond a block.
const window = 256 << 10

// match sends a file as literal data and references to blocks of the signature, and then its checksum.
func (s *session) match(f io.Reader, g *signature, t tokens) error {
	whole := md5.New()
	if g.count == 0 {
		return s.sendWhole(io.TeeReader(f, whole), t, whole.Sum)
	}
	m := &matcher{s: s, f: io.TeeReader(f, whole), g: g, t: t}
	if err := m.run(); err != nil {
		return err
	}
	if err := t.end(s.w); err != nil {
		return err
	}
	_, err := s.w.Write(whole.Sum(nil))
	return err
}

func (s *session) sendWhole(f io.Reader, t tokens, sum func([]byte) []byte) error {
	buf := make([]byte, chunk)
	for {
		n, err := io.ReadFull(f, buf)
		if n > 0 {
			s.literal += int64(n)
			if err := t.literal(s.w, buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if err := t.end(s.w); err != nil {
		return err
	}
	_, err := s.w.Write(sum(nil))
	return err
}

// matcher looks for known blocks at every offset of a file.
type matcher struct {
	s       *session
	f       io.Reader
	g       *signature
	t       tokens
	buf     []byte
	start   int // of what isn't sent yet
	at      int // of the block that is looked at
	eof     bool
	s1, s2  uint32
	rolling bool
}

// fill makes at least need bytes available from at on, unless the file ends.
func (m *matcher) fill(need int) error {
	for len(m.buf)-m.at < need && !m.eof {
		if m.start > window {
			m.buf = append(m.buf[:0], m.buf[m.start:]...)
			m.at -= m.start
			m.start = 0
		}
		n := len(m.buf)
		m.buf = append(m.buf, make([]byte, window)...)
		got, err := m.f.Read(m.buf[n:])
		m.buf = m.buf[:n+got]
		if err == io.EOF {
			m.eof = true
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (m *matcher) run() error {
	block := int(m.g.length)
	for {
		if err := m.fill(block + 1); err != nil {
			return err
		}
		size := min(block, len(m.buf)-m.at)
		if size == 0 {
			break
		}
		if !m.rolling {
			sum := weak(m.buf[m.at : m.at+size])
			m.s1, m.s2, m.rolling = sum&0xffff, sum>>16, true
		}
		if i := m.find(size); i >= 0 {
			if err := m.flush(); err != nil {
				return err
			}
			m.s.matched += int64(size)
			if err := m.t.block(m.s.w, i, m.buf[m.at:m.at+size]); err != nil {
				return err
			}
			m.at += size
			m.start, m.rolling = m.at, false
			continue
		}
		m.roll(size)
		if m.at-m.start >= chunk {
			if err := m.flush(); err != nil {
				return err
			}
		}
	}
	m.at = len(m.buf)
	return m.flush()
}

// roll moves on by a byte.
func (m *matcher) roll(size int) {
	out := uint32(int32(int8(m.buf[m.at])))
	m.s1 -= out
	m.s2 -= uint32(size) * out
	if m.at+size < len(m.buf) {
		m.s1 += uint32(int32(int8(m.buf[m.at+size])))
		m.s2 += m.s1
	}
	m.at++
}

// find returns the block that stands at the present offset, or -1.
func (m *matcher) find(size int) int32 {
	i, ok := m.g.table[m.s1&0xffff|m.s2<<16]
	if !ok {
		return -1
	}
	var sum []byte
	for tries := 0; i >= 0 && tries < 1000; i, tries = m.g.sums[i].next, tries+1 {
		if m.g.size(i) != int64(size) {
			continue
		}
		if sum == nil {
			sum = m.s.strong(m.buf[m.at : m.at+size])
		}
		if bytes.Equal(sum[:m.g.strong], m.g.sums[i].strong) {
			return i
		}
	}
	return -1
}

// flush sends what stands before the present offset as it is.
func (m *matcher) flush() error {
	for m.start < m.at {
		n := min(m.at-m.start, chunk)
		m.s.literal += int64(n)
		if err := m.t.literal(m.s.w, m.buf[m.start:m.start+n]); err != nil {
			return err
		}
		m.start += n
	}
	return nil
}
