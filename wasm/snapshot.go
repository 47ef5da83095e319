package wasm

import (
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
)

const (
	maxExtents = 128     // of a snapshot; joined when there are more
	maxLayers  = 8       // that a snapshot's extents lie in, before all is copied into one
	rebase     = 1 << 20 // bytes that an instance may differ from its snapshot before it is mapped to the new one
	popular    = 8       // starts after which a snapshot of several extents is made one of one
)

const formatVersion = 2 // of saved snapshots, and of how modules are rewritten

// Snapshot is an idle instance's state: memory, globals, and what the host keeps for the guest. It never changes. Open files aren't in it: the process
// that an instance is started in has them under the same numbers. Whoever starts an instance tells the guest to seed its generators of
// random numbers anew. All methods may be called concurrently.
type Snapshot struct {
	m       *Module
	size    uint64
	globals []uint64
	host    hostState // sigword, nonblock, appends

	mu      sync.Mutex // guards what follows
	extents []extent
	seq     uint64 // counts changes of extents
	starts  int
	closed  bool
	hot     learned
	bytes   atomic.Int64 // that this snapshot has added
}

// Snapshot captures an idle instance. Only pages that differ from the snapshot that it was started from are copied; the instance goes on unchanged.
// Errors: errs.Unsupported for modules whose state can't be reached as a whole, errs.Invalid during a call, errs.Limit when the host is out of memory.
func (in *Instance) Snapshot() (*Snapshot, error) {
	if in.depth > 0 || in.broken || in.ctx == nil {
		return nil, errs.Msg(errs.Invalid, "snapshot", in.m.o.Name, "the instance isn't idle")
	}
	return in.snapshot()
}

// snapshot captures an instance that doesn't run meanwhile.
func (in *Instance) snapshot() (*Snapshot, error) {
	m := in.m
	if m.info.Fixed != "" {
		return nil, errs.Msg(errs.Unsupported, "snapshot", m.o.Name, "the module has "+m.info.Fixed)
	}
	s := &Snapshot{m: m, size: in.mem.size, globals: in.readGlobals()}
	s.host = in.host.clone()
	if err := s.capture(in); err != nil {
		return nil, errs.New(errs.Limit, "snapshot", m.o.Name, err)
	}
	return s, nil
}

// capture copies memory.
func (s *Snapshot) capture(in *Instance) error {
	var base []extent
	if in.snap != nil {
		base = in.mapped
	}
	dirty, err := in.dirty(base)
	if err != nil {
		return err
	}
	l, err := newLayer(s.size)
	if err != nil {
		return err
	}
	defer l.release()
	whole := len(base) == 0 || len(layersOf(base)) >= maxLayers
	if whole {
		dirty = []span{{0, s.size}}
	} else {
		dirty = fill(dirty, max(maxExtents-2*len(base), 8))
	}
	mem := in.mem.bytes()
	for _, d := range dirty {
		put := l.write
		if whole {
			put = l.writeSparse
		}
		if err := put(mem[d.off:d.end], d.off); err != nil {
			return err
		}
	}
	if err := l.seal(); err != nil {
		return err
	}
	s.extents = overlay(base, dirty, l)
	var bytes uint64
	for _, d := range dirty {
		bytes += d.end - d.off
	}
	s.bytes.Store(int64(bytes))
	for _, e := range layersOf(s.extents) {
		e.refs.Add(1)
	}
	if bytes >= rebase { // also when all was copied: the next capture copies what differs from this one
		return in.remap(s)
	}
	return nil
}

// layersOf returns the layers that extents lie in, each once.
func layersOf(extents []extent) (out []*layer) {
	for _, e := range extents {
		if !slices.Contains(out, e.l) {
			out = append(out, e.l)
		}
	}
	return out
}

// Size returns the bytes of the guest's memory, and how many of them this snapshot holds itself instead of sharing them.
func (s *Snapshot) Size() (memory, own int64) { return int64(s.size), s.bytes.Load() }

// Close lets go of the snapshot. Instances that were started from it live on.
func (s *Snapshot) Close() error {
	s.mu.Lock()
	closed, extents := s.closed, s.extents
	s.closed, s.extents = true, nil
	s.mu.Unlock()
	if closed {
		return nil
	}
	s.m.forget(s)
	for _, l := range layersOf(extents) {
		l.release()
	}
	return nil
}

// take returns the extents with their layers held, and how often they have changed.
func (s *Snapshot) take() ([]extent, uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, 0, errs.Msg(errs.Invalid, "start", s.m.o.Name, "the snapshot is closed")
	}
	for _, l := range layersOf(s.extents) {
		l.refs.Add(1)
	}
	return s.extents, s.seq, nil
}

func give(extents []extent) {
	for _, l := range layersOf(extents) {
		l.release()
	}
}

// flatten makes a snapshot one of one extent, so that a start takes one mapping.
func (s *Snapshot) flatten() error {
	old, _, err := s.take()
	if err != nil {
		return err
	}
	defer give(old)
	if len(old) <= 1 {
		return nil
	}
	l, err := newLayer(s.size)
	if err != nil {
		return err
	}
	err = s.each(old, func(b []byte, off uint64) error { return l.writeSparse(b, off) })
	if err == nil {
		err = l.seal()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || s.closed {
		l.release()
		return err
	}
	give(s.extents)
	s.extents = []extent{{span{0, s.size}, l}}
	s.seq++
	s.bytes.Store(int64(s.size))
	return nil
}

// each passes on what extents hold, in order and in pieces of whole pages that are of no use after.
func (s *Snapshot) each(extents []extent, f func(b []byte, off uint64) error) error {
	buf := make([]byte, 256<<10)
	for _, e := range extents {
		for off := e.off; off < e.end; {
			if next, err := unix.Seek(e.l.fd, int64(off), unix.SEEK_DATA); err == unix.ENXIO || err == nil && uint64(next) >= e.end {
				break // a hole up to the end
			} else if err == nil {
				off = max(off, uint64(next)&^(hostPageSize-1))
			}
			b := buf[:min(uint64(len(buf)), e.end-off)]
			if err := e.l.read(b, off); err != nil {
				return err
			}
			if err := f(b, off); err != nil {
				return err
			}
			off += uint64(len(b))
		}
	}
	return nil
}
