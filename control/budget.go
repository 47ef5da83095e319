package control

import (
	"context"
	"fmt"
	"sync"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/errs"
	"agentrun.dev/node"
)

// budgets are the budgets that bind a principal: its own, and those of whom it acts for.
func (c *Control) budgets(ctx context.Context, owner string) ([]*api.Principal, error) {
	chain, err := c.chain(ctx, owner)
	if err != nil {
		if errs.Is(err, errs.NotFound) {
			return nil, nil
		}
		return nil, err
	}
	var out []*api.Principal
	for _, p := range chain {
		if p.Budget != nil && *p.Budget != (api.Budget{}) {
			out = append(out, p)
		}
	}
	return out, nil
}

// usedUp names what of a budget is used up; "" if there is some left of everything.
func usedUp(b *api.Budget, u *api.SandboxUsage) string {
	switch {
	case b.CPUSeconds > 0 && u.CPUSeconds >= b.CPUSeconds:
		return fmt.Sprintf("%.0f CPU-seconds", b.CPUSeconds)
	case b.MemoryGiBSeconds > 0 && u.MemoryGiBSeconds >= b.MemoryGiBSeconds:
		return fmt.Sprintf("%.0f GiB-seconds of memory", b.MemoryGiBSeconds)
	case b.StorageGiBSeconds > 0 && u.StorageGiBSeconds >= b.StorageGiBSeconds:
		return fmt.Sprintf("%.0f GiB-seconds of storage", b.StorageGiBSeconds)
	case b.NetworkBytes > 0 && u.NetworkIn+u.NetworkOut >= b.NetworkBytes:
		return fmt.Sprintf("%d bytes of network traffic", b.NetworkBytes)
	}
	return ""
}

// admit makes sure that an owner and a pool may have more sandboxes. Until release, which may be called again, they count as if they ran.
func (c *Control) admit(ctx context.Context, op, owner string, p *pool, more int) (release func(), err error) {
	budgets, err := c.budgets(ctx, owner)
	if err != nil {
		return nil, err
	}
	for _, who := range budgets {
		spent := c.spent(ctx, who.Name)
		if what := usedUp(who.Budget, &spent); what != "" {
			return nil, errs.Msg(errs.Limit, op, who.Name, "the budget of "+what+" is used up").WithHint("whoever administers can raise it")
		}
	}
	c.admitMu.Lock()
	defer c.admitMu.Unlock()
	for _, who := range budgets {
		if most := who.Budget.Sandboxes; most > 0 && c.runningOf(ctx, who.Name)+c.coming(ctx, who.Name)+more > most {
			return nil, errs.Msg(errs.Limit, op, who.Name, fmt.Sprintf("the budget is %d sandboxes that run at once", most)).WithHint("end or hibernate others first")
		}
	}
	pool := ""
	if p != nil {
		pool = p.Name
		c.index.mu.RLock()
		has := c.index.claimed[pool]
		c.index.mu.RUnlock()
		if most := p.Spec.MaxSandboxes; most > 0 && has+c.admittedTo[pool]+more > most {
			return nil, errs.Msg(errs.Limit, op, pool, fmt.Sprintf("%d sandboxes of this pool may be claimed at once", most)).WithHint("end others first, or raise maxSandboxes")
		}
		c.admittedTo[pool] += more
	}
	count(c.admitted, owner, more)
	return sync.OnceFunc(func() {
		c.admitMu.Lock()
		defer c.admitMu.Unlock()
		count(c.admitted, owner, -more)
		count(c.admittedTo, pool, -more)
	}), nil
}

// coming counts sandboxes of a principal that are being made. The caller holds admitMu.
func (c *Control) coming(ctx context.Context, name string) (n int) {
	known := map[string]bool{}
	for o, k := range c.admitted {
		if c.actsFor(ctx, known, o, name) {
			n += k
		}
	}
	return n
}

// left is what a node is told that a sandbox may still use.
func (c *Control) left(ctx context.Context, owner string) (out node.Budget) {
	budgets, err := c.budgets(ctx, owner)
	if err != nil {
		return out
	}
	for _, who := range budgets {
		spent := c.spent(ctx, who.Name)
		if b := who.Budget; b.CPUSeconds > 0 {
			d := max(time.Millisecond, time.Duration((b.CPUSeconds-spent.CPUSeconds)*float64(time.Second)))
			if out.CPU == 0 || d < out.CPU {
				out.CPU = d
			}
		}
		if b := who.Budget; b.NetworkBytes > 0 {
			n := max(1, b.NetworkBytes-spent.NetworkIn-spent.NetworkOut)
			if out.Network == 0 || n < out.Network {
				out.Network = n
			}
		}
	}
	return out
}

// enforce hibernates the sandboxes of principals whose budgets are used up, and tells of it once.
func (c *Control) enforce(ctx context.Context) {
	over := map[string]string{} // owner: why
	checked := map[string]bool{}
	for _, b := range c.index.list() {
		r := b.rec.Load()
		if !r.claimed() || r.State != api.StateRunning {
			continue
		}
		if !checked[r.Owner] {
			checked[r.Owner] = true
			if why := c.overBudget(ctx, r.Owner); why != "" {
				over[r.Owner] = why
			}
		}
		why := over[r.Owner]
		if why == "" || !b.tryTake() {
			continue
		}
		if err := c.putToSleep(ctx, b, sleeping{reason: why}); err != nil {
			c.o.Log.Warn("hibernate a sandbox whose budget is used up", "sandbox", b.id, "err", err)
		}
		b.give()
	}
}

// overBudget says which budget of a principal is used up, and tells of it when that is new.
func (c *Control) overBudget(ctx context.Context, owner string) (why string) {
	budgets, err := c.budgets(ctx, owner)
	if err != nil {
		return ""
	}
	for _, who := range budgets {
		spent := c.spent(ctx, who.Name)
		what := usedUp(who.Budget, &spent)
		c.noteOver(ctx, who.Name, what)
		if what != "" && why == "" {
			why = "the budget of " + who.Name + ", " + what + ", is used up"
		}
	}
	return why
}

// noteOver records that a budget is used up, or isn't any more.
func (c *Control) noteOver(ctx context.Context, name, what string) {
	c.usageMu.Lock()
	defer c.usageMu.Unlock()
	was := c.totals.get(name)
	if was == nil && what == "" || was != nil && was.Over == (what != "") {
		return
	}
	next := &total{Over: what != ""}
	if was != nil {
		next.Usage = was.Usage
	}
	t := new(txn)
	c.totals.set(c, t, name, was, next)
	if what != "" {
		t.event(api.Event{Kind: api.EventBudget, Owner: name, Text: "the budget of " + what + " is used up"})
	}
	if err := c.commit(ctx, t); err != nil {
		c.o.Log.Warn("record a budget", "principal", name, "err", err)
	}
}
