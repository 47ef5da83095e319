package control

import (
	"context"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// Credentials returns S3 keys for the buckets of a sandbox and nothing else: the same again, until the sandbox ends. They are made when they
// are first asked for.
func (c *Control) Credentials(ctx context.Context, who *access.Caller, id string) (*api.Credentials, error) {
	const op = "make credentials"
	b, err := c.findLive(ctx, who, access.SandboxChange, op, id)
	if err != nil {
		return nil, err
	}
	if c.o.Store == nil {
		return nil, errs.Msg(errs.Unsupported, op, id, "this service has no buckets")
	}
	if err := b.take(ctx); err != nil {
		return nil, err
	}
	defer b.give()
	r := b.rec.Load()
	if !r.live() || r.State == api.StateEnding || r.State == api.StateWarm {
		return nil, stateError(op, r)
	}
	k, err := c.keyOf(ctx, b)
	if err != nil {
		return nil, err
	}
	out := &api.Credentials{AccessKeyID: k.ID, SecretAccessKey: k.Secret, Buckets: map[string]string{}, Expires: k.Expires}
	for _, v := range r.Volumes {
		if v.Bucket != "" {
			out.Buckets[v.Path] = v.Bucket
		}
	}
	if c.o.S3 != nil {
		out.Endpoint, out.Region = c.o.S3()
	}
	return out, nil
}

// keyOf finds a sandbox's key, or makes it. The caller has the sandbox's turn.
func (c *Control) keyOf(ctx context.Context, b *box) (*access.Key, error) {
	const op = "make credentials"
	r := b.rec.Load()
	if r.Key != "" {
		k, err := c.o.Keys.Get(ctx, r.Key)
		if !errs.Is(err, errs.Unauthorized) {
			return k, err
		}
	}
	var grants []access.Grant
	for _, v := range r.Volumes {
		if v.Bucket == "" {
			continue
		}
		i, err := c.o.Store.Info(ctx, v.Bucket)
		if p := c.peer(r.Node); errs.Is(err, errs.NotFound) && p != nil && !p.local {
			return nil, errs.Msg(errs.Unsupported, op, b.id, "its buckets are on the node "+r.Node+", which has a store of its own")
		}
		if err != nil {
			return nil, err
		}
		grants = append(grants, access.Grant{Bucket: i.ID, Name: i.Name, Write: !v.ReadOnly})
	}
	if len(grants) == 0 {
		return nil, errs.Msg(errs.Conflict, op, b.id, "it has no buckets")
	}
	// A key whose id isn't recorded, because of a crash, still ends with the sandbox: it is found by that.
	k, err := c.o.Keys.Create(ctx, c.newKey(r, grants))
	if err != nil {
		return nil, err
	}
	n := r.clone()
	n.Key = k.ID
	if err := c.record(ctx, b, n); err != nil {
		c.revoke(ctx, r)
		return nil, err
	}
	return k, nil
}
