// Package sandbox runs one command in a userspace sandbox of its own: over buckets, over folders of this machine, or over
// nothing but memory.
package sandbox

import (
	"context"
	"io"

	"agentrun.dev/bucket"
	"agentrun.dev/errs"
)

// Workspace is the start directory of a sandbox: its first bucket.
const Workspace = "/workspace"

// Spec is what to run. Paths of the sandbox are absolute and clean.
type Spec struct {
	Args, Env      []string
	Dir            string // "" is Workspace
	Store          *bucket.Store
	Buckets        []Bucket
	Hosts          []Host
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Signals        <-chan int
}

// Bucket is a bucket at a path.
type Bucket struct {
	Info     *bucket.Info
	Path     string
	ReadOnly bool
}

// Host is a folder of this machine at a path.
type Host struct {
	Host, Path string
	ReadOnly   bool
}

// Run runs the command and returns its exit status.
func Run(ctx context.Context, s Spec) (int, error) {
	return 0, errs.Msg(errs.Unsupported, "run", s.Args[0], "no engine")
}

// Numbers turns names of signals into their numbers until ctx ends.
func Numbers(ctx context.Context, names <-chan string) <-chan int { return nil }
