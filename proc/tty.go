package proc

import (
	"io"
	"strconv"
	"sync"
	"syscall"
	"time"

	"agentrun.dev/vfs"
)

const (
	ttyLine  = 4096     // bytes of a line that is being typed (MAX_CANON); more are refused with a bell
	ttyQueue = 64 << 10 // input that nobody has read, and output that the client hasn't taken; then writers wait
	ttyEcho  = 4 << 10  // room for echo beyond that
	maxTTYs  = 1024
	ttyMajor = 136
	ttyGroup = 5
)

// TTY is a terminal, seen from the side of its client, such as an SSH server: Write is what is typed, Read what is to
// be shown. Processes have it open as /dev/pts/N. Between the two is a line discipline as Linux's: editing of lines, echo,
// signals by keys, and job control. All methods may be called concurrently, but Read and Write each by one goroutine at a time.
//
// A client that doesn't read holds up those who write to the terminal once 64 KiB wait for it. In a copied sandbox a
// terminal has no client until Attach: it keeps the newest MiB of output, and nobody waits.
type TTY struct {
	sb   *Sandbox
	n    int
	born time.Time

	mu       sync.Mutex
	change   chan struct{} // closed and forgotten at each change that somebody waits for
	termios  Termios
	size     WinSize
	uid      uint32
	sid      int // the session that it controls, 0 for none
	pgrp     int // its foreground group
	opens    int // open descriptions of it
	opened   bool
	hungUp   bool
	detached bool  // no client: output is logged
	lost     int64 // of the log

	ttyInput
	ttyOutput
}

// NewTTY makes a terminal that belongs to a user; EMFILE past a thousand.
func (s *Sandbox) NewTTY(size WinSize, uid uint32) (*TTY, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range maxTTYs {
		if s.ttys[n] == nil {
			t := &TTY{sb: s, n: n, born: s.clock(), termios: DefaultTermios(), size: size, uid: uid}
			if s.ttys == nil {
				s.ttys = make(map[int]*TTY)
			}
			s.ttys[n] = t
			return t, nil
		}
	}
	return nil, syscall.EMFILE
}

// TTYs returns the sandbox's terminals by ascending number.
func (s *Sandbox) TTYs() []*TTY {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*TTY, 0, len(s.ttys))
	for n := range maxTTYs {
		if len(list) == len(s.ttys) {
			break
		}
		if t := s.ttys[n]; t != nil {
			list = append(list, t)
		}
	}
	return list
}

// Name returns the terminal's path, /dev/pts/N.
func (t *TTY) Name() string { return "/dev/pts/" + strconv.Itoa(t.n) }

// File opens the terminal once, for a process's descriptors.
func (t *TTY) File() vfs.File { return t.open(syscall.O_RDWR) }

func (t *TTY) open(flags int) *ttyFile {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.opens++
	t.opened = true
	return &ttyFile{t: t, flags: flags & (syscall.O_ACCMODE | syscall.O_APPEND)}
}

func (t *TTY) broadcast() {
	if t.change != nil {
		close(t.change)
		t.change = nil
	}
}

// next returns what is closed at the next change. t.mu is held.
func (t *TTY) next() <-chan struct{} {
	if t.change == nil {
		t.change = make(chan struct{})
	}
	return t.change
}

// Read returns what is to be shown. It waits for it; io.EOF once the terminal is hung up, or no process has it open
// any more, and all has been read.
func (t *TTY) Read(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		if len(t.out) > 0 {
			n := copy(b, t.out)
			t.out = t.out[n:]
			if len(t.out) == 0 {
				t.out = nil
			}
			t.broadcast()
			return n, nil
		}
		if t.hungUp || t.opened && t.opens == 0 {
			return 0, io.EOF
		}
		if len(b) == 0 {
			return 0, nil
		}
		ch := t.next()
		t.mu.Unlock()
		<-ch
		t.mu.Lock()
	}
}

// Write types bytes. It waits while nobody reads what was typed before; EIO after Hangup.
func (t *TTY) Write(b []byte) (n int, err error) {
	for n < len(b) {
		t.mu.Lock()
		switch {
		case t.hungUp:
			t.mu.Unlock()
			return n, syscall.EIO
		case t.inputFull():
			ch := t.next()
			t.mu.Unlock()
			<-ch
			continue
		}
		var sigs []int
		for n < len(b) && !t.inputFull() && len(sigs) == 0 {
			if sig := t.typed(b[n]); sig != 0 {
				sigs = append(sigs, sig)
			}
			n++
		}
		t.broadcast()
		pgrp := t.pgrp
		t.mu.Unlock()
		for _, sig := range sigs {
			t.sb.signalGroup(pgrp, sig)
		}
	}
	return n, nil
}

// Size returns the size that programs see.
func (t *TTY) Size() WinSize {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.size
}

// Resize sets the size and, if it differs, sends WINCH to the foreground group.
func (t *TTY) Resize(size WinSize) {
	t.mu.Lock()
	changed, pgrp := t.size != size, t.pgrp
	t.size = size
	t.mu.Unlock()
	if changed {
		t.sb.signalGroup(pgrp, SIGWINCH)
	}
}

// Settings returns how the terminal is set.
func (t *TTY) Settings() Termios {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.termios
}

// Configure sets how the terminal is set, as a client's modes ask for at the beginning.
func (t *TTY) Configure(set Termios) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.configure(set)
}

