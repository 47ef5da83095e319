package e2b_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"agentrun.dev/api"
)

// inside makes a request for the inside of a sandbox.
func (s *service) inside(method, path, id, port, token string, headers ...string) *answer {
	s.t.Helper()
	h := append([]string{"E2b-Sandbox-Id", id, "E2b-Sandbox-Port", port}, headers...)
	if token != "" {
		h = append(h, "X-Access-Token", token)
	}
	return s.do(method, path, nil, h...)
}

// until waits for what must come.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain for " + what)
		}
	}
}

func TestTokens(t *testing.T) {
	s := newService(t)
	s.template("plain", api.TemplateSpec{})
	a, b := s.create(map[string]any{}), s.create(map[string]any{})
	const file = "/files?path=/etc/passwd"
	for _, c := range []struct {
		id, token string
		want      int
	}{
		{a.SandboxID, a.EnvdAccessToken, 200}, {a.SandboxID, "", 401}, {a.SandboxID, b.EnvdAccessToken, 401}, {a.SandboxID, a.EnvdAccessToken[1:], 401},
		{a.SandboxID, strings.Repeat("A", 4000), 401}, {"0", a.EnvdAccessToken, 502}, {"", a.EnvdAccessToken, 200}, {"", "", 400}, {"UPPER", "", 400},
	} {
		var got *answer
		if c.id == "" {
			got = s.do("GET", file, nil, "X-Access-Token", c.token)
		} else {
			got = s.inside("GET", file, c.id, "49983", c.token)
		}
		if got.status != c.want {
			t.Errorf("sandbox %q, token %.10q: %d %s, want %d", c.id, c.token, got.status, got.body, c.want)
		}
	}
	// A token is its principal's, who must exist and mayn't do more than when it was made.
	key := s.user("alice", api.RoleUser)
	var mine sandbox
	s.do("POST", "/v2/sandboxes", map[string]any{"templateID": "plain"}, "X-API-Key", key).into(t, &mine)
	if got := s.inside("GET", file, mine.SandboxID, "49983", mine.EnvdAccessToken); got.status != 200 {
		t.Fatalf("alice's own: %d %s", got.status, got.body)
	}
	other := s.user("bob", api.RoleUser)
	for _, path := range []string{"/sandboxes/" + mine.SandboxID, "/sandboxes/" + mine.SandboxID + "/metrics"} {
		if got := s.do("GET", path, nil, "X-API-Key", other); got.status != 404 {
			t.Errorf("bob sees %s of alice: %d %s", path, got.status, got.body)
		}
	}
	if got := s.do("POST", "/v2/sandboxes/"+mine.SandboxID+"/connect", "{}", "X-API-Key", other); got.status != 404 {
		t.Errorf("bob connects to alice's: %d %s", got.status, got.body)
	}
	must(t, s.keys.DeletePrincipal(t.Context(), "alice"))
	if got := s.inside("GET", file, mine.SandboxID, "49983", mine.EnvdAccessToken); got.status != 401 {
		t.Errorf("a token of nobody: %d %s", got.status, got.body)
	}
	open := s.create(map[string]any{"secure": false})
	if got := s.inside("GET", file, open.SandboxID, "49983", ""); got.status != 200 || open.EnvdAccessToken != "" {
		t.Errorf("without tokens: %d %s", got.status, got.body)
	}
}

func signature(path, operation, user, token, expires string) string {
	text := path + ":" + operation + ":" + user + ":" + token
	if expires != "" {
		text += ":" + expires
	}
	sum := sha256.Sum256([]byte(text))
	return "v1_" + base64.RawStdEncoding.EncodeToString(sum[:])
}

