package kvm

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// VCPU is a virtual CPU. All methods but Kick are for one goroutine at a time; while Run runs, the kernel makes other
// calls wait.
type VCPU struct {
	fd  int
	id  int
	run []byte // struct kvm_run and what follows it, shared with the kernel
}

// ID is the number that it was created with, its APIC's too.
func (c *VCPU) ID() int { return c.id }

// Close ends the vCPU. It must not be running.
func (c *VCPU) Close() error {
	err := unix.Munmap(c.run)
	if err2 := unix.Close(c.fd); err == nil {
		err = err2
	}
	return err
}

// Reason is why a vCPU came back from the guest.
type Reason uint32

// Reasons that x86 gives.
const (
	ExitUnknown     Reason = 0
	ExitException   Reason = 1
	ExitIO          Reason = 2
	ExitHypercall   Reason = 3
	ExitDebug       Reason = 4
	ExitHLT         Reason = 5
	ExitMMIO        Reason = 6
	ExitIRQWindow   Reason = 7
	ExitShutdown    Reason = 8
	ExitFailEntry   Reason = 9
	ExitIntr        Reason = 10
	ExitSetTPR      Reason = 11
	ExitNMI         Reason = 16
	ExitInternal    Reason = 17
	ExitSystemEvent Reason = 24
	ExitIOAPICEOI   Reason = 26
	ExitHyperV      Reason = 27
	ExitReadMSR     Reason = 29
	ExitWriteMSR    Reason = 30
	ExitBusLock     Reason = 33
	ExitNotify      Reason = 37
	ExitMemoryFault Reason = 39
)

var reasonNames = map[Reason]string{ExitUnknown: "unknown", ExitException: "exception", ExitIO: "port", ExitHypercall: "hypercall",
	ExitDebug: "debug", ExitHLT: "halt", ExitMMIO: "mmio", ExitIRQWindow: "interrupt window", ExitShutdown: "triple fault",
	ExitFailEntry: "failed entry", ExitIntr: "interrupted", ExitSetTPR: "set TPR", ExitNMI: "nmi", ExitInternal: "internal error",
	ExitSystemEvent: "system event", ExitIOAPICEOI: "end of interrupt", ExitHyperV: "hyper-v", ExitReadMSR: "read MSR",
	ExitWriteMSR: "write MSR", ExitBusLock: "bus lock", ExitNotify: "notify", ExitMemoryFault: "memory fault"}

func (r Reason) String() string {
	if s, ok := reasonNames[r]; ok {
		return s
	}
	return fmt.Sprintf("exit %d", uint32(r))
}

// Offsets in struct kvm_run.
const (
	runImmediateExit = 1
	runReason        = 8
	runUnion         = 32
)

// Run lets the guest run until it needs something, and returns why. EINTR, when a signal or Kick interrupted it: an
// operation that was under way is complete then, so that the vCPU's state may be read. Any other error is fail's.
func (c *VCPU) Run() (Reason, error) {
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(c.fd), runVCPU, 0)
	switch e {
	case 0:
		return Reason(binary.LittleEndian.Uint32(c.run[runReason:])), nil
	case unix.EINTR, unix.EAGAIN: // EAGAIN: an application processor that was told to start, looks again
		return ExitIntr, unix.EINTR
	}
	return ExitUnknown, fail("run", e)
}

// SetImmediateExit makes the next Run return EINTR at once, after completing what was under way. It may be called from
// any goroutine; a vCPU that is inside Run needs a signal to its thread besides.
func (c *VCPU) SetImmediateExit(on bool) {
	// The kernel reads one byte of the word that holds request_interrupt_window (which is nobody's here), so a
	// store of the whole word is that byte's.
	v := uint32(0)
	if on {
		v = 1 << (8 * runImmediateExit)
	}
	atomic.StoreUint32((*uint32)(unsafe.Pointer(unsafe.SliceData(c.run))), v)
}

// IO is the port access of ExitIO. Data is Count items of Size bytes in the shared page: what is written there is
// what the guest reads.
type IO struct {
	Port  uint16
	Out   bool
	Size  int // 1, 2 or 4
	Count int
	Data  []byte
}

// IO returns the port access that the guest is in.
func (c *VCPU) IO() (IO, error) {
	u := c.run[runUnion:]
	io := IO{Out: u[0] == 1, Size: int(u[1]), Port: binary.LittleEndian.Uint16(u[2:]), Count: int(binary.LittleEndian.Uint32(u[4:]))}
	off := binary.LittleEndian.Uint64(u[8:])
	n := uint64(io.Size) * uint64(io.Count)
	if io.Size < 1 || io.Size > 8 || n > uint64(len(c.run)) || off > uint64(len(c.run))-n {
		return IO{}, fail("port access", unix.EPROTO)
	}
	io.Data = c.run[off : off+n : off+n]
	return io, nil
}

// MMIO is the memory access of ExitMMIO, 1 to 8 bytes in the shared page.
type MMIO struct {
	Addr  uint64
	Write bool
	Data  []byte
}

// MMIO returns the access to no memory that the guest is in.
func (c *VCPU) MMIO() (MMIO, error) {
	u := c.run[runUnion:]
	n := binary.LittleEndian.Uint32(u[16:])
	if n > 8 {
		return MMIO{}, fail("mmio access", unix.EPROTO)
	}
	return MMIO{Addr: binary.LittleEndian.Uint64(u), Write: u[20] != 0, Data: u[8 : 8+n : 8+n]}, nil
}

// Detail describes the exit that the vCPU is in, for errors: what of kvm_run the reason fills.
func (c *VCPU) Detail(r Reason) string {
	u := c.run[runUnion:]
	u32, u64 := binary.LittleEndian.Uint32, binary.LittleEndian.Uint64
	switch r {
	case ExitUnknown, ExitFailEntry:
		return fmt.Sprintf("hardware reason %#x", u64(u))
	case ExitInternal:
		return fmt.Sprintf("suberror %d%s", u32(u), internalData(u))
	case ExitSystemEvent:
		return fmt.Sprintf("event %d", u32(u))
	case ExitIO:
		return fmt.Sprintf("port %#x", binary.LittleEndian.Uint16(u[2:]))
	case ExitMMIO:
		return fmt.Sprintf("address %#x", u64(u))
	}
	return ""
}

// internalData prints the words that come with an internal error, at most sixteen.
func internalData(u []byte) string {
	s := ""
	for i := range min(binary.LittleEndian.Uint32(u[4:]), 16) {
		s += fmt.Sprintf(" %#x", binary.LittleEndian.Uint64(u[8+8*i:]))
	}
	return s
}

// SystemEvent is the type of ExitSystemEvent.
func (c *VCPU) SystemEvent() uint32 { return binary.LittleEndian.Uint32(c.run[runUnion:]) }

// Types of ExitSystemEvent.
const (
	EventShutdown = 1
	EventReset    = 2
	EventCrash    = 3
)
