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
	open         bool // for anybody, or for whom it finds out itself
}

// routes are all calls. Where two fit, the first one does.
func (h *Handler) routes() []route {
	get := func(path string, do handler) route { return route{method: http.MethodGet, path: path, do: do} }
	post := func(path string, do handler) route { return route{method: http.MethodPost, path: path, do: do} }
	put := func(path string, do handler) route { return route{method: http.MethodPut, path: path, do: do} }
	patch := func(path string, do handler) route { return route{method: http.MethodPatch, path: path, do: do} }
	del := func(path string, do handler) route { return route{method: http.MethodDelete, path: path, do: do} }
	once := func(rt route) route { rt.once = true; return rt }
	open := func(rt route) route { rt.open = true; return rt }
	return []route{
		open(get("/health", h.healthy)),
		get("/teams", h.teams),

		get("/sandboxes", h.listRunning),
		once(post("/sandboxes", h.create)),
		get("/v2/sandboxes", h.list),
		once(post("/v2/sandboxes", h.create)),
		get("/sandboxes/metrics", h.manyMetrics),
		get("/sandboxes/{id}", h.info),
		del("/sandboxes/{id}", h.kill),
		post("/sandboxes/{id}/connect", h.connect),
		post("/v2/sandboxes/{id}/connect", h.connect),
		post("/sandboxes/{id}/resume", h.resume),
		post("/sandboxes/{id}/pause", h.pause),
		post("/sandboxes/{id}/timeout", h.setTimeout),
		post("/sandboxes/{id}/refreshes", h.refresh),
		once(post("/sandboxes/{id}/fork", h.fork)),
		once(post("/sandboxes/{id}/snapshots", h.takeSnapshot)),
		put("/sandboxes/{id}/network", h.changeNetwork),
		get("/sandboxes/{id}/metrics", h.metrics),
		get("/sandboxes/{id}/logs", h.logs),
		get("/v2/sandboxes/{id}/logs", h.logs),
		get("/snapshots", h.snapshots),

		get("/templates", h.templates),
		get("/v2/templates", h.templates),
		once(post("/v3/templates", h.requestBuild)),
		get("/templates/aliases/{id}", h.alias),
		post("/templates/tags", h.assignTags),
		del("/templates/tags", h.removeTags),
		get("/templates/{id}", h.templateInfo),
		del("/templates/{id}", h.deleteTemplate),
		patch("/templates/{id}", h.updateTemplate),
		patch("/v2/templates/{id}", h.updateTemplate),
		get("/templates/{id}/tags", h.tags),
		get("/templates/{id}/files/{hash}", h.fileLink),
		open(put("/templates/{id}/files/{hash}", h.putFiles)),
		post("/v2/templates/{id}/builds/{build}", h.startBuild),
		get("/templates/{id}/builds/{build}/status", h.statusOfBuild),
		get("/templates/{id}/builds/{build}/logs", h.logsOfBuild),

		get("/volumes", h.volumes),
		once(post("/volumes", h.makeVolume)),
		get("/volumes/{id}", h.volumeInfo),
		del("/volumes/{id}", h.dropVolume),
		open(get("/volumecontent/{id}/dir", h.volumeList)),
		open(post("/volumecontent/{id}/dir", h.volumeMkdir)),
		open(get("/volumecontent/{id}/path", h.volumeStat)),
		open(patch("/volumecontent/{id}/path", h.volumeChange)),
		open(del("/volumecontent/{id}/path", h.volumeRemove)),
		open(get("/volumecontent/{id}/file", h.volumeRead)),
		open(put("/volumecontent/{id}/file", h.volumeWrite)),

		get("/secrets", h.secrets),
		once(post("/secrets", h.makeSecret)),
		get("/secrets/{id}", h.secretInfo),
		post("/secrets/{id}", h.changeSecret),
		del("/secrets/{id}", h.dropSecret),
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
	if rt.once && len(r.Header.Values("Idempotency-Key")) > 0 {
		return h.once(w, r)
	}
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
