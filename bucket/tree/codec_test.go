package tree

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"agentrun.dev/errs"

	"github.com/cespare/xxhash/v2"
	"github.com/zeebo/blake3"
)

// checksummed appends the checksum, which a fuzzer wouldn't find.
func checksummed(b []byte) []byte {
	return binary.LittleEndian.AppendUint64(bytes.Clone(b), xxhash.Sum64(b))
}

func sampleLeaf() *Node {
	n := new(Node)
	n.add(nil, []byte{}, kid{})
	n.add([]byte("o/a"), []byte("one"), kid{})
	n.add([]byte("o/ab"), bytes.Repeat([]byte("two "), 40), kid{})
	n.add([]byte("o/b"), nil, kid{})
	return n
}

func sampleInner() *Node {
	n := &Node{level: 2}
	n.add([]byte("o/a"), nil, kid{id: 7, count: 3, bytes: 300, hash: Hash{1, 2, 3}})
	n.add([]byte("o/b"), nil, kid{id: 1 << 40, count: 1 << 50, bytes: 1 << 60, hash: Hash{4, 5, 6}})
	return n
}

func sameNode(a, b *Node) bool {
	if a.Level() != b.Level() || a.Len() != b.Len() {
		return false
	}
	for i := range a.Len() {
		x, y := a.Child(i), b.Child(i)
		if !bytes.Equal(a.Key(i), b.Key(i)) || !bytes.Equal(a.Value(i), b.Value(i)) || x.ID != y.ID || x.Hash != y.Hash ||
			x.Count != y.Count || x.Bytes != y.Bytes || !bytes.Equal(x.MaxKey, y.MaxKey) {
			return false
		}
	}
	return true
}

func TestCodecRoundTrip(t *testing.T) {
	z := newCompressor()
	for _, n := range []*Node{sampleLeaf(), sampleInner()} {
		b, _ := encode(n, z, nil)
		got, err := Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if !sameNode(n, got) || got.Hash() != newHasher().sum(n) {
			t.Errorf("level %d came back differently", n.level)
		}
		if n.level == 0 && got.Value(0) == nil {
			t.Error("a value of no bytes came back nil")
		}
		for i := range b { // every byte matters
			c := bytes.Clone(b)
			c[i] ^= 0x20
			if _, err := Decode(c); !errs.Is(err, errs.Corrupt) {
				t.Fatalf("byte %d of %d changed: %v", i, len(b), err)
			}
		}
		for i := range b {
			if _, err := Decode(b[:i]); !errs.Is(err, errs.Corrupt) {
				t.Fatalf("cut to %d of %d bytes: %v", i, len(b), err)
			}
		}
	}
}

// plainHash computes a node's hash straight from its definition.
func plainHash(n *Node) Hash {
	var ends, data, hashes []byte
	fields := uint32(0)
	field := func(p []byte) {
		data = append(data, p...)
		ends = binary.LittleEndian.AppendUint32(ends, uint32(len(data)))
		fields++
	}
	for i := range n.Len() {
		field(n.Key(i))
		if n.Level() == 0 {
			field(n.Value(i))
		} else {
			h := n.Child(i).Hash
			hashes = append(hashes, h[:]...)
		}
	}
	head := binary.LittleEndian.AppendUint32([]byte{1, byte(n.Level())}, fields)
	return blake3.Sum256(bytes.Join([][]byte{head, ends, data, hashes}, nil))
}

