package wasm

import (
	"bytes"
	"slices"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// A layer is a sealed file in memory that holds pages of a guest at their own offsets. Nobody can write to it any more, whoever has it.
type layer struct {
	fd   int
	refs atomic.Int32
}

// newLayer makes a layer that is still to be filled and sealed.
func newLayer(size uint64) (*layer, error) {
	fd, err := unix.MemfdCreate("agentrun-wasm", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	l := &layer{fd: fd}
	l.refs.Store(1)
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		l.release()
		return nil, err
	}
	return l, nil
}

func (l *layer) write(b []byte, off uint64) error {
	for len(b) > 0 {
		n, err := unix.Pwrite(l.fd, b, int64(off))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		b, off = b[n:], off+uint64(n)
	}
	return nil
}

// writeSparse writes all but pages of zeros.
func (l *layer) writeSparse(b []byte, off uint64) error {
	for start := 0; start < len(b); {
		n := zeros(b[start:])
		if start += n; start == len(b) {
			return nil
		}
		end := start
		for end < len(b) && !isZero(b[end:min(end+hostPageSize, len(b))]) {
			end = min(end+hostPageSize, len(b))
		}
		if err := l.write(b[start:end], off+uint64(start)); err != nil {
			return err
		}
		start = end
	}
	return nil
}

var zeroPage [hostPageSize]byte

func isZero(b []byte) bool { return bytes.Equal(b, zeroPage[:len(b)]) }

// zeros returns how many bytes of whole zero pages b begins with.
func zeros(b []byte) (n int) {
	for n < len(b) && isZero(b[n:min(n+hostPageSize, len(b))]) {
		n = min(n+hostPageSize, len(b))
	}
	return n
}

func (l *layer) seal() error {
	_, err := unix.FcntlInt(uintptr(l.fd), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	return err
}

func (l *layer) read(b []byte, off uint64) error {
	for len(b) > 0 {
		n, err := unix.Pread(l.fd, b, int64(off))
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return err
		case n == 0:
			return unix.EIO
		}
		b, off = b[n:], off+uint64(n)
	}
	return nil
}

func (l *layer) release() {
	if l.refs.Add(-1) == 0 {
		unix.Close(l.fd)
	}
}

// span is a range of a guest's memory, in whole pages of the host.
type span struct{ off, end uint64 }

// extent is a span whose content is at the same offset of a layer. What no extent covers is zero.
type extent struct {
	span
	l *layer
}

// overlay puts spans of a new layer over extents.
func overlay(old []extent, spans []span, l *layer) []extent {
	out := make([]extent, 0, len(old)+2*len(spans))
	i := 0
	for _, s := range spans {
		for i < len(old) && old[i].end <= s.off {
			out = append(out, old[i])
			i++
		}
		for i < len(old) && old[i].off < s.end {
			o := old[i]
			if o.off < s.off {
				out = append(out, extent{span{o.off, s.off}, o.l})
			}
			if o.end > s.end { // the rest may be covered by the next span
				old = slices.Clone(old)
				old[i].off = s.end
				break
			}
			i++
		}
		out = append(out, extent{s, l})
	}
	return append(out, old[i:]...)
}

// fill joins spans, over the smallest gaps first, until there are at most n. Gaps of up to a few pages are always filled: a mapping costs
// more than copying them.
func fill(spans []span, n int) []span {
	const small = 8 * hostPageSize
	gap := uint64(small)
	if len(spans) > n {
		gaps := make([]uint64, 0, len(spans))
		for i := 1; i < len(spans); i++ {
			gaps = append(gaps, spans[i].off-spans[i-1].end)
		}
		slices.Sort(gaps)
		gap = max(gap, gaps[len(spans)-n-1])
	}
	var out []span
	for _, s := range spans {
		if k := len(out) - 1; k >= 0 && s.off-out[k].end <= gap {
			out[k].end = s.end
		} else {
			out = append(out, s)
		}
	}
	return out
}
