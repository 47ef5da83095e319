package wire

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"agentrun.dev/errs"
)

// Handler serves a stream that the host opened; what it returns ends the stream. It is called in a goroutine of its own.
type Handler func(s *Stream, request []byte) error

// Conn is one connection, seen from either side.
type Conn struct {
	nc     net.Conn
	serve  Handler       // nil on the host's side
	stall  time.Duration // a write that takes longer breaks the connection; zero: never
	served sync.WaitGroup
	loops  sync.WaitGroup

	mu      sync.Mutex
	streams map[uint32]*Stream
	last    uint32 // the newest stream's number
	slots   sync.Cond
	queue   []byte // frames that wait to be written
	work    sync.Cond
	held    int // senders that wait for room in the queue
	err     error
}

// timeouts of the host, against guests that don't answer.
const (
	helloTimeout = 10 * time.Second
	writeStall   = time.Minute
)

// Host begins to speak with the agent at the other end of a connection, which belongs to the Conn from now on, whatever comes of it.
func Host(nc net.Conn) (*Conn, error) {
	_ = nc.SetDeadline(time.Now().Add(helloTimeout))
	if err := hello(nc); err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	_ = nc.SetDeadline(time.Time{})
	c := newConn(nc, nil, writeStall)
	c.loops.Go(func() { c.fail(c.read()) })
	c.loops.Go(func() { c.fail(c.write()) })
	return c, nil
}

// Guest serves the host at the other end of a connection until it is closed or broken, and returns when all handlers have.
func Guest(nc net.Conn, h Handler) error {
	_ = nc.SetDeadline(time.Now().Add(helloTimeout))
	if err := answer(nc); err != nil {
		return errors.Join(err, nc.Close())
	}
	_ = nc.SetDeadline(time.Time{})
	c := newConn(nc, h, 0)
	c.loops.Go(func() { c.fail(c.write()) })
	c.fail(c.read())
	c.loops.Wait()
	c.served.Wait()
	return c.err
}

// prologue is what both sides begin with.
func prologue() []byte { return binary.LittleEndian.AppendUint16([]byte(magic), Version) }

// hello exchanges magic and version. The host writes first, but doesn't wait for that: eight bytes fit into any connection's buffers, but not
// into net.Pipe's.
func hello(nc net.Conn) error {
	mine := prologue()
	wrote := make(chan error, 1)
	go func() {
		_, err := nc.Write(mine)
		wrote <- err
	}()
	var theirs [len(magic) + 2]byte
	_, err := io.ReadFull(nc, theirs[:])
	if err != nil {
		nc.Close() // ends the write
	}
	if werr := <-wrote; err == nil {
		err = werr
	}
	return checkPrologue(theirs[:], err)
}

// answer is the guest's side of it, without a goroutine of its own: each takes pages of a fork.
func answer(nc net.Conn) error {
	var theirs [len(magic) + 2]byte
	if _, err := io.ReadFull(nc, theirs[:]); err != nil {
		return checkPrologue(theirs[:], err)
	}
	_, err := nc.Write(prologue()) // also to a host of another version, which says so
	return checkPrologue(theirs[:], err)
}

func checkPrologue(theirs []byte, err error) error {
	switch {
	case err != nil:
		return errs.New(errs.Unavailable, "guest protocol", "", err)
	case string(theirs[:len(magic)]) != magic:
		return corrupt("the other side isn't AgentRun's")
	case binary.LittleEndian.Uint16(theirs[len(magic):]) != Version:
		return errs.Msg(errs.Unsupported, "guest protocol", "", "the other side speaks another version: host and agent must come from one build")
	}
	return nil
}

func newConn(nc net.Conn, h Handler, stall time.Duration) *Conn {
	c := &Conn{nc: nc, serve: h, stall: stall, streams: make(map[uint32]*Stream)}
	c.slots.L, c.work.L = &c.mu, &c.mu
	return c
}

// Close breaks the connection: all calls fail with errs.Unavailable. It waits for the goroutines of the Conn.
func (c *Conn) Close() error {
	c.fail(errs.Msg(errs.Unavailable, "guest protocol", "", "the connection is closed"))
	c.loops.Wait()
	c.served.Wait()
	return nil
}

// Err returns why the connection has ended, nil while it hasn't.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// fail ends the connection and all its streams. The first reason counts.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errs.KindOf(err) == errs.Other {
		err = errs.New(errs.Unavailable, "guest protocol", "", err)
	}
	c.err = err
	c.nc.Close()
	for _, s := range c.streams {
		s.stop(err)
	}
	c.slots.Broadcast()
	c.work.Broadcast()
}

