package userspace

import (
	"context"
	"strconv"
	"syscall"

	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/proc"
)

var (
	_ engine.Attacher = (*Sandbox)(nil)
	_ engine.Mounter  = (*Sandbox)(nil)
)

// Running implements engine.Attacher: the leaders of sessions that no process of the sandbox started.
func (s *Sandbox) Running() []engine.Running {
	var out []engine.Running
	for _, p := range s.sb.Processes() {
		if leads(p) {
			out = append(out, engine.Running{Pid: p.Pid(), Args: p.Args(), TTY: p.TTY() != nil})
		}
	}
	return out
}

func leads(p *proc.Process) bool { return p.Parent() == nil && p.Sid() == p.Pid() }

// Attach implements engine.Attacher. errs.NotFound if no such command runs; errs.Exists if it has a client already.
func (s *Sandbox) Attach(_ context.Context, pid int, c Cmd) (engine.Process, error) {
	pp := s.sb.Lookup(pid)
	if pp == nil {
		if was, ok := s.sb.Past(pid); ok {
			return past{was}, nil
		}
	}
	if pp == nil || !leads(pp) {
		return nil, errs.Msg(errs.NotFound, "attach", s.id, "no command of this pid runs in the sandbox")
	}
	p := &Process{s: s, p: pp, keep: true}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.commands[pid] != nil {
		return nil, errs.Msg(errs.Exists, "attach", s.id, "the command has a client already")
	}
	if t := pp.TTY(); t != nil {
		t.Attach()
		p.connect(t, c)
	} else if a, err := s.sb.Attach(pid, proc.Streams{Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr}); err == nil {
		p.attached = a
	} else if err == syscall.ESRCH {
		return nil, errs.Msg(errs.NotFound, "attach", s.id, "the command has ended")
	} else {
		return nil, errs.New(errs.Unsupported, "attach", s.id, err)
	}
	s.commands[pid] = p
	return p, nil
}

// past is a command that has ended.
type past struct{ was proc.Past }

// Pid implements engine.Process.
func (p past) Pid() int { return p.was.Pid }

// Wait implements engine.Process.
func (p past) Wait(context.Context) (int, error) { return p.was.Status, nil }

// Signal implements engine.Process.
func (p past) Signal(int) error {
	return errs.Msg(errs.NotFound, "signal", strconv.Itoa(p.was.Pid), "the command has ended")
}

// Resize implements engine.Process.
func (past) Resize(engine.Size) error { return nil }

// Signaled implements engine.Signaler.
func (p past) Signaled() int { return p.was.Signal }

// Signal implements engine.Attacher. All processes of the command's session get it.
func (s *Sandbox) Signal(pid, sig int) error {
	p := s.sb.Lookup(pid)
	if p == nil || !leads(p) {
		return errs.Msg(errs.NotFound, "signal", s.id, "no command of this pid runs in the sandbox")
	}
	return (&Process{s: s, p: p}).Signal(sig)
}

// Mount implements engine.Mounter.
func (s *Sandbox) Mount(ctx context.Context, v engine.Volume) error {
	return mount(ctx, s.ns, openable(v))
}

// Unmount implements engine.Mounter.
func (s *Sandbox) Unmount(_ context.Context, path string) error {
	if err := s.ns.Unmount(path); err != nil {
		return errs.New(errs.Invalid, "unmount", path, err)
	}
	return nil
}
