package segment

import (
	"context"
	"errors"

	"agentrun.dev/blob"
	"agentrun.dev/errs"
)

// Compact rewrites sealed segments of which more than a share minDead, 0 to 1, of the bytes on the disk is garbage, and
// returns how many bytes that gave back. Readers and writers go on meanwhile. A segment that can't be rewritten, for
// want of space or because a slot is damaged, stays as it is, and the others are still tried.
func (s *Set) Compact(ctx context.Context, minDead float64) (freed int64, err error) {
	if err := s.usable("compact"); err != nil {
		return 0, err
	}
	s.sealWasted(ctx, minDead)
	s.sealFrozen(ctx)
	stored := map[string]int64{}
	err = s.blobs.List(ctx, segPrefix, func(i blob.Info) error {
		stored[i.Name] = i.Stored
		return nil
	})
	if err != nil {
		return 0, err
	}
	for _, g := range s.all() {
		if ctx.Err() != nil {
			return freed, errors.Join(err, ctx.Err())
		}
		n, e := s.compactSegment(ctx, g, stored, minDead)
		freed += n
		err = errors.Join(err, e)
	}
	return freed, err
}

// sealWasted takes from their lanes those open segments of which more than a share minDead is garbage: while they are
// being appended to, nothing of them can be given back.
func (s *Set) sealWasted(ctx context.Context, minDead float64) {
	for i := range s.lanes {
		l := &s.lanes[i]
		l.mu.Lock()
		g := l.seg
		wasted := false
		if g != nil {
			g.mu.RLock()
			wasted = g.dead.n > 0 && float64(g.deadBytes) > minDead*float64(g.w.Size())
			g.mu.RUnlock()
		}
		if wasted {
			l.seg = nil
		}
		l.mu.Unlock()
		if wasted {
			s.seal(ctx, g)
		}
	}
}

// compactSegment does the work of Compact for one segment, if it is worth it.
func (s *Set) compactSegment(ctx context.Context, g *seg, stored map[string]int64, minDead float64) (int64, error) {
	if !g.work.TryLock() {
		return 0, nil
	}
	defer g.work.Unlock()
	g.mu.RLock()
	st, h, name, dead, all := g.state, g.head, g.name, g.dead.n, g.dead.n == g.present
	g.mu.RUnlock()
	have, known := stored[name]
	switch {
	case st != sealed || dead == 0 || !known:
		return 0, nil
	case all:
		if err := s.remove(ctx, g); err != nil {
			return 0, err
		}
		return have, nil
	}
	if err := s.punch(ctx, g); err != nil {
		return 0, err
	}
	entries, err := s.table(ctx, g, h, name)
	if err != nil {
		return 0, err
	}
	need := s.footprint(g, entries)
	if waste := have - need; waste < pageSize || float64(waste) <= minDead*float64(have) {
		return 0, nil
	}
	size, err := s.rewrite(ctx, g, h, name, entries)
	if err != nil {
		return 0, err
	}
	return max(have-size, 0), nil
}

// footprint returns the size that a segment would have without its dead slots.
func (s *Set) footprint(g *seg, entries []entry) int64 {
	g.mu.RLock()
	defer g.mu.RUnlock()
	at := int64(headLen)
	for i, e := range entries {
		if e.present() && !g.dead.has(uint32(i)) {
			at = entry{uint32(alignUp(at, 8)), e.size}.end()
		}
	}
	return alignUp(at+int64(len(entries))*entryLen+trailerLen, pageSize)
}

