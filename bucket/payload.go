package bucket

import (
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"agentrun.dev/bucket/segment"
	"agentrun.dev/errs"
)

const (
	maxInline   = 64 << 10 // bytes of payload that a log record carries
	treeInline  = 512      // bytes of payload that a tree record carries
	slotSize    = 4 << 20  // bytes in a slot of a large object
	fewExtents  = 8        // extents that an object's record carries
	maxSpilled  = 2 << 10  // bytes of a tree record above which its metadata moves to a slot
	emptyExtent = 0        // the segment of an extent that reads as zeros
)

// Payload is staged bytes: stored, but without a name. It goes into one Op or part.
type Payload struct {
	Size int64
	MD5  [16]byte // of the bytes

	s       *Store
	inline  []byte
	extents []extent
	used    bool
}

var slotBuffers = sync.Pool{New: func() any { b := make([]byte, slotSize); return &b }}

// copyBuffers are for reading: large enough that one read costs little more than its bytes.
var copyBuffers = sync.Pool{New: func() any { b := make([]byte, 256<<10); return &b }}

// Stage stores bytes without giving them a name. size is what r will yield, or -1; another length is errs.Invalid.
// A payload that isn't used must be discarded.
func (s *Store) Stage(ctx context.Context, r io.Reader, size int64) (*Payload, error) {
	return s.stage(ctx, r, size, maxInline)
}

func (s *Store) stage(ctx context.Context, r io.Reader, size, inline int64) (p *Payload, err error) {
	if size > MaxPart {
		return nil, errs.Msg(errs.TooLarge, "stage", "payload", "one write has at most 5 GiB")
	}
	p = &Payload{s: s}
	if size >= 0 && size <= inline {
		p.inline = make([]byte, size)
		n, err := io.ReadFull(r, p.inline)
		if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = s.ended(r, int64(n), size, err)
		}
		p.Size, p.MD5 = size, md5.Sum(p.inline)
		return p, err
	}
	defer func() {
		if err != nil {
			p.Discard()
		}
	}()
	return p, s.stageLarge(ctx, p, r, size, inline)
}

// stageLarge is stage for a body that may need slots. Reading, hashing and writing go on side by side, on two buffers.
func (s *Store) stageLarge(ctx context.Context, p *Payload, r io.Reader, size, inline int64) error {
	h := newHasher()
	defer h.stop()
	w := s.newSlotWriter(ctx, p)
	defer w.stop()
	for {
		buf := slotBuffers.Get().(*[]byte)
		n, err := io.ReadFull(r, *buf)
		p.Size += int64(n)
		end := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		switch {
		case err != nil && !end:
		case p.Size > MaxPart || size >= 0 && p.Size > size:
			err = errs.Msg(errs.Invalid, "stage", "payload", "more bytes than announced")
		case end && p.Size <= inline:
			p.inline = append([]byte(nil), (*buf)[:n]...)
			p.MD5 = md5.Sum(p.inline)
			slotBuffers.Put(buf)
			return s.ended(nil, p.Size, size, nil)
		case n > 0:
			c := &chunk{buf: buf, b: (*buf)[:n]}
			c.users.Store(2)
			h.give(c)
			if err := w.give(c); err != nil {
				return err
			}
			buf = nil
			err = nil
		default:
			err = nil
		}
		if buf != nil {
			slotBuffers.Put(buf)
		}
		if err != nil {
			return err
		}
		if end {
			break
		}
	}
	if err := w.finish(); err != nil {
		return err
	}
	p.MD5 = h.sum()
	return s.ended(nil, p.Size, size, nil)
}

// chunk is a filled buffer that the hasher and the writer both read; the last gives it back.
type chunk struct {
	buf   *[]byte
	b     []byte
	users atomic.Int32
}

func (c *chunk) done() {
	if c.users.Add(-1) == 0 {
		slotBuffers.Put(c.buf)
	}
}

// hasher computes an MD5 on a goroutine of its own.
type hasher struct {
	in  chan *chunk
	out chan [16]byte
}

func newHasher() *hasher {
	h := &hasher{in: make(chan *chunk), out: make(chan [16]byte, 1)}
	in := h.in // sum may take it from h before the goroutine has begun
	go func() {
		sum := md5.New()
		for c := range in {
			sum.Write(c.b)
			c.done()
		}
		var v [16]byte
		sum.Sum(v[:0])
		h.out <- v
	}()
	return h
}

