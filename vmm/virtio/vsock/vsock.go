// Package vsock is the virtio socket device (virtio 1.2, section 5.10): stream connections between programs in the guest and
// the program that holds the Device, by way of Listen and Dial, or by way of unix sockets with a Bridge.
//
// Each side tells the other how much it can hold for a connection, its credit, and sends no more than that; a guest that
// does has its connection reset. So the device never stops taking packets from the guest, and what it holds is bounded:
// MaxConns times a little more than BufferSize.
//
// A connection doesn't outlive its device: a machine that is restored, or forked, is told by an event that all its
// connections are reset (5.10.6.7), while its listening sockets stay. Dial waits until the guest has taken note, since it
// would reset the new connection too.
package vsock

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"sync"
	"syscall"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/virtio"
)

// Limits; Options may set lower ones.
const (
	MaxConns   = 1024      // connections at a time
	BufferSize = 128 << 10 // bytes that are held for the reader of a connection
	outSize    = 64 << 10  // bytes that are held until the guest takes them
	maxResets  = 256       // answers to packets of no connection; more aren't sent
	backlog    = 128       // connections of a listener that wait for Accept
)

// The queues (5.10.2).
const (
	queueRx    = 0 // to the guest
	queueTx    = 1 // from the guest
	queueEvent = 2
)

// Options configure a device.
type Options struct {
	// CID is the guest's address, from 3 up; 0 is 3. A restored guest takes on that of its new device.
	CID uint32
	// MaxConns limits the connections; 0 is the constant of this name.
	MaxConns int
}

// Device is a socket device.
type Device struct {
	cid      uint64
	maxConns int

	mu        sync.Mutex
	changed   sync.Cond // link or reset
	link      *virtio.Link
	closed    bool
	conns     map[key]*Conn
	listeners map[uint32]*Listener
	any       *Listener
	nextPort  uint32
	ready     []*Conn  // with something to send, in turn
	resets    []header // to be sent for no connection
	closing   []*Conn  // closed here, but not by the guest; the oldest first
	reset     resetState
	resetAt   uint16 // the event queue's available index from which on the guest has given back the buffers of all events
	unseen    bool   // an event was sent, by this device or the one that it is restored from, and resetAt isn't reached
	restored  bool
}

// resetState is how far the guest is in learning that its connections are gone.
type resetState uint8

const (
	resetNone resetState = iota
	resetDue             // the event must be sent
	resetSent            // the guest hasn't given its buffer back
)

// key names a connection.
type key struct{ guest, host uint32 }

// New returns a device.
func New(o Options) *Device {
	d := &Device{cid: uint64(max(o.CID, 3)), maxConns: o.MaxConns, conns: make(map[key]*Conn), listeners: make(map[uint32]*Listener),
		// A guest that was forked still has its parent's connections for a moment: ports mustn't coincide with theirs.
		nextPort: 1<<30 + rand.Uint32N(1<<30)}
	if d.maxConns <= 0 || d.maxConns > MaxConns {
		d.maxConns = MaxConns
	}
	d.changed.L = &d.mu
	return d
}

// ID and the others implement virtio.Device.
func (d *Device) ID() uint32       { return virtio.IDVsock }
func (d *Device) Features() uint64 { return 0 }
func (d *Device) Queues() []uint16 { return []uint16{256, 256, 16} }

// ReadConfig shows the guest's address.
func (d *Device) ReadConfig(off uint32, p []byte) {
	virtio.Config(binary.LittleEndian.AppendUint64(nil, d.cid), off, p)
}

// WriteConfig ignores the write: nothing can be configured.
func (d *Device) WriteConfig(uint32, []byte) {}

// Start makes connections possible.
func (d *Device) Start(l *virtio.Link) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.link, d.reset = l, resetNone
	if d.restored && l.Queue(queueEvent) != nil {
		d.reset = resetDue
	}
	d.restored = false
	d.changed.Broadcast()
	return nil
}

