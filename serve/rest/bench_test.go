package rest_test

import (
	"testing"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/serve/rest"
)

// BenchmarkRun is one command over HTTP, from the request to its result.
func BenchmarkRun(b *testing.B) {
	s := newService(b, rest.Options{})
	s.template("plain", api.TemplateSpec{})
	s.sandbox("one")
	for name, in := range map[string]api.Run{"args": {Args: []string{"true"}}, "code": {Code: "true"}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := s.Run(b.Context(), "one", in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkClaim takes warm sandboxes over HTTP, with a key as the client sends it; the records are in memory.
func BenchmarkClaim(b *testing.B) {
	s := newService(b, rest.Options{})
	s.template("plain", api.TemplateSpec{})
	const warm = 100
	if _, err := s.PutPool(b.Context(), "warm", api.PoolSpec{Template: "plain", Replicas: warm}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		b.StopTimer()
		for {
			p, err := s.Pool(b.Context(), "warm")
			if err != nil {
				b.Fatal(err)
			}
			if p.Ready > 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		b.StartTimer()
		sb, err := s.CreateSandbox(b.Context(), api.CreateSandbox{Pool: "warm"})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := s.EndSandbox(b.Context(), sb.ID); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
