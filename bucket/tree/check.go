package tree

import (
	"bytes"
	"context"
	"fmt"

	"agentrun.dev/errs"
)

// Check verifies a whole tree as stored, past the cache: checksums, hashes, the order of keys, sums, and that each node
// ends where it must. What doesn't hold is an errs.Corrupt that names the way from the root, as numbers of children.
func (t *Tree) Check(ctx context.Context, root Root) error {
	if root.ID == 0 {
		if root != (Root{}) {
			return errs.Msg(errs.Corrupt, "check tree", "root", "an empty tree has no hash, height or sums")
		}
		return nil
	}
	c := &treeCheck{t: t}
	k := kid{id: root.ID, hash: root.Hash, count: root.Count, bytes: root.Bytes}
	if root.Level > maxLevel {
		return c.fail("too high")
	}
	return c.node(ctx, &k, nil, root.Level, true)
}

// treeCheck is the walk of one Check.
type treeCheck struct {
	t    *Tree
	path []int // the numbers of the children that led here
	any  bool
	prev []byte // the leaf key before
}

func (c *treeCheck) fail(format string, args ...any) error {
	return errs.New(errs.Corrupt, "check tree", fmt.Sprintf("root%v", c.path), fmt.Errorf(format, args...))
}

// node verifies a subtree against what its parent knows of it. last says that no node of its level comes behind; a root
// has no maxKey to compare.
func (c *treeCheck) node(ctx context.Context, k *kid, maxKey []byte, level uint8, last bool) error {
	n, err := c.t.read(ctx, k.id)
	if errs.Is(err, errs.Corrupt) {
		return c.fail("%w", err)
	}
	isRoot := len(c.path) == 0
	switch {
	case err != nil:
		return err
	case n.level != level:
		return c.fail("node %d has level %d instead of %d", k.id, n.level, level)
	case n.hash != k.hash:
		return c.fail("node %d doesn't have the hash that its parent knows", k.id)
	case isRoot && level > 0 && n.Len() < 2:
		return c.fail("node %d is a root of one child", k.id)
	case !isRoot && !bytes.Equal(n.last(), maxKey):
		return c.fail("node %d doesn't end at the key that its parent knows", k.id)
	}
	if err := c.cuts(n, k.id, last); err != nil {
		return err
	}
	// The sums are not under the hash, so they are added up anew at each level.
	var count, size uint64
	for i := range n.Len() {
		a, b := c.t.sums(n, i)
		count, size = count+a, size+b
	}
	if count != k.count || size != k.bytes {
		return c.fail("node %d has sums %d, %d; its parent knows %d, %d", k.id, count, size, k.count, k.bytes)
	}
	// Within a node decoding has checked the order; between nodes the leaves show it for all levels, since an inner key
	// is the last key of a leaf.
	if level == 0 {
		if c.any && bytes.Compare(c.prev, n.Key(0)) >= 0 {
			return c.fail("node %d begins before the leaf before it ends", k.id)
		}
		c.any, c.prev = true, n.last()
		return nil
	}
	for i := range n.kids {
		c.path = append(c.path, i)
		if err := c.node(ctx, &n.kids[i], n.Key(i), level-1, last && i == n.Len()-1); err != nil {
			return err
		}
		c.path = c.path[:len(c.path)-1]
	}
	return nil
}

// cuts verifies that a node ends at the first entry where the rule says so, or with its level.
func (c *treeCheck) cuts(n *Node, id ID, last bool) error {
	var size uint64
	for i := range n.Len() {
		before := size
		size += entrySize(n.level, n.Key(i), n.Value(i))
		end := c.t.cut.after(n.level, n.Key(i), before, size, i+1)
		if atEnd := i == n.Len()-1; end != atEnd && !(atEnd && last) {
			return c.fail("node %d doesn't end where it must, at entry %d of %d", id, i, n.Len())
		}
	}
	return nil
}
