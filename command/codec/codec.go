// Package codec reads and writes compressed streams for the commands that meet them: gzip, bzip2, xz, lzma and zstd.
//
// A format is recognized by its first bytes. Readers go through concatenated members, as the tools do, report what
// follows the last one as ErrTrailing, and hold a bounded amount of memory, whatever a header asks for: MaxWindow for
// the dictionary of xz, lzma and zstd. Nothing here starts goroutines.
package codec

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"strings"

	dsbzip2 "github.com/dsnet/compress/bzip2"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
	"github.com/ulikunitz/xz/lzma"
)

// Format is a kind of compressed stream.
type Format uint8

// The formats. None is data that isn't compressed.
const (
	None Format = iota
	Gzip
	Bzip2
	Xz
	Lzma
	Zstd
)

// String returns the name of the format's tool.
func (f Format) String() string {
	return [...]string{"none", "gzip", "bzip2", "xz", "lzma", "zstd"}[f]
}

// MaxWindow bounds the dictionary that a stream may ask for; xz -9 needs 64 MiB, zstd without --long at most 8.
const MaxWindow = 128 << 20

// Errors of readers, beside io.ErrUnexpectedEOF for a stream cut short.
var (
	ErrFormat   = errors.New("not in this format")
	ErrTrailing = errors.New("trailing garbage")
	ErrChecksum = errors.New("checksum error")
	ErrCorrupt  = errors.New("corrupt data")
	ErrMemory   = errors.New("memory usage limit reached")
	ErrOptions  = errors.New("unsupported options")
)

// HeadSize is how many bytes Detect wants to see.
const HeadSize = 13

var magics = []struct {
	f     Format
	magic string
}{{Gzip, "\x1f\x8b"}, {Bzip2, "BZh"}, {Xz, "\xfd7zXZ\x00"}, {Zstd, "\x28\xb5\x2f\xfd"}}

// Detect recognizes a format by the first bytes of a stream.
func Detect(head []byte) Format {
	for _, m := range magics {
		if bytes.HasPrefix(head, []byte(m.magic)) {
			return m.f
		}
	}
	if len(head) >= 4 && head[0] >= 0x50 && head[0] <= 0x5f && string(head[1:4]) == "\x2a\x4d\x18" {
		return Zstd // a skippable frame
	}
	// An lzma stream has no magic: properties 0x5d, a dictionary size of 2^n or 2^n+2^(n-1), and a size of which the
	// upper bytes are all zero or all ones.
	if len(head) >= 13 && head[0] == 0x5d && head[1] == 0 && head[2] == 0 && (head[12] == 0 || head[12] == 0xff) {
		return Lzma
	}
	return None
}

// Counter counts the bytes read through it; it is a ByteReader, so that decoders don't read ahead of it.
type Counter struct {
	*bufio.Reader
	N int64
}

// NewCounter returns a counter of what is read from r.
func NewCounter(r io.Reader) *Counter { return &Counter{Reader: bufio.NewReaderSize(r, 64<<10)} }

// Read implements io.Reader.
func (c *Counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.N += int64(n)
	return n, err
}

// ReadByte implements io.ByteReader.
func (c *Counter) ReadByte() (byte, error) {
	b, err := c.Reader.ReadByte()
	if err == nil {
		c.N++
	}
	return b, err
}

// NewReader returns the decompressed contents of a stream. Its errors are those above and those of r.
func NewReader(f Format, r *Counter) (io.ReadCloser, error) {
	switch f {
	case Gzip:
		return NewGzipReader(r)
	case Bzip2:
		if head, _ := r.Peek(3); string(head) != "BZh" {
			return nil, formatOrShort(head)
		}
		return io.NopCloser(&bzReader{r: bzip2.NewReader(r)}), nil
	case Xz:
		return NewXzReader(r)
	case Lzma:
		z, err := lzma.ReaderConfig{DictCap: MaxWindow}.NewReader(r)
		if err != nil {
			return nil, lzmaError(err)
		}
		return io.NopCloser(&errReader{z, lzmaError}), nil
	case Zstd:
		head, _ := r.Peek(4)
		if Detect(head) != Zstd {
			return nil, formatOrShort(head)
		}
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(MaxWindow))
		if err != nil {
			return nil, zstdError(err)
		}
		return &zstdReader{&errReader{z, zstdError}, z}, nil
	}
	return io.NopCloser(r), nil
}

func formatOrShort(head []byte) error {
	if len(head) == 0 {
		return io.ErrUnexpectedEOF
	}
	return ErrFormat
}

// NewWriter returns a writer that compresses into w. level is 1 to 9 (0 for xz, too; 1 to 19 for zstd); negative is
// the tool's default. Close ends the stream, not w.
func NewWriter(f Format, w io.Writer, level int) (io.WriteCloser, error) {
	switch f {
	case Gzip:
		return NewGzipWriter(w, level, GzipHeader{})
	case Bzip2:
		if level < 1 {
			level = 9
		}
		return dsbzip2.NewWriter(w, &dsbzip2.WriterConfig{Level: level})
	case Xz:
		return xz.WriterConfig{DictCap: xzDict(level)}.NewWriter(w)
	case Lzma:
		return lzma.WriterConfig{DictCap: xzDict(level), EOSMarker: true}.NewWriter(w)
	case Zstd:
		if level < 1 {
			level = 3
		}
		return zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level)), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	}
	return nil, fmt.Errorf("codec: %s: %w", f, ErrOptions)
}

// xzDict is the dictionary of a preset.
func xzDict(level int) int {
	if level < 0 || level > 9 {
		level = 6
	}
	return []int{256 << 10, 1 << 20, 2 << 20, 4 << 20, 4 << 20, 8 << 20, 8 << 20, 16 << 20, 32 << 20, 64 << 20}[level]
}

// errReader translates the errors of a decoder.
type errReader struct {
	r         io.Reader
	translate func(error) error
}

func (e *errReader) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if err != nil && err != io.EOF {
		err = e.translate(err)
	}
	return n, err
}

func lzmaError(err error) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return io.ErrUnexpectedEOF
	case strings.Contains(err.Error(), "dict"):
		return ErrMemory
	case strings.HasPrefix(err.Error(), "lzma:"):
		return ErrCorrupt
	}
	return err
}

type zstdReader struct {
	*errReader
	z *zstd.Decoder
}

func (z *zstdReader) Close() error { z.z.Close(); return nil }

func zstdError(err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return io.ErrUnexpectedEOF
	case errors.Is(err, zstd.ErrMagicMismatch):
		return ErrFormat
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded), errors.Is(err, zstd.ErrWindowSizeTooSmall):
		return ErrMemory
	case errors.Is(err, zstd.ErrCRCMismatch):
		return ErrChecksum
	case errors.Is(err, zstd.ErrUnknownDictionary):
		return ErrOptions
	}
	return fmt.Errorf("%w: %w", ErrCorrupt, err)
}

// bzReader tells apart what the standard library says about bzip2 streams.
type bzReader struct{ r io.Reader }

func (b *bzReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	var bad bzip2.StructuralError
	if errors.As(err, &bad) {
		switch text := string(bad); {
		case strings.Contains(text, "continuation"):
			err = ErrTrailing
		case strings.Contains(text, "checksum"):
			err = ErrChecksum
		case strings.Contains(text, "bad magic value"):
			err = ErrFormat
		default:
			err = ErrCorrupt
		}
	}
	return n, err
}
