package access

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"agentrun.dev/api"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

// Limits on secrets; exceeding one is an errs.TooLarge or errs.Limit.
const (
	MaxSecretKeys  = 100      // values of one secret
	MaxSecretValue = 64 << 10 // bytes of one value
	MaxSecret      = 1 << 20  // bytes of a secret's names and values together
	MaxSecretKey   = 128      // bytes in the name of a value
	MaxSecretUses  = 100      // values that one sandbox is given
	MaxSecrets     = 1000     // secrets of one principal
)

// A secret is two records, both sealed: what it is, and its values, so that a list doesn't open any value.
const (
	secretPrefix = "a/s/m/"
	valuesPrefix = "a/s/v/"
)

// PutSecret creates or replaces a secret, with all its values, and reports whether it is new. The owner is the caller, or whom the secret
// names; who has it already keeps it if it names none. A team must be one of the owner's. A name that another has taken, of whom the caller
// sees nothing, is errs.Exists.
func (g *Guard) PutSecret(ctx context.Context, who *Caller, s api.Secret) (_ *api.Secret, created bool, err error) {
	const v = SecretChange
	if err := checkSecret(&s); err != nil {
		return nil, false, err
	}
	old, was, err := g.keys.secret(ctx, s.Name)
	created = errs.Is(err, errs.NotFound)
	if err != nil && !created {
		return nil, false, err
	}
	now := g.keys.now().UTC()
	next := &api.Secret{Name: s.Name, Owner: s.Owner, Team: s.Team, Created: now, Changed: now, Keys: slices.Sorted(maps.Keys(s.Data))}
	if created {
		if next.Owner == "" && who != nil {
			next.Owner = who.Principal.Name
		}
	} else {
		if next.Created = old.Created; next.Owner == "" {
			next.Owner = old.Owner
		}
		err := g.Check(ctx, who, v, secretThing(old))
		if errs.Is(err, errs.NotFound) {
			return nil, false, errs.Msg(errs.Exists, string(v), s.Name, "the name is taken")
		}
		if err != nil {
			return nil, false, err
		}
	}
	if created || next.Owner != old.Owner {
		if err := g.Check(ctx, who, v, Thing{Kind: "secret", Owner: next.Owner, Data: map[string]string{"name": s.Name}}); err != nil {
			return nil, false, err
		}
	}
	if err := g.checkTeam(ctx, who, next); err != nil {
		return nil, false, err
	}
	if err := g.keys.putSecret(ctx, next, s.Data, was); err != nil {
		return nil, false, err
	}
	return next, created, nil
}

// checkTeam sees that a secret's owner exists and is of the team that may use it.
func (g *Guard) checkTeam(ctx context.Context, who *Caller, s *api.Secret) error {
	owner, err := g.keys.effective(ctx, s.Owner)
	if errs.Is(err, errs.NotFound) {
		return errs.Msg(errs.Invalid, string(SecretChange), s.Name, "owner: no such principal")
	}
	if err != nil {
		return err
	}
	if s.Team != "" && !slices.Contains(owner.Teams, s.Team) && rankOf(who.Principal.Role) < admin {
		return g.refuse(ctx, who, SecretChange, secretThing(s), "its owner isn't of the team "+s.Team)
	}
	return nil
}

// Secret describes a secret, without its values.
func (g *Guard) Secret(ctx context.Context, who *Caller, name string) (*api.Secret, error) {
	s, _, err := g.findSecret(ctx, who, SecretGet, name)
	return s, err
}

