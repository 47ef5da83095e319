package control

import (
	"sync"
	"time"
)

// Metrics are numbers of the whole service for whoever watches it: package serve/metrics shows them. Counters and timings
// begin at Open.
type Metrics struct {
	Nodes []NodeMetrics // by name
	Pools []PoolMetrics // by name

	Forks, Claims, Hibernations, Resumes, Builds Timing
	// Failed counts what went wrong, by kind: fork, claim, hibernate, resume, build, start, end.
	Failed map[string]uint64
	// Ended counts sandboxes that ended, by why: asked, released, expired, sleep, age, budget, failed, lost.
	Ended      map[string]uint64
	Expiries   uint64 // leases that ran out
	Extensions uint64 // leases that were extended by use, as recorded
	OverBudget uint64 // sandboxes that were hibernated, or not made, since a budget was used up
	Reconciled uint64 // sandboxes that a reconciliation had to correct
	Events     uint64
	LastEvent  uint64 // sequence
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
	return &Metrics{Forks: t.fork.read(), Claims: t.claim.read(), Hibernations: t.hibernate.read(), Resumes: t.resume.read(), Builds: t.build.read()}
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
