package hostfs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"agentrun.dev/vfs"
	"agentrun.dev/vfs/hostfs"
	"agentrun.dev/vfs/vfstest"
)

var ctx = context.Background()

func open(t testing.TB, dir string, o hostfs.Options) *hostfs.FS {
	t.Helper()
	fs, err := hostfs.New(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fs.Close() })
	return fs
}

var config = vfstest.Config{
	NoOwners: true, NoDevices: true, NoXattrs: true, NoSetID: true,
	New: func(t testing.TB) vfs.FS {
		dir, err := os.MkdirTemp("", "hostfs-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		return open(t, dir, hostfs.Options{})
	},
}

func TestConformance(t *testing.T) { vfstest.Run(t, config) }

// TestReal runs the suite on a folder whose owners count, where this process may set them.
func TestReal(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("CAN'T RUN HERE: giving files away needs root; it runs where the tests are root's, as in CI")
	}
	c := config
	c.NoOwners, c.NoSetID = false, false
	c.New = func(t testing.TB) vfs.FS {
		dir, err := os.MkdirTemp("", "hostfs-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		return open(t, dir, hostfs.Options{Real: true})
	}
	vfstest.Run(t, c)
}

// Links that leave the folder lead nowhere, or to what the sandbox itself has there.
func TestBeneath(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, target := range map[string]string{
		"absolute": filepath.Join(outside, "secret"),
		"dir":      outside,
		"up":       "../../../../../../.." + outside + "/secret",
		"viaproc":  "/proc/self/root" + outside + "/secret",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	ns := vfs.NewNamespace(vfs.Mount{FS: open(t, dir, hostfs.Options{UID: 1000, GID: 1000})})
	c := vfs.Cred{UID: 1000, GID: 1000}
	for _, p := range []string{"absolute", "dir/secret", "up", "viaproc", "../../../../.." + outside + "/secret", outside + "/secret"} {
		f, err := ns.Open(ctx, c, "/", p, vfs.O_RDONLY, 0)
		if err == nil {
			b, _ := io.ReadAll(f)
			t.Errorf("%s can be read: %q", p, b)
			continue
		}
		if !errors.Is(err, syscall.ENOENT) || strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", p, err)
		}
	}
	// Writing through the link makes nothing outside either.
	if f, err := ns.Open(ctx, c, "/", "dir/new", vfs.O_CREAT|vfs.O_WRONLY, 0o644); err == nil {
		f.Close()
		t.Error("a file was made through a link that leaves the folder")
	}
	if a, err := ns.Lstat(ctx, c, "/", "up"); err != nil || a.UID != 1000 || !a.Mode.IsSymlink() {
		t.Errorf("the link itself: %+v, %v", a, err)
	}
}

// A folder that turns into a link to the outside at any moment never lets anybody out.
func TestRace(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "f"), []byte("outside"), 0o644); err != nil {
		t.Fatal(err)
	}
	in, aside, link := filepath.Join(dir, "d"), filepath.Join(dir, "aside"), filepath.Join(dir, "link")
	if err := os.Mkdir(in, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(in, "f"), []byte("inside"), 0o644); err != nil {
		t.Fatal(err)
	}
	ns := vfs.NewNamespace(vfs.Mount{FS: open(t, dir, hostfs.Options{})})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Symlink(outside, link)
			_ = os.Rename(in, aside)
			_ = os.Rename(link, in)
			_ = os.Remove(in)
			_ = os.Rename(aside, in)
		}
	})
	read := 0
	for range 5000 {
		f, err := ns.Open(ctx, vfs.Cred{}, "/", "d/f", vfs.O_RDONLY, 0)
		if err != nil {
			continue
		}
		b, err := io.ReadAll(f)
		f.Close()
		if err == nil && string(b) != "inside" {
			t.Fatalf("read %q", b)
		}
		read++
	}
	close(stop)
	wg.Wait()
	if read == 0 {
		t.Error("nothing was ever read: the race was never run")
	}
}

