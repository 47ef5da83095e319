package bucket

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentrun.dev"
	"agentrun.dev/errs"
)

// do makes one operation's changes.
func (w *writer) do(ctx context.Context, op *Op) (*Object, error) {
	switch op.Kind {
	case OpPut:
		return w.doPut(ctx, op)
	case OpDelete:
		return w.doDelete(ctx, op)
	case OpDeleteExact:
		return w.doDeleteExact(ctx, op)
	case OpSetMeta:
		return w.doSetMeta(ctx, op)
	case OpCopy:
		return w.doCopy(ctx, op)
	case OpRename:
		return w.doRename(ctx, op)
	case OpDeletePrefix:
		return nil, w.doDeletePrefix(ctx, op.Key)
	case OpWrite:
		return w.doWrite(ctx, op)
	case OpTruncate:
		return w.doTruncate(ctx, op)
	case OpRenameDir:
		return nil, w.doRenameDir(ctx, op)
	case OpLink:
		return w.doLink(ctx, op)
	case OpPutDir:
		return nil, w.doPutDir(ctx, op)
	case OpDeleteDir:
		return nil, w.delete(ctx, dirKey(op.Key))
	}
	return nil, errs.Msg(errs.Invalid, "apply", strconv.Quote(clip(op.Key)), fmt.Sprintf("unknown operation %d", op.Kind))
}

// newObject makes the object that an operation puts, from the caller's metadata.
func (w *writer) newObject(key string, meta *Object) (*Object, error) {
	o := &Object{}
	if meta != nil {
		*o = *meta
	}
	n, err := w.s.objIDs.next(1)
	if err != nil {
		return nil, err
	}
	o.Key, o.ID, o.Version = key, ObjectID{w.r.rec.space, n}, agentrun.Version(w.seq)
	o.Null = w.r.rec.versioning != Versioned
	o.Latest, o.Marker = false, false
	o.data = content{}
	if o.Modified.IsZero() {
		o.Modified = time.Unix(0, int64(w.seq)).UTC()
	}
	return o, nil
}

// opaqueETag is the ETag of contents whose MD5 isn't known: unique, and with a dash, so that no client checks it.
func (w *writer) opaqueETag(o *Object) string {
	return fmt.Sprintf("%016x%016x-1", o.ID.N, w.seq)
}

// fill gives an object its bytes and returns those that go into the log.
func (w *writer) fill(ctx context.Context, o *Object, p *Payload) (logged []byte, err error) {
	if p == nil {
		p = &Payload{MD5: [16]byte{0xd4, 0x1d, 0x8c, 0xd9, 0x8f, 0x00, 0xb2, 0x04, 0xe9, 0x80, 0x09, 0x98, 0xec, 0xf8, 0x42, 0x7e}}
	}
	if p.used {
		return nil, errs.Msg(errs.Invalid, "put", strconv.Quote(clip(o.Key)), "the payload was used already")
	}
	o.Size = p.Size
	if o.ETag == "" {
		o.ETag = hex.EncodeToString(p.MD5[:])
	}
	if len(p.extents) == 0 {
		return o.setSmall(p.inline), nil
	}
	return nil, w.setExtents(ctx, o, p.extents)
}

// setSmall gives an object bytes that need no slot, and returns them if they go into the log.
func (o *Object) setSmall(b []byte) (logged []byte) {
	o.Size = int64(len(b))
	switch {
	case len(b) == 0:
		o.data = content{}
	case len(b) <= treeInline:
		o.data = content{inline: b}
	default:
		o.data = content{logged: true}
		return b
	}
	return nil
}

// setExtents gives an object its extents: in its record if they are few, else in records of their own.
func (w *writer) setExtents(ctx context.Context, o *Object, xs []extent) error {
	if len(xs) <= fewExtents {
		o.data = content{extents: xs}
		return nil
	}
	o.data = content{spread: true}
	off := int64(0)
	for _, x := range xs {
		if err := w.putExtent(ctx, o.ID, off, x); err != nil {
			return err
		}
		off += x.n
	}
	return nil
}

