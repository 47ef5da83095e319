package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/engine"
	"agentrun.dev/volume"
)

// Host is what control asks of a node, whether it is this process' own (Local) or far away (package node/rpc). Ids and
// epochs are control's: to do what was done already, for the same id and epoch, changes nothing and succeeds; a request
// of an older epoch is errs.Conflict. errs.NotFound says that the node doesn't have the sandbox or image, errs.Unavailable
// that it can't now.
type Host interface {
	// Info tells what the node is and has.
	Info(ctx context.Context) (*Info, error)

	// Build makes an image: a sandbox as Spec says, its Init run to the end, captured with its volumes and kept on disk.
	// What init writes goes to log. An error whose kind is errs.Invalid is the template's own: an init line that failed.
	Build(ctx context.Context, b Build, log io.Writer) error
	// Images lists those that are held.
	Images(ctx context.Context) ([]string, error)
	// DropImage forgets one; sandboxes that came from it go on. A missing one is fine.
	DropImage(ctx context.Context, image string) error

	// Start makes a sandbox of an image, that waits to be claimed or is claimed at once.
	Start(ctx context.Context, s Start) (*Running, error)
	// Claim gives a sandbox that waits its identity: it is as if it had been started with it.
	Claim(ctx context.Context, id string, epoch uint64, c Claim) error
	// Fork makes children of a running sandbox at one instant, all or none.
	Fork(ctx context.Context, id string, f Fork) ([]*Running, error)
	// SetNetwork replaces the rules of what a claimed sandbox may connect to. Connections that they don't allow are closed.
	SetNetwork(ctx context.Context, id string, epoch uint64, rules []string) error
	// Hibernate saves a sandbox to disk and ends it here; what it saved is durable when it returns. With kill, processes that can't be saved
	// are missing when it wakes up, and so are sandboxes that it made of itself. Whoever waits for a command that goes to sleep gets errs.Unavailable.
	Hibernate(ctx context.Context, id string, kill bool) error
	// Wake resumes a sandbox that hibernates, under a new epoch. c replaces what it was claimed with: secrets aren't saved.
	// A sandbox that ran when its node crashed is asleep afterwards: its durable volumes are as they were, everything else is as
	// its image has it.
	Wake(ctx context.Context, id string, epoch uint64, c Claim) (*Running, error)
	// End ends a sandbox, running or asleep, and deletes what was made for it. A missing one is fine.
	End(ctx context.Context, id string) error
	// Status tells of every sandbox that is here, running or asleep.
	Status(ctx context.Context) ([]Status, error)
	// Usage returns the bytes that only this sandbox's volumes hold. It costs more than Status.
	Usage(ctx context.Context, id string) (storage int64, err error)

	// Exec starts a command in a running sandbox. ctx bounds the start only; Process.Wait, what follows.
	Exec(ctx context.Context, id string, c engine.Cmd) (engine.Process, error)
	// Code runs a text, as api.Run has it, to its end.
	Code(ctx context.Context, id string, c Code) (*CodeResult, error)
	// Processes lists commands that were started and haven't ended; Signal sends one of them a signal.
	Processes(ctx context.Context, id string) ([]engine.Running, error)
	Signal(ctx context.Context, id string, pid, sig int) error
	// Attach takes up the output of a command that runs, or the status of one that ended lately, as engine.Attacher has it.
	Attach(ctx context.Context, id string, pid int, c engine.Cmd) (engine.Process, error)
	// Files are the sandbox's files.
	Files(ctx context.Context, id string) (Files, error)
	// Dial connects to a server inside the sandbox that listens on a port. None there is errs.Unavailable.
	Dial(ctx context.Context, id string, port int) (net.Conn, error)

	// Capture makes an image of a running sandbox as it is at one instant: memory, processes and files, and nothing of its claim. Start makes
	// sandboxes of it that go on from there. It is durable when Capture returns, and the sandbox goes on. The buckets of its durable
	// volumes are forked as by Snapshot, at that instant, and returned. To capture a sandbox again under the same name changes nothing.
	Capture(ctx context.Context, id string, c Capture) (map[string]string, error)
	// Snapshot forks the buckets of a sandbox's durable volumes at one instant into buckets that stay, named prefix-VOLUME;
	// it returns them by path.
	Snapshot(ctx context.Context, id, prefix string) (map[string]string, error)
	// Diff yields what differs in sandbox b from a, by path: both of this node; b empty means what changed in a since it was
	// forked or claimed.
	Diff(ctx context.Context, a, b string, paths []string, yield func(api.FileChange) error) error
	// Merge merges the files of a sandbox into another of this node.
	Merge(ctx context.Context, source, target string, m api.MergeSandbox) (*api.FileMerge, error)
}

// Info describes a node.
type Info struct {
	Name      string
	Version   string
	Engines   map[string]string   // by name: "" if it works, or why not
	Lacks     map[string][]string // by name of one that works: the features (package engine) that it doesn't give
	Max       int                 // sandboxes; 0: as memory allows
	CPUs      int
	Memory    int64 // bytes
	Free      int64 // of them
	Sandboxes int
}

// Build describes an image to make.
type Build struct {
	Image   string // its name: of a template and version, of a–z, 0–9, '-', '.' and '@'
	Spec    Spec
	Init    []string // shell lines
	Network []string // rules for Init only
	// Language is that of the session which is begun in the image already: the first text of it runs at once. Empty: none.
	Language string
	Timeout  time.Duration
}

