// Package rest serves AgentRun's own API, version 1, over HTTP: package api's types to and from bucket and access.
//
// Every request under /v1 carries an API key as its bearer token. A root key may do everything. A scoped key sees the
// buckets that it was made for: it may describe, read and compare them and run commands in them; about any other bucket it
// learns nothing, not even whether it exists. /healthz and /readyz answer anybody.
package rest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/bucket"
	"agentrun.dev/errs"
)

// Options configure the handler; the zero value serves buckets and keys, and no commands.
type Options struct {
	Version string // of the program, as clients are told
	// S3Endpoint is where the same buckets are served over S3, as clients are told. Without a host, as in "https://:7071",
	// it is the host that the client itself used.
	S3Endpoint string
	Region     string // "auto" if empty
	Runner     Runner // runs commands; nil refuses them
	// MaxExecs is how many commands may run at once; 0 is 64. ExecTimeout ends each of them; 0 is an hour.
	MaxExecs    int
	ExecTimeout time.Duration
	// Stored returns what the store takes on the disk, in bytes; nil leaves it out.
	Stored func(ctx context.Context) (payload, index uint64, err error)
	// Ready says why the server shouldn't be sent requests; nil is always ready.
	Ready func() error
	// Metrics is served at /metrics, to root keys only unless OpenMetrics; nil serves none.
	Metrics     http.Handler
	OpenMetrics bool
	Log         *slog.Logger // of failures of the server's own; nil discards them
	Now         func() time.Time
}

// server holds what all handlers share.
type server struct {
	Options
	store   *bucket.Store
	keys    *access.Keys
	started time.Time
	execs   chan struct{} // one token for each running command
}

// New returns the handler of the API. It is done when the requests that it serves are.
func New(store *bucket.Store, keys *access.Keys, o Options) http.Handler {
	if o.Region == "" {
		o.Region = "auto"
	}
	if o.MaxExecs <= 0 {
		o.MaxExecs = 64
	}
	if o.ExecTimeout <= 0 {
		o.ExecTimeout = time.Hour
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &server{Options: o, store: store, keys: keys, started: o.Now().UTC(), execs: make(chan struct{}, o.MaxExecs)}
	mux := http.NewServeMux()
	for pattern, h := range map[string]handler{
		"GET /v1/server":                                s.describe,
		"GET /v1/usage":                                 s.storeUsage,
		"GET /v1/buckets":                               s.listBuckets,
		"POST /v1/buckets":                              s.createBucket,
		"GET /v1/buckets/{name}":                        s.bucketInfo,
		"DELETE /v1/buckets/{name}":                     s.deleteBucket,
		"GET /v1/buckets/{name}/usage":                  s.bucketUsage,
		"GET /v1/buckets/{name}/object":                 s.readObject,
		"GET /v1/buckets/{name}/snapshots":              s.listSnapshots,
		"POST /v1/buckets/{name}/snapshots":             s.takeSnapshot,
		"DELETE /v1/buckets/{name}/snapshots/{version}": s.deleteSnapshot,
		"POST /v1/buckets/{name}/merge":                 s.merge,
		"POST /v1/buckets/{name}/rebase":                s.rebase,
		"GET /v1/diff":                                  s.diff,
		"GET /v1/keys":                                  s.listKeys,
		"POST /v1/keys":                                 s.createKey,
		"DELETE /v1/keys/{id}":                          s.revokeKey,
		"POST /v1/gc":                                   s.gc,
		"POST /v1/fsck":                                 s.fsck,
		"GET /v1/exec":                                  s.exec,
		"/v1/":                                          s.unknown,
	} {
		mux.Handle(pattern, s.authenticated(h))
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answerText(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", s.readyz)
	if o.Metrics != nil {
		if o.OpenMetrics {
			mux.Handle("GET /metrics", o.Metrics)
		} else {
			mux.Handle("GET /metrics", s.authenticated(func(w http.ResponseWriter, r *request) error {
				if err := s.root(r); err != nil {
					return err
				}
				o.Metrics.ServeHTTP(w, r.Request)
				return nil
			}))
		}
	}
	mux.Handle("/", s.handle(s.unknown))
	return mux
}

// request is a request on its way through the handlers. key is set once the caller is known.
type request struct {
	*http.Request
	key   *access.Key
	id    string // names the request in answers and in the log
	begun bool   // part of an answer has been sent
}

// handler answers a request; an error that it returns is answered for it.
type handler func(w http.ResponseWriter, r *request) error

// handle makes an http.Handler of a handler.
func (s *server) handle(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		r := &request{Request: hr, id: requestID()}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("X-Request-Id", r.id)
		defer s.recovered(w, r)
		if err := h(w, r); err != nil {
			s.fail(w, r, err, nil)
		}
	})
}

// recovered turns a defect of ours into an answer, where none has begun, instead of a connection that just ends.
func (s *server) recovered(w http.ResponseWriter, r *request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler {
		panic(v)
	}
	s.Log.Error("a request failed by a defect", "request", r.id, "panic", v, "stack", string(debug.Stack()))
	if r.begun {
		panic(http.ErrAbortHandler)
	}
	s.fail(w, r, errs.Msg(errs.Other, "serve", "", "defect"), nil)
}

// authenticated is handle for callers that prove who they are.
func (s *server) authenticated(h handler) http.Handler {
	return s.handle(func(w http.ResponseWriter, r *request) error {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") || token == "" {
			return errs.Msg(errs.Unauthorized, "authenticate", "", "no API key").
				WithHint("send it as 'Authorization: Bearer <id>.<secret>'; with the command line, --key or AGENTRUN_API_KEY")
		}
		key, err := s.keys.Verify(r.Context(), strings.TrimSpace(token))
		if errs.Is(err, errs.Unauthorized) {
			// The same words for an unknown key and a wrong secret: which of them it was is nobody's business.
			return errs.Msg(errs.Unauthorized, "authenticate", "", "the API key isn't valid")
		}
		if err != nil {
			return err
		}
		if key.Sandbox != "" {
			return errs.Msg(errs.Denied, "authenticate", "", "this key is for the buckets of a sandbox, over S3")
		}
		r.key = key
		return h(w, r)
	})
}

