package bucket

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"agentrun.dev/bucket/tree"
)

// Diff streams what changed from a to b (each as Point takes it: a bucket, fork, snapshot or point in time) in order of
// key. It costs what changed, not what is there. An error from f ends it and is returned.
func (s *Store) Diff(ctx context.Context, a, b, prefix string, f func(Change) error) error {
	sa, err := s.stateOf(ctx, a)
	if err != nil {
		return err
	}
	defer sa.base.release()
	sb, err := s.stateOf(ctx, b)
	if err != nil {
		return err
	}
	defer sb.base.release()
	return diffObjects(ctx, sa, sb, prefix, f)
}

// stateOf resolves what Point takes to a state. The caller releases its base.
func (s *Store) stateOf(ctx context.Context, ref string) (*snap, error) {
	name, at, err := s.Point(ctx, ref)
	if err != nil {
		return nil, err
	}
	r, err := s.named(ctx, name)
	if err != nil {
		return nil, err
	}
	defer s.release(r)
	if at == 0 {
		return r.snapshot(), nil
	}
	return s.stateAt(ctx, r, at)
}

// diffObjects is diffRecords for objects, each difference classified.
func diffObjects(ctx context.Context, a, b *snap, prefix string, f func(Change) error) error {
	lo := objectKey(prefix)
	return diffRecords(ctx, a, b, lo, stringEnd(lo), func(key string, ra, rb record) error {
		c, err := classify(ctx, a, b, key[1:], ra, rb)
		if err != nil || c.Kind == 0 {
			return err
		}
		return f(c)
	})
}

// classify decodes both sides of a difference; Kind is 0 if they are the same to a user.
func classify(ctx context.Context, a, b *snap, key string, ra, rb record) (c Change, err error) {
	c.Key = key
	if ra.val != nil {
		if c.Old, err = a.object(ctx, key, ra); err != nil {
			return c, err
		}
	}
	if rb.val != nil {
		if c.New, err = b.object(ctx, key, rb); err != nil {
			return c, err
		}
	}
	switch {
	case c.Old == nil:
		c.Kind = Added
	case c.New == nil:
		c.Kind = Deleted
	case !sameBytes(c.Old, c.New):
		c.Kind = Modified
	case !sameMeta(c.Old, c.New):
		c.Kind = Metadata
	}
	return c, nil
}

// sameBytes reports whether two objects have the same contents. Contents are one and the same if they lie at one place;
// otherwise length and ETag decide, and checksums of a stronger kind where both objects have them.
func sameBytes(a, b *Object) bool {
	if a.Size != b.Size {
		return false
	}
	if a.ID == b.ID && a.ETag == b.ETag || slices.Equal(a.data.extents, b.data.extents) && a.data.extents != nil {
		return true
	}
	if a.data.inline != nil && b.data.inline != nil {
		return bytes.Equal(a.data.inline, b.data.inline)
	}
	for _, x := range a.Checksum {
		for _, y := range b.Checksum {
			if x.Algorithm == y.Algorithm && x.Composite == y.Composite && x.Value != y.Value {
				return false
			}
		}
	}
	return a.ETag == b.ETag
}

func sameMeta(a, b *Object) bool {
	if !maps.Equal(a.Headers, b.Headers) || !maps.Equal(a.Meta, b.Meta) || !maps.Equal(a.Tags, b.Tags) {
		return false
	}
	if a.Posix == nil || b.Posix == nil {
		return a.Posix == b.Posix
	}
	p, q := *a.Posix, *b.Posix
	return p.Mode == q.Mode && p.UID == q.UID && p.GID == q.GID && p.Rdev == q.Rdev && p.Link == q.Link &&
		maps.EqualFunc(p.Xattrs, q.Xattrs, bytes.Equal) && a.Modified.Equal(b.Modified)
}

// same reports whether a user would tell two objects apart; nil is absence.
func same(a, b *Object) bool {
	if a == nil || b == nil {
		return a == b
	}
	return sameBytes(a, b) && sameMeta(a, b)
}

