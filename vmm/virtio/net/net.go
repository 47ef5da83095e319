// Package net is the virtio network device (virtio 1.2, section 5.1): Ethernet frames between the guest and a tap, or any
// connection that keeps the bounds of packets, with one pair of queues.
//
// A frame is what a Read returns and what a Write takes. Frames for the guest wait in the host's queue while the guest has no
// buffers; frames of the guest that the host doesn't take are lost, as on a wire. A restored guest keeps its address, which
// the owner may want to change from within; frames on their way are lost.
package net

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/virtio"
	"agentrun.dev/vmm/virtio/rate"
)

// Feature bits (5.1.3).
const (
	FeatureChecksum      = 0 // the guest may leave checksums to the host,
	FeatureGuestChecksum = 1 // and the host to the guest
	FeatureMTU           = 3
	FeatureMAC           = 5
	FeatureGuestTSO4     = 7
	FeatureGuestTSO6     = 8
	FeatureHostTSO4      = 11
	FeatureHostTSO6      = 12
	FeatureMergeRx       = 15
	FeatureStatus        = 16
)

const offloads = 1<<FeatureChecksum | 1<<FeatureGuestChecksum | 1<<FeatureGuestTSO4 | 1<<FeatureGuestTSO6 | 1<<FeatureHostTSO4 | 1<<FeatureHostTSO6

const (
	queueRx = 0 // to the guest
	queueTx = 1

	headerSize = 12         // struct virtio_net_hdr, with num_buffers
	maxFrame   = 65536 + 64 // a segmentation offload's largest, with its Ethernet header
	waiting    = 64         // frames that wait for the guest's buffers
)

// Offloader is implemented by a connection whose frames begin with a virtio_net_hdr of 12 bytes, such as a Tap: checksums and
// segmentation can then be left to the other side. SetOffloads tells it which features the guest has negotiated.
type Offloader interface {
	SetOffloads(features uint64) error
}

// Options configure a device.
type Options struct {
	// MAC is the guest's address, which must be there.
	MAC net.HardwareAddr
	// MTU is the largest packet, without the Ethernet header; 0 leaves it to the guest. From 68 to 65535.
	MTU int
	// In bounds what the guest receives, Out what it sends, in frames and their bytes. What is too much waits, as it does where a
	// wire is slow. A restored device begins with full buckets.
	In, Out rate.Limit
}

// Stats counts frames.
type Stats struct {
	Received, Sent           uint64 // by the guest
	ReceivedBytes, SentBytes uint64
	Dropped                  uint64 // of either direction
}

// Device is a network device.
type Device struct {
	conn   io.ReadWriteCloser
	off    Offloader
	limits [2]*rate.Limiter // by queue
	config [12]byte
	mtu    bool

	frames chan []byte
	wg     sync.WaitGroup
	done   chan struct{}
	closed sync.Once

	link  atomic.Pointer[virtio.Link]
	tx    []byte
	held  []byte // a frame that found too few buffers
	chain []*virtio.Chain
	stats [5]atomic.Uint64
	down  atomic.Bool // the connection has ended
}

const (
	statReceived = iota
	statSent
	statReceivedBytes
	statSentBytes
	statDropped
)

// New returns a device with a connection, which it closes. Read must return when the connection is closed. Write mustn't
// block for long unless it ends at SetWriteDeadline, as a net.Conn's and a non-blocking file's do.
func New(conn io.ReadWriteCloser, o Options) (*Device, error) {
	if len(o.MAC) != 6 || o.MAC[0]&1 != 0 {
		return nil, errs.Msg(errs.Invalid, "net", o.MAC.String(), "not the address of one Ethernet station")
	}
	if o.MTU != 0 && (o.MTU < 68 || o.MTU > 65535) {
		return nil, errs.Msg(errs.Invalid, "net", "MTU", "it must be from 68 to 65535")
	}
	d := &Device{conn: conn, mtu: o.MTU != 0, frames: make(chan []byte, waiting), done: make(chan struct{}), tx: make([]byte, headerSize+maxFrame),
		limits: [2]*rate.Limiter{queueRx: rate.New(o.In), queueTx: rate.New(o.Out)}}
	d.off, _ = conn.(Offloader)
	copy(d.config[:], o.MAC)
	d.config[6] = 1 // the link is up
	binary.LittleEndian.PutUint16(d.config[8:], 1)
	binary.LittleEndian.PutUint16(d.config[10:], uint16(o.MTU))
	d.wg.Add(1)
	go d.read()
	return d, nil
}

// ID and the others implement virtio.Device.
func (d *Device) ID() uint32       { return virtio.IDNet }
func (d *Device) Queues() []uint16 { return []uint16{256, 256} }

// Features depend on the connection.
func (d *Device) Features() uint64 {
	f := uint64(1<<FeatureMAC | 1<<FeatureMergeRx | 1<<FeatureStatus)
	if d.mtu {
		f |= 1 << FeatureMTU
	}
	if d.off != nil {
		f |= offloads
	}
	return f
}

// ReadConfig shows the address, and whether the link is up.
func (d *Device) ReadConfig(off uint32, p []byte) {
	c := d.config
	if d.down.Load() {
		c[6] = 0
	}
	virtio.Config(c[:], off, p)
}

// WriteConfig ignores the write: a modern driver doesn't change the address this way.
func (d *Device) WriteConfig(uint32, []byte) {}

// Start tells the connection what the guest has negotiated.
func (d *Device) Start(l *virtio.Link) error {
	d.held = nil
	if d.off != nil {
		if err := d.off.SetOffloads(l.Features); err != nil {
			return err
		}
	}
	d.link.Store(l)
	return nil
}

// Reset forgets the driver.
func (d *Device) Reset() { d.link.Store(nil) }

