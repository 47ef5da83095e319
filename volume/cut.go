package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"agentrun.dev"
	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/bucketfs"
	"agentrun.dev/vfs/memfs"
)

// Cut is the volumes of a sandbox at one instant. Nothing changes it; Sets are made of it with Fork.
type Cut struct {
	o     Options
	list  []*mounted // bucket volumes stand on a bucket that was forked for the cut, and that nobody writes to
	saved bool
}

// Cut takes all volumes at one instant, each by its fork policy. Nobody in the sandbox may write meanwhile: its processes are
// frozen. What S3 clients write to its buckets is in all volumes or in none.
func (s *Set) Cut(ctx context.Context, id string) (*Cut, error) { return s.cut(ctx, id, false) }

// CutAll is Cut for a sandbox that goes on later, instead of a fork of it: volumes that forks have afresh are what they are, too.
func (s *Set) CutAll(ctx context.Context, id string) (*Cut, error) { return s.cut(ctx, id, true) }

func (s *Set) cut(ctx context.Context, id string, all bool) (*Cut, error) {
	c := &Cut{o: s.o}
	c.o.Owner, c.o.Labels, c.o.Adopt = id, nil, false
	at, err := s.flush(ctx, all)
	for i := 0; err == nil && i < len(s.list); i++ {
		m := s.list[i]
		var b *backing
		if b, err = c.o.freeze(ctx, m, at, all); err == nil {
			c.list = append(c.list, &mounted{m.Spec, b})
		} else {
			err = fmt.Errorf("cut volume %s: %w", m.Name, err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, c.Close(context.WithoutCancel(ctx)))
	}
	return c, nil
}

// copied tells whether a fork gets what the volume holds.
func (s Spec) copied() bool { return s.Policy == Snapshot || s.Policy == Clone }

// flush makes what the volumes hold back visible, and returns the version at which the buckets are cut: zero, which is now,
// for a single one.
func (s *Set) flush(ctx context.Context, all bool) (at agentrun.Version, err error) {
	buckets := 0
	for _, m := range s.list {
		if m.b.bucket == nil || !m.copied() && !(all && m.Policy == Fresh) {
			continue
		}
		if err := m.b.fs.(*bucketfs.FS).Flush(ctx, false); err != nil {
			return 0, err
		}
		info, err := s.o.Store.Info(ctx, m.b.bucket.Name())
		if err != nil {
			return 0, err
		}
		at = max(at, info.Version)
		buckets++
	}
	if buckets < 2 {
		return 0, nil
	}
	// Versions are times that only grow, over all buckets of a store: one of them is one instant in all.
	return max(at, agentrun.VersionAt(time.Now())), nil
}

// freeze makes the backing of a cut's volume; nil for one that begins afresh.
func (o Options) freeze(ctx context.Context, m *mounted, at agentrun.Version, all bool) (*backing, error) {
	switch {
	case m.Policy == Fresh && !all:
		return nil, nil
	case m.Policy == Share:
		return m.b.share(), nil
	case m.Host != "":
		return o.copyHost(ctx, m.Spec, m.b.fs)
	case m.b.bucket == nil:
		return &backing{fs: m.b.fs.(*memfs.FS).Clone(), refs: 1}, nil
	}
	return o.forkFS(ctx, m.Spec, m.b, at)
}

// forkFS forks the bucket of a volume, and its filesystem with it, so that open files find theirs again.
func (o Options) forkFS(ctx context.Context, s Spec, from *backing, at agentrun.Version) (*backing, error) {
	name := o.name(s.Name)
	if _, err := o.Store.Fork(ctx, from.bucket.Name(), name, bucket.ForkOptions{At: at, Attributes: o.attributes(s)}); err != nil {
		return nil, err
	}
	drop := func(err error) (*backing, error) {
		return nil, errors.Join(err, o.Store.Delete(context.WithoutCancel(ctx), name, bucket.DeleteOptions{Force: true}))
	}
	b, err := o.Store.Bucket(ctx, name)
	if err != nil {
		return drop(err)
	}
	fs, err := from.fs.(*bucketfs.FS).Clone(ctx, b)
	if err != nil {
		return drop(err)
	}
	return &backing{fs: fs, bucket: b, own: true, refs: 1}, nil
}

// Fork makes the volumes of one more sandbox, whose id is owner. It may be called many times, concurrently. Volumes that are
// given take the place of the cut's at the same paths; errs.Invalid if there is none.
func (c *Cut) Fork(ctx context.Context, owner string, instead ...Spec) (*Set, error) {
	return c.ForkFor(ctx, Options{Owner: owner}, instead...)
}

// ForkFor is Fork with the owner, labels and adoption of other Options.
func (c *Cut) ForkFor(ctx context.Context, who Options, instead ...Spec) (*Set, error) {
	instead, err := normalAll(instead)
	if err != nil {
		return nil, err
	}
	for _, spec := range instead {
		if !slices.ContainsFunc(c.list, func(m *mounted) bool { return m.Path == spec.Path }) {
			return nil, errs.Msg(errs.Invalid, "fork volume", spec.Name, "there is none at "+spec.Path)
		}
	}
	s := &Set{o: c.o}
	s.o.Owner, s.o.Labels, s.o.Adopt = who.Owner, who.Labels, who.Adopt
	for _, m := range c.list {
		spec, other := m.Spec, slices.IndexFunc(instead, func(s Spec) bool { return s.Path == m.Path })
		var b *backing
		if other >= 0 {
			spec = instead[other]
			b, err = s.o.open(ctx, spec)
		} else {
			b, err = s.o.thaw(ctx, m)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("fork volume %s: %w", spec.Name, err), s.Close(context.WithoutCancel(ctx)))
		}
		if other < 0 && b.bucket != nil && b.own {
			spec.Bucket, spec.Base, spec.Host, spec.Empty = "", "", "", true
		}
		s.list = append(s.list, &mounted{spec, b})
	}
	return s, nil
}

