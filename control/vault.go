package control

import (
	"context"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// What follows is all that control asks of package access beside decisions.

func (c *Control) sealer() *access.Sealer { return c.o.Keys.Sealer() }

// chain is a principal, the one on whose behalf it acts, and so on. One that was deleted stands alone.
func (c *Control) chain(ctx context.Context, name string) ([]*api.Principal, error) {
	if name == "" {
		return nil, nil
	}
	list, err := c.o.Keys.Chain(ctx, name)
	if errs.Is(err, errs.NotFound) {
		return []*api.Principal{{Name: name}}, nil
	}
	return list, err
}

// newKey is the key of a sandbox. It is the sandbox's own, and ends with it.
func (c *Control) newKey(r *record, grants []access.Grant) access.NewKey {
	return access.NewKey{Name: "sandbox " + r.ID, Grants: grants, Sandbox: r.ID}
}

// revoke ends the keys that were made for a sandbox.
func (c *Control) revoke(ctx context.Context, r *record) {
	if err := c.o.Keys.RevokeSandbox(ctx, r.ID); err != nil && !errs.Is(err, errs.NotFound) {
		c.o.Log.Warn("revoke the keys of a sandbox", "sandbox", r.ID, "err", err)
	}
}
