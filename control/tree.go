package control

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

// Tree returns a sandbox with all that were forked from it and the caller sees, or its whole tree.
func (c *Control) Tree(ctx context.Context, who *access.Caller, id string, fromRoot bool) (*api.Tree, error) {
	const op = "show tree"
	b, r, err := c.find(ctx, who, access.SandboxGet, op, id)
	if err != nil {
		return nil, err
	}
	if b != nil {
		r = b.rec.Load()
	}
	members, err := c.members(ctx, who, c.resolved(r.Root))
	if err != nil {
		return nil, err
	}
	top := r.ID
	if fromRoot {
		top = c.resolved(r.Root)
		if members[top] == nil {
			return nil, errs.Msg(errs.NotFound, op, id, "the root of its tree isn't known any more, or isn't shown to you")
		}
	}
	members[r.ID] = r
	c.measureAll(ctx, members)
	below := map[string][]string{}
	for k, m := range members {
		if parent := c.resolved(m.Parent); parent != "" && parent != k && k != top {
			below[parent] = append(below[parent], k)
		}
	}
	return c.treeOf(top, members, below, map[string]bool{}), nil
}

// members are the records of a tree that the caller sees, by id.
func (c *Control) members(ctx context.Context, who *access.Caller, root string) (map[string]*record, error) {
	out := map[string]*record{}
	add := func(r *record) {
		if c.o.Guard.Sees(who, r.thing()) {
			out[r.ID] = r
		}
	}
	for _, old := range c.formerly(root) {
		c.index.mu.RLock()
		var ids []string
		for id := range c.index.trees[old] {
			ids = append(ids, id)
		}
		c.index.mu.RUnlock()
		for _, id := range ids {
			if b := c.box(id); b != nil {
				add(b.rec.Load())
			}
		}
		var ended []string
		err := c.o.KV.Scan(ctx, under(kindMember, old), func(k, _ []byte) error {
			ended = append(ended, lastOf(k))
			return nil
		})
		if err != nil {
			return nil, err
		}
		for _, id := range ended {
			raw, err := c.o.KV.Get(ctx, key(kindEnded, id))
			if err != nil || c.resolved(id) != id {
				continue
			}
			r := new(record)
			if decode(key(kindEnded, id), raw, r) == nil {
				add(r)
			}
		}
	}
	if b, r, err := c.lookup(ctx, "", root); err == nil && b == nil && r.ID == root {
		add(r)
	}
	return out, nil
}

// formerly are an id and all that stand for it now.
func (c *Control) formerly(id string) []string {
	out := []string{id}
	c.aliases.all(func(old string, _ *alias) bool {
		out = append(out, old)
		return true
	})
	return slices.DeleteFunc(out, func(old string) bool { return c.resolved(old) != id })
}

func (c *Control) treeOf(id string, members map[string]*record, below map[string][]string, seen map[string]bool) *api.Tree {
	r := members[id]
	seen[id] = true
	t := &api.Tree{Usage: c.usageOf(r)}
	if b := c.box(id); b != nil {
		t.Sandbox = *c.view(b)
	} else {
		t.Sandbox = *c.viewOf(r)
	}
	total := *t.Usage
	total.Sandboxes = 1
	slices.Sort(below[id])
	for _, k := range below[id] {
		if seen[k] {
			continue
		}
		child := c.treeOf(k, members, below, seen)
		addUsage(&total, child.Total)
		t.Children = append(t.Children, *child)
	}
	t.Total = &total
	return t
}

// pair begins uses of two sandboxes of one node.
func (c *Control) pair(ctx context.Context, who *access.Caller, op, a string, va access.Verb, b string, vb access.Verb) (x, y *box, p *peer, leave func(), err error) {
	if x, err = c.findLive(ctx, who, va, op, a); err != nil {
		return
	}
	if y, err = c.findLive(ctx, who, vb, op, b); err != nil {
		return
	}
	if x.id == y.id {
		return nil, nil, nil, nil, invalid(op, a, "both are the same sandbox")
	}
	if p, err = c.enter(ctx, x, op); err != nil {
		return
	}
	q, err := c.enter(ctx, y, op)
	if err != nil {
		x.leave()
		return nil, nil, nil, nil, err
	}
	leave = func() {
		x.leave()
		y.leave()
	}
	if p != q {
		leave()
		return nil, nil, nil, nil, errs.Msg(errs.Unsupported, op, a, "the sandboxes are on two nodes, "+p.name+" and "+q.name)
	}
	return x, y, p, leave, nil
}

// Diff yields what differs in the files of sandbox to from those of from; without to, what has changed in from since it was forked or
// claimed.
func (c *Control) Diff(ctx context.Context, who *access.Caller, from, to string, paths []string, yield func(api.FileChange) error) (*api.FileDiff, error) {
	const op = "compare sandboxes"
	for _, p := range paths {
		if !strings.HasPrefix(p, "/") || strings.ContainsRune(p, 0) || len(p) > 4096 {
			return nil, invalid(op, short(p), "the path isn't absolute")
		}
	}
	out := &api.FileDiff{}
	count := func(f api.FileChange) error {
		switch f.Kind {
		case "added":
			out.Added++
		case "modified":
			out.Modified++
		case "deleted":
			out.Deleted++
		default:
			out.Metadata++
		}
		return yield(f)
	}
	if to == "" {
		b, err := c.findLive(ctx, who, access.SandboxRead, op, from)
		if err != nil {
			return nil, err
		}
		p, err := c.enter(ctx, b, op)
		if err != nil {
			return nil, err
		}
		defer b.leave()
		out.From, out.To = b.id, b.id
		return out, p.host.Diff(ctx, b.id, "", paths, count)
	}
	x, y, p, leave, err := c.pair(ctx, who, op, from, access.SandboxRead, to, access.SandboxRead)
	if err != nil {
		return nil, err
	}
	defer leave()
	out.From, out.To = x.id, y.id
	return out, p.host.Diff(ctx, x.id, y.id, paths, count)
}

