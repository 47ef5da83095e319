package fusefs

import (
	"cmp"
	"context"
	"io"
	"strings"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"agentrun.dev/vfs"
)

// request is the context of one request: it ends when the kernel interrupts it.
type request <-chan struct{}

func (request) Deadline() (time.Time, bool) { return time.Time{}, false }
func (r request) Done() <-chan struct{}     { return r }
func (request) Value(any) any               { return nil }
func (r request) Err() error {
	select {
	case <-r:
		return context.Canceled
	default:
		return nil
	}
}

// status words an error for the kernel.
func status(err error) fuse.Status { return fuse.Status(vfs.Errno(err)) }

// checkName refuses what isn't one component of a path. The kernel asks for "." and ".." itself only of filesystems that NFS exports.
func checkName(name string) error {
	switch {
	case len(name) > vfs.MaxName:
		return syscall.ENAMETOOLONG
	case name == "", name == ".", name == "..", strings.ContainsAny(name, "/\x00"):
		return syscall.EINVAL
	}
	return nil
}

// place is a directory and a name in it, for a request that changes it or not.
func (r *raw) place(node uint64, name string, change bool) (vfs.Ino, error) {
	if err := checkName(name); err != nil {
		return 0, err
	}
	if change && r.ReadOnly {
		return 0, syscall.EROFS
	}
	return r.inode(node)
}

// changed is inode for a request that changes it.
func (r *raw) changed(node uint64) (vfs.Ino, error) {
	if r.ReadOnly {
		return 0, syscall.EROFS
	}
	return r.inode(node)
}

// heir is who owns what is made in a directory, and its mode: the kernel has applied the umask, a set-group-id directory is ours.
func (r *raw) heir(ctx context.Context, dir vfs.Ino, h *fuse.InHeader, mode uint32) (vfs.Mode, vfs.Cred, error) {
	a, err := r.FS.GetAttr(ctx, dir)
	m, c := vfs.Cred{UID: h.Uid, GID: h.Gid}.Heir(a, vfs.Mode(mode))
	return m, c, err
}

func (r *raw) attr(a vfs.Attr, out *fuse.Attr) {
	*out = fuse.Attr{Ino: r.number(a.Ino), Size: uint64(a.Size), Blocks: uint64(a.Blocks), Mode: uint32(a.Mode), Nlink: a.Nlink,
		Owner: fuse.Owner{Uid: a.UID, Gid: a.GID}, Rdev: uint32(a.Rdev), Blksize: 4096}
	out.SetTimes(&a.Atime, &a.Mtime, &a.Ctime)
}

// entry answers with an inode that the kernel gets to know. generation tells numbers apart that are used again; ours aren't.
func (r *raw) entry(a vfs.Attr, dir vfs.Ino, name string, err error, out *fuse.EntryOut) error {
	if err == nil {
		out.NodeId, err = r.told(a, dir, name)
	}
	if err != nil {
		return err
	}
	out.Generation = 1
	out.SetEntryTimeout(r.ttl(a.Mode))
	out.SetAttrTimeout(r.ttl(a.Mode))
	r.attr(a, &out.Attr)
	return nil
}

func (r *raw) Lookup(cancel <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	dir, err := r.place(h.NodeId, name, false)
	if err != nil {
		return status(err)
	}
	ctx := request(cancel)
	a, err := r.FS.Lookup(ctx, dir, name)
	return status(r.below(ctx, h.NodeId, r.entry(a, dir, name, err, out)))
}

func (r *raw) GetAttr(cancel <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	a, err := r.look(request(cancel), in.NodeId, in.Fh(), in.Flags()&fuse.FUSE_GETATTR_FH != 0)
	return status(r.answer(a, err, out))
}

// look returns the attributes of a node, or of an open file, which may have no name any more.
func (r *raw) look(ctx context.Context, node, fh uint64, open bool) (vfs.Attr, error) {
	if open {
		if h, err := r.handle(fh, false); err == nil {
			return h.file.Attr()
		}
	}
	ino, err := r.inode(node)
	if err != nil {
		return vfs.Attr{}, err
	}
	a, err := r.FS.GetAttr(ctx, ino)
	return a, r.present(node, a, err)
}

func (r *raw) answer(a vfs.Attr, err error, out *fuse.AttrOut) error {
	if err == nil {
		out.SetTimeout(r.ttl(a.Mode))
		r.attr(a, &out.Attr)
	}
	return err
}

func (r *raw) SetAttr(cancel <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	a, err := r.setAttr(request(cancel), in)
	return status(r.answer(a, err, out))
}

