package bucket

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5"
	"encoding/hex"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"agentrun.dev"
	"pgregory.net/rapid"
)

// The model of a store: every bucket's whole past, as plain maps. A state is never changed once it is in a past.

// mObject is an object of the model. Two keys with the same id are hard links.
type mObject struct {
	id      int
	body    []byte
	etag    string
	meta    string
	version agentrun.Version
	null    bool
}

// mVersion is a noncurrent version or a delete marker.
type mVersion struct {
	mObject
	marker bool
}

type mState struct {
	cur  map[string]*mObject
	vers map[string][]mVersion // newest first
}

func (s *mState) clone() *mState {
	return &mState{maps.Clone(s.cur), maps.Clone(s.vers)}
}

// mPoint is what a bucket showed from a version on.
type mPoint struct {
	at agentrun.Version
	st *mState
}

type mBase struct {
	st *mState
	at agentrun.Version
}

type mBucket struct {
	name       string
	id         agentrun.RefID
	versioning Versioning
	past       []mPoint
	snaps      []mPoint
	parent     *mBucket
	origin     mBase
	merges     map[*mBucket]mBase
	gone       bool
}

// GoString keeps what rapid prints short.
func (b *mBucket) GoString() string { return b.name }

// GoString keeps what rapid prints short.
func (p mPoint) GoString() string { return p.at.String() }

// GoString keeps what rapid prints short.
func (v mVersion) GoString() string { return v.version.String() }

func (b *mBucket) now() *mState { return b.past[len(b.past)-1].st }

// at returns what the bucket showed at a version; nil before its beginning.
func (b *mBucket) at(v agentrun.Version) *mState {
	for _, sn := range b.snaps {
		if sn.at == v {
			return sn.st
		}
	}
	i, ok := slices.BinarySearchFunc(b.past, v, func(p mPoint, v agentrun.Version) int { return cmp.Compare(p.at, v) })
	if !ok {
		i--
	}
	if i < 0 {
		return nil
	}
	return b.past[i].st
}

// fakeClock advances a little with each look, and now and then goes back.
type fakeClock struct{ n atomic.Int64 }

func (c *fakeClock) now() time.Time {
	return time.Unix(1_700_000_000, c.n.Add(1000))
}

type machine struct {
	rig    *rig
	clock  *fakeClock
	all    []*mBucket
	ids    int
	bodies uint64
	kept   bool // history is kept
}

var modelKeys = []string{"a", "b", "b\x00c", "d1/x", "d1/y", "d1/\xff", "d2/x", "e/f/g"}

var modified = time.Unix(1_600_000_000, 0).UTC()

func (m *machine) living(t *rapid.T) []*mBucket {
	var list []*mBucket
	for _, b := range m.all {
		if !b.gone {
			list = append(list, b)
		}
	}
	if len(list) == 0 {
		t.Skip("no bucket")
	}
	return list
}

func (m *machine) pick(t *rapid.T) *mBucket {
	return rapid.SampledFrom(m.living(t)).Draw(t, "bucket")
}

func (m *machine) key(t *rapid.T) string { return rapid.SampledFrom(modelKeys).Draw(t, "key") }

func (m *machine) body(t *rapid.T) []byte {
	size := rapid.OneOf(rapid.IntRange(0, 20), rapid.IntRange(500, 530), rapid.IntRange(531, 9000), rapid.IntRange(65530, 65545), rapid.IntRange(65536, 200_000)).Draw(t, "size")
	m.bodies++
	b := make([]byte, size)
	x := m.bodies * 0x9e3779b97f4a7c15
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	return b
}

func etagOf(b []byte) string {
	sum := md5.Sum(b)
	return hex.EncodeToString(sum[:])
}

