// Package tree is a persistent prolly tree: the sorted index of a forkable bucket.
//
// A tree maps byte strings to byte strings in bytewise order. A node holds a run of neighbouring entries; a leaf's entries
// are keys and values, those of an inner node are its children, each under the greatest key below it. A root names one
// immutable tree; Apply makes a new root that shares every node it didn't have to change, so keeping the old one is free.
//
// Where a node ends is decided by a keyed hash of its entries' keys and by its size so far, and by nothing else: the same
// content always has the same nodes and the same root hash, whatever the order of the writes that led to it. Two roots can
// therefore be compared by skipping what has equal hashes. Ids, which are addresses in the caller's store, take no part
// in hashes. Nodes come from a Source and go to a Sink; this package does no I/O of its own.
package tree

import (
	"bytes"
	"context"
	"encoding/binary"

	"agentrun.dev/errs"

	"github.com/klauspost/compress/zstd"
)

// ID is a node's address: allocated by the Sink, increasing, never reused. 0 is no node: the root of an empty tree.
type ID uint64

// Hash identifies content: BLAKE3-256 over keys, values and the hashes of children, never over ids or sums.
type Hash [32]byte

// Root names one immutable tree. The zero Root is the empty tree. Count and Bytes are the sums of Options.Measure.
type Root struct {
	ID           ID
	Hash         Hash
	Level        uint8 // 0: the root is a leaf
	Count, Bytes uint64
}

// Limits, which bound what a node from outside may ask for. Larger entries are an errs.TooLarge.
const (
	MaxKey   = 4 << 10  // bytes in a key
	MaxValue = 16 << 10 // bytes in a value
	maxLevel = 60       // every inner node but a level's last has two children or more
)

const rootVersion = 1

// MarshalBinary encodes the root. Its format is versioned, and its length varies.
func (r Root) MarshalBinary() ([]byte, error) {
	b := make([]byte, 0, 2+len(r.Hash)+3*binary.MaxVarintLen64)
	b = append(b, rootVersion, r.Level)
	b = append(b, r.Hash[:]...)
	b = binary.AppendUvarint(b, uint64(r.ID))
	b = binary.AppendUvarint(b, r.Count)
	return binary.AppendUvarint(b, r.Bytes), nil
}

// UnmarshalBinary decodes what MarshalBinary wrote; anything else is an errs.Corrupt.
func (r *Root) UnmarshalBinary(b []byte) error {
	if len(b) < 2+len(r.Hash) || b[0] != rootVersion || b[1] > maxLevel {
		return errs.Msg(errs.Corrupt, "decode tree root", "", "unknown format")
	}
	out := Root{Level: b[1], Hash: Hash(b[2:34])}
	d := reader{b: b[34:]}
	out.ID, out.Count, out.Bytes = ID(d.uvarint()), d.uvarint(), d.uvarint()
	if d.bad || len(d.b) != 0 || (out.ID == 0) != (out == Root{}) {
		return errs.Msg(errs.Corrupt, "decode tree root", "", "malformed")
	}
	*r = out
	return nil
}

// Source reads encoded nodes by id. It may be called concurrently. The tree doesn't modify what it returns, and
// doesn't keep it. A node that the Source doesn't find is reported as errs.Corrupt, since some root needs it.
type Source interface {
	Node(ctx context.Context, id ID) ([]byte, error)
}

// Sink stores new nodes. Put owns the slice it is given. Ids must be positive and increase in call order; children
// come before their parents, and the last node put, if any, is the new root.
type Sink interface {
	Put(encoded []byte) (ID, error)
}

// Options of a tree. HashKey and the node sizes decide where nodes end: trees that are to share nodes, or to be
// compared, must agree on them, so a store keeps them for ever.
type Options struct {
	// Measure says what an entry adds to the sums Count and Bytes. It must depend on nothing but its arguments.
	// Without it an entry counts 1 and the lengths of its key and value.
	Measure func(key, value []byte) (count, bytes uint64)
	// CacheBytes bounds the memory of decoded nodes; 0 means 64 MiB, less than 0 no cache.
	CacheBytes int64
	// HashKey keys the hash that decides boundaries, so that who chooses keys can't choose boundaries. It is secret.
	HashKey [32]byte
	// Sizes of a node before compression, in bytes: mean, least but for the last of a level, and the size from which
	// a node takes no further entry. 0 means 16, 4 and 64 KiB. Others are for tests; at most 256 KiB.
	TargetNode, MinNode, MaxNode int
}

// Tree reads and writes the trees of one store. It is safe for concurrent use.
type Tree struct {
	src     Source
	measure func(key, value []byte) (count, bytes uint64)
	cut     cutter
	cache   *cache
	zip     *zstd.Encoder
}

// New returns a Tree over the source.
func New(src Source, o Options) *Tree {
	t := &Tree{src: src, measure: o.Measure, cut: newCutter(o)}
	if t.measure == nil {
		t.measure = func(key, value []byte) (uint64, uint64) { return 1, uint64(len(key) + len(value)) }
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = 64 << 20
	}
	t.cache = newCache(o.CacheBytes)
	t.zip = newCompressor()
	return t
}

// Get returns the value of a key, or nil if the tree doesn't have it; a value of no bytes isn't nil. The value must not
// be modified; it stays valid.
func (t *Tree) Get(ctx context.Context, root Root, key []byte) ([]byte, error) {
	if root.ID == 0 {
		return nil, nil
	}
	n, err := t.root(ctx, root)
	for err == nil {
		i := n.search(key)
		if i == n.Len() {
			return nil, nil
		}
		if n.level == 0 {
			if !bytes.Equal(n.Key(i), key) {
				return nil, nil
			}
			return n.Value(i), nil
		}
		n, err = t.child(ctx, n, i)
	}
	return nil, err
}

// root returns the root's node.
func (t *Tree) root(ctx context.Context, root Root) (*Node, error) {
	return t.node(ctx, &kid{id: root.ID, hash: root.Hash}, root.Level)
}

// child returns the node of an inner node's child.
func (t *Tree) child(ctx context.Context, n *Node, i int) (*Node, error) {
	if n.level == 0 {
		return nil, errs.Msg(errs.Corrupt, "read tree", "", "a leaf where an inner node belongs")
	}
	return t.node(ctx, &n.kids[i], n.level-1)
}

// node returns a decoded node, from the cache if it is there.
func (t *Tree) node(ctx context.Context, k *kid, level uint8) (*Node, error) {
	n := t.cache.get(k.id)
	if n == nil {
		var err error
		if n, err = t.cache.load(ctx, k.id, t.read); err != nil {
			return nil, err
		}
	}
	return n, t.expect(n, k, level)
}

// expect verifies that a node is the one its parent means. Levels fall by one at each step down, so no pointer, however
// wrong, makes a walk endless.
func (t *Tree) expect(n *Node, k *kid, level uint8) error {
	if n.level != level || n.hash != k.hash {
		return errs.Msg(errs.Corrupt, "read tree", nodeName(k.id), "another node than its parent means")
	}
	return nil
}

// read reads and decodes a node past the cache.
func (t *Tree) read(ctx context.Context, id ID) (*Node, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b, err := t.src.Node(ctx, id)
	if errs.Is(err, errs.NotFound) {
		return nil, errs.New(errs.Corrupt, "read tree", nodeName(id), err)
	}
	if err != nil {
		return nil, err
	}
	n, err := Decode(b)
	if err != nil {
		return nil, errs.New(errs.Corrupt, "read tree", nodeName(id), err)
	}
	return n, nil
}
