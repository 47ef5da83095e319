package bucket

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"agentrun.dev"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

func (r *refRecord) info() *Info {
	i := &Info{Name: r.name, ID: r.id, Created: r.created, Versioning: r.versioning, Snapshots: r.snapshots, Attributes: maps.Clone(r.attrs)}
	if o := r.origin; o != nil {
		i.Parent = &Origin{Name: o.name, ID: o.ref, Snapshot: agentrun.Version(o.at), Forked: o.time}
	}
	return i
}

// Create makes an empty bucket. A name in use is errs.Exists, a malformed one errs.Invalid.
func (s *Store) Create(ctx context.Context, name string, o CreateOptions) (*Info, error) {
	done, err := s.reserve(ctx, name)
	if err != nil {
		return nil, err
	}
	defer done()
	s.barrier.RLock()
	defer s.barrier.RUnlock()
	view, err := s.objIDs.next(1)
	if err != nil {
		return nil, err
	}
	rec := &refRecord{name: name, view: view, versioning: o.Versioning, snapshots: o.Snapshots, attrs: maps.Clone(o.Attributes)}
	t := &txn{}
	v, err := (&viewRecord{}).encode()
	if err != nil {
		return nil, err
	}
	t.put(viewKey(view), v)
	if err := s.addRef(t, rec); err != nil {
		return nil, err
	}
	if err := s.commits.commit(t); err != nil {
		return nil, err
	}
	return rec.info(), nil
}

// addRef completes a new bucket's record and writes it with all that holds it together.
func (s *Store) addRef(t *txn, rec *refRecord) (err error) {
	if rec.id, err = newRefID(); err != nil {
		return err
	}
	first, err := s.objIDs.next(2)
	if err != nil {
		return err
	}
	rec.space, rec.delta = first, first+1
	rec.since = s.clock.take(1)
	rec.created = agentrun.Version(rec.since).Time()
	t.put(refKey(rec.id), rec.encode())
	t.put(nameKey(rec.name), append(present(), rec.id[:]...))
	h := holder(heldByRef, rec.id)
	t.put(viewEdge(rec.view, h), present())
	t.put(deltaEdge(rec.delta, h), present())
	t.stamp(rec.since)
	return nil
}

// Info describes a bucket.
func (s *Store) Info(ctx context.Context, name string) (*Info, error) {
	r, err := s.named(ctx, name)
	if err != nil {
		return nil, err
	}
	defer s.release(r)
	return s.describe(ctx, r)
}

func (s *Store) describe(ctx context.Context, r *ref) (*Info, error) {
	st := r.pub.Load()
	i := r.record().info()
	i.Objects, i.Bytes, i.Version = uint64(st.objects), uint64(st.bytes), agentrun.Version(max(st.seq, r.record().since))
	forks, err := s.hasForks(ctx, r.id)
	i.HasForks = forks
	return i, err
}

func (s *Store) hasForks(ctx context.Context, id agentrun.RefID) (yes bool, err error) {
	err = s.kv.Scan(ctx, prefixRange(kvKey(kChild, id[:])), func(_, _ []byte) error {
		yes = true
		return kv.Stop
	})
	return yes, err
}

// ByID finds a living bucket by id, or errs.NotFound.
func (s *Store) ByID(ctx context.Context, id agentrun.RefID) (*Info, error) {
	r, err := s.acquire(ctx, id)
	if err != nil {
		return nil, err
	}
	defer s.release(r)
	return s.describe(ctx, r)
}

// List calls f for each bucket, by name. io.EOF from f ends it well.
func (s *Store) List(ctx context.Context, f func(*Info) error) error {
	return s.ListPage(ctx, Page{}, f)
}

// Page chooses which buckets ListPage goes through: those whose names begin with Prefix and come after After.
type Page struct{ Prefix, After string }

