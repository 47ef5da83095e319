package node_test

import (
	"bytes"
	"fmt"
	"testing"

	"agentrun.dev/api"
	"agentrun.dev/engine"
	"agentrun.dev/node"
	"agentrun.dev/volume"
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

// hostWith returns a host with a sandbox of a language, and what starts more of them.
func hostWith(b *testing.B, language string) (h node.Host, start func() string) {
	h, _ = newHost(b, newStore(b), node.Options{})
	spec := node.Spec{Volumes: []volume.Spec{{Name: "workspace", Empty: true}}}
	if err := h.Build(ctx, node.Build{Image: "i@1", Spec: spec, Language: language}, nil); err != nil {
		b.Fatal(err)
	}
	n := 0
	return h, func() string {
		n++
		id := fmt.Sprintf("s-%d", n)
		if _, err := h.Start(ctx, node.Start{ID: id, Epoch: 1, Image: "i@1"}); err != nil {
			b.Fatal(err)
		}
		return id
	}
}

// BenchmarkClaim claims a warm sandbox.
func BenchmarkClaim(b *testing.B) {
	h, start := hostWith(b, "")
	claim := node.Claim{Env: []string{"TOKEN=secret"}, Network: []string{"example.com:443"}}
	for b.Loop() {
		b.StopTimer()
		id := start()
		b.StartTimer()
		if err := h.Claim(ctx, id, 1, claim); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := h.End(ctx, id); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkStart starts a sandbox of an image with an interpreter that runs, and ends it.
func BenchmarkStart(b *testing.B) {
	for _, language := range append([]string{"shell"}, languages()...) {
		b.Run(language, func(b *testing.B) {
			h, start := hostWith(b, language)
			for b.Loop() {
				if err := h.End(ctx, start()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCode runs a text: the first one of a sandbox, and one of a session that runs.
func BenchmarkCode(b *testing.B) {
	for _, language := range languages() {
		text := map[string]string{api.Python: "print('hello')", api.JavaScript: "console.log('hello')"}[language]
		h, start := hostWith(b, language)
		run := func(id string) {
			if r, err := h.Code(ctx, id, node.Code{Text: text, Default: language}); err != nil || r.Status != 0 {
				b.Fatal(r, err)
			}
		}
		b.Run(language+"/first", func(b *testing.B) {
			for b.Loop() {
				id := start()
				run(id)
				if err := h.End(ctx, id); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(language+"/next", func(b *testing.B) {
			id := start()
			for b.Loop() {
				run(id)
			}
		})
	}
}

// BenchmarkForkCode forks a sandbox whose interpreter has state, and runs a text in the fork.
func BenchmarkForkCode(b *testing.B) {
	for _, language := range languages() {
		b.Run(language, func(b *testing.B) {
			h, start := hostWith(b, language)
			id := start()
			text := map[string]string{api.Python: "state = list(range(100_000))", api.JavaScript: "state = [...Array(100_000).keys()]; undefined"}[language]
			if _, err := h.Code(ctx, id, node.Code{Text: text, Language: language}); err != nil {
				b.Fatal(err)
			}
			text = map[string]string{api.Python: "len(state)", api.JavaScript: "state.length"}[language]
			n := 0
			for b.Loop() {
				n++
				child := fmt.Sprintf("c-%d", n)
				if _, err := h.Fork(ctx, id, node.Fork{IDs: []string{child}, Epoch: 1}); err != nil {
					b.Fatal(err)
				}
				if r, err := h.Code(ctx, child, node.Code{Text: text, Default: language}); err != nil || r.Result != "100000" {
					b.Fatal(r, err)
				}
				if err := h.End(ctx, child); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
