package sort

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"agentrun.dev/command/cfmt"
)

// entry is a line to be sorted. What its first key amounts to is worked out once: prefix orders most pairs of lines by
// itself, key is what is compared where it doesn't.
type entry struct {
	prefix uint64 // a smaller one means a smaller key; equal ones say nothing, unless the key is exact
	line   []byte
	key    []byte
	index  int // its place in the input, where that counts
}

// sortLines sorts in memory. Equal lines keep their order where that shows.
func (s *sorter) sortLines(lines [][]byte) {
	entries := make([]entry, len(lines))
	normal := []byte(nil)
	for i, l := range lines {
		if i&0xfff == 0 {
			s.t.Check()
		}
		e := entry{line: l, index: i}
		if s.simple {
			e.prefix = leading(l)
		} else {
			k := &s.keys[0]
			e.key = s.part(k, l)
			switch {
			case k.numeric, k.human, k.general, k.month, k.random:
			case k.fold, k.dictionary, k.printable:
				if n := len(e.key); n+16 > cap(normal)-len(normal) {
					normal = make([]byte, 0, max(256<<10, 4*n+16))
				}
				start := len(normal)
				normal = k.normalTo(normal, e.key)
				e.key = normal[start:len(normal):len(normal)]
			}
			e.prefix = s.prefix(k, e.key)
		}
		entries[i] = e
	}
	count := 0
	compare := func(a, b *entry) int {
		if count++; count&0xffff == 0 {
			s.t.Check()
		}
		return s.compareEntries(a, b)
	}
	order := s.order(compare)
	slices.SortFunc(entries, order)
	for i := range entries {
		lines[i] = entries[i].line
	}
}

// order picks the comparison: by prefixes first, in the direction of the first key, then in full.
func (s *sorter) order(full func(a, b *entry) int) func(a, b entry) int {
	reverse := s.simple && s.global.reverse || !s.simple && s.keys[0].reverse
	if reverse {
		return func(a, b entry) int {
			if a.prefix != b.prefix {
				if a.prefix > b.prefix {
					return -1
				}
				return 1
			}
			return full(&a, &b)
		}
	}
	return func(a, b entry) int {
		if a.prefix != b.prefix {
			if a.prefix < b.prefix {
				return -1
			}
			return 1
		}
		return full(&a, &b)
	}
}

// compareEntries orders two lines whose prefixes are the same.
func (s *sorter) compareEntries(a, b *entry) int {
	c := 0
	if s.simple {
		if c = bytes.Compare(a.line, b.line); s.global.reverse {
			c = -c
		}
	} else {
		k := &s.keys[0]
		switch {
		case k.numeric, k.general, k.human, k.month, k.random, k.version:
			c = s.compareKey(k, a.key, b.key)
		default: // what is to be ignored is left out already
			c = bytes.Compare(a.key, b.key)
		}
		if k.reverse {
			c = -c
		}
		if c == 0 {
			c = s.compareRest(a.line, b.line)
		}
	}
	if c == 0 {
		c = cmp.Compare(a.index, b.index)
	}
	return c
}

// compareRest orders two lines whose first keys are equal.
func (s *sorter) compareRest(a, b []byte) int {
	for i := 1; i < len(s.keys); i++ {
		k := &s.keys[i]
		if c := s.compareKey(k, s.part(k, a), s.part(k, b)); c != 0 {
			if k.reverse {
				return -c
			}
			return c
		}
	}
	if s.stable || s.unique {
		return 0
	}
	c := bytes.Compare(a, b)
	if s.global.reverse {
		return -c
	}
	return c
}

// prefix makes a number of a key that orders as the key does, as far as it goes.
func (s *sorter) prefix(k *key, b []byte) uint64 {
	switch {
	case k.numeric:
		return numberPrefix(trimBlanks(b))
	case k.general:
		return generalPrefix(string(b))
	case k.month:
		return uint64(month(b))
	case k.random:
		sum := s.hash(k.normal(b))
		return binary.BigEndian.Uint64(sum[:])
	case k.human, k.version:
		return 0
	}
	return leading(b)
}

// leading are the first eight bytes; a shorter text is filled up with zeros.
func leading(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	var v uint64
	for i, c := range b {
		v |= uint64(c) << (56 - 8*i)
	}
	return v
}

// numberPrefix is a number in ten-thousandths, cut off, with the middle of the range as zero. What has more than 14
// digits before the point is at the range's end.
func numberPrefix(b []byte) uint64 {
	neg, i := false, 0
	if len(b) > 0 && b[0] == '-' {
		neg, i = true, 1
	}
	var v uint64
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		if v = v*10 + uint64(b[i]-'0'); v >= 1e14 {
			v = 1 << 62
			break
		}
	}
	if v < 1<<62 {
		fraction := i < len(b) && b[i] == '.'
		for range 4 {
			v *= 10
			if !fraction {
				continue
			}
			if i++; i < len(b) && b[i] >= '0' && b[i] <= '9' {
				v += uint64(b[i] - '0')
			} else {
				fraction = false
			}
		}
	}
	if neg {
		return 1<<63 - v
	}
	return 1<<63 + v
}

// generalPrefix is a float's bits in the order of their values; what is no number comes first, then NaN.
func generalPrefix(s string) uint64 {
	x, _, ok, _ := cfmt.ParseFloat(s)
	if !ok {
		return 0
	}
	if x.Value == nil {
		return 1
	}
	f, _ := x.Value.Float64()
	bits := math.Float64bits(f + 0) // no negative zero
	if f == 0 {
		bits = 0
	}
	if bits>>63 == 1 {
		return ^bits + 2
	}
	return bits | 1<<63
}
