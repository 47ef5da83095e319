package e2b

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// newSandbox is the body of a request for a sandbox, of both versions.
type newSandbox struct {
	TemplateID      string            `json:"templateID"`
	Timeout         *int64            `json:"timeout"` // seconds
	Metadata        map[string]string `json:"metadata"`
	EnvVars         map[string]string `json:"envVars"`
	Secure          *bool             `json:"secure"`
	Internet        *bool             `json:"allow_internet_access"`
	Network         json.RawMessage   `json:"network"`
	AutoPause       bool              `json:"autoPause"`
	AutoPauseMemory *bool             `json:"autoPauseMemory"`
	AutoResume      *struct {
		Enabled bool `json:"enabled"`
	} `json:"autoResume"`
	VolumeMounts []volumeMount `json:"volumeMounts"`
	IAM          *struct {
		Tokens map[string]json.RawMessage `json:"tokens"`
	} `json:"iam"`
	MCP json.RawMessage `json:"mcp"`
}

// Bounds of a sandbox's life, in seconds.
const (
	defaultTimeout = 300            // where the client says nothing
	maxTimeout     = 30 * 24 * 3600 // E2B's own is a day
)

// create answers both versions of the call.
func (h *Handler) create(w http.ResponseWriter, r *request) error {
	var in newSandbox
	if err := decode(w, r, &in); err != nil {
		return err
	}
	req, start, err := h.order(r, &in)
	if err != nil {
		return err
	}
	sb, err := h.Control.CreateSandbox(r.Context(), r.who, *req)
	if err != nil {
		return startError(err)
	}
	r.sandbox = sb.ID
	if start {
		if err := h.begin(r, sb); err != nil {
			_, _ = h.Control.EndSandbox(context.WithoutCancel(r.Context()), r.who, sb.ID)
			return err
		}
	}
	writeJSON(w, http.StatusCreated, h.sandboxOut(r, sb))
	return nil
}

// startError words an error of something that was to start: what is in the way of it isn't there, or not yet.
func startError(err error) error {
	var e *errs.Error
	if errors.As(err, &e) && e.Kind == errs.Conflict {
		return errs.New(errs.Invalid, e.Op, e.Thing, e.Err).WithHint(errs.HintOf(err))
	}
	return err
}

// order is what a request asks of the service; start says that the template has a start command.
func (h *Handler) order(r *request, in *newSandbox) (_ *api.CreateSandbox, start bool, err error) {
	const op = "create sandbox"
	switch {
	case in.TemplateID == "":
		return nil, false, errs.Msg(errs.Invalid, op, "templateID", "want a template's name or a snapshot's id")
	case given(in.MCP):
		return nil, false, errs.Msg(errs.Unsupported, op, "mcp", "this server runs no MCP gateway inside of sandboxes").
			WithHint("its own MCP server, at /mcp, has tools for sandboxes")
	case in.IAM != nil && len(in.IAM.Tokens) > 0:
		return nil, false, errs.Msg(errs.Unsupported, op, "iam", "this server issues no workload tokens")
	}
	lease, err := leaseOf(in.Timeout, in.AutoPause)
	if err != nil {
		return nil, false, err
	}
	o := options{Insecure: in.Secure != nil && !*in.Secure, Resume: in.AutoResume != nil && in.AutoResume.Enabled, Internet: in.Internet,
		DropMemory: in.AutoPauseMemory != nil && !*in.AutoPauseMemory, Volumes: in.VolumeMounts}
	if o.Resume && (!in.AutoPause || o.DropMemory) {
		return nil, false, errs.Msg(errs.Invalid, op, "autoResume", "it goes with autoPause that keeps the memory")
	}
	if lease.Wake = api.WakeOnResume; o.Resume {
		lease.Wake = api.WakeOnUse
	}
	net, err := readNetwork(in.Network)
	if err != nil {
		return nil, false, err
	}
	o.Closed = net.AllowPublicTraffic != nil && !*net.AllowPublicTraffic
	if given(in.Network) {
		if o.Network, err = net.kept(); err != nil {
			return nil, false, err
		}
	}
	env := map[string]string{"E2B_SANDBOX": "true"} // by which programs know where they are; envd adds the id
	maps.Copy(env, in.EnvVars)
	out := &api.CreateSandbox{Env: env, Lease: lease, Network: net.policy(in.Internet)}
	if out.Template, out.Snapshot, err = h.source(r, in.TemplateID, &o); err != nil {
		return nil, false, err
	}
	narrow(out.Network, o.net)
	if err := h.mount(r, in.VolumeMounts, out); err != nil {
		return nil, false, err
	}
	out.Labels, err = o.labels(in.Metadata)
	return out, o.start, err
}

