package access

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

// The audit log lies at entryPrefix ‖ sequence, 8 bytes, big-endian: a byte of format, then the entry's canonical form, whose SHA-256 is the
// entry's hash. Each entry holds the hash of the one before. At headKey lies, sealed, how far the log goes: it is written in one commit with the
// newest entries, so that no crash tears them apart, and who can write the store but hasn't the master key can't shorten the log.
const (
	headKey     = "a/l" // one scan reads it and all entries
	entryPrefix = "a/l/"
	entryFormat = 1

	lookDelay = time.Second // until looks are written at the latest
	maxQueue  = 4096        // entries that wait to be written; more make callers wait
)

// firstPrevious stands in the first entry in place of a hash.
const firstPrevious = "0000000000000000000000000000000000000000000000000000000000000000"

// AuditOptions configure the audit log.
type AuditOptions struct {
	// Retain is how long entries are kept; 0 is for ever. Older ones are cut off once a day, which is an entry itself.
	Retain time.Duration
	Log    *slog.Logger // hears of failures to write; nil: nobody does
}

// head says how far the log goes.
type head struct {
	First  uint64 `json:"first"`  // sequence of the oldest entry that is kept
	Before string `json:"before"` // hash of the one before it, which was cut off
	Seq    uint64 `json:"seq"`    // of the newest; 0: there is none
	Hash   string `json:"hash"`
	// Broken is the first entry that was found not to fit when it was cut off, or when the head itself was lost; 0: none.
	Broken uint64 `json:"broken,omitempty"`
}

// trail is the audit log and its one appender.
//
// Entries that arrive while some are being written form the next group, which is one commit. A group is written at once when somebody waits
// for it, and within lookDelay otherwise.
type trail struct {
	kv   kv.Store
	seal *Sealer
	now  func() time.Time
	o    AuditOptions

	mu      sync.Mutex
	open    *group // takes entries
	current *group // is being written; nil: none
	closing bool

	wake chan struct{} // the group is urgent, or its first entry came, or it all ends
	done chan struct{} // closed when the appender is gone

	writing sync.Mutex // guards what follows, and the log's end in the store
	known   bool       // head and sealed are what is in the store
	head    head
	sealed  []byte // head as it is stored; nil: not yet
}

// group is entries that are written by one commit.
type group struct {
	items   []item
	urgent  bool          // somebody waits
	reclaim bool          // an entry is of a verb that gives back space
	done    chan struct{} // closed when it is written, or couldn't be
	err     error
}

type item struct {
	entry api.AuditEntry
	lazy  bool // nobody waits: it is tried again after a failure
}

func newGroup() *group { return &group{done: make(chan struct{})} }

// openTrail finds the end of the log and starts its appender.
func openTrail(ctx context.Context, k *Keys, o AuditOptions) (*trail, error) {
	l := &trail{kv: k.kv, seal: k.own, now: k.now, o: o, open: newGroup(), wake: make(chan struct{}, 1), done: make(chan struct{})}
	if err := l.load(ctx); err != nil {
		return nil, err
	}
	if l.head.Broken != 0 && o.Log != nil {
		o.Log.Error("the audit log was changed behind the server's back", "entry", l.head.Broken)
	}
	go l.run()
	return l, nil
}

// close writes what waits and ends the appender.
func (l *trail) close(ctx context.Context, last api.AuditEntry) error {
	l.mu.Lock()
	g := l.open
	if !l.closing {
		g.items, g.urgent, l.closing = append(g.items, item{entry: last}), true, true
	}
	l.mu.Unlock()
	l.signal()
	select {
	case <-l.done:
	case <-ctx.Done():
		return errs.New(errs.Canceled, "close the audit log", "", ctx.Err())
	}
	return g.err
}

func (l *trail) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// add gives the log an entry. An urgent one is durable when it returns nil. One that isn't is kept in memory for up to lookDelay; while the queue
// is full the caller waits.
func (l *trail) add(ctx context.Context, e api.AuditEntry, urgent, reclaim bool) error {
	wait, err := l.put(ctx, e, urgent, reclaim)
	if err != nil {
		return err
	}
	return wait(ctx)
}

func noWait(context.Context) error { return nil }

