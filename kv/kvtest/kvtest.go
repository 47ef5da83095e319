// Package kvtest is the conformance suite of kv: every implementation runs it.
package kvtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

// Reopen closes a store and opens the same data again; nil where a store doesn't outlive its Close.
type Reopen func(t *testing.T, s kv.Store) kv.Store

// Run tests a kind of store. Each call of open gives a new empty one, which the suite closes.
func Run(t *testing.T, open func(t *testing.T) kv.Store, reopen Reopen) {
	tests := []struct {
		name string
		f    func(*testing.T, kv.Store)
	}{
		{"GetPutDelete", testGetPutDelete}, {"Empty", testEmpty}, {"BatchOrder", testBatchOrder}, {"Scan", testScan},
		{"ScanErrors", testScanErrors}, {"ScanSnapshot", testScanSnapshot}, {"Ranges", testRanges}, {"Checks", testChecks},
		{"Limits", testLimits}, {"Ownership", testOwnership}, {"Context", testContext}, {"Counter", testCounter},
		{"Concurrent", testConcurrent}, {"Model", testModel}, {"LargeBatch", testLargeBatch}, {"Closed", testClosed},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s := open(t)
			defer s.Close()
			tc.f(t, s)
		})
	}
	if reopen != nil {
		t.Run("Reopen", func(t *testing.T) { testReopen(t, open(t), reopen) })
	}
}

var bg = context.Background()

func put(t *testing.T, s kv.Store, key, value string) {
	t.Helper()
	commit(t, s, &kv.Batch{Puts: []kv.Pair{{Key: []byte(key), Value: []byte(value)}}})
}

func commit(t *testing.T, s kv.Store, b *kv.Batch) {
	t.Helper()
	if err := s.Commit(bg, b); err != nil {
		t.Fatal(err)
	}
}

// want checks one key; "-" stands for an absent one.
func want(t *testing.T, s kv.Store, key, value string) {
	t.Helper()
	got, err := s.Get(bg, []byte(key))
	switch {
	case errs.Is(err, errs.NotFound):
		got = []byte("-")
	case err != nil:
		t.Fatalf("get %q: %v", key, err)
	}
	if string(got) != value {
		t.Fatalf("get %q = %q, want %q", key, got, value)
	}
}

