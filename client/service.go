package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"agentrun.dev/api"
	"agentrun.dev/errs"
	"time"
)

// Page is a part of a list: at most Limit, what comes after Cursor. The zero value is the first page.
type Page struct {
	Limit  int
	Cursor string
}

func (p Page) query(q url.Values) url.Values {
	if q == nil {
		q = url.Values{}
	}
	if p.Limit > 0 {
		q.Set("limit", strconv.Itoa(p.Limit))
	}
	if p.Cursor != "" {
		q.Set("cursor", p.Cursor)
	}
	return q
}

func put[T any](ctx context.Context, c *Client, path string, in any) (*T, error) {
	out := new(T)
	if err := c.call(ctx, http.MethodPut, path, nil, in, out); err != nil {
		return nil, err
	}
	return out, nil
}

// create is post for what is made: once, however often it is sent.
func create[T any](ctx context.Context, c *Client, path string, in any) (*T, error) {
	b, err := json.Marshal(in)
	if err != nil {
		return nil, errs.New(errs.Invalid, "encode request", path, err)
	}
	q := keyed(ctx, &request{method: http.MethodPost, path: path, header: http.Header{"Accept": {api.JSON}, "Content-Type": {api.JSON}},
		body: func() io.Reader { return bytes.NewReader(b) }})
	out := new(T)
	return out, c.decoded(ctx, q, out)
}

// decoded sends a request and decodes its one answer.
func (c *Client) decoded(ctx context.Context, q *request, out any) error {
	resp, err := c.send(ctx, q)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return errs.New(errs.Unavailable, "read answer", c.base.Host, err)
	}
	return nil
}

func (c *Client) delete(ctx context.Context, path string) error {
	return c.call(ctx, http.MethodDelete, path, nil, nil, nil)
}

// PutTemplate makes a template, or a new version of one if the spec differs from the newest.
func (c *Client) PutTemplate(ctx context.Context, name string, spec api.TemplateSpec) (*api.Template, error) {
	return put[api.Template](ctx, c, path("templates", name), spec)
}

// Template describes the newest version of a template, or the one that is asked for.
func (c *Client) Template(ctx context.Context, name string, version int) (*api.Template, error) {
	var q url.Values
	if version > 0 {
		q = url.Values{"version": {strconv.Itoa(version)}}
	}
	return get[api.Template](ctx, c, path("templates", name), q)
}

// Templates lists templates by name.
func (c *Client) Templates(ctx context.Context, p Page) (*api.Templates, error) {
	return get[api.Templates](ctx, c, path("templates"), p.query(nil))
}

// DeleteTemplate deletes a template that no pool uses. Sandboxes of it go on.
func (c *Client) DeleteTemplate(ctx context.Context, name string) error {
	return c.delete(ctx, path("templates", name))
}

// PutPool makes a pool or changes it.
func (c *Client) PutPool(ctx context.Context, name string, spec api.PoolSpec) (*api.Pool, error) {
	return put[api.Pool](ctx, c, path("pools", name), spec)
}

// Pool describes a pool.
func (c *Client) Pool(ctx context.Context, name string) (*api.Pool, error) {
	return get[api.Pool](ctx, c, path("pools", name), nil)
}

// Pools lists pools by name.
func (c *Client) Pools(ctx context.Context, p Page) (*api.Pools, error) {
	return get[api.Pools](ctx, c, path("pools"), p.query(nil))
}

// DeletePool deletes a pool with its warm sandboxes. Those that were claimed go on.
func (c *Client) DeletePool(ctx context.Context, name string) error {
	return c.delete(ctx, path("pools", name))
}

// CreateSandbox makes a sandbox, or claims one from a pool.
func (c *Client) CreateSandbox(ctx context.Context, in api.CreateSandbox) (*api.Sandbox, error) {
	return create[api.Sandbox](ctx, c, path("sandboxes"), in)
}

// Sandbox describes a sandbox by its id or name.
func (c *Client) Sandbox(ctx context.Context, id string) (*api.Sandbox, error) {
	return get[api.Sandbox](ctx, c, path("sandboxes", id), nil)
}

// SandboxFilter selects sandboxes. Empty fields select all that neither wait in a pool nor have ended.
type SandboxFilter struct {
	Page
	State, Owner, Template, Pool, Root, Parent, Name, Conversation string
	Labels                                                         api.Labels
}

// Sandboxes lists sandboxes, newest first.
func (c *Client) Sandboxes(ctx context.Context, f SandboxFilter) (*api.Sandboxes, error) {
	q := url.Values{}
	for k, v := range map[string]string{"state": f.State, "owner": f.Owner, "template": f.Template, "pool": f.Pool, "root": f.Root, "parent": f.Parent,
		"name": f.Name, "conversation": f.Conversation} {
		if v != "" {
			q.Set(k, v)
		}
	}
	for k, v := range f.Labels {
		q.Add("label", k+"="+v)
	}
	return get[api.Sandboxes](ctx, c, path("sandboxes"), f.query(q))
}

