// Package blob stores large immutable byte strings by name: a folder of files now, an S3 store later.
//
// A blob grows by Append until it is closed, and never changes afterwards but for being punched or removed.
// blobtest is the suite that each implementation passes.
package blob

import (
	"context"
	"io"
)

// Store holds blobs. Names are relative slash-separated paths of lower-case letters, digits, '-', '.' and '_'.
type Store interface {
	// Create makes an empty blob for appending; a name in use is an errs.Exists.
	Create(ctx context.Context, name string) (Blob, error)
	// Open opens a blob for reading, one still being appended to included; a missing one is an errs.NotFound.
	Open(ctx context.Context, name string) (Blob, error)
	// List calls f for each blob whose name has the prefix, in order of name.
	List(ctx context.Context, prefix string, f func(Info) error) error
	// Remove deletes a blob. Readers that have it open keep it. Removing a missing blob does nothing.
	Remove(ctx context.Context, name string) error
}

// Info describes a blob. Stored is what it takes on the disk, which holes make smaller than Size.
type Info struct {
	Name         string
	Size, Stored int64
}

// Blob is an open blob. ReadAt sees whatever Append has returned for, synced or not.
type Blob interface {
	io.ReaderAt
	// Append adds p at the end and returns the offset where it begins. A full disk is an errs.NoSpace, and
	// then nothing of p counts as appended.
	Append(p []byte) (off int64, err error)
	// Sync makes everything appended so far durable, the blob's name included.
	Sync() error
	// Size returns the length in bytes.
	Size() int64
	// Close releases the blob.
	Close() error
}

// Puncher is implemented by blobs whose bytes can be given back to the disk in place. Punched bytes read as zero.
type Puncher interface {
	Punch(off, n int64) error
}
