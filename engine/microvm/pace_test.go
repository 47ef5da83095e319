package microvm

import (
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"agentrun.dev/engine"
)

// fuseRequest is the beginning of a request to read or write n bytes, with the data of the latter.
func fuseRequest(op uint32, n int) []byte {
	b := make([]byte, writeHeaders)
	binary.LittleEndian.PutUint32(b[4:], op)
	binary.LittleEndian.PutUint32(b[56:], uint32(n))
	if op == fuseWrite {
		b = append(b, make([]byte, n)...)
	}
	return b
}

func TestPace(t *testing.T) {
	const mib = 1 << 20
	for name, c := range map[string]struct {
		r    engine.Rate
		op   uint32
		n    int // requests at the same time, of half a MiB
		want time.Duration
	}{
		"none":          {engine.Rate{}, fuseWrite, 100, 0},
		"writes":        {engine.Rate{Bytes: mib}, fuseWrite, 21, 9 * time.Second},
		"reads":         {engine.Rate{Bytes: mib}, fuseRead, 21, 9 * time.Second},
		"a burst":       {engine.Rate{Bytes: mib, BurstBytes: 4 * mib}, fuseWrite, 21, 6 * time.Second},
		"ops":           {engine.Rate{Ops: 10}, fuseRead, 30, 2 * time.Second},
		"both":          {engine.Rate{Bytes: mib, Ops: 1}, fuseWrite, 11, 10 * time.Second},
		"what is free":  {engine.Rate{Bytes: mib, Ops: 1}, 3, 100, 0},
		"a large burst": {engine.Rate{Ops: 1, BurstOps: 1000}, fuseWrite, 1000, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPace(c.r)
				start, done := time.Now(), make(chan struct{})
				for range c.n {
					go func() {
						p.wait(fuseRequest(c.op, mib/2), mib)
						done <- struct{}{}
					}()
				}
				for range c.n {
					<-done
				}
				if took := time.Since(start); took < c.want || took > c.want+time.Second {
					t.Errorf("%v, want %v", took, c.want)
				}
			})
		})
	}
}

// TestPaceLifted: while a machine comes to rest, nothing waits; what goes through then is owed afterwards.
func TestPaceLifted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(engine.Rate{Bytes: 4096})
		p.wait(fuseRequest(fuseWrite, 1<<20), 0)
		done := make(chan struct{})
		for range 3 {
			go func() {
				p.wait(fuseRequest(fuseRead, 4096), 1<<20)
				done <- struct{}{}
			}()
		}
		synctest.Wait()
		select {
		case <-done:
			t.Error("one didn't wait")
		default:
		}
		start := time.Now()
		p.lift()
		p.lift()
		for range 3 {
			<-done
		}
		p.wait(fuseRequest(fuseRead, 4096), 1<<20)
		if d := time.Since(start); d != 0 {
			t.Errorf("they waited %v", d)
		}
		p.keep()
		p.keep()
		p.wait(fuseRequest(fuseRead, 4096), 1<<20)
		if d := time.Since(start); d < 256*time.Second || d > 270*time.Second {
			t.Errorf("afterwards one waited %v", d)
		}
	})
}

func TestCostOf(t *testing.T) {
	for _, c := range []struct {
		in   []byte
		room int
		n    int
		ok   bool
	}{
		{nil, 0, 0, false},
		{make([]byte, 40), 0, 0, false},
		{fuseRequest(fuseRead, 100)[:79], 200, 0, false},
		{fuseRequest(fuseRead, 100), 200, 100, true},
		{fuseRequest(fuseRead, 1<<31), 200, 200 - answerHeader, true},
		{fuseRequest(fuseRead, 1), 0, 0, true},
		{fuseRequest(fuseWrite, 77), 0, 77, true},
		{fuseRequest(1, 77), 100, 0, false},
	} {
		if n, ok := costOf(c.in, c.room); n != c.n || ok != c.ok {
			t.Errorf("%d bytes: %d, %v", len(c.in), n, ok)
		}
	}
}
