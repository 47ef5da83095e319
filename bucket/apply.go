package bucket

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"agentrun.dev"
	"agentrun.dev/bucket/tree"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

// Bucket is a living bucket, for writing. It follows the bucket by id: once that is deleted, everything is
// errs.NotFound, even if another bucket has its name.
type Bucket struct {
	s    *Store
	id   agentrun.RefID
	name string
}

// Bucket finds a living bucket by name.
func (s *Store) Bucket(ctx context.Context, name string) (*Bucket, error) {
	id, err := s.resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	return &Bucket{s, id, name}, nil
}

// ID returns the bucket's id.
func (b *Bucket) ID() agentrun.RefID { return b.id }

// Name returns the name that the bucket was found by.
func (b *Bucket) Name() string { return b.name }

// Store returns the store that the bucket is in.
func (b *Bucket) Store() *Store { return b.s }

// ApplyOptions are the choices for Apply. Lazy acknowledges before the changes are durable; a later Apply or Sync
// makes them so, in order. Payload in slots is durable either way.
type ApplyOptions struct{ Lazy bool }

// Apply makes all changes, in order, at one version, or none. Results has one object per op: the object put, or the
// marker or object deleted, or nil. When it returns nil, the changes are durable and visible, unless o.Lazy. Once it
// has begun to commit, the context no longer ends it.
func (b *Bucket) Apply(ctx context.Context, ops []Op, o ApplyOptions) (results []*Object, err error) {
	if err := checkOps(ops); err != nil {
		return nil, err
	}
	r, err := b.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer b.s.release(r)
	if err := r.settlePayload(ctx, ops); err != nil {
		return nil, err
	}
	results, err = r.apply(ctx, ops, o)
	if errors.Is(err, errManyKeys) && len(ops) == 1 {
		return []*Object{nil}, r.renameAside(ctx, &ops[0])
	}
	return results, err
}

// settlePayload makes the operations' payload durable before anything refers to it. Small writes into large objects go
// into slots here, rather than under the lock.
func (r *ref) settlePayload(ctx context.Context, ops []Op) error {
	slots := false
	for i := range ops {
		p := ops[i].Payload
		if p == nil || p.used {
			continue
		}
		if ops[i].Kind == OpWrite && len(p.inline) > 0 {
			st := r.snapshot()
			old, err := st.getObject(ctx, ops[i].Key)
			st.base.release()
			if err != nil {
				return err
			}
			if old != nil && (len(old.data.extents) > 0 || old.data.spread) || ops[i].Offset+p.Size > maxInline {
				x, err := r.s.putStaged(ctx, p.inline)
				if err != nil {
					return err
				}
				p.extents, p.inline = []extent{x}, nil
			}
		}
		slots = slots || len(p.extents) > 0
	}
	if !slots {
		return nil
	}
	return r.s.segments.Sync(ctx)
}

// apply runs operations through the sequencer and waits for their commit.
func (r *ref) apply(ctx context.Context, ops []Op, o ApplyOptions) ([]*Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.room()
	r.s.barrier.RLock()
	t, results, made, err := r.sequence(ctx, ops, o)
	r.s.barrier.RUnlock()
	if t != nil {
		if err2 := t.wait(); err2 != nil {
			err = err2
		}
	}
	for i := range ops {
		if p := ops[i].Payload; p != nil {
			p.settle(err)
		}
	}
	made.settle(err)
	made.Discard()
	if err != nil {
		return nil, err
	}
	r.s.folds.consider(r)
	return results, nil
}

// room waits until the ref's delta has room. Whoever waits must not hold the barrier: the fold that makes room needs
// it, and a check that waits for it keeps others from taking it.
func (r *ref) room() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.fold && !r.gone && r.crowded() {
		r.rooms.Wait()
	}
}

func (b *Bucket) acquire(ctx context.Context) (*ref, error) {
	r, err := b.s.acquire(ctx, b.id)
	if errs.Is(err, errs.NotFound) {
		err = noBucket(b.name)
	}
	return r, err
}

