// Package synthfs is a read-only filesystem whose files are given by functions, such as /proc and /dev.
//
// A Node describes a file; the functions in it get the context of the call, so that they can answer for the process that
// asks. Inode numbers derive from paths, so they are stable.
package synthfs

import (
	"context"
	"errors"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	"agentrun.dev/vfs"
)

// Node is a file. What counts depends on the type in Mode; functions may be nil. Nodes aren't changed once they are
// in use.
type Node struct {
	Mode     vfs.Mode // type and permissions
	UID, GID uint32
	Rdev     uint64
	Time     time.Time // zero: when the filesystem was made

	// Children of a directory, beside those that List names and Child finds. Child returns nil for what isn't there.
	Children map[string]*Node
	List     func(ctx context.Context) ([]string, error)
	Child    func(ctx context.Context, name string) (*Node, error)

	// Target of a symbolic link.
	Target func(ctx context.Context) (string, error)

	// Read returns a regular file's contents; it is called once for each time that the file is opened.
	Read func(ctx context.Context) ([]byte, error)

	// Open, where set, opens any file but a directory in its own way; it checks nothing but what is its own affair.
	Open func(ctx context.Context, flags int, c vfs.Cred) (vfs.File, error)
}

// Dir returns a directory with fixed children.
func Dir(children map[string]*Node) *Node {
	return &Node{Mode: vfs.ModeDir | 0o555, Children: children}
}

// File returns a file of mode 0444 whose contents are generated.
func File(read func(ctx context.Context) ([]byte, error)) *Node {
	return &Node{Mode: vfs.ModeRegular | 0o444, Read: read}
}

// Text returns a file of mode 0444 with fixed contents.
func Text(s string) *Node {
	return File(func(context.Context) ([]byte, error) { return []byte(s), nil })
}

// Link returns a symbolic link whose target is generated.
func Link(target func(ctx context.Context) (string, error)) *Node {
	return &Node{Mode: vfs.ModeSymlink | 0o777, Target: target}
}

// LinkTo returns a symbolic link.
func LinkTo(target string) *Node {
	return Link(func(context.Context) (string, error) { return target, nil })
}

// Device returns a character device with Linux's number. Without open it is opened by the mount's Special.
func Device(major, minor uint32, perm vfs.Mode, open func(ctx context.Context, flags int, c vfs.Cred) (vfs.File, error)) *Node {
	return &Node{Mode: vfs.ModeChar | perm, Rdev: Rdev(major, minor), Open: open}
}

// Rdev is Linux's encoding of a device number.
func Rdev(major, minor uint32) uint64 {
	return uint64(major&0xfff)<<8 | uint64(major&^0xfff)<<32 | uint64(minor&0xff) | uint64(minor&^0xff)<<12
}

// FS implements vfs.FS and vfs.Special.
type FS struct {
	made  time.Time
	mu    sync.Mutex
	known map[vfs.Ino]*known
}

// known is an inode that somebody holds a reference to.
type known struct {
	node *Node
	path string
	refs uint64
}

const rootIno = 1

// New returns a filesystem with a root directory.
func New(root *Node) *FS {
	return &FS{made: time.Now(), known: map[vfs.Ino]*known{rootIno: {node: root, refs: 1}}}
}

// inoOf numbers a path.
func inoOf(path string) vfs.Ino {
	h := fnv.New64a()
	h.Write([]byte(path))
	return max(vfs.Ino(h.Sum64()), rootIno+1)
}

func (f *FS) get(ino vfs.Ino) (*Node, string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if k := f.known[ino]; k != nil {
		return k.node, k.path, nil
	}
	return nil, "", syscall.ESTALE
}

// child finds a directory's child; ENOENT.
func (n *Node) child(ctx context.Context, name string) (*Node, error) {
	if c := n.Children[name]; c != nil {
		return c, nil
	}
	if n.Child == nil {
		return nil, syscall.ENOENT
	}
	c, err := n.Child(ctx, name)
	if c == nil && err == nil {
		err = syscall.ENOENT
	}
	return c, err
}

func (f *FS) attr(ino vfs.Ino, n *Node) vfs.Attr {
	t := n.Time
	if t.IsZero() {
		t = f.made
	}
	a := vfs.Attr{Ino: ino, Mode: n.Mode, Nlink: 1, UID: n.UID, GID: n.GID, Rdev: n.Rdev, Atime: t, Mtime: t, Ctime: t}
	if n.Mode.IsDir() {
		a.Nlink = 2
	}
	return a
}

// Root implements vfs.FS.
func (f *FS) Root() vfs.Ino { return rootIno }

// Lookup implements vfs.FS.
func (f *FS) Lookup(ctx context.Context, dir vfs.Ino, name string) (vfs.Attr, error) {
	d, path, err := f.get(dir)
	if err != nil {
		return vfs.Attr{}, err
	}
	if !d.Mode.IsDir() {
		return vfs.Attr{}, syscall.ENOTDIR
	}
	n, err := d.child(ctx, name)
	if err != nil {
		return vfs.Attr{}, err
	}
	path += "/" + name
	ino := inoOf(path)
	f.mu.Lock()
	defer f.mu.Unlock()
	k := f.known[ino]
	for ; k != nil && k.path != path; k = f.known[ino] { // a collision: the next number
		ino++
	}
	if k == nil {
		k = &known{path: path}
		f.known[ino] = k
	}
	k.node = n
	k.refs++
	return f.attr(ino, n), nil
}

// Forget implements vfs.FS.
func (f *FS) Forget(ino vfs.Ino, n uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if k := f.known[ino]; k != nil && ino != rootIno {
		if k.refs -= min(n, k.refs); k.refs == 0 {
			delete(f.known, ino)
		}
	}
}

