package dir_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"agentrun.dev/blob"
	"agentrun.dev/blob/blobtest"
	"agentrun.dev/blob/dir"
	"agentrun.dev/errs"
)

func TestConformance(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Store {
		s, err := dir.Open(t.TempDir(), dir.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

var bg = context.Background()

// tmpfs mounts a small file system; only root can.
func tmpfs(t *testing.T, size string) string {
	t.Helper()
	path := t.TempDir()
	if err := unix.Mount("tmpfs", path, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("SKIPPED: a full disk can't be made here: mounting a tmpfs needs root: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(path, unix.MNT_DETACH) })
	return path
}

// TestFullDisk fills a real file system: nothing half appended stays, and appending goes on when there is room.
func TestFullDisk(t *testing.T) {
	s, err := dir.Open(tmpfs(t, "4m"), dir.Options{Reserve: -1})
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.Create(bg, "other")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Append(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	w, err := s.Create(bg, "w")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var want []byte
	for i := byte(1); ; i++ {
		p := bytes.Repeat([]byte{i}, 300<<10)
		off, err := w.Append(p)
		if err != nil {
			if !errs.Is(err, errs.NoSpace) {
				t.Fatal(err)
			}
			break
		}
		if off != int64(len(want)) {
			t.Fatalf("appended at %d, want %d", off, len(want))
		}
		want = append(want, p...)
	}
	r, err := s.Open(bg, "w")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Size() != int64(len(want)) {
		t.Errorf("%d bytes in the file after a failed append, want %d", r.Size(), len(want))
	}
	if err := s.Remove(bg, "other"); err != nil {
		t.Fatal(err)
	}
	p := bytes.Repeat([]byte("x"), 500<<10)
	if _, err := w.Append(p); err != nil {
		t.Fatalf("with room again: %v", err)
	}
	want = append(want, p...)
	got := make([]byte, len(want))
	if _, err := r.ReadAt(got, 0); err != nil || !bytes.Equal(got, want) {
		t.Errorf("content differs: %v", err)
	}
	if err := w.Sync(); err != nil {
		t.Error(err)
	}
}

func TestReserve(t *testing.T) {
	s, err := dir.Open(t.TempDir(), dir.Options{Reserve: 1 << 60})
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Create(bg, "w")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.Append([]byte("x")); !errs.Is(err, errs.NoSpace) || errs.HintOf(err) == "" {
		t.Errorf("append into the reserve: %v", err)
	}
}

// TestStrangers leaves alone what isn't a blob.
func TestStrangers(t *testing.T) {
	root := t.TempDir()
	s, err := dir.Open(root, dir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"UPPER", ".hidden", "fine"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	var names []string
	if err := s.List(bg, "", func(i blob.Info) error { names = append(names, i.Name); return nil }); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(names, []string{"fine"}) {
		t.Errorf("%q", names)
	}
	if b, err := s.Open(bg, "folder"); !errs.Is(err, errs.NotFound) {
		t.Errorf("a folder opens as a blob: %v %v", b, err)
	}
}
