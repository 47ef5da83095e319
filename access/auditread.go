package access

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

const (
	maxAuditPage = 1000   // entries of a page
	maxAuditScan = 50_000 // entries that are read for a page
)

// AuditFilter selects entries of the audit log. Empty fields select all.
type AuditFilter struct {
	Principal string
	Action    string // or the beginning of one, with a '*' behind
	Thing     string // KIND/ID, or the beginning of one, with a '*' behind
	Request   string
	Allowed   *bool
	Limit     int // at most 1000; 0 is 100
}

func (f *AuditFilter) selects(e *api.AuditEntry) bool {
	return (f.Principal == "" || f.Principal == e.Principal) && (f.Request == "" || f.Request == e.Request) &&
		matches(f.Action, e.Action) && matches(f.Thing, e.Thing) && (f.Allowed == nil || *f.Allowed == e.Allowed)
}

func matches(pattern, s string) bool {
	if begin, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(s, begin)
	}
	return pattern == "" || pattern == s
}

// Audit returns entries that come after a sequence number, oldest first, up to the newest at the time; the request's own isn't among them. A page
// may be empty, if it took long to find nothing: More tells whether another follows, which begins at Next.
func (g *Guard) Audit(ctx context.Context, who *Caller, after uint64, f AuditFilter) (*api.Audit, error) {
	if f.Limit == 0 {
		f.Limit = 100
	}
	if f.Limit < 0 || f.Limit > maxAuditPage {
		return nil, errs.Msg(errs.Invalid, string(AuditGet), "", "limit: want 1 to 1000")
	}
	t := Thing{Kind: "audit"}
	d, err := g.decide(ctx, who, AuditGet, t)
	if err != nil {
		return nil, err
	}
	last := uint64(0)
	if d.allowed {
		if last, err = g.log.last(ctx); err != nil {
			return nil, err
		}
	}
	if err := g.Check(ctx, who, AuditGet, t); err != nil {
		return nil, err
	}
	page, read := &api.Audit{Entries: []api.AuditEntry{}, Next: after}, 0
	err = g.log.scan(ctx, after, func(e *api.AuditEntry) error {
		if e.Seq > last {
			return kv.Stop
		}
		if f.selects(e) {
			page.Entries = append(page.Entries, *e)
		}
		page.Next = e.Seq
		if read++; read == maxAuditScan || len(page.Entries) == f.Limit {
			return kv.Stop
		}
		return nil
	})
	page.More = page.Next < last
	if err != nil {
		return nil, err
	}
	return page, nil
}

// ExportAudit writes all entries that come after a sequence number as lines of JSON.
func (g *Guard) ExportAudit(ctx context.Context, who *Caller, after uint64, w io.Writer) error {
	if err := g.Check(ctx, who, AuditGet, Thing{Kind: "audit", Data: map[string]string{"export": "true"}}); err != nil {
		return err
	}
	b := bufio.NewWriterSize(w, 64<<10)
	enc := json.NewEncoder(b)
	if err := g.log.scan(ctx, after, func(e *api.AuditEntry) error { return enc.Encode(e) }); err != nil {
		return err
	}
	return b.Flush()
}

// VerifyAudit checks the whole chain: that each entry is as it was written, none is missing between the oldest and the newest, and the newest is
// the last that was written.
func (g *Guard) VerifyAudit(ctx context.Context, who *Caller) (*api.AuditCheck, error) {
	if err := g.Check(ctx, who, AuditGet, Thing{Kind: "audit", Data: map[string]string{"verify": "true"}}); err != nil {
		return nil, err
	}
	if err := g.log.flush(ctx); err != nil {
		return nil, err
	}
	return g.log.verify(ctx)
}

// CutAudit cuts off the entries that are older than a time, and returns how many. That is an entry itself, which holds the hash of the last
// that was cut off, so that a copy of those can be checked ever after. The newest entry is never cut off.
func (g *Guard) CutAudit(ctx context.Context, who *Caller, before time.Time) (uint64, error) {
	if err := g.Check(ctx, who, AuditChange, Thing{Kind: "audit", Data: map[string]string{"before": before.UTC().Format(time.RFC3339)}}); err != nil {
		return 0, err
	}
	if err := g.log.flush(ctx); err != nil {
		return 0, err
	}
	return g.log.cut(ctx, before, newEntry(who, "audit.cut", "audit"))
}

