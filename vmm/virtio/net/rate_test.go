package net_test

import (
	"io"
	stdnet "net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentrun.dev/vmm/virtio/net"
	"agentrun.dev/vmm/virtio/rate"
	vt "agentrun.dev/vmm/virtio/virtiotest"
)

// cable is a connection without files, of which a test's clock knows.
type cable struct {
	in, out chan []byte
	done    chan struct{}
	once    sync.Once
}

func (c *cable) Read(p []byte) (int, error) {
	select {
	case f := <-c.in:
		return copy(p, f), nil
	case <-c.done:
		return 0, io.EOF
	}
}

func (c *cable) Write(p []byte) (int, error) {
	c.out <- append([]byte(nil), p...)
	return len(p), nil
}

func (c *cable) Close() error {
	c.once.Do(func() { close(c.done) })
	return nil
}

// TestRate: frames of either direction take as long as its limit says, and none is lost.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const frames = 31
		c := &cable{in: make(chan []byte, frames), out: make(chan []byte, frames), done: make(chan struct{})}
		dev, err := net.New(c, net.Options{MAC: stdnet.HardwareAddr{2, 0, 0, 0, 0, 1}, In: rate.Limit{Bytes: 1000, BurstBytes: 100}, Out: rate.Limit{Ops: 10, BurstOps: 1}})
		if err != nil {
			t.Fatal(err)
		}
		d := vt.New(t, dev, vt.Options{})
		start := time.Now()
		for range frames {
			send(d, make([]byte, 60))
		}
		if got := time.Since(start); len(c.out) != frames || got < 2900*time.Millisecond || got > 3100*time.Millisecond {
			t.Errorf("%d frames took %v, want 3 s", len(c.out), got)
		}
		start = time.Now()
		for range frames {
			d.Queues[0].Add(nil, 2000)
		}
		d.Queues[0].Notify()
		for range frames {
			c.in <- make([]byte, 100)
		}
		for range frames {
			recv(d)
		}
		if got := time.Since(start); got < 2900*time.Millisecond || got > 3100*time.Millisecond {
			t.Errorf("3,100 bytes took %v, want 3 s", got)
		}
		if s := dev.Stats(); s.Sent != frames || s.Received != frames || s.Dropped != 0 {
			t.Errorf("%+v", s)
		}
		_ = d.M.Close()
	})
}
