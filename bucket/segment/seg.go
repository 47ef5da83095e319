package segment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"sync"

	"agentrun.dev/errs"
)

// state is where a segment is in its life.
type state uint8

const (
	open    state = iota // a lane appends to it
	frozen               // full, its footer not yet durable; the table is in memory
	sealed               // the footer is durable
	damaged              // neither header nor footer can be read
	removed
)

// seg is one segment.
type seg struct {
	id uint64

	// work is held by whoever seals, punches, rewrites or removes the segment. It is taken before mu.
	work sync.Mutex

	mu        sync.RWMutex // guards what follows
	state     state
	head      head
	gen       uint32
	name      string
	damage    error   // why it is damaged
	entries   []entry // the table of an open or frozen segment
	slots     int     // in the table
	present   int     // slots that are there
	bytes     int64   // payload in them
	dead      bitset  // slots freed, a subset of those present
	deadBytes int64
	fresh     []uint32 // of the dead ones, those whose pages weren't punched yet
	scanned   bool     // the table was made by a scan

	w    *file // the blob being appended to; nil once sealed
	sync syncer
}

// bitset is a set of slot numbers.
type bitset struct {
	words []uint64
	n     int
}

func (b *bitset) has(i uint32) bool {
	w := int(i / 64)
	return w < len(b.words) && b.words[w]&(1<<(i%64)) != 0
}

// add reports whether i is new.
func (b *bitset) add(i uint32) bool {
	if b.has(i) {
		return false
	}
	for int(i/64) >= len(b.words) {
		b.words = append(b.words, 0)
	}
	b.words[i/64] |= 1 << (i % 64)
	b.n++
	return true
}

// each calls f for the members in order.
func (b *bitset) each(f func(uint32)) {
	for w, word := range b.words {
		for word != 0 {
			i := bits.TrailingZeros64(word)
			word &^= 1 << i
			f(uint32(w*64 + i))
		}
	}
}

// place is where a slot can be read.
type place struct {
	head head
	name string
	e    entry
}

// errMoved says that a segment was rewritten between finding a slot and opening the blob.
var errMoved = errors.New("segment was rewritten")

// find returns a slot's place, or an errs.NotFound or errs.Corrupt.
func (s *Set) find(ctx context.Context, ref Ref) (place, *seg, error) {
	g := s.seg(ref.Segment)
	if g == nil {
		return place{}, nil, notFound(ref)
	}
	for {
		p, err := s.findIn(ctx, g, ref)
		if !errors.Is(err, errMoved) {
			return p, g, err
		}
	}
}

func notFound(ref Ref) error { return errs.New(errs.NotFound, "read", ref.String(), nil) }

func (s *Set) findIn(ctx context.Context, g *seg, ref Ref) (place, error) {
	g.mu.RLock()
	p := place{head: g.head, name: g.name}
	switch {
	case g.state == damaged:
		err := g.damage
		g.mu.RUnlock()
		return p, err
	case g.state == removed, int64(ref.Slot) >= int64(g.slots), g.dead.has(ref.Slot):
		g.mu.RUnlock()
		return p, notFound(ref)
	}
	if g.entries != nil {
		p.e = g.entries[ref.Slot]
		g.mu.RUnlock()
	} else {
		g.mu.RUnlock()
		entries, err := s.table(ctx, g, p.head, p.name)
		if err != nil {
			return p, err
		}
		if int64(ref.Slot) >= int64(len(entries)) {
			return p, notFound(ref)
		}
		p.e = entries[ref.Slot]
	}
	switch {
	case p.e == torn:
		return p, errs.Msg(errs.Corrupt, "read", ref.String(), "the slot was found torn when the segment was recovered")
	case !p.e.present():
		return p, notFound(ref)
	}
	return p, nil
}

// table returns the slot table of a sealed segment as of one generation. If that is gone, it returns errMoved.
func (s *Set) table(ctx context.Context, g *seg, h head, name string) ([]entry, error) {
	key := tableKey{h.id, h.gen}
	if entries := s.tables.get(key); entries != nil {
		return entries, nil
	}
	f, err := s.files.acquire(ctx, name)
	if err != nil {
		return nil, g.moved(name, err)
	}
	defer s.files.release(f)
	_, entries, err := readFooter(f, h.id, h.gen)
	if errs.Is(err, errs.Corrupt) {
		// The slots say themselves what they are. Verify goes on reporting the footer.
		if rec, scanErr := scan(ctx, f, h, f.Size()); scanErr == nil && len(rec.entries) > 0 {
			entries, err = rec.entries, nil
		}
	}
	if err != nil {
		return nil, err
	}
	s.tables.put(key, entries)
	return entries, nil
}

// moved turns the failure to open a blob into errMoved if the segment has another blob by now.
func (g *seg) moved(name string, err error) error {
	if !errs.Is(err, errs.NotFound) {
		return err
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.name != name || g.state == removed {
		return errMoved
	}
	return errs.New(errs.Corrupt, "read", fmt.Sprintf("segment %d", g.id), fmt.Errorf("its blob is missing: %w", err))
}

// readFooter reads trailer and table of a segment.
func readFooter(r io.ReaderAt, id uint64, gen uint32) (trailer, []entry, error) {
	t, err := readTrailer(r, id, gen)
	if err != nil {
		return t, nil, err
	}
	p := make([]byte, t.slots*entryLen)
	if err := readFull(r, p, t.tableOff); err != nil {
		return t, nil, err
	}
	entries, err := parseTable(p, t)
	return t, entries, err
}

// sizer is the part of a blob that readTrailer needs beside reading.
type sizer interface{ Size() int64 }

func readTrailer(r io.ReaderAt, id uint64, gen uint32) (trailer, error) {
	size := r.(sizer).Size()
	p := make([]byte, trailerLen)
	if size < headLen+trailerLen {
		return trailer{}, errs.Msg(errs.Corrupt, "open", fmt.Sprintf("segment %d footer", id), "missing")
	}
	if err := readFull(r, p, size-trailerLen); err != nil {
		return trailer{}, err
	}
	return parseTrailer(p, id, gen, size)
}

// readFull reads all of p; a blob that is too short is an errs.Corrupt.
func readFull(r io.ReaderAt, p []byte, off int64) error {
	n, err := r.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return errs.Msg(errs.Corrupt, "read", fmt.Sprintf("offset %d", off), "the blob ends early")
	}
	return err
}
