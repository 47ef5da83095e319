// Package boot puts a Linux kernel into a guest's RAM and says how its first vCPU begins.
//
// Kernels are a bzImage by the 64-bit boot protocol (the kernel's Documentation/arch/x86/boot.rst), or a vmlinux (ELF),
// entered by PVH when it has a note for that (Xen's docs/misc/pvh.pandoc), else as the 64-bit protocol says. The
// machine is described by ACPI tables of the hardware-reduced kind (ACPI 6.4): CPUs, the I/O APIC, the serial console,
// a switch to turn it off, and virtio devices on MMIO as LNRO0005, because stock kernels take no devices from their
// command line. Images are input from outside: everything in them is checked, and what is wrong is an error of kind
// Invalid.
package boot

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/kvm"
	"agentrun.dev/vmm/memory"
)

// Linux is what is booted.
type Linux struct {
	Kernel  []byte // bzImage or vmlinux
	Initrd  []byte // may be empty
	Cmdline string // at most MaxCmdline bytes, or what the kernel says it takes
}

// Machine is what the kernel is told that there is.
type Machine struct {
	Memory  *memory.Memory
	VCPUs   int
	Devices []Device // virtio on MMIO
}

// Device is a place on the MMIO bus.
type Device struct {
	Addr, Size uint64
	IRQ        int
}

// MaxCmdline is the longest command line.
const MaxCmdline = 2047

// Guest addresses of what the kernel is given, all below 640 KiB or in the BIOS's old place. Free RAM for the kernel begins at 1 MiB.
const (
	gdtAddr     = 0x500
	startInfo   = 0x6000 // of PVH, with its lists
	zeroPage    = 0x7000 // struct boot_params
	pageTables  = 0x9000 // six pages
	cmdlineAddr = 0x20000
	lowEnd      = 0x9fc00
	acpiAddr    = 0xe0000
	highStart   = 0x100000
)

// MinMemory is the least RAM that a kernel is put into.
const MinMemory = 16 << 20

// Entry is how the first vCPU begins.
type Entry struct {
	Regs  kvm.Regs
	Sregs func(*kvm.Sregs)
}

func invalid(format string, args ...any) error {
	return errs.Msg(errs.Invalid, "boot", "kernel", fmt.Sprintf(format, args...))
}

// Load fills RAM that is zeros. Errors: Invalid for an image that isn't a kernel or a machine too small for it,
// Unsupported for a kernel without a 64-bit entry.
func (l *Linux) Load(m Machine) (Entry, error) {
	if size := m.Memory.Size(); size < MinMemory {
		return Entry{}, invalid("%d bytes of memory are too few for one", size)
	}
	if bytes.IndexByte([]byte(l.Cmdline), 0) >= 0 || len(l.Cmdline) > MaxCmdline {
		return Entry{}, errs.Msg(errs.Invalid, "boot", "command line", fmt.Sprintf("it is longer than %d bytes or has a NUL", MaxCmdline))
	}
	tables, err := acpiTables(m)
	if err != nil {
		return Entry{}, err
	}
	if err := put(m.Memory, acpiAddr, tables); err != nil {
		return Entry{}, err
	}
	if err := put(m.Memory, cmdlineAddr, append([]byte(l.Cmdline), 0)); err != nil {
		return Entry{}, err
	}
	if bytes.HasPrefix(l.Kernel, []byte("\x7fELF")) {
		return l.loadELF(m)
	}
	return l.loadBzImage(m)
}

// put copies to a guest's address.
func put(mem *memory.Memory, addr uint64, b []byte) error {
	w, err := mem.Bytes(addr, uint64(len(b)))
	if err != nil {
		return err
	}
	copy(w, b)
	return nil
}

// lowTop is where RAM below 4 GiB ends.
func lowTop(mem *memory.Memory) uint64 { return min(mem.Size(), memory.HoleStart) }

// placeInitrd copies the initramfs as high as it may be, and above what the kernel needs.
func (l *Linux) placeInitrd(mem *memory.Memory, kernelEnd, highest uint64) (uint64, error) {
	n := uint64(len(l.Initrd))
	if n == 0 {
		return 0, nil
	}
	top := min(lowTop(mem), highest)
	if n > top || (top-n)&^(memory.PageSize-1) < kernelEnd {
		return 0, errs.Msg(errs.Invalid, "boot", "initramfs", fmt.Sprintf("%d bytes don't fit into memory beside the kernel", n))
	}
	at := (top - n) &^ (memory.PageSize - 1)
	return at, put(mem, at, l.Initrd)
}

// ram is a range of the memory map, and types of E820.
type ram struct {
	addr, size uint64
	kind       uint32
}

const (
	usable   = 1
	reserved = 2
	acpiData = 3
)

// memoryMap is what the kernel may use.
func memoryMap(mem *memory.Memory) []ram {
	out := []ram{{0, lowEnd, usable}, {lowEnd, acpiAddr - lowEnd, reserved}, {acpiAddr, highStart - acpiAddr, acpiData}}
	for i, r := range mem.Regions() {
		if i == 0 {
			r.Guest, r.Size = highStart, r.Size-highStart
		}
		out = append(out, ram{r.Guest, r.Size, usable})
	}
	return out
}

// Descriptors of the table at gdtAddr: none, none, 64-bit code (0x10), data (0x18).
var gdt = [4]uint64{0, 0, 0x00af9b000000ffff, 0x00cf93000000ffff}

func segment(selector uint16, kind uint8, long bool) kvm.Segment {
	s := kvm.Segment{Limit: 0xffffffff, Selector: selector, Type: kind, Present: 1, S: 1, G: 1}
	if long {
		s.L = 1
	} else {
		s.DB = 1
	}
	return s
}

func setData(s *kvm.Sregs) {
	data := segment(0x18, 3, false)
	s.DS, s.ES, s.FS, s.GS, s.SS = data, data, data, data, data
	s.TR = kvm.Segment{Limit: 0xffff, Type: 11, Present: 1}
	s.GDT = kvm.DTable{Base: gdtAddr, Limit: 8*uint16(len(gdt)) - 1}
	s.IDT = kvm.DTable{}
}

// longMode prepares the entry of the 64-bit protocol: the first 4 GiB mapped as they are, RSI at boot_params.
func longMode(mem *memory.Memory, rip uint64) (Entry, error) {
	table := make([]byte, 6*4096)
	set := func(at int, e uint64) { binary.LittleEndian.PutUint64(table[at:], e) }
	const present, large = 3, 0x83
	set(0, pageTables+0x1000|present)
	for g := range 4 {
		set(0x1000+8*g, uint64(pageTables+0x2000+g*0x1000)|present)
		for i := range 512 {
			set(0x2000+g*0x1000+8*i, uint64(g<<30+i<<21)|large)
		}
	}
	if err := put(mem, pageTables, table); err != nil {
		return Entry{}, err
	}
	if err := putGDT(mem); err != nil {
		return Entry{}, err
	}
	return Entry{Regs: kvm.Regs{RIP: rip, RSI: zeroPage, RSP: zeroPage, RFlags: 2}, Sregs: func(s *kvm.Sregs) {
		setData(s)
		s.CS = segment(0x10, 11, true)
		s.CR0, s.CR3, s.CR4, s.EFER = 0x80050033, pageTables, 0x20, 0x500
	}}, nil
}

func putGDT(mem *memory.Memory) error {
	var b [8 * len(gdt)]byte
	for i, d := range gdt {
		binary.LittleEndian.PutUint64(b[8*i:], d)
	}
	return put(mem, gdtAddr, b[:])
}
