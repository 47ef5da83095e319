package access

import (
	"context"

	"agentrun.dev/api"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

func principalThing(name string) Thing { return Thing{Kind: "principal", ID: name, Owner: name} }

// GetPrincipal describes a principal.
func (g *Guard) GetPrincipal(ctx context.Context, who *Caller, name string) (*api.Principal, error) {
	t := principalThing(printable(name, maxThing))
	if err := g.Check(ctx, who, PrincipalGet, t); err != nil {
		return nil, err
	}
	p, err := g.keys.Principal(ctx, name)
	if errs.Is(err, errs.NotFound) {
		return nil, Missing(PrincipalGet, t)
	}
	return p, err
}

// ListPrincipals lists those that a caller sees, in order of their names from after a name on; the built-in one isn't listed. Next is the name
// after which the following page begins.
func (g *Guard) ListPrincipals(ctx context.Context, who *Caller, after string, limit int) (*api.Principals, error) {
	if err := g.Check(ctx, who, PrincipalGet, Thing{Kind: "principal"}); err != nil {
		return nil, err
	}
	out := &api.Principals{Principals: []api.Principal{}}
	limit = pageLimit(limit)
	err := g.keys.Principals(ctx, after, func(p *api.Principal) error {
		if !g.Sees(who, principalThing(p.Name)) {
			return nil
		}
		if len(out.Principals) == limit {
			out.Next = out.Principals[limit-1].Name
			return kv.Stop
		}
		out.Principals = append(out.Principals, *p)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// PutPrincipal creates or replaces a principal and reports whether it is new; see Keys.SetPrincipal. What is changed is in force at once.
func (g *Guard) PutPrincipal(ctx context.Context, who *Caller, p api.Principal) (_ *api.Principal, created bool, err error) {
	if err := g.checkChange(ctx, who, p.Name, map[string]string{"role": p.Role, "parent": p.Parent, "disabled": truth(p.Disabled)}); err != nil {
		return nil, false, err
	}
	return g.keys.SetPrincipal(ctx, p)
}

// DeletePrincipal deletes a principal and its keys; see Keys.DeletePrincipal.
func (g *Guard) DeletePrincipal(ctx context.Context, who *Caller, name string) error {
	if err := g.checkChange(ctx, who, name, map[string]string{"delete": "true"}); err != nil {
		return err
	}
	return g.keys.DeletePrincipal(ctx, name)
}

// checkChange asks whether a caller may change a principal. The answer is the same whether that exists or not.
func (g *Guard) checkChange(ctx context.Context, who *Caller, name string, data map[string]string) error {
	t := principalThing(printable(name, maxThing))
	t.Data = data
	err := g.Check(ctx, who, PrincipalChange, t)
	if errs.Is(err, errs.NotFound) {
		return errs.Msg(errs.Denied, string(PrincipalChange), t.ID, "only role admin may")
	}
	return err
}

func truth(b bool) string {
	if b {
		return "true"
	}
	return ""
}

// keyThing is a key as a thing: its principal's, or root's.
func keyThing(k *Key) Thing {
	t := Thing{Kind: "key", ID: k.ID, Owner: k.Principal}
	if t.Owner == "" {
		t.Owner = RootPrincipal
	}
	return t
}

// CreateKey makes a key, for the caller where n names nobody and has no grants. It has no more than the caller: neither a role above, nor buckets
// that the caller's own key doesn't reach, nor a longer life, unless the caller is an administrator.
func (g *Guard) CreateKey(ctx context.Context, who *Caller, n NewKey) (*Key, error) {
	if n.Sandbox != "" {
		return nil, errs.Msg(errs.Invalid, string(KeyChange), "", "keys of sandboxes are made with them")
	}
	if n.Principal == "" && !n.Root && len(n.Grants) == 0 && who != nil {
		n.Principal = who.Principal.Name
	}
	t := keyThing(&Key{Principal: n.Principal})
	n.mint() // the log says which key it was
	t.Data = map[string]string{"key": n.id, "root": truth(n.Root), "role": n.Role}
	if len(n.Grants) > 0 {
		t.Data["buckets"] = grantNames(n.Grants)
	}
	if err := g.Check(ctx, who, KeyChange, t); err != nil {
		return nil, err
	}
	if why := within(who, &n); why != "" {
		return nil, g.refuse(ctx, who, KeyChange, t, why)
	}
	return g.keys.Create(ctx, n)
}

func grantNames(grants []Grant) string {
	s := ""
	for _, g := range grants {
		s += "," + g.Name
	}
	return s[1:]
}

// within sees that a new key has no more than the caller's, or says why not. It shortens what n leaves open.
func within(who *Caller, n *NewKey) (why string) {
	role := rankOf(who.Principal.Role)
	if role == admin {
		return ""
	}
	if rankOf(n.Role) > role {
		return "role " + role.String() + " may not make keys of role " + n.Role
	}
	for _, gr := range n.Grants {
		a := Read
		if gr.Write {
			a = Write
		}
		if !who.Key.Allows(a, gr.Bucket) {
			return "the caller's key may not " + a.String() + " the bucket " + printable(gr.Name, 64)
		}
	}
	if k := who.Key; k != nil {
		if k.Role != "" && n.Role == "" {
			n.Role = who.Principal.Role
		}
		if !k.Expires.IsZero() && (n.Expires.IsZero() || n.Expires.After(k.Expires)) {
			n.Expires = k.Expires
		}
	}
	return ""
}

// ListKeys lists the keys of a principal in order of their ids, or, where it names none, all to an administrator and its own to anyone else. Those of
// sandboxes aren't listed. Next is the id after which the following page begins; "": there is none.
func (g *Guard) ListKeys(ctx context.Context, who *Caller, principal, after string, limit int) (keys []*Key, next string, err error) {
	all := principal == "" && who != nil && rankOf(who.Principal.Role) == admin
	if principal == "" && who != nil && !all {
		principal = who.Principal.Name
	}
	if err := g.Check(ctx, who, KeyGet, Thing{Kind: "key", Owner: principal}); err != nil {
		return nil, "", err
	}
	limit = pageLimit(limit)
	take := func(k *Key) error {
		switch {
		case k.Sandbox != "":
		case len(keys) == limit:
			next = keys[limit-1].ID
			return kv.Stop
		default:
			keys = append(keys, k)
		}
		return nil
	}
	if all {
		err = g.keys.each(ctx, prefix, after, func(id string, value []byte) error {
			k, err := g.keys.decode(id, value)
			if err != nil {
				return err
			}
			return take(k)
		})
		return keys, next, err
	}
	ids, err := g.keys.holds(ctx, principalKeys(principal))
	for _, id := range ids {
		if err != nil || id <= after {
			continue
		}
		k, lerr := g.keys.load(ctx, id)
		if errs.Is(lerr, errs.Unauthorized) {
			continue // revoked meanwhile
		}
		if err = lerr; err == nil && take(k) != nil {
			break
		}
	}
	return keys, next, err
}

// RevokeKey ends a key at once. Anyone may revoke its own, but not by a key of a lesser role.
func (g *Guard) RevokeKey(ctx context.Context, who *Caller, id string) error {
	if err := g.checkKey(ctx, who, id, "revoke"); err != nil {
		return err
	}
	return g.keys.Revoke(ctx, id)
}

// RotateKey gives a key a new secret and returns it; the old one is void at once.
func (g *Guard) RotateKey(ctx context.Context, who *Caller, id string) (*Key, error) {
	if err := g.checkKey(ctx, who, id, "rotate"); err != nil {
		return nil, err
	}
	return g.keys.Rotate(ctx, id)
}

func (g *Guard) checkKey(ctx context.Context, who *Caller, id, what string) error {
	k, err := g.keys.load(ctx, id)
	if errs.Is(err, errs.Unauthorized) {
		t := Thing{Kind: "key", ID: printable(id, maxID)}
		if err := g.record(ctx, who, KeyChange, t, false, "no such key"); err != nil {
			return err
		}
		if g.keys.RootID() != "" && id == g.keys.RootID() && who != nil && rankOf(who.Principal.Role) == admin {
			return errs.Msg(errs.Denied, string(KeyChange), id, "the root key is set where the server is started")
		}
		return Missing(KeyChange, t)
	}
	if err != nil {
		return err
	}
	t := keyThing(k)
	t.Data = map[string]string{"do": what, "name": k.Name}
	if err := g.Check(ctx, who, KeyChange, t); err != nil {
		return err
	}
	more := who.Key != nil && who.Key.Role != "" && (k.Role == "" || rankOf(k.Role) > rankOf(who.Principal.Role))
	if what == "rotate" { // which tells the secret: whoever gets it must have no less than the key
		n := NewKey{Role: k.Role, Grants: k.Grants, Expires: k.Expires}
		more = within(who, &n) != "" || n.Role != k.Role || !n.Expires.Equal(k.Expires)
	}
	if more && rankOf(who.Principal.Role) < admin {
		return g.refuse(ctx, who, KeyChange, t, "the key has more than the caller's")
	}
	return nil
}
