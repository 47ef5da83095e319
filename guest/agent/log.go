package agent

import (
	"sync"

	"agentrun.dev/guest/wire"
)

// logSize is how much of a command's output is kept: the newest.
const logSize = 1 << 20

// log holds the newest output of a command, in the order in which it was written, for any number of readers. Readers that are attached are
// waited for: the log drops only what they have. Without any it drops the oldest, so that the command never waits for nobody.
type log struct {
	mu      sync.Mutex
	cond    sync.Cond
	chunks  []chunk
	start   int64 // of the first chunk, in bytes since the command's start
	end     int64
	readers map[*reader]struct{}
	closed  bool // nothing that counts comes any more
}

type chunk struct {
	channel uint8
	data    []byte
}

// reader is one that is attached.
type reader struct {
	log     *log
	at      int64
	stopped bool
}

func newLog() *log {
	l := &log{readers: make(map[*reader]struct{})}
	l.cond.L = &l.mu
	return l
}

// append adds output, once all readers have room for it.
func (l *log) append(channel uint8, b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.closed && l.behind()+int64(len(b)) > logSize {
		l.cond.Wait()
	}
	if n := len(l.chunks); n > 0 && l.chunks[n-1].channel == channel && len(l.chunks[n-1].data)+len(b) <= wire.MaxData {
		l.chunks[n-1].data = append(l.chunks[n-1].data, b...)
	} else {
		l.chunks = append(l.chunks, chunk{channel, append([]byte(nil), b...)})
	}
	l.end += int64(len(b))
	for l.end-l.start > logSize {
		l.start += int64(len(l.chunks[0].data))
		l.chunks[0] = chunk{}
		l.chunks = l.chunks[1:]
	}
	l.cond.Broadcast()
}

// behind is how much the slowest reader hasn't got yet.
func (l *log) behind() (n int64) {
	for r := range l.readers {
		n = max(n, l.end-r.at)
	}
	return n
}

// close says that the command has ended with all its output. What comes later, of processes that it left, is kept for nobody but
// who attaches to it.
func (l *log) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.cond.Broadcast()
}

// forget drops what there is: who read it, or was to, isn't here any more.
func (l *log) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.chunks, l.start = nil, l.end
	for r := range l.readers {
		r.at = l.end
	}
	l.cond.Broadcast()
}

// attach returns a reader from the beginning of what is kept.
func (l *log) attach() *reader {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &reader{log: l, at: l.start}
	l.readers[r] = struct{}{}
	return r
}

// next returns output that follows, at most wire.MaxData bytes; ok is false at the end, or when the reader was stopped.
func (r *reader) next() (channel uint8, b []byte, ok bool) {
	l := r.log
	l.mu.Lock()
	defer l.mu.Unlock()
	for r.at >= l.end && !l.closed && !r.stopped {
		l.cond.Wait()
	}
	if r.stopped || r.at >= l.end {
		return 0, nil, false
	}
	at := max(l.start, r.at)
	pos := l.start
	for _, c := range l.chunks {
		if at < pos+int64(len(c.data)) {
			b = append([]byte(nil), c.data[at-pos:]...)
			r.at = at + int64(len(b))
			l.cond.Broadcast()
			return c.channel, b, true
		}
		pos += int64(len(c.data))
	}
	return 0, nil, false
}

// stop ends next.
func (r *reader) stop() {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	r.stopped = true
	r.log.cond.Broadcast()
}

// detach makes the log forget the reader.
func (r *reader) detach() {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	delete(r.log.readers, r)
	r.log.cond.Broadcast()
}
