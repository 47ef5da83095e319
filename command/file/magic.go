package file

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"
)

// identify tells a file by its first bytes.
func identify(b []byte) kind {
	if len(b) == 0 {
		return kind{"empty", "inode/x-empty", "binary"}
	}
	if k, ok := signature(b); ok {
		k.charset = "binary"
		if t, ok := text(b); ok { // the encoding is looked at apart from the format
			k.charset = t.charset
		}
		return k
	}
	if k, ok := text(b); ok {
		return k
	}
	if bytes.HasPrefix(b, []byte("%PDF-")) && len(b) >= 8 {
		return kind{"PDF document, version " + string(b[5:8]), "application/pdf", "binary"}
	}
	return kind{"data", "application/octet-stream", "binary"}
}

// signature knows binary formats.
func signature(b []byte) (kind, bool) {
	has := func(s string) bool { return bytes.HasPrefix(b, []byte(s)) }
	switch {
	case has("\x89PNG\r\n\x1a\n") && len(b) >= 29:
		color := map[byte]string{2: "/color RGB", 3: " colormap", 4: " gray+alpha", 6: "/color RGBA"}[b[25]]
		if b[25] == 0 {
			color = " grayscale"
		}
		lace := "non-interlaced"
		if b[28] == 1 {
			lace = "interlaced"
		}
		return kind{fmt.Sprintf("PNG image data, %d x %d, %d-bit%s, %s", binary.BigEndian.Uint32(b[16:]), binary.BigEndian.Uint32(b[20:]), b[24], color, lace), "image/png", ""}, true
	case (has("GIF87a") || has("GIF89a")) && len(b) >= 10:
		return kind{fmt.Sprintf("GIF image data, version %s, %d x %d", b[3:6], binary.LittleEndian.Uint16(b[6:]), binary.LittleEndian.Uint16(b[8:])), "image/gif", ""}, true
	case has("\xff\xd8\xff"):
		return kind{"JPEG image data", "image/jpeg", ""}, true
	case has("BZh") && len(b) > 3 && b[3] >= '1' && b[3] <= '9':
		return kind{fmt.Sprintf("bzip2 compressed data, block size = %c00k", b[3]), "application/x-bzip2", ""}, true
	case has("\xfd7zXZ\x00") && len(b) >= 8:
		check := map[byte]string{0: "NONE", 1: "CRC32", 4: "CRC64", 10: "SHA-256"}[b[7]&15]
		return kind{"XZ compressed data, checksum " + check, "application/x-xz", ""}, true
	case has("\x28\xb5\x2f\xfd") && len(b) > 4 && b[4]&3 == 0:
		return kind{"Zstandard compressed data (v0.8+), Dictionary ID: None", "application/zstd", ""}, true
	case has("\x28\xb5\x2f\xfd"):
		return kind{"Zstandard compressed data (v0.8+)", "application/zstd", ""}, true
	case has("\x1f\x8b"):
		return kind{"gzip compressed data", "application/gzip", ""}, true
	case has("PK\x03\x04") && len(b) >= 10:
		method := map[uint16]string{0: "store", 8: "deflate"}[binary.LittleEndian.Uint16(b[8:])]
		return kind{fmt.Sprintf("Zip archive data, at least v%d.%d to extract, compression method=%s", b[4]/10, b[4]%10, method), "application/zip", ""}, true
	case has("\x00asm") && len(b) >= 8:
		return kind{fmt.Sprintf("WebAssembly (wasm) binary module version %#x (MVP)", binary.LittleEndian.Uint32(b[4:])), "application/wasm", ""}, true
	case has("SQLite format 3\x00"):
		return kind{"SQLite 3.x database", "application/vnd.sqlite3", ""}, true
	case has("\x7fELF") && len(b) >= 20:
		return elf(b), true
	case len(b) >= 265 && string(b[257:265]) == "ustar  \x00":
		return kind{"POSIX tar archive (GNU)", "application/x-tar", ""}, true
	case len(b) >= 263 && string(b[257:263]) == "ustar\x00":
		return kind{"POSIX tar archive", "application/x-tar", ""}, true
	}
	return kind{}, false
}

