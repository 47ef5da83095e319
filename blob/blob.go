// Package blob stores large immutable byte strings by name: a folder of files now, an S3 store later.
//
// A blob grows by Append until it is closed, and never changes afterwards but for being punched or removed.
// blobtest is the suite that each implementation passes.
package blob

import (
	"context"
	"fmt"
	"io"

	"agentrun.dev/errs"
)

// Store holds blobs. Names are relative slash-separated paths of lower-case letters, digits, '-', '.' and '_'.
type Store interface {
	// Create makes an empty blob for appending; a name in use is an errs.Exists.
	Create(ctx context.Context, name string) (Blob, error)
	// Open opens a blob for reading, one still being appended to included; a missing one is an errs.NotFound.
	Open(ctx context.Context, name string) (Blob, error)
	// List calls f for each blob whose name has the prefix, in order of name.
	List(ctx context.Context, prefix string, f func(Info) error) error
	// Remove deletes a blob for good: it is durable on return. Readers that have it open keep it. Removing a missing
	// blob does nothing.
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
	// then nothing of p counts as appended. Only a blob from Create or Reopen can be appended to.
	Append(p []byte) (off int64, err error)
	// Sync makes everything appended so far durable, the blob's name included. Once it has failed, Sync and Append
	// fail for ever: the system may have dropped what it couldn't write.
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

// Reopener is implemented by stores that can append to a blob again after the process that made it died.
type Reopener interface {
	// Reopen cuts a blob to size, if it is longer, and opens it for appending. A missing one is an errs.NotFound.
	Reopen(ctx context.Context, name string, size int64) (Blob, error)
}

// Limits on names.
const (
	MaxName = 512 // bytes in a name
	MaxPart = 128 // bytes between two slashes
)

// CheckName reports a name outside the rules of Store, as an errs.Invalid. No part of a name begins with a dot.
func CheckName(op, name string) error {
	if name == "" || len(name) > MaxName {
		return errs.Msg(errs.Invalid, op, "blob", "a name has 1 to 512 bytes")
	}
	part := 0 // bytes of the present part
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case c == '/' && part > 0, c == '.' && part > 0, c == '-', c == '_', c >= '0' && c <= '9', c >= 'a' && c <= 'z':
			if part++; c == '/' {
				part = 0
			}
		default:
			return badName(op, name)
		}
		if part > MaxPart {
			return badName(op, name)
		}
	}
	if part == 0 {
		return badName(op, name)
	}
	return nil
}

func badName(op, name string) error {
	return errs.Msg(errs.Invalid, op, fmt.Sprintf("%.64q", name),
		"a name is made of lower-case letters, digits, '-', '.' and '_', in parts of at most 128 bytes")
}
