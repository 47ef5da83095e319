package access

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"agentrun.dev/api"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

// RootPrincipal is the name of the built-in administrator, as whom root keys act. It can't be changed, disabled or deleted.
const RootPrincipal = "root"

// Limits on principals; exceeding one is an errs.TooLarge or errs.Limit.
const (
	MaxTeams = 32  // teams of one principal
	MaxTags  = 32  // tags of one principal
	MaxTag   = 255 // bytes in the value of a tag; its name is a label of 1 to 63 bytes
	MaxDepth = 16  // principals from one to the last that it acts for, both included
)

const principalPrefix = "a/p/"

// rank orders the roles: each may do what those below it may.
type rank uint8

const (
	noRole rank = iota
	viewer
	user
	operator
	admin
)

func rankOf(role string) rank {
	switch role {
	case api.RoleViewer:
		return viewer
	case api.RoleUser:
		return user
	case api.RoleOperator:
		return operator
	case api.RoleAdmin:
		return admin
	}
	return noRole
}

func (r rank) String() string {
	return [...]string{"nobody", api.RoleViewer, api.RoleUser, api.RoleOperator, api.RoleAdmin}[r]
}

func rootPrincipal() *api.Principal {
	return &api.Principal{Name: RootPrincipal, Kind: "service", Role: api.RoleAdmin}
}

// ValidLabel reports whether a name is a DNS label: 1 to 63 of a–z, 0–9 and '-', which neither begins nor ends it.
func ValidLabel(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return s != "" && len(s) <= 63 && s[0] != '-' && s[len(s)-1] != '-'
}

// Principal returns a principal by its name, or errs.NotFound. Treat it as read-only.
func (k *Keys) Principal(ctx context.Context, name string) (*api.Principal, error) {
	if name == RootPrincipal {
		return rootPrincipal(), nil
	}
	if !ValidLabel(name) {
		return nil, noPrincipal("")
	}
	k.mu.RLock()
	p, known := k.people[name]
	change := k.change
	k.mu.RUnlock()
	if !known {
		var err error
		if p, err = k.loadPrincipal(ctx, name); err != nil && !errs.Is(err, errs.NotFound) {
			return nil, err
		}
		k.mu.Lock()
		if k.change == change {
			if len(k.people) >= maxCached {
				clear(k.people)
			}
			k.people[name] = p
		}
		k.mu.Unlock()
	}
	if p == nil {
		return nil, noPrincipal(name)
	}
	return p, nil
}

func noPrincipal(name string) error {
	return errs.Msg(errs.NotFound, "principal", name, "no such principal")
}

func (k *Keys) loadPrincipal(ctx context.Context, name string) (*api.Principal, error) {
	if !ValidLabel(name) {
		return nil, noPrincipal("")
	}
	value, err := k.kv.Get(ctx, []byte(principalPrefix+name))
	if err != nil {
		return nil, errs.New(errs.KindOf(err), "principal", name, err)
	}
	return k.decodePrincipal(name, value)
}

func (k *Keys) decodePrincipal(name string, value []byte) (*api.Principal, error) {
	p := &api.Principal{}
	if err := k.unseal(principalPrefix+name, value, p); err != nil {
		return nil, err
	}
	return p, nil
}

// Principals calls f for each stored principal whose name comes after a name, in order.
func (k *Keys) Principals(ctx context.Context, after string, f func(*api.Principal) error) error {
	return k.each(ctx, principalPrefix, after, func(name string, value []byte) error {
		p, err := k.decodePrincipal(name, value)
		if err != nil {
			return err
		}
		return f(p)
	})
}

// Chain returns a principal, the one on whose behalf it acts, and so on: at most MaxDepth. What the first uses counts for all of them.
func (k *Keys) Chain(ctx context.Context, name string) ([]*api.Principal, error) {
	var chain []*api.Principal
	for name != "" {
		p, err := k.Principal(ctx, name)
		if err != nil {
			return nil, err
		}
		if len(chain) == MaxDepth {
			return nil, errs.Msg(errs.Corrupt, "principal", name, "acts for too many")
		}
		chain = append(chain, p)
		name = p.Parent
	}
	return chain, nil
}

// ActsFor reports whether a principal is another, or acts on its behalf, directly or through others.
func (k *Keys) ActsFor(ctx context.Context, name, other string) (bool, error) {
	if name == other {
		return name != "", nil
	}
	chain, err := k.Chain(ctx, name)
	if errs.Is(err, errs.NotFound) {
		return false, nil // deleted: its things are nobody's
	}
	return slices.ContainsFunc(chain, func(p *api.Principal) bool { return p.Name == other }), err
}

