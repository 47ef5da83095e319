package e2b

import (
	"strings"

	"agentrun.dev/api"
)

// A sandbox's metadata are its labels. Those that begin with reserved are this package's own, and no client sees them.
const (
	reserved      = "e2b."
	labelMade     = reserved + "made"     // by this API
	labelInsecure = reserved + "insecure" // envd asks for no token
	labelClosed   = reserved + "closed"   // its ports ask for the traffic token
	labelResume   = reserved + "resume"   // any request wakes it up
	labelGuests   = reserved + "guests"   // who were told tokens, beside its owner
)

// options are what a sandbox was created with that only this protocol has.
type options struct {
	ours, insecure, closed, resume bool
	guests                         []string // principals
}

func optionsOf(sb *api.Sandbox) options {
	l := sb.Labels
	return options{ours: l[labelMade] != "", insecure: l[labelInsecure] != "", closed: l[labelClosed] != "", resume: l[labelResume] != "",
		guests: strings.Fields(l[labelGuests])}
}

// resumes reports whether a request wakes the sandbox up. One that AgentRun's own API made always does, as it does there.
func (o options) resumes() bool { return o.resume || !o.ours }

// labels are how options are kept.
func (o options) labels() api.Labels {
	l := api.Labels{}
	for name, on := range map[string]bool{labelMade: o.ours, labelInsecure: o.insecure, labelClosed: o.closed, labelResume: o.resume} {
		if on {
			l[name] = "1"
		}
	}
	return l
}

// metadataOf returns what clients see of a sandbox's labels.
func metadataOf(sb *api.Sandbox) map[string]string {
	out := map[string]string{}
	for k, v := range sb.Labels {
		if !strings.HasPrefix(k, reserved) {
			out[k] = v
		}
	}
	return out
}
