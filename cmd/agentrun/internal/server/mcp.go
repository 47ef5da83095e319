package server

import (
	"context"
	"net"

	"agentrun.dev/client"
	"agentrun.dev/serve/mcp"
)

// MCP is what 'up' was asked for about models.
type MCP struct {
	Base    mcp.Base
	Origins []string // of browsers' pages that may connect
}

// openMCP makes what serves models. They reach the API as everybody does, but through this process.
func (s *Server) openMCP(c *Config) (err error) {
	s.pipe = mcp.NewPipe()
	s.mcp, err = mcp.NewHandler(mcp.HandlerOptions{
		Options: mcp.Options{Version: c.Version, Base: c.MCP.Base, Log: c.Log},
		Caller:  s.guard.Caller,
		Origins: c.MCP.Origins,
		Connect: func(key, remote string) (*client.Client, error) {
			return client.New("http://localhost", key, client.Options{UserAgent: "agentrun-mcp/" + c.Version,
				Dial: func(ctx context.Context) (net.Conn, error) { return s.pipe.Dial(ctx, remote) }})
		},
	})
	return err
}
