package tree

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"pgregory.net/rapid"
)

// applyModel is Apply on a map: ranges and deletes act on the old content, then puts on top.
func applyModel(old map[string]string, edits []Edit) map[string]string {
	m := maps.Clone(old)
	for _, e := range edits {
		switch {
		case e.isRange():
			for k := range old {
				if k >= string(e.Key) && k < string(e.End) {
					delete(m, k)
				}
			}
		case e.Delete:
			delete(m, string(e.Key))
		}
	}
	for _, e := range edits {
		if !e.Delete {
			m[string(e.Key)] = string(e.Value)
		}
	}
	return m
}

// keyKinds are key generators that are hard on a splitter or on prefix compression.
var keyKinds = map[string]func(t *rapid.T) string{
	"sequential": func(t *rapid.T) string { return fmt.Sprintf("%06d", rapid.IntRange(0, 400).Draw(t, "n")) },
	"one byte":   func(t *rapid.T) string { return string([]byte{byte(rapid.IntRange(0, 255).Draw(t, "b"))}) },
	"prefixed": func(t *rapid.T) string {
		return string(bytes.Repeat([]byte("p/"), 300)) + fmt.Sprintf("%03d", rapid.IntRange(0, 200).Draw(t, "n"))
	},
	"run":   func(t *rapid.T) string { return string(make([]byte, rapid.IntRange(0, 500).Draw(t, "n"))) },
	"bytes": func(t *rapid.T) string { return string(rapid.SliceOfN(rapid.Byte(), 0, 6).Draw(t, "key")) },
	"paths": func(t *rapid.T) string { return string(path(rapid.IntRange(0, 900).Draw(t, "n"))) },
}

// drawEdits draws an edit stream: points at distinct keys, and ranges.
func drawEdits(t *rapid.T, key func(*rapid.T) string, most int) []Edit {
	points := map[string]Edit{}
	for range rapid.IntRange(0, most).Draw(t, "points") {
		k := key(t)
		e := Edit{Key: []byte(k)}
		if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
			e.Delete = true
		} else {
			e.Value = bytes.Repeat([]byte{byte(rapid.IntRange(0, 3).Draw(t, "v"))}, rapid.IntRange(0, 60).Draw(t, "len"))
		}
		points[k] = e
	}
	var out []Edit
	for _, e := range points {
		out = append(out, e)
	}
	for range rapid.IntRange(0, 2).Draw(t, "ranges") {
		if a, b := key(t), key(t); a != b {
			out = append(out, Edit{Key: []byte(min(a, b)), End: []byte(max(a, b)), Delete: true})
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return bytes.Compare(out[i].Key, out[j].Key) < 0 })
	return out
}

// TestApplyModel: whatever the edits, the tree has the model's content, and the hash and shape of one built anew.
func TestApplyModel(t *testing.T) {
	for name, key := range keyKinds {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				o := tiny
				o.TargetNode = rapid.SampledFrom([]int{64, 160, 400, 2000}).Draw(t, "target")
				o.MinNode, o.MaxNode = o.TargetNode/4, o.TargetNode*4
				if rapid.Bool().Draw(t, "uncached") {
					o.CacheBytes = -1
				}
				s := newStore()
				tr := New(s, o)
				m := map[string]string{}
				var root Root
				for range rapid.IntRange(1, 6).Draw(t, "rounds") {
					edits := drawEdits(t, key, 150)
					before := s.next
					next, err := tr.Apply(bg, root, Slice(edits), s)
					if err != nil {
						t.Fatal(err)
					}
					m = applyModel(m, edits)
					checkBuilt(t, tr, s, next, m)
					checkAllUsed(t, tr, s, next, before)
					root = next
				}
			})
		})
	}
}

// checkBuilt compares a tree with one that is built from the model.
func checkBuilt(t *rapid.T, tr *Tree, s *memStore, root Root, m map[string]string) {
	want, err := tr.Build(bg, Slice(sorted(m)), newStore())
	if err != nil {
		t.Fatal(err)
	}
	got := root
	if want.ID, got.ID = 0, 0; got != want {
		t.Fatalf("after edits %+v, built %+v", got, want)
	}
	var bytes uint64
	for k, v := range m {
		bytes += uint64(len(k) + len(v))
	}
	if root.Count != uint64(len(m)) || root.Bytes != bytes {
		t.Fatalf("sums %d, %d; want %d, %d", root.Count, root.Bytes, len(m), bytes)
	}
	if err := tr.Check(bg, root); err != nil {
		t.Fatal(err)
	}
	it, all := tr.Iter(root), sorted(m)
	i := 0
	for ok := it.Seek(bg, nil); ok; ok = it.Next(bg) {
		if i >= len(all) || string(it.Key()) != string(all[i].Key) || string(it.Value()) != string(all[i].Value) {
			t.Fatalf("entry %d is %q", i, it.Key())
		}
		i++
	}
	if it.Err() != nil || i != len(all) {
		t.Fatalf("%d entries of %d, %v", i, len(all), it.Err())
	}
	for k, v := range m {
		if got, err := tr.Get(bg, root, []byte(k)); err != nil || got == nil || string(got) != v {
			t.Fatalf("get %q: %q, %v", k, got, err)
		}
		if got, err := tr.Get(bg, root, append([]byte(k), 0xfe, 0xfe)); err != nil || got != nil {
			t.Fatalf("get of a missing key: %q, %v", got, err)
		}
	}
}

