package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// Me describes whoever the key acts as.
func (c *Client) Me(ctx context.Context) (*api.Principal, error) {
	return get[api.Principal](ctx, c, path("me"), nil)
}

// Principal describes a principal.
func (c *Client) Principal(ctx context.Context, name string) (*api.Principal, error) {
	return get[api.Principal](ctx, c, path("principals", name), nil)
}

// Secret describes a secret, without its values.
func (c *Client) Secret(ctx context.Context, name string) (*api.Secret, error) {
	return get[api.Secret](ctx, c, path("secrets", name), nil)
}

// AuditFilter selects entries of the audit log. Empty fields select all. Action and Thing may end in a '*'.
type AuditFilter struct {
	Principal, Action, Thing, Request string
	Allowed                           *bool
	Limit                             int
}

// AuditPage returns decisions after a position, oldest first.
func (c *Client) AuditPage(ctx context.Context, after uint64, f AuditFilter) (*api.Audit, error) {
	q := url.Values{"after": {strconv.FormatUint(after, 10)}}
	for k, v := range map[string]string{"principal": f.Principal, "action": f.Action, "thing": f.Thing, "request": f.Request} {
		if v != "" {
			q.Set(k, v)
		}
	}
	if f.Allowed != nil {
		q.Set("allowed", strconv.FormatBool(*f.Allowed))
	}
	if f.Limit > 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	return get[api.Audit](ctx, c, path("audit"), q)
}

// ExportAudit writes all decisions after a position as lines of JSON.
func (c *Client) ExportAudit(ctx context.Context, after uint64, w io.Writer) error {
	resp, err := c.do(ctx, http.MethodGet, path("audit"), url.Values{"after": {strconv.FormatUint(after, 10)}}, api.NDJSON, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return errs.New(errs.Unavailable, "read answer", c.base.Host, err)
	}
	return nil
}

// CutAudit cuts off the entries of the audit log that are older than a time, and returns how many. Export them before.
func (c *Client) CutAudit(ctx context.Context, before time.Time) (uint64, error) {
	var out api.AuditCut
	err := c.call(ctx, http.MethodDelete, path("audit"), url.Values{"before": {before.UTC().Format(time.RFC3339Nano)}}, nil, &out)
	return out.Entries, err
}

// PutAgent makes an agent or changes it.
func (c *Client) PutAgent(ctx context.Context, a api.Agent) (*api.Agent, error) {
	return put[api.Agent](ctx, c, path("agents", a.Name), a)
}

// Agent describes an agent.
func (c *Client) Agent(ctx context.Context, name string) (*api.Agent, error) {
	return get[api.Agent](ctx, c, path("agents", name), nil)
}

// Agents lists agents.
func (c *Client) Agents(ctx context.Context) ([]api.Agent, error) {
	var all []api.Agent
	for p := (Page{}); ; {
		out, err := get[api.Agents](ctx, c, path("agents"), p.query(nil))
		if err != nil {
			return nil, err
		}
		all = append(all, out.Agents...)
		if p.Cursor = out.Next; p.Cursor == "" {
			return all, nil
		}
	}
}

// DeleteAgent forgets an agent.
func (c *Client) DeleteAgent(ctx context.Context, name string) error {
	return c.delete(ctx, path("agents", name))
}

// Attach attaches a sandbox to a conversation: which one is the agent's mode to say.
func (c *Client) Attach(ctx context.Context, conversation string, in api.Attach) (*api.Conversation, error) {
	return create[api.Conversation](ctx, c, path("conversations", conversation, "attach"), in)
}

// Detach ends that.
func (c *Client) Detach(ctx context.Context, conversation string) (*api.Conversation, error) {
	return post[api.Conversation](ctx, c, path("conversations", conversation, "detach"), nil)
}

// Conversation says what is attached to a conversation.
func (c *Client) Conversation(ctx context.Context, id string) (*api.Conversation, error) {
	return get[api.Conversation](ctx, c, path("conversations", id), nil)
}

// EndConversation ends a conversation.
func (c *Client) EndConversation(ctx context.Context, id string) error {
	return c.delete(ctx, path("conversations", id))
}

// Mounts say what stands behind the mounts that templates may name.
func (c *Client) Mounts(ctx context.Context) (*api.Mounts, error) {
	return get[api.Mounts](ctx, c, path("mounts"), nil)
}

// PutMounts sets them.
func (c *Client) PutMounts(ctx context.Context, m api.Mounts) (*api.Mounts, error) {
	return put[api.Mounts](ctx, c, path("mounts"), m)
}

// Node describes a node.
func (c *Client) Node(ctx context.Context, name string) (*api.Node, error) {
	return get[api.Node](ctx, c, path("nodes", name), nil)
}
