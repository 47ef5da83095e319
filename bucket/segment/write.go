package segment

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"

	"agentrun.dev/errs"
)

// lane is a place where slots are appended, one at a time.
type lane struct {
	mu  sync.Mutex
	seg *seg // nil until the first slot, and after a seal
}

// buffers hold meta, padding and small payloads on their way into a segment, and blocks on their way out.
var buffers = sync.Pool{New: func() any { b := make([]byte, bufferLen); return &b }}

// bufferLen is enough for meta, padding and two blocks.
const bufferLen = 2*blockSize + pageSize + maxMeta

// Put appends a slot and returns its address. The slot can be read at once and is durable after the next Sync. A full
// disk is an errs.NoSpace.
func (s *Set) Put(ctx context.Context, p []byte) (Ref, error) {
	if err := ctx.Err(); err != nil {
		return Ref{}, err
	}
	if err := s.usable("put"); err != nil {
		return Ref{}, err
	}
	if len(p) > MaxSlot {
		return Ref{}, errs.Msg(errs.TooLarge, "put", "slot", fmt.Sprintf("%d bytes exceed the limit of %d", len(p), MaxSlot))
	}
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	// The checksums are computed before the lane is taken; what stands before the meta is known only afterwards.
	meta := (*buf)[8 : 8+metaSize(int64(len(p)))]
	blockCRCs(meta[metaLen:], p)
	l := s.pick(len(p))
	defer l.mu.Unlock()
	if s.closed.Load() { // Close takes every lane after saying so
		return Ref{}, s.usable("put")
	}
	g, err := s.room(ctx, l, int64(len(p)))
	if err != nil {
		return Ref{}, err
	}
	return g.append(*buf, meta, p)
}

// pick returns a lane, locked. Small slots share one, so that most Syncs have one segment to sync; large ones take the
// first that is free.
func (s *Set) pick(size int) *lane {
	if size < largeSlot {
		l := &s.lanes[0]
		l.mu.Lock()
		return l
	}
	for i := 1; i < len(s.lanes); i++ {
		if l := &s.lanes[i]; l.mu.TryLock() {
			return l
		}
	}
	l := &s.lanes[1]
	l.mu.Lock()
	return l
}

// room returns the lane's segment, or a new one if the slot doesn't fit; the lane is held.
func (s *Set) room(ctx context.Context, l *lane, size int64) (*seg, error) {
	if g := l.seg; g != nil {
		g.mu.RLock()
		slots := g.slots
		g.mu.RUnlock()
		e := entry{uint32(alignUp(g.w.Size(), 8)), uint32(size)}
		if slots < s.o.SegmentSlots && (slots == 0 || e.end() <= s.o.SegmentBytes) {
			return g, nil
		}
		select {
		case s.sealing <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		s.retire(l)
	}
	g, err := s.create(ctx)
	if err != nil {
		return nil, err
	}
	l.seg = g
	return g, nil
}

// create makes a new segment, whose name and header are durable before the first slot: so a header that can't be read
// is always damage, never a crash.
func (s *Set) create(ctx context.Context) (*seg, error) {
	id, err := s.ids.take(s.log)
	if err != nil {
		return nil, errs.New(errs.KindOf(err), "put", "new segment", err)
	}
	h := head{id: id, salt: newSalt()}
	name := segName(id, 0)
	b, err := s.blobs.Create(ctx, name)
	if err != nil {
		return nil, errs.New(errs.KindOf(err), "put", "new segment", err)
	}
	if _, err = b.Append(h.encode()); err == nil {
		err = b.Sync()
	}
	if err != nil {
		_ = b.Close()
		_ = s.blobs.Remove(context.WithoutCancel(ctx), name)
		return nil, errs.New(errs.KindOf(err), "put", "new segment", err)
	}
	g := &seg{id: id, state: open, head: h, name: name, entries: []entry{}}
	g.w = s.files.add(name, b)
	g.sync.init(headLen)
	s.mu.Lock()
	s.segs[id] = g
	s.mu.Unlock()
	s.unsyncedMu.Lock()
	s.unsynced = append(s.unsynced, g)
	s.unsyncedMu.Unlock()
	return g, nil
}

func newSalt() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return le.Uint64(b[:])
}

// append writes a slot; the lane is held. buf has 8 bytes for padding, then the meta with the block CRCs in it.
func (g *seg) append(buf, meta, p []byte) (Ref, error) {
	end := g.w.Size()
	off := alignUp(end, 8)
	slot, size := uint32(g.slots), uint32(len(p)) // only the lane's holder changes slots
	putMeta(meta, g.head, slot, size)
	pad := int(off - end)
	from := 8 - pad
	clear(buf[from:8])
	e := entry{uint32(off), size}
	dataAt := 8 + int(payloadOff(off, int64(size))-off)
	clear(buf[8+len(meta) : dataAt])
	var err error
	if int64(dataAt)+int64(size) <= bufferLen && size < largeSlot {
		copy(buf[dataAt:], p)
		_, err = g.w.Append(buf[from : dataAt+len(p)])
	} else {
		if _, err = g.w.Append(buf[from:dataAt]); err == nil {
			if _, err = g.w.Append(p); err != nil {
				// The meta is written: the number is used up.
				g.record(torn)
			}
		}
	}
	if err != nil {
		return Ref{}, errs.New(errs.KindOf(err), "put", fmt.Sprintf("segment %d", g.id), err)
	}
	g.record(e)
	g.sync.appended.Store(e.end())
	return Ref{g.id, slot}, nil
}

