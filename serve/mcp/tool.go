package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentrun.dev/client"
	"agentrun.dev/errs"
)

// MetaError is the key of a failed result's _meta: an object of kind and, where there are any, rule, hint and request, for clients that act by
// themselves. The text says the same to a model.
const MetaError = "agentrun.dev/error"

// call is one call of a tool.
type call struct {
	*conversation
	req *mcp.CallToolRequest
	id  string // of the sandbox that it works on, once that is known
}

// in settles which sandbox the call works on.
func (c *call) in(ctx context.Context, named string) (id string, err error) {
	if len(named) > 200 {
		return "", errs.Msg(errs.Invalid, "sandbox", "", "an id or a name has no more than 63 bytes")
	}
	c.id, err = c.sandbox(ctx, strings.TrimSpace(named))
	return c.id, err
}

// done is what a tool did: in words for a model, and as its output schema says. Content stands in place of the words where there is more.
type done[O any] struct {
	text    string
	content []mcp.Content
	out     O
	failed  bool // it did what it could and that wasn't what was wanted, such as a merge with conflicts
}

// none is the output of tools whose words are all.
type none = any

// Kinds of tools, for the hints that clients show before they let a model use one.
const (
	looks   = iota // changes nothing
	adds           // makes something new, and harms nothing
	changes        // may overwrite or delete
)

// describe makes a tool.
func describe(name, title, description string, kind int, hints ...func(*mcp.ToolAnnotations)) *mcp.Tool {
	no, destructive := false, kind == changes
	a := &mcp.ToolAnnotations{Title: title, ReadOnlyHint: kind == looks, OpenWorldHint: &no}
	if kind != looks {
		a.DestructiveHint = &destructive
	}
	for _, h := range hints {
		h(a)
	}
	return &mcp.Tool{Name: name, Title: title, Description: strings.TrimSpace(description), Annotations: a}
}

// idempotent says that doing it twice is the same as once; openWorld that it may reach beyond the sandbox, where its network lets it.
func idempotent(a *mcp.ToolAnnotations) { a.IdempotentHint = true }
func openWorld(a *mcp.ToolAnnotations)  { yes := true; a.OpenWorldHint = &yes }

// add adds a tool. An error of do is a result that says it.
func add[I, O any](s *mcp.Server, v *conversation, t *mcp.Tool, do func(ctx context.Context, c *call, in I) (*done[O], error)) {
	mcp.AddTool(s, t, func(ctx context.Context, req *mcp.CallToolRequest, in I) (*mcp.CallToolResult, O, error) {
		var zero O
		c := &call{conversation: v, req: req}
		v.calledBy(req.ClientInfo())
		d, err := do(ctx, c, in)
		if err != nil {
			return failure(v.gone(ctx, c.id, err)), zero, nil
		}
		res := &mcp.CallToolResult{Content: d.content, IsError: d.failed}
		if res.Content == nil && d.text != "" {
			res.Content = []mcp.Content{&mcp.TextContent{Text: d.text}}
		}
		return res, d.out, nil
	})
}

// failure is a result that says what went wrong, and what to do about it.
func failure(err error) *mcp.CallToolResult {
	kind := errs.KindOf(err)
	meta := map[string]any{"kind": kind.String()}
	var b strings.Builder
	var rule string
	var e *client.Error
	if errors.As(err, &e) {
		rule = e.Problem.Rule
		if e.Problem.Request != "" {
			meta["request"] = e.Problem.Request
		}
	}
	switch kind {
	case errs.Denied:
		fmt.Fprintf(&b, "Denied: %s", sentence(err))
		if rule != "" {
			meta["rule"] = rule
			fmt.Fprintf(&b, "\nThe rule that denied it: %s.", strings.TrimSuffix(rule, "."))
		}
		b.WriteString("\nThis is a permission and not a failure: trying again changes nothing. Do without it, or ask the user for another key.")
	case errs.Canceled:
		fmt.Fprintf(&b, "Cancelled: %s", sentence(err))
	default:
		fmt.Fprintf(&b, "Error: %s", sentence(err))
	}
	if hint := errs.HintOf(err); hint != "" {
		meta["hint"] = hint
		fmt.Fprintf(&b, "\nHint: %s.", strings.TrimSuffix(hint, "."))
	} else {
		b.WriteString(advice(kind))
	}
	return &mcp.CallToolResult{Meta: mcp.Meta{MetaError: meta}, IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: b.String()}}}
}

// sentence is an error's text with a full stop, unless it shows lines of a file.
func sentence(err error) string {
	if s := err.Error(); strings.Contains(s, "\n") {
		return s
	}
	return err.Error() + "."
}

// advice is what a model can do about a kind of failure.
func advice(k errs.Kind) string {
	switch k {
	case errs.Unavailable:
		return "\nHint: the server can't do it now; try again in a few seconds."
	case errs.Unauthorized:
		return "\nHint: the key of this connection isn't valid (any more); the user has to give another."
	case errs.Limit:
		return "\nHint: end or hibernate sandboxes that aren't needed (list_sandboxes shows them), then try again."
	}
	return ""
}

// text returns a result that is only words.
func text(format string, a ...any) *done[none] { return &done[none]{text: fmt.Sprintf(format, a...)} }

// bad is a request that can't succeed as it stands.
func bad(thing, why string) error { return errs.Msg(errs.Invalid, "use tool", thing, why) }

// addTools adds all tools. Clients show them in order of name.
func addTools(s *mcp.Server, v *conversation) {
	addCommands(s, v)
	addFiles(s, v)
	addEdit(s, v)
	addSearch(s, v)
	addSandboxes(s, v)
	addForks(s, v)
	addStates(s, v)
}

// which is the parameter that all tools for something inside of a sandbox have.
type which struct {
	Sandbox string `json:"sandbox,omitempty" jsonschema:"id or name of the sandbox; leave it out for this conversation's own"`
}
