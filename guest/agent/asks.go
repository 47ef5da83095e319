package agent

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/guest/wire"
)

// A program of the workload asks for a command of the host's over a socket: a line of JSON, and in reply frames of a byte (a channel, or
// askStatus), the length of what follows as four bytes, and that. It withdraws by closing the socket.
//
// An ask stays what it is in a fork of the machine, where the program waits for the reply, too. There the host has heard of none of them, so that
// they are told to whoever asks next, as told again.

// Limits of asks.
const (
	maxAsks   = 32       // at once
	maxAskers = 64       // programs that are connected
	maxAsk    = 32 << 10 // bytes of one
	askPeriod = 30 * time.Second
	askStatus = 255 // the channel of the exit status: a byte
)

// asks are those that nobody has ended.
type asks struct {
	mu      sync.Mutex
	last    uint64
	open    []*ask        // in order
	changed chan struct{} // closed when there is a new one, or another listener; nil: nobody looks
	tells   *wire.Stream  // the listener: who asked last to be told
}

// ask is one.
type ask struct {
	id   uint64
	args []wire.Text
	dir  wire.Text
	told *wire.Stream // over which the host was told of it last; nil: it wasn't
	nc   net.Conn
	over atomic.Bool   // its exit status is on the way to the program, or there
	gone chan struct{} // closed when the program doesn't wait any more
}

// close has no program wait any more.
func (as *asks) close() {
	as.mu.Lock()
	defer as.mu.Unlock()
	for _, q := range as.open {
		q.nc.Close()
	}
}

// request is what the program sends.
type request struct {
	Args []wire.Text `json:"args"`
	Dir  wire.Text   `json:"dir"`
}

// ServeAsks takes what programs of the workload ask the host for, at a socket that they connect to, until the listener fails.
func (a *Agent) ServeAsks(l net.Listener) error {
	places := make(chan struct{}, maxAskers)
	for {
		nc, err := l.Accept()
		if err != nil {
			return err
		}
		select {
		case places <- struct{}{}:
			go func() {
				defer func() { <-places }()
				a.asks.take(nc)
			}()
		default:
			refuse(nc, errs.Msg(errs.Limit, "ask", "", fmt.Sprintf("more than %d at once", maxAskers)))
			nc.Close()
		}
	}
}

// take keeps an ask until its program goes away, or it has been replied to.
func (as *asks) take(nc net.Conn) {
	defer nc.Close()
	q, err := as.add(nc)
	if err != nil {
		refuse(nc, err)
		return
	}
	alone := time.AfterFunc(askPeriod, func() {
		as.mu.Lock()
		heard := q.told != nil
		as.mu.Unlock()
		if !heard {
			refuse(nc, errs.Msg(errs.Unavailable, "ask", "", "the host doesn't listen"))
			nc.Close()
		}
	})
	defer alone.Stop()
	_, _ = io.Copy(io.Discard, nc) // until the program ends, or reply closes it
	as.mu.Lock()
	defer as.mu.Unlock()
	as.open = slices.DeleteFunc(as.open, func(o *ask) bool { return o == q })
	close(q.gone)
}

// add reads an ask and has the host told.
func (as *asks) add(nc net.Conn) (*ask, error) {
	_ = nc.SetReadDeadline(time.Now().Add(askPeriod))
	line, err := bufio.NewReader(io.LimitReader(nc, maxAsk)).ReadBytes('\n')
	if err != nil {
		return nil, errs.Msg(errs.Invalid, "ask", "", fmt.Sprintf("a command has at most %d bytes", maxAsk))
	}
	_ = nc.SetReadDeadline(time.Time{})
	var r request
	if err := json.Unmarshal(line, &r); err != nil || len(r.Args) == 0 {
		return nil, errs.Msg(errs.Invalid, "ask", "", "no command is named")
	}
	as.mu.Lock()
	defer as.mu.Unlock()
	if len(as.open) >= maxAsks {
		return nil, errs.Msg(errs.Limit, "ask", "", fmt.Sprintf("more than %d at once", maxAsks))
	}
	as.last++
	q := &ask{id: as.last, args: r.Args, dir: r.Dir, nc: nc, gone: make(chan struct{})}
	as.open = append(as.open, q)
	as.wake()
	return q, nil
}

// refuse replies that it failed.
func refuse(nc net.Conn, err error) {
	_ = frame(nc, wire.Errors, []byte(err.Error()+"\n"))
	_ = frame(nc, askStatus, []byte{1})
}

// frame sends a part of a reply.
func frame(w io.Writer, channel byte, b []byte) error {
	_, err := w.Write(append(binary.LittleEndian.AppendUint32([]byte{channel}, uint32(len(b))), b...))
	return err
}

// tell tells the host of all that there are and come, until it asks once more, over another stream.
func (as *asks) tell(s *wire.Stream) error {
	as.mu.Lock()
	as.tells = s
	as.wake()
	as.mu.Unlock()
	for {
		list, changed, ok := as.untold(s)
		if !ok {
			return errs.Msg(errs.Canceled, "asks", "", "another call is told of them")
		}
		for _, q := range list {
			if err := s.Message(q); err != nil {
				return err
			}
		}
		if len(list) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-s.Done():
			return s.Stopped()
		}
	}
}

// untold are those that a stream hasn't told of; when there are none, the channel is closed once that may have changed. False: it isn't the
// listener any more.
func (as *asks) untold(s *wire.Stream) (list []wire.Ask, changed <-chan struct{}, ok bool) {
	as.mu.Lock()
	defer as.mu.Unlock()
	if as.tells != s {
		return nil, nil, false
	}
	for _, q := range as.open {
		if q.told != s {
			list = append(list, wire.Ask{ID: q.id, Args: q.args, Dir: q.dir, Again: q.told != nil})
			q.told = s
		}
	}
	if as.changed == nil {
		as.changed = make(chan struct{})
	}
	return list, as.changed, true
}

// wake has the listener look again; mu is held.
func (as *asks) wake() {
	if as.changed != nil {
		close(as.changed)
		as.changed = nil
	}
}

// reply hands on what the host's run of a command says. If the connection to the host breaks the program waits on: another may reply.
func (as *asks) reply(s *wire.Stream, id uint64) error {
	as.mu.Lock()
	i := slices.IndexFunc(as.open, func(q *ask) bool { return q.id == id })
	if i < 0 {
		as.mu.Unlock()
		return errs.Msg(errs.NotFound, "reply", "", "nobody waits for it any more")
	}
	q := as.open[i]
	as.mu.Unlock()
	sent := make(chan error, 1)
	go func() { sent <- q.pump(s) }()
	select {
	case err := <-sent:
		if err == nil || !s.Broken() {
			q.nc.Close()
		}
		return err
	case <-q.gone:
		if q.over.Load() {
			return nil
		}
		return errs.Msg(errs.Canceled, "reply", "", "nobody waits for it any more")
	}
}

// pump copies what the host says to the program, until its exit status.
func (q *ask) pump(s *wire.Stream) error {
	for {
		f, err := s.Recv()
		switch {
		case err != nil:
			if !s.Broken() {
				refuse(q.nc, errs.Msg(errs.Canceled, string(q.args[0]), "", "the host gave up"))
			}
			return err
		case f.Type == wire.Data:
			if err := frame(q.nc, f.Channel, f.Payload); err != nil {
				return err
			}
		case f.Type == wire.Message:
			var e wire.Exit
			if err := wire.Decode(f.Payload, &e); err != nil {
				return err
			}
			q.over.Store(true)
			return frame(q.nc, askStatus, []byte{byte(e.Status)})
		}
	}
}
