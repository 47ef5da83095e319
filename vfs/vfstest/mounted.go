package vfstest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Mounted checks a directory of this kernel's, on whatever filesystem, for what programs rely on and Differential doesn't try: mappings,
// locks, holes, times, notifications, large directories. It makes a directory of its own for each check.
func Mounted(t *testing.T, dir string, entries int) {
	for _, c := range []struct {
		name string
		do   func(t *testing.T, dir string)
	}{
		{"mappings", checkMappings}, {"direct", checkDirect}, {"locks", checkLocks}, {"attributes", checkXattrs}, {"links", checkLinks},
		{"open", checkOpenFiles}, {"holes", checkHoles}, {"names", checkNames}, {"times", checkTimes}, {"statfs", checkStatFS},
		{"notifications", checkInotify}, {"append", checkAppend}, {"copy", checkCopy}, {"sockets", checkSocket}, {"rename", checkRenameFlags},
		{"large directory", func(t *testing.T, dir string) { checkLarge(t, dir, entries) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			own := filepath.Join(dir, strings.ReplaceAll(c.name, " ", "-"))
			must(t, os.Mkdir(own, 0o755))
			c.do(t, own)
			must(t, os.RemoveAll(own))
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// create makes a file, which is closed with the test.
func create(t *testing.T, path string, flags int, content string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|flags, 0o644)
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	_, err = f.WriteString(content)
	must(t, err)
	return f
}

func holds(t *testing.T, path, want string) {
	t.Helper()
	if b, err := os.ReadFile(path); string(b) != want || err != nil {
		t.Errorf("%s holds %.60q (%d bytes), %v; want %.60q", filepath.Base(path), b, len(b), err, want)
	}
}

// checkMappings: writes to a shared mapping are the file's, and those of others show in it; a private one is its owner's.
func checkMappings(t *testing.T, dir string) {
	path := filepath.Join(dir, "f")
	page := os.Getpagesize()
	f := create(t, path, 0, strings.Repeat("a", 2*page+10))
	shared, err := unix.Mmap(int(f.Fd()), 0, 2*page+10, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	must(t, err)
	private, err := unix.Mmap(int(f.Fd()), 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	must(t, err)
	copy(private, "private")
	copy(shared[page-3:], "across")
	b := make([]byte, 6)
	if _, err := f.ReadAt(b, int64(page-3)); string(b) != "across" || err != nil {
		t.Errorf("a read beside a mapping: %q, %v", b, err)
	}
	_, err = f.WriteAt([]byte("written"), int64(page)+100)
	must(t, err)
	if got := shared[page+100 : page+107]; string(got) != "written" {
		t.Errorf("a write in a mapping: %q", got)
	}
	copy(shared[2*page+4:], "last")
	must(t, unix.Msync(shared, unix.MS_SYNC))
	must(t, errors.Join(unix.Munmap(shared), unix.Munmap(private), f.Close()))
	want := []byte(strings.Repeat("a", 2*page+10))
	copy(want[page-3:], "across")
	copy(want[page+100:], "written")
	copy(want[2*page+4:], "last")
	holds(t, path, string(want))
}

// checkDirect reads and writes past the cache.
func checkDirect(t *testing.T, dir string) {
	path := filepath.Join(dir, "f")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_DIRECT, 0o644)
	if errors.Is(err, syscall.EINVAL) {
		return // the filesystem has none, as tmpfs hadn't
	}
	must(t, err)
	defer f.Close()
	b, err := unix.Mmap(-1, 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	must(t, err)
	defer func() { must(t, unix.Munmap(b)) }()
	copy(b, bytes.Repeat([]byte("direct! "), 1024))
	_, err = f.WriteAt(b, 4096)
	must(t, err)
	clear(b)
	if n, err := f.ReadAt(b, 8192); n != 4096 || err != io.EOF || !bytes.Equal(b[:4096], bytes.Repeat([]byte("direct! "), 512)) {
		t.Errorf("%d bytes, %v", n, err)
	}
	holds(t, path, string(make([]byte, 4096))+strings.Repeat("direct! ", 1024))
}

// checkLocks: of whole files, and of ranges by descriptors and by processes.
func checkLocks(t *testing.T, dir string) {
	path := filepath.Join(dir, "f")
	a, b := create(t, path, 0, "locked"), create(t, path, 0, "")
	must(t, unix.Flock(int(a.Fd()), unix.LOCK_EX))
	if err := unix.Flock(int(b.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != syscall.EWOULDBLOCK {
		t.Errorf("a second lock: %v", err)
	}
	must(t, unix.Flock(int(a.Fd()), unix.LOCK_UN))
	must(t, unix.Flock(int(b.Fd()), unix.LOCK_SH|unix.LOCK_NB))
	must(t, unix.Flock(int(a.Fd()), unix.LOCK_SH|unix.LOCK_NB))
	part := func(kind int16, start, n int64) *unix.Flock_t { return &unix.Flock_t{Type: kind, Start: start, Len: n} }
	const setOwn = 37 // F_OFD_SETLK
	must(t, unix.FcntlFlock(a.Fd(), setOwn, part(unix.F_WRLCK, 0, 3)))
	if err := unix.FcntlFlock(b.Fd(), setOwn, part(unix.F_RDLCK, 2, 1)); err != syscall.EAGAIN && err != syscall.EACCES {
		t.Errorf("a range that is locked: %v", err)
	}
	must(t, unix.FcntlFlock(b.Fd(), setOwn, part(unix.F_WRLCK, 3, 0)))
	if err := unix.FcntlFlock(b.Fd(), unix.F_SETLK, part(unix.F_WRLCK, 0, 1)); err != syscall.EAGAIN && err != syscall.EACCES {
		t.Errorf("a process' lock of a range that is locked: %v", err)
	}
	must(t, a.Close())
	must(t, unix.FcntlFlock(b.Fd(), unix.F_SETLK, part(unix.F_WRLCK, 0, 1)))
}

func checkXattrs(t *testing.T, dir string) {
	path := filepath.Join(dir, "f")
	create(t, path, 0, "")
	if err := unix.Setxattr(path, "user.one", []byte("1"), 0); errors.Is(err, syscall.EOPNOTSUPP) {
		return // as on tmpfs before Linux 6.6
	} else if err != nil {
		t.Fatal(err)
	}
	large := bytes.Repeat([]byte("x"), 3000)
	must(t, unix.Setxattr(path, "user.large", large, unix.XATTR_CREATE))
	if err := unix.Setxattr(path, "user.large", large, unix.XATTR_CREATE); err != syscall.EEXIST {
		t.Errorf("made twice: %v", err)
	}
	if err := unix.Setxattr(path, "user.none", nil, unix.XATTR_REPLACE); err != syscall.ENODATA {
		t.Errorf("replaced and not there: %v", err)
	}
	b := make([]byte, 4000)
	if n, err := unix.Getxattr(path, "user.large", nil); n != 3000 || err != nil {
		t.Errorf("its size: %d, %v", n, err)
	}
	if _, err := unix.Getxattr(path, "user.large", b[:10]); err != syscall.ERANGE {
		t.Errorf("too little room: %v", err)
	}
	if n, err := unix.Getxattr(path, "user.large", b); err != nil || !bytes.Equal(b[:n], large) {
		t.Errorf("%d bytes, %v", n, err)
	}
	must(t, unix.Removexattr(path, "user.one"))
	if n, err := unix.Listxattr(path, b); err != nil || string(b[:n]) != "user.large\x00" {
		t.Errorf("the list: %q, %v", b[:n], err)
	}
	if err := unix.Removexattr(path, "user.one"); err != syscall.ENODATA {
		t.Errorf("removed twice: %v", err)
	}
}

func checkLinks(t *testing.T, dir string) {
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	f := create(t, a, 0, "linked")
	must(t, f.Close())
	must(t, os.Link(a, b))
	var one, two unix.Stat_t
	must(t, errors.Join(unix.Stat(a, &one), unix.Stat(b, &two)))
	if one.Ino != two.Ino || one.Nlink != 2 || two.Nlink != 2 {
		t.Errorf("inodes %d and %d, links %d and %d", one.Ino, two.Ino, one.Nlink, two.Nlink)
	}
	must(t, os.WriteFile(b, []byte("by the other name"), 0o644))
	holds(t, a, "by the other name")
	must(t, os.Remove(a))
	must(t, unix.Stat(b, &two))
	if two.Nlink != 1 {
		t.Errorf("links: %d", two.Nlink)
	}
	holds(t, b, "by the other name")
	must(t, os.Symlink("b", a))
	holds(t, a, "by the other name")
}

// checkOpenFiles: what is open stays when its name is taken by another file, or removed.
func checkOpenFiles(t *testing.T, dir string) {
	path, other := filepath.Join(dir, "f"), filepath.Join(dir, "g")
	f := create(t, path, 0, "old")
	must(t, os.WriteFile(other, []byte("new"), 0o644))
	must(t, os.Rename(other, path))
	holds(t, path, "new")
	_, err := f.WriteAt([]byte("OLD and more"), 0)
	must(t, err)
	holds(t, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), "OLD and more")
	var st unix.Stat_t
	must(t, unix.Fstat(int(f.Fd()), &st))
	if st.Nlink != 0 || st.Size != 12 {
		t.Errorf("%d links, %d bytes", st.Nlink, st.Size)
	}
	g, err := os.Open(path)
	must(t, err)
	defer g.Close()
	must(t, os.Remove(path))
	if b, err := io.ReadAll(g); string(b) != "new" || err != nil {
		t.Errorf("removed while it was open: %q, %v", b, err)
	}
	must(t, f.Truncate(3))
	must(t, f.Sync())
	holds(t, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), "OLD")
}

// checkHoles: what was never written is zeros, and sparse files can be asked for their data.
func checkHoles(t *testing.T, dir string) {
	path := filepath.Join(dir, "f")
	f := create(t, path, 0, "")
	const size = 1 << 20
	_, err := f.WriteAt([]byte("end"), size-3)
	must(t, err)
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil || len(bytes.Trim(b[:size-3], "\x00")) > 0 || string(b[size-3:]) != "end" {
		t.Errorf("a hole: %v", err)
	}
	if at, err := f.Seek(0, unix.SEEK_DATA); err != nil || at > size-3 {
		t.Errorf("data begins at %d, %v", at, err)
	}
	if at, err := f.Seek(size-3, unix.SEEK_HOLE); at != size || err != nil {
		t.Errorf("the last hole begins at %d, %v", at, err)
	}
	if _, err := f.Seek(size, unix.SEEK_DATA); !errors.Is(err, syscall.ENXIO) {
		t.Errorf("data behind the end: %v", err)
	}
	must(t, unix.Fallocate(int(f.Fd()), 0, size, 4096))
	if info, err := f.Stat(); err != nil || info.Size() != size+4096 {
		t.Errorf("allocated: %v, %v", info, err)
	}
	must(t, unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, size, 1<<20))
	if info, err := f.Stat(); err != nil || info.Size() != size+4096 {
		t.Errorf("allocated behind the end: %v, %v", info, err)
	}
	switch err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE|unix.FALLOC_FL_PUNCH_HOLE, size-4096, 4096); {
	case err == nil:
		if _, err := f.ReadAt(b[:3], size-3); string(b[:3]) != "\x00\x00\x00" || err != nil {
			t.Errorf("a hole that was punched: %q, %v", b[:3], err)
		}
	case err != syscall.EOPNOTSUPP:
		t.Errorf("punching a hole: %v", err)
	}
	must(t, f.Truncate(10))
	must(t, f.Truncate(20))
	holds(t, path, string(make([]byte, 20)))
}

func checkNames(t *testing.T, dir string) {
	for _, name := range []string{strings.Repeat("n", 255), strings.Repeat("ü", 127), " spaces and\nlines\t", "%41", "-", "...", "\xff\xfe"} {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(name), 0o644))
		holds(t, path, name)
	}
	if list, err := os.ReadDir(dir); len(list) != 7 || err != nil {
		t.Errorf("%d names, %v", len(list), err)
	}
	if err := os.WriteFile(filepath.Join(dir, strings.Repeat("n", 256)), nil, 0o644); !errors.Is(err, syscall.ENAMETOOLONG) {
		t.Errorf("a name of 256 bytes: %v", err)
	}
}

func checkTimes(t *testing.T, dir string) {
	path := filepath.Join(dir, "f")
	create(t, path, 0, "")
	var st unix.Stat_t
	for _, when := range []time.Time{time.Unix(1, 123456789), time.Unix(-86400, 500), time.Date(2037, 1, 1, 0, 0, 0, 1, time.UTC)} {
		ts, err := unix.TimeToTimespec(when)
		must(t, err)
		must(t, unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{ts, ts}, 0))
		if must(t, unix.Stat(path, &st)); st.Mtim != ts || st.Atim != ts {
			t.Errorf("%v: %v and %v", ts, st.Atim, st.Mtim)
		}
	}
	before := st.Atim
	must(t, unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Nsec: unix.UTIME_NOW}}, 0))
	if must(t, unix.Stat(path, &st)); st.Atim != before || st.Mtim.Sec < 1e9 || st.Mtim.Sec > 4e9 {
		t.Errorf("%v and %v", st.Atim, st.Mtim)
	}
	must(t, os.WriteFile(filepath.Join(dir, "g"), nil, 0o644))
	var d1, d2 unix.Stat_t
	must(t, unix.Stat(dir, &d1))
	time.Sleep(20 * time.Millisecond)
	must(t, os.Remove(filepath.Join(dir, "g")))
	if must(t, unix.Stat(dir, &d2)); d1.Mtim == d2.Mtim {
		t.Errorf("a directory's time stays at %v", d1.Mtim)
	}
}

