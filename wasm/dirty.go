package wasm

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Bits of /proc/PID/pagemap.
const (
	pagePresent = 1 << 63
	pageSwapped = 1 << 62
	pageOfFile  = 1 << 61
)

// dirty returns the spans of memory that may differ from what is mapped. Pages that were written to are the process's own, which the kernel tells;
// where it doesn't, all pages are compared.
func (in *Instance) dirty(base []extent) ([]span, error) {
	var spans []span
	add := func(off uint64) {
		if k := len(spans) - 1; k >= 0 && spans[k].end == off {
			spans[k].end += hostPageSize
		} else {
			spans = append(spans, span{off, off + hostPageSize})
		}
	}
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return in.compare(base)
	}
	defer f.Close()
	buf := make([]byte, 32<<10)
	for off := uint64(0); off < in.mem.size; {
		n := min(uint64(len(buf)), (in.mem.size-off)/hostPageSize*8)
		at := (uint64(uintptr(in.mem.base)) + off) / hostPageSize * 8
		if _, err := unix.Pread(int(f.Fd()), buf[:n], int64(at)); err != nil {
			return in.compare(base)
		}
		for b := buf[:n]; len(b) > 0; b = b[8:] {
			e := binary.LittleEndian.Uint64(b)
			if e&pageSwapped != 0 || e&pagePresent != 0 && e&pageOfFile == 0 {
				add(off)
			}
			off += hostPageSize
		}
	}
	return spans, nil
}

// compare finds the pages that differ from extents.
func (in *Instance) compare(base []extent) ([]span, error) {
	var spans []span
	mem := in.mem.bytes()
	page := make([]byte, hostPageSize)
	i := 0
	for off := uint64(0); off < in.mem.size; off += hostPageSize {
		for i < len(base) && base[i].end <= off {
			i++
		}
		want := zeroPage[:]
		if i < len(base) && base[i].off <= off {
			if err := base[i].l.read(page, off); err != nil {
				return nil, err
			}
			want = page
		}
		if bytes.Equal(mem[off:off+hostPageSize], want) {
			continue
		}
		if k := len(spans) - 1; k >= 0 && spans[k].end == off {
			spans[k].end += hostPageSize
		} else {
			spans = append(spans, span{off, off + hostPageSize})
		}
	}
	return spans, nil
}

// learned are the pages that instances of a snapshot write to at once: copying them ahead is cheaper than to be told of each.
type learned struct {
	rounds int
	count  map[uint64]int // by page, while learning
	spans  []span
}

const (
	learnRounds = 3
	maxHot      = 96 // pages
)

// learn looks at what an instance has written to.
func (h *learned) learn(spans []span) {
	if h.rounds >= learnRounds {
		return
	}
	if h.count == nil {
		h.count = make(map[uint64]int)
	}
	for _, s := range spans {
		for off := s.off; off < s.end; off += hostPageSize {
			h.count[off]++
		}
	}
	if h.rounds++; h.rounds < learnRounds {
		return
	}
	var hot []span
	for off, n := range h.count {
		if n == learnRounds {
			hot = append(hot, span{off, off + hostPageSize})
		}
	}
	h.count = nil
	if len(hot) <= maxHot {
		slices.SortFunc(hot, func(a, b span) int { return cmp.Compare(a.off, b.off) })
		h.spans = fill(hot, len(hot))
	}
}
