package boot

import (
	"encoding/binary"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/memory"
)

// Offsets in a bzImage's first sector and in struct boot_params, where they are the same.
const (
	offRSDP        = 0x70
	offE820Count   = 0x1e8
	offSetupSects  = 0x1f1
	offBootFlag    = 0x1fe
	offJump        = 0x201
	offMagic       = 0x202
	offVersion     = 0x206
	offLoader      = 0x210
	offLoadFlags   = 0x211
	offRamdisk     = 0x218
	offRamdiskSize = 0x21c
	offCmdline     = 0x228
	offInitrdMax   = 0x22c
	offAlign       = 0x230
	offRelocatable = 0x234
	offXLoadFlags  = 0x236
	offCmdlineSize = 0x238
	offPrefAddress = 0x258
	offInitSize    = 0x260
	headerEnd      = 0x268
	offE820        = 0x2d0
)

const (
	magic        = "HdrS"
	version64    = 0x20c // the first with a 64-bit entry
	bootFlag     = 0xaa55
	loaderOther  = 0xff
	loadedHigh   = 1 << 0
	xlfKernel64  = 1 << 0
	entry64      = 0x200
	maxInitSize  = 1 << 30
	elfInitrdMax = 0x7fffffff
)

var le = binary.LittleEndian

// loadBzImage follows the 64-bit boot protocol.
func (l *Linux) loadBzImage(m Machine) (Entry, error) {
	k := l.Kernel
	if len(k) < headerEnd || string(k[offMagic:offMagic+4]) != magic || le.Uint16(k[offBootFlag:]) != bootFlag {
		return Entry{}, invalid("it is neither a bzImage nor a vmlinux")
	}
	if v := le.Uint16(k[offVersion:]); v < version64 || le.Uint16(k[offXLoadFlags:])&xlfKernel64 == 0 {
		return Entry{}, errs.Msg(errs.Unsupported, "boot", "kernel", "it has no 64-bit entry (x86-64, Linux 3.8 or later)")
	}
	sects := int(k[offSetupSects])
	if sects == 0 {
		sects = 4
	}
	setup := (sects + 1) * 512
	if setup >= len(k) {
		return Entry{}, invalid("it is cut off")
	}
	code := k[setup:]
	at, need := le.Uint64(k[offPrefAddress:]), uint64(le.Uint32(k[offInitSize:]))
	top := lowTop(m.Memory)
	if need < uint64(len(code)) {
		need = uint64(len(code))
	}
	if need > maxInitSize || at < highStart || at%memory.PageSize != 0 || at > top || need > top-at {
		return Entry{}, invalid("it wants %d bytes at %#x: more memory is needed", need, at)
	}
	if limit := le.Uint32(k[offCmdlineSize:]); uint64(len(l.Cmdline)) > uint64(limit) {
		return Entry{}, errs.Msg(errs.Invalid, "boot", "command line", "it is longer than this kernel takes")
	}
	if err := put(m.Memory, at, code); err != nil {
		return Entry{}, err
	}
	initrd, err := l.placeInitrd(m.Memory, at+need, uint64(le.Uint32(k[offInitrdMax:]))+1)
	if err != nil {
		return Entry{}, err
	}
	var params [4096]byte
	end := min(offMagic+int(k[offJump]), headerEnd) // what follows is of a version that we don't know
	copy(params[offSetupSects:], k[offSetupSects:max(end, offSetupSects)])
	l.fillParams(&params, m.Memory, initrd)
	if err := put(m.Memory, zeroPage, params[:]); err != nil {
		return Entry{}, err
	}
	return longMode(m.Memory, at+entry64)
}

// fillParams writes into struct boot_params what a boot loader does.
func (l *Linux) fillParams(p *[4096]byte, mem *memory.Memory, initrd uint64) {
	p[offLoader] = loaderOther
	p[offLoadFlags] |= loadedHigh
	le.PutUint64(p[offRSDP:], acpiAddr)
	le.PutUint32(p[offCmdline:], cmdlineAddr)
	le.PutUint32(p[offRamdisk:], uint32(initrd))
	le.PutUint32(p[offRamdiskSize:], uint32(len(l.Initrd)))
	list := memoryMap(mem)
	p[offE820Count] = byte(len(list))
	for i, r := range list {
		e := p[offE820+20*i:]
		le.PutUint64(e, r.addr)
		le.PutUint64(e[8:], r.size)
		le.PutUint32(e[16:], r.kind)
	}
}
