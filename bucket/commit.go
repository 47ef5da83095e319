package bucket

import (
	"context"
	"fmt"
	"sync"

	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

// txn is a set of changes that commits as one. Transactions commit in the order in which they were queued, and their
// publish functions run in that order, after the commit is durable: readers never see what a crash could take back.
type txn struct {
	batch   kv.Batch
	lazy    bool
	size    int    // bytes of batch, once it is queued
	seq     uint64 // the last version in it; 0 if there is none
	publish func()
	undo    func() // runs instead of publish if the commit fails
	refs    []*ref // whose tips contain the changes already
	err     error
	done    chan struct{}
}

func (t *txn) put(key, value []byte) { t.batch.Put(key, value) }
func (t *txn) del(key []byte)        { t.batch.Delete(key) }

// event queues a change of reference counts.
func (t *txn) event(s *Store, e event) error {
	n, err := s.eventIDs.next(1)
	if err == nil {
		t.put(e.key(n), e.encode())
	}
	return err
}

// Bounds of one transaction, which is an errs.TooLarge beyond, and of those that are committed together, in bytes.
// Together they stay below kv.MaxBatch: a large transaction must not fail those that it happens to be grouped with.
const (
	maxTxn   = 192 << 20
	maxGroup = 32 << 20
)

// committer is the store's one way to its kv: it gathers what is queued while the last commit is being synced.
type committer struct {
	s       *Store
	mu      sync.Mutex
	wake    sync.Cond
	queue   []*txn
	closed  bool
	stopped chan struct{}
	stamp   uint64 // the last version that was committed; the running goroutine's
	groups  uint64 // commits made
	txns    uint64 // transactions in them
}

func (c *committer) start(s *Store) {
	c.s = s
	c.wake.L = &c.mu
	c.stopped = make(chan struct{})
	go c.run()
}

// enqueue gives a transaction its place. It fails only if a ref's earlier transaction failed, and then the ref's tip
// must be taken back first (ref.recover).
func (c *committer) enqueue(t *txn) error {
	t.done = make(chan struct{})
	if t.size = t.batch.Size(); t.size > maxTxn {
		return errs.Msg(errs.TooLarge, "commit", "", fmt.Sprintf("%d bytes of changes at once; at most %d", t.size, maxTxn))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errs.Msg(errs.Unavailable, "commit", "", "the store is closed")
	}
	for _, r := range t.refs {
		if r.poison != nil {
			return r.poison
		}
	}
	c.queue = append(c.queue, t)
	c.wake.Signal()
	return nil
}

// commit queues a transaction and waits for it. The wait isn't ended by a context: the outcome would be unknown.
func (c *committer) commit(t *txn) error {
	if err := c.enqueue(t); err != nil {
		return err
	}
	return t.wait()
}

func (t *txn) wait() error {
	<-t.done
	return t.err
}

// poisoned takes and clears the error that made a ref's tip invalid.
func (c *committer) poisoned(r *ref) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := r.poison
	r.poison = nil
	return err
}

func (c *committer) run() {
	defer close(c.stopped)
	for {
		c.mu.Lock()
		for len(c.queue) == 0 && !c.closed {
			c.wake.Wait()
		}
		group := c.take()
		c.mu.Unlock()
		if len(group) == 0 {
			return
		}
		c.apply(group)
	}
}

// take removes a group from the queue's head. The caller holds mu.
func (c *committer) take() []*txn {
	n, size := 0, 0
	for n < len(c.queue) && (n == 0 || size+c.queue[n].size < maxGroup) {
		size += c.queue[n].size
		n++
	}
	group := c.queue[:n:n]
	if c.queue = c.queue[n:]; len(c.queue) == 0 {
		c.queue = nil
	}
	return group
}

func (c *committer) apply(group []*txn) {
	var b kv.Batch
	if len(group) == 1 {
		b = group[0].batch
	} else {
		for _, t := range group {
			b.Ranges = append(b.Ranges, t.batch.Ranges...)
			b.Deletes = append(b.Deletes, t.batch.Deletes...)
			b.Puts = append(b.Puts, t.batch.Puts...)
			b.Checks = append(b.Checks, t.batch.Checks...)
		}
		b = merged(b, group)
	}
	b.Lazy, b.Reclaim = true, true
	seq := c.stamp
	for _, t := range group {
		seq = max(seq, t.seq)
		b.Lazy = b.Lazy && t.lazy
		b.Reclaim = b.Reclaim && t.batch.Reclaim
	}
	if seq > c.stamp {
		b.Put(kvKey(kIDs, []byte{'c'}), append(present(), be64(seq)...))
	}
	err := c.s.kv.Commit(context.Background(), &b)
	if err != nil {
		c.fail(group, err)
		return
	}
	c.stamp = seq
	c.mu.Lock()
	c.groups++
	c.txns += uint64(len(group))
	c.mu.Unlock()
	for _, t := range group {
		if t.publish != nil {
			t.publish()
		}
		close(t.done)
	}
}

// fail fails a group and everything queued behind it, because that may build on it, and marks the refs whose tips are
// now ahead of what was stored.
func (c *committer) fail(group []*txn, err error) {
	c.mu.Lock()
	all := append(group, c.queue...)
	c.queue = nil
	for _, t := range all {
		for _, r := range t.refs {
			r.poison = err
		}
	}
	c.mu.Unlock()
	for _, t := range all {
		if t.undo != nil {
			t.undo()
		}
		t.err = err
		close(t.done)
	}
}

func (c *committer) stop() {
	c.mu.Lock()
	c.closed = true
	c.wake.Signal()
	c.mu.Unlock()
	<-c.stopped
}

// merged orders a group's changes so that a key that several transactions touch ends as the last one left it: a batch
// applies deletions before puts, whatever transaction they came from.
func merged(b kv.Batch, group []*txn) kv.Batch {
	if len(b.Deletes) == 0 {
		return b
	}
	deleted := make(map[string]struct{}, len(b.Deletes))
	for _, k := range b.Deletes {
		deleted[string(k)] = struct{}{}
	}
	last := make(map[string][]byte) // touched keys that some transaction deletes
	for _, t := range group {
		for _, k := range t.batch.Deletes {
			last[string(k)] = nil
		}
		for _, p := range t.batch.Puts {
			if _, ok := deleted[string(p.Key)]; ok {
				last[string(p.Key)] = p.Value
			}
		}
	}
	puts := b.Puts[:0:0]
	for _, p := range b.Puts {
		if _, ok := deleted[string(p.Key)]; !ok {
			puts = append(puts, p)
		}
	}
	b.Deletes = b.Deletes[:0:0]
	for k, v := range last {
		if v == nil {
			b.Deletes = append(b.Deletes, []byte(k))
		} else {
			puts = append(puts, kv.Pair{Key: []byte(k), Value: v})
		}
	}
	b.Puts = puts
	return b
}
