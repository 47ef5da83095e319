package wasm

import (
	"context"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero/experimental"

	"agentrun.dev/errs"
	"agentrun.dev/proc"
	rewrite "agentrun.dev/wasm/binary"
)

// Live is a guest in the middle of a call: what a Snapshot has, and the call itself as it waits in a host function. It never changes, and all
// methods may be called concurrently. It needs the Runtime that it was taken in.
type Live struct {
	snap    *Snapshot
	frames  *frames
	pending pending
	args    []uint64
	results int
	meter   uint64
	ticking ticking
	saved   []uint64 // globals to be set back by Config.Quiesce
	cfg     Config
	charged int64 // to the process, for memory
	host    hostState
	timer   time.Duration // until the timer rings; 0: there is none
	every   time.Duration // its interval
	locks   []savedLock
	once    sync.Once
}

// pending is the host function that a guest is in: what a copy calls again.
type pending struct {
	name string
	f    func(in *Instance, s []uint64)
	s    []uint64 // its arguments, on the guest's stack
}

// instanceOf finds the instance that called a host function.
func instanceOf(ctx context.Context) *Instance {
	if c, ok := ctx.(*callContext); ok {
		return c.in
	}
	return ctx.Value(instanceKey{}).(*callContext).in // calls that were resumed have contexts of the engine around ours
}

type instanceKey struct{}

// Value implements context.Context.
func (c *callContext) Value(key any) any {
	if _, ok := key.(instanceKey); ok {
		return c
	}
	return c.Context.Value(key)
}

// rest runs a host function in which the guest may be captured.
func (in *Instance) rest(name string, f func(in *Instance, s []uint64), s []uint64) {
	if in.resuming != nil { // restore rests already
		f(in, s)
		return
	}
	in.pending = pending{name, f, s}
	err := in.p.Rest(func() error {
		f(in, s)
		return nil
	})
	in.pending = pending{}
	if err != nil { // killed
		in.checkEnd()
		s[0] = uint64(wasiErrno(syscall.EINTR))
	}
}

// safe is a safe point within tick(v): the guest may be captured here.
func (in *Instance) safe(v uint64) {
	if in.depth != 1 || in.resuming != nil {
		return
	}
	in.tickArg[0] = v
	in.pending = pending{rewrite.TickName, tickAgain, in.tickArg[:]}
	in.p.Rest(nil)
	in.pending = pending{}
}

func tickAgain(in *Instance, s []uint64) { s[0] = in.tick(s[0]) }

// Live captures a guest that rests in a call (proc.Process.Rest): within a host function that waits, or at a safe point. It is called by whoever
// captures the guest's process, from another goroutine. Errors: errs.Unsupported for modules and engines that can't be captured, errs.Unavailable
// when the guest is elsewhere, errs.Limit when the host is out of memory.
func (in *Instance) Live() (*Live, error) {
	l := &Live{cfg: in.cfg, saved: in.saved, ticking: in.ticking, charged: in.mem.charged}
	switch {
	case in.resuming != nil: // a copy that hasn't gone on yet
		old := in.resuming
		l.frames, l.pending, l.args, l.results, l.meter = old.frames, old.pending, old.args, old.results, old.meter
	case in.depth != 1 || in.pending.f == nil || in.running == nil || in.meter == nil:
		return nil, errs.Msg(errs.Unavailable, "snapshot", in.m.o.Name, "the guest isn't at a place where it can be captured")
	default:
		f, err := in.frames()
		if err != nil {
			return nil, err
		}
		l.frames, l.pending, l.args, l.results, l.meter = f, pending{in.pending.name, in.pending.f, nil}, slices.Clone(in.pending.s), in.running.results, in.meter.Get()
	}
	s, err := in.snapshot()
	if err != nil {
		return nil, err
	}
	l.snap, l.host = s, in.host.clone()
	l.host.reply, l.host.polled, l.host.childCPU = in.host.reply, in.host.polled, in.host.childCPU
	l.timer, l.every = in.host.timer.left()
	if in.host.locked {
		l.locks = in.m.r.locks.of(in.p)
	}
	in.m.hold() // frames lead into its code
	return l, nil
}

// Close lets go of what was captured. Instances that were started from it live on. A second call does nothing.
func (l *Live) Close() error {
	l.once.Do(func() {
		l.snap.Close()
		l.snap.m.release()
	})
	return nil
}

// Size returns the bytes of the guest's memory and stack, and how many of them are held by this alone.
func (l *Live) Size() (memory, own int64) {
	memory, own = l.snap.Size()
	return memory + int64(l.frames.size), own + int64(8*len(l.frames.words))
}

// Start makes an instance bound to p, whose call Continue goes on with. p is a copy of the guest's process, as proc.Image.Start makes it: it has
// the same descriptors, and is charged already for what the guest had. Errors are those of Snapshot.Start.
func (l *Live) Start(p *proc.Process) (*Instance, error) {
	// What the image has charged is charged anew by binding.
	p.Charge(-l.charged)
	in, err := l.snap.Start(p, l.cfg)
	if err != nil {
		return nil, err
	}
	in.host = l.host.clone()
	in.host.reply, in.host.polled, in.host.childCPU = l.host.reply, slices.Clone(l.host.polled), l.host.childCPU
	in.resuming, in.saved = l, l.saved
	for _, k := range l.locks {
		in.host.locked = true
		in.m.r.locks.set(lockedFile{p.Sandbox(), k.Kind, k.Dev, k.Ino}, lock{p, k.Start, k.End, k.Exclusive, k.FD}, false)
	}
	if l.timer > 0 {
		in.host.timer = newItimer(p, l.timer, l.every)
	}
	return in, nil
}

// Continue goes on with the call that the instance was captured in: it calls the host function again in which the guest was, and then is as Call.
func (in *Instance) Continue(ctx context.Context) ([]uint64, error) {
	l := in.resuming
	if l == nil || in.depth > 0 || in.broken || in.ctx == nil {
		return nil, errs.Msg(errs.Invalid, "continue", in.m.o.Name, "no call was captured")
	}
	f := in.mod.ExportedFunction(rewrite.ResumeExport)
	if f == nil {
		return nil, errs.Msg(errs.Unsupported, "continue", in.m.o.Name, "the module has no safe points")
	}
	c := &call{f: f, results: l.results, buf: make([]uint64, max(l.results, 1))}
	return in.run(ctx, c, experimental.WithSnapshotter(in.ctx))
}

// restore is called by the first host function of Continue's call, and puts the captured call in its place. It doesn't return but by ending the call.
func (in *Instance) restore(ctx context.Context) {
	l := in.resuming
	in.ticking = l.ticking
	in.resume()
	in.meter.Set(l.meter)
	// Copies go apart here: the guest is told, so that it seeds anew.
	in.host.forked = true
	args := slices.Clone(l.args)
	in.pending = pending{l.pending.name, l.pending.f, args}
	err := in.p.Rest(func() error {
		l.pending.f(in, args)
		return nil
	})
	in.pending = pending{}
	if err != nil {
		in.checkEnd()
	}
	in.wake()
	s := experimental.GetSnapshotter(ctx).Snapshot()
	if err := l.frames.replace(in, in.running, s); err != nil {
		in.stop(err)
	}
	in.resuming = nil
	s.Restore(args)
}
