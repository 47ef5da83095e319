package rest_test

import (
	"fmt"
	"net/http"
	"testing"

	"agentrun.dev/api"
	"agentrun.dev/errs"
	"agentrun.dev/serve/rest"
)

// TestMemorySnapshot takes a snapshot of a sandbox whose session has state, and makes another of it.
func TestMemorySnapshot(t *testing.T) {
	s := newService(t, rest.Options{})
	ctx := t.Context()
	s.template("plain", api.TemplateSpec{})
	s.sandbox("one")
	run := func(id, code, want string) {
		t.Helper()
		if r, err := s.Run(ctx, id, api.Run{Code: code, Session: "s"}); err != nil || r.Stdout != want {
			t.Errorf("%s: %+v, %v", code, r, err)
		}
	}
	run("one", "n=1; echo file >f; cd /tmp", "")
	snap, err := s.SnapshotSandbox(ctx, "one", api.TakeSandboxSnapshot{Name: "then", Memory: true})
	if err != nil || !snap.Memory || snap.Buckets["/workspace"] == "" {
		t.Fatalf("%+v, %v", snap, err)
	}
	run("one", "n=2; echo $n", "2\n")
	for i := range 2 {
		name := fmt.Sprintf("copy-%d", i)
		if _, err := s.CreateSandbox(ctx, api.CreateSandbox{Name: name, Snapshot: snap.ID}); err != nil {
			t.Fatal(err)
		}
		run(name, "echo $n; pwd; cat /workspace/f; n=3", "1\n/tmp\nfile\n")
	}
	run("one", "echo $n", "2\n")
	r := s.do("POST", "/v1/sandboxes/one/snapshots", `{"kill":true}`)
	r.Body.Close()
	if r.StatusCode != http.StatusBadRequest {
		t.Errorf("status %d", r.StatusCode)
	}
	if err := s.DeleteSandboxSnapshot(ctx, snap.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateSandbox(ctx, api.CreateSandbox{Snapshot: snap.ID}); !errs.Is(err, errs.NotFound) {
		t.Errorf("of a snapshot that was deleted: %v", err)
	}
	run("copy-1", "echo $n", "3\n")
}
