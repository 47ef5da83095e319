// Package uplink is the network of a virtual machine, as far as its cable reaches: an Ethernet link whose other end is a TCP/IP
// stack in this process (gVisor's netstack), without a tap, a network namespace or privileges of the host.
//
// The guest has Guest as its address and Gateway as the way to everything. A TCP connection that it opens ends here and is made
// anew by a dialer, which knows the policy: nothing of the guest's packets reaches the host's network, and what the dialer refuses
// is refused to the guest, on port 80 with a page that says why.
//
// Names are answered here, too, and asked of nobody: each gets an address of its own out of Names, by which a connection to it is
// known again, so that the dialer is given names and resolves them itself. A guest can't tell anybody anything by asking for names. Addresses
// given stay what they are in forks of the machine (Options.Names).
//
// There is nothing else: UDP but to the gateway's port 53 is answered as unreachable, other protocols by nobody.
package uplink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/link/ethernet"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"agentrun.dev/errs"
)

// The addresses of every link: each has but one guest, so that all may have the same.
var (
	Guest   = netip.MustParsePrefix("100.64.0.2/30") // of the shared address space (RFC 6598)
	Gateway = netip.MustParseAddr("100.64.0.1")      // answers names, too
	Names   = netip.MustParsePrefix("198.18.0.0/16") // of the range for benchmarks (RFC 2544), which is nobody's
)

// Limits of one link.
const (
	MTU      = 1500
	MaxConns = 512   // connections at a time, those that are being made included
	MaxNames = 16384 // that have an address; the one that was asked for the longest ago loses it
	queue    = 256   // frames that wait for the guest; more are lost, as on a wire
)

const (
	nic      = 1
	hardware = "\x02\x00\x64\x40\x00\x01" // the gateway's
)

// Options of a link.
type Options struct {
	// Dial connects to "host:port" for the guest; nil refuses everything. errs.Denied is told to the guest in words where that can be.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Names are those that have addresses already: what the link of the machine that was forked, or saved, knew.
	Names []Name
}

// Link is one guest's network.
type Link struct {
	card   io.ReadWriteCloser
	dial   func(ctx context.Context, network, addr string) (net.Conn, error)
	stack  *stack.Stack
	end    *channel.Endpoint
	names  *names
	ctx    context.Context
	cancel context.CancelFunc
	all    sync.WaitGroup
	room   chan struct{}
}

// New begins to serve a link. card is the other end of the guest's network card, one frame to each Read and Write, and belongs to
// the link from now on.
func New(card io.ReadWriteCloser, o Options) (*Link, error) {
	l := &Link{card: card, dial: o.Dial, names: newNames(o.Names), room: make(chan struct{}, MaxConns)}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.stack = stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, arp.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol, icmp.NewProtocol4},
	})
	l.end = channel.New(queue, MTU, tcpip.LinkAddress(hardware))
	if err := l.configure(); err != nil {
		l.cancel()
		l.stack.Destroy()
		card.Close()
		return nil, err
	}
	l.all.Go(l.receive)
	l.all.Go(l.send)
	return l, nil
}

// configure makes the stack take packets for any address as its own.
func (l *Link) configure() error {
	failed := func(what string, err tcpip.Error) error {
		return errs.Msg(errs.Other, "uplink", what, err.String())
	}
	if err := l.stack.CreateNIC(nic, ethernet.New(l.end)); err != nil {
		return failed("link", err)
	}
	gateway := tcpip.AddrFrom4(Gateway.As4())
	own := tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: tcpip.AddressWithPrefix{Address: gateway, PrefixLen: Guest.Bits()}}
	if err := l.stack.AddProtocolAddress(nic, own, stack.AddressProperties{}); err != nil {
		return failed("address", err)
	}
	if err := l.stack.SetPromiscuousMode(nic, true); err != nil {
		return failed("address", err)
	}
	if err := l.stack.SetSpoofing(nic, true); err != nil {
		return failed("address", err)
	}
	l.stack.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
	sack := tcpip.TCPSACKEnabled(true)
	if err := l.stack.SetTransportProtocolOption(tcp.ProtocolNumber, &sack); err != nil {
		return failed("tcp", err)
	}
	forward := tcp.NewForwarder(l.stack, 0, MaxConns, l.accept)
	l.stack.SetTransportProtocolHandler(tcp.ProtocolNumber, forward.HandlePacket)
	return l.serveNames()
}

// Close ends the link, its connections and the card.
func (l *Link) Close() error {
	l.cancel()
	err := l.card.Close()
	l.stack.Destroy()
	l.end.Close()
	l.all.Wait()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return err
}

// receive takes frames from the guest until the card is closed.
func (l *Link) receive() {
	b := make([]byte, 64<<10)
	for {
		n, err := l.card.Read(b)
		if err != nil || n == 0 {
			l.cancel()
			return
		}
		l.inject(b[:n])
	}
}

// inject gives the stack a frame of the guest.
func (l *Link) inject(frame []byte) {
	if !wanted(frame) {
		return
	}
	p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(frame)})
	l.end.InjectInbound(0, p)
	p.DecRef()
}

// wanted drops what the stack would answer in the name of others: echo requests to any address but the gateway's, frames that
// aren't from a single station.
func wanted(frame []byte) bool {
	if len(frame) < header.EthernetMinimumSize || frame[6]&1 != 0 {
		return false
	}
	e := header.Ethernet(frame)
	if e.Type() != header.IPv4ProtocolNumber {
		return e.Type() == header.ARPProtocolNumber
	}
	ip := header.IPv4(frame[header.EthernetMinimumSize:])
	if len(ip) < header.IPv4MinimumSize {
		return false
	}
	return ip.TransportProtocol() != header.ICMPv4ProtocolNumber || ip.DestinationAddress() == tcpip.AddrFrom4(Gateway.As4())
}

// send gives frames to the guest until the link is closed.
func (l *Link) send() {
	for {
		p := l.end.ReadContext(l.ctx)
		if p == nil {
			return
		}
		v := p.ToView()
		_, err := l.card.Write(v.AsSlice())
		v.Release()
		p.DecRef()
		// A card that takes no frame now has lost it; one that is closed ends receive.
		if errors.Is(err, net.ErrClosed) {
			return
		}
	}
}

// target is where a connection to an address is to go.
func (l *Link) target(a netip.Addr, port uint16) (string, bool) {
	host := a.String()
	if Names.Contains(a) {
		name, ok := l.names.of(a)
		if !ok {
			return "", false
		}
		host = name
	}
	return net.JoinHostPort(host, fmt.Sprint(port)), true
}

// dialTime bounds the making of one connection.
const dialTime = 30 * time.Second
