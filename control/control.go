// Package control is the sandbox service: the records of templates, pools, sandboxes, forks, claims and principals' usage, and the one
// state machine that makes what exists be what is recorded.
//
// Every method begins by asking package access whether the caller may, which is audited. What changes is recorded before it is
// acted on; after a crash reconciliation compares the records with what the nodes have. Nothing else holds the truth: Kubernetes
// objects, SDKs and the command line are faces of it.
package control

import (
	"context"
	"log/slog"
	"net"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/bucket"
	"agentrun.dev/engine"
	"agentrun.dev/kv"
	"agentrun.dev/node"
)

// Options describe a service.
type Options struct {
	KV       kv.Store
	Store    *bucket.Store // of buckets that templates name, snapshots and private mounts
	Keys     *access.Keys
	Guard    *access.Guard
	Endpoint string // host:port of the API, as clients are told
	S3       func() (endpoint, region string)
	Log      *slog.Logger // nil: nothing is logged
	Now      func() time.Time
}

// Control is the service. All methods may be called concurrently.
type Control struct {
	o       Options
	onces   onces   // requests with a key that are being done
	timings timings // see Metrics
}

// now is the service's clock.
func (c *Control) now() time.Time {
	if c.o.Now != nil {
		return c.o.Now()
	}
	return time.Now()
}

// Open reads the records. Nodes are added by Join; then Start begins to act on the records.
func Open(ctx context.Context, o Options) (*Control, error) { return &Control{o: o}, nil }

// Join makes a node known, or known again, under its name; it is lost when it hasn't been heard of for a while, unless it is local.
func (c *Control) Join(ctx context.Context, name, address string, h node.Host, local bool) error {
	return unbuilt("join")
}

// Heartbeat says that a node that joined lives, and what it has.
func (c *Control) Heartbeat(ctx context.Context, name string, i node.Info) error {
	return unbuilt("heartbeat")
}

// Start reconciles and then keeps doing so, until Close.
func (c *Control) Start(ctx context.Context) error { return unbuilt("start") }

// Close stops acting. What runs on nodes goes on.
func (c *Control) Close(ctx context.Context) error { return nil }

// Page is a part of a list: what comes after a cursor.
type Page struct {
	Limit  int
	Cursor string
}

// Filter selects sandboxes. Empty fields select all.
type Filter struct {
	Page
	State, Owner, Template, Pool, Root, Parent, Name, Conversation string
	Labels                                                         api.Labels
}

// EventFilter selects events. Empty fields select all.
type EventFilter struct {
	Sandbox, Kind string
	Limit         int
}

// Session is the use of a sandbox by a caller, who was found to be allowed to: the sandbox runs (it was woken up, if it slept) and can't
// hibernate until Close, which also begins its lease anew. Whoever holds one for long extends the lease by doing so.
type Session struct {
	Sandbox api.Sandbox
	host    node.Host
}

// Close ends the use.
func (s *Session) Close() {}

// Exec starts a command.
func (s *Session) Exec(ctx context.Context, c engine.Cmd) (engine.Process, error) {
	return s.host.Exec(ctx, s.Sandbox.ID, c)
}

// Code runs a text to its end.
func (s *Session) Code(ctx context.Context, c node.Code) (*node.CodeResult, error) {
	return s.host.Code(ctx, s.Sandbox.ID, c)
}

// Files are the sandbox's files.
func (s *Session) Files(ctx context.Context) (node.Files, error) {
	return s.host.Files(ctx, s.Sandbox.ID)
}

// Processes lists what runs.
func (s *Session) Processes(ctx context.Context) ([]engine.Running, error) {
	return s.host.Processes(ctx, s.Sandbox.ID)
}

// Signal sends a signal to a command that was started.
func (s *Session) Signal(ctx context.Context, pid, sig int) error {
	return s.host.Signal(ctx, s.Sandbox.ID, pid, sig)
}

// Attach takes up the output of a command that runs.
func (s *Session) Attach(ctx context.Context, pid int, c engine.Cmd) (engine.Process, error) {
	return s.host.Attach(ctx, s.Sandbox.ID, pid, c)
}

// Dial connects to a server inside.
func (s *Session) Dial(ctx context.Context, port int) (net.Conn, error) {
	return s.host.Dial(ctx, s.Sandbox.ID, port)
}
