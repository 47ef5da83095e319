package tree

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"pgregory.net/rapid"
)

// drawTree builds a tree of drawn content, often one of several levels.
func drawTree(t *rapid.T, key func(*rapid.T) string) (*Tree, *memStore, Root, map[string]string) {
	s := newStore()
	tr := New(s, tiny)
	m := applyModel(map[string]string{}, drawEdits(t, key, 300))
	root, err := tr.Build(bg, Slice(sorted(m)), s)
	if err != nil {
		t.Fatal(err)
	}
	return tr, s, root, m
}

// TestIterModel moves an iterator at random and compares it with an index into the sorted content.
func TestIterModel(t *testing.T) {
	for name, key := range keyKinds {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				tr, _, root, m := drawTree(t, key)
				all := sorted(m)
				it := tr.Iter(root)
				at := -1 // no entry
				lower := func(k string) int {
					return sort.Search(len(all), func(i int) bool { return string(all[i].Key) >= k })
				}
				for range rapid.IntRange(1, 60).Draw(t, "moves") {
					var ok bool
					switch rapid.IntRange(0, 5).Draw(t, "move") {
					case 0:
						k := key(t)
						at, ok = lower(k), it.Seek(bg, []byte(k))
					case 1:
						k := key(t)
						at, ok = lower(k)-1, it.SeekBefore(bg, []byte(k))
					case 2:
						at, ok = len(all)-1, it.SeekLast(bg)
					case 3, 4:
						if ok = it.Next(bg); at >= 0 {
							at++
						}
					default:
						ok = it.Prev(bg)
						at--
					}
					if at < 0 || at >= len(all) {
						at = -1
					}
					if it.Err() != nil || ok != it.Valid() || ok != (at >= 0) {
						t.Fatalf("valid %v, returned %v, want entry %d; %v", it.Valid(), ok, at, it.Err())
					}
					if ok && (!bytes.Equal(it.Key(), all[at].Key) || !bytes.Equal(it.Value(), all[at].Value)) {
						t.Fatalf("at %q, want %q", it.Key(), all[at].Key)
					}
					if !ok && (it.Key() != nil || it.Value() != nil) {
						t.Fatal("an entry where there is none")
					}
				}
			})
		})
	}
}

// drawBounds draws the bounds of a range; hi may be nil.
func drawBounds(t *rapid.T, key func(*rapid.T) string) (lo, hi []byte) {
	if rapid.Bool().Draw(t, "lo") {
		lo = []byte(key(t))
	}
	if rapid.Bool().Draw(t, "hi") {
		hi = []byte(key(t))
	}
	return lo, hi
}

func within(k string, lo, hi []byte) bool { return k >= string(lo) && (hi == nil || k < string(hi)) }

func TestDiffAndSumModel(t *testing.T) {
	for name, key := range keyKinds {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				tr, s, a, m := drawTree(t, key)
				edits := drawEdits(t, key, 40)
				n := applyModel(m, edits)
				b, err := tr.Apply(bg, a, Slice(edits), s)
				if err != nil {
					t.Fatal(err)
				}
				lo, hi := drawBounds(t, key)
				var want, got []string
				var count, size uint64
				for k, v := range m {
					if w, ok := n[k]; within(k, lo, hi) && (!ok || v != w) {
						want = append(want, change(k, v, true, w, ok))
					}
				}
				for k, w := range n {
					if !within(k, lo, hi) {
						continue
					}
					count++
					size += uint64(len(k) + len(w))
					if _, ok := m[k]; !ok {
						want = append(want, change(k, "", false, w, true))
					}
				}
				slices.Sort(want)
				var prev []byte
				err = tr.Diff(bg, a, b, lo, hi, func(k, av, bv []byte) error {
					if len(got) > 0 && bytes.Compare(prev, k) >= 0 {
						t.Fatalf("%q after %q", k, prev)
					}
					prev = k
					got = append(got, change(string(k), string(av), av != nil, string(bv), bv != nil))
					return nil
				})
				slices.Sort(got)
				if err != nil || !slices.Equal(got, want) {
					t.Fatalf("diff [%q, %q): %v\n got %q\nwant %q", lo, hi, err, got, want)
				}
				if c, n, err := tr.Sum(bg, b, lo, hi); err != nil || c != count || n != size {
					t.Fatalf("sum [%q, %q) is %d, %d, %v; want %d, %d", lo, hi, c, n, err, count, size)
				}
			})
		})
	}
}

func change(k, a string, inA bool, b string, inB bool) string {
	return fmt.Sprintf("%q %q %v %q %v", k, a, inA, b, inB)
}

