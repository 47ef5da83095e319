package erofs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"agentrun.dev/errs"
)

// buffer is an image in memory.
type buffer struct{ b []byte }

func (m *buffer) WriteAt(p []byte, at int64) (int, error) {
	if need := int(at) + len(p); need > len(m.b) {
		m.b = append(m.b, make([]byte, need-len(m.b))...)
	}
	return copy(m.b[at:], p), nil
}

// reader reads an image as the kernel does (fs/erofs/{super,inode,namei,data}.c); test/vm has the kernel itself do it.
type reader struct {
	t    *testing.T
	b    []byte
	meta int64
}

type file struct {
	mode, uid, gid, links uint32
	mtime                 int64
	data                  []byte
}

func (r *reader) inode(nid uint64) file {
	at := r.meta*block + int64(nid)*slot
	b := r.b[at:]
	format := binary.LittleEndian.Uint16(b)
	if format&1 != 1 || at%block+inodeSize > block {
		r.t.Fatalf("inode %d: format %#x at %d", nid, format, at)
	}
	f := file{mode: uint32(binary.LittleEndian.Uint16(b[4:])), uid: binary.LittleEndian.Uint32(b[24:]), gid: binary.LittleEndian.Uint32(b[28:]),
		mtime: int64(binary.LittleEndian.Uint64(b[32:])), links: binary.LittleEndian.Uint32(b[44:])}
	size, start := int64(binary.LittleEndian.Uint64(b[8:])), int64(binary.LittleEndian.Uint32(b[16:]))
	switch {
	case size == 0:
	case format>>1 == inline:
		if at%block+inodeSize+size > block {
			r.t.Fatalf("inode %d: its data crosses a block", nid)
		}
		f.data = b[inodeSize : inodeSize+size]
	default:
		f.data = r.b[start*block : start*block+size]
	}
	return f
}

// walk tells of all files, by path.
func (r *reader) walk(nid uint64, at string, seen map[string]file) {
	f := r.inode(nid)
	seen[at] = f
	if f.mode&0o170000 != typeDir {
		return
	}
	var last string
	for off := 0; off < len(f.data); off += block {
		b := f.data[off:min(len(f.data), off+block)]
		n := int(binary.LittleEndian.Uint16(b[8:])) / direntSize
		for i := range n {
			e := b[i*direntSize:]
			from, to := int(binary.LittleEndian.Uint16(e[8:])), len(b)
			if i < n-1 {
				to = int(binary.LittleEndian.Uint16(b[(i+1)*direntSize+8:]))
			}
			name := strings.TrimRight(string(b[from:to]), "\x00")
			if name <= last {
				r.t.Fatalf("%s: %q after %q", at, name, last)
			}
			last = name
			child := binary.LittleEndian.Uint64(e)
			if kind := fileType(r.inode(child).mode & 0o170000); kind != e[10] {
				r.t.Errorf("%s/%s: type %d, want %d", at, name, e[10], kind)
			}
			switch name {
			case ".":
				if child != nid {
					r.t.Errorf("%s: . is another", at)
				}
			case "..":
			default:
				r.walk(child, path.Join(at, name), seen)
			}
		}
	}
}

func open(t *testing.T, m *buffer, size int64) map[string]file {
	t.Helper()
	if int64(len(m.b)) != size || size%block != 0 {
		t.Fatalf("%d bytes, said to be %d", len(m.b), size)
	}
	s := m.b[superAt:]
	if binary.LittleEndian.Uint32(s) != magic || s[12] != 12 || int64(binary.LittleEndian.Uint32(s[36:]))*block != size {
		t.Fatalf("superblock % x", s[:48])
	}
	r := &reader{t: t, b: m.b, meta: int64(binary.LittleEndian.Uint32(s[40:]))}
	seen := make(map[string]file)
	r.walk(uint64(binary.LittleEndian.Uint16(s[14:])), "/", seen)
	return seen
}

