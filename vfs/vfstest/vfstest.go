// Package vfstest is what every vfs.FS must pass: tables of exact error numbers, and random operations compared with a real
// directory of the kernel's.
package vfstest

import (
	"testing"

	"pgregory.net/rapid"

	"agentrun.dev/vfs"
)

// Config says what is tested, and what the filesystem lacks by its nature.
type Config struct {
	// New returns an empty filesystem whose root belongs to root and has mode 0755.
	New func(t testing.TB) vfs.FS
	// Check, if set, looks at a filesystem after a random sequence; all files are closed.
	Check func(t *rapid.T, fs vfs.FS)

	NoSymlinks, NoLinks, NoDevices, NoXattrs, NoOwners, NoSetID, NoExchange bool
}
