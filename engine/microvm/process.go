package microvm

import (
	"cmp"
	"context"
	"io"
	"net"
	"strconv"
	"time"

	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/guest"
	"agentrun.dev/guest/wire"
)

// Exec implements engine.Instance. In a machine that is frozen it waits.
func (in *Instance) Exec(ctx context.Context, c engine.Cmd) (engine.Process, error) {
	if len(c.Args) == 0 {
		return nil, errs.Msg(errs.Invalid, "exec", in.id, "no command")
	}
	cmd := guest.Cmd{Args: c.Args, Env: c.Env, Dir: cmp.Or(c.Dir, in.dir), Keep: c.Keep, Modes: c.Modes}
	if c.Root {
		cmd.User = "0:0"
	}
	return in.process(ctx, "exec", c, cmd, func(ctx context.Context, a *guest.Client, cmd guest.Cmd) (*guest.Process, error) {
		return a.Exec(ctx, cmd)
	})
}

// process starts a command, or takes one up.
func (in *Instance) process(ctx context.Context, op string, c engine.Cmd, cmd guest.Cmd,
	begin func(context.Context, *guest.Client, guest.Cmd) (*guest.Process, error)) (*process, error) {
	p := &process{in: in, tty: c.TTY != nil, done: make(chan struct{})}
	var cancel context.CancelCauseFunc
	p.life, cancel = context.WithCancelCause(context.Background())
	p.kill = cancel
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, p.count(c.Stdout), p.count(c.Stderr)
	if c.TTY != nil {
		cmd.TTY = &wire.Size{Cols: size16(c.TTY.Cols), Rows: size16(c.TTY.Rows)}
	}
	for {
		if err := in.awaitThaw(ctx, op); err != nil {
			return nil, err
		}
		var g *guest.Process
		err := in.ask(ctx, op, func(ctx context.Context, a *guest.Client) (err error) {
			g, err = begin(ctx, a, cmd)
			return err
		})
		if err == nil {
			p.g = g
			in.keep(p)
			go p.wait()
			return p, nil
		}
		if !errs.Is(err, errs.Unavailable) || in.life.Err() != nil || !in.isFrozen() {
			return nil, err
		} // it was frozen just then
	}
}

func size16(n int) uint16 { return uint16(min(max(n, 0), 65535)) }

// keep notes a command that has a client.
func (in *Instance) keep(p *process) {
	if p.Pid() == 0 {
		return // it couldn't be executed
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.commands[p.Pid()] = p
}

// process implements engine.Process and engine.Signaler.
type process struct {
	in  *Instance
	g   *guest.Process
	tty bool

	life   context.Context // ends to end the command
	kill   context.CancelCauseFunc
	done   chan struct{} // closed when status and err count
	status int
	err    error
}

// endNotice is how long the news of a machine's end may take, once its connections have broken.
const endNotice = time.Second

// wait takes the command's end up.
func (p *process) wait() {
	defer close(p.done)
	p.status, p.err = p.g.Wait(p.life)
	p.in.mu.Lock()
	if p.in.commands[p.Pid()] == p {
		delete(p.in.commands, p.Pid())
	}
	p.in.mu.Unlock()
	if p.err == nil {
		return
	}
	p.status = 137
	select { // a machine that ends takes its connections along first
	case <-p.life.Done():
	case <-p.in.life.Done():
	case <-time.After(endNotice):
	}
	switch {
	case p.life.Err() != nil:
		p.err = context.Cause(p.life)
	case p.in.life.Err() != nil:
		p.err = p.in.why("exec")
	}
}

// Pid implements engine.Process.
func (p *process) Pid() int { return p.g.Pid() }

// Wait implements engine.Process.
func (p *process) Wait(ctx context.Context) (int, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		p.kill(errs.New(errs.Canceled, "exec", p.in.id, context.Cause(ctx)))
		<-p.done
	}
	return p.status, p.err
}

// Signaled implements engine.Signaler.
func (p *process) Signaled() int { return p.g.Signaled() }

// Signal implements engine.Process.
func (p *process) Signal(sig int) error {
	if err := checkSignal(p.in.id, sig); err != nil {
		return err
	}
	select {
	case <-p.done:
		return nil
	default:
	}
	err := p.in.Signal(p.Pid(), sig)
	if errs.Is(err, errs.NotFound) {
		return nil // it has just ended
	}
	return err
}

func checkSignal(id string, sig int) error {
	if sig < 1 || sig > 64 {
		return errs.Msg(errs.Invalid, "signal", id, "signals are 1 to 64")
	}
	return nil
}

// Resize implements engine.Process.
func (p *process) Resize(s engine.Size) error {
	if !p.tty {
		return errs.Msg(errs.Invalid, "resize", p.in.id, "the command has no terminal")
	}
	return p.g.Resize(int(size16(s.Cols)), int(size16(s.Rows)))
}

// count counts output, and ends the command when the sandbox has written too much.
func (p *process) count(w io.Writer) io.Writer {
	if w == nil {
		return nil
	}
	return writerFunc(func(b []byte) (int, error) {
		if !p.in.usage.emit(int64(len(b)), p.in.limits.Output) {
			err := errs.Msg(errs.Limit, "exec", p.in.id, "the sandbox has written more output than it may")
			p.kill(err)
			return 0, err
		}
		return w.Write(b)
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// Running implements engine.Attacher. Of a guest that doesn't answer nothing is known.
func (in *Instance) Running() []engine.Running {
	var list []wire.Command
	err := in.ask(context.Background(), "list commands", func(ctx context.Context, a *guest.Client) (err error) {
		list, err = a.Running(ctx)
		return err
	})
	if err != nil {
		in.e.o.Log.Warn("microvm: a guest doesn't list its commands", "id", in.id, "error", err)
		return nil
	}
	out := make([]engine.Running, len(list))
	for i, c := range list {
		out[i] = engine.Running{Pid: c.Pid, Args: wire.Strings(c.Args), TTY: c.TTY}
	}
	return out
}

// Attach implements engine.Attacher.
func (in *Instance) Attach(ctx context.Context, pid int, c engine.Cmd) (engine.Process, error) {
	in.mu.Lock()
	taken := in.commands[pid] != nil
	in.mu.Unlock()
	if taken {
		return nil, errs.Msg(errs.Exists, "attach", in.id, "the command has a client already")
	}
	p, err := in.process(ctx, "attach", c, guest.Cmd{}, func(ctx context.Context, a *guest.Client, cmd guest.Cmd) (*guest.Process, error) {
		return a.Attach(ctx, pid, cmd)
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Signal implements engine.Attacher.
func (in *Instance) Signal(pid, sig int) error {
	if err := checkSignal(in.id, sig); err != nil {
		return err
	}
	return in.ask(context.Background(), "signal", func(ctx context.Context, a *guest.Client) error { return a.Signal(ctx, pid, sig) })
}

// Dial implements engine.Dialer.
func (in *Instance) Dial(ctx context.Context, port int) (net.Conn, error) {
	if port < 1 || port > 65535 {
		return nil, errs.Msg(errs.Invalid, "dial", strconv.Itoa(port), "ports are 1 to 65535")
	}
	if err := in.awaitThaw(ctx, "dial"); err != nil {
		return nil, err
	}
	var c net.Conn
	err := in.ask(ctx, "dial", func(ctx context.Context, a *guest.Client) (err error) {
		c, err = a.Dial(ctx, port)
		return err
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}