func (m *machine) must(t *rapid.T, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

func (m *machine) handle(t *rapid.T, b *mBucket) *Bucket {
	h, err := m.rig.s.Bucket(context.Background(), b.name)
	m.must(t, err)
	return h
}

func (m *machine) stage(t *rapid.T, body []byte) *Payload {
	p, err := m.rig.s.Stage(context.Background(), bytes.NewReader(body), int64(len(body)))
	m.must(t, err)
	return p
}

// attributes are what every object of the model gets, so that only what the model knows of makes a difference.
func attributes(meta, etag string) *Object {
	o := &Object{Modified: modified, Posix: &Posix{Mode: 0o100644}, ETag: etag}
	if meta != "" {
		o.Meta = map[string]string{"m": meta}
	}
	return o
}

// apply runs operations and returns the version that they were made at.
func (m *machine) apply(t *rapid.T, b *mBucket, ops ...Op) ([]*Object, agentrun.Version) {
	h := m.handle(t, b)
	res, err := h.Apply(context.Background(), ops, ApplyOptions{Lazy: rapid.Bool().Draw(t, "lazy")})
	m.must(t, err)
	return res, m.version(t, b)
}

func (m *machine) version(t *rapid.T, b *mBucket) agentrun.Version {
	v, err := m.handle(t, b).View(context.Background())
	m.must(t, err)
	defer v.Close()
	return v.Version()
}

// push makes a state the bucket's present one.
func (m *machine) push(t *rapid.T, b *mBucket, at agentrun.Version, st *mState) {
	last := &b.past[len(b.past)-1]
	if at < last.at {
		t.Fatalf("bucket %s went from version %d back to %d", b.name, last.at, at)
	}
	if at == last.at {
		last.st = st
	} else {
		b.past = append(b.past, mPoint{at, st})
	}
	m.checkState(t, b, 0, st)
}

// drop takes a key's current object away for another.
func (b *mBucket) retire(st *mState, key string) {
	old := st.cur[key]
	if b.versioning == Suspended {
		st.dropNull(key)
	}
	if old != nil && (b.versioning == Versioned || b.versioning == Suspended && !old.null) {
		st.keep(key, mVersion{mObject: *old})
	}
	delete(st.cur, key)
}

func (st *mState) keep(key string, v mVersion) {
	list := slices.DeleteFunc(slices.Clone(st.vers[key]), func(o mVersion) bool { return o.version == v.version })
	list = append(list, v)
	slices.SortFunc(list, func(a, b mVersion) int { return cmp.Compare(b.version, a.version) })
	st.vers[key] = list
}

func (st *mState) dropVersion(key string, i int) {
	st.vers[key] = slices.Delete(slices.Clone(st.vers[key]), i, i+1)
	if len(st.vers[key]) == 0 {
		delete(st.vers, key)
	}
}

func (st *mState) dropNull(key string) {
	if i := slices.IndexFunc(st.vers[key], func(v mVersion) bool { return v.null }); i >= 0 {
		st.dropVersion(key, i)
	}
}

func (b *mBucket) put(st *mState, key string, o mObject) {
	b.retire(st, key)
	o.null = b.versioning != Versioned
	st.cur[key] = &o
}

func (b *mBucket) remove(st *mState, key string, at agentrun.Version) {
	if b.versioning == Unversioned {
		delete(st.cur, key)
		return
	}
	b.retire(st, key)
	st.keep(key, mVersion{mObject{version: at, null: b.versioning == Suspended}, true})
}

func (st *mState) names(o *mObject) (list []string) {
	for k, x := range st.cur {
		if x.id == o.id {
			list = append(list, k)
		}
	}
	slices.Sort(list)
	return list
}

// edit changes an object's bytes in place.
func (b *mBucket) edit(st *mState, key string, at agentrun.Version, id int, body []byte) {
	old := st.cur[key]
	n := mObject{id: id, body: body, etag: etagOf(body), version: at, null: b.versioning != Versioned}
	if old == nil {
		st.cur[key] = &n
		return
	}
	n.meta = old.meta
	names := st.names(old)
	if b.versioning == Unversioned {
		n.id, n.null = old.id, old.null
	} else {
		if len(names) > 1 {
			n.id = old.id
		}
		b.retire(st, key)
	}
	if len(names) == 1 {
		st.cur[key] = &n
		return
	}
	for _, k := range names {
		c := n
		st.cur[k] = &c
	}
}

func (m *machine) finish(t *rapid.T) {
	for _, b := range m.all {
		if b.gone {
			continue
		}
		m.checkState(t, b, 0, b.now())
		for _, p := range append(slices.Clone(b.past), b.snaps...) {
			m.checkState(t, b, p.at, b.at(p.at))
		}
	}
	sound(t, m.rig.s)
	for _, b := range m.all {
		if !b.gone {
			m.must(t, m.rig.s.Delete(context.Background(), b.name, DeleteOptions{Force: true}))
		}
	}
	empty(t, m.rig.s)
}

func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		clock := new(fakeClock)
		m := &machine{clock: clock, kept: rapid.IntRange(0, 3).Draw(rt, "history") > 0}
		o := Options{Now: clock.now, OpenBuckets: rapid.SampledFrom([]int{1, 3, 100}).Draw(rt, "open"),
			FoldMin: int64(rapid.SampledFrom([]int{200, 2000, 20_000, 1 << 20}).Draw(rt, "fold"))}
		o.History = 1000 * time.Hour
		if !m.kept {
			o.History = -1
		}
		m.rig = newBareRig(t, o)
		defer func() { m.rig.s.Close() }()
		m.create(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"create": m.create, "put": m.put, "put2": m.put, "delete": m.delete, "deletePrefix": m.deletePrefix, "deleteExact": m.deleteExact,
			"setMeta": m.setMeta, "copy": m.copy, "rename": m.rename, "renameDir": m.renameDir, "link": m.link, "write": m.write, "write2": m.write,
			"truncate": m.truncate, "multipart": m.multipart, "versioning": m.setVersioning, "snapshot": m.snapshot, "deleteSnapshot": m.deleteSnapshot,
			"fork": m.fork, "fork2": m.fork, "deleteBucket": m.deleteBucket, "fold": m.fold, "rebuild": m.rebuild, "reopen": m.reopen,
			"collect": m.collect, "merge": m.merge, "merge2": m.merge, "look": m.look, "usage": m.usage,
		})
		m.finish(rt)
	})
}
