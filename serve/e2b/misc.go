package e2b

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/control"
	"agentrun.dev/errs"
)

// metric is what a sandbox used at a moment. Sizes are bytes.
type metric struct {
	Timestamp     time.Time `json:"timestamp"`
	TimestampUnix int64     `json:"timestampUnix"`
	CPUCount      int       `json:"cpuCount"`
	CPUUsedPct    float64   `json:"cpuUsedPct"`
	MemUsed       int64     `json:"memUsed"`
	MemTotal      int64     `json:"memTotal"`
	MemCache      int64     `json:"memCache"`
	DiskUsed      int64     `json:"diskUsed"`
	DiskTotal     int64     `json:"diskTotal"`
}

// moments reads start and end of a query, in Unix seconds.
func moments(r *request) (start, end time.Time, err error) {
	q := r.URL.Query()
	for _, p := range []struct {
		name string
		at   *time.Time
	}{{"start", &start}, {"end", &end}} {
		text := q.Get(p.name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseFloat(text, 64)
		if n > 1<<36 {
			n /= 1000 // an old SDK gives milliseconds
		}
		if err != nil || n < 0 || n > 1<<36 || math.IsNaN(n) {
			return start, end, errs.Msg(errs.Invalid, "read request", p.name, "want Unix seconds")
		}
		*p.at = time.Unix(int64(n), 0)
	}
	if !start.IsZero() && !end.IsZero() && end.Before(start) {
		return start, end, errs.Msg(errs.Invalid, "read request", "end", "it is before start")
	}
	return start, end, nil
}

// metrics answers GET /sandboxes/{id}/metrics.
func (h *Handler) metrics(w http.ResponseWriter, r *request) error {
	start, end, err := moments(r)
	if err != nil {
		return err
	}
	sb, err := h.live(r)
	if err != nil {
		return err
	}
	if !end.IsZero() {
		end = end.Add(time.Second - 1) // which the client cut off
	}
	list, err := h.measured(r, sb, (&sizes{h: h, r: r}).of(sb), start, end)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}

// manyMetrics answers GET /sandboxes/metrics?sandbox_ids=a,b: the last of each that the caller sees.
func (h *Handler) manyMetrics(w http.ResponseWriter, r *request) error {
	ids := strings.Split(strings.Join(r.URL.Query()["sandbox_ids"], ","), ",")
	if len(ids) > 100 {
		return errs.Msg(errs.Limit, "read request", "sandbox_ids", "more than 100")
	}
	out := map[string]metric{}
	s := &sizes{h: h, r: r}
	for _, id := range ids {
		if id == "" {
			continue
		}
		sb, err := h.Control.Sandbox(r.Context(), r.who, id)
		if errs.Is(err, errs.NotFound) || err == nil && sb.State == api.StateEnded {
			continue
		}
		if err != nil {
			return err
		}
		list, err := h.measured(r, sb, s.of(sb), time.Time{}, time.Time{})
		if err != nil {
			return err
		}
		if len(list) > 0 {
			out[sb.ID] = list[len(list)-1]
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"sandboxes": out})
	return nil
}

// logs answers GET /sandboxes/{id}/logs, of both versions: what happened to the sandbox. What its commands write isn't kept.
func (h *Handler) logs(w http.ResponseWriter, r *request) error {
	limit, err := number(r.URL.Query(), "limit", maxLog, maxLog)
	if err != nil {
		return err
	}
	from, err := number(r.URL.Query(), "start", 0, math.MaxInt)
	if err != nil {
		return err
	}
	sb, err := h.live(r)
	if err != nil {
		return err
	}
	type entry struct {
		logEntry
		Fields map[string]string `json:"fields"`
	}
	type line struct {
		Timestamp time.Time `json:"timestamp"`
		Line      string    `json:"line"`
	}
	entries, lines := []entry{}, []line{}
	for after := uint64(0); len(entries) < limit; {
		list, err := h.Control.Events(r.Context(), r.who, after, control.EventFilter{Sandbox: sb.ID, Limit: api.MaxPage})
		if err != nil {
			return err
		}
		for _, e := range list.Events {
			if len(entries) < limit && e.Time.UnixMilli() >= int64(from) {
				text := e.Kind
				if e.Text != "" {
					text += ": " + trimmed(e.Text)
				}
				fields := map[string]string{"event": e.Kind}
				for k, v := range e.Data {
					fields[k] = v
				}
				entries = append(entries, entry{logEntry{Timestamp: e.Time.UTC(), Level: level(e.Kind), Message: text}, fields})
				lines = append(lines, line{e.Time.UTC(), text})
			}
		}
		if list.Next == after || len(list.Events) == 0 {
			break
		}
		after = list.Next
	}
	if strings.HasPrefix(r.route.path, "/v2/") {
		if r.URL.Query().Get("direction") == "backward" {
			slices.Reverse(entries)
		}
		writeJSON(w, http.StatusOK, map[string]any{"logs": entries})
		return nil
	}
	writeJSON(w, http.StatusOK, map[string]any{"logs": lines, "logEntries": entries})
	return nil
}

// teams answers GET /teams: a principal is a team of its own.
func (h *Handler) teams(w http.ResponseWriter, r *request) error {
	name := r.who.Principal.Name
	writeJSON(w, http.StatusOK, []map[string]any{{"teamID": name, "name": name, "isDefault": true, "apiKey": ""}})
	return nil
}

// health answers GET /health of the control plane.
func (h *Handler) healthy(w http.ResponseWriter, _ *request) error {
	writeJSON(w, http.StatusOK, map[string]string{"message": "Health check successful"})
	return nil
}
