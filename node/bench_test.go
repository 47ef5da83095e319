package node_test

import (
	"bytes"
	"testing"

	"agentrun.dev/engine"
	"agentrun.dev/node"
)

// BenchmarkSession makes a sandbox over a fork of a bucket, runs a command in its shell and ends it, without a disk.
func BenchmarkSession(b *testing.B) {
	store := newStore(b)
	if _, err := store.Create(ctx, "base", bucketOptions); err != nil {
		b.Fatal(err)
	}
	n := newNode(b, store, "")
	b.ReportAllocs()
	for b.Loop() {
		s, err := n.Create(ctx, over("base"))
		if err != nil {
			b.Fatal(err)
		}
		var out bytes.Buffer
		p, err := s.Exec(ctx, engine.Cmd{Args: []string{"bash", "-c", "echo ready > note; cat note"}, Stdout: &out})
		if err != nil {
			b.Fatal(err)
		}
		if status, err := p.Wait(ctx); err != nil || status != 0 {
			b.Fatal(status, err, out.String())
		}
		if err := s.End(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFork forks a running sandbox and ends the fork.
func BenchmarkFork(b *testing.B) {
	store := newStore(b)
	if _, err := store.Create(ctx, "base", bucketOptions); err != nil {
		b.Fatal(err)
	}
	n := newNode(b, store, "")
	s := create(b, n, over("base"))
	if _, err := s.Exec(ctx, engine.Cmd{Args: []string{"bash", "-c", "x=1; while :; do sleep 100; done"}}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		children, err := s.Fork(ctx, node.ForkOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if err := children[0].End(ctx); err != nil {
			b.Fatal(err)
		}
	}
}