// ChangeSandbox changes what is set.
func (c *Client) ChangeSandbox(ctx context.Context, id string, in api.ChangeSandbox) (*api.Sandbox, error) {
	out := new(api.Sandbox)
	if err := c.call(ctx, http.MethodPatch, path("sandboxes", id), nil, in, out); err != nil {
		return nil, err
	}
	return out, nil
}

// EndSandbox ends a sandbox, and deletes what it holds.
func (c *Client) EndSandbox(ctx context.Context, id string) error {
	return c.delete(ctx, path("sandboxes", id))
}

// ExtendSandbox moves the end of its lease.
func (c *Client) ExtendSandbox(ctx context.Context, id string, in api.Extend) (*api.Sandbox, error) {
	return post[api.Sandbox](ctx, c, path("sandboxes", id, "extend"), in)
}

// HibernateSandbox saves a sandbox to disk and frees its memory. The next use wakes it up.
func (c *Client) HibernateSandbox(ctx context.Context, id string) (*api.Sandbox, error) {
	return c.PauseSandbox(ctx, id, api.HibernateSandbox{})
}

// PauseSandbox is HibernateSandbox; by Force also while it is in use.
func (c *Client) PauseSandbox(ctx context.Context, id string, in api.HibernateSandbox) (*api.Sandbox, error) {
	return post[api.Sandbox](ctx, c, path("sandboxes", id, "hibernate"), in)
}

// ResumeSandbox wakes a sandbox up.
func (c *Client) ResumeSandbox(ctx context.Context, id string) (*api.Sandbox, error) {
	return post[api.Sandbox](ctx, c, path("sandboxes", id, "resume"), nil)
}

// ReleaseSandbox gives a sandbox back to its pool.
func (c *Client) ReleaseSandbox(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodPost, path("sandboxes", id, "release"), nil, nil, nil)
}

// PromoteSandbox puts a fork in its parent's place.
func (c *Client) PromoteSandbox(ctx context.Context, id string) (*api.Sandbox, error) {
	return post[api.Sandbox](ctx, c, path("sandboxes", id, "promote"), nil)
}

// ForkSandbox makes copies of a running sandbox, all of one instant.
func (c *Client) ForkSandbox(ctx context.Context, id string, in api.ForkSandbox) (*api.Fork, error) {
	return create[api.Fork](ctx, c, path("sandboxes", id, "fork"), in)
}

// SandboxTree returns a sandbox with all that were forked from it.
func (c *Client) SandboxTree(ctx context.Context, id string, fromRoot bool) (*api.Tree, error) {
	var q url.Values
	if fromRoot {
		q = url.Values{"root": {"true"}}
	}
	return get[api.Tree](ctx, c, path("sandboxes", id, "tree"), q)
}

// SandboxDiff yields what differs between the files of two sandboxes, by path; without to, what changed in the first since it
// was forked or claimed.
func (c *Client) SandboxDiff(ctx context.Context, from, to, prefix string, f func(*api.FileChange) error) (*api.FileDiff, error) {
	q := url.Values{}
	if to != "" {
		q.Set("to", to)
	}
	if prefix != "" {
		q.Set("path", prefix)
	}
	return stream[api.FileChange, api.FileDiff](ctx, c, http.MethodGet, path("sandboxes", from, "diff"), q, nil, f, nil)
}

// MergeSandbox merges the files of a sandbox into another. The result lists conflicts; with in.Conflicts "fail" and any of them,
// nothing was changed.
func (c *Client) MergeSandbox(ctx context.Context, id string, in api.MergeSandbox) (*api.FileMerge, error) {
	res, err := post[api.FileMerge](ctx, c, path("sandboxes", id, "merge"), in)
	var e *Error
	if errors.As(err, &e) {
		res = e.Problem.Files
	}
	return res, err
}

// SnapshotSandbox keeps the files of a sandbox as they are.
func (c *Client) SnapshotSandbox(ctx context.Context, id string, in api.TakeSandboxSnapshot) (*api.SandboxSnapshot, error) {
	return create[api.SandboxSnapshot](ctx, c, path("sandboxes", id, "snapshots"), in)
}

// CreateVolume makes a volume that outlives sandboxes.
func (c *Client) CreateVolume(ctx context.Context, in api.CreateVolume) (*api.StoredVolume, error) {
	return create[api.StoredVolume](ctx, c, path("volumes"), in)
}

// Volume describes a volume, by its id or name.
func (c *Client) Volume(ctx context.Context, id string) (*api.StoredVolume, error) {
	return get[api.StoredVolume](ctx, c, path("volumes", id), nil)
}

