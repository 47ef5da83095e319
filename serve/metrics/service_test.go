package metrics_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	blobs "agentrun.dev/blob/memory"
	"agentrun.dev/bucket"
	"agentrun.dev/control"
	records "agentrun.dev/kv/memory"
	"agentrun.dev/serve/metrics"
)

// TestService checks the names of the sandbox service's numbers, which dashboards know.
func TestService(t *testing.T) {
	store, err := bucket.Open(t.Context(), bucket.Options{KV: records.New(), Blobs: blobs.New(blobs.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	m := metrics.New(store, metrics.Options{Service: func() *control.Metrics {
		return &control.Metrics{
			Nodes:  []control.NodeMetrics{{Name: "n1", Up: true, Sandboxes: map[string]int{"running": 3, "warm": 2}, MemoryShared: 5, MemoryUnique: 6}},
			Pools:  []control.PoolMetrics{{Name: "p1", Replicas: 4, Ready: 2, Snapshots: 2, Claimed: 3, Reserved: 1}},
			Forks:  control.Timing{Bounds: []float64{.001, .01}, Within: []uint64{1, 2}, Count: 3, Sum: .5},
			Events: map[string]uint64{"forked": 7}, LastEvent: 9,
		}
	}})
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	page := w.Body.String()
	for _, line := range []string{
		`# TYPE agentrun_fork_duration_seconds histogram`, `agentrun_fork_duration_seconds_bucket{le="0.01"} 2`, `agentrun_fork_duration_seconds_bucket{le="+Inf"} 3`,
		`agentrun_fork_duration_seconds_sum 0.5`, `agentrun_active_sandboxes{node="n1"} 3`, `agentrun_sandboxes{node="n1",state="warm"} 2`,
		`agentrun_pool_ready_snapshots{pool="p1"} 2`, `agentrun_memory_shared_bytes{node="n1"} 5`, `agentrun_memory_unique_bytes{node="n1"} 6`,
		`agentrun_pool_claimed_sandboxes{pool="p1"} 3`, `agentrun_pool_reserved_sandboxes{pool="p1"} 1`, `agentrun_events_total{kind="forked"} 7`, `agentrun_node_up{node="n1"} 1`,
		`agentrun_claim_duration_seconds_count 0`, `agentrun_events_position 9`,
	} {
		if !strings.Contains(page, line+"\n") {
			t.Errorf("no line %q", line)
		}
	}
}
