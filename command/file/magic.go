package file

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"time"
)

// sample is what is known of a file: its first bytes, and perhaps a way to the others.
type sample struct {
	head []byte
	at   func(off int64, n int) []byte // fewer bytes at the end; nil for a stream
	size int64                         // -1 for a stream
	zone *time.Location
}

// identify tells what a file holds.
func identify(f *sample) kind {
	b := f.head
	switch len(b) {
	case 0:
		return kind{"empty", "inode/x-empty", "binary"}
	case 1:
		return kind{"very short file (no magic)", "application/octet-stream", "binary"}
	}
	e := encodingOf(b)
	if k, ok := structured(b, e); ok {
		return k
	}
	for _, known := range []func(*sample) (kind, bool){archive, image, media, program, document} {
		if k, ok := known(f); ok {
			if k.charset = "binary"; e.charset != "" { // the encoding is looked at apart from the format
				k.charset = e.charset
			}
			return k
		}
	}
	if e.charset != "" {
		return text(b, e)
	}
	return kind{"data", "application/octet-stream", "binary"}
}

// has reports whether the file has some bytes at an offset.
func (f *sample) has(off int, s string) bool {
	return off >= 0 && len(f.head) >= off+len(s) && string(f.head[off:off+len(s)]) == s
}

// le and be read numbers; what lies behind the end is 0.
func (f *sample) le(off, n int) uint64 {
	var v uint64
	for i := n - 1; i >= 0; i-- {
		v <<= 8
		if off+i < len(f.head) && off >= 0 {
			v |= uint64(f.head[off+i])
		}
	}
	return v
}

func (f *sample) be(off, n int) uint64 {
	var v uint64
	for i := range n {
		v <<= 8
		if off+i < len(f.head) && off >= 0 {
			v |= uint64(f.head[off+i])
		}
	}
	return v
}

// date is a time as the C library prints it.
func (f *sample) date(sec int64) string {
	return time.Unix(sec, 0).In(f.zone).Format("Mon Jan _2 15:04:05 2006")
}

// archive knows archives and compressed data.
func archive(f *sample) (kind, bool) {
	b := f.head
	switch {
	case f.has(0, "\x1f\x8b"):
		return kind{f.gzip(), "application/gzip", ""}, true
	case f.has(0, "BZh") && len(b) > 3 && b[3] >= '1' && b[3] <= '9':
		return kind{fmt.Sprintf("bzip2 compressed data, block size = %c00k", b[3]), "application/x-bzip2", ""}, true
	case f.has(0, "\xfd7zXZ\x00"):
		check := map[uint64]string{0: "NONE", 1: "CRC32", 4: "CRC64", 10: "SHA-256"}[f.le(7, 1)&15]
		return kind{"XZ compressed data, checksum " + check, "application/x-xz", ""}, true
	case f.has(0, "\x28\xb5\x2f\xfd"):
		dictionary := ""
		if f.le(4, 1)&3 == 0 {
			dictionary = ", Dictionary ID: None"
		}
		return kind{"Zstandard compressed data (v0.8+)" + dictionary, "application/zstd", ""}, true
	case f.has(0, "\x04\x22\x4d\x18"):
		return kind{"LZ4 compressed data (v1.4+)", "application/x-lz4", ""}, true
	case f.has(0, "LZIP"):
		return kind{fmt.Sprintf("lzip compressed data, version: %d", f.le(4, 1)), "application/x-lzip", ""}, true
	case f.has(0, "\x1f\x9d"):
		return kind{fmt.Sprintf("compress'd data %d bits", f.le(2, 1)&31), "application/x-compress", ""}, true
	case f.has(0, "]\x00\x00") && f.has(5, "\xff\xff\xff\xff\xff\xff\xff\xff"):
		return kind{"LZMA compressed data, streamed", "application/x-lzma", ""}, true
	case f.has(0, "PK\x03\x04"):
		return f.zip(), true
	case f.has(0, "PK\x05\x06"):
		return kind{"Zip archive data (empty)", "application/zip", ""}, true
	case f.has(0, "7z\xbc\xaf\x27\x1c"):
		return kind{fmt.Sprintf("7-zip archive data, version %d.%d", f.le(6, 1), f.le(7, 1)), "application/x-7z-compressed", ""}, true
	case f.has(0, "Rar!\x1a\x07\x01\x00"):
		return kind{"RAR archive data, v5", "application/x-rar", ""}, true
	case f.has(0, "Rar!\x1a\x07\x00"):
		return kind{"RAR archive data, v4", "application/x-rar", ""}, true
	case f.has(0, "!<arch>\ndebian-binary"):
		return kind{"Debian binary package (format 2.0)", "application/vnd.debian.binary-package", ""}, true
	case f.has(0, "!<arch>\n"):
		return kind{"current ar archive", "application/x-archive", ""}, true
	case f.has(0, "070701"):
		return kind{"ASCII cpio archive (SVR4 with no CRC)", "application/x-cpio", ""}, true
	case f.has(0, "070702"):
		return kind{"ASCII cpio archive (SVR4 with CRC)", "application/x-cpio", ""}, true
	case f.has(0, "070707"):
		return kind{"ASCII cpio archive (pre-SVR4 or odc)", "application/x-cpio", ""}, true
	case f.has(257, "ustar  \x00"):
		return kind{"POSIX tar archive (GNU)", "application/x-tar", ""}, true
	case f.has(257, "ustar\x00"):
		return kind{"POSIX tar archive", "application/x-tar", ""}, true
	case len(b) > 2 && b[0] == 0x78 && (b[1] == 1 || b[1] == 0x5e || b[1] == 0x9c || b[1] == 0xda) && encodingOf(b).charset == "":
		return kind{"zlib compressed data", "application/zlib", ""}, true
	case f.has(0, "PACK"):
		return kind{fmt.Sprintf("Git pack, version %d, %d objects", f.be(4, 4), f.be(8, 4)), "application/x-git", ""}, true
	case f.has(0, "DIRC"):
		return kind{fmt.Sprintf("Git index, version %d, %d entries", f.be(4, 4), f.be(8, 4)), "application/octet-stream", ""}, true
	}
	return kind{}, false
}

