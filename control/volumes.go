package control

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	"agentrun.dev/volume"
)

// maxStored bounds the volumes of a principal.
const maxStored = 1000

// stored is what is recorded of a volume that is there by itself. Pending ones are being made, Gone ones deleted: what a crash leaves of them
// goes.
type stored struct {
	api.StoredVolume
	Pending bool `json:"pending,omitempty"`
	Gone    bool `json:"gone,omitempty"`
}

func storedThing(id string, v *stored) access.Thing {
	t := access.Thing{Kind: "volume", ID: short(id)}
	if v != nil {
		t.ID, t.Owner = v.ID, v.Owner
	}
	return t
}

// CreateVolume makes a volume.
func (c *Control) CreateVolume(ctx context.Context, who *access.Caller, in api.CreateVolume) (*api.StoredVolume, error) {
	const op = "create volume"
	owner := cmp.Or(in.Owner, ownerOf(who))
	if err := c.allow(ctx, who, access.VolumeChange, access.Thing{Kind: "volume", Owner: owner}); err != nil {
		return nil, err
	}
	if c.o.Store == nil {
		return nil, errs.Msg(errs.Unsupported, op, in.Name, "this service has no buckets")
	}
	if err := errorsFirst(checkVolumeName(op, in.Name), checkLabels(op, in.Labels)); err != nil {
		return nil, err
	}
	if in.Size < 0 || in.Size > maxMemory {
		return nil, invalid(op, "size", "%d bytes: want 0 to %d", in.Size, int64(maxMemory))
	}
	id := newID()
	v := &stored{Pending: true, StoredVolume: api.StoredVolume{ID: id, Name: in.Name, Owner: owner, Bucket: "volume-" + id, Size: in.Size, Labels: in.Labels, Created: c.clock.now()}}
	if err := c.addVolume(ctx, v); err != nil {
		return nil, err
	}
	actx, cancel := c.act(ctx)
	defer cancel()
	if _, err := c.o.Store.Create(actx, v.Bucket, bucket.CreateOptions{Attributes: map[string]string{"agentrun.volume.name": in.Name}}); err != nil {
		if derr := c.dropVolume(actx, v); derr != nil {
			c.o.Log.Warn("drop a volume that failed", "volume", id, "err", derr)
		}
		return nil, err
	}
	done := *v
	done.Pending = false
	t := new(txn)
	c.volumes.set(c, t, id, v, &done)
	if err := c.commit(ctx, t); err != nil {
		return nil, err
	}
	return &done.StoredVolume, nil
}

// addVolume records a volume that is to be made, if its owner may have it.
func (c *Control) addVolume(ctx context.Context, v *stored) error {
	c.volumesMu.Lock()
	defer c.volumesMu.Unlock()
	n := 0
	c.volumes.all(func(_ string, o *stored) bool {
		if o.Owner == v.Owner {
			n++
		}
		return true
	})
	if n >= maxStored {
		return errs.Msg(errs.Limit, "create volume", v.Name, fmt.Sprintf("%s has %d volumes already", cmp.Or(v.Owner, "nobody"), n)).WithHint("delete those that aren't needed any more")
	}
	if c.volumeOf(v.Owner, v.Name) != nil {
		return errs.Msg(errs.Exists, "create volume", v.Name, "there is a volume of this name")
	}
	t := new(txn)
	c.volumes.set(c, t, v.ID, nil, v)
	return c.commit(ctx, t)
}

func checkVolumeName(op, name string) error {
	ok := len(name) >= 1 && len(name) <= 128
	for _, r := range []byte(name) {
		ok = ok && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
	}
	if !ok {
		return invalid(op, short(name), "the name of a volume is 1 to 128 of letters, digits, '-', '_' and '.'")
	}
	return nil
}

// volumeOf finds a volume by its name among an owner's, also one that is on its way.
func (c *Control) volumeOf(owner, name string) (found *stored) {
	c.volumes.all(func(_ string, v *stored) bool {
		if v.Owner == owner && v.Name == name && !v.Gone {
			found = v
		}
		return found == nil
	})
	return found
}