// Merge merges the files of a sandbox into another: its parent, where none is named.
func (c *Control) Merge(ctx context.Context, who *access.Caller, id string, m api.MergeSandbox) (*api.FileMerge, error) {
	const op = "merge sandboxes"
	switch m.Conflicts = cmp.Or(m.Conflicts, api.Fail); m.Conflicts {
	case api.Fail, api.Ours, api.Theirs:
	default:
		return nil, invalid(op, "conflicts", "%q: want fail, ours or theirs", short(m.Conflicts))
	}
	if m.Into == "" {
		b, err := c.findLive(ctx, who, access.SandboxRead, op, id)
		if err != nil {
			return nil, err
		}
		if m.Into = b.rec.Load().Parent; m.Into == "" {
			return nil, invalid(op, id, "it wasn't forked from another sandbox: say into which it is to be merged")
		}
	}
	x, y, p, leave, err := c.pair(ctx, who, op, id, access.SandboxRead, m.Into, access.SandboxChange)
	if err != nil {
		return nil, err
	}
	defer leave()
	m.Into = y.id
	out, err := p.host.Merge(ctx, x.id, y.id, m)
	if err != nil || m.DryRun || m.Conflicts == api.Fail && len(out.Conflicts) > 0 {
		return out, err
	}
	t := new(txn)
	e := y.rec.Load().event(api.EventMerged, "")
	e.Data = map[string]string{"source": x.id}
	t.event(e)
	return out, c.commit(ctx, t)
}

// Promote puts a fork in its parent's place: it takes the parent's name, claim, conversations and place in the tree, and the parent's id
// leads to it from now on. The parent ends.
func (c *Control) Promote(ctx context.Context, who *access.Caller, id string) (*api.Sandbox, error) {
	const op = "promote sandbox"
	b, err := c.findLive(ctx, who, access.SandboxChange, op, id)
	if err != nil {
		return nil, err
	}
	parent := c.box(c.resolved(b.rec.Load().Parent))
	if b.rec.Load().Parent == "" || parent == b {
		return nil, invalid(op, id, "it has no parent whose place it could take")
	}
	if parent == nil {
		return nil, errs.Msg(errs.Conflict, op, id, "its parent has ended")
	}
	if err := c.allow(ctx, who, access.SandboxEnd, parent.rec.Load().thing()); err != nil {
		return nil, err
	}
	// The older one's turn first: two that each want the other's can't wait for each other.
	for _, k := range slices.SortedFunc(slices.Values([]*box{b, parent}), func(x, y *box) int { return cmp.Compare(x.id, y.id) }) {
		if err := k.take(ctx); err != nil {
			return nil, err
		}
		defer k.give()
	}
	if err := c.promote(ctx, op, b, parent); err != nil {
		return nil, err
	}
	if err := c.finish(ctx, parent); err != nil {
		c.o.Log.Warn("end a sandbox that another was promoted over", "sandbox", parent.id, "err", err)
	}
	return c.view(b), nil
}

// promote records a promotion in one transition. The caller has both turns.
func (c *Control) promote(ctx context.Context, op string, b, parent *box) error {
	child, old := b.rec.Load(), parent.rec.Load()
	if !child.live() || child.State == api.StateEnding {
		return over(op, child)
	}
	if !old.live() || old.State == api.StateEnding || c.resolved(child.Parent) != parent.id {
		return errs.Msg(errs.Conflict, op, b.id, "its parent has ended, or changed, meanwhile")
	}
	n, o := child.clone(), old.clone()
	n.Parent, n.Depth, n.Fork = old.Parent, old.Depth, old.Fork
	if old.Root == old.ID {
		n.Root = n.ID
	}
	n.Pool, n.Claim = old.Pool, old.Claim
	n.Conversations = slices.Compact(slices.Sorted(slices.Values(slices.Concat(child.Conversations, old.Conversations))))
	if old.Name != "" {
		n.Name = old.Name
	}
	o.State, o.Reason, o.Name, o.Conversations, o.Claim = api.StateEnding, n.ID+" was promoted over it", "", nil, ""
	t := new(txn)
	c.set(t, parent, o)
	c.set(t, b, n)
	if old.Name != "" { // both moves of the name are one
		dropNameOps(t, old.Name)
		t.b.Put(key(kindName, old.Name), []byte(n.ID))
	}
	c.aliases.set(c, t, old.ID, c.aliases.get(old.ID), &alias{To: n.ID})
	if k := c.claims.get(old.Claim); old.Claim != "" && k != nil {
		moved := *k
		moved.Sandbox = n.ID
		c.claims.set(c, t, old.Claim, k, &moved)
	}
	c.moveChats(t, old.ID, n.ID)
	e := n.event(api.EventPromoted, "")
	e.Data = map[string]string{"over": old.ID}
	t.event(e)
	if err := c.commit(ctx, t); err != nil {
		return err
	}
	parent.mu.Lock()
	parent.shut = true
	parent.mu.Unlock()
	return nil
}

// dropNameOps removes the deletion of a name's key and the check that it is free.
func dropNameOps(t *txn, name string) {
	k := string(key(kindName, name))
	t.b.Deletes = slices.DeleteFunc(t.b.Deletes, func(d []byte) bool { return string(d) == k })
	checked := false
	t.b.Checks = slices.DeleteFunc(t.b.Checks, func(x kv.Check) bool {
		if string(x.Key) != k {
			return false
		}
		again := checked
		checked = true
		return again || x.Value == nil
	})
}
