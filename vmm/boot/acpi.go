package boot

import (
	"fmt"

	"agentrun.dev/errs"
)

// Ports of the machine that its tables name. Package vmm listens there.
const (
	PortSleep   = 0x600 // sleep control, and status after it
	PortReset   = 0x604
	ResetValue  = 1
	SleepTypeS5 = 5
	PortPanic   = 0x505
	PortConsole = 0x3f8
	IRQConsole  = 4
)

const (
	localAPIC = 0xfee00000
	ioAPIC    = 0xfec00000
)

// checksum makes the bytes' sum 0 by the one at at.
func checksum(b []byte, at int) {
	b[at] = 0
	sum := byte(0)
	for _, c := range b {
		sum += c
	}
	b[at] = -sum
}

// table puts a header before a table's body (ACPI 6.4, 5.2.6).
func table(signature string, revision byte, body []byte) []byte {
	b := make([]byte, 36, 36+len(body))
	copy(b, signature)
	le.PutUint32(b[4:], uint32(36+len(body)))
	b[8] = revision
	copy(b[10:], "AGENTR")
	copy(b[16:], "AGENTRUN")
	le.PutUint32(b[24:], 1)
	copy(b[28:], "AGTR")
	le.PutUint32(b[32:], 1)
	b = append(b, body...)
	checksum(b, 9)
	return b
}

// acpiTables are the tables for acpiAddr, the root pointer first.
func acpiTables(m Machine) ([]byte, error) {
	if m.VCPUs < 1 || m.VCPUs > 254 {
		return nil, errs.Msg(errs.Invalid, "boot", "machine", fmt.Sprintf("%d vCPUs can't be described", m.VCPUs))
	}
	out := make([]byte, 64)
	place := func(t []byte) uint64 {
		for len(out)%16 != 0 {
			out = append(out, 0)
		}
		at := acpiAddr + uint64(len(out))
		out = append(out, t...)
		return at
	}
	code, err := dsdt(m)
	if err != nil {
		return nil, err
	}
	tables := []uint64{place(fadt(place(code))), place(madt(m.VCPUs))}
	xsdt := make([]byte, 8*len(tables))
	for i, t := range tables {
		le.PutUint64(xsdt[8*i:], t)
	}
	at := place(table("XSDT", 1, xsdt))
	rsdp := out[:36]
	copy(rsdp, "RSD PTR ")
	copy(rsdp[9:], "AGENTR")
	rsdp[15] = 2
	le.PutUint32(rsdp[20:], 36)
	le.PutUint64(rsdp[24:], at)
	checksum(rsdp[:20], 8)
	checksum(rsdp, 32)
	if len(out) > highStart-acpiAddr {
		return nil, errs.Msg(errs.Limit, "boot", "machine", "it has more devices than its tables have room for")
	}
	return out, nil
}

// fadt says that this is hardware-reduced: no power management blocks, no PICs, a register to sleep and one to reset.
func fadt(dsdt uint64) []byte {
	b := make([]byte, 276-36)
	at := func(off int) []byte { return b[off-36:] }
	le.PutUint32(at(40), uint32(dsdt))
	le.PutUint16(at(109), 1<<2|1<<5) // neither VGA nor the RTC of a PC; 8042 neither, by leaving out bit 1
	const wbinvd, noPowerButton, noSleepButton, resetRegister, hardwareReduced = 1 << 0, 1 << 4, 1 << 5, 1 << 10, 1 << 20
	le.PutUint32(at(112), wbinvd|noPowerButton|noSleepButton|resetRegister|hardwareReduced)
	register := func(off int, port uint64) { // of one byte in the space of ports
		r := at(off)
		r[0], r[1], r[3] = 1, 8, 1
		le.PutUint64(r[4:], port)
	}
	register(116, PortReset)
	at(128)[0] = ResetValue
	at(131)[0] = 4 // minor version
	le.PutUint64(at(140), dsdt)
	register(244, PortSleep)
	register(256, PortSleep+1)
	copy(at(268), "AGENTRUN")
	return table("FACP", 6, b)
}

