package bucket

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"agentrun.dev/bucket/segment"
	"agentrun.dev/bucket/tree"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

// maxDepth is how many deltas a view may lie above a tree before it is folded whatever its size.
const maxDepth = 8

// Bounds of what a delta gathers before it is folded.
const (
	foldPayload = 64 << 20 // logged payload, in bytes
	foldMax     = 32 << 20 // changes, in bytes, however large the tree
	crowd       = 4        // writers wait at this many times a bound while a fold is under way
)

// folder runs folds in the background, one at a time: they are bound by the disk and by one another's nodes.
type folder struct {
	s      *Store
	jobs   chan func(context.Context)
	mu     sync.Mutex
	queued map[uint64]bool // views
	wg     sync.WaitGroup
	closed bool // guarded by mu
	done   atomic.Uint64
	one    sync.Mutex // one tree is built at a time, be it by a fold, a merge or a rename
}

func (f *folder) start(s *Store) {
	f.s, f.queued = s, make(map[uint64]bool)
	f.jobs = make(chan func(context.Context), 4096)
	f.wg.Add(1)
	go func() {
		defer f.wg.Done()
		for {
			select {
			case <-s.ctx.Done():
				f.drain()
				return
			case job := <-f.jobs:
				job(s.ctx)
			}
		}
	}()
}

// drain ends what is queued when the store is closed, so that no writer goes on waiting for it.
func (f *folder) drain() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	for {
		select {
		case job := <-f.jobs:
			job(f.s.ctx)
		default:
			return
		}
	}
}

// wait waits for the running fold, after the store's context has ended.
func (f *folder) wait() { f.wg.Wait() }

func (f *folder) submit(job func(context.Context)) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	select {
	case f.jobs <- job:
		return true
	default:
		return false // the next write or cut tries again
	}
}

// limit is how much a delta over a tree gathers: growing with the tree, so that a fold's cost per change stays the same.
func (s *Store) foldLimit(root tree.Root) int64 {
	return max(s.foldMin, min(int64(root.Count)*32, foldMax))
}

func (s *Store) full(st *snap) bool {
	return st.meta >= s.foldLimit(st.base.root) || st.payload >= foldPayload
}

// crowded reports whether writers must wait for the fold that is under way. The caller holds mu.
func (r *ref) crowded() bool {
	return r.tip.meta >= crowd*r.s.foldLimit(r.tip.base.root) || r.tip.payload >= crowd*foldPayload
}

// consider starts a fold of a ref if its delta is large enough.
func (f *folder) consider(r *ref) {
	if !f.s.full(r.pub.Load()) {
		return
	}
	r.mu.Lock()
	due := !r.fold && !r.gone && f.s.full(r.tip)
	if due {
		r.fold = true
	}
	r.mu.Unlock()
	if !due {
		return
	}
	f.s.mu.Lock()
	r.users++
	f.s.mu.Unlock()
	job := func(ctx context.Context) {
		defer f.s.release(r)
		err := f.s.foldRef(ctx, r)
		if err != nil && ctx.Err() == nil && !errs.Is(err, errs.NotFound) {
			f.s.log.Warn("a fold failed; it is tried again", "bucket", r.record().name, "error", err)
		}
		r.mu.Lock()
		r.fold = false
		r.rooms.Broadcast()
		r.mu.Unlock()
		if err == nil {
			f.consider(r)
		}
	}
	if !f.submit(job) {
		r.mu.Lock()
		r.fold = false
		r.rooms.Broadcast()
		r.mu.Unlock()
		f.s.release(r)
	}
}

// view starts the fold of a view that isn't a tree yet.
func (f *folder) view(id uint64) {
	f.mu.Lock()
	due := !f.queued[id]
	f.queued[id] = true
	f.mu.Unlock()
	if !due {
		return
	}
	forget := func() {
		f.mu.Lock()
		delete(f.queued, id)
		f.mu.Unlock()
	}
	ok := f.submit(func(ctx context.Context) {
		forget()
		if err := f.s.foldView(ctx, id); err != nil && ctx.Err() == nil && !errs.Is(err, errs.NotFound) {
			f.s.log.Warn("a fold failed", "view", id, "error", err)
		}
	})
	if !ok {
		forget()
	}
}

