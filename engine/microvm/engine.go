// Package microvm is an engine whose sandboxes are virtual machines: a Linux kernel each, in a process of its own that is
// confined to nothing but its descriptors (package vmm/jail).
//
// A root is the filesystem of an OCI image, which all machines of that image share and none changes, with a layer in memory on
// top. The agent (package guest) is the machine's first process; what the host wants done inside, it does. Volumes are
// virtio-fs devices, of which every machine has a fixed number: slots. A volume takes a slot while it is mounted, and its
// filesystem is served by this process (package fusefs), never by the confined one.
//
// A kind is what machines have to agree on to start from the same snapshot: image, memory and processors. The first Boot of a
// kind boots a kernel and captures it when the agent is up: that is the kind's base. From then on a Boot is a Start of the base, as a fork
// is one of what was captured of a running sandbox: a shell, which is a confined process that has everything but a guest, maps
// the captured memory, and the agent makes the machine another than the one it was (Renew) before anything of the workload runs. A
// machine in which that wasn't confirmed is thrown away.
//
// A guest is somebody else's. It may do anything, be silent, or lie: every wait for it ends with a context, what comes from
// it is bounded, and the worst it can do is to lose its own sandbox.
package microvm

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"agentrun.dev/command/services"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/guest/image"
	"agentrun.dev/vmm"
	"agentrun.dev/vmm/jail"
)

// Options of an engine. Kernel, Agent, VMM and Images are needed.
type Options struct {
	Kernel  string       // bzImage or vmlinux
	Modules string       // folder of the kernel's modules; empty: it has built in what it needs
	Agent   string       // cmd/agentrun-guest, a static executable
	VMM     []string     // program and arguments of a VMM process
	Images  *image.Store // roots
	Image   string       // the root of specs that name none
	Memory  uint64       // bytes, of specs that name none; DefaultMemory when 0
	VCPUs   int          // likewise; 1 when 0
	Shells  int          // that wait for each kind in use; DefaultShells when 0, none below
	// Patience is how long a guest may take for one thing, such as to stand still, where the caller's context allows more; a minute when
	// 0. The boot of a kernel may take three times as long.
	Patience time.Duration
	// Balloon has machines give back memory that they don't need any more. What is free from the beginning they give back, too, for which the
	// kernel of each writes to a page for every 256 KiB.
	Balloon bool
	// Groups are the control groups of the VMM processes, each with its kind's limits; nil: they have none.
	Groups *jail.Groups
	// Users are those of which each VMM process gets one of its own; nil: a user namespace is around each. The engine closes them.
	Users *jail.Users
	Log   *slog.Logger // nil discards
}

// Defaults, and limits.
const (
	DefaultMemory = 512 << 20
	DefaultShells = 2
	MinMemory     = 64 << 20
	MaxMemory     = 64 << 30
	// Slots is how many volumes a machine can have at once.
	Slots = 8
)

// Engine implements engine.Engine, engine.Lacker and engine.Patient.
type Engine struct {
	o      Options
	roots  roots
	shells allShells
	bases  bases

	ctx     context.Context // ends with Close
	stop    context.CancelFunc
	hearing sync.WaitGroup // of what machines' programs ask for

	mu        sync.Mutex
	instances map[*Instance]struct{}
	closed    bool
}

var (
	_ engine.Engine  = (*Engine)(nil)
	_ engine.Lacker  = (*Engine)(nil)
	_ engine.Patient = (*Engine)(nil)
)

// New returns an engine without instances. errs.Unavailable says what this host lacks, and its hint how to get it; errs.Invalid is
// about the options.
func New(o Options) (*Engine, error) {
	if len(o.VMM) == 0 || o.Images == nil {
		return nil, errs.Msg(errs.Invalid, "microvm", "", "the program of a VMM process and a store of images are needed")
	}
	for what, file := range map[string]string{"kernel": o.Kernel, "agent": o.Agent} {
		if _, err := os.Stat(file); err != nil {
			return nil, errs.New(errs.Unavailable, "microvm", what, err)
		}
	}
	if err := examine(); err != nil {
		return nil, err
	}
	o.Memory, o.VCPUs = cmp.Or(o.Memory, DefaultMemory), cmp.Or(o.VCPUs, 1)
	o.Shells, o.Patience = cmp.Or(o.Shells, DefaultShells), cmp.Or(o.Patience, time.Minute)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	e := &Engine{o: o, instances: make(map[*Instance]struct{})}
	e.ctx, e.stop = context.WithCancel(context.Background())
	e.bases.e = e
	return e, nil
}

// examine says what the host lacks.
func examine() error {
	for _, f := range vmm.Examine() {
		if f.Need && !f.OK {
			return errs.Msg(errs.Unavailable, "microvm", f.Name, f.Text).WithHint(f.Hint)
		}
	}
	return nil
}

// Lacks implements engine.Lacker: machines have a root of their own.
func (e *Engine) Lacks() []engine.Feature { return []engine.Feature{engine.Roots} }

// FreezeTimeout implements engine.Patient: the guest has its time to stand still, and its memory has as much to be copied.
func (e *Engine) FreezeTimeout() time.Duration { return 2 * e.o.Patience }