func (r *raw) setAttr(ctx context.Context, in *fuse.SetAttrIn) (vfs.Attr, error) {
	ino, err := r.changed(in.NodeId)
	if err != nil {
		return vfs.Attr{}, err
	}
	var s vfs.SetAttr
	if m, ok := in.GetMode(); ok {
		mode := vfs.Mode(m) & vfs.ModePerm
		s.Mode = &mode
	}
	if u, ok := in.GetUID(); ok {
		s.UID = &u
	}
	if g, ok := in.GetGID(); ok {
		s.GID = &g
	}
	if n, ok := in.GetSize(); ok {
		size := int64(n)
		if size < 0 {
			return vfs.Attr{}, syscall.EFBIG
		}
		if fh, ok := in.GetFh(); !ok {
			s.Size = &size
		} else if h, err := r.handle(fh, false); err != nil {
			return vfs.Attr{}, err
		} else if err := h.file.Truncate(size); err != nil {
			return vfs.Attr{}, err
		}
	}
	if t, ok := in.GetATime(); ok {
		if s.AtimeNow = in.Valid&fuse.FATTR_ATIME_NOW != 0; !s.AtimeNow {
			s.Atime = &t
		}
	}
	if t, ok := in.GetMTime(); ok {
		if s.MtimeNow = in.Valid&fuse.FATTR_MTIME_NOW != 0; !s.MtimeNow {
			s.Mtime = &t
		}
	}
	a, err := r.FS.SetAttr(ctx, ino, s)
	return a, r.present(in.NodeId, a, err)
}

func (r *raw) Mknod(cancel <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	ctx := request(cancel)
	dir, err := r.place(in.NodeId, name, true)
	if err != nil {
		return status(err)
	}
	mode, c, err := r.heir(ctx, dir, &in.InHeader, in.Mode)
	if err != nil {
		return status(err)
	}
	var a vfs.Attr
	if mode.IsRegular() || mode&vfs.ModeType == 0 {
		a, err = r.FS.Create(ctx, dir, name, vfs.ModeRegular|mode&vfs.ModePerm, c)
	} else {
		a, err = r.FS.Mknod(ctx, dir, name, mode, uint64(in.Rdev), c)
	}
	return status(r.below(ctx, in.NodeId, r.entry(a, dir, name, err, out)))
}

func (r *raw) Mkdir(cancel <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	ctx := request(cancel)
	dir, err := r.place(in.NodeId, name, true)
	if err != nil {
		return status(err)
	}
	mode, c, err := r.heir(ctx, dir, &in.InHeader, in.Mode&uint32(vfs.ModePerm)|uint32(vfs.ModeDir))
	if err != nil {
		return status(err)
	}
	a, err := r.FS.Mkdir(ctx, dir, name, mode, c)
	return status(r.below(ctx, in.NodeId, r.entry(a, dir, name, err, out)))
}

func (r *raw) Symlink(cancel <-chan struct{}, h *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	ctx := request(cancel)
	dir, err := r.place(h.NodeId, name, true)
	switch {
	case err != nil:
	case target == "":
		err = syscall.ENOENT
	case len(target) >= vfs.MaxPath:
		err = syscall.ENAMETOOLONG
	}
	if err != nil {
		return status(err)
	}
	_, c, err := r.heir(ctx, dir, h, uint32(vfs.ModeSymlink|0o777))
	if err != nil {
		return status(err)
	}
	a, err := r.FS.Symlink(ctx, dir, name, target, c)
	return status(r.below(ctx, h.NodeId, r.entry(a, dir, name, err, out)))
}

func (r *raw) Readlink(cancel <-chan struct{}, h *fuse.InHeader) ([]byte, fuse.Status) {
	ino, err := r.inode(h.NodeId)
	if err != nil {
		return nil, status(err)
	}
	ctx := request(cancel)
	target, err := r.FS.Readlink(ctx, ino)
	if err == nil {
		var a vfs.Attr
		a, err = r.FS.GetAttr(ctx, ino)
		err = r.present(h.NodeId, a, err)
	}
	return []byte(target), status(vanished(err))
}

func (r *raw) Link(cancel <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	dir, err := r.place(in.NodeId, name, true)
	if err != nil {
		return status(err)
	}
	ino, err := r.inode(in.Oldnodeid)
	if err != nil {
		return status(err)
	}
	ctx := request(cancel)
	a, err := r.FS.Link(ctx, ino, dir, name)
	if err = r.entry(a, dir, name, err, out); vfs.Errno(err) == syscall.ENOENT {
		old, gone := r.FS.GetAttr(ctx, ino)
		err = cmp.Or(r.present(in.Oldnodeid, old, gone), r.below(ctx, in.NodeId, err))
	}
	return status(err)
}

func (r *raw) Unlink(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return r.remove(request(cancel), h.NodeId, name, r.FS.Unlink)
}

func (r *raw) Rmdir(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return r.remove(request(cancel), h.NodeId, name, r.FS.Rmdir)
}

// remove takes a name away.
func (r *raw) remove(ctx context.Context, node uint64, name string, do func(context.Context, vfs.Ino, string) error) fuse.Status {
	dir, err := r.place(node, name, true)
	if err != nil {
		return status(err)
	}
	a, unknown := r.FS.Lookup(ctx, dir, name)
	err = do(ctx, dir, name)
	if unknown == nil {
		r.removed(a.Ino, err)
	}
	return status(r.below(ctx, node, err))
}

