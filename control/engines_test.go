package control

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/control/controltest"
	"agentrun.dev/engine"
	"agentrun.dev/engine/microvm"
	"agentrun.dev/errs"
	"agentrun.dev/vmm"
)

// withEngine gives a node another engine, and has the service know.
func (l *lab) withEngine(host int, why string, lacks ...string) {
	l.t.Helper()
	l.hosts[host].Engine(api.MicroVM, why, lacks...)
	i, err := l.hosts[host].Info(l.ctx)
	if err != nil {
		l.t.Fatalf("%v", err)
	}
	if err := l.Heartbeat(l.ctx, l.names[host], *i); err != nil {
		l.t.Fatalf("%v", err)
	}
}

// TestEngines: a template's engine and image go down to a node that has it, and forks, sleepers, pools and snapshots stay with it.
func TestEngines(t *testing.T) {
	l := newLab(t, 2)
	l.withEngine(0, "no KVM here")
	l.withEngine(1, "", "network", "services", "root")
	spec := api.TemplateSpec{Engine: api.MicroVM, Image: "python:3.12-slim", Resources: api.Resources{CPU: 1.5, Memory: 1 << 30}}
	v, _, err := l.PutTemplate(l.ctx, admin, "vm", spec, nil)
	if err != nil || v.Spec.Language != api.Python || len(v.Notes) != 0 {
		t.Fatalf("%+v, %v", v, err)
	}
	l.buildAll()
	b, ok := l.hosts[1].Built("vm@1")
	if s := b.Spec; !ok || s.Engine != api.MicroVM || s.Image != spec.Image || s.Limits.VCPUs != 2 || s.Limits.Memory != 1<<30 || len(s.Volumes) != 1 {
		t.Errorf("built of %+v", b)
	}
	if _, err := l.PutPool(l.ctx, admin, "vm", api.PoolSpec{Template: "vm", Replicas: 2}); err != nil {
		t.Fatal(err)
	}
	l.fill()
	s := must(l.CreateSandbox(l.ctx, admin, api.CreateSandbox{Pool: "vm", Name: "a"}))(t)
	if s.Engine != api.MicroVM || s.Node != l.names[1] {
		t.Errorf("claimed: %+v", s)
	}
	for range 5 {
		if s := must(l.CreateSandbox(l.ctx, admin, api.CreateSandbox{Template: "vm"}))(t); s.Node != l.names[1] {
			t.Errorf("placed on %s", s.Node)
		}
	}
	f := must(l.ForkSandbox(l.ctx, admin, "a", api.ForkSandbox{}))(t)
	if f.Sandboxes[0].Engine != api.MicroVM {
		t.Errorf("forked: %+v", f.Sandboxes[0])
	}
	shot := must(l.TakeSnapshot(l.ctx, admin, "a", api.TakeSandboxSnapshot{Memory: true}))(t)
	if shot.Engine != api.MicroVM {
		t.Errorf("a snapshot of %q", shot.Engine)
	}
	if s := must(l.CreateSandbox(l.ctx, admin, api.CreateSandbox{Snapshot: shot.ID}))(t); s.Engine != api.MicroVM || s.Node != l.names[1] {
		t.Errorf("of a snapshot: %+v", s)
	}
	if s := must(l.Hibernate(l.ctx, admin, "a"))(t); s.State != api.StateHibernated {
		t.Errorf("%+v", s)
	}
	if s := must(l.Resume(l.ctx, admin, "a"))(t); s.State != api.StateRunning || s.Engine != api.MicroVM {
		t.Errorf("%+v", s)
	}
	if n := must(l.Node(l.ctx, admin, l.names[0]))(t); n.Engines[api.MicroVM] != "no KVM here" || n.Engines[api.Userspace] != "" {
		t.Errorf("%v", n.Engines)
	}
	l.check("afterwards")
}