// bigTree builds n path-like keys with values of a size, uncached.
func bigTree(t testing.TB, n, size int, cache int64) (*Tree, *memStore, Root) {
	t.Helper()
	s := newStore()
	tr := New(s, Options{CacheBytes: cache})
	rng := rand.New(rand.NewPCG(1, 2))
	root, err := tr.Build(bg, func(yield func(Edit, error) bool) {
		for i := range n {
			if !yield(Edit{Key: path(i), Value: record(rng, size)}, nil) {
				return
			}
		}
	}, s)
	if err != nil {
		t.Fatal(err)
	}
	return tr, s, root
}

func countDiff(t testing.TB, tr *Tree, a, b Root) (n int) {
	t.Helper()
	err := tr.Diff(bg, a, b, nil, nil, func(k, av, bv []byte) error { n++; return nil })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestDiffReads: a diff reads what leads to changes and nothing else, also if the trees' heights differ or all nodes have
// shifted against each other.
func TestDiffReads(t *testing.T) {
	const n = 50_000
	tr, s, a := bigTree(t, n, 60, -1)
	var nodes int64
	if err := tr.Walk(bg, a, func(ID, *Node) (bool, error) { nodes++; return true, nil }); err != nil {
		t.Fatal(err)
	}
	depth := int64(a.Level) + 1
	reads := func(b Root, changes int) int64 { t.Helper(); return diffReads(t, tr, s, a, b, changes) }
	if got := reads(a, 0); got != 0 {
		t.Errorf("a tree against itself: %d reads", got)
	}
	one := mustApply(t, tr, a, []Edit{{Key: path(n / 2), Value: []byte("new")}}, s)
	if got := reads(one, 1); got > 2*depth {
		t.Errorf("one change: %d reads at depth %d", got, depth)
	}
	// Ten changes far apart.
	var edits []Edit
	for i := range 10 {
		edits = append(edits, Edit{Key: append(path(i*n/10+7), 'x'), Value: []byte("new")})
	}
	ten := mustApply(t, tr, a, edits, s)
	if got := reads(ten, 10); got > 20*(depth+2) {
		t.Errorf("ten changes: %d reads at depth %d", got, depth)
	}
	// Whole leaves in front, so that whatever follows has another position.
	edits = edits[:0]
	for i := range 1000 {
		edits = append(edits, Edit{Key: fmt.Appendf(nil, "a/%04d", i), Value: make([]byte, 60)})
	}
	front := mustApply(t, tr, a, edits, s)
	if got := reads(front, 1000); got > nodes/8 {
		t.Errorf("a thousand keys in front: %d reads of %d nodes", got, nodes)
	}
}

// diffReads returns how many nodes a diff reads, the mean of both directions.
func diffReads(t *testing.T, tr *Tree, s *memStore, a, b Root, changes int) int64 {
	t.Helper()
	before := s.reads.Load()
	if got := countDiff(t, tr, a, b); got != changes {
		t.Fatalf("%d changes, want %d", got, changes)
	}
	if got := countDiff(t, tr, b, a); got != changes {
		t.Fatalf("%d changes backwards, want %d", got, changes)
	}
	return (s.reads.Load() - before) / 2
}

// TestDiffReadsAcrossHeights compares a tree with a higher one that holds it all and large entries behind it.
func TestDiffReadsAcrossHeights(t *testing.T) {
	tr, s, a := bigTree(t, 50_000, 60, -1)
	var edits []Edit
	for i := range 1000 {
		key := fmt.Appendf(bytes.Repeat([]byte("z"), 3000), "%04d", i)
		edits = append(edits, Edit{Key: key, Value: make([]byte, 8000)})
	}
	higher := mustApply(t, tr, a, edits, s)
	if higher.Level <= a.Level {
		t.Fatalf("level %d isn't above %d", higher.Level, a.Level)
	}
	reads := diffReads(t, tr, s, a, higher, len(edits))
	added := int64(s.next - a.ID)
	if reads > added+3*int64(higher.Level+1) {
		t.Errorf("%d reads, %d nodes are new", reads, added)
	}
}

func TestDiffStops(t *testing.T) {
	tr, _, root := bigTree(t, 1000, 10, 0)
	stop := errors.New("stop")
	calls := 0
	err := tr.Diff(bg, root, Root{}, nil, nil, func(k, av, bv []byte) error { calls++; return stop })
	if !errors.Is(err, stop) || calls != 1 {
		t.Fatalf("%d calls, %v", calls, err)
	}
}
