package segment

import (
	"context"
	"fmt"
	"io"

	"agentrun.dev/errs"
)

// Size returns the length of a slot in bytes.
func (s *Set) Size(ctx context.Context, ref Ref) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	p, _, err := s.find(ctx, ref)
	return int64(p.e.size), err
}

// ReadAt reads from a slot at an offset, like io.ReaderAt: fewer bytes than len(p) come with an error, io.EOF at the
// slot's end. Every block that it touches is checked; one that doesn't match is an errs.Corrupt. A slot that was never
// put or was freed is an errs.NotFound.
func (s *Set) ReadAt(ctx context.Context, ref Ref, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, errs.Msg(errs.Invalid, "read", ref.String(), "negative offset")
	}
	for {
		at, g, err := s.find(ctx, ref)
		if err != nil {
			return 0, err
		}
		size := int64(at.e.size)
		if off >= size {
			if len(p) == 0 {
				return 0, nil
			}
			return 0, io.EOF
		}
		want := p[:min(int64(len(p)), size-off)]
		f, err := s.files.acquire(ctx, at.name)
		if err != nil {
			if err = g.moved(at.name, err); err == errMoved { //nolint:errorlint // it is never wrapped
				continue
			}
			return 0, err
		}
		n, err := readSlot(f, at.head, ref.Slot, at.e, want, off)
		s.files.release(f)
		if err != nil {
			if errs.Is(err, errs.Corrupt) && s.freed(ref) {
				err = notFound(ref) // it was punched under our hands
			}
			return n, err
		}
		if n < len(p) {
			return n, io.EOF
		}
		return n, nil
	}
}

