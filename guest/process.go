package guest

import (
	"context"
	"errors"
	"io"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/guest/wire"
)

// Cmd is a command to execute.
type Cmd struct {
	Args   []string // the first is found through PATH unless it has a slash
	Env    []string // NAME=VALUE, over the sandbox's
	Dir    string   // the sandbox's when empty
	User   string   // a name, UID or UID:GID; the sandbox's when empty
	Stdin  io.Reader
	Stdout io.Writer // nil discards
	Stderr io.Writer // nil discards; not used with a TTY
	TTY    *wire.Size
	Modes  map[byte]uint32 // of the terminal, by RFC 4254, section 8
	Keep   bool            // processes that it leaves go on; without it they have a quarter of a second to end by themselves
}

// Process is a command that was started, or attached to.
type Process struct {
	c    *Client
	s    *wire.Stream
	pid  int
	done chan struct{}
	exit wire.Exit
	err  error
}

// Exec starts a command; ctx bounds the start only. A nil Stdin is at its end.
func (c *Client) Exec(ctx context.Context, cmd Cmd) (*Process, error) {
	return c.process(ctx, wire.Request{Exec: &wire.Exec{Args: wire.Texts(cmd.Args), Env: wire.Texts(cmd.Env), Dir: wire.Text(cmd.Dir), User: wire.Text(cmd.User),
		TTY: cmd.TTY, Modes: cmd.Modes, Keep: cmd.Keep, Stdin: cmd.Stdin != nil}}, cmd)
}

// Attach takes up a command that runs, or that has ended lately without its client being told: its newest output, at most a MiB, and all that
// follows goes to cmd's streams. Of cmd only the streams count. A nil Stdin leaves the command's input as it is.
func (c *Client) Attach(ctx context.Context, pid int, cmd Cmd) (*Process, error) {
	return c.process(ctx, wire.Request{Attach: &wire.Attach{Pid: pid}}, cmd)
}

func (c *Client) process(ctx context.Context, r wire.Request, cmd Cmd) (*Process, error) {
	s, stop, err := c.open(ctx, r)
	if err != nil {
		return nil, err
	}
	var started wire.Progress
	if err := receive(s, &started); err != nil {
		stop()
		return nil, err
	}
	if !stop() { // it started just when ctx ended
		return nil, errs.New(errs.Canceled, "exec", "", context.Cause(ctx))
	}
	p := &Process{c: c, s: s, pid: started.Pid, done: make(chan struct{})}
	if cmd.Stdin != nil {
		go p.input(cmd.Stdin)
	}
	go func() {
		defer close(p.done)
		p.exit, p.err = p.output(cmd.Stdout, cmd.Stderr)
		if p.err != nil {
			s.Cancel(p.err)
		}
	}()
	return p, nil
}

// input sends what the client types. It may be left waiting for r after the command's end, as nobody can stop a reader.
func (p *Process) input(r io.Reader) {
	buf := make([]byte, wire.MaxData)
	for {
		n, err := r.Read(buf)
		if n > 0 && p.s.Data(wire.Input, buf[:n]) != nil {
			return
		}
		if errors.Is(err, io.EOF) {
			_ = p.s.CloseChannel(wire.Input)
			return
		}
		if err != nil { // who gave up reading hasn't said that the input is at its end
			return
		}
	}
}

// output takes what the command writes until its end.
func (p *Process) output(stdout, stderr io.Writer) (wire.Exit, error) {
	writers := [3]io.Writer{wire.Output: stdout, wire.Errors: stderr}
	for {
		f, err := p.s.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return wire.Exit{}, errs.Msg(errs.Corrupt, "guest", "", "a command ended without its status")
		case err != nil:
			return wire.Exit{}, err
		case f.Type == wire.Data:
			if w := writers[f.Channel]; w != nil {
				if _, err := w.Write(f.Payload); err != nil {
					writers[f.Channel] = nil // nobody reads it any more
				}
			}
		case f.Type == wire.Message:
			var said wire.Progress
			if err := wire.Decode(f.Payload, &said); err != nil {
				return wire.Exit{}, err
			}
			if e := said.Exited; e == nil || e.Status < 0 || e.Status > 255 || e.Signal < 0 || e.Signal > 127 {
				return wire.Exit{}, errs.Msg(errs.Corrupt, "guest", "", "a command ended with a status that there isn't")
			}
			return *said.Exited, finish(p.s)
		}
	}
}

// Pid is the command's process number in the sandbox; 0 if it couldn't be executed.
func (p *Process) Pid() int { return p.pid }

// Wait returns when the command has ended and all its output was written. The status is the command's own: 126 when it couldn't be executed, 127
// when there is none of that name, 128+n when signal n ended it. When ctx is done first, the command is killed with all that it has
// started, and the error is errs.Canceled. Wait is called once.
func (p *Process) Wait(ctx context.Context) (int, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		p.s.Cancel(errs.New(errs.Canceled, "exec", "", context.Cause(ctx)))
		<-p.done
	}
	return p.exit.Status, p.err
}

// Signaled tells which signal ended the command; 0 for one that exited by itself. It is for after Wait.
func (p *Process) Signaled() int { return p.exit.Signal }

// controlTimeout is how long the guest may take for a signal, or a terminal's size.
const controlTimeout = time.Minute

// Signal sends a signal to the command's process group. One that has ended takes none, without an error.
func (p *Process) Signal(sig int) error {
	if p.pid == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), controlTimeout)
	defer cancel()
	err := p.c.Signal(ctx, p.pid, sig)
	if errs.KindOf(err) == errs.NotFound {
		return nil
	}
	return err
}

// Resize changes the size of its terminal; errs.Invalid without one.
func (p *Process) Resize(cols, rows int) error {
	if cols < 0 || rows < 0 || cols > 65535 || rows > 65535 {
		return errs.Msg(errs.Invalid, "resize", "", "a terminal has at most 65535 columns and rows")
	}
	ctx, cancel := context.WithTimeout(context.Background(), controlTimeout)
	defer cancel()
	return p.c.call(ctx, wire.Request{Resize: &wire.Resize{Pid: p.pid, Size: wire.Size{Cols: uint16(cols), Rows: uint16(rows)}}}, nil)
}
