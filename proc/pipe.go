package proc

import (
	"io"
	"sync"
	"syscall"
	"time"

	"agentrun.dev/vfs"
)

const (
	pipeSize   = 64 << 10
	pipeAtomic = 4096 // PIPE_BUF: writes of at most this much aren't mixed with others
)

// special has what files without an offset answer: ESPIPE.
type special struct{}

func (special) ReadAt([]byte, int64) (int, error)  { return 0, syscall.ESPIPE }
func (special) WriteAt([]byte, int64) (int, error) { return 0, syscall.ESPIPE }
func (special) Seek(int64, int) (int64, error)     { return 0, syscall.ESPIPE }
func (special) SetAttr(vfs.SetAttr) error          { return syscall.EINVAL }
func (special) ReadDir() ([]vfs.DirEntry, error)   { return nil, syscall.ENOTDIR }
func (special) Sync() error                        { return syscall.EINVAL }
func (special) Close() error                       { return nil }

// pipe is a bounded queue of bytes. Its buffer grows with what is in it and is let go when empty and large.
type pipe struct {
	id     uint64
	born   time.Time
	mu     sync.Mutex
	buf    []byte // unread bytes are buf[off:]
	off    int
	shared bool // buf is an image's, which must not be changed
	read   int  // open ends
	write  int
	opened [2]int        // how often the read and the write end were opened, for FIFOs
	change chan struct{} // closed and forgotten at each change that somebody waits for
}

func newPipe(id uint64) *pipe { return &pipe{id: id, born: time.Now()} }

// open adds an end. The pipe's mutex must not be held.
func (p *pipe) open(read, write bool) *pipeEnd {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.openLocked(read, write)
}

func (p *pipe) openLocked(read, write bool) *pipeEnd {
	if read {
		p.read++
		p.opened[0]++
	}
	if write {
		p.write++
		p.opened[1]++
	}
	p.broadcast()
	return &pipeEnd{pipe: p, canRead: read, canWrite: write}
}

func (p *pipe) broadcast() {
	if p.change != nil {
		close(p.change)
		p.change = nil
	}
}

// wait releases the mutex until a change or an interrupt: EINTR, or errShort in the middle of a call. It returns with the
// mutex held.
func (p *pipe) wait(w waiter, middle bool) error {
	if p.change == nil {
		p.change = make(chan struct{})
	}
	ch := p.change
	p.mu.Unlock()
	defer p.mu.Lock()
	if middle {
		return w.untilMoved(ch)
	}
	return w.until(ch)
}

// pipeEnd is an open end of a pipe, or both ends of a FIFO opened O_RDWR.
type pipeEnd struct {
	special
	pipe              *pipe
	canRead, canWrite bool
	closed            bool   // guarded by pipe.mu, as the following
	ended             bool   // nothing more is to be read: the end of a socket that was shut down
	name              string // of a FIFO
	onClose           func()
	attr              *vfs.Attr // of a FIFO's inode
}

func (e *pipeEnd) Read(b []byte) (int, error)  { return e.readIntr(b, waiter{}) }
func (e *pipeEnd) Write(b []byte) (int, error) { return e.writeIntr(b, waiter{}) }

func (e *pipeEnd) readIntr(b []byte, w waiter) (int, error) {
	p := e.pipe
	p.mu.Lock()
	defer p.mu.Unlock()
	if !e.canRead || e.closed {
		return 0, syscall.EBADF
	}
	if len(b) == 0 {
		return 0, nil
	}
	for len(p.buf) == p.off {
		if p.write == 0 || e.ended {
			return 0, io.EOF
		}
		if err := p.wait(w, false); err != nil {
			return 0, err
		}
		if e.closed {
			return 0, syscall.EBADF
		}
	}
	n := copy(b, p.buf[p.off:])
	p.off += n
	if p.off == len(p.buf) {
		p.off, p.buf = 0, p.buf[:0]
		if p.shared {
			p.shared, p.buf = false, nil
		}
	}
	p.broadcast()
	return n, nil
}

func (e *pipeEnd) writeIntr(b []byte, w waiter) (n int, err error) {
	p := e.pipe
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case !e.canWrite || e.closed:
			return n, syscall.EBADF
		case p.read == 0:
			return n, syscall.EPIPE
		case len(b) == 0:
			return n, nil
		}
		free := pipeSize - (len(p.buf) - p.off)
		if free > 0 && (free >= len(b) || n > 0 || len(b) > pipeAtomic) {
			k := min(free, len(b))
			if p.shared {
				p.buf = append([]byte(nil), p.buf[p.off:]...)
				p.off, p.shared = 0, false
			}
			if p.off > 0 && len(p.buf)+k > cap(p.buf) {
				p.buf = p.buf[:copy(p.buf, p.buf[p.off:])]
				p.off = 0
			}
			p.buf = append(p.buf, b[:k]...)
			n, b = n+k, b[k:]
			p.broadcast()
			continue
		}
		switch err := p.wait(w, n > 0); err {
		case nil:
		case errShort:
			return n, nil
		default:
			return n, err
		}
	}
}

