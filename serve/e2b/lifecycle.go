package e2b

import (
	"context"
	"net/http"
	"sync"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/control"
	"agentrun.dev/errs"
)

// absolute gives a lease E2B's meaning of time: it ends when it was said to, however much the sandbox is used.
func absolute(l *api.Lease) { l.Mode = api.Fixed }

// timeoutBody is the body of what sets a sandbox's time.
type timeoutBody struct {
	Timeout   *int64 `json:"timeout"`
	Duration  *int64 `json:"duration"` // of a refresh
	AutoPause *bool  `json:"autoPause"`
	Memory    *bool  `json:"memory"`
}

// dropsMemory reports whether what runs in the sandbox shall be gone afterwards.
func (b *timeoutBody) dropsMemory() bool { return b.Memory != nil && !*b.Memory }

func readTimeout(w http.ResponseWriter, r *request) (*timeoutBody, error) {
	var in timeoutBody
	if err := decode(w, r, &in); err != nil {
		return nil, err
	}
	for _, t := range []*int64{in.Timeout, in.Duration} {
		if t != nil {
			if err := checkTimeout(*t); err != nil {
				return nil, err
			}
		}
	}
	return &in, nil
}

// setTimeout makes a sandbox end so many seconds from now, sooner or later than it would have.
func (h *Handler) setTimeout(w http.ResponseWriter, r *request) error {
	in, err := readTimeout(w, r)
	if err != nil {
		return err
	}
	if in.Timeout == nil {
		return errs.Msg(errs.Invalid, "set timeout", "timeout", "want seconds")
	}
	sb, err := h.live(r)
	if err != nil {
		return err
	}
	if asleep(sb) {
		return errs.Msg(errs.NotFound, "set timeout", sb.ID, "the sandbox is paused")
	}
	if err := h.endIn(r, sb, *in.Timeout); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// refresh puts a sandbox's end off, and never forward.
func (h *Handler) refresh(w http.ResponseWriter, r *request) error {
	in, err := readTimeout(w, r)
	if err != nil {
		return err
	}
	sb, err := h.live(r)
	if err != nil {
		return err
	}
	if asleep(sb) {
		return errs.Msg(errs.NotFound, "refresh", sb.ID, "the sandbox is paused")
	}
	seconds := int64(defaultTimeout)
	if in.Duration != nil {
		seconds = *in.Duration
	}
	if err := h.extend(r, sb.ID, seconds); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// extend makes a sandbox live for so many seconds from now, or longer.
func (h *Handler) extend(r *request, id string, seconds int64) error {
	_, err := h.Control.ExtendSandbox(r.Context(), r.who, id, api.Extend{Seconds: max(1, seconds)})
	return err
}

// pause saves a sandbox and ends it, until somebody connects.
func (h *Handler) pause(w http.ResponseWriter, r *request) error {
	in, err := readTimeout(w, r)
	if err != nil {
		return err
	}
	sb, err := h.live(r)
	if err != nil {
		return err
	}
	if asleep(sb) {
		return errs.Msg(errs.Conflict, "pause", sb.ID, "it is paused already")
	}
	if in.dropsMemory() {
		if err := h.killAll(r, sb.ID); err != nil {
			return err
		}
	}
	h.active.end(sb.ID) // streams of commands and of files end with the sandbox that they came from
	if _, err := h.Control.HibernateSandbox(r.Context(), r.who, sb.ID, api.HibernateSandbox{Force: true}); err != nil {
		if errs.Is(err, errs.Conflict) { // a client would take it for "already"
			err = errs.New(errs.Unavailable, "pause", sb.ID, err)
		}
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// killAll ends all that runs in a sandbox: it is then as after a start from its disk alone.
func (h *Handler) killAll(r *request, id string) error {
	u, err := h.Control.Use(r.Context(), r.who, id, access.SandboxExec)
	if err != nil {
		return err
	}
	defer u.Close()
	return killIn(r.Context(), u)
}

func killIn(ctx context.Context, u *control.Session) error {
	list, err := u.Processes(ctx)
	if err != nil {
		return err
	}
	for _, p := range list {
		if err := u.Signal(ctx, p.Pid, 9); err != nil && !errs.Is(err, errs.NotFound) {
			return err
		}
	}
	return nil
}

// connect tells how to use a sandbox, and wakes it up if it sleeps. It lives on for the time that is said, if that is longer.
func (h *Handler) connect(w http.ResponseWriter, r *request) error {
	in, err := readTimeout(w, r)
	if err != nil {
		return err
	}
	sb, err := h.live(r)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if asleep(sb) {
		status = http.StatusCreated
	}
	return h.reach(w, r, sb, in, status)
}

// resume is what connect was before.
func (h *Handler) resume(w http.ResponseWriter, r *request) error {
	in, err := readTimeout(w, r)
	if err != nil {
		return err
	}
	sb, err := h.live(r)
	if err != nil {
		return err
	}
	if !asleep(sb) {
		return errs.Msg(errs.Conflict, "resume", sb.ID, "it isn't paused")
	}
	if in.AutoPause != nil {
		l := sb.Lease
		if l.OnExpiry = api.End; *in.AutoPause {
			l.OnExpiry = api.Hibernate
		}
		if _, err := h.Control.ChangeSandbox(r.Context(), r.who, sb.ID, api.ChangeSandbox{Lease: &l}); err != nil {
			return err
		}
	}
	return h.reach(w, r, sb, in, http.StatusCreated)
}

// reach wakes a sandbox up, gives it time and tells how to use it.
func (h *Handler) reach(w http.ResponseWriter, r *request, sb *api.Sandbox, in *timeoutBody, status int) error {
	seconds := int64(defaultTimeout)
	if in.Timeout != nil {
		seconds = *in.Timeout
	}
	slept := asleep(sb)
	if slept {
		if _, err := h.Control.Resume(r.Context(), r.who, sb.ID); err != nil {
			return err
		}
		o := optionsOf(sb)
		if in.dropsMemory() || o.DropMemory {
			if err := h.killAll(r, sb.ID); err != nil {
				return err
			}
		}
		if err := h.endIn(r, sb, seconds); err != nil {
			return err
		}
	} else if err := h.extend(r, sb.ID, seconds); err != nil {
		return err
	}
	h.introduce(r, sb)
	writeJSON(w, status, h.sandboxOut(r, sb))
	return nil
}

// active are the requests under way inside of sandboxes.
type active struct {
	mu   sync.Mutex
	next uint64
	ends map[string]map[uint64]context.CancelCauseFunc // by sandbox
}

// begin notes a request, whose context ends with the sandbox's pause. done is called when it is over.
func (a *active) begin(ctx context.Context, sandbox string) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ends == nil {
		a.ends = map[string]map[uint64]context.CancelCauseFunc{}
	}
	if a.ends[sandbox] == nil {
		a.ends[sandbox] = map[uint64]context.CancelCauseFunc{}
	}
	a.next++
	n := a.next
	a.ends[sandbox][n] = cancel
	return ctx, func() {
		cancel(nil)
		a.mu.Lock()
		defer a.mu.Unlock()
		if delete(a.ends[sandbox], n); len(a.ends[sandbox]) == 0 {
			delete(a.ends, sandbox)
		}
	}
}

// end ends all requests inside of a sandbox.
func (a *active) end(sandbox string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, cancel := range a.ends[sandbox] {
		cancel(errs.Msg(errs.Unavailable, "use sandbox", sandbox, "the sandbox is being paused"))
	}
}

// until waits so long for a condition that another process brings about.
func until(ctx context.Context, limit time.Duration, ok func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

// endIn makes a sandbox that runs end so many seconds from now.
func (h *Handler) endIn(r *request, sb *api.Sandbox, seconds int64) error {
	_, err := h.Control.ExtendSandbox(r.Context(), r.who, sb.ID, api.Extend{Seconds: max(1, seconds), Exact: true})
	return err
}
