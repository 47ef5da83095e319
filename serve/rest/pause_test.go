package rest_test

import (
	"testing"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/client"
	"agentrun.dev/errs"
	"agentrun.dev/serve/rest"
)

// TestPause: a sandbox that is in use goes to sleep if it must; whoever waits for a command is told, and the command goes on afterwards.
func TestPause(t *testing.T) {
	s := newService(t, rest.Options{})
	ctx := t.Context()
	s.template("plain", api.TemplateSpec{Network: api.NetworkPolicy{Allow: []string{"*.example.org"}}})
	if _, err := s.CreateSandbox(ctx, api.CreateSandbox{Template: "plain", Name: "one", Lease: &api.Lease{Mode: api.Fixed, Wake: api.WakeOnResume}}); err != nil {
		t.Fatal(err)
	}
	started, ended := make(chan int, 1), make(chan error, 1)
	go func() {
		_, err := s.ExecIn(ctx, "one", api.Exec{Args: []string{"sleep", "1000"}, Keep: true}, client.Streams{Started: func(pid int) { started <- pid }})
		ended <- err
	}()
	pid := <-started
	if sb, err := s.PauseSandbox(ctx, "one", api.HibernateSandbox{Force: true}); err != nil || sb.State != api.StateHibernated {
		t.Fatalf("%+v, %v", sb, err)
	}
	if err := <-ended; !errs.Is(err, errs.Unavailable) {
		t.Errorf("the command: %v", err)
	}
	if _, err := s.Run(ctx, "one", api.Run{Code: "true"}); !errs.Is(err, errs.Conflict) {
		t.Errorf("a use of one that is to be resumed: %v", err)
	}
	if _, err := s.ChangeSandbox(ctx, "one", api.ChangeSandbox{Network: &api.NetworkPolicy{Allow: []string{"a.example.org"}}}); err != nil {
		t.Error(err)
	}
	if _, err := s.ResumeSandbox(ctx, "one"); err != nil {
		t.Fatal(err)
	}
	list, err := s.Processes(ctx, "one")
	if err != nil || len(list) != 1 || list[0].Pid != pid {
		t.Errorf("%+v, %v", list, err)
	}
	sb, err := s.ChangeSandbox(ctx, "one", api.ChangeSandbox{Network: &api.NetworkPolicy{}})
	if err != nil || len(sb.Network.Allow) != 0 {
		t.Errorf("%+v, %v", sb, err)
	}
	if _, err := s.ChangeSandbox(ctx, "one", api.ChangeSandbox{Network: &api.NetworkPolicy{Egress: "allow"}}); !errs.Is(err, errs.Denied) {
		t.Errorf("more than the template allows: %v", err)
	}
	before := sb.Expires
	if sb, err = s.ExtendSandbox(ctx, "one", api.Extend{Seconds: 60, Exact: true}); err != nil || !sb.Expires.Before(before) {
		t.Errorf("%+v, %v", sb, err)
	}
}

// TestMetrics asks what a sandbox used over time.
func TestMetrics(t *testing.T) {
	s := newService(t, rest.Options{})
	ctx := t.Context()
	s.template("plain", api.TemplateSpec{Resources: api.Resources{Memory: 1 << 29}})
	s.sandbox("one")
	m, err := s.SandboxMetrics(ctx, "one", time.Time{}, time.Time{})
	if err != nil || len(m.Samples) == 0 {
		t.Fatalf("%+v, %v", m, err)
	}
	last := m.Samples[len(m.Samples)-1]
	if last.MemoryLimit != 1<<29 || last.CPUs < 1 || last.CPU < 0 || time.Since(last.Time) > time.Minute {
		t.Errorf("%+v", last)
	}
	if m, err = s.SandboxMetrics(ctx, "one", last.Time.Add(time.Hour), time.Time{}); err != nil || len(m.Samples) != 0 {
		t.Errorf("%+v, %v", m, err)
	}
	r := s.do("GET", "/v1/sandboxes/one/metrics?from=yesterday", "")
	r.Body.Close()
	if r.StatusCode != 400 {
		t.Errorf("status %d", r.StatusCode)
	}
}

// TestAttachLate asks how a command ended that nobody waited for.
func TestAttachLate(t *testing.T) {
	s := newService(t, rest.Options{})
	ctx := t.Context()
	s.template("plain", api.TemplateSpec{})
	s.sandbox("one")
	pid := 0
	if status, err := s.ExecIn(ctx, "one", api.Exec{Args: []string{"sh", "-c", "exit 5"}, Keep: true}, client.Streams{Started: func(n int) { pid = n }}); err != nil || status != 5 {
		t.Fatalf("%d, %v", status, err)
	}
	if status, err := s.ExecIn(ctx, "one", api.Exec{Attach: pid}, client.Streams{}); err != nil || status != 5 {
		t.Errorf("%d, %v", status, err)
	}
	if _, err := s.ExecIn(ctx, "one", api.Exec{Attach: pid + 1000}, client.Streams{}); !errs.Is(err, errs.NotFound) {
		t.Errorf("one that never was: %v", err)
	}
}
