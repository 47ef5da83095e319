package rest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
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

// TestLinesThatBreak: lines that go on say why they don't, before they are cut.
func TestLinesThatBreak(t *testing.T) {
	s := newService(t, rest.Options{})
	s.template("plain", api.TemplateSpec{})
	s.sandbox("one")
	r := s.do("GET", "/v1/sandboxes/one/files/watch?path=/workspace", "", "Accept", api.NDJSON)
	defer r.Body.Close()
	if r.StatusCode != 200 {
		t.Fatalf("status %d", r.StatusCode)
	}
	if err := s.EndSandbox(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r.Body)
	if err == nil {
		t.Error("they end as if that was all")
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	var last api.Line[api.None, api.None]
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Error == nil || last.Error.Kind == "" || last.Error.Detail == "" {
		t.Errorf("the last line is %s, %v", lines[len(lines)-1], err)
	}
}