// foldView replaces a view's representation by a tree. What it shows stays the same, and whoever holds it profits.
func (s *Store) foldView(ctx context.Context, id uint64) error {
	s.folds.one.Lock()
	defer s.folds.one.Unlock()
	return s.foldViewLocked(ctx, id)
}

func (s *Store) foldViewLocked(ctx context.Context, id uint64) error {
	v, err := s.readView(ctx, id)
	if err != nil || v.delta == 0 {
		return err
	}
	st, err := s.state(ctx, id, 0, 0)
	if err != nil {
		return err
	}
	defer st.base.release()
	b := s.build(ctx, v.delta)
	root, err := b.fold(ctx, st)
	if err == nil {
		err = s.swapView(ctx, id, v, root, b)
	}
	if err != nil {
		b.abandon(ctx, err)
	}
	return err
}

// swapView commits the tree that stands for a view from now on.
func (s *Store) swapView(ctx context.Context, id uint64, v *viewRecord, root tree.Root, b *builder) error {
	s.barrier.RLock()
	defer s.barrier.RUnlock()
	t := &txn{batch: kv.Batch{Reclaim: true}}
	rooted := &viewRecord{root: root, objects: v.objects, bytes: v.bytes}
	enc, err := rooted.encode()
	if err != nil {
		return err
	}
	t.put(viewKey(id), enc)
	if err := b.finish(ctx, t, root); err != nil {
		return err
	}
	if err := s.dropEdges(t, v.parent, v.delta, viewHolder(id)); err != nil {
		return err
	}
	if err := s.commits.commit(t); err != nil {
		return err
	}
	s.mu.Lock()
	s.folded[id] = root.ID
	s.mu.Unlock()
	s.folds.done.Add(1)
	s.ledger.poke()
	return nil
}

// foldRef moves a ref's delta into a tree, while writers go on in a new delta.
func (s *Store) foldRef(ctx context.Context, r *ref) error {
	s.folds.one.Lock()
	defer s.folds.one.Unlock()
	r.mu.Lock()
	below := r.rec.view
	r.mu.Unlock()
	if v, err := s.readView(ctx, below); err != nil {
		return err
	} else if v.delta != 0 {
		// What it inherited is folded first and once, for all that are built on it.
		if err := s.foldViewLocked(ctx, below); err != nil {
			return err
		}
		return r.refresh(ctx)
	}
	sealed, err := s.seal(ctx, r)
	if err != nil {
		return err
	}
	if sealed == nil {
		// Nothing is logged, so what is in memory above the tree is left over from a change that failed halfway.
		return r.refresh(ctx)
	}
	defer sealed.release()
	root := sealed.v.root
	if sealed.v.delta != 0 { // else a fork made the same view, and it has been folded already
		b := s.build(ctx, sealed.v.delta)
		if root, err = b.fold(ctx, sealed.st); err == nil {
			err = s.swapView(ctx, sealed.id, sealed.v, root, b)
		}
		if err != nil {
			b.abandon(ctx, err)
			return err
		}
	}
	return r.settle(ctx, sealed, root)
}

// refresh reads the ref's state anew because a view below it has become a tree.
func (r *ref) refresh(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.ready(); err != nil {
		return err
	}
	r.quiesce()
	return r.reload(ctx)
}

// sealing is a delta that has been closed: the view that it makes with what was below it, and the state of that.
type sealing struct {
	id uint64
	v  *viewRecord
	st *snap // with a hold on its base
}

func (x *sealing) release() {
	x.st.base.s.pins.drop([]pin{{kView, x.id}})
	x.st.base.release()
}

