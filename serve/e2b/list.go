package e2b

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"agentrun.dev/api"
	"agentrun.dev/control"
	"agentrun.dev/errs"
)

// Bounds of a page, and of the values in a query.
const (
	defaultPage = 100
	maxPage     = 1000
)

// page is a part of a list that a client asks for.
type page struct {
	limit int
	after string // place in the list; "" is its begin
}

// readPage reads limit and nextToken. A token is a place in the list, which stays where it is when things before it go.
func readPage(q url.Values) (page, error) {
	p := page{limit: defaultPage}
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxPage {
			return p, errs.Msg(errs.Invalid, "read request", "limit", fmt.Sprintf("want 1 to %d", maxPage))
		}
		p.limit = n
	}
	if token := q.Get("nextToken"); token != "" {
		b, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil || len(b) < 2 || len(b) > maxVar || b[0] != '1' || !utf8.Valid(b) {
			return p, errs.Msg(errs.Invalid, "read request", "nextToken", "not one of this list's")
		}
		p.after = string(b[1:])
	}
	return p, nil
}

// cut returns the page of a list that is in order, and tells the client where the next one begins. place is that of a thing.
func cut[T any](w http.ResponseWriter, p page, list []T, place func(*T) string, descending bool) []T {
	begin := 0
	if p.after != "" {
		begin = len(list)
		for i := range list {
			if at := place(&list[i]); !descending && at > p.after || descending && at < p.after {
				begin = i
				break
			}
		}
	}
	list = list[begin:]
	if len(list) > p.limit {
		list = list[:p.limit]
		w.Header().Set("X-Next-Token", base64.RawURLEncoding.EncodeToString([]byte("1"+place(&list[p.limit-1]))))
	}
	return list
}

// filter selects sandboxes of a list.
type filter struct {
	states   []string
	metadata map[string]string
	template string
	after    time.Time
}

// readFilter reads a query. Arrays come as "a,b" or as "a" and "b" apart.
func readFilter(q url.Values) (*filter, error) {
	f := &filter{states: []string{running, paused}, template: q.Get("template")}
	if states := q["state"]; len(states) > 0 {
		f.states = strings.Split(strings.Join(states, ","), ",")
		for _, s := range f.states {
			if s != running && s != paused {
				return nil, errs.Msg(errs.Invalid, "read request", "state", "want running or paused")
			}
		}
	}
	if text := q.Get("metadata"); text != "" {
		pairs, err := url.ParseQuery(text)
		if err != nil {
			return nil, errs.Msg(errs.Invalid, "read request", "metadata", "want key=value pairs with & between, each URL-encoded")
		}
		f.metadata = map[string]string{}
		for k, v := range pairs { // the SDKs encode each part by itself, and then the whole
			key, kerr := url.QueryUnescape(k)
			value, verr := url.QueryUnescape(v[0])
			if kerr != nil || verr != nil {
				key, value = k, v[0]
			}
			f.metadata[key] = value
		}
	}
	if text := q.Get("startedAfter"); text != "" {
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return nil, errs.Msg(errs.Invalid, "read request", "startedAfter", "want a time as RFC 3339 has it")
		}
		f.after = at
	}
	return f, nil
}

func (f *filter) fits(sb *api.Sandbox) bool {
	if !slices.Contains(f.states, stateOf(sb)) || f.template != "" && f.template != sb.Template || !f.after.IsZero() && !sb.Started.After(f.after) {
		return false
	}
	if len(f.metadata) > 0 {
		m := metadataOf(sb)
		for k, v := range f.metadata {
			if got, ok := m[k]; !ok || got != v {
				return false
			}
		}
	}
	return true
}

// sandboxes returns all that the caller sees and a filter selects, newest first.
func (h *Handler) sandboxes(r *request, f *filter) ([]api.Sandbox, error) {
	var out []api.Sandbox
	cursor := ""
	for {
		list, err := h.Control.Sandboxes(r.Context(), r.who, control.Filter{Page: control.Page{Limit: api.MaxPage, Cursor: cursor}})
		if err != nil {
			return nil, err
		}
		for i := range list.Sandboxes {
			if sb := &list.Sandboxes[i]; sb.State != api.StateEnding && f.fits(sb) {
				out = append(out, *sb)
			}
		}
		if cursor = list.Next; cursor == "" {
			return out, nil
		}
	}
}

// list answers GET /v2/sandboxes.
func (h *Handler) list(w http.ResponseWriter, r *request) error {
	q := r.URL.Query()
	p, err := readPage(q)
	if err != nil {
		return err
	}
	f, err := readFilter(q)
	if err != nil {
		return err
	}
	all, err := h.sandboxes(r, f)
	if err != nil {
		return err
	}
	up := 0
	for i := range all {
		if stateOf(&all[i]) == running {
			up++
		}
	}
	descending := true
	switch q.Get("order") {
	case "", "desc":
	case "asc":
		descending = false
		slices.SortFunc(all, func(a, b api.Sandbox) int { return cmp.Compare(a.ID, b.ID) })
	default:
		return errs.Msg(errs.Invalid, "read request", "order", "want asc or desc")
	}
	if slices.Contains(f.states, running) {
		w.Header().Set("X-Total-Running", strconv.Itoa(up))
	}
	return h.answerList(w, r, cut(w, p, all, func(sb *api.Sandbox) string { return sb.ID }, descending))
}

// listRunning answers GET /sandboxes, which has no pages and no paused ones.
func (h *Handler) listRunning(w http.ResponseWriter, r *request) error {
	f, err := readFilter(r.URL.Query())
	if err != nil {
		return err
	}
	f.states = []string{running}
	all, err := h.sandboxes(r, f)
	if err != nil {
		return err
	}
	return h.answerList(w, r, all)
}

func (h *Handler) answerList(w http.ResponseWriter, r *request, list []api.Sandbox) error {
	out := make([]listed, 0, len(list))
	s := &sizes{h: h, r: r}
	for i := range list {
		out = append(out, h.listed(&list[i], s.of(&list[i])))
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}
