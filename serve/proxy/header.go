package proxy

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
)

// rewrite makes a request what the server inside gets. Hop-by-hop headers are gone already. Host stays what the client sent,
// since servers compare it with Origin.
func (p *proxy) rewrite(r *httputil.ProxyRequest) {
	t := exchangeOf(r.In.Context()).Target
	h := r.Out.Header
	r.Out.URL = t.inside(r.In.URL)
	r.Out.URL.RawQuery = p.query(r.In.URL.RawQuery)
	r.Out.Host = r.In.Host

	if p.Trusted {
		for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
			h[name] = slices.Clone(r.In.Header[name])
		}
	}
	host, proto := h.Get("X-Forwarded-Host"), h.Get("X-Forwarded-Proto")
	r.SetXForwarded()
	if host != "" {
		h.Set("X-Forwarded-Host", host)
	}
	if proto != "" {
		h.Set("X-Forwarded-Proto", proto)
	}
	h.Del("X-Forwarded-Prefix")
	if t.Prefix != "" {
		h.Set("X-Forwarded-Prefix", t.Prefix)
	}

	h.Del("Authorization")
	h.Del("Proxy-Authorization")
	if v := h.Values(authorization); len(v) > 0 {
		h["Authorization"] = v
		h.Del(authorization)
	}
	if cookies := h["Cookie"]; len(cookies) > 0 && len(p.Cookies) > 0 {
		h.Del("Cookie")
		if kept := p.cookies(cookies); kept != "" {
			h.Set("Cookie", kept)
		}
	}
}

// query takes the API's own parameters out of a query. What remains isn't changed.
func (p *proxy) query(raw string) string {
	if len(p.Parameters) == 0 || raw == "" {
		return raw
	}
	return kept(raw, "&", func(name string) bool {
		name, err := url.QueryUnescape(name)
		return err == nil && slices.Contains(p.Parameters, name)
	})
}

// cookies takes the API's own out of the cookies.
func (p *proxy) cookies(lines []string) string {
	return kept(strings.Join(lines, "; "), ";", func(name string) bool {
		return slices.Contains(p.Cookies, strings.TrimSpace(name))
	})
}

// kept returns a list of name=value without those whose name is dropped.
func kept(list, separator string, drop func(name string) bool) string {
	parts := slices.DeleteFunc(strings.Split(list, separator), func(part string) bool {
		name, _, _ := strings.Cut(part, "=")
		return drop(name)
	})
	return strings.TrimSpace(strings.Join(parts, separator))
}

// answer makes an answer what the client gets.
func (p *proxy) answer(r *http.Response) error {
	t := exchangeOf(r.Request.Context()).Target
	h := r.Header
	h.Del("Alt-Svc") // of the sandbox's server, which has no address of its own
	if t.Prefix == "" {
		return nil
	}
	// The origin is the API's: what speaks for a whole origin or host isn't this server's to say.
	for _, name := range []string{"Strict-Transport-Security", "Clear-Site-Data", "Service-Worker-Allowed", "Public-Key-Pins", "Origin-Agent-Cluster"} {
		h.Del(name)
	}
	h.Add("Content-Security-Policy", "sandbox allow-downloads allow-forms allow-modals allow-pointer-lock allow-popups allow-scripts")
	for _, name := range []string{"Location", "Content-Location"} {
		if v := h.Get(name); v != "" {
			h.Set(name, t.outside(v))
		}
	}
	for i, line := range h["Set-Cookie"] {
		h["Set-Cookie"][i] = t.cookie(line)
	}
	return nil
}

// cookie binds a cookie to the target's path.
func (t Target) cookie(line string) string {
	parts := strings.Split(line, ";")
	path := "/"
	out := parts[:1]
	for _, part := range parts[1:] {
		name, value, _ := strings.Cut(part, "=")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "domain":
		case "path":
			if value = strings.TrimSpace(value); strings.HasPrefix(value, "/") {
				path = value
			}
		default:
			out = append(out, part)
		}
	}
	// "__Host-" demands the path "/", so that such a cookie is refused by the browser, as it should be.
	return strings.Join(out, ";") + "; Path=" + t.Prefix + strings.TrimSuffix(path, "/") + "/"
}

// accepts tells whether a client asks for a media type by name.
func accepts(r *http.Request, media string) bool {
	for _, line := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(line, ",") {
			name, _, _ := strings.Cut(part, ";")
			if strings.EqualFold(strings.TrimSpace(name), media) {
				return true
			}
		}
	}
	return false
}
