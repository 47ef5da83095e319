package bucket

import (
	"context"
	"strconv"
	"time"

	"agentrun.dev"
	"agentrun.dev/errs"
)

// Writes into an object: bytes at an offset, truncation, and the extents that they cut.

// doWrite writes bytes into an object, which keeps its id.
func (w *writer) doWrite(ctx context.Context, op *Op) (*Object, error) {
	p := op.Payload
	if p == nil || p.used {
		return nil, errs.Msg(errs.Invalid, "write", strconv.Quote(clip(op.Key)), "no payload, or one that was used already")
	}
	return w.edit(ctx, op, func(old, o *Object) ([]byte, error) {
		size := max(o.Size, op.Offset+p.Size)
		small, ok, err := w.bytesOf(ctx, o)
		if err != nil {
			return nil, err
		}
		if ok && size <= maxInline && len(p.extents) == 0 {
			b := make([]byte, size)
			copy(b, small)
			copy(b[op.Offset:], p.inline)
			return o.setSmall(b), nil
		}
		xs, err := w.slots(ctx, p)
		if err != nil {
			return nil, err
		}
		return nil, w.splice(ctx, o, small, ok, op.Offset, p.Size, xs, size)
	})
}

// slots returns a payload's extents, putting inline bytes into a slot. The caller's transaction waits for the sync.
func (w *writer) slots(ctx context.Context, p *Payload) ([]extent, error) {
	if len(p.extents) > 0 || p.Size == 0 {
		return p.extents, nil
	}
	x, err := w.slot(ctx, p.inline)
	return []extent{x}, err
}

func (w *writer) slot(ctx context.Context, b []byte) (extent, error) {
	x, err := w.s.putStaged(ctx, b)
	if err != nil {
		return extent{}, err
	}
	w.made.extents = append(w.made.extents, x)
	return x, w.s.segments.Sync(ctx)
}

func (w *writer) doTruncate(ctx context.Context, op *Op) (*Object, error) {
	return w.edit(ctx, op, func(old, o *Object) ([]byte, error) {
		size := op.Offset
		small, ok, err := w.bytesOf(ctx, o)
		if err != nil {
			return nil, err
		}
		if ok && size <= maxInline {
			b := make([]byte, size)
			copy(b, small)
			return o.setSmall(b), nil
		}
		return nil, w.splice(ctx, o, small, ok, size, 0, nil, size)
	})
}

// edit changes the bytes of an object in place: f gets a copy to change and returns what goes into the log.
func (w *writer) edit(ctx context.Context, op *Op, f func(old, o *Object) ([]byte, error)) (*Object, error) {
	old, err := w.object(ctx, op.Key)
	if err != nil {
		return nil, err
	}
	if err := op.Cond.check(op.Key, old); err != nil {
		return nil, err
	}
	var o *Object
	if old == nil {
		if o, err = w.newObject(op.Key, op.Object); err != nil {
			return nil, err
		}
		o.Size, o.data = 0, content{}
	} else {
		c := *old
		o = &c
		if m := op.Object; m != nil {
			o.Headers, o.Meta, o.Tags, o.Posix = m.Headers, m.Meta, m.Tags, m.Posix
		}
	}
	if v := w.r.rec.versioning; v != Unversioned && old != nil && old.Posix != nil && old.Posix.Links > 1 {
		// All names must go on showing the same contents, so these are changed in place.
		if v == Suspended {
			if err := w.dropNull(ctx, op.Key); err != nil {
				return nil, err
			}
		}
		if v == Versioned || !old.Null {
			if err := w.keepCopy(ctx, old); err != nil {
				return nil, err
			}
		}
		o.Null = v == Suspended
	} else if v != Unversioned && old != nil {
		// A write through a filesystem is a version like any other; bytes that aren't touched stay shared.
		return w.editVersioned(ctx, op, old, o, f)
	}
	logged, err := f(old, o)
	if err != nil {
		return nil, err
	}
	w.written(o, op)
	return o, w.putNames(ctx, old, o, logged)
}

func (w *writer) written(o *Object, op *Op) {
	o.Version, o.Modified = agentrun.Version(w.seq), time.Unix(0, int64(w.seq)).UTC()
	if op.Object != nil && !op.Object.Modified.IsZero() {
		o.Modified = op.Object.Modified
	}
	o.Checksum, o.Parts = nil, nil
	o.ETag = w.opaqueETag(o)
	if op.Object != nil && op.Object.ETag != "" {
		o.ETag = op.Object.ETag
	}
}