// findVolume finds a volume by its id, or by its name among an owner's.
func (c *Control) findVolume(ctx context.Context, who *access.Caller, verb access.Verb, op, owner, id string) (*stored, error) {
	v := c.volumes.get(id)
	if v == nil {
		v = c.volumeOf(owner, id)
	}
	if v != nil && (v.Pending || v.Gone) {
		v = nil
	}
	if err := c.allow(ctx, who, verb, storedThing(id, v)); err != nil {
		return nil, err
	}
	if v == nil {
		return nil, errs.Msg(errs.NotFound, op, short(id), "there is no volume of this id or name")
	}
	return v, nil
}

// shownStored is a volume as callers see it.
func (c *Control) shownStored(v *stored, mounted map[string][]string) *api.StoredVolume {
	out := v.StoredVolume
	out.Sandboxes = mounted[v.Bucket]
	return &out
}

// mountedBy are the ids of sandboxes that haven't ended, by the buckets that were mounted for them.
func (c *Control) mountedBy() map[string][]string {
	out := map[string][]string{}
	for _, b := range c.index.list() {
		r := b.rec.Load()
		for i, m := range r.Mounts {
			if m.Bucket != "" && r.live() && !slices.ContainsFunc(r.Mounts[:i], func(o volume.Spec) bool { return o.Bucket == m.Bucket }) {
				out[m.Bucket] = append(out[m.Bucket], b.id)
			}
		}
	}
	for _, ids := range out {
		slices.Sort(ids)
	}
	return out
}

// Volume returns a volume.
func (c *Control) Volume(ctx context.Context, who *access.Caller, id string) (*api.StoredVolume, error) {
	v, err := c.findVolume(ctx, who, access.VolumeGet, "find volume", ownerOf(who), id)
	if err != nil {
		return nil, err
	}
	return c.shownStored(v, c.mountedBy()), nil
}

// Volumes lists volumes, oldest first.
func (c *Control) Volumes(ctx context.Context, who *access.Caller, p Page) (*api.StoredVolumes, error) {
	if err := c.allow(ctx, who, access.VolumeGet, access.Thing{Kind: "volume"}); err != nil {
		return nil, err
	}
	var list []*stored
	c.volumes.all(func(id string, v *stored) bool {
		if !v.Pending && !v.Gone && c.o.Guard.Sees(who, storedThing(id, v)) {
			list = append(list, v)
		}
		return true
	})
	slices.SortFunc(list, func(a, b *stored) int { return cmp.Compare(a.ID, b.ID) })
	page, next, err := pageOf(p, list, func(v *stored) string { return v.ID })
	if err != nil {
		return nil, err
	}
	out := &api.StoredVolumes{Volumes: []api.StoredVolume{}, Next: next}
	mounted := c.mountedBy()
	for _, v := range page {
		out.Volumes = append(out.Volumes, *c.shownStored(v, mounted))
	}
	return out, nil
}

// UseVolume finds a volume whose files the caller is about to read, or also write, by its bucket.
func (c *Control) UseVolume(ctx context.Context, who *access.Caller, id string, write bool) (*api.StoredVolume, error) {
	verb := access.VolumeGet
	if write {
		verb = access.VolumeChange
	}
	v, err := c.findVolume(ctx, who, verb, "use volume", ownerOf(who), id)
	if err != nil {
		return nil, err
	}
	return &v.StoredVolume, nil
}

// DeleteVolume deletes a volume with what it holds. While a sandbox that hasn't ended has it mounted, it is errs.NotEmpty.
func (c *Control) DeleteVolume(ctx context.Context, who *access.Caller, id string) error {
	const op = "delete volume"
	v, err := c.findVolume(ctx, who, access.VolumeChange, op, ownerOf(who), id)
	if err != nil {
		return err
	}
	gone := *v
	gone.Gone = true
	if err := c.condemn(ctx, op, v, &gone); err != nil {
		return err
	}
	actx, cancel := c.act(ctx)
	defer cancel()
	return c.dropVolume(actx, &gone)
}

// condemn records that a volume goes, at a moment when nobody mounts it: from then on, nobody can.
func (c *Control) condemn(ctx context.Context, op string, v, gone *stored) error {
	c.volumesMu.Lock()
	defer c.volumesMu.Unlock()
	if by := c.mountedBy()[v.Bucket]; len(by) > 0 {
		return errs.Msg(errs.NotEmpty, op, v.Name, fmt.Sprintf("%d sandboxes have it mounted, %s among them", len(by), by[0])).WithHint("end them first")
	}
	t := new(txn)
	c.volumes.set(c, t, v.ID, v, gone)
	return c.commit(ctx, t)
}

