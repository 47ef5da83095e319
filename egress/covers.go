package egress

import (
	"net/netip"
	"slices"
	"strings"
)

// Covers reports whether everything that other allows is allowed by p too; if not, it names the first rule of other that isn't
// covered by one rule of p. What only several rules together would cover counts as not covered.
func (p *Policy) Covers(other *Policy) (rule string, ok bool) {
	if other == nil {
		return "", true
	}
	for i := range other.rules {
		if !p.covers(&other.rules[i], other) {
			return other.rules[i].text, false
		}
	}
	return "", true
}

func (p *Policy) covers(r *rule, of *Policy) bool {
	if p == nil {
		return false
	}
	for i := range p.rules {
		if p.rules[i].covers(r) && (!p.rules[i].any || p.free(r, of)) {
			return true
		}
	}
	return false
}

// free reports whether a rule of another policy has nothing of what is excepted from "*" here: that policy excepts as much, or it is a host
// or address that no exception can mean.
func (p *Policy) free(r *rule, of *Policy) bool {
	for i := range p.except {
		x := &p.except[i]
		switch {
		case r.any:
			if !slices.ContainsFunc(of.except, func(o rule) bool { return o.covers(x) || o.any && o.port == 0 }) {
				return false
			}
		case r.name != "":
			if x.name == "" || r.name == x.name || strings.HasSuffix(r.name, "."+x.name) || strings.HasSuffix(x.name, "."+r.name) {
				return false
			}
		case x.any || x.prefix.IsValid() && x.prefix.Overlaps(r.prefix):
			return false
		}
	}
	return true
}

// covers reports whether a rule allows all that another does. "*" is public hosts only, so it covers names, whose addresses
// are checked for that, and networks of public addresses only.
func (r *rule) covers(o *rule) bool {
	if r.port != 0 && r.port != o.port {
		return false
	}
	switch {
	case o.any:
		return r.any
	case o.name != "":
		if r.any || r.name == o.name && r.below == o.below {
			return true
		}
		return r.below && strings.HasSuffix(o.name, "."+r.name)
	case r.prefix.IsValid():
		return r.prefix.Bits() <= o.prefix.Bits() && r.prefix.Contains(o.prefix.Addr())
	case r.any:
		return public(o.prefix)
	}
	return false
}

// public reports whether all addresses of a network are public: it lies apart from all that aren't.
func public(n netip.Prefix) bool {
	if !Public(n.Addr()) {
		return false
	}
	for _, list := range [][]netip.Prefix{special, local} {
		for _, p := range list {
			if p.Overlaps(n) {
				return false
			}
		}
	}
	return true
}

// local are the networks that aren't public of which netip knows for single addresses.
var local = func() (list []netip.Prefix) {
	for _, s := range []string{"0.0.0.0/8", "10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", "224.0.0.0/4", "fc00::/7", "fe80::/10", "ff00::/8"} {
		list = append(list, netip.MustParsePrefix(s))
	}
	return list
}()
