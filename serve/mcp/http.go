package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/client"
	"agentrun.dev/errs"
)

// Path is where the Handler is served.
const Path = "/mcp"

// HandlerOptions configure a Handler.
type HandlerOptions struct {
	Options
	// Caller finds out who has a key.
	Caller func(ctx context.Context, token, remote, request string) (*access.Caller, error)
	// Connect returns a client of the API in the name of a key, for a client at an address. It is closed when it is no longer needed.
	Connect func(key, remote string) (*client.Client, error)
	// Origins are those of browsers' pages that may connect, beside those of the server itself, such as "https://console.example".
	Origins []string
	// MaxSessions bounds the sessions that are open, MaxOfPrincipal those of one principal; 0 is 4096 and 256.
	MaxSessions, MaxOfPrincipal int
	// Idle is after how long without a request a session ends; 0 is 8 hours.
	Idle time.Duration
}

// Handler serves MCP over streamable HTTP: POST, GET and DELETE of one path. Every request carries an API key of a principal as its bearer token.
// A session belongs to the key that began it. The query of the URL says what a conversation's sandbox is made of, over the Base: one of template,
// pool, snapshot, fork and sandbox, and onEnd.
type Handler struct {
	o         HandlerOptions
	cache     *mcp.SchemaCache
	blank     *mcp.Server // answers which versions there are, for requests of sessions
	stateful  http.Handler
	stateless http.Handler

	mu       sync.Mutex
	sessions map[string]*session // by id
	of       map[string]int      // how many, by principal
	closed   bool
	open     sync.WaitGroup
}

// session is one of a client before protocol 2026-07-28.
type session struct {
	v *conversation
	s *mcp.ServerSession
}

// maxReplay is how many bytes of answers are kept for clients that lost their connection.
const maxReplay = 32 << 20

// NewHandler returns a Handler. Close ends it.
func NewHandler(o HandlerOptions) (*Handler, error) {
	if err := o.defaults(); err != nil {
		return nil, err
	}
	if o.MaxSessions <= 0 {
		o.MaxSessions = 4096
	}
	if o.MaxOfPrincipal <= 0 {
		o.MaxOfPrincipal = 256
	}
	if o.Idle <= 0 {
		o.Idle = 8 * time.Hour
	}
	h := &Handler{o: o, cache: mcp.NewSchemaCache(), sessions: map[string]*session{}, of: map[string]int{}}
	h.blank = mcp.NewServer(&mcp.Implementation{Name: "agentrun", Version: o.Version}, nil)
	events := mcp.NewMemoryEventStore(nil)
	events.SetMaxBytes(maxReplay)
	log := slog.New(quiet{o.Log.Handler()})
	// The SDK's own check of hosts would refuse whoever comes through a proxy on this machine; see origin for ours.
	bearer := auth.RequireBearerToken(h.token, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})
	h.stateful = bearer(mcp.NewStreamableHTTPHandler(h.server, &mcp.StreamableHTTPOptions{Logger: log, EventStore: events, SessionTimeout: o.Idle,
		MaxRequestBodyBytes: maxMessage, DisableLocalhostProtection: true}))
	h.stateless = bearer(mcp.NewStreamableHTTPHandler(h.server, &mcp.StreamableHTTPOptions{Logger: log, Stateless: true,
		PropagateRequestCancellation: true, MaxRequestBodyBytes: maxMessage, DisableLocalhostProtection: true}))
	return h, nil
}

// firstStateless is the first version of the protocol without sessions.
const firstStateless = "2026-07-28"

// Headers of the protocol.
const (
	versionHeader = "Mcp-Protocol-Version"
	sessionHeader = "Mcp-Session-Id"
	methodHeader  = "Mcp-Method"
)

type arrivalKey struct{}

// arrival is what is known of a request before the SDK has it.
type arrival struct {
	who       *access.Caller
	key       string
	remote    string
	options   *Options
	stateless bool

	once   sync.Once // guards what follows: the SDK asks more than once for the server of a request
	server *mcp.Server
	v      *conversation
	err    error
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !h.origin(w, r) {
		refuse(w, http.StatusForbidden, errs.Msg(errs.Denied, "mcp", "origin "+clipTo(r.Header.Get("Origin"), 200), "pages of this origin may not connect"))
		return
	}
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	a, err := h.arrive(r)
	if err != nil {
		status := http.StatusBadRequest
		switch errs.KindOf(err) {
		case errs.Unauthorized:
			w.Header().Set("WWW-Authenticate", `Bearer realm="agentrun"`)
			status = http.StatusUnauthorized
		case errs.Denied:
			status = http.StatusForbidden
		case errs.Other, errs.Unavailable:
			status = http.StatusServiceUnavailable
		}
		refuse(w, status, err)
		return
	}
	r = r.WithContext(context.WithValue(r.Context(), arrivalKey{}, a))
	if a.stateless {
		h.stateless.ServeHTTP(w, r)
		a.end()
		return
	}
	if r.Method == http.MethodDelete {
		h.interrupt(r.Header.Get(sessionHeader), a)
	}
	h.stateful.ServeHTTP(w, r)
}

