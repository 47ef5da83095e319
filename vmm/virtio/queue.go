package virtio

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"agentrun.dev/errs"
)

// Flags of descriptors and rings (section 2.7).
const (
	descNext     = 1
	descWrite    = 2
	descIndirect = 4

	availNoInterrupt = 1
)

const descSize = 16

// ringSizes returns the bytes of the three areas of a queue with n entries (section 2.7).
func ringSizes(n uint64) (desc, avail, used uint64) { return descSize * n, 6 + 2*n, 6 + 8*n }

// Queue is one virtqueue of a Link. Pop belongs to Handle; what gives chains back may be called from anywhere.
type Queue struct {
	Index int

	link     *Link
	size     uint16
	at       place
	eventIdx bool
	indirect bool
	kick     chan struct{} // holds one announcement
	stopped  atomic.Bool   // the driver took the queue away

	mu         sync.Mutex
	desc       []byte
	avail      []byte
	used       []byte
	nextAvail  uint16 // the next entry of the available ring to take
	nextUsed   uint16 // the next entry of the used ring to fill
	signalled  uint16 // nextUsed when the driver was last interrupted, or could have been
	returned   []uint16
	held       []bool // by head: with the device
	free       []*Chain
	fence      atomic.Uint32
	interrupts uint64
}

// place is where the driver put a queue.
type place struct{ Desc, Driver, Device uint64 }

func newQueue(l *Link, index int, size uint16, at place) *Queue {
	return &Queue{Index: index, link: l, size: size, at: at, kick: make(chan struct{}, 1), held: make([]bool, size),
		eventIdx: l.Has(FeatureEventIdx), indirect: l.Has(FeatureIndirect)}
}

// windows returns the three areas, or why they can't be.
func windows(mem Memory, size uint16, at place) (desc, avail, used []byte, err error) {
	if at.Desc%16 != 0 || at.Driver%2 != 0 || at.Device%4 != 0 {
		return nil, nil, nil, fault("queue", "misaligned ring")
	}
	nd, na, nu := ringSizes(uint64(size))
	if desc, err = window(mem, at.Desc, nd); err == nil {
		if avail, err = window(mem, at.Driver, na); err == nil {
			used, err = window(mem, at.Device, nu)
		}
	}
	return desc, avail, used, err
}

// window asks for guest memory and doesn't trust the answer's length.
func window(mem Memory, addr, n uint64) ([]byte, error) {
	b, err := mem.Bytes(addr, n)
	if err != nil {
		return nil, err
	}
	if uint64(len(b)) != n {
		return nil, fault("memory", fmt.Sprintf("%d bytes at %#x: a window of %d", n, addr, len(b)))
	}
	return b, nil
}

// mapRings looks the rings up again: memory may have been replaced by a restored virtual machine's.
func (q *Queue) mapRings() error {
	desc, avail, used, err := windows(q.link.m.mem, q.size, q.at)
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.desc, q.avail, q.used = desc, avail, used
	return nil
}

// Size returns the number of entries.
func (q *Queue) Size() int { return int(q.size) }

// Kick makes Handle run (again).
func (q *Queue) Kick() {
	select {
	case q.kick <- struct{}{}:
	default:
	}
}

// Pop takes the next chain that the driver made available; nil if there is none, or if the queue is being drained. The
// device owes the chain back. An error is the driver's fault, for Handle to return.
func (q *Queue) Pop() (*Chain, error) {
	if !q.link.usable() || q.stopped.Load() {
		return nil, nil
	}
	if q.link.draining.Load() {
		q.Kick() // come again after the pause
		return nil, nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	head, ok, err := q.next()
	if !ok || err != nil {
		return nil, err
	}
	if int(head) >= int(q.size) || q.held[head] {
		return nil, q.fault("head %d is out of range or in use", head)
	}
	c := q.chain()
	if err := q.walk(c, head); err != nil {
		return nil, err
	}
	c.head, q.held[head] = head, true
	q.link.hold()
	return c, nil
}

// Watch returns the driver's available index and asks to be notified when it changes, so that a device can wait for the driver
// to add something without taking what is there.
func (q *Queue) Watch() uint16 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.link.usable() || q.stopped.Load() {
		return q.nextAvail
	}
	idx := loadIndex(q.avail)
	if q.eventIdx {
		q.notifyAt(idx)
		idx = loadIndex(q.avail) // if it has changed meanwhile, that is what the caller wants to know
	}
	return idx
}

// notifyAt asks to be notified when the available index goes beyond idx; the caller then looks at it once more.
func (q *Queue) notifyAt(idx uint16) {
	// What is there already isn't written again: a machine that goes on after a pause, or as a fork, would have a page of its own of each of its
	// idle queues.
	if event := q.used[4+8*int(q.size):]; loadShort(event) != idx {
		storeShort(event, idx)
		q.dirty(q.at.Device+4+8*uint64(q.size), 2)
	}
	q.fence.Add(1) // the store must be seen before the next load happens
}

// next returns the head of the next chain. Where there is none it asks to be notified of one, and looks again, since the
// driver may have added it meanwhile.
func (q *Queue) next() (head uint16, ok bool, err error) {
	if n := len(q.returned); n > 0 {
		head, q.returned = q.returned[0], q.returned[1:]
		return head, true, nil
	}
	idx := loadIndex(q.avail)
	if idx == q.nextAvail {
		if !q.eventIdx {
			return 0, false, nil
		}
		q.notifyAt(q.nextAvail)
		if idx = loadIndex(q.avail); idx == q.nextAvail {
			return 0, false, nil
		}
	}
	if idx-q.nextAvail > q.size {
		return 0, false, q.fault("available index %d is beyond %d + %d", idx, q.nextAvail, q.size)
	}
	head = loadShort(q.avail[4+2*int(q.nextAvail%q.size):])
	q.nextAvail++
	return head, true, nil
}

