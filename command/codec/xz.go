package codec

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"
	"math"
	"strconv"

	"github.com/ulikunitz/xz/lzma"
)

// xzReader reads the container format of xz: streams of blocks. It reads headers itself, since a block's header says
// how much memory the decoder takes.
type xzReader struct {
	r       *Counter
	check   byte
	sum     hash.Hash
	z       io.Reader
	block   int64  // where the block began
	size    uint64 // of the block's contents as read
	want    uint64 // as its header says; MaxUint64 if it doesn't
	records [][2]uint64
	err     error
}

var xzMagic = []byte("\xfd7zXZ\x00")

// maxBlocks bounds the records of a stream that are kept to be compared with its index.
const maxBlocks = 1 << 20

// NewXzReader reads the first stream's header.
func NewXzReader(r *Counter) (io.ReadCloser, error) {
	x := &xzReader{r: r}
	head, _ := r.Peek(6)
	if !bytes.Equal(head, xzMagic) {
		if len(head) < 6 && bytes.HasPrefix(xzMagic, head) {
			return nil, io.ErrUnexpectedEOF
		}
		return nil, ErrFormat
	}
	if err := x.streamHeader(); err != nil {
		return nil, err
	}
	return io.NopCloser(x), nil
}

func (x *xzReader) streamHeader() error {
	var h [12]byte
	if _, err := io.ReadFull(x.r, h[:]); err != nil {
		return short(err)
	}
	if !bytes.Equal(h[:6], xzMagic) {
		return ErrFormat
	}
	if crc32.ChecksumIEEE(h[6:8]) != binary.LittleEndian.Uint32(h[8:]) {
		return ErrCorrupt
	}
	if h[6] != 0 || h[7] > 15 {
		return ErrOptions
	}
	x.check, x.records = h[7], x.records[:0]
	return nil
}

// newCheck returns the hash of a check's id, and its size in the file.
func newCheck(id byte) (hash.Hash, int) {
	size := []int{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}[id&15]
	switch id {
	case 1:
		return crc32.NewIEEE(), size
	case 4:
		return crc64.New(crc64.MakeTable(crc64.ECMA)), size
	case 10:
		return sha256.New(), size
	}
	return nil, size
}

// Read implements io.Reader.
func (x *xzReader) Read(p []byte) (int, error) {
	for x.err == nil {
		if x.z == nil {
			x.err = x.next()
			continue
		}
		n, err := x.z.Read(p)
		x.size += uint64(n)
		if x.sum != nil {
			x.sum.Write(p[:n])
		}
		if errors.Is(err, io.EOF) {
			x.z, err = nil, x.endBlock()
		} else if err != nil {
			err = lzmaError(err)
		}
		x.err = err
		if n > 0 {
			return n, nil
		}
	}
	return 0, x.err
}

// next begins a block, or reads the index and begins the next stream.
func (x *xzReader) next() error {
	x.block = x.r.N
	n, err := x.r.ReadByte()
	if err != nil {
		return short(err)
	}
	if n == 0 {
		if err := x.index(); err != nil {
			return err
		}
		return x.nextStream()
	}
	h := make([]byte, int(n)*4+4)
	h[0] = n
	if _, err := io.ReadFull(x.r, h[1:]); err != nil {
		return short(err)
	}
	body := h[:len(h)-4]
	if crc32.ChecksumIEEE(body) != binary.LittleEndian.Uint32(h[len(body):]) {
		return ErrCorrupt
	}
	dict, err := x.blockHeader(body[1:])
	if err != nil {
		return err
	}
	if x.want < dict {
		dict = max(x.want, lzma.MinDictCap)
	}
	x.sum, _ = newCheck(x.check)
	x.size = 0
	x.z, err = lzma.Reader2Config{DictCap: int(dict)}.NewReader2(x.r)
	if err != nil {
		return lzmaError(err)
	}
	return nil
}

// blockHeader reads the flags, sizes and filters of a block, and returns the size of its dictionary.
func (x *xzReader) blockHeader(b []byte) (dict uint64, err error) {
	flags := b[0]
	b = b[1:]
	x.want = math.MaxUint64
	number := func() (v uint64) {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			err = ErrCorrupt
			return 0
		}
		b = b[n:]
		return v
	}
	if flags&0x3c != 0 {
		return 0, ErrOptions
	}
	if flags&0x40 != 0 {
		number()
	}
	if flags&0x80 != 0 {
		x.want = number()
	}
	if err != nil {
		return 0, err
	}
	if flags&3 != 0 || number() != 0x21 || number() != 1 || len(b) == 0 {
		return 0, ErrOptions // only LZMA2, without filters before it
	}
	bits := b[0]
	if bits > 40 {
		return 0, ErrOptions
	}
	dict = uint64(2|bits&1) << (bits/2 + 11)
	if bits == 40 {
		dict = math.MaxUint32
	}
	dict = max(dict, lzma.MinDictCap)
	if dict > MaxWindow {
		return 0, ErrMemory
	}
	return dict, nil
}

// endBlock reads padding and check.
func (x *xzReader) endBlock() error {
	if x.want != math.MaxUint64 && x.want != x.size {
		return ErrCorrupt
	}
	unpadded := x.r.N - x.block
	for (x.r.N-x.block)%4 != 0 {
		if c, err := x.r.ReadByte(); err != nil {
			return short(err)
		} else if c != 0 {
			return ErrCorrupt
		}
	}
	_, size := newCheck(x.check)
	sum := make([]byte, size)
	if _, err := io.ReadFull(x.r, sum); err != nil {
		return short(err)
	}
	if x.sum != nil {
		got := x.sum.Sum(nil)
		if x.check != 10 { // the checks by CRC are little endian
			for i, j := 0, len(got)-1; i < j; i, j = i+1, j-1 {
				got[i], got[j] = got[j], got[i]
			}
		}
		if !bytes.Equal(got, sum) {
			return ErrChecksum
		}
	}
	if x.records = append(x.records, [2]uint64{uint64(unpadded) + uint64(size), x.size}); len(x.records) > maxBlocks {
		return ErrMemory
	}
	return nil
}

