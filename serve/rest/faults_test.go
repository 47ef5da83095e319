package rest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/client"
	"agentrun.dev/errs"
	"agentrun.dev/serve/rest"
)

// TestFaults asks for what can't be had. Each answer says what is wrong, and none is a failure of the server's.
func TestFaults(t *testing.T) {
	s := newService(t, rest.Options{})
	s.template("plain", api.TemplateSpec{})
	if _, err := s.PutPool(t.Context(), "empty", api.PoolSpec{Template: "plain", Replicas: 0, MaxSandboxes: 1}); err != nil {
		t.Fatal(err)
	}
	dead := s.sandbox("dead")
	if err := s.EndSandbox(t.Context(), "dead"); err != nil {
		t.Fatal(err)
	}
	s.sandbox("one")
	if _, err := s.CreateSandbox(t.Context(), api.CreateSandbox{Pool: "empty"}); err != nil {
		t.Errorf("an empty pool makes one: %v", err)
	}
	for _, c := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"POST", "/v1/sandboxes", `{"template":"nine"}`, 404, "nine"},
		{"POST", "/v1/sandboxes", `{"pool":"nine"}`, 404, "nine"},
		{"POST", "/v1/sandboxes", `{"snapshot":"nine"}`, 404, "nine"},
		{"POST", "/v1/sandboxes", `{}`, 400, "exactly one of"},
		{"POST", "/v1/sandboxes", `{"template":"plain","pool":"empty"}`, 400, "exactly one of"},
		{"POST", "/v1/sandboxes", `{"template":"plain","name":"one"}`, 409, "one"},
		{"POST", "/v1/sandboxes", `{"template":"plain","env":{"A":null}}`, 400, "env.A"},
		{"POST", "/v1/sandboxes", `{"pool":"empty"}`, 429, "1"},
		{"POST", "/v1/sandboxes/" + dead.ID + "/fork", `{}`, 409, "ended"},
		{"POST", "/v1/sandboxes/" + dead.ID + "/exec", `{"code":"true"}`, 409, "ended"},
		{"POST", "/v1/sandboxes/" + dead.ID + "/hibernate", ``, 409, "ended"},
		{"POST", "/v1/sandboxes/nine/fork", `{}`, 404, "nine"},
		{"POST", "/v1/sandboxes/one/fork", `{"count":1001}`, 400, "1000"},
		{"POST", "/v1/sandboxes/one/fork", `{"count":-1}`, 400, ""},
		{"GET", "/v1/sandboxes/%ff", "", 400, "UTF-8"},
		{"GET", "/v1/sandboxes/one%00", "", 400, "NUL"},
		{"GET", "/v1/sandboxes/..%2f..%2fetc", "", 404, ""},
		{"GET", "/v1/sandboxes?name=%ff", "", 400, "UTF-8"},
		{"GET", "/v1/sandboxes?limit=1001", "", 400, "from 1 to 1000"},
		{"GET", "/v1/sandboxes?state=asleep", "", 400, "want starting"},
		{"GET", "/v1/sandboxes?label=x", "", 400, "NAME=VALUE"},
		{"GET", "/v1/events?after=-1", "", 400, "after"},
		{"GET", "/v1/sandboxes/one/files?path=a%00b", "", 400, "NUL"},
		{"GET", "/v1/sandboxes/one/files?path=" + strings.Repeat("x", 4097), "", 400, "4096"},
		{"GET", "/v1/sandboxes/one/files", "", 400, "missing"},
		{"DELETE", "/v1/sandboxes/one/processes/99", "", 404, ""},
		{"DELETE", "/v1/sandboxes/one/processes/x", "", 400, "number"},
		{"DELETE", "/v1/sandboxes/one/processes/1?signal=STOP", "", 400, "want HUP"},
		{"PUT", "/v1/pools/Bad_Name", `{"template":"plain","replicas":1}`, 400, ""},
		{"PUT", "/v1/pools/p", `{"template":"nine","replicas":1}`, 404, "nine"},
		{"PUT", "/v1/pools/p", `{"template":"plain"}`, 400, "replicas"},
		{"PUT", "/v1/pools/p", `{"template":"plain","replicas":10001}`, 400, "10000"},
		{"PUT", "/v1/agents/a", `{"name":"b","mode":"none"}`, 400, "another name"},
		{"GET", "/v1/nodes/nine", "", 404, "nine"},
		{"PUT", "/v1/sandboxes", `{}`, 405, "GET, HEAD, POST"},
		{"GET", "/v1/nonsense", "", 404, "no such operation"},
	} {
		status, p := s.send(c.method, c.path, rootKey, api.JSON, c.body)
		if status != c.status || !strings.Contains(p.Detail, c.says) || !strings.HasPrefix(p.Type, api.ProblemType) {
			t.Errorf("%s %.80s %s: %d %q (%s), want %d %q", c.method, c.path, c.body, status, p.Detail, p.Type, c.status, c.says)
		}
	}
}

