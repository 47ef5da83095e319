package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"agentrun.dev"
	"agentrun.dev/bucket/tree"
	"agentrun.dev/errs"
)

// Merge brings into a target what the source has changed since their last common state: three-way, per object. The
// source may be any relative of the target: a fork, a fork's fork, a sibling. Where both sides changed the same key
// differently, o.Conflicts decides; with Fail nothing changes, and the result with the conflicts comes back beside an
// errs.Conflict. Without a common state it is errs.Conflict too, with a nil result.
func (s *Store) Merge(ctx context.Context, source string, o MergeOptions) (*MergeResult, error) {
	if o.Into == "" {
		i, err := s.Info(ctx, source)
		if err != nil {
			return nil, err
		}
		if i.Parent == nil {
			return nil, errs.Msg(errs.Invalid, "merge", source, "it is no fork, so the target must be named").WithHint("agentrun merge " + source + " --into TARGET")
		}
		p, err := s.ByID(ctx, i.Parent.ID)
		if err != nil {
			return nil, errs.New(errs.NotFound, "merge", source, fmt.Errorf("its parent %s is deleted: name a target", i.Parent.Name))
		}
		o.Into = p.Name
	}
	return s.merge(ctx, source, o.Into, o)
}

// Rebase brings into a fork what its parent has gained since they parted. o.Into is ignored; the fork's side is Ours.
func (s *Store) Rebase(ctx context.Context, fork string, o MergeOptions) (*MergeResult, error) {
	i, err := s.Info(ctx, fork)
	if err != nil {
		return nil, err
	}
	if i.Parent == nil {
		return nil, errs.Msg(errs.Invalid, "rebase", fork, "it isn't a fork")
	}
	p, err := s.ByID(ctx, i.Parent.ID)
	if err != nil {
		return nil, errs.New(errs.NotFound, "rebase", fork, fmt.Errorf("its parent %s is deleted", i.Parent.Name))
	}
	return s.merge(ctx, p.Name, fork, o)
}

// merging is one merge under way.
type merging struct {
	s              *Store
	o              MergeOptions
	source, target *ref
	base           *snap
	theirs         *snap
	view           uint64 // of theirs; the base of the next merge. 0 in a dry run
	at             uint64
	res            *MergeResult
	picked         []Change // what the target takes, unless there is more than maxLogged
	count          int
}