// gzip reads the header, and the size at the end.
func (f *sample) gzip() string {
	var s strings.Builder
	s.WriteString("gzip compressed data")
	flags := f.le(3, 1)
	at := 10
	if flags&4 != 0 {
		s.WriteString(", has extra field")
		at += 2 + int(f.le(10, 2))
	}
	if flags&8 != 0 && at < len(f.head) {
		name, _, _ := bytes.Cut(f.head[at:min(len(f.head), at+256)], []byte{0})
		fmt.Fprintf(&s, ", was \"%s\"", name)
	}
	if flags&16 != 0 {
		s.WriteString(", has comment")
	}
	if flags&2 != 0 {
		s.WriteString(", has CRC")
	}
	if when := f.le(4, 4); when != 0 {
		s.WriteString(", last modified: " + f.date(int64(when)))
	}
	switch f.le(8, 1) {
	case 2:
		s.WriteString(", max compression")
	case 4:
		s.WriteString(", max speed")
	}
	if system := map[uint64]string{0: "FAT filesystem (MS-DOS, OS/2, NT)", 3: "Unix", 7: "Macintosh", 11: "NTFS filesystem (NT)"}[f.le(9, 1)]; system != "" {
		s.WriteString(", from " + system)
	}
	if f.size >= 18 {
		if end := f.at(f.size-4, 4); len(end) == 4 {
			fmt.Fprintf(&s, ", original size modulo 2^32 %d", binary.LittleEndian.Uint32(end))
		}
	} else if f.size >= 0 {
		s.WriteString(", truncated")
	}
	return s.String()
}

