package vfstest

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"agentrun.dev/vfs"
)

// Differential runs the same random operations on a filesystem and on a real directory of this machine, and compares every
// result and the trees at the end. It needs root, and skips without.
func Differential(t *testing.T, c Config) {
	differential(t, c, func(_ testing.TB, fs vfs.FS) doer { return &subject{ns: vfs.NewNamespace(vfs.Mount{FS: fs})} })
}

// DifferentialMounted does as Differential with a filesystem that the kernel itself reaches, by a mount that lives as long as its
// test: what a program sees there is what it sees in a real directory.
func DifferentialMounted(t *testing.T, c Config, mount func(t testing.TB, fs vfs.FS) (dir string)) {
	differential(t, c, func(t testing.TB, fs vfs.FS) doer { return newKernel(t, mount(t, fs)) })
}

// doer is what operations are done on.
type doer interface {
	do(o op) string
	close()
}

func differential(t *testing.T, c Config, on func(t testing.TB, fs vfs.FS) doer) {
	base := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		dir := filepath.Join(base, fmt.Sprint(n))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		k := newKernel(tb{t, rt}, dir)
		fs := c.New(tb{t, rt})
		s := on(tb{t, rt}, fs)
		defer s.close()
		gen := genOp(c)
		var log []string
		var opener [slots]uint32
		for range rapid.IntRange(1, 60).Draw(rt, "length") {
			o := gen.Draw(rt, "op")
			switch o.call {
			case "open":
				opener[o.slot] = o.uid
			case "read", "pread", "write", "pwrite", "seek", "ftruncate", "fstat", "fchmod", "close":
				o.uid = opener[o.slot] // a File acts for whoever opened it
			}
			want, got := k.do(o), s.do(o)
			log = append(log, o.String()+" → "+want)
			if got != want {
				rt.Fatalf("%s\n got %s\nwant %s", strings.Join(log, "\n"), got, want)
			}
		}
		compareTrees(rt, k, s, log)
		if c.Check != nil {
			s.close()
			c.Check(rt, fs)
		}
		_ = os.RemoveAll(dir)
	})
}

// tb cleans up with the rapid case and not with the whole test.
type tb struct {
	testing.TB
	rt *rapid.T
}

func (t tb) Cleanup(f func()) { t.rt.Cleanup(f) }

// compareTrees walks both sides.
func compareTrees(rt *rapid.T, k *kernel, s doer, log []string) {
	var visit func(dir string, depth int)
	visit = func(dir string, depth int) {
		list := op{call: "readdir", path: dir}
		want, got := k.do(list), s.do(list)
		if got != want {
			rt.Fatalf("%s\n%s holds %s\n want %s", strings.Join(log, "\n"), dir, got, want)
		}
		for _, name := range strings.Fields(want)[1:] {
			p := filepath.Join(dir, name)
			for _, call := range []string{"lstat", "readlink"} {
				o := op{call: call, path: p}
				if want, got := k.do(o), s.do(o); got != want {
					rt.Fatalf("%s\n%s is %s\n want %s", strings.Join(log, "\n"), p, got, want)
				}
			}
			switch st := k.do(op{call: "lstat", path: p}); {
			case strings.HasPrefix(st, "ok 4") && depth < 20:
				visit(p, depth+1)
			case strings.HasPrefix(st, "ok 10"):
				k.do(op{call: "open", path: p})
				s.do(op{call: "open", path: p})
				for off := int64(0); off < 300000; off += 5000 {
					o := op{call: "pread", off: off}
					if want, got := k.do(o), s.do(o); got != want {
						rt.Fatalf("%s\n%s at %d has %s\n want %s", strings.Join(log, "\n"), p, off, got, want)
					}
				}
			}
		}
	}
	visit("/", 0)
}

// subject runs operations on a Namespace.
type subject struct {
	ns    *vfs.Namespace
	files [slots]vfs.File
}

func (s *subject) close() {
	for i, f := range s.files {
		if f != nil {
			f.Close()
		}
		s.files[i] = nil
	}
}

