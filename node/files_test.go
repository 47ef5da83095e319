package node_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	"agentrun.dev/node"
	"agentrun.dev/volume"
)

// filesOf returns a sandbox in memory and its files.
func filesOf(t *testing.T, spec node.Spec) (*node.Sandbox, node.Files) {
	t.Helper()
	s := create(t, newNode(t, newStore(t), ""), spec)
	f, err := s.Files()
	if err != nil {
		t.Fatal(err)
	}
	return s, f
}

// TestManyFiles pages through 100,000 files, half of them in each of two volumes.
func TestManyFiles(t *testing.T) {
	const volumes, dirs, count = 2, 5, 10_000
	s := create(t, newNode(t, nil, ""), node.Spec{Volumes: []volume.Spec{{Name: "v0", Path: "/workspace/v0"}, {Name: "v1", Path: "/workspace/v1"}}})
	f, err := s.Files()
	if err != nil {
		t.Fatal(err)
	}
	for v := range volumes {
		for d := range dirs {
			for i := range count {
				if _, err := f.Write(ctx, fmt.Sprintf("v%d/d%d/%05d", v, d, i), 0, strings.NewReader("")); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	seen, last, pages := 0, "", 0
	for more := true; more; pages++ {
		var list []api.FileInfo
		if list, more, err = f.List(ctx, "", 3, 5000, last); err != nil {
			t.Fatal(err)
		}
		for _, i := range list {
			if i.Path <= last { // of these names, the order is that of the bytes
				t.Fatalf("%s after %s", i.Path, last)
			}
			last = i.Path
			seen++
		}
	}
	if seen != volumes*(1+dirs*(1+count)) || pages != 21 {
		t.Errorf("%d files on %d pages", seen, pages)
	}
	if list, more, _ := f.List(ctx, "v1/d1", 1, 1<<30, ""); more || len(list) != count {
		t.Errorf("%d files, and more: %v", len(list), more)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, _, err := f.List(gone, "", 2, 0, ""); !errs.Is(err, errs.Canceled) {
		t.Errorf("for nobody: %v", err)
	}
	if err := f.Remove(ctx, "v1/d1", true); err != nil {
		t.Error(err)
	}
	if err := f.Move(ctx, "v1/d2", "v0/moved"); err != nil { // from one volume to the other
		t.Error(err)
	}
	if list, _, err := f.List(ctx, "v0/moved", 1, count, ""); err != nil || len(list) != count {
		t.Errorf("%d files moved, %v", len(list), err)
	}
}

// TestHugeFile reads 2 GiB in bounded memory.
func TestHugeFile(t *testing.T) {
	s, f := filesOf(t, node.Spec{Dir: "/tmp"})
	const size = 2 << 30
	run(t, s, "truncate -s 2G big")
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	r, i, err := f.Open(ctx, "big", 1)
	if err != nil || i.Size != size {
		t.Fatal(i, err)
	}
	defer r.Close()
	if n, err := io.Copy(io.Discard, r); n != size-1 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if runtime.ReadMemStats(&now); now.TotalAlloc-before.TotalAlloc > 64<<20 {
		t.Errorf("%d MiB were allocated", (now.TotalAlloc-before.TotalAlloc)>>20)
	}
}

// TestWriteLimits: what doesn't fit leaves nothing behind.
func TestWriteLimits(t *testing.T) {
	spec := node.Spec{Dir: "/tmp"}
	spec.Limits.Written = 1 << 20
	s, f := filesOf(t, spec)
	if _, err := f.Write(ctx, "x/big", 0, io.LimitReader(zeros{}, 1<<20+1)); !errs.Is(err, errs.TooLarge) {
		t.Errorf("%v", err)
	}
	if _, err := f.Write(ctx, "fits", 0o400, io.LimitReader(zeros{}, 1<<20)); err != nil {
		t.Error(err)
	}
	if got := run(t, s, "ls -A; stat -c %a fits"); got != "fits\n400\n" {
		t.Errorf("%q", got)
	}
	s.End(ctx)
	if _, err := f.Write(ctx, "late", 0, strings.NewReader("")); !errs.Is(err, errs.Unavailable) {
		t.Errorf("after the end: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// TestWatchS3 sees what comes into the sandbox's bucket by another way, and the end of the sandbox.
func TestWatchS3(t *testing.T) {
	store := newStore(t)
	if _, err := store.Create(ctx, "base", bucket.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s := create(t, newNode(t, store, ""), over("base"))
	f, err := s.Files()
	if err != nil {
		t.Fatal(err)
	}
	life, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	ready, events, ended := make(chan struct{}), make(chan api.FileEvent, 100), make(chan error, 1)
	go func() {
		ended <- f.Watch(life, "/workspace", true, func() { close(ready) }, func(e api.FileEvent) error { events <- e; return nil })
	}()
	<-ready
	b := s.Bucket("/workspace")
	payload, err := b.Store().Stage(ctx, strings.NewReader("text"), 4)
	if err == nil {
		_, err = b.Apply(ctx, []bucket.Op{{Kind: bucket.OpPut, Key: "from-s3", Payload: payload}}, bucket.ApplyOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	select {
	case e := <-events:
		if e != (api.FileEvent{Kind: "create", Path: "/workspace/from-s3"}) {
			t.Errorf("%+v", e)
		}
	case <-life.Done():
		t.Fatal("no event")
	}
	time.Sleep(300 * time.Millisecond) // some looks at what doesn't change
	s.End(ctx)
	if err := <-ended; !errs.Is(err, errs.Unavailable) {
		t.Errorf("the end: %v", err)
	}
	if len(events) > 0 {
		t.Errorf("%+v, although nothing happened", <-events)
	}
}
