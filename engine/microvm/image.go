package microvm

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"agentrun.dev/egress/uplink"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/fusefs"
	"agentrun.dev/guest"
	"agentrun.dev/guest/wire"
	"agentrun.dev/vmm/jail"
)

// Image implements engine.Image: a machine that was captured with its workload frozen, and what its volumes' servers knew.
type Image struct {
	e *Engine
	nature
	token   string // that the workload was frozen with
	volumes [Slots]saved
	names   []uplink.Name // that the machine was told an address of
	shells  *shells
	machine *jail.Image

	mu     sync.Mutex
	users  int // starts and saves that are under way
	closed bool
}

var _ engine.Image = (*Image)(nil)

// Start implements engine.Image.
func (im *Image) Start(ctx context.Context, id engine.Identity, volumes []engine.Volume) (engine.Instance, error) {
	if id.ID == "" {
		return nil, errs.Msg(errs.Invalid, "start image", "", "a sandbox needs an id")
	}
	n := im.nature
	n.env = mergeEnv(im.env, id.Env)
	in, err := im.start(ctx, id, n, volumes)
	if err != nil {
		return nil, err
	}
	return im.e.add(in, id.Services)
}

// start makes a machine of the image. After an error nothing of it is left.
func (im *Image) start(ctx context.Context, id engine.Identity, n nature, volumes []engine.Volume) (_ *Instance, err error) {
	if err := im.use("start image"); err != nil {
		return nil, err
	}
	defer im.unuse()
	if id.Hostname != "" {
		n.hostname = id.Hostname
	}
	given, err := im.match(id.ID, volumes)
	if err != nil {
		return nil, err
	}
	servers, err := im.restore(ctx, given)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	in, err := im.embody(ctx, id.ID, n)
	if err != nil {
		closeServers(servers)
		return nil, err
	}
	mapped := time.Since(begin)
	defer func() {
		if err != nil {
			in.end(err)
		}
	}()
	for i, server := range servers {
		if server != nil {
			in.slots.serve(i, *given[i], server)
		}
	}
	for _, v := range inOrder(volumes) {
		if err := in.mountOutside(ctx, v); err != nil {
			return nil, err
		}
	}
	if err := in.plug(id.Services, im.names); err != nil {
		return nil, err
	}
	c, cancel := context.WithTimeout(ctx, im.e.o.Patience)
	defer cancel()
	if err := in.proceed(c, in.proc.Resume, func(ctx context.Context) error { return in.renew(ctx, im.token) }); err != nil {
		return nil, err
	}
	in.enforce()
	im.e.o.Log.Debug("microvm: a machine has started", "id", in.id, "mapped", mapped, "renewed", time.Since(begin))
	return in, nil
}

// match finds the volume of each slot.
func (im *Image) match(id string, volumes []engine.Volume) (given [Slots]*engine.Volume, err error) {
	invalid := func(text string) ([Slots]*engine.Volume, error) {
		return given, errs.Msg(errs.Invalid, "start image", id, text)
	}
	byPath := make(map[string]*engine.Volume, len(volumes))
	for i := range volumes {
		if err := checkVolume(volumes[i]); err != nil {
			return given, err
		}
		byPath[volumes[i].Path] = &volumes[i]
	}
	for i, s := range im.volumes {
		if s.path == "" {
			continue
		}
		if given[i] = byPath[s.path]; given[i] == nil {
			return invalid("no volume is given for " + s.path)
		}
		delete(byPath, s.path)
	}
	for path := range byPath {
		return invalid("nothing was mounted at " + path)
	}
	return given, nil
}

// restore makes servers over the new volumes that know what the old ones did.
func (im *Image) restore(ctx context.Context, given [Slots]*engine.Volume) (servers [Slots]*fusefs.Server, err error) {
	for i, v := range given {
		if v == nil {
			continue
		}
		if servers[i], err = fusefs.Restore(ctx, im.volumes[i].state, fusefs.Options{FS: v.FS, ReadOnly: v.ReadOnly}); err != nil {
			closeServers(servers)
			return servers, err
		}
	}
	return servers, nil
}

func closeServers(servers [Slots]*fusefs.Server) {
	for _, s := range servers {
		if s != nil {
			_ = s.Close()
		}
	}
}

// embody makes a shell what the image is of. It is paused then.
func (im *Image) embody(ctx context.Context, id string, n nature) (*Instance, error) {
	c, cancel := context.WithTimeout(ctx, im.e.o.Patience)
	defer cancel()
	s, err := im.shells.rated(ratesOf(n.limits))
	if err != nil {
		return nil, err
	}
	p, err := s.take(c)
	if err != nil {
		return nil, errors.Join(err, s.release())
	}
	in := newInstance(id, n, s, p)
	if err := p.Restore(c, im.machine); err != nil {
		in.end(err)
		return nil, err
	}
	return in, nil
}

// renew has the agent make the machine another one, and let the workload go on. Without its word nothing may be believed to be new.
func (in *Instance) renew(ctx context.Context, token string) error {
	var machine [16]byte
	if _, err := rand.Read(machine[:]); err != nil {
		return errs.New(errs.Other, "start", in.id, err)
	}
	mac, err := newMAC()
	if err != nil {
		return err
	}
	r := wire.Renew{Token: token, Links: links(mac), Hostname: wire.Text(in.hostname), MachineID: wire.Text(hex.EncodeToString(machine[:])), Env: wire.Texts(in.env),
		Processes: in.limits.Processes}
	return in.ask(ctx, "start", func(ctx context.Context, a *guest.Client) error {
		r.Time = time.Now()
		return a.Renew(ctx, r)
	})
}

// use keeps what the image has until unuse, also when it is closed meanwhile.
func (im *Image) use(op string) error {
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.closed {
		return errs.Msg(errs.Unavailable, op, "", "the image is closed")
	}
	im.users++
	return nil
}

func (im *Image) unuse() {
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.users--; im.closed && im.users == 0 {
		if err := im.discard(); err != nil {
			im.e.o.Log.Warn("microvm: the end of an image", "error", err)
		}
	}
}

// Close implements engine.Image.
func (im *Image) Close() error {
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.closed {
		return nil
	}
	if im.closed = true; im.users > 0 {
		return nil
	}
	return im.discard()
}

// discard gives back what the image has, of one that nobody uses.
func (im *Image) discard() error {
	var err error
	if im.machine != nil {
		err = errors.Join(err, im.machine.Close())
	}
	if im.shells != nil {
		err = errors.Join(err, im.shells.release())
	}
	return err
}
