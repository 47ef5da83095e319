package ssh

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"agentrun.dev/errs"
)

// conn is a connection that has logged in.
type conn struct {
	s       *Server
	sc      *ssh.ServerConn
	login   *Login
	counted *countingConn
	ctx     context.Context
	open    atomic.Int32 // sessions

	mu      sync.Mutex
	sandbox world  // nil until it is needed
	kept    string // what it is called once it outlives the connection
}

// run serves the connection until it ends, then ends its sandbox.
func (c *conn) run(channels <-chan ssh.NewChannel, requests <-chan *ssh.Request) {
	ctx, cancel := context.WithCancelCause(c.s.ctx)
	c.ctx = ctx
	var sessions sync.WaitGroup
	sessions.Go(func() { c.requests(requests) })
	sessions.Go(func() { c.watch(cancel) })
	sessions.Go(func() { // the only reader of channels: it ends with the connection
		for nc := range channels {
			c.channel(nc, &sessions)
		}
		cancel(errs.Msg(errs.Canceled, "ssh", "", "the client has gone"))
	})
	<-ctx.Done()
	c.farewell()
	_ = c.sc.Close()
	sessions.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sandbox != nil {
		c.sandbox.end(context.WithoutCancel(ctx), c.kept != "")
	}
	c.s.o.Log.Info("ssh end", "user", c.sc.User(), "as", c.login.Name, "cause", context.Cause(ctx))
}

// farewell gives sessions that the server ends a moment to say so.
func (c *conn) farewell() {
	if c.open.Load() == 0 || !errs.Is(context.Cause(c.ctx), errs.Unavailable) {
		return
	}
	for until := time.Now().Add(time.Second); c.open.Load() > 0 && time.Now().Before(until); {
		time.Sleep(5 * time.Millisecond)
	}
}

// requests answers what isn't about a session. Ports aren't forwarded.
func (c *conn) requests(in <-chan *ssh.Request) {
	for r := range in {
		if r.Type == "tcpip-forward" || r.Type == "streamlocal-forward@openssh.com" {
			c.s.metrics.refused.Add(1)
		}
		if r.WantReply {
			_ = r.Reply(r.Type == "keepalive@openssh.com", nil)
		}
	}
}

// watch ends a connection whose client is gone without a word, or does nothing for too long.
func (c *conn) watch(cancel context.CancelCauseFunc) {
	tick := time.NewTicker(c.s.o.KeepAlive)
	defer tick.Stop()
	var asked atomic.Int32
	var asking sync.WaitGroup
	defer asking.Wait() // each ends with the connection
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-tick.C:
		}
		idle := time.Since(time.Unix(0, c.counted.last.Load()))
		switch {
		case asked.Load() >= missed:
			cancel(errs.Msg(errs.Canceled, "ssh", "", "the client doesn't answer"))
			return
		case idle >= c.s.o.Idle:
			cancel(errs.Msg(errs.Unavailable, "ssh", "", "nothing was done for "+c.s.o.Idle.String()))
			return
		}
		if asked.Add(1) == 1 {
			asking.Go(func() {
				if _, _, err := c.sc.SendRequest("keepalive@openssh.com", true, nil); err == nil {
					asked.Store(0)
				}
			})
		}
	}
}

// channel opens a session, and nothing else.
func (c *conn) channel(nc ssh.NewChannel, sessions *sync.WaitGroup) {
	refuse := func(why ssh.RejectionReason, text string) {
		c.s.metrics.refused.Add(1)
		_ = nc.Reject(why, text)
	}
	switch nc.ChannelType() {
	case "session":
	case "direct-tcpip", "direct-streamlocal@openssh.com":
		refuse(ssh.Prohibited, "connections aren't forwarded: what a sandbox may reach is for its network policy to say")
		return
	default:
		refuse(ssh.UnknownChannelType, "there are only sessions here")
		return
	}
	if c.open.Add(1) > maxSessions {
		c.open.Add(-1)
		refuse(ssh.ResourceShortage, "too many sessions on one connection")
		return
	}
	ch, requests, err := nc.Accept()
	if err != nil {
		c.open.Add(-1)
		return
	}
	sessions.Go(func() {
		defer c.open.Add(-1)
		(&session{c: c, ch: &activity{Channel: ch, c: c.counted}}).run(requests)
	})
}

// world returns the connection's sandbox, which is made when it is first needed. keep asks for it to outlive the connection.
func (c *conn) world(keep bool) (world, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sandbox == nil {
		w, err := c.make()
		if err != nil {
			c.s.o.Log.Warn("ssh sandbox", "base", c.login.Base, "template", c.login.Template, "err", err)
			return nil, err
		}
		c.sandbox = w
		c.s.metrics.sandboxes.Add(1)
	}
	if (keep || c.s.o.Keep) && c.kept == "" {
		if !c.login.Keep && !c.s.o.Keep {
			return c.sandbox, errs.Msg(errs.Denied, "keep", "", "this login may not keep its fork")
		}
		name, err := c.sandbox.keep(c.ctx)
		if err != nil {
			return c.sandbox, err
		}
		c.kept = name
		c.s.metrics.kept.Add(1)
	}
	return c.sandbox, nil
}

// countingConn counts bytes.
type countingConn struct {
	net.Conn
	m    *metrics
	last atomic.Int64 // when something was last sent or received in a session, in nanoseconds since 1970
}

func (c *countingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.m.received.Add(int64(n))
	return n, err
}

func (c *countingConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.m.sent.Add(int64(n))
	return n, err
}

// activity is a session's channel that notes when something moves. Questions whether the client is there don't count.
type activity struct {
	ssh.Channel
	c      *countingConn
	unread atomic.Bool // the client has closed what it would write output to: it drops what still comes
}

func (a *activity) Read(b []byte) (int, error) {
	n, err := a.Channel.Read(b)
	a.c.last.Store(time.Now().UnixNano())
	return n, err
}

// Write fails once nobody reads, so that `ssh HOST yes | head -1` ends by PIPE.
func (a *activity) Write(b []byte) (int, error) {
	if a.unread.Load() {
		return 0, io.ErrClosedPipe
	}
	a.c.last.Store(time.Now().UnixNano())
	return a.Channel.Write(b)
}
