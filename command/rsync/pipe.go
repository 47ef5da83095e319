package rsync

import (
	"io"
	"sync"
)

// pipeSize is how much a pipe in memory holds: enough for both sides to greet before they listen.
const pipeSize = 256 << 10

// pipe joins two sides in one process. Unlike io.Pipe it holds some bytes, as a kernel's does.
type pipe struct {
	mu     sync.Mutex
	change sync.Cond
	buf    []byte
	closed bool // no more is read
	ended  bool // no more is written
}

func newPipe() *pipe {
	p := &pipe{}
	p.change.L = &p.mu
	return p
}

// Read implements io.Reader. At the end of what was written it is io.EOF.
func (p *pipe) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.buf) == 0 && !p.ended && !p.closed {
		p.change.Wait()
	}
	if p.closed {
		return 0, io.ErrClosedPipe
	}
	if len(p.buf) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.buf)
	p.buf = p.buf[:copy(p.buf, p.buf[n:])]
	p.change.Broadcast()
	return n, nil
}

// Write implements io.Writer.
func (p *pipe) Write(b []byte) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(b) > 0 {
		for len(p.buf) >= pipeSize && !p.closed && !p.ended {
			p.change.Wait()
		}
		if p.closed || p.ended {
			return n, io.ErrClosedPipe
		}
		k := min(len(b), pipeSize-len(p.buf))
		p.buf = append(p.buf, b[:k]...)
		n, b = n+k, b[k:]
		p.change.Broadcast()
	}
	return n, nil
}

// end says that no more is written; what was written can still be read.
func (p *pipe) end() {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.change.Broadcast()
}

// close ends both reading and writing.
func (p *pipe) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.change.Broadcast()
}
