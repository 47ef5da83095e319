package bucket

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentrun.dev/blob/faulty"
	blobmem "agentrun.dev/blob/memory"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
	kvmem "agentrun.dev/kv/memory"
)

// faults fails operations of a kv and a blob store, counted together.
type faults struct {
	kv.Store
	blobs *faulty.Store

	mu   sync.Mutex
	n    int
	at   int  // this one fails, from 1
	long bool // and all that follow, until off is called
	full bool // as a full disk does: what gives back space goes on
	hit  bool
}

var errDisk = errors.New("input/output error")

// fail decides over one operation. reclaim says that a full disk doesn't stop it.
func (f *faults) fail(reclaim, grows bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	if f.at == 0 || f.n < f.at || f.n > f.at && !f.long {
		return nil
	}
	if f.full && (reclaim || !grows) {
		if f.n == f.at {
			f.at++ // the next one that needs room
		}
		return nil
	}
	f.hit = true
	if f.full {
		return errs.Msg(errs.NoSpace, "write", "disk", "no space left")
	}
	return errs.New(errs.Other, "write", "disk", errDisk)
}

// off ends the faults. It reports whether there were any.
func (f *faults) off() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hit {
		f.at = 0
	}
	return f.hit
}

// stop ends them, whether there were any or not.
func (f *faults) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at = 0
}

func (f *faults) Commit(ctx context.Context, b *kv.Batch) error {
	if err := f.fail(b.Reclaim, true); err != nil {
		return err
	}
	return f.Store.Commit(ctx, b)
}

func newFaults(t failer, at int, long, full bool) *faults {
	b, err := faulty.New(blobmem.New(blobmem.Options{}))
	if err != nil {
		t.Fatalf("%v", err)
	}
	f := &faults{Store: kvmem.New(), blobs: b, at: at, long: long, full: full}
	b.Inject(func(op faulty.Op) error {
		return f.fail(false, op.Kind == faulty.Append || op.Kind == faulty.Create)
	})
	return f
}

func (f *faults) open(t failer, seed uint64) *Store {
	t.Helper()
	o := crashOptions(seed)
	o.KV, o.Blobs = f, f.blobs
	for range 3 {
		s, err := Open(context.Background(), o)
		if err == nil {
			return s
		}
		if !f.off() {
			t.Fatalf("open: %v", err)
		}
	}
	t.Fatalf("the store doesn't open after the fault")
	return nil
}

// within fails if f takes so long that it must hang.
func within(t failer, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("%s hangs", what)
	}
}

// faultAt runs a script of which operation at fails: whatever meets the fault fails whole, says so, and works when it
// is tried again.
func faultAt(t failer, script []step1, want []string, at int, long, full bool, seed uint64) (hit bool) {
	t.Helper()
	f := newFaults(t, at, long, full)
	s := f.open(t, seed)
	r := newRun(s)
	before := ""
	for i, st := range script {
		var err error
		for try := 0; ; try++ {
			within(t, st.name, func() { err = st.do(r) })
			if try == 4 {
				t.Fatalf("fault %d: step %d (%s) goes on failing: %v", at, i, st.name, err)
			}
			if err == nil || harmless(err) {
				break
			}
			if !f.off() {
				t.Fatalf("fault %d: step %d (%s) fails without one: %v", at, i, st.name, err)
			}
			text := err.Error()
			if !strings.Contains(text, errDisk.Error()) && !strings.Contains(text, "no space") && !errs.Is(err, errs.Unavailable) {
				t.Fatalf("fault %d: step %d (%s) doesn't say why it fails: %v", at, i, st.name, err)
			}
			if full && !errs.Is(err, errs.NoSpace) && !errs.Is(err, errs.Unavailable) {
				t.Fatalf("fault %d: step %d (%s): a full disk is a %v", at, i, st.name, err)
			}
			if errs.Is(err, errs.Unavailable) {
				within(t, "closing", func() { _ = s.Close() })
				s = f.open(t, seed)
				r.s = s
			}
			got, bad := dump(s)
			if bad != nil {
				t.Fatalf("fault %d: after step %d (%s): %v", at, i, st.name, bad)
			}
			if got == want[i] && got != before && errs.Is(err, errs.Unavailable) {
				break // it did happen
			}
			if got != before {
				t.Fatalf("fault %d: step %d (%s) failed, but left\n%sinstead of\n%s", at, i, st.name, got, before)
			}
		}
		got, bad := dump(s)
		if bad != nil || got != want[i] {
			t.Fatalf("fault %d: after step %d (%s: %v) %v:\n%sinstead of\n%s", at, i, st.name, err, bad, got, want[i])
		}
		before = got
	}
	hit = f.off()
	f.stop()
	if err := s.segments.Sync(context.Background()); errs.Is(err, errs.Unavailable) {
		_ = s.Close()
		s = f.open(t, seed)
	}
	defer func() { within(t, "closing", func() { _ = s.Close() }) }()
	sound(t, s)
	goOn(t, s, r)
	return hit
}

// TestFaults fails each operation of a script once, or makes the disk full from then on until somebody notices.
func TestFaults(t *testing.T) {
	script := theScript()
	want, _ := rehearse(t, script, 1)
	step := 1
	if testing.Short() {
		step = 5
	}
	for _, c := range []struct {
		name       string
		long, full bool
	}{{"one", false, false}, {"long", true, false}, {"full", true, true}} {
		t.Run(c.name, func(t *testing.T) {
			hits := 0
			for at := 1; ; at += step {
				hit := faultAt(t, script, want, at, c.long, c.full, 1)
				if !hit {
					break
				}
				hits++
			}
			t.Logf("%d faults", hits)
			if hits*step < len(script) {
				t.Fatalf("only %d faults in %d steps", hits, len(script))
			}
		})
	}
}

// TestFaultsRandom does so at a random point of random scripts.
func TestFaultsRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "script")
		script := randomScript(seed, 30)
		want, ops := rehearse(t, script, seed)
		long := rapid.Bool().Draw(t, "long")
		full := long && rapid.Bool().Draw(t, "full")
		faultAt(t, script, want, rapid.IntRange(1, int(ops)).Draw(t, "fault"), long, full, seed)
	})
}
