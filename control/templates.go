package control

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

// head is what is known of a template beside its versions.
type head struct {
	Name   string     `json:"name"`
	Latest int        `json:"latest"`
	Owner  string     `json:"owner,omitempty"`
	Labels api.Labels `json:"labels,omitempty"`
	// Gone: it was deleted. The head stays, so that versions, and with them images on nodes, never have the same name again.
	Gone bool `json:"gone,omitempty"`
}

// head finds a template, or returns nil.
func (c *Control) head(name string) *head {
	if h := c.heads.get(name); h != nil && !h.Gone {
		return h
	}
	return nil
}

func imageOf(template string, version int) string { return template + "@" + strconv.Itoa(version) }

// versionKey names a version in its table; it sorts by number.
func versionKey(template string, version int) string {
	return fmt.Sprintf("%s/%010d", template, version)
}

func templateThing(name, owner string) access.Thing {
	return access.Thing{Kind: "template", ID: name, Owner: owner, Visibility: api.All}
}

func noTemplate(op, name string) error {
	return errs.Msg(errs.NotFound, op, short(name), "there is no template of this name")
}

// CreateTemplate makes a template whose name isn't taken, and begins to build it.
func (c *Control) CreateTemplate(ctx context.Context, who *access.Caller, t api.CreateTemplate) (*api.Template, error) {
	const op = "create template"
	if c.head(t.Name) != nil {
		if err := c.allow(ctx, who, access.TemplateChange, templateThing(t.Name, "")); err != nil {
			return nil, err
		}
		return nil, errs.Msg(errs.Exists, op, t.Name, "there is a template of this name")
	}
	made, _, err := c.putTemplate(ctx, who, op, t.Name, t.Spec, t.Labels, true)
	return made, err
}

// PutTemplate makes a template, or a new version of it if the spec differs from the newest. Labels that are nil stay.
func (c *Control) PutTemplate(ctx context.Context, who *access.Caller, name string, spec api.TemplateSpec, labels api.Labels) (t *api.Template, changed bool, err error) {
	return c.putTemplate(ctx, who, "put template", name, spec, labels, false)
}

