package api

import "time"

// Engines of sandboxes.
const (
	Userspace = "userspace" // a Unix in the server's own process, without privileges
	OCI       = "oci"       // a container
	MicroVM   = "microvm"   // a virtual machine
)

// Languages that text given to exec is run as; see Run.
const (
	Shell      = "shell"
	Python     = "python"
	JavaScript = "javascript"
)

// TemplateSpec says what a sandbox looks like.
type TemplateSpec struct {
	Engine string `json:"engine,omitempty"` // "" is userspace
	// Image is what the root is made of. With userspace: a name of the catalogue, such as python:3.12-slim, or "bucket:NAME[@SNAPSHOT]"; ""
	// is its own userland. With microvm: an OCI image, by its name in a registry; "" is the node's default.
	Image     string            `json:"image,omitempty"`
	Init      []string          `json:"init,omitempty"`     // shell lines, run once when the template is built, in order; the first that fails fails the build
	Language  string            `json:"language,omitempty"` // what exec takes text for if it parses as that; "" is the image's own, else shell
	Dir       string            `json:"dir,omitempty"`      // where commands start; "" is /workspace
	Env       map[string]string `json:"env,omitempty"`
	Resources Resources         `json:"resources,omitzero"`
	Volumes   []Volume          `json:"volumes,omitempty"` // without one at /workspace there is an empty bucket there, with fork policy Snapshot
	Mounts    []string          `json:"mounts,omitempty"`  // of private, shared, public: see Mounts
	Network   NetworkPolicy     `json:"network,omitzero"`
	Lease     Lease             `json:"lease,omitzero"`
}

// Resources bound a sandbox. Zero is the engine's default.
type Resources struct {
	CPU       float64 `json:"cpu,omitempty"`       // processors
	Memory    int64   `json:"memory,omitempty"`    // bytes
	Disk      int64   `json:"disk,omitempty"`      // bytes written over its life
	Processes int     `json:"processes,omitempty"` // at once
	// Rates bound what is done in a time; microvm keeps them, and other engines refuse them. DiskRate is of what is read and written: of the
	// volumes together and, once more, of the root's image. NetworkInRate and NetworkOutRate are of what the sandbox receives and sends.
	DiskRate       Rate `json:"diskRate,omitzero"`
	NetworkInRate  Rate `json:"networkInRate,omitzero"`
	NetworkOutRate Rate `json:"networkOutRate,omitzero"`
}

// Rate bounds what may be done in a second. Zero is no bound. A burst is what may be done at once after a rest; without one it is a second's.
type Rate struct {
	BytesPerSecond      int64 `json:"bytesPerSecond,omitempty"`      // at least 4096
	OperationsPerSecond int64 `json:"operationsPerSecond,omitempty"` // reads and writes of a disk, packets of a network
	BurstBytes          int64 `json:"burstBytes,omitempty"`          // needs bytesPerSecond
	BurstOperations     int64 `json:"burstOperations,omitempty"`     // needs operationsPerSecond
}

// Fork policies: what a fork of the sandbox gets in place of a volume.
const (
	Fresh          = "Fresh"    // an empty one
	Share          = "Share"    // the same one
	SnapshotPolicy = "Snapshot" // what it held at the cut, copied when written
	Clone          = "Clone"    // what it held at the cut, copied at once
)

// Volume is a filesystem of a sandbox. Without a source it is a bucket of its own, empty at first.
type Volume struct {
	Name       string       `json:"name"`
	Path       string       `json:"path,omitempty"` // where it is mounted; "" is /NAME
	Size       int64        `json:"size,omitempty"` // bytes that its files may have together; 0: no limit of its own
	ReadOnly   bool         `json:"readOnly,omitempty"`
	ForkPolicy string       `json:"forkPolicy,omitempty"` // "" is Snapshot, and Share where it is read-only
	Source     VolumeSource `json:"source,omitzero"`
}

// VolumeSource says what a volume holds at first. At most one field is set.
type VolumeSource struct {
	Bucket string `json:"bucket,omitempty"` // a fork of this bucket (or NAME@SNAPSHOT); the bucket itself if the volume is shared
	Memory bool   `json:"memory,omitempty"` // nothing: it is in memory and never durable
}

// NetworkPolicy says what a sandbox may connect to. The zero value denies everything.
type NetworkPolicy struct {
	Egress string   `json:"egress,omitempty"` // deny or allow: of what no rule names; "" is deny
	Allow  []string `json:"allow,omitempty"`  // HOST[:PORT], *.HOST[:PORT], CIDR[:PORT]
	Deny   []string `json:"deny,omitempty"`   // such rules, too: with egress allow, what isn't allowed unless a rule of Allow names it
}

// What becomes of a sandbox whose lease ran out.
const (
	Hibernate = "hibernate"
	End       = "end"
)

