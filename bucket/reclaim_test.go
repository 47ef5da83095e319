package bucket

import (
	"context"
	"strings"
	"time"
)

// live is how much payload lies in slots that something refers to.
func (r *rig) live() (n int64) {
	r.t.Helper()
	list, err := r.s.segments.Segments(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, g := range list {
		n += g.Bytes - g.DeadBytes
	}
	return n
}

// gc collects, after open buckets have moved on to the trees that folds made for them.
func (r *rig) gc() {
	r.t.Helper()
	r.s.evict()
	if _, err := r.s.GC(context.Background()); err != nil {
		r.t.Fatal(err)
	}
}

// shrinks collects until so much payload is live: a fold under way may hold some for a while.
func (r *rig) shrinks(to int64) {
	r.t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if r.gc(); r.live() <= to {
			break
		}
	}
	r.gc()
	if n := r.live(); n != to {
		r.t.Fatalf("%d bytes are live, not %d", n, to)
	}
}

func (r *rig) fold(name string) {
	r.t.Helper()
	if err := foldNow(name).do(newRun(r.s)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) unique(name string) int64 {
	r.t.Helper()
	u, err := r.s.Usage(context.Background(), name)
	if err != nil {
		r.t.Fatal(err)
	}
	return int64(u.Unique)
}

func (r *rig) drop(name string) {
	r.t.Helper()
	if err := r.s.Delete(context.Background(), name, DeleteOptions{Force: true}); err != nil {
		r.t.Fatal(err)
	}
}

// large is a body that takes slots.
func large(seed string, size int) string { return strings.Repeat(seed+" ", size/(len(seed)+1)) }

func (r *rig) patch(b *Bucket, key string, off int64, body string) {
	r.t.Helper()
	ctx := context.Background()
	p, err := r.s.Stage(ctx, strings.NewReader(body), int64(len(body)))
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := b.Apply(ctx, []Op{{Kind: OpWrite, Key: key, Offset: off, Payload: p}}, ApplyOptions{}); err != nil {
		r.t.Fatal(err)
	}
}
