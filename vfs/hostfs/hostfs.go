// Package hostfs is a filesystem over a folder of the host, strictly beneath it.
//
// An inode in use is an O_PATH descriptor, or its directory and a name if it wasn't used lately, and every operation names one component
// in such a directory, without following symbolic links. These are resolved by the Namespace, in the sandbox's tree, so a link or ".." can't lead out of
// the folder, whoever changes the folder meanwhile. Errors are bare errnos: no path of the host is in them.
//
// All files appear to belong to one user, whoever owns them on the host; new ones belong to the folder's owner where the
// host allows it. Device nodes and sockets of the host show in listings but can't be opened (EACCES) or made (EPERM), and
// set-id bits are never passed to the host. A FIFO is a name only: the sandbox connects those who open it, and the host's
// own is never opened. Where the host is the sandbox itself, as inside a VM (Options.Real), all of that is as the kernel has it; still
// nothing special can be opened. Linux only.
package hostfs

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agentrun.dev/vfs"
)

// Options of a filesystem.
type Options struct {
	UID, GID uint32 // own everything
	ReadOnly bool
	// At most, or ENFILE: inodes in use at once, 0 is 1,048,576; files open at once, each a descriptor of the host, 0 is 4,096.
	Nodes, Files int
	// Descriptors are kept for that many inodes with which nobody works; 0 is 4,096. The others are found again by their names.
	Descriptors int
	// Real shows owners as they are and passes them to the host, and so it does with set-id bits, device nodes and all extended attributes.
	Real bool
}

// FS implements vfs.FS, vfs.Special and vfs.Flusher, and vfs.Xattrs for user.* attributes.
type FS struct {
	opt  Options
	root *node
	uid  int // owner of new files on the host, or -1
	gid  int

	mu    sync.Mutex
	inos  map[vfs.Ino]*node
	files map[file]*node
	idle  list.List // of *node with a descriptor that nobody uses, the one that rests longest first
	opens int       // files that are open
}

// file identifies an inode on the host.
type file struct{ dev, ino uint64 }

