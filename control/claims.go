package control

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// claim is what is recorded of a claim.
type claim struct {
	Name    string    `json:"name"`
	Sealed  []byte    `json:"sealed"` // its spec
	Pool    string    `json:"pool,omitempty"`
	From    string    `json:"template,omitempty"`
	Sandbox string    `json:"sandbox,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Owner   string    `json:"owner,omitempty"`
	Created time.Time `json:"created"`
}

func claimThing(name string, k *claim) access.Thing {
	t := access.Thing{Kind: "sandbox", ID: short(name)}
	if k != nil {
		t.Owner = k.Owner
	}
	return t
}

// PutClaim makes a claim and takes a sandbox for it, unless there is one of the name with the same spec.
func (c *Control) PutClaim(ctx context.Context, who *access.Caller, name string, spec api.ClaimSpec) (*api.Claim, error) {
	const op = "put claim"
	if err := checkName(op, "claim", name); err != nil {
		return nil, err
	}
	leave, err := c.requests.enter(ctx, "claim/"+name)
	if err != nil {
		return nil, err
	}
	defer leave()
	place := "claim/" + name
	sealed, err := c.sealJSON(place, spec)
	if err != nil {
		return nil, err
	}
	was := c.claims.get(name)
	if was != nil {
		if err := c.allow(ctx, who, access.SandboxGet, claimThing(name, was)); err != nil {
			return nil, err
		}
		var before api.ClaimSpec
		if err := c.openJSON(place, was.Sealed, &before); err != nil {
			return nil, err
		}
		if !sameJSON(before, spec) {
			return nil, errs.Msg(errs.Conflict, op, name, "there is a claim of this name with another spec").WithHint("delete it first, or choose another name")
		}
		if was.Sandbox != "" {
			return c.shownClaim(was), nil
		}
	}
	req := api.CreateSandbox{Name: name, Pool: spec.Pool, Template: spec.Template, Env: spec.Env, Secrets: spec.Secrets, Lease: spec.Lease, Labels: spec.Labels}
	if c.nameTaken(name) {
		req.Name = "" // the claim finds its sandbox without
	}
	o, err := c.order(ctx, who, op, req)
	if err != nil {
		return nil, err
	}
	o.claim = name
	o.also = func(t *txn, r *record) {
		was := c.claims.get(name)
		c.claims.set(c, t, name, was, &claim{Name: name, Sealed: sealed, Pool: spec.Pool, From: spec.Template, Sandbox: r.ID, Owner: o.owner, Created: c.clock.now()})
	}
	if _, err := c.obtain(ctx, o); err != nil {
		return nil, err
	}
	return c.shownClaim(c.claims.get(name)), nil
}

// shownClaim is a claim as callers see it.
func (c *Control) shownClaim(k *claim) *api.Claim {
	out := &api.Claim{Name: k.Name, Pool: k.Pool, Template: k.From, State: statePending, Reason: k.Reason, Sandbox: c.resolved(k.Sandbox), Owner: k.Owner, Created: k.Created, Endpoint: c.o.Endpoint}
	b, r, err := c.lookup(c.ctx, "", k.Sandbox)
	if b != nil {
		r = b.rec.Load()
	}
	if err != nil || r == nil {
		out.State = stateEnded
		return out
	}
	out.Reason = r.Reason
	switch r.State {
	case api.StateRunning, api.StateResuming, api.StateHibernating:
		out.State = stateReady
	case api.StateHibernated:
		out.State = stateHibernated
	case api.StateEnding, api.StateEnded:
		out.State = stateEnded
	case api.StateFailed:
		out.State = stateFailed
	}
	return out
}

// findClaim finds a claim for a caller.
func (c *Control) findClaim(ctx context.Context, who *access.Caller, v access.Verb, op, name string) (*claim, error) {
	k := c.claims.get(name)
	if err := c.allow(ctx, who, v, claimThing(name, k)); err != nil {
		return nil, err
	}
	if k == nil {
		return nil, errs.Msg(errs.NotFound, op, short(name), "there is no claim of this name")
	}
	return k, nil
}

// Claim returns a claim.
func (c *Control) Claim(ctx context.Context, who *access.Caller, name string) (*api.Claim, error) {
	k, err := c.findClaim(ctx, who, access.SandboxGet, "find claim", name)
	if err != nil {
		return nil, err
	}
	return c.shownClaim(k), nil
}

// Claims lists claims by name.
func (c *Control) Claims(ctx context.Context, who *access.Caller, p Page) (*api.Claims, error) {
	if err := c.allow(ctx, who, access.SandboxGet, access.Thing{Kind: "sandbox"}); err != nil {
		return nil, err
	}
	var list []*claim
	c.claims.all(func(n string, k *claim) bool {
		if !strings.Contains(n, "/") && c.o.Guard.Sees(who, claimThing(n, k)) { // with a slash, it is a user's sandbox with an agent
			list = append(list, k)
		}
		return true
	})
	slices.SortFunc(list, func(a, b *claim) int { return cmp.Compare(a.Name, b.Name) })
	page, next, err := pageOf(p, list, func(k *claim) string { return k.Name })
	if err != nil {
		return nil, err
	}
	out := &api.Claims{Claims: []api.Claim{}, Next: next}
	for _, k := range page {
		out.Claims = append(out.Claims, *c.shownClaim(k))
	}
	return out, nil
}

// DeleteClaim ends the sandbox of a claim and forgets the claim.
func (c *Control) DeleteClaim(ctx context.Context, who *access.Caller, name string) error {
	k, err := c.findClaim(ctx, who, access.SandboxEnd, "delete claim", name)
	if err != nil {
		return err
	}
	if k.Sandbox != "" {
		if _, err := c.EndSandbox(ctx, who, k.Sandbox); err != nil && !errs.Is(err, errs.NotFound) {
			return err
		}
	}
	return again(func() error {
		was := c.claims.get(name)
		if was == nil {
			return nil
		}
		t := new(txn)
		c.claims.set(c, t, name, was, nil)
		return c.commit(ctx, t)
	})
}
