package node_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"agentrun.dev/api"
	"agentrun.dev/bucket"
	"agentrun.dev/engine/userspace"
	"agentrun.dev/node"
	"agentrun.dev/node/hosttest"
	"agentrun.dev/wasm/guests"
)

// interpreters are what all tests share: to load them takes a while.
var interpreters = sync.OnceValue(func() *userspace.Guests {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	return userspace.NewGuests(userspace.GuestOptions{CacheDir: filepath.Join(cache, "agentrun-test", "wasm")})
})

// languages are those that were built.
func languages() (out []string) {
	if guests.Has("python.wasm") {
		out = append(out, api.Python)
	}
	if guests.Has("js.wasm") {
		out = append(out, api.JavaScript)
	}
	return out
}

// newHost returns a host with interpreters.
func newHost(t testing.TB, store *bucket.Store, o node.Options) (node.Host, *node.Node) {
	o.Engine, o.Store, o.UID, o.GID = userspace.NewEngine(userspace.EngineOptions{Commands: interpreters()}), store, userspace.UID, userspace.GID
	n := node.New(o)
	t.Cleanup(func() { n.Close(ctx) })
	if _, err := n.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	return node.Local(n, "here", "test"), n
}

func TestHost(t *testing.T) {
	hosttest.Run(t, hosttest.Config{Languages: languages(), New: func(t testing.TB) *hosttest.World {
		w, dir := &hosttest.World{Store: newStore(t)}, t.TempDir()
		// One that ends as by a crash is left to itself until the test's end.
		w.Restart = func() node.Host {
			h, _ := newHost(t, w.Store, node.Options{Dir: dir})
			return h
		}
		w.Host = w.Restart()
		return w
	}})
}
