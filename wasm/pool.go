package wasm

import (
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
	"agentrun.dev/proc"
)

const madvPopulateWrite = 23 // MADV_POPULATE_WRITE, of Linux 5.14

// Start makes an instance of the snapshot, bound to p. It shares the snapshot's memory until it writes. Closing the instance gives it back to
// a pool: what it wrote is dropped at once. Errors: errs.Limit (memory, mappings), errs.Invalid after Close.
func (s *Snapshot) Start(p *proc.Process, c Config) (*Instance, error) {
	in, err := s.m.idle(s)
	if err != nil {
		return nil, err
	}
	if err := in.become(s); err != nil {
		in.destroy()
		return nil, err
	}
	if err := in.bind(p, c); err != nil {
		in.recycle()
		return nil, err
	}
	return in, nil
}

// idle takes an instance that is ready, best one that is mapped to the snapshot already, or makes one.
func (m *Module) idle(s *Snapshot) (*Instance, error) {
	m.mu.Lock()
	best := -1
	for i := len(m.ready) - 1; i >= 0; i-- {
		if m.ready[i].snap == s {
			best = i
			break
		}
	}
	if best < 0 {
		best = len(m.ready) - 1
	}
	var in *Instance
	if best >= 0 {
		in = m.ready[best]
		m.ready = slices.Delete(m.ready, best, best+1)
	}
	fill := len(m.ready) < m.r.o.Ready/2 && !m.filling
	m.filling = m.filling || fill
	m.mu.Unlock()
	if fill && !m.r.background(func() { m.fill(s) }) {
		m.mu.Lock()
		m.filling = false
		m.mu.Unlock()
	}
	if in != nil {
		return in, nil
	}
	return m.raw()
}

// background runs f, which Close waits for; false after Close.
func (r *Runtime) background(f func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.busy.Add(1)
	go func() {
		defer r.busy.Done()
		f()
	}()
	return true
}

// fill makes instances ready for a snapshot.
func (m *Module) fill(s *Snapshot) {
	defer func() {
		m.mu.Lock()
		m.filling = false
		m.mu.Unlock()
	}()
	for {
		m.mu.Lock()
		full := len(m.ready) >= m.r.o.Ready
		m.mu.Unlock()
		if full {
			return
		}
		in, err := m.raw()
		if err != nil {
			return // whoever starts one is told
		}
		if in.become(s) != nil {
			in.destroy()
			return
		}
		if !m.put(in) {
			in.destroy()
			return
		}
	}
}

// put adds an instance to the pool; false if that is full or closed.
func (m *Module) put(in *Instance) bool {
	m.r.mu.Lock()
	closed := m.r.closed
	m.r.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if closed || m.drained || len(m.ready) >= m.r.o.Ready {
		return false
	}
	m.ready = append(m.ready, in)
	return true
}

// drain destroys the pool, for good.
func (m *Module) drain() {
	m.mu.Lock()
	ready := m.ready
	m.ready, m.drained = nil, true
	m.mu.Unlock()
	for _, in := range ready {
		in.destroy()
	}
}

// forget unmaps a snapshot from instances that are ready, so that its memory can go.
func (m *Module) forget(s *Snapshot) {
	m.mu.Lock()
	var of []*Instance
	m.ready = slices.DeleteFunc(m.ready, func(in *Instance) bool {
		if in.snap == s {
			of = append(of, in)
		}
		return in.snap == s
	})
	m.mu.Unlock()
	for _, in := range of {
		in.destroy()
	}
}

// become makes an idle instance's memory and globals the snapshot's. An instance that was recycled from the same snapshot is so already.
func (in *Instance) become(s *Snapshot) error {
	s.mu.Lock()
	same := in.snap == s && in.seq == s.seq && in.clean && !s.closed
	s.starts++
	flatten := s.starts == popular && len(s.extents) > 1
	s.mu.Unlock()
	if flatten {
		in.m.r.background(func() { s.flatten() })
	}
	if !same {
		if err := in.mapTo(s); err != nil {
			return err
		}
		in.populate(s)
	}
	in.clean = false
	in.writeGlobals(s.globals)
	in.host = s.host.clone()
	return nil
}

