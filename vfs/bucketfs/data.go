package bucketfs

import (
	"bytes"
	"container/list"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"agentrun.dev/bucket"
	"agentrun.dev/vfs"
)

// data is the contents of a file that is open or isn't in the bucket yet: bytes of the object as it was, and over them what
// was written since.
type data struct {
	mu     sync.RWMutex
	loaded atomic.Bool
	size   atomic.Int64
	mtime  atomic.Int64 // nanoseconds; 0 while nothing was written
	stale  atomic.Bool  // the object was written elsewhere: base must be opened again

	base     *base
	baseSize int64    // of the object that base reads
	valid    int64    // bytes of base that count; the file was truncated to this since
	exts     []extent // in order, without overlaps
	held     int64    // bytes in exts
	grown    int64    // bytes that FS.grown counts for this file
	dirty    bool
	spill    *os.File // of an unlinked file that outgrew memory: all of its contents
}

// extent is bytes that were written.
type extent struct {
	off int64
	b   []byte
}

func (e extent) end() int64 { return e.off + int64(len(e.b)) }

// maxExtent bounds how far an extent grows by appending, and so what that copies.
const maxExtent = 1 << 20

// base is an opened object, shared with clones of the filesystem.
type base struct {
	r    bucket.Reader
	refs atomic.Int32
}

func newBase(r bucket.Reader) *base {
	b := &base{r: r}
	b.refs.Store(1)
	return b
}

func (b *base) release() {
	if b != nil && b.refs.Add(-1) == 0 {
		b.r.Close()
	}
}

// put writes over what is there. It returns by how many bytes held has grown.
func (d *data) put(p []byte, off int64) int64 {
	before := d.held
	end := off + int64(len(p))
	if n := len(d.exts); n > 0 {
		if last := &d.exts[n-1]; last.end() == off && len(last.b)+len(p) <= maxExtent {
			last.b = append(last.b, p...)
			d.held += int64(len(p))
			return int64(len(p))
		}
	}
	// lo is the first extent that ends after off, hi the first that begins at or after end.
	lo, _ := slices.BinarySearchFunc(d.exts, off, func(e extent, off int64) int {
		if e.end() <= off {
			return -1
		}
		return 1
	})
	hi := lo
	for hi < len(d.exts) && d.exts[hi].off < end {
		hi++
	}
	if hi == lo+1 && d.exts[lo].off <= off && d.exts[lo].end() >= end {
		copy(d.exts[lo].b[off-d.exts[lo].off:], p)
		return 0
	}
	var with []extent
	if lo < hi && d.exts[lo].off < off {
		with = append(with, extent{d.exts[lo].off, slices.Clip(d.exts[lo].b[:off-d.exts[lo].off])})
	}
	with = append(with, extent{off, bytes.Clone(p)})
	if last := hi - 1; lo < hi && d.exts[last].end() > end {
		with = append(with, extent{end, d.exts[last].b[end-d.exts[last].off:]})
	}
	for _, e := range d.exts[lo:hi] {
		d.held -= int64(len(e.b))
	}
	for _, e := range with {
		d.held += int64(len(e.b))
	}
	d.exts = slices.Replace(d.exts, lo, hi, with...)
	return d.held - before
}

// cut drops what lies beyond size.
func (d *data) cut(size int64) int64 {
	before := d.held
	for n := len(d.exts); n > 0 && d.exts[n-1].end() > size; n = len(d.exts) {
		e := &d.exts[n-1]
		if e.off >= size {
			d.held -= int64(len(e.b))
			d.exts = d.exts[:n-1]
			continue
		}
		d.held -= e.end() - size
		e.b = slices.Clip(e.b[:size-e.off])
	}
	d.valid = min(d.valid, size)
	return d.held - before
}

