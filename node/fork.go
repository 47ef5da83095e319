package node

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"agentrun.dev/engine"
	"agentrun.dev/errs"
)

// ForkOptions say how to fork a sandbox.
type ForkOptions struct {
	Count int           // children; 0 means 1
	Name  string        // of the child; of several "NAME-1", "NAME-2" …
	Lease time.Duration // of the children; 0: the parent's
	Kill  bool          // processes that can't be copied are missing in the children, instead of failing the fork
	Env   []string      // NAME=VALUE, for commands that are executed in the children from now on
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
		ids[i] = engine.Identity{ID: c.id, Env: o.Env, Services: c.services()}
	}
	s.mu.Lock()
	made, err := s.forkNow(ctx, ids, o)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	for i, c := range children {
		c.in, c.volumes = made[i].Instance, made[i].Volumes
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
	short, cancel := context.WithTimeout(ctx, freezeTimeout)
	defer cancel()
	cut := ids[0].ID + "-cut"
	image, volumes, err := engine.Capture(short, s.in, s.volumes, cut, engine.FreezeOptions{Kill: o.Kill})
	if err != nil {
		return nil, err
	}
	children, err := engine.StartAll(ctx, image, volumes, ids)
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
	if f == nil {
		f = newFamily()
	}
	c, err := s.n.sandbox(spec, f)
	if err != nil {
		return nil, err
	}
	c.origin = &origin{parent: s.id, index: i + 1}
	return c, nil
}

func childName(base string, i int) string { return fmt.Sprintf("%s-%d", base, i+1) }

// sleeping is the folder of a sandbox that hibernates.
func (n *Node) sleeping(id string) string { return filepath.Join(n.o.Dir, id) }
