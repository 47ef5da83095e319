package memory

import (
	"bytes"
	"cmp"
	"slices"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
)

// layer is a sealed memfd with pages at their own offsets. What was never written to it reads as zeros.
type layer struct {
	fd   int
	refs atomic.Int32
}

const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE

// newMemfd makes a file in memory that can be sealed.
func newMemfd(size uint64) (int, error) {
	fd, err := unix.MemfdCreate("agentrun-ram", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, hostError("new layer", err)
	}
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		unix.Close(fd)
		return -1, hostError("new layer", err)
	}
	return fd, nil
}

// newLayer makes one that is still to be filled and sealed.
func newLayer(size uint64) (*layer, error) {
	fd, err := newMemfd(size)
	if err != nil {
		return nil, err
	}
	l := &layer{fd: fd}
	l.refs.Store(1)
	return l, nil
}

// openLayer takes over a descriptor from elsewhere: it must be sealed and of this size.
func openLayer(fd int, size uint64) (*layer, error) {
	got, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || got&seals != seals {
		return nil, errs.Msg(errs.Invalid, "memory", "layer", "the descriptor isn't a sealed memory file")
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Size != int64(size) {
		return nil, errs.Msg(errs.Invalid, "memory", "layer", "the file has another size than the image")
	}
	l := &layer{fd: fd}
	l.refs.Store(1)
	return l, nil
}

// seal makes it what nobody can change.
func (l *layer) seal() error {
	if _, err := unix.FcntlInt(uintptr(l.fd), unix.F_ADD_SEALS, seals); err != nil {
		return hostError("seal", err)
	}
	return nil
}

func (l *layer) release() {
	if l.refs.Add(-1) == 0 {
		unix.Close(l.fd)
	}
}

func (l *layer) write(b []byte, off uint64) error {
	for len(b) > 0 {
		n, err := unix.Pwrite(l.fd, b, int64(off))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return hostError("write a layer", err)
		}
		b, off = b[n:], off+uint64(n)
	}
	return nil
}

var zeroPage [PageSize]byte

func isZero(b []byte) bool { return bytes.Equal(b, zeroPage[:len(b)]) }

// writeSparse writes all but pages of zeros. b has whole pages.
func (l *layer) writeSparse(b []byte, off uint64) error {
	for start := 0; start < len(b); {
		if isZero(b[start : start+PageSize]) {
			start += PageSize
			continue
		}
		end := start + PageSize
		for end < len(b) && !isZero(b[end:end+PageSize]) {
			end += PageSize
		}
		if err := l.write(b[start:end], off+uint64(start)); err != nil {
			return err
		}
		start = end
	}
	return nil
}

// span is a range of offsets in whole pages.
type span struct{ off, end uint64 }

// extent is a span whose content is at the same offset of a layer. What no extent covers is zeros.
type extent struct {
	span
	l *layer
}

// fill joins spans until there are at most n, over the smallest gaps. spans are in order and don't touch.
func fill(spans []span, n int) []span {
	if len(spans) <= n {
		return spans
	}
	gaps := make([]uint64, 0, len(spans)-1)
	for i := 1; i < len(spans); i++ {
		gaps = append(gaps, spans[i].off-spans[i-1].end)
	}
	slices.Sort(gaps)
	limit := gaps[len(spans)-n-1] // every gap up to this one is filled; equal ones too, so that it may be fewer than n
	return join(spans, limit)
}

// join joins spans with no more than so many bytes between them.
func join(spans []span, gap uint64) []span {
	out := spans[:1:1]
	for _, s := range spans[1:] {
		if last := &out[len(out)-1]; s.off-last.end <= gap {
			last.end = s.end
		} else {
			out = append(out, s)
		}
	}
	return out
}

// overlay puts spans of a new layer over extents. Both are in order.
func overlay(old []extent, spans []span, l *layer) []extent {
	out := make([]extent, 0, len(old)+2*len(spans))
	i := 0
	var rest extent // of old[i], when a span has taken its beginning
	next := func() (extent, bool) {
		if rest.l != nil {
			return rest, true
		}
		if i < len(old) {
			return old[i], true
		}
		return extent{}, false
	}
	done := func() {
		rest = extent{}
		i++
	}
	for _, s := range spans {
		for e, ok := next(); ok && e.off < s.end; e, ok = next() {
			if e.end <= s.off {
				out = append(out, e)
				done()
				continue
			}
			if e.off < s.off {
				out = append(out, extent{span{e.off, s.off}, e.l})
			}
			if e.end > s.end {
				rest = extent{span{s.end, e.end}, e.l}
				break
			}
			done()
		}
		out = append(out, extent{s, l})
	}
	for e, ok := next(); ok; e, ok = next() {
		out = append(out, e)
		done()
	}
	return out
}

// normal brings spans into order and joins those that touch.
func normal(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.off, b.off) })
	out := spans[:0]
	for _, s := range spans {
		if k := len(out) - 1; k >= 0 && out[k].end >= s.off {
			out[k].end = max(out[k].end, s.end)
		} else {
			out = append(out, s)
		}
	}
	return out
}
