package rpc_test

import (
	"context"
	"testing"

	"agentrun.dev/blob/memory"
	"agentrun.dev/bucket"
	"agentrun.dev/engine/userspace"
	kvmemory "agentrun.dev/kv/memory"
	"agentrun.dev/node"
	"agentrun.dev/node/hosttest"
	"agentrun.dev/node/rpc"
)

// TestHost: a node far away keeps what one in this process does.
func TestHost(t *testing.T) {
	hosttest.Run(t, hosttest.Config{New: func(t testing.TB) *hosttest.World {
		w := &hosttest.World{Store: newStore(t)}
		dir := t.TempDir()
		a := authority(t)
		cert, pool := bundle(t, a, "n1")
		service, _ := bundle(t, a, rpc.ServiceName)
		w.Restart = func() node.Host {
			n := node.New(node.Options{Engine: userspace.NewEngine(userspace.EngineOptions{}), Store: w.Store, UID: userspace.UID, GID: userspace.GID, Dir: dir})
			t.Cleanup(func() { n.Close(context.Background()) })
			if _, err := n.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			c := rpc.NewClient(serve(t, rpc.NewServer(node.Local(n, "n1", "test")), rpc.TLS(cert, pool, rpc.ServiceName)), "n1", rpc.ClientTLS(service, pool))
			t.Cleanup(c.Close)
			return c
		}
		w.Host = w.Restart()
		return w
	}})
}

func newStore(t testing.TB) *bucket.Store {
	t.Helper()
	s, err := bucket.Open(t.Context(), bucket.Options{KV: kvmemory.New(), Blobs: memory.New(memory.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
