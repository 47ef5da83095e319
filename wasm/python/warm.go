package python

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"

	"agentrun.dev/errs"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
	"agentrun.dev/wasm"
)

// warm keeps the snapshots that runs start from: first one of the interpreter as it is initialised, and, once there was a second run, one in
// which common modules are loaded too. A host process that runs one program doesn't pay for the latter.
type warm struct {
	first  func() (*wasm.Snapshot, error)
	better atomic.Pointer[wasm.Snapshot]

	mu      sync.Mutex
	runs    int
	closed  bool
	loading sync.WaitGroup
}

// start returns an initialised interpreter that is bound to p.
func (in *Interpreter) start(p *proc.Process, c wasm.Config) (*wasm.Instance, error) {
	if s := in.warm.better.Load(); s != nil {
		return s.Start(p, c)
	}
	s, err := in.warm.first()
	if err != nil {
		return nil, err
	}
	in.warm.count(func() { in.preload(s) })
	return s.Start(p, c)
}

// count starts load in the background at the second run.
func (w *warm) count(load func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs++; w.runs != 2 || w.closed {
		return
	}
	w.loading.Add(1)
	go func() {
		defer w.loading.Done()
		load()
	}()
}

func (w *warm) close() {
	w.mu.Lock()
	w.closed = true
	started := w.runs > 0
	w.mu.Unlock()
	w.loading.Wait()
	if s := w.better.Swap(nil); s != nil {
		s.Close()
	}
	if !started {
		return
	}
	if s, err := w.first(); err == nil {
		s.Close()
	}
}

// initialise makes the first snapshot, in a sandbox of its own that has nothing but the library.
func (in *Interpreter) initialise() (s *wasm.Snapshot, err error) {
	m, err := in.module()
	if err != nil {
		return nil, err
	}
	err = in.within(func(p *proc.Process) error {
		g, err := m.Instantiate(p, wasm.Config{})
		if err != nil {
			return err
		}
		defer g.Close()
		s, err = snapshot(p, g, "agentrun_init")
		return err
	})
	return s, err
}

// preload makes the better snapshot. Should it fail, the first one goes on to serve.
func (in *Interpreter) preload(first *wasm.Snapshot) {
	in.within(func(p *proc.Process) error {
		g, err := first.Start(p, wasm.Config{})
		if err != nil {
			return err
		}
		defer g.Close()
		s, err := snapshot(p, g, "agentrun_preload")
		if err == nil {
			in.warm.better.Store(s)
		}
		return err
	})
}

// snapshot calls a function that brings the interpreter to where a snapshot is to be taken.
func snapshot(p *proc.Process, g *wasm.Instance, function string) (*wasm.Snapshot, error) {
	result, err := g.Call(p.Context(), function)
	if err == nil && result[0] != 0 {
		err = fmt.Errorf("%s failed (%d)", function, int32(result[0]))
	}
	if err != nil {
		return nil, errs.New(errs.Other, "start", "python3", err)
	}
	return g.Snapshot()
}

// within runs f as a process of a sandbox that has the library, no commands, and no streams but an output that is thrown away.
func (in *Interpreter) within(f func(p *proc.Process) error) error {
	ctx := context.Background()
	ns := vfs.NewNamespace(vfs.Mount{FS: memfs.New(memfs.Options{})})
	for _, d := range []string{"/usr", "/usr/lib", LibraryPath} {
		if err := ns.Mkdir(ctx, vfs.Cred{}, "", d, 0o755); err != nil {
			return errs.New(errs.Other, "start", "python3", err)
		}
	}
	if err := ns.Mount(ctx, vfs.Mount{Path: LibraryPath, FS: in.library, ReadOnly: true}); err != nil {
		return errs.New(errs.Other, "start", "python3", err)
	}
	sb, err := proc.New(proc.Options{Namespace: ns, Commands: none{}})
	if err != nil {
		return err
	}
	defer sb.Close(ctx)
	out := make(map[int]vfs.File, 3)
	for fd := range 3 {
		out[fd] = sb.NewOutput(discard{}, false)
	}
	p, err := sb.NewProcess(proc.Root{Args: []string{"python3"}, Env: []string{"HOME=/"}, Files: out})
	if err != nil {
		return err
	}
	var failed error = syscall.EIO // if it doesn't even come to f
	p.Start(proc.Func(func(p *proc.Process) int {
		failed = f(p)
		return 0
	}))
	<-p.Done()
	return failed
}

type none struct{}

func (none) Lookup(string) (proc.Program, bool) { return nil, false }
func (none) Names() []string                    { return nil }

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
