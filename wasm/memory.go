package wasm

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"agentrun.dev/proc"
)

const (
	pageSize     = 64 << 10 // of WebAssembly
	hostPageSize = 4 << 10  // of the kernel: smallest unit of mappings
)

// maxMapCount is how many mappings the kernel allows a process.
func maxMapCount() int {
	b, err := os.ReadFile("/proc/sys/vm/max_map_count")
	if n, err2 := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && err2 == nil && n > 0 {
		return n
	}
	return 65530
}

// memory is the linear memory of an instance: a reserved range of addresses of which a part from the beginning on can be used.
// It implements experimental.LinearMemory and experimental.MemoryAllocator, for the one instance.
type memory struct {
	base     unsafe.Pointer // nil when freed
	reserved uint64
	limit    uint64 // how far it may grow, at most reserved
	size     uint64 // what the guest has
	open     uint64 // what is readable and writable; not less than size
	maps     int    // mappings that it counts for
	p        *proc.Process
	charged  int64 // to p
	force    bool  // the next Reallocate sets the size to want, be it less
	want     uint64
}

// newMemory reserves addresses. Nothing of it can be used yet.
func newMemory(reserve uint64) (*memory, error) {
	a, err := unix.MmapPtr(-1, 0, nil, uintptr(reserve), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	return &memory{base: a, reserved: reserve, limit: reserve, maps: 2}, nil
}

// bind makes p the one who pays. What is charged to another process is given back.
func (m *memory) bind(p *proc.Process, limit uint64) error {
	m.unbind()
	m.limit = min(limit, m.reserved)
	if m.size > m.limit {
		return syscall.ENOMEM
	}
	if p != nil {
		if err := p.Charge(int64(m.size)); err != nil {
			return err
		}
	}
	m.p, m.charged = p, int64(m.size)
	return nil
}

func (m *memory) unbind() {
	if m.p != nil {
		m.p.Charge(-m.charged)
	}
	m.p, m.charged = nil, 0
}

// Allocate is asked once, at instantiation.
func (m *memory) Allocate(_, _ uint64) (lm linearMemory) { return m }

// Reallocate makes the memory size bytes large; nil if it can't.
func (m *memory) Reallocate(size uint64) []byte {
	if m.force {
		m.force = false
		size = m.want
	}
	if m.base == nil || size > m.limit {
		return nil
	}
	more := int64(size) - int64(m.size)
	if m.p != nil && more != 0 {
		if m.p.Charge(more) != nil {
			return nil
		}
		m.charged += more
	}
	if err := m.reach(size); err != nil {
		if m.p != nil {
			m.p.Charge(-more)
			m.charged -= more
		}
		return nil
	}
	m.size = size
	return m.bytes()
}

// reach makes at least size bytes usable. What is new is zero.
func (m *memory) reach(size uint64) error {
	if size <= m.open {
		return nil
	}
	b := unsafe.Slice((*byte)(unsafe.Add(m.base, m.open)), size-m.open)
	if err := unix.Mprotect(b, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		return err
	}
	m.open = size
	return nil
}

// bytes is what the guest has. The slice is valid until the memory is freed.
func (m *memory) bytes() []byte {
	return unsafe.Slice((*byte)(m.base), m.size)
}

// Free lets go of the addresses. The engine calls it when the instance is closed.
func (m *memory) Free() {
	if m.base == nil {
		return
	}
	m.unbind()
	unix.MunmapPtr(m.base, uintptr(m.reserved))
	m.base, m.size, m.open = nil, 0, 0
}

// at returns n bytes of the guest's memory, nil if they aren't all there. No bytes at all are an empty slice.
func (m *memory) at(ptr, n uint32) []byte {
	if uint64(ptr)+uint64(n) > m.size {
		return nil
	}
	return m.bytes()[ptr : uint64(ptr)+uint64(n) : uint64(ptr)+uint64(n)]
}

func itoa(n int) string { return strconv.Itoa(n) }
