package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"agentrun.dev/bucket"
	"agentrun.dev/command/services"
	"agentrun.dev/errs"
	"agentrun.dev/vfs"
)

// control implements services.Control: what a sandbox does to its own world. Its files are those of one bucket, the
// workspace's.
type control struct{ s *Sandbox }

var _ services.Control = (*control)(nil)

// world is the bucket that a sandbox's snapshots are of, and where it is mounted.
type world struct {
	*bucket.Bucket
	path     string // "/" or without a slash at its end
	readOnly bool
}

// changeable fails if the sandbox may only read the bucket: snapshots are changes, too.
func (w *world) changeable(op string) error {
	if w.readOnly {
		return errs.Msg(errs.Denied, op, w.path, "it is mounted read-only in this sandbox")
	}
	return nil
}

// world finds the bucket at /workspace, at "/", or else the first one; and makes what was written to it visible.
func (s *Sandbox) world(ctx context.Context) (*world, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	s.Touch()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.living(); err != nil {
		return nil, err
	}
	mounts := s.volumes.Mounts()
	paths := make([]string, 0, len(mounts)+2)
	paths = append(paths, "/workspace", "/")
	for _, m := range mounts {
		paths = append(paths, m.Path)
	}
	for _, p := range paths {
		b := s.volumes.Bucket(p)
		if b == nil {
			continue
		}
		i := slices.IndexFunc(mounts, func(m vfs.Mount) bool { return m.Path == p })
		w := &world{b, p, mounts[i].ReadOnly}
		if f, ok := mounts[i].FS.(vfs.Flusher); ok {
			if err := f.Flush(ctx, false); err != nil {
				return nil, err
			}
		}
		return w, nil
	}
	return nil, errs.Msg(errs.Unsupported, "find workspace", s.id, "no bucket is mounted in this sandbox, so its files can't be snapshotted, compared or merged").
		WithHint("start it over a bucket: agentrun run --bucket NAME, or agentrun shell NAME")
}

// file is the path of a key.
func (w *world) file(key string) string {
	if w.path == "/" {
		return "/" + key
	}
	return w.path + "/" + key
}

// key is the key of an absolute path, and whether the path is inside of the world.
func (w *world) key(path string) (string, bool) {
	if w.path == "/" {
		return strings.TrimPrefix(path, "/"), true
	}
	if path == w.path {
		return "", true
	}
	return strings.CutPrefix(path, w.path+"/")
}

// snapshot finds one by its name; of several, the newest. errs.NotFound lists what there is.
func (w *world) snapshot(ctx context.Context, name string) (*bucket.Snapshot, error) {
	list, err := w.Store().Snapshots(ctx, w.Name())
	if err != nil {
		return nil, err
	}
	var found *bucket.Snapshot
	for _, s := range list {
		if s.Name == name && (found == nil || s.Version > found.Version) {
			found = s
		}
	}
	if found == nil {
		return nil, errs.Msg(errs.NotFound, "find snapshot", name, "there is none of this name").WithHint("snapshot list")
	}
	return found, nil
}

// take freezes the world under a name that isn't taken yet.
func (w *world) take(ctx context.Context, name, prefix string) (services.Snapshot, error) {
	if err := w.changeable("take snapshot"); err != nil {
		return services.Snapshot{}, err
	}
	for name == "" { // a name of our own is of another millisecond than those there are
		at := prefix + time.Now().UTC().Format("20060102-150405.000")
		if _, err := w.snapshot(ctx, at); errs.Is(err, errs.NotFound) {
			name = at
		} else if err != nil {
			return services.Snapshot{}, err
		} else {
			time.Sleep(time.Millisecond)
		}
	}
	if strings.ContainsAny(name, "@/\x00\n") {
		return services.Snapshot{}, errs.Msg(errs.Invalid, "take snapshot", name, "a name has no '@', no '/' and no line break")
	}
	if list, err := w.Store().Snapshots(ctx, w.Name()); err != nil {
		return services.Snapshot{}, err
	} else if len(list) >= maxSnapshots {
		return services.Snapshot{}, errs.Msg(errs.Limit, "take snapshot", name, fmt.Sprintf("there are %d, which is the most", maxSnapshots)).WithHint("snapshot delete NAME")
	}
	if _, err := w.snapshot(ctx, name); err == nil {
		return services.Snapshot{}, errs.Msg(errs.Exists, "take snapshot", name, "there is a snapshot of this name").WithHint("choose another, or: snapshot delete " + name)
	} else if !errs.Is(err, errs.NotFound) {
		return services.Snapshot{}, err
	}
	made, err := w.Store().TakeSnapshot(ctx, w.Name(), bucket.SnapshotOptions{Name: name})
	if err != nil {
		return services.Snapshot{}, err
	}
	return shown(made), nil
}