// Volumes lists volumes, oldest first.
func (c *Client) Volumes(ctx context.Context, p Page) (*api.StoredVolumes, error) {
	return get[api.StoredVolumes](ctx, c, path("volumes"), p.query(nil))
}

// DeleteVolume deletes a volume with what it holds.
func (c *Client) DeleteVolume(ctx context.Context, id string) error {
	return c.delete(ctx, path("volumes", id))
}

// SandboxCredentials makes S3 keys for the buckets of one sandbox.
func (c *Client) SandboxCredentials(ctx context.Context, id string) (*api.Credentials, error) {
	return create[api.Credentials](ctx, c, path("sandboxes", id, "credentials"), struct{}{})
}

// SandboxUsage says what a sandbox used so far.
func (c *Client) SandboxUsage(ctx context.Context, id string) (*api.SandboxUsage, error) {
	return get[api.SandboxUsage](ctx, c, path("sandboxes", id, "usage"), nil)
}

// SandboxMetrics says what a sandbox used over time, between two times where they aren't zero.
func (c *Client) SandboxMetrics(ctx context.Context, id string, from, to time.Time) (*api.SandboxMetrics, error) {
	q := url.Values{}
	for name, at := range map[string]time.Time{"from": from, "to": to} {
		if !at.IsZero() {
			q.Set(name, at.Format(time.RFC3339Nano))
		}
	}
	return get[api.SandboxMetrics](ctx, c, path("sandboxes", id, "metrics"), q)
}

// PrincipalUsage says what a principal's sandboxes used so far.
func (c *Client) PrincipalUsage(ctx context.Context, name string) (*api.PrincipalUsage, error) {
	return get[api.PrincipalUsage](ctx, c, path("principals", name, "usage"), nil)
}

// PutFork makes a fork under a name, unless it exists.
func (c *Client) PutFork(ctx context.Context, name string, spec api.ForkSpec) (*api.Fork, error) {
	return put[api.Fork](ctx, c, path("forks", name), spec)
}

// Fork describes a fork.
func (c *Client) Fork(ctx context.Context, name string) (*api.Fork, error) {
	return get[api.Fork](ctx, c, path("forks", name), nil)
}

// SandboxForks lists forks by name.
func (c *Client) SandboxForks(ctx context.Context, p Page) (*api.Forks, error) {
	return get[api.Forks](ctx, c, path("forks"), p.query(nil))
}

// DeleteFork ends the sandboxes of a fork and forgets it.
func (c *Client) DeleteFork(ctx context.Context, name string) error {
	return c.delete(ctx, path("forks", name))
}

// PutClaim claims a sandbox under a name, unless that was done.
func (c *Client) PutClaim(ctx context.Context, name string, spec api.ClaimSpec) (*api.Claim, error) {
	return put[api.Claim](ctx, c, path("claims", name), spec)
}

// Claim describes a claim.
func (c *Client) Claim(ctx context.Context, name string) (*api.Claim, error) {
	return get[api.Claim](ctx, c, path("claims", name), nil)
}

// Claims lists claims by name.
func (c *Client) Claims(ctx context.Context, p Page) (*api.Claims, error) {
	return get[api.Claims](ctx, c, path("claims"), p.query(nil))
}

// DeleteClaim ends the sandbox of a claim and forgets it.
func (c *Client) DeleteClaim(ctx context.Context, name string) error {
	return c.delete(ctx, path("claims", name))
}

// Run runs something in a sandbox to its end.
func (c *Client) Run(ctx context.Context, id string, in api.Run) (*api.RunResult, error) {
	return post[api.RunResult](ctx, c, path("sandboxes", id, "exec"), in)
}

// Events returns what happened after a position.
func (c *Client) Events(ctx context.Context, after uint64, sandbox, kind string, limit int) (*api.Events, error) {
	q := url.Values{"after": {strconv.FormatUint(after, 10)}}
	if sandbox != "" {
		q.Set("sandbox", sandbox)
	}
	if kind != "" {
		q.Set("kind", kind)
	}
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return get[api.Events](ctx, c, path("events"), q)
}

// Nodes lists nodes.
func (c *Client) Nodes(ctx context.Context) (*api.Nodes, error) {
	all := &api.Nodes{Nodes: []api.Node{}}
	for p := (Page{}); ; {
		out, err := get[api.Nodes](ctx, c, path("nodes"), p.query(nil))
		if err != nil {
			return nil, err
		}
		all.Nodes = append(all.Nodes, out.Nodes...)
		if p.Cursor = out.Next; p.Cursor == "" {
			return all, nil
		}
	}
}

