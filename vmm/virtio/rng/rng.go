// Package rng is the virtio entropy device (virtio 1.2, section 5.4): the driver gives buffers, the device fills them from
// the host's random source. It has no state: a restored machine draws new bytes, as a forked one must.
package rng

import (
	"context"
	"crypto/rand"
	"io"

	"agentrun.dev/vmm/virtio"
)

// MaxRequest is how much of one request is filled, in bytes; the driver sees that it got less.
const MaxRequest = 64 << 10

// Options configure a device.
type Options struct {
	// Source is where the bytes come from; nil is crypto/rand. An error of it makes a request come back empty.
	Source io.Reader
}

// Device is the entropy device.
type Device struct{ source io.Reader }

// New returns a device.
func New(o Options) *Device {
	if o.Source == nil {
		o.Source = rand.Reader
	}
	return &Device{source: o.Source}
}

// ID and the others implement virtio.Device.
func (d *Device) ID() uint32                { return virtio.IDEntropy }
func (d *Device) Features() uint64          { return 0 }
func (d *Device) Queues() []uint16          { return []uint16{64} }
func (d *Device) ReadConfig(uint32, []byte) {}

// WriteConfig ignores the write: there is no configuration.
func (d *Device) WriteConfig(uint32, []byte)  {}
func (d *Device) Start(*virtio.Link) error    { return nil }
func (d *Device) Reset()                      {}
func (d *Device) State() ([]byte, error)      { return nil, nil }
func (d *Device) SetState(state []byte) error { return nil }
func (d *Device) Close() error                { return nil }

// Handle fills the buffers.
func (d *Device) Handle(_ context.Context, q *virtio.Queue) error {
	for {
		c, err := q.Pop()
		if c == nil || err != nil {
			return err
		}
		c.Out.Limit(MaxRequest)
		n := 0
		for _, b := range c.Out.Segments() {
			// Straight into guest memory: what the guest does to its own buffer meanwhile is its own affair.
			m, err := io.ReadFull(d.source, b)
			n += m
			if err != nil {
				break
			}
		}
		c.Done(n)
	}
}
