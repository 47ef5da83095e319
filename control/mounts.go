package control

import (
	"cmp"
	"context"
	"slices"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	"agentrun.dev/volume"
)

// mountsName is the one record of its kind.
const mountsName = "all"

// Mounts says what stands behind the mounts that templates may name.
func (c *Control) Mounts(ctx context.Context, who *access.Caller) (*api.Mounts, error) {
	if err := c.allow(ctx, who, access.MountGet, access.Thing{Kind: "mount"}); err != nil {
		return nil, err
	}
	if m := c.mounts.get(mountsName); m != nil {
		return m, nil
	}
	return &api.Mounts{}, nil
}

// PutMounts changes what stands behind the mounts, for sandboxes that are claimed from now on.
func (c *Control) PutMounts(ctx context.Context, who *access.Caller, m api.Mounts) (*api.Mounts, error) {
	const op = "put mounts"
	if err := c.allow(ctx, who, access.MountChange, access.Thing{Kind: "mount"}); err != nil {
		return nil, err
	}
	if m.Prefix != "" {
		if err := bucket.CheckName(m.Prefix + "x"); err != nil {
			return nil, invalid(op, short(m.Prefix), "not the beginning of a bucket's name")
		}
	}
	for _, name := range []string{m.Shared, m.Public} {
		if name == "" {
			continue
		}
		if err := c.mayUseBucket(ctx, who, name); err != nil {
			return nil, err
		}
	}
	if m.Private && c.o.Store == nil {
		return nil, errs.Msg(errs.Unsupported, op, "private", "this service has no buckets")
	}
	err := again(func() error {
		t := new(txn)
		c.mounts.set(c, t, mountsName, c.mounts.get(mountsName), &m)
		return c.commit(ctx, t)
	})
	if err != nil {
		return nil, err
	}
	return &m, nil
}

// mountsFor are the volumes that a sandbox of an owner gets beside those of its template.
func (c *Control) mountsFor(ctx context.Context, owner string, t *api.Template) ([]volume.Spec, error) {
	m := c.mounts.get(mountsName)
	if m == nil {
		m = &api.Mounts{}
	}
	names := t.Spec.Mounts
	all := len(names) == 0 && m.Default
	var out []volume.Spec
	has := func(name string) bool { return all || slices.Contains(names, name) }
	taken := func(path string) bool {
		return slices.ContainsFunc(t.Spec.Volumes, func(v api.Volume) bool { return cmp.Or(v.Path, "/"+v.Name) == path })
	}
	if has("private") && owner != "" && !taken("/private") {
		switch {
		case m.Private:
			name, err := c.privateBucket(ctx, owner, cmp.Or(m.Prefix, "private-"))
			if err != nil {
				return nil, err
			}
			out = append(out, volume.Spec{Name: "private", Path: "/private", Policy: volume.Share, Bucket: name})
		case !all:
			return nil, noMount(t, "private")
		}
	}
	for _, s := range []struct{ name, bucket string }{{"shared", m.Shared}, {"public", m.Public}} {
		path := "/" + s.name
		switch {
		case !has(s.name) || taken(path):
		case s.bucket != "":
			out = append(out, volume.Spec{Name: s.name, Path: path, Policy: volume.Share, ReadOnly: true, Bucket: s.bucket})
		case !all:
			return nil, noMount(t, s.name)
		}
	}
	return out, nil
}

func noMount(t *api.Template, name string) error {
	return errs.Msg(errs.Conflict, "mount", name, "the template "+t.Name+" names this mount, but nothing stands behind it").WithHint("PUT /v1/mounts says what does")
}

// privateBucket finds the private bucket of an owner, or makes it.
func (c *Control) privateBucket(ctx context.Context, owner, prefix string) (string, error) {
	name := prefix + owner
	if c.o.Store == nil {
		return "", errs.Msg(errs.Unsupported, "mount", "private", "this service has no buckets")
	}
	if _, ok := c.privates.Load(name); ok {
		return name, nil
	}
	_, err := c.o.Store.Create(ctx, name, bucket.CreateOptions{})
	if err != nil && !errs.Is(err, errs.Exists) {
		return "", err
	}
	c.privates.Store(name, true)
	return name, nil
}
