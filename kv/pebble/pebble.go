// Package pebble is a kv.Store on Pebble, an LSM tree in a directory of the local disk.
//
// A commit is a record in Pebble's write-ahead log, synced before Commit returns; concurrent commits share one sync.
// Pebble ends the process when its log can't be written. This package doesn't let it: a store that failed is
// poisoned, the disk is fenced against whatever Pebble still does in the background, and every later call gives an
// errs.Unavailable that names the cause. See fenceFS for errors, and space for the full disk.
package pebble

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

const (
	defaultCache    = 32 << 20
	memTables       = 3 // that may exist at once before writers wait
	defaultMemTable = 16 << 20
	defaultFloor    = 64 << 20
	defaultBallast  = 16 << 20

	ctxEvery = 256 // pairs between two looks at a scan's context

	// closeWait is how long the Close of a poisoned store waits for Pebble, which may be stuck for ever.
	closeWait = 500 * time.Millisecond
)

// Options tune a store. The zero value works.
type Options struct {
	CacheBytes    int64 // block cache; 32 MiB if zero
	MemTableBytes int64 // one memtable, of which two or three exist at times; 16 MiB if zero

	// FreeFloor is how many bytes of the disk must stay free: below it, commits that don't Reclaim give errs.NoSpace.
	// Zero means 64 MiB or 1 % of the disk, whichever is less; negative means none.
	FreeFloor int64
	// Ballast is the size of the reserve for writes that meet a full disk all the same. Zero means 16 MiB or 1 % of the
	// disk, whichever is less; negative means none.
	Ballast int64

	FS vfs.FS // the file system, the host's if nil
}

// Store is a kv.Store in a directory.
type Store struct {
	db    *pebble.DB
	dir   string
	lock  *dirLock
	space *space
	fence *fence

	// turn is held by whoever applies a batch: it orders checks with commits. It is a channel, so that waiting for it
	// ends when the context does or when the store dies with the turn taken.
	turn chan struct{}

	dead  chan struct{}         // closed when the store is poisoned
	cause atomic.Pointer[error] // why, set before dead is closed
	die   sync.Once

	flushErr atomic.Pointer[error] // the last flush failed; nil once one succeeds

	mu     sync.RWMutex // guards closed, and ops.Add against it
	closed bool
	ops    sync.WaitGroup // calls under way
}

var _ kv.Store = (*Store)(nil)

var errNotFound = errs.Msg(errs.NotFound, "get", "", "no such key")

// Open opens the store in a directory, which it makes if it is missing. A store that is open already, in this or
// another process, is an errs.Unavailable that says where.
func Open(dir string, o Options) (*Store, error) {
	base := o.FS
	if base == nil {
		base = vfs.Default
		abs, err := filepath.Abs(dir)
		if err != nil {
			return nil, errs.New(errs.Invalid, "open", dir, err)
		}
		dir = abs
	}
	if err := base.MkdirAll(dir, 0o700); err != nil {
		return nil, openError(dir, err)
	}
	if o.FS == nil {
		// A lock excludes this process itself by the file's name only.
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return nil, openError(dir, err)
		}
		dir = real
	}
	lock, err := lockDir(base, dir)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, lock: lock, turn: make(chan struct{}, 1), dead: make(chan struct{})}
	s.fence = &fence{poison: s.poison}
	s.space = newSpace(base, dir, o.FreeFloor, o.Ballast)
	if err := s.open(base, o); err != nil {
		s.fence.shut()
		_ = lock.Close()
		return nil, openError(dir, err)
	}
	return s, nil
}

// open starts Pebble, which may also fail by a panic or by Fatalf.
func (s *Store) open(base vfs.FS, o Options) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	po := s.options(base, o)
	defer po.Cache.Unref()
	s.db, err = pebble.Open(s.dir, po)
	if err != nil {
		return err
	}
	if cause := s.cause.Load(); cause != nil {
		_ = s.db.Close()
		return *cause
	}
	return nil
}

// options translates ours into Pebble's.
func (s *Store) options(base vfs.FS, o Options) *pebble.Options {
	cacheBytes, memTable := o.CacheBytes, o.MemTableBytes
	if cacheBytes <= 0 {
		cacheBytes = defaultCache
	}
	if memTable <= 0 {
		memTable = defaultMemTable
	}
	po := &pebble.Options{
		// Pebble takes the memory of its memtables out of the cache's; without this nothing would be left for blocks.
		Cache:                       pebble.NewCache(cacheBytes + (memTables+1)*memTable),
		FS:                          &fenceFS{vfs.OnDiskFull(base, s.space.exhausted), s.fence},
		FormatMajorVersion:          pebble.FormatNewest,
		Logger:                      logger{s},
		EventListener:               s.listener(),
		MemTableSize:                uint64(memTable),
		MemTableStopWritesThreshold: memTables,
		BytesPerSync:                512 << 10,
		WALBytesPerSync:             1 << 20,
		L0CompactionThreshold:       2,
		L0StopWritesThreshold:       1000,
		LBaseMaxBytes:               64 << 20,
		MaxOpenFiles:                1000,
		MaxManifestFileSize:         16 << 20,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
	}
	for i := range po.Levels {
		po.Levels[i].BlockSize = 16 << 10
		po.Levels[i].IndexBlockSize = 64 << 10
		po.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		po.Levels[i].FilterType = pebble.TableFilter
	}
	po.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionBalanced })
	return po
}

