// Package api holds the wire types of AgentRun's REST API, version 1.
//
// Requests and answers are JSON; unknown fields are refused. Sizes are bytes, times RFC 3339 in UTC with nanoseconds,
// durations seconds, versions decimal strings. An error is a Problem (RFC 9457). What may take long is a stream: lines
// of JSON, each a Line, of which the last is a result or an error. Commands run over a WebSocket; see exec.go.
package api

import (
	"fmt"
	"strconv"
	"time"
)

// Media types of the API.
const (
	JSON        = "application/json"
	ProblemJSON = "application/problem+json"
	NDJSON      = "application/x-ndjson"
	EventStream = "text/event-stream"
	Bytes       = "application/octet-stream"
)

// Limits that the server holds; exceeding one is "too large" or "invalid".
const (
	MaxBody   = 1 << 20 // bytes in the body of a request
	MaxScopes = 64      // buckets of one key
)

// ProblemType begins the type of every Problem.
const ProblemType = "https://agentrun.dev/problems/"

// Version is a point in a bucket's life. It is a decimal string in JSON, since JavaScript's numbers can't hold it. Zero
// is absent: it means now.
type Version uint64

// MarshalText writes the decimal form.
func (v Version) MarshalText() ([]byte, error) { return strconv.AppendUint(nil, uint64(v), 10), nil }

// UnmarshalText reads the decimal form.
func (v *Version) UnmarshalText(b []byte) error {
	n, err := strconv.ParseUint(string(b), 10, 64)
	if err != nil {
		return fmt.Errorf("version %q: want a decimal number", b)
	}
	*v = Version(n)
	return nil
}

// String returns the decimal form.
func (v Version) String() string { return strconv.FormatUint(uint64(v), 10) }

// Server describes the server: GET /v1/server.
type Server struct {
	Version    string    `json:"version"`
	S3Endpoint string    `json:"s3Endpoint,omitempty"`
	Region     string    `json:"region"`
	Started    time.Time `json:"started"`
}

// Bucket describes a bucket: GET /v1/buckets/{name}.
type Bucket struct {
	Name       string    `json:"name"`
	ID         string    `json:"id"`
	Created    time.Time `json:"created"`
	Parent     *Origin   `json:"parent,omitempty"` // of a fork
	Objects    uint64    `json:"objects"`
	Bytes      uint64    `json:"bytes"`
	Version    Version   `json:"version"`    // of the last write
	Versioning string    `json:"versioning"` // off, on or suspended
	Snapshots  bool      `json:"snapshots"`
	HasForks   bool      `json:"hasForks"`
}

// Origin says what a fork was made from. Name is the parent's at that time.
type Origin struct {
	Name     string    `json:"name"`
	ID       string    `json:"id"`
	Snapshot Version   `json:"snapshot"`
	Forked   time.Time `json:"forked"`
}

// Buckets is a page of buckets, by name: GET /v1/buckets[?forksOf=B&limit=N&cursor=]. Without a limit it has up to MaxPage.
type Buckets struct {
	Buckets []Bucket `json:"buckets"`
	Next    string   `json:"next,omitempty"` // the cursor of the next page
}

// CreateBucket asks for a bucket, or for a fork where ForkOf is set: POST /v1/buckets. At is a version, a snapshot's
// name or a time; it goes with ForkOf only.
type CreateBucket struct {
	Name       string `json:"name"`
	Versioning bool   `json:"versioning,omitempty"`
	Snapshots  bool   `json:"snapshots,omitempty"`
	ForkOf     string `json:"forkOf,omitempty"`
	At         string `json:"at,omitempty"`
}

// Snapshot describes a snapshot. Expires is absent for one that stays.
type Snapshot struct {
	Bucket  string    `json:"bucket"`
	Version Version   `json:"version"`
	Name    string    `json:"name,omitempty"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"`
	Objects uint64    `json:"objects"`
	Bytes   uint64    `json:"bytes"`
}

// Snapshots is a list of snapshots, oldest first: GET /v1/buckets/{name}/snapshots.
type Snapshots struct {
	Snapshots []Snapshot `json:"snapshots"`
}

// TakeSnapshot asks for a snapshot: POST /v1/buckets/{name}/snapshots. Lifetime is in seconds; 0 is for ever.
type TakeSnapshot struct {
	Name     string `json:"name,omitempty"`
	Lifetime int64  `json:"lifetime,omitempty"`
}

