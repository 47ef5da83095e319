// Package proxy lets HTTP clients reach servers that listen inside sandboxes.
//
// A target is a port of a sandbox. A request names it by path, /v1/sandboxes/{id}/ports/{port}/…, or by host,
// {port}-{id}.HOST, where a server has an origin of its own. New's handler finds the target, dials it and hands on one
// request over one connection, HTTP upgrades (WebSockets) and streams among them. It decides nothing about who may: that is
// done before it, or in Options.Dial, which gets the request.
//
// What is the API's own never reaches a sandbox: Authorization, and the cookies and parameters that Options names. A client
// that has credentials for the server inside sends them as X-Sandbox-Authorization, which arrives there as Authorization.
// Nor does a sandbox act for the API's origin: in the path form, which shares it, scripts of an answer run in an origin of
// their own (Content-Security-Policy: sandbox), and its cookies are bound to the target's path.
//
// An error is an api.Problem: 502 when nothing listens on the port or what listens doesn't answer as HTTP has it, 504 when it
// doesn't in time, 429 beyond the connections that a sandbox may have, and what the kind of Dial's error says otherwise.
package proxy

import (
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"strconv"
	"sync"
	"time"

	"agentrun.dev/errs"
)

// Options configure a proxy. Dial is required.
type Options struct {
	// Dial connects to a target for a request, whose context ends the wait. Nothing that listens is errs.Unavailable.
	Dial func(r *http.Request, sandbox string, port int) (net.Conn, error)
	// Host is what follows "{port}-{id}." in the host form, without a port; empty: there is only the path form.
	Host string
	// Trusted says that the X-Forwarded headers of requests are a trusted proxy's. Else they are replaced.
	Trusted bool
	// Cookies and Parameters (of the query) are the API's own: they don't reach a sandbox.
	Cookies, Parameters []string

	Connections int           // requests under way to one sandbox; 256 when 0
	DialTime    time.Duration // 10 s when 0
	AnswerTime  time.Duration // until an answer begins, after the request was sent; 10 minutes when 0
	IdleTime    time.Duration // without a byte in either direction; 1 hour when 0

	Log *slog.Logger // of what fails; nil: nothing
}

const (
	maxHeader     = 256 << 10 // bytes of an answer's header
	copyBuffer    = 32 << 10
	continueTime  = time.Second
	authorization = "X-Sandbox-Authorization"
)

func (o Options) withDefaults() Options {
	if o.Connections <= 0 {
		o.Connections = 256
	}
	for _, d := range []struct {
		at  *time.Duration
		def time.Duration
	}{{&o.DialTime, 10 * time.Second}, {&o.AnswerTime, 10 * time.Minute}, {&o.IdleTime, time.Hour}} {
		if *d.at <= 0 {
			*d.at = d.def
		}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// proxy is the handler.
type proxy struct {
	Options
	reverse *httputil.ReverseProxy
	mu      sync.Mutex
	active  map[string]int // requests under way, by sandbox
}

// New returns a handler of requests that name a target; it answers 404 to others.
func New(o Options) http.Handler {
	p := &proxy{Options: o.withDefaults(), active: make(map[string]int)}
	p.reverse = &httputil.ReverseProxy{
		Rewrite:        p.rewrite,
		ModifyResponse: p.answer,
		ErrorHandler:   p.failed,
		FlushInterval:  -1, // every piece at once: it may be a stream of events
		BufferPool:     &buffers{},
		ErrorLog:       log.New(io.Discard, "", 0), // an answer that is cut off is told by cutting it off
		Transport: &http.Transport{
			DialContext:            take,
			DisableKeepAlives:      true, // a server with one thread would wait for the next request on an idle connection
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxHeader,
			ResponseHeaderTimeout:  p.AnswerTime,
			ExpectContinueTimeout:  continueTime,
		},
	}
	return p
}

// exchange is one request under way.
type exchange struct {
	Target
	mu   sync.Mutex
	conn net.Conn // until the transport takes it
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// take is the transport's dial: the connection is there already, since how that failed is told apart from how the server did.
func take(ctx context.Context, _, _ string) (net.Conn, error) {
	x := exchangeOf(ctx)
	x.mu.Lock()
	defer x.mu.Unlock()
	conn := x.conn
	if x.conn = nil; conn == nil {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t, ok := Find(r, p.Host)
	switch {
	case !ok:
		p.problem(w, http.StatusNotFound, errs.Msg(errs.NotFound, "connect", clip(r.URL.Path), "it names no port of a sandbox"))
		return
	case r.Method == http.MethodConnect || r.Method == http.MethodTrace:
		p.problem(w, http.StatusMethodNotAllowed, errs.Msg(errs.Invalid, "connect", r.Method, "not through this proxy"))
		return
	case t.bare && (r.Method == http.MethodGet || r.Method == http.MethodHead) && accepts(r, "text/html"):
		// Relative links of the page would lead out of the target.
		to := t.Prefix + "/"
		if r.URL.RawQuery != "" {
			to += "?" + r.URL.RawQuery
		}
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusTemporaryRedirect)
		return
	case !p.enter(t.Sandbox):
		w.Header().Set("Retry-After", "1")
		p.problem(w, http.StatusTooManyRequests, errs.Msg(errs.Limit, "connect", "sandbox "+t.Sandbox,
			"more than "+strconv.Itoa(p.Connections)+" requests to it are under way"))
		return
	}
	defer p.leave(t.Sandbox)
	conn, err := p.dial(r, t)
	if err != nil {
		p.refused(w, r, t, err)
		return
	}
	x := &exchange{Target: t, conn: conn}
	defer conn.Close()
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Time{}) // a request may take as long as bytes come
	_ = rc.EnableFullDuplex()           // an answer may begin before the request ends
	p.reverse.ServeHTTP(&patient{w, rc, p.IdleTime}, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x)))
}

func (p *proxy) enter(sandbox string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.active[sandbox] >= p.Connections {
		return false
	}
	p.active[sandbox]++
	return true
}

func (p *proxy) leave(sandbox string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.active[sandbox]--; p.active[sandbox] == 0 {
		delete(p.active, sandbox)
	}
}

func (p *proxy) dial(r *http.Request, t Target) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(r.Context(), p.DialTime)
	defer cancel()
	conn, err := p.Dial(r.WithContext(ctx), t.Sandbox, t.Port)
	if err != nil {
		if r.Context().Err() == nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = os.ErrDeadlineExceeded
		}
		return nil, err
	}
	c := &idle{Conn: conn, limit: p.IdleTime}
	c.moved()
	return c, nil
}

// idle is a connection that ends when no byte moves in either direction for a while.
type idle struct {
	net.Conn
	limit time.Duration
	mu    sync.Mutex
	set   time.Time
}

// moved puts the end off, seldom enough to cost nothing.
func (c *idle) moved() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.set) > c.limit/64 {
		c.set = now
		_ = c.Conn.SetDeadline(now.Add(c.limit))
	}
}

func (c *idle) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.moved()
	}
	return n, err
}

func (c *idle) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if n > 0 {
		c.moved()
	}
	return n, err
}

// CloseWrite tells the server that no more comes, where the connection can.
func (c *idle) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// patient is an answer whose client has a while to take each piece.
type patient struct {
	http.ResponseWriter
	rc    *http.ResponseController
	limit time.Duration
}

func (w *patient) Write(b []byte) (int, error) {
	_ = w.rc.SetWriteDeadline(time.Now().Add(w.limit))
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w *patient) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// buffers keeps what pieces are copied through.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, copyBuffer)
}

func (b *buffers) Put(p []byte) { b.pool.Put(&p) }
