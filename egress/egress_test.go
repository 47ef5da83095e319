package egress

import (
	"context"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"agentrun.dev/errs"
)

// answers is a resolver that gives a name's lists in turn, the last one for ever.
type answers struct {
	names  map[string][][]string
	lookup []string
}

func (a *answers) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	a.lookup = append(a.lookup, host)
	lists := a.names[host]
	if len(lists) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	if len(lists) > 1 {
		a.names[host] = lists[1:]
	}
	var found []netip.Addr
	for _, s := range lists[0] {
		found = append(found, netip.MustParseAddr(s))
	}
	return found, nil
}

func policy(t testing.TB, rules ...string) *Policy {
	t.Helper()
	p, err := Parse(rules)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestDecisions connects under rules; the connection itself is recorded, not made.
func TestDecisions(t *testing.T) {
	names := map[string][][]string{
		"example.org": {{"93.184.216.34"}}, "a.example.org": {{"93.184.216.35", "2606:2800::1"}}, "evil.example.org": {{"169.254.169.254"}},
		"mixed.example.org": {{"10.0.0.1", "93.184.216.36"}}, "mapped.example.org": {{"::ffff:127.0.0.1"}}, "nat64.example.org": {{"64:ff9b::7f00:1"}},
		"xn--bcher-kva.example": {{"93.184.216.40"}},
	}
	for _, c := range []struct {
		rules, addr string
		want        string // address connected to, or "denied RULE", or a kind
	}{
		{"", "example.org:80", "denied example.org:80"},
		{"example.org", "example.org:80", "93.184.216.34:80"},
		{"example.org", "EXAMPLE.org.:443", "93.184.216.34:443"},
		{"example.org:443", "example.org:80", "denied example.org:80"},
		{"example.org:443", "example.org:443", "93.184.216.34:443"},
		{"example.org", "a.example.org:80", "denied a.example.org:80"},
		{"*.example.org", "a.example.org:80", "93.184.216.35:80"},
		{"*.example.org", "example.org:80", "denied example.org:80"},
		{"*.example.org", "badexample.org:80", "denied badexample.org:80"},
		{"*.example.org", "evil.example.org:80", "denied 169.254.169.254:80"},
		{"*.example.org 169.254.169.254:80", "evil.example.org:80", "169.254.169.254:80"},
		{"*.example.org", "mixed.example.org:80", "93.184.216.36:80"},
		{"*.example.org", "mapped.example.org:80", "denied 127.0.0.1:80"},
		{"*.example.org", "nat64.example.org:80", "denied [64:ff9b::7f00:1]:80"},
		{"*", "example.org:80", "93.184.216.34:80"},
		{"*", "127.0.0.1:80", "denied 127.0.0.1:80"},
		{"*", "8.8.8.8:53", "8.8.8.8:53"},
		{"*:443", "8.8.8.8:53", "denied 8.8.8.8:53"},
		{"example.org", "93.184.216.34:80", "denied 93.184.216.34:80"},
		{"10.0.0.0/8", "10.1.2.3:80", "10.1.2.3:80"},
		{"10.0.0.0/8:81", "10.1.2.3:80", "denied 10.1.2.3:80"},
		{"[2001:db8::/32]:443", "[2001:db8::1]:443", "[2001:db8::1]:443"},
		{"2001:db8::1", "[2001:db8::1]:443", "[2001:db8::1]:443"},
		{"127.0.0.1", "[::ffff:127.0.0.1]:1", "127.0.0.1:1"},
		{"*", "0x7f.1:80", "invalid"},
		{"*", "2130706433:80", "invalid"},
		{"*", "0177.0.0.1:80", "invalid"},
		{"*", "nope.test:80", "not found"},
		{"*", "example.org", "invalid"},
		{"*", "example.org:0", "invalid"},
		{"*", "exa mple.org:80", "invalid"},
		{"bücher.example", "bücher.example:80", "93.184.216.40:80"},
	} {
		var got string
		d := New(policy(t, strings.Fields(c.rules)...), Options{Resolver: &answers{names: names},
			Connect: func(_ context.Context, _ string, to netip.AddrPort) (net.Conn, error) {
				got = to.String()
				a, b := net.Pipe()
				b.Close()
				return a, nil
			}})
		conn, err := d.Dial(context.Background(), "tcp", c.addr)
		switch {
		case err == nil:
			conn.Close()
		case errs.Is(err, errs.Denied):
			_, got, _ = strings.Cut(errs.HintOf(err), "\"")
			got = "denied " + strings.TrimSuffix(got, "\"")
		default:
			got = errs.KindOf(err).String()
		}
		if got != c.want {
			t.Errorf("rules %q, connect %q: %s, want %s", c.rules, c.addr, got, c.want)
		}
	}
}

func TestNoLookupOfWhatIsDenied(t *testing.T) {
	r := &answers{}
	d := New(policy(t, "example.org"), Options{Resolver: r})
	d.Dial(context.Background(), "tcp", "c2VjcmV0.evil.test:80")
	if len(r.lookup) != 0 {
		t.Errorf("looked up %q", r.lookup)
	}
	if d.Usage().RefusedAttempts != 1 {
		t.Errorf("%+v", d.Usage())
	}
}

// TestRebinding has a name that is public when it is asked first and loopback afterwards: what is connected to is always
// what was checked.
func TestRebinding(t *testing.T) {
	r := &answers{names: map[string][][]string{"rebind.test": {{"93.184.216.34"}, {"127.0.0.1"}}}}
	var to []string
	d := New(policy(t, "rebind.test"), Options{Resolver: r, Connect: func(_ context.Context, _ string, a netip.AddrPort) (net.Conn, error) {
		to = append(to, a.String())
		return nil, io.ErrUnexpectedEOF
	}})
	_, err1 := d.Dial(context.Background(), "tcp", "rebind.test:80")
	_, err2 := d.Dial(context.Background(), "tcp", "rebind.test:80")
	if !slices.Equal(to, []string{"93.184.216.34:80"}) || !errs.Is(err1, errs.Unavailable) || !errs.Is(err2, errs.Denied) || len(r.lookup) != 2 {
		t.Errorf("connected to %v; %v; %v", to, err1, err2)
	}
}

func TestConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, err = io.Copy(c, c)
			c.Close()
		}
		done <- err
	}()
	defer func() {
		l.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	d := New(nil, Options{})
	if _, err := d.Dial(context.Background(), "tcp", l.Addr().String()); !errs.Is(err, errs.Denied) {
		t.Fatalf("nil policy: %v", err)
	}
	d.SetPolicy(policy(t, l.Addr().String()))
	if _, err := d.Dial(context.Background(), "udp", l.Addr().String()); !errs.Is(err, errs.Unsupported) {
		t.Errorf("udp: %v", err)
	}
	c, err := d.Dial(context.Background(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	c.(interface{ CloseWrite() error }).CloseWrite()
	b, err := io.ReadAll(c)
	if string(b) != "hello" || err != nil {
		t.Errorf("%q %v", b, err)
	}
	if u := d.Usage(); u != (Usage{5, 5, 1, 1, 1}) {
		t.Errorf("%+v", u)
	}
	c.Close()
	c.Close()
	if u := d.Usage(); u.Open != 0 {
		t.Errorf("%+v", u)
	}
}

func TestParse(t *testing.T) {
	for _, bad := range []string{"", ":80", "host:", "host:0", "host:65536", "host:http", "a..b", "*.*.b", "a*.b", "10.0.0.0/33", "[::1", "fe80::1%eth0", "1.2.3", "http://x", "::ffff:1.2.3.4/96"} {
		if _, err := Parse([]string{bad}); !errs.Is(err, errs.Invalid) {
			t.Errorf("Parse(%q): %v", bad, err)
		}
	}
	if got := policy(t, " example.org ", "*:*").Rules(); !slices.Equal(got, []string{"example.org", "*:*"}) {
		t.Errorf("%q", got)
	}
	if _, err := Parse(make([]string, maxRules+1)); !errs.Is(err, errs.Limit) {
		t.Error(err)
	}
}

func TestPublic(t *testing.T) {
	for _, s := range []string{"0.0.0.0", "10.1.1.1", "100.64.0.1", "127.0.0.1", "169.254.169.254", "172.16.0.1", "192.168.0.1", "198.18.0.1", "224.0.0.1",
		"255.255.255.255", "168.63.129.16", "::", "::1", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:7f00:1::", "2001:0:1::"} {
		if Public(netip.MustParseAddr(s)) {
			t.Errorf("%s is taken for public", s)
		}
	}
	for _, s := range []string{"1.1.1.1", "93.184.216.34", "2606:2800::1", "::ffff:8.8.8.8"} {
		if !Public(netip.MustParseAddr(s)) {
			t.Errorf("%s isn't taken for public", s)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"example.org:443", "*.x", "10.0.0.0/8:1", "[2001:db8::/32]:443", "*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := Parse([]string{s})
		if err == nil && s != "" && !strings.Contains(s, "127") && !strings.Contains(s, "/") && p.allowsAddr(netip.MustParseAddr("127.0.0.1"), 1) {
			t.Errorf("%q allows loopback", s)
		}
	})
}

// TestLimit: when the bytes are used up, connections and attempts end with a clear error.
func TestLimit(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go io.Copy(c, c)
		}
	}()
	p, err := Parse([]string{l.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	d := New(p, Options{})
	d.SetLimit(10)
	c, err := d.Dial(context.Background(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b := make([]byte, 5)
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, b); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(b); !errs.Is(err, errs.Limit) {
		t.Errorf("write: %v", err)
	}
	if _, err := c.Read(b); !errs.Is(err, errs.Limit) {
		t.Errorf("read: %v", err)
	}
	if _, err := d.Dial(context.Background(), "tcp", l.Addr().String()); !errs.Is(err, errs.Limit) {
		t.Errorf("dial: %v", err)
	}
	d.SetLimit(5)
	if _, err := c.Write(b); err != nil {
		t.Errorf("another limit: %v", err)
	}
}