// elf reads the header of an object file.
func elf(b []byte) kind {
	bits, name, order := "32-bit", "LSB", binary.ByteOrder(binary.LittleEndian)
	if b[4] == 2 {
		bits = "64-bit"
	}
	if b[5] == 2 {
		name, order = "MSB", binary.BigEndian
	}
	what, mime := "unknown type", "application/octet-stream"
	switch order.Uint16(b[16:]) {
	case 1:
		what, mime = "relocatable", "application/x-object"
	case 2:
		what, mime = "executable", "application/x-executable"
	case 3:
		what, mime = "shared object", "application/x-sharedlib"
	case 4:
		what, mime = "core file", "application/x-coredump"
	}
	machine := map[uint16]string{3: "Intel 80386", 40: "ARM", 62: "x86-64", 183: "ARM aarch64", 243: "UCB RISC-V"}[order.Uint16(b[18:])]
	if machine == "" {
		machine = "unknown arch"
	}
	return kind{fmt.Sprintf("ELF %s %s %s, %s, version 1 (SYSV)", bits, name, what, machine), mime, ""}
}

// text tells the kind, encoding and line ends of a text.
func text(b []byte) (kind, bool) {
	encoding, charset := "ASCII text", "us-ascii"
	wide := false
	for _, c := range b {
		if c < 7 || c > 13 && c < 32 && c != 27 || c == 11 || c == 127 {
			return kind{}, false
		}
		wide = wide || c >= 0x80
	}
	switch {
	case wide && (utf8.Valid(b) || len(b) == headSize && utf8.Valid(b[:bytes.LastIndexByte(b, '\n')+1])):
		encoding, charset = "Unicode text, UTF-8 text", "utf-8"
	case wide:
		encoding, charset = "ISO-8859 text", "iso-8859-1"
		for _, c := range b {
			if c >= 0x80 && c < 0xa0 {
				encoding, charset = "Non-ISO extended-ASCII text", "unknown-8bit"
			}
		}
	}
	prefix, suffix, mime := format(b)
	switch prefix {
	case "JSON text data":
		return kind{prefix, mime, charset}, true
	case "":
	default:
		prefix += ", "
	}
	if strings.HasPrefix(prefix, "PDF") {
		return kind{strings.TrimSuffix(prefix, ", "), mime, charset}, true
	}
	crlf := bytes.Count(b, []byte("\r\n"))
	switch lf := bytes.Count(b, []byte("\n")); {
	case lf == 0 && bytes.IndexByte(b, '\r') < 0:
		suffix += ", with no line terminators"
	case crlf > 0 && crlf == lf:
		suffix += ", with CRLF line terminators"
	case crlf > 0:
		suffix += ", with CRLF, LF line terminators"
	}
	return kind{prefix + encoding + suffix, mime, charset}, true
}

// format knows formats of text by how they begin.
func format(b []byte) (prefix, suffix, mime string) {
	first, _, _ := bytes.Cut(b[:min(len(b), 4096)], []byte("\n"))
	lower := strings.ToLower(strings.TrimLeft(string(b[:min(len(b), 256)]), " \t\r\n"))
	switch {
	case bytes.HasPrefix(b, []byte("#!")):
		f := strings.Fields(string(first[2:]))
		if len(f) > 1 && path.Base(f[0]) == "env" {
			f = f[1:]
		}
		if len(f) > 0 {
			switch name := path.Base(f[0]); {
			case name == "sh":
				return "POSIX shell script", " executable", "text/x-shellscript"
			case name == "bash":
				return "Bourne-Again shell script", " executable", "text/x-shellscript"
			case strings.HasPrefix(name, "python"):
				return "Python script", " executable", "text/x-script.python"
			}
		}
	case bytes.HasPrefix(b, []byte("%PDF-")) && len(b) >= 8:
		return "PDF document, version " + string(b[5:8]), "", "application/pdf"
	case strings.HasPrefix(lower, "<?xml version=\"1.0\""):
		return "XML 1.0 document", "", "text/xml"
	case strings.HasPrefix(lower, "<!doctype html"), strings.HasPrefix(lower, "<html"):
		return "HTML document", "", "text/html"
	case lower != "" && (lower[0] == '{' || lower[0] == '[') && json.Valid(b):
		return "JSON text data", "", "application/json"
	}
	return "", "", "text/plain"
}