// Flush implements vfs.Flusher. Nothing is held back here, so that only a durable one does anything: it is syncfs(2) of the folder's
// filesystem on the host, and of others that are mounted beneath it and have files in use.
func (f *FS) Flush(_ context.Context, durable bool) error {
	if !durable || f.opt.ReadOnly {
		return nil
	}
	f.mu.Lock()
	dirs := map[uint64]vfs.Ino{f.root.id.dev: f.root.ino}
	for _, n := range f.inos {
		if _, ok := dirs[n.id.dev]; !ok && n.mode.IsDir() {
			dirs[n.id.dev] = n.ino
		}
	}
	f.mu.Unlock()
	var first error
	for _, ino := range dirs {
		if err := f.use(ino, syncFS); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func syncFS(n *node) error {
	fd, err := unix.Open(n.path(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Syncfs(fd)
}

// node is an inode in use. Its descriptor keeps the host from giving the inode's number to another file. What may change is guarded by
// FS.mu, but the descriptor stays while busy.
type node struct {
	ino   vfs.Ino
	id    file
	mode  vfs.Mode
	fd    int // O_PATH; -1: parked
	fresh *os.File
	refs  uint64
	busy  int // operations that use the descriptor
	opens int // handles
	elem  *list.Element
	up    *node // a directory that has it, to which it holds a reference; nil of the root
	name  string
}

// New returns a filesystem over a folder, which Close lets go of.
func New(dir string, o Options) (*FS, error) {
	o.Nodes, o.Files, o.Descriptors = cmp.Or(o.Nodes, 1<<20), cmp.Or(o.Files, 4096), cmp.Or(o.Descriptors, 4096)
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, err
	}
	f := &FS{opt: o, uid: -1, gid: -1, inos: map[vfs.Ino]*node{}, files: map[file]*node{}}
	if os.Geteuid() == 0 && (st.Uid != 0 || st.Gid != 0) && !o.Real {
		f.uid, f.gid = int(st.Uid), int(st.Gid)
	}
	f.root = &node{ino: vfs.Ino(st.Ino), id: file{st.Dev, st.Ino}, fd: fd, mode: vfs.ModeDir, refs: 1}
	f.inos[f.root.ino], f.files[f.root.id] = f.root, f.root
	return f, nil
}

// Close lets go of the folder. Nothing may be in use any more but open handles.
func (f *FS) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.inos {
		n.close()
	}
	f.inos, f.files = nil, nil
	return nil
}

func (n *node) close() {
	if n.fd >= 0 {
		unix.Close(n.fd)
		n.fd = -1
	}
	if n.fresh != nil {
		n.fresh.Close()
		n.fresh = nil
	}
}

// path names a node's inode itself, even if that has no name any more.
func (n *node) path() string { return "/proc/self/fd/" + strconv.Itoa(n.fd) }

// bare strips an error of everything but its number.
func bare(err error) error {
	var no syscall.Errno
	switch {
	case err == nil:
		return nil
	case errors.As(err, &no):
		return no
	case errors.Is(err, os.ErrClosed):
		return syscall.EBADF
	}
	return vfs.Errno(err)
}

// use finds a node and keeps it while f runs.
func (f *FS) use(ino vfs.Ino, do func(n *node) error) error {
	f.mu.Lock()
	n := f.inos[ino]
	if n == nil {
		f.mu.Unlock()
		return syscall.ESTALE
	}
	if err := f.take(n, 0); err != nil {
		f.mu.Unlock()
		return bare(err)
	}
	n.refs++
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.leave(n)
		f.forget(n, 1)
	}()
	return bare(do(n))
}

// change is use for what alters the folder.
func (f *FS) change(ino vfs.Ino, do func(n *node) error) error {
	if f.opt.ReadOnly {
		return syscall.EROFS
	}
	return f.use(ino, do)
}

// adopt makes the descriptor that a name led to a node, or closes it if the inode has one already, and counts a reference. The node is
// taken: release or again ends that.
func (f *FS) adopt(d *node, name string, fd int) (*node, vfs.Attr, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, vfs.Attr{}, err
	}
	id := file{st.Dev, st.Ino}
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.files[id]
	switch {
	case n != nil && n.fd < 0:
		n.fd = fd
	case n != nil:
		unix.Close(fd)
	case len(f.inos) >= f.opt.Nodes || f.inos == nil:
		unix.Close(fd)
		return nil, vfs.Attr{}, syscall.ENFILE
	default:
		n = &node{ino: f.number(id), id: id, fd: fd, mode: vfs.Mode(st.Mode) & vfs.ModeType}
		for f.inos[n.ino] != nil {
			n.ino++
		}
		f.inos[n.ino], f.files[id] = n, n
	}
	n.refs++
	f.named(n, d, name)
	if n.elem != nil {
		f.idle.Remove(n.elem)
		n.elem = nil
	}
	n.busy++
	return n, f.attr(n.ino, &st), nil
}

// number is the host's own number on the folder's device, and a mixture on others that are mounted in it.
func (f *FS) number(id file) vfs.Ino {
	if id.dev == f.root.id.dev {
		return vfs.Ino(id.ino)
	}
	return vfs.Ino(id.ino ^ id.dev*0x9e3779b97f4a7c15)
}

func (f *FS) attr(ino vfs.Ino, st *unix.Stat_t) vfs.Attr {
	at := func(t unix.Timespec) time.Time { return time.Unix(t.Sec, t.Nsec) }
	uid, gid := f.opt.UID, f.opt.GID
	if f.opt.Real {
		uid, gid = st.Uid, st.Gid
	}
	return vfs.Attr{Ino: ino, Mode: vfs.Mode(st.Mode), Nlink: uint32(st.Nlink), UID: uid, GID: gid, Rdev: st.Rdev,
		Size: st.Size, Blocks: st.Blocks, Atime: at(st.Atim), Mtime: at(st.Mtim), Ctime: at(st.Ctim)}
}

