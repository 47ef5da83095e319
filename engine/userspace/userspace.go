// Package userspace runs sandboxes in this process: files by vfs, processes by proc, a shell and commands that see
// nothing else.
//
// A Sandbox is a root filesystem with what every Unix has (/bin, /dev, /etc, /home/user, /proc, /tmp …), further mounts,
// and processes. Exec runs one command in it and waits. Any number of commands may run at once; they share files and see
// each other's processes, as on one machine.
package userspace

import (
	"context"
	"io"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/command"
	"agentrun.dev/errs"
	"agentrun.dev/proc"
	"agentrun.dev/shell"
	"agentrun.dev/vfs"
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
	Root     *vfs.Mount       // the root filesystem; in memory when nil. Its Special is set by New unless it has one
	Mounts   []vfs.Mount      // further filesystems, in this order; Special as above
	Commands proc.Commands    // Commands() when nil
	Env      []string         // of every command: NAME=VALUE, over the defaults
	Dir      string           // where commands start; /workspace when empty
	Cred     *vfs.Cred        // whose name they run in; user when nil
	Limits   proc.Limits      // of all processes together
	Hostname string           // "sandbox" when empty
	Clock    func() time.Time // the time inside; time.Now when nil
	Rand     io.Reader        // the randomness inside; the system's when nil
}

// Sandbox is a running sandbox. All methods may be called concurrently.
type Sandbox struct {
	sb   *proc.Sandbox
	ns   *vfs.Namespace
	env  []string
	dir  string
	cred vfs.Cred
}

// Commands returns all commands, with bash and sh.
func Commands() *command.Set {
	return command.NewSet(map[string]proc.Program{"bash": shell.New(false), "sh": shell.New(true)})
}