func (h *hasher) give(c *chunk) { h.in <- c }

func (h *hasher) sum() [16]byte {
	close(h.in)
	h.in = nil
	return <-h.out
}

// stop ends the hasher if sum didn't.
func (h *hasher) stop() {
	if h.in != nil {
		h.sum()
	}
}

// slotWriter puts chunks into slots on a goroutine of its own, in order.
type slotWriter struct {
	in  chan *chunk
	out chan error
}

func (s *Store) newSlotWriter(ctx context.Context, p *Payload) *slotWriter {
	w := &slotWriter{in: make(chan *chunk), out: make(chan error, 1)}
	in := w.in // finish may take it from w before the goroutine has begun
	go func() {
		var failed error
		for c := range in {
			if failed == nil {
				var x extent
				if x, failed = s.putStaged(ctx, c.b); failed == nil {
					p.extents = append(p.extents, x)
				}
			}
			c.done()
			if failed != nil {
				select {
				case w.out <- failed: // the reader learns of it at the next chunk
				default:
				}
			}
		}
		if failed == nil {
			w.out <- nil
		}
	}()
	return w
}

func (w *slotWriter) give(c *chunk) error {
	select {
	case w.in <- c:
		return nil
	case err := <-w.out:
		c.done()
		w.out <- err
		return err
	}
}

func (w *slotWriter) finish() error {
	close(w.in)
	w.in = nil
	return <-w.out
}

// stop ends the writer if finish didn't, and waits for it: nothing may be put after the payload was discarded.
func (w *slotWriter) stop() {
	if w.in != nil {
		w.finish()
	}
}

// staged is the set of slots that hold payload which isn't published yet: no count speaks for them.
type staged struct {
	put   sync.RWMutex // held for reading from before a slot is put until it is noted here
	mu    sync.Mutex
	slots map[segment.Ref]struct{}
}

func (t *staged) add(r segment.Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.slots == nil {
		t.slots = make(map[segment.Ref]struct{})
	}
	t.slots[r] = struct{}{}
}

func (t *staged) drop(xs []extent) {
	if len(xs) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range xs {
		delete(t.slots, segment.Ref{Segment: x.seg, Slot: x.slot})
	}
}

func (t *staged) has(r segment.Ref) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.slots[r]
	return ok
}

func (t *staged) any() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.slots) > 0
}

// putStaged puts bytes into a slot of their own, staged until use or discard.
func (s *Store) putStaged(ctx context.Context, p []byte) (extent, error) {
	s.staged.put.RLock()
	defer s.staged.put.RUnlock()
	ref, err := s.segments.Put(ctx, p)
	if err != nil {
		return extent{}, err
	}
	s.staged.add(ref)
	return extent{ref.Segment, ref.Slot, 0, int64(len(p))}, nil
}

// taken notes that a payload has been published.
func (p *Payload) taken() {
	p.used = true
	p.s.staged.drop(p.extents)
}

// settle notes how the commit ended that was to publish a payload. Of one whose outcome isn't known, the bytes must
// stay: it may be found stored when the store is opened again, which then frees them if it isn't.
func (p *Payload) settle(err error) {
	switch {
	case p == nil:
	case err == nil:
		p.taken()
	case unknown(err):
		p.used = true
	}
}

// unknown reports whether an error leaves open if a commit was stored: see kv/pebble.
func unknown(err error) bool { return errs.Is(err, errs.Unavailable) }

// ended checks that a body had the announced length: neither less nor, for a reader given, more.
func (s *Store) ended(r io.Reader, got, want int64, err error) error {
	if want < 0 {
		return nil
	}
	if got < want {
		return errs.New(errs.Invalid, "stage", "payload", fmt.Errorf("%d bytes of %d: %w", got, want, io.ErrUnexpectedEOF))
	}
	if r != nil {
		var one [1]byte
		n, err := io.ReadFull(r, one[:])
		if n > 0 {
			return errs.Msg(errs.Invalid, "stage", "payload", "more bytes than announced")
		}
		if !errors.Is(err, io.EOF) {
			return err // a reader that checks something says so at its end
		}
	}
	return nil
}