func TestSignatures(t *testing.T) {
	s := newService(t)
	s.template("plain", api.TemplateSpec{})
	s.create(map[string]any{}) // another one, which it isn't
	sb := s.create(map[string]any{})
	ask := func(path, user, expires, sig string, headers ...string) int {
		q := url.Values{"path": {path}, "signature": {sig}}
		if user != "" {
			q.Set("username", user)
		}
		if expires != "" {
			q.Set("signature_expiration", expires)
		}
		return s.do("GET", "/files?"+q.Encode(), nil, headers...).status
	}
	const p = "/etc/passwd"
	later, before := fmt.Sprint(time.Now().Add(time.Hour).Unix()), fmt.Sprint(time.Now().Add(-time.Hour).Unix())
	host := "49983-" + sb.SandboxID + ".sandboxes.test"
	for i, c := range []struct{ got, want int }{
		{ask(p, "", "", signature(p, "read", "", sb.EnvdAccessToken, "")), 200},
		{ask(p, "user", "", signature(p, "read", "user", sb.EnvdAccessToken, "")), 200},
		{ask(p, "", "", signature(p, "read", "", sb.EnvdAccessToken, ""), "Host", host), 200},
		{ask(p, "", "", signature(p, "read", "", sb.EnvdAccessToken, "")+"="), 200},
		{ask(p, "", later, signature(p, "read", "", sb.EnvdAccessToken, later)), 200},
		{ask(p, "", before, signature(p, "read", "", sb.EnvdAccessToken, before)), 401},
		{ask(p, "", later, signature(p, "read", "", sb.EnvdAccessToken, "")), 401},
		{ask(p, "", "soon", signature(p, "read", "", sb.EnvdAccessToken, "soon")), 401},
		{ask(p, "root", "", signature(p, "read", "", sb.EnvdAccessToken, "")), 401},
		{ask(p, "", "", signature(p, "write", "", sb.EnvdAccessToken, "")), 401},
		{ask(p, "", "", signature("/etc/group", "read", "", sb.EnvdAccessToken, "")), 401},
		{ask(p, "", "", "v1_"), 401},
		{ask(p, "", "", strings.Repeat("=", 10_000)), 401},
	} {
		if c.got != c.want {
			t.Errorf("case %d: %d, want %d", i, c.got, c.want)
		}
	}
}

func TestPorts(t *testing.T) {
	s := newService(t)
	s.template("plain", api.TemplateSpec{})
	open := s.create(map[string]any{})
	if open.TrafficAccessToken != nil {
		t.Error("open ports have a token")
	}
	got := s.do("GET", "/v1/x", nil, "Host", "8080-"+open.SandboxID+".sandboxes.test:7070")
	if got.status != 202 || got.header.Get("Got-Host") != "8080-"+open.SandboxID+".sandboxes.test:7070" {
		t.Errorf("by host: %d %v", got.status, got.header)
	}
	got = s.inside("GET", "/v1/x", open.SandboxID, "8080", "")
	if got.status != 202 || got.header.Get("Got-Host") != "8080-"+open.SandboxID+".sandboxes.test" {
		t.Errorf("by header: %d %v", got.status, got.header)
	}
	closed := s.create(map[string]any{"network": map[string]any{"allowPublicTraffic": false}})
	if closed.TrafficAccessToken == nil {
		t.Fatal("closed ports have no token")
	}
	for token, want := range map[string]int{"": 401, "x": 401, *closed.TrafficAccessToken: 202} {
		if got := s.inside("GET", "/", closed.SandboxID, "8080", "", "E2B-Traffic-Access-Token", token); got.status != want {
			t.Errorf("token %.5q: %d %s", token, got.status, got.body)
		}
	}
	// What AgentRun's own API made is reached by its own way, and by a token only.
	sb, err := s.control.CreateSandbox(t.Context(), root, api.CreateSandbox{Template: "plain"})
	must(t, err)
	if got := s.do("GET", "/", nil, "Host", "8080-"+sb.ID+".sandboxes.test"); got.status != http.StatusTeapot {
		t.Errorf("another's port: %d", got.status)
	}
	if got := s.inside("GET", "/", sb.ID, "8080", ""); got.status != 401 {
		t.Errorf("another's port by header: %d", got.status)
	}
	var c sandbox
	s.call("POST", "/sandboxes/"+sb.ID+"/connect", map[string]any{"timeout": 60}, 200).into(t, &c)
	if got := s.inside("GET", "/files?path=/etc/passwd", sb.ID, "49983", c.EnvdAccessToken); got.status != 200 {
		t.Errorf("with a token: %d %s", got.status, got.body)
	}
}

