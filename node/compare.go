package node

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"agentrun.dev"
	"agentrun.dev/api"
	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	"agentrun.dev/volume"
)

// own returns the buckets that were made for a sandbox that runs, in order of path, and those that hold what they began as.
func (s *Sandbox) own(ctx context.Context) (list []volume.Own, bases map[string]string, err error) {
	s.Touch()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.living(); err != nil {
		return nil, nil, err
	}
	list, err = s.volumes.Own(ctx)
	slices.SortFunc(list, func(a, b volume.Own) int { return strings.Compare(a.Path, b.Path) })
	return list, s.bases, err
}

// Snapshot implements Host. All buckets are cut at one version; what processes write and haven't closed yet isn't in them.
func (l *local) Snapshot(ctx context.Context, id, prefix string) (map[string]string, error) {
	s, err := l.hosted(id)
	if err != nil {
		return nil, err
	}
	own, _, err := s.own(ctx)
	if err != nil {
		return nil, err
	}
	store := l.n.o.Store
	var at agentrun.Version
	if len(own) > 1 {
		for _, v := range own {
			info, err := store.Info(ctx, v.Bucket.Name())
			if err != nil {
				return nil, err
			}
			at = max(at, info.Version)
		}
	}
	out := map[string]string{}
	for _, v := range own {
		name := prefix + "-" + v.Name
		if err = bucket.CheckName(name); err == nil {
			_, err = store.Fork(ctx, v.Bucket.Name(), name, bucket.ForkOptions{At: at, Attributes: map[string]string{}})
		}
		if err != nil {
			return nil, errors.Join(err, l.n.deleteBuckets(context.WithoutCancel(ctx), out))
		}
		out[v.Path] = name
	}
	return out, nil
}

// pair is a volume of two sandboxes, or of one and what it began as. A side that is empty is a bucket that isn't there.
type pair struct{ path, a, b string }

// pairs finds what is to be compared.
func (l *local) pairs(ctx context.Context, a, b string) ([]pair, error) {
	s, err := l.hosted(a)
	if err != nil {
		return nil, err
	}
	own, bases, err := s.own(ctx)
	if err != nil {
		return nil, err
	}
	var out []pair
	if b == "" {
		for _, v := range own {
			p := pair{path: v.Path, a: bases[v.Path], b: v.Bucket.Name()}
			if p.a == "" {
				info, err := l.n.o.Store.Info(ctx, p.b)
				if err != nil {
					return nil, err
				}
				if info.Parent != nil {
					p.a = p.b + "@" + info.Parent.Snapshot.String()
				}
			}
			out = append(out, p)
		}
		return out, nil
	}
	other, err := l.hosted(b)
	if err != nil {
		return nil, err
	}
	theirs, _, err := other.own(ctx)
	if err != nil {
		return nil, err
	}
	for _, v := range own {
		p := pair{path: v.Path, a: v.Bucket.Name()}
		if i := slices.IndexFunc(theirs, func(t volume.Own) bool { return t.Path == v.Path }); i >= 0 {
			p.b = theirs[i].Bucket.Name()
		}
		out = append(out, p)
	}
	for _, t := range theirs {
		if !slices.ContainsFunc(own, func(v volume.Own) bool { return v.Path == t.Path }) {
			out = append(out, pair{path: t.Path, b: t.Bucket.Name()})
		}
	}
	slices.SortFunc(out, func(a, b pair) int { return strings.Compare(a.path, b.path) })
	return out, nil
}

// Diff implements Host. It compares the durable volumes that are the sandboxes' own.
func (l *local) Diff(ctx context.Context, a, b string, paths []string, yield func(api.FileChange) error) error {
	for i, p := range paths {
		if !path.IsAbs(p) {
			return errs.Msg(errs.Invalid, "diff", p, "the path isn't absolute")
		}
		if i == 0 {
			paths = slices.Clone(paths)
		}
		paths[i] = path.Clean(p)
	}
	list, err := l.pairs(ctx, a, b)
	if err != nil {
		return err
	}
	for _, p := range list {
		w := &world{path: p.path}
		f := func(c bucket.Change) error {
			x := api.FileChange{Path: w.file(c.Key), Kind: c.Kind.String()}
			if c.Old != nil {
				x.OldSize = c.Old.Size
			}
			if c.New != nil {
				x.NewSize = c.New.Size
			}
			if !within(x.Path, paths) {
				return nil
			}
			return yield(x)
		}
		if err := l.n.compare(ctx, p, f); err != nil {
			return err
		}
	}
	return nil
}

