package bucketfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"agentrun.dev/blob"
	"agentrun.dev/blob/faulty"
	"agentrun.dev/blob/memory"
	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/bucketfs"
	"agentrun.dev/vfs/vfstest"
)

var root = vfs.Cred{}

// user is a namespace over a filesystem, with calls that end the test on errors.
type user struct {
	testing.TB
	ns *vfs.Namespace
}

func use(t testing.TB, fs vfs.FS) *user { return &user{t, vfs.NewNamespace(vfs.Mount{FS: fs})} }

func (u *user) must(err error) {
	u.Helper()
	if err != nil {
		u.Fatal(err)
	}
}

func (u *user) open(p string, flags int) vfs.File {
	u.Helper()
	f, err := u.ns.Open(ctx, root, "/", p, flags, 0o644)
	if err != nil {
		u.Fatalf("open %s: %v", p, err)
	}
	return f
}

func (u *user) write(p, text string) {
	u.Helper()
	f := u.open(p, vfs.O_WRONLY|vfs.O_CREAT|vfs.O_TRUNC)
	if _, err := f.Write([]byte(text)); err != nil {
		u.Fatal(err)
	}
	u.must(f.Close())
}

func (u *user) read(p string) string {
	u.Helper()
	f := u.open(p, vfs.O_RDONLY)
	defer f.Close()
	b, err := io.ReadAll(f)
	u.must(err)
	return string(b)
}

func (u *user) names(p string) string {
	u.Helper()
	list, err := u.ns.ReadDir(ctx, root, "/", p)
	u.must(err)
	var names []string
	for _, e := range list {
		names = append(names, e.Name)
	}
	return strings.Join(names, " ")
}

// put and get are an S3 client.
func put(t testing.TB, b *bucket.Bucket, key, text string) {
	t.Helper()
	p, err := b.Store().Stage(ctx, strings.NewReader(text), int64(len(text)))
	if err == nil {
		_, err = b.Apply(ctx, []bucket.Op{{Kind: bucket.OpPut, Key: key, Payload: p}}, bucket.ApplyOptions{})
	}
	if err != nil {
		t.Fatalf("put %q: %v", key, err)
	}
}

