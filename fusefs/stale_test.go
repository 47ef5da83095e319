package fusefs_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"agentrun.dev/fusefs"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
)

// door is another way into a mounted filesystem.
type door struct {
	t  testing.TB
	ns *vfs.Namespace
}

func newDoor(t testing.TB, f vfs.FS) door { return door{t, vfs.NewNamespace(vfs.Mount{FS: f})} }

func (d door) write(path, text string) {
	f, err := d.ns.Open(d.t.Context(), vfs.Cred{}, "", path, vfs.O_WRONLY|vfs.O_CREAT|vfs.O_TRUNC, 0o644)
	if err == nil {
		_, err = f.Write([]byte(text))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		d.t.Errorf("write %s: %v", path, err)
	}
}

func (d door) replace(path, text string) {
	d.write(path+".new", text)
	if err := d.ns.Rename(d.t.Context(), vfs.Cred{}, "", path+".new", path, 0); err != nil {
		d.t.Error(err)
	}
}

// stores are the filesystems that the tests are about.
func stores(t *testing.T, run func(t *testing.T, f vfs.FS)) {
	t.Run("memory", func(t *testing.T) { run(t, memfs.New(memfs.Options{})) })
	t.Run("bucket", func(t *testing.T) { _, f := newBucketFS(t); run(t, f) })
}

