package rsync

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/flate"
)

// tokens is how a file's literal data and references to blocks are written.
type tokens interface {
	literal(w *writer, p []byte) error
	block(w *writer, i int32, data []byte) error
	end(w *writer) error
}

// piece is what a file is made of on the receiving side: literal data, or the block of an index.
type piece struct {
	data  []byte
	block int32
	end   bool
}

// source reads the pieces of a file. The receiver tells it the data of each block that it copied.
type source interface {
	next(r *reader) (piece, error)
	copied(data []byte) error
}

func (o *options) tokens() tokens {
	if o.compress {
		return &deflateTokens{}
	}
	return plainTokens{}
}

func (o *options) source() source {
	if o.compress {
		return &inflateSource{insert: !o.compressX}
	}
	return plainSource{}
}

// plainTokens writes data with its length before it, and blocks as negative numbers.
type plainTokens struct{}

func (plainTokens) literal(w *writer, p []byte) error {
	w.int(int32(len(p)))
	_, err := w.Write(p)
	return err
}

func (plainTokens) block(w *writer, i int32, _ []byte) error {
	w.int(-(i + 1))
	return nil
}

func (plainTokens) end(w *writer) error {
	w.int(0)
	return nil
}

type plainSource struct{}

func (plainSource) next(r *reader) (piece, error) {
	n := r.int()
	switch {
	case r.err != nil:
		return piece{}, r.err
	case n == 0:
		return piece{end: true}, nil
	case n < 0:
		return piece{block: -(n + 1)}, nil
	case n > chunk*4:
		return piece{}, fmt.Errorf("invalid token: %w", protocolError)
	}
	b := r.bytes(int(n))
	return piece{data: b}, r.err
}

func (plainSource) copied([]byte) error { return nil }

// Marks of compressed tokens.
const (
	zEnd      = 0
	zLong     = 0x20
	zRunLong  = 0x21
	zData     = 0x40
	zRel      = 0x80
	zRunRel   = 0xc0
	maxZData  = 16383
	syncBytes = 4 // of 00 00 ff ff, which aren't sent
)

// deflateTokens writes tokens of -z. Each run of literals is deflated without reference to what was sent before, so the
// receiver's window doesn't matter: that costs some bytes and no memory.
type deflateTokens struct {
	pending  bytes.Buffer
	z        *flate.Writer
	out      bytes.Buffer
	last     int32 // block written last
	runStart int32 // first of a run of blocks not written yet
	runEnd   int32
	run      bool
}

func (d *deflateTokens) literal(w *writer, p []byte) error {
	d.pending.Write(p)
	if d.pending.Len() >= 4*chunk {
		if err := d.blocks(w); err != nil {
			return err
		}
		return d.data(w)
	}
	return nil
}

// data writes the pending literals.
func (d *deflateTokens) data(w *writer) error {
	if d.pending.Len() == 0 {
		return nil
	}
	d.out.Reset()
	var err error
	if d.z == nil {
		if d.z, err = flate.NewWriter(&d.out, flate.DefaultCompression); err != nil {
			return err
		}
	} else {
		d.z.Reset(&d.out)
	}
	if _, err := d.z.Write(d.pending.Bytes()); err != nil {
		return err
	}
	if err := d.z.Flush(); err != nil {
		return err
	}
	d.pending.Reset()
	out := d.out.Bytes()
	out = out[:max(len(out)-syncBytes, 0)]
	for len(out) > 0 {
		n := min(len(out), maxZData)
		w.byte(zData | byte(n>>8))
		w.byte(byte(n))
		if _, err := w.Write(out[:n]); err != nil {
			return err
		}
		out = out[n:]
	}
	return nil
}

// blocks writes the pending run of blocks.
func (d *deflateTokens) blocks(w *writer) error {
	if !d.run {
		return nil
	}
	d.run = false
	n := d.runEnd - d.runStart
	r := d.runStart - d.last
	if r >= 0 && r <= 63 {
		if n == 0 {
			w.byte(zRel | byte(r))
		} else {
			w.byte(zRunRel | byte(r))
		}
	} else {
		if n == 0 {
			w.byte(zLong)
		} else {
			w.byte(zRunLong)
		}
		w.int(d.runStart)
	}
	if n != 0 {
		w.byte(byte(n))
		w.byte(byte(n >> 8))
	}
	d.last = d.runEnd
	return nil
}

func (d *deflateTokens) block(w *writer, i int32, _ []byte) error {
	if d.pending.Len() > 0 {
		if err := d.blocks(w); err != nil {
			return err
		}
		if err := d.data(w); err != nil {
			return err
		}
	}
	if d.run && i == d.runEnd+1 && d.runEnd-d.runStart < 65534 {
		d.runEnd = i
		return nil
	}
	if err := d.blocks(w); err != nil {
		return err
	}
	d.run, d.runStart, d.runEnd = true, i, i
	return nil
}

