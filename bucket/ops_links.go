package bucket

import (
	"context"
	"slices"
	"strconv"

	"agentrun.dev"
	"agentrun.dev/errs"
)

// Names: renames, and objects with several names (hard links).

// unlink takes a name from an object with several and returns how many are left.
func (w *writer) unlink(ctx context.Context, old *Object) (left int, err error) {
	names, err := w.names(ctx, old.ID)
	if err != nil {
		return 0, err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return n == old.Key })
	return len(names), w.relink(ctx, old.ID, names)
}

func (w *writer) names(ctx context.Context, id ObjectID) ([]string, error) {
	rec, err := w.lookup(ctx, linkKey(id))
	if err != nil || rec.val == nil {
		return nil, err
	}
	return decodeNames(rec.val)
}

// relink writes the list of an object's names, and into each name's record how many there are.
func (w *writer) relink(ctx context.Context, id ObjectID, names []string) error {
	for _, n := range names {
		o, err := w.object(ctx, n)
		if err != nil {
			return err
		}
		if o == nil || o.ID != id {
			continue
		}
		p := Posix{}
		if o.Posix != nil {
			p = *o.Posix
		}
		p.Links = uint32(len(names))
		o.Posix = &p
		logged, err := w.again(ctx, o)
		if err != nil {
			return err
		}
		if err := w.put(ctx, objectKey(n), o, logged); err != nil {
			return err
		}
	}
	if len(names) < 2 {
		return w.delete(ctx, linkKey(id))
	}
	return w.emit(ctx, logRecord{op: logPut, key: linkKey(id), val: encodeNames(names)})
}

// putLinked rewrites a current object's record without changing its id, under all of its names. Bytes in the log go
// along.
func (w *writer) putLinked(ctx context.Context, old, o *Object) error {
	logged, err := w.again(ctx, o)
	if err != nil {
		return err
	}
	return w.putNames(ctx, old, o, logged)
}

func (w *writer) putNames(ctx context.Context, old, o *Object, logged []byte) error {
	names := []string{o.Key}
	if old != nil && old.Posix != nil && old.Posix.Links > 1 {
		all, err := w.names(ctx, old.ID)
		if err != nil {
			return err
		}
		if len(all) > 1 {
			names = all
			p := *old.Posix
			if o.Posix != nil {
				p = *o.Posix
			}
			p.Links = uint32(len(all))
			o.Posix = &p
		}
	}
	for _, n := range names {
		c := *o
		c.Key = n
		if err := w.put(ctx, objectKey(n), &c, logged); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) doRename(ctx context.Context, op *Op) (*Object, error) {
	o, err := w.object(ctx, op.Key)
	if err != nil {
		return nil, err
	}
	if err := op.Cond.check(op.Key, o); err != nil {
		return nil, err
	}
	if o == nil {
		return nil, notFound("rename", strconv.Quote(clip(op.Key)), "no such object")
	}
	if op.To == op.Key {
		return o, nil
	}
	target, err := w.object(ctx, op.To)
	if err != nil {
		return nil, err
	}
	if target != nil && target.ID == o.ID {
		return target, nil // two names of one object: POSIX leaves both
	}
	if err := w.retire(ctx, op.To, target); err != nil {
		return nil, err
	}
	logged, err := w.again(ctx, o)
	if err != nil {
		return nil, err
	}
	n := *o
	n.Key = op.To
	if w.r.rec.versioning != Unversioned {
		n.Version, n.Null = agentrun.Version(w.seq), w.r.rec.versioning == Suspended
	}
	if err := w.put(ctx, objectKey(op.To), &n, logged); err != nil {
		return nil, err
	}
	if err := w.delete(ctx, objectKey(op.Key)); err != nil {
		return nil, err
	}
	if o.Posix != nil && o.Posix.Links > 1 {
		names, err := w.names(ctx, o.ID)
		if err != nil {
			return nil, err
		}
		if i := slices.Index(names, op.Key); i >= 0 {
			names[i] = op.To
			slices.Sort(names)
			if err := w.emit(ctx, logRecord{op: logPut, key: linkKey(o.ID), val: encodeNames(names)}); err != nil {
				return nil, err
			}
		}
	}
	return &n, nil
}

func (w *writer) doLink(ctx context.Context, op *Op) (*Object, error) {
	o, err := w.object(ctx, op.Key)
	if err != nil {
		return nil, err
	}
	if o == nil {
		return nil, notFound("link", strconv.Quote(clip(op.Key)), "no such object")
	}
	if target, err := w.object(ctx, op.To); err != nil {
		return nil, err
	} else if target != nil {
		return nil, errs.Msg(errs.Exists, "link", strconv.Quote(clip(op.To)), "the name is taken")
	}
	names, err := w.names(ctx, o.ID)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		names = []string{op.Key}
	}
	const maxLinks = 1000
	if len(names) >= maxLinks {
		return nil, errs.Msg(errs.Limit, "link", strconv.Quote(clip(op.Key)), "an object has at most 1,000 names")
	}
	logged, err := w.again(ctx, o)
	if err != nil {
		return nil, err
	}
	n := *o
	n.Key = op.To
	if err := w.put(ctx, objectKey(op.To), &n, logged); err != nil {
		return nil, err
	}
	names = append(names, op.To)
	slices.Sort(names)
	if err := w.relink(ctx, o.ID, names); err != nil {
		return nil, err
	}
	return w.object(ctx, op.To)
}
