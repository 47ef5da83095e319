package proc

import (
	"io"
	"syscall"
	"time"
)

// ttyInput is what was typed. All is guarded by the TTY's mutex.
type ttyInput struct {
	line     []byte // being typed; not readable yet
	lineFrom int    // the column where it began
	ready    []byte // readable
	segments []int  // canonical mode: the lengths of the lines in ready; a read takes at most one. 0 is an end of file
	literal  bool   // the next character is one without meaning
}

// ttyOutput is what is to be shown.
type ttyOutput struct {
	out     []byte
	column  int
	stopped bool // by the STOP character
}

func (t *TTY) inputFull() bool { return len(t.ready) >= ttyQueue || len(t.segments) >= ttyQueue/8 }

// readable tells whether a read would not wait.
func (t *TTY) readable() bool {
	if t.termios.Lflag&ICANON != 0 {
		return len(t.segments) > 0
	}
	return len(t.ready) >= max(1, int(t.termios.Cc[VMIN]))
}

// take is one look of a read: what it returns if ready, else for how long it waits at most, 0 being without end.
func (t *TTY) take(b []byte) (n int, ready bool, after time.Duration, err error) {
	if t.termios.Lflag&ICANON != 0 {
		if len(t.segments) > 0 {
			n, err := t.takeLine(b)
			return n, true, 0, err
		}
		if t.hungUp {
			return 0, true, 0, io.EOF
		}
		return 0, len(b) == 0, 0, nil
	}
	least, wait := int(t.termios.Cc[VMIN]), time.Duration(t.termios.Cc[VTIME])*100*time.Millisecond
	switch {
	case len(b) == 0, len(t.ready) > 0 && len(t.ready) >= min(least, len(b)):
		return t.takeAny(b), true, 0, nil
	case t.hungUp, least == 0 && wait == 0:
		if n := t.takeAny(b); n > 0 {
			return n, true, 0, nil
		}
		return 0, true, 0, io.EOF
	case least == 0, len(t.ready) > 0:
		return 0, false, wait, nil
	}
	return 0, false, 0, nil
}

func (t *TTY) takeLine(b []byte) (int, error) {
	if t.segments[0] == 0 {
		t.segments = t.segments[1:]
		return 0, io.EOF
	}
	n := copy(b, t.ready[:t.segments[0]])
	t.ready = t.ready[n:]
	if t.segments[0] -= n; t.segments[0] == 0 {
		t.segments = t.segments[1:]
	}
	t.shrink()
	return n, nil
}

func (t *TTY) takeAny(b []byte) int {
	n := copy(b, t.ready)
	t.ready = t.ready[n:]
	t.shrink()
	return n
}

func (t *TTY) shrink() {
	if len(t.ready) == 0 {
		t.ready = nil
	}
	if len(t.segments) == 0 {
		t.segments = nil
	}
}

// remake turns what has been typed from lines into bytes, or the other way round.
func (t *TTY) remake(lines bool) {
	t.segments = nil
	if !lines {
		t.ready, t.line = append(t.ready, t.line...), nil
	} else if len(t.ready) > 0 {
		t.segments = []int{len(t.ready)}
	}
}

// flush drops what nobody has read.
func (t *TTY) flush() { t.line, t.ready, t.segments, t.literal = nil, nil, nil, false }

// typed takes one character, and returns the signal that it sends to the foreground group, 0 for none.
func (t *TTY) typed(c byte) (sig int) {
	s := &t.termios
	if s.Iflag&ISTRIP != 0 {
		c &= 0x7f
	}
	if t.literal {
		t.literal = false
		t.store(c)
		return 0
	}
	is := func(i int) bool { return c != 0 && c == s.Cc[i] }
	if s.Iflag&IXON != 0 {
		switch {
		case is(VSTART):
			t.stopped = false
			return 0
		case is(VSTOP):
			t.stopped = true
			return 0
		case s.Iflag&IXANY != 0:
			t.stopped = false
		}
	}
	if s.Lflag&ISIG != 0 {
		switch {
		case is(VINTR):
			return t.signal(c, SIGINT)
		case is(VQUIT):
			return t.signal(c, SIGQUIT)
		case is(VSUSP):
			return t.signal(c, SIGTSTP)
		}
	}
	switch {
	case c == '\r' && s.Iflag&IGNCR != 0:
		return 0
	case c == '\r' && s.Iflag&ICRNL != 0:
		c = '\n'
	case c == '\n' && s.Iflag&INLCR != 0:
		c = '\r'
	}
	if s.Lflag&ICANON == 0 || !t.edit(c) {
		t.store(c)
	}
	return 0
}

