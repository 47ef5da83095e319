package bucket

import (
	"context"
	"slices"
	"sync"
	"time"

	"agentrun.dev"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

// pastView is a state of a bucket's past, and how it is stored: as a view if delta is 0, else as a view and the delta
// over it up to bound.
type pastView struct {
	s                  *Store
	st                 *snap // with a hold on its base
	view, delta, bound uint64
	current            bool // it is the present state
}

func (p *pastView) release() { p.st.base.release() }

// cut makes a view of a past state in t. The state's pins keep what it is built on until t has been committed.
func (p *pastView) cut(ctx context.Context, t *txn) (id uint64, depth uint32, err error) {
	below, err := p.s.readView(ctx, p.view)
	if err != nil {
		return 0, 0, err
	}
	if p.delta == 0 {
		return p.view, below.depth, nil
	}
	if id, err = p.s.objIDs.next(1); err != nil {
		return 0, 0, err
	}
	v := &viewRecord{parent: p.view, delta: p.delta, bound: p.bound, depth: below.depth + 1, objects: p.st.objects, bytes: p.st.bytes}
	b, err := v.encode()
	if err != nil {
		return 0, 0, err
	}
	t.put(viewKey(id), b)
	t.put(viewEdge(v.parent, viewHolder(id)), present())
	t.put(deltaEdge(v.delta, viewHolder(id)), present())
	return id, v.depth, nil
}

// viewAt finds the state of a bucket at a version: the present one, a snapshot, or one within its history. The caller
// releases it.
func (s *Store) viewAt(ctx context.Context, r *ref, at agentrun.Version) (*pastView, error) {
	if uint64(at) > s.clock.present() {
		return nil, errs.Msg(errs.Invalid, "view", at.String(), "that time is yet to come")
	}
	if st := r.snapshot(); st.seq <= uint64(at) && uint64(at) >= r.record().since {
		return &pastView{s: s, st: st, current: true}, nil
	} else {
		st.base.release()
	}
	gone := errs.Msg(errs.NotFound, "view", r.record().name+"@"+at.String(), "no snapshot, and not within the history that is kept").
		WithHint("agentrun snapshots list " + r.record().name)
	if o := r.record().origin; o != nil && o.at == uint64(at) { // what the bucket was forked from: its own first state
		st, err := s.state(ctx, o.view, 0, 0)
		if errs.Is(err, errs.NotFound) {
			return nil, gone
		}
		if err != nil {
			return nil, err
		}
		st.seq = uint64(at)
		// Pinned now; was the bucket, which holds the view, still there?
		if _, err := s.readRef(ctx, r.id); err != nil {
			st.base.release()
			return nil, gone
		}
		return &pastView{s: s, st: st, view: o.view}, nil
	}
	b, err := s.kv.Get(ctx, snapKey(r.id, uint64(at)))
	if err == nil {
		sn, err := decodeSnap(b)
		if err != nil {
			return nil, err
		}
		st, err := s.state(ctx, sn.view, 0, 0)
		if errs.Is(err, errs.NotFound) {
			return nil, gone
		}
		if err != nil {
			return nil, err
		}
		st.seq = uint64(at)
		// Pinned now; was the snapshot still there?
		if _, err := s.kv.Get(ctx, snapKey(r.id, uint64(at))); err != nil {
			st.base.release()
			return nil, gone
		}
		return &pastView{s: s, st: st, view: sn.view}, nil
	}
	if !errs.Is(err, errs.NotFound) {
		return nil, err
	}
	for range 100 { // the record may be replaced by a fold between reading and pinning it
		view, delta, ok, err := s.storedAt(ctx, r, at)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, gone
		}
		st, err := s.state(ctx, view, delta, uint64(at))
		if errs.Is(err, errs.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if v2, d2, ok, err := s.storedAt(ctx, r, at); err == nil && ok && v2 == view && d2 == delta {
			return &pastView{s: s, st: st, view: view, delta: delta, bound: uint64(at)}, nil
		}
		st.base.release()
	}
	return nil, gone
}

// storedAt says how a bucket was stored at a version.
func (s *Store) storedAt(ctx context.Context, r *ref, at agentrun.Version) (view, delta uint64, ok bool, err error) {
	rec, err := s.readRef(ctx, r.id)
	if err != nil {
		return 0, 0, false, err
	}
	if uint64(at) >= rec.since {
		return rec.view, rec.delta, true, nil
	}
	prefix := kvKey(kHist, r.id[:])
	err = s.kv.Scan(ctx, kv.Range{Start: prefix, End: histKey(r.id, uint64(at)+1), Reverse: true}, func(_, v []byte) error {
		h, err := decodeHist(v)
		if err != nil {
			return err
		}
		view, delta, ok = h.view, h.delta, uint64(at) < h.end
		return kv.Stop
	})
	return view, delta, ok, err
}

// pastCache keeps the states of the past that were read last, because building one means replaying a log.
type pastCache struct {
	mu   sync.Mutex
	list []*pastEntry // most recently used last
}

type pastEntry struct {
	ref  agentrun.RefID
	at   agentrun.Version
	st   *snap
	used time.Time
}

// Bounds of the cache; what it keeps can't be collected.
const (
	maxPast  = 64
	idlePast = 30 * time.Second
)

// stateAt is viewAt for reading. The caller releases the state's base.
func (s *Store) stateAt(ctx context.Context, r *ref, at agentrun.Version) (*snap, error) {
	if st := s.past.get(r.id, at, s.clock.now()); st != nil {
		return st, nil
	}
	p, err := s.viewAt(ctx, r, at)
	if err != nil {
		return nil, err
	}
	if !p.current {
		s.past.put(&pastEntry{r.id, at, p.st, s.clock.now()})
	}
	return p.st, nil
}

func (c *pastCache) get(id agentrun.RefID, at agentrun.Version, now time.Time) *snap {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.list, func(e *pastEntry) bool { return e.ref == id && e.at == at })
	if i < 0 {
		return nil
	}
	e := c.list[i]
	c.list = append(slices.Delete(c.list, i, i+1), e)
	e.used = now
	e.st.base.hold()
	return e.st
}

func (c *pastCache) put(e *pastEntry) {
	e.st.base.hold()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, e)
	if len(c.list) > maxPast {
		c.list[0].st.base.release()
		c.list = slices.Delete(c.list, 0, 1)
	}
}

func (c *pastCache) expire(now time.Time) {
	c.drop(func(e *pastEntry) bool { return now.Sub(e.used) > idlePast })
}

// purge forgets one bucket's past.
func (c *pastCache) purge(id agentrun.RefID) { c.drop(func(e *pastEntry) bool { return e.ref == id }) }

func (c *pastCache) drop(which func(*pastEntry) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = slices.DeleteFunc(c.list, func(e *pastEntry) bool {
		if which(e) {
			e.st.base.release()
			return true
		}
		return false
	})
}
