// Package userspace runs sandboxes in this process: files by vfs, processes by proc, a shell and commands that see
// nothing else.
//
// A Sandbox is a root filesystem with what every Unix has (/bin, /dev, /etc, /home/user, /proc, /tmp …), further volumes,
// and processes. Run executes one command in it and waits, Exec leaves the waiting to the caller. Any number of commands
// may run at once; they share files and see each other's processes, as on one machine. A Sandbox is an engine.Instance: it
// can be frozen, captured as an image while its processes rest, and started again from it any number of times.
//
// New is for programs that embed a sandbox; an Engine makes sandboxes of the specs that all engines understand.
package userspace

import (
	"context"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentrun.dev/command"
	"agentrun.dev/command/services"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/proc"
	"agentrun.dev/shell"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
)

// The user of a sandbox, and where things are.
const (
	User      = "user"
	UID       = 1000
	GID       = 1000
	Home      = "/home/user"
	Workspace = "/workspace"
)

// Options describe a sandbox. The zero value is a sandbox in memory.
type Options struct {
	ID       string             // names it; may be empty
	Volumes  []engine.Volume    // what is mounted, in this order; one at "/" is the root, which else is in memory
	Commands proc.Commands      // Commands() when nil
	Env      []string           // of every command: NAME=VALUE, over the defaults
	Dir      string             // where commands start; /workspace when empty
	Cred     *vfs.Cred          // whose name they run in; user when nil
	Limits   proc.Limits        // of all processes together
	Hostname string             // "sandbox" when empty
	Services *services.Services // what commands may ask of the host; nil: nothing
	Clock    func() time.Time   // the time inside; time.Now when nil
	Rand     io.Reader          // the randomness inside; the system's when nil

	// Load finds the program behind a file of another format than a script, such as WebAssembly; nil: what comes with Commands, if
	// they are Guests.
	Load func(p *proc.Process, file string, head []byte) (proc.Program, bool)

	bin     vfs.FS    // of Commands, where many sandboxes have the same; nil: it is made
	pattern *memfs.FS // of the root, likewise
}

// Sandbox is a running sandbox. It implements engine.Instance, engine.Meter, engine.Filer, engine.Dialer and engine.Attacher;
// all methods may be called concurrently.
type Sandbox struct {
	id      string
	sb      *proc.Sandbox
	ns      *vfs.Namespace
	root    *memfs.FS // nil if the root is a volume
	base    base
	env     []string
	started time.Time
	frozen  atomic.Bool
	engine  *Engine // that lists it; may be nil
	ended   func()  // tells the engine

	mu       sync.Mutex
	commands map[int]*Process // that Exec started
}

// base is what a sandbox has in common with those forked from it.
type base struct {
	commands proc.Commands
	load     func(p *proc.Process, file string, head []byte) (proc.Program, bool)
	env      []string
	dir      string
	cred     vfs.Cred
}

var (
	_ engine.Instance = (*Sandbox)(nil)
	_ engine.Meter    = (*Sandbox)(nil)
	_ engine.Filer    = (*Sandbox)(nil)
	_ engine.Dialer   = (*Sandbox)(nil)
)

// Commands returns all commands, with bash and sh.
func Commands() *command.Set {
	return command.NewSet(map[string]proc.Program{"bash": shell.New(false), "sh": shell.New(true)})
}

// New makes a sandbox. Its volumes belong to the caller, who keeps them open until Stop has returned.
func New(ctx context.Context, o Options) (*Sandbox, error) {
	if o.Commands == nil {
		o.Commands = Commands()
	}
	o.Load = loadOf(o.Commands, o.Load)
	s := &Sandbox{id: o.ID, started: time.Now(), commands: map[int]*Process{}}
	s.base = base{commands: o.Commands, load: o.Load, dir: o.Dir, cred: vfs.Cred{UID: UID, GID: GID, Umask: 0o022}}
	if s.base.dir == "" {
		s.base.dir = Workspace
	}
	if o.Cred != nil {
		s.base.cred = *o.Cred
	}
	var err error
	if s.ns, s.root, err = layout(ctx, &o); err != nil {
		return nil, err
	}
	s.base.env = mergeEnv([]string{"HOME=" + Home, "USER=" + User, "LOGNAME=" + User, "PATH=" + proc.DefaultPath + ":" + Home + "/.local/bin", "SHELL=/bin/bash", "LANG=C.UTF-8", "PWD=" + s.base.dir}, o.Env)
	s.env = s.base.env
	network := &network{outside: o.Services}
	s.sb, err = proc.New(proc.Options{Namespace: s.ns, Commands: o.Commands, Limits: o.Limits, Hostname: o.Hostname, Clock: o.Clock, Rand: o.Rand, Services: network.services(), Load: o.Load})
	if err != nil {
		return nil, err
	}
	network.sb = s.sb
	if err := mount(ctx, s.ns, vfs.Mount{Path: "/proc", FS: proc.NewProc(s.sb), Source: "proc", Type: "proc", ReadOnly: true}); err != nil {
		return nil, err
	}
	return s, nil
}

// mergeEnv puts variables over others of the same name.
func mergeEnv(base, over []string) []string {
	out := append([]string(nil), base...)
	for _, kv := range over {
		name, _, _ := strings.Cut(kv, "=")
		replaced := false
		for i := range out {
			if strings.HasPrefix(out[i], name+"=") {
				out[i], replaced = kv, true
			}
		}
		if !replaced {
			out = append(out, kv)
		}
	}
	return out
}

// ID implements engine.Instance.
func (s *Sandbox) ID() string { return s.id }

// Namespace returns the sandbox's files.
func (s *Sandbox) Namespace() *vfs.Namespace { return s.ns }

// Defect tells of the first program that failed by a defect of its own, with its stack, or is "": for logs.
func (s *Sandbox) Defect() string { return s.sb.Defect() }

// Stats implements engine.Meter.
func (s *Sandbox) Stats(context.Context) (engine.Stats, error) {
	u := s.sb.Usage()
	return engine.Stats{CPU: u.CPU, Memory: u.Memory, MemoryPeak: u.MemoryPeak, Processes: u.Processes, Output: u.OutputBytes, Written: u.FileBytes}, nil
}

// Stop kills all processes and waits for them, until ctx is done.
func (s *Sandbox) Stop(ctx context.Context) error {
	err := s.sb.Close(ctx)
	if err == nil && s.ended != nil {
		s.ended()
	}
	return err
}

// unavailable is the error of what comes after Stop.
func unavailable(op, id string) error {
	return errs.Msg(errs.Unavailable, op, id, "the sandbox has been stopped")
}
