package boot

import (
	"bytes"
	"testing"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/memory"
)

const mib = 1 << 20

func machine(t testing.TB, size uint64) Machine {
	t.Helper()
	mem, err := memory.New(size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mem.Close() })
	return Machine{Memory: mem, VCPUs: 2, Devices: []Device{{0xd0000000, 0x1000, 5}, {0xd0001000, 0x1000, 6}}}
}

// bzImage is the least that is one: a header and code.
func bzImage(code string) []byte {
	b := make([]byte, 1024, 1024+len(code))
	b[offSetupSects] = 1
	le.PutUint16(b[offBootFlag:], bootFlag)
	b[offJump] = 0x66
	copy(b[offMagic:], magic)
	le.PutUint16(b[offVersion:], 0x20f)
	le.PutUint32(b[offInitrdMax:], 0x7fffffff)
	le.PutUint16(b[offXLoadFlags:], xlfKernel64)
	le.PutUint32(b[offCmdlineSize:], 255)
	le.PutUint64(b[offPrefAddress:], 0x1000000)
	le.PutUint32(b[offInitSize:], mib)
	return append(b, code...)
}

// vmlinux is an ELF file with one segment and one note.
func vmlinux(note []byte) []byte {
	b := make([]byte, 64+2*56)
	copy(b, "\x7fELF\x02\x01\x01")
	le.PutUint16(b[18:], elfX86)
	le.PutUint64(b[24:], 0x1000000)
	le.PutUint64(b[32:], 64)
	le.PutUint16(b[54:], 56)
	le.PutUint16(b[56:], 2)
	segment := func(at int, kind uint32, data []byte) {
		h := b[at:]
		le.PutUint32(h, kind)
		le.PutUint64(h[8:], uint64(len(b)))
		le.PutUint64(h[24:], 0x1000000)
		le.PutUint64(h[32:], uint64(len(data)))
		le.PutUint64(h[40:], uint64(len(data)))
		b = append(b, data...)
	}
	segment(64, ptLoad, []byte("code"))
	segment(64+56, ptNote, note)
	return b
}

func note(desc ...byte) []byte {
	b := le.AppendUint32(nil, 4)
	b = le.AppendUint32(b, uint32(len(desc)))
	b = le.AppendUint32(b, noteEntry)
	return append(append(b, "Xen\x00"...), desc...)
}

