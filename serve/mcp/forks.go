package mcp

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// maxForksOfCall is how many copies a model makes at once: each may be as large as its parent.
const maxForksOfCall = 100

// defaultChanges is how many changes a call of diff_sandboxes returns unless told.
const defaultChanges = 500

type forkInput struct {
	Sandbox string            `json:"sandbox,omitempty" jsonschema:"id or name of the sandbox to copy; leave it out for this conversation's own"`
	Count   int               `json:"count,omitempty" jsonschema:"how many copies (default 1, at most 100)"`
	Name    string            `json:"name,omitempty" jsonschema:"a name for the copy: a-z, 0-9 and dashes; several are NAME-1, NAME-2 and so on"`
	Env     map[string]string `json:"env,omitempty" jsonschema:"variables over those of the original"`
}

type diffInput struct {
	From   string `json:"from,omitempty" jsonschema:"id or name of the sandbox as it was before; leave it out for this conversation's own"`
	To     string `json:"to,omitempty" jsonschema:"id or name of the sandbox as it is after; leave it out to see what changed in 'from' since it was made or forked"`
	Path   string `json:"path,omitempty" jsonschema:"only below this path"`
	Limit  int    `json:"limit,omitempty" jsonschema:"how many changes at most (default 500)"`
	Offset int    `json:"offset,omitempty" jsonschema:"how many changes to skip, to go on where the call before ended"`
}

type diffOutput struct {
	Changes  []change `json:"changes"`
	Added    int      `json:"added" jsonschema:"how many in all"`
	Modified int      `json:"modified" jsonschema:"how many in all"`
	Deleted  int      `json:"deleted" jsonschema:"how many in all"`
	Next     int      `json:"next_offset,omitempty" jsonschema:"there is more: give it as offset"`
}

type change struct {
	Path    string `json:"path"`
	Kind    string `json:"kind" jsonschema:"added, modified, deleted, or metadata: only mode, owner or times"`
	OldSize int64  `json:"old_size,omitempty"`
	NewSize int64  `json:"new_size,omitempty"`
}

type mergeInput struct {
	Source    string `json:"source" jsonschema:"id or name of the fork whose changes are brought over"`
	Into      string `json:"into,omitempty" jsonschema:"id or name of the sandbox that gets them (default the one that source was forked from)"`
	Conflicts string `json:"conflicts,omitempty" jsonschema:"what to do with files that both changed: fail (default: nothing is merged), ours (keep those of 'into') or theirs (take those of 'source')"`
	DryRun    bool   `json:"dry_run,omitempty" jsonschema:"only say what would happen"`
}

type mergeOutput struct {
	Merged    bool     `json:"merged" jsonschema:"false: nothing was changed"`
	Source    string   `json:"source"`
	Into      string   `json:"into"`
	Added     int      `json:"added"`
	Modified  int      `json:"modified"`
	Deleted   int      `json:"deleted"`
	Conflicts []string `json:"conflicts" jsonschema:"paths that both changed"`
}

func addForks(s *mcp.Server, v *conversation) {
	add(s, v, describe("fork_sandbox", "Fork a sandbox", `
Make copies of a sandbox as it is at this instant, with its files, running processes and interpreters. It takes milliseconds whatever the size, and
the original goes on undisturbed. Use it to try several ways at once, or something risky: give the copies' ids as 'sandbox' to the other tools,
compare with diff_sandboxes, bring what is good back with merge_sandbox, and terminate_sandbox the rest.`, adds), forkSandbox)
	add(s, v, describe("diff_sandboxes", "Compare sandboxes", `
List the files that differ between two sandboxes, or, with only one, what changed in it since it was made or forked.`, looks), diffSandboxes)
	add(s, v, describe("merge_sandbox", "Merge a fork", `
Bring the changes of a fork's files into the sandbox that it was forked from, or into another of the same family: a three-way merge by file. Files
that both sides changed are conflicts; then nothing is merged and the result lists them, unless 'conflicts' says whose to keep.`, changes), mergeSandbox)
}

func forkSandbox(ctx context.Context, c *call, in forkInput) (*done[*boxesOutput], error) {
	if in.Count < 0 || in.Count > maxForksOfCall {
		return nil, bad("count", fmt.Sprintf("want 1 to %d", maxForksOfCall))
	}
	id, err := c.in(ctx, in.Sandbox)
	if err != nil {
		return nil, err
	}
	f, err := c.c.ForkSandbox(ctx, id, api.ForkSandbox{Count: in.Count, Name: in.Name, Env: in.Env, Lease: c.lease(),
		Labels: api.Labels{LabelPurpose: "conversation"}})
	if err != nil {
		return nil, err
	}
	out := &boxesOutput{Sandboxes: []box{}}
	var w strings.Builder
	fmt.Fprintf(&w, "Forked %s into:\n", id)
	for i := range f.Sandboxes {
		b := c.box(&f.Sandboxes[i])
		out.Sandboxes = append(out.Sandboxes, b)
		fmt.Fprintln(&w, b.words())
	}
	return &done[*boxesOutput]{text: w.String(), out: out}, nil
}

