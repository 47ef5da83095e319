// Package segment keeps payload in append-only files.
//
// A segment is one blob of up to 256 MiB; a slot is one byte string in it, of up to 8 MiB; a Ref is a slot's address
// for ever. Where a slot lies is the segment's own business: its slot table stands in its footer, and compaction may
// rewrite a segment as a new generation, without the garbage, while every Ref stays as it is.
//
// A segment is open while it is being appended to, and sealed once its footer is durable. Appending goes on in a few
// lanes, an open segment each. A freed slot is dead: its whole pages are punched out of the file, a segment of only
// dead slots is removed, and Compact deals with what is left. Dead slots are remembered in a log beside the segments;
// losing its end in a crash leaks space and nothing else.
//
// Every 64 KiB block of a slot has a CRC32C that stands before the slot, and every read checks it. format.go describes
// the bytes.
package segment

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"
	"sync/atomic"

	"agentrun.dev/blob"
	"agentrun.dev/errs"
)

// MaxSlot is the largest slot in bytes; a larger one is an errs.TooLarge.
const MaxSlot = 8 << 20

const (
	defaultSegment = 256 << 20
	defaultSlots   = 64 << 10
	defaultTables  = 16 << 20
	defaultFiles   = 128
	maxSegment     = 1 << 30 // offsets in slot tables have 32 bits
	maxSlots       = 1 << 20
	largeLanes     = 2 // lanes for large slots, beside the one for small
	largeSlot      = 256 << 10
	maxSealing     = 4 // segments that may wait to be sealed before Put waits for them
)

// Ref is a slot's address. Segments count from 1, so the zero Ref names none.
type Ref struct {
	Segment uint64
	Slot    uint32
}

// IsZero reports whether the reference is unset.
func (r Ref) IsZero() bool { return r == Ref{} }

// String returns the segment and the slot, both in decimal.
func (r Ref) String() string { return fmt.Sprintf("segment %d slot %d", r.Segment, r.Slot) }

// Options tune a set. The zero value works.
type Options struct {
	SegmentBytes int64 // a segment is sealed when the next slot would take it beyond; 256 MiB if zero, 1 GiB at most
	SegmentSlots int   // or when it has so many slots; 65,536 if zero, 2^20 at most
	TableBytes   int64 // memory for the slot tables of sealed segments; 16 MiB if zero
	OpenFiles    int   // blobs held open for reading; 128 if zero
}

// Set is the segments of a blob store. All methods may be called concurrently.
type Set struct {
	blobs  blob.Store
	o      Options
	files  *files
	tables *tables
	log    *deadLog

	mu   sync.RWMutex
	segs map[uint64]*seg

	lanes   [1 + largeLanes]lane
	ids     idSource
	sealing chan struct{}  // a token for each segment that waits to be sealed
	bg      sync.WaitGroup // the goroutines that seal

	unsyncedMu sync.Mutex
	unsynced   []*seg // segments that may have appended bytes which aren't durable

	failed atomic.Pointer[error] // a Sync failed: what Put promised since may be lost
	closed atomic.Bool
}

// Open opens the segments in a blob store. Segments that a crash left open are scanned, torn slots dropped, and sealed.
func Open(ctx context.Context, blobs blob.Store, o Options) (*Set, error) {
	o.setDefaults()
	s := &Set{
		blobs: blobs, o: o, files: newFiles(blobs, o.OpenFiles), tables: newTables(o.TableBytes),
		segs: map[uint64]*seg{}, sealing: make(chan struct{}, maxSealing),
	}
	found, logs, err := inventory(ctx, blobs)
	if err != nil {
		return nil, err
	}
	ids := make([]uint64, 0, len(found))
	for id := range found {
		ids = append(ids, id)
	}
	sort.Slice(ids, func(i, j int) bool { return ids[i] < ids[j] })
	for _, id := range ids {
		if err := s.openSegment(ctx, id, found[id]); err != nil {
			s.files.close()
			return nil, err
		}
	}
	next := uint64(1)
	if len(ids) > 0 {
		next = ids[len(ids)-1] + 1
	}
	if err := s.openLog(ctx, logs, next); err != nil {
		s.files.close()
		return nil, err
	}
	return s, nil
}

func (o *Options) setDefaults() {
	if o.SegmentBytes <= 0 {
		o.SegmentBytes = defaultSegment
	}
	if o.SegmentSlots <= 0 {
		o.SegmentSlots = defaultSlots
	}
	if o.TableBytes <= 0 {
		o.TableBytes = defaultTables
	}
	if o.OpenFiles <= 0 {
		o.OpenFiles = defaultFiles
	}
	o.SegmentBytes = min(o.SegmentBytes, maxSegment)
	o.SegmentSlots = min(o.SegmentSlots, maxSlots)
}

// seg returns a segment by id, nil if there is none.
func (s *Set) seg(id uint64) *seg {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.segs[id]
}

// all returns the segments in order of id.
func (s *Set) all() []*seg {
	s.mu.RLock()
	out := make([]*seg, 0, len(s.segs))
	for _, g := range s.segs {
		out = append(out, g)
	}
	s.mu.RUnlock()
	sort.Slice(out, func(i, j int) bool { return out[i].id < out[j].id })
	return out
}

// fail makes every later Put and Sync fail: after a sync that failed, nobody can say what became durable.
func (s *Set) fail(err error) {
	err = errs.New(errs.Unavailable, "sync", "segments", fmt.Errorf("an earlier sync failed, the store must be reopened: %w", err))
	s.failed.CompareAndSwap(nil, &err)
}

// usable returns the error of a set that has failed or is closed.
func (s *Set) usable(op string) error {
	if s.closed.Load() {
		return errs.Msg(errs.Unavailable, op, "segments", "closed")
	}
	if err := s.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Close makes everything durable and seals the open segments. The set must not be used afterwards.
func (s *Set) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	ctx := context.Background()
	for i := range s.lanes {
		l := &s.lanes[i]
		l.mu.Lock()
		if l.seg != nil {
			s.sealing <- struct{}{}
			s.retire(l)
		}
		l.mu.Unlock()
	}
	s.bg.Wait()
	err := s.sync(ctx)
	s.sealFrozen(ctx)
	err = errors.Join(err, s.restoreLog(ctx), s.log.close())
	s.files.close()
	return err
}

// Stat describes a segment.
type Stat struct {
	ID         uint64
	Generation uint32 // how often it was rewritten
	Slots      int    // slots present, the dead ones included
	Bytes      int64  // payload in them
	DeadSlots  int    // of which freed
	DeadBytes  int64
	Sealed     bool
	Stored     int64 // bytes on the disk: with headers, without holes
	Damage     error // why nothing of it can be read; nil if it can
}

// Segments describes all segments, in order of id.
func (s *Set) Segments(ctx context.Context) ([]Stat, error) {
	stored := map[string]int64{}
	err := s.blobs.List(ctx, segPrefix, func(i blob.Info) error {
		stored[i.Name] = i.Stored
		return nil
	})
	if err != nil {
		return nil, err
	}
	var out []Stat
	for _, g := range s.all() {
		g.mu.RLock()
		if g.state != removed {
			out = append(out, Stat{
				ID: g.id, Generation: g.gen, Slots: g.present, Bytes: g.bytes, DeadSlots: g.dead.n, DeadBytes: g.deadBytes,
				Sealed: g.state == sealed, Stored: stored[g.name], Damage: g.damage,
			})
		}
		g.mu.RUnlock()
	}
	return out, nil
}
