package proc

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// socketImage is a socket. A connection whose other end was outside is Reset, and has no pipes.
type socketImage struct {
	ID                       uint64
	Born                     time.Time
	State                    int
	V6, V6Only               bool
	Reuse, ReusePort         bool
	Local, Peer              netip.AddrPort
	Backlog                  int
	Queue                    []int // sockets that nobody has accepted yet
	Counted                  bool
	Link                     int // what both ends of a connection share
	In, Out                  int // pipes
	Reset, InEnded, OutEnded bool
}

// socket enters a socket, and those that wait to be accepted.
func (c *capture) socket(k *socket) int {
	if i, ok := c.sockets[k]; ok {
		return i
	}
	n := &k.sb.net
	n.mu.Lock()
	si := socketImage{ID: k.id, Born: k.born, State: k.state, V6: k.v6, V6Only: k.v6only, Reuse: k.reuse, ReusePort: k.reusePort,
		Local: k.localAddr, Peer: k.peerAddr, Backlog: k.backlog, Counted: k.counted}
	waiting := append([]*socket(nil), k.queue...)
	n.mu.Unlock()
	if e := k.ends.Load(); e != nil {
		si.Reset = e.link.reset.Load() || e.link.outside.Load()
		if !si.Reset {
			l, ok := c.links[e.link]
			if !ok {
				l = len(c.links)
				c.links[e.link] = l
			}
			si.Link, si.In, si.Out = l, c.pipe(e.in), c.pipe(e.out)
			si.InEnded, si.OutEnded = e.in.over(), e.out.over()
		}
	}
	for _, q := range waiting {
		if e := q.ends.Load(); e != nil && !e.link.outside.Load() {
			si.Queue = append(si.Queue, c.socket(q))
		}
	}
	i := len(c.im.Sockets)
	c.im.Sockets, c.sockets[k] = append(c.im.Sockets, si), i
	return i
}

// over tells whether a direction of a connection was shut down by this side.
func (e *pipeEnd) over() bool {
	e.pipe.mu.Lock()
	defer e.pipe.mu.Unlock()
	return e.closed || e.ended
}

// socket makes a socket of the image.
func (st *starter) socket(i int) *socket {
	if k := st.sockets[i]; k != nil {
		return k
	}
	si, s := &st.im.Sockets[i], st.s
	k := &socket{sb: s, id: si.ID, born: si.Born, v6: si.V6, state: si.State, v6only: si.V6Only, reuse: si.Reuse, reusePort: si.ReusePort,
		localAddr: si.Local, peerAddr: si.Peer, backlog: si.Backlog}
	st.sockets[i] = k
	if si.State == connected {
		st.connection(k, si)
	}
	for _, q := range si.Queue {
		k.queue = append(k.queue, st.socket(q))
	}
	n := &s.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if si.State != closed {
		n.open(k) // there were no more than may be
	}
	if si.State == bound || si.State == listening {
		n.enter(k)
	}
	if si.Counted {
		n.entered(k)
	}
	return k
}

func (st *starter) connection(k *socket, si *socketImage) {
	if si.Reset {
		a, b := newPipe(st.s.pipeIDs.Add(1)), newPipe(st.s.pipeIDs.Add(1))
		l := &link{}
		l.reset.Store(true)
		k.joined(a, b, l)
		return
	}
	l := st.links[si.Link]
	if l == nil {
		l = &link{}
		st.links[si.Link] = l
	}
	k.joined(st.pipe(si.In), st.pipe(si.Out), l)
	e := k.ends.Load()
	e.in.ended = si.InEnded
	if si.OutEnded {
		e.out.Close()
	}
}

// checkSockets refuses sockets that contradict themselves.
func (im *image) checkSockets() error {
	queued := make(map[int]bool)
	for i := range im.Sockets {
		k := &im.Sockets[i]
		pipes := func(n int) bool { return n >= 0 && n < len(im.Pipes) }
		switch {
		case k.State < fresh || k.State > closed, k.Backlog < 0 || k.Backlog > maxBacklog, len(k.Queue) > k.Backlog:
			return fmt.Errorf("socket %d: out of range", i)
		case k.State == connected && !k.Reset && (!pipes(k.In) || !pipes(k.Out)):
			return fmt.Errorf("socket %d: no such pipe", i)
		case (k.State == bound || k.State == listening) && !k.Local.IsValid(), len(k.Queue) > 0 && k.State != listening:
			return fmt.Errorf("socket %d: contradicts itself", i)
		}
		for _, q := range k.Queue {
			if q < 0 || q >= len(im.Sockets) || im.Sockets[q].State != connected || queued[q] {
				return fmt.Errorf("socket %d: no such connection", i)
			}
			queued[q] = true
		}
	}
	for i := range im.Files {
		if f := &im.Files[i]; f.Kind == fileSocket && f.Pipe >= 0 && f.Pipe < len(im.Sockets) {
			if queued[f.Pipe] {
				return errors.New("a connection is both accepted and not")
			}
			if im.Sockets[f.Pipe].State == closed {
				return errors.New("a closed socket is open")
			}
			queued[f.Pipe] = true // two descriptions of one socket would close it twice
		}
	}
	return nil
}
