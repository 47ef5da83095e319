package vsock

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"agentrun.dev/vmm/virtio"
)

type connState uint8

const (
	stateRequested connState = iota // by one side, and not answered by the other
	stateOpen
	stateDone // the guest knows nothing of it any more
)

// Conn is a connection with a program in the guest. It is a net.Conn with CloseWrite. Read returns what the guest sent before
// it closed, and then io.EOF; ECONNRESET if it didn't close in order. Close returns at once: what was written is still sent.
type Conn struct {
	d   *Device
	key key

	// All below is guarded by d.mu.
	cond          sync.Cond
	state         connState
	dialled       bool // by us
	queued        bool // in d.ready
	err           error
	closed        bool // by our program
	readDeadline  deadline
	writeDeadline deadline

	// What is to be sent, in this order.
	sendRequest, sendResponse, tellCredit, askCredit bool
	out                                              ring
	shut, shutSent                                   uint32 // what we won't do any more

	in       ring
	peerGone uint32 // what the guest won't do any more
	// Counters modulo 2³², as in the headers.
	fwdCnt, fwdTold    uint32 // bytes that our program took; as the guest knows it
	sent               uint32
	peerAlloc, peerFwd uint32
	asked              bool // for credit, since the last news of it
}

// newConn registers a connection. d.mu is held.
func (d *Device) newConn(k key) *Conn {
	c := &Conn{d: d, key: k, in: ring{limit: BufferSize}, out: ring{limit: outSize}}
	c.cond.L = &d.mu
	d.conns[k] = c
	return c
}

// accept answers the guest's request.
func (c *Conn) accept() {
	if c.state == stateRequested && !c.dialled && c.err == nil {
		c.state, c.sendResponse = stateOpen, true
		c.d.enqueue(c)
	}
}

// wants tells whether there is something to send.
func (c *Conn) wants() bool {
	if c.state == stateDone {
		return false
	}
	if c.sendRequest {
		return c.d.reset == resetNone
	}
	return c.sendResponse || c.state == stateOpen &&
		(c.tellCredit || c.askCredit || c.out.n > 0 && c.window() > 0 || c.out.n == 0 && c.shut != c.shutSent)
}

// fill writes one packet into a buffer of the guest's and returns its length; 0 if there is nothing to say.
func (c *Conn) fill(out *virtio.Buffers) int {
	if !c.wants() {
		return 0
	}
	h := header{srcCID: HostCID, dstCID: c.d.cid, srcPort: c.key.host, dstPort: c.key.guest, kind: typeStream, bufAlloc: BufferSize, fwdCnt: c.fwdCnt}
	n := 0
	switch {
	case c.sendRequest:
		c.sendRequest, h.op = false, opRequest
	case c.sendResponse:
		c.sendResponse, h.op = false, opResponse
	case c.out.n > 0 && c.window() > 0:
		n = min(c.out.n, int(c.window()), out.Len()-headerSize)
		h.op = opData
		if n == 0 { // the guest gives buffers for headers alone
			c.abort(syscall.ECONNRESET)
			return 0
		}
	case c.tellCredit:
		h.op = opCreditUpdate
	case c.askCredit:
		c.askCredit, h.op = false, opCreditRequest
	default:
		h.op, h.flags, c.shutSent = opShutdown, c.shut, c.shut
	}
	c.tellCredit, c.fwdTold = false, c.fwdCnt // every packet tells
	h.length = uint32(n)
	total := out.Write(h.encode())
	for left := n; left > 0; {
		part := c.out.front(left)
		total += out.Write(part)
		c.out.drop(len(part))
		left -= len(part)
	}
	c.sent += uint32(n)
	if n > 0 {
		c.cond.Broadcast()
		c.starve()
	}
	return total
}

// window is how much the guest can take now.
func (c *Conn) window() uint32 {
	flying := c.sent - c.peerFwd
	if flying >= c.peerAlloc {
		return 0
	}
	return c.peerAlloc - flying
}

