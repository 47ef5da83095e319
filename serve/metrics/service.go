package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"agentrun.dev/api"
	"agentrun.dev/control"
)

// serviceCollector shows the sandbox service's numbers. Nodes and pools are labels: operators make them, and there are few.
type serviceCollector struct {
	metrics func() *control.Metrics
}

// serviceMetrics describes them.
func serviceMetrics() map[string]*prometheus.Desc {
	return map[string]*prometheus.Desc{
		"fork":      desc("agentrun_fork_duration_seconds", "Time that forks of running sandboxes took, however many children each had."),
		"claim":     desc("agentrun_claim_duration_seconds", "Time that it took to give a sandbox to whoever asked for one."),
		"hibernate": desc("agentrun_hibernate_duration_seconds", "Time that it took to save a sandbox to disk."),
		"resume":    desc("agentrun_resume_duration_seconds", "Time that it took to resume a sandbox from disk."),
		"build":     desc("agentrun_build_duration_seconds", "Time that builds of templates took."),
		"active":    desc("agentrun_active_sandboxes", "Running sandboxes that are somebody's.", "node"),
		"sandboxes": desc("agentrun_sandboxes", "Sandboxes that haven't ended.", "node", "state"),
		"up":        desc("agentrun_node_up", "1 if the node answers.", "node"),
		"cpu":       desc("agentrun_sandboxes_cpu_seconds", "Processor time that the sandboxes that a node has now have used.", "node"),
		"snapshots": desc("agentrun_pool_ready_snapshots", "Warm sandboxes that stand at their template's snapshot.", "pool"),
		"ready":     desc("agentrun_pool_ready_sandboxes", "Warm sandboxes.", "pool"),
		"replicas":  desc("agentrun_pool_replicas", "Warm sandboxes that there should be.", "pool"),
		"claimed":   desc("agentrun_pool_claimed_sandboxes", "Sandboxes that were claimed and haven't ended.", "pool"),
		"reserved":  desc("agentrun_pool_reserved_sandboxes", "Warm sandboxes that are held back for whoever is about to claim.", "pool"),
		"shared":    desc("agentrun_memory_shared_bytes", "Memory that sandboxes share with what they were forked from.", "node"),
		"unique":    desc("agentrun_memory_unique_bytes", "Memory that sandboxes have to themselves.", "node"),
		"events":    desc("agentrun_events_total", "Events that were recorded since the service was opened, by kind: created, claimed, forked, expiring, budget …", "kind"),
		"position":  desc("agentrun_events_position", "Sequence of the newest event."),
	}
}

// Describe implements prometheus.Collector.
func (c *serviceCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range serviceMetrics() {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *serviceCollector) Collect(ch chan<- prometheus.Metric) {
	m, ds := c.metrics(), serviceMetrics()
	send := func(kind prometheus.ValueType, name string, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(ds[name], kind, v, labels...)
	}
	for name, t := range map[string]control.Timing{"fork": m.Forks, "claim": m.Claims, "hibernate": m.Hibernations, "resume": m.Resumes, "build": m.Builds} {
		within := make(map[float64]uint64, len(t.Bounds))
		for i, b := range t.Bounds {
			within[b] = t.Within[i]
		}
		ch <- prometheus.MustNewConstHistogram(ds[name], t.Count, t.Sum, within)
	}
	for _, n := range m.Nodes {
		send(prometheus.GaugeValue, "active", float64(n.Sandboxes[api.StateRunning]), n.Name)
		for state, count := range n.Sandboxes {
			send(prometheus.GaugeValue, "sandboxes", float64(count), n.Name, state)
		}
		up := 0.0
		if n.Up {
			up = 1
		}
		send(prometheus.GaugeValue, "up", up, n.Name)
		send(prometheus.GaugeValue, "cpu", n.CPU.Seconds(), n.Name)
		send(prometheus.GaugeValue, "shared", float64(n.MemoryShared), n.Name)
		send(prometheus.GaugeValue, "unique", float64(n.MemoryUnique), n.Name)
	}
	for _, p := range m.Pools {
		for name, v := range map[string]int{"snapshots": p.Snapshots, "ready": p.Ready, "replicas": p.Replicas, "claimed": p.Claimed, "reserved": p.Reserved} {
			send(prometheus.GaugeValue, name, float64(v), p.Name)
		}
	}
	for kind, n := range m.Events {
		send(prometheus.CounterValue, "events", float64(n), kind)
	}
	send(prometheus.GaugeValue, "position", float64(m.LastEvent))
}
