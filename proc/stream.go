package proc

import (
	"errors"
	"io"
	"sync"
	"syscall"

	"agentrun.dev/vfs"
)

// Input is a stream that comes into the sandbox. It is read ahead in the background, by one goroutine at a time, which ends
// when the reader returns: whoever made the reader ends it.
type Input struct {
	special
	tty     bool
	mu      sync.Mutex
	r       io.Reader
	buf     []byte // what is read into, while pending is empty
	pending []byte // part of buf
	err     error
	busy    bool
	change  chan struct{} // closed and forgotten when there is something new
	waits   bool          // without a reader it waits for a client to attach: it is one of a copied sandbox
	turn    int           // counts clients
}

// What is read at once: little at first, since most clients that wait have sent a line, and four times as much whenever
// that was full.
const firstRead, largestRead = 512, 32 << 10

// NewInput returns a file that reads from r; a nil r is at its end. tty makes it look like a terminal.
func NewInput(r io.Reader, tty bool) *Input {
	in := &Input{r: r, tty: tty}
	if r == nil {
		in.err = io.EOF
	}
	return in
}

// Terminal tells whether it is to look like a terminal.
func (in *Input) Terminal() bool { return in.tty }

func (in *Input) Read(b []byte) (int, error)            { return in.readIntr(b, waiter{}) }
func (in *Input) Write([]byte) (int, error)             { return 0, syscall.EBADF }
func (in *Input) Flags() int                            { return syscall.O_RDONLY }
func (in *Input) Attr() (vfs.Attr, error)               { return streamAttr(in.tty), nil }
func (in *Input) writeIntr([]byte, waiter) (int, error) { return 0, syscall.EBADF }

func streamAttr(tty bool) vfs.Attr {
	if tty {
		return vfs.Attr{Ino: 3, Mode: vfs.ModeChar | 0o620, Nlink: 1, Rdev: 0x8800}
	}
	return vfs.Attr{Ino: 1, Mode: vfs.ModeFIFO | 0o600, Nlink: 1}
}

func (in *Input) readIntr(b []byte, w waiter) (int, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for len(in.pending) == 0 {
		if in.err != nil {
			return 0, in.err
		}
		ch := in.fill()
		in.mu.Unlock()
		err := w.until(ch)
		in.mu.Lock()
		if err != nil {
			return 0, err
		}
	}
	n := copy(b, in.pending)
	in.pending = in.pending[n:]
	return n, nil
}

// fill starts a read unless one is under way, and returns what is closed when it is done. in.mu is held.
func (in *Input) fill() <-chan struct{} {
	if in.change == nil {
		in.change = make(chan struct{})
	}
	ch := in.change
	if in.busy || in.r == nil {
		return ch
	}
	in.busy = true
	buf := in.buf
	if len(buf) == 0 {
		buf = make([]byte, firstRead)
	}
	in.buf = nil
	go func(r io.Reader, turn int) {
		n, err := r.Read(buf)
		in.mu.Lock()
		defer in.mu.Unlock()
		if in.turn != turn {
			return // another client's turn
		}
		in.pending, in.busy = buf[:n], false
		switch {
		case n == len(buf) && n < largestRead:
			in.buf = make([]byte, 4*n)
		case n < len(buf)/16 && len(buf) > firstRead:
			in.buf = nil // it is large for the little that comes
		default:
			in.buf = buf
		}
		if err != nil && !errors.Is(err, io.EOF) {
			err = syscall.EIO
		}
		in.err = err
		in.wake()
	}(in.r, in.turn)
	return ch
}

func (in *Input) poll() <-chan struct{} {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.pending) > 0 || in.err != nil {
		return nil
	}
	return in.fill()
}

var errOutputLimit = errors.New("output limit")

// Output is a stream that leaves the sandbox. Writes are whole and one at a time; all outputs of a sandbox share its limit.
type Output struct {
	special
	sb  *Sandbox
	tty bool
	mu  sync.Mutex
	w   io.Writer
	log *clientLog // instead of w, in a copied sandbox
}

// NewOutput returns a file that writes to w; a nil w takes everything. tty makes it look like a terminal.
func (s *Sandbox) NewOutput(w io.Writer, tty bool) *Output { return &Output{sb: s, w: w, tty: tty} }

// Terminal tells whether it is to look like a terminal.
func (o *Output) Terminal() bool { return o.tty }

func (o *Output) Read([]byte) (int, error)             { return 0, syscall.EBADF }
func (o *Output) Write(b []byte) (int, error)          { return o.writeIntr(b, waiter{}) }
func (o *Output) Flags() int                           { return syscall.O_WRONLY }
func (o *Output) Attr() (vfs.Attr, error)              { return streamAttr(o.tty), nil }
func (o *Output) readIntr([]byte, waiter) (int, error) { return 0, syscall.EBADF }

func (o *Output) writeIntr(b []byte, _ waiter) (int, error) {
	if left := o.sb.limits.OutputBytes - o.sb.output.Add(int64(len(b))); left < 0 {
		return 0, errOutputLimit
	}
	if o.w == nil && o.log == nil {
		return len(b), nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.log != nil {
		o.log.write(b)
		return len(b), nil
	}
	n, err := o.w.Write(b)
	if err != nil {
		// Whoever took the output has gone, as a closed pipe's reader.
		return n, syscall.EPIPE
	}
	return n, nil
}

// pollable is a file that tells when a read would not wait: poll returns nil then, else a channel closed at the next change.
type pollable interface{ poll() <-chan struct{} }

// roomy is a file that tells how many bytes a write would take without waiting, -1 for any, and a channel closed at the next change.
type roomy interface{ room() (int, <-chan struct{}) }

// Poll waits until a read of fd would not wait, or until done is closed: it returns false then. EBADF, EINTR.
func (p *Process) Poll(fd int, done <-chan struct{}) (bool, error) {
	d, err := p.fds.get(fd)
	if err != nil {
		return false, err
	}
	f, ok := d.file.(pollable)
	if !ok {
		return true, nil
	}
	return p.poll(f.poll, done)
}

// poll waits until ready returns nil, or until done is closed.
func (p *Process) poll(ready func() <-chan struct{}, done <-chan struct{}) (bool, error) {
	for {
		ch := ready()
		if ch == nil {
			return true, nil
		}
		if err := p.waiter().either(ch, done); err != nil {
			return false, err
		}
		select {
		case <-done:
			if ready() != nil {
				return false, nil
			}
		default:
		}
	}
}

// PollWrite waits until a write of up to 4096 bytes to fd would not wait, or until done is closed: it returns false then. EBADF, EINTR.
func (p *Process) PollWrite(fd int, done <-chan struct{}) (bool, error) {
	d, err := p.fds.get(fd)
	if err != nil {
		return false, err
	}
	e, ok := d.file.(roomy)
	if !ok {
		return true, nil
	}
	return p.poll(func() <-chan struct{} {
		if n, ch := e.room(); n >= 0 && n < pipeAtomic {
			return ch
		}
		return nil
	}, done)
}

// WriteRoom returns how many bytes a write to fd would take without waiting, -1 when it would not wait at all. Up to 4096 bytes are written as a whole or not.
func (p *Process) WriteRoom(fd int) (int, error) {
	d, err := p.fds.get(fd)
	if err != nil {
		return 0, err
	}
	if e, ok := d.file.(roomy); ok {
		n, _ := e.room()
		return n, nil
	}
	return -1, nil
}