// Dump returns the pairs of a range as "k=v k=v".
func Dump(t *testing.T, s kv.Store, r kv.Range) string {
	t.Helper()
	var out []string
	err := s.Scan(bg, r, func(k, v []byte) error {
		out = append(out, fmt.Sprintf("%s=%s", k, v))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, " ")
}

func wantDump(t *testing.T, s kv.Store, r kv.Range, want string) {
	t.Helper()
	if got := Dump(t, s, r); got != want {
		t.Fatalf("scan %q..%q reverse=%v:\n got %s\nwant %s", r.Start, r.End, r.Reverse, got, want)
	}
}

func wantKind(t *testing.T, err error, kind errs.Kind) {
	t.Helper()
	if !errs.Is(err, kind) {
		t.Fatalf("error %v, want kind %v", err, kind)
	}
}

func testGetPutDelete(t *testing.T, s kv.Store) {
	want(t, s, "a", "-")
	put(t, s, "a", "1")
	put(t, s, "a", "2")
	want(t, s, "a", "2")
	commit(t, s, &kv.Batch{Deletes: [][]byte{[]byte("a"), []byte("never")}})
	want(t, s, "a", "-")
	put(t, s, "a", "3")
	want(t, s, "a", "3")
}

func testEmpty(t *testing.T, s kv.Store) {
	commit(t, s, &kv.Batch{})
	commit(t, s, &kv.Batch{Lazy: true})
	put(t, s, "", "empty key")
	put(t, s, "e", "")
	want(t, s, "", "empty key")
	want(t, s, "e", "")
	commit(t, s, &kv.Batch{Puts: []kv.Pair{{Key: []byte("n"), Value: nil}}})
	want(t, s, "n", "")
	wantDump(t, s, kv.Range{}, "=empty key e= n=")
	binary := "\x00\xff\x00"
	put(t, s, binary, binary)
	want(t, s, binary, binary)
}

func testBatchOrder(t *testing.T, s kv.Store) {
	put(t, s, "a", "old")
	put(t, s, "b", "old")
	b := &kv.Batch{}
	b.Put([]byte("a"), []byte("first"))
	b.Put([]byte("a"), []byte("last"))
	b.Delete([]byte("a"))
	b.Delete([]byte("b"))
	b.Put([]byte("c"), []byte("new"))
	b.DeleteRange([]byte("a"), []byte("z"))
	commit(t, s, b)
	wantDump(t, s, kv.Range{}, "a=last c=new")
}

func testScan(t *testing.T, s kv.Store) {
	b := &kv.Batch{}
	for _, k := range []string{"a", "b", "ba", "c", "d"} {
		b.Put([]byte(k), []byte(strings.ToUpper(k)))
	}
	commit(t, s, b)
	for _, tc := range []struct {
		start, end string
		want       string
		back       string
	}{
		{"", "", "a=A b=B ba=BA c=C d=D", "d=D c=C ba=BA b=B a=A"},
		{"b", "", "b=B ba=BA c=C d=D", "d=D c=C ba=BA b=B"},
		{"b", "c", "b=B ba=BA", "ba=BA b=B"},
		{"", "b", "a=A", "a=A"},
		{"aa", "bz", "b=B ba=BA", "ba=BA b=B"},
		{"c", "c", "", ""},
		{"d", "a", "", ""},
		{"x", "", "", ""},
	} {
		r := kv.Range{Start: []byte(tc.start)}
		if tc.end != "" {
			r.End = []byte(tc.end)
		}
		wantDump(t, s, r, tc.want)
		r.Reverse = true
		wantDump(t, s, r, tc.back)
	}
	wantDump(t, s, kv.Range{Start: nil, End: []byte{}}, "")
	wantDump(t, s, kv.Range{Start: []byte("b"), End: kv.PrefixEnd([]byte("b"))}, "b=B ba=BA")
}

func testScanErrors(t *testing.T, s kv.Store) {
	put(t, s, "a", "1")
	put(t, s, "b", "2")
	boom := errors.New("boom")
	calls := 0
	err := s.Scan(bg, kv.Range{}, func(_, _ []byte) error { calls++; return boom })
	if !errors.Is(err, boom) || calls != 1 {
		t.Fatalf("scan = %v after %d calls", err, calls)
	}
	calls = 0
	if err := s.Scan(bg, kv.Range{}, func(_, _ []byte) error { calls++; return kv.Stop }); err != nil || calls != 1 {
		t.Fatalf("stopped scan = %v after %d calls", err, calls)
	}
}

// testScanSnapshot changes the store from within a scan, which must go on seeing the state it began with.
func testScanSnapshot(t *testing.T, s kv.Store) {
	b := &kv.Batch{}
	for i := range 100 {
		b.Put(fmt.Appendf(nil, "k%03d", i), []byte("old"))
	}
	commit(t, s, b)
	n := 0
	err := s.Scan(bg, kv.Range{}, func(k, v []byte) error {
		if n++; n == 1 {
			commit(t, s, &kv.Batch{
				Ranges: []kv.Range{{Start: []byte("k050"), End: nil}},
				Puts:   []kv.Pair{{Key: []byte("k001"), Value: []byte("new")}, {Key: []byte("k0005"), Value: []byte("new")}},
			})
		}
		if string(v) != "old" {
			return fmt.Errorf("%s=%s", k, v)
		}
		return nil
	})
	if err != nil || n != 100 {
		t.Fatalf("scan saw %d pairs: %v", n, err)
	}
	want(t, s, "k050", "-")
	want(t, s, "k001", "new")
}

func testRanges(t *testing.T, s kv.Store) {
	for _, k := range []string{"", "a", "b", "c", "d", "\xff\xff\xff"} {
		put(t, s, k, "x")
	}
	del := func(start, end []byte) {
		t.Helper()
		b := &kv.Batch{}
		b.DeleteRange(start, end)
		commit(t, s, b)
	}
	del([]byte("b"), []byte("b"))
	del([]byte("c"), []byte("a"))
	wantDump(t, s, kv.Range{}, "=x a=x b=x c=x d=x \xff\xff\xff=x")
	del([]byte("b"), []byte("d"))
	wantDump(t, s, kv.Range{}, "=x a=x d=x \xff\xff\xff=x")
	del([]byte("b"), nil)
	wantDump(t, s, kv.Range{}, "=x a=x")
	del(nil, nil)
	wantDump(t, s, kv.Range{}, "")
	longest := bytes.Repeat([]byte{0xff}, kv.MaxKey)
	put(t, s, string(longest), "x")
	del(nil, nil)
	wantDump(t, s, kv.Range{}, "")
}

func testChecks(t *testing.T, s kv.Store) {
	check := func(key string, value []byte) error {
		return s.Commit(bg, &kv.Batch{
			Checks: []kv.Check{{Key: []byte("other"), Value: nil}, {Key: []byte(key), Value: value}},
			Puts:   []kv.Pair{{Key: []byte("ran"), Value: []byte(key)}},
		})
	}
	if err := check("a", nil); err != nil {
		t.Fatal(err)
	}
	err := check("a", []byte{})
	wantKind(t, err, errs.Conflict)
	if !strings.Contains(err.Error(), `"a"`) {
		t.Fatalf("conflict doesn't name its key: %v", err)
	}
	put(t, s, "a", "")
	wantKind(t, check("a", nil), errs.Conflict)
	if err := check("a", []byte{}); err != nil {
		t.Fatal(err)
	}
	put(t, s, "a", "1")
	wantKind(t, check("a", []byte("2")), errs.Conflict)
	if err := check("a", []byte("1")); err != nil {
		t.Fatal(err)
	}
	put(t, s, "other", "now")
	put(t, s, "ran", "-")
	wantKind(t, check("a", []byte("1")), errs.Conflict)
	want(t, s, "ran", "-")
	// A batch may be nothing but checks.
	commit(t, s, &kv.Batch{Checks: []kv.Check{{Key: []byte("a"), Value: []byte("1")}}})
	wantKind(t, s.Commit(bg, &kv.Batch{Checks: []kv.Check{{Key: []byte("a"), Value: nil}}}), errs.Conflict)
}

func testLimits(t *testing.T, s kv.Store) {
	key := make([]byte, kv.MaxKey)
	commit(t, s, &kv.Batch{Puts: []kv.Pair{{Key: key, Value: []byte("v")}}})
	want(t, s, string(key), "v")
	long := make([]byte, kv.MaxKey+1)
	big := make([]byte, kv.MaxValue+1)
	commit(t, s, &kv.Batch{Puts: []kv.Pair{{Key: []byte("big"), Value: big[:kv.MaxValue]}}})
	if v, err := s.Get(bg, []byte("big")); err != nil || len(v) != kv.MaxValue {
		t.Fatalf("largest value: %d bytes, %v", len(v), err)
	}
	for _, b := range []*kv.Batch{
		{Puts: []kv.Pair{{Key: long}}},
		{Puts: []kv.Pair{{Key: []byte("ok")}, {Key: []byte("k"), Value: big}}},
		{Deletes: [][]byte{long}},
		{Ranges: []kv.Range{{Start: long}}},
		{Checks: []kv.Check{{Key: long}}},
	} {
		wantKind(t, s.Commit(bg, b), errs.TooLarge)
	}
	huge := &kv.Batch{}
	for range kv.MaxBatch/kv.MaxValue + 1 {
		huge.Put([]byte("h"), big[:kv.MaxValue])
	}
	wantKind(t, s.Commit(bg, huge), errs.TooLarge)
	want(t, s, "ok", "-")
	want(t, s, "h", "-")
	want(t, s, string(long), "-")
}

// testOwnership scribbles over everything that was given in or handed out.
func testOwnership(t *testing.T, s kv.Store) {
	k, v := []byte("key"), []byte("value")
	commit(t, s, &kv.Batch{Puts: []kv.Pair{{Key: k, Value: v}}})
	copy(k, "xxx")
	copy(v, "xxxxx")
	got, err := s.Get(bg, []byte("key"))
	if err != nil || string(got) != "value" {
		t.Fatalf("%q %v", got, err)
	}
	copy(got, "yyyyy")
	_ = append(got[:len(got):cap(got)], 'z')
	want(t, s, "key", "value")
}

func testContext(t *testing.T, s kv.Store) {
	for i := range 1000 {
		put1 := &kv.Batch{Lazy: true}
		put1.Put(fmt.Appendf(nil, "%04d", i), nil)
		commit(t, s, put1)
	}
	ctx, cancel := context.WithCancel(bg)
	n := 0
	err := s.Scan(ctx, kv.Range{}, func(_, _ []byte) error {
		if n++; n == 10 {
			cancel()
		}
		return nil
	})
	wantKind(t, err, errs.Canceled)
	if n == 1000 {
		t.Fatal("a cancelled scan went on to the end")
	}
	_, err = s.Get(ctx, []byte("0001"))
	wantKind(t, err, errs.Canceled)
	wantKind(t, s.Commit(ctx, &kv.Batch{Puts: []kv.Pair{{Key: []byte("k")}}}), errs.Canceled)
	want(t, s, "k", "-")
}

// testCounter increments one key from many goroutines by compare and swap: no increment may be lost.
func testCounter(t *testing.T, s kv.Store) {
	put(t, s, "n", "0")
	var wg sync.WaitGroup
	const workers, each = 8, 25
	fail := make(chan error, workers)
	for range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range each {
				if err := increment(s); err != nil {
					fail <- err
					return
				}
			}
		}()
	}
	wg.Wait()
	close(fail)
	for err := range fail {
		t.Fatal(err)
	}
	want(t, s, "n", fmt.Sprint(workers*each))
}

