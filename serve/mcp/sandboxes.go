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

// box is a sandbox as a model is told of it.
type box struct {
	ID       string     `json:"id"`
	Name     string     `json:"name,omitempty"`
	State    string     `json:"state" jsonschema:"running; hibernated: on disk, its next use wakes it; ended or failed: gone; starting, resuming, hibernating, ending: on its way"`
	Reason   string     `json:"reason,omitempty"`
	Template string     `json:"template,omitempty"`
	Parent   string     `json:"parent,omitempty" jsonschema:"id of the sandbox that it was forked from"`
	Owner    string     `json:"owner,omitempty"`
	Created  time.Time  `json:"created"`
	Expires  *time.Time `json:"expires,omitempty" jsonschema:"when it hibernates or ends if it isn't used"`
	Own      bool       `json:"own,omitempty" jsonschema:"tools that are given no sandbox work on this one"`
}

func (v *conversation) box(b *api.Sandbox) box {
	here := v.here()
	out := box{ID: b.ID, Name: b.Name, State: b.State, Reason: b.Reason, Template: b.Template, Parent: b.Parent, Owner: b.Owner, Created: b.Created,
		Own: here != "" && (here == b.ID || here == b.Name)}
	if !b.Expires.IsZero() {
		out.Expires = &b.Expires
	}
	return out
}

// words are a line on a sandbox.
func (b *box) words() string {
	var w strings.Builder
	w.WriteString(b.ID)
	if b.Name != "" {
		fmt.Fprintf(&w, " (%s)", b.Name)
	}
	w.WriteString(": " + b.State)
	if b.Reason != "" {
		fmt.Fprintf(&w, " (%s)", b.Reason)
	}
	if b.Template != "" {
		w.WriteString(", template " + b.Template)
	}
	if b.Parent != "" {
		w.WriteString(", fork of " + b.Parent)
	}
	if b.Own {
		w.WriteString(", this conversation's")
	}
	return w.String()
}

type createInput struct {
	Template string            `json:"template,omitempty" jsonschema:"what to make it of: a name of list_templates"`
	Snapshot string            `json:"snapshot,omitempty" jsonschema:"what to make it of: the id of a snapshot (see list_snapshots)"`
	Name     string            `json:"name,omitempty" jsonschema:"a name for it: a-z, 0-9 and dashes, at most 63"`
	Env      map[string]string `json:"env,omitempty" jsonschema:"variables of its commands' environment"`
	Network  []string          `json:"allow_network,omitempty" jsonschema:"what its commands may connect to, as HOST, HOST:PORT or *.DOMAIN: at most what the template allows (default what the template says)"`
	Use      bool              `json:"use,omitempty" jsonschema:"make it the one that tools without 'sandbox' work on from now on"`
}

type listBoxesInput struct {
	State  string `json:"state,omitempty" jsonschema:"only those in this state; any: those that have ended, too"`
	Parent string `json:"parent,omitempty" jsonschema:"only forks of this sandbox (its id)"`
	Limit  int    `json:"limit,omitempty" jsonschema:"how many at most (default 100)"`
	Cursor string `json:"cursor,omitempty" jsonschema:"next_cursor of the call before, to go on where that ended"`
}

type boxesOutput struct {
	Sandboxes []box  `json:"sandboxes"`
	Next      string `json:"next_cursor,omitempty" jsonschema:"there is more: give it as cursor"`
}

type useInput struct {
	Sandbox string `json:"sandbox" jsonschema:"id or name of the sandbox; 'own' goes back to the one that was made for this conversation"`
}

type pageInput struct {
	Limit  int    `json:"limit,omitempty" jsonschema:"how many at most (default 100)"`
	Cursor string `json:"cursor,omitempty" jsonschema:"next_cursor of the call before, to go on where that ended"`
}

type template struct {
	Name     string `json:"name"`
	State    string `json:"state" jsonschema:"ready: sandboxes can be made of it"`
	Language string `json:"language,omitempty"`
	Image    string `json:"image,omitempty"`
	Engine   string `json:"engine,omitempty"`
}

type templatesOutput struct {
	Templates []template `json:"templates"`
	Next      string     `json:"next_cursor,omitempty" jsonschema:"there is more: give it as cursor"`
}

func addSandboxes(s *mcp.Server, v *conversation) {
	add(s, v, describe("create_sandbox", "Create a sandbox", `
Create a further sandbox: a Unix machine of its own, apart from everything else. There is no need to for ordinary work: this conversation has one,
which is made when a tool first needs it. Without template and snapshot it is made as that one is. To try something on a copy of a sandbox as it is
now, use fork_sandbox instead.`, adds), createSandbox)
	add(s, v, describe("list_sandboxes", "List sandboxes", `
List the sandboxes that there are, newest first, with their ids, names, states and parents.`, looks), listSandboxes)
	add(s, v, describe("get_sandbox", "Describe a sandbox", `
Tell the state of a sandbox: this conversation's own without an id (which makes it, if there is none yet).`, looks), getSandbox)
	add(s, v, describe("use_sandbox", "Work on another sandbox", `
Make another sandbox the one that tools without 'sandbox' work on from now on, such as a fork that turned out well.`, adds, idempotent), useSandbox)
	add(s, v, describe("list_templates", "List templates", `
List the templates that sandboxes can be made of, for create_sandbox.`, looks), listTemplates)
}

