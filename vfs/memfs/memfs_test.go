package memfs_test

import (
	"context"
	"io"
	"testing"

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