// editVersioned keeps the old contents as a version: the new ones get an id, and extents, of their own.
func (w *writer) editVersioned(ctx context.Context, op *Op, old, o *Object, f func(old, o *Object) ([]byte, error)) (*Object, error) {
	n, err := w.newObject(op.Key, o)
	if err != nil {
		return nil, err
	}
	logged, err := w.clone(ctx, n, old)
	if err != nil {
		return nil, err
	}
	if n.data.logged {
		// f reads it back through the log of this transaction.
		if err := w.put(ctx, objectKey(n.Key), n, logged); err != nil {
			return nil, err
		}
		n.data.loc = logLoc{w.r.rec.delta, w.seq, uint32(len(w.log) - 1)}
	}
	n.data.from = &w.t.snap
	if logged, err = f(old, n); err != nil {
		return nil, err
	}
	w.written(n, op)
	if err := w.retire(ctx, op.Key, old); err != nil {
		return nil, err
	}
	return n, w.put(ctx, objectKey(n.Key), n, logged)
}

// splice puts extents xs, n bytes long, at an offset of an object, which gets a new size. small are its present bytes
// if they aren't in slots.
func (w *writer) splice(ctx context.Context, o *Object, small []byte, isSmall bool, at, n int64, xs []extent, size int64) error {
	if isSmall {
		o.data = content{}
		if at > 0 && len(small) > 0 || at+n < int64(len(small)) { // else nothing of it is left
			x, err := w.slot(ctx, small)
			if err != nil {
				return err
			}
			o.data.extents = []extent{x}
		}
	}
	if o.data.spread {
		return w.spliceSpread(ctx, o, at, n, xs, size)
	}
	list := cutExtents(o.data.extents, 0, min(at, size))
	list = padExtents(list, at)
	list = append(list, xs...)
	list = append(list, cutExtents(o.data.extents, at+n, size)...)
	list = padExtents(list, size)
	o.Size = size
	return w.setExtents(ctx, o, list)
}

// cutExtents returns the part of a list that covers [lo, hi).
func cutExtents(xs []extent, lo, hi int64) (out []extent) {
	off := int64(0)
	for _, x := range xs {
		a, b := max(lo-off, 0), min(hi-off, x.n)
		if a < b {
			out = append(out, extent{x.seg, x.slot, x.off + a, b - a})
		}
		off += x.n
	}
	return out
}

// padExtents extends a list with zeros to a length.
func padExtents(xs []extent, size int64) []extent {
	n := int64(0)
	for _, x := range xs {
		n += x.n
	}
	if n < size {
		xs = append(xs, extent{seg: emptyExtent, n: size - n})
	}
	return xs
}

// spliceSpread is splice for an object whose extents are records: it touches only those that overlap.
func (w *writer) spliceSpread(ctx context.Context, o *Object, at, n int64, xs []extent, size int64) error {
	type placed struct {
		off int64
		x   extent
	}
	var over []placed
	lo, hi := at, at+n
	if size < o.Size {
		hi = o.Size // truncation
	}
	cur := *o
	cur.data.from = &w.t.snap
	if lo < o.Size {
		if err := w.s.extentsIn(ctx, &cur, lo, hi, func(off int64, x extent) error {
			over = append(over, placed{off, x})
			return nil
		}); err != nil {
			return err
		}
	}
	for _, p := range over {
		if p.off >= lo {
			if err := w.delete(ctx, extentKey(o.ID, p.off)); err != nil {
				return err
			}
		} else {
			head := p.x
			head.n = lo - p.off
			if err := w.putExtent(ctx, o.ID, p.off, head); err != nil {
				return err
			}
		}
		if end := p.off + p.x.n; end > at+n && at+n < size { // (never for a truncation)
			tail := p.x
			tail.off += at + n - p.off
			if p.x.seg == emptyExtent {
				tail.off = 0
			}
			tail.n = min(end, size) - (at + n)
			if err := w.putExtent(ctx, o.ID, at+n, tail); err != nil {
				return err
			}
		}
	}
	off := at
	if o.Size < at {
		if err := w.putExtent(ctx, o.ID, o.Size, extent{seg: emptyExtent, n: at - o.Size}); err != nil {
			return err
		}
	}
	for _, x := range xs {
		if err := w.putExtent(ctx, o.ID, off, x); err != nil {
			return err
		}
		off += x.n
	}
	o.Size = size
	return nil
}