func createSandbox(ctx context.Context, c *call, in createInput) (*done[*box], error) {
	if in.Template != "" && in.Snapshot != "" {
		return nil, bad("template", "it is made of a template or of a snapshot, not of both")
	}
	spec := api.CreateSandbox{Name: in.Name, Env: in.Env, Lease: c.lease()}
	if len(in.Network) > 0 {
		spec.Network = &api.NetworkPolicy{Allow: in.Network}
	}
	var sb *api.Sandbox
	var err error
	if in.Template == "" && in.Snapshot == "" {
		sb, err = c.make(ctx, spec)
	} else {
		spec.Template, spec.Snapshot = in.Template, in.Snapshot
		sb, err = c.c.CreateSandbox(ctx, spec)
	}
	if err != nil {
		return nil, err
	}
	if in.Use && !c.stateless {
		c.enter(sb.ID)
	}
	b := c.box(sb)
	return &done[*box]{text: "Created " + b.words() + ".", out: &b}, nil
}

func listSandboxes(ctx context.Context, c *call, in listBoxesInput) (*done[*boxesOutput], error) {
	if in.Limit < 0 || in.Limit > api.MaxPage {
		return nil, bad("limit", "want 1 to 1000")
	}
	list, err := c.c.Sandboxes(ctx, client.SandboxFilter{Page: client.Page{Limit: in.Limit, Cursor: in.Cursor}, State: in.State, Parent: in.Parent})
	if err != nil {
		return nil, err
	}
	out := &boxesOutput{Sandboxes: []box{}, Next: list.Next}
	var w strings.Builder
	for i := range list.Sandboxes {
		b := c.box(&list.Sandboxes[i])
		out.Sandboxes = append(out.Sandboxes, b)
		fmt.Fprintln(&w, b.words())
	}
	if len(out.Sandboxes) == 0 {
		w.WriteString("[none]")
	}
	more(&w, list.Next)
	return &done[*boxesOutput]{text: w.String(), out: out}, nil
}

// more says that a list goes on.
func more(w *strings.Builder, next string) {
	if next != "" {
		fmt.Fprintf(w, "[there is more: go on with cursor: %s]", next)
	}
}

func getSandbox(ctx context.Context, c *call, in which) (*done[*box], error) {
	id, err := c.in(ctx, in.Sandbox)
	if err != nil {
		return nil, err
	}
	sb, err := c.c.Sandbox(ctx, id)
	if err != nil {
		return nil, err
	}
	b := c.box(sb)
	return &done[*box]{text: b.words(), out: &b}, nil
}

func useSandbox(ctx context.Context, c *call, in useInput) (*done[*box], error) {
	if c.stateless {
		return nil, errNoSession
	}
	if in.Sandbox == "own" {
		c.mu.Lock()
		c.current = orElseText(c.o.Base.Sandbox, c.own)
		c.mu.Unlock()
		in.Sandbox = ""
	}
	id, err := c.in(ctx, in.Sandbox)
	if err != nil {
		return nil, err
	}
	sb, err := c.c.Sandbox(ctx, id)
	if err != nil {
		return nil, err
	}
	c.enter(sb.ID)
	b := c.box(sb)
	return &done[*box]{text: "From now on tools work on " + b.words() + ".", out: &b}, nil
}

func listTemplates(ctx context.Context, c *call, in pageInput) (*done[*templatesOutput], error) {
	if in.Limit < 0 || in.Limit > api.MaxPage {
		return nil, bad("limit", "want 1 to 1000")
	}
	list, err := c.c.Templates(ctx, client.Page{Limit: in.Limit, Cursor: in.Cursor})
	if err != nil {
		return nil, err
	}
	out := &templatesOutput{Templates: []template{}, Next: list.Next}
	var w strings.Builder
	for _, t := range list.Templates {
		x := template{t.Name, t.State, t.Spec.Language, t.Spec.Image, t.Spec.Engine}
		out.Templates = append(out.Templates, x)
		fmt.Fprintf(&w, "%s: %s", x.Name, x.State)
		for _, p := range []string{x.Engine, x.Image, x.Language} {
			if p != "" {
				w.WriteString(", " + p)
			}
		}
		w.WriteByte('\n')
	}
	if len(out.Templates) == 0 {
		fmt.Fprintf(&w, "[none; without one, sandboxes are made of '%s', a plain Unix]", DefaultTemplate)
	}
	more(&w, list.Next)
	return &done[*templatesOutput]{text: w.String(), out: out}, nil
}
