package tree

import (
	"context"
	"sync"
	"sync/atomic"

	"agentrun.dev/errs"
)

const cacheShards = 16

// cache keeps decoded nodes within a bound of bytes. A node's place is decided by its id. Eviction is second chance: a
// hand goes round a shard's nodes and drops those that weren't used since it last came by, so a hit writes no more
// than a flag.
type cache struct {
	shards [cacheShards]cacheShard
}

type cacheShard struct {
	mu      sync.RWMutex
	nodes   map[ID]*cached
	loading map[ID]*load
	ring    []*cached // the nodes in the hand's order
	hand    int
	bytes   int64
	limit   int64
}

type cached struct {
	id   ID
	node *Node
	used atomic.Bool
}

// load is a read in progress, which later comers wait for.
type load struct {
	done chan struct{}
	node *Node
	err  error
}

func newCache(limit int64) *cache {
	c := new(cache)
	for i := range c.shards {
		s := &c.shards[i]
		s.nodes, s.loading = map[ID]*cached{}, map[ID]*load{}
		s.limit = max(limit, 0) / cacheShards
	}
	return c
}

// shard spreads ids, which are handed out in sequence.
func (c *cache) shard(id ID) *cacheShard { return &c.shards[uint64(id)%cacheShards] }

// get returns a node or nil.
func (c *cache) get(id ID) *Node {
	s := c.shard(id)
	s.mu.RLock()
	e := s.nodes[id]
	s.mu.RUnlock()
	if e == nil {
		return nil
	}
	if !e.used.Load() {
		e.used.Store(true)
	}
	return e.node
}

// load returns a node, reading it if need be. Of several callers that miss the same node one reads; when it fails because
// its own context ended, another takes over.
func (c *cache) load(ctx context.Context, id ID, read func(context.Context, ID) (*Node, error)) (*Node, error) {
	s := c.shard(id)
	for {
		s.mu.Lock()
		if e := s.nodes[id]; e != nil {
			s.mu.Unlock()
			return e.node, nil
		}
		l := s.loading[id]
		if l == nil {
			return s.fill(ctx, id, read)
		}
		s.mu.Unlock()
		select {
		case <-l.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if l.err == nil || !errs.Is(l.err, errs.Canceled) {
			return l.node, l.err
		}
	}
}

// fill reads a node for all who wait for it. It is entered with the shard locked, and leaves it unlocked.
func (s *cacheShard) fill(ctx context.Context, id ID, read func(context.Context, ID) (*Node, error)) (*Node, error) {
	l := &load{done: make(chan struct{}), err: errs.Msg(errs.Canceled, "read tree", nodeName(id), "reader gave up")}
	s.loading[id] = l
	s.mu.Unlock()
	defer func() { // also when read panics: the others must not wait for ever
		s.mu.Lock()
		delete(s.loading, id)
		if l.err == nil {
			s.insert(id, l.node)
		}
		s.mu.Unlock()
		close(l.done)
	}()
	l.node, l.err = read(ctx, id)
	return l.node, l.err
}

// insert adds a node and makes room. Nodes larger than the shard are not kept.
func (s *cacheShard) insert(id ID, n *Node) {
	size := n.memory()
	if size > s.limit || s.nodes[id] != nil {
		return
	}
	for s.bytes+size > s.limit {
		if s.hand >= len(s.ring) {
			s.hand = 0
		}
		e := s.ring[s.hand]
		if e.used.Swap(false) { // a second chance, until the hand comes by again
			s.hand++
			continue
		}
		s.bytes -= e.node.memory()
		delete(s.nodes, e.id)
		last := len(s.ring) - 1
		s.ring[s.hand], s.ring[last] = s.ring[last], nil
		s.ring = s.ring[:last]
	}
	e := &cached{id: id, node: n}
	s.nodes[id] = e
	s.ring = append(s.ring, e)
	s.bytes += size
}
