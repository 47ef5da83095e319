package bucket

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"agentrun.dev/kv"
)

// TestForksAreCuts takes forks and snapshots while writers write pairs and folds go on: each cut shows whole pairs.
func TestForksAreCuts(t *testing.T) {
	r := newRig(t, Options{FoldMin: 500, History: -1, OpenBuckets: 4})
	b := r.create("base")
	ctx := context.Background()
	write := func(i, n int) error {
		body := strings.Repeat(fmt.Sprint(i, "-", n, " "), 1+n%500)
		var ops []Op
		for _, side := range []string{"l", "r"} {
			p, err := r.s.Stage(ctx, strings.NewReader(body), int64(len(body)))
			if err != nil {
				return err
			}
			ops = append(ops, Op{Kind: OpPut, Key: fmt.Sprint(side, i), Payload: p})
		}
		_, err := b.Apply(ctx, ops, ApplyOptions{})
		return err
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := write(i, n); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for n := range 60 {
		at := "base"
		if n%3 == 0 {
			sn, err := r.s.TakeSnapshot(ctx, "base", SnapshotOptions{})
			if err != nil {
				t.Fatal(err)
			}
			at = fmt.Sprintf("base@%d", sn.Version)
		} else {
			at = fmt.Sprintf("fork-%d", n)
			r.fork("base", at)
		}
		for i := range 3 {
			r.want(r.get(at, fmt.Sprint("l", i)), r.get(at, fmt.Sprint("r", i)))
		}
		r.s.evict()
	}
	close(stop)
	wg.Wait()
	for n := range 60 {
		if n%3 != 0 {
			if err := r.s.Delete(ctx, fmt.Sprintf("fork-%d", n), DeleteOptions{Force: true}); err != nil {
				t.Fatal(err)
			}
		}
	}
	sound(t, r.s)
	if err := r.s.Delete(ctx, "base", DeleteOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	empty(t, r.s)
}

// TestForkCost holds ten thousand forks with a key of their own to 1 KB of records each.
func TestForkCost(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 1000
	}
	r := newRig(t, Options{})
	r.put(r.create("base"), "k", "v")
	size := func() (sum int) {
		if err := r.kv.Scan(context.Background(), kv.Range{}, func(k, v []byte) error { sum += len(k) + len(v); return nil }); err != nil {
			t.Fatal(err)
		}
		return sum
	}
	before := size()
	for i := range n {
		r.put(r.fork("base", fmt.Sprintf("fork-%d", i)), "k", "mine")
	}
	each := (size() - before) / n
	t.Logf("%d bytes each", each)
	if each > 1000 {
		t.Fatalf("a fork of one key takes %d bytes", each)
	}
}