func shown(s *bucket.Snapshot) services.Snapshot {
	return services.Snapshot{Name: s.Name, Version: uint64(s.Version), Created: s.Created, Bytes: int64(s.Bytes), Files: int64(s.Objects)}
}

// SnapshotTake implements services.Control.
func (c *control) SnapshotTake(ctx context.Context, name string) (services.Snapshot, error) {
	w, err := c.s.world(ctx)
	if err != nil {
		return services.Snapshot{}, err
	}
	return w.take(ctx, name, "")
}

// Snapshots implements services.Control.
func (c *control) Snapshots(ctx context.Context) ([]services.Snapshot, error) {
	w, err := c.s.world(ctx)
	if err != nil {
		return nil, err
	}
	list, err := w.Store().Snapshots(ctx, w.Name())
	if err != nil {
		return nil, err
	}
	out := make([]services.Snapshot, len(list))
	for i, s := range list {
		out[i] = shown(s)
	}
	slices.SortFunc(out, func(a, b services.Snapshot) int { return int(int64(a.Version - b.Version)) })
	return out, nil
}

// SnapshotDelete implements services.Control.
func (c *control) SnapshotDelete(ctx context.Context, name string) error {
	w, err := c.s.world(ctx)
	if err != nil {
		return err
	}
	if err := w.changeable("delete snapshot"); err != nil {
		return err
	}
	found, err := w.snapshot(ctx, name)
	if err != nil {
		return err
	}
	return w.Store().DeleteSnapshot(ctx, w.Name(), found.Version)
}

// SnapshotRestore implements services.Control. It changes what differs, in one step as long as that is at most
// bucket.MaxBatchOps files; a failure between steps leaves the snapshot of the state before.
func (c *control) SnapshotRestore(ctx context.Context, name string) (before services.Snapshot, err error) {
	w, err := c.s.world(ctx)
	if err != nil {
		return before, err
	}
	found, err := w.snapshot(ctx, name)
	if err != nil {
		return before, err
	}
	if before, err = w.take(ctx, "", "before-restore-"); err != nil {
		return before, err
	}
	var ops []bucket.Op
	apply := func(least int) error {
		if len(ops) < least {
			return nil
		}
		_, err := w.Apply(ctx, ops, bucket.ApplyOptions{})
		ops = ops[:0]
		return err
	}
	store := w.Store()
	view, err := store.View(ctx, w.Name(), found.Version)
	if err != nil {
		return before, err
	}
	defer view.Close()
	if ops, err = w.dirs(ctx, view); err != nil {
		return before, err
	}
	for len(ops) > bucket.MaxBatchOps { // more directories than fit in one step
		rest := slices.Clone(ops[bucket.MaxBatchOps:])
		ops = ops[:bucket.MaxBatchOps]
		if err := apply(1); err != nil {
			return before, err
		}
		ops = rest
	}
	err = store.Diff(ctx, w.Name()+"@"+before.Name, w.Name()+"@"+name, "", func(d bucket.Change) error {
		if d.New == nil {
			ops = append(ops, bucket.Op{Kind: bucket.OpDelete, Key: d.Key})
		} else {
			// Of the view, which lives as long as the bytes are needed.
			o, err := view.Get(ctx, d.Key)
			if err != nil {
				return err
			}
			ops = append(ops, bucket.Op{Kind: bucket.OpCopy, Key: d.Key, Source: o})
		}
		return apply(bucket.MaxBatchOps)
	})
	if err == nil {
		err = apply(1)
	}
	return before, err
}

