package vmm

import (
	"agentrun.dev/vmm/boot"
	"agentrun.dev/vmm/kvm"
)

// port is a range of I/O ports. What access returns ends the guest.
type port struct {
	first, last uint16
	access      func(off uint16, p []byte, out bool) *Exit
}

// ports is the port bus: a few ranges that don't overlap.
type ports []port

// access does one read or write of 1, 2 or 4 bytes. Where nothing is, reads are all ones and writes are lost.
func (ps ports) access(at uint16, p []byte, out bool) *Exit {
	for i := range ps {
		if r := &ps[i]; at >= r.first && at <= r.last {
			return r.access(at-r.first, p, out)
		}
	}
	if !out {
		ones(p)
	}
	return nil
}

func ones(p []byte) {
	for i := range p {
		p[i] = 0xff
	}
}

// mmio does one access to a device. Where nothing is, as for ports.
func (v *VM) mmio(m kvm.MMIO) {
	if m.Addr >= DeviceBase {
		n, off := (m.Addr-DeviceBase)/DeviceSize, (m.Addr-DeviceBase)%DeviceSize
		if n < uint64(len(v.devices)) && off+uint64(len(m.Data)) <= DeviceSize {
			if m.Write {
				v.devices[n].Write(off, m.Data)
			} else {
				v.devices[n].Read(off, m.Data)
			}
			return
		}
	}
	if !m.Write {
		ones(m.Data)
	}
}

// The keyboard controller's command port, and what there is the reset line. The other ports are in the ACPI tables.
const (
	portCommand  = 0x64
	commandReset = 0xfe
	sleepEnable  = 1 << 5
	sleepTypeS5  = boot.SleepTypeS5 << 2
	sleepType    = 7 << 2
	panicCrash   = 1 << 0
)

// legacy are the ports that every VM has.
func (v *VM) legacy() ports {
	return ports{
		{boot.PortConsole, boot.PortConsole + 7, func(off uint16, p []byte, out bool) *Exit {
			v.console.access(off, p, out)
			return nil
		}},
		{portCommand, portCommand, func(_ uint16, p []byte, out bool) *Exit {
			if out && p[0] == commandReset {
				return &Exit{Reason: Reset, Detail: "by the keyboard controller"}
			}
			clear(p) // neither full nor busy: nobody is there
			return nil
		}},
		{boot.PortPanic, boot.PortPanic, func(_ uint16, p []byte, out bool) *Exit {
			if out && p[0]&panicCrash != 0 {
				return &Exit{Reason: Panic}
			}
			clear(p)
			p[0] = panicCrash
			return nil
		}},
		{boot.PortSleep, boot.PortSleep + 1, func(off uint16, p []byte, out bool) *Exit {
			if out && off == 0 && p[0]&sleepEnable != 0 && p[0]&sleepType == sleepTypeS5 {
				return &Exit{Reason: Shutdown}
			}
			clear(p)
			return nil
		}},
		{boot.PortReset, boot.PortReset, func(_ uint16, p []byte, out bool) *Exit {
			if out && p[0] == boot.ResetValue {
				return &Exit{Reason: Reset, Detail: "by ACPI"}
			}
			clear(p)
			return nil
		}},
	}
}
