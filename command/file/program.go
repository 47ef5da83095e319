package file

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
)

// program knows code for machines.
func program(f *sample) (kind, bool) {
	switch {
	case f.has(0, "\x7fELF") && len(f.head) >= 20:
		return f.elf(), true
	case f.has(0, "\x00asm") && len(f.head) >= 8:
		return kind{fmt.Sprintf("WebAssembly (wasm) binary module version %#x (MVP)", f.le(4, 4)), "application/wasm", ""}, true
	case f.has(0, "\xca\xfe\xba\xbe") && f.be(6, 2) >= 43:
		major := f.be(6, 2)
		java := fmt.Sprintf(" (Java 1.%d)", major-44)
		if major >= 53 {
			java = fmt.Sprintf(" (Java SE %d)", major-44)
		}
		return kind{fmt.Sprintf("compiled Java class data, version %d.%d%s", major, f.be(4, 2), java), "application/x-java-applet", ""}, true
	case f.has(0, "\xcf\xfa\xed\xfe"):
		cpu := map[uint64]string{0x1000007: "x86_64", 7: "x86_64", 0x100000c: "arm64"}[f.le(4, 4)]
		what := map[uint64]string{1: "object", 2: "executable", 6: "dynamically linked shared library", 8: "bundle"}[f.le(12, 4)]
		return kind{strings.TrimSpace("Mach-O 64-bit " + cpu + " " + what), "application/x-mach-binary", ""}, true
	case f.has(0, "MZ"):
		pe := int(min(f.le(60, 4), headSize))
		if !f.has(pe, "PE\x00\x00") {
			return kind{"MS-DOS executable", "application/x-dosexec", ""}, true
		}
		form := map[uint64]string{0x10b: "PE32", 0x20b: "PE32+"}[f.le(pe+24, 2)]
		cpu := map[uint64]string{0x14c: "Intel 80386", 0x8664: "x86-64", 0xaa64: "Aarch64"}[f.le(pe+4, 2)]
		dll := ""
		if f.le(pe+22, 2)&0x2000 != 0 {
			dll = " (DLL)"
		}
		system := map[uint64]string{2: " (GUI)", 3: " (console)", 1: " (native)", 10: " (EFI application)"}[f.le(pe+92, 2)]
		return kind{fmt.Sprintf("%s executable%s%s %s, for MS Windows, %d sections", form, dll, system, cpu, f.le(pe+6, 2)), "application/vnd.microsoft.portable-executable", ""}, true
	case len(f.head) >= 16 && f.has(2, "\r\n") && f.le(0, 2) >= 3390 && f.le(0, 2) < 3600 && f.le(4, 4) == 0:
		minor := map[bool]int{true: 11, false: 12}[f.le(0, 2) < 3500]
		if f.le(0, 2) < 3450 {
			minor = map[bool]int{true: 8, false: 9}[f.le(0, 2) < 3420]
		}
		if n := f.le(0, 2); n >= 3430 && n < 3450 {
			minor = 10
		}
		return kind{fmt.Sprintf("Byte-compiled Python module for CPython 3.%d, timestamp-based, .py timestamp: %s UTC, .py size: %d bytes", minor, f.date(int64(f.le(8, 4))), f.le(12, 4)), "application/x-bytecode.python", ""}, true
	}
	return kind{}, false
}

// reader makes of a sample what the package elf reads.
type reader struct{ f *sample }