// seal closes a ref's delta: what was written becomes a view, and a new delta begins above it. Returns nil if there is
// nothing to seal.
func (s *Store) seal(ctx context.Context, r *ref) (*sealing, error) {
	s.barrier.RLock()
	defer s.barrier.RUnlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.ready(); err != nil {
		return nil, err
	}
	if !r.wrote {
		return nil, nil
	}
	t := &txn{refs: []*ref{r}}
	id, _, err := r.cutView(ctx, t)
	if err != nil {
		return nil, err
	}
	delta, err := s.objIDs.next(1)
	if err != nil {
		return nil, err
	}
	old := r.rec
	rec := old.clone()
	rec.view, rec.delta, rec.since = id, delta, s.clock.take(1)
	t.stamp(rec.since)
	h := holder(heldByRef, r.id)
	t.put(refKey(r.id), rec.encode())
	t.put(viewEdge(id, h), present())
	t.put(deltaEdge(delta, h), present())
	if s.history > 0 {
		hh := holder(heldByHistory, r.id, be64(old.since))
		t.put(histKey(r.id, old.since), (&histRecord{end: rec.since, view: old.view, delta: old.delta}).encode())
		t.put(viewEdge(old.view, hh), present())
		t.put(deltaEdge(old.delta, hh), present())
	}
	if err := s.dropEdges(t, old.view, old.delta, h); err != nil {
		return nil, err
	}
	// Who reads the tip from now on reads the new delta, too.
	st, ob := *r.tip, r.tip.base
	st.base = ob.with(pin{kDelta, delta})
	t.undo = st.base.release
	t.publish = func() {
		r.pub.Store(&st)
		ob.release()
	}
	if err := r.queueRecord(t, rec); err != nil {
		st.base.release()
		return nil, err
	}
	s.pins.add(pin{kView, id}) // the bucket may be deleted while the tree is being built
	r.forgetCut()              // only now: it may be this very view, which has no edge before the commit
	r.tip, r.wrote = &st, false
	sealed := &sealing{id: id, st: r.tip}
	sealed.st.base.hold()
	r.next = emptyTip(r.tip.base, r.tip.seq)
	err = t.wait()
	if err == nil {
		sealed.v, err = s.readView(ctx, id)
	}
	if err != nil {
		sealed.release()
		return nil, errs.New(errs.KindOf(err), "fold", rec.name, err)
	}
	return sealed, nil
}

// settle puts a ref onto the tree that its sealed delta went into.
func (r *ref) settle(ctx context.Context, sealed *sealing, root tree.Root) error {
	t, err := r.rebase(ctx, sealed.id, root)
	if err == nil && t != nil {
		err = t.wait()
	}
	return err
}

// rebase makes the tip what was written since a seal, over a new tree that is stored as a view. It returns the
// transaction that makes this visible.
func (r *ref) rebase(ctx context.Context, view uint64, root tree.Root) (*txn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone {
		return nil, nil
	}
	if r.s.commits.isPoisoned(r) || r.next == nil {
		r.quiesce() // a commit failed meanwhile: memory may lag behind
		return nil, r.reload(ctx)
	}
	pins := []pin{{kView, view}, {kDelta, r.rec.delta}}
	r.s.pins.add(pins...)
	b := newBase(r.s, root, pins)
	st := &snap{base: b, idx: r.next.idx, cut: r.next.cut, seq: r.tip.seq, objects: r.tip.objects, bytes: r.tip.bytes, meta: r.next.meta, payload: r.next.payload}
	old := r.tip.base
	// Readers may see the new tip only once all that it contains is durable, so this takes its place in the queue.
	t := &txn{refs: []*ref{r}, lazy: true, undo: b.release, publish: func() {
		r.pub.Store(st)
		old.release()
	}}
	if err := r.s.commits.enqueue(t); err != nil {
		b.release()
		return nil, err
	}
	r.tip, r.next, r.newest = st, nil, t
	return t, nil
}

// isPoisoned reports whether an earlier commit of the ref failed, without clearing it.
func (c *committer) isPoisoned(r *ref) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return r.poison != nil
}

// builder stores a tree's nodes, and packs payload into slots, before a transaction refers to them.
type builder struct {
	s       *Store
	first   uint64
	next    uint64
	end     uint64
	batch   kv.Batch
	size    int
	err     error
	memo    bool // other views are built on the delta: note where its payload went
	delta   uint64
	packed  []kv.Pair
	slots   []segment.Ref // packed so far
	pending bool
}