func get(t testing.TB, b *bucket.Bucket, key string) (string, *bucket.Object) {
	t.Helper()
	v, err := b.View(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	o, err := v.Get(ctx, key)
	if errs.Is(err, errs.NotFound) {
		return "", nil
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := v.Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), o
}

func version(t testing.TB, b *bucket.Bucket) uint64 {
	t.Helper()
	v, err := b.View(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	return uint64(v.Version())
}

// A file is in the bucket when it is closed or synced, as a whole, and before that nothing of it is.
func TestVisibility(t *testing.T) {
	b := newBucket(t)
	u := use(t, newFS(t, b))
	f := u.open("f", vfs.O_RDWR|vfs.O_CREAT)
	before := version(t, b)
	for range 100 {
		if _, err := f.Write([]byte("0123456789")); err != nil {
			t.Fatal(err)
		}
	}
	if v := version(t, b); v != before {
		t.Errorf("the bucket changed before the file was closed")
	}
	u.must(f.Close())
	text, o := get(t, b, "f")
	if text != strings.Repeat("0123456789", 100) || o.Posix == nil || o.Posix.Mode != 0o100644 {
		t.Errorf("the object has %d bytes, %+v", len(text), o.Posix)
	}
	if uint64(o.Version) != version(t, b) {
		t.Errorf("closing a new file took more than one write")
	}
	id := o.ID
	f = u.open("f", vfs.O_RDWR)
	if _, err := f.WriteAt([]byte("X"), 5); err != nil {
		t.Fatal(err)
	}
	if text, _ := get(t, b, "f"); text[5] != '5' {
		t.Error("a write shows before fsync")
	}
	u.must(f.Sync())
	if text, o := get(t, b, "f"); text[:10] != "01234X6789" || len(text) != 1000 || o.ID != id {
		t.Errorf("after fsync the object begins %q and has id %v, want %v", text[:10], o.ID, id)
	}
	after := version(t, b)
	u.must(f.Close())
	if version(t, b) != after {
		t.Error("closing a clean file wrote to the bucket")
	}
	u.must(u.ns.Mknod(ctx, root, "/", "empty", vfs.ModeRegular|0o600, 0))
	if _, o := get(t, b, "empty"); o == nil || o.Posix.Mode != 0o100600 {
		t.Errorf("mknod made %+v", o)
	}
}

// What S3 clients do shows at the next look; what is open stays as it is.
func TestOutside(t *testing.T) {
	b := newBucket(t)
	u := use(t, newFS(t, b))
	put(t, b, "dir/f", "first")
	if got := u.read("dir/f"); got != "first" {
		t.Errorf("it reads %q", got)
	}
	a, err := u.ns.Stat(ctx, root, "/", "dir/f")
	if err != nil || a.Mode != vfs.ModeRegular|0o644 || a.Size != 5 {
		t.Errorf("an object without attributes is %+v, %v", a, err)
	}
	old := u.open("dir/f", vfs.O_RDWR)
	put(t, b, "dir/f", "second")
	if got := u.read("dir/f"); got != "second" {
		t.Errorf("after a PUT it reads %q", got)
	}
	buf := make([]byte, 10)
	if n, _ := old.ReadAt(buf, 0); string(buf[:n]) != "first" {
		t.Errorf("what was open reads %q", buf[:n])
	}
	if _, err := old.WriteAt([]byte("F"), 0); err != nil {
		t.Error(err)
	}
	u.must(old.Close())
	if text, _ := get(t, b, "dir/f"); text != "second" {
		t.Errorf("closing the old file left %q", text)
	}
	// Replaced behind the back of a dirty file, without a lookup in between.
	old = u.open("dir/f", vfs.O_RDWR)
	if _, err := old.WriteAt([]byte("S"), 0); err != nil {
		t.Error(err)
	}
	put(t, b, "dir/f", "third")
	u.must(old.Close())
	if text, _ := get(t, b, "dir/f"); text != "third" {
		t.Errorf("a dirty file that was replaced left %q", text)
	}
	if _, err := b.Apply(ctx, []bucket.Op{{Kind: bucket.OpDelete, Key: "dir/f"}}, bucket.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := u.ns.Stat(ctx, root, "/", "dir"); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("a directory that only the deleted key implied: %v", err)
	}
}

// Headers, metadata and tags that S3 clients gave survive what a filesystem does.
func TestMetadataKept(t *testing.T) {
	b := newBucket(t)
	u := use(t, newFS(t, b))
	if _, err := b.Apply(ctx, []bucket.Op{{Kind: bucket.OpPut, Key: "f", Object: &bucket.Object{
		Headers: map[string]string{"Content-Type": "text/x-test"}, Meta: map[string]string{"k": "v"}, Tags: map[string]string{"t": "1"}}}}, bucket.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	u.write("f", "new contents")
	mode := vfs.Mode(0o600)
	u.must(u.ns.SetAttr(ctx, root, "/", "f", vfs.SetAttr{Mode: &mode}, true))
	u.must(u.ns.Rename(ctx, root, "/", "f", "g", 0))
	text, o := get(t, b, "g")
	if text != "new contents" || o.Headers["Content-Type"] != "text/x-test" || o.Meta["k"] != "v" || o.Tags["t"] != "1" || o.Posix.Mode != 0o100600 {
		t.Errorf("the object is %q, %+v", text, o)
	}
}

// What is held back stays within its bound, whether files are written out early or, once unlinked, to the disk.
func TestBound(t *testing.T) {
	b := newBucket(t)
	fs, err := bucketfs.New(ctx, b, bucketfs.Options{Dirty: 256 << 10, TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer fs.Close(ctx)
	u := use(t, fs)
	r := rand.New(rand.NewPCG(1, 2))
	const size = 1 << 20
	want := make([][]byte, 3)
	var files []vfs.File
	for i := range want {
		want[i] = make([]byte, size)
		files = append(files, u.open(fmt.Sprint("f", i), vfs.O_RDWR|vfs.O_CREAT))
	}
	u.must(u.ns.Unlink(ctx, root, "/", "f2"))
	for range 2000 {
		i, off, n := r.IntN(3), r.IntN(size-5000), 1+r.IntN(5000)
		p := bytes.Repeat([]byte{byte(r.IntN(256))}, n)
		copy(want[i][off:], p)
		if _, err := files[i].WriteAt(p, int64(off)); err != nil {
			t.Fatal(err)
		}
		if held := fs.Held(); held > 256<<10 {
			t.Fatalf("%d bytes are held back", held)
		}
	}
	for i, f := range files {
		got := make([]byte, size)
		n, err := f.ReadAt(got, 0)
		if err != nil && err != io.EOF || !bytes.Equal(bytes.TrimRight(got[:n], "\x00"), bytes.TrimRight(want[i], "\x00")) {
			t.Errorf("file %d differs after %d bytes, %v", i, n, err)
		}
		u.must(f.Close())
	}
	if fs.Held() != 0 {
		t.Errorf("%d bytes are held back after everything was closed", fs.Held())
	}
	for i := range 2 {
		if text, _ := get(t, b, fmt.Sprint("f", i)); strings.TrimRight(text, "\x00") != string(bytes.TrimRight(want[i], "\x00")) {
			t.Errorf("object %d differs", i)
		}
	}
}

// A fork's filesystem goes on where the parent's was: same inodes, open files, unlinked ones too; then they part.
func TestClone(t *testing.T) {
	b := newBucket(t)
	fs := newFS(t, b)
	u := use(t, fs)
	u.must(u.ns.Mkdir(ctx, root, "/", "d", 0o755))
	u.write("d/../shared", "before")
	kept := u.open("d/kept", vfs.O_RDWR|vfs.O_CREAT)
	orphan := u.open("orphan", vfs.O_RDWR|vfs.O_CREAT)
	for _, f := range []vfs.File{kept, orphan} {
		if _, err := f.Write([]byte("0123456789")); err != nil {
			t.Fatal(err)
		}
	}
	u.must(orphan.Sync())
	u.must(u.ns.Unlink(ctx, root, "/", "orphan"))
	if _, err := orphan.WriteAt([]byte("abc"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Clone(ctx, b); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("cloning with bytes held back: %v", err)
	}
	u.must(u.ns.Flush(ctx, true))
	if _, err := b.Store().Fork(ctx, "files", "fork", bucket.ForkOptions{}); err != nil {
		t.Fatal(err)
	}
	fb, err := b.Store().Bucket(ctx, "fork")
	u.must(err)
	ns2, err := u.ns.Clone(func(m vfs.Mount) (vfs.Mount, error) {
		c, err := m.FS.(*bucketfs.FS).Clone(ctx, fb)
		m.FS = c
		return m, err
	})
	u.must(err)
	u2 := &user{t, ns2}
	kept2, err := ns2.Adopt(kept)
	u.must(err)
	orphan2, err := ns2.Adopt(orphan)
	u.must(err)
	a, _ := kept.Attr()
	a2, _ := kept2.Attr()
	if a.Ino != a2.Ino || a.Dev != a2.Dev {
		t.Errorf("the file is inode %d of %d, and %d of %d in the fork", a.Ino, a.Dev, a2.Ino, a2.Dev)
	}
	for who, f := range map[string]vfs.File{"parent": kept, "fork": kept2} {
		if _, err := f.Write([]byte(who)); err != nil { // at the offset that both share
			t.Fatal(err)
		}
	}
	if _, err := orphan.WriteAt([]byte("parent"), 4); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 20)
	if n, _ := orphan2.ReadAt(buf, 0); string(buf[:n]) != "abc3456789" {
		t.Errorf("the fork's unlinked file reads %q", buf[:n])
	}
	for _, f := range []vfs.File{kept, kept2, orphan, orphan2} {
		u.must(f.Close())
	}
	if got, got2 := u.read("d/kept"), u2.read("d/kept"); got != "0123456789parent" || got2 != "0123456789fork" {
		t.Errorf("the file reads %q, and %q in the fork", got, got2)
	}
	u2.write("shared", "after")
	if got := u.read("shared"); got != "before" {
		t.Errorf("the parent reads %q", got)
	}
}

// A view stays as it was, and can't be written.
func TestView(t *testing.T) {
	b := newBucket(t)
	put(t, b, "d/f", "then")
	v, err := b.View(ctx)
	if err != nil {
		t.Fatal(err)
	}
	fs := bucketfs.NewView(v, bucketfs.Options{UID: 1000, GID: 1001})
	defer fs.Close(ctx)
	u := use(t, fs)
	put(t, b, "d/f", "now")
	if got := u.read("d/f"); got != "then" {
		t.Errorf("it reads %q", got)
	}
	if a, err := u.ns.Stat(ctx, root, "/", "d"); err != nil || a.UID != 1000 || a.GID != 1001 {
		t.Errorf("the directory is %+v, %v", a, err)
	}
	mode := vfs.Mode(0o600)
	_, create := u.ns.Open(ctx, root, "/", "new", vfs.O_CREAT|vfs.O_WRONLY, 0o644)
	_, write := u.ns.Open(ctx, root, "/", "d/f", vfs.O_RDWR, 0)
	for what, err := range map[string]error{
		"create": create, "write": write,
		"mkdir":  u.ns.Mkdir(ctx, root, "/", "n", 0o755),
		"unlink": u.ns.Unlink(ctx, root, "/", "d/f"),
		"rmdir":  u.ns.Rmdir(ctx, root, "/", "d"),
		"rename": u.ns.Rename(ctx, root, "/", "d", "e", 0),
		"chmod":  u.ns.SetAttr(ctx, root, "/", "d/f", vfs.SetAttr{Mode: &mode}, true),
		"link":   u.ns.Link(ctx, root, "/", "d/f", "g"),
		"xattr":  u.ns.SetXattr(ctx, root, "/", "d/f", "user.a", nil, 0, true),
	} {
		if !errors.Is(err, syscall.EROFS) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Two mounts of one bucket, and an S3 client, at once: nobody fails in an unexpected way, and in the end both mounts and
// the bucket agree.
func TestTwoMounts(t *testing.T) {
	b := newBucket(t)
	mounts := []*bucketfs.FS{newFS(t, b), newFS(t, b)}
	names := []string{"a", "b", "d", "d/a", "d/b", "d/e/f"}
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(3, uint64(i)))
			for n := range 150 {
				p, q := names[r.IntN(len(names))], names[r.IntN(len(names))]
				if i == 2 {
					kind := bucket.OpDelete
					if n%2 == 0 {
						kind = bucket.OpPut
					}
					if _, err := b.Apply(ctx, []bucket.Op{{Kind: kind, Key: p}}, bucket.ApplyOptions{Lazy: true}); err != nil {
						t.Error(err)
					}
					continue
				}
				ns := vfs.NewNamespace(vfs.Mount{FS: mounts[i]})
				var err error
				switch r.IntN(5) {
				case 0:
					err = ns.Rename(ctx, root, "/", p, q, 0)
				case 1:
					err = ns.Unlink(ctx, root, "/", p)
				case 2:
					_, err = ns.ReadDir(ctx, root, "/", path.Dir(p))
				case 3:
					err = ns.Mkdir(ctx, root, "/", path.Dir(p), 0o755)
				default:
					var f vfs.File
					if f, err = ns.Open(ctx, root, "/", p, vfs.O_RDWR|vfs.O_CREAT, 0o644); err == nil {
						_, err = f.Write([]byte(q))
						err = errors.Join(err, f.Close())
					}
				}
				switch vfs.Errno(err) {
				case 0, syscall.ENOENT, syscall.EEXIST, syscall.ENOTDIR, syscall.EISDIR, syscall.ENOTEMPTY, syscall.EINVAL, syscall.EBUSY:
				default:
					t.Errorf("%s, %s: %v", p, q, err)
				}
			}
		})
	}
	wg.Wait()
	for _, m := range mounts { // a listing goes by what was known; only looking a name up shows that something else stands there now
		look(t, vfs.NewNamespace(vfs.Mount{FS: m}), "/")
	}
	first, second := vfstest.Tree(t, mounts[0]), vfstest.Tree(t, mounts[1])
	if !slices.Equal(first, second) {
		t.Errorf("one mount shows\n%s\nthe other\n%s", strings.Join(first, "\n"), strings.Join(second, "\n"))
	}
}

// A directory that another mount has moved below what was its child here: whoever still has the child's number, as a kernel may, doesn't make
// a circle of them by looking there.
func TestMovedBelowChild(t *testing.T) {
	b := newBucket(t)
	fs := newFS(t, b)
	u, other := use(t, fs), use(t, newFS(t, b))
	u.must(u.ns.Mkdir(ctx, root, "/", "d", 0o755))
	u.must(u.ns.Mkdir(ctx, root, "/", "d/e", 0o755))
	d, err := fs.Lookup(ctx, fs.Root(), "d")
	u.must(err)
	e, err := fs.Lookup(ctx, d.Ino, "e")
	u.must(err)
	other.must(other.ns.Rename(ctx, root, "/", "d", "away", 0))
	other.must(other.ns.Mkdir(ctx, root, "/", "d", 0o755))
	other.must(other.ns.Mkdir(ctx, root, "/", "d/e", 0o755))
	other.must(other.ns.Rename(ctx, root, "/", "away", "d/e/d", 0))
	if _, err := fs.Lookup(ctx, e.Ino, "d"); err != nil && !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.ESTALE) {
		t.Errorf("below the old child: %v", err)
	}
	_, _ = fs.Lookup(ctx, e.Ino, "none") // which asks where it stands
	if path, ok := fs.PathOf(ctx, e.Ino); ok && strings.Count(path, "/") > 4 {
		t.Errorf("the old child is at %s", path)
	}
	look(t, u.ns, "/")
	want := vfstest.Tree(t, newFS(t, b))
	if got := vfstest.Tree(t, fs); !slices.Equal(got, want) {
		t.Errorf("it shows\n%s\nwhere a new mount shows\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What is written to an open file goes where another mount has renamed it to, by itself or with its directory, whether this mount has noticed
// or not. One that is removed or replaced takes it along.
func TestWrittenElsewhere(t *testing.T) {
	moves := map[string]struct {
		move func(u *user)
		to   string // where the file is then; empty: nowhere
	}{
		"renamed":            {func(u *user) { u.must(u.ns.Rename(ctx, root, "/", "d/f", "d/g", 0)) }, "d/g"},
		"directory renamed":  {func(u *user) { u.must(u.ns.Rename(ctx, root, "/", "d", "e", 0)) }, "e/f"},
		"renamed and others": {func(u *user) { u.must(u.ns.Rename(ctx, root, "/", "d/f", "g", 0)); u.write("d/f", "other") }, "g"},
		"removed":            {func(u *user) { u.must(u.ns.Unlink(ctx, root, "/", "d/f")) }, ""},
	}
	for what, c := range moves {
		for _, noticed := range []bool{false, true} {
			for _, mode := range []bucket.Versioning{bucket.Unversioned, bucket.Versioned} {
				t.Run(fmt.Sprintf("%s, noticed %v, versioning %v", what, noticed, mode), func(t *testing.T) {
					b := makeBucket(t, memory.New(memory.Options{}), mode)
					u, other := use(t, newFS(t, b)), use(t, newFS(t, b))
					other.must(other.ns.Mkdir(ctx, root, "/", "d", 0o755))
					other.write("d/f", "before")
					f := u.open("d/f", vfs.O_RDWR|vfs.O_APPEND)
					c.move(other)
					if noticed {
						_, _ = u.ns.Stat(ctx, root, "/", "d/f")
						_, _ = u.ns.ReadDir(ctx, root, "/", "/")
					}
					for _, text := range []string{" one", " two"} {
						if _, err := f.Write([]byte(text)); err != nil {
							t.Fatal(err)
						}
						u.must(f.Sync())
					}
					if _, err := f.Write([]byte(" three")); err != nil {
						t.Fatal(err)
					}
					u.must(f.Close())
					if c.to == "" {
						if _, err := other.ns.Stat(ctx, root, "/", "d/f"); !errors.Is(err, syscall.ENOENT) {
							t.Errorf("it is back: %v", err)
						}
						return
					}
					for _, u := range []*user{u, other} {
						if got := u.read(c.to); got != "before one two three" {
							t.Errorf("%s has %q", c.to, got)
						}
					}
					if what == "renamed and others" {
						if got := u.read("d/f"); got != "other" {
							t.Errorf("the other file has %q", got)
						}
					}
				})
			}
		}
	}
}

// look looks everything up.
func look(t *testing.T, ns *vfs.Namespace, dir string) {
	t.Helper()
	list, err := ns.ReadDir(ctx, root, "/", dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		a, err := ns.Lstat(ctx, root, "/", path.Join(dir, e.Name))
		if err != nil {
			t.Fatal(err)
		}
		if a.Mode.IsDir() {
			look(t, ns, path.Join(dir, e.Name))
		}
	}
}

// A file that another mount has renamed while it is open here has the number in a listing that looking it up gives, if this mount has missed it
// under its old name before.
func TestNumberTaken(t *testing.T) {
	b := newBucket(t)
	u, other := use(t, newFS(t, b)), use(t, newFS(t, b))
	other.write("a", "text") // so that its number here is the object's
	f := u.open("a", vfs.O_RDONLY)
	defer f.Close()
	other.must(other.ns.Rename(ctx, root, "/", "a", "b", 0))
	if _, err := u.ns.Stat(ctx, root, "/", "a"); !errors.Is(err, syscall.ENOENT) {
		t.Fatalf("the old name: %v", err)
	}
	list, err := u.ns.ReadDir(ctx, root, "/", "/")
	u.must(err)
	a, err := u.ns.Stat(ctx, root, "/", "b")
	u.must(err)
	if len(list) != 1 || list[0].Ino != a.Ino {
		t.Errorf("listed as %+v, looked up as %d", list, a.Ino)
	}
}

// A file whose known name is unlinked while it is open is written to its other name, even if nobody has looked that up.
func TestUnknownLink(t *testing.T) {
	b := newBucket(t)
	u := use(t, newFS(t, b))
	u.write("a", "text")
	u.must(u.ns.Link(ctx, root, "/", "a", "b"))
	u = use(t, newFS(t, b)) // which hasn't seen b
	f := u.open("a", vfs.O_RDWR)
	u.must(u.ns.Unlink(ctx, root, "/", "a"))
	if a, err := f.Attr(); err != nil || a.Nlink != 1 {
		t.Errorf("%d links, %v", a.Nlink, err)
	}
	if _, err := f.WriteAt([]byte("T"), 0); err != nil {
		t.Fatal(err)
	}
	u.must(f.Close())
	if got := u.read("b"); got != "Text" {
		t.Errorf("the other name reads %q", got)
	}
}

// When the store can't take the bytes, close says so, nothing is lost, and they are written when there is room again.
func TestNoSpace(t *testing.T) {
	blobs, err := faulty.New(memory.New(memory.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	b := makeBucket(t, blobs, bucket.Unversioned)
	fs := newFS(t, b)
	u := use(t, fs)
	text := strings.Repeat("0123456789", 50000) // too much for the log
	f := u.open("f", vfs.O_RDWR|vfs.O_CREAT)
	if _, err := f.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	blobs.Inject(func(op faulty.Op) error { return errs.Msg(errs.NoSpace, "append", "segment", "the disk is full") })
	if err := f.Sync(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("fsync on a full disk: %v", err)
	}
	if err := f.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("close on a full disk: %v", err)
	}
	blobs.Inject(nil)
	if got := u.read("f"); got != text {
		t.Errorf("after the failure it reads %d bytes", len(got))
	}
	u.must(fs.Flush(ctx, true))
	if got, _ := get(t, b, "f"); got != text {
		t.Errorf("the object has %d bytes", len(got))
	}
}

// Inodes that nobody refers to are forgotten beyond a number; those in use never are.
func TestForget(t *testing.T) {
	b := newBucket(t)
	fs, err := bucketfs.New(ctx, b, bucketfs.Options{Nodes: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer fs.Close(ctx)
	u := use(t, fs)
	var ops []bucket.Op
	for i := range 1000 {
		ops = append(ops, bucket.Op{Kind: bucket.OpPut, Key: fmt.Sprintf("d%d/f%d", i%50, i)})
	}
	if _, err := b.Apply(ctx, ops, bucket.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	held, err := fs.Lookup(ctx, fs.Root(), "d7")
	u.must(err)
	file, err := fs.Lookup(ctx, held.Ino, "f7")
	u.must(err)
	vfstest.Tree(t, fs)
	if n := fs.Known(); n > 64+10 {
		t.Errorf("%d inodes are remembered", n)
	}
	for _, a := range []vfs.Attr{held, file} {
		if got, err := fs.GetAttr(ctx, a.Ino); err != nil || got != a {
			t.Errorf("an inode in use: %+v, %v; want %+v", got, err, a)
		}
		fs.Forget(a.Ino, 1)
	}
	vfstest.Tree(t, fs)
	if _, err := fs.GetAttr(ctx, file.Ino); err != nil && !errors.Is(err, syscall.ESTALE) {
		t.Errorf("an inode that may be forgotten: %v", err)
	}
	if again, err := fs.Lookup(ctx, fs.Root(), "d7"); err != nil || again.Ino != held.Ino {
		t.Errorf("looked up again, inode %d is %d, %v", held.Ino, again.Ino, err)
	}
}

// Writing 4 KiB anywhere in a file of 1 GB stores about what was written, not the file or large pieces of it.
func TestRandomWriteCost(t *testing.T) {
	blobs := memory.New(memory.Options{})
	u := use(t, newFS(t, makeBucket(t, blobs, bucket.Unversioned)))
	f := u.open("big", vfs.O_RDWR|vfs.O_CREAT)
	size := int64(1 << 30)
	u.must(f.SetAttr(vfs.SetAttr{Size: &size}))
	u.must(f.Sync())
	r := rand.New(rand.NewPCG(5, 5))
	const writes = 1000
	last := map[int64]byte{}
	for i := range writes {
		at := r.Int64N(size/4096) * 4096
		last[at] = byte(i)
		if _, err := f.WriteAt(bytes.Repeat([]byte{byte(i)}, 4096), at); err != nil {
			t.Fatal(err)
		}
		if i%100 == 99 {
			u.must(f.Sync())
		}
	}
	u.must(f.Close())
	var stored int64
	u.must(blobs.List(ctx, "", func(i blob.Info) error { stored += i.Size; return nil }))
	if stored > 2*writes*4096 {
		t.Errorf("%d bytes are stored for %d that were written", stored, writes*4096)
	}
	f = u.open("big", vfs.O_RDONLY)
	defer f.Close()
	buf := make([]byte, 4097)
	for at, want := range last {
		if n, err := f.ReadAt(buf[:4096], at); n != 4096 || err != nil || !bytes.Equal(buf[:4096], bytes.Repeat([]byte{want}, 4096)) {
			t.Fatalf("at %d: %d bytes, %v, beginning %d, want %d", at, n, err, buf[0], want)
		}
	}
}

// A volume's size holds, counting what isn't written out yet; what is freed can be used again.
func TestSize(t *testing.T) {
	b := newBucket(t)
	fs, err := bucketfs.New(ctx, b, bucketfs.Options{Bytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fs.Close(ctx) })
	u := use(t, fs)
	block := make([]byte, 1<<18)
	one, two := u.open("one", vfs.O_RDWR|vfs.O_CREAT), u.open("two", vfs.O_RDWR|vfs.O_CREAT)
	for range 2 {
		for _, f := range []vfs.File{one, two} {
			if _, err := f.Write(block); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := one.Write([]byte("x")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a byte too many: %v", err)
	}
	u.must(two.Close())
	if _, err := one.Write([]byte("x")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a byte too many after a close: %v", err)
	}
	size := int64(1)
	u.must(one.SetAttr(vfs.SetAttr{Size: &size}))
	if _, err := one.WriteAt(block, 1); err != nil {
		t.Errorf("after a truncation: %v", err)
	}
	u.must(u.ns.Unlink(ctx, root, "/", "two"))
	for i := range 2 {
		if _, err := one.WriteAt(block, int64(i+1)<<18); err != nil {
			t.Errorf("after an unlink: %v", err)
		}
	}
	if st, err := u.ns.StatFS(ctx, root, "/", "/"); err != nil || st.Blocks != 256 {
		t.Errorf("statfs: %+v, %v", st, err)
	}
	u.must(one.Close())
}
