package client_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"agentrun.dev/api"
	"agentrun.dev/client"
	"agentrun.dev/errs"
)

// TestRetries checks what is sent again, and that it is the same request then.
func TestRetries(t *testing.T) {
	var mu sync.Mutex
	var got []string
	failures := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.Method+" "+r.URL.Path+" "+r.Header.Get("Idempotency-Key")+" "+string(b))
		if len(got) <= failures {
			if len(got)%2 == 0 {
				panic(http.ErrAbortHandler) // the connection breaks
			}
			w.Header().Set("Content-Type", api.ProblemJSON)
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, `{"kind":"unavailable","detail":"busy"}`)
			return
		}
		w.Header().Set("Content-Type", api.JSON)
		io.WriteString(w, `{"id":"x"}`)
	}))
	defer srv.Close()
	c, err := client.New(srv.URL, "id.secret", client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	try := func(n int, f func() error) (error, []string) {
		mu.Lock()
		got, failures = nil, n
		mu.Unlock()
		err := f()
		mu.Lock()
		defer mu.Unlock()
		return err, got
	}
	ctx := t.Context()
	err, reqs := try(3, func() error { _, err := c.Sandbox(ctx, "x"); return err })
	if err != nil || len(reqs) != 4 {
		t.Errorf("get: %v, %q", err, reqs)
	}
	err, reqs = try(2, func() error { _, err := c.CreateSandbox(ctx, api.CreateSandbox{Pool: "p"}); return err })
	if err != nil || len(reqs) != 3 || reqs[0] != reqs[2] || !strings.HasSuffix(reqs[0], ` {"pool":"p"}`) || strings.Contains(reqs[0], "  ") {
		t.Errorf("create: %v, %q", err, reqs)
	}
	err, reqs = try(1, func() error {
		_, err := c.CreateSandbox(client.WithIdempotencyKey(ctx, "mine"), api.CreateSandbox{Pool: "p"})
		return err
	})
	if err != nil || len(reqs) != 2 || !strings.Contains(reqs[1], " mine ") {
		t.Errorf("create with a key: %v, %q", err, reqs)
	}
	err, reqs = try(1, func() error { _, err := c.Run(ctx, "x", api.Run{Code: "rm x"}); return err })
	if !errs.Is(err, errs.Unavailable) || len(reqs) != 1 {
		t.Errorf("run: %v, %q", err, reqs)
	}
	err, reqs = try(1, func() error { _, err := c.WriteFile(ctx, "x", "f", 0, strings.NewReader("content"), 7); return err })
	if err != nil || len(reqs) != 2 || !strings.HasSuffix(reqs[1], " content") {
		t.Errorf("write: %v, %q", err, reqs)
	}
	err, reqs = try(1, func() error {
		_, err := c.WriteFile(ctx, "x", "f", 0, io.LimitReader(strings.NewReader("content"), 7), 7)
		return err
	})
	if !errs.Is(err, errs.Unavailable) || len(reqs) != 1 {
		t.Errorf("write of what can't be read again: %v, %q", err, reqs)
	}
	err, reqs = try(100, func() error { return c.EndSandbox(ctx, "x") })
	if !errs.Is(err, errs.Unavailable) || len(reqs) != 5 {
		t.Errorf("a server that stays busy: %v, %d requests", err, len(reqs))
	}
}
