// Package forward carries the requests of a virtio-fs device over a connection, from a jailed process that parses the guest's queues
// to the one that has the files and answers (Serve). Neither trusts the other further than the messages go: what isn't one ends the
// connection, and with it nothing but the file system of that guest, whose requests are errors from then on.
//
// A request is the number by which its answer is told from others, its length and the room for the answer, 4 bytes each and
// little-endian, then its bytes. An answer is the number and the length, then its bytes. Answers come in any order.
package forward

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"

	"golang.org/x/sync/semaphore"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/virtio/fs"
)

// Limits of one connection; what is more waits to be read.
const (
	MaxInFlight = 2 * fs.MaxInFlight // requests that are answered at the same time
	MaxBytes    = 16 << 20           // of them and of the room for their answers
)

const (
	requestHeader = 12
	answerHeader  = 8
)

// Client is a Handler that has others answer.
type Client struct {
	conn net.Conn
	done chan struct{} // the reader has ended

	write sync.Mutex // of one message at a time

	mu      sync.Mutex
	next    uint32
	waiting map[uint32]*waiter
	err     error
}

// waiter is a request that wasn't answered yet.
type waiter struct {
	out  []byte
	n    int
	ok   bool
	done chan struct{}
}

// NewClient returns a client on a connection, which it closes.
func NewClient(conn net.Conn) *Client {
	c := &Client{conn: conn, done: make(chan struct{}), waiting: make(map[uint32]*waiter)}
	go func() {
		defer close(c.done)
		c.fail(c.read())
	}()
	return c
}

// Err is why the connection has ended; nil while it hasn't.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the connection. Requests that wait are answered with EIO.
func (c *Client) Close() error {
	c.fail(net.ErrClosed)
	<-c.done
	return nil
}

// fail lets everybody who waits know that nothing will come.
func (c *Client) fail(err error) {
	_ = c.conn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = errs.New(errs.Unavailable, "fs", "forward", err)
	}
	for id, w := range c.waiting {
		delete(c.waiting, id)
		close(w.done)
	}
}

// Handle implements fs.Handler. A request that was sent may have been done, so that it isn't given up when ctx ends: whoever
// answers doesn't let requests wait for one another. Without a connection the answer is EIO.
func (c *Client) Handle(_ context.Context, in, out []byte) int {
	w := &waiter{out: out, done: make(chan struct{})}
	id, ok := c.register(w)
	if !ok {
		return fs.Refuse(in, out, syscall.EIO)
	}
	if err := c.send(id, in, len(out)); err != nil {
		c.fail(err)
	}
	<-w.done
	if !w.ok {
		return fs.Refuse(in, out, syscall.EIO)
	}
	return w.n
}

func (c *Client) register(w *waiter) (id uint32, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, false
	}
	for c.next++; c.waiting[c.next] != nil; c.next++ {
	}
	c.waiting[c.next] = w
	return c.next, true
}

func (c *Client) send(id uint32, in []byte, room int) error {
	var h [requestHeader]byte
	binary.LittleEndian.PutUint32(h[:], id)
	binary.LittleEndian.PutUint32(h[4:], uint32(len(in)))
	binary.LittleEndian.PutUint32(h[8:], uint32(room))
	c.write.Lock()
	defer c.write.Unlock()
	b := net.Buffers{h[:], in}
	_, err := b.WriteTo(c.conn)
	return err
}

// read takes answers until the connection ends.
func (c *Client) read() error {
	r := bufio.NewReaderSize(c.conn, 64<<10)
	for {
		var h [answerHeader]byte
		if _, err := io.ReadFull(r, h[:]); err != nil {
			return err
		}
		id, n := binary.LittleEndian.Uint32(h[:]), binary.LittleEndian.Uint32(h[4:])
		c.mu.Lock()
		w := c.waiting[id]
		delete(c.waiting, id)
		c.mu.Unlock()
		if w == nil {
			return errs.Msg(errs.Corrupt, "fs", "forward", "an answer to no request")
		}
		err := error(nil)
		if int64(n) > int64(len(w.out)) {
			err = errs.Msg(errs.Corrupt, "fs", "forward", "an answer that is longer than there is room for")
		} else if _, err = io.ReadFull(r, w.out[:n]); err == nil {
			w.n, w.ok = int(n), true
		}
		close(w.done)
		if err != nil {
			return err
		}
	}
}

