package bucket

import (
	"context"
	"crypto/md5"
	"fmt"
	"maps"
	"slices"
	"strings"

	"agentrun.dev"
	"agentrun.dev/bucket/tree"
	"agentrun.dev/errs"
	"pgregory.net/rapid"
)

func (m *machine) create(t *rapid.T) {
	if len(m.all) > 30 {
		t.Skip("enough buckets")
	}
	b := &mBucket{name: fmt.Sprintf("bucket%d", len(m.all)), merges: map[*mBucket]mBase{}}
	b.versioning = rapid.SampledFrom([]Versioning{Unversioned, Unversioned, Versioned}).Draw(t, "versioning")
	i, err := m.rig.s.Create(context.Background(), b.name, CreateOptions{Versioning: b.versioning})
	m.must(t, err)
	b.id = i.ID
	b.past = []mPoint{{i.Version, &mState{map[string]*mObject{}, map[string][]mVersion{}}}}
	b.past[0].at = m.version(t, b)
	m.all = append(m.all, b)
}

func (m *machine) put(t *rapid.T) {
	b := m.pick(t)
	n := rapid.IntRange(1, 3).Draw(t, "n")
	keys := rapid.Permutation(modelKeys).Draw(t, "keys")[:n]
	var ops []Op
	var objs []mObject
	for range keys {
		body := m.body(t)
		o := mObject{id: m.newID(), body: body, etag: etagOf(body), meta: rapid.SampledFrom([]string{"", "one", strings.Repeat("long", 800)}).Draw(t, "meta")}
		objs = append(objs, o)
	}
	for i, k := range keys {
		ops = append(ops, Op{Kind: OpPut, Key: k, Object: attributes(objs[i].meta, ""), Payload: m.stage(t, objs[i].body)})
	}
	res, at := m.apply(t, b, ops...)
	st := b.now().clone()
	for i, k := range keys {
		if res[i].Version != at || res[i].ETag != objs[i].etag {
			t.Fatalf("result %+v, want version %d and ETag %s", res[i], at, objs[i].etag)
		}
		objs[i].version = at
		b.put(st, k, objs[i])
	}
	m.push(t, b, at, st)
}

func (m *machine) newID() int { m.ids++; return m.ids }

func (m *machine) delete(t *rapid.T) {
	b, key := m.pick(t), m.key(t)
	_, at := m.apply(t, b, Op{Kind: OpDelete, Key: key})
	st := b.now().clone()
	b.remove(st, key, at)
	m.push(t, b, at, st)
}

func (m *machine) deletePrefix(t *rapid.T) {
	b := m.pick(t)
	prefix := rapid.SampledFrom([]string{"", "d1/", "b", "d", "b\x00"}).Draw(t, "prefix")
	_, at := m.apply(t, b, Op{Kind: OpDeletePrefix, Key: prefix})
	st := b.now().clone()
	maps.DeleteFunc(st.cur, func(k string, _ *mObject) bool { return strings.HasPrefix(k, prefix) })
	maps.DeleteFunc(st.vers, func(k string, _ []mVersion) bool { return strings.HasPrefix(k, prefix) })
	m.push(t, b, at, st)
}

func (m *machine) deleteExact(t *rapid.T) {
	b, key := m.pick(t), m.key(t)
	st := b.now().clone()
	cur := st.cur[key]
	var choices []mVersion
	if cur != nil {
		choices = append(choices, mVersion{mObject: *cur})
	}
	choices = append(choices, st.vers[key]...)
	if len(choices) == 0 {
		t.Skip("no version")
	}
	v := rapid.SampledFrom(choices).Draw(t, "version")
	null := v.null && rapid.Bool().Draw(t, "null")
	op := Op{Kind: OpDeleteExact, Key: key, Version: v.version, NullVersion: null}
	if null {
		op.Version = 0
	}
	_, at := m.apply(t, b, op)
	promote := func() {
		if list := st.vers[key]; len(list) > 0 && !list[0].marker {
			o := list[0].mObject
			st.cur[key] = &o
			st.dropVersion(key, 0)
		}
	}
	if cur != nil && (null && cur.null || !null && cur.version == v.version) {
		delete(st.cur, key)
		promote()
	} else {
		i := slices.IndexFunc(st.vers[key], func(x mVersion) bool { return null && x.null || !null && x.version == v.version })
		st.dropVersion(key, i)
		if cur == nil && i == 0 {
			promote()
		}
	}
	m.push(t, b, at, st)
}

