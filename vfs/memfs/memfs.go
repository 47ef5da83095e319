// Package memfs is a filesystem in memory, for /tmp and tests.
//
// It keeps everything that the vfs contract knows: hard links, device nodes, extended attributes, sparse files. Reading
// doesn't change access times (as under noatime). Clone copies it in time proportional to the number of inodes: bytes are
// shared in pages until one side writes.
package memfs

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	"agentrun.dev/vfs"
)

// Options of a filesystem.
type Options struct {
	Bytes    int64    // of file contents, in whole pages; 0 is 256 MiB
	Inodes   int      // 0 is 65,536
	Mode     vfs.Mode // of the root; 0 is 0755
	UID, GID uint32   // of the root
	Now      func() time.Time
}

// FS implements vfs.FS and vfs.Xattrs.
type FS struct {
	opt Options

	mu    sync.RWMutex
	nodes map[vfs.Ino]*node
	next  vfs.Ino
	used  int64
	token *token // of pages that this filesystem alone holds
}

type token struct{ _ byte }

// node is an inode. Everything is guarded by FS.mu.
type node struct {
	attr     vfs.Attr
	parent   vfs.Ino // of directories
	children map[string]vfs.Ino
	link     string
	xattrs   map[string][]byte
	pages    []page
	bytes    int64  // in pages
	refs     uint64 // given out by Lookup and the like
	opens    int
}

const rootIno = 1

// New returns an empty filesystem.
func New(o Options) *FS {
	o.Bytes = cmp.Or(o.Bytes, 256<<20)
	o.Inodes = cmp.Or(o.Inodes, 1<<16)
	o.Mode = cmp.Or(o.Mode, 0o755)
	if o.Now == nil {
		o.Now = time.Now
	}
	f := &FS{opt: o, nodes: map[vfs.Ino]*node{}, next: rootIno, token: new(token)}
	root := f.make(vfs.ModeDir|o.Mode&vfs.ModePerm, vfs.Cred{UID: o.UID, GID: o.GID})
	root.attr.Nlink = 2
	root.parent = rootIno
	return f
}

// Clone returns a copy, as a fork needs. Unlinked inodes that are open are copied too, and stay until opened and closed.
func (f *FS) Clone() *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.copy()
}

// Fresh returns a copy of a filesystem that serves as a pattern: all in it was made now, by the copy's clock, time.Now if
// now is nil.
func (f *FS) Fresh(now func() time.Time) *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.copy()
	if c.opt.Now = now; now == nil {
		c.opt.Now = time.Now
	}
	t := c.opt.Now()
	for _, n := range c.nodes {
		n.attr.Atime, n.attr.Mtime, n.attr.Ctime = t, t, t
	}
	return c
}

func (f *FS) copy() *FS {
	c := &FS{opt: f.opt, nodes: make(map[vfs.Ino]*node, len(f.nodes)), next: f.next, used: f.used, token: new(token)}
	f.token = new(token) // neither side owns the pages that both see
	var some []node      // made together
	for ino, n := range f.nodes {
		if len(some) == 0 {
			some = make([]node, min(32, len(f.nodes)-len(c.nodes)))
		}
		d := &some[0]
		some = some[1:]
		*d = *n
		d.children, d.xattrs, d.pages = maps.Clone(n.children), maps.Clone(n.xattrs), slices.Clone(n.pages)
		d.refs, d.opens = 0, 0
		c.nodes[ino] = d
	}
	return c
}

// make adds an inode without a name.
func (f *FS) make(mode vfs.Mode, c vfs.Cred) *node {
	now := f.opt.Now()
	n := &node{attr: vfs.Attr{Ino: f.next, Mode: mode, UID: c.UID, GID: c.GID, Atime: now, Mtime: now, Ctime: now}}
	if mode.IsDir() {
		n.children = map[string]vfs.Ino{}
	}
	f.nodes[f.next] = n
	f.next++
	return n
}

// get returns an inode; ESTALE.
func (f *FS) get(ino vfs.Ino) (*node, error) {
	if n := f.nodes[ino]; n != nil {
		return n, nil
	}
	return nil, syscall.ESTALE
}

// dir returns a directory, which may be deleted already; ESTALE, ENOTDIR.
func (f *FS) dir(ino vfs.Ino) (*node, error) {
	n, err := f.get(ino)
	if err == nil && !n.attr.Mode.IsDir() {
		err = syscall.ENOTDIR
	}
	return n, err
}

