package volume_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentrun.dev/blob/memory"
	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	kvmemory "agentrun.dev/kv/memory"
	"agentrun.dev/vfs"
	"agentrun.dev/volume"
)

var ctx = context.Background()

func newStore(t testing.TB) *bucket.Store {
	t.Helper()
	s, err := bucket.Open(ctx, bucket.Options{KV: kvmemory.New(), Blobs: memory.New(memory.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// world is the volumes of a sandbox, as it sees them.
type world struct {
	t   testing.TB
	set *volume.Set
	ns  *vfs.Namespace
}

func see(t testing.TB, set *volume.Set, err error) *world {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var ns *vfs.Namespace
	mounts := set.Mounts()
	for _, m := range mounts {
		if m.Path == "/" {
			ns = vfs.NewNamespace(m)
		}
	}
	for _, m := range mounts {
		if m.Path != "/" {
			if err := ns.Mount(ctx, m); err != nil {
				t.Fatal(err)
			}
		}
	}
	return &world{t, set, ns}
}

func (w *world) write(path, text string) {
	w.t.Helper()
	f, err := w.ns.Open(ctx, vfs.Cred{}, "", path, vfs.O_WRONLY|vfs.O_CREAT|vfs.O_TRUNC, 0o644)
	if err == nil {
		_, err = f.Write([]byte(text))
		f.Close()
	}
	if err != nil {
		w.t.Fatalf("write %s: %v", path, err)
	}
}

func (w *world) read(path string) string {
	f, err := w.ns.Open(ctx, vfs.Cred{}, "", path, vfs.O_RDONLY, 0)
	if err != nil {
		return "-"
	}
	defer f.Close()
	b, _ := io.ReadAll(f)
	return string(b)
}

func (w *world) close() {
	w.t.Helper()
	if err := w.set.Close(ctx); err != nil {
		w.t.Errorf("close: %v", err)
	}
}

func names(t testing.TB, s *bucket.Store) (list []string) {
	t.Helper()
	if err := s.List(ctx, func(i *bucket.Info) error { list = append(list, i.Name); return nil }); err != nil {
		t.Fatal(err)
	}
	return list
}

// TestFork cuts volumes of every kind and policy, goes on writing, and forks the cut twice, once after saving it.
func TestFork(t *testing.T) {
	store := newStore(t)
	for _, name := range []string{"base", "team", "data"} {
		if _, err := store.Create(ctx, name, bucket.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	host := t.TempDir()
	if err := os.WriteFile(filepath.Join(host, "f"), []byte("host"), 0o644); err != nil {
		t.Fatal(err)
	}
	o := volume.Options{Store: store, Owner: "one", UID: 1000, GID: 1000}
	set, err := volume.Open(ctx, o, []volume.Spec{
		{Name: "root", Path: "/"},
		{Name: "workspace", Base: "base"},
		{Name: "Data_1", Path: "/data", Bucket: "data"},
		{Name: "team", Bucket: "team", Policy: volume.Share},
		{Name: "fresh", Base: "base", Policy: volume.Fresh},
		{Name: "tmp", Policy: volume.Fresh},
		{Name: "host", Host: host},
		{Name: "copy", Host: host, Policy: volume.Clone},
	})
	a := see(t, set, err)
	places := []string{"/", "/workspace/", "/data/", "/team/", "/fresh/", "/tmp/", "/host/", "/copy/"}
	for _, p := range places {
		a.write(p+"f", "before")
	}
	cut, err := a.set.Cut(ctx, "cut")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range places {
		a.write(p+"f", "after")
	}
	want := map[string]string{"/": "before", "/workspace/": "before", "/data/": "before", "/team/": "after", "/fresh/": "-", "/tmp/": "-", "/host/": "after", "/copy/": "before"}
	check := func(w *world, who string) {
		t.Helper()
		for _, p := range places {
			if got := w.read(p + "f"); got != want[p] {
				t.Errorf("%s: %sf holds %q, want %q", who, p, got, want[p])
			}
		}
	}
	set, err = cut.Fork(ctx, "two")
	b := see(t, set, err)
	check(b, "the first fork")
	for _, p := range places {
		b.write(p+"own", "two")
	}
	var saved bytes.Buffer
	if err := cut.Save(&saved); err != nil {
		t.Fatal(err)
	}
	if err := cut.Close(ctx); err != nil {
		t.Fatal(err)
	}
	saved.WriteString("what follows")
	cut, err = volume.Load(ctx, o, &saved)
	if err != nil {
		t.Fatal(err)
	}
	if saved.String() != "what follows" {
		t.Errorf("loading left %q", saved.String())
	}
	set, err = cut.Fork(ctx, "three")
	c := see(t, set, err)
	check(c, "the loaded fork")
	for _, p := range places {
		shared := p == "/team/" || p == "/host/"
		for who, w := range map[string]*world{"the parent": a, "the sibling": c} {
			if got := w.read(p+"own") == "two"; got != (shared || who == "the parent" && p == "/copy/") {
				t.Errorf("%s sees the first fork's write in %s: %v", who, p, got)
			}
		}
	}
	if err := cut.Discard(ctx); err != nil {
		t.Fatal(err)
	}
	check(c, "the loaded fork after the cut was discarded")
	if kept, err := c.set.Keep(ctx); err != nil || kept["/workspace"] != "sandbox-three-workspace" {
		t.Errorf("kept %v, %v", kept, err)
	}
	a.close()
	b.close()
	c.close()
	left := strings.Join(names(t, store), " ")
	if want := "base data sandbox-three-data-1 sandbox-three-fresh sandbox-three-workspace team"; left != want {
		t.Errorf("buckets left: %s\nwant:         %s", left, want)
	}
}

// Two buckets are cut at one instant: of pairs of writes in order the second is never there without the first.
func TestOneInstant(t *testing.T) {
	store := newStore(t)
	for _, name := range []string{"first", "second"} {
		if _, err := store.Create(ctx, name, bucket.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	set, err := volume.Open(ctx, volume.Options{Store: store, Owner: "o"}, []volume.Spec{{Name: "root", Path: "/"}, {Name: "second", Bucket: "second"}, {Name: "first", Bucket: "first"}})
	w := see(t, set, err)
	defer w.close()
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			for _, name := range []string{"first", "second"} {
				b, err := store.Bucket(ctx, name)
				if err == nil {
					var p *bucket.Payload
					if p, err = store.Stage(ctx, strings.NewReader("x"), 1); err == nil {
						_, err = b.Apply(ctx, []bucket.Op{{Kind: bucket.OpPut, Key: fmt.Sprintf("k%06d", i), Payload: p, Object: &bucket.Object{}}}, bucket.ApplyOptions{})
					}
				}
				if err != nil {
					done <- err
					return
				}
			}
			select {
			case <-stop:
				done <- nil
				return
			case <-time.After(100 * time.Microsecond):
			}
		}
	}()
	for i := range 30 {
		cut, err := w.set.Cut(ctx, fmt.Sprintf("cut%d", i))
		if err != nil {
			t.Fatal(err)
		}
		fork, err := cut.Fork(ctx, fmt.Sprintf("fork%d", i))
		f := see(t, fork, err)
		one, _ := f.ns.ReadDir(ctx, vfs.Cred{}, "", "/first")
		two, _ := f.ns.ReadDir(ctx, vfs.Cred{}, "", "/second")
		if d := len(one) - len(two); d != 0 && d != 1 {
			t.Errorf("cut %d: %d writes in the first bucket, %d in the second", i, len(one), len(two))
		}
		f.close()
		if err := cut.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		specs []volume.Spec
		kind  errs.Kind
	}{
		"relative path":          {[]volume.Spec{{Name: "a", Path: "a"}}, errs.Invalid},
		"two sources":            {[]volume.Spec{{Name: "a", Bucket: "a", Host: "/"}}, errs.Invalid},
		"the same place":         {[]volume.Spec{{Name: "a"}, {Name: "b", Path: "/x/../a"}}, errs.Invalid},
		"unknown policy":         {[]volume.Spec{{Name: "a", Policy: "share"}}, errs.Invalid},
		"snapshot of a host":     {[]volume.Spec{{Name: "a", Host: "/", Policy: volume.Snapshot}}, errs.Unsupported},
		"size of a host":         {[]volume.Spec{{Name: "a", Host: "/", Size: 1}}, errs.Unsupported},
		"no such folder":         {[]volume.Spec{{Name: "a", Host: "/no/such"}}, errs.Invalid},
		"no store":               {[]volume.Spec{{Name: "a", Bucket: "aaa"}}, errs.Invalid},
		"more than there may be": {make([]volume.Spec, volume.MaxVolumes+1), errs.Limit},
	} {
		if _, err := volume.Open(ctx, volume.Options{Owner: "o"}, tc.specs); !errs.Is(err, tc.kind) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := volume.Load(ctx, volume.Options{}, strings.NewReader("agentrun volumes 1\n\xff\xff\xff\xff")); !errs.Is(err, errs.Corrupt) {
		t.Errorf("a header of 4 GiB: %v", err)
	}
}

// TestEmpty makes buckets that are empty at first, and end with the sandbox.
func TestEmpty(t *testing.T) {
	store := newStore(t)
	o := volume.Options{Store: store, Owner: "one", UID: 1000, GID: 1000}
	specs := []volume.Spec{{Name: "root", Path: "/"}, {Name: "task", Empty: true}, {Name: "scratch", Empty: true, Policy: volume.Fresh}}
	set, err := volume.Open(ctx, o, specs)
	w := see(t, set, err)
	w.write("/task/a", "x")
	w.write("/scratch/a", "x")
	name := set.Bucket("/task").Name()
	cut, err := set.Cut(ctx, "cut")
	if err != nil {
		t.Fatal(err)
	}
	fork, err := cut.Fork(ctx, "two")
	f := see(t, fork, err)
	if a, b := f.read("/task/a"), f.read("/scratch/a"); a != "x" || b != "-" || fork.Bucket("/scratch") == nil {
		t.Errorf("the fork has %q and %q", a, b)
	}
	for _, end := range []func(context.Context) error{cut.Close, fork.Close, set.Close} {
		if err := end(ctx); err != nil {
			t.Error(err)
		}
	}
	if _, err := store.Info(ctx, name); !errs.Is(err, errs.NotFound) {
		t.Errorf("after the end: %v", err)
	}
	if err := store.List(ctx, func(i *bucket.Info) error { t.Error("left behind:", i.Name); return nil }); err != nil {
		t.Error(err)
	}
	specs[1].Base = "x"
	if _, err := volume.Open(ctx, o, specs); !errs.Is(err, errs.Invalid) {
		t.Errorf("empty, and a fork: %v", err)
	}
}