// GetAttr implements vfs.FS.
func (f *FS) GetAttr(_ context.Context, ino vfs.Ino) (vfs.Attr, error) {
	n, _, err := f.get(ino)
	if err != nil {
		return vfs.Attr{}, err
	}
	return f.attr(ino, n), nil
}

// Readlink implements vfs.FS.
func (f *FS) Readlink(ctx context.Context, ino vfs.Ino) (string, error) {
	n, _, err := f.get(ino)
	if err == nil && (!n.Mode.IsSymlink() || n.Target == nil) {
		err = syscall.EINVAL
	}
	if err != nil {
		return "", err
	}
	return n.Target(ctx)
}

// ReadDir implements vfs.FS: fixed children by name, then those that List names. What is gone by then is left out.
func (f *FS) ReadDir(ctx context.Context, dir vfs.Ino) ([]vfs.DirEntry, error) {
	d, path, err := f.get(dir)
	if err == nil && !d.Mode.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(d.Children))
	if d.List != nil {
		more, err := d.List(ctx)
		if err != nil {
			return nil, err
		}
		names = append(names, more...)
	}
	list := make([]vfs.DirEntry, 0, len(names))
	for _, name := range names {
		n, err := d.child(ctx, name)
		if errors.Is(err, syscall.ENOENT) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, vfs.DirEntry{Name: name, Ino: inoOf(path + "/" + name), Mode: n.Mode & vfs.ModeType})
	}
	return list, nil
}

// OpenSpecial implements vfs.Special.
func (f *FS) OpenSpecial(ctx context.Context, ino vfs.Ino, flags int, c vfs.Cred) (vfs.File, bool, error) {
	n, _, err := f.get(ino)
	if err != nil || n.Open == nil {
		return nil, false, err
	}
	file, err := n.Open(ctx, flags, c)
	return file, err == nil, err
}

// Open implements vfs.FS.
func (f *FS) Open(ctx context.Context, ino vfs.Ino, flags int) (vfs.Handle, error) {
	n, _, err := f.get(ino)
	switch {
	case err != nil:
		return nil, err
	case n.Mode.IsDir():
		return nil, syscall.EISDIR
	case !n.Mode.IsRegular():
		return nil, syscall.ENXIO
	case flags&vfs.O_ACCMODE != vfs.O_RDONLY || flags&vfs.O_TRUNC != 0:
		return nil, syscall.EACCES
	}
	h := &handle{attr: f.attr(ino, n)}
	if n.Read != nil {
		if h.b, err = n.Read(ctx); err != nil {
			return nil, err
		}
	}
	h.attr.Size = int64(len(h.b))
	return h, nil
}

// StatFS implements vfs.FS.
func (f *FS) StatFS(context.Context) (vfs.StatFS, error) {
	const procSuper = 0x9fa0
	return vfs.StatFS{Type: procSuper, BlockSize: 4096}, nil
}

// handle reads the contents as they were when the file was opened.
type handle struct {
	b    []byte
	attr vfs.Attr
}

func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(h.b)) {
		return 0, io.EOF
	}
	n := copy(p, h.b[max(0, off):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (h *handle) WriteAt([]byte, int64) (int, error) { return 0, syscall.EBADF }
func (h *handle) Append([]byte) (int64, error)       { return 0, syscall.EBADF }
func (h *handle) Truncate(int64) error               { return syscall.EINVAL }
func (h *handle) Attr() (vfs.Attr, error)            { return h.attr, nil }
func (h *handle) Sync(context.Context) error         { return nil }
func (h *handle) Close() error                       { return nil }

// What follows would change the filesystem, which is read-only.

// SetAttr implements vfs.FS: EPERM.
func (f *FS) SetAttr(context.Context, vfs.Ino, vfs.SetAttr) (vfs.Attr, error) {
	return vfs.Attr{}, syscall.EPERM
}

// Create implements vfs.FS: EROFS.
func (f *FS) Create(context.Context, vfs.Ino, string, vfs.Mode, vfs.Cred) (vfs.Attr, error) {
	return vfs.Attr{}, syscall.EROFS
}

// Mknod implements vfs.FS: EROFS.
func (f *FS) Mknod(context.Context, vfs.Ino, string, vfs.Mode, uint64, vfs.Cred) (vfs.Attr, error) {
	return vfs.Attr{}, syscall.EROFS
}

// Mkdir implements vfs.FS: EROFS.
func (f *FS) Mkdir(context.Context, vfs.Ino, string, vfs.Mode, vfs.Cred) (vfs.Attr, error) {
	return vfs.Attr{}, syscall.EROFS
}

// Symlink implements vfs.FS: EROFS.
func (f *FS) Symlink(context.Context, vfs.Ino, string, string, vfs.Cred) (vfs.Attr, error) {
	return vfs.Attr{}, syscall.EROFS
}

// Link implements vfs.FS: EROFS.
func (f *FS) Link(context.Context, vfs.Ino, vfs.Ino, string) (vfs.Attr, error) {
	return vfs.Attr{}, syscall.EROFS
}

// Unlink implements vfs.FS: EROFS.
func (f *FS) Unlink(context.Context, vfs.Ino, string) error { return syscall.EROFS }

// Rmdir implements vfs.FS: EROFS.
func (f *FS) Rmdir(context.Context, vfs.Ino, string) error { return syscall.EROFS }

// Rename implements vfs.FS: EROFS.
func (f *FS) Rename(context.Context, vfs.Ino, string, vfs.Ino, string, uint32) error {
	return syscall.EROFS
}
