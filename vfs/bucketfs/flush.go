package bucketfs

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"slices"
	"syscall"
	"time"

	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	"agentrun.dev/vfs"
)

// apply makes changes in the bucket, visible at once and durable with the next sync. The caller holds mu.
func (f *FS) apply(ctx context.Context, ops ...bucket.Op) ([]*bucket.Object, error) {
	if f.b == nil {
		return nil, syscall.EROFS
	}
	results, err := f.b.Apply(ctx, ops, bucket.ApplyOptions{Lazy: true})
	if errs.Is(err, errs.TooLarge) {
		for _, op := range ops {
			if len(op.Key) > bucket.MaxKey || len(op.To) > bucket.MaxKey {
				return nil, syscall.ENAMETOOLONG
			}
		}
	}
	if err != nil {
		return nil, wrap(err)
	}
	return results, f.refresh(ctx)
}

// flushNode writes a file out. open says that it stays open afterwards.
func (f *FS) flushNode(ctx context.Context, n *node, open bool) error {
	n.data.mu.Lock()
	defer n.data.mu.Unlock()
	return f.flushLocked(ctx, n, open)
}

// flushLocked is flushNode for a caller that holds data.mu.
func (f *FS) flushLocked(ctx context.Context, n *node, open bool) error {
	d := &n.data
	f.mu.Lock()
	fresh, gone := n.fresh, n.gone
	f.mu.Unlock()
	switch {
	case gone, !fresh && !d.dirty:
		return nil
	}
	ops, err := f.plan(ctx, d, fresh)
	if err != nil {
		return err
	}
	defer func() {
		for _, op := range ops {
			if op.Payload != nil {
				op.Payload.Discard() // of what was used nothing happens
			}
		}
	}()
	f.mu.Lock()
	defer f.mu.Unlock()
	done, err := f.store(ctx, n, ops)
	if err != nil || !done {
		return err
	}
	f.account(n, f.cleaned(d))
	if open {
		return f.openBase(ctx, n)
	}
	d.base.release()
	d.base = nil
	d.loaded.Store(false)
	f.settle(n)
	return nil
}

// cleaned drops what was held back and returns by how much that grew. The caller holds FS.mu.
func (f *FS) cleaned(d *data) int64 {
	held := d.held
	d.clean()
	f.grown -= d.grown
	d.grown = 0
	return -held
}

// plan stages what was written and says how to put it together. Keys and metadata come later, when nothing can change.
func (f *FS) plan(ctx context.Context, d *data, fresh bool) (ops []bucket.Op, err error) {
	if f.b == nil {
		return nil, syscall.EROFS
	}
	defer func() {
		if err != nil {
			for _, op := range ops {
				if op.Payload != nil {
					op.Payload.Discard()
				}
			}
		}
	}()
	size, have := d.size.Load(), d.valid
	runs := d.runs()
	switch {
	case fresh && len(runs) > 0 && runs[0][0].off == 0:
		p, err := f.stage(ctx, runs[0])
		if err != nil {
			return nil, err
		}
		ops = append(ops, bucket.Op{Kind: bucket.OpPut, Payload: p})
		have, runs = p.Size, runs[1:]
	case fresh:
		ops = append(ops, bucket.Op{Kind: bucket.OpPut})
		have = 0
	case d.valid < d.baseSize:
		ops = append(ops, bucket.Op{Kind: bucket.OpTruncate, Offset: d.valid})
	}
	for _, run := range runs {
		p, err := f.stage(ctx, run)
		if err != nil {
			return ops, err
		}
		ops = append(ops, bucket.Op{Kind: bucket.OpWrite, Offset: run[0].off, Payload: p})
		have = max(have, run[0].off+p.Size)
	}
	if have < size {
		ops = append(ops, bucket.Op{Kind: bucket.OpTruncate, Offset: size})
	}
	if len(ops) == 0 {
		ops = append(ops, bucket.Op{Kind: bucket.OpSetMeta})
	}
	return ops, nil
}

