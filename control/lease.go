package control

import (
	"context"
	"fmt"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
)

const (
	leaseTick = 500 * time.Millisecond
	warnAhead = time.Minute      // of the end of a lease
	noteEvery = 10 * time.Second // at most so often is a lease that moved recorded
	maxActs   = 16               // sandboxes that reconciliation works on at once
)

// setTimers sets when a sandbox's lease, age and sleep end, by the monotonic clock. From then on a wall clock that is set changes
// nothing. When records are read (loaded), what ended meanwhile, or seems to, is given a grace.
func (c *Control) setTimers(b *box, r *record, loaded bool) {
	now, since := c.clock.now(), c.clock.since()
	least := time.Duration(0)
	if loaded {
		least = grace
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.until = 0
	from := r.Created
	if r.claimed() {
		from = r.Sandbox.Claimed
	}
	bound := func(at time.Time) {
		if d := since + max(least, at.Sub(now)); b.until == 0 || d < b.until {
			b.until = d
		}
	}
	if r.Lease.MaxAge > 0 && r.claimed() {
		bound(from.Add(seconds(r.Lease.MaxAge)))
	}
	switch r.State {
	case api.StateHibernated:
		bound(r.Slept.Add(seconds(r.Lease.Sleep)))
	case api.StateRunning, api.StateStarting:
		b.deadline = since + max(least, r.Expires.Sub(now))
		b.noted, b.warned = b.deadline, false
	}
}

// touch begins the lease anew: its end is now + Extend, unless it is later already.
func (c *Control) touch(b *box) {
	r := b.rec.Load()
	if r.fixed() {
		return
	}
	d := c.clock.since() + seconds(r.Lease.Extend)
	b.mu.Lock()
	defer b.mu.Unlock()
	if d > b.deadline {
		b.deadline, b.warned = d, false
	}
}

// ExtendSandbox moves the end of a lease to now + Seconds, if that is later, or exactly there. One that sleeps is woken up by it.
func (c *Control) ExtendSandbox(ctx context.Context, who *access.Caller, id string, e api.Extend) (*api.Sandbox, error) {
	const op = "extend sandbox"
	b, err := c.findLive(ctx, who, access.SandboxChange, op, id)
	if err != nil {
		return nil, err
	}
	if e.Seconds < 0 || e.Seconds > maxSeconds {
		return nil, invalid(op, id, "%d seconds: want 0 to %d", e.Seconds, maxSeconds)
	}
	if err := b.take(ctx); err != nil {
		return nil, err
	}
	defer b.give()
	if err := c.awaken(ctx, b, op, true); err != nil {
		return nil, err
	}
	r := b.rec.Load()
	if e.Seconds == 0 {
		e.Seconds = r.Lease.Extend
	}
	d := c.clock.since() + seconds(e.Seconds)
	b.mu.Lock()
	if d > b.deadline || e.Exact {
		b.deadline, b.warned = d, false
	}
	b.mu.Unlock()
	if err := c.note(ctx, b); err != nil {
		return nil, err
	}
	return c.view(b), nil
}

// note records where the end of a lease has moved to. The caller has the turn.
func (c *Control) note(ctx context.Context, b *box) error {
	b.mu.Lock()
	deadline, noted := b.deadline, b.noted
	b.mu.Unlock()
	r := b.rec.Load()
	if deadline == noted || r.State != api.StateRunning {
		return nil
	}
	n := r.clone()
	n.Expires = c.clock.at(deadline)
	if err := c.record(ctx, b, n); err != nil {
		return err
	}
	b.mu.Lock()
	b.noted = deadline
	b.mu.Unlock()
	return nil
}

// due is what a sandbox's timers ask for.
type due struct {
	warn, note, expired, aged bool
}

func (b *box) due(now time.Duration) (d due) {
	r := b.rec.Load()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !r.claimed() {
		return d
	}
	d.aged = b.until != 0 && now >= b.until
	if r.State != api.StateRunning {
		return d
	}
	if b.uses > 0 && !r.fixed() { // whoever holds a session extends the lease by doing so
		if end := now + seconds(r.Lease.Extend); end > b.deadline {
			b.deadline, b.warned = end, false
		}
	}
	d.expired = now >= b.deadline && (b.uses == 0 || r.fixed())
	d.warn = !b.warned && b.deadline-now <= warnAhead && !d.expired && seconds(r.Lease.Duration) > warnAhead
	step := min(noteEvery, seconds(r.Lease.Extend)/10)
	d.note = b.deadline-b.noted >= max(step, time.Second)
	if now < b.retry {
		d.expired, d.aged = false, false
	}
	if now < b.nap && r.Lease.OnExpiry != api.End {
		d.expired = false
	}
	return d
}

// runLeases looks at the timers of all sandboxes again and again.
func (c *Control) runLeases(ctx context.Context) {
	tick := time.NewTicker(leaseTick)
	defer tick.Stop()
	limit := newLimit(maxActs)
	defer limit.wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.leases(ctx, limit)
		}
	}
}

