package proc

import (
	"io"
	"sort"
	"sync"
	"sync/atomic"
	"syscall"

	"agentrun.dev/vfs"
)

// description is an open file description: what descriptors, also of several processes, share.
type description struct {
	refs atomic.Int32
	file vfs.File
	path string // what it was opened by, for /proc
}

func newDescription(f vfs.File) *description {
	if h, ok := f.(*handle); ok {
		h.d.refs.Add(1)
		return h.d
	}
	d := &description{file: f}
	d.refs.Store(1)
	return d
}

func (d *description) release() error {
	if d.refs.Add(-1) == 0 {
		return d.file.Close()
	}
	return nil
}

type slot struct {
	d       *description
	cloexec bool
}

// fdTable maps descriptors to descriptions.
type fdTable struct {
	mu     sync.Mutex
	limit  int
	slots  []slot
	closed bool
}

func (t *fdTable) get(fd int) (*description, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if fd < 0 || fd >= len(t.slots) || t.slots[fd].d == nil {
		return nil, syscall.EBADF
	}
	return t.slots[fd].d, nil
}

// set puts d, whose reference it takes over, at fd, closing what was there.
func (t *fdTable) set(fd int, d *description, cloexec bool) error {
	t.mu.Lock()
	if fd < 0 || fd >= t.limit || t.closed {
		t.mu.Unlock()
		d.release()
		return syscall.EBADF
	}
	for len(t.slots) <= fd {
		t.slots = append(t.slots, slot{})
	}
	old := t.slots[fd].d
	t.slots[fd] = slot{d, cloexec}
	t.mu.Unlock()
	if old != nil {
		old.release()
	}
	return nil
}

// add puts d at the lowest free descriptor from min on.
func (t *fdTable) add(d *description, min int, cloexec bool) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fd := min
	for fd < len(t.slots) && t.slots[fd].d != nil {
		fd++
	}
	if fd >= t.limit || t.closed {
		d.release()
		return -1, syscall.EMFILE
	}
	for len(t.slots) <= fd {
		t.slots = append(t.slots, slot{})
	}
	t.slots[fd] = slot{d, cloexec}
	return fd, nil
}

// closeIf closes fd if it still refers to d; a nil d is any.
func (t *fdTable) closeIf(fd int, d *description) error {
	t.mu.Lock()
	if fd < 0 || fd >= len(t.slots) || t.slots[fd].d == nil || d != nil && t.slots[fd].d != d {
		t.mu.Unlock()
		return syscall.EBADF
	}
	d = t.slots[fd].d
	t.slots[fd] = slot{}
	t.mu.Unlock()
	return d.release()
}

func (t *fdTable) closeAll() {
	t.mu.Lock()
	slots := t.slots
	t.slots, t.closed = nil, true
	t.mu.Unlock()
	for _, s := range slots {
		if s.d != nil {
			s.d.release()
		}
	}
}

func (t *fdTable) closeOnExec() {
	t.mu.Lock()
	var drop []*description
	for i, s := range t.slots {
		if s.d != nil && s.cloexec {
			drop = append(drop, s.d)
			t.slots[i] = slot{}
		}
	}
	t.mu.Unlock()
	for _, d := range drop {
		d.release()
	}
}

func (t *fdTable) copyFrom(o *fdTable) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t.mu.Lock() // whoever ends the sandbox may do so now
	defer t.mu.Unlock()
	if t.limit = o.limit; t.closed {
		return
	}
	t.slots = append([]slot(nil), o.slots...)
	for _, s := range t.slots {
		if s.d != nil {
			s.d.refs.Add(1)
		}
	}
}

// interruptible is a file whose reads and writes wait. What waits, and what ends the wait, the waiter says.
type interruptible interface {
	readIntr(b []byte, w waiter) (int, error)
	writeIntr(b []byte, w waiter) (int, error)
}

// handle is a description as one process sees it: each call is a gate of that process.
type handle struct {
	p  *Process
	d  *description
	fd int
}

// gate is the process's, and fails once the descriptor is closed or refers to something else.
func (h *handle) gate() error {
	if err := h.p.gate(); err != nil {
		return err
	}
	if d, err := h.p.fds.get(h.fd); err != nil || d != h.d {
		return syscall.EBADF
	}
	return nil
}

func (h *handle) Read(b []byte) (int, error) {
	if err := h.gate(); err != nil {
		return 0, err
	}
	if h.d.file.Flags()&syscall.O_ACCMODE == syscall.O_WRONLY {
		return 0, syscall.EBADF
	}
	if w, ok := h.d.file.(interruptible); ok {
		n, err := w.readIntr(b, h.p.waiter())
		if n > 0 {
			h.p.moved()
		}
		return n, err
	}
	h.p.moved()
	return h.d.file.Read(b)
}

