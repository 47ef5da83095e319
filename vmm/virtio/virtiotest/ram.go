// Package virtiotest is the guest's side of a virtio device, for tests: guest memory in a byte slice, and a driver that
// negotiates, sets up queues, and makes requests as the specification asks of one, or, in Fuzz, as it forbids.
package virtiotest

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
)

// Base is the guest address where RAM begins: not zero, so that a null address is outside.
const Base = 0x10000

// RAM is guest memory from Base on, with an allocator for the driver. It is a virtio.Memory and a virtio.Dirtier.
type RAM struct {
	mem  []byte
	look atomic.Pointer[func(addr, n uint64)]

	mu    sync.Mutex
	next  uint64
	free  map[int][]uint64 // by size class
	dirty map[uint64]bool  // pages that devices wrote
}

// NewRAM returns n bytes of zeroed memory.
func NewRAM(n int) *RAM {
	return &RAM{mem: make([]byte, n), next: Base, free: make(map[int][]uint64), dirty: make(map[uint64]bool)}
}

// OnLook sets what is called before a device gets a window, for tests that hold one up there; nil for nothing.
func (r *RAM) OnLook(f func(addr, n uint64)) {
	if f == nil {
		r.look.Store(nil)
		return
	}
	r.look.Store(&f)
}

// HoldUp makes a device wait when it looks at a window of n bytes, the first time. held is closed when it does, and it goes on when
// the caller calls resume.
func (r *RAM) HoldUp(n uint64) (held <-chan struct{}, resume func()) {
	begin, end := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r.OnLook(func(_, size uint64) {
		if size == n {
			once.Do(func() { close(begin); <-end })
		}
	})
	return begin, func() { close(end) }
}

// Bytes returns a window.
func (r *RAM) Bytes(addr, n uint64) ([]byte, error) {
	if f := r.look.Load(); f != nil {
		(*f)(addr, n)
	}
	return r.window(addr, n)
}

func (r *RAM) window(addr, n uint64) ([]byte, error) {
	end := Base + uint64(len(r.mem))
	if addr < Base || addr > end || n > end-addr {
		return nil, fmt.Errorf("no memory at %#x+%#x", addr, n)
	}
	return r.mem[addr-Base:][:n:n], nil
}

// Dirty notes the pages of a range.
func (r *RAM) Dirty(addr, n uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for page := addr >> 12; page <= (addr+n-1)>>12; page++ {
		r.dirty[page] = true
	}
}

// IsDirty tells whether a device has written the page of addr since ClearDirty.
func (r *RAM) IsDirty(addr uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dirty[addr>>12]
}

// ClearDirty forgets what was written.
func (r *RAM) ClearDirty() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.dirty)
}

// At is Bytes for an address that must be good.
func (r *RAM) At(addr uint64, n int) []byte {
	b, err := r.window(addr, uint64(n))
	if err != nil {
		panic(err)
	}
	return b
}

// class is the power of two that an allocation of n bytes takes, at least 16.
func class(n int) int { return max(bits.Len(uint(max(n, 1)-1)), 4) }

// Alloc returns n bytes, aligned to their size up to a page.
func (r *RAM) Alloc(n int) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := class(n)
	if list := r.free[c]; len(list) > 0 {
		r.free[c] = list[:len(list)-1]
		return list[len(list)-1]
	}
	align := uint64(1) << min(c, 12)
	addr := (r.next + align - 1) &^ (align - 1)
	if addr+1<<c > Base+uint64(len(r.mem)) {
		panic("virtiotest: out of guest memory")
	}
	r.next = addr + 1<<c
	return addr
}

// Free gives an allocation of n bytes back.
func (r *RAM) Free(addr uint64, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free[class(n)] = append(r.free[class(n)], addr)
}

// Clone copies the memory and the allocator, as forking a virtual machine does.
func (r *RAM) Clone() *RAM {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := NewRAM(len(r.mem))
	copy(n.mem, r.mem)
	n.next = r.next
	for c, list := range r.free {
		n.free[c] = append([]uint64(nil), list...)
	}
	return n
}
