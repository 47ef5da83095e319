package control

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/control/controltest"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
	"agentrun.dev/kv/memory"
	"agentrun.dev/kv/pebble"
)

// world is a service with nodes for tests.
type world struct {
	t     *testing.T
	kv    kv.Store
	hosts map[string]*controltest.Host
	wall  func() time.Time
	*Control
}

var admin = &access.Caller{Principal: api.Principal{Name: "root", Role: api.RoleAdmin}}

// open opens a service on a store, with all nodes, and starts it.
func (w *world) open() {
	w.t.Helper()
	g, keys := guard(w.t, w.kv)
	c, err := Open(w.t.Context(), Options{KV: w.kv, Guard: g, Keys: keys, Endpoint: "127.0.0.1:7070", Now: w.wall})
	if err != nil {
		w.t.Fatal(err)
	}
	w.Control = c
	for name, h := range w.hosts {
		if err := c.Join(w.t.Context(), name, "", h, true); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := c.Start(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close(context.Background()) })
}

func newWorld(t *testing.T, nodes ...string) *world {
	if len(nodes) == 0 {
		nodes = []string{"local"}
	}
	w := &world{t: t, kv: memory.New(), hosts: map[string]*controltest.Host{}}
	for _, n := range nodes {
		w.hosts[n] = controltest.New(n, 0)
	}
	w.open()
	return w
}

// eventually waits until f says "", and fails with what it says last.
func eventually(t *testing.T, f func() string) {
	t.Helper()
	last := ""
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if last = f(); last == "" {
			return
		}
	}
	t.Fatal(last)
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func wantKind(t *testing.T, err error, kind errs.Kind) {
	t.Helper()
	if !errs.Is(err, kind) {
		t.Fatalf("%v, want %v", err, kind)
	}
}

// pool makes a template and a pool of it, and waits until it is full.
func (w *world) pool(name string, replicas int) {
	w.t.Helper()
	ctx := w.t.Context()
	if _, _, err := w.PutTemplate(ctx, admin, name, api.TemplateSpec{Image: "python:3.12-slim", Init: []string{"echo hello"}, Network: api.NetworkPolicy{Allow: []string{"*.example.org"}}}, nil); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.PutPool(ctx, admin, name, api.PoolSpec{Template: name, Replicas: replicas}); err != nil {
		w.t.Fatal(err)
	}
	w.full(name)
}

func (w *world) full(name string) {
	w.t.Helper()
	eventually(w.t, func() string {
		if p, err := w.Pool(w.t.Context(), admin, name); err != nil || p.State != "ready" {
			return fmt.Sprintf("pool: %+v, %v", p, err)
		}
		return ""
	})
}

