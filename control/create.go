package control

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/errs"
	"agentrun.dev/node"
	"agentrun.dev/volume"
)

// buildWait is how long the creation of a sandbox waits for a template that is being built.
const buildWait = 2 * time.Minute

// order is a sandbox that is to be made for somebody.
type order struct {
	op       string
	req      api.CreateSandbox
	owner    string
	claim    string // name of the claim that it is for
	env      *environment
	volumes  []volume.Spec // of a snapshot of files
	from     *snapshot     // with memory
	mounts   []volume.Spec // volumes that are there by themselves
	template *api.Template // that its image is of
	pool     *pool
	// also adds records to the transition that makes the sandbox somebody's.
	also func(t *txn, r *record)
	slot *slot // of an idempotency key
	// audited returns once the decision that the caller may is in the audit log.
	audited  func(context.Context) error
	admitted func() // it counts by itself
}

// CreateSandbox makes a sandbox, or takes a warm one.
func (c *Control) CreateSandbox(ctx context.Context, who *access.Caller, s api.CreateSandbox) (*api.Sandbox, error) {
	o, err := c.order(ctx, who, "create sandbox", s)
	if err != nil {
		return nil, err
	}
	if done := c.repeated(ctx, o.slot); done != nil {
		return done, o.audited(ctx)
	}
	b, err := c.obtain(ctx, o)
	if err != nil {
		return nil, err
	}
	return c.view(b), nil
}

// order checks what was asked for, and whether the caller may.
func (c *Control) order(ctx context.Context, who *access.Caller, op string, s api.CreateSandbox) (*order, error) {
	o := &order{op: op, req: s, owner: cmp.Or(s.Owner, ownerOf(who)), slot: slotOf(ctx)}
	var err error
	if o.audited, err = c.o.Guard.Begin(ctx, who, access.SandboxCreate, access.Thing{Kind: "sandbox", Owner: o.owner}); err != nil {
		return nil, err
	}
	sources := 0
	for _, v := range []string{s.Template, s.Pool, s.Snapshot} {
		if v != "" {
			sources++
		}
	}
	if sources != 1 {
		return nil, invalid(op, "", "want exactly one of template, pool and snapshot")
	}
	if s.Reservation != "" && s.Pool == "" {
		return nil, invalid(op, "reservation", "a reservation is of a pool")
	}
	if s.Name != "" {
		if err := checkSandboxName(op, s.Name); err != nil {
			return nil, err
		}
	}
	if len(s.Conversation) > maxText {
		return nil, invalid(op, "conversation", "more than %d bytes", maxText)
	}
	if err := errorsFirst(checkEnv(op, s.Env), checkSecrets(op, s.Secrets), checkLease(op, s.Lease), checkVisibility(op, s.Visibility), checkLabels(op, s.Labels), checkMounts(op, s.Volumes)); err != nil {
		return nil, err
	}
	if s.Network != nil {
		if err := checkNetwork(op, *s.Network); err != nil {
			return nil, err
		}
	}
	if err := c.source(ctx, who, o); err != nil {
		return nil, err
	}
	if s.Network != nil {
		if err := within(op, *s.Network, o.template.Spec.Network); err != nil {
			return nil, err
		}
	}
	if len(s.Volumes) > 0 {
		has, err := c.mountsFor(ctx, o.owner, o.template)
		if err != nil {
			return nil, err
		}
		if o.mounts, err = c.volumesFor(ctx, who, o, has); err != nil {
			return nil, err
		}
	}
	if o.env, err = c.environment(ctx, who, s.Env, s.Secrets); err != nil {
		return nil, err
	}
	return o, nil
}

// source finds what the sandbox is made of.
func (c *Control) source(ctx context.Context, who *access.Caller, o *order) error {
	s := &o.req
	template, version := s.Template, 0
	switch {
	case s.Pool != "":
		p := c.pools.get(s.Pool)
		if err := c.allow(ctx, who, access.PoolGet, poolThing(s.Pool, p)); err != nil {
			return err
		}
		if p == nil {
			return noPool(o.op, s.Pool)
		}
		o.pool, template = p, p.Spec.Template
	case s.Snapshot != "":
		n, err := c.findSnapshot(ctx, who, access.SnapshotGet, o.op, s.Snapshot)
		if err != nil {
			return err
		}
		template, version = n.Template, n.Version
		if n.Image != "" {
			o.from = n
			break
		}
		for path, bucket := range n.Buckets {
			v := volume.Spec{Name: n.volume(path), Path: path, Base: bucket, Policy: volume.Snapshot}
			o.volumes = append(o.volumes, v)
		}
	default:
		if name, text, ok := strings.Cut(s.Template, "@"); ok {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				return invalid(o.op, short(s.Template), "want a template's name, or NAME@VERSION")
			}
			template, version = name, n
		}
		h := c.head(template)
		owner := ""
		if h != nil {
			owner = h.Owner
		}
		if err := c.allow(ctx, who, access.TemplateGet, templateThing(template, owner)); err != nil {
			return err
		}
	}
	var err error
	o.template, err = c.awaitReady(ctx, o.op, template, version)
	return err
}

