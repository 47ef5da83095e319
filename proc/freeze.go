package proc

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"agentrun.dev/errs"
)

// FreezeOptions say what happens to processes that can't rest in time.
type FreezeOptions struct {
	// Kill leaves them out of the image, where their parents see status 137; here they go on. Without it Freeze fails with
	// a *BusyError, and nothing has changed.
	Kill bool
}

// BusyError names the processes that couldn't rest in time. It is of the kind errs.Unavailable.
type BusyError struct {
	Pids  []int
	Names []string // of the commands, in the order of Pids
}

func (e *BusyError) Error() string {
	var b strings.Builder
	for i, pid := range e.Pids {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d (%s)", pid, e.Names[i])
	}
	return "freeze: processes can't rest: " + b.String()
}

// Unwrap makes errs.KindOf tell errs.Unavailable.
func (e *BusyError) Unwrap() error {
	return errs.Msg(errs.Unavailable, "freeze", "", "processes can't rest")
}

// Frozen is a sandbox in which nothing moves: its processes stay where they are, new ones wait before they begin. Signals
// from outside are still noted, and have their effect after Thaw.
type Frozen struct {
	s    *Sandbox
	busy map[*Process]bool // left out of images

	mu     sync.Mutex // held while a capture looks at programs
	thawed bool
}

const (
	freezeDefault = time.Second // how long Freeze waits when its context has no deadline
	firstMoment   = 200 * time.Microsecond
	lastMoment    = 10 * time.Millisecond
	idleMoments   = 8 // of letting go without anybody going on, after which it is hopeless
)

// Freeze stops the sandbox with every process at rest: inside Rest, with a program that is a Cloner. Others go on until
// they end; while all of those wait, the ones at rest are let go for moments, since they may be what is waited for. That
// ends at ctx's deadline (a second when it has none), or as soon as nothing changes by it: *BusyError, or the kill that o
// asks for. One freeze at a time; a second one waits for the first one's Thaw. errs.Canceled when ctx ends before its
// turn, errs.Unavailable when the sandbox is closed.
func (s *Sandbox) Freeze(ctx context.Context, o FreezeOptions) (*Frozen, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, freezeDefault)
		defer cancel()
	}
	select {
	case s.freezer <- struct{}{}:
	case <-ctx.Done():
		return nil, errs.New(errs.Canceled, "freeze", "", ctx.Err())
	}
	f := &Frozen{s: s}
	busy, err := f.drain(ctx)
	if err == nil && len(busy) > 0 {
		if !o.Kill {
			err = busyError(busy)
		} else {
			busy, err = f.force()
		}
	}
	if err != nil {
		s.thaw()
		<-s.freezer
		return nil, err
	}
	f.busy = make(map[*Process]bool, len(busy))
	for _, p := range busy {
		f.busy[p] = true
	}
	return f, nil
}

func busyError(busy []*Process) error {
	e := &BusyError{}
	for _, p := range busy {
		e.Pids, e.Names = append(e.Pids, p.pid), append(e.Names, p.comm())
	}
	return e
}

// drain asks for rest until every process is at it, and returns those that don't come to it.
func (f *Frozen) drain(ctx context.Context) ([]*Process, error) {
	s := f.s
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	s.askFreeze()
	moment, idle := firstMoment, 0
	for {
		busy, stuck, timed, err := f.look(false)
		if err != nil || len(busy) == 0 {
			return nil, err
		}
		if ctx.Err() != nil || stuck && idle >= idleMoments {
			return busy, nil
		}
		if !stuck && !timed {
			timer.Reset(lastMoment)
			select {
			case <-s.note:
			case <-timer.C:
			case <-ctx.Done():
			}
			continue
		}
		// All wait: for what those at rest hold back, for the world outside, or for a time to come.
		before := s.wakes.Load()
		s.thaw()
		timer.Reset(moment)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		s.askFreeze()
		moment = min(2*moment, lastMoment)
		if idle++; s.wakes.Load() != before {
			moment, idle = firstMoment, 0
		}
	}
}

// look returns who isn't at rest. stuck says that all of them wait, timed that they do so, some only for a moment that
// comes by itself. When there are none, or with force, the freeze is in force from then on.
func (f *Frozen) look(force bool) (busy []*Process, stuck, timed bool, err error) {
	s := f.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false, false, errs.Msg(errs.Unavailable, "freeze", "", "the sandbox is closed")
	}
	stuck, timed = true, true
	for _, p := range s.procs {
		phase, ok := p.rested()
		if ok {
			continue
		}
		busy = append(busy, p)
		stuck = stuck && phase == waits
		timed = timed && (phase == waits || phase == naps)
	}
	if len(busy) == 0 || force {
		s.frozen = f
	}
	sortProcesses(busy)
	return busy, stuck, timed, nil
}

// rested tells whether the process can be captured: it is at rest, or has ended.
func (p *Process) rested() (phase int32, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == zombie || p.state == reaped {
		return 0, true
	}
	phase = p.phase.Load()
	return phase, p.state == running && phase == rests && p.cloner.Load()
}

// force puts the freeze in force although some aren't at rest, and returns those. They stay at their next gate.
func (f *Frozen) force() ([]*Process, error) {
	f.s.cycle.Load().hard.Store(true)
	busy, _, _, err := f.look(true)
	return busy, err
}

// askFreeze asks all processes to stay where they rest.
func (s *Sandbox) askFreeze() {
	select {
	case <-s.note:
	default:
	}
	c := s.cycle.Load()
	c.on.Store(true)
	close(c.ask)
}

// thaw lets all go on.
func (s *Sandbox) thaw() {
	c := s.cycle.Load()
	s.mu.Lock()
	s.frozen = nil
	s.cycle.Store(newCycle())
	s.mu.Unlock()
	close(c.thaw)
}

// noteFreeze tells a freeze that is being asked for to look again.
func (s *Sandbox) noteFreeze() {
	if s.cycle.Load().on.Load() {
		select {
		case s.note <- struct{}{}:
		default:
		}
	}
}

// lockThawed locks s.mu at a moment when no freeze is in force.
func (s *Sandbox) lockThawed() {
	for {
		s.mu.Lock()
		if s.frozen == nil || s.closed {
			return
		}
		ch := s.cycle.Load().thaw
		s.mu.Unlock()
		<-ch
	}
}

// Busy returns the processes that images leave out, by ascending pid: with FreezeOptions.Kill, those that didn't come to rest.
func (f *Frozen) Busy() []*Process {
	list := make([]*Process, 0, len(f.busy))
	for p := range f.busy {
		list = append(list, p)
	}
	sortProcesses(list)
	return list
}

// Thaw lets the sandbox go on. The second call does nothing.
func (f *Frozen) Thaw() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.thawed {
		return
	}
	f.thawed = true
	f.s.thaw()
	<-f.s.freezer
}