// find opens a name in a directory, whatever it is, as a node.
func (f *FS) find(d *node, name string) (*node, vfs.Attr, error) {
	fd, err := unix.Openat(d.fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, vfs.Attr{}, err
	}
	return f.adopt(d, name, fd)
}

// Root implements vfs.FS.
func (f *FS) Root() vfs.Ino { return f.root.ino }

// Lookup implements vfs.FS.
func (f *FS) Lookup(_ context.Context, dir vfs.Ino, name string) (a vfs.Attr, err error) {
	err = f.use(dir, func(d *node) (err error) {
		var n *node
		if n, a, err = f.find(d, name); err == nil {
			f.release(n)
		}
		return err
	})
	return a, err
}

// Forget implements vfs.FS.
func (f *FS) Forget(ino vfs.Ino, count uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget(f.inos[ino], count)
}

// GetAttr implements vfs.FS.
func (f *FS) GetAttr(_ context.Context, ino vfs.Ino) (a vfs.Attr, err error) {
	err = f.use(ino, func(n *node) error {
		var st unix.Stat_t
		if err := unix.Fstat(n.fd, &st); err != nil {
			return err
		}
		a = f.attr(ino, &st)
		return nil
	})
	return a, err
}

// hostMode is what of a mode the host gets to see.
func (f *FS) hostMode(m vfs.Mode) uint32 {
	if f.opt.Real {
		return uint32(m & vfs.ModePerm)
	}
	return uint32(m & 0o1777)
}

// chown changes owners, where there are any.
func (f *FS) chown(n *node, s vfs.SetAttr) error {
	if !f.opt.Real {
		if s.UID != nil && *s.UID != f.opt.UID || s.GID != nil && *s.GID != f.opt.GID {
			return syscall.EPERM
		}
		return nil
	}
	uid, gid := -1, -1
	if s.UID != nil {
		uid = int(*s.UID)
	}
	if s.GID != nil {
		gid = int(*s.GID)
	}
	if uid < 0 && gid < 0 {
		return nil
	}
	return unix.Fchownat(n.fd, "", uid, gid, unix.AT_EMPTY_PATH)
}

// SetAttr implements vfs.FS. Another owner than the one that everything has is EPERM.
func (f *FS) SetAttr(ctx context.Context, ino vfs.Ino, s vfs.SetAttr) (vfs.Attr, error) {
	err := f.change(ino, func(n *node) error {
		if err := f.chown(n, s); err != nil {
			return err
		}
		if s.Size != nil {
			if n.mode != vfs.ModeRegular {
				return syscall.EINVAL
			}
			if err := unix.Truncate(n.path(), *s.Size); err != nil {
				return err
			}
		}
		if s.Mode != nil {
			if err := unix.Chmod(n.path(), f.hostMode(*s.Mode)); err != nil {
				return err
			}
		}
		if s.Atime == nil && s.Mtime == nil && !s.AtimeNow && !s.MtimeNow {
			return nil
		}
		ts := []unix.Timespec{timespec(s.Atime, s.AtimeNow), timespec(s.Mtime, s.MtimeNow)}
		return unix.UtimesNanoAt(n.fd, "", ts, unix.AT_EMPTY_PATH)
	})
	if err != nil {
		return vfs.Attr{}, err
	}
	return f.GetAttr(ctx, ino)
}

func timespec(t *time.Time, now bool) unix.Timespec {
	switch {
	case t != nil:
		ts, err := unix.TimeToTimespec(*t)
		if err == nil {
			return ts
		}
	case now:
		return unix.Timespec{Nsec: unix.UTIME_NOW}
	}
	return unix.Timespec{Nsec: unix.UTIME_OMIT}
}

// own gives a new file to the folder's owner, or to who makes it.
func (f *FS) own(n *node, c vfs.Cred) error {
	if f.opt.Real {
		return f.chown(n, vfs.SetAttr{UID: &c.UID, GID: &c.GID})
	}
	if f.uid < 0 {
		return nil
	}
	return unix.Fchownat(n.fd, "", f.uid, f.gid, unix.AT_EMPTY_PATH)
}

