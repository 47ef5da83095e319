package segment

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"agentrun.dev/blob"
	"agentrun.dev/errs"
)

// Free says that slots are garbage. Their whole pages are given back to the disk where it can punch holes, and a
// segment of which all slots are dead is removed. Slots that are dead already, and such as never were, are ignored:
// whoever isn't sure may free again. After a crash some of what was freed may count as live once more.
func (s *Set) Free(ctx context.Context, refs []Ref) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.closed.Load() {
		return s.usable("free")
	}
	sorted := slices.Clone(refs)
	slices.SortFunc(sorted, func(a, b Ref) int {
		return cmp.Or(cmp.Compare(a.Segment, b.Segment), cmp.Compare(a.Slot, b.Slot))
	})
	var touched []*seg
	var failed error
	for len(sorted) > 0 {
		n := 1
		for n < len(sorted) && sorted[n].Segment == sorted[0].Segment {
			n++
		}
		g := s.seg(sorted[0].Segment)
		if g != nil {
			hit, err := s.kill(ctx, g, sorted[:n])
			failed = errors.Join(failed, err)
			if hit {
				touched = append(touched, g)
			}
		}
		sorted = sorted[n:]
	}
	if len(touched) == 0 {
		return failed
	}
	// The log comes before the holes, so that no slot that counts as live after a crash has one. Only on a full disk it
	// is the other way round: there the holes make the room for the log.
	logErr := s.log.sync()
	for _, g := range touched {
		if logErr == nil || errs.Is(logErr, errs.NoSpace) {
			failed = errors.Join(failed, s.reclaim(ctx, g))
		}
	}
	if logErr != nil {
		logErr = s.checkpoint(ctx)
		if errs.Is(logErr, errs.NoSpace) {
			logErr = nil // what the log lacks is only leaked, and only if a crash comes before the next checkpoint
		}
	}
	return errors.Join(failed, logErr, s.trimLog(ctx))
}

// kill marks slots of one segment dead. hit reports that there were such.
func (s *Set) kill(ctx context.Context, g *seg, refs []Ref) (hit bool, err error) {
	for {
		g.mu.RLock()
		p, entries, st := place{head: g.head, name: g.name}, g.entries, g.state
		g.mu.RUnlock()
		if st == damaged || st == removed {
			return false, nil
		}
		if entries == nil {
			if entries, err = s.table(ctx, g, p.head, p.name); err == errMoved { //nolint:errorlint // it is never wrapped
				continue
			} else if err != nil {
				return false, err
			}
		}
		rec, moved := g.mark(p.head.gen, entries, refs)
		if moved {
			continue
		}
		if len(rec.slots) > 0 {
			s.log.dead(rec)
		}
		return len(rec.slots) > 0, nil
	}
}

// mark adds slots to the dead ones and returns those that are new. moved reports that the table is out of date.
func (g *seg) mark(gen uint32, entries []entry, refs []Ref) (rec deadRecord, moved bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gen != gen {
		return rec, true
	}
	rec = deadRecord{segment: g.id, gen: gen}
	for _, r := range refs {
		if int64(r.Slot) >= int64(len(entries)) || !entries[r.Slot].present() || !g.dead.add(r.Slot) {
			continue
		}
		g.deadBytes += int64(entries[r.Slot].size)
		rec.bytes += int64(entries[r.Slot].size)
		rec.slots = append(rec.slots, r.Slot)
	}
	g.fresh = append(g.fresh, rec.slots...)
	return rec, false
}

// reclaim gives back what the dead slots of a sealed segment hold, unless somebody else is at work on the segment, who
// then does it.
func (s *Set) reclaim(ctx context.Context, g *seg) error {
	for {
		if !g.work.TryLock() {
			return nil
		}
		err := s.reclaimLocked(ctx, g)
		g.work.Unlock()
		// What was freed while the lock was held, by those who didn't get it, is still to be done.
		if g.mu.RLock(); err != nil || g.state != sealed || len(g.fresh) == 0 {
			g.mu.RUnlock()
			return err
		}
		g.mu.RUnlock()
	}
}

// reclaimLocked removes the segment or punches it; g.work is held.
func (s *Set) reclaimLocked(ctx context.Context, g *seg) error {
	g.mu.RLock()
	st, all := g.state, g.dead.n == g.present
	g.mu.RUnlock()
	switch {
	case st != sealed:
		return nil
	case all:
		return s.remove(ctx, g)
	}
	return s.punch(ctx, g)
}

// remove deletes a segment without live slots; g.work is held, and no lane has the segment.
func (s *Set) remove(ctx context.Context, g *seg) error {
	g.mu.Lock()
	name, key, w := g.name, tableKey{g.id, g.gen}, g.w
	if g.state == sealed {
		w = nil
	}
	g.mu.Unlock()
	if err := s.blobs.Remove(ctx, name); err != nil {
		return err
	}
	g.mu.Lock()
	g.state, g.entries, g.fresh = removed, nil, nil
	g.mu.Unlock()
	s.mu.Lock()
	delete(s.segs, g.id)
	s.mu.Unlock()
	// A sync of it that is under way, or a reader, has the blob still.
	s.forgetUnsynced(g)
	s.tables.drop(key)
	s.files.drop(name)
	if w != nil {
		// Syncs may hold the segment without a reference: they find everything synced.
		g.sync.finish()
		s.files.release(w)
	}
	return nil
}

// punch makes holes of the whole pages of slots freed since the last time; g.work is held and the segment is sealed.
func (s *Set) punch(ctx context.Context, g *seg) error {
	g.mu.Lock()
	fresh, h, name := g.fresh, g.head, g.name
	g.fresh = nil
	dead := bitset{words: slices.Clone(g.dead.words)}
	g.mu.Unlock()
	if len(fresh) == 0 {
		return nil
	}
	entries, err := s.table(ctx, g, h, name)
	if err != nil {
		return err
	}
	f, err := s.files.acquire(ctx, name)
	if err != nil {
		return err
	}
	defer s.files.release(f)
	p, ok := f.Blob.(blob.Puncher)
	if !ok {
		return nil
	}
	slices.Sort(fresh)
	at := int64(0) // punched up to here
	for _, slot := range fresh {
		if int(slot) >= len(entries) || !entries[slot].present() {
			continue
		}
		from, to := deadSpan(entries, &dead, int(slot))
		if from = max(from, at); from >= to {
			continue
		}
		at = to
		if err := p.Punch(from, to-from); err != nil {
			if errs.Is(err, errs.Unsupported) {
				return nil
			}
			return err
		}
	}
	return nil
}

// deadSpan returns the whole pages, from ≤ x < to, that a dead slot touches and no live one does.
func deadSpan(entries []entry, dead *bitset, slot int) (from, to int64) {
	e := entries[slot]
	lo, hi := int64(e.off), e.end()
	// Look no further than the pages that the slot shares: what lies beyond was looked at when it was freed itself.
	first, last := lo&^(pageSize-1), alignUp(hi, pageSize)
	for i := slot - 1; lo > first; i-- {
		if i < 0 {
			lo = max(first, headLen) // the segment's header stays
			break
		}
		if o := entries[i]; o.present() {
			if !dead.has(uint32(i)) {
				lo = o.end()
				break
			}
			lo = int64(o.off)
		}
	}
	for i := slot + 1; hi < last; i++ {
		if i >= len(entries) {
			break // the footer follows
		}
		if o := entries[i]; o.present() {
			if !dead.has(uint32(i)) {
				hi = int64(o.off)
				break
			}
			hi = o.end()
		}
	}
	return alignUp(max(lo, first), pageSize), min(hi, last) &^ (pageSize - 1)
}
