package bucket

import (
	"context"
	"encoding/hex"
	"fmt"
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