// leaseOf is the life that a client asks for.
func leaseOf(timeout *int64, pause bool) (*api.Lease, error) {
	l := &api.Lease{Duration: defaultTimeout, OnExpiry: api.End}
	if timeout != nil {
		if err := checkTimeout(*timeout); err != nil {
			return nil, err
		}
		l.Duration = max(1, *timeout)
	}
	if pause {
		l.OnExpiry = api.Hibernate
	}
	absolute(l)
	return l, nil
}

func checkTimeout(seconds int64) error {
	if seconds < 0 || seconds > maxTimeout {
		return errs.Msg(errs.Invalid, "read request", "timeout", fmt.Sprintf("%d seconds: want 0 to %d", seconds, maxTimeout))
	}
	return nil
}

// given reports whether JSON has a value.
func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// sandboxOut describes a sandbox to whoever may use it.
type sandboxOut struct {
	SandboxID          string  `json:"sandboxID"`
	TemplateID         string  `json:"templateID"`
	Alias              string  `json:"alias,omitempty"`
	ClientID           string  `json:"clientID"`
	EnvdVersion        string  `json:"envdVersion"`
	EnvdAccessToken    string  `json:"envdAccessToken,omitempty"`
	TrafficAccessToken *string `json:"trafficAccessToken"`
	Domain             *string `json:"domain"`
}

// sandboxOut describes a sandbox, with the tokens by which the caller uses it.
func (h *Handler) sandboxOut(r *request, sb *api.Sandbox) sandboxOut {
	o := optionsOf(sb)
	out := sandboxOut{SandboxID: sb.ID, TemplateID: sb.Template, Alias: sb.Template, ClientID: clientID, EnvdVersion: EnvdVersion, Domain: h.domain()}
	if !o.Insecure {
		out.EnvdAccessToken = h.envdToken(sb.ID, r.who)
	}
	if o.Closed {
		t := h.trafficToken(sb.ID)
		out.TrafficAccessToken = &t
	}
	return out
}

// clientID stood for the machine of a sandbox, and is told for old clients only.
const clientID = "agentrun"

// domain is what is told to clients, or nil for JSON's null.
func (h *Handler) domain() *string {
	if h.Domain == "" {
		return nil
	}
	return &h.Domain
}

// listed describes a sandbox in a list.
type listed struct {
	SandboxID    string            `json:"sandboxID"`
	TemplateID   string            `json:"templateID"`
	Alias        string            `json:"alias,omitempty"`
	ClientID     string            `json:"clientID"`
	EnvdVersion  string            `json:"envdVersion"`
	StartedAt    time.Time         `json:"startedAt"`
	EndAt        time.Time         `json:"endAt"`
	State        string            `json:"state"`
	CPUCount     int               `json:"cpuCount"`
	MemoryMB     int64             `json:"memoryMB"`
	DiskSizeMB   int64             `json:"diskSizeMB"`
	Metadata     map[string]string `json:"metadata"`
	VolumeMounts []volumeMount     `json:"volumeMounts"`
}

// detail describes a sandbox more fully.
type detail struct {
	listed
	EnvdAccessToken     string          `json:"envdAccessToken,omitempty"`
	Domain              *string         `json:"domain"`
	AllowInternetAccess *bool           `json:"allowInternetAccess"`
	Network             json.RawMessage `json:"network,omitempty"`
	Lifecycle           lifecycle       `json:"lifecycle"`
}

// lifecycle is what becomes of a sandbox whose time is over.
type lifecycle struct {
	AutoResume bool   `json:"autoResume"`
	OnTimeout  string `json:"onTimeout"`
}

// States of a sandbox, as clients know them.
const (
	running = "running"
	paused  = "paused"
)

func stateOf(sb *api.Sandbox) string {
	if asleep(sb) {
		return paused
	}
	return running
}