// readAt reads what the file is now.
func (d *data) readAt(p []byte, off int64) (n int, err error) {
	if d.spill != nil {
		return d.spill.ReadAt(p, off)
	}
	size := d.size.Load()
	if off >= size {
		return 0, io.EOF
	}
	if int64(len(p)) > size-off {
		p, err = p[:size-off], io.EOF
	}
	end := off + int64(len(p))
	lo, _ := slices.BinarySearchFunc(d.exts, off, func(e extent, off int64) int {
		if e.end() <= off {
			return -1
		}
		return 1
	})
	if lo < len(d.exts) && d.exts[lo].off <= off && d.exts[lo].end() >= end {
		return copy(p, d.exts[lo].b[off-d.exts[lo].off:]), err
	}
	old := 0
	if off < d.valid && d.base != nil {
		old = int(min(int64(len(p)), d.valid-off))
		if _, err := d.base.r.ReadAt(p[:old], off); err != nil && !errors.Is(err, io.EOF) {
			return 0, wrap(err)
		}
	}
	clear(p[old:])
	for _, e := range d.exts[lo:] {
		if e.off >= end {
			break
		}
		if e.off >= off {
			copy(p[e.off-off:], e.b)
		} else {
			copy(p, e.b[off-e.off:])
		}
	}
	return len(p), err
}

// runs are neighbouring extents, each to be written at once.
func (d *data) runs() [][]extent {
	var runs [][]extent
	for i, e := range d.exts {
		if i > 0 && d.exts[i-1].end() == e.off {
			runs[len(runs)-1] = append(runs[len(runs)-1], e)
			continue
		}
		runs = append(runs, []extent{e})
	}
	return runs
}

// clean forgets what was written, after it went to the bucket.
func (d *data) clean() {
	d.exts, d.held, d.dirty = nil, 0, false
	d.mtime.Store(0)
}

// account tells the filesystem how much a file holds back.
func (f *FS) account(n *node, grown int64) {
	if grown == 0 {
		return
	}
	f.dirtyBytes.Add(grown)
	f.dirtyMu.Lock()
	defer f.dirtyMu.Unlock()
	if n.data.held == 0 {
		delete(f.dirty, n)
	} else {
		f.dirty[n] = n.data.held
	}
}

// relieve writes out the file that holds most while too much is held back. The caller holds no locks.
func (f *FS) relieve(ctx context.Context) error {
	for f.dirtyBytes.Load() > f.opt.Dirty {
		f.dirtyMu.Lock()
		var most *node
		for n, held := range f.dirty {
			if most == nil || held > f.dirty[most] {
				most = n
			}
		}
		f.dirtyMu.Unlock()
		if most == nil {
			return nil
		}
		if err := f.flushNode(ctx, most, true); err != nil {
			return err
		}
		f.mu.Lock()
		gone := most.gone
		f.mu.Unlock()
		if gone {
			if err := f.spill(most); err != nil {
				return err
			}
		}
	}
	return nil
}

