package network

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
)

// listen waits for connections to [address] port, in the sandbox's own network.
func (n *netcat) listen(operands []string) int {
	n.listening = true
	p := n.t.Process
	at := netip.IPv4Unspecified()
	if n.network == "tcp6" {
		at = netip.IPv6Unspecified()
	}
	if len(operands) == 2 {
		if a, err := netip.ParseAddr(operands[0]); err == nil {
			at = a
		} else if a, ok := p.Sandbox().Local(operands[0]); ok {
			at = a
		} else {
			n.t.Fatal(1, "getaddrinfo: Name or service not known")
		}
	}
	port, _ := n.ports(operands[len(operands)-1])
	fd, err := p.Socket(at.Is6())
	if err == nil {
		defer p.CloseFd(fd)
		p.SetSocketOption(fd, proc.ReuseAddr, true)
		err = p.Bind(fd, netip.AddrPortFrom(at, uint16(port)))
	}
	if err == nil {
		err = p.Listen(fd, 1)
	}
	if err != nil {
		n.t.Fatal(1, "%s", tool.Strerror(err))
	}
	if n.verbose {
		fmt.Fprintf(n.t.Stderr(), "Listening on %s %d\n", at, port)
	}
	for {
		c, err := n.accept(fd)
		if err != nil {
			return 1
		}
		stop := context.AfterFunc(p.Context(), func() { c.Close() })
		n.copy(c)
		stop()
		c.Close()
		if !n.keep {
			return 0
		}
		n.noStdin = true // it has been read
	}
}

// accept waits for a connection, with -w up to its time.
func (n *netcat) accept(fd int) (net.Conn, error) {
	p := n.t.Process
	var done <-chan struct{}
	if n.timeout > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), n.timeout)
		defer cancel()
		done = ctx.Done()
	}
	for {
		ready, err := p.Poll(fd, done)
		n.t.Check()
		if err == syscall.EINTR {
			continue
		}
		if err != nil || !ready {
			return nil, syscall.ETIMEDOUT
		}
		conn, err := p.Accept(fd, false)
		if err == syscall.EAGAIN {
			continue
		}
		if err != nil {
			return nil, err
		}
		if n.verbose {
			_, peer, _ := p.SocketAddrs(conn)
			from := peer.Addr().String()
			if !n.numeric && peer.Addr().IsLoopback() {
				from = "localhost"
			}
			fmt.Fprintf(n.t.Stderr(), "Connection received on %s %s\n", from, strconv.Itoa(int(peer.Port())))
		}
		c, err := p.TakeConn(conn)
		if err != nil {
			return nil, err
		}
		c.SetDeadline(time.Time{})
		return c, nil
	}
}
