// Package snapshot is what a paused VM is, apart from the descriptors that it holds: the state of its CPUs, interrupt
// controllers, clock, console and devices, and the image of its RAM. It can be restored in the same process, where
// nothing of the RAM is copied, or written to a file and read on another host that fits (see Fits).
package snapshot

import (
	"encoding/json"
	"fmt"
	"slices"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/kvm"
	"agentrun.dev/vmm/memory"
)

// Snapshot is a VM at an instant. It doesn't change; it owns Memory and the files of Disks.
type Snapshot struct {
	Machine Machine
	CPUs    CPUs
	Chips   [][]byte // PICs and I/O APIC; none in a bare VM
	PIT     []byte   // none without one
	Clock   uint64   // the paravirtual clock, nanoseconds
	Console []byte
	Devices [][]byte // by their place on the bus
	Disks   []Disk   `json:",omitempty"` // that are written copy on write, in the order of their places

	Memory *memory.Image `json:"-"`
	// Origin says whose snapshot it is within a process, so that its own needn't be held against the host again.
	Origin any `json:"-"`
}

// Machine is what a VM must be made like to be given the snapshot.
type Machine struct {
	Memory uint64
	VCPUs  int
	PIT    bool
	Bare   bool
}

// Close gives the RAM's image and the disks up.
func (s *Snapshot) Close() error {
	for i := range s.Disks {
		s.Disks[i].Close()
	}
	if s.Memory == nil {
		return nil
	}
	return s.Memory.Close()
}

// CPUs are those of a machine.
type CPUs []CPU

// maxCPUs is more than a machine can have.
const maxCPUs = 256

// UnmarshalJSON refuses too many: each takes hundreds of times as much room as its shortest text.
func (c *CPUs) UnmarshalJSON(b []byte) error {
	var list []json.RawMessage
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	if len(list) > maxCPUs {
		return errs.Msg(errs.Corrupt, "snapshot", "read", fmt.Sprintf("%d vCPUs", len(list)))
	}
	*c = make(CPUs, len(list))
	for i, raw := range list {
		if err := json.Unmarshal(raw, &(*c)[i]); err != nil {
			return err
		}
	}
	return nil
}

// CPU is a vCPU's state. What only the kernel reads is kept as the kernel gave it.
type CPU struct {
	CPUID  []kvm.CPUIDEntry
	Regs   kvm.Regs
	Sregs  kvm.Sregs
	Events []byte
	Debug  []byte
	XCRs   []byte
	XSave  []byte
	LAPIC  []byte // none in a bare VM
	MSRs   []kvm.MSR
	MP     uint32
	TSCKHz int
}

// Registers that are handled by themselves.
const (
	msrTSC         = 0x10
	msrTSCDeadline = 0x6e0
)

// ReadMSRs reads those of the list that this vCPU has.
func ReadMSRs(c *kvm.VCPU, list []uint32) ([]kvm.MSR, error) {
	out := make([]kvm.MSR, len(list))
	for i, id := range list {
		out[i].Index = id
	}
	for i := 0; i < len(out); {
		n, err := c.MSRs(out[i:])
		if err != nil {
			return nil, err
		}
		if i += n; i < len(out) { // the kernel lists some that this CPU refuses
			out = append(out[:i], out[i+1:]...)
		}
	}
	return out, nil
}

// ReadCPU reads the state of a vCPU that is paused; the MP state first, because reading it takes in what the APIC was
// told. CPUID is what it was told; xsave is VM.XSaveSize.
func ReadCPU(c *kvm.VCPU, cpuid []kvm.CPUIDEntry, msrs []uint32, xsave int, bare bool) (s CPU, err error) {
	s.CPUID = cpuid
	keep := func(err2 error) {
		if err == nil {
			err = err2
		}
	}
	block := func(read func([]byte) error, size int) []byte {
		b := make([]byte, size)
		keep(read(b))
		return b
	}
	var err2 error
	if s.MP, err2 = c.MPState(); err2 != nil && !bare {
		keep(err2)
	}
	s.Events = block(c.Events, kvm.EventsSize) // before CR2 and DR6, which a pending exception is written to by this
	s.Regs, err2 = c.Regs()
	keep(err2)
	s.Sregs, err2 = c.Sregs()
	keep(err2)
	s.XSave = block(c.XSave, xsave)
	s.XCRs = block(c.XCRs, kvm.XCRsSize)
	s.Debug = block(c.DebugRegs, kvm.DebugRegsSize)
	// The timer's deadline before the APIC: the kernel may find at any call that the timer is due, takes the deadline away then and has the
	// APIC interrupt. In this order the interrupt is seen in one of the two, at worst in both; else it could be in neither, and a
	// vCPU that waits for it would wait for ever.
	s.MSRs, err2 = ReadMSRs(c, msrs)
	keep(err2)
	if !bare {
		s.LAPIC = block(c.LAPIC, kvm.LAPICSize)
	}
	s.TSCKHz = c.TSCKHz()
	return s, err
}

// Set gives a new vCPU the state. fresh are the registers as a new vCPU has them: those that agree aren't set, which
// is most of them, and among them those that can't be. The order is the kernel's: what others depend on comes first.
func (s *CPU) Set(c *kvm.VCPU, fresh []kvm.MSR) error {
	var err error
	keep := func(err2 error) {
		if err == nil {
			err = err2
		}
	}
	bare := s.LAPIC == nil
	if !bare {
		keep(c.SetMPState(s.MP))
	}
	keep(c.SetRegs(&s.Regs))
	keep(c.SetSregs(&s.Sregs))
	keep(c.SetXSave(s.XSave))
	keep(c.SetXCRs(s.XCRs))
	keep(c.SetDebugRegs(s.Debug))
	if !bare {
		keep(c.SetLAPIC(s.LAPIC))
	}
	if err != nil {
		return err
	}
	if err := setMSRs(c, s.MSRs, fresh); err != nil {
		return err
	}
	return c.SetEvents(s.Events)
}

// farTSC is far from any counter's value that is to be set.
const farTSC = 1 << 44

// setMSRs sets the counter of the VM's first vCPU to something far from what it is to be, first. A value less than a second off is taken
// by kernels for an attempt at what is there already, and not set: a shell as old as the guest would keep its own time, which may be behind
// the guest's. The other vCPUs' counters then agree with the first's, as they should.
func setMSRs(c *kvm.VCPU, want, fresh []kvm.MSR) error {
	list := make([]kvm.MSR, 0, len(want)+1)
	var deadline []kvm.MSR
	for i, m := range want {
		if m.Index == msrTSC && c.ID() == 0 {
			list = slices.Insert(list, 0, kvm.MSR{Index: msrTSC, Value: m.Value + farTSC})
		}
		switch {
		case m.Index == msrTSCDeadline: // after the counter that it is a value of
			deadline = append(deadline, m)
		case m.Index != msrTSC && i < len(fresh) && fresh[i] == m:
		default:
			list = append(list, m)
		}
	}
	list = append(list, deadline...)
	n, err := c.SetMSRs(list)
	if err == nil && n < len(list) {
		err = errs.Msg(errs.Unsupported, "snapshot", "restore", fmt.Sprintf("this host refuses the register %#x", list[n].Index))
	}
	return err
}