// dropVolume deletes the bucket of a volume that goes, or wasn't made, and forgets it.
func (c *Control) dropVolume(ctx context.Context, v *stored) error {
	if c.o.Store != nil {
		if err := c.o.Store.Delete(ctx, v.Bucket, bucket.DeleteOptions{Force: true}); err != nil && !errs.Is(err, errs.NotFound) {
			return err
		}
	}
	t := new(txn)
	t.b.Reclaim = true
	c.volumes.set(c, t, v.ID, v, nil)
	return c.commit(ctx, t)
}

// mendVolumes deletes what a crash left of volumes that were being made or deleted.
func (c *Control) mendVolumes(ctx context.Context) {
	var list []*stored
	c.volumes.all(func(_ string, v *stored) bool {
		if v.Gone || v.Pending && v.Created.Before(c.opened) {
			list = append(list, v)
		}
		return true
	})
	for _, v := range list {
		if err := c.dropVolume(ctx, v); err != nil {
			c.o.Log.Warn("drop a volume", "volume", v.ID, "err", err)
		}
	}
}

// checkMounts refuses mounts that no sandbox can have.
func checkMounts(op string, list []api.VolumeMount) error {
	if len(list) > api.MaxVolumeMounts {
		return invalid(op, "volumes", "%d: want at most %d", len(list), api.MaxVolumeMounts)
	}
	for i, m := range list {
		if !path.IsAbs(m.Path) || path.Clean(m.Path) != strings.TrimSuffix(m.Path, "/") || len(m.Path) > 4096 || strings.ContainsRune(m.Path, 0) {
			return invalid(op, short(m.Path), "a volume is mounted at a path that is absolute, without '.', '..' and '//', and not the root")
		}
		for _, o := range list[:i] {
			if path.Clean(o.Path) == path.Clean(m.Path) {
				return invalid(op, short(m.Path), "two volumes are to be mounted there")
			}
		}
	}
	return nil
}

// volumesFor are the volumes that a request names, for whom a sandbox is; has are the mounts that it gets anyway.
func (c *Control) volumesFor(ctx context.Context, who *access.Caller, o *order, has []volume.Spec) ([]volume.Spec, error) {
	var out []volume.Spec
	for i, m := range o.req.Volumes {
		verb := access.VolumeChange
		if m.ReadOnly {
			verb = access.VolumeGet
		}
		v, err := c.findVolume(ctx, who, verb, o.op, o.owner, m.Volume)
		if err != nil {
			return nil, err
		}
		at := path.Clean(m.Path)
		taken := at == "/workspace" || slices.ContainsFunc(has, func(s volume.Spec) bool { return cmp.Or(s.Path, "/"+s.Name) == at }) ||
			slices.ContainsFunc(o.template.Spec.Volumes, func(t api.Volume) bool { return cmp.Or(t.Path, "/"+t.Name) == at })
		if taken {
			return nil, invalid(o.op, at, "there is another volume at this path")
		}
		out = append(out, volume.Spec{Name: fmt.Sprintf("volume-%d", i+1), Path: at, Policy: volume.Share, ReadOnly: m.ReadOnly, Bucket: v.Bucket, Size: v.Size})
	}
	return out, nil
}

// commitMounted is commit of a transition by which a sandbox has volumes mounted. One that was deleted meanwhile is errs.NotFound.
func (c *Control) commitMounted(ctx context.Context, t *txn, r *record) error {
	if !slices.ContainsFunc(r.Mounts, func(m volume.Spec) bool { return storedID(m.Bucket) != "" }) {
		return c.commit(ctx, t)
	}
	c.volumesMu.RLock()
	defer c.volumesMu.RUnlock()
	for _, m := range r.Mounts {
		id := storedID(m.Bucket)
		if id == "" {
			continue
		}
		if v := c.volumes.get(id); v == nil || v.Gone {
			return errs.Msg(errs.NotFound, "mount volume", id, "it was deleted")
		}
	}
	return c.commit(ctx, t)
}

// storedID is the id of the volume that a bucket holds, if it is one's.
func storedID(bucket string) string {
	id, ok := strings.CutPrefix(bucket, "volume-")
	if !ok || len(id) != 36 {
		return ""
	}
	return id
}
