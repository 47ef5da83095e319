package node

import (
	"context"
	"net"

	"agentrun.dev/errs"
)

// Files implements Host.
func (l *local) Files(_ context.Context, id string) (Files, error) {
	return nil, errs.Msg(errs.Unsupported, "files", id, "not here yet")
}

// Dial implements Host.
func (l *local) Dial(_ context.Context, id string, _ int) (net.Conn, error) {
	return nil, errs.Msg(errs.Unsupported, "connect", id, "not here yet")
}
