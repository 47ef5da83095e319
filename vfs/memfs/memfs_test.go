package memfs_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"syscall"
	"testing"
	"time"

	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
)

// A clone sees what was there, and neither side sees what the other writes afterwards.
func TestClone(t *testing.T) {
	ctx, c := context.Background(), vfs.Cred{}
	fs := memfs.New(memfs.Options{})
	ns := vfs.NewNamespace(vfs.Mount{FS: fs})
	write := func(ns *vfs.Namespace, text string) {
		f, err := ns.Open(ctx, c, "", "/a", vfs.O_WRONLY|vfs.O_CREAT, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	read := func(ns *vfs.Namespace) string {
		f, err := ns.Open(ctx, c, "", "/a", vfs.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		b, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	write(ns, "before")
	open, err := ns.Open(ctx, c, "", "/a", vfs.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open.Seek(3, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	ns2, err := ns.Clone(func(m vfs.Mount) (vfs.Mount, error) {
		m.FS = m.FS.(*memfs.FS).Clone()
		return m, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := ns.Unlink(ctx, c, "", "/a"); err != nil {
		t.Fatal(err)
	}
	write(ns, "parent")
	if got := read(ns2); got != "before" {
		t.Errorf("the clone reads %q", got)
	}
	adopted, err := ns2.Adopt(open)
	if err != nil {
		t.Fatal(err)
	}
	defer adopted.Close()
	write(ns2, "child!")
	if b, err := io.ReadAll(adopted); string(b) != "ld!" || err != nil {
		t.Errorf("the adopted file reads %q, %v", b, err)
	}
	if b, err := io.ReadAll(open); string(b) != "ore" || err != nil {
		t.Errorf("the unlinked file reads %q, %v", b, err)
	}
	if got := read(ns); got != "parent" {
		t.Errorf("the parent reads %q", got)
	}
}

// Bytes and inodes are bounded; what is freed can be used again.
func TestLimits(t *testing.T) {
	ctx, c := context.Background(), vfs.Cred{}
	fs := memfs.New(memfs.Options{Bytes: 1 << 20, Inodes: 4})
	ns := vfs.NewNamespace(vfs.Mount{FS: fs})
	f, err := ns.Open(ctx, c, "", "/a", vfs.O_RDWR|vfs.O_CREAT, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	n, err := f.Write(make([]byte, 3<<20))
	if n != 1<<20 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("writing 3 MiB into 1 MiB: %d, %v", n, err)
	}
	if st, err := ns.StatFS(ctx, c, "", "/"); err != nil || st.Free != 0 || st.Blocks != 256 {
		t.Errorf("full, it reports %+v, %v", st, err)
	}
	size := int64(10)
	if err := f.SetAttr(vfs.SetAttr{Size: &size}); err != nil {
		t.Fatal(err)
	}
	if n, err := f.WriteAt(make([]byte, 1000), 1<<40-1000); n != 1000 || err != nil {
		t.Errorf("writing far out: %d, %v", n, err)
	}
	if _, err := f.WriteAt([]byte("x"), 1<<40); !errors.Is(err, syscall.EFBIG) {
		t.Errorf("writing too far out: %v", err)
	}
	f.Close()
	for _, name := range []string{"/b", "/c"} {
		if err := ns.Mkdir(ctx, c, "", name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := ns.Mkdir(ctx, c, "", "/d", 0o755); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a fifth inode: %v", err)
	}
	if err := ns.Unlink(ctx, c, "", "/a"); err != nil {
		t.Fatal(err)
	}
	if err := ns.Mkdir(ctx, c, "", "/d", 0o755); err != nil {
		t.Errorf("after one is free: %v", err)
	}
	if st, err := fs.StatFS(ctx); err != nil || st.Free != st.Blocks || st.FFree != 0 {
		t.Errorf("at the end it reports %+v, %v", st, err)
	}
}

// FuzzLoad: whatever is loaded is refused or makes a filesystem whose tree can be walked and saved again.
func FuzzLoad(f *testing.F) {
	fs := memfs.New(memfs.Options{})
	ns := vfs.NewNamespace(vfs.Mount{FS: fs})
	ctx, c := context.Background(), vfs.Cred{}
	ns.Mkdir(ctx, c, "", "/d", 0o755)
	ns.Symlink(ctx, c, "", "d", "/l")
	if w, err := ns.Open(ctx, c, "", "/d/f", vfs.O_WRONLY|vfs.O_CREAT, 0o644); err == nil {
		w.Write([]byte("content"))
		w.Close()
	}
	var b bytes.Buffer
	fs.Save(&b)
	f.Add(b.Bytes()[:b.Len()-4])
	f.Fuzz(func(t *testing.T, data []byte) {
		data = binary.BigEndian.AppendUint32(data, crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
		fs, err := memfs.Load(bytes.NewReader(data), memfs.Options{Bytes: 1 << 20, Inodes: 1000})
		if err != nil {
			return
		}
		ns := vfs.NewNamespace(vfs.Mount{FS: fs})
		list, _ := ns.ReadDir(ctx, c, "", "/")
		for _, e := range list {
			ns.Lstat(ctx, c, "/", e.Name)
			fs.PathOf(ctx, e.Ino)
		}
		if err := fs.Save(io.Discard); err != nil {
			t.Error(err)
		}
	})
}

// A fresh copy of a pattern has its files, made at the time of the copy's clock; what is done to it isn't done to the pattern.
func TestFresh(t *testing.T) {
	ctx, c := context.Background(), vfs.Cred{}
	pattern := memfs.New(memfs.Options{})
	ns := vfs.NewNamespace(vfs.Mount{FS: pattern})
	for i := range 50 {
		if err := ns.Mkdir(ctx, c, "", fmt.Sprintf("/d%d", i), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Date(2001, 2, 3, 4, 5, 6, 7, time.UTC)
	for range 2 {
		fresh := vfs.NewNamespace(vfs.Mount{FS: pattern.Fresh(func() time.Time { return now })})
		list, err := fresh.ReadDir(ctx, c, "", "/")
		if err != nil || len(list) != 50 {
			t.Fatalf("%d names, %v", len(list), err)
		}
		for _, name := range []string{"/", "/d0", "/d49"} {
			if a, err := fresh.Stat(ctx, c, "", name); err != nil || !a.Mtime.Equal(now) || !a.Ctime.Equal(now) || !a.Atime.Equal(now) {
				t.Errorf("%s: %+v, %v", name, a, err)
			}
		}
		now = now.Add(time.Hour)
		if err := errors.Join(fresh.Rmdir(ctx, c, "", "/d0"), fresh.Mkdir(ctx, c, "", "/d1/new", 0o755)); err != nil {
			t.Fatal(err)
		}
		if a, err := fresh.Stat(ctx, c, "", "/d1"); err != nil || !a.Mtime.Equal(now) {
			t.Errorf("/d1: %+v, %v", a, err)
		}
	}
}