// mountTTL is mount with names that are believed.
func mountTTL(t *testing.T, f vfs.FS) string {
	dir := t.TempDir()
	m, err := fusefs.Mount(dir, fusefs.MountOptions{Options: fusefs.Options{FS: f}, Source: "test", AllowOther: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Unmount(); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestReplacing: a file that is replaced by renames all the time is never missing for those who open it or look at it, and whole.
func TestReplacing(t *testing.T) {
	mountable(t)
	stores(t, func(t *testing.T, f vfs.FS) {
		dir := mountTTL(t, f)
		path := filepath.Join(dir, "f")
		text := func(i int) string { return strings.Repeat(fmt.Sprint(i%10), 100+i%7*1000) }
		if err := os.WriteFile(path, []byte(text(0)), 0o644); err != nil {
			t.Fatal(err)
		}
		var writers, readers sync.WaitGroup
		var done atomic.Bool
		for w := range 3 {
			writers.Go(func() {
				own := fmt.Sprint(path, w)
				for i := range 300 {
					if err := errors.Join(os.WriteFile(own, []byte(text(i)), 0o644), os.Rename(own, path)); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		for range 3 {
			readers.Go(func() {
				for !done.Load() {
					b, err := os.ReadFile(path)
					if err != nil || len(b) < 100 || strings.Trim(string(b), string(b[0])) != "" {
						t.Errorf("%d bytes, %v", len(b), err)
						return
					}
					if _, err := os.Stat(path); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		writers.Wait()
		done.Store(true)
		readers.Wait()
	})
}

// TestOtherDoor: what another door has replaced, removed or made anew is that at once for who opens it by its name, although the kernel
// still believes the name; what is open stays.
func TestOtherDoor(t *testing.T) {
	mountable(t)
	stores(t, func(t *testing.T, f vfs.FS) {
		dir, d := mountTTL(t, f), newDoor(t, f)
		path := filepath.Join(dir, "d", "f")
		if err := d.ns.Mkdir(t.Context(), vfs.Cred{}, "", "/d", 0o755); err != nil {
			t.Fatal(err)
		}
		read := func(want string) {
			t.Helper()
			// The kernel knows the name, and believes it; after the grace it is told that it is stale.
			time.Sleep(30 * time.Millisecond)
			if b, err := os.ReadFile(path); string(b) != want || err != nil {
				t.Errorf("%q, %v; want %q", b, err, want)
			}
		}
		d.write("/d/f", "one")
		read("one")
		d.replace("/d/f", "another")
		read("another")
		d.write("/d/f", "the same, written again")
		read("the same, written again")
		open, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer open.Close()
		d.replace("/d/f", "after")
		time.Sleep(30 * time.Millisecond)
		if info, err := os.Stat(path); err != nil || info.Size() != 5 {
			t.Errorf("stat: %v, %v", info, err)
		}
		if err := os.Chmod(path, 0o600); err != nil {
			t.Error(err)
		}
		if a, err := d.ns.Stat(t.Context(), vfs.Cred{}, "", "/d/f"); err != nil || a.Mode != vfs.ModeRegular|0o600 {
			t.Errorf("the mode of what was replaced was changed: %o, %v", a.Mode, err)
		}
		b := make([]byte, 100)
		if n, err := open.Read(b); string(b[:n]) != "the same, written again" || err != nil {
			t.Errorf("what is open: %q, %v", b[:n], err)
		}
		if info, err := open.Stat(); err != nil || info.Size() != 23 {
			t.Errorf("what is open: %v, %v", info, err)
		}
		if err := errors.Join(d.ns.Unlink(t.Context(), vfs.Cred{}, "", "/d/f"), d.ns.Rmdir(t.Context(), vfs.Cred{}, "", "/d")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Millisecond)
		if _, err := os.ReadFile(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("what was removed: %v", err)
		}
		if err := d.ns.Mkdir(t.Context(), vfs.Cred{}, "", "/d", 0o755); err != nil {
			t.Fatal(err)
		}
		d.write("/d/f", "anew")
		read("anew")
		if err := os.WriteFile(filepath.Join(dir, "d", "g"), []byte("g"), 0o644); err != nil {
			t.Error(err)
		}
	})
}

// TestOwn: what the kernel itself has removed is there for who has it, as on any filesystem.
func TestOwn(t *testing.T) {
	mountable(t)
	stores(t, func(t *testing.T, f vfs.FS) {
		dir := mountTTL(t, f)
		gone := filepath.Join(dir, "gone")
		if err := os.Mkdir(gone, 0o755); err != nil {
			t.Fatal(err)
		}
		at, err := os.Open(gone)
		if err != nil {
			t.Fatal(err)
		}
		defer at.Close()
		if err := os.Remove(gone); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Millisecond)
		self := fmt.Sprintf("/proc/self/fd/%d", at.Fd())
		if again, err := os.Open(self); err != nil {
			t.Error(err)
		} else {
			again.Close()
		}
		if _, err := os.Stat(self); err != nil {
			t.Error(err)
		}
		if err := os.WriteFile(self+"/f", nil, 0o644); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a file in a directory that was removed: %v", err)
		}
	})
}

// TestStale is the same by messages: which operations say ESTALE of what, and when they don't.
func TestStale(t *testing.T) {
	f := memfs.New(memfs.Options{})
	k, d := newKernel(t, fusefs.Options{FS: f}), newDoor(t, f)
	d.write("/f", "text")
	node := binary.LittleEndian.Uint64(k.must(lookup, 1, words("f")))
	kept := binary.LittleEndian.Uint64(k.must(open, node, words(uint32(0), uint32(0))))
	b := k.must(mkdir, 1, words(uint32(0o755), uint32(0), "dir"))
	dir := binary.LittleEndian.Uint64(b)
	other := binary.LittleEndian.Uint64(k.must(lookup, 1, words("f")))
	if other != node {
		t.Fatalf("nodes %d and %d", node, other)
	}
	ctx := t.Context()
	if err := errors.Join(d.ns.Unlink(ctx, vfs.Cred{}, "", "/f"), d.ns.Rmdir(ctx, vfs.Cred{}, "", "/dir")); err != nil {
		t.Fatal(err)
	}
	getAttr := words(uint32(0), uint32(0), uint64(0))
	k.must(getattr, node, getAttr) // it is open
	k.must(open, node, words(uint32(0), uint32(0)))
	k.must(release, node, words(kept, uint32(0), uint32(0), uint64(0)))
	k.must(release, node, words(kept+1, uint32(0), uint32(0), uint64(0)))
	time.Sleep(30 * time.Millisecond)
	for op, body := range map[uint32][]byte{getattr: getAttr, open: words(uint32(0), uint32(0)), 4: words(uint32(1), make([]byte, 84)), 22: words(uint32(100), uint32(0), "user.a")} {
		if _, no := k.call(op, node, body); no != syscall.ESTALE {
			t.Errorf("operation %d on a file that is gone: %v", op, no)
		}
	}
	for op, body := range map[uint32][]byte{lookup: words("x"), mkdir: words(uint32(0o755), uint32(0), "x"), unlink: words("x"), 11: words("x"),
		6: words("x", "y"), create: words(uint32(syscall.O_RDWR), uint32(0o644), uint32(0), uint32(0), "x"), opendir: words(uint32(0), uint32(0))} {
		if _, no := k.call(op, dir, body); no != syscall.ESTALE {
			t.Errorf("operation %d in a directory that is gone: %v", op, no)
		}
	}
	if _, no := k.call(lookup, 1, words("f")); no != syscall.ENOENT {
		t.Errorf("a name that isn't there: %v", no)
	}
	// By its own doing it is another thing.
	node, _ = k.create(1, "g")
	k.must(unlink, 1, words("g"))
	time.Sleep(30 * time.Millisecond)
	k.must(getattr, node, getAttr)
	if ttl := binary.LittleEndian.Uint32(b[32:]); binary.LittleEndian.Uint64(b[16:]) != 1 || ttl != 0 {
		t.Errorf("a directory is believed for %d s", binary.LittleEndian.Uint64(b[16:]))
	}
	b = k.must(create, 1, words(uint32(syscall.O_RDWR), uint32(0o644), uint32(0), uint32(0), "h"))
	if s, ns := binary.LittleEndian.Uint64(b[24:]), binary.LittleEndian.Uint32(b[36:]); s != 0 || ns != 5e6 {
		t.Errorf("a file's attributes are believed for %d.%09d s", s, ns)
	}
}