// TestEngineMissing: what no node can run is refused at once, with all that the nodes say; what was built already is refused when it
// starts.
func TestEngineMissing(t *testing.T) {
	l := newLab(t, 2)
	l.withEngine(1, "this CPU has no virtualization")
	put := func(s api.TemplateSpec) error {
		_, _, err := l.PutTemplate(l.ctx, admin, "vm", s, nil)
		return err
	}
	err := put(api.TemplateSpec{Engine: api.MicroVM})
	if !errs.Is(err, errs.Unsupported) || !strings.Contains(err.Error(), "node node-0: it hasn't got it") || !strings.Contains(err.Error(), "node node-1: this CPU has no virtualization") ||
		!strings.Contains(errs.HintOf(err), "agentrun doctor") {
		t.Errorf("no node: %v, hint %q", err, errs.HintOf(err))
	}
	if _, err := l.Template(l.ctx, admin, "vm", 0); !errs.Is(err, errs.NotFound) {
		t.Errorf("it was made: %v", err)
	}
	l.withEngine(1, "", "network", "services", "root", "rates")
	for name, c := range map[string]struct {
		spec api.TemplateSpec
		kind errs.Kind
		text string
	}{
		"network":   {api.TemplateSpec{Network: api.NetworkPolicy{Allow: []string{"example.org"}}}, errs.Unsupported, "no network"},
		"open":      {api.TemplateSpec{Network: api.NetworkPolicy{Egress: "allow"}}, errs.Unsupported, "no network"},
		"root":      {api.TemplateSpec{Volumes: []api.Volume{{Name: "r", Path: "/"}}}, errs.Unsupported, "root"},
		"rate":      {api.TemplateSpec{Resources: api.Resources{DiskRate: api.Rate{OperationsPerSecond: 1}}}, errs.Unsupported, "bound"},
		"bucket":    {api.TemplateSpec{Image: "bucket:b"}, errs.Invalid, "bucket"},
		"bad image": {api.TemplateSpec{Image: "a b"}, errs.Invalid, "spaces"},
	} {
		c.spec.Engine = api.MicroVM
		if err := put(c.spec); !errs.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	spec := api.TemplateSpec{Engine: api.MicroVM, Image: "ghcr.io/x/y@sha256:1234"}
	if err := put(spec); err != nil {
		t.Fatal(err)
	}
	l.buildAll()
	l.withEngine(1, "its module went")
	if err := put(spec); err != nil { // nothing new: nothing to refuse
		t.Error(err)
	}
	if _, err := l.CreateSandbox(l.ctx, admin, api.CreateSandbox{Template: "vm"}); !errs.Is(err, errs.Unsupported) || !strings.Contains(err.Error(), "its module went") {
		t.Errorf("start: %v", err)
	}
	// A build that waits for a node fails when the node turns out not to work.
	for i := range l.hosts {
		l.lose(l.ctx, l.peer(l.names[i]))
	}
	if err := put(api.TemplateSpec{Engine: api.MicroVM}); err != nil {
		t.Fatal(err)
	}
	l.withEngine(1, "still gone")
	l.buildAll()
	if v, err := l.Template(l.ctx, admin, "vm", 2); err != nil || v.State != api.BuildFailed || !strings.Contains(v.Error, "still gone") || !strings.Contains(v.Error, "agentrun doctor") {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestAwake: a sandbox that can't hibernate is tried less and less often, and one event for each reason tells why.
func TestAwake(t *testing.T) {
	l, h := timed(t)
	l.pool("p", 1)
	s := must(l.CreateSandbox(l.ctx, admin, api.CreateSandbox{Pool: "p", Lease: &api.Lease{Duration: 60, OnExpiry: api.Hibernate}}))(t)
	stubborn := func(yes bool) {
		l.hosts[0].Change(s.ID, func(s *controltest.Sandbox) { s.Stubborn = yes })
	}
	stubborn(true)
	h.move(time.Minute + time.Second)
	var tries []time.Duration
	begun, before := h.mono, l.hosts[0].Calls("hibernate")
	for h.mono < begun+4*time.Hour {
		l.tick()
		if n := l.hosts[0].Calls("hibernate"); n != before {
			tries, before = append(tries, (h.mono-begun).Round(time.Second)), n
		}
		l.hosts[0].Change(s.ID, func(s *controltest.Sandbox) { s.Used = time.Time{} })
		h.move(5 * time.Second)
	}
	if len(tries) < 5 || len(tries) > 12 || tries[0] != 0 || !slices.IsSortedFunc(tries, func(a, b time.Duration) int { return int(a - b) }) {
		t.Errorf("tried after %v", tries)
	}
	if got := l.state(s.ID); got != api.StateRunning || l.events(api.EventAwake) != 1 {
		t.Errorf("it is %s, %d events", got, l.events(api.EventAwake))
	}
	if r := l.box(s.ID).rec.Load(); !strings.Contains(r.Reason, "can't be copied") {
		t.Errorf("the reason is %q", r.Reason)
	}
	stubborn(false)
	h.move(time.Hour + time.Second)
	l.tick()
	if got := l.state(s.ID); got != api.StateHibernated {
		t.Errorf("it is %s", got)
	}
}

// TestUsageOfNobody: there is none.
func TestUsageOfNobody(t *testing.T) {
	l := newLab(t, 1)
	if _, err := l.PrincipalUsage(l.ctx, admin, "nobody"); !errs.Is(err, errs.NotFound) {
		t.Errorf("%v", err)
	}
	l.as(api.Principal{Name: "ann"})
	for _, name := range []string{"ann", ownerOf(admin)} {
		if _, err := l.PrincipalUsage(l.ctx, admin, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRates: what is asked for goes down to the node; what can't be is refused with the field and what would be right.
func TestRates(t *testing.T) {
	l := newLab(t, 1)
	l.withEngine(0, "", "services", "root")
	for name, c := range map[string]struct {
		engine string
		r      api.Resources
		text   string
	}{
		"slow":            {api.MicroVM, api.Resources{DiskRate: api.Rate{BytesPerSecond: 4095}}, "resources.diskRate.bytesPerSecond: 4095: want 4096 to"},
		"negative":        {api.MicroVM, api.Resources{NetworkInRate: api.Rate{OperationsPerSecond: -1}}, "resources.networkInRate.operationsPerSecond: -1"},
		"large":           {api.MicroVM, api.Resources{NetworkOutRate: api.Rate{BytesPerSecond: 1<<40 + 1}}, "resources.networkOutRate.bytesPerSecond"},
		"burst of what":   {api.MicroVM, api.Resources{DiskRate: api.Rate{BurstBytes: 1, OperationsPerSecond: 1}}, "set bytesPerSecond, too"},
		"burst of what 2": {api.MicroVM, api.Resources{DiskRate: api.Rate{BurstOperations: 1, BytesPerSecond: 4096}}, "set operationsPerSecond, too"},
		"userspace":       {api.Userspace, api.Resources{DiskRate: api.Rate{BytesPerSecond: 4096}}, "the engine userspace doesn't bound what disks and networks do in a time; microvm does"},
		"no engine":       {"", api.Resources{NetworkInRate: api.Rate{BytesPerSecond: 4096}}, "the engine userspace doesn't"},
	} {
		_, _, err := l.PutTemplate(l.ctx, admin, "t", api.TemplateSpec{Engine: c.engine, Resources: c.r}, nil)
		want := errs.Invalid
		if c.engine != api.MicroVM {
			want = errs.Unsupported
		}
		if !errs.Is(err, want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	disk, in, out := api.Rate{BytesPerSecond: 1 << 20, BurstBytes: 2 << 20}, api.Rate{OperationsPerSecond: 5}, api.Rate{BytesPerSecond: 4096, OperationsPerSecond: 6, BurstOperations: 7}
	if _, _, err := l.PutTemplate(l.ctx, admin, "vm", api.TemplateSpec{Engine: api.MicroVM, Resources: api.Resources{DiskRate: disk, NetworkInRate: in, NetworkOutRate: out}}, nil); err != nil {
		t.Fatal(err)
	}
	l.buildAll()
	b, ok := l.hosts[0].Built("vm@1")
	if s := b.Spec.Limits; !ok || s.Disk != (engine.Rate{Bytes: 1 << 20, BurstBytes: 2 << 20}) || s.NetworkIn != (engine.Rate{Ops: 5}) || s.NetworkOut != (engine.Rate{Bytes: 4096, Ops: 6, BurstOps: 7}) {
		t.Errorf("built of %+v", b.Spec.Limits)
	}
}

// TestMachine: what no machine could be is refused before one is built, with what would do.
func TestMachine(t *testing.T) {
	if minMachine != microvm.MinMemory || maxMachine != microvm.MaxMemory || maxMachineVolumes != microvm.Slots || maxMachineCPUs != vmm.MaxVCPUs {
		t.Error("the limits aren't the engine's")
	}
	l := newLab(t, 1)
	l.withEngine(0, "", "services", "root")
	volumes := func(n int, first string) (list []api.Volume) {
		for i := range n {
			list = append(list, api.Volume{Name: fmt.Sprint("v", i)})
		}
		list[0].Path = first
		return list
	}
	for name, c := range map[string]struct {
		spec api.TemplateSpec
		text string
	}{
		"small":         {api.TemplateSpec{Resources: api.Resources{Memory: 1 << 20}}, "resources.memory: 1048576 bytes: a microVM has 64Mi to 64Gi"},
		"large":         {api.TemplateSpec{Resources: api.Resources{Memory: 65 << 30}}, "64Mi to 64Gi"},
		"processors":    {api.TemplateSpec{Resources: api.Resources{CPU: 33}}, "at most 32 processors"},
		"volumes":       {api.TemplateSpec{Volumes: volumes(8, "/x")}, "at most 8 volumes"},
		"more volumes":  {api.TemplateSpec{Volumes: volumes(9, "/workspace")}, "at most 8 volumes"},
		"with mounts":   {api.TemplateSpec{Volumes: volumes(7, "/workspace/"), Mounts: []string{"private", "shared"}}, "at most 8 volumes"},
		"just possible": {api.TemplateSpec{Volumes: volumes(8, "/workspace/"), Resources: api.Resources{Memory: 64 << 20, CPU: 32}}, ""},
	} {
		c.spec.Engine = api.MicroVM
		_, _, err := l.PutTemplate(l.ctx, admin, "vm", c.spec, nil)
		if c.text == "" && err != nil || c.text != "" && (err == nil || !strings.Contains(err.Error(), c.text)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSuspend: when the service ends, what people have goes to sleep; what waits in pools is nobody's, and isn't saved.
func TestSuspend(t *testing.T) {
	l := newLab(t, 1)
	must2 := func(_ any, _ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must2(l.PutTemplate(l.ctx, admin, "t", api.TemplateSpec{}, nil))
	l.buildAll()
	if _, err := l.PutPool(l.ctx, admin, "p", api.PoolSpec{Template: "t", Replicas: 3}); err != nil {
		t.Fatal(err)
	}
	l.fill()
	s := must(l.CreateSandbox(l.ctx, admin, api.CreateSandbox{Pool: "p"}))(t)
	l.fill()
	l.hosts[0].Change(s.ID, func(s *controltest.Sandbox) { s.Stubborn = true }) // as one that has made forks of itself
	l.peer(l.names[0]).local = true
	if err := l.Suspend(l.ctx); err != nil {
		t.Fatal(err)
	}
	all := l.hosts[0].Sandboxes()
	for id, b := range all {
		if b.Asleep != (id == s.ID) {
			t.Errorf("%s sleeps: %v", id, b.Asleep)
		}
	}
	if len(all) != 4 {
		t.Errorf("there are %d", len(all))
	}
}
