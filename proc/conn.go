package proc

import (
	"context"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"agentrun.dev/vfs"
)

// Conn is a connection to a server inside of a sandbox as somebody has it who isn't a process. It implements net.Conn.
type Conn struct {
	k           *socket
	release     func() error
	done        atomic.Bool
	read, write deadline
}

func newConn(k *socket) *Conn { return &Conn{k: k, release: k.Close} }

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.do(&c.read, func(w waiter) (int, error) { return c.k.readIntr(b, w) })
	if err != nil && err != io.EOF {
		err = c.failed("read", err)
	}
	return n, err
}

// Write implements net.Conn.
func (c *Conn) Write(b []byte) (int, error) {
	n, err := c.do(&c.write, func(w waiter) (int, error) { return c.k.writeIntr(b, w) })
	if err != nil {
		err = c.failed("write", err)
	}
	return n, err
}

func (c *Conn) do(d *deadline, call func(waiter) (int, error)) (int, error) {
	over := d.channel()
	select {
	case <-over:
		return 0, os.ErrDeadlineExceeded
	default:
	}
	n, err := call(waiter{nil, over})
	if err == syscall.EINTR {
		err = os.ErrDeadlineExceeded
	}
	return n, err
}

func (c *Conn) failed(op string, err error) error {
	if err == syscall.EBADF || err == syscall.EPIPE && c.done.Load() {
		err = net.ErrClosed
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}

// CloseWrite tells the other side that no more comes.
func (c *Conn) CloseWrite() error { return c.k.shutdown(false, true) }

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.read.set(time.Time{})
	c.write.set(time.Time{})
	if c.done.Swap(true) {
		return net.ErrClosed
	}
	return c.release()
}

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr {
	return c.addr(func(k *socket) netip.AddrPort { return k.localAddr })
}

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr {
	return c.addr(func(k *socket) netip.AddrPort { return k.peerAddr })
}

func (c *Conn) addr(of func(*socket) netip.AddrPort) net.Addr {
	n := &c.k.sb.net
	n.mu.Lock()
	defer n.mu.Unlock()
	return net.TCPAddrFromAddrPort(of(c.k))
}

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	c.read.set(t)
	c.write.set(t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.read.set(t)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.write.set(t)
	return nil
}

// deadline is a moment after which calls don't wait any more, also those that wait when it is set.
type deadline struct {
	mu    sync.Mutex
	timer *time.Timer
	over  chan struct{} // closed when it has passed; another one afterwards
}

// channel returns what is closed when the moment comes.
func (d *deadline) channel() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over == nil {
		d.over = make(chan struct{})
	}
	return d.over
}

func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		<-d.over // it fires just now
	}
	d.timer = nil
	if d.over == nil {
		d.over = make(chan struct{})
	}
	passed := false
	select {
	case <-d.over:
		passed = true
	default:
	}
	wait := time.Until(t)
	switch {
	case !t.IsZero() && wait <= 0:
		if !passed {
			close(d.over)
		}
		return
	case passed:
		d.over = make(chan struct{})
	}
	if !t.IsZero() {
		over := d.over
		d.timer = time.AfterFunc(wait, func() { close(over) })
	}
}

// connFile is a connection to somewhere outside as an open file.
type connFile struct {
	*Input
	conn net.Conn
	stop func() bool
}

// OpenConn makes a connection with somewhere outside an open file of the process, which ends with it, at the lowest free
// descriptor. In copies of the sandbox it is reset. Errors: EMFILE.
func (p *Process) OpenConn(c net.Conn) (vfs.File, error) {
	f := &connFile{Input: NewInput(c, false), conn: c, stop: context.AfterFunc(p.ctx, func() { c.Close() })}
	d := newDescription(f)
	fd, err := p.fds.add(d, 0, true)
	if err != nil {
		return nil, err
	}
	return p.handle(fd, d), nil
}

func (f *connFile) Flags() int                  { return syscall.O_RDWR }
func (f *connFile) Write(b []byte) (int, error) { return f.writeIntr(b, waiter{}) }
func (f *connFile) writeIntr(b []byte, _ waiter) (int, error) {
	n, err := f.conn.Write(b)
	if err != nil {
		err = syscall.EPIPE
	}
	return n, err
}

func (f *connFile) Attr() (vfs.Attr, error) {
	return vfs.Attr{Ino: 4, Mode: vfs.ModeSocket | 0o777, Nlink: 1}, nil
}

// Close implements vfs.File.
func (f *connFile) Close() error {
	f.stop()
	f.conn.Close()
	return nil
}