func TestWriter(t *testing.T) {
	var m buffer
	w := NewWriter(&m, 0)
	big := bytes.Repeat([]byte("block"), 3000)
	at := time.Unix(1700000000, 5)
	text := func(name, s string) error {
		return w.File(name, Meta{Perm: 0o644, UID: 1000, GID: 100, MTime: at}, int64(len(s)), strings.NewReader(s))
	}
	if err := errors.Join(text("/usr/bin/a", "small"), w.Dir("usr/bin", Meta{Perm: 0o2755, GID: 7}), text("big", string(big)), text("empty", ""),
		w.Link("usr/other", "./big"), w.Symlink("bin", "usr/bin", Meta{}), w.FIFO("pipe", Meta{Perm: 0o600}), text("again", "old"), text("again", "new"),
		text(strings.Repeat("n", 255), "long"), text("edge", strings.Repeat("e", maxInline)), text("over", strings.Repeat("o", maxInline+1)), text("../../out", "in"),
		w.Symlink("usr", "nowhere", Meta{})); err != nil {
		t.Fatal(err)
	}
	for i := range 2000 { // a folder of many blocks
		if err := text(fmt.Sprintf("many/%04d-%s", i, strings.Repeat("x", i%50)), fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	size, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	seen := open(t, &m, size)
	for name, want := range map[string]file{
		"/":                            {typeDir | 0o755, 0, 0, 4, 0, nil},
		"/usr":                         {typeDir | 0o755, 0, 0, 3, 0, nil}, // a link doesn't take a folder's place
		"/usr/bin":                     {typeDir | 0o2755, 0, 7, 2, 0, nil},
		"/usr/bin/a":                   {typeFile | 0o644, 1000, 100, 1, 1700000000, []byte("small")},
		"/big":                         {typeFile | 0o644, 1000, 100, 2, 1700000000, big},
		"/usr/other":                   {typeFile | 0o644, 1000, 100, 2, 1700000000, big},
		"/empty":                       {typeFile | 0o644, 1000, 100, 1, 1700000000, nil},
		"/bin":                         {typeSymlink | 0o777, 0, 0, 1, 0, []byte("usr/bin")},
		"/pipe":                        {typeFIFO | 0o600, 0, 0, 1, 0, nil},
		"/again":                       {typeFile | 0o644, 1000, 100, 1, 1700000000, []byte("new")},
		"/" + strings.Repeat("n", 255): {typeFile | 0o644, 1000, 100, 1, 1700000000, []byte("long")},
		"/edge":                        {typeFile | 0o644, 1000, 100, 1, 1700000000, bytes.Repeat([]byte("e"), maxInline)},
		"/over":                        {typeFile | 0o644, 1000, 100, 1, 1700000000, bytes.Repeat([]byte("o"), maxInline+1)},
		"/out":                         {typeFile | 0o644, 1000, 100, 1, 1700000000, []byte("in")},
	} {
		got, ok := seen[name]
		if want.mode&typeDir != 0 && want.mode&typeFile == 0 {
			got.data, want.data = nil, nil
		}
		if !ok || got.mode != want.mode || got.uid != want.uid || got.gid != want.gid || got.links != want.links || got.mtime != want.mtime || !bytes.Equal(got.data, want.data) {
			t.Errorf("%s: %v %o %d:%d %d links, %d bytes; want %o %d:%d %d links, %d bytes", name, ok, got.mode, got.uid, got.gid, got.links, len(got.data),
				want.mode, want.uid, want.gid, want.links, len(want.data))
		}
	}
	many := 0
	for name, f := range seen {
		if rest, ok := strings.CutPrefix(name, "/many/"); ok {
			many++
			if n := strings.TrimLeft(rest[:4], "0"); string(f.data) != n && n != "" {
				t.Errorf("%s holds %q", name, f.data)
			}
		}
	}
	if many != 2000 {
		t.Errorf("%d files of 2000", many)
	}
}

func TestWriterRefuses(t *testing.T) {
	w := NewWriter(&buffer{}, 64<<10)
	for name, c := range map[string]struct {
		err  error
		kind errs.Kind
	}{
		"no name":    {w.File("/", Meta{}, 0, strings.NewReader("")), errs.Invalid},
		"NUL":        {w.File("a\x00", Meta{}, 0, strings.NewReader("")), errs.Invalid},
		"long name":  {w.File(strings.Repeat("a", 256), Meta{}, 0, strings.NewReader("")), errs.Invalid},
		"large":      {w.File("a", Meta{}, 1<<20, strings.NewReader("")), errs.TooLarge},
		"negative":   {w.File("a", Meta{}, -1, strings.NewReader("")), errs.TooLarge},
		"short":      {w.File("a", Meta{}, 10, strings.NewReader("x")), errs.Corrupt},
		"also short": {w.File("a", Meta{}, 10000, strings.NewReader("x")), errs.Corrupt},
		"empty link": {w.Symlink("a", "", Meta{}), errs.Invalid},
	} {
		if errs.KindOf(c.err) != c.kind {
			t.Errorf("%s: %v, want %v", name, c.err, c.kind)
		}
	}
	if err := w.Link("hard", "nowhere"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(); errs.KindOf(err) != errs.Corrupt {
		t.Errorf("a link to nothing: %v", err)
	}
}

// FuzzTree: whatever paths come, the image holds the tree that they make.
func FuzzTree(f *testing.F) {
	f.Add("a/b\na\n../c\na/b/d", uint16(5))
	f.Add(strings.Repeat("x", 255)+"\n.\n..\n//", uint16(5000))
	f.Fuzz(func(t *testing.T, paths string, size uint16) {
		var m buffer
		w := NewWriter(&m, 1<<24)
		var names []string
		for i, p := range strings.Split(paths, "\n") {
			data := io.LimitReader(zeros{}, int64(size))
			var err error
			switch i % 3 {
			case 0:
				err = w.File(p, Meta{}, int64(size), data)
			case 1:
				err = w.Dir(p, Meta{})
			case 2:
				err = w.Symlink(p, "x", Meta{})
			}
			if err == nil {
				names = append(names, "/"+clean(p))
			}
		}
		n, err := w.Close()
		if err != nil {
			return
		}
		seen := open(t, &m, n)
		for _, name := range slices.Compact(names) {
			if _, ok := seen[name]; !ok && len(names) == 1 {
				t.Errorf("%q isn't there", name)
			}
		}
	})
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }
