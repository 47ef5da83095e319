package cli

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentrun.dev/api"
	"agentrun.dev/client"
	"agentrun.dev/errs"
)

func (a *app) forks() *cobra.Command {
	g := a.group("forks", "Create, list and delete forks", a.forksCreate(), a.forksList(), a.forksDelete())
	g.Aliases = []string{"fork", "f"}
	return g
}

func (a *app) forksCreate() *cobra.Command {
	var in api.CreateBucket
	cmd := &cobra.Command{
		Use:   "create BASE --name NAME [--snapshot V]",
		Short: "Fork a bucket",
		Long: `Fork a bucket: a new bucket that starts as BASE is now, or was at a snapshot or a recent moment, and
shares all its data. It takes a moment and no space, however large BASE is. What is written to
either is not seen by the other.`,
		Example: a.example(`
  agentrun forks create agent-base --name agent-task-42
  agentrun forks create agent-base --name replay --snapshot before-upgrade
  agentrun forks create agent-base --name replay --snapshot 2026-11-21T10:00:00Z`),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeBuckets(1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			if in.Name == "" {
				return usage("--name", "how is the fork to be called?").WithHint("agentrun forks create " + args[0] + " --name NAME")
			}
			in.ForkOf = args[0]
			// The newer grammar names the point with the bucket.
			if base, at, ok := strings.Cut(args[0], "@"); ok {
				if in.At != "" {
					return usage("--snapshot", args[0]+" names one already")
				}
				in.ForkOf, in.At = base, at
			}
			return a.create(ctx, c, in)
		}),
	}
	f := cmd.Flags()
	f.StringVarP(&in.Name, "name", "n", "", "the fork's `NAME` (needed)")
	f.StringVar(&in.At, "snapshot", "", "`SNAPSHOT` to start from: version, name or time (default: as BASE is now)")
	return cmd
}

func (a *app) forksList() *cobra.Command {
	return &cobra.Command{
		Use: "list [BASE]", Aliases: []string{"ls"}, Short: "List the forks of a bucket, or all forks",
		Example:           a.example(`  agentrun forks list agent-base`),
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeBuckets(1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			base := ""
			if len(args) > 0 {
				base = args[0]
			}
			return a.list(ctx, c, base, true)
		}),
	}
}

func (a *app) forksDelete() *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete NAME...", Aliases: []string{"rm"}, Short: "Delete forks with all that they hold",
		Long: `Delete forks with all that they hold; only what they changed themselves is lost. A bucket that isn't
a fork is refused: that is for 'buckets delete'.`,
		Example:           a.example(`  agentrun forks delete eval-run-20240315`),
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completeBuckets(-1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			return a.delete(args, func(name string) error {
				b, err := c.Bucket(ctx, name)
				if err != nil {
					return err
				}
				if b.Parent == nil {
					return errs.Msg(errs.Conflict, "delete fork", name, "this bucket isn't a fork").
						WithHint("'agentrun buckets delete " + name + "' deletes buckets")
				}
				return c.DeleteBucket(ctx, name, true)
			})
		}),
	}
	cmd.Flags().BoolP("force", "f", false, "accepted, and not needed: forks are there to be thrown away")
	yesFlag(cmd)
	return cmd
}

func (a *app) snapshots() *cobra.Command {
	g := a.group("snapshots", "Take, list and delete snapshots", a.snapshotsTake(), a.snapshotsList(), a.snapshotsDelete())
	g.Aliases = []string{"snapshot", "s"}
	return g
}

func (a *app) snapshotsTake() *cobra.Command {
	var expires string
	cmd := &cobra.Command{
		Use: "take BUCKET [NAME] [--expires 24h]", Aliases: []string{"create"}, Short: "Freeze a bucket as it is",
		Long: `Take a snapshot: a frozen view of the bucket, in a moment and without space of its own. It can be
forked, compared and read, whatever is written or deleted later.`,
		Example: a.example(`
  agentrun snapshots take agent-base
  agentrun snapshots take agent-base before-upgrade --expires 7d`),
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: a.completeBuckets(1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			lifetime, err := parseLifetime("--expires", expires)
			if err != nil {
				return err
			}
			in := api.TakeSnapshot{Lifetime: lifetime}
			if len(args) > 1 {
				in.Name = args[1]
			}
			s, err := c.TakeSnapshot(ctx, args[0], in)
			if err != nil {
				return err
			}
			if a.json {
				return a.out.json(s)
			}
			name := s.Version.String()
			if s.Name != "" {
				name += " (" + printable(s.Name) + ")"
			}
			a.out.printf("took snapshot %s of %s: %s, %s\n", name, s.Bucket, count(s.Objects, "object"), size(s.Bytes))
			return nil
		}),
	}
	cmd.Flags().StringVar(&expires, "expires", "", "delete it after `TIME`: 90m, 24h, 7d (default: never)")
	return cmd
}

// parseLifetime reads a duration, in which days may be given as 7d, and returns whole seconds. "" is 0.
func parseLifetime(flag, s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); err != nil && ok {
		var n float64
		if n, err = strconv.ParseFloat(days, 64); err == nil && n < 36525 && n > 0 {
			d = time.Duration(n * 24 * float64(time.Hour))
		}
	}
	if err != nil || d < time.Second {
		return 0, usage(flag+" "+s, "want a duration of at least a second, such as 90m, 24h or 7d")
	}
	return int64(d / time.Second), nil
}

func (a *app) snapshotsList() *cobra.Command {
	return &cobra.Command{
		Use: "list BUCKET", Aliases: []string{"ls"}, Short: "List a bucket's snapshots, oldest first",
		Example:           a.example(`  agentrun snapshots list agent-base`),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeBuckets(1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			list, err := c.Snapshots(ctx, args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.out.json(api.Snapshots{Snapshots: list})
			}
			t := newTable("VERSION", "NAME", ">OBJECTS", ">SIZE", "TAKEN", "EXPIRES")
			for _, s := range list {
				t.add(s.Version.String(), first(printable(s.Name), "-"), count(s.Objects, ""), size(s.Bytes), moment(s.Created), moment(s.Expires))
			}
			a.out.table(t)
			return nil
		}),
	}
}

func (a *app) snapshotsDelete() *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete BUCKET SNAPSHOT...", Aliases: []string{"rm"}, Short: "Delete snapshots, named by version or name",
		Example:           a.example(`  agentrun snapshots delete agent-base before-upgrade`),
		Args:              cobra.MinimumNArgs(2),
		ValidArgsFunction: a.completeBuckets(1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			return a.delete(args[1:], func(name string) error { return c.DeleteSnapshot(ctx, args[0], name) })
		}),
	}
	yesFlag(cmd)
	return cmd
}
