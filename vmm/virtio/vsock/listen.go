package vsock

import (
	"context"
	"fmt"
	"net"
	"syscall"

	"agentrun.dev/errs"
)

// Addr is the address of one end. Its network is "vsock".
type Addr struct {
	CID  uint64
	Port uint32
}

func (Addr) Network() string  { return "vsock" }
func (a Addr) String() string { return fmt.Sprintf("%d:%d", a.CID, a.Port) }

// Listener is a port of the host's. It is a net.Listener.
type Listener struct {
	d     *Device
	port  uint32
	queue chan *Conn
	done  chan struct{}
}

// Listen lets programs in the guest connect to a port of the host. Another listener on it is Exists.
func (d *Device) Listen(port uint32) (*Listener, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errClosed
	}
	if d.listeners[port] != nil {
		return nil, errs.Msg(errs.Exists, "vsock", fmt.Sprint("port ", port), "there is a listener already")
	}
	l := d.newListener(port)
	d.listeners[port] = l
	return l, nil
}

var errClosed = errs.Msg(errs.Unavailable, "vsock", "device", "it is closed")

func (d *Device) newListener(port uint32) *Listener {
	return &Listener{d: d, port: port, queue: make(chan *Conn, backlog), done: make(chan struct{})}
}

// Accept returns the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.next()
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (l *Listener) next() (*Conn, error) {
	select {
	case <-l.done:
	default:
		select {
		case c := <-l.queue:
			return c, nil
		case <-l.done:
		}
	}
	return nil, &net.OpError{Op: "accept", Net: "vsock", Addr: l.Addr(), Err: net.ErrClosed}
}

// Close ends Accept and resets the connections that wait for it.
func (l *Listener) Close() error {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	if l == l.d.any {
		l.d.any = nil
	} else if l.d.listeners[l.port] == l {
		delete(l.d.listeners, l.port)
	} else {
		return nil
	}
	l.stop()
	return nil
}

// stop is Close without taking the listener off the device. d.mu is held.
func (l *Listener) stop() {
	select {
	case <-l.done:
		return
	default:
		close(l.done)
	}
	for {
		select {
		case c := <-l.queue:
			if c.state != stateDone {
				c.abort(syscall.ECONNRESET)
			}
		default:
			return
		}
	}
}

// Addr is the port.
func (l *Listener) Addr() net.Addr { return Addr{HostCID, l.port} }

// Dial connects to a port of the guest's. It waits for a guest that is being told of a reset, and for the answer. Without a
// driver it is Unavailable; a port where nobody listens is ECONNREFUSED.
func (d *Device) Dial(ctx context.Context, port uint32) (*Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	stop := context.AfterFunc(ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.changed.Broadcast()
		for _, c := range d.conns {
			if c.state == stateRequested {
				c.cond.Broadcast()
			}
		}
	})
	defer stop()
	fail := func(err error) (*Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "vsock", Addr: Addr{d.cid, port}, Err: err}
	}
	for d.reset != resetNone && d.link != nil && !d.closed && ctx.Err() == nil {
		d.changed.Wait()
	}
	switch {
	case ctx.Err() != nil:
		return fail(ctx.Err())
	case d.closed:
		return fail(errClosed)
	case d.link == nil:
		return fail(errs.Msg(errs.Unavailable, "vsock", "guest", "it has no driver, or not yet"))
	case !d.room():
		return fail(errs.Msg(errs.Limit, "vsock", "guest", fmt.Sprintf("it has %d connections", d.maxConns)))
	}
	c := d.newConn(key{port, d.ephemeral(port)})
	c.dialled, c.sendRequest = true, true
	d.enqueue(c)
	for c.state == stateRequested && ctx.Err() == nil {
		c.cond.Wait()
	}
	if c.state == stateRequested {
		c.abort(nil)
		return fail(ctx.Err())
	}
	if c.err != nil && c.state == stateDone {
		return fail(c.err)
	}
	return c, nil
}

// ephemeral returns a port of the host's that no connection to the guest's port has.
func (d *Device) ephemeral(guest uint32) uint32 {
	for {
		if d.nextPort++; d.nextPort >= 1<<31 || d.nextPort < 1<<30 {
			d.nextPort = 1 << 30
		}
		if d.conns[key{guest, d.nextPort}] == nil {
			return d.nextPort
		}
	}
}
