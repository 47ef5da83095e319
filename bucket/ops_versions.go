package bucket

import (
	"context"
)

// What becomes of the contents that an operation replaces or deletes, with versioning and without.

// replace makes o the current object of its key, in place of old, which versioning may keep.
func (w *writer) replace(ctx context.Context, old, o *Object, logged []byte) error {
	if err := w.retire(ctx, o.Key, old); err != nil {
		return err
	}
	return w.put(ctx, objectKey(o.Key), o, logged)
}

// retire removes the current object of a key to make place for another: versioning keeps it as a noncurrent version.
func (w *writer) retire(ctx context.Context, key string, old *Object) error {
	v := w.r.rec.versioning
	if v == Suspended {
		// The new version is "null", and there is only one of these.
		if err := w.dropNull(ctx, key); err != nil {
			return err
		}
	}
	if old == nil {
		return nil
	}
	if v == Versioned || v == Suspended && !old.Null {
		return w.keep(ctx, old)
	}
	return w.drop(ctx, old)
}

// keep moves a current object among the noncurrent versions. Its record in planeObject is the caller's. One with other
// names goes on living under these, so the version is a copy of its own.
func (w *writer) keep(ctx context.Context, old *Object) error {
	if old.Posix != nil && old.Posix.Links > 1 {
		if _, err := w.unlink(ctx, old); err != nil {
			return err
		}
		return w.keepCopy(ctx, old)
	}
	logged, err := w.again(ctx, old)
	if err != nil {
		return err
	}
	return w.put(ctx, versionKey(old.Key, old.Version), old, logged)
}

// keepCopy makes a noncurrent version of an object that stays, with an id and extents of its own.
func (w *writer) keepCopy(ctx context.Context, old *Object) error {
	n, p := *old, *old.Posix
	p.Links = 1
	id, err := w.s.objIDs.next(1)
	if err != nil {
		return err
	}
	n.ID, n.Posix, n.data = ObjectID{w.r.rec.space, id}, &p, content{}
	logged, err := w.clone(ctx, &n, old)
	if err != nil {
		return err
	}
	return w.put(ctx, versionKey(old.Key, old.Version), &n, logged)
}

// dropNull deletes the noncurrent version "null" of a key, if there is one.
func (w *writer) dropNull(ctx context.Context, key string) error {
	p := versionPrefix(key)
	c := w.t.scan(p, stringEnd(p))
	for c.next(ctx) {
		o, err := w.t.object(ctx, key, c.rec)
		if err != nil {
			return err
		}
		if o.Null {
			if err := w.drop(ctx, o); err != nil {
				return err
			}
			return w.delete(ctx, c.key)
		}
	}
	return c.err
}

func (w *writer) doDelete(ctx context.Context, op *Op) (*Object, error) {
	old, err := w.object(ctx, op.Key)
	if err != nil {
		return nil, err
	}
	if err := op.Cond.check(op.Key, old); err != nil {
		return nil, err
	}
	if w.r.rec.versioning == Unversioned {
		if old == nil {
			return nil, nil
		}
		if err := w.drop(ctx, old); err != nil {
			return nil, err
		}
		return old, w.delete(ctx, objectKey(op.Key))
	}
	if w.r.rec.versioning == Suspended {
		if err := w.dropNull(ctx, op.Key); err != nil {
			return nil, err
		}
	}
	if old != nil {
		if err := w.retire(ctx, op.Key, old); err != nil {
			return nil, err
		}
		if err := w.delete(ctx, objectKey(op.Key)); err != nil {
			return nil, err
		}
	}
	m, err := w.newObject(op.Key, nil)
	if err != nil {
		return nil, err
	}
	m.Marker = true
	return m, w.put(ctx, versionKey(op.Key, m.Version), m, nil)
}

func (w *writer) doDeleteExact(ctx context.Context, op *Op) (*Object, error) {
	cur, err := w.object(ctx, op.Key)
	if err != nil {
		return nil, err
	}
	if cur != nil && (op.NullVersion && cur.Null || !op.NullVersion && cur.Version == op.Version) {
		if err := op.Cond.check(op.Key, cur); err != nil {
			return nil, err
		}
		if err := w.drop(ctx, cur); err != nil {
			return nil, err
		}
		if err := w.delete(ctx, objectKey(op.Key)); err != nil {
			return nil, err
		}
		return cur, w.promote(ctx, op.Key)
	}
	p := versionPrefix(op.Key)
	c := w.t.scan(p, stringEnd(p))
	for n := 0; c.next(ctx); n++ {
		o, err := w.t.object(ctx, op.Key, c.rec)
		if err != nil {
			return nil, err
		}
		if op.NullVersion && !o.Null || !op.NullVersion && o.Version != op.Version {
			continue
		}
		if err := op.Cond.check(op.Key, o); err != nil {
			return nil, err
		}
		if err := w.drop(ctx, o); err != nil {
			return nil, err
		}
		if err := w.delete(ctx, c.key); err != nil {
			return nil, err
		}
		if cur == nil && n == 0 {
			err = w.promote(ctx, op.Key)
		}
		return o, err
	}
	return nil, c.err
}

// promote makes the newest noncurrent version current, unless that is a marker.
func (w *writer) promote(ctx context.Context, key string) error {
	p := versionPrefix(key)
	c := w.t.scan(p, stringEnd(p))
	if !c.next(ctx) {
		return c.err
	}
	vkey := c.key
	o, err := w.t.object(ctx, key, c.rec)
	if err != nil || o.Marker {
		return err
	}
	logged, err := w.again(ctx, o)
	if err != nil {
		return err
	}
	if err := w.delete(ctx, vkey); err != nil {
		return err
	}
	return w.put(ctx, objectKey(key), o, logged)
}
