package guest

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/guest/wire"
)

// Dial connects to a server in the sandbox that listens on a TCP port, of whichever of its addresses; errs.Unavailable: none does. ctx bounds
// the connecting only.
func (c *Client) Dial(ctx context.Context, port int) (net.Conn, error) {
	if port < 1 || port > 65535 {
		return nil, errs.Msg(errs.Invalid, "dial", strconv.Itoa(port), "ports are 1 to 65535")
	}
	s, stop, err := c.open(ctx, wire.Request{Dial: &wire.Dial{Port: uint16(port)}})
	if err != nil {
		return nil, err
	}
	if err := receive(s, &struct{}{}); err != nil {
		stop()
		return nil, err
	}
	if !stop() {
		return nil, errs.New(errs.Canceled, "dial", strconv.Itoa(port), context.Cause(ctx))
	}
	n := &conn{s: s, port: port, in: make(chan []byte), out: make(chan []byte), over: make(chan struct{}), closed: make(chan struct{}), sent: make(chan struct{})}
	go n.receive()
	go n.send()
	return n, nil
}

// conn is a stream as a net.Conn.
type conn struct {
	s    *wire.Stream
	port int

	in      chan []byte
	over    chan struct{} // nothing comes any more: see err
	err     error
	reading sync.Mutex
	rest    []byte

	out     chan []byte
	sent    chan struct{} // nothing can be sent any more
	writing sync.Mutex
	ended   bool // out is closed

	closed  chan struct{}
	closing sync.Once
	readBy  deadline
	writeBy deadline
}

// receive takes the server's data in, until the guest ends the stream: also when nobody reads it any more.
func (n *conn) receive() {
	defer close(n.over)
	for {
		f, err := n.s.Recv()
		if err != nil {
			n.err = err
			return
		}
		switch f.Type {
		case wire.Data:
			select {
			case n.in <- f.Payload:
			case <-n.closed:
			}
		case wire.Close: // the server has ended its side; the stream lives as long as the other does
			n.err = io.EOF
			go n.wind()
			return
		default:
			n.err = errs.Msg(errs.Corrupt, "guest", "", "a message comes on a connection")
			n.s.Cancel(n.err)
			return
		}
	}
}

// wind waits for the end of the stream.
func (n *conn) wind() {
	for {
		if _, err := n.s.Recv(); err != nil {
			return
		}
	}
}

// send sends what was written, and then the end.
func (n *conn) send() {
	defer close(n.sent)
	for b := range n.out {
		if n.s.Data(wire.Input, b) != nil {
			return
		}
	}
	if n.s.CloseChannel(wire.Input) != nil {
		return
	}
	<-n.closed
	_ = n.s.CloseChannel(wire.Output) // nobody reads it any more
}

func (n *conn) Read(b []byte) (int, error) {
	n.reading.Lock()
	defer n.reading.Unlock()
	if len(n.rest) == 0 {
		expired := n.readBy.wait()
		select {
		case <-n.closed:
			return 0, net.ErrClosed
		default:
		}
		select {
		case <-expired:
			return 0, os.ErrDeadlineExceeded
		default:
		}
		select {
		case n.rest = <-n.in:
		case <-n.over:
			return 0, n.err
		case <-n.closed:
			return 0, net.ErrClosed
		case <-expired:
			return 0, os.ErrDeadlineExceeded
		}
	}
	c := copy(b, n.rest)
	n.rest = n.rest[c:]
	return c, nil
}

func (n *conn) Write(b []byte) (int, error) {
	n.writing.Lock()
	defer n.writing.Unlock()
	if n.ended {
		return 0, net.ErrClosed
	}
	done := 0
	for done < len(b) {
		part := append([]byte(nil), b[done:min(len(b), done+wire.MaxData)]...)
		expired := n.writeBy.wait()
		var err error
		select {
		case <-expired:
			err = os.ErrDeadlineExceeded
		default:
			select {
			case n.out <- part:
			case <-n.sent:
				err = errs.Msg(errs.Unavailable, "write", strconv.Itoa(n.port), "the connection is broken")
			case <-n.closed:
				err = net.ErrClosed
			case <-expired:
				err = os.ErrDeadlineExceeded
			}
		}
		if err != nil {
			return done, err
		}
		done += len(part)
	}
	return done, nil
}

// CloseWrite tells the server that nothing follows.
func (n *conn) CloseWrite() error {
	n.writing.Lock()
	defer n.writing.Unlock()
	if !n.ended {
		n.ended = true
		close(n.out)
	}
	return nil
}

// Close lets what was written arrive, and ends both sides.
func (n *conn) Close() error {
	n.closing.Do(func() { close(n.closed) }) // first: a Write that waits gives up
	return n.CloseWrite()
}

func (n *conn) LocalAddr() net.Addr  { return address("host") }
func (n *conn) RemoteAddr() net.Addr { return address("guest:" + strconv.Itoa(n.port)) }

func (n *conn) SetDeadline(t time.Time) error {
	return errors.Join(n.SetReadDeadline(t), n.SetWriteDeadline(t))
}
func (n *conn) SetReadDeadline(t time.Time) error  { n.readBy.set(t); return nil }
func (n *conn) SetWriteDeadline(t time.Time) error { n.writeBy.set(t); return nil }

type address string

func (a address) Network() string { return "guest" }
func (a address) String() string  { return string(a) }

// deadline is a time that can be changed while one waits for it.
type deadline struct {
	mu      sync.Mutex
	timer   *time.Timer
	expired chan struct{}
}

// set sets another time; zero is none. Who waits sees it.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		<-d.channel() // it fires, or has
	}
	d.timer = nil
	select {
	case <-d.channel():
		d.expired = make(chan struct{})
	default:
	}
	if t.IsZero() {
		return
	}
	expired := d.channel()
	if left := time.Until(t); left > 0 {
		d.timer = time.AfterFunc(left, func() { close(expired) })
		return
	}
	close(expired)
}

func (d *deadline) channel() chan struct{} {
	if d.expired == nil {
		d.expired = make(chan struct{})
	}
	return d.expired
}

// wait returns what is closed when the time has come.
func (d *deadline) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.channel()
}
