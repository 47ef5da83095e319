package proxy

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// world is a proxy before a server that listens on port 8000 of the sandbox "box".
type world struct {
	*testing.T
	url string
}

func serve(t *testing.T, o Options, inside http.Handler) *world {
	t.Helper()
	backend := httptest.NewServer(inside)
	t.Cleanup(backend.Close)
	if o.Dial == nil {
		o.Dial = func(r *http.Request, sandbox string, port int) (net.Conn, error) {
			switch {
			case sandbox != "box" && sandbox != "my-box-2":
				return nil, errs.Msg(errs.NotFound, "connect", sandbox, "no such sandbox")
			case port != 8000:
				return nil, errs.New(errs.Unavailable, "connect", fmt.Sprint("port ", port), syscall.ECONNREFUSED)
			}
			return (&net.Dialer{}).DialContext(r.Context(), "tcp", backend.Listener.Addr().String())
		}
	}
	front := httptest.NewServer(New(o))
	t.Cleanup(front.Close)
	return &world{t, front.URL}
}

const boxPath = "/v1/sandboxes/box/ports/8000"

// do sends a request and returns the answer with its body.
func (w *world) do(method, path string, change func(*http.Request)) (*http.Response, string) {
	w.Helper()
	r, err := http.NewRequest(method, w.url+path, nil)
	if err != nil {
		w.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Fatal(err)
	}
	return resp, string(b)
}

// echo answers with the request as it came.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s host=%s body=%s\n", r.Method, r.RequestURI, r.Host, body)
	_ = r.Header.Write(w)
})

