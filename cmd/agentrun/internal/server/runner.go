package server

import (
	"context"

	"agentrun.dev/bucket"
	"agentrun.dev/cmd/agentrun/internal/sandbox"
	"agentrun.dev/engine/userspace"
	"agentrun.dev/serve/rest"
)

// runner runs the API's commands in sandboxes of this process.
type runner struct {
	store  *bucket.Store
	guests *userspace.Guests
}

func newRunner(store *bucket.Store, guests *userspace.Guests) rest.Runner {
	return &runner{store, guests}
}

// Run implements rest.Runner.
func (r *runner) Run(ctx context.Context, c rest.Command) (int, error) {
	s := sandbox.Spec{Guests: r.guests, Args: c.Args, Env: c.Env, Dir: c.Dir, Store: r.store, Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr, Signals: c.Signals}
	for _, m := range c.Mounts {
		s.Buckets = append(s.Buckets, sandbox.Bucket{Info: m.Bucket, Path: m.Path, ReadOnly: m.ReadOnly})
	}
	return sandbox.Run(ctx, s)
}