// Boot implements engine.Engine.
func (e *Engine) Boot(ctx context.Context, s engine.Spec) (engine.Instance, error) {
	k, r, err := e.kind(ctx, &s)
	if err != nil {
		return nil, err
	}
	im, err := e.bases.get(ctx, k, r)
	if err != nil {
		return nil, err
	}
	defer im.unuse()
	in, err := im.start(ctx, s.Identity, nature{env: mergeEnv(s.Env, s.Identity.Env), dir: s.Dir, hostname: s.Hostname, limits: s.Limits}, nil)
	if err != nil {
		return nil, err
	}
	for _, v := range inOrder(s.Volumes) {
		if err := in.Mount(ctx, v); err != nil {
			in.end(err)
			return nil, err
		}
	}
	return e.add(in, s.Services)
}

// kind is what a spec asks for.
func (e *Engine) kind(ctx context.Context, s *engine.Spec) (kind, *root, error) {
	if s.ID == "" {
		return kind{}, nil, errs.Msg(errs.Invalid, "boot", "", "a sandbox needs an id")
	}
	if s.Limits.Files > 0 {
		return kind{}, nil, errs.Msg(errs.Unsupported, "boot", s.ID, "the descriptors of a process in a microVM aren't limited").
			WithHint("the machine's memory bounds them all; a command can bound its own: sh -c 'ulimit -n 100; exec …'")
	}
	if len(s.Volumes) > Slots {
		return kind{}, nil, tooManyVolumes("boot", s.ID)
	}
	for _, v := range s.Volumes {
		if err := checkVolume(v); err != nil {
			return kind{}, nil, err
		}
	}
	k := kind{Memory: e.o.Memory, VCPUs: cmp.Or(s.Limits.VCPUs, e.o.VCPUs), Balloon: e.o.Balloon}
	if s.Limits.Memory > 0 {
		k.Memory = roundMemory(uint64(s.Limits.Memory))
	}
	if err := k.check("boot", s.ID); err != nil {
		return kind{}, nil, err
	}
	r, err := e.roots.find(ctx, e.o.Images, cmp.Or(s.Image, e.o.Image))
	if err != nil {
		return kind{}, nil, err
	}
	k.Digest = r.config.Digest
	return k, r, nil
}

// kind is what machines have to agree on to start from the same snapshot.
type kind struct {
	Digest string `json:"digest"` // of the image that the root is made of
	Memory uint64 `json:"memory"` // bytes
	VCPUs  int    `json:"vcpus"`
	// Balloon: they have the device. Images that were saved before there was one don't.
	Balloon bool `json:"balloon,omitempty"`
}

func (k kind) check(op, id string) error {
	switch {
	case k.Memory < MinMemory || k.Memory > MaxMemory || k.Memory != roundMemory(k.Memory):
		return errs.Msg(errs.Invalid, op, id, "a machine has 64 MiB to 64 GiB of memory")
	case k.VCPUs < 1 || k.VCPUs > vmm.MaxVCPUs:
		return errs.Msg(errs.Invalid, op, id, "a machine has 1 to 32 processors")
	}
	return nil
}

// roundMemory rounds up, so that specs of nearly the same size share a base.
func roundMemory(n uint64) uint64 {
	const unit = 16 << 20
	return (n + unit - 1) / unit * unit
}

// mergeEnv puts variables over others; of one name the last counts.
func mergeEnv(lists ...[]string) []string {
	var out []string
	index := make(map[string]int)
	for _, kv := range slices.Concat(lists...) {
		name, _, _ := strings.Cut(kv, "=")
		if i, ok := index[name]; ok {
			out[i] = kv
			continue
		}
		index[name] = len(out)
		out = append(out, kv)
	}
	return out
}

// add makes an instance known, until it ends, and gives it services.
func (e *Engine) add(in *Instance, s *services.Services) (engine.Instance, error) {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		err := errs.Msg(errs.Unavailable, "microvm", in.id, "the engine is closed")
		in.end(err)
		return nil, err
	}
	e.instances[in] = struct{}{}
	e.hearing.Go(func() { in.hear(s) })
	e.mu.Unlock()
	context.AfterFunc(in.life, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.instances, in)
	})
	return in, nil
}

// List implements engine.Engine. What only a guest could tell, it doesn't ask: one that is silent would hold everybody up.
func (e *Engine) List(context.Context) ([]engine.Status, error) {
	e.mu.Lock()
	list := make([]*Instance, 0, len(e.instances))
	for in := range e.instances {
		if in.life.Err() == nil {
			list = append(list, in)
		}
	}
	e.mu.Unlock()
	slices.SortFunc(list, func(a, b *Instance) int {
		return cmp.Or(a.started.Compare(b.started), strings.Compare(a.id, b.id))
	})
	out := make([]engine.Status, len(list))
	for i, in := range list {
		out[i] = engine.Status{ID: in.id, Started: in.started, Frozen: in.isFrozen(), Stats: in.measure()}
	}
	return out, nil
}

// Close ends all instances, shells and bases. Images that were captured stay usable for nothing but Save.
func (e *Engine) Close() error {
	e.mu.Lock()
	e.closed = true
	list := make([]*Instance, 0, len(e.instances))
	for in := range e.instances {
		list = append(list, in)
	}
	e.mu.Unlock()
	e.stop()
	var wg sync.WaitGroup
	for _, in := range list {
		wg.Go(func() { in.end(errs.Msg(errs.Unavailable, "microvm", in.id, "the engine is closed")) })
	}
	wg.Wait()
	e.hearing.Wait()
	err := errors.Join(e.bases.close(), e.shells.close())
	if e.o.Users != nil {
		err = errors.Join(err, e.o.Users.Close())
	}
	return err
}