// rewrite copies the live slots of a segment into its next generation and puts that in its place; g.work is held. It
// returns the new size. The old blob goes only when the new one is durable: whichever a crash leaves is whole.
func (s *Set) rewrite(ctx context.Context, g *seg, h head, name string, entries []entry) (int64, error) {
	next := head{id: h.id, gen: h.gen + 1, salt: newSalt()}
	nextName := segName(next.id, next.gen)
	if err := s.blobs.Remove(ctx, nextName); err != nil { // of an attempt that failed
		return 0, err
	}
	w, err := s.blobs.Create(ctx, nextName)
	if err != nil {
		return 0, err
	}
	var moved []entry
	if _, err = w.Append(next.encode()); err == nil {
		moved, err = s.copySlots(ctx, w, g, h, next, name, entries)
	}
	if err == nil {
		// As with seal: the footer comes after the slots are durable.
		err = w.Sync()
	}
	if err == nil {
		at := w.Size()
		pad := alignUp(at, 8) - at
		_, err = w.Append(append(make([]byte, pad), encodeFooter(next, at+pad, moved)...))
	}
	if err == nil {
		err = w.Sync()
	}
	size := w.Size()
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		_ = s.blobs.Remove(context.WithoutCancel(ctx), nextName)
		return 0, err
	}
	s.replace(g, next, nextName, moved)
	s.files.drop(name)
	s.tables.drop(tableKey{h.id, h.gen})
	// From here on the work is done; an old blob that stays is removed by the next Open.
	return size, errors.Join(s.blobs.Remove(context.WithoutCancel(ctx), name), s.punch(ctx, g))
}

// copySlots appends the live slots to w and returns their table. Their checksums are kept, and checked on the way.
func (s *Set) copySlots(ctx context.Context, w blob.Blob, g *seg, h, next head, name string, entries []entry) ([]entry, error) {
	f, err := s.files.acquire(ctx, name)
	if err != nil {
		return nil, err
	}
	defer s.files.release(f)
	out := make([]entry, len(entries))
	var buf []byte
	at := w.Size()
	for i, e := range entries {
		slot := uint32(i)
		if e == torn {
			out[i] = torn
		}
		if !e.present() || s.freed(Ref{h.id, slot}) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n := entry{uint32(alignUp(at, 8)), e.size}
		lead := int64(n.off) - at // padding before the meta
		m := metaSize(int64(e.size))
		data := payloadOff(int64(n.off), int64(e.size)) - at
		total := int(data) + int(e.size)
		if cap(buf) < total {
			buf = make([]byte, total, total+total/4)
		}
		buf = buf[:total]
		clear(buf[:data])
		meta := buf[lead : lead+m]
		if err := copySlot(f, h, slot, e, meta, buf[data:]); err != nil {
			if errs.Is(err, errs.Corrupt) && s.freed(Ref{h.id, slot}) {
				continue
			}
			return nil, err
		}
		putMeta(meta, next, slot, e.size)
		if _, err := w.Append(buf); err != nil {
			return nil, err
		}
		out[i] = n
		at = n.end()
	}
	return out, nil
}

// copySlot reads a slot's meta and payload and checks both.
func copySlot(f *file, h head, slot uint32, e entry, meta, payload []byte) error {
	if err := readFull(f, meta, int64(e.off)); err != nil {
		return slotError(err, h, slot, 0)
	}
	if !checkMeta(meta, h, slot, e.size) {
		return corrupt(h, slot, 0, "the slot's header doesn't match its checksum")
	}
	if err := readFull(f, payload, payloadOff(int64(e.off), int64(e.size))); err != nil {
		return slotError(err, h, slot, 0)
	}
	for off := 0; off < len(payload); off += blockSize {
		if checksum(payload[off:min(off+blockSize, len(payload))]) != le.Uint32(meta[metaLen+off/blockSize*4:]) {
			return corrupt(h, slot, int64(off), "checksum mismatch")
		}
	}
	return nil
}

// replace makes a new generation the segment's blob. Slots that were freed while they were copied stay dead.
func (s *Set) replace(g *seg, next head, name string, entries []entry) {
	s.tables.put(tableKey{next.id, next.gen}, entries)
	g.mu.Lock()
	defer g.mu.Unlock()
	dead := g.dead
	g.head, g.gen, g.name, g.slots = next, next.gen, name, len(entries)
	g.present, g.bytes, g.dead, g.deadBytes, g.fresh = 0, 0, bitset{}, 0, nil
	for i, e := range entries {
		if !e.present() {
			continue
		}
		g.present++
		g.bytes += int64(e.size)
		if dead.has(uint32(i)) {
			g.dead.add(uint32(i))
			g.deadBytes += int64(e.size)
			g.fresh = append(g.fresh, uint32(i))
		}
	}
}