func TestPaths(t *testing.T) {
	w := serve(t, Options{Host: "sandboxes.test"}, echo)
	for _, c := range []struct{ path, want string }{
		{boxPath, "GET / "},
		{boxPath + "/", "GET / "},
		{boxPath + "/a/b?x=1&y=%20", "GET /a/b?x=1&y=%20 "},
		{boxPath + "/a%2Fb/%C3%A9//c", "GET /a%2Fb/%C3%A9//c "},
		{boxPath + "/../../x", "GET /../../x "},
		{boxPath + "/?a;b", "GET /?a;b "},
		{boxPath + "?q", "GET /?q "},
	} {
		if _, body := w.do("GET", c.path, nil); !strings.HasPrefix(body, c.want) {
			t.Errorf("%s: %q, want %q", c.path, body, c.want)
		}
	}
	for _, c := range []struct{ host, want string }{
		{"8000-my-box-2.sandboxes.test", "GET /v1/x?y "},
		{"8000-BOX.Sandboxes.Test.:9999", "GET /v1/x?y "},
	} {
		if _, body := w.do("GET", "/v1/x?y", func(r *http.Request) { r.Host = c.host }); !strings.HasPrefix(body, c.want) {
			t.Errorf("%s: %q, want %q", c.host, body, c.want)
		}
	}
	for _, path := range []string{"/", "/v1/sandboxes/box", "/v1/sandboxes/box/ports/", "/v1/sandboxes/box/ports/0/", "/v1/sandboxes/box/ports/08000/", "/v1/sandboxes/box/ports/65536/",
		"/v1/sandboxes/box/ports/-1/", "/v1/sandboxes//ports/8000/", "/v1/sandboxes/b%6fx/ports/8000/", "/v1/sandboxes/../box/ports/8000/", "/v1/sandboxes/" + strings.Repeat("a", 64) + "/ports/8000/"} {
		if resp, body := w.do("GET", path, nil); resp.StatusCode != 404 {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
	resp, _ := w.do("GET", boxPath+"?a=b", func(r *http.Request) { r.Header.Set("Accept", "text/html,*/*;q=0.8") })
	if resp.StatusCode != 307 || resp.Header.Get("Location") != boxPath+"/?a=b" {
		t.Errorf("a page without a slash: %d %q", resp.StatusCode, resp.Header.Get("Location"))
	}
}

func TestRequestHeaders(t *testing.T) {
	w := serve(t, Options{Host: "sandboxes.test", Cookies: []string{"session"}, Parameters: []string{"token"}}, echo)
	resp, body := w.do("GET", boxPath+"/p?token=secret1&a=%20b&to%6ben=secret2&tok=1", func(r *http.Request) {
		for _, l := range [][2]string{{"Authorization", "Bearer secret3"}, {"Proxy-Authorization", "Basic secret4"}, {"X-Sandbox-Authorization", "Basic inner"},
			{"Cookie", "a=1; session=secret5; b=2"}, {"X-Forwarded-For", "6.6.6.6"}, {"X-Forwarded-Host", "evil.test"}, {"X-Forwarded-Proto", "https"}, {"Forwarded", "for=6.6.6.6"},
			{"X-Forwarded-Prefix", "/evil"}, {"Connection", "X-Hop"}, {"X-Hop", "secret6"}, {"Te", "gzip"}, {"Keep-Alive", "1"}, {"X-Own", "kept"}} {
			r.Header.Set(l[0], l[1])
		}
	})
	if resp.StatusCode != 200 || strings.Contains(body, "secret") || strings.Contains(body, "6.6.6.6") || strings.Contains(body, "evil") {
		t.Errorf("%d: it got what it mustn't:\n%s", resp.StatusCode, body)
	}
	host := strings.TrimPrefix(w.url, "http://")
	for _, want := range []string{"GET /p?a=%20b&tok=1 host=" + host, "Authorization: Basic inner\r\n", "Cookie: a=1; b=2\r\n", "X-Forwarded-For: 127.0.0.1\r\n", "X-Forwarded-Proto: http\r\n",
		"X-Forwarded-Host: " + host, "X-Forwarded-Prefix: " + boxPath + "\r\n", "X-Own: kept\r\n"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing in\n%s", want, body)
		}
	}
	w = serve(t, Options{Trusted: true}, echo)
	_, body = w.do("GET", boxPath+"/", func(r *http.Request) {
		r.Header.Set("X-Forwarded-For", "10.1.1.1")
		r.Header.Set("X-Forwarded-Proto", "https")
	})
	if !strings.Contains(body, "X-Forwarded-For: 10.1.1.1, 127.0.0.1\r\n") || !strings.Contains(body, "X-Forwarded-Proto: https\r\n") {
		t.Errorf("behind a trusted proxy:\n%s", body)
	}
}

func TestAnswerHeaders(t *testing.T) {
	w := serve(t, Options{Host: "sandboxes.test"}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Location", r.URL.Query().Get("to"))
		h.Add("Set-Cookie", "session=stolen; Domain=test; Path=/; HttpOnly")
		h.Add("Set-Cookie", "b=2; path=/app/; Secure")
		h.Set("Clear-Site-Data", "*")
		h.Set("Alt-Svc", `h3=":443"`)
		h.Set("Strict-Transport-Security", "max-age=1")
		h.Set("X-Own", "kept")
		w.WriteHeader(302)
	}))
	for to, want := range map[string]string{
		"/a?b#c": boxPath + "/a?b#c", "a": "a", "http://localhost:8000/x%2Fy": boxPath + "/x%2Fy", "http://127.0.0.1:8000": boxPath + "/",
		"http://localhost:9000/": "http://localhost:9000/", "https://example.org/": "https://example.org/", "//example.org/x": "//example.org/x", "?x": "?x",
	} {
		resp, _ := w.do("GET", boxPath+"/?to="+url.QueryEscape(to), nil)
		if got := resp.Header.Get("Location"); got != want {
			t.Errorf("Location %q became %q, want %q", to, got, want)
		}
		if got := resp.Header.Values("Set-Cookie"); got[0] != "session=stolen; HttpOnly; Path="+boxPath+"/" || got[1] != "b=2; Secure; Path="+boxPath+"/app/" {
			t.Errorf("cookies %q", got)
		}
		if !strings.HasPrefix(resp.Header.Get("Content-Security-Policy"), "sandbox ") || resp.Header.Get("Clear-Site-Data")+resp.Header.Get("Alt-Svc")+resp.Header.Get("Strict-Transport-Security") != "" {
			t.Errorf("the answer speaks for the API's origin: %v", resp.Header)
		}
	}
	resp, _ := w.do("GET", "/?to=/x", func(r *http.Request) { r.Host = "8000-box.sandboxes.test" })
	if resp.Header.Get("Location") != "/x" || resp.Header.Get("Content-Security-Policy") != "" || resp.Header.Values("Set-Cookie")[0] != "session=stolen; Domain=test; Path=/; HttpOnly" {
		t.Errorf("an origin of its own: %v", resp.Header)
	}
}

