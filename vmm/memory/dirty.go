package memory

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Bits of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst).
const (
	pagePresent = 1 << 63
	pageSwapped = 1 << 62
	pageOfFile  = 1 << 61
)

// Categories of the ioctl PAGEMAP_SCAN of Linux 6.7.
const (
	pagemapScan     = 0xc0606610
	categoryFile    = 1 << 2
	categoryPresent = 1 << 3
	categorySwapped = 1 << 4
	categoryPFNZero = 1 << 5
)

type scanRegion struct{ start, end, categories uint64 }

type scanArg struct {
	size, flags       uint64
	start, end        uint64
	walkEnd           uint64
	vec               unsafe.Pointer
	vecLen            uint64
	maxPages          uint64
	inverted, mask    uint64
	anyOf, returnMask uint64
}

// dirty returns the spans that were written to since they were mapped: what is written to in a private mapping of a
// file becomes the process's own page, whoever wrote (the guest, KVM or a device). In order, joined when they touch.
func (m *Memory) dirty() ([]span, error) {
	fd := int(m.pagemap.Fd())
	if spans, ok := m.scan(fd); ok {
		return spans, nil
	}
	return m.walk(fd)
}

// scan asks the kernel for the ranges themselves; false where it doesn't know how.
func (m *Memory) scan(fd int) ([]span, bool) {
	var spans []span
	var regions [256]scanRegion
	base := uint64(uintptr(m.base))
	a := scanArg{size: uint64(unsafe.Sizeof(scanArg{})), start: base, end: base + m.size, vecLen: uint64(len(regions)),
		vec: unsafe.Pointer(&regions), returnMask: categoryPresent}
	// Present (or swapped, which a second pass finds) and not of a file. The zero page is nobody's.
	for _, pass := range []struct{ inverted, mask uint64 }{
		{categoryFile | categoryPFNZero, categoryFile | categoryPFNZero | categoryPresent},
		{0, categorySwapped},
	} {
		a.inverted, a.mask = pass.inverted, pass.mask
		for a.start = base; a.start < a.end; a.start = a.walkEnd {
			n, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), pagemapScan, uintptr(unsafe.Pointer(&a)))
			if e == unix.EINTR {
				a.walkEnd = a.start
				continue
			}
			if e != 0 || a.walkEnd <= a.start {
				return nil, false
			}
			for _, r := range regions[:n] {
				spans = append(spans, span{r.start - base, r.end - base})
			}
		}
	}
	return normal(spans), true
}

// walk reads the word of each page.
func (m *Memory) walk(fd int) ([]span, error) {
	var spans []span
	buf := make([]byte, 64<<10)
	for off := uint64(0); off < m.size; {
		n := min(uint64(len(buf)), (m.size-off)/PageSize*8)
		at := (uint64(uintptr(m.base)) + off) / PageSize * 8
		got, err := unix.Pread(fd, buf[:n], int64(at))
		if err == unix.EINTR {
			continue
		}
		if err != nil || got < 8 {
			return nil, hostError("dirty pages", unix.EIO)
		}
		for b := buf[:got&^7]; len(b) > 0; b = b[8:] {
			if e := binary.LittleEndian.Uint64(b); e&pageSwapped != 0 || e&pagePresent != 0 && e&pageOfFile == 0 {
				if k := len(spans) - 1; k >= 0 && spans[k].end == off {
					spans[k].end += PageSize
				} else {
					spans = append(spans, span{off, off + PageSize})
				}
			}
			off += PageSize
		}
	}
	return spans, nil
}
