package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/errs"
	"agentrun.dev/node"
)

// maxDepth bounds forks of forks.
const maxDepth = 1000

// fork is what is recorded of copies that were made together.
type fork struct {
	Name     string        `json:"name"`
	Source   string        `json:"source"` // id
	Spec     *api.ForkSpec `json:"spec,omitempty"`
	IDs      []string      `json:"ids"`
	State    string        `json:"state"`
	Reason   string        `json:"reason,omitempty"`
	Owner    string        `json:"owner,omitempty"`
	Created  time.Time     `json:"created"`
	Duration float64       `json:"duration,omitempty"`
}

// States of forks and claims.
const (
	stateReady      = "ready"
	statePending    = "pending"
	stateFailed     = "failed"
	stateHibernated = "hibernated"
	stateEnded      = "ended"
)

// ForkSandbox makes copies of a running sandbox, at one instant, all or none.
func (c *Control) ForkSandbox(ctx context.Context, who *access.Caller, id string, f api.ForkSandbox) (*api.Fork, error) {
	const op = "fork sandbox"
	b, err := c.findLive(ctx, who, access.SandboxFork, op, id)
	if err != nil {
		return nil, err
	}
	owner := cmp.Or(ownerOf(who), b.rec.Load().Owner)
	audited, err := c.o.Guard.Begin(ctx, who, access.SandboxCreate, access.Thing{Kind: "sandbox", Owner: owner})
	if err != nil {
		return nil, err
	}
	if f.Count == 0 {
		f.Count = 1
	}
	if f.Count < 0 || f.Count > api.MaxForks {
		return nil, invalid(op, id, "count is %d: want 1 to %d", f.Count, api.MaxForks)
	}
	if f.Name != "" {
		if err := checkName(op, "fork", f.Name); err != nil {
			return nil, err
		}
	}
	if err := errorsFirst(checkEnv(op, f.Env), checkSecrets(op, f.Secrets), checkLease(op, f.Lease), checkLabels(op, f.Labels)); err != nil {
		return nil, err
	}
	if f.Network != nil {
		if err := errorsFirst(checkNetwork(op, *f.Network), within(op, *f.Network, b.rec.Load().Network)); err != nil {
			return nil, err
		}
	}
	env, err := c.environment(ctx, who, f.Env, f.Secrets)
	if err != nil {
		return nil, err
	}
	if s := slotOf(ctx); s != nil {
		if done := c.forks.get(s.made); done != nil && done.State == stateReady {
			return c.shownFork(done), audited(ctx)
		}
	}
	w := forking{op: op, ForkSandbox: f, env: env, owner: owner, slot: slotOf(ctx), audited: audited}
	made, err := c.fork(ctx, b, w)
	if err != nil {
		return nil, err
	}
	return c.shownFork(made), nil
}

// forking is a fork that is to be made.
type forking struct {
	api.ForkSandbox
	op    string
	env   *environment
	owner string
	spec  *api.ForkSpec
	slot  *slot
	// audited returns once the decision that the caller may is in the audit log; nil: it is.
	audited  func(context.Context) error
	admitted func() // the children count by themselves
}

// fork makes the copies: recorded, done, recorded.
func (c *Control) fork(ctx context.Context, b *box, w forking) (*fork, error) {
	if err := c.freeNames(w); err != nil {
		return nil, err
	}
	release, err := c.admit(ctx, w.op, w.owner, c.pools.get(b.rec.Load().Pool), w.Count)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := b.take(ctx); err != nil {
		return nil, err
	}
	defer b.give()
	if err := c.awaken(ctx, b, w.op, false); err != nil {
		return nil, err
	}
	c.touch(b)
	parent := b.rec.Load()
	p, err := c.hostOf(w.op, parent)
	if err != nil {
		return nil, err
	}
	if c.depth(b)+1 > maxDepth {
		return nil, errs.Msg(errs.Limit, w.op, b.id, fmt.Sprintf("its tree is %d forks deep already", maxDepth))
	}
	if rec := c.nodes.get(p.name); rec != nil && p.full(c, w.Count) {
		return nil, errs.Msg(errs.Limit, w.op, b.id, "its node has as many sandboxes as it may").WithHint("end those that aren't needed any more")
	}
	w.admitted = release
	return c.forkOn(ctx, p, b, parent, w)
}