// effective returns a principal with what it really has: never more than any of those it acts for. It is errs.Denied if one of them is
// disabled.
func (k *Keys) effective(ctx context.Context, name string) (*api.Principal, error) {
	chain, err := k.Chain(ctx, name)
	if err != nil {
		return nil, err
	}
	out := *chain[0]
	out.Teams = slices.Clone(out.Teams)
	for _, p := range chain {
		if p.Disabled {
			return nil, errs.Msg(errs.Denied, "principal", p.Name, "it is disabled")
		}
		if rankOf(p.Role) < rankOf(out.Role) {
			out.Role = p.Role
		}
		if rankOf(p.Role) < operator {
			out.Teams = slices.DeleteFunc(out.Teams, func(t string) bool { return !slices.Contains(p.Teams, t) })
		}
	}
	return &out, nil
}

// SetPrincipal creates or replaces a principal and reports whether it is new. It must not have more than its parent.
func (k *Keys) SetPrincipal(ctx context.Context, p api.Principal) (_ *api.Principal, created bool, err error) {
	const op = "set principal"
	p = clonePrincipal(p)
	if err := checkPrincipal(op, &p); err != nil {
		return nil, false, err
	}
	k.write.Lock()
	defer k.write.Unlock()
	key := []byte(principalPrefix + p.Name)
	was, err := k.kv.Get(ctx, key)
	created = errs.Is(err, errs.NotFound)
	if err != nil && !created {
		return nil, false, errs.New(errs.KindOf(err), op, p.Name, err)
	}
	p.Created = k.now().UTC()
	if !created {
		old, err := k.decodePrincipal(p.Name, was)
		if err != nil {
			return nil, false, err
		}
		p.Created = old.Created
	}
	if err := k.checkParent(ctx, op, &p, created); err != nil {
		return nil, false, err
	}
	value, err := k.sealJSON(string(key), p)
	if err != nil {
		return nil, false, err
	}
	b := &kv.Batch{Checks: []kv.Check{{Key: key, Value: was}}}
	b.Put(key, value)
	err = k.kv.Commit(ctx, b)
	k.forgetPeople()
	if err != nil {
		return nil, false, errs.New(errs.KindOf(err), op, p.Name, err)
	}
	return &p, created, nil
}

// forgetPeople empties the caches after a change of a principal: it may concern whoever acts for it.
func (k *Keys) forgetPeople() {
	k.mu.Lock()
	k.change++
	clear(k.cache)
	clear(k.people)
	k.mu.Unlock()
}

// DeletePrincipal deletes a principal and its keys, at once. It is errs.NotEmpty while others act for it or secrets are its own. What else it
// owns is left to whoever administers, and to a later principal of the same name.
func (k *Keys) DeletePrincipal(ctx context.Context, name string) error {
	const op = "delete principal"
	if name == RootPrincipal {
		return errs.Msg(errs.Denied, op, name, "it is built in")
	}
	k.write.Lock()
	defer k.write.Unlock()
	if _, err := k.loadPrincipal(ctx, name); err != nil {
		if errs.Is(err, errs.NotFound) {
			return noPrincipal(printable(name, 63))
		}
		return err
	}
	err := k.Principals(ctx, "", func(p *api.Principal) error {
		if p.Parent == name {
			return errs.Msg(errs.NotEmpty, op, name, p.Name+" acts on its behalf")
		}
		return nil
	})
	if err == nil {
		err = k.eachSecret(ctx, "", func(s *api.Secret) error {
			if s.Owner == name {
				return errs.Msg(errs.NotEmpty, op, name, "the secret "+s.Name+" is its own")
			}
			return nil
		})
	}
	if err != nil {
		return err
	}
	b := &kv.Batch{}
	if _, err := k.dropAll(ctx, b, principalKeys(name)); err != nil {
		return err
	}
	b.Delete([]byte(principalPrefix + name))
	err = k.kv.Commit(ctx, b)
	k.forgetPeople()
	if err != nil {
		return errs.New(errs.KindOf(err), op, name, err)
	}
	return nil
}

// clonePrincipal copies what the caller may change later, and brings it into its normal form.
func clonePrincipal(p api.Principal) api.Principal {
	p.Teams = slices.Clone(p.Teams)
	slices.Sort(p.Teams)
	tags := make(map[string]string, len(p.Tags))
	for n, v := range p.Tags {
		tags[n] = v
	}
	if p.Tags = tags; len(tags) == 0 {
		p.Tags = nil
	}
	if p.Budget != nil {
		b := *p.Budget
		if p.Budget = &b; b == (api.Budget{}) {
			p.Budget = nil
		}
	}
	if p.Kind == "" {
		p.Kind = "user"
	}
	return p
}