// do runs an operation and words its result as kernel.do does.
func (s *subject) do(o op) string {
	ctx := context.Background()
	c := vfs.Cred{UID: o.uid, GID: o.uid, Umask: 0o022}
	if o.uid != 0 {
		c.Groups = []uint32{group}
	}
	if r, ok := s.doFile(ctx, c, o); ok {
		return r
	}
	mode := vfs.Mode(o.mode)
	switch o.call {
	case "stat":
		a, err := s.ns.Stat(ctx, c, "/", o.path)
		return word(err) + vfsAttrWord(err, a)
	case "lstat":
		a, err := s.ns.Lstat(ctx, c, "/", o.path)
		return word(err) + vfsAttrWord(err, a)
	case "access":
		return word(s.ns.Access(ctx, c, "/", o.path, mode))
	case "mkdir":
		return word(s.ns.Mkdir(ctx, c, "/", o.path, mode))
	case "mkfifo":
		return word(s.ns.Mknod(ctx, c, "/", o.path, vfs.ModeFIFO|mode, 0))
	case "unlink":
		return word(s.ns.Unlink(ctx, c, "/", o.path))
	case "rmdir":
		return word(s.ns.Rmdir(ctx, c, "/", o.path))
	case "rename":
		return word(s.ns.Rename(ctx, c, "/", o.path, o.to, uint32(o.flags)))
	case "symlink":
		return word(s.ns.Symlink(ctx, c, "/", o.to, o.path))
	case "link":
		return word(s.ns.Link(ctx, c, "/", o.path, o.to))
	case "readlink":
		target, err := s.ns.Readlink(ctx, c, "/", o.path)
		return word(err) + " " + target
	case "chmod":
		return word(s.ns.SetAttr(ctx, c, "/", o.path, vfs.SetAttr{Mode: &mode}, true))
	case "chown", "lchown":
		var a vfs.SetAttr
		if uid := uint32(o.off); o.off >= 0 {
			a.UID = &uid
		}
		if gid := uint32(o.flags); o.flags >= 0 {
			a.GID = &gid
		}
		return word(s.ns.SetAttr(ctx, c, "/", o.path, a, o.call == "chown"))
	case "truncate":
		return word(s.ns.SetAttr(ctx, c, "/", o.path, vfs.SetAttr{Size: &o.off}, true))
	case "readdir":
		list, err := s.ns.ReadDir(ctx, c, "/", o.path)
		if err != nil {
			return word(err)
		}
		var names []string
		for _, e := range list {
			names = append(names, e.Name)
		}
		slices.Sort(names)
		return "ok " + strings.Join(names, " ")
	case "setxattr":
		return word(s.ns.SetXattr(ctx, c, "/", o.path, o.name, o.data, o.flags, true))
	case "getxattr":
		v, err := s.ns.GetXattr(ctx, c, "/", o.path, o.name, true)
		return word(err) + " " + string(v)
	case "listxattr":
		names, err := s.ns.ListXattr(ctx, c, "/", o.path, true)
		return word(err) + fmt.Sprint(names)
	case "removexattr":
		return word(s.ns.RemoveXattr(ctx, c, "/", o.path, o.name, true))
	}
	panic("no such call: " + o.call)
}

// doFile runs operations on open files.
func (s *subject) doFile(ctx context.Context, c vfs.Cred, o op) (string, bool) {
	f := s.files[o.slot]
	if o.call == "open" {
		if f != nil {
			f.Close()
		}
		f, err := s.ns.Open(ctx, c, "/", o.path, o.flags, vfs.Mode(o.mode))
		s.files[o.slot] = nil
		if err == syscall.ENXIO {
			return "fifo", true
		}
		if err == nil {
			s.files[o.slot] = f
		}
		return word(err), true
	}
	switch o.call {
	case "read", "pread", "write", "pwrite", "seek", "ftruncate", "fstat", "fchmod", "close":
	default:
		return "", false
	}
	if f == nil {
		f = noFile{}
	}
	switch o.call {
	case "read", "pread":
		b := make([]byte, 5000)
		var n int
		var err error
		if o.call == "read" {
			n, err = f.Read(b)
		} else {
			n, err = f.ReadAt(b, o.off)
		}
		if err == io.EOF {
			err = nil
		}
		return bytesWord(err, b[:n]), true
	case "write":
		n, err := f.Write(o.data)
		return fmt.Sprint(word(err), n), true
	case "pwrite":
		n, err := f.WriteAt(o.data, o.off)
		return fmt.Sprint(word(err), n), true
	case "seek":
		if a, err := f.Attr(); err == nil && a.Mode.IsDir() {
			return "directory", true
		}
		n, err := f.Seek(o.off, o.flags)
		return fmt.Sprint(word(err), n), true
	case "ftruncate":
		return word(f.SetAttr(vfs.SetAttr{Size: &o.off})), true
	case "fstat":
		a, err := f.Attr()
		return word(err) + vfsAttrWord(err, a), true
	case "fchmod":
		mode := vfs.Mode(o.mode)
		return word(f.SetAttr(vfs.SetAttr{Mode: &mode})), true
	default:
		s.files[o.slot] = nil
		return word(f.Close()), true
	}
}

