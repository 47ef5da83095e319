package proc

import (
	"runtime"
	"time"
)

// One sandbox must not take all processors: programs that count steps compute for a slice of time, then let others in, and
// together they use no more than all processors but one (one, where there is only one). A little may be saved up.
const (
	shareSteps = 64 // between two looks at the clock
	shareSlice = time.Millisecond
	shareBurst = 5 * time.Millisecond
	shareWait  = 20 * time.Millisecond // at most, at once
)

// Share is for programs that compute for long, called by the program's own goroutine now and then: it waits while the
// sandbox's other processes have used up its part of the machine. Step does so, too.
func (p *Process) Share() {
	s := p.sb
	now := time.Since(s.started)
	spent := now - p.slice
	if spent < shareSlice {
		return
	}
	p.slice = now
	if spent > 4*shareSlice {
		spent = shareSlice // most of it was waiting
	}
	for {
		used := s.shared.Load()
		next := max(used, int64(now-shareBurst)) + int64(spent)/int64(s.processors)
		if !s.shared.CompareAndSwap(used, next) {
			continue
		}
		if wait := time.Duration(next) - now; wait > 0 {
			t := time.NewTimer(min(wait, shareWait))
			defer t.Stop()
			select {
			case <-t.C:
			case <-p.ctx.Done():
			}
			p.slice = time.Since(s.started)
		} else {
			runtime.Gosched()
		}
		return
	}
}

// shareOf is the number of processors that one sandbox may keep busy.
func shareOf(processors int) int { return max(1, processors-1) }
