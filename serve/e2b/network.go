package e2b

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"

	"agentrun.dev/api"
	"agentrun.dev/egress"
	"agentrun.dev/errs"
)

// network is what a client says of a sandbox's connections, outwards and inwards.
type network struct {
	AllowOut           []string                     `json:"allowOut,omitempty"`
	DenyOut            []string                     `json:"denyOut,omitempty"`
	Rules              map[string][]json.RawMessage `json:"rules,omitempty"`
	AllowPublicTraffic *bool                        `json:"allowPublicTraffic,omitempty"`
	MaskRequestHost    string                       `json:"maskRequestHost,omitempty"`
	EgressProxy        json.RawMessage              `json:"egressProxy,omitempty"`
	HTTPSPorts         []int                        `json:"httpsPorts,omitempty"`
	Internet           *bool                        `json:"allow_internet_access,omitempty"` // of an update
}

// maxDestinations bounds each list of a network.
const maxDestinations = 500

// readNetwork reads and checks what a client says. What can't be enforced here is refused, not ignored.
func readNetwork(raw json.RawMessage) (*network, error) {
	const op = "read network"
	n := &network{}
	if !given(raw) {
		return n, nil
	}
	if err := json.Unmarshal(raw, n); err != nil {
		return nil, errs.Msg(errs.Invalid, op, "network", clip(err.Error()))
	}
	switch {
	case given(n.EgressProxy):
		return nil, errs.Msg(errs.Unsupported, op, "egressProxy", "this server tunnels nothing through a proxy")
	case n.MaskRequestHost != "":
		return nil, errs.Msg(errs.Unsupported, op, "maskRequestHost", "this server hands the host name on as it came")
	case len(n.HTTPSPorts) > 0:
		return nil, errs.Msg(errs.Unsupported, op, "httpsPorts", "this server speaks HTTP to the ports of sandboxes")
	case len(n.AllowOut) > maxDestinations || len(n.DenyOut) > maxDestinations:
		return nil, errs.Msg(errs.Limit, op, "allowOut, denyOut", "more than 500 destinations")
	}
	for host, rules := range n.Rules {
		for _, rule := range rules {
			var t struct {
				Transform json.RawMessage `json:"transform"`
			}
			if err := json.Unmarshal(rule, &t); err != nil {
				return nil, errs.Msg(errs.Invalid, op, "rules: "+clip(host), "want a list of objects")
			}
			if given(t.Transform) && string(t.Transform) != "{}" {
				return nil, errs.Msg(errs.Unsupported, op, "rules: "+clip(host), "this server doesn't change the requests that leave a sandbox")
			}
		}
	}
	for _, d := range n.DenyOut {
		if !isAddress(d) {
			return nil, errs.Msg(errs.Invalid, op, "denyOut: "+clip(d), "want an address or a network, such as 8.8.8.8 or 10.0.0.0/8")
		}
	}
	return n, nil
}

// isAddress reports whether a destination is an address or a network.
func isAddress(s string) bool {
	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}
	_, err := netip.ParsePrefix(s)
	return err == nil
}

// isAll reports whether a destination is everywhere.
func isAll(s string) bool {
	p, err := netip.ParsePrefix(s)
	return err == nil && p.Bits() == 0 || s == "*"
}

// kept is what is told of it later: all but whether the internet is allowed, which has its own place.
func (n *network) kept() (json.RawMessage, error) {
	c := *n
	c.Internet = nil
	b, err := json.Marshal(&c)
	if err != nil {
		return nil, errs.New(errs.Invalid, "read network", "", err)
	}
	return b, nil
}

// policy is what a sandbox may connect to: nil is all that its template lets it. As E2B has it, what allowOut names is allowed whatever
// denyOut says, and what neither names is allowed.
func (n *network) policy(internet *bool) *api.NetworkPolicy {
	deny := internet != nil && !*internet
	var allow, except []string
	for _, a := range n.AllowOut {
		if isAll(a) {
			a = "*"
		}
		allow = append(allow, strings.TrimSpace(a))
	}
	for _, d := range n.DenyOut {
		if isAll(d) {
			deny = true
		} else {
			except = append(except, d)
		}
	}
	switch {
	case deny:
		return &api.NetworkPolicy{Allow: allow}
	case len(except) > 0:
		return &api.NetworkPolicy{Egress: "allow", Allow: allow, Deny: except}
	}
	return nil
}

// narrow leaves out addresses that what a sandbox is made of can't reach: private ones, mostly. To name them is no fault, they stay out of
// reach. A name that it mayn't connect to is the service's to refuse.
func narrow(p *api.NetworkPolicy, of api.NetworkPolicy) {
	if p == nil {
		return
	}
	rules := of.Allow
	if of.Egress == "allow" {
		rules = append([]string{"*"}, rules...)
	}
	for _, d := range of.Deny {
		rules = append(rules[:len(rules):len(rules)], "!"+d)
	}
	most, err := egress.Parse(rules)
	if err != nil {
		return
	}
	p.Allow = slices.DeleteFunc(p.Allow, func(a string) bool {
		one, err := egress.Parse([]string{a})
		if err != nil || !isAddress(a) {
			return false
		}
		_, covered := most.Covers(one)
		return !covered
	})
}
