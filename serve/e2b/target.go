package e2b

import (
	"net/http"
	"strconv"
	"strings"

	"agentrun.dev/errs"
)

// kind is what a request is for.
type kind uint8

const (
	elsewhere kind = iota // it isn't E2B's
	plane                 // the control plane
	within                // the inside of a sandbox
)

// target says what a request is for.
type target struct {
	kind
	sandbox string // id or name; "" where only the request's credentials tell
	port    int    // logical
	byHost  bool   // the host name says so: what isn't ours to answer may be somebody else's
}

// Headers by which the SDKs say which sandbox and which of its ports they mean, and who they are.
const (
	sandboxHeader = "E2b-Sandbox-Id"
	portHeader    = "E2b-Sandbox-Port"
	keyHeader     = "X-Api-Key"
	tokenHeader   = "X-Access-Token"
	trafficHeader = "E2b-Traffic-Access-Token"
)

// find says what a request is for. What names a sandbox or a port in a way that none can have is an error.
func (h *Handler) find(r *http.Request) (target, error) {
	if id := r.Header.Get(sandboxHeader); id != "" {
		t, err := insideOf(id, r.Header.Get(portHeader))
		if err == nil && t.port == envdPort && r.Header.Get(keyHeader) != "" && isPlane(r.URL.EscapedPath()) {
			t = target{kind: plane} // an old SDK says which sandbox it is about here, too
		}
		return t, err
	}
	if t, ok, err := h.byHost(r.Host); ok || err != nil {
		return t, err
	}
	path := r.URL.EscapedPath()
	switch {
	case begins(path, "/v1"):
		return target{}, nil // AgentRun's own
	case begins(path, "/process.Process"), begins(path, "/filesystem.Filesystem"), begins(path, "/files"), begins(path, "/envs"):
		return target{kind: within, port: envdPort}, nil
	case begins(path, "/execute"), begins(path, "/contexts"):
		return target{kind: within, port: interpreterPort}, nil
	}
	if isPlane(path) {
		return target{kind: plane}, nil
	}
	if strings.HasPrefix(r.UserAgent(), "e2b-") || r.Header.Get(keyHeader) != "" && isVersion(path) {
		return target{kind: plane}, nil // a call that isn't known, by a client of E2B
	}
	return target{}, nil
}

// isPlane reports whether a path is one of the control plane's.
func isPlane(path string) bool {
	for _, root := range []string{"/sandboxes", "/templates", "/snapshots", "/volumes", "/volumecontent", "/secrets", "/teams", "/nodes", "/v2", "/v3"} {
		if begins(path, root) {
			return true
		}
	}
	return false
}

// isVersion reports whether a path begins with the number of a version: "/v9/…".
func isVersion(path string) bool {
	rest, ok := strings.CutPrefix(path, "/v")
	n, _, more := strings.Cut(rest, "/")
	return ok && more && n != "" && len(n) < 4 && strings.Trim(n, "0123456789") == ""
}

// begins reports whether a path is root, or beneath it.
func begins(path, root string) bool {
	rest, ok := strings.CutPrefix(path, root)
	return ok && (rest == "" || rest[0] == '/')
}

// byHost reads api.DOMAIN and {port}-{id}.DOMAIN. Other names beneath the domain aren't E2B's.
func (h *Handler) byHost(host string) (t target, ok bool, err error) {
	if h.host == "" {
		return target{}, false, nil
	}
	label, ok := strings.CutSuffix(hostname(host), "."+h.host)
	if !ok {
		return target{}, false, nil
	}
	if label == "api" {
		return target{kind: plane}, true, nil
	}
	port, id, ok := strings.Cut(label, "-")
	if !ok || port == "" || port[0] < '0' || port[0] > '9' {
		return target{}, false, nil
	}
	t, err = insideOf(id, port)
	t.byHost = true
	return t, true, err
}

// insideOf is the target that a sandbox and a port name; no port is envd's.
func insideOf(id, port string) (target, error) {
	t := target{kind: within, sandbox: id, port: envdPort}
	if !validName(id) {
		return target{}, errs.Msg(errs.Invalid, "find sandbox", clip(id), "that is no sandbox's id")
	}
	if port == "" {
		return t, nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || port[0] == '0' || port[0] == '+' {
		return target{}, errs.Msg(errs.Invalid, "find port", clip(port), "want 1 to 65535")
	}
	t.port = int(n)
	return t, nil
}

// validName holds ids and names of sandboxes to DNS labels, which they are.
func validName(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return s != "" && len(s) <= 63
}