func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	fs := open(t, dir, hostfs.Options{ReadOnly: true})
	ns := vfs.NewNamespace(vfs.Mount{FS: fs})
	mode := vfs.Mode(0o600)
	_, create := ns.Open(ctx, vfs.Cred{}, "/", "new", vfs.O_CREAT|vfs.O_WRONLY, 0o644)
	_, write := ns.Open(ctx, vfs.Cred{}, "/", "f", vfs.O_WRONLY, 0)
	_, trunc := ns.Open(ctx, vfs.Cred{}, "/", "f", vfs.O_RDONLY|vfs.O_TRUNC, 0)
	for name, err := range map[string]error{
		"create": create, "write": write, "truncate": trunc,
		"mkdir":   ns.Mkdir(ctx, vfs.Cred{}, "/", "d", 0o755),
		"unlink":  ns.Unlink(ctx, vfs.Cred{}, "/", "f"),
		"rename":  ns.Rename(ctx, vfs.Cred{}, "/", "f", "g", 0),
		"link":    ns.Link(ctx, vfs.Cred{}, "/", "f", "g"),
		"symlink": ns.Symlink(ctx, vfs.Cred{}, "/", "f", "g"),
		"chmod":   ns.SetAttr(ctx, vfs.Cred{}, "/", "f", vfs.SetAttr{Mode: &mode}, true),
		"xattr":   ns.SetXattr(ctx, vfs.Cred{}, "/", "f", "user.a", nil, 0, true),
		"mknod":   ns.Mknod(ctx, vfs.Cred{}, "/", "p", vfs.ModeFIFO, 0),
	} {
		if !errors.Is(err, syscall.EROFS) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Devices and sockets show but can't be used or made, FIFOs are left to who mounts the folder; set-id bits stay out of the host; owners can't be changed.
func TestSpecial(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o666); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ns := vfs.NewNamespace(vfs.Mount{FS: open(t, dir, hostfs.Options{UID: 1000, GID: 1000}), Special: func(_ context.Context, _ vfs.Cred, a vfs.Attr, _ int) (vfs.File, error) {
		if a.Mode&vfs.ModeType != vfs.ModeFIFO {
			return nil, errors.New("asked for a special file of the host")
		}
		return nil, syscall.ENOTCONN
	}})
	c := vfs.Cred{UID: 1000, GID: 1000}
	list, err := ns.ReadDir(ctx, c, "/", "/")
	if err != nil || len(list) != 2 || list[0].Mode != vfs.ModeFIFO || list[1].Mode != vfs.ModeSocket {
		t.Errorf("the folder lists as %v, %v", list, err)
	}
	for _, flags := range []int{vfs.O_RDONLY, vfs.O_RDWR, vfs.O_WRONLY | vfs.O_NONBLOCK} {
		if _, err := ns.Open(ctx, c, "/", "fifo", flags, 0); !errors.Is(err, syscall.ENOTCONN) {
			t.Errorf("opening the FIFO with %#x: %v", flags, err)
		}
		if _, err := ns.Open(ctx, c, "/", "socket", flags, 0); !errors.Is(err, syscall.EACCES) {
			t.Errorf("opening the socket with %#x: %v", flags, err)
		}
	}
	if err := ns.Mknod(ctx, c, "/", "new", vfs.ModeFIFO|0o640, 0); err != nil {
		t.Errorf("mkfifo: %v", err)
	} else if st, err := os.Lstat(filepath.Join(dir, "new")); err != nil || st.Mode() != os.ModeNamedPipe|0o640 {
		t.Errorf("the new FIFO is %v, %v", st, err)
	}
	if err := ns.Mknod(ctx, vfs.Cred{}, "/", "dev", vfs.ModeChar|0o600, 0x103); !errors.Is(err, syscall.EPERM) {
		t.Errorf("mknod: %v", err)
	}
	f, err := ns.Open(ctx, c, "/", "f", vfs.O_CREAT|vfs.O_RDWR, 0o4444)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("x")); err != nil {
		t.Errorf("writing to a new file that its mode makes read-only: %v", err)
	}
	f.Close()
	mode := vfs.Mode(0o6755)
	if err := ns.SetAttr(ctx, c, "/", "f", vfs.SetAttr{Mode: &mode}, true); err != nil {
		t.Error(err)
	}
	st, err := os.Stat(filepath.Join(dir, "f"))
	if err != nil || st.Mode() != 0o755 {
		t.Errorf("on the host the file is %v, %v", st.Mode(), err)
	}
	other := uint32(0)
	if err := ns.SetAttr(ctx, vfs.Cred{}, "/", "f", vfs.SetAttr{UID: &other}, true); !errors.Is(err, syscall.EPERM) {
		t.Errorf("chown: %v", err)
	}
}

