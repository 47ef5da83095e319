package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// RunStream runs something in a sandbox and yields what happens as it does. When ctx ends, or event returns an error, what runs is
// killed. The result has no output.
func (c *Client) RunStream(ctx context.Context, id string, in api.Run, event func(*api.RunEvent) error) (*api.RunResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := c.do(ctx, http.MethodPost, path("sandboxes", id, "exec"), nil, api.NDJSON, in)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	for dec := json.NewDecoder(resp.Body); ; {
		var e api.RunEvent
		if err := dec.Decode(&e); err != nil {
			if ctx.Err() != nil {
				return nil, errs.New(errs.Canceled, "run", id, context.Cause(ctx))
			}
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF // the server went away in the middle
			}
			return nil, errs.New(errs.Unavailable, "run", id, err)
		}
		if e.Error != nil {
			return nil, fromProblem(*e.Error)
		}
		if event != nil {
			if err := event(&e); err != nil {
				return nil, err
			}
		}
		if e.Result != nil {
			return e.Result, nil
		}
	}
}

// Processes lists the commands that run in a sandbox.
func (c *Client) Processes(ctx context.Context, id string) ([]api.ProcessInfo, error) {
	out, err := get[api.Processes](ctx, c, path("sandboxes", id, "processes"), nil)
	if err != nil {
		return nil, err
	}
	return out.Processes, nil
}

// Signal sends a signal, such as "TERM", to a command that runs in a sandbox.
func (c *Client) Signal(ctx context.Context, id string, pid int, signal string) error {
	q := url.Values{}
	if signal != "" {
		q.Set("signal", signal)
	}
	return c.call(ctx, http.MethodDelete, path("sandboxes", id, "processes", strconv.Itoa(pid)), q, nil, nil)
}

// Reserve holds a warm sandbox of a pool back for whoever is about to claim.
func (c *Client) Reserve(ctx context.Context, in api.Reserve) (*api.Reservation, error) {
	return create[api.Reservation](ctx, c, path("reservations"), in)
}

// Unreserve gives a reservation up early.
func (c *Client) Unreserve(ctx context.Context, id string) error {
	return c.delete(ctx, path("reservations", id))
}

// CreateTemplate makes a template, and builds it. A name that is taken is errs.Exists.
func (c *Client) CreateTemplate(ctx context.Context, in api.CreateTemplate) (*api.Template, error) {
	return create[api.Template](ctx, c, path("templates"), in)
}

// TemplateVersions lists a template's versions, newest first.
func (c *Client) TemplateVersions(ctx context.Context, name string, p Page) (*api.Templates, error) {
	return get[api.Templates](ctx, c, path("templates", name, "versions"), p.query(nil))
}

// RebuildTemplate builds the newest version of a template again.
func (c *Client) RebuildTemplate(ctx context.Context, name string) (*api.Template, error) {
	return post[api.Template](ctx, c, path("templates", name, "build"), nil)
}

// SandboxSnapshots lists snapshots of sandboxes, or of one.
func (c *Client) SandboxSnapshots(ctx context.Context, sandbox string, p Page) (*api.SandboxSnapshots, error) {
	q := url.Values{}
	if sandbox != "" {
		q.Set("sandbox", sandbox)
	}
	return get[api.SandboxSnapshots](ctx, c, path("snapshots"), p.query(q))
}

// SandboxSnapshot describes a snapshot of a sandbox.
func (c *Client) SandboxSnapshot(ctx context.Context, id string) (*api.SandboxSnapshot, error) {
	return get[api.SandboxSnapshot](ctx, c, path("snapshots", id), nil)
}

// DeleteSandboxSnapshot deletes a snapshot of a sandbox.
func (c *Client) DeleteSandboxSnapshot(ctx context.Context, id string) error {
	return c.delete(ctx, path("snapshots", id))
}

// Port sends a request to a server that listens in a sandbox. Its URL is the server's own, such as "/index.html"; Authorization for
// that server goes into X-Sandbox-Authorization. The caller closes the answer's body.
func (c *Client) Port(id string, port int, r *http.Request) (*http.Response, error) {
	u, err := url.Parse(c.base.String() + path("sandboxes", id, "ports", strconv.Itoa(port)) + "/")
	if err != nil {
		return nil, errs.New(errs.Invalid, "request", id, err)
	}
	out := r.Clone(r.Context())
	out.URL = u.JoinPath(r.URL.EscapedPath())
	out.URL.RawQuery, out.Host, out.RequestURI = r.URL.RawQuery, "", ""
	c.header(out.Header)
	resp, err := c.http.Do(out)
	if err != nil {
		return nil, c.unreachable(r.Context(), err)
	}
	return resp, nil
}
