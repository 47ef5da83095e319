package uplink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/link/ethernet"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"agentrun.dev/errs"
)

// machine is a guest: a stack whose cable can be put into another link, as a fork's is.
type machine struct {
	t     testing.TB
	stack *stack.Stack
	end   *channel.Endpoint
	frame func([]byte) // sees what arrives, if set
	mu    sync.Mutex
	card  net.Conn
}

func newMachine(t testing.TB) *machine {
	m := &machine{t: t, end: channel.New(256, MTU, tcpip.LinkAddress("\x02\x00\x00\x00\x00\x02"))}
	m.stack = stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, arp.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol},
	})
	if err := m.stack.CreateNIC(1, ethernet.New(m.end)); err != nil {
		t.Fatal(err)
	}
	own := tcpip.AddressWithPrefix{Address: tcpip.AddrFrom4(Guest.Addr().As4()), PrefixLen: Guest.Bits()}
	if err := m.stack.AddProtocolAddress(1, tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: own}, stack.AddressProperties{}); err != nil {
		t.Fatal(err)
	}
	m.stack.SetRouteTable([]tcpip.Route{
		{Destination: own.Subnet(), NIC: 1},
		{Destination: header.IPv4EmptySubnet, Gateway: tcpip.AddrFrom4(Gateway.As4()), NIC: 1},
	})
	ctx, cancel := context.WithCancel(context.Background())
	var sending sync.WaitGroup
	sending.Go(func() {
		for {
			p := m.end.ReadContext(ctx)
			if p == nil {
				return
			}
			v := p.ToView()
			m.mu.Lock()
			if m.card != nil {
				m.card.Write(v.AsSlice())
			}
			m.mu.Unlock()
			v.Release()
			p.DecRef()
		}
	})
	t.Cleanup(func() { cancel(); sending.Wait(); m.stack.Destroy(); m.end.Close() })
	return m
}

// plug connects the machine with a new link.
func (m *machine) plug(o Options) *Link {
	m.t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		m.t.Fatal(err)
	}
	var ends []net.Conn
	for _, fd := range pair {
		f := os.NewFile(uintptr(fd), "cable")
		c, err := net.FileConn(f)
		if err != nil {
			m.t.Fatal(err)
		}
		f.Close()
		ends = append(ends, c)
	}
	l, err := New(ends[0], o)
	if err != nil {
		m.t.Fatal(err)
	}
	m.mu.Lock()
	old := m.card
	m.card = ends[1]
	m.mu.Unlock()
	if old != nil {
		old.Close()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 64<<10)
		for {
			n, err := ends[1].Read(b)
			if err != nil || n == 0 {
				return
			}
			if m.frame != nil {
				m.frame(b[:n])
			}
			p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(b[:n])})
			m.end.InjectInbound(0, p)
			p.DecRef()
		}
	}()
	m.t.Cleanup(func() {
		if err := l.Close(); err != nil {
			m.t.Error(err)
		}
		ends[1].Close()
		<-done
	})
	return l
}

func (m *machine) dial(a netip.Addr, port uint16) (*gonet.TCPConn, error) {
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Minute)
	defer cancel()
	return gonet.DialContextTCP(ctx, m.stack, tcpip.FullAddress{Addr: tcpip.AddrFrom4(a.As4()), Port: port}, ipv4.ProtocolNumber)
}

// question is a packed question for a name.
func question(t testing.TB, name string, kind dnsmessage.Type) []byte {
	t.Helper()
	b, err := (&dnsmessage.Message{Header: dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}}}).Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func unpack(t testing.TB, b []byte) *dnsmessage.Message {
	t.Helper()
	var m dnsmessage.Message
	if err := m.Unpack(b); err != nil {
		t.Fatalf("%x: %v", b, err)
	}
	return &m
}

