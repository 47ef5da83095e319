package mcp_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentrun.dev/access"
	"agentrun.dev/api"
	blobs "agentrun.dev/blob/memory"
	"agentrun.dev/bucket"
	"agentrun.dev/client"
	"agentrun.dev/control"
	"agentrun.dev/engine/userspace"
	records "agentrun.dev/kv/memory"
	"agentrun.dev/node"
	"agentrun.dev/serve/mcp"
	"agentrun.dev/serve/rest"
)

const rootKey = "root.secret-of-root"

// world is a whole server with real sandboxes, and MCP over HTTP.
type world struct {
	t testing.TB
	*client.Client
	handler *mcp.Handler
	url     string
}

func newWorld(t testing.TB, change ...func(*mcp.HandlerOptions)) *world {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	kv := records.New()
	store, err := bucket.Open(t.Context(), bucket.Options{KV: kv, Blobs: blobs.New(blobs.Options{})})
	must(err)
	keys, err := access.New(access.Options{KV: kv, MasterKey: make([]byte, 32), RootID: "root", RootSecret: "secret-of-root"})
	must(err)
	guard, err := access.NewGuard(t.Context(), keys, access.AuditOptions{})
	must(err)
	n := node.New(node.Options{Engine: userspace.NewEngine(userspace.EngineOptions{}), Store: store, Dir: t.TempDir(), UID: userspace.UID, GID: userspace.GID})
	c, err := control.Open(t.Context(), control.Options{KV: kv, Store: store, Keys: keys, Guard: guard, Endpoint: "127.0.0.1:7070",
		S3: func() (string, string) { return "http://127.0.0.1:7071", "auto" }})
	must(err)
	must(c.Join(t.Context(), "here", "", node.Local(n, "here", "test"), true))
	must(c.Start(t.Context()))
	pipe := mcp.NewPipe()
	o := mcp.HandlerOptions{Caller: guard.Caller, Connect: func(key, remote string) (*client.Client, error) {
		return client.New("http://localhost", key, client.Options{Dial: func(ctx context.Context) (net.Conn, error) { return pipe.Dial(ctx, remote) }})
	}}
	for _, f := range change {
		f(&o)
	}
	w := &world{t: t}
	w.handler, err = mcp.NewHandler(o)
	must(err)
	h := rest.New(store, keys, rest.Options{Control: c, Guard: guard, MCP: w.handler})
	inside := &http.Server{Handler: h}
	serving := make(chan struct{})
	go func() { defer close(serving); _ = inside.Serve(pipe) }()
	srv := httptest.NewServer(h)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := w.handler.Close(ctx); err != nil {
			t.Error(err)
		}
		srv.CloseClientConnections()
		srv.Close()
		_ = inside.Close()
		<-serving
		for _, end := range []func() error{func() error { return c.Close(ctx) }, func() error { return n.Close(ctx) }, func() error { return guard.Close(ctx) }, store.Close} {
			if err := end(); err != nil {
				t.Error(err)
			}
		}
	})
	w.url = srv.URL
	w.Client = w.as(rootKey)
	return w
}

func (w *world) as(key string) *client.Client {
	w.t.Helper()
	c, err := client.New(w.url, key, client.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}

// user makes a principal and returns a key of it.
func (w *world) user(name, role string) string {
	w.t.Helper()
	if _, err := w.PutPrincipal(w.t.Context(), name, api.Principal{Role: role}); err != nil {
		w.t.Fatal(err)
	}
	k, err := w.CreateKey(w.t.Context(), api.CreateKey{Principal: name})
	if err != nil {
		w.t.Fatal(err)
	}
	return k.APIKey
}

// model is a client as a model has it, with what it was told without having asked.
type model struct {
	t testing.TB
	*sdk.ClientSession
	end func() // ends the connection and waits for the server's end of it

	mu       sync.Mutex
	progress []*sdk.ProgressNotificationParams
	updated  []string
}

func (m *model) options() *sdk.ClientOptions {
	return &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.progress = append(m.progress, r.Params)
		},
		ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.updated = append(m.updated, r.Params.URI)
		},
	}
}

