package rng_test

import (
	"bytes"
	"testing"

	"agentrun.dev/vmm/virtio"
	"agentrun.dev/vmm/virtio/rng"
	"agentrun.dev/vmm/virtio/virtiotest"
)

func TestFill(t *testing.T) {
	d := virtiotest.New(t, rng.New(rng.Options{}), virtiotest.Options{})
	first, n := d.Queues[0].Do(nil, 100, 28)
	if n != 128 || bytes.Equal(first, make([]byte, 128)) {
		t.Fatalf("%d bytes: %x", n, first)
	}
	if second, _ := d.Queues[0].Do(nil, 128); bytes.Equal(first, second) {
		t.Fatal("the same bytes twice")
	}
	if _, n := d.Queues[0].Do(nil, rng.MaxRequest+4096); n != rng.MaxRequest {
		t.Fatalf("%d bytes, wanted the limit", n)
	}
}

// TestFork: the same request of two forks gets different bytes.
func TestFork(t *testing.T) {
	d := virtiotest.New(t, rng.New(rng.Options{}), virtiotest.Options{})
	d.Queues[0].Do(nil, 16)
	child := d.Fork(rng.New(rng.Options{}))
	a, _ := d.Queues[0].Do(nil, 32)
	b, _ := child.Queues[0].Do(nil, 32)
	if bytes.Equal(a, b) {
		t.Fatal("parent and fork drew the same bytes")
	}
}

// TestSourceEnds: a source that fails gives what it had.
func TestSourceEnds(t *testing.T) {
	d := virtiotest.New(t, rng.New(rng.Options{Source: bytes.NewReader([]byte("abc"))}), virtiotest.Options{})
	if data, n := d.Queues[0].Do(nil, 2, 6); n != 3 || string(data[:3]) != "abc" {
		t.Fatalf("%d bytes: %q", n, data)
	}
	if _, n := d.Queues[0].Do(nil, 8); n != 0 {
		t.Fatalf("%d bytes from an empty source", n)
	}
}

func FuzzDevice(f *testing.F) {
	virtiotest.Seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		virtiotest.Fuzz(t, func() virtio.Device { return rng.New(rng.Options{}) }, data)
	})
}
