package bucket

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"agentrun.dev/bucket/tree"
	"agentrun.dev/errs"
	"github.com/tidwall/btree"
)

// entry is the latest record of a plane key in the deltas above a tree. Entries never change once they are in an index.
type entry struct {
	key string
	val []byte // nil: the key is deleted
	loc logLoc // where the entry stands in the log, and with it the payload of a logged object
}

// size is what an entry counts towards a fold, in bytes: roughly what it takes in memory.
func (e *entry) size() int64 { return int64(len(e.key) + len(e.val) + 96) }

// span is a run of keys, start ≤ key < end, that a range deletion hides from the tree below.
type span struct{ start, end string }

type index = btree.BTreeG[*entry]
type spans = btree.BTreeG[span]

var noLocks = btree.Options{NoLocks: true}

func newIndex() *index {
	return btree.NewBTreeGOptions(func(a, b *entry) bool { return a.key < b.key }, noLocks)
}

func newSpans() *spans {
	return btree.NewBTreeGOptions(func(a, b span) bool { return a.start < b.start }, noLocks)
}

// base is a tree together with whatever must not be collected while something in memory reads through it.
type base struct {
	s    *Store
	root tree.Root
	pins []pin
	refs atomic.Int64
}

// newBase takes over one hold of each pin.
func newBase(s *Store, root tree.Root, pins []pin) *base {
	b := &base{s: s, root: root, pins: pins}
	b.refs.Store(1)
	return b
}

// with returns another base on the same tree, held once, that keeps more: the delta that is written from now on. The
// caller knows b to be held.
func (b *base) with(more ...pin) *base {
	pins := append(slices.Clone(b.pins), more...)
	b.s.pins.add(pins...)
	return newBase(b.s, b.root, pins)
}

// hold keeps a base that the caller knows to be held already.
func (b *base) hold() *base {
	b.refs.Add(1)
	return b
}

