package control

import (
	"time"

	"agentrun.dev/api"
)

// observed is what a node tells of a sandbox.
type observed struct {
	up       bool // the node can be asked; without it, nothing else is known
	present  bool
	asleep   bool
	claimed  bool
	epoch    uint64
	expired  bool // its lease ran out, and nobody uses it
	aged     bool // it is older than it may be, or slept for too long
	gaveUp   bool // its node was lost for good: what ran there can't be saved
	rules    bool // its network rules aren't those that are recorded
	previous bool // the record was made before this service began: nobody here is acting on it
}

// action is one step that makes what exists be what is recorded. All of them may be repeated.
type action uint8

const (
	doStart     action = iota + 1 // start it from its image
	doClaim                       // give it its identity
	doWake                        // resume it
	doHibernate                   // save it and end it there
	doEnd                         // end it there, and delete what was made for it
	doRunning                     // record: it runs
	doWarm                        // record: it waits
	doAsleep                      // record: it hibernates
	doEnded                       // record: it has ended
	doFailed                      // record: it failed, and doEnd
	doForget                      // delete the record: nobody ever had it
	doSleep                       // record that it is to hibernate, and do it
	doExpire                      // record that it is to end, and do it
	doNetwork                     // give it its network rules
)

var actionNames = [...]string{"", "start", "claim", "wake", "hibernate", "end", "running", "warm", "asleep", "ended", "failed", "forget", "sleep", "expire", "network"}

func (a action) String() string { return actionNames[a] }

// next says what is to be done about a sandbox, given its record and what its node says. It depends on nothing else.
func next(r *record, o observed) []action {
	if !o.up {
		if o.gaveUp {
			return nextLost(r)
		}
		return nil
	}
	switch r.State {
	case api.StateStarting:
		return nextStarting(r, o)
	case api.StateWarm:
		switch {
		case !o.present:
			return []action{doForget}
		case o.claimed || o.asleep || o.epoch != r.Epoch:
			// A claim had begun that wasn't recorded: somebody's secrets may be in it.
			return []action{doEnd, doForget}
		}
	case api.StateRunning:
		switch {
		case !o.present:
			return []action{doFailed}
		case o.asleep:
			return []action{doAsleep} // its node put it to sleep as it went down
		case o.epoch != r.Epoch:
			return []action{doFailed}
		case !o.claimed:
			return []action{doClaim}
		case o.rules:
			return []action{doNetwork}
		case o.aged, o.expired && r.Lease.OnExpiry == api.End:
			return []action{doExpire}
		case o.expired:
			return []action{doSleep}
		}
	case api.StateHibernating:
		switch {
		case !o.present:
			return []action{doFailed}
		case o.asleep:
			return []action{doAsleep}
		}
		return []action{doHibernate, doAsleep}
	case api.StateHibernated:
		switch {
		case !o.present:
			return []action{doFailed}
		case !o.asleep:
			return []action{doHibernate}
		case o.aged:
			return []action{doExpire}
		}
	case api.StateResuming:
		switch {
		case !o.present:
			return []action{doFailed}
		case o.asleep:
			return []action{doWake, doRunning}
		case o.epoch != r.Epoch:
			return []action{doFailed}
		}
		return []action{doRunning}
	case api.StateEnding:
		return []action{doEnd, doEnded}
	case api.StateEnded, api.StateFailed:
		if o.present {
			return []action{doEnd}
		}
	}
	return nil
}

func nextStarting(r *record, o observed) []action {
	done := doWarm
	if r.claimed() {
		done = doRunning
	}
	switch {
	case r.Forking != "" && o.previous:
		// All children of a fork or none: those that an interrupted one made go.
		return []action{doEnd, doEnded}
	case r.Forking != "":
		return nil
	case !o.present && !r.claimed() && o.previous:
		return []action{doForget}
	case !o.present:
		return []action{doStart, done}
	case o.asleep || o.epoch != r.Epoch:
		return []action{doEnd, doFailed}
	case r.claimed() && !o.claimed:
		return []action{doClaim, done}
	case !r.claimed() && o.claimed:
		return []action{doEnd, doForget}
	}
	return []action{done}
}

// nextLost says what becomes of a sandbox whose node was lost: what slept may come back with it.
func nextLost(r *record) []action {
	switch r.State {
	case api.StateHibernated, api.StateEnded, api.StateFailed:
		return nil
	case api.StateEnding:
		return nil // its node ends it when it returns
	case api.StateWarm:
		return []action{doForget}
	case api.StateStarting:
		if !r.claimed() {
			return []action{doForget}
		}
	case api.StateHibernating:
		return nil // it may have come to its end: its node will tell
	}
	return []action{doFailed}
}

// grace is how long nothing expires after the service began: what was used meanwhile shows by then.
const grace = time.Minute
