package vfstest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"

	"agentrun.dev/vfs"
)

// Run runs everything that a filesystem must pass.
func Run(t *testing.T, c Config) {
	t.Run("errors", func(t *testing.T) { testErrors(t, newEnv(t, c)) })
	t.Run("rename", func(t *testing.T) { testRename(t, c) })
	t.Run("unlinked", func(t *testing.T) { testUnlinked(t, newEnv(t, c)) })
	t.Run("shared", func(t *testing.T) { testShared(t, newEnv(t, c)) })
	t.Run("append", func(t *testing.T) { testAppend(t, newEnv(t, c)) })
	t.Run("sparse", func(t *testing.T) { testSparse(t, newEnv(t, c)) })
	t.Run("times", func(t *testing.T) { testTimes(t, newEnv(t, c)) })
	t.Run("listing", func(t *testing.T) { testListing(t, newEnv(t, c)) })
	t.Run("iofs", func(t *testing.T) { testIOFS(t, newEnv(t, c)) })
	t.Run("concurrent", func(t *testing.T) { testConcurrent(t, newEnv(t, c)) })
	if !c.NoLinks {
		t.Run("links", func(t *testing.T) { testLinks(t, newEnv(t, c)) })
	}
	if !c.NoOwners {
		t.Run("permissions", func(t *testing.T) { testPermissions(t, newEnv(t, c)) })
	}
	t.Run("differential", func(t *testing.T) { Differential(t, c) })
}

// env is a namespace over a new filesystem, with calls that end the test on errors.
type env struct {
	*testing.T
	c  Config
	fs vfs.FS
	ns *vfs.Namespace
}

var (
	ctx  = context.Background()
	root = vfs.Cred{Umask: 0o022}
	none = vfs.Cred{UID: 1000, GID: 1000, Umask: 0o022}
)

func newEnv(t *testing.T, c Config) *env {
	fs := c.New(t)
	return &env{t, c, fs, vfs.NewNamespace(vfs.Mount{FS: fs})}
}

func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

func (e *env) want(what string, err error, no syscall.Errno) {
	e.Helper()
	if no == 0 && err == nil {
		return
	}
	if !errors.Is(err, no) {
		e.Errorf("%s: %v, want %v", what, err, error(no))
	}
}

func (e *env) open(path string, flags int) vfs.File {
	e.Helper()
	f, err := e.ns.Open(ctx, root, "/", path, flags, 0o644)
	e.must(err)
	return f
}

func (e *env) write(path, text string) {
	e.Helper()
	f := e.open(path, vfs.O_WRONLY|vfs.O_CREAT|vfs.O_TRUNC)
	_, err := f.Write([]byte(text))
	e.must(err)
	e.must(f.Close())
}

func (e *env) read(path string) string {
	e.Helper()
	f := e.open(path, vfs.O_RDONLY)
	defer f.Close()
	b, err := io.ReadAll(f)
	e.must(err)
	return string(b)
}

func (e *env) stat(path string) vfs.Attr {
	e.Helper()
	a, err := e.ns.Lstat(ctx, root, "/", path)
	e.must(err)
	return a
}

