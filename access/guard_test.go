package access

import (
	"context"
	"strings"
	"testing"
	"time"

	"agentrun.dev"
	"agentrun.dev/api"
	"agentrun.dev/errs"
	"agentrun.dev/kv/memory"
)

// world is a store with people in it.
type world struct {
	*testing.T
	keys  *Keys
	guard *Guard
}

func newWorld(t *testing.T) *world {
	t.Helper()
	k := open(t, memory.New(), nil)
	w := &world{t, k, openGuard(t, k)}
	for _, p := range []api.Principal{
		{Name: "ada", Role: api.RoleAdmin},
		{Name: "oscar", Role: api.RoleOperator},
		{Name: "alice", Role: api.RoleUser, Teams: []string{"red", "blue"}},
		{Name: "bob", Role: api.RoleUser, Teams: []string{"red"}},
		{Name: "carol", Role: api.RoleUser},
		{Name: "vera", Role: api.RoleViewer, Teams: []string{"red"}},
		{Name: "bot", Kind: "agent", Role: api.RoleUser, Parent: "alice", Teams: []string{"blue"}},
		{Name: "subbot", Kind: "agent", Role: api.RoleUser, Parent: "bot"},
	} {
		w.set(p)
	}
	return w
}

func (w *world) set(p api.Principal) {
	w.Helper()
	if _, _, err := w.keys.SetPrincipal(context.Background(), p); err != nil {
		w.Fatal(err)
	}
}

func (w *world) caller(name string) *Caller {
	w.Helper()
	k, err := w.keys.Create(context.Background(), NewKey{Principal: name})
	if err != nil {
		w.Fatal(err)
	}
	c, err := w.keys.Caller(context.Background(), k.Token(), "192.0.2.1:99", "r1")
	if err != nil {
		w.Fatal(err)
	}
	return c
}

