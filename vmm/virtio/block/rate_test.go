package block_test

import (
	"testing"
	"testing/synctest"
	"time"

	"agentrun.dev/vmm/virtio/block"
	"agentrun.dev/vmm/virtio/rate"
	vt "agentrun.dev/vmm/virtio/virtiotest"
)

// TestRate: on a clock of the test's own, requests take as long as the limit says; a pause doesn't wait for it.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limited := func() *block.Device {
			return block.New(file(t, true), block.Options{Rate: rate.Limit{Bytes: 64 << 10, Ops: 1000, BurstBytes: 4096}})
		}
		d := vt.New(t, limited(), vt.Options{})
		read := func(n int) time.Duration {
			t.Helper()
			start := time.Now()
			for range n {
				if status, _ := do(d, 0, 0, nil, 4096); status != 0 {
					t.Fatal("an error")
				}
			}
			return time.Since(start)
		}
		if got := read(33); got < 1900*time.Millisecond || got > 2300*time.Millisecond {
			t.Errorf("33 requests of 4 KiB took %v, want 2 s", got)
		}
		// A large one goes through, and the next has to wait for what it took.
		if status, _ := do(d, 0, 0, nil, 64<<10); status != 0 {
			t.Fatal("an error")
		}
		q := d.Queues[0]
		r := q.Add([][]byte{make([]byte, 16)}, 512, 1)
		q.Notify()
		start := time.Now()
		d.Move(limited()) // pauses while it waits; the other one has full buckets
		if got := q.Wait(); got != r || time.Since(start) != 0 {
			t.Errorf("a restored device took %v", time.Since(start))
		}
		d.NoFault()
		_ = d.M.Close()
	})
}
