package bucket

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"agentrun.dev/blob"
	blobmem "agentrun.dev/blob/memory"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
	kvmem "agentrun.dev/kv/memory"
)

type rig struct {
	t     *testing.T
	s     *Store
	kv    kv.Store
	blobs blob.Store
	o     Options
}

func newRig(t *testing.T, o Options) *rig {
	t.Helper()
	r := newBareRig(t, o)
	t.Cleanup(func() { r.s.Close() })
	return r
}

// newBareRig is newRig for those who close the store themselves.
func newBareRig(t *testing.T, o Options) *rig {
	t.Helper()
	r := &rig{t: t, kv: kvmem.New(), blobs: blobmem.New(blobmem.Options{}), o: o}
	r.open()
	return r
}

func (r *rig) open() {
	r.t.Helper()
	o := r.o
	o.KV, o.Blobs = r.kv, r.blobs
	s, err := Open(context.Background(), o)
	if err != nil {
		r.t.Fatal(err)
	}
	r.s = s
}

func (r *rig) reopen() {
	r.t.Helper()
	if err := r.s.Close(); err != nil {
		r.t.Fatal(err)
	}
	r.open()
}

func (r *rig) bucket(name string) *Bucket {
	r.t.Helper()
	b, err := r.s.Bucket(context.Background(), name)
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

func (r *rig) create(name string) *Bucket {
	r.t.Helper()
	if _, err := r.s.Create(context.Background(), name, CreateOptions{}); err != nil {
		r.t.Fatal(err)
	}
	return r.bucket(name)
}

func (r *rig) fork(base, name string) *Bucket {
	r.t.Helper()
	if _, err := r.s.Fork(context.Background(), base, name, ForkOptions{}); err != nil {
		r.t.Fatal(err)
	}
	return r.bucket(name)
}

func (r *rig) put(b *Bucket, key, body string) *Object {
	r.t.Helper()
	ctx := context.Background()
	p, err := r.s.Stage(ctx, strings.NewReader(body), int64(len(body)))
	if err != nil {
		r.t.Fatal(err)
	}
	res, err := b.Apply(ctx, []Op{{Kind: OpPut, Key: key, Payload: p}}, ApplyOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return res[0]
}

func (r *rig) del(b *Bucket, key string) {
	r.t.Helper()
	if _, err := b.Apply(context.Background(), []Op{{Kind: OpDelete, Key: key}}, ApplyOptions{}); err != nil {
		r.t.Fatal(err)
	}
}

// get returns an object's bytes, or "-" if it doesn't exist.
func (r *rig) get(ref, key string) string {
	r.t.Helper()
	ctx := context.Background()
	name, at, err := r.s.Point(ctx, ref)
	if err != nil {
		r.t.Fatal(err)
	}
	v, err := r.s.View(ctx, name, at)
	if err != nil {
		r.t.Fatal(err)
	}
	defer v.Close()
	o, err := v.Get(ctx, key)
	if errs.Is(err, errs.NotFound) {
		return "-"
	}
	if err != nil {
		r.t.Fatal(err)
	}
	rd, err := v.Open(ctx, o)
	if err != nil {
		r.t.Fatal(err)
	}
	defer rd.Close()
	var buf bytes.Buffer
	if _, err := io.Copy(&buf, rd); err != nil {
		r.t.Fatal(err)
	}
	return buf.String()
}

func (r *rig) keys(ref string) string {
	r.t.Helper()
	ctx := context.Background()
	name, at, err := r.s.Point(ctx, ref)
	if err != nil {
		r.t.Fatal(err)
	}
	v, err := r.s.View(ctx, name, at)
	if err != nil {
		r.t.Fatal(err)
	}
	defer v.Close()
	var keys []string
	c := v.Scan(Scan{})
	for c.Next(ctx) {
		keys = append(keys, c.Key())
	}
	if c.Err() != nil {
		r.t.Fatal(c.Err())
	}
	return strings.Join(keys, " ")
}

func (r *rig) want(got, want string) {
	r.t.Helper()
	if got != want {
		if len(got) > 200 {
			got = got[:200] + "…"
		}
		r.t.Fatalf("got %q, want %q", got, want)
	}
}

func TestForkIsolation(t *testing.T) {
	r := newRig(t, Options{})
	b := r.create("base")
	big := strings.Repeat("0123456789abcdef", 300_000)
	r.put(b, "a", "one")
	r.put(b, "big", big)
	r.put(b, "mid", strings.Repeat("m", 5000))
	f := r.fork("base", "fork")
	r.put(f, "a", "two")
	r.put(b, "b", "three")
	r.want(r.get("base", "a"), "one")
	r.want(r.get("fork", "a"), "two")
	r.want(r.keys("base"), "a b big mid")
	r.want(r.keys("fork"), "a big mid")
	r.want(r.get("fork", "big"), big)
	r.reopen()
	r.want(r.get("fork", "big"), big)
	r.want(r.get("fork", "a"), "two")
	r.want(r.get("fork", "mid"), strings.Repeat("m", 5000))
	if err := r.s.Delete(context.Background(), "base", DeleteOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	r.want(r.get("fork", "big"), big)
	r.want(r.keys("fork"), "a big mid")
}

func TestFoldAndSnapshots(t *testing.T) {
	r := newRig(t, Options{FoldMin: 4000})
	b := r.create("base")
	var snaps []*Snapshot
	for i := range 400 {
		r.put(b, fmt.Sprintf("k%03d", i%100), fmt.Sprintf("v%d%s", i, strings.Repeat("x", i*7)))
		if i%40 == 39 {
			sn, err := r.s.TakeSnapshot(context.Background(), "base", SnapshotOptions{Name: fmt.Sprint("s", i)})
			if err != nil {
				t.Fatal(err)
			}
			snaps = append(snaps, sn)
		}
	}
	for n, sn := range snaps {
		i := n*40 + 39
		r.want(r.get(fmt.Sprintf("base@%d", sn.Version), fmt.Sprintf("k%03d", i%100)), fmt.Sprintf("v%d%s", i, strings.Repeat("x", i*7)))
	}
	if r.s.Metrics().Folds == 0 {
		t.Fatal("nothing was folded")
	}
	r.reopen()
	for n, sn := range snaps {
		i := n*40 + 39
		r.want(r.get(fmt.Sprintf("base@s%d", i), fmt.Sprintf("k%03d", i%100)), fmt.Sprintf("v%d%s", i, strings.Repeat("x", i*7)))
		_ = sn
	}
}