// Usage is what a bucket takes: GET /v1/buckets/{name}/usage. Unique is what deleting it would give back, Metadata what
// its own index takes.
type Usage struct {
	Objects  uint64 `json:"objects"`
	Bytes    uint64 `json:"bytes"`
	Unique   uint64 `json:"unique"`
	Shared   uint64 `json:"shared"`
	Metadata uint64 `json:"metadata"`
}

// StoreUsage is what the whole store takes: GET /v1/usage. Bytes counts each bucket's own view, so forks count again;
// Payload and Index are what is really on the disk.
type StoreUsage struct {
	Buckets uint64 `json:"buckets"`
	Objects uint64 `json:"objects"`
	Bytes   uint64 `json:"bytes"`
	Payload uint64 `json:"payload"`
	Index   uint64 `json:"index"`
}

// Object is what a diff or conflict shows of an object.
type Object struct {
	Size        int64     `json:"size"`
	ETag        string    `json:"etag"`
	Modified    time.Time `json:"modified"`
	Version     Version   `json:"version"`
	ContentType string    `json:"contentType,omitempty"`
}

// Change is one difference: GET /v1/diff?from=A&to=B[&prefix=P] streams them in order of key. Kind is added, modified,
// deleted or metadata; Old is absent for added, New for deleted.
type Change struct {
	Key  string  `json:"key"`
	Kind string  `json:"kind"`
	Old  *Object `json:"old,omitempty"`
	New  *Object `json:"new,omitempty"`
}

// DiffResult ends the stream of a diff. From and To are the points compared.
type DiffResult struct {
	From     Point `json:"from"`
	To       Point `json:"to"`
	Added    int   `json:"added"`
	Modified int   `json:"modified"`
	Deleted  int   `json:"deleted"`
	Metadata int   `json:"metadata"`
}

// Point is a bucket at a version; no version is now.
type Point struct {
	Bucket  string  `json:"bucket"`
	Version Version `json:"version,omitzero"`
}

// Strategies of a merge.
const (
	Fail   = "fail"
	Ours   = "ours"
	Theirs = "theirs"
)

// Merge asks for a merge, POST /v1/buckets/{source}/merge, or a rebase, POST /v1/buckets/{fork}/rebase, which has no
// Into. Both answer with a stream of nothing but progress, or with one MergeResult unless the client accepts NDJSON.
type Merge struct {
	Into      string `json:"into,omitempty"`      // "" is the source's parent
	Conflicts string `json:"conflicts,omitempty"` // "" is fail
	DryRun    bool   `json:"dryRun,omitempty"`
}

// MergeResult is what a merge did or, in a dry run, would do.
type MergeResult struct {
	Source        string     `json:"source"`
	Target        string     `json:"target"`
	Base          Version    `json:"base"`
	Version       Version    `json:"version,omitzero"`
	DryRun        bool       `json:"dryRun,omitempty"`
	Added         int        `json:"added"`
	Modified      int        `json:"modified"`
	Deleted       int        `json:"deleted"`
	Metadata      int        `json:"metadata"`
	Conflicts     []Conflict `json:"conflicts,omitempty"`
	MoreConflicts int        `json:"moreConflicts,omitempty"` // beyond those that are listed
}

// Conflict is a key that both sides changed since their common base. An absent side doesn't have the key.
type Conflict struct {
	Key    string  `json:"key"`
	Base   *Object `json:"base,omitempty"`
	Ours   *Object `json:"ours,omitempty"`
	Theirs *Object `json:"theirs,omitempty"`
}

// Roles of a key on a bucket.
const (
	ReadOnly  = "ro"
	ReadWrite = "rw"
)

// Scope is what a key may do with one bucket. The server sets BucketID, which ties the key to the bucket that had the
// name when the key was made, and Gone, once that bucket was deleted: the scope is void then, whoever takes the name.
type Scope struct {
	Bucket   string `json:"bucket"`
	Role     string `json:"role"`
	BucketID string `json:"bucketId,omitempty"`
	Gone     bool   `json:"gone,omitempty"`
}