func TestGuard(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	sandbox := func(owner, visibility string) Thing {
		return Thing{Kind: "sandbox", ID: "s1", Owner: owner, Visibility: visibility}
	}
	for _, c := range []struct {
		who   string
		v     Verb
		thing Thing
		want  string // "" or the error
	}{
		{"alice", SandboxExec, sandbox("alice", ""), ""},
		{"bob", SandboxExec, sandbox("alice", ""), "sandbox.exec: s1: no such sandbox"},
		{"bob", SandboxExec, sandbox("alice", api.Team), ""},
		{"bob", SandboxEnd, sandbox("alice", api.Team), "sandbox.end: s1: role user may not sandbox.end what team red is shown"},
		{"carol", SandboxExec, sandbox("alice", api.Team), "sandbox.exec: s1: no such sandbox"},
		{"carol", SandboxExec, sandbox("alice", api.All), "sandbox.exec: s1: role user may not sandbox.exec what all are shown"},
		{"carol", SandboxFork, sandbox("alice", api.All), ""},
		{"vera", SandboxRead, sandbox("alice", api.Team), ""},
		{"vera", SandboxExec, sandbox("vera", ""), "sandbox.exec: s1: role viewer may not sandbox.exec"},
		{"vera", SandboxExec, sandbox("alice", api.Team), "sandbox.exec: s1: role viewer may not sandbox.exec what team red is shown"},
		{"vera", SandboxCreate, Thing{Kind: "sandbox"}, "sandbox.create: role viewer may not sandbox.create"},
		{"alice", SandboxEnd, sandbox("subbot", ""), ""}, // through bot
		{"bot", SandboxGet, sandbox("alice", ""), "sandbox.get: s1: no such sandbox"},
		{"bot", SandboxGet, sandbox("alice", api.Team), ""},
		{"subbot", SandboxGet, sandbox("alice", api.Team), "sandbox.get: s1: no such sandbox"},
		{"carol", SandboxEnd, Thing{Kind: "sandbox", ID: "s1", Called: "box", Owner: "alice"}, "sandbox.end: box: no such sandbox"},
		{"bob", SandboxEnd, Thing{Kind: "sandbox", ID: "s1", Called: "box", Owner: "alice", Visibility: api.All},
			"sandbox.end: box: role user may not sandbox.end what all are shown"},
		{"oscar", SandboxEnd, sandbox("alice", ""), ""},
		{"oscar", NodeChange, Thing{Kind: "node", ID: "n1"}, "node.change: n1: role operator may not node.change"},
		{"oscar", SecretUse, Thing{Kind: "secret", ID: "pw", Owner: "alice"}, "secret.use: pw: no such secret"},
		{"ada", SecretUse, Thing{Kind: "secret", ID: "pw", Owner: "alice"}, ""},
		{"bob", SecretUse, Thing{Kind: "secret", ID: "pw", Owner: "alice", Visibility: api.Team, Team: "blue"}, "secret.use: pw: no such secret"},
		{"bob", SecretUse, Thing{Kind: "secret", ID: "pw", Owner: "alice", Visibility: api.Team, Team: "red"}, ""},
		{"alice", SandboxGet, Thing{Kind: "sandbox", ID: "warm"}, "sandbox.get: warm: no such sandbox"},
		{"alice", TemplateGet, Thing{Kind: "template", ID: "t", Owner: "oscar"}, ""},
		{"alice", TemplateChange, Thing{Kind: "template", ID: "t", Owner: "alice"}, "template.change: t: role user may not template.change"},
		{"alice", SandboxCreate, Thing{Kind: "sandbox", Owner: "carol"}, "sandbox.create: role user may not sandbox.create what isn't its own"},
		{"alice", SandboxCreate, Thing{Kind: "sandbox", Owner: "bot"}, ""},
		{"oscar", SandboxCreate, Thing{Kind: "sandbox", Owner: "carol"}, ""},
		{"alice", SandboxGet, sandbox("gone", api.Team), "sandbox.get: s1: no such sandbox"},
		{"oscar", SandboxEnd, sandbox("gone", api.Team), ""},
	} {
		who := w.caller(c.who)
		err := w.guard.Check(ctx, who, c.v, c.thing)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s %s %+v: %q, want %q", c.who, c.v, c.thing, got, c.want)
		}
		if c.v == SandboxGet && w.guard.Sees(who, c.thing) != (err == nil) {
			t.Errorf("%s %+v: seen, or not, unlike what may be got", c.who, c.thing)
		}
	}
	for _, nobody := range []*Caller{nil, {}, {Key: &Key{ID: "x", Grants: []Grant{{}}}}} {
		for _, p := range policy {
			if w.guard.Check(ctx, nobody, p.verb, Thing{Kind: "sandbox", ID: "s", Visibility: api.All}) == nil || w.guard.Check(ctx, nobody, p.verb, Thing{}) == nil {
				t.Errorf("nobody may %s", p.verb)
			}
		}
		if w.guard.Sees(nobody, Thing{Kind: "template", ID: "t"}) {
			t.Error("nobody sees templates")
		}
	}
	var none *Guard
	wantKind(t, none.Check(ctx, System("test"), SandboxGet, Thing{}), errs.Unavailable)
	wantKind(t, (&Guard{}).Check(ctx, System("test"), SandboxGet, Thing{}), errs.Unavailable)
}