// Reset resets all connections; listeners stay.
func (d *Device) Reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget()
	d.link, d.restored, d.unseen, d.reset = nil, false, false, resetNone
	d.changed.Broadcast()
}

// forget breaks all connections without telling the guest. mu is held.
func (d *Device) forget() {
	for k, c := range d.conns {
		c.fail(syscall.ECONNRESET)
		delete(d.conns, k)
	}
	d.ready, d.resets, d.closing = nil, nil, nil
}

// saved is the device's state: connections aren't carried over.
type saved struct {
	CID uint64 `json:"cid"`
	// ResetAt is set if the guest hasn't taken note of an event yet: it sees that one and the next device's.
	ResetAt *uint16 `json:"reset_at,omitempty"`
}

// State and SetState implement virtio.Device.
func (d *Device) State() ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := saved{CID: d.cid}
	if d.unseen {
		s.ResetAt = &d.resetAt
	}
	return json.Marshal(s)
}

// SetState makes the guest learn that its connections are reset, and read its address again.
func (d *Device) SetState(state []byte) error {
	var s saved
	if err := json.Unmarshal(state, &s); err != nil {
		return errs.New(errs.Invalid, "vsock", "restore", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.restored = true
	if d.unseen = s.ResetAt != nil; d.unseen {
		d.resetAt = *s.ResetAt
	}
	return nil
}

// Close breaks all connections and closes all listeners.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.forget()
	for _, l := range d.listeners {
		l.stop()
	}
	if d.any != nil {
		d.any.stop()
	}
	d.changed.Broadcast()
	return nil
}

// Conns returns how many connections there are, with those that the guest hasn't closed yet.
func (d *Device) Conns() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.conns)
}

// Handle serves a queue.
func (d *Device) Handle(_ context.Context, q *virtio.Queue) error {
	switch q.Index {
	case queueRx:
		return d.send(q)
	case queueTx:
		return d.receive(q)
	}
	return d.event(q)
}

// event tells the guest of the reset, and notices that it has taken note: it gives the buffer back then. The index is read
// before the guest can see the event: it may give the buffer back at once. And where an earlier device's event is still to be
// seen, it gives back two, the second of which counts: each makes it reset its connections.
func (d *Device) event(q *virtio.Queue) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.reset == resetDue {
		c, err := q.Pop()
		if c == nil || err != nil {
			return err
		}
		if c.Out.Len() < 4 {
			c.Done(0)
			return errs.Msg(errs.Invalid, "virtio", "vsock", "an event buffer of less than 4 bytes")
		}
		if at := q.Watch(); !d.unseen || int16(at-d.resetAt) >= 0 {
			d.resetAt = at
		}
		d.resetAt++
		d.reset, d.unseen = resetSent, true
		c.Done(c.Out.Write(make([]byte, 4))) // VIRTIO_VSOCK_EVENT_TRANSPORT_RESET
		q.Signal()
	}
	if d.reset == resetSent && int16(q.Watch()-d.resetAt) >= 0 {
		d.reset, d.unseen = resetNone, false
		d.changed.Broadcast()
	}
	return nil
}

// send fills the guest's buffers with what there is to say. mu is held for one packet at a time: with small buffers there are very many.
func (d *Device) send(q *virtio.Queue) error {
	for d.talks() {
		c, err := q.Pop()
		if c == nil || err != nil {
			return err
		}
		if c.Out.Len() < headerSize {
			c.Done(0)
			return errs.Msg(errs.Invalid, "virtio", "vsock", "a receive buffer without room for a header")
		}
		d.mu.Lock()
		n := d.fill(&c.Out)
		d.mu.Unlock()
		if n == 0 { // nobody had anything to say after all: the buffer serves for the next packet
			c.Return()
			continue
		}
		c.Done(n)
		q.Signal()
	}
	return nil
}

func (d *Device) talks() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.resets) > 0 || len(d.ready) > 0
}