// checkAllUsed verifies that each node put since an id is part of the tree, with children before parents and the root last.
func checkAllUsed(t *rapid.T, tr *Tree, s *memStore, root Root, since ID) {
	used := map[ID]bool{}
	err := tr.Walk(bg, root, func(id ID, n *Node) (bool, error) {
		used[id] = true
		for i := range n.Len() {
			if c := n.Child(i); c.ID >= id {
				return false, fmt.Errorf("node %d has child %d", id, c.ID)
			}
		}
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for id := since + 1; id <= s.next; id++ {
		if !used[id] {
			t.Fatalf("node %d is not used", id)
		}
	}
	if s.next > since && root.ID != s.next {
		t.Fatalf("root %d is not the last node, %d", root.ID, s.next)
	}
}

// TestApplyExhaustive applies every combination of puts with every range to every tree of a few keys, the empty one among
// them. Nodes of one or two entries make it trees of up to four levels.
func TestApplyExhaustive(t *testing.T) {
	keys := []string{"", "\x00", "\x00\x00", "\x00\x01", "\x01", "\x02"}
	all := 1 << len(keys)
	old, fresh := bytes.Repeat([]byte{1}, 30), bytes.Repeat([]byte{2}, 40)
	s := newStore()
	tr := New(s, Options{TargetNode: 60, MinNode: 16, MaxNode: 200})
	puts := func(mask int, value []byte) (edits []Edit) {
		for i, k := range keys {
			if mask>>i&1 != 0 {
				edits = append(edits, Edit{Key: []byte(k), Value: value})
			}
		}
		return edits
	}
	built := map[[2]int]Root{} // by the keys that have the old and the new value
	for a := range all {
		for b := range all {
			if a&b == 0 {
				edits := append(puts(a, old), puts(b, fresh)...)
				slices.SortFunc(edits, func(x, y Edit) int { return bytes.Compare(x.Key, y.Key) })
				built[[2]int{a, b}] = mustApply(t, tr, Root{}, edits, s)
			}
		}
	}
	for a := range all {
		for b := range all {
			for lo := range keys {
				for hi := lo; hi < len(keys); hi++ { // an empty range stands for none
					edits := puts(b, fresh)
					if lo < hi {
						r := Edit{Key: []byte(keys[lo]), End: []byte(keys[hi]), Delete: true}
						at := sort.Search(len(edits), func(i int) bool { return string(edits[i].Key) >= keys[lo] })
						edits = slices.Insert(edits, at, r)
					} else if lo > 0 {
						continue
					}
					got := mustApply(t, tr, built[[2]int{a, 0}], edits, &countSink{next: s.next})
					want := built[[2]int{a &^ b &^ (1<<hi - 1<<lo), b}]
					if got.ID, want.ID = 0, 0; got != want {
						t.Fatalf("keys %b, puts %b, range %d to %d: %+v, want %+v", a, b, lo, hi, got, want)
					}
				}
			}
		}
	}
}

// TestApplyLarge makes many edits of all kinds at full node size.
func TestApplyLarge(t *testing.T) {
	tr, s, root := bigTree(t, 30_000, 100, 0)
	rng := rand.New(rand.NewPCG(11, 12))
	m := map[string]string{}
	for _, e := range content(t, tr, root) {
		m[string(e.Key)] = string(e.Value)
	}
	for range 8 {
		points := map[int]Edit{}
		for range 300 {
			i := rng.IntN(40_000)
			points[i] = Edit{Key: path(i), Value: record(rng, rng.IntN(4000)), Delete: rng.IntN(3) == 0}
			if e := points[i]; e.Delete {
				points[i] = Edit{Key: e.Key, Delete: true}
			}
		}
		edits := slices.Collect(maps.Values(points))
		for range 3 {
			i := rng.IntN(40_000)
			edits = append(edits, Edit{Key: path(i), End: path(i + 1 + rng.IntN(2000)), Delete: true})
		}
		slices.SortStableFunc(edits, func(x, y Edit) int { return bytes.Compare(x.Key, y.Key) })
		root = mustApply(t, tr, root, edits, s)
		m = applyModel(m, edits)
		want := mustApply(t, tr, Root{}, sorted(m), newStore())
		if want.ID = root.ID; root != want {
			t.Fatalf("after edits %+v, built %+v", root, want)
		}
	}
	if err := tr.Check(bg, root); err != nil {
		t.Fatal(err)
	}
}