// starve asks for credit, once, when there is something to send and none is left.
func (c *Conn) starve() {
	if c.out.n > 0 && c.window() == 0 && !c.asked {
		c.asked, c.askCredit = true, true
		c.d.enqueue(c)
	}
}

// credit notes what a packet says about the guest's buffer.
func (c *Conn) credit(h *header) {
	if c.peerAlloc != h.bufAlloc || c.peerFwd != h.fwdCnt {
		c.peerAlloc, c.peerFwd, c.asked = h.bufAlloc, h.fwdCnt, false
		if c.wants() {
			c.d.enqueue(c)
		}
	}
}

// deliver takes data of the guest's; false if it had no credit for it or promised not to send any.
func (c *Conn) deliver(data *virtio.Buffers) bool {
	if data.Len() > c.in.limit-c.in.n || c.peerGone&shutSend != 0 {
		return false
	}
	if c.closed || c.shut&shutReceive != 0 {
		c.fwdCnt += uint32(data.Len()) // nobody will read it
		c.relieve()
		return true
	}
	for data.Len() > 0 {
		room := c.in.room(data.Len())
		c.in.n += data.Read(room)
	}
	c.cond.Broadcast()
	return true
}

// relieve tells the guest of credit when half of the buffer has been taken since it last heard.
func (c *Conn) relieve() {
	if c.state == stateOpen && c.fwdCnt-c.fwdTold >= BufferSize/2 && !c.tellCredit {
		c.tellCredit = true
		c.d.enqueue(c)
	}
}

// peerShut notes what the guest won't do any more. When that is everything, the guest waits for our reset.
func (c *Conn) peerShut(flags uint32) {
	c.peerGone |= flags
	if c.peerGone == shutBoth {
		c.abort(nil)
	}
	c.cond.Broadcast()
}

// gone is the guest's reset: the regular end if one of us has said goodbye, else an error.
func (c *Conn) gone() {
	var err error
	switch {
	case c.state == stateRequested:
		err = syscall.ECONNREFUSED
	case c.peerGone&shutSend == 0 && c.shut != shutBoth:
		err = syscall.ECONNRESET
	}
	c.finish(err)
}

// abort ends the connection on both sides.
func (c *Conn) abort(err error) {
	if c.state != stateDone {
		c.d.refuse(&header{srcCID: c.d.cid, dstCID: HostCID, srcPort: c.key.guest, dstPort: c.key.host, kind: typeStream, op: opData})
	}
	c.finish(err)
}

// finish forgets the connection; a nil error is the regular end.
func (c *Conn) finish(err error) {
	delete(c.d.conns, c.key)
	for i, o := range c.d.closing {
		if o == c {
			c.d.closing = append(c.d.closing[:i], c.d.closing[i+1:]...)
			break
		}
	}
	c.state = stateDone
	c.peerGone = shutBoth
	c.out = ring{}
	if c.closed {
		c.in = ring{}
	}
	if c.err == nil {
		c.err = err
	}
	c.cond.Broadcast()
}

// fail ends the connection without a word to the guest; the caller takes it off the list.
func (c *Conn) fail(err error) {
	c.state, c.out, c.peerGone = stateDone, ring{}, shutBoth
	if c.err == nil {
		c.err = err
	}
	c.cond.Broadcast()
}

// Read returns what the guest sent.
func (c *Conn) Read(p []byte) (int, error) {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	for {
		switch {
		case c.closed:
			return 0, c.opError("read", net.ErrClosed)
		case c.readDeadline.passed():
			return 0, c.opError("read", os.ErrDeadlineExceeded)
		case len(p) == 0:
			return 0, nil
		case c.in.n > 0:
			n := 0
			for n < len(p) && c.in.n > 0 {
				part := c.in.front(len(p) - n)
				n += copy(p[n:], part)
				c.in.drop(len(part))
			}
			c.fwdCnt += uint32(n)
			c.relieve()
			return n, nil
		case c.err != nil:
			return 0, c.opError("read", c.err)
		case c.peerGone&shutSend != 0:
			return 0, io.EOF
		}
		c.cond.Wait()
	}
}

