// Package e2b serves E2B's protocol, as E2B's own SDKs speak it, over the sandbox service: an agent that was written for E2B
// runs here when its two URLs and its key are changed.
//
// A request is for the control plane (sandboxes, templates, snapshots, volumes, secrets: JSON, with an API key as X-API-Key), or
// for the inside of one sandbox: for envd (processes and files, logical port 49983), for the code interpreter (49999), or for any
// other port, where a server of the sandbox's own answers. Which sandbox and port is meant says the host name, {port}-{id}.DOMAIN,
// or the headers E2b-Sandbox-Id and E2b-Sandbox-Port; so all of it can be one address, and AgentRun's own at that.
//
// An envd token (X-Access-Token) is made for one sandbox and one principal, who was told it when the sandbox was created or
// connected to. A signature stands in a URL for a file and proves that whoever made the URL knew a token. Neither is stored; both
// end with the sandbox, and with the principal. A sandbox's ports are open to whoever knows its id, as they are in E2B, unless it
// was created otherwise; then they ask for its traffic token.
//
// Fields that aren't known are accepted, so that a newer client works as far as it can; a call that isn't known is a 404 that
// says which versions are served.
package e2b

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/bucket"
	"agentrun.dev/control"
	"agentrun.dev/errs"
	"agentrun.dev/serve/e2b/envd"
	"agentrun.dev/serve/e2b/interpreter"
)

// EnvdVersion is what clients are told: they leave out what an older envd didn't have.
const EnvdVersion = envd.Version

// served is what the answer to an unknown call says.
const served = "this server speaks the API of E2B's SDKs 2.45 to 2.63 (/sandboxes, /v2/sandboxes, /templates, /v2/templates, /v3/templates, " +
	"/snapshots, /volumes, /volumecontent, /secrets; envd " + EnvdVersion + ")"

// Logical ports of a sandbox at which the service itself answers.
const (
	envdPort        = 49983
	interpreterPort = 49999
)

// Use begins the use of the sandbox that a request is for, by whoever was found to ask; see control.Use.
type Use = func(r *http.Request, verb access.Verb) (*control.Session, error)

// Options configure a handler. Control, Guard and Keys are required.
type Options struct {
	Control *control.Control
	Guard   *access.Guard
	Keys    *access.Keys
	Store   *bucket.Store // of volumes, and of files that templates are built with; nil: there are none
	// Domain is what follows "{port}-{id}." and "api." in host names, with the port where that isn't 443, as clients are told. Empty: there are no
	// such names.
	Domain string
	// Ports makes a handler of requests to servers in sandboxes, package serve/proxy's, that finds them beneath a host; nil: none of them is
	// reached. dial is called with a request that it was given.
	Ports func(host string, dial func(r *http.Request, sandbox string, port int) (net.Conn, error)) http.Handler
	// Next answers what isn't E2B's; nil is a 404.
	Next http.Handler
	Log  *slog.Logger // nil: nothing is logged
	Now  func() time.Time
}

// Handler answers requests of E2B's protocol. It is done when the requests that it serves are.
type Handler struct {
	Options
	host   string // Domain without its port, in lower case
	tokens *access.Tokens
	table  []route
	active active
	builds askedBuilds
	// labelling is held while the labels of a template are changed: they are read first.
	labelling sync.Mutex
	// What answers inside of a sandbox.
	envd, interpreter, ports http.Handler
}

