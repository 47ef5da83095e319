package e2b

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// asked is a build that was asked for and hasn't begun: its files are being sent.
type asked struct {
	id, owner string
	name      called
	tags      []string
	resources api.Resources
	at        time.Time
}

// Bounds of builds that were asked for and haven't begun.
const (
	askedTime = 24 * time.Hour
	maxAsked  = 1000
)

// askedBuilds are all of them. A server that is started again has forgotten them, and the client asks anew.
type askedBuilds struct {
	mu   sync.Mutex
	list map[string]*asked
}

func (a *askedBuilds) add(b *asked, now time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.list == nil {
		a.list = map[string]*asked{}
	}
	for id, old := range a.list {
		if now.Sub(old.at) > askedTime {
			delete(a.list, id)
		}
	}
	if len(a.list) >= maxAsked {
		return errs.Msg(errs.Limit, "request build", b.name.text, "too many builds are waiting to begin")
	}
	a.list[b.id] = b
	return nil
}

func (a *askedBuilds) find(id string) *asked {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.list[id]
}

func (a *askedBuilds) drop(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.list, id)
}

// requestBuild answers POST /v3/templates: a template has a name and a build an id before anything is built.
func (h *Handler) requestBuild(w http.ResponseWriter, r *request) error {
	const op = "request build"
	var in struct {
		Name     string   `json:"name"`
		Alias    string   `json:"alias"`
		Tags     []string `json:"tags"`
		CPUCount int      `json:"cpuCount"`
		MemoryMB int64    `json:"memoryMB"`
	}
	if err := decode(w, r, &in); err != nil {
		return err
	}
	name, err := readName(cmp.Or(in.Name, in.Alias))
	if err != nil {
		return err
	}
	tags := bareTags(in.Tags)
	if name.tag != "" && !slices.Contains(tags, name.tag) {
		tags = append(tags, name.tag)
	}
	if err := checkTags(tags); err != nil {
		return err
	}
	if in.CPUCount < 0 || in.CPUCount > 1024 || in.MemoryMB < 0 || in.MemoryMB > 1<<20 {
		return errs.Msg(errs.Invalid, op, "cpuCount, memoryMB", "out of range")
	}
	b := &asked{id: uuid.NewString(), owner: r.who.Principal.Name, name: name, tags: tags, at: h.Now(),
		resources: api.Resources{CPU: float64(in.CPUCount), Memory: in.MemoryMB << 20}}
	if err := h.builds.add(b, b.at); err != nil {
		return err
	}
	writeJSON(w, http.StatusAccepted, map[string]any{"templateID": name.name, "buildID": b.id, "public": true, "names": []string{name.text}, "aliases": []string{name.text},
		"tags": append([]string{}, tags...)})
	return nil
}