// Discard gives the bytes back. After the payload was used it does nothing.
func (p *Payload) Discard() {
	if p == nil || p.used || len(p.extents) == 0 {
		return
	}
	p.used = true
	if _, err := p.s.freePayload(context.Background(), refsOf(p.extents)); err != nil {
		p.s.unclean.Store(true)
		p.s.log.Warn("staged bytes could not be given back; the next opening does it", "error", err)
	}
	p.s.staged.drop(p.extents) // last: a check that runs meanwhile must not take them for lost
}

func refsOf(xs []extent) []segment.Ref {
	refs := make([]segment.Ref, 0, len(xs))
	for _, x := range xs {
		if x.seg != emptyExtent {
			refs = append(refs, segment.Ref{Segment: x.seg, Slot: x.slot})
		}
	}
	return refs
}

// freePayload frees slots and returns how many bytes they had.
func (s *Store) freePayload(ctx context.Context, refs []segment.Ref) (n uint64, err error) {
	for _, r := range refs {
		size, err := s.segments.Size(ctx, r)
		if err == nil {
			n += uint64(size)
		} else if !errs.Is(err, errs.NotFound) {
			return 0, err
		}
	}
	return n, s.segments.Free(ctx, refs)
}

// readExtent fills p from an extent, from off on.
func (s *Store) readExtent(ctx context.Context, x extent, p []byte, off int64) error {
	if x.seg == emptyExtent {
		clear(p)
		return nil
	}
	n, err := s.segments.ReadAt(ctx, segment.Ref{Segment: x.seg, Slot: x.slot}, p, x.off+off)
	if n == len(p) {
		return nil
	}
	if errs.Is(err, errs.NotFound) || errors.Is(err, io.EOF) {
		return errs.New(errs.Corrupt, "read", "payload", fmt.Errorf("segment %d, slot %d is missing", x.seg, x.slot))
	}
	return err
}

// logged returns the payload of a log record.
func (s *Store) logged(ctx context.Context, loc logLoc) ([]byte, error) {
	b, err := s.kv.Get(ctx, logKey(loc))
	if errs.Is(err, errs.NotFound) {
		return nil, errs.Msg(errs.Corrupt, "read", "payload", "its log record is missing; run fsck")
	}
	if err != nil {
		return nil, err
	}
	l, err := decodeLog(b)
	return l.payload, err
}

// small returns the bytes of an object that aren't in slots; ok is false if they are.
func (s *Store) small(ctx context.Context, o *Object) (b []byte, ok bool, err error) {
	switch c := &o.data; {
	case o.Size == 0 || c.inline != nil:
		return c.inline, true, nil
	case c.logged:
		b, err = s.logged(ctx, c.loc)
		if err == nil && int64(len(b)) != o.Size {
			err = errs.Msg(errs.Corrupt, "read", "payload", "its log record has another length")
		}
		return b, true, err
	}
	return nil, false, nil
}

// extentsIn calls f for the extents of an object that overlap [lo, hi), with their offsets in the object.
func (s *Store) extentsIn(ctx context.Context, o *Object, lo, hi int64, f func(off int64, x extent) error) error {
	if !o.data.spread {
		off := int64(0)
		for _, x := range o.data.extents {
			if off >= hi {
				break
			}
			if off+x.n > lo {
				if err := f(off, x); err != nil {
					return err
				}
			}
			off += x.n
		}
		return nil
	}
	st := o.data.from
	start := lo
	if k, ok, err := st.floor(ctx, extentPrefix(o.ID), extentKey(o.ID, lo)); err != nil {
		return err
	} else if ok {
		start = extentOffset(k)
	}
	c := st.scan(extentKey(o.ID, start), extentKey(o.ID, hi))
	for c.next(ctx) {
		off := extentOffset(c.key)
		x, err := decodeExtent(c.rec.val)
		if err != nil {
			return err
		}
		if off+x.n <= lo {
			continue
		}
		if err := f(off, x); err != nil {
			return err
		}
	}
	return c.err
}

// extentOffset reads the offset out of a planeExtent key.
func extentOffset(key string) int64 {
	n := int64(0)
	for _, c := range []byte(key[len(key)-8:]) {
		n = n<<8 | int64(c)
	}
	return n
}