func diffSandboxes(ctx context.Context, c *call, in diffInput) (*done[*diffOutput], error) {
	if in.Limit < 0 || in.Limit > 10_000 || in.Offset < 0 {
		return nil, bad("limit", "want 1 to 10000, and an offset that isn't negative")
	}
	id, err := c.in(ctx, in.From)
	if err != nil {
		return nil, err
	}
	limit := orElse(in.Limit, defaultChanges)
	out := &diffOutput{Changes: []change{}}
	var w strings.Builder
	seen := 0
	sum, err := c.c.SandboxDiff(ctx, id, in.To, in.Path, func(f *api.FileChange) error {
		if seen++; seen <= in.Offset {
			return nil
		}
		if len(out.Changes) == limit {
			out.Next = in.Offset + limit
			return nil
		}
		out.Changes = append(out.Changes, change{f.Path, f.Kind, f.OldSize, f.NewSize})
		switch f.Kind {
		case "added":
			fmt.Fprintf(&w, "added     %s (%d bytes)\n", f.Path, f.NewSize)
		case "modified":
			fmt.Fprintf(&w, "modified  %s (%d to %d bytes)\n", f.Path, f.OldSize, f.NewSize)
		default:
			fmt.Fprintf(&w, "%-9s %s\n", f.Kind, f.Path)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out.Added, out.Modified, out.Deleted = sum.Added, sum.Modified, sum.Deleted
	fmt.Fprintf(&w, "[%d added, %d modified, %d deleted]", sum.Added, sum.Modified, sum.Deleted)
	if out.Next > 0 {
		fmt.Fprintf(&w, "\n[%d of %d are shown; go on with offset: %d]", len(out.Changes), seen, out.Next)
	}
	return &done[*diffOutput]{text: w.String(), out: out}, nil
}

func mergeSandbox(ctx context.Context, c *call, in mergeInput) (*done[*mergeOutput], error) {
	switch in.Conflicts {
	case "", api.Fail, api.Ours, api.Theirs:
	default:
		return nil, bad("conflicts", "want fail, ours or theirs")
	}
	if in.Source == "" {
		return nil, bad("source", "which fork?")
	}
	c.id = in.Source
	res, err := c.c.MergeSandbox(ctx, in.Source, api.MergeSandbox{Into: in.Into, Conflicts: in.Conflicts, DryRun: in.DryRun})
	if err != nil && (res == nil || !errs.Is(err, errs.Conflict)) {
		return nil, err
	}
	blocked := len(res.Conflicts) > 0 && in.Conflicts != api.Ours && in.Conflicts != api.Theirs
	out := &mergeOutput{Merged: !blocked && !res.DryRun, Source: res.Source, Into: res.Target, Added: res.Added, Modified: res.Modified, Deleted: res.Deleted,
		Conflicts: append([]string{}, res.Conflicts...)}
	var w strings.Builder
	switch {
	case blocked && !in.DryRun:
		fmt.Fprintf(&w, "Nothing was merged: %d files were changed on both sides:\n", len(res.Conflicts)+res.MoreConflicts)
	case res.DryRun:
		fmt.Fprintf(&w, "Would merge %d added, %d modified and %d deleted files of %s into %s.\n", res.Added, res.Modified, res.Deleted, res.Source, res.Target)
	default:
		fmt.Fprintf(&w, "Merged %d added, %d modified and %d deleted files of %s into %s.\n", res.Added, res.Modified, res.Deleted, res.Source, res.Target)
	}
	if (!blocked || in.DryRun) && len(res.Conflicts) > 0 {
		fmt.Fprintf(&w, "%d files were changed on both sides:\n", len(res.Conflicts)+res.MoreConflicts)
	}
	for _, p := range res.Conflicts {
		fmt.Fprintln(&w, p)
	}
	if res.MoreConflicts > 0 {
		fmt.Fprintf(&w, "… and %d more\n", res.MoreConflicts)
	}
	if blocked {
		w.WriteString("Edit them in one of the sandboxes until they agree, or merge with conflicts: ours or theirs.")
	}
	return &done[*mergeOutput]{text: w.String(), out: out, failed: blocked && !in.DryRun}, nil
}
