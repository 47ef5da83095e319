package bucketfs

import (
	"context"
	"sync/atomic"
	"syscall"

	"agentrun.dev/bucket"
	"agentrun.dev/vfs"
)

// Open implements vfs.FS.
func (f *FS) Open(ctx context.Context, ino vfs.Ino, flags int) (vfs.Handle, error) {
	write := flags&vfs.O_ACCMODE != vfs.O_RDONLY || flags&vfs.O_TRUNC != 0
	f.mu.Lock()
	n, err := f.get(ino)
	switch {
	case err != nil:
	case n.dir:
		err = syscall.EISDIR
	case !vfs.Mode(n.px.Mode).IsRegular():
		err = syscall.ENXIO
	case write && f.b == nil:
		err = syscall.EROFS
	default:
		n.opens++
		f.settle(n)
	}
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	h := &handle{f: f, n: n}
	n.data.mu.Lock()
	err = f.openData(ctx, n)
	n.data.mu.Unlock()
	if err == nil && flags&vfs.O_TRUNC != 0 {
		err = h.Truncate(0)
	}
	if err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// handle is an open file. Its state is the node's, which all handles share.
type handle struct {
	f      *FS
	n      *node
	closed atomic.Bool
}

func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	d := &h.n.data
	if d.stale.Load() {
		d.mu.Lock()
		err := h.f.openData(context.Background(), h.n)
		d.mu.Unlock()
		if err != nil {
			return 0, err
		}
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.readAt(p, off)
}

func (h *handle) WriteAt(p []byte, off int64) (int, error) {
	h.n.data.mu.Lock()
	err := h.f.write(h.n, p, off)
	h.n.data.mu.Unlock()
	if err == nil {
		err = h.f.relieve(context.Background())
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

func (h *handle) Append(p []byte) (int64, error) {
	h.n.data.mu.Lock()
	off := h.n.data.size.Load()
	err := h.f.write(h.n, p, off)
	h.n.data.mu.Unlock()
	if err == nil {
		err = h.f.relieve(context.Background())
	}
	return off, err
}

// write takes bytes over. The caller holds data.mu.
func (f *FS) write(n *node, p []byte, off int64) error {
	if f.b == nil {
		return syscall.EROFS
	}
	if off > bucket.MaxObject-int64(len(p)) {
		return syscall.EFBIG
	}
	if len(p) == 0 {
		return nil
	}
	d := &n.data
	end := off + int64(len(p))
	if err := f.room(d, max(end-d.size.Load(), 0)); err != nil {
		return err
	}
	if d.spill != nil {
		if _, err := d.spill.WriteAt(p, off); err != nil {
			return syscall.ENOSPC
		}
	} else {
		f.account(n, d.put(p, off))
	}
	d.size.Store(max(d.size.Load(), end))
	f.modified(d)
	return nil
}

// room counts by how much a file grows or shrinks. ENOSPC: the volume has a size, and would exceed it.
func (f *FS) room(d *data, grow int64) error {
	if f.opt.Bytes == 0 || grow == 0 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if grow < 0 {
		grow = max(grow, -d.grown) // what the bucket has is counted there until it is written out
		f.grown += grow
		d.grown += grow
		return nil
	}
	fits := func() bool { return int64(f.view.Info().Bytes)+f.grown+grow <= f.opt.Bytes }
	if !fits() {
		// What others deleted doesn't show in an old view.
		if err := f.refresh(context.Background()); err != nil {
			return err
		}
		if !fits() {
			return syscall.ENOSPC
		}
	}
	f.grown += grow
	d.grown += grow
	return nil
}

func (f *FS) modified(d *data) {
	d.dirty = true
	d.mtime.Store(f.opt.Now().UnixNano())
}

func (h *handle) Truncate(size int64) error {
	d := &h.n.data
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case h.f.b == nil:
		return syscall.EROFS
	case size < 0:
		return syscall.EINVAL
	case size > bucket.MaxObject:
		return syscall.EFBIG
	}
	if err := h.f.room(d, size-d.size.Load()); err != nil {
		return err
	}
	if d.spill != nil {
		if err := d.spill.Truncate(size); err != nil {
			return syscall.ENOSPC
		}
	} else {
		h.f.account(h.n, d.cut(size))
	}
	d.size.Store(size)
	h.f.modified(d)
	return nil
}

func (h *handle) Attr() (vfs.Attr, error) {
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	return h.f.attr(h.n), nil
}

// Sync writes the file out and makes it durable, and with it whatever came before.
func (h *handle) Sync(ctx context.Context) error {
	if h.f.b == nil {
		return nil
	}
	if err := h.f.flushNode(ctx, h.n, true); err != nil {
		return err
	}
	return wrap(h.f.b.Sync(ctx))
}

// Close makes what was written visible. After an error the file stays in memory, and Flush tries again.
func (h *handle) Close() error {
	if h.closed.Swap(true) {
		return syscall.EBADF
	}
	f, n, d := h.f, h.n, &h.n.data
	d.mu.Lock()
	defer d.mu.Unlock()
	f.mu.Lock()
	n.opens--
	last := n.opens == 0
	f.mu.Unlock()
	if err := f.flushLocked(context.Background(), n, !last); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if n.opens > 0 || n.fresh {
		return nil
	}
	if len(n.names) == 0 && n.px.Links <= 1 && !d.dirty {
		f.orphan(n) // wherever it may be: nobody here has a name for it
	}
	if n.gone && !d.dirty && d.spill == nil {
		f.keepLeft(n, &left{base: d.base, size: d.baseSize})
		d.base = nil
	}
	if n.gone || !d.dirty {
		f.account(n, f.cleaned(d))
		d.base.release()
		d.base = nil
		if d.spill != nil {
			d.spill.Close()
			d.spill = nil
		}
		d.loaded.Store(false)
	}
	f.settle(n)
	return nil
}
