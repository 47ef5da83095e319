package microvm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"

	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/vmm"
	"agentrun.dev/vmm/jail"
	"agentrun.dev/vmm/virtio/rate"
)

// guestCID is every machine's address of vsock: each has a network of its own.
const guestCID = 3

// sort is what shells have in common: the kind of their machines, and how fast their devices may be, which no snapshot knows.
type sort struct {
	kind
	rates rates
}

// rates bound the devices of a machine in time. Those of its volumes are kept by who serves them, too (see slots).
type rates struct{ disk, in, out engine.Rate }

func ratesOf(l engine.Limits) rates { return rates{l.Disk, l.NetworkIn, l.NetworkOut} }

func limitOf(r engine.Rate) rate.Limit {
	positive := func(n int64) uint64 { return uint64(max(0, n)) }
	return rate.Limit{Bytes: positive(r.Bytes), Ops: positive(r.Ops), BurstBytes: positive(r.BurstBytes), BurstOps: positive(r.BurstOps)}
}

// shells are confined processes that wait for a guest of one kind. They live as long as somebody holds them: bases, images,
// instances.
type shells struct {
	e *Engine
	sort
	root *root
	disk *os.File

	holders int // counted by all

	first sync.Once
	pool  *jail.Pool // made when the first one is taken
}

// allShells finds the shells of a kind.
type allShells struct {
	mu  sync.Mutex
	all map[sort]*shells
}

// hold returns the shells of a sort, which the caller releases.
func (a *allShells) hold(e *Engine, k sort, r *root) (*shells, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.all[k]; s != nil {
		s.holders++
		return s, nil
	}
	if e.ctx.Err() != nil {
		return nil, errs.Msg(errs.Unavailable, "microvm", "", "the engine is closed")
	}
	disk, err := os.Open(r.file)
	if err != nil {
		return nil, errs.New(errs.Unavailable, "microvm", "root", err)
	}
	s := &shells{e: e, sort: k, root: r, disk: disk, holders: 1}
	if a.all == nil {
		a.all = make(map[sort]*shells)
	}
	a.all[k] = s
	return s, nil
}

// again holds shells once more that are held already.
func (s *shells) again() *shells {
	s.e.shells.mu.Lock()
	defer s.e.shells.mu.Unlock()
	s.holders++
	return s
}

// rated holds shells of the same kind with other rates.
func (s *shells) rated(r rates) (*shells, error) {
	if r == s.rates {
		return s.again(), nil
	}
	return s.e.shells.hold(s.e, sort{s.kind, r}, s.root)
}

// release is the opposite of hold; the last one ends the shells.
func (s *shells) release() error {
	a := &s.e.shells
	a.mu.Lock()
	s.holders--
	last := s.holders == 0
	if last {
		delete(a.all, s.sort)
	}
	a.mu.Unlock()
	if !last {
		return nil
	}
	s.first.Do(func() {})
	if s.pool == nil {
		return s.disk.Close()
	}
	return errors.Join(s.pool.Close(), s.disk.Close())
}

// close ends those that wait, also of kinds that images still hold; none are started any more.
func (a *allShells) close() error {
	a.mu.Lock()
	all := slices.Collect(maps.Values(a.all))
	a.mu.Unlock()
	var err error
	for _, s := range all {
		if s.first.Do(func() {}); s.pool != nil {
			err = errors.Join(err, s.pool.Close())
		}
	}
	return err
}

// take returns a shell: one that waits, or one that is started now.
func (s *shells) take(ctx context.Context) (*jail.Process, error) {
	s.first.Do(func() { s.pool = jail.NewPool(max(s.e.o.Shells, 0), s.start) })
	if s.pool == nil {
		return nil, errs.Msg(errs.Unavailable, "microvm", "", "the engine is closed")
	}
	return s.pool.Get(ctx)
}

// start starts one.
func (s *shells) start(ctx context.Context) (*jail.Process, error) {
	o := s.e.o
	d := jail.Devices{CID: guestCID, Disks: []jail.Disk{{File: s.disk, Serial: "root", ReadOnly: true, Rate: limitOf(s.rates.disk)}}, RNG: true,
		Cards: []jail.Card{{MAC: baseMAC, In: limitOf(s.rates.in), Out: limitOf(s.rates.out)}}, Balloon: s.Balloon}
	for i := range Slots {
		d.Shares = append(d.Shares, tag(i))
	}
	return jail.Start(ctx, jail.Options{Config: vmm.Config{Memory: s.Memory, VCPUs: s.VCPUs}, Devices: d, Path: o.VMM[0], Args: o.VMM[1:],
		Users: o.Users, Groups: o.Groups})
}

// tag names a slot's device.
func tag(slot int) string { return fmt.Sprintf("vol%d", slot) }
