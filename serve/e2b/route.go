package e2b

import (
	"net/http"
	"net/url"
	"strings"

	"agentrun.dev/errs"
)

// route is a call of the control plane.
type route struct {
	method, path string // segments in braces are variables
	do           handler
	once         bool // it takes an Idempotency-Key
	secret       bool // its answer has a secret in it
	open         bool // for anybody, or for whom it finds out itself
}

// routes are all calls. Where two fit, the first one does.
func (h *Handler) routes() []route {
	get := func(path string, do handler) route { return route{method: http.MethodGet, path: path, do: do} }
	post := func(path string, do handler) route { return route{method: http.MethodPost, path: path, do: do} }
	del := func(path string, do handler) route { return route{method: http.MethodDelete, path: path, do: do} }
	_ = post
	return []route{
		{method: http.MethodPost, path: "/sandboxes", do: h.create, once: true, secret: true},
		{method: http.MethodPost, path: "/v2/sandboxes", do: h.create, once: true, secret: true},
		get("/sandboxes/{id}", h.info),
		del("/sandboxes/{id}", h.kill),
	}
}

// serveControl answers a request of the control plane.
func (h *Handler) serveControl(w http.ResponseWriter, r *request) error {
	rt, vars, methods, err := match(h.table, r.Method, r.URL.EscapedPath())
	if err != nil {
		return err
	}
	if rt == nil || !rt.open { // who isn't let in isn't told what there is
		if err := h.authenticate(r); err != nil {
			return err
		}
	}
	if rt == nil {
		call := clip(r.Method + " " + r.URL.Path)
		if len(methods) > 0 {
			w.Header().Set("Allow", strings.Join(methods, ", "))
			writeJSON(w, http.StatusMethodNotAllowed, apiError{Code: http.StatusMethodNotAllowed, Message: "unknown call: " + call +
				": this path takes " + strings.Join(methods, ", ") + "; " + served})
			return nil
		}
		return errs.Msg(errs.NotFound, "unknown call", call, served)
	}
	r.route, r.vars = rt, vars
	return rt.do(w, r)
}

// match finds the route of a path; methods are those that the path has, where it hasn't this one.
func match(table []route, method, path string) (rt *route, vars map[string]string, methods []string, err error) {
	if path != "/" {
		path = strings.TrimSuffix(path, "/")
	}
	for i := range table {
		v, ok, err := table[i].fits(path)
		switch {
		case err != nil:
			return nil, nil, nil, err
		case ok && table[i].method == method:
			return &table[i], v, nil, nil
		case ok:
			methods = append(methods, table[i].method)
		}
	}
	return nil, nil, methods, nil
}

// fits compares a path, as it is escaped, with the route's.
func (rt *route) fits(path string) (vars map[string]string, ok bool, err error) {
	pattern := rt.path
	for {
		var want, got string
		var more, left bool
		want, pattern, more = strings.Cut(pattern, "/")
		got, path, left = strings.Cut(path, "/")
		if name, isVar := strings.CutPrefix(want, "{"); isVar {
			value, err := url.PathUnescape(got)
			if err != nil || value == "" {
				return nil, false, nil
			}
			if len(value) > maxVar {
				return nil, false, errs.Msg(errs.Invalid, "read request", clip(value), "too long")
			}
			if vars == nil {
				vars = map[string]string{}
			}
			vars[strings.TrimSuffix(name, "}")] = value
		} else if want != got {
			return nil, false, nil
		}
		if more != left {
			return nil, false, nil
		}
		if !more {
			return vars, true, nil
		}
	}
}

// maxVar bounds a variable of a path, in bytes.
const maxVar = 512