// fill writes the next packet, and returns its length.
func (d *Device) fill(out *virtio.Buffers) int {
	if len(d.resets) > 0 {
		h := d.resets[0]
		d.resets = d.resets[1:]
		return out.Write(h.encode())
	}
	for len(d.ready) > 0 {
		c := d.ready[0]
		d.ready = d.ready[1:]
		c.queued = false
		n := c.fill(out)
		if c.wants() {
			d.enqueue(c)
		}
		if n > 0 {
			return n
		}
	}
	return 0
}

// enqueue puts a connection among those with something to send, and lets it be sent.
func (d *Device) enqueue(c *Conn) {
	if !c.queued {
		c.queued = true
		d.ready = append(d.ready, c)
	}
	d.link.Kick(queueRx)
}

// receive takes the guest's packets.
func (d *Device) receive(q *virtio.Queue) error {
	for {
		c, err := q.Pop()
		if c == nil || err != nil {
			return err
		}
		var raw [headerSize]byte
		if c.In.Read(raw[:]) < headerSize {
			c.Done(0)
			return errs.Msg(errs.Invalid, "virtio", "vsock", "a packet without a header")
		}
		var h header
		h.decode(&raw)
		d.mu.Lock()
		d.packet(&h, &c.In)
		d.mu.Unlock()
		c.Done(0)
	}
}

// packet acts on one. mu is held.
func (d *Device) packet(h *header, data *virtio.Buffers) {
	if h.srcCID != d.cid || h.dstCID != HostCID || h.kind != typeStream || int64(h.length) > int64(data.Len()) {
		d.refuse(h)
		return
	}
	c := d.conns[key{h.srcPort, h.dstPort}]
	if c == nil {
		if h.op == opRequest {
			d.requested(h)
		} else {
			d.refuse(h)
		}
		return
	}
	if h.op != opReset {
		c.credit(h)
	}
	switch {
	case h.op == opReset:
		c.gone()
	case h.op == opResponse && c.state == stateRequested && c.dialled:
		c.state = stateOpen
		c.cond.Broadcast()
	case c.state == stateOpen && h.op == opData:
		data.Limit(int(h.length))
		if !c.deliver(data) {
			c.abort(syscall.ECONNRESET)
		}
	case c.state == stateOpen && h.op == opShutdown:
		c.peerShut(h.flags & shutBoth)
	case c.state == stateOpen && h.op == opCreditUpdate:
	case c.state == stateOpen && h.op == opCreditRequest:
		c.tellCredit = true
		d.enqueue(c)
	default: // an operation at the wrong time, or an unknown one
		c.abort(syscall.ECONNRESET)
	}
}

// refuse answers a packet that belongs to no connection. A reset isn't answered, or two sides would never end.
func (d *Device) refuse(h *header) {
	if h.op == opReset || len(d.resets) >= maxResets {
		return
	}
	d.resets = append(d.resets, header{srcCID: h.dstCID, dstCID: h.srcCID, srcPort: h.dstPort, dstPort: h.srcPort, kind: h.kind, op: opReset})
	d.link.Kick(queueRx)
}

// requested makes a connection that the guest asks for.
func (d *Device) requested(h *header) {
	l := d.listeners[h.dstPort]
	if l == nil {
		l = d.any
	}
	if l == nil || len(l.queue) == cap(l.queue) || !d.room() {
		d.refuse(h)
		return
	}
	c := d.newConn(key{h.srcPort, h.dstPort})
	c.credit(h)
	if l != d.any {
		c.accept()
	}
	l.queue <- c // there is room: only this function, under mu, adds to it
}

// room tells whether there may be another connection; one that only waits for the guest's goodbye makes way.
func (d *Device) room() bool {
	for len(d.conns) >= d.maxConns && len(d.closing) > 0 {
		c := d.closing[0]
		d.closing = d.closing[1:]
		c.abort(nil)
	}
	return len(d.conns) < d.maxConns
}
