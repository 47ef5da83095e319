package proc

import (
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"agentrun.dev/errs"
)

// The ports that connections and binds to port 0 are given.
const (
	ephemeralFirst = 32768
	ephemeralLast  = 60999
)

// maxBacklog bounds the connections that wait to be accepted, as SOMAXCONN does.
const maxBacklog = 4096

var (
	loopback4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	loopback6 = netip.IPv6Loopback()
)

// loopback is the sandbox's own network: TCP as programs see it, between its processes and from whoever runs it, all in
// memory. It reaches nothing else, nor does anything else reach it.
type loopback struct {
	mu    sync.Mutex
	bound map[uint16][]*socket // bound and listening ones, by port
	local map[uint16]int       // connections by their local port
	all   map[*socket]struct{} // that are open
	turn  uint                 // of listeners that share a port
}

// Local returns the address by which the sandbox reaches itself under a host's name or address: localhost, what ends in
// .localhost, its own hostname, loopback addresses and the unspecified ones. What isn't local is somewhere outside.
func (s *Sandbox) Local(host string) (netip.Addr, bool) {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	switch {
	case host == "localhost", strings.HasSuffix(host, ".localhost"), host == strings.ToLower(s.hostname):
		return loopback4, true
	case host == "ip6-localhost", host == "ip6-loopback":
		return loopback6, true
	}
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		if a, err = oldAddr(host); err != nil {
			return netip.Addr{}, false
		}
	}
	a = a.WithZone("").Unmap()
	switch {
	case a.IsLoopback():
		return a, true
	case !a.IsUnspecified():
		return netip.Addr{}, false
	case a.Is6():
		return loopback6, true
	}
	return loopback4, true
}

// oldAddr reads the forms of an IPv4 address that inet_aton takes: one to four numbers, also octal and hexadecimal. Resolvers
// outside may take them too, so that "127.1" or "0x7f000001" mustn't look like a name.
func oldAddr(host string) (netip.Addr, error) {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return netip.Addr{}, syscall.EINVAL
	}
	var sum uint64
	for i, part := range parts {
		if part == "" || strings.ContainsRune(part, '_') || part[0] < '0' || part[0] > '9' {
			return netip.Addr{}, syscall.EINVAL
		}
		if len(part) > 1 && part[0] == '0' && part[1] >= '0' && part[1] <= '9' {
			part = "0o" + part
		}
		n, err := strconv.ParseUint(part, 0, 32)
		size := 8
		if i == len(parts)-1 {
			size = 8 * (5 - len(parts))
		}
		if err != nil || n >= 1<<size {
			return netip.Addr{}, syscall.EINVAL
		}
		sum = sum<<size | n
	}
	return netip.AddrFrom4([4]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}), nil
}

// open counts a socket that was made: ENFILE. The mutex is held.
func (n *loopback) open(k *socket) error {
	if len(n.all) >= k.sb.limits.Sockets {
		return syscall.ENFILE
	}
	if n.all == nil {
		n.all = make(map[*socket]struct{})
	}
	n.all[k] = struct{}{}
	return nil
}

// overlaps tells whether connections to one of the two addresses could also be for the other.
func overlaps(a, b *socket) bool {
	x, y := a.localAddr.Addr(), b.localAddr.Addr()
	switch {
	case x.Is4() == y.Is4():
		return x == y || x.IsUnspecified() || y.IsUnspecified()
	case x.Is4():
		return b.dual()
	}
	return a.dual()
}

// dual tells whether a socket of IPv6 also takes what is for IPv4.
func (k *socket) dual() bool {
	a := k.localAddr.Addr()
	return a.Is6() && a.IsUnspecified() && !k.v6only
}

// free tells whether a socket may be bound to its address. The mutex is held.
func (n *loopback) free(k *socket) bool {
	for _, o := range n.bound[k.localAddr.Port()] {
		if o != k && overlaps(k, o) && !(k.reusePort && o.reusePort) && (o.state == listening || !k.reuse || !o.reuse) {
			return false
		}
	}
	return true
}

// bind gives a socket its address; port 0 is one that is free: EADDRINUSE, EADDRNOTAVAIL, EINVAL when it has one.
func (n *loopback) bind(k *socket, at netip.AddrPort) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	a := at.Addr().WithZone("")
	switch {
	case k.state != fresh:
		return syscall.EINVAL
	case a.Is4() == k.v6 && !(k.v6 && a.Is4In6()):
		return syscall.EAFNOSUPPORT
	case !a.Unmap().IsLoopback() && !a.IsUnspecified():
		return syscall.EADDRNOTAVAIL
	}
	k.localAddr = netip.AddrPortFrom(a.Unmap(), at.Port())
	if at.Port() == 0 {
		port, err := n.ephemeral(func(port uint16) bool {
			k.localAddr = netip.AddrPortFrom(a.Unmap(), port)
			return n.free(k)
		})
		if err != nil {
			k.localAddr = netip.AddrPort{}
			return err
		}
		at = netip.AddrPortFrom(a, port)
	} else if !n.free(k) {
		k.localAddr = netip.AddrPort{}
		return syscall.EADDRINUSE
	}
	k.state = bound
	n.enter(k)
	return nil
}

func (n *loopback) enter(k *socket) {
	if n.bound == nil {
		n.bound = make(map[uint16][]*socket)
	}
	port := k.localAddr.Port()
	n.bound[port] = append(n.bound[port], k)
}

func (n *loopback) leave(k *socket) {
	port := k.localAddr.Port()
	n.bound[port] = slices.DeleteFunc(n.bound[port], func(o *socket) bool { return o == k })
	if len(n.bound[port]) == 0 {
		delete(n.bound, port)
	}
}

// ephemeral finds a port that suits, beginning anywhere: EADDRINUSE.
func (n *loopback) ephemeral(suits func(uint16) bool) (uint16, error) {
	const count = ephemeralLast - ephemeralFirst + 1
	start := rand.IntN(count)
	for i := range count {
		if port := uint16(ephemeralFirst + (start+i)%count); n.local[port] == 0 && suits(port) {
			return port, nil
		}
	}
	return 0, syscall.EADDRINUSE
}

// listen makes a bound socket one that takes connections; a fresh one is bound to a free port of all addresses.
func (n *loopback) listen(k *socket, backlog int) error {
	n.mu.Lock()
	state := k.state
	n.mu.Unlock()
	if state == fresh {
		if err := n.bind(k, netip.AddrPortFrom(k.unspecified(), 0)); err != nil {
			return err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch k.state {
	case bound:
		for _, o := range n.bound[k.localAddr.Port()] {
			if o != k && o.state == listening && overlaps(k, o) && !(k.reusePort && o.reusePort) {
				return syscall.EADDRINUSE
			}
		}
		k.state = listening
	case listening:
	default:
		return syscall.EINVAL
	}
	k.backlog = min(max(backlog, 0), maxBacklog-1) + 1
	k.broadcast()
	return nil
}

// listens tells whether anybody listens on a port.
func (n *loopback) listens(port uint16) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.ContainsFunc(n.bound[port], func(k *socket) bool { return k.state == listening })
}

// target finds the listener for connections to an address. The mutex is held.
func (n *loopback) target(to netip.AddrPort) *socket {
	var exact, wide []*socket
	for _, k := range n.bound[to.Port()] {
		a := k.localAddr.Addr()
		switch {
		case k.state != listening:
		case a == to.Addr():
			exact = append(exact, k)
		case a.IsUnspecified() && (a.Is4() == to.Addr().Is4() || to.Addr().Is4() && k.dual()):
			wide = append(wide, k)
		}
	}
	if exact == nil {
		exact = wide
	}
	if len(exact) == 0 {
		return nil
	}
	n.turn++
	return exact[n.turn%uint(len(exact))]
}

// A server that has just been started and hasn't come to wait for anything yet is about to listen, perhaps: a connection waits
// for it a little. Else a host under load would make a difference to `server & sleep 0.2; client`.
const (
	startTime = 2 * time.Second
	startPoll = 3 * time.Millisecond
)

// starting tells whether a process other than self is as young as that.
func (s *Sandbox) starting(self *Process) bool {
	now := s.clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.procs {
		if p != self && p.starting.Load() && !p.ended() && now.Sub(p.start) < startTime {
			return true
		}
	}
	return false
}

// connect connects k, in the name of self if that isn't nil, with whoever listens at an address, and waits while too many others do: ECONNREFUSED.
func (n *loopback) connect(k *socket, to netip.AddrPort, w waiter, self *Process) error {
	begun := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	for {
		switch k.state {
		case fresh, bound:
		case closed:
			return syscall.EBADF
		default:
			return syscall.EISCONN
		}
		l := n.target(to)
		if l == nil {
			n.mu.Unlock()
			err := syscall.Errno(0)
			if time.Since(begun) >= startTime || !k.sb.starting(self) {
				err = syscall.ECONNREFUSED
			} else if w.sleep(startPoll) != nil {
				err = syscall.EINTR
			}
			n.mu.Lock()
			if err != 0 {
				return err
			}
			continue
		}
		if len(l.queue) < l.backlog {
			return n.join(k, l, to)
		}
		ch := l.changed()
		n.mu.Unlock()
		err := w.until(ch)
		n.mu.Lock()
		if err != nil {
			return err
		}
	}
}

// join makes the connection: the mutex is held.
func (n *loopback) join(k, l *socket, to netip.AddrPort) error {
	if k.state == bound {
		n.leave(k)
	} else {
		port, err := n.ephemeral(func(port uint16) bool { return n.bound[port] == nil })
		if err != nil {
			return syscall.EADDRNOTAVAIL
		}
		from := to.Addr()
		if !from.IsLoopback() {
			from = loopback4
		}
		k.localAddr = netip.AddrPortFrom(from, port)
	}
	if k.localAddr.Addr().IsUnspecified() {
		k.localAddr = netip.AddrPortFrom(to.Addr(), k.localAddr.Port())
	}
	there := &socket{sb: l.sb, id: l.sb.pipeIDs.Add(1), v6: l.v6, born: l.sb.clock(), state: connected, localAddr: to, peerAddr: k.localAddr}
	if err := n.open(there); err != nil {
		return err
	}
	k.peerAddr = to
	a, b := newPipe(l.sb.pipeIDs.Add(1)), newPipe(l.sb.pipeIDs.Add(1))
	shared := &link{}
	shared.outside.Store(k.outside)
	k.joined(a, b, shared)
	there.joined(b, a, shared)
	k.state = connected
	n.entered(k)
	l.queue = append(l.queue, there)
	l.broadcast()
	return nil
}

// entered counts a connection under the port of who made it.
func (n *loopback) entered(k *socket) {
	if n.local == nil {
		n.local = make(map[uint16]int)
	}
	n.local[k.localAddr.Port()]++
	k.counted = true
}

// Dial connects from outside to a server inside that listens on a port, of any address of the sandbox: ECONNREFUSED as the
// cause of errs.Unavailable when there is none. The connection is reset in copies of the sandbox.
func (s *Sandbox) Dial(ctx context.Context, port int) (net.Conn, error) {
	where := "port " + strconv.Itoa(port)
	if port < 1 || port > 65535 {
		return nil, errs.Msg(errs.Invalid, "connect", where, "a port is a number from 1 to 65535")
	}
	n := &s.net
	to := netip.AddrPortFrom(loopback4, uint16(port))
	for begun := time.Now(); !n.listens(uint16(port)) && time.Since(begun) < startTime && s.starting(nil); {
		if (waiter{nil, ctx.Done()}).sleep(startPoll) != nil {
			break
		}
	}
	n.mu.Lock()
	if n.target(to) == nil {
		for _, k := range n.bound[uint16(port)] {
			if a := k.localAddr.Addr(); k.state == listening && !a.IsUnspecified() {
				to = netip.AddrPortFrom(a, uint16(port))
			} else if k.state == listening && a.Is6() {
				to = netip.AddrPortFrom(loopback6, uint16(port))
			}
		}
	}
	n.mu.Unlock()
	c, err := s.dial(ctx, nil, to)
	switch {
	case err == nil:
		return c, nil
	case ctx.Err() != nil:
		return nil, errs.New(errs.Canceled, "connect", where, ctx.Err())
	case err == syscall.ENFILE:
		return nil, errs.New(errs.Limit, "connect", where, err)
	}
	return nil, errs.New(errs.Unavailable, "connect", where, err)
}

// DialLocal connects to a server of the sandbox in the name of a command of it that runs as Go code. local is false when addr,
// "host:port", isn't of the sandbox. The error is a *net.OpError, as of other connections.
func (s *Sandbox) DialLocal(ctx context.Context, network, addr string) (c net.Conn, local bool, err error) {
	host, name, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, false, nil
	}
	a, ok := s.Local(host)
	if !ok {
		return nil, false, nil
	}
	fail := func(err error) (net.Conn, bool, error) {
		return nil, true, &net.OpError{Op: "dial", Net: network, Addr: &net.TCPAddr{IP: a.AsSlice()}, Err: err}
	}
	port, err := strconv.ParseUint(name, 10, 16)
	if err != nil || port == 0 {
		return fail(syscall.EADDRNOTAVAIL)
	}
	_, err = netip.ParseAddr(host)
	named := err != nil
	if named && network == "tcp6" {
		a = loopback6
	}
	if named && a == loopback4 && network == "tcp" {
		n := &s.net
		n.mu.Lock()
		if n.target(netip.AddrPortFrom(a, uint16(port))) == nil && n.target(netip.AddrPortFrom(loopback6, uint16(port))) != nil {
			a = loopback6
		}
		n.mu.Unlock()
	}
	conn, err := s.dial(ctx, FromContext(ctx), netip.AddrPortFrom(a, uint16(port)))
	if err == syscall.ECONNREFUSED && a == loopback4 && named && network != "tcp4" {
		conn, err = s.dial(ctx, FromContext(ctx), netip.AddrPortFrom(loopback6, uint16(port))) // the name's other address
	}
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return fail(err)
	}
	return conn, true, nil
}

// dial connects whoever isn't a process.
func (s *Sandbox) dial(ctx context.Context, self *Process, to netip.AddrPort) (*Conn, error) {
	s.mu.Lock()
	down := s.closed
	s.mu.Unlock()
	if down {
		return nil, syscall.ECONNREFUSED
	}
	k, err := s.newSocket(to.Addr().Is6())
	if err != nil {
		return nil, err
	}
	k.outside = true
	if err := s.net.connect(k, to, waiter{nil, ctx.Done()}, self); err != nil {
		k.Close()
		return nil, err
	}
	return newConn(k), nil
}
