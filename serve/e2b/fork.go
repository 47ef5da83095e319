package e2b

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"agentrun.dev/api"
	"agentrun.dev/control"
	"agentrun.dev/errs"
)

// forkOut is what became of one of the copies that were asked for: here all are made, or none.
type forkOut struct {
	Sandbox *sandboxOut `json:"sandbox,omitempty"`
	Error   *apiError   `json:"error,omitempty"`
}

// fork makes copies of a running sandbox, at one instant.
func (h *Handler) fork(w http.ResponseWriter, r *request) error {
	var in struct {
		Count   *int   `json:"count"`
		Timeout *int64 `json:"timeout"`
	}
	if err := decode(w, r, &in); err != nil {
		return err
	}
	count := 1
	if in.Count != nil {
		count = *in.Count
	}
	if count < 1 || count > api.MaxForks {
		return errs.Msg(errs.Invalid, "fork", "count", fmt.Sprintf("want 1 to %d", api.MaxForks))
	}
	sb, err := h.live(r)
	if err != nil {
		return err
	}
	if asleep(sb) {
		return errs.Msg(errs.Conflict, "fork", sb.ID, "the sandbox is paused").WithHint("connect to it first")
	}
	lease, err := leaseOf(in.Timeout, sb.Lease.OnExpiry == api.Hibernate)
	if err != nil {
		return err
	}
	lease.Wake = sb.Lease.Wake
	// What can't be copied, such as a connection, is missing in the copies, as after a restart.
	f, err := h.Control.ForkSandbox(r.Context(), r.who, sb.ID, api.ForkSandbox{Count: count, Lease: lease, Kill: true})
	if err != nil {
		return err
	}
	out := make([]forkOut, 0, count)
	for i := range f.Sandboxes {
		s := h.sandboxOut(r, &f.Sandboxes[i])
		out = append(out, forkOut{Sandbox: &s})
	}
	writeJSON(w, http.StatusCreated, out)
	return nil
}

// snapshotOut describes a snapshot: a sandbox is created from it as from a template.
type snapshotOut struct {
	SnapshotID string   `json:"snapshotID"`
	Names      []string `json:"names"`
}

func shownSnapshot(s *api.SandboxSnapshot) snapshotOut {
	out := snapshotOut{SnapshotID: s.ID, Names: []string{}}
	if s.Name != "" {
		out.Names = append(out.Names, s.Name)
	}
	return out
}

func (h *Handler) takeSnapshot(w http.ResponseWriter, r *request) error {
	var in struct {
		Name string `json:"name"`
	}
	if err := decode(w, r, &in); err != nil {
		return err
	}
	sb, err := h.live(r)
	if err != nil {
		return err
	}
	if asleep(sb) {
		return errs.Msg(errs.Conflict, "take snapshot", sb.ID, "the sandbox is paused").WithHint("connect to it first")
	}
	s, err := h.Control.TakeSnapshot(r.Context(), r.who, sb.ID, wholeSnapshot(in.Name))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusCreated, shownSnapshot(s))
	return nil
}

// snapshots lists snapshots, newest first.
func (h *Handler) snapshots(w http.ResponseWriter, r *request) error {
	q := r.URL.Query()
	p, err := readPage(q)
	if err != nil {
		return err
	}
	list, err := h.allSnapshots(r, q.Get("sandboxID"))
	if err != nil {
		return err
	}
	if name := q.Get("name"); name != "" {
		list = slices.DeleteFunc(list, func(s api.SandboxSnapshot) bool { return s.ID != name && !sameName(s.Name, name) })
	}
	slices.SortFunc(list, func(a, b api.SandboxSnapshot) int { return cmp.Compare(b.ID, a.ID) })
	out := []snapshotOut{}
	for _, s := range cut(w, p, list, func(s *api.SandboxSnapshot) string { return s.ID }, true) {
		out = append(out, shownSnapshot(&s))
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}

func (h *Handler) allSnapshots(r *request, sandbox string) ([]api.SandboxSnapshot, error) {
	var out []api.SandboxSnapshot
	cursor := ""
	for {
		list, err := h.Control.Snapshots(r.Context(), r.who, sandbox, control.Page{Limit: api.MaxPage, Cursor: cursor})
		if err != nil {
			return nil, err
		}
		out = append(out, list.Snapshots...)
		if cursor = list.Next; cursor == "" {
			return out, nil
		}
	}
}

// sameName compares the name of a snapshot with what a client calls it: without namespace, and with the tag that stands for none.
func sameName(name, called string) bool { return name != "" && bareName(name) == bareName(called) }

// bareName is a name without its namespace and without the tag "default".
func bareName(s string) string {
	if i := strings.LastIndexByte(s, '/'); i >= 0 {
		s = s[i+1:]
	}
	return strings.TrimSuffix(s, ":default")
}

// findSnapshot finds a snapshot by its id, or the newest of a name; nil if there is none.
func (h *Handler) findSnapshot(r *request, called string) (*api.SandboxSnapshot, error) {
	if _, err := uuid.Parse(called); err == nil {
		s, err := h.Control.Snapshot(r.Context(), r.who, called)
		if errs.Is(err, errs.NotFound) {
			return nil, nil
		}
		return s, err
	}
	list, err := h.allSnapshots(r, "")
	if err != nil {
		return nil, err
	}
	var found *api.SandboxSnapshot
	for i := range list {
		if s := &list[i]; sameName(s.Name, called) && (found == nil || s.ID > found.ID) {
			found = s
		}
	}
	return found, nil
}

// wholeSnapshot asks for a snapshot with everything in it.
func wholeSnapshot(name string) api.TakeSandboxSnapshot {
	return api.TakeSandboxSnapshot{Name: name, Memory: true}
}
