package control

import (
	"cmp"
	"context"
	"slices"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/kv"
)

// view is a sandbox as callers see it.
func (c *Control) view(b *box) *api.Sandbox {
	r := b.rec.Load()
	v := c.viewOf(r)
	b.mu.Lock()
	defer b.mu.Unlock()
	v.ActivationTime, v.RecordTime = b.took[0], b.took[1]
	if r.State == api.StateRunning && b.deadline != 0 {
		v.Expires = c.clock.at(b.deadline)
	}
	return v
}

func (c *Control) viewOf(r *record) *api.Sandbox {
	v := r.Sandbox
	v.Endpoint = c.o.Endpoint
	v.Root, v.Parent = c.resolved(r.Root), c.resolved(r.Parent)
	if r.live() && v.Parent != "" {
		if p := c.box(v.Parent); p != nil && v.Parent != r.ID {
			v.Depth = c.depth(p) + 1
		}
	}
	if v.State != api.StateRunning && v.State != api.StateStarting {
		v.Expires = time.Time{}
	}
	return &v
}

// depth is a sandbox's in its tree, as far as its ancestors live.
func (c *Control) depth(b *box) int {
	r := b.rec.Load()
	for n, at := 0, r; n < 1000; n++ {
		p := c.box(c.resolved(at.Parent))
		if at.Parent == "" || p == nil {
			return at.Depth + n
		}
		at = p.rec.Load()
	}
	return r.Depth
}

// Sandbox returns a sandbox, also one that has ended, as long as that is kept.
func (c *Control) Sandbox(ctx context.Context, who *access.Caller, id string) (*api.Sandbox, error) {
	b, ended, err := c.find(ctx, who, access.SandboxGet, "find sandbox", id)
	if err != nil {
		return nil, err
	}
	if b == nil {
		return c.viewOf(ended), nil
	}
	return c.view(b), nil
}

// Sandboxes lists sandboxes, newest first.
func (c *Control) Sandboxes(ctx context.Context, who *access.Caller, f Filter) (*api.Sandboxes, error) {
	const op = "list sandboxes"
	if err := c.allow(ctx, who, access.SandboxGet, access.Thing{Kind: "sandbox"}); err != nil {
		return nil, err
	}
	if f.Limit < 0 || f.Limit > api.MaxPage {
		return nil, invalid(op, "limit", "want 1 to %d", api.MaxPage)
	}
	limit := cmp.Or(f.Limit, api.DefaultPage)
	out := &api.Sandboxes{Sandboxes: []api.Sandbox{}}
	var live []*box
	for _, b := range c.index.list() {
		if (f.Cursor == "" || b.id < f.Cursor) && f.fits(c, b.rec.Load()) && c.o.Guard.Sees(who, b.rec.Load().thing()) {
			live = append(live, b)
		}
	}
	slices.SortFunc(live, func(a, b *box) int { return cmp.Compare(b.id, a.id) })
	live = live[:min(len(live), limit+1)]
	for _, b := range live {
		out.Sandboxes = append(out.Sandboxes, *c.view(b))
	}
	if f.State == "any" || f.State == api.StateEnded || f.State == api.StateFailed {
		if err := c.listEnded(ctx, who, f, limit+1, out); err != nil {
			return nil, err
		}
		slices.SortFunc(out.Sandboxes, func(a, b api.Sandbox) int { return cmp.Compare(b.ID, a.ID) })
		out.Sandboxes = slices.CompactFunc(out.Sandboxes, func(a, b api.Sandbox) bool { return a.ID == b.ID })
	}
	if len(out.Sandboxes) > limit {
		out.Sandboxes = out.Sandboxes[:limit]
		out.Next = out.Sandboxes[limit-1].ID
	}
	return out, nil
}

// listEnded adds sandboxes that ended, at most so many.
func (c *Control) listEnded(ctx context.Context, who *access.Caller, f Filter, limit int, out *api.Sandboxes) error {
	r := under(kindEnded)
	r.Reverse = true
	if f.Cursor != "" {
		r.End = key(kindEnded, f.Cursor)
	}
	found := 0
	return c.o.KV.Scan(ctx, r, func(k, raw []byte) error {
		n := new(record)
		if err := decode(k, raw, n); err != nil {
			return err
		}
		if f.fits(c, n) && c.o.Guard.Sees(who, n.thing()) {
			out.Sandboxes = append(out.Sandboxes, *c.viewOf(n))
			if found++; found == limit {
				return kv.Stop
			}
		}
		return nil
	})
}

