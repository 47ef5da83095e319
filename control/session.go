package control

import (
	"context"
	"net"
	"sync"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/node"
)

// Session is the use of a sandbox by a caller, who was found to be allowed to: the sandbox runs (it was woken up, if it slept) and can't
// hibernate until Close, which also begins its lease anew. Whoever holds one for long extends the lease by doing so.
type Session struct {
	Sandbox api.Sandbox
	host    node.Host
	c       *Control
	box     *box
	once    sync.Once
}

// Use is how everything that is done inside a sandbox begins; see Session.
func (c *Control) Use(ctx context.Context, who *access.Caller, id string, verb access.Verb) (*Session, error) {
	const op = "use sandbox"
	b, err := c.findLive(ctx, who, verb, op, id)
	if err != nil {
		return nil, err
	}
	p, err := c.enter(ctx, b, op)
	if err != nil {
		return nil, err
	}
	return &Session{Sandbox: *c.view(b), host: p.host, c: c, box: b}, nil
}

// enter begins a use of a sandbox; it is woken up if it sleeps.
func (c *Control) enter(ctx context.Context, b *box, op string) (*peer, error) {
	return c.enterBy(ctx, b, op, false)
}

// enterBy is enter; asked says that somebody asked for it to wake up.
func (c *Control) enterBy(ctx context.Context, b *box, op string, asked bool) (*peer, error) {
	for {
		if b.enter() {
			p, err := c.hostOf(op, b.rec.Load())
			if err != nil {
				b.leave()
				return nil, err
			}
			c.touch(b)
			return p, nil
		}
		if err := b.take(ctx); err != nil {
			return nil, err
		}
		err := c.awaken(ctx, b, op, asked)
		b.give()
		if err != nil {
			return nil, err
		}
	}
}

// awaken makes a sandbox run, if it can, and if that is asked for or its lease lets every use do so. The caller has its turn.
func (c *Control) awaken(ctx context.Context, b *box, op string, asked bool) error {
	switch r := b.rec.Load(); r.State {
	case api.StateRunning:
		b.open()
		return nil
	case api.StateHibernated:
		if !asked && r.Lease.Wake == api.WakeOnResume {
			return errs.Msg(errs.Conflict, op, r.ID, "it hibernates").WithHint("resume it first: its lease says that no other use wakes it up")
		}
		return c.wakeUp(ctx, b)
	case api.StateStarting, api.StateHibernating, api.StateResuming:
		// Somebody was stopped half-way; what is recorded is completed now.
		if p, err := c.hostOf(op, r); err != nil {
			return err
		} else if err := c.settleOne(ctx, p, b); err != nil {
			return err
		}
		if now := b.rec.Load().State; now == r.State {
			return errs.Msg(errs.Unavailable, op, r.ID, "it is "+r.State)
		}
		return nil
	default:
		return stateError(op, r)
	}
}

// Close ends the use.
func (s *Session) Close() {
	s.once.Do(func() {
		s.c.touch(s.box)
		s.box.leave()
	})
}

// Exec starts a command.
func (s *Session) Exec(ctx context.Context, c engine.Cmd) (engine.Process, error) {
	return s.host.Exec(ctx, s.Sandbox.ID, c)
}

// Code runs a text to its end.
func (s *Session) Code(ctx context.Context, c node.Code) (*node.CodeResult, error) {
	return s.host.Code(ctx, s.Sandbox.ID, c)
}

// Files are the sandbox's files.
func (s *Session) Files(ctx context.Context) (node.Files, error) {
	return s.host.Files(ctx, s.Sandbox.ID)
}

// Processes lists what runs.
func (s *Session) Processes(ctx context.Context) ([]engine.Running, error) {
	return s.host.Processes(ctx, s.Sandbox.ID)
}

// Signal sends a signal to a command that was started.
func (s *Session) Signal(ctx context.Context, pid, sig int) error {
	return s.host.Signal(ctx, s.Sandbox.ID, pid, sig)
}

// Attach takes up the output of a command that runs.
func (s *Session) Attach(ctx context.Context, pid int, c engine.Cmd) (engine.Process, error) {
	return s.host.Attach(ctx, s.Sandbox.ID, pid, c)
}

// Dial connects to a server inside.
func (s *Session) Dial(ctx context.Context, port int) (net.Conn, error) {
	return s.host.Dial(ctx, s.Sandbox.ID, port)
}
