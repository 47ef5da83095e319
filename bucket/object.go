package bucket

import (
	"time"

	"agentrun.dev"
)

// Limits on one object; exceeding one is an errs.TooLarge.
const (
	MaxKey      = 1024     // bytes in a key
	MaxObject   = 5 << 40  // bytes in an object
	MaxPart     = 5 << 30  // bytes in one part of a multipart upload, and in one Put
	MaxParts    = 10_000   // parts in a multipart upload
	MaxMeta     = 64 << 10 // bytes of headers, metadata, tags, extended attributes and checksums together
	MaxBatchOps = 100_000  // operations in one Apply
)

// ObjectID identifies the contents that a key has for as long as they are the same file: a Put makes a new one, a write
// through a filesystem keeps it. Space belongs to one bucket for ever, so ids made in different forks never collide.
type ObjectID struct{ Space, N uint64 }

// IsZero reports whether the id is unset.
func (id ObjectID) IsZero() bool { return id == ObjectID{} }

// Object is what a bucket knows of a key, but for its bytes. Treat it as read-only.
type Object struct {
	Key      string
	ID       ObjectID
	Version  agentrun.Version  // the write that made it
	Null     bool              // S3's version "null": written while versioning was off or suspended
	Latest   bool              // the key's current version (set by listings of versions)
	Marker   bool              // a delete marker; only in listings of versions
	Size     int64             // bytes
	Modified time.Time         // of the contents
	ETag     string            // without quotes: MD5, MD5-N for multipart, or opaque with a dash
	Headers  map[string]string // Content-Type, Cache-Control, Content-Encoding, …: canonical names, as given
	Meta     map[string]string // user metadata, lower-case names without x-amz-meta-
	Tags     map[string]string
	Checksum []Checksum
	Parts    []Part // of a multipart upload, in order
	Posix    *Posix // set once a filesystem has touched the object

	data content
}

// Checksum is an S3 checksum of an object or part: Algorithm is CRC32, CRC32C, CRC64NVME, SHA1 or SHA256, Value is
// base64 as on the wire, and Composite tells a checksum of the parts' checksums from one of the whole object.
type Checksum struct {
	Algorithm, Value string
	Composite        bool
}

// Part is one part of a multipart upload. Offset is where it begins in the finished object.
type Part struct {
	Number       int
	Size, Offset int64
	ETag         string
	Modified     time.Time
	Checksum     []Checksum
}

// Posix holds the attributes that a filesystem gives to an object. Mode is st_mode, type bits included. Times are
// nanoseconds since 1970; the modification time is Object.Modified.
type Posix struct {
	Mode, UID, GID uint32
	Access, Change int64
	Rdev           uint64
	Link           string            // target of a symbolic link
	Xattrs         map[string][]byte // extended attributes
	Links          uint32            // hard links; 0 and 1 mean the same
}

// Dir holds the attributes of a directory that was made or changed by a filesystem. Its path ends in a slash.
// Directories need none: wherever keys share a prefix up to a slash there is one.
type Dir struct {
	Path     string
	ID       ObjectID
	Modified time.Time
	Posix    Posix
}

// Condition guards an operation: all that is set must hold, or it fails with errs.Precondition (errs.NotFound where
// IfMatch names no existing object).
type Condition struct {
	IfMatch         []string // the object's ETag is one of these; "*" means that it exists
	IfNoneMatch     []string // the object's ETag is none of these; "*" means that it doesn't exist
	IfModifiedSince time.Time
	IfUnmodified    time.Time        // not modified after this
	IfVersion       agentrun.Version // the present contents were made by this write
	IfSize          *int64
	IfModifiedAt    time.Time // modified exactly then
}

// OpKind says what an Op does.
type OpKind uint8

const (
	OpPut          OpKind = iota + 1 // Key gets Object's metadata and Payload's bytes, as a new object
	OpDelete                         // Key goes; with versioning on, a marker takes its place. Missing is fine
	OpDeleteExact                    // version Version of Key goes for ever, marker or contents
	OpSetMeta                        // Key keeps its bytes and id and gets Object's metadata
	OpCopy                           // Key gets Source's bytes without copying them, with Object's metadata (nil: the source's)
	OpRename                         // Key becomes To in this bucket, keeping id and metadata
	OpRenameDir                      // every key below the directory Key (ending in a slash) moves below To, which is empty
	OpDeletePrefix                   // every key that begins with Key goes, without markers
	OpWrite                          // Payload's bytes are written at Offset of Key; the object is created if need be
	OpTruncate                       // Key gets Offset bytes: cut, or extended with zeros
	OpLink                           // To becomes a further name (hard link) of Key
	OpPutDir                         // directory Key gets Dir's attributes
	OpDeleteDir                      // directory Key's attributes go
)

// Op is one change of a bucket; see OpKind for which fields count. Object's Size, ETag, ID and Version are set by the
// bucket, ETag only if it is empty, and Modified only if it is zero.
type Op struct {
	Kind    OpKind
	Key, To string
	Object  *Object
	Payload *Payload
	Source  *Object
	Dir     *Dir
	Offset  int64
	Version agentrun.Version
	// NullVersion makes OpDeleteExact delete the version "null".
	NullVersion bool
	Cond        *Condition
}
