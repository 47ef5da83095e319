package mcp

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentrun.dev/api"
	"agentrun.dev/client"
	"agentrun.dev/errs"
)

// LabelClient and LabelPurpose are labels of conversations' own sandboxes, by which people find them.
const (
	LabelPurpose = "mcp"        // always "conversation"
	LabelClient  = "mcp-client" // what the client calls itself
)

// conversation is what is known of one client's connection.
type conversation struct {
	c         *client.Client
	o         *Options
	server    *mcp.Server
	stateless bool   // a single request: there is no connection that could have a sandbox
	owner     string // whose session it is; see arrival.user

	ctx    context.Context // ends with the conversation, and with it what still runs for it
	cancel context.CancelFunc

	running atomic.Int64 // requests that aren't answered yet

	making chan struct{} // one token: who has it may make the conversation's sandbox

	mu      sync.Mutex // guards what follows
	own     string     // id of the sandbox that was made for the conversation
	current string     // id or name of the sandbox that tools work on
	name    string     // of the client
	watches map[string]*watch
	ended   bool

	editing sync.Mutex // one edit at a time: each is a read and a write
}

func newConversation(c *client.Client, o *Options, stateless bool) *conversation {
	v := &conversation{c: c, o: o, stateless: stateless, making: make(chan struct{}, 1), current: o.Base.Sandbox, watches: map[string]*watch{}}
	v.ctx, v.cancel = context.WithCancel(context.Background())
	return v
}

// bound returns a context that ends with a request's and with the conversation.
func (v *conversation) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(v.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// received stands before every request: a defect of ours is that request's error, and not the process's end.
func (v *conversation) received(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				v.o.Log.Error("a request failed by a defect", "method", method, "panic", p, "stack", string(debug.Stack()))
				res, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "a defect of the server; its log says more"}
			}
		}()
		v.running.Add(1)
		defer v.running.Add(-1)
		ctx, cancel := v.bound(ctx)
		defer cancel()
		switch p := req.GetParams().(type) {
		case *mcp.ListResourcesParams:
			return v.listResources(ctx, p, func() (mcp.Result, error) { return next(ctx, method, req) })
		case *mcp.ReadResourceParams:
			if p != nil {
				p.URI = canonical(p.URI)
			}
		}
		res, err = next(ctx, method, req)
		if r, ok := res.(*mcp.CallToolResult); ok && r != nil && r.Meta[MetaError] != nil {
			r.StructuredContent = nil // what failed has no output; the SDK has put an empty one there
		}
		return res, err
	}
}

// calledBy remembers what the client calls itself.
func (v *conversation) calledBy(c *mcp.Implementation) {
	if c != nil {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.name = c.Name
	}
}

// errNoSession is told to clients without sessions that don't say which sandbox.
var errNoSession = errs.Msg(errs.Invalid, "sandbox", "", "this connection keeps no session, so there is no sandbox of its own").
	WithHint("call create_sandbox (or list_sandboxes) and give the id as 'sandbox' to every tool")

// sandbox returns the sandbox that a tool works on: the one that is named, else the conversation's, which is made if there is none yet.
func (v *conversation) sandbox(ctx context.Context, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	if id := v.here(); id != "" {
		return id, nil
	}
	if v.stateless {
		return "", errNoSession
	}
	select {
	case v.making <- struct{}{}:
		defer func() { <-v.making }()
	case <-ctx.Done():
		return "", errs.New(errs.Canceled, "make sandbox", "", context.Cause(ctx))
	}
	if id := v.here(); id != "" { // made while we waited
		return id, nil
	}
	// Once it is asked for it is waited for, also where the call is cancelled: else nobody would know of it.
	make, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Minute)
	defer cancel()
	sb, err := v.make(make, api.CreateSandbox{})
	if err != nil {
		return "", err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.own, v.current = sb.ID, sb.ID
	return sb.ID, nil
}

// here is the sandbox that the conversation is in, or "".
func (v *conversation) here() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.current
}

// lease is that of sandboxes that are made for the conversation: nobody may come to end them.
func (v *conversation) lease() *api.Lease {
	return &api.Lease{OnExpiry: v.o.OnEnd, Sleep: int64(v.o.Sleep / time.Second)}
}