func (w *world) problem(resp *http.Response, body string, status int, words ...string) {
	w.Helper()
	var p api.Problem
	if err := json.Unmarshal([]byte(body), &p); err != nil || resp.StatusCode != status || p.Status != status || resp.Header.Get("Content-Type") != api.ProblemJSON {
		w.Errorf("%d, want %d: %v %s", resp.StatusCode, status, err, body)
	}
	for _, word := range words {
		if !strings.Contains(p.Detail, word) {
			w.Errorf("%q isn't in %q", word, p.Detail)
		}
	}
}

func TestProblems(t *testing.T) {
	hang := make(chan struct{})
	inside := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/cut":
			panic(http.ErrAbortHandler)
		case "/hang":
			<-hang
		case "/garbage":
			c, _, _ := w.(http.Hijacker).Hijack()
			io.WriteString(c, "SSH-2.0-x\r\n")
			c.Close()
		case "/huge":
			w.Header().Set("X", strings.Repeat("x", 1<<20))
		}
	})
	w, hurried := serve(t, Options{}, inside), serve(t, Options{AnswerTime: 50 * time.Millisecond}, inside)
	t.Cleanup(func() { close(hang) }) // before the server waits for it
	for _, c := range []struct {
		path   string
		status int
		words  []string
	}{
		{"/v1/sandboxes/box/ports/8001/", 502, []string{"nothing listens on port 8001 in sandbox box"}},
		{"/v1/sandboxes/other/ports/8000/", 404, []string{"no such sandbox"}},
		{boxPath + "/cut", 502, []string{"port 8000 in sandbox box"}},
		{boxPath + "/garbage", 502, []string{"HTTP"}},
		{boxPath + "/huge", 502, []string{"HTTP"}},
	} {
		resp, body := w.do("GET", c.path, nil)
		w.problem(resp, body, c.status, c.words...)
	}
	resp, body := hurried.do("GET", boxPath+"/hang", nil)
	w.problem(resp, body, 504, "in time")
	resp, body = w.do("TRACE", boxPath+"/", nil)
	w.problem(resp, body, 405)

	w = serve(t, Options{DialTime: 10 * time.Millisecond, Dial: func(r *http.Request, _ string, _ int) (net.Conn, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}}, nil)
	resp, body = w.do("GET", boxPath+"/", nil)
	w.problem(resp, body, 504)
	w = serve(t, Options{Dial: func(*http.Request, string, int) (net.Conn, error) {
		return nil, fmt.Errorf("open /var/lib/secret: x")
	}}, nil)
	resp, body = w.do("GET", boxPath+"/", nil)
	w.problem(resp, body, 500)
	if strings.Contains(body, "secret") {
		t.Errorf("tells of the host: %s", body)
	}
}

func TestStreams(t *testing.T) {
	next := make(chan string)
	w := serve(t, Options{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" { // both directions at once
			_ = http.NewResponseController(w).EnableFullDuplex()
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			for s := bufio.NewScanner(r.Body); s.Scan(); {
				fmt.Fprintln(w, strings.ToUpper(s.Text()))
				w.(http.Flusher).Flush()
			}
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for s := range next {
			fmt.Fprintf(w, "data: %s\n\n", s)
			w.(http.Flusher).Flush()
		}
	}))
	go func() { next <- "one" }() // the answer begins with the first event
	resp, err := http.Get(w.url + boxPath + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	r := bufio.NewReader(resp.Body)
	for _, want := range []string{"one", "two", "three"} {
		if want != "one" {
			next <- want
		}
		line, err := r.ReadString('\n')
		if err != nil || line != "data: "+want+"\n" {
			t.Fatalf("%q, %v", line, err)
		}
		r.ReadString('\n')
	}
	close(next)
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("the end: %v", err)
	}

	pr, pw := io.Pipe()
	defer pw.Close()
	up, err := http.Post(w.url+boxPath+"/", "text/plain", pr)
	if err != nil {
		t.Fatal(err)
	}
	defer up.Body.Close()
	r = bufio.NewReader(up.Body)
	for _, s := range []string{"a", "b"} {
		fmt.Fprintln(pw, s)
		if line, err := r.ReadString('\n'); err != nil || line != strings.ToUpper(s)+"\n" {
			t.Fatalf("%q, %v", line, err)
		}
	}
}

