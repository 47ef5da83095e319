// Package console is the virtio console device (virtio 1.2, section 5.3) with one port: what the guest prints is kept in a
// ring of bounded size, from which any number of readers follow it; what is typed waits, bounded too, until the guest reads.
// A reader that is slow misses bytes; it never holds up the guest.
package console

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"sync"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/virtio"
)

// Limits and defaults.
const (
	DefaultKeep = 64 << 10 // bytes of output that are kept
	MaxKeep     = 64 << 20
	MaxInput    = 64 << 10 // bytes of input that wait for the guest
)

// Feature bits (5.3.3).
const (
	FeatureSize      = 0
	FeatureEmergency = 2
)

const (
	queueRx = 0 // to the guest
	queueTx = 1
)

// Options configure a device.
type Options struct {
	// Keep is how many bytes of output are kept; 0 is DefaultKeep.
	Keep int
	// Columns and Rows are the terminal's size; zeros leave it to the guest.
	Columns, Rows uint16
}

// Device is a console.
type Device struct {
	mu         sync.Mutex
	link       *virtio.Link
	cols, rows uint16
	input      []byte
	ring       []byte
	total      uint64        // bytes ever printed; the last of them are in ring, at their number modulo its length
	more       chan struct{} // closed at the next output
	closed     bool
}

// New returns a console.
func New(o Options) *Device {
	if o.Keep <= 0 {
		o.Keep = DefaultKeep
	}
	return &Device{cols: o.Columns, rows: o.Rows, ring: make([]byte, min(o.Keep, MaxKeep)), more: make(chan struct{})}
}

// ID and the others implement virtio.Device.
func (d *Device) ID() uint32       { return virtio.IDConsole }
func (d *Device) Features() uint64 { return 1<<FeatureSize | 1<<FeatureEmergency }
func (d *Device) Queues() []uint16 { return []uint16{64, 64} }

// ReadConfig shows the terminal's size.
func (d *Device) ReadConfig(off uint32, p []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var c [12]byte
	binary.LittleEndian.PutUint16(c[0:], d.cols)
	binary.LittleEndian.PutUint16(c[2:], d.rows)
	binary.LittleEndian.PutUint32(c[4:], 1)
	virtio.Config(c[:], off, p)
}

// WriteConfig takes the emergency output of a driver that has no queues yet: one byte.
func (d *Device) WriteConfig(off uint32, p []byte) {
	if off == 8 && len(p) > 0 {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.print(p[:1])
	}
}

// Start and Reset note the driver.
func (d *Device) Start(l *virtio.Link) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.link = l
	return nil
}

func (d *Device) Reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.link = nil
}

// saved is the device's state. Output isn't carried over: a fork's begins with the fork.
type saved struct {
	Columns uint16 `json:"columns"`
	Rows    uint16 `json:"rows"`
	Input   []byte `json:"input,omitempty"`
}

func (d *Device) State() ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return json.Marshal(saved{d.cols, d.rows, d.input})
}

func (d *Device) SetState(state []byte) error {
	var s saved
	if err := json.Unmarshal(state, &s); err != nil {
		return errs.New(errs.Invalid, "console", "restore", err)
	}
	if len(s.Input) > MaxInput {
		return errs.Msg(errs.Invalid, "console", "restore", "too much input")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cols, d.rows, d.input = s.Columns, s.Rows, s.Input
	return nil
}

// Close ends Follow.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.closed = true
		close(d.more)
	}
	return nil
}

// Handle moves bytes. mu is held for one chain at a time: a guest that never stops printing mustn't keep others from what it printed.
func (d *Device) Handle(_ context.Context, q *virtio.Queue) error {
	for {
		if q.Index == queueRx && !d.typed() {
			return nil
		}
		c, err := q.Pop()
		if c == nil || err != nil {
			return err
		}
		c.Done(d.move(q.Index, c))
	}
}

func (d *Device) typed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.input) > 0
}

// move does one chain, and returns how much of what was typed is in it.
func (d *Device) move(queue int, c *virtio.Chain) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if queue == queueTx {
		for _, b := range c.In.Segments() {
			d.print(b)
		}
		return 0
	}
	n := c.Out.Write(d.input)
	d.input = d.input[n:]
	return n
}

// print keeps what the guest says. mu is held.
func (d *Device) print(b []byte) {
	if len(b) == 0 || d.closed {
		return
	}
	if skip := len(b) - len(d.ring); skip > 0 {
		b, d.total = b[skip:], d.total+uint64(skip)
	}
	at := int(d.total % uint64(len(d.ring)))
	copy(d.ring, b[copy(d.ring[at:], b):])
	d.total += uint64(len(b))
	close(d.more)
	d.more = make(chan struct{})
}

// from returns the kept output from a position on. mu is held.
func (d *Device) from(pos uint64) []byte {
	pos = min(max(pos, d.total-min(d.total, uint64(len(d.ring)))), d.total)
	out := make([]byte, 0, d.total-pos)
	for pos < d.total {
		at := int(pos % uint64(len(d.ring)))
		part := d.ring[at:][:min(uint64(len(d.ring)-at), d.total-pos)]
		out = append(out, part...)
		pos += uint64(len(part))
	}
	return out
}

// Tail returns the last n bytes of output, as far as they are kept.
func (d *Device) Tail(n int) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.from(d.total - min(d.total, uint64(max(n, 0))))
}

// Follow returns the output from a position on, 0 being the first byte, and the position behind it. It waits until there is
// some. What isn't kept any more is skipped: then next - len(data) is more than pos. After Close it is Unavailable.
func (d *Device) Follow(ctx context.Context, pos uint64) (data []byte, next uint64, err error) {
	for {
		d.mu.Lock()
		data, next, more, closed := d.from(pos), d.total, d.more, d.closed
		d.mu.Unlock()
		if len(data) > 0 {
			return data, next, nil
		}
		if closed {
			return nil, pos, errs.Msg(errs.Unavailable, "console", "follow", "it is closed")
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, pos, ctx.Err()
		}
	}
}

// Write types. What the guest has no room for is Limit: n bytes were taken, and the rest can be tried again.
func (d *Device) Write(p []byte) (n int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n = min(len(p), MaxInput-len(d.input))
	d.input = append(d.input, p[:n]...)
	if d.link != nil {
		d.link.Kick(queueRx)
	}
	if n < len(p) {
		return n, errs.Msg(errs.Limit, "console", "input", "the guest doesn't read")
	}
	return n, nil
}

// Resize tells the guest the terminal's size.
func (d *Device) Resize(columns, rows uint16) {
	d.mu.Lock()
	l := d.link
	d.cols, d.rows = columns, rows
	d.mu.Unlock()
	if l != nil {
		l.ConfigChanged()
	}
}