func (m *machine) setMeta(t *rapid.T) {
	b, key := m.pick(t), m.key(t)
	o := b.now().cur[key]
	if o == nil {
		t.Skip("no object")
	}
	meta := rapid.SampledFrom([]string{"", "two", strings.Repeat("LONG", 800)}).Draw(t, "meta")
	_, at := m.apply(t, b, Op{Kind: OpSetMeta, Key: key, Object: attributes(meta, "")})
	st := b.now().clone()
	for _, k := range st.names(o) {
		c := *st.cur[k]
		c.meta = meta
		st.cur[k] = &c
	}
	m.push(t, b, at, st)
}

// copy copies from any point of any bucket.
func (m *machine) copy(t *rapid.T) {
	src, dst := m.pick(t), m.pick(t)
	from, to := m.key(t), m.key(t)
	p := rapid.SampledFrom(src.past).Draw(t, "point")
	o := p.st.cur[from]
	if o == nil {
		t.Skip("no source")
	}
	v := m.viewAt(t, src, p.at)
	if v == nil {
		t.Skip("no longer kept")
	}
	defer v.Close()
	so, err := v.Get(context.Background(), from)
	m.must(t, err)
	_, at := m.apply(t, dst, Op{Kind: OpCopy, Key: to, Source: so, Object: attributes(o.meta, "")})
	st := dst.now().clone()
	n := *o
	n.id, n.version = m.newID(), at
	dst.put(st, to, n)
	m.push(t, dst, at, st)
}

func (m *machine) rename(t *rapid.T) {
	b, from, to := m.pick(t), m.key(t), m.key(t)
	o := b.now().cur[from]
	if o == nil {
		t.Skip("no object")
	}
	_, at := m.apply(t, b, Op{Kind: OpRename, Key: from, To: to})
	st := b.now().clone()
	if target := st.cur[to]; from != to && (target == nil || target.id != o.id) {
		b.retire(st, to)
		n := *o
		if b.versioning != Unversioned {
			n.version, n.null = at, b.versioning == Suspended
		}
		st.cur[to] = &n
		delete(st.cur, from)
	}
	m.push(t, b, at, st)
}

func (m *machine) renameDir(t *rapid.T) {
	b := m.pick(t)
	dirs := rapid.Permutation([]string{"d1/", "d2/", "e/", "e/f/"}).Draw(t, "dirs")
	from, to := dirs[0], dirs[1]
	st := b.now().clone()
	_, err := m.handle(t, b).Apply(context.Background(), []Op{{Kind: OpRenameDir, Key: from, To: to}}, ApplyOptions{})
	has := func(dir string) (cur, any bool) {
		for k := range st.cur {
			cur = cur || strings.HasPrefix(k, dir)
		}
		any = cur
		for k := range st.vers {
			any = any || strings.HasPrefix(k, dir)
		}
		return cur, any
	}
	full, _ := has(to)
	_, some := has(from)
	switch {
	case strings.HasPrefix(to, from):
		m.wantKind(t, err, errs.Invalid)
		return
	case full:
		m.wantKind(t, err, errs.NotEmpty)
		return
	case !some:
		m.wantKind(t, err, errs.NotFound)
		return
	}
	m.must(t, err)
	for k, o := range maps.Clone(st.cur) {
		if rest, ok := strings.CutPrefix(k, from); ok {
			st.cur[to+rest] = o
			delete(st.cur, k)
		}
	}
	for k, list := range maps.Clone(st.vers) {
		if rest, ok := strings.CutPrefix(k, from); ok {
			delete(st.vers, k)
			for _, v := range list {
				st.keep(to+rest, v)
			}
		}
	}
	m.push(t, b, m.version(t, b), st)
}

func (m *machine) wantKind(t *rapid.T, err error, kind errs.Kind) {
	t.Helper()
	if !errs.Is(err, kind) {
		t.Fatalf("got %v, want an error of kind %v", err, kind)
	}
}

func (m *machine) link(t *rapid.T) {
	b, from, to := m.pick(t), m.key(t), m.key(t)
	o := b.now().cur[from]
	if o == nil || b.now().cur[to] != nil {
		t.Skip("no object, or the name is taken")
	}
	_, at := m.apply(t, b, Op{Kind: OpLink, Key: from, To: to})
	st := b.now().clone()
	n := *o
	st.cur[to] = &n
	m.push(t, b, at, st)
}