func TestPauses(t *testing.T) {
	s := newService(t)
	s.template("plain", api.TemplateSpec{})
	sb := s.create(map[string]any{"timeout": 600, "autoPause": true})
	path := "/sandboxes/" + sb.SandboxID
	s.call("POST", path+"/resume", "{}", 409)
	s.call("POST", path+"/pause", "{}", 204)
	s.call("POST", path+"/pause", "{}", 409)
	s.call("POST", path+"/timeout", map[string]int{"timeout": 5}, 404)
	var info sandbox
	s.call("GET", path, nil, 200).into(t, &info)
	if info.State != "paused" {
		t.Errorf("state %s", info.State)
	}
	for _, p := range []string{"/health", "/files?path=/etc/passwd"} {
		if got := s.inside("GET", p, sb.SandboxID, "49983", sb.EnvdAccessToken); got.status != 502 {
			t.Errorf("%s of a paused one: %d %s", p, got.status, got.body)
		}
	}
	s.call("POST", "/v2"+path+"/connect", map[string]int{"timeout": 30}, 201)
	s.call("GET", path, nil, 200).into(t, &info)
	if left := time.Until(info.EndAt); info.State != "running" || left > 31*time.Second || left < 10*time.Second {
		t.Errorf("%s, %v left", info.State, left)
	}
	s.call("POST", "/v2"+path+"/connect", map[string]int{"timeout": 5}, 200)
	s.call("GET", path, nil, 200).into(t, &info)
	if left := time.Until(info.EndAt); left < 8*time.Second {
		t.Errorf("to connect made it shorter: %v", left)
	}
	s.call("POST", path+"/refreshes", map[string]int{"duration": 100}, 204)
	s.call("POST", path+"/timeout", map[string]int{"timeout": 1}, 204)
	until(t, "its sleep", func() bool { s.call("GET", path, nil, 200).into(t, &info); return info.State == "paused" })
	short := s.create(map[string]any{"timeout": 1})
	until(t, "its end", func() bool { return s.do("GET", "/sandboxes/"+short.SandboxID, nil, "X-API-Key", s.key).status == 404 })
}

func TestForksAndSnapshots(t *testing.T) {
	s := newService(t)
	s.template("plain", api.TemplateSpec{})
	sb := s.create(map[string]any{"metadata": map[string]string{"k": "v"}})
	path := "/sandboxes/" + sb.SandboxID
	var forks []struct{ Sandbox *sandbox }
	s.call("POST", path+"/fork", map[string]int{"count": 2, "timeout": 60}, 201).into(t, &forks)
	if len(forks) != 2 || forks[0].Sandbox == nil || forks[0].Sandbox.EnvdAccessToken == sb.EnvdAccessToken {
		t.Fatalf("%+v", forks)
	}
	s.call("POST", path+"/fork", map[string]int{"count": 0}, 400)
	s.call("POST", path+"/fork", map[string]int{"count": 1_000_000}, 400)
	var snap struct {
		SnapshotID string
		Names      []string
	}
	s.call("POST", path+"/snapshots", map[string]string{"name": "keep"}, 201).into(t, &snap)
	for _, id := range []string{snap.SnapshotID, "keep", "team/keep:default"} {
		s.create(map[string]any{"templateID": id})
	}
	var list []struct{ SnapshotID string }
	s.call("GET", "/snapshots?sandboxID="+sb.SandboxID, nil, 200).into(t, &list)
	if len(list) != 1 || list[0].SnapshotID != snap.SnapshotID {
		t.Errorf("%+v", list)
	}
	s.call("GET", "/snapshots?sandboxID=0", nil, 200).into(t, &list)
	if len(list) != 0 {
		t.Errorf("of no sandbox: %+v", list)
	}
	s.call("DELETE", "/templates/"+snap.SnapshotID, nil, 204)
	s.call("DELETE", "/templates/"+snap.SnapshotID, nil, 404)
}

func TestLists(t *testing.T) {
	s := newService(t)
	s.template("plain", api.TemplateSpec{})
	ids := map[string]bool{}
	for i := range 5 {
		ids[s.create(map[string]any{"metadata": map[string]string{"n": fmt.Sprint(i % 2), "sign=&": "a b"}}).SandboxID] = true
	}
	for _, order := range []string{"", "&order=asc"} {
		seen := map[string]bool{}
		next := ""
		for pages := 1; ; pages++ {
			a := s.call("GET", "/v2/sandboxes?limit=2"+order+"&nextToken="+next, nil, 200)
			var list []sandbox
			a.into(t, &list)
			for _, sb := range list {
				seen[sb.SandboxID] = true
			}
			if next = a.header.Get("X-Next-Token"); next == "" {
				if pages != 3 || len(seen) != 5 {
					t.Errorf("%d pages, %d sandboxes", pages, len(seen))
				}
				break
			}
		}
	}
	for query, want := range map[string]int{
		"metadata=" + url.QueryEscape(url.Values{"n": {"0"}}.Encode()):                           3,
		"metadata=" + url.QueryEscape(url.Values{url.QueryEscape("sign=&"): {"a%20b"}}.Encode()): 5,
		"metadata=n%3D7": 0, "state=paused": 0, "state=running,paused": 5, "state=running&state=paused": 5, "template=plain": 5, "template=x": 0,
		"startedAfter=2100-01-01T00:00:00Z": 0,
	} {
		var list []sandbox
		if s.call("GET", "/v2/sandboxes?"+query, nil, 200).into(t, &list); len(list) != want {
			t.Errorf("%s: %d, want %d", query, len(list), want)
		}
	}
	for _, bad := range []string{"limit=0", "limit=x", "limit=1001", "nextToken=x", "nextToken=%00", "state=gone", "startedAfter=soon", "order=up", "metadata=%25"} {
		s.call("GET", "/v2/sandboxes?"+bad, nil, 400)
	}
}

