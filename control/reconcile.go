package control

import (
	"context"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/errs"
	"agentrun.dev/node"
)

// reconcile compares what a node has with what is recorded, and makes them agree. Until it has, nothing new is placed there.
func (c *Control) reconcile(ctx context.Context, p *peer) {
	if err := c.compare(ctx, p); err != nil {
		c.o.Log.Warn("reconcile", "node", p.name, "err", err)
		return
	}
	p.mu.Lock()
	p.ready = true
	p.mu.Unlock()
	c.builds.kick()
}

// compare is one comparison. What somebody is acting on at this moment is left to them.
func (c *Control) compare(ctx context.Context, p *peer) error {
	// Records first: a sandbox that is made meanwhile is recorded before it is there, so nothing of it can seem a stray.
	before := map[*box]*record{}
	for _, b := range c.index.list() {
		if r := b.rec.Load(); r.Node == p.name {
			before[b] = r
		}
	}
	sctx, cancel := c.act(ctx)
	defer cancel()
	list, err := p.host.Status(sctx)
	if err != nil {
		return err
	}
	there := make(map[string]*node.Status, len(list))
	for i := range list {
		there[list[i].ID] = &list[i]
	}
	limit := newLimit(maxActs)
	for b, r := range before {
		o := c.observe(there[b.id], r)
		actions := next(r, o)
		if len(actions) == 0 || !c.mayAct(b, r, o) {
			continue
		}
		if !b.tryTake() {
			continue
		}
		if b.rec.Load() != r { // it went on since
			b.give()
			continue
		}
		limit.do(func() {
			defer b.give()
			if err := c.perform(ctx, p, b, actions); err != nil {
				b.putOff(c.clock.since() + retryAfter)
				c.o.Log.Warn("reconcile a sandbox", "sandbox", b.id, "actions", actions, "err", err)
			}
		})
	}
	limit.wait()
	c.endStrays(ctx, p, there)
	return nil
}

// mayAct keeps what failed a moment ago from being tried at once.
func (c *Control) mayAct(b *box, r *record, o observed) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return c.clock.since() >= b.retry
}

// observe is what a node's status (nil: it doesn't have it) says of a sandbox.
func (c *Control) observe(s *node.Status, r *record) observed {
	o := observed{up: true, previous: r.Created.Before(c.opened)}
	if s != nil {
		o.present, o.asleep, o.claimed, o.epoch = true, s.Asleep, s.Claimed, s.Epoch
		o.rules = s.Claimed && !s.Asleep && s.Rules != node.RulesID(rules(r.Network))
	}
	return o
}

// endStrays ends what a node has and no record knows, or knows on another node.
func (c *Control) endStrays(ctx context.Context, p *peer, there map[string]*node.Status) {
	limit := newLimit(maxActs)
	defer limit.wait()
	for id := range there {
		b := c.box(id)
		if b != nil && b.rec.Load().Node == p.name {
			continue
		}
		limit.do(func() {
			ectx, cancel := c.act(ctx)
			defer cancel()
			if err := p.host.End(ectx, id); err != nil && !errs.Is(err, errs.NotFound) {
				c.o.Log.Warn("end a stray sandbox", "sandbox", id, "node", p.name, "err", err)
				return
			}
			c.o.Log.Info("ended a stray sandbox", "sandbox", id, "node", p.name)
		})
	}
}

// settleOne reconciles one sandbox. The caller has its turn.
func (c *Control) settleOne(ctx context.Context, p *peer, b *box) error {
	sctx, cancel := c.act(ctx)
	defer cancel()
	list, err := p.host.Status(sctx)
	if err != nil {
		return err
	}
	var found *node.Status
	for i := range list {
		if list[i].ID == b.id {
			found = &list[i]
		}
	}
	r := b.rec.Load()
	return c.perform(ctx, p, b, next(r, c.observe(found, r)))
}

// perform does what next said. The caller has the sandbox's turn.
func (c *Control) perform(ctx context.Context, p *peer, b *box, actions []action) error {
	for _, a := range actions {
		if err := c.do(ctx, p, b, a); err != nil {
			return err
		}
	}
	return nil
}

