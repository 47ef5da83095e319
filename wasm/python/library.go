package python

import (
	"archive/zip"
	"bytes"
	"context"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/vfs"
)

// library is the standard library as a read-only filesystem: a tree whose files are unpacked from an archive when they are opened. One serves
// any number of sandboxes. Contents that were read are kept, up to cacheLimit bytes: the same modules are imported again and again.
type library struct {
	archive func() ([]byte, error)
	once    sync.Once
	err     error
	nodes   []node
	time    time.Time
	cached  atomic.Int64
}

const cacheLimit = 32 << 20

// node is a file or directory; its inode number is its place in library.nodes, plus one.
type node struct {
	name     string
	file     *zip.File // nil for a directory
	children map[string]vfs.Ino
	list     []vfs.DirEntry
	once     sync.Mutex
	data     atomic.Pointer[[]byte]
}

// newLibrary returns a library whose archive's table of contents is read when somebody first looks.
func newLibrary(archive func() ([]byte, error)) *library {
	return &library{archive: archive, time: time.Date(2023, 2, 7, 0, 0, 0, 0, time.UTC)}
}

func (l *library) load() error {
	data, err := l.archive()
	if err != nil {
		return err
	}
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return errs.New(errs.Corrupt, "open", "the Python library", err)
	}
	l.nodes = make([]node, 0, len(z.File)*5/4+64)
	dirs := map[string]vfs.Ino{".": l.add("", nil)}
	for _, f := range z.File {
		if !strings.HasSuffix(f.Name, "/") {
			l.enter(dirs, path.Dir(f.Name), path.Base(f.Name), f)
		}
	}
	for i := range l.nodes {
		slices.SortFunc(l.nodes[i].list, func(a, b vfs.DirEntry) int { return strings.Compare(a.Name, b.Name) })
	}
	return nil
}

func (l *library) add(name string, f *zip.File) vfs.Ino {
	l.nodes = append(l.nodes, node{})
	n := &l.nodes[len(l.nodes)-1]
	n.name, n.file = name, f
	if f == nil {
		n.children = make(map[string]vfs.Ino)
	}
	return vfs.Ino(len(l.nodes))
}

// enter puts a file, or a directory when f is nil, into its directory, which is made if need be. It returns the number.
func (l *library) enter(dirs map[string]vfs.Ino, dir, name string, f *zip.File) vfs.Ino {
	parent, ok := dirs[dir]
	if !ok {
		parent = l.enter(dirs, path.Dir(dir), path.Base(dir), nil)
		dirs[dir] = parent
	}
	ino := l.add(name, f)
	mode := vfs.ModeRegular
	if f == nil {
		mode = vfs.ModeDir
	}
	d := &l.nodes[parent-1]
	d.children[name] = ino
	d.list = append(d.list, vfs.DirEntry{Name: name, Ino: ino, Mode: mode})
	return ino
}

func (l *library) node(ino vfs.Ino) (*node, error) {
	if l.once.Do(func() { l.err = l.load() }); l.err != nil {
		return nil, syscall.EIO
	}
	if ino < 1 || int(ino) > len(l.nodes) {
		return nil, syscall.ESTALE
	}
	return &l.nodes[ino-1], nil
}

func (l *library) attr(ino vfs.Ino, n *node) vfs.Attr {
	a := vfs.Attr{Ino: ino, Mode: vfs.ModeDir | 0o755, Nlink: 2, Size: 4096, Blocks: 8, Atime: l.time, Mtime: l.time, Ctime: l.time}
	if n.file != nil {
		a.Mode, a.Nlink, a.Size = vfs.ModeRegular|0o644, 1, int64(n.file.UncompressedSize64)
		a.Blocks = (a.Size + 511) / 512
	}
	return a
}

// read returns a file's contents, which must not be changed.
func (l *library) read(n *node) ([]byte, error) {
	if p := n.data.Load(); p != nil {
		return *p, nil
	}
	n.once.Lock()
	defer n.once.Unlock()
	if p := n.data.Load(); p != nil {
		return *p, nil
	}
	r, err := n.file.Open()
	if err != nil {
		return nil, syscall.EIO
	}
	defer r.Close()
	data := make([]byte, n.file.UncompressedSize64)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, syscall.EIO
	}
	if l.cached.Add(int64(len(data))) <= cacheLimit {
		n.data.Store(&data)
	} else {
		l.cached.Add(-int64(len(data)))
	}
	return data, nil
}

