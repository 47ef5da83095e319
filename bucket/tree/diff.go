package tree

import (
	"bytes"
	"context"
)

// Diff calls f for each key in [lo, hi) that two trees don't have alike, in order, with its value in a and in b; nil is a
// missing one. A nil hi has no upper bound. The slices must not be modified; they stay valid. Subtrees of equal hashes are
// passed over without being read, also where the trees' heights differ, so the cost is that of the changes. An error
// of f ends the walk and is returned.
func (t *Tree) Diff(ctx context.Context, a, b Root, lo, hi []byte, f func(key, av, bv []byte) error) error {
	if a.Hash == b.Hash || (hi != nil && bytes.Compare(lo, hi) >= 0) {
		return nil
	}
	x, y := newSide(t, a, lo, hi), newSide(t, b, lo, hi)
	// Both sides always stand at the first thing that isn't compared yet: all keys before it are dealt with. So two
	// subtrees of one hash there are one content at one place.
	for {
		x.settle()
		y.settle()
		if x.done() && y.done() {
			return nil
		}
		if x.level() >= 0 || y.level() >= 0 {
			if skipCommon(x, y) {
				continue
			}
			if err := expandHigher(ctx, x, y); err != nil {
				return err
			}
			continue
		}
		if err := step(x, y, f); err != nil {
			return err
		}
	}
}

// step handles the lesser of two entries, or both if their keys are equal.
func step(x, y *side, f func(key, av, bv []byte) error) error {
	order := 0
	switch {
	case x.done():
		order = 1
	case y.done():
		order = -1
	default:
		order = bytes.Compare(x.key(), y.key())
	}
	var key, av, bv []byte
	if order >= 0 {
		key, bv = y.key(), y.value()
		y.top().i++
	}
	if order <= 0 {
		key, av = x.key(), x.value()
		x.top().i++
	}
	if order == 0 && bytes.Equal(av, bv) {
		return nil
	}
	return f(key, av, bv)
}

// expandHigher steps into the higher of two subtrees, or into both if they are of one height. It mustn't go further: the
// other may be equal to something below.
func expandHigher(ctx context.Context, x, y *side) error {
	lx, ly := x.level(), y.level()
	if lx >= ly {
		if err := x.expand(ctx); err != nil {
			return err
		}
	}
	if ly >= lx {
		return y.expand(ctx)
	}
	return nil
}

// skipCommon passes over a subtree that both sides have next, if there is one. It also finds the one that a side has
// stepped into already, as long as nothing of it has been used.
// Without that, one side would have to guess which of two different subtrees to step into first.
func skipCommon(x, y *side) bool {
	for i, fresh := x.first(); i >= 0 && i <= fresh; i++ {
		fx := &x.stack[i]
		j, last := y.first()
		for ; j >= 0 && j <= last; j++ {
			fy := &y.stack[j]
			if fx.n.level == fy.n.level && fx.n.kids[fx.i].hash == fy.n.kids[fy.i].hash {
				x.skip(i)
				y.skip(j)
				return true
			}
		}
	}
	return false
}

// side is the walk of one of the two trees. It stands at an entry of the last frame's node: a subtree still unread, or
// a leaf's entry. The first frame is a node above the root.
type side struct {
	t      *Tree
	lo, hi []byte
	stack  []frame
}

func newSide(t *Tree, r Root, lo, hi []byte) *side {
	s := &side{t: t, lo: lo, hi: hi}
	if r.ID != 0 {
		top := &Node{level: r.Level + 1, ends: []uint32{0}, kids: []kid{{id: r.ID, hash: r.Hash}}}
		s.stack = append(make([]frame, 0, r.Level+2), frame{n: top})
	}
	return s
}

func (s *side) done() bool    { return len(s.stack) == 0 }
func (s *side) top() *frame   { return &s.stack[len(s.stack)-1] }
func (s *side) key() []byte   { f := s.top(); return f.n.Key(f.i) }
func (s *side) value() []byte { f := s.top(); return f.n.Value(f.i) }

// level returns the height of the subtree it stands at, or -1 at an entry and at the end.
func (s *side) level() int {
	if s.done() {
		return -1
	}
	return int(s.top().n.level) - 1
}

// settle leaves nodes whose entries are used up, and ends the walk at hi.
func (s *side) settle() {
	for !s.done() {
		f := s.top()
		if f.i < f.n.Len() {
			if s.hi != nil && s.beyond(f) {
				s.stack = s.stack[:0]
			}
			return
		}
		if s.stack = s.stack[:len(s.stack)-1]; !s.done() {
			s.top().i++
		}
	}
}

// beyond reports whether an entry is certainly not below hi. A subtree's least key isn't known, but it is greater than
// the greatest of the subtree before.
func (s *side) beyond(f *frame) bool {
	i := f.i
	if f.n.level > 0 {
		i--
	}
	return i >= 0 && bytes.Compare(f.n.Key(i), s.hi) >= 0
}

// expand steps into the subtree it stands at.
func (s *side) expand(ctx context.Context) error {
	f := s.top()
	n, err := s.t.child(ctx, f.n, f.i)
	if err != nil {
		return err
	}
	s.stack = append(s.stack, frame{n, n.search(s.lo)})
	return nil
}

// first returns the frames, from first to last, that stand at a subtree of which nothing has been used: the last, if
// it stands at a subtree, and those before it as long as the frame below is at its beginning.
func (s *side) first() (first, last int) {
	last = len(s.stack) - 1
	if last >= 0 && s.stack[last].n.level == 0 {
		if s.stack[last].i > 0 {
			return -1, -1
		}
		last--
	}
	for first = last; first > 0 && s.stack[first].i == 0; first-- {
	}
	return first, last
}

// skip passes over the subtree that a frame stands at.
func (s *side) skip(i int) {
	s.stack = s.stack[:i+1]
	s.top().i++
}