// Serve answers the requests of a connection by a handler, until ctx ends, which is no error, or the connection does. It closes the
// connection, and returns when no request is under way any more. A message that can't be is Invalid.
func Serve(ctx context.Context, conn net.Conn, h fs.Handler) error {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	s := &server{conn: conn, h: h, slots: make(chan struct{}, MaxInFlight), bytes: semaphore.NewWeighted(MaxBytes)}
	s.buffers.New = func() any { return new(buffer) }
	defer s.wg.Wait()
	err := s.read(ctx)
	if ctx.Err() != nil || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

type server struct {
	conn    net.Conn
	h       fs.Handler
	wg      sync.WaitGroup
	slots   chan struct{}
	bytes   *semaphore.Weighted
	write   sync.Mutex
	buffers sync.Pool
}

// maxKept is the size of buffers that are kept for other requests.
const maxKept = 256 << 10

// buffer holds a request and its answer, with the answer's header.
type buffer struct{ in, out []byte }

func grow(b *[]byte, n int) []byte {
	if cap(*b) < n {
		*b = make([]byte, max(n, 8192))
	}
	return (*b)[:n]
}

func (s *server) read(ctx context.Context) error {
	var r io.Reader = s.conn // with a buffer from the first request on: many connections never have one
	for {
		var h [requestHeader]byte
		if _, err := io.ReadFull(r, h[:]); err != nil {
			return err
		}
		if r == io.Reader(s.conn) {
			r = bufio.NewReaderSize(s.conn, 64<<10)
		}
		id, n, room := binary.LittleEndian.Uint32(h[:]), binary.LittleEndian.Uint32(h[4:]), binary.LittleEndian.Uint32(h[8:])
		if n < fs.MinRequest || n > fs.MaxTransfer || room > fs.MaxTransfer {
			return errs.Msg(errs.Invalid, "fs", "forward", "a request of an impossible length")
		}
		weight := int64(n) + int64(room)
		s.slots <- struct{}{} // every request ends by itself
		if err := s.bytes.Acquire(ctx, weight); err != nil {
			<-s.slots
			return err
		}
		b := s.buffers.Get().(*buffer)
		in := grow(&b.in, int(n))
		if _, err := io.ReadFull(r, in); err != nil {
			s.bytes.Release(weight)
			<-s.slots
			return err
		}
		s.wg.Add(1)
		go func() {
			defer s.wg.Done()
			defer func() { <-s.slots }()
			s.answer(ctx, id, in, grow(&b.out, answerHeader+int(room)))
			if cap(b.in)+cap(b.out) <= maxKept { // of large ones few are needed again
				s.buffers.Put(b)
			}
			s.bytes.Release(weight)
		}()
	}
}

// answer has one request answered, and sends that. out begins with room for the header.
func (s *server) answer(ctx context.Context, id uint32, in, out []byte) {
	room := out[answerHeader:]
	n := s.h.Handle(ctx, in, room)
	if n < 0 || n > len(room) {
		n = fs.Refuse(in, room, syscall.EIO)
	}
	binary.LittleEndian.PutUint32(out, id)
	binary.LittleEndian.PutUint32(out[4:], uint32(n))
	s.write.Lock()
	defer s.write.Unlock()
	if _, err := s.conn.Write(out[:answerHeader+n]); err != nil {
		_ = s.conn.Close() // a part of it may have gone: the other side can't be spoken to any more
	}
}
