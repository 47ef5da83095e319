package bucket

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"pgregory.net/rapid"

	"agentrun.dev/blob"
	"agentrun.dev/blob/faulty"
	"agentrun.dev/bucket/segment"
	"agentrun.dev/errs"
	"agentrun.dev/kv/pebble"
)

// machineAt is a computer that loses its power at one of the writes and syncs of its disks, counted together.
type machineAt struct {
	fs    *vfs.MemFS
	blobs *faulty.Store
	n     atomic.Int64 // operations so far
	at    int64        // the power goes at this one; 0: never
	off   atomic.Bool
	armed atomic.Bool   // not while Pebble makes its directory, which it doesn't do crash-safely
	cut   chan struct{} // closed when after is there
	rng   *rand.Rand
	after *vfs.MemFS // what is left of fs
}

// powerCut is asked at each operation of either disk.
func (m *machineAt) powerCut() bool {
	n := m.n.Add(1)
	if n == m.at {
		m.off.Store(true)
		// Payload stops first: no record that is written after can rest on payload that is lost.
		m.blobs.Cut()
		m.after = m.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: m.rng})
		close(m.cut)
	}
	return m.at > 0 && n >= m.at
}

func newMachine(t failer, fs *vfs.MemFS, blobs blob.Store, at int64, seed uint64) *machineAt {
	f, err := faulty.New(blobs)
	if err != nil {
		t.Fatalf("%v", err)
	}
	m := &machineAt{fs: fs, blobs: f, at: at, cut: make(chan struct{}), rng: rand.New(rand.NewPCG(seed, uint64(at)))}
	return m
}

// start injects the faults, once the store is open.
func (m *machineAt) start() {
	m.blobs.Inject(func(op faulty.Op) error {
		// Under the blob store's lock, so no other operation on it comes between.
		n := m.n.Add(1)
		if n == m.at {
			m.off.Store(true)
			m.after = m.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: m.rng})
			close(m.cut)
		}
		if m.at > 0 && n >= m.at {
			return faulty.ErrPowerCut
		}
		return nil
	})
}

func (m *machineAt) inject(op errorfs.Op) error {
	if m.armed.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && m.powerCut() {
		return errs.Msg(errs.Other, "write", "disk", "power cut")
	}
	return nil
}

// crashOptions are for many folds, and every other time without history: then more is collected.
func crashOptions(seed uint64) Options {
	o := Options{FoldMin: 400, History: time.Hour, Segment: segment.Options{SegmentBytes: 256 << 10}}
	if seed%2 == 0 {
		o.History = -1
	}
	return o
}

// boot opens a store on a machine's disks.
func (m *machineAt) boot(t failer, o Options) (*Store, func()) {
	k, err := pebble.Open("kv", pebble.Options{FS: errorfs.Wrap(m.fs, errorfs.InjectorFunc(m.inject)), MemTableBytes: 256 << 10, CacheBytes: 1 << 20, FreeFloor: -1, Ballast: -1})
	if err != nil {
		t.Fatalf("open kv: %v", err)
	}
	m.armed.Store(true)
	o.KV, o.Blobs = k, m.blobs
	s, err := Open(context.Background(), o)
	if err != nil {
		_ = k.Close()
		if m.off.Load() {
			return nil, func() {}
		}
		t.Fatalf("open: %v", err)
	}
	return s, func() {
		_ = s.Close()
		_ = k.Close()
	}
}

