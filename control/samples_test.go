package control

import (
	"testing"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/control/controltest"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/node"
)

// TestMetrics: what a sandbox uses is told over time, through a sleep, to who may see it.
func TestMetrics(t *testing.T) {
	l, h := timed(t)
	l.pool("p", 1)
	s, err := l.CreateSandbox(l.ctx, admin, api.CreateSandbox{Pool: "p", Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	begun := h.wall
	l.hosts[0].Change(s.ID, func(s *controltest.Sandbox) { s.Started = begun })
	get := func(from, to time.Time) []api.Sample {
		t.Helper()
		m, err := l.SandboxMetrics(l.ctx, admin, "a", from, to)
		if err != nil {
			t.Fatal(err)
		}
		return m.Samples
	}
	use := func(cpu, during time.Duration) {
		l.hosts[0].Change(s.ID, func(s *controltest.Sandbox) { s.CPU += cpu })
		h.move(during)
	}
	use(time.Second, 10*time.Second)
	if m := get(time.Time{}, time.Time{}); len(m) != 1 || m[0].CPU != 10 || m[0].CPUs != 2 || m[0].Memory != 1<<20 || m[0].MemoryLimit != 1<<30 || m[0].Processes != 1 {
		t.Errorf("%+v", m)
	}
	use(6*time.Second, 4*time.Second)
	l.sample(l.ctx, l.peer("node-0"))
	if m := get(time.Time{}, time.Time{}); len(m) != 2 || m[1].CPU != 150 { // it is fresh
		t.Errorf("%+v", m)
	}
	if _, err := l.Hibernate(l.ctx, admin, "a"); err != nil {
		t.Fatal(err)
	}
	h.move(time.Minute)
	if m := get(time.Time{}, time.Time{}); len(m) != 2 {
		t.Errorf("asleep: %+v", m)
	}
	if _, err := l.Resume(l.ctx, admin, "a"); err != nil {
		t.Fatal(err)
	}
	l.hosts[0].Change(s.ID, func(s *controltest.Sandbox) { s.Started = h.wall })
	use(time.Second, 2*time.Second)
	m := get(begun.Add(12*time.Second), time.Time{})
	if len(m) != 2 || m[1].CPU != 50 {
		t.Errorf("%+v", m)
	}
	if m := get(time.Time{}, begun.Add(11*time.Second)); len(m) != 1 {
		t.Errorf("%+v", m)
	}
	bob := &access.Caller{Principal: api.Principal{Name: "bob", Role: api.RoleUser}}
	if _, err := l.SandboxMetrics(l.ctx, bob, "a", time.Time{}, time.Time{}); !errs.Is(err, errs.NotFound) {
		t.Errorf("somebody else: %v", err)
	}
	if _, err := l.EndSandbox(l.ctx, admin, "a"); err != nil {
		t.Fatal(err)
	}
	if m, err := l.SandboxMetrics(l.ctx, admin, s.ID, time.Time{}, time.Time{}); err != nil || len(m.Samples) != 0 {
		t.Errorf("ended: %+v, %v", m, err)
	}
}

// TestSamples: a day of samples takes no more room than an hour, and the newest are all there.
func TestSamples(t *testing.T) {
	var x samples
	begun := time.Unix(1e9, 0)
	n := 0
	for ; n < 20_000; n++ {
		x.add(&node.Status{Epoch: 1, Started: begun, Stats: engine.Stats{CPU: time.Duration(n) * time.Second}}, &api.SandboxUsage{}, begun.Add(time.Duration(n)*5*time.Second))
	}
	if len(x.list) > maxSamples || cap(x.list) > 2*maxSamples {
		t.Errorf("%d samples in a room for %d", len(x.list), cap(x.list))
	}
	for i, s := range x.list[len(x.list)-keptSamples:] {
		if want := begun.Add(time.Duration(n-keptSamples+i) * 5 * time.Second); !s.Time.Equal(want) || s.CPU != 20 {
			t.Fatalf("%d: %+v, want one of %v", i, s, want)
		}
	}
	if first := x.list[0].Time; !first.Equal(begun) {
		t.Errorf("the oldest is of %v after the begin", first.Sub(begun))
	}
	for i, s := range x.list[1:] {
		if gap, age := s.Time.Sub(x.list[i].Time), begun.Add(time.Duration(n)*5*time.Second).Sub(x.list[i].Time); gap > age/8 && gap > 5*time.Second {
			t.Errorf("nothing for %v, %v ago", gap, age)
		}
	}
}
