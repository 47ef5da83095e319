// Package files is the files of a VM as a filesystem of package vfs, seen from outside through the agent.
//
// Everything happens in the guest, by inodes that the agent holds for the host: names are looked up one at a time, without following
// links, and a link's target is resolved by the vfs.Namespace that the filesystem is mounted in. So what a path means can't change between
// the check of a permission and the operation, whatever the guest's processes do meanwhile; nothing is kept here, so that a guest's change is
// seen at once.
//
// What the guest answers is checked, and bounded. It may lie about its files, as it may about anything, or be silent: then the caller's
// context, or Options.Timeout, ends the operation.
package files

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/guest"
	"agentrun.dev/guest/wire"
	"agentrun.dev/vfs"
)

// Options of a filesystem; the zero value works.
type Options struct {
	Timeout time.Duration // of an operation whose caller waits longer; 0 is a minute
	// Reach, if it isn't nil, returns a context with which operations that begin now end, such as when the guest stands still for
	// long: its cause is their error, of errno EAGAIN.
	Reach func() context.Context
}

// FS implements vfs.FS and vfs.Xattrs. Inodes and open files are the guest's: with the connection they are gone, and everything is EIO.
type FS struct {
	c       *guest.Client
	timeout time.Duration
	reach   func() context.Context
	life    context.Context
	end     context.CancelFunc

	opening chan struct{} // has room for one: who opens the tree
	mu      sync.Mutex
	tree    *guest.Tree
}

const rootIno = 1

// New returns the filesystem of a client's machine. The client remains the caller's; nothing is asked of it yet.
func New(c *guest.Client, o Options) *FS {
	f := &FS{c: c, timeout: o.Timeout, reach: o.Reach, opening: make(chan struct{}, 1)}
	if f.timeout <= 0 {
		f.timeout = time.Minute
	}
	if f.reach == nil {
		f.reach = context.Background
	}
	f.life, f.end = context.WithCancel(context.Background())
	return f
}

// Close ends all operations, and gives back what is held in the guest.
func (f *FS) Close() error {
	f.end()
	f.opening <- struct{}{}
	defer func() { <-f.opening }()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tree == nil {
		return nil
	}
	return f.tree.Close()
}

// fsError is an errno with what lies behind it.
type fsError struct {
	no  syscall.Errno
	err error
}

func (e *fsError) Error() string   { return fmt.Sprintf("%v: %v", e.no, e.err) }
func (e *fsError) Unwrap() []error { return []error{e.no, e.err} }

// fail gives an error its errno. asked is the context of the caller, reach that of the guest.
func (f *FS) fail(asked, reach context.Context, err error) error {
	var no syscall.Errno
	switch {
	case err == nil || errors.As(err, &no):
		return err
	case asked.Err() != nil:
		return &fsError{syscall.EINTR, asked.Err()}
	case f.life.Err() != nil:
		return &fsError{syscall.EIO, errs.Msg(errs.Unavailable, "files", "", "they are closed")}
	case reach.Err() != nil:
		return &fsError{syscall.EAGAIN, context.Cause(reach)}
	case errs.Is(err, errs.Canceled):
		return &fsError{syscall.ETIMEDOUT, err}
	}
	return &fsError{syscall.EIO, err}
}

// bound is a context for one operation.
func (f *FS) bound(ctx, reach context.Context) (context.Context, context.CancelFunc) {
	c, cancel := context.WithTimeout(ctx, f.timeout)
	stop, stop2 := context.AfterFunc(f.life, cancel), context.AfterFunc(reach, cancel)
	return c, func() { stop(); stop2(); cancel() }
}

// open returns the tree, which the first operation opens.
func (f *FS) open(ctx context.Context) (*guest.Tree, error) {
	f.mu.Lock()
	t := f.tree
	f.mu.Unlock()
	if t != nil {
		return t, nil
	}
	select {
	case f.opening <- struct{}{}:
	case <-ctx.Done():
		return nil, errs.New(errs.Canceled, "files", "", ctx.Err())
	}
	defer func() { <-f.opening }()
	f.mu.Lock()
	t = f.tree
	f.mu.Unlock()
	if t != nil || ctx.Err() != nil {
		return t, ctx.Err()
	}
	t, err := f.c.Tree(ctx)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.tree = t
	f.mu.Unlock()
	return t, nil
}

