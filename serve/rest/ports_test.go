package rest_test

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/serve/proxy"
	"agentrun.dev/serve/rest"
)

// TestPorts reaches a server in a sandbox: with a key in the header, as a parameter once, and as a cookie then, and not without.
func TestPorts(t *testing.T) {
	s := newService(t, rest.Options{PortHost: "sandboxes.test", Ports: func(dial func(*http.Request, string, int) (net.Conn, error)) http.Handler {
		return proxy.New(proxy.Options{Dial: dial, Host: "sandboxes.test", Cookies: []string{rest.TokenCookie}, Parameters: []string{rest.TokenParameter}})
	}})
	s.template("plain", api.TemplateSpec{})
	sb := s.sandbox("one")
	// It answers each request alike, once it has read it, and keeps what it was sent.
	code := `mkfifo answer; while :; do
		nc -l 8000 <>answer | { while IFS= read -r line && [ "$line" != $'\r' ]; do printf '%s\n' "$line"; done >now
			printf 'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi' >answer; }
		[ -s now ] && mv now request; done`
	if _, err := s.Run(t.Context(), "one", api.Run{Code: code, Background: true}); err != nil {
		t.Fatal(err)
	}
	// got is what reached the server.
	got := func() string {
		t.Helper()
		res, err := s.Run(t.Context(), "one", api.Run{Code: "while [ ! -e request ]; do sleep 0.001; done; cat request; rm request"})
		if err != nil {
			t.Fatal(err)
		}
		return res.Stdout
	}
	ask := func(method, url, host string, header ...string) (*http.Response, string) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			req, err := http.NewRequestWithContext(t.Context(), method, s.url+url, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = host
			for i := 0; i < len(header); i += 2 {
				req.Header.Set(header[i], header[i+1])
			}
			r, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			text := body(t, r)
			if r.StatusCode == http.StatusBadGateway && time.Now().Before(end) {
				continue // it doesn't listen yet, or again
			}
			return r, text
		}
	}
	bearer := "Bearer " + rootKey
	at := "/v1/sandboxes/one/ports/8000/"
	r, text := ask("GET", at+"a//b?x=1", "", "Authorization", bearer, "X-Sandbox-Authorization", "inner")
	if sent := got(); r.StatusCode != 200 || text != "hi" || !strings.HasPrefix(sent, "GET /a//b?x=1 HTTP/1.1\r\n") || strings.Contains(sent, "secret") ||
		!strings.Contains(sent, "Authorization: inner") || !strings.Contains(r.Header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("by path: %s %q %q %v", r.Status, text, sent, r.Header)
	}
	if r, _ := ask("GET", at, ""); r.StatusCode != 401 {
		t.Errorf("nobody: %s", r.Status)
	}
	if r, _ := ask("GET", at, "", "Authorization", "Bearer root.wrong"); r.StatusCode != 401 {
		t.Errorf("a wrong key: %s", r.Status)
	}
	host := "8000-" + sb.ID + ".sandboxes.test:7070"
	r, _ = ask("GET", "/page?token="+rootKey+"&y=2", host)
	cookies := r.Cookies()
	if r.StatusCode != 303 || r.Header.Get("Location") != "/page?y=2" || len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].Path != "/" || cookies[0].SameSite != http.SameSiteLaxMode {
		t.Fatalf("a token once: %s %v", r.Status, r.Header)
	}
	cookie := cookies[0].Name + "=" + cookies[0].Value
	r, text = ask("GET", "/page?y=2", host, "Cookie", cookie+"; own=1")
	if sent := got(); r.StatusCode != 200 || text != "hi" || !strings.HasPrefix(sent, "GET /page?y=2 HTTP/1.1\r\n") || strings.Contains(sent, "secret") || !strings.Contains(sent, "Cookie: own=1") {
		t.Errorf("by host: %s %q %q", r.Status, text, sent)
	}
	for _, h := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "http://evil.test"}, {"Origin", "null"}} {
		if r, _ := ask("GET", "/", host, "Cookie", cookie, h[0], h[1]); r.StatusCode != 403 {
			t.Errorf("another page's request, %v: %s", h, r.Status)
		}
	}
	if r, _ := ask("GET", "/", host, "Cookie", cookie, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"); r.StatusCode != 200 {
		t.Errorf("somebody follows a link: %s", r.Status)
	}
	r, _ = ask("GET", at+"x?token="+rootKey, "")
	if c := r.Cookies(); r.StatusCode != 303 || r.Header.Get("Location") != at+"x" || len(c) != 1 || c[0].Path != at {
		t.Errorf("a token by path: %s %v", r.Status, r.Header)
	}
	if r, _ := ask("GET", "/v1/sandboxes/nine/ports/8000/", "", "Authorization", bearer); r.StatusCode != 404 {
		t.Errorf("no such sandbox: %s", r.Status)
	}
	if r := s.do("GET", "/v1/sandboxes/one/ports/9/", ""); r.StatusCode != 502 {
		t.Errorf("nothing listens: %s", r.Status)
	}
}
