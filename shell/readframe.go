package shell

import (
	"io"
	"strconv"
	"syscall"
	"time"

	"agentrun.dev/proc"
)

// reading is what read has got so far of a line.
type reading struct {
	line  []rawByte
	count int  // characters
	back  bool // the last byte was a backslash that quotes
	more  int  // bytes that the last character still lacks
}

// take adds a byte; done tells that the delimiter or the number of characters has been reached.
func (r *reading) take(c byte, o *readOpts) (done bool) {
	switch {
	case r.more > 0:
		r.line = append(r.line, rawByte{c, false})
		r.more--
	case r.back:
		if r.back = false; c == '\n' {
			return false
		}
		r.line = append(r.line, rawByte{c, true})
		r.more = r.lacks(c, o)
	case c == '\\' && !o.raw:
		r.back = true
		return false
	case c == o.delim && !o.exact:
		return true
	case c == 0:
		return false
	default:
		r.line = append(r.line, rawByte{c, false})
		r.more = r.lacks(c, o)
	}
	if o.chars > 0 && r.more == 0 {
		r.count++
		return r.count >= o.chars
	}
	return false
}

// lacks tells how many bytes follow a character's first: they count only where characters are counted.
func (r *reading) lacks(c byte, o *readOpts) int {
	if o.chars > 0 {
		return continuation(c)
	}
	return 0
}

// readFrame reads for read and select from what can make it wait.
type readFrame struct {
	reading
	o     readOpts
	until time.Time     // zero without a time limit
	tty   *proc.Termios // how the terminal was set before, if that was changed
	one   [1]byte       // what was read last,
	n     int           // if it is 1
}

func (f *readFrame) clone() frame {
	c := *f
	c.line = append([]rawByte(nil), f.line...)
	return &c
}

func (f *readFrame) step(sh *Shell) {
	limit := int(sh.p.Sandbox().Limits().Memory)
	for {
		if f.n == 0 {
			err := f.fetch(sh)
			if err == syscall.EINTR && sh.p.Killed() == 0 {
				if sh.takeSignals(); len(sh.pending) > 0 {
					return // traps run, then this goes on
				}
				continue
			}
			if err != nil {
				f.failed(sh, err)
				return
			}
		}
		f.n = 0
		if f.take(f.one[0], &f.o) {
			f.end(sh, 0)
			return
		}
		if len(f.line) > limit {
			sh.errorf("read: line: memory limit exceeded")
			f.end(sh, 1)
			return
		}
	}
}

// prepare sets a terminal for what is asked for: no echo, or single characters.
func (f *readFrame) prepare(sh *Shell) {
	single := f.o.chars > 0 || f.o.delim != '\n'
	if !f.o.silent && !single {
		return
	}
	set, err := sh.p.Termios(f.o.fd)
	if err != nil {
		return
	}
	saved := set
	if f.o.silent {
		set.Lflag &^= proc.ECHO
	}
	if single {
		set.Lflag &^= proc.ICANON
		set.Cc[proc.VMIN], set.Cc[proc.VTIME] = 1, 0
	}
	if sh.p.SetTermios(f.o.fd, set, proc.SetDrain) == nil {
		f.tty = &saved
	}
}

// leave puts the terminal back.
func (f *readFrame) leave(sh *Shell) {
	if f.tty != nil {
		sh.p.SetTermios(f.o.fd, *f.tty, proc.SetDrain)
	}
}

// errTimeout tells that the time limit of read has passed.
var errTimeout = syscall.ETIMEDOUT

// fetch waits for a byte.
func (f *readFrame) fetch(sh *Shell) error {
	if !f.until.IsZero() {
		done := make(chan struct{})
		t := time.AfterFunc(time.Until(f.until), func() { close(done) })
		defer t.Stop()
		ready := false
		err := sh.rest(func() (err error) {
			ready, err = sh.p.Poll(f.o.fd, done)
			return err
		})
		if err == nil && !ready {
			err = errTimeout
		}
		if err != nil {
			return err
		}
	}
	in, err := sh.p.File(f.o.fd)
	if err != nil {
		return err
	}
	return sh.rest(func() error {
		n, err := in.Read(f.one[:])
		if f.n = n; n > 0 {
			return nil
		}
		if err == nil {
			err = io.EOF
		}
		return err
	})
}

func (f *readFrame) failed(sh *Shell, err error) {
	st := 1
	switch {
	case err == errTimeout:
		st = 128 + 14
	case err != io.EOF && sh.p.Killed() == 0:
		sh.errorf("read: read error: %d: %s", f.o.fd, strerror(err))
	}
	f.end(sh, st)
}

// end assigns what was read.
func (f *readFrame) end(sh *Shell, st int) {
	sh.pop()
	if !sh.assignRead(&f.o, f.line) {
		st = 1
	}
	sh.setStatus(st)
}

// read reads a line as options say. What can't make it wait is read at once.
func (sh *Shell) read(o *readOpts) int {
	in, err := sh.newInput(o.fd)
	if err != nil {
		sh.errorf("read: %d: read error: %s", o.fd, strerror(err))
		return 1
	}
	if o.prompt != "" && sh.p.IsTerminal(o.fd) {
		sh.stderr(o.prompt)
	}
	if o.hasTimeout && o.timeout == 0 {
		done := make(chan struct{})
		close(done)
		ready, _ := sh.p.Poll(o.fd, done)
		return int(b2i(!ready))
	}
	if o.chars == 0 {
		return int(b2i(!sh.assignRead(o, nil)))
	}
	if in.seek == nil {
		f := &readFrame{o: *o}
		f.prepare(sh)
		if o.hasTimeout {
			f.until = time.Now().Add(o.timeout)
		}
		sh.push(f)
		return pushed
	}
	var r reading
	st := 0
	limit := int(sh.p.Sandbox().Limits().Memory)
	for {
		c, err := in.next()
		if err != nil {
			if st = 1; err != io.EOF && sh.p.Killed() == 0 {
				sh.errorf("read: read error: %s: %s", strconv.Itoa(o.fd), strerror(err))
			}
			break
		}
		if r.take(c, o) {
			break
		}
		if len(r.line) > limit {
			sh.errorf("read: line: memory limit exceeded")
			st = 1
			break
		}
	}
	in.done()
	if !sh.assignRead(o, r.line) {
		return 1
	}
	return st
}
