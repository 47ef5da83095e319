package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"runtime"
	"slices"
	"sync"
	"time"

	"agentrun.dev/egress"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/volume"
)

// Local returns a Host of the sandboxes of a node in this process. name and version are for Info.
func Local(n *Node, name, version string) Host {
	return &local{n: n, name: name, version: version, turns: map[string]*turn{}, images: map[string]*image{}}
}

// local implements Host.
type local struct {
	n             *Node
	name, version string

	mu     sync.Mutex
	turns  map[string]*turn  // of what is being done, by id
	images map[string]*image // that were used
}

// turn lets one call at a time change what belongs to an id.
type turn struct {
	busy    chan struct{} // holds one value while somebody has the turn
	waiters int
}

// lock waits for the turn of an id.
func (l *local) lock(ctx context.Context, id string) (unlock func(), err error) {
	l.mu.Lock()
	t := l.turns[id]
	if t == nil {
		t = &turn{busy: make(chan struct{}, 1)}
		l.turns[id] = t
	}
	t.waiters++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if t.waiters--; t.waiters == 0 {
			delete(l.turns, id)
		}
	}
	select {
	case t.busy <- struct{}{}:
		return func() { <-t.busy; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, errs.New(errs.Canceled, "use sandbox", id, ctx.Err())
	}
}

// Info implements Host.
func (l *local) Info(context.Context) (*Info, error) {
	i := &Info{Name: l.name, Version: l.version, Max: l.n.o.Max, CPUs: runtime.GOMAXPROCS(0)}
	i.Engines, i.Lacks = l.n.describe()
	i.Memory, i.Free = memory()
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	i.Sandboxes = len(l.n.list)
	return i, nil
}

// hosted finds a sandbox that runs here. One that sleeps is errs.Unavailable.
func (l *local) hosted(id string) (*Sandbox, error) {
	s, err := l.n.Get(id)
	if err == nil && s.hosted {
		return s, nil
	}
	if naps, err := l.n.naps(); err != nil {
		return nil, err
	} else if x, ok := naps[id]; ok && x.hosted {
		return nil, errs.Msg(errs.Unavailable, "find sandbox", id, "it hibernates")
	}
	return nil, errs.Msg(errs.NotFound, "find sandbox", id, "no sandbox of this id runs here")
}

// old is the error for a request of another epoch than the sandbox's.
func old(op, id string, have, want uint64) error {
	return errs.Msg(errs.Conflict, op, id, fmt.Sprintf("it is of epoch %d, not %d", have, want))
}

// Start implements Host.
func (l *local) Start(ctx context.Context, st Start) (*Running, error) {
	begun := time.Now()
	if st.ID == "" || checkID(st.ID) != nil {
		return nil, errs.Msg(errs.Invalid, "start sandbox", st.ID, "an id is 1 to 36 of a-z, 0-9 and '-', with no '-' at either end")
	}
	unlock, err := l.lock(ctx, st.ID)
	if err != nil {
		return nil, err
	}
	defer unlock()
	s, err := l.hosted(st.ID)
	switch {
	case err == nil && s.epoch == st.Epoch:
		return s.running(begun), nil
	case err == nil:
		return nil, old("start sandbox", st.ID, s.epoch, st.Epoch)
	case errs.Is(err, errs.Unavailable):
		return nil, errs.Msg(errs.Conflict, "start sandbox", st.ID, "it hibernates")
	case !errs.Is(err, errs.NotFound):
		return nil, err
	}
	if s, err = l.start(ctx, st, nil); err != nil {
		return nil, err
	}
	return s.running(begun), nil
}

