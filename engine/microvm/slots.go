package microvm

import (
	"context"
	"encoding/binary"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/fusefs"
	"agentrun.dev/vmm/virtio/fs"
	"agentrun.dev/vmm/virtio/fs/forward"
)

// slots are a machine's virtio-fs devices, and what is served over them.
type slots struct {
	in  *Instance
	ctx context.Context
	end context.CancelFunc
	all sync.WaitGroup

	pace *pace

	mu   sync.Mutex
	list [Slots]slot
}

// slot is one device. Requests to one that has no volume are errors.
type slot struct {
	path     string // where the volume is mounted; empty: the slot is free
	readOnly bool
	server   atomic.Pointer[fusefs.Server]
}

// saved is what a slot was when its machine was captured.
type saved struct {
	path  string
	state *fusefs.State
}

func newSlots(in *Instance) *slots {
	s := &slots{in: in, pace: newPace(in.limits.Disk)}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

func tooManyVolumes(op, id string) error {
	return errs.Msg(errs.Limit, op, id, "a microVM has at most 8 volumes")
}

// checkVolume refuses what can't be mounted in any machine.
func checkVolume(v engine.Volume) error {
	switch {
	case v.FS == nil || !strings.HasPrefix(v.Path, "/") || path.Clean(v.Path) != v.Path || strings.ContainsRune(v.Path, 0) || len(v.Path) > 4095:
		return errs.Msg(errs.Invalid, "mount", v.Path, "a volume is mounted at an absolute path")
	case v.Path == "/":
		return errs.Msg(errs.Unsupported, "mount", v.Path, "the root of a microVM is made of an image, and can't be a volume")
	}
	return nil
}

// inOrder is the order in which volumes can be mounted: parents before children.
func inOrder(volumes []engine.Volume) []engine.Volume {
	list := slices.Clone(volumes)
	slices.SortStableFunc(list, func(a, b engine.Volume) int { return strings.Count(a.Path, "/") - strings.Count(b.Path, "/") })
	return list
}

// take finds a free slot for a path. errs.Conflict: something is mounted there already; errs.Limit: all are taken.
func (s *slots) take(path string) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	free := -1
	for i := range s.list {
		switch s.list[i].path {
		case path:
			return 0, errs.Msg(errs.Conflict, "mount", path, "something is mounted there already")
		case "":
			if free < 0 {
				free = i
			}
		}
	}
	if free < 0 {
		return 0, tooManyVolumes("mount", s.in.id)
	}
	s.list[free].path = path
	return free, nil
}

// serve answers a slot's requests by a server, which belongs to the slot from now on.
func (s *slots) serve(i int, v engine.Volume, server *fusefs.Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := &s.list[i]
	one.path, one.readOnly = v.Path, v.ReadOnly
	one.server.Store(server)
}

// lax tells all servers whether what the guest syncs need only be in its volumes, not durable.
func (s *slots) lax(enough bool) {
	for i := range s.list {
		if server := s.list[i].server.Load(); server != nil {
			server.Lax(enough)
		}
	}
}

// listen answers the requests of all slots from now on, with errors where there is no volume: a guest may ask what it likes, and can't be paused
// while a request waits.
func (s *slots) listen() {
	for i := range s.list {
		one, conn := &s.list[i], s.in.proc.Share(i)
		s.all.Go(func() {
			err := forward.Serve(s.ctx, conn, fs.HandlerFunc(func(_ context.Context, in, out []byte) int { return s.handle(one, in, out) }))
			if err != nil {
				s.in.e.o.Log.Warn("microvm: a machine's volume isn't served any more", "id", s.in.id, "slot", i, "error", err)
			}
		})
	}
}

// Numbers of FUSE's requests, and what those to read and write have before their data.
const (
	fuseRead     = 15
	fuseWrite    = 16
	readHeaders  = 80
	writeHeaders = 80
	answerHeader = 16
)

// handle answers one request.
func (s *slots) handle(one *slot, in, out []byte) int {
	server := one.server.Load()
	if server == nil {
		return fs.Refuse(in, out, syscall.EIO)
	}
	s.pace.wait(in, len(out))
	if len(in) > writeHeaders && binary.LittleEndian.Uint32(in[4:]) == fuseWrite && !s.in.usage.write(int64(len(in)-writeHeaders), s.in.limits.Written) {
		return fs.Refuse(in, out, syscall.EDQUOT)
	}
	return server.Handle(in, out)
}

// find returns the slot of what is mounted at a path.
func (s *slots) find(path string) (int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.list {
		if s.list[i].path == path && path != "" {
			return i, true
		}
	}
	return 0, false
}

// drop frees a slot.
func (s *slots) drop(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list[i].path = ""
	if server := s.list[i].server.Swap(nil); server != nil {
		_ = server.Close()
	}
}

// writable tells whether something could be held back in the guest.
func (s *slots) writable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.list {
		if s.list[i].path != "" && !s.list[i].readOnly {
			return true
		}
	}
	return false
}

// states is what all slots are, of a machine that is paused.
func (s *slots) states(ctx context.Context) (list [Slots]saved, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.list {
		server := s.list[i].server.Load()
		if server == nil {
			continue
		}
		list[i].path = s.list[i].path
		if list[i].state, err = server.State(ctx); err != nil {
			return list, err
		}
	}
	return list, nil
}

// close ends all of it, of a machine that has ended.
func (s *slots) close() {
	s.pace.lift()
	s.end()
	s.all.Wait()
	for i := range s.list {
		s.drop(i)
	}
}