// make makes a sandbox of the Base.
func (v *conversation) make(ctx context.Context, in api.CreateSandbox) (*api.Sandbox, error) {
	v.mu.Lock()
	in.Labels = maps.Clone(in.Labels)
	if in.Labels == nil {
		in.Labels = api.Labels{}
	}
	in.Labels[LabelPurpose] = "conversation"
	if v.name != "" {
		in.Labels[LabelClient] = label(v.name)
	}
	v.mu.Unlock()
	if in.Lease == nil {
		in.Lease = v.lease()
	}
	b := v.o.Base
	if b.Fork != "" {
		f, err := v.c.ForkSandbox(ctx, b.Fork, api.ForkSandbox{Name: in.Name, Env: in.Env, Lease: in.Lease, Network: in.Network, Labels: in.Labels, Kill: true})
		if err != nil {
			return nil, err
		}
		if len(f.Sandboxes) != 1 {
			return nil, errs.Msg(errs.Other, "fork", b.Fork, "it made no sandbox: "+f.Reason)
		}
		return &f.Sandboxes[0], nil
	}
	in.Template, in.Pool, in.Snapshot = b.Template, b.Pool, b.Snapshot
	if in.Template == "" && in.Pool == "" && in.Snapshot == "" {
		in.Template = DefaultTemplate
	}
	sb, err := v.c.CreateSandbox(ctx, in)
	if errs.Is(err, errs.NotFound) && in.Template == DefaultTemplate {
		if err := v.makeTemplate(ctx); err != nil {
			return nil, err
		}
		sb, err = v.c.CreateSandbox(ctx, in)
	}
	return sb, err
}

// makeTemplate makes DefaultTemplate, and waits for it.
func (v *conversation) makeTemplate(ctx context.Context) error {
	t, err := v.c.PutTemplate(ctx, DefaultTemplate, api.TemplateSpec{})
	if errs.Is(err, errs.Denied) {
		return errs.New(errs.Denied, "create sandbox", "template "+DefaultTemplate, err).
			WithHint("there is no template '" + DefaultTemplate + "' and this key may not make it: an operator can, or can configure another base for MCP")
	}
	for err == nil && t.State != api.BuildReady {
		if t.State == api.BuildFailed {
			return errs.Msg(errs.Conflict, "build template", t.Name, t.Error)
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return errs.New(errs.Canceled, "build template", DefaultTemplate, context.Cause(ctx))
		}
		t, err = v.c.Template(ctx, DefaultTemplate, 0)
	}
	return err
}

// label makes a value of a label from what somebody calls himself.
func label(s string) string {
	b := make([]byte, 0, 63)
	for i := 0; i < len(s) && len(b) < 63; i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', len(b) > 0 && (c == '-' || c == '_' || c == '.'):
			b = append(b, c)
		case len(b) > 0:
			b = append(b, '-')
		}
	}
	for len(b) > 0 && (b[len(b)-1] == '-' || b[len(b)-1] == '_' || b[len(b)-1] == '.') {
		b = b[:len(b)-1]
	}
	return string(b)
}

// enter makes a sandbox the one that tools work on.
func (v *conversation) enter(id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.current = id
}

// leave forgets a sandbox that is gone. Where the conversation was in it, the next call gets its own again, or a new one.
func (v *conversation) leave(id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.own == id {
		v.own = ""
	}
	if v.current == id {
		v.current = v.own
		if v.o.Base.Sandbox != "" && v.o.Base.Sandbox != id {
			v.current = v.o.Base.Sandbox
		}
	}
}

// gone finds out whether a failure means that the sandbox is no more, and says so.
func (v *conversation) gone(ctx context.Context, id string, err error) error {
	if id == "" || !errs.Is(err, errs.NotFound) && !errs.Is(err, errs.Conflict) && !errs.Is(err, errs.Unavailable) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	sb, look := v.c.Sandbox(ctx, id)
	var why string
	switch {
	case errs.Is(look, errs.NotFound):
		why = "it doesn't exist, or this key may not see it"
	case look == nil && (sb.State == api.StateEnded || sb.State == api.StateFailed):
		why = "it has " + sb.State
		if sb.Reason != "" {
			why += " (" + sb.Reason + ")"
		}
		why += ", and its files with it"
	default:
		return err
	}
	v.mu.Lock()
	mine := v.current == id
	v.mu.Unlock()
	v.leave(id)
	e := errs.Msg(errs.NotFound, "use sandbox", id, why)
	if mine && !v.stateless && v.o.Base.Sandbox != id {
		return e.WithHint("it was this conversation's sandbox: the next call without 'sandbox' gets a new one, as it is at first")
	}
	return e.WithHint("list_sandboxes shows those that there are")
}

// forsake ends what runs for the conversation, and leaves its sandbox to its lease.
func (v *conversation) forsake() {
	v.mu.Lock()
	v.own = ""
	v.mu.Unlock()
	v.cancel()
}

// end ends the conversation: what runs for it, its subscriptions and, as is configured, its sandbox.
func (v *conversation) end() {
	v.cancel()
	v.mu.Lock()
	own, watches, ended := v.own, slices.Collect(maps.Values(v.watches)), v.ended
	v.ended = true
	v.mu.Unlock()
	for _, w := range watches {
		<-w.done
	}
	if own == "" || ended {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	var err error
	if v.o.OnEnd == api.End {
		err = v.c.EndSandbox(ctx, own)
	} else {
		_, err = v.hibernate(ctx, own)
	}
	if err != nil && !errs.Is(err, errs.NotFound) { // its lease ends it
		v.o.Log.Warn("a conversation's sandbox couldn't be put to rest", "sandbox", own, "error", fmt.Sprint(err))
	}
}
