// Package js is QuickJS-ng as programs of sandboxes: node, with the parts of Node that scripts use, and qjs.
//
// The interpreter is a WebAssembly guest (wasm/guests/js). What Node has beside the language is written in JavaScript (lib), loaded once in the life of
// an Interpreter; what every run starts from is a snapshot of that. A few things are computed here for the guest: digests, ciphers, compression,
// and requests to the network as far as the sandbox has one.
package js

import (
	"context"
	"embed"
	"fmt"
	"net"
	"sync"
	"syscall"

	"agentrun.dev/errs"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
	"agentrun.dev/wasm"
	"agentrun.dev/wasm/guests"
)

//go:embed lib
var lib embed.FS

// Options describe an Interpreter.
type Options struct {
	// Runtime runs the guest; it is called when it is first needed, and once.
	Runtime func() (*wasm.Runtime, error)
	// Connect returns what connects a process to addresses outside of its sandbox, under the sandbox's policy; nil: there is no network.
	Connect func(p *proc.Process) func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Interpreter is what all runs of one host process share. All methods may be called concurrently.
type Interpreter struct {
	o      Options
	module func() (*wasm.Module, error)

	once  sync.Once
	ready chan struct{} // closed when snap or err is set
	snap  *wasm.Snapshot
	err   error
}

// New returns an Interpreter. Nothing is read or compiled before it is needed.
func New(o Options) *Interpreter {
	in := &Interpreter{o: o, ready: make(chan struct{})}
	in.module = sync.OnceValues(func() (*wasm.Module, error) {
		code, err := guests.Read("js.wasm")
		if err != nil {
			return nil, errs.New(errs.KindOf(err), "start", "node", err)
		}
		r, err := o.Runtime()
		if err != nil {
			return nil, errs.New(errs.KindOf(err), "start", "node", err)
		}
		return r.Compile(context.Background(), code, wasm.CompileOptions{Name: "node"})
	})
	return in
}

// Close lets go of the snapshot. No program may run any more.
func (in *Interpreter) Close() {
	in.once.Do(func() {
		in.err = errs.Msg(errs.Unavailable, "start", "node", "it is closed")
		close(in.ready)
	})
	<-in.ready
	if in.snap != nil {
		in.snap.Close()
	}
}

// snapshot returns what runs start from, which the first of them begins to make. One that is killed doesn't wait for it.
func (in *Interpreter) snapshot(ctx context.Context) (*wasm.Snapshot, error) {
	in.once.Do(func() {
		go func() {
			defer close(in.ready)
			in.snap, in.err = in.initialise()
		}()
	})
	select {
	case <-in.ready:
		return in.snap, in.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Programs returns the commands by their names.
func (in *Interpreter) Programs() map[string]proc.Program {
	run := proc.Func(in.Run)
	return map[string]proc.Program{"node": run, "nodejs": run, "qjs": run}
}

// Run is the programs node and qjs, by the process's first argument.
func (in *Interpreter) Run(p *proc.Process) int {
	fail := func(err error) int {
		fmt.Fprintf(p.Stderr(), "%s: %v\n", p.Args()[0], err)
		return 126
	}
	s, err := in.snapshot(p.Context())
	if sig := p.Killed(); sig != 0 {
		return 128 + sig
	}
	if err != nil {
		return fail(err)
	}
	g, err := s.Start(p, wasm.Config{Call: in.call})
	if err != nil {
		return fail(err)
	}
	return p.RunAs(g.Task("agentrun_run", ended).SaveAs(kind))
}

// kind is who saves running interpreters.
const kind = "node"

// Restore returns the state of a running interpreter that was saved (proc.Saver) by this kind.
func (in *Interpreter) Restore(k string, data []byte) (proc.State, error) {
	if k != kind {
		return nil, errs.Msg(errs.Unsupported, "restore", k, "not saved by node")
	}
	m, err := in.module()
	if err != nil {
		return nil, err
	}
	return m.Restore(kind, data, wasm.Config{Call: in.call}, ended)
}

// ended makes an exit status of what the call returned.
func ended(p *proc.Process, result []uint64, err error) int {
	if err == nil {
		return int(int32(result[0])) & 0xff
	}
	return wasm.Ended(p, err, "FATAL ERROR")
}

// initialise makes the snapshot, in a sandbox of its own that has nothing.
func (in *Interpreter) initialise() (s *wasm.Snapshot, err error) {
	fail := func(err error) (*wasm.Snapshot, error) { return nil, errs.New(errs.KindOf(err), "start", "node", err) }
	m, err := in.module()
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	sb, err := proc.New(proc.Options{Namespace: vfs.NewNamespace(vfs.Mount{FS: memfs.New(memfs.Options{})}), Commands: none{}})
	if err != nil {
		return fail(err)
	}
	defer sb.Close(ctx)
	said := &message{}
	out := make(map[int]vfs.File, 3)
	for fd := range 3 {
		out[fd] = sb.NewOutput(said, false)
	}
	p, err := sb.NewProcess(proc.Root{Args: []string{"node"}, Files: out})
	if err != nil {
		return fail(err)
	}
	var failed error = syscall.EIO // if it doesn't even come to that
	p.Start(proc.Func(func(p *proc.Process) int {
		s, failed = in.warm(p, m, said)
		return 0
	}))
	<-p.Done()
	if failed != nil {
		return fail(failed)
	}
	return s, nil
}

func (in *Interpreter) warm(p *proc.Process, m *wasm.Module, said *message) (*wasm.Snapshot, error) {
	g, err := m.Instantiate(p, wasm.Config{Call: in.call})
	if err != nil {
		return nil, err
	}
	defer g.Close()
	result, err := g.Call(p.Context(), "agentrun_init")
	if err == nil && result[0] != 0 {
		err = fmt.Errorf("agentrun_init failed: %s", said.text())
	}
	if err != nil {
		return nil, err
	}
	return g.Snapshot()
}

// message keeps what the initialisation says, should it fail.
type message struct {
	mu sync.Mutex
	b  []byte
}

func (m *message) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.b) < 4096 {
		m.b = append(m.b, b...)
	}
	return len(b), nil
}

func (m *message) text() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return string(m.b)
}

type none struct{}

func (none) Lookup(string) (proc.Program, bool) { return nil, false }
func (none) Names() []string                    { return nil }
