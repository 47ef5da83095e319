package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"agentrun.dev/access"
	"agentrun.dev/api"
	blobs "agentrun.dev/blob/memory"
	"agentrun.dev/bucket"
	"agentrun.dev/control/controltest"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
	"agentrun.dev/kv/memory"
)

// killer ends a service at one of its steps: a step is the moment before, or after, a commit or a request to a node. From then on the
// service can neither record nor do anything, like a process that was killed.
type killer struct {
	mu   sync.Mutex
	at   int // 0: never
	now  int
	dead bool
	what string
}

var errKilled = errs.Msg(errs.Unavailable, "step", "", "killed")

func (k *killer) step(what string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dead {
		return errKilled
	}
	if k.now++; k.now == k.at {
		k.dead, k.what = true, what
		return errKilled
	}
	return nil
}

func (k *killer) isDead() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.dead
}

// mortal is a store as a service sees it that a killer may end.
type mortal struct {
	kv.Store
	k *killer
}

func (m mortal) Commit(ctx context.Context, b *kv.Batch) error {
	if err := m.k.step("before a commit"); err != nil {
		return err
	}
	if err := m.Store.Commit(ctx, b); err != nil {
		return err
	}
	return m.k.step("after a commit")
}

// lab is a service without its own loops: nothing happens but what is asked for, so steps are the same each time.
type lab struct {
	t interface {
		Helper()
		Fatalf(string, ...any)
		Errorf(string, ...any)
	}
	ctx   context.Context
	store kv.Store
	disk  *bucket.Store
	guard *access.Guard
	keys  *access.Keys
	hosts []*controltest.Host
	names []string
	k     *killer
	*Control
}

func newLab(t *testing.T, nodes int) *lab {
	store := memory.New()
	g, keys := guard(t, memory.New()) // its commits are no steps
	l := &lab{t: t, ctx: t.Context(), store: store, disk: disk(t), guard: g, keys: keys}
	for i := range nodes {
		l.names = append(l.names, fmt.Sprintf("node-%d", i))
		l.hosts = append(l.hosts, controltest.New(l.names[i], 0))
	}
	l.reopen()
	return l
}