// build begins a tree out of a delta.
func (s *Store) build(ctx context.Context, delta uint64) *builder {
	b := &builder{s: s, delta: delta}
	if delta != 0 {
		views := 0
		prefix := kvKey(kDeltEdge, be64(delta), []byte{heldByView})
		b.err = s.kv.Scan(ctx, prefixRange(prefix), func(_, _ []byte) error {
			views++
			return nil
		})
		b.memo = views > 1
	}
	return b
}

// nodeBlock is how many node ids a builder reserves at once.
const nodeBlock = 4096

// Put stores a node and returns its id. Ids of one tree needn't be contiguous, but each block is.
func (b *builder) Put(encoded []byte) (tree.ID, error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.first == 0 || b.next == b.end {
		if b.first != 0 {
			return 0, errs.Msg(errs.TooLarge, "fold", "", "a tree has more nodes than were reserved")
		}
		// One contiguous run for the whole tree: what an unfinished one leaves is then one range.
		first, err := b.s.nodeIDs.next(maxNodes)
		if err != nil {
			return 0, err
		}
		b.first, b.next, b.end = first, first, first+maxNodes
		var mark kv.Batch
		mark.Put(kvKey(kPending, be64(first)), append(present(), (&enc{}).varint(b.end)...))
		mark.Reclaim = true
		if err := b.s.kv.Commit(context.Background(), &mark); err != nil {
			return 0, err
		}
		b.pending = true
	}
	id := b.next
	b.next++
	b.batch.Put(nodeKey(id), append([]byte(nil), encoded...))
	if b.size += len(encoded); b.size >= 4<<20 {
		b.flush()
	}
	return tree.ID(id), b.err
}

// maxNodes bounds the nodes of one fold: 2^32 of 4 KiB would be 16 TiB.
const maxNodes = 1 << 32

func (e *enc) varint(v uint64) []byte {
	e.u(v)
	return e.b
}

func (b *builder) flush() {
	if b.err != nil || b.batch.Empty() {
		return
	}
	b.batch.Lazy, b.batch.Reclaim = true, true
	b.err = b.s.kv.Commit(context.Background(), &b.batch)
	b.batch, b.size = kv.Batch{}, 0
}

// finish makes everything durable that the tree is made of and adds to t what counts it in.
func (b *builder) finish(ctx context.Context, t *txn, root tree.Root) error {
	b.flush()
	if b.err != nil {
		return b.err
	}
	if len(b.slots) > 0 {
		if err := b.s.segments.Sync(ctx); err != nil {
			return err
		}
	}
	if b.pending {
		t.del(kvKey(kPending, be64(b.first)))
		if b.next > b.first {
			if err := t.event(b.s, event{kind: gainNodes, a: b.first, b: b.next}); err != nil {
				return err
			}
		}
	}
	if root.ID != 0 {
		if err := t.event(b.s, event{kind: gainNode, a: uint64(root.ID)}); err != nil {
			return err
		}
	}
	if len(b.packed) > 0 {
		// The delta holds these slots as well, for the other views that are built on it.
		t.batch.Puts = append(t.batch.Puts, b.packed...)
		var own []extent
		for _, p := range b.packed {
			x, err := decodeExtent(p.Value)
			if err != nil {
				return err
			}
			own = append(own, x)
		}
		return t.gain(b.s, own)
	}
	return nil
}

// abandon gives back what a tree took that wasn't published because of an error. If it may have been published all the
// same, it leaves everything to the next opening.
func (b *builder) abandon(ctx context.Context, err error) {
	if unknown(err) {
		b.s.unclean.Store(true)
		return
	}
	ctx = context.WithoutCancel(ctx)
	if len(b.slots) > 0 {
		if err := b.s.segments.Free(ctx, b.slots); err != nil {
			b.s.log.Warn("packed payload could not be given back", "error", err)
		}
	}
	if !b.pending {
		return
	}
	var batch kv.Batch
	batch.DeleteRange(nodeKey(b.first), nodeKey(b.end))
	batch.Delete(kvKey(kPending, be64(b.first)))
	batch.Reclaim = true
	if err := b.s.kv.Commit(ctx, &batch); err != nil {
		b.s.log.Warn("an unfinished tree stays for now", "error", err)
		b.s.mu.Lock()
		b.s.unfinished = append(b.s.unfinished, batch)
		b.s.mu.Unlock()
	}
}

