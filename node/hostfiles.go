package node

import (
	"context"

	"agentrun.dev/errs"
)

// Files implements Host.
func (l *local) Files(_ context.Context, id string) (Files, error) {
	return nil, errs.Msg(errs.Unsupported, "files", id, "not here yet")
}
