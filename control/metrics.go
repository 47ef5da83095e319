package control

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Metrics are numbers of the whole service for whoever watches it: package serve/metrics shows them. Counters and timings
// begin at Open, and timings are of what succeeded.
type Metrics struct {
	Nodes []NodeMetrics // by name
	Pools []PoolMetrics // by name

	Forks, Claims, Hibernations, Resumes, Builds Timing

	Events    map[string]uint64 // that were recorded, by kind
	LastEvent uint64            // sequence
}

// NodeMetrics are one node's.
type NodeMetrics struct {
	Name         string
	Up           bool
	Sandboxes    map[string]int // by state
	MemoryShared int64          // bytes that forks share with what they came from
	MemoryUnique int64          // bytes of sandboxes of their own
	CPU          time.Duration  // used by the sandboxes that it has now
}

// PoolMetrics are one pool's.
type PoolMetrics struct {
	Name                                          string
	Replicas, Ready, Snapshots, Claimed, Reserved int
}

// Timing is how long something took: how many times at most so long, in the order of Bounds, which are seconds. What took
// longer than the last is in Count only.
type Timing struct {
	Bounds []float64
	Within []uint64 // cumulative
	Count  uint64
	Sum    float64 // seconds
}

// timings are those of a service.
type timings struct {
	fork, claim, hibernate, resume, build timing
}

// Metrics returns the numbers as they are now. It costs no more than a look at what is in memory.
func (c *Control) Metrics() *Metrics {
	t := &c.timings
	out := &Metrics{Forks: t.fork.read(), Claims: t.claim.read(), Hibernations: t.hibernate.read(), Resumes: t.resume.read(), Builds: t.build.read()}
	c.news.mu.Lock()
	out.Events, out.LastEvent = maps.Clone(c.news.counts), c.news.shown
	c.news.mu.Unlock()
	nodes := map[string]*NodeMetrics{}
	for _, p := range c.allPeers() {
		p.mu.Lock()
		nodes[p.name] = &NodeMetrics{Name: p.name, Up: !p.lost, Sandboxes: map[string]int{}}
		p.mu.Unlock()
	}
	for _, b := range c.index.list() {
		r := b.rec.Load()
		n := nodes[r.Node]
		if n == nil {
			continue
		}
		n.Sandboxes[r.State]++
		b.mu.Lock()
		n.MemoryShared += b.meter.Sum.MemoryShared
		n.MemoryUnique += b.meter.Sum.Memory
		n.CPU += time.Duration(b.meter.Sum.CPUSeconds * float64(time.Second))
		b.mu.Unlock()
	}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		out.Nodes = append(out.Nodes, *nodes[name])
	}
	c.pools.all(func(name string, p *pool) bool {
		v := c.shownPool(p)
		out.Pools = append(out.Pools, PoolMetrics{Name: name, Replicas: v.Spec.Replicas, Ready: v.Ready, Snapshots: v.Snapshots, Claimed: v.Claimed, Reserved: v.Reserved})
		return true
	})
	slices.SortFunc(out.Pools, func(a, b PoolMetrics) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// timing collects a Timing.
type timing struct {
	mu sync.Mutex
	t  Timing
}

// observe adds how long something took.
func (t *timing) observe(d time.Duration) {
	s := d.Seconds()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.t.Bounds == nil {
		t.t.Bounds = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
		t.t.Within = make([]uint64, len(t.t.Bounds))
	}
	for i, b := range t.t.Bounds {
		if s <= b {
			t.t.Within[i]++
		}
	}
	t.t.Count++
	t.t.Sum += s
}

// read returns what was collected.
func (t *timing) read() Timing {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.t
	out.Within = append([]uint64(nil), out.Within...)
	return out
}