func TestHostile(t *testing.T) {
	s := newService(t)
	s.template("plain", api.TemplateSpec{})
	long := strings.Repeat("x", 30_000)
	for _, body := range []string{`[]`, `{"templateID":`, `{"templateID":7}`, `{"templateID":""}`, `{"templateID":"plain","timeout":-1}`, `{"templateID":"plain","timeout":1e99}`,
		`{"templateID":"plain","timeout":99999999}`, `{"templateID":"plain","mcp":{"x":{}}}`, `{"templateID":"plain","iam":{"tokens":{"a":{}}}}`,
		`{"templateID":"plain","network":{"egressProxy":{"address":"a:1"}}}`, `{"templateID":"plain","autoResume":{"enabled":true}}`,
		`{"templateID":"a b"}`, `{"templateID":"plain","envVars":{"a b":"c"}}`, `{"templateID":"plain","volumeMounts":[{"name":"none","path":"/x"}]}`, "\xff\xfe"} {
		if a := s.do("POST", "/v2/sandboxes", body, "X-API-Key", s.key); a.status != 400 {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	if a := s.do("POST", "/v2/sandboxes", `{"templateID":"plain","metadata":{"a":"`+long+`"}}`, "X-API-Key", s.key); a.status != 413 {
		t.Errorf("long metadata: %d %.100s", a.status, a.body)
	}
	if a := s.do("POST", "/v2/sandboxes", `{"templateID":"`+strings.Repeat("x", 2<<20)+`"}`, "X-API-Key", s.key); a.status != 413 {
		t.Errorf("a long body: %d", a.status)
	}
	for _, key := range []string{"", "x", "e2b_", "e2b_" + strings.Repeat("0", 84), "root.wrong", strings.Repeat("y", 10_000)} {
		if a := s.do("GET", "/v2/sandboxes", nil, "X-API-Key", key); a.status != 401 {
			t.Errorf("key %.10q: %d", key, a.status)
		}
	}
	for _, c := range []struct {
		method, path string
		want         int
	}{{"POST", "/v9/x", 404}, {"POST", "/v2/sandboxes/x/teleport", 404}, {"PUT", "/v2/sandboxes", 405}, {"GET", "/sandboxes/%2e%2e%2fetc", 404}, {"GET", "/sandboxes/" + strings.Repeat("x", 600), 400}} {
		a := s.do(c.method, c.path, nil, "X-API-Key", s.key)
		var e struct {
			Code    int
			Message string
		}
		if json.Unmarshal(a.body, &e) != nil || a.status != c.want || e.Code != c.want || e.Message == "" {
			t.Errorf("%s %.40s: %d %s", c.method, c.path, a.status, a.body)
		}
	}
	if a := s.do("GET", "/v9/x", nil); a.status != http.StatusTeapot {
		t.Errorf("what nobody of E2B asks for: %d", a.status)
	}
}

func TestPages(t *testing.T) {
	s := newService(t)
	s.template("plain", api.TemplateSpec{})
	a := s.do("OPTIONS", "/v2/sandboxes", nil, "Origin", "https://page.example", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "x-api-key")
	if a.status != 204 || a.header.Get("Access-Control-Allow-Origin") != "*" || a.header.Get("Access-Control-Allow-Headers") != "x-api-key" {
		t.Errorf("asked before: %d %v", a.status, a.header)
	}
	a = s.do("GET", "/v2/sandboxes", nil, "Origin", "https://page.example", "X-API-Key", s.key)
	if a.status != 200 || a.header.Get("Access-Control-Allow-Origin") != "*" || a.header.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("%d %v", a.status, a.header)
	}
	sb := s.create(map[string]any{})
	if a = s.inside("OPTIONS", "/", sb.SandboxID, "8080", "", "Origin", "https://page.example", "Access-Control-Request-Method", "POST"); a.status != 202 {
		t.Errorf("a server's own answer: %d", a.status)
	}
}

func TestOnce(t *testing.T) {
	s := newService(t)
	s.template("plain", api.TemplateSpec{})
	var a, b sandbox
	for _, out := range []*sandbox{&a, &b} {
		got := s.do("POST", "/v2/sandboxes", `{"templateID":"plain"}`, "X-API-Key", s.key, "Idempotency-Key", "one")
		if got.status != 201 {
			t.Fatalf("%d %s", got.status, got.body)
		}
		got.into(t, out)
	}
	if a.SandboxID != b.SandboxID || a.EnvdAccessToken != b.EnvdAccessToken {
		t.Error("it was done twice")
	}
	if got := s.do("POST", "/v2/sandboxes", `{"templateID":"plain","timeout":9}`, "X-API-Key", s.key, "Idempotency-Key", "one"); got.status != 422 {
		t.Errorf("another request with the key: %d", got.status)
	}
}

func TestBuild(t *testing.T) {
	s := newService(t)
	var asked struct{ TemplateID, BuildID string }
	s.call("POST", "/v3/templates", map[string]any{"name": "Mine_1:v1", "cpuCount": 1, "memoryMB": 256}, 202).into(t, &asked)
	var b bytes.Buffer
	tw := tar.NewWriter(&b)
	for name, text := range map[string]string{"src/a b.txt": "a", "src/sub/c": "c"} {
		must(t, tw.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}))
		_, err := tw.Write([]byte(text))
		must(t, err)
	}
	must(t, tw.Close())
	const hash = "0123456789abcdef"
	var link struct {
		Present bool
		URL     string
	}
	s.call("GET", "/templates/"+asked.TemplateID+"/files/"+hash, nil, 201).into(t, &link)
	if link.Present {
		t.Error("files that nobody sent are there")
	}
	u, err := url.Parse(link.URL)
	must(t, err)
	if a := s.do("PUT", strings.Replace(u.RequestURI(), hash, "fedcba9876543210", 1), b.String()); a.status != 401 {
		t.Errorf("a link for other files: %d", a.status)
	}
	recipe := map[string]any{"fromImage": "e2bdev/base", "steps": []map[string]any{
		{"type": "ENV", "args": []string{"A", "it's"}},
		{"type": "WORKDIR", "args": []string{"app"}},
		{"type": "COPY", "args": []string{"src", "copied"}, "filesHash": hash},
		{"type": "RUN", "args": []string{`test "$(cat "copied/a b.txt" copied/sub/c)" = ac && test "$A" = "it's" && test "$(id -un)" = user && touch mine`}},
		{"type": "RUN", "args": []string{`test "$(id -u)" = 0 && test "$(pwd)" = /home/user/app`, "root"}},
	}}
	build := "/v2/templates/" + asked.TemplateID + "/builds/" + asked.BuildID
	s.call("POST", build, recipe, 400) // the files aren't there
	if a := s.do("PUT", u.RequestURI(), b.String()); a.status != 200 {
		t.Fatalf("send files: %d %s", a.status, a.body)
	}
	s.call("POST", build, recipe, 202)
	s.call("POST", build, recipe, 404)
	var status struct {
		Status     string
		LogEntries []struct{ Message string }
		Reason     *struct{ Message, Step string }
	}
	until(t, "the build", func() bool {
		s.call("GET", "/templates/"+asked.TemplateID+"/builds/"+asked.BuildID+"/status", nil, 200).into(t, &status)
		return status.Status == "ready" || status.Status == "error"
	})
	if status.Status != "ready" || len(status.LogEntries) == 0 {
		t.Fatalf("%+v %+v", status, status.Reason)
	}
	for _, id := range []string{"Mine_1", "Mine_1:v1", "x/Mine_1:latest", asked.TemplateID} {
		s.create(map[string]any{"templateID": id})
	}
	s.call("POST", "/v2/sandboxes", map[string]any{"templateID": "Mine_1:v2"}, 404)
	s.call("POST", "/templates/tags", map[string]any{"target": "Mine_1:v1", "tags": []string{"good"}}, 201)
	var tags []struct{ Tag, BuildID string }
	s.call("GET", "/templates/Mine_1/tags", nil, 200).into(t, &tags)
	if len(tags) != 3 || tags[1].Tag != "good" || tags[1].BuildID != asked.BuildID {
		t.Errorf("%+v", tags)
	}
	s.call("GET", "/templates/aliases/Mine_1", nil, 200)
	s.call("GET", "/templates/aliases/none", nil, 404)
	s.call("GET", "/templates/Mine_1", nil, 200)
	s.call("DELETE", "/templates/Mine_1", nil, 204)
	// What can't be done is refused before anything is built.
	for _, in := range []map[string]any{
		{}, {"fromImage": "no/such:image"}, {"fromTemplate": "none"}, {"fromImage": "e2bdev/base", "fromImageRegistry": map[string]string{"type": "aws"}},
		{"fromImage": "e2bdev/base", "steps": []map[string]any{{"type": "VOLUME", "args": []string{"/x"}}}},
		{"fromImage": "e2bdev/base", "steps": []map[string]any{{"type": "USER", "args": []string{"nobody; rm -rf /"}}}},
		{"fromImage": "e2bdev/base", "steps": []map[string]any{{"type": "ENV", "args": []string{"A B", "c"}}}},
		{"fromImage": "e2bdev/base", "steps": []map[string]any{{"type": "COPY", "args": []string{"../x", "y"}, "filesHash": hash}}},
		{"fromImage": "e2bdev/base", "steps": []map[string]any{{"type": "COPY", "args": []string{"x", "y", "", "rwx"}, "filesHash": hash}}},
		{"fromImage": "e2bdev/base", "steps": []map[string]any{{"type": "COPY", "args": []string{"x", "y"}, "filesHash": "$(x)abcdef"}}},
	} {
		var a struct{ TemplateID, BuildID string }
		s.call("POST", "/v3/templates", map[string]any{"name": "bad"}, 202).into(t, &a)
		got := s.do("POST", "/v2/templates/"+a.TemplateID+"/builds/"+a.BuildID, in, "X-API-Key", s.key)
		if got.status != 400 && got.status != 404 {
			t.Errorf("%v: %d %s", in, got.status, got.body)
		}
	}
	key := s.user("carol", api.RoleUser)
	var a struct{ TemplateID, BuildID string }
	s.do("POST", "/v3/templates", map[string]any{"name": "hers"}, "X-API-Key", key).into(t, &a)
	if got := s.do("POST", "/v2/templates/hers/builds/"+a.BuildID, map[string]any{"fromImage": "e2bdev/base"}, "X-API-Key", key); got.status != 403 {
		t.Errorf("a user builds: %d %s", got.status, got.body)
	}
}

