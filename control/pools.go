package control

import (
	"cmp"
	"context"
	"slices"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// pool is what is recorded of a pool.
type pool struct {
	Name    string       `json:"name"`
	Spec    api.PoolSpec `json:"spec"`
	Owner   string       `json:"owner,omitempty"`
	Created time.Time    `json:"created"`
}

func poolThing(name string, p *pool) access.Thing {
	t := access.Thing{Kind: "pool", ID: short(name), Visibility: api.All}
	if p != nil {
		t.Owner = p.Owner
	}
	return t
}

func noPool(op, name string) error {
	return errs.Msg(errs.NotFound, op, short(name), "there is no pool of this name")
}

// PutPool makes a pool, or changes it. Its sandboxes are started in the background.
func (c *Control) PutPool(ctx context.Context, who *access.Caller, name string, spec api.PoolSpec) (*api.Pool, error) {
	const op = "put pool"
	if err := checkName(op, "pool", name); err != nil {
		return nil, err
	}
	thing := poolThing(name, c.pools.get(name))
	thing.Owner = cmp.Or(thing.Owner, ownerOf(who))
	if err := c.allow(ctx, who, access.PoolChange, thing); err != nil {
		return nil, err
	}
	if spec.Replicas < 0 || spec.Replicas > api.MaxReplicas || spec.MaxSandboxes < 0 {
		return nil, invalid(op, name, "replicas is %d: want 0 to %d; maxSandboxes isn't negative", spec.Replicas, api.MaxReplicas)
	}
	if err := checkLabels(op, spec.Labels); err != nil {
		return nil, err
	}
	if c.head(spec.Template) == nil {
		return nil, noTemplate(op, spec.Template)
	}
	var p *pool
	err := again(func() error {
		was := c.pools.get(name)
		p = &pool{Name: name, Spec: spec, Owner: ownerOf(who), Created: c.clock.now()}
		if was != nil {
			if sameJSON(was.Spec, spec) {
				p = was
				return nil
			}
			p.Owner, p.Created = was.Owner, was.Created
		}
		t := new(txn)
		c.pools.set(c, t, name, was, p)
		return c.commit(ctx, t)
	})
	if err != nil {
		return nil, err
	}
	c.filler.forgive(name)
	c.kick()
	return c.shownPool(p), nil
}

// shownPool is a pool as callers see it.
func (c *Control) shownPool(p *pool) *api.Pool {
	out := &api.Pool{Name: p.Name, Spec: p.Spec, Owner: p.Owner, Created: p.Created, State: "filling"}
	image := ""
	v := c.ready(p.Spec.Template)
	if v != nil {
		out.Version, image = v.Version, imageOf(v.Name, v.Version)
	}
	held := c.reserved(p.Name)
	c.index.mu.RLock()
	for _, b := range c.index.warm[p.Name] {
		if b.rec.Load().Image == image {
			out.Ready++
			out.Snapshots++
		}
	}
	out.Claimed, out.Reserved = c.index.claimed[p.Name], len(held)
	c.index.mu.RUnlock()
	last, _ := c.version("", p.Spec.Template, 0)
	out.Error = c.filler.why(p.Name)
	switch {
	case v == nil && last != nil && last.State == api.BuildFailed:
		out.State, out.Error = "failed", last.Error
	case v == nil:
		out.State = "building"
	case out.Ready >= p.Spec.Replicas:
		out.State, out.Error = "ready", ""
	case out.Error != "":
		out.State = "failed"
	}
	return out
}

// Pool returns a pool.
func (c *Control) Pool(ctx context.Context, who *access.Caller, name string) (*api.Pool, error) {
	const op = "find pool"
	p := c.pools.get(name)
	if err := c.allow(ctx, who, access.PoolGet, poolThing(name, p)); err != nil {
		return nil, err
	}
	if p == nil {
		return nil, noPool(op, name)
	}
	return c.shownPool(p), nil
}

// Pools lists pools by name.
func (c *Control) Pools(ctx context.Context, who *access.Caller, p Page) (*api.Pools, error) {
	if err := c.allow(ctx, who, access.PoolGet, access.Thing{Kind: "pool", Visibility: api.All}); err != nil {
		return nil, err
	}
	var list []*pool
	c.pools.all(func(n string, v *pool) bool {
		if c.o.Guard.Sees(who, poolThing(n, v)) {
			list = append(list, v)
		}
		return true
	})
	slices.SortFunc(list, func(a, b *pool) int { return cmp.Compare(a.Name, b.Name) })
	page, next, err := pageOf(p, list, func(v *pool) string { return v.Name })
	if err != nil {
		return nil, err
	}
	out := &api.Pools{Pools: []api.Pool{}, Next: next}
	for _, v := range page {
		out.Pools = append(out.Pools, *c.shownPool(v))
	}
	return out, nil
}

// DeletePool forgets a pool and ends its warm sandboxes. Those that were claimed go on.
func (c *Control) DeletePool(ctx context.Context, who *access.Caller, name string) error {
	const op = "delete pool"
	if err := c.allow(ctx, who, access.PoolChange, poolThing(name, c.pools.get(name))); err != nil {
		return err
	}
	err := again(func() error {
		was := c.pools.get(name)
		if was == nil {
			return noPool(op, name)
		}
		t := new(txn)
		c.pools.set(c, t, name, was, nil)
		return c.commit(ctx, t)
	})
	if err == nil {
		c.filler.forgive(name)
		c.kick()
	}
	return err
}