// The root is 1 here, whatever it is in the guest; the two change places.
func (f *FS) swap(t *guest.Tree, ino uint64) uint64 {
	switch ino {
	case rootIno:
		return t.Root
	case t.Root:
		return rootIno
	}
	return ino
}

// call does an operation. Inodes of r are ours.
func (f *FS) call(ctx context.Context, r wire.Node, in, out []byte) (a wire.Answer, n int, err error) {
	asked, reach := ctx, f.reach()
	ctx, cancel := f.bound(ctx, reach)
	defer cancel()
	t, err := f.open(ctx)
	if err != nil {
		return a, 0, f.fail(asked, reach, err)
	}
	r.Ino, r.To = f.swap(t, r.Ino), f.swap(t, r.To)
	takes := false
	switch r.Op {
	case wire.NodeLookup, wire.NodeCreate, wire.NodeMknod, wire.NodeMkdir, wire.NodeSymlink, wire.NodeLink, wire.NodeOpen:
		takes = true
	}
	a, n, err = t.Call(ctx, r, in, out, takes)
	if err != nil {
		return a, n, f.fail(asked, reach, err)
	}
	if a.Attr != nil {
		a.Attr.Ino = f.swap(t, a.Attr.Ino)
	}
	for i := range a.Entries {
		a.Entries[i].Ino = f.swap(t, a.Entries[i].Ino)
	}
	return a, n, nil
}

// lie is what a guest says that can't be.
func lie(text string) error {
	return &fsError{syscall.EIO, errs.Msg(errs.Corrupt, "guest", "", text)}
}

func known(m vfs.Mode) bool {
	switch m & vfs.ModeType {
	case vfs.ModeDir, vfs.ModeRegular, vfs.ModeSymlink, vfs.ModeFIFO, vfs.ModeSocket, vfs.ModeChar, vfs.ModeBlock:
		return m&^(vfs.ModeType|vfs.ModePerm) == 0
	}
	return false
}

// attr is an operation that tells an inode's attributes.
func (f *FS) attr(ctx context.Context, r wire.Node) (vfs.Attr, error) {
	answer, _, err := f.call(ctx, r, nil, nil)
	if err != nil {
		return vfs.Attr{}, err
	}
	w := answer.Attr
	if w == nil || w.Ino == 0 || w.Size < 0 || w.Blocks < 0 || !known(vfs.Mode(w.Mode)) {
		return vfs.Attr{}, lie("a file has impossible attributes")
	}
	return vfs.Attr{Ino: vfs.Ino(w.Ino), Mode: vfs.Mode(w.Mode), Nlink: w.Nlink, UID: w.UID, GID: w.GID, Rdev: w.Rdev, Size: w.Size, Blocks: w.Blocks,
		Atime: w.ATime.Time(), Mtime: w.MTime.Time(), Ctime: w.CTime.Time()}, nil
}

// none is an operation that tells nothing.
func (f *FS) none(ctx context.Context, r wire.Node) error {
	_, _, err := f.call(ctx, r, nil, nil)
	return err
}

// checkName keeps what is no name from the guest: the agent wouldn't take it.
func checkName(names ...string) error {
	for _, s := range names {
		if len(s) > vfs.MaxName {
			return syscall.ENAMETOOLONG
		}
		if !isName(s) {
			return syscall.EINVAL
		}
	}
	return nil
}

func isName(s string) bool {
	if s == "" || s == "." || s == ".." || len(s) > vfs.MaxName {
		return false
	}
	for i := range len(s) {
		if s[i] == '/' || s[i] == 0 {
			return false
		}
	}
	return true
}

// made is an operation that makes or finds a name in a directory.
func (f *FS) made(ctx context.Context, r wire.Node, c vfs.Cred) (vfs.Attr, error) {
	if err := checkName(string(r.Name)); err != nil {
		return vfs.Attr{}, err
	}
	r.UID, r.GID = c.UID, c.GID
	return f.attr(ctx, r)
}

