package guest

import (
	"context"
	"errors"
	"io"

	"agentrun.dev/errs"
	"agentrun.dev/guest/wire"
)

// maxEntries bounds what a guest can make the host hold of one folder.
const maxEntries = 1 << 20

// Stat tells of a file; of the link itself unless follow is set.
func (c *Client) Stat(ctx context.Context, path string, follow bool) (wire.Info, error) {
	var i wire.Info
	err := c.call(ctx, wire.Request{Stat: &wire.Path{Path: wire.Text(path), All: !follow}}, &i)
	return i, err
}

// List tells of a folder's entries, in order of their names.
func (c *Client) List(ctx context.Context, path string) ([]wire.Info, error) {
	var all []wire.Info
	err := c.each(ctx, wire.Request{List: &wire.Path{Path: wire.Text(path)}}, func(s *wire.Stream) error {
		var part wire.Entries
		if err := s.Receive(&part); err != nil {
			return err
		}
		if all = append(all, part.Entries...); len(all) > maxEntries {
			return errs.Msg(errs.Limit, "list", path, "more than a million entries")
		}
		return nil
	})
	return all, err
}

// Open reads a file: count bytes from offset, all that follow if count is negative. ctx bounds the reading, too.
func (c *Client) Open(ctx context.Context, path string, offset, count int64) (*File, error) {
	s, stop, err := c.open(ctx, wire.Request{Read: &wire.Read{Path: wire.Text(path), Offset: offset, Count: count}})
	if err != nil {
		return nil, err
	}
	f := &File{s: s, stop: stop}
	if err := receive(s, &f.Info); err != nil {
		stop()
		return nil, err
	}
	return f, nil
}

// File is a file that is being read. Close it.
type File struct {
	Info wire.Info // when it was opened
	s    *wire.Stream
	stop func() bool
	rest []byte
	err  error
}

func (f *File) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	for len(f.rest) == 0 && f.err == nil {
		fr, err := f.s.Recv()
		switch {
		case err != nil:
			f.err = err
		case fr.Type == wire.Data:
			f.rest = fr.Payload
		default:
			f.err = errs.Msg(errs.Corrupt, "guest", "", "something else follows in a file")
			f.s.Cancel(f.err)
		}
	}
	if len(f.rest) == 0 {
		return 0, f.err
	}
	n := copy(b, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// Close gives up what wasn't read.
func (f *File) Close() error {
	f.stop()
	f.s.Cancel(errs.Msg(errs.Unavailable, "guest", "", "the file is closed"))
	return nil
}

// WriteOptions say how a file is written.
type WriteOptions struct {
	Mode    *uint32 // permissions; those of the file that is replaced, or 0644
	Owner   string  // a name, UID or UID:GID; that of the file that is replaced, or root
	Parents bool    // folders that are missing are made
}

// Write makes or replaces a file by what r has, in one step: until all of it is there the old one stays.
func (c *Client) Write(ctx context.Context, path string, r io.Reader, o WriteOptions) (wire.Info, error) {
	var i wire.Info
	s, stop, err := c.open(ctx, wire.Request{Write: &wire.Write{Path: wire.Text(path), Mode: o.Mode, Owner: wire.Text(o.Owner), Parents: o.Parents}})
	if err != nil {
		return i, err
	}
	defer stop()
	buf := make([]byte, wire.MaxData)
	for {
		n, rerr := r.Read(buf)
		if n > 0 && s.Data(wire.Input, buf[:n]) != nil {
			break // why, the guest says at the end
		}
		if errors.Is(rerr, io.EOF) {
			_ = s.CloseChannel(wire.Input)
			break
		}
		if rerr != nil {
			s.Cancel(rerr)
			return i, rerr
		}
	}
	f, err := s.Recv()
	switch {
	case errors.Is(err, io.EOF): // a device tells nothing
		return i, nil
	case err != nil:
		return i, err
	case f.Type != wire.Message:
		err = errs.Msg(errs.Corrupt, "guest", "", "data comes back from writing")
	default:
		err = wire.Decode(f.Payload, &i)
	}
	if err != nil {
		s.Cancel(err)
		return i, err
	}
	return i, finish(s)
}

// MkdirOptions say how a folder is made.
type MkdirOptions struct {
	Mode    uint32
	Owner   string
	Parents bool // folders that are missing are made, and it is no error if it is there
}

// Mkdir makes a folder.
func (c *Client) Mkdir(ctx context.Context, path string, o MkdirOptions) error {
	return c.call(ctx, wire.Request{Mkdir: &wire.Mkdir{Path: wire.Text(path), Mode: o.Mode, Owner: wire.Text(o.Owner), Parents: o.Parents}}, nil)
}

// Remove removes a file, a link or an empty folder; with all, a folder and what it holds.
func (c *Client) Remove(ctx context.Context, path string, all bool) error {
	return c.call(ctx, wire.Request{Remove: &wire.Path{Path: wire.Text(path), All: all}}, nil)
}

// Move renames a file; what was at the new path is replaced as rename(2) does.
func (c *Client) Move(ctx context.Context, from, to string) error {
	return c.call(ctx, wire.Request{Move: &wire.Move{From: wire.Text(from), To: wire.Text(to)}}, nil)
}

// Watch begins to watch a file or folder; with all, all folders below it, too. Changes after its return are told.
func (c *Client) Watch(ctx context.Context, path string, all bool) (*Watch, error) {
	s, stop, err := c.open(ctx, wire.Request{Watch: &wire.Path{Path: wire.Text(path), All: all}})
	if err != nil {
		return nil, err
	}
	if err := receive(s, &struct{}{}); err != nil {
		stop()
		return nil, err
	}
	return &Watch{s: s, stop: stop}, nil
}

// Watch tells of changes to files. Close it.
type Watch struct {
	s    *wire.Stream
	stop func() bool
}

// Next waits for changes. io.EOF: what was watched is gone.
func (w *Watch) Next() ([]wire.Event, error) {
	var part wire.Events
	if err := w.s.Receive(&part); err != nil {
		if !errors.Is(err, io.EOF) {
			w.s.Cancel(err)
		}
		return nil, err
	}
	return part.Events, nil
}

// Close ends the watch.
func (w *Watch) Close() error {
	w.stop()
	w.s.Cancel(errs.Msg(errs.Unavailable, "watch", "", "it is closed"))
	return nil
}
