package rpc

import (
	"context"
	"io"
	"sync"

	"agentrun.dev/errs"
)

// input holds what the other side has sent and the command hasn't read: at most Window bytes, unless the other side sends more
// than it was granted.
type input struct {
	mu      sync.Mutex
	more    sync.Cond
	buf     []byte
	taken   int // bytes read, but not yet granted again
	ended   bool
	err     error
	granted func(n int64)
}

func newInput(granted func(n int64)) *input {
	i := &input{granted: granted}
	i.more.L = &i.mu
	return i
}

// put adds bytes, or fails if they weren't granted.
func (i *input) put(b []byte) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.buf)+i.taken+len(b) > Window {
		return errs.Msg(errs.Limit, "read input", "", "more input than was granted")
	}
	if !i.ended {
		i.buf = append(i.buf, b...)
		i.more.Broadcast()
	}
	return nil
}

// end says that nothing follows; err is what a reader gets after the rest, io.EOF if nil.
func (i *input) end(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.ended {
		i.ended, i.err = true, err
		i.more.Broadcast()
	}
}

// Read waits for bytes, and grants those that it took again: not each by itself.
func (i *input) Read(p []byte) (int, error) {
	i.mu.Lock()
	for len(i.buf) == 0 && !i.ended {
		i.more.Wait()
	}
	n := copy(p, i.buf)
	i.buf = i.buf[n:]
	i.taken += n
	var grant int
	if !i.ended && (i.taken >= Window/4 || len(i.buf) == 0) {
		grant, i.taken = i.taken, 0
	}
	err := i.err
	i.mu.Unlock()
	if grant > 0 {
		i.granted(int64(grant))
	}
	if n == 0 && len(p) > 0 {
		if err == nil {
			err = io.EOF
		}
		return 0, err
	}
	return n, nil
}

// credit is how much of the input may be sent.
type credit struct {
	mu   sync.Mutex
	more chan struct{} // closed and replaced when there is more
	n    int64
}

func newCredit() *credit { return &credit{more: make(chan struct{})} }

func (c *credit) add(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n += max(0, n)
	close(c.more)
	c.more = make(chan struct{})
}

// take waits until something may be sent, and takes up to want bytes of it.
func (c *credit) take(ctx context.Context, want int) (int, error) {
	for {
		c.mu.Lock()
		if c.n > 0 {
			n := min(int64(want), c.n)
			c.n -= n
			c.mu.Unlock()
			return int(n), nil
		}
		more := c.more
		c.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// pump sends what r has, as far as it was granted, and then its end. Its Read may outlast ctx: nobody can interrupt it.
func pump(ctx context.Context, r io.Reader, c *credit, send func([]byte) error, end func() error) {
	if r == nil {
		_ = end()
		return
	}
	type piece struct {
		b   []byte
		err error
	}
	pieces := make(chan piece)
	go func() {
		for {
			b := make([]byte, chunk)
			n, err := r.Read(b)
			select {
			case pieces <- piece{b[:n], err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	for {
		var p piece
		select {
		case p = <-pieces:
		case <-ctx.Done():
			return
		}
		for len(p.b) > 0 {
			n, err := c.take(ctx, len(p.b))
			if err != nil || send(p.b[:n]) != nil {
				return
			}
			p.b = p.b[n:]
		}
		if p.err != nil {
			_ = end() // whatever ended it
			return
		}
	}
}
