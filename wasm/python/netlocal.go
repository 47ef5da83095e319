package python

import (
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"agentrun.dev/proc"
)

// ending returns what is closed when the time is up: nil for no limit.
func ending(limit time.Duration) (done <-chan struct{}, stop func()) {
	if limit < 0 {
		return nil, func() {}
	}
	ch := make(chan struct{})
	t := time.AfterFunc(limit, func() { close(ch) })
	return ch, func() { t.Stop() }
}

// local does an operation on sockets of the sandbox's own network.
func local(p *proc.Process, op uint32, field func() string, number func() int, limit func() time.Duration) ([]byte, error) {
	if op == callSocket {
		fd, err := p.Socket(field() == "6")
		return strconv.AppendInt(nil, int64(fd), 10), err
	}
	fd := number()
	switch op {
	case callOption:
		o, ok := map[string]proc.SocketOption{"reuse": proc.ReuseAddr, "port": proc.ReusePort, "v6only": proc.V6Only}[field()]
		if !ok {
			return nil, syscall.ENOPROTOOPT
		}
		return nil, p.SetSocketOption(fd, o, number() != 0)
	case callBind:
		at, err := address(p, field(), number())
		if err != nil {
			return nil, syscall.EADDRNOTAVAIL
		}
		return nil, p.Bind(fd, at)
	case callListen:
		return nil, p.Listen(fd, number())
	case callAccept:
		conn, err := p.Accept(fd, false)
		return strconv.AppendInt(nil, int64(conn), 10), err
	case callShutdown:
		how := number()
		return nil, p.Shutdown(fd, how != 1, how != 0)
	case callJoin:
		to, err := address(p, field(), number())
		if err != nil {
			return nil, syscall.ENETUNREACH
		}
		done, stop := ending(limit())
		defer stop()
		return nil, p.Connect(fd, to, done)
	}
	own, peer, err := p.SocketAddrs(fd) // callNames
	if err != nil {
		return nil, err
	}
	var out []byte
	for _, a := range []netip.AddrPort{own, peer} {
		if a.IsValid() {
			out = a.Addr().AppendTo(out)
		}
		out = append(out, 0)
		out = strconv.AppendUint(out, uint64(a.Port()), 10)
		out = append(out, 0)
	}
	return out, nil
}

// address is what a host's name or address and a port mean in the sandbox's own network.
func address(p *proc.Process, host string, port int) (netip.AddrPort, error) {
	if port < 0 || port > 65535 {
		return netip.AddrPort{}, syscall.EINVAL
	}
	a, err := netip.ParseAddr(host)
	if err != nil || !a.IsUnspecified() {
		ok := false
		if a, ok = p.Sandbox().Local(host); !ok {
			return netip.AddrPort{}, syscall.EADDRNOTAVAIL
		}
	}
	return netip.AddrPortFrom(a, uint16(port)), nil
}
