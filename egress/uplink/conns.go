package uplink

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"

	"agentrun.dev/errs"
)

// accept is told of each connection that the guest wants.
func (l *Link) accept(r *tcp.ForwarderRequest) {
	select {
	case l.room <- struct{}{}:
	default:
		r.Complete(true)
		return
	}
	l.all.Go(func() {
		defer func() { <-l.room }()
		l.connect(r)
	})
}

// connect makes the connection outside first: to the guest it is open when it is.
func (l *Link) connect(r *tcp.ForwarderRequest) {
	id := r.ID()
	a, _ := netip.AddrFromSlice(id.LocalAddress.AsSlice())
	if a == Gateway {
		if id.LocalPort == namePort {
			if c, ok := endpoint(r); ok {
				l.answerStream(c)
			}
			return
		}
		r.Complete(true)
		return
	}
	ctx, cancel := context.WithTimeout(l.ctx, dialTime)
	out, err := l.open(ctx, a, id.LocalPort)
	cancel()
	if err != nil {
		if id.LocalPort == 80 && errs.Is(err, errs.Denied) {
			if c, ok := endpoint(r); ok {
				l.refuse(c, err)
			}
			return
		}
		r.Complete(true)
		return
	}
	if c, ok := endpoint(r); ok {
		l.join(c, out)
	} else {
		out.Close()
	}
}

func (l *Link) open(ctx context.Context, a netip.Addr, port uint16) (net.Conn, error) {
	addr, ok := l.target(a, port)
	if !ok {
		return nil, errs.Msg(errs.NotFound, "connect", a.String(), "no name has this address")
	}
	if l.dial == nil {
		return nil, errs.Msg(errs.Denied, "connect", addr, "this sandbox has no network")
	}
	return l.dial(ctx, "tcp", addr)
}

// endpoint answers the guest that it is connected.
func endpoint(r *tcp.ForwarderRequest) (*gonet.TCPConn, bool) {
	var q waiter.Queue
	e, err := r.CreateEndpoint(&q)
	if err != nil {
		r.Complete(true)
		return nil, false
	}
	r.Complete(false)
	e.SocketOptions().SetKeepAlive(true)
	return gonet.NewTCPConn(&q, e), true
}

// join copies both ways until both have ended, or either is broken.
func (l *Link) join(in *gonet.TCPConn, out net.Conn) {
	stop := context.AfterFunc(l.ctx, func() { in.Close(); out.Close() })
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { l.copy(out, in) })
	l.copy(in, out)
	both.Wait()
	in.Close()
	out.Close()
}

// copy hands on until the end, and hands on the end. A connection that breaks breaks the other.
func (l *Link) copy(to, from net.Conn) {
	_, err := io.Copy(plainWriter{to}, plainReader{from})
	half, ok := to.(interface{ CloseWrite() error })
	if err == nil && ok {
		half.CloseWrite()
		return
	}
	to.Close()
	from.Close()
}

// The plain ones have nothing but Read and Write: io.Copy then has one way to do it, whatever the connections can.
type (
	plainWriter struct{ io.Writer }
	plainReader struct{ io.Reader }
)

// refuse answers one HTTP request with the reason why its host can't be reached.
func (l *Link) refuse(c net.Conn, why error) {
	defer c.Close()
	stop := context.AfterFunc(l.ctx, func() { c.Close() })
	defer stop()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	r, err := http.ReadRequest(bufio.NewReader(io.LimitReader(c, 64<<10)))
	if err != nil {
		return
	}
	text := why.Error()
	var e *errs.Error
	if errors.As(why, &e) && e.Hint != "" {
		text += "\n" + e.Hint
	}
	text += "\n"
	answer := http.Response{StatusCode: http.StatusForbidden, ProtoMajor: 1, ProtoMinor: 1, Request: r, Close: true, ContentLength: int64(len(text)),
		Header: http.Header{"Content-Type": {"text/plain; charset=utf-8"}}, Body: io.NopCloser(strings.NewReader(text))}
	answer.Write(c)
}