func increment(s kv.Store) error {
	for {
		old, err := s.Get(bg, []byte("n"))
		if err != nil {
			return err
		}
		var n int
		fmt.Sscan(string(old), &n)
		err = s.Commit(bg, &kv.Batch{
			Checks: []kv.Check{{Key: []byte("n"), Value: old}},
			Puts:   []kv.Pair{{Key: []byte("n"), Value: fmt.Append(nil, n+1)}},
		})
		if err == nil || !errs.Is(err, errs.Conflict) {
			return err
		}
	}
}

// testConcurrent writes pairs that must always be seen equal while readers look.
func testConcurrent(t *testing.T, s kv.Store) {
	b := &kv.Batch{}
	b.Put([]byte("x"), []byte("0"))
	b.Put([]byte("y"), []byte("0"))
	commit(t, s, b)
	var stop atomic.Bool
	var wg sync.WaitGroup
	var seen atomic.Value
	for range 2 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for !stop.Load() {
				var values []string
				err := s.Scan(bg, kv.Range{}, func(_, v []byte) error {
					values = append(values, string(v))
					return nil
				})
				if err != nil || len(values) != 2 || values[0] != values[1] {
					seen.Store(fmt.Sprintf("%v %v", values, err))
					return
				}
			}
		}()
	}
	for i := range 200 {
		v := fmt.Append(nil, i)
		if i%3 == 0 {
			b := &kv.Batch{}
			b.DeleteRange(nil, nil)
			b.Put([]byte("x"), v)
			b.Put([]byte("y"), v)
			commit(t, s, b)
			continue
		}
		commit(t, s, &kv.Batch{Lazy: true, Puts: []kv.Pair{{Key: []byte("x"), Value: v}, {Key: []byte("y"), Value: v}}})
	}
	stop.Store(true)
	wg.Wait()
	if msg := seen.Load(); msg != nil {
		t.Fatalf("half a batch was visible: %v", msg)
	}
}

