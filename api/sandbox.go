package api

import "time"

// States of a sandbox. Those that end in -ing are on their way to the next.
const (
	StateStarting    = "starting"
	StateWarm        = "warm" // in a pool, nobody's yet
	StateRunning     = "running"
	StateHibernating = "hibernating"
	StateHibernated  = "hibernated" // on disk; the next use resumes it
	StateResuming    = "resuming"
	StateEnding      = "ending"
	StateEnded       = "ended"
	StateFailed      = "failed" // ended by a failure: see Reason
)

// Visibility of a sandbox, beside its owner and whoever administers.
const (
	Private = "private" // nobody else
	Team    = "team"    // the owner's teams
	All     = "all"     // everybody
)

// CreateSandbox asks for a sandbox: POST /v1/sandboxes. Exactly one of Template, Pool and Snapshot is set. A Name is the
// sandbox's among those that haven't ended; taken, it is a conflict. With the header Idempotency-Key a request that is
// repeated within 24 hours is answered as the first was.
type CreateSandbox struct {
	Name         string            `json:"name,omitempty"`
	Template     string            `json:"template,omitempty"` // or NAME@VERSION; else its newest version that is built
	Pool         string            `json:"pool,omitempty"`
	Snapshot     string            `json:"snapshot,omitempty"`    // id of a SandboxSnapshot
	Reservation  string            `json:"reservation,omitempty"` // id of a Reservation of the pool
	Env          map[string]string `json:"env,omitempty"`
	Secrets      []SecretUse       `json:"secrets,omitempty"`
	Lease        *Lease            `json:"lease,omitempty"`   // over the template's
	Network      *NetworkPolicy    `json:"network,omitempty"` // at most what the template allows
	Volumes      []VolumeMount     `json:"volumes,omitempty"`
	Visibility   string            `json:"visibility,omitempty"`
	Owner        string            `json:"owner,omitempty"` // another principal than the caller; for operators
	Conversation string            `json:"conversation,omitempty"`
	Labels       Labels            `json:"labels,omitempty"`
}

// SecretUse puts a secret's value into the environment of a sandbox, as the variable Env, or Key if that is empty.
type SecretUse struct {
	Name string    `json:"name,omitempty"` // for people
	Ref  SecretRef `json:"secretRef"`
	Env  string    `json:"env,omitempty"`
	Fork string    `json:"fork,omitempty"` // what forks get: same (the default) or drop
}

// SecretRef names a value of a Secret.
type SecretRef struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}

// Sandbox describes a sandbox: GET /v1/sandboxes/{id}, where id is an id or a name; GET /v1/sandboxes.
type Sandbox struct {
	ID            string          `json:"id"`
	Name          string          `json:"name,omitempty"`
	State         string          `json:"state"`
	Reason        string          `json:"reason,omitempty"` // of its state, where there is one to tell
	Template      string          `json:"template,omitempty"`
	Version       int             `json:"version,omitempty"` // of the template
	Pool          string          `json:"pool,omitempty"`
	Parent        string          `json:"parent,omitempty"` // id of the sandbox that it was forked from
	Fork          string          `json:"fork,omitempty"`   // name of the fork that made it
	Root          string          `json:"root"`             // id of the first of its tree; its own where it wasn't forked
	Depth         int             `json:"depth"`            // in the tree: 0 is the root
	Owner         string          `json:"owner,omitempty"`
	Visibility    string          `json:"visibility,omitempty"`
	Node          string          `json:"node,omitempty"`
	Engine        string          `json:"engine"`
	Endpoint      string          `json:"endpoint,omitempty"` // host:port of the API through which it is reached
	Language      string          `json:"language,omitempty"`
	Volumes       []SandboxVolume `json:"volumes,omitempty"`
	Network       NetworkPolicy   `json:"network,omitzero"`
	Lease         Lease           `json:"lease"`
	Created       time.Time       `json:"created"`
	Claimed       time.Time       `json:"claimed,omitzero"`
	Started       time.Time       `json:"started,omitzero"` // when it began to run, or last woke up
	Expires       time.Time       `json:"expires,omitzero"` // if it isn't used; absent while it sleeps
	Ended         time.Time       `json:"ended,omitzero"`
	Epoch         uint64          `json:"epoch"`                   // grows with every start
	Conversations []string        `json:"conversations,omitempty"` // that it is attached to
	Labels        Labels          `json:"labels,omitempty"`
	// ActivationTime and RecordTime are what the claim took at the node and in the records, in seconds; they run side by side.
	ActivationTime float64 `json:"activationTime,omitempty"`
	RecordTime     float64 `json:"recordTime,omitempty"`
}