// TestLeaseOver uses a sandbox whose lease ran out: one that is to end has ended.
func TestLeaseOver(t *testing.T) {
	s := newService(t, rest.Options{})
	s.template("plain", api.TemplateSpec{})
	sb, err := s.CreateSandbox(t.Context(), api.CreateSandbox{Template: "plain", Lease: &api.Lease{Duration: 1, Extend: 1, OnExpiry: api.End}})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Follow(t.Context(), 0, sb.ID, api.EventEnded, func(*api.Event) error { return io.EOF })
	if err != io.EOF {
		t.Fatal(err)
	}
	if _, err := s.Run(t.Context(), sb.ID, api.Run{Code: "true"}); !errs.Is(err, errs.Conflict) || !strings.Contains(err.Error(), "ended") {
		t.Errorf("after the end of the lease: %v", err)
	}
}

// TestIdempotency repeats requests.
func TestIdempotency(t *testing.T) {
	s := newService(t, rest.Options{})
	s.template("plain", api.TemplateSpec{})
	ctx := client.WithIdempotencyKey(t.Context(), "key-1")
	a, err := s.CreateSandbox(ctx, api.CreateSandbox{Template: "plain"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.CreateSandbox(ctx, api.CreateSandbox{Template: "plain"})
	if err != nil || a.ID != b.ID {
		t.Errorf("again: %+v, %v, want %s", b, err, a.ID)
	}
	r := s.do("POST", "/v1/sandboxes", `{"template":"plain"}`, "Idempotency-Key", "key-1")
	if body(t, r); r.StatusCode != 201 || r.Header.Get("Idempotency-Replayed") != "true" || r.Header.Get("Location") != "/v1/sandboxes/"+a.ID {
		t.Errorf("replayed: %s, %v", r.Status, r.Header)
	}
	for body, status := range map[string]int{`{"template":"plain","name":"other"}`: 422, `{"template":`: 422} {
		r := s.do("POST", "/v1/sandboxes", body, "Idempotency-Key", "key-1")
		r.Body.Close()
		if r.StatusCode != status {
			t.Errorf("another body: %s", r.Status)
		}
	}
	for _, bad := range []string{"", " ", strings.Repeat("k", 256), "ä"} {
		r := s.do("POST", "/v1/sandboxes", `{"template":"plain"}`, "Idempotency-Key", bad)
		r.Body.Close()
		if r.StatusCode != 400 {
			t.Errorf("key %.10q: %s", bad, r.Status)
		}
	}
	// What failed may be tried again.
	for range 2 {
		r := s.do("POST", "/v1/sandboxes", `{"template":"nine"}`, "Idempotency-Key", "key-2")
		if r.Body.Close(); r.StatusCode != 404 {
			t.Errorf("a failure, again: %s", r.Status)
		}
	}
	// A secret is told again, to whoever was told it; it isn't kept in the clear.
	var secrets [2]string
	for i := range secrets {
		var k api.Key
		r := s.do("POST", "/v1/keys", `{"principal":"root"}`, "Idempotency-Key", "key-4")
		if err := json.Unmarshal([]byte(body(t, r)), &k); err != nil || r.StatusCode != 201 {
			t.Fatalf("a key: %s, %v", r.Status, err)
		}
		secrets[i] = k.Secret
	}
	if secrets[0] == "" || secrets[0] != secrets[1] {
		t.Errorf("secrets: %q", secrets)
	}
	// Another caller's key is another one.
	u := s.user("somebody", api.RoleUser)
	if c, err := u.CreateSandbox(ctx, api.CreateSandbox{Template: "plain"}); err != nil || c.ID == a.ID {
		t.Errorf("another caller: %+v, %v", c, err)
	}
	// Many at once are one.
	var all sync.WaitGroup
	ids := make(chan string, 8)
	many := client.WithIdempotencyKey(t.Context(), "key-3")
	for range cap(ids) {
		all.Go(func() {
			for {
				c, err := s.CreateSandbox(many, api.CreateSandbox{Template: "plain"})
				if errs.Is(err, errs.Conflict) {
					continue // the first is still being answered
				}
				if err != nil {
					t.Error(err)
					return
				}
				ids <- c.ID
				return
			}
		})
	}
	all.Wait()
	close(ids)
	seen := map[string]bool{}
	for id := range ids {
		seen[id] = true
	}
	if len(seen) != 1 {
		t.Errorf("many at once made %d sandboxes", len(seen))
	}
}

// TestRoles sees that callers get what is theirs.
func TestRoles(t *testing.T) {
	s := newService(t, rest.Options{})
	s.template("plain", api.TemplateSpec{})
	s.sandbox("roots")
	u, v := s.user("u", api.RoleUser), s.user("v", api.RoleViewer)
	ctx := t.Context()
	if me, err := u.Me(ctx); err != nil || me.Name != "u" || me.Role != api.RoleUser {
		t.Errorf("me: %+v, %v", me, err)
	}
	if _, err := u.Sandbox(ctx, "roots"); !errs.Is(err, errs.NotFound) {
		t.Errorf("another's sandbox: %v", err)
	}
	if _, err := u.CreateSandbox(ctx, api.CreateSandbox{Template: "plain", Name: "us"}); err != nil {
		t.Error(err)
	}
	if list, err := u.Sandboxes(ctx, client.SandboxFilter{}); err != nil || len(list.Sandboxes) != 1 || list.Sandboxes[0].Name != "us" {
		t.Errorf("its list: %+v, %v", list, err)
	}
	_, err := v.CreateSandbox(ctx, api.CreateSandbox{Template: "plain"})
	var p *client.Error
	if !errs.Is(err, errs.Denied) || !errors.As(err, &p) || p.Problem.Rule == "" || p.Problem.Type != api.ProblemType+"denied" {
		t.Errorf("a viewer: %+v, %v", p, err)
	}
	if _, err := u.PutPool(ctx, "p", api.PoolSpec{Template: "plain"}); !errs.Is(err, errs.Denied) {
		t.Errorf("a user makes a pool: %v", err)
	}
	if _, err := u.Audit(ctx, 0, 10); !errs.Is(err, errs.Denied) {
		t.Errorf("a user reads the log: %v", err)
	}
	if _, err := s.PutSecret(ctx, "api", api.Secret{Data: map[string]string{"token": "xyz"}}); err != nil {
		t.Error(err)
	}
	sec, err := s.Secret(ctx, "api")
	if err != nil || sec.Data != nil || len(sec.Keys) != 1 {
		t.Errorf("a secret: %+v, %v", sec, err)
	}
	sb, err := s.CreateSandbox(ctx, api.CreateSandbox{Template: "plain", Secrets: []api.SecretUse{{Ref: api.SecretRef{Name: "api", Key: "token"}, Env: "TOKEN"}}})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := s.Run(ctx, sb.ID, api.Run{Code: "echo $TOKEN"}); err != nil || res.Stdout != "xyz\n" {
		t.Errorf("with the secret: %+v, %v", res, err)
	}
	page, err := s.AuditPage(ctx, 0, client.AuditFilter{Principal: "v", Action: "sandbox.create"})
	if err != nil || len(page.Entries) != 1 || page.Entries[0].Allowed {
		t.Errorf("the log of the viewer: %+v, %v", page, err)
	}
	var lines bytes.Buffer
	if err := s.ExportAudit(ctx, 0, &lines); err != nil || !bytes.Contains(lines.Bytes(), []byte(`"principal":"v"`)) {
		t.Errorf("export: %v", err)
	}
	if check, err := s.VerifyAudit(ctx); err != nil || check.Broken != 0 || check.Entries == 0 {
		t.Errorf("verify: %+v, %v", check, err)
	}
	if err := s.DeletePrincipal(ctx, "u"); err != nil {
		t.Error(err)
	}
	if _, err := u.Me(ctx); !errs.Is(err, errs.Unauthorized) {
		t.Errorf("a key of nobody: %v", err)
	}
	scoped := s.as(func() string {
		s.create("bucket")
		return s.key("bucket:ro").APIKey
	}())
	if _, err := scoped.Sandboxes(ctx, client.SandboxFilter{}); !errs.Is(err, errs.Denied) {
		t.Errorf("a key of buckets: %v", err)
	}
}

// TestSlowReader doesn't read what it asked for: what runs stands still, holds little memory, and is killed when patience is over.
func TestSlowReader(t *testing.T) {
	s := newService(t, rest.Options{Patience: 300 * time.Millisecond})
	s.template("plain", api.TemplateSpec{})
	s.sandbox("one")
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	in := `{"args":["sh","-c","yes | head -c 200000000; echo"]}`
	fmt.Fprintf(conn, "POST /v1/sandboxes/one/exec HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nAccept: text/event-stream\r\nContent-Length: %d\r\n\r\n%s",
		rootKey, len(in), in)
	begun := false
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		list, err := s.Processes(t.Context(), "one")
		if err != nil {
			t.Fatal(err)
		}
		if begun = begun || len(list) > 0; begun && len(list) == 0 {
			break
		}
	}
	if list, err := s.Processes(t.Context(), "one"); err != nil || len(list) != 0 || !begun {
		t.Errorf("it still runs: %+v, %v", list, err)
	}
	n, _ := io.Copy(io.Discard, conn)
	if n > 100<<20 {
		t.Errorf("%d bytes came, of a stream that nobody read", n)
	}
}

// TestHeaders sends too many of them.
func TestHeaders(t *testing.T) {
	s := newService(t, rest.Options{})
	r := s.do("GET", "/v1/sandboxes", "", "X-Big", strings.Repeat("x", 900<<10))
	if r.Body.Close(); r.StatusCode != 200 && r.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("%s", r.Status)
	}
	r = s.do("GET", "/v1/sandboxes", "", "X-Huge", strings.Repeat("x", 2<<20))
	if r.Body.Close(); r.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("%s", r.Status)
	}
}