// startBuild answers POST /v2/templates/{id}/builds/{build}.
func (h *Handler) startBuild(w http.ResponseWriter, r *request) error {
	var in recipe
	if err := decode(w, r, &in); err != nil {
		return err
	}
	b := h.builds.find(r.vars["build"])
	if b == nil || b.owner != r.who.Principal.Name || b.name.name != r.vars["id"] {
		return errs.Msg(errs.NotFound, "start build", clip(r.vars["build"]), "there is no such build that waits to begin").WithHint("POST /v3/templates asks for one")
	}
	spec, labels, err := h.translate(r, b, &in)
	if err != nil {
		return err
	}
	t, err := h.putBuild(r, b, spec, labels, in.Force)
	if err != nil {
		if errs.Is(err, errs.NotFound) { // of an image, or a bucket
			err = errs.New(errs.Invalid, "start build", b.name.text, err)
		}
		return err
	}
	h.builds.drop(b.id)
	h.Log.Info("build", "template", t.Name, "version", t.Version, "build", b.id)
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// putBuild makes a version, or finds that the newest one is the same.
func (h *Handler) putBuild(r *request, b *asked, spec *api.TemplateSpec, labels api.Labels, force bool) (*api.Template, error) {
	h.labelling.Lock()
	defer h.labelling.Unlock()
	t, changed, err := h.Control.PutTemplate(r.Context(), r.who, b.name.name, *spec, nil)
	if err == nil && !changed && (force || t.State == api.BuildFailed) {
		t, err = h.Control.Rebuild(r.Context(), r.who, t.Name)
	}
	if err != nil {
		return nil, err
	}
	for k, v := range t.Labels { // what earlier builds left
		tag, isBuild := strings.CutPrefix(k, labelBuild)
		n, _ := strconv.Atoi(tag)
		if strings.HasPrefix(k, labelTag) || isBuild && t.Version-n < keptBuilds || !strings.HasPrefix(k, reserved) {
			labels[k] = v
		}
	}
	labels[labelBuild+strconv.Itoa(t.Version)] = b.id
	for _, tag := range b.tags {
		labels[labelTag+tag] = strconv.Itoa(t.Version)
	}
	version := t.Version
	if t, _, err = h.Control.PutTemplate(r.Context(), r.who, t.Name, t.Spec, labels); err != nil {
		return nil, err
	}
	if t.Version != version {
		return nil, errs.Msg(errs.Conflict, "start build", t.Name, "another build of the template began meanwhile")
	}
	return t, nil
}

// findBuild finds the version that a build made; 0 is one that hasn't begun.
func (h *Handler) findBuild(r *request) (*api.Template, error) {
	id := r.vars["build"]
	if b := h.builds.find(id); b != nil && b.owner == r.who.Principal.Name && b.name.name == r.vars["id"] {
		return nil, nil
	}
	t, _, err := h.template(r)
	if err != nil {
		return nil, err
	}
	for n := t.Version; n > 0; n-- {
		if buildID(t, n) == id {
			return h.Control.Template(r.Context(), r.who, t.Name, n)
		}
	}
	return nil, errs.Msg(errs.NotFound, "find build", clip(id), "the template has no such build")
}

// logEntry is a line of a log.
type logEntry struct {
	Timestamp time.Time `json:"timestamp"`
	Level     string    `json:"level"`
	Message   string    `json:"message"`
	Step      string    `json:"step,omitempty"`
}

const maxLog = 1000 // entries in one answer

// buildLog reads a part of a build's log.
func (h *Handler) buildLog(ctx context.Context, r *request, t *api.Template, offset, limit int) ([]logEntry, error) {
	out := []logEntry{}
	n := 0
	err := h.Control.BuildLog(ctx, r.who, t.Name, t.Version, false, func(l api.BuildLine) error {
		if n++; n <= offset {
			return nil
		}
		if len(out) == limit {
			return io.EOF
		}
		out = append(out, logEntry{Timestamp: l.Time.UTC(), Level: "info", Message: l.Text})
		return nil
	})
	if err == io.EOF {
		err = nil
	}
	return out, err
}

// statusOfBuild answers GET …/builds/{build}/status.
func (h *Handler) statusOfBuild(w http.ResponseWriter, r *request) error {
	q := r.URL.Query()
	offset, err := number(q, "logsOffset", 0, 1<<30)
	if err != nil {
		return err
	}
	limit, err := number(q, "limit", 100, maxLog)
	if err != nil {
		return err
	}
	t, err := h.findBuild(r)
	if err != nil {
		return err
	}
	out := map[string]any{"templateID": r.vars["id"], "buildID": r.vars["build"], "status": "waiting", "logs": []string{}, "logEntries": []logEntry{}}
	if t != nil {
		entries, err := h.buildLog(r.Context(), r, t, offset, limit)
		if err != nil {
			return err
		}
		logs := make([]string, len(entries))
		for i := range entries {
			logs[i] = entries[i].Message
		}
		out["status"], out["logs"], out["logEntries"] = buildStatus(t), logs, entries
		if t.State == api.BuildFailed {
			out["reason"] = map[string]any{"message": t.Error, "step": failedStep(t), "logEntries": []logEntry{}}
		}
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}

// failedStep is the step of a recipe whose line failed; "base" where no line did.
func failedStep(t *api.Template) string {
	_, rest, ok := strings.Cut(t.Error, "init line ")
	digits, _, _ := strings.Cut(rest, ":")
	n, err := strconv.Atoi(strings.TrimSpace(digits))
	if !ok || err != nil || n < 1 || n > len(t.Spec.Init) {
		return "base"
	}
	for ; n > 0; n-- {
		if _, step, ok := strings.Cut(t.Spec.Init[n-1], stepMark); ok {
			step, _, _ = strings.Cut(step, "\n")
			return step
		}
	}
	return "base"
}

func (h *Handler) logsOfBuild(w http.ResponseWriter, r *request) error {
	limit, err := number(r.URL.Query(), "limit", 100, maxLog)
	if err != nil {
		return err
	}
	t, err := h.findBuild(r)
	if err != nil {
		return err
	}
	entries := []logEntry{}
	if t != nil {
		if entries, err = h.buildLog(r.Context(), r, t, 0, limit); err != nil {
			return err
		}
	}
	if r.URL.Query().Get("direction") == "backward" {
		slices.Reverse(entries)
	}
	writeJSON(w, http.StatusOK, map[string]any{"logs": entries})
	return nil
}

// number reads a number of a query.
func number(q url.Values, name string, otherwise, most int) (int, error) {
	text := q.Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		return 0, errs.Msg(errs.Invalid, "read request", name, fmt.Sprintf("want 0 to %d", most))
	}
	return n, nil
}

func sortBy[T any](list []T, key func(T) string) {
	slices.SortFunc(list, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
}