// SandboxVolume is a volume of a sandbox as it is.
type SandboxVolume struct {
	Name       string `json:"name"`
	Path       string `json:"path"`
	Bucket     string `json:"bucket,omitempty"` // absent for one in memory
	ReadOnly   bool   `json:"readOnly,omitempty"`
	ForkPolicy string `json:"forkPolicy,omitempty"`
	Size       int64  `json:"size,omitempty"`
}

// Sandboxes is a page of sandboxes, newest first: GET /v1/sandboxes?state=&owner=&template=&pool=&root=&parent=&name=&label=K=V
// &conversation=&limit=&cursor=. Warm ones and ended ones are listed only if state asks for them; state=any does.
type Sandboxes struct {
	Sandboxes []Sandbox `json:"sandboxes"`
	Next      string    `json:"next,omitempty"` // the cursor of the next page
}

// MaxPage bounds the limit of a page; without one it is DefaultPage.
const (
	MaxPage     = 1000
	DefaultPage = 100
)

// ChangeSandbox changes what is set: PATCH /v1/sandboxes/{id}. Labels that are null go. Network is in force at once, also for connections
// that are open.
type ChangeSandbox struct {
	Name       *string            `json:"name,omitempty"`
	Visibility *string            `json:"visibility,omitempty"`
	Lease      *Lease             `json:"lease,omitempty"`
	Network    *NetworkPolicy     `json:"network,omitempty"` // at most what its template, and the fork that made it, allow
	Labels     map[string]*string `json:"labels,omitempty"`
}

// Extend moves the end of a lease to now + Seconds, if that is later: POST /v1/sandboxes/{id}/extend. 0 is the lease's own.
type Extend struct {
	Seconds int64 `json:"seconds,omitempty"`
	Exact   bool  `json:"exact,omitempty"` // also if that is earlier
}

// HibernateSandbox saves a sandbox to disk: POST /v1/sandboxes/{id}/hibernate. While somebody uses it, it is a conflict; unless by Force: then
// what runs goes to sleep with it, processes that can't be saved are killed, and whoever waits for one is told.
type HibernateSandbox struct {
	Force bool `json:"force,omitempty"`
}

// ForkSandbox asks for copies of a running sandbox: POST /v1/sandboxes/{id}/fork. They are of one instant, and all or none
// are made. A sleeping sandbox wakes up for it.
type ForkSandbox struct {
	Count   int               `json:"count,omitempty"` // 0 is 1; at most MaxForks
	Name    string            `json:"name,omitempty"`  // of the fork; children are NAME, or NAME-1, NAME-2 … of several
	Env     map[string]string `json:"env,omitempty"`   // over the parent's
	Secrets []SecretUse       `json:"secrets,omitempty"`
	Lease   *Lease            `json:"lease,omitempty"`
	Network *NetworkPolicy    `json:"network,omitempty"` // at most the parent's
	Kill    bool              `json:"kill,omitempty"`    // processes that can't be copied are missing in the children, instead of failing the fork
	Labels  Labels            `json:"labels,omitempty"`
}

// MaxForks bounds the children of one fork.
const MaxForks = 1000

// Fork is copies that were made together: the answer to ForkSandbox; GET /v1/forks[/{name}]. PUT /v1/forks/{name} takes a
// ForkSpec and makes it unless it exists; DELETE ends its sandboxes.
type Fork struct {
	Name      string    `json:"name"` // an id where none was given
	Source    string    `json:"source"`
	Count     int       `json:"count"`
	State     string    `json:"state"` // ready, pending or failed
	Reason    string    `json:"reason,omitempty"`
	Sandboxes []Sandbox `json:"sandboxes,omitempty"`
	Created   time.Time `json:"created"`
	Duration  float64   `json:"duration,omitempty"` // seconds that it took
}

// ForkSpec is a fork as it is declared. Source is the id or name of a sandbox.
type ForkSpec struct {
	Source   string `json:"source"`
	Replicas int    `json:"replicas"`
}

// Forks is a page of forks.
type Forks struct {
	Forks []Fork `json:"forks"`
	Next  string `json:"next,omitempty"`
}

// Tree is a sandbox with all that were forked from it: GET /v1/sandboxes/{id}/tree, from the root with ?root=true.
type Tree struct {
	Sandbox  Sandbox       `json:"sandbox"`
	Usage    *SandboxUsage `json:"usage,omitempty"`
	Total    *SandboxUsage `json:"total,omitempty"` // with all that is below it
	Children []Tree        `json:"children,omitempty"`
}

