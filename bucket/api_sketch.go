package bucket

// The methods as they will be; the bodies follow. (This file disappears as they land.)

import (
	"context"
	"io"
	"log/slog"
	"time"

	"agentrun.dev"
	"agentrun.dev/blob"
	"agentrun.dev/kv"
)

type content struct{}

// Options configure a Store. KV and Blobs are needed; everything else has a default.
type Options struct {
	KV      kv.Store
	Blobs   blob.Store
	History time.Duration // how far back any time can be read; 0 is the default of 1 hour, negative is none
	Now     func() time.Time
	Log     *slog.Logger
	// NodeCache bounds the memory for tree nodes, in bytes; 0 is 64 MiB.
	NodeCache int64
}

// Store holds buckets. All methods may be called concurrently.
type Store struct{}

// Open opens the store that kv and blobs hold, recovering from a crash, and starts its background work.
func Open(ctx context.Context, o Options) (*Store, error) { panic("soon") }

// Close ends background work. It doesn't close the kv and blob stores, which belong to the caller.
func (s *Store) Close() error { panic("soon") }

// Create makes an empty bucket. A name in use is errs.Exists, a malformed one errs.Invalid.
func (s *Store) Create(ctx context.Context, name string, o CreateOptions) (*Info, error) {
	panic("soon")
}

// CheckName says whether a bucket's name is well formed: 3–63 of a–z, 0–9, '-' and '.', as S3 has it.
func CheckName(name string) error { panic("soon") }

// Info describes a bucket.
func (s *Store) Info(ctx context.Context, name string) (*Info, error)      { panic("soon") }
func (s *Store) List(ctx context.Context, f func(*Info) error) error       { panic("soon") } // by name
func (s *Store) ForksOf(ctx context.Context, name string) ([]*Info, error) { panic("soon") }
func (s *Store) Delete(ctx context.Context, name string, o DeleteOptions) error {
	panic("soon")
}

// Update changes a bucket's settings: f edits a copy of Versioning, Snapshots and Attributes.
func (s *Store) Update(ctx context.Context, name string, f func(*Info) error) (*Info, error) {
	panic("soon")
}

// ByID finds a living bucket by id, or errs.NotFound.
func (s *Store) ByID(ctx context.Context, id agentrun.RefID) (*Info, error) { panic("soon") }

// Fork makes a bucket that starts as base is now, or was at o.At. O(1), durable when it returns.
func (s *Store) Fork(ctx context.Context, base, name string, o ForkOptions) (*Info, error) {
	panic("soon")
}
func (s *Store) TakeSnapshot(ctx context.Context, name string, o SnapshotOptions) (*Snapshot, error) {
	panic("soon")
}
func (s *Store) Snapshots(ctx context.Context, name string) ([]*Snapshot, error) { panic("soon") }
func (s *Store) DeleteSnapshot(ctx context.Context, name string, v agentrun.Version) error {
	panic("soon")
}

// Point resolves "name", "name@version", "name@snapshot-name" or "name@2026-11-21T10:00:00Z" to a bucket and version (0: now).
func (s *Store) Point(ctx context.Context, ref string) (name string, at agentrun.Version, err error) {
	panic("soon")
}

// Diff streams what changed from a to b (each as Point takes it) in order of key.
func (s *Store) Diff(ctx context.Context, a, b, prefix string, f func(Change) error) error {
	panic("soon")
}
func (s *Store) Merge(ctx context.Context, source string, o MergeOptions) (*MergeResult, error) {
	panic("soon")
}

// Rebase brings into a fork what its parent has gained since they parted. o.Into is ignored.
func (s *Store) Rebase(ctx context.Context, fork string, o MergeOptions) (*MergeResult, error) {
	panic("soon")
}
func (s *Store) Usage(ctx context.Context, name string) (*Usage, error) { panic("soon") }
func (s *Store) GC(ctx context.Context) (*GCResult, error)              { panic("soon") }
func (s *Store) Fsck(ctx context.Context, o FsckOptions) (*FsckReport, error) {
	panic("soon")
}

// Stage stores bytes without giving them a name. size is what r will yield, or -1; another length is errs.Invalid.
// The payload goes into one Op; one that isn't used must be discarded.
func (s *Store) Stage(ctx context.Context, r io.Reader, size int64) (*Payload, error) {
	panic("soon")
}

// Payload is staged bytes.
type Payload struct {
	Size int64
	MD5  [16]byte
}

// Discard gives the bytes back. After the payload was used it does nothing.
func (p *Payload) Discard() {}

// View is a consistent read-only state of a bucket. Close it when done: it keeps what it shows from being collected.
type View struct{}