// put is add but for the wait until an urgent entry is durable.
func (l *trail) put(ctx context.Context, e api.AuditEntry, urgent, reclaim bool) (wait func(context.Context) error, err error) {
	e.Time = l.now().UTC()
	for {
		l.mu.Lock()
		if l.closing {
			l.mu.Unlock()
			return nil, errs.Msg(errs.Unavailable, "audit log", "", "closed")
		}
		g := l.open
		room := len(g.items) < maxQueue
		if room {
			g.items = append(g.items, item{entry: e, lazy: !urgent})
			g.reclaim = g.reclaim || reclaim
		}
		first := len(g.items) == 1
		g.urgent = g.urgent || urgent || !room
		l.mu.Unlock()
		if first || urgent || !room {
			l.signal()
		}
		switch {
		case room && urgent:
			return g.wait, nil
		case room:
			return noWait, nil
		}
		if err := g.wait(ctx); err != nil {
			return nil, err
		}
	}
}

// flush waits until what was added before is in the store.
func (l *trail) flush(ctx context.Context) error {
	l.mu.Lock()
	g := l.open
	if len(g.items) > 0 && !l.closing {
		g.urgent = true
	} else {
		g = l.current
	}
	l.mu.Unlock()
	if g == nil {
		return nil
	}
	l.signal()
	return g.wait(ctx)
}

func (g *group) wait(ctx context.Context) error {
	select {
	case <-g.done:
		return g.err
	case <-ctx.Done():
		return errs.New(errs.Canceled, "audit log", "", ctx.Err())
	}
}

// run is the appender.
func (l *trail) run() {
	defer close(l.done)
	timer, day := time.NewTimer(lookDelay), time.NewTicker(24*time.Hour)
	defer timer.Stop()
	defer day.Stop()
	timer.Stop()
	for armed := false; ; {
		late := false
		select {
		case <-l.wake:
		case <-timer.C:
			late, armed = true, false
		case <-day.C:
			l.retire()
			continue
		}
		l.mu.Lock()
		g, closing := l.open, l.closing
		take := g.urgent || late || closing
		if take {
			l.open, l.current = newGroup(), g
		}
		l.mu.Unlock()
		if take {
			l.write(g)
			l.mu.Lock()
			take, l.current = len(l.open.items) == 0, nil
			l.mu.Unlock()
			if closing {
				return
			}
		}
		if !take && !armed {
			timer.Reset(lookDelay)
			armed = true
		}
	}
}

// write writes a group and tells those who wait for it. After a failure the entries that nobody waits for go to the front of the next group.
func (l *trail) write(g *group) {
	if len(g.items) > 0 {
		l.writing.Lock()
		g.err = l.commit(g)
		l.writing.Unlock()
	}
	if g.err != nil {
		if l.o.Log != nil {
			l.o.Log.Error("the audit log can't be written", "error", g.err, "entries", len(g.items))
		}
		var keep []item
		for _, i := range g.items {
			if i.lazy {
				keep = append(keep, i)
			}
		}
		l.mu.Lock()
		l.open.items = append(keep, l.open.items...)
		l.mu.Unlock()
	}
	close(g.done)
}

// commit appends a group to the log. l.writing is held.
func (l *trail) commit(g *group) error {
	ctx := context.Background() // whoever waits may leave; the entries are written all the same
	for try := 0; ; try++ {
		if !l.known {
			if err := l.load(ctx); err != nil {
				return err
			}
		}
		b := &kv.Batch{Reclaim: g.reclaim}
		h := l.head
		for i := range g.items {
			h.append(b, &g.items[i].entry)
		}
		err := l.replace(ctx, b, h)
		// A conflict is with another appender, which mustn't be; the entries then follow its own.
		if err == nil || !errs.Is(err, errs.Conflict) || try == 3 {
			return err
		}
	}
}

// append gives an entry its place at the end of the chain and adds it to a batch.
func (h *head) append(b *kv.Batch, e *api.AuditEntry) {
	h.Seq++
	e.Seq, e.Previous = h.Seq, h.Hash
	value := appendCanonical([]byte{entryFormat}, e)
	h.Hash = hashOf(value[1:])
	e.Hash = h.Hash
	b.Put(entryKey(e.Seq), value)
}

