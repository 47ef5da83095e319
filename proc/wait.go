package proc

import (
	"syscall"
	"time"
)

// WaitFlags say what WaitEvent waits for, and how.
type WaitFlags uint8

const (
	WaitStopped   WaitFlags = 1 << iota // also children that a signal has stopped (WUNTRACED)
	WaitContinued                       // also children that go on after a stop (WCONTINUED)
	WaitKeep                            // leave an ended child to be waited for again (WNOWAIT)
	WaitNoHang                          // don't wait: no news is an Event without a child
	WaitDeaf                            // handled signals stay pending and don't end the wait
)

// Event is what has become of a child.
type Event struct {
	Child     *Process
	Status    int  // wait status of one that has ended; 128+n of one that signal n has stopped
	Stopped   int  // the signal that stopped it, 0 otherwise
	Continued bool // it goes on after a stop
}

// News of a child that its parent hasn't asked for yet.
const (
	newsStopped = 1 + iota
	newsContinued
)

// Children returns the children, running and ended, by ascending pid.
func (p *Process) Children() []*Process {
	p.waitMu.Lock()
	defer p.waitMu.Unlock()
	list := make([]*Process, 0, len(p.children))
	for _, c := range p.children {
		list = append(list, c)
	}
	sortProcesses(list)
	return list
}

// Child returns the child with a pid, running or ended, nil when there is none.
func (p *Process) Child(pid int) *Process {
	p.waitMu.Lock()
	defer p.waitMu.Unlock()
	return p.children[pid]
}

// WaitEvent waits for the next news of the given children, nil being all, and reaps a child that has ended. Errors:
// ECHILD when there are none, EINTR.
func (p *Process) WaitEvent(of []*Process, flags WaitFlags) (Event, error) {
	if err := p.gate(); err != nil {
		return Event{}, err
	}
	w := p.waiter()
	if flags&WaitDeaf != 0 {
		w.intr = p.ctx.Done()
	}
	for {
		list := of
		if list == nil {
			list = p.Children()
		}
		if len(list) == 0 {
			return Event{}, syscall.ECHILD
		}
		ch := p.childNews()
		for _, c := range list {
			if e, ok, err := p.event(c, flags); ok || err != nil {
				return e, err
			}
		}
		if flags&WaitNoHang != 0 {
			return Event{}, nil
		}
		if err := w.until(ch); err != nil {
			return Event{}, err
		}
	}
}

// event takes the news of one child.
func (p *Process) event(c *Process, flags WaitFlags) (Event, bool, error) {
	if c.ended() {
		if flags&WaitKeep != 0 {
			return Event{Child: c, Status: c.Status()}, true, nil
		}
		status, err := p.reap(c)
		return Event{Child: c, Status: status}, err == nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.news == newsStopped && flags&WaitStopped != 0:
		if flags&WaitKeep == 0 {
			c.news = 0
			p.moved()
		}
		return Event{Child: c, Status: 128 + c.stopSig, Stopped: c.stopSig}, true, nil
	case c.news == newsContinued && flags&WaitContinued != 0:
		if flags&WaitKeep == 0 {
			c.news = 0
			p.moved()
		}
		return Event{Child: c, Continued: true}, true, nil
	}
	return Event{}, false, nil
}

// childNews returns what is closed at the next news of any child.
func (p *Process) childNews() <-chan struct{} {
	p.waitMu.Lock()
	defer p.waitMu.Unlock()
	if p.childEnd == nil {
		p.childEnd = make(chan struct{})
	}
	return p.childEnd
}

// childChanged tells whoever waits for children, and the process by a signal.
func (p *Process) childChanged() {
	p.waitMu.Lock()
	if p.childEnd != nil {
		close(p.childEnd)
		p.childEnd = nil
	}
	p.waitMu.Unlock()
	p.post(SIGCHLD)
}

// Wait waits for a child and returns its wait status. It reaps the child. Errors: ECHILD, EINTR.
func (p *Process) Wait(child *Process) (status int, err error) {
	return p.wait(child, p.waiter())
}

// WaitQuiet is Wait for a child in the foreground: handled signals stay pending and don't interrupt it, only the
// process's own end does.
func (p *Process) WaitQuiet(child *Process) (int, error) {
	return p.wait(child, waiter{p, p.ctx.Done()})
}

func (p *Process) wait(child *Process, w waiter) (int, error) {
	if p.sb.cycle.Load().on.Load() {
		p.leave() // a gate, but those that are killed still learn of children that have ended
	}
	if !child.ended() {
		if err := w.until(child.done); err != nil && !child.ended() {
			return 0, err
		}
	}
	return p.reap(child)
}

// WaitUntil is Wait up to a moment of the sandbox's clock, the zero time being without end: ETIMEDOUT.
func (p *Process) WaitUntil(child *Process, t time.Time) (int, error) {
	if t.IsZero() {
		return p.Wait(child)
	}
	if err := p.gate(); err != nil {
		return 0, err
	}
	if !child.ended() {
		timer := time.NewTimer(t.Sub(p.sb.clock()))
		defer timer.Stop()
		expired, err := p.waiter().untilTime(child.done, timer)
		switch {
		case child.ended():
		case err != nil:
			return 0, err
		case expired:
			return 0, syscall.ETIMEDOUT
		}
	}
	return p.reap(child)
}

// reap takes a child that has ended off the tables.
func (p *Process) reap(child *Process) (int, error) {
	p.waitMu.Lock()
	ours := p.children[child.pid] == child
	if ours {
		delete(p.children, child.pid)
	}
	p.waitMu.Unlock()
	if !ours {
		return 0, syscall.ECHILD
	}
	p.moved()
	p.sb.mu.Lock()
	delete(p.sb.procs, child.pid)
	p.sb.mu.Unlock()
	child.mu.Lock()
	defer child.mu.Unlock()
	child.state = reaped
	return child.status, nil
}

// WaitAny waits for whichever of the given children ends first, without reaping it. Errors: ECHILD when there are none, EINTR.
func (p *Process) WaitAny(of []*Process) (*Process, error) {
	if len(of) == 0 {
		return nil, syscall.ECHILD
	}
	w := p.waiter()
	for {
		ch := p.childNews()
		for _, c := range of {
			if c.ended() {
				return c, nil
			}
		}
		if err := w.until(ch); err != nil {
			return nil, err
		}
	}
}
