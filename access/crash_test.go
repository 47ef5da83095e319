package access

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"agentrun.dev/api"
	"agentrun.dev/kv/pebble"
)

// crowd decides many cases at once and remembers what it was told.
type crowd struct {
	mu      sync.Mutex
	allowed map[string]bool // requests that Check let through
}

func (c *crowd) run(g *Guard, round, n int) {
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range n {
				id := fmt.Sprint(round, "-", i, "-", j)
				v := SandboxEnd
				if j%3 == 0 {
					v = SandboxGet
				}
				if g.Check(context.Background(), System(id), v, box) == nil && v == SandboxEnd {
					c.mu.Lock()
					c.allowed[id] = true
					c.mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
}

// check sees that the chain is whole and holds all that was allowed, once.
func (c *crowd) check(g *Guard) error {
	ctx := context.Background()
	sound, err := g.log.verify(ctx)
	if err != nil || sound.Broken != 0 {
		return fmt.Errorf("%+v, %v", sound, err)
	}
	seen := map[string]bool{}
	err = g.log.scan(ctx, 0, func(e *api.AuditEntry) error {
		if e.Request != "start" && e.Request != "stop" && seen[e.Request] {
			return fmt.Errorf("%s twice", e.Request)
		}
		seen[e.Request] = true
		return nil
	})
	for id := range c.allowed {
		if !seen[id] && err == nil {
			err = fmt.Errorf("%s was allowed, but isn't in the log", id)
		}
	}
	return err
}

func openPebble(fs vfs.FS) (*pebble.Store, *Guard, error) {
	store, err := pebble.Open("/db", pebble.Options{FS: fs, MemTableBytes: 64 << 10, CacheBytes: 1 << 20})
	if err != nil {
		return nil, nil, err
	}
	k, err := New(Options{KV: store, MasterKey: master})
	if err != nil {
		return store, nil, err
	}
	g, err := NewGuard(context.Background(), k, AuditOptions{})
	return store, g, err
}

// TestAuditCrash cuts the power again and again: the chain goes on, whole, and with all that was allowed.
func TestAuditCrash(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	fs, c := vfs.NewCrashableMem(), &crowd{allowed: map[string]bool{}}
	for round := range 12 {
		store, g, err := openPebble(fs)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.check(g); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		var after *vfs.MemFS
		var wg sync.WaitGroup
		if n := rng.IntN(60); round%2 == 0 {
			c.run(g, round, n)
			after = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
		} else { // in the midst of it
			before := len(c.allowed)
			late := &crowd{allowed: map[string]bool{}}
			wg.Go(func() { late.run(g, round, n+20) })
			for {
				late.mu.Lock()
				some := len(late.allowed) > n/2
				for id := range late.allowed {
					c.allowed[id] = true
				}
				late.mu.Unlock()
				if some {
					break
				}
			}
			after = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
			if len(c.allowed) == before {
				t.Fatal("nothing was done")
			}
		}
		wg.Wait()
		if err := errors.Join(g.Close(context.Background()), store.Close()); err != nil {
			t.Fatal(err)
		}
		fs = after
	}
}

// TestAuditDiskFaults makes each write to the disk fail, from then on: what was allowed is in the log afterwards.
func TestAuditDiskFaults(t *testing.T) {
	for n := int32(5); n < 400; n += 1 + n/3 {
		mem := vfs.NewCrashableMem()
		var count atomic.Int32
		inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && count.Add(1) > n {
				return errors.New("input/output error")
			}
			return nil
		})
		c := &crowd{allowed: map[string]bool{}}
		store, g, err := openPebble(errorfs.Wrap(mem, inject))
		if err == nil {
			c.run(g, 0, 30)
		}
		if g != nil {
			_ = g.Close(context.Background())
		}
		if store != nil {
			_ = store.Close()
		}
		store, g, err = openPebble(mem.CrashClone(vfs.CrashCloneCfg{}))
		if err != nil {
			t.Fatalf("fault at %d: %v", n, err)
		}
		if err := errors.Join(c.check(g), g.Close(context.Background()), store.Close()); err != nil {
			t.Fatalf("fault at %d: %v", n, err)
		}
	}
}
