// Package egress is network policy, enforced outside of the sandbox.
//
// A Policy is a list of rules, each naming destinations that are allowed; what no rule names is denied. A rule is a host
// and perhaps a port: "example.org", "example.org:443", "*.example.org" (any depth below, not the name itself), an
// address or a network in CIDR notation, with an IPv6 one that has a port in brackets ("[2001:db8::/32]:443"), or "*" for
// any public host. Without a port, every port is allowed. A rule after "!" excepts what it names from "*"; what another rule names is
// allowed in spite of it.
//
// Names are resolved outside, by the policy's Dialer, which connects to the very addresses that it checked: a name that
// changes its mind in between (DNS rebinding) gains nothing. An address that isn't public (private, loopback, link-local,
// multicast, the clouds' metadata services and so on) is refused, whatever name leads there, unless a rule names the
// address itself.
package egress

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"agentrun.dev/errs"
)

// maxRules bounds a policy.
const maxRules = 10_000

// rule is one parsed rule. Exactly one of prefix, name and any is set.
type rule struct {
	text   string
	prefix netip.Prefix
	name   string // lower case, ASCII
	below  bool   // "*." before the name
	any    bool   // "*"
	port   uint16 // 0: every one
}

// Policy decides where a sandbox may connect. The zero value and nil deny everything. It doesn't change, so all methods
// may be called concurrently.
type Policy struct {
	rules  []rule
	except []rule // of those that begin with "!"
	texts  []string
}

// Parse reads rules. errs.Invalid says which one is wrong.
func Parse(rules []string) (*Policy, error) {
	if len(rules) > maxRules {
		return nil, errs.Msg(errs.Limit, "network policy", "", "more than "+strconv.Itoa(maxRules)+" rules")
	}
	p := &Policy{rules: make([]rule, 0, len(rules))}
	for _, text := range rules {
		text = strings.TrimSpace(text)
		what, except := strings.CutPrefix(text, "!")
		r, err := parseRule(what)
		if err != nil {
			return nil, err
		}
		if except {
			p.except = append(p.except, r)
		} else {
			p.rules = append(p.rules, r)
		}
		p.texts = append(p.texts, text)
	}
	return p, nil
}

// Rules returns the rules as they were given.
func (p *Policy) Rules() []string {
	if p == nil {
		return nil
	}
	return slices.Clone(p.texts)
}

func invalid(text, why string) error {
	return errs.Msg(errs.Invalid, "network rule", strconv.Quote(text), why)
}

func parseRule(text string) (r rule, err error) {
	r.text = text
	host, port, ok := splitPort(text)
	if !ok {
		return r, invalid(text, "want HOST, HOST:PORT, *.HOST, ADDRESS or CIDR")
	}
	if port != "" && port != "*" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return r, invalid(text, "the port isn't one from 1 to 65535")
		}
		r.port = uint16(n)
	}
	if host == "*" {
		r.any = true
		return r, nil
	}
	if a, err := netip.ParseAddr(host); err == nil {
		if a.Zone() != "" {
			return r, invalid(text, "an address with a zone")
		}
		a = a.Unmap()
		r.prefix = netip.PrefixFrom(a, a.BitLen())
		return r, nil
	}
	if strings.Contains(host, "/") {
		n, err := netip.ParsePrefix(host)
		if err != nil || n.Addr().Is4In6() {
			return r, invalid(text, "not a network in CIDR notation")
		}
		r.prefix = n.Masked()
		return r, nil
	}
	if rest, wild := strings.CutPrefix(host, "*."); wild {
		r.below, host = true, rest
	}
	if r.name, ok = canonical(host); !ok {
		return r, invalid(text, "not a host's name")
	}
	return r, nil
}

// splitPort cuts a port off; "" is none. An IPv6 address needs brackets only if a port follows.
func splitPort(s string) (host, port string, ok bool) {
	if rest, found := strings.CutPrefix(s, "["); found {
		host, port, ok = strings.Cut(rest, "]")
		if !ok || port == "" {
			return host, "", ok
		}
		port, ok = strings.CutPrefix(port, ":")
		return host, port, ok && port != ""
	}
	if strings.Count(s, ":") != 1 {
		return s, "", s != ""
	}
	host, port, _ = strings.Cut(s, ":")
	return host, port, host != "" && port != ""
}