// root refuses whoever may not do everything.
func (s *server) root(r *request) error {
	if !r.key.Root {
		return errs.Msg(errs.Denied, r.op(), "", "this key is limited to its buckets").WithHint("use a root key")
	}
	return nil
}

// allowed describes a bucket to a caller that may do the action in it. A scoped key is told the same about a bucket that
// doesn't exist as about one that isn't its own.
func (s *server) allowed(r *request, a access.Action, name string) (*bucket.Info, error) {
	denied := errs.Msg(errs.Denied, r.op(), name, "this key may not "+a.String()+" this bucket")
	info, err := s.store.Info(r.Context(), name)
	if err != nil {
		if !r.key.Root && (errs.Is(err, errs.NotFound) || errs.Is(err, errs.Invalid)) {
			return nil, denied
		}
		if errs.Is(err, errs.NotFound) {
			return nil, s.suggest(r.Context(), name, err)
		}
		return nil, err
	}
	if !r.key.Allows(a, info.ID) {
		return nil, denied
	}
	return info, nil
}

// op names the operation in errors that don't come from below.
func (r *request) op() string {
	_, pattern, _ := strings.Cut(r.Pattern, " ")
	return strings.ToLower(r.Method) + " " + pattern
}

func (s *server) unknown(_ http.ResponseWriter, r *request) error {
	return errs.Msg(errs.NotFound, "request", r.Method+" "+clip(r.URL.Path), "no such operation")
}

func (s *server) readyz(w http.ResponseWriter, _ *http.Request) {
	if s.Ready != nil {
		if err := s.Ready(); err != nil {
			answerText(w, http.StatusServiceUnavailable, err.Error()+"\n")
			return
		}
	}
	answerText(w, http.StatusOK, "ready\n")
}

func answerText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}

func requestID() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// clip bounds what an error repeats of a request.
func clip(s string) string {
	const max = 120
	if len(s) > max {
		return s[:max] + "…"
	}
	return s
}
