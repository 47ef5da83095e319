// Package memory is a guest's RAM and what forks share of it.
//
// A memory is a range of the host's addresses that a VM's slots point to. What it holds at first is an image: extents
// of layers, mapped privately, so that a page is copied when it is written to and belongs to everybody until then. A
// layer is a sealed memfd that holds pages at their own offsets; nobody can write to it any more, whoever has its
// descriptor. Capture finds the pages that were written to since (they are the process's own: the kernel says so),
// puts them into a new layer, maps that over them and returns the image of now. So a capture costs what is dirty, not
// what there is, and pages are held once however many captures and children there are.
//
// A memory that begins as nothing is a memfd itself, mapped shared: its first capture only seals it. What a guest doesn't need any more
// Discard gives back: it is zeros then, here and in every later image.
//
// Offsets are the RAM's, from 0; the guest sees what doesn't fit below 3.25 GiB at 4 GiB (see Regions). Sizes are bytes.
package memory

import (
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
)

const (
	// PageSize is the smallest unit of everything here.
	PageSize = 4 << 10
	// HoleStart and HoleEnd are guest addresses without RAM, for devices.
	HoleStart = 0xd0000000
	HoleEnd   = 1 << 32
	// MaxSize is the most RAM that a memory can have.
	MaxSize = 1 << 40
)

// Memory is the RAM of one guest. Bytes may be called at any time; the others one at a time.
type Memory struct {
	size    uint64
	base    unsafe.Pointer
	pagemap *os.File // opened with the memory, because a jailed process has no /proc

	mu     sync.Mutex
	image  *Image // what is mapped, without what was written since; nil when fd holds it
	fd     int    // of a memory that was never captured, mapped shared; -1 otherwise
	closed bool
}

// Region is a part of the guest's RAM: where the guest sees it and where the host has it.
type Region struct {
	Guest, Size uint64
	Host        unsafe.Pointer
}

// checkSize says whether a memory can have this size.
func checkSize(op string, size uint64) error {
	if size == 0 || size%PageSize != 0 || size > MaxSize {
		return errs.Msg(errs.Invalid, "memory: "+op, fmt.Sprint(size), "the size isn't a multiple of the page size between a page and 1 TiB")
	}
	return nil
}

// Reserve returns the addresses of RAM that Load or Zero fills later: what a VM that is made in advance needs.
func Reserve(size uint64) (*Memory, error) {
	if err := checkSize("reserve", size); err != nil {
		return nil, err
	}
	pagemap, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return nil, hostError("reserve", err)
	}
	base, err := reserve(uintptr(size))
	if err != nil {
		pagemap.Close()
		return nil, hostError("reserve", err)
	}
	m := &Memory{size: size, base: base, fd: -1, pagemap: pagemap}
	settle(m.all())
	return m, nil
}

// hugePage is what a page table's entry maps, where it can.
const hugePage = 2 << 20