// Create implements vfs.FS. The descriptor that made the file serves its first Open, whatever the mode forbids.
func (f *FS) Create(_ context.Context, dir vfs.Ino, name string, mode vfs.Mode, c vfs.Cred) (a vfs.Attr, err error) {
	err = f.change(dir, func(d *node) error {
		fd, err := unix.Openat(d.fd, name, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return err
		}
		made := os.NewFile(uintptr(fd), "")
		path, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			made.Close()
			return err
		}
		n, _, err := f.adopt(d, name, path)
		if err != nil {
			made.Close()
			return err
		}
		if err = f.own(n, c); err == nil {
			err = unix.Fchmod(fd, f.hostMode(mode)) // the host's umask doesn't count
		}
		f.mu.Lock()
		if err == nil && n.fresh == nil {
			n.fresh, made = made, nil
		}
		f.mu.Unlock()
		if made != nil {
			made.Close()
		}
		a, err = f.again(n, err)
		return err
	})
	return a, err
}

// again returns a node's attributes, or gives its reference back after an error; it isn't taken any more.
func (f *FS) again(n *node, err error) (vfs.Attr, error) {
	var st unix.Stat_t
	if err == nil {
		err = unix.Fstat(n.fd, &st)
	}
	f.release(n)
	if err != nil {
		f.Forget(n.ino, 1)
		return vfs.Attr{}, err
	}
	return f.attr(n.ino, &st), nil
}

// Mknod implements vfs.FS: FIFOs can be made, all else is EPERM where files aren't real.
func (f *FS) Mknod(_ context.Context, dir vfs.Ino, name string, mode vfs.Mode, rdev uint64, c vfs.Cred) (a vfs.Attr, err error) {
	err = f.change(dir, func(d *node) error {
		if mode&vfs.ModeType != vfs.ModeFIFO && !f.opt.Real {
			return syscall.EPERM
		}
		if err := unix.Mknodat(d.fd, name, uint32(mode&vfs.ModeType)|0o600, int(rdev)); err != nil {
			return err
		}
		n, _, err := f.find(d, name)
		if err != nil {
			return err
		}
		if err = f.own(n, c); err == nil && n.mode == mode&vfs.ModeType {
			err = unix.Chmod(n.path(), f.hostMode(mode))
		}
		a, err = f.again(n, err)
		return err
	})
	return a, err
}

// Mkdir implements vfs.FS.
func (f *FS) Mkdir(_ context.Context, dir vfs.Ino, name string, mode vfs.Mode, c vfs.Cred) (a vfs.Attr, err error) {
	err = f.change(dir, func(d *node) error {
		if err := unix.Mkdirat(d.fd, name, 0o700); err != nil {
			return err
		}
		n, _, err := f.find(d, name)
		if err != nil {
			return err
		}
		if err = f.own(n, c); err == nil && n.mode.IsDir() {
			err = unix.Chmod(n.path(), f.hostMode(mode))
		}
		a, err = f.again(n, err)
		return err
	})
	return a, err
}

// Symlink implements vfs.FS.
func (f *FS) Symlink(_ context.Context, dir vfs.Ino, name, target string, c vfs.Cred) (a vfs.Attr, err error) {
	err = f.change(dir, func(d *node) error {
		if err := unix.Symlinkat(target, d.fd, name); err != nil {
			return err
		}
		n, _, err := f.find(d, name)
		if err != nil {
			return err
		}
		a, err = f.again(n, f.own(n, c))
		return err
	})
	return a, err
}

// Readlink implements vfs.FS.
func (f *FS) Readlink(_ context.Context, ino vfs.Ino) (target string, err error) {
	err = f.use(ino, func(n *node) error {
		if n.mode != vfs.ModeSymlink {
			return syscall.EINVAL
		}
		b := make([]byte, vfs.MaxPath)
		k, err := unix.Readlinkat(n.fd, "", b)
		target = string(b[:max(0, k)])
		return err
	})
	return target, err
}

