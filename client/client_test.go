package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentrun.dev/api"
	"agentrun.dev/client"
	"agentrun.dev/errs"
)

// served returns a client of a server that always answers the same.
func served(t *testing.T, status int, contentType, body string) *client.Client {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	t.Cleanup(srv.Close)
	c, err := client.New(srv.URL+"/", "id.secret", client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNew(t *testing.T) {
	for _, bad := range []string{"", "localhost:7070", "ftp://host", "http://", "http://u:p@host", "http://host?x", "http://host#x", "http://ho st", "://"} {
		if _, err := client.New(bad, "", client.Options{}); !errs.Is(err, errs.Invalid) {
			t.Errorf("endpoint %q: %v", bad, err)
		} else if strings.Contains(err.Error(), ":p@") {
			t.Errorf("endpoint %q: the password is shown: %v", bad, err)
		}
	}
	for _, bad := range []string{"a b", "a\nb", "ü"} {
		if _, err := client.New("http://host", bad, client.Options{}); !errs.Is(err, errs.Invalid) {
			t.Errorf("key %q: %v", bad, err)
		}
	}
	if _, err := client.New("https://host", "", client.Options{CA: []byte("no PEM")}); !errs.Is(err, errs.Invalid) {
		t.Errorf("bad certificates: %v", err)
	}
}

// TestErrors checks that each way of not answering has its kind.
func TestErrors(t *testing.T) {
	problem := `{"title":"Conflict","status":409,"detail":"merge: f: 2 conflicts","kind":"conflict","op":"merge","thing":"f","cause":"2 conflicts",` +
		`"hint":"try","merge":{"source":"f","target":"b","base":"5","added":1,"modified":0,"deleted":0,"metadata":0,"moreConflicts":2}}`
	res, err := served(t, 409, api.ProblemJSON, problem).Merge(t.Context(), "f", api.Merge{}, nil)
	if !errs.Is(err, errs.Conflict) || err.Error() != "merge: f: 2 conflicts" || errs.HintOf(err) != "try" || res == nil || res.MoreConflicts != 2 || res.Base != 5 {
		t.Errorf("a problem: %+v, %v", res, err)
	}
	_, err = served(t, 418, api.ProblemJSON, `{"detail":"new: thing","kind":"a kind from the future"}`).Bucket(t.Context(), "b")
	if errs.KindOf(err) != errs.Other || err.Error() != "new: thing" {
		t.Errorf("an unknown kind: %v", err)
	}
	for name, c := range map[string]*client.Client{
		"a page":           served(t, 404, "text/html", "<html>"),
		"a redirect":       served(t, 302, "text/html", ""),
		"not JSON":         served(t, 200, api.JSON, "hello"),
		"half an answer":   served(t, 200, api.JSON, `{"name":`),
		"a broken problem": served(t, 500, api.ProblemJSON, `{`),
	} {
		if _, err := c.Bucket(t.Context(), "b"); !errs.Is(err, errs.Unavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c, err := client.New("http://127.0.0.1:1", "", client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Bucket(t.Context(), "b"); !errs.Is(err, errs.Unavailable) || strings.Contains(err.Error(), "Get ") {
		t.Errorf("no server: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Bucket(ctx, "b"); !errs.Is(err, errs.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestStreams checks that a stream which was cut off isn't taken for a whole one.
func TestStreams(t *testing.T) {
	item := `{"item":{"key":"k","kind":"added"}}` + "\n"
	diff := func(body string, f func(*api.Change) error) (*api.DiffResult, error) {
		return served(t, 200, api.NDJSON, body).Diff(t.Context(), "a", "b", "", f)
	}
	n := 0
	counting := func(*api.Change) error { n++; return nil }
	res, err := diff(item+`{"progress":{"phase":"x","done":1}}`+"\n"+item+`{"result":{"from":{"bucket":"a"},"to":{"bucket":"b"},"added":2,"modified":0,"deleted":0,"metadata":0}}`, counting)
	if err != nil || res.Added != 2 || n != 2 {
		t.Errorf("a whole stream: %+v, %v, %d items", res, err, n)
	}
	for _, cut := range []string{"", item, item + `{"ite`, item + "\n\n"} {
		if _, err := diff(cut, counting); !errs.Is(err, errs.Unavailable) {
			t.Errorf("%q: %v", cut, err)
		}
	}
	if _, err := diff(item+`{"error":{"kind":"corrupt","op":"read","thing":"k","cause":"checksum"}}`, counting); !errs.Is(err, errs.Corrupt) {
		t.Errorf("an error in the middle: %v", err)
	}
	enough := errors.New("enough")
	if _, err := diff(item+item, func(*api.Change) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("the caller's own error: %v", err)
	}
}

// TestPaths checks that odd names reach the server whole.
func TestPaths(t *testing.T) {
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.RequestURI)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer srv.Close()
	c, err := client.New(srv.URL, "", client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"b": "/v1/buckets/b", "a/b": "/v1/buckets/a%2Fb", "..": "/v1/buckets/%2E%2E", "x?y#z": "/v1/buckets/x%3Fy%23z", "ü %": "/v1/buckets/%C3%BC%20%25"} {
		got = nil
		if err := c.DeleteBucket(t.Context(), name, false); err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%q: %q, %v, want %q", name, got, err, want)
		}
	}
}