// sequence checks and orders operations and queues their commit. made are the slots that it made itself. A refusal
// comes with the transaction that it may rest on, if there is one: until that is committed, nobody may hear of it.
func (r *ref) sequence(ctx context.Context, ops []Op, o ApplyOptions) (t *txn, results []*Object, made *Payload, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.ready(); err != nil {
		return nil, nil, nil, err
	}
	w := r.writer()
	results = make([]*Object, len(ops))
	for i := range ops {
		res, err := w.do(ctx, &ops[i])
		if err != nil {
			return r.newest, nil, &w.made, err
		}
		results[i] = res
	}
	t = &txn{lazy: o.Lazy}
	if err := w.queue(t); err != nil {
		return nil, nil, &w.made, err
	}
	return t, results, &w.made, nil
}

// ready makes sure that the ref can be changed. The caller holds mu.
func (r *ref) ready() error {
	r.recover()
	if r.gone {
		return noBucket(r.rec.name)
	}
	return nil
}

// syncBatch changes nothing, but its commit makes all earlier ones durable.
func syncBatch() kv.Batch {
	var b kv.Batch
	b.Put(kvKey(kIDs, []byte{'s'}), present())
	return b
}

// Sync makes durable whatever was applied before.
func (b *Bucket) Sync(ctx context.Context) error {
	if err := b.s.segments.Sync(ctx); err != nil {
		return err
	}
	return b.s.commits.commit(&txn{batch: syncBatch()})
}

func checkOps(ops []Op) error {
	if len(ops) > MaxBatchOps {
		return errs.Msg(errs.TooLarge, "apply", "", "at most "+strconv.Itoa(MaxBatchOps)+" operations at once")
	}
	for i := range ops {
		op := &ops[i]
		if op.Kind != OpDeletePrefix || op.Key != "" {
			if err := CheckKey(op.Key); err != nil {
				return err
			}
		}
		switch op.Kind {
		case OpRename, OpRenameDir, OpLink:
			if err := CheckKey(op.To); err != nil {
				return err
			}
		case OpWrite, OpTruncate:
			if op.Offset < 0 || op.Offset > MaxObject || op.Payload != nil && op.Offset+op.Payload.Size > MaxObject {
				return errs.Msg(errs.TooLarge, "write", strconv.Quote(clip(op.Key)), "an object has at most 5 TiB")
			}
		}
		if op.Object != nil && len(op.Object.ETag) > maxETag {
			return errs.Msg(errs.TooLarge, "metadata", strconv.Quote(clip(op.Key)), "an ETag has at most 256 bytes")
		}
		if op.Object != nil && metaSize(op.Object) > MaxMeta && len(op.Object.Parts) == 0 {
			return errs.Msg(errs.TooLarge, "metadata", strconv.Quote(clip(op.Key)), "headers, metadata, tags and attributes have at most 64 KiB")
		}
	}
	return nil
}

const maxETag = 256 // bytes

func metaSize(o *Object) int {
	var e enc
	e.spillable(o)
	return len(e.b)
}

// writer gathers what operations change, on a copy of the tip.
type writer struct {
	r    *ref
	s    *Store
	t    *tip
	seq  uint64
	log  []logRecord
	gain []extent // slots that the log begins to hold
	made Payload  // slots that the operations made for bytes that had none
	memo struct {
		key string
		rec record
		ok  bool
	}
}

// writer begins a transaction at a new version. The caller holds the ref's mu.
func (r *ref) writer() *writer {
	w := &writer{r: r, s: r.s, t: newTip(r.tip), seq: r.s.clock.take(1)}
	w.t.seq, w.made.s = w.seq, r.s
	return w
}

func (w *writer) lookup(ctx context.Context, key string) (record, error) {
	if w.memo.ok && w.memo.key == key {
		return w.memo.rec, nil
	}
	rec, err := w.t.lookup(ctx, key)
	w.memo.key, w.memo.rec, w.memo.ok = key, rec, err == nil
	return rec, err
}

func (w *writer) object(ctx context.Context, key string) (*Object, error) {
	rec, err := w.lookup(ctx, objectKey(key))
	if err != nil || rec.val == nil {
		return nil, err
	}
	return w.t.object(ctx, key, rec)
}

