package proc

import "time"

// How long, and of how many commands, it is known how they ended.
const (
	PastKept = 10 * time.Minute
	maxPast  = 64
)

// Past is how a process ended that led a session and had no parent: a command that came from outside.
type Past struct {
	Pid, Status int
	Signal      int // that ended it; 0 if it exited
	Ended       time.Time
}

// Past tells how the last process of a pid ended, unless that is too long ago.
func (s *Sandbox) Past(pid int) (Past, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.past) - 1; i >= 0; i-- {
		if p := s.past[i]; p.Pid == pid {
			return p, time.Since(p.Ended) < PastKept
		}
	}
	return Past{}, false
}