func checkStatFS(t *testing.T, dir string) {
	var st unix.Statfs_t
	must(t, unix.Statfs(dir, &st))
	if st.Namelen != 255 || st.Bsize < 512 || st.Bfree > st.Blocks || st.Bavail > st.Bfree || st.Ffree > st.Files {
		t.Errorf("%+v", st)
	}
}

// checkInotify: the kernel tells of what it does itself.
func checkInotify(t *testing.T, dir string) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	must(t, err)
	defer unix.Close(fd)
	_, err = unix.InotifyAddWatch(fd, dir, unix.IN_CREATE|unix.IN_CLOSE_WRITE|unix.IN_MOVED_TO|unix.IN_DELETE)
	must(t, err)
	path := filepath.Join(dir, "f")
	must(t, errors.Join(os.WriteFile(path, []byte("x"), 0o644), os.Rename(path, path+"2"), os.Remove(path+"2")))
	var got uint32
	b := make([]byte, 4096)
	n, err := unix.Read(fd, b)
	must(t, err)
	for n >= unix.SizeofInotifyEvent {
		got |= uint32(b[4]) | uint32(b[5])<<8
		used := unix.SizeofInotifyEvent + int(b[12])
		b, n = b[used:], n-used
	}
	if want := uint32(unix.IN_CREATE | unix.IN_CLOSE_WRITE | unix.IN_MOVED_TO | unix.IN_DELETE); got&want != want {
		t.Errorf("events %#x, want %#x", got, want)
	}
}

