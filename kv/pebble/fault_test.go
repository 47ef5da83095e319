package pebble

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

var bg = context.Background()

// smallTables makes flushes and compactions happen within a short test.
var smallTables = Options{MemTableBytes: 64 << 10, CacheBytes: 1 << 20}

func openFS(fs vfs.FS) (*Store, error) {
	o := smallTables
	o.FS = fs
	return Open("/db", o)
}

// series writes numbered batches; each sets key n to n in several places, and "last" to n.
type series struct {
	acked int // the highest batch that was acknowledged as durable
	given int // the highest batch that was given
}

func (w *series) run(s *Store, n int, rng *rand.Rand) error {
	for i := w.given + 1; i <= n; i++ {
		b := &kv.Batch{Lazy: rng.IntN(3) == 0}
		v := fmt.Appendf(nil, "%06d", i)
		b.Put(fmt.Appendf(nil, "n%06d", i), append(v, make([]byte, rng.IntN(4000))...))
		b.Put([]byte("last"), v)
		if i%10 == 0 {
			b.DeleteRange(fmt.Appendf(nil, "n%06d", i-10), fmt.Appendf(nil, "n%06d", i-5))
		}
		w.given = i
		if err := s.Commit(bg, b); err != nil {
			return err
		}
		if !b.Lazy {
			w.acked = i
		}
	}
	return nil
}

// check sees that the store holds exactly the batches up to some number between acked and given.
func (w *series) check(s *Store) error {
	last := 0
	v, err := s.Get(bg, []byte("last"))
	switch {
	case err == nil:
		fmt.Sscan(strings.TrimLeft(string(v), "0"), &last)
	case !errs.Is(err, errs.NotFound):
		return err
	}
	if last < w.acked || last > w.given {
		return fmt.Errorf("the store ends at batch %d, of %d acknowledged and %d given", last, w.acked, w.given)
	}
	want := map[string]bool{}
	for i := 1; i <= last; i++ {
		if c := (i/10 + 1) * 10; i%10 < 5 && c <= last {
			continue // deleted by a later batch
		}
		want[fmt.Sprintf("n%06d", i)] = true
	}
	err = s.Scan(bg, kv.Range{Start: []byte("n"), End: []byte("o")}, func(k, v []byte) error {
		if !want[string(k)] || !strings.HasPrefix(string(v), string(k[1:])) {
			return fmt.Errorf("%s is there, at batch %d", k, last)
		}
		delete(want, string(k))
		return nil
	})
	if err == nil && len(want) > 0 {
		err = fmt.Errorf("%d keys are missing at batch %d", len(want), last)
	}
	w.acked, w.given = last, last // what was read once is durable
	return err
}

// TestCrash cuts the power again and again. What was acknowledged is there afterwards; lazy batches may be lost, but
// never one before another that isn't.
func TestCrash(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for round := range 12 {
		fs := vfs.NewCrashableMem()
		w := &series{}
		for range 4 {
			s, err := openFS(fs)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.check(s); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			if err := w.run(s, w.given+1+rng.IntN(80), rng); err != nil {
				t.Fatal(err)
			}
			after := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			fs = after
		}
	}
}

var errIO = errors.New("input/output error")

// TestFaults makes each write to the disk fail, once or from then on. An error is reported, never an exit and never a
// silent loss, and the store can be opened again.
func TestFaults(t *testing.T) {
	for _, persistent := range []bool{false, true} {
		for n := int32(0); ; n += 1 + n/12 {
			reached := faultAt(t, n, persistent)
			if t.Failed() {
				t.Fatalf("fault at write %d, persistent %v", n, persistent)
			}
			if !reached {
				break
			}
		}
	}
}

