package control

import (
	"context"
	"errors"
	"slices"
	"testing"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// TestChangeNetwork: the network of a running sandbox changes at once, to at most what it came from allows, and stays so.
func TestChangeNetwork(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	if _, _, err := w.PutTemplate(ctx, admin, "open", api.TemplateSpec{Network: api.NetworkPolicy{Egress: "allow"}}, nil); err != nil {
		t.Fatal(err)
	}
	s := must(w.CreateSandbox(ctx, admin, api.CreateSandbox{Template: "open", Name: "a", Network: &api.NetworkPolicy{}}))(t)
	h := w.hosts["local"]
	has := func(id string, want ...string) {
		t.Helper()
		if got := h.Sandboxes()[id].Claim.Network; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	change := func(id string, p api.NetworkPolicy) error {
		_, err := w.ChangeSandbox(ctx, admin, id, api.ChangeSandbox{Network: &p})
		return err
	}
	has(s.ID)
	if err := change("a", api.NetworkPolicy{Egress: "allow", Deny: []string{"bad.org"}, Allow: []string{"good.bad.org:80"}}); err != nil {
		t.Fatal(err)
	}
	has(s.ID, "*", "good.bad.org:80", "!bad.org")
	must(w.Hibernate(ctx, admin, "a"))(t)
	if err := change("a", api.NetworkPolicy{Allow: []string{"x.org"}}); err != nil {
		t.Fatal(err)
	}
	if got := w.run("a", "get", "f"); got != "" {
		t.Error(got)
	}
	has(s.ID, "x.org")
	// A fork with less can't get more; one without a word of its own may have what its parent may.
	f := must(w.ForkSandbox(ctx, admin, "a", api.ForkSandbox{Name: "less", Network: &api.NetworkPolicy{Allow: []string{"x.org:80"}}}))(t)
	wantKind(t, change("less", api.NetworkPolicy{Allow: []string{"x.org"}}), errs.Denied)
	if err := change("less", api.NetworkPolicy{}); err != nil {
		t.Error(err)
	}
	has(f.Sandboxes[0].ID)
	if err := change("less", api.NetworkPolicy{Allow: []string{"x.org:80"}}); err != nil {
		t.Error(err)
	}
	f = must(w.ForkSandbox(ctx, admin, "a", api.ForkSandbox{Name: "same"}))(t)
	if err := change("same", api.NetworkPolicy{Egress: "allow"}); err != nil {
		t.Error(err)
	}
	has(f.Sandboxes[0].ID, "*")
	wantKind(t, change("a", api.NetworkPolicy{Egress: "allow", Allow: []string{"10.0.0.1"}}), errs.Denied)
	wantKind(t, change("a", api.NetworkPolicy{Egress: "some"}), errs.Invalid)
	wantKind(t, change("a", api.NetworkPolicy{Egress: "allow", Deny: []string{"!x"}}), errs.Invalid)
	// What a node couldn't be told, it is told again.
	h.Hook = func(_ context.Context, op, _ string, _ bool) error {
		if op == "network" {
			return errors.New("broken")
		}
		return nil
	}
	if err := change("a", api.NetworkPolicy{Allow: []string{"y.org"}}); err == nil {
		t.Error("no error")
	}
	h.Hook = nil
	has(s.ID, "x.org")
	w.reconcile(ctx, w.peer("local"))
	has(s.ID, "y.org")
}

// TestForcedSleep puts a sandbox to sleep that is in use.
func TestForcedSleep(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	w.pool("p", 1)
	s := w.claim("p")
	use := must(w.Use(ctx, admin, s.ID, access.SandboxExec))(t)
	if got := must(w.HibernateSandbox(ctx, admin, s.ID, api.HibernateSandbox{Force: true}))(t); got.State != api.StateHibernated {
		t.Errorf("%+v", got)
	}
	use.Close()
	w.run(s.ID, "set", "f", "x")
	if got := must(w.Hibernate(ctx, admin, s.ID))(t); got.State != api.StateHibernated || got.Epoch != 2 {
		t.Errorf("%+v", got)
	}
}