// full reports whether a node has no room for more sandboxes.
func (p *peer) full(c *Control, more int) bool {
	p.mu.Lock()
	most := p.info.Max
	p.mu.Unlock()
	c.index.mu.RLock()
	defer c.index.mu.RUnlock()
	return most > 0 && c.index.placed[p.name]+more > most
}

// names are those of the children: none where the fork has none.
func (w *forking) names() []string {
	out := make([]string, w.Count)
	for i := range out {
		switch {
		case w.Name == "":
		case w.Count == 1:
			out[i] = w.Name
		default:
			out[i] = fmt.Sprintf("%s-%d", w.Name, i+1)
		}
	}
	return out
}

func (c *Control) freeNames(w forking) error {
	if w.Name == "" {
		return nil
	}
	if c.forks.get(w.Name) != nil {
		return errs.Msg(errs.Exists, w.op, w.Name, "there is a fork of this name")
	}
	for _, n := range w.names() {
		if err := checkSandboxName(w.op, n); err != nil {
			return err
		}
		if c.nameTaken(n) {
			return nameTaken(w.op, n)
		}
	}
	return nil
}

// children makes the records of a fork's copies, and what their node is told of each.
func (c *Control) children(ctx context.Context, b *box, parent *record, w forking, name string) (boxes []*box, claims []node.Claim, err error) {
	base, err := c.unseal(parent)
	if err != nil {
		return nil, nil, err
	}
	env := base.forked(w.env)
	if err := checkEnv(w.op, env.Env); err != nil {
		return nil, nil, err
	}
	now := c.clock.now()
	names := w.names()
	depth := c.depth(b) + 1
	for i := range w.Count {
		r := &record{Image: parent.Image, Start: parent.Start, Mounts: parent.Mounts, Forking: name}
		r.Sandbox = api.Sandbox{ID: newID(), Name: names[i], State: api.StateStarting, Template: parent.Template, Version: parent.Version,
			Parent: parent.ID, Fork: name, Root: parent.Root, Depth: depth, Owner: w.owner, Visibility: parent.Visibility, Node: parent.Node,
			Engine: parent.Engine, Language: parent.Language, Network: parent.Network, Created: now, Claimed: now, Epoch: 1, Pool: parent.Pool}
		r.Lease = fullLease(parent.Lease, w.Lease)
		r.Expires = now.Add(seconds(r.Lease.Duration))
		r.Labels = maps.Clone(parent.Labels)
		if r.Labels == nil {
			r.Labels = api.Labels{}
		}
		maps.Copy(r.Labels, w.Labels)
		most := parent.most()
		if w.Network != nil {
			r.Network, most = *w.Network, *w.Network
		}
		r.Most = &most
		if r.Sealed, err = c.seal(r.ID, env); err != nil {
			return nil, nil, err
		}
		child := newBox(r.ID)
		<-child.turn
		child.rec.Store(r)
		boxes = append(boxes, child)
		claims = append(claims, c.identity(ctx, r, env))
	}
	return boxes, claims, nil
}

// forkOn makes a fork on the node of the sandbox, whose turn the caller has.
func (c *Control) forkOn(ctx context.Context, p *peer, b *box, parent *record, w forking) (*fork, error) {
	start := time.Now()
	name := cmp.Or(w.Name, w.slot.mint(), newID())
	boxes, claims, err := c.children(ctx, b, parent, w, name)
	for _, k := range boxes {
		defer k.give()
	}
	if err != nil {
		return nil, err
	}
	f := &fork{Name: name, Source: parent.ID, Spec: w.spec, State: statePending, Owner: w.owner, Created: c.clock.now()}
	request := node.Fork{Epoch: parent.Epoch, Claims: claims, Kill: w.Kill, Names: w.names()}
	t := new(txn)
	for _, k := range boxes {
		r := k.rec.Load()
		k.rec.Store(nil)
		c.set(t, k, r)
		f.IDs = append(f.IDs, k.id)
	}
	request.IDs = f.IDs
	c.forks.set(c, t, name, nil, f)
	w.slot.record(t, name)
	if err := c.commit(ctx, t); err != nil {
		if errors.Is(err, errMoved) {
			if free := c.freeNames(w); free != nil {
				return nil, free
			}
		}
		return nil, err
	}
	w.admitted()
	if w.audited != nil {
		if err := w.audited(ctx); err != nil {
			c.forkFailed(ctx, f, boxes, err)
			return nil, err
		}
	}
	actx, cancel := c.act(ctx)
	defer cancel()
	running, err := p.host.Fork(actx, b.id, request)
	if err == nil && len(running) != len(boxes) {
		err = errs.Msg(errs.Other, w.op, b.id, "the node made another number of sandboxes than asked for")
	}
	if err != nil {
		c.forkFailed(ctx, f, boxes, err)
		return nil, err
	}
	c.timings.fork.observe(time.Since(start))
	done := *f
	done.State, done.Duration = stateReady, time.Since(start).Seconds()
	if err := c.forked(ctx, b, f, &done, boxes, running); err != nil {
		c.forkFailed(ctx, f, boxes, err)
		return nil, err
	}
	return &done, nil
}