// Secrets lists what secrets a caller sees, without their values, in order of their names from after a name on. Next is the name after which the
// following page begins.
func (g *Guard) Secrets(ctx context.Context, who *Caller, after string, limit int) (*api.Secrets, error) {
	if err := g.Check(ctx, who, SecretGet, Thing{Kind: "secret"}); err != nil {
		return nil, err
	}
	out := &api.Secrets{Secrets: []api.Secret{}}
	limit = pageLimit(limit)
	err := g.keys.eachSecret(ctx, after, func(s *api.Secret) error {
		if !g.Sees(who, secretThing(s)) {
			return nil
		}
		if len(out.Secrets) == limit {
			out.Next = out.Secrets[limit-1].Name
			return kv.Stop
		}
		out.Secrets = append(out.Secrets, *s)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// DeleteSecret deletes a secret. Sandboxes that were given its values keep them.
func (g *Guard) DeleteSecret(ctx context.Context, who *Caller, name string) error {
	_, was, err := g.findSecret(ctx, who, SecretChange, name)
	if err != nil {
		return err
	}
	b := &kv.Batch{Checks: []kv.Check{{Key: []byte(secretPrefix + name), Value: was}}, Reclaim: true}
	b.Delete([]byte(secretPrefix + name))
	b.Delete([]byte(valuesPrefix + name))
	if err := g.keys.kv.Commit(ctx, b); err != nil {
		return errs.New(errs.KindOf(err), string(SecretChange), name, err)
	}
	return nil
}

// findSecret finds a secret for a caller who may do the verb with it. It is audited, too, that there is none.
func (g *Guard) findSecret(ctx context.Context, who *Caller, v Verb, name string) (s *api.Secret, was []byte, err error) {
	t := Thing{Kind: "secret", ID: printable(name, maxThing)}
	s, was, err = g.keys.secret(ctx, name)
	if errs.Is(err, errs.NotFound) {
		if err := g.record(ctx, who, v, t, false, "no such secret"); err != nil {
			return nil, nil, err
		}
		return nil, nil, Missing(v, t)
	}
	if err != nil {
		return nil, nil, err
	}
	return s, was, g.Check(ctx, who, v, secretThing(s))
}

// Resolve returns the variables, as NAME=value, that uses of secrets put into the environment of the caller's sandbox, in order. Each secret that is
// used is asked for and audited. A secret that doesn't exist, or isn't shown to the caller, or has no such key, is errs.NotFound.
func (g *Guard) Resolve(ctx context.Context, who *Caller, uses []api.SecretUse) ([]string, error) {
	if err := CheckUses(uses); err != nil {
		return nil, err
	}
	values := map[string]map[string]string{}
	env := make([]string, 0, len(uses))
	var waits []func(context.Context) error
	for _, u := range uses {
		name, key := u.Ref.Name, u.Ref.Key
		data, known := values[name]
		if !known {
			wait, found, err := g.reveal(ctx, who, name, usedKeys(uses, name))
			if err != nil {
				return nil, err
			}
			waits = append(waits, wait)
			data, values[name] = found, found
		}
		value, ok := data[key]
		if !ok {
			return nil, errs.Msg(errs.NotFound, string(SecretUse), name, "it has no key "+key)
		}
		env = append(env, variable(u)+"="+value)
	}
	for _, wait := range waits {
		if err := wait(ctx); err != nil {
			return nil, err
		}
	}
	return env, nil
}

// reveal finds the values of a secret for a caller who may use them.
func (g *Guard) reveal(ctx context.Context, who *Caller, name, keys string) (wait func(context.Context) error, data map[string]string, err error) {
	for {
		s, was, err := g.keys.secret(ctx, name)
		if errs.Is(err, errs.NotFound) {
			if _, _, err = g.findSecret(ctx, who, SecretUse, name); err == nil {
				continue // it has come meanwhile
			}
		}
		if err != nil {
			return nil, nil, err
		}
		t := secretThing(s)
		t.Data = map[string]string{"keys": keys}
		if wait, err = g.Begin(ctx, who, SecretUse, t); err != nil {
			return nil, nil, err
		}
		data, verr := g.keys.values(ctx, name)
		// The values are those of the secret that was asked for if that is still there: its record is never twice the same.
		_, is, err := g.keys.secret(ctx, name)
		if err == nil && bytes.Equal(was, is) {
			return wait, data, verr
		}
		if err != nil && !errs.Is(err, errs.NotFound) {
			return nil, nil, err
		}
	}
}

func usedKeys(uses []api.SecretUse, name string) string {
	var keys []string
	for _, u := range uses {
		if u.Ref.Name == name {
			keys = append(keys, u.Ref.Key)
		}
	}
	return strings.Join(keys, ",")
}

// variable is the name of the variable that a use sets.
func variable(u api.SecretUse) string {
	if u.Env != "" {
		return u.Env
	}
	return u.Ref.Key
}

// CheckUses is errs.Invalid if uses of secrets are malformed, without a look at the secrets: what a template or a claim may hold.
func CheckUses(uses []api.SecretUse) error {
	const op = "secrets"
	if len(uses) > MaxSecretUses {
		return errs.Msg(errs.Limit, op, "", "more than 100 values")
	}
	seen := map[string]bool{}
	for i, u := range uses {
		at := fmt.Sprintf("%d", i)
		name := variable(u)
		switch {
		case !ValidLabel(u.Ref.Name):
			return errs.Msg(errs.Invalid, op, at, "secretRef.name: want 1 to 63 of a-z, 0-9 and '-'")
		case !validSecretKey(u.Ref.Key):
			return errs.Msg(errs.Invalid, op, at, "secretRef.key: want 1 to 128 letters, digits and '-_.'")
		case !validVariable(name):
			return errs.Msg(errs.Invalid, op, at, "env: want a variable's name: letters, digits and '_', no digit first").
				WithHint("where the key isn't one, say which variable is meant")
		case seen[name]:
			return errs.Msg(errs.Invalid, op, at, "the variable "+name+" twice")
		case u.Fork != "" && u.Fork != "same" && u.Fork != "drop":
			return errs.Msg(errs.Invalid, op, at, "fork: want same or drop")
		case len(u.Name) > MaxName || strings.ContainsFunc(u.Name, unprintable):
			return errs.Msg(errs.Invalid, op, at, "name: want at most 255 bytes without control characters")
		}
		seen[name] = true
	}
	return nil
}

func validVariable(s string) bool {
	for i, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '_' && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != "" && len(s) <= MaxSecretKey
}

func validSecretKey(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return s != "" && len(s) <= MaxSecretKey
}

// checkSecret never puts a value into an error, nor the name of one that isn't well formed: it may be a value by mistake.
func checkSecret(s *api.Secret) error {
	const op = string(SecretChange)
	switch {
	case !ValidLabel(s.Name):
		return errs.Msg(errs.Invalid, op, "", "name: want 1 to 63 of a-z, 0-9 and '-'")
	case s.Team != "" && !ValidLabel(s.Team):
		return errs.Msg(errs.Invalid, op, s.Name, "team: want 1 to 63 of a-z, 0-9 and '-'")
	case s.Owner != "" && !ValidLabel(s.Owner):
		return errs.Msg(errs.Invalid, op, s.Name, "owner: no such principal")
	case len(s.Data) > MaxSecretKeys:
		return errs.Msg(errs.Limit, op, s.Name, "more than 100 values")
	}
	total := 0
	for key, value := range s.Data {
		total += len(key) + len(value)
		switch {
		case !validSecretKey(key):
			return errs.Msg(errs.Invalid, op, s.Name, "data: want keys of 1 to 128 letters, digits and '-_.'")
		case len(value) > MaxSecretValue:
			return errs.Msg(errs.TooLarge, op, s.Name, "the value of "+key+" has more than 64 KiB")
		case strings.IndexByte(value, 0) >= 0 || !utf8.ValidString(value):
			return errs.Msg(errs.Invalid, op, s.Name, "the value of "+key+" isn't text without zero bytes")
		}
	}
	if total > MaxSecret {
		return errs.Msg(errs.TooLarge, op, s.Name, "more than 1 MiB")
	}
	return nil
}

func secretThing(s *api.Secret) Thing {
	t := Thing{Kind: "secret", ID: s.Name, Owner: s.Owner}
	if s.Team != "" {
		t.Visibility, t.Team = api.Team, s.Team
	}
	return t
}

// secret reads what a secret is, and its record as it is stored.
func (k *Keys) secret(ctx context.Context, name string) (*api.Secret, []byte, error) {
	if !ValidLabel(name) {
		return nil, nil, errs.New(errs.NotFound, "secret", "", nil)
	}
	value, err := k.kv.Get(ctx, []byte(secretPrefix+name))
	if err != nil {
		return nil, nil, errs.New(errs.KindOf(err), "secret", name, err)
	}
	s := &api.Secret{}
	return s, value, k.unseal(secretPrefix+name, value, s)
}

func (k *Keys) values(ctx context.Context, name string) (data map[string]string, err error) {
	value, err := k.kv.Get(ctx, []byte(valuesPrefix+name))
	if err != nil {
		return nil, errs.New(errs.KindOf(err), "secret", name, err)
	}
	return data, k.unseal(valuesPrefix+name, value, &data)
}

// putSecret writes a secret in place of what its record was; nil: there was none.
func (k *Keys) putSecret(ctx context.Context, s *api.Secret, data map[string]string, was []byte) error {
	// Not while its owner is being deleted.
	k.write.Lock()
	defer k.write.Unlock()
	if _, err := k.Principal(ctx, s.Owner); err != nil {
		return err
	}
	if was == nil {
		if err := k.roomForSecret(ctx, s.Owner); err != nil {
			return err
		}
	}
	b := &kv.Batch{Checks: []kv.Check{{Key: []byte(secretPrefix + s.Name), Value: was}}}
	for place, v := range map[string]any{secretPrefix + s.Name: s, valuesPrefix + s.Name: data} {
		sealed, err := k.sealJSON(place, v)
		if err != nil {
			return err
		}
		b.Put([]byte(place), sealed)
	}
	if err := k.kv.Commit(ctx, b); err != nil {
		return errs.New(errs.KindOf(err), string(SecretChange), s.Name, err)
	}
	return nil
}

// roomForSecret is nil if a principal may have one more.
func (k *Keys) roomForSecret(ctx context.Context, owner string) error {
	n := 0
	err := k.eachSecret(ctx, "", func(s *api.Secret) error {
		if s.Owner == owner {
			n++
		}
		return nil
	})
	if err == nil && n >= MaxSecrets {
		err = errs.Msg(errs.Limit, string(SecretChange), owner, "the principal has 1000 secrets")
	}
	return err
}

// eachSecret calls f for each secret whose name comes after a name, in order.
func (k *Keys) eachSecret(ctx context.Context, after string, f func(*api.Secret) error) error {
	return k.each(ctx, secretPrefix, after, func(name string, value []byte) error {
		s := &api.Secret{}
		if err := k.unseal(secretPrefix+name, value, s); err != nil {
			return err
		}
		return f(s)
	})
}

// each calls f for each record under a prefix whose name comes after a name, in order.
func (k *Keys) each(ctx context.Context, prefix, after string, f func(name string, value []byte) error) error {
	r := kv.Range{Start: []byte(prefix), End: kv.PrefixEnd([]byte(prefix))}
	if after != "" {
		r.Start = []byte(prefix + after + "\x00")
	}
	return k.kv.Scan(ctx, r, func(key, value []byte) error { return f(string(key[len(prefix):]), value) })
}

func (k *Keys) sealJSON(place string, v any) ([]byte, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return nil, errs.New(errs.Invalid, "seal", place, err)
	}
	return k.own.Seal(place, plain)
}

func (k *Keys) unseal(place string, sealed []byte, v any) error {
	plain, err := k.own.Open(place, sealed)
	if err != nil {
		return err
	}
	if json.Unmarshal(plain, v) != nil { // whose text might repeat a value
		return errs.Msg(errs.Corrupt, "open", place, "malformed record")
	}
	return nil
}

// pageLimit is how many things a page has.
func pageLimit(n int) int {
	if n <= 0 {
		return 100
	}
	return min(n, 1000)
}