// fits reports whether a record is among those that are selected.
func (f *Filter) fits(c *Control, r *record) bool {
	switch f.State {
	case "any":
	case "":
		if r.State == api.StateWarm || !r.claimed() || !r.live() {
			return false
		}
	default:
		if r.State != f.State {
			return false
		}
	}
	for _, p := range [][2]string{{f.Owner, r.Owner}, {f.Template, r.Template}, {f.Pool, r.Pool}, {f.Name, r.Name}} {
		if p[0] != "" && p[0] != p[1] {
			return false
		}
	}
	if f.Root != "" && c.idOf(f.Root) != c.resolved(r.Root) || f.Parent != "" && c.idOf(f.Parent) != c.resolved(r.Parent) {
		return false
	}
	if f.Conversation != "" && !slices.Contains(r.Conversations, f.Conversation) {
		return false
	}
	for k, v := range f.Labels {
		if r.Labels[k] != v {
			return false
		}
	}
	return true
}

// idOf is the id of a sandbox that is named by its id or name.
func (c *Control) idOf(name string) string {
	c.index.mu.RLock()
	id, ok := c.index.names[name]
	c.index.mu.RUnlock()
	if ok {
		return id
	}
	return c.resolved(name)
}

// ChangeSandbox changes what is set.
func (c *Control) ChangeSandbox(ctx context.Context, who *access.Caller, id string, change api.ChangeSandbox) (*api.Sandbox, error) {
	const op = "change sandbox"
	b, err := c.findLive(ctx, who, access.SandboxChange, op, id)
	if err != nil {
		return nil, err
	}
	if change.Name != nil && *change.Name != "" {
		if err := checkSandboxName(op, *change.Name); err != nil {
			return nil, err
		}
	}
	if change.Visibility != nil {
		if err := checkVisibility(op, *change.Visibility); err != nil {
			return nil, err
		}
	}
	if err := checkLease(op, change.Lease); err != nil {
		return nil, err
	}
	if change.Network != nil {
		if err := checkNetwork(op, *change.Network); err != nil {
			return nil, err
		}
	}
	if err := b.take(ctx); err != nil {
		return nil, err
	}
	defer b.give()
	r := b.rec.Load()
	if !r.live() || r.State == api.StateEnding {
		return nil, over(op, r)
	}
	n := r.clone()
	if change.Name != nil && *change.Name != r.Name {
		if n.Name = *change.Name; n.Name != "" && c.nameTaken(n.Name) {
			return nil, nameTaken(op, n.Name)
		}
	}
	if change.Visibility != nil {
		n.Visibility = cmp.Or(*change.Visibility, api.Private)
	}
	n.Labels = api.Labels{}
	for k, v := range r.Labels {
		n.Labels[k] = v
	}
	for k, v := range change.Labels {
		if v == nil {
			delete(n.Labels, k)
		} else {
			n.Labels[k] = *v
		}
	}
	if err := checkLabels(op, n.Labels); err != nil {
		return nil, err
	}
	if change.Lease != nil {
		n.Lease = fullLease(r.Lease, change.Lease)
		n.Expires = c.view(b).Expires // where uses have moved it to
	}
	if change.Network != nil {
		if err := within(op, *change.Network, r.most()); err != nil {
			return nil, err
		}
		n.Most, n.Network = new(r.most()), *change.Network
	}
	if err := c.record(ctx, b, n); err != nil {
		return nil, err
	}
	if change.Lease != nil {
		c.setTimers(b, n, false)
	}
	if change.Network != nil && n.State == api.StateRunning {
		if err := c.setNetwork(ctx, b); err != nil {
			return nil, err
		}
	}
	return c.view(b), nil
}

// setNetwork makes a node apply the network rules that are recorded. What fails is reconciliation's to do again: nodes tell what they apply.
func (c *Control) setNetwork(ctx context.Context, b *box) error {
	r := b.rec.Load()
	p, err := c.hostOf("set network", r)
	if err != nil {
		return err
	}
	actx, cancel := c.act(ctx)
	defer cancel()
	return p.host.SetNetwork(actx, b.id, r.Epoch, rules(r.Network))
}

// alias says which sandbox an id stands for, when another was promoted over the one that had it.
type alias struct {
	To string `json:"to"`
}

// resolved is the id that an id stands for now.
func (c *Control) resolved(id string) string {
	for range 64 {
		a := c.aliases.get(id)
		if a == nil {
			return id
		}
		id = a.To
	}
	return id
}
