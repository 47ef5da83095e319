package control

import (
	"context"
	"sync"
	"time"

	"agentrun.dev/node"
)

// Bounds of filling.
const (
	maxStarts  = 8 // of warm sandboxes at once
	maxPause   = time.Minute
	firstPause = time.Second
)

// filler knows how pools are being filled.
type filler struct {
	mu    sync.Mutex
	pools map[string]*filling
}

type filling struct {
	coming int // starts under way
	failed int // in a row
	until  time.Duration
	why    string
}

func newFiller() *filler { return &filler{pools: map[string]*filling{}} }

func (f *filler) of(name string) *filling {
	p := f.pools[name]
	if p == nil {
		p = &filling{}
		f.pools[name] = p
	}
	return p
}

// take says how many starts may begin of those that are missing.
func (f *filler) take(name string, missing int, now time.Duration) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.of(name)
	if now < p.until {
		return 0
	}
	n := missing - p.coming
	if p.failed > 0 {
		n = min(n, 1-p.coming) // one to see whether it works again
	}
	n = max(0, min(n, maxStarts))
	p.coming += n
	return n
}

func (f *filler) done(name string, err error, now time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.of(name)
	p.coming--
	if err == nil {
		p.failed, p.why, p.until = 0, "", 0
		return
	}
	p.failed++
	p.why = cut(err.Error(), 1024)
	p.until = now + min(maxPause, firstPause<<min(p.failed-1, 10))
}

func (f *filler) why(name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.pools[name]; p != nil {
		return p.why
	}
	return ""
}

// forgive lets a pool that was changed be filled at once.
func (f *filler) forgive(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.pools[name]; p != nil {
		p.failed, p.until, p.why = 0, 0, ""
	}
}

// runPools keeps pools full.
func (c *Control) runPools(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	limit := newLimit(maxStarts)
	defer limit.wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-c.wake:
		}
		c.fillPools(ctx, limit)
	}
}

// fillPools starts what pools lack, and ends what they have too much of: also all that stands at an older version.
func (c *Control) fillPools(ctx context.Context, limit *limit) {
	var all []*pool
	c.pools.all(func(_ string, p *pool) bool {
		all = append(all, p)
		return true
	})
	for _, p := range all {
		v := c.ready(p.Spec.Template)
		if v == nil {
			continue
		}
		image := imageOf(v.Name, v.Version)
		good, other := c.warmOf(p.Name, image)
		want := p.Spec.Replicas
		for n := c.filler.take(p.Name, want-len(good), c.clock.since()); n > 0; n-- {
			limit.do(func() {
				_, err := c.startRecord(ctx, c.newRecord(v, p), node.Start{}, nil)
				if err != nil && ctx.Err() == nil {
					c.o.Log.Warn("fill a pool", "pool", p.Name, "err", err)
				}
				c.filler.done(p.Name, err, c.clock.since())
				if err == nil {
					c.kick()
				}
			})
		}
		if len(good) > want {
			other = append(other, good[want:]...)
		}
		c.dropWarm(ctx, limit, other)
	}
	c.dropWarm(ctx, limit, c.warmOfNone())
}

// warmOf returns the warm sandboxes of a pool: those at an image, and others, as well as those on nodes that are drained.
func (c *Control) warmOf(pool, image string) (good, other []*box) {
	c.index.mu.RLock()
	defer c.index.mu.RUnlock()
	for _, b := range c.index.warm[pool] {
		r := b.rec.Load()
		if n := c.nodes.get(r.Node); r.Image == image && (n == nil || !n.Draining) {
			good = append(good, b)
		} else {
			other = append(other, b)
		}
	}
	return good, other
}

// warmOfNone returns the warm sandboxes of pools that were deleted.
func (c *Control) warmOfNone() (out []*box) {
	c.index.mu.RLock()
	defer c.index.mu.RUnlock()
	for name, m := range c.index.warm {
		if c.pools.get(name) == nil {
			for _, b := range m {
				out = append(out, b)
			}
		}
	}
	return out
}

// dropWarm ends warm sandboxes.
func (c *Control) dropWarm(ctx context.Context, limit *limit, list []*box) {
	for _, b := range list {
		if !c.index.takeThis(b) {
			continue
		}
		limit.do(func() {
			if b.take(ctx) != nil {
				c.index.putBack(b)
				return
			}
			defer b.give()
			c.discard(ctx, b)
		})
	}
}

// takeThis takes one warm sandbox out of its pool, unless somebody was faster.
func (x *index) takeThis(b *box) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := b.rec.Load()
	if x.warm[r.Pool][b.id] != b {
		return false
	}
	delete(x.warm[r.Pool], b.id)
	return true
}
