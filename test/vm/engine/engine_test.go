package engine

import (
	"context"
	"log/slog"
	"os"
	"runtime"
	"testing"
	"time"

	"agentrun.dev/engine"
	"agentrun.dev/engine/enginetest"
	"agentrun.dev/engine/microvm"
	"agentrun.dev/guest/image"
)

// bench is where the bench's archive has what an engine needs.
const bench = "/microvm/"

// newEngine returns the engine of this test, which ends with it.
func newEngine(t testing.TB) *microvm.Engine {
	t.Helper()
	if _, err := os.Stat(bench); err != nil {
		t.Skip("IT RUNS IN THE BENCH ONLY: make vm, or go test ./test/vm -run TestEngine")
	}
	runtime.GOMAXPROCS(8) // vCPUs hold some for a while
	images, err := image.NewStore(t.TempDir(), image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := microvm.New(microvm.Options{Kernel: bench + "kernel", Modules: bench + "modules", Agent: bench + "agent", VMM: []string{bench + "vmm"},
		Images: images, Image: "tar:" + bench + "image.tar", Memory: 128 << 20, Shells: 1, Patience: 2 * time.Minute,
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if list, err := e.List(context.Background()); err != nil || len(list) != 0 {
			t.Errorf("at the end there are %v, %v", list, err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// TestSuite is what every engine does. One engine serves all of it: a kernel takes its time to boot here.
func TestSuite(t *testing.T) {
	e := newEngine(t)
	enginetest.Run(t, enginetest.Config{New: func(testing.TB) engine.Engine { return e }, Saves: true, Copies: true, Alone: true, Slow: 10, Forks: 4})
}