// canonical returns a name in lower case and ASCII without the final dot. Names that look like an address in an unusual
// notation (0x7f.1, 2130706433), which some resolvers take for one, are none.
func canonical(name string) (string, bool) {
	name = strings.TrimSuffix(name, ".")
	ascii, err := idna.Lookup.ToASCII(name)
	if err != nil {
		// Underscores and such occur in real names; what is ASCII already may stay.
		ascii = strings.ToLower(name)
	}
	if ascii == "" || len(ascii) > 253 {
		return "", false
	}
	labels := strings.Split(ascii, ".")
	for _, l := range labels {
		if l == "" || len(l) > 63 || strings.IndexFunc(l, func(c rune) bool {
			return !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_')
		}) >= 0 {
			return "", false
		}
	}
	last := labels[len(labels)-1]
	if last[0] >= '0' && last[0] <= '9' {
		return "", false
	}
	return ascii, true
}

// fits reports whether a rule names a host, on a port. The addresses behind it are another matter.
func (r *rule) fits(name string, port uint16) bool {
	switch {
	case r.port != 0 && r.port != port, r.name == "":
		return false
	case r.below:
		return len(name) > len(r.name)+1 && strings.HasSuffix(name, r.name) && name[len(name)-len(r.name)-1] == '.'
	}
	return r.name == name
}

// has reports whether a rule names an address, or a network that it is in, on a port.
func (r *rule) has(a netip.Addr, port uint16) bool {
	return r.prefix.IsValid() && (r.port == 0 || r.port == port) && r.prefix.Contains(a)
}

// namesHost reports whether a rule names a host.
func (p *Policy) namesHost(name string, port uint16) bool {
	return p != nil && slices.ContainsFunc(p.rules, func(r rule) bool { return r.fits(name, port) })
}

// allowsName reports whether a host is let through, on a port. The addresses behind it are checked apart.
func (p *Policy) allowsName(name string, port uint16) bool {
	return p.namesHost(name, port) || p.allowsAny(port) && !slices.ContainsFunc(p.except, func(r rule) bool { return r.fits(name, port) || r.all(port) })
}

// namesAddr reports whether a rule names an address itself, or a network that it is in.
func (p *Policy) namesAddr(a netip.Addr, port uint16) bool {
	return p != nil && slices.ContainsFunc(p.rules, func(r rule) bool { return r.has(a, port) })
}

// allowsAddr reports whether a connection to an address that was given as such is allowed.
func (p *Policy) allowsAddr(a netip.Addr, port uint16) bool {
	return p.namesAddr(a, port) || Public(a) && p.allowsAny(port) && !p.excepts(a, port)
}

// leads reports whether an address that a host which is let through has may be connected to.
func (p *Policy) leads(name string, a netip.Addr, port uint16) bool {
	return p.namesAddr(a, port) || Public(a) && (p.namesHost(name, port) || !p.excepts(a, port))
}

// excepts reports whether an address isn't one of those of "*".
func (p *Policy) excepts(a netip.Addr, port uint16) bool {
	return slices.ContainsFunc(p.except, func(r rule) bool { return r.has(a, port) || r.all(port) })
}

// all reports whether a rule is "*", on a port.
func (r *rule) all(port uint16) bool { return r.any && (r.port == 0 || r.port == port) }

func (p *Policy) allowsAny(port uint16) bool {
	return p != nil && slices.ContainsFunc(p.rules, func(r rule) bool { return r.all(port) })
}

// special are the networks that aren't public beside those that netip knows of.
var special = func() (list []netip.Prefix) {
	for _, s := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
		"240.0.0.0/4", "168.63.129.16/32", // the last is a cloud's metadata and DNS service on a public address
		"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fec0::/10",
	} {
		list = append(list, netip.MustParsePrefix(s))
	}
	return list
}()

// Public reports whether an address is one of the public Internet. Those that embed an IPv4 address (mapped, NAT64, 6to4,
// Teredo) aren't.
func Public(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsValid() || a.Zone() != "" || a.IsUnspecified() || a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsMulticast() {
		return false
	}
	for _, n := range special {
		if n.Contains(a) {
			return false
		}
	}
	return true
}