// New returns a handler.
func New(o Options) (*Handler, error) {
	if o.Control == nil || o.Guard == nil || o.Keys == nil {
		return nil, errs.Msg(errs.Invalid, "serve e2b", "", "control, guard and keys are required")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Next == nil {
		o.Next = http.NotFoundHandler()
	}
	h := &Handler{Options: o, host: hostname(o.Domain), tokens: o.Keys.Tokens("e2b envd")}
	h.table = h.routes()
	h.envd = envd.New(envd.Options{Use: h.use, Defaults: defaults, Log: o.Log})
	h.interpreter = interpreter.New(interpreter.Options{Use: h.use, Log: o.Log})
	if o.Ports != nil {
		h.ports = o.Ports(h.portHost(), h.dial)
	}
	return h, nil
}

// request is a request on its way through the handlers.
type request struct {
	*http.Request
	id      string // names the request in answers and in the log
	target  target
	route   *route            // of the control plane
	vars    map[string]string // of the route's path
	who     *access.Caller    // once that is known
	sandbox string            // id of the one that it is about, once that is known
	body    []byte            // that was read already
	read    bool
	inside  bool // somebody else answers now
}

// handler answers a request of the control plane; an error that it returns is answered for it.
type handler func(w http.ResponseWriter, r *request) error

// Takes reports whether a request is E2B's: whatever else is served at the same address is for Next.
func (h *Handler) Takes(r *http.Request) bool {
	t, err := h.find(r)
	return err != nil || t.kind != elsewhere
}

func (h *Handler) ServeHTTP(hw http.ResponseWriter, hr *http.Request) {
	t, err := h.find(hr)
	if err == nil && t.kind == elsewhere {
		h.Next.ServeHTTP(hw, hr)
		return
	}
	r := &request{Request: hr, id: requestID(), target: t}
	w := &writer{ResponseWriter: hw}
	w.Header().Set("X-Request-Id", r.id)
	defer h.logged(w, r, time.Now())
	defer h.recovered(w, r)
	switch {
	case h.crossOrigin(w, r):
		return
	case err != nil:
	case t.kind == within:
		err = h.serveInside(w, r)
	default:
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		err = h.serveControl(w, r)
	}
	if err != nil {
		h.fail(w, r, err)
	}
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

func (w *writer) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Flush is for those who look for it here instead of asking http.ResponseController.
func (w *writer) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// logged writes down each request that may have changed something, and in whose name.
func (h *Handler) logged(w *writer, r *request, begun time.Time) {
	if r.who == nil || r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions {
		return
	}
	op := "e2b " + clip(r.URL.Path)
	if r.route != nil {
		op = "e2b " + r.route.method + " " + r.route.path
	}
	attrs := []slog.Attr{slog.String("request", r.id), slog.String("operation", op), slog.Int("status", w.status),
		slog.Duration("took", time.Since(begun)), slog.String("principal", r.who.Principal.Name)}
	if r.sandbox != "" {
		attrs = append(attrs, slog.String("sandbox", r.sandbox))
	}
	h.Log.LogAttrs(context.WithoutCancel(r.Context()), slog.LevelInfo, "request", attrs...)
}

// recovered turns a defect of ours into an answer, where none has begun, instead of a connection that just ends.
func (h *Handler) recovered(w *writer, r *request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler {
		panic(v)
	}
	h.Log.Error("a request failed by a defect", "request", r.id, "panic", v, "stack", string(debug.Stack()))
	if w.status != 0 {
		panic(http.ErrAbortHandler)
	}
	h.fail(w, r, errs.Msg(errs.Other, "serve", "", "defect"))
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
		return strings.ToValidUTF8(s[:max], "") + "…"
	}
	return s
}

// hostname is a host without its port.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// conn ends the use of a sandbox with a connection to it.
type conn struct {
	net.Conn
	done func()
}

func (c *conn) Close() error {
	defer c.done()
	return c.Conn.Close()
}

// dial connects a request to a server in the sandbox that it is for. The sandbox is in use until the connection is closed.
func (h *Handler) dial(hr *http.Request, _ string, port int) (net.Conn, error) {
	u, err := h.use(hr, access.SandboxExec)
	if err != nil {
		return nil, err
	}
	c, err := u.Dial(hr.Context(), port)
	if err != nil {
		u.Close()
		return nil, err
	}
	return &conn{c, sync.OnceFunc(u.Close)}, nil
}