func (r *raw) Rename(cancel <-chan struct{}, in *fuse.RenameIn, from, to string) fuse.Status {
	dir, err := r.place(in.NodeId, from, true)
	if err != nil {
		return status(err)
	}
	newDir, err := r.place(in.Newdir, to, true)
	if err != nil {
		return status(err)
	}
	if in.Flags&^(vfs.RenameNoReplace|vfs.RenameExchange) != 0 {
		return fuse.EINVAL
	}
	ctx := request(cancel)
	old, unknown := r.FS.Lookup(ctx, newDir, to)
	err = r.FS.Rename(ctx, dir, from, newDir, to, in.Flags)
	if unknown == nil {
		r.removed(old.Ino, err)
	}
	if err != nil {
		return status(r.below(ctx, in.Newdir, r.below(ctx, in.NodeId, err)))
	}
	r.renamed(ctx, newDir, to)
	if in.Flags&vfs.RenameExchange != 0 {
		r.renamed(ctx, dir, from)
	}
	return fuse.OK
}

func (r *raw) StatFs(cancel <-chan struct{}, h *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	s, err := r.FS.StatFS(request(cancel))
	*out = fuse.StatfsOut{Blocks: s.Blocks, Bfree: s.Free, Bavail: s.Free, Files: s.Files, Ffree: s.FFree, Bsize: uint32(s.BlockSize),
		Frsize: uint32(s.BlockSize), NameLen: vfs.MaxName}
	return status(err)
}

// xattr returns the part of the filesystem that has extended attributes, and the inode. The kernel has looked at permissions; of
// which classes there are it knows nothing.
func (r *raw) xattr(ctx context.Context, node uint64, name string, want vfs.Mode) (vfs.Xattrs, vfs.Ino, error) {
	x, ok := r.FS.(vfs.Xattrs)
	if !ok {
		return nil, 0, syscall.EOPNOTSUPP
	}
	if want == vfs.Write && r.ReadOnly {
		return nil, 0, syscall.EROFS
	}
	ino, err := r.inode(node)
	if err != nil || name == "" {
		return x, ino, err
	}
	a, err := r.FS.GetAttr(ctx, ino)
	if err = r.present(node, a, err); err == nil {
		err = vfs.Cred{}.CheckXattr(a, name, want)
	}
	return x, ino, err
}

// fill answers a question that may be about the size only.
func fill(dest, value []byte) (uint32, fuse.Status) {
	switch {
	case len(dest) == 0:
		return uint32(len(value)), fuse.OK
	case len(value) > len(dest):
		return uint32(len(value)), fuse.ERANGE
	}
	return uint32(copy(dest, value)), fuse.OK
}

func (r *raw) GetXAttr(cancel <-chan struct{}, h *fuse.InHeader, name string, dest []byte) (uint32, fuse.Status) {
	ctx := request(cancel)
	x, ino, err := r.xattr(ctx, h.NodeId, name, vfs.Read)
	if err != nil {
		return 0, status(err)
	}
	v, err := x.GetXattr(ctx, ino, name)
	if err != nil {
		return 0, status(vanished(err))
	}
	return fill(dest, v)
}

func (r *raw) ListXAttr(cancel <-chan struct{}, h *fuse.InHeader, dest []byte) (uint32, fuse.Status) {
	ctx := request(cancel)
	x, ino, err := r.xattr(ctx, h.NodeId, "", vfs.Read)
	if err != nil {
		return 0, status(err)
	}
	names, err := x.ListXattr(ctx, ino)
	if err != nil {
		return 0, status(vanished(err))
	}
	var list []byte
	for _, n := range names {
		if h.Uid != 0 && strings.HasPrefix(n, "trusted.") {
			continue
		}
		list = append(append(list, n...), 0)
	}
	return fill(dest, list)
}

func (r *raw) SetXAttr(cancel <-chan struct{}, in *fuse.SetXAttrIn, name string, value []byte) fuse.Status {
	ctx := request(cancel)
	switch flags := in.Flags; {
	case flags&^(vfs.XattrCreate|vfs.XattrReplace) != 0 || flags == vfs.XattrCreate|vfs.XattrReplace:
		return fuse.EINVAL
	case len(value) > vfs.MaxXattrValue:
		return fuse.Status(syscall.E2BIG)
	}
	x, ino, err := r.xattr(ctx, in.NodeId, name, vfs.Write)
	if err == nil {
		err = vanished(x.SetXattr(ctx, ino, name, value, int(in.Flags)))
	}
	return status(err)
}

func (r *raw) RemoveXAttr(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	ctx := request(cancel)
	x, ino, err := r.xattr(ctx, h.NodeId, name, vfs.Write)
	if err == nil {
		err = vanished(x.RemoveXattr(ctx, ino, name))
	}
	return status(err)
}

// eof makes the end of a file what a kernel takes it for: fewer bytes.
func eof(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}
