package segment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"agentrun.dev/blob"
	"agentrun.dev/blob/dir"
	"agentrun.dev/blob/faulty"
	"agentrun.dev/blob/memory"
	"agentrun.dev/errs"
)

var bg = context.Background()

// small makes segments and lanes roll over quickly.
var small = Options{SegmentBytes: 256 << 10, SegmentSlots: 64}

func mustOpen(t testing.TB, b blob.Store, o Options) *Set {
	t.Helper()
	s, err := Open(bg, b, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustPut(t testing.TB, s *Set, p []byte) Ref {
	t.Helper()
	ref, err := s.Put(bg, p)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// fill returns n bytes that only this seed gives.
func fill(n int, seed uint64) []byte {
	p := make([]byte, n)
	var key [32]byte
	le.PutUint64(key[:], seed)
	_, _ = rand.NewChaCha8(key).Read(p)
	return p
}

func wantSlot(t testing.TB, s *Set, ref Ref, want []byte) {
	t.Helper()
	size, err := s.Size(bg, ref)
	if err != nil || size != int64(len(want)) {
		t.Fatalf("%v: size %d, %v, want %d", ref, size, err, len(want))
	}
	got := make([]byte, len(want))
	if n, err := s.ReadAt(bg, ref, got, 0); err != nil && !(errors.Is(err, io.EOF) && len(want) == 0) || n != len(want) || !bytes.Equal(got, want) {
		t.Fatalf("%v: read %d of %d bytes, %v", ref, n, len(want), err)
	}
}

func wantKind(t testing.TB, err error, kind errs.Kind) {
	t.Helper()
	if !errs.Is(err, kind) {
		t.Fatalf("error %v, want kind %v", err, kind)
	}
}

func verifyAll(t testing.TB, s *Set) {
	t.Helper()
	stats, err := s.Segments(bg)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range stats {
		err := s.Verify(bg, st.ID, func(ref Ref, err error) {
			if err != nil {
				t.Errorf("verify %v: %v", ref, err)
			}
		})
		if err != nil && !errs.Is(err, errs.NotFound) {
			t.Errorf("verify segment %d: %v", st.ID, err)
		}
	}
}

var sizes = []int{0, 1, 7, 8, 511, 4095, 4096, 4097, 32<<10 - 1, 32 << 10, 64<<10 - 1, 64 << 10, 64<<10 + 1, 128 << 10,
	200<<10 + 13, 256 << 10, 1<<20 + 5, 4 << 20, MaxSlot}

func TestPutRead(t *testing.T) {
	for _, o := range []Options{{}, small} {
		blobs := memory.New(memory.Options{})
		s := mustOpen(t, blobs, o)
		refs := map[Ref][]byte{}
		for i, n := range sizes {
			p := fill(n, uint64(i))
			ref := mustPut(t, s, p)
			if ref.IsZero() || refs[ref] != nil {
				t.Fatalf("ref %v", ref)
			}
			refs[ref] = p
		}
		check := func(s *Set) {
			t.Helper()
			for ref, p := range refs {
				wantSlot(t, s, ref, p)
			}
			verifyAll(t, s)
		}
		check(s)
		if err := errors.Join(s.Sync(bg), s.Sync(bg)); err != nil {
			t.Fatal(err)
		}
		check(s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := s.Put(bg, nil)
		wantKind(t, err, errs.Unavailable)
		s = mustOpen(t, blobs, o)
		check(s)
		stats, err := s.Segments(bg)
		if err != nil {
			t.Fatal(err)
		}
		slots := 0
		for _, st := range stats {
			slots += st.Slots
			if !st.Sealed || st.DeadSlots != 0 {
				t.Errorf("%+v", st)
			}
		}
		if slots != len(sizes) {
			t.Errorf("%d slots, want %d", slots, len(sizes))
		}
		_, err = s.Put(bg, make([]byte, MaxSlot+1))
		wantKind(t, err, errs.TooLarge)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReadAt compares reads at random places with the bytes put.
func TestReadAt(t *testing.T) {
	s := mustOpen(t, memory.New(memory.Options{}), Options{})
	defer s.Close()
	rng := rand.New(rand.NewPCG(1, 2))
	for i, n := range sizes {
		p := fill(n, uint64(i))
		ref := mustPut(t, s, p)
		for range 60 {
			off, want := rng.IntN(n+1), rng.IntN(n+2)
			if rng.IntN(2) == 0 {
				off, want = off&^(blockSize-1), (want+blockSize-1)&^(blockSize-1)
			}
			buf := make([]byte, want)
			got, err := s.ReadAt(bg, ref, buf, int64(off))
			exp := p[off:min(off+want, n)]
			if got != len(exp) || !bytes.Equal(buf[:got], exp) {
				t.Fatalf("size %d: read %d at %d gave %d bytes, %v", n, want, off, got, err)
			}
			if short := got < want; short != errors.Is(err, io.EOF) || err != nil && !short {
				t.Fatalf("size %d: read %d at %d gave %d bytes and %v", n, want, off, got, err)
			}
		}
		_, err := s.ReadAt(bg, ref, make([]byte, 1), -1)
		wantKind(t, err, errs.Invalid)
		_, err = s.ReadAt(bg, Ref{ref.Segment, ref.Slot + 1}, nil, 0)
		wantKind(t, err, errs.NotFound)
		_, err = s.Size(bg, Ref{ref.Segment + 100, 0})
		wantKind(t, err, errs.NotFound)
	}
}

func TestFreeCompact(t *testing.T) {
	stores := map[string]func(t *testing.T) blob.Store{
		"memory": func(*testing.T) blob.Store { return memory.New(memory.Options{}) },
		"dir": func(t *testing.T) blob.Store {
			d, err := dir.Open(t.TempDir(), dir.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
	}
	for name, open := range stores {
		t.Run(name, func(t *testing.T) { testFreeCompact(t, open(t)) })
	}
}

func testFreeCompact(t *testing.T, blobs blob.Store) {
	o := Options{SegmentBytes: 2 << 20, SegmentSlots: 200}
	s := mustOpen(t, blobs, o)
	live := map[Ref][]byte{}
	var dead []Ref
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 400 {
		p := fill(rng.IntN(3000)+rng.IntN(4)/3*rng.IntN(100<<10), uint64(i))
		live[mustPut(t, s, p)] = p
	}
	check := func() {
		t.Helper()
		for ref, p := range live {
			wantSlot(t, s, ref, p)
		}
		for _, ref := range dead {
			_, err := s.ReadAt(bg, ref, make([]byte, 1), 0)
			wantKind(t, err, errs.NotFound)
		}
		verifyAll(t, s)
	}
	for ref := range live {
		if rng.IntN(3) > 0 {
			dead = append(dead, ref)
			delete(live, ref)
		}
	}
	for i := 0; i < len(dead); i += 7 {
		part := slices.Clone(dead[i:min(i+7, len(dead))])
		if err := s.Free(bg, append(part, part[0], Ref{999, 1}, Ref{part[0].Segment, 1 << 30})); err != nil {
			t.Fatal(err)
		}
	}
	check()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, blobs, o)
	check()
	before := storedBytes(t, s)
	freed, err := s.Compact(bg, 0)
	if err != nil {
		t.Fatal(err)
	}
	after := storedBytes(t, s)
	if diff := before - after - freed; freed <= 0 || max(diff, -diff) > 4*pageSize { // the disk counts whole pages
		t.Errorf("freed %d; stored %d before, %d after", freed, before, after)
	}
	check()
	stats, _ := s.Segments(bg)
	for _, st := range stats {
		if st.DeadSlots != 0 || st.Generation == 0 {
			t.Errorf("after compaction: %+v", st)
		}
	}
	if freed, err = s.Compact(bg, 0); freed != 0 || err != nil {
		t.Errorf("a second compaction freed %d, %v", freed, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, blobs, o)
	check()
	for ref := range live {
		dead = append(dead, ref)
		delete(live, ref)
	}
	if err := errors.Join(s.Free(bg, dead), s.Free(bg, dead)); err != nil {
		t.Fatal(err)
	}
	check()
	if left := faulty.Names(blobs, segPrefix); len(left) > 0 {
		stats, _ = s.Segments(bg)
		t.Errorf("blobs without a live slot: %v %+v", left, stats)
	}
	ref := mustPut(t, s, []byte("after"))
	for _, d := range dead {
		if d.Segment == ref.Segment {
			t.Fatal("a segment's id was used again")
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func storedBytes(t testing.TB, s *Set) (n int64) {
	t.Helper()
	stats, err := s.Segments(bg)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range stats {
		n += st.Stored
	}
	return n
}

func TestSlots(t *testing.T) {
	s := mustOpen(t, memory.New(memory.Options{}), Options{})
	defer s.Close()
	var refs []Ref
	for i := range 5 {
		refs = append(refs, mustPut(t, s, make([]byte, i*10)))
	}
	if err := s.Free(bg, refs[1:3]); err != nil {
		t.Fatal(err)
	}
	got := ""
	err := s.Slots(bg, refs[0].Segment, func(slot uint32, size int64) error {
		got += fmt.Sprintf("%d:%d ", slot, size)
		return nil
	})
	if err != nil || got != "0:0 3:30 4:40 " {
		t.Fatalf("%q %v", got, err)
	}
	wantKind(t, s.Slots(bg, 77, nil), errs.NotFound)
	wantKind(t, s.Verify(bg, 77, nil), errs.NotFound)
}

// TestConcurrent puts, reads, frees and compacts at once.
func TestConcurrent(t *testing.T) {
	s := mustOpen(t, memory.New(memory.Options{}), Options{SegmentBytes: 1 << 20, SegmentSlots: 50, TableBytes: 4 << 10, OpenFiles: 3})
	stop := make(chan struct{})
	var compactor sync.WaitGroup
	compactor.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := s.Compact(bg, 0.1); err != nil {
				t.Errorf("compact: %v", err)
				return
			}
		}
	})
	var wg sync.WaitGroup
	for w := range 6 {
		wg.Go(func() {
			if err := churn(s, uint64(w)); err != nil {
				t.Errorf("worker %d: %v", w, err)
			}
		})
	}
	wg.Wait()
	close(stop)
	compactor.Wait()
	verifyAll(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// churn is one worker of TestConcurrent.
func churn(s *Set, seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 9))
	type kept struct {
		ref Ref
		p   []byte
	}
	var mine []kept
	for i := range 150 {
		n := rng.IntN(5000)
		if rng.IntN(20) == 0 {
			n = rng.IntN(400 << 10)
		}
		p := fill(n, seed<<32|uint64(i))
		ref, err := s.Put(bg, p)
		if err != nil {
			return err
		}
		mine = append(mine, kept{ref, p})
		if rng.IntN(4) == 0 {
			if err := s.Sync(bg); err != nil {
				return err
			}
		}
		k := mine[rng.IntN(len(mine))]
		got := make([]byte, len(k.p))
		if _, err := s.ReadAt(bg, k.ref, got, 0); err != nil && len(got) > 0 || !bytes.Equal(got, k.p) {
			return fmt.Errorf("read %v: %w", k.ref, err)
		}
		if rng.IntN(2) == 0 {
			j := rng.IntN(len(mine))
			if err := s.Free(bg, []Ref{mine[j].ref}); err != nil {
				return err
			}
			if _, err := s.Size(bg, mine[j].ref); !errs.Is(err, errs.NotFound) {
				return fmt.Errorf("freed %v: %w", mine[j].ref, err)
			}
			mine = append(mine[:j], mine[j+1:]...)
		}
	}
	return nil
}
