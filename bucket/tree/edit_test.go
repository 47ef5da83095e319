package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"agentrun.dev/errs"

	"pgregory.net/rapid"
)

// TestRangeDeleteDropsUnread: what a range covers is not read, and puts inside it win.
func TestRangeDeleteDropsUnread(t *testing.T) {
	const n = 50_000
	tr, s, root := bigTree(t, n, 60, -1)
	depth := int64(root.Level) + 1
	before := s.reads.Load()
	next := mustApply(t, tr, root, []Edit{
		{Key: path(100), End: path(n - 100), Delete: true},
		{Key: path(100), Value: []byte("first")},
		{Key: path(200), Value: []byte("second")},
		{Key: path(n - 100), Value: []byte("third")},
	}, s)
	if got := s.reads.Load() - before; got > 6*depth {
		t.Errorf("%d reads at depth %d", got, depth)
	}
	if next.Count != 202 {
		t.Errorf("%d keys, want 202", next.Count)
	}
	var want []Edit
	for _, e := range content(t, tr, root) {
		if bytes.Compare(e.Key, path(100)) < 0 || bytes.Compare(e.Key, path(n-100)) > 0 {
			want = append(want, e)
		}
	}
	middle := []Edit{{Key: path(100), Value: []byte("first")}, {Key: path(200), Value: []byte("second")}, {Key: path(n - 100), Value: []byte("third")}}
	want = append(want[:100:100], append(middle, want[100:]...)...)
	if !sameEntries(content(t, tr, next), want) {
		t.Error("the content isn't what the edits make")
	}
	if got := mustApply(t, tr, next, []Edit{{Key: nil, End: []byte("z"), Delete: true}}, s); got != (Root{}) {
		t.Errorf("all deleted leaves %+v", got)
	}
	if err := tr.Check(bg, next); err != nil {
		t.Error(err)
	}
}

// TestApplyWritesNothingForNothing: edits that change nothing give back the same root, without a node written.
func TestApplyWritesNothingForNothing(t *testing.T) {
	tr, s, root := bigTree(t, 5000, 60, 0)
	value, err := tr.Get(bg, root, path(77))
	if err != nil {
		t.Fatal(err)
	}
	for name, edits := range map[string][]Edit{
		"none":                    nil,
		"the same value":          {{Key: path(77), Value: value}},
		"missing keys":            {{Key: []byte("a"), Delete: true}, {Key: append(path(5), 'x'), Delete: true}, {Key: []byte("z"), Delete: true}},
		"empty ranges":            {{Key: []byte("a"), End: []byte("b"), Delete: true}, {Key: append(path(9), 0), End: path(10), Delete: true}, {Key: []byte("x"), End: []byte("z"), Delete: true}},
		"deleted and put again":   {{Key: path(77), End: path(78), Delete: true}, {Key: path(77), Value: value}},
		"put and the range after": {{Key: path(77), Value: value}, {Key: path(77), End: path(78), Delete: true}},
	} {
		before := s.next
		if got := mustApply(t, tr, root, edits, s); got != root {
			t.Errorf("%s: another root", name)
		}
		if s.next != before {
			t.Errorf("%s: %d nodes written", name, s.next-before)
		}
	}
}

// TestApplyCost: a change costs a path, and the changed neighbourhood of a node or two.
func TestApplyCost(t *testing.T) {
	tr, s, root := bigTree(t, 50_000, 100, 0)
	rng := rand.New(rand.NewPCG(1, 1))
	nodes, rounds := ID(0), ID(100)
	for range rounds {
		before := s.next
		key := append(path(rng.IntN(50_000)), "new"...)
		mustApply(t, tr, root, []Edit{{Key: key, Value: make([]byte, 100)}}, s)
		nodes += s.next - before
	}
	if per := float64(nodes) / float64(rounds); per > float64(root.Level)+1.5 {
		t.Errorf("%.2f nodes for an insert, depth %d", per, root.Level+1)
	}
}

