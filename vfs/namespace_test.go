package vfs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"agentrun.dev/errs"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
)

var (
	ctx  = context.Background()
	root = vfs.Cred{}
)

func memory() vfs.FS { return memfs.New(memfs.Options{}) }

type env struct {
	*testing.T
	*vfs.Namespace
}

func newEnv(t *testing.T) *env {
	return &env{t, vfs.NewNamespace(vfs.Mount{FS: memory(), Source: "root", Type: "tmpfs"})}
}

func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

func (e *env) want(what string, err error, no syscall.Errno) {
	e.Helper()
	if !errors.Is(err, no) {
		e.Errorf("%s: %v, want %v", what, err, error(no))
	}
}

func (e *env) mount(m vfs.Mount) {
	e.Helper()
	e.must(e.Mount(ctx, m))
}

func (e *env) write(path, text string) {
	e.Helper()
	f, err := e.Open(ctx, root, "/", path, vfs.O_WRONLY|vfs.O_CREAT|vfs.O_TRUNC, 0o644)
	e.must(err)
	_, err = f.Write([]byte(text))
	e.must(err)
	e.must(f.Close())
}

func (e *env) read(path string) string {
	e.Helper()
	f, err := e.Open(ctx, root, "/", path, vfs.O_RDONLY, 0)
	e.must(err)
	defer f.Close()
	b, err := io.ReadAll(f)
	e.must(err)
	return string(b)
}

func (e *env) names(path string) string {
	e.Helper()
	list, err := e.ReadDir(ctx, root, "/", path)
	e.must(err)
	var names []string
	for _, x := range list {
		names = append(names, x.Name)
	}
	return strings.Join(names, " ")
}

// Mount points hide what is beneath, appear in listings, have devices of their own, and can't be moved or removed.
func TestMounts(t *testing.T) {
	e := newEnv(t)
	e.must(e.Mkdir(ctx, root, "/", "vol", 0o755))
	e.write("vol/hidden", "beneath")
	e.must(e.Mkdir(ctx, root, "/", "real", 0o755))
	e.must(e.Symlink(ctx, root, "/", "real", "link"))
	e.mount(vfs.Mount{Path: "/vol", FS: memory()})
	e.mount(vfs.Mount{Path: "/vol/data", FS: memory(), ReadOnly: true}) // neither exists in the mount above
	e.mount(vfs.Mount{Path: "/mnt/a/b", FS: memory()})
	e.mount(vfs.Mount{Path: "/link/sub", FS: memory()}) // through the link
	if got := e.names("/") + "|" + e.names("/vol") + "|" + e.names("/mnt") + "|" + e.names("/mnt/a") + "|" + e.names("/real"); got != "link real vol mnt|data|a|b|sub" {
		t.Errorf("listings: %q", got)
	}
	var paths []string
	devs := map[uint64]bool{}
	for _, m := range e.Mounts() {
		paths = append(paths, m.Path)
		a, err := e.Stat(ctx, root, "/", m.Path)
		e.must(err)
		devs[a.Dev] = true
	}
	if got := strings.Join(paths, " "); got != "/ /mnt/a/b /real/sub /vol /vol/data" || len(devs) != 5 {
		t.Errorf("mounted are %q, with %d devices", got, len(devs))
	}
	e.write("/vol/f", "above")
	e.want("the hidden file", func() error { _, err := e.Stat(ctx, root, "/vol", "hidden"); return err }(), syscall.ENOENT)
	for path, want := range map[string]string{"/vol/data/..": "/vol", "/link/sub/..": "/real", "/mnt/a/b/../../..": "/", "/vol/data/../../../..": "/", "/link/sub": "/real/sub"} {
		if got, err := e.Realpath(ctx, root, "/", path); got != want || err != nil {
			t.Errorf("%s is %s, %v; want %s", path, got, err, want)
		}
	}
	e.want("rename across", e.Rename(ctx, root, "/", "/vol/f", "/f", 0), syscall.EXDEV)
	e.want("link across", e.Link(ctx, root, "/", "/vol/f", "/f"), syscall.EXDEV)
	e.want("rename a mount point", e.Rename(ctx, root, "/", "/vol", "/w", 0), syscall.EBUSY)
	e.want("rename a directory on the way to one", e.Rename(ctx, root, "/", "/real", "/r", 0), syscall.EBUSY)
	e.want("rename onto a mount point", e.Rename(ctx, root, "/", "/link", "/real", 0), syscall.EISDIR)
	e.want("remove a mount point", e.Rmdir(ctx, root, "/", "/vol"), syscall.EBUSY)
	e.want("remove a directory on the way to one", e.Rmdir(ctx, root, "/", "/mnt/a"), syscall.EBUSY)
	e.want("make something in a directory that isn't there", e.Mkdir(ctx, root, "/", "/mnt/x", 0o755), syscall.EROFS)
	e.want("make what is there", e.Mkdir(ctx, root, "/", "/mnt/a", 0o755), syscall.EEXIST)
	for what, err := range map[string]error{
		"make":  e.Mkdir(ctx, root, "/", "/vol/data/x", 0o755),
		"chmod": e.SetAttr(ctx, root, "/", "/vol/data", vfs.SetAttr{MtimeNow: true}, true),
		"write": e.Access(ctx, root, "/", "/vol/data", vfs.Write),
	} {
		e.want(what+" on a read-only mount", err, syscall.EROFS)
	}
	e.want("mount twice", e.Mount(ctx, vfs.Mount{Path: "/vol/../vol", FS: memory()}), syscall.EBUSY)
	e.want("mount on the root", e.Mount(ctx, vfs.Mount{Path: "/", FS: memory()}), syscall.EBUSY)
	e.want("mount on a relative path", e.Mount(ctx, vfs.Mount{Path: "x", FS: memory()}), syscall.EINVAL)
	e.want("unmount what holds a mount", e.Unmount("/vol"), syscall.EBUSY)
	e.want("unmount what isn't mounted", e.Unmount("/mnt/a"), syscall.EINVAL)
	e.want("unmount the root", e.Unmount("/"), syscall.EBUSY)
	e.must(e.Unmount("/vol/data"))
	e.must(e.Unmount("/vol/"))
	if got := e.read("/vol/hidden") + " " + e.names("/vol"); got != "beneath hidden" {
		t.Errorf("unmounted, there is %q", got)
	}
	e.must(e.Unmount("/mnt/a/b"))
	if got := e.names("/"); got != "link real vol" {
		t.Errorf("unmounted, the root holds %q", got)
	}
}

