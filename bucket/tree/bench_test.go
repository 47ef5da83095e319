package tree

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"sync"
	"testing"
)

const benchKeys = 1_000_000

// million is the tree that the benchmarks share: 10⁶ path-like keys of 42 bytes with values of 150.
var million = sync.OnceValue(func() *benchTree {
	s := newStore()
	rng := rand.New(rand.NewPCG(1, 2))
	root, err := New(s, Options{}).Build(bg, benchEntries(rng, benchKeys), s)
	if err != nil {
		panic(err)
	}
	return &benchTree{s, root}
})

type benchTree struct {
	s    *memStore
	root Root
}

func benchEntries(rng *rand.Rand, n int) Edits {
	var values [1024][]byte
	for i := range values {
		values[i] = record(rng, 150)
	}
	return func(yield func(Edit, error) bool) {
		key := make([]byte, 0, 64)
		for i := range n {
			key = fmt.Appendf(key[:0], "o/data/part-%03d/file-%08d.parquet", i/1000, i)
			v := values[rng.IntN(len(values))]
			v[i%40]++
			if !yield(Edit{Key: key, Value: v}, nil) {
				return
			}
		}
	}
}

func BenchmarkGet(b *testing.B) {
	m := million()
	for _, c := range []struct {
		name  string
		cache int64
	}{{"cached", 1 << 30}, {"uncached", -1}} {
		b.Run(c.name, func(b *testing.B) {
			tr := New(m.s, Options{CacheBytes: c.cache})
			keys := make([][]byte, 4096)
			rng := rand.New(rand.NewPCG(3, 4))
			for i := range keys {
				keys[i] = path(rng.IntN(benchKeys))
				if v, err := tr.Get(bg, m.root, keys[i]); err != nil || v == nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if _, err := tr.Get(bg, m.root, keys[i%len(keys)]); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}

func BenchmarkGetParallel(b *testing.B) {
	m := million()
	tr := New(m.s, Options{CacheBytes: 1 << 30})
	b.RunParallel(func(pb *testing.PB) {
		rng := rand.New(rand.NewPCG(rand.Uint64(), 0))
		keys := make([][]byte, 1024)
		for i := range keys {
			keys[i] = path(rng.IntN(benchKeys))
		}
		for i := 0; pb.Next(); i++ {
			if _, err := tr.Get(bg, m.root, keys[i%len(keys)]); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func randomPuts(rng *rand.Rand, n int) []Edit {
	seen := map[int]bool{}
	var edits []Edit
	for len(edits) < n {
		if i := rng.IntN(benchKeys); !seen[i] {
			seen[i] = true
			edits = append(edits, Edit{Key: path(i), Value: record(rng, 150)})
		}
	}
	sort.Slice(edits, func(i, j int) bool { return string(edits[i].Key) < string(edits[j].Key) })
	return edits
}

func BenchmarkApply(b *testing.B) {
	m := million()
	for _, n := range []int{1, 100, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			tr := New(m.s, Options{CacheBytes: 1 << 30})
			edits := randomPuts(rand.New(rand.NewPCG(5, 6)), n)
			b.ReportAllocs()
			var stored, nodes int64
			for b.Loop() {
				s := &countSink{next: m.root.ID}
				mustApply(b, tr, m.root, edits, s)
				stored, nodes = s.bytes, s.nodes
			}
			b.ReportMetric(float64(stored)/float64(n), "B-stored/edit")
			b.ReportMetric(float64(nodes)/float64(n), "nodes/edit")
		})
	}
}

// countSink throws nodes away.
type countSink struct {
	next         ID
	bytes, nodes int64
}

func (s *countSink) Put(b []byte) (ID, error) {
	s.next++
	s.nodes++
	s.bytes += int64(len(b))
	return s.next, nil
}

func BenchmarkBuild(b *testing.B) {
	b.ReportAllocs()
	var s *countSink
	n := 0
	for b.Loop() {
		s = new(countSink)
		tr := New(newStore(), Options{})
		if _, err := tr.Build(bg, benchEntries(rand.New(rand.NewPCG(1, 2)), benchKeys), s); err != nil {
			b.Fatal(err)
		}
		n += benchKeys
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "entries/s")
	b.ReportMetric(float64(s.bytes)/benchKeys, "B-stored/entry")
	b.ReportMetric(float64(s.nodes), "nodes")
}

func BenchmarkDiff100(b *testing.B) {
	m := million()
	for _, c := range []struct {
		name  string
		cache int64
	}{{"warm", 1 << 30}, {"cold", -1}} {
		b.Run(c.name, func(b *testing.B) {
			tr := New(m.s, Options{CacheBytes: c.cache})
			root := mustApply(b, tr, m.root, randomPuts(rand.New(rand.NewPCG(7, 8)), 100), m.s)
			countDiff(b, tr, m.root, root)
			b.ReportAllocs()
			for b.Loop() {
				if countDiff(b, tr, m.root, root) != 100 {
					b.Fatal("not 100 changes")
				}
			}
		})
	}
}

func BenchmarkIter1000(b *testing.B) {
	m := million()
	for _, c := range []struct {
		name  string
		cache int64
	}{{"warm", 1 << 30}, {"cold", -1}} {
		b.Run(c.name, func(b *testing.B) {
			tr := New(m.s, Options{CacheBytes: c.cache})
			rng := rand.New(rand.NewPCG(9, 10))
			starts := make([][]byte, 16)
			for i := range starts {
				starts[i] = path(rng.IntN(benchKeys - 1000))
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				it := tr.Iter(m.root)
				it.Seek(bg, starts[i%len(starts)])
				for range 1000 {
					if len(it.Key())+len(it.Value()) == 0 || !it.Next(bg) {
						b.Fatal(it.Err())
					}
				}
				i++
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	m := million()
	id := m.root.ID / 2
	enc := m.s.nodes[id]
	n, err := Decode(enc)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(n.data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(enc); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	m := million()
	n, err := Decode(m.s.nodes[m.root.ID/2])
	if err != nil {
		b.Fatal(err)
	}
	tr := New(m.s, Options{})
	b.SetBytes(int64(len(n.data)))
	b.ReportAllocs()
	var body []byte
	for b.Loop() {
		_, body = encode(n, tr.zip, body)
	}
}

func BenchmarkHash(b *testing.B) {
	m := million()
	n, err := Decode(m.s.nodes[m.root.ID/2])
	if err != nil {
		b.Fatal(err)
	}
	h := newHasher()
	b.SetBytes(int64(len(n.data)))
	for b.Loop() {
		h.sum(n)
	}
}