// Link implements vfs.FS.
func (f *FS) Link(_ context.Context, ino, dir vfs.Ino, name string) (a vfs.Attr, err error) {
	err = f.change(ino, func(n *node) error {
		return f.use(dir, func(d *node) error {
			if err := unix.Linkat(unix.AT_FDCWD, n.path(), d.fd, name, unix.AT_SYMLINK_FOLLOW); err != nil {
				return err
			}
			f.mu.Lock()
			n.refs++
			n.busy++
			f.mu.Unlock()
			a, err = f.again(n, nil)
			return err
		})
	})
	return a, err
}

// Unlink implements vfs.FS.
func (f *FS) Unlink(_ context.Context, dir vfs.Ino, name string) error {
	return f.change(dir, func(d *node) error { return unix.Unlinkat(d.fd, name, 0) })
}

// Rmdir implements vfs.FS.
func (f *FS) Rmdir(_ context.Context, dir vfs.Ino, name string) error {
	return f.change(dir, func(d *node) error { return unix.Unlinkat(d.fd, name, unix.AT_REMOVEDIR) })
}

// Rename implements vfs.FS.
func (f *FS) Rename(_ context.Context, dir vfs.Ino, name string, newDir vfs.Ino, newName string, flags uint32) error {
	return f.change(dir, func(d *node) error {
		return f.use(newDir, func(nd *node) error {
			err := unix.Renameat2(d.fd, name, nd.fd, newName, uint(flags))
			if err == nil {
				f.moved(nd, newName)
				if flags&vfs.RenameExchange != 0 {
					f.moved(d, name)
				}
			}
			return err
		})
	})
}

// ReadDir implements vfs.FS; names come in order.
func (f *FS) ReadDir(_ context.Context, dir vfs.Ino) (list []vfs.DirEntry, err error) {
	err = f.use(dir, func(d *node) error {
		if !d.mode.IsDir() {
			return syscall.ENOTDIR
		}
		fd, err := unix.Openat(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		open := os.NewFile(uintptr(fd), "")
		defer open.Close()
		entries, err := open.ReadDir(-1)
		if err != nil {
			return err
		}
		for _, e := range entries {
			var st unix.Stat_t
			if err := unix.Fstatat(d.fd, e.Name(), &st, unix.AT_SYMLINK_NOFOLLOW); errors.Is(err, unix.ENOENT) {
				continue // gone meanwhile
			} else if err != nil {
				return err
			}
			list = append(list, vfs.DirEntry{Name: e.Name(), Ino: f.number(file{st.Dev, st.Ino}), Mode: vfs.Mode(st.Mode) & vfs.ModeType})
		}
		return nil
	})
	slices.SortFunc(list, func(a, b vfs.DirEntry) int { return cmp.Compare(a.Name, b.Name) })
	return list, err
}

// OpenSpecial implements vfs.Special: nothing special of the host can be opened. FIFOs are left to who mounts the folder.
func (f *FS) OpenSpecial(_ context.Context, ino vfs.Ino, _ int, _ vfs.Cred) (vfs.File, bool, error) {
	return nil, false, f.use(ino, func(n *node) error {
		if n.mode != vfs.ModeRegular && n.mode != vfs.ModeFIFO {
			return syscall.EACCES
		}
		return nil
	})
}

// StatFS implements vfs.FS.
func (f *FS) StatFS(context.Context) (s vfs.StatFS, err error) {
	err = f.use(f.root.ino, func(n *node) error {
		var st unix.Statfs_t
		err := unix.Fstatfs(n.fd, &st)
		s = vfs.StatFS{Type: uint32(st.Type), BlockSize: uint64(st.Bsize), Blocks: st.Blocks, Free: st.Bavail, Files: st.Files, FFree: st.Ffree}
		return err
	})
	return s, err
}

// Hold implements vfs.Holder, for whoever shares the folder.
func (f *FS) Hold(ino vfs.Ino, n uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	nd := f.inos[ino]
	if nd == nil {
		return syscall.ESTALE
	}
	nd.refs += n
	return nil
}
