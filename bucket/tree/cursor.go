package tree

import "context"

// frame is a place in a node.
type frame struct {
	n *Node
	i int
}

// cursor stands at a node of one level of a tree, and moves forward only. Its stack holds the node's ancestors, the
// nearest last; the first is a node above the root. Without a stack it is behind the last node.
type cursor struct {
	t     *Tree
	level uint8  // of the nodes it stands at
	end   []byte // the tree's greatest key
	stack []frame
}

func (c *cursor) done() bool  { return len(c.stack) == 0 }
func (c *cursor) top() *frame { return &c.stack[len(c.stack)-1] }

// seek moves to the first node, from the present one on, whose greatest key isn't below key.
func (c *cursor) seek(ctx context.Context, key []byte) error {
	for len(c.stack) > 0 {
		f := c.top()
		if f.i = f.n.searchFrom(f.i, key); f.i < f.n.Len() {
			break
		}
		c.pop()
	}
	return c.descend(ctx, key)
}

// next moves to the next node. The stack stays incomplete: whoever needs that node descends.
func (c *cursor) next() {
	c.top().i++
	for len(c.stack) > 0 && c.top().i >= c.top().n.Len() {
		c.pop()
	}
}

// pop leaves the last ancestor for its parent's next child.
func (c *cursor) pop() {
	if c.stack = c.stack[:len(c.stack)-1]; len(c.stack) > 0 {
		c.top().i++
	}
}

// descend completes the stack down to the level.
func (c *cursor) descend(ctx context.Context, key []byte) error {
	for len(c.stack) > 0 && c.top().n.level > c.level+1 {
		n, err := c.t.child(ctx, c.top().n, c.top().i)
		if err != nil {
			return err
		}
		i := n.search(key)
		if i == n.Len() {
			return corrupt("a child's keys end before its parent says")
		}
		c.stack = append(c.stack, frame{n, i})
	}
	return nil
}

// before returns the greatest key of the node before the present one, if there is one. Since an upper entry has the
// greatest key below it, no node needs to be read for that.
func (c *cursor) before() (key []byte, ok bool) {
	if len(c.stack) == 0 {
		return c.end, true
	}
	for j := len(c.stack) - 1; j >= 0; j-- {
		if f := &c.stack[j]; f.i > 0 {
			return f.n.Key(f.i - 1), true
		}
	}
	return nil, false
}
