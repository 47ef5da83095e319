package kvm

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Numbers of ioctls: _IO, _IOR, _IOW and _IOWR of KVMIO (0xae) with the sizes that x86-64 has.
const (
	getAPIVersion          = 0xae00
	createVM               = 0xae01
	getMSRIndexList        = 0xc004ae02
	checkExtension         = 0xae03
	getVCPUMmapSize        = 0xae04
	getSupportedCPUID      = 0xc008ae05
	getMSRFeatureIndexList = 0xc004ae0a
	createVCPU             = 0xae41
	getDirtyLog            = 0x4010ae42
	setUserMemoryRegion    = 0x4020ae46
	setTSSAddr             = 0xae47
	setIdentityMapAddr     = 0x4008ae48
	createIRQChip          = 0xae60
	setIRQLine             = 0x4008ae61
	getIRQChip             = 0xc208ae62
	setIRQChip             = 0x8208ae63
	createPIT2             = 0x4040ae77
	setClock               = 0x4030ae7b
	getClock               = 0x8030ae7c
	runVCPU                = 0xae80
	getRegs                = 0x8090ae81
	setRegs                = 0x4090ae82
	getSregs               = 0x8138ae83
	setSregs               = 0x4138ae84
	getMSRs                = 0xc008ae88
	setMSRs                = 0x4008ae89
	getLAPIC               = 0x8400ae8e
	setLAPIC               = 0x4400ae8f
	setCPUID2              = 0x4008ae90
	getMPState             = 0x8004ae98
	setMPState             = 0x4004ae99
	getPIT2                = 0x8070ae9f
	getVCPUEvents          = 0x8040ae9f
	setPIT2                = 0x4070aea0
	setVCPUEvents          = 0x4040aea0
	getDebugRegs           = 0x8080aea1
	setDebugRegs           = 0x4080aea2
	setTSCKHz              = 0xaea2
	getTSCKHz              = 0xaea3
	getXSave               = 0x9000aea4
	setXSave               = 0x5000aea5
	getXCRs                = 0x8188aea6
	setXCRs                = 0x4188aea7
	kvmClockCtrl           = 0xaead
	getXSave2              = 0x9000aecf
)

// runSizeMin is struct kvm_run's size.
const runSizeMin = 2352

type userspaceMemoryRegion struct {
	slot, flags       uint32
	guest, size, host uint64
}

type dirtyLog struct {
	slot, _ uint32
	bitmap  unsafe.Pointer
}

type irqLevel struct{ irq, level uint32 }

// Regs are the general registers.
type Regs struct {
	RAX, RBX, RCX, RDX, RSI, RDI, RSP, RBP uint64
	R8, R9, R10, R11, R12, R13, R14, R15   uint64
	RIP, RFlags                            uint64
}

// Segment is a segment register with what its descriptor said.
type Segment struct {
	Base                           uint64
	Limit                          uint32
	Selector                       uint16
	Type, Present, DPL, DB, S      uint8
	L, G, AVL, Unusable, Reserved_ uint8
}

// DTable is the descriptor table register.
type DTable struct {
	Base  uint64
	Limit uint16
	_     [3]uint16
}

// Sregs are the system registers.
type Sregs struct {
	CS, DS, ES, FS, GS, SS, TR, LDT Segment
	GDT, IDT                        DTable
	CR0, CR2, CR3, CR4, CR8         uint64
	EFER, APICBase                  uint64
	Interrupts                      [4]uint64
}

// Sizes of the structures that are kept as they are: what only the kernel reads has no Go type.
const (
	EventsSize    = 64
	DebugRegsSize = 128
	XCRsSize      = 392
	LAPICSize     = 1024
	IRQChipSize   = 520
	PITSize       = 112
	XSaveSize     = 4096 // at least; with AMX and the like more, see System.XSaveSize
	clockSize     = 48
)

// MP states of a vCPU.
const (
	Runnable      = 0
	Uninitialized = 1
	InitReceived  = 2
	Halted        = 3
	SIPIReceived  = 4
)

