package bucket

import (
	"context"
	"errors"
	"slices"

	"agentrun.dev/bucket/tree"
	"agentrun.dev/errs"
)

// A change of very many keys isn't logged: its tree is computed aside while writers go on, and published beneath what
// they wrote meanwhile. If they touched what the change rests on, it starts again.

// asideTries is how often a change is started again before it gives up.
const asideTries = 10

// change is a computation on a frozen state: edits gives what it changes, sorted; touched says whether a key written
// meanwhile invalidates it; more adds to the publishing transaction and to the ref's new record.
type change struct {
	edits   func(b *builder, st *snap) (tree.Edits, error)
	touched func(key string) bool
	more    func(t *txn, rec *refRecord) error
}

// aside runs a change on a ref and returns the version at which it was published.
func (s *Store) aside(ctx context.Context, r *ref, c change) (uint64, error) {
	s.folds.one.Lock()
	defer s.folds.one.Unlock()
	for range asideTries {
		v, err := s.tryAside(ctx, r, c)
		if !errors.Is(err, errMoved) {
			return v, err
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
	}
	return 0, errs.Msg(errs.Conflict, "change", r.record().name, "the keys concerned are being written all the time")
}

func (s *Store) tryAside(ctx context.Context, r *ref, c change) (uint64, error) {
	below := r.record().view
	if v, err := s.readView(ctx, below); err != nil {
		return 0, err
	} else if v.delta != 0 {
		if err := s.foldViewLocked(ctx, below); err != nil {
			return 0, err
		}
		if err := r.refresh(ctx); err != nil {
			return 0, err
		}
	}
	sealed, err := s.seal(ctx, r)
	if err != nil {
		return 0, err
	}
	if sealed == nil {
		if sealed = r.sealEmpty(); sealed == nil {
			return 0, errMoved
		}
	}
	defer sealed.release()
	// The change applies to a tree alone, so that its edits needn't be reconciled with an index.
	if err := s.foldViewLocked(ctx, sealed.id); err != nil {
		return 0, err
	}
	st, err := s.state(ctx, sealed.id, 0, 0)
	if err != nil {
		return 0, err
	}
	defer st.base.release()
	b := s.build(ctx, 0)
	edits, err := c.edits(b, st)
	var root tree.Root
	if err == nil {
		root, err = s.tree.Apply(ctx, st.base.root, edits, b)
	}
	if err == nil {
		var v uint64
		if v, err = s.publishAside(ctx, r, sealed, root, b, c); err == nil {
			return v, nil
		}
	}
	b.abandon(ctx, err)
	r.mu.Lock()
	r.next = nil
	r.mu.Unlock()
	return 0, err
}

// sealEmpty begins to note what is written from now on, for a ref whose delta is empty; nil if it isn't any more.
func (r *ref) sealEmpty() *sealing {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wrote || r.gone {
		return nil
	}
	x := &sealing{id: r.rec.view, st: r.tip}
	x.st.base.hold()
	r.s.pins.add(pin{kView, x.id})
	r.next = emptyTip(r.tip.base, r.tip.seq)
	return x
}

// publishAside makes a tree the ref's new view, under what was written since the seal.
func (s *Store) publishAside(ctx context.Context, r *ref, sealed *sealing, root tree.Root, b *builder, c change) (uint64, error) {
	s.barrier.RLock()
	defer s.barrier.RUnlock()
	t, v, err := s.queueAside(ctx, r, sealed, root, b, c)
	if err == nil {
		err = t.wait()
	}
	if err != nil {
		return 0, err
	}
	s.folds.done.Add(1)
	s.ledger.poke()
	return v, nil
}

func (s *Store) queueAside(ctx context.Context, r *ref, sealed *sealing, root tree.Root, b *builder, c change) (*txn, uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.ready(); err != nil {
		return nil, 0, err
	}
	if r.next == nil {
		return nil, 0, errMoved // a commit failed meanwhile
	}
	moved := r.next.cut.Len() > 0
	r.next.idx.Scan(func(e *entry) bool {
		moved = moved || c.touched(e.key)
		return !moved
	})
	if moved {
		return nil, 0, errMoved
	}
	id, err := s.objIDs.next(1)
	if err != nil {
		return nil, 0, err
	}
	seq := s.clock.take(1)
	t := &txn{refs: []*ref{r}}
	enc, err := (&viewRecord{root: root, objects: int64(root.Count), bytes: int64(root.Bytes)}).encode()
	if err != nil {
		return nil, 0, err
	}
	t.put(viewKey(id), enc)
	old := r.rec
	rec := old.clone()
	rec.view, rec.since = id, seq
	h := holder(heldByRef, r.id)
	t.put(viewEdge(id, h), present())
	if s.history > 0 {
		hh := holder(heldByHistory, r.id, be64(old.since))
		t.put(histKey(r.id, old.since), (&histRecord{end: seq, view: old.view, delta: old.delta}).encode())
		t.put(viewEdge(old.view, hh), present())
		t.put(deltaEdge(old.delta, hh), present())
	}
	if err := s.dropEdges(t, old.view, 0, h); err != nil {
		return nil, 0, err
	}
	if err := b.finish(ctx, t, root); err != nil {
		return nil, 0, err
	}
	if c.more != nil {
		if err := c.more(t, rec); err != nil {
			return nil, 0, err
		}
	}
	t.put(refKey(r.id), rec.encode())
	t.stamp(seq)
	pins := []pin{{kView, id}, {kDelta, rec.delta}}
	s.pins.add(pins...)
	nb := newBase(s, root, pins)
	st := &snap{base: nb, idx: r.next.idx, cut: r.next.cut, seq: seq, meta: r.next.meta, payload: r.next.payload,
		objects: int64(root.Count) + r.tip.objects - sealed.st.objects, bytes: int64(root.Bytes) + r.tip.bytes - sealed.st.bytes}
	ob := r.tip.base
	t.undo = nb.release
	t.publish = func() {
		r.pub.Store(st)
		ob.release()
	}
	if err := r.queueRecord(t, rec); err != nil {
		nb.release()
		return nil, 0, err
	}
	r.tip, r.next, r.last = st, nil, seq
	r.forgetCut()
	return t, seq, nil
}

// renameAside is OpRenameDir for more keys than one batch takes.
func (r *ref) renameAside(ctx context.Context, op *Op) error {
	from, to := movedPlanes(op.Key), movedPlanes(op.To)
	_, err := r.s.aside(ctx, r, change{
		edits: func(b *builder, st *snap) (tree.Edits, error) {
			if err := checkRenameDir(ctx, st, op); err != nil {
				return nil, err
			}
			return renameEdits(ctx, b, st, from, to), nil
		},
		touched: func(key string) bool {
			return slices.ContainsFunc(append(from, to...), func(p string) bool { return len(key) >= len(p) && key[:len(p)] == p })
		},
	})
	return err
}

// renameEdits streams, in order of key, the deletion of what lies below from and the same records below to.
func renameEdits(ctx context.Context, b *builder, st *snap, from, to []string) tree.Edits {
	return func(yield func(tree.Edit, error) bool) {
		for _, i := range []int{1, 0, 2} { // directories, objects, versions: the planes' order
			gone := tree.Edit{Key: []byte(from[i]), End: []byte(stringEnd(from[i])), Delete: true}
			if from[i] < to[i] && !yield(gone, nil) {
				return
			}
			c := st.scan(from[i], stringEnd(from[i]))
			for c.next(ctx) {
				if len(c.key)-len(from[i])+len(to[i]) > tree.MaxKey {
					yield(tree.Edit{}, errs.Msg(errs.TooLarge, "rename", "", "a key would exceed 1024 bytes"))
					return
				}
				if recordFlags(c.rec.val)&flagLinked != 0 && i == 0 {
					yield(tree.Edit{}, errs.Msg(errs.Unsupported, "rename", "", "a directory with hard links and more than 10,000 keys can't be renamed at once"))
					return
				}
				val, err := b.settled(ctx, c.key, c.rec)
				if !yield(tree.Edit{Key: []byte(to[i] + c.key[len(from[i]):]), Value: val}, err) || err != nil {
					return
				}
			}
			if c.err != nil {
				yield(tree.Edit{}, c.err)
				return
			}
			if from[i] > to[i] && !yield(gone, nil) {
				return
			}
		}
	}
}
