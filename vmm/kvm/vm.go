package kvm

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// VM is a virtual machine's descriptor. Its methods may be called at the same time.
type VM struct {
	fd      int
	runSize int
}

// Close closes the descriptor; the kernel keeps the VM until its vCPUs are closed too.
func (v *VM) Close() error { return unix.Close(v.fd) }

// FD is the descriptor, still owned by v.
func (v *VM) FD() int { return v.fd }

// MemoryFlags of a slot.
type MemoryFlags uint32

const (
	LogDirty MemoryFlags = 1 << 0 // the kernel notes which pages the guest writes to
	ReadOnly MemoryFlags = 1 << 1 // writes are MMIO exits
)

// SetMemory puts host memory at a guest physical address; size 0 takes the slot away. Addresses and size are
// multiples of the page size. The memory belongs to the caller and must stay mapped as long as the slot is there:
// what is mapped there may change at any time, and the guest sees the change.
func (v *VM) SetMemory(slot uint32, flags MemoryFlags, guest, size uint64, host unsafe.Pointer) error {
	r := userspaceMemoryRegion{slot: slot, flags: uint32(flags), guest: guest, size: size, host: uint64(uintptr(host))}
	if _, err := ioctlp(v.fd, setUserMemoryRegion, unsafe.Pointer(&r)); err != nil {
		return fail("set memory", err)
	}
	return nil
}

// DirtyLog reads and clears the pages of a slot that the guest wrote to: a bit each, the lowest first. bitmap must
// have a bit for each page of the slot.
func (v *VM) DirtyLog(slot uint32, bitmap []uint64) error {
	l := dirtyLog{slot: slot, bitmap: unsafe.Pointer(unsafe.SliceData(bitmap))}
	if _, err := ioctlp(v.fd, getDirtyLog, unsafe.Pointer(&l)); err != nil {
		return fail("dirty log", err)
	}
	return nil
}

// IRQLine sets the level of an interrupt line of the in-kernel controllers.
func (v *VM) IRQLine(irq uint32, high bool) error {
	l := irqLevel{irq: irq}
	if high {
		l.level = 1
	}
	if _, err := ioctlp(v.fd, setIRQLine, unsafe.Pointer(&l)); err != nil {
		return fail("interrupt line", err)
	}
	return nil
}

// CreateVCPU makes the vCPU number id.
func (v *VM) CreateVCPU(id int) (*VCPU, error) {
	fd, err := ioctl(v.fd, createVCPU, uintptr(id))
	if err != nil {
		return nil, fail("create vCPU", err)
	}
	run, err := unix.Mmap(fd, 0, v.runSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		unix.Close(fd)
		return nil, fail("map vCPU", err)
	}
	return &VCPU{fd: fd, id: id, run: run}, nil
}
