package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/volume"
)

// ForkOptions say how to fork a sandbox.
type ForkOptions struct {
	Count int           // children; 0 means 1
	Name  string        // of the child; of several "NAME-1", "NAME-2" …
	Lease time.Duration // of the children; 0: the parent's
	Kill  bool          // processes that can't be copied are missing in the children, instead of failing the fork
	Env   []string      // NAME=VALUE, for commands that are executed in the children from now on

	ids    []string // of the children; new ones when nil
	names  []string
	claims []Claim // one for each, or one for all; nil: what the parent was claimed with
}

// claim is the child's of a number; nil: the parent's.
func (o *ForkOptions) claim(i int) *Claim {
	switch len(o.claims) {
	case 0:
		return nil
	case 1:
		return &o.claims[0]
	}
	return &o.claims[i]
}

// Fork makes copies of a sandbox at one instant, files and running processes, that go on independently. The parent stands
// still only until its state is captured. It is all or nothing: after an error there are no children. errs.Unavailable
// names processes that couldn't be copied.
func (s *Sandbox) Fork(ctx context.Context, o ForkOptions) ([]*Sandbox, error) {
	return s.fork(ctx, o, nil)
}

// fork makes children: of a family of its own each, unless one is given.
func (s *Sandbox) fork(ctx context.Context, o ForkOptions, f *family) (children []*Sandbox, err error) {
	s.Touch()
	if o.Count == 0 {
		o.Count = 1
	}
	if o.Count < 0 || o.Count > engine.MaxForks {
		return nil, errs.Msg(errs.Invalid, "fork", s.id, fmt.Sprintf("%d forks; there can be 1 to %d at once", o.Count, engine.MaxForks))
	}
	if err := s.n.admit(o.Count); err != nil {
		return nil, err
	}
	defer s.n.admitted(o.Count)
	ids := make([]engine.Identity, o.Count)
	for i := range ids {
		c, err := s.child(i, o, f)
		if err != nil {
			return nil, err
		}
		children = append(children, c)
		ids[i] = engine.Identity{ID: c.id, Env: o.Env, Services: c.services(), Labels: c.labels()}
	}
	s.mu.Lock()
	made, err := s.forkNow(ctx, ids, o)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	for i, c := range children {
		c.in, c.volumes = made[i].Instance, made[i].Volumes
		c.begin(ctx)
	}
	for i, c := range children {
		if err = s.n.add(c); err == nil {
			continue
		}
		end := context.WithoutCancel(ctx)
		for _, c := range children[:i] {
			err = errors.Join(err, c.End(end))
		}
		for _, c := range children[i:] {
			close(c.done)
			err = errors.Join(err, c.drop(end))
		}
		return nil, err
	}
	for _, c := range children { // the parent's rules may have been replaced before they were of the family
		if f != nil && c.dialer != nil && s.dialer != nil {
			c.dialer.SetPolicy(s.dialer.Policy())
		}
	}
	if f != nil && s.living() != nil { // its end may have missed the newest of the family
		err := s.living()
		for _, c := range children {
			err = errors.Join(err, c.End(context.WithoutCancel(ctx)))
		}
		return nil, err
	}
	return children, nil
}

// forkNow freezes, captures and starts. The lock is held.
func (s *Sandbox) forkNow(ctx context.Context, ids []engine.Identity, o ForkOptions) ([]engine.Child, error) {
	if err := s.living(); err != nil {
		return nil, err
	}
	short, cancel := context.WithTimeout(ctx, s.freezeTimeout())
	defer cancel()
	cut := ids[0].ID + "-cut"
	image, volumes, err := s.capture(short, cut, engine.FreezeOptions{Kill: o.Kill})
	if err != nil {
		return nil, err
	}
	have := volumes.Specs()
	children, err := engine.StartEach(ctx, image, volumes, ids, func(i int) []volume.Spec {
		c := o.claim(i)
		if c == nil {
			return nil
		}
		instead, _ := overlay(have, c.Volumes)
		return instead
	})
	for i := 0; err == nil && i < len(children); i++ {
		if c := o.claim(i); c != nil {
			_, more := overlay(have, c.Volumes)
			err = mountMore(ctx, children[i].Instance, children[i].Volumes, more)
		}
	}
	if err != nil {
		for _, c := range children {
			err = errors.Join(err, c.End(context.WithoutCancel(ctx)))
		}
		children = nil
	}
	return children, errors.Join(err, image.Close(), volumes.Close(context.WithoutCancel(ctx)))
}

// child returns the fork of a number, which doesn't run yet.
func (s *Sandbox) child(i int, o ForkOptions, f *family) (*Sandbox, error) {
	spec := s.spec
	spec.ID, spec.Name = newID(), o.Name
	if o.Name != "" && o.Count > 1 {
		spec.Name = childName(o.Name, i)
	}
	if o.Lease > 0 {
		spec.Lease = o.Lease
	}
	if o.ids != nil {
		spec.ID, spec.Name = o.ids[i], o.names[i]
	}
	inside := f != nil
	if !inside {
		f = newFamily()
	}
	c, err := s.n.sandbox(spec, f)
	if err != nil {
		return nil, err
	}
	c.origin = &origin{parent: s.id, index: i + 1, inside: inside}
	if !s.hosted {
		return c, nil
	}
	c.hosted, c.epoch, c.shared = true, 1, s.shared
	s.mu.Lock()
	c.mounted = slices.Clone(s.mounted)
	s.mu.Unlock()
	if !inside {
		c.image = s.image // so that it outlives a crash, which what a sandbox makes of itself doesn't
	}
	claim := o.claim(i)
	if claim == nil {
		c.inherit(s)
		return c, nil
	}
	return c, c.take(claim)
}

func childName(base string, i int) string { return fmt.Sprintf("%s-%d", base, i+1) }
