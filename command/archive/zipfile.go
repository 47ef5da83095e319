package archive

import (
	"archive/zip"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

// maxDirectory bounds what may be read of an archive's directory, about half a million members.
const maxDirectory = 32 << 20

// errManyMembers says that an archive's directory is larger than maxDirectory.
var errManyMembers = errors.New("the directory is too large")

// zipInput is an archive to read.
type zipInput struct {
	t    *tool.T
	name string // as it was found, perhaps with .zip
	in   *tool.Input
	r    *zip.Reader
	err  error
	left int64 // of maxDirectory, while the directory is read; negative afterwards
}

// openZip opens an archive, with or without its suffix; nil if there is none, which it reports. What is wrong with the
// archive is in err.
func openZip(t *tool.T, name string) *zipInput {
	for _, suffix := range []string{"", ".zip", ".ZIP"} {
		in, err := t.OpenFile(name + suffix)
		if err != nil {
			continue
		}
		at, err := in.Attr()
		if err == nil && at.Mode.IsDir() {
			in.Close()
			continue
		}
		z := &zipInput{t: t, name: name + suffix, in: in, err: err}
		if err == nil {
			z.read(at.Size)
		}
		return z
	}
	t.Out.Flush()
	io.WriteString(t.Stderr(), "unzip:  cannot find or open "+name+", "+name+".zip or "+name+".ZIP.\n")
	return nil
}

func (z *zipInput) read(size int64) {
	z.left = maxDirectory
	z.r, z.err = zip.NewReader(z, size)
	if errors.Is(z.err, zip.ErrInsecurePath) {
		z.err = nil // names are made safe where they are used
	}
	z.left = -1
}

// ReadAt implements io.ReaderAt on the archive.
func (z *zipInput) ReadAt(p []byte, off int64) (int, error) {
	if z.t.Step(1+len(p)/1024) != nil {
		z.t.Check()
	}
	n, err := z.in.File.ReadAt(p, off)
	if z.left >= 0 {
		if z.left -= int64(n); z.left < 0 {
			z.left = 0
			return 0, errManyMembers
		}
	}
	return n, err
}

func (z *zipInput) close() { z.in.Close() }

// overlapping reports whether members share data, as those of a bomb do.
func (z *zipInput) overlapping(t *tool.T) bool {
	type span struct{ from, to int64 }
	spans := make([]span, 0, len(z.r.File))
	for _, f := range z.r.File {
		if t.Step(1) != nil {
			t.Check()
		}
		off, err := f.DataOffset()
		if err != nil || f.CompressedSize64 == 0 {
			continue // reading it fails, which is reported then
		}
		spans = append(spans, span{off, off + int64(min(f.CompressedSize64, 1<<62-1))})
	}
	slices.SortFunc(spans, func(a, b span) int { return int(max(-1, min(1, a.from-b.from))) })
	for i := 1; i < len(spans); i++ {
		if spans[i].from < spans[i-1].to {
			return true
		}
	}
	return false
}

// zipExtraTime is the extra field that holds times of the Unix kind; zipExtraOwner that of user and group.
const (
	zipExtraTime  = 0x5455
	zipExtraOwner = 0x7875
)

// zipTime returns when a member was changed: to the second if the archive has that, otherwise in the sandbox's zone.
func zipTime(t *tool.T, f *zip.File) time.Time {
	for b := f.Extra; len(b) >= 4; {
		id, n := binary.LittleEndian.Uint16(b), int(binary.LittleEndian.Uint16(b[2:]))
		if n > len(b)-4 {
			break
		}
		if id == zipExtraTime && n >= 5 && b[4]&1 != 0 {
			return time.Unix(int64(int32(binary.LittleEndian.Uint32(b[5:]))), 0).In(t.Location())
		}
		b = b[4+n:]
	}
	d, c := int(f.ModifiedDate), int(f.ModifiedTime)
	return time.Date(1980+d>>9, time.Month(d>>5&15), d&31, c>>11, c>>5&63, c&31*2, 0, t.Location())
}

// zipMode returns a member's type and permissions. Archives from elsewhere only know what is a directory and what can't
// be written.
func zipMode(t *tool.T, f *zip.File) vfs.Mode {
	isDir := strings.HasSuffix(f.Name, "/")
	if host := f.CreatorVersion >> 8; host == 3 || host == 19 {
		if m := vfs.Mode(f.ExternalAttrs >> 16); m != 0 {
			switch {
			case isDir || m.IsDir():
				return vfs.ModeDir | m&0o7777
			case m.IsSymlink():
				return m
			}
			return vfs.ModeRegular | m&0o7777
		}
	}
	old := t.Umask(0)
	t.Umask(old)
	m := vfs.Mode(0o666)
	if f.ExternalAttrs&1 != 0 {
		m = 0o444
	}
	if isDir || f.ExternalAttrs&0x10 != 0 {
		return vfs.ModeDir | (m|0o111)&^old
	}
	return vfs.ModeRegular | m&^old
}

// zipMethod names how a member is compressed, as unzip -v does.
func zipMethod(f *zip.File) string {
	switch f.Method {
	case zip.Store:
		return "Stored"
	case zip.Deflate:
		return "Defl:" + string("NXFS"[f.Flags>>1&3])
	}
	return "Unk:" + itoa(int64(f.Method))
}

// zipVerb says what is done to a member on its way out.
func zipVerb(f *zip.File) string {
	if f.Method == zip.Store {
		return "extracting"
	}
	return "inflating"
}

// zipRatio is how much smaller data became, in rounded percent.
func zipRatio(size, packed uint64) int64 {
	if size == 0 {
		return 0
	}
	r := (float64(size) - float64(packed)) * 1000 / float64(size)
	if r < 0 {
		return -((int64(-r) + 5) / 10)
	}
	return (int64(r) + 5) / 10
}

// printableName shows controls in a member's name as ^X.
func printableName(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] == 0x7f {
			b.WriteByte('^')
			b.WriteByte(s[i] ^ 0x40)
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// padName is printableName, padded to 22 bytes.
func padName(s string) string {
	s = printableName(s)
	return s + strings.Repeat(" ", max(0, 22-len(s)))
}

// plural is what makes a noun one of several.
func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}
