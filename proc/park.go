package proc

import (
	"errors"
	"sync/atomic"
	"syscall"
	"time"
)

// What a process is doing, as a freeze sees it.
const (
	active int32 = iota // its program runs
	waits               // in a call that waits for others, or stopped, not at rest
	naps                // the same, but for a moment that comes by itself
	rests               // inside Rest, where the call hasn't done anything yet
)

// How far a call inside Rest is.
const (
	outside int32 = iota
	untouched
	moved // something was taken or given: what follows is no place to capture the process
)

// Bits of Process.attn, for which every gate looks.
const (
	attnKilled = 1 << iota
	attnStopped
)

// cycle is the time up to a thaw. A freeze is asked for by setting on; then whoever rests, or comes to rest, stays there,
// whatever wakes it up, until thaw is closed. The order makes this exact: a process that goes on says so (phase) before
// it looks at on, and a freeze sets on before it looks at the phases.
type cycle struct {
	on   atomic.Bool
	hard atomic.Bool   // those that aren't at rest stay at their gates, too
	ask  chan struct{} // closed when on is set
	thaw chan struct{}
}

func newCycle() *cycle { return &cycle{ask: make(chan struct{}), thaw: make(chan struct{})} }

// gate is passed by every call: a frozen or stopped process stays here, a killed one gets EINTR.
func (p *Process) gate() error {
	if p.attn.Load() != 0 || p.sb.cycle.Load().on.Load() {
		p.leave()
		if p.isKilled() {
			return syscall.EINTR
		}
	}
	return nil
}

func (p *Process) isKilled() bool { return p.attn.Load()&attnKilled != 0 }

// moved notes that a call inside Rest has done something.
func (p *Process) moved() {
	if p.rest.Load() == untouched {
		p.rest.Store(moved)
	}
}

// enter says that the process is about to wait. No lock may be held until leave.
func (p *Process) enter(phase int32) {
	if p.rest.Load() == untouched {
		phase = rests
	}
	p.computed(p.sb.age())
	if p.starting.Load() {
		p.starting.Store(false)
	}
	p.phase.Store(phase)
	p.sb.noteFreeze()
}

// leave says that the wait is over. It returns when the process may go on.
func (p *Process) leave() {
	if old := p.phase.Load(); old == waits || old == naps {
		p.sb.wakes.Add(1)
	}
	for {
		p.phase.Store(active)
		ch, ask := p.held()
		if ch == nil {
			p.goesOn()
			return
		}
		p.enter(waits)
		select {
		case <-ch:
		case <-ask:
		}
	}
}

// held returns what a process waits for that has to stay where it is: the thaw, or to be continued; nil when it may go
// on. When ask is closed the question is open again.
func (p *Process) held() (ch, ask <-chan struct{}) {
	c := p.sb.cycle.Load()
	on, atRest := c.on.Load(), p.rest.Load() == untouched
	if on && (atRest || c.hard.Load()) {
		return c.thaw, nil
	}
	if p.attn.Load()&attnStopped == 0 {
		return nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopSig == 0 || p.isKilled() || on && p.cloner.Load() && !atRest {
		return nil, nil // a stopped process that can be captured goes on up to where it can be
	}
	if !on {
		ask = c.ask
	}
	return p.cont, ask
}

// waiter is in whose name a call waits.
type waiter struct {
	p    *Process        // nil: nobody that could be frozen
	intr <-chan struct{} // ends the wait with EINTR
}

// waiter returns how calls of the process wait: signals end them.
func (p *Process) waiter() waiter { return waiter{p, p.Interrupt()} }

// errShort ends a call inside Rest that has done a part of its work: a freeze is asked for, and it can't rest half done.
var errShort = errors.New("interrupted by a freeze")

// until waits for ch: nil, or EINTR. No lock may be held.
func (w waiter) until(ch <-chan struct{}) error {
	if w.p == nil {
		return w.plain(ch, nil)
	}
	w.p.enter(waits)
	defer w.p.leave()
	return w.plain(ch, nil)
}

// sleep waits for a moment: EINTR.
func (w waiter) sleep(d time.Duration) error {
	over := make(chan struct{})
	stop := time.AfterFunc(d, func() { close(over) })
	defer stop.Stop()
	return w.until(over)
}

// untilMoved is until for a call that has done a part. Inside Rest it may also end with errShort.
func (w waiter) untilMoved(ch <-chan struct{}) error {
	if w.p == nil || w.p.rest.Load() == outside {
		return w.until(ch)
	}
	w.p.moved()
	w.p.enter(waits)
	defer w.p.leave()
	return w.plain(ch, w.p.sb.cycle.Load().ask)
}

// either waits for ch or other, which comes by itself if it isn't nil.
func (w waiter) either(ch, other <-chan struct{}) error {
	phase := waits
	if other != nil {
		phase = naps
	}
	w.p.enter(phase)
	defer w.p.leave()
	if err := w.plain(ch, other); err != errShort {
		return err
	}
	return nil
}

func (w waiter) plain(ch, short <-chan struct{}) error {
	select {
	case <-ch:
		return nil
	case <-w.intr:
		return syscall.EINTR
	case <-short:
		return errShort
	}
}