// signal does what comes with a signal's character.
func (t *TTY) signal(c byte, sig int) int {
	if t.termios.Lflag&NOFLSH == 0 {
		t.flush()
		t.out = nil
	}
	t.stopped = false
	t.echo(c)
	return sig
}

// store appends a character to what is read, and to the line or its end.
func (t *TTY) store(c byte) {
	if t.termios.Lflag&ICANON == 0 {
		t.ready = append(t.ready, c)
		t.echo(c)
		return
	}
	if len(t.line) >= ttyLine-1 {
		t.bell()
		return
	}
	if len(t.line) == 0 {
		t.lineFrom = t.column
	}
	t.line = append(t.line, c)
	t.echo(c)
}

// edit takes the characters that edit or end a line; false for others.
func (t *TTY) edit(c byte) bool {
	s := &t.termios
	is := func(i int) bool { return c != 0 && c == s.Cc[i] }
	extended := s.Lflag&IEXTEN != 0
	switch {
	case is(VERASE):
		t.erase(1)
	case extended && is(VWERASE):
		t.erase(t.lastWord())
	case is(VKILL):
		t.kill()
	case extended && is(VLNEXT):
		t.literal = true
		if s.Lflag&(ECHO|ECHOCTL) == ECHO|ECHOCTL {
			t.display([]byte("^\b"))
		}
	case extended && is(VREPRINT):
		t.reprint(c)
	case is(VEOF):
		t.commit()
	case c == '\n':
		if s.Lflag&(ECHO|ECHONL) != 0 {
			t.display([]byte{c})
		}
		t.line = append(t.line, c)
		t.commit()
	case is(VEOL), extended && is(VEOL2):
		t.echo(c)
		t.line = append(t.line, c)
		t.commit()
	default:
		return false
	}
	return true
}

// commit makes the line readable; an empty one is an end of file.
func (t *TTY) commit() {
	t.ready, t.segments = append(t.ready, t.line...), append(t.segments, len(t.line))
	t.line = nil
}

// lastWord counts the characters of the last word and the blanks behind it.
func (t *TTY) lastWord() int {
	i, n := len(t.line), 0
	blank := func() bool { return t.line[i-1] == ' ' || t.line[i-1] == '\t' }
	for ; i > 0 && blank(); n++ {
		i--
	}
	for i > 0 && !blank() {
		i = t.before(i)
		n++
	}
	return n
}

// before returns where the character begins that ends at i.
func (t *TTY) before(i int) int {
	i--
	if t.termios.Iflag&IUTF8 != 0 {
		for k := 0; k < 3 && i > 0 && t.line[i]&0xc0 == 0x80; k++ {
			i--
		}
	}
	return i
}

// erase takes away the last n characters of the line, on the screen too.
func (t *TTY) erase(n int) {
	for ; n > 0 && len(t.line) > 0; n-- {
		at := t.before(len(t.line))
		from, to := t.columnOf(at), t.columnOf(len(t.line))
		c := t.line[at]
		t.line = t.line[:at]
		if t.termios.Lflag&ECHO == 0 {
			continue
		}
		if t.termios.Lflag&ECHOE == 0 {
			t.echo(t.termios.Cc[VERASE])
			continue
		}
		for ; to > from; to-- {
			if c == '\t' {
				t.display([]byte("\b"))
			} else {
				t.display([]byte("\b \b"))
			}
		}
	}
}