// View opens a bucket as it is (at 0) or was at a snapshot or any version within the history window.
func (s *Store) View(ctx context.Context, name string, at agentrun.Version) (*View, error) {
	panic("soon")
}
func (v *View) Close()                                               { panic("soon") }
func (v *View) Info() *Info                                          { panic("soon") } // of the bucket; Objects and Bytes of this view
func (v *View) Version() agentrun.Version                            { panic("soon") } // the last write that it shows
func (v *View) Get(ctx context.Context, key string) (*Object, error) { panic("soon") } // errs.NotFound

// GetVersion finds one version of a key: its current one, a noncurrent one or a marker. null finds the version "null".
func (v *View) GetVersion(ctx context.Context, key string, at agentrun.Version, null bool) (*Object, error) {
	panic("soon")
}

// Open opens an object for reading; it must come from this store. The reader outlives the view.
func (v *View) Open(ctx context.Context, o *Object) (Reader, error) { panic("soon") }

// Scan returns a cursor before the first key. It is not safe for concurrent use, and ends with the view.
func (v *View) Scan(o Scan) *Cursor { panic("soon") }

// Versions calls f for the versions and markers of each key with the prefix, newest first, from (startKey, startVersion)
// exclusive on. An error from f ends it and is returned; io.EOF ends it well.
func (v *View) Versions(ctx context.Context, prefix, startKey string, startVersion agentrun.Version, f func(*Object) error) error {
	panic("soon")
}

// Dir returns the attributes of a directory ("a/b/"), or errs.NotFound if it has none of its own.
func (v *View) Dir(ctx context.Context, path string) (*Dir, error) { panic("soon") }

// Dirs calls f for each directory record whose path begins with prefix, in order.
func (v *View) Dirs(ctx context.Context, prefix string, f func(*Dir) error) error { panic("soon") }

// Cursor goes through objects in order of key.
type Cursor struct{}

func (c *Cursor) Next(ctx context.Context) bool { panic("soon") } // moves to the next object
func (c *Cursor) Seek(key string)               { panic("soon") } // the following Next goes to the first key ≥ key; only forward
func (c *Cursor) Object() *Object               { panic("soon") } // valid until Next
func (c *Cursor) Key() string                   { panic("soon") } // cheaper than Object
func (c *Cursor) Err() error                    { panic("soon") }

// Bucket is a living bucket, for writing. It follows the bucket by id: once that is deleted, everything is errs.NotFound.
type Bucket struct{}

func (s *Store) Bucket(ctx context.Context, name string) (*Bucket, error) { panic("soon") }
func (b *Bucket) ID() agentrun.RefID                                      { panic("soon") }
func (b *Bucket) Name() string                                            { panic("soon") }
func (b *Bucket) Store() *Store                                           { panic("soon") }
func (b *Bucket) View(ctx context.Context) (*View, error)                 { panic("soon") } // as it is now; O(1)

// Apply makes all changes, in order, at one version, or none. Results has one object per op: the object put, or the
// marker or object deleted, or nil. When it returns, the changes are durable, unless o.Lazy.
func (b *Bucket) Apply(ctx context.Context, ops []Op, o ApplyOptions) (results []*Object, err error) {
	panic("soon")
}

// ApplyOptions: Lazy acknowledges before the changes are durable; a later Apply or Sync makes them so, in order.
type ApplyOptions struct{ Lazy bool }

// Sync makes durable whatever was applied before.
func (b *Bucket) Sync(ctx context.Context) error { panic("soon") }

// Multipart uploads belong to the bucket and aren't forked.
func (b *Bucket) CreateUpload(ctx context.Context, key string, meta *Object) (*Upload, error) {
	panic("soon")
}
func (b *Bucket) Upload(ctx context.Context, key, id string) (*Upload, error) { panic("soon") }
func (b *Bucket) PutPart(ctx context.Context, key, id string, number int, p *Payload, sum []Checksum) (*Part, error) {
	panic("soon")
}

// CopyPart makes a part of a range of an existing object without copying bytes.
func (b *Bucket) CopyPart(ctx context.Context, key, id string, number int, src *Object, off, n int64) (*Part, error) {
	panic("soon")
}
func (b *Bucket) Parts(ctx context.Context, key, id string) ([]Part, error)     { panic("soon") }
func (b *Bucket) Uploads(ctx context.Context, prefix string) ([]*Upload, error) { panic("soon") } // by key, then by initiation
func (b *Bucket) Complete(ctx context.Context, key, id string, parts []CompletePart, sum []Checksum, cond *Condition) (*Object, error) {
	panic("soon")
}
func (b *Bucket) Abort(ctx context.Context, key, id string) error { panic("soon") }