// configure keeps what has been typed readable when the way of reading changes. t.mu is held.
func (t *TTY) configure(set Termios) {
	was := t.termios
	t.termios = set
	if (was.Lflag^set.Lflag)&ICANON != 0 {
		t.remake(set.Lflag&ICANON != 0)
	}
	if set.Iflag&IXON == 0 {
		t.stopped = false
	}
	t.broadcast()
}

// Hangup ends the terminal, as the loss of its line: the session's leader and the foreground group get HUP and CONT,
// reads are at the end, writes EIO. What is still to be shown can be read.
func (t *TTY) Hangup() {
	t.mu.Lock()
	if t.hungUp {
		t.mu.Unlock()
		return
	}
	t.hungUp = true
	sid, pgrp := t.sid, t.pgrp
	t.sid, t.pgrp = 0, 0
	t.broadcast()
	t.mu.Unlock()
	s := t.sb
	s.mu.Lock()
	delete(s.ttys, t.n)
	leader := s.procs[sid]
	for _, p := range s.procs {
		if p.tty == t {
			p.tty = nil
		}
	}
	s.mu.Unlock()
	if leader != nil {
		leader.post(SIGHUP)
		leader.post(SIGCONT)
	}
	if pgrp != 0 && pgrp != sid {
		s.signalGroup(pgrp, SIGHUP)
		s.signalGroup(pgrp, SIGCONT)
	}
}

// Close is Hangup.
func (t *TTY) Close() error {
	t.Hangup()
	return nil
}

// Attach says that there is a client again, which Reads and Writes: output waits for it from now on. lost counts the bytes
// that were too many while there was none.
func (t *TTY) Attach() (lost int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	lost, t.lost, t.detached = t.lost, 0, false
	return lost
}

// Detach says that the client has gone, without a hang-up: the newest MiB of output is kept for the next one.
func (t *TTY) Detach() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.detached = true
	t.broadcast()
}

// ttyFile is an open terminal, as processes have it.
type ttyFile struct {
	special
	t      *TTY
	flags  int
	closed bool // guarded by t.mu
}

// Terminal implements terminal.
func (f *ttyFile) Terminal() bool { return true }

func (f *ttyFile) Read(b []byte) (int, error)  { return f.readIntr(b, waiter{}) }
func (f *ttyFile) Write(b []byte) (int, error) { return f.writeIntr(b, waiter{}) }
func (f *ttyFile) Flags() int                  { return f.flags }
func (f *ttyFile) Attr() (vfs.Attr, error)     { return f.t.attr(), nil }

func (t *TTY) attr() vfs.Attr {
	return vfs.Attr{Ino: ptsIno(t.n), Mode: vfs.ModeChar | 0o620, Nlink: 1, UID: t.uid, GID: ttyGroup, Rdev: ttyMajor<<8 | uint64(t.n&0xff) | uint64(t.n&^0xff)<<12, Atime: t.born, Mtime: t.born, Ctime: t.born}
}

func (f *ttyFile) Close() error {
	t := f.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.closed {
		return syscall.EBADF
	}
	f.closed = true
	t.opens--
	t.broadcast()
	return nil
}

func (f *ttyFile) readIntr(b []byte, w waiter) (int, error) {
	t := f.t
	var timer *time.Timer
	seen := 0 // bytes that were there when the timer began
	for {
		if err := t.background(w, SIGTTIN); err != nil {
			return 0, err
		}
		t.mu.Lock()
		if f.closed {
			t.mu.Unlock()
			return 0, syscall.EBADF
		}
		n, ready, after, err := t.take(b)
		if ready {
			t.broadcast()
			t.mu.Unlock()
			return n, err
		}
		ch, there := t.next(), len(t.ready)
		t.mu.Unlock()
		if after == 0 {
			if err := w.until(ch); err != nil {
				return 0, err
			}
			continue
		}
		// The terminal's own timeout runs from the start, or anew with each byte.
		if timer == nil || there != seen {
			seen = there
			timer = time.NewTimer(after)
			defer timer.Stop()
		}
		expired, err := w.untilTime(ch, timer)
		if err != nil {
			return 0, err
		}
		if expired {
			return f.leftover(b)
		}
	}
}

// leftover is what a read returns when the terminal's timeout is over.
func (f *ttyFile) leftover(b []byte) (int, error) {
	f.t.mu.Lock()
	defer f.t.mu.Unlock()
	n := f.t.takeAny(b)
	f.t.broadcast()
	if n == 0 {
		return 0, io.EOF // as read(2) says, nothing
	}
	return n, nil
}

func (f *ttyFile) writeIntr(b []byte, w waiter) (n int, err error) {
	t := f.t
	if w.p != nil && t.Settings().Lflag&TOSTOP != 0 {
		if err := t.background(w, SIGTTOU); err != nil {
			return 0, err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		switch {
		case f.closed:
			return n, syscall.EBADF
		case t.hungUp:
			return n, syscall.EIO
		case len(b) == n:
			return n, nil
		}
		if k := t.show(b[n:]); k > 0 {
			n += k
			t.broadcast()
			continue
		}
		ch := t.next()
		t.mu.Unlock()
		if n > 0 {
			err = w.untilMoved(ch)
		} else {
			err = w.until(ch)
		}
		t.mu.Lock()
		switch err {
		case nil:
		case errShort:
			return n, nil
		default:
			return n, err
		}
	}
}

// poll returns nil when a read would not wait.
func (f *ttyFile) poll() <-chan struct{} {
	t := f.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.closed || t.hungUp || t.readable() {
		return nil
	}
	return t.next()
}
