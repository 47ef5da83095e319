package e2b

import (
	"net/http"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// newSandbox is the body of a request for a sandbox, of both versions.
type newSandbox struct {
	TemplateID string            `json:"templateID"`
	Timeout    *int64            `json:"timeout"` // seconds
	Metadata   map[string]string `json:"metadata"`
	EnvVars    map[string]string `json:"envVars"`
	Secure     *bool             `json:"secure"`
	AutoPause  bool              `json:"autoPause"`
	AutoResume *struct {
		Enabled bool `json:"enabled"`
	} `json:"autoResume"`
}

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

// defaultTimeout is how many seconds a sandbox lives where the client says nothing.
const defaultTimeout = 300

func (h *Handler) create(w http.ResponseWriter, r *request) error {
	var in newSandbox
	if err := decode(w, r, &in); err != nil {
		return err
	}
	if in.TemplateID == "" {
		return errs.Msg(errs.Invalid, "create sandbox", "templateID", "want a template's name")
	}
	lease := &api.Lease{Duration: defaultTimeout, OnExpiry: api.End}
	if in.Timeout != nil {
		lease.Duration = *in.Timeout
	}
	if in.AutoPause {
		lease.OnExpiry = api.Hibernate
	}
	o := options{ours: true, insecure: in.Secure != nil && !*in.Secure, resume: in.AutoResume != nil && in.AutoResume.Enabled}
	labels := o.labels()
	for k, v := range in.Metadata {
		labels[k] = v
	}
	sb, err := h.Control.CreateSandbox(r.Context(), r.who, api.CreateSandbox{Template: in.TemplateID, Env: in.EnvVars, Lease: lease, Labels: labels})
	if err != nil {
		return err
	}
	r.sandbox = sb.ID
	writeJSON(w, http.StatusCreated, h.sandboxOut(r, sb))
	return nil
}

// sandboxOut describes a sandbox, with the tokens by which the caller uses it.
func (h *Handler) sandboxOut(r *request, sb *api.Sandbox) sandboxOut {
	o := optionsOf(sb)
	out := sandboxOut{SandboxID: sb.ID, TemplateID: sb.Template, ClientID: clientID, EnvdVersion: EnvdVersion, Domain: h.domain()}
	if !o.insecure {
		out.EnvdAccessToken = h.envdToken(sb.ID, r.who)
	}
	if o.closed {
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

// detail describes a sandbox more fully.
type detail struct {
	SandboxID       string            `json:"sandboxID"`
	TemplateID      string            `json:"templateID"`
	Alias           string            `json:"alias,omitempty"`
	ClientID        string            `json:"clientID"`
	EnvdVersion     string            `json:"envdVersion"`
	EnvdAccessToken string            `json:"envdAccessToken,omitempty"`
	Domain          *string           `json:"domain"`
	StartedAt       time.Time         `json:"startedAt"`
	EndAt           time.Time         `json:"endAt"`
	State           string            `json:"state"`
	Metadata        map[string]string `json:"metadata"`
}

func (h *Handler) info(w http.ResponseWriter, r *request) error {
	sb, err := h.live(r, r.vars["id"])
	if err != nil {
		return err
	}
	d := detail{SandboxID: sb.ID, TemplateID: sb.Template, ClientID: clientID, EnvdVersion: EnvdVersion, Domain: h.domain(), StartedAt: sb.Started, EndAt: sb.Expires,
		State: "running", Metadata: metadataOf(sb)}
	if asleep(sb) {
		d.State = "paused"
	}
	if !optionsOf(sb).insecure {
		d.EnvdAccessToken = h.envdToken(sb.ID, r.who)
	}
	writeJSON(w, http.StatusOK, d)
	return nil
}

// live finds a sandbox that hasn't ended, for the caller.
func (h *Handler) live(r *request, id string) (*api.Sandbox, error) {
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
	sb, err := h.live(r, r.vars["id"])
	if err != nil {
		return err
	}
	if _, err := h.Control.EndSandbox(r.Context(), r.who, sb.ID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