// New makes a sandbox. Its filesystems belong to the caller, who keeps them open until Close has returned.
func New(ctx context.Context, o Options) (*Sandbox, error) {
	if o.Commands == nil {
		o.Commands = Commands()
	}
	s := &Sandbox{dir: o.Dir, cred: vfs.Cred{UID: UID, GID: GID, Umask: 0o022}}
	if s.dir == "" {
		s.dir = Workspace
	}
	if o.Cred != nil {
		s.cred = *o.Cred
	}
	var err error
	if s.ns, err = layout(ctx, &o); err != nil {
		return nil, err
	}
	s.env = mergeEnv([]string{"HOME=" + Home, "USER=" + User, "LOGNAME=" + User, "PATH=" + proc.DefaultPath, "SHELL=/bin/bash", "LANG=C.UTF-8", "PWD=" + s.dir}, o.Env)
	s.sb, err = proc.New(proc.Options{Namespace: s.ns, Commands: o.Commands, Limits: o.Limits, Hostname: o.Hostname, Clock: o.Clock, Rand: o.Rand})
	if err != nil {
		return nil, err
	}
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

// Cmd is a command to run.
type Cmd struct {
	Args   []string // the first is found through PATH unless it has a slash
	Env    []string // over the sandbox's
	Dir    string   // the sandbox's when empty
	Stdin  io.Reader
	Stdout io.Writer // nil discards
	Stderr io.Writer
	TTY    bool // the streams look like a terminal

	// Signals are delivered to the command's process group until it ends.
	Signals <-chan int
}

// linger is how long processes that a command leaves in the background may still take, before they are killed.
const linger = 250 * time.Millisecond

// Exec runs a command and waits for it. The status is the command's own: 126 when it can't be executed, 127 when there
// is none of that name, 128+n when signal n ended it. Processes that it leaves in the background get a quarter of a second to end, then they are killed. When ctx
// is done the command is killed and the error is errs.Canceled; one that used up a limit comes with errs.Limit.
func (s *Sandbox) Exec(ctx context.Context, c Cmd) (status int, err error) {
	if len(c.Args) == 0 {
		return 0, errs.Msg(errs.Invalid, "exec", "", "no command")
	}
	p, err := s.process(c)
	if err != nil {
		return 126, err
	}
	status, err = s.start(p, c.Args)
	if err != nil || status >= 0 {
		return status, err
	}
	signals := c.Signals
	for {
		select {
		case <-p.Done():
			s.settle(ctx, p)
			return s.outcome(ctx, p)
		case sig, ok := <-signals:
			if !ok {
				signals = nil
				continue
			}
			s.signal(p, sig)
		case <-ctx.Done():
			s.signal(p, proc.SIGKILL)
			<-p.Done()
			s.sweep(p)
			return s.outcome(ctx, p)
		}
	}
}

// process makes the command's process, not yet started.
func (s *Sandbox) process(c Cmd) (*proc.Process, error) {
	dir := c.Dir
	if dir == "" {
		dir = s.dir
	}
	files := map[int]vfs.File{0: proc.NewInput(c.Stdin, c.TTY), 1: s.sb.NewOutput(c.Stdout, c.TTY), 2: s.sb.NewOutput(c.Stderr, c.TTY)}
	p, err := s.sb.NewProcess(proc.Root{Args: c.Args, Env: mergeEnv(mergeEnv(s.env, []string{"PWD=" + dir}), c.Env), Cred: s.cred, Files: files})
	if err != nil {
		return nil, errs.New(errs.Limit, "exec", c.Args[0], err)
	}
	if err := p.Chdir(dir); err != nil {
		p.Abandon(126)
		return nil, errs.New(errs.NotFound, "exec", dir, err)
	}
	return p, nil
}

// start starts the program; a status of 0 or more is the end already.
func (s *Sandbox) start(p *proc.Process, args []string) (int, error) {
	fail := func(status int, text string) (int, error) {
		if f := p.Stderr(); text != "" {
			io.WriteString(f, "agentrun: "+args[0]+": "+text+"\n")
		}
		p.Abandon(status)
		return status, nil
	}
	file, err := p.Find(args[0], p.Getenv("PATH"))
	if err == syscall.ENOENT {
		return fail(127, "command not found")
	}
	if err == nil {
		err = p.StartFile(file, args)
	}
	switch err {
	case nil:
		return -1, nil
	case syscall.ENOENT:
		return fail(127, vfs.Strerror(err))
	case syscall.ENOEXEC: // a script without an interpreter's name
		p.SetArgs(append([]string{"sh", file}, args[1:]...))
		p.Start(shell.New(true))
		return -1, nil
	}
	return fail(126, vfs.Strerror(err))
}

// signal sends a signal to all processes of the command's session.
func (s *Sandbox) signal(p *proc.Process, sig int) {
	sid := p.Sid()
	for _, q := range s.sb.Processes() {
		if q.Sid() == sid {
			q.Post(sig)
		}
	}
}

// settle waits for what the command has left in the background, and kills what doesn't end by itself.
func (s *Sandbox) settle(ctx context.Context, p *proc.Process) {
	t := time.NewTimer(linger)
	defer t.Stop()
	sid := p.Sid()
	for _, q := range s.sb.Processes() {
		if q.Sid() != sid || q == p {
			continue
		}
		select {
		case <-q.Done():
			continue
		case <-t.C:
		case <-ctx.Done():
		}
		s.sweep(p)
		return
	}
}

// sweep kills what the command has left behind.
func (s *Sandbox) sweep(p *proc.Process) { s.signal(p, proc.SIGKILL) }

func (s *Sandbox) outcome(ctx context.Context, p *proc.Process) (int, error) {
	status := p.Status()
	if err := ctx.Err(); err != nil && p.Signaled() == proc.SIGKILL {
		return status, errs.New(errs.Canceled, "exec", p.Args()[0], err)
	}
	if what := s.sb.Exceeded(); what != "" && (p.Signaled() == proc.SIGXCPU || p.Signaled() == proc.SIGXFSZ) {
		return status, errs.Msg(errs.Limit, "exec", p.Args()[0], what+" limit exceeded")
	}
	return status, nil
}

// Namespace returns the sandbox's files.
func (s *Sandbox) Namespace() *vfs.Namespace { return s.ns }

// Defect tells of the first program that failed by a defect of its own, with its stack, or is "": for logs.
func (s *Sandbox) Defect() string { return s.sb.Defect() }

// Close kills all processes and waits for them, until ctx is done.
func (s *Sandbox) Close(ctx context.Context) error { return s.sb.Close(ctx) }