// last is the sequence number of the newest entry, those included that wait to be written.
func (l *trail) last(ctx context.Context) (uint64, error) {
	if err := l.flush(ctx); err != nil {
		return 0, err
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	if !l.known {
		if err := l.load(ctx); err != nil {
			return 0, err
		}
	}
	return l.head.Seq, nil
}

// scan calls f for each entry after a sequence number, those included that wait to be written.
func (l *trail) scan(ctx context.Context, after uint64, f func(*api.AuditEntry) error) error {
	if err := l.flush(ctx); err != nil {
		return err
	}
	if after+1 == 0 {
		return nil
	}
	r := kv.Range{Start: entryKey(after + 1), End: kv.PrefixEnd([]byte(entryPrefix))}
	return l.kv.Scan(ctx, r, func(key, value []byte) error {
		e, err := decodeEntry(key, value)
		if err != nil {
			return err
		}
		return f(e)
	})
}

// chain checks entries as they come in order.
type chain struct {
	next     uint64 // sequence that is due
	previous string // hash of the one before
	broken   uint64 // first entry that doesn't fit
	entries  uint64
}

func (c *chain) breakAt(seq uint64) {
	if c.broken == 0 || seq < c.broken {
		c.broken = seq
	}
}

func (c *chain) see(key, value []byte) {
	c.entries++
	e, err := decodeEntry(key, value)
	if err != nil {
		c.breakAt(c.next)
		c.next++
		c.previous = hashOf(value[min(1, len(value)):])
		return
	}
	if e.Seq != c.next || e.Previous != c.previous {
		c.breakAt(min(e.Seq, c.next))
	}
	c.next, c.previous = e.Seq+1, e.Hash
}

func (l *trail) verify(ctx context.Context) (*api.AuditCheck, error) {
	h := head{First: 1, Before: firstPrevious, Hash: firstPrevious}
	c := chain{next: h.First, previous: h.Before}
	r := kv.Range{Start: []byte(headKey), End: kv.PrefixEnd([]byte(entryPrefix))}
	err := l.kv.Scan(ctx, r, func(key, value []byte) (err error) {
		if string(key) == headKey {
			h, err = l.openHead(value)
			if err == nil {
				c.next, c.previous = h.First, h.Before
				return nil
			}
			c.breakAt(1)
			return nil
		}
		if strings.HasPrefix(string(key), entryPrefix) {
			c.see(key, value)
		}
		return nil
	})
	if err != nil {
		return nil, errs.New(errs.KindOf(err), "audit log", "", err)
	}
	if c.next != h.Seq+1 || c.previous != h.Hash {
		c.breakAt(min(c.next, h.Seq+1))
	}
	if h.Broken != 0 {
		c.breakAt(h.Broken)
	}
	return &api.AuditCheck{Entries: c.entries, Last: c.previous, Broken: c.broken}, nil
}

// cut cuts off what is older than a time and appends an entry that says so.
func (l *trail) cut(ctx context.Context, before time.Time, e api.AuditEntry) (uint64, error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	if !l.known {
		if err := l.load(ctx); err != nil {
			return 0, err
		}
	}
	h := l.head
	c := chain{next: h.First, previous: h.Before}
	r := kv.Range{Start: entryKey(h.First), End: entryKey(h.Seq)}
	err := l.kv.Scan(ctx, r, func(key, value []byte) error {
		if d, err := decodeEntry(key, value); err == nil && !d.Time.Before(before) {
			return kv.Stop
		}
		c.see(key, value)
		return nil
	})
	if err != nil || c.entries == 0 {
		return 0, err
	}
	b := &kv.Batch{Reclaim: true}
	b.DeleteRange(entryKey(h.First), entryKey(c.next))
	h.First, h.Before = c.next, c.previous
	if c.broken != 0 && h.Broken == 0 {
		h.Broken = c.broken // what doesn't fit can't be told any more once it is gone
	}
	e.Time, e.Allowed, e.Rule = l.now().UTC(), true, "retention"
	e.Data = map[string]string{"entries": strconv.FormatUint(c.entries, 10), "through": strconv.FormatUint(c.next-1, 10), "hash": c.previous}
	h.append(b, &e)
	if err := l.replace(ctx, b, h); err != nil {
		return 0, err
	}
	return c.entries, nil
}

// retire cuts off what is past its time.
func (l *trail) retire() {
	if l.o.Retain <= 0 {
		return
	}
	_, err := l.cut(context.Background(), l.now().Add(-l.o.Retain), newEntry(System("retention"), "audit.cut", "audit"))
	if err != nil && l.o.Log != nil {
		l.o.Log.Error("the audit log can't be cut", "error", err)
	}
}
