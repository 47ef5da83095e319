package tree

import (
	"bytes"
	"encoding/binary"
	"strconv"

	"github.com/zeebo/blake3"
)

// Node is a decoded node: a run of neighbouring entries. It is immutable, and safe for concurrent use.
//
// Keys (and a leaf's values) lie in one byte slice with a table of offsets, so that a node is few allocations whatever
// it holds, and looking something up in it is none.
type Node struct {
	level uint8
	hash  Hash
	data  []byte   // a leaf: key, value, key, value …; an inner node: keys
	ends  []uint32 // where each of them ends in data
	kids  []kid    // of an inner node
}

// kid is what an inner node knows of a child, but for the child's greatest key.
type kid struct {
	id           ID
	count, bytes uint64
	hash         Hash
}

// Child is an inner node's entry. MaxKey is the greatest key below it, and must not be modified.
type Child struct {
	ID           ID
	Hash         Hash
	MaxKey       []byte
	Count, Bytes uint64
}

// Level returns the node's height: 0 for a leaf.
func (n *Node) Level() int { return int(n.level) }

// Hash returns the hash of the node's content, computed when it was decoded.
func (n *Node) Hash() Hash { return n.hash }

// Len returns the number of entries, at least 1.
func (n *Node) Len() int {
	if n.level == 0 {
		return len(n.ends) / 2
	}
	return len(n.ends)
}

// Key returns a leaf's key, or the greatest key below a child. It must not be modified; it stays valid.
func (n *Node) Key(i int) []byte {
	if n.level == 0 {
		i *= 2
	}
	return n.field(i)
}

// Value returns a leaf's value, never nil. It must not be modified; it stays valid. An inner node has no values: nil.
func (n *Node) Value(i int) []byte {
	if n.level != 0 {
		return nil
	}
	return n.field(2*i + 1)
}

// Child returns an inner node's entry. A leaf has none: the zero Child.
func (n *Node) Child(i int) Child {
	if n.level == 0 {
		return Child{}
	}
	k := &n.kids[i]
	return Child{ID: k.id, Hash: k.hash, MaxKey: n.field(i), Count: k.count, Bytes: k.bytes}
}

func (n *Node) field(i int) []byte {
	start, end := uint32(0), n.ends[i]
	if i > 0 {
		start = n.ends[i-1]
	}
	return n.data[start:end:end]
}

// last returns the greatest key.
func (n *Node) last() []byte { return n.Key(n.Len() - 1) }

// search returns the first entry whose key is not below key, or Len.
func (n *Node) search(key []byte) int { return n.searchFrom(0, key) }

func (n *Node) searchFrom(lo int, key []byte) int {
	hi := n.Len()
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if bytes.Compare(n.Key(mid), key) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// memory returns the bytes that the node takes on the heap.
func (n *Node) memory() int64 {
	return int64(cap(n.data)+4*cap(n.ends)+56*cap(n.kids)) + 160
}

// add appends an entry. It copies key and value.
func (n *Node) add(key, value []byte, k kid) {
	n.data = append(n.data, key...)
	n.ends = append(n.ends, uint32(len(n.data)))
	if n.level == 0 {
		n.data = append(n.data, value...)
		n.ends = append(n.ends, uint32(len(n.data)))
		return
	}
	n.kids = append(n.kids, k)
}

// hasher computes hashes of nodes, reusing its memory.
type hasher struct {
	h   *blake3.Hasher
	buf []byte
}

func newHasher() *hasher { return &hasher{h: blake3.New()} }

// sum returns the hash of a node's content: a format byte, the level, the table of ends, the data and the children's
// hashes. The first three say where everything after them begins, so no two contents hash the same bytes.
func (s *hasher) sum(n *Node) (out Hash) {
	b := append(s.buf[:0], 1, n.level)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(n.ends)))
	for _, e := range n.ends {
		b = binary.LittleEndian.AppendUint32(b, e)
	}
	b = append(b, n.data...)
	for i := range n.kids {
		b = append(b, n.kids[i].hash[:]...)
	}
	s.buf = b
	s.h.Reset()
	s.h.Write(b)
	s.h.Sum(out[:0])
	return out
}

func nodeName(id ID) string { return "node " + strconv.FormatUint(uint64(id), 10) }