// Root implements vfs.FS, as do the others.
func (f *FS) Root() vfs.Ino { return rootIno }

// Lookup finds a name.
func (f *FS) Lookup(ctx context.Context, dir vfs.Ino, name string) (vfs.Attr, error) {
	return f.made(ctx, wire.Node{Op: wire.NodeLookup, Ino: uint64(dir), Name: wire.Text(name)}, vfs.Cred{})
}

// GetAttr tells of an inode.
func (f *FS) GetAttr(ctx context.Context, ino vfs.Ino) (vfs.Attr, error) {
	return f.attr(ctx, wire.Node{Op: wire.NodeGetAttr, Ino: uint64(ino)})
}

// SetAttr changes what is set.
func (f *FS) SetAttr(ctx context.Context, ino vfs.Ino, s vfs.SetAttr) (vfs.Attr, error) {
	w := &wire.SetAttr{UID: s.UID, GID: s.GID, Size: s.Size, ATimeNow: s.AtimeNow, MTimeNow: s.MtimeNow}
	if s.Mode != nil {
		m := uint32(*s.Mode)
		w.Mode = &m
	}
	if s.Atime != nil {
		t := wire.TimeOf(*s.Atime)
		w.ATime = &t
	}
	if s.Mtime != nil {
		t := wire.TimeOf(*s.Mtime)
		w.MTime = &t
	}
	return f.attr(ctx, wire.Node{Op: wire.NodeSetAttr, Ino: uint64(ino), Set: w})
}

// Create makes a file.
func (f *FS) Create(ctx context.Context, dir vfs.Ino, name string, mode vfs.Mode, c vfs.Cred) (vfs.Attr, error) {
	return f.made(ctx, wire.Node{Op: wire.NodeCreate, Ino: uint64(dir), Name: wire.Text(name), Mode: uint32(mode)}, c)
}

// Mknod makes what is special.
func (f *FS) Mknod(ctx context.Context, dir vfs.Ino, name string, mode vfs.Mode, rdev uint64, c vfs.Cred) (vfs.Attr, error) {
	return f.made(ctx, wire.Node{Op: wire.NodeMknod, Ino: uint64(dir), Name: wire.Text(name), Mode: uint32(mode), Rdev: rdev}, c)
}

// Mkdir makes a directory.
func (f *FS) Mkdir(ctx context.Context, dir vfs.Ino, name string, mode vfs.Mode, c vfs.Cred) (vfs.Attr, error) {
	return f.made(ctx, wire.Node{Op: wire.NodeMkdir, Ino: uint64(dir), Name: wire.Text(name), Mode: uint32(mode)}, c)
}

// Symlink makes a symbolic link.
func (f *FS) Symlink(ctx context.Context, dir vfs.Ino, name, target string, c vfs.Cred) (vfs.Attr, error) {
	if len(target) >= vfs.MaxPath {
		return vfs.Attr{}, syscall.ENAMETOOLONG
	}
	return f.made(ctx, wire.Node{Op: wire.NodeSymlink, Ino: uint64(dir), Name: wire.Text(name), NewName: wire.Text(target)}, c)
}

// Readlink returns a link's target.
func (f *FS) Readlink(ctx context.Context, ino vfs.Ino) (string, error) {
	a, _, err := f.call(ctx, wire.Node{Op: wire.NodeReadlink, Ino: uint64(ino)}, nil, nil)
	if err == nil && (a.Text == "" || len(a.Text) >= vfs.MaxPath) {
		err = lie("a link leads nowhere")
	}
	return string(a.Text), err
}

// Link makes another name of a file.
func (f *FS) Link(ctx context.Context, ino, dir vfs.Ino, name string) (vfs.Attr, error) {
	return f.made(ctx, wire.Node{Op: wire.NodeLink, Ino: uint64(dir), Name: wire.Text(name), To: uint64(ino)}, vfs.Cred{})
}

// Unlink removes a name.
func (f *FS) Unlink(ctx context.Context, dir vfs.Ino, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	return f.none(ctx, wire.Node{Op: wire.NodeUnlink, Ino: uint64(dir), Name: wire.Text(name)})
}

