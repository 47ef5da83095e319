package microvm

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/guest"
)

// Freeze implements engine.Instance: the agent stops the workload and writes what the kernel holds back, then the machine is
// paused, so that no request to a volume is under way. All processes can be copied; Kill changes nothing.
func (in *Instance) Freeze(ctx context.Context, _ engine.FreezeOptions) (engine.Frozen, error) {
	if err := in.takeTurn(ctx, "freeze"); err != nil {
		return nil, err
	}
	in.slots.pace.lift()
	token, err := in.hold(ctx)
	if err != nil {
		in.slots.pace.keep()
		return nil, err // hold gives the turn back
	}
	in.stand(token)
	f := &frozen{in: in}
	// An order that isn't answered ends the process: the caller's context may not decide that.
	c, cancel := context.WithTimeout(in.life, in.e.o.Patience)
	defer cancel()
	if err := in.proc.Pause(c); err != nil {
		in.end(errs.New(errs.Unavailable, "freeze", in.id, err))
		return nil, errors.Join(in.why("freeze"), f.Thaw())
	}
	return f, nil
}

// hold has the agent stop the workload. The turn is given back if that fails: once it is sure that the workload goes on.
func (in *Instance) hold(ctx context.Context) (token string, err error) {
	err = in.ask(ctx, "freeze", func(ctx context.Context, a *guest.Client) error {
		var err error
		if token, err = a.Freeze(ctx); err != nil {
			return err
		}
		// What it holds back has to be where the fork sees it, and no more: nothing of the workload that asked for more runs meanwhile.
		in.slots.lax(true)
		defer in.slots.lax(false)
		if err := a.Flush(ctx, token); !errs.Is(err, errs.Unsupported) {
			return err
		}
		return nil // the agent of a machine that has slept since before there was this call: it has done it when it froze
	})
	if err == nil {
		return token, nil
	}
	go func() {
		defer func() { <-in.turn }()
		if token == "" || in.life.Err() != nil {
			return
		}
		// The agent may have done it all the same. If it hasn't, it says that nothing is frozen, which is as good.
		undone := in.ask(context.Background(), "thaw", func(ctx context.Context, a *guest.Client) error { return a.Thaw(ctx, token) })
		if undone != nil && !errs.Is(undone, errs.Conflict) {
			in.end(errs.New(errs.Unavailable, "freeze", in.id, undone))
		}
	}()
	return "", err
}

// frozen implements engine.Frozen.
type frozen struct {
	in   *Instance
	once sync.Once
	err  error
}

// Capture implements engine.Frozen.
func (f *frozen) Capture(ctx context.Context) (engine.Image, error) {
	im, err := f.capture(ctx)
	if err != nil {
		return nil, err
	}
	return im, nil
}

func (f *frozen) capture(ctx context.Context) (_ *Image, err error) {
	in := f.in
	if err := ctx.Err(); err != nil {
		return nil, errs.New(errs.Canceled, "capture", in.id, err)
	}
	if in.life.Err() != nil {
		return nil, in.why("capture")
	}
	c, cancel := context.WithTimeout(in.life, in.e.o.Patience)
	defer cancel()
	im := &Image{e: in.e, nature: in.nature, token: in.token, names: in.names()}
	defer func() {
		if err != nil {
			im.discard()
		}
	}()
	if im.volumes, err = in.slots.states(ctx); err != nil {
		return nil, err
	}
	if im.machine, err = in.proc.CaptureImage(c); err != nil {
		if in.life.Err() != nil {
			return nil, in.why("capture")
		}
		return nil, err
	}
	im.shells = in.shells.again()
	return im, nil
}

// Thaw implements engine.Frozen. A machine that doesn't go on is ended.
func (f *frozen) Thaw() error {
	f.once.Do(func() { f.err = f.in.thaw() })
	return f.err
}

func (in *Instance) thaw() error {
	in.mu.Lock()
	token := in.token
	in.mu.Unlock()
	defer func() {
		in.slots.pace.keep()
		in.move()
		<-in.turn
	}()
	c, cancel := context.WithTimeout(in.life, in.e.o.Patience)
	defer cancel()
	err := in.proceed(c, in.proc.Thaw, func(ctx context.Context) error {
		return in.ask(ctx, "thaw", func(ctx context.Context, a *guest.Client) error { return a.Thaw(ctx, token) })
	})
	if err == nil {
		return nil
	}
	if in.life.Err() == nil {
		in.end(errs.New(errs.Unavailable, "thaw", in.id, err))
	}
	if errors.Is(context.Cause(in.life), errStopped) {
		return nil // whoever stopped it knows
	}
	return in.why("thaw")
}

// proceed lets the machine go on, and has it do what comes first: that is on its way to the guest before it runs, so that it doesn't wait
// for this process.
func (in *Instance) proceed(ctx context.Context, goOn func(context.Context) error, first func(context.Context) error) error {
	c, cancel := context.WithCancel(ctx)
	defer cancel()
	runs := make(chan error, 1)
	go func() {
		err := goOn(ctx)
		if err != nil {
			cancel()
		}
		runs <- err
	}()
	err := first(c)
	return cmp.Or(<-runs, err)
}