// tryHold keeps a base unless its last hold is gone.
func (b *base) tryHold() bool {
	for {
		n := b.refs.Load()
		if n == 0 {
			return false
		}
		if b.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (b *base) release() {
	if b.refs.Add(-1) == 0 {
		b.s.pins.drop(b.pins)
	}
}

// snap is a state of a bucket that never changes: a tree, and the changes since it was built. Index and spans are
// copy-on-write, so a snap of a living bucket costs O(1).
type snap struct {
	base    *base
	idx     *index
	cut     *spans
	seq     uint64 // the last write that it shows
	objects int64
	bytes   int64
	meta    int64 // size of the index: what a fold would move into the tree
	payload int64 // logged payload in the index, in bytes
}

// tip is a state being made: a copy of another, to change until it is frozen.
type tip struct{ snap }

// newTip copies a state. Only the state's owner may, and one at a time. The base is shared, without a hold of its own.
func newTip(s *snap) *tip {
	t := &tip{*s}
	t.idx, t.cut = s.idx.Copy(), s.cut.Copy()
	return t
}

// emptyTip starts directly on a tree.
func emptyTip(b *base, seq uint64) *tip {
	return &tip{snap{base: b, idx: newIndex(), cut: newSpans(), seq: seq, objects: int64(b.root.Count), bytes: int64(b.root.Bytes)}}
}

func (t *tip) set(e *entry) {
	if old, had := t.idx.Set(e); had {
		t.meta -= old.size()
		t.payload -= old.logged()
	}
	t.meta += e.size()
	t.payload += e.logged()
}

// logged is how many bytes of payload stand in the entry's log record.
func (e *entry) logged() int64 {
	if e.key[0] != planeObject && e.key[0] != planeVersion || e.val == nil {
		return 0
	}
	return loggedBytes(e.val)
}

// deleteRange hides start ≤ key < end of the tree and forgets what the index has there.
func (t *tip) deleteRange(start, end string) {
	var gone []*entry
	t.idx.Ascend(&entry{key: start}, func(e *entry) bool {
		if e.key >= end {
			return false
		}
		gone = append(gone, e)
		return true
	})
	for _, e := range gone {
		t.idx.Delete(e)
		t.meta -= e.size()
		t.payload -= e.logged()
	}
	sp := span{start, end}
	var merged []span
	t.cut.Descend(span{start: start}, func(o span) bool {
		if o.end >= start {
			merged = append(merged, o)
		}
		return false
	})
	t.cut.Ascend(span{start: start}, func(o span) bool {
		if o.start > end {
			return false
		}
		merged = append(merged, o)
		return true
	})
	for _, o := range merged {
		t.cut.Delete(o)
		sp.start, sp.end = min(sp.start, o.start), max(sp.end, o.end)
	}
	t.cut.Set(sp)
	t.meta += int64(len(start) + len(end) + 96)
}

// hidden returns the span that hides a key of the tree, if one does.
func (s *snap) hidden(key string) (sp span, yes bool) {
	if s.cut.Len() == 0 {
		return sp, false
	}
	s.cut.Descend(span{start: key}, func(o span) bool {
		sp, yes = o, key < o.end
		return false
	})
	return sp, yes
}

// record is a key's value in some state. A nil val is absence.
type record struct {
	val []byte
	loc logLoc // zero if it comes from the tree
}

func (s *snap) lookup(ctx context.Context, key string) (record, error) {
	if s.idx.Len() > 0 {
		if e, ok := s.idx.Get(&entry{key: key}); ok {
			return record{e.val, e.loc}, nil
		}
	}
	if s.base.root.ID == 0 {
		return record{}, nil
	}
	if _, yes := s.hidden(key); yes {
		return record{}, nil
	}
	val, err := s.base.s.tree.Get(ctx, s.base.root, []byte(key))
	return record{val: val}, err
}

// cursor goes through the records of a state in order of key, index and tree merged. It stands before the first key.
type cursor struct {
	s       *snap
	end     string // exclusive; "" is unbounded
	tree    *tree.Iter
	idx     btree.IterG[*entry]
	idxOK   bool
	treeKey string
	treeOK  bool
	key     string
	rec     record
	err     error
	from    string
	moved   bool // a seek is due before the next key
	begun   bool
}

func (s *snap) scan(start, end string) *cursor {
	return &cursor{s: s, end: end, from: start, moved: true}
}

// seek makes the following next go to the first key ≥ key. It only goes forward.
func (c *cursor) seek(key string) {
	if key > c.from {
		c.from, c.moved = key, true
	}
}

func (c *cursor) start(ctx context.Context) {
	if c.tree == nil && c.s.base.root.ID != 0 {
		c.tree = c.s.base.s.tree.Iter(c.s.base.root)
	}
	if !c.begun {
		c.idx, c.begun = c.s.idx.Iter(), true
	}
	if !c.treeOK || c.treeKey < c.from {
		c.treeOK = c.tree != nil
		if c.treeOK {
			c.tree.Seek(ctx, []byte(c.from))
			c.settle(ctx)
		}
	}
	if !c.idxOK || c.idx.Item().key < c.from {
		c.idxOK = c.idx.Seek(&entry{key: c.from})
	}
	c.moved = false
}

// settle moves the tree's side past hidden keys and notes where it stands.
func (c *cursor) settle(ctx context.Context) {
	for c.tree.Valid() {
		c.treeKey = string(c.tree.Key())
		if c.end != "" && c.treeKey >= c.end {
			break
		}
		sp, yes := c.s.hidden(c.treeKey)
		if !yes {
			return
		}
		c.tree.Seek(ctx, []byte(sp.end))
	}
	c.treeOK = false
	if err := c.tree.Err(); err != nil {
		c.err = err
	}
}

// next moves to the next record that exists.
func (c *cursor) next(ctx context.Context) bool {
	if c.moved {
		c.start(ctx)
	} else if c.err == nil {
		c.advance(ctx)
	}
	for n := 0; c.err == nil; n++ {
		if n%1024 == 1023 {
			if c.err = ctx.Err(); c.err != nil {
				return false
			}
		}
		if !c.pick() {
			return false
		}
		if c.rec.val != nil {
			return true
		}
		c.advance(ctx)
	}
	return false
}

// pick takes the smaller of both sides; the index wins where they are equal.
func (c *cursor) pick() bool {
	idxOK := c.idxOK && (c.end == "" || c.idx.Item().key < c.end)
	switch {
	case idxOK && (!c.treeOK || c.idx.Item().key <= c.treeKey):
		e := c.idx.Item()
		c.key, c.rec = e.key, record{e.val, e.loc}
	case c.treeOK:
		c.key, c.rec = c.treeKey, record{val: c.tree.Value()}
	default:
		return false
	}
	return true
}

// advance leaves the present key on both sides.
func (c *cursor) advance(ctx context.Context) {
	if c.treeOK && c.treeKey == c.key {
		c.tree.Next(ctx)
		c.settle(ctx)
	}
	if c.idxOK && c.idx.Item().key == c.key {
		c.idxOK = c.idx.Next()
	}
}

// object decodes the record of an object or version as seen in this state.
func (s *snap) object(ctx context.Context, key string, r record) (*Object, error) {
	o, spilled, err := decodeObject(key, r.val)
	if err != nil {
		return nil, err
	}
	if spilled != nil {
		b := make([]byte, spilled.n)
		if err := s.base.s.readExtent(ctx, *spilled, b, 0); err != nil {
			return nil, err
		}
		if err := decodeSpilled(o, b); err != nil {
			return nil, err
		}
	}
	o.data.from = s
	o.data.loc = r.loc
	return o, nil
}

func (s *snap) getObject(ctx context.Context, key string) (*Object, error) {
	r, err := s.lookup(ctx, objectKey(key))
	if err != nil || r.val == nil {
		return nil, err
	}
	return s.object(ctx, key, r)
}

func notFound(op, thing, text string) error { return errs.Msg(errs.NotFound, op, thing, text) }

// floor returns the greatest key ≤ key that exists and begins with prefix.
func (s *snap) floor(ctx context.Context, prefix, key string) (string, bool, error) {
	t, err := s.treeFloor(ctx, prefix, key)
	if err != nil {
		return "", false, err
	}
	found := t
	s.idx.Descend(&entry{key: key}, func(e *entry) bool {
		if e.key <= t || !strings.HasPrefix(e.key, prefix) {
			return false
		}
		if e.val != nil {
			found = e.key
			return false
		}
		return true
	})
	return found, found != "", nil
}

// treeFloor is floor for what the index leaves of the tree; "" is none.
func (s *snap) treeFloor(ctx context.Context, prefix, key string) (string, error) {
	if s.base.root.ID == 0 {
		return "", nil
	}
	it := s.base.s.tree.Iter(s.base.root)
	for it.SeekBefore(ctx, []byte(key+"\x00")); it.Valid(); {
		k := string(it.Key())
		if !strings.HasPrefix(k, prefix) {
			break
		}
		if sp, yes := s.hidden(k); yes {
			it.SeekBefore(ctx, []byte(sp.start))
			continue
		}
		if e, ok := s.idx.Get(&entry{key: k}); !ok || e.val != nil {
			return k, nil
		}
		it.Prev(ctx)
	}
	return "", it.Err()
}
