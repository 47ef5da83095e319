package proc

import "syscall"

// signalGroup sends a signal to a process group, as a terminal does.
func (s *Sandbox) signalGroup(pgid, sig int) {
	if pgid == 0 {
		return
	}
	s.mu.Lock()
	var members []*Process
	for _, p := range s.sorted() {
		if p.pgid == pgid {
			members = append(members, p)
		}
	}
	s.mu.Unlock()
	for _, p := range members {
		p.post(sig)
	}
}

// background holds up a process of the background that reads from its terminal or changes it: its group is stopped by
// sig until it is continued, and then looks again. EIO when nobody could continue it, or it ignores TTIN; one that
// ignores TTOU may go on.
func (t *TTY) background(w waiter, sig int) error {
	p := w.p
	for p != nil {
		p.sb.mu.Lock()
		pgid, sid, mine := p.pgid, p.sid, p.tty == t
		lost := mine && p.sb.orphanedLocked(pgid, sid)
		p.sb.mu.Unlock()
		t.mu.Lock()
		fore := t.pgrp
		t.mu.Unlock()
		switch {
		case !mine || fore == pgid || fore == 0:
			return nil
		case p.Disposition(sig) == Ignore && sig == SIGTTOU:
			return nil
		case p.Disposition(sig) == Ignore, lost:
			return syscall.EIO
		}
		p.sb.signalGroup(pgid, sig)
		if p.Disposition(sig) == Handle {
			return syscall.EINTR
		}
		if err := p.gate(); err != nil {
			return err
		}
	}
	return nil
}

// terminal returns the terminal that a descriptor is: EBADF, ENOTTY.
func (p *Process) terminal(fd int) (*TTY, error) {
	d, err := p.fds.get(fd)
	if err != nil {
		return nil, err
	}
	if f, ok := d.file.(*ttyFile); ok {
		return f.t, nil
	}
	return nil, syscall.ENOTTY
}

// TTY returns the process's controlling terminal, nil when it has none.
func (p *Process) TTY() *TTY {
	p.sb.mu.Lock()
	defer p.sb.mu.Unlock()
	return p.tty
}

// TTYName returns the path of the terminal that a descriptor is: EBADF, ENOTTY.
func (p *Process) TTYName(fd int) (string, error) {
	t, err := p.terminal(fd)
	if err != nil {
		return "", err
	}
	return t.Name(), nil
}

// Termios returns how a descriptor's terminal is set, as tcgetattr: EBADF, ENOTTY.
func (p *Process) Termios(fd int) (Termios, error) {
	t, err := p.terminal(fd)
	if err != nil {
		return Termios{}, err
	}
	return t.Settings(), nil
}

// SetTermios sets it, as tcsetattr; when is SetNow, SetDrain or SetFlush. In the background it stops the process with
// TTOU. Errors: EBADF, ENOTTY, EINVAL, EIO, EINTR.
func (p *Process) SetTermios(fd int, set Termios, when int) error {
	if err := p.gate(); err != nil {
		return err
	}
	t, err := p.terminal(fd)
	if err != nil {
		return err
	}
	if when < SetNow || when > SetFlush {
		return syscall.EINVAL
	}
	w := p.waiter()
	if err := t.background(w, SIGTTOU); err != nil {
		return err
	}
	if when != SetNow {
		if err := t.drain(w); err != nil {
			return err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if when == SetFlush {
		t.flush()
	}
	t.configure(set)
	return nil
}

// drain waits until the client has taken all output.
func (t *TTY) drain(w waiter) error {
	for {
		t.mu.Lock()
		if len(t.out) == 0 || t.hungUp || t.detached {
			t.mu.Unlock()
			return nil
		}
		ch := t.next()
		t.mu.Unlock()
		if err := w.until(ch); err != nil {
			return err
		}
	}
}

// FlushInput drops what was typed and hasn't been read, as tcflush does: EBADF, ENOTTY.
func (p *Process) FlushInput(fd int) error {
	t, err := p.terminal(fd)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flush()
	t.broadcast()
	return nil
}

// WindowSize returns the size of a descriptor's terminal: EBADF, ENOTTY.
func (p *Process) WindowSize(fd int) (WinSize, error) {
	t, err := p.terminal(fd)
	if err != nil {
		return WinSize{}, err
	}
	return t.Size(), nil
}

// SetWindowSize sets it, and sends WINCH to the foreground group: EBADF, ENOTTY.
func (p *Process) SetWindowSize(fd int, size WinSize) error {
	t, err := p.terminal(fd)
	if err != nil {
		return err
	}
	t.Resize(size)
	return nil
}

// Foreground returns the foreground group of the controlling terminal that a descriptor is, as tcgetpgrp: EBADF, ENOTTY.
func (p *Process) Foreground(fd int) (int, error) {
	t, err := p.controlling(fd)
	if err != nil {
		return 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pgrp, nil
}

// SetForeground makes a group of the session the foreground one, as tcsetpgrp. A process of the background is stopped by
// TTOU unless it ignores that. Errors: EBADF, ENOTTY, EPERM for a group of another session or without members, EIO, EINTR.
func (p *Process) SetForeground(fd, pgid int) error {
	if err := p.gate(); err != nil {
		return err
	}
	t, err := p.controlling(fd)
	if err != nil {
		return err
	}
	if err := t.background(p.waiter(), SIGTTOU); err != nil {
		return err
	}
	s := p.sb
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.procs {
		if q.pgid == pgid && q.sid == p.sid {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.pgrp = pgid
			t.broadcast()
			return nil
		}
	}
	return syscall.EPERM
}

// controlling returns the terminal of a descriptor if it controls the process's session.
func (p *Process) controlling(fd int) (*TTY, error) {
	t, err := p.terminal(fd)
	if err != nil {
		return nil, err
	}
	if p.TTY() != t {
		return nil, syscall.ENOTTY
	}
	return t, nil
}

// SetControllingTTY makes a descriptor's terminal the one that controls the session, whose leader the process must be,
// without another one, and with its own group in the foreground: EBADF, ENOTTY, EPERM.
func (p *Process) SetControllingTTY(fd int) error {
	t, err := p.terminal(fd)
	if err != nil {
		return err
	}
	return p.control(t)
}

func (p *Process) control(t *TTY) error {
	s := p.sb
	s.mu.Lock()
	defer s.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.sid != p.pid || p.tty != nil && p.tty != t || t.sid != 0 && t.sid != p.sid || t.hungUp {
		return syscall.EPERM
	}
	if t.sid == 0 {
		t.sid, t.pgrp = p.sid, p.pgid
	}
	for _, q := range s.procs {
		if q.sid == p.sid {
			q.tty = t
		}
	}
	return nil
}

// leaderEnded takes a session's terminal away when its leader has ended: it is hung up.
func (p *Process) leaderEnded() {
	s := p.sb
	s.mu.Lock()
	t := p.tty
	leads := t != nil && p.sid == p.pid
	s.mu.Unlock()
	if leads {
		t.Hangup()
	}
}
