package bucket

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"agentrun.dev"
	"agentrun.dev/blob"
	"agentrun.dev/bucket/segment"
	"agentrun.dev/bucket/tree"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

// DefaultHistory is how far back any version of a bucket can be read if Options don't say.
const DefaultHistory = time.Hour

// Options configure a Store. KV and Blobs are needed; everything else has a default.
type Options struct {
	KV    kv.Store
	Blobs blob.Store
	// History is how far back any time can be read: 0 is DefaultHistory, negative is none.
	History time.Duration
	// NodeCache bounds the memory for tree nodes, in bytes; 0 is 64 MiB.
	NodeCache int64
	// OpenBuckets is how many buckets are kept in memory beyond those in use; 0 is 1,024.
	OpenBuckets int
	// Segment configures payload storage; its zero value works.
	Segment segment.Options
	Now     func() time.Time
	Log     *slog.Logger
	// FoldMin is how many bytes of changes a bucket gathers at least before they are folded; 0 is 1 MiB.
	FoldMin int64
}

// Store holds buckets. All methods may be called concurrently.
type Store struct {
	kv       kv.Store
	blobs    blob.Store
	segments *segment.Set
	tree     *tree.Tree
	nodes    nodeStore
	history  time.Duration
	foldMin  int64
	maxOpen  int
	log      *slog.Logger

	clock    clock
	objIDs   ids // views, deltas, spaces
	nodeIDs  ids
	eventIDs ids

	commits committer
	pins    pins
	ledger  ledger
	folds   folder

	mu     sync.Mutex // guards what follows; never held while waiting for anything
	refs   map[agentrun.RefID]*ref
	names  map[string]chan struct{} // names being created
	tick   uint64                   // for the order of use
	folded map[uint64]tree.ID       // views that folds replaced since the last eviction, and by which trees

	unfinished []kv.Batch // what remains to be done for trees that were abandoned

	past   pastCache
	staged staged
	snapMu sync.Mutex

	barrier sync.RWMutex  // fsck excludes all changes
	deletes sync.RWMutex  // held alone by deletions that leave an ancestor or take one along: two could each leave a common one to the other
	unclean atomic.Bool   // payload may be left without a holder: the next opening looks for it
	swept   chan struct{} // closed when what an earlier crash left has been looked for
	ctx     context.Context
	cancel  context.CancelFunc
	workers sync.WaitGroup
}

// Open opens the store that kv and blobs hold, recovering from a crash, and starts its background work. ctx bounds the
// opening only.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.KV == nil || o.Blobs == nil {
		return nil, errs.Msg(errs.Invalid, "open", "store", "needs a kv and a blob store")
	}
	s := &Store{kv: o.KV, blobs: o.Blobs, history: o.History, foldMin: o.FoldMin, maxOpen: o.OpenBuckets, log: o.Log,
		refs: make(map[agentrun.RefID]*ref), names: make(map[string]chan struct{}), folded: make(map[uint64]tree.ID)}
	s.nodes = nodeStore{kv: o.KV}
	s.clock.now = o.Now
	s.defaults()
	key, err := s.openFormat(ctx)
	if err != nil {
		return nil, err
	}
	for name, c := range map[byte]*ids{'o': &s.objIDs, 'n': &s.nodeIDs, 'e': &s.eventIDs} {
		if err := c.open(ctx, s.kv, name); err != nil {
			return nil, err
		}
	}
	if s.segments, err = segment.Open(ctx, o.Blobs, o.Segment); err != nil {
		return nil, err
	}
	s.tree = tree.New(s.nodes, tree.Options{Measure: measure, CacheBytes: o.NodeCache, HashKey: key})
	s.pins.init()
	if err := s.recover(ctx); err != nil {
		s.segments.Close()
		return nil, err
	}
	from, to, crashed, err := s.openMark(ctx)
	if err != nil {
		s.segments.Close()
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.commits.start(s)
	s.ledger.start(s)
	s.folds.start(s)
	s.workers.Add(1)
	go s.housekeep()
	s.swept = make(chan struct{})
	if !crashed {
		close(s.swept)
		return s, nil
	}
	s.workers.Add(1)
	go func() {
		defer s.workers.Done()
		defer close(s.swept)
		err := s.sweep(s.ctx, from, to)
		if err == nil {
			err = s.mark(to, false)
		}
		if err != nil {
			s.unclean.Store(true)
			s.log.Warn("orphaned payload stays until the next opening", "error", err)
		}
	}()
	return s, nil
}

