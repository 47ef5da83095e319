package control

import (
	"strings"
	"testing"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/control/controltest"
	"agentrun.dev/errs"
)

// hands are a clock's that a test moves.
type hands struct {
	wall time.Time
	mono time.Duration
}

// timed is a lab whose clock stands still until it is moved.
func timed(t *testing.T) (*lab, *hands) {
	l := newLab(t, 1)
	h := &hands{wall: time.Now().UTC(), mono: time.Hour}
	l.setClock(h)
	return l, h
}

func (l *lab) setClock(h *hands) {
	l.clock.wall = func() time.Time { return h.wall }
	l.clock.since = func() time.Duration { return h.mono }
	for _, p := range l.allPeers() {
		p.heard = h.mono
	}
}

func (h *hands) move(d time.Duration) {
	h.wall, h.mono = h.wall.Add(d), h.mono+d
}

// tick does what the loop of leases does.
func (l *lab) tick() {
	limit := newLimit(4)
	l.leases(l.ctx, limit)
	limit.wait()
}

func (l *lab) state(id string) string {
	l.t.Helper()
	s, err := l.Sandbox(l.ctx, admin, id)
	if err != nil {
		l.t.Fatalf("%v", err)
	}
	return s.State
}

func (l *lab) events(kind string) (n int) {
	l.t.Helper()
	page, err := l.Events(l.ctx, admin, 0, EventFilter{Kind: kind, Limit: api.MaxPage})
	if err != nil {
		l.t.Fatalf("%v", err)
	}
	return len(page.Events)
}

