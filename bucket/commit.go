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
	c       *committer
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

// committer is the store's one way to its kv. Whoever waits for a transaction commits, if nobody else is at it, all that
// is queued; the others' transactions gather meanwhile and are the next group. So a lone writer hands nothing over, and
// many share a sync.
type committer struct {
	s      *Store
	lead   chan struct{} // holds a token while somebody commits
	mu     sync.Mutex
	queue  []*txn
	closed bool
	stamp  uint64 // the last version that was committed; the leader's
	groups uint64 // commits made
	txns   uint64 // transactions in them
}

func (c *committer) start(s *Store) {
	c.s = s
	c.lead = make(chan struct{}, 1)
}

// enqueue gives a transaction its place. It fails only if a ref's earlier transaction failed, and then the ref's tip
// must be taken back first (ref.recover). Somebody must wait for every transaction that was queued.
func (c *committer) enqueue(t *txn) error {
	t.done, t.c = make(chan struct{}), c
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
	return nil
}

// commit queues a transaction and waits for it. The wait isn't ended by a context: the outcome would be unknown.
func (c *committer) commit(t *txn) error {
	if err := c.enqueue(t); err != nil {
		return err
	}
	return t.wait()
}

// wait returns once the transaction is durable, or failed. It takes no lock that a writer may hold while it waits.
func (t *txn) wait() error {
	for {
		select {
		case <-t.done:
			return t.err
		default:
		}
		select {
		case <-t.done:
			return t.err
		case t.c.lead <- struct{}{}:
			t.c.next()
			<-t.c.lead
		}
	}
}

// next commits a group, if anything is queued. The caller holds the lead.
func (c *committer) next() bool {
	c.mu.Lock()
	group := c.take()
	c.mu.Unlock()
	if len(group) > 0 {
		c.apply(group)
	}
	return len(group) > 0
}

// poisoned takes and clears the error that made a ref's tip invalid.
func (c *committer) poisoned(r *ref) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := r.poison
	r.poison = nil
	return err
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

// stop refuses further transactions and waits for those that are queued.
func (c *committer) stop() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.lead <- struct{}{}
	for c.next() {
	}
	<-c.lead
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
