package rest

import (
	"net/http"
	"slices"
	"strings"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/bucket"
	"agentrun.dev/errs"
)

// listKeys returns a page of keys, by id.
func (s *server) listKeys(_ http.ResponseWriter, r *request) (any, error) {
	if err := s.root(r); err != nil {
		return nil, err
	}
	limit := int(r.number("limit"))
	if limit == 0 {
		limit = api.MaxPage
	}
	after, err := r.place()
	if err != nil {
		return nil, err
	}
	var keys []*access.Key
	err = s.keys.List(r.Context(), func(k *access.Key) error {
		if k.ID > after {
			keys = append(keys, k)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(keys, func(a, b *access.Key) int { return strings.Compare(a.ID, b.ID) })
	out := &api.Keys{Keys: []api.Key{}}
	if len(keys) > limit {
		keys = keys[:limit]
		out.Next = cursorAt(keys[limit-1].ID)
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

// wireKey describes a key without its secret.
func wireKey(k *access.Key) api.Key {
	out := api.Key{ID: k.ID, Name: k.Name, Created: k.Created.UTC(), Root: k.Root}
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
	if err := s.root(r); err != nil {
		return nil, err
	}
	var in api.CreateKey
	if err := decode(w, r, &in); err != nil {
		return nil, err
	}
	if in.Root == (len(in.Scopes) > 0) {
		return nil, errs.Msg(errs.Invalid, "create key", in.Name, "want either scopes or root, for a key that may do everything")
	}
	if len(in.Scopes) > api.MaxScopes {
		return nil, errs.Msg(errs.Limit, "create key", in.Name, "too many buckets for one key")
	}
	expires, err := s.expiry("create key", in.Name, in.Lifetime)
	if err != nil {
		return nil, err
	}
	n := access.NewKey{Name: in.Name, Root: in.Root, Expires: expires}
	for _, sc := range in.Scopes {
		if sc.BucketID != "" || sc.Gone {
			return nil, errs.Msg(errs.Invalid, "create key", sc.Bucket, "a scope has a bucket's name and a role, nothing else")
		}
		if sc.Role != api.ReadOnly && sc.Role != api.ReadWrite {
			return nil, errs.Msg(errs.Invalid, "create key", sc.Bucket, "role: want ro or rw")
		}
		var info *bucket.Info
		if info, err = s.allowed(r, access.Manage, sc.Bucket); err != nil {
			return nil, err
		}
		n.Grants = append(n.Grants, access.Grant{Bucket: info.ID, Name: info.Name, Write: sc.Role == api.ReadWrite})
	}
	k, err := s.keys.Create(r.Context(), n)
	if err != nil {
		return nil, err
	}
	out := wireKey(k)
	out.Secret, out.APIKey = k.Secret, k.Token()
	return &out, nil
}

func (s *server) revokeKey(w http.ResponseWriter, r *request) error {
	if err := s.root(r); err != nil {
		return err
	}
	if err := s.keys.Revoke(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
