package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	"agentrun.dev/node"
)

// snapshot is what is recorded of a snapshot. Pending ones are being taken, Gone ones deleted: what a crash leaves of them goes.
type snapshot struct {
	api.SandboxSnapshot
	Node    string            `json:"node"`
	Image   string            `json:"image,omitempty"` // on the node, of one with memory
	Names   map[string]string `json:"names,omitempty"` // of volumes, by path
	Pending bool              `json:"pending,omitempty"`
	Gone    bool              `json:"gone,omitempty"`
}

// volume is the name of a volume of a snapshot.
func (n *snapshot) volume(path string) string {
	if name := n.Names[path]; name != "" {
		return name
	}
	return cmp.Or(strings.ReplaceAll(strings.Trim(path, "/"), "/", "-"), "root")
}

// engine is that of the sandbox. Records of before there were several don't name it.
func (n *snapshot) engine() string { return cmp.Or(n.Engine, api.Userspace) }

// shown is the snapshot as callers see it.
func (n *snapshot) shown() api.SandboxSnapshot {
	out := n.SandboxSnapshot
	out.Engine = n.engine()
	return out
}

func snapshotPrefix(id string) string { return "snap-" + id }

// maxSnapshots bounds the snapshots with memory that a principal has: each holds as much of its node's disk.
const maxSnapshots = 1000

// snapshotOf is the id of the snapshot that an image on a node is of, which Capture made; empty if it isn't. Templates' images have an '@'.
func snapshotOf(image string) string {
	if id, ok := strings.CutPrefix(image, snapshotPrefix("")); ok && !strings.Contains(id, "@") {
		return id
	}
	return ""
}

func snapshotThing(id string, n *snapshot) access.Thing {
	t := access.Thing{Kind: "snapshot", ID: short(id)}
	if n != nil {
		t.Owner = n.Owner
	}
	return t
}

// TakeSnapshot keeps the files of all durable volumes of a sandbox, at one instant, in buckets of their own; with Memory, its processes and
// all else, too.
func (c *Control) TakeSnapshot(ctx context.Context, who *access.Caller, id string, s api.TakeSandboxSnapshot) (*api.SandboxSnapshot, error) {
	const op = "take snapshot"
	b, err := c.findLive(ctx, who, access.SandboxChange, op, id)
	if err != nil {
		return nil, err
	}
	if len(s.Name) > 255 || strings.ContainsAny(s.Name, "\x00\n") {
		return nil, invalid(op, short(s.Name), "a name has at most 255 bytes and no line breaks")
	}
	if s.Kill && !s.Memory {
		return nil, invalid(op, "kill", "processes are copied only into a snapshot with memory")
	}
	owner := cmp.Or(ownerOf(who), b.rec.Load().Owner)
	if s.Memory && c.captures(owner) >= maxSnapshots {
		return nil, errs.Msg(errs.Limit, op, b.id, fmt.Sprintf("there are %d snapshots with memory of this owner's already", maxSnapshots)).WithHint("delete those that aren't needed any more")
	}
	p, err := c.enter(ctx, b, op)
	if err != nil {
		return nil, err
	}
	defer b.leave()
	r := b.rec.Load()
	n := &snapshot{Node: r.Node, Pending: true, Names: map[string]string{}, SandboxSnapshot: api.SandboxSnapshot{ID: newID(), Name: s.Name, Sandbox: r.ID,
		Template: r.Template, Version: r.Version, Engine: r.Engine, Owner: owner, Buckets: map[string]string{}, Created: c.clock.now(), Memory: s.Memory}}
	if s.Memory {
		n.Image = snapshotPrefix(n.ID)
	}
	for _, v := range r.Volumes {
		n.Names[v.Path] = v.Name
		if v.Bucket != "" {
			n.Buckets[v.Path] = snapshotPrefix(n.ID) + "-" + v.Name // as they will be called: to be found after a crash
		}
	}
	t := new(txn)
	c.snapshots.set(c, t, n.ID, nil, n)
	if err := c.commit(ctx, t); err != nil {
		return nil, err
	}
	actx, cancel := c.act(ctx)
	defer cancel()
	var buckets map[string]string
	if s.Memory {
		buckets, err = p.host.Capture(actx, b.id, node.Capture{Image: n.Image, Prefix: snapshotPrefix(n.ID), Kill: s.Kill})
	} else {
		buckets, err = p.host.Snapshot(actx, b.id, snapshotPrefix(n.ID))
	}
	if err != nil {
		if derr := c.dropSnapshot(actx, n); derr != nil {
			c.o.Log.Warn("drop a snapshot that failed", "snapshot", n.ID, "err", derr)
		}
		return nil, err
	}
	done := *n
	done.Pending, done.Buckets = false, buckets
	t = new(txn)
	c.snapshots.set(c, t, n.ID, n, &done)
	if err := c.commit(ctx, t); err != nil {
		return nil, err
	}
	return &done.SandboxSnapshot, nil
}

