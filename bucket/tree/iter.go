package tree

import (
	"bytes"
	"context"
)

// Iter walks a tree's entries in order. It stands at an entry, or at none: at first, when it has left the entries on
// either side, and after an error. It isn't safe for concurrent use.
type Iter struct {
	t     *Tree
	root  Root
	stack []frame // the root first, a leaf last; complete, or empty when it stands at no entry
	err   error
}

// Iter returns an iterator over a tree. It needs a Seek before anything else, and no closing.
func (t *Tree) Iter(root Root) *Iter { return &Iter{t: t, root: root} }

// Valid reports whether the iterator stands at an entry.
func (it *Iter) Valid() bool { return len(it.stack) > 0 }

// Err returns the error that ended the walk, if one did. The next Seek clears it.
func (it *Iter) Err() error { return it.err }

// Key returns the present key. Like Value it must not be modified, stays valid, and is nil if Valid is false.
func (it *Iter) Key() []byte {
	if !it.Valid() {
		return nil
	}
	f := it.leaf()
	return f.n.Key(f.i)
}

// Value returns the present value.
func (it *Iter) Value() []byte {
	if !it.Valid() {
		return nil
	}
	f := it.leaf()
	return f.n.Value(f.i)
}

func (it *Iter) leaf() *frame { return &it.stack[len(it.stack)-1] }

// Seek moves to the first entry whose key isn't below key, and returns Valid. A seek to a place near the present one
// costs no more than the way there.
func (it *Iter) Seek(ctx context.Context, key []byte) bool {
	if !it.ascend(ctx, key) {
		return false
	}
	for {
		f := it.leaf()
		f.i = f.n.search(key)
		switch {
		case f.i == f.n.Len() && len(it.stack) > 1:
			return it.end(corrupt("a child's keys end before its parent says"))
		case f.i == f.n.Len():
			return it.end(nil)
		case f.n.level == 0:
			return true
		}
		if !it.down(ctx) {
			return false
		}
	}
}

// SeekBefore moves to the last entry whose key is below key, and returns Valid.
func (it *Iter) SeekBefore(ctx context.Context, key []byte) bool {
	if !it.Seek(ctx, key) {
		return it.err == nil && it.SeekLast(ctx)
	}
	return it.Prev(ctx)
}

// SeekLast moves to the last entry, and returns Valid.
func (it *Iter) SeekLast(ctx context.Context) bool {
	if !it.top(ctx) {
		return false
	}
	f := it.leaf()
	for f.i = f.n.Len() - 1; f.n.level > 0; f.i = f.n.Len() - 1 {
		if !it.down(ctx) {
			return false
		}
		f = it.leaf()
	}
	return true
}

// Next moves to the next entry, and returns Valid.
func (it *Iter) Next(ctx context.Context) bool { return it.step(ctx, 1) }

// Prev moves to the entry before, and returns Valid.
func (it *Iter) Prev(ctx context.Context) bool { return it.step(ctx, -1) }

func (it *Iter) step(ctx context.Context, by int) bool {
	if !it.Valid() {
		return false
	}
	f := it.leaf()
	if i := f.i + by; i >= 0 && i < f.n.Len() {
		f.i = i
		return true
	}
	for { // up to the nearest ancestor with a neighbour on that side, then down along its near edge
		if it.stack = it.stack[:len(it.stack)-1]; len(it.stack) == 0 {
			return false
		}
		f = it.leaf()
		if i := f.i + by; i >= 0 && i < f.n.Len() {
			f.i = i
			break
		}
	}
	for it.leaf().n.level > 0 {
		if !it.down(ctx) {
			return false
		}
		if f = it.leaf(); by < 0 {
			f.i = f.n.Len() - 1
		}
	}
	return true
}

// ascend leaves the nodes that a key isn't in, up to the nearest that it is in or to the root.
func (it *Iter) ascend(ctx context.Context, key []byte) bool {
	it.err = nil
	for len(it.stack) > 1 {
		f := it.leaf()
		if bytes.Compare(f.n.Key(0), key) <= 0 && bytes.Compare(f.n.last(), key) >= 0 {
			return true
		}
		// Of an inner node's first child only the end is known here: for a key before that, the parent has to say.
		it.stack = it.stack[:len(it.stack)-1]
	}
	return it.top(ctx)
}

// top moves to the root.
func (it *Iter) top(ctx context.Context) bool {
	it.err = nil
	if it.root.ID == 0 {
		return it.end(nil)
	}
	if len(it.stack) > 0 {
		it.stack = it.stack[:1]
		return true
	}
	n, err := it.t.root(ctx, it.root)
	if err != nil {
		return it.end(err)
	}
	it.stack = append(it.stack, frame{n: n})
	return true
}

// down adds the child at the present place to the stack.
func (it *Iter) down(ctx context.Context) bool {
	f := it.leaf()
	n, err := it.t.child(ctx, f.n, f.i)
	if err != nil {
		return it.end(err)
	}
	it.stack = append(it.stack, frame{n: n})
	return true
}

func (it *Iter) end(err error) bool {
	it.stack, it.err = it.stack[:0], err
	return false
}
