package bucket

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"agentrun.dev"
	"agentrun.dev/bucket/tree"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

// ref is a living bucket in memory: its sequencer. Changes are checked and ordered under mu, on the tip, which runs
// ahead of what is durable; readers see pub, which follows what is durable.
type ref struct {
	s  *Store
	id agentrun.RefID

	mu     sync.Mutex
	rec    *refRecord
	tip    *snap
	next   *tip   // what was written since a fold began, over nothing; nil if none is under way
	wrote  bool   // the active delta holds something
	last   uint64 // the last version given out for this ref
	cutSeq uint64 // a view of exactly the tip at this version exists: cutView
	cut    uint64
	newest *txn // the last that was queued
	gone   bool

	rooms sync.Cond // on mu: signalled when a fold ends
	fold  bool      // a fold is under way or waiting for one

	uploads sync.Mutex // taken before mu: one change of uploads at a time

	pub    atomic.Pointer[snap]
	stored atomic.Pointer[refRecord] // the record as it is durable
	poison error                     // guarded by the committer's mu

	// Guarded by the store's mu.
	users  int
	used   uint64
	left   bool          // no longer in refs: whoever uses it last lets go of its state
	loaded chan struct{} // closed when loading is done
	err    error
}

// acquire returns a ref for use, loading it if it isn't in memory. The caller releases it.
func (s *Store) acquire(ctx context.Context, id agentrun.RefID) (*ref, error) {
	s.mu.Lock()
	r, ok := s.refs[id]
	if !ok {
		r = s.newRef(id)
		s.refs[id] = r
	}
	s.tick++
	r.users++
	r.used = s.tick
	s.mu.Unlock()
	if !ok {
		// Others wait for this: a caller that gives up must not fail them.
		err := r.load(context.WithoutCancel(ctx))
		s.mu.Lock()
		if r.err = err; err != nil {
			delete(s.refs, id)
		}
		s.mu.Unlock()
		close(r.loaded)
	}
	<-r.loaded
	if r.err != nil {
		s.release(r)
		return nil, r.err
	}
	return r, nil
}

func (s *Store) release(r *ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.users--; r.users == 0 && r.left {
		r.letGo()
	}
}

// letGo gives up what the ref holds in memory. Nobody uses it, so nobody holds its mu.
func (r *ref) letGo() {
	r.forgetCut()
	r.pub.Load().base.release()
}

// named acquires a living bucket by name.
func (s *Store) named(ctx context.Context, name string) (*ref, error) {
	id, err := s.resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	r, err := s.acquire(ctx, id)
	if errs.Is(err, errs.NotFound) {
		err = noBucket(name)
	}
	return r, err
}

func (s *Store) readRef(ctx context.Context, id agentrun.RefID) (*refRecord, error) {
	b, err := s.kv.Get(ctx, refKey(id))
	if errs.Is(err, errs.NotFound) {
		return nil, noBucket(id.String())
	}
	if err != nil {
		return nil, err
	}
	return decodeRef(b)
}

func (s *Store) readView(ctx context.Context, id uint64) (*viewRecord, error) {
	b, err := s.kv.Get(ctx, viewKey(id))
	if err != nil {
		return nil, err
	}
	return decodeView(b)
}

// load reads the ref's state from kv.
func (r *ref) load(ctx context.Context) error {
	rec, err := r.s.readRef(ctx, r.id)
	if err != nil {
		return err
	}
	if rec.gone {
		return noBucket(rec.name)
	}
	st, err := r.s.state(ctx, rec.view, rec.delta, ^uint64(0))
	if err != nil {
		return err
	}
	r.adopt(rec, st)
	if r.wrote, err = r.hasLog(ctx); err != nil {
		st.base.release()
	}
	return err
}

// hasLog reports whether the active delta holds anything.
func (r *ref) hasLog(ctx context.Context) (yes bool, err error) {
	err = r.s.kv.Scan(ctx, prefixRange(kvKey(kDelta, be64(r.rec.delta))), func(_, _ []byte) error {
		yes = true
		return kv.Stop
	})
	return yes, err
}

// adopt makes a state the ref's own. It takes over the state's hold of its base.
func (r *ref) adopt(rec *refRecord, st *snap) {
	st.seq = max(st.seq, rec.since) // an empty delta says nothing of how far the state goes
	r.rec, r.tip = rec, st
	r.last = max(r.last, st.seq)
	r.pub.Store(st)
	r.stored.Store(rec)
}

