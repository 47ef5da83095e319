package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"agentrun.dev/api"
	"agentrun.dev/client"
	"agentrun.dev/errs"
)

// mergeLong is what merge and rebase say about conflicts.
const mergeLong = `

A conflict is a key that both sides changed since they parted. With --conflicts fail, the default,
nothing at all is changed then: the conflicts are listed, and the exit status is 3. 'ours' keeps the
side of the bucket that is written to, 'theirs' takes the other.`

func (a *app) merge() *cobra.Command {
	var in api.Merge
	cmd := &cobra.Command{
		Use:   "merge FORK [--into BUCKET] [--conflicts fail|ours|theirs] [--dry-run]",
		Short: "Merge a fork into the bucket it came from, or another",
		Long: `Merge what changed in a fork, since it was made or last merged, into its parent or any relative.
All of it arrives at once, or nothing. The fork stays as it is. A fork of a sandbox is merged by its files.` + mergeLong,
		Example: a.example(`
  agentrun merge task-42 --dry-run
  agentrun merge task-42
  agentrun merge task-42 --into staging --conflicts theirs`),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeBuckets(1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			err := a.join(ctx, "merge", args[0], in, c.Merge)
			if a.isSandbox(ctx, c, args[0], err) {
				return a.sandboxMerge(ctx, c, args[0], api.MergeSandbox{Into: in.Into, Conflicts: in.Conflicts, DryRun: in.DryRun})
			}
			return err
		}),
	}
	cmd.Flags().StringVar(&in.Into, "into", "", "`BUCKET` to merge into (default: the fork's parent)")
	a.bucketFlag(cmd, "into")
	joinFlags(cmd, &in)
	return cmd
}

func (a *app) rebase() *cobra.Command {
	var in api.Merge
	cmd := &cobra.Command{
		Use:   "rebase FORK [--conflicts fail|ours|theirs] [--dry-run]",
		Short: "Bring into a fork what its parent has gained since",
		Long:  `Bring into a fork what its parent has gained since they parted, beneath the fork's own changes.` + mergeLong,
		Example: a.example(`
  agentrun rebase task-42 --dry-run
  agentrun rebase task-42 --conflicts ours`),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeBuckets(1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			return a.join(ctx, "rebase", args[0], in, c.Rebase)
		}),
	}
	joinFlags(cmd, &in)
	return cmd
}

func joinFlags(cmd *cobra.Command, in *api.Merge) {
	cmd.Flags().StringVar(&in.Conflicts, "conflicts", api.Fail, "where both sides changed a key, `SIDE` wins: fail (none does), ours, theirs")
	cmd.Flags().BoolVar(&in.DryRun, "dry-run", false, "only say what would happen")
	yesFlag(cmd)
	_ = cmd.RegisterFlagCompletionFunc("conflicts", cobra.FixedCompletions([]string{api.Fail, api.Ours, api.Theirs}, cobra.ShellCompDirectiveNoFileComp))
}

// join merges or rebases, and prints what came of it.
func (a *app) join(ctx context.Context, verb, source string, in api.Merge,
	do func(context.Context, string, api.Merge, func(api.Progress)) (*api.MergeResult, error)) error {
	switch in.Conflicts {
	case api.Fail, api.Ours, api.Theirs:
	default:
		return usage("--conflicts "+in.Conflicts, "want fail, ours or theirs")
	}
	m := a.out.meter()
	res, err := do(ctx, source, in, m.update)
	m.done()
	if err != nil {
		if errs.Is(err, errs.Conflict) && res != nil && !a.json {
			a.conflicts(res)
			cmd := "agentrun " + verb + " " + source
			if in.Into != "" {
				cmd += " --into " + in.Into
			}
			return hinted(err, "'"+cmd+" --conflicts ours' keeps "+first(res.Target, "the target")+"'s side, '--conflicts theirs' takes the other")
		}
		return err
	}
	if a.json {
		return a.out.json(res)
	}
	text := map[string]string{"merge": "merged", "rebase": "rebased"}[verb]
	if in.DryRun {
		text = "would have " + text
	}
	link := map[string]string{"merge": " into ", "rebase": " on "}[verb]
	from, to := res.Source, res.Target
	if verb == "rebase" {
		from, to = source, first(other(source, res.Source, res.Target), "its parent")
	}
	a.out.printf("%s %s%s%s: %d added, %d modified, %d deleted", text, from, link, to, res.Added, res.Modified, res.Deleted)
	if res.Metadata > 0 {
		a.out.printf(", %d with other properties", res.Metadata)
	}
	if n := len(res.Conflicts) + res.MoreConflicts; n > 0 {
		a.out.printf("; %s settled for %s", count(uint64(n), "conflict"), in.Conflicts)
	}
	a.out.printf("\n")
	return nil
}

// other returns that of two names which isn't the first.
func other(name string, two ...string) string {
	for _, n := range two {
		if n != name {
			return n
		}
	}
	return ""
}

// conflicts lists the keys that both sides changed.
func (a *app) conflicts(res *api.MergeResult) {
	t := newTable("CONFLICT", ">BASE", ">OURS", ">THEIRS")
	side := func(o *api.Object) string {
		if o == nil {
			return "none"
		}
		return size(uint64(o.Size))
	}
	for _, c := range res.Conflicts {
		t.add(printable(c.Key), side(c.Base), side(c.Ours), side(c.Theirs))
	}
	out := *a.out
	redirected := *a
	redirected.Stdout = a.Stderr
	out.a = &redirected
	out.table(t)
	if res.MoreConflicts > 0 {
		fmt.Fprintf(a.Stderr, "and %s more\n", count(uint64(res.MoreConflicts), "conflict"))
	}
}