// disk is a store of buckets, that nothing kills.
func disk(t *testing.T) *bucket.Store {
	t.Helper()
	s, err := bucket.Open(t.Context(), bucket.Options{KV: memory.New(), Blobs: blobs.New(blobs.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// reopen opens a new service over what the former one left, as Start does, without loops.
func (l *lab) reopen() {
	l.t.Helper()
	l.k = &killer{}
	k := l.k
	for _, h := range l.hosts {
		h.Hook = nil
	}
	c, err := Open(l.ctx, Options{KV: mortal{l.store, k}, Store: l.disk, Guard: l.guard, Keys: l.keys})
	if err != nil {
		l.t.Fatalf("open: %v", err)
	}
	l.Control = c
	for i, h := range l.hosts {
		if err := c.Join(l.ctx, l.names[i], "", h, false); err != nil {
			l.t.Fatalf("join: %v", err)
		}
	}
	c.begun.Store(true)
	l.settle()
	for _, h := range l.hosts {
		h.Hook = func(_ context.Context, op, thing string, after bool) error {
			when := "before "
			if after {
				when = "after "
			}
			return k.step(when + op)
		}
	}
}

// settle does what Start and the loops do, until there is nothing to do.
func (l *lab) settle() {
	for range 3 {
		for _, p := range l.allPeers() {
			l.reconcile(l.ctx, p)
		}
		l.mendForks(l.ctx)
		l.mendSnapshots(l.ctx)
		l.mendVolumes(l.ctx)
	}
}

// pool makes a template, builds it and fills a pool of it.
func (l *lab) pool(name string, replicas int) {
	l.t.Helper()
	if _, _, err := l.PutTemplate(l.ctx, admin, name, api.TemplateSpec{}, nil); err != nil {
		l.t.Fatalf("template: %v", err)
	}
	l.buildAll()
	if _, err := l.PutPool(l.ctx, admin, name, api.PoolSpec{Template: name, Replicas: replicas}); err != nil {
		l.t.Fatalf("pool: %v", err)
	}
	l.fill()
}

func (l *lab) buildAll() {
	var due []*api.Template
	l.versions.all(func(_ string, v *api.Template) bool {
		if v.State == api.BuildQueued || v.State == api.BuildRunning {
			due = append(due, v)
		}
		return true
	})
	for _, v := range due {
		l.build(l.ctx, v)
	}
}

// fill fills the pools: one sandbox at a time, so that steps have an order.
func (l *lab) fill() {
	for range 20 {
		one := newLimit(1)
		l.fillPools(l.ctx, one)
		one.wait()
	}
}

// check holds records and nodes against each other.
func (l *lab) check(where string) {
	l.t.Helper()
	there := map[string]controltest.Sandbox{}
	for i, h := range l.hosts {
		for id, s := range h.Sandboxes() {
			if _, twice := there[id]; twice {
				l.t.Errorf("%s: %s is on two nodes", where, id)
			}
			there[id] = s
			b := l.box(id)
			if b == nil {
				l.t.Errorf("%s: %s on %s is an orphan", where, id, l.names[i])
			} else if n := b.rec.Load().Node; n != l.names[i] {
				l.t.Errorf("%s: %s is on %s, recorded on %s", where, id, l.names[i], n)
			}
		}
	}
	names := map[string]string{}
	for _, b := range l.index.list() {
		r := b.rec.Load()
		s, ok := there[b.id]
		asleep := r.State == api.StateHibernated
		switch {
		case !ok:
			l.t.Errorf("%s: %s is recorded as %s, and nowhere", where, b.id, r.State)
		case r.State != api.StateRunning && r.State != api.StateWarm && !asleep:
			l.t.Errorf("%s: %s is still %s", where, b.id, r.State)
		case s.Asleep != asleep || s.Epoch != r.Epoch && !asleep:
			l.t.Errorf("%s: %s is %s of epoch %d, on its node asleep=%v of epoch %d", where, b.id, r.State, r.Epoch, s.Asleep, s.Epoch)
		case !asleep && s.Claimed != r.claimed():
			l.t.Errorf("%s: %s is %s, on its node claimed=%v", where, b.id, r.State, s.Claimed)
		case s.Claims > 1:
			l.t.Errorf("%s: %s was claimed %d times", where, b.id, s.Claims)
		}
		if r.Name != "" {
			if names[r.Name] != "" {
				l.t.Errorf("%s: two sandboxes are called %s", where, r.Name)
			}
			names[r.Name] = b.id
		}
	}
	l.forks.all(func(name string, f *fork) bool {
		if f.State == statePending {
			l.t.Errorf("%s: the fork %s is still pending", where, name)
		}
		return true
	})
	l.checkStore(where)
}

// checkStore holds what is stored against what is in memory.
func (l *lab) checkStore(where string) {
	l.t.Helper()
	stored := map[string]string{}
	names := map[string]string{}
	err := l.store.Scan(l.ctx, kv.Range{}, func(k, v []byte) error {
		switch {
		case strings.HasPrefix(string(k), "c/s/"):
			stored[lastOf(k)] = string(v)
		case strings.HasPrefix(string(k), "c/n/"):
			names[lastOf(k)] = string(v)
		}
		return nil
	})
	if err != nil {
		l.t.Fatalf("%v", err)
	}
	for _, b := range l.index.list() {
		if stored[b.id] != string(b.raw) {
			l.t.Errorf("%s: %s is stored as %s, in memory %s", where, b.id, stored[b.id], b.raw)
		}
		delete(stored, b.id)
		if n := b.rec.Load().Name; n != "" {
			if names[n] != b.id {
				l.t.Errorf("%s: the name %s leads to %q, not %s", where, n, names[n], b.id)
			}
			delete(names, n)
		}
	}
	for id := range stored {
		l.t.Errorf("%s: %s is stored and not in memory", where, id)
	}
	for n := range names {
		l.t.Errorf("%s: the name %s leads to a sandbox that isn't there", where, n)
	}
}

// run runs a command of controltest.
func (l *lab) run(id string, args ...string) (string, error) {
	s, err := l.Use(l.ctx, admin, id, access.SandboxExec)
	if err != nil {
		return "", err
	}
	defer s.Close()
	var out strings.Builder
	p, err := s.Exec(l.ctx, engine.Cmd{Args: args, Stdout: &out})
	if err != nil {
		return "", err
	}
	_, err = p.Wait(l.ctx)
	return out.String(), err
}

// TestKill kills the service at every step of every transition. Whatever it was doing, the next one makes nodes and records agree; what
// was acknowledged holds; what wasn't has happened, or not, as a whole.
func TestKill(t *testing.T) {
	base := func(l *lab) error {
		_, err := l.CreateSandbox(l.ctx, admin, api.CreateSandbox{Pool: "p", Name: "base", Env: map[string]string{"A": "1"}})
		return err
	}
	for name, sc := range map[string]struct {
		before func(*lab) error
		do     func(*lab) error
		after  func(l *lab, err error) string // what is wrong once reopened; err is do's
	}{
		"claim": {nil, base, func(l *lab, err error) string {
			_, ferr := l.Sandbox(l.ctx, admin, "base")
			if err == nil && ferr != nil {
				return "it was acknowledged, and is lost"
			}
			return ""
		}},
		"create": {nil, func(l *lab) error {
			_, err := l.CreateSandbox(l.ctx, admin, api.CreateSandbox{Template: "p", Name: "base", Env: map[string]string{"A": "1"}})
			return err
		}, func(l *lab, err error) string {
			if _, ferr := l.Sandbox(l.ctx, admin, "base"); err == nil && ferr != nil {
				return "it was acknowledged, and is lost"
			}
			return ""
		}},
		"fork": {base, func(l *lab) error {
			_, err := l.ForkSandbox(l.ctx, admin, "base", api.ForkSandbox{Count: 3, Name: "f"})
			return err
		}, func(l *lab, err error) string {
			n := 0
			for _, b := range l.index.list() {
				if b.rec.Load().Parent != "" {
					n++
				}
			}
			if n != 0 && n != 3 || err == nil && n != 3 {
				return fmt.Sprintf("%d children", n)
			}
			if n == 0 { // the name is free
				if _, err := l.ForkSandbox(l.ctx, admin, "base", api.ForkSandbox{Count: 3, Name: "f"}); err != nil {
					return "again: " + err.Error()
				}
			}
			return ""
		}},
		"hibernate": {base, func(l *lab) error {
			_, err := l.Hibernate(l.ctx, admin, "base")
			return err
		}, sameEnv},
		"resume": {func(l *lab) error {
			if err := base(l); err != nil {
				return err
			}
			_, err := l.Hibernate(l.ctx, admin, "base")
			return err
		}, func(l *lab) error {
			_, err := l.Resume(l.ctx, admin, "base")
			return err
		}, sameEnv},
		"pause": {func(l *lab) error {
			if err := base(l); err != nil {
				return err
			}
			l.hosts[0].Change(l.idOf("base"), func(s *controltest.Sandbox) { s.Stubborn = true })
			return nil
		}, func(l *lab) error {
			_, err := l.HibernateSandbox(l.ctx, admin, "base", api.HibernateSandbox{Force: true})
			return err
		}, sameEnv},
		"network": {func(l *lab) error {
			if _, _, err := l.PutTemplate(l.ctx, admin, "n", api.TemplateSpec{Network: api.NetworkPolicy{Allow: []string{"*.example.org"}}}, nil); err != nil {
				return err
			}
			l.buildAll()
			_, err := l.CreateSandbox(l.ctx, admin, api.CreateSandbox{Template: "n", Name: "net"})
			return err
		}, func(l *lab) error {
			_, err := l.ChangeSandbox(l.ctx, admin, "net", api.ChangeSandbox{Network: &api.NetworkPolicy{Allow: []string{"a.example.org"}}})
			return err
		}, func(l *lab, err error) string {
			s, ferr := l.Sandbox(l.ctx, admin, "net")
			if ferr != nil {
				return ferr.Error()
			}
			has := l.hosts[0].Sandboxes()[s.ID].Claim.Network
			if !slices.Equal(has, s.Network.Allow) || err == nil && s.Network.Allow[0] != "a.example.org" {
				return fmt.Sprintf("recorded: %v, in force: %v", s.Network.Allow, has)
			}
			return ""
		}},
		"end": {base, func(l *lab) error {
			_, err := l.EndSandbox(l.ctx, admin, "base")
			return err
		}, func(l *lab, err error) string {
			if _, ferr := l.Sandbox(l.ctx, admin, "base"); err == nil && ferr == nil {
				return "it hasn't ended"
			}
			return ""
		}},
		"promote": {func(l *lab) error {
			if err := base(l); err != nil {
				return err
			}
			_, err := l.ForkSandbox(l.ctx, admin, "base", api.ForkSandbox{Name: "f", Count: 2})
			return err
		}, func(l *lab) error {
			_, err := l.Promote(l.ctx, admin, "f-1")
			return err
		}, func(l *lab, err error) string {
			s, ferr := l.Sandbox(l.ctx, admin, "base")
			if ferr != nil {
				return ferr.Error()
			}
			if err == nil && s.Parent != "" {
				return "it isn't promoted"
			}
			return sameEnv(l, nil)
		}},
		"snapshot": {base, func(l *lab) error {
			_, err := l.TakeSnapshot(l.ctx, admin, "base", api.TakeSandboxSnapshot{})
			return err
		}, func(l *lab, err error) string {
			list, lerr := l.Snapshots(l.ctx, admin, "", Page{})
			if lerr != nil || err == nil && len(list.Snapshots) != 1 {
				return fmt.Sprintf("%+v, %v", list, lerr)
			}
			return ""
		}},
		"snapshot with memory": {base, shoot, func(l *lab, err error) string {
			list, lerr := l.Snapshots(l.ctx, admin, "", Page{})
			if lerr != nil || err == nil && len(list.Snapshots) != 1 {
				return fmt.Sprintf("%+v, %v", list, lerr)
			}
			return l.shots()
		}},
		"create from memory": {func(l *lab) error {
			if err := base(l); err != nil {
				return err
			}
			return shoot(l)
		}, func(l *lab) error {
			list, err := l.Snapshots(l.ctx, admin, "", Page{})
			if err != nil {
				return err
			}
			_, err = l.CreateSandbox(l.ctx, admin, api.CreateSandbox{Name: "copy", Snapshot: list.Snapshots[0].ID})
			return err
		}, func(l *lab, err error) string {
			text, rerr := l.run("copy", "get", "f")
			if rerr == nil && text != "base" || err == nil && rerr != nil {
				return fmt.Sprintf("%q, %v", text, rerr)
			}
			return l.shots()
		}},
		"delete memory": {func(l *lab) error {
			if err := base(l); err != nil {
				return err
			}
			return shoot(l)
		}, func(l *lab) error {
			list, err := l.Snapshots(l.ctx, admin, "", Page{})
			if err != nil {
				return err
			}
			return l.DeleteSnapshot(l.ctx, admin, list.Snapshots[0].ID)
		}, func(l *lab, err error) string {
			if list, lerr := l.Snapshots(l.ctx, admin, "", Page{}); lerr != nil || err == nil && len(list.Snapshots) != 0 {
				return fmt.Sprintf("%+v, %v", list, lerr)
			}
			return l.shots()
		}},
		"create volume": {nil, func(l *lab) error {
			_, err := l.CreateVolume(l.ctx, admin, api.CreateVolume{Name: "v"})
			return err
		}, func(l *lab, err error) string {
			if _, ferr := l.Volume(l.ctx, admin, "v"); err == nil && ferr != nil {
				return "it was acknowledged, and is lost"
			} else if ferr != nil { // the name is free
				if _, err := l.CreateVolume(l.ctx, admin, api.CreateVolume{Name: "v"}); err != nil {
					return err.Error()
				}
			}
			return l.stored()
		}},
		"delete volume": {func(l *lab) error {
			_, err := l.CreateVolume(l.ctx, admin, api.CreateVolume{Name: "v"})
			return err
		}, func(l *lab) error {
			return l.DeleteVolume(l.ctx, admin, "v")
		}, func(l *lab, err error) string {
			if _, ferr := l.Volume(l.ctx, admin, "v"); err == nil && ferr == nil {
				return "it is there still"
			}
			return l.stored()
		}},
		"claim with a volume": {func(l *lab) error {
			_, err := l.CreateVolume(l.ctx, admin, api.CreateVolume{Name: "v"})
			return err
		}, func(l *lab) error {
			_, err := l.CreateSandbox(l.ctx, admin, api.CreateSandbox{Pool: "p", Name: "base", Volumes: []api.VolumeMount{{Volume: "v", Path: "/data"}}})
			return err
		}, func(l *lab, err error) string {
			v, ferr := l.Volume(l.ctx, admin, "v")
			if ferr != nil {
				return ferr.Error()
			}
			s, ferr := l.Sandbox(l.ctx, admin, "base")
			if err == nil && ferr != nil {
				return "it was acknowledged, and is lost"
			}
			if ferr != nil {
				return ""
			}
			has := l.hosts[0].Sandboxes()[s.ID].Claim.Volumes
			if len(has) != 1 || has[0].Bucket != v.Bucket || !slices.Equal(v.Sandboxes, []string{s.ID}) {
				return fmt.Sprintf("mounted: %+v by %v", has, v.Sandboxes)
			}
			return ""
		}},
		"fill": {nil, func(l *lab) error {
			if _, err := l.PutPool(l.ctx, admin, "p", api.PoolSpec{Template: "p", Replicas: 4}); err != nil {
				return err
			}
			l.fill()
			return nil
		}, nil},
		"claim by name": {nil, func(l *lab) error {
			_, err := l.PutClaim(l.ctx, admin, "mine", api.ClaimSpec{Pool: "p"})
			return err
		}, func(l *lab, err error) string {
			if _, err := l.PutClaim(l.ctx, admin, "mine", api.ClaimSpec{Pool: "p"}); err != nil {
				return err.Error()
			}
			n := 0
			for _, b := range l.index.list() {
				if b.rec.Load().claimed() {
					n++
				}
			}
			if n != 1 {
				return fmt.Sprintf("%d sandboxes for one claim", n)
			}
			return ""
		}},
		"create with a key": {nil, func(l *lab) error { return keyed(l) }, func(l *lab, err error) string {
			if err := keyed(l); err != nil && !errs.Is(err, errs.Conflict) {
				return err.Error()
			}
			n := 0
			for _, b := range l.index.list() {
				if b.rec.Load().claimed() {
					n++
				}
			}
			if n > 1 {
				return fmt.Sprintf("%d sandboxes for one key", n)
			}
			return ""
		}},
	} {
		for _, crash := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, node too %v", name, crash), func(t *testing.T) {
				for at := 1; ; at++ {
					l := newLab(t, 1)
					l.pool("p", 2)
					if sc.before != nil {
						if err := sc.before(l); err != nil {
							t.Fatal(err)
						}
					}
					l.k.mu.Lock()
					l.k.at = l.k.now + at
					l.k.mu.Unlock()
					err := sc.do(l)
					if !l.k.isDead() {
						if err != nil {
							t.Fatalf("unharmed: %v", err)
						}
						l.check("unharmed")
						t.Logf("%d steps", at-1)
						if at < 2 {
							t.Fatal("no step at all")
						}
						return
					}
					where := fmt.Sprintf("step %d, %s", at, l.k.what)
					if crash {
						l.hosts[0].Crash()
					}
					l.reopen()
					l.check(where)
					if sc.after != nil && !crash {
						if wrong := sc.after(l, err); wrong != "" {
							t.Errorf("%s: %s (%v)", where, wrong, err)
						}
						l.settle()
						l.check(where + ", afterwards")
					}
					if t.Failed() {
						return
					}
				}
			})
		}
	}
}

// sameEnv says what is wrong with the sandbox base: it must run, with the environment that it was claimed with.
func sameEnv(l *lab, _ error) string {
	if env, err := l.run("base", "env"); err != nil || env != "A=1" {
		return fmt.Sprintf("env %q, %v", env, err)
	}
	return ""
}

// keyed creates a sandbox under an idempotency key.
func keyed(l *lab) error {
	_, _, err := l.Once(l.ctx, admin, "key", [32]byte{1}, func(ctx context.Context) (*Answer, error) {
		s, err := l.CreateSandbox(ctx, admin, api.CreateSandbox{Pool: "p"})
		if err != nil {
			return nil, err
		}
		return &Answer{Status: 201, Body: []byte(s.ID)}, nil
	})
	return err
}

// shoot takes a snapshot with memory of the sandbox base.
func shoot(l *lab) error {
	if _, err := l.run("base", "set", "f", "base"); err != nil {
		return err
	}
	_, err := l.TakeSnapshot(l.ctx, admin, "base", api.TakeSandboxSnapshot{Memory: true})
	return err
}

// shots says what is wrong with the images of snapshots: nodes have those that are recorded, and no others.
func (l *lab) shots() string {
	want := map[string]bool{}
	l.snapshots.all(func(id string, n *snapshot) bool {
		if n.Pending || n.Gone {
			l.t.Errorf("the snapshot %s is half there", id)
		}
		want[n.Image] = true
		return true
	})
	for i, h := range l.hosts {
		l.poll(l.ctx, l.peer(l.names[i]))
		images, err := h.Images(l.ctx)
		if err != nil {
			return err.Error()
		}
		for _, image := range images {
			if snapshotOf(image) != "" && !want[image] {
				return image + " is left"
			}
			delete(want, image)
		}
	}
	if len(want) > 0 {
		return fmt.Sprintf("missing: %v", want)
	}
	return ""
}

// stored says what is wrong with volumes: there are the buckets of those that are recorded, and no others.
func (l *lab) stored() string {
	want := map[string]bool{}
	l.volumes.all(func(_ string, v *stored) bool {
		if v.Pending || v.Gone {
			l.t.Errorf("the volume %s is half there", v.ID)
		}
		want[v.Bucket] = true
		return true
	})
	wrong := ""
	err := l.disk.List(l.ctx, func(i *bucket.Info) error {
		if storedID(i.Name) != "" && !want[i.Name] {
			wrong = i.Name + " is left"
		}
		delete(want, i.Name)
		return nil
	})
	if err != nil {
		return err.Error()
	}
	if len(want) > 0 {
		return fmt.Sprintf("missing: %v", want)
	}
	return wrong
}
