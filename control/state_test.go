package control

import (
	"fmt"
	"testing"
	"time"

	"agentrun.dev/api"
)

// TestNext is the table of the state machine.
func TestNext(t *testing.T) {
	at := time.Unix(1e9, 0)
	rec := func(state string, claimed bool) *record {
		r := &record{Sandbox: api.Sandbox{ID: "x", State: state, Epoch: 2, Lease: fullLease(api.Lease{}, nil)}}
		if claimed {
			r.Sandbox.Claimed = at
		}
		return r
	}
	ending := rec(api.StateRunning, true)
	ending.Lease.OnExpiry = api.End
	child := rec(api.StateStarting, true)
	child.Forking = "f"
	absent := observed{up: true}
	here := observed{up: true, present: true, claimed: true, epoch: 2}
	asleep := observed{up: true, present: true, claimed: true, epoch: 1, asleep: true}
	free := observed{up: true, present: true, epoch: 2}
	older := observed{up: true, present: true, claimed: true, epoch: 1}
	with := func(o observed, f func(*observed)) observed { f(&o); return o }
	previous := func(o *observed) { o.previous = true }
	for _, c := range []struct {
		name string
		r    *record
		o    observed
		want string
	}{
		{"a start that never came", rec(api.StateStarting, true), absent, "[start running]"},
		{"a warm start that never came", rec(api.StateStarting, false), absent, "[start warm]"},
		{"a warm start of a former service", rec(api.StateStarting, false), with(absent, previous), "[forget]"},
		{"a start of a former service", rec(api.StateStarting, true), with(absent, previous), "[start running]"},
		{"it started", rec(api.StateStarting, true), here, "[running]"},
		{"it started, unclaimed", rec(api.StateStarting, true), free, "[claim running]"},
		{"a warm one started", rec(api.StateStarting, false), free, "[warm]"},
		{"a warm one started, claimed", rec(api.StateStarting, false), here, "[end forget]"},
		{"a start of another epoch", rec(api.StateStarting, true), older, "[end failed]"},
		{"a child", child, here, "[]"},
		{"a child of a former service", child, with(here, previous), "[end ended]"},
		{"a child that never came", child, with(absent, previous), "[end ended]"},
		{"warm", rec(api.StateWarm, false), free, "[]"},
		{"warm and gone", rec(api.StateWarm, false), absent, "[forget]"},
		{"warm, claimed without a record", rec(api.StateWarm, false), here, "[end forget]"},
		{"running", rec(api.StateRunning, true), here, "[]"},
		{"running, gone", rec(api.StateRunning, true), absent, "[failed]"},
		{"running, claim not arrived", rec(api.StateRunning, true), free, "[claim]"},
		{"running under other network rules", rec(api.StateRunning, true), with(here, func(o *observed) { o.rules = true }), "[network]"},
		{"running, put to sleep by its node", rec(api.StateRunning, true), asleep, "[asleep]"},
		{"running in another epoch", rec(api.StateRunning, true), older, "[failed]"},
		{"expired", rec(api.StateRunning, true), with(here, func(o *observed) { o.expired = true }), "[sleep]"},
		{"expired, to end", ending, with(here, func(o *observed) { o.expired = true }), "[expire]"},
		{"too old", rec(api.StateRunning, true), with(here, func(o *observed) { o.aged = true }), "[expire]"},
		{"hibernating, awake", rec(api.StateHibernating, true), here, "[hibernate asleep]"},
		{"hibernating, asleep", rec(api.StateHibernating, true), asleep, "[asleep]"},
		{"hibernating, gone", rec(api.StateHibernating, true), absent, "[failed]"},
		{"hibernated", rec(api.StateHibernated, true), asleep, "[]"},
		{"hibernated, awake", rec(api.StateHibernated, true), here, "[hibernate]"},
		{"hibernated, gone", rec(api.StateHibernated, true), absent, "[failed]"},
		{"hibernated for too long", rec(api.StateHibernated, true), with(asleep, func(o *observed) { o.aged = true }), "[expire]"},
		{"resuming, asleep", rec(api.StateResuming, true), asleep, "[wake running]"},
		{"resuming, awake", rec(api.StateResuming, true), here, "[running]"},
		{"resuming, awake in another epoch", rec(api.StateResuming, true), older, "[failed]"},
		{"resuming, gone", rec(api.StateResuming, true), absent, "[failed]"},
		{"ending", rec(api.StateEnding, true), here, "[end ended]"},
		{"ending, gone", rec(api.StateEnding, true), absent, "[end ended]"},
		{"ended", rec(api.StateEnded, true), absent, "[]"},
		{"ended, still there", rec(api.StateEnded, true), here, "[end]"},
		{"no word from the node", rec(api.StateRunning, true), observed{}, "[]"},
		{"lost, running", rec(api.StateRunning, true), observed{gaveUp: true}, "[failed]"},
		{"lost, resuming", rec(api.StateResuming, true), observed{gaveUp: true}, "[failed]"},
		{"lost, warm", rec(api.StateWarm, false), observed{gaveUp: true}, "[forget]"},
		{"lost, starting", rec(api.StateStarting, true), observed{gaveUp: true}, "[failed]"},
		{"lost, starting to be warm", rec(api.StateStarting, false), observed{gaveUp: true}, "[forget]"},
		{"lost, hibernated", rec(api.StateHibernated, true), observed{gaveUp: true}, "[]"},
		{"lost, hibernating", rec(api.StateHibernating, true), observed{gaveUp: true}, "[]"},
		{"lost, ending", rec(api.StateEnding, true), observed{gaveUp: true}, "[]"},
	} {
		if got := fmt.Sprint(next(c.r, c.o)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestNextAgain checks that what next asks for, once done, is asked for no more.
func TestNextAgain(t *testing.T) {
	states := []string{api.StateStarting, api.StateWarm, api.StateRunning, api.StateHibernating, api.StateHibernated, api.StateResuming, api.StateEnding}
	for _, state := range states {
		for bits := range 1 << 6 {
			bit := func(n int) bool { return bits>>n&1 == 1 }
			r := &record{Sandbox: api.Sandbox{ID: "x", State: state, Epoch: 2}}
			if bit(0) {
				r.Sandbox.Claimed = time.Unix(1, 0)
			}
			o := observed{up: true, present: bit(1), asleep: bit(2), claimed: bit(3), previous: bit(4), epoch: 2}
			if bit(5) {
				o.epoch = 1
			}
			if !o.present {
				o = observed{up: true, previous: o.previous}
			}
			for round := 0; ; round++ {
				actions := next(r, o)
				if len(actions) == 0 || r.State == "" {
					break
				}
				if round == 4 {
					t.Errorf("%s, claimed %v, at first %+v: still %v of %+v", state, r.claimed(), o, actions, r.Sandbox.State)
					break
				}
				for _, a := range actions {
					pretend(a, r, &o)
				}
			}
		}
	}
}

// pretend does an action on a record and what is observed of it.
func pretend(a action, r *record, o *observed) {
	switch a {
	case doStart:
		o.present, o.claimed, o.epoch = true, r.claimed(), r.Epoch
	case doClaim:
		o.claimed = true
	case doWake:
		o.asleep, o.claimed, o.epoch = false, true, r.Epoch
	case doHibernate:
		o.asleep = true
	case doEnd:
		o.present = false
	case doRunning:
		r.State = api.StateRunning
	case doWarm:
		r.State = api.StateWarm
	case doAsleep:
		r.State = api.StateHibernated
	case doEnded, doFailed, doExpire:
		r.State, o.present = api.StateEnded, false
	case doForget:
		r.State = ""
	case doSleep:
		r.State, o.asleep = api.StateHibernated, true
	}
}
