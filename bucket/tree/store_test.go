package tree

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"agentrun.dev/errs"
)

// memStore is a Source and a Sink in memory, which counts reads.
type memStore struct {
	mu    sync.RWMutex
	nodes map[ID][]byte
	next  ID
	reads atomic.Int64
}

func newStore() *memStore { return &memStore{nodes: map[ID][]byte{}} }

func (s *memStore) Put(b []byte) (ID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	s.nodes[s.next] = b
	return s.next, nil
}

func (s *memStore) Node(ctx context.Context, id ID) ([]byte, error) {
	s.reads.Add(1)
	s.mu.RLock()
	defer s.mu.RUnlock()
	b, ok := s.nodes[id]
	if !ok {
		return nil, errs.New(errs.NotFound, "node", fmt.Sprint(id), nil)
	}
	return b, nil
}

// tiny makes trees of many levels out of few keys.
var tiny = Options{TargetNode: 160, MinNode: 48, MaxNode: 400}

var bg = context.Background()

func sorted(m map[string]string) []Edit {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	out := make([]Edit, len(keys))
	for i, k := range keys {
		out[i] = Edit{Key: []byte(k), Value: []byte(m[k])}
	}
	return out
}

func mustApply(t testing.TB, tr *Tree, root Root, edits []Edit, s Sink) Root {
	t.Helper()
	r, err := tr.Apply(bg, root, Slice(edits), s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// content reads a whole tree by iterator.
func content(t testing.TB, tr *Tree, root Root) []Edit {
	t.Helper()
	var out []Edit
	it := tr.Iter(root)
	for ok := it.Seek(bg, nil); ok; ok = it.Next(bg) {
		out = append(out, Edit{Key: it.Key(), Value: it.Value()})
	}
	if it.Err() != nil {
		t.Fatal(it.Err())
	}
	return out
}

func sameEntries(a, b []Edit) bool {
	return slices.EqualFunc(a, b, func(x, y Edit) bool { return bytes.Equal(x.Key, y.Key) && bytes.Equal(x.Value, y.Value) })
}

// path returns the i-th of many keys that look like a bucket's.
func path(i int) []byte {
	return fmt.Appendf(nil, "o/data/part-%03d/file-%08d.parquet", i/1000, i)
}

// record returns a value of the size and compressibility of an object's record.
func record(rng *rand.Rand, size int) []byte {
	b := make([]byte, size)
	for i := range b {
		if i < size/3 {
			b[i] = byte(rng.Uint32())
		} else {
			b[i] = "application/octet-stream 0000"[i%29]
		}
	}
	return b
}
