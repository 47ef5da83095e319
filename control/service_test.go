package control

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/control/controltest"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

// as makes a principal and returns it as a caller.
func (l *lab) as(p api.Principal) *access.Caller {
	l.t.Helper()
	if p.Role == "" {
		p.Role = api.RoleUser
	}
	if _, _, err := l.keys.SetPrincipal(l.ctx, p); err != nil {
		l.t.Fatalf("principal: %v", err)
	}
	return &access.Caller{Principal: p}
}

func TestTemplates(t *testing.T) {
	l := newLab(t, 1)
	ctx := l.ctx
	put := func(spec api.TemplateSpec) *api.Template {
		t.Helper()
		v, _, err := l.PutTemplate(ctx, admin, "t", spec, nil)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := put(api.TemplateSpec{Image: "python:3.12-slim", Init: []string{"echo hello", "fail"}}); v.Version != 1 || v.State != api.BuildQueued || v.Spec.Language != api.Python || len(v.Notes) != 1 {
		t.Errorf("put: %+v", v)
	}
	l.buildAll()
	v, err := l.Template(ctx, admin, "t", 0)
	if err != nil || v.State != api.BuildFailed || !strings.Contains(v.Error, "fail") {
		t.Errorf("a failed build: %+v, %v", v, err)
	}
	if _, err := l.CreateSandbox(ctx, admin, api.CreateSandbox{Template: "t"}); !errs.Is(err, errs.Conflict) {
		t.Errorf("from a failed build: %v", err)
	}
	var log []string
	if err := l.BuildLog(ctx, admin, "t", 1, true, func(line api.BuildLine) error { log = append(log, line.Text); return nil }); err != nil || strings.Join(log, "|") != "+ echo hello|+ fail" {
		t.Errorf("log: %q, %v", log, err)
	}
	if v := put(api.TemplateSpec{Init: []string{"echo hello"}}); v.Version != 2 {
		t.Errorf("another spec: %+v", v)
	}
	if _, changed, err := l.PutTemplate(ctx, admin, "t", api.TemplateSpec{Init: []string{"echo hello"}}, nil); err != nil || changed {
		t.Errorf("the same spec: %v, %v", changed, err)
	}
	// A build that a kill ends begins again.
	l.hosts[0].Hook = func(_ context.Context, op, _ string, after bool) error {
		if op == "build" && after {
			l.k.mu.Lock()
			l.k.dead = true
			l.k.mu.Unlock()
		}
		return nil
	}
	l.buildAll()
	l.reopen()
	if v, err := l.Template(ctx, admin, "t", 2); err != nil || v.State != api.BuildRunning {
		t.Errorf("interrupted: %+v, %v", v, err)
	}
	l.buildAll()
	if v, err := l.Template(ctx, admin, "t", 2); err != nil || v.State != api.BuildReady || v.Progress != 1 || !v.Latest {
		t.Errorf("built: %+v, %v", v, err)
	}
	if v, err := l.Rebuild(ctx, admin, "t"); err != nil || v.Version != 3 {
		t.Errorf("rebuilt: %+v, %v", v, err)
	}
	if list, err := l.TemplateVersions(ctx, admin, "t", Page{Limit: 2}); err != nil || len(list.Templates) != 2 || list.Next == "" {
		t.Errorf("versions: %+v, %v", list, err)
	} else if rest, err := l.TemplateVersions(ctx, admin, "t", Page{Cursor: list.Next}); err != nil || len(rest.Templates) != 1 || rest.Templates[0].Version != 3 {
		t.Errorf("more versions: %+v, %v", rest, err)
	}
	if _, err := l.CreateTemplate(ctx, admin, api.CreateTemplate{Name: "t"}); !errs.Is(err, errs.Exists) {
		t.Errorf("a taken name: %v", err)
	}
	if _, err := l.PutPool(ctx, admin, "p", api.PoolSpec{Template: "t"}); err != nil {
		t.Fatal(err)
	}
	if err := l.DeleteTemplate(ctx, admin, "t"); !errs.Is(err, errs.NotEmpty) {
		t.Errorf("with a pool: %v", err)
	}
	if err := errors.Join(l.DeletePool(ctx, admin, "p"), l.DeleteTemplate(ctx, admin, "t")); err != nil {
		t.Error(err)
	}
	if _, err := l.Template(ctx, admin, "t", 0); !errs.Is(err, errs.NotFound) {
		t.Errorf("deleted: %v", err)
	}
	if v := put(api.TemplateSpec{}); v.Version != 4 {
		t.Errorf("the version after a deletion: %d: an image of a former one could be taken for it", v.Version)
	}
	p := l.peer("node-0")
	l.poll(ctx, p)
	if images, err := l.hosts[0].Images(ctx); err != nil || len(images) != 0 {
		t.Errorf("images of a deleted template stay: %v", images)
	}
}

func TestBadRequests(t *testing.T) {
	l := newLab(t, 1)
	l.pool("p", 1)
	ctx := l.ctx
	template := func(s api.TemplateSpec) error {
		_, _, err := l.PutTemplate(ctx, admin, "t", s, nil)
		return err
	}
	create := func(s api.CreateSandbox) error {
		if s.Pool == "" && s.Snapshot == "" && s.Template == "" {
			s.Template = "p"
		}
		_, err := l.CreateSandbox(ctx, admin, s)
		return err
	}
	if err := create(api.CreateSandbox{Name: "taken"}); err != nil {
		t.Fatal(err)
	}
	id := l.idOf("taken")
	_, forked := l.ForkSandbox(ctx, admin, id, api.ForkSandbox{Count: api.MaxForks + 1})
	_, merged := l.Merge(ctx, admin, id, api.MergeSandbox{})
	_, promoted := l.Promote(ctx, admin, id)
	_, self := l.Diff(ctx, admin, id, id, nil, func(api.FileChange) error { return nil })
	big := map[string]string{"A": strings.Repeat("x", maxEnv)}
	for name, c := range map[string]struct {
		err  error
		kind errs.Kind
	}{
		"image":             {template(api.TemplateSpec{Image: "windows:11"}), errs.NotFound},
		"engine":            {template(api.TemplateSpec{Engine: "vm"}), errs.Invalid},
		"dir":               {template(api.TemplateSpec{Dir: "work"}), errs.Invalid},
		"volume":            {template(api.TemplateSpec{Volumes: []api.Volume{{Name: "a"}, {Name: "a", Path: "/b"}}}), errs.Invalid},
		"fork policy":       {template(api.TemplateSpec{Volumes: []api.Volume{{Name: "a", ForkPolicy: "Copy"}}}), errs.Invalid},
		"network":           {template(api.TemplateSpec{Network: api.NetworkPolicy{Allow: []string{"a b"}}}), errs.Invalid},
		"lease":             {template(api.TemplateSpec{Lease: api.Lease{Duration: -1}}), errs.Invalid},
		"no source":         {func() error { _, err := l.CreateSandbox(ctx, admin, api.CreateSandbox{}); return err }(), errs.Invalid},
		"two sources":       {create(api.CreateSandbox{Template: "p", Pool: "p"}), errs.Invalid},
		"unknown template":  {create(api.CreateSandbox{Template: "q"}), errs.NotFound},
		"unknown pool":      {create(api.CreateSandbox{Pool: "q"}), errs.NotFound},
		"unknown snapshot":  {create(api.CreateSandbox{Snapshot: "q"}), errs.NotFound},
		"name":              {create(api.CreateSandbox{Name: "A"}), errs.Invalid},
		"a name like an id": {create(api.CreateSandbox{Name: id}), errs.Invalid},
		"taken name":        {create(api.CreateSandbox{Name: "taken"}), errs.Exists},
		"taken name, warm":  {create(api.CreateSandbox{Pool: "p", Name: "taken"}), errs.Exists},
		"environment":       {create(api.CreateSandbox{Env: map[string]string{"A-B": ""}}), errs.Invalid},
		"large environment": {create(api.CreateSandbox{Env: big}), errs.TooLarge},
		"wider network":     {create(api.CreateSandbox{Network: &api.NetworkPolicy{Allow: []string{"example.org"}}}), errs.Denied},
		"visibility":        {create(api.CreateSandbox{Visibility: "some"}), errs.Invalid},
		"unknown secret":    {create(api.CreateSandbox{Secrets: []api.SecretUse{{Ref: api.SecretRef{Name: "s", Key: "K"}}}}), errs.NotFound},
		"too many forks":    {forked, errs.Invalid},
		"merge of a root":   {merged, errs.Invalid},
		"promote a root":    {promoted, errs.Invalid},
		"compare to itself": {self, errs.Invalid},
		"long id":           {func() error { _, err := l.Sandbox(ctx, admin, strings.Repeat("x", 9999)); return err }(), errs.NotFound},
		"bad bytes":         {func() error { _, err := l.Sandbox(ctx, admin, "a/\x00\xff"); return err }(), errs.NotFound},
		"limit":             {func() error { _, err := l.Sandboxes(ctx, admin, Filter{Page: Page{Limit: -1}}); return err }(), errs.Invalid},
	} {
		if !errs.Is(c.err, c.kind) {
			t.Errorf("%s: %v, want %v", name, c.err, c.kind)
		}
	}
	l.check("afterwards")
	if n := l.index.claimed["p"]; n != 0 {
		t.Errorf("%d claimed", n)
	}
}

func TestPools(t *testing.T) {
	l := newLab(t, 1)
	ctx := l.ctx
	l.pool("p", 3)
	if _, err := l.PutPool(ctx, admin, "p", api.PoolSpec{Template: "p", Replicas: 2, MaxSandboxes: 2}); err != nil {
		t.Fatal(err)
	}
	l.fill()
	p, err := l.Pool(ctx, admin, "p")
	if err != nil || p.Ready != 2 || p.Snapshots != 2 || p.State != "ready" {
		t.Errorf("fewer: %+v, %v", p, err)
	}
	r, err := l.Reserve(ctx, admin, api.Reserve{Pool: "p"})
	if err != nil {
		t.Fatal(err)
	}
	held := l.reservations.get(r.ID).Sandbox
	var ids []string
	for range 2 {
		s, err := l.CreateSandbox(ctx, admin, api.CreateSandbox{Pool: "p"})
		if err != nil {
			t.Fatal(err)
		}
		if s.ID == held {
			t.Error("somebody else got the reserved one")
		}
		ids = append(ids, s.ID)
	}
	if _, err := l.CreateSandbox(ctx, admin, api.CreateSandbox{Pool: "p"}); !errs.Is(err, errs.Limit) {
		t.Errorf("beyond the pool's bound: %v", err)
	}
	if err := l.ReleaseSandbox(ctx, admin, ids[0]); err != nil {
		t.Fatal(err)
	}
	if s, err := l.CreateSandbox(ctx, admin, api.CreateSandbox{Pool: "p", Reservation: r.ID}); err != nil || s.ID != held {
		t.Errorf("the reserved one: %+v, %v", s, err)
	}
	if _, ok := l.hosts[0].Sandboxes()[ids[0]]; ok {
		t.Error("what was given back is still there")
	}
	l.fill()
	// A new version replaces what is warm, not what is claimed.
	if _, _, err := l.PutTemplate(ctx, admin, "p", api.TemplateSpec{Init: []string{"echo new"}}, nil); err != nil {
		t.Fatal(err)
	}
	l.buildAll()
	l.fill()
	for id, s := range l.hosts[0].Sandboxes() {
		if want := "p@2"; !s.Claimed && s.Image != want || s.Claimed && s.Image == want {
			t.Errorf("%s stands at %s", id, s.Image)
		}
	}
	// An empty pool isn't in the way: a sandbox is started.
	if _, err := l.PutPool(ctx, admin, "p", api.PoolSpec{Template: "p"}); err != nil {
		t.Fatal(err)
	}
	l.fill()
	if s, err := l.CreateSandbox(ctx, admin, api.CreateSandbox{Pool: "p"}); err != nil || s.State != api.StateRunning || s.Pool != "p" {
		t.Errorf("from an empty pool: %+v, %v", s, err)
	}
	// Starts that fail are tried less and less often.
	l.hosts[0].Hook = func(_ context.Context, op, _ string, _ bool) error {
		if op == "start" {
			return errs.Msg(errs.Unavailable, "start", "", "broken")
		}
		return nil
	}
	if _, err := l.PutPool(ctx, admin, "p", api.PoolSpec{Template: "p", Replicas: 5}); err != nil {
		t.Fatal(err)
	}
	before := l.hosts[0].Calls("end")
	l.fill()
	if n := l.hosts[0].Calls("end") - before; n > 8 { // each that failed was ended
		t.Errorf("%d tries at once", n)
	}
	if p, err := l.Pool(ctx, admin, "p"); err != nil || p.State != "failed" || !strings.Contains(p.Error, "broken") {
		t.Errorf("a pool that can't be filled: %+v, %v", p, err)
	}
	if err := l.DeletePool(ctx, admin, "p"); err != nil {
		t.Error(err)
	}
	l.fill()
	l.check("without the pool")
}

// TestStorm claims from a pool with many at once: each gets a sandbox of its own.
func TestStorm(t *testing.T) {
	w := newWorld(t)
	w.pool("p", 40)
	var got sync.Map
	var failed atomic.Int32
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			for n := range 4 {
				s, err := w.CreateSandbox(context.Background(), admin, api.CreateSandbox{Pool: "p", Name: fmt.Sprintf("s-%d-%d", i, n), Env: map[string]string{"I": fmt.Sprint(i)}})
				if err != nil {
					t.Errorf("claim: %v", err)
					failed.Add(1)
					return
				}
				if _, twice := got.LoadOrStore(s.ID, true); twice {
					t.Errorf("%s was claimed twice", s.ID)
				}
				if env := w.run(s.ID, "env"); env != fmt.Sprintf("I=%d", i) {
					t.Errorf("env %q of %d", env, i)
				}
				if n%2 == 0 {
					if _, err := w.EndSandbox(context.Background(), admin, s.ID); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	for id, s := range w.hosts["local"].Sandboxes() {
		if s.Claims > 1 {
			t.Errorf("%s was claimed %d times", id, s.Claims)
		}
	}
	// The same name at once: one gets it.
	var made atomic.Int32
	for range 16 {
		all.Go(func() {
			_, err := w.CreateSandbox(context.Background(), admin, api.CreateSandbox{Pool: "p", Name: "one"})
			switch {
			case err == nil:
				made.Add(1)
			case !errs.Is(err, errs.Exists):
				t.Errorf("a taken name: %v", err)
			}
		})
	}
	all.Wait()
	if made.Load() != 1 {
		t.Errorf("%d have the name", made.Load())
	}
	w.full("p")
}

// full is a store that has no space.
type full struct {
	kv.Store
	now atomic.Bool
}

func (f *full) Commit(ctx context.Context, b *kv.Batch) error {
	if f.now.Load() && !b.Reclaim {
		return errs.New(errs.NoSpace, "commit", "", nil)
	}
	return f.Store.Commit(ctx, b)
}

func TestFullDisk(t *testing.T) {
	l := newLab(t, 1)
	l.pool("p", 2)
	f := &full{Store: l.store}
	l.o.KV = f
	s, err := l.CreateSandbox(l.ctx, admin, api.CreateSandbox{Pool: "p", Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	f.now.Store(true)
	_, claimed := l.CreateSandbox(l.ctx, admin, api.CreateSandbox{Pool: "p"})
	_, forked := l.ForkSandbox(l.ctx, admin, s.ID, api.ForkSandbox{})
	_, slept := l.Hibernate(l.ctx, admin, s.ID)
	_, _, put := l.PutTemplate(l.ctx, admin, "q", api.TemplateSpec{}, nil)
	for what, err := range map[string]error{"claim": claimed, "fork": forked, "hibernate": slept, "put": put} {
		if !errs.Is(err, errs.NoSpace) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := l.run("a", "set", "f", "x"); err != nil {
		t.Errorf("a sandbox that runs: %v", err)
	}
	f.now.Store(false)
	l.clock.since = func() time.Duration { return time.Hour } // what was put off is due
	l.settle()
	l.fill()
	l.check("with space again")
	if got, err := l.run("a", "get", "f"); err != nil || got != "x" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestUsageAndBudgets(t *testing.T) {
	l, h := timed(t)
	l.pool("p", 0)
	l.as(api.Principal{Name: "boss", Budget: &api.Budget{CPUSeconds: 100, Sandboxes: 3}})
	who := l.as(api.Principal{Name: "agent", Kind: "agent", Parent: "boss"})
	create := func(name string) error {
		_, err := l.CreateSandbox(l.ctx, who, api.CreateSandbox{Template: "p", Name: name})
		return err
	}
	if err := errors.Join(create("a"), create("b"), create("c")); err != nil {
		t.Fatal(err)
	}
	if err := create("d"); !errs.Is(err, errs.Limit) {
		t.Errorf("beyond the number: %v", err)
	}
	if _, err := l.ForkSandbox(l.ctx, who, "a", api.ForkSandbox{}); !errs.Is(err, errs.Limit) {
		t.Errorf("a fork beyond the number: %v", err)
	}
	if _, err := l.Hibernate(l.ctx, who, "c"); err != nil {
		t.Fatal(err)
	}
	p := l.peer("node-0")
	cpu := func(id, d string) {
		t.Helper()
		if _, err := l.run(id, "cpu", d); err != nil {
			t.Fatal(err)
		}
	}
	cpu("a", "30s")
	h.move(10 * time.Second)
	l.sample(l.ctx, p)
	l.sample(l.ctx, p) // the same counters again
	u, err := l.SandboxUsage(l.ctx, who, "a")
	if err != nil || u.CPUSeconds != 30 || u.Seconds < 9.9 || u.Seconds > 10.1 || u.MemoryGiBSeconds <= 0 || u.Memory != 1<<20 {
		t.Errorf("used: %+v, %v", u, err)
	}
	if _, err := l.Hibernate(l.ctx, who, "a"); err != nil {
		t.Fatal(err)
	}
	cpu("a", "20s") // in another epoch
	l.sample(l.ctx, p)
	if u, err := l.SandboxUsage(l.ctx, who, "a"); err != nil || u.CPUSeconds != 50 {
		t.Errorf("over two epochs: %+v, %v", u, err)
	}
	if err := l.flushUsage(l.ctx); err != nil {
		t.Fatal(err)
	}
	l.reopen()
	l.setClock(h)
	p = l.peer("node-0")
	l.sample(l.ctx, p)
	for _, name := range []string{"agent", "boss"} {
		if u, err := l.PrincipalUsage(l.ctx, admin, name); err != nil || u.Usage.CPUSeconds != 50 || u.Running != 2 {
			t.Errorf("%s after a restart: %+v, %v", name, u, err)
		}
	}
	cpu("b", "60s")
	l.sample(l.ctx, p)
	if got := l.state("a") + l.state("b"); got != api.StateHibernated+api.StateHibernated {
		t.Errorf("with the budget used up: %s", got)
	}
	if n := l.events(api.EventBudget); n != 1 {
		t.Errorf("%d events of the budget", n)
	}
	_, err = l.Use(l.ctx, who, "b", access.SandboxExec)
	if !errs.Is(err, errs.Limit) || !strings.Contains(err.Error(), "used up") {
		t.Errorf("a use beyond the budget: %v", err)
	}
	l.as(api.Principal{Name: "boss", Budget: &api.Budget{CPUSeconds: 1000}})
	if _, err := l.run("b", "get", "f"); err != nil {
		t.Errorf("with a larger budget: %v", err)
	}
	if _, err := l.EndSandbox(l.ctx, who, "b"); err != nil {
		t.Fatal(err)
	}
	if u, err := l.PrincipalUsage(l.ctx, admin, "boss"); err != nil || u.Usage.CPUSeconds != 110 {
		t.Errorf("with one ended: %+v, %v", u, err)
	}
}

func TestOwnership(t *testing.T) {
	l := newLab(t, 1)
	l.pool("p", 1)
	alice, bob := l.as(api.Principal{Name: "alice"}), l.as(api.Principal{Name: "bob"})
	s, err := l.CreateSandbox(l.ctx, alice, api.CreateSandbox{Pool: "p", Name: "hers"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Sandbox(l.ctx, bob, s.ID); !errs.Is(err, errs.NotFound) {
		t.Errorf("another's: %v", err)
	}
	if _, err := l.Use(l.ctx, bob, "hers", access.SandboxExec); !errs.Is(err, errs.NotFound) {
		t.Errorf("use of another's: %v", err)
	}
	if list, err := l.Sandboxes(l.ctx, bob, Filter{}); err != nil || len(list.Sandboxes) != 0 {
		t.Errorf("listed: %+v, %v", list, err)
	}
	if e, err := l.Events(l.ctx, bob, 0, EventFilter{Sandbox: s.ID}); err != nil || len(e.Events) != 0 {
		t.Errorf("events: %+v, %v", e, err)
	}
	all := api.All
	if _, err := l.ChangeSandbox(l.ctx, alice, "hers", api.ChangeSandbox{Visibility: &all}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Sandbox(l.ctx, bob, s.ID); err != nil {
		t.Errorf("shown to all: %v", err)
	}
	if _, err := l.EndSandbox(l.ctx, bob, s.ID); !errs.Is(err, errs.Denied) {
		t.Errorf("end of another's: %v", err)
	}
	if _, err := l.CreateSandbox(l.ctx, bob, api.CreateSandbox{Pool: "p", Owner: "alice"}); err == nil {
		t.Error("bob makes sandboxes of alice's")
	}
	if _, _, err := l.PutTemplate(l.ctx, bob, "mine", api.TemplateSpec{}, nil); !errs.Is(err, errs.Denied) {
		t.Errorf("a user's template: %v", err)
	}
	if _, _, err := l.guard.PutSecret(l.ctx, alice, api.Secret{Name: "keys", Data: map[string]string{"TOKEN": "never told", "OTHER": "x"}}); err != nil {
		t.Fatal(err)
	}
	use := []api.SecretUse{{Ref: api.SecretRef{Name: "keys", Key: "TOKEN"}}, {Ref: api.SecretRef{Name: "keys", Key: "OTHER"}, Env: "O", Fork: "drop"}}
	if _, err := l.CreateSandbox(l.ctx, bob, api.CreateSandbox{Pool: "p", Secrets: use}); !errs.Is(err, errs.NotFound) {
		t.Errorf("another's secret: %v", err)
	}
	if _, err := l.CreateSandbox(l.ctx, alice, api.CreateSandbox{Pool: "p", Name: "with", Secrets: use}); err != nil {
		t.Fatal(err)
	}
	if env, err := l.run("with", "env"); err != nil || env != "O=x\nTOKEN=never told" {
		t.Errorf("secrets: %q, %v", env, err)
	}
	f, err := l.ForkSandbox(l.ctx, alice, "with", api.ForkSandbox{})
	if err != nil {
		t.Fatal(err)
	}
	if env, err := l.run(f.Sandboxes[0].ID, "env"); err != nil || env != "TOKEN=never told" {
		t.Errorf("secrets of a fork: %q, %v", env, err)
	}
	err = l.store.Scan(l.ctx, kv.Range{}, func(k, v []byte) error {
		if strings.Contains(string(v), "never told") {
			t.Errorf("%q holds a secret in the clear", k)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestConversations(t *testing.T) {
	l, h := timed(t)
	l.pool("p", 2)
	user := l.as(api.Principal{Name: "user"})
	if _, err := l.CreateSandbox(l.ctx, user, api.CreateSandbox{Template: "p", Name: "shared"}); err != nil {
		t.Fatal(err)
	}
	shared := l.idOf("shared")
	all := api.All
	if _, err := l.ChangeSandbox(l.ctx, user, "shared", api.ChangeSandbox{Visibility: &all}); err != nil {
		t.Fatal(err)
	}
	for _, a := range []api.Agent{
		{Name: "none", Mode: api.ModeNone}, {Name: "fixed", Mode: api.ModeFixed, Sandbox: "shared"},
		{Name: "own", Mode: api.ModePerUser, Pool: "p"}, {Name: "choose", Mode: api.ModeChoose}, {Name: "fresh", Mode: api.ModeFresh, Template: "p", Retention: 100},
	} {
		if _, err := l.PutAgent(l.ctx, admin, a); err != nil {
			t.Fatalf("%s: %v", a.Name, err)
		}
	}
	attach := func(id, agent, sandbox string) (*api.Conversation, error) {
		return l.Attach(l.ctx, user, id, api.Attach{Agent: agent, Sandbox: sandbox})
	}
	if _, err := attach("c0", "none", ""); !errs.Is(err, errs.Conflict) {
		t.Errorf("none: %v", err)
	}
	fixed, err := attach("c1", "fixed", "")
	if err == nil && fixed.Sandbox != shared {
		t.Errorf("fixed: %+v", fixed)
	}
	own, err2 := attach("c2", "own", "")
	again, err3 := attach("c3", "own", "")
	if err := errors.Join(err2, err3); err != nil || own.Sandbox != again.Sandbox || own.Sandbox == shared {
		t.Errorf("per user: %+v %+v %v", own, again, err)
	}
	other, err := l.Attach(l.ctx, l.as(api.Principal{Name: "other"}), "c4", api.Attach{Agent: "own"})
	if err != nil || other.Sandbox == own.Sandbox {
		t.Errorf("of another user: %+v, %v", other, err)
	}
	if c, err := attach("c5", "choose", "shared"); err != nil || c.Sandbox != shared {
		t.Errorf("chosen: %+v, %v", c, err)
	}
	fresh, err := attach("c6", "fresh", "")
	if err != nil {
		t.Fatal(err)
	}
	if same, err := attach("c6", "fresh", ""); err != nil || same.Sandbox != fresh.Sandbox {
		t.Errorf("attached again: %+v, %v", same, err)
	}
	if next, err := attach("c7", "fresh", ""); err != nil || next.Sandbox == fresh.Sandbox {
		t.Errorf("of the next chat: %+v, %v", next, err)
	}
	if s, err := l.Sandbox(l.ctx, user, "shared"); err != nil || !slices.Contains(s.Conversations, "c5") {
		t.Errorf("its conversations: %+v, %v", s, err)
	}
	if list, err := l.Sandboxes(l.ctx, user, Filter{Conversation: "c6"}); err != nil || len(list.Sandboxes) != 1 {
		t.Errorf("by conversation: %+v, %v", list, err)
	}
	if c, err := l.Detach(l.ctx, user, "c5"); err != nil || c.Sandbox != "" {
		t.Errorf("detached: %+v, %v", c, err)
	}
	if err := l.EndConversation(l.ctx, user, "c6"); err != nil {
		t.Fatal(err)
	}
	l.endChats(l.ctx)
	if got := l.state(fresh.Sandbox); got != api.StateRunning {
		t.Errorf("right after the conversation it is %s", got)
	}
	h.move(101 * time.Second)
	l.endChats(l.ctx)
	if got := l.state(fresh.Sandbox); got != api.StateEnded {
		t.Errorf("after the retention it is %s", got)
	}
	if _, err := l.Conversation(l.ctx, user, "c6"); !errs.Is(err, errs.NotFound) {
		t.Errorf("forgotten: %v", err)
	}
	if _, err := l.EndSandbox(l.ctx, user, own.Sandbox); err != nil {
		t.Fatal(err)
	}
	if c, err := l.Conversation(l.ctx, user, "c2"); err != nil || c.Sandbox != "" {
		t.Errorf("with a sandbox that ended: %+v, %v", c, err)
	}
	if c, err := attach("c2", "own", ""); err != nil || c.Sandbox == own.Sandbox {
		t.Errorf("a new one in its place: %+v, %v", c, err)
	}
	l.reopen()
	if c, err := l.Conversation(l.ctx, user, "c1"); err != nil || c.Sandbox != shared {
		t.Errorf("after a restart: %+v, %v", c, err)
	}
}

func TestFollow(t *testing.T) {
	w := newWorld(t)
	w.pool("p", 20)
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan api.Event, 100)
	done := make(chan error, 1)
	go func() {
		done <- w.Follow(ctx, admin, 0, EventFilter{Kind: api.EventClaimed}, func(e api.Event) error { got <- e; return nil })
	}()
	var last uint64
	for range 5 {
		s := w.claim("p")
		e := <-got
		if e.Sandbox != s.ID || e.Seq <= last {
			t.Errorf("%+v of %s after %d", e, s.ID, last)
		}
		last = e.Seq
	}
	cancel()
	if err := <-done; !errs.Is(err, errs.Canceled) {
		t.Error(err)
	}
	s := w.claim("p")
	page := must(w.Events(t.Context(), admin, last, EventFilter{Kind: api.EventClaimed}))(t)
	if len(page.Events) != 1 || page.Events[0].Sandbox != s.ID {
		t.Errorf("resumed: %+v", page)
	}
}

func TestTwoNodes(t *testing.T) {
	l := newLab(t, 2)
	l.pool("p", 6)
	on := map[string]int{}
	for _, b := range l.index.list() {
		on[b.rec.Load().Node]++
	}
	if on["node-0"]+on["node-1"] != 6 || on["node-0"] == 0 || on["node-1"] == 0 {
		t.Errorf("placed: %v", on)
	}
	first := l.hosts[0]
	if _, err := l.DrainNode(l.ctx, admin, l.names[slices.Index(l.hosts, first)], true); err != nil {
		t.Fatal(err)
	}
	l.fill()
	if n := len(first.Sandboxes()); n != 0 {
		t.Errorf("%d on a drained node", n)
	}
	a, err := l.CreateSandbox(l.ctx, admin, api.CreateSandbox{Pool: "p", Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.DrainNode(l.ctx, admin, l.names[slices.Index(l.hosts, first)], false); err != nil {
		t.Fatal(err)
	}
	if _, err := l.DrainNode(l.ctx, admin, a.Node, true); err != nil {
		t.Fatal(err)
	}
	b, err := l.CreateSandbox(l.ctx, admin, api.CreateSandbox{Template: "p", Name: "b"})
	if err != nil || b.Node == a.Node {
		t.Fatalf("%+v, %v", b, err)
	}
	if _, err := l.Diff(l.ctx, admin, "a", "b", nil, func(api.FileChange) error { return nil }); !errs.Is(err, errs.Unsupported) {
		t.Errorf("across nodes: %v", err)
	}
	first.Put(controltest.Sandbox{ID: newID(), Epoch: 1})
	l.settle()
	l.check("with a stray")
}

// TestReopenOnDisk closes a service with its loops and opens it again, over Pebble.
func TestReopenOnDisk(t *testing.T) {
	dir, h := filepath.Join(t.TempDir(), "kv"), controltest.New("local", 0)
	open := func() (*world, func()) {
		w := onDisk(t, dir, h)
		return w, func() {
			if err := w.Close(context.Background()); err != nil {
				t.Error(err)
			}
			if err := w.kv.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	w, end := open()
	w.pool("p", 3)
	s := w.claim("p")
	w.run(s.ID, "set", "f", "x")
	end()
	w, end = open()
	defer end()
	if got := w.run(s.ID, "get", "f"); got != "x" {
		t.Errorf("%q", got)
	}
	w.full("p")
}
