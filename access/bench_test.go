package access

import (
	"context"
	"testing"

	"agentrun.dev/api"
	"agentrun.dev/kv/pebble"
)

func benchGuard(b *testing.B) (*Guard, string) {
	b.Helper()
	ctx := context.Background()
	store, err := pebble.Open(b.TempDir(), pebble.Options{})
	if err != nil {
		b.Fatal(err)
	}
	k, err := New(Options{KV: store, MasterKey: master})
	if err != nil {
		b.Fatal(err)
	}
	g, err := NewGuard(ctx, k, AuditOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := g.Close(ctx); err != nil {
			b.Error(err)
		}
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	})
	for _, p := range []api.Principal{{Name: "alice", Role: api.RoleUser}, {Name: "bot", Role: api.RoleUser, Parent: "alice"}} {
		if _, _, err := k.SetPrincipal(ctx, p); err != nil {
			b.Fatal(err)
		}
	}
	key, err := k.Create(ctx, NewKey{Principal: "bot"})
	if err != nil {
		b.Fatal(err)
	}
	return g, key.Token()
}

func BenchmarkCaller(b *testing.B) {
	g, token := benchGuard(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Caller(context.Background(), token, "192.0.2.1:1", "r"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCheck measures one decision: of a look, of a change by one caller, and of changes by many at once, all in Pebble on the disk.
func BenchmarkCheck(b *testing.B) {
	g, token := benchGuard(b)
	ctx := context.Background()
	who, err := g.Caller(ctx, token, "192.0.2.1:1", "r")
	if err != nil {
		b.Fatal(err)
	}
	thing := Thing{Kind: "sandbox", ID: "0190b8f2-3c4e-7abc-8def-0123456789ab", Owner: "bot"}
	for name, v := range map[string]Verb{"look": SandboxGet, "change": SandboxExec} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := g.Check(ctx, who, v, thing); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("change/32 callers", func(b *testing.B) {
		b.SetParallelism(16)
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				if err := g.Check(ctx, who, SandboxExec, thing); err != nil {
					b.Error(err)
				}
			}
		})
	})
}
