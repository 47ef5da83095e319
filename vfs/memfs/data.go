package memfs

import (
	"bytes"
	"context"
	"io"
	"maps"
	"slices"
	"sync/atomic"
	"syscall"

	"agentrun.dev/vfs"
)

// pageSize is the unit in which contents are shared between clones, and in which holes are kept.
const pageSize = 64 << 10

// maxSize bounds a file: its table of pages must stay small even if it is all holes.
const maxSize = 1 << 40

// page holds up to pageSize bytes; what lies beyond them within the file is zero. Without an owner's token in common with
// the filesystem, b is shared and must not be changed.
type page struct {
	b     []byte
	owner *token
}

// put writes b into page i, from at on; all of it, or ENOSPC.
func (f *FS) put(n *node, i, at int, b []byte) error {
	if missing := i + 1 - len(n.pages); missing > 0 {
		n.pages = append(n.pages, make([]page, missing)...)
	}
	p, size := &n.pages[i], at+len(b)
	grow := int64(max(0, size-len(p.b)))
	if f.used+grow > f.opt.Bytes {
		return syscall.ENOSPC
	}
	f.account(n, grow)
	switch ours := p.owner == f.token; {
	case at == 0 && size >= len(p.b) && (!ours || size > cap(p.b)):
		p.b, p.owner = append([]byte(nil), b...), f.token // nothing is cleared first
		return nil
	case !ours:
		own := make([]byte, max(size, len(p.b)))
		copy(own, p.b)
		p.b, p.owner = own, f.token
	case size > cap(p.b):
		own := make([]byte, size, min(pageSize, max(size, 2*cap(p.b))))
		copy(own, p.b)
		p.b = own
	case size > len(p.b):
		old := len(p.b)
		p.b = p.b[:size]
		clear(p.b[old:])
	}
	copy(p.b[at:], b)
	return nil
}

// write writes at an offset; less than all with ENOSPC.
func (f *FS) write(n *node, p []byte, off int64) (done int, err error) {
	if off > maxSize-int64(len(p)) {
		return 0, syscall.EFBIG
	}
	for len(p) > 0 {
		i, at := int(off/pageSize), int(off%pageSize)
		k := min(len(p), pageSize-at)
		if f.put(n, i, at, p[:k]) != nil {
			break
		}
		done, off, p = done+k, off+int64(k), p[k:]
	}
	if done > 0 {
		n.attr.Size = max(n.attr.Size, off)
		f.touch(n)
	}
	if len(p) > 0 {
		return done, syscall.ENOSPC
	}
	return done, nil
}

func (n *node) read(p []byte, off int64) (int, error) {
	if off >= n.attr.Size {
		return 0, io.EOF
	}
	want := len(p)
	p = p[:min(int64(len(p)), n.attr.Size-off)]
	for rest := p; len(rest) > 0; {
		i, at := int(off/pageSize), int(off%pageSize)
		k := min(len(rest), pageSize-at)
		got := 0
		if i < len(n.pages) && at < len(n.pages[i].b) {
			got = copy(rest[:k], n.pages[i].b[at:])
		}
		clear(rest[got:k])
		rest, off = rest[k:], off+int64(k)
	}
	if len(p) < want {
		return len(p), io.EOF
	}
	return len(p), nil
}

// resize frees what lies beyond size.
func (f *FS) resize(n *node, size int64) {
	keep := int((size + pageSize - 1) / pageSize)
	for i := keep; i < len(n.pages); i++ {
		f.account(n, -int64(len(n.pages[i].b)))
	}
	if keep < len(n.pages) {
		clear(n.pages[keep:])
		n.pages = n.pages[:keep]
	}
	if at := int(size % pageSize); at > 0 && keep == len(n.pages) && keep > 0 {
		if p := &n.pages[keep-1]; len(p.b) > at {
			f.account(n, int64(at-len(p.b)))
			p.b = p.b[:at:at] // the bytes beyond must not come back
		}
	}
}

// account counts bytes that an inode takes or, below zero, gives back.
func (f *FS) account(n *node, bytes int64) {
	f.used += bytes
	n.bytes += bytes
	n.attr.Blocks = (n.bytes + 511) / 512
}

