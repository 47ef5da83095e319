package bucket

import (
	"io"
	"time"

	"agentrun.dev"
)

// Info describes a bucket.
type Info struct {
	Name           string
	ID             agentrun.RefID
	Created        time.Time
	Parent         *Origin // nil unless it is a fork
	Objects, Bytes uint64  // current objects, and the sum of their sizes
	Version        agentrun.Version
	Versioning     Versioning
	Snapshots      bool              // snapshots were asked for (a promise to clients; every bucket can take them)
	HasForks       bool              // a living bucket is a fork of this one
	Attributes     map[string]string // what protocols keep with a bucket: CORS rules, tags, ownership …
}

// Origin says what a fork was made from. Name is the parent's name at that time.
type Origin struct {
	Name     string
	ID       agentrun.RefID
	Snapshot agentrun.Version // the cut
	Forked   time.Time
}

// Versioning is S3's versioning state of a bucket.
type Versioning uint8

const (
	Unversioned Versioning = iota
	Versioned
	Suspended
)

// Snapshot is a frozen view of a bucket.
type Snapshot struct {
	Version        agentrun.Version
	Name           string // "" or the caller's
	Created        time.Time
	Expires        time.Time // zero: never
	Objects, Bytes uint64
}

// CreateOptions are the choices for a new bucket.
type CreateOptions struct {
	Versioning Versioning
	Snapshots  bool
	Attributes map[string]string
}

// ForkOptions are the choices for a fork. At is a snapshot's version or any version within the history window; zero is now.
type ForkOptions struct {
	At         agentrun.Version
	Attributes map[string]string // nil: the parent's
}

// SnapshotOptions are the choices for a snapshot.
type SnapshotOptions struct {
	Name    string    // ≤ 255 bytes
	Expires time.Time // zero: never
}

// DeleteOptions are the choices for deleting a bucket. Without Force, one that holds objects is errs.NotEmpty.
type DeleteOptions struct{ Force bool }

// Usage is what a bucket takes. Unique is what deleting it would give back; Shared is the rest of Bytes.
type Usage struct {
	Objects, Bytes, Unique, Shared uint64
	// Metadata is what the bucket alone takes for its index, in bytes; not part of Unique.
	Metadata uint64
}

// ChangeKind says how a key differs between two views.
type ChangeKind uint8

const (
	Added ChangeKind = iota + 1
	Modified
	Deleted
	Metadata // same bytes, other metadata
)

// String returns "added", "modified", "deleted" or "metadata".
func (k ChangeKind) String() string {
	return [...]string{"", "added", "modified", "deleted", "metadata"}[k]
}

// Change is one difference between two views. Old is nil for Added, New is nil for Deleted.
type Change struct {
	Key      string
	Kind     ChangeKind
	Old, New *Object
}

// Strategy decides what a merge does where both sides changed the same key differently.
type Strategy uint8

const (
	Fail   Strategy = iota // nothing is merged; the conflicts come back with errs.Conflict
	Ours                   // the target's side wins
	Theirs                 // the source's side wins
)

// MergeOptions are the choices for a merge or rebase.
type MergeOptions struct {
	Into      string // target bucket; "" is the source's parent
	Conflicts Strategy
	DryRun    bool           // report only
	Progress  func(Progress) // called now and then; may be nil
}

// Progress is how far a long operation has come. Total is 0 while unknown.
type Progress struct {
	Phase       string
	Done, Total uint64
}

// MergeResult is what a merge did or, in a dry run, would do.
type MergeResult struct {
	Source, Target           string
	Base                     agentrun.Version // the common ancestor that was used
	Version                  agentrun.Version // the target's version after the merge
	Added, Modified, Deleted int
	Metadata                 int // metadata-only changes
	Conflicts                []Conflict
	MoreConflicts            int // beyond the MaxConflicts that are listed
}

// MaxConflicts is how many conflicts a merge lists.
const MaxConflicts = 1000

// Conflict is a key that both sides changed since their common base. A nil side doesn't have the key.
type Conflict struct {
	Key                string
	Base, Ours, Theirs *Object
}

// Scan chooses what a listing goes through. Keys come in bytewise order.
type Scan struct {
	Prefix string
	Start  string // first key, inclusive
	Dirs   bool   // include empty directories as zero-byte objects "dir/"
}

// Upload is a multipart upload in progress.
type Upload struct {
	ID        string
	Key       string
	Initiated time.Time
	Object    *Object // the metadata that it was begun with
}

// CompletePart names a part for Complete; ETag and Checksum are checked if set.
type CompletePart struct {
	Number   int
	ETag     string
	Checksum []Checksum
}

// Reader reads the bytes of one object as they were when it was opened, whatever is written since. Every read checks
// the payload's checksum: a mismatch is errs.Corrupt.
type Reader interface {
	io.ReadSeekCloser
	io.ReaderAt
	io.WriterTo
	Size() int64
}

// GCResult is what a collection gave back.
type GCResult struct {
	Views, Nodes, Slots, Bytes uint64
}

// FsckReport is what a check found. Problems is empty for a sound store.
type FsckReport struct {
	Buckets, Snapshots, Views, Nodes, Slots, Objects uint64
	Bytes                                            uint64 // of payload read and verified
	Problems                                         []Problem
	Repaired                                         int
}

// Problem is one defect that fsck found: Kind is one of count, leak, missing, corrupt, order.
type Problem struct {
	Kind, Where, What string
	Repaired          bool
}

// FsckOptions are the choices for a check.
type FsckOptions struct {
	Repair   bool // correct counts, free leaks, drop what refers to nothing
	Payload  bool // read all payload and verify its checksums, not only its presence
	Progress func(Progress)
}