// CPUIDEntry is what one leaf of CPUID tells the guest.
type CPUIDEntry struct {
	Function, Index, Flags uint32
	EAX, EBX, ECX, EDX     uint32
	_                      [3]uint32
}

// CPUIDIndexed in Flags says that Index matters.
const CPUIDIndexed = 1

// maxCPUID is more than any CPU has; the kernel itself refuses more than 256.
const maxCPUID = 256

// cpuid2 is struct kvm_cpuid2 with room.
type cpuid2 struct {
	n, _    uint32
	entries [maxCPUID]CPUIDEntry
}

// SupportedCPUID returns what the host's CPU and KVM can give to a guest.
func (s *System) SupportedCPUID() ([]CPUIDEntry, error) {
	c := &cpuid2{n: maxCPUID}
	if _, err := ioctlp(s.fd, getSupportedCPUID, unsafe.Pointer(c)); err != nil {
		return nil, fail("supported CPUID", err)
	}
	return append([]CPUIDEntry(nil), c.entries[:min(c.n, maxCPUID)]...), nil
}

// MSRIndexes returns the model-specific registers that belong to a vCPU's state.
func (s *System) MSRIndexes() ([]uint32, error) {
	var l struct {
		n   uint32
		ids [1024]uint32
	}
	l.n = uint32(len(l.ids))
	if _, err := ioctlp(s.fd, getMSRIndexList, unsafe.Pointer(&l)); err != nil {
		return nil, fail("MSR list", err)
	}
	return append([]uint32(nil), l.ids[:min(int(l.n), len(l.ids))]...), nil
}

// XSaveSize is how many bytes a VM's vCPUs' XSave have.
func (v *VM) XSaveSize() int {
	n, err := ioctl(v.fd, checkExtension, uintptr(CapXSave2))
	if err != nil || n < XSaveSize {
		return XSaveSize
	}
	return n
}

// SetTSSAddr gives Intel's KVM three pages of guest addresses that hold no memory, for real mode. Needed before vCPUs.
func (v *VM) SetTSSAddr(addr uint64) error {
	if _, err := ioctl(v.fd, setTSSAddr, uintptr(addr)); err != nil {
		return fail("TSS address", err)
	}
	return nil
}

// SetIdentityMapAddr gives Intel's KVM a page beside those of SetTSSAddr.
func (v *VM) SetIdentityMapAddr(addr uint64) error {
	if _, err := ioctlp(v.fd, setIdentityMapAddr, unsafe.Pointer(&addr)); err != nil {
		return fail("identity map address", err)
	}
	return nil
}

// CreateIRQChip makes PICs, I/O APIC and, in each vCPU that follows, a local APIC.
func (v *VM) CreateIRQChip() error {
	if _, err := ioctl(v.fd, createIRQChip, 0); err != nil {
		return fail("create irqchip", err)
	}
	return nil
}

// IRQChips are the chips of IRQChip: two PICs and the I/O APIC.
const IRQChips = 3

// IRQChip reads the state of a chip, IRQChipSize bytes.
func (v *VM) IRQChip(chip int, state []byte) error {
	if len(state) != IRQChipSize {
		return fail("irqchip", unix.EINVAL)
	}
	binary.LittleEndian.PutUint32(state, uint32(chip))
	if _, err := ioctlp(v.fd, getIRQChip, unsafe.Pointer(&state[0])); err != nil {
		return fail("irqchip", err)
	}
	return nil
}

// SetIRQChip sets the state of a chip from what IRQChip read.
func (v *VM) SetIRQChip(chip int, state []byte) error {
	if len(state) != IRQChipSize || binary.LittleEndian.Uint32(state) != uint32(chip) {
		return fail("set irqchip", unix.EINVAL)
	}
	if _, err := ioctlp(v.fd, setIRQChip, unsafe.Pointer(&state[0])); err != nil {
		return fail("set irqchip", err)
	}
	return nil
}