// leases begins what all timers ask for. What a full limit leaves undone is for the next time.
func (c *Control) leases(ctx context.Context, limit *limit) {
	now := c.clock.since()
	for _, b := range c.index.list() {
		d := b.due(now)
		if d == (due{}) || !b.tryTake() {
			continue
		}
		if !limit.try(func() {
			defer b.give()
			c.meetDue(ctx, b, d)
		}) {
			b.give()
			return
		}
	}
}

// meetDue does what the timers of one sandbox ask for. The caller has its turn.
func (c *Control) meetDue(ctx context.Context, b *box, d due) {
	r := b.rec.Load()
	p, err := c.hostOf("", r)
	if err != nil {
		return // it can neither be used nor saved now
	}
	o := observed{up: true, present: true, asleep: r.State == api.StateHibernated, claimed: r.claimed(), epoch: r.Epoch, expired: d.expired, aged: d.aged}
	if (d.expired || d.aged) && (r.State == api.StateRunning || r.State == api.StateHibernated) {
		if d.expired && !d.aged && !r.fixed() && c.usedSince(b) {
			return
		}
		if err := c.perform(ctx, p, b, next(r, o)); err != nil {
			b.putOff(c.clock.since() + retryAfter)
			c.o.Log.Warn("a lease has ended, but not its sandbox; will be tried again", "sandbox", b.id, "err", err)
		}
		return
	}
	if d.warn {
		b.mu.Lock()
		left := b.deadline - c.clock.since()
		b.warned = true
		b.mu.Unlock()
		t := new(txn)
		e := r.event(api.EventExpiring, fmt.Sprintf("in %d seconds, if it isn't used: %s", int(left.Seconds()+0.5), r.Lease.OnExpiry))
		e.Data = map[string]string{"expires": c.clock.at(c.clock.since() + left).Format(time.RFC3339), "then": r.Lease.OnExpiry}
		t.event(e)
		if err := c.commit(ctx, t); err != nil {
			c.o.Log.Warn("record a warning", "sandbox", b.id, "err", err)
		}
	}
	if d.note {
		if err := c.note(ctx, b); err != nil {
			c.o.Log.Warn("record a lease", "sandbox", b.id, "err", err)
		}
	}
}

// usedSince reports whether the node saw the sandbox being used in a way that control doesn't see, and if so, extends its lease.
func (c *Control) usedSince(b *box) bool {
	r := b.rec.Load()
	m := b.meterNow()
	if m.used.IsZero() {
		return false
	}
	end := m.usedAt + seconds(r.Lease.Extend)
	if end <= c.clock.since() {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if end > b.deadline {
		b.deadline, b.warned = end, false
	}
	return true
}

// limit runs functions, a few at a time.
type limit struct {
	slots chan struct{}
}

func newLimit(n int) *limit { return &limit{slots: make(chan struct{}, n)} }

func (l *limit) do(f func()) {
	l.slots <- struct{}{}
	go func() {
		defer func() { <-l.slots }()
		f()
	}()
}

// try is do, unless it would have to wait.
func (l *limit) try(f func()) bool {
	select {
	case l.slots <- struct{}{}:
	default:
		return false
	}
	go func() {
		defer func() { <-l.slots }()
		f()
	}()
	return true
}

// wait returns when all have ended.
func (l *limit) wait() {
	for range cap(l.slots) {
		l.slots <- struct{}{}
	}
	for range cap(l.slots) {
		<-l.slots
	}
}