func TestCaller(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	k := w.keys
	root, err := k.Caller(ctx, "ROOT.rootsecret", "remote", "req")
	if err != nil || root.Principal.Name != RootPrincipal || root.Principal.Role != api.RoleAdmin || root.Remote != "remote" || root.Request != "req" {
		t.Fatalf("%+v, %v", root, err)
	}
	stored, err := k.Create(ctx, NewKey{Name: "second root", Root: true})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := k.Caller(ctx, stored.Token(), "", ""); err != nil || c.Principal.Name != RootPrincipal {
		t.Fatalf("%+v, %v", c, err)
	}
	scoped, err := k.Create(ctx, NewKey{Grants: []Grant{{Bucket: agentrun.RefID{1}}}})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := k.Caller(ctx, scoped.Token(), "", ""); err != nil || c.Principal.Name != "" || c.Key.Root {
		t.Fatalf("%+v, %v", c, err)
	}
	for _, token := range []string{"", "x", stored.ID + ".wrong", "ROOT.wrong", "AR.x", "a/k.x"} {
		_, err := k.Caller(ctx, token, "", "")
		wantKind(t, err, errs.Unauthorized)
	}

	// A change is in force at once, though keys and principals are kept in memory.
	key, err := k.Create(ctx, NewKey{Principal: "subbot"})
	if err != nil {
		t.Fatal(err)
	}
	role := func(want string) {
		t.Helper()
		c, err := k.Caller(ctx, key.Token(), "", "")
		if err != nil {
			want = "refused: " + err.Error()
		}
		if c == nil || c.Principal.Role != want {
			t.Fatalf("role: %+v, want %s", c, want)
		}
	}
	role(api.RoleUser)
	alice := api.Principal{Name: "alice", Role: api.RoleViewer}
	w.set(alice)
	role(api.RoleViewer)
	alice.Disabled = true
	w.set(alice)
	_, err = k.Caller(ctx, key.Token(), "", "")
	wantKind(t, err, errs.Unauthorized)
	_, err = k.Get(ctx, key.ID)
	wantKind(t, err, errs.Unauthorized)
	alice.Disabled, alice.Role = false, api.RoleUser
	w.set(alice)
	role(api.RoleUser)
	if c, err := k.CallerOf(ctx, key.ID, "", ""); err != nil || c.Principal.Name != "subbot" {
		t.Fatalf("%+v, %v", c, err)
	}
	if err := k.DeletePrincipal(ctx, "subbot"); err != nil {
		t.Fatal(err)
	}
	_, err = k.Caller(ctx, key.Token(), "", "")
	wantKind(t, err, errs.Unauthorized)
	// A later one of the name has nothing of it.
	w.set(api.Principal{Name: "subbot", Role: api.RoleAdmin})
	_, err = k.Caller(ctx, key.Token(), "", "")
	wantKind(t, err, errs.Unauthorized)
}

func TestKeyOfPrincipal(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	b := agentrun.RefID{3}
	get := func(n NewKey) *Key {
		t.Helper()
		k, err := w.keys.Create(ctx, n)
		if err != nil {
			t.Fatal(err)
		}
		k, err = w.keys.Get(ctx, k.ID)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	for name, want := range map[string][2]bool{"ada": {true, true}, "oscar": {true, false}, "alice": {false, false}, "vera": {false, false}} {
		k := get(NewKey{Principal: name})
		if got := [2]bool{k.Allows(Manage, b) && k.Allows(Manage, agentrun.RefID{}), k.Root}; got != want {
			t.Errorf("%s manages buckets, is root: %v, want %v", name, got, want)
		}
	}
	if k := get(NewKey{Principal: "ada", Role: api.RoleUser, Grants: []Grant{{Bucket: b}}}); k.Root || k.Allows(Write, b) || !k.Allows(Read, b) {
		t.Errorf("%+v has more than its role and grants", k)
	}
	for name, want := range map[string]bool{"ada": true, "alice": true, "vera": false} {
		if k := get(NewKey{Principal: name}); k.MayRun() != want {
			t.Errorf("%s may run: %v", name, !want)
		}
	}
	if get(NewKey{Sandbox: "s"}).MayRun() || get(NewKey{Principal: "alice", Role: api.RoleViewer}).MayRun() || !get(NewKey{Grants: []Grant{{Bucket: b}}}).MayRun() {
		t.Error("who may run")
	}
	// A role above the principal's gives nothing.
	k := get(NewKey{Principal: "vera", Role: api.RoleAdmin})
	if c, err := w.keys.CallerOf(ctx, k.ID, "", ""); err != nil || c.Principal.Role != api.RoleViewer || k.Root {
		t.Errorf("%+v, %v", c, err)
	}
	for _, n := range []NewKey{
		{Root: true, Principal: "ada"}, {Root: true, Role: api.RoleUser}, {Role: api.RoleUser}, {Principal: "ada", Role: "king"},
		{Root: true, Sandbox: "s"}, {Sandbox: "s", Principal: "ada"}, {Sandbox: "a/b"},
	} {
		_, err := w.keys.Create(ctx, n)
		wantKind(t, err, errs.Invalid)
	}
	_, err := w.keys.Create(ctx, NewKey{Principal: "nobody"})
	wantKind(t, err, errs.NotFound)
	err = w.keys.SetGrants(ctx, k.ID, true, nil)
	wantKind(t, err, errs.Invalid)
}

func TestSandboxKeys(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	g := []Grant{{Bucket: agentrun.RefID{1}, Write: true}}
	var ids []string
	for range 3 {
		k, err := w.keys.Create(ctx, NewKey{Sandbox: "s1", Grants: g})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.keys.Get(ctx, k.ID); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, k.ID)
	}
	other, err := w.keys.Create(ctx, NewKey{Sandbox: "s10", Grants: g})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.keys.Revoke(ctx, ids[2]); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.keys.RevokeSandbox(ctx, "s1"); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range ids {
		_, err := w.keys.Get(ctx, id)
		wantKind(t, err, errs.Unauthorized)
	}
	if k, err := w.keys.Get(ctx, other.ID); err != nil || k.Sandbox != "s10" {
		t.Fatal(k, err)
	}
	wantKind(t, w.keys.RevokeSandbox(ctx, "a/b"), errs.Invalid)
}