func (f *FS) truncate(n *node, size int64) error {
	switch {
	case size > maxSize:
		return syscall.EFBIG
	case n.attr.Mode.IsDir():
		return syscall.EISDIR
	case !n.attr.Mode.IsRegular() || size < 0:
		return syscall.EINVAL
	}
	f.resize(n, size)
	n.attr.Size = size
	f.touch(n)
	return nil
}

// Open implements vfs.FS.
func (f *FS) Open(_ context.Context, ino vfs.Ino, flags int) (vfs.Handle, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.get(ino)
	switch {
	case err != nil:
		return nil, err
	case n.attr.Mode.IsDir():
		return nil, syscall.EISDIR
	case !n.attr.Mode.IsRegular():
		return nil, syscall.ENXIO
	}
	if flags&vfs.O_TRUNC != 0 {
		if err := f.truncate(n, 0); err != nil {
			return nil, err
		}
	}
	n.opens++
	return &handle{f: f, n: n}, nil
}

type handle struct {
	f      *FS
	n      *node
	closed atomic.Bool
}

func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	h.f.mu.RLock()
	defer h.f.mu.RUnlock()
	return h.n.read(p, off)
}

func (h *handle) WriteAt(p []byte, off int64) (int, error) {
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	return h.f.write(h.n, p, off)
}

func (h *handle) Append(p []byte) (int64, error) {
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	off := h.n.attr.Size
	n, err := h.f.write(h.n, p, off)
	if err != nil && n > 0 { // all or nothing
		h.f.resize(h.n, off)
		h.n.attr.Size = off
	}
	return off, err
}

func (h *handle) Truncate(size int64) error {
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	return h.f.truncate(h.n, size)
}

func (h *handle) Attr() (vfs.Attr, error) {
	h.f.mu.RLock()
	defer h.f.mu.RUnlock()
	return h.n.attr, nil
}

func (h *handle) Sync(context.Context) error { return nil }

func (h *handle) Close() error {
	if h.closed.Swap(true) {
		return syscall.EBADF
	}
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	h.n.opens--
	h.f.drop(h.n)
	return nil
}

// GetXattr implements vfs.Xattrs.
func (f *FS) GetXattr(_ context.Context, ino vfs.Ino, name string) ([]byte, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	n, err := f.get(ino)
	if err != nil {
		return nil, err
	}
	v, ok := n.xattrs[name]
	if !ok {
		return nil, syscall.ENODATA
	}
	return bytes.Clone(v), nil
}

// maxXattrs bounds an inode's extended attributes together, in bytes of names and values.
const maxXattrs = 128 << 10

// SetXattr implements vfs.Xattrs.
func (f *FS) SetXattr(_ context.Context, ino vfs.Ino, name string, value []byte, flags int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.get(ino)
	if err != nil {
		return err
	}
	_, have := n.xattrs[name]
	switch {
	case have && flags&vfs.XattrCreate != 0:
		return syscall.EEXIST
	case !have && flags&vfs.XattrReplace != 0:
		return syscall.ENODATA
	}
	total := len(name) + len(value)
	for k, v := range n.xattrs {
		if k != name {
			total += len(k) + len(v)
		}
	}
	if total > maxXattrs {
		return syscall.ENOSPC
	}
	if n.xattrs == nil {
		n.xattrs = map[string][]byte{}
	}
	n.xattrs[name] = append([]byte{}, value...)
	n.attr.Ctime = f.opt.Now()
	return nil
}

// ListXattr implements vfs.Xattrs.
func (f *FS) ListXattr(_ context.Context, ino vfs.Ino) ([]string, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	n, err := f.get(ino)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(n.xattrs)), nil
}

// RemoveXattr implements vfs.Xattrs.
func (f *FS) RemoveXattr(_ context.Context, ino vfs.Ino, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.get(ino)
	if err != nil {
		return err
	}
	if _, ok := n.xattrs[name]; !ok {
		return syscall.ENODATA
	}
	delete(n.xattrs, name)
	n.attr.Ctime = f.opt.Now()
	return nil
}
