package control

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"agentrun.dev/api"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

// Kinds of records. A key is "c/", the kind, "/" and names; docs/format.md lists them.
const (
	kindSandbox      = 's' // by id, until its end
	kindEnded        = 'e' // by id, from then on
	kindExpiry       = 'x' // time, id: when an ended one is forgotten
	kindMember       = 'M' // root, id: ended members of a tree
	kindName         = 'n' // of a sandbox that hasn't ended: its id
	kindAlias        = 'a' // id of a sandbox that another was promoted over: that one's id
	kindTemplate     = 't'
	kindVersion      = 'v' // template, version
	kindLog          = 'l' // template, version, line
	kindPool         = 'p'
	kindReservation  = 'r'
	kindClaim        = 'c'
	kindFork         = 'f'
	kindSnapshot     = 'S'
	kindVolume       = 'V'
	kindAgent        = 'g'
	kindConversation = 'C'
	kindEvent        = 'E' // sequence
	kindNode         = 'N'
	kindMounts       = 'm'
	kindUsage        = 'u' // sandbox
	kindTotal        = 'U' // principal
	// 'k' and 'o' are those of requests that are done once: see once.go.
)

const formatV1 = 1

// key returns the key of a record.
func key(kind byte, parts ...string) []byte {
	n := 3
	for _, p := range parts {
		n += 1 + len(p)
	}
	b := append(make([]byte, 0, n), 'c', '/', kind)
	for _, p := range parts {
		b = append(append(b, '/'), p...)
	}
	return b
}

// under is the range of all keys that begin with key(kind, parts...) and a slash.
func under(kind byte, parts ...string) kv.Range {
	start := append(key(kind, parts...), '/')
	return kv.Range{Start: start, End: kv.PrefixEnd(start)}
}

// number returns n so that it sorts among others in a key.
func number(n uint64) string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	return string(b[:])
}

// lastOf returns what follows the last slash of a key with a textual end.
func lastOf(k []byte) string { return string(k[strings.LastIndexByte(string(k), '/')+1:]) }

func encode(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, errs.New(errs.Other, "encode record", "", err)
	}
	return append([]byte{formatV1}, b...), nil
}

func decode(k, raw []byte, v any) error {
	if len(raw) == 0 || raw[0] != formatV1 {
		return errs.Msg(errs.Corrupt, "read record", kv.Quote(k), "unknown record format")
	}
	if err := json.Unmarshal(raw[1:], v); err != nil {
		return errs.New(errs.Corrupt, "read record", kv.Quote(k), err)
	}
	return nil
}

// txn is one transition: what is checked, what changes, what is told, and what is done in memory once it is durable.
type txn struct {
	b      kv.Batch
	events []api.Event
	then   []func() // after the commit
	reread []func(context.Context)
	totals []charged
	err    error
}

// put adds a record without a check.
func (t *txn) put(k []byte, v any) {
	raw, err := encode(v)
	t.err = errors.Join(t.err, err)
	t.b.Put(k, raw)
}

func (t *txn) check(k, was []byte) { t.b.Checks = append(t.b.Checks, kv.Check{Key: k, Value: was}) }

func (t *txn) event(e api.Event) { t.events = append(t.events, e) }

// errMoved marks a commit that came too late: another transition of the same records was first.
var errMoved = errors.New("changed meanwhile")

// commit makes a transition durable, then visible. It doesn't stop half-way when ctx does: whether a commit happened must be known.
func (c *Control) commit(ctx context.Context, t *txn) error {
	if t.err != nil {
		return t.err
	}
	ctx = context.WithoutCancel(ctx)
	if len(t.totals) > 0 {
		c.usageMu.Lock()
		defer c.usageMu.Unlock()
		if c.addTotals(ctx, t); t.err != nil {
			return t.err
		}
	}
	now := c.clock.now()
	first := c.news.take(len(t.events))
	for i := range t.events {
		e := &t.events[i]
		e.Seq, e.Time = first+uint64(i), now
		t.put(key(kindEvent, number(e.Seq)), e)
	}
	err := t.err
	if err == nil {
		err = c.o.KV.Commit(ctx, &t.b)
	}
	if err == nil {
		for _, f := range t.then {
			f()
		}
	}
	c.news.settle(first, t.events, err == nil)
	if err != nil {
		// It may have been done in spite of the error: what the store says holds.
		for _, f := range t.reread {
			f(ctx)
		}
		if errs.Is(err, errs.Conflict) {
			return errs.New(errs.Conflict, "record", "", errors.Join(errMoved, err))
		}
		return errs.New(errs.KindOf(err), "record", "", err)
	}
	return nil
}

// again repeats f as long as others were faster.
func again(f func() error) error {
	for try := 0; ; try++ {
		if err := f(); err == nil || !errors.Is(err, errMoved) || try == 20 {
			return err
		}
	}
}

// table is all records of one kind, in memory. What it holds is never changed in place.
type table[T any] struct {
	kind byte
	mu   sync.RWMutex
	m    map[string]entry[T]
}

type entry[T any] struct {
	v   *T
	raw []byte
}

func newTable[T any](kind byte) *table[T] { return &table[T]{kind: kind, m: map[string]entry[T]{}} }

// load reads all records. Names of several parts are joined by slashes.
func (t *table[T]) load(ctx context.Context, s kv.Store) error {
	r := under(t.kind)
	return s.Scan(ctx, r, func(k, raw []byte) error {
		v := new(T)
		if err := decode(k, raw, v); err != nil {
			return err
		}
		t.m[string(k[len(r.Start):])] = entry[T]{v, append([]byte(nil), raw...)}
		return nil
	})
}

// get returns a record, or nil.
func (t *table[T]) get(name string) *T {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.m[name].v
}

// all calls f for each record, in no order, until it returns false.
func (t *table[T]) all(f func(name string, v *T) bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for n, e := range t.m {
		if !f(n, e.v) {
			return
		}
	}
}

// set makes v (nil: nothing) the record of a name within a transition, if it is still was then: nil is absent.
func (t *table[T]) set(c *Control, x *txn, name string, was, v *T) {
	t.mu.RLock()
	e := t.m[name]
	t.mu.RUnlock()
	k := key(t.kind, name)
	if e.v != was {
		x.err = errors.Join(x.err, errs.New(errs.Conflict, "record", name, errMoved))
		return
	}
	x.check(k, e.raw)
	var raw []byte
	if v == nil {
		x.b.Delete(k)
	} else {
		var err error
		raw, err = encode(v)
		x.err = errors.Join(x.err, err)
		x.b.Put(k, raw)
	}
	x.then = append(x.then, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.m[name].v != e.v {
			return // read again from the store already
		}
		if v == nil {
			delete(t.m, name)
		} else {
			t.m[name] = entry[T]{v, raw}
		}
	})
	x.reread = append(x.reread, func(ctx context.Context) { t.read(ctx, c.o.KV, name) })
}

// read makes memory what the store says, if it can be asked.
func (t *table[T]) read(ctx context.Context, s kv.Store, name string) {
	k := key(t.kind, name)
	t.mu.Lock()
	defer t.mu.Unlock()
	raw, err := s.Get(ctx, k)
	if errs.Is(err, errs.NotFound) {
		delete(t.m, name)
		return
	}
	v := new(T)
	if err != nil || string(raw) == string(t.m[name].raw) || decode(k, raw, v) != nil {
		return
	}
	t.m[name] = entry[T]{v, raw}
}