// ListPage is List for some of the buckets.
func (s *Store) ListPage(ctx context.Context, p Page, f func(*Info) error) error {
	start := nameKey(max(p.Prefix, p.After))
	if p.After != "" && p.After >= p.Prefix {
		start = append(start, 0)
	}
	err := s.kv.Scan(ctx, kv.Range{Start: start, End: kv.PrefixEnd(nameKey(p.Prefix))}, func(k, v []byte) error {
		d := dec{b: v}
		if err := d.version("name"); err != nil {
			return err
		}
		i, err := s.ByID(ctx, d.ref())
		if errs.Is(err, errs.NotFound) {
			return nil // deleted meanwhile
		}
		if err != nil {
			return err
		}
		return f(i)
	})
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// ForksOf returns the living forks of a bucket, in order of their names.
func (s *Store) ForksOf(ctx context.Context, name string) ([]*Info, error) {
	id, err := s.resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	var kids []agentrun.RefID
	prefix := kvKey(kChild, id[:])
	err = s.kv.Scan(ctx, prefixRange(prefix), func(k, _ []byte) error {
		var kid agentrun.RefID
		copy(kid[:], k[len(prefix):])
		kids = append(kids, kid)
		return nil
	})
	if err != nil {
		return nil, err
	}
	var list []*Info
	for _, kid := range kids {
		i, err := s.ByID(ctx, kid)
		if errs.Is(err, errs.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, i)
	}
	slices.SortFunc(list, func(a, b *Info) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// Update changes a bucket's settings: f edits a copy of Versioning, Snapshots and Attributes; the rest is ignored.
func (s *Store) Update(ctx context.Context, name string, f func(*Info) error) (*Info, error) {
	r, err := s.named(ctx, name)
	if err != nil {
		return nil, err
	}
	defer s.release(r)
	t, err := r.change(func(rec *refRecord) error {
		i := rec.info()
		if err := f(i); err != nil {
			return err
		}
		if i.Versioning == Unversioned && rec.versioning != Unversioned {
			return errs.Msg(errs.Invalid, "update", name, "versioning can only be suspended")
		}
		size := 0
		for k, v := range i.Attributes {
			size += len(k) + len(v)
		}
		if size > 256<<10 {
			return errs.Msg(errs.TooLarge, "update", name, "a bucket's attributes have at most 256 KiB")
		}
		rec.versioning, rec.snapshots, rec.attrs = i.Versioning, i.Snapshots, i.Attributes
		return nil
	})
	if err == nil {
		err = t.wait()
	}
	if err != nil {
		return nil, err
	}
	return s.describe(ctx, r)
}

// change queues a new record of the ref.
func (r *ref) change(f func(*refRecord) error) (*txn, error) {
	r.s.barrier.RLock()
	defer r.s.barrier.RUnlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.ready(); err != nil {
		return nil, err
	}
	rec := r.rec.clone()
	if err := f(rec); err != nil {
		return nil, err
	}
	t := &txn{refs: []*ref{r}}
	t.put(refKey(r.id), rec.encode())
	return t, r.queueRecord(t, rec)
}

// queueRecord queues a transaction that replaces the ref's record. The caller holds mu.
func (r *ref) queueRecord(t *txn, rec *refRecord) error {
	publish := t.publish
	t.publish = func() {
		if publish != nil {
			publish()
		}
		r.stored.Store(rec)
	}
	if err := r.s.commits.enqueue(t); err != nil {
		return err
	}
	r.rec, r.newest = rec, t
	return nil
}

// cutView returns a view of exactly the present tip, making one in t if need be. The caller holds mu, calls cutDone
// once t is queued, and queues t in any case that puts an edge to the view.
func (r *ref) cutView(ctx context.Context, t *txn) (id uint64, depth uint32, err error) {
	if !r.wrote {
		v, err := r.s.readView(ctx, r.rec.view)
		if err != nil {
			return 0, 0, err
		}
		return r.rec.view, v.depth, nil
	}
	if r.cut != 0 && r.cutSeq == r.last {
		return r.cut, 0, nil
	}
	below, err := r.s.readView(ctx, r.rec.view)
	if err != nil {
		return 0, 0, err
	}
	if id, err = r.s.objIDs.next(1); err != nil {
		return 0, 0, err
	}
	v := &viewRecord{parent: r.rec.view, delta: r.rec.delta, bound: r.last, depth: below.depth + 1, objects: r.tip.objects, bytes: r.tip.bytes}
	b, err := v.encode()
	if err != nil {
		return 0, 0, err
	}
	t.put(viewKey(id), b)
	t.put(viewEdge(v.parent, viewHolder(id)), present())
	t.put(deltaEdge(v.delta, viewHolder(id)), present())
	return id, v.depth, nil
}

// cutDone remembers a view of the present tip. The caller holds mu and has queued the transaction that made it.
func (r *ref) cutDone(view uint64) {
	if !r.wrote || view == r.cut {
		return
	}
	r.forgetCut()
	r.s.pins.add(pin{kView, view})
	r.cut, r.cutSeq = view, r.last
}

func (r *ref) forgetCut() {
	if r.cut != 0 {
		r.s.pins.drop([]pin{{kView, r.cut}})
		r.cut, r.cutSeq = 0, 0
	}
}

// Fork makes a bucket that starts as base is now, or was at o.At. O(1); durable when it returns.
func (s *Store) Fork(ctx context.Context, base, name string, o ForkOptions) (*Info, error) {
	done, err := s.reserve(ctx, name)
	if err != nil {
		return nil, err
	}
	defer done()
	r, err := s.named(ctx, base)
	if err != nil {
		return nil, err
	}
	defer s.release(r)
	var t *txn
	var child *ref
	var depth uint32
	for again := true; again; {
		if t, child, depth, again, err = s.tryFork(ctx, r, name, o); err != nil {
			return nil, err
		}
	}
	// Others find it from now on, and may change it.
	rec, st := child.rec, child.tip
	err = t.wait()
	s.born(child, err)
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		s.folds.view(rec.view)
	}
	i := rec.info()
	i.Objects, i.Bytes, i.Version = uint64(st.objects), uint64(st.bytes), agentrun.Version(rec.since)
	return i, nil
}

// tryFork is Fork; again means that the state to fork from was the present one and has become the past meanwhile.
func (s *Store) tryFork(ctx context.Context, r *ref, name string, o ForkOptions) (t *txn, child *ref, depth uint32, again bool, err error) {
	var past *pastView
	if o.At != 0 {
		if past, err = s.viewAt(ctx, r, o.At); err != nil {
			return nil, nil, 0, false, err
		}
		defer past.release()
	}
	s.barrier.RLock()
	defer s.barrier.RUnlock()
	t, child, depth, err = s.fork(ctx, r, past, name, o)
	if errors.Is(err, errMoved) {
		return nil, nil, 0, true, nil
	}
	if err == nil && past != nil && !past.current {
		_ = t.wait() // past's pins keep what the new view is built on; the caller sees the error
	}
	return t, child, depth, false, err
}

var errMoved = errors.New("written since")

// fork queues the making of a fork under the parent's lock.
func (s *Store) fork(ctx context.Context, r *ref, past *pastView, name string, o ForkOptions) (*txn, *ref, uint32, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.ready(); err != nil {
		return nil, nil, 0, err
	}
	if past != nil && past.current && r.tip.seq > uint64(o.At) {
		if r.newest != nil {
			_ = r.newest.wait() // its own caller sees the error
		}
		return nil, nil, 0, errMoved
	}
	t := &txn{refs: []*ref{r}}
	st, at := r.tip, max(r.last, r.rec.since)
	var view uint64
	var depth uint32
	var err error
	if past != nil && !past.current {
		st, at = past.st, uint64(o.At)
		view, depth, err = past.cut(ctx, t)
	} else {
		view, depth, err = r.cutView(ctx, t)
	}
	if err != nil {
		return nil, nil, 0, err
	}
	rec := &refRecord{name: name, view: view, versioning: r.rec.versioning, snapshots: r.rec.snapshots, attrs: maps.Clone(o.Attributes)}
	if o.Attributes == nil {
		rec.attrs = maps.Clone(r.rec.attrs)
	}
	rec.origin = &originRecord{ref: r.id, name: r.rec.name, view: view, at: at, time: s.clock.now().UTC()}
	if err := s.addRef(t, rec); err != nil {
		return nil, nil, 0, err
	}
	t.put(viewEdge(view, holder(heldByOrigin, rec.id)), present())
	t.put(childKey(r.id, rec.id), present())
	child := s.unborn(rec, st)
	if err := s.commits.enqueue(t); err != nil {
		s.born(child, err)
		return nil, nil, 0, err
	}
	r.newest = t
	if past == nil || past.current {
		r.cutDone(view)
	}
	return t, child, depth, nil
}

// unborn puts a fork whose state is known into memory before it is stored. Whoever finds it by name waits until born
// says what became of it: so it can't be deleted, or loaded twice, in between.
func (s *Store) unborn(rec *refRecord, st *snap) *ref {
	child := s.newRef(rec.id)
	child.rec, child.last = rec, rec.since
	child.tip = &newTip(st).snap
	child.tip.base = st.base.with(pin{kView, rec.view}, pin{kDelta, rec.delta})
	child.tip.seq = rec.since
	child.pub.Store(child.tip)
	child.stored.Store(rec)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tick++
	child.used, child.users = s.tick, 1
	s.refs[child.id] = child
	return child
}

// born ends the wait for a fork: it is stored, or failed to be.
func (s *Store) born(child *ref, err error) {
	s.mu.Lock()
	if err != nil {
		child.err, child.left = err, true
		delete(s.refs, child.id)
	}
	many := len(s.refs) > 2*s.maxOpen
	s.mu.Unlock()
	close(child.loaded)
	s.release(child)
	if many {
		s.evict()
	}
}

func (s *Store) newRef(id agentrun.RefID) *ref {
	r := &ref{s: s, id: id, loaded: make(chan struct{})}
	r.rooms.L = &r.mu
	return r
}

// Delete deletes a bucket with its snapshots, history and uploads, and gives back what only it held. Its forks live on.
// Without o.Force, a bucket that holds objects or versions is errs.NotEmpty.
func (s *Store) Delete(ctx context.Context, name string, o DeleteOptions) error {
	r, err := s.named(ctx, name)
	if err != nil {
		return err
	}
	defer s.release(r)
	if err := s.deleteOne(ctx, r, o.Force); err != nil {
		return err
	}
	s.forgetRef(r)
	s.ledger.poke()
	return nil
}

// errAncestor says that a deletion concerns an ancestor that others have, too.
var errAncestor = errors.New("the deletion wants s.deletes to itself")

// deleteOne deletes a ref. Most have no forks, and come from one that lives, if from any: those deletions share s.deletes.
func (s *Store) deleteOne(ctx context.Context, r *ref, force bool) error {
	s.deletes.RLock()
	err := s.deleteLocked(ctx, r, force, false)
	s.deletes.RUnlock()
	if err != errAncestor {
		return err
	}
	s.deletes.Lock()
	defer s.deletes.Unlock()
	return s.deleteLocked(ctx, r, force, true)
}

func (s *Store) deleteLocked(ctx context.Context, r *ref, force, alone bool) error {
	s.barrier.RLock()
	defer s.barrier.RUnlock()
	r.uploads.Lock() // what an upload has begun to commit must be seen
	t, err := s.deleteRef(ctx, r, force, alone)
	r.uploads.Unlock()
	if err != nil {
		return err
	}
	return t.wait()
}

// forgetRef removes a deleted ref from memory; whoever still uses it finds it gone.
func (s *Store) forgetRef(r *ref) {
	s.mu.Lock()
	if s.refs[r.id] == r {
		delete(s.refs, r.id)
		r.left = true // the caller uses it still
	}
	s.mu.Unlock()
	s.past.purge(r.id)
}

func (s *Store) deleteRef(ctx context.Context, r *ref, force, alone bool) (*txn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.ready(); err != nil {
		return nil, err
	}
	if !force {
		if err := r.empty(ctx); err != nil {
			return nil, err
		}
	}
	t := &txn{refs: []*ref{r}}
	// Whatever is queued must be in kv before it is scanned for what to delete.
	if r.newest != nil {
		if err := r.newest.wait(); err != nil {
			return nil, err
		}
	}
	forks, err := s.hasForks(ctx, r.id)
	if err == nil && !alone {
		err = s.apart(ctx, r.rec, forks)
	}
	if err != nil {
		return nil, err
	}
	if err := s.unhold(ctx, t, r.rec); err != nil {
		return nil, err
	}
	t.del(nameKey(r.rec.name))
	if forks {
		rec := r.rec.clone()
		rec.gone, rec.attrs = true, nil
		t.put(refKey(r.id), rec.encode())
	} else if err := s.unroot(ctx, t, r.rec); err != nil {
		return nil, err
	}
	if err := s.commits.enqueue(t); err != nil {
		return nil, err
	}
	r.gone, r.newest = true, t
	return t, nil
}

// apart returns errAncestor unless the deletion of a ref leaves its ancestors alone, and no ancestor to its forks.
func (s *Store) apart(ctx context.Context, rec *refRecord, forks bool) error {
	if forks {
		return errAncestor
	}
	if rec.origin == nil {
		return nil
	}
	parent, err := s.readRef(ctx, rec.origin.ref)
	switch {
	case errs.Is(err, errs.NotFound):
		return nil
	case err == nil && parent.gone:
		return errAncestor
	}
	return err
}

// empty returns errs.NotEmpty unless the ref holds no object and no version.
func (r *ref) empty(ctx context.Context) error {
	for _, plane := range []string{"o", "v"} {
		c := r.tip.scan(plane, stringEnd(plane))
		if c.next(ctx) {
			return errs.Msg(errs.NotEmpty, "delete", r.rec.name, "the bucket isn't empty").WithHint("agentrun buckets delete " + r.rec.name + " --force")
		}
		if c.err != nil {
			return c.err
		}
	}
	return nil
}

// unhold removes what a living ref holds: its view and delta, snapshots, history and uploads.
func (s *Store) unhold(ctx context.Context, t *txn, rec *refRecord) error {
	h := holder(heldByRef, rec.id)
	if err := s.dropEdges(t, rec.view, rec.delta, h); err != nil {
		return err
	}
	err := s.kv.Scan(ctx, prefixRange(kvKey(kSnap, rec.id[:])), func(k, v []byte) error {
		sn, err := decodeSnap(v)
		if err != nil {
			return err
		}
		t.del(append([]byte(nil), k...))
		return s.dropEdges(t, sn.view, 0, holder(heldBySnap, rec.id, k[len(k)-8:]))
	})
	if err != nil {
		return err
	}
	err = s.kv.Scan(ctx, prefixRange(kvKey(kHist, rec.id[:])), func(k, v []byte) error {
		hist, err := decodeHist(v)
		if err != nil {
			return err
		}
		t.del(append([]byte(nil), k...))
		return s.dropEdges(t, hist.view, hist.delta, holder(heldByHistory, rec.id, k[len(k)-8:]))
	})
	if err != nil {
		return err
	}
	return s.dropUploads(ctx, t, rec.id)
}

// dropEdges removes a holder's edges to a view and, unless it is 0, a delta, and tells the ledger.
func (s *Store) dropEdges(t *txn, view, delta uint64, h []byte) error {
	if view != 0 {
		t.del(viewEdge(view, h))
		if err := t.event(s, event{kind: viewLoose, a: view}); err != nil {
			return err
		}
	}
	if delta != 0 {
		t.del(deltaEdge(delta, h))
		return t.event(s, event{kind: deltaLoose, a: delta})
	}
	return nil
}

// unroot removes a ref's record and place in the lineage, and those of deleted ancestors that it alone kept.
func (s *Store) unroot(ctx context.Context, t *txn, rec *refRecord) error {
	for {
		t.del(refKey(rec.id))
		for other, m := range rec.merges {
			if err := s.dropEdges(t, m.view, 0, holder(heldByMerge, rec.id, other[:])); err != nil {
				return err
			}
		}
		o := rec.origin
		if o == nil {
			return nil
		}
		if err := s.dropEdges(t, o.view, 0, holder(heldByOrigin, rec.id)); err != nil {
			return err
		}
		t.del(childKey(o.ref, rec.id))
		parent, err := s.readRef(ctx, o.ref)
		if errs.Is(err, errs.NotFound) {
			return nil
		}
		if err != nil || !parent.gone {
			return err
		}
		others := false
		prefix := kvKey(kChild, o.ref[:])
		err = s.kv.Scan(ctx, prefixRange(prefix), func(k, _ []byte) error {
			if string(k[len(prefix):]) != string(rec.id[:]) {
				others = true
				return kv.Stop
			}
			return nil
		})
		if err != nil || others {
			return err
		}
		rec = parent
	}
}

// expire removes what is due: snapshots, history beyond the window, and finished or abandoned uploads.
func (s *Store) expire(ctx context.Context) error {
	if err := s.retryUnfinished(ctx); err != nil {
		return err
	}
	now := s.clock.now()
	type due struct {
		ref agentrun.RefID
		v   uint64
	}
	var snaps []due
	err := s.kv.Scan(ctx, prefixRange(kvKey(kSnap)), func(k, v []byte) error {
		sn, err := decodeSnap(v)
		if err == nil && !sn.expires.IsZero() && !sn.expires.After(now) {
			d := due{v: beUint(k[len(k)-8:])}
			copy(d.ref[:], k[2:])
			snaps = append(snaps, d)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, d := range snaps {
		if err := s.deleteSnapshot(ctx, d.ref, d.v); err != nil && !errs.Is(err, errs.NotFound) {
			return err
		}
	}
	if err := s.expireHistory(ctx, now); err != nil {
		return err
	}
	s.past.expire(now)
	return s.expireUploads(ctx, now)
}

func (s *Store) expireHistory(ctx context.Context, now time.Time) error {
	keep := uint64(now.Add(-max(s.history, 0)).UnixNano())
	t := &txn{batch: kv.Batch{Reclaim: true}, lazy: true}
	err := s.kv.Scan(ctx, prefixRange(kvKey(kHist)), func(k, v []byte) error {
		h, err := decodeHist(v)
		if err != nil || h.end >= keep {
			return err
		}
		var id agentrun.RefID
		copy(id[:], k[2:])
		t.del(append([]byte(nil), k...))
		if err := s.dropEdges(t, h.view, h.delta, holder(heldByHistory, id, k[len(k)-8:])); err != nil {
			return err
		}
		if len(t.batch.Deletes) > 10_000 {
			return kv.Stop // the rest is for the next round
		}
		return nil
	})
	if err != nil || len(t.batch.Deletes) == 0 {
		return err
	}
	s.barrier.RLock()
	err = s.commits.commit(t)
	s.barrier.RUnlock()
	s.ledger.poke()
	return err
}