// testErrors checks exact errors of paths that name something in an awkward way.
func testErrors(t *testing.T, e *env) {
	e.must(e.ns.Mkdir(ctx, root, "/", "dir", 0o755))
	e.must(e.ns.Mkdir(ctx, root, "/", "dir/sub", 0o755))
	e.write("file", "text")
	if !e.c.NoSymlinks {
		e.must(e.ns.Symlink(ctx, root, "/", "dir", "link"))
		e.must(e.ns.Symlink(ctx, root, "/", "nowhere", "dangling"))
		e.must(e.ns.Symlink(ctx, root, "/", "loop", "loop"))
	}
	long := strings.Repeat("n", 256)
	deep := strings.Repeat("d/", 2050)
	type call struct {
		name string
		do   func(p string) error
	}
	open := func(flags int) func(string) error {
		return func(p string) error {
			f, err := e.ns.Open(ctx, root, "/", p, flags, 0o644)
			if err == nil {
				f.Close()
			}
			return err
		}
	}
	calls := map[string]call{
		"stat":    {"stat", func(p string) error { _, err := e.ns.Stat(ctx, root, "/", p); return err }},
		"lstat":   {"lstat", func(p string) error { _, err := e.ns.Lstat(ctx, root, "/", p); return err }},
		"read":    {"read", open(vfs.O_RDONLY)},
		"dir":     {"dir", open(vfs.O_RDONLY | vfs.O_DIRECTORY)},
		"nofol":   {"nofol", open(vfs.O_RDONLY | vfs.O_NOFOLLOW)},
		"write":   {"write", open(vfs.O_WRONLY)},
		"create":  {"create", open(vfs.O_WRONLY | vfs.O_CREAT)},
		"excl":    {"excl", open(vfs.O_WRONLY | vfs.O_CREAT | vfs.O_EXCL)},
		"mkdir":   {"mkdir", func(p string) error { return e.ns.Mkdir(ctx, root, "/", p, 0o755) }},
		"rmdir":   {"rmdir", func(p string) error { return e.ns.Rmdir(ctx, root, "/", p) }},
		"unlink":  {"unlink", func(p string) error { return e.ns.Unlink(ctx, root, "/", p) }},
		"readdir": {"readdir", func(p string) error { _, err := e.ns.ReadDir(ctx, root, "/", p); return err }},
		"symlink": {"symlink", func(p string) error { return e.ns.Symlink(ctx, root, "/", "x", p) }},
		"from":    {"from", func(p string) error { return e.ns.Rename(ctx, root, "/", p, "renamed", 0) }},
		"to":      {"to", func(p string) error { return e.ns.Rename(ctx, root, "/", "file", p, 0) }},
	}
	for _, c := range []struct {
		calls, path string
		want        syscall.Errno
		links       bool // needs symbolic links
	}{
		{"stat lstat read create mkdir rmdir unlink readdir symlink from to", "", syscall.ENOENT, false},
		{"stat lstat read create mkdir rmdir unlink readdir symlink from to", long, syscall.ENAMETOOLONG, false},
		{"stat lstat read create mkdir rmdir unlink readdir symlink from to", deep, syscall.ENAMETOOLONG, false},
		{"stat lstat read create mkdir rmdir unlink readdir symlink from to", "missing/x", syscall.ENOENT, false},
		{"stat lstat read create mkdir rmdir unlink readdir symlink from to", "file/x", syscall.ENOTDIR, false},
		{"stat lstat read rmdir unlink readdir from", "missing", syscall.ENOENT, false},
		{"stat lstat read write rmdir unlink readdir from dir", "file/", syscall.ENOTDIR, false},
		{"create", "file/", syscall.EISDIR, false},
		{"create", "new/", syscall.EISDIR, false},
		{"symlink", "new/", syscall.ENOENT, false},
		{"to", "new/", syscall.ENOTDIR, false},
		{"write create", "dir", syscall.EISDIR, false},
		{"excl mkdir symlink", "dir", syscall.EEXIST, false},
		{"excl mkdir symlink", "file", syscall.EEXIST, false},
		{"dir readdir rmdir", "file", syscall.ENOTDIR, false},
		{"unlink to", "dir", syscall.EISDIR, false},
		{"unlink", "dir/", syscall.EISDIR, false},
		{"rmdir", "dir", syscall.ENOTEMPTY, false},
		{"rmdir", "dir/.", syscall.EINVAL, false},
		{"rmdir", "dir/sub/..", syscall.ENOTEMPTY, false},
		{"rmdir from", "/", syscall.EBUSY, false},
		{"unlink", "/", syscall.EISDIR, false},
		{"mkdir", "/", syscall.EEXIST, false},
		{"mkdir", "dir/..", syscall.EEXIST, false},
		{"unlink", "dir/.", syscall.EISDIR, false},
		{"from to", "dir/.", syscall.EBUSY, false},
		{"stat read create readdir", "loop", syscall.ELOOP, true},
		{"nofol", "link", syscall.ELOOP, true},
		{"nofol", "dangling", syscall.ELOOP, true},
		{"stat read", "dangling", syscall.ENOENT, true},
		{"excl mkdir symlink", "dangling", syscall.EEXIST, true},
		{"rmdir", "link", syscall.ENOTDIR, true},
		{"rmdir unlink", "link/", syscall.ENOTDIR, true},
		{"mkdir", "dangling/", syscall.EEXIST, true},
	} {
		if c.links && e.c.NoSymlinks {
			continue
		}
		for _, name := range strings.Fields(c.calls) {
			k, ok := calls[name]
			if !ok {
				continue
			}
			e.want(fmt.Sprintf("%s %.40q", k.name, c.path), k.do(c.path), c.want)
		}
	}
	if got := e.read("file"); got != "text" {
		t.Errorf("after all these errors the file holds %q", got)
	}
}