// index reads the index, whose first byte is read, and the footer, and compares them with the blocks.
func (x *xzReader) index() error {
	sum := crc32.NewIEEE()
	sum.Write([]byte{0})
	tee := &teeByte{x.r, sum}
	n, err := binary.ReadUvarint(tee)
	if err != nil {
		return short(err)
	}
	if n != uint64(len(x.records)) {
		return ErrCorrupt
	}
	for _, want := range x.records {
		for _, w := range want {
			v, err := binary.ReadUvarint(tee)
			if err != nil {
				return short(err)
			}
			if v != w {
				return ErrCorrupt
			}
		}
	}
	for (x.r.N-x.block)%4 != 0 {
		if c, err := tee.ReadByte(); err != nil {
			return short(err)
		} else if c != 0 {
			return ErrCorrupt
		}
	}
	size := x.r.N - x.block
	var f [16]byte // the index's checksum, then the footer
	if _, err := io.ReadFull(x.r, f[:]); err != nil {
		return short(err)
	}
	le := binary.LittleEndian
	if le.Uint32(f[:]) != sum.Sum32() || le.Uint32(f[4:]) != crc32.ChecksumIEEE(f[8:14]) || string(f[14:]) != "YZ" ||
		(int64(le.Uint32(f[8:]))+1)*4 != size+4 || f[13] != x.check {
		return ErrCorrupt
	}
	return nil
}

// nextStream skips padding, and reads the next stream's header if there is one.
func (x *xzReader) nextStream() error {
	for {
		head, err := x.r.Peek(6)
		if len(head) == 0 {
			return err
		}
		if len(head) >= 4 && string(head[:4]) == "\x00\x00\x00\x00" {
			x.r.Discard(4)
			x.r.N += 4
			continue
		}
		if !bytes.Equal(head, xzMagic) {
			if rest, _ := x.r.Peek(12); len(rest) < 12 {
				return io.ErrUnexpectedEOF
			}
			return ErrCorrupt
		}
		return x.streamHeader()
	}
}

type teeByte struct {
	r   io.ByteReader
	sum hash.Hash
}

func (t *teeByte) ReadByte() (byte, error) {
	c, err := t.r.ReadByte()
	if err == nil {
		t.sum.Write([]byte{c})
	}
	return c, err
}

// XzStream describes one stream of an xz file.
type XzStream struct {
	Check          byte
	Blocks         int
	Size, Contents uint64 // in the file, without padding; decompressed
	Padding        uint64
	Records        [][2]uint64 // of the blocks: unpadded size, size of the contents
}

// CheckName names an integrity check as xz --list does.
func CheckName(id byte) string {
	switch id {
	case 0:
		return "None"
	case 1:
		return "CRC32"
	case 4:
		return "CRC64"
	case 10:
		return "SHA-256"
	}
	return "Unknown-" + strconv.Itoa(int(id))
}

// XzList reads the footers and indices of an xz file of the given size, from its end.
func XzList(r io.ReaderAt, size int64) ([]XzStream, error) {
	var out []XzStream
	le := binary.LittleEndian
	for pos := size; pos > 0; {
		s := XzStream{}
		var f [12]byte
		for {
			if pos < 12 {
				return nil, ErrCorrupt
			}
			if _, err := r.ReadAt(f[:], pos-12); err != nil {
				return nil, short(err)
			}
			if le.Uint32(f[8:]) != 0 {
				break
			}
			pos -= 4
			s.Padding += 4
		}
		if string(f[10:]) != "YZ" || le.Uint32(f[:]) != crc32.ChecksumIEEE(f[4:10]) {
			return nil, ErrFormat
		}
		s.Check = f[9]
		n := (int64(le.Uint32(f[4:])) + 1) * 4
		if n > pos-24 || n > 64<<20 {
			return nil, ErrCorrupt
		}
		b := make([]byte, n)
		if _, err := r.ReadAt(b, pos-12-n); err != nil {
			return nil, short(err)
		}
		if b[0] != 0 || crc32.ChecksumIEEE(b[:n-4]) != le.Uint32(b[n-4:]) {
			return nil, ErrCorrupt
		}
		d := bytes.NewReader(b[1 : n-4])
		count, err := binary.ReadUvarint(d)
		if err != nil || count > maxBlocks {
			return nil, ErrCorrupt
		}
		total := uint64(n) + 24
		for range count {
			a, err1 := binary.ReadUvarint(d)
			c, err2 := binary.ReadUvarint(d)
			if err1 != nil || err2 != nil || a > uint64(size) {
				return nil, ErrCorrupt
			}
			s.Records = append(s.Records, [2]uint64{a, c})
			total += (a + 3) &^ 3
			s.Contents += c
		}
		s.Blocks, s.Size = int(count), total
		if total > uint64(pos) {
			return nil, ErrCorrupt
		}
		pos -= int64(total)
		if len(out) > maxBlocks {
			return nil, ErrMemory
		}
		out = append([]XzStream{s}, out...)
	}
	if len(out) == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	return out, nil
}