// Mounting while others look: they see one state or the other.
func TestMountWhileWalking(t *testing.T) {
	e := newEnv(t)
	e.must(e.Mkdir(ctx, root, "/", "m", 0o755))
	e.write("/m/f", "beneath")
	over := memory()
	ns := vfs.NewNamespace(vfs.Mount{FS: over})
	(&env{t, ns}).write("/f", "over")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got := e.read("/m/f"); got != "beneath" && got != "over" {
					t.Errorf("read %q", got)
				}
			}
		})
	}
	for range 200 {
		e.must(e.Mount(ctx, vfs.Mount{Path: "/m", FS: over}))
		e.must(e.Unmount("/m"))
	}
	close(stop)
	wg.Wait()
}

// A clone keeps mount points and device numbers, with other filesystems in them.
func TestCloneNamespace(t *testing.T) {
	e := newEnv(t)
	e.mount(vfs.Mount{Path: "/a/b", FS: memory()})
	e.write("/a/b/f", "parent")
	c, err := e.Clone(func(m vfs.Mount) (vfs.Mount, error) {
		m.FS = m.FS.(*memfs.FS).Clone()
		return m, nil
	})
	e.must(err)
	child := &env{t, c}
	child.write("/a/b/f", "child")
	if got := e.read("/a/b/f") + " " + child.read("/a/b/f"); got != "parent child" {
		t.Errorf("they read %q", got)
	}
	a, _ := e.Stat(ctx, root, "/", "/a/b/f")
	b, _ := c.Stat(ctx, root, "/", "/a/b/f")
	if a.Dev != b.Dev || a.Ino != b.Ino {
		t.Errorf("%d:%d became %d:%d", a.Dev, a.Ino, b.Dev, b.Ino)
	}
	child.mount(vfs.Mount{Path: "/c", FS: memory()})
	e.want("what the child mounted", func() error { _, err := e.Stat(ctx, root, "/", "/c"); return err }(), syscall.ENOENT)
	broken := errors.New("no fork")
	if _, err := e.Clone(func(vfs.Mount) (vfs.Mount, error) { return vfs.Mount{}, broken }); !errors.Is(err, broken) {
		t.Errorf("a failed clone: %v", err)
	}
}

