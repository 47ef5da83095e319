// Package python is CPython as a program of sandboxes: python3 and what belongs to it.
//
// The interpreter is a WebAssembly guest (wasm/guests). It is initialised once in the life of an Interpreter; what every run starts from is a
// snapshot of that, so a run is warm: its memory is mapped, not made. A command line that asks for something else than CPython's usual
// initialisation (-E, -I, -S, -O, -X, -W …, most variables PYTHON*, a virtual environment) is cold: the guest's own main does it all.
//
// The standard library is a filesystem that sandboxes mount at LibraryPath.
package python

import (
	"context"
	"fmt"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"agentrun.dev/errs"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
	"agentrun.dev/wasm"
	"agentrun.dev/wasm/guests"
)

// LibraryPath is where sandboxes mount the standard library.
const LibraryPath = "/usr/lib/python3.11"

// executable is where the interpreter says that it is, unless it was called by a path.
const executable = "/usr/bin/python3"

// Options describe an Interpreter.
type Options struct {
	// Runtime runs the guest; it is called when it is first needed, and once.
	Runtime func() (*wasm.Runtime, error)
	// Dial connects processes to the outside. nil: there is nothing outside.
	Dial Dial
}

// Interpreter is what all runs of one host process share. All methods may be called concurrently.
type Interpreter struct {
	o       Options
	library *library
	module  func() (*wasm.Module, error)
	warm    warm
	conns   sync.Map // of *conns, by *proc.Process
	handles atomic.Int64
}

// Close waits for what is done in the background and lets go of the snapshots. No program may run any more.
func (in *Interpreter) Close() { in.warm.close() }

// New returns an Interpreter. Nothing is read or compiled before it is needed.
func New(o Options) *Interpreter {
	in := &Interpreter{o: o}
	in.warm.first = sync.OnceValues(in.initialise)
	in.library = newLibrary(func() ([]byte, error) { return guests.Read("python.zip") })
	in.module = sync.OnceValues(func() (*wasm.Module, error) {
		code, err := guests.Read("python.wasm")
		if err != nil {
			return nil, err
		}
		r, err := o.Runtime()
		if err != nil {
			return nil, err
		}
		return r.Compile(context.Background(), code, wasm.CompileOptions{Name: "python3"})
	})
	return in
}

// Library returns the standard library, to be mounted read-only at LibraryPath; nil if it isn't part of this build.
func (in *Interpreter) Library() vfs.FS {
	if !guests.Has("python.zip") {
		return nil
	}
	return in.library
}

// Programs returns the commands by their names.
func (in *Interpreter) Programs() map[string]proc.Program {
	python := proc.Func(in.Run)
	pip := proc.Func(func(p *proc.Process) int {
		p.SetArgs(append([]string{"python3", "-m", "pip"}, p.Args()[1:]...))
		return in.Run(p)
	})
	return map[string]proc.Program{"python3": python, "python": python, "python3.11": python, "pip": pip, "pip3": pip}
}

// Operations that the guest asks for by agentrun_call.
const (
	callRequest = 1 // what the run is to do
)

// Run is the program python3.
func (in *Interpreter) Run(p *proc.Process) int {
	fail := func(err error) int {
		fmt.Fprintf(p.Stderr(), "%s: %v\n", p.Args()[0], err)
		return 126
	}
	m, err := in.module()
	if err != nil {
		return fail(err)
	}
	req, ok := parse(p.Args()[1:], p.Environ())
	c := in.config(&req)
	g, entry := (*wasm.Instance)(nil), "agentrun_run"
	if !ok || in.venv(p) {
		g, err = m.Instantiate(p, c)
		entry = "_start"
	} else {
		req.executable = where(p)
		g, err = in.start(p, c)
	}
	if err != nil {
		return fail(err)
	}
	return p.RunAs(g.Task(entry, in.end).SaveAs(kind))
}

// kind is who saves running interpreters.
const kind = "python"

// Restore returns the state of a running interpreter that was saved (proc.Saver) by this kind.
func (in *Interpreter) Restore(k string, data []byte) (proc.State, error) {
	if k != kind {
		return nil, errs.Msg(errs.Unsupported, "restore", k, "not saved by python3")
	}
	m, err := in.module()
	if err != nil {
		return nil, err
	}
	return m.Restore(kind, data, in.config(&request{}), in.end)
}

// config is how programs run; req is what the interpreter is told when it begins.
func (in *Interpreter) config(req *request) wasm.Config {
	return wasm.Config{Call: func(p *proc.Process, op uint32, data []byte) ([]byte, error) {
		switch {
		case op == callRequest:
			return req.encode(p.Args()), nil
		case op >= callConnect && op <= callAdopt:
			return in.network(p, op, data), nil
		}
		return nil, syscall.ENOSYS
	}}
}

// end makes an exit status of how the interpreter ended.
func (in *Interpreter) end(p *proc.Process, result []uint64, err error) int {
	in.hangUp(p)
	switch {
	case err != nil:
		return wasm.Ended(p, err, "Fatal Python error")
	case len(result) == 0:
		return 0
	}
	return int(int32(result[0])) & 0xff
}

// where returns what sys.executable is to be.
func where(p *proc.Process) string {
	name := p.Args()[0]
	switch {
	case !strings.Contains(name, "/"):
		file, err := p.Find(name, p.Getenv("PATH"))
		if dir := path.Dir(file); err != nil || dir == "/bin" || dir == "/usr/bin" {
			return executable
		}
		return file
	case path.IsAbs(name):
		return path.Clean(name)
	}
	return path.Join(p.Getwd(), name)
}

// venv tells whether the program was called by its name in a virtual environment, which the guest's own main finds.
func (in *Interpreter) venv(p *proc.Process) bool {
	name := where(p)
	if name == executable {
		return false
	}
	_, err := p.Stat(path.Join(path.Dir(name), "../pyvenv.cfg"))
	return err == nil
}