// columnOf returns the column where the line's character at i is shown.
func (t *TTY) columnOf(i int) int {
	col := t.lineFrom
	for _, c := range t.line[:i] {
		switch {
		case c == '\t':
			col = col&^7 + 8
		case c < 32 || c == 127:
			if t.termios.Lflag&ECHOCTL != 0 {
				col += 2
			}
		case t.termios.Iflag&IUTF8 == 0 || c&0xc0 != 0x80:
			col++
		}
	}
	return col
}

// kill takes the line away.
func (t *TTY) kill() {
	s := &t.termios
	if s.Lflag&(ECHO|ECHOK|ECHOKE|ECHOE) == ECHO|ECHOK|ECHOKE|ECHOE {
		t.erase(len(t.line))
		return
	}
	t.line = nil
	t.echo(s.Cc[VKILL])
	if s.Lflag&ECHOK != 0 && s.Lflag&ECHO != 0 {
		t.display([]byte("\n"))
	}
}

// reprint shows the line again, below.
func (t *TTY) reprint(c byte) {
	if t.termios.Lflag&ECHO == 0 {
		return
	}
	t.echo(c)
	t.display([]byte("\n"))
	t.lineFrom = t.column
	for _, c := range t.line {
		t.echo(c)
	}
}

func (t *TTY) bell() {
	if t.termios.Iflag&IMAXBEL != 0 {
		t.display([]byte{7})
	}
}

// echo shows a character that was typed, control characters as ^X.
func (t *TTY) echo(c byte) {
	switch s := &t.termios; {
	case s.Lflag&ECHO == 0:
	case s.Lflag&ECHOCTL != 0 && (c < 32 && c != '\t' && c != '\n' || c == 127):
		t.display([]byte{'^', c ^ 64})
	default:
		t.display([]byte{c})
	}
}

// display shows what the terminal itself has to say, unless the client is far behind.
func (t *TTY) display(b []byte) {
	if len(t.out) < ttyQueue+ttyEcho || t.detached {
		for _, c := range b {
			t.put(c)
		}
		t.trim()
	}
}

// show takes output of programs, as much as there is room for, and returns how much that is.
func (t *TTY) show(b []byte) (n int) {
	if t.stopped && !t.detached {
		return 0
	}
	for n < len(b) && (t.detached || len(t.out) < ttyQueue) {
		t.put(b[n])
		n++
		if t.detached && n%logSize == 0 {
			t.trim()
		}
	}
	t.trim()
	return n
}

// trim keeps the newest of a terminal without a client.
func (t *TTY) trim() {
	if t.detached && len(t.out) > logSize+logSize/4 {
		t.out, t.lost = keepNewest(t.out, nil, t.lost)
	}
}

// put shows one character as the output flags say.
func (t *TTY) put(c byte) {
	o := t.termios.Oflag
	if o&OPOST == 0 {
		t.out = append(t.out, c)
		t.advance(c)
		return
	}
	switch {
	case c == '\n' && o&ONLCR != 0:
		t.out = append(t.out, '\r', '\n')
		t.column = 0
		return
	case c == '\n' && o&ONLRET != 0:
		t.column = 0
	case c == '\r' && o&ONOCR != 0 && t.column == 0:
		return
	case c == '\r' && o&OCRNL != 0:
		c = '\n'
	case c == '\t' && o&XTABS == XTABS:
		for k := 8 - t.column&7; k > 0; k-- {
			t.out = append(t.out, ' ')
			t.column++
		}
		return
	}
	t.out = append(t.out, c)
	t.advance(c)
}

func (t *TTY) advance(c byte) {
	switch {
	case c == '\r':
		t.column = 0
	case c == '\b':
		t.column = max(0, t.column-1)
	case c == '\t':
		t.column = t.column&^7 + 8
	case c >= 32 && c != 127 && (t.termios.Iflag&IUTF8 == 0 || c&0xc0 != 0x80):
		t.column++
	}
}

// untilTime waits for ch or a timer: true when it was the timer.
func (w waiter) untilTime(ch <-chan struct{}, timer *time.Timer) (bool, error) {
	if w.p != nil {
		w.p.enter(naps)
		defer w.p.leave()
	}
	select {
	case <-ch:
		return false, nil
	case <-timer.C:
		return true, nil
	case <-w.intr:
		return false, syscall.EINTR
	}
}
