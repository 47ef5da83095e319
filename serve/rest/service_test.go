package rest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
	blobs "agentrun.dev/blob/memory"
	"agentrun.dev/bucket"
	"agentrun.dev/client"
	"agentrun.dev/control"
	"agentrun.dev/engine/userspace"
	"agentrun.dev/errs"
	records "agentrun.dev/kv/memory"
	"agentrun.dev/node"
	"agentrun.dev/serve/rest"
)

// service is a whole server: a store, a guard, control and a node with real sandboxes, whose only language is the shell.
type service struct {
	*world
	control *control.Control
	guard   *access.Guard
}

func newService(t testing.TB, o rest.Options) *service {
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
	o.Control, o.Guard = c, guard
	srv := httptest.NewServer(rest.New(store, keys, o))
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
	s := &service{world: &world{t: t, store: store, keys: keys, url: srv.URL}, control: c, guard: guard}
	s.Client = s.as(rootKey)
	return s
}

// template makes a template, and waits for it.
func (s *service) template(name string, spec api.TemplateSpec) {
	s.t.Helper()
	if _, err := s.PutTemplate(s.t.Context(), name, spec); err != nil {
		s.t.Fatal(err)
	}
	for {
		tm, err := s.Template(s.t.Context(), name, 0)
		if err != nil || tm.State == api.BuildFailed {
			s.t.Fatalf("template: %+v, %v", tm, err)
		}
		if tm.State == api.BuildReady {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// sandbox makes one.
func (s *service) sandbox(name string) *api.Sandbox {
	s.t.Helper()
	sb, err := s.CreateSandbox(s.t.Context(), api.CreateSandbox{Template: "plain", Name: name})
	if err != nil {
		s.t.Fatal(err)
	}
	return sb
}

// user makes a principal and returns a client of it.
func (s *service) user(name, role string) *client.Client {
	s.t.Helper()
	if _, err := s.PutPrincipal(s.t.Context(), name, api.Principal{Role: role}); err != nil {
		s.t.Fatal(err)
	}
	k, err := s.CreateKey(s.t.Context(), api.CreateKey{Principal: name})
	if err != nil {
		s.t.Fatal(err)
	}
	return s.as(k.APIKey)
}

// do makes a request by hand; the caller closes the body.
func (s *service) do(method, path, body string, header ...string) *http.Response {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+rootKey)
	if body != "" {
		req.Header.Set("Content-Type", api.JSON)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp
}

func body(t testing.TB, r *http.Response) string {
	t.Helper()
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

// TestService walks through what the service does for a client.
func TestService(t *testing.T) {
	s := newService(t, rest.Options{})
	ctx := t.Context()
	s.template("plain", api.TemplateSpec{Init: []string{"echo made >made"}})
	if _, err := s.PutPool(ctx, "warm", api.PoolSpec{Template: "plain", Replicas: 2}); err != nil {
		t.Fatal(err)
	}
	for p := (&api.Pool{}); p.Ready < 2; time.Sleep(time.Millisecond) {
		var err error
		if p, err = s.Pool(ctx, "warm"); err != nil {
			t.Fatal(err)
		}
	}
	sb, err := s.CreateSandbox(ctx, api.CreateSandbox{Pool: "warm", Name: "one", Env: map[string]string{"WHO": "me"}, Labels: api.Labels{"a": "b"}})
	if err != nil || sb.State != api.StateRunning {
		t.Fatalf("%+v, %v", sb, err)
	}
	res, err := s.Run(ctx, "one", api.Run{Code: "cat made; echo $WHO >&2; exit 3"})
	if err != nil || res.ExitCode != 3 || res.Stdout != "made\n" || res.Stderr != "me\n" || res.Language != api.Shell || res.Duration <= 0 {
		t.Errorf("run: %+v, %v", res, err)
	}
	res, err = s.Run(ctx, sb.ID, api.Run{Args: []string{"sh", "-c", "pwd; cat; env | grep ^X"}, Stdin: "input\n", Dir: "/tmp", Env: map[string]string{"X": "1 2"}})
	if err != nil || res.Stdout != "/tmp\ninput\nX=1 2\n" {
		t.Errorf("run: %+v, %v", res, err)
	}
	list, err := s.Sandboxes(ctx, client.SandboxFilter{Labels: api.Labels{"a": "b"}})
	if err != nil || len(list.Sandboxes) != 1 || list.Sandboxes[0].ID != sb.ID {
		t.Errorf("list: %+v, %v", list, err)
	}
	f, err := s.ForkSandbox(ctx, "one", api.ForkSandbox{Count: 2, Name: "two"})
	if err != nil || len(f.Sandboxes) != 2 || f.Sandboxes[0].Parent != sb.ID {
		t.Fatalf("fork: %+v, %v", f, err)
	}
	if res, err := s.Run(ctx, "two-1", api.Run{Code: "echo changed >made; echo new >new; cat made"}); err != nil || res.Stdout != "changed\n" {
		t.Errorf("in a fork: %+v, %v", res, err)
	}
	var changes []string
	d, err := s.SandboxDiff(ctx, "one", "two-1", "", func(c *api.FileChange) error {
		changes = append(changes, c.Kind+" "+c.Path)
		return nil
	})
	if err != nil || d.Added != 1 || d.Modified != 1 || len(changes) != 2 {
		t.Errorf("diff: %v, %+v, %v", changes, d, err)
	}
	if m, err := s.MergeSandbox(ctx, "two-1", api.MergeSandbox{}); err != nil || m.Added != 1 || m.Modified != 1 {
		t.Errorf("merge: %+v, %v", m, err)
	}
	if res, err := s.Run(ctx, "one", api.Run{Code: "cat made new"}); err != nil || res.Stdout != "changed\nnew\n" {
		t.Errorf("after the merge: %+v, %v", res, err)
	}
	if sb, err := s.HibernateSandbox(ctx, "one"); err != nil || sb.State != api.StateHibernated {
		t.Errorf("hibernate: %+v, %v", sb, err)
	}
	if res, err := s.Run(ctx, "one", api.Run{Code: "cat new"}); err != nil || res.Stdout != "new\n" {
		t.Errorf("after a sleep: %+v, %v", res, err)
	}
	tree, err := s.SandboxTree(ctx, "one", false)
	if err != nil || len(tree.Children) != 2 {
		t.Errorf("tree: %+v, %v", tree, err)
	}
	if err := s.EndSandbox(ctx, "one"); err != nil {
		t.Error(err)
	}
	if _, err := s.Run(ctx, sb.ID, api.Run{Code: "true"}); !errs.Is(err, errs.Conflict) {
		t.Errorf("run in an ended sandbox: %v", err)
	}
	m := s.control.Metrics()
	if len(m.Nodes) != 1 || m.Nodes[0].Name != "here" || !m.Nodes[0].Up || m.Nodes[0].Sandboxes[api.StateRunning] < 2 || len(m.Pools) != 1 || m.Pools[0].Replicas != 2 ||
		m.Forks.Count != 1 || m.Claims.Count != 1 || m.Hibernations.Count != 1 || m.Resumes.Count != 1 || m.Builds.Count != 1 || m.Events[api.EventForked] < 2 {
		t.Errorf("metrics: %+v", m)
	}
	kinds := map[string]bool{}
	err = s.Follow(ctx, 0, "", "", func(e *api.Event) error {
		if kinds[e.Kind] = true; e.Kind == api.EventEnded && e.Sandbox == sb.ID {
			return io.EOF
		}
		return nil
	})
	if err != io.EOF || !kinds[api.EventClaimed] || !kinds[api.EventForked] || !kinds[api.EventHibernated] || !kinds[api.EventResumed] {
		t.Errorf("events: %v, %v", kinds, err)
	}
}

// TestRunStreams reads what happens as it does, in both forms.
func TestRunStreams(t *testing.T) {
	s := newService(t, rest.Options{})
	s.template("plain", api.TemplateSpec{})
	s.sandbox("one")
	var got strings.Builder
	res, err := s.RunStream(t.Context(), "one", api.Run{Code: "echo a; sleep 0.01; echo b >&2; exit 4"}, func(e *api.RunEvent) error {
		fmt.Fprintf(&got, "%s %s;", e.Type, e.Data)
		return nil
	})
	if err != nil || res.ExitCode != 4 || got.String() != "start ;stdout a\n;stderr b\n;exit ;" {
		t.Errorf("%+v, %v, %q", res, err, &got)
	}
	r := s.do("POST", "/v1/sandboxes/one/exec", `{"args":["echo","hello"]}`, "Accept", api.EventStream)
	text := body(t, r)
	if r.Header.Get("Content-Type") != api.EventStream || !strings.HasPrefix(text, "event: start\ndata: {\"type\":\"start\",\"pid\":") ||
		!strings.Contains(text, "\n\nevent: stdout\ndata: {\"type\":\"stdout\",\"data\":\"aGVsbG8K\"}\n\n") || !strings.Contains(text, "event: exit\ndata: {") {
		t.Errorf("events: %q", text)
	}
	if _, err := s.RunStream(t.Context(), "one", api.Run{Args: []string{"nothing-of-the-kind"}}, nil); err != nil {
		t.Errorf("no such command: %v", err)
	}
	if _, err := s.RunStream(t.Context(), "none", api.Run{Args: []string{"true"}}, nil); !errs.Is(err, errs.NotFound) {
		t.Errorf("no such sandbox: %v", err)
	}
}

// TestRunBounds checks what bounds a run: its time, its output, its form.
func TestRunBounds(t *testing.T) {
	s := newService(t, rest.Options{})
	s.template("plain", api.TemplateSpec{})
	s.sandbox("one")
	for _, in := range []api.Run{{Code: "sleep 100", Timeout: 0.05}, {Args: []string{"sleep", "100"}, Timeout: 0.05}} {
		if res, err := s.Run(t.Context(), "one", in); err != nil || !res.TimedOut || res.ExitCode != 124 {
			t.Errorf("%+v: %+v, %v", in, res, err)
		}
	}
	res, err := s.Run(t.Context(), "one", api.Run{Code: "head -c 20000000 /dev/zero | tr '\\0' x; echo end"})
	if err != nil || !res.Truncated || len(res.Stdout) != api.MaxOutput || !strings.HasSuffix(res.Stdout, "x"+"end\n") {
		t.Errorf("much output: %d bytes, %v", len(res.Stdout), err)
	}
	if res, err := s.Run(t.Context(), "one", api.Run{Code: `printf 'a\377b'`}); err != nil || res.Stdout != "a\ufffdb" {
		t.Errorf("not UTF-8: %+v, %v", res, err)
	}
	res, err = s.Run(t.Context(), "one", api.Run{Args: []string{"sleep", "100"}, Background: true, Log: "log"})
	if err != nil || res.Pid == 0 {
		t.Fatalf("in the background: %+v, %v", res, err)
	}
	list, err := s.Processes(t.Context(), "one")
	if err != nil || len(list) != 1 || list[0].Pid != res.Pid {
		t.Errorf("processes: %+v, %v", list, err)
	}
	if err := s.Signal(t.Context(), "one", res.Pid, "KILL"); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		body string
		says string
	}{
		{`{}`, "either code or args"}, {`{"code":"a","args":["b"]}`, "either code or args"}, {`{"args":[""]}`, "no command"},
		{`{"args":["a\u0000"]}`, "NUL"}, {`{"code":"a\u0000"}`, "NUL"}, {`{"code":"a","language":"cobol"}`, "want shell"}, {`{"args":["a"],"session":"s"}`, "go with code"},
		{`{"args":["a"],"dir":"tmp"}`, "absolute"}, {`{"args":["a"],"env":{"A=":"b"}}`, "name"}, {`{"args":["a"],"timeout":-1}`, "timeout"}, {`{"args":["a"],"timeout":null}`, "null"},
		{`{"args":["a"],"log":"x"}`, "background"}, {`{"code":"a","background":true,"session":"s"}`, "none"}, {`{"code":"a","session":"a b"}`, "session"},
	} {
		if status, p := s.send("POST", "/v1/sandboxes/one/exec", rootKey, api.JSON, c.body); status != 400 || !strings.Contains(p.Detail, c.says) {
			t.Errorf("%s: %d %q", c.body, status, p.Detail)
		}
	}
}

// TestExecIn runs over the WebSocket.
func TestExecIn(t *testing.T) {
	s := newService(t, rest.Options{})
	s.template("plain", api.TemplateSpec{})
	s.sandbox("one")
	var out, errOut bytes.Buffer
	pid := 0
	status, err := s.ExecIn(t.Context(), "one", api.Exec{Args: []string{"sh", "-c", "cat; echo e >&2; exit 5"}},
		client.Streams{Stdin: strings.NewReader("typed"), Stdout: &out, Stderr: &errOut, Started: func(n int) { pid = n }})
	if status != 5 || err != nil || out.String() != "typed" || errOut.String() != "e\n" || pid == 0 {
		t.Errorf("%d, %v, %q, %q, pid %d", status, err, &out, &errOut, pid)
	}
	out.Reset()
	var ended *api.RunResult
	status, err = s.ExecIn(t.Context(), "one", api.Exec{Code: "read x; echo got $x; exit 6"},
		client.Streams{Stdin: strings.NewReader("line\n"), Stdout: &out, Ended: func(r *api.RunResult) { ended = r }})
	if status != 6 || err != nil || out.String() != "got line\n" || ended == nil || ended.ExitCode != 6 || ended.Language != api.Shell {
		t.Errorf("a text: %d, %v, %q, %+v", status, err, &out, ended)
	}
	out.Reset()
	status, err = s.ExecIn(t.Context(), "one", api.Exec{Args: []string{"sh", "-c", "stty size; tty"}, TTY: &api.Size{Cols: 91, Rows: 17}}, client.Streams{Stdout: &out})
	if status != 0 || err != nil || !strings.HasPrefix(out.String(), "17 91\r\n/dev/") {
		t.Errorf("a terminal: %d, %v, %q", status, err, &out)
	}
	for _, e := range []api.Exec{{}, {Args: []string{"a"}, Code: "b"}, {Args: []string{"a"}, Mounts: []api.Mount{{Bucket: "b"}}}, {Attach: -1}, {Attach: 5, Root: true},
		{Code: "a", TTY: &api.Size{}}, {Args: []string{"a"}, Language: api.Shell}} {
		if _, err := s.ExecIn(t.Context(), "one", e, client.Streams{}); !errs.Is(err, errs.Invalid) {
			t.Errorf("%+v: %v", e, err)
		}
	}
	if _, err := s.ExecIn(t.Context(), "none", api.Exec{Args: []string{"true"}}, client.Streams{}); !errs.Is(err, errs.NotFound) {
		t.Errorf("no such sandbox: %v", err)
	}
}

// TestClientGoes checks that what runs for a client that has gone is killed, whatever it came by, unless it was to be kept.
func TestClientGoes(t *testing.T) {
	s := newService(t, rest.Options{})
	s.template("plain", api.TemplateSpec{})
	s.sandbox("one")
	running := func() int {
		list, err := s.Processes(t.Context(), "one")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	wait := func(n int) {
		t.Helper()
		for i := 0; running() != n; i++ {
			if i > 10_000 {
				t.Fatalf("%d commands run, want %d", running(), n)
			}
			time.Sleep(time.Millisecond)
		}
	}
	sleep := []string{"sleep", "1000"}
	for name, run := range map[string]func(context.Context) error{
		"json": func(ctx context.Context) error { _, err := s.Run(ctx, "one", api.Run{Args: sleep}); return err },
		"stream": func(ctx context.Context) error {
			_, err := s.RunStream(ctx, "one", api.Run{Args: sleep}, nil)
			return err
		},
		"socket": func(ctx context.Context) error {
			_, err := s.ExecIn(ctx, "one", api.Exec{Args: sleep}, client.Streams{})
			return err
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- run(ctx) }()
		wait(1)
		cancel()
		if err := <-done; !errs.Is(err, errs.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		wait(0)
	}
	// What is kept goes on, and another client takes it up: it sees what was written since it began, and types.
	ctx, cancel := context.WithCancel(t.Context())
	pid, done := make(chan int, 1), make(chan error, 1)
	go func() {
		_, err := s.ExecIn(ctx, "one", api.Exec{Args: []string{"sh", "-c", "echo before; read x; echo got $x; exit 7"}, Keep: true},
			client.Streams{Stdin: nothing{ctx}, Started: func(n int) { pid <- n }})
		done <- err
	}()
	n := <-pid
	if _, err := s.ExecIn(t.Context(), "one", api.Exec{Attach: n}, client.Streams{}); !errs.Is(err, errs.Exists) {
		t.Errorf("a second client: %v", err)
	}
	cancel()
	<-done
	wait(1)
	var out bytes.Buffer
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		status, err := s.ExecIn(t.Context(), "one", api.Exec{Attach: n}, client.Streams{Stdin: strings.NewReader("typed\n"), Stdout: &out})
		if errs.Is(err, errs.Exists) && time.Now().Before(end) {
			continue // that the first one has gone isn't known yet
		}
		if err != nil || status != 7 || out.String() != "before\ngot typed\n" {
			t.Errorf("taken up: %d, %v, %q", status, err, &out)
		}
		break
	}
	wait(0)
	res, err := s.Run(t.Context(), "one", api.Run{Code: "echo begun; sleep 1000", Background: true})
	if err != nil {
		t.Fatal(err)
	}
	status, err := s.ExecIn(t.Context(), "one", api.Exec{Attach: res.Pid}, client.Streams{Stdout: writerFunc(func(b []byte) (int, error) {
		if string(b) != "begun\n" {
			t.Errorf("it wrote %q", b)
		}
		return len(b), s.Signal(t.Context(), "one", res.Pid, "KILL")
	})})
	if err != nil || status != 137 {
		t.Errorf("from the background: %d, %v", status, err)
	}
	wait(0)
}

// nothing is an input on which nothing comes.
type nothing struct{ ctx context.Context }

func (n nothing) Read([]byte) (int, error) {
	<-n.ctx.Done()
	return 0, io.EOF
}