// emit logs one change and makes it on the copy. Payload goes with records whose bytes are logged.
func (w *writer) emit(ctx context.Context, l logRecord) error {
	if l.key[0] == planeObject && l.op != logRange {
		old, err := w.lookup(ctx, l.key)
		if err != nil {
			return err
		}
		c0, b0 := measure([]byte(l.key), old.val)
		c1, b1 := measure([]byte(l.key), l.val)
		l.objects, l.bytes = int64(c1)-int64(c0), int64(b1)-int64(b0)
	}
	w.memo.ok = false
	if l.op == logPut && l.key[0] != planeObject && l.key[0] != planeVersion && len(l.val) > tree.MaxValue {
		// Objects' records spill what is large; a log record that no tree takes would stop every fold from now on.
		return errs.Msg(errs.TooLarge, "apply", w.r.rec.name, "the names of a file, or the attributes of a directory, have at most 16 KiB together")
	}
	if l.op == logPut {
		if err := slotsOf(l.key, l.val, func(x extent) { w.gain = append(w.gain, x) }); err != nil {
			return err
		}
	}
	w.log = append(w.log, l)
	w.t.apply(&l, logLoc{w.r.rec.delta, w.seq, uint32(len(w.log) - 1)})
	return nil
}

func (w *writer) put(ctx context.Context, key string, o *Object, payload []byte) error {
	return w.emit(ctx, logRecord{op: logPut, key: key, val: encodeObject(o, nil), payload: payload})
}

func (w *writer) delete(ctx context.Context, key string) error {
	return w.emit(ctx, logRecord{op: logDelete, key: key})
}

func (w *writer) deleteRange(ctx context.Context, start, end string) error {
	return w.emit(ctx, logRecord{op: logRange, key: start, end: end})
}

// queue turns what was gathered into a transaction and gives it its place. The caller holds the ref's mu.
func (w *writer) queue(t *txn) error {
	if len(w.log) == 0 {
		t.batch = syncBatch()
		return w.s.commits.enqueue(t)
	}
	for i := range w.log {
		t.put(logKey(logLoc{w.r.rec.delta, w.seq, uint32(i)}), w.log[i].encode())
	}
	t.stamp(w.seq)
	if len(w.gain) > 0 {
		if err := t.gain(w.s, w.gain); err != nil {
			return err
		}
		w.s.ledger.poke()
	}
	r, st := w.r, &w.t.snap
	t.refs = append(t.refs, r)
	also := t.publish
	t.publish = func() {
		r.pub.Store(st)
		if also != nil {
			also()
		}
	}
	if err := w.s.commits.enqueue(t); err != nil {
		return err
	}
	r.tip, r.wrote, r.last, r.newest = st, true, w.seq, t
	if r.next != nil {
		for i := range w.log {
			r.next.apply(&w.log[i], logLoc{r.rec.delta, w.seq, uint32(i)})
		}
	}
	return nil
}

// check evaluates a condition against the present object, nil if there is none.
func (c *Condition) check(key string, o *Object) error {
	if c == nil {
		return nil
	}
	fail := func(why string) error {
		return errs.Msg(errs.Precondition, "condition", strconv.Quote(clip(key)), why)
	}
	if len(c.IfMatch) > 0 {
		if o == nil {
			return errs.Msg(errs.NotFound, "condition", strconv.Quote(clip(key)), "no such object to match")
		}
		if !matches(c.IfMatch, o.ETag) {
			return fail("the ETag is another")
		}
	}
	if o == nil {
		if c.IfVersion != 0 {
			return fail("the object is gone")
		}
		return nil
	}
	switch {
	case len(c.IfNoneMatch) > 0 && matches(c.IfNoneMatch, o.ETag):
		return fail("the object exists with that ETag")
	case !c.IfModifiedSince.IsZero() && !o.Modified.After(c.IfModifiedSince):
		return fail("not modified since")
	case !c.IfUnmodified.IsZero() && o.Modified.After(c.IfUnmodified):
		return fail("modified since")
	case c.IfVersion != 0 && o.Version != c.IfVersion:
		return fail("written since")
	case c.IfSize != nil && o.Size != *c.IfSize:
		return fail("the size is another")
	case !c.IfModifiedAt.IsZero() && !o.Modified.Equal(c.IfModifiedAt):
		return fail("the modification time is another")
	}
	return nil
}

func matches(etags []string, etag string) bool {
	for _, e := range etags {
		if e == "*" || strings.Trim(e, `"`) == etag {
			return true
		}
	}
	return false
}
