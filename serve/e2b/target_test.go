package e2b

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"agentrun.dev/api"
)

func TestFind(t *testing.T) {
	h := &Handler{host: "sandboxes.test"}
	for _, c := range []struct {
		host, path, id, port string
		want                 target
		bad                  bool
	}{
		{path: "/v1/sandboxes"},
		{path: "/"}, {path: "/metrics"}, {path: "/filesystem"}, {path: "/sandboxesandmore"},
		{path: "/sandboxes", want: target{kind: plane}},
		{path: "/v2/sandboxes", want: target{kind: plane}},
		{path: "/v3/anything", want: target{kind: plane}},
		{path: "/volumecontent/x/file", want: target{kind: plane}},
		{path: "/files", want: target{kind: within, port: envdPort}},
		{path: "/process.Process/Start", want: target{kind: within, port: envdPort}},
		{path: "/execute", want: target{kind: within, port: interpreterPort}},
		{path: "/execute", id: "abc", port: "49999", want: target{kind: within, sandbox: "abc", port: interpreterPort}},
		{path: "/v1/x", id: "abc", want: target{kind: within, sandbox: "abc", port: envdPort}},
		{path: "/", id: "abc", port: "3000", want: target{kind: within, sandbox: "abc", port: 3000}},
		{path: "/", id: "abc", port: "0", bad: true}, {path: "/", id: "abc", port: "65536", bad: true}, {path: "/", id: "abc", port: "-1", bad: true},
		{path: "/", id: "abc", port: "+80", bad: true}, {path: "/", id: "abc", port: "080", bad: true}, {path: "/", id: "abc", port: "80x", bad: true},
		{path: "/", id: "ABC", bad: true}, {path: "/", id: "a/b", bad: true}, {path: "/", id: "../x", bad: true}, {path: "/", id: strings.Repeat("a", 64), bad: true},
		{host: "api.sandboxes.test", path: "/anything", want: target{kind: plane}},
		{host: "API.Sandboxes.Test:7070", path: "/sandboxes", want: target{kind: plane}},
		{host: "3000-abc-def.sandboxes.test:7070", path: "/sandboxes", want: target{kind: within, sandbox: "abc-def", port: 3000, byHost: true}},
		{host: "49983-abc.sandboxes.test.", path: "/health", want: target{kind: within, sandbox: "abc", port: envdPort, byHost: true}},
		{host: "99999-abc.sandboxes.test", path: "/", bad: true},
		{host: "www.sandboxes.test", path: "/"}, {host: "sandboxes.test", path: "/"}, {host: "3000-abc.elsewhere.test", path: "/"}, {host: "3000-abc.xsandboxes.test", path: "/"},
	} {
		r := &http.Request{Method: "GET", Host: c.host, URL: &url.URL{Path: c.path}, Header: http.Header{}}
		if c.id != "" {
			r.Header.Set(sandboxHeader, c.id)
			r.Header.Set(portHeader, c.port)
		}
		got, err := h.find(r)
		if (err != nil) != c.bad || err == nil && got != c.want {
			t.Errorf("%s%s %s %s: %+v, %v; want %+v", c.host, c.path, c.id, c.port, got, err, c.want)
		}
	}
}

func TestMatch(t *testing.T) {
	table := (&Handler{}).routes()
	for _, c := range []struct{ method, path, want, vars string }{
		{"GET", "/sandboxes", "/sandboxes", ""},
		{"GET", "/sandboxes/", "/sandboxes", ""},
		{"GET", "/sandboxes/metrics", "/sandboxes/metrics", ""},
		{"GET", "/sandboxes/x", "/sandboxes/{id}", "x"},
		{"GET", "/templates/aliases/tags", "/templates/aliases/{id}", "tags"},
		{"GET", "/templates/a%2Fb:c", "/templates/{id}", "a/b:c"},
		{"GET", "/templates/x/tags", "/templates/{id}/tags", "x"},
		{"DELETE", "/templates/tags", "/templates/tags", ""},
		{"GET", "/templates//tags", "", ""}, {"GET", "//", "", ""}, {"GET", "/sandboxes/x/y/z", "", ""}, {"GET", "/v2/volumes", "", ""},
		{"GET", "/sandboxes/%zz", "", ""},
	} {
		rt, vars, _, err := match(table, c.method, c.path)
		if err != nil || (rt == nil) != (c.want == "") || rt != nil && (rt.path != c.want || vars["id"] != c.vars) {
			t.Errorf("%s %s: %+v, %v, %v", c.method, c.path, rt, vars, err)
		}
	}
	if _, _, methods, _ := match(table, "PUT", "/sandboxes/x"); len(methods) != 2 {
		t.Errorf("methods of a sandbox: %v", methods)
	}
	if _, _, _, err := match(table, "GET", "/sandboxes/"+strings.Repeat("x", maxVar+1)); err == nil {
		t.Error("a name of any length")
	}
}

func FuzzFind(f *testing.F) {
	f.Add("3000-abc.sandboxes.test", "/files", "", "", "GET")
	f.Add("", "/templates/a%2Fb/tags", "abc", "49983", "PATCH")
	f.Add("api.sandboxes.test", "//%00/", "", "", "DELETE")
	h := &Handler{host: "sandboxes.test"}
	table := h.routes()
	f.Fuzz(func(t *testing.T, host, path, id, port, method string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host, r.Method, r.URL = host, method, &url.URL{Path: path}
		r.Header = http.Header{sandboxHeader: {id}, portHeader: {port}}
		got, err := h.find(r)
		if err == nil && got.kind == within && (got.port < 1 || got.port > 65535 || got.sandbox != "" && !validName(got.sandbox)) {
			t.Errorf("%q %q %q %q: %+v", host, path, id, port, got)
		}
		rt, vars, _, err := match(table, method, r.URL.EscapedPath())
		if err == nil && rt != nil {
			for _, v := range vars {
				if v == "" || len(v) > maxVar {
					t.Errorf("%q: a variable %q", path, v)
				}
			}
		}
	})
}

