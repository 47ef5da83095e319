package jq

import (
	"context"
	"runtime/metrics"
	"time"
)

// The evaluator's memory can't be counted where it is allocated: it is a library's. So the heap of the whole process is
// looked at while a filter runs, and a filter that began before the heap grew by maxGrowth is ended.
const (
	maxGrowth = 1 << 30
	lookEvery = 5 * time.Millisecond
)

// watch cancels when the heap has grown too much. The result ends the watch, and waits for its end.
func watch(cancel context.CancelFunc) (end func()) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		heap := func() uint64 {
			metrics.Read(sample)
			return sample[0].Value.Uint64()
		}
		limit := heap() + maxGrowth
		t := time.NewTicker(lookEvery)
		defer t.Stop()
		for {
			select {
			case <-stop:
				return
			case <-t.C:
				if heap() > limit {
					cancel()
					return
				}
			}
		}
	}()
	return func() { close(stop); <-done }
}
