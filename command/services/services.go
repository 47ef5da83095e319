// Package services is what commands may ask of whoever runs the sandbox: connections to the outside, and control of the
// sandbox's world (snapshots, forks, merges).
//
// Services travel with the sandbox (proc.Options.Services) and reach a command through From. A service that isn't
// offered is nil, which a command words as denied: nothing is reachable by default.
package services

import (
	"context"
	"iter"
	"net"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/proc"
)

// Services are those of one sandbox. They may be called concurrently, by all its processes.
type Services struct {
	// Dial connects to an address outside of the sandbox, "host:port", under the sandbox's network policy; network is "tcp",
	// "tcp4" or "tcp6". Names are resolved outside, after the policy allowed them. A denial is errs.Denied.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Control is nil where nothing can be snapshotted or forked.
	Control Control
}

// From returns the services of p's sandbox, never nil.
func From(p *proc.Process) *Services {
	if found, _ := p.Sandbox().Services().(*Services); found != nil {
		return found
	}
	return &Services{}
}

// Connect is s.Dial, denied where there is none.
func (s *Services) Connect(ctx context.Context, network, addr string) (net.Conn, error) {
	if s.Dial == nil {
		return nil, errs.Msg(errs.Denied, "connect", addr, "this sandbox has no network").
			WithHint("start the sandbox with a network policy that allows " + addr)
	}
	return s.Dial(ctx, network, addr)
}

// Control is what `snapshot`, `fork` and `merge` ask of the engine. World is the word for what they work on: the bucket
// volumes of the sandbox, its workspace above all, and for Fork also its running processes. Names of snapshots and of
// sandboxes are the engine's to check. Errors are of errs' kinds; Unsupported says that this sandbox has nothing to
// snapshot (its workspace isn't a bucket, say), with a hint what would be right.
type Control interface {
	// SnapshotTake freezes the files as they are, everything written before included. An empty name lets the engine choose
	// one. A name that is taken is errs.Exists.
	SnapshotTake(ctx context.Context, name string) (Snapshot, error)
	// Snapshots lists those that were taken of this world, oldest first.
	Snapshots(ctx context.Context) ([]Snapshot, error)
	// SnapshotRestore makes the files what they were; what they are now is kept as a snapshot first, which is returned.
	// Processes go on, and files that they hold open keep their former content.
	SnapshotRestore(ctx context.Context, name string) (before Snapshot, err error)
	// SnapshotDelete forgets a snapshot.
	SnapshotDelete(ctx context.Context, name string) error
	// Diff yields what is different in b against a, by path. Both are names of snapshots or of forks; "" is the present
	// state. paths, absolute, restrict it to themselves and what lies beneath; none means everything. An error ends it.
	Diff(ctx context.Context, a, b string, paths []string) iter.Seq2[Change, error]
	// Fork makes copies of the running sandbox that go on from here, and returns them in order. It freezes the sandbox, so a
	// process calls it inside of Process.Rest; what goes on in a copy in that process's place asks Self who it is.
	Fork(ctx context.Context, o ForkOptions) ([]Forked, error)
	// Self tells which fork this sandbox is; nil if it isn't one.
	Self(ctx context.Context) (*Forked, error)
	// Merge brings what changed in another fork since it was made (or last merged) into this world's files.
	Merge(ctx context.Context, from string, o MergeOptions) (Merged, error)
}

// Snapshot is a frozen view of the files.
type Snapshot struct {
	Name    string    `json:"name"`
	Version uint64    `json:"version"` // point in time, as everywhere in AgentRun: nanoseconds since 1970
	Created time.Time `json:"created"`
	Bytes   int64     `json:"bytes,omitempty"` // of all files; 0 where it isn't known
	Files   int64     `json:"files,omitempty"`
}

// Kind says how a file differs.
type Kind byte

// The kinds of differences. A rename is reported only where the engine knows of it.
const (
	Added    Kind = 'A'
	Modified Kind = 'M'
	Deleted  Kind = 'D'
	Renamed  Kind = 'R'
)

// Change is one difference between two worlds.
type Change struct {
	Path    string // absolute
	From    string // the former path, of what is Renamed
	Kind    Kind
	OldSize int64 // bytes; 0 if there was none
	NewSize int64
}

// ForkOptions say how to fork. The zero value makes one child.
type ForkOptions struct {
	Count int           // children; 0 means 1
	Name  string        // of the child; with more than one, "-1", "-2" … are appended; "" lets the engine choose
	Lease time.Duration // how long the children live unless used; 0 means the engine's default
	Kill  bool          // processes that can't be copied are missing in the children, instead of failing the fork
}

// Forked is one child.
type Forked struct {
	Index  int    `json:"index"` // among the children of one Fork, from 1
	ID     string `json:"id"`
	Name   string `json:"name,omitempty"`
	Bucket string `json:"bucket,omitempty"` // that its workspace is
	Parent string `json:"parent,omitempty"` // id of the sandbox that it came from
}

// Strategy says what a merge does where both sides changed the same file differently.
type Strategy string

// The strategies, named as `agentrun merge --conflicts` has them.
const (
	Fail   Strategy = "fail"   // change nothing at all and report the conflicts
	Ours   Strategy = "ours"   // keep this world's file
	Theirs Strategy = "theirs" // take the other's
)

// MergeOptions say how to merge. The zero Strategy is Fail.
type MergeOptions struct {
	Strategy Strategy
	DryRun   bool // report only
}

// Merged reports a merge. With conflicts under Fail, Applied is false and the error of Merge is nil.
type Merged struct {
	From      string
	Applied   bool
	Added     int
	Modified  int
	Deleted   int
	Conflicts []Conflict
}

// Conflict is a file that both sides changed since their common base. Ours and Theirs tell how.
type Conflict struct {
	Path   string
	Ours   Kind
	Theirs Kind
}