func bytesAt(t *testing.T, m Machine, addr, n uint64) []byte {
	t.Helper()
	b, err := m.Memory.Bytes(addr, n)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBzImage(t *testing.T) {
	m := machine(t, 64*mib)
	l := Linux{Kernel: bzImage("the code"), Initrd: []byte("the initramfs"), Cmdline: "quiet"}
	e, err := l.Load(m)
	if err != nil {
		t.Fatal(err)
	}
	if e.Regs.RIP != 0x1000200 || e.Regs.RSI != zeroPage {
		t.Errorf("registers %+v", e.Regs)
	}
	if got := bytesAt(t, m, 0x1000000, 8); string(got) != "the code" {
		t.Errorf("code %q", got)
	}
	p := bytesAt(t, m, zeroPage, 4096)
	initrd, n := uint64(le.Uint32(p[offRamdisk:])), uint64(le.Uint32(p[offRamdiskSize:]))
	if got := bytesAt(t, m, initrd, n); string(got) != "the initramfs" || initrd%4096 != 0 {
		t.Errorf("initramfs %q at %#x", got, initrd)
	}
	if got := bytesAt(t, m, uint64(le.Uint32(p[offCmdline:])), 6); string(got) != "quiet\x00" {
		t.Errorf("command line %q", got)
	}
	if string(p[offMagic:offMagic+4]) != magic || p[offLoader] != loaderOther || p[offE820Count] != 4 {
		t.Errorf("boot_params: % x", p[offSetupSects:headerEnd])
	}
	if last := p[offE820+3*20:]; le.Uint64(last) != mib || le.Uint64(last[8:]) != 63*mib {
		t.Errorf("the RAM's entry: % x", last[:20])
	}
}

func TestVmlinux(t *testing.T) {
	for name, c := range map[string]struct {
		note []byte
		rip  uint64
		pvh  bool
	}{
		"pvh":          {note(0x30, 0, 0, 1), 0x1000030, true},
		"pvh, 64 bits": {note(0x30, 0, 0, 1, 0, 0, 0, 0), 0x1000030, true},
		"no note":      {nil, 0x1000000, false},
		"broken note":  {[]byte{255, 255, 255, 255, 255, 255, 255, 255, 1, 2, 3, 4}, 0x1000000, false},
	} {
		m := machine(t, 32*mib)
		l := Linux{Kernel: vmlinux(c.note), Initrd: []byte("rd"), Cmdline: "x"}
		e, err := l.Load(m)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if e.Regs.RIP != c.rip || (e.Regs.RBX == startInfo) != c.pvh {
			t.Errorf("%s: registers %+v", name, e.Regs)
		}
		if b := bytesAt(t, m, startInfo, 4); c.pvh && le.Uint32(b) != pvhMagic {
			t.Errorf("%s: start info % x", name, b)
		}
	}
}

// Every table's bytes sum to zero, and the root leads to all of them.
func TestACPI(t *testing.T) {
	m := machine(t, 32*mib)
	for i := range 19 { // more lengths in AML
		m.Devices = append(m.Devices, Device{0xd0002000 + uint64(i)<<12, 0x1000, 7})
	}
	b, err := acpiTables(m)
	if err != nil {
		t.Fatal(err)
	}
	sum := func(b []byte) (s byte) {
		for _, c := range b {
			s += c
		}
		return s
	}
	if sum(b[:20]) != 0 || sum(b[:36]) != 0 {
		t.Error("the root pointer's sums are wrong")
	}
	seen := ""
	var visit func(at uint64)
	visit = func(at uint64) {
		h := b[at-acpiAddr:]
		n := le.Uint32(h[4:])
		if sum(h[:n]) != 0 {
			t.Errorf("%s: its sum is wrong", h[:4])
		}
		seen += string(h[:4]) + " "
		switch string(h[:4]) {
		case "XSDT":
			for p := h[36:n]; len(p) > 0; p = p[8:] {
				visit(le.Uint64(p))
			}
		case "FACP":
			visit(le.Uint64(h[140:]))
		case "DSDT":
			if c := bytes.Count(h[:n], []byte("LNRO0005")); c != len(m.Devices) {
				t.Errorf("%d devices of %d", c, len(m.Devices))
			}
		}
	}
	visit(le.Uint64(b[24:]))
	if seen != "XSDT FACP DSDT APIC " {
		t.Errorf("tables: %s", seen)
	}
}

// What isn't a kernel, or doesn't fit, is an error that says so.
func TestRefused(t *testing.T) {
	change := func(off int, b ...byte) []byte {
		k := bzImage("code")
		copy(k[off:], b)
		return k
	}
	for name, c := range map[string]struct {
		l    Linux
		size uint64
		kind errs.Kind
	}{
		"empty":           {Linux{}, 32 * mib, errs.Invalid},
		"text":            {Linux{Kernel: bytes.Repeat([]byte("x"), 5000)}, 32 * mib, errs.Invalid},
		"old":             {Linux{Kernel: change(offVersion, 4, 2)}, 32 * mib, errs.Unsupported},
		"32 bits":         {Linux{Kernel: change(offXLoadFlags, 0)}, 32 * mib, errs.Unsupported},
		"cut off":         {Linux{Kernel: bzImage("")}, 32 * mib, errs.Invalid},
		"too high":        {Linux{Kernel: change(offPrefAddress, 0, 0, 0, 0, 1)}, 32 * mib, errs.Invalid},
		"too low":         {Linux{Kernel: change(offPrefAddress, 0, 0, 0, 0)}, 32 * mib, errs.Invalid},
		"too big":         {Linux{Kernel: change(offInitSize, 0, 0, 0, 0x20)}, 32 * mib, errs.Invalid},
		"little memory":   {Linux{Kernel: bzImage("code")}, mib, errs.Invalid},
		"big initramfs":   {Linux{Kernel: bzImage("code"), Initrd: make([]byte, 16*mib)}, 32 * mib, errs.Invalid},
		"long line":       {Linux{Kernel: bzImage("code"), Cmdline: string(make([]byte, 3000))}, 32 * mib, errs.Invalid},
		"kernel's limit":  {Linux{Kernel: bzImage("code"), Cmdline: string(bytes.Repeat([]byte("x"), 300))}, 32 * mib, errs.Invalid},
		"NUL":             {Linux{Kernel: bzImage("code"), Cmdline: "a\x00b"}, 32 * mib, errs.Invalid},
		"ELF cut off":     {Linux{Kernel: vmlinux(nil)[:70]}, 32 * mib, errs.Invalid},
		"ELF of 32 bits":  {Linux{Kernel: append([]byte("\x7fELF\x01\x01"), make([]byte, 100)...)}, 32 * mib, errs.Invalid},
		"ELF, no program": {Linux{Kernel: append([]byte("\x7fELF\x02\x01"), make([]byte, 100)...)}, 32 * mib, errs.Invalid},
	} {
		if _, err := c.l.Load(machine(t, c.size)); errs.KindOf(err) != c.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzKernel(f *testing.F) {
	f.Add(bzImage("code"), "quiet")
	f.Add(vmlinux(note(1, 0, 0, 1)), "")
	f.Add(vmlinux(nil), "x")
	mem, err := memory.New(32 * mib)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, kernel []byte, cmdline string) {
		l := Linux{Kernel: kernel, Initrd: []byte("rd"), Cmdline: cmdline}
		if _, err := l.Load(Machine{Memory: mem, VCPUs: 1}); err != nil && errs.KindOf(err) == errs.Other {
			t.Fatal(err)
		}
	})
}
