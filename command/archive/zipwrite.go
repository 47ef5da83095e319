package archive

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/command/codec"
	"agentrun.dev/command/tool"
)

// members writes all members and the archive's directory.
func (z *zipper) members(w io.Writer) {
	z.w = zip.NewWriter(w)
	z.w.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return codec.NewDeflater(w, z.level), nil })
	for _, e := range z.files {
		if z.t.Step(1) != nil {
			z.t.Check()
		}
		var err error
		if e.fresh {
			err = z.member(e)
		} else {
			err = z.w.Copy(e.old)
		}
		if err != nil {
			z.fail(14, "Output file write failure", tool.Strerror(err))
		}
	}
	if z.comment {
		z.w.SetComment(z.newComment)
	} else if z.old != nil && z.old.r != nil {
		z.w.SetComment(z.old.r.Comment)
	}
	if err := z.w.Close(); err != nil {
		z.fail(14, "Output file write failure", tool.Strerror(err))
	}
}

// header is what the archive says about a file.
func (z *zipper) header(e *zipEntry) *zip.FileHeader {
	when := e.at.Mtime.Add(time.Second).In(z.t.Location())
	h := &zip.FileHeader{Name: e.name, CreatorVersion: 3<<8 | 30, ReaderVersion: 10, ExternalAttrs: uint32(e.at.Mode) << 16}
	if e.at.Mode.IsDir() {
		h.ExternalAttrs |= 0x10
	}
	year := min(max(when.Year(), 1980), 2107) - 1980
	h.ModifiedDate = uint16(year<<9 | int(when.Month())<<5 | when.Day())
	h.ModifiedTime = uint16(when.Hour()<<11 | when.Minute()<<5 | when.Second()/2)
	if z.bare {
		return h
	}
	x := binary.LittleEndian.AppendUint16(nil, zipExtraTime)
	x = append(x, 5, 0, 1)
	x = binary.LittleEndian.AppendUint32(x, uint32(e.at.Mtime.Unix()))
	x = binary.LittleEndian.AppendUint16(x, zipExtraOwner)
	x = append(x, 11, 0, 1, 4)
	x = binary.LittleEndian.AppendUint32(x, e.at.UID)
	x = append(x, 4)
	h.Extra = binary.LittleEndian.AppendUint32(x, e.at.GID)
	return h
}

// member adds a file.
func (z *zipper) member(e *zipEntry) error {
	verb := "  adding"
	if e.old != nil && z.freshen {
		verb = "freshening"
	} else if e.old != nil {
		verb = "updating"
	}
	h := z.header(e)
	var in io.Reader
	switch {
	case e.at.Mode.IsDir():
		in = strings.NewReader("")
	case e.at.Mode.IsSymlink():
		target, err := z.t.Readlink(e.path)
		if err != nil {
			return z.unreadable(e)
		}
		in = strings.NewReader(target)
	case e.path == "-":
		in = z.t.Stdin()
	default:
		f, err := z.t.OpenFile(e.path)
		if err != nil {
			return z.unreadable(e)
		}
		defer f.Close()
		in = f
	}
	in = &metered{z.t, in}
	var data bytes.Buffer
	n, err := io.Copy(&data, io.LimitReader(in, maxWhole+1))
	if err != nil {
		return z.unreadable(e)
	}
	if n > maxWhole {
		err = z.stream(h, io.MultiReader(&data, in))
	} else {
		err = z.whole(h, data.Bytes(), (e.at.Mode.IsRegular() || e.path == "-") && !z.isPacked(e.name))
	}
	if err == nil {
		how := "stored"
		if h.Method == zip.Deflate {
			how = "deflated"
		}
		z.sizeIn, z.sizeOut = z.sizeIn+h.UncompressedSize64, z.sizeOut+h.CompressedSize64
		detail := ""
		if z.verbose {
			detail = fmt.Sprintf("\t(in=%d) (out=%d)", h.UncompressedSize64, h.CompressedSize64)
		}
		z.say("%s: %s%s (%s %d%%)\n", verb, e.name, detail, how, zipRatio(h.UncompressedSize64, h.CompressedSize64))
	}
	return err
}

// unreadable leaves a file out, or keeps the old member.
func (z *zipper) unreadable(e *zipEntry) error {
	z.warn("could not open for reading: %s", e.path)
	z.status, e.fresh = 18, false
	if e.old != nil {
		return z.w.Copy(e.old)
	}
	return nil
}

// whole adds data in memory, compressed if that makes it smaller.
func (z *zipper) whole(h *zip.FileHeader, data []byte, pack bool) error {
	h.Method, h.UncompressedSize64, h.CompressedSize64, h.CRC32 = zip.Store, uint64(len(data)), uint64(len(data)), crc32.ChecksumIEEE(data)
	var packed bytes.Buffer
	if pack && z.level > 0 && len(data) > 0 {
		w := codec.NewDeflater(&packed, z.level)
		_, err := w.Write(data)
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			return err
		}
		if packed.Len() < len(data) {
			h.Method, h.CompressedSize64, data = zip.Deflate, uint64(packed.Len()), packed.Bytes()
			h.ReaderVersion = 20
		}
	}
	if pack && len(data) > 0 {
		z.levelFlags(h)
	}
	w, err := z.w.CreateRaw(h)
	if err == nil {
		_, err = w.Write(data)
	}
	return err
}

// isPacked reports whether a name says that a file is compressed already.
func (z *zipper) isPacked(name string) bool {
	list := z.packed
	if list == nil {
		list = []string{".Z", ".zip", ".zoo", ".arc", ".lzh", ".arj"}
	}
	for _, s := range list {
		if strings.HasSuffix(strings.ToLower(name), strings.ToLower(s)) {
			return true
		}
	}
	return false
}

// levelFlags tells how hard the compressor tried.
func (z *zipper) levelFlags(h *zip.FileHeader) {
	switch {
	case z.level >= 8:
		h.Flags |= 2
	case z.level == 1, z.level == 2:
		h.Flags |= 4
	}
}

// stream adds data of any size; what it measures follows the data.
func (z *zipper) stream(h *zip.FileHeader, in io.Reader) error {
	if h.Method = zip.Deflate; z.level == 0 {
		h.Method = zip.Store
	} else {
		z.levelFlags(h)
	}
	w, err := z.w.CreateHeader(h)
	if err != nil {
		return err
	}
	if _, err = io.Copy(w, in); err != nil {
		return err
	}
	return z.w.Flush()
}

// removeFiles is -m: what was added is removed, directories after what is in them.
func (z *zipper) removeFiles() {
	if !z.move {
		return
	}
	for i := len(z.files) - 1; i >= 0; i-- {
		e := z.files[i]
		var err error
		switch {
		case !e.fresh || e.path == "-":
		case e.at.Mode.IsDir():
			if err = z.t.Rmdir(e.path); errors.Is(err, syscall.ENOTEMPTY) {
				err = nil
			}
		default:
			err = z.t.Unlink(e.path)
		}
		if err != nil {
			z.warn("error deleting %s", e.path)
		}
	}
}
