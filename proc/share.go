package proc

import (
	"runtime"
	"time"
)

// One sandbox must not take all processors. What its processes compute is added up: from when one goes on until it waits
// or has ended. Together they may use all processors but one (one, where there is only one), and save up a little; past
// that, those that fork or compute for long wait for their turn, one after the other.
const (
	shareSteps = 64 // between two looks at the clock
	shareSlice = time.Millisecond
	shareBurst = 5 * time.Millisecond
)

// Share is for programs that compute for long, called by the program's own goroutine now and then: it waits while the
// sandbox's other processes have used up its part of the machine. Step and Fork do so, too.
func (p *Process) Share() {
	now := p.sb.age()
	if p.owed.Load()+int64(now)-p.slice.Load() >= int64(shareSlice) {
		p.turn(now)
	}
}

// age is the time for which the sandbox has been there.
func (s *Sandbox) age() time.Duration { return time.Since(s.started) }

// goesOn says that the process begins to compute.
func (p *Process) goesOn() { p.slice.Store(int64(p.sb.age())) }

// computed adds up what the process has computed since it went on.
func (p *Process) computed(now time.Duration) {
	spent := int64(now) - p.slice.Swap(int64(now))
	if spent > int64(4*shareSlice) {
		spent = int64(shareSlice) // most of it was waiting
	}
	p.owed.Add(spent)
}

// pay charges what the process has computed to its sandbox, and returns when that much is its part of the machine. It is
// the processor time of programs that don't report theirs.
func (p *Process) pay(now time.Duration) (due time.Duration) {
	p.computed(now)
	s, owed := p.sb, p.owed.Swap(0)
	if !p.reports.Load() {
		p.addCPU(time.Duration(owed))
	}
	for {
		used := s.shared.Load()
		next := max(used, int64(now-shareBurst)) + owed/int64(s.processors)
		if s.shared.CompareAndSwap(used, next) {
			return time.Duration(next)
		}
	}
}

// turn pays, and waits until that is the sandbox's part.
func (p *Process) turn(now time.Duration) {
	wait := p.pay(now) - now
	if wait <= 0 {
		runtime.Gosched()
		p.goesOn()
		return
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-p.ctx.Done():
	}
	p.goesOn()
}

// shareOf is the number of processors that one sandbox may keep busy.
func shareOf(processors int) int { return max(1, processors-1) }