// forked records that the copies run.
func (c *Control) forked(ctx context.Context, b *box, f, done *fork, boxes []*box, running []*node.Running) error {
	now := c.clock.now()
	t := new(txn)
	e := b.rec.Load().event(api.EventForked, fmt.Sprintf("copied %d times", len(boxes)))
	e.Data = map[string]string{"fork": done.Name, "count": strconv.Itoa(len(boxes))}
	t.event(e)
	for i, k := range boxes {
		n := k.rec.Load().clone()
		n.State, n.Started, n.Forking = api.StateRunning, now, ""
		n.Expires = now.Add(seconds(n.Lease.Duration))
		if running[i] != nil {
			n.Volumes = shownVolumes(running[i].Volumes, n.Mounts)
		}
		c.set(t, k, n)
		e := n.event(api.EventForked, "a copy of "+n.Parent)
		e.Data = map[string]string{"parent": n.Parent, "fork": done.Name}
		t.event(e)
	}
	c.forks.set(c, t, f.Name, f, done)
	if err := c.commit(ctx, t); err != nil {
		return err
	}
	for _, k := range boxes {
		c.setTimers(k, k.rec.Load(), false)
	}
	return nil
}

// forkFailed ends what there is of a fork that came to nothing.
func (c *Control) forkFailed(ctx context.Context, f *fork, boxes []*box, cause error) {
	for _, k := range boxes {
		c.fail(ctx, k, "its fork failed: "+cause.Error())
	}
	err := again(func() error {
		was := c.forks.get(f.Name)
		if was == nil {
			return nil
		}
		n := *was
		n.State, n.Reason = stateFailed, cut(cause.Error(), 1024)
		t := new(txn)
		if n.Spec == nil { // it can be tried again under the same name
			c.forks.set(c, t, f.Name, was, nil)
		} else {
			c.forks.set(c, t, f.Name, was, &n)
		}
		return c.commit(ctx, t)
	})
	if err != nil {
		c.o.Log.Warn("record a fork that failed", "fork", f.Name, "err", err)
	}
}

// shownFork is a fork as callers see it.
func (c *Control) shownFork(f *fork) *api.Fork {
	out := &api.Fork{Name: f.Name, Source: c.resolved(f.Source), Count: len(f.IDs), State: f.State, Reason: f.Reason, Created: f.Created, Duration: f.Duration}
	for _, id := range f.IDs {
		if b, ended, err := c.lookup(c.ctx, "", id); err != nil {
			continue
		} else if b != nil {
			out.Sandboxes = append(out.Sandboxes, *c.view(b))
		} else {
			out.Sandboxes = append(out.Sandboxes, *c.viewOf(ended))
		}
	}
	return out
}

func forkThing(f *fork) access.Thing {
	if f == nil {
		return access.Thing{Kind: "sandbox"}
	}
	return access.Thing{Kind: "sandbox", ID: f.Name, Owner: f.Owner}
}

