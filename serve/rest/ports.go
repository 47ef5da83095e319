package rest

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"agentrun.dev/access"
	"agentrun.dev/errs"
)

// Ports makes a handler of requests to servers in sandboxes: package serve/proxy's. dial is called with a request that it was
// given; what it returns is closed with the request.
type Ports func(dial func(r *http.Request, sandbox string, port int) (net.Conn, error)) http.Handler

// What is the API's own in requests to servers in sandboxes, and mustn't reach them.
const (
	TokenCookie    = "agentrun-token"
	TokenParameter = "token"
)

// ports answers requests to servers in sandboxes, by path (/v1/sandboxes/{id}/ports/{port}/…) and by host ({port}-{id}.HOST), and
// leaves others to next. They come before the mux, which would tidy their paths.
//
// A browser can't send a key in a header when somebody opens a page. It may be given once as the parameter token, which becomes a
// cookie of that server alone: of its host, or in the path form of its path.
func (s *server) ports(next http.Handler) http.Handler {
	if s.Ports == nil {
		return next
	}
	proxy := s.Ports(s.dialPort)
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		at, byHost := s.portPath(hr)
		if at == "" {
			next.ServeHTTP(w, hr)
			return
		}
		s.handle(func(w http.ResponseWriter, r *request) error {
			r.Pattern = s.portRoute().pattern // for the log: it didn't come by the mux
			if s.Control == nil {
				return errs.Msg(errs.Unsupported, "connect", "", "this server has no sandbox service")
			}
			token, given, err := portToken(r)
			if err != nil {
				return err
			}
			if err := s.identify(r, token); err != nil {
				return err
			}
			if r.caller == nil {
				return errs.Msg(errs.Denied, "connect", "", "this key is limited to its buckets").WithHint("use a key of a principal")
			}
			if given && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
				http.SetCookie(w, &http.Cookie{Name: TokenCookie, Value: token, Path: at, HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteLaxMode})
				w.Header().Set("Location", withoutToken(r.URL, byHost))
				w.WriteHeader(http.StatusSeeOther)
				return nil
			}
			w.Header().Del("Cache-Control") // the server inside has its own
			w.Header().Del("X-Content-Type-Options")
			r.begun = true
			proxy.ServeHTTP(w, r.Request.WithContext(context.WithValue(r.Context(), portKey{}, r)))
			return nil
		}).ServeHTTP(w, hr)
	})
}

type portKey struct{}

// portPath returns the path to which a cookie for a request's server belongs, or "" if the request isn't for one.
func (s *server) portPath(r *http.Request) (path string, byHost bool) {
	if s.PortHost != "" {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		label, ok := strings.CutSuffix(strings.ToLower(strings.TrimSuffix(host, ".")), "."+strings.ToLower(s.PortHost))
		if ok && label != "" && label[0] >= '0' && label[0] <= '9' && strings.Contains(label, "-") {
			return "/", true
		}
	}
	const root = "/v1/sandboxes/"
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), root)
	if !ok {
		return "", false
	}
	id, rest, _ := strings.Cut(rest, "/")
	rest, ok = strings.CutPrefix(rest, "ports/")
	if !ok {
		return "", false
	}
	port, _, _ := strings.Cut(rest, "/")
	return root + id + "/ports/" + port + "/", false
}

// portToken finds the key of a request: in the header, the parameter or the cookie. given says that it was the parameter.
func portToken(r *request) (token string, given bool, err error) {
	if scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") && token != "" {
		return strings.TrimSpace(token), false, nil
	}
	if token := r.URL.Query().Get(TokenParameter); token != "" {
		return token, true, nil
	}
	c, err := r.Cookie(TokenCookie)
	if err != nil || c.Value == "" {
		return "", false, errs.Msg(errs.Unauthorized, "authenticate", "", "no API key").
			WithHint("send it as 'Authorization: Bearer <id>.<secret>', or once as ?" + TokenParameter + "=")
	}
	// The cookie is for this server's own pages and for whoever opens them, not for what pages of others make a browser send.
	site, mode := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Sec-Fetch-Mode")
	opened := mode == "navigate" && (r.Method == http.MethodGet || r.Method == http.MethodHead)
	if (site == "cross-site" || site == "same-site") && !opened {
		return "", false, errs.Msg(errs.Denied, "authenticate", "", "another page's request doesn't get the cookie's key")
	}
	if o := r.Header.Get("Origin"); o != "" {
		if u, err := url.Parse(o); err != nil || u.Host != r.Host {
			return "", false, errs.Msg(errs.Denied, "authenticate", "", "another page's request doesn't get the cookie's key")
		}
	}
	return c.Value, false, nil
}

// withoutToken is where the browser goes on, without the key in its address.
func withoutToken(u *url.URL, byHost bool) string {
	q := u.Query()
	q.Del(TokenParameter)
	path := u.EscapedPath()
	if byHost && strings.HasPrefix(path, "//") {
		path = "/" + strings.TrimLeft(path, "/") // it would name another host
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// dialPort connects a request to a server in a sandbox that its caller may use. The sandbox is in use until the connection is closed.
func (s *server) dialPort(hr *http.Request, sandbox string, port int) (net.Conn, error) {
	r, ok := hr.Context().Value(portKey{}).(*request)
	if !ok {
		return nil, errs.Msg(errs.Unauthorized, "connect", "", "nobody asks")
	}
	u, err := s.Control.Use(hr.Context(), r.caller, sandbox, access.SandboxExec)
	if err != nil {
		return nil, err
	}
	r.sandbox = u.Sandbox.ID
	conn, err := u.Dial(hr.Context(), port)
	if err != nil {
		u.Close()
		return nil, err
	}
	return &portConn{Conn: conn, done: sync.OnceFunc(u.Close)}, nil
}

// portConn ends the use of a sandbox with a connection to it.
type portConn struct {
	net.Conn
	done func()
}

func (c *portConn) Close() error {
	defer c.done()
	return c.Conn.Close()
}

// portRoute is for the documentation: its requests don't reach the mux.
func (s *server) portRoute() route {
	return route{"GET /v1/sandboxes/{id}/ports/{port}/{path...}", "port", "Whatever a server in a sandbox that listens on a port answers, by any method. " +
		"Beneath {port}-{id}.HOST it has an origin of its own.", nil, endpoint{status: http.StatusOK, raw: "any", service: true, statuses: []int{502, 504},
		handler: func(http.ResponseWriter, *request) error {
			return errs.Msg(errs.Unsupported, "connect", "", "this server reaches no ports of sandboxes")
		}}}
}
