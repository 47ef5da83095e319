package bucket

import (
	"context"
	"encoding/binary"
	"sync"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

// idBlock is how many ids a counter reserves at once. A crash skips what was reserved, so ids are never used twice.
const idBlock = 1 << 16

// ids is a counter of ids that are never used twice, even over a crash.
type ids struct {
	kv   kv.Store
	name byte
	mu   sync.Mutex
	free uint64
	end  uint64
}

func (c *ids) open(ctx context.Context, store kv.Store, name byte) error {
	c.kv, c.name, c.free = store, name, 1
	b, err := store.Get(ctx, kvKey(kIDs, []byte{name}))
	switch {
	case err == nil && len(b) == 9:
		c.free = binary.BigEndian.Uint64(b[1:])
	case err == nil:
		return errs.Msg(errs.Corrupt, "open", "id counter", "malformed record")
	case !errs.Is(err, errs.NotFound):
		return err
	}
	c.end = c.free
	return nil
}

// next returns the first of n consecutive new ids.
func (c *ids) next(n uint64) (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.free+n > c.end {
		end := c.free + n + idBlock
		var b kv.Batch
		b.Reclaim = true // the collector needs ids to make room
		b.Put(kvKey(kIDs, []byte{c.name}), append(present(), be64(end)...))
		if err := c.kv.Commit(context.Background(), &b); err != nil {
			return 0, err
		}
		c.end = end
	}
	id := c.free
	c.free += n
	return id, nil
}

// clock gives out versions: nanoseconds since 1970, strictly increasing, also over restarts and clocks set back.
type clock struct {
	now  func() time.Time
	mu   sync.Mutex
	last uint64
}

// take returns the last of n consecutive versions, all greater than every earlier one.
func (c *clock) take(n uint64) uint64 {
	t := uint64(c.now().UnixNano())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(c.last+n, t)
	return c.last
}

func (c *clock) present() uint64 {
	t := uint64(c.now().UnixNano())
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.last, t)
}