// testModel compares random batches with a map.
func testModel(t *testing.T, s kv.Store) {
	const seed = 42
	rng := rand.New(rand.NewSource(seed))
	model := map[string]string{}
	key := func() []byte { return fmt.Appendf(nil, "%02x", rng.Intn(64)) }
	for step := range 400 {
		b := &kv.Batch{Lazy: rng.Intn(2) == 0}
		for range rng.Intn(2) {
			b.DeleteRange(key(), key())
		}
		for range rng.Intn(3) {
			b.Delete(key())
		}
		for range rng.Intn(5) {
			b.Put(key(), fmt.Append(nil, step))
		}
		commit(t, s, b)
		Apply(model, b)
		if step%20 == 0 {
			compareModel(t, s, model, step)
		}
	}
	compareModel(t, s, model, -1)
}

// Apply does to a map what Commit does to a store, checks left out.
func Apply(model map[string]string, b *kv.Batch) {
	for _, r := range b.Ranges {
		for k := range model {
			if k >= string(r.Start) && (r.End == nil || k < string(r.End)) {
				delete(model, k)
			}
		}
	}
	for _, k := range b.Deletes {
		delete(model, string(k))
	}
	for _, p := range b.Puts {
		model[string(p.Key)] = string(p.Value)
	}
}