// freed reports whether a slot was freed.
func (s *Set) freed(ref Ref) bool {
	g := s.seg(ref.Segment)
	if g == nil {
		return true
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.state == removed || g.dead.has(ref.Slot)
}

// corrupt names a block that doesn't match its checksum.
func corrupt(h head, slot uint32, off int64, what string) error {
	return errs.Msg(errs.Corrupt, "read", fmt.Sprintf("segment %d slot %d offset %d", h.id, slot, off), what)
}

// readSlot reads p, which lies within the slot and isn't empty, and returns how many bytes of it are good.
func readSlot(r io.ReaderAt, h head, slot uint32, e entry, p []byte, off int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	size, base := int64(e.size), int64(e.off)
	m := metaSize(size)
	data := payloadOff(base, size)
	first, last := off/blockSize, (off+int64(len(p))-1)/blockSize
	span := data + min((last+1)*blockSize, size) - base
	if span <= bufferLen {
		// Meta and blocks in one go.
		b := (*buf)[:span]
		if err := readFull(r, b, base); err != nil {
			return 0, slotError(err, h, slot, off)
		}
		if !checkMeta(b[:m], h, slot, e.size) {
			return 0, corrupt(h, slot, off, "the slot's header doesn't match its checksum")
		}
		for i := first; i <= last; i++ {
			block := b[data-base+i*blockSize : data-base+min((i+1)*blockSize, size)]
			if checksum(block) != le.Uint32(b[metaLen+4*i:]) {
				return 0, corrupt(h, slot, i*blockSize, "checksum mismatch")
			}
		}
		return copy(p, b[data-base+off:]), nil
	}
	b := (*buf)[:m]
	if err := readFull(r, b, base); err != nil {
		return 0, slotError(err, h, slot, off)
	}
	if !checkMeta(b, h, slot, e.size) {
		return 0, corrupt(h, slot, off, "the slot's header doesn't match its checksum")
	}
	return readBlocks(r, h, slot, e, p, off, b[metaLen:], (*buf)[m:])
}

// readBlocks reads block by block: those that p covers whole straight into p, the others by way of scratch.
func readBlocks(r io.ReaderAt, h head, slot uint32, e entry, p []byte, off int64, crcs, scratch []byte) (int, error) {
	size := int64(e.size)
	data := payloadOff(int64(e.off), size)
	n := 0
	for n < len(p) {
		i := off / blockSize
		from, to := i*blockSize, min((i+1)*blockSize, size)
		if off != from || int64(len(p)-n) < to-from {
			block := scratch[:to-from]
			if err := readFull(r, block, data+from); err != nil {
				return n, slotError(err, h, slot, from)
			}
			if checksum(block) != le.Uint32(crcs[4*i:]) {
				return n, corrupt(h, slot, from, "checksum mismatch")
			}
			c := copy(p[n:], block[off-from:])
			n, off = n+c, off+int64(c)
			continue
		}
		// As many whole blocks as p takes, with one read; a slot's last block counts as whole.
		whole := int64(len(p)-n) / blockSize * blockSize
		if off+int64(len(p)-n) == size {
			whole = size - off
		}
		run := p[n : n+int(max(whole, to-from))]
		if err := readFull(r, run, data+off); err != nil {
			return n, slotError(err, h, slot, off)
		}
		for len(run) > 0 {
			c := min(len(run), blockSize)
			if checksum(run[:c]) != le.Uint32(crcs[4*(off/blockSize):]) {
				return n, corrupt(h, slot, off, "checksum mismatch")
			}
			n, off, run = n+c, off+int64(c), run[c:]
		}
	}
	return n, nil
}

// slotError adds where a read failed.
func slotError(err error, h head, slot uint32, off int64) error {
	return errs.New(errs.KindOf(err), "read", fmt.Sprintf("segment %d slot %d offset %d", h.id, slot, off), err)
}

// snapshot returns a segment's table and its place as of now, without the dead slots.
func (s *Set) snapshot(ctx context.Context, id uint64) (place, []entry, error) {
	g := s.seg(id)
	if g == nil {
		return place{}, nil, errs.New(errs.NotFound, "read", fmt.Sprintf("segment %d", id), nil)
	}
	for {
		g.mu.RLock()
		st, damage, entries, p := g.state, g.damage, g.entries, place{head: g.head, name: g.name}
		g.mu.RUnlock()
		switch {
		case st == damaged:
			return p, nil, damage
		case st == removed:
			return p, nil, errs.New(errs.NotFound, "read", fmt.Sprintf("segment %d", id), nil)
		case entries == nil:
			var err error
			if entries, err = s.table(ctx, g, p.head, p.name); err == errMoved { //nolint:errorlint // it is never wrapped
				continue
			} else if err != nil {
				return p, nil, err
			}
		}
		live := append([]entry(nil), entries...)
		g.mu.RLock()
		g.dead.each(func(slot uint32) {
			if int(slot) < len(live) {
				live[slot] = entry{}
			}
		})
		g.mu.RUnlock()
		return p, live, nil
	}
}

// Slots calls f for each slot of a segment that isn't dead, in order, with its length.
func (s *Set) Slots(ctx context.Context, segment uint64, f func(slot uint32, size int64) error) error {
	_, live, err := s.snapshot(ctx, segment)
	if err != nil {
		return err
	}
	for i, e := range live {
		if !e.present() {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f(uint32(i), int64(e.size)); err != nil {
			return err
		}
	}
	return nil
}

// Verify reads every slot of a segment that isn't dead and calls f with what came of it, nil for a good one. What it
// returns itself is damage to the segment's own header or footer, or what kept it from going on.
func (s *Set) Verify(ctx context.Context, segment uint64, f func(ref Ref, err error)) error {
	p, live, err := s.snapshot(ctx, segment)
	if err != nil {
		return err
	}
	frame := s.verifyFrame(ctx, segment)
	if frame != nil && !errs.Is(frame, errs.Corrupt) {
		return frame
	}
	chunk := make([]byte, 1<<20)
	for i, e := range live {
		if !e.present() {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		ref := Ref{p.head.id, uint32(i)}
		err := s.verifySlot(ctx, ref, int64(e.size), chunk)
		if errs.Is(err, errs.NotFound) && s.freed(ref) {
			continue
		}
		if errs.Is(err, errs.Canceled) {
			return err
		}
		f(ref, err)
	}
	return frame
}

func (s *Set) verifySlot(ctx context.Context, ref Ref, size int64, chunk []byte) error {
	for off := int64(0); off < size; off += int64(len(chunk)) {
		if _, err := s.ReadAt(ctx, ref, chunk[:min(int64(len(chunk)), size-off)], off); err != nil {
			return err
		}
	}
	if size > 0 {
		return nil
	}
	return s.verifyEmpty(ctx, ref)
}

// verifyEmpty checks the meta of a slot without payload, which reads never touch.
func (s *Set) verifyEmpty(ctx context.Context, ref Ref) error {
	for {
		at, g, err := s.find(ctx, ref)
		if err != nil {
			return err
		}
		f, err := s.files.acquire(ctx, at.name)
		if err != nil {
			if err = g.moved(at.name, err); err == errMoved { //nolint:errorlint // it is never wrapped
				continue
			}
			return err
		}
		var meta [metaLen]byte
		err = readFull(f, meta[:], int64(at.e.off))
		s.files.release(f)
		if err == nil && !checkMeta(meta[:], at.head, ref.Slot, 0) {
			err = corrupt(at.head, ref.Slot, 0, "the slot's header doesn't match its checksum")
		}
		return err
	}
}

// verifyFrame reads header and footer of a segment from the disk.
func (s *Set) verifyFrame(ctx context.Context, id uint64) error {
	for {
		g := s.seg(id)
		if g == nil {
			return nil
		}
		g.mu.RLock()
		name, h, st := g.name, g.head, g.state
		g.mu.RUnlock()
		if st == removed {
			return nil
		}
		f, err := s.files.acquire(ctx, name)
		if err != nil {
			if err = g.moved(name, err); err == errMoved { //nolint:errorlint // it is never wrapped
				continue
			}
			return err
		}
		p := make([]byte, headLen)
		if err = readFull(f, p, 0); err == nil {
			_, err = parseHead(p, h.id, h.gen)
		}
		if err == nil && st == sealed {
			_, _, err = readFooter(f, h.id, h.gen)
		}
		s.files.release(f)
		return err
	}
}