// replace commits a batch together with a new head. l.writing is held.
func (l *trail) replace(ctx context.Context, b *kv.Batch, h head) error {
	plain, err := json.Marshal(h)
	if err != nil {
		return errs.New(errs.Other, "audit log", "", err)
	}
	sealed, err := l.seal.Seal(headKey, plain)
	if err != nil {
		return err
	}
	b.Checks = append(b.Checks, kv.Check{Key: []byte(headKey), Value: l.sealed})
	b.Put([]byte(headKey), sealed)
	if err = l.kv.Commit(ctx, b); err == nil {
		l.head, l.sealed = h, sealed
		return nil
	}
	// It may have been committed all the same: what is in the store counts.
	l.known = false
	if l.load(ctx) == nil && l.head == h {
		return nil
	}
	return errs.New(errs.KindOf(err), "audit log", "", err)
}

// load reads the head. A lost head doesn't stop the log, but it is told from then on. l.writing is held, or nobody else knows l.
func (l *trail) load(ctx context.Context) error {
	value, err := l.kv.Get(ctx, []byte(headKey))
	switch {
	case errs.Is(err, errs.NotFound):
		h, err := l.recover(ctx)
		if err != nil {
			return err
		}
		l.head, l.sealed = h, nil
	case err != nil:
		return errs.New(errs.KindOf(err), "audit log", "", err)
	default:
		if l.head, err = l.openHead(value); err != nil {
			return err
		}
		if err = l.checkEnd(ctx, &l.head); err != nil {
			return err
		}
		l.sealed = value
	}
	l.known = true
	return nil
}

// checkEnd sees that the newest entry is the one that the head says, or else has the head keep that it isn't: what is appended might hide it.
func (l *trail) checkEnd(ctx context.Context, h *head) error {
	newest := h.First - 1
	r := kv.Range{Start: []byte(entryPrefix), End: kv.PrefixEnd([]byte(entryPrefix)), Reverse: true}
	err := l.kv.Scan(ctx, r, func(key, _ []byte) error {
		if len(key) == len(entryPrefix)+8 {
			newest = binary.BigEndian.Uint64(key[len(entryPrefix):])
		}
		return kv.Stop
	})
	if err != nil {
		return errs.New(errs.KindOf(err), "audit log", "", err)
	}
	if newest != h.Seq && h.Broken == 0 {
		h.Broken = min(newest, h.Seq) + 1
	}
	return nil
}

func (l *trail) openHead(sealed []byte) (h head, err error) {
	plain, err := l.seal.Open(headKey, sealed)
	if err == nil {
		err = json.Unmarshal(plain, &h)
	}
	if err != nil {
		return h, errs.New(errs.Corrupt, "audit log", "head", err)
	}
	return h, nil
}

// recover makes a head for a log that has none: that of an empty one if there are no entries.
func (l *trail) recover(ctx context.Context) (head, error) {
	h := head{First: 1, Before: firstPrevious, Hash: firstPrevious}
	for _, reverse := range []bool{false, true} {
		r := kv.Range{Start: []byte(entryPrefix), End: kv.PrefixEnd([]byte(entryPrefix)), Reverse: reverse}
		err := l.kv.Scan(ctx, r, func(key, value []byte) error {
			e, err := decodeEntry(key, value)
			if err != nil {
				return err
			}
			if !reverse {
				h.First, h.Before = e.Seq, e.Previous
			} else {
				h.Seq, h.Hash, h.Broken = e.Seq, e.Hash, e.Seq+1
			}
			return kv.Stop
		})
		if err != nil {
			return h, err
		}
	}
	return h, nil
}

func entryKey(seq uint64) []byte { return binary.BigEndian.AppendUint64([]byte(entryPrefix), seq) }

// decodeEntry reads an entry as it is stored; its hash is that of what is there. It is errs.Corrupt if the record isn't one that append makes.
func decodeEntry(key, value []byte) (*api.AuditEntry, error) {
	e := &api.AuditEntry{}
	bad := errs.Msg(errs.Corrupt, "audit log", "", "malformed entry")
	if len(key) != len(entryPrefix)+8 || len(value) == 0 || value[0] != entryFormat || json.Unmarshal(value[1:], e) != nil {
		return nil, bad
	}
	if e.Seq != binary.BigEndian.Uint64(key[len(entryPrefix):]) || e.Hash != "" || string(appendCanonical(nil, e)) != string(value[1:]) {
		return nil, bad
	}
	e.Hash = hashOf(value[1:])
	return e, nil
}