// Rmdir removes a directory.
func (f *FS) Rmdir(ctx context.Context, dir vfs.Ino, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	return f.none(ctx, wire.Node{Op: wire.NodeRmdir, Ino: uint64(dir), Name: wire.Text(name)})
}

// Rename moves a name.
func (f *FS) Rename(ctx context.Context, dir vfs.Ino, name string, newDir vfs.Ino, newName string, flags uint32) error {
	if err := checkName(name, newName); err != nil {
		return err
	}
	return f.none(ctx, wire.Node{Op: wire.NodeRename, Ino: uint64(dir), Name: wire.Text(name), To: uint64(newDir), NewName: wire.Text(newName), Flags: int(flags)})
}

// ReadDir lists a directory.
func (f *FS) ReadDir(ctx context.Context, dir vfs.Ino) ([]vfs.DirEntry, error) {
	a, _, err := f.call(ctx, wire.Node{Op: wire.NodeReadDir, Ino: uint64(dir)}, nil, nil)
	if err != nil {
		return nil, err
	}
	list := make([]vfs.DirEntry, len(a.Entries))
	for i, e := range a.Entries {
		if !isName(string(e.Name)) || !known(vfs.Mode(e.Mode)) {
			return nil, lie("a directory has an impossible entry")
		}
		list[i] = vfs.DirEntry{Name: string(e.Name), Ino: vfs.Ino(e.Ino), Mode: vfs.Mode(e.Mode) & vfs.ModeType}
	}
	return list, nil
}

// StatFS tells of the guest's root filesystem.
func (f *FS) StatFS(ctx context.Context) (vfs.StatFS, error) {
	a, _, err := f.call(ctx, wire.Node{Op: wire.NodeStatFS, Ino: rootIno}, nil, nil)
	if err != nil {
		return vfs.StatFS{}, err
	}
	s := a.StatFS
	if s == nil {
		return vfs.StatFS{}, lie("it has no answer")
	}
	return vfs.StatFS{Type: uint32(s[0]), BlockSize: s[1], Blocks: s[2], Free: s[3], Files: s[4], FFree: s[5]}, nil
}

// Forget gives references back, with the next operation.
func (f *FS) Forget(ino vfs.Ino, n uint64) {
	f.mu.Lock()
	t := f.tree
	f.mu.Unlock()
	if t != nil && n > 0 {
		t.Forget(f.swap(t, uint64(ino)), n)
	}
}

// GetXattr implements vfs.Xattrs, as do the others.
func (f *FS) GetXattr(ctx context.Context, ino vfs.Ino, name string) ([]byte, error) {
	b := make([]byte, vfs.MaxXattrValue)
	_, n, err := f.call(ctx, wire.Node{Op: wire.NodeGetXattr, Ino: uint64(ino), Name: wire.Text(name)}, nil, b)
	return b[:n:n], err
}

// SetXattr sets an attribute.
func (f *FS) SetXattr(ctx context.Context, ino vfs.Ino, name string, value []byte, flags int) error {
	if value == nil {
		value = []byte{}
	}
	_, _, err := f.call(ctx, wire.Node{Op: wire.NodeSetXattr, Ino: uint64(ino), Name: wire.Text(name), Flags: flags}, value, nil)
	return err
}

// ListXattr lists attributes.
func (f *FS) ListXattr(ctx context.Context, ino vfs.Ino) ([]string, error) {
	a, _, err := f.call(ctx, wire.Node{Op: wire.NodeListXattr, Ino: uint64(ino)}, nil, nil)
	return wire.Strings(a.Names), err
}

// RemoveXattr removes an attribute.
func (f *FS) RemoveXattr(ctx context.Context, ino vfs.Ino, name string) error {
	return f.none(ctx, wire.Node{Op: wire.NodeRemoveXattr, Ino: uint64(ino), Name: wire.Text(name)})
}

var (
	_ vfs.FS     = (*FS)(nil)
	_ vfs.Xattrs = (*FS)(nil)
)