// DrainNode has a node start nothing new, or start things again.
func (c *Client) DrainNode(ctx context.Context, name string, drain bool) (*api.Node, error) {
	verb := "drain"
	if !drain {
		verb = "undrain"
	}
	return post[api.Node](ctx, c, path("nodes", name, verb), nil)
}

// Audit returns decisions after a position.
func (c *Client) Audit(ctx context.Context, after uint64, limit int) (*api.Audit, error) {
	q := url.Values{"after": {strconv.FormatUint(after, 10)}}
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return get[api.Audit](ctx, c, path("audit"), q)
}

// VerifyAudit checks the chain of the audit log.
func (c *Client) VerifyAudit(ctx context.Context) (*api.AuditCheck, error) {
	return get[api.AuditCheck](ctx, c, path("audit", "verify"), nil)
}

// Secrets lists secrets by name, without values.
func (c *Client) Secrets(ctx context.Context, p Page) (*api.Secrets, error) {
	return get[api.Secrets](ctx, c, path("secrets"), p.query(nil))
}

// PutSecret keeps values under a name, in place of those that it had.
func (c *Client) PutSecret(ctx context.Context, name string, in api.Secret) (*api.Secret, error) {
	return put[api.Secret](ctx, c, path("secrets", name), in)
}

// DeleteSecret forgets a secret.
func (c *Client) DeleteSecret(ctx context.Context, name string) error {
	return c.delete(ctx, path("secrets", name))
}

// Principals lists principals by name.
func (c *Client) Principals(ctx context.Context, p Page) (*api.Principals, error) {
	return get[api.Principals](ctx, c, path("principals"), p.query(nil))
}

// PutPrincipal makes a principal known, or changes it.
func (c *Client) PutPrincipal(ctx context.Context, name string, in api.Principal) (*api.Principal, error) {
	return put[api.Principal](ctx, c, path("principals", name), in)
}

// DeletePrincipal forgets a principal. Its keys are void from then on.
func (c *Client) DeletePrincipal(ctx context.Context, name string) error {
	return c.delete(ctx, path("principals", name))
}

// BuildLog yields the lines of a template's build, of the newest version where version is 0. With follow it goes on until the
// build has ended.
func (c *Client) BuildLog(ctx context.Context, name string, version int, follow bool, line func(*api.BuildLine) error) error {
	q := url.Values{}
	if version > 0 {
		q.Set("version", strconv.Itoa(version))
	}
	if follow {
		q.Set("follow", "true")
	}
	return lines(ctx, c, path("templates", name, "log"), q, line)
}

// Follow yields what happens after a position, as it happens, until ctx is done. Where the connection breaks or the server
// goes, it goes on after the last event when there is one again: nothing is missed, and nothing comes twice.
func (c *Client) Follow(ctx context.Context, after uint64, sandbox, kind string, event func(*api.Event) error) error {
	var ours error // of the caller's function
	for wait := leastWait; ; wait = min(2*wait, mostWait) {
		q := url.Values{"after": {strconv.FormatUint(after, 10)}, "follow": {"true"}}
		if sandbox != "" {
			q.Set("sandbox", sandbox)
		}
		if kind != "" {
			q.Set("kind", kind)
		}
		begun := after
		err := lines(ctx, c, path("events"), q, func(e *api.Event) error {
			if ours = event(e); ours == nil {
				after = e.Seq
			}
			return ours
		})
		switch {
		case ours != nil:
			return ours
		case ctx.Err() != nil:
			return errs.New(errs.Canceled, "follow events", c.base.Host, context.Cause(ctx))
		case err != nil && (!errs.Is(err, errs.Unavailable) || after == 0 && begun == 0 && refused(err)):
			return err
		}
		if after > begun {
			wait = leastWait
		}
		if err := sleep(ctx, jitter(wait)); err != nil {
			return err
		}
	}
}

// lines reads a stream of JSON values to its end. Empty lines say only that it goes on.
func lines[T any](ctx context.Context, c *Client, at string, q url.Values, each func(*T) error) error {
	resp, err := c.do(ctx, http.MethodGet, at, q, api.NDJSON, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	for dec := json.NewDecoder(resp.Body); ; {
		v := new(T)
		if err := dec.Decode(v); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			if ctx.Err() != nil {
				return errs.New(errs.Canceled, "read answer", c.base.Host, context.Cause(ctx))
			}
			return errs.New(errs.Unavailable, "read answer", c.base.Host, err)
		}
		if err := each(v); err != nil {
			return err
		}
	}
}

// Metrics returns the server's metrics as Prometheus reads them.
func (c *Client) Metrics(ctx context.Context) (string, error) {
	resp, err := c.do(ctx, http.MethodGet, "/metrics", nil, "text/plain", nil)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err != nil {
		return "", errs.New(errs.Unavailable, "read answer", c.base.Host, err)
	}
	return string(b), nil
}
