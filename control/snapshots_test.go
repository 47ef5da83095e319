package control

import (
	"fmt"
	"slices"
	"testing"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// TestMemorySnapshot: sandboxes are made of a running one, on its node, under the rules of whoever makes them.
func TestMemorySnapshot(t *testing.T) {
	w := newWorld(t, "a", "b")
	ctx := t.Context()
	w.pool("p", 2)
	s := must(w.CreateSandbox(ctx, admin, api.CreateSandbox{Pool: "p", Name: "base", Env: map[string]string{"A": "1"}}))(t)
	w.run("base", "set", "f", "before")
	_, err := w.TakeSnapshot(ctx, admin, "base", api.TakeSandboxSnapshot{Kill: true})
	wantKind(t, err, errs.Invalid)
	n := must(w.TakeSnapshot(ctx, admin, "base", api.TakeSandboxSnapshot{Name: "n", Memory: true}))(t)
	if !n.Memory || n.Sandbox != s.ID || n.Template != "p" {
		t.Errorf("%+v", n)
	}
	w.run("base", "set", "f", "after")
	for range 4 { // wherever there is more room: its memory is there
		c := must(w.CreateSandbox(ctx, admin, api.CreateSandbox{Snapshot: n.ID, Env: map[string]string{"B": "2"}, Labels: api.Labels{"of": "n"}}))(t)
		if c.Node != s.Node || c.State != api.StateRunning || c.Parent != "" || c.Root != c.ID || c.Template != "p" {
			t.Errorf("%+v", c)
		}
		if f, env := w.run(c.ID, "get", "f"), w.run(c.ID, "env"); f != "before" || env != "B=2" {
			t.Errorf("%q, %q", f, env)
		}
	}
	if got := w.run("base", "get", "f"); got != "after" {
		t.Errorf("the sandbox itself: %q", got)
	}
	for _, v := range must(w.Nodes(ctx, admin, Page{}))(t).Nodes {
		if slices.Contains(v.Templates, snapshotPrefix(n.ID)) {
			t.Errorf("%+v", v)
		}
	}
	// A snapshot outlives its sandbox; who may not see it can't start it.
	must(w.EndSandbox(ctx, admin, "base"))(t)
	bob := &access.Caller{Principal: api.Principal{Name: "bob", Role: api.RoleUser}}
	_, err = w.CreateSandbox(ctx, bob, api.CreateSandbox{Snapshot: n.ID})
	wantKind(t, err, errs.NotFound)
	w.hosts[s.Node].Vanish(true)
	eventually(t, func() string {
		if _, err := w.CreateSandbox(ctx, admin, api.CreateSandbox{Snapshot: n.ID}); !errs.Is(err, errs.Unavailable) {
			return fmt.Sprint(err)
		}
		return ""
	})
	w.hosts[s.Node].Vanish(false)
	if err := w.DeleteSnapshot(ctx, admin, n.ID); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		images := must(w.hosts[s.Node].Images(ctx))(t)
		if slices.Contains(images, snapshotPrefix(n.ID)) {
			return "the image is left"
		}
		return ""
	})
	_, err = w.CreateSandbox(ctx, admin, api.CreateSandbox{Snapshot: n.ID})
	wantKind(t, err, errs.NotFound)
	list := must(w.Sandboxes(ctx, admin, Filter{Labels: api.Labels{"of": "n"}}))(t)
	if len(list.Sandboxes) != 4 || w.run(list.Sandboxes[0].ID, "get", "f") != "before" {
		t.Errorf("%+v", list.Sandboxes)
	}
}
