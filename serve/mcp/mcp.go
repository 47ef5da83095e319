// Package mcp serves sandboxes to models, over the Model Context Protocol.
//
// A model sees tools (run commands and code, read, write and edit files, search, fork, compare, merge, …), the files of its sandboxes as
// resources (sandbox://ID/path), to which a client can subscribe, and instructions in how to use them. All of it goes through one seam, the
// Go client of AgentRun's API, in the name of one key: so the API's limits, permissions and audit log hold for models as for everybody. Over
// stdio (Serve) that client speaks with a server somewhere; over HTTP (Handler) with the API of the same process.
//
// A conversation is what one client says on one connection, or in one session over HTTP. It has a sandbox of its own, which is made of its
// Base when a tool first needs one, and hibernates or ends with the conversation; a tool that is given no sandbox works on that. Clients that
// insist on protocol 2026-07-28 over HTTP have no sessions: their tools name the sandbox, unless the Base is a sandbox itself.
//
// What a tool can't do is a result that says so (isError), which a model can read and act upon, and never an error of the protocol.
package mcp

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentrun.dev/api"
	"agentrun.dev/client"
	"agentrun.dev/errs"
)

// DefaultTemplate is what conversations' sandboxes are made of where no Base is given. It is made, as plain as can be and
// without a network, where it is missing and the key may do so.
const DefaultTemplate = "conversation"

// Base says what a conversation's own sandbox is made of. At most one field is set; the zero value is DefaultTemplate.
type Base struct {
	Template string
	Pool     string
	Snapshot string // id
	Fork     string // id or name of a sandbox: a fork of it, which can be merged back
	Sandbox  string // id or name of a sandbox: that one itself, which outlives the conversation
}

// Check refuses a Base that says two things.
func (b Base) Check() error {
	n := 0
	for _, s := range b.fields() {
		if *s != "" {
			n++
		}
	}
	if n > 1 {
		return errs.Msg(errs.Invalid, "mcp", "", "want only one of template, pool, snapshot, fork and sandbox")
	}
	return nil
}

// ParseBase reads KIND=NAME, such as template=python; "" is the zero value.
func ParseBase(s string) (b Base, err error) {
	if s == "" {
		return b, nil
	}
	kind, name, ok := strings.Cut(s, "=")
	f, known := b.fields()[kind]
	if !ok || !known || name == "" {
		return b, errs.Msg(errs.Invalid, "mcp", s, "want KIND=NAME, where KIND is template, pool, snapshot, fork or sandbox")
	}
	*f = name
	return b, nil
}

func (b *Base) fields() map[string]*string {
	return map[string]*string{"template": &b.Template, "pool": &b.Pool, "snapshot": &b.Snapshot, "fork": &b.Fork, "sandbox": &b.Sandbox}
}

// Options are what both transports have in common; the zero value works.
type Options struct {
	Version string // of the program, as clients are told
	Base    Base
	// OnEnd is what becomes of a conversation's own sandbox when that ends: api.Hibernate, the default, or api.End. One that hibernates ends by
	// itself Sleep later.
	OnEnd string
	Sleep time.Duration // 0 is a day
	Log   *slog.Logger  // of failures; nil discards them
}

func (o *Options) defaults() error {
	if o.OnEnd == "" {
		o.OnEnd = api.Hibernate
	}
	if o.OnEnd != api.Hibernate && o.OnEnd != api.End {
		return errs.Msg(errs.Invalid, "mcp", o.OnEnd, "want hibernate or end for what becomes of a conversation's sandbox")
	}
	if o.Sleep <= 0 {
		o.Sleep = 24 * time.Hour
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o.Base.Check()
}

// Limits. Exceeding one is a tool's error that says what to do instead.
const (
	maxMessage = 24 << 20 // bytes of one message of a client: a file of maxFile in base64, and a bit
	maxFile    = 16 << 20 // bytes of a file that is read as a resource, written or edited at once
	// grace is how long calls that still run may take once a client over stdio has closed its end.
	grace = 10 * time.Second
	// endTimeout bounds how long the end of a conversation may take.
	endTimeout = 30 * time.Second
)

// Serve speaks with one client over a pair of streams, such as the standard ones, until that closes in or ctx ends. Then it ends the
// conversation. It closes neither the client nor in; a Read of in that is blocked when ctx ends is left behind.
func Serve(ctx context.Context, c *client.Client, in io.Reader, out io.Writer, o Options) error {
	if err := o.defaults(); err != nil {
		return err
	}
	v := newConversation(c, &o, false)
	s := newServer(v, &o, mcp.NewSchemaCache())
	err := s.Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(&patient{in, v}), Writer: nopCloser{out}, MaxLineLength: maxMessage})
	v.end()
	if ctx.Err() != nil || errs.Is(err, errs.Canceled) {
		return nil // told to end
	}
	return err
}

// patient is the input of a client. Its end, upon which the SDK drops what it has not answered, comes when calls have had time to: a client may say
// all it has to say and close.
type patient struct {
	io.Reader
	v *conversation
}

func (p *patient) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	if n > 0 {
		return n, nil
	}
	if err == nil {
		return 0, nil
	}
	for end, idle := time.Now().Add(grace), 0; idle < 5 && time.Now().Before(end); {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-p.v.ctx.Done():
			return 0, err
		}
		if idle++; p.v.running.Load() > 0 {
			idle = 0
		}
	}
	p.v.cancel()
	return 0, err
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// newServer returns what serves one conversation.
func newServer(v *conversation, o *Options, cache *mcp.SchemaCache) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "agentrun", Title: "AgentRun", Version: o.Version}, &mcp.ServerOptions{
		Instructions: instructions(v),
		Logger:       slog.New(quiet{o.Log.Handler()}),
		Capabilities: &mcp.ServerCapabilities{
			Logging:   &mcp.LoggingCapabilities{},
			Tools:     &mcp.ToolCapabilities{},
			Prompts:   &mcp.PromptCapabilities{},
			Resources: &mcp.ResourceCapabilities{Subscribe: true},
		},
		SubscribeHandler:   v.subscribe,
		UnsubscribeHandler: v.unsubscribe,
		CompletionHandler:  v.complete,
		SchemaCache:        cache,
		// What one key sees is nobody else's business.
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
	})
	v.server = s
	addTools(s, v)
	addResources(s, v)
	addPrompts(s)
	s.AddReceivingMiddleware(v.received)
	return s
}

// quiet leaves out what the SDK says about each message.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelError && q.Handler.Enabled(ctx, l)
}

func (q quiet) WithAttrs(a []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(a)} }
func (q quiet) WithGroup(name string) slog.Handler   { return quiet{q.Handler.WithGroup(name)} }
