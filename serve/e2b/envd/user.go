package envd

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"strings"
	"unicode/utf8"

	"connectrpc.com/connect"

	"agentrun.dev/access"
	"agentrun.dev/control"
	"agentrun.dev/errs"
	"agentrun.dev/node"
)

// maxPath bounds a path, in bytes.
const maxPath = 4096

// user is whom a request acts for in the sandbox.
type user struct {
	name, home string
	dir        string // where relative paths begin
}

func (u user) root() bool { return u.name == "root" }

// who is the user for node.Files.
func (u user) who() string {
	if u.root() {
		return node.AsRoot
	}
	return node.ForUser
}

// userOf finds a user by name; "" is the sandbox's default.
func (h *Handler) userOf(s *control.Session, name string) (user, error) {
	var dir string
	if h.o.Defaults != nil {
		var otherwise string
		if otherwise, dir = h.o.Defaults(s); name == "" {
			name = otherwise
		}
	}
	u := user{name: name}
	switch name {
	case "", "user":
		u.name, u.home = "user", "/home/user"
	case "root":
		u.home = "/root"
	default:
		return user{}, problemOf(http.StatusUnauthorized, connect.CodeUnauthenticated, fmt.Sprintf("invalid username: '%s'", clip(name)))
	}
	if u.dir = u.home; dir != "" && path.IsAbs(dir) {
		u.dir = path.Clean(dir)
	}
	return u, nil
}

// path makes a path that a client sent absolute.
func (u user) path(p string) (string, error) {
	switch {
	case strings.IndexByte(p, 0) >= 0 || !utf8.ValidString(p):
		return "", invalid("a path is UTF-8, without NUL bytes")
	case len(p) > maxPath:
		return "", invalid(fmt.Sprintf("a path has at most %d bytes", maxPath))
	case p == "":
		return u.dir, nil
	case p == "~", strings.HasPrefix(p, "~/"):
		p = u.home + p[1:]
	case p[0] == '~':
		return "", invalid(fmt.Sprintf("failed to expand path '%s': cannot expand user-specific home dir", clip(p)))
	case p[0] != '/':
		// As E2B has it: a default directory stands for no path at all, a relative one is of the home.
		p = u.home + "/" + p
	}
	if p = path.Clean(p); len(p) > maxPath {
		return "", invalid(fmt.Sprintf("a path has at most %d bytes", maxPath))
	}
	return p, nil
}

// work is a use of a sandbox by a user.
type work struct {
	*control.Session
	user
}

// begin begins the use of the sandbox that a call is for.
func (h *Handler) begin(ctx context.Context, header http.Header, verb access.Verb) (*work, error) {
	r, ok := ctx.Value(requestKey{}).(*http.Request)
	if !ok {
		return nil, errs.Msg(errs.Other, "begin", "", "a call without a request")
	}
	name, _, _ := basic(header)
	return h.use(r, name, verb)
}

// basic is the user of an Authorization header.
func basic(header http.Header) (name, password string, ok bool) {
	return (&http.Request{Header: header}).BasicAuth()
}

// use begins a use in the name of somebody.
func (h *Handler) use(r *http.Request, name string, verb access.Verb) (*work, error) {
	s, err := h.o.Use(r, verb)
	if err != nil {
		return nil, ofUse(err)
	}
	u, err := h.userOf(s, name)
	if err != nil {
		s.Close()
		return nil, err
	}
	return &work{s, u}, nil
}

// files are the sandbox's, for the user.
func (w *work) files(ctx context.Context) (node.Files, error) {
	f, err := w.Files(ctx)
	if err != nil {
		return nil, ofUse(err)
	}
	return f.As(w.who()), nil
}