type saved struct {
	MAC net.HardwareAddr `json:"mac"`
}

// State and SetState carry nothing over that a guest depends on.
func (d *Device) State() ([]byte, error) {
	return json.Marshal(saved{net.HardwareAddr(d.config[:6])})
}

func (d *Device) SetState(state []byte) error {
	var s saved
	if err := json.Unmarshal(state, &s); err != nil {
		return errs.New(errs.Invalid, "net", "restore", err)
	}
	return nil
}

// Close closes the connection.
func (d *Device) Close() error {
	var err error
	d.closed.Do(func() {
		close(d.done)
		err = d.conn.Close()
		d.wg.Wait()
	})
	return err
}

// Stats returns the counters.
func (d *Device) Stats() Stats {
	n := func(i int) uint64 { return d.stats[i].Load() }
	return Stats{n(statReceived), n(statSent), n(statReceivedBytes), n(statSentBytes), n(statDropped)}
}

// read takes frames from the host until the connection ends; the guest sees the link go down then. While the guest has no
// buffers it stops, so that they wait, or are dropped, in the host's queue.
func (d *Device) read() {
	defer d.wg.Done()
	buf := make([]byte, headerSize+maxFrame)
	for {
		into := buf[headerSize:]
		if d.off != nil {
			into = buf
		}
		n, err := d.conn.Read(into)
		if err != nil {
			break
		}
		l := d.link.Load()
		if n == 0 || d.off != nil && n <= headerSize || l == nil {
			d.stats[statDropped].Add(1)
			continue
		}
		frame := bytes.Clone(buf[:len(buf)-len(into)+n])
		select {
		case d.frames <- frame:
			l.Kick(queueRx)
		case <-d.done:
			return
		}
	}
	d.down.Store(true)
	if l := d.link.Load(); l != nil {
		l.ConfigChanged()
	}
}

// Handle moves frames.
func (d *Device) Handle(ctx context.Context, q *virtio.Queue) error {
	if q.Index == queueTx {
		return d.send(ctx, q)
	}
	for {
		if !d.limits[queueRx].Wait(ctx, q.Signal) {
			return nil
		}
		frame := d.held
		d.held = nil
		if frame == nil {
			select {
			case frame = <-d.frames:
			default:
				return nil
			}
		}
		placed, err := d.receive(q, frame)
		if err != nil {
			return err
		}
		if !placed {
			d.held = frame
			return nil
		}
		d.limits[queueRx].Charge(len(frame) - headerSize)
	}
}

// receive puts a frame into the guest's buffers: one chain, or as many as it needs if the guest can merge them (5.1.6.4).
// false means that there are too few.
func (d *Device) receive(q *virtio.Queue, frame []byte) (bool, error) {
	merge := d.merges()
	chains := d.chain[:0]
	defer func() { d.chain = chains[:0] }()
	for room := 0; room < len(frame); {
		c, err := q.Pop()
		if c == nil {
			for _, held := range chains {
				held.Return()
			}
			return false, err
		}
		chains = append(chains, c)
		if c.Out.Len() < headerSize || !merge && c.Out.Len() < len(frame) {
			break
		}
		room += c.Out.Len()
	}
	last := chains[len(chains)-1]
	switch {
	case last.Out.Len() < headerSize:
		for _, c := range chains {
			c.Done(0)
		}
		return true, errs.Msg(errs.Invalid, "virtio", "net", "a receive buffer without room for a header")
	case !merge && last.Out.Len() < len(frame):
		last.Return() // it serves for a smaller one
		d.stats[statDropped].Add(1)
		return true, nil
	}
	binary.LittleEndian.PutUint16(frame[10:], uint16(len(chains)))
	d.stats[statReceived].Add(1)
	d.stats[statReceivedBytes].Add(uint64(len(frame) - headerSize))
	for _, c := range chains {
		n := c.Out.Write(frame)
		frame = frame[n:]
		c.Done(n)
	}
	return true, nil
}

func (d *Device) merges() bool {
	l := d.link.Load()
	return l != nil && l.Has(FeatureMergeRx)
}

// send passes the guest's frames on. A host that doesn't take them isn't waited for when the queue is to be drained: the frame
// goes back, and comes again.
func (d *Device) send(ctx context.Context, q *virtio.Queue) error {
	if c, ok := d.conn.(interface{ SetWriteDeadline(time.Time) error }); ok {
		_ = c.SetWriteDeadline(time.Time{})
		ended := make(chan struct{})
		stop := context.AfterFunc(ctx, func() {
			defer close(ended)
			_ = c.SetWriteDeadline(time.Unix(1, 0))
		})
		defer func() {
			if !stop() {
				<-ended // or it would end the next call's writes
			}
		}()
	}
	for {
		if !d.limits[queueTx].Wait(ctx, q.Signal) {
			return nil
		}
		c, err := q.Pop()
		if c == nil || err != nil {
			return err
		}
		n := c.In.Read(d.tx)
		frame := d.tx[:n]
		d.limits[queueTx].Charge(max(n-headerSize, 0))
		switch {
		case n < headerSize:
			c.Done(0)
			return errs.Msg(errs.Invalid, "virtio", "net", "a frame without a header")
		case c.In.Len() > 0, n == headerSize, d.off == nil && (frame[0] != 0 || frame[1] != 0): // too long, empty, or not offered
			d.stats[statDropped].Add(1)
			c.Done(0)
			continue
		case d.off == nil:
			frame = frame[headerSize:]
		}
		switch _, err := d.conn.Write(frame); {
		case err == nil:
			d.stats[statSent].Add(1)
			d.stats[statSentBytes].Add(uint64(n - headerSize))
		case errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() != nil:
			c.Return()
			return nil
		default:
			d.stats[statDropped].Add(1)
		}
		c.Done(0)
	}
}