// CreatePIT makes the interval timer, with a port 0x61 that nobody hears.
func (v *VM) CreatePIT() error {
	config := [16]uint32{0: 1} // KVM_PIT_SPEAKER_DUMMY
	if _, err := ioctlp(v.fd, createPIT2, unsafe.Pointer(&config)); err != nil {
		return fail("create PIT", err)
	}
	return nil
}

// PIT reads the timer's state, PITSize bytes.
func (v *VM) PIT(state []byte) error { return sized(v.fd, getPIT2, "PIT", state, PITSize) }

// SetPIT sets the timer's state.
func (v *VM) SetPIT(state []byte) error { return sized(v.fd, setPIT2, "set PIT", state, PITSize) }

// sized is an ioctl on a structure that is kept as bytes.
func sized(fd int, req uintptr, op string, state []byte, size int) error {
	if len(state) != size {
		return fail(op, unix.EINVAL)
	}
	if _, err := ioctlp(fd, req, unsafe.Pointer(&state[0])); err != nil {
		return fail(op, err)
	}
	return nil
}

// Clock returns the paravirtual clock, in nanoseconds.
func (v *VM) Clock() (uint64, error) {
	var b [clockSize]byte
	if err := sized(v.fd, getClock, "clock", b[:], clockSize); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}

// SetClock sets the paravirtual clock.
func (v *VM) SetClock(ns uint64) error {
	var b [clockSize]byte
	binary.LittleEndian.PutUint64(b[:], ns)
	return sized(v.fd, setClock, "set clock", b[:], clockSize)
}

// SetCPUID tells the vCPU what to tell the guest. Once, before it runs.
func (c *VCPU) SetCPUID(entries []CPUIDEntry) error {
	if len(entries) > maxCPUID {
		return fail("set CPUID", unix.E2BIG)
	}
	t := &cpuid2{n: uint32(len(entries))}
	copy(t.entries[:], entries)
	if _, err := ioctlp(c.fd, setCPUID2, unsafe.Pointer(t)); err != nil {
		return fail("set CPUID", err)
	}
	return nil
}

// Regs reads the general registers.
func (c *VCPU) Regs() (r Regs, err error) {
	if _, err := ioctlp(c.fd, getRegs, unsafe.Pointer(&r)); err != nil {
		return r, fail("registers", err)
	}
	return r, nil
}

// SetRegs sets the general registers.
func (c *VCPU) SetRegs(r *Regs) error {
	if _, err := ioctlp(c.fd, setRegs, unsafe.Pointer(r)); err != nil {
		return fail("set registers", err)
	}
	return nil
}

// Sregs reads the system registers.
func (c *VCPU) Sregs() (r Sregs, err error) {
	if _, err := ioctlp(c.fd, getSregs, unsafe.Pointer(&r)); err != nil {
		return r, fail("system registers", err)
	}
	return r, nil
}

// SetSregs sets the system registers.
func (c *VCPU) SetSregs(r *Sregs) error {
	if _, err := ioctlp(c.fd, setSregs, unsafe.Pointer(r)); err != nil {
		return fail("set system registers", err)
	}
	return nil
}

// Events, DebugRegs, XCRs and LAPIC read and set structures of the sizes above, which are kept as they are.

func (c *VCPU) Events(b []byte) error {
	return sized(c.fd, getVCPUEvents, "vCPU events", b, EventsSize)
}
func (c *VCPU) SetEvents(b []byte) error {
	return sized(c.fd, setVCPUEvents, "set vCPU events", b, EventsSize)
}
func (c *VCPU) DebugRegs(b []byte) error {
	return sized(c.fd, getDebugRegs, "debug registers", b, DebugRegsSize)
}
func (c *VCPU) SetDebugRegs(b []byte) error {
	return sized(c.fd, setDebugRegs, "set debug registers", b, DebugRegsSize)
}
func (c *VCPU) XCRs(b []byte) error    { return sized(c.fd, getXCRs, "XCRs", b, XCRsSize) }
func (c *VCPU) SetXCRs(b []byte) error { return sized(c.fd, setXCRs, "set XCRs", b, XCRsSize) }
func (c *VCPU) LAPIC(b []byte) error   { return sized(c.fd, getLAPIC, "local APIC", b, LAPICSize) }
func (c *VCPU) SetLAPIC(b []byte) error {
	return sized(c.fd, setLAPIC, "set local APIC", b, LAPICSize)
}