func (l *library) Root() vfs.Ino { return 1 }

func (l *library) Lookup(_ context.Context, dir vfs.Ino, name string) (vfs.Attr, error) {
	d, err := l.node(dir)
	if err != nil {
		return vfs.Attr{}, err
	}
	if d.children == nil {
		return vfs.Attr{}, syscall.ENOTDIR
	}
	ino, ok := d.children[name]
	if !ok {
		return vfs.Attr{}, syscall.ENOENT
	}
	return l.attr(ino, &l.nodes[ino-1]), nil
}

func (l *library) GetAttr(_ context.Context, ino vfs.Ino) (vfs.Attr, error) {
	if ino == l.Root() { // without looking into the archive: everybody who mounts it asks this
		return l.attr(ino, &node{}), nil
	}
	n, err := l.node(ino)
	if err != nil {
		return vfs.Attr{}, err
	}
	return l.attr(ino, n), nil
}

func (l *library) ReadDir(_ context.Context, dir vfs.Ino) ([]vfs.DirEntry, error) {
	d, err := l.node(dir)
	switch {
	case err != nil:
		return nil, err
	case d.children == nil:
		return nil, syscall.ENOTDIR
	}
	return slices.Clone(d.list), nil
}

func (l *library) Open(_ context.Context, ino vfs.Ino, flags int) (vfs.Handle, error) {
	n, err := l.node(ino)
	switch {
	case err != nil:
		return nil, err
	case n.file == nil:
		return nil, syscall.EISDIR
	case flags&(syscall.O_ACCMODE|syscall.O_TRUNC) != syscall.O_RDONLY:
		return nil, syscall.EROFS
	}
	data, err := l.read(n)
	if err != nil {
		return nil, err
	}
	return &handle{data, l.attr(ino, n)}, nil
}

func (l *library) Readlink(context.Context, vfs.Ino) (string, error) { return "", syscall.EINVAL }
func (l *library) StatFS(context.Context) (vfs.StatFS, error) {
	return vfs.StatFS{Type: 0x73717368, BlockSize: 4096, Files: uint64(len(l.nodes))}, nil
}
func (l *library) Forget(vfs.Ino, uint64) {}

// What would change it is refused.

func (l *library) SetAttr(context.Context, vfs.Ino, vfs.SetAttr) (vfs.Attr, error) {
	return vfs.Attr{}, syscall.EROFS
}
func (l *library) Create(context.Context, vfs.Ino, string, vfs.Mode, vfs.Cred) (vfs.Attr, error) {
	return vfs.Attr{}, syscall.EROFS
}
func (l *library) Mknod(context.Context, vfs.Ino, string, vfs.Mode, uint64, vfs.Cred) (vfs.Attr, error) {
	return vfs.Attr{}, syscall.EROFS
}
func (l *library) Mkdir(context.Context, vfs.Ino, string, vfs.Mode, vfs.Cred) (vfs.Attr, error) {
	return vfs.Attr{}, syscall.EROFS
}
func (l *library) Symlink(context.Context, vfs.Ino, string, string, vfs.Cred) (vfs.Attr, error) {
	return vfs.Attr{}, syscall.EROFS
}
func (l *library) Link(context.Context, vfs.Ino, vfs.Ino, string) (vfs.Attr, error) {
	return vfs.Attr{}, syscall.EROFS
}
func (l *library) Unlink(context.Context, vfs.Ino, string) error { return syscall.EROFS }
func (l *library) Rmdir(context.Context, vfs.Ino, string) error  { return syscall.EROFS }
func (l *library) Rename(context.Context, vfs.Ino, string, vfs.Ino, string, uint32) error {
	return syscall.EROFS
}

// handle is an open file of the library.
type handle struct {
	data []byte
	attr vfs.Attr
}

func (h *handle) ReadAt(b []byte, off int64) (int, error) {
	if off >= int64(len(h.data)) {
		return 0, io.EOF
	}
	n := copy(b, h.data[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}
func (h *handle) WriteAt([]byte, int64) (int, error) { return 0, syscall.EROFS }
func (h *handle) Append([]byte) (int64, error)       { return 0, syscall.EROFS }
func (h *handle) Truncate(int64) error               { return syscall.EROFS }
func (h *handle) Attr() (vfs.Attr, error)            { return h.attr, nil }
func (h *handle) Sync(context.Context) error         { return nil }
func (h *handle) Close() error                       { return nil }
