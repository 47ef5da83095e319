// Package block is the virtio block device (virtio 1.2, section 5.2) over a Disk: a file of the host, or an Overlay, which
// keeps what the guest writes apart from what many guests share.
//
// A sector is 512 bytes, whatever the disk's own blocks are. A flush is an fsync of what lies beneath; without the flush
// feature every write is one. What the disk can't do comes back to the guest as an I/O error; it is counted, and no fault.
package block

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"sync/atomic"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/virtio"
	"agentrun.dev/vmm/virtio/rate"
)

// Sector is the unit of addresses and sizes, in bytes.
const Sector = 512

// Limits that the driver is told.
const (
	QueueSize        = 256
	maxSegments      = QueueSize - 2
	maxDiscard       = 4 << 20  // sectors of one segment: 2 GiB
	maxZeroes        = 64 << 10 // sectors of one segment: 32 MiB, since they may have to be written
	maxRanges        = 32       // segments of one discard or write-zeroes request
	discardAlignment = BlockSize / Sector
)

// Feature bits (5.2.3).
const (
	FeatureSegMax      = 2
	FeatureReadOnly    = 5
	FeatureBlockSize   = 6
	FeatureFlush       = 9
	FeatureTopology    = 10
	FeatureDiscard     = 13
	FeatureWriteZeroes = 14
)

// Request types and status values (5.2.6).
const (
	typeIn          = 0
	typeOut         = 1
	typeFlush       = 4
	typeGetID       = 8
	typeDiscard     = 11
	typeWriteZeroes = 13

	statusOK          = 0
	statusIOError     = 1
	statusUnsupported = 2
)

// Options configure a device.
type Options struct {
	// Serial is what the guest sees as the disk's serial number (/sys/block/*/serial); at most 20 bytes count.
	Serial string
	// Rate bounds requests and the bytes that they read, write, zero or discard. A restored device begins with full buckets.
	Rate rate.Limit
}

// Disk is what a device stores in. The device asks for whole sectors within Size only, one request at a time.
type Disk interface {
	// Size is the length in bytes; what goes beyond a multiple of 512 isn't used.
	Size() int64
	ReadOnly() bool
	// ReadAt fills the buffers, WriteAt stores them, in order from off.
	ReadAt(bufs [][]byte, off int64) error
	WriteAt(bufs [][]byte, off int64) error
	// Zero makes a range read as zeros; Discard may, and frees what it can.
	Zero(off, n int64) error
	Discard(off, n int64) error
	// Sync makes what was written durable.
	Sync() error
	Close() error
}

// Stats counts what a device did.
type Stats struct {
	Reads, Writes, Flushes, Errors uint64
	ReadBytes, WrittenBytes        uint64
}

// Device is a block device.
type Device struct {
	disk   Disk
	rate   *rate.Limiter
	serial [20]byte
	size   int64 // whole sectors, in bytes
	config []byte

	flush   atomic.Bool // the driver flushes, so that writes needn't be durable
	stats   [6]atomic.Uint64
	lastErr atomic.Pointer[error]
}

const (
	statReads = iota
	statWrites
	statFlushes
	statErrors
	statReadBytes
	statWrittenBytes
)

// New returns a device of a disk, which it closes.
func New(disk Disk, o Options) *Device {
	d := &Device{disk: disk, size: disk.Size() &^ (Sector - 1), rate: rate.New(o.Rate)}
	copy(d.serial[:], o.Serial)
	c := make([]byte, 60)
	binary.LittleEndian.PutUint64(c, uint64(d.size/Sector))
	binary.LittleEndian.PutUint32(c[12:], maxSegments)
	binary.LittleEndian.PutUint32(c[20:], Sector)
	c[24] = 3 // a physical block is 2³ logical ones
	binary.LittleEndian.PutUint16(c[26:], 1)
	binary.LittleEndian.PutUint16(c[34:], 1)
	binary.LittleEndian.PutUint32(c[36:], maxDiscard)
	binary.LittleEndian.PutUint32(c[40:], maxRanges)
	binary.LittleEndian.PutUint32(c[44:], discardAlignment)
	binary.LittleEndian.PutUint32(c[48:], maxZeroes)
	binary.LittleEndian.PutUint32(c[52:], maxRanges)
	c[56] = 1 // write zeroes may free blocks
	d.config = c
	return d
}

// ID and the others implement virtio.Device.
func (d *Device) ID() uint32 { return virtio.IDBlock }

// Features depend on whether the disk can be written.
func (d *Device) Features() uint64 {
	f := uint64(1<<FeatureSegMax | 1<<FeatureBlockSize | 1<<FeatureFlush | 1<<FeatureTopology)
	if d.disk.ReadOnly() {
		return f | 1<<FeatureReadOnly
	}
	return f | 1<<FeatureDiscard | 1<<FeatureWriteZeroes
}

func (d *Device) Queues() []uint16                { return []uint16{QueueSize} }
func (d *Device) ReadConfig(off uint32, p []byte) { virtio.Config(d.config, off, p) }
func (d *Device) WriteConfig(uint32, []byte)      {}
func (d *Device) Reset()                          {}

// Start notes whether the driver flushes.
func (d *Device) Start(l *virtio.Link) error {
	d.flush.Store(l.Has(FeatureFlush))
	return nil
}

// saved is a device's state: enough to notice another disk.
type saved struct {
	Size     int64 `json:"size"`
	ReadOnly bool  `json:"readOnly,omitempty"`
}

// State describes the disk; its contents are the owner's to keep.
func (d *Device) State() ([]byte, error) { return json.Marshal(saved{d.size, d.disk.ReadOnly()}) }

// SetState refuses a disk of another size.
func (d *Device) SetState(state []byte) error {
	var s saved
	if err := json.Unmarshal(state, &s); err != nil {
		return errs.New(errs.Invalid, "block", "restore", err)
	}
	if s.Size != d.size || s.ReadOnly != d.disk.ReadOnly() {
		return errs.Msg(errs.Invalid, "block", "restore", "the disk has another size or mode than when the state was taken")
	}
	return nil
}

// Close closes the disk.
func (d *Device) Close() error { return d.disk.Close() }

// Stats returns the counters.
func (d *Device) Stats() Stats {
	n := func(i int) uint64 { return d.stats[i].Load() }
	return Stats{n(statReads), n(statWrites), n(statFlushes), n(statErrors), n(statReadBytes), n(statWrittenBytes)}
}

// Err returns the last error of the disk.
func (d *Device) Err() error {
	if p := d.lastErr.Load(); p != nil {
		return *p
	}
	return nil
}

// errUnsupported is the status of requests that we don't know.
var errUnsupported = errors.New("unsupported request")

// Handle serves requests.
func (d *Device) Handle(ctx context.Context, q *virtio.Queue) error {
	for {
		if !d.rate.Wait(ctx, q.Signal) {
			return nil // it comes again after the pause
		}
		c, err := q.Pop()
		if c == nil || err != nil {
			return err
		}
		status := c.Out.Last()
		var header [16]byte
		if status == nil || c.In.Read(header[:]) < len(header) {
			c.Done(0)
			return errs.Msg(errs.Invalid, "virtio", "block", "a request without a header or a place for its status")
		}
		d.rate.Charge(c.In.Len() + c.Out.Len())
		n, err := d.request(binary.LittleEndian.Uint32(header[:]), binary.LittleEndian.Uint64(header[8:]), c)
		switch {
		case err == nil:
			status[0] = statusOK
		case errors.Is(err, errUnsupported):
			status[0] = statusUnsupported
		default:
			status[0] = statusIOError
			d.stats[statErrors].Add(1)
			d.lastErr.Store(&err)
		}
		c.Done(n + 1)
		q.Signal()
	}
}

