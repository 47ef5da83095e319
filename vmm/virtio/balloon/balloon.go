// Package balloon is the virtio memory balloon (virtio 1.2, section 5.5): the guest gives memory to the host.
//
// It does so in two ways. It reports pages that it has freed (free page reporting): the host takes what they held, the guest uses them
// again whenever it likes, and finds zeros. And it inflates the balloon, up to a target that the host sets, with pages that it doesn't use
// until it deflates the balloon again; one that is short of memory may deflate it by itself. What the host does with either is the same:
// it discards the pages.
//
// A guest that tells lies loses what it has in its own memory, and nothing else: addresses that aren't its memory are a fault. Which pages
// are in the balloon isn't kept, only how many the guest says there are.
package balloon

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/virtio"
)

// PageSize is the unit of the balloon, in bytes, whatever the guest's pages are.
const PageSize = 4 << 10

// Feature bits (5.5.3).
const (
	FeatureStats        = 1
	FeatureDeflateOnOOM = 2
	FeaturePoison       = 4 // the guest says what it fills free pages with
	FeatureReporting    = 5
)

// Queues. Those of features that weren't negotiated aren't counted by Linux, whereas the specification gives each its number: reports may
// come from any behind the first two but that of statistics.
const (
	queueInflate = 0
	queueDeflate = 1
	queueStats   = 2
	queues       = 5
	queueSize    = 128
)

// maxPages is how many pages one request may put into the balloon, or take out.
const maxPages = 16 << 10

// Options configure a device.
type Options struct {
	// Discard takes what n bytes of guest memory at addr hold, so that they read as zeros, or leaves them as they are; it returns how many it
	// took. n and addr are what the guest says: an error of kind Invalid says that this isn't its memory, and is a fault. Others are
	// counted. It is called by one goroutine at a time.
	Discard func(addr, n uint64) (uint64, error)
}

// Device is a balloon.
type Device struct {
	discard func(addr, n uint64) (uint64, error)

	mu     sync.Mutex
	link   *virtio.Link
	config config
	asked  bool // the guest is to say its statistics anew
	said   bool // what it says is in Status.Guest
	status Status
}

// config is the configuration space (5.5.4).
type config struct {
	Target uint32 `json:"target,omitempty"` // num_pages
	Actual uint32 `json:"actual,omitempty"`
	Poison uint32 `json:"poison,omitempty"`
}

const configSize = 16

// Status is what the host knows of a balloon.
type Status struct {
	Driver    bool   // the guest has one
	Target    uint64 // bytes that the balloon shall have,
	Actual    uint64 // and has, says the guest
	Reports   uint64 // requests that reported free pages; counted, as all that follows, since the device was made
	Reported  uint64 // bytes in them
	Inflated  uint64 // bytes that were put into the balloon
	Discarded uint64 // bytes that the host took
	Failures  uint64 // attempts to
	Guest     Guest  // what the guest said last
}

// Guest are statistics by the guest, in bytes where nothing else is said; nobody checks them. What it hasn't said is 0.
type Guest struct {
	SwapIn, SwapOut          uint64
	MajorFaults, MinorFaults uint64 // how many
	Free, Total, Available   uint64
	Caches                   uint64
}

// New returns a device.
func New(o Options) *Device { return &Device{discard: o.Discard} }

// ID and the others implement virtio.Device.
func (d *Device) ID() uint32 { return virtio.IDBalloon }

func (d *Device) Features() uint64 {
	return 1<<FeatureStats | 1<<FeatureDeflateOnOOM | 1<<FeaturePoison | 1<<FeatureReporting
}

func (d *Device) Queues() []uint16 { return slices.Repeat([]uint16{queueSize}, queues) }

// ReadConfig shows the target, and what the guest has written.
func (d *Device) ReadConfig(off uint32, p []byte) {
	d.mu.Lock()
	space := d.config.encode()
	d.mu.Unlock()
	virtio.Config(space[:], off, p)
}

func (c *config) encode() (b [configSize]byte) {
	binary.LittleEndian.PutUint32(b[0:], c.Target)
	binary.LittleEndian.PutUint32(b[4:], c.Actual)
	binary.LittleEndian.PutUint32(b[12:], c.Poison)
	return b
}

// WriteConfig takes the balloon's size and the poison, which are the guest's.
func (d *Device) WriteConfig(off uint32, p []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if off >= configSize {
		return
	}
	space := d.config.encode()
	copy(space[off:], p)
	d.config.Actual, d.config.Poison = binary.LittleEndian.Uint32(space[4:]), binary.LittleEndian.Uint32(space[12:])
}

// Start implements virtio.Device.
func (d *Device) Start(l *virtio.Link) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.link, d.said, d.status.Driver = l, false, true
	return nil
}

// Reset forgets the driver, and what it had in the balloon.
func (d *Device) Reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.link, d.status.Driver = nil, false
	d.config.Actual, d.config.Poison, d.status.Guest = 0, 0, Guest{}
}

// State and SetState carry over the configuration; the counters begin anew.
func (d *Device) State() ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return json.Marshal(d.config)
}

