package egress

import (
	"context"
	"io"
	"net"
	"net/netip"
	"testing"

	"agentrun.dev/errs"
)

// TestExcept connects under rules that except hosts and networks from "*".
func TestExcept(t *testing.T) {
	names := map[string][][]string{"good.org": {{"93.184.216.34"}}, "bad.org": {{"93.184.216.34"}}, "a.bad.org": {{"93.184.216.35"}}, "moved.org": {{"8.8.8.8"}}, "both.org": {{"8.8.4.4", "1.1.1.1"}}}
	rules := []string{"*", "!bad.org", "!*.bad.org:443", "!8.8.0.0/16", "!93.184.216.99:80", "dns.bad.org", "8.8.4.4:53"}
	for addr, want := range map[string]string{
		"good.org:443": "93.184.216.34", "bad.org:443": "", "a.bad.org:443": "", "a.bad.org:80": "93.184.216.35", "moved.org:80": "", "8.8.8.8:53": "", "8.8.4.4:53": "8.8.4.4",
		"8.8.4.4:443": "", "both.org:443": "1.1.1.1", "both.org:53": "8.8.4.4", "93.184.216.99:80": "", "93.184.216.99:443": "93.184.216.99", "10.0.0.1:80": "",
	} {
		got := ""
		d := New(policy(t, rules...), Options{Resolver: &answers{names: names}, Connect: func(_ context.Context, _ string, to netip.AddrPort) (net.Conn, error) {
			got = to.Addr().String()
			a, b := net.Pipe()
			b.Close()
			return a, nil
		}})
		_, err := d.Dial(context.Background(), "tcp", addr)
		if got != want || (want == "") != errs.Is(err, errs.Denied) {
			t.Errorf("%s: connected to %q, %v; want %q", addr, got, err, want)
		}
	}
	if _, err := New(policy(t, "*", "!*", "good.org"), Options{Resolver: &answers{names: names}}).Dial(context.Background(), "tcp", "1.1.1.1:80"); !errs.Is(err, errs.Denied) {
		t.Errorf("all excepted: %v", err)
	}
}

// TestCut: a policy that is replaced closes the connections that it doesn't allow, and no others.
func TestCut(t *testing.T) {
	names := map[string][][]string{"a.org": {{"93.184.216.34"}}, "b.org": {{"93.184.216.34"}}}
	d := New(policy(t, "*"), Options{Resolver: &answers{names: names}, Connect: func(context.Context, string, netip.AddrPort) (net.Conn, error) {
		a, b := net.Pipe()
		go io.Copy(b, b)
		return a, nil
	}})
	conns := map[string]net.Conn{}
	for _, addr := range []string{"a.org:80", "b.org:80", "93.184.216.34:80"} {
		c, err := d.Dial(context.Background(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		conns[addr] = c
	}
	d.SetPolicy(policy(t, "*", "!b.org", "!93.184.216.0/24", "a.org"))
	for addr, c := range conns {
		_, err := c.Write([]byte("x"))
		if open := addr == "a.org:80"; open != (err == nil) {
			t.Errorf("%s: %v", addr, err)
		}
	}
	if u := d.Usage(); u.Open != 1 || u.Connections != 3 {
		t.Errorf("%+v", u)
	}
	conns["a.org:80"].Close()
	if len(d.open) != 0 {
		t.Errorf("%d are still known", len(d.open))
	}
}

func TestCoversExcept(t *testing.T) {
	for _, c := range []struct {
		parent, child []string
		ok            bool
	}{
		{[]string{"*", "!bad.org"}, []string{"*"}, false},
		{[]string{"*", "!bad.org"}, []string{"*", "!bad.org", "!more.org"}, true},
		{[]string{"*", "!bad.org"}, []string{"*", "!*.org"}, true},
		{[]string{"*", "!bad.org"}, []string{"*", "!*.bad.org"}, false},
		{[]string{"*", "!bad.org:443"}, []string{"*", "!bad.org"}, true},
		{[]string{"*", "!bad.org"}, []string{"*", "!bad.org:443"}, false},
		{[]string{"*", "!8.8.8.8"}, []string{"*", "!8.8.0.0/16"}, true},
		{[]string{"*", "!8.8.0.0/16"}, []string{"*", "!8.8.8.8"}, false},
		{[]string{"*", "!bad.org"}, []string{"*", "!bad.org", "bad.org"}, false},
		{[]string{"*", "!bad.org"}, []string{"good.org"}, true},
		{[]string{"*", "!*.bad.org"}, []string{"a.bad.org"}, false},
		{[]string{"*", "!8.8.8.8"}, []string{"good.org"}, false}, // which may lead there
		{[]string{"*", "!8.8.8.8"}, []string{"1.1.1.1"}, true},
		{[]string{"*", "!8.8.8.8"}, []string{"8.8.8.8"}, false},
		{[]string{"*", "!8.8.8.8", "good.org"}, []string{"good.org"}, true},
		{[]string{"*", "!x.org"}, []string{"*", "!*"}, true},
		{[]string{"*"}, []string{"*", "!x.org"}, true},
	} {
		if rule, ok := policy(t, c.parent...).Covers(policy(t, c.child...)); ok != c.ok {
			t.Errorf("%v covers %v: %v (%s), want %v", c.parent, c.child, ok, rule, c.ok)
		}
	}
}
