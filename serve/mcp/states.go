package mcp

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentrun.dev/api"
	"agentrun.dev/client"
)

type snapshotInput struct {
	Name string `json:"name,omitempty" jsonschema:"a name for it"`
	which
}

type snapshot struct {
	ID       string    `json:"id" jsonschema:"for create_sandbox"`
	Name     string    `json:"name,omitempty"`
	Sandbox  string    `json:"sandbox" jsonschema:"id of the sandbox that it is of"`
	Template string    `json:"template,omitempty"`
	Created  time.Time `json:"created"`
}

type snapshotsInput struct {
	Sandbox string `json:"sandbox,omitempty" jsonschema:"only those of this sandbox (default all)"`
	pageInput
}

type snapshotsOutput struct {
	Snapshots []snapshot `json:"snapshots"`
	Next      string     `json:"next_cursor,omitempty" jsonschema:"there is more: give it as cursor"`
}

type terminateInput struct {
	Sandbox string `json:"sandbox" jsonschema:"id or name of the sandbox; 'own' is this conversation's"`
}

func addStates(s *mcp.Server, v *conversation) {
	add(s, v, describe("snapshot_sandbox", "Take a snapshot", `
Keep the files of a sandbox as they are now. create_sandbox makes new sandboxes of the snapshot, at any time, also when this one is long gone. Running
processes aren't part of it.`, adds), snapshotSandbox)
	add(s, v, describe("list_snapshots", "List snapshots", `
List the snapshots of sandboxes that there are, for create_sandbox.`, looks), listSnapshots)
	add(s, v, describe("hibernate_sandbox", "Hibernate a sandbox", `
Save a sandbox to disk with its processes, and free its memory. Nothing is lost: whatever uses it next wakes it up, in milliseconds. For sandboxes
that are done with for now.`, adds, idempotent), hibernateSandbox)
	add(s, v, describe("resume_sandbox", "Resume a sandbox", `
Wake up a sandbox that hibernates. There is no need to: any tool that uses it does.`, adds, idempotent), resumeSandbox)
	add(s, v, describe("terminate_sandbox", "Terminate a sandbox", `
End a sandbox for good, and delete its files. Snapshots and forks of it stay. Merge or take a snapshot first, if anything in it is wanted.`, changes, idempotent), terminateSandbox)
}

func snapshotSandbox(ctx context.Context, c *call, in snapshotInput) (*done[*snapshot], error) {
	id, err := c.in(ctx, in.Sandbox)
	if err != nil {
		return nil, err
	}
	s, err := c.c.SnapshotSandbox(ctx, id, api.TakeSandboxSnapshot{Name: in.Name})
	if err != nil {
		return nil, err
	}
	return &done[*snapshot]{text: fmt.Sprintf("Took snapshot %s of sandbox %s.", s.ID, s.Sandbox), out: &snapshot{s.ID, s.Name, s.Sandbox, s.Template, s.Created}}, nil
}

func listSnapshots(ctx context.Context, c *call, in snapshotsInput) (*done[*snapshotsOutput], error) {
	if in.Limit < 0 || in.Limit > api.MaxPage {
		return nil, bad("limit", "want 1 to 1000")
	}
	list, err := c.c.SandboxSnapshots(ctx, in.Sandbox, client.Page{Limit: in.Limit, Cursor: in.Cursor})
	if err != nil {
		return nil, err
	}
	out := &snapshotsOutput{Snapshots: []snapshot{}, Next: list.Next}
	var w strings.Builder
	for _, s := range list.Snapshots {
		out.Snapshots = append(out.Snapshots, snapshot{s.ID, s.Name, s.Sandbox, s.Template, s.Created})
		fmt.Fprintf(&w, "%s", s.ID)
		if s.Name != "" {
			fmt.Fprintf(&w, " (%s)", s.Name)
		}
		fmt.Fprintf(&w, " of %s, %s\n", s.Sandbox, s.Created.Format(time.RFC3339))
	}
	if len(out.Snapshots) == 0 {
		w.WriteString("[none]")
	}
	more(&w, list.Next)
	return &done[*snapshotsOutput]{text: w.String(), out: out}, nil
}

func hibernateSandbox(ctx context.Context, c *call, in which) (*done[*box], error) {
	return c.state(ctx, in, "Hibernated", c.hibernate)
}

func resumeSandbox(ctx context.Context, c *call, in which) (*done[*box], error) {
	return c.state(ctx, in, "Resumed", c.c.ResumeSandbox)
}

// state brings a sandbox into another state.
func (c *call) state(ctx context.Context, in which, did string, do func(context.Context, string) (*api.Sandbox, error)) (*done[*box], error) {
	id, err := c.in(ctx, in.Sandbox)
	if err != nil {
		return nil, err
	}
	sb, err := do(ctx, id)
	if err != nil {
		return nil, err
	}
	b := c.box(sb)
	return &done[*box]{text: did + " " + b.words() + ".", out: &b}, nil
}

func terminateSandbox(ctx context.Context, c *call, in terminateInput) (*done[none], error) {
	id := strings.TrimSpace(in.Sandbox)
	if id == "own" {
		if id = c.here(); id == "" {
			return text("There is no sandbox of this conversation yet."), nil
		}
	}
	if id == "" {
		return nil, bad("sandbox", "which one? 'own' is this conversation's")
	}
	sb, err := c.c.Sandbox(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := c.c.EndSandbox(ctx, sb.ID); err != nil {
		return nil, err
	}
	mine := c.box(sb).Own
	c.leave(sb.ID)
	c.leave(id)
	if mine && !c.stateless {
		return text("Ended sandbox %s. It was this conversation's; the next tool that needs one gets a new one.", sb.ID), nil
	}
	return text("Ended sandbox %s.", sb.ID), nil
}
