package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentrun.dev/api"
	"agentrun.dev/serve/mcp"
)

// post sends a message by hand, as clients of any version might.
func (w *world) post(key, query, body string, header ...string) (status int, h http.Header, answer string) {
	w.t.Helper()
	return w.request(http.MethodPost, key, query, body, header...)
}

func (w *world) request(method, key, query, body string, header ...string) (status int, h http.Header, answer string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+mcp.Path+query, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`

// session begins one by hand.
func (w *world) session(key string) (id string) {
	w.t.Helper()
	status, h, body := w.post(key, "", initialize)
	if status != http.StatusOK || h.Get("Mcp-Session-Id") == "" {
		w.t.Fatalf("%d %s", status, body)
	}
	return h.Get("Mcp-Session-Id")
}

func TestHTTPRefusals(t *testing.T) {
	w := newWorld(t, func(o *mcp.HandlerOptions) { o.Origins = []string{"https://console.example"} })
	host := strings.TrimPrefix(w.url, "http://")
	if _, err := w.PutPrincipal(t.Context(), "disabled", api.Principal{Role: api.RoleUser}); err != nil {
		t.Fatal(err)
	}
	disabled, err := w.CreateKey(t.Context(), api.CreateKey{Principal: "disabled"})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.RevokeKey(t.Context(), disabled.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.CreateBucket(t.Context(), api.CreateBucket{Name: "scoped"}); err != nil {
		t.Fatal(err)
	}
	scoped, err := w.CreateKey(t.Context(), api.CreateKey{Scopes: []api.Scope{{Bucket: "scoped", Role: api.ReadOnly}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, key, query, body string
		header                 []string
		status                 int
		says                   string
	}{
		{"no key", "", "", initialize, nil, 401, "no API key"},
		{"a wrong key", "root.wrong", "", initialize, nil, 401, "isn't valid"},
		{"another scheme", "", "", initialize, []string{"Authorization", "Basic " + rootKey}, 401, "no API key"},
		{"a revoked key", disabled.APIKey, "", initialize, nil, 401, "isn't valid"},
		{"a key of buckets", scoped.APIKey, "", initialize, nil, 403, "limited to its buckets"},
		{"a page of elsewhere", rootKey, "", initialize, []string{"Origin", "https://evil.example"}, 403, "origin"},
		{"a page of nowhere", rootKey, "", initialize, []string{"Origin", "null"}, 403, "origin"},
		{"a name that was made to lead here", rootKey, "", initialize, []string{"Origin", "http://evil.example", "Host", "evil.example"}, 403, "origin"},
		{"a page of ours", rootKey, "", initialize, []string{"Origin", "http://" + host}, 200, "protocolVersion"},
		{"a page that may", rootKey, "", initialize, []string{"Origin", "https://console.example"}, 200, "protocolVersion"},
		{"no such parameter", rootKey, "?templat=x", initialize, nil, 400, "want one of template"},
		{"two bases", rootKey, "?template=x&pool=y", initialize, nil, 400, "only one of"},
		{"an unknown end", rootKey, "?onEnd=explode", initialize, nil, 400, "hibernate or end"},
		{"an unknown session", rootKey, "", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, []string{"Mcp-Session-Id", "guessed"}, 404, "session not found"},
		{"not JSON", rootKey, "", `{`, nil, 400, ""},
		{"an unknown method", rootKey, "", `{"jsonrpc":"2.0","id":1,"method":"no/such"}`, nil, 400, ""},
		{"too much", rootKey, "", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 25<<20) + `"}}`, nil, 413, ""},
	} {
		status, h, body := w.post(c.key, c.query, c.body, c.header...)
		if status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s: %d %.300s", c.name, status, body)
		}
		if status == 401 && !strings.HasPrefix(h.Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("%s: WWW-Authenticate is %q", c.name, h.Get("WWW-Authenticate"))
		}
	}
	if status, h, _ := w.request(http.MethodOptions, "", "", "", "Origin", "https://console.example"); status != 204 || h.Get("Access-Control-Allow-Origin") != "https://console.example" {
		t.Errorf("preflight: %d %v", status, h)
	}
	if _, err := w.connect("root.wrong", ""); err == nil {
		t.Error("the SDK's client gets in with a wrong key")
	}
}

