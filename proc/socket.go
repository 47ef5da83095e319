package proc

import (
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"agentrun.dev/vfs"
)

// States of a socket.
const (
	fresh = iota
	bound
	listening
	connected
	closed
)

// socket is one of TCP: an open file like others. A connection is two pipes, one for each direction.
type socket struct {
	special
	sb   *Sandbox
	id   uint64
	born time.Time
	v6   bool
	ends atomic.Pointer[ends] // of a connection

	// The following is guarded by the mutex of the sandbox's loopback.
	state                    int
	v6only, reuse, reusePort bool
	localAddr, peerAddr      netip.AddrPort
	backlog                  int
	queue                    []*socket // connections that nobody has accepted yet, the oldest first
	change                   chan struct{}
	counted                  bool // among the connections of its local port
	outside                  bool // its user isn't a process that could be captured
}

// link is what both ends of a connection share.
type link struct {
	reset   atomic.Bool // it was cut off
	outside atomic.Bool // one end is of somebody who isn't a process
}

// ends is what a connected socket reads from and writes to.
type ends struct {
	in, out *pipeEnd
	link    *link
}

// newSocket makes one: ENFILE.
func (s *Sandbox) newSocket(v6 bool) (*socket, error) {
	k := &socket{sb: s, id: s.pipeIDs.Add(1), v6: v6, born: s.clock()}
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	if err := s.net.open(k); err != nil {
		return nil, err
	}
	return k, nil
}

func (k *socket) unspecified() netip.Addr {
	if k.v6 {
		return netip.IPv6Unspecified()
	}
	return netip.IPv4Unspecified()
}

// joined makes it the end of a connection.
func (k *socket) joined(in, out *pipe, l *link) {
	k.ends.Store(&ends{in.open(true, false), out.open(false, true), l})
}

// changed returns what is closed at the next change of a listener. The loopback's mutex is held, as for broadcast.
func (k *socket) changed() <-chan struct{} {
	if k.change == nil {
		k.change = make(chan struct{})
	}
	return k.change
}

func (k *socket) broadcast() {
	if k.change != nil {
		close(k.change)
		k.change = nil
	}
}

func (k *socket) Read(b []byte) (int, error)  { return k.readIntr(b, waiter{}) }
func (k *socket) Write(b []byte) (int, error) { return k.writeIntr(b, waiter{}) }
func (k *socket) Flags() int                  { return syscall.O_RDWR }
func (k *socket) Attr() (vfs.Attr, error) {
	return vfs.Attr{Ino: vfs.Ino(k.id), Mode: vfs.ModeSocket | 0o777, Nlink: 1, Atime: k.born, Mtime: k.born, Ctime: k.born}, nil
}

func (k *socket) readIntr(b []byte, w waiter) (int, error) {
	e := k.ends.Load()
	if e == nil {
		return 0, syscall.ENOTCONN
	}
	n, err := e.in.readIntr(b, w)
	if n == 0 && err != nil && e.link.reset.Load() {
		err = syscall.ECONNRESET
	}
	return n, err
}

func (k *socket) writeIntr(b []byte, w waiter) (int, error) {
	e := k.ends.Load()
	if e == nil {
		return 0, syscall.ENOTCONN
	}
	n, err := e.out.writeIntr(b, w)
	switch {
	case err == syscall.EPIPE && e.link.reset.Load():
		err = syscall.ECONNRESET
	case err == syscall.EBADF: // shut down by this side
		err = syscall.EPIPE
	}
	return n, err
}

// poll is for reading: a connection that can be accepted counts.
func (k *socket) poll() <-chan struct{} {
	if e := k.ends.Load(); e != nil {
		return e.in.poll()
	}
	n := &k.sb.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if k.state != listening || len(k.queue) > 0 {
		return nil
	}
	return k.changed()
}

func (k *socket) room() (int, <-chan struct{}) {
	if e := k.ends.Load(); e != nil {
		return e.out.room()
	}
	return -1, nil
}

// shutdown ends one direction or both: ENOTCONN.
func (k *socket) shutdown(read, write bool) error {
	e := k.ends.Load()
	if e == nil {
		n := &k.sb.net
		n.mu.Lock()
		defer n.mu.Unlock()
		if k.state == listening && read { // Linux: it takes no more connections
			k.refuse()
			k.state = bound
			k.broadcast()
			return nil
		}
		return syscall.ENOTCONN
	}
	if read {
		e.in.endRead()
	}
	if write {
		e.out.Close()
	}
	return nil
}

// endRead makes reads find the end once what is there was read. The other side can go on writing until this one is closed, into
// a buffer that nobody empties, as TCP has it.
func (e *pipeEnd) endRead() {
	p := e.pipe
	p.mu.Lock()
	defer p.mu.Unlock()
	e.ended = true
	p.broadcast()
}

