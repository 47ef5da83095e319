package node

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"agentrun.dev/bucket"
	"agentrun.dev/egress"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/vfs"
	"agentrun.dev/volume"
)

// Sandbox is a running sandbox. All methods may be called concurrently; after its end they fail with errs.Unavailable.
type Sandbox struct {
	n       *Node
	id      string
	spec    Spec
	family  *family
	origin  *origin // of a fork
	created time.Time
	dialer  *egress.Dialer // nil: no network
	in      engine.Instance
	ready   chan struct{} // closed once all of the above is set: a fork's processes may run before
	done    chan struct{} // closed when it has begun to end
	used    atomic.Int64  // when it was last used, in nanoseconds since 1970

	hosted  bool // started by Local
	epoch   uint64
	image   string // that it came from at first
	claimed atomic.Bool
	env     atomic.Pointer[[]string] // of the claim; in no file
	rules   atomic.Pointer[string]   // RulesID of the claim's network
	before  engine.Stats             // what the image had used when this one started
	cpu     atomic.Int64             // that it may have used in all, in nanoseconds; 0: any
	watched atomic.Bool              // whether somebody looks after that
	calls   sessions

	mu      sync.Mutex // one change of volumes at a time
	mounted []string   // paths of volumes that a claim brought
	volumes *volume.Set
	asleep  bool              // saved: bases are the sleeper's
	napping atomic.Bool       // saved, or about to be
	shared  []string          // buckets that Sweep may delete, of volumes that it shared with others before it slept
	bases   map[string]string // buckets that hold what its own volumes began as, by path, where that isn't in their own history
}

// origin tells where a fork comes from.
type origin struct {
	parent string // id
	index  int    // among the children of one fork, from 1
	inside bool   // the parent asked for it itself, and it ends with the parent
}

// ID names the sandbox on its node, and everywhere.
func (s *Sandbox) ID() string { return s.id }

// Name is what people call it; may be empty.
func (s *Sandbox) Name() string { return s.spec.Name }

// Parent is the id of the sandbox that it was forked from, or empty.
func (s *Sandbox) Parent() string {
	if s.origin == nil {
		return ""
	}
	return s.origin.parent
}

// Created is when it was made.
func (s *Sandbox) Created() time.Time { return s.created }

// Done is closed when the sandbox begins to end.
func (s *Sandbox) Done() <-chan struct{} { return s.done }

// Instance is what the engine runs.
func (s *Sandbox) Instance() engine.Instance { return s.in }

// Namespace is the sandbox's files, or nil where the engine doesn't show them.
func (s *Sandbox) Namespace() *vfs.Namespace {
	if f, ok := s.in.(engine.Filer); ok {
		return f.Namespace()
	}
	return nil
}

// Exec starts a command, as engine.Instance has it.
func (s *Sandbox) Exec(ctx context.Context, c engine.Cmd) (engine.Process, error) {
	s.Touch()
	if err := s.spent(ctx); err != nil {
		return nil, err
	}
	if env := s.env.Load(); env != nil {
		c.Env = append(slices.Clone(*env), c.Env...)
	}
	if c.Own {
		return s.work(ctx, c)
	}
	return s.sleeper(s.in.Exec(ctx, c))
}

// work starts a command of AgentRun's own (engine.Cmd.Own) on the sandbox's files. Of those that start others there are none: they would run
// out here.
func (s *Sandbox) work(ctx context.Context, c engine.Cmd) (engine.Process, error) {
	if len(c.Args) == 0 || c.Args[0] != "sftp-server" {
		return nil, errs.Msg(errs.Unsupported, "exec", s.id, "that isn't a command which works on a sandbox's files from outside")
	}
	if ownEngine(s.spec.Engine) {
		return s.sleeper(s.in.Exec(ctx, c)) // which has it
	}
	w, ok := s.n.o.Engine.(engine.Worker)
	files := s.Namespace()
	if !ok || files == nil {
		return nil, errs.Msg(errs.Unsupported, "exec", s.id, "this engine's files can't be worked on from outside")
	}
	return s.sleeper(w.Work(ctx, files, c))
}

// sleeper is a command of a sandbox that may be put to sleep meanwhile.
func (s *Sandbox) sleeper(p engine.Process, err error) (engine.Process, error) {
	if err != nil || !s.hosted {
		return p, err
	}
	return sleeper{p, s}, nil
}

type sleeper struct {
	engine.Process
	s *Sandbox
}

// Signaled implements engine.Signaler.
func (p sleeper) Signaled() int {
	if x, ok := p.Process.(engine.Signaler); ok {
		return x.Signaled()
	}
	return 0
}

// killed is the status of a command that ended with its sandbox.
const killed = 128 + 9

// Wait implements engine.Process.
func (p sleeper) Wait(ctx context.Context) (int, error) {
	status, err := p.Process.Wait(ctx)
	if p.s.napping.Load() && (status == killed || err != nil) {
		return status, errs.Msg(errs.Unavailable, "run", p.s.id, "the sandbox was put to sleep; the command goes on when it wakes up")
	}
	return status, err
}

