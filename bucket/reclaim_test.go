package bucket

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
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

// TestReclaim deletes forks in a random order: each gives back what Usage said, no more and no less, and nobody else
// notices.
func TestReclaim(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { reclaim(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func reclaim(t *testing.T, rng *rand.Rand) {
	r := newRig(t, Options{History: -1})
	b := r.create("base")
	want := map[string]map[string]string{"base": {}}
	set := func(b *Bucket, name, key, body string) {
		r.put(b, key, body)
		want[name][key] = body
	}
	for i := range 4 {
		set(b, "base", fmt.Sprint("k", i), large(fmt.Sprint("base", i), 100_000<<i))
	}
	r.fold("base")
	names := []string{"base"}
	for n := range 6 {
		parent, name := names[rng.IntN(len(names))], fmt.Sprint("fork-", n)
		f := r.fork(parent, name)
		names = append(names, name)
		want[name] = map[string]string{}
		for k, v := range want[parent] {
			want[name][k] = v
		}
		for range rng.IntN(5) {
			key, body := fmt.Sprint("k", rng.IntN(7)), large(name, 70_000+rng.IntN(400_000))
			switch rng.IntN(4) {
			case 0:
				r.del(f, key)
				delete(want[name], key)
			case 1: // an object of many extents
				for i := range 10 {
					r.patch(f, "many", int64(i)*200_000, body)
				}
				want[name]["many"] = r.get(name, "many")
			default:
				set(f, name, key, body)
			}
		}
		if rng.IntN(2) == 0 {
			r.fold(name)
		}
	}
	r.gc()
	check := func() {
		t.Helper()
		for name, objects := range want {
			for k := range 7 {
				key := fmt.Sprint("k", k)
				body, ok := objects[key]
				if !ok {
					body = "-"
				}
				r.want(r.get(name, key), body)
			}
			if body, ok := objects["many"]; ok {
				r.want(r.get(name, "many"), body)
			}
		}
	}
	check()
	rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	gave := int64(0)
	for _, name := range names {
		r.gc()
		own := r.unique(name)
		gave += own
		before := r.live()
		r.drop(name)
		delete(want, name)
		r.shrinks(before - own)
		check()
	}
	if gave == 0 {
		t.Fatal("nothing was given back")
	}
	empty(t, r.s)
}
