package microvm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"

	"agentrun.dev/errs"
	"agentrun.dev/vmm"
	"agentrun.dev/vmm/jail"
)

// guestCID is every machine's address of vsock: each has a network of its own.
const guestCID = 3

// shells are confined processes that wait for a guest of one kind. They live as long as somebody holds them: bases, images,
// instances.
type shells struct {
	e    *Engine
	kind kind
	root *root
	disk *os.File

	holders int // counted by all

	first sync.Once
	pool  *jail.Pool // made when the first one is taken
}

// allShells finds the shells of a kind.
type allShells struct {
	mu   sync.Mutex
	kind map[kind]*shells
}

// hold returns the shells of a kind, which the caller releases.
func (a *allShells) hold(e *Engine, k kind, r *root) (*shells, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.kind[k]; s != nil {
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
	s := &shells{e: e, kind: k, root: r, disk: disk, holders: 1}
	if a.kind == nil {
		a.kind = make(map[kind]*shells)
	}
	a.kind[k] = s
	return s, nil
}

// again holds shells once more that are held already.
func (s *shells) again() *shells {
	s.e.shells.mu.Lock()
	defer s.e.shells.mu.Unlock()
	s.holders++
	return s
}

// release is the opposite of hold; the last one ends the shells.
func (s *shells) release() error {
	a := &s.e.shells
	a.mu.Lock()
	s.holders--
	last := s.holders == 0
	if last {
		delete(a.kind, s.kind)
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
	all := slices.Collect(maps.Values(a.kind))
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
	d := jail.Devices{CID: guestCID, Disks: []jail.Disk{{File: s.disk, Serial: "root", ReadOnly: true}}, RNG: true, Cards: []jail.Card{{MAC: baseMAC}},
		Balloon: s.kind.Balloon}
	for i := range Slots {
		d.Shares = append(d.Shares, tag(i))
	}
	return jail.Start(ctx, jail.Options{Config: vmm.Config{Memory: s.kind.Memory, VCPUs: s.kind.VCPUs}, Devices: d, Path: o.VMM[0], Args: o.VMM[1:],
		Users: o.Users, Groups: o.Groups})
}

// tag names a slot's device.
func tag(slot int) string { return fmt.Sprintf("vol%d", slot) }
