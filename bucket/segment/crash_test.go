package segment

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"testing"

	"agentrun.dev/blob"
	"agentrun.dev/blob/faulty"
	"agentrun.dev/blob/memory"
	"agentrun.dev/errs"
)

var crashOptions = Options{SegmentBytes: 200 << 10, SegmentSlots: 12}

// history is what a workload was told, as far as it got.
type history struct {
	promised map[Ref][]byte // synced and not freed
	unsure   map[Ref][]byte // put but not synced, or perhaps freed
}

// workload puts, syncs, frees, compacts and reopens, until an error.
func workload(blobs blob.Store, seed uint64) (h history, err error) {
	h = history{promised: map[Ref][]byte{}, unsure: map[Ref][]byte{}}
	s, err := Open(bg, blobs, crashOptions)
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	rng := rand.New(rand.NewPCG(seed, 1))
	pending := map[Ref][]byte{}
	for i := range 70 {
		n := rng.IntN(2000)
		switch rng.IntN(8) {
		case 0:
			n = rng.IntN(40 << 10)
		case 1:
			n = rng.IntN(150 << 10)
		case 2:
			n = largeSlot + rng.IntN(1<<10)
		}
		p := fill(n, seed<<32|uint64(i))
		ref, err := s.Put(bg, p)
		if err != nil {
			return h, err
		}
		h.unsure[ref], pending[ref] = p, p
		if rng.IntN(3) == 0 {
			if err := s.Sync(bg); err != nil {
				return h, err
			}
			maps.Copy(h.promised, pending)
			for ref := range pending {
				delete(h.unsure, ref)
			}
			clear(pending)
		}
		if rng.IntN(4) == 0 {
			var refs []Ref
			for ref, p := range h.promised {
				if len(refs) < 4 {
					refs = append(refs, ref)
					h.unsure[ref] = p
				}
			}
			for _, ref := range refs {
				delete(h.promised, ref)
			}
			if err := s.Free(bg, refs); err != nil {
				return h, err
			}
		}
		if rng.IntN(12) == 0 {
			if _, err := s.Compact(bg, 0.2); err != nil {
				return h, err
			}
		}
	}
	return h, nil
}

// check opens what is left and compares it with what was promised.
func (h history) check(t *testing.T, blobs blob.Store) {
	t.Helper()
	for range 2 { // the second Open finds what the first has repaired
		s, err := Open(bg, blobs, crashOptions)
		if err != nil {
			t.Errorf("open: %v", err)
			return
		}
		for ref, p := range h.promised {
			if err := readsAs(s, ref, p); err != nil {
				t.Errorf("promised %v of %d bytes: %v", ref, len(p), err)
			}
		}
		for ref, p := range h.unsure {
			// It may be whole or gone, and torn if nobody was told that it is there; but never other bytes.
			if err := readsAs(s, ref, p); err != nil && !errs.Is(err, errs.NotFound) && !errs.Is(err, errs.Corrupt) {
				t.Errorf("unsure %v: %v", ref, err)
			}
		}
		verifyAll(t, s)
		p := fill(5000, 77)
		ref, err := s.Put(bg, p)
		if err == nil {
			err = errors.Join(s.Sync(bg), readsAs(s, ref, p))
		}
		if h.promised[ref] != nil || h.unsure[ref] != nil {
			t.Errorf("%v was given twice", ref)
		}
		_, compactErr := s.Compact(bg, 0)
		if err := errors.Join(err, compactErr, s.Close()); err != nil {
			t.Errorf("work after the crash: %v", err)
		}
	}
}

var errOther = errors.New("reads as other bytes")

