package fusefs_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"agentrun.dev/blob/memory"
	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	"agentrun.dev/fusefs"
	kvmemory "agentrun.dev/kv/memory"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/bucketfs"
	"agentrun.dev/vfs/hostfs"
	"agentrun.dev/vfs/memfs"
	"agentrun.dev/vfs/vfstest"
)

// mountable skips where this machine can't mount: continuous integration and the bench can.
func mountable(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("CAN'T RUN HERE: mounting and several users need root; it runs where the tests are root's, as in CI")
	}
	m, err := fusefs.Mount(t.TempDir(), fusefs.MountOptions{Options: fusefs.Options{FS: memfs.New(memfs.Options{})}, Source: "probe"})
	if errs.Is(err, errs.Unavailable) {
		t.Skipf("CAN'T RUN HERE: %v; it runs where /dev/fuse may be used, as in the bench (make vm)", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Unmount(); err != nil {
		t.Fatal(err)
	}
}

// mount mounts a filesystem for a test. Attributes aren't believed at all, so that every one is asked for.
func mount(t testing.TB, fs vfs.FS) string {
	dir, err := os.MkdirTemp("", "fusefs")
	if err != nil {
		t.Fatal(err)
	}
	m, err := fusefs.Mount(dir, fusefs.MountOptions{Options: fusefs.Options{FS: fs, TTL: -1}, Source: "test", AllowOther: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Unmount(); err != nil {
			t.Error(err)
		}
		os.Remove(dir)
	})
	return dir
}

// TestDifferential compares a mounted filesystem with a real directory: random operations, by the kernel in both.
func TestDifferential(t *testing.T) {
	mountable(t)
	t.Run("memory", func(t *testing.T) {
		vfstest.DifferentialMounted(t, vfstest.Config{New: func(testing.TB) vfs.FS { return memfs.New(memfs.Options{}) }}, mount)
	})
	t.Run("bucket", func(t *testing.T) {
		vfstest.DifferentialMounted(t, vfstest.Config{NoDevices: true, New: func(t testing.TB) vfs.FS { _, fs := newBucketFS(t); return fs }}, mount)
	})
}

func newBucketFS(t testing.TB) (*bucket.Bucket, *bucketfs.FS) {
	s, err := bucket.Open(t.Context(), bucket.Options{KV: kvmemory.New(), Blobs: memory.New(memory.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if _, err := s.Create(t.Context(), "files", bucket.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	b, err := s.Bucket(t.Context(), "files")
	if err != nil {
		t.Fatal(err)
	}
	fs, err := bucketfs.New(t.Context(), b, bucketfs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fs.Close(context.Background()) })
	return b, fs
}

// TestVisible checks that what a program has written and closed is there for others when close returns.
func TestVisible(t *testing.T) {
	mountable(t)
	b, fs := newBucketFS(t)
	dir := mount(t, fs)
	for range 20 {
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte("hello"), 0o644); err != nil {
			t.Fatal(err)
		}
		v, err := b.View(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		o, err := v.Get(t.Context(), "f")
		v.Close()
		if err != nil || o.Size != 5 {
			t.Fatalf("%+v %v", o, err)
		}
		if err := os.Remove(filepath.Join(dir, "f")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMounted compares what programs rely on, on a mount and, so that the checks themselves are right, in a directory of this host.
func TestMounted(t *testing.T) {
	mountable(t)
	t.Run("host", func(t *testing.T) { vfstest.Mounted(t, t.TempDir(), 2000) })
	stores(t, func(t *testing.T, f vfs.FS) { vfstest.Mounted(t, mountTTL(t, f), 10_000) })
	t.Run("folder", func(t *testing.T) {
		f, err := hostfs.New(t.TempDir(), hostfs.Options{Real: true, Descriptors: 20})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		vfstest.Mounted(t, mountTTL(t, f), 10_000)
	})
}
