package tree

import (
	"bytes"
	"context"
)

// Walk calls f for each node, a parent before its children and children in order. Children of a node for which f
// returns false are left out. It reads past the cache, so a walk of all nodes doesn't empty it. An error of f ends the
// walk and is returned.
func (t *Tree) Walk(ctx context.Context, root Root, f func(id ID, n *Node) (descend bool, err error)) error {
	if root.ID == 0 {
		return nil
	}
	k := kid{id: root.ID, hash: root.Hash}
	return t.walk(ctx, &k, root.Level, f)
}

func (t *Tree) walk(ctx context.Context, k *kid, level uint8, f func(ID, *Node) (bool, error)) error {
	n, err := t.peek(ctx, k, level)
	if err != nil {
		return err
	}
	descend, err := f(k.id, n)
	if err != nil || !descend {
		return err
	}
	for i := range n.kids {
		if err := t.walk(ctx, &n.kids[i], level-1, f); err != nil {
			return err
		}
	}
	return nil
}

// peek returns a node without giving it a place in the cache.
func (t *Tree) peek(ctx context.Context, k *kid, level uint8) (*Node, error) {
	n := t.cache.get(k.id)
	if n == nil {
		var err error
		if n, err = t.read(ctx, k.id); err != nil {
			return nil, err
		}
	}
	return n, t.expect(n, k, level)
}

// Sum returns the sums of Options.Measure over the keys in [lo, hi); a nil hi has no upper bound. It reads no more than
// the way to either end.
func (t *Tree) Sum(ctx context.Context, root Root, lo, hi []byte) (count, size uint64, err error) {
	if root.ID == 0 || (hi != nil && bytes.Compare(lo, hi) >= 0) {
		return 0, 0, nil
	}
	count, size = root.Count, root.Bytes // all below hi, less all below lo
	if hi != nil {
		if count, size, err = t.below(ctx, root, hi); err != nil {
			return 0, 0, err
		}
	}
	if len(lo) == 0 {
		return count, size, nil
	}
	c, s, err := t.below(ctx, root, lo)
	return count - c, size - s, err
}

// below returns the sums over the keys below key.
func (t *Tree) below(ctx context.Context, root Root, key []byte) (count, size uint64, err error) {
	n, err := t.root(ctx, root)
	for err == nil {
		end := n.search(key)
		for i := range end {
			c, s := t.sums(n, i)
			count += c
			size += s
		}
		if n.level == 0 || end == n.Len() {
			return count, size, nil
		}
		n, err = t.child(ctx, n, end)
	}
	return 0, 0, err
}

// sums returns what an entry adds to the sums.
func (t *Tree) sums(n *Node, i int) (count, size uint64) {
	if n.level == 0 {
		return t.measure(n.Key(i), n.Value(i))
	}
	return n.kids[i].count, n.kids[i].bytes
}