// madt names the interrupt controllers.
func madt(vcpus int) []byte {
	b := make([]byte, 8)
	le.PutUint32(b, localAPIC)
	for i := range vcpus {
		b = append(b, 0, 8, byte(i), byte(i), 1, 0, 0, 0)
	}
	b = append(b, 1, 12, 0, 0)
	b = le.AppendUint32(b, ioAPIC)
	b = le.AppendUint32(b, 0)
	b = append(b, 4, 6, 0xff, 0, 0, 1) // NMI on LINT1 of each
	return table("APIC", 5, b)
}

// dsdt is the machine in AML (ACPI 6.4, 20.2): devices and how to turn it off.
func dsdt(m Machine) ([]byte, error) {
	s5 := amlName("_S5_", amlPackage(amlByte(SleepTypeS5), amlByte(0), amlByte(0), amlByte(0)))
	devices := amlDevice("COM1", amlName("_HID", amlString("PNP0501")), amlName("_UID", amlByte(0)),
		amlName("_CRS", amlResources(resPort(PortConsole, 8), resIRQ(IRQConsole))))
	devices = append(devices, amlDevice("PEVT", amlName("_HID", amlString("QEMU0001")),
		amlName("_STA", amlByte(0xf)), amlName("_CRS", amlResources(resPort(PortPanic, 1))))...)
	for i, d := range m.Devices {
		if i > 0xff || d.IRQ < 0 || d.IRQ > 23 || d.Addr+d.Size > 1<<32 || d.Addr > 1<<32 {
			return nil, errs.Msg(errs.Invalid, "boot", "machine", fmt.Sprintf("device %d can't be described", i))
		}
		devices = append(devices, amlDevice(fmt.Sprintf("VR%02X", i), amlName("_HID", amlString("LNRO0005")), amlName("_UID", amlByte(byte(i))),
			amlName("_CCA", amlByte(1)), amlName("_CRS", amlResources(resMemory(uint32(d.Addr), uint32(d.Size)), resInterrupt(uint32(d.IRQ)))))...)
	}
	return table("DSDT", 2, append(s5, amlScope("_SB_", devices)...)), nil
}

// amlLength puts PkgLength before b: a length that counts itself.
func amlLength(b []byte) []byte {
	n := len(b)
	switch {
	case n+1 < 1<<6:
		return append([]byte{byte(n + 1)}, b...)
	case n+2 < 1<<12:
		n += 2
		return append([]byte{1<<6 | byte(n&0xf), byte(n >> 4)}, b...)
	}
	n += 3
	return append([]byte{2<<6 | byte(n&0xf), byte(n >> 4), byte(n >> 12)}, b...)
}

func amlByte(v byte) []byte                { return []byte{0x0a, v} }
func amlString(s string) []byte            { return append(append([]byte{0x0d}, s...), 0) }
func amlName(name string, v []byte) []byte { return append(append([]byte{0x08}, name...), v...) }

func amlPackage(items ...[]byte) []byte {
	b := []byte{byte(len(items))}
	for _, i := range items {
		b = append(b, i...)
	}
	return append([]byte{0x12}, amlLength(b)...)
}

func amlScope(name string, body []byte) []byte {
	return append([]byte{0x10}, amlLength(append([]byte(name), body...))...)
}

func amlDevice(name string, body ...[]byte) []byte {
	b := []byte(name)
	for _, o := range body {
		b = append(b, o...)
	}
	return append([]byte{0x5b, 0x82}, amlLength(b)...)
}

// amlResources is a buffer of resource descriptors (ACPI 6.4, 6.4) with their end.
func amlResources(items ...[]byte) []byte {
	var b []byte
	for _, i := range items {
		b = append(b, i...)
	}
	b = append(b, 0x79, 0)
	return append([]byte{0x11}, amlLength(append(amlByte(byte(len(b))), b...))...)
}

func resPort(first uint16, n byte) []byte {
	return []byte{0x47, 1, byte(first), byte(first >> 8), byte(first), byte(first >> 8), 1, n}
}

func resIRQ(irq int) []byte {
	return []byte{0x23, byte(uint16(1) << irq), byte(uint16(1) << irq >> 8), 1}
}

func resMemory(base, size uint32) []byte {
	return le.AppendUint32(le.AppendUint32([]byte{0x86, 9, 0, 1}, base), size)
}

// resInterrupt is an edge, active high, of this device alone.
func resInterrupt(irq uint32) []byte { return le.AppendUint32([]byte{0x89, 6, 0, 3, 1}, irq) }
