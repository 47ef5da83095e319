package memory_test

import (
	"testing"

	"agentrun.dev/kv"
	"agentrun.dev/kv/kvtest"
	"agentrun.dev/kv/memory"
)

func TestConformance(t *testing.T) {
	kvtest.Run(t, func(*testing.T) kv.Store { return memory.New() }, nil)
}

func BenchmarkOpen(b *testing.B) {
	for b.Loop() {
		_ = memory.New().Close()
	}
}