// Special files go to the mount's function.
func TestSpecial(t *testing.T) {
	var asked vfs.Attr
	ns := vfs.NewNamespace(vfs.Mount{FS: memory(), Special: func(_ context.Context, _ vfs.Cred, a vfs.Attr, _ int) (vfs.File, error) {
		asked = a
		return nil, syscall.EIO
	}})
	e := &env{t, ns}
	e.must(ns.Mknod(ctx, root, "/", "null", vfs.ModeChar|0o666, 0x103))
	e.want("mknod by a user", ns.Mknod(ctx, vfs.Cred{UID: 1}, "/", "null2", vfs.ModeChar|0o666, 0x103), syscall.EACCES)
	_, err := ns.Open(ctx, root, "/", "null", vfs.O_RDWR, 0)
	e.want("open", err, syscall.EIO)
	if asked.Rdev != 0x103 || asked.Mode != vfs.ModeChar|0o666 {
		t.Errorf("asked for %+v", asked)
	}
	e.mount(vfs.Mount{Path: "/plain", FS: memory()})
	e.must(ns.Mknod(ctx, root, "/", "/plain/fifo", vfs.ModeFIFO|0o666, 0))
	_, err = ns.Open(ctx, root, "/", "/plain/fifo", vfs.O_RDONLY, 0)
	e.want("open without a function", err, syscall.ENXIO)
}

// A cancelled caller gets EINTR.
func TestCancelled(t *testing.T) {
	e := newEnv(t)
	c, cancel := context.WithCancel(ctx)
	cancel()
	_, err := e.Stat(c, root, "/", "/")
	e.want("stat", err, syscall.EINTR)
}

func TestLongLinks(t *testing.T) {
	e := newEnv(t)
	e.write("/end", "text")
	for i := range 45 {
		target := "/end"
		if i > 0 {
			target = fmt.Sprint("/l", i-1)
		}
		e.must(e.Symlink(ctx, root, "/", target, fmt.Sprint("l", i)))
	}
	if got := e.read("/l39"); got != "text" {
		t.Errorf("through 40 links it reads %q", got)
	}
	_, err := e.Stat(ctx, root, "/", "/l40")
	e.want("through 41 links", err, syscall.ELOOP)
	_, err = e.Stat(ctx, root, "/", "/"+strings.Repeat("./", 2046)+"en") // 4,095 bytes
	e.want("the longest path", err, syscall.ENOENT)
	_, err = e.Stat(ctx, root, "/", "/"+strings.Repeat("./", 2046)+"end")
	e.want("a longer path", err, syscall.ENAMETOOLONG)
	_, err = e.Stat(ctx, root, "/", "a\x00b")
	e.want("a zero byte", err, syscall.EINVAL)
}

func TestErrno(t *testing.T) {
	for _, c := range []struct {
		err  error
		want syscall.Errno
		word string
	}{
		{nil, 0, "Success"},
		{syscall.ENOENT, syscall.ENOENT, "No such file or directory"},
		{fmt.Errorf("open: %w", syscall.EACCES), syscall.EACCES, "Permission denied"},
		{&fs.PathError{Err: syscall.ELOOP}, syscall.ELOOP, "Too many levels of symbolic links"},
		{os.ErrNotExist, syscall.ENOENT, "No such file or directory"},
		{context.Canceled, syscall.EINTR, "Interrupted system call"},
		{errs.Msg(errs.Corrupt, "read", "f", "checksum"), syscall.EIO, "Input/output error"},
		{errs.Msg(errs.NoSpace, "write", "f", "full"), syscall.ENOSPC, "No space left on device"},
		{errors.New("odd"), syscall.EIO, "Input/output error"},
		{syscall.Errno(4000), 4000, "Unknown error 4000"},
		{syscall.Errno(133), 133, "Memory page has hardware error"},
	} {
		if no, word := vfs.Errno(c.err), vfs.Strerror(c.err); no != c.want || word != c.word {
			t.Errorf("%v: %d, %q; want %d, %q", c.err, no, word, c.want, c.word)
		}
	}
	// Go's own words cover the same numbers, but for the newest.
	for no := syscall.Errno(1); no < 133; no++ {
		word := vfs.Strerror(no)
		if strings.HasPrefix(word, "Unknown") != strings.HasPrefix(no.Error(), "errno ") {
			t.Errorf("%d is %q, and %q to Go", no, word, no.Error())
		}
	}
}
