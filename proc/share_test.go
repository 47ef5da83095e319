package proc

import (
	"testing"
	"time"
)

// What is charged is what processes compute, whether they go on to wait or end, not what they wait.
func TestShareCharges(t *testing.T) {
	const now = time.Hour
	s := &Sandbox{processors: 2}
	computes := func(d time.Duration) *Process {
		p := &Process{sb: s}
		p.reports.Store(true)
		p.slice.Store(int64(now - d))
		return p
	}
	free := now - shareBurst // what was saved up, at most
	for i, want := range []time.Duration{100, 200, 300} {
		if due := computes(200 * time.Microsecond).pay(now); due != free+want*time.Microsecond {
			t.Errorf("short process %d: its turn is %v after the beginning of the burst, want %v", i, due-free, want*time.Microsecond)
		}
	}
	// One that has waited in a call that says nothing of it.
	if due, want := computes(time.Minute).pay(now), free+300*time.Microsecond+shareSlice/2; due != want {
		t.Errorf("after a minute: %v, want %v", due-free, want-free)
	}
	// Waiting in calls that do isn't charged, what was computed between them is added up.
	p := computes(100 * time.Microsecond)
	p.computed(now)
	p.slice.Store(int64(now + time.Second))
	p.computed(now + time.Second + 300*time.Microsecond)
	p.slice.Store(int64(now + 2*time.Second))
	if owed := time.Duration(p.owed.Load()); owed != 400*time.Microsecond {
		t.Errorf("a process that has waited for two seconds owes %v, want 400µs", owed)
	}
}
