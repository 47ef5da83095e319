package guest

import (
	"context"
	"errors"
	"io"
	"sync"
	"syscall"

	"agentrun.dev/errs"
	"agentrun.dev/guest/wire"
)

// Tree is the guest's files by their inodes, for package files: operations are those of wire.Node, references and open files are kept
// in the guest until they are given back, or the tree is closed.
type Tree struct {
	wire.Tree
	c    *Client
	s    *wire.Stream
	stop func() bool

	mu     sync.Mutex
	forget map[uint64]uint64 // what goes back with the next call
}

// Tree opens one. ctx bounds the opening only.
func (c *Client) Tree(ctx context.Context) (*Tree, error) {
	s, stop, err := c.open(ctx, wire.Request{Tree: &struct{}{}})
	if err != nil {
		return nil, err
	}
	t := &Tree{c: c, s: s, forget: make(map[uint64]uint64)}
	err = receive(s, &t.Tree)
	if !stop() && err == nil {
		err = errs.New(errs.Canceled, "guest", "", context.Cause(ctx))
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Close gives everything back.
func (t *Tree) Close() error {
	t.s.Cancel(errs.Msg(errs.Unavailable, "guest", "", "the tree is closed"))
	return nil
}

// Forget gives n references to an inode back, with the next call.
func (t *Tree) Forget(ino, n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget[ino] += n
}

// maxForget bounds a request.
const maxForget = 4096

// forgotten takes what is to be given back.
func (t *Tree) forgotten() [][2]uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out [][2]uint64
	for ino, n := range t.forget {
		if len(out) == maxForget {
			break
		}
		out = append(out, [2]uint64{ino, n})
		delete(t.forget, ino)
	}
	return out
}

// Call does an operation. in is what the guest gets as data, out takes what it sends: beyond its length it is an error. An error is a
// syscall.Errno, or that of the call: of ctx, or the connection. takes says that a success gives a reference, or a handle, which is the
// caller's then, whatever happens to ctx.
func (t *Tree) Call(ctx context.Context, r wire.Node, in, out []byte, takes bool) (a wire.Answer, n int, err error) {
	r.Tree, r.Forget = t.ID, t.forgotten()
	s, stop, err := t.c.open(ctx, wire.Request{Node: &r})
	if err != nil {
		for _, f := range r.Forget {
			t.Forget(f[0], f[1])
		}
		return a, 0, err
	}
	if in != nil {
		if err := s.Data(wire.Input, in); err == nil { // else why, the guest says at the end
			_ = s.CloseChannel(wire.Input)
		}
	}
	a, n, err = t.answer(s, out)
	if !stop() && err == nil {
		err = errs.New(errs.Canceled, "guest", "", context.Cause(ctx)) // the guest takes it back
	}
	if err != nil {
		s.Cancel(err)
		return a, n, err
	}
	if a.Errno != 0 {
		return a, n, errno(a.Errno)
	}
	if takes {
		_ = s.CloseChannel(wire.Input)
	}
	return a, n, nil
}

// errno is what the guest says that went wrong: a number of Linux's.
func errno(n uint16) error {
	if n > 133 {
		return syscall.EIO
	}
	return syscall.Errno(n)
}

// answer takes in what comes.
func (t *Tree) answer(s *wire.Stream, out []byte) (a wire.Answer, n int, err error) {
	for {
		f, err := s.Recv()
		switch {
		case err != nil:
			return a, n, ended(err)
		case f.Type == wire.Data && len(f.Payload) <= len(out)-n:
			n += copy(out[n:], f.Payload)
			continue
		case f.Type != wire.Message:
			return a, n, errs.Msg(errs.Corrupt, "guest", "", "it sends more than was asked for")
		}
		var part wire.Answer
		if err := wire.Decode(f.Payload, &part); err != nil {
			return a, n, err
		}
		if len(a.Entries)+len(part.Entries) > maxEntries {
			return a, n, errs.Msg(errs.Limit, "list", "", "more than a million entries")
		}
		part.Entries = append(a.Entries, part.Entries...)
		if a = part; !a.More {
			return a, n, nil
		}
		if len(a.Entries) == 0 {
			return a, n, errs.Msg(errs.Corrupt, "guest", "", "it has nothing to say")
		}
	}
}

// ended is what the end of a call is when an answer is missing.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return errs.Msg(errs.Corrupt, "guest", "", "the call ended without an answer")
	}
	return err
}