func (c *Control) do(ctx context.Context, p *peer, b *box, a action) error {
	r := b.rec.Load()
	hctx, cancel := c.act(ctx)
	defer cancel()
	switch a {
	case doStart:
		return c.startAgain(hctx, p, r)
	case doClaim:
		identity, err := c.reidentify(hctx, r)
		if err != nil {
			return err
		}
		return p.host.Claim(hctx, b.id, r.Epoch, identity)
	case doWake:
		identity, err := c.reidentify(hctx, r)
		if err != nil {
			return err
		}
		_, err = p.host.Wake(hctx, b.id, r.Epoch, identity)
		return err
	case doHibernate:
		if err := hostHibernate(hctx, p, r); err != nil {
			return c.stayAwake(ctx, b, err)
		}
		return nil
	case doEnd:
		if err := p.host.End(hctx, b.id); err != nil && !errs.Is(err, errs.NotFound) {
			return err
		}
		return nil
	case doRunning:
		if r.State == api.StateResuming {
			return c.awake(ctx, b, r)
		}
		return c.ran(ctx, b, nil, nil)
	case doWarm:
		return c.ran(ctx, b, nil, nil)
	case doAsleep:
		return c.asleep(ctx, b)
	case doEnded:
		return c.ended(ctx, b)
	case doForget:
		return c.record(ctx, b, nil)
	case doFailed:
		c.fail(ctx, b, lostReason(r, p))
		return nil
	case doSleep:
		return c.putToSleep(ctx, b, sleeping{force: r.fixed(), reason: "its lease ran out"})
	case doNetwork:
		return p.host.SetNetwork(hctx, b.id, r.Epoch, rules(r.Network))
	case doExpire:
		reason := "its lease ran out"
		switch {
		case r.State == api.StateHibernated:
			reason = "it hibernated for longer than its lease allows"
		case b.agedAt(c.clock.since()):
			reason = "it reached its greatest age"
		}
		return c.end(ctx, b, reason)
	}
	return nil
}

func (b *box) agedAt(now time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.until != 0 && now >= b.until
}

func lostReason(r *record, p *peer) string {
	if !p.up() {
		return "its node, " + r.Node + ", was lost"
	}
	return "its node, " + r.Node + ", doesn't have it any more: it was ended there, or the node was started anew"
}

// startAgain starts a sandbox whose start was recorded but never happened.
func (c *Control) startAgain(ctx context.Context, p *peer, r *record) error {
	if r.From == "" {
		if err := c.ensureImage(ctx, p, r.Image); err != nil {
			return err
		}
	}
	s := node.Start{ID: r.ID, Name: r.Name, Epoch: r.Epoch, Image: r.source(), Volumes: r.Start}
	if r.claimed() {
		identity, err := c.reidentify(ctx, r)
		if err != nil {
			return err
		}
		s.Claim = &identity
	}
	_, err := c.hostStart(ctx, p, s)
	return err
}

// runPolls asks nodes what they have and use, and finds those that are lost.
func (c *Control) runPolls(ctx context.Context) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	limit := newLimit(maxActs)
	defer limit.wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, p := range c.allPeers() {
			if p.polling.CompareAndSwap(false, true) {
				limit.do(func() {
					defer p.polling.Store(false)
					c.poll(ctx, p)
				})
			}
		}
	}
}

// poll looks at one node.
func (c *Control) poll(ctx context.Context, p *peer) {
	pctx, cancel := context.WithTimeout(ctx, lostAfter)
	defer cancel()
	info, err := p.host.Info(pctx)
	if err == nil {
		c.heard(ctx, p, info)
		if images, err := p.host.Images(pctx); err == nil {
			c.haveImages(ctx, p, images)
		}
	}
	if ctx.Err() != nil {
		return
	}
	if c.missed(p) {
		c.lose(ctx, p)
		return
	}
	if err != nil {
		return
	}
	if err := c.compare(ctx, p); err != nil {
		c.o.Log.Warn("reconcile", "node", p.name, "err", err)
		return
	}
	p.mu.Lock()
	p.ready = true
	p.mu.Unlock()
	c.sample(ctx, p)
}

// missed reports whether a node has given no sign of life for too long. The one in this process can't be lost.
func (c *Control) missed(p *peer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.local && c.clock.since()-p.heard > lostAfter
}

// lose records that a node is lost: what ran there failed. What hibernates there is unavailable until it returns.
func (c *Control) lose(ctx context.Context, p *peer) {
	p.mu.Lock()
	was := p.lost
	p.lost, p.ready = true, false
	p.mu.Unlock()
	if !was {
		c.tellNode(ctx, p.name, "lost: no sign of life", "lost")
	}
	for _, b := range c.index.list() {
		r := b.rec.Load()
		if r.Node != p.name || !b.tryTake() {
			continue
		}
		r = b.rec.Load()
		if err := c.perform(ctx, p, b, next(r, observed{gaveUp: true})); err != nil {
			c.o.Log.Warn("record what a lost node had", "sandbox", b.id, "err", err)
		}
		b.give()
	}
	c.kick()
}

// haveImages notes which images a node holds, and drops those of templates and versions that nothing needs.
func (c *Control) haveImages(ctx context.Context, p *peer, images []string) {
	have := map[string]bool{}
	for _, i := range images {
		if c.wants(i) {
			have[i] = true
			continue
		}
		if err := p.host.DropImage(ctx, i); err != nil {
			c.o.Log.Warn("drop an image", "image", i, "node", p.name, "err", err)
		}
	}
	p.mu.Lock()
	p.images = have
	p.mu.Unlock()
}
