package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/coder/websocket"

	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// Streams are what a command is connected to. A nil Stdin is empty. Signals names signals to send ("INT", "TERM", …).
type Streams struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Signals        <-chan string
	Resizes        <-chan api.Size        // of the terminal, if there is one
	Kept           func(k []api.Mount)    // is told of the forks that outlive the command; may be nil
	Started        func(pid int)          // is told of a command that has begun in a sandbox; may be nil
	Ended          func(r *api.RunResult) // is told how a text ended, before its status; may be nil
}

// Exec runs a command on the server and returns its exit status. When ctx ends, the command is killed. A Read of Stdin
// that is blocked when the command ends is left behind.
func (c *Client) Exec(ctx context.Context, e api.Exec, s Streams) (status int, err error) {
	return c.exec(ctx, path("exec"), e, s)
}

// ExecIn runs a command or a text in a sandbox, or takes up a command that runs, as Exec does over buckets. e has no mounts.
func (c *Client) ExecIn(ctx context.Context, id string, e api.Exec, s Streams) (status int, err error) {
	return c.exec(ctx, path("sandboxes", id, "exec"), e, s)
}

func (c *Client) exec(ctx context.Context, at string, e api.Exec, s Streams) (status int, err error) {
	h := http.Header{}
	c.header(h)
	u := c.base.String() + at
	conn, resp, err := websocket.Dial(ctx, u, &websocket.DialOptions{HTTPClient: c.http, HTTPHeader: h, Subprotocols: []string{api.ExecProtocol}})
	if err != nil {
		if resp != nil && resp.StatusCode != http.StatusSwitchingProtocols {
			defer resp.Body.Close()
			return 0, c.problem(resp)
		}
		return 0, c.unreachable(ctx, err)
	}
	defer conn.CloseNow()
	conn.SetReadLimit(1 + api.MaxFrame + api.MaxBody)
	x := &execution{conn: conn, credit: make(chan int64, 16)}
	if err := x.send(ctx, e); err != nil {
		return 0, c.unreachable(ctx, err)
	}
	callers := ctx
	ctx, cancel := context.WithCancel(ctx)
	var pumps sync.WaitGroup
	defer pumps.Wait()
	defer cancel()
	// An input that ends because the caller gives up isn't an end: what is kept would be told that nothing more comes.
	pumps.Go(func() { x.input(ctx, s.Stdin, callers.Err) })
	pumps.Go(func() { x.signals(ctx, s.Signals, s.Resizes) })
	status, err = x.output(ctx, s)
	var ours *outputError
	if err != nil && !errors.As(err, &ours) && errs.KindOf(err) == errs.Other {
		err = c.unreachable(ctx, err)
	}
	if err == nil {
		conn.Close(websocket.StatusNormalClosure, "")
	}
	return status, err
}

// outputError is a failure to write the command's output to where the caller wants it.
type outputError struct{ error }

func (e *outputError) Unwrap() error { return e.error }

// execution is one command's connection.
type execution struct {
	conn   *websocket.Conn
	credit chan int64 // windows that the server granted
}

func (x *execution) send(ctx context.Context, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return x.conn.Write(ctx, websocket.MessageText, b)
}

// output reads what the server sends until the exit status.
func (x *execution) output(ctx context.Context, s Streams) (int, error) {
	for {
		typ, b, err := x.conn.Read(ctx)
		if err != nil {
			return 0, err
		}
		if typ == websocket.MessageBinary {
			if len(b) == 0 {
				continue
			}
			w := s.Stdout
			if b[0] == api.Stderr {
				w = s.Stderr
			}
			if w == nil {
				continue
			}
			if _, err := w.Write(b[1:]); err != nil {
				return 0, &outputError{err}
			}
			continue
		}
		var m api.Control
		if err := json.Unmarshal(b, &m); err != nil {
			return 0, err
		}
		switch {
		case m.Exit != nil:
			return *m.Exit, nil
		case m.Error != nil:
			return 0, fromProblem(*m.Error)
		case m.Kept != nil && s.Kept != nil:
			s.Kept(m.Kept)
		case m.Pid > 0 && s.Started != nil:
			s.Started(m.Pid)
		case m.Result != nil && s.Ended != nil:
			s.Ended(m.Result)
		case m.Window > 0:
			select {
			case x.credit <- m.Window:
			case <-ctx.Done():
			}
		}
	}
}

// input sends standard input, no more than the server has granted, and its end unless gone tells of an error. Errors show up in
// output, which ends with the socket.
func (x *execution) input(ctx context.Context, r io.Reader, gone func() error) {
	type chunk struct {
		b   []byte
		err error
	}
	chunks := make(chan chunk)
	if r != nil {
		go func() { // owned by the reader: it ends with the Read that ctx can't interrupt
			for {
				b := make([]byte, 32<<10)
				n, err := r.Read(b)
				select {
				case chunks <- chunk{b[:n], err}:
				case <-ctx.Done():
					return
				}
				if err != nil {
					return
				}
			}
		}()
	} else {
		go func() {
			select {
			case chunks <- chunk{nil, io.EOF}:
			case <-ctx.Done():
			}
		}()
	}
	var window int64
	for {
		select {
		case n := <-x.credit:
			window += n
			continue
		case <-ctx.Done():
			return
		case c := <-chunks:
			for len(c.b) > 0 {
				if window == 0 {
					select {
					case n := <-x.credit:
						window += n
					case <-ctx.Done():
						return
					}
				}
				n := min(int64(len(c.b)), window, api.MaxFrame)
				frame := append([]byte{api.Stdin}, c.b[:n]...)
				if x.conn.Write(ctx, websocket.MessageBinary, frame) != nil {
					return
				}
				c.b, window = c.b[n:], window-n
			}
			if c.err != nil {
				if gone() != nil {
					return
				}
				_ = x.send(ctx, api.Control{EOF: true})
				x.drain(ctx)
				return
			}
		}
	}
}

// drain takes windows that nobody needs any more, so that output is never held up by them.
func (x *execution) drain(ctx context.Context) {
	for {
		select {
		case <-x.credit:
		case <-ctx.Done():
			return
		}
	}
}

func (x *execution) signals(ctx context.Context, c <-chan string, sizes <-chan api.Size) {
	for {
		select {
		case size, ok := <-sizes:
			if !ok {
				sizes = nil
			} else if x.send(ctx, api.Control{Resize: &size}) != nil {
				return
			}
		case name, ok := <-c:
			if !ok {
				c = nil
			} else if x.send(ctx, api.Control{Signal: name}) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