// look asks the gateway for the address of a name.
func (m *machine) look(name string) netip.Addr {
	m.t.Helper()
	c, err := gonet.DialUDP(m.stack, nil, &tcpip.FullAddress{Addr: tcpip.AddrFrom4(Gateway.As4()), Port: 53}, ipv4.ProtocolNumber)
	if err != nil {
		m.t.Fatal(err)
	}
	defer c.Close()
	b := make([]byte, 512)
	for range 60 {
		if _, err := c.Write(question(m.t, name, dnsmessage.TypeA)); err != nil {
			m.t.Fatal(err)
		}
		c.SetReadDeadline(time.Now().Add(time.Second))
		n, err := c.Read(b)
		if err != nil {
			continue
		}
		a := unpack(m.t, b[:n])
		if len(a.Answers) != 1 {
			m.t.Fatalf("%s: %v", name, a)
		}
		return netip.AddrFrom4(a.Answers[0].Body.(*dnsmessage.AResource).A)
	}
	m.t.Fatal("nobody answers for names")
	return netip.Addr{}
}

// echo is a server that says who was dialled, and then what it is told, until the end.
func echo(t testing.TB) func(ctx context.Context, network, addr string) (net.Conn, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				io.Copy(c, c)
				io.WriteString(c, "end")
			}()
		}
	}()
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if strings.HasPrefix(addr, "denied.example") {
			return nil, &errs.Error{Kind: errs.Denied, Op: "connect", Thing: addr, Hint: "allow it"}
		}
		c, err := new(net.Dialer).DialContext(ctx, "tcp", ln.Addr().String())
		if err == nil {
			_, err = io.WriteString(c, addr+"\n")
		}
		return c, err
	}
}

// talk sends to a connection, ends its side and reads all that comes back.
func talk(t testing.TB, c *gonet.TCPConn, text string) string {
	t.Helper()
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestConnections(t *testing.T) {
	m := newMachine(t)
	m.plug(Options{Dial: echo(t)})
	big := strings.Repeat("0123456789abcdef", 1<<15)
	for _, c := range []struct {
		to   netip.Addr
		port uint16
		want string
	}{
		{netip.MustParseAddr("192.0.2.7"), 443, "192.0.2.7:443\n"},
		{m.look("Example.ORG."), 8080, "example.org:8080\n"},
	} {
		conn, err := m.dial(c.to, c.port)
		if err != nil {
			t.Fatal(err)
		}
		if got := talk(t, conn, big); got != c.want+big+"end" {
			t.Errorf("%v: %d bytes, %.40q…", c.to, len(got), got)
		}
	}
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			conn, err := m.dial(netip.MustParseAddr("192.0.2.7"), uint16(1000+i))
			if err != nil {
				t.Error(err)
				return
			}
			if got, want := talk(t, conn, "hello"), fmt.Sprintf("192.0.2.7:%d\nhelloend", 1000+i); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	all.Wait()
}

func TestDenied(t *testing.T) {
	m := newMachine(t)
	m.plug(Options{Dial: echo(t)})
	a := m.look("denied.example.")
	if c, err := m.dial(a, 443); err == nil {
		c.Close()
		t.Error("a denied connection was made")
	}
	c, err := m.dial(a, 80)
	if err != nil {
		t.Fatal(err)
	}
	said := talk(t, c, "GET / HTTP/1.1\r\nHost: denied.example\r\n\r\n")
	if !strings.HasPrefix(said, "HTTP/1.1 403 Forbidden\r\n") || !strings.Contains(said, "denied.example:80") || !strings.HasSuffix(said, "allow it\n") {
		t.Errorf("the refusal is %q", said)
	}
	if c, err := m.dial(netip.MustParseAddr("198.18.77.77"), 80); err == nil {
		c.Close()
		t.Error("an address that no name has was connected with")
	}
	if c, err := m.dial(Gateway, 22); err == nil {
		c.Close()
		t.Error("the gateway has more than names")
	}
}

// TestNoNetwork is about a link without a dialer: everything is refused.
func TestNoNetwork(t *testing.T) {
	m := newMachine(t)
	m.plug(Options{})
	c, err := m.dial(m.look("example.org."), 80)
	if err != nil {
		t.Fatal(err)
	}
	if said := talk(t, c, "GET / HTTP/1.0\r\n\r\n"); !strings.Contains(said, "this sandbox has no network") {
		t.Errorf("the refusal is %q", said)
	}
}

// TestUnreachable sends a datagram where none can go, and pings somebody: the one is told so, the other gets no answer that
// isn't true.
func TestUnreachable(t *testing.T) {
	m := newMachine(t)
	told := make(chan header.ICMPv4, 10)
	m.frame = func(b []byte) {
		if header.Ethernet(b).Type() != header.IPv4ProtocolNumber {
			return
		}
		if ip := header.IPv4(b[header.EthernetMinimumSize:]); ip.TransportProtocol() == header.ICMPv4ProtocolNumber {
			told <- bytes.Clone(ip.Payload())
		}
	}
	l := m.plug(Options{Dial: echo(t)})
	l.inject(datagram(header.ICMPv4ProtocolNumber, netip.MustParseAddr("192.0.2.7"), append([]byte{8, 0, 0xf7, 0xff}, make([]byte, 4)...)))
	c, err := gonet.DialUDP(m.stack, nil, &tcpip.FullAddress{Addr: tcpip.AddrFrom4([4]byte{192, 0, 2, 7}), Port: 123}, ipv4.ProtocolNumber)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("what time is it?")); err != nil {
		t.Fatal(err)
	}
	select {
	case h := <-told:
		if h.Type() != header.ICMPv4DstUnreachable || h.Code() != header.ICMPv4PortUnreachable {
			t.Errorf("told type %d, code %d", h.Type(), h.Code())
		}
	case <-time.After(time.Minute):
		t.Error("nobody says that UDP leads nowhere")
	}
}