// state builds the state of a view and, if delta isn't 0, the log over it up to a version. The caller releases its base.
func (s *Store) state(ctx context.Context, view, delta, bound uint64) (*snap, error) {
	type layer struct{ delta, bound uint64 }
	var layers []layer
	var held []pin
	hold := func(p pin) { s.pins.add(p); held = append(held, p) }
	fail := func(err error) (*snap, error) {
		s.pins.drop(held)
		return nil, err
	}
	if delta != 0 {
		hold(pin{kDelta, delta})
		layers = append(layers, layer{delta, bound})
	}
	hold(pin{kView, view})
	v, err := s.readView(ctx, view)
	for {
		if err != nil {
			if errs.Is(err, errs.NotFound) {
				err = errs.Msg(errs.NotFound, "view", "", "no longer kept")
			}
			return fail(err)
		}
		if v.delta == 0 {
			break
		}
		// A fold may replace this very representation and let go of what it names: pin, then look again.
		hold(pin{kView, v.parent})
		hold(pin{kDelta, v.delta})
		again, err2 := s.readView(ctx, view)
		if err2 == nil && again.delta == v.delta && again.parent == v.parent {
			layers = append(layers, layer{v.delta, v.bound})
			view = v.parent
			v, err = s.readView(ctx, view)
			continue
		}
		v, err = again, err2
	}
	t := emptyTip(newBase(s, v.root, held), 0)
	t.objects, t.bytes = v.objects, v.bytes
	for i := len(layers) - 1; i >= 0; i-- {
		if err := s.replay(ctx, t, layers[i].delta, layers[i].bound); err != nil {
			t.base.release()
			return nil, err
		}
	}
	return &t.snap, nil
}

// replay applies a log to a tip, up to a version.
func (s *Store) replay(ctx context.Context, t *tip, delta, bound uint64) error {
	end := kv.PrefixEnd(kvKey(kDelta, be64(delta)))
	if bound != ^uint64(0) {
		end = logKey(logLoc{delta, bound + 1, 0})
	}
	return s.kv.Scan(ctx, kv.Range{Start: kvKey(kDelta, be64(delta)), End: end}, func(k, v []byte) error {
		l, err := decodeLog(v)
		if err != nil {
			return err
		}
		t.apply(&l, parseLogKey(k))
		return nil
	})
}

// apply makes one logged change. The record's slices are copied.
func (t *tip) apply(l *logRecord, loc logLoc) {
	switch l.op {
	case logPut:
		t.set(&entry{key: l.key, val: append(make([]byte, 0, len(l.val)), l.val...), loc: loc})
	case logDelete:
		t.set(&entry{key: l.key, loc: loc})
	case logRange:
		t.deleteRange(l.key, l.end)
	}
	t.objects += l.objects
	t.bytes += l.bytes
	t.seq = max(t.seq, loc.seq)
}

// recover takes the tip back to what is durable after a commit failed. The caller holds mu. A fold that is under way
// finds its own tip gone and reloads the ref.
func (r *ref) recover() {
	if r.s.commits.poisoned(r) == nil {
		return
	}
	p := r.pub.Load()
	r.tip, r.rec, r.gone = p, r.stored.Load(), false
	r.next, r.newest = nil, nil
	r.last = p.seq
	r.forgetCut()
	r.wrote = true // perhaps not, but then a cut costs a view more
}

// quiesce waits until nothing of the ref is queued, taking the tip back if a commit fails. The caller holds mu.
func (r *ref) quiesce() {
	for r.recover(); r.newest != nil && r.newest.wait() != nil; {
		r.recover()
	}
}

// reload reads the whole state anew, when memory and records may disagree. The caller holds mu and nothing is queued.
func (r *ref) reload(ctx context.Context) error {
	rec, err := r.s.readRef(ctx, r.id)
	if err != nil {
		return err
	}
	st, err := r.s.state(ctx, rec.view, rec.delta, ^uint64(0))
	if err != nil {
		return err
	}
	old := r.tip.base
	r.adopt(rec, st)
	r.forgetCut()
	r.next, r.wrote = nil, true
	old.release()
	return nil
}

// snapshot returns the durable state, with a hold on its base that the caller releases.
func (r *ref) snapshot() *snap {
	for {
		if p := r.pub.Load(); p.base.tryHold() {
			return p
		}
	}
}

// evict drops idle buckets from memory beyond the number to keep, least recently used first, and those that read
// through a view that a fold has replaced since.
func (s *Store) evict() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var idle []*ref
	for _, r := range s.refs {
		if r.users > 0 {
			continue
		}
		if r.stale(s.folded) {
			s.drop(r)
			continue
		}
		idle = append(idle, r)
	}
	clear(s.folded)
	if n := len(s.refs) - s.maxOpen; n > 0 {
		slices.SortFunc(idle, func(a, b *ref) int { return cmp.Compare(a.used, b.used) })
		for _, r := range idle[:min(n, len(idle))] {
			s.drop(r)
		}
	}
}

// stale reports whether the view that the ref is written over has become a tree since it was loaded. Nobody uses the
// ref, so nobody changes it.
func (r *ref) stale(folded map[uint64]tree.ID) bool {
	root, ok := folded[r.rec.view]
	return ok && r.pub.Load().base.root.ID != root
}

// drop forgets a ref that nobody uses. The caller holds the store's mu.
func (s *Store) drop(r *ref) {
	delete(s.refs, r.id)
	r.letGo()
}
