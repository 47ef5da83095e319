package control

import (
	"cmp"
	"context"
	"slices"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/errs"
)

func agentThing(name string, a *api.Agent) access.Thing {
	t := access.Thing{Kind: "agent", ID: short(name), Visibility: api.All}
	if a != nil {
		t.Owner = a.Owner
	}
	return t
}

// PutAgent makes an agent, or changes it: for conversations that are attached from now on.
func (c *Control) PutAgent(ctx context.Context, who *access.Caller, a api.Agent) (*api.Agent, error) {
	const op = "put agent"
	if err := checkName(op, "agent", a.Name); err != nil {
		return nil, err
	}
	was := c.agents.get(a.Name)
	thing := agentThing(a.Name, was)
	thing.Owner = cmp.Or(thing.Owner, ownerOf(who))
	if err := c.allow(ctx, who, access.AgentChange, thing); err != nil {
		return nil, err
	}
	if a.Retention < 0 || a.Retention > maxSeconds {
		return nil, invalid(op, a.Name, "the retention is %d seconds: want 0 to %d", a.Retention, maxSeconds)
	}
	if a.Pool != "" && a.Template != "" {
		return nil, invalid(op, a.Name, "new sandboxes come from a pool or a template, not both")
	}
	switch a.Mode {
	case api.ModeNone, api.ModeChoose:
	case api.ModeFixed:
		b, err := c.findLive(ctx, who, access.SandboxExec, op, a.Sandbox)
		if err != nil {
			return nil, err
		}
		a.Sandbox = b.id
	case api.ModePerUser, api.ModeFresh:
		if a.Pool == "" && a.Template == "" {
			return nil, invalid(op, a.Name, "mode %s needs a pool or a template", a.Mode)
		}
	default:
		return nil, invalid(op, a.Name, "the mode %q: want none, fixed, per-user, user-chooses or fresh-per-chat", short(a.Mode))
	}
	if a.Pool != "" && c.pools.get(a.Pool) == nil {
		return nil, noPool(op, a.Pool)
	}
	if a.Template != "" && c.head(a.Template) == nil {
		return nil, noTemplate(op, a.Template)
	}
	err := again(func() error {
		was := c.agents.get(a.Name)
		a.Owner = ownerOf(who)
		if was != nil {
			a.Owner = was.Owner
		}
		next := a
		t := new(txn)
		c.agents.set(c, t, a.Name, was, &next)
		return c.commit(ctx, t)
	})
	if err != nil {
		return nil, err
	}
	return &a, nil
}

// findAgent finds an agent for a caller.
func (c *Control) findAgent(ctx context.Context, who *access.Caller, v access.Verb, op, name string) (*api.Agent, error) {
	a := c.agents.get(name)
	if err := c.allow(ctx, who, v, agentThing(name, a)); err != nil {
		return nil, err
	}
	if a == nil {
		return nil, errs.Msg(errs.NotFound, op, short(name), "there is no agent of this name")
	}
	return a, nil
}

// Agent returns an agent.
func (c *Control) Agent(ctx context.Context, who *access.Caller, name string) (*api.Agent, error) {
	return c.findAgent(ctx, who, access.AgentGet, "find agent", name)
}

// Agents lists agents by name.
func (c *Control) Agents(ctx context.Context, who *access.Caller, p Page) (*api.Agents, error) {
	if err := c.allow(ctx, who, access.AgentGet, access.Thing{Kind: "agent", Visibility: api.All}); err != nil {
		return nil, err
	}
	list := []api.Agent{}
	c.agents.all(func(n string, a *api.Agent) bool {
		if c.o.Guard.Sees(who, agentThing(n, a)) {
			list = append(list, *a)
		}
		return true
	})
	slices.SortFunc(list, func(a, b api.Agent) int { return cmp.Compare(a.Name, b.Name) })
	page, next, err := pageOf(p.full(), list, func(a api.Agent) string { return a.Name })
	if err != nil {
		return nil, err
	}
	return &api.Agents{Agents: page, Next: next}, nil
}

// DeleteAgent forgets an agent. Its conversations keep their sandboxes.
func (c *Control) DeleteAgent(ctx context.Context, who *access.Caller, name string) error {
	const op = "delete agent"
	if _, err := c.findAgent(ctx, who, access.AgentChange, op, name); err != nil {
		return err
	}
	return again(func() error {
		was := c.agents.get(name)
		if was == nil {
			return nil
		}
		t := new(txn)
		c.agents.set(c, t, name, was, nil)
		return c.commit(ctx, t)
	})
}
