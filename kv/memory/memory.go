// Package memory is a kv.Store in memory, for sandboxes that needn't outlive their process and for tests.
//
// The store is a copy-on-write B-tree: a scan works on a copy that costs O(1), so it sees one state and blocks nobody.
package memory

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/tidwall/btree"

	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

var errNotFound = errs.Msg(errs.NotFound, "get", "", "no such key")

// ctxEvery is the number of pairs between two looks at a scan's context.
const ctxEvery = 256

// Store is a kv.Store in memory.
type Store struct {
	mu     sync.RWMutex
	tree   *btree.BTreeG[kv.Pair] // guarded by mu; values in it are never changed in place
	closed bool
}

var _ kv.Store = (*Store)(nil)

// New returns an empty store.
func New() *Store {
	less := func(a, b kv.Pair) bool { return bytes.Compare(a.Key, b.Key) < 0 }
	return &Store{tree: btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})}
}

// Get implements kv.Store.
func (s *Store) Get(ctx context.Context, key []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, errClosed("get")
	}
	p, ok := s.tree.Get(kv.Pair{Key: key})
	if !ok {
		return nil, errNotFound
	}
	return append(make([]byte, 0, len(p.Value)), p.Value...), nil
}

// Scan implements kv.Store.
func (s *Store) Scan(ctx context.Context, r kv.Range, f func(key, value []byte) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock() // Copy changes the tree it copies
	if s.closed {
		s.mu.Unlock()
		return errClosed("scan")
	}
	tree := s.tree.Copy()
	s.mu.Unlock()
	var err error
	n := 0
	visit := func(p kv.Pair) bool {
		if r.Reverse {
			if r.End != nil && bytes.Compare(p.Key, r.End) >= 0 {
				return true // the pivot itself, which lies outside
			}
			if bytes.Compare(p.Key, r.Start) < 0 {
				return false
			}
		} else if r.End != nil && bytes.Compare(p.Key, r.End) >= 0 {
			return false
		}
		if n++; n%ctxEvery == 0 {
			if err = ctx.Err(); err != nil {
				return false
			}
		}
		err = f(p.Key, p.Value)
		return err == nil
	}
	switch {
	case !r.Reverse:
		tree.Ascend(kv.Pair{Key: r.Start}, visit)
	case r.End == nil:
		tree.Reverse(visit)
	default:
		tree.Descend(kv.Pair{Key: r.End}, visit)
	}
	if errors.Is(err, kv.Stop) {
		return nil
	}
	return err
}

// Commit implements kv.Store. Lazy and Reclaim mean nothing here.
func (s *Store) Commit(ctx context.Context, b *kv.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := b.Validate(); err != nil {
		return err
	}
	puts := clonePairs(b.Puts) // outside the lock
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed("commit")
	}
	for i := range b.Checks {
		p, ok := s.tree.Get(kv.Pair{Key: b.Checks[i].Key})
		if !b.Checks[i].Holds(p.Value, ok) {
			return b.Checks[i].Failed()
		}
	}
	for _, r := range b.Ranges {
		s.deleteRange(r)
	}
	for _, k := range b.Deletes {
		s.tree.Delete(kv.Pair{Key: k})
	}
	for _, p := range puts {
		s.tree.Set(p)
	}
	return nil
}

// deleteRange removes a span; s.mu is held.
func (s *Store) deleteRange(r kv.Range) {
	var keys [][]byte
	s.tree.Ascend(kv.Pair{Key: r.Start}, func(p kv.Pair) bool {
		if r.End != nil && bytes.Compare(p.Key, r.End) >= 0 {
			return false
		}
		keys = append(keys, p.Key)
		return true
	})
	for _, k := range keys {
		s.tree.Delete(kv.Pair{Key: k})
	}
}

// clonePairs copies pairs into one allocation, since the caller owns its slices again after Commit.
func clonePairs(pairs []kv.Pair) []kv.Pair {
	n := 0
	for _, p := range pairs {
		n += len(p.Key) + len(p.Value)
	}
	// A chunk is shared by small pairs only: one small survivor mustn't keep a large dead neighbour alive.
	const small = 1 << 10
	out := make([]kv.Pair, len(pairs))
	var chunk []byte
	for i, p := range pairs {
		size := len(p.Key) + len(p.Value)
		if size > cap(chunk)-len(chunk) {
			chunk = make([]byte, 0, max(size, min(small, n)))
		}
		n -= size
		at := len(chunk)
		chunk = append(append(chunk, p.Key...), p.Value...)
		mid := at + len(p.Key)
		out[i] = kv.Pair{Key: chunk[at:mid:mid], Value: chunk[mid:len(chunk):len(chunk)]}
	}
	return out
}

// Close drops everything. Later calls give an errs.Unavailable.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.tree.Clear()
	return nil
}

func errClosed(op string) error { return errs.Msg(errs.Unavailable, op, "memory store", "closed") }