// child returns the directory and the named inode in it.
func (f *FS) child(dir vfs.Ino, name string) (d, n *node, err error) {
	if d, err = f.dir(dir); err != nil {
		return nil, nil, err
	}
	ino, ok := d.children[name]
	if !ok {
		return d, nil, syscall.ENOENT
	}
	return d, f.nodes[ino], nil
}

// touch marks a directory as changed.
func (f *FS) touch(n *node) {
	now := f.opt.Now()
	n.attr.Mtime, n.attr.Ctime = now, now
}

// drop frees an inode that nothing refers to any more.
func (f *FS) drop(n *node) {
	if n.attr.Nlink > 0 || n.opens > 0 || n.refs > 0 {
		return
	}
	f.resize(n, 0)
	delete(f.nodes, n.attr.Ino)
}

// Root implements vfs.FS.
func (f *FS) Root() vfs.Ino { return rootIno }

// Lookup implements vfs.FS.
func (f *FS) Lookup(_ context.Context, dir vfs.Ino, name string) (vfs.Attr, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, n, err := f.child(dir, name)
	if err != nil {
		return vfs.Attr{}, err
	}
	n.refs++
	return n.attr, nil
}

// GetAttr implements vfs.FS.
func (f *FS) GetAttr(_ context.Context, ino vfs.Ino) (vfs.Attr, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	n, err := f.get(ino)
	if err != nil {
		return vfs.Attr{}, err
	}
	return n.attr, nil
}

// SetAttr implements vfs.FS.
func (f *FS) SetAttr(_ context.Context, ino vfs.Ino, s vfs.SetAttr) (vfs.Attr, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.get(ino)
	if err != nil {
		return vfs.Attr{}, err
	}
	now := f.opt.Now()
	if s.Size != nil {
		if err := f.truncate(n, *s.Size); err != nil {
			return vfs.Attr{}, err
		}
	}
	if s.Mode != nil {
		n.attr.Mode = n.attr.Mode&vfs.ModeType | *s.Mode&vfs.ModePerm
	}
	if s.UID != nil {
		n.attr.UID = *s.UID
	}
	if s.GID != nil {
		n.attr.GID = *s.GID
	}
	if s.AtimeNow {
		n.attr.Atime = now
	}
	if s.MtimeNow {
		n.attr.Mtime = now
	}
	if s.Atime != nil {
		n.attr.Atime = *s.Atime
	}
	if s.Mtime != nil {
		n.attr.Mtime = *s.Mtime
	}
	n.attr.Ctime = now
	return n.attr, nil
}

// add makes an inode with a name, exclusively.
func (f *FS) add(dir vfs.Ino, name string, mode vfs.Mode, c vfs.Cred, init func(n *node)) (vfs.Attr, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, _, err := f.child(dir, name)
	switch {
	case err == nil:
		return vfs.Attr{}, syscall.EEXIST
	case err != syscall.ENOENT:
		return vfs.Attr{}, err
	case d.attr.Nlink == 0:
		return vfs.Attr{}, syscall.ENOENT
	case len(f.nodes) >= f.opt.Inodes:
		return vfs.Attr{}, syscall.ENOSPC
	}
	n := f.make(mode, c)
	n.attr.Nlink, n.refs = 1, 1
	if mode.IsDir() {
		n.attr.Nlink, n.parent = 2, dir
		d.attr.Nlink++
	}
	if init != nil {
		init(n)
	}
	d.children[name] = n.attr.Ino
	f.touch(d)
	return n.attr, nil
}

// Create implements vfs.FS.
func (f *FS) Create(_ context.Context, dir vfs.Ino, name string, mode vfs.Mode, c vfs.Cred) (vfs.Attr, error) {
	return f.add(dir, name, vfs.ModeRegular|mode&vfs.ModePerm, c, nil)
}

// Mknod implements vfs.FS.
func (f *FS) Mknod(_ context.Context, dir vfs.Ino, name string, mode vfs.Mode, rdev uint64, c vfs.Cred) (vfs.Attr, error) {
	return f.add(dir, name, mode, c, func(n *node) { n.attr.Rdev = rdev })
}

