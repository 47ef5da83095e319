package proc

import (
	"io"
	"sync"
	"syscall"
)

// logSize bounds what is kept of a stream while no client is attached: the newest bytes.
const logSize = 1 << 20

// clientLog is the other side of an Output in a copy of a sandbox: a client, or while there is none a log.
type clientLog struct {
	mu   sync.Mutex // never held while a client is written to
	w    io.Writer
	data []byte
	lost int64 // bytes that were too many for the log
}

// write takes all bytes. Those that the client doesn't take go to the log, and the client is let go.
func (l *clientLog) write(b []byte) {
	l.mu.Lock()
	w := l.w
	l.mu.Unlock()
	if w != nil {
		n, err := w.Write(b)
		if err == nil {
			return
		}
		l.detach(w)
		b = b[min(max(n, 0), len(b)):]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.data, l.lost = keepNewest(l.data, b, l.lost)
}

// keepNewest appends to a log of logSize bytes. It cuts in larger steps, so that it doesn't move all for each write.
func keepNewest(log, b []byte, lost int64) ([]byte, int64) {
	if over := len(b) - logSize; over > 0 {
		b, lost = b[over:], lost+int64(over)
	}
	log = append(log, b...)
	if len(log) > logSize+logSize/4 {
		over := len(log) - logSize
		log, lost = append(make([]byte, 0, logSize+logSize/4), log[over:]...), lost+int64(over)
	}
	return log, lost
}

// client makes a writer one of its own kind: whoever compares two of them needn't know whether they can be compared.
type client struct{ io.Writer }

func (l *clientLog) detach(w io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.w == w {
		l.w = nil
	}
}

// attach gives the client what the log holds, and from then on what is written. The output's mutex is held.
func (l *clientLog) attach(w io.Writer) (lost int64, err error) {
	l.mu.Lock()
	data := l.data
	lost, l.data, l.lost = l.lost, nil, 0
	if over := len(data) - logSize; over > 0 {
		data, lost = data[over:], lost+int64(over)
	}
	l.mu.Unlock()
	if len(data) > 0 {
		if _, err := w.Write(data); err != nil {
			return lost, err
		}
	}
	l.mu.Lock()
	l.w = w
	l.mu.Unlock()
	return lost, nil
}

// Streams are a client's ends of the standard streams of a process. Nil ones stay as they are.
type Streams struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Attachment is a client that is connected to the streams of a process.
type Attachment struct {
	Lost int64 // bytes of output that were too many for the logs
	ends []func()
}

// Attach connects a client to the streams that a process of a copied sandbox has from the client of the original: it gets
// what was written since the copy was made, the newest MiB of it, then goes on as it comes. A client that was attached
// before is let go. What a client doesn't take, because its writer fails, goes to the log again. Errors: ESRCH; ENOTTY
// for a process without such streams, as in a sandbox that isn't a copy; that of a writer.
func (s *Sandbox) Attach(pid int, c Streams) (*Attachment, error) {
	p := s.Lookup(pid)
	if p == nil {
		return nil, syscall.ESRCH
	}
	a, found := &Attachment{}, false
	if in, ok := p.stream(0).(*Input); ok && in.waits && c.Stdin != nil {
		a.ends = append(a.ends, in.attach(c.Stdin))
		found = true
	}
	var first *Output
	for fd, w := range []io.Writer{1: c.Stdout, 2: c.Stderr} {
		o, ok := p.stream(fd).(*Output)
		if w == nil || !ok || o.log == nil || o == first {
			continue
		}
		first, found = o, true
		w = &client{w}
		lost, err := o.attach(w)
		a.Lost += lost
		if err != nil {
			a.Detach()
			return nil, err
		}
		a.ends = append(a.ends, func() { o.log.detach(w) })
	}
	if !found {
		return nil, syscall.ENOTTY
	}
	return a, nil
}

// Detach lets the client go: output is logged, input waits for the next client. A read or write that is under way in the
// client's streams isn't ended by it.
func (a *Attachment) Detach() {
	for _, end := range a.ends {
		end()
	}
}

// stream returns what a root process began with as a standard stream, for others what the descriptor refers to.
func (p *Process) stream(fd int) any {
	if d := p.stdio[fd]; d != nil {
		return d.file
	}
	if d, err := p.fds.get(fd); err == nil {
		return d.file
	}
	return nil
}

func (o *Output) attach(w io.Writer) (int64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.log.attach(w)
}

func (o *Output) image() streamImage {
	si := streamImage{Out: true, TTY: o.tty}
	if l := o.log; l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		si.Data, si.Lost = append([]byte(nil), l.data...), l.lost
	}
	return si
}

// attach lets reads come from r. The result ends that; what a read under way brings then is dropped.
func (in *Input) attach(r io.Reader) (detach func()) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.turn++
	turn := in.turn
	in.r, in.busy, in.buf = r, false, nil
	in.wake()
	return func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		if in.turn == turn {
			in.turn++
			in.r, in.busy, in.buf = nil, false, nil
			in.wake()
		}
	}
}

// wake ends all waits, so that they look again. in.mu is held.
func (in *Input) wake() {
	if in.change != nil {
		close(in.change)
		in.change = nil
	}
}

func (in *Input) image() streamImage {
	in.mu.Lock()
	defer in.mu.Unlock()
	return streamImage{TTY: in.tty, Data: append([]byte(nil), in.pending...), EOF: in.err != nil}
}
