package control

import (
	"context"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/errs"
)

func unbuilt(op string) error { return errs.Msg(errs.Unsupported, op, "", "not built yet") }

// Templates.

func (c *Control) CreateTemplate(ctx context.Context, who *access.Caller, t api.CreateTemplate) (*api.Template, error) {
	return nil, unbuilt("CreateTemplate")
}

func (c *Control) PutTemplate(ctx context.Context, who *access.Caller, name string, spec api.TemplateSpec, labels api.Labels) (t *api.Template, changed bool, err error) {
	return nil, false, unbuilt("PutTemplate")
}

func (c *Control) Template(ctx context.Context, who *access.Caller, name string, version int) (*api.Template, error) {
	return nil, unbuilt("Template")
}

func (c *Control) Templates(ctx context.Context, who *access.Caller, p Page) (*api.Templates, error) {
	return nil, unbuilt("Templates")
}

func (c *Control) TemplateVersions(ctx context.Context, who *access.Caller, name string, p Page) (*api.Templates, error) {
	return nil, unbuilt("TemplateVersions")
}

func (c *Control) DeleteTemplate(ctx context.Context, who *access.Caller, name string) error {
	return unbuilt("DeleteTemplate")
}

func (c *Control) Rebuild(ctx context.Context, who *access.Caller, name string) (*api.Template, error) {
	return nil, unbuilt("Rebuild")
}

func (c *Control) BuildLog(ctx context.Context, who *access.Caller, name string, version int, follow bool, line func(api.BuildLine) error) error {
	return unbuilt("BuildLog")
}

// Pools.

func (c *Control) PutPool(ctx context.Context, who *access.Caller, name string, spec api.PoolSpec) (*api.Pool, error) {
	return nil, unbuilt("PutPool")
}

func (c *Control) Pool(ctx context.Context, who *access.Caller, name string) (*api.Pool, error) {
	return nil, unbuilt("Pool")
}

func (c *Control) Pools(ctx context.Context, who *access.Caller, p Page) (*api.Pools, error) {
	return nil, unbuilt("Pools")
}

func (c *Control) DeletePool(ctx context.Context, who *access.Caller, name string) error {
	return unbuilt("DeletePool")
}

func (c *Control) Reserve(ctx context.Context, who *access.Caller, r api.Reserve) (*api.Reservation, error) {
	return nil, unbuilt("Reserve")
}

func (c *Control) Unreserve(ctx context.Context, who *access.Caller, id string) error {
	return unbuilt("Unreserve")
}

// Sandboxes.

func (c *Control) CreateSandbox(ctx context.Context, who *access.Caller, s api.CreateSandbox) (*api.Sandbox, error) {
	return nil, unbuilt("CreateSandbox")
}

func (c *Control) Sandbox(ctx context.Context, who *access.Caller, id string) (*api.Sandbox, error) {
	return nil, unbuilt("Sandbox")
}

func (c *Control) Sandboxes(ctx context.Context, who *access.Caller, f Filter) (*api.Sandboxes, error) {
	return nil, unbuilt("Sandboxes")
}

func (c *Control) ChangeSandbox(ctx context.Context, who *access.Caller, id string, change api.ChangeSandbox) (*api.Sandbox, error) {
	return nil, unbuilt("ChangeSandbox")
}

func (c *Control) ExtendSandbox(ctx context.Context, who *access.Caller, id string, e api.Extend) (*api.Sandbox, error) {
	return nil, unbuilt("ExtendSandbox")
}

func (c *Control) EndSandbox(ctx context.Context, who *access.Caller, id string) (*api.Sandbox, error) {
	return nil, unbuilt("EndSandbox")
}

func (c *Control) ReleaseSandbox(ctx context.Context, who *access.Caller, id string) error {
	return unbuilt("ReleaseSandbox")
}

func (c *Control) Hibernate(ctx context.Context, who *access.Caller, id string) (*api.Sandbox, error) {
	return nil, unbuilt("Hibernate")
}

func (c *Control) Resume(ctx context.Context, who *access.Caller, id string) (*api.Sandbox, error) {
	return nil, unbuilt("Resume")
}

func (c *Control) Credentials(ctx context.Context, who *access.Caller, id string) (*api.Credentials, error) {
	return nil, unbuilt("Credentials")
}

// Forks, and what becomes of them.

func (c *Control) ForkSandbox(ctx context.Context, who *access.Caller, id string, f api.ForkSandbox) (*api.Fork, error) {
	return nil, unbuilt("ForkSandbox")
}

func (c *Control) PutFork(ctx context.Context, who *access.Caller, name string, f api.ForkSpec) (*api.Fork, error) {
	return nil, unbuilt("PutFork")
}

func (c *Control) Fork(ctx context.Context, who *access.Caller, name string) (*api.Fork, error) {
	return nil, unbuilt("Fork")
}

func (c *Control) Forks(ctx context.Context, who *access.Caller, p Page) (*api.Forks, error) {
	return nil, unbuilt("Forks")
}