func (s *Store) defaults() {
	if s.history == 0 {
		s.history = DefaultHistory
	}
	if s.foldMin == 0 {
		s.foldMin = 1 << 20
	}
	if s.maxOpen == 0 {
		s.maxOpen = 1024
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.clock.now == nil {
		s.clock.now = time.Now
	}
}

// openFormat checks the format version, or writes it into a new store, and returns the key of node boundaries.
func (s *Store) openFormat(ctx context.Context) (key [32]byte, err error) {
	b, err := s.kv.Get(ctx, kvKey(kFormat))
	if errs.Is(err, errs.NotFound) {
		if _, err := rand.Read(key[:]); err != nil {
			return key, err
		}
		var batch kv.Batch
		batch.Put(kvKey(kFormat), append(present(), key[:]...))
		return key, s.kv.Commit(ctx, &batch)
	}
	if err != nil {
		return key, err
	}
	d := dec{b: b}
	if err := d.version("store"); err != nil {
		return key, err
	}
	copy(key[:], d.take(32))
	return key, d.end("store")
}

// recover brings the store from whatever a crash left to a sound state, before anything else runs.
func (s *Store) recover(ctx context.Context) error {
	// Trees that weren't finished: nothing refers to their nodes. A node id is never used again, so one range does.
	var batch kv.Batch
	err := s.kv.Scan(ctx, prefixRange(kvKey(kPending)), func(k, v []byte) error {
		d := dec{b: v}
		if err := d.version("pending tree"); err != nil {
			return err
		}
		batch.DeleteRange(nodeKey(binary.BigEndian.Uint64(k[2:])), nodeKey(d.u()))
		batch.Delete(append([]byte(nil), k...))
		return nil
	})
	if err != nil {
		return err
	}
	if !batch.Empty() {
		batch.Reclaim = true
		if err := s.kv.Commit(ctx, &batch); err != nil {
			return err
		}
	}
	return s.recoverClock(ctx)
}

func prefixRange(prefix []byte) kv.Range { return kv.Range{Start: prefix, End: kv.PrefixEnd(prefix)} }

// recoverClock finds the last version that was given out.
func (s *Store) recoverClock(ctx context.Context) error {
	b, err := s.kv.Get(ctx, kvKey(kIDs, []byte{'c'}))
	if err == nil && len(b) == 9 {
		s.clock.last = binary.BigEndian.Uint64(b[1:])
	} else if !errs.Is(err, errs.NotFound) {
		return err
	}
	return nil
}

// stamp notes the last version of a transaction, so that the clock never goes back, not even over a restart. Versions
// are taken before transactions are queued, so the committer finds the last of a group.
func (t *txn) stamp(seq uint64) { t.seq = max(t.seq, seq) }

// Close ends background work and releases memory. It doesn't close the kv and blob stores, which belong to the caller.
func (s *Store) Close() error {
	s.cancel()
	s.workers.Wait()
	s.folds.wait()
	s.ledger.stop()
	<-s.ledger.stopped
	s.commits.stop()
	var last uint64
	list, err := s.segments.Segments(context.Background())
	for _, seg := range list {
		last = max(last, seg.ID)
	}
	if err2 := s.segments.Close(); err == nil {
		err = err2
	}
	switch {
	case err != nil:
		// Slots that were freed may come back to life, in any segment.
		return errors.Join(err, s.mark(0, false))
	case s.staged.any() || s.unclean.Load():
		return nil // the next opening looks for orphans
	}
	return s.mark(last, true)
}

// Metrics counts what a store has done since it was opened.
type Metrics struct {
	Commits, Transactions uint64 // synced commits, and the transactions that they grouped
	Folds                 uint64
	OpenBuckets           int
	Collected             GCResult
}

// Metrics returns counters for monitoring.
func (s *Store) Metrics() Metrics {
	s.commits.mu.Lock()
	m := Metrics{Commits: s.commits.groups, Transactions: s.commits.txns}
	s.commits.mu.Unlock()
	s.mu.Lock()
	m.OpenBuckets = len(s.refs)
	s.mu.Unlock()
	m.Folds = s.folds.done.Load()
	s.ledger.mu.Lock()
	m.Collected = s.ledger.freed
	s.ledger.mu.Unlock()
	return m
}

// housekeep does what is due by time: expired snapshots, history and uploads, and idle buckets in memory.
func (s *Store) housekeep() {
	defer s.workers.Done()
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
		s.evict()
		if n%6 == 0 {
			if err := s.expire(s.ctx); err != nil && s.ctx.Err() == nil {
				s.log.Warn("expiry failed; it is tried again", "error", err)
			}
		}
		if n%24 == 0 {
			if _, err := s.segments.Compact(s.ctx, compactAt); err != nil && s.ctx.Err() == nil {
				s.log.Warn("compaction failed; it is tried again", "error", err)
			}
		}
	}
}

// nodeStore keeps tree nodes in kv.
type nodeStore struct{ kv kv.Store }

// Node returns an encoded node.
func (n nodeStore) Node(ctx context.Context, id tree.ID) ([]byte, error) {
	b, err := n.kv.Get(ctx, nodeKey(uint64(id)))
	if errs.Is(err, errs.NotFound) {
		return nil, errs.Msg(errs.Corrupt, "read", "tree node", "missing; run fsck")
	}
	return b, err
}