// dirs are the steps that make the records of directories what they are in a view.
func (w *world) dirs(ctx context.Context, to *bucket.View) ([]bucket.Op, error) {
	now, err := w.View(ctx)
	if err != nil {
		return nil, err
	}
	defer now.Close()
	var ops []bucket.Op
	have := map[string]*bucket.Dir{}
	if err := now.Dirs(ctx, "", func(d *bucket.Dir) error { have[d.Path] = d; return nil }); err != nil {
		return nil, err
	}
	err = to.Dirs(ctx, "", func(d *bucket.Dir) error {
		if h := have[d.Path]; h == nil || h.ID != d.ID || !h.Modified.Equal(d.Modified) || h.Posix.Mode != d.Posix.Mode || h.Posix.UID != d.Posix.UID || h.Posix.GID != d.Posix.GID {
			ops = append(ops, bucket.Op{Kind: bucket.OpPutDir, Key: d.Path, Dir: d})
		}
		delete(have, d.Path)
		return nil
	})
	for _, path := range slices.Sorted(maps.Keys(have)) {
		ops = append(ops, bucket.Op{Kind: bucket.OpDeleteDir, Key: path})
	}
	return ops, err
}

// point is what Store.Diff calls a snapshot, a fork or, when empty, the present.
func (c *control) point(ctx context.Context, w *world, name string) (string, error) {
	if name == "" {
		return w.Name(), nil
	}
	if found, err := w.snapshot(ctx, name); err == nil {
		return w.Name() + "@" + found.Name, nil
	} else if !errs.Is(err, errs.NotFound) {
		return "", err
	}
	other, err := c.member(ctx, name)
	if err != nil {
		return "", err
	}
	return other.Name(), nil
}

// member is the world of another sandbox of the family.
func (c *control) member(ctx context.Context, name string) (*world, error) {
	other := c.s.family.find(name)
	if other == nil || other == c.s {
		return nil, errs.Msg(errs.NotFound, "find fork", name, "no snapshot and no fork of this sandbox has this name").WithHint("snapshot list")
	}
	return other.world(ctx)
}

// Diff implements services.Control.
func (c *control) Diff(ctx context.Context, a, b string, paths []string) iter.Seq2[services.Change, error] {
	return func(yield func(services.Change, error) bool) {
		err := c.diff(ctx, a, b, paths, func(d services.Change) error {
			if !yield(d, nil) {
				return io.EOF
			}
			return nil
		})
		if err != nil && !errors.Is(err, io.EOF) {
			yield(services.Change{}, err)
		}
	}
}

