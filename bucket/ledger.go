package bucket

import (
	"context"
	"encoding/binary"
	"sync"
	"time"

	"agentrun.dev/bucket/segment"
	"agentrun.dev/bucket/tree"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

// The ledger counts references: to tree nodes from their parents and from views, to slots from leaves, logs and
// uploads. Writers don't touch counts; the transaction that publishes or drops something queues an event, and the
// ledger works them off in the background. Gains are always counted before losses, so a count is never too low, and
// what reaches zero can go. Each step is one commit: a crash repeats nothing and loses nothing.
//
// Views and deltas have no counts: whatever holds one is a key of its own (an edge), and without edges and pins it goes.

// eventKind says what an event changes.
type eventKind byte

const (
	gainNodes eventKind = iota + 1 // the tree nodes from a to b (exclusive) exist: their children and slots gain one each
	gainNode                       // node a gains a reference
	gainSlots                      // slots gain one each
	loseNode
	loseSlots
	viewLoose  // view a lost an edge
	deltaLoose // delta a lost an edge
	freeSlots  // slots reached zero: their bytes can go
)

// event is a queued change of the ledger.
type event struct {
	kind  eventKind
	a, b  uint64
	slots []segment.Ref
	held  bool // by a pin when it was read: nothing may be lost by it in this pass; isn't stored
}

const (
	classGain = 0
	classLose = 1
)

func (e event) key(n uint64) []byte {
	class := byte(classLose)
	if e.kind <= gainSlots {
		class = classGain
	}
	return kvKey(kEvent, []byte{class}, be64(n))
}

func (e event) encode() []byte {
	w := enc{b: []byte{formatVersion, byte(e.kind)}}
	w.u(e.a)
	w.u(e.b)
	w.u(uint64(len(e.slots)))
	for _, s := range e.slots {
		w.u(s.Segment)
		w.u(uint64(s.Slot))
	}
	return w.b
}

func decodeEvent(b []byte) (e event, err error) {
	d := dec{b: b}
	if err := d.version("event"); err != nil {
		return e, err
	}
	e.kind, e.a, e.b = eventKind(d.byte()), d.u(), d.u()
	if n := d.u(); n <= uint64(len(d.b)) {
		e.slots = make([]segment.Ref, n)
		for i := range e.slots {
			e.slots[i] = segment.Ref{Segment: d.u(), Slot: uint32(d.u())}
		}
	} else {
		d.bad = true
	}
	return e, d.end("event")
}

// Counts are stored in groups of this many.
const countGroup = 1024

// group names a run of counts: of nodes (segment 0) or of a segment's slots.
type group struct{ segment, first uint64 }

func nodeGroup(id uint64) (group, int) {
	return group{0, id / countGroup}, int(id % countGroup)
}

func slotGroup(r segment.Ref) (group, int) {
	return group{r.Segment, uint64(r.Slot) / countGroup}, int(r.Slot % countGroup)
}

func (g group) key() []byte {
	space := byte('n')
	if g.segment != 0 {
		space = 's'
	}
	return kvKey(kCount, []byte{space}, be64(g.segment), be64(g.first))
}

type counts []uint32

func (c counts) encode() []byte {
	b := []byte{formatVersion}
	for len(c) > 0 && c[len(c)-1] == 0 {
		c = c[:len(c)-1]
	}
	for _, n := range c {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

func decodeCounts(b []byte) (counts, error) {
	d := dec{b: b}
	if err := d.version("counts"); err != nil {
		return nil, err
	}
	c := make(counts, countGroup)
	for i := 0; len(d.b) > 0; i++ {
		if i == countGroup {
			return nil, errs.Msg(errs.Corrupt, "decode", "counts", "too many")
		}
		c[i] = uint32(d.u())
	}
	return c, d.end("counts")
}

// books is a set of counts being changed: read from kv on first use, written back together.
type books struct {
	s      *Store
	groups map[group]counts
	dirty  map[group]bool
}

func (s *Store) openBooks() *books {
	return &books{s: s, groups: make(map[group]counts), dirty: make(map[group]bool)}
}

func (b *books) group(ctx context.Context, g group) (counts, error) {
	if c, ok := b.groups[g]; ok {
		return c, nil
	}
	c := make(counts, countGroup)
	val, err := b.s.kv.Get(ctx, g.key())
	if err == nil {
		c, err = decodeCounts(val)
	} else if errs.Is(err, errs.NotFound) {
		err = nil
	}
	if err != nil {
		return nil, err
	}
	b.groups[g] = c
	return c, nil
}

// add changes a count and returns what it became. Below zero it stays at zero: fsck finds the reason.
func (b *books) add(ctx context.Context, g group, i, n int) (uint32, error) {
	c, err := b.group(ctx, g)
	if err != nil {
		return 0, err
	}
	b.dirty[g] = true
	if v := int64(c[i]) + int64(n); v >= 0 {
		c[i] = uint32(v)
	} else {
		b.s.log.Error("a reference count fell below zero; run fsck", "segment", g.segment, "group", g.first, "index", i)
		c[i] = 0
		return 1, nil // not free: better a leak than a loss
	}
	return c[i], nil
}

func (b *books) node(ctx context.Context, id uint64, n int) (uint32, error) {
	g, i := nodeGroup(id)
	return b.add(ctx, g, i, n)
}

func (b *books) slot(ctx context.Context, r segment.Ref, n int) (uint32, error) {
	g, i := slotGroup(r)
	return b.add(ctx, g, i, n)
}

// write puts the changed groups into a batch and forgets them all.
func (b *books) write(batch *kv.Batch) {
	for g := range b.dirty {
		if v := b.groups[g].encode(); len(v) > 1 {
			batch.Put(g.key(), v)
		} else {
			batch.Delete(g.key())
		}
	}
	clear(b.groups)
	clear(b.dirty)
}

// ledger works off events.
type ledger struct {
	s       *Store
	mu      sync.Mutex // one pass at a time; fsck and usage hold it to see the counts settled
	wake    chan struct{}
	stop    context.CancelFunc
	stopped chan struct{}
	freed   GCResult // since the store was opened
}

func (l *ledger) start(s *Store) {
	l.s = s
	l.wake, l.stopped = make(chan struct{}, 1), make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	go l.run(ctx)
}

// poke tells the ledger that there may be something to do.
func (l *ledger) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *ledger) run(ctx context.Context) {
	defer close(l.stopped)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		if _, err := l.settle(ctx); err != nil && ctx.Err() == nil {
			l.s.log.Warn("collection failed; it is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		case <-l.s.pins.freed:
		case <-tick.C:
		}
	}
}

// settle works until no event is left but those that pins hold back, and returns what that gave back.
func (l *ledger) settle(ctx context.Context) (GCResult, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.settleLocked(ctx)
}

func (l *ledger) settleLocked(ctx context.Context) (GCResult, error) {
	before := l.freed
	for {
		more, err := l.pass(ctx)
		if err != nil || !more {
			r := l.freed
			return GCResult{r.Views - before.Views, r.Nodes - before.Nodes, r.Slots - before.Slots, r.Bytes - before.Bytes}, err
		}
		if err := ctx.Err(); err != nil {
			return GCResult{}, err
		}
	}
}

// Bounds of one commit.
const (
	eventsPerPass = 512
	stepsPerPass  = 4096
)

type queued struct {
	key []byte
	ev  event
}

func (l *ledger) read(ctx context.Context, class byte, after []byte, limit int) (list []queued, err error) {
	prefix := kvKey(kEvent, []byte{class})
	start := prefix
	if after != nil {
		start = append(append([]byte(nil), after...), 0)
	}
	err = l.s.kv.Scan(ctx, kv.Range{Start: start, End: kv.PrefixEnd(prefix)}, func(k, v []byte) error {
		if len(list) == limit {
			return kv.Stop
		}
		ev, err := decodeEvent(v)
		if err != nil {
			return err
		}
		list = append(list, queued{append([]byte(nil), k...), ev})
		return nil
	})
	return list, err
}

// pass commits one step's worth of losses, after all gains. It reports whether another pass may find more.
func (l *ledger) pass(ctx context.Context) (more bool, err error) {
	ready, err := l.ready(ctx)
	if err != nil {
		return false, err
	}
	// Every gain that rests on something in ready was committed before that lost its last pin.
	for {
		gains, err := l.read(ctx, classGain, nil, eventsPerPass)
		if err != nil {
			return false, err
		}
		if len(gains) == 0 {
			break
		}
		if err := l.gain(ctx, gains); err != nil {
			return false, err
		}
	}
	if len(ready) == 0 {
		return false, nil
	}
	return true, l.lose(ctx, ready)
}

// ready returns losses that can be worked off: not those of views and deltas that only pins hold.
func (l *ledger) ready(ctx context.Context) (list []queued, err error) {
	var after []byte
	pinned := map[pin]bool{} // whether only pins hold it
	for len(list) < eventsPerPass {
		some, err := l.read(ctx, classLose, after, eventsPerPass)
		if err != nil || len(some) == 0 {
			return list, err
		}
		after = some[len(some)-1].key
		for _, q := range some {
			waits, held, err := l.waits(ctx, q.ev, pinned)
			if err != nil {
				return nil, err
			}
			if !waits {
				q.ev.held = held
				list = append(list, q)
			}
		}
	}
	return list, nil
}

// waits tells whether only pins hold the view or delta of an event, and whether pins hold it at all. One with an edge has
// nothing to wait for: whoever cuts the last edge queues an event of its own. But as long as it was pinned when the event was
// read, there may be gains that rest on it which aren't counted yet.
func (l *ledger) waits(ctx context.Context, ev event, known map[pin]bool) (waits, held bool, err error) {
	var p pin
	var edges byte
	switch ev.kind {
	case viewLoose:
		p, edges = pin{kView, ev.a}, kViewEdge
	case deltaLoose:
		p, edges = pin{kDelta, ev.a}, kDeltEdge
	default:
		return false, false, nil
	}
	if !l.s.pins.has(p) {
		return false, false, nil
	}
	waits, ok := known[p]
	if ok {
		return waits, true, nil
	}
	waits = true
	prefix := kvKey(edges, be64(ev.a))
	err = l.s.kv.Scan(ctx, kv.Range{Start: prefix, End: kv.PrefixEnd(prefix)}, func(_, _ []byte) error {
		waits = false
		return kv.Stop
	})
	known[p] = waits
	return waits, true, err
}

func (l *ledger) gain(ctx context.Context, gains []queued) error {
	b := l.s.openBooks()
	var batch kv.Batch
	batch.Lazy, batch.Reclaim = true, true
	for _, q := range gains {
		batch.Delete(q.key)
		var err error
		switch q.ev.kind {
		case gainNodes:
			for id := q.ev.a; id < q.ev.b && err == nil; id++ {
				err = l.gainChildren(ctx, b, id)
			}
		case gainNode:
			_, err = b.node(ctx, q.ev.a, 1)
		case gainSlots:
			for _, r := range q.ev.slots {
				if _, err = b.slot(ctx, r, 1); err != nil {
					break
				}
			}
		}
		if err != nil {
			return err
		}
	}
	b.write(&batch)
	return l.s.kv.Commit(ctx, &batch)
}

func (l *ledger) gainChildren(ctx context.Context, b *books, id uint64) error {
	return l.s.eachReference(ctx, id, func(child uint64) error {
		_, err := b.node(ctx, child, 1)
		return err
	}, func(r segment.Ref) error {
		_, err := b.slot(ctx, r, 1)
		return err
	})
}

// eachReference calls back for each reference that a stored tree node holds.
func (s *Store) eachReference(ctx context.Context, id uint64, node func(uint64) error, slot func(segment.Ref) error) error {
	b, err := s.nodes.Node(ctx, tree.ID(id))
	if err != nil {
		return err
	}
	n, err := tree.Decode(b)
	if err != nil {
		return err
	}
	for i := range n.Len() {
		if n.Level() > 0 {
			if err := node(uint64(n.Child(i).ID)); err != nil {
				return err
			}
			continue
		}
		var bad error
		err := slotsOf(string(n.Key(i)), n.Value(i), func(x extent) {
			if bad == nil {
				bad = slot(segment.Ref{Segment: x.seg, Slot: x.slot})
			}
		})
		if err == nil {
			err = bad
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// step is one commit's worth of losses under way.
type step struct {
	l     *ledger
	books *books
	batch kv.Batch
	todo  []event // losses that follow from those done
	later []event // losses of what was pinned meanwhile
	free  []segment.Ref
	cut   map[string]bool // keys that batch deletes
	steps int
	gone  GCResult
	dry   bool   // nothing is committed; pins don't count
	bytes uint64 // of payload that would go with records, rather than with slots
	nodes uint64 // bytes of tree nodes that would go
}

func (st *step) del(key []byte) {
	st.batch.Delete(key)
	st.cut[string(key)] = true
}

func (l *ledger) lose(ctx context.Context, ready []queued) error {
	st := &step{l: l, books: l.s.openBooks(), cut: make(map[string]bool)}
	st.batch.Reclaim = true
	var freed []segment.Ref
	for _, q := range ready {
		if st.steps > stepsPerPass {
			break
		}
		st.batch.Delete(q.key)
		if q.ev.kind == freeSlots {
			freed = append(freed, q.ev.slots...)
			continue
		}
		st.todo = append(st.todo, q.ev)
		for len(st.todo) > 0 && st.steps <= stepsPerPass {
			ev := st.todo[len(st.todo)-1]
			st.todo = st.todo[:len(st.todo)-1]
			if err := st.do(ctx, ev); err != nil {
				return err
			}
		}
	}
	if len(freed) > 0 {
		// Before the event goes: repeated after a crash it does no harm.
		n, err := l.s.freePayload(ctx, freed)
		if err != nil {
			return err
		}
		st.gone.Bytes += n
	}
	if len(st.free) > 0 {
		st.todo = append(st.todo, event{kind: freeSlots, slots: st.free})
	}
	st.todo = append(st.todo, st.later...)
	if n := uint64(len(st.todo)); n > 0 {
		first, err := l.s.eventIDs.next(n)
		if err != nil {
			return err
		}
		for i, ev := range st.todo {
			st.batch.Put(ev.key(first+uint64(i)), ev.encode())
		}
	}
	st.books.write(&st.batch)
	if err := l.s.kv.Commit(ctx, &st.batch); err != nil {
		return err
	}
	l.freed.Views += st.gone.Views
	l.freed.Nodes += st.gone.Nodes
	l.freed.Slots += st.gone.Slots
	l.freed.Bytes += st.gone.Bytes
	return nil
}

func (st *step) do(ctx context.Context, ev event) error {
	st.steps++
	switch ev.kind {
	case loseNode:
		return st.loseNode(ctx, ev.a)
	case loseSlots:
		for _, r := range ev.slots {
			if err := st.loseSlot(ctx, r); err != nil {
				return err
			}
		}
	case viewLoose:
		return st.dropView(ctx, ev)
	case deltaLoose:
		return st.dropDelta(ctx, ev)
	}
	return nil
}

func (st *step) loseSlot(ctx context.Context, r segment.Ref) error {
	n, err := st.books.slot(ctx, r, -1)
	if err == nil && n == 0 {
		st.free = append(st.free, r)
		st.gone.Slots++
	}
	return err
}

func (st *step) loseNode(ctx context.Context, id uint64) error {
	n, err := st.books.node(ctx, id, -1)
	if err != nil || n > 0 {
		return err
	}
	st.batch.Delete(nodeKey(id))
	st.gone.Nodes++
	if st.dry {
		if err := st.weigh(ctx, id); err != nil {
			return err
		}
	}
	return st.l.s.eachReference(ctx, id, func(child uint64) error {
		st.todo = append(st.todo, event{kind: loseNode, a: child})
		return nil
	}, func(r segment.Ref) error { return st.loseSlot(ctx, r) })
}

// weigh adds up what a node would give back that isn't in slots.
func (st *step) weigh(ctx context.Context, id uint64) error {
	b, err := st.l.s.nodes.Node(ctx, tree.ID(id))
	if err != nil {
		return err
	}
	st.nodes += uint64(len(b))
	n, err := tree.Decode(b)
	if err != nil || n.Level() > 0 {
		return err
	}
	for i := range n.Len() {
		if k := n.Key(i); k[0] == planeObject || k[0] == planeVersion {
			st.bytes += recordBytes(n.Value(i))
		}
	}
	return nil
}

// loose reports whether nothing holds a view or delta any more, edges of this very step not counted. An event of one
// that is pinned waits.
func (st *step) loose(ctx context.Context, ev event, kind, edges byte) (bool, error) {
	id := ev.a
	// Pins are looked at first: whoever holds one adds an edge before it lets go.
	pinned := !st.dry && (ev.held || st.l.s.pins.has(pin{kind, id}))
	free := true
	prefix := kvKey(edges, be64(id))
	err := st.l.s.kv.Scan(ctx, kv.Range{Start: prefix, End: kv.PrefixEnd(prefix)}, func(k, _ []byte) error {
		if free = st.cut[string(k)]; !free {
			return kv.Stop
		}
		return nil
	})
	if err == nil && free && pinned {
		st.later = append(st.later, event{kind: ev.kind, a: id})
		return false, nil
	}
	return free, err
}

func (st *step) dropView(ctx context.Context, ev event) error {
	id := ev.a
	free, err := st.loose(ctx, ev, kView, kViewEdge)
	if err != nil || !free || st.cut[string(viewKey(id))] {
		return err
	}
	v, err := st.l.s.readView(ctx, id)
	if errs.Is(err, errs.NotFound) {
		return nil // an earlier event of the same view did it
	}
	if err != nil {
		return err
	}
	st.del(viewKey(id))
	st.gone.Views++
	if v.delta == 0 {
		if v.root.ID != 0 {
			st.todo = append(st.todo, event{kind: loseNode, a: uint64(v.root.ID)})
		}
		return nil
	}
	st.del(viewEdge(v.parent, viewHolder(id)))
	st.del(deltaEdge(v.delta, viewHolder(id)))
	st.todo = append(st.todo, event{kind: viewLoose, a: v.parent}, event{kind: deltaLoose, a: v.delta})
	return nil
}

// dropDelta deletes a log, and with it the log's hold on slots.
func (st *step) dropDelta(ctx context.Context, ev event) error {
	id := ev.a
	free, err := st.loose(ctx, ev, kDelta, kDeltEdge)
	mark := string(kvKey(kDelta, be64(id)))
	if err != nil || !free || st.cut[mark] {
		return err
	}
	st.cut[mark] = true
	err = st.l.s.deltaSlots(ctx, id, func(r segment.Ref) error {
		st.steps++
		return st.loseSlot(ctx, r)
	})
	if err != nil {
		return err
	}
	for _, kind := range []byte{kDelta, kPacked} {
		prefix := kvKey(kind, be64(id))
		st.batch.DeleteRange(prefix, kv.PrefixEnd(prefix))
	}
	return nil
}

// deltaSlots calls f for each slot that a log holds: those in its records, and those that folds packed its payload into.
func (s *Store) deltaSlots(ctx context.Context, id uint64, f func(segment.Ref) error) error {
	var bad error
	slot := func(x extent) {
		if bad == nil {
			bad = f(segment.Ref{Segment: x.seg, Slot: x.slot})
		}
	}
	prefix := kvKey(kDelta, be64(id))
	err := s.kv.Scan(ctx, kv.Range{Start: prefix, End: kv.PrefixEnd(prefix)}, func(_, v []byte) error {
		l, err := decodeLog(v)
		if err != nil {
			return err
		}
		if l.op == logPut {
			if err := slotsOf(l.key, l.val, slot); err != nil {
				return err
			}
		}
		return bad
	})
	if err != nil {
		return err
	}
	prefix = kvKey(kPacked, be64(id))
	return s.kv.Scan(ctx, kv.Range{Start: prefix, End: kv.PrefixEnd(prefix)}, func(_, v []byte) error {
		x, err := decodeExtent(v)
		if err != nil {
			return err
		}
		slot(x)
		return bad
	})
}