func (w *writer) putExtent(ctx context.Context, id ObjectID, off int64, x extent) error {
	return w.emit(ctx, logRecord{op: logPut, key: extentKey(id, off), val: encodeExtent(x)})
}

func (w *writer) doPut(ctx context.Context, op *Op) (*Object, error) {
	old, err := w.object(ctx, op.Key)
	if err != nil {
		return nil, err
	}
	if err := op.Cond.check(op.Key, old); err != nil {
		return nil, err
	}
	o, err := w.newObject(op.Key, op.Object)
	if err != nil {
		return nil, err
	}
	logged, err := w.fill(ctx, o, op.Payload)
	if err != nil {
		return nil, err
	}
	if o.Posix != nil && o.Posix.Links > 1 {
		p := *o.Posix
		p.Links = 1
		o.Posix = &p
	}
	return o, w.replace(ctx, old, o, logged)
}

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

// again returns the payload that a record must be logged with once more, if its bytes are in the log.
func (w *writer) again(ctx context.Context, o *Object) ([]byte, error) {
	if !o.data.logged {
		return nil, nil
	}
	b, _, err := w.bytesOf(ctx, o)
	return b, err
}

// bytesOf is Store.small for objects that may have been written by this very transaction.
func (w *writer) bytesOf(ctx context.Context, o *Object) ([]byte, bool, error) {
	if l := o.data.loc; o.data.logged && l.delta == w.r.rec.delta {
		if l.seq == w.seq {
			return w.log[l.idx].payload, true, nil
		}
		if l.seq > w.r.pub.Load().seq {
			// Its commit is still queued. Waiting under the lock is safe: committing doesn't take it.
			if err := w.r.newest.wait(); err != nil {
				return nil, false, err
			}
		}
	}
	return w.s.small(ctx, o)
}

// drop lets go of what a record that is about to disappear has elsewhere: extents of its own, its place among links.
func (w *writer) drop(ctx context.Context, old *Object) error {
	if old.Posix != nil && old.Posix.Links > 1 {
		left, err := w.unlink(ctx, old)
		if err != nil || left > 0 {
			return err
		}
	}
	if old.data.spread {
		p := extentPrefix(old.ID)
		return w.deleteRange(ctx, p, stringEnd(p))
	}
	return nil
}

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