// Mkdir implements vfs.FS.
func (f *FS) Mkdir(_ context.Context, dir vfs.Ino, name string, mode vfs.Mode, c vfs.Cred) (vfs.Attr, error) {
	return f.add(dir, name, vfs.ModeDir|mode&vfs.ModePerm, c, nil)
}

// Symlink implements vfs.FS.
func (f *FS) Symlink(_ context.Context, dir vfs.Ino, name, target string, c vfs.Cred) (vfs.Attr, error) {
	return f.add(dir, name, vfs.ModeSymlink|0o777, c, func(n *node) { n.link, n.attr.Size = target, int64(len(target)) })
}

// Readlink implements vfs.FS.
func (f *FS) Readlink(_ context.Context, ino vfs.Ino) (string, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	n, err := f.get(ino)
	if err == nil && !n.attr.Mode.IsSymlink() {
		err = syscall.EINVAL
	}
	if err != nil {
		return "", err
	}
	return n.link, nil
}

// Link implements vfs.FS.
func (f *FS) Link(_ context.Context, ino, dir vfs.Ino, name string) (vfs.Attr, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.get(ino)
	if err != nil {
		return vfs.Attr{}, err
	}
	d, _, err := f.child(dir, name)
	switch {
	case err == nil:
		return vfs.Attr{}, syscall.EEXIST
	case err != syscall.ENOENT:
		return vfs.Attr{}, err
	case n.attr.Mode.IsDir():
		return vfs.Attr{}, syscall.EPERM
	case n.attr.Nlink == 0 || d.attr.Nlink == 0:
		return vfs.Attr{}, syscall.ENOENT
	}
	n.attr.Nlink++
	n.attr.Ctime = f.opt.Now()
	n.refs++
	d.children[name] = ino
	f.touch(d)
	return n.attr, nil
}

// Unlink implements vfs.FS.
func (f *FS) Unlink(_ context.Context, dir vfs.Ino, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, n, err := f.child(dir, name)
	if err != nil {
		return err
	}
	if n.attr.Mode.IsDir() {
		return syscall.EISDIR
	}
	f.detach(d, n, name)
	return nil
}

// detach takes one name away.
func (f *FS) detach(d, n *node, name string) {
	delete(d.children, name)
	f.touch(d)
	if n.attr.Mode.IsDir() {
		n.attr.Nlink = 0
		d.attr.Nlink--
	} else {
		n.attr.Nlink--
	}
	n.attr.Ctime = d.attr.Ctime
	f.drop(n)
}

// Rmdir implements vfs.FS.
func (f *FS) Rmdir(_ context.Context, dir vfs.Ino, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, n, err := f.child(dir, name)
	switch {
	case err != nil:
		return err
	case !n.attr.Mode.IsDir():
		return syscall.ENOTDIR
	case len(n.children) > 0:
		return syscall.ENOTEMPTY
	}
	f.detach(d, n, name)
	return nil
}

// ReadDir implements vfs.FS; names come in order.
func (f *FS) ReadDir(_ context.Context, dir vfs.Ino) ([]vfs.DirEntry, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	d, err := f.dir(dir)
	if err != nil {
		return nil, err
	}
	list := make([]vfs.DirEntry, 0, len(d.children))
	for name, ino := range d.children {
		list = append(list, vfs.DirEntry{Name: name, Ino: ino, Mode: f.nodes[ino].attr.Mode & vfs.ModeType})
	}
	slices.SortFunc(list, func(a, b vfs.DirEntry) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// StatFS implements vfs.FS.
func (f *FS) StatFS(context.Context) (vfs.StatFS, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	const tmpfs = 0x01021994
	return vfs.StatFS{Type: tmpfs, BlockSize: 4096, Blocks: uint64(f.opt.Bytes) / 4096, Free: uint64(max(0, f.opt.Bytes-f.used)) / 4096,
		Files: uint64(f.opt.Inodes), FFree: uint64(max(0, f.opt.Inodes-len(f.nodes)))}, nil
}

// Forget implements vfs.FS.
func (f *FS) Forget(ino vfs.Ino, n uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if nd := f.nodes[ino]; nd != nil {
		nd.refs -= min(n, nd.refs)
		f.drop(nd)
	}
}

// Hold implements vfs.Holder.
func (f *FS) Hold(ino vfs.Ino, n uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	nd, err := f.get(ino)
	if err == nil {
		nd.refs += n
	}
	return err
}