// ClaimSpec is a claim as it is declared: PUT /v1/claims/{name} makes it unless it exists with the same spec.
type ClaimSpec struct {
	Pool     string            `json:"pool,omitempty"`
	Template string            `json:"template,omitempty"`
	Env      map[string]string `json:"env,omitempty"`
	Secrets  []SecretUse       `json:"secrets,omitempty"`
	Lease    *Lease            `json:"lease,omitempty"`
	Labels   Labels            `json:"labels,omitempty"`
}

// Claim is a sandbox that was asked for by a name: GET /v1/claims[/{name}]; DELETE ends the sandbox and forgets the claim.
type Claim struct {
	Name     string    `json:"name"`
	Pool     string    `json:"pool,omitempty"`
	Template string    `json:"template,omitempty"`
	State    string    `json:"state"` // pending, ready, hibernated, ended or failed
	Reason   string    `json:"reason,omitempty"`
	Sandbox  string    `json:"sandbox,omitempty"` // id
	Endpoint string    `json:"endpoint,omitempty"`
	Owner    string    `json:"owner,omitempty"`
	Created  time.Time `json:"created"`
}

// Claims is a page of claims.
type Claims struct {
	Claims []Claim `json:"claims"`
	Next   string  `json:"next,omitempty"`
}

// Reserve holds a warm sandbox back for whoever is about to claim: POST /v1/reservations.
type Reserve struct {
	Pool    string `json:"pool"`
	Seconds int64  `json:"seconds,omitempty"` // 0 is 60; at most 600
}

// Reservation is a warm sandbox that is held back: DELETE /v1/reservations/{id} gives it up early.
type Reservation struct {
	ID      string    `json:"id"`
	Pool    string    `json:"pool"`
	Expires time.Time `json:"expires"`
}

// TakeSandboxSnapshot asks for a snapshot of a sandbox's files: POST /v1/sandboxes/{id}/snapshots. With Memory its memory and
// processes are in it, too, and what is made of it goes on from there; the sandbox itself goes on. What it was given at its claim isn't in it,
// but what a process has in its memory is.
type TakeSandboxSnapshot struct {
	Name   string `json:"name,omitempty"`
	Memory bool   `json:"memory,omitempty"`
	Kill   bool   `json:"kill,omitempty"` // with memory: processes that can't be copied are missing, instead of failing it
}

// SandboxSnapshot is the files of all durable volumes of a sandbox at one instant, with Memory all of it: GET /v1/snapshots[/{id}]
// [?sandbox=ID]; DELETE. It outlives its sandbox. Buckets are what holds the files, by path; memory is on the sandbox's node.
type SandboxSnapshot struct {
	ID       string            `json:"id"`
	Name     string            `json:"name,omitempty"`
	Sandbox  string            `json:"sandbox"`
	Template string            `json:"template,omitempty"`
	Version  int               `json:"version,omitempty"`
	Engine   string            `json:"engine,omitempty"` // of the sandbox; what is made of its memory is of the same
	Owner    string            `json:"owner,omitempty"`
	Memory   bool              `json:"memory,omitempty"`
	Buckets  map[string]string `json:"buckets"`
	Created  time.Time         `json:"created"`
}

// SandboxSnapshots is a page of snapshots.
type SandboxSnapshots struct {
	Snapshots []SandboxSnapshot `json:"snapshots"`
	Next      string            `json:"next,omitempty"`
}

// FileChange is one difference between the files of two sandboxes: GET /v1/sandboxes/{id}/diff?to=ID[&path=P], whose lines
// they are, in order of path; id is before, to is after; without to it is what changed since the sandbox was forked or
// claimed. The result is a FileDiff.
type FileChange struct {
	Path    string `json:"path"`
	Kind    string `json:"kind"` // added, modified, deleted or metadata
	OldSize int64  `json:"oldSize,omitempty"`
	NewSize int64  `json:"newSize,omitempty"`
}

// FileDiff ends the stream of a diff of sandboxes.
type FileDiff struct {
	From     string `json:"from"`
	To       string `json:"to"`
	Added    int    `json:"added"`
	Modified int    `json:"modified"`
	Deleted  int    `json:"deleted"`
	Metadata int    `json:"metadata"`
}

// MergeSandbox merges the files of a sandbox into another: POST /v1/sandboxes/{id}/merge. Their base is what both were
// forked from. Conflicts is fail, ours (the target's) or theirs.
type MergeSandbox struct {
	Into      string `json:"into,omitempty"` // "" is the parent
	Conflicts string `json:"conflicts,omitempty"`
	DryRun    bool   `json:"dryRun,omitempty"`
}

