package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"agentrun.dev/errs"
)

// Resolver finds the addresses of a name; *net.Resolver is one. network is "ip", "ip4" or "ip6".
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Options of a Dialer. The zero value works.
type Options struct {
	Resolver Resolver      // net.DefaultResolver when nil
	Timeout  time.Duration // of one connection, resolution included; 30 s
	// Connect makes a connection to an address that the policy has allowed; a plain net.Dialer when nil.
	Connect func(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error)
	// Denied, when set, is told of every refusal, as an audit needs it. It must not block.
	Denied func(addr string, err error)
}

// Dialer connects under a policy and counts bytes. It may be used concurrently.
type Dialer struct {
	policy   atomic.Pointer[Policy]
	o        Options
	in, out  atomic.Int64
	made     atomic.Int64
	refused  atomic.Int64
	openConn atomic.Int64
	limit    atomic.Int64 // of bytes both ways; 0: none

	mu   sync.Mutex
	open map[*conn]bool
}

// New returns a Dialer for a policy; nil denies everything.
func New(p *Policy, o Options) *Dialer {
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Connect == nil {
		o.Connect = func(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, to.String())
		}
	}
	d := &Dialer{o: o, open: map[*conn]bool{}}
	d.policy.Store(p)
	return d
}

// SetPolicy replaces the policy. Connections that it doesn't allow are closed.
func (d *Dialer) SetPolicy(p *Policy) {
	d.policy.Store(p)
	d.mu.Lock()
	var cut []*conn
	for c := range d.open {
		if !c.allowed(p) {
			cut = append(cut, c)
		}
	}
	d.mu.Unlock()
	for _, c := range cut {
		c.Close()
	}
}

// Policy returns the policy; nil denies everything.
func (d *Dialer) Policy() *Policy { return d.policy.Load() }

// SetLimit bounds the bytes that may still go through, both ways together; 0 is no bound. When they are used up, connections
// and attempts to connect fail with errs.Limit.
func (d *Dialer) SetLimit(bytes int64) {
	if bytes > 0 {
		bytes += d.in.Load() + d.out.Load()
	}
	d.limit.Store(bytes)
}

// spent fails once the limit is reached.
func (d *Dialer) spent(addr string) error {
	if l := d.limit.Load(); l > 0 && d.in.Load()+d.out.Load() >= l {
		return errs.Msg(errs.Limit, "connect", addr, "the network budget is used up")
	}
	return nil
}

// Usage is what has gone through a Dialer.
type Usage struct {
	Received, Sent  int64 // bytes
	Connections     int64 // made
	Open            int64 // not closed yet
	RefusedAttempts int64 // by the policy
}

// Usage returns the counters.
func (d *Dialer) Usage() Usage {
	return Usage{d.in.Load(), d.out.Load(), d.made.Load(), d.openConn.Load(), d.refused.Load()}
}

// maxAddresses bounds how many of a name's addresses are tried.
const maxAddresses = 16

// Dial connects to "host:port" over "tcp", "tcp4" or "tcp6". Errors: Denied with a hint which rule would allow it,
// Limit when SetLimit's bytes are used up, Invalid, NotFound for a name without addresses, Unavailable when the connection fails, whose cause is in the chain.
func (d *Dialer) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if err := d.spent(addr); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, d.o.Timeout)
	defer cancel()
	var family string
	switch network {
	case "tcp":
		family = "ip"
	case "tcp4":
		family = "ip4"
	case "tcp6":
		family = "ip6"
	default:
		return nil, errs.Msg(errs.Unsupported, "connect", addr, "only TCP leaves a sandbox, not "+network)
	}
	host, portText, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, errs.New(errs.Invalid, "connect", addr, err)
	}
	n, err := strconv.ParseUint(portText, 10, 16)
	if err != nil || n == 0 {
		return nil, errs.Msg(errs.Invalid, "connect", addr, "the port isn't one from 1 to 65535")
	}
	port := uint16(n)
	list, err := d.addresses(ctx, family, host, port)
	if err != nil {
		if errs.Is(err, errs.Denied) {
			d.refused.Add(1)
			if d.o.Denied != nil {
				d.o.Denied(addr, err)
			}
		}
		return nil, err
	}
	var last error
	for i, a := range list {
		if i == maxAddresses || ctx.Err() != nil {
			break
		}
		c, err := d.o.Connect(ctx, network, netip.AddrPortFrom(a, port))
		if err == nil {
			return d.connected(c, host, a, port)
		}
		last = err
	}
	if last == nil {
		last = ctx.Err()
	}
	return nil, errs.New(errs.Unavailable, "connect", addr, last)
}

