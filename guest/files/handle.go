package files

import (
	"context"
	"io"
	"sync/atomic"
	"syscall"

	"agentrun.dev/guest/wire"
	"agentrun.dev/vfs"
)

// Open opens a regular file.
func (f *FS) Open(ctx context.Context, ino vfs.Ino, flags int) (vfs.Handle, error) {
	a, _, err := f.call(ctx, wire.Node{Op: wire.NodeOpen, Ino: uint64(ino), Flags: flags}, nil, nil)
	if err == nil && a.Handle == 0 {
		err = lie("an open file has no number")
	}
	if err != nil {
		return nil, err
	}
	return &handle{f: f, id: a.Handle}, nil
}

// handle is a file that is open in the guest. What has no context is bounded by the filesystem's timeout.
type handle struct {
	f      *FS
	id     uint64
	closed atomic.Bool
}

func (h *handle) call(ctx context.Context, r wire.Node, in, out []byte) (wire.Answer, int, error) {
	r.Handle, r.Ino = h.id, rootIno
	return h.f.call(ctx, r, in, out)
}

func (h *handle) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		part := p[n:min(len(p), n+wire.MaxNode)]
		a, k, err := h.call(context.Background(), wire.Node{Op: wire.HandleRead, Offset: off + int64(n), Count: int64(len(part))}, nil, part)
		n += k
		switch {
		case err != nil:
			return n, err
		case a.End:
			if n == len(p) {
				return n, nil
			}
			return n, io.EOF
		case k < len(part):
			return n, lie("a file ends without an end")
		}
	}
	return n, nil
}

func (h *handle) WriteAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		part := p[n:min(len(p), n+wire.MaxNode)]
		a, _, err := h.call(context.Background(), wire.Node{Op: wire.HandleWrite, Offset: off + int64(n)}, part, nil)
		if err == nil && a.N != int64(len(part)) {
			err = lie("it wrote another number of bytes")
		}
		if err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}

// Append is atomic up to a mebibyte; what is longer goes in pieces.
func (h *handle) Append(p []byte) (off int64, err error) {
	for n := 0; n == 0 || n < len(p); n += wire.MaxNode {
		part := p[n:min(len(p), n+wire.MaxNode)]
		if part == nil {
			part = []byte{}
		}
		a, _, err := h.call(context.Background(), wire.Node{Op: wire.HandleAppend}, part, nil)
		if err == nil && a.N < 0 {
			err = lie("a file begins before its beginning")
		}
		if err != nil {
			return 0, err
		}
		if n == 0 {
			off = a.N
		}
	}
	return off, nil
}

func (h *handle) Truncate(size int64) error {
	_, _, err := h.call(context.Background(), wire.Node{Op: wire.HandleTruncate, Offset: size}, nil, nil)
	return err
}

func (h *handle) Attr() (vfs.Attr, error) {
	return h.f.attr(context.Background(), wire.Node{Op: wire.HandleAttr, Handle: h.id, Ino: rootIno})
}

func (h *handle) Sync(ctx context.Context) error {
	_, _, err := h.call(ctx, wire.Node{Op: wire.HandleSync}, nil, nil)
	return err
}

func (h *handle) Close() error {
	if h.closed.Swap(true) {
		return syscall.EBADF
	}
	_, _, err := h.call(context.Background(), wire.Node{Op: wire.HandleClose}, nil, nil)
	return err
}
