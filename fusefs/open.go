package fusefs

import (
	"context"
	"math"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"agentrun.dev/vfs"
)

// openFlags are those that mean something beneath the kernel. Each write says for itself whether it appends.
const openFlags = vfs.O_ACCMODE | vfs.O_TRUNC

// open opens a file of which the kernel knows, or is about to; made says that it was made for that.
func (r *raw) open(ctx context.Context, node uint64, ino vfs.Ino, made bool, flags uint32, out *fuse.OpenOut) error {
	h := &handle{ino: ino, flags: int(flags) & openFlags}
	if r.ReadOnly && (h.flags&vfs.O_ACCMODE != vfs.O_RDONLY || h.flags&vfs.O_TRUNC != 0) {
		return syscall.EROFS
	}
	file, err := r.FS.Open(ctx, ino, h.flags)
	if err != nil {
		return vanished(err)
	}
	if !made {
		a, err := file.Attr()
		if err = r.present(node, a, err); err != nil {
			file.Close()
			return err
		}
	}
	h.file = file
	if out.Fh, err = r.keep(h); err != nil {
		file.Close()
	}
	return err
}

func (r *raw) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	ino, err := r.inode(in.NodeId)
	if err == nil {
		err = r.open(request(cancel), in.NodeId, ino, false, in.Flags, out)
	}
	return status(err)
}

func (r *raw) Create(cancel <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	ctx := request(cancel)
	dir, err := r.place(in.NodeId, name, true)
	if err != nil {
		return status(err)
	}
	mode, c, err := r.heir(ctx, dir, &in.InHeader, in.Mode&uint32(vfs.ModePerm)|uint32(vfs.ModeRegular))
	if err != nil {
		return status(err)
	}
	a, made, err := r.create(ctx, dir, name, mode, c, in.Flags)
	if err = r.entry(a, dir, name, err, &out.EntryOut); err != nil {
		return status(r.below(ctx, in.NodeId, err))
	}
	if err = r.open(ctx, out.NodeId, a.Ino, made, in.Flags, &out.OpenOut); err != nil {
		r.Forget(out.NodeId, 1) // the kernel isn't told of it
	}
	return status(err)
}

// create makes a file, or returns the one that is there although the kernel doesn't know of it: somebody else was faster, through
// another door. ESTALE: that isn't a file, and the kernel has to look.
func (r *raw) create(ctx context.Context, dir vfs.Ino, name string, mode vfs.Mode, c vfs.Cred, flags uint32) (a vfs.Attr, made bool, err error) {
	for range 100 {
		if a, err = r.FS.Create(ctx, dir, name, mode, c); vfs.Errno(err) != syscall.EEXIST || flags&vfs.O_EXCL != 0 {
			return a, err == nil, err
		}
		if a, err = r.FS.Lookup(ctx, dir, name); err == nil && !a.Mode.IsRegular() {
			r.FS.Forget(a.Ino, 1)
			return a, false, syscall.ESTALE
		}
		if vfs.Errno(err) != syscall.ENOENT { // else it is gone again
			break
		}
	}
	return a, false, err
}

func (r *raw) Read(cancel <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	h, err := r.handle(in.Fh, false)
	switch {
	case err != nil:
	case h.flags&vfs.O_ACCMODE == vfs.O_WRONLY:
		err = syscall.EBADF
	case in.Offset > math.MaxInt64:
		err = syscall.EINVAL
	}
	if err != nil {
		return nil, status(err)
	}
	n, err := h.file.ReadAt(buf[:min(len(buf), int(in.Size))], int64(in.Offset))
	return fuse.ReadResultData(buf[:n]), status(eof(err))
}

// written returns the handle that a change comes by.
func (r *raw) written(fh uint64) (*handle, error) {
	h, err := r.handle(fh, false)
	if err == nil && h.flags&vfs.O_ACCMODE == vfs.O_RDONLY {
		err = syscall.EBADF
	}
	return h, err
}

func (r *raw) Write(cancel <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	h, err := r.written(in.Fh)
	switch {
	case err != nil:
		return 0, status(err)
	case in.Offset > uint64(math.MaxInt64-len(data)):
		return 0, fuse.Status(syscall.EFBIG)
	case in.Flags&vfs.O_APPEND != 0 && in.WriteFlags&fuse.WRITE_CACHE == 0:
		// Where the end is, we know better than a kernel that isn't alone. The request says whether to append: fcntl may have changed
		// it since the file was opened, and a page of a mapping goes where it came from.
		_, err = h.file.Append(data)
	default:
		_, err = h.file.WriteAt(data, int64(in.Offset))
	}
	if err != nil {
		return 0, status(err)
	}
	return uint32(len(data)), fuse.OK
}

// keepSize is FALLOC_FL_KEEP_SIZE.
const keepSize = 1

// Fallocate extends a file. Space isn't reserved: what is written is accounted when it is.
func (r *raw) Fallocate(cancel <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	h, err := r.written(in.Fh)
	switch {
	case err != nil:
		return status(err)
	case in.Mode&^keepSize != 0:
		return fuse.Status(syscall.EOPNOTSUPP)
	case in.Length == 0 || in.Offset > math.MaxInt64 || in.Length > math.MaxInt64-in.Offset:
		return fuse.EINVAL
	case in.Mode == keepSize:
		return fuse.OK
	}
	a, err := h.file.Attr()
	if end := int64(in.Offset + in.Length); err == nil && end > a.Size {
		err = h.file.Truncate(end)
	}
	return status(err)
}

// Flush comes when a process closes the file: what it wrote is visible to everybody afterwards, as closing any handle makes it.
func (r *raw) Flush(cancel <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	h, err := r.handle(in.Fh, false)
	if err != nil || h.flags&vfs.O_ACCMODE == vfs.O_RDONLY {
		return status(err)
	}
	f, err := r.FS.Open(request(cancel), h.ino, vfs.O_RDONLY)
	if err == nil {
		err = f.Close()
	}
	return status(err)
}

func (r *raw) Fsync(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	h, err := r.handle(in.Fh, false)
	if err == nil {
		err = h.file.Sync(request(cancel))
	}
	return status(err)
}

func (r *raw) Release(cancel <-chan struct{}, in *fuse.ReleaseIn) {
	if _, err := r.handle(in.Fh, false); err != syscall.EBADF {
		r.release(in.Fh)
	}
}

func (r *raw) OpenDir(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	ctx := request(cancel)
	ino, err := r.inode(in.NodeId)
	if err != nil {
		return status(err)
	}
	a, err := r.FS.GetAttr(ctx, ino)
	if err = r.present(in.NodeId, a, err); err == nil && !a.Mode.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return status(err)
	}
	out.Fh, err = r.keep(&handle{ino: ino})
	return status(err)
}

func (r *raw) ReleaseDir(in *fuse.ReleaseIn) {
	if _, err := r.handle(in.Fh, true); err != syscall.EBADF {
		r.release(in.Fh)
	}
}

// FsyncDir makes names durable.
func (r *raw) FsyncDir(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	_, err := r.handle(in.Fh, true)
	if f, ok := r.FS.(vfs.Flusher); err == nil && ok && !r.ReadOnly {
		err = f.Flush(request(cancel), true)
	}
	return status(err)
}

// syncFS makes everything durable, whatever it was written through: SYNCFS is what the kernel makes of sync and syncfs. It asks no
// filesystem but virtio-fs, and never again one that doesn't know the question. An error is the first that a file had. Lax, it is enough that
// others see it.
func (r *raw) syncFS() error {
	f, ok := r.FS.(vfs.Flusher)
	if !ok || r.ReadOnly {
		return nil
	}
	return f.Flush(context.Background(), !r.lax.Load())
}

// listing returns the entries of a directory that follow a position. Positions count from 1, which is after ".".
func (r *raw) listing(ctx context.Context, in *fuse.ReadIn) ([]vfs.DirEntry, error) {
	h, err := r.handle(in.Fh, true)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	entries := h.list
	r.mu.Unlock()
	if in.Offset == 0 || entries == nil {
		list, err := r.FS.ReadDir(ctx, h.ino)
		if err != nil {
			return nil, err
		}
		dot := vfs.DirEntry{Name: ".", Ino: h.ino, Mode: vfs.ModeDir}
		entries = append(make([]vfs.DirEntry, 0, len(list)+2), dot, vfs.DirEntry{Name: "..", Ino: h.ino, Mode: vfs.ModeDir})
		entries = append(entries, list...)
		r.mu.Lock()
		if r.handles[in.Fh] == h { // not closed meanwhile
			r.setList(h, entries)
		}
		r.mu.Unlock()
	}
	return entries[min(in.Offset, uint64(len(entries))):], nil
}

func (r *raw) dirent(e vfs.DirEntry) fuse.DirEntry {
	return fuse.DirEntry{Name: e.Name, Ino: r.number(e.Ino), Mode: uint32(e.Mode)}
}

func (r *raw) ReadDir(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	list, err := r.listing(request(cancel), in)
	for _, e := range list {
		if !out.AddDirEntry(r.dirent(e)) {
			break
		}
	}
	return status(err)
}

// ReadDirPlus tells the kernel of what it lists. "." and ".." it doesn't want to know, nor what is gone meanwhile.
func (r *raw) ReadDirPlus(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	ctx := request(cancel)
	list, err := r.listing(ctx, in)
	if err != nil {
		return status(err)
	}
	h, err := r.handle(in.Fh, true)
	if err != nil {
		return status(err)
	}
	for _, e := range list {
		entry := out.AddDirLookupEntry(r.dirent(e))
		if entry == nil {
			break
		}
		*entry = fuse.EntryOut{}
		if e.Name == "." || e.Name == ".." {
			continue
		}
		a, err := r.FS.Lookup(ctx, h.ino, e.Name)
		if r.entry(a, h.ino, e.Name, err, entry) != nil {
			*entry = fuse.EntryOut{} // the kernel looks it up itself, and is told why
		}
	}
	return fuse.OK
}