func (s *Store) merge(ctx context.Context, source, target string, o MergeOptions) (*MergeResult, error) {
	if o.Conflicts > Theirs {
		return nil, errs.Msg(errs.Invalid, "merge", source, "conflicts are resolved by fail, ours or theirs")
	}
	src, err := s.named(ctx, source)
	if err != nil {
		return nil, err
	}
	defer s.release(src)
	dst, err := s.named(ctx, target)
	if err != nil {
		return nil, err
	}
	defer s.release(dst)
	if src == dst {
		return nil, errs.Msg(errs.Invalid, "merge", source, "a bucket can't be merged with itself")
	}
	m := &merging{s: s, o: o, source: src, target: dst}
	if err := m.freeze(ctx); err != nil {
		return nil, err
	}
	defer m.done()
	if err := m.findBase(ctx); err != nil {
		return nil, err
	}
	defer m.base.base.release()
	for range asideTries {
		m.res = &MergeResult{Source: source, Target: target, Base: agentrun.Version(m.at)}
		m.picked, m.count = nil, 0
		err := m.try(ctx)
		if !errors.Is(err, errMoved) {
			if err != nil && !errs.Is(err, errs.Conflict) {
				return nil, err
			}
			return m.res, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return nil, errs.Msg(errs.Conflict, "merge", target, "the keys concerned are being written all the time")
}

// freeze takes the source's state, as a view that can be kept.
func (m *merging) freeze(ctx context.Context) error {
	if m.o.DryRun {
		m.theirs = m.source.snapshot()
		return nil
	}
	s, r := m.s, m.source
	s.barrier.RLock()
	defer s.barrier.RUnlock()
	r.mu.Lock()
	t, err := func() (*txn, error) {
		if err := r.ready(); err != nil {
			return nil, err
		}
		t := &txn{refs: []*ref{r}}
		t.batch = syncBatch()
		view, _, err := r.cutView(ctx, t)
		if err != nil {
			return nil, err
		}
		// Should nothing come to hold the view, not even after a crash, it goes as soon as it isn't pinned.
		if err := t.event(s, event{kind: viewLoose, a: view}); err != nil {
			return nil, err
		}
		s.pins.add(pin{kView, view})
		if err := s.commits.enqueue(t); err != nil {
			s.pins.drop([]pin{{kView, view}})
			return nil, err
		}
		r.newest = t
		r.cutDone(view)
		m.view, m.theirs = view, r.tip
		m.theirs.base.hold()
		return t, nil
	}()
	r.mu.Unlock()
	if err != nil {
		return err
	}
	if err := t.wait(); err != nil {
		m.done()
		return err
	}
	return nil
}

// done lets go of the source's state. A view that nothing came to hold goes.
func (m *merging) done() {
	m.theirs.base.release()
	if m.view == 0 {
		return
	}
	m.s.pins.drop([]pin{{kView, m.view}})
	m.s.ledger.poke()
}

// cut is the state of a ref from which a line of forks branched off.
type cut struct{ view, at uint64 }

// lineage returns a ref's ancestors, nearest first, each with the state that was forked.
func (s *Store) lineage(ctx context.Context, rec *refRecord) (ids []agentrun.RefID, cuts map[agentrun.RefID]cut, err error) {
	cuts = make(map[agentrun.RefID]cut)
	for rec.origin != nil {
		o := rec.origin
		ids = append(ids, o.ref)
		cuts[o.ref] = cut{o.view, o.at}
		rec, err = s.readRef(ctx, o.ref)
		if errs.Is(err, errs.NotFound) {
			return ids, cuts, nil
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return ids, cuts, nil
}

// findBase finds the last state that both sides have in common: what an earlier merge between them took, or where their
// lines of forks parted, whichever is later.
func (m *merging) findBase(ctx context.Context) error {
	s := m.s
	for range 10 { // a record may be replaced between reading it and pinning its view
		c, err := m.commonCut(ctx)
		if err != nil {
			return err
		}
		m.base, err = s.state(ctx, c.view, 0, 0)
		if err == nil {
			if again, err := m.commonCut(ctx); err == nil && again == c {
				m.at = c.at
				return nil
			}
			m.base.base.release()
		} else if !errs.Is(err, errs.NotFound) {
			return err
		}
	}
	return errs.Msg(errs.Conflict, "merge", m.target.record().name, "other merges are under way")
}

func (m *merging) commonCut(ctx context.Context) (c cut, err error) {
	// As they are stored: a merge that is being committed may still fail, and its base with it.
	s, src, dst := m.s, m.source.stored.Load(), m.target.stored.Load()
	consider := func(view, at uint64) {
		if at > c.at {
			c = cut{view, at}
		}
	}
	srcIDs, srcCuts, err := s.lineage(ctx, src)
	if err != nil {
		return c, err
	}
	_, dstCuts, err := s.lineage(ctx, dst)
	if err != nil {
		return c, err
	}
	if x, ok := dstCuts[src.id]; ok {
		consider(x.view, x.at) // the target descends from the source
	} else {
		for _, id := range srcIDs {
			x := srcCuts[id]
			if id == dst.id {
				consider(x.view, x.at)
				break
			}
			if y, ok := dstCuts[id]; ok {
				if y.at < x.at {
					x = y
				}
				consider(x.view, x.at)
				break
			}
		}
	}
	if x, ok := dst.merges[src.id]; ok {
		consider(x.view, x.at)
	}
	if x, ok := src.merges[dst.id]; ok {
		consider(x.view, x.at)
	}
	if c.view == 0 {
		return c, errs.Msg(errs.Conflict, "merge", src.name, "it has no state in common with "+dst.name).WithHint("agentrun diff " + dst.name + " " + src.name)
	}
	return c, nil
}

// try merges once; errMoved means that the target was written where it matters.
func (m *merging) try(ctx context.Context) error {
	ours := m.target.snapshot()
	defer ours.base.release()
	if err := m.compare(ctx, ours); err != nil {
		return err
	}
	if n := len(m.res.Conflicts) + m.res.MoreConflicts; n > 0 && m.o.Conflicts == Fail {
		return errs.New(errs.Conflict, "merge", m.res.Source, fmt.Errorf("%d of its changes conflict with %s; nothing was merged", n, m.res.Target)).
			WithHint("agentrun merge " + m.res.Source + " --into " + m.res.Target + " --conflicts ours|theirs")
	}
	if m.o.DryRun {
		return nil
	}
	if m.count > maxLogged {
		return m.applyAside(ctx)
	}
	return m.applyLogged(ctx, ours)
}

// compare goes through the source's changes and decides each against the target's state.
func (m *merging) compare(ctx context.Context, ours *snap) error {
	progress := time.Now()
	n := uint64(0)
	return diffObjects(ctx, m.base, m.theirs, "", func(c Change) error {
		if n++; m.o.Progress != nil && time.Since(progress) > 200*time.Millisecond {
			progress = time.Now()
			m.o.Progress(Progress{Phase: "compare", Done: n})
		}
		take, err := m.decide(ctx, ours, &c, true)
		if err != nil || !take {
			return err
		}
		switch c.Kind {
		case Added:
			m.res.Added++
		case Modified:
			m.res.Modified++
		case Deleted:
			m.res.Deleted++
		case Metadata:
			m.res.Metadata++
		}
		if m.count++; m.count <= maxLogged {
			m.picked = append(m.picked, c)
		} else {
			m.picked = nil
		}
		return nil
	})
}

// decide says whether the target takes a change; where it conflicts, that is noted if note is set.
func (m *merging) decide(ctx context.Context, ours *snap, c *Change, note bool) (bool, error) {
	mine, err := ours.getObject(ctx, c.Key)
	if err != nil {
		return false, err
	}
	if same(mine, c.New) {
		return false, nil // both did the same
	}
	if same(mine, c.Old) {
		return true, nil
	}
	if note {
		if len(m.res.Conflicts) < MaxConflicts {
			m.res.Conflicts = append(m.res.Conflicts, Conflict{Key: c.Key, Base: c.Old, Ours: mine, Theirs: c.New})
		} else {
			m.res.MoreConflicts++
		}
	}
	return m.o.Conflicts == Theirs, nil
}

// remember makes the source's state the base of the next merge, in the transaction that publishes this one.
func (m *merging) remember(ctx context.Context, t *txn, rec *refRecord) error {
	s, src := m.s, m.source.id
	rec.merges = maps.Clone(rec.merges)
	if rec.merges == nil {
		rec.merges = make(map[agentrun.RefID]mergeRecord)
	}
	if err := s.forgetMerges(ctx, t, rec, src); err != nil {
		return err
	}
	h := holder(heldByMerge, rec.id, src[:])
	if old, ok := rec.merges[src]; ok && old.view != m.view {
		if err := s.dropEdges(t, old.view, 0, h); err != nil {
			return err
		}
	}
	rec.merges[src] = mergeRecord{m.view, s.clock.take(1)}
	t.put(viewEdge(m.view, h), present())
	return nil
}

// forgetMerges drops the bases of merges with buckets that are deleted: they won't be merged again. A few are looked at
// each time, so that the record of a bucket into which one fork after another is merged doesn't grow with their number.
func (s *Store) forgetMerges(ctx context.Context, t *txn, rec *refRecord, keep agentrun.RefID) error {
	const few = 32
	n := 0
	for id, m := range rec.merges { // in random order: all have their turn
		if n++; n > few {
			break
		}
		if id == keep {
			continue
		}
		other, err := s.readRef(ctx, id)
		if err == nil && !other.gone {
			continue
		}
		if err != nil && !errs.Is(err, errs.NotFound) {
			return err
		}
		if err := s.dropEdges(t, m.view, 0, holder(heldByMerge, rec.id, id[:])); err != nil {
			return err
		}
		delete(rec.merges, id)
	}
	return nil
}

// applyLogged writes the picked changes to the target's log.
func (m *merging) applyLogged(ctx context.Context, ours *snap) error {
	m.target.room()
	m.s.barrier.RLock()
	defer m.s.barrier.RUnlock()
	t, err := m.queueLogged(ctx, ours)
	if err == nil {
		err = t.wait()
	}
	if err == nil {
		m.s.folds.consider(m.target)
	}
	return err
}

func (m *merging) queueLogged(ctx context.Context, ours *snap) (*txn, error) {
	r := m.target
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.ready(); err != nil {
		return nil, err
	}
	if err := m.unmoved(ctx, ours, r.tip); err != nil {
		return nil, err
	}
	w := r.writer()
	for i := range m.picked {
		if err := w.take(ctx, &m.picked[i]); err != nil {
			return nil, err
		}
	}
	if err := m.takeDirs(ctx, w); err != nil {
		return nil, err
	}
	rec := r.rec.clone()
	t := &txn{}
	if err := m.remember(ctx, t, rec); err != nil {
		return nil, err
	}
	t.put(refKey(r.id), rec.encode())
	m.res.Version = agentrun.Version(w.seq)
	stored := func() { r.stored.Store(rec) }
	if len(w.log) == 0 {
		t.publish, t.refs = stored, []*ref{r}
		if err := m.s.commits.enqueue(t); err != nil {
			return nil, err
		}
		m.res.Version = agentrun.Version(max(r.last, r.rec.since))
	} else {
		t.publish = stored
		if err := w.queue(t); err != nil {
			return nil, err
		}
	}
	r.rec, r.newest = rec, t
	return t, nil
}

// unmoved makes sure that the target has, under the picked keys, still what they were decided against.
func (m *merging) unmoved(ctx context.Context, ours, tip *snap) error {
	if tip == ours {
		return nil
	}
	for i := range m.picked {
		key := objectKey(m.picked[i].Key)
		a, err := ours.lookup(ctx, key)
		if err != nil {
			return err
		}
		b, err := tip.lookup(ctx, key)
		if err != nil {
			return err
		}
		if string(a.val) == string(b.val) && (a.val == nil) == (b.val == nil) {
			continue
		}
		c, err := classify(ctx, ours, tip, m.picked[i].Key, a, b) // a fold changes how a record is written, too
		if err != nil {
			return err
		}
		if c.Kind != 0 {
			return errMoved
		}
	}
	return nil
}

// take makes one change of a merge: like a write, but with the other side's times and ETag.
func (w *writer) take(ctx context.Context, c *Change) error {
	if c.New == nil {
		_, err := w.doDelete(ctx, &Op{Kind: OpDelete, Key: c.Key})
		return err
	}
	old, err := w.object(ctx, c.Key)
	if err != nil {
		return err
	}
	o, err := w.newObject(c.Key, c.New)
	if err != nil {
		return err
	}
	if o.Posix != nil && o.Posix.Links > 1 {
		p := *o.Posix
		p.Links = 1
		o.Posix = &p
	}
	logged, err := w.clone(ctx, o, c.New)
	if err != nil {
		return err
	}
	return w.replace(ctx, old, o, logged)
}

// takeDirs merges directory attributes: the source's changes win unless the target changed the same directory.
func (m *merging) takeDirs(ctx context.Context, w *writer) error {
	return m.dirs(ctx, &w.t.snap, func(key string, val []byte) error {
		if val == nil {
			return w.delete(ctx, key)
		}
		return w.emit(ctx, logRecord{op: logPut, key: key, val: val})
	})
}

func (m *merging) dirs(ctx context.Context, ours *snap, f func(key string, val []byte) error) error {
	type edit struct {
		key string
		val []byte
	}
	var list []edit
	err := diffRecords(ctx, m.base, m.theirs, "d", stringEnd("d"), func(key string, rb, rt record) error {
		mine, err := ours.lookup(ctx, key)
		if err != nil {
			return err
		}
		if string(mine.val) == string(rb.val) && (mine.val != nil) == (rb.val != nil) || m.o.Conflicts == Theirs {
			list = append(list, edit{key, rt.val})
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, e := range list {
		if err := f(e.key, e.val); err != nil {
			return err
		}
	}
	return nil
}

// applyAside merges by computing the target's new tree beside it.
func (m *merging) applyAside(ctx context.Context) error {
	if m.target.record().versioning != Unversioned {
		return errs.Msg(errs.TooLarge, "merge", m.res.Source, fmt.Sprintf("more than %d changes can't be merged at once into a bucket with versioning", maxLogged)).
			WithHint("merge smaller steps, or suspend versioning on " + m.res.Target)
	}
	seq := m.s.clock.take(1)
	v, err := m.s.aside(ctx, m.target, change{
		edits: func(b *builder, st *snap) (tree.Edits, error) {
			// What was decided may have moved before the seal: decide again, now on what the result rests on.
			m.res.Conflicts, m.res.MoreConflicts, m.picked, m.count = nil, 0, nil, 0
			m.res.Added, m.res.Modified, m.res.Deleted, m.res.Metadata = 0, 0, 0, 0
			if err := m.compare(ctx, st); err != nil {
				return nil, err
			}
			if m.o.Conflicts == Fail && len(m.res.Conflicts) > 0 {
				return nil, errs.Msg(errs.Conflict, "merge", m.res.Source, "its changes conflict with "+m.res.Target+"; nothing was merged")
			}
			return m.asideEdits(ctx, b, st, seq), nil
		},
		touched: func(key string) bool {
			a, err1 := m.base.lookup(ctx, key)
			b, err2 := m.theirs.lookup(ctx, key)
			return err1 != nil || err2 != nil || key[0] == planeObject && string(a.val) != string(b.val)
		},
		more: func(t *txn, rec *refRecord) error { return m.remember(ctx, t, rec) },
	})
	m.res.Version = agentrun.Version(v)
	return err
}

// asideEdits streams the merge as edits of the target's tree, plane by plane.
func (m *merging) asideEdits(ctx context.Context, b *builder, st *snap, seq uint64) tree.Edits {
	return func(yield func(tree.Edit, error) bool) {
		stop := errors.New("stop")
		send := func(e tree.Edit) error {
			if !yield(e, nil) {
				return stop
			}
			return nil
		}
		err := m.dirs(ctx, st, func(key string, val []byte) error {
			return send(tree.Edit{Key: []byte(key), Value: val, Delete: val == nil})
		})
		var extents []tree.Edit
		if err == nil {
			err = diffObjects(ctx, m.base, m.theirs, "", func(c Change) error {
				take, err := m.decide(ctx, st, &c, false)
				if err != nil || !take {
					return err
				}
				mine, err := st.getObject(ctx, c.Key)
				if err != nil {
					return err
				}
				if mine != nil && mine.data.spread {
					p := extentPrefix(mine.ID)
					extents = append(extents, tree.Edit{Key: []byte(p), End: []byte(stringEnd(p)), Delete: true})
				}
				if c.New == nil {
					return send(tree.Edit{Key: []byte(objectKey(c.Key)), Delete: true})
				}
				o := *c.New
				if o.ID.N, err = m.s.objIDs.next(1); err != nil {
					return err
				}
				o.ID.Space = m.target.record().space
				o.Version, o.Null = agentrun.Version(seq), true
				if o.Posix != nil && o.Posix.Links > 1 {
					p := *o.Posix
					p.Links = 1
					o.Posix = &p
				}
				if o.data.logged {
					x, err := b.pack(ctx, o.data.loc)
					if err != nil {
						return err
					}
					o.data = content{extents: []extent{x}}
				}
				if o.data.spread {
					err := m.s.extentsIn(ctx, c.New, 0, c.New.Size, func(off int64, x extent) error {
						extents = append(extents, tree.Edit{Key: []byte(extentKey(o.ID, off)), Value: encodeExtent(x)})
						return nil
					})
					if err != nil {
						return err
					}
				}
				val, err := b.settled(ctx, objectKey(c.Key), record{val: encodeObject(&o, nil)})
				if err != nil {
					return err
				}
				return send(tree.Edit{Key: []byte(objectKey(c.Key)), Value: val})
			})
		}
		if err == nil {
			sortEdits(extents)
			for _, e := range extents {
				if err = send(e); err != nil {
					break
				}
			}
		}
		if err != nil && !errors.Is(err, stop) {
			yield(tree.Edit{}, err)
		}
	}
}

func sortEdits(edits []tree.Edit) {
	slices.SortFunc(edits, func(a, b tree.Edit) int { return bytes.Compare(a.Key, b.Key) })
}
