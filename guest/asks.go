package guest

import (
	"context"
	"io"

	"agentrun.dev/errs"
	"agentrun.dev/guest/wire"
)

// Asks hands on what programs of the workload ask the host for, until ctx ends or the connection does. take is called by one goroutine; who
// runs the command calls Reply.
func (c *Client) Asks(ctx context.Context, take func(wire.Ask)) error {
	return c.each(ctx, wire.Request{Asks: &struct{}{}}, func(s *wire.Stream) error {
		var q wire.Ask
		if err := s.Receive(&q); err != nil {
			return err
		}
		if len(q.Args) == 0 {
			return errs.Msg(errs.Corrupt, "guest", "", "it asks for a command without a name")
		}
		take(q)
		return nil
	})
}

// Reply runs a command that was asked for, and returns when the program that asked has its exit status. The context of run ends with ctx, or when
// nobody waits for it any more, of which Reply's error tells.
func (c *Client) Reply(ctx context.Context, id uint64, run func(ctx context.Context, out, errors io.Writer) int) error {
	s, stop, err := c.open(ctx, wire.Request{Reply: &wire.Reply{ID: id}})
	if err != nil {
		return err
	}
	defer stop()
	waited, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- finish(s)
		cancel()
	}()
	status := run(waited, channel{s, wire.Output}, channel{s, wire.Errors})
	if ctx.Err() != nil {
		err := errs.New(errs.Canceled, "reply", "", context.Cause(ctx))
		s.Cancel(err)
		return err // what run says then isn't an answer
	}
	if err := s.Message(wire.Exit{Status: status}); err != nil && s.Stopped() != nil {
		return err
	}
	return <-ended
}

// channel is a stream's channel as a writer.
type channel struct {
	s *wire.Stream
	n uint8
}

func (c channel) Write(b []byte) (int, error) {
	if err := c.s.Data(c.n, b); err != nil {
		return 0, err
	}
	return len(b), nil
}