func TestSecrets(t *testing.T) {
	s := newService(t)
	key := s.user("alice", api.RoleUser)
	as := func(method, path string, body any, want int) *answer {
		t.Helper()
		a := s.do(method, path, body, "X-API-Key", key)
		if a.status != want {
			t.Fatalf("%s %s: %d %s", method, path, a.status, a.body)
		}
		return a
	}
	var out struct {
		SecretID, Name string
		CurrentVersion int
		Metadata       map[string]string
	}
	as("POST", "/secrets", map[string]any{"name": "TOKEN", "value": "hidden", "metadata": map[string]string{"a": "b"}}, 201).into(t, &out)
	if out.Name != "token" || out.CurrentVersion != 1 || !strings.HasPrefix(out.SecretID, "sec_") {
		t.Errorf("%+v", out)
	}
	as("POST", "/secrets", map[string]any{"name": "token", "value": "again"}, 409)
	as("POST", "/secrets/Token", map[string]any{"value": "next"}, 200).into(t, &out)
	if out.CurrentVersion != 2 || out.Metadata["a"] != "b" {
		t.Errorf("%+v", out)
	}
	if a := as("GET", "/secrets/"+out.SecretID, nil, 200); bytes.Contains(a.body, []byte("next")) {
		t.Errorf("the value is told: %s", a.body)
	}
	for _, bad := range []string{"", "sec_x", "a{b}", "a\nb", strings.Repeat("x", 200)} {
		as("POST", "/secrets", map[string]any{"name": bad, "value": "x"}, 400)
	}
	if a := s.do("GET", "/secrets/"+out.SecretID, nil, "X-API-Key", s.user("bob", api.RoleUser)); a.status != 404 {
		t.Errorf("another's secret: %d", a.status)
	}
	as("DELETE", "/secrets/token", nil, 204)
	as("DELETE", "/secrets/token", nil, 404)
}
