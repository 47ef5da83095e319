package vfstest

import (
	"bytes"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"agentrun.dev/vfs"
)

// testUnlinked uses a file that has no name any more.
func testUnlinked(t *testing.T, e *env) {
	e.write("f", "old contents")
	f := e.open("f", vfs.O_RDWR)
	e.must(e.ns.Unlink(ctx, root, "/", "f"))
	e.write("f", "another file")
	_, err := f.WriteAt([]byte("NEW"), 0)
	e.must(err)
	b := make([]byte, 100)
	n, err := f.ReadAt(b, 0)
	if string(b[:n]) != "NEW contents" || err != io.EOF {
		t.Errorf("the unlinked file reads %q, %v", b[:n], err)
	}
	a, err := f.Attr()
	if err != nil || a.Nlink != 0 || a.Size != 12 {
		t.Errorf("the unlinked file has %d links and %d bytes, %v", a.Nlink, a.Size, err)
	}
	e.must(f.Sync())
	e.must(f.Close())
	if got := e.read("f"); got != "another file" {
		t.Errorf("the new file reads %q", got)
	}
	// The same for a file that is replaced by a rename, and one that was never closed before.
	f = e.open("g", vfs.O_RDWR|vfs.O_CREAT)
	_, err = f.Write([]byte("fresh"))
	e.must(err)
	e.must(e.ns.Rename(ctx, root, "/", "f", "g", 0))
	n, err = f.ReadAt(b, 0)
	if string(b[:n]) != "fresh" || err != io.EOF {
		t.Errorf("the replaced file reads %q, %v", b[:n], err)
	}
	e.must(f.Close())
	if got := e.read("g"); got != "another file" {
		t.Errorf("after the rename the name reads %q", got)
	}
	e.want("write to a closed file", func() error { _, err := f.Write(b); return err }(), syscall.EBADF)
	e.want("close twice", f.Close(), syscall.EBADF)
}

// testShared checks that handles see each other's writes at once.
func testShared(t *testing.T, e *env) {
	w := e.open("f", vfs.O_RDWR|vfs.O_CREAT)
	r := e.open("f", vfs.O_RDONLY)
	_, err := w.Write([]byte("hello"))
	e.must(err)
	b := make([]byte, 10)
	if n, _ := r.Read(b); string(b[:n]) != "hello" {
		t.Errorf("another descriptor reads %q", b[:n])
	}
	if n, err := r.Read(b); n != 0 || err != io.EOF {
		t.Errorf("at the end: %d, %v", n, err)
	}
	size := int64(2)
	e.must(w.SetAttr(vfs.SetAttr{Size: &size}))
	if a := e.stat("f"); a.Size != 2 {
		t.Errorf("stat shows %d bytes after truncation", a.Size)
	}
	size = 6
	e.must(w.SetAttr(vfs.SetAttr{Size: &size}))
	if n, _ := r.ReadAt(b, 0); string(b[:n]) != "he\x00\x00\x00\x00" {
		t.Errorf("after truncating and extending it reads %q", b[:n])
	}
	e.must(e.ns.Rename(ctx, root, "/", "f", "g", 0))
	_, err = w.WriteAt([]byte("J"), 0)
	e.must(err)
	e.must(w.Close())
	e.must(r.Close())
	if got := e.read("g"); got != "Je\x00\x00\x00\x00" {
		t.Errorf("renamed while open, it reads %q", got)
	}
	if got := e.stat("g").Size; got != 6 {
		t.Errorf("renamed while open, it has %d bytes", got)
	}
}

