package node

import (
	"context"
	"net"
	"strconv"

	"agentrun.dev/engine"
	"agentrun.dev/errs"
)

// Dial connects to a server inside the sandbox that listens on a TCP port. None there is errs.Unavailable, an engine without
// such connections errs.Unsupported. The lease begins anew whenever the connection is made or carries something.
func (s *Sandbox) Dial(ctx context.Context, port int) (net.Conn, error) {
	if port < 1 || port > 65535 {
		return nil, errs.Msg(errs.Invalid, "connect", strconv.Itoa(port), "a port is a number from 1 to 65535")
	}
	d, ok := s.in.(engine.Dialer)
	if !ok {
		return nil, errs.Msg(errs.Unsupported, "connect", s.id, "this engine's sandboxes can't be connected to")
	}
	s.Touch()
	c, err := d.Dial(ctx, port)
	if err != nil {
		return nil, err
	}
	return &used{Conn: c, s: s}, nil
}

// used is a connection that keeps its sandbox alive as long as something moves.
type used struct {
	net.Conn
	s *Sandbox
}

func (u *used) Read(b []byte) (int, error) {
	n, err := u.Conn.Read(b)
	u.s.Touch()
	return n, err
}

func (u *used) Write(b []byte) (int, error) {
	u.s.Touch()
	return u.Conn.Write(b)
}

// CloseWrite tells the server that no more comes.
func (u *used) CloseWrite() error {
	if half, ok := u.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Dial implements Host.
func (l *local) Dial(ctx context.Context, id string, port int) (net.Conn, error) {
	s, err := l.hosted(id)
	if err != nil {
		return nil, err
	}
	return s.Dial(ctx, port)
}
