package tree

import (
	"bytes"
	"context"
)

// Apply returns the root of the tree that the edits make of another. Nodes that the edits don't touch are shared with
// the old tree, and a subtree that a range delete covers is dropped without being read. The result's hash is that of
// Build over the same content. Every node put into the sink is part of the new tree. Memory is bounded by the tree's
// depth times the size of a node.
//
// After an error the sink may have nodes that belong to no tree.
func (t *Tree) Apply(ctx context.Context, root Root, edits Edits, sink Sink) (Root, error) {
	a := &applier{ctx: ctx, t: t, sink: sink, old: root, hash: newHasher()}
	if root.ID != 0 {
		n, err := t.root(ctx, root)
		if err != nil {
			return Root{}, err
		}
		a.maxKey = n.last()
		a.top = &Node{level: root.Level + 1}
		a.top.add(a.maxKey, nil, kid{id: root.ID, count: root.Count, bytes: root.Bytes, hash: root.Hash})
	}
	leaves := a.level(0)
	var c checker
	for e, err := range edits {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = c.check(&e)
		}
		switch {
		case err != nil:
		case e.isRange():
			err = leaves.deleteRange(e.Key, e.End)
		case e.Delete:
			err = leaves.delete(e.Key)
		default:
			err = leaves.put(e.Key, e.Value, kid{})
		}
		if err != nil {
			return Root{}, err
		}
	}
	r, err := leaves.finish()
	if err != nil {
		return Root{}, err
	}
	return a.lower(r)
}

// Build returns the root of a new tree. It is Apply to the empty tree: the stream holds puts.
func (t *Tree) Build(ctx context.Context, entries Edits, sink Sink) (Root, error) {
	return t.Apply(ctx, Root{}, entries, sink)
}

// applier is one Apply. Each level of the tree is a stream of edits to the entries of the level above: a leaf that is
// written anew is a put there, one that is gone a delete. So all levels work alike, each on what the one below tells it.
type applier struct {
	ctx    context.Context
	t      *Tree
	sink   Sink
	old    Root
	top    *Node  // stands above the old root and has it as its only child; nil if the old tree is empty
	maxKey []byte // the greatest of the old tree
	newest ID     // the node put last
	hash   *hasher
	body   []byte
}

// lower follows a root that has one child only, down to the first node that has more: the tree's true root. Only an old
// tail node can be such a one.
func (a *applier) lower(r Root) (Root, error) {
	for r.Level > 0 && r.ID != a.newest && r.ID != a.old.ID {
		n, err := a.t.root(a.ctx, r)
		if err != nil || n.Len() > 1 {
			return r, err
		}
		r = n.kids[0].root(r.Level - 1)
	}
	return r, nil
}

func (k kid) root(level uint8) Root {
	return Root{ID: k.id, Hash: k.hash, Level: level, Count: k.count, Bytes: k.bytes}
}

// level rewrites the nodes of one level. At any time it is in one of three states:
//
//	in step   cur is nil and out is empty: the old nodes from the cursor on are, so far, also the new ones
//	open      cur is an old node being rewritten: its entries from at on are still to come
//	tail      cur is nil, out has entries, and there are no old nodes left
//
// It falls back into step when a new node ends where an old one did, since what follows depends on nothing before it.
type level struct {
	a     *applier
	up    *level // nil as long as nothing has changed above
	old   cursor
	cur   *Node
	at    int
	out   Node   // the entries of the new node
	size  uint64 // of out, as the cutter counts it
	begun bool   // the new level has a node before out
	left  bool   // an old node has been left behind
	done  []byte // the greatest key of the one left behind last

	// Old nodes left behind whose deletion wasn't sent up yet: those whose greatest keys are in [goneLo, goneHi]. It is
	// held back because a new node may still turn up that ends before goneLo, and edits must be sorted.
	gone           bool
	goneLo, goneHi []byte
}

func (a *applier) level(lv uint8) *level {
	l := &level{a: a, out: Node{level: lv}, old: cursor{t: a.t, level: lv, end: a.maxKey}}
	if a.top != nil && lv < a.top.level {
		l.old.stack = []frame{{n: a.top}}
	}
	if a.top != nil && lv == a.top.level {
		l.cur = a.top
	}
	return l
}

// parent returns the level above.
func (l *level) parent() *level {
	if l.up == nil {
		l.up = l.a.level(l.out.level + 1)
	}
	return l.up
}

func (l *level) put(key, value []byte, k kid) error {
	fresh, err := l.open(key)
	if err != nil {
		return err
	}
	if fresh { // look before copying: an edit that changes nothing leaves the level in step
		if i := l.cur.search(key); l.has(i, key) && l.same(i, value, k) {
			l.cur = nil
			return nil
		}
		if err := l.copyBelow(key); err != nil {
			return err
		}
	}
	if l.has(l.at, key) {
		l.at++
	}
	if err := l.add(key, value, k); err != nil {
		return err
	}
	return l.settle()
}

// has reports whether an entry of the open node has the key.
func (l *level) has(i int, key []byte) bool {
	return l.cur != nil && i < l.cur.Len() && bytes.Equal(l.cur.Key(i), key)
}

// same reports whether an entry of the open node has the value.
func (l *level) same(i int, value []byte, k kid) bool {
	if l.out.level == 0 {
		return bytes.Equal(l.cur.Value(i), value)
	}
	return l.cur.kids[i] == k
}

func (l *level) delete(key []byte) error {
	if bytes.Compare(key, l.a.maxKey) > 0 { // there is no such key
		return nil
	}
	fresh, err := l.open(key)
	if err != nil {
		return err
	}
	if fresh {
		if !l.has(l.cur.search(key), key) {
			l.cur = nil
			return nil
		}
		if err := l.copyBelow(key); err != nil {
			return err
		}
	}
	if l.has(l.at, key) {
		l.at++
	}
	return l.settle()
}

// deleteRange drops the old entries in [key, end). Nodes between the one that key falls into and the one that end falls
// into are not read.
func (l *level) deleteRange(key, end []byte) error {
	if bytes.Compare(key, l.a.maxKey) > 0 { // there is no such key
		return nil
	}
	fresh, err := l.open(key)
	if err == nil && fresh {
		err = l.copyBelow(key)
	}
	if err != nil || l.cur == nil {
		return err
	}
	l.at = l.cur.searchFrom(l.at, end)
	if l.at < l.cur.Len() || l.cur == l.a.top {
		return l.settle()
	}
	// The range goes on beyond this node: drop it and all that end before the range does.
	l.leave(l.cur.last())
	l.cur = nil
	if err := l.old.seek(l.a.ctx, end); err != nil {
		return err
	}
	if b, ok := l.old.before(); ok {
		l.leave(b)
	}
	if l.old.done() {
		return nil
	}
	if err := l.load(); err != nil { // the first node that is left may begin inside the range
		return err
	}
	l.at = l.cur.search(end)
	return l.settle()
}
