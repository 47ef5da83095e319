package memory

import (
	"math/bits"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
)

const (
	// maxHoled is up to how many extents Discard cuts up an image: each is a mapping to make in every child.
	maxHoled = MaxExtents / 4
	// minGrain is the least that Discard takes out of a layer, in bytes; maxGrains how many of that a memory has at most, because each may be
	// a mapping by itself, of which a process has 65,530.
	minGrain  = 64 << 10
	maxGrains = 32 << 10
)

// Discard gives back to the host what a guest doesn't need, n bytes at its physical address: whole pages only. What was given back reads
// as zeros until it is written to, here and in captures from now on, never as what an older image held there. It is a wish: where an image
// would be cut into too small or too many pieces, all stays as it is. The guest and its devices may go on meanwhile. It returns how many
// bytes were given back. What lies outside the RAM, or across its hole, is an error of kind Invalid.
//
// A memory that was never captured is one file, which gets a hole. In another a page is the memory's own or a layer's: of a layer, which
// is sealed and others may use, nothing can be given back but this memory's view of it.
func (m *Memory) Discard(addr, n uint64) (uint64, error) {
	off, err := m.offset(addr, n)
	if err != nil {
		return 0, err
	}
	s := inward(span{off, off + n}, PageSize)
	if s.off >= s.end {
		return 0, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed || !m.loaded():
		return 0, errs.Msg(errs.Invalid, "memory", "discard", "the memory isn't in use")
	case m.fd >= 0:
		if err := unix.Fallocate(m.fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(s.off), int64(s.end-s.off)); err != nil {
			return 0, hostError("discard", err)
		}
		return s.end - s.off, nil
	}
	bare, covered := split(m.image.extents, s)
	done := uint64(0)
	for _, b := range bare { // zeros of its own: what was written there is forgotten
		if err := unix.Madvise(m.all()[b.off:b.end], unix.MADV_DONTNEED); err != nil {
			return done, hostError("discard", err)
		}
		done += b.end - b.off
	}
	for _, c := range covered {
		n, err := m.uncover(c)
		done += n
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// grain is what is taken out of layers, a power of two.
func (m *Memory) grain() uint64 {
	return max(minGrain, uint64(1)<<bits.Len64((m.size-1)/maxGrains))
}

// uncover puts zeros in the place of layers. mu is held.
func (m *Memory) uncover(s span) (uint64, error) {
	if s = inward(s, m.grain()); s.off >= s.end {
		return 0, nil
	}
	left := cut(m.image.extents, s)
	if len(left) > max(len(m.image.extents), maxHoled) {
		return 0, nil
	}
	at := unsafe.Add(m.base, s.off)
	_, err := unix.MmapPtr(-1, 0, at, uintptr(s.end-s.off), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED|unix.MAP_NORESERVE)
	if err != nil {
		return 0, hostError("discard", err)
	}
	settle(m.all()[s.off:s.end])
	im := newImage(m.size, left)
	m.image.Close()
	m.image = im
	return s.end - s.off, nil
}

// inward is what lies within a span in whole units.
func inward(s span, unit uint64) span {
	return span{(s.off + unit - 1) &^ (unit - 1), s.end &^ (unit - 1)}
}

// split tells which parts of a span no extent covers, and which some do; of the latter those that touch are one.
func split(extents []extent, s span) (bare, covered []span) {
	first, _ := slices.BinarySearchFunc(extents, s.off, func(e extent, off uint64) int {
		if e.end <= off {
			return -1
		}
		return 1
	})
	at := s.off
	for _, e := range extents[first:] {
		if e.off >= s.end {
			break
		}
		if e.off > at {
			bare = append(bare, span{at, e.off})
			at = e.off
		}
		end := min(e.end, s.end)
		if k := len(covered) - 1; k >= 0 && covered[k].end == at {
			covered[k].end = end
		} else {
			covered = append(covered, span{at, end})
		}
		at = end
	}
	if at < s.end {
		bare = append(bare, span{at, s.end})
	}
	return bare, covered
}

// cut takes a span out of extents.
func cut(extents []extent, s span) []extent {
	out := make([]extent, 0, len(extents)+1)
	for _, e := range extents {
		if e.end <= s.off || e.off >= s.end {
			out = append(out, e)
			continue
		}
		if e.off < s.off {
			out = append(out, extent{span{e.off, s.off}, e.l})
		}
		if e.end > s.end {
			out = append(out, extent{span{s.end, e.end}, e.l})
		}
	}
	return out
}