func TestLease(t *testing.T) {
	l, h := timed(t)
	l.pool("p", 1)
	s, err := l.CreateSandbox(l.ctx, admin, api.CreateSandbox{Pool: "p", Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if d := s.Expires.Sub(h.wall).Round(time.Second); d != 600*time.Second {
		t.Errorf("at first it lives for %v", d)
	}
	h.move(530 * time.Second)
	l.tick()
	if n := l.events(api.EventExpiring); n != 0 {
		t.Errorf("%d warnings", n)
	}
	h.move(20 * time.Second)
	l.tick()
	l.tick()
	if n := l.events(api.EventExpiring); n != 1 {
		t.Errorf("%d warnings, want one", n)
	}
	if _, err := l.run("a", "get", "f"); err != nil { // a use
		t.Fatal(err)
	}
	h.move(590 * time.Second)
	l.tick()
	if got := l.state("a"); got != api.StateRunning {
		t.Errorf("used, it is %s", got)
	}
	if n := l.events(api.EventExpiring); n != 2 {
		t.Errorf("%d warnings, want one more", n)
	}
	session, err := l.Use(l.ctx, admin, "a", access.SandboxExec)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 { // held open, it lives
		h.move(500 * time.Second)
		l.tick()
	}
	if got := l.state("a"); got != api.StateRunning {
		t.Errorf("in use, it is %s", got)
	}
	if _, err := l.Hibernate(l.ctx, admin, "a"); !errs.Is(err, errs.Conflict) {
		t.Errorf("hibernation of one in use: %v", err)
	}
	session.Close()
	h.move(601 * time.Second)
	l.tick()
	if got := l.state("a"); got != api.StateHibernated {
		t.Errorf("unused, it is %s", got)
	}
	if _, err := l.run("a", "get", "f"); err != nil {
		t.Errorf("a use of one that sleeps: %v", err)
	}
	h.move(601 * time.Second)
	l.tick()
	h.move(30*24*time.Hour + time.Second)
	l.tick()
	if got := l.state(s.ID); got != api.StateEnded {
		t.Errorf("asleep for 30 days, it is %s", got)
	}
	h.move(7*24*time.Hour + 2*time.Second)
	if err := l.forgetEnded(l.ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Sandbox(l.ctx, admin, s.ID); !errs.Is(err, errs.NotFound) {
		t.Errorf("after its retention: %v", err)
	}
}

func TestLeaseChoices(t *testing.T) {
	l, h := timed(t)
	l.pool("p", 0)
	for _, c := range []api.CreateSandbox{
		{Name: "end", Lease: &api.Lease{Duration: 100, OnExpiry: api.End}},
		{Name: "old", Lease: &api.Lease{MaxAge: 1000}},
		{Name: "long", Lease: &api.Lease{Duration: 5000}},
	} {
		c.Template = "p"
		if _, err := l.CreateSandbox(l.ctx, admin, c); err != nil {
			t.Fatal(err)
		}
	}
	ended := l.box(l.idOf("end")).id
	old := l.box(l.idOf("old")).id
	h.move(101 * time.Second)
	l.tick()
	if got := l.state(ended); got != api.StateEnded {
		t.Errorf("to end, it is %s", got)
	}
	for range 10 {
		h.move(100 * time.Second)
		if l.box(old) != nil {
			if _, err := l.run(old, "get", "f"); err != nil {
				t.Fatal(err)
			}
		}
		l.tick()
	}
	if got := l.state(old); got != api.StateEnded {
		t.Errorf("too old, it is %s", got)
	}
	if got := l.state("long"); got != api.StateRunning {
		t.Errorf("with time left, it is %s", got)
	}
	if s, err := l.ExtendSandbox(l.ctx, admin, "long", api.Extend{Seconds: 9000}); err != nil || s.Expires.Sub(h.wall).Round(time.Second) != 9000*time.Second {
		t.Errorf("extended: %+v, %v", s, err)
	}
	if s, err := l.ExtendSandbox(l.ctx, admin, "long", api.Extend{Seconds: 5}); err != nil || s.Expires.Sub(h.wall).Round(time.Second) != 9000*time.Second {
		t.Errorf("extended to less: %+v, %v", s, err)
	}
}

// TestClockJumps sets the wall clock: leases go by the monotonic one, and what is recorded goes on.
func TestClockJumps(t *testing.T) {
	l, h := timed(t)
	l.pool("p", 0)
	if _, err := l.CreateSandbox(l.ctx, admin, api.CreateSandbox{Template: "p", Name: "a"}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.CreateSandbox(l.ctx, admin, api.CreateSandbox{Template: "p", Name: "b"}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Hibernate(l.ctx, admin, "b"); err != nil {
		t.Fatal(err)
	}
	h.wall = h.wall.Add(1000 * time.Hour)
	l.tick()
	if got := l.state("a") + l.state("b"); got != api.StateRunning+api.StateHibernated {
		t.Errorf("after a jump forward: %s", got)
	}
	// The service is started anew after a jump: there is a grace in which a use shows.
	l.reopen()
	h.mono = time.Second
	for _, b := range l.index.list() { // as if it had been opened under this clock
		l.setClock(h)
		l.setTimers(b, b.rec.Load(), true)
	}
	l.tick()
	if got := l.state("a") + l.state("b"); got != api.StateRunning+api.StateHibernated {
		t.Errorf("right after a start: %s", got)
	}
	if _, err := l.run("a", "get", "f"); err != nil {
		t.Fatal(err)
	}
	h.move(2 * grace)
	l.tick()
	if got := l.state("a"); got != api.StateRunning {
		t.Errorf("used in the grace, it is %s", got)
	}
	before := l.clock.now()
	h.wall = h.wall.Add(-5000 * time.Hour)
	l.tick()
	if got := l.state("a"); got != api.StateRunning {
		t.Errorf("after a jump back: %s", got)
	}
	if now := l.clock.now(); now.Before(before) {
		t.Errorf("recorded time went back from %v to %v", before, now)
	}
	h.mono += 700 * time.Second
	l.tick()
	if got := l.state("a"); got != api.StateHibernated {
		t.Errorf("unused after a jump back, it is %s", got)
	}
}

// TestUsedUnseen checks that a use which only the node saw keeps a sandbox alive.
func TestUsedUnseen(t *testing.T) {
	l, h := timed(t)
	l.pool("p", 0)
	s, err := l.CreateSandbox(l.ctx, admin, api.CreateSandbox{Template: "p"})
	if err != nil {
		t.Fatal(err)
	}
	h.move(590 * time.Second)
	l.hosts[0].Change(s.ID, func(x *controltest.Sandbox) { x.Used = h.wall })
	l.sample(l.ctx, l.peer("node-0"))
	h.move(100 * time.Second)
	l.tick()
	if got := l.state(s.ID); got != api.StateRunning {
		t.Errorf("used at its node, it is %s", got)
	}
}

func TestHeartbeats(t *testing.T) {
	l, h := timed(t)
	l.pool("p", 2)
	run, err := l.CreateSandbox(l.ctx, admin, api.CreateSandbox{Pool: "p", Name: "run"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.CreateSandbox(l.ctx, admin, api.CreateSandbox{Pool: "p", Name: "nap"}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Hibernate(l.ctx, admin, "nap"); err != nil {
		t.Fatal(err)
	}
	p := l.peer("node-0")
	l.hosts[0].Vanish(true)
	h.move(lostAfter - time.Second)
	l.poll(l.ctx, p)
	if got := l.state("run"); got != api.StateRunning {
		t.Errorf("a node that is late: %s", got)
	}
	h.move(2 * time.Second)
	l.poll(l.ctx, p)
	got, err := l.Sandbox(l.ctx, admin, run.ID)
	if err != nil || got.State != api.StateFailed || !strings.Contains(got.Reason, "lost") {
		t.Errorf("on a lost node: %+v, %v", got, err)
	}
	if _, err := l.run("nap", "get", "f"); !errs.Is(err, errs.Unavailable) {
		t.Errorf("asleep on a lost node: %v", err)
	}
	if _, err := l.CreateSandbox(l.ctx, admin, api.CreateSandbox{Pool: "p"}); !errs.Is(err, errs.Unavailable) {
		t.Errorf("without a node: %v", err)
	}
	if n, err := l.Nodes(l.ctx, admin, Page{}); err != nil || n.Nodes[0].State != "lost" {
		t.Errorf("%+v, %v", n, err)
	}
	l.hosts[0].Vanish(false)
	if err := l.Heartbeat(l.ctx, "node-0", p.info); err != nil {
		t.Fatal(err)
	}
	if _, err := l.run("nap", "get", "f"); err != nil {
		t.Errorf("asleep on a node that returned: %v", err)
	}
	if _, ok := l.hosts[0].Sandboxes()[run.ID]; ok {
		t.Error("what failed still runs on the node that returned")
	}
	l.check("when it is back")
	if err := l.Heartbeat(l.ctx, "stranger", p.info); !errs.Is(err, errs.NotFound) {
		t.Errorf("of a stranger: %v", err)
	}
	if _, err := l.DrainNode(l.ctx, admin, "node-0", true); err != nil {
		t.Fatal(err)
	}
	l.fill()
	for _, s := range l.hosts[0].Sandboxes() {
		if !s.Claimed {
			t.Error("a warm sandbox stays on a drained node")
		}
	}
}

// TestFixedLease: no use moves its end, which comes whoever uses the sandbox; only who asks for it wakes it up.
func TestFixedLease(t *testing.T) {
	l, h := timed(t)
	l.pool("p", 2)
	create := func(name, then string) *api.Sandbox {
		t.Helper()
		s, err := l.CreateSandbox(l.ctx, admin, api.CreateSandbox{Pool: "p", Name: name, Lease: &api.Lease{Duration: 100, Mode: api.Fixed, OnExpiry: then, Wake: api.WakeOnResume}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	ends := func(name string, want time.Duration) {
		t.Helper()
		s, err := l.Sandbox(l.ctx, admin, name)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Expires.Sub(h.wall).Round(time.Second); got != want {
			t.Errorf("%s ends in %v, want %v", name, got, want)
		}
	}
	a, b := create("a", api.Hibernate), create("b", api.End)
	l.hosts[0].Change(a.ID, func(s *controltest.Sandbox) { s.Stubborn = true })
	h.move(50 * time.Second)
	if _, err := l.run("a", "set", "f", "x"); err != nil {
		t.Fatal(err)
	}
	ends("a", 50*time.Second)
	// The end can be moved either way.
	for _, c := range []struct {
		e    api.Extend
		want time.Duration
	}{{api.Extend{Seconds: 20}, 50 * time.Second}, {api.Extend{Seconds: 20, Exact: true}, 20 * time.Second}, {api.Extend{Seconds: 30}, 30 * time.Second}} {
		if _, err := l.ExtendSandbox(l.ctx, admin, "a", c.e); err != nil {
			t.Fatal(err)
		}
		ends("a", c.want)
	}
	l.reopen()
	l.setClock(h)
	if s := l.box(a.ID).rec.Load(); s.Expires.Sub(h.wall).Round(time.Second) != 30*time.Second {
		t.Errorf("a shorter lease isn't recorded: %v", s.Expires)
	}
	for _, id := range []string{a.ID, b.ID} {
		l.setTimers(l.box(id), l.box(id).rec.Load(), false)
	}
	var held []*Session
	for _, id := range []string{a.ID, b.ID} {
		s, err := l.Use(l.ctx, admin, id, access.SandboxExec)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, s)
	}
	h.move(31 * time.Second)
	l.tick()
	if sa, sb := l.state(a.ID), l.state(b.ID); sa != api.StateHibernated || sb != api.StateRunning {
		t.Errorf("a is %s, b is %s", sa, sb)
	}
	h.move(20 * time.Second)
	l.tick()
	if got := l.state(b.ID); got != api.StateEnded {
		t.Errorf("b is %s", got)
	}
	for _, s := range held {
		s.Close()
	}
	if _, err := l.run("a", "get", "f"); !errs.Is(err, errs.Conflict) {
		t.Errorf("a use of one that is to be resumed first: %v", err)
	}
	if _, err := l.ForkSandbox(l.ctx, admin, "a", api.ForkSandbox{}); !errs.Is(err, errs.Conflict) {
		t.Errorf("a fork of one that is to be resumed first: %v", err)
	}
	if got := l.state("a"); got != api.StateHibernated {
		t.Errorf("it is %s", got)
	}
	if _, err := l.Resume(l.ctx, admin, "a"); err != nil {
		t.Fatal(err)
	}
	ends("a", 100*time.Second)
	if got, err := l.run("a", "get", "f"); err != nil || got != "x" {
		t.Errorf("resumed: %q, %v", got, err)
	}
	if _, err := l.ChangeSandbox(l.ctx, admin, "a", api.ChangeSandbox{Lease: &api.Lease{Mode: api.Sliding, Wake: api.WakeOnUse}}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.run("a", "get", "f"); err != nil {
		t.Fatal(err)
	}
	ends("a", 600*time.Second)
	if _, err := l.ChangeSandbox(l.ctx, admin, "a", api.ChangeSandbox{Lease: &api.Lease{Mode: "loose"}}); !errs.Is(err, errs.Invalid) {
		t.Errorf("a mode: %v", err)
	}
}