// refuse resets the connections that nobody has accepted. The loopback's mutex is held.
func (k *socket) refuse() {
	for _, q := range k.queue {
		q.ends.Load().link.reset.Store(true)
		q.closeLocked()
	}
	k.queue = nil
}

// Close implements vfs.File.
func (k *socket) Close() error {
	n := &k.sb.net
	n.mu.Lock()
	defer n.mu.Unlock()
	return k.closeLocked()
}

func (k *socket) closeLocked() error {
	n := &k.sb.net
	if k.state == closed {
		return syscall.EBADF
	}
	if k.state == bound || k.state == listening {
		n.leave(k)
	}
	k.refuse()
	k.state = closed
	k.broadcast()
	delete(n.all, k)
	if k.counted {
		k.counted = false
		if port := k.localAddr.Port(); n.local[port] > 1 {
			n.local[port]--
		} else {
			delete(n.local, port)
		}
	}
	if e := k.ends.Load(); e != nil {
		if e.in.unread() {
			e.link.reset.Store(true) // as TCP tells that something was never read
		}
		e.in.Close()
		e.out.Close()
	}
	return nil
}

// unread tells whether there are bytes that nobody has read.
func (e *pipeEnd) unread() bool {
	e.pipe.mu.Lock()
	defer e.pipe.mu.Unlock()
	return len(e.pipe.buf) > e.pipe.off
}

// socketOf finds a descriptor's socket: EBADF, ENOTSOCK.
func (p *Process) socketOf(fd int) (*socket, error) {
	if err := p.gate(); err != nil {
		return nil, err
	}
	d, err := p.fds.get(fd)
	if err != nil {
		return nil, err
	}
	k, ok := d.file.(*socket)
	if !ok {
		return nil, syscall.ENOTSOCK
	}
	return k, nil
}

// Socket makes a socket of TCP in the sandbox's own network, at the lowest free descriptor, which is closed on exec: EMFILE, ENFILE.
func (p *Process) Socket(v6 bool) (int, error) {
	if err := p.gate(); err != nil {
		return -1, err
	}
	k, err := p.sb.newSocket(v6)
	if err != nil {
		return -1, err
	}
	p.moved()
	return p.fds.add(newDescription(k), 0, true)
}

// SocketOption is one that the sandbox's network has.
type SocketOption int

// The options of sockets.
const (
	ReuseAddr SocketOption = iota
	ReusePort
	V6Only
)

// SetSocketOption sets one: EBADF, ENOTSOCK.
func (p *Process) SetSocketOption(fd int, o SocketOption, on bool) error {
	k, err := p.socketOf(fd)
	if err != nil {
		return err
	}
	k.sb.net.mu.Lock()
	defer k.sb.net.mu.Unlock()
	switch o {
	case ReuseAddr:
		k.reuse = on
	case ReusePort:
		k.reusePort = on
	case V6Only:
		if k.state != fresh {
			return syscall.EINVAL
		}
		k.v6only = on
	default:
		return syscall.ENOPROTOOPT
	}
	return nil
}

// Bind gives a socket an address of the sandbox, loopback or unspecified; port 0 is a free one. Errors: EBADF, ENOTSOCK, EINVAL,
// EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT.
func (p *Process) Bind(fd int, at netip.AddrPort) error {
	k, err := p.socketOf(fd)
	if err != nil {
		return err
	}
	return k.sb.net.bind(k, at)
}

// Listen makes a socket take connections, of which up to backlog+1 wait: EBADF, ENOTSOCK, EINVAL, EADDRINUSE.
func (p *Process) Listen(fd, backlog int) error {
	k, err := p.socketOf(fd)
	if err != nil {
		return err
	}
	return k.sb.net.listen(k, backlog)
}

// Accept takes a connection, waiting for one if it is told to, and returns its descriptor, which is closed on exec. Errors: EBADF,
// ENOTSOCK, EINVAL for one that doesn't listen, EAGAIN, EINTR, EMFILE.
func (p *Process) Accept(fd int, wait bool) (int, error) {
	k, err := p.socketOf(fd)
	if err != nil {
		return -1, err
	}
	n, w := &k.sb.net, p.waiter()
	n.mu.Lock()
	for len(k.queue) == 0 {
		switch {
		case k.state == closed:
			err = syscall.EBADF
		case k.state != listening:
			err = syscall.EINVAL
		case !wait:
			err = syscall.EAGAIN
		default:
			ch := k.changed()
			n.mu.Unlock()
			err = w.until(ch)
			n.mu.Lock()
		}
		if err != nil {
			n.mu.Unlock()
			return -1, err
		}
	}
	q := k.queue[0]
	k.queue = k.queue[1:]
	k.broadcast()
	n.mu.Unlock()
	p.moved()
	return p.fds.add(newDescription(q), 0, true)
}