func (f *FS) stage(ctx context.Context, run []extent) (*bucket.Payload, error) {
	var size int64
	readers := make([]io.Reader, len(run))
	for i, e := range run {
		readers[i] = bytes.NewReader(e.b)
		size += int64(len(e.b))
	}
	r := readers[0]
	if len(readers) > 1 {
		r = io.MultiReader(readers...)
	}
	p, err := f.b.Store().Stage(ctx, r, size)
	return p, wrap(err)
}

// store applies a plan to the node's present key. done is false if the file turned out to be replaced: it lives on in
// memory, without a name. The caller holds mu and data.mu.
func (f *FS) store(ctx context.Context, n *node, ops []bucket.Op) (done bool, err error) {
	for range 100 { // other mounts of the bucket may write the same file in between
		meta := &bucket.Object{Modified: n.mtime}
		if t := n.data.mtime.Load(); t != 0 {
			meta.Modified = time.Unix(0, t)
			n.px.Change = max(n.px.Change, t)
		}
		var cond *bucket.Condition
		key, ok := n.key()
		if !n.fresh {
			if err := f.refresh(ctx); err != nil {
				return false, err
			}
			o, err := f.object(ctx, n)
			if err != nil {
				return false, err
			}
			if o == nil {
				f.orphan(n)
				return false, nil
			}
			key, cond = o.Key, &bucket.Condition{IfVersion: o.Version}
			meta.Headers, meta.Meta, meta.Tags = o.Headers, o.Meta, o.Tags
		} else if !ok {
			return false, nil
		}
		px := n.px
		meta.Posix = &px
		for i := range ops {
			ops[i].Key, ops[i].Object, ops[i].Cond = key, meta, nil
		}
		ops[0].Cond = cond
		results, err := f.apply(ctx, ops...)
		if errs.Is(err, errs.Precondition) {
			// Conditions are checked against writes that don't show yet: wait for them.
			if _, err := f.apply(ctx); err != nil {
				return false, err
			}
			continue
		}
		if err != nil {
			return false, err
		}
		if n.fresh {
			n.settled()
		}
		n.obj = nil
		if o := results[len(results)-1]; o != nil {
			if now, err := f.view.Get(ctx, key); err == nil && now.ID == o.ID {
				o = now // as later lookups see it, and open it
			}
			f.setObject(n, o)
			f.sawKey(n, key)
		}
		return true, nil
	}
	return false, syscall.EAGAIN
}

// orphan takes a file's names away after the bucket has put something else there.
func (f *FS) orphan(n *node) {
	for len(n.names) > 0 {
		f.unname(n, n.names[0].parent, n.names[0].name)
	}
	n.gone = true
	f.disown(n)
	f.settle(n)
}

// spill moves an unlinked file to a temporary one, because it holds too much memory.
func (f *FS) spill(n *node) error {
	d := &n.data
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.spill != nil || d.held == 0 {
		return nil
	}
	t, err := unnamed(f.opt.TempDir)
	if err != nil {
		return err
	}
	buf := make([]byte, maxExtent)
	size := d.size.Load()
	for off := int64(0); off < size; off += maxExtent {
		b := buf[:min(maxExtent, size-off)]
		if _, err := d.readAt(b, off); err != nil && err != io.EOF {
			t.Close()
			return err
		}
		if _, err := t.WriteAt(b, off); err != nil {
			t.Close()
			return syscall.ENOSPC
		}
	}
	d.spill = t
	d.base.release()
	d.base = nil
	held := d.held
	d.exts, d.held = nil, 0
	f.account(n, -held)
	return nil
}

// Flush implements vfs.Flusher.
func (f *FS) Flush(ctx context.Context, durable bool) error {
	if f.b == nil {
		return nil
	}
	f.mu.Lock()
	var todo []*node
	for _, n := range f.inos {
		if !n.dir && !n.gone && (n.fresh || n.data.loaded.Load()) {
			todo = append(todo, n)
		}
	}
	f.mu.Unlock()
	slices.SortFunc(todo, func(a, b *node) int { return cmp.Compare(a.ino, b.ino) })
	var first error
	for _, n := range todo {
		if err := f.flushNode(ctx, n, true); err != nil && first == nil {
			first = err
		}
	}
	if durable { // one file that can't be written out keeps no other from it
		first = cmp.Or(first, wrap(f.b.Sync(ctx)))
	}
	return first
}

var _ vfs.Flusher = (*FS)(nil)
