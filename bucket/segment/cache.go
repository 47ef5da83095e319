package segment

import (
	"container/list"
	"context"
	"sync"

	"agentrun.dev/blob"
)

// files keeps a bounded number of blobs open. A blob in use is never closed, so the bound may be exceeded by as many
// as are being read at once.
type files struct {
	blobs blob.Store
	max   int

	mu   sync.Mutex
	open map[string]*file
	lru  list.List // of *file, the most recent first
}

// file is an open blob; its fields are guarded by files.mu, except blob, which doesn't change.
type file struct {
	blob.Blob
	name string
	refs int
	gone bool // to be closed at the last release
	elem *list.Element
}

func newFiles(blobs blob.Store, limit int) *files {
	return &files{blobs: blobs, max: limit, open: map[string]*file{}}
}

// acquire returns the named blob; release must follow.
func (c *files) acquire(ctx context.Context, name string) (*file, error) {
	c.mu.Lock()
	if f := c.open[name]; f != nil {
		f.refs++
		c.lru.MoveToFront(f.elem)
		c.mu.Unlock()
		return f, nil
	}
	c.mu.Unlock()
	b, err := c.blobs.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.open[name]; f != nil { // another was faster
		_ = b.Close()
		f.refs++
		return f, nil
	}
	return c.insert(name, b), nil
}

// add keeps a blob that was opened for appending; the reference that it returns keeps it open.
func (c *files) add(name string, b blob.Blob) *file {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.insert(name, b)
}

// insert adds a blob with one reference and closes others for it; c.mu is held.
func (c *files) insert(name string, b blob.Blob) *file {
	f := &file{Blob: b, name: name, refs: 1}
	f.elem = c.lru.PushFront(f)
	c.open[name] = f
	for e := c.lru.Back(); e != nil && len(c.open) > c.max; {
		old := e.Value.(*file)
		e = e.Prev()
		if old.refs == 0 {
			c.forget(old)
		}
	}
	return f
}

// forget takes a blob out and closes it if nobody uses it; c.mu is held.
func (c *files) forget(f *file) {
	delete(c.open, f.name)
	c.lru.Remove(f.elem)
	f.gone = true
	if f.refs == 0 {
		_ = f.Close()
	}
}

func (c *files) release(f *file) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.refs--; f.refs == 0 && f.gone { // below 0 after close
		_ = f.Close()
	}
}

// drop forgets a blob that is being removed; readers keep it until they are done.
func (c *files) drop(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.open[name]; f != nil {
		c.forget(f)
	}
}

// close closes all blobs, whoever has them.
func (c *files) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.open {
		f.refs = 0
		c.forget(f)
	}
}

// tables keeps slot tables of sealed segments within a number of bytes.
type tables struct {
	max int64

	mu   sync.Mutex
	used int64
	held map[tableKey]*list.Element
	lru  list.List // of *table, the most recent first
}

type tableKey struct {
	id  uint64
	gen uint32
}

type table struct {
	key     tableKey
	entries []entry
}

// tableOverhead is what an entry costs beside its slots.
const tableOverhead = 200

func (t *table) cost() int64 { return int64(len(t.entries))*entryLen + tableOverhead }

func newTables(limit int64) *tables { return &tables{max: limit, held: map[tableKey]*list.Element{}} }

func (c *tables) get(k tableKey) []entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.held[k]
	if e == nil {
		return nil
	}
	c.lru.MoveToFront(e)
	return e.Value.(*table).entries
}

// put keeps a table and drops the least recently used ones beyond the bound. One larger than the bound isn't kept.
func (c *tables) put(k tableKey, entries []entry) {
	t := &table{k, entries}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[k] != nil || t.cost() > c.max {
		return
	}
	c.held[k] = c.lru.PushFront(t)
	c.used += t.cost()
	for c.used > c.max {
		c.evict(c.lru.Back())
	}
}

func (c *tables) drop(k tableKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.held[k]; e != nil {
		c.evict(e)
	}
}

func (c *tables) evict(e *list.Element) {
	t := c.lru.Remove(e).(*table)
	delete(c.held, t.key)
	c.used -= t.cost()
}
