package control

import (
	"context"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// retryAfter is how long an end or a hibernation that failed is put off.
const retryAfter = 30 * time.Second

// retryMost is how long at most a hibernation is put off that failed again and again, each time for twice as long.
const retryMost = time.Hour

// EndSandbox ends a sandbox, whoever uses it. One that has ended already is fine.
func (c *Control) EndSandbox(ctx context.Context, who *access.Caller, id string) (*api.Sandbox, error) {
	const op = "end sandbox"
	b, ended, err := c.find(ctx, who, access.SandboxEnd, op, id)
	if err != nil {
		return nil, err
	}
	if b == nil {
		return c.viewOf(ended), nil
	}
	if err := b.take(ctx); err != nil {
		return nil, err
	}
	defer b.give()
	if err := c.end(ctx, b, ""); err != nil {
		return nil, err
	}
	return c.view(b), nil
}

// ReleaseSandbox gives a sandbox back. It is ended, and its pool starts another one from the template's image: nothing of the former
// claimant is there, since nothing of the former sandbox is.
func (c *Control) ReleaseSandbox(ctx context.Context, who *access.Caller, id string) error {
	const op = "release sandbox"
	b, _, err := c.find(ctx, who, access.SandboxEnd, op, id)
	if err != nil || b == nil {
		return err
	}
	if err := b.take(ctx); err != nil {
		return err
	}
	defer b.give()
	if err := c.end(ctx, b, "it was given back"); err != nil {
		return err
	}
	c.kick()
	return nil
}

// end records that a sandbox is to end, ends it and records that. The caller has its turn.
func (c *Control) end(ctx context.Context, b *box, reason string) error {
	r := b.rec.Load()
	if !r.live() {
		return nil
	}
	if r.State != api.StateEnding {
		n := r.clone()
		n.State, n.Reason, n.Expires = api.StateEnding, reason, time.Time{}
		if err := c.record(ctx, b, n); err != nil {
			return err
		}
	}
	b.mu.Lock()
	b.shut = true
	b.mu.Unlock()
	return c.finish(ctx, b)
}

// finish does what the record of an ending sandbox says.
func (c *Control) finish(ctx context.Context, b *box) error {
	r := b.rec.Load()
	actx, cancel := c.act(ctx)
	defer cancel()
	if p, err := c.hostOf("end sandbox", r); err == nil {
		c.measure(actx, p, b)
		err = p.host.End(actx, b.id)
		if err != nil && !errs.Is(err, errs.NotFound) {
			b.putOff(c.clock.since() + retryAfter)
			c.o.Log.Warn("a sandbox doesn't end, will be tried again", "sandbox", b.id, "err", err)
			if errs.Is(err, errs.Unavailable) {
				return nil
			}
			return err
		}
	}
	// A node that isn't there has what no record knows, when it returns: that is ended then.
	return c.ended(actx, b)
}

// ended records that a sandbox has ended, and frees what it had.
func (c *Control) ended(ctx context.Context, b *box) error {
	r := b.rec.Load()
	if !r.claimed() {
		return c.record(ctx, b, nil)
	}
	c.revoke(ctx, r)
	n := r.clone()
	n.State, n.Ended, n.Sealed, n.Key = api.StateEnded, c.clock.now(), nil, ""
	kind := api.EventEnded
	if n.Doomed == api.StateFailed {
		n.State, kind = api.StateFailed, api.EventFailed
	}
	t := new(txn)
	c.leaveAll(t, n)
	n.Conversations = nil
	c.set(t, b, n)
	c.charge(t, b, n, true)
	t.event(n.event(kind, n.Reason))
	if err := c.commit(ctx, t); err != nil {
		return err
	}
	if n.Pool != "" {
		c.kick()
	}
	return nil
}

// record makes r (nil: nothing) the record of a sandbox.
func (c *Control) record(ctx context.Context, b *box, r *record, events ...string) error {
	t := new(txn)
	c.set(t, b, r)
	for _, kind := range events {
		t.event(r.event(kind, r.Reason))
	}
	return c.commit(ctx, t)
}

// discard ends a sandbox that nobody has claimed, without a trace. The caller has its turn.
func (c *Control) discard(ctx context.Context, b *box) {
	if b.rec.Load().claimed() {
		c.fail(ctx, b, "its claim wasn't recorded")
		return
	}
	if err := c.end(ctx, b, ""); err != nil {
		c.o.Log.Warn("discard a warm sandbox", "sandbox", b.id, "err", err)
	}
}

// fail ends a sandbox by a failure. The caller has its turn.
func (c *Control) fail(ctx context.Context, b *box, reason string) {
	r := b.rec.Load()
	if !r.live() {
		return
	}
	n := r.clone()
	n.State, n.Reason, n.Doomed, n.Expires = api.StateEnding, cut(reason, 1024), api.StateFailed, time.Time{}
	err := c.record(ctx, b, n)
	if err == nil {
		b.mu.Lock()
		b.shut = true
		b.mu.Unlock()
		err = c.finish(ctx, b)
	}
	if err != nil {
		c.o.Log.Warn("end a sandbox that failed", "sandbox", b.id, "err", err)
	}
}

// putOff keeps reconciliation from trying again for a while.
func (b *box) putOff(until time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.retry = until
}

// stays notes that a hibernation failed, puts the next one off, and tells whether the reason is another than before.
func (b *box) stays(now time.Duration, why string) (news bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.awake++
	news = b.awake == 1 || b.why != why
	b.why, b.nap = why, now+min(retryAfter<<min(b.awake-1, 10), retryMost)
	return news
}

// slept notes that one worked.
func (b *box) slept() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.awake, b.why, b.nap = 0, "", 0
}