// crashAt runs a script on a machine that loses its power at operation n, and looks at what is left. It reports
// whether the script got so far.
func crashAt(t failer, script []step1, want []string, n int64, seed uint64, tail faulty.Tail) bool {
	t.Helper()
	m := newMachine(t, vfs.NewCrashableMem(), nil, n, seed)
	m.start()
	s, stop := m.boot(t, crashOptions(seed))
	done := 0 // steps that were acknowledged before the cut
	r := newRun(s)
	for s != nil && done < len(script) {
		last := r.last
		err := script[done].do(r)
		if m.off.Load() {
			r.last = last
			break
		}
		if err != nil && !harmless(err) {
			t.Fatalf("step %d (%s): %v", done, script[done].name, err)
		}
		done++
	}
	stop()
	if !m.off.Load() {
		return false
	}
	<-m.cut
	left, err := m.blobs.Survivors(tail, m.rng)
	if err != nil {
		t.Fatalf("%v", err)
	}
	next := newMachine(t, m.after, left, 0, seed)
	s, stop = next.boot(t, crashOptions(seed))
	defer stop()
	got, err := dump(s)
	if err != nil {
		t.Fatalf("cut at %d, in step %d: %v", n, done, err)
	}
	before, after := "", want[min(done, len(want)-1)]
	if done > 0 {
		before = want[done-1]
	}
	if got != before && got != after {
		t.Fatalf("cut at %d, in step %d (%s): found\n%sinstead of\n%sor\n%s", n, done, script[min(done, len(script)-1)].name, got, before, after)
	}
	sound(t, s)
	goOn(t, s, r)
	return true
}

// goOn makes sure that a store that was recovered is as good as any other.
func goOn(t failer, s *Store, old *run) {
	t.Helper()
	r := newRun(s)
	ctx := context.Background()
	for _, st := range []step1{create("new", Unversioned), put("new", "k", 5000, 1), put("new", "l", 70_000, 1), foldNow("new"), fork("new", "newer")} {
		if err := st.do(r); err != nil {
			t.Fatalf("%s after the restart: %v", st.name, err)
		}
	}
	if r.last <= old.last {
		t.Fatalf("version %d after %d: versions went back", r.last, old.last)
	}
	var names []string
	if err := s.List(ctx, func(i *Info) error { names = append(names, i.Name); return nil }); err != nil {
		t.Fatalf("%v", err)
	}
	for _, n := range names {
		if err := s.Delete(ctx, n, DeleteOptions{Force: true}); err != nil {
			t.Fatalf("%v", err)
		}
	}
	empty(t, s)
}

// rehearse runs a script undisturbed and returns what the store shows after each step, and how many operations it took.
func rehearse(t failer, script []step1, seed uint64) (want []string, ops int64) {
	t.Helper()
	m := newMachine(t, vfs.NewCrashableMem(), nil, 0, 1)
	m.start()
	s, stop := m.boot(t, crashOptions(seed))
	defer stop()
	r := newRun(s)
	for _, st := range script {
		if err := st.do(r); err != nil && !harmless(err) {
			t.Fatalf("%s: %v", st.name, err)
		}
		d, err := dump(s)
		if err != nil {
			t.Fatalf("after %s: %v", st.name, err)
		}
		want = append(want, d)
	}
	return want, m.n.Load()
}

// TestCrash cuts the power at every write of a script.
func TestCrash(t *testing.T) {
	script := theScript()
	want, ops := rehearse(t, script, 1)
	step := int64(1)
	if testing.Short() {
		step = 7
	}
	cuts := 0
	for n := int64(1); n <= ops; n += step {
		if crashAt(t, script, want, n, 1, faulty.Tail(n%4)) {
			cuts++
		}
	}
	if cuts < int(ops/step)*2/3 {
		t.Fatalf("only %d of %d cuts happened", cuts, ops/step)
	}
	t.Logf("%d cuts in %d operations", cuts, ops)
}

// TestCrashRandom cuts it at a random point of random scripts.
func TestCrashRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "script")
		script := randomScript(seed, 30)
		want, ops := rehearse(t, script, seed)
		n := rapid.Int64Range(1, ops).Draw(t, "cut")
		crashAt(t, script, want, n, seed, rapid.SampledFrom([]faulty.Tail{faulty.Lost, faulty.Torn, faulty.Scrambled, faulty.Kept}).Draw(t, "tail"))
	})
}