// ReadAt implements io.ReaderAt.
func (r reader) ReadAt(p []byte, off int64) (int, error) {
	var b []byte
	switch {
	case off >= 0 && off+int64(len(p)) <= int64(len(r.f.head)):
		b = r.f.head[off : off+int64(len(p))]
	case r.f.at != nil && off >= 0:
		b = r.f.at(off, len(p))
	}
	n := copy(p, b)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// elf reads the headers of an object file.
func (f *sample) elf() kind {
	b := f.head
	bits, name, order := "32-bit", "LSB", binary.ByteOrder(binary.LittleEndian)
	if b[4] == 2 {
		bits = "64-bit"
	}
	if b[5] == 2 {
		name, order = "MSB", binary.BigEndian
	}
	what, mime := "unknown type", "application/octet-stream"
	number := order.Uint16(b[16:])
	switch number {
	case 1:
		what, mime = "relocatable", "application/x-object"
	case 2:
		what, mime = "executable", "application/x-executable"
	case 3:
		what, mime = "shared object", "application/x-sharedlib"
	case 4:
		what, mime = "core file", "application/x-coredump"
	}
	machine := map[uint16]string{3: "Intel 80386", 8: "MIPS", 20: "PowerPC or cisco 4500", 21: "64-bit PowerPC or cisco 7500", 22: "IBM S/390", 40: "ARM", 62: "x86-64", 183: "ARM aarch64", 243: "UCB RISC-V", 258: "LoongArch"}[order.Uint16(b[18:])]
	if machine == "" {
		machine = fmt.Sprintf("*unknown arch %#x*", order.Uint16(b[18:]))
	}
	abi := map[byte]string{0: "SYSV", 3: "GNU/Linux", 6: "Solaris", 9: "FreeBSD"}[b[7]]
	more := ""
	if x, err := elf.NewFile(reader{f}); err == nil {
		var pie bool
		if more, pie = elfDetails(x, number); pie {
			what, mime = "pie executable", "application/x-pie-executable"
		}
	}
	return kind{fmt.Sprintf("ELF %s %s %s, %s, version 1 (%s)%s", bits, name, what, machine, abi, more), mime, ""}
}

// maxNote bounds what is read of a note or an interpreter's name.
const maxNote = 4096

// elfDetails are how an object file is linked, its notes, and whether its symbols are there.
func elfDetails(x *elf.File, kindOf uint16) (more string, pie bool) {
	var s strings.Builder
	read := func(r io.Reader) []byte {
		b, _ := io.ReadAll(io.LimitReader(r, maxNote))
		return b
	}
	if kindOf == 2 || kindOf == 3 {
		linked, interpreter := "statically linked", ""
		for _, p := range x.Progs {
			switch p.Type {
			case elf.PT_DYNAMIC:
				linked = "dynamically linked"
			case elf.PT_INTERP:
				interpreter = ", interpreter " + string(bytes.TrimRight(read(p.Open()), "\x00"))
			}
		}
		if flags, err := x.DynValue(elf.DT_FLAGS_1); err == nil && len(flags) > 0 {
			pie = flags[0]&uint64(elf.DF_1_PIE) != 0
		}
		if pie && interpreter == "" {
			linked = "static-pie linked"
		}
		s.WriteString(", " + linked + interpreter)
	}
	symbols, debug := false, false
	for _, section := range x.Sections {
		switch {
		case section.Type == elf.SHT_NOTE:
			notes(&s, read(section.Open()), x.ByteOrder)
		case section.Type == elf.SHT_SYMTAB:
			symbols = true
		case section.Name == ".debug_info":
			debug = true
		}
	}
	switch {
	case len(x.Sections) == 0:
		s.WriteString(", no section header")
	case symbols && debug:
		s.WriteString(", with debug_info, not stripped")
	case symbols:
		s.WriteString(", not stripped")
	default:
		s.WriteString(", stripped")
	}
	return s.String(), pie
}

// notes writes what the notes of a section say.
func notes(s *strings.Builder, b []byte, order binary.ByteOrder) {
	for len(b) >= 12 {
		n, size, what := int(order.Uint32(b)), int(order.Uint32(b[4:])), order.Uint32(b[8:])
		b = b[12:]
		if n < 0 || size < 0 || n > len(b) || (n+3)&^3 > len(b) {
			return
		}
		name := string(bytes.TrimRight(b[:n], "\x00"))
		if b = b[(n+3)&^3:]; size > len(b) {
			return
		}
		body := b[:size]
		switch {
		case name == "GNU" && what == 3:
			way := map[int]string{20: "sha1", 16: "md5/uuid", 8: "xxHash"}[size]
			fmt.Fprintf(s, ", BuildID[%s]=%s", way, hex.EncodeToString(body))
		case name == "GNU" && what == 1 && size >= 16 && order.Uint32(body) == 0:
			fmt.Fprintf(s, ", for GNU/Linux %d.%d.%d", order.Uint32(body[4:]), order.Uint32(body[8:]), order.Uint32(body[12:]))
		case name == "Go" && what == 4:
			fmt.Fprintf(s, ", Go BuildID=%s", body)
		}
		b = b[min((size+3)&^3, len(b)):]
	}
}