// openData makes a file's contents readable. The caller holds data.mu.
func (f *FS) openData(ctx context.Context, n *node) error {
	d := &n.data
	if d.loaded.Load() && (!d.stale.Load() || d.dirty || n.gone) {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.refresh(ctx); err != nil {
		return err
	}
	o, err := f.object(ctx, n)
	if err != nil {
		return err
	}
	if o == nil {
		if d.loaded.Load() { // replaced meanwhile: what is open stays
			d.stale.Store(false)
			return nil
		}
		return f.openLeft(n)
	}
	f.setObject(n, o)
	return f.openBase(ctx, n)
}

// left is the opened object of a file that was replaced by a rename while somebody referred to it: who has looked it up may open it
// yet, as on any other filesystem.
type left struct {
	base *base
	size int64
	elem *list.Element // in FS.lefts
}

// maxLefts bounds how many such files there are; the oldest is given up. Only who has looked up a file and opens it much later notices.
const maxLefts = 256

// leave opens what is about to be replaced; nil if nobody could ask for it. The caller holds mu.
func (f *FS) leave(ctx context.Context, n *node) *left {
	if n == nil || n.dir || n.refs == 0 || n.obj == nil || n.px.Links > 1 || n.data.loaded.Load() || !vfs.Mode(n.px.Mode).IsRegular() {
		return nil
	}
	l := &left{size: n.obj.Size}
	if l.size > 0 {
		r, err := f.view.Open(context.WithoutCancel(ctx), n.obj)
		if err != nil {
			return nil
		}
		l.base = newBase(r)
	}
	return l
}

// keepLeft gives a node what it had, if it is gone now.
func (f *FS) keepLeft(n *node, l *left) {
	switch {
	case l == nil:
	case !n.gone || n.refs == 0 || n.left != nil:
		l.base.release()
	default:
		n.left, l.elem = l, f.lefts.PushBack(n)
		if f.lefts.Len() > maxLefts {
			f.dropLeft(f.lefts.Front().Value.(*node))
		}
	}
}

// takeLeft returns what a node has left, which is the caller's then; nil.
func (f *FS) takeLeft(n *node) *left {
	l := n.left
	if l != nil {
		f.lefts.Remove(l.elem)
		n.left = nil
	}
	return l
}

func (f *FS) dropLeft(n *node) {
	if l := f.takeLeft(n); l != nil {
		l.base.release()
	}
}

// openLeft opens a file that is gone; ENOENT. The caller holds mu and data.mu.
func (f *FS) openLeft(n *node) error {
	l := f.takeLeft(n)
	if l == nil {
		return syscall.ENOENT
	}
	n.data.open(l.base, l.size)
	return nil
}

// openBase opens the node's object. The caller holds mu and data.mu.
func (f *FS) openBase(ctx context.Context, n *node) error {
	var b *base
	if n.obj.Size > 0 {
		r, err := f.view.Open(context.WithoutCancel(ctx), n.obj) // for as long as the file is open
		if err != nil {
			return wrap(err)
		}
		b = newBase(r)
	}
	n.data.open(b, n.obj.Size)
	return nil
}

// open begins with an object's bytes; b is nil if it has none.
func (d *data) open(b *base, size int64) {
	d.base.release()
	d.base, d.baseSize, d.valid = b, size, size
	d.size.Store(size)
	d.stale.Store(false)
	d.loaded.Store(true)
}

// object finds a file's object in the view: by one of its names, where it was found last, or wherever it is; nil if it isn't in the bucket
// any more. The caller holds mu.
func (f *FS) object(ctx context.Context, n *node) (*bucket.Object, error) {
	for _, e := range n.names {
		o, err := f.view.Get(ctx, e.key())
		if err == nil && n.obj != nil && (o.ID == n.obj.ID || n.written(o)) {
			return o, nil
		}
		if err != nil && vfs.Errno(err) != syscall.ENOENT {
			return nil, wrap(err)
		}
	}
	if n.gone || n.obj == nil {
		return nil, nil
	}
	if n.at != "" {
		if o, err := f.view.Get(ctx, n.at); err == nil && (o.ID == n.obj.ID || n.written(o)) {
			return o, nil
		} else if err != nil && vfs.Errno(err) != syscall.ENOENT {
			return nil, wrap(err)
		}
	}
	o, err := f.search(ctx, n.obj.ID)
	if o != nil {
		n.at = o.Key
	}
	return o, err
}

// search goes through the whole bucket for another name of an object: the ones that were known here are unlinked, and the
// bucket lists names by key only. It takes a hard link that nobody looked up since the mount to come here, or a file that another mount has renamed,
// replaced or removed while it is written to here.
func (f *FS) search(ctx context.Context, id bucket.ObjectID) (*bucket.Object, error) {
	c := f.view.Scan(bucket.Scan{})
	for c.Next(ctx) {
		if o := c.Object(); o != nil && o.ID == id {
			return o, nil
		}
	}
	return nil, wrap(c.Err())
}