// testAppend appends from many descriptors at once: every record is whole and none is lost.
func testAppend(t *testing.T, e *env) {
	const writers, records, size = 4, 50, 100
	e.write("log", "")
	var wg sync.WaitGroup
	for i := range writers {
		f := e.open("log", vfs.O_WRONLY|vfs.O_APPEND)
		wg.Go(func() {
			defer f.Close()
			for range records {
				if _, err := f.Write(bytes.Repeat([]byte{byte('a' + i)}, size)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	all := e.read("log")
	count := map[byte]int{}
	for i := 0; i+size <= len(all); i += size {
		if strings.Count(all[i:i+size], all[i:i+1]) != size {
			t.Fatalf("the record at %d is torn: %q", i, all[i:i+size])
		}
		count[all[i]]++
	}
	if len(all) != writers*records*size || len(count) != writers {
		t.Errorf("%d bytes of %d writers", len(all), len(count))
	}
}

// testSparse writes far beyond the end.
func testSparse(t *testing.T, e *env) {
	const far = 1 << 30
	f := e.open("f", vfs.O_RDWR|vfs.O_CREAT)
	_, err := f.WriteAt([]byte("far"), far)
	e.must(err)
	_, err = f.WriteAt([]byte("near"), 10)
	e.must(err)
	e.must(f.Close())
	f = e.open("f", vfs.O_RDWR)
	if a, err := f.Attr(); err != nil || a.Size != far+3 {
		t.Errorf("%d bytes, %v", a.Size, err)
	}
	for off, want := range map[int64]string{0: "\x00\x00\x00\x00", 9: "\x00nea", far - 2: "\x00\x00fa", 500 << 20: "\x00\x00\x00\x00", far + 1: "ar"} {
		b := make([]byte, 4)
		if n, err := f.ReadAt(b, off); string(b[:n]) != want || err != nil && err != io.EOF {
			t.Errorf("at %d it reads %q, %v; want %q", off, b[:n], err, want)
		}
	}
	size := int64(12)
	e.must(f.SetAttr(vfs.SetAttr{Size: &size}))
	e.must(f.Close())
	if got := e.read("f"); got != strings.Repeat("\x00", 10)+"ne" {
		t.Errorf("truncated, it reads %q", got)
	}
}

// testTimes follows the three times of files and directories.
func testTimes(t *testing.T, e *env) {
	e.must(e.ns.Mkdir(ctx, root, "/", "d", 0o755))
	e.write("d/f", "text")
	old := time.Date(2001, 2, 3, 4, 5, 6, 789000000, time.UTC)
	for _, p := range []string{"d/f", "d"} {
		e.must(e.ns.SetAttr(ctx, root, "/", p, vfs.SetAttr{Atime: &old, Mtime: &old}, true))
		a := e.stat(p)
		if !a.Mtime.Equal(old) || !a.Atime.Equal(old) || !a.Ctime.After(old.AddDate(10, 0, 0)) {
			t.Errorf("%s: times were set to %v: atime %v, mtime %v, ctime %v", p, old, a.Atime, a.Mtime, a.Ctime)
		}
	}
	mode := vfs.Mode(0o600)
	e.must(e.ns.SetAttr(ctx, root, "/", "d/f", vfs.SetAttr{Mode: &mode}, true))
	if a := e.stat("d/f"); !a.Mtime.Equal(old) || a.Mode != vfs.ModeRegular|0o600 {
		t.Errorf("chmod moved the modification time to %v, mode %o", a.Mtime, a.Mode)
	}
	f := e.open("d/f", vfs.O_WRONLY)
	_, err := f.Write([]byte("T"))
	e.must(err)
	if a := e.stat("d/f"); !a.Mtime.After(old) {
		t.Error("writing left the modification time")
	}
	e.must(f.SetAttr(vfs.SetAttr{Mtime: &old}))
	e.must(f.Close())
	if a := e.stat("d/f"); !a.Mtime.Equal(old) {
		t.Errorf("a time set through the descriptor after writing became %v", a.Mtime)
	}
	if a := e.stat("d"); !a.Mtime.Equal(old) {
		t.Errorf("changing a file moved its directory's time to %v", a.Mtime)
	}
	for _, step := range []func() error{
		func() error { return e.ns.Mkdir(ctx, root, "/", "d/sub", 0o755) },
		func() error { return e.ns.Rmdir(ctx, root, "/", "d/sub") },
		func() error { return e.ns.Rename(ctx, root, "/", "d/f", "d/g", 0) },
		func() error { return e.ns.Unlink(ctx, root, "/", "d/g") },
	} {
		e.must(e.ns.SetAttr(ctx, root, "/", "d", vfs.SetAttr{Mtime: &old}, true))
		e.must(step())
		if a := e.stat("d"); !a.Mtime.After(old) || !a.Ctime.After(old) {
			t.Errorf("a change of entries left the directory's times: %v, %v", a.Mtime, a.Ctime)
		}
	}
	e.must(e.ns.SetAttr(ctx, root, "/", "d", vfs.SetAttr{MtimeNow: true}, true))
	if a := e.stat("d"); time.Since(a.Mtime) > time.Hour || time.Since(a.Mtime) < -time.Hour {
		t.Errorf("now is %v", a.Mtime)
	}
}

// testListing compares listings with each other and with stat.
func testListing(t *testing.T, e *env) {
	e.must(e.ns.Mkdir(ctx, root, "/", "d", 0o755))
	names := []string{"-", "a", "a-", "a.", "A", "z", "ü", "sp ace", "new\nline", "\xff\xfe", "%", "50%", ".hidden", strings.Repeat("l", 255)}
	for i, n := range names {
		if i%3 == 0 {
			e.must(e.ns.Mkdir(ctx, root, "/d", n, 0o755))
			e.write("d/"+n+"/x", "")
		} else {
			e.write("d/"+n, n)
		}
	}
	first, err := e.ns.ReadDir(ctx, root, "/", "d")
	e.must(err)
	d := e.open("d", vfs.O_RDONLY|vfs.O_DIRECTORY)
	defer d.Close()
	for range 3 {
		again, err := d.ReadDir()
		if err != nil || !slices.Equal(first, again) {
			t.Errorf("two listings differ: %v, %v, %v", first, again, err)
		}
	}
	var got []string
	inos := map[vfs.Ino]bool{}
	for _, en := range first {
		got = append(got, en.Name)
		if a := e.stat("d/" + en.Name); a.Ino != en.Ino || a.Mode&vfs.ModeType != en.Mode || inos[a.Ino] {
			t.Errorf("%q is listed as %+v and is %+v", en.Name, en, a)
		}
		inos[en.Ino] = true
	}
	slices.Sort(got)
	slices.Sort(names)
	if !slices.Equal(got, names) {
		t.Errorf("listed %q, want %q", got, names)
	}
	e.want("read a directory", func() error { _, err := d.Read(make([]byte, 1)); return err }(), syscall.EISDIR)
}

// testIOFS runs the standard library's own test over the adaptor.
func testIOFS(t *testing.T, e *env) {
	e.must(e.ns.Mkdir(ctx, root, "/", "dir", 0o755))
	e.must(e.ns.Mkdir(ctx, root, "/", "dir/empty", 0o755))
	e.write("dir/file", "contents")
	e.write("top", strings.Repeat("x", 5000))
	if err := fstest.TestFS(vfs.IOFS(ctx, e.ns, none, "/"), "dir/empty", "dir/file", "top"); err != nil {
		t.Error(err)
	}
}

// testLinks gives a file several names.
func testLinks(t *testing.T, e *env) {
	e.write("a", "text")
	e.must(e.ns.Mkdir(ctx, root, "/", "d", 0o755))
	e.must(e.ns.Link(ctx, root, "/", "a", "d/b"))
	a, b := e.stat("a"), e.stat("d/b")
	if a.Ino != b.Ino || a.Nlink != 2 || b.Nlink != 2 {
		t.Errorf("two names: %+v and %+v", a, b)
	}
	e.write("d/b", "changed through b")
	if got := e.read("a"); got != "changed through b" {
		t.Errorf("the first name reads %q", got)
	}
	mode := vfs.Mode(0o640)
	e.must(e.ns.SetAttr(ctx, root, "/", "a", vfs.SetAttr{Mode: &mode}, true))
	if got := e.stat("d/b"); got.Mode != vfs.ModeRegular|0o640 {
		t.Errorf("the other name has mode %o", got.Mode)
	}
	e.must(e.ns.Rename(ctx, root, "/", "a", "d/b", 0)) // two names of one file: nothing happens
	if a := e.stat("a"); a.Nlink != 2 {
		t.Errorf("renaming a file onto itself left %d links", a.Nlink)
	}
	f := e.open("a", vfs.O_RDWR)
	e.must(e.ns.Unlink(ctx, root, "/", "a"))
	_, err := f.WriteAt([]byte("CHANGED"), 0)
	e.must(err)
	e.must(f.Close())
	if got := e.read("d/b"); got != "CHANGED through b" {
		t.Errorf("after the first name went, the other reads %q", got)
	}
	if b := e.stat("d/b"); b.Nlink != 1 {
		t.Errorf("%d links are left", b.Nlink)
	}
	e.want("link to a directory", e.ns.Link(ctx, root, "/", "d", "e"), syscall.EPERM)
	e.want("link onto a name", e.ns.Link(ctx, root, "/", "d/b", "d"), syscall.EEXIST)
}

// testPermissions tries what others than the owner may do.
func testPermissions(t *testing.T, e *env) {
	e.must(e.ns.Mkdir(ctx, root, "/", "sticky", 0o777))
	sticky := vfs.Mode(0o1777)
	e.must(e.ns.SetAttr(ctx, root, "/", "sticky", vfs.SetAttr{Mode: &sticky}, true))
	e.write("sticky/root", "root's")
	e.write("secret", "x")
	private := vfs.Mode(0o600)
	e.must(e.ns.SetAttr(ctx, root, "/", "secret", vfs.SetAttr{Mode: &private}, true))
	e.must(e.ns.Mkdir(ctx, root, "/", "closed", 0o700))
	e.write("closed/f", "x")
	e.must(e.ns.Mkdir(ctx, root, "/", "closed/open", 0o755))
	open := func(p string, flags int) error {
		f, err := e.ns.Open(ctx, none, "/", p, flags, 0o644)
		if err == nil {
			f.Close()
		}
		return err
	}
	mode, uid := vfs.Mode(0o777), uint32(1000)
	now := time.Now()
	e.want("create where only root may", open("new", vfs.O_CREAT|vfs.O_WRONLY), syscall.EACCES)
	e.want("create", open("sticky/mine", vfs.O_CREAT|vfs.O_WRONLY), 0)
	e.want("read another's private file", open("secret", vfs.O_RDONLY), syscall.EACCES)
	e.want("look through a closed directory", open("closed/f", vfs.O_RDONLY), syscall.EACCES)
	e.want("truncate by opening", open("sticky/root", vfs.O_RDONLY|vfs.O_TRUNC), syscall.EACCES)
	e.want("unlink another's in a sticky directory", e.ns.Unlink(ctx, none, "/", "sticky/root"), syscall.EPERM)
	e.want("rename another's in a sticky directory", e.ns.Rename(ctx, none, "/", "sticky/root", "sticky/x", 0), syscall.EPERM)
	e.want("chmod another's", e.ns.SetAttr(ctx, none, "/", "sticky/root", vfs.SetAttr{Mode: &mode}, true), syscall.EPERM)
	e.want("give away", e.ns.SetAttr(ctx, none, "/", "sticky/root", vfs.SetAttr{UID: &uid}, true), syscall.EPERM)
	e.want("set another's time", e.ns.SetAttr(ctx, none, "/", "sticky/root", vfs.SetAttr{Mtime: &now}, true), syscall.EPERM)
	e.want("touch another's", e.ns.SetAttr(ctx, none, "/", "sticky/root", vfs.SetAttr{MtimeNow: true}, true), syscall.EACCES)
	e.want("touch one's own", e.ns.SetAttr(ctx, none, "/", "sticky/mine", vfs.SetAttr{Mtime: &now}, true), 0)
	e.want("access", e.ns.Access(ctx, none, "/", "secret", vfs.Read), syscall.EACCES)
	e.want("root's access to execute what nobody may", e.ns.Access(ctx, root, "/", "secret", vfs.Exec), syscall.EACCES)
	e.want("stand beneath a closed directory", func() error { _, err := e.ns.Stat(ctx, none, "/closed/open", "."); return err }(), 0)
	e.want("go there", func() error { _, err := e.ns.Stat(ctx, none, "/", "closed/open"); return err }(), syscall.EACCES)
	if a := e.stat("sticky/mine"); a.UID != 1000 || a.GID != 1000 || a.Mode != vfs.ModeRegular|0o644 {
		t.Errorf("a new file is %+v", a)
	}
	setgid := vfs.Mode(0o2777)
	e.must(e.ns.SetAttr(ctx, root, "/", "sticky", vfs.SetAttr{Mode: &setgid}, true))
	e.must(e.ns.Mkdir(ctx, none, "/", "sticky/sub", 0o755))
	if a := e.stat("sticky/sub"); a.GID != 0 || a.Mode != vfs.ModeDir|0o2755 {
		t.Errorf("a directory in a set-group-id directory is %+v", a)
	}
}

// testConcurrent lets many do everything at once on the same few names: nothing unexpected comes back, and the tree is whole
// at the end. It is meant for the race detector.
func testConcurrent(t *testing.T, e *env) {
	names := []string{"a", "b", "d", "d/a", "d/b", "d/d", "e", "e/a"}
	fine := []syscall.Errno{syscall.ENOENT, syscall.EEXIST, syscall.ENOTDIR, syscall.EISDIR, syscall.ENOTEMPTY, syscall.EINVAL, syscall.EBUSY, syscall.ELOOP, syscall.EPERM}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(7, uint64(i)))
			for range 300 {
				p, q := names[r.IntN(len(names))], names[r.IntN(len(names))]
				if err := e.random(r.IntN(9), p, q); err != nil && !slices.Contains(fine, vfs.Errno(err)) {
					t.Errorf("%s, %s: %v", p, q, err)
				}
			}
		})
	}
	wg.Wait()
	Tree(t, e.fs)
}

func (e *env) random(what int, p, q string) error {
	switch what {
	case 0:
		return e.ns.Mkdir(ctx, root, "/", p, 0o755)
	case 1:
		return e.ns.Unlink(ctx, root, "/", p)
	case 2:
		return e.ns.Rmdir(ctx, root, "/", p)
	case 3:
		return e.ns.Rename(ctx, root, "/", p, q, 0)
	case 4:
		if e.c.NoLinks {
			return nil
		}
		return e.ns.Link(ctx, root, "/", p, q)
	case 5:
		_, err := e.ns.ReadDir(ctx, root, "/", p)
		return err
	case 6:
		mode := vfs.Mode(0o700)
		return e.ns.SetAttr(ctx, root, "/", p, vfs.SetAttr{Mode: &mode}, true)
	}
	f, err := e.ns.Open(ctx, root, "/", p, vfs.O_RDWR|vfs.O_CREAT, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write([]byte(q)); err != nil {
		return err
	}
	if what == 8 {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	_, err = f.ReadAt(make([]byte, 10), 0)
	if err == io.EOF {
		err = nil
	}
	return err
}