// retryUnfinished removes what abandoned trees left because the disk failed.
func (s *Store) retryUnfinished(ctx context.Context) error {
	s.mu.Lock()
	list := s.unfinished
	s.unfinished = nil
	s.mu.Unlock()
	for i := range list {
		if err := s.kv.Commit(ctx, &list[i]); err != nil {
			s.mu.Lock()
			s.unfinished = append(s.unfinished, list[i:]...)
			s.mu.Unlock()
			return err
		}
	}
	return nil
}

// fold applies a state's index to its tree.
func (b *builder) fold(ctx context.Context, st *snap) (tree.Root, error) {
	return b.s.tree.Apply(ctx, st.base.root, b.edits(ctx, st), b)
}

// edits streams a state's index as edits of its tree.
func (b *builder) edits(ctx context.Context, st *snap) tree.Edits {
	return func(yield func(tree.Edit, error) bool) {
		spans := make([]span, 0, st.cut.Len())
		st.cut.Scan(func(sp span) bool {
			spans = append(spans, sp)
			return true
		})
		stop := errors.New("stop")
		var fail error
		st.idx.Scan(func(e *entry) bool {
			for len(spans) > 0 && spans[0].start <= e.key {
				if !yield(tree.Edit{Key: []byte(spans[0].start), End: []byte(spans[0].end), Delete: true}, nil) {
					fail = stop
					return false
				}
				spans = spans[1:]
			}
			ed := tree.Edit{Key: []byte(e.key), Delete: e.val == nil}
			if e.val != nil {
				val, err := b.settled(ctx, e.key, record{e.val, e.loc})
				if err != nil {
					yield(tree.Edit{}, err)
					fail = err
					return false
				}
				ed.Value = val
			}
			if !yield(ed, nil) {
				fail = stop
				return false
			}
			return true
		})
		for fail == nil && len(spans) > 0 {
			if !yield(tree.Edit{Key: []byte(spans[0].start), End: []byte(spans[0].end), Delete: true}, nil) {
				return
			}
			spans = spans[1:]
		}
	}
}

// settled returns the form that a record has in a tree: logged bytes packed into a slot, large metadata spilled.
func (b *builder) settled(ctx context.Context, key string, r record) ([]byte, error) {
	if key[0] != planeObject && key[0] != planeVersion {
		return r.val, nil
	}
	if recordFlags(r.val)&flagLogged == 0 && len(r.val) <= maxSpilled {
		return r.val, nil
	}
	o, spilled, err := decodeObject("", r.val)
	if err != nil {
		return nil, err
	}
	if o.data.logged {
		x, err := b.pack(ctx, r.loc)
		if err != nil {
			return nil, err
		}
		o.data = content{extents: []extent{x}}
	}
	if spilled != nil {
		return encodeObject(o, spilled), nil
	}
	val := encodeObject(o, nil)
	if len(val) <= maxSpilled {
		return val, nil
	}
	var e enc
	e.spillable(o)
	x, err := b.slot(ctx, e.b)
	if err != nil {
		return nil, err
	}
	return encodeObject(o, &x), nil
}

func (b *builder) slot(ctx context.Context, p []byte) (extent, error) {
	ref, err := b.s.segments.Put(ctx, p)
	if err != nil {
		return extent{}, err
	}
	b.slots = append(b.slots, ref)
	return extent{ref.Segment, ref.Slot, 0, int64(len(p))}, nil
}

// pack puts logged payload into a slot, or finds where an earlier fold put it.
func (b *builder) pack(ctx context.Context, loc logLoc) (extent, error) {
	if val, err := b.s.kv.Get(ctx, packedKey(loc)); err == nil {
		return decodeExtent(val)
	} else if !errs.Is(err, errs.NotFound) {
		return extent{}, err
	}
	p, err := b.s.logged(ctx, loc)
	if err != nil {
		return extent{}, err
	}
	x, err := b.slot(ctx, p)
	if err == nil && b.memo && loc.delta == b.delta {
		b.packed = append(b.packed, kv.Pair{Key: packedKey(loc), Value: encodeExtent(x)})
	}
	return x, err
}
