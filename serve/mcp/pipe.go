package mcp

import (
	"context"
	"net"
	"sync"

	"agentrun.dev/errs"
)

// Pipe is a listener for connections from within the process: what Handler's clients reach the API through. Each connection says whom it
// is made for, so that the audit log has the address of the model's client and not that of a pipe.
type Pipe struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// NewPipe returns a Pipe. Something has to Accept.
func NewPipe() *Pipe { return &Pipe{conns: make(chan net.Conn), done: make(chan struct{})} }

// Dial connects with whoever accepts, in the name of an address.
func (p *Pipe) Dial(ctx context.Context, remote string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- &named{theirs, address(remote)}:
		return ours, nil
	case <-p.done:
		return nil, errs.New(errs.Unavailable, "connect", "", net.ErrClosed)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept implements net.Listener.
func (p *Pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *Pipe) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

// Addr implements net.Listener.
func (p *Pipe) Addr() net.Addr { return address("in process") }

type address string

func (address) Network() string  { return "pipe" }
func (a address) String() string { return string(a) }

// named is a connection with an address.
type named struct {
	net.Conn
	remote address
}

func (n *named) RemoteAddr() net.Addr { return n.remote }
