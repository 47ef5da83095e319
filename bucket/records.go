package bucket

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"agentrun.dev"
	"agentrun.dev/bucket/tree"
	"agentrun.dev/errs"
)

// refRecord is a bucket as stored. In memory it is never changed, only replaced.
type refRecord struct {
	id         agentrun.RefID
	name       string
	created    time.Time
	gone       bool // deleted; the record stays for its forks' lineage
	space      uint64
	view       uint64 // the view that the delta is written over
	delta      uint64
	since      uint64 // the first version that (view, delta) can show
	versioning Versioning
	snapshots  bool
	attrs      map[string]string
	origin     *originRecord
	merges     map[agentrun.RefID]mergeRecord // by the ref that was merged into this one
}

// originRecord is what a fork was made from. Its view is held for as long as the fork or its forks live, because it is
// the base of their merges.
type originRecord struct {
	ref  agentrun.RefID
	name string
	view uint64
	at   uint64
	time time.Time
}

// mergeRecord is the state of another ref that was merged into this one: the base for their next merge.
type mergeRecord struct{ view, at uint64 }

func (r *refRecord) clone() *refRecord {
	c := *r
	c.attrs, c.merges = maps.Clone(r.attrs), maps.Clone(r.merges)
	return &c
}

func (r *refRecord) encode() []byte {
	var e enc
	e.raw([]byte{formatVersion})
	e.raw(r.id[:])
	e.str(r.name)
	e.time(r.created)
	e.bool(r.gone)
	e.u(r.space)
	e.u(r.view)
	e.u(r.delta)
	e.u(r.since)
	e.u(uint64(r.versioning))
	e.bool(r.snapshots)
	e.strings(r.attrs)
	e.bool(r.origin != nil)
	if o := r.origin; o != nil {
		e.raw(o.ref[:])
		e.str(o.name)
		e.u(o.view)
		e.u(o.at)
		e.time(o.time)
	}
	e.u(uint64(len(r.merges)))
	for _, id := range slices.SortedFunc(maps.Keys(r.merges), compareRefs) {
		e.raw(id[:])
		e.u(r.merges[id].view)
		e.u(r.merges[id].at)
	}
	return e.b
}

func compareRefs(a, b agentrun.RefID) int { return slices.Compare(a[:], b[:]) }

func decodeRef(b []byte) (*refRecord, error) {
	d := dec{b: b}
	if err := d.version("bucket"); err != nil {
		return nil, err
	}
	r := &refRecord{id: d.ref(), name: d.str(), created: d.time(), gone: d.bool(), space: d.u(), view: d.u(), delta: d.u(), since: d.u(),
		versioning: Versioning(d.u()), snapshots: d.bool(), attrs: d.strings()}
	if d.bool() {
		r.origin = &originRecord{ref: d.ref(), name: d.str(), view: d.u(), at: d.u(), time: d.time()}
	}
	if n := d.u(); n > 0 && n <= uint64(len(d.b)) {
		r.merges = make(map[agentrun.RefID]mergeRecord, n)
		for range n {
			id := d.ref()
			r.merges[id] = mergeRecord{d.u(), d.u()}
		}
	}
	return r, d.end("bucket")
}

// viewRecord is a view as stored: a tree, or a parent view and a delta up to a version. A fold replaces the second form
// by the first.
type viewRecord struct {
	root          tree.Root
	parent, delta uint64 // delta 0: the first form
	bound         uint64
	depth         uint32 // deltas down to a tree
	objects       int64
	bytes         int64
}

func (v *viewRecord) encode() ([]byte, error) {
	var e enc
	e.raw([]byte{formatVersion})
	e.i(v.objects)
	e.i(v.bytes)
	e.u(v.delta)
	if v.delta == 0 {
		root, err := v.root.MarshalBinary()
		if err != nil {
			return nil, err
		}
		e.bytes(root)
		return e.b, nil
	}
	e.u(v.parent)
	e.u(v.bound)
	e.u(uint64(v.depth))
	return e.b, nil
}

