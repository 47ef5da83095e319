package userspace

import (
	"sync"

	"agentrun.dev/command"
	"agentrun.dev/proc"
	"agentrun.dev/shell"
	"agentrun.dev/vfs"
	"agentrun.dev/wasm"
	"agentrun.dev/wasm/python"
)

// Guests are the interpreters that run as WebAssembly. A host process has one value of them, which all its sandboxes share: what they need is
// loaded when a program is first run. They are Commands: those of Commands(), and their own.
type Guests struct {
	*command.Set
	runtime func() (*wasm.Runtime, error)
	python  *python.Interpreter

	mu sync.Mutex
	rt *wasm.Runtime // once it has been made
}

// GuestOptions describe guests.
type GuestOptions struct {
	CacheDir string // for compiled code, as wasm.Options has it; empty: each process compiles anew, which takes seconds
}

// NewGuests returns guests.
func NewGuests(o GuestOptions) *Guests {
	g := &Guests{}
	g.runtime = sync.OnceValues(func() (*wasm.Runtime, error) {
		r, err := wasm.New(wasm.Options{CacheDir: o.CacheDir})
		if err == nil {
			g.mu.Lock()
			g.rt = r
			g.mu.Unlock()
		}
		return r, err
	})
	g.python = python.New(python.Options{Runtime: g.runtime})
	programs := map[string]proc.Program{"bash": shell.New(false), "sh": shell.New(true)}
	for name, p := range g.python.Programs() {
		programs[name] = p
	}
	g.Set = command.NewSet(programs)
	return g
}

// Close frees what guests use. No sandbox that has them may run any more.
func (g *Guests) Close() error {
	g.python.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.rt == nil {
		return nil
	}
	return g.rt.Close()
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
