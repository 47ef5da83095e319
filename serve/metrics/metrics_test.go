package metrics_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	blobs "agentrun.dev/blob/memory"
	"agentrun.dev/bucket"
	records "agentrun.dev/kv/memory"
	"agentrun.dev/serve/metrics"
)

func TestMetrics(t *testing.T) {
	store, err := bucket.Open(t.Context(), bucket.Options{KV: records.New(), Blobs: blobs.New(blobs.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := store.Create(t.Context(), "base", bucket.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Fork(t.Context(), "base", "fork", bucket.ForkOptions{}); err != nil {
		t.Fatal(err)
	}
	m := metrics.New(store, metrics.Options{Version: "1.2.3", Stored: func(context.Context) (uint64, uint64, error) { return 12, 34, nil }})
	h := m.Wrap("test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/teapot":
			w.WriteHeader(http.StatusTeapot)
		case "/abort":
			panic(http.ErrAbortHandler)
		case "/file": // copied by ReadFrom
			io.Copy(w, io.LimitReader(neverEnding{}, 1000))
		default:
			w.Write(b)
		}
		http.NewResponseController(w).Flush()
	}))
	srv := httptest.NewServer(h)
	defer srv.Close()
	for _, c := range []struct{ method, path, body string }{
		{"PUT", "/", "12345"}, {"PUT", "/", "67890"}, {"GET", "/teapot", ""}, {"BREW", "/teapot", ""}, {"GET", "/abort", ""}, {"GET", "/file", ""},
	} {
		req, _ := http.NewRequestWithContext(t.Context(), c.method, srv.URL+c.path, strings.NewReader(c.body))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			if c.path != "/abort" {
				t.Fatal(err)
			}
			continue
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	srv.Close() // all are counted once they are answered
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	page := rec.Body.String()
	for _, want := range []string{
		`agentrun_http_requests_total{method="PUT",protocol="test",status="200"} 2`,
		`agentrun_http_requests_total{method="GET",protocol="test",status="418"} 1`,
		`agentrun_http_requests_total{method="other",protocol="test",status="418"} 1`,
		`agentrun_http_received_bytes_total{protocol="test"} 10`,
		`agentrun_http_sent_bytes_total{protocol="test"} 1010`,
		`agentrun_http_requests_in_flight{protocol="test"} 0`,
		`agentrun_http_request_seconds_count{method="PUT",protocol="test"} 2`,
		`agentrun_build_info{version="1.2.3"} 1`,
		"agentrun_buckets 2", "agentrun_forks 1", "agentrun_objects 0", "agentrun_open_buckets ", "agentrun_commits_total ",
		`agentrun_stored_bytes{kind="payload"} 12`, `agentrun_stored_bytes{kind="index"} 34`, "go_goroutines ", "process_resident_memory_bytes ",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in:\n%s", want, page)
		}
	}
	if strings.Contains(page, "base") || strings.Contains(page, "BREW") {
		t.Error("the page tells names")
	}
}

type neverEnding struct{}

func (neverEnding) Read(b []byte) (int, error) { return len(b), nil }
