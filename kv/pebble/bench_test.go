package pebble

import (
	"encoding/binary"
	"sync/atomic"
	"testing"
	"time"

	"slices"
	"sync"

	"agentrun.dev/kv"
)

func benchCommit(b *testing.B, writers int, lazy bool) {
	s := openDir(b, b.TempDir())
	defer s.Close()
	var n atomic.Uint64
	value := make([]byte, 100)
	var mu sync.Mutex
	var all []time.Duration
	b.ReportAllocs()
	one := func() time.Duration {
		key := binary.BigEndian.AppendUint64(nil, n.Add(1))
		start := time.Now()
		if err := s.Commit(bg, &kv.Batch{Puts: []kv.Pair{{Key: key, Value: value}}, Lazy: lazy}); err != nil {
			b.Error(err)
		}
		return time.Since(start)
	}
	if writers == 1 {
		for b.Loop() {
			all = append(all, one())
		}
	} else {
		b.SetParallelism(writers / 2)
		b.RunParallel(func(pb *testing.PB) {
			var mine []time.Duration
			for pb.Next() {
				mine = append(mine, one())
			}
			mu.Lock()
			all = append(all, mine...)
			mu.Unlock()
		})
	}
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-µs")
}

func BenchmarkCommit(b *testing.B)          { benchCommit(b, 1, false) }
func BenchmarkCommitWriters32(b *testing.B) { benchCommit(b, 32, false) }
func BenchmarkCommitLazy(b *testing.B)      { benchCommit(b, 1, true) }

func BenchmarkGet(b *testing.B) {
	s := openDir(b, b.TempDir())
	defer s.Close()
	const n = 100_000
	batch := &kv.Batch{}
	for i := range uint64(n) {
		batch.Put(binary.BigEndian.AppendUint64(nil, i), make([]byte, 100))
	}
	if err := s.Commit(bg, batch); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	key := make([]byte, 8)
	i := uint64(0)
	for b.Loop() {
		i = (i + 7919) % n
		binary.BigEndian.PutUint64(key, i)
		if _, err := s.Get(bg, key); err != nil {
			b.Fatal(err)
		}
	}
}