// CreateKey asks for a key: POST /v1/keys. It is a principal's, with at most Role of what that may do, or it has scopes, or
// it may do everything: Root. Without any of these it is the caller's own. Lifetime is in seconds; 0 is for ever.
// POST /v1/keys/{id}/rotate gives a key a new secret.
type CreateKey struct {
	Name      string  `json:"name,omitempty"`
	Principal string  `json:"principal,omitempty"`
	Role      string  `json:"role,omitempty"` // "" is all that the principal has
	Root      bool    `json:"root,omitempty"`
	Scopes    []Scope `json:"scopes,omitempty"`
	Lifetime  int64   `json:"lifetime,omitempty"`
	E2B       bool    `json:"e2b,omitempty"` // one that clients of E2B take, too: its APIKey is e2b_ and hexadecimal digits
}

// Key describes an access key. The secret is told once, when the key is made; APIKey is "<id>.<secret>", which the REST
// API takes as its bearer token.
type Key struct {
	ID        string    `json:"id"`
	Name      string    `json:"name,omitempty"`
	Created   time.Time `json:"created,omitzero"`
	Expires   time.Time `json:"expires,omitzero"`
	Root      bool      `json:"root,omitempty"`      // may do everything
	Principal string    `json:"principal,omitempty"` // as whom it acts
	Role      string    `json:"role,omitempty"`      // the most that it may do of what the principal may
	Scopes    []Scope   `json:"scopes,omitempty"`
	Secret    string    `json:"secret,omitempty"`
	APIKey    string    `json:"apiKey,omitempty"`
}

// Keys is a page of keys: GET /v1/keys[?principal=P&limit=N&cursor=]. Without a limit it has up to MaxPage.
type Keys struct {
	Keys []Key  `json:"keys"`
	Next string `json:"next,omitempty"`
}

// GCResult is what a collection gave back: POST /v1/gc.
type GCResult struct {
	Views uint64 `json:"views"`
	Nodes uint64 `json:"nodes"`
	Slots uint64 `json:"slots"`
	Bytes uint64 `json:"bytes"`
}

// Fsck asks for a check: POST /v1/fsck. It answers with a stream of progress that ends in a FsckResult.
type Fsck struct {
	Repair  bool `json:"repair,omitempty"`  // correct what can be corrected
	Payload bool `json:"payload,omitempty"` // read and verify every byte
}

// FsckResult is what a check found. No defects is a sound store.
type FsckResult struct {
	Buckets   uint64   `json:"buckets"`
	Snapshots uint64   `json:"snapshots"`
	Views     uint64   `json:"views"`
	Nodes     uint64   `json:"nodes"`
	Slots     uint64   `json:"slots"`
	Objects   uint64   `json:"objects"`
	Bytes     uint64   `json:"bytes"` // of payload read and verified
	Defects   []Defect `json:"defects"`
	Repaired  int      `json:"repaired"`
}

// Defect is one thing wrong: Kind is count, leak, missing, corrupt or order.
type Defect struct {
	Kind     string `json:"kind"`
	Where    string `json:"where"`
	What     string `json:"what"`
	Repaired bool   `json:"repaired"`
}

// Progress is how far something has come. Total is 0 while unknown.
type Progress struct {
	Phase string `json:"phase"`
	Done  uint64 `json:"done"`
	Total uint64 `json:"total,omitempty"`
}

// Line is one line of a stream: exactly one field is set. A stream that doesn't end in a Result or an Error was cut off.
type Line[Item, Result any] struct {
	Item     *Item     `json:"item,omitempty"`
	Progress *Progress `json:"progress,omitempty"`
	Result   *Result   `json:"result,omitempty"`
	Error    *Problem  `json:"error,omitempty"`
}

// None is the item of a stream that has none.
type None struct{}

// Problem is an error (RFC 9457). Type is a URI that ends in the kind, with dashes for spaces. Detail is its whole text,
// "op: thing: cause"; the parts stand beside it, so that a client can word it again. Rule names what denied the request.
// Merge, or Files for one of sandboxes, is set for a merge that met conflicts. Request names the request in the server's log.
type Problem struct {
	Type    string       `json:"type,omitempty"`
	Title   string       `json:"title"`
	Status  int          `json:"status"`
	Detail  string       `json:"detail"`
	Kind    string       `json:"kind"`
	Op      string       `json:"op,omitempty"`
	Thing   string       `json:"thing,omitempty"`
	Cause   string       `json:"cause,omitempty"`
	Hint    string       `json:"hint,omitempty"`
	Rule    string       `json:"rule,omitempty"`
	Request string       `json:"request,omitempty"`
	Merge   *MergeResult `json:"merge,omitempty"`
	Files   *FileMerge   `json:"files,omitempty"`
}
