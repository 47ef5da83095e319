// Package guest is the host's side of the agent in a VM: commands, files and the machine's identity, over any connection to it.
//
// The guest may be anybody: what a client gets from it is checked (package wire), so that the worst it can do is to fail, to be silent until
// the context ends, or to lie about itself. Package agent is the other side, and cmd/agentrun-guest the process that runs it in a VM.
package guest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"

	"agentrun.dev/errs"
	"agentrun.dev/guest/wire"
)

// Port is the vsock port on which the agent listens.
const Port = 1024

// Client speaks with one agent over one connection. Its methods may be called concurrently. When the connection breaks, as it does in the
// fork of a machine, all calls fail with errs.Unavailable; commands go on and can be attached to over another.
type Client struct {
	conn *wire.Conn
}

// New begins to speak over a connection, which belongs to the client from now on.
func New(nc net.Conn) (*Client, error) {
	conn, err := wire.Host(nc)
	if err != nil {
		return nil, err
	}
	return &Client{conn: conn}, nil
}

// Close breaks the connection. The commands go on.
func (c *Client) Close() error { return c.conn.Close() }

// Err is why the connection has ended; nil while it hasn't.
func (c *Client) Err() error { return c.conn.Err() }

// open begins a call, which ends with ctx.
func (c *Client) open(ctx context.Context, r wire.Request) (*wire.Stream, func() bool, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return nil, nil, errs.New(errs.Invalid, "guest", "", err)
	}
	s, err := c.conn.Open(ctx, b)
	if err != nil {
		return nil, nil, err
	}
	return s, context.AfterFunc(ctx, func() { s.Cancel(errs.New(errs.Canceled, "guest", "", context.Cause(ctx))) }), nil
}

// call makes a call that is answered by one message, into v, or by none if v is nil.
func (c *Client) call(ctx context.Context, r wire.Request, v any) error {
	s, stop, err := c.open(ctx, r)
	if err != nil {
		return err
	}
	defer stop()
	if v != nil {
		if err := receive(s, v); err != nil {
			return err
		}
	}
	return finish(s)
}

// receive takes a message; its absence is the guest's fault.
func receive(s *wire.Stream, v any) error {
	err := s.Receive(v)
	if errors.Is(err, io.EOF) {
		err = errs.Msg(errs.Corrupt, "guest", "", "the call ended without an answer")
	}
	if err != nil {
		s.Cancel(err)
	}
	return err
}

// finish takes the end of a call.
func finish(s *wire.Stream) error {
	_, err := s.Recv()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil {
		err = errs.Msg(errs.Corrupt, "guest", "", "the call goes on after its answer")
		s.Cancel(err)
	}
	return err
}

// Signal sends a signal to the process group of a command; errs.NotFound if it doesn't run.
func (c *Client) Signal(ctx context.Context, pid, sig int) error {
	return c.call(ctx, wire.Request{Signal: &wire.Signal{Pid: pid, Signal: sig}}, nil)
}

// maxRunning bounds what a guest can make the host list.
const maxRunning = 4096

// Running lists the commands that run, in order of their numbers.
func (c *Client) Running(ctx context.Context) ([]wire.Command, error) {
	var all []wire.Command
	err := c.each(ctx, wire.Request{Running: &struct{}{}}, func(s *wire.Stream) error {
		var part wire.Running
		if err := s.Receive(&part); err != nil {
			return err
		}
		if all = append(all, part.Commands...); len(all) > maxRunning {
			return errs.Msg(errs.Limit, "guest", "", "it says that more than 4096 commands run")
		}
		return nil
	})
	return all, err
}

// each makes a call that is answered by any number of messages.
func (c *Client) each(ctx context.Context, r wire.Request, take func(*wire.Stream) error) error {
	s, stop, err := c.open(ctx, r)
	if err != nil {
		return err
	}
	defer stop()
	for {
		if err := take(s); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			s.Cancel(err)
			return err
		}
	}
}

// Stats tells what the sandbox uses.
func (c *Client) Stats(ctx context.Context) (wire.Stats, error) {
	var st wire.Stats
	err := c.call(ctx, wire.Request{Stats: &struct{}{}}, &st)
	return st, err
}

// Freeze stops the workload, and with it every command; commands can't be started until it is thawed. The token is what Thaw needs in this
// machine, and Renew in one that was forked from it. When Freeze fails, the workload goes on, unless the connection is broken: then nobody
// knows, and the machine is of no use.
func (c *Client) Freeze(ctx context.Context) (token string, err error) {
	var raw [16]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return "", errs.New(errs.Other, "freeze", "", err)
	}
	token = hex.EncodeToString(raw[:])
	return token, c.call(ctx, wire.Request{Freeze: &wire.Freeze{Token: token}}, nil)
}

// Flush has a machine whose workload is frozen write what its filesystems hold back.
func (c *Client) Flush(ctx context.Context, token string) error {
	return c.call(ctx, wire.Request{Flush: &wire.Freeze{Token: token}}, nil)
}

// Thaw lets the workload go on in the machine in which it was frozen.
func (c *Client) Thaw(ctx context.Context, token string) error {
	return c.call(ctx, wire.Request{Thaw: &wire.Freeze{Token: token}}, nil)
}

// Renew makes the machine another than the one that it was forked from, and lets the workload go on. When it returns nil, all of it has been
// done, and what commands had written until then is forgotten; otherwise nothing of the workload has run, and the machine is to be thrown
// away. Entropy is added to r when it has none.
func (c *Client) Renew(ctx context.Context, r wire.Renew) error {
	if len(r.Entropy) == 0 {
		r.Entropy = make([]byte, 64)
		if _, err := rand.Read(r.Entropy); err != nil {
			return errs.New(errs.Other, "renew", "", err)
		}
	}
	return c.call(ctx, wire.Request{Renew: &r}, nil)
}

// Mount mounts a filesystem, such as a virtio-fs device by its tag.
func (c *Client) Mount(ctx context.Context, m wire.Mount) error {
	return c.call(ctx, wire.Request{Mount: &m}, nil)
}

// Unmount is its inverse.
func (c *Client) Unmount(ctx context.Context, path string) error {
	return c.call(ctx, wire.Request{Unmount: &wire.Path{Path: wire.Text(path)}}, nil)
}

// Shutdown ends all processes and turns the machine off.
func (c *Client) Shutdown(ctx context.Context) error {
	return c.call(ctx, wire.Request{Shutdown: &struct{}{}}, nil)
}
