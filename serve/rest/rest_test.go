package rest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
	blobs "agentrun.dev/blob/memory"
	"agentrun.dev/bucket"
	"agentrun.dev/client"
	"agentrun.dev/errs"
	records "agentrun.dev/kv/memory"
	"agentrun.dev/serve/rest"
)

// world is a server over memory, and a root client of it.
type world struct {
	*client.Client
	t     testing.TB
	store *bucket.Store
	keys  *access.Keys
	url   string
}

const rootKey = "root.secret-of-root"

func newWorld(t *testing.T, o rest.Options) *world {
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
	srv := httptest.NewServer(rest.New(store, keys, o))
	t.Cleanup(func() {
		srv.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	w := &world{t: t, store: store, keys: keys, url: srv.URL}
	w.Client = w.as(rootKey)
	return w
}

// as returns a client with another key.
func (w *world) as(key string) *client.Client {
	c, err := client.New(w.url, key, client.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}

func (w *world) create(names ...string) {
	w.t.Helper()
	for _, n := range names {
		if _, err := w.CreateBucket(w.t.Context(), api.CreateBucket{Name: n}); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) put(name, key, text string) {
	w.t.Helper()
	b, err := w.store.Bucket(w.t.Context(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	p, err := w.store.Stage(w.t.Context(), strings.NewReader(text), int64(len(text)))
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := b.Apply(w.t.Context(), []bucket.Op{{Kind: bucket.OpPut, Key: key, Object: &bucket.Object{}, Payload: p}}, bucket.ApplyOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) remove(name, key string) {
	w.t.Helper()
	b, err := w.store.Bucket(w.t.Context(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := b.Apply(w.t.Context(), []bucket.Op{{Kind: bucket.OpDelete, Key: key}}, bucket.ApplyOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// key makes a key with scopes such as "a:ro".
func (w *world) key(scopes ...string) *api.Key {
	w.t.Helper()
	in := api.CreateKey{Name: "k"}
	for _, s := range scopes {
		name, role, _ := strings.Cut(s, ":")
		in.Scopes = append(in.Scopes, api.Scope{Bucket: name, Role: role})
	}
	k, err := w.CreateKey(w.t.Context(), in)
	if err != nil {
		w.t.Fatal(err)
	}
	return k
}

// send makes a request by hand and returns the status and the problem, if it is one.
func (w *world) send(method, path, key, contentType, body string) (int, api.Problem) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
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
	var p api.Problem
	if resp.StatusCode >= 400 {
		if ct := resp.Header.Get("Content-Type"); ct != api.ProblemJSON {
			w.t.Errorf("%s %s: %d as %q, want a problem: %s", method, path, resp.StatusCode, ct, b)
		}
		dec := json.NewDecoder(bytes.NewReader(b))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&p); err != nil || p.Status != resp.StatusCode || p.Request == "" || p.Detail == "" {
			w.t.Errorf("%s %s: a malformed problem: %s", method, path, b)
		}
	}
	return resp.StatusCode, p
}

func TestAuthentication(t *testing.T) {
	w := newWorld(t, rest.Options{})
	k := w.key2root()
	for _, c := range []struct {
		name, header string
		status       int
	}{
		{"none", "", 401}, {"other scheme", "Basic cm9vdDpzZWNyZXQ=", 401}, {"empty", "Bearer ", 401}, {"no dot", "Bearer root", 401},
		{"wrong secret", "Bearer root.nonsense", 401}, {"unknown", "Bearer nobody.secret-of-root", 401},
		{"prefix of the secret", "Bearer root.secret-of-roo", 401}, {"root", "Bearer " + rootKey, 200}, {"any case", "bearer " + rootKey, 200},
		{"stored", "Bearer " + k.APIKey, 200}, {"a very long one", "Bearer x." + strings.Repeat("y", 8000), 401},
	} {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", w.url+"/v1/server", nil)
		if c.header != "" {
			req.Header.Set("Authorization", c.header)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != c.status {
			t.Errorf("%s: %s", c.name, resp.Status)
		}
		if c.status == 401 {
			if resp.Header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s: no WWW-Authenticate", c.name)
			}
			if bytes.Contains(b, []byte("secret-of")) || bytes.Contains(b, []byte("nobody")) {
				t.Errorf("%s: the answer tells too much: %s", c.name, b)
			}
		}
	}
}

// key2root makes a stored root key.
func (w *world) key2root() *api.Key {
	w.t.Helper()
	k, err := w.CreateKey(w.t.Context(), api.CreateKey{Name: "second", Root: true})
	if err != nil {
		w.t.Fatal(err)
	}
	return k
}

// TestScopes asks everything in the name of a key for one bucket. What it may not do reads the same whether the other
// bucket exists or not.
func TestScopes(t *testing.T) {
	w := newWorld(t, rest.Options{})
	w.create("mine", "other")
	w.put("mine", "a", "text of mine")
	ro, rw := w.key("mine:ro").APIKey, w.key("mine:rw").APIKey
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/v1/server", "", 200},
		{"GET", "/v1/buckets", "", 200},
		{"GET", "/v1/buckets/mine", "", 200},
		{"GET", "/v1/buckets/mine/snapshots", "", 200},
		{"GET", "/v1/buckets/mine/object?key=a", "", 200},
		{"GET", "/v1/buckets?forksOf=mine", "", 200},
		{"GET", "/v1/buckets?forksOf=%s", "", 403},
		{"GET", "/v1/buckets/%s", "", 403},
		{"GET", "/v1/buckets/%s/usage", "", 403},
		{"GET", "/v1/buckets/%s/snapshots", "", 403},
		{"GET", "/v1/buckets/%s/object?key=a", "", 403},
		{"GET", "/v1/diff?from=mine&to=%s", "", 403},
		{"GET", "/v1/diff?from=%s@5&to=mine", "", 403},
		{"POST", "/v1/buckets", `{"name":"%s"}`, 403},
		{"POST", "/v1/buckets", `{"name":"fork","forkOf":"mine"}`, 403},
		{"DELETE", "/v1/buckets/mine", "", 403},
		{"DELETE", "/v1/buckets/%s?force=true", "", 403},
		{"POST", "/v1/buckets/mine/snapshots", `{}`, 403},
		{"DELETE", "/v1/buckets/mine/snapshots/5", "", 403},
		{"POST", "/v1/buckets/mine/merge", `{"into":"%s"}`, 403},
		{"POST", "/v1/buckets/%s/merge", `{"into":"mine"}`, 403},
		{"POST", "/v1/buckets/mine/rebase", `{}`, 403},
		{"GET", "/v1/keys", "", 403},
		{"POST", "/v1/keys", `{"root":true}`, 403},
		{"DELETE", "/v1/keys/root", "", 403},
		{"GET", "/v1/usage", "", 403},
		{"POST", "/v1/gc", "", 403},
		{"POST", "/v1/fsck", "", 403},
	} {
		for _, key := range []string{ro, rw} {
			var first string
			for _, other := range []string{"other", "ghost", "no bucket's name"} {
				path, body := strings.ReplaceAll(c.path, "%s", strings.ReplaceAll(other, " ", "%20")), strings.ReplaceAll(c.body, "%s", other)
				status, p := w.send(c.method, path, key, api.JSON, body)
				if status != c.status {
					t.Errorf("%s %s %s: %d %s, want %d", c.method, path, body, status, p.Detail, c.status)
				}
				said := strings.ReplaceAll(p.Detail+p.Hint, other, "%s")
				if first == "" {
					first = said
				} else if said != first {
					t.Errorf("%s %s: %q for one bucket, %q for another", c.method, c.path, first, said)
				}
				if !strings.Contains(c.path+c.body, "%s") {
					break
				}
			}
		}
	}
	list, err := w.as(ro).Buckets(t.Context())
	if err != nil || len(list) != 1 || list[0].Name != "mine" {
		t.Errorf("a scoped key sees %v, %v", list, err)
	}
}

// TestScopeEnds checks that a key is void once its bucket is deleted, even if the name comes back.
func TestScopeEnds(t *testing.T) {
	w := newWorld(t, rest.Options{})
	ctx := t.Context()
	w.create("mine")
	k := w.key("mine:rw")
	c := w.as(k.APIKey)
	if _, err := c.Bucket(ctx, "mine"); err != nil {
		t.Fatal(err)
	}
	if err := w.DeleteBucket(ctx, "mine", true); err != nil {
		t.Fatal(err)
	}
	w.create("mine")
	if _, err := c.Bucket(ctx, "mine"); !errs.Is(err, errs.Denied) {
		t.Errorf("the key opens the new bucket: %v", err)
	}
	keys, err := w.Keys(ctx)
	if err != nil || len(keys) != 1 || !keys[0].Scopes[0].Gone || keys[0].Secret != "" || keys[0].APIKey != "" {
		t.Errorf("keys: %+v, %v", keys, err)
	}
	if err := w.RevokeKey(ctx, k.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Server(ctx); !errs.Is(err, errs.Unauthorized) {
		t.Errorf("the revoked key is taken: %v", err)
	}
	if err := w.RevokeKey(ctx, k.ID); !errs.Is(err, errs.NotFound) {
		t.Errorf("revoked twice: %v", err)
	}
	if err := w.RevokeKey(ctx, "root"); !errs.Is(err, errs.Denied) {
		t.Errorf("the root key was revoked: %v", err)
	}
}

// TestExpiry checks that a key and a snapshot end by themselves.
func TestExpiry(t *testing.T) {
	w := newWorld(t, rest.Options{})
	w.create("mine")
	for _, n := range []int64{-1, 1 << 40} {
		if _, err := w.CreateKey(t.Context(), api.CreateKey{Root: true, Lifetime: n}); !errs.Is(err, errs.Invalid) {
			t.Errorf("a key's lifetime of %d: %v", n, err)
		}
		if _, err := w.TakeSnapshot(t.Context(), "mine", api.TakeSnapshot{Lifetime: n}); !errs.Is(err, errs.Invalid) {
			t.Errorf("a snapshot's lifetime of %d: %v", n, err)
		}
	}
	before := time.Now()
	k, err := w.CreateKey(t.Context(), api.CreateKey{Root: true, Lifetime: 60})
	if err != nil || k.Expires.Before(before.Add(59*time.Second)) || k.Expires.After(time.Now().Add(61*time.Second)) {
		t.Errorf("%+v, %v", k, err)
	}
	s, err := w.TakeSnapshot(t.Context(), "mine", api.TakeSnapshot{Name: "soon", Lifetime: 60})
	if err != nil || s.Name != "soon" || s.Expires.Before(before.Add(59*time.Second)) {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestStrict sends what is malformed: everything is refused, with where it is wrong.
func TestStrict(t *testing.T) {
	w := newWorld(t, rest.Options{})
	w.create("mine")
	for _, c := range []struct {
		method, path, contentType, body string
		status                          int
		says                            string
	}{
		{"POST", "/v1/buckets", api.JSON, `{"name":"abc","colour":"red"}`, 400, `unknown field "colour"`},
		{"POST", "/v1/buckets", api.JSON, "{\n \"name\":\n  5}", 400, "name, line 3, column"},
		{"POST", "/v1/buckets", api.JSON, `{"name":"abc"} {}`, 400, "something follows"},
		{"POST", "/v1/buckets", api.JSON, `{"name":"abc"`, 400, "ends in the middle"},
		{"POST", "/v1/buckets", api.JSON, `{"name":abc}`, 400, "line 1, column 9"},
		{"POST", "/v1/buckets", api.JSON, ``, 400, "name, line 1, column 3: missing"},
		{"POST", "/v1/buckets", api.JSON, `{"name":""}`, 400, "3 to 63"},
		{"POST", "/v1/buckets", api.JSON, `{"name":null}`, 400, "null has no place here"},
		{"POST", "/v1/buckets", api.JSON, `{"Name":"abc"}`, 400, `unknown field "Name"`},
		{"POST", "/v1/buckets", api.JSON, `{"name":"abc","name":"abd"}`, 400, "given twice"},
		{"POST", "/v1/buckets", api.JSON, "{\"name\":\"ab\xff\"}", 400, "not UTF-8"},
		{"GET", "/v1/buckets?limit=0", "", "", 400, "from 1 to 1000"},
		{"GET", "/v1/buckets?cursor=x", "", "", 400, "not one of this list"},
		{"GET", "/v1/buckets?forksOf=%zz", "", "", 400, "query"},
		{"GET", "/v1/buckets/%ff", "", "", 400, "UTF-8"},
		{"GET", "/v1/sandboxes", "", "", 501, "no sandbox service"},
		{"POST", "/v1/buckets", "text/plain", `{"name":"abc"}`, 400, "want application/json"},
		{"POST", "/v1/buckets", "", `{"name":"abc"}`, 400, "want application/json"},
		{"POST", "/v1/buckets", api.JSON, `{"name":"` + strings.Repeat("x", api.MaxBody) + `"}`, 413, "more than 1048576 bytes"},
		{"POST", "/v1/buckets", api.JSON, `{"name":"abc","at":"5"}`, 400, "'at' goes with 'forkOf'"},
		{"POST", "/v1/buckets", api.JSON, `{"name":"abc","forkOf":"mine","versioning":true}`, 400, "its parent's settings"},
		{"POST", "/v1/buckets", api.JSON, `{"name":"abc","forkOf":"mine","at":"never"}`, 404, "never"},
		{"POST", "/v1/buckets", api.JSON, `{"name":"abc","forkOf":"nine"}`, 404, "nine"},
		{"GET", "/v1/buckets?colour=red", "", "", 400, "colour: no such parameter"},
		{"GET", "/v1/buckets/mine?x=1", "", "", 400, "no such parameter"},
		{"DELETE", "/v1/buckets/mine?force=maybe", "", "", 400, "force: want true or false"},
		{"DELETE", "/v1/buckets/mine?force=true&force=false", "", "", 400, "more than once"},
		{"GET", "/v1/diff?from=mine", "", "", 400, "to: missing"},
		{"POST", "/v1/buckets/mine/merge", api.JSON, `{"conflicts":"maybe"}`, 400, "want fail, ours or theirs"},
		{"POST", "/v1/buckets/mine/merge", api.JSON, `{}`, 400, "isn't a fork"},
		{"POST", "/v1/buckets/mine/rebase", api.JSON, `{"into":"mine"}`, 400, "on its parent"},
		{"POST", "/v1/keys", api.JSON, `{}`, 400, "want either scopes, or a principal, or root"},
		{"POST", "/v1/keys", api.JSON, `{"root":true,"scopes":[{"bucket":"mine","role":"ro"}]}`, 400, "want either scopes, or a principal, or root"},
		{"POST", "/v1/keys", api.JSON, `{"scopes":[{"bucket":"mine","role":"admin"}]}`, 400, "want ro or rw"},
		{"POST", "/v1/keys", api.JSON, `{"scopes":[{"bucket":"nine","role":"ro"}]}`, 404, "nine"},
		{"POST", "/v1/keys", api.JSON, `{"scopes":[{"bucket":"mine","role":"ro"},{"bucket":"mine","role":"rw"}]}`, 400, "twice"},
		{"POST", "/v1/gc", api.JSON, `{"hard":true}`, 400, `unknown field "hard"`},
		{"DELETE", "/v1/buckets/mine/snapshots/nothing", "", "", 404, "no such snapshot"},
		{"GET", "/v1/buckets/mine/object?key=nothing", "", "", 404, "nothing"},
		{"GET", "/v1/buckets/mine/object?key=a&at=never", "", "", 404, "never"},
		{"PATCH", "/v1/buckets/mine", api.JSON, `{}`, 405, "GET, HEAD, DELETE"},
		{"GET", "/v2/buckets", "", "", 404, "no such operation"},
		{"GET", "/v1/exec", "", "", 501, "runs no commands"},
	} {
		status, p := w.send(c.method, c.path, rootKey, c.contentType, c.body)
		if status != c.status || !strings.Contains(p.Detail, c.says) {
			t.Errorf("%s %s %.60s: %d %q, want %d %q", c.method, c.path, c.body, status, p.Detail, c.status, c.says)
		}
	}
	if _, p := w.send("GET", "/v1/buckets/nine", rootKey, "", ""); p.Hint != "did you mean 'mine'?" {
		t.Errorf("hint %q", p.Hint)
	}
}

// TestLife goes through the life of buckets, forks and snapshots with the client.
func TestLife(t *testing.T) {
	w := newWorld(t, rest.Options{Version: "1.2.3", S3Endpoint: "https://:7071"})
	ctx := t.Context()
	s, err := w.Server(ctx)
	if err != nil || s.Version != "1.2.3" || s.Region != "auto" || s.S3Endpoint != "https://127.0.0.1:7071" {
		t.Errorf("server %+v, %v", s, err)
	}
	w.create("base")
	w.put("base", "dir/a", "one")
	snap, err := w.TakeSnapshot(ctx, "base", api.TakeSnapshot{Name: "first"})
	if err != nil || snap.Objects != 1 || snap.Bytes != 3 || snap.Version == 0 {
		t.Fatalf("snapshot %+v, %v", snap, err)
	}
	w.put("base", "dir/a", "three")
	w.put("base", "b", "")
	for _, c := range []struct {
		at      string
		objects uint64
	}{{"", 2}, {"first", 1}, {snap.Version.String(), 1}, {snap.Created.Format(time.RFC3339Nano), 1}} {
		name := fmt.Sprintf("fork-%d-%d", c.objects, len(c.at))
		f, err := w.CreateBucket(ctx, api.CreateBucket{Name: name, ForkOf: "base", At: c.at})
		if err != nil || f.Objects != c.objects || f.Parent == nil || f.Parent.Name != "base" {
			t.Errorf("fork at %q: %+v, %v", c.at, f, err)
			continue
		}
		r, err := w.ReadObject(ctx, name, "", "dir/a")
		if err != nil {
			t.Errorf("read fork at %q: %v", c.at, err)
			continue
		}
		b, err := io.ReadAll(r)
		r.Close()
		if want := map[uint64]string{1: "one", 2: "three"}[c.objects]; err != nil || string(b) != want {
			t.Errorf("fork at %q holds %q, %v", c.at, b, err)
		}
	}
	if r, err := w.ReadObject(ctx, "base", "first", "dir/a"); err != nil {
		t.Error(err)
	} else if b, err := io.ReadAll(r); err != nil || string(b) != "one" {
		t.Errorf("base@first holds %q, %v", b, err)
	}
	forks, err := w.Forks(ctx, "base")
	if err != nil || len(forks) != 4 || !slices.IsSortedFunc(forks, func(a, b api.Bucket) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("%d forks, %v", len(forks), err)
	}
	if err := w.DeleteBucket(ctx, "base", false); !errs.Is(err, errs.NotEmpty) {
		t.Errorf("deleted with objects: %v", err)
	}
	if err := w.DeleteSnapshot(ctx, "base", "first"); err != nil {
		t.Error(err)
	}
	if list, err := w.Snapshots(ctx, "base"); err != nil || len(list) != 0 {
		t.Errorf("snapshots %v, %v", list, err)
	}
	if err := w.DeleteBucket(ctx, "base", true); err != nil {
		t.Error(err)
	}
	if _, err := w.Bucket(ctx, "base"); !errs.Is(err, errs.NotFound) {
		t.Errorf("a deleted bucket: %v", err)
	}
	if list, err := w.Buckets(ctx); err != nil || len(list) != 4 {
		t.Errorf("%d buckets, %v", len(list), err)
	}
}

func TestProbes(t *testing.T) {
	ready := error(nil)
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "numbers") })
	w := newWorld(t, rest.Options{Ready: func() error { return ready }, Metrics: page})
	get := func(path, key string) (int, string) {
		req, _ := http.NewRequestWithContext(context.Background(), "GET", w.url+path, nil)
		if key != "" {
			req.Header.Set("Authorization", "Bearer "+key)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b)
	}
	if s, b := get("/healthz", ""); s != 200 || b != "ok\n" {
		t.Error(s, b)
	}
	if s, b := get("/readyz", ""); s != 200 || b != "ready\n" {
		t.Error(s, b)
	}
	ready = errs.Msg(errs.Unavailable, "serve", "", "ending")
	if s, b := get("/readyz", ""); s != 503 || b != "serve: ending\n" {
		t.Error(s, b)
	}
	w.create("mine")
	for key, want := range map[string]int{"": 401, w.key("mine:rw").APIKey: 403, rootKey: 200} {
		if s, _ := get("/metrics", key); s != want {
			t.Errorf("metrics with %q: %d, want %d", key, s, want)
		}
	}
}