// find finds a sandbox by its id, or its name, or the id of one that it was promoted over, and asks whether the caller may do something
// with it. One that has ended has no box; its record comes in its place.
func (c *Control) find(ctx context.Context, who *access.Caller, v access.Verb, op, id string) (*box, *record, error) {
	b, ended, err := c.lookup(ctx, op, id)
	thing := access.Thing{Kind: "sandbox", ID: short(id)}
	if err == nil {
		r := ended
		if b != nil {
			r = b.rec.Load()
		}
		thing = r.thing()
		thing.Called = short(id)
	} else if !errs.Is(err, errs.NotFound) {
		return nil, nil, err
	}
	if denied := c.allow(ctx, who, v, thing); denied != nil {
		return nil, nil, denied
	}
	if err != nil {
		return nil, nil, err
	}
	return b, ended, nil
}

func noSandbox(op, id string) error {
	return errs.Msg(errs.NotFound, op, short(id), "there is no sandbox of this id or name")
}

// lookup is find without the question.
func (c *Control) lookup(ctx context.Context, op, id string) (*box, *record, error) {
	if id == "" || len(id) > 100 {
		return nil, nil, noSandbox(op, id)
	}
	id = c.resolved(id)
	c.index.mu.RLock()
	b := c.index.boxes[id]
	if b == nil {
		b = c.index.boxes[c.index.names[id]]
	}
	c.index.mu.RUnlock()
	if b != nil {
		return b, nil, nil
	}
	raw, err := c.o.KV.Get(ctx, key(kindEnded, id))
	if errs.Is(err, errs.NotFound) {
		return nil, nil, noSandbox(op, id)
	}
	if err != nil {
		return nil, nil, errs.New(errs.KindOf(err), op, id, err)
	}
	r := new(record)
	return nil, r, decode(key(kindEnded, id), raw, r)
}

// findLive is find for what only a sandbox that hasn't ended can do.
func (c *Control) findLive(ctx context.Context, who *access.Caller, v access.Verb, op, id string) (*box, error) {
	b, ended, err := c.find(ctx, who, v, op, id)
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, over(op, ended)
	}
	return b, nil
}

// over says that a sandbox has ended.
func over(op string, r *record) error {
	text := "it has ended"
	if !r.Ended.IsZero() {
		text = "it ended at " + r.Ended.Format(time.RFC3339)
	}
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	return errs.Msg(errs.Conflict, op, r.ID, text)
}

// stateError says why a sandbox can't be used as it is.
func stateError(op string, r *record) error {
	switch {
	case !r.live(), r.State == api.StateEnding:
		return over(op, r)
	case r.State == api.StateWarm:
		return errs.Msg(errs.Conflict, op, r.ID, "nobody has claimed it yet")
	}
	return errs.Msg(errs.Unavailable, op, r.ID, "it is "+r.State)
}
