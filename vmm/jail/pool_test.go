package jail_test

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/jail"
	"agentrun.dev/vmm/vmmtest"
)

// ready waits until a pool has so many shells.
func ready(t *testing.T, p *jail.Pool, n int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); p.Ready() != n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			_, err := p.Get(limit(t))
			t.Fatalf("%d shells, want %d; starting one: %v", p.Ready(), n, err)
		}
	}
}

// A pool fills itself, gives living shells away, makes one when it has none, and ends those that nobody took.
func TestPool(t *testing.T) {
	vmmtest.Host(t)
	var starts atomic.Int32
	p := jail.NewPool(2, func(ctx context.Context) (*jail.Process, error) {
		starts.Add(1)
		return jail.Start(ctx, options(nil, 0))
	})
	defer p.Close()
	ready(t, p, 2)
	var got []*jail.Process
	for range 4 {
		s, err := p.Get(limit(t))
		must(t, err)
		got = append(got, s)
		must(t, s.Boot(limit(t), kernel(t), nil, ""))
	}
	for _, s := range got {
		must(t, s.Close())
	}
	ready(t, p, 2)
	s, err := p.Get(canceled(t))
	if err != nil {
		t.Fatalf("a pooled shell needs no time: %v", err)
	}
	must(t, s.Close())
	if n := starts.Load(); n < 6 {
		t.Errorf("%d shells started", n)
	}
	must(t, p.Close())
	if _, err := p.Get(limit(t)); !errs.Is(err, errs.Unavailable) {
		t.Errorf("a closed pool: %v", err)
	}
	if n := p.Ready(); n != 0 {
		t.Errorf("a closed pool has %d shells", n)
	}
}

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// A shell that was killed isn't given to anybody.
func TestPoolKilled(t *testing.T) {
	vmmtest.Host(t)
	shells := make(chan *jail.Process, 10)
	p := jail.NewPool(1, func(ctx context.Context) (*jail.Process, error) {
		s, err := jail.Start(ctx, options(nil, 0))
		if err == nil {
			shells <- s
		}
		return s, err
	})
	defer p.Close()
	ready(t, p, 1)
	first := <-shells
	process, err := os.FindProcess(first.PID())
	must(t, err)
	must(t, process.Kill())
	if err := first.Wait(limit(t)); !errs.Is(err, errs.Unavailable) {
		t.Fatal(err)
	}
	s, err := p.Get(limit(t))
	must(t, err)
	defer s.Close()
	if s == first {
		t.Error("it is dead")
	}
	must(t, s.Boot(limit(t), kernel(t), nil, ""))
}

// Where no shell can be started the pool doesn't try for ever, and says why to who wants one.
func TestPoolErrors(t *testing.T) {
	var starts atomic.Int32
	broken := errors.New("broken")
	p := jail.NewPool(3, func(context.Context) (*jail.Process, error) {
		starts.Add(1)
		return nil, broken
	})
	if _, err := p.Get(t.Context()); !errors.Is(err, broken) {
		t.Errorf("it says %v", err)
	}
	must(t, p.Close())
	if n := starts.Load(); n > 4 {
		t.Errorf("%d attempts", n)
	}
	if _, err := p.Get(t.Context()); !errs.Is(err, errs.Unavailable) {
		t.Errorf("a closed pool: %v", err)
	}
}