// TestGolden pins the stored format: uncompressed nodes, hashes, boundaries and roots must never change for a version.
func TestGolden(t *testing.T) {
	leaf := new(Node)
	leaf.add([]byte("o/a"), []byte("one"), kid{})
	leaf.add([]byte("o/b"), []byte("2"), kid{})
	z := newCompressor()
	b, _ := encode(leaf, z, nil)
	const wantLeaf = "01000010020a0003036f2f616f6e65020101623224a33efe76e71c7d"
	if got := hex.EncodeToString(b); got != wantLeaf {
		t.Errorf("leaf\n got %s\nwant %s", got, wantLeaf)
	}
	for _, c := range []struct {
		n    *Node
		want string
	}{
		{sampleLeaf(), "ced58ef5095baaf703e7c887f81e34474ac999695a2cea6e9f09592e218f075a"},
		{sampleInner(), "a00456de962f830a3a747ace1d3587a74bcbf30916b6bb7a54f5c419ff4b8289"},
	} {
		h := newHasher().sum(c.n)
		if h != plainHash(c.n) {
			t.Errorf("hash of level %d isn't what its format says", c.n.level)
		}
		if got := hex.EncodeToString(h[:]); got != c.want {
			t.Errorf("hash of level %d\n got %s\nwant %s", c.n.level, got, c.want)
		}
	}
	var edits []Edit
	for i := range 3000 {
		edits = append(edits, Edit{Key: path(i), Value: bytes.Repeat([]byte{byte(i)}, i%300)})
	}
	s := newStore()
	root := mustApply(t, New(s, Options{HashKey: [32]byte{1, 2, 3}}), Root{}, edits, s)
	r, err := root.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	const wantRoot = "0101e3553657072113d1195f031aa6b48e04d8dbe7511956143af573c8cb2af494eb26b8178c9322"
	if got := hex.EncodeToString(r); got != wantRoot {
		t.Errorf("root\n got %s\nwant %s", got, wantRoot)
	}
	// Compressed bytes may differ between versions of the compressor; those of old ones must stay readable.
	old, err := hex.DecodeString("010100b80128b52ffd20b82d0100c40104ad010000000003036f2f616f6e650301a0016274776f2002010062015414022b640e3bfb75aff2f4d046")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := Decode(old); err != nil || !sameNode(n, sampleLeaf()) {
		t.Errorf("a stored node isn't read as what it was: %v", err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	uv := func(v ...uint64) (b []byte) {
		for _, v := range v {
			b = binary.AppendUvarint(b, v)
		}
		return b
	}
	node := func(level byte, body []byte) []byte {
		return checksummed(append(append([]byte{nodeVersion, 0, level}, uv(uint64(len(body)))...), body...))
	}
	cat := func(p ...[]byte) []byte { return bytes.Join(p, nil) }
	entry := func(k string) []byte { return cat(uv(0, uint64(len(k)), 1), []byte(k), []byte("v")) }
	if _, err := Decode(node(0, cat(uv(2, 4), entry("a"), entry("b")))); err != nil {
		t.Fatalf("a good node: %v", err)
	}
	for name, b := range map[string][]byte{
		"empty":             nil,
		"version":           checksummed([]byte{9, 0, 0, 0, 0, 0}),
		"unknown flag":      checksummed([]byte{nodeVersion, 2, 0, 0}),
		"level":             node(maxLevel+1, cat(uv(2, 4), entry("a"), entry("b"))),
		"no entries":        node(0, uv(0, 0)),
		"too many entries":  node(0, cat(uv(1<<40, 4), entry("a"))),
		"equal keys":        node(0, cat(uv(2, 4), entry("a"), entry("a"))),
		"keys out of order": node(0, cat(uv(2, 4), entry("b"), entry("a"))),
		"trailing bytes":    node(0, cat(uv(1, 2), entry("a"), []byte("x"))),
		"less data":         node(0, cat(uv(1, 3), entry("a"))),
		"more data":         node(0, cat(uv(1, 1), entry("a"))),
		"huge data":         node(0, cat(uv(1, 1<<60), entry("a"))),
		"long prefix":       node(0, cat(uv(2, 4), entry("a"), uv(2, 0, 0))),
		"long key":          node(0, cat(uv(1, MaxKey+1), uv(0, MaxKey+1, 0), make([]byte, MaxKey+1))),
		"long value":        node(0, cat(uv(1, MaxValue+1), uv(0, 0, MaxValue+1), make([]byte, MaxValue+1))),
		"overflow":          node(0, cat(uv(1, 4), uv(0, 1<<63, 1<<63), []byte("abcd"))),
		"child without id":  node(1, cat(uv(1, 1), uv(0, 1), []byte("k"), make([]byte, 32), uv(0, 1, 1))),
		"short child":       node(1, cat(uv(1, 1), uv(0, 1), []byte("k"), make([]byte, 30), uv(1, 1, 1, 1))),
		"not zstd":          checksummed([]byte{nodeVersion, flagZstd, 0, 5, 1, 2, 3, 4, 5}),
	} {
		if _, err := Decode(b); !errs.Is(err, errs.Corrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	bomb := newCompressor().EncodeAll(make([]byte, 8<<20), nil)
	head := append([]byte{nodeVersion, flagZstd, 0}, uv(maxBody)...)
	if _, err := Decode(checksummed(append(head, bomb...))); !errs.Is(err, errs.Corrupt) {
		t.Errorf("a bomb: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	z := newCompressor()
	for _, n := range []*Node{sampleLeaf(), sampleInner()} {
		b, body := encode(n, z, nil)
		f.Add(b[:len(b)-checksumLen])
		raw := binary.AppendUvarint([]byte{nodeVersion, 0, n.level}, uint64(len(body)))
		f.Add(append(raw, body...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := Decode(checksummed(b))
		if err != nil {
			if !errs.Is(err, errs.Corrupt) {
				t.Fatal(err)
			}
			return
		}
		// What is accepted can be used, and survives another round.
		for i := range n.Len() {
			if n.search(n.Key(i)) != i {
				t.Fatalf("key %d isn't found", i)
			}
		}
		again, _ := encode(n, z, nil)
		m, err := Decode(again)
		if err != nil || !sameNode(n, m) || n.Hash() != m.Hash() {
			t.Fatalf("another round: %v", err)
		}
	})
}

func TestRootBinary(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, r := range []Root{{}, {ID: 1, Hash: Hash{1}}, {ID: ID(rng.Uint64()), Hash: Hash{9, 31: 9}, Level: maxLevel, Count: 1 << 63, Bytes: 5}} {
		b, err := r.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var got Root
		if err := got.UnmarshalBinary(b); err != nil || got != r {
			t.Errorf("%+v came back as %+v, %v", r, got, err)
		}
		for _, bad := range [][]byte{nil, b[:len(b)-1], append(bytes.Clone(b), 0), append([]byte{2}, b[1:]...), append([]byte{1, 200}, b[2:]...)} {
			if err := got.UnmarshalBinary(bad); !errs.Is(err, errs.Corrupt) {
				t.Errorf("%x: %v", bad, err)
			}
		}
	}
}
