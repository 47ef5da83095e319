package wasm

import (
	"slices"
	"sync"
	"syscall"
	"time"

	"agentrun.dev/proc"
)

// locks are the advisory locks of guests, of all sandboxes of a Runtime. They belong to processes: a process's own never stand in its way.
type locks struct {
	mu   sync.Mutex
	held map[lockedFile][]lock
}

// lockedFile is a file of a sandbox. Locks of fcntl (kind 0) and of flock (1) know nothing of each other.
type lockedFile struct {
	s    *proc.Sandbox
	kind uint32
	dev  uint64
	ino  uint64
}

type lock struct {
	p          *proc.Process
	start, end uint64 // end is beyond the last byte
	exclusive  bool
	fd         int // by which it was taken: closing that ends a lock of flock, closing any of the file one of fcntl
}

const (
	lockShared = iota
	lockExclusive
	lockNone
)

const (
	maxLocks  = 4096 // of one file
	firstWait = time.Millisecond
	lastWait  = 20 * time.Millisecond
)

// conflict finds a lock in the way of l.
func conflict(held []lock, l lock) *lock {
	for i := range held {
		h := &held[i]
		if h.p != l.p && h.start < l.end && l.start < h.end && (h.exclusive || l.exclusive) {
			return h
		}
	}
	return nil
}

// set replaces what l's process has in its range: EAGAIN, ENOLCK.
func (t *locks) set(f lockedFile, l lock, release bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	held := t.held[f]
	if !release && conflict(held, l) != nil {
		return syscall.EAGAIN
	}
	if len(held) >= maxLocks && !release {
		return syscall.ENOLCK
	}
	out := make([]lock, 0, len(held)+2)
	for _, h := range held {
		if h.p != l.p || h.end <= l.start || l.end <= h.start {
			out = append(out, h)
			continue
		}
		if h.start < l.start {
			out = append(out, lock{h.p, h.start, l.start, h.exclusive, h.fd})
		}
		if l.end < h.end {
			out = append(out, lock{h.p, l.end, h.end, h.exclusive, h.fd})
		}
	}
	if !release {
		out = append(out, l)
	}
	t.put(f, out)
	return nil
}

func (t *locks) put(f lockedFile, held []lock) {
	if len(held) == 0 {
		delete(t.held, f)
		return
	}
	if t.held == nil {
		t.held = make(map[lockedFile][]lock)
	}
	t.held[f] = held
}

// drop releases what a process has: of one file when the descriptor fd of it is closed, or of all if f is nil.
func (t *locks) drop(p *proc.Process, f *lockedFile, fd int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, held := range t.held {
		if f == nil && k.s == p.Sandbox() || f != nil && k == *f {
			t.put(k, slices.DeleteFunc(slices.Clone(held), func(l lock) bool { return l.p == p && (f == nil || k.kind == 0 || l.fd == fd) }))
		}
	}
}

// savedLock is a lock of a captured process.
type savedLock struct {
	Kind       uint32
	Dev, Ino   uint64
	Start, End uint64
	Exclusive  bool
	FD         int
}

// of lists what a process has.
func (t *locks) of(p *proc.Process) (out []savedLock) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, held := range t.held {
		for _, l := range held {
			if l.p == p {
				out = append(out, savedLock{k.kind, k.dev, k.ino, l.start, l.end, l.exclusive, l.fd})
			}
		}
	}
	return out
}

// lockFile returns the file that a descriptor locks.
func (in *Instance) lockFile(n int, kind uint32) (lockedFile, error) {
	f, err := in.p.File(n)
	if err != nil {
		return lockedFile{}, err
	}
	a, err := f.Attr()
	return lockedFile{in.p.Sandbox(), kind, a.Dev, uint64(a.Ino)}, err
}

func (in *Instance) lockOf(kind, start, n, size uint64) (lockedFile, lock, error) {
	end := start + size
	if size == 0 {
		end = 1<<64 - 1
	}
	if end < start || uint32(kind) > 1 {
		return lockedFile{}, lock{}, syscall.EINVAL
	}
	f, err := in.lockFile(fd(n), uint32(kind))
	return f, lock{p: in.p, start: start, end: end, fd: fd(n)}, err
}

// agentrunLock takes fd, kind, type, start, len and whether to wait.
func agentrunLock(in *Instance, s []uint64) error {
	f, l, err := in.lockOf(s[1], s[3], s[0], s[4])
	if err != nil {
		return err
	}
	what := uint32(s[2])
	if what > lockNone {
		return syscall.EINVAL
	}
	l.exclusive = what == lockExclusive
	in.host.locked = true
	wait := firstWait
	for {
		err := in.m.r.locks.set(f, l, what == lockNone)
		if err != syscall.EAGAIN || uint32(s[5]) == 0 {
			return err
		}
		if err := in.waits(func() error { return in.p.Sleep(wait) }); err != nil {
			return err
		}
		wait = min(2*wait, lastWait)
	}
}

// agentrunLockQuery tells who would be in the way of a record lock: fd, type, start, len, and where to write it.
func agentrunLockQuery(in *Instance, s []uint64) error {
	f, l, err := in.lockOf(0, s[2], s[0], s[3])
	if err != nil {
		return err
	}
	l.exclusive = uint32(s[1]) == lockExclusive
	t := &in.m.r.locks
	t.mu.Lock()
	var found [4]uint64
	if h := conflict(t.held[f], l); h != nil {
		found = [4]uint64{uint64(h.p.Pid()), lockShared, h.start, h.end - h.start}
		if h.exclusive {
			found[1] = lockExclusive
		}
		if h.end == 1<<64-1 {
			found[3] = 0
		}
	}
	t.mu.Unlock()
	for i, v := range found {
		if err := in.put64(uint64(uint32(s[4])+8*uint32(i)), v); err != nil {
			return err
		}
	}
	return nil
}

// closing releases record locks of the file behind a descriptor, as closing any descriptor of a file does.
func (in *Instance) closing(n int) {
	if !in.host.locked {
		return
	}
	for kind := range uint32(2) {
		if f, err := in.lockFile(n, kind); err == nil {
			in.m.r.locks.drop(in.p, &f, n)
		}
	}
}

// unlock releases all locks of the process that the instance is bound to.
func (in *Instance) unlock() {
	if in.host.locked && in.p != nil {
		in.m.r.locks.drop(in.p, nil, 0)
		in.host.locked = false
	}
}