// connected makes a connection known. The policy may have been replaced while it was made.
func (d *Dialer) connected(to net.Conn, host string, a netip.Addr, port uint16) (net.Conn, error) {
	c := &conn{Conn: to, d: d, addr: a, port: port}
	if _, err := netip.ParseAddr(host); err != nil {
		c.name, _ = canonical(host)
	}
	d.made.Add(1)
	d.openConn.Add(1)
	d.mu.Lock()
	d.open[c] = true
	d.mu.Unlock()
	if !c.allowed(d.policy.Load()) {
		c.Close()
		where := net.JoinHostPort(host, strconv.Itoa(int(port)))
		return nil, denied(where, "the network policy allows no connection to this host any more", where)
	}
	return c, nil
}

// addresses returns those of host that may be connected to.
func (d *Dialer) addresses(ctx context.Context, family, host string, port uint16) ([]netip.Addr, error) {
	p := d.policy.Load()
	where := net.JoinHostPort(host, strconv.Itoa(int(port)))
	if a, err := netip.ParseAddr(host); err == nil {
		a = a.Unmap()
		if a.Zone() != "" || !p.allowsAddr(a, port) {
			return nil, denied(where, "the network policy allows no connection to this address", where)
		}
		return []netip.Addr{a}, nil
	}
	name, ok := canonical(host)
	if !ok {
		return nil, errs.Msg(errs.Invalid, "connect", where, "not a host's name")
	}
	// The rule is looked at before the name is: a lookup alone could carry secrets out.
	if !p.allowsName(name, port) {
		return nil, denied(where, "the network policy allows no connection to this host", net.JoinHostPort(name, strconv.Itoa(int(port))))
	}
	found, err := d.o.Resolver.LookupNetIP(ctx, family, name)
	if err != nil || len(found) == 0 {
		var dns *net.DNSError
		switch {
		case ctx.Err() != nil:
			return nil, errs.New(errs.Unavailable, "connect", where, ctx.Err())
		case err == nil, errors.As(err, &dns) && dns.IsNotFound:
			return nil, errs.Msg(errs.NotFound, "connect", where, "no such host")
		}
		return nil, errs.Msg(errs.Unavailable, "connect", where, "the name can't be resolved now")
	}
	allowed := make([]netip.Addr, 0, len(found))
	var private netip.Addr
	for _, a := range found {
		if a = a.Unmap(); p.leads(name, a, port) {
			allowed = append(allowed, a)
		} else {
			private = a
		}
	}
	if len(allowed) == 0 && Public(private) {
		return nil, denied(where, "the network policy excepts the host's address "+private.String(), net.JoinHostPort(name, strconv.Itoa(int(port))))
	}
	if len(allowed) == 0 {
		return nil, denied(where, "the host has an address that isn't public ("+private.String()+")", netip.AddrPortFrom(private, port).String())
	}
	return allowed, nil
}

// denied is the error for what no rule allows, naming the one that would.
func denied(where, why, rule string) error {
	return errs.Msg(errs.Denied, "connect", where, why+"; a rule \""+rule+"\" would").WithHint("allow it with the network rule \"" + rule + "\"")
}

// conn counts the bytes of a connection.
type conn struct {
	net.Conn
	d      *Dialer
	name   string // that it was connected by; empty: the address
	addr   netip.Addr
	port   uint16
	closed atomic.Bool
}

// allowed reports whether a policy lets the connection be.
func (c *conn) allowed(p *Policy) bool {
	if c.name == "" {
		return p.allowsAddr(c.addr, c.port)
	}
	return p.allowsName(c.name, c.port) && p.leads(c.name, c.addr, c.port)
}

func (c *conn) Read(b []byte) (int, error) {
	if err := c.d.spent(c.RemoteAddr().String()); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	c.d.in.Add(int64(n))
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	if err := c.d.spent(c.RemoteAddr().String()); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(b)
	c.d.out.Add(int64(n))
	return n, err
}

func (c *conn) Close() error {
	if !c.closed.Swap(true) {
		c.d.openConn.Add(-1)
		c.d.mu.Lock()
		delete(c.d.open, c)
		c.d.mu.Unlock()
	}
	return c.Conn.Close()
}

// CloseWrite ends the sending side, where the connection can.
func (c *conn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return errors.ErrUnsupported
}