func (m *machine) write(t *rapid.T) {
	b, key := m.pick(t), m.key(t)
	old := b.now().cur[key]
	data := m.body(t)
	if len(data) == 0 {
		t.Skip("nothing to write")
	}
	size, meta := 0, ""
	if old != nil {
		size, meta = len(old.body), old.meta
	}
	off := rapid.IntRange(0, size+1000).Draw(t, "offset")
	if old != nil && size > 0 && rapid.Bool().Draw(t, "small") {
		off = rapid.IntRange(0, size-1).Draw(t, "offset")
		data = data[:min(len(data), 5000)]
	}
	body := make([]byte, max(size, off+len(data)))
	if old != nil {
		copy(body, old.body)
	}
	copy(body[off:], data)
	_, at := m.apply(t, b, Op{Kind: OpWrite, Key: key, Offset: int64(off), Object: attributes(meta, etagOf(body)), Payload: m.stage(t, data)})
	st := b.now().clone()
	b.edit(st, key, at, m.newID(), body)
	m.push(t, b, at, st)
}

func (m *machine) truncate(t *rapid.T) {
	b, key := m.pick(t), m.key(t)
	old := b.now().cur[key]
	size, meta := 0, ""
	if old != nil {
		size, meta = len(old.body), old.meta
	}
	to := rapid.OneOf(rapid.IntRange(0, size), rapid.IntRange(0, size+100_000), rapid.IntRange(0, 600)).Draw(t, "to")
	body := make([]byte, to)
	if old != nil {
		copy(body, old.body)
	}
	_, at := m.apply(t, b, Op{Kind: OpTruncate, Key: key, Offset: int64(to), Object: attributes(meta, etagOf(body))})
	st := b.now().clone()
	b.edit(st, key, at, m.newID(), body)
	m.push(t, b, at, st)
}

func (m *machine) multipart(t *rapid.T) {
	b, key := m.pick(t), m.key(t)
	h := m.handle(t, b)
	ctx := context.Background()
	up, err := h.CreateUpload(ctx, key, attributes("up", ""))
	m.must(t, err)
	body := m.body(t)
	for range rapid.IntRange(1, 2).Draw(t, "times") { // a part may be put again
		_, err := h.PutPart(ctx, key, up.ID, 1, m.stage(t, body), nil)
		m.must(t, err)
	}
	_, err = h.PutPart(ctx, key, up.ID, 2, m.stage(t, []byte("left out")), nil)
	m.must(t, err)
	switch rapid.IntRange(0, 3).Draw(t, "end") {
	case 0:
		m.must(t, h.Abort(ctx, key, up.ID))
		return
	case 1:
		return // left in progress
	}
	o, err := h.Complete(ctx, key, up.ID, []CompletePart{{Number: 1}}, nil, nil)
	m.must(t, err)
	again, err := h.Complete(ctx, key, up.ID, []CompletePart{{Number: 1}}, nil, nil)
	m.must(t, err)
	if again.Version != o.Version {
		t.Fatal("a repeated Complete gave another object")
	}
	st := b.now().clone()
	sum := md5.Sum(body)
	b.put(st, key, mObject{id: m.newID(), body: body, meta: "up", etag: etagOf(sum[:]) + "-1", version: o.Version})
	m.push(t, b, o.Version, st)
}

func (m *machine) setVersioning(t *rapid.T) {
	b := m.pick(t)
	v := rapid.SampledFrom([]Versioning{Versioned, Suspended}).Draw(t, "versioning")
	_, err := m.rig.s.Update(context.Background(), b.name, func(i *Info) error { i.Versioning = v; return nil })
	m.must(t, err)
	b.versioning = v
}

func (m *machine) snapshot(t *rapid.T) {
	b := m.pick(t)
	sn, err := m.rig.s.TakeSnapshot(context.Background(), b.name, SnapshotOptions{})
	m.must(t, err)
	b.snaps = append(b.snaps, mPoint{sn.Version, b.now()})
	if n, size := b.now().totals(); n != sn.Objects || size != sn.Bytes {
		t.Fatalf("snapshot of %d objects, %d bytes; want %d, %d", sn.Objects, sn.Bytes, n, size)
	}
}

func (m *machine) deleteSnapshot(t *rapid.T) {
	b := m.pick(t)
	if len(b.snaps) == 0 {
		t.Skip("no snapshot")
	}
	i := rapid.IntRange(0, len(b.snaps)-1).Draw(t, "snapshot")
	m.must(t, m.rig.s.DeleteSnapshot(context.Background(), b.name, b.snaps[i].at))
	b.snaps = slices.Delete(b.snaps, i, i+1)
}