// PutFork makes a fork of a name, unless there is one with the same spec.
func (c *Control) PutFork(ctx context.Context, who *access.Caller, name string, f api.ForkSpec) (*api.Fork, error) {
	const op = "put fork"
	if err := checkName(op, "fork", name); err != nil {
		return nil, err
	}
	if f.Replicas < 1 || f.Replicas > api.MaxForks {
		return nil, invalid(op, name, "replicas is %d: want 1 to %d", f.Replicas, api.MaxForks)
	}
	leave, err := c.requests.enter(ctx, "fork/"+name)
	if err != nil {
		return nil, err
	}
	defer leave()
	if was := c.forks.get(name); was != nil {
		if err := c.allow(ctx, who, access.SandboxGet, forkThing(was)); err != nil {
			return nil, err
		}
		if was.State != stateFailed {
			if was.Spec == nil || *was.Spec != f {
				return nil, errs.Msg(errs.Conflict, op, name, "there is a fork of this name with another source or number").WithHint("delete it first, or choose another name")
			}
			return c.shownFork(was), nil
		}
	}
	b, err := c.findLive(ctx, who, access.SandboxFork, op, c.claimed(f.Source))
	if err != nil {
		return nil, err
	}
	owner := cmp.Or(ownerOf(who), b.rec.Load().Owner)
	if err := c.allow(ctx, who, access.SandboxCreate, access.Thing{Kind: "sandbox", Owner: owner}); err != nil {
		return nil, err
	}
	if was := c.forks.get(name); was != nil { // it failed: once more
		t := new(txn)
		c.forks.set(c, t, name, was, nil)
		if err := c.commit(ctx, t); err != nil {
			return nil, err
		}
	}
	made, err := c.fork(ctx, b, forking{op: op, ForkSandbox: api.ForkSandbox{Count: f.Replicas, Name: name}, env: new(environment), owner: owner, spec: &f})
	if err != nil {
		return nil, err
	}
	return c.shownFork(made), nil
}

// claimed is the sandbox of a claim, where there is one of this name and no sandbox.
func (c *Control) claimed(name string) string {
	if k := c.claims.get(name); k != nil && k.Sandbox != "" && !c.nameTaken(name) {
		return k.Sandbox
	}
	return name
}

// findFork finds a fork for a caller.
func (c *Control) findFork(ctx context.Context, who *access.Caller, v access.Verb, op, name string) (*fork, error) {
	f := c.forks.get(name)
	thing := forkThing(f)
	thing.ID = short(name)
	if err := c.allow(ctx, who, v, thing); err != nil {
		return nil, err
	}
	if f == nil {
		return nil, errs.Msg(errs.NotFound, op, short(name), "there is no fork of this name")
	}
	return f, nil
}

// Fork returns a fork.
func (c *Control) Fork(ctx context.Context, who *access.Caller, name string) (*api.Fork, error) {
	f, err := c.findFork(ctx, who, access.SandboxGet, "find fork", name)
	if err != nil {
		return nil, err
	}
	return c.shownFork(f), nil
}

// Forks lists forks by name.
func (c *Control) Forks(ctx context.Context, who *access.Caller, p Page) (*api.Forks, error) {
	if err := c.allow(ctx, who, access.SandboxGet, access.Thing{Kind: "sandbox"}); err != nil {
		return nil, err
	}
	var list []*fork
	c.forks.all(func(_ string, f *fork) bool {
		if c.o.Guard.Sees(who, forkThing(f)) {
			list = append(list, f)
		}
		return true
	})
	slices.SortFunc(list, func(a, b *fork) int { return cmp.Compare(a.Name, b.Name) })
	page, next, err := pageOf(p, list, func(f *fork) string { return f.Name })
	if err != nil {
		return nil, err
	}
	out := &api.Forks{Forks: []api.Fork{}, Next: next}
	for _, f := range page {
		out.Forks = append(out.Forks, *c.shownFork(f))
	}
	return out, nil
}

// DeleteFork ends the sandboxes of a fork and forgets it.
func (c *Control) DeleteFork(ctx context.Context, who *access.Caller, name string) error {
	f, err := c.findFork(ctx, who, access.SandboxEnd, "delete fork", name)
	if err != nil {
		return err
	}
	for _, id := range f.IDs {
		if _, err := c.EndSandbox(ctx, who, id); err != nil && !errs.Is(err, errs.NotFound) {
			return err
		}
	}
	return again(func() error {
		was := c.forks.get(name)
		if was == nil {
			return nil
		}
		t := new(txn)
		c.forks.set(c, t, name, was, nil)
		return c.commit(ctx, t)
	})
}
