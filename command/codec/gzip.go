package codec

import (
	"bufio"
	"errors"
	"hash/crc32"
	"io"
	"time"

	"github.com/klauspost/compress/flate"
)

// GzipHeader is what a gzip member says about its file.
type GzipHeader struct {
	Name    string    // without directories; empty for none
	ModTime time.Time // zero for none
}

// maxGzipName bounds the strings of a header.
const maxGzipName = 64 << 10

// GzipReader reads concatenated gzip members.
type GzipReader struct {
	Header GzipHeader // of the first member
	CRC    uint32     // of the last member
	Extra  int64      // bytes of all headers and trailers
	r      *Counter
	z      io.ReadCloser
	crc    uint32
	size   uint32
	first  bool
	err    error
}

// NewGzipReader reads the first header.
func NewGzipReader(r *Counter) (*GzipReader, error) {
	g := &GzipReader{r: r, first: true}
	if err := g.member(); err != nil {
		return nil, err
	}
	g.first = false
	return g, nil
}

// member reads a header; ErrFormat if there is none.
func (g *GzipReader) member() error {
	start := g.r.N
	head, err := g.r.Peek(2)
	if len(head) < 2 || head[0] != 0x1f || head[1] != 0x8b {
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(head) == 0 || len(head) == 1 && head[0] == 0x1f {
			return io.ErrUnexpectedEOF
		}
		return ErrFormat
	}
	var h [10]byte
	if _, err := io.ReadFull(g.r, h[:]); err != nil {
		return short(err)
	}
	if h[2] != 8 || h[3]&0xe0 != 0 {
		return ErrOptions
	}
	if h[3]&4 != 0 { // extra field
		var n [2]byte
		if _, err := io.ReadFull(g.r, n[:]); err != nil {
			return short(err)
		}
		if _, err := io.CopyN(io.Discard, g.r, int64(n[0])|int64(n[1])<<8); err != nil {
			return short(err)
		}
	}
	var name string
	if h[3]&8 != 0 {
		if name, err = g.text(); err != nil {
			return err
		}
	}
	if h[3]&16 != 0 { // comment
		if _, err = g.text(); err != nil {
			return err
		}
	}
	if h[3]&2 != 0 { // checksum of the header
		if _, err := io.CopyN(io.Discard, g.r, 2); err != nil {
			return short(err)
		}
	}
	if g.first {
		g.Header.Name = name
		if t := uint32(h[4]) | uint32(h[5])<<8 | uint32(h[6])<<16 | uint32(h[7])<<24; t != 0 {
			g.Header.ModTime = time.Unix(int64(t), 0)
		}
	}
	g.Extra += g.r.N - start + 8
	g.crc, g.size = 0, 0
	if g.z == nil {
		g.z = flate.NewReader(g.r)
		return nil
	}
	return g.z.(flate.Resetter).Reset(g.r, nil)
}

// text reads a string of the header.
func (g *GzipReader) text() (string, error) {
	var b []byte
	for {
		c, err := g.r.ReadByte()
		if err != nil {
			return "", short(err)
		}
		if c == 0 {
			return string(b), nil
		}
		if b = append(b, c); len(b) > maxGzipName {
			return "", ErrCorrupt
		}
	}
}

func short(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Read implements io.Reader.
func (g *GzipReader) Read(p []byte) (int, error) {
	for g.err == nil {
		n, err := g.z.Read(p)
		g.crc = crc32.Update(g.crc, crc32.IEEETable, p[:n])
		g.size += uint32(n)
		if errors.Is(err, io.EOF) && n == 0 {
			err = g.next()
		} else if errors.Is(err, io.EOF) {
			err = nil // comes again
		}
		g.err = gzipError(err)
		if n > 0 {
			return n, nil
		}
	}
	return 0, g.err
}

// next checks the trailer and goes on to the next member.
func (g *GzipReader) next() error {
	var t [8]byte
	if _, err := io.ReadFull(g.r, t[:]); err != nil {
		return short(err)
	}
	le := func(b []byte) uint32 { return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24 }
	g.CRC = g.crc
	if le(t[:4]) != g.crc {
		return ErrChecksum
	}
	if le(t[4:]) != g.size {
		return ErrLength
	}
	head, _ := g.r.Peek(2)
	if len(head) == 2 && head[0] == 0x1f && head[1] == 0x8b {
		return g.member()
	}
	// Zeros up to the end are the padding of a tape's block.
	for {
		c, err := g.r.ReadByte()
		if err != nil {
			return err
		}
		if c != 0 {
			return ErrTrailing
		}
	}
}

// ErrLength says that a gzip member's length isn't what its trailer says.
var ErrLength = errors.New("length error")

func gzipError(err error) error {
	var bad flate.CorruptInputError
	if errors.As(err, &bad) {
		return ErrCorrupt
	}
	return err
}

// Close implements io.Closer.
func (g *GzipReader) Close() error { return g.z.Close() }

// GzipWriter writes one gzip member.
type GzipWriter struct {
	w    *bufio.Writer
	z    io.WriteCloser
	crc  uint32
	size uint32
	// HeaderSize is how many bytes header and trailer take.
	HeaderSize int64
}

// NewGzipWriter writes the header as gzip does.
func NewGzipWriter(w io.Writer, level int, h GzipHeader) (*GzipWriter, error) {
	if level < 1 || level > 9 {
		level = 6
	}
	g := &GzipWriter{w: bufio.NewWriter(w)}
	b := []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3}
	if t := h.ModTime.Unix(); !h.ModTime.IsZero() && t > 0 && t < 1<<32 {
		b[4], b[5], b[6], b[7] = byte(t), byte(t>>8), byte(t>>16), byte(t>>24)
	}
	switch level {
	case 1:
		b[8] = 4
	case 9:
		b[8] = 2
	}
	if h.Name != "" {
		b[3] = 8
		b = append(append(b, h.Name...), 0)
	}
	g.HeaderSize = int64(len(b)) + 8
	if _, err := g.w.Write(b); err != nil {
		return nil, err
	}
	g.z = NewDeflater(g.w, level)
	return g, nil
}

// Write implements io.Writer.
func (g *GzipWriter) Write(p []byte) (int, error) {
	g.crc = crc32.Update(g.crc, crc32.IEEETable, p)
	g.size += uint32(len(p))
	return g.z.Write(p)
}

// Close writes the trailer.
func (g *GzipWriter) Close() error {
	if err := g.z.Close(); err != nil {
		return err
	}
	for _, v := range []uint32{g.crc, g.size} {
		g.w.Write([]byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24)})
	}
	return g.w.Flush()
}
