package wasm

import (
	"encoding/binary"
	"io"
	"runtime"
	"syscall"
	"time"

	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// wasiFunctions are all functions of WASI preview 1. Sockets don't exist; neither do rights that shrink.
func wasiFunctions() []hostFunc {
	no := func(err error) func(*Instance, []uint64) error {
		return func(*Instance, []uint64) error { return err }
	}
	return append([]hostFunc{
		{"args_get", "ii", "i", func(in *Instance, s []uint64) error { return in.putList(in.args(), s) }, nil},
		{"args_sizes_get", "ii", "i", func(in *Instance, s []uint64) error { return in.putSizes(in.args(), s) }, nil},
		{"environ_get", "ii", "i", func(in *Instance, s []uint64) error { return in.putList(in.env(), s) }, nil},
		{"environ_sizes_get", "ii", "i", func(in *Instance, s []uint64) error { return in.putSizes(in.env(), s) }, nil},
		{"clock_res_get", "ii", "i", clockRes, nil},
		{"clock_time_get", "iIi", "i", clockTime, nil},
		{"random_get", "ii", "i", randomGet, nil},
		{"sched_yield", "", "i", func(*Instance, []uint64) error { runtime.Gosched(); return nil }, nil},
		{"proc_exit", "i", "", procExit, nil},
		{"proc_raise", "i", "i", procRaise, nil},
		{"poll_oneoff", "iiii", "i", pollOneoff, nil},
		{"sock_accept", "iii", "i", no(syscall.ENOTSUP), nil},
		{"sock_recv", "iiiiii", "i", no(syscall.ENOTSUP), nil},
		{"sock_send", "iiiii", "i", no(syscall.ENOTSUP), nil},
		{"sock_shutdown", "ii", "i", no(syscall.ENOTSUP), nil},
	}, append(wasiFdFunctions(), wasiPathFunctions()...)...)
}

func (in *Instance) args() []string {
	if in.cfg.Args != nil {
		return in.cfg.Args
	}
	return in.p.Args()
}

func (in *Instance) env() []string {
	if in.cfg.Env != nil {
		return in.cfg.Env
	}
	return in.p.Environ()
}

// putSizes writes how many strings there are and how many bytes they take, terminated.
func (in *Instance) putSizes(list []string, s []uint64) error {
	n := 0
	for _, x := range list {
		n += len(x) + 1
	}
	if err := in.put32(s[0], uint32(len(list))); err != nil {
		return err
	}
	return in.put32(s[1], uint32(n))
}

// putList writes pointers to strings, and the strings.
func (in *Instance) putList(list []string, s []uint64) error {
	at := uint32(s[1])
	for i, x := range list {
		if err := in.put32(uint64(uint32(s[0])+4*uint32(i)), at); err != nil {
			return err
		}
		b, err := in.bytes(uint64(at), uint64(len(x)+1))
		if err != nil {
			return err
		}
		b[copy(b, x)] = 0
		at += uint32(len(x)) + 1
	}
	return nil
}

// Clocks of WASI.
const (
	clockRealtime = iota
	clockMonotonic
	clockProcess
	clockThread
)

// now reads a clock, in nanoseconds.
func (in *Instance) now(clock uint64) (int64, error) {
	switch uint32(clock) {
	case clockRealtime:
		return in.p.Sandbox().Now().UnixNano(), nil
	case clockMonotonic:
		return int64(in.p.Sandbox().Uptime()), nil
	case clockProcess, clockThread:
		in.account()
		in.resume()
		return int64(in.p.CPU()), nil
	}
	return 0, syscall.EINVAL
}

func clockRes(in *Instance, s []uint64) error {
	if uint32(s[0]) > clockThread {
		return syscall.EINVAL
	}
	return in.put64(s[1], 1)
}

func clockTime(in *Instance, s []uint64) error {
	t, err := in.now(s[0])
	if err != nil {
		return err
	}
	return in.put64(s[2], uint64(t))
}

func randomGet(in *Instance, s []uint64) error {
	b, err := in.bytes(s[0], s[1])
	for err == nil && len(b) > 0 {
		n := min(len(b), 64<<10)
		if _, err = io.ReadFull(in.p.Rand(), b[:n]); err != nil {
			return syscall.EIO
		}
		if b = b[n:]; len(b) > 0 {
			in.checkEnd()
		}
	}
	return err
}

func procExit(in *Instance, s []uint64) error {
	in.stop(&ExitError{int(uint32(s[0]) & 0xff)})
	return nil
}

func procRaise(in *Instance, s []uint64) error {
	n := uint32(s[0])
	if int(n) >= len(wasiSignals) {
		return syscall.EINVAL
	}
	err := in.p.Signal(in.p.Pid(), int(wasiSignals[n]))
	in.checkEnd()
	in.checkSignals()
	return err
}

// A subscription of poll_oneoff is 48 bytes, an event 32.
const (
	subSize, eventSize = 48, 32
	maxSubs            = 1024
)

// pollOneoff waits for the first of several moments and descriptors.
func pollOneoff(in *Instance, s []uint64) error {
	n := uint32(s[2])
	if n == 0 || n > maxSubs {
		return syscall.EINVAL
	}
	raw, err := in.bytes(s[0], uint64(n)*subSize)
	if err != nil {
		return err
	}
	if _, err := in.bytes(s[1], uint64(n)*eventSize); err != nil {
		return err
	}
	subs := in.host.polled // of the call that a copy goes on with
	if in.host.polled = nil; uint64(len(subs)) != uint64(n)*subSize {
		subs = append([]byte(nil), raw...) // events may be written over them
	}
	events, wait, fds, err := in.pollNow(subs)
	if err != nil {
		return err
	}
	if len(events) == 0 {
		in.host.polled = subs
		err := in.waits(func() error { return in.pollWait(wait, fds) })
		if in.host.polled = nil; err != nil {
			return err
		}
		events, _, _, err = in.pollNow(subs)
		if err != nil {
			return err
		}
	}
	out, _ := in.bytes(s[1], uint64(n)*eventSize)
	return in.put32(s[3], uint32(copy(out, events)/eventSize))
}

// waitFor is a descriptor that is waited for.
type waitFor struct {
	fd    int
	write bool
}

func (w waitFor) poll(p *proc.Process, done <-chan struct{}) (bool, error) {
	if w.write {
		return p.PollWrite(w.fd, done)
	}
	return p.Poll(w.fd, done)
}

// pollNow returns the events that are there already; else how long to wait (negative: for ever) and for which descriptors.
func (in *Instance) pollNow(subs []byte) (events []byte, wait time.Duration, fds []waitFor, err error) {
	wait = -1
	ready := func(sub []byte, no syscall.Errno, nbytes uint64) {
		var e [eventSize]byte
		copy(e[:8], sub[:8])
		if no != 0 {
			binary.LittleEndian.PutUint16(e[8:], uint16(wasiErrno(no)))
		}
		e[10] = sub[8]
		binary.LittleEndian.PutUint64(e[16:], nbytes)
		events = append(events, e[:]...)
	}
	for ; len(subs) > 0; subs = subs[subSize:] {
		sub := subs[:subSize]
		switch sub[8] {
		case 0:
			d, err := in.until(sub)
			switch {
			case err != nil:
				ready(sub, vfs.Errno(err), 0)
			case d <= 0:
				ready(sub, 0, 0)
			case wait < 0 || d < wait:
				wait = d
			}
		case 1, 2:
			fd := int(int32(binary.LittleEndian.Uint32(sub[16:])))
			f, err := in.p.File(fd)
			if err != nil {
				ready(sub, syscall.EBADF, 0)
				continue
			}
			w := waitFor{fd, sub[8] == 2}
			ok, err := w.poll(in.p, closedChan)
			if err == syscall.EINTR {
				return nil, 0, nil, err
			}
			if !ok && err == nil {
				fds = append(fds, w)
				continue
			}
			ready(sub, vfs.Errno(err), left(f))
		default:
			return nil, 0, nil, syscall.EINVAL
		}
	}
	return events, wait, fds, nil
}

// left is how much can be read without waiting, as far as it is known.
func left(f vfs.File) uint64 {
	a, err := f.Attr()
	if err != nil || !a.Mode.IsRegular() {
		return 1
	}
	off, err := f.Seek(0, io.SeekCurrent)
	if err != nil || off >= a.Size {
		return 0
	}
	return uint64(a.Size - off)
}

// until returns how long it is to the moment of a clock's subscription. A clock that is relative becomes absolute, for the next look.
func (in *Instance) until(sub []byte) (time.Duration, error) {
	id := uint64(binary.LittleEndian.Uint32(sub[16:]))
	at := binary.LittleEndian.Uint64(sub[24:])
	flags := binary.LittleEndian.Uint16(sub[40:])
	now, err := in.now(id)
	if err != nil {
		return 0, err
	}
	const far = 1 << 62
	if flags&1 == 0 {
		at = min(at, far-uint64(max(now, 0))) + uint64(now)
		binary.LittleEndian.PutUint64(sub[24:], at)
		binary.LittleEndian.PutUint16(sub[40:], flags|1)
	}
	return time.Duration(int64(min(at, far)) - now), nil
}

var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// readable tells whether a read would not wait.
func (in *Instance) readable(fd int) (bool, error) { return in.p.Poll(fd, closedChan) }

// pollWait waits until one of the descriptors can be read, or time is up: EINTR.
func (in *Instance) pollWait(wait time.Duration, fds []waitFor) error {
	if len(fds) == 0 {
		if wait < 0 {
			wait = 1 << 62
		}
		return in.p.Sleep(wait)
	}
	done := make(chan struct{})
	if wait >= 0 {
		t := time.AfterFunc(wait, func() { close(done) })
		defer t.Stop()
	}
	if len(fds) == 1 {
		_, err := fds[0].poll(in.p, done)
		return err
	}
	any := make(chan struct{})
	first := make(chan error, len(fds))
	for _, fd := range fds {
		go func() { _, err := fd.poll(in.p, any); first <- err }()
	}
	var err error
	n := len(fds)
	select {
	case err = <-first:
		n--
	case <-done:
	}
	close(any)
	for range n {
		<-first
	}
	return err
}