// Modes of a lease.
const (
	Sliding = "sliding" // every use moves the end
	Fixed   = "fixed"   // only an Extend does
)

// What wakes a sandbox that hibernates.
const (
	WakeOnUse    = "use"
	WakeOnResume = "resume" // nothing but POST /v1/sandboxes/{id}/resume and an Extend; other uses are a conflict
)

// Lease is how long a sandbox lives, in seconds: Duration at first; every use moves the end to now + Extend, if that is
// later. With mode fixed no use does, and when it has run out the sandbox hibernates or ends whoever uses it; what runs goes to sleep with
// it, as far as it can. Retention is how long the record of an ended sandbox is kept.
type Lease struct {
	Duration  int64  `json:"duration,omitempty"`  // 0 is 600
	Extend    int64  `json:"extend,omitempty"`    // 0 is 600
	OnExpiry  string `json:"onExpiry,omitempty"`  // hibernate or end; "" is hibernate
	Mode      string `json:"mode,omitempty"`      // sliding or fixed; "" is sliding
	Wake      string `json:"wake,omitempty"`      // use or resume; "" is use
	MaxAge    int64  `json:"maxAge,omitempty"`    // ended at this age whatever its use; 0: never
	Sleep     int64  `json:"sleep,omitempty"`     // a hibernated one is ended after so long; 0 is 30 days
	Retention int64  `json:"retention,omitempty"` // 0 is 7 days
}

// States of a template's build.
const (
	BuildQueued  = "queued"
	BuildRunning = "building"
	BuildReady   = "ready"
	BuildFailed  = "failed"
)

// Template is a version of a template: GET /v1/templates/{name}[?version=N], GET /v1/templates. PUT of a TemplateSpec makes a
// new version if it differs from the newest; POST /v1/templates takes a CreateTemplate. Sandboxes and pools use the newest
// version that is ready.
type Template struct {
	Name     string       `json:"name"`
	Version  int          `json:"version"` // from 1
	Spec     TemplateSpec `json:"spec"`
	State    string       `json:"state"`           // of the build
	Error    string       `json:"error,omitempty"` // why it failed
	Progress float64      `json:"progress"`        // of the build, 0 to 1
	Notes    []string     `json:"notes,omitempty"` // what the builder decided, such as what an image's name stands for
	Owner    string       `json:"owner,omitempty"`
	Created  time.Time    `json:"created"`
	Built    time.Time    `json:"built,omitzero"`
	Latest   bool         `json:"latest,omitempty"` // the newest version
	Labels   Labels       `json:"labels,omitempty"`
}

// Labels are names and values that people give to things, to find them by.
type Labels map[string]string

// CreateTemplate asks for a template: POST /v1/templates. A name that is taken is a conflict.
type CreateTemplate struct {
	Name   string       `json:"name"`
	Spec   TemplateSpec `json:"spec"`
	Labels Labels       `json:"labels,omitempty"`
}

// Templates is a page of templates.
type Templates struct {
	Templates []Template `json:"templates"`
	Next      string     `json:"next,omitempty"`
}

// BuildLine is a line of a build's log: GET /v1/templates/{name}/log[?version=N&follow=true], as NDJSON or SSE.
type BuildLine struct {
	Time time.Time `json:"time"`
	Text string    `json:"text"`
}

// PoolSpec says how many warm sandboxes of a template are kept: PUT /v1/pools/{name}.
type PoolSpec struct {
	Template string `json:"template"`
	Replicas int    `json:"replicas"` // 0 to MaxReplicas
	// MaxSandboxes bounds those that were claimed from the pool and haven't ended; 0 is no bound.
	MaxSandboxes int    `json:"maxSandboxes,omitempty"`
	Labels       Labels `json:"labels,omitempty"`
}

// MaxReplicas bounds a pool.
const MaxReplicas = 10_000

// Pool is warm sandboxes of a template: GET /v1/pools, GET /v1/pools/{name}.
type Pool struct {
	Name      string    `json:"name"`
	Spec      PoolSpec  `json:"spec"`
	Version   int       `json:"version"`   // of the template, that its sandboxes have
	Ready     int       `json:"ready"`     // warm sandboxes
	Snapshots int       `json:"snapshots"` // of them, those that stand at the template's snapshot
	Claimed   int       `json:"claimed"`   // claimed from it, and not ended
	Reserved  int       `json:"reserved"`  // held back for those who are about to claim
	State     string    `json:"state"`     // ready, filling, building or failed
	Error     string    `json:"error,omitempty"`
	Owner     string    `json:"owner,omitempty"`
	Created   time.Time `json:"created"`
}

// Pools is a page of pools.
type Pools struct {
	Pools []Pool `json:"pools"`
	Next  string `json:"next,omitempty"`
}