func (e *pipeEnd) Close() error {
	p := e.pipe
	p.mu.Lock()
	if e.closed {
		p.mu.Unlock()
		return syscall.EBADF
	}
	e.closed = true
	if e.canRead {
		p.read--
	}
	if e.canWrite {
		p.write--
	}
	p.broadcast()
	p.mu.Unlock()
	if e.onClose != nil {
		e.onClose()
	}
	return nil
}

func (e *pipeEnd) Attr() (vfs.Attr, error) {
	if e.attr != nil {
		return *e.attr, nil
	}
	return vfs.Attr{Ino: vfs.Ino(e.pipe.id), Mode: vfs.ModeFIFO | 0o600, Nlink: 1, Atime: e.pipe.born, Mtime: e.pipe.born, Ctime: e.pipe.born}, nil
}

func (e *pipeEnd) Flags() int {
	switch {
	case e.canRead && e.canWrite:
		return syscall.O_RDWR
	case e.canWrite:
		return syscall.O_WRONLY
	}
	return syscall.O_RDONLY
}

// poll returns nil when a read of n bytes would not wait, else the channel of the next change.
func (e *pipeEnd) poll() <-chan struct{} {
	p := e.pipe
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.buf) > p.off || p.write == 0 || e.closed || e.ended {
		return nil
	}
	if p.change == nil {
		p.change = make(chan struct{})
	}
	return p.change
}

// room is how many bytes a write would take without waiting, and the channel of the next change. A write that is atomic needs room for all of it.
func (e *pipeEnd) room() (int, <-chan struct{}) {
	p := e.pipe
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.read == 0 || e.closed || !e.canWrite {
		return -1, nil
	}
	if p.change == nil {
		p.change = make(chan struct{})
	}
	return pipeSize - (len(p.buf) - p.off), p.change
}

// fifoKey is a named pipe's file.
type fifoKey struct {
	Dev uint64
	Ino vfs.Ino
}

// closesFIFO makes an end one of a FIFO, which is forgotten when its last end is closed.
func (s *Sandbox) closesFIFO(e *pipeEnd, attr vfs.Attr) {
	pp, key := e.pipe, fifoKey{attr.Dev, attr.Ino}
	e.attr = &attr
	e.onClose = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		pp.mu.Lock()
		defer pp.mu.Unlock()
		if pp.read == 0 && pp.write == 0 && s.fifos[key] == pp {
			delete(s.fifos, key)
		}
	}
}

// openFIFO opens a named pipe, waiting for its other end as open(2) does.
func (p *Process) openFIFO(attr vfs.Attr, flags int) (vfs.File, error) {
	s, key := p.sb, fifoKey{attr.Dev, attr.Ino}
	s.mu.Lock()
	pp := s.fifos[key]
	if pp == nil {
		pp = newPipe(s.pipeIDs.Add(1))
		s.fifos[key] = pp
	}
	acc := flags & syscall.O_ACCMODE
	pp.mu.Lock()
	end := pp.openLocked(acc != syscall.O_WRONLY, acc != syscall.O_RDONLY)
	s.mu.Unlock()
	s.closesFIFO(end, attr)
	w := p.waiter()
	var err error
	if acc != syscall.O_RDWR {
		other := 1 // the reader waits for a writer
		if acc == syscall.O_WRONLY {
			other = 0
		}
		seen := pp.opened[other]
		for err == nil && pp.opened[other] == seen && (other == 1 && pp.write == 0 || other == 0 && pp.read == 0) {
			if flags&syscall.O_NONBLOCK != 0 {
				if other == 0 {
					err = syscall.ENXIO
				}
				break
			}
			err = pp.wait(w, false)
		}
	}
	pp.mu.Unlock()
	if err != nil {
		end.Close()
		return nil, err
	}
	return end, nil
}

// RawPipe makes a pipe whose ends aren't descriptors yet: they are given to processes with Install, or read with Drain.
func (s *Sandbox) RawPipe() (r, w vfs.File) {
	p := newPipe(s.pipeIDs.Add(1))
	return p.open(true, false), p.open(false, true)
}

// Drain reads a file that isn't a descriptor up to its end, ignoring signals that are handled. More than limit bytes is
// EFBIG; EINTR when the process is killed.
func (p *Process) Drain(r vfs.File, limit int) ([]byte, error) {
	f, ok := r.(interruptible)
	if !ok {
		return nil, syscall.EBADF
	}
	var out []byte
	for {
		if len(out) == cap(out) {
			grown := make([]byte, len(out), max(512, 2*cap(out)))
			copy(grown, out)
			out = grown
		}
		n, err := f.readIntr(out[len(out):cap(out)], waiter{p, p.ctx.Done()})
		out = out[:len(out)+n]
		switch {
		case err == io.EOF:
			return out, nil
		case err != nil:
			return out, err
		case len(out) > limit:
			return out[:limit], syscall.EFBIG
		}
	}
}