func (h *handle) Write(b []byte) (n int, err error) {
	if err := h.gate(); err != nil {
		return 0, err
	}
	if h.d.file.Flags()&syscall.O_ACCMODE == syscall.O_RDONLY {
		return 0, syscall.EBADF
	}
	if w, ok := h.d.file.(interruptible); ok {
		n, err = w.writeIntr(b, h.p.waiter())
	} else {
		if h.p.limited.Load() {
			if n, err = h.p.mayWrite(h.d.file, -1, len(b)); err != nil {
				return 0, err
			}
			if n < len(b) { // the rest is for the next write to refuse
				defer func() {
					if err == nil {
						err = syscall.EFBIG
						h.p.post(SIGXFSZ)
					}
				}()
			}
			b = b[:n]
		}
		if err := h.p.charge(len(b)); err != nil {
			return 0, err
		}
		n, err = h.d.file.Write(b)
	}
	if n > 0 {
		h.p.moved()
	}
	switch err {
	case syscall.EPIPE:
		h.p.post(SIGPIPE)
	case errOutputLimit:
		h.p.sb.exceed("output")
		h.p.kill(SIGXFSZ)
		err = syscall.EFBIG
	}
	return n, err
}

// charge accounts for bytes written to files; more than the limit is EFBIG and XFSZ.
func (p *Process) charge(n int) error {
	if p.sb.written.Add(int64(n)) > p.sb.limits.FileBytes {
		p.sb.exceed("file bytes")
		p.post(SIGXFSZ)
		return syscall.EFBIG
	}
	return nil
}

func (h *handle) ReadAt(b []byte, off int64) (int, error) {
	if err := h.gate(); err != nil {
		return 0, err
	}
	return h.d.file.ReadAt(b, off)
}

func (h *handle) WriteAt(b []byte, off int64) (int, error) {
	if err := h.gate(); err != nil {
		return 0, err
	}
	if err := h.p.charge(len(b)); err != nil {
		return 0, err
	}
	if h.p.limited.Load() {
		if n, err := h.p.mayWrite(h.d.file, off, len(b)); err != nil {
			return 0, err
		} else if n < len(b) {
			n, err = h.d.file.WriteAt(b[:n], off)
			if err == nil {
				err = syscall.EFBIG
				h.p.post(SIGXFSZ)
			}
			return n, err
		}
	}
	h.p.moved()
	return h.d.file.WriteAt(b, off)
}

func (h *handle) Seek(off int64, whence int) (int64, error) {
	if err := h.gate(); err != nil {
		return 0, err
	}
	h.p.moved()
	return h.d.file.Seek(off, whence)
}

func (h *handle) Close() error                           { return h.p.fds.closeIf(h.fd, h.d) }
func (h *handle) Attr() (vfs.Attr, error)                { return h.d.file.Attr() }
func (h *handle) ReadDir() ([]vfs.DirEntry, error)       { return h.d.file.ReadDir() }
func (h *handle) Sync() error                            { return h.d.file.Sync() }
func (h *handle) Flags() int                             { return h.d.file.Flags() }
func (p *Process) handle(fd int, d *description) *handle { return &handle{p, d, fd} }

func (h *handle) SetAttr(s vfs.SetAttr) error {
	if err := h.p.mayTruncate(s.Size); err != nil {
		return err
	}
	return h.d.file.SetAttr(s)
}

// Fd returns the number of a file that File, Open or Pipe returned to this process, -1 for another.
func (p *Process) Fd(f vfs.File) int {
	if h, ok := f.(*handle); ok && h.p == p {
		return h.fd
	}
	return -1
}

// File returns what a descriptor refers to: EBADF. Closing it closes the descriptor.
func (p *Process) File(fd int) (vfs.File, error) {
	d, err := p.fds.get(fd)
	if err != nil {
		return nil, err
	}
	return p.handle(fd, d), nil
}

// badFile is what a closed standard stream is.
type badFile struct{}

func (badFile) Read([]byte) (int, error)  { return 0, syscall.EBADF }
func (badFile) Write([]byte) (int, error) { return 0, syscall.EBADF }

// Stdin returns descriptor 0; a closed one reads EBADF.
func (p *Process) Stdin() io.Reader {
	if f, err := p.File(0); err == nil {
		return f
	}
	return badFile{}
}

// Stdout returns descriptor 1, unbuffered. When nobody reads any more a write returns EPIPE and the process gets PIPE.
func (p *Process) Stdout() io.Writer { return p.writer(1) }

// Stderr returns descriptor 2, unbuffered.
func (p *Process) Stderr() io.Writer { return p.writer(2) }

