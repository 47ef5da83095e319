package control

import "agentrun.dev/api"

// Glance returns a sandbox that is somebody's and hasn't ended, by its id or name, or nil. It asks nobody whether the caller may: it is for
// those who must know how a sandbox was made before they know who asks, and what it tells isn't for the caller.
func (c *Control) Glance(id string) *api.Sandbox {
	b := c.box(c.idOf(id))
	if b == nil || !shown(b.rec.Load()) {
		return nil
	}
	return c.view(b)
}

// Glances returns all that fit, in no order, as Glance does. fit must be quick, and not keep what it is given.
func (c *Control) Glances(fit func(*api.Sandbox) bool) []*api.Sandbox {
	var out []*api.Sandbox
	for _, b := range c.index.list() {
		if r := b.rec.Load(); shown(r) && fit(&r.Sandbox) {
			out = append(out, c.view(b))
		}
	}
	return out
}

// shown reports whether a sandbox is somebody's and hasn't ended.
func shown(r *record) bool {
	switch r.State {
	case api.StateStarting, api.StateRunning, api.StateHibernating, api.StateHibernated, api.StateResuming:
		return r.claimed()
	}
	return false
}