func checkPrincipal(op string, p *api.Principal) error {
	switch {
	case !ValidLabel(p.Name):
		return errs.Msg(errs.Invalid, op, "", "name: want 1 to 63 of a-z, 0-9 and '-'")
	case p.Name == RootPrincipal:
		return errs.Msg(errs.Denied, op, p.Name, "it is built in")
	case p.Kind != "user" && p.Kind != "agent" && p.Kind != "service":
		return errs.Msg(errs.Invalid, op, p.Name, "kind: want user, agent or service")
	case rankOf(p.Role) == noRole:
		return errs.Msg(errs.Invalid, op, p.Name, "role: want admin, operator, user or viewer")
	case len(p.Teams) > MaxTeams:
		return errs.Msg(errs.Limit, op, p.Name, "more than 32 teams")
	case len(p.Tags) > MaxTags:
		return errs.Msg(errs.Limit, op, p.Name, "more than 32 tags")
	}
	for i, t := range p.Teams {
		if !ValidLabel(t) || i > 0 && p.Teams[i-1] == t {
			return errs.Msg(errs.Invalid, op, p.Name, "teams: want each once, as 1 to 63 of a-z, 0-9 and '-'")
		}
	}
	for n, v := range p.Tags {
		if !validTag(n) || strings.ContainsFunc(v, unprintable) {
			return errs.Msg(errs.Invalid, op, p.Name, "tags: want names of 1 to 63 letters, digits and '-_./', and values without control characters")
		}
		if len(v) > MaxTag {
			return errs.Msg(errs.TooLarge, op, p.Name, "a tag has more than 255 bytes")
		}
	}
	if b := p.Budget; b != nil {
		for _, v := range []float64{b.CPUSeconds, b.MemoryGiBSeconds, b.StorageGiBSeconds, float64(b.NetworkBytes), float64(b.Sandboxes)} {
			if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
				return errs.Msg(errs.Invalid, op, p.Name, "budget: want numbers from 0")
			}
		}
	}
	return nil
}

func validTag(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("-_./", rune(c)) {
			return false
		}
	}
	return s != "" && len(s) <= 63
}

// checkParent sees that a principal has no more than its parent, and that no chain becomes a circle or too long.
func (k *Keys) checkParent(ctx context.Context, op string, p *api.Principal, created bool) error {
	if p.Parent == "" {
		return nil
	}
	if p.Parent == p.Name {
		return errs.Msg(errs.Invalid, op, p.Name, "it can't be its own parent")
	}
	chain, err := k.Chain(ctx, p.Parent)
	if errs.Is(err, errs.NotFound) {
		return errs.Msg(errs.Invalid, op, p.Name, "parent: no such principal")
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(chain, func(a *api.Principal) bool { return a.Name == p.Name }) {
		return errs.Msg(errs.Invalid, op, p.Name, "parent: that one acts for it already")
	}
	below := 1
	if !created {
		if below, err = k.height(ctx, p.Name); err != nil {
			return err
		}
	}
	if len(chain)+below > MaxDepth {
		return errs.Msg(errs.Limit, op, p.Name, fmt.Sprintf("a chain of more than %d principals", MaxDepth))
	}
	parent := chain[0]
	if rankOf(p.Role) > rankOf(parent.Role) {
		return errs.Msg(errs.Denied, op, p.Name, "its role would be above that of "+parent.Name+", on whose behalf it acts")
	}
	for _, t := range p.Teams {
		if rankOf(parent.Role) < operator && !slices.Contains(parent.Teams, t) {
			return errs.Msg(errs.Denied, op, p.Name, parent.Name+", on whose behalf it acts, isn't of the team "+t)
		}
	}
	return nil
}

// height returns how long the longest chain is that ends with a principal.
func (k *Keys) height(ctx context.Context, name string) (int, error) {
	children := map[string][]string{}
	err := k.Principals(ctx, "", func(p *api.Principal) error {
		if p.Parent != "" {
			children[p.Parent] = append(children[p.Parent], p.Name)
		}
		return nil
	})
	level, n := []string{name}, 0
	for ; len(level) > 0 && n <= MaxDepth; n++ {
		var next []string
		for _, name := range level {
			next = append(next, children[name]...)
		}
		level = next
	}
	return n, err
}

// unprintable reports whether a character has no place in a line of text: controls, and what ends or turns a line.
func unprintable(r rune) bool {
	return r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' || r == '\uFFFD'
}
