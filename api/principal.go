package api

import "time"

// Roles of a principal. Each may do what those after it may.
const (
	RoleAdmin    = "admin"    // everything: principals, keys, nodes, mounts, the audit log, everybody's sandboxes
	RoleOperator = "operator" // templates, pools, buckets, agents; everybody's sandboxes
	RoleUser     = "user"     // sandboxes of its own, and those it is shown
	RoleViewer   = "viewer"   // looks at what it is shown
)

// Principal is who asks: a user, an agent or a service. PUT, GET, DELETE /v1/principals/{name}; GET /v1/principals; GET /v1/me.
type Principal struct {
	Name     string            `json:"name"`
	Kind     string            `json:"kind,omitempty"` // user, agent or service; "" is user
	Role     string            `json:"role"`
	Teams    []string          `json:"teams,omitempty"`
	Parent   string            `json:"parent,omitempty"` // on whose behalf it acts: its usage counts there too
	Tags     map[string]string `json:"tags,omitempty"`
	Budget   *Budget           `json:"budget,omitempty"`
	Disabled bool              `json:"disabled,omitempty"` // its keys are refused
	Created  time.Time         `json:"created,omitzero"`
}

// Principals is a page of principals.
type Principals struct {
	Principals []Principal `json:"principals"`
	Next       string      `json:"next,omitempty"`
}

// Secret is values that sandboxes may be given by name: PUT /v1/secrets/{name}. Values are never told again: GET has Keys only.
type Secret struct {
	Name    string            `json:"name"`
	Data    map[string]string `json:"data,omitempty"` // of PUT: all values, by key; those that are missing go
	Keys    []string          `json:"keys,omitempty"`
	Owner   string            `json:"owner,omitempty"`
	Team    string            `json:"team,omitempty"` // whose members may use it too
	Created time.Time         `json:"created,omitzero"`
	Changed time.Time         `json:"changed,omitzero"`
}

// Secrets is a page of secrets, without values.
type Secrets struct {
	Secrets []Secret `json:"secrets"`
	Next    string   `json:"next,omitempty"`
}

// AuditEntry is one decision: GET /v1/audit?after=SEQ[&limit=N&principal=&action=&allowed=false], as a page or NDJSON. Hash is the SHA-256
// of the entry's canonical form without it, in which Previous is the hash of the one before: GET /v1/audit/verify checks the chain.
type AuditEntry struct {
	Seq       uint64            `json:"seq,string"`
	Time      time.Time         `json:"time"`
	Principal string            `json:"principal,omitempty"` // empty: unknown
	Key       string            `json:"key,omitempty"`       // id
	Remote    string            `json:"remote,omitempty"`
	Request   string            `json:"request,omitempty"`
	Action    string            `json:"action"` // such as sandbox.fork
	Thing     string            `json:"thing,omitempty"`
	Allowed   bool              `json:"allowed"`
	Rule      string            `json:"rule"` // that decided
	Data      map[string]string `json:"data,omitempty"`
	Previous  string            `json:"previous"`
	Hash      string            `json:"hash"`
}

// Audit is a page of the log. Next is the position after its last; More is whether there was more behind that when the page was asked for:
// as each request is an entry, too, the log itself never ends.
type Audit struct {
	Entries []AuditEntry `json:"entries"`
	Next    uint64       `json:"next,string"`
	More    bool         `json:"more,omitempty"`
}

// AuditCut is how many entries a cut of the audit log took off its beginning: DELETE /v1/audit?before=T. The cut is an entry itself, which
// holds the hash of the last that went: a copy of those, exported before, can be checked ever after.
type AuditCut struct {
	Entries uint64 `json:"entries"`
}

// AuditCheck is what a check of the chain found.
type AuditCheck struct {
	Entries uint64 `json:"entries"`
	Last    string `json:"last"`          // hash of the newest
	Broken  uint64 `json:"broken,string"` // the first that doesn't fit; 0: none
}