func TestWebSocket(t *testing.T) {
	ended := make(chan error, 1)
	w := serve(t, Options{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"x"}})
		if err != nil {
			t.Error(err)
			return
		}
		for {
			kind, b, err := c.Read(r.Context())
			if err != nil {
				ended <- err
				return
			}
			if err := c.Write(r.Context(), kind, append([]byte("re: "), b...)); err != nil {
				t.Error(err)
				return
			}
		}
	}))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(w.url, "http")+boxPath+"/ws", &websocket.DialOptions{Subprotocols: []string{"x"},
		HTTPHeader: http.Header{"Origin": {w.url}}}) // servers compare it with Host
	if err != nil {
		t.Fatal(err)
	}
	if c.Subprotocol() != "x" {
		t.Errorf("subprotocol %q", c.Subprotocol())
	}
	for i := range 3 {
		text := strings.Repeat("x", 10000*i)
		if err := c.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if _, b, err := c.Read(ctx); err != nil || string(b) != "re: "+text {
			t.Fatalf("%.20q, %v", b, err)
		}
	}
	c.CloseNow() // the client goes away: the server is told
	if err := <-ended; err == nil {
		t.Error("no error")
	}
}

func TestLimit(t *testing.T) {
	in, out := make(chan struct{}), make(chan struct{})
	w := serve(t, Options{Connections: 2}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		in <- struct{}{}
		<-out
	}))
	done := make(chan int)
	for range 2 {
		go func() {
			resp, err := http.Get(w.url + boxPath + "/")
			if err != nil {
				t.Error(err)
				done <- 0
				return
			}
			resp.Body.Close()
			done <- resp.StatusCode
		}()
		<-in
	}
	resp, body := w.do("GET", boxPath+"/", nil)
	w.problem(resp, body, 429, "2 requests")
	if resp, _ := w.do("GET", "/v1/sandboxes/my-box-2/ports/1/", nil); resp.StatusCode != 502 {
		t.Errorf("another sandbox: %d", resp.StatusCode)
	}
	close(out)
	for range 2 {
		if s := <-done; s != 200 {
			t.Errorf("status %d", s)
		}
	}
	go func() { <-in }()
	if resp, _ := w.do("GET", boxPath+"/", nil); resp.StatusCode != 200 {
		t.Errorf("afterwards: %d", resp.StatusCode)
	}
}

// TestIdle ends a connection on which nothing moves, although neither side does.
func TestIdle(t *testing.T) {
	gone := make(chan struct{})
	w := serve(t, Options{IdleTime: 30 * time.Millisecond}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(gone)
	}))
	resp, err := http.Get(w.url + boxPath + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("an answer that was cut off looks whole")
	}
	<-gone
}

func FuzzFind(f *testing.F) {
	f.Add(boxPath+"/a%2Fb", "x.test", "8000-box.sandboxes.test")
	f.Add("/v1/sandboxes/%2e/ports/1", "sandboxes.test", "8000-.sandboxes.test:1")
	f.Fuzz(func(t *testing.T, path, host, requestHost string) {
		u, err := url.ParseRequestURI(path)
		if err != nil {
			return
		}
		target, ok := Find(&http.Request{URL: u, Host: requestHost}, host)
		if !ok {
			return
		}
		if target.Port < 1 || target.Port > 65535 || target.Sandbox == "" || strings.ContainsAny(target.Sandbox, "/%.:@") {
			t.Errorf("%+v", target)
		}
		if in := target.inside(u); !strings.HasPrefix(in.RequestURI(), "/") || in.User != nil {
			t.Errorf("inside: %q", in)
		}
	})
}
