package fusefs_test

import (
	"context"
	"encoding/binary"
	"io"
	"syscall"
	"testing"

	"agentrun.dev/bucket"
	"agentrun.dev/bucket/buckettest"
	"agentrun.dev/fusefs"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/bucketfs"
	"agentrun.dev/vfs/memfs"
)

// TestSync: what was written when SYNCFS is answered is there after a power cut: files that are open, closed and renamed, and
// directories.
func TestSync(t *testing.T) {
	m := buckettest.NewMachine(t)
	if _, err := m.Store.Create(t.Context(), "files", bucket.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	k := newKernel(t, fusefs.Options{FS: openBucket(t, m.Store)})
	node, fh := k.create(1, "open")
	k.write(node, fh, 0, "not closed")
	other, closed := k.create(1, "made")
	k.write(other, closed, 0, "closed")
	k.must(release, other, words(closed, uint32(0), uint32(0), uint64(0)))
	k.must(rename, 1, words(uint64(1), "made", "renamed"))
	k.must(mkdir, 1, words(uint32(0o755), uint32(0), "dir"))
	if b := k.must(syncFS, 1, words(uint64(0))); len(b) != 0 {
		t.Errorf("an answer of %d bytes", len(b))
	}
	k.create(1, "late")

	fs := openBucket(t, m.Restart(t).Store)
	ns := vfs.NewNamespace(vfs.Mount{FS: fs})
	for name, want := range map[string]string{"/open": "not closed", "/renamed": "closed"} {
		f, err := ns.Open(t.Context(), vfs.Cred{}, "", name, vfs.O_RDONLY, 0)
		if err != nil {
			t.Errorf("%s after the power cut: %v", name, err)
			continue
		}
		if b, err := io.ReadAll(f); string(b) != want || err != nil {
			t.Errorf("%s after the power cut: %q, %v", name, b, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if a, err := ns.Stat(t.Context(), vfs.Cred{}, "", "/dir"); err != nil || !a.Mode.IsDir() {
		t.Errorf("the directory after the power cut: %v", err)
	}
	if _, err := ns.Stat(t.Context(), vfs.Cred{}, "", "/late"); err == nil {
		t.Error("what was never synced is there: the test's power cut isn't one")
	}
}

func openBucket(t *testing.T, s *bucket.Store) vfs.FS {
	t.Helper()
	b, err := s.Bucket(t.Context(), "files")
	if err != nil {
		t.Fatal(err)
	}
	fs, err := bucketfs.New(t.Context(), b, bucketfs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return fs
}

// flusher is a filesystem whose Flush counts, and may fail.
type flusher struct {
	vfs.FS
	durable, lax int
	err          error
}

func (f *flusher) Flush(_ context.Context, durable bool) error {
	if durable {
		f.durable++
	} else {
		f.lax++
	}
	return f.err
}

// TestSyncAnswers: SYNCFS is never ENOSYS, after which a kernel wouldn't ask again, and never says that what failed is done.
func TestSyncAnswers(t *testing.T) {
	plain := memfs.New(memfs.Options{})
	newKernel(t, fusefs.Options{FS: plain}).must(syncFS, 1, words(uint64(0)))
	f := &flusher{FS: plain}
	k := newKernel(t, fusefs.Options{FS: f})
	k.must(syncFS, 1, words(uint64(0)))
	k.must(syncFS, 1, nil)
	if f.durable != 2 {
		t.Errorf("flushed %d times", f.durable)
	}
	k.s.Lax(true)
	k.must(syncFS, 1, words(uint64(0)))
	k.s.Lax(false)
	if f.durable != 2 || f.lax != 1 {
		t.Errorf("where it needn't be durable it was made so: %d times, and %d times not", f.durable, f.lax)
	}
	f.err = syscall.ENOSPC
	if _, no := k.call(syncFS, 1, words(uint64(0))); no != syscall.ENOSPC {
		t.Errorf("what can't be flushed: %v", no)
	}
	newKernel(t, fusefs.Options{FS: f, ReadOnly: true}).must(syncFS, 1, words(uint64(0)))
	if f.durable != 3 {
		t.Errorf("what is read only was flushed")
	}
	s := fusefs.New(fusefs.Options{FS: f})
	out := make([]byte, 16)
	if n := s.Handle(message(syncFS, 1, words(uint64(0))), out); n != 16 || syscall.Errno(-int32(binary.LittleEndian.Uint32(out[4:]))) != syscall.EIO || f.durable != 3 {
		t.Errorf("before INIT: %x", out[:n])
	}
	if n := k.s.Handle(message(syncFS, 1, words(uint64(0))), make([]byte, 15)); n != 0 {
		t.Errorf("%d bytes into 15", n)
	}
}
