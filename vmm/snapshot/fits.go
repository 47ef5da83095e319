package snapshot

import (
	"fmt"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/kvm"
)

// Host is what a snapshot is held against.
type Host struct {
	CPUID    []kvm.CPUIDEntry // what it can give to guests
	MSRs     []uint32
	XSave    int // bytes, VM.XSaveSize
	TSCKHz   int
	TSCScale bool // guests can have another rate than the host
}

// Registers of a leaf that are flags: what is set for the guest must be set on the host.
type flags struct {
	function, index uint32
	registers       string
}

var featureLeaves = [...]flags{
	{1, 0, "cd"}, {7, 0, "bcd"}, {7, 1, "abcd"}, {7, 2, "d"}, {0xd, 0, "ad"}, {0xd, 1, "acd"}, {0x14, 0, "bc"}, {0x19, 0, "abc"}, {0x1e, 1, "a"},
	{0x24, 0, "b"}, {0x80000001, 0, "cd"}, {0x80000007, 0, "d"}, {0x80000008, 0, "b"}, {0x8000000a, 0, "d"}, {0x80000021, 0, "a"},
	{0x40000001, 0, "a"},
}

// tscTolerance is by how much rates may differ that are called the same: KVM's own tolerance, in parts per million.
const tscTolerance = 250

// emulated is what a guest is told by KVM or by us, whatever the host has.
func emulated(f flags, r rune) uint32 {
	switch {
	case f.function == 1 && r == 'c':
		return 1<<31 | 1<<27 | 1<<24 | 1<<21 // hypervisor, OSXSAVE, TSC deadline, x2APIC
	case f.function == 1 && r == 'd':
		return 1 << 28 // several vCPUs
	}
	return 0
}

// Fits says whether the snapshot can be restored on a host: nil, or an error of kind Unsupported that names what is missing.
func (s *Snapshot) Fits(h *Host) error {
	refuse := func(format string, args ...any) error {
		return errs.Msg(errs.Unsupported, "snapshot", "restore", "this host doesn't fit: "+fmt.Sprintf(format, args...))
	}
	if len(s.CPUs) == 0 {
		return errs.Msg(errs.Corrupt, "snapshot", "restore", "it has no vCPU")
	}
	known := make(map[uint32]bool, len(h.MSRs))
	for _, id := range h.MSRs {
		known[id] = true
	}
	for i := range s.CPUs {
		c := &s.CPUs[i]
		if err := fitsCPUID(c.CPUID, h.CPUID, refuse); err != nil {
			return err
		}
		for _, m := range c.MSRs {
			if !known[m.Index] {
				return refuse("its KVM doesn't know the register %#x", m.Index)
			}
		}
		if len(c.XSave) != h.XSave {
			return refuse("its vector state has %d bytes, the guest's %d", h.XSave, len(c.XSave))
		}
		if d := c.TSCKHz - h.TSCKHz; c.TSCKHz != 0 && !h.TSCScale && max(d, -d) > c.TSCKHz/1e6*tscTolerance+c.TSCKHz%1e6*tscTolerance/1e6 {
			return refuse("its time stamp counter runs at %d kHz, the guest's at %d, and it can't be scaled", h.TSCKHz, c.TSCKHz)
		}
	}
	return nil
}

// fitsCPUID compares vendor and features.
func fitsCPUID(guest, host []kvm.CPUIDEntry, refuse func(string, ...any) error) error {
	g, h := leaf(guest, 0, 0), leaf(host, 0, 0)
	if g.EBX != h.EBX || g.ECX != h.ECX || g.EDX != h.EDX {
		return refuse("its CPU is of another vendor")
	}
	for _, f := range featureLeaves {
		g, h := leaf(guest, f.function, f.index), leaf(host, f.function, f.index)
		for _, r := range f.registers {
			missing := register(g, r) &^ register(h, r) &^ emulated(f, r)
			if missing != 0 {
				return refuse("its CPU or KVM lacks features that the guest was told of (leaf %#x.%d, e%cx %#x)", f.function, f.index, r, missing)
			}
		}
	}
	return nil
}

func register(e kvm.CPUIDEntry, r rune) uint32 {
	switch r {
	case 'a':
		return e.EAX
	case 'b':
		return e.EBX
	case 'c':
		return e.ECX
	}
	return e.EDX
}

func leaf(list []kvm.CPUIDEntry, function, index uint32) kvm.CPUIDEntry {
	for _, e := range list {
		if e.Function == function && (e.Flags&kvm.CPUIDIndexed == 0 || e.Index == index) {
			return e
		}
	}
	return kvm.CPUIDEntry{}
}