// stdio connects over a pair of streams.
func (w *world) stdio(key string, o mcp.Options) *model {
	w.t.Helper()
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	c := w.as(key)
	served := make(chan error, 1)
	go func() { served <- mcp.Serve(context.Background(), c, fromClient, toClient, o) }()
	m := &model{t: w.t}
	s, err := sdk.NewClient(&sdk.Implementation{Name: "the tests", Version: "1"}, m.options()).Connect(w.t.Context(),
		&sdk.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	m.ClientSession = s
	m.end = sync.OnceFunc(func() {
		_ = toServer.Close()
		_ = s.Close()
		if err := <-served; err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(m.end)
	return m
}

// bearer adds the key, and a version of the protocol that isn't the client's own.
type bearer struct{ key string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.key)
	return http.DefaultTransport.RoundTrip(r)
}

// http connects over HTTP, at the oldest version that has everything: the newest has no sessions.
func (w *world) http(key, query string) *model {
	w.t.Helper()
	m, err := w.connect(key, query)
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

func (w *world) connect(key, query string) (*model, error) {
	m := &model{t: w.t}
	s, err := sdk.NewClient(&sdk.Implementation{Name: "the tests", Version: "1"}, m.options()).Connect(w.t.Context(),
		&sdk.StreamableClientTransport{Endpoint: w.url + mcp.Path + query, HTTPClient: &http.Client{Transport: bearer{key}}},
		&sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		return nil, err
	}
	m.ClientSession = s
	m.end = sync.OnceFunc(func() { _ = s.Close() })
	w.t.Cleanup(m.end)
	return m, nil
}

type args = map[string]any

// call calls a tool.
func (m *model) call(tool string, a args) *sdk.CallToolResult {
	m.t.Helper()
	res, err := m.CallTool(m.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: a})
	if err != nil {
		m.t.Fatalf("%s: an error of the protocol: %v", tool, err)
	}
	return res
}

// words are the text of a result.
func words(r *sdk.CallToolResult) string {
	var b strings.Builder
	for _, c := range r.Content {
		if t, ok := c.(*sdk.TextContent); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

// does calls a tool that works, and returns its output.
func (m *model) does(tool string, a args) map[string]any {
	m.t.Helper()
	r := m.call(tool, a)
	if r.IsError {
		m.t.Fatalf("%s %v: %s", tool, a, words(r))
	}
	out, _ := r.StructuredContent.(map[string]any)
	return out
}

// says calls a tool that works, and returns what it says.
func (m *model) says(tool string, a args) string {
	m.t.Helper()
	r := m.call(tool, a)
	if r.IsError {
		m.t.Fatalf("%s %v: %s", tool, a, words(r))
	}
	return words(r)
}

// fails calls a tool that doesn't, and checks that it says all of some words.
func (m *model) fails(tool string, a args, want ...string) *sdk.CallToolResult {
	m.t.Helper()
	r := m.call(tool, a)
	if !r.IsError {
		m.t.Fatalf("%s %v did it: %s", tool, a, words(r))
	}
	if r.StructuredContent != nil {
		m.t.Errorf("%s %v: what failed has an output: %v", tool, a, r.StructuredContent)
	}
	for _, s := range want {
		if !strings.Contains(words(r), s) {
			m.t.Errorf("%s %v says\n%s\nwant %q", tool, a, words(r), s)
		}
	}
	return r
}

// sh runs a command and returns its output.
func (m *model) sh(command string) string {
	m.t.Helper()
	out := m.does("exec", args{"command": command})
	if out["exit_code"] != 0.0 {
		m.t.Fatalf("%s: %v", command, out)
	}
	return out["stdout"].(string)
}

// until waits for a condition.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never happened: " + what)
		}
	}
}

func at(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			v = v.(map[string]any)[p]
		case int:
			v = v.([]any)[p]
		}
	}
	return v
}

func text(v any, path ...any) string { return fmt.Sprint(at(v, path...)) }
