package rate_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"agentrun.dev/vmm/virtio/rate"
)

// took is how long n requests of a size take.
func took(t *testing.T, l *rate.Limiter, n, size int) time.Duration {
	t.Helper()
	start := time.Now()
	for range n {
		if !l.Wait(t.Context(), func() {}) {
			t.Fatal("a wait that nobody ended has ended")
		}
		l.Charge(size)
	}
	return time.Since(start)
}

func TestRates(t *testing.T) {
	for name, c := range map[string]struct {
		limit   rate.Limit
		n, size int
		want    time.Duration
	}{
		"none":          {rate.Limit{}, 1000, 1 << 20, 0},
		"ops":           {rate.Limit{Ops: 10}, 30, 1 << 30, 2 * time.Second},
		"ops, burst":    {rate.Limit{Ops: 10, BurstOps: 1}, 31, 0, 3 * time.Second},
		"bytes":         {rate.Limit{Bytes: 1000}, 101, 100, 9 * time.Second},
		"bytes, burst":  {rate.Limit{Bytes: 1000, BurstBytes: 5000}, 101, 100, 5 * time.Second},
		"both":          {rate.Limit{Bytes: 1000, Ops: 1, BurstOps: 1}, 11, 10, 10 * time.Second},
		"large ones":    {rate.Limit{Bytes: 1000}, 3, 60_000, 119 * time.Second}, // more than the bucket holds, each
		"slow":          {rate.Limit{Ops: 1, BurstOps: 1}, 200, 0, 199 * time.Second},
		"only one byte": {rate.Limit{Bytes: 1}, 2, 300, 300 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := took(t, rate.New(c.limit), c.n, c.size)
				if d := got - c.want; math.Abs(d.Seconds()) > 0.02 {
					t.Errorf("%d requests of %d bytes took %v, want %v", c.n, c.size, got, c.want)
				}
			})
		})
	}
}

// A rest fills the bucket to its burst and no further.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := rate.New(rate.Limit{Ops: 100, BurstOps: 50})
		took(t, l, 50, 0)
		time.Sleep(time.Hour)
		if got := took(t, l, 50, 0); got != 0 {
			t.Errorf("what was saved took %v", got)
		}
		if got := took(t, l, 100, 0); math.Abs(got.Seconds()-1) > 0.02 {
			t.Errorf("the next second's took %v", got)
		}
	})
}

// A wait ends with its context, and leaves no timer behind that anybody waits for.
func TestEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := rate.New(rate.Limit{Bytes: 1})
		l.Charge(1 << 40)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		start := time.Now()
		if l.Wait(ctx, func() {}) || time.Since(start) != 5*time.Minute {
			t.Errorf("it ended after %v", time.Since(start))
		}
	})
}
