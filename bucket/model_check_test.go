package bucket

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"agentrun.dev"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
	"pgregory.net/rapid"
)

func (m *machine) viewAt(t *rapid.T, b *mBucket, at agentrun.Version) *View {
	v, err := m.rig.s.View(context.Background(), b.name, at)
	if errs.Is(err, errs.NotFound) && !m.kept && !slices.ContainsFunc(b.snaps, func(p mPoint) bool { return p.at == at }) {
		return nil
	}
	if err != nil {
		t.Fatalf("view of %s at %d: %v", b.name, at, err)
	}
	return v
}

// checkState compares a bucket at a version (0: now) with a state: listing, versions, contents and sums.
func (m *machine) checkState(t *rapid.T, b *mBucket, at agentrun.Version, want *mState) {
	t.Helper()
	v := m.viewAt(t, b, at)
	if v == nil {
		return
	}
	defer v.Close()
	ctx := context.Background()
	c := v.Scan(Scan{})
	keys := slices.Sorted(maps.Keys(want.cur))
	for _, k := range keys {
		if !c.Next(ctx) || c.Key() != k {
			t.Fatalf("%s at %d lists %q (%v), want %q", b.name, at, c.Key(), c.Err(), k)
		}
		m.checkObject(t, v, k, c.Object(), want.cur[k])
	}
	if c.Next(ctx) || c.Err() != nil {
		t.Fatalf("%s at %d lists %q (%v) beyond the end", b.name, at, c.Key(), c.Err())
	}
	if n, size := want.totals(); v.Info().Objects != n || v.Info().Bytes != size {
		t.Fatalf("%s at %d: %d objects, %d bytes; want %d, %d", b.name, at, v.Info().Objects, v.Info().Bytes, n, size)
	}
	m.checkVersions(t, v, want)
}

func (s *mState) totals() (objects, bytes uint64) {
	for _, o := range s.cur {
		bytes += uint64(len(o.body))
	}
	return uint64(len(s.cur)), bytes
}

func (m *machine) checkObject(t *rapid.T, v *View, key string, o *Object, want *mObject) {
	if o == nil {
		t.Fatalf("%q: no object", key)
	}
	if o.ETag != want.etag || o.Meta["m"] != want.meta || o.Version != want.version || o.Null != want.null || o.Size != int64(len(want.body)) {
		t.Fatalf("%q is %+v, want version %d, null %v, ETag %s, %d bytes", key, o, want.version, want.null, want.etag, len(want.body))
	}
	rd, err := v.Open(context.Background(), o)
	if err != nil {
		t.Fatalf("%q: %v", key, err)
	}
	defer rd.Close()
	got, err := io.ReadAll(rd)
	if err != nil || !bytes.Equal(got, want.body) {
		t.Fatalf("%q: %d bytes (%v) differ from the %d expected", key, len(got), err, len(want.body))
	}
}

func (m *machine) checkVersions(t *rapid.T, v *View, want *mState) {
	keys := slices.Collect(maps.Keys(want.cur))
	for k := range want.vers {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	var list []mVersion
	var names []string
	for _, k := range slices.Compact(keys) {
		if o := want.cur[k]; o != nil {
			list, names = append(list, mVersion{mObject: *o}), append(names, k)
		}
		for _, x := range want.vers[k] {
			list, names = append(list, x), append(names, k)
		}
	}
	i := 0
	err := v.Versions(context.Background(), "", "", 0, func(o *Object) error {
		if i == len(list) {
			t.Fatalf("version %d of %q is too many", o.Version, o.Key)
		}
		w := list[i]
		if o.Key != names[i] || o.Version != w.version || o.Marker != w.marker || o.Null != w.null || o.Latest != (i == 0 || names[i-1] != names[i]) {
			t.Fatalf("version %+v, want %q version %d, marker %v, null %v", o, names[i], w.version, w.marker, w.null)
		}
		if !w.marker {
			m.checkObject(t, v, o.Key, o, &w.mObject)
		}
		i++
		return nil
	})
	m.must(t, err)
	if i != len(list) {
		t.Fatalf("%d versions, want %d", i, len(list))
	}
}

// look checks a random point, and a random difference.
func (m *machine) look(t *rapid.T) {
	a, b := m.pick(t), m.pick(t)
	atA, stA := m.point(t, a)
	atB, stB := m.point(t, b)
	m.checkState(t, a, atA, stA)
	prefix := rapid.SampledFrom([]string{"", "d1/", "b"}).Draw(t, "prefix")
	var got []mChange
	err := m.rig.s.Diff(context.Background(), fmt.Sprintf("%s@%d", a.name, atA), fmt.Sprintf("%s@%d", b.name, atB), prefix, func(c Change) error {
		got = append(got, mChange{c.Key, c.Kind})
		return nil
	})
	if !m.kept && errs.Is(err, errs.NotFound) {
		return
	}
	m.must(t, err)
	want := slices.DeleteFunc(changes(stA, stB), func(c mChange) bool { return !strings.HasPrefix(c.key, prefix) })
	if !slices.Equal(got, want) {
		t.Fatalf("diff %s@%d %s@%d: %v, want %v", a.name, atA, b.name, atB, got, want)
	}
}

func (m *machine) usage(t *rapid.T) {
	b := m.pick(t)
	u, err := m.rig.s.Usage(context.Background(), b.name)
	m.must(t, err)
	if n, size := b.now().totals(); u.Objects != n || u.Bytes != size {
		t.Fatalf("usage %+v, want %d objects, %d bytes", u, n, size)
	}
}

// sound fails if fsck finds anything.
func sound(t failer, s *Store) *FsckReport {
	t.Helper()
	rep, err := s.Fsck(context.Background(), FsckOptions{Payload: true})
	if err != nil {
		t.Fatalf("fsck: %v", err)
	}
	if len(rep.Problems) > 0 {
		t.Fatalf("fsck: %d problems, such as %+v", len(rep.Problems), rep.Problems[:min(5, len(rep.Problems))])
	}
	return rep
}

// failer is what tests of the standard library and of rapid have in common.
type failer interface {
	Helper()
	Fatalf(string, ...any)
}

// empty fails if a store without buckets goes on holding anything. Folds under way may hold something for a while.
func empty(t failer, s *Store) {
	t.Helper()
	s.past.drop(func(*pastEntry) bool { return true })
	var left string
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if _, err := s.GC(context.Background()); err != nil {
			t.Fatalf("gc: %v", err)
		}
		if left = leftovers(t, s); left == "" {
			sound(t, s)
			return
		}
	}
	t.Fatalf("an empty store holds %s", left)
}

// leftovers describes what a store has beside its own records.
func leftovers(t failer, s *Store) (left string) {
	ctx := context.Background()
	kinds := map[string]int{}
	err := s.kv.Scan(ctx, kv.Range{}, func(k, _ []byte) error {
		if k[1] != kFormat && k[1] != kIDs {
			kinds[string(k[:2])]++
		}
		return nil
	})
	if err != nil {
		t.Fatalf("scan: %v", err)
	}
	if len(kinds) > 0 {
		left = fmt.Sprint("records ", kinds)
	}
	list, err := s.segments.Segments(ctx)
	if err != nil {
		t.Fatalf("segments: %v", err)
	}
	for _, g := range list {
		if g.Slots > g.DeadSlots {
			left += fmt.Sprintf(" segment %+v", g)
		}
	}
	s.pins.mu.Lock()
	defer s.pins.mu.Unlock()
	if len(s.pins.held) > 0 {
		left += fmt.Sprint(" pins ", s.pins.held)
	}
	return left
}