// Connect connects a socket with a server of the sandbox; done, if it isn't nil, ends the wait for one that is busy: ETIMEDOUT.
// Errors: EBADF, ENOTSOCK, ECONNREFUSED, EISCONN, ENETUNREACH for an address outside, EADDRNOTAVAIL, ENFILE, EINTR.
func (p *Process) Connect(fd int, to netip.AddrPort, done <-chan struct{}) error {
	k, err := p.socketOf(fd)
	if err != nil {
		return err
	}
	a, ok := p.sb.Local(to.Addr().String())
	if !ok {
		return syscall.ENETUNREACH
	}
	w := p.waiter()
	if done != nil {
		ctx, stop := merge(w.intr, done)
		defer stop()
		w.intr = ctx
	}
	err = k.sb.net.connect(k, netip.AddrPortFrom(a, to.Port()), w, p)
	if err == syscall.EINTR && done != nil {
		select {
		case <-done:
			err = syscall.ETIMEDOUT
		default:
		}
	}
	if err == nil {
		p.moved()
	}
	return err
}

// merge returns a channel that is closed when a or b is.
func merge(a, b <-chan struct{}) (<-chan struct{}, func()) {
	out, end, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-a:
			close(out)
		case <-b:
			close(out)
		case <-end:
		}
	}()
	return out, func() {
		close(end)
		<-over
	}
}

// Send writes to a connection without the signal that others get with EPIPE: EBADF, ENOTSOCK for what is no connection, those of Write.
func (p *Process) Send(fd int, b []byte) (int, error) {
	if err := p.gate(); err != nil {
		return 0, err
	}
	d, err := p.fds.get(fd)
	if err != nil {
		return 0, err
	}
	switch d.file.(type) {
	case *socket, *connFile:
	default:
		return 0, syscall.ENOTSOCK
	}
	n, err := d.file.(interruptible).writeIntr(b, p.waiter())
	if n > 0 {
		p.moved()
	}
	return n, err
}

// Shutdown ends one direction of a connection or both: EBADF, ENOTSOCK, ENOTCONN.
func (p *Process) Shutdown(fd int, read, write bool) error {
	k, err := p.socketOf(fd)
	if err != nil {
		return err
	}
	p.moved()
	return k.shutdown(read, write)
}

// SocketAddrs returns a socket's own address and that of its peer; either may be invalid: EBADF, ENOTSOCK.
func (p *Process) SocketAddrs(fd int) (local, peer netip.AddrPort, err error) {
	k, err := p.socketOf(fd)
	if err != nil {
		return local, peer, err
	}
	k.sb.net.mu.Lock()
	defer k.sb.net.mu.Unlock()
	return k.localAddr, k.peerAddr, nil
}

// ConnectLocal makes a socket that is connected with a server of the sandbox, and returns its descriptor. local is false when host
// isn't the sandbox; a name is tried as IPv4 and IPv6. Errors: those of Socket and Connect.
func (p *Process) ConnectLocal(host string, port uint16, done <-chan struct{}) (fd int, local bool, err error) {
	a, local := p.sb.Local(host)
	if !local {
		return -1, false, nil
	}
	addrs := []netip.Addr{a}
	if _, err := netip.ParseAddr(host); err != nil && a == loopback4 {
		addrs = append(addrs, loopback6)
	}
	for _, a := range addrs {
		if fd, err = p.Socket(a.Is6()); err != nil {
			return -1, true, err
		}
		if err = p.Connect(fd, netip.AddrPortFrom(a, port), done); err == nil {
			return fd, true, nil
		}
		p.CloseFd(fd)
		if err != syscall.ECONNREFUSED {
			break
		}
	}
	return -1, true, err
}

// TakeConn takes a connected socket out of the descriptors, for code that wants a net.Conn; it is reset in copies of the sandbox.
// Errors: EBADF, ENOTSOCK, ENOTCONN.
func (p *Process) TakeConn(fd int) (*Conn, error) {
	k, err := p.socketOf(fd)
	if err != nil {
		return nil, err
	}
	e := k.ends.Load()
	if e == nil {
		return nil, syscall.ENOTCONN
	}
	d, err := p.fds.get(fd)
	if err != nil {
		return nil, err
	}
	d.refs.Add(1)
	e.link.outside.Store(true)
	c := newConn(k)
	c.release = d.release
	return c, p.fds.closeIf(fd, d)
}
