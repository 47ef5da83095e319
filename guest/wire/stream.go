package wire

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"sync"

	"agentrun.dev/errs"
)

// Stream is one call. Send and its like may be called concurrently with each other and with Recv; Recv from one goroutine at a time.
type Stream struct {
	c  *Conn
	id uint32
	// All below belongs to c.mu.
	cond     sync.Cond
	credit   int // what may be sent yet
	received []Frame
	pending  int  // bytes of credit that the peer has used and not got back
	taken    int  // of these, those of frames that were taken up
	current  int  // those of the frame that Recv returned last
	canceled bool // the host has sent Cancel
	ended    bool // the guest has sent End
	result   error
	stopped  error // neither sends nor receives any more
	done     chan struct{}
}

func newStream(c *Conn, id uint32) *Stream {
	s := &Stream{c: c, id: id, credit: Window, done: make(chan struct{})}
	s.cond.L = &c.mu
	return s
}

// cost is what a frame takes of the credit.
func cost(payload []byte) int { return headerSize + len(payload) }

// Data sends bytes of a channel, in as many frames as it takes. It waits for credit.
func (s *Stream) Data(channel uint8, b []byte) error {
	for len(b) > 0 {
		n := min(len(b), MaxData)
		if err := s.send(Data, channel, b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// CloseChannel tells that a channel has no more data.
func (s *Stream) CloseChannel(channel uint8) error { return s.send(Close, channel, nil) }

// Message sends v as JSON.
func (s *Stream) Message(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return errs.New(errs.Invalid, "guest", "", err)
	}
	if len(b) > MaxMessage {
		return errs.Msg(errs.TooLarge, "guest", "", "a message has at most 64 KiB")
	}
	return s.send(Message, 0, b)
}

func (s *Stream) send(kind Type, channel uint8, payload []byte) error {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	for s.stopped == nil && !s.ended && (s.credit < cost(payload) || len(s.c.queue) > maxQueue) {
		s.c.held++
		s.cond.Wait()
		s.c.held--
	}
	switch {
	case s.stopped != nil:
		return s.stopped
	case s.ended:
		return errs.Msg(errs.Unavailable, "guest", "", "the call has ended")
	}
	s.credit -= cost(payload)
	s.c.send(header{kind: kind, channel: channel, stream: s.id}, payload)
	return nil
}

// Recv returns the next frame. Its credit goes back with the next call, when it has been dealt with. io.EOF is the stream's end with success,
// any other error its failure.
func (s *Stream) Recv() (Frame, error) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.taken += s.current
	s.current = 0
	if s.taken >= Window/4 && s.stopped == nil && !s.ended {
		s.c.send(header{kind: Credit, stream: s.id}, binary.LittleEndian.AppendUint32(nil, uint32(s.taken)))
		s.pending -= s.taken
		s.taken = 0
	}
	for len(s.received) == 0 && s.stopped == nil && !s.ended {
		s.cond.Wait()
	}
	switch {
	case s.stopped != nil:
		return Frame{}, s.stopped
	case len(s.received) == 0 && s.result != nil:
		return Frame{}, s.result
	case len(s.received) == 0:
		return Frame{}, io.EOF
	}
	f := s.received[0]
	s.received[0] = Frame{}
	s.received = s.received[1:]
	s.current = cost(f.Payload)
	return f, nil
}

// Cancel gives up on a call, on the host's side: Recv and Send return err from now on. The guest is told. It does nothing if the stream has
// ended, whose frames can be received yet.
func (s *Stream) Cancel(err error) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if s.canceled || s.stopped != nil {
		return
	}
	s.canceled = true
	if !s.ended {
		s.c.send(header{kind: Cancel, stream: s.id}, nil)
	}
	s.stop(err)
}

// Done is closed when the stream can't be used any more: see Stopped.
func (s *Stream) Done() <-chan struct{} { return s.done }

// Stopped returns why the stream can't be used any more: the connection is broken or the host gave up. nil: it can.
func (s *Stream) Stopped() error {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	return s.stopped
}

// Broken reports whether the stream was stopped because of the connection, not because the host gave up on it.
func (s *Stream) Broken() bool {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	return s.c.err != nil
}

// stop makes all calls fail from now on; c.mu is held.
func (s *Stream) stop(err error) {
	if s.stopped == nil {
		s.stopped = err
		s.received = nil
		close(s.done)
	}
	s.cond.Broadcast()
}

// end is the guest's End; c.mu is held.
func (s *Stream) end(result error) {
	s.ended, s.result = true, result
	s.cond.Broadcast()
}

// credited is more credit from the peer; it can't have more to give than was used.
func (s *Stream) credited(n uint32) error {
	if n == 0 || int64(n) > int64(Window-s.credit) {
		return corrupt("stream %d gets %d bytes of credit that it hasn't used", s.id, n)
	}
	s.credit += int(n)
	s.cond.Broadcast()
	return nil
}

// took keeps a frame for Recv. What nobody receives any more uses up credit all the same.
func (s *Stream) took(f Frame) error {
	s.pending += cost(f.Payload)
	if s.pending > Window {
		return corrupt("stream %d sends more than it has credit for", s.id)
	}
	if s.stopped == nil {
		s.received = append(s.received, f)
		s.cond.Broadcast()
	}
	return nil
}