// testRename tries every kind of thing onto every other.
func testRename(t *testing.T, c Config) {
	kinds := []string{"file", "empty", "full", "missing"}
	if !c.NoSymlinks {
		kinds = append(kinds, "link")
	}
	wants := func(from, to string, flags uint32) syscall.Errno {
		isDir := func(k string) bool { return k == "empty" || k == "full" }
		switch {
		case from == "missing":
			return syscall.ENOENT
		case flags == vfs.RenameNoReplace && to != "missing":
			return syscall.EEXIST
		case flags == vfs.RenameExchange && to == "missing":
			return syscall.ENOENT
		case flags == vfs.RenameExchange || to == "missing":
			return 0
		case isDir(from) && !isDir(to):
			return syscall.ENOTDIR
		case !isDir(from) && isDir(to):
			return syscall.EISDIR
		case to == "full":
			return syscall.ENOTEMPTY
		}
		return 0
	}
	for _, flags := range []uint32{0, vfs.RenameNoReplace, vfs.RenameExchange} {
		if c.NoExchange && flags == vfs.RenameExchange {
			continue
		}
		for _, from := range kinds {
			for _, to := range kinds {
				e := newEnv(t, c)
				for name, kind := range map[string]string{"a": from, "b": to} {
					switch kind {
					case "file":
						e.write(name, "contents of "+name)
					case "link":
						e.must(e.ns.Symlink(ctx, root, "/", "target of "+name, name))
					case "full":
						e.must(e.ns.Mkdir(ctx, root, "/", name, 0o755))
						e.write(name+"/in", "in "+name)
					case "empty":
						e.must(e.ns.Mkdir(ctx, root, "/", name, 0o755))
					}
				}
				before := Tree(t, e.fs)
				what := fmt.Sprintf("rename %s to %s, flags %d", from, to, flags)
				want := wants(from, to, flags)
				e.want(what, e.ns.Rename(ctx, root, "/", "a", "b", flags), want)
				after := Tree(t, e.fs)
				if want != 0 {
					if !slices.Equal(before, after) {
						t.Errorf("%s: it failed and changed\n%s\nto\n%s", what, strings.Join(before, "\n"), strings.Join(after, "\n"))
					}
					continue
				}
				expect := renamed(before, flags)
				if !slices.Equal(after, expect) {
					t.Errorf("%s: got\n%s\nwant\n%s", what, strings.Join(after, "\n"), strings.Join(expect, "\n"))
				}
			}
		}
	}
}

// renamed is a tree's description after a became b.
func renamed(tree []string, flags uint32) []string {
	var out []string
	for _, line := range tree {
		switch {
		case strings.HasPrefix(line, "/a"):
			out = append(out, "/b"+line[2:])
		case flags == vfs.RenameExchange:
			out = append(out, "/a"+line[2:])
		}
	}
	slices.Sort(out)
	return out
}
