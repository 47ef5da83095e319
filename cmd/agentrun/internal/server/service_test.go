package server

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/control"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
)

var root = &access.Caller{Principal: api.Principal{Name: "root", Role: api.RoleAdmin}}

// in runs a shell line in a sandbox.
func in(t *testing.T, c *control.Control, id, line string) string {
	t.Helper()
	s, err := c.Use(t.Context(), root, id, access.SandboxExec)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var out bytes.Buffer
	p, err := s.Exec(t.Context(), engine.Cmd{Args: []string{"bash", "-c", line}, Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return strings.TrimRight(out.String(), "\n")
}

// fill makes a template with an init line and a pool of it, and waits until that is full.
func fill(t *testing.T, c *control.Control, replicas int) {
	t.Helper()
	ctx := t.Context()
	if _, _, err := c.PutTemplate(ctx, root, "tools", api.TemplateSpec{Init: []string{"echo made by init > note"}, Env: map[string]string{"FROM": "template"}}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.PutPool(ctx, root, "tools", api.PoolSpec{Template: "tools", Replicas: replicas}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		p, err := c.Pool(ctx, root, "tools")
		if err == nil && p.State == "ready" {
			return
		}
		if time.Now().After(end) || err != nil {
			t.Fatalf("the pool: %+v, %v", p, err)
		}
	}
}

// TestService takes sandboxes of the real engine from a pool through forks, a merge, a promotion and a sleep to their end, over two runs
// of a server on the same data.
func TestService(t *testing.T) {
	conf := config(t)
	s, end := start(t, conf)
	c, ctx := s.control, t.Context()
	fill(t, c, 3)
	one, err := c.CreateSandbox(ctx, root, api.CreateSandbox{Pool: "tools", Name: "one", Env: map[string]string{"TOKEN": "mine"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := in(t, c, "one", "cat note; echo $FROM $TOKEN; pwd"); got != "made by init\ntemplate mine\n/workspace" {
		t.Errorf("a claimed sandbox: %q", got)
	}
	in(t, c, "one", "echo base > plan; sleep 1000 & echo")
	f, err := c.ForkSandbox(ctx, root, "one", api.ForkSandbox{Count: 3, Name: "try", Env: map[string]string{"TOKEN": "other"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := in(t, c, "try-2", "cat plan; echo $TOKEN"); got != "base\nother" {
		t.Errorf("a fork: %q", got)
	}
	in(t, c, "try-1", "echo first > plan; echo a > a")
	var changed []string
	d, err := c.Diff(ctx, root, f.Sandboxes[1].ID, f.Sandboxes[0].ID, nil, func(c api.FileChange) error {
		changed = append(changed, c.Kind+" "+c.Path)
		return nil
	})
	if err != nil || d.Added != 1 || d.Modified != 1 {
		t.Errorf("diff: %+v %v %v", d, changed, err)
	}
	if m, err := c.Merge(ctx, root, "try-1", api.MergeSandbox{}); err != nil || m.Added != 1 || m.Modified != 1 {
		t.Errorf("merge: %+v, %v", m, err)
	}
	if got := in(t, c, "one", "cat plan a"); got != "first\na" {
		t.Errorf("merged: %q", got)
	}
	in(t, c, "try-2", "echo second > plan")
	if p, err := c.Promote(ctx, root, "try-2"); err != nil || p.Name != "one" {
		t.Errorf("promoted: %+v, %v", p, err)
	}
	if got := in(t, c, one.ID, "cat plan"); got != "second" {
		t.Errorf("by the old id: %q", got)
	}
	if h, err := c.Hibernate(ctx, root, "one"); err != nil || h.State != api.StateHibernated {
		t.Errorf("hibernated: %+v, %v", h, err)
	}
	if got := in(t, c, "one", "cat plan; echo $TOKEN"); got != "second\nother" {
		t.Errorf("after a sleep: %q", got)
	}
	snap, err := c.TakeSnapshot(ctx, root, "one", api.TakeSandboxSnapshot{Name: "kept"})
	if err != nil {
		t.Fatal(err)
	}
	cred, err := c.Credentials(ctx, root, "one")
	if err != nil || cred.Buckets["/workspace"] == "" {
		t.Errorf("credentials: %+v, %v", cred, err)
	}
	if _, err := c.EndSandbox(ctx, root, "try-3"); err != nil {
		t.Error(err)
	}
	if err := end(); err != nil {
		t.Fatalf("the end: %v", err)
	}

	s, end = start(t, conf)
	c = s.control
	if got := in(t, c, "one", "cat plan; echo $TOKEN"); got != "second\nother" {
		t.Errorf("after a restart: %q", got)
	}
	back, err := c.CreateSandbox(ctx, root, api.CreateSandbox{Snapshot: snap.ID})
	if err != nil {
		t.Fatal(err)
	}
	if got := in(t, c, back.ID, "cat plan; echo $TOKEN"); got != "second" {
		t.Errorf("from a snapshot: %q", got)
	}
	if _, err := c.EndSandbox(ctx, root, "one"); err != nil {
		t.Error(err)
	}
	if _, err := c.Use(ctx, root, one.ID, access.SandboxExec); !errs.Is(err, errs.Conflict) {
		t.Errorf("use of one that ended: %v", err)
	}
	if err := end(); err != nil {
		t.Errorf("the second end: %v", err)
	}
}
