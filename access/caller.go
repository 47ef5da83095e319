package access

import (
	"context"

	"agentrun.dev/api"
)

// Verb is what a caller wants to do with a thing of the service, such as "sandbox.fork". Those that only look end in ".get" or
// ".list".
type Verb string

// The verbs.
const (
	SandboxGet      Verb = "sandbox.get"
	SandboxCreate   Verb = "sandbox.create"
	SandboxExec     Verb = "sandbox.exec"   // run in it, write its files, connect to its ports
	SandboxRead     Verb = "sandbox.read"   // read its files, compare
	SandboxChange   Verb = "sandbox.change" // name, lease, hibernate, resume, snapshot, merge into, promote
	SandboxFork     Verb = "sandbox.fork"
	SandboxEnd      Verb = "sandbox.end"
	TemplateGet     Verb = "template.get"
	TemplateChange  Verb = "template.change"
	PoolGet         Verb = "pool.get"
	PoolChange      Verb = "pool.change"
	SnapshotGet     Verb = "snapshot.get"
	SnapshotChange  Verb = "snapshot.change"
	AgentGet        Verb = "agent.get"
	AgentChange     Verb = "agent.change"
	Converse        Verb = "conversation.change"
	SecretUse       Verb = "secret.use"
	SecretGet       Verb = "secret.get"
	SecretChange    Verb = "secret.change"
	PrincipalGet    Verb = "principal.get"
	PrincipalChange Verb = "principal.change"
	KeyChange       Verb = "key.change"
	UsageGet        Verb = "usage.get"
	EventGet        Verb = "event.get"
	NodeGet         Verb = "node.get"
	NodeChange      Verb = "node.change"
	MountGet        Verb = "mount.get"
	MountChange     Verb = "mount.change"
	AuditGet        Verb = "audit.get"
	BucketUse       Verb = "bucket.use" // as a template's source or a mount
)

// Caller is who asks, and how that was proved.
type Caller struct {
	Principal api.Principal
	Key       *Key   // that proved it; nil inside of the service
	Remote    string // address, for the audit log
	Request   string // id, for the audit log
}

// Thing is what a verb is about.
type Thing struct {
	Kind       string // sandbox, template, …
	ID         string
	Owner      string // principal
	Visibility string // api.Private, Team or All; "" is private, and all for templates, pools and agents
}

// Guard decides, and writes down what it decided.
type Guard struct{}

// Check is nil if the caller may, else errs.Denied that names the rule (errs.NotFound where the caller mayn't know that the thing
// exists). It returns once the decision is in the audit log durably, except for verbs that only look, which are there within a second.
func (g *Guard) Check(ctx context.Context, who *Caller, v Verb, t Thing) error { return nil }

// Sees reports, without a trace in the log, whether a thing is listed for the caller.
func (g *Guard) Sees(who *Caller, t Thing) bool { return true }
