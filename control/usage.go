package control

import (
	"context"
	"errors"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/errs"
	"agentrun.dev/node"
)

const (
	chargeEvery  = 30 * time.Second // at most so often is what a running sandbox used recorded
	storageEvery = time.Minute      // between two looks at what a sandbox's volumes hold
	gib          = 1 << 30
)

// meter is what a sandbox used. Counters of its node begin anew with each epoch, so what is kept is a sum over earlier epochs and the
// counters of this one: telling the same counter twice changes nothing.
type meter struct {
	Sum   api.SandboxUsage `json:"sum"`   // of all that follows and of earlier epochs
	Epoch uint64           `json:"epoch"` // that the counters are of
	CPU   time.Duration    `json:"cpu"`
	In    int64            `json:"in"`
	Out   int64            `json:"out"`
	At    time.Time        `json:"at"` // of the last sample

	// In memory only.
	charged  api.SandboxUsage // of Sum, what the totals of principals hold
	chargeAt time.Duration
	storeAt  time.Duration
	usedAt   time.Duration // when the node last saw it used
	used     time.Time
	dirty    bool
}

// total is what all sandboxes of a principal used, those that have ended included, and those of principals that act on its behalf.
type total struct {
	Usage api.SandboxUsage `json:"usage"`
	Over  bool             `json:"over,omitempty"` // its budget was found used up
}

func addUsage(to, u *api.SandboxUsage) {
	if u == nil {
		return
	}
	to.CPUSeconds += u.CPUSeconds
	to.MemoryGiBSeconds += u.MemoryGiBSeconds
	to.StorageGiBSeconds += u.StorageGiBSeconds
	to.NetworkIn += u.NetworkIn
	to.NetworkOut += u.NetworkOut
	to.Seconds += u.Seconds
	to.Memory += u.Memory
	to.MemoryShared += u.MemoryShared
	to.Storage += u.Storage
	to.Processes += u.Processes
	to.Sandboxes += u.Sandboxes
}

// since is what was used of one sum and not of an earlier one.
func since(now, before *api.SandboxUsage) api.SandboxUsage {
	return api.SandboxUsage{
		CPUSeconds: now.CPUSeconds - before.CPUSeconds, MemoryGiBSeconds: now.MemoryGiBSeconds - before.MemoryGiBSeconds,
		StorageGiBSeconds: now.StorageGiBSeconds - before.StorageGiBSeconds, NetworkIn: now.NetworkIn - before.NetworkIn,
		NetworkOut: now.NetworkOut - before.NetworkOut, Seconds: now.Seconds - before.Seconds,
	}
}

// sampled adds what a node tells. Time that passed is counted from the last sample of the same epoch, or from the start.
func (m *meter) sampled(s *node.Status, r *record, now time.Time) {
	if s.Epoch != r.Epoch || s.Asleep || !r.claimed() {
		return
	}
	if m.Epoch != s.Epoch {
		m.Epoch, m.CPU, m.In, m.Out, m.At = s.Epoch, 0, 0, 0, r.Started
		if first := r.Sandbox.Claimed; m.At.Before(first) {
			m.At = first
		}
	}
	u := &m.Sum
	u.CPUSeconds += max(0, s.CPU-m.CPU).Seconds()
	u.NetworkIn += max(0, s.NetworkIn-m.In)
	u.NetworkOut += max(0, s.NetworkOut-m.Out)
	m.CPU, m.In, m.Out = max(m.CPU, s.CPU), max(m.In, s.NetworkIn), max(m.Out, s.NetworkOut)
	passed := now.Sub(m.At).Seconds()
	if passed > 0 && !m.At.IsZero() {
		u.MemoryGiBSeconds += passed * float64(s.Memory) / gib
		u.StorageGiBSeconds += passed * float64(u.Storage) / gib
		u.Seconds += passed
	}
	if now.After(m.At) {
		m.At = now
	}
	u.Memory, u.MemoryShared, u.Processes = s.Memory, s.MemoryShared, s.Processes
	m.dirty = true
}

func (b *box) meterNow() meter {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.meter
}

// loadUsage reads the meters of sandboxes that haven't ended.
func (c *Control) loadUsage(ctx context.Context) error {
	return c.o.KV.Scan(ctx, under(kindUsage), func(k, raw []byte) error {
		if b := c.box(lastOf(k)); b != nil {
			if err := decode(k, raw, &b.meter); err != nil {
				return err
			}
			b.meter.charged = b.meter.Sum
		}
		return nil
	})
}