// Touch begins the lease anew.
func (s *Sandbox) Touch() { s.used.Store(time.Now().UnixNano()) }

// Bucket is the bucket that is mounted at a path, or nil.
func (s *Sandbox) Bucket(path string) *bucket.Bucket {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.volumes.Bucket(path)
}

// expire ends the sandbox when its lease has run out.
func (s *Sandbox) expire(lease time.Duration) {
	defer s.n.ends.Done()
	s.Touch()
	timer := time.NewTimer(lease)
	defer timer.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-timer.C:
		}
		left := lease - time.Since(time.Unix(0, s.used.Load()))
		if left > 0 {
			timer.Reset(left)
			continue
		}
		s.n.o.Log.Info("lease ran out", "sandbox", s.id, "lease", lease)
		s.EndSoon(context.Background())
		return
	}
}

// EndSoon ends the sandbox within EndTimeout, whatever becomes of ctx. What goes wrong is logged, and left to Sweep.
func (s *Sandbox) EndSoon(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), EndTimeout)
	defer cancel()
	if err := s.End(ctx); err != nil {
		s.n.o.Log.Error("end sandbox", "sandbox", s.id, "err", err)
	}
}

// End kills what runs in the sandbox and lets go of its volumes: buckets that were made for it are deleted. Forks that it
// made of itself end with it. A sandbox that has ended already is fine.
func (s *Sandbox) End(ctx context.Context) error {
	used := s.spends(ctx)
	if !s.n.remove(s) {
		return nil
	}
	s.family.end(used)
	var all []error
	for _, child := range s.family.of(s.id) {
		all = append(all, child.End(ctx))
	}
	return errors.Join(append(all, s.drop(ctx))...)
}

// drop ends what runs and closes the volumes of a sandbox that nobody finds any more.
func (s *Sandbox) drop(ctx context.Context) error {
	var all []error
	if s.in != nil {
		err := s.in.Stop(ctx)
		all = append(all, err)
		if err == nil {
			s.calls.end()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.volumes != nil {
		all = append(all, s.volumes.Close(ctx))
	}
	if len(s.bases) > 0 && !s.asleep {
		all = append(all, s.n.deleteBuckets(ctx, s.bases))
	}
	return errors.Join(all...)
}

// Keep makes the buckets of this sandbox outlive it, and returns their names by the paths they are mounted at.
func (s *Sandbox) Keep(ctx context.Context) (map[string]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.living(); err != nil {
		return nil, err
	}
	return s.volumes.Keep(ctx)
}

// wait returns when the sandbox is known to the node: processes of a fork run earlier than that.
func (s *Sandbox) wait(ctx context.Context) error {
	select {
	case <-s.ready:
		return nil
	case <-s.done:
		return s.living()
	case <-ctx.Done():
		return errs.New(errs.Canceled, "use sandbox", s.id, ctx.Err())
	}
}

// living fails once the sandbox has begun to end.
func (s *Sandbox) living() error {
	select {
	case <-s.done:
		return errs.Msg(errs.Unavailable, "use sandbox", s.id, "it has ended")
	default:
		return nil
	}
}

// family is sandboxes that forked themselves off each other.
type family struct {
	mu      sync.Mutex
	members map[string]*Sandbox // by id
	taken   map[string]bool     // names, also of those that are being made
	coming  int                 // members that are being made
	past    spent               // what members had used that have ended
}

func newFamily() *family { return &family{members: map[string]*Sandbox{}, taken: map[string]bool{}} }

func (f *family) add(s *Sandbox) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.members[s.id] = s
}

func (f *family) remove(s *Sandbox) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.members, s.id)
	delete(f.taken, s.spec.Name)
}

// end notes what a member had used.
func (f *family) end(x spent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.past.add(x)
}

// ended is what members had used that have ended.
func (f *family) ended() spent {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.past
}

// all returns the members.
func (f *family) all() []*Sandbox {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.members))
}

// of returns the children of a member.
func (f *family) of(id string) []*Sandbox {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*Sandbox
	for _, s := range f.members {
		if s.Parent() == id {
			out = append(out, s)
		}
	}
	return out
}

// find returns the member of an id or a name.
func (f *family) find(name string) *Sandbox {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.members[name]; s != nil {
		return s
	}
	for _, s := range f.members {
		if s.spec.Name == name {
			return s
		}
	}
	return nil
}

// grow takes places for more members, and tells whether there are so many.
func (f *family) grow(count, most int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.members)+f.coming+count > most {
		return false
	}
	f.coming += count
	return true
}

// grown gives back what grow took: the members are there, or won't come.
func (f *family) grown(count int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.coming -= count
}

// take reserves names, all or none of them; the name that is taken already comes back.
func (f *family) take(names []string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range names {
		if f.taken[n] {
			return n
		}
	}
	for _, n := range names {
		f.taken[n] = true
	}
	return ""
}

func (f *family) give(names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range names {
		delete(f.taken, n)
	}
}
