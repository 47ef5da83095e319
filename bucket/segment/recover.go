package segment

import (
	"bytes"
	"context"
	"io"
	"sort"

	"agentrun.dev/blob"
	"agentrun.dev/errs"
)

// found is the blobs of one segment: more than one generation if a crash came before the older was removed.
type found []blob.Info

// inventory returns the blobs of each segment, lowest generation first, and the names of the logs of dead slots, in order.
func inventory(ctx context.Context, blobs blob.Store) (map[uint64]found, []string, error) {
	segs := map[uint64]found{}
	err := blobs.List(ctx, segPrefix, func(i blob.Info) error {
		if id, _, ok := parseSegName(i.Name); ok {
			segs[id] = append(segs[id], i)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	var logs []string
	err = blobs.List(ctx, logPrefix, func(i blob.Info) error {
		if _, ok := parseLogName(i.Name); ok {
			logs = append(logs, i.Name)
		}
		return nil
	})
	for _, f := range segs {
		sort.Slice(f, func(a, b int) bool { return f[a].Name < f[b].Name })
	}
	return segs, logs, err
}

// openSegment takes one segment into the set. The lowest generation with a footer counts: a rewrite removes the older
// one only when the newer is durable, so the older is whole as long as it is there.
func (s *Set) openSegment(ctx context.Context, id uint64, gens found) error {
	use := -1
	var t trailer
	for i, info := range gens {
		_, gen, _ := parseSegName(info.Name)
		var err error
		if t, err = s.trailerOf(ctx, info.Name, id, gen); err == nil {
			use = i
			break
		} else if !errs.Is(err, errs.Corrupt) {
			return err
		}
	}
	g := &seg{id: id}
	if use >= 0 {
		g.state, g.head, g.gen, g.name = sealed, t.head, t.gen, gens[use].Name
		g.slots, g.present, g.bytes = t.slots, t.present, t.bytes
	} else {
		use = 0
		if err := s.recover(ctx, g, gens[0]); err != nil {
			return err
		}
	}
	if g.state != damaged {
		for i, info := range gens {
			if i != use {
				if err := s.blobs.Remove(ctx, info.Name); err != nil {
					return err
				}
			}
		}
	}
	if g.state != removed {
		s.segs[id] = g
	}
	return nil
}

func (s *Set) trailerOf(ctx context.Context, name string, id uint64, gen uint32) (trailer, error) {
	b, err := s.blobs.Open(ctx, name)
	if err != nil {
		return trailer{}, err
	}
	defer b.Close()
	return readTrailer(b, id, gen)
}

// recover brings a segment without a footer to the state of a sealed one.
func (s *Set) recover(ctx context.Context, g *seg, info blob.Info) error {
	_, gen, _ := parseSegName(info.Name)
	g.gen, g.name = gen, info.Name
	b, err := s.blobs.Open(ctx, info.Name)
	if err != nil {
		return err
	}
	defer b.Close()
	size := b.Size()
	p := make([]byte, headLen)
	if err = readFull(b, p, 0); err == nil {
		g.head, err = parseHead(p, g.id, gen)
	}
	switch {
	case errs.Is(err, errs.Corrupt) && size <= headLen:
		// The first slot comes after the header's sync: there was none.
		g.state = removed
		return s.blobs.Remove(ctx, info.Name)
	case errs.Is(err, errs.Corrupt):
		g.state, g.damage = damaged, err
		return nil
	case err != nil:
		return err
	}
	found, err := scan(ctx, b, g.head, size)
	if err != nil {
		return err
	}
	if len(found.entries) == 0 {
		g.state = removed
		return s.blobs.Remove(ctx, info.Name)
	}
	g.state, g.entries, g.slots, g.scanned = frozen, found.entries, len(found.entries), true
	for _, e := range found.entries {
		if e.present() {
			g.present++
			g.bytes += int64(e.size)
		}
	}
	return s.finish(ctx, g, found.end)
}

// finish writes the footer of a recovered segment. A disk too full for it, or a store that can't append to the blob
// any more, leaves the segment frozen: its table is in memory, and the next attempt comes with the next Compact or Open.
func (s *Set) finish(ctx context.Context, g *seg, end int64) error {
	r, ok := s.blobs.(blob.Reopener)
	if !ok {
		b, err := s.blobs.Open(ctx, g.name)
		if err != nil {
			return err
		}
		g.w = s.files.add(g.name, b)
		g.sync.init(end)
		return nil
	}
	b, err := r.Reopen(ctx, g.name, end)
	if err != nil {
		return err
	}
	g.w = s.files.add(g.name, b)
	g.sync.init(0)
	g.sync.appended.Store(end) // what was found may not be on the disk yet
	s.unsynced = append(s.unsynced, g)
	s.seal(ctx, g)
	if failed := s.failed.Load(); failed != nil {
		return *failed
	}
	return nil
}

// scanned is what scan finds in a segment.
type scanned struct {
	entries []entry
	end     int64 // after the last whole slot
	torn    int   // numbers below were given to slots that aren't whole
}

// scanChunk is how much scan reads at a time; a meta at its end is read again with the next one.
const scanChunk = 1 << 20

// scan finds the slots of a segment without its footer: wherever a meta stands whose checksum is right, and a payload
// that matches it. A slot whose payload doesn't match is torn; so are numbers that are missing before a whole slot.
// Damage to one slot doesn't hide those that follow.
func scan(ctx context.Context, r io.ReaderAt, h head, size int64) (scanned, error) {
	out := scanned{end: headLen}
	buf := make([]byte, min(scanChunk+maxMeta, size))
	payload := make([]byte, blockSize)
	for pos := int64(headLen); pos+metaLen <= size; {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		chunk := buf[:min(int64(len(buf)), size-pos)]
		if err := readFull(r, chunk, pos); err != nil {
			return out, err
		}
		next := pos + int64(len(chunk)) // where the next chunk begins
		if next < size {
			next = (next - maxMeta) &^ 7
		}
		for at := int64(0); pos+at < next; {
			hit := bytes.Index(chunk[at:], []byte(slotMagic))
			if hit < 0 || pos+at+int64(hit) >= next {
				break
			}
			if at += int64(hit); at%8 != 0 {
				at++
				continue
			}
			whole, end, err := out.take(r, h, chunk[at:], pos+at, size, payload)
			if err != nil {
				return out, err
			}
			if !whole {
				at += 8
				continue
			}
			if at = alignUp(end, 8) - pos; pos+at >= next {
				next = pos + at
			}
		}
		pos = next
	}
	for len(out.entries) < out.torn {
		out.entries = append(out.entries, torn)
	}
	return out, nil
}

// take looks at a possible meta at off, where p begins, and notes its slot, if there is one. whole reports that its
// payload is good, which ends at end.
func (o *scanned) take(r io.ReaderAt, h head, p []byte, off, size int64, block []byte) (whole bool, end int64, err error) {
	slot, n, ok := peekMeta(p, h.id)
	m := metaSize(int64(n))
	if !ok || int64(slot) < int64(len(o.entries)) || m > int64(len(p)) || !checkMeta(p[:m], h, slot, n) {
		return false, 0, nil
	}
	o.torn = max(o.torn, int(slot)+1)
	e := entry{uint32(off), n}
	if e.end() > size {
		return false, 0, nil
	}
	data := payloadOff(off, int64(n))
	for i := int64(0); i < blocks(int64(n)); i++ {
		from := data - off + i*blockSize
		length := min(blockSize, int64(n)-i*blockSize)
		b := block[:length]
		if from+length <= int64(len(p)) {
			b = p[from : from+length]
		} else if err := readFull(r, b, off+from); err != nil {
			return false, 0, err
		}
		if checksum(b) != le.Uint32(p[metaLen+4*i:]) {
			return false, 0, nil
		}
	}
	for int64(len(o.entries)) < int64(slot) {
		o.entries = append(o.entries, torn)
	}
	o.entries = append(o.entries, e)
	o.end = e.end()
	return true, o.end, nil
}
