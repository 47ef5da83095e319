package access

import (
	"strings"

	"agentrun.dev/api"
)

// Verb is what a caller wants to do with a thing of the service, such as "sandbox.fork". Those that only look end in ".get", and
// SandboxRead is one.
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
	VolumeGet       Verb = "volume.get"
	VolumeChange    Verb = "volume.change"
	AgentGet        Verb = "agent.get"
	AgentChange     Verb = "agent.change"
	ConversationGet Verb = "conversation.get"
	Converse        Verb = "conversation.change"
	SecretUse       Verb = "secret.use"
	SecretGet       Verb = "secret.get"
	SecretChange    Verb = "secret.change"
	PrincipalGet    Verb = "principal.get"
	PrincipalChange Verb = "principal.change"
	KeyGet          Verb = "key.get"
	KeyChange       Verb = "key.change"
	UsageGet        Verb = "usage.get"
	EventGet        Verb = "event.get"
	NodeGet         Verb = "node.get"
	NodeChange      Verb = "node.change"
	MountGet        Verb = "mount.get"
	MountChange     Verb = "mount.change"
	AuditGet        Verb = "audit.get"
	AuditChange     Verb = "audit.change"
	BucketUse       Verb = "bucket.use" // as a template's source or a mount
)

// Caller is who asks, and how that was proved. Treat it as read-only.
type Caller struct {
	// Principal is whom the caller acts as, with what it really has: Role and Teams are at most those of whomever it acts for, and of its
	// key. It is zero for a key that has nothing but grants, which may do nothing with the service.
	Principal api.Principal
	Key       *Key   // that proved it; nil inside of the service
	Remote    string // address, for the audit log
	Request   string // id, for the audit log
}

// Thing is what a verb is about. Without an ID and an owner it is none in particular: what a list is of, or what is made for the caller.
// With only an owner it is something to be made for that one.
type Thing struct {
	Kind       string // sandbox, template, pool, snapshot, volume, agent, conversation, secret, principal, key, usage, event, node, mount, audit or bucket
	ID         string
	Called     string            // by the caller, where that isn't the ID: what errors say, as the ID of a thing that it mayn't see is none of its business
	Owner      string            // principal; a principal and its usage are its own
	Visibility string            // api.Private, Team or All; "" is private, and all for templates, pools and agents
	Team       string            // that api.Team means; "": each of the owner's
	Data       map[string]string // what the log should say beside: short, and nothing secret
}

// System is the service itself as a caller, for what it does of its own accord; request says what that is, for the audit log.
func System(request string) *Caller { return &Caller{Principal: *rootPrincipal(), Request: request} }

// visibility is the thing's own, or that of its kind.
func (t *Thing) visibility() string {
	if t.Visibility != "" {
		return t.Visibility
	}
	switch t.Kind {
	case "template", "pool", "agent":
		return api.All
	}
	return api.Private
}

// shown is the thing in errors.
func (t *Thing) shown() string {
	if t.Called != "" {
		return printable(t.Called, maxThing)
	}
	return printable(t.ID, maxThing)
}

// name is the thing in the log.
func (t *Thing) name() string {
	if t.ID == "" {
		return t.Kind
	}
	return t.Kind + "/" + t.ID
}

// frees reports whether the verb gives back space, so that a full disk mustn't keep it from being written down.
func (v Verb) frees() bool { return v == SandboxEnd || v == SnapshotChange || v == AuditChange }

// Looks reports whether the verb changes nothing, so that its decisions needn't be durable at once.
func (v Verb) Looks() bool { return strings.HasSuffix(string(v), ".get") || v == SandboxRead }
