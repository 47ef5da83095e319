// Package engine is the noun that all engines share: something that runs sandboxes.
//
// An Instance is a running sandbox: commands are executed in it, and it can be frozen. What a frozen one is, is an Image,
// from which any number of instances start: a fork is an image of a running sandbox, a pool an image that is started in
// advance, hibernation an image that is saved. The files of an instance are volumes, which others make and cut (package
// volume): an engine only mounts them.
//
// Whoever forks does it in this order: Freeze, cut the volumes, Capture, Thaw, fork the volumes and Start for each child.
// That is one instant for memory and files. Fork does so for engines and volumes of one process.
package engine

import (
	"context"
	"io"
	"net"
	"slices"
	"time"

	"agentrun.dev/command/services"
	"agentrun.dev/vfs"
)

// Engine runs sandboxes. All methods may be called concurrently.
type Engine interface {
	// Boot starts a sandbox with nothing running in it. What it needs that no volume holds (/dev, /proc, /bin …) it mounts
	// itself. errs.Invalid says what is wrong with the spec.
	Boot(ctx context.Context, s Spec) (Instance, error)
	// Load reads what an image saved.
	Load(ctx context.Context, r io.Reader) (Image, error)
	// List tells of every instance that hasn't ended, in order of age.
	List(ctx context.Context) ([]Status, error)
}

// Feature is something that a sandbox may be asked to have, and that not every engine gives.
type Feature string

// Features.
const (
	Images   Feature = "image"    // Spec.Image
	Roots    Feature = "root"     // a volume at "/"
	Network  Feature = "network"  // connections out of the sandbox, through Services.Dial
	Services Feature = "services" // the rest of Services: what commands inside ask of the host
	Rates    Feature = "rates"    // Limits.Disk, NetworkIn and NetworkOut
)

// Features returns all of them.
func Features() []Feature { return []Feature{Images, Roots, Network, Services, Rates} }

// Lacker is implemented by engines that lack features; others have all. What an engine lacks is refused before it is asked for.
type Lacker interface{ Lacks() []Feature }

// Lacks reports whether an engine lacks a feature.
func Lacks(e Engine, f Feature) bool {
	l, ok := e.(Lacker)
	return ok && slices.Contains(l.Lacks(), f)
}

// Patient is implemented by engines whose instances may take longer to stand still, and to be captured, than processes of this host do.
type Patient interface {
	// FreezeTimeout bounds Freeze and Capture together, for callers that can wait.
	FreezeTimeout() time.Duration
}

// FreezeTimeout is what callers that can wait give Freeze and Capture together: 10 seconds, unless the engine is Patient.
func FreezeTimeout(e Engine) time.Duration {
	if p, ok := e.(Patient); ok {
		return p.FreezeTimeout()
	}
	return 10 * time.Second
}

// Volume is a filesystem at a path of the sandbox; the one at "/" is the root.
type Volume = vfs.Mount

// Identity is what one sandbox has to itself, other than the sandbox that it was forked from.
type Identity struct {
	ID       string   // names it in List; required
	Hostname string   // the spec's, or the image's, when empty
	Env      []string // NAME=VALUE, for commands executed from now on, over the spec's: credentials and the like
	// Services are what commands in it may ask of the host; nil: nothing.
	Services *services.Services
	// Labels and Adopt are for the volumes that are made for it, as volume.Options has them.
	Labels map[string]string
	Adopt  bool
}

// Spec describes a sandbox.
type Spec struct {
	Identity
	Volumes []Volume // belong to the caller, who keeps them open until the instance has stopped
	Image   string   // what the root is made of, for engines whose roots are images; their default when empty
	Env     []string // NAME=VALUE, of every command
	Dir     string   // where commands start; /workspace when empty
	Limits  Limits
}

// Limits bound a sandbox. Zero means the engine's default.
type Limits struct {
	Memory    int64         // bytes of all processes together; of a VM, its RAM
	VCPUs     int           // processors that a VM has; others have no use for it
	CPU       time.Duration // of all processes together, over the whole life
	Processes int           // at once
	Files     int           // open descriptors of one process
	Output    int64         // bytes written to streams that leave the sandbox
	Written   int64         // bytes written to files

	Disk                  Rate // of reads and writes: of the volumes together, and of the root's image
	NetworkIn, NetworkOut Rate // of packets that the sandbox receives and sends
}

// Rated reports whether anything is bounded in time.
func (l *Limits) Rated() bool {
	return l.Disk != Rate{} || l.NetworkIn != Rate{} || l.NetworkOut != Rate{}
}

// Rate bounds what may be done in a second. Zero is no bound; a burst, which is what may be done at once after a rest, is a second's then.
type Rate struct {
	Bytes, Ops           int64
	BurstBytes, BurstOps int64
}

// Instance is a running sandbox. All methods may be called concurrently; after Stop they fail with errs.Unavailable.
type Instance interface {
	ID() string
	// Exec starts a command. ctx bounds the start only.
	Exec(ctx context.Context, c Cmd) (Process, error)
	// Freeze stops all processes at places where they can be copied; ctx's deadline bounds how long it waits for that.
	// errs.Unavailable names the processes that couldn't, and then nothing has changed.
	Freeze(ctx context.Context, o FreezeOptions) (Frozen, error)
	// Stop kills all processes and waits for their end, until ctx is done.
	Stop(ctx context.Context) error
}

