package proxy

import (
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Target is what a request is for.
type Target struct {
	Sandbox string // id or name
	Port    int    // 1–65535
	Prefix  string // of the path, as it is escaped, that the server inside doesn't see; empty in the host form
	bare    bool   // nothing follows the prefix, not even a slash
}

// root is where the path form begins.
const root = "/v1/sandboxes/"

// Find returns the target that a request names, by its host where host isn't empty, else by its path.
func Find(r *http.Request, host string) (Target, bool) {
	if host != "" {
		name := r.Host
		if h, _, err := net.SplitHostPort(name); err == nil {
			name = h
		}
		name = strings.TrimSuffix(strings.ToLower(name), ".")
		if label, ok := strings.CutSuffix(name, "."+strings.ToLower(host)); ok {
			port, sandbox, _ := strings.Cut(label, "-")
			return target(sandbox, port, Target{})
		}
	}
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), root)
	if !ok {
		return Target{}, false
	}
	sandbox, rest, _ := strings.Cut(rest, "/")
	rest, ok = strings.CutPrefix(rest, "ports/")
	if !ok {
		return Target{}, false
	}
	port, _, more := strings.Cut(rest, "/")
	return target(sandbox, port, Target{Prefix: root + sandbox + "/ports/" + port, bare: !more})
}

// target fills in t. Ids and names are lower-case letters, digits and '-': what is escaped is none.
func target(sandbox, port string, t Target) (Target, bool) {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || port[0] == '0' || sandbox == "" || len(sandbox) > 63 {
		return Target{}, false
	}
	for _, c := range []byte(sandbox) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return Target{}, false
		}
	}
	t.Sandbox, t.Port = sandbox, int(n)
	return t, true
}

// inside returns a URL as the server inside sees it.
func (t Target) inside(u *url.URL) *url.URL {
	in := *u
	in.Scheme, in.Host, in.User, in.Fragment = "http", net.JoinHostPort("localhost", strconv.Itoa(t.Port)), nil, ""
	raw := strings.TrimPrefix(u.EscapedPath(), t.Prefix)
	if !strings.HasPrefix(raw, "/") {
		raw = "/" + raw
	}
	path, err := url.PathUnescape(raw)
	if err != nil { // EscapedPath returns nothing of the kind
		path = raw
	}
	in.Path, in.RawPath, in.Opaque = path, raw, ""
	return &in
}

// outside returns where a Location of the server's leads from outside.
func (t Target) outside(location string) string {
	if t.Prefix == "" {
		return location
	}
	u, err := url.Parse(location)
	if err != nil || u.Opaque != "" {
		return location
	}
	if u.Host != "" {
		local := u.Hostname() == "localhost" || u.Hostname() == "127.0.0.1" || u.Hostname() == "::1" || u.Hostname() == "0.0.0.0"
		if !local || u.Scheme == "https" || u.Port() != strconv.Itoa(t.Port) {
			return location
		}
		u.Scheme, u.Host, u.User = "", "", nil
	} else if !strings.HasPrefix(u.Path, "/") {
		return location
	}
	out := t.Prefix + "/" + strings.TrimPrefix(u.EscapedPath(), "/")
	if u.RawQuery != "" || u.ForceQuery {
		out += "?" + u.RawQuery
	}
	if u.Fragment != "" {
		out += "#" + u.EscapedFragment()
	}
	return out
}