// captures counts the snapshots with memory that an owner has.
func (c *Control) captures(owner string) (count int) {
	c.snapshots.all(func(_ string, n *snapshot) bool {
		if n.Image != "" && n.Owner == owner {
			count++
		}
		return true
	})
	return count
}

// findSnapshot finds a snapshot for a caller.
func (c *Control) findSnapshot(ctx context.Context, who *access.Caller, v access.Verb, op, id string) (*snapshot, error) {
	n := c.snapshots.get(id)
	if n != nil && (n.Pending || n.Gone) {
		n = nil
	}
	if err := c.allow(ctx, who, v, snapshotThing(id, n)); err != nil {
		return nil, err
	}
	if n == nil {
		return nil, errs.Msg(errs.NotFound, op, short(id), "there is no snapshot of this id")
	}
	return n, nil
}

// Snapshot returns a snapshot.
func (c *Control) Snapshot(ctx context.Context, who *access.Caller, id string) (*api.SandboxSnapshot, error) {
	n, err := c.findSnapshot(ctx, who, access.SnapshotGet, "find snapshot", id)
	if err != nil {
		return nil, err
	}
	out := n.shown()
	return &out, nil
}

// Snapshots lists snapshots, oldest first; those of a sandbox where one is named, also one that has ended.
func (c *Control) Snapshots(ctx context.Context, who *access.Caller, sandbox string, p Page) (*api.SandboxSnapshots, error) {
	if err := c.allow(ctx, who, access.SnapshotGet, access.Thing{Kind: "snapshot"}); err != nil {
		return nil, err
	}
	if sandbox != "" {
		sandbox = c.idOf(sandbox)
	}
	var list []*snapshot
	c.snapshots.all(func(id string, n *snapshot) bool {
		if !n.Pending && !n.Gone && (sandbox == "" || c.resolved(n.Sandbox) == sandbox) && c.o.Guard.Sees(who, snapshotThing(id, n)) {
			list = append(list, n)
		}
		return true
	})
	slices.SortFunc(list, func(a, b *snapshot) int { return cmp.Compare(a.ID, b.ID) })
	page, next, err := pageOf(p, list, func(n *snapshot) string { return n.ID })
	if err != nil {
		return nil, err
	}
	out := &api.SandboxSnapshots{Snapshots: []api.SandboxSnapshot{}, Next: next}
	for _, n := range page {
		out.Snapshots = append(out.Snapshots, n.shown())
	}
	return out, nil
}

// DeleteSnapshot deletes a snapshot with its buckets. Sandboxes that came from it go on.
func (c *Control) DeleteSnapshot(ctx context.Context, who *access.Caller, id string) error {
	n, err := c.findSnapshot(ctx, who, access.SnapshotChange, "delete snapshot", id)
	if err != nil {
		return err
	}
	return c.dropSnapshot(ctx, n)
}

// dropSnapshot records that a snapshot goes, deletes its image and buckets and forgets it. On a node that isn't there, the image is one
// that nothing needs when it returns.
func (c *Control) dropSnapshot(ctx context.Context, n *snapshot) error {
	if !n.Gone {
		gone := *n
		gone.Gone = true
		t := new(txn)
		c.snapshots.set(c, t, n.ID, n, &gone)
		if err := c.commit(ctx, t); err != nil {
			return err
		}
		n = &gone
	}
	if p := c.peer(n.Node); n.Image != "" && p != nil && p.up() {
		if err := p.host.DropImage(ctx, n.Image); err != nil && !errs.Is(err, errs.Unavailable) {
			return err
		}
	}
	for _, name := range n.Buckets {
		if c.o.Store == nil {
			break
		}
		if err := c.o.Store.Delete(ctx, name, bucket.DeleteOptions{Force: true}); err != nil && !errs.Is(err, errs.NotFound) {
			return err
		}
	}
	t := new(txn)
	t.b.Reclaim = true
	c.snapshots.set(c, t, n.ID, n, nil)
	return c.commit(ctx, t)
}

// mendSnapshots deletes what a crash left of snapshots that were being taken or deleted.
func (c *Control) mendSnapshots(ctx context.Context) {
	var list []*snapshot
	c.snapshots.all(func(_ string, n *snapshot) bool {
		if n.Gone || n.Pending && n.Created.Before(c.opened) {
			list = append(list, n)
		}
		return true
	})
	for _, n := range list {
		if err := c.dropSnapshot(ctx, n); err != nil {
			c.o.Log.Warn("drop a snapshot", "snapshot", n.ID, "err", err)
		}
	}
}