// sample reads the counters of a node.
func (c *Control) sample(ctx context.Context, p *peer) {
	list, err := p.host.Status(ctx)
	if err != nil {
		return
	}
	now, at := c.clock.now(), c.clock.since()
	for i := range list {
		s := &list[i]
		b := c.box(s.ID)
		if b == nil {
			continue
		}
		r := b.rec.Load()
		c.sampleStorage(ctx, p, b, r, at)
		b.mu.Lock()
		b.sampled(s, r, now)
		if s.Used.After(b.meter.used) {
			b.meter.used, b.meter.usedAt = s.Used, at-max(0, min(at, now.Sub(s.Used)))
		}
		due := b.meter.dirty && at-b.meter.chargeAt >= chargeEvery
		b.mu.Unlock()
		if due && b.tryTake() {
			c.chargeNow(ctx, b)
			b.give()
		}
	}
	c.enforce(ctx)
}

// sampleStorage asks now and then what a sandbox's volumes hold: it costs more than the rest.
func (c *Control) sampleStorage(ctx context.Context, p *peer, b *box, r *record, at time.Duration) {
	b.mu.Lock()
	due := r.claimed() && r.live() && (b.meter.storeAt == 0 || at-b.meter.storeAt >= storageEvery)
	if due {
		b.meter.storeAt = at
	}
	b.mu.Unlock()
	if !due {
		return
	}
	if n, err := p.host.Usage(ctx, b.id); err == nil {
		b.mu.Lock()
		b.meter.Sum.Storage = n
		b.mu.Unlock()
	}
}

// measure samples one sandbox, before it stops.
func (c *Control) measure(ctx context.Context, p *peer, b *box) {
	r := b.rec.Load()
	if !r.claimed() {
		return
	}
	list, err := p.host.Status(ctx)
	if err != nil {
		return
	}
	for i := range list {
		if list[i].ID == b.id {
			b.mu.Lock()
			b.sampled(&list[i], r, c.clock.now())
			b.mu.Unlock()
		}
	}
}

// measureMost bounds the sandboxes whose storage is measured for one answer; it costs more than the rest.
const measureMost = 50

// measureAll samples sandboxes that run, now.
func (c *Control) measureAll(ctx context.Context, members map[string]*record) {
	now, later := c.clock.now(), c.clock.since()+storageEvery
	asked := map[*peer]bool{}
	for id, r := range members {
		p, err := c.hostOf("", r)
		if err != nil || r.State != api.StateRunning {
			continue
		}
		if b := c.box(id); b != nil && len(members) <= measureMost {
			c.sampleStorage(ctx, p, b, r, later)
		}
		if asked[p] {
			continue
		}
		asked[p] = true
		list, err := p.host.Status(ctx)
		if err != nil {
			continue
		}
		for i := range list {
			b, m := c.box(list[i].ID), members[list[i].ID]
			if b == nil || m == nil {
				continue
			}
			b.mu.Lock()
			b.sampled(&list[i], m, now)
			b.mu.Unlock()
		}
	}
}

// chargeNow records what a sandbox used since it was last recorded. The caller has its turn.
func (c *Control) chargeNow(ctx context.Context, b *box) {
	t := new(txn)
	c.charge(t, b, b.rec.Load(), false)
	t.b.Lazy = true
	if err := c.commit(ctx, t); err != nil && !errors.Is(err, errMoved) {
		c.o.Log.Warn("record usage", "sandbox", b.id, "err", err)
	}
}

// charge adds to a transition what a sandbox used, and adds that to the totals of its owner and of whom it acts for: in one commit, so
// that a crash counts nothing twice.
func (c *Control) charge(t *txn, b *box, r *record, rest bool) {
	if !r.claimed() {
		return
	}
	b.mu.Lock()
	m := b.meter
	b.mu.Unlock()
	if rest {
		m.Sum.Memory, m.Sum.MemoryShared, m.Sum.Processes = 0, 0, 0
	}
	delta := since(&m.Sum, &m.charged)
	saved := m
	t.put(key(kindUsage, b.id), &saved)
	t.totals = append(t.totals, charged{owner: r.Owner, delta: delta})
	at := c.clock.since()
	t.then = append(t.then, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		addDelta(&b.meter.charged, &delta)
		b.meter.chargeAt, b.meter.dirty = at, false
		if rest {
			b.meter.Sum.Memory, b.meter.Sum.MemoryShared, b.meter.Sum.Processes = 0, 0, 0
		}
	})
}

func addDelta(to, d *api.SandboxUsage) {
	memory, shared, storage, processes, n := to.Memory, to.MemoryShared, to.Storage, to.Processes, to.Sandboxes
	addUsage(to, d)
	to.Memory, to.MemoryShared, to.Storage, to.Processes, to.Sandboxes = memory, shared, storage, processes, n
}

// charged is what a transition charges a principal with.
type charged struct {
	owner string
	delta api.SandboxUsage
}

