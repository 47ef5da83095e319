package control

import (
	"context"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// idleWait is how long a hibernation waits for commands and connections to end.
const idleWait = 2 * time.Second

// Hibernate saves a running sandbox to disk and ends it there, until the next use. While commands run in it for somebody, or connections
// to it are open, it is errs.Conflict. What runs in the background is saved with it.
func (c *Control) Hibernate(ctx context.Context, who *access.Caller, id string) (*api.Sandbox, error) {
	return c.HibernateSandbox(ctx, who, id, api.HibernateSandbox{})
}

// HibernateSandbox is Hibernate; by Force also while it is in use.
func (c *Control) HibernateSandbox(ctx context.Context, who *access.Caller, id string, h api.HibernateSandbox) (*api.Sandbox, error) {
	const op = "hibernate sandbox"
	b, err := c.findLive(ctx, who, access.SandboxChange, op, id)
	if err != nil {
		return nil, err
	}
	if err := b.take(ctx); err != nil {
		return nil, err
	}
	defer b.give()
	if b.rec.Load().State == api.StateHibernated {
		return c.view(b), nil
	}
	if err := c.awaken(ctx, b, op, true); err != nil { // completes what was left half-way
		return nil, err
	}
	if err := c.putToSleep(ctx, b, sleeping{wait: idleWait, force: h.Force}); err != nil {
		return nil, err
	}
	return c.view(b), nil
}

// sleeping is how a sandbox is put to sleep.
type sleeping struct {
	wait   time.Duration // for uses to end
	force  bool          // if they don't, they are ended
	reason string
}

// putToSleep hibernates a sandbox that runs. The caller has its turn.
func (c *Control) putToSleep(ctx context.Context, b *box, how sleeping) error {
	const op = "hibernate sandbox"
	r := b.rec.Load()
	if r.State != api.StateRunning {
		return stateError(op, r)
	}
	p, err := c.hostOf(op, r)
	if err != nil {
		return err
	}
	if how.force {
		b.shutNow()
	} else if err := b.close(ctx, how.wait); err != nil {
		return err
	}
	n := r.clone()
	n.State, n.Reason, n.Forced = api.StateHibernating, how.reason, how.force
	if err := c.record(ctx, b, n); err != nil {
		b.open()
		return err
	}
	actx, cancel := c.act(ctx)
	defer cancel()
	c.measure(actx, p, b)
	begun := time.Now()
	if err := hostHibernate(actx, p, n); err != nil {
		return c.stayAwake(ctx, b, err)
	}
	c.timings.hibernate.observe(time.Since(begun))
	return c.asleep(ctx, b)
}

// hostHibernate puts a sandbox to sleep; what can't be saved with it is lost only if it must sleep and can't otherwise.
func hostHibernate(ctx context.Context, p *peer, r *record) error {
	err := p.host.Hibernate(ctx, r.ID, false)
	if r.Forced && (errs.Is(err, errs.Unavailable) || errs.Is(err, errs.Unsupported)) {
		err = p.host.Hibernate(ctx, r.ID, true)
	}
	return err
}

// stayAwake records that a hibernation came to nothing: the sandbox runs on, unless its node has lost it.
func (c *Control) stayAwake(ctx context.Context, b *box, cause error) error {
	if errs.Is(cause, errs.NotFound) {
		c.fail(ctx, b, "its node lost it: "+cause.Error())
		return cause
	}
	if p, err := c.hostOf("", b.rec.Load()); err != nil || p == nil {
		return cause // it may have been saved: its node will tell
	}
	n := b.rec.Load().clone()
	n.Forced = false
	n.State, n.Reason = api.StateRunning, cut("it couldn't hibernate: "+cause.Error(), 1024)
	var events []string
	if b.stays(c.clock.since(), cause.Error()) {
		events = []string{api.EventAwake}
	}
	if err := c.record(ctx, b, n, events...); err != nil {
		return err
	}
	b.open()
	return cause
}

// asleep records that a sandbox hibernates.
func (c *Control) asleep(ctx context.Context, b *box) error {
	n := b.rec.Load().clone()
	n.State, n.Slept, n.Expires, n.Forced = api.StateHibernated, c.clock.now(), time.Time{}, false
	t := new(txn)
	c.set(t, b, n)
	c.charge(t, b, n, true)
	t.event(n.event(api.EventHibernated, n.Reason))
	if err := c.commit(ctx, t); err != nil {
		return err
	}
	b.slept()
	c.setTimers(b, n, false)
	return nil
}

// Resume wakes a hibernated sandbox; one that runs is fine.
func (c *Control) Resume(ctx context.Context, who *access.Caller, id string) (*api.Sandbox, error) {
	const op = "resume sandbox"
	b, err := c.findLive(ctx, who, access.SandboxChange, op, id)
	if err != nil {
		return nil, err
	}
	if _, err := c.enterBy(ctx, b, op, true); err != nil {
		return nil, err
	}
	b.leave()
	return c.view(b), nil
}

// wakeUp resumes a sandbox under a new epoch. The caller has its turn.
func (c *Control) wakeUp(ctx context.Context, b *box) error {
	const op = "resume sandbox"
	r := b.rec.Load()
	p, err := c.hostOf(op, r)
	if err != nil {
		return err
	}
	release, err := c.admit(ctx, op, r.Owner, nil, 1)
	if err != nil {
		return err
	}
	defer release()
	n := r.clone()
	n.State, n.Reason, n.Epoch = api.StateResuming, "", r.Epoch+1
	begun := time.Now()
	if err := c.record(ctx, b, n); err != nil {
		return err
	}
	release()
	if err := c.resume(ctx, p, b); err != nil {
		return err
	}
	c.timings.resume.observe(time.Since(begun))
	return nil
}

// resume does what the record of a resuming sandbox says.
func (c *Control) resume(ctx context.Context, p *peer, b *box) error {
	r := b.rec.Load()
	identity, err := c.reidentify(ctx, r)
	if err != nil {
		return err
	}
	actx, cancel := c.act(ctx)
	defer cancel()
	running, err := p.host.Wake(actx, b.id, r.Epoch, identity)
	if errs.Is(err, errs.NotFound) {
		c.fail(ctx, b, "its node lost it: "+err.Error())
		return err
	}
	if err != nil {
		// It sleeps on. The epoch stays used: a late answer to this request must not count.
		n := r.clone()
		n.State, n.Reason = api.StateHibernated, cut("it couldn't be resumed: "+err.Error(), 1024)
		if rerr := c.record(ctx, b, n); rerr != nil {
			return rerr
		}
		return err
	}
	n := r.clone()
	if running != nil && len(running.Volumes) > 0 {
		n.Volumes = shownVolumes(running.Volumes, n.Mounts)
	}
	return c.awake(ctx, b, n)
}

// awake records that a sandbox which was resuming runs.
func (c *Control) awake(ctx context.Context, b *box, n *record) error {
	n = n.clone()
	n.State, n.Started, n.Slept, n.Reason = api.StateRunning, c.clock.now(), time.Time{}, ""
	n.Expires = n.Started.Add(seconds(n.Lease.Duration))
	if err := c.record(ctx, b, n, api.EventResumed); err != nil {
		return err
	}
	b.open()
	c.setTimers(b, n, false)
	return nil
}