func (d *deflateTokens) end(w *writer) error {
	if err := d.blocks(w); err != nil {
		return err
	}
	if err := d.data(w); err != nil {
		return err
	}
	w.byte(zEnd)
	return nil
}

// inflateSource reads tokens of -z. The stream of a file is one; its window also holds the blocks that were copied, unless
// the other side's compressor doesn't know them (insert is false).
type inflateSource struct {
	insert bool
	z      io.ReadCloser
	feed   feeder
	block  int32
	run    int32
	synced bool
	queue  []byte
}

// feeder gives the decompressor its input piece by piece; when a piece is used up it says so, and the decompressor is
// asked again after the next.
type feeder struct{ buf bytes.Buffer }

var errHungry = errors.New("no more input")

func (f *feeder) Read(p []byte) (int, error) {
	if f.buf.Len() == 0 {
		return 0, errHungry
	}
	return f.buf.Read(p)
}

func (f *feeder) ReadByte() (byte, error) {
	if f.buf.Len() == 0 {
		return 0, errHungry
	}
	return f.buf.ReadByte()
}

func (s *inflateSource) next(r *reader) (piece, error) {
	if len(s.queue) > 0 {
		n := min(len(s.queue), chunk)
		p := s.queue[:n]
		s.queue = s.queue[n:]
		return piece{data: p}, nil
	}
	if s.run > 0 {
		s.run--
		s.block++
		return piece{block: s.block}, nil
	}
	flag := r.byte()
	if r.err != nil {
		return piece{}, r.err
	}
	switch {
	case flag&0xc0 == zData:
		n := int(flag&0x3f)<<8 | int(r.byte())
		return s.data(r, r.bytes(n))
	case flag == zEnd:
		return piece{end: true}, nil
	case flag&zRel != 0:
		s.block += int32(flag & 0x3f)
		if flag&0xc0 == zRunRel {
			s.run = int32(r.short())
		}
	case flag == zLong || flag == zRunLong:
		s.block = r.int()
		if flag == zRunLong {
			s.run = int32(r.short())
		}
	default:
		return piece{}, fmt.Errorf("invalid token: %w", protocolError)
	}
	if s.block < 0 {
		return piece{}, fmt.Errorf("invalid token: %w", protocolError)
	}
	return piece{block: s.block}, r.err
}

// data inflates a run of literals: all pieces up to the next other token belong together, and end with a flush whose
// last bytes aren't sent.
func (s *inflateSource) data(r *reader, p []byte) (piece, error) {
	if r.err != nil {
		return piece{}, r.err
	}
	all := append([]byte(nil), p...)
	for {
		next, err := r.peek()
		if err != nil {
			return piece{}, err
		}
		if next&0xc0 != zData {
			break
		}
		flag := r.byte()
		n := int(flag&0x3f)<<8 | int(r.byte())
		all = append(all, r.bytes(n)...)
		if r.err != nil {
			return piece{}, r.err
		}
		if len(all) > maxRun {
			return piece{}, fmt.Errorf("literals too long: %w", protocolError)
		}
	}
	all = append(all, 0, 0, 0xff, 0xff)
	out, err := s.inflate(all)
	if err != nil {
		return piece{}, err
	}
	s.queue = out
	return s.next(r)
}

// maxRun bounds the compressed bytes of one run of literals.
const maxRun = 256 << 20

// inflate gives the decompressor input that ends at a byte, and returns all that comes out.
func (s *inflateSource) inflate(in []byte) ([]byte, error) {
	s.feed.buf.Write(in)
	if s.z == nil {
		s.z = flate.NewReader(&s.feed)
	}
	var out bytes.Buffer
	_, err := io.Copy(&limited{&out, maxRun}, s.z)
	if err != nil && !errors.Is(err, errHungry) {
		return nil, fmt.Errorf("inflate: %w", err)
	}
	return out.Bytes(), nil
}

// limited is a writer that takes only so much.
type limited struct {
	b    *bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, errors.New("too much data")
	}
	return l.b.Write(p)
}

// copied puts a block into the decompressor's window, as stored data.
func (s *inflateSource) copied(data []byte) error {
	if !s.insert {
		return nil
	}
	for len(data) > 0 {
		n := min(len(data), 0xffff)
		head := []byte{0, byte(n), byte(n >> 8), ^byte(n), ^byte(n >> 8)}
		if _, err := s.inflate(append(head, data[:n]...)); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}