func (w *writer) doSetMeta(ctx context.Context, op *Op) (*Object, error) {
	key := objectKey(op.Key)
	o, err := w.object(ctx, op.Key)
	if err != nil {
		return nil, err
	}
	if v := op.Version; v != 0 && (o == nil || o.Version != v) {
		key = versionKey(op.Key, v)
		rec, err := w.lookup(ctx, key)
		if err != nil {
			return nil, err
		}
		if o = nil; rec.val != nil {
			if o, err = w.t.object(ctx, op.Key, rec); err != nil {
				return nil, err
			}
		}
	}
	if o == nil || o.Marker {
		return nil, notFound("metadata", strconv.Quote(clip(op.Key)), "no such object")
	}
	if err := op.Cond.check(op.Key, o); err != nil {
		return nil, err
	}
	n := *o
	if m := op.Object; m != nil {
		n.Headers, n.Meta, n.Tags, n.Posix = m.Headers, m.Meta, m.Tags, m.Posix
		if m.Checksum != nil {
			n.Checksum = m.Checksum
		}
		if !m.Modified.IsZero() {
			n.Modified = m.Modified
		}
	}
	if key == objectKey(op.Key) {
		return &n, w.putLinked(ctx, o, &n)
	}
	logged, err := w.again(ctx, o)
	if err != nil {
		return nil, err
	}
	return &n, w.put(ctx, key, &n, logged)
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

func (w *writer) doCopy(ctx context.Context, op *Op) (*Object, error) {
	old, err := w.object(ctx, op.Key)
	if err != nil {
		return nil, err
	}
	if err := op.Cond.check(op.Key, old); err != nil {
		return nil, err
	}
	src := op.Source
	if src == nil || src.Marker {
		return nil, notFound("copy", strconv.Quote(clip(op.Key)), "no source")
	}
	meta := op.Object
	if meta == nil {
		m := *src
		m.Modified = time.Time{}
		meta = &m
	}
	o, err := w.newObject(op.Key, meta)
	if err != nil {
		return nil, err
	}
	o.ETag, o.Parts = src.ETag, src.Parts
	if op.Object != nil && op.Object.ETag != "" {
		o.ETag, o.Parts = op.Object.ETag, op.Object.Parts
	}
	logged, err := w.clone(ctx, o, src)
	if err != nil {
		return nil, err
	}
	return o, w.replace(ctx, old, o, logged)
}

// clone gives o the bytes of src, which may be another bucket's: slots are shared, small bytes are copied.
func (w *writer) clone(ctx context.Context, o, src *Object) (logged []byte, err error) {
	b, ok, err := w.bytesOf(ctx, src)
	if err != nil {
		return nil, err
	}
	if ok {
		return o.setSmall(b), nil
	}
	o.Size = src.Size
	if !src.data.spread {
		o.data = content{extents: src.data.extents}
		return nil, nil
	}
	o.data = content{spread: true}
	// The source may be in the very state that is being changed, which mustn't happen during a scan of it.
	var xs []extent
	err = w.s.extentsIn(ctx, src, 0, src.Size, func(_ int64, x extent) error {
		xs = append(xs, x)
		return nil
	})
	off := int64(0)
	for _, x := range xs {
		if err == nil {
			err = w.putExtent(ctx, o.ID, off, x)
		}
		off += x.n
	}
	return nil, err
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

// doDeletePrefix deletes every object, version and directory record with a prefix by three range deletions.
func (w *writer) doDeletePrefix(ctx context.Context, prefix string) error {
	start, end := objectKey(prefix), stringEnd(objectKey(prefix))
	var objects, bytes int64
	v := "v" + escapeKey(prefix)
	var drops []*Object
	for _, plane := range []string{start, v} {
		c := w.t.scan(plane, stringEnd(plane))
		for c.next(ctx) {
			n, b := measure([]byte(c.key), c.rec.val)
			objects += int64(n)
			bytes += int64(b)
			if flags := recordFlags(c.rec.val); flags&(flagLinked|flagSpread) != 0 {
				o, err := w.t.object(ctx, c.key[1:], c.rec)
				if err != nil {
					return err
				}
				drops = append(drops, o)
			}
		}
		if c.err != nil {
			return c.err
		}
	}
	for _, o := range drops {
		if err := w.drop(ctx, o); err != nil {
			return err
		}
	}
	if err := w.emit(ctx, logRecord{op: logRange, key: start, end: end, objects: -objects, bytes: -bytes}); err != nil {
		return err
	}
	if err := w.deleteRange(ctx, dirKey(prefix), stringEnd(dirKey(prefix))); err != nil {
		return err
	}
	return w.deleteRange(ctx, v, stringEnd(v))
}

// recordFlags returns the flags of an object's record.
func recordFlags(val []byte) uint64 {
	if len(val) == 0 {
		return 0
	}
	d := dec{b: val[1:]}
	d.u()
	d.u()
	return d.u()
}

func (w *writer) doPutDir(ctx context.Context, op *Op) error {
	if op.Dir == nil || !strings.HasSuffix(op.Key, "/") {
		return errs.Msg(errs.Invalid, "directory", strconv.Quote(clip(op.Key)), "a directory's path ends in a slash")
	}
	d := *op.Dir
	rec, err := w.lookup(ctx, dirKey(op.Key))
	if err != nil {
		return err
	}
	if rec.val != nil && d.ID.IsZero() {
		old, err := decodeDir(op.Key, rec.val)
		if err != nil {
			return err
		}
		d.ID = old.ID
	}
	if d.ID.IsZero() {
		n, err := w.s.objIDs.next(1)
		if err != nil {
			return err
		}
		d.ID = ObjectID{w.r.rec.space, n}
	}
	if d.Modified.IsZero() {
		d.Modified = time.Unix(0, int64(w.seq)).UTC()
	}
	return w.emit(ctx, logRecord{op: logPut, key: dirKey(op.Key), val: encodeDir(&d)})
}

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
