package bucket

import (
	"context"
	"slices"

	"agentrun.dev/bucket/segment"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

// Usage says what a bucket takes. Objects and Bytes are O(1); Unique, what deleting the bucket would give back, costs
// what the bucket alone holds: it is that deletion, carried out on paper.
func (s *Store) Usage(ctx context.Context, name string) (*Usage, error) {
	r, err := s.named(ctx, name)
	if err != nil {
		return nil, err
	}
	defer s.release(r)
	if err := r.forgetPast(ctx); err != nil {
		return nil, err
	}
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	if _, err := s.ledger.settleLocked(ctx); err != nil {
		return nil, err
	}
	st := r.snapshot()
	defer st.base.release()
	rec := r.stored.Load()
	u := &Usage{Objects: uint64(st.objects), Bytes: uint64(st.bytes)}
	t := &txn{}
	if err := s.unhold(ctx, t, rec); err != nil {
		return nil, err
	}
	if forks, err := s.hasForks(ctx, r.id); err != nil {
		return nil, err
	} else if !forks {
		if err := s.unroot(ctx, t, rec); err != nil {
			return nil, err
		}
	}
	gone := &step{l: &s.ledger, books: s.openBooks(), cut: make(map[string]bool), dry: true}
	for _, k := range t.batch.Deletes {
		gone.cut[string(k)] = true
	}
	for _, p := range t.batch.Puts {
		if p.Key[1] != kEvent {
			continue
		}
		ev, err := decodeEvent(p.Value)
		if err != nil {
			return nil, err
		}
		gone.todo = append(gone.todo, ev)
	}
	for len(gone.todo) > 0 {
		ev := gone.todo[len(gone.todo)-1]
		gone.todo = gone.todo[:len(gone.todo)-1]
		if err := gone.do(ctx, ev); err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	for _, ref := range gone.free {
		n, err := s.segments.Size(ctx, ref)
		if err != nil && !errs.Is(err, errs.NotFound) {
			return nil, err
		}
		u.Unique += uint64(n)
	}
	u.Unique += gone.bytes + ownLogged(st, rec.delta)
	u.Metadata = gone.nodes + uint64(st.meta)
	if u.Bytes > u.Unique {
		u.Shared = u.Bytes - u.Unique
	}
	return u, nil
}

// forgetPast makes memory hold no more of the past than the ref's records do. What only a state in memory keeps from being
// collected would go with the bucket, and yet isn't what the bucket takes.
func (r *ref) forgetPast(ctx context.Context) error {
	r.s.past.purge(r.id)
	r.mu.Lock()
	stale := !r.fold && (len(r.tip.base.pins) > 2 || !slices.Contains(r.tip.base.pins, pin{kView, r.rec.view}))
	r.mu.Unlock()
	if !stale {
		return nil
	}
	return r.refresh(ctx)
}

// ownLogged is the payload of a state's objects that lies in one delta's log.
func ownLogged(st *snap, delta uint64) (n uint64) {
	st.idx.Scan(func(e *entry) bool {
		if e.loc.delta == delta && e.val != nil && (e.key[0] == planeObject || e.key[0] == planeVersion) {
			n += recordBytes(e.val)
		}
		return true
	})
	return n
}

// recordBytes is how many bytes of payload a record carries itself, or leaves to its log record.
func recordBytes(val []byte) uint64 {
	o, _, err := decodeObject("", val)
	if err != nil || !o.data.logged && o.data.inline == nil {
		return 0
	}
	return uint64(o.Size)
}

// GC does now what otherwise happens in the background: it ends what is due, collects what nothing holds, and gives the
// room of dead payload back to the disk.
func (s *Store) GC(ctx context.Context) (*GCResult, error) {
	if err := s.expire(ctx); err != nil {
		return nil, err
	}
	res, err := s.ledger.settle(ctx)
	if err != nil {
		return nil, err
	}
	_, err = s.segments.Compact(ctx, compactAt)
	return &res, err
}

// compactAt is the share of dead bytes from which on a segment is rewritten.
const compactAt = 0.3

// sweep frees the slots that a crash left without a holder: staged, but never published. It goes through the segments
// that existed when the store was opened; what is staged since is in newer ones.
func (s *Store) sweep(ctx context.Context, from, to uint64) error {
	s.ledger.mu.Lock()
	_, err := s.ledger.settleLocked(ctx)
	s.ledger.mu.Unlock()
	if err != nil {
		return err
	}
	list, err := s.segments.Segments(ctx)
	if err != nil {
		return err
	}
	for _, seg := range list {
		if seg.ID < from || seg.ID > to {
			continue
		}
		var orphans []segment.Ref
		s.ledger.mu.Lock()
		books := s.openBooks()
		err := s.segments.Slots(ctx, seg.ID, func(slot uint32, _ int64) error {
			ref := segment.Ref{Segment: seg.ID, Slot: slot}
			g, i := slotGroup(ref)
			c, err := books.group(ctx, g)
			if err == nil && c[i] == 0 {
				orphans = append(orphans, ref)
			}
			return err
		})
		s.ledger.mu.Unlock()
		if err != nil {
			return err
		}
		if len(orphans) > 0 {
			if err := s.segments.Free(ctx, orphans); err != nil {
				return err
			}
		}
	}
	return nil
}

// openMark notes from which segment on a crash may leave orphans, and returns the range to sweep if there was one.
func (s *Store) openMark(ctx context.Context) (from, to uint64, crashed bool, err error) {
	list, err := s.segments.Segments(ctx)
	if err != nil {
		return 0, 0, false, err
	}
	for _, seg := range list {
		to = max(to, seg.ID)
	}
	b, err := s.kv.Get(ctx, kvKey(kIDs, []byte{'g'}))
	if err == nil {
		d := dec{b: b}
		if err := d.version("mark"); err != nil {
			return 0, 0, false, err
		}
		from, crashed = d.u(), !d.bool()
	} else if !errs.Is(err, errs.NotFound) {
		return 0, 0, false, err
	}
	if !crashed {
		from = to
	}
	return from, to, crashed, s.mark(from, false)
}

// mark notes that segments beyond one may hold orphans, unless the store was closed cleanly.
func (s *Store) mark(segment uint64, clean bool) error {
	e := enc{b: present()}
	e.u(segment)
	e.bool(clean)
	var b kv.Batch
	b.Reclaim = true
	b.Put(kvKey(kIDs, []byte{'g'}), e.b)
	return s.kv.Commit(context.Background(), &b)
}
