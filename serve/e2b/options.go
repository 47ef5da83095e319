package e2b

import (
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// A sandbox's metadata are its labels. Those that begin with reserved are this package's own, and no client sees them: one says that
// this API made the sandbox, and numbered ones hold options as JSON, in pieces of what a label can hold.
const (
	reserved  = "e2b."
	labelMade = reserved + "made"
	piece     = 256 // bytes in the value of a label
	maxPieces = 24
	maxPlain  = 32 // labels that are metadata; the rest are in options
)

// options are what a sandbox was created with that only this protocol has.
type options struct {
	ours       bool
	Insecure   bool              `json:"insecure,omitempty"` // envd asks for no token
	Closed     bool              `json:"closed,omitempty"`   // its ports ask for the traffic token
	Resume     bool              `json:"resume,omitempty"`   // any request wakes it up
	DropMemory bool              `json:"dropMemory,omitempty"`
	Internet   *bool             `json:"internet,omitempty"` // as it was asked for
	Guests     []string          `json:"guests,omitempty"`   // who were told tokens, beside its owner
	Network    json.RawMessage   `json:"network,omitempty"`  // as it was asked for
	Volumes    []volumeMount     `json:"volumes,omitempty"`
	User       string            `json:"user,omitempty"` // as whom its commands run
	Dir        string            `json:"dir,omitempty"`  // where they begin
	More       map[string]string `json:"more,omitempty"` // metadata that labels can't hold

	start bool              // of its template: it has a start command
	net   api.NetworkPolicy // of its template
}

// volumeMount is a volume's place in a sandbox.
type volumeMount struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// made reports whether this API made a sandbox. It costs little.
func made(sb *api.Sandbox) bool { return sb.Labels[labelMade] != "" }

// optionsOf reads the options of a sandbox; those of one that AgentRun's own API made are zero.
func optionsOf(sb *api.Sandbox) options {
	var o options
	if !made(sb) {
		return o
	}
	var b strings.Builder
	for i := range maxPieces {
		v, ok := sb.Labels[reserved+strconv.Itoa(i)]
		if !ok {
			break
		}
		b.WriteString(v)
	}
	if b.Len() > 0 {
		_ = json.Unmarshal([]byte(b.String()), &o) // whoever changed these labels by hand gets the safe defaults
	}
	o.ours = true
	return o
}

// resumes reports whether a request wakes the sandbox up. One that AgentRun's own API made always does, as it does there.
func (o options) resumes() bool { return o.Resume || !o.ours }

// labels are how options and metadata are kept.
func (o *options) labels(metadata map[string]string) (api.Labels, error) {
	out := api.Labels{labelMade: "1"}
	o.More = nil
	keys := make([]string, 0, len(metadata))
	for k := range metadata {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	plain := 0
	for _, k := range keys {
		if v := metadata[k]; plain < maxPlain && isLabel(k, v) {
			out[k] = v
			plain++
		} else {
			if o.More == nil {
				o.More = map[string]string{}
			}
			o.More[k] = v
		}
	}
	b, err := json.Marshal(o)
	if err != nil {
		return nil, errs.New(errs.Invalid, "create sandbox", "", err)
	}
	if string(b) == "{}" {
		return out, nil
	}
	for i := 0; len(b) > 0; i++ {
		if i == maxPieces {
			return nil, errs.Msg(errs.TooLarge, "create sandbox", "metadata, network", fmt.Sprintf("together more than about %d bytes", maxPieces*piece))
		}
		n := min(piece, len(b))
		for n < len(b) && !utf8.RuneStart(b[n]) {
			n--
		}
		out[reserved+strconv.Itoa(i)] = string(b[:n])
		b = b[n:]
	}
	return out, nil
}

// change returns how the labels of a sandbox become those of other options.
func (o *options) change(sb *api.Sandbox) (map[string]*string, error) {
	next, err := o.labels(metadataOf(sb))
	if err != nil {
		return nil, err
	}
	out := map[string]*string{}
	for k := range sb.Labels {
		if _, stays := next[k]; !stays {
			out[k] = nil
		}
	}
	for k, v := range next {
		if sb.Labels[k] != v {
			out[k] = &v
		}
	}
	return out, nil
}

// isLabel reports whether metadata can be a label.
func isLabel(k, v string) bool {
	return k != "" && len(k) <= piece && len(v) <= piece && !strings.HasPrefix(k, reserved) && !strings.ContainsAny(k, "=\x00\n") && !strings.ContainsAny(v, "\x00\n") &&
		utf8.ValidString(k) && utf8.ValidString(v)
}

// metadataOf returns what clients see of a sandbox's labels.
func metadataOf(sb *api.Sandbox) map[string]string {
	out := map[string]string{}
	for k, v := range sb.Labels {
		if !strings.HasPrefix(k, reserved) {
			out[k] = v
		}
	}
	o := optionsOf(sb)
	for k, v := range o.More {
		out[k] = v
	}
	return out
}