// request does one, and returns how many bytes it put into the guest's buffers.
func (d *Device) request(kind uint32, sector uint64, c *virtio.Chain) (int, error) {
	switch kind {
	case typeIn:
		n := c.Out.Len()
		if err := d.check(sector, uint64(n)); err != nil {
			return 0, err
		}
		d.stats[statReads].Add(1)
		d.stats[statReadBytes].Add(uint64(n))
		return n, d.disk.ReadAt(c.Out.Segments(), int64(sector)*Sector)
	case typeOut:
		n := c.In.Len()
		if err := d.check(sector, uint64(n)); err != nil {
			return 0, err
		}
		if d.disk.ReadOnly() {
			return 0, errs.Msg(errs.Denied, "block", "write", "the disk is read-only")
		}
		d.stats[statWrites].Add(1)
		d.stats[statWrittenBytes].Add(uint64(n))
		return 0, d.durable(d.disk.WriteAt(c.In.Segments(), int64(sector)*Sector))
	case typeFlush:
		d.stats[statFlushes].Add(1)
		if d.disk.ReadOnly() {
			return 0, nil
		}
		return 0, d.disk.Sync()
	case typeGetID:
		return c.Out.Write(d.serial[:]), nil
	case typeDiscard, typeWriteZeroes:
		if d.disk.ReadOnly() {
			return 0, errUnsupported
		}
		return 0, d.durable(d.ranges(kind, c))
	}
	return 0, errUnsupported
}

// durable makes a write of a driver that doesn't flush durable.
func (d *Device) durable(err error) error {
	if err == nil && !d.flush.Load() {
		err = d.disk.Sync()
	}
	return err
}

// check finds ranges that aren't whole sectors of the disk.
func (d *Device) check(sector, n uint64) error {
	if sector > uint64(d.size/Sector) || n%Sector != 0 || n > uint64(d.size)-sector*Sector {
		return errs.Msg(errs.Invalid, "block", "request", "not within the disk")
	}
	return nil
}

// ranges serves discard and write zeroes, whose data is a list of {sector, sectors, flags}. All are checked before the first
// is done.
func (d *Device) ranges(kind uint32, c *virtio.Chain) error {
	const entry = 16
	n := c.In.Len()
	if n == 0 || n%entry != 0 || n > maxRanges*entry {
		return errs.Msg(errs.Invalid, "block", "discard", "a list of the wrong length")
	}
	list := make([]byte, n)
	c.In.Read(list)
	limit, known := uint32(maxDiscard), uint32(0)
	if kind == typeWriteZeroes {
		limit, known = maxZeroes, 1 // the flag that allows to unmap
	}
	for r := range chunks(list, entry) {
		sectors, flags := binary.LittleEndian.Uint32(r[8:]), binary.LittleEndian.Uint32(r[12:])
		if flags&^known != 0 {
			return errUnsupported
		}
		if sectors > limit {
			return errs.Msg(errs.TooLarge, "block", "discard", "too many sectors")
		}
		if err := d.check(binary.LittleEndian.Uint64(r), uint64(sectors)*Sector); err != nil {
			return err
		}
	}
	for r := range chunks(list, entry) {
		d.rate.Charge(int(binary.LittleEndian.Uint32(r[8:])) * Sector)
		off, length := int64(binary.LittleEndian.Uint64(r))*Sector, int64(binary.LittleEndian.Uint32(r[8:]))*Sector
		do := d.disk.Discard
		if kind == typeWriteZeroes {
			do = d.disk.Zero
		}
		if length > 0 {
			if err := do(off, length); err != nil {
				return err
			}
		}
	}
	return nil
}

func chunks(b []byte, n int) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for ; len(b) >= n; b = b[n:] {
			if !yield(b[:n]) {
				return
			}
		}
	}
}

// Serial returns the serial number.
func (d *Device) Serial() string { return string(bytes.TrimRight(d.serial[:], "\x00")) }
