package userspace

import (
	"context"
	"errors"
	"maps"
	"net"
	"path/filepath"
	"sync"

	"agentrun.dev/command"
	"agentrun.dev/command/services"
	"agentrun.dev/errs"
	"agentrun.dev/proc"
	"agentrun.dev/shell"
	"agentrun.dev/vfs"
	"agentrun.dev/wasm"
	"agentrun.dev/wasm/jq"
	"agentrun.dev/wasm/js"
	"agentrun.dev/wasm/python"
)

// Guests are the interpreters that run as WebAssembly. A host process has one value of them, which all its sandboxes share: what they need is
// loaded when a program is first run. They are Commands: those of Commands(), and their own.
type Guests struct {
	*command.Set
	python *python.Interpreter
	js     *js.Interpreter
	loader *wasm.Loader

	mu       sync.Mutex
	closed   bool
	runtimes []*wasm.Runtime // once they have been made
}

// GuestOptions describe guests.
type GuestOptions struct {
	CacheDir string // for compiled code, as wasm.Options has it; empty: each process compiles anew, which takes seconds
}

// NewGuests returns guests.
func NewGuests(o GuestOptions) *Guests {
	g := &Guests{}
	shared := g.runtime(wasm.Options{CacheDir: o.CacheDir, Stack: 40 << 20})
	g.python = python.New(python.Options{Runtime: shared, Dial: dial})
	g.js = js.New(js.Options{Runtime: shared, Connect: func(p *proc.Process) func(context.Context, string, string) (net.Conn, error) {
		return services.From(p).Connect
	}})
	own := wasm.Options{Ready: 1}
	if o.CacheDir != "" {
		own.CacheDir = filepath.Join(o.CacheDir, "programs")
	}
	g.loader = wasm.NewLoader(g.runtime(own), wasm.LoaderOptions{})
	programs := map[string]proc.Program{"bash": shell.New(false), "sh": shell.New(true)}
	for _, of := range []map[string]proc.Program{g.python.Programs(), g.js.Programs(), jq.New(jq.Options{Runtime: shared}).Programs()} {
		maps.Copy(programs, of)
	}
	g.Set = command.NewSet(programs)
	return g
}

// dial connects under the policy of the process's sandbox.
func dial(ctx context.Context, p *proc.Process, network, addr string) (net.Conn, error) {
	return services.From(p).Connect(ctx, network, addr)
}

// runtime returns a function that makes a runtime at its first call.
func (g *Guests) runtime(o wasm.Options) func() (*wasm.Runtime, error) {
	return sync.OnceValues(func() (*wasm.Runtime, error) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.closed {
			return nil, errs.Msg(errs.Unavailable, "start", "guests", "they are closed")
		}
		r, err := wasm.New(o)
		if err == nil {
			g.runtimes = append(g.runtimes, r)
		}
		return r, err
	})
}

// Load is for Options.Load: it finds the programs behind files that are WebAssembly modules. Sandboxes whose commands are Guests have it unless another one
// is given.
func (g *Guests) Load(p *proc.Process, file string, head []byte) (proc.Program, bool) {
	return g.loader.Load(p, file, head)
}

// Close frees what guests use. No sandbox that has them may run any more.
func (g *Guests) Close() error {
	g.python.Close()
	g.js.Close()
	g.mu.Lock()
	g.closed = true
	all := g.runtimes
	g.mu.Unlock()
	var failed error
	for _, r := range all {
		failed = errors.Join(failed, r.Close())
	}
	return failed
}

// loadOf returns what finds programs in files: load or, if that is nil, what comes with commands.
func loadOf(c proc.Commands, load func(*proc.Process, string, []byte) (proc.Program, bool)) func(*proc.Process, string, []byte) (proc.Program, bool) {
	if l, ok := c.(interface {
		Load(*proc.Process, string, []byte) (proc.Program, bool)
	}); ok && load == nil {
		return l.Load
	}
	return load
}

// Restore takes what running interpreters have saved, on this host and with the same CacheDir.
func (g *Guests) Restore(kind string, data []byte) (proc.State, error) {
	if kind == "node" {
		return g.js.Restore(kind, data)
	}
	return g.python.Restore(kind, data)
}

// Mounts returns the filesystems that the programs need.
func (g *Guests) Mounts() []vfs.Mount {
	library := g.python.Library()
	if library == nil {
		return nil
	}
	return []vfs.Mount{{Path: python.LibraryPath, FS: library, Source: "python", Type: "agentrun", ReadOnly: true}}
}

// mountsOf returns the filesystems that come with commands.
func mountsOf(c proc.Commands) []vfs.Mount {
	if m, ok := c.(interface{ Mounts() []vfs.Mount }); ok {
		return m.Mounts()
	}
	return nil
}