// datagram is a frame of the machine's.
func datagram(p tcpip.TransportProtocolNumber, to netip.Addr, payload []byte) []byte {
	b := make([]byte, header.EthernetMinimumSize+header.IPv4MinimumSize)
	header.Ethernet(b).Encode(&header.EthernetFields{SrcAddr: "\x02\x00\x00\x00\x00\x02", DstAddr: hardware, Type: header.IPv4ProtocolNumber})
	ip := header.IPv4(b[header.EthernetMinimumSize:])
	ip.Encode(&header.IPv4Fields{TotalLength: uint16(header.IPv4MinimumSize + len(payload)), TTL: 64, Protocol: uint8(p),
		SrcAddr: tcpip.AddrFrom4(Guest.Addr().As4()), DstAddr: tcpip.AddrFrom4(to.As4())})
	ip.SetChecksum(^ip.CalculateChecksum())
	return append(b, payload...)
}

// TestFork moves the cable to another link, as a fork of the machine has one: its connections are broken, its names stay.
func TestFork(t *testing.T) {
	m := newMachine(t)
	first := m.plug(Options{Dial: echo(t)})
	a := m.look("example.org.")
	m.look("other.example.")
	c, err := m.dial(a, 80)
	if err != nil {
		t.Fatal(err)
	}
	second := m.plug(Options{Dial: echo(t), Names: first.Names()})
	c.SetDeadline(time.Now().Add(time.Minute))
	for err == nil {
		_, err = c.Write([]byte("still there?"))
		time.Sleep(time.Millisecond)
	}
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		t.Error("the connection hangs")
	}
	c.Close()
	c, err = m.dial(a, 80)
	if err != nil {
		t.Fatal(err)
	}
	if got := talk(t, c, ""); got != "example.org:80\nend" {
		t.Errorf("the name's address leads to %q", got)
	}
	if got := m.look("third.example."); got == a || len(second.Names()) != 3 || len(first.Names()) != 2 {
		t.Errorf("names: %v, %v, %v", got, first.Names(), second.Names())
	}
}