// listed describes a sandbox; sizes are its template's.
func (h *Handler) listed(sb *api.Sandbox, s size) listed {
	o := optionsOf(sb)
	l := listed{SandboxID: sb.ID, TemplateID: sb.Template, Alias: sb.Template, ClientID: clientID, EnvdVersion: EnvdVersion, StartedAt: sb.Started.UTC(),
		EndAt: sb.Expires.UTC(), State: stateOf(sb), CPUCount: s.cpus, MemoryMB: s.memory, DiskSizeMB: s.disk, Metadata: metadataOf(sb), VolumeMounts: o.Volumes}
	if sb.Started.IsZero() {
		l.StartedAt = sb.Created.UTC()
	}
	if sb.Expires.IsZero() { // a paused one's time stands still
		l.EndAt = l.StartedAt
	}
	if l.VolumeMounts == nil {
		l.VolumeMounts = []volumeMount{}
	}
	return l
}

// size is what a template gives its sandboxes, MiB.
type size struct {
	cpus         int
	memory, disk int64
}

// Sizes of a template that sets none: E2B's own.
const (
	defaultCPUs   = 2
	defaultMemory = 1024
	defaultDisk   = 10 << 10
)

func sizeOf(res api.Resources) size {
	s := size{cpus: int(res.CPU + 0.999), memory: res.Memory >> 20, disk: res.Disk >> 20}
	if s.cpus <= 0 {
		s.cpus = defaultCPUs
	}
	if s.memory <= 0 {
		s.memory = defaultMemory
	}
	if s.disk <= 0 {
		s.disk = defaultDisk
	}
	return s
}

// sizes looks the sizes of sandboxes up, each template's once.
type sizes struct {
	h    *Handler
	r    *request
	seen map[string]size
}

func (s *sizes) of(sb *api.Sandbox) size {
	key := fmt.Sprintf("%s@%d", sb.Template, sb.Version)
	out, ok := s.seen[key]
	if !ok {
		var spec api.TemplateSpec
		if t, err := s.h.Control.Template(s.r.Context(), s.r.who, sb.Template, sb.Version); err == nil { // it may have been deleted
			spec = t.Spec
		}
		if out = sizeOf(spec.Resources); s.seen == nil {
			s.seen = map[string]size{}
		}
		s.seen[key] = out
	}
	return out
}

func (h *Handler) info(w http.ResponseWriter, r *request) error {
	sb, err := h.live(r)
	if err != nil {
		return err
	}
	o := optionsOf(sb)
	d := detail{listed: h.listed(sb, (&sizes{h: h, r: r}).of(sb)), Domain: h.domain(), AllowInternetAccess: o.Internet, Network: o.Network,
		Lifecycle: lifecycle{AutoResume: o.Resume, OnTimeout: "kill"}}
	if sb.Lease.OnExpiry == api.Hibernate {
		d.Lifecycle.OnTimeout = "pause"
	}
	if !o.Insecure {
		d.EnvdAccessToken = h.envdToken(sb.ID, r.who)
	}
	writeJSON(w, http.StatusOK, d)
	return nil
}

// live finds the sandbox that the path names, for the caller. One that has ended isn't there any more.
func (h *Handler) live(r *request) (*api.Sandbox, error) {
	id := r.vars["id"]
	sb, err := h.Control.Sandbox(r.Context(), r.who, id)
	if err != nil {
		return nil, err
	}
	switch sb.State {
	case api.StateEnded, api.StateEnding, api.StateFailed, api.StateWarm:
		return nil, errs.Msg(errs.NotFound, "find sandbox", clip(id), "it has ended")
	}
	r.sandbox = sb.ID
	return sb, nil
}

func (h *Handler) kill(w http.ResponseWriter, r *request) error {
	sb, err := h.live(r)
	if err != nil {
		return err
	}
	if _, err := h.Control.EndSandbox(r.Context(), r.who, sb.ID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// introduce remembers that the caller was told a token for another's sandbox: signatures are checked with it.
func (h *Handler) introduce(r *request, sb *api.Sandbox) {
	o := optionsOf(sb)
	name := r.who.Principal.Name
	if !o.ours || name == sb.Owner || slices.Contains(o.Guests, name) || len(o.Guests) >= maxGuests {
		return
	}
	o.Guests = append(o.Guests, name)
	labels, err := o.change(sb)
	if err == nil {
		_, err = h.Control.ChangeSandbox(r.Context(), r.who, sb.ID, api.ChangeSandbox{Labels: labels})
	}
	if err != nil { // all else works without it
		h.Log.Debug("remember who was told a token", "sandbox", sb.ID, "error", err)
	}
}

// maxGuests bounds those who are remembered.
const maxGuests = 16