// TestSessions: a session is its key's, and there are so many.
func TestSessions(t *testing.T) {
	w := newWorld(t, func(o *mcp.HandlerOptions) { o.MaxOfPrincipal, o.MaxSessions = 2, 3 })
	id := w.session(rootKey)
	ping := `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	if status, _, body := w.post(rootKey, "", ping, "Mcp-Session-Id", id); status != 200 {
		t.Errorf("its own: %d %s", status, body)
	}
	user := w.user("uwe", api.RoleUser)
	if status, _, body := w.post(user, "", ping, "Mcp-Session-Id", id); status != 403 {
		t.Errorf("another's session: %d %s", status, body)
	}
	same, err := w.CreateKey(t.Context(), api.CreateKey{Root: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		if status, _, body := w.request(method, same.APIKey, "", ping, "Mcp-Session-Id", id); status != 403 {
			t.Errorf("%s of another key's session: %d %s", method, status, body)
		}
	}
	if len(id) < 22 {
		t.Errorf("a session's id is %q", id)
	}
	second := w.session(rootKey)
	if _, _, body := w.post(rootKey, "", initialize); !strings.Contains(body, "2 sessions are open already") {
		t.Errorf("a third of one principal: %s", body)
	}
	_ = w.session(user)
	if _, _, body := w.post(user, "", initialize); !strings.Contains(body, "3 sessions are open already") {
		t.Errorf("a fourth: %s", body)
	}
	if status, _, body := w.request(http.MethodDelete, rootKey, "", "", "Mcp-Session-Id", second); status != 204 {
		t.Errorf("delete: %d %s", status, body)
	}
	until(t, "the session's end", func() bool { return w.handler.Sessions() == 2 })
	if status, _, _ := w.post(rootKey, "", ping, "Mcp-Session-Id", second); status != 404 {
		t.Errorf("after its end: %d", status)
	}
	_ = w.session(rootKey)
}

// TestDelete: the end of a session ends what runs in it, and puts its sandbox to rest.
func TestDelete(t *testing.T) {
	w := newWorld(t)
	m := w.http(rootKey, "")
	id := text(m.does("get_sandbox", nil), "id")
	go func() {
		_, _ = m.CallTool(context.Background(), &sdk.CallToolParams{Name: "exec", Arguments: args{"command": "sleep 600"}})
	}()
	until(t, "the command", func() bool { return strings.Contains(m.says("list_processes", nil), "sleep") })
	if status, _, body := w.request(http.MethodDelete, rootKey, "", "", "Mcp-Session-Id", m.ID()); status != http.StatusNoContent {
		t.Errorf("%d %s", status, body)
	}
	until(t, "the session's end", func() bool { return w.handler.Sessions() == 0 })
	if sb, err := w.Sandbox(t.Context(), id); err != nil || sb.State != api.StateHibernated {
		t.Errorf("%+v, %v", sb, err)
	}
}

// TestServerEnds: the sandboxes of sessions outlive a server that ends, and the sessions don't.
func TestServerEnds(t *testing.T) {
	w := newWorld(t)
	m := w.http(rootKey, "")
	id := text(m.does("get_sandbox", nil), "id")
	if err := w.handler.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if sb, err := w.Sandbox(t.Context(), id); err != nil || sb.State != api.StateRunning {
		t.Errorf("%+v, %v", sb, err)
	}
	if _, err := m.CallTool(t.Context(), &sdk.CallToolParams{Name: "get_sandbox"}); err == nil {
		t.Error("the session goes on")
	}
}

// message is one of JSON-RPC, out of a body or an event.
func message(t testing.TB, body string) (m struct {
	Result map[string]any
	Error  *jsonrpc.Error
}) {
	t.Helper()
	for l := range strings.Lines(body) {
		if d, ok := strings.CutPrefix(l, "data: "); ok && strings.Contains(d, `"id"`) {
			body = d
		}
	}
	if err := json.NewDecoder(bytes.NewReader([]byte(body))).Decode(&m); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return m
}

// TestVersions: clients of other versions than ours are told which there are.
func TestVersions(t *testing.T) {
	w := newWorld(t)
	_, _, body := w.post(rootKey, "", strings.Replace(initialize, "2025-11-25", "2099-01-01", 1))
	if m := message(t, body); m.Result["protocolVersion"] != "2025-11-25" {
		t.Errorf("a newer version in initialize: %s", body)
	}
	status, _, body := w.post(rootKey, "", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"}}}}`,
		"Mcp-Protocol-Version", "2099-01-01", "Mcp-Method", "tools/list")
	if m := message(t, body); status != 400 || m.Error == nil || m.Error.Code != sdk.CodeUnsupportedProtocolVersion || !strings.Contains(body, "2026-07-28") {
		t.Errorf("a newer version: %d %s", status, body)
	}
	if status, _, body = w.post(rootKey, "", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Mcp-Protocol-Version", "2020-01-01"); status != 400 || !strings.Contains(body, "2025-11-25") {
		t.Errorf("an older version: %d %s", status, body)
	}
}

// TestNewest: a client of the newest version that asks gets a session, and with it a sandbox of its own.
func TestNewest(t *testing.T) {
	w := newWorld(t)
	m := &model{t: t}
	s, err := sdk.NewClient(&sdk.Implementation{Name: "the tests", Version: "1"}, m.options()).Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: w.url + mcp.Path, HTTPClient: &http.Client{Transport: bearer{rootKey}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	m.ClientSession = s
	if out := m.sh("echo here"); out != "here\n" || m.ID() == "" {
		t.Errorf("%q in session %q", out, m.ID())
	}
}

// stateless calls a tool as clients without sessions do.
func (w *world) stateless(query, tool, arguments string) (result map[string]any) {
	w.t.Helper()
	_, h, body := w.post(rootKey, query, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`","arguments":`+arguments+
		`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"}}}}`,
		"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", tool)
	if h.Get("Mcp-Session-Id") != "" {
		w.t.Errorf("a session: %v", h)
	}
	m := message(w.t, body)
	if m.Error != nil {
		w.t.Fatalf("%s: %s", tool, body)
	}
	return m.Result
}

// TestStateless: clients that insist on protocol 2026-07-28 have no sessions, and say which sandbox.
func TestStateless(t *testing.T) {
	w := newWorld(t)
	if r := w.stateless("", "exec", `{"command":"true"}`); r["isError"] != true || !strings.Contains(text(r, "content", 0, "text"), "create_sandbox") {
		t.Errorf("without a sandbox: %v", r)
	}
	id := text(w.stateless("", "create_sandbox", `{}`), "structuredContent", "id")
	if r := w.stateless("", "exec", `{"command":"echo here > f; cat f","sandbox":"`+id+`"}`); text(r, "structuredContent", "stdout") != "here\n" {
		t.Errorf("exec: %v", r)
	}
	if r := w.stateless("?sandbox="+id, "read_file", `{"path":"f"}`); text(r, "content", 0, "text") != "here\n" {
		t.Errorf("in a sandbox: %v", r)
	}
	if w.handler.Sessions() != 0 {
		t.Error("there are sessions")
	}
}