func TestPrincipals(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	long := strings.Repeat("x", 64)
	many := func(n int) (s []string) {
		for i := range n {
			s = append(s, "t"+strings.Repeat("a", i+1))
		}
		return s
	}
	for _, c := range []struct {
		p    api.Principal
		kind errs.Kind
	}{
		{api.Principal{Name: "", Role: "user"}, errs.Invalid},
		{api.Principal{Name: long, Role: "user"}, errs.Invalid},
		{api.Principal{Name: "A", Role: "user"}, errs.Invalid},
		{api.Principal{Name: "-a", Role: "user"}, errs.Invalid},
		{api.Principal{Name: "a/b", Role: "user"}, errs.Invalid},
		{api.Principal{Name: RootPrincipal, Role: "admin", Disabled: true}, errs.Denied},
		{api.Principal{Name: "x"}, errs.Invalid},
		{api.Principal{Name: "x", Role: "king"}, errs.Invalid},
		{api.Principal{Name: "x", Role: "user", Kind: "cat"}, errs.Invalid},
		{api.Principal{Name: "x", Role: "user", Teams: []string{"a", "a"}}, errs.Invalid},
		{api.Principal{Name: "x", Role: "user", Teams: []string{"A"}}, errs.Invalid},
		{api.Principal{Name: "x", Role: "user", Teams: many(MaxTeams + 1)}, errs.Limit},
		{api.Principal{Name: "x", Role: "user", Tags: map[string]string{"a b": ""}}, errs.Invalid},
		{api.Principal{Name: "x", Role: "user", Tags: map[string]string{"a": "\n"}}, errs.Invalid},
		{api.Principal{Name: "x", Role: "user", Tags: map[string]string{"a": strings.Repeat("x", 256)}}, errs.TooLarge},
		{api.Principal{Name: "x", Role: "user", Budget: &api.Budget{CPUSeconds: -1}}, errs.Invalid},
		{api.Principal{Name: "x", Role: "user", Parent: "x"}, errs.Invalid},
		{api.Principal{Name: "x", Role: "user", Parent: "nobody"}, errs.Invalid},
		{api.Principal{Name: "alice", Role: "user", Parent: "subbot"}, errs.Invalid},
		{api.Principal{Name: "x", Role: "operator", Parent: "alice"}, errs.Denied},
		{api.Principal{Name: "x", Role: "user", Parent: "carol", Teams: []string{"red"}}, errs.Denied},
	} {
		_, _, err := w.keys.SetPrincipal(ctx, c.p)
		if !errs.Is(err, c.kind) {
			t.Errorf("%+v: %v, want %v", c.p, err, c.kind)
		}
	}
	p, created, err := w.keys.SetPrincipal(ctx, api.Principal{Name: "x", Role: "user", Parent: RootPrincipal, Teams: []string{"b", "a"},
		Tags: map[string]string{"cost": "centre 5"}, Budget: &api.Budget{Sandboxes: 2}})
	if err != nil || !created || p.Created.IsZero() || p.Kind != "user" || p.Teams[0] != "a" {
		t.Fatal(p, created, err)
	}
	q, created, err := w.keys.SetPrincipal(ctx, api.Principal{Name: "x", Role: "viewer"})
	if err != nil || created || !q.Created.Equal(p.Created) || q.Budget != nil {
		t.Fatal(q, created, err)
	}
	wantKind(t, w.keys.DeletePrincipal(ctx, RootPrincipal), errs.Denied)
	wantKind(t, w.keys.DeletePrincipal(ctx, "nobody"), errs.NotFound)
	wantKind(t, w.keys.DeletePrincipal(ctx, "../x"), errs.NotFound)
	wantKind(t, w.keys.DeletePrincipal(ctx, "alice"), errs.NotEmpty)
	if err := w.keys.DeletePrincipal(ctx, "x"); err != nil {
		t.Fatal(err)
	}
	var names []string
	err = w.keys.Principals(ctx, "bot", func(p *api.Principal) error { names = append(names, p.Name); return nil })
	if got := strings.Join(names, " "); err != nil || got != "carol oscar subbot vera" {
		t.Fatal(got, err)
	}

	// Chains end at MaxDepth, from above and from below.
	parent := ""
	for i := range MaxDepth {
		name := "c" + strings.Repeat("x", i)
		w.set(api.Principal{Name: name, Role: "user", Parent: parent})
		parent = name
	}
	_, _, err = w.keys.SetPrincipal(ctx, api.Principal{Name: "deeper", Role: "user", Parent: parent})
	wantKind(t, err, errs.Limit)
	_, _, err = w.keys.SetPrincipal(ctx, api.Principal{Name: "c", Role: "user", Parent: "carol"})
	wantKind(t, err, errs.Limit)
	if chain, err := w.keys.Chain(ctx, parent); err != nil || len(chain) != MaxDepth || chain[0].Name != parent || chain[MaxDepth-1].Name != "c" {
		t.Fatal(len(chain), err)
	}

	// They are as they were after a restart, and sealed: a record doesn't open under another name.
	k2 := open(t, w.keys.kv, func() time.Time { return time.Unix(1, 0) })
	if p, err := k2.Principal(ctx, "alice"); err != nil || len(p.Teams) != 2 {
		t.Fatal(p, err)
	}
	value, err := w.keys.kv.Get(ctx, []byte("a/p/ada"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.keys.decodePrincipal("alice", value)
	wantKind(t, err, errs.Corrupt)
}

// TestCallerReadsNothing sees that a caller who was seen before costs no look into the store.
func TestCallerReadsNothing(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	key, err := w.keys.Create(ctx, NewKey{Principal: "subbot"})
	if err != nil {
		t.Fatal(err)
	}
	ask := func() {
		c, err := w.keys.Caller(ctx, key.Token(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		if err := w.guard.Check(ctx, c, SandboxExec, Thing{Kind: "sandbox", ID: "s", Owner: "subbot"}); err != nil {
			t.Fatal(err)
		}
	}
	ask()
	store := &counting{Store: w.keys.kv}
	w.keys.kv = store
	for range 10 {
		ask()
	}
	if store.reads != 0 {
		t.Errorf("%d reads", store.reads)
	}
}

func openGuard(t *testing.T, k *Keys) *Guard {
	t.Helper()
	g, err := NewGuard(context.Background(), k, AuditOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return g
}