func TestApplyRefuses(t *testing.T) {
	tr, s, root := bigTree(t, 100, 10, 0)
	long := make([]byte, MaxValue+1)
	for name, c := range map[string]struct {
		edits []Edit
		kind  errs.Kind
	}{
		"unsorted":                {[]Edit{{Key: []byte("b")}, {Key: []byte("a")}}, errs.Invalid},
		"twice":                   {[]Edit{{Key: []byte("b")}, {Key: []byte("b"), Delete: true}}, errs.Invalid},
		"twice, range in between": {[]Edit{{Key: []byte("b")}, {Key: []byte("b"), End: []byte("c"), Delete: true}, {Key: []byte("b")}}, errs.Invalid},
		"empty range":             {[]Edit{{Key: []byte("b"), End: []byte("b"), Delete: true}}, errs.Invalid},
		"empty end":               {[]Edit{{Key: []byte("b"), End: []byte{}, Delete: true}}, errs.Invalid},
		"put with an end":         {[]Edit{{Key: []byte("b"), End: []byte("c")}}, errs.Invalid},
		"long key":                {[]Edit{{Key: long[:MaxKey+1]}}, errs.TooLarge},
		"long end":                {[]Edit{{Key: nil, End: append([]byte{1}, long[:MaxKey+1]...), Delete: true}}, errs.TooLarge},
		"long value":              {[]Edit{{Key: []byte("k"), Value: long}}, errs.TooLarge},
	} {
		if _, err := tr.Apply(bg, root, Slice(c.edits), s); !errs.Is(err, c.kind) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ok := []Edit{{Key: long[:MaxKey], Value: long[:MaxValue]}}
	if got := mustApply(t, tr, root, ok, s); got.Count != 101 {
		t.Errorf("an entry of the greatest size: %d keys", got.Count)
	}
}

type failingSink struct{ err error }

func (s failingSink) Put([]byte) (ID, error) { return 0, s.err }

func TestErrorsPassThrough(t *testing.T) {
	tr, s, root := bigTree(t, 5000, 60, -1)
	fail := errs.Msg(errs.NoSpace, "put", "", "disk full")
	edit := []Edit{{Key: path(5), Value: []byte("x")}}
	if _, err := tr.Apply(bg, root, Slice(edit), failingSink{fail}); !errors.Is(err, fail) {
		t.Errorf("sink: %v", err)
	}
	if _, err := tr.Apply(bg, root, Slice(edit), failingSink{}); !errs.Is(err, errs.Invalid) {
		t.Errorf("a sink without ids: %v", err)
	}
	broken := func(yield func(Edit, error) bool) {
		if yield(edit[0], nil) {
			yield(Edit{}, fail)
		}
	}
	if _, err := tr.Apply(bg, root, broken, s); !errors.Is(err, fail) {
		t.Errorf("edits: %v", err)
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	it := tr.Iter(root)
	_, getErr := tr.Get(ctx, root, path(5))
	_, applyErr := tr.Apply(ctx, root, Slice(edit), s)
	_, _, sumErr := tr.Sum(ctx, root, path(5), nil)
	it.Seek(ctx, path(5))
	for name, err := range map[string]error{
		"get": getErr, "apply": applyErr, "sum": sumErr, "iter": it.Err(),
		"diff":  tr.Diff(ctx, root, Root{}, nil, nil, func(k, a, b []byte) error { return nil }),
		"walk":  tr.Walk(ctx, root, func(ID, *Node) (bool, error) { return true, nil }),
		"check": tr.Check(ctx, root),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCorruptNodes damages each node of a tree in turn: whoever reads it gets errs.Corrupt, nobody wrong data.
func TestCorruptNodes(t *testing.T) {
	tr, s, root := bigTree(t, 1000, 60, -1)
	good := s.nodes
	leaf := good[1]
	for id := range good {
		for name, damage := range map[string]func(b []byte) []byte{
			"flipped": func(b []byte) []byte { b = bytes.Clone(b); b[len(b)/2] ^= 1; return b },
			"lost":    func(b []byte) []byte { return nil },
			"swapped": func(b []byte) []byte {
				if id == 1 {
					return good[2]
				}
				return leaf
			},
		} {
			s.nodes = map[ID][]byte{}
			for k, b := range good {
				if k == id {
					b = damage(b)
				}
				if b != nil {
					s.nodes[k] = b
				}
			}
			if err := tr.Check(bg, root); !errs.Is(err, errs.Corrupt) {
				t.Errorf("node %d %s: check says %v", id, name, err)
			}
			it := tr.Iter(root)
			for ok := it.Seek(bg, nil); ok; ok = it.Next(bg) {
			}
			if !errs.Is(it.Err(), errs.Corrupt) {
				t.Errorf("node %d %s: iterator says %v", id, name, it.Err())
			}
		}
	}
}

// TestCheckFindsWrongTrees makes trees of intact nodes that no Apply would make.
func TestCheckFindsWrongTrees(t *testing.T) {
	z := newCompressor()
	s := newStore()
	tr := New(s, tiny)
	put := func(n *Node) kid {
		n.hash = newHasher().sum(n)
		b, _ := encode(n, z, nil)
		id, _ := s.Put(b)
		k := kid{id: id, hash: n.hash}
		for i := range n.Len() {
			c, size := tr.sums(n, i)
			k.count, k.bytes = k.count+c, k.bytes+size
		}
		return k
	}
	leaf := func(keys ...string) kid {
		n := new(Node)
		for _, k := range keys {
			n.add([]byte(k), make([]byte, 100), kid{})
		}
		return put(n)
	}
	inner := func(level uint8, keys string, kids ...kid) *Node {
		n := &Node{level: level}
		for i, k := range kids {
			n.add([]byte(keys[i:i+1]), nil, k)
		}
		return n
	}
	good := put(inner(1, "bd", leaf("a", "b"), leaf("c", "d"))) // may or may not be cut right
	sums := inner(1, "bd", leaf("a", "b"), leaf("c", "d"))
	sums.kids[1].count++
	var wide []string
	for i := range 40 {
		wide = append(wide, fmt.Sprintf("k%02d", i))
	}
	for name, r := range map[string]Root{
		"one child":       put(inner(1, "b", leaf("a", "b"))).root(1),
		"wrong level":     good.root(2),
		"leaf as inner":   leaf("a").root(1),
		"wrong max key":   put(inner(1, "be", leaf("a", "b"), leaf("c", "d"))).root(1),
		"overlap":         put(inner(1, "cd", leaf("a", "c"), leaf("b", "d"))).root(1),
		"wrong sums":      put(sums).root(1),
		"too wide a leaf": func() Root { k := leaf(wide...); return k.root(0) }(),
		"small leaf":      put(inner(1, "ad", leaf("a"), leaf("c", "d"))).root(1),
		"hash of nothing": {Hash: Hash{1}},
		"too high":        {ID: 1, Level: 255},
	} {
		if err := tr.Check(bg, r); !errs.Is(err, errs.Corrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMalformedTrees runs everything on trees whose nodes are intact but don't fit each other: it must end, whatever
// the result.
func TestMalformedTrees(t *testing.T) {
	z := newCompressor()
	rapid.Check(t, func(t *rapid.T) {
		s := newStore()
		tr := New(s, tiny)
		levels := [][]kid{nil, nil, nil, nil}
		key := rapid.SliceOfN(rapid.ByteRange('a', 'e'), 0, 3)
		draw := func(level uint8) {
			n := &Node{level: level}
			for _, k := range rapid.SliceOfNDistinct(key, 1, 5, func(k []byte) string { return string(k) }).Draw(t, "keys") {
				if n.Len() > 0 && bytes.Compare(n.last(), k) >= 0 {
					continue
				}
				var c kid
				if level > 0 {
					below := levels[level-1]
					c = below[rapid.IntRange(0, len(below)-1).Draw(t, "child")]
				}
				n.add(k, []byte("v"), c)
			}
			n.hash = newHasher().sum(n)
			b, _ := encode(n, z, nil)
			id, _ := s.Put(b)
			levels[level] = append(levels[level], kid{id: id, hash: n.hash, count: 1, bytes: 1})
		}
		for level := range levels {
			for range 4 {
				draw(uint8(level))
			}
		}
		a, b := levels[3][0].root(3), levels[rapid.IntRange(0, 3).Draw(t, "b")][1].root(0)
		b.Level = uint8(slicesLevel(levels, b.ID))
		use(t, tr, s, a, b, key)
	})
}

func slicesLevel(levels [][]kid, id ID) int {
	for l := range levels {
		for _, k := range levels[l] {
			if k.id == id {
				return l
			}
		}
	}
	return 0
}

// use calls every operation on two trees and accepts errors of kind Corrupt or Limit.
func use(t *rapid.T, tr *Tree, s *memStore, a, b Root, key *rapid.Generator[[]byte]) {
	ok := func(err error) {
		if err != nil && !errs.Is(err, errs.Corrupt) {
			t.Fatal(err)
		}
	}
	k := key.Draw(t, "k")
	_, err := tr.Get(bg, a, k)
	ok(err)
	ok(tr.Diff(bg, a, b, k, nil, func(_, _, _ []byte) error { return nil }))
	ok(tr.Check(bg, a))
	_, _, err = tr.Sum(bg, a, k, nil)
	ok(err)
	it := tr.Iter(a)
	it.Seek(bg, k)
	for range 2000 {
		it.Next(bg)
	}
	it.SeekBefore(bg, k)
	for range 2000 {
		it.Prev(bg)
	}
	ok(it.Err())
	edits := drawEdits(t, func(t *rapid.T) string { return string(key.Draw(t, "edit")) }, 10)
	_, err = tr.Apply(bg, a, Slice(edits), s)
	ok(err)
}

// TestApplyMemory: however long the stream, an Apply holds a few nodes per level.
func TestApplyMemory(t *testing.T) {
	const n = 200_000
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	tr := New(newStore(), Options{})
	value := make([]byte, 500)
	var start, most int64
	root, err := tr.Build(bg, func(yield func(Edit, error) bool) {
		for i := range n {
			if i == 1000 { // by now all levels' buffers and the compressor's tables exist, or nearly
				start = heap()
			}
			if i%20_000 == 19_999 {
				most = max(most, heap()-start)
			}
			if !yield(Edit{Key: path(i), Value: value}, nil) {
				return
			}
		}
	}, new(countSink))
	if err != nil || root.Count != n {
		t.Fatalf("%d keys, %v", root.Count, err)
	}
	if most > 4<<20 {
		t.Errorf("%d bytes more on the heap while building 100 MB", most)
	}
}
