package microvm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"agentrun.dev/egress/uplink"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/guest"
	"agentrun.dev/guest/files"
	"agentrun.dev/vfs"
	"agentrun.dev/vmm/jail"
)

// nature is what an instance has in common with those forked from it.
type nature struct {
	env      []string
	dir      string
	hostname string
	limits   engine.Limits
}

// Instance is a machine that runs. It implements engine.Instance, and engine's Meter, Filer, Mounter, Dialer and Attacher.
type Instance struct {
	e       *Engine
	id      string
	started time.Time
	nature
	shells *shells
	proc   *jail.Process
	slots  *slots
	usage  usage

	life context.Context // ends when the machine has, for the reason that is its cause
	kill context.CancelCauseFunc
	gone chan struct{} // closed when nothing of it is left
	once sync.Once

	// turn is held by whoever freezes the machine, until it is thawed, and by whoever mounts.
	turn chan struct{}

	mu       sync.Mutex
	agent    *guest.Client
	link     *uplink.Link   // its network
	ns       *vfs.Namespace // with what the agent shows as its root
	root     *files.FS
	token    string          // of the workload, frozen; empty: it isn't
	thawed   chan struct{}   // closed when it isn't
	reach    context.Context // ends when it stands still for long; see reachable
	away     *time.Timer     // ends reach
	commands map[int]*process
}

var (
	_ engine.Instance = (*Instance)(nil)
	_ engine.Meter    = (*Instance)(nil)
	_ engine.Filer    = (*Instance)(nil)
	_ engine.Mounter  = (*Instance)(nil)
	_ engine.Dialer   = (*Instance)(nil)
	_ engine.Attacher = (*Instance)(nil)
)

// newInstance makes an instance of a process, which it owns from now on, and of shells that it releases. Its guest doesn't run yet.
func newInstance(id string, n nature, s *shells, p *jail.Process) *Instance {
	in := &Instance{e: s.e, id: id, nature: n, started: time.Now(), shells: s, proc: p, gone: make(chan struct{}), turn: make(chan struct{}, 1),
		thawed: make(chan struct{}), commands: make(map[int]*process)}
	close(in.thawed)
	in.life, in.kill = context.WithCancelCause(context.Background())
	in.reach = context.Background()
	in.slots = newSlots(in)
	in.slots.listen()
	in.ns = emptyRoot()
	in.usage.begin(p.PID())
	go in.watch()
	return in
}

// watch waits for the machine's end.
func (in *Instance) watch() {
	err := in.proc.Wait(in.life)
	if in.life.Err() != nil {
		return
	}
	if err == nil {
		err = errors.New("it has switched itself off")
	}
	in.e.o.Log.Warn("microvm: a machine has ended", "id", in.id, "error", err)
	in.end(errs.New(errs.Unavailable, "microvm", in.id, err))
}

// end ends the machine where it stands, and returns when nothing of it is left. The first cause is what everybody is told.
func (in *Instance) end(cause error) {
	in.once.Do(func() {
		defer close(in.gone)
		in.kill(cause)
		in.mu.Lock()
		agent, root, link := in.agent, in.root, in.link
		in.mu.Unlock()
		if err := in.proc.Close(); err != nil {
			in.e.o.Log.Warn("microvm: the end of a VMM process", "id", in.id, "error", err)
		}
		if agent != nil {
			_ = agent.Close() // its other end is gone
		}
		if root != nil {
			_ = root.Close()
		}
		if link != nil {
			_ = link.Close() // the card went with the process
		}
		in.slots.close()
		if err := in.shells.release(); err != nil {
			in.e.o.Log.Warn("microvm: the end of shells", "error", err)
		}
	})
	<-in.gone
}

// ID implements engine.Instance.
func (in *Instance) ID() string { return in.id }

// syncTime is how long the guest may take to write what it holds back, before its end.
const syncTime = 3 * time.Second

// Stop implements engine.Instance. What programs have written to volumes is there afterwards: the workload is stopped and the
// guest's caches are written first, as far as the guest does that in time.
func (in *Instance) Stop(ctx context.Context) error {
	select {
	case in.turn <- struct{}{}: // else it is frozen, and has written everything
		in.slots.pace.lift()
		if in.slots.writable() {
			c, cancel := context.WithTimeout(ctx, syncTime)
			_ = in.ask(c, "stop", func(ctx context.Context, a *guest.Client) error {
				token, err := a.Freeze(ctx)
				if err != nil {
					return err
				}
				return a.Flush(ctx, token)
			})
			cancel()
		}
	default:
	}
	done := make(chan struct{})
	go func() {
		in.end(stopped(in.id))
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return errs.New(errs.Canceled, "stop", in.id, context.Cause(ctx))
	}
}