func (c *Control) DeleteFork(ctx context.Context, who *access.Caller, name string) error {
	return unbuilt("DeleteFork")
}

func (c *Control) Tree(ctx context.Context, who *access.Caller, id string, fromRoot bool) (*api.Tree, error) {
	return nil, unbuilt("Tree")
}

func (c *Control) Diff(ctx context.Context, who *access.Caller, from, to string, paths []string, yield func(api.FileChange) error) (*api.FileDiff, error) {
	return nil, unbuilt("Diff")
}

func (c *Control) Merge(ctx context.Context, who *access.Caller, id string, m api.MergeSandbox) (*api.FileMerge, error) {
	return nil, unbuilt("Merge")
}

func (c *Control) Promote(ctx context.Context, who *access.Caller, id string) (*api.Sandbox, error) {
	return nil, unbuilt("Promote")
}

func (c *Control) TakeSnapshot(ctx context.Context, who *access.Caller, id string, t api.TakeSandboxSnapshot) (*api.SandboxSnapshot, error) {
	return nil, unbuilt("TakeSnapshot")
}

func (c *Control) Snapshot(ctx context.Context, who *access.Caller, id string) (*api.SandboxSnapshot, error) {
	return nil, unbuilt("Snapshot")
}

func (c *Control) Snapshots(ctx context.Context, who *access.Caller, sandbox string, p Page) (*api.SandboxSnapshots, error) {
	return nil, unbuilt("Snapshots")
}

func (c *Control) DeleteSnapshot(ctx context.Context, who *access.Caller, id string) error {
	return unbuilt("DeleteSnapshot")
}

// Claims.

func (c *Control) PutClaim(ctx context.Context, who *access.Caller, name string, spec api.ClaimSpec) (*api.Claim, error) {
	return nil, unbuilt("PutClaim")
}

func (c *Control) Claim(ctx context.Context, who *access.Caller, name string) (*api.Claim, error) {
	return nil, unbuilt("Claim")
}

func (c *Control) Claims(ctx context.Context, who *access.Caller, p Page) (*api.Claims, error) {
	return nil, unbuilt("Claims")
}

func (c *Control) DeleteClaim(ctx context.Context, who *access.Caller, name string) error {
	return unbuilt("DeleteClaim")
}

// Agents and conversations.

func (c *Control) PutAgent(ctx context.Context, who *access.Caller, a api.Agent) (*api.Agent, error) {
	return nil, unbuilt("PutAgent")
}

func (c *Control) Agent(ctx context.Context, who *access.Caller, name string) (*api.Agent, error) {
	return nil, unbuilt("Agent")
}

func (c *Control) Agents(ctx context.Context, who *access.Caller) (*api.Agents, error) {
	return nil, unbuilt("Agents")
}

func (c *Control) DeleteAgent(ctx context.Context, who *access.Caller, name string) error {
	return unbuilt("DeleteAgent")
}

func (c *Control) Attach(ctx context.Context, who *access.Caller, conversation string, a api.Attach) (*api.Conversation, error) {
	return nil, unbuilt("Attach")
}

func (c *Control) Detach(ctx context.Context, who *access.Caller, conversation string) (*api.Conversation, error) {
	return nil, unbuilt("Detach")
}

func (c *Control) Conversation(ctx context.Context, who *access.Caller, id string) (*api.Conversation, error) {
	return nil, unbuilt("Conversation")
}

func (c *Control) EndConversation(ctx context.Context, who *access.Caller, id string) error {
	return unbuilt("EndConversation")
}

// Usage, events, nodes, mounts.

func (c *Control) SandboxUsage(ctx context.Context, who *access.Caller, id string) (*api.SandboxUsage, error) {
	return nil, unbuilt("SandboxUsage")
}

func (c *Control) PrincipalUsage(ctx context.Context, who *access.Caller, name string) (*api.PrincipalUsage, error) {
	return nil, unbuilt("PrincipalUsage")
}

func (c *Control) Events(ctx context.Context, who *access.Caller, after uint64, f EventFilter) (*api.Events, error) {
	return nil, unbuilt("Events")
}

func (c *Control) Follow(ctx context.Context, who *access.Caller, after uint64, f EventFilter, event func(api.Event) error) error {
	return unbuilt("Follow")
}

func (c *Control) Nodes(ctx context.Context, who *access.Caller) (*api.Nodes, error) {
	return nil, unbuilt("Nodes")
}

func (c *Control) DrainNode(ctx context.Context, who *access.Caller, name string, drain bool) (*api.Node, error) {
	return nil, unbuilt("DrainNode")
}

func (c *Control) Mounts(ctx context.Context, who *access.Caller) (*api.Mounts, error) {
	return nil, unbuilt("Mounts")
}

func (c *Control) PutMounts(ctx context.Context, who *access.Caller, m api.Mounts) (*api.Mounts, error) {
	return nil, unbuilt("PutMounts")
}

// Use is how everything that is done inside a sandbox begins; see Session.

func (c *Control) Use(ctx context.Context, who *access.Caller, id string, verb access.Verb) (*Session, error) {
	return nil, unbuilt("Use")
}