func (d *Device) SetState(state []byte) error {
	var c config
	if err := json.Unmarshal(state, &c); err != nil {
		return errs.New(errs.Invalid, "balloon", "restore", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.config = c
	return nil
}

// Close implements virtio.Device.
func (d *Device) Close() error { return nil }

// SetTarget tells the guest how large the balloon shall be, in bytes, whole pages up to 16 TiB. It does what it can, in its own time.
func (d *Device) SetTarget(n uint64) error {
	if n/PageSize > 1<<32-1 {
		return errs.Msg(errs.Invalid, "balloon", fmt.Sprint(n), "it has at most 16 TiB")
	}
	d.mu.Lock()
	l, changed := d.link, d.config.Target != uint32(n/PageSize)
	d.config.Target = uint32(n / PageSize)
	d.mu.Unlock()
	if changed && l != nil {
		l.ConfigChanged()
	}
	return nil
}

// Ask has the guest say its statistics anew, in its own time.
func (d *Device) Ask() {
	d.mu.Lock()
	l := d.link
	d.asked = true
	d.mu.Unlock()
	if l != nil {
		l.Kick(queueStats)
	}
}

// Status returns what is known.
func (d *Device) Status() Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.status
	s.Target, s.Actual = uint64(d.config.Target)*PageSize, uint64(d.config.Actual)*PageSize
	return s
}

// Handle serves a queue.
func (d *Device) Handle(ctx context.Context, q *virtio.Queue) error {
	serve := d.report
	switch {
	case q.Index == queueInflate:
		serve = d.inflate
	case q.Index == queueDeflate:
		serve = d.deflate
	case q.Index == queueStats && d.has(FeatureStats):
		return d.stats(q)
	case !d.has(FeatureReporting):
		serve = func(*virtio.Chain) error {
			return errs.Msg(errs.Invalid, "virtio", "balloon", "a request on a queue of a feature that wasn't negotiated")
		}
	}
	for {
		c, err := q.Pop()
		if c == nil || err != nil {
			return err
		}
		err = serve(c)
		c.Done(0)
		if err != nil {
			return err
		}
		q.Signal()
	}
}

func (d *Device) has(bit uint) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.link != nil && d.link.Has(bit)
}

// take discards a range, and counts.
func (d *Device) take(addr, n uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock() // queues are served at the same time
	done, err := d.discard(addr, n)
	d.status.Discarded += done
	switch {
	case err == nil:
		return nil
	case errs.Is(err, errs.Invalid):
		return errs.New(errs.Invalid, "virtio", "balloon", err)
	}
	d.status.Failures++
	return nil
}

// report takes free pages. The guest may expect to find in them again what it filled them with: zeros, unless it said otherwise.
func (d *Device) report(c *virtio.Chain) error {
	d.mu.Lock()
	d.status.Reports++
	poisoned := d.link != nil && d.link.Has(FeaturePoison) && d.config.Poison != 0
	d.mu.Unlock()
	return c.Writes(func(addr, n uint64) error {
		d.mu.Lock()
		d.status.Reported += n
		d.mu.Unlock()
		if poisoned {
			return nil
		}
		return d.take(addr, n)
	})
}

// pages reads a list of page numbers, and returns it in order.
func pages(c *virtio.Chain) ([]uint32, error) {
	n := c.In.Len()
	if n%4 != 0 || n > 4*maxPages {
		return nil, errs.Msg(errs.Invalid, "virtio", "balloon", fmt.Sprintf("a list of pages of %d bytes", n))
	}
	b := make([]byte, n)
	c.In.Read(b)
	list := make([]uint32, n/4)
	for i := range list {
		list[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// inflate takes pages, those that are neighbours at once.
func (d *Device) inflate(c *virtio.Chain) error {
	list, err := pages(c)
	if err != nil {
		return err
	}
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n] == list[0]+uint32(n) {
			n++
		}
		if err := d.take(uint64(list[0])*PageSize, uint64(n)*PageSize); err != nil {
			return err
		}
		d.mu.Lock()
		d.status.Inflated += uint64(n) * PageSize
		d.mu.Unlock()
		list = list[n:]
	}
	return nil
}

// deflate has nothing to do: pages come back when they are used, whenever that is.
func (d *Device) deflate(c *virtio.Chain) error {
	_, err := pages(c)
	return err
}

// Tags of statistics (5.5.6.3), and what they are at most in a request.
const (
	tagSwapIn, tagSwapOut         = 0, 1
	tagMajorFaults, tagMinorFault = 2, 3
	tagFree, tagTotal, tagAvail   = 4, 5, 6
	tagCaches                     = 7

	statSize = 10
	maxStats = 64
)

// stats reads what the guest says, and keeps its buffer until it shall say it anew: it is given back then.
func (d *Device) stats(q *virtio.Queue) error {
	for {
		c, err := q.Pop()
		if c == nil || err != nil {
			return err
		}
		d.mu.Lock()
		if !d.said {
			d.said, d.status.Guest = true, readStats(c)
		}
		if !d.asked {
			d.mu.Unlock()
			c.Return()
			return nil
		}
		d.said, d.asked = false, false
		d.mu.Unlock()
		c.Done(0)
		q.Signal()
	}
}

// readStats reads a list of tags and values.
func readStats(c *virtio.Chain) (g Guest) {
	fields := [...]*uint64{tagSwapIn: &g.SwapIn, tagSwapOut: &g.SwapOut, tagMajorFaults: &g.MajorFaults, tagMinorFault: &g.MinorFaults, tagFree: &g.Free,
		tagTotal: &g.Total, tagAvail: &g.Available, tagCaches: &g.Caches}
	var b [statSize]byte
	for range maxStats {
		if c.In.Read(b[:]) < statSize {
			break
		}
		if tag := int(binary.LittleEndian.Uint16(b[:])); tag < len(fields) {
			*fields[tag] = binary.LittleEndian.Uint64(b[2:])
		}
	}
	return g
}