// awaitReady finds the newest version that is built, or this very one; while there is none, it waits for its build.
func (c *Control) awaitReady(ctx context.Context, op, name string, version int) (*api.Template, error) {
	timer := time.NewTimer(buildWait)
	defer timer.Stop()
	for {
		changed := c.builds.watch()
		v := c.ready(name)
		if version > 0 {
			v = c.versions.get(versionKey(name, version))
		}
		if v != nil && v.State == api.BuildReady {
			return v, nil
		}
		last, err := c.version(op, name, version)
		if err != nil {
			return nil, err
		}
		if last.State == api.BuildFailed {
			return nil, errs.Msg(errs.Conflict, op, name, "the build of this template failed: "+last.Error).WithHint("its log tells why; put the template again when it is mended")
		}
		select {
		case <-changed:
		case <-timer.C:
			return nil, errs.Msg(errs.Unavailable, op, name, "the template is still being built").WithHint("try again in a while, and see its log")
		case <-c.closing:
			return nil, errs.Msg(errs.Unavailable, op, name, "the service is ending")
		case <-ctx.Done():
			return nil, errs.New(errs.Canceled, op, name, ctx.Err())
		}
	}
}

// claimTries is how many warm sandboxes are tried.
const claimTries = 3

// obtain makes the sandbox of an order: a warm one, or a new one.
func (c *Control) obtain(ctx context.Context, o *order) (_ *box, err error) {
	begun := time.Now()
	defer func() {
		if err == nil {
			c.timings.claim.observe(time.Since(begun))
		}
	}()
	if o.req.Name != "" && c.nameTaken(o.req.Name) {
		return nil, nameTaken(o.op, o.req.Name)
	}
	release, err := c.admit(ctx, o.op, o.owner, o.pool, 1)
	if err != nil {
		return nil, err
	}
	defer release()
	o.admitted = release
	if o.pool != nil {
		defer c.kick() // the pool is one short
		image := imageOf(o.template.Name, o.template.Version)
		not := map[string]bool{}
		for try := 0; try < claimTries; try++ {
			b := c.takeReserved(ctx, o, image)
			if b == nil {
				b = c.index.takeWarm(o.pool.Name, image, not)
			}
			if b == nil {
				break
			}
			again, err := c.claimWarm(ctx, b, o)
			if err == nil {
				return b, nil
			}
			if !again {
				return nil, err
			}
			c.o.Log.Warn("a warm sandbox can't be claimed", "sandbox", b.id, "err", err)
			not[b.rec.Load().Node] = errs.Is(err, errs.Unavailable)
		}
	}
	return c.startNew(ctx, o)
}

// nameTaken reports whether a sandbox that hasn't ended has the name.
func (c *Control) nameTaken(name string) bool {
	c.index.mu.RLock()
	defer c.index.mu.RUnlock()
	_, ok := c.index.names[name]
	return ok
}

func nameTaken(op, name string) error {
	return errs.Msg(errs.Exists, op, name, "there is a sandbox of this name").WithHint("choose another, or end that one")
}

// fill makes a record the order's.
func (c *Control) fill(ctx context.Context, r *record, o *order, now time.Time) error {
	var err error
	if r.Sealed, err = c.seal(r.ID, o.env); err != nil {
		return err
	}
	if r.Mounts, err = c.mountsFor(ctx, o.owner, o.template); err != nil {
		return err
	}
	r.Mounts = append(r.Mounts, o.mounts...)
	r.State, r.Name, r.Owner, r.Visibility = api.StateRunning, o.req.Name, o.owner, cmp.Or(o.req.Visibility, api.Private)
	r.Labels, r.Claim, r.Sandbox.Claimed = o.req.Labels, o.claim, now
	r.Lease = fullLease(o.template.Spec.Lease, o.req.Lease)
	r.Network = o.template.Spec.Network
	r.Most = &o.template.Spec.Network
	if o.req.Network != nil {
		r.Network = *o.req.Network
	}
	if o.req.Conversation != "" {
		r.Conversations = []string{o.req.Conversation}
	}
	for _, m := range r.Mounts {
		r.Volumes = append(r.Volumes[:len(r.Volumes):len(r.Volumes)], shownVolume(node.Mounted{Spec: m, Bucket: m.Bucket}))
	}
	r.Expires = now.Add(seconds(r.Lease.Duration))
	return nil
}

