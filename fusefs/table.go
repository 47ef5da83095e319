package fusefs

import (
	"context"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"agentrun.dev/vfs"
)

// raw is the filesystem as go-fuse wants it, with the tables.
type raw struct {
	fuse.RawFileSystem // answers ENOSYS to what isn't here
	Options
	root vfs.Ino

	mu      sync.Mutex
	nodes   map[vfs.Ino]uint64 // how often the kernel was told of each, without the root
	handles map[uint64]*handle
	last    uint64 // number of a handle
}

func newRaw(o Options) *raw {
	return &raw{RawFileSystem: fuse.NewDefaultRawFileSystem(), Options: o, root: o.FS.Root(), nodes: map[vfs.Ino]uint64{}, handles: map[uint64]*handle{}}
}

func (r *raw) String() string { return "agentrun" }

// handle is an open file, or an open directory.
type handle struct {
	ino   vfs.Ino
	flags int
	file  vfs.Handle // nil for a directory

	mu   sync.Mutex
	list []vfs.DirEntry // as of the last time it was read from the start
}

// FUSE's root is 1, whatever the filesystem's is; the two change places.
func (r *raw) number(ino vfs.Ino) uint64 {
	switch ino {
	case r.root:
		return fuse.FUSE_ROOT_ID
	case fuse.FUSE_ROOT_ID:
		return uint64(r.root)
	}
	return uint64(ino)
}

// inode returns the inode of a node that the kernel knows; ESTALE.
func (r *raw) inode(node uint64) (vfs.Ino, error) {
	ino := vfs.Ino(node)
	switch ino {
	case fuse.FUSE_ROOT_ID:
		return r.root, nil
	case r.root:
		ino = fuse.FUSE_ROOT_ID
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.nodes[ino] == 0 {
		return 0, syscall.ESTALE
	}
	return ino, nil
}

// told counts that the kernel is told of an inode, to which the filesystem has just given a reference. ENFILE: it knows too many.
func (r *raw) told(ino vfs.Ino) error {
	if ino == r.root {
		r.FS.Forget(ino, 1)
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.nodes[ino] == 0 && len(r.nodes) >= r.Nodes {
		r.FS.Forget(ino, 1)
		return syscall.ENFILE
	}
	r.nodes[ino]++
	return nil
}

// Forget is the kernel's.
func (r *raw) Forget(node, n uint64) {
	ino, err := r.inode(node)
	if err != nil || ino == r.root {
		return
	}
	r.mu.Lock()
	n = min(n, r.nodes[ino])
	if r.nodes[ino] -= n; r.nodes[ino] == 0 {
		delete(r.nodes, ino)
	}
	r.mu.Unlock()
	r.FS.Forget(ino, n)
}

// keep makes a handle known. ENFILE: there are too many.
func (r *raw) keep(h *handle) (uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.handles) >= r.Handles {
		return 0, syscall.ENFILE
	}
	r.last++
	r.handles[r.last] = h
	return r.last, nil
}

// handle returns an open file, or an open directory; EBADF.
func (r *raw) handle(fh uint64, dir bool) (*handle, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.handles[fh]
	if h == nil || (h.file == nil) != dir {
		return nil, syscall.EBADF
	}
	return h, nil
}

// release closes a handle.
func (r *raw) release(fh uint64) {
	r.mu.Lock()
	h := r.handles[fh]
	delete(r.handles, fh)
	r.mu.Unlock()
	if h != nil && h.file != nil {
		_ = h.file.Close() // FLUSH told of the error
	}
}

// reset forgets everything.
func (r *raw) reset() {
	r.mu.Lock()
	nodes, handles := r.nodes, r.handles
	r.nodes, r.handles = map[vfs.Ino]uint64{}, map[uint64]*handle{}
	r.mu.Unlock()
	for _, h := range handles {
		if h.file != nil {
			_ = h.file.Close()
		}
	}
	for ino, n := range nodes {
		r.FS.Forget(ino, n)
	}
}

// copyTo makes the tables of a clone. What its filesystem doesn't know is left out: ESTALE.
func (r *raw) copyTo(ctx context.Context, c *raw, holder vfs.Holder) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for ino, n := range r.nodes {
		switch err := holder.Hold(ino, n); {
		case err == nil:
			c.nodes[ino] = n
		case vfs.Errno(err) != syscall.ESTALE:
			return err
		}
	}
	for fh, h := range r.handles {
		d := &handle{ino: h.ino, flags: h.flags}
		if h.file == nil {
			h.mu.Lock()
			d.list = h.list // never changed, only replaced
			h.mu.Unlock()
		} else {
			f, err := c.FS.Open(ctx, h.ino, h.flags&^vfs.O_TRUNC)
			if vfs.Errno(err) == syscall.ESTALE {
				continue
			} else if err != nil {
				return err
			}
			d.file = f
		}
		c.handles[fh] = d
	}
	c.last = r.last
	return nil
}

func (r *raw) stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Stats{Nodes: len(r.nodes), Handles: len(r.handles)}
}
