// Package kv is checked, batched, ordered storage behind four verbs: Get, Scan, Commit, Close.
//
// A store maps byte strings to byte strings in bytewise order. Everything durable in AgentRun that isn't payload is
// kept in one, so there is one place where atomicity and durability are decided. Implementations live in sub-packages;
// kvtest is the suite that each of them passes.
package kv

import "context"

// Limits that every implementation holds; exceeding one is an errs.TooLarge.
const (
	MaxKey   = 16 << 10  // bytes in a key
	MaxValue = 16 << 20  // bytes in a value
	MaxBatch = 256 << 20 // bytes in a batch, keys and values together
)

// Store is ordered storage. All methods may be called concurrently.
type Store interface {
	// Get returns a copy of the value of a key, or an errs.NotFound.
	Get(ctx context.Context, key []byte) ([]byte, error)

	// Scan calls f for each pair in the range, in order, on one consistent state of the store. Key and value are
	// valid only during the call. An error from f ends the scan and is returned, except Stop, which ends it well.
	Scan(ctx context.Context, r Range, f func(key, value []byte) error) error

	// Commit applies a batch whole or not at all. When it returns nil, the batch is durable (unless Lazy) and
	// visible. A failed check is an errs.Conflict whose error names the key; a disk without room is an
	// errs.NoSpace. Commits become visible in the order in which they were given.
	Commit(ctx context.Context, b *Batch) error

	// Close makes everything durable and releases the store. The store must not be used afterwards.
	Close() error
}

// Range is a half-open span of keys: Start ≤ key < End. A nil End has no upper bound.
type Range struct {
	Start, End []byte
	Reverse    bool
}

// Batch is a set of changes applied as one. Range deletions apply first, then deletions, then puts.
type Batch struct {
	Checks  []Check
	Ranges  []Range
	Deletes [][]byte
	Puts    []Pair

	// Lazy leaves durability to a later commit that isn't lazy, which makes this one durable too.
	Lazy bool
	// Reclaim marks a batch that gives back space; it may use the reserve that is kept for a full disk.
	Reclaim bool
}

// Check makes a commit conditional: the key has this value, or is absent if Value is nil.
type Check struct{ Key, Value []byte }

// Pair is a key and its new value.
type Pair struct{ Key, Value []byte }

// Put adds a pair to the batch. The slices must not change until the commit returns.
func (b *Batch) Put(key, value []byte) { b.Puts = append(b.Puts, Pair{key, value}) }

// Delete adds the deletion of a key to the batch.
func (b *Batch) Delete(key []byte) { b.Deletes = append(b.Deletes, key) }

// DeleteRange adds the deletion of a span of keys to the batch.
func (b *Batch) DeleteRange(start, end []byte) {
	b.Ranges = append(b.Ranges, Range{Start: start, End: end})
}

// Empty reports whether the batch changes and checks nothing.
func (b *Batch) Empty() bool {
	return len(b.Checks)+len(b.Ranges)+len(b.Deletes)+len(b.Puts) == 0
}

// Stop ends a Scan without an error.
var Stop = stop{}

type stop struct{}

func (stop) Error() string { return "kv: stop" }

// PrefixEnd returns the smallest key that is greater than every key with the prefix; nil if there is none.
func PrefixEnd(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] < 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return nil
}