// settle adds what the order has to say to the transition that makes the sandbox its.
func (o *order) settle(t *txn, r *record) {
	if o.also != nil {
		o.also(t, r)
	}
	o.slot.record(t, r.ID)
	if r.State == api.StateStarting {
		t.then = append(t.then, o.admitted)
	}
}

// claimWarm gives a warm sandbox to an order: the record and the node at the same time. If only one of them worked, the sandbox is
// ended: it has seen a claimant's secrets. again says that another sandbox may do.
func (c *Control) claimWarm(ctx context.Context, b *box, o *order) (again bool, err error) {
	if err := b.take(ctx); err != nil {
		c.index.putBack(b)
		return false, err
	}
	defer b.give()
	was := b.rec.Load()
	p, err := c.hostOf(o.op, was)
	if err == nil && was.State != api.StateWarm {
		err = errMoved
	}
	if err != nil {
		return true, err
	}
	r := was.clone()
	if err := c.fill(ctx, r, o, c.clock.now()); err != nil {
		c.index.putBack(b)
		return false, err
	}
	t := new(txn)
	c.set(t, b, r)
	o.settle(t, r)
	t.event(r.event(api.EventClaimed, ""))
	identity := c.identity(ctx, r, o.env)
	activated := make(chan error, 1)
	start := time.Now()
	var activation time.Duration
	actx, cancel := c.act(ctx)
	defer cancel()
	go func() {
		err := p.host.Claim(actx, b.id, r.Epoch, identity)
		activation = time.Since(start)
		activated <- err
	}()
	err = c.commitMounted(ctx, t, r)
	recorded := time.Since(start)
	if err == nil {
		o.admitted()
	}
	audited := o.audited(ctx)
	hostErr := <-activated
	switch {
	case err == nil && audited != nil:
		c.fail(ctx, b, "its claim couldn't be written to the audit log")
		return false, audited
	case err != nil:
		c.discard(ctx, b)
		if errors.Is(err, errMoved) && o.req.Name != "" && c.nameTaken(o.req.Name) {
			return false, nameTaken(o.op, o.req.Name)
		}
		return errors.Is(err, errMoved), err
	case hostErr != nil:
		c.fail(ctx, b, "it couldn't be claimed: "+hostErr.Error())
		return true, hostErr
	}
	b.mu.Lock()
	b.took = [2]float64{activation.Seconds(), recorded.Seconds()}
	b.mu.Unlock()
	c.setTimers(b, r, false)
	return false, nil
}

// startNew starts a sandbox for an order.
func (c *Control) startNew(ctx context.Context, o *order) (*box, error) {
	if err := o.audited(ctx); err != nil {
		return nil, err
	}
	r := c.newRecord(o.template, o.pool)
	if id := o.slot.mint(); id != "" {
		r.ID, r.Root = id, id
	}
	if err := c.fill(ctx, r, o, r.Created); err != nil {
		return nil, err
	}
	r.State, r.Start = api.StateStarting, o.volumes
	if o.from != nil {
		r.From, r.Engine = o.from.ID, o.from.engine()
	}
	identity := c.identity(ctx, r, o.env)
	b, err := c.startRecord(ctx, r, node.Start{Volumes: r.Start, Claim: &identity}, func(t *txn) { o.settle(t, r) })
	if errors.Is(err, errMoved) && o.req.Name != "" && c.nameTaken(o.req.Name) {
		err = nameTaken(o.op, o.req.Name)
	}
	return b, err
}

// newRecord is a sandbox of a template's version that is about to start.
func (c *Control) newRecord(v *api.Template, p *pool) *record {
	id := newID()
	r := &record{Sandbox: api.Sandbox{ID: id, State: api.StateStarting, Template: v.Name, Version: v.Version, Root: id, Engine: cmp.Or(v.Spec.Engine, api.Userspace),
		Language: v.Spec.Language, Lease: fullLease(v.Spec.Lease, nil), Created: c.clock.now(), Epoch: 1}, Image: imageOf(v.Name, v.Version)}
	if p != nil {
		r.Pool = p.Name
	}
	return r
}