func (c *control) diff(ctx context.Context, a, b string, paths []string, f func(services.Change) error) error {
	w, err := c.s.world(ctx)
	if err != nil {
		return err
	}
	from, err := c.point(ctx, w, a)
	if err != nil {
		return err
	}
	to, err := c.point(ctx, w, b)
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		paths = []string{w.path}
	}
	for _, p := range paths {
		key, ok := w.key(p)
		if !ok {
			return errs.Msg(errs.Invalid, "diff", p, "only what is in "+w.path+" can be compared")
		}
		err := w.Store().Diff(ctx, from, to, key, func(d bucket.Change) error {
			if key != "" && d.Key != key && !strings.HasPrefix(d.Key, key+"/") {
				return nil
			}
			return f(w.change(d))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *world) change(d bucket.Change) services.Change {
	out := services.Change{Path: w.file(d.Key), Kind: services.Modified}
	if d.Old != nil {
		out.OldSize = d.Old.Size
	} else {
		out.Kind = services.Added
	}
	if d.New != nil {
		out.NewSize = d.New.Size
	} else {
		out.Kind = services.Deleted
	}
	return out
}

// Fork implements services.Control.
func (c *control) Fork(ctx context.Context, o services.ForkOptions) ([]services.Forked, error) {
	if err := c.s.wait(ctx); err != nil {
		return nil, err
	}
	f := c.s.family
	names, err := forkNames(o)
	if err != nil {
		return nil, err
	}
	most := c.s.n.o.MaxFamily
	if !f.grow(max(o.Count, 1), most) {
		return nil, errs.Msg(errs.Limit, "fork", c.s.id, fmt.Sprintf("a sandbox and its forks are %d at most", most))
	}
	defer f.grown(max(o.Count, 1))
	if taken := f.take(names); taken != "" {
		return nil, errs.Msg(errs.Exists, "fork", taken, "there is a fork of this name").WithHint("choose another one with --name")
	}
	children, err := c.s.fork(ctx, ForkOptions{Count: o.Count, Name: o.Name, Lease: o.Lease, Kill: o.Kill}, f)
	if err != nil {
		f.give(names)
		return nil, err
	}
	out := make([]services.Forked, len(children))
	for i, child := range children {
		out[i] = child.forked()
	}
	return out, nil
}

// forkNames are the names that the children will have, if they are to have names.
func forkNames(o services.ForkOptions) ([]string, error) {
	if o.Name == "" {
		return nil, nil
	}
	if len(o.Name) > 100 || strings.ContainsAny(o.Name, "@/\x00\n") {
		return nil, errs.Msg(errs.Invalid, "fork", o.Name, "a name has at most 100 bytes, no '@', no '/' and no line break")
	}
	if o.Count <= 1 {
		return []string{o.Name}, nil
	}
	names := make([]string, 0, min(o.Count, 1000))
	for i := range min(o.Count, 1000) {
		names = append(names, childName(o.Name, i))
	}
	return names, nil
}

// forked describes a child.
func (s *Sandbox) forked() services.Forked {
	f := services.Forked{Index: s.origin.index, ID: s.id, Name: s.spec.Name, Parent: s.origin.parent}
	for _, path := range []string{"/workspace", "/"} {
		if b := s.Bucket(path); b != nil {
			f.Bucket = b.Name()
			break
		}
	}
	return f
}

// Self implements services.Control.
func (c *control) Self(ctx context.Context) (*services.Forked, error) {
	if err := c.s.wait(ctx); err != nil {
		return nil, err
	}
	if c.s.origin == nil {
		return nil, nil
	}
	f := c.s.forked()
	return &f, nil
}

// Merge implements services.Control.
func (c *control) Merge(ctx context.Context, from string, o services.MergeOptions) (services.Merged, error) {
	done := services.Merged{From: from}
	w, err := c.s.world(ctx)
	if err != nil {
		return done, err
	}
	if err := w.changeable("merge"); err != nil && !o.DryRun {
		return done, err
	}
	other, err := c.member(ctx, from)
	if err != nil {
		return done, err
	}
	how := bucket.MergeOptions{Into: w.Name(), DryRun: o.DryRun}
	switch o.Strategy {
	case services.Ours:
		how.Conflicts = bucket.Ours
	case services.Theirs:
		how.Conflicts = bucket.Theirs
	case services.Fail, "":
	default:
		return done, errs.Msg(errs.Invalid, "merge", string(o.Strategy), "want fail, ours or theirs")
	}
	r, err := w.Store().Merge(ctx, other.Name(), how)
	if r == nil {
		return done, err
	}
	if err != nil && !errs.Is(err, errs.Conflict) {
		return done, err
	}
	done.Applied = err == nil && !o.DryRun
	done.Added, done.Modified, done.Deleted = r.Added, r.Modified+r.Metadata, r.Deleted
	for _, x := range r.Conflicts {
		done.Conflicts = append(done.Conflicts, services.Conflict{Path: w.file(x.Key), Ours: kind(x.Base, x.Ours), Theirs: kind(x.Base, x.Theirs)})
	}
	return done, nil
}

// kind is how a side changed a file.
func kind(base, side *bucket.Object) services.Kind {
	switch {
	case base == nil:
		return services.Added
	case side == nil:
		return services.Deleted
	}
	return services.Modified
}