// XSave reads the floating-point and vector state, VM.XSaveSize bytes.
func (c *VCPU) XSave(b []byte) error {
	if len(b) > XSaveSize {
		return sized(c.fd, getXSave2, "xsave", b, len(b))
	}
	return sized(c.fd, getXSave, "xsave", b, XSaveSize)
}

// SetXSave sets what XSave read; b has VM.XSaveSize bytes, which is how many the kernel reads.
func (c *VCPU) SetXSave(b []byte) error {
	if len(b) < XSaveSize {
		return fail("set xsave", unix.EINVAL)
	}
	return sized(c.fd, setXSave, "set xsave", b, len(b))
}

// MPState reads whether the vCPU runs, sleeps or waits to be started.
func (c *VCPU) MPState() (uint32, error) {
	var s uint32
	if _, err := ioctlp(c.fd, getMPState, unsafe.Pointer(&s)); err != nil {
		return 0, fail("MP state", err)
	}
	return s, nil
}

// SetMPState sets what MPState read.
func (c *VCPU) SetMPState(s uint32) error {
	if _, err := ioctlp(c.fd, setMPState, unsafe.Pointer(&s)); err != nil {
		return fail("set MP state", err)
	}
	return nil
}

// MSR is a model-specific register and its value.
type MSR struct {
	Index uint32
	_     uint32
	Value uint64
}

// maxMSRs is how many the kernel takes in one call.
const maxMSRs = 256

type msrs struct {
	n, _    uint32
	entries [maxMSRs]MSR
}

// MSRs reads registers: of each in list the index is given and the value filled in. It returns how many it has read:
// fewer than there are when the kernel refuses the next one.
func (c *VCPU) MSRs(list []MSR) (int, error) { return c.msrs(getMSRs, "MSRs", list) }

// SetMSRs sets registers, in order, and returns how many the kernel took.
func (c *VCPU) SetMSRs(list []MSR) (int, error) { return c.msrs(setMSRs, "set MSRs", list) }

func (c *VCPU) msrs(req uintptr, op string, list []MSR) (done int, err error) {
	m := new(msrs)
	for done < len(list) {
		k := copy(m.entries[:], list[done:])
		m.n = uint32(k)
		n, err := ioctlp(c.fd, req, unsafe.Pointer(m))
		if err != nil {
			return done, fail(op, err)
		}
		copy(list[done:], m.entries[:n])
		if done += n; n < k {
			return done, nil
		}
	}
	return done, nil
}

// TSCKHz is the rate of the vCPU's time stamp counter; 0 when the kernel doesn't know.
func (c *VCPU) TSCKHz() int {
	n, err := ioctl(c.fd, getTSCKHz, 0)
	if err != nil {
		return 0
	}
	return n
}

// SetTSCKHz scales the counter to another rate, where the hardware can.
func (c *VCPU) SetTSCKHz(khz int) error {
	if _, err := ioctl(c.fd, setTSCKHz, uintptr(khz)); err != nil {
		return fail("set TSC rate", err)
	}
	return nil
}

// ClockCtrl tells the guest's kernel that it was paused, so that its watchdog doesn't bark. EINVAL, when the guest
// has no paravirtual clock, is no error.
func (c *VCPU) ClockCtrl() error {
	if _, err := ioctl(c.fd, kvmClockCtrl, 0); err != nil && err != unix.EINVAL {
		return fail("clock control", err)
	}
	return nil
}
