package node

import (
	"context"
	"fmt"
	"path"
	"slices"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/volume"
)

// The format of what specFile says. A reader refuses what is newer than it knows.
const (
	formatOwn     = 1 // of sandboxes and images of Options.Engine; not written
	formatEngines = 2 // of those whose spec names another
)

// formatOf is the format in which what has a spec is saved.
func formatOf(s *Spec) int {
	if ownEngine(s.Engine) {
		return 0
	}
	return formatEngines
}

func ownEngine(name string) bool { return name == "" || name == api.Userspace }

// engine finds the engine of a name.
func (n *Node) engine(name string) (engine.Engine, error) {
	if ownEngine(name) {
		return n.o.Engine, nil
	}
	if e := n.o.Engines[name]; e != nil {
		return e, nil
	}
	why := n.o.Missing[name]
	if why == "" {
		why = "there is none of this name here"
	}
	return nil, errs.Msg(errs.Unsupported, "find engine", name, "it doesn't work on this node: "+why).WithHint("'agentrun doctor' there says what the host can do")
}

// engineOf finds the engine of a spec, and refuses what it can't give.
func (n *Node) engineOf(op string, s *Spec) (engine.Engine, error) {
	e, err := n.engine(s.Engine)
	if err != nil {
		return nil, err
	}
	name := s.Engine
	if name == "" {
		name = api.Userspace
	}
	switch {
	case s.Image != "" && engine.Lacks(e, engine.Images):
		return nil, errs.Msg(errs.Invalid, op, s.Image, fmt.Sprintf("sandboxes of the engine %s aren't made of images", name))
	case len(s.Network) > 0 && engine.Lacks(e, engine.Network):
		return nil, noNetwork(op, name)
	case slices.ContainsFunc(s.Volumes, func(v volume.Spec) bool { return v.Path != "" && path.Clean(v.Path) == "/" }) && engine.Lacks(e, engine.Roots):
		return nil, errs.Msg(errs.Invalid, op, "/", fmt.Sprintf("the root of a sandbox of the engine %s is its image, and no volume", name))
	case s.Limits.Rated() && engine.Lacks(e, engine.Rates):
		return nil, errs.Msg(errs.Unsupported, op, name, "this engine doesn't bound what disks and networks do in a time; microvm does")
	}
	return e, nil
}

func noNetwork(op, engine string) error {
	return errs.Msg(errs.Unsupported, op, engine, "sandboxes of this engine have no network: nothing can be allowed to them")
}

// lacks reports whether the sandbox's engine lacks a feature.
func (s *Sandbox) lacks(f engine.Feature) bool {
	e, err := s.n.engine(s.spec.Engine)
	return err == nil && engine.Lacks(e, f)
}

// freezeTimeout bounds how long a fork waits for the sandbox to come to rest and be captured, where its context says nothing shorter.
func (s *Sandbox) freezeTimeout() time.Duration {
	e, err := s.n.engine(s.spec.Engine)
	if err != nil {
		e = s.n.o.Engine
	}
	return engine.FreezeTimeout(e)
}

// mayConnect refuses rules for a sandbox whose engine has no network.
func (s *Sandbox) mayConnect(op string, rules []string) error {
	if len(rules) > 0 && s.lacks(engine.Network) {
		return noNetwork(op, s.spec.Engine)
	}
	return nil
}

// describe tells which engines the node has: for each whether it works, or why not, and what it lacks.
func (n *Node) describe() (works map[string]string, lacks map[string][]string) {
	works, lacks = map[string]string{api.Userspace: ""}, map[string][]string{}
	add := func(name string, e engine.Engine) {
		works[name] = ""
		for _, f := range engine.Features() {
			if engine.Lacks(e, f) {
				lacks[name] = append(lacks[name], string(f))
			}
		}
	}
	for name, why := range n.o.Missing {
		works[name] = why
	}
	for name, e := range n.o.Engines {
		add(name, e)
	}
	add(api.Userspace, n.o.Engine)
	return works, lacks
}

// dead finds those of a list whose instances ended by themselves, such as VMs whose process was killed, and ends them. It returns their ids.
func (n *Node) dead(ctx context.Context, list []*Sandbox) map[string]bool {
	out := map[string]bool{}
	for name, e := range n.o.Engines {
		here := slices.DeleteFunc(slices.Clone(list), func(s *Sandbox) bool { return s.spec.Engine != name })
		if len(here) == 0 {
			continue
		}
		have, err := e.List(ctx)
		if err != nil {
			n.o.Log.Warn("ask an engine what runs", "engine", name, "err", err)
			continue
		}
		live := make(map[string]bool, len(have))
		for _, st := range have {
			live[st.ID] = true
		}
		for _, s := range here {
			if live[s.id] || s.living() != nil {
				continue
			}
			out[s.id] = true
			n.endDead(ctx, s)
		}
	}
	return out
}

func (n *Node) endDead(ctx context.Context, s *Sandbox) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return // which ends all
	}
	n.o.Log.Error("a sandbox has ended by itself", "sandbox", s.id, "engine", s.spec.Engine)
	n.ends.Add(1)
	go func() {
		defer n.ends.Done()
		s.EndSoon(ctx)
	}()
}
