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
	"net/url"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"agentrun.dev"
	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/bucket"
	"agentrun.dev/control"
	"agentrun.dev/errs"
)

// Options configure the handler; the zero value serves buckets and keys, and no commands.
type Options struct {
	Version string // of the program, as clients are told
	// S3Endpoint is where the same buckets are served over S3, as clients are told. Without a host, as in "https://:7071",
	// it is the host that the client itself used.
	S3Endpoint string
	Region     string           // "auto" if empty
	Control    *control.Control // the sandbox service; nil refuses its operations
	Guard      *access.Guard    // decides about principals, keys and secrets, and holds the audit log; required with Control
	Runner     Runner           // runs commands over buckets; nil refuses them
	// MaxExecs is how many commands may run at once over buckets; 0 is 64. MaxRuns is how many may in sandboxes of the service;
	// 0 is 4096. ExecTimeout ends each of them; 0 is an hour.
	MaxExecs, MaxRuns int
	ExecTimeout       time.Duration
	MaxUpload         int64 // bytes of a file that is sent into a sandbox; 0 is 5 GiB
	// Patience is how long a client may take to accept what is written at once; 0 is a minute.
	Patience time.Duration
	// Ports serves what listens in sandboxes; nil: nothing of it is reached. PortHost is a host, such as "localhost", beneath which
	// {port}-{id}.HOST is such a server; empty: there is only the path form.
	Ports    Ports
	PortHost string
	// Origins are those of browsers' pages that may use the API, such as "https://console.example"; none: no page may.
	Origins []string
	// Stored returns what the store takes on the disk, in bytes; nil leaves it out.
	Stored func(ctx context.Context) (payload, index uint64, err error)
	// Ready says why the server shouldn't be sent requests; nil is always ready.
	Ready func() error
	// Metrics is served at /metrics, to root keys only unless OpenMetrics; nil serves none.
	Metrics     http.Handler
	OpenMetrics bool
	// MCP is served at /mcp, and finds out itself who asks; nil serves none.
	MCP http.Handler
	Log *slog.Logger // of failures of the server's own, and of every request that changes something; nil discards them
	Now func() time.Time
}

// server holds what all handlers share.
type server struct {
	Options
	store    *bucket.Store
	keys     *access.Keys
	started  time.Time
	patience time.Duration
	execs    chan struct{} // one token for each running command over buckets
	runs     chan struct{} // one token for each running command in a sandbox of the service
	held     held
	kept     kept
	shapes   *shapes
	buffers  sync.Pool // *[]byte of sendBuffer bytes
	table    []route
	routes   *http.ServeMux
	document func() object // of openapi.json
}

// New returns the handler of the API. It is done when the requests that it serves are.
func New(store *bucket.Store, keys *access.Keys, o Options) http.Handler {
	o.defaults()
	s := &server{Options: o, store: store, keys: keys, started: o.Now().UTC(), patience: o.Patience, shapes: &shapes{},
		execs: make(chan struct{}, o.MaxExecs), runs: make(chan struct{}, o.MaxRuns), routes: http.NewServeMux()}
	s.table = s.tableOf()
	s.document = sync.OnceValue(s.describeAll)
	for i := range s.table {
		rt := &s.table[i]
		s.routes.Handle(rt.pattern, s.serve(rt))
	}
	mux := s.routes
	mux.Handle("/v1/", s.authenticated(s.unknown))
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
	if o.MCP != nil {
		mux.Handle("/mcp", o.MCP)
	}
	mux.Handle("/", s.handle(s.unknown))
	return s.ports(s.cors(mux))
}