// Write returns when p is held to be sent.
func (c *Conn) Write(p []byte) (int, error) {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	done := 0
	for {
		switch {
		case c.closed:
			return done, c.opError("write", net.ErrClosed)
		case c.writeDeadline.passed():
			return done, c.opError("write", os.ErrDeadlineExceeded)
		case c.err != nil:
			return done, c.opError("write", c.err)
		case c.shut&shutSend != 0 || c.peerGone&shutReceive != 0:
			return done, c.opError("write", syscall.EPIPE)
		}
		for done < len(p) && c.out.n < c.out.limit {
			n := copy(c.out.room(len(p)-done), p[done:])
			c.out.n += n
			done += n
		}
		if c.wants() {
			c.d.enqueue(c)
		}
		c.starve()
		if done == len(p) {
			return done, nil
		}
		c.cond.Wait()
	}
}

// CloseWrite tells the guest that nothing more will be sent, once what was written has been.
func (c *Conn) CloseWrite() error {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	if c.closed {
		return c.opError("close", net.ErrClosed)
	}
	c.shutdown(shutSend)
	return nil
}

func (c *Conn) shutdown(flags uint32) {
	c.shut |= flags
	if c.wants() {
		c.d.enqueue(c)
	}
	c.cond.Broadcast()
}

// Close ends the connection for our program. The guest gets what was written, if it takes it.
func (c *Conn) Close() error {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	c.readDeadline.stop()
	c.writeDeadline.stop()
	c.fwdCnt += uint32(c.in.n)
	c.in = ring{limit: BufferSize}
	switch c.state {
	case stateRequested:
		c.abort(nil)
	case stateOpen:
		c.d.closing = append(c.d.closing, c)
		c.shutdown(shutBoth)
	}
	c.cond.Broadcast()
	return nil
}

// LocalAddr and RemoteAddr are Addrs.
func (c *Conn) LocalAddr() net.Addr  { return Addr{HostCID, c.key.host} }
func (c *Conn) RemoteAddr() net.Addr { return Addr{c.d.cid, c.key.guest} }

// SetDeadline and its two halves implement net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	return firstError(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline is for Read.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadline(&c.readDeadline, t) }

// SetWriteDeadline is for Write.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadline(&c.writeDeadline, t) }

func (c *Conn) setDeadline(d *deadline, t time.Time) error {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	if c.closed {
		return c.opError("set deadline", net.ErrClosed)
	}
	d.stop()
	d.at = t
	if !t.IsZero() {
		d.timer = time.AfterFunc(time.Until(t), func() {
			c.d.mu.Lock()
			defer c.d.mu.Unlock()
			c.cond.Broadcast()
		})
	}
	c.cond.Broadcast()
	return nil
}

func (c *Conn) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: "vsock", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}

func firstError(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}

// deadline is a time, and the timer that wakes those who wait for it.
type deadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

// ring holds up to limit bytes. It grows as it is needed.
type ring struct {
	buf   []byte
	from  int
	n     int
	limit int
}

// front returns up to n of the oldest bytes, in one piece.
func (r *ring) front(n int) []byte { return r.buf[r.from:][:min(n, r.n, len(r.buf)-r.from)] }

func (r *ring) drop(n int) {
	r.from += n
	if r.from == len(r.buf) {
		r.from = 0
	}
	if r.n -= n; r.n == 0 {
		r.from = 0
	}
}

// room returns a piece of the free space, which the caller fills from its beginning and adds to n. It isn't empty unless the
// ring is full.
func (r *ring) room(n int) []byte {
	if want := min(r.n+n, r.limit); want > len(r.buf) {
		buf := make([]byte, min(max(want, 2*len(r.buf), 4096), r.limit))
		head := copy(buf, r.buf[r.from:][:min(r.n, len(r.buf)-r.from)])
		copy(buf[head:], r.buf[:r.n-head])
		r.buf, r.from = buf, 0
	}
	at := r.from + r.n
	if at >= len(r.buf) {
		at -= len(r.buf)
		return r.buf[at:][:min(n, r.from-at)]
	}
	return r.buf[at:][:min(n, len(r.buf)-at)]
}