// openError gives an error of Open its kind.
func openError(dir string, err error) error {
	kind := errs.KindOf(err)
	switch {
	case kind != errs.Other:
	case pebble.IsCorruptionError(err):
		kind = errs.Corrupt
	case vfs.IsNoSpaceError(err):
		kind = errs.NoSpace
	case errors.Is(err, os.ErrPermission):
		kind = errs.Denied
	}
	return errs.New(kind, "open", dir, err)
}

// begin admits a call; done must follow unless it gives an error.
func (s *Store) begin(ctx context.Context, op string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return errs.Msg(errs.Unavailable, op, s.dir, "closed")
	}
	if err := s.failed(op); err != nil {
		return err
	}
	s.ops.Add(1)
	return nil
}

// failed returns the error of a poisoned store, else nil.
func (s *Store) failed(op string) error {
	if cause := s.cause.Load(); cause != nil {
		return errs.New(errs.Unavailable, op, s.dir, fmt.Errorf("the store has failed and must be reopened: %w", *cause)).
			WithHint("look at the disk that holds it, then restart")
	}
	return nil
}

// poison makes every later call fail with a cause. Only the first cause counts.
func (s *Store) poison(cause error) {
	s.die.Do(func() {
		// The kind of a cause says nothing about the call that it is reported to.
		cause = errors.New(cause.Error())
		s.cause.Store(&cause) // before anything that was lost can be acknowledged
		s.fence.shut()
		close(s.dead)
	})
}

// recovered turns a panic of Pebble's into poison; op and err belong to the call which met it.
func (s *Store) recovered(op string, err *error) {
	if r := recover(); r != nil {
		s.poison(fmt.Errorf("panic: %v", r))
		*err = s.failed(op)
	}
}

// Get implements kv.Store.
func (s *Store) Get(ctx context.Context, key []byte) (value []byte, err error) {
	if err := s.begin(ctx, "get"); err != nil {
		return nil, err
	}
	defer s.ops.Done()
	return s.get(key)
}

func (s *Store) get(key []byte) ([]byte, error) {
	v, closer, err := s.db.Get(key)
	if err != nil {
		if errors.Is(err, pebble.ErrNotFound) {
			if err := s.failed("get"); err != nil {
				return nil, err
			}
			return nil, errNotFound
		}
		return nil, s.readError("get", err)
	}
	value := append(make([]byte, 0, len(v)), v...)
	return value, s.closeRead("get", closer)
}

func (s *Store) closeRead(op string, c io.Closer) error {
	if err := c.Close(); err != nil {
		return s.readError(op, err)
	}
	return s.failed(op)
}

func (s *Store) readError(op string, err error) error {
	switch {
	case pebble.IsCorruptionError(err):
		return errs.New(errs.Corrupt, op, s.dir, err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return errs.New(errs.Other, op, s.dir, err)
}

// Scan implements kv.Store. A long scan keeps the files of its state on the disk until it ends.
func (s *Store) Scan(ctx context.Context, r kv.Range, f func(key, value []byte) error) (err error) {
	if err := s.begin(ctx, "scan"); err != nil {
		return err
	}
	defer s.ops.Done()
	if r.End != nil && string(r.Start) >= string(r.End) {
		return nil
	}
	bounds := &pebble.IterOptions{LowerBound: r.Start, UpperBound: r.End}
	if len(r.Start) == 0 {
		bounds.LowerBound = nil // Pebble's own checks, which a race build turns on, trip over an empty one
	}
	it, err := s.db.NewIterWithContext(ctx, bounds)
	if err != nil {
		return s.readError("scan", err)
	}
	first, next := it.First, it.Next
	if r.Reverse {
		first, next = it.Last, it.Prev
	}
	n := 0
	for ok := first(); ok && err == nil; ok = next() {
		if n++; n%ctxEvery == 0 {
			if err = ctx.Err(); err != nil {
				break
			}
		}
		var value []byte
		if value, err = it.ValueAndErr(); err != nil {
			err = s.readError("scan", err)
			break
		}
		if err = f(it.Key(), value); err != nil {
			break
		}
	}
	closeErr := s.closeRead("scan", it)
	switch {
	case errors.Is(err, kv.Stop):
		return nil
	case err != nil:
		return err
	}
	return closeErr
}

// Close makes everything durable and releases the directory. It waits for calls under way.
func (s *Store) Close() (err error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()

	done := make(chan error, 1)
	go func() { done <- s.shutDown() }()
	select {
	case err = <-done:
	case <-s.dead:
		// Whatever is still stuck in Pebble is fenced off; the directory can be given to the next one.
		select {
		case err = <-done:
		case <-time.After(closeWait):
		}
	}
	if dead := s.failed("close"); dead != nil {
		err = dead
	}
	return errors.Join(err, s.lock.Close())
}

// shutDown ends Pebble in good order.
func (s *Store) shutDown() (err error) {
	defer s.recovered("close", &err)
	s.ops.Wait()
	if err := s.failed("close"); err != nil {
		_ = s.db.Close()
		return err
	}
	// Lazy commits became durable no later than this.
	if err := s.db.LogData(nil, pebble.Sync); err != nil {
		_ = s.db.Close()
		return errs.New(errs.Other, "close", s.dir, err)
	}
	if err := s.db.Close(); err != nil {
		return errs.New(errs.Other, "close", s.dir, err)
	}
	return nil
}