// startRecord records a sandbox, starts it on a node and records that it runs, or is warm. Nothing stays of one that nobody has
// claimed if it can't be started; another is recorded as failed.
func (c *Control) startRecord(ctx context.Context, r *record, s node.Start, also func(*txn)) (*box, error) {
	p, err := c.placeRecord(ctx, r)
	if err != nil {
		return nil, err
	}
	r.Node = p.name
	b := newBox(r.ID)
	<-b.turn
	defer b.give()
	t := new(txn)
	c.set(t, b, r)
	if also != nil {
		also(t)
	}
	if r.claimed() {
		t.event(r.event(api.EventCreated, ""))
	}
	if err := c.commitMounted(ctx, t, r); err != nil {
		return nil, err
	}
	actx, cancel := c.act(ctx)
	defer cancel()
	s.ID, s.Name, s.Epoch, s.Image = r.ID, r.Name, r.Epoch, r.source()
	running, err := c.hostStart(actx, p, s)
	if err != nil {
		if r.claimed() {
			c.fail(ctx, b, "it couldn't be started: "+err.Error())
		} else {
			c.discard(ctx, b)
		}
		return nil, err
	}
	if err := c.ran(ctx, b, running, nil); err != nil {
		c.fail(ctx, b, "it couldn't be recorded: "+err.Error())
		return nil, err
	}
	return b, nil
}

// placeRecord chooses the node of a sandbox that is to start: one that has its image then.
func (c *Control) placeRecord(ctx context.Context, r *record) (*peer, error) {
	n := placing{image: r.Image, engine: r.Engine}
	if v := c.versions.get(versionKey(r.Template, r.Version)); v != nil {
		n.needs = needsOf(&v.Spec)
	}
	if r.From != "" {
		from := c.snapshots.get(r.From)
		if from == nil || from.Gone {
			return nil, errs.Msg(errs.NotFound, "start sandbox", r.From, "the snapshot was deleted")
		}
		n.image, n.on = from.Image, from.Node
	}
	p, err := c.place(n)
	if err != nil || r.From != "" {
		return p, err
	}
	return p, c.ensureImage(ctx, p, r.Image)
}

// hostStart starts a sandbox; an image that the node has lost is built again, unless it is a snapshot's.
func (c *Control) hostStart(ctx context.Context, p *peer, s node.Start) (*node.Running, error) {
	running, err := p.host.Start(ctx, s)
	if errs.Is(err, errs.NotFound) && snapshotOf(s.Image) == "" {
		p.hold(s.Image, false)
		if err := c.ensureImage(ctx, p, s.Image); err != nil {
			return nil, err
		}
		running, err = p.host.Start(ctx, s)
	}
	return running, err
}

// ran records that a sandbox which was starting runs, or is warm.
func (c *Control) ran(ctx context.Context, b *box, running *node.Running, also func(*txn)) error {
	r := b.rec.Load().clone()
	r.State, r.Started, r.Forking = api.StateWarm, c.clock.now(), ""
	if running != nil {
		r.Volumes = shownVolumes(running.Volumes, r.Mounts)
	}
	t := new(txn)
	if r.claimed() {
		r.State = api.StateRunning
		r.Expires = r.Started.Add(seconds(r.Lease.Duration))
		if r.Pool != "" { // from a pool that was empty
			t.event(r.event(api.EventClaimed, ""))
		}
		t.event(r.event(api.EventStarted, ""))
	}
	c.set(t, b, r)
	if also != nil {
		also(t)
	}
	if err := c.commit(ctx, t); err != nil {
		return err
	}
	c.setTimers(b, r, false)
	return nil
}

// shownVolumes tells of the volumes that a node mounted; those of the claim stand at the end.
func shownVolumes(list []node.Mounted, mounts []volume.Spec) []api.SandboxVolume {
	var out []api.SandboxVolume
	seen := map[string]bool{}
	for _, m := range list {
		v := shownVolume(m)
		seen[v.Path] = true
		out = append(out, v)
	}
	for _, m := range mounts {
		if !seen[m.Path] {
			out = append(out, shownVolume(node.Mounted{Spec: m, Bucket: m.Bucket}))
		}
	}
	return out
}

func shownVolume(m node.Mounted) api.SandboxVolume {
	return api.SandboxVolume{Name: m.Spec.Name, Path: cmp.Or(m.Spec.Path, "/"+m.Spec.Name), Bucket: m.Bucket, ReadOnly: m.Spec.ReadOnly, ForkPolicy: string(m.Spec.Policy), Size: m.Spec.Size}
}
