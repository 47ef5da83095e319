package rest

import (
	"net/http"
	"slices"
	"strings"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// listKeys returns a page of keys, by id.
func (s *server) listKeys(_ http.ResponseWriter, r *request) (any, error) {
	limit := int(r.number("limit"))
	if limit == 0 {
		limit = api.MaxPage
	}
	after, err := r.place()
	if err != nil {
		return nil, err
	}
	list := s.allKeys
	if s.Guard != nil {
		list = s.keysOf
	}
	keys, next, err := list(r, after, limit)
	if err != nil {
		return nil, err
	}
	out := &api.Keys{Keys: []api.Key{}}
	if next != "" {
		out.Next = cursorAt(next)
	}
	for _, k := range keys {
		w := wireKey(k)
		for j, g := range k.Grants {
			if _, err := s.store.ByID(r.Context(), g.Bucket); errs.Is(err, errs.NotFound) {
				w.Scopes[j].Gone = true
			} else if err != nil {
				return nil, err
			}
		}
		out.Keys = append(out.Keys, w)
	}
	return out, nil
}

// keysOf returns those that the guard lets the caller see.
func (s *server) keysOf(r *request, after string, limit int) ([]*access.Key, string, error) {
	if err := s.principal(r); err != nil {
		return nil, "", err
	}
	return s.Guard.ListKeys(r.Context(), r.caller, r.text("principal"), after, limit)
}

// allKeys is for a server without a guard.
func (s *server) allKeys(r *request, after string, limit int) (keys []*access.Key, next string, err error) {
	if err := s.root(r); err != nil {
		return nil, "", err
	}
	err = s.keys.List(r.Context(), func(k *access.Key) error {
		if k.ID > after && (!r.q.Has("principal") || k.Principal == r.text("principal")) {
			keys = append(keys, k)
		}
		return nil
	})
	slices.SortFunc(keys, func(a, b *access.Key) int { return strings.Compare(a.ID, b.ID) })
	if len(keys) > limit {
		keys, next = keys[:limit], keys[limit-1].ID
	}
	return keys, next, err
}

// wireKey describes a key without its secret.
func wireKey(k *access.Key) api.Key {
	out := api.Key{ID: k.ID, Name: k.Name, Created: k.Created.UTC(), Root: k.Root, Principal: k.Principal, Role: k.Role}
	if !k.Expires.IsZero() {
		out.Expires = k.Expires.UTC()
	}
	for _, g := range k.Grants {
		role := api.ReadOnly
		if g.Write {
			role = api.ReadWrite
		}
		out.Scopes = append(out.Scopes, api.Scope{Bucket: g.Name, BucketID: g.Bucket.String(), Role: role})
	}
	return out
}

func (s *server) createKey(w http.ResponseWriter, r *request) (any, error) {
	if s.Guard == nil {
		if err := s.root(r); err != nil {
			return nil, err
		}
	} else if err := s.principal(r); err != nil {
		return nil, err
	}
	var in api.CreateKey
	if err := decode(w, r, &in); err != nil {
		return nil, err
	}
	bad := func(text string) error { return errs.Msg(errs.Invalid, "create key", in.Name, text) }
	ways := 0
	for _, set := range []bool{in.Root, len(in.Scopes) > 0, in.Principal != ""} {
		if set {
			ways++
		}
	}
	switch {
	case ways > 1 || ways == 0 && s.Guard == nil:
		return nil, bad("want either scopes, or a principal, or root, for a key that may do everything")
	case in.Role != "" && (in.Root || len(in.Scopes) > 0):
		return nil, bad("a role goes with a principal")
	case s.Guard == nil && in.Principal != "":
		return nil, errs.Msg(errs.Unsupported, "create key", in.Principal, "this server has no principals")
	case len(in.Scopes) > api.MaxScopes:
		return nil, errs.Msg(errs.Limit, "create key", in.Name, "too many buckets for one key")
	}
	expires, err := s.expiry("create key", in.Name, in.Lifetime)
	if err != nil {
		return nil, err
	}
	n := access.NewKey{Name: in.Name, Root: in.Root, Expires: expires, Principal: in.Principal, Role: in.Role, E2B: in.E2B}
	if n.Grants, err = s.grants(r, in.Scopes); err != nil {
		return nil, err
	}
	var k *access.Key
	if s.Guard != nil {
		k, err = s.Guard.CreateKey(r.Context(), r.caller, n)
	} else {
		k, err = s.keys.Create(r.Context(), n)
	}
	if err != nil {
		return nil, err
	}
	return withSecret(k), nil
}

// grants turns scopes into what a key holds.
func (s *server) grants(r *request, scopes []api.Scope) ([]access.Grant, error) {
	var out []access.Grant
	for _, sc := range scopes {
		if sc.BucketID != "" || sc.Gone {
			return nil, errs.Msg(errs.Invalid, "create key", sc.Bucket, "a scope has a bucket's name and a role, nothing else")
		}
		if sc.Role != api.ReadOnly && sc.Role != api.ReadWrite {
			return nil, errs.Msg(errs.Invalid, "create key", sc.Bucket, "role: want ro or rw")
		}
		info, err := s.allowed(r, access.Read, sc.Bucket) // that it has no more than the caller is the guard's to see
		if err != nil {
			return nil, err
		}
		out = append(out, access.Grant{Bucket: info.ID, Name: info.Name, Write: sc.Role == api.ReadWrite})
	}
	return out, nil
}

// withSecret describes a key with its secret.
func withSecret(k *access.Key) *api.Key {
	out := wireKey(k)
	out.Secret, out.APIKey = k.Secret, k.Token()
	return &out
}

func (s *server) rotateKey(w http.ResponseWriter, r *request) (any, error) {
	var none struct{}
	if err := decode(w, r, &none); err != nil {
		return nil, err
	}
	k, err := s.Guard.RotateKey(r.Context(), r.caller, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return withSecret(k), nil
}

func (s *server) revokeKey(w http.ResponseWriter, r *request) error {
	var err error
	if s.Guard != nil {
		if err = s.principal(r); err == nil {
			err = s.Guard.RevokeKey(r.Context(), r.caller, r.PathValue("id"))
		}
	} else if err = s.root(r); err == nil {
		err = s.keys.Revoke(r.Context(), r.PathValue("id"))
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