// TestTruncatedBody ends in the middle of a request.
func TestTruncatedBody(t *testing.T) {
	s := newService(t, rest.Options{})
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"templ", rootKey)
	conn.(*net.TCPConn).CloseWrite()
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if text := body(t, r); r.StatusCode != 400 || !strings.Contains(text, "cut off") {
		t.Errorf("%s %s", r.Status, text)
	}
}

// TestEventStream resumes a stream of events where another ended.
func TestEventStream(t *testing.T) {
	s := newService(t, rest.Options{})
	s.template("plain", api.TemplateSpec{})
	s.sandbox("one")
	events := func(header ...string) []string {
		r := s.do("GET", "/v1/events?limit=2", "", append(header, "Accept", api.EventStream)...)
		if r.StatusCode != 200 || r.Header.Get("Content-Type") != api.EventStream {
			t.Fatalf("%s %v", r.Status, r.Header)
		}
		var ids []string
		for line := range strings.Lines(body(t, r)) {
			if id, ok := strings.CutPrefix(line, "id: "); ok {
				ids = append(ids, strings.TrimSpace(id))
			}
		}
		return ids
	}
	first := events()
	second := events("Last-Event-ID", first[1])
	if len(first) != 2 || len(second) != 2 || first[0] != "1" || second[0] != "3" {
		t.Errorf("%v, then %v", first, second)
	}
	r := s.do("GET", "/v1/events?limit=3", "", "Accept", api.NDJSON)
	dec, n := json.NewDecoder(r.Body), 0
	for ; dec.More(); n++ {
		var e api.Event
		if err := dec.Decode(&e); err != nil || e.Seq != uint64(n+1) {
			t.Errorf("line %d: %+v, %v", n, e, err)
		}
	}
	if r.Body.Close(); n != 3 {
		t.Errorf("%d lines", n)
	}
	// One that goes on ends with its client, and leaves nothing behind.
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan struct{}, 100)
	done := make(chan error, 1)
	go func() { done <- s.Follow(ctx, 0, "", "", func(*api.Event) error { got <- struct{}{}; return nil }) }()
	<-got
	cancel()
	if err := <-done; !errs.Is(err, errs.Canceled) {
		t.Errorf("follow: %v", err)
	}
}

