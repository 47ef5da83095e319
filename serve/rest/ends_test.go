package rest_test

import (
	"fmt"
	"testing"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/errs"
	"agentrun.dev/serve/rest"
)

// TestCutAudit cuts the audit log's beginning off: only an administrator can, and what is left still is a chain.
func TestCutAudit(t *testing.T) {
	s := newService(t, rest.Options{})
	ctx := t.Context()
	s.template("plain", api.TemplateSpec{})
	s.sandbox("one")
	before, err := s.VerifyAudit(ctx)
	if err != nil || before.Entries == 0 {
		t.Fatalf("%+v, %v", before, err)
	}
	if _, err := s.user("bob", api.RoleOperator).CutAudit(ctx, time.Now()); !errs.Is(err, errs.Denied) {
		t.Errorf("an operator: %v", err)
	}
	n, err := s.CutAudit(ctx, time.Now())
	if err != nil || n == 0 {
		t.Fatalf("%d, %v", n, err)
	}
	if after, err := s.VerifyAudit(ctx); err != nil || after.Broken != 0 {
		t.Errorf("%+v, %v", after, err)
	}
	page, err := s.Audit(ctx, 0, api.MaxPage)
	if err != nil || len(page.Entries) == 0 || page.Entries[0].Seq < 2 {
		t.Errorf("%+v, %v", page, err)
	}
	for _, path := range []string{"/v1/audit", "/v1/audit?before=soon"} {
		r := s.do("DELETE", path, "")
		r.Body.Close()
		if r.StatusCode != 400 {
			t.Errorf("%s: status %d", path, r.StatusCode)
		}
	}
}

// TestWholeLists lists agents by pages, and nodes.
func TestWholeLists(t *testing.T) {
	s := newService(t, rest.Options{})
	ctx := t.Context()
	for i := range 3 {
		if _, err := s.PutAgent(ctx, api.Agent{Name: fmt.Sprintf("agent-%d", i), Mode: api.ModeNone}); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := s.Agents(ctx); err != nil || len(list) != 3 || list[2].Name != "agent-2" {
		t.Errorf("%+v, %v", list, err)
	}
	for path, want := range map[string]string{
		"/v1/agents?limit=2":                `{"agents":[{"name":"agent-0","mode":"none","owner":"root"},{"name":"agent-1","mode":"none","owner":"root"}],"next":"agent-1"}`,
		"/v1/agents?limit=2&cursor=agent-1": `{"agents":[{"name":"agent-2","mode":"none","owner":"root"}]}`,
		"/v1/nodes?cursor=here":             `{"nodes":[]}`,
	} {
		r := s.do("GET", path, "")
		if got := body(t, r); got != want+"\n" {
			t.Errorf("%s: %s", path, got)
		}
	}
	if list, err := s.Nodes(ctx); err != nil || len(list.Nodes) != 1 || list.Nodes[0].Name != "here" {
		t.Errorf("%+v, %v", list, err)
	}
	r := s.do("GET", "/v1/nodes/none", "")
	r.Body.Close()
	if r.StatusCode != 404 {
		t.Errorf("status %d", r.StatusCode)
	}
}
