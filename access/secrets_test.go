package access

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"agentrun.dev"
	"agentrun.dev/api"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

const hush = "hunter2-never-told"

func (w *world) secret(who, name, team string, data map[string]string) {
	w.Helper()
	if _, _, err := w.guard.PutSecret(context.Background(), w.caller(who), api.Secret{Name: name, Team: team, Data: data}); err != nil {
		w.Fatal(err)
	}
}

func use(name, key, env string) api.SecretUse {
	return api.SecretUse{Ref: api.SecretRef{Name: name, Key: key}, Env: env}
}

func TestSecrets(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	w.secret("alice", "db", "red", map[string]string{"PASSWORD": hush, "user.name": "pg"})
	w.secret("alice", "own", "", map[string]string{"TOKEN": "t"})
	w.secret("subbot", "deep", "", map[string]string{"TOKEN": "d"})

	env, err := w.guard.Resolve(ctx, w.caller("bob"), []api.SecretUse{use("db", "user.name", "PGUSER"), use("db", "PASSWORD", ""), use("db", "PASSWORD", "AGAIN")})
	if err != nil || strings.Join(env, " ") != "PGUSER=pg PASSWORD="+hush+" AGAIN="+hush {
		t.Fatal(env, err)
	}
	for _, c := range []struct {
		who  string
		use  []api.SecretUse
		kind errs.Kind
		text string
	}{
		{"bob", []api.SecretUse{use("own", "TOKEN", "")}, errs.NotFound, "secret.use: own: no such secret"},
		{"bob", []api.SecretUse{use("none", "TOKEN", "")}, errs.NotFound, "secret.use: none: no such secret"}, // the same words
		{"bot", []api.SecretUse{use("own", "TOKEN", "")}, errs.NotFound, "secret.use: own: no such secret"},
		{"bob", []api.SecretUse{use("db", "USER", "")}, errs.NotFound, "secret.use: db: it has no key USER"},
		{"vera", []api.SecretUse{use("db", "PASSWORD", "")}, errs.Denied, "secret.use: db: role viewer may not secret.use what team red is shown"},
		{"bob", []api.SecretUse{use("db", "user.name", "")}, errs.Invalid, ""},
		{"bob", []api.SecretUse{use("db", "PASSWORD", "A=B")}, errs.Invalid, ""},
		{"bob", []api.SecretUse{use("db", "PASSWORD", ""), use("db", "user.name", "PASSWORD")}, errs.Invalid, ""},
		{"bob", []api.SecretUse{use("../db", "PASSWORD", "")}, errs.Invalid, ""},
		{"bob", []api.SecretUse{use("db", "a\x00b", "X")}, errs.Invalid, ""},
		{"bob", []api.SecretUse{{Ref: api.SecretRef{Name: "db", Key: "PASSWORD"}, Fork: "maybe"}}, errs.Invalid, ""},
		{"bob", make([]api.SecretUse, 101), errs.Limit, ""},
		{"alice", []api.SecretUse{use("deep", "TOKEN", "")}, errs.Other, ""}, // of one that acts for her
		{"ada", []api.SecretUse{use("own", "TOKEN", "")}, errs.Other, ""},
	} {
		_, err := w.guard.Resolve(ctx, w.caller(c.who), c.use)
		if c.kind == errs.Other && err == nil {
			continue
		}
		if !errs.Is(err, c.kind) || c.text != "" && err.Error() != c.text {
			t.Errorf("%s %v: %v, want %v %s", c.who, c.use, err, c.kind, c.text)
		}
	}
	_, err = w.guard.Resolve(ctx, nil, []api.SecretUse{use("db", "PASSWORD", "")})
	wantKind(t, err, errs.NotFound)

	// Lists and descriptions have no values.
	list, err := w.guard.Secrets(ctx, w.caller("bob"), "", 0)
	if err != nil || len(list.Secrets) != 1 || list.Secrets[0].Name != "db" || list.Secrets[0].Data != nil || strings.Join(list.Secrets[0].Keys, " ") != "PASSWORD user.name" {
		t.Fatalf("%+v, %v", list, err)
	}
	page, err := w.guard.Secrets(ctx, w.caller("alice"), "", 2)
	if err != nil || len(page.Secrets) != 2 || page.Next != "deep" {
		t.Fatalf("%+v, %v", page, err)
	}
	page, err = w.guard.Secrets(ctx, w.caller("alice"), page.Next, 2)
	if err != nil || len(page.Secrets) != 1 || page.Next != "" {
		t.Fatalf("%+v, %v", page, err)
	}
	if s, err := w.guard.Secret(ctx, w.caller("vera"), "db"); err != nil || s.Data != nil || s.Owner != "alice" {
		t.Fatalf("%+v, %v", s, err)
	}
	_, err = w.guard.Secret(ctx, w.caller("carol"), "db")
	wantKind(t, err, errs.NotFound)

	// In the store there is nothing in the clear, and nothing opens in another place.
	values := map[string][]byte{}
	err = w.keys.kv.Scan(ctx, kv.Range{}, func(k, v []byte) error {
		if bytes.Contains(v, []byte(hush)) {
			t.Errorf("%q is stored in the clear", k)
		}
		values[string(k)] = bytes.Clone(v)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b := &kv.Batch{}
	b.Put([]byte("a/s/v/own"), values["a/s/v/db"])
	if err := w.keys.kv.Commit(ctx, b); err != nil {
		t.Fatal(err)
	}
	_, err = w.guard.Resolve(ctx, w.caller("alice"), []api.SecretUse{use("own", "PASSWORD", "")})
	wantKind(t, err, errs.Corrupt)
}

func TestPutSecret(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	w.secret("alice", "db", "red", map[string]string{"A": "1", "B": "2"})
	big := strings.Repeat("x", MaxSecretValue)
	many := map[string]string{}
	for i := range 17 {
		many[fmt.Sprint("k", i)] = big
	}
	tooMany := map[string]string{}
	for i := range 101 {
		tooMany[fmt.Sprint("k", i)] = ""
	}
	put := func(who string, s api.Secret) (*api.Secret, bool, error) {
		return w.guard.PutSecret(ctx, w.caller(who), s)
	}
	for _, c := range []struct {
		who  string
		s    api.Secret
		kind errs.Kind
	}{
		{"alice", api.Secret{Name: "A"}, errs.Invalid},
		{"alice", api.Secret{Name: ""}, errs.Invalid},
		{"alice", api.Secret{Name: "x", Data: map[string]string{hush + "\n": ""}}, errs.Invalid},
		{"alice", api.Secret{Name: "x", Data: map[string]string{"A": hush + "\x00"}}, errs.Invalid},
		{"alice", api.Secret{Name: "x", Data: map[string]string{"A": hush + "\xff"}}, errs.Invalid},
		{"alice", api.Secret{Name: "x", Data: map[string]string{"A": big + hush}}, errs.TooLarge},
		{"alice", api.Secret{Name: "x", Data: many}, errs.TooLarge},
		{"alice", api.Secret{Name: "x", Data: tooMany}, errs.Limit},
		{"alice", api.Secret{Name: "x", Team: "green"}, errs.Denied},
		{"alice", api.Secret{Name: "x", Owner: "carol"}, errs.Denied},
		{"ada", api.Secret{Name: "x", Owner: "nobody"}, errs.Invalid},
		{"vera", api.Secret{Name: "x"}, errs.Denied},
		{"bob", api.Secret{Name: "db"}, errs.Denied},
		{"carol", api.Secret{Name: "db"}, errs.Exists},
		{"alice", api.Secret{Name: "db", Owner: "carol"}, errs.Denied},
	} {
		_, _, err := put(c.who, c.s)
		if !errs.Is(err, c.kind) || strings.Contains(err.Error(), hush) {
			t.Errorf("%s: %v, want %v", c.who, err, c.kind)
		}
	}
	s, created, err := put("ada", api.Secret{Name: "db", Data: map[string]string{"C": "3"}})
	if err != nil || created || s.Owner != "alice" || s.Team != "" || len(s.Keys) != 1 || s.Data != nil {
		t.Fatalf("%+v, %v, %v", s, created, err)
	}
	_, err = w.guard.Resolve(ctx, w.caller("alice"), []api.SecretUse{use("db", "A", "")})
	wantKind(t, err, errs.NotFound)
	if _, created, err = put("alice", api.Secret{Name: "forbot", Owner: "bot"}); err != nil || !created {
		t.Fatal(err)
	}
	wantKind(t, w.keys.DeletePrincipal(ctx, "bot"), errs.NotEmpty) // of subbot, and the secret
	wantKind(t, w.guard.DeleteSecret(ctx, w.caller("carol"), "db"), errs.NotFound)
	wantKind(t, w.guard.DeleteSecret(ctx, w.caller("alice"), "none"), errs.NotFound)
	if err := w.guard.DeleteSecret(ctx, w.caller("alice"), "db"); err != nil {
		t.Fatal(err)
	}
	_, err = w.guard.Secret(ctx, w.caller("alice"), "db")
	wantKind(t, err, errs.NotFound)
}

// TestSecretExchanged has another's secret take a name while the first one's use is being decided: its values mustn't be told.
func TestSecretExchanged(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	w.secret("alice", "db", "", map[string]string{"P": "alice's"})
	alice, bob := w.caller("alice"), w.caller("bob")
	store := &exchange{Store: w.keys.kv}
	store.do = func() {
		if err := w.guard.DeleteSecret(ctx, alice, "db"); err != nil {
			t.Error(err)
		}
		if _, _, err := w.guard.PutSecret(ctx, bob, api.Secret{Name: "db", Data: map[string]string{"P": "bob's"}}); err != nil {
			t.Error(err)
		}
	}
	w.keys.kv = store
	_, err := w.guard.Resolve(ctx, alice, []api.SecretUse{use("db", "P", "")})
	wantKind(t, err, errs.NotFound)
	if env, err := w.guard.Resolve(ctx, bob, []api.SecretUse{use("db", "P", "")}); err != nil || env[0] != "P=bob's" {
		t.Fatal(env, err)
	}
}

// exchange does something before values are read for the first time.
type exchange struct {
	kv.Store
	do func()
}

func (x *exchange) Get(ctx context.Context, key []byte) ([]byte, error) {
	if do := x.do; do != nil && strings.HasPrefix(string(key), valuesPrefix) {
		x.do = nil
		do()
	}
	return x.Store.Get(ctx, key)
}

func TestManySecrets(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	alice := w.caller("alice")
	for i := range MaxSecrets {
		s := &api.Secret{Name: fmt.Sprint("s", i), Owner: "alice"}
		sealed, err := w.keys.sealJSON(secretPrefix+s.Name, s)
		if err != nil {
			t.Fatal(err)
		}
		b := &kv.Batch{}
		b.Put([]byte(secretPrefix+s.Name), sealed)
		if err := w.keys.kv.Commit(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err := w.guard.PutSecret(ctx, alice, api.Secret{Name: "more"})
	wantKind(t, err, errs.Limit)
	if _, _, err := w.guard.PutSecret(ctx, alice, api.Secret{Name: "s7"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.guard.PutSecret(ctx, w.caller("bob"), api.Secret{Name: "more"}); err != nil {
		t.Fatal(err)
	}
}

func TestPeople(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	g := w.guard
	names := func(who string) string {
		t.Helper()
		l, err := g.ListPrincipals(ctx, w.caller(who), "", 0)
		if err != nil {
			t.Fatal(err)
		}
		s := ""
		for _, p := range l.Principals {
			s += p.Name + " "
		}
		return s
	}
	for who, want := range map[string]string{"carol": "carol ", "alice": "alice bot subbot ", "oscar": "ada alice bob bot carol oscar subbot vera "} {
		if got := names(who); got != want {
			t.Errorf("%s sees %s", who, got)
		}
	}
	if p, err := g.GetPrincipal(ctx, w.caller("alice"), "subbot"); err != nil || p.Parent != "bot" {
		t.Fatal(p, err)
	}
	for _, name := range []string{"alice", "nobody"} {
		_, err := g.GetPrincipal(ctx, w.caller("carol"), name)
		wantKind(t, err, errs.NotFound)
		_, _, err = g.PutPrincipal(ctx, w.caller("oscar"), api.Principal{Name: name, Role: "admin"})
		wantKind(t, err, errs.Denied)
		wantKind(t, g.DeletePrincipal(ctx, w.caller("carol"), name), errs.Denied)
	}
	_, err := g.GetPrincipal(ctx, w.caller("ada"), "nobody")
	wantKind(t, err, errs.NotFound)
	_, _, err = g.PutPrincipal(ctx, w.caller("carol"), api.Principal{Name: "carol", Role: "admin"})
	wantKind(t, err, errs.Denied)
	if _, created, err := g.PutPrincipal(ctx, w.caller("ada"), api.Principal{Name: "new", Role: "user"}); err != nil || !created {
		t.Fatal(err)
	}
	if err := g.DeletePrincipal(ctx, w.caller("ada"), "new"); err != nil {
		t.Fatal(err)
	}
	wantKind(t, g.DeletePrincipal(ctx, w.caller("ada"), RootPrincipal), errs.Denied)
}

func TestPeoplesKeys(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	g := w.guard
	b, yes := agentrun.RefID{9}, true
	alice := w.caller("alice")
	for _, c := range []struct {
		who  *Caller
		n    NewKey
		kind errs.Kind
	}{
		{alice, NewKey{Root: true}, errs.Denied},
		{alice, NewKey{Principal: "bob"}, errs.Denied},
		{alice, NewKey{Principal: RootPrincipal}, errs.Denied},
		{alice, NewKey{Role: "operator"}, errs.Denied},
		{alice, NewKey{Role: "king"}, errs.Invalid},
		{alice, NewKey{Grants: []Grant{{Bucket: b}}}, errs.Denied},
		{alice, NewKey{Principal: "alice", Grants: []Grant{{Bucket: b}}}, errs.Denied},
		{alice, NewKey{Sandbox: "s"}, errs.Invalid},
		{w.caller("oscar"), NewKey{Root: true}, errs.Denied},
		{w.caller("oscar"), NewKey{Principal: "ada"}, errs.Denied},
		{w.caller("ada"), NewKey{Principal: "nobody"}, errs.NotFound},
		{nil, NewKey{}, errs.Denied},
		{&Caller{Key: &Key{Grants: []Grant{{Bucket: b}}}}, NewKey{}, errs.Denied},
	} {
		_, err := g.CreateKey(ctx, c.who, c.n)
		if !errs.Is(err, c.kind) {
			t.Errorf("%+v: %v, want %v", c.n, err, c.kind)
		}
	}
	low, err := g.CreateKey(ctx, alice, NewKey{Role: api.RoleViewer, Expires: w.keys.now().Add(1 << 40)})
	if err != nil || low.Principal != "alice" {
		t.Fatal(low, err)
	}
	// What a key may less than its principal, the keys that it makes may less, too.
	lesser, err := w.keys.CallerOf(ctx, low.ID, "", "")
	if err != nil {
		t.Fatal(err)
	}
	next, err := g.CreateKey(ctx, lesser, NewKey{})
	if err != nil || next.Role != api.RoleViewer || !next.Expires.Equal(low.Expires) {
		t.Fatal(next, err)
	}
	_, err = g.CreateKey(ctx, lesser, NewKey{Role: api.RoleUser})
	wantKind(t, err, errs.Denied)
	_, err = g.RotateKey(ctx, lesser, alice.Key.ID)
	wantKind(t, err, errs.Denied)
	wantKind(t, g.RevokeKey(ctx, lesser, alice.Key.ID), errs.Denied)
	if k, err := g.RotateKey(ctx, lesser, next.ID); err != nil || k.Secret == next.Secret {
		t.Fatal(k, err)
	}
	bot, err := g.CreateKey(ctx, alice, NewKey{Principal: "bot"})
	if err != nil {
		t.Fatal(err)
	}
	if e := w.entries(AuditFilter{Action: "key.change", Allowed: &yes, Limit: 1000}); e[len(e)-1].Data["key"] != bot.ID || e[len(e)-1].Data["owner"] != "bot" {
		t.Errorf("%+v", e[len(e)-1])
	}
	if _, err := g.CreateKey(ctx, w.caller("ada"), NewKey{Root: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.keys.Create(ctx, NewKey{Sandbox: "s"}); err != nil {
		t.Fatal(err)
	}

	count := func(who *Caller, principal string, limit int) (n int) {
		t.Helper()
		for after := ""; ; {
			keys, next, err := g.ListKeys(ctx, who, principal, after, limit)
			if err != nil {
				t.Fatal(err)
			}
			n += len(keys)
			if after = next; next == "" {
				return n
			}
		}
	}
	if n := count(alice, "", 2); n != 3 {
		t.Errorf("alice has %d keys", n)
	}
	if n := count(alice, "bot", 0); n != 1 {
		t.Errorf("bot has %d keys", n)
	}
	all := 0
	if err := w.keys.List(ctx, func(*Key) error { all++; return nil }); err != nil {
		t.Fatal(err)
	}
	ada := w.caller("ada")
	if n := count(ada, "", 3); n != all {
		t.Errorf("%d keys are listed of %d, of which one is a sandbox's", n, all+1)
	}
	_, _, err = g.ListKeys(ctx, alice, "bob", "", 0)
	wantKind(t, err, errs.Denied)

	wantKind(t, g.RevokeKey(ctx, w.caller("bob"), alice.Key.ID), errs.NotFound)
	wantKind(t, g.RevokeKey(ctx, w.caller("bob"), "ARnone"), errs.NotFound)
	wantKind(t, g.RevokeKey(ctx, alice, "ROOT"), errs.NotFound)
	wantKind(t, g.RevokeKey(ctx, ada, "ROOT"), errs.Denied)
	wantKind(t, g.RevokeKey(ctx, ada, "a/../b"), errs.NotFound)
	for _, id := range []string{bot.ID, alice.Key.ID} {
		if err := g.RevokeKey(ctx, alice, id); err != nil {
			t.Fatal(err)
		}
		_, err := w.keys.Get(ctx, id)
		wantKind(t, err, errs.Unauthorized)
	}
}