// errStopped is why a machine has ended that somebody stopped.
var errStopped = errors.New("it was stopped")

func stopped(id string) error { return errs.New(errs.Unavailable, "microvm", id, errStopped) }

// ask has the agent do something: until ctx ends, the machine does, or the engine's patience is over.
func (in *Instance) ask(ctx context.Context, op string, f func(context.Context, *guest.Client) error) error {
	c, cancel := context.WithTimeout(ctx, in.e.o.Patience)
	defer cancel()
	defer context.AfterFunc(in.life, cancel)()
	if in.life.Err() != nil {
		return in.why(op)
	}
	a, err := in.client(c)
	if err == nil {
		err = f(c, a)
	}
	switch {
	case err == nil, ctx.Err() != nil:
		return err
	case in.life.Err() != nil:
		return in.why(op)
	case c.Err() != nil:
		return errs.Msg(errs.Unavailable, op, in.id, fmt.Sprintf("the guest doesn't answer within %v", in.e.o.Patience))
	}
	return err
}

// why is the error of whoever wants something of a machine that has ended.
func (in *Instance) why(op string) error {
	return errs.New(errs.KindOf(context.Cause(in.life)), op, in.id, context.Cause(in.life))
}

// client returns the connection to the agent, a new one if the last has broken.
func (in *Instance) client(ctx context.Context) (*guest.Client, error) {
	in.mu.Lock()
	a := in.agent
	in.mu.Unlock()
	if a != nil && a.Err() == nil {
		return a, nil
	}
	fresh, err := connect(ctx, in.proc)
	if err != nil {
		return nil, err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.life.Err() != nil || in.agent != a {
		_ = fresh.Close() // it is too late, or somebody else was faster
		if in.life.Err() != nil {
			return nil, in.why("connect")
		}
		return in.agent, nil
	}
	in.agent = fresh
	return fresh, in.showRoot(fresh)
}

// connect connects to the agent, which may not listen yet.
func connect(ctx context.Context, p *jail.Process) (*guest.Client, error) {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		nc, err := p.Dial(ctx, guest.Port)
		if err == nil {
			stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
			var c *guest.Client
			if c, err = guest.New(nc); err == nil && stop() {
				return c, nil
			} else if err == nil {
				_ = c.Close()
				err = context.Cause(ctx)
			}
		}
		select {
		case <-ctx.Done():
			return nil, errs.New(errs.Unavailable, "microvm", "agent", err)
		case <-time.After(wait):
		}
	}
}

// isFrozen tells whether it stands still for whoever froze it.
func (in *Instance) isFrozen() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.token != ""
}

// frozenWait is how long who works on a machine's files waits while it stands still: a fork doesn't take as long.
const frozenWait = 2 * time.Second

// stand notes that the machine is frozen with a token: who works on its files waits for a while, and is told then.
func (in *Instance) stand(token string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.token, in.thawed = token, make(chan struct{})
	reach, cut := context.WithCancelCause(context.Background())
	in.reach = reach
	in.away = time.AfterFunc(min(frozenWait, in.e.o.Patience), func() {
		cut(errs.Msg(errs.Unavailable, "files", in.id, "the sandbox is frozen").WithHint("try again when it runs"))
	})
}

// move is the opposite of stand.
func (in *Instance) move() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.away.Stop()
	in.token, in.reach = "", context.Background()
	close(in.thawed)
}

// reachable is a context that ends when the machine has stood still for long.
func (in *Instance) reachable() context.Context {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.reach
}

// awaitThaw waits until the machine isn't frozen.
func (in *Instance) awaitThaw(ctx context.Context, op string) error {
	in.mu.Lock()
	thawed := in.thawed
	in.mu.Unlock()
	select {
	case <-thawed:
		return nil
	case <-in.life.Done():
		return in.why(op)
	case <-ctx.Done():
		return errs.New(errs.Canceled, op, in.id, context.Cause(ctx))
	}
}

// takeTurn waits for whoever freezes the machine or mounts. The channel is given back by receiving from it.
func (in *Instance) takeTurn(ctx context.Context, op string) error {
	if in.life.Err() != nil {
		return in.why(op)
	}
	select {
	case in.turn <- struct{}{}:
		return nil
	case <-in.life.Done():
		return in.why(op)
	case <-ctx.Done():
		return errs.New(errs.Unavailable, op, in.id, context.Cause(ctx))
	}
}