func (o *Options) defaults() {
	if o.Region == "" {
		o.Region = "auto"
	}
	if o.MaxExecs <= 0 {
		o.MaxExecs = 64
	}
	if o.MaxRuns <= 0 {
		o.MaxRuns = 4096
	}
	if o.ExecTimeout <= 0 {
		o.ExecTimeout = time.Hour
	}
	if o.MaxUpload <= 0 {
		o.MaxUpload = 5 << 30
	}
	if o.Patience <= 0 {
		o.Patience = writeDeadline
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

// request is a request on its way through the handlers. key and caller are set once it is known who asks.
type request struct {
	*http.Request
	key     *access.Key
	caller  *access.Caller // nil for a key that belongs to no principal
	q       url.Values     // the query, as the route has it
	id      string         // names the request in answers and in the log
	begun   bool           // part of an answer has been sent
	body    []byte         // that was read already; see once
	read    bool           // body was read
	shapes  *shapes
	sandbox string // id of the one that it is about, once that is known
}

// handler answers a request; an error that it returns is answered for it.
type handler func(w http.ResponseWriter, r *request) error

// serve makes an http.Handler of a route.
func (s *server) serve(rt *route) http.Handler {
	h := func(w http.ResponseWriter, r *request) error {
		if err := rt.parse(r); err != nil {
			return err
		}
		switch {
		case rt.service && s.Control == nil:
			return errs.Msg(errs.Unsupported, r.op(), "", "this server has no sandbox service")
		case rt.guarded && s.Guard == nil:
			return errs.Msg(errs.Unsupported, r.op(), "", "this server has no principals")
		case rt.service || rt.guarded:
			if err := s.principal(r); err != nil {
				return err
			}
		}
		switch {
		case rt.once && len(r.Header.Values("Idempotency-Key")) > 0:
			return s.once(w, r, rt)
		}
		return rt.handler(w, r)
	}
	if rt.public {
		return s.handle(h)
	}
	return s.authenticated(h)
}

// handle makes an http.Handler of a handler.
func (s *server) handle(h handler) http.Handler {
	return http.HandlerFunc(func(hw http.ResponseWriter, hr *http.Request) {
		r := &request{Request: hr, id: requestID(), shapes: s.shapes}
		w := &writer{ResponseWriter: hw}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("X-Request-Id", r.id)
		defer s.logged(w, r, time.Now())
		defer s.recovered(w, r)
		if err := h(w, r); err != nil {
			s.fail(w, r, err, nil)
		}
	})
}

// writer remembers the status. Unwrap lets http.ResponseController, and so hijacking and flushing, reach the writer below.
type writer struct {
	http.ResponseWriter
	status int
}

func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) WriteHeader(status int) {
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// logged writes down each request that may have changed something: in which sandbox, and in whose name.
func (s *server) logged(w *writer, r *request, begun time.Time) {
	changes := r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions ||
		w.status == http.StatusSwitchingProtocols || w.status == 0
	if !changes || r.key == nil {
		return
	}
	attrs := []slog.Attr{slog.String("request", r.id), slog.String("operation", r.op()), slog.Int("status", w.status),
		slog.Duration("took", time.Since(begun)), slog.String("key", r.key.ID)}
	if r.caller != nil {
		attrs = append(attrs, slog.String("principal", r.caller.Principal.Name))
	}
	if r.sandbox != "" {
		attrs = append(attrs, slog.String("sandbox", r.sandbox))
	} else if n := r.name(); n != "" {
		attrs = append(attrs, slog.String("thing", clip(n)))
	}
	s.Log.LogAttrs(context.WithoutCancel(r.Context()), slog.LevelInfo, "request", attrs...)
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
		if err := s.identify(r, strings.TrimSpace(token)); err != nil {
			return err
		}
		return h(w, r)
	})
}

// identify finds out who asks.
func (s *server) identify(r *request, token string) error {
	find := s.keys.Caller
	if s.Guard != nil {
		find = s.Guard.Caller
	}
	who, err := find(r.Context(), token, r.RemoteAddr, r.id)
	if errs.Is(err, errs.Unauthorized) {
		// The same words for an unknown key and a wrong secret: which of them it was is nobody's business.
		return errs.Msg(errs.Unauthorized, "authenticate", "", "the API key isn't valid")
	}
	if err != nil {
		return err
	}
	r.key = who.Key
	if r.key.Sandbox != "" {
		return errs.Msg(errs.Denied, "authenticate", "", "this key is for the buckets of a sandbox, over S3")
	}
	if who.Principal.Name != "" {
		r.caller = who
	}
	return nil
}

// principal refuses whoever is none.
func (s *server) principal(r *request) error {
	if r.caller == nil {
		return errs.Msg(errs.Denied, r.op(), "", "this key is limited to its buckets").WithHint("use a key of a principal")
	}
	return nil
}

// buckets refuses whoever may not do everything with buckets.
func (s *server) buckets(r *request) error {
	if !r.key.Allows(access.Manage, agentrun.RefID{}) {
		return errs.Msg(errs.Denied, r.op(), "", "this key is limited to its buckets").WithHint("use a root key, or one of an operator")
	}
	return nil
}

// root refuses whoever may not do everything.
func (s *server) root(r *request) error {
	if !r.key.Root && (r.caller == nil || r.caller.Principal.Role != api.RoleAdmin) {
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

// unknown answers for paths that aren't any, and for methods that a path doesn't have.
func (s *server) unknown(w http.ResponseWriter, r *request) error {
	var methods []string
	for _, m := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		try := &http.Request{Method: m, URL: r.URL, Host: r.Host}
		if _, pattern := s.routes.Handler(try); strings.Contains(pattern, " ") {
			methods = append(methods, m)
		}
	}
	if len(methods) > 0 {
		w.Header().Set("Allow", strings.Join(methods, ", "))
		p := s.problem(r, errs.Msg(errs.Unsupported, "request", clip(r.Method+" "+r.URL.Path), "this method isn't one of its own: "+strings.Join(methods, ", ")), nil)
		p.Status, p.Title = http.StatusMethodNotAllowed, http.StatusText(http.StatusMethodNotAllowed)
		writeJSON(w, p.Status, api.ProblemJSON, p)
		return nil
	}
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