// start makes a sandbox of an image; of one that had run before, from is what is left.
func (l *local) start(ctx context.Context, st Start, from *crashed) (*Sandbox, error) {
	im, done, err := l.use(ctx, st.Image)
	if err != nil {
		return nil, err
	}
	defer done()
	spec := im.about.Build.Spec
	spec.ID, spec.Name, spec.Network, spec.Volumes, spec.Lease = st.ID, st.Name, nil, nil, 0
	s, err := l.n.sandbox(spec, newFamily())
	if err != nil {
		return nil, err
	}
	s.hosted, s.epoch, s.image = true, st.Epoch, cmp.Or(im.about.Base, st.Image)
	s.dialer = egress.New(nil, l.n.o.Network)
	extra := st.Volumes
	if st.Claim != nil {
		if err := s.take(st.Claim); err != nil {
			return nil, err
		}
		extra = slices.Concat(extra, st.Claim.Volumes)
	}
	if extra, err = volume.Normal(extra); err != nil {
		return nil, err
	}
	if err := l.n.admit(1); err != nil {
		return nil, err
	}
	defer l.n.admitted(1)
	instead, more := split(im.cut.Specs(), extra)
	instead = im.without(instead)
	who := engine.Identity{ID: s.id, Hostname: spec.Hostname, Services: s.services(), Labels: s.labels(), Adopt: from != nil}
	child, err := engine.Start(ctx, im.warm, im.cut, who, instead...)
	if err != nil {
		return nil, err
	}
	s.in, s.volumes = child.Instance, child.Volumes
	if from != nil {
		s.volumes.SetPolicies(im.policies())
		s.bases = from.bases
	} else {
		s.volumes.SetPolicies(im.policies(instead...))
	}
	err = mountMore(ctx, s.in, s.volumes, more)
	if err == nil {
		s.begin(ctx)
		err = l.n.add(s)
	}
	if err != nil {
		return nil, errors.Join(err, s.drop(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// split tells volumes that replace one at the same path from those that are added.
func split(have, given []volume.Spec) (instead, more []volume.Spec) {
	for _, v := range given {
		if slices.ContainsFunc(have, func(h volume.Spec) bool { return h.Path == v.Path }) {
			instead = append(instead, v)
		} else {
			more = append(more, v)
		}
	}
	return instead, more
}

// overlay is split for a claim's volumes over those that a sandbox had already: what is its own stays.
func overlay(have, given []volume.Spec) (instead, more []volume.Spec) {
	given, err := volume.Normal(given)
	if err != nil {
		return nil, nil // take has said so
	}
	instead, more = split(have, given)
	return slices.DeleteFunc(instead, func(v volume.Spec) bool { return v.Bucket == "" }), more
}

// mountMore opens volumes and mounts them in an instance that runs. After an error nothing has changed.
func mountMore(ctx context.Context, in engine.Instance, set *volume.Set, specs []volume.Spec) (err error) {
	if len(specs) == 0 {
		return nil
	}
	m, ok := in.(engine.Mounter)
	if !ok {
		return errs.Msg(errs.Unsupported, "mount", in.ID(), "this engine mounts nothing in a sandbox that runs")
	}
	mounts, err := set.Add(ctx, specs)
	if err != nil {
		return err
	}
	for i, v := range mounts {
		if err = m.Mount(ctx, v); err == nil {
			continue
		}
		end := context.WithoutCancel(ctx)
		for _, v := range mounts[:i] {
			err = errors.Join(err, m.Unmount(end, v.Path))
		}
		paths := make([]string, len(mounts))
		for i, v := range mounts {
			paths[i] = v.Path
		}
		return errors.Join(err, set.Drop(end, paths...))
	}
	return nil
}

// begin notes what the image of a sandbox had used, before anybody uses the sandbox.
func (s *Sandbox) begin(ctx context.Context) {
	if m, ok := s.in.(engine.Meter); ok && s.hosted {
		s.before, _ = m.Stats(ctx)
	}
}

// take gives the sandbox a claim's environment, network and budget. Volumes are the caller's to mount.
func (s *Sandbox) take(c *Claim) error {
	if err := s.mayConnect("claim", c.Network); err != nil {
		return err
	}
	policy, err := c.policy()
	if err != nil {
		return err
	}
	brought, err := volume.Normal(c.Volumes)
	if err != nil {
		return err
	}
	s.bring(brought)
	if s.dialer == nil {
		s.dialer = egress.New(policy, s.n.o.Network)
	} else {
		s.dialer.SetPolicy(policy)
	}
	s.dialer.SetLimit(c.Budget.Network)
	s.limitCPU(c.Budget.CPU)
	env, id := slices.Clone(c.Env), RulesID(c.Network)
	s.env.Store(&env)
	s.rules.Store(&id)
	s.claimed.Store(true)
	return nil
}

// bring notes that volumes are a claim's.
func (s *Sandbox) bring(list []volume.Spec) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range list {
		if !slices.Contains(s.mounted, v.Path) {
			s.mounted = append(s.mounted, v.Path)
		}
	}
}

// inherit gives a fork that a sandbox makes of itself what its parent was claimed with.
func (s *Sandbox) inherit(from *Sandbox) {
	s.dialer = egress.New(from.dialer.Policy(), s.n.o.Network)
	s.env.Store(from.env.Load())
	s.claimed.Store(from.claimed.Load())
}

func (c *Claim) policy() (*egress.Policy, error) {
	if len(c.Network) == 0 {
		return nil, nil
	}
	return egress.Parse(c.Network)
}

// running describes a sandbox.
func (s *Sandbox) running(begun time.Time) *Running {
	r := &Running{ID: s.id}
	s.mu.Lock()
	if s.volumes != nil {
		for _, v := range s.volumes.Specs() {
			m := Mounted{Spec: v}
			if b := s.volumes.Bucket(v.Path); b != nil {
				m.Bucket = b.Name()
			}
			r.Volumes = append(r.Volumes, m)
		}
	}
	s.mu.Unlock()
	r.Took = time.Since(begun)
	return r
}

// Claim implements Host.
func (l *local) Claim(ctx context.Context, id string, epoch uint64, c Claim) error {
	unlock, err := l.lock(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	s, err := l.hosted(id)
	if err != nil {
		return err
	}
	if s.epoch != epoch {
		return old("claim", id, s.epoch, epoch)
	}
	if s.claimed.Load() {
		return nil
	}
	more, err := volume.Normal(c.Volumes)
	if err != nil {
		return err
	}
	if _, err := c.policy(); err != nil {
		return err
	}
	if err := s.mayConnect("claim", c.Network); err != nil {
		return err
	}
	s.mu.Lock()
	err = s.living()
	if err == nil {
		err = mountMore(ctx, s.in, s.volumes, more)
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	s.Touch()
	return s.take(&c)
}

// Fork implements Host.
func (l *local) Fork(ctx context.Context, id string, f Fork) ([]*Running, error) {
	begun := time.Now()
	if len(f.IDs) == 0 || len(f.IDs) > engine.MaxForks {
		return nil, errs.Msg(errs.Invalid, "fork", id, fmt.Sprintf("%d forks; there can be 1 to %d at once", len(f.IDs), engine.MaxForks))
	}
	if f.Names == nil {
		f.Names = make([]string, len(f.IDs))
	}
	if n := len(f.Claims); len(f.Names) != len(f.IDs) || n > 1 && n != len(f.IDs) {
		return nil, errs.Msg(errs.Invalid, "fork", id, "as many names and claims are wanted as ids")
	}
	for i, child := range f.IDs {
		if child == "" || checkID(child) != nil || slices.Contains(f.IDs[:i], child) {
			return nil, errs.Msg(errs.Invalid, "fork", id, fmt.Sprintf("the id %q of a child isn't one, or is given twice", child))
		}
	}
	if len(f.Claims) == 0 {
		f.Claims = []Claim{{}}
	}
	unlock, err := l.lock(ctx, id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	s, err := l.hosted(id)
	if err != nil {
		return nil, err
	}
	if f.Epoch != s.epoch {
		return nil, old("fork", id, s.epoch, f.Epoch)
	}
	children, err := l.forked(s, f.IDs)
	if err == nil && children == nil {
		children, err = s.Fork(ctx, ForkOptions{Count: len(f.IDs), Kill: f.Kill, ids: f.IDs, names: f.Names, claims: f.Claims})
	}
	if err != nil {
		return nil, err
	}
	out := make([]*Running, len(children))
	for i, c := range children {
		out[i] = c.running(begun)
	}
	return out, nil
}

// forked returns children that were made already: all, or none of them.
func (l *local) forked(s *Sandbox, ids []string) (children []*Sandbox, err error) {
	naps, err := l.n.naps()
	if err != nil {
		return nil, err
	}
	taken := ""
	for _, id := range ids {
		c, err := l.n.Get(id)
		if _, sleeps := naps[id]; sleeps || err == nil && c.Parent() != s.id {
			return nil, errs.Msg(errs.Conflict, "fork", s.id, "there is another sandbox of the id "+id)
		}
		if err == nil {
			children, taken = append(children, c), id
		}
	}
	if n := len(children); n > 0 && n < len(ids) {
		return nil, errs.Msg(errs.Conflict, "fork", s.id, "the child "+taken+" was made before, and others of its siblings have ended")
	}
	return children, nil
}

// SetNetwork implements Host. What the sandbox made of itself has its rules, too.
func (l *local) SetNetwork(ctx context.Context, id string, epoch uint64, rules []string) error {
	unlock, err := l.lock(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	s, err := l.hosted(id)
	if err != nil {
		return err
	}
	if s.epoch != epoch {
		return old("set network", id, s.epoch, epoch)
	}
	if !s.claimed.Load() {
		return errs.Msg(errs.Conflict, "set network", id, "it isn't claimed")
	}
	if err := s.mayConnect("set network", rules); err != nil {
		return err
	}
	policy, err := (&Claim{Network: rules}).policy()
	if err != nil {
		return err
	}
	given := RulesID(rules)
	s.rules.Store(&given)
	s.dialer.SetPolicy(policy)
	for _, m := range s.family.all() {
		if m != s && m.dialer != nil {
			m.dialer.SetPolicy(policy)
		}
	}
	return nil
}

// Hibernate implements Host.
func (l *local) Hibernate(ctx context.Context, id string, kill bool) error {
	unlock, err := l.lock(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	s, err := l.hosted(id)
	if errs.Is(err, errs.Unavailable) {
		return nil
	} else if err != nil {
		return err
	}
	return s.hibernate(ctx, kill)
}

// Wake implements Host.
func (l *local) Wake(ctx context.Context, id string, epoch uint64, c Claim) (*Running, error) {
	begun := time.Now()
	unlock, err := l.lock(ctx, id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	s, err := l.hosted(id)
	if err == nil && s.epoch == epoch {
		return s.running(begun), nil
	} else if err == nil {
		return nil, old("wake", id, s.epoch, epoch)
	} else if !errs.Is(err, errs.Unavailable) {
		return nil, err
	}
	naps, err := l.n.naps()
	if err != nil {
		return nil, err
	}
	if epoch <= naps[id].epoch {
		return nil, old("wake", id, naps[id].epoch, epoch)
	}
	if from := naps[id].crashed; from != nil {
		s, err = l.recover(ctx, id, epoch, from, c)
	} else {
		s, err = l.n.resume(ctx, id, epoch, &c)
	}
	if err != nil {
		return nil, err
	}
	return s.running(begun), nil
}

// End implements Host.
func (l *local) End(ctx context.Context, id string) error {
	unlock, err := l.lock(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	s, err := l.hosted(id)
	switch {
	case err == nil:
		return s.End(ctx)
	case errs.Is(err, errs.NotFound):
		return nil
	case !errs.Is(err, errs.Unavailable):
		return err
	}
	naps, err := l.n.naps()
	if err != nil {
		return err
	}
	if c := naps[id].crashed; c != nil {
		return l.n.forgetCrashed(ctx, id, c)
	}
	return l.n.forget(ctx, id)
}

// forget deletes a sandbox that sleeps. Its folder goes first: buckets without one are Sweep's to find.
func (n *Node) forget(ctx context.Context, id string) error {
	var about asleep
	if err := n.readAbout(n.sleeping(id), &about); err != nil {
		return err
	}
	var cut *volume.Cut
	err := n.loadCut(ctx, n.sleeping(id), &cut)
	if err != nil {
		return err
	}
	if err := n.wakeUp(id); err != nil {
		return errors.Join(err, cut.Close(ctx))
	}
	return errors.Join(cut.Discard(ctx), n.deleteBuckets(ctx, about.Bases))
}

// Status implements Host. Sandboxes that others made of themselves count as those.
func (l *local) Status(ctx context.Context) ([]Status, error) {
	var out []Status
	at := map[*family]int{}
	list := l.n.List()
	dead := l.n.dead(ctx, list)
	for _, s := range list {
		if s.hosted && !s.inside() && !dead[s.id] {
			st := Status{ID: s.id, Epoch: s.epoch, Claimed: s.claimed.Load(), Started: s.created, Used: time.Unix(0, s.used.Load())}
			if id := s.rules.Load(); id != nil {
				st.Rules = *id
			}
			st.add(s.family.ended())
			at[s.family] = len(out)
			out = append(out, st)
		}
	}
	for _, s := range list {
		if i, ok := at[s.family]; ok {
			out[i].add(s.spends(ctx))
			if used := time.Unix(0, s.used.Load()); used.After(out[i].Used) {
				out[i].Used = used
			}
		}
	}
	naps, err := l.n.naps()
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Sorted(maps.Keys(naps)) {
		if x := naps[id]; x.hosted {
			out = append(out, Status{ID: id, Epoch: x.epoch, Claimed: x.claimed, Asleep: true, Used: x.since})
		}
	}
	return out, nil
}

// inside tells whether a sandbox made this one of itself.
func (s *Sandbox) inside() bool { return s.origin != nil && s.origin.inside }

// spent is what a sandbox has used.
type spent struct {
	engine.Stats
	in, out int64
}

// spends returns what the sandbox has used since it was started here.
func (s *Sandbox) spends(ctx context.Context) spent {
	var x spent
	if s.dialer != nil {
		u := s.dialer.Usage()
		x.in, x.out = u.Received, u.Sent
	}
	if m, ok := s.in.(engine.Meter); ok {
		if now, err := m.Stats(ctx); err == nil {
			now.CPU, now.Output, now.Written = now.CPU-s.before.CPU, now.Output-s.before.Output, now.Written-s.before.Written
			if now.MemoryShared == 0 { // the engine doesn't tell
				now.MemoryShared = min(s.before.Memory, now.Memory)
				now.Memory, now.MemoryPeak = now.Memory-now.MemoryShared, now.MemoryPeak-now.MemoryShared
			}
			x.Stats = now
		}
	}
	return x
}

// add sums what doesn't go back when a sandbox ends.
func (s *spent) add(x spent) {
	s.in, s.out = s.in+x.in, s.out+x.out
	s.CPU, s.Output, s.Written = s.CPU+x.CPU, s.Output+x.Output, s.Written+x.Written
}

func (st *Status) add(x spent) {
	st.NetworkIn, st.NetworkOut = st.NetworkIn+x.in, st.NetworkOut+x.out
	st.CPU, st.Output, st.Written = st.CPU+x.CPU, st.Output+x.Output, st.Written+x.Written
	st.Memory, st.MemoryShared, st.Processes = st.Memory+x.Memory, st.MemoryShared+x.MemoryShared, st.Processes+x.Processes
	st.MemoryPeak = max(st.MemoryPeak, x.MemoryPeak, st.Memory)
}

// Usage implements Host.
func (l *local) Usage(ctx context.Context, id string) (storage int64, err error) {
	s, err := l.hosted(id)
	if errs.Is(err, errs.Unavailable) {
		return l.n.napUsage(ctx, id)
	} else if err != nil {
		return 0, err
	}
	s.mu.Lock()
	if err := s.living(); err != nil {
		s.mu.Unlock()
		return 0, err
	}
	own, err := s.volumes.Own(ctx)
	s.mu.Unlock()
	for i := 0; err == nil && i < len(own); i++ {
		var n int64
		n, err = l.n.unique(ctx, own[i].Bucket.Name())
		storage += n
	}
	return storage, err
}

// unique is how many bytes the end of a bucket would give back.
func (n *Node) unique(ctx context.Context, name string) (int64, error) {
	u, err := n.o.Store.Usage(ctx, name)
	if errs.Is(err, errs.NotFound) {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	return int64(u.Unique), nil
}

// napUsage is Usage of a sandbox that sleeps.
func (n *Node) napUsage(ctx context.Context, id string) (storage int64, err error) {
	naps, err := n.naps()
	if err != nil {
		return 0, err
	}
	var names []string
	if c := naps[id].crashed; c != nil {
		names = slices.Collect(maps.Values(c.buckets))
	} else {
		var cut *volume.Cut
		if err := n.loadCut(ctx, n.sleeping(id), &cut); err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, cut.Close(context.WithoutCancel(ctx))) }()
		names = cut.Buckets()
	}
	for _, name := range names {
		x, err := n.unique(ctx, name)
		if err != nil {
			return 0, err
		}
		storage += x
	}
	return storage, nil
}

// Exec implements Host.
func (l *local) Exec(ctx context.Context, id string, c engine.Cmd) (engine.Process, error) {
	s, err := l.hosted(id)
	if err != nil {
		return nil, err
	}
	if c.Dir != "" && !path.IsAbs(c.Dir) {
		return nil, errs.Msg(errs.Invalid, "exec", c.Dir, "the directory isn't absolute")
	}
	return s.Exec(ctx, c)
}

// Processes implements Host. The interpreters of sessions aren't among them.
func (l *local) Processes(_ context.Context, id string) ([]engine.Running, error) {
	s, err := l.hosted(id)
	if err != nil {
		return nil, err
	}
	a, ok := s.in.(engine.Attacher)
	if !ok {
		return nil, errs.Msg(errs.Unsupported, "list processes", id, "this engine doesn't tell")
	}
	return slices.DeleteFunc(a.Running(), func(r engine.Running) bool { return sessionOf(r) != nil }), nil
}

// Signal implements Host.
func (l *local) Signal(ctx context.Context, id string, pid, sig int) error {
	s, err := l.process(ctx, id, pid)
	if err != nil {
		return err
	}
	s.Touch()
	return s.in.(engine.Attacher).Signal(pid, sig)
}

// process finds the sandbox in which a process is listed.
func (l *local) process(ctx context.Context, id string, pid int) (*Sandbox, error) {
	list, err := l.Processes(ctx, id)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(list, func(r engine.Running) bool { return r.Pid == pid }) {
		return nil, errs.Msg(errs.NotFound, "find process", fmt.Sprint(pid), "no command of this pid runs in the sandbox")
	}
	return l.hosted(id)
}

// Attach implements Host.
func (l *local) Attach(ctx context.Context, id string, pid int, c engine.Cmd) (engine.Process, error) {
	s, err := l.hosted(id)
	if err != nil {
		return nil, err
	}
	a, ok := s.in.(engine.Attacher)
	if !ok {
		return nil, errs.Msg(errs.Unsupported, "attach", id, "this engine attaches nobody")
	}
	for _, r := range a.Running() {
		if r.Pid == pid && sessionOf(r) != nil {
			return nil, errs.Msg(errs.NotFound, "attach", fmt.Sprint(pid), "no command of this pid runs in the sandbox")
		}
	}
	s.Touch()
	return s.sleeper(a.Attach(ctx, pid, c))
}
