package uplink

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"

	"agentrun.dev/errs"
)

const (
	namePort = 53
	nameTTL  = 60   // seconds for which an address may be remembered
	maxQuery = 4096 // bytes of a question
)

// Name is a name that the guest has asked for, and the address that it was told.
type Name struct {
	Host string     `json:"host"` // lower case, without a dot at the end
	Addr netip.Addr `json:"addr"`
}

// names are the addresses that were given out.
type names struct {
	mu    sync.Mutex
	addrs map[string]*given
	hosts map[netip.Addr]*given
	next  uint32
	clock uint64
}

type given struct {
	Name
	used uint64
}

func newNames(list []Name) *names {
	n := &names{addrs: make(map[string]*given), hosts: make(map[netip.Addr]*given)}
	for _, x := range list[:min(len(list), MaxNames)] {
		// The list may come from a file.
		if _, twice := n.addrs[x.Host]; twice || !Names.Contains(x.Addr) || n.hosts[x.Addr] != nil || !valid(x.Host) {
			continue
		}
		n.put(x)
	}
	return n
}

func (n *names) put(x Name) {
	n.clock++
	g := &given{x, n.clock}
	n.addrs[x.Host], n.hosts[x.Addr] = g, g
}

// of returns the name that an address was given to.
func (n *names) of(a netip.Addr) (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	g, ok := n.hosts[a]
	if !ok {
		return "", false
	}
	n.clock++
	g.used = n.clock
	return g.Host, true
}

// addr gives a name an address, the one that it had if it has.
func (n *names) addr(host string) netip.Addr {
	n.mu.Lock()
	defer n.mu.Unlock()
	if g, ok := n.addrs[host]; ok {
		n.clock++
		g.used = n.clock
		return g.Addr
	}
	if len(n.addrs) >= MaxNames {
		n.drop()
	}
	first := Names.Addr().As4()
	base, size := binary.BigEndian.Uint32(first[:]), uint32(1)<<(32-Names.Bits())
	for {
		n.next++
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], base+1+n.next%(size-2))
		if a := netip.AddrFrom4(b); n.hosts[a] == nil {
			n.put(Name{host, a})
			return a
		}
	}
}

// drop forgets the eighth that was used the longest ago.
func (n *names) drop() {
	all := n.sorted()
	for _, g := range all[:len(all)/8] {
		delete(n.addrs, g.Host)
		delete(n.hosts, g.Addr)
	}
}

func (n *names) sorted() []*given {
	all := make([]*given, 0, len(n.addrs))
	for _, g := range n.addrs {
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b *given) int {
		if a.used < b.used {
			return -1
		}
		return 1
	})
	return all
}

// Names are the names that have addresses, for links of forks of the machine.
func (l *Link) Names() []Name {
	l.names.mu.Lock()
	defer l.names.mu.Unlock()
	var out []Name
	for _, g := range l.names.sorted() {
		out = append(out, g.Name)
	}
	return out
}

// valid tells a name that a host can have from what else may be asked for.
func valid(host string) bool {
	if host == "" || len(host) > 253 {
		return false
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' ||
			strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}

// serveNames answers on the gateway's port for names.
func (l *Link) serveNames() error {
	at := tcpip.FullAddress{NIC: nic, Addr: tcpip.AddrFrom4(Gateway.As4()), Port: namePort}
	c, err := gonet.DialUDP(l.stack, &at, nil, ipv4.ProtocolNumber)
	if err != nil {
		return errs.New(errs.Other, "uplink", "names", err)
	}
	l.all.Go(func() {
		<-l.ctx.Done()
		c.Close()
	})
	l.all.Go(func() {
		b := make([]byte, maxQuery)
		for {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			if a := l.names.answer(b[:n]); a != nil {
				c.WriteTo(a, from)
			}
		}
	})
	return nil
}

// answerStream answers questions over TCP, each with its length before it (RFC 1035, section 4.2.2).
func (l *Link) answerStream(c net.Conn) {
	defer c.Close()
	b := make([]byte, 2+maxQuery)
	for {
		c.SetDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.ReadFull(c, b[:2]); err != nil {
			return
		}
		n := int(binary.BigEndian.Uint16(b))
		if n > maxQuery {
			return
		}
		if _, err := io.ReadFull(c, b[:n]); err != nil {
			return
		}
		a := l.names.answer(b[:n])
		if a == nil || l.ctx.Err() != nil {
			return
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(a))), a...)); err != nil {
			return
		}
	}
}

// answer answers a question, and nil to what isn't one: every name that a host can have has one address, of version 4.
func (n *names) answer(question []byte) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(question)
	if err != nil || h.Response {
		return nil
	}
	out := dnsmessage.Message{Header: dnsmessage.Header{ID: h.ID, Response: true, OpCode: h.OpCode, RecursionDesired: h.RecursionDesired, RecursionAvailable: true}}
	asked, err := p.AllQuestions()
	switch {
	case err != nil || len(asked) != 1:
		out.RCode = dnsmessage.RCodeFormatError
	case h.OpCode != 0:
		out.RCode = dnsmessage.RCodeNotImplemented
	default:
		out.Questions = asked
		n.resolve(asked[0], &out)
	}
	b, err := out.Pack()
	if err != nil {
		return nil
	}
	return b
}

func (n *names) resolve(q dnsmessage.Question, out *dnsmessage.Message) {
	host := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
	if q.Class != dnsmessage.ClassINET || !valid(host) || strings.HasSuffix(host, ".arpa") || host == "arpa" {
		out.RCode = dnsmessage.RCodeNameError
		return
	}
	if q.Type != dnsmessage.TypeA {
		return // the name is there, and has nothing of this kind
	}
	a := n.addr(host)
	out.Answers = []dnsmessage.Resource{{
		Header: dnsmessage.ResourceHeader{Name: q.Name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET, TTL: nameTTL},
		Body:   &dnsmessage.AResource{A: a.As4()},
	}}
}
