package server

import (
	"context"

	"agentrun.dev/cmd/agentrun/internal/sandbox"
	"agentrun.dev/engine"
	"agentrun.dev/node"
	"agentrun.dev/serve/rest"
)

// runner runs the API's commands in sandboxes of the server's node.
type runner struct{ node *node.Node }

// Run implements rest.Runner.
func (r *runner) Run(ctx context.Context, c rest.Command) (int, error) {
	s := sandbox.Spec{Args: c.Args, Env: c.Env, Dir: c.Dir, Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr, Signals: c.Signals}
	for _, m := range c.Mounts {
		s.Buckets = append(s.Buckets, sandbox.Bucket{Info: m.Bucket, Path: m.Path, ReadOnly: m.ReadOnly, Fork: m.Fork})
	}
	s.Kept = c.Kept
	if c.TTY != nil {
		s.TTY, s.Resizes = &engine.Size{Cols: c.TTY.Cols, Rows: c.TTY.Rows}, c.Resizes
	}
	return sandbox.Run(ctx, r.node, s)
}
