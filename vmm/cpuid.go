package vmm

import (
	"encoding/binary"
	"math/bits"

	"agentrun.dev/vmm/kvm"
)

// guestCPUID is what vCPU id of n tells the guest: what the host supports, with its own place in the topology (one
// thread for each core, all in one package).
func guestCPUID(host []kvm.CPUIDEntry, id, n int) []kvm.CPUIDEntry {
	out := make([]kvm.CPUIDEntry, 0, len(host))
	shift := uint32(bits.Len(uint(n - 1)))
	for _, e := range host {
		switch e.Function {
		case 1:
			e.EBX = e.EBX&0xffff | uint32(n)<<16 | uint32(id)<<24
			e.ECX |= 1<<31 | 1<<24 // a hypervisor is present; TSC deadlines, which the in-kernel APIC has
			if n > 1 {
				e.EDX |= 1 << 28
			} else {
				e.EDX &^= 1 << 28
			}
		case 4: // caches: who shares them
			if e.EAX&0x1f != 0 {
				e.EAX = e.EAX&0x3fff | uint32(n-1)<<26
				if e.EAX>>5&7 >= 3 {
					e.EAX |= uint32(n-1) << 14
				}
			}
		case 0xb, 0x1f:
			e.EDX = uint32(id)
			switch e.Index {
			case 0:
				e.EAX, e.EBX, e.ECX = 0, 1, 1<<8
			case 1:
				e.EAX, e.EBX, e.ECX = shift, uint32(n), 2<<8|1
			default:
				e.EAX, e.EBX, e.ECX = 0, 0, e.Index
			}
		case 0x40000001:
			// No asynchronous page faults: every page that a child sees for the first time would be one, with an
			// exception and an interrupt to it, and those under way at a snapshot would be lost.
			e.EAX &^= 1<<4 | 1<<10 | 1<<14
		case 0x80000008:
			e.ECX = e.ECX&^0xf0ff | shift<<12 | uint32(n-1)
		case 0x8000001e:
			e.EAX, e.EBX, e.ECX = uint32(id), uint32(id), 0
		}
		out = append(out, e)
	}
	return out
}

// wireLAPIC connects the pins of a local APIC as a PC's firmware does: the first to the PICs, the second to NMI.
func (c *vcpu) wireLAPIC() error {
	const lint0, lint1 = 0x350, 0x360
	const extINT, nmi = 7 << 8, 4 << 8
	b := make([]byte, kvm.LAPICSize)
	if err := c.kvm.LAPIC(b); err != nil {
		return err
	}
	for off, mode := range map[int]uint32{lint0: extINT, lint1: nmi} {
		v := binary.LittleEndian.Uint32(b[off:])
		binary.LittleEndian.PutUint32(b[off:], v&^(7<<8)|mode)
	}
	return c.kvm.SetLAPIC(b)
}
