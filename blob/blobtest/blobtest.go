// Package blobtest is the conformance suite of blob: every implementation runs it.
package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"agentrun.dev/blob"
	"agentrun.dev/errs"
)

var bg = context.Background()

// Run tests a kind of store. Each call of open gives a new empty one.
func Run(t *testing.T, open func(t *testing.T) blob.Store) {
	tests := []struct {
		name string
		f    func(*testing.T, blob.Store)
	}{
		{"AppendRead", testAppendRead}, {"ReadEdges", testReadEdges}, {"Names", testNames}, {"List", testList},
		{"Remove", testRemove}, {"TwoHandles", testTwoHandles}, {"ReadOnly", testReadOnly}, {"Context", testContext},
		{"Punch", testPunch}, {"Reopen", testReopen}, {"Concurrent", testConcurrent}, {"Model", testModel},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) { tc.f(t, open(t)) })
	}
}

func create(t *testing.T, s blob.Store, name string, content string) blob.Blob {
	t.Helper()
	b, err := s.Create(bg, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	if content != "" {
		if _, err := b.Append([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func wantKind(t *testing.T, err error, kind errs.Kind) {
	t.Helper()
	if !errs.Is(err, kind) {
		t.Fatalf("error %v, want kind %v", err, kind)
	}
}

func content(t *testing.T, b blob.Blob) string {
	t.Helper()
	p, err := io.ReadAll(io.NewSectionReader(b, 0, b.Size()))
	if err != nil {
		t.Fatal(err)
	}
	return string(p)
}

func wantContent(t *testing.T, b blob.Blob, want string) {
	t.Helper()
	if got := content(t, b); got != want {
		t.Fatalf("content %.80q (%d bytes), want %.80q (%d)", got, len(got), want, len(want))
	}
}

func testAppendRead(t *testing.T, s blob.Store) {
	b := create(t, s, "a", "")
	wantContent(t, b, "")
	for i, part := range []string{"hello", "", " ", "world"} {
		off, err := b.Append([]byte(part))
		if want := []int64{0, 5, 5, 6}[i]; err != nil || off != want {
			t.Fatalf("append %q at %d, %v, want %d", part, off, err, want)
		}
	}
	wantContent(t, b, "hello world")
	if err := b.Sync(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Append([]byte("!")); err != nil {
		t.Fatal(err)
	}
	wantContent(t, b, "hello world!")
	if err := errors.Join(b.Sync(), b.Sync(), b.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := s.Open(bg, "a")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	wantContent(t, r, "hello world!")
	_, err = s.Create(bg, "a")
	wantKind(t, err, errs.Exists)
	_, err = s.Open(bg, "missing")
	wantKind(t, err, errs.NotFound)
	_, err = s.Open(bg, "missing/too")
	wantKind(t, err, errs.NotFound)
}

func testReadEdges(t *testing.T, s blob.Store) {
	b := create(t, s, "edges", "0123456789")
	for _, tc := range []struct {
		off  int64
		n    int
		want string
		eof  bool
	}{
		{0, 10, "0123456789", false}, {0, 11, "0123456789", true}, {9, 1, "9", false}, {9, 2, "9", true},
		{10, 1, "", true}, {1 << 40, 4, "", true}, {3, 0, "", false},
	} {
		p := make([]byte, tc.n)
		n, err := b.ReadAt(p, tc.off)
		if string(p[:n]) != tc.want || errors.Is(err, io.EOF) != tc.eof || err != nil && !tc.eof {
			t.Errorf("read %d at %d = %q, %v", tc.n, tc.off, p[:n], err)
		}
	}
	if _, err := b.ReadAt(make([]byte, 1), -1); err == nil {
		t.Error("a negative offset was read")
	}
}

func testNames(t *testing.T, s blob.Store) {
	for _, name := range []string{"a", "a-b_c.d9", "x/y/z", "0", strings.Repeat("n", blob.MaxPart), "a..b"} {
		create(t, s, name, name)
	}
	bad := []string{"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/.hidden", "A", "a b", "a\x00b", "ä", "a\\b",
		strings.Repeat("n", blob.MaxPart+1), strings.Repeat("nnnnnnn/", blob.MaxName/8) + "n"}
	for _, name := range bad {
		_, err := s.Create(bg, name)
		wantKind(t, err, errs.Invalid)
		_, err = s.Open(bg, name)
		wantKind(t, err, errs.Invalid)
		wantKind(t, s.Remove(bg, name), errs.Invalid)
	}
}

func list(t *testing.T, s blob.Store, prefix string) []string {
	t.Helper()
	names := []string{}
	err := s.List(bg, prefix, func(i blob.Info) error {
		names = append(names, i.Name)
		if i.Size != int64(len(i.Name)) || i.Stored < 0 {
			return fmt.Errorf("%+v", i)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func testList(t *testing.T, s blob.Store) {
	all := []string{"a", "a-b", "a.b", "a/b", "a0", "b/c/d", "b/c/e", "b/ca", "c"}
	for _, i := range rand.Perm(len(all)) {
		if all[i] == "a/b" {
			continue // a folder can't bear the name of a file in every store
		}
		create(t, s, all[i], all[i])
	}
	all = slices.DeleteFunc(all, func(n string) bool { return n == "a/b" })
	for _, prefix := range []string{"", "a", "a-", "b", "b/", "b/c", "b/c/", "b/c/e", "z", "b/x/y", "../", "c/d"} {
		want := []string{}
		for _, n := range all {
			if strings.HasPrefix(n, prefix) {
				want = append(want, n)
			}
		}
		if got := list(t, s, prefix); !slices.Equal(got, want) {
			t.Errorf("list %q = %q, want %q", prefix, got, want)
		}
	}
	boom, calls := errors.New("boom"), 0
	err := s.List(bg, "", func(blob.Info) error { calls++; return boom })
	if !errors.Is(err, boom) || calls != 1 {
		t.Errorf("list = %v after %d calls", err, calls)
	}
}

func testRemove(t *testing.T, s blob.Store) {
	create(t, s, "d/a", "content")
	r, err := s.Open(bg, "d/a")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for range 2 {
		if err := s.Remove(bg, "d/a"); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.Remove(bg, "d"), s.Remove(bg, "no/such/blob")); err != nil {
		t.Fatal(err)
	}
	wantContent(t, r, "content")
	_, err = s.Open(bg, "d/a")
	wantKind(t, err, errs.NotFound)
	if got := list(t, s, ""); len(got) != 0 {
		t.Fatalf("left after removal: %q", got)
	}
	wantContent(t, create(t, s, "d/a", "again"), "again")
	wantContent(t, r, "content")
}

func testTwoHandles(t *testing.T, s blob.Store) {
	w := create(t, s, "shared", "one")
	r, err := s.Open(bg, "shared")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	wantContent(t, r, "one")
	if _, err := w.Append([]byte(" two")); err != nil {
		t.Fatal(err)
	}
	wantContent(t, r, "one two")
}

func testReadOnly(t *testing.T, s blob.Store) {
	create(t, s, "ro", "x")
	r, err := s.Open(bg, "ro")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, err = r.Append([]byte("y"))
	wantKind(t, err, errs.Unsupported)
	wantContent(t, r, "x")
}

func testContext(t *testing.T, s blob.Store) {
	create(t, s, "here", "here")
	ctx, cancel := context.WithCancel(bg)
	cancel()
	_, err := s.Create(ctx, "new")
	wantKind(t, err, errs.Canceled)
	_, err = s.Open(ctx, "here")
	wantKind(t, err, errs.Canceled)
	wantKind(t, s.Remove(ctx, "here"), errs.Canceled)
	wantKind(t, s.List(ctx, "", func(blob.Info) error { return nil }), errs.Canceled)
	if got := list(t, s, ""); !slices.Equal(got, []string{"here"}) {
		t.Fatalf("%q", got)
	}
}

func stored(t *testing.T, s blob.Store, name string) (n int64) {
	t.Helper()
	if err := s.List(bg, name, func(i blob.Info) error { n = i.Stored; return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

func testPunch(t *testing.T, s blob.Store) {
	const size = 1 << 20
	p := make([]byte, size)
	rng := rand.NewChaCha8([32]byte{1})
	rng.Read(p)
	w := create(t, s, "holes", string(p))
	if err := w.Sync(); err != nil {
		t.Fatal(err)
	}
	r, err := s.Open(bg, "holes")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	before := stored(t, s, "holes")
	for i, b := range []blob.Blob{w, r} {
		puncher, ok := b.(blob.Puncher)
		if !ok {
			t.Log("these blobs can't be punched; only their reads are tested")
			return
		}
		off, n := int64(i)*(512<<10)+4096, int64(256<<10)
		for _, span := range [][2]int64{{off, n}, {off, n}, {off + n + 100, 50}, {size + 5, 10}, {off, 0}} {
			if err := puncher.Punch(span[0], span[1]); err != nil {
				t.Fatal(err)
			}
		}
		clear(p[off : off+n])
		clear(p[off+n+100 : off+n+150])
		wantKind(t, puncher.Punch(-1, 5), errs.Invalid)
	}
	wantContent(t, w, string(p))
	wantContent(t, r, string(p))
	if after := stored(t, s, "holes"); after > before-300<<10 {
		t.Errorf("%d bytes stored after punching 512 KiB, %d before", after, before)
	}
	if err := w.(blob.Puncher).Punch(size-4096, 1<<30); err != nil || w.Size() != size {
		t.Errorf("punching past the end: %v, size %d", err, w.Size())
	}
	if _, err := w.Append([]byte("more")); err != nil {
		t.Fatal(err)
	}
	clear(p[size-4096:])
	wantContent(t, w, string(p)+"more")
}

func testReopen(t *testing.T, s blob.Store) {
	re, ok := s.(blob.Reopener)
	if !ok {
		t.Log("this store can't reopen blobs")
		return
	}
	if err := create(t, s, "again", "0123456789").Close(); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		size int64
		want string
	}{{100, "0123456789+"}, {10, "0123456789+"}, {4, "0123+"}, {0, "+"}} {
		b, err := re.Reopen(bg, "again", tc.size)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Append([]byte("+")); err != nil {
			t.Fatal(err)
		}
		if err := b.Sync(); err != nil {
			t.Fatal(err)
		}
		wantContent(t, b, tc.want)
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := re.Reopen(bg, "missing", 0)
	wantKind(t, err, errs.NotFound)
}

// testConcurrent appends from many goroutines: every piece must be whole and where Append said.
func testConcurrent(t *testing.T, s blob.Store) {
	b := create(t, s, "busy", "")
	const workers, each = 8, 50
	var wg sync.WaitGroup
	fail := make(chan error, workers)
	for w := range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range each {
				p := bytes.Repeat([]byte{byte('a' + w)}, 1+(i*37)%3000)
				off, err := b.Append(p)
				got := make([]byte, len(p))
				if err == nil {
					_, err = b.ReadAt(got, off)
				}
				if err == nil && i%10 == 0 {
					err = b.Sync()
				}
				if err == nil || errors.Is(err, io.EOF) {
					if bytes.Equal(got, p) {
						continue
					}
					err = fmt.Errorf("worker %d reads other bytes at %d", w, off)
				}
				fail <- err
				return
			}
		}()
	}
	wg.Wait()
	close(fail)
	for err := range fail {
		t.Error(err)
	}
}

// testModel compares random appends, punches and reads with a byte slice.
func testModel(t *testing.T, s blob.Store) {
	rng := rand.New(rand.NewPCG(7, 7))
	b := create(t, s, "model", "")
	var model []byte
	for step := range 300 {
		switch rng.IntN(4) {
		case 0, 1:
			p := make([]byte, rng.IntN(100<<10))
			for i := range p {
				p[i] = byte(rng.Uint32())
			}
			if off, err := b.Append(p); err != nil || off != int64(len(model)) {
				t.Fatalf("step %d: append at %d, %v", step, off, err)
			}
			model = append(model, p...)
		case 2:
			puncher, ok := b.(blob.Puncher)
			if !ok || len(model) == 0 {
				continue
			}
			off := rng.IntN(len(model))
			n := rng.IntN(len(model) - off + 1)
			if err := puncher.Punch(int64(off), int64(n)); err != nil {
				t.Fatal(err)
			}
			clear(model[off : off+n])
		default:
			off := rng.IntN(len(model) + 10)
			p := make([]byte, rng.IntN(80<<10))
			n, err := b.ReadAt(p, int64(off))
			if err != nil && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			if want := model[min(off, len(model)):min(off+len(p), len(model))]; !bytes.Equal(p[:n], want) {
				t.Fatalf("step %d: read %d at %d differs", step, len(p), off)
			}
		}
	}
	wantContent(t, b, string(model))
}