// diffRecords calls f, in order, for each key in [lo, hi) whose records differ. It reads what differs between the two
// trees, and the two indexes.
func diffRecords(ctx context.Context, a, b *snap, lo, hi string, f func(key string, ra, rb record) error) error {
	side := newSide(a, b, lo, hi)
	emit := func(key string) error {
		ra, err := a.lookup(ctx, key)
		if err != nil {
			return err
		}
		rb, err := b.lookup(ctx, key)
		if err != nil {
			return err
		}
		if ra.val == nil && rb.val == nil || ra.loc == rb.loc && bytes.Equal(ra.val, rb.val) && (ra.val != nil) == (rb.val != nil) {
			return nil
		}
		return f(key, ra, rb)
	}
	if a.base.root.Hash != b.base.root.Hash {
		end := []byte(hi)
		if hi == "" {
			end = nil
		}
		err := a.base.s.tree.Diff(ctx, a.base.root, b.base.root, []byte(lo), end, func(k, _, _ []byte) error {
			key := string(k)
			for {
				s, ok, err := side.peek(ctx)
				if err != nil {
					return err
				}
				if !ok || s > key {
					break
				}
				side.pop(ctx)
				if s < key {
					if err := emit(s); err != nil {
						return err
					}
				}
			}
			return emit(key)
		})
		if err != nil {
			return err
		}
	}
	for {
		s, ok, err := side.peek(ctx)
		if err != nil || !ok {
			return err
		}
		side.pop(ctx)
		if err := emit(s); err != nil {
			return err
		}
	}
}

// side goes through the keys that may differ for another reason than the trees: those in only one index, or with
// different entries there, and those of a tree that a span hides.
type side struct {
	sources []keys
}

// keys is a sorted source of keys.
type keys interface {
	peek(ctx context.Context) (string, bool, error)
	pop(ctx context.Context)
}

func newSide(a, b *snap, lo, hi string) *side {
	s := &side{sources: []keys{&sortedKeys{differingEntries(a.idx, b.idx, lo, hi)}}}
	for _, x := range []*snap{a, b} {
		other := b
		if x == b {
			other = a
		}
		x.cut.Scan(func(sp span) bool {
			if o, ok := other.cut.Get(sp); ok && o == sp && a.base.root.Hash == b.base.root.Hash {
				return true // hidden in both
			}
			start, end := max(sp.start, lo), sp.end
			if hi != "" {
				end = min(end, hi)
			}
			if start < end {
				s.sources = append(s.sources, &treeKeys{root: x.base.root, t: x.base.s.tree, start: start, end: end},
					&treeKeys{root: other.base.root, t: x.base.s.tree, start: start, end: end})
			}
			return true
		})
	}
	return s
}

// differingEntries returns, in order, the keys in [lo, hi) whose entries aren't the same in two indexes. A fork's index
// begins as its parent's, so going through both at once finds most of them equal at the cost of a step.
func differingEntries(a, b *index, lo, hi string) (list []string) {
	x, y := a.Iter(), b.Iter()
	defer x.Release()
	defer y.Release()
	xOK, yOK := x.Seek(&entry{key: lo}), y.Seek(&entry{key: lo})
	for xOK || yOK {
		var key string
		switch {
		case xOK && yOK && x.Item() == y.Item():
			if hi != "" && x.Item().key >= hi {
				return list
			}
			xOK, yOK = x.Next(), y.Next()
			continue
		case xOK && (!yOK || x.Item().key < y.Item().key):
			key = x.Item().key
			xOK = x.Next()
		case yOK && (!xOK || y.Item().key < x.Item().key):
			key = y.Item().key
			yOK = y.Next()
		default:
			key = x.Item().key
			xOK, yOK = x.Next(), y.Next()
		}
		if hi != "" && key >= hi {
			return list
		}
		list = append(list, key)
	}
	return list
}

func (s *side) peek(ctx context.Context) (best string, ok bool, err error) {
	for _, src := range s.sources {
		k, has, err := src.peek(ctx)
		if err != nil {
			return "", false, err
		}
		if has && (!ok || k < best) {
			best, ok = k, true
		}
	}
	return best, ok, nil
}

// pop leaves the key that peek returned, in every source.
func (s *side) pop(ctx context.Context) {
	best, ok, err := s.peek(ctx)
	if err != nil || !ok {
		return
	}
	for _, src := range s.sources {
		for k, has, err := src.peek(ctx); err == nil && has && k == best; k, has, err = src.peek(ctx) {
			src.pop(ctx)
		}
	}
}

type sortedKeys struct{ list []string }

func (l *sortedKeys) peek(context.Context) (string, bool, error) {
	if len(l.list) == 0 {
		return "", false, nil
	}
	return l.list[0], true, nil
}

func (l *sortedKeys) pop(context.Context) { l.list = l.list[1:] }

// treeKeys goes through a tree's keys in [start, end).
type treeKeys struct {
	t          *tree.Tree
	root       tree.Root
	start, end string
	it         *tree.Iter
}

func (k *treeKeys) peek(ctx context.Context) (string, bool, error) {
	if k.root.ID == 0 {
		return "", false, nil
	}
	if k.it == nil {
		k.it = k.t.Iter(k.root)
		k.it.Seek(ctx, []byte(k.start))
	}
	if !k.it.Valid() || string(k.it.Key()) >= k.end {
		return "", false, k.it.Err()
	}
	return string(k.it.Key()), true, nil
}

func (k *treeKeys) pop(ctx context.Context) { k.it.Next(ctx) }