// arrive finds out who asks, and what for.
func (h *Handler) arrive(r *http.Request) (*arrival, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return nil, errs.Msg(errs.Unauthorized, "authenticate", "", "no API key").WithHint("send it as 'Authorization: Bearer <id>.<secret>'; 'agentrun keys create' makes one")
	}
	who, err := h.o.Caller(r.Context(), token, r.RemoteAddr, "mcp")
	switch {
	case errs.Is(err, errs.Unauthorized):
		return nil, errs.Msg(errs.Unauthorized, "authenticate", "", "the API key isn't valid")
	case err != nil:
		return nil, err
	case who.Principal.Name == "" || who.Key == nil || who.Key.Sandbox != "":
		return nil, errs.Msg(errs.Denied, "authenticate", "", "this key is limited to its buckets").WithHint("use a key of a principal")
	}
	a := &arrival{who: who, key: token, remote: r.RemoteAddr, stateless: withoutSession(r)}
	a.options, err = h.options(r.URL.RawQuery)
	return a, err
}

// withoutSession reports whether a request is one of a client that has no sessions. A client that asks which versions there are is told of those with
// sessions, since a conversation's sandbox hangs on them; one that goes ahead with a later version is served as it wants.
func withoutSession(r *http.Request) bool {
	return r.Header.Get(sessionHeader) == "" && r.Header.Get(versionHeader) >= firstStateless && r.Header.Get(methodHeader) != "server/discover"
}

// options are the Handler's, with what a URL says over them.
func (h *Handler) options(query string) (*Options, error) {
	o := h.o.Options
	if query == "" {
		return &o, nil
	}
	q, err := url.ParseQuery(query)
	if err != nil {
		return nil, errs.New(errs.Invalid, "mcp", "query", err)
	}
	var b Base
	fields := b.fields()
	fields["onEnd"] = &o.OnEnd
	for name, values := range q {
		f, ok := fields[name]
		if !ok || len(values) != 1 || len(values[0]) > 200 {
			return nil, errs.Msg(errs.Invalid, "mcp", clipTo(name, 100), "want one of template, pool, snapshot, fork and sandbox, and perhaps onEnd, each once")
		}
		*f = values[0]
	}
	if b != (Base{}) {
		o.Base = b
	}
	return &o, o.defaults()
}

// refuse answers as the API does.
func refuse(w http.ResponseWriter, status int, err error) {
	p := api.Problem{Type: api.ProblemType + strings.ReplaceAll(errs.KindOf(err).String(), " ", "-"), Title: http.StatusText(status), Status: status,
		Detail: err.Error(), Kind: errs.KindOf(err).String(), Hint: errs.HintOf(err)}
	w.Header().Set("Content-Type", api.ProblemJSON)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(p)
}

// origin refuses browsers' pages of elsewhere. Whoever isn't a browser sends no Origin.
func (h *Handler) origin(w http.ResponseWriter, r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return true
	}
	if len(origins) > 1 {
		return false
	}
	if slices.Contains(h.o.Origins, origins[0]) {
		for k, v := range map[string]string{"Allow-Origin": origins[0], "Allow-Methods": "GET, POST, DELETE",
			"Allow-Headers": "Authorization, Content-Type, Accept, Last-Event-ID, " + versionHeader + ", " + sessionHeader + ", " + methodHeader + ", Mcp-Name", "Expose-Headers": sessionHeader} {
			w.Header().Set("Access-Control-"+k, v)
		}
		w.Header().Add("Vary", "Origin")
		return true
	}
	u, err := url.Parse(origins[0])
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host) && !rebound(r)
}

// rebound reports whether a request came to this machine's own address under a name that isn't its own: what a page does whose name was made to
// lead here.
func rebound(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	return loopback(local.String()) && !loopback(r.Host)
}

func loopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback() || strings.EqualFold(host, "localhost") || strings.HasSuffix(strings.ToLower(host), ".localhost")
}

// token tells the SDK whose session it is. The key was verified before.
func (h *Handler) token(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
	a, ok := ctx.Value(arrivalKey{}).(*arrival)
	if !ok {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{UserID: a.user()}, nil
}

// user is whose a session is: a key's, since another of the same principal may be allowed less.
func (a *arrival) user() string { return a.who.Principal.Name + "/" + a.who.Key.ID }

// server returns what serves a request that begins a session, or that is by itself.
func (h *Handler) server(r *http.Request) *mcp.Server {
	a, ok := r.Context().Value(arrivalKey{}).(*arrival)
	if !ok {
		return nil
	}
	if r.Header.Get(sessionHeader) != "" {
		return h.blank // the session has its own
	}
	a.once.Do(func() {
		var c *client.Client
		if c, a.err = h.o.Connect(a.key, a.remote); a.err != nil {
			return
		}
		a.v = newConversation(c, a.options, a.stateless)
		a.v.owner = a.user()
		a.server = newServer(a.v, a.options, h.cache)
		if !a.stateless {
			a.server.AddReceivingMiddleware(h.admit(a))
		}
	})
	if a.err != nil {
		h.o.Log.Error("no client for a model's session", "error", a.err)
		return nil
	}
	return a.server
}

// end ends what a request that is by itself had.
func (a *arrival) end() {
	if a.v != nil {
		a.v.end()
		a.v.c.Close()
	}
}

// admit counts sessions: it stands before the request that begins one, and waits for its end.
func (h *Handler) admit(a *arrival) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			s, ok := req.GetSession().(*mcp.ServerSession)
			if _, begins := req.GetParams().(*mcp.InitializeParams); !begins || !ok {
				return next(ctx, method, req)
			}
			id := s.ID()
			if err := h.reserve(id, a, s); err != nil {
				return nil, &jsonrpc.Error{Code: codeLimit, Message: err.Error()}
			}
			go func() { // counted by open
				defer h.open.Done()
				_ = s.Wait()
				a.end()
				h.release(id, a)
			}()
			return next(ctx, method, req)
		}
	}
}

// codeLimit is of the range that JSON-RPC leaves to servers.
const codeLimit = -32004

func (h *Handler) reserve(id string, a *arrival, s *mcp.ServerSession) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	who := a.who.Principal.Name
	switch {
	case h.closed:
		return errs.Msg(errs.Unavailable, "begin session", "", "the server is ending")
	case h.sessions[id] != nil:
		return errs.Msg(errs.Invalid, "begin session", "", "it has begun already")
	case h.of[who] >= h.o.MaxOfPrincipal:
		return errs.Msg(errs.Limit, "begin session", who, fmt.Sprintf("%d sessions are open already: end some (DELETE), or wait until they are idle for %v", h.of[who], h.o.Idle))
	case len(h.sessions) >= h.o.MaxSessions:
		return errs.Msg(errs.Limit, "begin session", "", fmt.Sprintf("%d sessions are open already", len(h.sessions)))
	}
	h.sessions[id] = &session{a.v, s}
	h.of[who]++
	h.open.Add(1)
	return nil
}

func (h *Handler) release(id string, a *arrival) {
	h.mu.Lock()
	defer h.mu.Unlock()
	who := a.who.Principal.Name
	delete(h.sessions, id)
	if h.of[who]--; h.of[who] <= 0 {
		delete(h.of, who)
	}
}

// interrupt ends what runs in a session that its owner ends: the SDK would wait for it.
func (h *Handler) interrupt(id string, a *arrival) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.sessions[id]; s != nil && s.v.owner == a.user() {
		s.v.cancel()
	}
}

// Sessions returns how many are open.
func (h *Handler) Sessions() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.sessions)
}

// Close ends all sessions. Their sandboxes stay as they are, for whoever comes back: it is the server that ends, and not the conversations.
func (h *Handler) Close(ctx context.Context) error {
	h.mu.Lock()
	h.closed = true
	for _, s := range h.sessions {
		s.v.forsake()
		go func() { _ = s.s.Close() }() // waited for below, by its Wait
	}
	h.mu.Unlock()
	done := make(chan struct{})
	go func() {
		h.open.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return errs.New(errs.Canceled, "end sessions", "", errors.New("some didn't end in time"))
	}
}
