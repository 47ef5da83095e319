package control

import (
	"sync"
	"time"
)

// clock tells two times. Since is monotonic: leases and all other timers go by it, so a wall clock that is set doesn't end
// anything. Now is what is recorded: the wall clock's, but never earlier than what was told before.
type clock struct {
	wall  func() time.Time
	since func() time.Duration // since the service was opened

	mu   sync.Mutex
	last time.Time
}

func newClock(wall func() time.Time) *clock {
	if wall == nil {
		wall = time.Now
	}
	start := time.Now()
	return &clock{wall: wall, since: func() time.Duration { return time.Since(start) }}
}

func (c *clock) now() time.Time {
	t := c.wall().UTC().Round(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.Before(c.last) {
		t = c.last
	}
	c.last = t
	return t
}

// at is the wall clock's time of a moment of Since.
func (c *clock) at(d time.Duration) time.Time {
	return c.now().Add(d - c.since()).Round(time.Millisecond)
}