func (o Options) thaw(ctx context.Context, m *mounted) (*backing, error) {
	switch {
	case m.b != nil && m.Policy == Fresh: // of CutAll
		return o.copy(ctx, m)
	case m.Policy == Fresh && (m.Bucket != "" || m.Base != "" || m.Empty):
		return o.empty(ctx, m.Spec)
	case m.Policy == Fresh:
		return o.memory(m.Spec), nil
	case m.Policy == Share:
		return m.b.share(), nil
	}
	return o.copy(ctx, m)
}

// copy makes a copy of what a cut holds.
func (o Options) copy(ctx context.Context, m *mounted) (*backing, error) {
	if m.b.bucket == nil {
		return &backing{fs: m.b.fs.(*memfs.FS).Clone(), refs: 1}, nil
	}
	return o.forkFS(ctx, m.Spec, m.b, 0)
}

// Specs returns what the volumes are, as the one at the cut had them.
func (c *Cut) Specs() []Spec {
	out := make([]Spec, len(c.list))
	for i, m := range c.list {
		out[i] = m.Spec
	}
	return out
}

// Buckets returns the names of those that were made for the cut.
func (c *Cut) Buckets() []string {
	var out []string
	for _, m := range c.list {
		if m.b != nil && m.b.bucket != nil && m.b.own {
			out = append(out, m.b.bucket.Name())
		}
	}
	return out
}

// Bucket returns the name of the one that was made for the cut of the volume at a path; empty if there is none.
func (c *Cut) Bucket(path string) string {
	for _, m := range c.list {
		if m.Path == path && m.b != nil && m.b.bucket != nil && m.b.own {
			return m.b.bucket.Name()
		}
	}
	return ""
}

// Lasting returns the names of buckets that were made for a sandbox and are shared by its forks, and keeps them when the last of
// those ends: the saved cut needs them.
func (c *Cut) Lasting() []string {
	var out []string
	for _, m := range c.list {
		if m.b == nil || m.b.bucket == nil || m.Policy != Share {
			continue
		}
		m.b.mu.Lock()
		if m.b.own {
			m.b.own = false
			out = append(out, m.b.bucket.Name())
		}
		m.b.mu.Unlock()
	}
	return out
}

// Close lets go of the cut. Sets that were made of it stay. What Save wrote stays usable.
func (c *Cut) Close(ctx context.Context) error { return c.close(ctx, c.saved) }

// Discard is Close for a cut whose saved form isn't needed any more either.
func (c *Cut) Discard(ctx context.Context) error { return c.close(ctx, false) }

func (c *Cut) close(ctx context.Context, keep bool) error {
	var all []error
	for _, m := range c.list {
		if m.b != nil {
			all = append(all, m.b.release(ctx, keep))
		}
	}
	c.list = nil
	return errors.Join(all...)
}

// Mounts returns the volumes as the cut has them, for reading, as of Set.Mounts. Those that begin afresh aren't among them.
func (c *Cut) Mounts() []vfs.Mount {
	s := Set{}
	for _, m := range c.list {
		if m.b != nil {
			s.list = append(s.list, m)
		}
	}
	return s.Mounts()
}

// copyHost copies a host's folder into memory.
func (o Options) copyHost(ctx context.Context, s Spec, from vfs.FS) (*backing, error) {
	b := o.memory(Spec{Name: s.Name, Size: s.Size})
	if err := copyTree(ctx, from, from.Root(), b.fs, b.fs.Root()); err != nil {
		if errors.Is(err, syscall.ENOSPC) {
			return nil, errs.Msg(errs.TooLarge, "clone volume", s.Name, "a copy of a host's folder is kept in memory, 256 MiB at most: share the folder, or put it into a bucket")
		}
		return nil, errs.New(errs.Other, "clone volume", s.Name, err)
	}
	return b, nil
}