// FreezeOptions say how to freeze.
type FreezeOptions struct {
	// Kill leaves processes that can't be copied out of the image, where their parents see status 137; in the instance
	// itself they go on.
	Kill bool
}

// Frozen is an instance in which nothing moves, until Thaw.
type Frozen interface {
	// Capture makes an image of the instance as it is.
	Capture(ctx context.Context) (Image, error)
	Thaw() error
}

// Image is a sandbox at an instant, without its volumes. It never changes. All methods may be called concurrently.
type Image interface {
	// Start makes a running sandbox of the image, with volumes in place of those that the frozen one had: at the same
	// paths, with what it held at that instant.
	Start(ctx context.Context, id Identity, volumes []Volume) (Instance, error)
	// Save writes the image for Load. volumes are those of the same cut, for looking at: files that have no name any more
	// are saved with the image.
	Save(ctx context.Context, w io.Writer, volumes []Volume) error
	Close() error
}

// Cmd is a command to execute.
type Cmd struct {
	Args   []string  // the first is found through PATH unless it has a slash
	Env    []string  // over the sandbox's
	Dir    string    // the sandbox's when empty
	Root   bool      // as user 0 of the sandbox instead of its user
	Stdin  io.Reader // nil: at its end
	Stdout io.Writer // nil discards
	Stderr io.Writer // nil discards; not used with a TTY
	TTY    *Size     // a terminal of this size, whose input is Stdin and whose output is Stdout

	// Modes are how the client's own terminal is set, by the opcodes of RFC 4254, section 8. The engine takes those that it
	// has, and its defaults for others.
	Modes map[byte]uint32

	// Own: it isn't the sandbox's command of that name, but AgentRun's, which works on the sandbox's files from outside, whatever its image
	// has. Nodes see to that (Worker), and to which there are: sftp-server.
	Own bool

	// Keep lets processes that the command leaves in the background go on when it has ended. Without it they get a quarter
	// of a second to end by themselves and are killed then.
	Keep bool
}

// Size is a terminal's, in characters.
type Size struct{ Cols, Rows int }

// Process is a command that was started.
type Process interface {
	Pid() int // in the sandbox
	// Wait returns when the command has ended and all its output was written. The status is the command's own: 126 when
	// it couldn't be executed, 127 when there is none of that name, 128+n when signal n ended it. When ctx is done first,
	// the command is killed and the error is errs.Canceled; errs.Limit says which limit ended it. Wait is called once.
	Wait(ctx context.Context) (status int, err error)
	// Signal sends a signal to the command's process group.
	Signal(sig int) error
	// Resize changes the size of its terminal; errs.Invalid without one.
	Resize(s Size) error
}

// Status tells of an instance.
type Status struct {
	ID      string
	Started time.Time
	Frozen  bool
	Stats
}

// Stats is what an instance has used and uses.
type Stats struct {
	CPU          time.Duration
	Memory       int64 // bytes now, of its own
	MemoryPeak   int64
	MemoryShared int64 // bytes that it shares with the image it came from
	Processes    int
	Output       int64 // bytes that left the sandbox
	Written      int64 // bytes written to files
}

// Signaler is implemented by processes that can tell which signal ended them: 0 for those that exited by themselves. It is for after
// Wait.
type Signaler interface{ Signaled() int }

// Meter is implemented by instances that can tell what they use.
type Meter interface {
	Stats(ctx context.Context) (Stats, error)
}

// Filer is implemented by instances whose files can be worked on from outside.
type Filer interface {
	Namespace() *vfs.Namespace
}

// Mounter is implemented by instances that take volumes while they run. They are the caller's, as those of Spec; images captured
// from then on have them.
type Mounter interface {
	// Mount mounts a volume at a path where none is: there, it is errs.Conflict.
	Mount(ctx context.Context, v Volume) error
	Unmount(ctx context.Context, path string) error
}

// Dialer is implemented by instances with servers that can be connected to from outside.
type Dialer interface {
	// Dial connects to a server inside that listens on a TCP port, of whichever address of the sandbox. errs.Unavailable is that
	// none does. In a fork the connection is reset; here it lives until either side closes it or the instance stops.
	Dial(ctx context.Context, port int) (net.Conn, error)
}

// Worker is implemented by engines with commands of their own that work on whichever files, such as those of another engine's sandbox.
type Worker interface {
	// Work starts a command as Exec does. Its working directory is / when empty; what it starts ends with it.
	Work(ctx context.Context, files *vfs.Namespace, c Cmd) (Process, error)
}

// Attacher is implemented by instances in which a command that was captured with the image can be taken up again: its output
// since the start, at most the newest MiB, goes to c's streams, and so does what follows. Of c only the streams count. One that has ended
// lately can be attached to as well: its output is gone, but Wait tells at once how it ended.
type Attacher interface {
	Running() []Running
	Attach(ctx context.Context, pid int, c Cmd) (Process, error)
	// Signal sends a signal to the process group of a command of Running, attached or not; errs.NotFound if there is none.
	Signal(pid, sig int) error
}

// Running is a command that Exec started, here or in the instance that the image is of.
type Running struct {
	Pid  int
	Args []string // the first 2 KiB of them at least
	TTY  bool
}