func faultAt(t *testing.T, n int32, persistent bool) (reached bool) {
	t.Helper()
	mem := vfs.NewCrashableMem()
	var count atomic.Int32
	var off atomic.Bool
	inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || off.Load() {
			return nil
		}
		if i := count.Add(1) - 1; i == n || persistent && i > n {
			return errIO
		}
		return nil
	})
	rng := rand.New(rand.NewPCG(uint64(n), 3))
	w := &series{}
	s, err := openFS(errorfs.Wrap(mem, inject))
	if err == nil {
		if err = w.run(s, 100, rng); err != nil && errs.KindOf(err) != errs.Unavailable {
			t.Errorf("commit: %v", err)
		}
		if err != nil {
			// Whatever follows must fail as well or be kept.
			before := w.acked
			for range 3 {
				if w.run(s, w.given+1, rng) == nil && w.acked > before {
					before = w.acked
				}
			}
		}
		_ = s.Close()
	}
	off.Store(true)
	after := mem.CrashClone(vfs.CrashCloneCfg{})
	next, err := openFS(after)
	if err != nil {
		t.Errorf("open after the fault: %v", err)
		return count.Load() > n
	}
	if err := w.check(next); err != nil {
		t.Error(err)
	}
	if err := errors.Join(w.run(next, w.given+5, rng), w.check(next), next.Close()); err != nil {
		t.Errorf("work after the fault: %v", err)
	}
	return count.Load() > n
}

// TestPoisoned opens a store again in the same process while the failed one isn't closed properly yet.
func TestPoisoned(t *testing.T) {
	mem := vfs.NewMem()
	var broken atomic.Bool
	inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && op.Kind == errorfs.OpFileSync || broken.Load() && op.Kind == errorfs.OpFileSyncData {
			return errIO
		}
		return nil
	})
	s, err := openFS(errorfs.Wrap(mem, inject))
	if err != nil {
		t.Fatal(err)
	}
	b := &kv.Batch{}
	b.Put([]byte("k"), []byte("v"))
	if err := s.Commit(bg, b); err != nil {
		t.Fatal(err)
	}
	broken.Store(true)
	err = s.Commit(bg, b)
	if !errs.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), errIO.Error()) {
		t.Fatalf("commit on a failing disk: %v", err)
	}
	broken.Store(false)
	_, getErr := s.Get(bg, []byte("k"))
	scanErr := s.Scan(bg, kv.Range{}, func(_, _ []byte) error { return nil })
	for _, err := range []error{s.Commit(bg, b), getErr, scanErr} {
		if !errs.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), errIO.Error()) {
			t.Errorf("after the failure: %v", err)
		}
	}
	if err := s.Close(); !errs.Is(err, errs.Unavailable) {
		t.Errorf("close: %v", err)
	}
	if m := s.Metrics(); m != (Metrics{}) {
		t.Errorf("metrics of a failed store: %+v", m)
	}
	s, err = openFS(mem)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(bg, []byte("k")); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestNoSpaceInjected meets ENOSPC in the middle of the log: the ballast is given up, the commit succeeds, and commits
// are refused until there is room.
func TestNoSpaceInjected(t *testing.T) {
	mem := vfs.NewMem()
	usage := func(avail uint64) {
		mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: avail, TotalBytes: 100 << 30})
	}
	usage(1 << 30)
	var full atomic.Bool
	inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && op.Kind == errorfs.OpFileWrite {
			full.Store(false) // giving up the ballast makes room
			return syscall.ENOSPC
		}
		return nil
	})
	s, err := openFS(errorfs.Wrap(mem, inject))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	put := func(key string, reclaim bool) error {
		return s.Commit(bg, &kv.Batch{Puts: []kv.Pair{{Key: []byte(key), Value: []byte("v")}}, Reclaim: reclaim})
	}
	if err := put("a", false); err != nil {
		t.Fatal(err)
	}
	full.Store(true)
	usage(0)
	if err := put("b", true); err != nil {
		t.Fatalf("the commit that met the full disk: %v", err)
	}
	if err := put("c", false); !errs.Is(err, errs.NoSpace) || errs.HintOf(err) == "" {
		t.Fatalf("on a full disk: %v", err)
	}
	if !s.Metrics().Full {
		t.Error("the metrics don't say that the disk is full")
	}
	if err := put("d", true); err != nil {
		t.Fatalf("a batch that reclaims: %v", err)
	}
	for _, k := range []string{"a", "b", "d"} {
		if _, err := s.Get(bg, []byte(k)); err != nil {
			t.Errorf("%s: %v", k, err)
		}
	}
	usage(65 << 20) // above the floor, but not enough to lay the ballast again
	if err := put("e", false); !errs.Is(err, errs.NoSpace) {
		t.Fatalf("just above the floor: %v", err)
	}
	usage(1 << 30)
	if err := put("e", false); err != nil {
		t.Fatalf("with room again: %v", err)
	}
	if _, err := s.Get(bg, []byte("c")); !errs.Is(err, errs.NotFound) {
		t.Errorf("what was refused is there: %v", err)
	}
}