// FileMerge is what a merge of sandboxes did. Conflicts are paths; with fail and any of them nothing was changed.
type FileMerge struct {
	Source        string   `json:"source"`
	Target        string   `json:"target"`
	DryRun        bool     `json:"dryRun,omitempty"`
	Added         int      `json:"added"`
	Modified      int      `json:"modified"`
	Deleted       int      `json:"deleted"`
	Metadata      int      `json:"metadata"`
	Conflicts     []string `json:"conflicts,omitempty"`
	MoreConflicts int      `json:"moreConflicts,omitempty"`
}

// Credentials are S3 keys for the buckets of one sandbox and nothing else: POST /v1/sandboxes/{id}/credentials. They end
// with it.
type Credentials struct {
	Endpoint        string            `json:"endpoint"`
	Region          string            `json:"region"`
	AccessKeyID     string            `json:"accessKeyId"`
	SecretAccessKey string            `json:"secretAccessKey"`
	Buckets         map[string]string `json:"buckets"` // by path
	Expires         time.Time         `json:"expires,omitzero"`
}

// SandboxUsage is what a sandbox, or several, used so far: GET /v1/sandboxes/{id}/usage. Seconds and bytes.
type SandboxUsage struct {
	CPUSeconds        float64 `json:"cpuSeconds"`
	MemoryGiBSeconds  float64 `json:"memoryGiBSeconds"`
	StorageGiBSeconds float64 `json:"storageGiBSeconds"` // of bytes that are its own
	NetworkIn         int64   `json:"networkIn"`
	NetworkOut        int64   `json:"networkOut"`
	Seconds           float64 `json:"seconds"`          // that it ran
	Memory            int64   `json:"memory,omitempty"` // bytes now, of its own
	MemoryShared      int64   `json:"memoryShared,omitempty"`
	Storage           int64   `json:"storage,omitempty"` // bytes now, of its own
	Processes         int     `json:"processes,omitempty"`
	Sandboxes         int     `json:"sandboxes,omitempty"` // that it is the sum of
}

// Sample is what a sandbox used at a moment.
type Sample struct {
	Time        time.Time `json:"time"`
	CPU         float64   `json:"cpu"`         // percent of one processor, since the sample before
	CPUs        float64   `json:"cpus"`        // that it may use
	Memory      int64     `json:"memory"`      // bytes, with what it shares
	MemoryLimit int64     `json:"memoryLimit"` // bytes: the template's, or what its node has
	Disk        int64     `json:"disk"`        // bytes of its volumes that are its own
	DiskLimit   int64     `json:"diskLimit,omitempty"`
	Processes   int       `json:"processes"`
	NetworkIn   int64     `json:"networkIn"`  // bytes, so far
	NetworkOut  int64     `json:"networkOut"` // bytes, so far
}

// SandboxMetrics is what a sandbox used over time, oldest first: GET /v1/sandboxes/{id}/metrics[?from=T&to=T]. Samples are taken every few
// seconds while it runs; of what was long ago only some are kept, and none when the server is started anew.
type SandboxMetrics struct {
	Samples []Sample `json:"samples"`
}

// PrincipalUsage is what a principal's sandboxes used: GET /v1/principals/{name}/usage.
type PrincipalUsage struct {
	Principal string       `json:"principal"`
	Usage     SandboxUsage `json:"usage"`
	Running   int          `json:"running"`
	Budget    *Budget      `json:"budget,omitempty"`
}

// Budget bounds what a principal's sandboxes may use; 0 is no bound. What would go beyond it is refused, and sandboxes
// that go beyond it hibernate.
type Budget struct {
	CPUSeconds        float64 `json:"cpuSeconds,omitempty"`
	MemoryGiBSeconds  float64 `json:"memoryGiBSeconds,omitempty"`
	StorageGiBSeconds float64 `json:"storageGiBSeconds,omitempty"`
	NetworkBytes      int64   `json:"networkBytes,omitempty"`
	Sandboxes         int     `json:"sandboxes,omitempty"` // that run at once
}

// Kinds of events.
const (
	EventCreated    = "created"
	EventStarted    = "started"
	EventClaimed    = "claimed"
	EventForked     = "forked"
	EventExpiring   = "expiring" // the lease ends within a minute
	EventHibernated = "hibernated"
	EventAwake      = "awake" // it was to hibernate and couldn't: it runs on, and that is tried again later
	EventResumed    = "resumed"
	EventEnded      = "ended"
	EventFailed     = "failed"
	EventAttached   = "attached"
	EventDetached   = "detached"
	EventMerged     = "merged"
	EventPromoted   = "promoted"
	EventBudget     = "budget" // a budget is used up
	EventBuilt      = "built"  // a template, or its build failed
	EventNode       = "node"   // came, or was lost
)