func compareModel(t *testing.T, s kv.Store, model map[string]string, step int) {
	t.Helper()
	var out []string
	for k, v := range model {
		out = append(out, k+"="+v)
	}
	sort.Strings(out)
	if got, want := Dump(t, s, kv.Range{}), strings.Join(out, " "); got != want {
		t.Fatalf("step %d:\n got %s\nwant %s", step, got, want)
	}
}

func testLargeBatch(t *testing.T, s kv.Store) {
	b := &kv.Batch{}
	value := bytes.Repeat([]byte("payload "), 1<<17) // 1 MiB
	for i := range 40 {
		b.Put(fmt.Appendf(nil, "%03d", i), value)
	}
	commit(t, s, b)
	put(t, s, "001", "small")
	n := 0
	err := s.Scan(bg, kv.Range{}, func(k, v []byte) error {
		if n++; string(k) != "001" && !bytes.Equal(v, value) {
			return fmt.Errorf("%s differs", k)
		}
		return nil
	})
	if err != nil || n != 40 {
		t.Fatalf("%d pairs, %v", n, err)
	}
	want(t, s, "001", "small")
}

func testClosed(t *testing.T, s kv.Store) {
	put(t, s, "a", "1")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := s.Get(bg, []byte("a"))
	wantKind(t, err, errs.Unavailable)
	wantKind(t, s.Commit(bg, &kv.Batch{}), errs.Unavailable)
	wantKind(t, s.Scan(bg, kv.Range{}, func(_, _ []byte) error { return nil }), errs.Unavailable)
}

func testReopen(t *testing.T, s kv.Store, reopen Reopen) {
	model := map[string]string{}
	for round := range 5 {
		b := &kv.Batch{Lazy: round%2 == 1}
		for i := range 100 {
			b.Put(fmt.Appendf(nil, "%03d", i*(round+1)), fmt.Append(nil, round))
		}
		b.DeleteRange([]byte("010"), []byte("020"))
		b.Delete([]byte("003"))
		commit(t, s, b)
		Apply(model, b)
		s = reopen(t, s)
		compareModel(t, s, model, round)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