// chain returns an empty chain.
func (q *Queue) chain() *Chain {
	if n := len(q.free); n > 0 {
		c := q.free[n-1]
		q.free = q.free[:n-1]
		return c
	}
	return &Chain{q: q}
}

type descriptor struct {
	addr        uint64
	n           uint32
	flags, next uint16
}

// load copies descriptor i out of a table.
func load(table []byte, i uint16) descriptor {
	var d [descSize]byte
	copy(d[:], table[int(i)*descSize:])
	return descriptor{binary.LittleEndian.Uint64(d[:]), binary.LittleEndian.Uint32(d[8:]),
		binary.LittleEndian.Uint16(d[12:]), binary.LittleEndian.Uint16(d[14:])}
}

// walk collects the buffers of the chain that begins at head.
func (q *Queue) walk(c *Chain, head uint16) error {
	c.in, c.out, c.writes = c.in[:0], c.out[:0], c.writes[:0]
	table, entries, limit := q.desc, int(q.size), int(q.size)
	indirect, total, next := false, uint64(0), head
	for steps := 0; ; steps++ {
		if steps >= limit {
			return q.fault("chain at %d loops or has over %d descriptors", head, limit)
		}
		if int(next) >= entries {
			return q.fault("chain at %d leads to descriptor %d of %d", head, next, entries)
		}
		d := load(table, next)
		if d.flags&descIndirect != 0 {
			// An indirect table replaces the rest of the chain, and holds no other (2.7.5.3.1).
			if !q.indirect || indirect || d.flags&descNext != 0 || d.n == 0 || d.n%descSize != 0 || d.n > MaxChain*descSize {
				return q.fault("chain at %d: a bad indirect descriptor of %d bytes", head, d.n)
			}
			var err error
			if table, err = window(q.link.m.mem, d.addr, uint64(d.n)); err != nil {
				return q.outside(head, err)
			}
			indirect, entries, next = true, int(d.n/descSize), 0
			limit, steps = entries, -1
			continue
		}
		if total += uint64(d.n); total > MaxBytes {
			return q.fault("chain at %d has over %d bytes", head, MaxBytes)
		}
		if err := q.add(c, head, d); err != nil {
			return err
		}
		if d.flags&descNext == 0 {
			break
		}
		next = d.next
	}
	c.In, c.Out = buffers(c.in), buffers(c.out)
	return nil
}

// add appends one descriptor's buffer to the chain.
func (q *Queue) add(c *Chain, head uint16, d descriptor) error {
	write := d.flags&descWrite != 0
	if !write && len(c.writes) > 0 {
		return q.fault("chain at %d has a readable buffer behind a writable one", head)
	}
	if d.n == 0 { // of no use, but no harm
		return nil
	}
	b, err := window(q.link.m.mem, d.addr, uint64(d.n))
	if err != nil {
		return q.outside(head, err)
	}
	if write {
		c.out, c.writes = append(c.out, b), append(c.writes, span{d.addr, uint64(d.n)})
	} else {
		c.in = append(c.in, b)
	}
	return nil
}

func buffers(segs [][]byte) Buffers {
	b := Buffers{segs: segs}
	for _, s := range segs {
		b.n += len(s)
	}
	return b
}

// done puts a chain on the used ring.
func (q *Queue) done(c *Chain, written int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.link.usable() && !q.stopped.Load() {
		if written > 0 {
			for _, s := range c.writes {
				q.dirty(s.addr, s.n)
			}
		}
		slot := 4 + 8*int(q.nextUsed%q.size)
		binary.LittleEndian.PutUint32(q.used[slot:], uint32(c.head))
		binary.LittleEndian.PutUint32(q.used[slot+4:], uint32(written))
		q.nextUsed++
		storeIndex(q.used, q.nextUsed)
		q.dirty(q.at.Device+uint64(slot), 8)
		q.dirty(q.at.Device, 4)
	}
	q.recycle(c)
}

func (q *Queue) unpop(c *Chain) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.returned = append(q.returned, c.head)
	q.recycle(c)
}

func (q *Queue) recycle(c *Chain) {
	q.held[c.head] = false
	if len(q.free) < 64 {
		q.free = append(q.free, c)
	}
}

// Signal interrupts the driver if it wants to hear of what was given back since the last time (2.7.7, 2.7.10). It is called
// for the device whenever Handle returns.
func (q *Queue) Signal() {
	q.mu.Lock()
	from, to := q.signalled, q.nextUsed
	wanted := from != to && q.link.usable()
	if wanted {
		q.signalled = to
		q.fence.Add(1) // the used index must be seen before the driver's wish is read
		if q.eventIdx {
			event := loadShort(q.avail[4+2*int(q.size):])
			wanted = to-event-1 < to-from
		} else {
			wanted = loadShort(q.avail)&availNoInterrupt == 0
		}
	}
	if wanted {
		q.interrupts++
	}
	q.mu.Unlock()
	if wanted {
		q.link.m.interrupt(interruptUsed)
	}
}

func (q *Queue) dirty(addr, n uint64) {
	if d := q.link.m.dirtier; d != nil {
		d.Dirty(addr, n)
	}
}

// fault words what the driver did wrong.
func (q *Queue) fault(format string, args ...any) error {
	return fault(fmt.Sprintf("queue %d", q.Index), fmt.Sprintf(format, args...))
}

func (q *Queue) outside(head uint16, err error) error {
	return errs.New(errs.Invalid, "virtio", fmt.Sprintf("queue %d: chain at %d", q.Index, head), err)
}

func fault(thing, text string) error { return errs.Msg(errs.Invalid, "virtio", thing, text) }
