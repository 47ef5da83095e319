package virtiotest

import (
	"encoding/binary"
	"sync/atomic"
	"time"
	"unsafe"

	"agentrun.dev/vmm/virtio"
)

// Queue is the driver's side of one virtqueue. It isn't for concurrent use.
type Queue struct {
	d     *Driver
	Index int
	Size  int
	Desc  uint64
	Avail uint64
	Used  uint64

	free     []uint16
	nextUsed uint16
	added    uint16
	pending  map[uint16]*Request // by head
	ready    []*Request          // used, but not waited for yet
}

// Request is a chain that was made available.
type Request struct {
	Head    uint16
	Written int // what the device says it wrote
	heads   []uint16
	table   uint64 // of the indirect descriptors
	in, out []buffer
}

type buffer struct {
	addr uint64
	n    int
}

func newQueue(d *Driver, index, size int) *Queue {
	q := &Queue{d: d, Index: index, Size: size, pending: make(map[uint16]*Request),
		Desc: d.RAM.Alloc(16 * size), Avail: d.RAM.Alloc(6 + 2*size), Used: d.RAM.Alloc(6 + 8*size)}
	clear(d.RAM.At(q.Avail, 6+2*size))
	clear(d.RAM.At(q.Used, 6+8*size))
	for i := range size {
		q.free = append(q.free, uint16(size-1-i))
	}
	d.Store(QueueSel, uint32(index))
	if d.Load(QueueReady) != 0 {
		d.T.Fatalf("queue %d is ready already", index)
	}
	d.Store(QueueNum, uint32(size))
	for reg, addr := range map[uint64]uint64{QueueDesc: q.Desc, QueueAvail: q.Avail, QueueUsed: q.Used} {
		d.Store(reg, uint32(addr))
		d.Store(reg+4, uint32(addr>>32))
	}
	d.Store(QueueReady, 1)
	if d.Load(QueueReady) != 1 {
		d.T.Fatalf("queue %d isn't ready: %v", index, d.M.Err())
	}
	return q
}

func (q *Queue) clone(d *Driver) *Queue {
	n := *q
	n.d = d
	n.free = append([]uint16(nil), q.free...)
	n.pending = make(map[uint16]*Request)
	n.ready = nil
	for h, r := range q.pending {
		c := *r
		n.pending[h] = &c
	}
	for _, r := range q.ready {
		c := *r
		n.ready = append(n.ready, &c)
	}
	return &n
}

// Add makes a request available without announcing it: in is what the device reads, one buffer for each element; out holds
// the sizes of buffers that it writes. nil means that the queue is full.
func (q *Queue) Add(in [][]byte, out ...int) *Request {
	r := &Request{}
	for _, b := range in {
		addr := q.d.RAM.Alloc(len(b))
		copy(q.d.RAM.At(addr, len(b)), b)
		r.in = append(r.in, buffer{addr, len(b)})
	}
	for _, n := range out {
		addr := q.d.RAM.Alloc(n)
		clear(q.d.RAM.At(addr, n))
		r.out = append(r.out, buffer{addr, n})
	}
	total := len(r.in) + len(r.out)
	indirect := q.d.Features>>virtio.FeatureIndirect&1 != 0 && total > 1
	need := total
	if indirect {
		need = 1
	}
	if need > len(q.free) {
		q.release(r)
		return nil
	}
	for range need {
		r.heads = append(r.heads, q.free[len(q.free)-1])
		q.free = q.free[:len(q.free)-1]
	}
	r.Head = r.heads[0]
	if indirect {
		r.table = q.d.RAM.Alloc(16 * total)
		for i := range total {
			q.d.RAM.PutDesc(r.table, i, r.desc(i, total, uint16(i+1)))
		}
		q.d.RAM.PutDesc(q.Desc, int(r.Head), Desc{Addr: r.table, Len: uint32(16 * total), Flags: Indirect})
	} else {
		for i := range total {
			next := uint16(0)
			if i+1 < total {
				next = r.heads[i+1]
			}
			q.d.RAM.PutDesc(q.Desc, int(r.heads[i]), r.desc(i, total, next))
		}
	}
	q.pending[r.Head] = r
	q.Publish(r.Head)
	return r
}

// desc is the i-th of a request's n descriptors.
func (r *Request) desc(i, n int, next uint16) Desc {
	all := append(append([]buffer(nil), r.in...), r.out...)
	d := Desc{Addr: all[i].addr, Len: uint32(all[i].n)}
	if i >= len(r.in) {
		d.Flags |= Write
	}
	if i+1 < n {
		d.Flags, d.Next = d.Flags|Next, next
	}
	return d
}

// Publish puts a head on the available ring.
func (q *Queue) Publish(head uint16) {
	ring := q.d.RAM.At(q.Avail, 6+2*q.Size)
	binary.LittleEndian.PutUint16(ring[4+2*(int(q.added)%q.Size):], head)
	q.added++
	q.SetIndex(q.added)
}