// record adds a slot to the table.
func (g *seg) record(e entry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.entries = append(g.entries, e)
	g.slots++
	if e.present() {
		g.present++
		g.bytes += int64(e.size)
	}
}

// syncer lets concurrent syncs of one segment share the system's.
type syncer struct {
	appended atomic.Int64 // end of the last slot whose Put has written it
	synced   atomic.Int64 // everything before is durable

	mu      sync.Mutex
	done    sync.Cond
	running bool
	err     error
}

func (y *syncer) init(at int64) {
	y.done.L = &y.mu
	y.appended.Store(at)
	y.synced.Store(at)
}

// to returns when everything before target is durable. The first caller syncs; those who come meanwhile wait, and
// one of them then syncs for all of them.
func (y *syncer) to(target int64, sync func() error) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	for y.err == nil && y.synced.Load() < target {
		if y.running {
			y.done.Wait()
			continue
		}
		y.running = true
		at := y.appended.Load()
		y.mu.Unlock()
		err := sync()
		y.mu.Lock()
		y.running = false
		if err != nil {
			y.err = err
		} else {
			y.synced.Store(at)
		}
		y.done.Broadcast()
	}
	return y.err
}

// finish says that nothing needs a sync any more, for a segment that was removed.
func (y *syncer) finish() {
	y.mu.Lock()
	defer y.mu.Unlock()
	for y.running {
		y.done.Wait()
	}
	y.synced.Store(y.appended.Load())
}

// Sync makes every slot durable whose Put returned before the call. Concurrent Syncs share one of the system's; with
// nothing to do it costs nothing. After an error the set must be reopened, since nobody can say what is durable.
func (s *Set) Sync(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.usable("sync"); err != nil {
		return err
	}
	return s.sync(ctx)
}

func (s *Set) sync(context.Context) error {
	var few [8]*seg
	todo := few[:0]
	s.unsyncedMu.Lock()
	for _, g := range s.unsynced {
		if g.sync.synced.Load() < g.sync.appended.Load() {
			todo = append(todo, g)
		}
	}
	s.unsyncedMu.Unlock()
	switch len(todo) {
	case 0:
	case 1:
		s.syncSegment(todo[0])
	default:
		s.syncMany(append([]*seg(nil), todo...))
	}
	if err := s.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// syncMany syncs several segments at once; the file system's journal is shared by them.
func (s *Set) syncMany(todo []*seg) {
	var wg sync.WaitGroup
	for _, g := range todo[1:] {
		wg.Go(func() { s.syncSegment(g) })
	}
	s.syncSegment(todo[0])
	wg.Wait()
}

// syncSegment makes a segment durable as far as it goes, or fails the set.
func (s *Set) syncSegment(g *seg) {
	if err := g.sync.to(g.sync.appended.Load(), g.w.Sync); err != nil {
		s.fail(err)
	}
}

// retire takes a full segment from its lane, which is held, and has it sealed in the background. The caller has put a
// token into s.sealing, which bounds how many wait for that.
func (s *Set) retire(l *lane) {
	g := l.seg
	l.seg = nil
	s.bg.Go(func() {
		defer func() { <-s.sealing }()
		s.seal(context.Background(), g)
	})
}

// seal writes a segment's footer, after its slots are durable: so a footer that can be read proves them whole. On a
// full disk the segment stays frozen, its table in memory, until the next attempt.
func (s *Set) seal(ctx context.Context, g *seg) {
	g.work.Lock()
	defer g.work.Unlock()
	g.mu.Lock()
	if g.state == open {
		g.state = frozen
	}
	st, h, entries := g.state, g.head, g.entries
	empty := g.dead.n == g.present
	g.mu.Unlock()
	if st != frozen {
		return
	}
	if empty {
		_ = s.remove(ctx, g) // what can't be removed now is found by the next Compact
		return
	}
	if s.syncSegment(g); s.failed.Load() != nil {
		return
	}
	at := g.w.Size()
	pad := alignUp(at, 8) - at
	footer := append(make([]byte, pad), encodeFooter(h, at+pad, entries)...)
	if _, err := g.w.Append(footer); err != nil {
		return
	}
	if err := g.w.Sync(); err != nil {
		s.fail(err)
		return
	}
	s.forgetUnsynced(g)
	s.tables.put(tableKey{h.id, h.gen}, entries)
	g.mu.Lock()
	g.state, g.entries = sealed, nil
	g.mu.Unlock()
	s.files.release(g.w)
	s.punch(ctx, g)
}

// sealFrozen tries again to seal what a full disk has kept from it.
func (s *Set) sealFrozen(ctx context.Context) {
	for _, g := range s.all() {
		g.mu.RLock()
		st := g.state
		g.mu.RUnlock()
		if st == frozen {
			s.seal(ctx, g)
		}
	}
}

func (s *Set) forgetUnsynced(g *seg) {
	s.unsyncedMu.Lock()
	defer s.unsyncedMu.Unlock()
	for i, o := range s.unsynced {
		if o == g {
			s.unsynced = append(s.unsynced[:i:i], s.unsynced[i+1:]...)
			return
		}
	}
}
