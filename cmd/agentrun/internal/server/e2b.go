package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/url"

	"agentrun.dev/access"
	"agentrun.dev/serve/e2b"
	"agentrun.dev/serve/metrics"
	"agentrun.dev/serve/proxy"
)

// openE2B serves E2B's protocol at the API's address, beside whatever else is there.
func (s *Server) openE2B(ctx context.Context, c *Config, keys *access.Keys, m *metrics.Metrics, next http.Handler, log *slog.Logger) (http.Handler, error) {
	h, err := e2b.New(e2b.Options{Control: s.control, Guard: s.guard, Keys: keys, Store: s.store.Store, Domain: c.e2bDomain(s.Endpoint), Next: next, Log: log,
		Ports: func(host string, dial func(*http.Request, string, int) (net.Conn, error)) http.Handler {
			return proxy.New(proxy.Options{Dial: dial, Host: host, Log: log})
		}})
	if err != nil {
		return nil, err
	}
	ours, others := m.Wrap("e2b", h), m.Wrap("rest", next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.Takes(r) {
			ours.ServeHTTP(w, r)
		} else {
			others.ServeHTTP(w, r)
		}
	}), nil
}

// e2bDomain is the domain that E2B's clients are told.
func (c *Config) e2bDomain(endpoint string) string {
	if c.E2BDomain != "" {
		return c.E2BDomain
	}
	if u, err := url.Parse(endpoint); err == nil && u.Port() != "" {
		return net.JoinHostPort(c.PortHost, u.Port())
	}
	return c.PortHost
}