func checkAppend(t *testing.T, dir string) {
	path := filepath.Join(dir, "f")
	a, b := create(t, path, os.O_APPEND, "a1"), create(t, path, os.O_APPEND, "b1")
	for _, f := range []*os.File{a, b, a} {
		_, err := f.WriteString("+")
		must(t, err)
	}
	holds(t, path, "a1b1+++")
}

func checkCopy(t *testing.T, dir string) {
	path := filepath.Join(dir, "from")
	content := strings.Repeat("copied ", 50_000)
	from, to := create(t, path, 0, content), create(t, filepath.Join(dir, "to"), 0, "")
	var off int64
	for off < int64(len(content)) {
		n, err := unix.CopyFileRange(int(from.Fd()), &off, int(to.Fd()), nil, len(content), 0)
		if must(t, err); n == 0 {
			break
		}
	}
	holds(t, filepath.Join(dir, "to"), content)
}

func checkSocket(t *testing.T, dir string) {
	if len(dir) > 90 {
		must(t, os.Chdir(dir)) // the path of a socket is short
		dir = "."
	}
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	must(t, err)
	c, err := net.Dial("unix", filepath.Join(dir, "s"))
	must(t, err)
	must(t, errors.Join(c.Close(), l.Close()))
}

func checkRenameFlags(t *testing.T, dir string) {
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	must(t, errors.Join(os.WriteFile(a, []byte("a"), 0o644), os.WriteFile(b, []byte("b"), 0o644)))
	rename := func(flags uint) error { return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, flags) }
	if err := rename(unix.RENAME_NOREPLACE); err != syscall.EEXIST {
		t.Errorf("without replacing: %v", err)
	}
	must(t, rename(unix.RENAME_EXCHANGE))
	holds(t, a, "b")
	holds(t, b, "a")
	must(t, os.Mkdir(filepath.Join(dir, "d"), 0o755))
	if err := os.Rename(filepath.Join(dir, "d"), a); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a directory over a file: %v", err)
	}
}

// checkLarge lists a large directory while it changes: what was there all the time is listed once.
func checkLarge(t *testing.T, dir string, entries int) {
	name := func(kind string, i int) string { return filepath.Join(dir, fmt.Sprintf("%s-%06d", kind, i)) }
	for i := range entries {
		fd, err := unix.Open(name("stays", i), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
		must(t, err)
		must(t, unix.Close(fd))
	}
	f, err := os.Open(dir)
	must(t, err)
	defer f.Close()
	seen := map[string]int{}
	for i := 0; ; i++ {
		names, err := f.Readdirnames(100)
		for _, n := range names {
			seen[n]++
		}
		if err == io.EOF {
			break
		}
		must(t, err)
		must(t, os.WriteFile(name("comes", i), nil, 0o644))
		if i > 0 {
			must(t, os.Remove(name("comes", i-1)))
		}
	}
	for i := range entries {
		if n := filepath.Base(name("stays", i)); seen[n] != 1 {
			t.Fatalf("%s is listed %d times", n, seen[n])
		}
	}
	for n, times := range seen {
		if times != 1 {
			t.Errorf("%s is listed %d times", n, times)
		}
	}
}