func TestAnswers(t *testing.T) {
	n := newNames(nil)
	for _, c := range []struct {
		name string
		kind dnsmessage.Type
		code dnsmessage.RCode
		n    int
	}{
		{"example.org.", dnsmessage.TypeA, 0, 1},
		{"example.org.", dnsmessage.TypeAAAA, 0, 0},
		{"example.org.", dnsmessage.TypeMX, 0, 0},
		{"_x-1.example.org.", dnsmessage.TypeA, 0, 1},
		{".", dnsmessage.TypeA, dnsmessage.RCodeNameError, 0},
		{"a b.example.", dnsmessage.TypeA, dnsmessage.RCodeNameError, 0},
		{"-a.example.", dnsmessage.TypeA, dnsmessage.RCodeNameError, 0},
		{"1.2.0.192.in-addr.arpa.", dnsmessage.TypePTR, dnsmessage.RCodeNameError, 0},
	} {
		a := unpack(t, n.answer(question(t, c.name, c.kind)))
		if a.RCode != c.code || len(a.Answers) != c.n || a.ID != 7 || !a.Response || len(a.Questions) != 1 {
			t.Errorf("%s %v: %v", c.name, c.kind, a)
		}
	}
	for _, bad := range [][]byte{nil, {1}, bytes.Repeat([]byte{0xff}, 100), n.answer(question(t, "example.org.", dnsmessage.TypeA))} {
		if a := n.answer(bad); a != nil {
			t.Errorf("%x was answered: %x", bad, a)
		}
	}
}

// TestNamesBound asks for more names than have room.
func TestNamesBound(t *testing.T) {
	n := newNames(nil)
	kept := n.addr("kept.example")
	for i := range 2 * MaxNames {
		n.addr(fmt.Sprintf("n%d.example", i))
		if i%1000 == 0 {
			if got, ok := n.of(kept); !ok || got != "kept.example" {
				t.Fatalf("after %d names, one that is used is %q", i, got)
			}
		}
	}
	if len(n.addrs) > MaxNames || len(n.addrs) != len(n.hosts) {
		t.Errorf("%d names, %d addresses", len(n.addrs), len(n.hosts))
	}
	again := newNames([]Name{{"a.example", kept}, {"b.example", kept}, {"a.example", Gateway}, {"no name", netip.MustParseAddr("198.18.0.9")}, {"c.example", Gateway}})
	if len(again.addrs) != 1 || len(again.hosts) != 1 {
		t.Errorf("of a list that isn't right %d names were taken", len(again.addrs))
	}
}

// TestClose closes a link with connections, one of which is being made: nothing of it goes on.
func TestClose(t *testing.T) {
	m := newMachine(t)
	dialling := make(chan struct{}, 1)
	to := echo(t)
	l := m.plug(Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if strings.HasSuffix(addr, ":81") {
			dialling <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return to(ctx, network, addr)
	}})
	c, err := m.dial(netip.MustParseAddr("192.0.2.7"), 80)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go m.dial(netip.MustParseAddr("192.0.2.7"), 81)
	<-dialling
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
}

// FuzzFrames gives a link frames that nobody would send.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x02\x00\x64\x40\x00\x01\x02\x00\x00\x00\x00\x02\x08\x00\x45\x00\x00\x14\x00\x00\x00\x00\x40\x06\x00\x00\x64\x40\x00\x02\xc0\x00\x02\x07"))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x02\x08\x06\x00\x01\x08\x00\x06\x04\x00\x01\x02\x00\x00\x00\x00\x02\x64\x40\x00\x02\x00\x00\x00\x00\x00\x00\x64\x40\x00\x01"))
	f.Fuzz(func(t *testing.T, frame []byte) {
		newMachine(t).plug(Options{}).inject(frame)
	})
}

// FuzzAnswer asks what isn't a question.
func FuzzAnswer(f *testing.F) {
	f.Add(question(f, "example.org.", dnsmessage.TypeA))
	f.Fuzz(func(t *testing.T, b []byte) {
		if a := newNames(nil).answer(b); a != nil {
			unpack(t, a)
		}
	})
}

// BenchmarkThroughput is what goes through a link, both stacks in this process.
func BenchmarkThroughput(b *testing.B) {
	m := newMachine(b)
	m.plug(Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		near, far := net.Pipe()
		go io.Copy(io.Discard, far)
		return near, nil
	}})
	c, err := m.dial(netip.MustParseAddr("192.0.2.7"), 80)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	block := make([]byte, 64<<10)
	b.SetBytes(int64(len(block)))
	for b.Loop() {
		if _, err := c.Write(block); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLink is what a link costs that nobody uses.
func BenchmarkLink(b *testing.B) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	m := newMachine(b)
	n := 0
	for b.Loop() {
		m.plug(Options{})
		n++
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc+after.StackInuse-before.HeapAlloc-before.StackInuse)/float64(n), "B/link")
}