// reserve returns addresses, which huge pages fit if there is room for one.
func reserve(size uintptr) (unsafe.Pointer, error) {
	anywhere := func(n uintptr) (unsafe.Pointer, error) {
		return unix.MmapPtr(-1, 0, nil, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	}
	base, err := anywhere(size)
	if err != nil || size < hugePage || uintptr(base)%hugePage == 0 { // kernels since 6.7 do it by themselves
		return base, err
	}
	if err := unix.MunmapPtr(base, size); err != nil {
		return nil, err
	}
	if base, err = anywhere(size + hugePage - PageSize); err != nil {
		return nil, err
	}
	before := -uintptr(base) % hugePage
	after := hugePage - PageSize - before
	if before > 0 {
		err = unix.MunmapPtr(base, before)
	}
	base = unsafe.Add(base, before)
	if after > 0 && err == nil {
		err = unix.MunmapPtr(unsafe.Add(base, size), after)
	}
	return base, err
}

// settle says how anonymous memory of a guest is kept: a page that is written to costs a page, not a huge one; and a crash of this
// process is no dump of its guests. Both are wishes.
func settle(b []byte) {
	_ = unix.Madvise(b, unix.MADV_NOHUGEPAGE)
	_ = unix.Madvise(b, unix.MADV_DONTDUMP)
}

// New returns RAM full of zeros.
func New(size uint64) (*Memory, error) {
	m, err := Reserve(size)
	if err != nil {
		return nil, err
	}
	if err := m.Zero(); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// Zero fills reserved RAM with zeros of its own.
func (m *Memory) Zero() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.loaded() {
		return errs.Msg(errs.Invalid, "memory", "zero", "the memory is in use")
	}
	fd, err := newMemfd(m.size)
	if err != nil {
		return err
	}
	if err := m.mapWhole(fd, unix.MAP_SHARED); err != nil {
		unix.Close(fd)
		return hostError("zero", err)
	}
	// Huge pages where the host's shmem_enabled lets a file in memory have some: advice. All who map this file when it is a layer have
	// them too, and still copy pages of 4 KiB.
	_ = unix.Madvise(m.all(), unix.MADV_HUGEPAGE)
	m.fd = fd
	return nil
}

func (m *Memory) loaded() bool { return m.fd >= 0 || m.image != nil }

// mapWhole maps a file of the RAM's size over all of it.
func (m *Memory) mapWhole(fd, flags int) error {
	_, err := unix.MmapPtr(fd, 0, m.base, uintptr(m.size), unix.PROT_READ|unix.PROT_WRITE, flags|unix.MAP_FIXED|unix.MAP_NORESERVE)
	return err
}

// hostError is the kernel's refusal to map or to make a file.
func hostError(op string, err error) error {
	kind := errs.Other
	switch err {
	case unix.ENOMEM, unix.EMFILE, unix.ENFILE, unix.ENOSPC, unix.EFBIG:
		kind = errs.Limit
	}
	return errs.New(kind, "memory", op, err)
}

// Size is how much RAM there is.
func (m *Memory) Size() uint64 { return m.size }

// Regions returns where the guest sees the RAM: all at 0, or the part beyond the hole at HoleEnd.
func (m *Memory) Regions() []Region {
	r := []Region{{Guest: 0, Size: min(m.size, HoleStart), Host: m.base}}
	if m.size > HoleStart {
		r = append(r, Region{Guest: HoleEnd, Size: m.size - HoleStart, Host: unsafe.Add(m.base, HoleStart)})
	}
	return r
}

// Bytes is a window on n bytes at a guest's physical address: what lies outside the RAM, or across its hole, is an
// error of kind Invalid. The guest writes at the same time, so what is read is copied before it is believed. The
// window must not be used after Close.
func (m *Memory) Bytes(addr, n uint64) ([]byte, error) {
	off, err := m.offset(addr, n)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(unsafe.Add(m.base, off)), n), nil
}

// offset is where in the RAM n bytes at a guest's physical address are; errors are those of Bytes.
func (m *Memory) offset(addr, n uint64) (uint64, error) {
	off, limit := addr, min(m.size, HoleStart)
	if addr >= HoleEnd && m.size > HoleStart {
		off, limit = addr-HoleEnd+HoleStart, m.size
	}
	if off > limit || n > limit-off || addr >= HoleStart && addr < HoleEnd {
		return 0, errs.Msg(errs.Invalid, "memory", fmt.Sprintf("%#x", addr), fmt.Sprintf("%d bytes there are outside the guest's memory", n))
	}
	return off, nil
}

// all is the whole RAM by offset.
func (m *Memory) all() []byte { return unsafe.Slice((*byte)(m.base), m.size) }

// Load maps an image into reserved RAM of its size. If it fails, the memory can only be closed.
func (m *Memory) Load(im *Image) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed || m.loaded():
		return errs.Msg(errs.Invalid, "memory", "load", "the memory is in use")
	case im.size != m.size:
		return errs.Msg(errs.Invalid, "memory", "load", fmt.Sprintf("the image has %d bytes, the memory %d", im.size, m.size))
	}
	held, err := im.Clone()
	if err != nil {
		return err
	}
	if err := m.mapExtents(im.extents); err != nil {
		held.Close()
		return err
	}
	m.image = held
	return nil
}

// mapExtents puts layers over the RAM, privately.
func (m *Memory) mapExtents(extents []extent) error {
	for _, e := range extents {
		_, err := unix.MmapPtr(e.l.fd, int64(e.off), unsafe.Add(m.base, e.off), uintptr(e.end-e.off), unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE)
		if err != nil {
			return hostError("map a layer", err)
		}
	}
	return nil
}

// Populate copies pages of spans ahead of being written to: pages that a child is known to write to at once cost
// one call instead of a fault each. Spans are of offsets, [start, end), in whole pages.
func (m *Memory) Populate(spans [][2]uint64) error {
	for _, s := range spans {
		if s[0]%PageSize != 0 || s[1]%PageSize != 0 || s[0] >= s[1] || s[1] > m.size {
			return errs.Msg(errs.Invalid, "memory", "populate", "a span is not one of whole pages")
		}
		if err := unix.Madvise(m.all()[s[0]:s[1]], unix.MADV_POPULATE_WRITE); err != nil && err != unix.EINVAL {
			return hostError("populate", err)
		}
	}
	return nil
}

// Close unmaps the RAM. No VM may have it in a slot any more.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	err := unix.MunmapPtr(m.base, uintptr(m.size))
	m.pagemap.Close()
	if m.fd >= 0 {
		unix.Close(m.fd)
	}
	if m.image != nil {
		m.image.Close()
	}
	if err != nil {
		return hostError("close", err)
	}
	return nil
}
