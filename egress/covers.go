package egress

import "strings"

// Covers reports whether everything that other allows is allowed by p too; if not, it names the first rule of other that isn't
// covered by one rule of p. What only several rules together would cover counts as not covered.
func (p *Policy) Covers(other *Policy) (rule string, ok bool) {
	if other == nil {
		return "", true
	}
	for i := range other.rules {
		if !p.covers(&other.rules[i]) {
			return other.rules[i].text, false
		}
	}
	return "", true
}

func (p *Policy) covers(r *rule) bool {
	if p == nil {
		return false
	}
	for i := range p.rules {
		if p.rules[i].covers(r) {
			return true
		}
	}
	return false
}

// covers reports whether a rule allows all that another does. "*" is public hosts only, so it covers names, whose addresses
// are checked for that, and networks that lie in public space with both ends.
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
		return o.prefix.IsSingleIP() && Public(o.prefix.Addr())
	}
	return false
}