func (p *Process) writer(fd int) io.Writer {
	if f, err := p.File(fd); err == nil {
		return f
	}
	return badFile{}
}

// terminal is implemented by files that are terminals.
type terminal interface{ Terminal() bool }

// IsTerminal tells whether a descriptor is a terminal.
func (p *Process) IsTerminal(fd int) bool {
	d, err := p.fds.get(fd)
	if err != nil {
		return false
	}
	t, ok := d.file.(terminal)
	return ok && t.Terminal()
}

// Dup makes the lowest free descriptor, min or higher, refer to what fd does: EBADF, EMFILE.
func (p *Process) Dup(fd, min int, cloexec bool) (int, error) {
	d, err := p.fds.get(fd)
	if err != nil {
		return -1, err
	}
	d.refs.Add(1)
	return p.fds.add(d, min, cloexec)
}

// Dup2 makes to refer to what fd does, closing what it was: EBADF. The copy stays open on exec.
func (p *Process) Dup2(fd, to int) error {
	d, err := p.fds.get(fd)
	if err != nil {
		return err
	}
	if fd == to {
		p.SetCloseOnExec(fd, false)
		return nil
	}
	d.refs.Add(1)
	return p.fds.set(to, d, false)
}

// Install makes fd refer to f, closing what it was, and gives f to the process.
func (p *Process) Install(fd int, f vfs.File) error {
	if h, ok := f.(*handle); ok {
		if h.p == p && h.fd == fd {
			return nil
		}
		h.d.refs.Add(1)
		if h.p == p {
			defer h.Close()
		}
		return p.fds.set(fd, h.d, false)
	}
	return p.fds.set(fd, newDescription(f), false)
}

// CloseFd closes a descriptor: EBADF.
func (p *Process) CloseFd(fd int) error { return p.fds.closeIf(fd, nil) }

// SetCloseOnExec sets whether a descriptor is closed when a program is executed.
func (p *Process) SetCloseOnExec(fd int, on bool) {
	p.fds.mu.Lock()
	defer p.fds.mu.Unlock()
	if fd >= 0 && fd < len(p.fds.slots) && p.fds.slots[fd].d != nil {
		p.fds.slots[fd].cloexec = on
	}
}

// Fds lists the open descriptors, ascending.
func (p *Process) Fds() []int {
	p.fds.mu.Lock()
	defer p.fds.mu.Unlock()
	var out []int
	for i, s := range p.fds.slots {
		if s.d != nil {
			out = append(out, i)
		}
	}
	sort.Ints(out)
	return out
}

// Pipe makes a pipe of 64 KiB. Both ends are closed on exec.
func (p *Process) Pipe() (r, w vfs.File, err error) {
	pp := newPipe(p.sb.pipeIDs.Add(1))
	rd, wd := newDescription(pp.open(true, false)), newDescription(pp.open(false, true))
	rf, err := p.fds.add(rd, 0, true)
	if err != nil {
		wd.release()
		return nil, nil, err
	}
	wf, err := p.fds.add(wd, 0, true)
	if err != nil {
		p.CloseFd(rf)
		return nil, nil, err
	}
	return p.handle(rf, rd), p.handle(wf, wd), nil
}

// memFile is a read-only file without a name, as of a here-document.
type memFile struct {
	special
	mu   sync.Mutex
	text []byte
	off  int64
}

// MemFile makes a file to read from bytes, which belong to it from now on, at the lowest free descriptor from 3 on.
func (p *Process) MemFile(text []byte) (vfs.File, error) {
	d := newDescription(&memFile{text: text})
	fd, err := p.fds.add(d, 3, true)
	if err != nil {
		return nil, err
	}
	return p.handle(fd, d), nil
}

func (m *memFile) Read(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.ReadAt(b, m.off)
	m.off += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

func (m *memFile) ReadAt(b []byte, off int64) (int, error) {
	if off < 0 || off >= int64(len(m.text)) {
		return 0, io.EOF
	}
	n := copy(b, m.text[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (m *memFile) Seek(off int64, whence int) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch whence {
	case io.SeekCurrent:
		off += m.off
	case io.SeekEnd:
		off += int64(len(m.text))
	}
	if off < 0 {
		return 0, syscall.EINVAL
	}
	m.off = off
	return off, nil
}

func (m *memFile) Write([]byte) (int, error) { return 0, syscall.EBADF }
func (m *memFile) Flags() int                { return syscall.O_RDONLY }
func (m *memFile) Attr() (vfs.Attr, error) {
	return vfs.Attr{Ino: 2, Mode: vfs.ModeRegular | 0o600, Size: int64(len(m.text))}, nil
}