// Open begins a call. While MaxStreams are open it waits, until ctx is done.
func (c *Conn) Open(ctx context.Context, request []byte) (*Stream, error) {
	if len(request) > MaxRequest {
		return nil, errs.Msg(errs.TooLarge, "guest", "", "a request has at most 1 MiB: arguments, variables and paths together")
	}
	defer context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.slots.Broadcast()
	})()
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.err == nil && ctx.Err() == nil && (len(c.streams) >= MaxStreams || len(c.queue) > maxQueue) {
		c.held++
		c.slots.Wait()
		c.held--
	}
	switch {
	case c.err != nil:
		return nil, c.err
	case ctx.Err() != nil:
		return nil, errs.New(errs.Canceled, "guest", "", ctx.Err())
	case c.last == 1<<32-1:
		return nil, errs.Msg(errs.Limit, "guest", "", "the connection has used up its streams")
	}
	c.last++
	s := newStream(c, c.last)
	c.streams[s.id] = s
	c.send(header{kind: Open, stream: s.id}, request)
	return s, nil
}

// send queues a frame; c.mu is held.
func (c *Conn) send(h header, payload []byte) {
	if c.err != nil {
		return
	}
	h.length = uint32(len(payload))
	c.queue = append(h.append(c.queue), payload...)
	c.work.Signal()
}

// write writes what is queued, many frames at once when they come faster than they go.
func (c *Conn) write() error {
	var spare []byte
	for {
		c.mu.Lock()
		for len(c.queue) == 0 && c.err == nil {
			c.work.Wait()
		}
		if c.err != nil {
			c.mu.Unlock()
			return c.err
		}
		b := c.queue
		c.queue = spare[:0]
		if c.held > 0 {
			c.slots.Broadcast()
			for _, s := range c.streams {
				s.cond.Broadcast()
			}
		}
		c.mu.Unlock()
		if c.stall > 0 {
			_ = c.nc.SetWriteDeadline(time.Now().Add(c.stall))
		}
		if _, err := c.nc.Write(b); err != nil {
			return err
		}
		if spare = b; cap(spare) > 2*maxQueue {
			spare = nil
		}
	}
}

// read takes frames in. It never waits for anything but the connection: what a stream's credit allows is kept for it.
func (c *Conn) read() error {
	size := 64 << 10
	if c.serve != nil {
		size = 4 << 10 // each fork has its own; larger payloads don't go through it
	}
	r := bufio.NewReaderSize(c.nc, size)
	var head [headerSize]byte
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return err
		}
		h, err := parseHeader(head[:])
		if err != nil {
			return err
		}
		var payload []byte
		if h.length > 0 {
			payload = make([]byte, h.length)
			if _, err := io.ReadFull(r, payload); err != nil {
				return err
			}
		}
		if err := c.take(h, payload); err != nil {
			return err
		}
	}
}

// take gives a frame to its stream.
func (c *Conn) take(h header, payload []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	host := c.serve == nil
	if host && (h.kind == Open || h.kind == Cancel) || !host && h.kind == End {
		return corrupt("a frame of type %d from this side", h.kind)
	}
	if h.kind == Open {
		return c.accept(h.stream, payload)
	}
	s := c.streams[h.stream]
	switch {
	case s == nil && (host || h.stream > c.last):
		return corrupt("a frame of stream %d, which isn't open", h.stream)
	case s == nil: // it ended while the frame was under way
		return nil
	case h.kind == End:
		delete(c.streams, s.id)
		c.slots.Broadcast()
		s.end(decodeError(payload))
		return nil
	case h.kind == Cancel:
		s.stop(errs.Msg(errs.Canceled, "guest", "", "the host gave up"))
		return nil
	case h.kind == Credit:
		return s.credited(binary.LittleEndian.Uint32(payload))
	}
	return s.took(Frame{Type: h.kind, Channel: h.channel, Payload: payload})
}

// accept begins a stream that the host opened.
func (c *Conn) accept(id uint32, request []byte) error {
	if id <= c.last {
		return corrupt("stream %d is opened after %d", id, c.last)
	}
	if len(c.streams) >= MaxStreams {
		return corrupt("more than %d streams are opened", MaxStreams)
	}
	c.last = id
	s := newStream(c, id)
	c.streams[id] = s
	c.served.Add(1)
	go func() {
		defer c.served.Done()
		err := c.serve(s, request)
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.streams, id)
		s.stop(errs.Msg(errs.Unavailable, "guest", "", "the call has ended"))
		c.send(header{kind: End, stream: id}, encodeError(err))
	}()
	return nil
}
