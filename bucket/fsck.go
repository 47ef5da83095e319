package bucket

import (
	"context"
	"fmt"

	"agentrun.dev"
	"agentrun.dev/bucket/segment"
	"agentrun.dev/bucket/tree"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

// maxProblems bounds a report; what is beyond it is counted and repaired, but not listed.
const maxProblems = 1000

// Fsck goes through everything that the store holds, from its buckets down to its slots, and compares what it finds
// with the reference counts (mark and sweep against counts). Writers wait while it runs; readers don't. What it can't
// repair is data that is missing or damaged: it says whose.
func (s *Store) Fsck(ctx context.Context, o FsckOptions) (*FsckReport, error) {
	select {
	case <-s.swept:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.folds.one.Lock()
	defer s.folds.one.Unlock()
	if err := s.retryUnfinished(ctx); err != nil {
		return nil, err
	}
	s.barrier.Lock()
	defer s.barrier.Unlock()
	if err := s.commits.commit(&txn{batch: syncBatch()}); err != nil {
		return nil, err // whatever was queued before is in kv now
	}
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	if _, err := s.ledger.settleLocked(ctx); err != nil {
		return nil, err
	}
	c := &check{s: s, ctx: ctx, o: o, rep: &FsckReport{}, edges: make(map[string]bool), refs: make(map[agentrun.RefID]*refRecord),
		views: make(map[uint64]*viewRecord), pending: make(map[pin]bool), nodes: make(map[uint64]uint32), seen: make(map[uint64]bool),
		slots: make(map[segment.Ref]uint32), doomed: make(map[segment.Ref]bool)}
	for _, step := range []func() error{c.events, c.readRefs, c.readViews, c.holders, c.checkEdges, c.walkTrees, c.walkLogs, c.checkNodes, c.checkCounts, c.checkSlots, c.payload} {
		if err := step(); err != nil {
			return c.rep, err
		}
		if err := ctx.Err(); err != nil {
			return c.rep, err
		}
	}
	return c.rep, c.commit()
}

type check struct {
	s       *Store
	ctx     context.Context
	o       FsckOptions
	rep     *FsckReport
	batch   kv.Batch
	edges   map[string]bool // that should be there
	refs    map[agentrun.RefID]*refRecord
	views   map[uint64]*viewRecord
	pending map[pin]bool // views and deltas that are only waiting for readers to finish
	nodes   map[uint64]uint32
	seen    map[uint64]bool
	slots   map[segment.Ref]uint32
	doomed  map[segment.Ref]bool // slots about to be freed
	dead    []segment.Ref
	unsound bool // something that leads to other records can't be read: what seems to be a leak may hang on it
}

// found reports a problem; repaired says that the batch, or what follows, mends it.
func (c *check) found(kind, where, what string, repaired bool) {
	c.unsound = c.unsound || !repaired && (kind == "corrupt" || kind == "missing")
	repaired = repaired && c.o.Repair
	if repaired {
		c.rep.Repaired++
	}
	if len(c.rep.Problems) < maxProblems {
		c.rep.Problems = append(c.rep.Problems, Problem{Kind: kind, Where: where, What: what, Repaired: repaired})
	}
}

func (c *check) progress(phase string, done, total uint64) {
	if c.o.Progress != nil {
		c.o.Progress(Progress{Phase: phase, Done: done, Total: total})
	}
}

func (c *check) scan(prefix []byte, f func(k, v []byte) error) error {
	return c.s.kv.Scan(c.ctx, prefixRange(prefix), f)
}

// events reads what the ledger still has to do once pins allow it.
func (c *check) events() error {
	c.progress("events", 0, 0)
	return c.scan(kvKey(kEvent), func(_, v []byte) error {
		ev, err := decodeEvent(v)
		if err != nil {
			return err
		}
		switch ev.kind {
		case viewLoose:
			c.pending[pin{kView, ev.a}] = true
		case deltaLoose:
			c.pending[pin{kDelta, ev.a}] = true
		case freeSlots:
			for _, r := range ev.slots {
				c.doomed[r] = true
			}
		}
		return nil
	})
}

func (c *check) readRefs() error {
	c.progress("buckets", 0, 0)
	err := c.scan(kvKey(kRef), func(_, v []byte) error {
		r, err := decodeRef(v)
		if err != nil {
			c.found("corrupt", "bucket", err.Error(), false)
			return nil
		}
		c.refs[r.id] = r
		if !r.gone {
			c.rep.Buckets++
		}
		return nil
	})
	if err != nil {
		return err
	}
	for id, r := range c.refs {
		if r.gone {
			continue
		}
		live, err := c.s.acquire(c.ctx, id)
		if err != nil {
			c.found("corrupt", "bucket "+r.name, err.Error(), false)
			continue
		}
		c.rep.Objects += uint64(max(live.pub.Load().objects, 0))
		c.s.release(live)
	}
	return c.scan(kvKey(kName), func(k, v []byte) error {
		d := dec{b: v}
		err := d.version("name")
		r := c.refs[d.ref()]
		if err != nil || r == nil || r.gone || r.name != string(k[2:]) {
			c.found("missing", "bucket "+string(k[2:]), "its name leads nowhere", true)
			c.batch.Delete(append([]byte(nil), k...))
		}
		return nil
	})
}

func (c *check) readViews() error {
	return c.scan(kvKey(kView), func(k, v []byte) error {
		id := beUint(k[2:])
		view, err := decodeView(v)
		if err != nil {
			c.found("corrupt", fmt.Sprint("view ", id), err.Error(), false)
			return nil
		}
		c.views[id] = view
		c.rep.Views++
		return nil
	})
}

// edge notes that something should hold a view, or a delta, and that the view should be there.
func (c *check) edge(view, delta uint64, h []byte, who string) {
	if view != 0 {
		c.edges[string(viewEdge(view, h))] = true
		if c.views[view] == nil {
			c.found("missing", who, fmt.Sprintf("view %d is not there", view), false)
		}
	}
	if delta != 0 {
		c.edges[string(deltaEdge(delta, h))] = true
	}
}

// holders goes through all that holds views and deltas.
func (c *check) holders() error {
	for id, r := range c.refs {
		who := "bucket " + r.name
		if !r.gone {
			c.edge(r.view, r.delta, holder(heldByRef, id), who)
		}
		if r.origin != nil {
			c.edge(r.origin.view, 0, holder(heldByOrigin, id), who)
		}
		for other, m := range r.merges {
			c.edge(m.view, 0, holder(heldByMerge, id, other[:]), who)
		}
	}
	for id, v := range c.views {
		if v.delta != 0 {
			c.edge(v.parent, v.delta, viewHolder(id), fmt.Sprint("view ", id))
		}
	}
	owner := func(k []byte) (id agentrun.RefID, name string, ok bool) {
		copy(id[:], k[2:])
		r := c.refs[id]
		if r == nil || r.gone {
			return id, "", false
		}
		return id, r.name, true
	}
	err := c.scan(kvKey(kSnap), func(k, v []byte) error {
		id, name, ok := owner(k)
		sn, err := decodeSnap(v)
		if err != nil {
			c.found("corrupt", "snapshot", err.Error(), false)
			return nil
		}
		if !ok {
			c.found("leak", "snapshot", "it belongs to no bucket", true)
			c.batch.Delete(append([]byte(nil), k...))
			return nil
		}
		c.rep.Snapshots++
		c.edge(sn.view, 0, holder(heldBySnap, id, k[len(k)-8:]), "a snapshot of "+name)
		return nil
	})
	if err != nil {
		return err
	}
	err = c.scan(kvKey(kHist), func(k, v []byte) error {
		id, name, ok := owner(k)
		h, err := decodeHist(v)
		if err != nil {
			c.found("corrupt", "history", err.Error(), false)
			return nil
		}
		if !ok {
			c.found("leak", "history", "it belongs to no bucket", true)
			c.batch.Delete(append([]byte(nil), k...))
			return nil
		}
		c.edge(h.view, h.delta, holder(heldByHistory, id, k[len(k)-8:]), "the history of "+name)
		return nil
	})
	if err != nil {
		return err
	}
	return c.uploads()
}

func (c *check) uploads() error {
	return c.scan(kvKey(kPart), func(k, v []byte) error {
		p, err := decodePart(v)
		var id agentrun.RefID
		copy(id[:], k[2:])
		if err != nil {
			c.found("corrupt", "upload part", err.Error(), false)
			return nil
		}
		if r := c.refs[id]; r == nil || r.gone {
			c.found("leak", "upload part", "it belongs to no bucket", true)
			c.batch.Delete(append([]byte(nil), k...))
			return nil
		}
		for _, r := range refsOf(p.extents) {
			c.slots[r]++
		}
		return nil
	})
}

// checkEdges compares the edges that should be there with those that are.
func (c *check) checkEdges() error {
	for _, kind := range []byte{kViewEdge, kDeltEdge} {
		err := c.scan(kvKey(kind), func(k, _ []byte) error {
			if c.edges[string(k)] {
				delete(c.edges, string(k))
				return nil
			}
			id := beUint(k[2:])
			c.found("leak", fmt.Sprintf("edge to %c %d", kind, id), "what it came from is gone", true)
			c.batch.Delete(append([]byte(nil), k...))
			return c.loose(kind, id)
		})
		if err != nil {
			return err
		}
	}
	for k := range c.edges {
		c.found("count", fmt.Sprintf("edge to %c %d", k[1], beUint([]byte(k)[2:])), "it is missing", true)
		c.batch.Put([]byte(k), present())
	}
	held := func(kind byte, id uint64) (bool, error) {
		yes := false
		err := c.scan(kvKey(kind, be64(id)), func(_, _ []byte) error {
			yes = true
			return kv.Stop
		})
		return yes, err
	}
	for id := range c.views {
		ok, err := held(kViewEdge, id)
		if err != nil {
			return err
		}
		if !ok && !c.pending[pin{kView, id}] && !c.s.pins.has(pin{kView, id}) {
			c.found("leak", fmt.Sprint("view ", id), "nothing holds it", true)
			if err := c.loose(kViewEdge, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// loose makes the ledger look at a view or delta again, after the repair.
func (c *check) loose(edge byte, id uint64) error {
	kind := viewLoose
	if edge == kDeltEdge {
		kind = deltaLoose
	}
	n, err := c.s.eventIDs.next(1)
	ev := event{kind: kind, a: id}
	c.batch.Put(ev.key(n), ev.encode())
	return err
}

// walkTrees counts the references from views into trees, and within them.
func (c *check) walkTrees() error {
	for id, v := range c.views {
		if v.delta != 0 || v.root.ID == 0 {
			continue
		}
		root := uint64(v.root.ID)
		c.nodes[root]++
		if err := c.walkNode(root, fmt.Sprint("view ", id)); err != nil {
			return err
		}
		if c.o.Payload {
			if err := c.s.tree.Check(c.ctx, v.root); err != nil {
				c.found("corrupt", fmt.Sprint("view ", id), err.Error(), false)
			}
		}
	}
	return nil
}

func (c *check) walkNode(id uint64, where string) error {
	if c.seen[id] {
		return nil
	}
	c.seen[id] = true
	if c.rep.Nodes++; c.rep.Nodes%1024 == 0 {
		c.progress("trees", c.rep.Nodes, 0)
		if err := c.ctx.Err(); err != nil {
			return err
		}
	}
	b, err := c.s.nodes.Node(c.ctx, tree.ID(id))
	var n *tree.Node
	if err == nil {
		n, err = tree.Decode(b)
	}
	if err != nil {
		c.found("corrupt", fmt.Sprintf("%s, node %d", where, id), err.Error(), false)
		return nil
	}
	for i := range n.Len() {
		if n.Level() > 0 {
			child := uint64(n.Child(i).ID)
			c.nodes[child]++
			if err := c.walkNode(child, where); err != nil {
				return err
			}
			continue
		}
		key := string(n.Key(i))
		if err := slotsOf(key, n.Value(i), func(x extent) { c.slots[segment.Ref{Segment: x.seg, Slot: x.slot}]++ }); err != nil {
			c.found("corrupt", fmt.Sprintf("%s, node %d, key %q", where, id, clip(key)), err.Error(), false)
		}
	}
	return nil
}

// walkLogs counts the references from deltas' logs.
func (c *check) walkLogs() error {
	ids := make(map[uint64]bool)
	for _, kind := range []byte{kDelta, kPacked} {
		err := c.scan(kvKey(kind), func(k, v []byte) error {
			ids[beUint(k[2:])] = true
			add := func(x extent) { c.slots[segment.Ref{Segment: x.seg, Slot: x.slot}]++ }
			if kind == kPacked {
				x, err := decodeExtent(v)
				if err == nil {
					add(x)
				}
				return err
			}
			l, err := decodeLog(v)
			if err == nil && l.op == logPut {
				err = slotsOf(l.key, l.val, add)
			}
			if err != nil {
				c.found("corrupt", fmt.Sprint("delta ", beUint(k[2:])), err.Error(), false)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for id := range ids {
		held := c.pending[pin{kDelta, id}] || c.s.pins.has(pin{kDelta, id})
		err := c.scan(kvKey(kDeltEdge, be64(id)), func(_, _ []byte) error {
			held = true
			return kv.Stop
		})
		if err != nil {
			return err
		}
		if !held {
			c.found("leak", fmt.Sprint("delta ", id), "nothing holds it", true)
			if err := c.loose(kDeltEdge, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkNodes finds nodes that no tree has.
func (c *check) checkNodes() error {
	return c.scan(kvKey(kNode), func(k, _ []byte) error {
		id := beUint(k[2:])
		if c.seen[id] {
			return nil
		}
		c.found("leak", fmt.Sprint("node ", id), "no tree has it", true)
		c.batch.Delete(append([]byte(nil), k...))
		return c.flush()
	})
}

// checkCounts compares the counts found with those kept.
func (c *check) checkCounts() error {
	c.progress("counts", 0, 0)
	want := make(map[group]counts)
	at := func(g group) counts {
		if want[g] == nil {
			want[g] = make(counts, countGroup)
		}
		return want[g]
	}
	for id, n := range c.nodes {
		g, i := nodeGroup(id)
		at(g)[i] = n
	}
	for r, n := range c.slots {
		g, i := slotGroup(r)
		at(g)[i] = n
	}
	c.nodes = nil
	err := c.scan(kvKey(kCount), func(k, v []byte) error {
		g := group{beUint(k[3:]), beUint(k[11:])}
		have, err := decodeCounts(v)
		if err != nil {
			c.found("corrupt", "counts", err.Error(), true)
			have = make(counts, countGroup)
		}
		w := at(g)
		bad := false
		for i := range have {
			if have[i] != w[i] {
				c.found("count", g.name(i), fmt.Sprintf("%d references are counted, %d exist", have[i], w[i]), true)
				bad = true
			}
		}
		if bad {
			c.batch.Put(append([]byte(nil), k...), w.encode())
		}
		delete(want, g)
		return nil
	})
	if err != nil {
		return err
	}
	for g, w := range want {
		bad := false
		for i := range w {
			if w[i] != 0 {
				c.found("count", g.name(i), fmt.Sprintf("0 references are counted, %d exist", w[i]), true)
				bad = true
			}
		}
		if bad {
			c.batch.Put(g.key(), w.encode())
		}
	}
	return nil
}

func (g group) name(i int) string {
	n := g.first*countGroup + uint64(i)
	if g.segment == 0 {
		return fmt.Sprint("node ", n)
	}
	return fmt.Sprintf("segment %d, slot %d", g.segment, n)
}

// checkSlots finds slots that nothing refers to, and references to slots that aren't there.
func (c *check) checkSlots() error {
	defer func(was bool) { c.unsound = was }(c.unsound) // as for damaged payload
	list, err := c.s.segments.Segments(c.ctx)
	if err != nil {
		return err
	}
	there := make(map[segment.Ref]bool, len(c.slots))
	var loose []segment.Ref
	for _, seg := range list {
		err := c.s.segments.Slots(c.ctx, seg.ID, func(slot uint32, _ int64) error {
			r := segment.Ref{Segment: seg.ID, Slot: slot}
			c.rep.Slots++
			switch {
			case c.slots[r] > 0:
				there[r] = true
			case !c.doomed[r]:
				loose = append(loose, r)
			}
			return nil
		})
		if err != nil {
			c.found("corrupt", fmt.Sprint("segment ", seg.ID), err.Error(), false)
		}
	}
	// A slot may have been seen before it was noted as staged.
	c.s.staged.put.Lock()
	c.s.staged.put.Unlock() //nolint:staticcheck // only to wait for those who hold it
	for _, r := range loose {
		if c.s.staged.has(r) {
			continue
		}
		if _, err := c.s.segments.Size(c.ctx, r); !errs.Is(err, errs.NotFound) { // else it was discarded meanwhile
			c.found("leak", fmt.Sprintf("segment %d, slot %d", r.Segment, r.Slot), "nothing refers to it", true)
			c.dead = append(c.dead, r)
		}
	}
	for r := range c.slots {
		if !there[r] {
			c.found("missing", fmt.Sprintf("segment %d, slot %d", r.Segment, r.Slot), "something refers to it", false)
		}
	}
	return nil
}

// payload reads every slot, if asked to.
func (c *check) payload() error {
	if !c.o.Payload {
		return nil
	}
	list, err := c.s.segments.Segments(c.ctx)
	if err != nil {
		return err
	}
	// Damaged payload leads to nothing else, so it keeps nothing from being repaired.
	defer func(was bool) { c.unsound = was }(c.unsound)
	for i, seg := range list {
		c.progress("payload", uint64(i), uint64(len(list)))
		err := c.s.segments.Verify(c.ctx, seg.ID, func(r segment.Ref, err error) {
			if err == nil {
				return
			}
			c.found("corrupt", fmt.Sprintf("segment %d, slot %d", r.Segment, r.Slot), err.Error(), false)
		})
		if errs.Is(err, errs.Corrupt) {
			c.found("corrupt", fmt.Sprint("segment ", seg.ID), err.Error(), false)
		} else if err != nil && !errs.Is(err, errs.NotFound) {
			return err
		}
		c.rep.Bytes += uint64(seg.Bytes)
	}
	return nil
}

// flush writes a large repair in parts.
func (c *check) flush() error {
	if !c.o.Repair || len(c.batch.Deletes) < 10_000 {
		return nil
	}
	return c.commit()
}

// commit carries out the repairs, unless that could lose data: a record that can't be read may be what leads to all that
// now seems to be held by nothing.
func (c *check) commit() error {
	if !c.o.Repair {
		return nil
	}
	if c.unsound {
		c.batch, c.dead = kv.Batch{}, nil
		if c.rep.Repaired > 0 {
			c.rep.Repaired = 0
			for i := range c.rep.Problems {
				c.rep.Problems[i].Repaired = false
			}
			c.found("corrupt", "store", "nothing was repaired: what seems to be a leak may hang on what can't be read", false)
		}
		return nil
	}
	if !c.batch.Empty() {
		c.batch.Reclaim = true
		if err := c.s.kv.Commit(c.ctx, &c.batch); err != nil {
			return err
		}
		c.batch = kv.Batch{}
	}
	dead := c.dead
	c.dead = nil
	if len(dead) > 0 {
		if err := c.s.segments.Free(c.ctx, dead); err != nil {
			return err
		}
	}
	c.s.ledger.poke()
	return nil
}