// run runs a command of controltest in a sandbox.
func (w *world) run(id string, args ...string) string {
	w.t.Helper()
	s, err := w.Use(w.t.Context(), admin, id, access.SandboxExec)
	if err != nil {
		w.t.Fatal(err)
	}
	defer s.Close()
	var out bytes.Buffer
	p, err := s.Exec(w.t.Context(), engine.Cmd{Args: args, Stdout: &out})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := p.Wait(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return out.String()
}

func (w *world) claim(pool string) *api.Sandbox {
	w.t.Helper()
	return must(w.CreateSandbox(w.t.Context(), admin, api.CreateSandbox{Pool: pool}))(w.t)
}

// TestLife takes a sandbox from its template to its end, with everything between.
func TestLife(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	w.pool("python", 3)
	s := must(w.CreateSandbox(ctx, admin, api.CreateSandbox{Pool: "python", Name: "one", Env: map[string]string{"A": "1"}}))(t)
	if s.State != api.StateRunning || s.Language != api.Python || s.Owner != "root" || s.Name != "one" || s.Expires.IsZero() || s.RecordTime == 0 {
		t.Errorf("claimed: %+v", s)
	}
	if env := w.run("one", "env"); env != "A=1" {
		t.Errorf("env: %q", env)
	}
	w.full("python") // refilled
	w.run("one", "set", "f", "base")

	f := must(w.ForkSandbox(ctx, admin, "one", api.ForkSandbox{Count: 3, Name: "try", Env: map[string]string{"B": "2"}}))(t)
	if len(f.Sandboxes) != 3 || f.Sandboxes[1].Name != "try-2" || f.Sandboxes[1].Parent != s.ID || f.Sandboxes[1].Depth != 1 || f.State != "ready" {
		t.Fatalf("fork: %+v", f)
	}
	if env := w.run("try-3", "env"); env != "A=1\nB=2" {
		t.Errorf("env of a fork: %q", env)
	}
	w.run("try-1", "set", "f", "first")
	w.run("try-2", "set", "g", "second")
	var changes []string
	d := must(w.Diff(ctx, admin, "try-1", "try-2", nil, func(c api.FileChange) error {
		changes = append(changes, c.Kind+" "+c.Path)
		return nil
	}))(t)
	if d.Modified != 1 || d.Added != 1 || strings.Join(changes, ", ") != "modified f, added g" {
		t.Errorf("diff: %+v %v", d, changes)
	}
	if m := must(w.Merge(ctx, admin, "try-1", api.MergeSandbox{}))(t); m.Modified != 1 {
		t.Errorf("merge: %+v", m)
	}
	if got := w.run("one", "get", "f"); got != "first" {
		t.Errorf("merged: %q", got)
	}
	again := must(w.ForkSandbox(ctx, admin, "try-2", api.ForkSandbox{}))(t)
	tree := must(w.Tree(ctx, admin, again.Sandboxes[0].ID, true))(t)
	if len(tree.Children) != 3 || tree.Total.Sandboxes != 5 || tree.Children[1].Children[0].Sandbox.Depth != 2 {
		t.Errorf("tree: %+v", tree)
	}

	p := must(w.Promote(ctx, admin, "try-2"))(t)
	if p.Name != "one" || p.Parent != "" || p.Depth != 0 || p.Root != p.ID {
		t.Errorf("promoted: %+v", p)
	}
	if got := must(w.Sandbox(ctx, admin, s.ID))(t); got.ID != p.ID {
		t.Errorf("the old id: %+v", got)
	}
	tree = must(w.Tree(ctx, admin, "try-1", true))(t)
	if tree.Sandbox.ID != p.ID || len(tree.Children) != 3 {
		t.Errorf("tree after a promotion: %+v", tree)
	}

	h := must(w.Hibernate(ctx, admin, "one"))(t)
	if h.State != api.StateHibernated || !h.Expires.IsZero() {
		t.Errorf("hibernated: %+v", h)
	}
	if got := w.run("one", "get", "g"); got != "second" {
		t.Errorf("after a sleep: %q", got)
	}
	if env := w.run("one", "env"); env != "A=1\nB=2" {
		t.Errorf("env after a sleep: %q", env)
	}
	if got := must(w.Sandbox(ctx, admin, "one"))(t); got.Epoch != 2 {
		t.Errorf("after a sleep: %+v", got)
	}
	e := must(w.EndSandbox(ctx, admin, "one"))(t)
	if e.State != api.StateEnded || e.Ended.IsZero() {
		t.Errorf("ended: %+v", e)
	}
	_, err := w.Use(ctx, admin, p.ID, access.SandboxExec)
	wantKind(t, err, errs.Conflict)
	if !strings.Contains(err.Error(), "it ended at ") {
		t.Error(err)
	}
	_, err = w.Sandbox(ctx, admin, "one")
	wantKind(t, err, errs.NotFound) // its name is free again

	var kinds []string
	page := must(w.Events(ctx, admin, 0, EventFilter{Limit: 1000}))(t)
	for _, e := range page.Events {
		if e.Sandbox == p.ID {
			kinds = append(kinds, e.Kind)
		}
	}
	if got := strings.Join(kinds, " "); got != "forked forked promoted hibernated resumed ended" {
		t.Errorf("events: %s", got)
	}
}

// onDisk is a service over Pebble with one node.
func onDisk(t *testing.T, dir string, h *controltest.Host) *world {
	t.Helper()
	s, err := pebble.Open(dir, pebble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, kv: s, hosts: map[string]*controltest.Host{}}
	g, keys := guard(t, memory.New())
	if w.Control, err = Open(t.Context(), Options{KV: s, Guard: g, Keys: keys}); err != nil {
		t.Fatal(err)
	}
	w.hosts["local"] = h
	if err := w.Join(t.Context(), "local", "", h, true); err != nil {
		t.Fatal(err)
	}
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}