func vfsAttrWord(err error, a vfs.Attr) string {
	if err != nil {
		return ""
	}
	return attrWord(uint32(a.Mode), a.Nlink, a.UID, a.GID, a.Size, a.Rdev)
}

// noFile is a descriptor that isn't open.
type noFile struct{}

func (noFile) Read([]byte) (int, error)           { return 0, syscall.EBADF }
func (noFile) Write([]byte) (int, error)          { return 0, syscall.EBADF }
func (noFile) ReadAt([]byte, int64) (int, error)  { return 0, syscall.EBADF }
func (noFile) WriteAt([]byte, int64) (int, error) { return 0, syscall.EBADF }
func (noFile) Seek(int64, int) (int64, error)     { return 0, syscall.EBADF }
func (noFile) Close() error                       { return syscall.EBADF }
func (noFile) Attr() (vfs.Attr, error)            { return vfs.Attr{}, syscall.EBADF }
func (noFile) SetAttr(vfs.SetAttr) error          { return syscall.EBADF }
func (noFile) ReadDir() ([]vfs.DirEntry, error)   { return nil, syscall.EBADF }
func (noFile) Sync() error                        { return syscall.EBADF }
func (noFile) Flags() int                         { return 0 }

// Tree describes everything in a filesystem, a line for each path: for comparing two.
func Tree(t Failer, fs vfs.FS) []string {
	ctx := context.Background()
	ns := vfs.NewNamespace(vfs.Mount{FS: fs})
	var lines []string
	var visit func(dir string)
	visit = func(dir string) {
		list, err := ns.ReadDir(ctx, vfs.Cred{}, "", dir)
		if err != nil {
			t.Fatalf("listing %s: %v", dir, err)
		}
		for _, e := range list {
			p := filepath.Join(dir, e.Name)
			a, err := ns.Lstat(ctx, vfs.Cred{}, "", p)
			if err != nil {
				t.Fatalf("lstat %s: %v", p, err)
			}
			if a.Mode&vfs.ModeType != e.Mode || a.Ino != e.Ino {
				t.Fatalf("%s is listed as %o, inode %d, and is %o, inode %d", p, e.Mode, e.Ino, a.Mode, a.Ino)
			}
			line := p + vfsAttrWord(nil, a)
			switch names, err := ns.ListXattr(ctx, vfs.Cred{}, "", p, false); {
			case err == nil:
				line += fmt.Sprint(" ", names)
			case err != syscall.EOPNOTSUPP:
				t.Fatalf("listing attributes of %s: %v", p, err)
			}
			switch {
			case a.Mode.IsSymlink():
				target, err := ns.Readlink(ctx, vfs.Cred{}, "", p)
				if err != nil {
					t.Fatalf("readlink %s: %v", p, err)
				}
				line += " → " + target
			case a.Mode.IsRegular():
				f, err := ns.Open(ctx, vfs.Cred{}, "", p, vfs.O_RDONLY, 0)
				if err != nil {
					t.Fatalf("open %s: %v", p, err)
				}
				b, err := io.ReadAll(f)
				f.Close()
				line += " " + bytesWord(err, b)
			}
			lines = append(lines, line)
			if a.Mode.IsDir() {
				visit(p)
			}
		}
	}
	visit("/")
	return lines
}

// Failer is what Tree needs of a test.
type Failer interface {
	Fatalf(format string, args ...any)
}