// point draws a version of a bucket's past, and says what it showed.
func (m *machine) point(t *rapid.T, b *mBucket) (agentrun.Version, *mState) {
	if len(b.snaps) > 0 && (!m.kept || rapid.Bool().Draw(t, "at a snapshot")) {
		sn := rapid.SampledFrom(b.snaps).Draw(t, "snapshot")
		return sn.at, sn.st
	}
	p := rapid.SampledFrom(b.past).Draw(t, "point")
	// Not beyond the last version given out: a clock that was set back may stand before it for long.
	c := &m.rig.s.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	at := min(p.at+agentrun.Version(rapid.IntRange(0, 3).Draw(t, "later")), max(p.at, agentrun.Version(c.last)))
	return at, b.at(at)
}

func (m *machine) fork(t *rapid.T) {
	if len(m.all) > 30 {
		t.Skip("enough buckets")
	}
	b := m.pick(t)
	f := &mBucket{name: fmt.Sprintf("bucket%d", len(m.all)), versioning: b.versioning, parent: b, merges: map[*mBucket]mBase{}}
	st := b.now()
	var at agentrun.Version
	if rapid.Bool().Draw(t, "in the past") {
		at, st = m.point(t, b)
	}
	i, err := m.rig.s.Fork(context.Background(), b.name, f.name, ForkOptions{At: at})
	if at != 0 && !m.kept && errs.Is(err, errs.NotFound) {
		return
	}
	m.must(t, err)
	f.id = i.ID
	f.origin = mBase{st, i.Parent.Snapshot}
	f.past = []mPoint{{i.Version, st}}
	m.all = append(m.all, f)
	m.checkState(t, f, 0, st)
}

func (m *machine) deleteBucket(t *rapid.T) {
	list := m.living(t)
	if len(list) < 3 {
		t.Skip("too few buckets")
	}
	b := rapid.SampledFrom(list).Draw(t, "bucket")
	st := b.now()
	err := m.rig.s.Delete(context.Background(), b.name, DeleteOptions{})
	if len(st.cur)+len(st.vers) > 0 {
		m.wantKind(t, err, errs.NotEmpty)
		err = m.rig.s.Delete(context.Background(), b.name, DeleteOptions{Force: true})
	}
	m.must(t, err)
	b.gone = true
	if _, err := m.rig.s.Bucket(context.Background(), b.name); !errs.Is(err, errs.NotFound) {
		t.Fatalf("a deleted bucket is found: %v", err)
	}
}

func (m *machine) fold(t *rapid.T) {
	b := m.pick(t)
	r, err := m.rig.s.named(context.Background(), b.name)
	m.must(t, err)
	defer m.rig.s.release(r)
	m.must(t, m.rig.s.foldRef(context.Background(), r))
	m.checkState(t, b, 0, b.now())
}

// rebuild folds a bucket and builds its tree anew, all at once: content alone decides the root's hash.
func (m *machine) rebuild(t *rapid.T) {
	b := m.pick(t)
	ctx := context.Background()
	s := m.rig.s
	r, err := s.named(ctx, b.name)
	m.must(t, err)
	defer s.release(r)
	for r.pub.Load().idx.Len()+r.pub.Load().cut.Len() > 0 {
		m.must(t, s.foldRef(ctx, r))
	}
	st := r.snapshot()
	defer st.base.release()
	c := st.scan("", "")
	edits := func(yield func(tree.Edit, error) bool) {
		for c.next(ctx) {
			if !yield(tree.Edit{Key: []byte(c.key), Value: c.rec.val}, nil) {
				return
			}
		}
	}
	root, err := s.tree.Apply(ctx, tree.Root{}, edits, new(countingSink))
	m.must(t, err)
	m.must(t, c.err)
	if have := st.base.root; root.Hash != have.Hash || root.Count != have.Count || root.Bytes != have.Bytes {
		t.Fatalf("folded %+v, rebuilt %+v", have, root)
	}
}

type countingSink struct{ n tree.ID }

func (c *countingSink) Put([]byte) (tree.ID, error) { c.n++; return c.n, nil }

func (m *machine) reopen(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "clock") == 0 {
		m.clock.n.Add(-50_000_000) // a clock that was set back
	}
	m.must(t, m.rig.s.Close())
	m.rig.open()
}

func (m *machine) collect(t *rapid.T) {
	_, err := m.rig.s.GC(context.Background())
	m.must(t, err)
	m.rig.s.evict()
}
