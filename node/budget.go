package node

import (
	"context"
	"runtime"
	"time"

	"agentrun.dev/engine"
	"agentrun.dev/errs"
)

// How often a sandbox with a budget of processor time is looked at: the nearer its end, the sooner.
const (
	budgetSoon = 20 * time.Millisecond
	budgetLate = time.Second
	sigXCPU    = 24
)

// limitCPU bounds the processor time that the sandbox may still use; 0 is no bound. What runs when it is used up is ended by
// SIGXCPU, and commands are refused from then on.
func (s *Sandbox) limitCPU(d time.Duration) {
	if d <= 0 {
		s.cpu.Store(0)
		return
	}
	select {
	case <-s.ready: // it runs
		s.cpu.Store(int64(s.spends(context.Background()).CPU + d))
		s.watchCPU()
	default:
		s.cpu.Store(int64(d))
	}
}

// watchCPU begins to look after the budget of a sandbox that runs, if it has one.
func (s *Sandbox) watchCPU() {
	if s.cpu.Load() > 0 && s.watched.CompareAndSwap(false, true) {
		s.n.ends.Go(s.watch)
	}
}

// left is the processor time that the sandbox may still use; ok is false without a bound.
func (s *Sandbox) left(ctx context.Context) (d time.Duration, ok bool) {
	most := s.cpu.Load()
	if most == 0 {
		return 0, false
	}
	return time.Duration(most) - s.spends(ctx).CPU, true
}

// spent fails once a budget is used up.
func (s *Sandbox) spent(ctx context.Context) error {
	if d, ok := s.left(ctx); ok && d <= 0 {
		return errs.Msg(errs.Limit, "run", s.id, "the budget of processor time is used up")
	}
	return nil
}

// watch ends what runs once the budget is used up, until the sandbox ends.
func (s *Sandbox) watch() {
	timer := time.NewTimer(budgetSoon)
	defer timer.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-timer.C:
		}
		d, ok := s.left(context.Background())
		switch {
		case !ok:
			d = budgetLate
		case d <= 0:
			s.stopAll()
			d = budgetLate
		}
		// All processors may be used at once.
		timer.Reset(min(max(d/time.Duration(runtime.GOMAXPROCS(0)), budgetSoon), budgetLate))
	}
}

// stopAll ends all commands.
func (s *Sandbox) stopAll() {
	a, ok := s.in.(engine.Attacher)
	if !ok {
		return
	}
	for _, r := range a.Running() {
		for _, sig := range []int{sigXCPU, 9} {
			if err := a.Signal(r.Pid, sig); err != nil && !errs.Is(err, errs.NotFound) {
				s.n.o.Log.Error("stop what is beyond its budget", "sandbox", s.id, "err", err)
			}
		}
	}
}
