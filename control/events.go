package control

import (
	"context"
	"encoding/binary"
	"sync"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

// eventsKept is how long events are kept.
const eventsKept = 8 * 24 * time.Hour

// news numbers events and tells when they may be read: an event is shown once all with lower numbers are durable or failed, so
// whoever has read to a position has missed nothing before it.
type news struct {
	mu      sync.Mutex
	next    uint64            // number of the next event
	open    map[uint64]uint64 // first numbers of commits under way, and how many
	shown   uint64            // all up to this one may be read
	changed chan struct{}     // closed when shown grows
	counts  map[string]uint64 // by kind
}

func newNews(last uint64) *news {
	return &news{next: last + 1, shown: last, open: map[uint64]uint64{}, changed: make(chan struct{}), counts: map[string]uint64{}}
}

func (n *news) take(count int) (first uint64) {
	if count == 0 {
		return 0
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	first = n.next
	n.next += uint64(count)
	n.open[first] = uint64(count)
	return first
}

func (n *news) settle(first uint64, events []api.Event, durable bool) {
	if len(events) == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.open, first)
	for i := range events {
		if durable {
			n.counts[events[i].Kind]++
		}
	}
	shown := n.next - 1
	for f := range n.open {
		shown = min(shown, f-1)
	}
	if shown > n.shown {
		n.shown = shown
		close(n.changed)
		n.changed = make(chan struct{})
	}
}

// upTo returns the position that may be read to, and what is closed when there is more.
func (n *news) upTo() (uint64, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.shown, n.changed
}

// lastEvent finds the highest number that was given.
func (c *Control) lastEvent(ctx context.Context) (last uint64, err error) {
	r := under(kindEvent)
	r.Reverse = true
	err = c.o.KV.Scan(ctx, r, func(k, _ []byte) error {
		last = seqOf(k)
		return kv.Stop
	})
	return last, err
}

func seqOf(k []byte) uint64 { return binary.BigEndian.Uint64(k[len(k)-8:]) }

// of makes an event of a sandbox.
func (r *record) event(kind, text string) api.Event {
	return api.Event{Kind: kind, Sandbox: r.ID, Template: r.Template, Pool: r.Pool, Node: r.Node, Owner: r.Owner, Text: text}
}

// scanLimit bounds what one page of events looks at.
const scanLimit = 100_000

// Events returns a page of those that come after a position. Next is where the following page begins, even where none was found.
func (c *Control) Events(ctx context.Context, who *access.Caller, after uint64, f EventFilter) (*api.Events, error) {
	if err := c.allow(ctx, who, access.EventGet, access.Thing{Kind: "event", Visibility: api.All}); err != nil {
		return nil, err
	}
	if f.Sandbox != "" { // a name means whoever has it now
		if b, _, err := c.lookup(ctx, "list events", f.Sandbox); err == nil && b != nil {
			f.Sandbox = b.id
		}
	}
	if f.Limit <= 0 {
		f.Limit = api.DefaultPage
	}
	f.Limit = min(f.Limit, api.MaxPage)
	upTo, _ := c.news.upTo()
	out := &api.Events{Events: []api.Event{}, Next: after}
	if after >= upTo {
		return out, nil
	}
	r := kv.Range{Start: key(kindEvent, number(after+1)), End: key(kindEvent, number(upTo+1))}
	looked := 0
	err := c.o.KV.Scan(ctx, r, func(k, raw []byte) error {
		if len(out.Events) == f.Limit || looked == scanLimit {
			return kv.Stop
		}
		looked++
		out.Next = seqOf(k)
		var e api.Event
		if err := decode(k, raw, &e); err != nil {
			return err
		}
		if f.Sandbox != "" && e.Sandbox != f.Sandbox || f.Kind != "" && e.Kind != f.Kind || !c.seesEvent(who, &e) {
			return nil
		}
		out.Events = append(out.Events, e)
		return nil
	})
	if err != nil {
		return nil, errs.New(errs.KindOf(err), "read events", "", err)
	}
	if len(out.Events) < f.Limit && looked < scanLimit {
		out.Next = upTo
	}
	return out, nil
}

// seesEvent: a sandbox's events are for those who see the sandbox; others are everybody's, except those of nodes.
func (c *Control) seesEvent(who *access.Caller, e *api.Event) bool {
	if e.Kind == api.EventNode {
		return c.o.Guard.Sees(who, access.Thing{Kind: "node", ID: e.Node})
	}
	t := access.Thing{Kind: "sandbox", ID: e.Sandbox, Owner: e.Owner}
	if e.Sandbox == "" {
		t = access.Thing{Kind: "template", ID: e.Template, Owner: e.Owner, Visibility: api.All}
	} else if b := c.box(e.Sandbox); b != nil {
		t = b.rec.Load().thing()
	}
	return c.o.Guard.Sees(who, t)
}

// Follow calls event for all events after a position and then for each as it happens, until ctx is done or event fails.
func (c *Control) Follow(ctx context.Context, who *access.Caller, after uint64, f EventFilter, event func(api.Event) error) error {
	f.Limit = api.MaxPage
	for {
		_, changed := c.news.upTo()
		page, err := c.Events(ctx, who, after, f)
		if err != nil {
			return err
		}
		for _, e := range page.Events {
			if err := event(e); err != nil {
				return err
			}
		}
		if page.Next > after {
			after = page.Next
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return errs.New(errs.Canceled, "follow events", "", ctx.Err())
		case <-c.closing:
			return errs.Msg(errs.Unavailable, "follow events", "", "the service is ending")
		}
	}
}