// zip looks at the first members for what kind of document an archive is.
func (f *sample) zip() kind {
	names := []string{}
	for at := 0; len(names) < 4 && f.has(at, "PK\x03\x04"); {
		n, extra, size := int(f.le(at+26, 2)), int(f.le(at+28, 2)), int(f.le(at+18, 4))
		if at+30+n > len(f.head) {
			break
		}
		name := string(f.head[at+30 : at+30+n])
		names = append(names, name)
		if name == "mimetype" && len(names) == 1 {
			body := string(f.head[min(at+30+n+extra, len(f.head)):min(at+30+n+extra+size, len(f.head))])
			switch {
			case body == "application/epub+zip":
				return kind{"EPUB document", body, ""}
			case strings.HasPrefix(body, "application/vnd.oasis.opendocument."):
				what := strings.TrimPrefix(body, "application/vnd.oasis.opendocument.")
				return kind{"OpenDocument " + strings.ToUpper(what[:1]) + what[1:], body, ""}
			}
		}
		at += 30 + n + extra + size
	}
	if len(names) > 2 && (names[0] == "[Content_Types].xml" || strings.HasPrefix(names[0], "_rels/") || strings.HasPrefix(names[0], "docProps/")) {
		for _, n := range names[1:] {
			switch {
			case strings.HasPrefix(n, "word/"):
				return kind{"Microsoft Word 2007+", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", ""}
			case strings.HasPrefix(n, "xl/"):
				return kind{"Microsoft Excel 2007+", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", ""}
			case strings.HasPrefix(n, "ppt/"):
				return kind{"Microsoft PowerPoint 2007+", "application/vnd.openxmlformats-officedocument.presentationml.presentation", ""}
			}
		}
		return kind{"Microsoft OOXML", "application/octet-stream", ""}
	}
	if len(names) > 0 && strings.HasPrefix(names[0], "META-INF/") && f.le(30+len(names[0]), 2) == 0xcafe {
		return kind{"Java archive data (JAR)", "application/java-archive", ""}
	}
	method := map[uint64]string{0: "store", 8: "deflate", 9: "deflate64", 12: "bzip2", 14: "lzma"}[f.le(8, 2)]
	return kind{fmt.Sprintf("Zip archive data, at least v%d.%d to extract, compression method=%s", f.le(4, 1)/10, f.le(4, 1)%10, method), "application/zip", ""}
}

// image knows pictures and fonts.
func image(f *sample) (kind, bool) {
	b := f.head
	switch {
	case f.has(0, "\x89PNG\r\n\x1a\n") && len(b) >= 29:
		color := map[byte]string{2: "/color RGB", 3: " colormap", 4: " gray+alpha", 6: "/color RGBA"}[b[25]]
		if b[25] == 0 {
			color = " grayscale"
		}
		lace := "non-interlaced"
		if b[28] == 1 {
			lace = "interlaced"
		}
		return kind{fmt.Sprintf("PNG image data, %d x %d, %d-bit%s, %s", f.be(16, 4), f.be(20, 4), b[24], color, lace), "image/png", ""}, true
	case (f.has(0, "GIF87a") || f.has(0, "GIF89a")) && len(b) >= 10:
		return kind{fmt.Sprintf("GIF image data, version %s, %d x %d", b[3:6], f.le(6, 2), f.le(8, 2)), "image/gif", ""}, true
	case f.has(0, "\xff\xd8\xff"):
		return kind{f.jpeg(), "image/jpeg", ""}, true
	case f.has(0, "BM") && f.le(14, 4) == 40:
		return kind{fmt.Sprintf("PC bitmap, Windows 3.x format, %d x %d x %d, image size %d, resolution %d x %d px/m, cbSize %d, bits offset %d", f.le(18, 4), int32(f.le(22, 4)), f.le(28, 2), f.le(34, 4), f.le(38, 4), f.le(42, 4), f.le(2, 4), f.le(10, 4)), "image/bmp", ""}, true
	case f.has(0, "II*\x00"):
		return kind{fmt.Sprintf("TIFF image data, little-endian, direntries=%d", f.le(int(min(f.le(4, 4), headSize)), 2)), "image/tiff", ""}, true
	case f.has(0, "MM\x00*"):
		return kind{fmt.Sprintf("TIFF image data, big-endian, direntries=%d", f.be(int(min(f.be(4, 4), headSize)), 2)), "image/tiff", ""}, true
	case f.has(0, "8BPS"):
		mode := map[uint64]string{0: "bitmap", 1: "grayscale", 2: "indexed", 3: "RGB", 4: "CMYK"}[f.be(24, 2)]
		return kind{fmt.Sprintf("Adobe Photoshop Image, %d x %d, %s, %dx %d-bit channels", f.be(18, 4), f.be(14, 4), mode, f.be(12, 2), f.be(22, 2)), "image/vnd.adobe.photoshop", ""}, true
	case f.has(0, "wOFF"):
		return kind{fmt.Sprintf("Web Open Font Format, TrueType, length %d, version %d.%d", f.be(8, 4), f.be(20, 2), f.be(22, 2)), "font/woff", ""}, true
	case f.has(0, "wOF2"):
		return kind{fmt.Sprintf("Web Open Font Format (Version 2), TrueType, length %d, version %d.%d", f.be(8, 4), f.be(24, 2), f.be(26, 2)), "font/woff2", ""}, true
	}
	return kind{}, false
}

// jpeg goes through the segments.
func (f *sample) jpeg() string {
	s := "JPEG image data"
	for at := 2; f.be(at, 1) == 0xff; {
		mark, size := f.be(at+1, 1), int(f.be(at+2, 2))
		switch {
		case mark == 0xe0 && f.has(at+4, "JFIF"):
			unit := map[uint64]string{0: "aspect ratio", 1: "resolution (DPI)", 2: "resolution (DPCM)"}[f.be(at+11, 1)]
			s += fmt.Sprintf(", JFIF standard %d.%02d, %s, density %dx%d, segment length %d", f.be(at+9, 1), f.be(at+10, 1), unit, f.be(at+12, 2), f.be(at+14, 2), size)
		case mark == 0xe1 && f.has(at+4, "Exif"):
			tiff := &sample{head: f.head[min(at+10, len(f.head)):]}
			if k, ok := image(tiff); ok {
				s += ", Exif standard: [" + k.text + "]"
			}
		case mark == 0xfe && size > 2 && at+2+size <= len(f.head):
			s += fmt.Sprintf(", comment: \"%s\"", bytes.TrimRight(f.head[at+4:at+2+size], "\x00"))
		case mark >= 0xc0 && mark <= 0xcf && mark != 0xc4 && mark != 0xc8 && mark != 0xcc:
			way := map[uint64]string{0xc0: "baseline", 0xc1: "extended sequential", 0xc2: "progressive", 0xc3: "lossless"}[mark]
			return s + fmt.Sprintf(", %s, precision %d, %dx%d, components %d", way, f.be(at+4, 1), f.be(at+7, 2), f.be(at+5, 2), f.be(at+9, 1))
		case mark == 0xda || size < 2:
			return s
		}
		at += 2 + size
	}
	return s
}

// media knows sound and video.
func media(f *sample) (kind, bool) {
	switch {
	case f.has(0, "RIFF") && f.has(8, "WAVE"):
		coding := map[uint64]string{1: "Microsoft PCM", 3: "IEEE Float", 6: "ITU G.711 A-law", 7: "ITU G.711 mu-law"}[f.le(20, 2)]
		bits := ""
		if n := f.le(34, 2); n > 0 && f.le(20, 2) == 1 {
			bits = fmt.Sprintf(", %d bit", n)
		}
		channels := map[uint64]string{1: "mono", 2: "stereo"}[f.le(22, 2)]
		if channels == "" {
			channels = fmt.Sprintf("%d channels", f.le(22, 2))
		}
		return kind{fmt.Sprintf("RIFF (little-endian) data, WAVE audio, %s%s, %s %d Hz", coding, bits, channels, f.le(24, 4)), "audio/x-wav", ""}, true
	case f.has(0, "RIFF") && f.has(8, "AVI "):
		return kind{"RIFF (little-endian) data, AVI", "video/x-msvideo", ""}, true
	case f.has(0, "RIFF") && f.has(8, "WEBP"):
		return kind{"RIFF (little-endian) data, Web/P image", "image/webp", ""}, true
	case f.has(4, "ftyp"):
		switch brand := string(f.head[8:min(12, len(f.head))]); brand {
		case "isom":
			return kind{"ISO Media, MP4 Base Media v1 [ISO 14496-12:2003]", "video/mp4", ""}, true
		case "mp42":
			return kind{"ISO Media, MP4 v2 [ISO 14496-14]", "video/mp4", ""}, true
		case "M4A ":
			return kind{"ISO Media, Apple iTunes ALAC/AAC-LC (.M4A) Audio", "audio/x-m4a", ""}, true
		case "qt  ":
			return kind{"ISO Media, Apple QuickTime movie, Apple QuickTime (.MOV/QT)", "video/quicktime", ""}, true
		case "avif":
			return kind{"ISO Media, AVIF Image", "image/avif", ""}, true
		case "heic":
			return kind{"ISO Media, HEIF Image HEVC Main or Main Still Picture Profile", "image/heic", ""}, true
		}
		return kind{"ISO Media", "application/octet-stream", ""}, true
	case f.has(0, "ID3"):
		return kind{fmt.Sprintf("Audio file with ID3 version 2.%d.%d", f.le(3, 1), f.le(4, 1)), "audio/mpeg", ""}, true
	case f.has(0, "OggS"):
		return kind{"Ogg data", "application/ogg", ""}, true
	case f.has(0, "fLaC"):
		return kind{"FLAC audio bitstream data", "audio/flac", ""}, true
	case f.has(0, "\x1a\x45\xdf\xa3") && bytes.Contains(f.head[:min(64, len(f.head))], []byte("webm")):
		return kind{"WebM", "video/webm", ""}, true
	case f.has(0, "\x1a\x45\xdf\xa3"):
		return kind{"Matroska data", "video/x-matroska", ""}, true
	}
	return kind{}, false
}

// document knows databases and documents.
func document(f *sample) (kind, bool) {
	b := f.head
	switch {
	case f.has(0, "SQLite format 3\x00"):
		return kind{f.sqlite(), "application/vnd.sqlite3", ""}, true
	case f.has(0, "%PDF-") && len(b) >= 8:
		s := "PDF document, version " + string(b[5:8])
		front := b[:min(len(b), 512)]
		if i := bytes.Index(front, []byte("/Pages")); i >= 0 {
			if j := bytes.Index(front[i:], []byte("/Count")); j >= 0 {
				var n int
				if fmt.Sscan(string(front[i+j+6:]), &n); n > 0 {
					s += fmt.Sprintf(", %d page%s", n, map[bool]string{true: "", false: "s"}[n == 1])
				}
			}
		}
		if bytes.Contains(front, []byte("/Filter/FlateDecode/")) {
			s += " (zip deflate encoded)"
		}
		return kind{s, "application/pdf", ""}, true
	case f.has(0, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
		return kind{"Composite Document File V2 Document, Cannot read section info", "application/CDFV2", ""}, true
	case f.has(0, "b0VIM "):
		v, _, _ := bytes.Cut(b[6:min(len(b), 16)], []byte{0})
		return kind{"Vim swap file, version " + string(v), "application/octet-stream", ""}, true
	}
	return kind{}, false
}

// sqlite reads the header of a database.
func (f *sample) sqlite() string {
	s := "SQLite 3.x database"
	if n := f.be(68, 4); n != 0 {
		s += fmt.Sprintf(", application id %d", n)
	}
	if n := f.be(60, 4); n != 0 {
		s += fmt.Sprintf(", user version %d", n)
	}
	encoding := map[uint64]string{1: "UTF-8", 2: "UTF-16 little endian", 3: "UTF-16 big endian"}[f.be(56, 4)]
	s += fmt.Sprintf(", last written using SQLite version %d, file counter %d, database pages %d", f.be(96, 4), f.be(24, 4), f.be(28, 4))
	if n := f.be(36, 4); n != 0 {
		s += fmt.Sprintf(", 1st free page %d, free pages %d", f.be(32, 4), n)
	}
	if n := f.be(40, 4); n != 0 {
		s += fmt.Sprintf(", cookie %#x", n)
	}
	s += fmt.Sprintf(", schema %d", f.be(44, 4))
	if encoding != "" {
		s += ", " + encoding
	}
	return s + fmt.Sprintf(", version-valid-for %d", f.be(92, 4))
}