// addTotals adds to a transition the totals of those whom it charges. The caller holds usageMu until it is committed.
func (c *Control) addTotals(ctx context.Context, t *txn) {
	sums := map[string]*api.SandboxUsage{}
	for _, k := range t.totals {
		chain, err := c.chain(ctx, k.owner)
		if err != nil || len(chain) == 0 {
			chain = []*api.Principal{{Name: k.owner}}
		}
		for _, p := range chain {
			if sums[p.Name] == nil {
				sums[p.Name] = new(api.SandboxUsage)
			}
			addUsage(sums[p.Name], &k.delta)
		}
	}
	for name, u := range sums {
		was := c.totals.get(name)
		next := new(total)
		if was != nil {
			*next = *was
		}
		addUsage(&next.Usage, u)
		c.totals.set(c, t, name, was, next)
	}
}

// flushUsage records what was used so far.
func (c *Control) flushUsage(ctx context.Context) error {
	for _, b := range c.index.list() {
		b.mu.Lock()
		dirty := b.meter.dirty
		b.mu.Unlock()
		if dirty && b.tryTake() {
			c.chargeNow(ctx, b)
			b.give()
		}
	}
	return nil
}

// usageOf is what a sandbox used, as far as it was measured.
func (c *Control) usageOf(r *record) *api.SandboxUsage {
	var u api.SandboxUsage
	if b := c.box(r.ID); b != nil {
		u = b.meterNow().Sum
	} else if raw, err := c.o.KV.Get(c.ctx, key(kindUsage, r.ID)); err == nil {
		var m meter
		if decode(key(kindUsage, r.ID), raw, &m) == nil {
			u = m.Sum
		}
		u.Storage = 0
	}
	u.Sandboxes = 1
	return &u
}

// SandboxUsage returns what a sandbox used, measured now if it runs.
func (c *Control) SandboxUsage(ctx context.Context, who *access.Caller, id string) (*api.SandboxUsage, error) {
	b, r, err := c.find(ctx, who, access.SandboxGet, "measure sandbox", id)
	if err != nil {
		return nil, err
	}
	if b != nil {
		r = b.rec.Load()
		if p, err := c.hostOf("", r); err == nil && r.State == api.StateRunning {
			c.sampleStorage(ctx, p, b, r, c.clock.since()+storageEvery)
			c.measure(ctx, p, b)
		}
	}
	return c.usageOf(r), nil
}

// PrincipalUsage returns what a principal's sandboxes used.
func (c *Control) PrincipalUsage(ctx context.Context, who *access.Caller, name string) (*api.PrincipalUsage, error) {
	const op = "find usage"
	if err := c.allow(ctx, who, access.UsageGet, access.Thing{Kind: "usage", ID: name, Owner: name}); err != nil {
		return nil, err
	}
	chain, err := c.o.Keys.Chain(ctx, name)
	if err != nil && !errs.Is(err, errs.NotFound) {
		return nil, err
	}
	out := &api.PrincipalUsage{Principal: name, Usage: c.spent(ctx, name), Running: c.runningOf(ctx, name)}
	if len(chain) > 0 {
		out.Budget = chain[0].Budget
	}
	// Who was deleted may have used something; the root key is nobody's that is recorded.
	if len(chain) == 0 && out.Usage.Sandboxes == 0 && c.totals.get(name) == nil && name != ownerOf(who) {
		return nil, errs.Msg(errs.NotFound, op, short(name), "there is no principal of this name")
	}
	return out, nil
}

// spent is what a principal's sandboxes used, with what isn't recorded yet.
func (c *Control) spent(ctx context.Context, name string) api.SandboxUsage {
	var u api.SandboxUsage
	if t := c.totals.get(name); t != nil {
		u = t.Usage
	}
	wards := map[string]bool{}
	for _, b := range c.index.list() {
		r := b.rec.Load()
		if !r.claimed() || !c.actsFor(ctx, wards, r.Owner, name) {
			continue
		}
		m := b.meterNow()
		d := since(&m.Sum, &m.charged)
		d.Memory, d.MemoryShared, d.Storage, d.Processes, d.Sandboxes = m.Sum.Memory, m.Sum.MemoryShared, m.Sum.Storage, m.Sum.Processes, 1
		addUsage(&u, &d)
	}
	return u
}

// actsFor reports whether a principal is another, or acts on its behalf. known holds answers.
func (c *Control) actsFor(ctx context.Context, known map[string]bool, name, other string) bool {
	if name == other {
		return true
	}
	yes, ok := known[name]
	if !ok {
		chain, _ := c.chain(ctx, name)
		for _, p := range chain {
			yes = yes || p.Name == other
		}
		known[name] = yes
	}
	return yes
}

// runningOf counts the sandboxes of a principal that run.
func (c *Control) runningOf(ctx context.Context, name string) int {
	c.index.mu.RLock()
	owners := make(map[string]int, len(c.index.running))
	for o, n := range c.index.running {
		owners[o] = n
	}
	c.index.mu.RUnlock()
	known, sum := map[string]bool{}, 0
	for o, n := range owners {
		if c.actsFor(ctx, known, o, name) {
			sum += n
		}
	}
	return sum
}
