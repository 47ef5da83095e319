package control

import (
	"context"
	"slices"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/node"
)

const (
	maxSamples  = 256         // of one sandbox
	keptSamples = 64          // of them, the newest, that are all kept
	freshSample = time.Second // a sample that is younger isn't taken anew
)

// samples are what a sandbox used over time, in memory. When they are as many as there may be, one goes that leaves the smallest gap for its
// age: what was lately is told as often as nodes are polled, what was long ago less and less often.
type samples struct {
	list  []api.Sample
	epoch uint64
	cpu   time.Duration // of the last one, in its epoch
}

// add takes what a node tells, with the sums of the meter.
func (x *samples) add(s *node.Status, sum *api.SandboxUsage, now time.Time) {
	n := api.Sample{Time: now, Memory: s.Memory + s.MemoryShared, Disk: sum.Storage, Processes: s.Processes, NetworkIn: sum.NetworkIn, NetworkOut: sum.NetworkOut}
	from, used := s.Started, s.CPU // in this epoch, so far
	if len(x.list) > 0 {
		last := &x.list[len(x.list)-1]
		if !now.After(last.Time) {
			return
		}
		if x.epoch == s.Epoch {
			from, used = last.Time, s.CPU-x.cpu
		}
	}
	if d := now.Sub(from); d > 0 && !from.IsZero() {
		n.CPU = 100 * max(0, used).Seconds() / d.Seconds()
	}
	x.epoch, x.cpu = s.Epoch, s.CPU
	if len(x.list) == maxSamples {
		least, which := 0.0, 1
		for i := 1; i < maxSamples-keptSamples; i++ {
			gap := float64(x.list[i+1].Time.Sub(x.list[i-1].Time)) / float64(now.Sub(x.list[i].Time))
			if i == 1 || gap < least {
				least, which = gap, i
			}
		}
		x.list = slices.Delete(x.list, which, which+1)
	}
	x.list = append(x.list, n)
}

// sampled notes what a node tells of a sandbox. The caller has b.mu.
func (b *box) sampled(s *node.Status, r *record, now time.Time) {
	b.meter.sampled(s, r, now)
	if s.Epoch == r.Epoch && !s.Asleep && r.claimed() {
		b.samples.add(s, &b.meter.Sum, now)
	}
}

// SandboxMetrics returns what a sandbox used over time, between two times where they aren't zero: samples that were taken while this service
// ran and the sandbox did, the last one now. One that has ended has none.
func (c *Control) SandboxMetrics(ctx context.Context, who *access.Caller, id string, from, to time.Time) (*api.SandboxMetrics, error) {
	b, r, err := c.find(ctx, who, access.SandboxGet, "measure sandbox", id)
	if err != nil {
		return nil, err
	}
	out := &api.SandboxMetrics{Samples: []api.Sample{}}
	if b == nil {
		return out, nil
	}
	r = b.rec.Load()
	if p, err := c.hostOf("", r); err == nil && r.State == api.StateRunning {
		b.mu.Lock()
		n := len(b.samples.list)
		fresh := n > 0 && c.clock.now().Sub(b.samples.list[n-1].Time) < freshSample
		b.mu.Unlock()
		if !fresh {
			c.sampleStorage(ctx, p, b, r, c.clock.since())
			c.measure(ctx, p, b)
		}
	}
	b.mu.Lock()
	list := slices.Clone(b.samples.list)
	b.mu.Unlock()
	cpus, memory, disk := c.limitsOf(r)
	for _, s := range list {
		if !from.IsZero() && s.Time.Before(from) || !to.IsZero() && s.Time.After(to) {
			continue
		}
		s.CPUs, s.MemoryLimit, s.DiskLimit = cpus, memory, disk
		out.Samples = append(out.Samples, s)
	}
	return out, nil
}

// limitsOf is what a sandbox may use: what its template says, or what its node has. 0 is no bound that is known.
func (c *Control) limitsOf(r *record) (cpus float64, memory, disk int64) {
	if v := c.versions.get(versionKey(r.Template, r.Version)); v != nil {
		cpus, memory, disk = v.Spec.Resources.CPU, v.Spec.Resources.Memory, v.Spec.Resources.Disk
	}
	p := c.peer(r.Node)
	if p == nil {
		return cpus, memory, disk
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if cpus == 0 {
		cpus = float64(p.info.CPUs)
	}
	if memory == 0 {
		memory = p.info.Memory
	}
	return cpus, memory, disk
}