// mapTo maps the snapshot where the instance's memory is. Whatever was there is gone.
func (in *Instance) mapTo(s *Snapshot) error {
	extents, seq, err := s.take()
	if err != nil {
		return err
	}
	defer func() { give(extents) }()
	m := in.mem
	if more := 2 + 2*len(extents) - m.maps; more > 0 {
		if err := in.m.r.takeMaps(more); err != nil {
			return err
		}
		m.maps += more
	}
	fail := func(err error) error { return errs.New(errs.Limit, "start", in.m.o.Name, err) }
	whole := len(extents) == 1 && extents[0].off == 0 && extents[0].end >= m.open
	if !whole && m.open > 0 {
		if err := m.fixed(span{0, m.open}, unix.PROT_NONE, unix.MAP_ANON, -1); err != nil {
			return fail(err)
		}
	}
	m.open = 0
	if !whole {
		if err := m.reach(s.size); err != nil {
			return fail(err)
		}
	}
	for _, e := range extents {
		if err := m.fixed(e.span, unix.PROT_READ|unix.PROT_WRITE, 0, e.l.fd); err != nil {
			return fail(err)
		}
	}
	m.open = s.size
	if err := in.resize(s.size); err != nil {
		return err
	}
	// The instance holds the layers that it is mapped to: what is captured of it lies in them too, whatever becomes of s.
	in.snap, in.seq, in.mapped, extents = s, seq, extents, in.mapped
	return nil
}

// fixed maps a file, or nothing, over a part of the memory.
func (m *memory) fixed(s span, prot, flags, fd int) error {
	off := int64(s.off)
	if fd < 0 {
		off = 0
	}
	_, err := unix.MmapPtr(fd, off, unsafe.Add(m.base, s.off), uintptr(s.end-s.off), prot, unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE|flags)
	return err
}

// remap puts a snapshot that was just taken of the instance beneath it: the same bytes, but shared.
func (in *Instance) remap(s *Snapshot) error {
	size := in.mem.size
	if err := in.mapTo(s); err != nil {
		return err
	}
	if in.mem.size != size {
		return errs.Msg(errs.Other, "snapshot", in.m.o.Name, "memory changed its size")
	}
	return nil
}

// resize sets how large the guest's memory is, be it smaller than before: the engine takes what Reallocate returns for the memory. Nobody is charged.
func (in *Instance) resize(size uint64) error {
	m := in.mem
	if m.size == size {
		return nil
	}
	p := m.p
	m.p, m.force, m.want = nil, true, size
	limit := m.limit
	m.limit = m.reserved
	_, ok := in.mod.Memory().Grow(1)
	m.p, m.force, m.limit = p, false, limit
	if !ok || m.size != size || uint64(in.mod.Memory().Size()) != size&(1<<32-1) {
		return errs.Msg(errs.Limit, "start", in.m.o.Name, "memory can't be resized")
	}
	return nil
}

// populate copies the pages that will be written to anyway.
func (in *Instance) populate(s *Snapshot) {
	s.mu.Lock()
	hot := s.hot.spans
	s.mu.Unlock()
	for _, h := range hot {
		if h.end <= in.mem.open {
			in.mem.advise(h, madvPopulateWrite)
		}
	}
}

func (m *memory) advise(s span, advice int) error {
	return unix.Madvise(unsafe.Slice((*byte)(unsafe.Add(m.base, s.off)), s.end-s.off), advice)
}

// recycle ends an instance: it goes back to the pool of its module as its snapshot was, or is destroyed.
func (in *Instance) recycle() {
	s, m := in.snap, in.mem
	in.unlock()
	in.host.timer.stop()
	m.unbind()
	in.p, in.cfg = nil, Config{}
	if s == nil || in.m.info.Fixed != "" || m.base == nil {
		in.destroy()
		return
	}
	s.mu.Lock()
	closed, learning := s.closed || in.seq != s.seq, s.hot.rounds < learnRounds
	s.mu.Unlock()
	if closed {
		in.destroy()
		return
	}
	if learning {
		if spans, err := in.dirty(in.mapped); err == nil {
			s.mu.Lock()
			s.hot.learn(spans)
			s.mu.Unlock()
		}
	}
	// Pages of its own go; those of the file are seen again. Beyond the snapshot's size there is nothing but zeros.
	if m.advise(span{0, m.open}, unix.MADV_DONTNEED) != nil || in.resize(s.size) != nil {
		in.destroy()
		return
	}
	in.populate(s)
	if in.broken {
		clear(in.calls)
	}
	in.broken, in.depth, in.end, in.clean = false, 0, nil, true
	in.ticking = ticking{}
	in.host = hostState{}
	in.pending, in.resuming, in.saved = pending{}, nil, nil
	if in.meter != nil {
		in.meter.Set(0)
	}
	if !in.m.put(in) {
		in.destroy()
	}
}
