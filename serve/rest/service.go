package rest

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/control"
	"agentrun.dev/errs"
)

// Handlers of the sandbox service that are more than a call; see tableOf for the others.

func (s *server) template(_ http.ResponseWriter, r *request) (any, error) {
	return s.Control.Template(r.Context(), r.caller, r.name(), int(r.number("version")))
}

// putTemplate takes a spec. 201 says that it made a version.
func (s *server) putTemplate(w http.ResponseWriter, r *request) error {
	var in api.TemplateSpec
	if err := decode(w, r, &in); err != nil {
		return err
	}
	t, changed, err := s.Control.PutTemplate(r.Context(), r.caller, r.name(), in, nil)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if changed {
		status = http.StatusCreated
		w.Header().Set("Location", location(t)+"?version="+strconv.Itoa(t.Version))
	}
	return answer(w, r, status, t)
}

func (s *server) templateVersions(_ http.ResponseWriter, r *request) (any, error) {
	return s.Control.TemplateVersions(r.Context(), r.caller, r.name(), r.page())
}

// buildLog streams a build's log. The id of an event is its line's number, from 1.
func (s *server) buildLog(w http.ResponseWriter, r *request) error {
	seen, _, err := lastEvent(r)
	if err != nil {
		return err
	}
	f := newFeed(s, w, r)
	n := uint64(0)
	return f.end(s.Control.BuildLog(r.Context(), r.caller, r.name(), int(r.number("version")), r.flag("follow"), func(l api.BuildLine) error {
		if n++; n <= seen {
			return nil
		}
		return f.send(strconv.FormatUint(n, 10), "line", &l)
	}))
}

func (s *server) sandboxes(_ http.ResponseWriter, r *request) (any, error) {
	f := control.Filter{Page: r.page(), State: r.text("state"), Owner: r.text("owner"), Template: r.text("template"), Pool: r.text("pool"),
		Root: r.text("root"), Parent: r.text("parent"), Name: r.text("name"), Conversation: r.text("conversation")}
	for _, l := range r.q["label"] {
		k, v, ok := strings.Cut(l, "=")
		if !ok || k == "" {
			return nil, errs.Msg(errs.Invalid, "read request", "label", "want NAME=VALUE")
		}
		if f.Labels == nil {
			f.Labels = api.Labels{}
		}
		f.Labels[k] = v
	}
	return s.Control.Sandboxes(r.Context(), r.caller, f)
}

func (s *server) tree(_ http.ResponseWriter, r *request) (any, error) {
	return s.Control.Tree(r.Context(), r.caller, r.name(), r.flag("root"))
}

// sandboxDiff streams what changed from one sandbox to another.
func (s *server) sandboxDiff(w http.ResponseWriter, r *request) error {
	st := newStream[api.FileChange, api.FileDiff](s, w, r, true)
	res, err := s.Control.Diff(r.Context(), r.caller, r.name(), r.text("to"), r.q["path"], func(c api.FileChange) error { return st.item(&c) })
	return st.end(res, err, nil)
}

// mergeSandbox tells of conflicts in the problem, too.
func (s *server) mergeSandbox(w http.ResponseWriter, r *request) error {
	var in api.MergeSandbox
	if err := decode(w, r, &in); err != nil {
		return err
	}
	res, err := s.Control.Merge(r.Context(), r.caller, r.name(), in)
	if err != nil {
		p := s.problem(r, err, nil)
		p.Files = res
		s.sendProblem(w, p)
		return nil
	}
	return answer(w, r, http.StatusOK, res)
}

func (s *server) drain(drain bool) endpoint {
	return acted(func(ctx context.Context, who *access.Caller, name string) (*api.Node, error) {
		return s.Control.DrainNode(ctx, who, name, drain)
	})
}

func (s *server) snapshots(_ http.ResponseWriter, r *request) (any, error) {
	return s.Control.Snapshots(r.Context(), r.caller, r.text("sandbox"), r.page())
}

func (s *server) sandboxSnapshots(_ http.ResponseWriter, r *request) (any, error) {
	return s.Control.Snapshots(r.Context(), r.caller, r.name(), r.page())
}

func (s *server) putAgent(ctx context.Context, who *access.Caller, name string, a api.Agent) (*api.Agent, error) {
	if a.Name != "" && a.Name != name {
		return nil, errs.Msg(errs.Invalid, "put agent", name, "the body has another name")
	}
	a.Name = name
	return s.Control.PutAgent(ctx, who, a)
}

// events answers with a page of what happened, or with a stream that goes on.
func (s *server) events(w http.ResponseWriter, r *request) error {
	after, limit := r.number("after"), int(r.number("limit"))
	if limit == 0 {
		limit = api.DefaultPage
	}
	if n, ok, err := lastEvent(r); err != nil {
		return err
	} else if ok {
		after = n
	}
	filter := control.EventFilter{Sandbox: r.text("sandbox"), Kind: r.text("kind"), Limit: limit}
	if !accepts(r, api.EventStream, api.NDJSON) && !r.flag("follow") {
		page, err := s.Control.Events(r.Context(), r.caller, after, filter)
		if err != nil {
			return err
		}
		return answer(w, r, http.StatusOK, page)
	}
	filter.Limit = int(r.number("limit")) // 0: it goes on
	f := newFeed(s, w, r)
	if !f.sse && !r.flag("follow") {
		filter.Limit = limit
		page, err := s.Control.Events(r.Context(), r.caller, after, filter)
		for i := 0; err == nil && i < len(page.Events); i++ {
			err = f.send("", "", &page.Events[i])
		}
		return f.end(err)
	}
	// The header is sent at once: nothing may have happened yet. What can be refused was, if a page can be had.
	probe := filter
	probe.Limit = 1
	if _, err := s.Control.Events(r.Context(), r.caller, after, probe); err != nil {
		return f.end(err)
	}
	if err := f.begin(); err != nil {
		return f.end(nil)
	}
	sent := 0
	err := s.Control.Follow(r.Context(), r.caller, after, filter, func(e api.Event) error {
		if err := f.send(strconv.FormatUint(e.Seq, 10), e.Kind, &e); err != nil {
			return err
		}
		if sent++; sent == filter.Limit {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return f.end(err)
}

// errEnough ends a stream that has all that was asked for.
var errEnough = errors.New("enough")

func (s *server) sandboxMetrics(_ http.ResponseWriter, r *request) (any, error) {
	from, err := r.moment("from")
	if err != nil {
		return nil, err
	}
	to, err := r.moment("to")
	if err != nil {
		return nil, err
	}
	return s.Control.SandboxMetrics(r.Context(), r.caller, r.name(), from, to)
}

// moment is a parameter that is a time; without it, the zero one.
func (r *request) moment(name string) (at time.Time, err error) {
	if text := r.text(name); text != "" {
		if at, err = time.Parse(time.RFC3339, text); err != nil {
			return at, errs.Msg(errs.Invalid, "read parameter", name, "want a time like 2026-11-21T10:00:00Z")
		}
	}
	return at, nil
}
