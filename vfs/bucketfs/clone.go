package bucketfs

import (
	"bytes"
	"container/list"
	"context"
	"io"
	"maps"
	"os"
	"slices"
	"syscall"

	"agentrun.dev/bucket"
	"agentrun.dev/vfs"
)

// Clone returns the counterpart of the filesystem on a fork of its bucket, for Namespace.Clone and Adopt: inodes keep their
// numbers, and unlinked files that are open their contents. Call Flush before forking, and let nobody write in between:
// what is held back is EBUSY.
func (f *FS) Clone(ctx context.Context, fork *bucket.Bucket) (*FS, error) {
	v, err := fork.View(ctx)
	if err != nil {
		return nil, wrap(err)
	}
	c := newFS(v, fork, f.opt)
	orphans, err := f.copyNodes(c)
	if err == nil {
		for from, to := range orphans {
			if err = from.data.copyTo(c, to); err != nil {
				break
			}
		}
	}
	if err != nil {
		v.Close()
		return nil, err
	}
	return c, nil
}

// copyNodes copies the table of nodes, and returns the unlinked ones.
func (f *FS) copyNodes(c *FS) (orphans map[*node]*node, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.temp = f.temp
	twins := map[*node]*node{f.root: c.root}
	orphans = map[*node]*node{}
	for ino, n := range f.inos {
		if n.fresh && !n.gone || !n.gone && n.data.dirty {
			return nil, syscall.EBUSY
		}
		m := c.root
		if n != f.root {
			m = &node{ino: n.ino, dir: n.dir, begun: n.begun, obj: n.obj, rec: n.rec, fresh: n.fresh, gone: n.gone}
			twins[n], c.inos[ino] = m, m
		}
		m.px, m.mtime, m.moved = n.px, n.mtime, n.moved
		if n.gone && !n.dir {
			orphans[n] = m
		}
	}
	for n, m := range twins {
		for _, d := range n.names {
			m.names = append(m.names, dent{parent: twins[d.parent], name: d.name, part: d.part, shadowed: d.shadowed})
		}
		if n.kids != nil {
			m.kids = make(map[string]*node, len(n.kids))
		}
		for name, k := range n.kids {
			m.kids[name] = twins[k]
		}
	}
	for id, n := range f.ids {
		if m := twins[n]; m != nil {
			c.ids[id] = m
		}
	}
	c.idle = list.New()
	for _, ino := range slices.Sorted(maps.Keys(c.inos)) {
		if m := c.inos[ino]; !m.gone && m != c.root {
			m.elem = c.idle.PushBack(m)
		}
	}
	return orphans, nil
}

// copyTo gives another node the same contents, of an unlinked file. The object beneath is shared.
func (d *data) copyTo(c *FS, n *node) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	to := &n.data
	to.loaded.Store(d.loaded.Load())
	to.size.Store(d.size.Load())
	to.mtime.Store(d.mtime.Load())
	to.baseSize, to.valid, to.dirty = d.baseSize, d.valid, d.dirty
	if to.base = d.base; d.base != nil {
		d.base.refs.Add(1)
	}
	if d.spill != nil {
		t, err := copyFile(d.spill, d.size.Load(), c.opt.TempDir)
		if err != nil {
			return err
		}
		to.spill = t
		return nil
	}
	for _, e := range d.exts {
		to.exts = append(to.exts, extent{e.off, bytes.Clone(e.b)})
	}
	to.held = d.held
	c.account(n, to.held)
	return nil
}

// copyFile copies a temporary file into a new one without a name.
func copyFile(from *os.File, size int64, dir string) (*os.File, error) {
	t, err := unnamed(dir)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(io.NewOffsetWriter(t, 0), io.NewSectionReader(from, 0, size)); err != nil {
		t.Close()
		return nil, syscall.ENOSPC
	}
	if err := t.Truncate(size); err != nil {
		t.Close()
		return nil, syscall.ENOSPC
	}
	return t, nil
}

// unnamed makes a temporary file that only its descriptor keeps.
func unnamed(dir string) (*os.File, error) {
	t, err := os.CreateTemp(dir, "unlinked-")
	if err != nil {
		return nil, syscall.ENOSPC
	}
	if err := os.Remove(t.Name()); err != nil {
		t.Close()
		return nil, syscall.EIO
	}
	return t, nil
}

var _ vfs.FS = (*FS)(nil)
