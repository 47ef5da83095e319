package e2b

import (
	"context"
	"net/http"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/control"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
)

// measured are the measurements of a sandbox between two moments, oldest first.
func (h *Handler) measured(r *request, sb *api.Sandbox, s size, from, to time.Time) ([]metric, error) {
	list, err := h.Control.SandboxMetrics(r.Context(), r.who, sb.ID, from, to)
	if err != nil {
		return nil, err
	}
	out := make([]metric, 0, len(list.Samples))
	for _, m := range list.Samples {
		one := metric{Timestamp: m.Time.UTC(), TimestampUnix: m.Time.Unix(), CPUCount: s.cpus, CPUUsedPct: m.CPU, MemUsed: m.Memory, MemTotal: m.MemoryLimit,
			DiskUsed: m.Disk, DiskTotal: m.DiskLimit}
		if one.MemTotal <= 0 {
			one.MemTotal = s.memory << 20
		}
		if one.DiskTotal <= 0 {
			one.DiskTotal = s.disk << 20
		}
		one.MemUsed, one.DiskUsed = min(one.MemUsed, one.MemTotal), min(one.DiskUsed, one.DiskTotal)
		out = append(out, one)
	}
	return out, nil
}

// changeNetwork answers PUT /sandboxes/{id}/network: what isn't said is as the template has it.
func (h *Handler) changeNetwork(w http.ResponseWriter, r *request) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	n, err := readNetwork(body)
	if err != nil {
		return err
	}
	sb, err := h.live(r)
	if err != nil {
		return err
	}
	return h.setNetwork(w, r, sb, n)
}

// setNetwork puts rules in force, and remembers them as they were said.
func (h *Handler) setNetwork(w http.ResponseWriter, r *request, sb *api.Sandbox, n *network) error {
	t, err := h.Control.Template(r.Context(), r.who, sb.Template, sb.Version)
	if err != nil {
		return err
	}
	policy := n.policy(n.Internet)
	if narrow(policy, t.Spec.Network); policy == nil {
		policy = &t.Spec.Network
	}
	change := api.ChangeSandbox{Network: policy}
	o := optionsOf(sb)
	if o.ours {
		was, err := readNetwork(o.Network)
		if err != nil {
			return err
		}
		n.AllowPublicTraffic = was.AllowPublicTraffic // which an update leaves as it is
		o.Internet = n.Internet
		if o.Network, err = n.kept(); err != nil {
			return err
		}
		if change.Labels, err = o.change(sb); err != nil {
			return err
		}
	}
	if _, err := h.Control.ChangeSandbox(r.Context(), r.who, sb.ID, change); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// begin starts what a template's start command is, and waits until it is ready.
func (h *Handler) begin(r *request, sb *api.Sandbox) error {
	u, err := h.Control.Use(r.Context(), r.who, sb.ID, access.SandboxExec)
	if err != nil {
		return err
	}
	defer u.Close()
	if _, err := u.Exec(context.WithoutCancel(r.Context()), engine.Cmd{Args: []string{"bash", "-c", "setsid bash " + startFile + " </dev/null >/tmp/e2b-start.log 2>&1 &"}, Root: true, Keep: true}); err != nil {
		return err
	}
	ready := until(r.Context(), time.Minute, func() bool {
		p, err := u.Exec(r.Context(), engine.Cmd{Args: []string{"bash", "-c", "[ ! -e " + readyFile + " ] || exec bash " + readyFile}, Root: true})
		if err != nil {
			return false
		}
		status, err := p.Wait(r.Context())
		return err == nil && status == 0
	})
	if !ready {
		return errs.Msg(errs.Unavailable, "create sandbox", sb.ID, "its start command didn't get ready within a minute")
	}
	return nil
}

// defaults are as whom commands of a sandbox run and where they begin, as its template has it.
func defaults(u *control.Session) (user, dir string) {
	o := optionsOf(&u.Sandbox)
	return o.User, o.Dir
}

// sudoers lets the user of E2B's sandboxes be root, as programs for them take for granted.
const sudoers = "echo 'user ALL=(ALL:ALL) NOPASSWD: ALL' >/etc/sudoers && chmod 440 /etc/sudoers"

// BaseTemplates are the templates that the SDKs ask for where a program names none. They are made when they are first asked for.
func BaseTemplates() map[string]api.TemplateSpec {
	base := api.TemplateSpec{Dir: homeDir, Init: []string{sudoers}, Network: api.NetworkPolicy{Egress: "allow"}}
	code := base
	code.Language = api.Python
	return map[string]api.TemplateSpec{"base": base, "code-interpreter-v1": code}
}