// Inodes that nobody uses take no descriptors, however many files were visited.
func TestDescriptors(t *testing.T) {
	dir := t.TempDir()
	fs := open(t, dir, hostfs.Options{Nodes: 16})
	ns := vfs.NewNamespace(vfs.Mount{FS: fs})
	for i := range 100 {
		name := "f" + strings.Repeat("x", i)
		f, err := ns.Open(ctx, vfs.Cred{}, "/", name, vfs.O_CREAT|vfs.O_RDWR, 0o644)
		if err != nil {
			t.Fatalf("file %d: %v", i, err)
		}
		f.Close()
	}
	if list, err := ns.ReadDir(ctx, vfs.Cred{}, "", "/"); err != nil || len(list) != 100 {
		t.Errorf("%d files, %v", len(list), err)
	}
}

// TestFlush: what is synced is the folder's filesystem, by the folder's own descriptor.
func TestFlush(t *testing.T) {
	fs := open(t, t.TempDir(), hostfs.Options{})
	for _, durable := range []bool{false, true} {
		if err := fs.Flush(t.Context(), durable); err != nil {
			t.Errorf("durable %v: %v", durable, err)
		}
	}
	if err := fs.Close(); err != nil {
		t.Fatal(err)
	}
	if err := fs.Flush(t.Context(), false); err != nil {
		t.Errorf("nothing to do: %v", err)
	}
	if err := fs.Flush(t.Context(), true); err == nil {
		t.Error("a folder that nobody has open is synced")
	}
}

// TestParked: a kernel may know more inodes than there are descriptors; they are what they were, wherever they were moved, and those that
// were replaced meanwhile are stale.
func TestParked(t *testing.T) {
	dir := t.TempDir()
	fs := open(t, dir, hostfs.Options{Descriptors: 4})
	d, err := fs.Mkdir(ctx, fs.Root(), "d", 0o755, vfs.Cred{})
	if err != nil {
		t.Fatal(err)
	}
	var inos []vfs.Ino
	for i := range 100 {
		if err := os.WriteFile(filepath.Join(dir, "d", fmt.Sprint(i)), []byte(fmt.Sprint(i)), 0o644); err != nil {
			t.Fatal(err)
		}
		a, err := fs.Lookup(ctx, d.Ino, fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		inos = append(inos, a.Ino)
	}
	if n := descriptors(t, dir); n > 8 {
		t.Errorf("%d descriptors", n)
	}
	kept, err := fs.Open(ctx, inos[7], vfs.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(fs.Rename(ctx, d.Ino, "5", fs.Root(), "moved", 0), fs.Rename(ctx, fs.Root(), "d", fs.Root(), "e", 0), fs.Unlink(ctx, d.Ino, "7")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "new"), []byte("new"), 0o644), os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "e", "6"))); err != nil {
		t.Fatal(err)
	}
	for i, ino := range inos {
		h, err := fs.Open(ctx, ino, vfs.O_RDONLY)
		if i == 6 {
			if err != syscall.ESTALE {
				t.Errorf("what was replaced: %v", err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%d: %v", i, err)
			continue
		}
		b := make([]byte, 10)
		if n, _ := h.ReadAt(b, 0); string(b[:n]) != fmt.Sprint(i) {
			t.Errorf("%d: %q", i, b[:n])
		}
		h.Close()
	}
	if a, err := kept.Attr(); err != nil || a.Nlink != 0 {
		t.Errorf("removed and open: %+v, %v", a, err)
	}
	kept.Close()
	for _, ino := range append(inos, d.Ino) {
		fs.Forget(ino, 1)
	}
	if n := descriptors(t, dir); n > 1 {
		t.Errorf("%d descriptors when all is forgotten", n)
	}
}

// descriptors counts those of this process below a directory.
func descriptors(t *testing.T, dir string) (n int) {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if to, _ := os.Readlink("/proc/self/fd/" + e.Name()); strings.HasPrefix(to, dir) {
			n++
		}
	}
	return n
}

// TestFiles: no more files are open than there may be.
func TestFiles(t *testing.T) {
	fs := open(t, t.TempDir(), hostfs.Options{Files: 2})
	a, err := fs.Create(ctx, fs.Root(), "f", vfs.ModeRegular|0o644, vfs.Cred{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []error{nil, nil, syscall.ENFILE} {
		h, err := fs.Open(ctx, a.Ino, vfs.O_RDWR)
		if err != want && (want == nil || !errors.Is(err, want)) {
			t.Errorf("file %d: %v", i, err)
		}
		if err == nil {
			defer h.Close()
		}
	}
}
