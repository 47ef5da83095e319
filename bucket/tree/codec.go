package tree

import (
	"bytes"
	"encoding/binary"
	"sync"

	"agentrun.dev/errs"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"
)

// A stored node is
//
//	version  byte      1
//	flags    byte      bit 0: the body is compressed with zstd
//	level    byte
//	length   uvarint   of the body before compression
//	body
//	checksum 8 bytes   xxHash64 of everything before it, little-endian
//
// and its body is
//
//	entries  uvarint
//	data     uvarint   bytes of all keys and values together
//	entry …            shared uvarint, rest uvarint, [leaf: value length uvarint], the key's last rest bytes, then
//	                   a leaf: the value; else: hash, id uvarint, count uvarint, bytes uvarint
//
// where shared is the length of the prefix that the key has in common with the key before it.
const (
	nodeVersion = 1
	flagZstd    = 1
	maxData     = 1 << 20 // bytes of a node's keys and values: a hostile node can't ask for more
	maxBody     = 2 << 20
	checksumLen = 8
)

func newCompressor() *zstd.Encoder {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false),
		zstd.WithWindowSize(128<<10), zstd.WithLowerEncoderMem(true), zstd.WithSingleSegment(true))
	if err != nil {
		panic(err) // only for options out of range
	}
	return z
}

// codec holds the memory that coding a node needs beside its result.
type codec struct {
	hash *hasher
	zip  *zstd.Decoder
	buf  []byte
}

// codecs spares Decode, which has no receiver, the making of a decompressor for each node.
var codecs = sync.Pool{New: func() any {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(maxBody), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(err) // only for options out of range
	}
	return &codec{hash: newHasher(), zip: z}
}}

// encode returns the stored form of a node in a slice of its own. scratch is reused for the body.
func encode(n *Node, z *zstd.Encoder, scratch []byte) (encoded, body []byte) {
	b := binary.AppendUvarint(scratch[:0], uint64(n.Len()))
	b = binary.AppendUvarint(b, uint64(len(n.data)))
	var prev []byte
	for i := range n.Len() {
		key := n.Key(i)
		shared := commonPrefix(prev, key)
		b = binary.AppendUvarint(b, uint64(shared))
		b = binary.AppendUvarint(b, uint64(len(key)-shared))
		if n.level == 0 {
			value := n.Value(i)
			b = binary.AppendUvarint(b, uint64(len(value)))
			b = append(b, key[shared:]...)
			b = append(b, value...)
		} else {
			k := &n.kids[i]
			b = append(b, key[shared:]...)
			b = append(b, k.hash[:]...)
			b = binary.AppendUvarint(b, uint64(k.id))
			b = binary.AppendUvarint(b, k.count)
			b = binary.AppendUvarint(b, k.bytes)
		}
		prev = key
	}
	head := binary.AppendUvarint([]byte{nodeVersion, flagZstd, n.level}, uint64(len(b)))
	out := make([]byte, len(head), len(head)+len(b)+checksumLen)
	copy(out, head)
	out = z.EncodeAll(b, out)
	if len(out) > len(head)+len(b)-len(b)/16 { // not worth decompressing
		out = append(out[:len(head)], b...)
		out[1] &^= flagZstd
	}
	return binary.LittleEndian.AppendUint64(out, xxhash.Sum64(out)), b
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n && binary.LittleEndian.Uint64(a[i:]) == binary.LittleEndian.Uint64(b[i:]); i += 8 {
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

func corrupt(text string) error { return errs.Msg(errs.Corrupt, "decode node", "", text) }

// Decode decodes a stored node and computes its hash. It copies what it keeps. Anything but the unharmed output of this
// package is an errs.Corrupt.
func Decode(encoded []byte) (*Node, error) {
	if len(encoded) < 3+1+checksumLen || encoded[0] != nodeVersion {
		return nil, corrupt("unknown format")
	}
	rest := encoded[:len(encoded)-checksumLen]
	if xxhash.Sum64(rest) != binary.LittleEndian.Uint64(encoded[len(rest):]) {
		return nil, corrupt("wrong checksum")
	}
	c := codecs.Get().(*codec)
	defer codecs.Put(c)
	return c.decode(rest)
}

func (c *codec) decode(b []byte) (*Node, error) {
	flags, level := b[1], b[2]
	d := reader{b: b[3:]}
	length := d.uvarint()
	if flags&^flagZstd != 0 || level > maxLevel || d.bad || length > maxBody {
		return nil, corrupt("malformed header")
	}
	if flags&flagZstd != 0 {
		if uint64(cap(c.buf)) < length {
			c.buf = make([]byte, length, length+length/4)
		}
		body, err := c.zip.DecodeAll(d.b, c.buf[:0])
		if err != nil {
			return nil, errs.New(errs.Corrupt, "decode node", "", err)
		}
		d.b = body
	}
	if uint64(len(d.b)) != length {
		return nil, corrupt("wrong length")
	}
	n, err := decodeBody(d, level)
	if err != nil {
		return nil, err
	}
	n.hash = c.hash.sum(n)
	return n, nil
}

// decodeBody decodes the entries, and checks whatever binary searches and descents rely on.
func decodeBody(d reader, level uint8) (*Node, error) {
	count, size := d.uvarint(), d.uvarint()
	least := uint64(3) // bytes of the smallest entry
	if level > 0 {
		least = 2 + 32 + 3
	}
	if d.bad || count == 0 || count > uint64(len(d.b))/least || size > maxData {
		return nil, corrupt("malformed body")
	}
	n := &Node{level: level, data: make([]byte, 0, size)}
	if level == 0 {
		n.ends = make([]uint32, 0, 2*count)
	} else {
		n.ends, n.kids = make([]uint32, 0, count), make([]kid, 0, count)
	}
	var prev []byte
	for i := range count {
		shared, rest, value := d.uvarint(), d.uvarint(), uint64(0)
		if level == 0 {
			value = d.uvarint()
		}
		if d.bad || shared > uint64(len(prev)) || rest > MaxKey || shared+rest > MaxKey || value > MaxValue ||
			uint64(len(n.data))+shared+rest+value > size {
			return nil, corrupt("malformed entry")
		}
		start := len(n.data)
		suffix := d.take(rest)
		// Both have the first shared bytes in common: the suffixes decide the order.
		if i > 0 && bytes.Compare(prev[shared:], suffix) >= 0 {
			return nil, corrupt("keys out of order")
		}
		n.data = append(append(n.data, prev[:shared]...), suffix...)
		prev = n.data[start:]
		n.ends = append(n.ends, uint32(len(n.data)))
		if level == 0 {
			n.data = append(n.data, d.take(value)...)
			n.ends = append(n.ends, uint32(len(n.data)))
			continue
		}
		var k kid
		copy(k.hash[:], d.take(32))
		k.id, k.count, k.bytes = ID(d.uvarint()), d.uvarint(), d.uvarint()
		if k.id == 0 {
			d.bad = true
		}
		n.kids = append(n.kids, k)
	}
	if d.bad || len(d.b) != 0 || uint64(len(n.data)) != size {
		return nil, corrupt("malformed body")
	}
	return n, nil
}

// reader takes fields off a byte slice. Once one is missing, bad is set and all that follow are empty.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) uvarint() uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 {
		v := r.b[0]
		r.b = r.b[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.b, r.bad = nil, true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.b, r.bad = nil, true
		return nil
	}
	p := r.b[:n]
	r.b = r.b[n:]
	return p
}
