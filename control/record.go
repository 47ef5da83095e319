package control

import (
	"cmp"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/volume"
)

// record is what is known of a sandbox. It is never changed in place.
type record struct {
	api.Sandbox

	Image  string             `json:"image"`            // of its template: what it has after a crash of its node
	From   string             `json:"from,omitempty"`   // id of the snapshot with memory that it starts from, instead
	Sealed []byte             `json:"sealed,omitempty"` // its environment: secrets are in it
	Mounts []volume.Spec      `json:"mounts,omitempty"` // that came with the claim
	Start  []volume.Spec      `json:"start,omitempty"`  // that it was started with in place of its image's: a snapshot's
	Most   *api.NetworkPolicy `json:"most,omitempty"`   // what its network may be changed to at most
	Key    string             `json:"key,omitempty"`    // id of its credentials
	Claim  string             `json:"claim,omitempty"`  // name of the claim that it is of
	Slept  time.Time          `json:"slept,omitzero"`   // since when it hibernates
	Doomed string             `json:"doomed,omitempty"` // of ending: api.StateFailed if it ends by a failure
	Forced bool               `json:"forced,omitempty"` // of hibernating: whatever can't be saved is lost
	// Forking is the name of the fork that is making it: until that is done it can be made by nothing else.
	Forking string `json:"forking,omitempty"`
}

func (r *record) clone() *record {
	c := *r
	return &c
}

// source is the image that it starts from.
func (r *record) source() string {
	if r.From != "" {
		return snapshotPrefix(r.From)
	}
	return r.Image
}

// most is what its network may be changed to at most.
func (r *record) most() api.NetworkPolicy {
	if r.Most == nil {
		return r.Network
	}
	return *r.Most
}

// fixed reports whether uses don't move the end of its lease.
func (r *record) fixed() bool { return r.Lease.Mode == api.Fixed }

// live reports whether it hasn't ended.
func (r *record) live() bool { return r.State != api.StateEnded && r.State != api.StateFailed }

// claimed reports whether it is somebody's.
func (r *record) claimed() bool { return !r.Sandbox.Claimed.IsZero() }

// counts reports whether it runs, or is about to, for budgets and capacity.
func (r *record) counts() bool {
	switch r.State {
	case api.StateStarting, api.StateWarm, api.StateRunning, api.StateHibernating, api.StateResuming:
		return true
	}
	return false
}

func (r *record) thing() access.Thing {
	return access.Thing{Kind: "sandbox", ID: r.ID, Owner: r.Owner, Visibility: r.Visibility}
}

// Defaults of leases.
const (
	defaultLease     = 600 * time.Second
	defaultSleep     = 30 * 24 * time.Hour
	defaultRetention = 7 * 24 * time.Hour
)

// fullLease fills defaults in: what over says wins, then base.
func fullLease(base api.Lease, over *api.Lease) api.Lease {
	pick := func(values ...int64) int64 {
		for _, v := range values {
			if v != 0 {
				return v
			}
		}
		return 0
	}
	var o api.Lease
	if over != nil {
		o = *over
	}
	l := api.Lease{
		Duration:  pick(o.Duration, base.Duration, int64(defaultLease/time.Second)),
		Extend:    pick(o.Extend, base.Extend, int64(defaultLease/time.Second)),
		OnExpiry:  cmp.Or(o.OnExpiry, base.OnExpiry, api.Hibernate),
		Mode:      cmp.Or(o.Mode, base.Mode),
		Wake:      cmp.Or(o.Wake, base.Wake),
		MaxAge:    pick(o.MaxAge, base.MaxAge),
		Sleep:     pick(o.Sleep, base.Sleep, int64(defaultSleep/time.Second)),
		Retention: pick(o.Retention, base.Retention, int64(defaultRetention/time.Second)),
	}
	return l
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }
