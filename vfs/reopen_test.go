package vfs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"syscall"
	"testing"

	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
)

// Open files are described, saved beside their filesystem, and open again: a renamed one, an unlinked one, a directory.
func TestReopen(t *testing.T) {
	ctx, c := context.Background(), vfs.Cred{}
	fs := memfs.New(memfs.Options{})
	ns := vfs.NewNamespace(vfs.Mount{FS: memfs.New(memfs.Options{})})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(ns.Mount(ctx, vfs.Mount{Path: "/vol/a", FS: fs}))
	must(ns.Mkdir(ctx, c, "", "/vol/a/dir", 0o755))
	open := func(path string, flags int) vfs.File {
		t.Helper()
		f, err := ns.Open(ctx, c, "", path, flags, 0o644)
		must(err)
		return f
	}
	files := []vfs.File{open("/vol/a/moves", vfs.O_RDWR|vfs.O_CREAT), open("/vol/a/goes", vfs.O_RDWR|vfs.O_CREAT|vfs.O_APPEND)}
	for _, f := range files {
		_, err := f.Write([]byte("0123456789"))
		must(err)
		_, err = f.Seek(4, io.SeekStart)
		must(err)
	}
	must(ns.Rename(ctx, c, "", "/vol/a/moves", "/vol/a/dir/moved", 0))
	must(ns.Unlink(ctx, c, "", "/vol/a/goes"))
	files = append(files, open("/vol/a/dir", vfs.O_RDONLY), open("/vol", vfs.O_RDONLY))

	var kept []vfs.OpenFile
	for _, f := range files {
		o, err := ns.Describe(f)
		must(err)
		if o, err = ns.Lasting(ctx, o); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(o)
		must(err)
		var back vfs.OpenFile
		must(json.Unmarshal(text, &back))
		kept = append(kept, back)
	}
	if kept[0].Path != "/vol/a/dir/moved" || kept[1].Path != "" || string(kept[1].Content) != "0123456789" {
		t.Errorf("described as %+v", kept)
	}

	var saved bytes.Buffer
	must(fs.Save(&saved))
	image := bytes.Clone(saved.Bytes())
	loaded, err := memfs.Load(&saved, memfs.Options{})
	must(err)
	// The same inodes, and a filesystem that knows none of them.
	empty := memfs.New(memfs.Options{})
	for name, fs := range map[string]*memfs.FS{"loaded": loaded, "empty": empty} {
		other := vfs.NewNamespace(vfs.Mount{FS: memfs.New(memfs.Options{})})
		must(other.Mount(ctx, vfs.Mount{Path: "/vol/a", FS: fs}))
		if fs == empty {
			must(other.Mkdir(ctx, c, "", "/vol/a/dir", 0o755))
			w, err := other.Open(ctx, c, "", "/vol/a/dir/moved", vfs.O_WRONLY|vfs.O_CREAT, 0o644)
			must(err)
			_, err = w.Write([]byte("0123456789"))
			must(err)
			must(w.Close())
		}
		for i, o := range kept {
			f, err := other.Reopen(ctx, o)
			if err != nil {
				t.Fatalf("%s: %d: %v", name, i, err)
			}
			if o.Dir {
				list, err := f.ReadDir()
				if err != nil || len(list) != 1 {
					t.Errorf("%s: directory %d lists %v, %v", name, i, list, err)
				}
			} else {
				rest, err := io.ReadAll(f)
				if string(rest) != "456789" || err != nil {
					t.Errorf("%s: file %d goes on with %q, %v", name, i, rest, err)
				}
				if _, err := f.Write([]byte("!")); err != nil {
					t.Errorf("%s: file %d can't be written any more: %v", name, i, err)
				}
			}
			must(f.Close())
		}
	}
	if _, err := ns.Reopen(ctx, vfs.OpenFile{Mount: "/nowhere", Path: "/x"}); !errors.Is(err, syscall.ESTALE) {
		t.Errorf("a mount that isn't there: %v", err)
	}
	if _, err := ns.Describe(nil); !errors.Is(err, syscall.EBADF) {
		t.Errorf("describing nothing: %v", err)
	}
	// Every damaged byte is noticed.
	for i := range image {
		bad := bytes.Clone(image)
		bad[i] ^= 0x41
		if _, err := memfs.Load(bytes.NewReader(bad), memfs.Options{}); err == nil {
			t.Fatalf("byte %d changed and nobody noticed", i)
		}
		if _, err := memfs.Load(bytes.NewReader(image[:i]), memfs.Options{}); err == nil {
			t.Fatalf("cut at %d and nobody noticed", i)
		}
	}
}
