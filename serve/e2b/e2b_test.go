package e2b_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
	blobs "agentrun.dev/blob/memory"
	"agentrun.dev/bucket"
	"agentrun.dev/control"
	"agentrun.dev/engine/userspace"
	records "agentrun.dev/kv/memory"
	"agentrun.dev/node"
	"agentrun.dev/serve/e2b"
)

// service is a whole server: a store, a guard, control, a node with real sandboxes whose only language is the shell, and E2B over it.
type service struct {
	t       testing.TB
	control *control.Control
	guard   *access.Guard
	keys    *access.Keys
	h       *e2b.Handler
	url     string
	key     string // of root
}

var root = access.System("test")

func newService(t testing.TB) *service {
	t.Helper()
	kv := records.New()
	store, err := bucket.Open(t.Context(), bucket.Options{KV: kv, Blobs: blobs.New(blobs.Options{})})
	must(t, err)
	keys, err := access.New(access.Options{KV: kv, MasterKey: make([]byte, 32), RootID: "root", RootSecret: "secret-of-root"})
	must(t, err)
	guard, err := access.NewGuard(t.Context(), keys, access.AuditOptions{})
	must(t, err)
	n := node.New(node.Options{Engine: userspace.NewEngine(userspace.EngineOptions{}), Store: store, Dir: t.TempDir(), UID: userspace.UID, GID: userspace.GID})
	c, err := control.Open(t.Context(), control.Options{KV: kv, Store: store, Keys: keys, Guard: guard, Endpoint: "127.0.0.1:7070",
		S3: func() (string, string) { return "http://127.0.0.1:7071", "auto" }})
	must(t, err)
	must(t, c.Join(t.Context(), "here", "", node.Local(n, "here", "test"), true))
	must(t, c.Start(t.Context()))
	h, err := e2b.New(e2b.Options{Control: c, Guard: guard, Keys: keys, Store: store, Domain: "sandboxes.test:7070",
		Next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }),
		Ports: func(host string, dial func(*http.Request, string, int) (net.Conn, error)) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // the test's own proxy: it tells what it was given
				conn, err := dial(r, "", 8080)
				if err == nil {
					conn.Close()
				}
				w.Header().Set("Got-Host", r.Host)
				w.WriteHeader(http.StatusAccepted)
			})
		}})
	must(t, err)
	srv := httptest.NewServer(h)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for _, end := range []func() error{func() error { return c.Close(ctx) }, func() error { return n.Close(ctx) }, func() error { return guard.Close(ctx) }, store.Close} {
			if err := end(); err != nil {
				t.Error(err)
			}
		}
	})
	return &service{t: t, control: c, guard: guard, keys: keys, h: h, url: srv.URL, key: "root.secret-of-root"}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// template makes a template, and waits for it.
func (s *service) template(name string, spec api.TemplateSpec) {
	s.t.Helper()
	_, _, err := s.control.PutTemplate(s.t.Context(), root, name, spec, nil)
	must(s.t, err)
	for {
		tm, err := s.control.Template(s.t.Context(), root, name, 0)
		if err != nil || tm.State == api.BuildFailed {
			s.t.Fatalf("template: %+v, %v", tm, err)
		}
		if tm.State == api.BuildReady {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// user makes a principal and returns a key of it.
func (s *service) user(name, role string) string {
	s.t.Helper()
	_, _, err := s.keys.SetPrincipal(s.t.Context(), api.Principal{Name: name, Role: role})
	must(s.t, err)
	k, err := s.keys.Create(s.t.Context(), access.NewKey{Principal: name, E2B: true})
	must(s.t, err)
	return k.Token()
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// into decodes an answer's body.
func (a *answer) into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		t.Fatalf("%s: %v", a.body, err)
	}
}

// do makes a request. Headers are pairs; Host is one.
func (s *service) do(method, path string, body any, headers ...string) *answer {
	s.t.Helper()
	var b io.Reader
	switch v := body.(type) {
	case nil:
	case string:
		b = strings.NewReader(v)
	default:
		raw, err := json.Marshal(v)
		must(s.t, err)
		b = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, b)
	must(s.t, err)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		} else {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	res, err := http.DefaultClient.Do(r)
	must(s.t, err)
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	must(s.t, err)
	return &answer{res.StatusCode, res.Header, out}
}

// call makes a request of the control plane as root and checks the status.
func (s *service) call(method, path string, body any, status int) *answer {
	s.t.Helper()
	a := s.do(method, path, body, "X-API-Key", s.key)
	if a.status != status {
		s.t.Fatalf("%s %s: %d, want %d: %s", method, path, a.status, status, a.body)
	}
	return a
}

type sandbox struct {
	SandboxID, TemplateID, EnvdVersion, EnvdAccessToken, Domain, State string
	TrafficAccessToken                                                 *string
	Metadata                                                           map[string]string
	StartedAt, EndAt                                                   time.Time
}

// create makes a sandbox of the template plain.
func (s *service) create(body map[string]any) *sandbox {
	s.t.Helper()
	if body["templateID"] == nil {
		body["templateID"] = "plain"
	}
	var out sandbox
	s.call("POST", "/v2/sandboxes", body, http.StatusCreated).into(s.t, &out)
	return &out
}

func TestLife(t *testing.T) {
	s := newService(t)
	s.template("plain", api.TemplateSpec{})
	sb := s.create(map[string]any{"timeout": 60, "metadata": map[string]string{"purpose": "test"}, "newField": 1})
	if sb.SandboxID == "" || sb.EnvdAccessToken == "" || sb.TemplateID != "plain" || sb.Domain != "sandboxes.test:7070" {
		t.Fatalf("%+v", sb)
	}
	var info sandbox
	s.call("GET", "/sandboxes/"+sb.SandboxID, nil, 200).into(t, &info)
	if info.State != "running" || info.Metadata["purpose"] != "test" || len(info.Metadata) != 1 {
		t.Errorf("%+v", info)
	}
	inside := []string{"E2b-Sandbox-Id", sb.SandboxID, "E2b-Sandbox-Port", "49983"}
	if a := s.do("GET", "/health", nil, inside...); a.status != 204 {
		t.Errorf("health: %d %s", a.status, a.body)
	}
	s.call("DELETE", "/sandboxes/"+sb.SandboxID, nil, 204)
	var e struct {
		Code    int
		Message string
	}
	s.call("DELETE", "/sandboxes/"+sb.SandboxID, nil, 404).into(t, &e)
	if e.Code != 404 || e.Message == "" {
		t.Errorf("%+v", e)
	}
	if a := s.do("GET", "/health", nil, inside...); a.status != 502 {
		t.Errorf("health of one that has ended: %d %s", a.status, a.body)
	}
}
