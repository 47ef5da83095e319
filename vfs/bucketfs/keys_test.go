package bucketfs_test

import (
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"agentrun.dev/bucket"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/vfstest"
)

// Every key is a file somewhere, whatever it looks like, and no two are the same file.
func TestAllKeysShow(t *testing.T) {
	b := newBucket(t)
	fs := newFS(t, b)
	long := strings.Repeat("x", 100)
	part := rapid.SampledFrom([]string{"", ".", "..", "a", "b", "a%=", "%=", "%=a", "%+a", "%", "a\x00", "\x00", "ü", "\xff", "a!", "a0",
		strings.Repeat("l", 255), strings.Repeat("l", 254), strings.Repeat("l", 256), strings.Repeat("%\x00", 60), long + long + long, long + long + long + "y"})
	rapid.Check(t, func(rt *rapid.T) {
		if _, err := b.Apply(ctx, []bucket.Op{{Kind: bucket.OpDeletePrefix}}, bucket.ApplyOptions{}); err != nil {
			rt.Fatal(err)
		}
		want := map[string]bool{}
		for range rapid.IntRange(1, 15).Draw(rt, "keys") {
			var parts []string
			for range rapid.IntRange(1, 4).Draw(rt, "depth") {
				parts = append(parts, part.Draw(rt, "part"))
			}
			if key := strings.Join(parts, "/"); key != "" && len(key) <= bucket.MaxKey {
				want[key] = true
				put(t, b, key, key)
			}
		}
		got := map[string]bool{}
		ns := vfs.NewNamespace(vfs.Mount{FS: fs})
		vfstest.Tree(rt, fs) // listings agree with lookups
		var visit func(dir string)
		visit = func(dir string) {
			list, err := ns.ReadDir(ctx, root, "", dir)
			if err != nil {
				rt.Fatalf("listing %q: %v", dir, err)
			}
			if len(list) == 0 {
				rt.Fatalf("%q is empty", dir)
			}
			for _, e := range list {
				p := dir + "/" + e.Name
				if e.Mode.IsDir() {
					visit(p)
					continue
				}
				f, err := ns.Open(ctx, root, "", p, vfs.O_RDONLY, 0)
				if err != nil {
					rt.Fatalf("open %q: %v", p, err)
				}
				text, err := io.ReadAll(f)
				f.Close()
				if err != nil || got[string(text)] {
					rt.Fatalf("%q is the key %q, which was there before; %v", p, text, err)
				}
				got[string(text)] = true
			}
		}
		if len(want) > 0 {
			visit("/")
		}
		if !maps.Equal(got, want) {
			rt.Fatalf("shown are %q, want %q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
	})
}

// Files under escaped names can be changed like others; names that are kept for escapes can't be made.
func TestEscapedNames(t *testing.T) {
	b := newBucket(t)
	u := use(t, newFS(t, b))
	put(t, b, "a", "object")
	put(t, b, "a/b", "below")
	put(t, b, "x//y", "empty part")
	if got := u.names("/"); got != "a a%= x" {
		t.Errorf("the root holds %q", got)
	}
	u.write("a%=", "changed")
	if text, _ := get(t, b, "a"); text != "changed" {
		t.Errorf("the object has %q", text)
	}
	u.write("x/%=/z", "new")
	if text, _ := get(t, b, "x//z"); text != "new" {
		t.Errorf("the new object has %q", text)
	}
	for _, name := range []string{"%=plain", "%+x", "new%="} {
		if _, err := u.ns.Open(ctx, root, "/", name, vfs.O_WRONLY|vfs.O_CREAT, 0o644); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("making %q: %v", name, err)
		}
	}
	u.must(u.ns.Unlink(ctx, root, "/", "a/b"))
	if got := u.names("/"); got != "a a%= x" {
		t.Errorf("after the directory became empty the root holds %q", got)
	}
	u.must(u.ns.Rmdir(ctx, root, "/", "a"))
	if got := u.names("/") + " " + u.read("a"); got != "a x changed" {
		t.Errorf("after the directory went there is %q", got)
	}
}

// Directories that keys imply stay when their last file goes, and markers of S3 clients are directories.
func TestDirectories(t *testing.T) {
	b := newBucket(t)
	u := use(t, newFS(t, b))
	put(t, b, "p/q/f", "x")
	put(t, b, "marker/", "")
	put(t, b, "loud/", "contents")
	if got := u.names("/"); got != "loud marker p" {
		t.Errorf("the root holds %q", got)
	}
	if got := u.names("marker") + u.names("loud"); got != "%=" {
		t.Errorf("the markers hold %q", got)
	}
	u.must(u.ns.Rename(ctx, root, "/", "p/q/f", "f", 0))
	if got := u.names("p") + u.names("p/q"); got != "q" {
		t.Errorf("p and p/q hold %q", got)
	}
	u.must(u.ns.Rmdir(ctx, root, "/", "p/q"))
	u.must(u.ns.Rmdir(ctx, root, "/", "p"))
	u.must(u.ns.Rmdir(ctx, root, "/", "marker"))
	if _, o := get(t, b, "marker/"); o != nil {
		t.Error("the marker is left")
	}
	if err := u.ns.Rmdir(ctx, root, "/", "loud"); !errors.Is(err, syscall.ENOTEMPTY) {
		t.Errorf("a marker with contents: %v", err)
	}
	put(t, b, "deep/1/2/f", "x")
	put(t, b, "target/", "")
	u.must(u.ns.Rename(ctx, root, "/", "deep", "target", 0))
	if got := u.read("target/1/2/f"); got != "x" {
		t.Errorf("after the rename it reads %q", got)
	}
	if got := u.names("/"); got != "f loud target" {
		t.Errorf("the root holds %q", got)
	}
}
