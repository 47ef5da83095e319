package cli

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentrun.dev/client"
	"agentrun.dev/cmd/agentrun/internal/settings"
	"agentrun.dev/errs"
)

// defaultEndpoint is where a server is if nobody says otherwise.
const defaultEndpoint = "http://127.0.0.1:7070"

// target is the server that a command speaks with, and how it was found.
type target struct {
	endpoint, key string
	ca            []byte
	context       *settings.Context // set if the endpoint is the context's
}

// find settles the server: flags, then environment, then the context that 'up' left, then the local default. The key of
// the context is for its own server only.
func (a *app) find() (*target, error) {
	t := &target{endpoint: first(a.endpoint, a.Getenv("AGENTRUN_ENDPOINT")), key: first(a.key, a.Getenv("AGENTRUN_API_KEY"))}
	if file := first(a.caCert, a.Getenv("AGENTRUN_CA_CERT")); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, errs.New(errs.Invalid, "certificates", file, err)
		}
		t.ca = pem
	}
	c, err := a.context()
	if err != nil && !errs.Is(err, errs.NotFound) {
		return nil, err
	}
	if c != nil && (t.endpoint == "" || strings.TrimRight(t.endpoint, "/") == c.Endpoint) {
		t.context, t.endpoint = c, c.Endpoint
		t.key = first(t.key, c.APIKey)
		if t.ca == nil && c.CACert != "" {
			t.ca = []byte(c.CACert)
		}
	}
	t.endpoint = first(t.endpoint, defaultEndpoint)
	return t, nil
}

func first(s ...string) string {
	for _, v := range s {
		if v != "" {
			return v
		}
	}
	return ""
}

// contextFile returns where the context is.
func (a *app) contextFile() (string, error) {
	dir, err := a.ConfigDir()
	if err != nil {
		return "", errs.New(errs.NotFound, "context", "", err)
	}
	return settings.ContextFile(dir), nil
}

func (a *app) context() (*settings.Context, error) {
	file, err := a.contextFile()
	if err != nil {
		return nil, err
	}
	return settings.ReadContext(file)
}

// connect returns a client for the server. Nothing is sent yet.
func (a *app) connect() (*client.Client, error) {
	if a.client != nil {
		return a.client, nil
	}
	t, err := a.find()
	if err != nil {
		return nil, err
	}
	a.client, err = client.New(t.endpoint, t.key, client.Options{CA: t.ca, UserAgent: a.Name + "/" + version()})
	return a.client, err
}

// withServer makes a command's body of a function that needs the server.
func (a *app) withServer(f func(ctx context.Context, c *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := a.connect()
		if err != nil {
			return err
		}
		return a.advise(f(cmd.Context(), c, args))
	}
}

// advise adds what to do about a server that isn't there or doesn't know us.
func (a *app) advise(err error) error {
	if err == nil || errs.HintOf(err) != "" {
		return err
	}
	switch errs.KindOf(err) {
	case errs.Unavailable:
		return hinted(err, "start a server with 'agentrun up', or say where one is with --endpoint or AGENTRUN_ENDPOINT")
	case errs.Denied:
		return hinted(err, "another key may: one of a principal with that role, or one made for the bucket ('agentrun keys create'); see docs/access.md")
	case errs.Unauthorized:
		return hinted(err, "give a key with --key or AGENTRUN_API_KEY; 'agentrun keys create' makes one")
	}
	return err
}

// hinted wraps an error with advice, leaving its text as it is.
func hinted(err error, hint string) error {
	return errs.New(errs.KindOf(err), "", "", err).WithHint(hint)
}

// completeTimeout bounds what the Tab key may cost.
const completeTimeout = time.Second

// completeBuckets offers buckets' names for the first n arguments, or for all if n is negative.
func (a *app) completeBuckets(n int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if n >= 0 && len(args) >= n {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.bucketNames(cmd.Context(), prefix), cobra.ShellCompDirectiveNoFileComp
	}
}

func (a *app) bucketNames(ctx context.Context, prefix string) []string {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	c, err := a.connect()
	if err != nil {
		return nil
	}
	list, err := c.Buckets(ctx)
	if err != nil {
		return nil
	}
	var names []string
	for _, b := range list {
		if strings.HasPrefix(b.Name, prefix) {
			names = append(names, b.Name)
		}
	}
	return names
}

// bucketFlag makes a flag complete buckets' names.
func (a *app) bucketFlag(cmd *cobra.Command, name string) {
	_ = cmd.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return a.bucketNames(cmd.Context(), prefix), cobra.ShellCompDirectiveNoFileComp
	})
}