func readsAs(s *Set, ref Ref, p []byte) error {
	got := make([]byte, len(p))
	if size, err := s.Size(bg, ref); err != nil {
		return err
	} else if size != int64(len(p)) {
		return errOther
	}
	if _, err := s.ReadAt(bg, ref, got, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !bytes.Equal(got, p) {
		return errOther
	}
	return nil
}

// TestCrash cuts the power at every operation on the blobs, and looks at what each kind of tail leaves.
func TestCrash(t *testing.T) {
	const seed = 5
	whole, err := faulty.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := workload(whole, seed); err != nil {
		t.Fatal(err)
	}
	total := whole.Ops()
	if total < 100 {
		t.Fatalf("the workload has only %d operations", total)
	}
	rng := rand.New(rand.NewPCG(seed, 2))
	for n := 1; n <= total && !t.Failed(); n++ {
		f, err := faulty.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		f.CutAt(n, rng.Float64())
		// An error isn't certain: work in the background may fail without anybody being let down.
		h, _ := workload(f, seed)
		for _, tail := range []faulty.Tail{faulty.Lost, []faulty.Tail{faulty.Torn, faulty.Scrambled, faulty.Kept}[n%3]} {
			left, err := f.Survivors(tail, rng)
			if err != nil {
				t.Fatal(err)
			}
			if h.check(t, left); t.Failed() {
				t.Fatalf("cut at operation %d of %d, tail %d", n, total, tail)
			}
		}
	}
}

// TestFaults makes every operation on the blobs fail once, without a crash.
func TestFaults(t *testing.T) {
	for _, kind := range []errs.Kind{errs.Other, errs.NoSpace} {
		for n := 1; !t.Failed(); n++ {
			f, err := faulty.New(nil)
			if err != nil {
				t.Fatal(err)
			}
			f.Inject(func(op faulty.Op) error {
				if op.N == n {
					return errs.Msg(kind, op.Kind.String(), op.Name, "injected")
				}
				return nil
			})
			h, err := workload(f, 6)
			if f.Ops() < n {
				if err != nil {
					t.Errorf("without a fault: %v", err)
				}
				break
			}
			f.Inject(nil)
			left, err := f.Survivors(faulty.Kept, nil)
			if err != nil {
				t.Fatal(err)
			}
			if h.check(t, left); t.Failed() {
				t.Fatalf("fault %v at operation %d", kind, n)
			}
		}
	}
}

// TestDiskFull fills a disk, sees reads and Free go on, and writes again when there is room.
func TestDiskFull(t *testing.T) {
	blobs := memory.New(memory.Options{Limit: 1 << 20})
	s := mustOpen(t, blobs, crashOptions)
	kept := map[Ref][]byte{}
	var err error
	for i := uint64(0); err == nil; i++ {
		var ref Ref
		p := fill(20<<10, i)
		if ref, err = s.Put(bg, p); err == nil {
			kept[ref] = p
		}
	}
	wantKind(t, err, errs.NoSpace)
	if err := s.Sync(bg); err != nil {
		t.Fatal(err)
	}
	for ref, p := range kept {
		wantSlot(t, s, ref, p)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// A full disk must not keep the store from being opened.
	s = mustOpen(t, blobs, crashOptions)
	var dead []Ref
	for ref, p := range kept {
		wantSlot(t, s, ref, p)
		if ref.Slot%2 == 0 || ref.Segment == 1 {
			dead = append(dead, ref)
			delete(kept, ref)
		}
	}
	if err := s.Free(bg, dead); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Compact(bg, 0.1); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(10) {
		p := fill(20<<10, 1000+i)
		kept[mustPut(t, s, p)] = p
	}
	if err := errors.Join(s.Sync(bg), s.Close()); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, blobs, crashOptions)
	for ref, p := range kept {
		wantSlot(t, s, ref, p)
	}
	verifyAll(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestSyncFailure sees to it that nothing is promised after a sync that failed.
func TestSyncFailure(t *testing.T) {
	f, err := faulty.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, f, Options{})
	ref := mustPut(t, s, []byte("x"))
	f.Inject(func(op faulty.Op) error {
		if op.Kind == faulty.Sync {
			return errors.New("input/output error")
		}
		return nil
	})
	wantKind(t, s.Sync(bg), errs.Unavailable)
	f.Inject(nil)
	wantKind(t, s.Sync(bg), errs.Unavailable)
	_, err = s.Put(bg, nil)
	wantKind(t, err, errs.Unavailable)
	wantSlot(t, s, ref, []byte("x"))
	if err := s.Close(); err == nil {
		t.Error("Close promised durability")
	}
}
