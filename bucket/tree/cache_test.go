package tree

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"agentrun.dev/errs"
)

func (c *cache) size() (bytes int64, nodes int) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		bytes += s.bytes
		nodes += len(s.nodes)
		s.mu.Unlock()
	}
	return bytes, nodes
}

func TestCacheIsBounded(t *testing.T) {
	const limit = 1 << 20
	tr, _, root := bigTree(t, 50_000, 60, limit)
	it := tr.Iter(root)
	for ok := it.Seek(bg, nil); ok; ok = it.Next(bg) {
	}
	if it.Err() != nil {
		t.Fatal(it.Err())
	}
	bytes, nodes := tr.cache.size()
	var real int64
	for i := range tr.cache.shards {
		s := &tr.cache.shards[i]
		if len(s.ring) != len(s.nodes) {
			t.Errorf("shard %d: %d in the ring, %d in the map", i, len(s.ring), len(s.nodes))
		}
		for _, e := range s.nodes {
			real += e.node.memory()
		}
	}
	if bytes > limit || bytes < limit/2 || real != bytes || nodes == 0 {
		t.Errorf("%d nodes, %d bytes accounted, %d real, limit %d", nodes, bytes, real, limit)
	}
}

// TestCacheKeepsUsed: a node in steady use survives a scan.
func TestCacheKeepsUsed(t *testing.T) {
	c := newCache(16 * 10 * sampleLeaf().memory())
	read := func(context.Context, ID) (*Node, error) { return sampleLeaf(), nil }
	if _, err := c.load(bg, 16, read); err != nil {
		t.Fatal(err)
	}
	for id := ID(32); id < 16000; id += 16 {
		if c.get(16) == nil {
			t.Fatalf("gone before node %d", id)
		}
		if _, err := c.load(bg, id, read); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCacheCoalesces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(1 << 20)
		var reads atomic.Int32
		release := make(chan struct{})
		read := func(context.Context, ID) (*Node, error) {
			reads.Add(1)
			<-release
			return sampleLeaf(), nil
		}
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if n, err := c.load(bg, 1, read); err != nil || n == nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(release)
		wg.Wait()
		if reads.Load() != 1 {
			t.Errorf("%d reads", reads.Load())
		}
	})
}

// TestCacheReaderGivesUp: those who wait don't fail because the one who reads was cancelled.
func TestCacheReaderGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(1 << 20)
		ctx, cancel := context.WithCancel(bg)
		read := func(ctx context.Context, id ID) (*Node, error) {
			if ctx != bg {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return sampleLeaf(), nil
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.load(ctx, 1, read); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if n, err := c.load(bg, 1, read); err != nil || n == nil {
				t.Error(err)
			}
		})
		gone, stop := context.WithCancel(bg)
		wg.Go(func() {
			if _, err := c.load(gone, 1, read); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		synctest.Wait()
		stop() // one that waits gives up
		synctest.Wait()
		cancel() // then the one that reads
		wg.Wait()
	})
}

func TestCacheForgetsErrors(t *testing.T) {
	c := newCache(1 << 20)
	fail := errs.Msg(errs.Unavailable, "read", "", "not now")
	if _, err := c.load(bg, 1, func(context.Context, ID) (*Node, error) { return nil, fail }); !errors.Is(err, fail) {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is lost")
			}
		}()
		c.load(bg, 1, func(context.Context, ID) (*Node, error) { panic("read") })
	}()
	if n, err := c.load(bg, 1, func(context.Context, ID) (*Node, error) { return sampleLeaf(), nil }); err != nil || n == nil {
		t.Fatal(err)
	}
}

// TestConcurrent reads, walks, compares and edits with a small cache; the race detector watches.
func TestConcurrent(t *testing.T) {
	const n = 5000
	tr, s, root := bigTree(t, n, 40, 256<<10)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 0))
			for range 60 {
				i := rng.IntN(n - 50)
				if v, err := tr.Get(bg, root, path(i)); err != nil || len(v) != 40 {
					t.Errorf("get %d: %d bytes, %v", i, len(v), err)
				}
				it := tr.Iter(root)
				it.Seek(bg, path(i))
				for range 40 {
					it.Next(bg)
				}
				if string(it.Key()) != string(path(i+40)) {
					t.Errorf("40 behind %d: %q, %v", i, it.Key(), it.Err())
				}
				edit := Edit{Key: path(i), Value: fmt.Append(nil, w)}
				b, err := tr.Apply(bg, root, Slice([]Edit{edit}), s)
				if err != nil {
					t.Error(err)
					continue
				}
				if got := countDiff(t, tr, root, b); got != 1 {
					t.Errorf("%d changes", got)
				}
			}
		})
	}
	wg.Wait()
}
