// Package fs is the virtio file system device (virtio 1.2, section 5.11): FUSE requests of the guest, handed as bytes to a
// Handler that answers them. The device knows nothing of their meaning but the header's length, number and error.
//
// Requests are handled at the same time, up to a limit, since one may wait for another (a lock, for its release); those on the
// high-priority queue are handled in order, before anything else waits. There is no DAX window, and no notification queue.
package fs

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"sync"
	"syscall"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/virtio"
)

// Limits.
const (
	MaxTag      = 36           // bytes of a tag
	MaxTransfer = 1<<20 + 4096 // bytes of one request, and of one reply: 256 pages and the headers
	MinRequest  = 40           // struct fuse_in_header, with which every request begins
	MaxQueues   = 8
	MaxInFlight = 64 // requests handled at the same time; more wait in the queue
)

// Handler answers FUSE requests. It is called from many goroutines.
type Handler interface {
	// Handle answers the request in, which has at least the header of 40 bytes, by writing the reply to the beginning of out,
	// and returns its length: 0 for a request without a reply, such as FORGET. The guest has room for len(out) bytes. Neither
	// slice may be kept.
	//
	// ctx ends when the device is drained, for a pause or a reset. A request that would wait on must then be given up: -1 says
	// that nothing was done, and that the request is to be handed over again after the pause, here or in a fork.
	Handle(ctx context.Context, in, out []byte) (n int)
}

// HandlerFunc is a Handler.
type HandlerFunc func(ctx context.Context, in, out []byte) int

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, in, out []byte) int { return f(ctx, in, out) }

// Options configure a device.
type Options struct {
	// Tag is the name by which the guest mounts it: mount -t virtiofs TAG DIR. From 1 to 36 bytes, without zeros.
	Tag string
	// Queues is how many request queues there are; 0 is 1.
	Queues int
}

// Device is a file system device.
type Device struct {
	tag     string
	queues  int
	handler Handler
	slots   chan struct{}
	wg      sync.WaitGroup
	buffers sync.Pool
}

const outHeader = 16 // struct fuse_out_header

// New returns a device. The handler remains the caller's.
func New(h Handler, o Options) (*Device, error) {
	if len(o.Tag) == 0 || len(o.Tag) > MaxTag {
		return nil, errs.Msg(errs.Invalid, "fs", "tag", "it must have 1 to 36 bytes")
	}
	for i := range len(o.Tag) {
		if o.Tag[i] == 0 {
			return nil, errs.Msg(errs.Invalid, "fs", "tag", "it has a zero byte")
		}
	}
	if o.Queues < 0 || o.Queues > MaxQueues {
		return nil, errs.Msg(errs.Invalid, "fs", "queues", "there can be 1 to 8")
	}
	d := &Device{tag: o.Tag, queues: max(o.Queues, 1), handler: h, slots: make(chan struct{}, MaxInFlight)}
	d.buffers.New = func() any { return new(buffer) }
	return d, nil
}

// ID and the others implement virtio.Device.
func (d *Device) ID() uint32       { return virtio.IDFS }
func (d *Device) Features() uint64 { return 0 }

// Queues are the high-priority one and those of requests. A chain holds a page for each descriptor at worst, so that the
// largest request fits.
func (d *Device) Queues() []uint16 {
	q := []uint16{128}
	for range d.queues {
		q = append(q, 512)
	}
	return q
}

// ReadConfig shows the tag and the number of request queues.
func (d *Device) ReadConfig(off uint32, p []byte) {
	var c [MaxTag + 4]byte
	copy(c[:], d.tag)
	binary.LittleEndian.PutUint32(c[MaxTag:], uint32(d.queues))
	virtio.Config(c[:], off, p)
}

func (d *Device) WriteConfig(uint32, []byte) {}
func (d *Device) Start(*virtio.Link) error   { return nil }
func (d *Device) Reset()                     {}

type saved struct {
	Tag string `json:"tag"`
}

// State describes the device; what the guest has open is the handler's state.
func (d *Device) State() ([]byte, error) { return json.Marshal(saved{d.tag}) }

// SetState refuses another tag.
func (d *Device) SetState(state []byte) error {
	var s saved
	if err := json.Unmarshal(state, &s); err != nil {
		return errs.New(errs.Invalid, "fs", "restore", err)
	}
	if s.Tag != d.tag {
		return errs.Msg(errs.Invalid, "fs", "restore", "the state is of the file system "+s.Tag)
	}
	return nil
}

// Close waits for the last replies.
func (d *Device) Close() error {
	d.wg.Wait()
	return nil
}

type buffer struct{ in, out []byte }

// room returns n bytes of b, which it replaces if it is too small.
func room(b *[]byte, n int) []byte {
	if cap(*b) < n {
		*b = make([]byte, max(n, 2*cap(*b), 8192))
	}
	return (*b)[:n]
}

// Handle takes requests and has them answered.
func (d *Device) Handle(ctx context.Context, q *virtio.Queue) error {
	for {
		c, err := q.Pop()
		if c == nil || err != nil {
			return err
		}
		if c.In.Len() < MinRequest {
			c.Done(0)
			return errs.Msg(errs.Invalid, "virtio", "fs", "a request without a header")
		}
		if q.Index == 0 {
			if !d.answer(ctx, c) {
				return nil
			}
			continue
		}
		select {
		case d.slots <- struct{}{}:
		case <-ctx.Done():
			c.Return()
			return nil
		}
		d.wg.Add(1)
		go func() {
			defer d.wg.Done()
			d.answer(ctx, c)
			<-d.slots
			q.Signal()
		}()
	}
}

// answer has one request answered, and gives the chain back; false if it was returned unanswered.
func (d *Device) answer(ctx context.Context, c *virtio.Chain) bool {
	b := d.buffers.Get().(*buffer)
	defer d.buffers.Put(b)
	space := min(c.Out.Len(), MaxTransfer)
	out := room(&b.out, space)
	var n int
	if c.In.Len() > MaxTransfer {
		var header [MinRequest]byte
		c.In.Read(header[:])
		n = Refuse(header[:], out, syscall.E2BIG)
	} else {
		in := room(&b.in, c.In.Len())
		c.In.Read(in)
		n = d.handler.Handle(ctx, in, out)
		if n < 0 {
			if ctx.Err() != nil {
				c.Return()
				return false
			}
			n = Refuse(in, out, syscall.EIO)
		}
		if n > space {
			n = Refuse(in, out, syscall.EIO)
		}
	}
	c.Done(c.Out.Write(out[:n]))
	return true
}

// Refuse writes a reply that is an error only, if there is room for one, and returns its length.
func Refuse(in, out []byte, errno syscall.Errno) int {
	if len(out) < outHeader || len(in) < 16 {
		return 0
	}
	binary.LittleEndian.PutUint32(out, outHeader)
	binary.LittleEndian.PutUint32(out[4:], uint32(-int32(errno)))
	copy(out[8:16], in[8:16]) // the request's number
	return outHeader
}