// SetIndex stores the available ring's index.
func (q *Queue) SetIndex(idx uint16) {
	q.added = idx
	atomic.StoreUint32(word(q.d.RAM.At(q.Avail, 4)), uint32(idx)<<16)
}

func word(b []byte) *uint32 { return (*uint32)(unsafe.Pointer(&b[0])) }

// Notify announces what was added.
func (q *Queue) Notify() { q.d.Store(QueueNotify, uint32(q.Index)) }

// Poll returns a request that the device has given back; nil if there is none.
func (q *Queue) Poll() *Request {
	used := q.d.RAM.At(q.Used, 6+8*q.Size)
	if idx := uint16(atomic.LoadUint32(word(used)) >> 16); idx == q.nextUsed {
		return nil
	}
	slot := used[4+8*(int(q.nextUsed)%q.Size):]
	head, n := binary.LittleEndian.Uint32(slot), binary.LittleEndian.Uint32(slot[4:])
	r := q.pending[uint16(head)]
	if head >= uint32(q.Size) || r == nil {
		q.d.T.Fatalf("queue %d: head %d was used, but isn't with the device", q.Index, head)
	}
	delete(q.pending, uint16(head))
	q.nextUsed++
	if q.d.Features>>virtio.FeatureEventIdx&1 != 0 {
		storeShort(q.d.RAM.At(q.Avail+4+2*uint64(q.Size), 2), q.nextUsed)
	}
	r.Written = int(n)
	return r
}

//go:norace
//go:noinline
func storeShort(b []byte, v uint16) { *(*uint16)(unsafe.Pointer(&b[0])) = v }

// Wait returns the next request that the device gives back. The device must interrupt for it.
func (q *Queue) Wait() *Request {
	q.d.T.Helper()
	if len(q.ready) > 0 {
		r := q.ready[0]
		q.ready = q.ready[1:]
		return r
	}
	return q.wait()
}

func (q *Queue) wait() *Request {
	q.d.T.Helper()
	r := q.WaitFor(Patience)
	if r == nil {
		q.d.T.Fatalf("queue %d: nothing came back (status %#x, fault %v)", q.Index, q.d.Load(Status), q.d.M.Err())
	}
	return r
}

// WaitFor is Wait with another patience; nil means that it ran out.
func (q *Queue) WaitFor(limit time.Duration) *Request {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		if r := q.Poll(); r != nil {
			return r
		}
		if q.d.Features>>virtio.FeatureEventIdx&1 != 0 {
			// Ask for an interrupt, then look again, as a driver must.
			var barrier atomic.Uint32
			storeShort(q.d.RAM.At(q.Avail+4+2*uint64(q.Size), 2), q.nextUsed)
			barrier.Add(1)
			if r := q.Poll(); r != nil {
				return r
			}
		}
		select {
		case <-q.d.irq:
			q.d.Store(InterruptACK, q.d.Load(InterruptStatus))
		case <-timer.C:
			return q.Poll()
		}
	}
}

// Data returns a copy of what the device wrote into the request's buffers, and frees them.
func (q *Queue) Data(r *Request) []byte {
	var data []byte
	for _, b := range r.out {
		data = append(data, q.d.RAM.At(b.addr, b.n)...)
	}
	for _, h := range r.heads {
		q.free = append(q.free, h)
	}
	q.release(r)
	return data
}

// Out returns the guest address of a request's i-th writable buffer.
func (r *Request) Out(i int) uint64 { return r.out[i].addr }

func (q *Queue) release(r *Request) {
	for _, b := range append(append([]buffer(nil), r.in...), r.out...) {
		q.d.RAM.Free(b.addr, b.n)
	}
	if r.table != 0 {
		q.d.RAM.Free(r.table, 16*(len(r.in)+len(r.out)))
	}
	r.in, r.out, r.table = nil, nil, 0
}

// Do makes one request and returns the writable buffers' contents, and how much the device says it wrote.
func (q *Queue) Do(in [][]byte, out ...int) ([]byte, int) {
	q.d.T.Helper()
	r := q.Add(in, out...)
	if r == nil {
		q.d.T.Fatalf("queue %d is full", q.Index)
	}
	q.Notify()
	for {
		got := q.wait()
		if got == r {
			return q.Data(r), r.Written
		}
		q.ready = append(q.ready, got)
	}
}

// Flags of descriptors.
const (
	Next     = 1
	Write    = 2
	Indirect = 4
)

// Desc is a descriptor.
type Desc struct {
	Addr        uint64
	Len         uint32
	Flags, Next uint16
}

// PutDesc writes descriptor i of a table.
func (r *RAM) PutDesc(table uint64, i int, d Desc) {
	b := r.At(table+16*uint64(i), 16)
	binary.LittleEndian.PutUint64(b, d.Addr)
	binary.LittleEndian.PutUint32(b[8:], d.Len)
	binary.LittleEndian.PutUint16(b[12:], d.Flags)
	binary.LittleEndian.PutUint16(b[14:], d.Next)
}