func FuzzParsers(f *testing.F) {
	f.Add("team/name:tag", `{"allowOut":["*"],"denyOut":["0.0.0.0/0"]}`, "metadata=a%253Db%26c&state=running,paused&limit=5&nextToken=MWE")
	f.Add("My_Template", `{"rules":{"x":[{"transform":{}}]}}`, "startedAfter=2026-01-01T00:00:00Z")
	f.Add("-", `[]`, "limit=-1&metadata=%")
	f.Fuzz(func(t *testing.T, name, network, query string) {
		if c, err := readName(name); err == nil && (c.name == "" || len(c.name) > 63 || !isLabelName(c.name)) {
			t.Errorf("%q: %q", name, c.name)
		}
		if n, err := readNetwork([]byte(network)); err == nil {
			if p := n.policy(nil); p != nil && p.Egress != "" && p.Egress != "allow" {
				t.Errorf("%q: %+v", network, p)
			}
		}
		q, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		if p, err := readPage(q); err == nil && (p.limit < 1 || p.limit > maxPage) {
			t.Errorf("%q: %+v", query, p)
		}
		_, _ = readFilter(q)
	})
}

func TestReadName(t *testing.T) {
	for text, want := range map[string]called{
		"base": {name: "base", text: "base"}, "team/base:v1": {name: "base", text: "base", tag: "v1"}, "base:latest": {name: "base", text: "base"},
		"code-interpreter-v1": {name: "code-interpreter-v1", text: "code-interpreter-v1"},
	} {
		if got, err := readName(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	a, err := readName("My_Template")
	b, err2 := readName("my-template")
	if err != nil || err2 != nil || a.name == b.name || !strings.HasPrefix(a.name, "my-template-") {
		t.Errorf("%+v, %+v, %v, %v", a, b, err, err2)
	}
	for _, text := range []string{"", "a b", "a/", ":x", "a\x00", "é", strings.Repeat("a", 200), "a;rm"} {
		if c, err := readName(text); err == nil {
			t.Errorf("%q is taken as %+v", text, c)
		}
	}
}

func TestOptions(t *testing.T) {
	long := strings.Repeat("ü=\n", 200)
	o := options{Insecure: true, Guests: []string{"a"}, Network: []byte(`{"allowOut":["x"]}`)}
	meta := map[string]string{"plain": "yes", "e2b.made": "no", "with=sign": "x", "long": long, "": "empty"}
	l, err := o.labels(meta)
	if err != nil {
		t.Fatal(err)
	}
	sb := sandboxWith(l)
	got := optionsOf(sb)
	if !got.ours || !got.Insecure || len(got.Guests) != 1 || string(got.Network) != `{"allowOut":["x"]}` {
		t.Errorf("%+v", got)
	}
	back := metadataOf(sb)
	if len(back) != len(meta) {
		t.Errorf("%d of %d metadata", len(back), len(meta))
	}
	for k, v := range meta {
		if back[k] != v {
			t.Errorf("%q: %q", k, back[k])
		}
	}
	for k, v := range l {
		if len(v) > piece || strings.ContainsAny(v, "\x00\n") || strings.Contains(k, "=") {
			t.Errorf("a label %q that can't be one", k)
		}
	}
	if _, err := o.labels(map[string]string{"k": strings.Repeat("x", 20_000)}); err == nil {
		t.Error("metadata of any length")
	}
	got.Closed = true
	change, err := got.change(sb)
	if err != nil || len(change) == 0 {
		t.Fatal(change, err)
	}
	for k, v := range change {
		if v == nil {
			delete(sb.Labels, k)
		} else {
			sb.Labels[k] = *v
		}
	}
	if o := optionsOf(sb); !o.Closed || !o.Insecure {
		t.Errorf("after a change: %+v", o)
	}
}

func TestPolicy(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		in       string
		internet *bool
		want     string // egress, allow, deny
	}{
		{``, nil, "nil"}, {``, &yes, "nil"}, {``, &no, "||"}, {`{"allowOut":["a.org"]}`, nil, "nil"}, {`{"allowOut":["a.org"]}`, &no, "|a.org|"},
		{`{"denyOut":["0.0.0.0/0"],"allowOut":["a.org","1.1.1.1"]}`, nil, "|a.org 1.1.1.1|"}, {`{"denyOut":["8.8.8.8"]}`, nil, "allow||8.8.8.8"},
		{`{"denyOut":["::/0"],"allowOut":["0.0.0.0/0"]}`, nil, "|*|"},
	} {
		n, err := readNetwork([]byte(c.in))
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		got := "nil"
		if p := n.policy(c.internet); p != nil {
			got = p.Egress + "|" + strings.Join(p.Allow, " ") + "|" + strings.Join(p.Deny, " ")
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.in, got, c.want)
		}
	}
	for _, bad := range []string{`[]`, `{"denyOut":["a.org"]}`, `{"egressProxy":{"address":"x:1"}}`, `{"maskRequestHost":"x"}`, `{"httpsPorts":[1]}`,
		`{"rules":{"a.org":[{"transform":{"headers":{"A":"b"}}}]}}`, `{"rules":{"a.org":[1]}}`, `{"allowOut":7}`} {
		if _, err := readNetwork([]byte(bad)); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

func sandboxWith(l api.Labels) *api.Sandbox { return &api.Sandbox{Labels: l} }