// Start describes a sandbox to start.
type Start struct {
	ID, Name string
	Epoch    uint64
	Image    string
	// Volumes replace those of the image with the same path, or are added: private mounts, snapshots.
	Volumes []volume.Spec
	Claim   *Claim // nil: it waits to be claimed
}

// Claim is what a sandbox is given when somebody takes it. Nothing of it is ever part of an image that is saved.
type Claim struct {
	Env     []string      // NAME=VALUE, secrets among them, of every command from now on
	Network []string      // rules of what may be connected to, as package egress has them; none: nothing
	Volumes []volume.Spec // mounted now, at paths where nothing is: private mounts
	Budget  Budget
}

// Budget bounds what a sandbox may still use; 0 is no bound.
type Budget struct {
	CPU     time.Duration
	Network int64 // bytes
}

// Fork describes forks to make. Children come in the order of IDs.
type Fork struct {
	IDs, Names []string
	Epoch      uint64  // of the parent; the children's is 1
	Claims     []Claim // one for each, or one for all
	Kill       bool
}

// Capture describes an image to make of a running sandbox.
type Capture struct {
	Image  string // its name, as of Build
	Prefix string // of the buckets that stay: prefix-VOLUME
	Kill   bool   // processes that can't be copied are missing in the image, instead of failing the capture
}

// Running tells of a sandbox that was just started.
type Running struct {
	ID      string
	Volumes []Mounted
	Took    time.Duration
}

// Mounted is a volume as it is.
type Mounted struct {
	Spec   volume.Spec
	Bucket string // empty for one in memory
}

// Status tells of a sandbox. What it used counts from its start or last wake. MemoryShared is what its engine says that it shares with its
// image; of engines that don't tell, what it had when it started from an image or as a fork, and that it has written to some of it since
// doesn't show.
type Status struct {
	ID                    string
	Epoch                 uint64
	Asleep, Claimed       bool
	Started               time.Time
	Used                  time.Time // when it last did something for somebody, or was connected to
	NetworkIn, NetworkOut int64
	Rules                 string // RulesID of those that it was given; empty while it isn't claimed
	engine.Stats
}

// RulesID identifies network rules.
func RulesID(rules []string) string {
	h := sha256.New()
	for _, r := range rules {
		fmt.Fprintf(h, "%d:%s", len(r), r)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Code is a text to run; see api.Run.
type Code struct {
	Text           string
	Language       string // the sandbox's own decides when empty
	Default        string // the sandbox's own
	Session        string
	Env            []string
	Dir            string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// End has the interpreter of the session end, whatever it is doing, instead of running a text.
	End bool
	// Rich, if not nil, is told what the text shows, its value and its error, which then aren't written to the output, in order with
	// what is. Dir is then where the session begins, not where this text runs. A shell has nothing to tell.
	Rich func(Rich)
}

// Rich is a message of a text that runs: that it begins, as the session's Count-th (from 1) that is told so; what it shows, in all the
// forms that it has; or its error.
type Rich struct {
	Count int                        `json:"count,omitempty"`
	Data  map[string]json.RawMessage `json:"data,omitempty"` // by media type; texts, and base64 of what isn't text
	Main  bool                       `json:"main,omitempty"` // it is the value of the text
	Error *CodeError                 `json:"error,omitempty"`
}

// CodeError is what ended a text.
type CodeError struct {
	Name      string `json:"name"`
	Value     string `json:"value"`
	Traceback string `json:"traceback"`
}

// CodeResult is how a text ended.
type CodeResult struct {
	Language string // as what it ran
	Status   int
	Result   string // of the last expression
}

// Files are the files of a sandbox as its user sees them. Paths are absolute or begin at the start directory.
type Files interface {
	Stat(ctx context.Context, path string) (*api.FileInfo, error)
	// List returns entries beneath a directory, depth levels deep, in order of path, after a path.
	List(ctx context.Context, path string, depth, limit int, after string) (files []api.FileInfo, more bool, err error)
	// Open reads a file from an offset. What comes is what the file held when it was opened, or what is written meanwhile.
	Open(ctx context.Context, path string, offset int64) (io.ReadCloser, *api.FileInfo, error)
	// Write replaces a file, or makes it and the directories above it, once all of r was read; after an error nothing has changed.
	Write(ctx context.Context, path string, mode uint32, r io.Reader) (*api.FileInfo, error)
	Mkdir(ctx context.Context, path string, mode uint32) error
	Remove(ctx context.Context, path string, recursive bool) error
	Move(ctx context.Context, from, to string) error
	// As returns the same files for somebody else: AsUser, AsRoot or ForUser.
	As(who string) Files
	// Detail tells more of files, in their order; of those that aren't there, nothing. Tags are extended attributes whose names begin
	// with a prefix, without it.
	Detail(ctx context.Context, paths []string, prefix string) ([]FileDetail, error)
	// SetTags replaces the tags of a file.
	SetTags(ctx context.Context, path, prefix string, tags map[string]string) error
	// Watch tells of changes at or beneath a path until ctx is done. It calls ready once nothing that follows is missed.
	Watch(ctx context.Context, path string, recursive bool, ready func(), event func(api.FileEvent) error) error
}
