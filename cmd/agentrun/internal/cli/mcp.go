package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"agentrun.dev/client"
	"agentrun.dev/cmd/agentrun/internal/server"
	"agentrun.dev/errs"
	"agentrun.dev/serve/mcp"
)

// mcpFlags are what 'mcp' was asked for.
type mcpFlags struct {
	base  mcp.Base
	onEnd string
	local bool
}

func (a *app) mcp() *cobra.Command {
	var f mcpFlags
	cmd := &cobra.Command{
		Use:   "mcp [--template NAME | --pool NAME | --snapshot ID | --fork SANDBOX | --sandbox SANDBOX] [--on-end hibernate|end] [--local]",
		Short: "Serve sandboxes to a model, over the Model Context Protocol",
		Long: `Serve sandboxes to a model: speak the Model Context Protocol (MCP) on the standard input and output, as
Claude, Cursor, VS Code and other clients start it. The model gets tools to run commands and code, to
work on files, and to fork, compare, merge and keep sandboxes; docs/mcp.md has each client's lines.

Each conversation has a sandbox of its own, made when it is first needed: of the template 'conversation', or of
what is named here; with --fork of a sandbox as it is then, with --sandbox that one itself. When the
conversation ends it hibernates, for a day, or ends, as --on-end says.

It talks to the server that the other commands talk to. Where none is named, and none answers, it is
one itself: sandboxes then live in this process, and go with it. --local has that in any case.

A server serves the same over HTTP, at /mcp of the API's address, to clients that send a key as their
bearer token; a query such as ?template=NAME stands for the flags.`,
		Example: a.example(`
  agentrun mcp                             # what a client starts
  agentrun mcp --template python
  agentrun mcp --fork my-project           # each conversation on a copy of the sandbox my-project
  claude mcp add sandbox -- agentrun mcp
  claude mcp add --transport http sandbox http://127.0.0.1:7070/mcp --header "Authorization: Bearer $KEY"
  npx @modelcontextprotocol/inspector agentrun mcp`),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.base.Check(); err != nil {
				return err
			}
			return a.serveModel(cmd.Context(), &f)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.base.Template, "template", "", "make the conversation's sandbox of the template `NAME`")
	fs.StringVar(&f.base.Pool, "pool", "", "claim it from the pool `NAME`")
	fs.StringVar(&f.base.Snapshot, "snapshot", "", "make it of the snapshot `ID`")
	fs.StringVar(&f.base.Fork, "fork", "", "make it as a fork of the `SANDBOX`")
	fs.StringVar(&f.base.Sandbox, "sandbox", "", "work in the `SANDBOX` itself")
	fs.StringVar(&f.onEnd, "on-end", "hibernate", "what becomes of it when the conversation ends, `hibernate|end`")
	fs.BoolVar(&f.local, "local", false, "be the server, whatever others there are")
	return cmd
}

// serveModel speaks with the client that started us. The standard output is its alone.
func (a *app) serveModel(ctx context.Context, f *mcpFlags) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	log := slog.New(slog.NewTextHandler(a.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	c, end, err := a.modelServer(ctx, f, log)
	if err != nil {
		return a.advise(err)
	}
	err = mcp.Serve(ctx, c, a.Stdin, a.Stdout, mcp.Options{Version: version(), Base: f.base, OnEnd: f.onEnd, Log: log})
	return errors.Join(err, end())
}

// modelServer returns a client of the server to use, and what ends that, if it is our own.
func (a *app) modelServer(ctx context.Context, f *mcpFlags, log *slog.Logger) (c *client.Client, end func() error, err error) {
	if !f.local {
		if c, err = a.connect(); err != nil {
			return nil, nil, err
		}
		_, err = c.Server(ctx)
		if err == nil || !errs.Is(err, errs.Unavailable) || ctx.Err() != nil || first(a.endpoint, a.Getenv("AGENTRUN_ENDPOINT")) != "" {
			return c, func() error { return nil }, err
		}
		fmt.Fprintf(a.Stderr, "%s: no server answers at %s: sandboxes are in this process, and go with it\n", a.Name, c.Endpoint())
	}
	dir, err := os.MkdirTemp("", "agentrun-mcp-")
	if err != nil {
		return nil, nil, errs.New(errs.Other, "mcp", "", err)
	}
	s, err := server.Start(ctx, server.Config{Data: dir, GuestCache: a.guestCache(), Listen: "127.0.0.1:0", S3Listen: "127.0.0.1:0", Version: version(), Log: log})
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(run) }()
	end = func() error {
		cancel()
		return errors.Join(<-ended, os.RemoveAll(dir))
	}
	if c, err = client.New(s.Endpoint, s.Root.Token(), client.Options{UserAgent: a.Name + "/" + version()}); err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return c, end, nil
}
