package control

import (
	"testing"

	"agentrun.dev/api"
	"agentrun.dev/control/controltest"
	"agentrun.dev/kv/pebble"
)

// BenchmarkClaim is a claim from a pool, recorded durably in Pebble on the disk, with a node that takes no time: what the records cost.
func BenchmarkClaim(b *testing.B) {
	store, err := pebble.Open(b.TempDir(), pebble.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	g, keys := guard(b, store)
	l := &lab{t: b, ctx: b.Context(), store: store, guard: g, keys: keys, names: []string{"node"}, hosts: []*controltest.Host{controltest.New("node", 0)}}
	l.reopen()
	l.hosts[0].Hook = nil
	l.pool("p", 0)
	limit := newLimit(16)
	if _, err := l.PutPool(l.ctx, admin, "p", api.PoolSpec{Template: "p", Replicas: min(b.N+8, api.MaxReplicas)}); err != nil {
		b.Fatal(err)
	}
	for {
		l.fillPools(l.ctx, limit)
		limit.wait()
		if p, err := l.Pool(l.ctx, admin, "p"); err != nil || p.State == "ready" {
			break
		}
	}
	b.ResetTimer()
	for range b.N {
		if _, err := l.CreateSandbox(l.ctx, admin, api.CreateSandbox{Pool: "p"}); err != nil {
			b.Fatal(err)
		}
	}
}
