package userspace

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"

	"agentrun.dev/command/coreutils"
	"agentrun.dev/command/world"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/proc"
	"agentrun.dev/shell"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
)

// EngineOptions are what all sandboxes of an engine have in common.
type EngineOptions struct {
	Commands proc.Commands // Commands() when nil
	Load     func(p *proc.Process, file string, head []byte) (proc.Program, bool)
	// Restore makes a program's state of what it saved, for programs that New's caller added; others are known.
	Restore func(kind string, data []byte) (proc.State, error)
}

// Engine implements engine.Engine in this process.
type Engine struct {
	o   EngineOptions
	bin vfs.FS

	pattern func() (*memfs.FS, error) // of roots; made for the first

	mu        sync.Mutex
	instances map[*Sandbox]struct{}
}

var _ engine.Engine = (*Engine)(nil)

// NewEngine returns an engine without instances.
func NewEngine(o EngineOptions) *Engine {
	if o.Commands == nil {
		o.Commands = Commands()
	}
	o.Load = loadOf(o.Commands, o.Load)
	return &Engine{o: o, bin: proc.NewBin(o.Commands), pattern: sync.OnceValues(newPattern), instances: map[*Sandbox]struct{}{}}
}

// Lacks implements engine.Lacker: the root is the engine's own, or a volume.
func (e *Engine) Lacks() []engine.Feature { return []engine.Feature{engine.Images, engine.Rates} }

// Boot implements engine.Engine.
func (e *Engine) Boot(ctx context.Context, s engine.Spec) (engine.Instance, error) {
	if s.ID == "" {
		return nil, errs.Msg(errs.Invalid, "boot", "", "a sandbox needs an id")
	}
	pattern, err := e.pattern()
	if err != nil {
		return nil, err
	}
	sb, err := New(ctx, Options{
		bin: e.bin, pattern: pattern, ID: s.ID, Volumes: s.Volumes, Commands: e.o.Commands, Load: e.o.Load, Env: s.Env, Dir: s.Dir, Hostname: s.Hostname, Services: s.Services,
		Limits: proc.Limits{
			Processes: s.Limits.Processes, Files: s.Limits.Files, OutputBytes: s.Limits.Output, FileBytes: s.Limits.Written,
			SandboxMemory: s.Limits.Memory, CPU: s.Limits.CPU,
		},
	})
	if err != nil {
		return nil, err
	}
	sb.env = mergeEnv(sb.env, s.Identity.Env)
	e.add(sb)
	return sb, nil
}

func (e *Engine) add(s *Sandbox) {
	s.engine = e
	s.ended = sync.OnceFunc(func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.instances, s)
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	e.instances[s] = struct{}{}
}

// Load implements engine.Engine.
func (e *Engine) Load(_ context.Context, r io.Reader) (engine.Image, error) {
	im, err := load(r, e.o.Commands, e.restore)
	if err != nil {
		return nil, err
	}
	im.load, im.own = e.o.Load, e
	return im, nil
}

// restore finds who saved a program's state.
func (e *Engine) restore(kind string, data []byte) (proc.State, error) {
	switch kind {
	case shell.Kind:
		return shell.Restore(data)
	case world.ForkKind:
		return world.LoadFork(data)
	case coreutils.SleepKind, coreutils.CatKind, coreutils.TailKind, coreutils.TimeoutKind:
		return coreutils.Restore(kind, data)
	}
	if e.o.Restore != nil {
		return e.o.Restore(kind, data)
	}
	if g, ok := e.o.Commands.(interface {
		Restore(kind string, data []byte) (proc.State, error)
	}); ok {
		return g.Restore(kind, data)
	}
	return nil, errs.Msg(errs.Unsupported, "restore", kind, "no program of this engine saved that")
}

// List implements engine.Engine.
func (e *Engine) List(ctx context.Context) ([]engine.Status, error) {
	e.mu.Lock()
	list := make([]*Sandbox, 0, len(e.instances))
	for s := range e.instances {
		list = append(list, s)
	}
	e.mu.Unlock()
	slices.SortFunc(list, func(a, b *Sandbox) int {
		if c := a.started.Compare(b.started); c != 0 {
			return c
		}
		return strings.Compare(a.id, b.id)
	})
	out := make([]engine.Status, len(list))
	for i, s := range list {
		stats, err := s.Stats(ctx)
		if err != nil {
			return nil, err
		}
		out[i] = engine.Status{ID: s.id, Started: s.started, Frozen: s.frozen.Load(), Stats: stats}
	}
	return out, nil
}
