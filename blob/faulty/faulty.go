// Package faulty decorates a blob.Store with faults, for crash tests of what is built on one.
//
// Each call that changes the store is an operation with a number, from 1. An injector may fail any of them. From the
// moment of a power cut on all operations and reads fail; Survivors then gives the store that a restarted machine
// would find: what was synced, and as much of the rest as its mode says.
package faulty

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync"

	"agentrun.dev/blob"
	"agentrun.dev/blob/memory"
	"agentrun.dev/errs"
)

// Kind is the kind of an operation.
type Kind uint8

const (
	Create Kind = iota
	Append
	Sync
	Punch
	Remove
	Reopen
)

// String returns the kind's name.
func (k Kind) String() string {
	return [...]string{"create", "append", "sync", "punch", "remove", "reopen"}[k]
}

// Op is one operation as an injector sees it. N counts operations from 1.
type Op struct {
	N    int
	Kind Kind
	Name string
	Size int // bytes, of an Append
}

// ErrPowerCut, returned by an injector, cuts the power: the operation is done by halves and all later ones fail.
var ErrPowerCut = errors.New("power cut")

// Tail says what a power cut leaves of the bytes that weren't synced.
type Tail uint8

const (
	Lost      Tail = iota // nothing
	Torn                  // a beginning of them, of random length
	Scrambled             // a beginning, with random sectors of it zero: they hadn't been written yet
	Kept                  // all of them
)

// sector is the unit in which Scrambled loses bytes.
const sector = 512

// Store is a blob.Store with faults.
type Store struct {
	inner blob.Store

	mu     sync.Mutex
	inject func(Op) error
	ops    int
	cut    bool
	half   float64          // share of the operation at the cut that is done
	synced map[string]int64 // durable bytes of each blob; a blob without an entry has no durable name
}

var (
	_ blob.Store    = (*Store)(nil)
	_ blob.Reopener = (*Store)(nil)
	_ blob.Puncher  = (*handle)(nil)
)

// New returns a store over an inner one, whose present blobs all count as synced. A nil inner is a new memory store.
func New(inner blob.Store) (*Store, error) {
	s := &Store{synced: map[string]int64{}, half: 0.5}
	if inner == nil {
		s.inner = memory.New(memory.Options{})
		return s, nil
	}
	s.inner = inner
	return s, inner.List(context.Background(), "", func(i blob.Info) error {
		s.synced[i.Name] = i.Size
		return nil
	})
}

// Inject sets the function that is asked before each operation; an error from it is what the operation returns. Nil
// ends the faults.
func (s *Store) Inject(f func(Op) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inject = f
}

// Ops returns the number of operations so far.
func (s *Store) Ops() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ops
}

// CutAt cuts the power at operation n, of which the given share (of an Append: of its bytes) is still done.
func (s *Store) CutAt(n int, share float64) {
	s.mu.Lock()
	s.half = share
	s.mu.Unlock()
	s.Inject(func(op Op) error {
		if op.N >= n {
			return ErrPowerCut
		}
		return nil
	})
}

// Cut cuts the power now.
func (s *Store) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = true
}

func errOff(op, name string) error { return errs.New(errs.Unavailable, op, name, ErrPowerCut) }

// step counts an operation and decides its fate. When the power goes with this very operation, it returns half = true.
func (s *Store) step(k Kind, name string, size int) (half bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cut {
		return false, errOff(k.String(), name)
	}
	s.ops++
	if s.inject == nil {
		return false, nil
	}
	err = s.inject(Op{N: s.ops, Kind: k, Name: name, Size: size})
	if errors.Is(err, ErrPowerCut) {
		s.cut = true
		return true, errOff(k.String(), name)
	}
	return false, err
}

func (s *Store) off() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cut
}

// Create implements blob.Store.
func (s *Store) Create(ctx context.Context, name string) (blob.Blob, error) {
	if half, err := s.step(Create, name, 0); err != nil {
		if half && s.half >= 0.5 {
			_, _ = s.inner.Create(ctx, name)
		}
		return nil, err
	}
	b, err := s.inner.Create(ctx, name)
	if err != nil {
		return nil, err
	}
	return &handle{Blob: b, s: s, name: name}, nil
}

// Open implements blob.Store.
func (s *Store) Open(ctx context.Context, name string) (blob.Blob, error) {
	if s.off() {
		return nil, errOff("open", name)
	}
	b, err := s.inner.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return &handle{Blob: b, s: s, name: name}, nil
}

// Reopen implements blob.Reopener; the inner store must. The cut counts as durable at once, as it costs nobody
// anything: what is cut off is garbage.
func (s *Store) Reopen(ctx context.Context, name string, size int64) (blob.Blob, error) {
	if _, err := s.step(Reopen, name, 0); err != nil {
		return nil, err
	}
	r, ok := s.inner.(blob.Reopener)
	if !ok {
		return nil, errs.New(errs.Unsupported, "reopen", name, nil)
	}
	b, err := r.Reopen(ctx, name, size)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	if old, ok := s.synced[name]; ok {
		s.synced[name] = min(old, size)
	}
	s.mu.Unlock()
	return &handle{Blob: b, s: s, name: name}, nil
}

