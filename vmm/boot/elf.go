package boot

import (
	"agentrun.dev/vmm/kvm"
	"agentrun.dev/vmm/memory"
)

// What is used of ELF64 (System V ABI) and of PVH's note.
const (
	elfHeader   = 64
	elfProgram  = 56
	elfClass64  = 2
	elfLittle   = 1
	elfX86      = 62
	ptLoad      = 1
	ptNote      = 4
	noteEntry   = 18 // XEN_ELFNOTE_PHYS32_ENTRY
	maxPrograms = 128
	maxNotes    = 1 << 20
	pvhMagic    = 0x336ec578
)

// loadELF loads a vmlinux.
func (l *Linux) loadELF(m Machine) (Entry, error) {
	k := l.Kernel
	if len(k) < elfHeader || k[4] != elfClass64 || k[5] != elfLittle || le.Uint16(k[18:]) != elfX86 {
		return Entry{}, invalid("it is an ELF file, but not one of x86-64")
	}
	entry, off := le.Uint64(k[24:]), le.Uint64(k[32:])
	size, count := le.Uint16(k[54:]), int(le.Uint16(k[56:]))
	if size != elfProgram || count > maxPrograms || off > uint64(len(k)) || uint64(count)*elfProgram > uint64(len(k))-off {
		return Entry{}, invalid("its program headers are broken")
	}
	end, pvh := uint64(0), uint64(0)
	for i := range count {
		h := k[off+uint64(i)*elfProgram:]
		kind, at, paddr, filesz, memsz := le.Uint32(h), le.Uint64(h[8:]), le.Uint64(h[24:]), le.Uint64(h[32:]), le.Uint64(h[40:])
		if kind != ptLoad && kind != ptNote {
			continue
		}
		if at > uint64(len(k)) || filesz > uint64(len(k))-at {
			return Entry{}, invalid("it is cut off")
		}
		data := k[at : at+filesz]
		if kind == ptNote {
			if e, ok := findPVH(data); ok {
				pvh = e
			}
			continue
		}
		top := lowTop(m.Memory)
		if memsz < filesz || paddr < highStart || paddr > top || memsz > top-paddr {
			return Entry{}, invalid("it wants %d bytes at %#x: more memory is needed", memsz, paddr)
		}
		if err := put(m.Memory, paddr, data); err != nil {
			return Entry{}, err
		}
		end = max(end, paddr+memsz)
	}
	if end == 0 {
		return Entry{}, invalid("there is nothing to load in it")
	}
	initrd, err := l.placeInitrd(m.Memory, (end+memory.PageSize-1)&^(memory.PageSize-1), elfInitrdMax)
	if err != nil {
		return Entry{}, err
	}
	if pvh != 0 {
		return l.enterPVH(m.Memory, pvh, initrd)
	}
	var params [4096]byte
	copy(params[offMagic:], magic)
	le.PutUint16(params[offBootFlag:], bootFlag)
	le.PutUint16(params[offVersion:], version64)
	le.PutUint32(params[offAlign:], 2<<20)
	params[offRelocatable] = 1
	l.fillParams(&params, m.Memory, initrd)
	if err := put(m.Memory, zeroPage, params[:]); err != nil {
		return Entry{}, err
	}
	return longMode(m.Memory, entry)
}

// findPVH looks for the note that names the 32-bit entry.
func findPVH(notes []byte) (uint64, bool) {
	if len(notes) > maxNotes {
		return 0, false
	}
	align := func(n uint32) uint64 { return (uint64(n) + 3) &^ 3 }
	for len(notes) >= 12 {
		namesz, descsz, kind := le.Uint32(notes), le.Uint32(notes[4:]), le.Uint32(notes[8:])
		rest := notes[12:]
		if align(namesz)+align(descsz) > uint64(len(rest)) {
			return 0, false
		}
		name, desc := rest[:namesz], rest[align(namesz):align(namesz)+uint64(descsz)]
		if string(name) == "Xen\x00" && kind == noteEntry {
			switch len(desc) {
			case 4:
				return uint64(le.Uint32(desc)), true
			case 8:
				return le.Uint64(desc), true
			}
		}
		notes = rest[align(namesz)+align(descsz):]
	}
	return 0, false
}

// enterPVH writes struct hvm_start_info and begins in 32-bit mode without paging, EBX at it.
func (l *Linux) enterPVH(mem *memory.Memory, entry, initrd uint64) (Entry, error) {
	const modules, list = 0x40, 0x80 // after startInfo
	list0 := memoryMap(mem)
	b := make([]byte, list+24*len(list0))
	le.PutUint32(b, pvhMagic)
	le.PutUint32(b[4:], 1) // version
	if len(l.Initrd) > 0 {
		le.PutUint32(b[12:], 1)
		le.PutUint64(b[16:], startInfo+modules)
		le.PutUint64(b[modules:], initrd)
		le.PutUint64(b[modules+8:], uint64(len(l.Initrd)))
	}
	le.PutUint64(b[24:], cmdlineAddr)
	le.PutUint64(b[32:], acpiAddr)
	le.PutUint64(b[40:], startInfo+list)
	le.PutUint32(b[48:], uint32(len(list0)))
	for i, r := range list0 {
		e := b[list+24*i:]
		le.PutUint64(e, r.addr)
		le.PutUint64(e[8:], r.size)
		le.PutUint32(e[16:], r.kind)
	}
	if err := put(mem, startInfo, b); err != nil {
		return Entry{}, err
	}
	if err := putGDT(mem); err != nil {
		return Entry{}, err
	}
	return Entry{Regs: kvm.Regs{RIP: entry, RBX: startInfo, RFlags: 2}, Sregs: func(s *kvm.Sregs) {
		setData(s)
		s.CS = segment(0x10, 11, false)
		s.CR0, s.CR4, s.EFER = 1, 0, 0
	}}, nil
}