// within tells whether a file is one of paths or beneath one; none of them are all.
func within(file string, paths []string) bool {
	return len(paths) == 0 || slices.ContainsFunc(paths, func(p string) bool {
		return file == p || p == "/" || strings.HasPrefix(file, p+"/")
	})
}

// compare yields what differs in b from a.
func (n *Node) compare(ctx context.Context, p pair, f func(bucket.Change) error) error {
	store := n.o.Store
	if p.a != "" && p.b != "" {
		return store.Diff(ctx, p.a, p.b, "", f)
	}
	kind, name := bucket.Added, p.b
	if p.b == "" {
		kind, name = bucket.Deleted, p.a
	}
	bare, at, err := store.Point(ctx, name)
	if err != nil {
		return err
	}
	view, err := store.View(ctx, bare, at)
	if err != nil {
		return err
	}
	defer view.Close()
	c := view.Scan(bucket.Scan{})
	for c.Next(ctx) {
		change := bucket.Change{Key: c.Key(), Kind: kind}
		if kind == bucket.Added {
			change.New = c.Object()
		} else {
			change.Old = c.Object()
		}
		if err := f(change); err != nil {
			return err
		}
	}
	return c.Err()
}

// Merge implements Host. All volumes that both have are merged, or with conflicts under fail none.
func (l *local) Merge(ctx context.Context, source, target string, m api.MergeSandbox) (*api.FileMerge, error) {
	if source == target {
		return nil, errs.Msg(errs.Invalid, "merge", source, "a sandbox can't be merged into itself")
	}
	how := bucket.MergeOptions{}
	switch m.Conflicts {
	case api.Fail, "":
	case api.Ours:
		how.Conflicts = bucket.Ours
	case api.Theirs:
		how.Conflicts = bucket.Theirs
	default:
		return nil, errs.Msg(errs.Invalid, "merge", m.Conflicts, "want fail, ours or theirs")
	}
	list, err := l.pairs(ctx, source, target)
	if err != nil {
		return nil, err
	}
	if list, err = l.n.related(ctx, list); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errs.Msg(errs.Conflict, "merge", source, "the sandboxes have no durable volume that was one once")
	}
	if err := l.writable(target, list); err != nil && !m.DryRun {
		return nil, err
	}
	// What several volumes are merged with is found out first, so that all or none change.
	out := &api.FileMerge{}
	if m.DryRun || len(list) > 1 && how.Conflicts == bucket.Fail {
		if out, err = l.n.merge(ctx, list, how, true); err != nil {
			return nil, err
		}
	}
	if !m.DryRun && len(out.Conflicts) == 0 {
		if out, err = l.n.merge(ctx, list, how, false); err != nil {
			return nil, err
		}
	}
	out.Source, out.Target, out.DryRun = source, target, m.DryRun
	return out, nil
}

// related leaves those pairs that have a state in common: volumes that a fork has afresh don't, and those that are shared are one.
func (n *Node) related(ctx context.Context, list []pair) (out []pair, err error) {
	for _, p := range list {
		if p.a == "" || p.b == "" || p.a == p.b {
			continue
		}
		r, err := n.o.Store.Merge(ctx, p.a, bucket.MergeOptions{Into: p.b, DryRun: true, Conflicts: bucket.Theirs})
		if r == nil && errs.Is(err, errs.Conflict) {
			continue
		} else if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// writable fails where a sandbox may only read what would be merged into.
func (l *local) writable(id string, list []pair) error {
	s, err := l.hosted(id)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.volumes.Specs() {
		if v.ReadOnly && slices.ContainsFunc(list, func(p pair) bool { return p.path == v.Path }) {
			return errs.Msg(errs.Denied, "merge", v.Path, "it is mounted read-only in the target")
		}
	}
	return nil
}

// merge merges volumes. Conflicts are no error.
func (n *Node) merge(ctx context.Context, list []pair, how bucket.MergeOptions, dry bool) (*api.FileMerge, error) {
	out := &api.FileMerge{}
	how.DryRun = dry
	for _, p := range list {
		how.Into = p.b
		r, err := n.o.Store.Merge(ctx, p.a, how)
		if r == nil || err != nil && !errs.Is(err, errs.Conflict) {
			return nil, err
		}
		out.Added, out.Modified, out.Deleted, out.Metadata = out.Added+r.Added, out.Modified+r.Modified, out.Deleted+r.Deleted, out.Metadata+r.Metadata
		w := &world{path: p.path}
		for _, x := range r.Conflicts {
			out.Conflicts = append(out.Conflicts, w.file(x.Key))
		}
		out.MoreConflicts += r.MoreConflicts
	}
	return out, nil
}