// List implements blob.Store.
func (s *Store) List(ctx context.Context, prefix string, f func(blob.Info) error) error {
	if s.off() {
		return errOff("list", prefix)
	}
	return s.inner.List(ctx, prefix, f)
}

// Remove implements blob.Store.
func (s *Store) Remove(ctx context.Context, name string) error {
	half, err := s.step(Remove, name, 0)
	if err != nil && !(half && s.half >= 0.5) {
		return err
	}
	if err2 := s.inner.Remove(ctx, name); err2 != nil {
		return err2
	}
	s.mu.Lock()
	delete(s.synced, name)
	s.mu.Unlock()
	return err
}

// Survivors returns what a restarted machine finds, as a new memory store. It may be called several times, with
// different tails, and before a cut too.
func (s *Store) Survivors(tail Tail, rng *rand.Rand) (*memory.Store, error) {
	ctx := context.Background()
	out := memory.New(memory.Options{})
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.inner.List(ctx, "", func(i blob.Info) error {
		durable, named := s.synced[i.Name]
		if !named && (tail == Lost || tail != Kept && rng.IntN(2) == 0) {
			return nil
		}
		return survive(ctx, s.inner, out, i, durable, tail, rng)
	})
	return out, err
}

// survive copies one blob as far as it lasts.
func survive(ctx context.Context, from, to blob.Store, i blob.Info, durable int64, tail Tail, rng *rand.Rand) error {
	end := i.Size
	switch tail {
	case Lost:
		end = durable
	case Torn, Scrambled:
		end = durable + rng.Int64N(i.Size-durable+1)
	}
	src, err := from.Open(ctx, i.Name)
	if err != nil {
		return err
	}
	defer src.Close()
	p := make([]byte, end)
	if _, err := src.ReadAt(p, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if tail == Scrambled {
		for at := durable; at < end; at += sector {
			if rng.IntN(3) == 0 {
				clear(p[at:min(end, at+sector)])
			}
		}
	}
	dst, err := to.Create(ctx, i.Name)
	if err != nil {
		return err
	}
	_, err = dst.Append(p)
	return errors.Join(err, dst.Close())
}

// Damage flips bits of a blob, as a bad disk would: the byte at off is xored with mask. The inner store must be a
// Reopener.
func (s *Store) Damage(name string, off int64, mask byte) error {
	return Damage(s.inner, name, off, mask)
}

// Damage does the same to any store that is a Reopener.
func Damage(store blob.Store, name string, off int64, mask byte) error {
	ctx := context.Background()
	r, ok := store.(blob.Reopener)
	if !ok {
		return errs.New(errs.Unsupported, "damage", name, nil)
	}
	b, err := store.Open(ctx, name)
	if err != nil {
		return err
	}
	p := make([]byte, b.Size())
	_, err = b.ReadAt(p, 0)
	_ = b.Close()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if off < 0 || off >= int64(len(p)) {
		return errs.Msg(errs.Invalid, "damage", name, "offset outside the blob")
	}
	p[off] ^= mask
	w, err := r.Reopen(ctx, name, off)
	if err != nil {
		return err
	}
	_, err = w.Append(p[off:])
	return errors.Join(err, w.Sync(), w.Close())
}

// Names returns the names of a store's blobs with a prefix, in order.
func Names(store blob.Store, prefix string) []string {
	var names []string
	_ = store.List(context.Background(), prefix, func(i blob.Info) error {
		names = append(names, strings.Clone(i.Name))
		return nil
	})
	return names
}

// handle is an open blob of a Store.
type handle struct {
	blob.Blob
	s    *Store
	name string
}

func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	if h.s.off() {
		return 0, errOff("read", h.name)
	}
	return h.Blob.ReadAt(p, off)
}

func (h *handle) Append(p []byte) (int64, error) {
	half, err := h.s.step(Append, h.name, len(p))
	if half {
		_, _ = h.Blob.Append(p[:int(h.s.half*float64(len(p)))])
	}
	if err != nil {
		return 0, err
	}
	return h.Blob.Append(p)
}

// Sync makes durable what was appended when it began, as a disk may.
func (h *handle) Sync() error {
	size := h.Blob.Size()
	half, err := h.s.step(Sync, h.name, 0)
	if err != nil && !(half && h.s.half >= 1) {
		return err
	}
	if err2 := h.Blob.Sync(); err2 != nil {
		return err2
	}
	h.s.mu.Lock()
	h.s.synced[h.name] = max(size, h.s.synced[h.name])
	h.s.mu.Unlock()
	return err
}

func (h *handle) Punch(off, n int64) error {
	half, err := h.s.step(Punch, h.name, 0)
	if err != nil && !half {
		return err
	}
	p, ok := h.Blob.(blob.Puncher)
	if !ok {
		return errs.New(errs.Unsupported, "punch", h.name, nil)
	}
	if half {
		n = int64(h.s.half * float64(n))
	}
	return errors.Join(p.Punch(off, n), err)
}