// TestPages goes through lists a few at a time.
func TestPages(t *testing.T) {
	s := newService(t, rest.Options{})
	s.template("plain", api.TemplateSpec{})
	for i := range 5 {
		s.sandbox(fmt.Sprintf("s%d", i))
		s.create(fmt.Sprintf("bucket-%d", i))
	}
	var names []string
	for f := (client.SandboxFilter{Page: client.Page{Limit: 2}}); ; {
		page, err := s.Sandboxes(t.Context(), f)
		if err != nil || len(page.Sandboxes) > 2 {
			t.Fatalf("%+v, %v", page, err)
		}
		for _, sb := range page.Sandboxes {
			names = append(names, sb.Name)
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			break
		}
	}
	if strings.Join(names, " ") != "s4 s3 s2 s1 s0" {
		t.Errorf("sandboxes: %v", names)
	}
	seen, cursor := 0, ""
	for {
		r := s.do("GET", "/v1/buckets?limit=3&cursor="+cursor, "")
		var page api.Buckets
		if err := json.Unmarshal([]byte(body(t, r)), &page); err != nil || len(page.Buckets) > 3 {
			t.Fatalf("%+v, %v", page, err)
		}
		for _, b := range page.Buckets {
			if strings.HasPrefix(b.Name, "bucket-") {
				seen++
			}
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if seen != 5 {
		t.Errorf("%d buckets", seen)
	}
}

// TestLog sees that what changes something is written down with who did it and where.
func TestLog(t *testing.T) {
	var mu sync.Mutex
	var log bytes.Buffer
	h := slog.NewJSONHandler(writerFunc(func(b []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return log.Write(b)
	}), nil)
	s := newService(t, rest.Options{Log: slog.New(h)})
	s.template("plain", api.TemplateSpec{})
	sb := s.sandbox("one")
	r := s.do("POST", "/v1/sandboxes/one/exec", `{"code":"true"}`)
	r.Body.Close()
	want := `"operation":"post /v1/sandboxes/{id}/exec","status":200`
	for i := 0; ; i++ {
		mu.Lock()
		text := log.String()
		mu.Unlock()
		if strings.Contains(text, want) {
			for _, part := range []string{`"principal":"root"`, `"sandbox":"` + sb.ID + `"`, `"request":"` + r.Header.Get("X-Request-Id") + `"`} {
				if !strings.Contains(text, part) {
					t.Errorf("no %s in %s", part, text)
				}
			}
			return
		}
		if i > 5000 {
			t.Fatalf("no %s in %s", want, text)
		}
		time.Sleep(time.Millisecond)
	}
}
