package tree

import (
	"encoding/binary"
	"math/bits"

	"github.com/zeebo/blake3"
)

// Overheads count towards a node's size, for what an entry takes beside its key and value. They are part of the format:
// changing one moves boundaries.
const (
	leafOverhead  = 4
	innerOverhead = 48
)

// cutter decides where nodes end. The chance that a node ends after an entry grows with the fourth power of the node's
// size (a Weibull hazard, which keeps sizes close to their mean), and is compared with a keyed hash of the entry's key.
// All in integers, so that every machine cuts alike. Each level has its own hash key: the keys of an inner node are just
// those that the level below has ended nodes at.
type cutter struct {
	scale    uint64 // the size at which the expected number of cuts is one
	min, max uint64
	keys     [256][2]uint64
}

func newCutter(o Options) cutter {
	def := func(v, d int) uint64 {
		if v <= 0 {
			v = d
		}
		return uint64(min(v, 256<<10))
	}
	c := cutter{scale: def(o.TargetNode, 16<<10), min: def(o.MinNode, 4<<10), max: def(o.MaxNode, 64<<10)}
	c.scale += c.scale / 10 // the mean of the distribution is 0.91 of its scale
	for level := range c.keys {
		h, err := blake3.NewKeyed(o.HashKey[:])
		if err != nil {
			panic(err) // a key of 32 bytes is never refused
		}
		h.WriteString("agentrun tree boundary 1")
		h.Write([]byte{byte(level)})
		sum := h.Sum(nil)
		c.keys[level] = [2]uint64{binary.LittleEndian.Uint64(sum), binary.LittleEndian.Uint64(sum[8:])}
	}
	return c
}

// entrySize returns what an entry adds to a node's size. An inner entry's doesn't depend on ids or sums.
func entrySize(level uint8, key, value []byte) uint64 {
	if level == 0 {
		return uint64(len(key)+len(value)) + leafOverhead
	}
	return uint64(len(key)) + innerOverhead
}

// after reports whether a node ends after an entry. before and size are the node's sizes without and with it, count its
// number of entries with it.
func (c *cutter) after(level uint8, key []byte, before, size uint64, count int) bool {
	if size < c.min || (level > 0 && count < 2) { // two children at least, or the tree might not end upwards
		return false
	}
	if size >= c.max {
		return true
	}
	k := &c.keys[level]
	return sipHash(k[0], k[1], key)>>32 < c.hazard(size)-c.hazard(before)
}

// hazard returns the cumulative hazard at a size, with 32 bits behind the point: (size/scale)⁴.
func (c *cutter) hazard(size uint64) uint64 {
	u := size << 10 / c.scale // below 2²⁹ for any node size allowed
	hi, lo := bits.Mul64(u*u, u*u)
	if hi != 0 {
		return 1<<63 - 1
	}
	return lo >> 8
}

// sipHash is SipHash-2-4 (Aumasson and Bernstein, 2012).
func sipHash(k0, k1 uint64, p []byte) uint64 {
	v0, v1 := k0^0x736f6d6570736575, k1^0x646f72616e646f6d
	v2, v3 := k0^0x6c7967656e657261, k1^0x7465646279746573
	last := uint64(len(p)) << 56
	for len(p) >= 8 {
		m := binary.LittleEndian.Uint64(p)
		p = p[8:]
		v3 ^= m
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
		v0 ^= m
	}
	for i, b := range p {
		last |= uint64(b) << (8 * i)
	}
	v3 ^= last
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0 ^= last
	v2 ^= 0xff
	for range 4 {
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	}
	return v0 ^ v1 ^ v2 ^ v3
}

func sipRound(v0, v1, v2, v3 uint64) (uint64, uint64, uint64, uint64) {
	v0 += v1
	v1 = bits.RotateLeft64(v1, 13) ^ v0
	v0 = bits.RotateLeft64(v0, 32)
	v2 += v3
	v3 = bits.RotateLeft64(v3, 16) ^ v2
	v0 += v3
	v3 = bits.RotateLeft64(v3, 21) ^ v0
	v2 += v1
	v1 = bits.RotateLeft64(v1, 17) ^ v2
	v2 = bits.RotateLeft64(v2, 32)
	return v0, v1, v2, v3
}
