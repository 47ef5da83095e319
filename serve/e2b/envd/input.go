package envd

import (
	"context"
	"io"
	"sync"
)

// maxInput is how much of a command's input is held until it is read, in bytes.
const maxInput = 1 << 20

// input is the standard input of a command, or what is typed at its terminal. Clients write it, one after another.
type input struct {
	mu     sync.Mutex
	change chan struct{} // closed when anything below changes; nil while nobody waits
	buf    []byte
	closed bool // nothing more comes
	dead   bool // nobody reads any more
}

// wait returns what is closed at the next change. i.mu is held.
func (i *input) wait() <-chan struct{} {
	if i.change == nil {
		i.change = make(chan struct{})
	}
	return i.change
}

// changed tells those who wait. i.mu is held.
func (i *input) changed() {
	if i.change != nil {
		close(i.change)
		i.change = nil
	}
}

// Read implements io.Reader for the command.
func (i *input) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	i.mu.Lock()
	for len(i.buf) == 0 && !i.closed && !i.dead {
		c := i.wait()
		i.mu.Unlock()
		<-c
		i.mu.Lock()
	}
	defer i.mu.Unlock()
	if i.dead || len(i.buf) == 0 {
		return 0, io.EOF
	}
	n := copy(p, i.buf)
	if i.buf = i.buf[n:]; len(i.buf) == 0 {
		i.buf = nil
	}
	i.changed()
	return n, nil
}

// Close gives up the rest, for whoever reads it.
func (i *input) Close() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.dead, i.buf = true, nil
	i.changed()
	return nil
}

// end says that nothing more comes.
func (i *input) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	i.changed()
}

// write hands bytes to the command, waiting until there is room for all of them. A command that doesn't read any more is io.ErrClosedPipe.
func (i *input) write(ctx context.Context, b []byte) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	for {
		if i.closed || i.dead {
			return io.ErrClosedPipe
		}
		if n := min(len(b), maxInput-len(i.buf)); n > 0 {
			i.buf = append(i.buf, b[:n]...)
			b = b[n:]
			i.changed()
		}
		if len(b) == 0 {
			return nil
		}
		c := i.wait()
		i.mu.Unlock()
		var err error
		select {
		case <-c:
		case <-ctx.Done():
			err = ctx.Err()
		}
		i.mu.Lock()
		if err != nil {
			return err
		}
	}
}
