package node_test

import (
	"testing"

	"agentrun.dev/engine/userspace"
	"agentrun.dev/node"
	"agentrun.dev/node/hosttest"
)

func TestHost(t *testing.T) {
	hosttest.Run(t, hosttest.Config{New: func(t testing.TB) *hosttest.World {
		w := &hosttest.World{Store: newStore(t)}
		dir := t.TempDir()
		// One that ends as by a crash is left to itself until the test's end.
		w.Restart = func() node.Host {
			n := node.New(node.Options{Engine: userspace.NewEngine(userspace.EngineOptions{}), Store: w.Store, UID: userspace.UID, GID: userspace.GID, Dir: dir})
			t.Cleanup(func() { n.Close(ctx) })
			if _, err := n.Sweep(ctx); err != nil {
				t.Fatal(err)
			}
			return node.Local(n, "here", "test")
		}
		w.Host = w.Restart()
		return w
	}})
}