func (c *Control) putTemplate(ctx context.Context, who *access.Caller, op, name string, spec api.TemplateSpec, labels api.Labels, create bool) (t *api.Template, changed bool, err error) {
	if err := checkName(op, "template", name); err != nil {
		return nil, false, err
	}
	thing := templateThing(name, ownerOf(who))
	if h := c.head(name); h != nil {
		thing.Owner = h.Owner
	}
	if err := c.allow(ctx, who, access.TemplateChange, thing); err != nil {
		return nil, false, err
	}
	if err := errorsFirst(checkSpec(op, &spec), checkLabels(op, labels)); err != nil {
		return nil, false, err
	}
	image, err := c.resolve(ctx, who, &spec)
	if err != nil {
		return nil, false, err
	}
	for _, v := range spec.Volumes {
		if v.Source.Bucket != "" {
			if err := c.mayUseBucket(ctx, who, v.Source.Bucket); err != nil {
				return nil, false, err
			}
		}
	}
	if spec.Language == "" && image.language != "" {
		spec.Language = image.language
	}
	err = again(func() error {
		t, changed, err = c.addVersion(ctx, op, name, ownerOf(who), spec, labels, image.note, create)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	return c.shownTemplate(t), changed, nil
}

// addVersion records a version, unless it would be the same as the newest.
func (c *Control) addVersion(ctx context.Context, op, name, owner string, spec api.TemplateSpec, labels api.Labels, note string, create bool) (*api.Template, bool, error) {
	was := c.heads.get(name)
	next := &head{Name: name, Owner: owner, Labels: labels}
	if was != nil && was.Gone {
		next.Latest = was.Latest
	} else if was != nil {
		if create {
			return nil, false, errs.Msg(errs.Exists, op, name, "there is a template of this name")
		}
		*next = *was
		if labels != nil {
			next.Labels = labels
		}
		if last := c.versions.get(versionKey(name, was.Latest)); last != nil && sameJSON(last.Spec, spec) {
			if sameJSON(next.Labels, was.Labels) {
				return last, false, nil
			}
			t := new(txn)
			c.heads.set(c, t, name, was, next)
			return last, true, c.commit(ctx, t)
		}
	}
	if err := c.servable(op, name, &spec); err != nil {
		return nil, false, err
	}
	next.Latest++
	v := &api.Template{Name: name, Version: next.Latest, Spec: spec, State: api.BuildQueued, Owner: next.Owner, Created: c.clock.now()}
	if note != "" {
		v.Notes = []string{note}
	}
	t := new(txn)
	c.heads.set(c, t, name, was, next)
	c.versions.set(c, t, versionKey(name, v.Version), nil, v)
	if err := c.commit(ctx, t); err != nil {
		return nil, false, err
	}
	c.builds.kick()
	return v, true, nil
}

func sameJSON(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

func errorsFirst(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}

// shownTemplate is a version with what its head says.
func (c *Control) shownTemplate(v *api.Template) *api.Template {
	out := *v
	if h := c.head(v.Name); h != nil {
		out.Labels, out.Latest = h.Labels, h.Latest == v.Version
	}
	if p, ok := c.builds.progress(imageOf(v.Name, v.Version)); ok && out.State == api.BuildRunning {
		out.Progress = p
	}
	return &out
}

// version finds a version; 0 is the newest.
func (c *Control) version(op, name string, version int) (*api.Template, error) {
	h := c.head(name)
	if h == nil {
		return nil, noTemplate(op, name)
	}
	if version == 0 {
		version = h.Latest
	}
	v := c.versions.get(versionKey(name, version))
	if v == nil {
		return nil, errs.Msg(errs.NotFound, op, name, fmt.Sprintf("there is no version %d of this template", version))
	}
	return v, nil
}

// ready finds the newest version of a template that is built, or nil.
func (c *Control) ready(name string) *api.Template {
	h := c.head(name)
	if h == nil {
		return nil
	}
	for n := h.Latest; n > 0; n-- {
		if v := c.versions.get(versionKey(name, n)); v != nil && v.State == api.BuildReady {
			return v
		}
	}
	return nil
}

// Template returns a version of a template; 0 is the newest.
func (c *Control) Template(ctx context.Context, who *access.Caller, name string, version int) (*api.Template, error) {
	const op = "find template"
	v, err := c.version(op, name, version)
	owner := ""
	if v != nil {
		owner = v.Owner
	}
	if denied := c.allow(ctx, who, access.TemplateGet, templateThing(name, owner)); denied != nil {
		return nil, denied
	}
	if err != nil {
		return nil, err
	}
	return c.shownTemplate(v), nil
}

// pageOf cuts a sorted list to a page: what comes after the cursor, and the next cursor.
func pageOf[T any](p Page, list []T, name func(T) string) ([]T, string, error) {
	if p.Limit < 0 || p.Limit > api.MaxPage {
		return nil, "", invalid("list", "limit", "want 1 to %d", api.MaxPage)
	}
	if p.Limit == 0 {
		p.Limit = api.DefaultPage
	}
	if p.Cursor != "" {
		i, found := slices.BinarySearchFunc(list, p.Cursor, func(e T, k string) int { return cmp.Compare(name(e), k) })
		if found {
			i++
		}
		list = list[i:]
	}
	if len(list) > p.Limit {
		return list[:p.Limit], name(list[p.Limit-1]), nil
	}
	return list, "", nil
}

// Templates lists the newest versions, by name.
func (c *Control) Templates(ctx context.Context, who *access.Caller, p Page) (*api.Templates, error) {
	if err := c.allow(ctx, who, access.TemplateGet, access.Thing{Kind: "template", Visibility: api.All}); err != nil {
		return nil, err
	}
	var list []*head
	c.heads.all(func(_ string, h *head) bool {
		if !h.Gone && c.o.Guard.Sees(who, templateThing(h.Name, h.Owner)) {
			list = append(list, h)
		}
		return true
	})
	slices.SortFunc(list, func(a, b *head) int { return cmp.Compare(a.Name, b.Name) })
	page, next, err := pageOf(p, list, func(h *head) string { return h.Name })
	if err != nil {
		return nil, err
	}
	out := &api.Templates{Templates: []api.Template{}, Next: next}
	for _, h := range page {
		if v := c.versions.get(versionKey(h.Name, h.Latest)); v != nil {
			out.Templates = append(out.Templates, *c.shownTemplate(v))
		}
	}
	return out, nil
}

// TemplateVersions lists the versions of a template, oldest first.
func (c *Control) TemplateVersions(ctx context.Context, who *access.Caller, name string, p Page) (*api.Templates, error) {
	if _, err := c.Template(ctx, who, name, 0); err != nil {
		return nil, err
	}
	var list []*api.Template
	c.versions.all(func(k string, v *api.Template) bool {
		if v.Name == name {
			list = append(list, v)
		}
		return true
	})
	id := func(v *api.Template) string { return fmt.Sprintf("%010d", v.Version) }
	slices.SortFunc(list, func(a, b *api.Template) int { return cmp.Compare(a.Version, b.Version) })
	page, next, err := pageOf(p, list, id)
	if err != nil {
		return nil, err
	}
	out := &api.Templates{Templates: []api.Template{}, Next: next}
	for _, v := range page {
		out.Templates = append(out.Templates, *c.shownTemplate(v))
	}
	return out, nil
}

// DeleteTemplate forgets a template with all its versions. Sandboxes that came from it go on; a pool of it is in the way.
func (c *Control) DeleteTemplate(ctx context.Context, who *access.Caller, name string) error {
	const op = "delete template"
	h := c.head(name)
	thing := templateThing(name, "")
	if h != nil {
		thing.Owner = h.Owner
	}
	if err := c.allow(ctx, who, access.TemplateChange, thing); err != nil {
		return err
	}
	return again(func() error {
		h := c.head(name)
		if h == nil {
			return noTemplate(op, name)
		}
		if pool := c.poolOf(name); pool != "" {
			return errs.Msg(errs.NotEmpty, op, name, "the pool "+pool+" is of this template").WithHint("delete the pool first")
		}
		t := new(txn)
		c.heads.set(c, t, name, h, &head{Name: name, Latest: h.Latest, Gone: true})
		for n := 1; n <= h.Latest; n++ {
			k := versionKey(name, n)
			if v := c.versions.get(k); v != nil {
				c.versions.set(c, t, k, v, nil)
				r := under(kindLog, k)
				t.b.DeleteRange(r.Start, r.End)
			}
		}
		if err := c.commit(ctx, t); err != nil {
			return err
		}
		c.builds.cancel(name)
		c.kick() // images that nothing needs any more are dropped
		return nil
	})
}

// poolOf names a pool of a template, if there is one.
func (c *Control) poolOf(template string) (name string) {
	c.pools.all(func(n string, p *pool) bool {
		if p.Spec.Template == template {
			name = n
		}
		return name == ""
	})
	return name
}

// Rebuild makes a new version with the spec of the newest, and builds it: what init fetches may have changed.
func (c *Control) Rebuild(ctx context.Context, who *access.Caller, name string) (*api.Template, error) {
	const op = "rebuild template"
	v, err := c.version(op, name, 0)
	thing := templateThing(name, "")
	if v != nil {
		thing.Owner = v.Owner
	}
	if denied := c.allow(ctx, who, access.TemplateChange, thing); denied != nil {
		return nil, denied
	}
	if err != nil {
		return nil, err
	}
	err = again(func() error {
		was := c.head(name)
		if was == nil {
			return noTemplate(op, name)
		}
		last := c.versions.get(versionKey(name, was.Latest))
		next := *was
		next.Latest++
		v = &api.Template{Name: name, Version: next.Latest, Spec: last.Spec, Notes: last.Notes, State: api.BuildQueued, Owner: was.Owner, Created: c.clock.now()}
		t := new(txn)
		c.heads.set(c, t, name, was, &next)
		c.versions.set(c, t, versionKey(name, v.Version), nil, v)
		return c.commit(ctx, t)
	})
	if err != nil {
		return nil, err
	}
	c.builds.kick()
	return c.shownTemplate(v), nil
}

// BuildLog calls line for each line of a build's log; with follow, until the build has ended. Version 0 is the newest.
func (c *Control) BuildLog(ctx context.Context, who *access.Caller, name string, version int, follow bool, line func(api.BuildLine) error) error {
	v, err := c.Template(ctx, who, name, version)
	if err != nil {
		return err
	}
	k := versionKey(name, v.Version)
	var after uint64
	for {
		changed := c.builds.watch()
		now := c.versions.get(k)
		var lines []api.BuildLine // whoever reads them may be slow: the scan mustn't wait
		r := under(kindLog, k)
		r.Start = key(kindLog, k, number(after+1))
		err := c.o.KV.Scan(ctx, r, func(at, raw []byte) error {
			var l api.BuildLine
			if err := decode(at, raw, &l); err != nil {
				return err
			}
			after = seqOf(at)
			if lines = append(lines, l); len(lines) == api.MaxPage {
				return kv.Stop
			}
			return nil
		})
		if err != nil {
			return errs.New(errs.KindOf(err), "read log", name, err)
		}
		for _, l := range lines {
			if err := line(l); err != nil {
				return err
			}
		}
		if len(lines) > 0 {
			continue
		}
		if !follow || now == nil || now.State == api.BuildReady || now.State == api.BuildFailed {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return errs.New(errs.Canceled, "follow log", name, ctx.Err())
		case <-c.closing:
			return errs.Msg(errs.Unavailable, "follow log", name, "the service is ending")
		}
	}
}

// wants reports whether an image is of a version that sandboxes may still be started from.
func (c *Control) wants(image string) bool {
	if id := snapshotOf(image); id != "" {
		n := c.snapshots.get(id)
		return n != nil && !n.Gone
	}
	name, text, ok := strings.Cut(image, "@")
	version, err := strconv.Atoi(text)
	if !ok || err != nil {
		return true // not ours to judge
	}
	for _, b := range c.index.list() { // after a crash of their node they start from it again
		if b.rec.Load().Image == image {
			return true
		}
	}
	v := c.versions.get(versionKey(name, version))
	if v == nil {
		return false
	}
	if v.State != api.BuildReady {
		return true
	}
	newest := c.ready(name)
	return newest == nil || newest.Version == version || c.snapshotsNeed(name, version)
}

// snapshotsNeed reports whether a snapshot is of a version: sandboxes may be started from it.
func (c *Control) snapshotsNeed(name string, version int) (needed bool) {
	c.snapshots.all(func(_ string, n *snapshot) bool {
		needed = n.Template == name && n.Version == version
		return !needed
	})
	return needed
}