// Event is something that happened: GET /v1/events?after=SEQ[&sandbox=ID&kind=K&limit=N]. With Accept: text/event-stream it is
// a stream that goes on; Last-Event-ID resumes it. Events are kept for 7 days at least.
type Event struct {
	Seq      uint64            `json:"seq,string"`
	Time     time.Time         `json:"time"`
	Kind     string            `json:"kind"`
	Sandbox  string            `json:"sandbox,omitempty"`
	Template string            `json:"template,omitempty"`
	Pool     string            `json:"pool,omitempty"`
	Node     string            `json:"node,omitempty"`
	Owner    string            `json:"owner,omitempty"`
	Text     string            `json:"text,omitempty"` // for people
	Data     map[string]string `json:"data,omitempty"`
}

// Events is a page of events. Next is the position after its last.
type Events struct {
	Events []Event `json:"events"`
	Next   uint64  `json:"next,string"`
}

// Node is a host that runs sandboxes: GET /v1/nodes[/{name}].
type Node struct {
	Name      string            `json:"name"`
	State     string            `json:"state"` // ready, draining or lost
	Address   string            `json:"address,omitempty"`
	Version   string            `json:"version,omitempty"`
	Engines   map[string]string `json:"engines"` // by name: "" if it works, or why not
	Sandboxes int               `json:"sandboxes"`
	Capacity  int               `json:"capacity,omitempty"` // sandboxes; 0: as memory allows
	CPUs      int               `json:"cpus,omitempty"`
	Memory    int64             `json:"memory,omitempty"`
	Free      int64             `json:"free,omitempty"`      // memory
	Templates []string          `json:"templates,omitempty"` // NAME@VERSION, that it holds
	Seen      time.Time         `json:"seen"`
}

// Nodes is a page of nodes, by name: without a limit, up to MaxPage.
type Nodes struct {
	Nodes []Node `json:"nodes"`
	Next  string `json:"next,omitempty"`
}

// Modes of an agent: which sandbox its conversations get.
const (
	ModeNone    = "none"
	ModeFixed   = "fixed"          // one for all: Sandbox
	ModePerUser = "per-user"       // each user's own
	ModeChoose  = "user-chooses"   // whatever is attached
	ModeFresh   = "fresh-per-chat" // a new one, which ends Retention after the conversation did
)

// Agent says which sandboxes an agent's conversations get: PUT, GET, DELETE /v1/agents/{name}; GET /v1/agents.
type Agent struct {
	Name      string `json:"name"`
	Mode      string `json:"mode"`
	Sandbox   string `json:"sandbox,omitempty"` // of fixed
	Pool      string `json:"pool,omitempty"`    // where new ones are claimed from
	Template  string `json:"template,omitempty"`
	Retention int64  `json:"retention,omitempty"` // seconds, of fresh-per-chat; 0 is a day
	Owner     string `json:"owner,omitempty"`
}

// Agents is a page of agents, by name: without a limit, up to MaxPage.
type Agents struct {
	Agents []Agent `json:"agents"`
	Next   string  `json:"next,omitempty"`
}

// Attach attaches a sandbox to a conversation: POST /v1/conversations/{id}/attach. Which one is the agent's mode to say;
// Sandbox is for user-chooses, and may be empty where the user has one already. User is whose conversation it is; another
// than the caller is for operators.
type Attach struct {
	Agent   string `json:"agent,omitempty"`
	Sandbox string `json:"sandbox,omitempty"`
	User    string `json:"user,omitempty"`
}

// Conversation is what is attached to a conversation: GET /v1/conversations/{id}; POST …/detach; DELETE ends it.
type Conversation struct {
	ID       string    `json:"id"`
	Agent    string    `json:"agent,omitempty"`
	User     string    `json:"user,omitempty"`
	Mode     string    `json:"mode,omitempty"`
	Sandbox  string    `json:"sandbox,omitempty"` // id; absent when none is attached
	Attached time.Time `json:"attached,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
}

// Mounts say what stands behind the mounts that templates may name: GET, PUT /v1/mounts. private is a bucket of the owner's,
// made when it is first needed, at /private, read-write; shared and public are buckets at /shared and /public, read-only.
type Mounts struct {
	Private bool   `json:"private"`           // whether there is one
	Prefix  string `json:"prefix,omitempty"`  // of the private buckets' names; "" is "private-"
	Shared  string `json:"shared,omitempty"`  // bucket
	Public  string `json:"public,omitempty"`  // bucket
	Default bool   `json:"default,omitempty"` // every template has those that there are, unless it names its own
}