func decodeView(b []byte) (*viewRecord, error) {
	d := dec{b: b}
	if err := d.version("view"); err != nil {
		return nil, err
	}
	v := &viewRecord{objects: d.i(), bytes: d.i(), delta: d.u()}
	if v.delta == 0 {
		if err := v.root.UnmarshalBinary(d.bytes()); err != nil {
			return nil, err
		}
	} else {
		v.parent, v.bound, v.depth = d.u(), d.u(), uint32(d.u())
	}
	return v, d.end("view")
}

// snapRecord is a snapshot as stored, under its bucket and version.
type snapRecord struct {
	name             string
	created, expires time.Time
	view             uint64
	objects, bytes   int64
}

func (s *snapRecord) encode() []byte {
	e := enc{b: []byte{formatVersion}}
	e.str(s.name)
	e.time(s.created)
	e.time(s.expires)
	e.u(s.view)
	e.i(s.objects)
	e.i(s.bytes)
	return e.b
}

func decodeSnap(b []byte) (*snapRecord, error) {
	d := dec{b: b}
	if err := d.version("snapshot"); err != nil {
		return nil, err
	}
	s := &snapRecord{name: d.str(), created: d.time(), expires: d.time(), view: d.u(), objects: d.i(), bytes: d.i()}
	return s, d.end("snapshot")
}

// histRecord tells how a bucket was stored from one version (in its key) to another: view, and delta over it. A zero
// delta means that nothing was written.
type histRecord struct{ end, view, delta uint64 }

func (h *histRecord) encode() []byte {
	e := enc{b: []byte{formatVersion}}
	e.u(h.end)
	e.u(h.view)
	e.u(h.delta)
	return e.b
}

func decodeHist(b []byte) (*histRecord, error) {
	d := dec{b: b}
	if err := d.version("history"); err != nil {
		return nil, err
	}
	h := &histRecord{d.u(), d.u(), d.u()}
	return h, d.end("history")
}

// Operations of a log record.
const (
	logPut    = 1
	logDelete = 2
	logRange  = 3
)

// logRecord is one change in a delta. objects and bytes are what it adds to the bucket's totals.
type logRecord struct {
	op             byte
	key, end       string
	val            []byte
	payload        []byte
	objects, bytes int64
}

func (l *logRecord) encode() []byte {
	e := enc{b: make([]byte, 0, 24+len(l.key)+len(l.end)+len(l.val)+len(l.payload))}
	e.raw([]byte{formatVersion, l.op})
	e.i(l.objects)
	e.i(l.bytes)
	e.str(l.key)
	switch l.op {
	case logRange:
		e.str(l.end)
	case logPut:
		e.bytes(l.val)
		e.raw(l.payload)
	}
	return e.b
}

// decodeLog reads a log record. Its slices point into b.
func decodeLog(b []byte) (l logRecord, err error) {
	d := dec{b: b}
	if err := d.version("log record"); err != nil {
		return l, err
	}
	l.op, l.objects, l.bytes, l.key = d.byte(), d.i(), d.i(), d.str()
	switch l.op {
	case logRange:
		l.end = d.str()
	case logPut:
		l.val = d.bytes()
		l.payload = d.take(uint64(len(d.b)))
	case logDelete:
	default:
		return l, errs.Msg(errs.Unsupported, "decode", "log record", fmt.Sprintf("unknown operation %d", l.op))
	}
	if len(l.key) == 0 {
		d.bad = true
	}
	return l, d.end("log record")
}

// loggedBytes returns the length of the payload that an object's record leaves to its log record; 0 if it leaves none.
func loggedBytes(val []byte) int64 {
	if len(val) == 0 {
		return 0
	}
	d := dec{b: val[1:]}
	size, _, flags := d.u(), d.u(), d.u()
	if d.bad || flags&flagLogged == 0 {
		return 0
	}
	return int64(size)
}
