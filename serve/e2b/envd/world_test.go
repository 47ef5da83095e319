package envd_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/api/gen/e2b/filesystem/filesystemconnect"
	"agentrun.dev/api/gen/e2b/process/processconnect"
	blobs "agentrun.dev/blob/memory"
	"agentrun.dev/bucket"
	"agentrun.dev/control"
	"agentrun.dev/engine/userspace"
	records "agentrun.dev/kv/memory"
	"agentrun.dev/node"
	"agentrun.dev/serve/e2b/envd"
)

// world is a handler over a control with real sandboxes, whose only language is the shell. A request names its sandbox in a header.
type world struct {
	t       testing.TB
	control *control.Control
	who     *access.Caller
	url     string
	srv     *httptest.Server
}

const sandboxHeader = "E2b-Sandbox-Id"

func newWorld(t testing.TB, o envd.Options) *world {
	t.Helper()
	kv := records.New()
	store, err := bucket.Open(t.Context(), bucket.Options{KV: kv, Blobs: blobs.New(blobs.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := access.New(access.Options{KV: kv, MasterKey: make([]byte, 32), RootID: "root", RootSecret: "secret-of-root"})
	if err != nil {
		t.Fatal(err)
	}
	guard, err := access.NewGuard(t.Context(), keys, access.AuditOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := node.New(node.Options{Engine: userspace.NewEngine(userspace.EngineOptions{}), Store: store, Dir: t.TempDir(), UID: userspace.UID, GID: userspace.GID})
	c, err := control.Open(t.Context(), control.Options{KV: kv, Store: store, Keys: keys, Guard: guard, Endpoint: "127.0.0.1:7070",
		S3: func() (string, string) { return "http://127.0.0.1:7071", "auto" }})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Join(t.Context(), "here", "", node.Local(n, "here", "test"), true); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	who, err := guard.Caller(t.Context(), "root.secret-of-root", "127.0.0.1:1", "r")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, control: c, who: who}
	o.Use = func(r *http.Request, verb access.Verb) (*control.Session, error) {
		return c.Use(r.Context(), who, r.Header.Get(sandboxHeader), verb)
	}
	w.srv = httptest.NewServer(envd.New(o))
	w.url = w.srv.URL
	t.Cleanup(func() {
		w.srv.CloseClientConnections()
		w.srv.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for _, end := range []func() error{func() error { return c.Close(ctx) }, func() error { return n.Close(ctx) }, func() error { return guard.Close(ctx) }, store.Close} {
			if err := end(); err != nil {
				t.Error(err)
			}
		}
	})
	if _, _, err := c.PutTemplate(t.Context(), who, "base", api.TemplateSpec{}, nil); err != nil {
		t.Fatal(err)
	}
	w.until("the template is ready", func() bool {
		tm, err := c.Template(t.Context(), who, "base", 0)
		return err == nil && tm.State == api.BuildReady
	})
	return w
}

// until waits for a condition.
func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatal("it doesn't come about that " + what)
		}
	}
}

// sandbox is one, with the clients of its services.
type sandbox struct {
	*world
	id      string
	process processconnect.ProcessClient
	files   filesystemconnect.FilesystemClient
}

func (w *world) sandbox() *sandbox {
	w.t.Helper()
	sb, err := w.control.CreateSandbox(w.t.Context(), w.who, api.CreateSandbox{Template: "base"})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.at(sb.ID)
}

func (w *world) at(id string) *sandbox {
	client := &http.Client{Transport: named{id, http.DefaultTransport}}
	return &sandbox{world: w, id: id, process: processconnect.NewProcessClient(client, w.url, connect.WithProtoJSON()), files: filesystemconnect.NewFilesystemClient(client, w.url)}
}

// named adds the sandbox to requests.
type named struct {
	id   string
	next http.RoundTripper
}

func (n named) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(sandboxHeader, n.id)
	return n.next.RoundTrip(r)
}

// do makes a request by hand, and returns its status, headers and body.
func (s *sandbox) do(method, path string, body io.Reader, header ...string) (int, http.Header, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set(sandboxHeader, s.id)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := (&http.Transport{DisableCompression: true}).RoundTrip(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, strings.TrimSuffix(string(b), "\n")
}
