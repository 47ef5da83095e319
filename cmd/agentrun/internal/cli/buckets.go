package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"agentrun.dev/api"
	"agentrun.dev/client"
	"agentrun.dev/errs"
)

func (a *app) buckets() *cobra.Command {
	g := a.group("buckets", "Create, list, describe and delete buckets",
		a.bucketsCreate(), a.bucketsList(), a.bucketsInfo(), a.bucketsDelete(), a.merge(), a.rebase())
	g.Aliases = []string{"bucket", "b"}
	return g
}

func (a *app) bucketsCreate() *cobra.Command {
	var in api.CreateBucket
	cmd := &cobra.Command{
		Use:   "create NAME [--fork-of BASE [--source-snapshot V]]",
		Short: "Create a bucket, or a fork of one",
		Long: `Create a bucket. With --fork-of it starts as another bucket is now, or as that was at a snapshot,
and shares all its data: it takes a moment and no space, however large the other is.`,
		Example: a.example(`
  agentrun buckets create datasets
  agentrun buckets create task-42 --fork-of datasets
  agentrun buckets create replay --fork-of datasets --source-snapshot monday`),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			in.Name = args[0]
			if in.At != "" && in.ForkOf == "" {
				return usage("--source-snapshot", "it goes with --fork-of")
			}
			return a.create(ctx, c, in)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&in.ForkOf, "fork-of", "", "`BUCKET` to fork")
	f.StringVar(&in.At, "source-snapshot", "", "`SNAPSHOT` of it: version, name or time (default: as it is now)")
	f.BoolVar(&in.Versioning, "versioning", false, "keep every version of each object")
	f.BoolVar(&in.Snapshots, "enable-snapshots", false, "accepted for Tigris' sake: every bucket can take snapshots")
	a.bucketFlag(cmd, "fork-of")
	return cmd
}

// create makes a bucket or fork and says so.
func (a *app) create(ctx context.Context, c *client.Client, in api.CreateBucket) error {
	b, err := c.CreateBucket(ctx, in)
	if errs.Is(err, errs.Exists) {
		return hinted(err, "'agentrun buckets info "+in.Name+"' describes what has the name")
	}
	if err != nil {
		return err
	}
	switch {
	case a.json:
		return a.out.json(b)
	case b.Parent != nil:
		a.out.printf("forked %s from %s: %s, %s, all shared\n", b.Name, b.Parent.Name, count(b.Objects, "object"), size(b.Bytes))
	default:
		a.out.printf("created %s\n", b.Name)
	}
	return nil
}

func (a *app) bucketsList() *cobra.Command {
	var forksOf string
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List buckets, or the forks of one",
		Example: a.example(`
  agentrun buckets list
  agentrun buckets list --forks-of datasets --json`),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.withServer(func(ctx context.Context, c *client.Client, _ []string) error {
			return a.list(ctx, c, forksOf, false)
		}),
	}
	cmd.Flags().StringVar(&forksOf, "forks-of", "", "only the forks of this `BUCKET`")
	a.bucketFlag(cmd, "forks-of")
	return cmd
}

// list prints buckets: all, the forks of one, or all that are forks.
func (a *app) list(ctx context.Context, c *client.Client, forksOf string, forks bool) error {
	var list []api.Bucket
	var err error
	if forksOf != "" {
		list, err = c.Forks(ctx, forksOf)
	} else {
		list, err = c.Buckets(ctx)
	}
	if err != nil {
		return err
	}
	if forks {
		list = slices.DeleteFunc(list, func(b api.Bucket) bool { return b.Parent == nil })
	}
	if a.json {
		return a.out.json(api.Buckets{Buckets: append([]api.Bucket{}, list...)})
	}
	t := newTable("NAME", ">OBJECTS", ">SIZE", "FORK OF", "CREATED")
	for _, b := range list {
		parent := "-"
		if b.Parent != nil {
			parent = b.Parent.Name
		}
		t.add(b.Name, count(b.Objects, ""), size(b.Bytes), parent, moment(b.Created))
	}
	a.out.table(t)
	return nil
}

// described is what info prints as JSON.
type described struct {
	api.Bucket
	Usage *api.Usage `json:"usage"`
}

func (a *app) bucketsInfo() *cobra.Command {
	return &cobra.Command{
		Use: "info NAME", Aliases: []string{"get"}, Short: "Describe a bucket and what it takes",
		Long: `Describe a bucket. 'unique' is what deleting it would give back, 'shared' is what other buckets and
snapshots hold as well.`,
		Example:           a.example(`  agentrun buckets info task-42`),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeBuckets(1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			b, err := c.Bucket(ctx, args[0])
			if err != nil {
				return err
			}
			u, err := c.Usage(ctx, args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.out.json(described{*b, u})
			}
			line := func(label, value string) { a.out.printf("%s %s\n", a.out.paint(dim, pad(label, 11)), value) }
			line("name", b.Name)
			line("id", b.ID)
			line("created", moment(b.Created))
			if p := b.Parent; p != nil {
				line("fork of", p.Name+" as it was at "+p.Snapshot.String()+" ("+moment(p.Forked)+")")
			}
			line("objects", count(b.Objects, ""))
			line("size", exactSize(b.Bytes))
			line("unique", exactSize(u.Unique))
			line("shared", exactSize(u.Shared))
			line("index", exactSize(u.Metadata))
			line("versioning", b.Versioning)
			line("version", b.Version.String())
			return nil
		}),
	}
}

func pad(s string, n int) string {
	for len(s) < n {
		s += " "
	}
	return s
}

// exactSize words a number of bytes both ways.
func exactSize(n uint64) string {
	if n < 1024 {
		return size(n)
	}
	return size(n) + " (" + count(n, "byte") + ")"
}

func (a *app) bucketsDelete() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use: "delete NAME...", Aliases: []string{"rm"}, Short: "Delete buckets",
		Long: `Delete buckets. One that holds objects is deleted only with --force. Forks of it live on: they keep
what they share. Access keys made for the bucket are void from now on, even if the name comes back.`,
		Example: a.example(`
  agentrun buckets delete scratch
  agentrun buckets delete task-42 --force`),
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completeBuckets(-1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			return a.delete(args, func(name string) error {
				err := c.DeleteBucket(ctx, name, force)
				if errs.Is(err, errs.NotEmpty) {
					return hinted(err, "'agentrun buckets delete "+name+" --force' deletes it with what it holds")
				}
				return err
			})
		}),
	}
	cmd.Flags().BoolVarP(&force, "force", "f", false, "even if it holds objects")
	yesFlag(cmd)
	return cmd
}

// usage says what the store takes, or what buckets take.
func (a *app) usage() *cobra.Command {
	return &cobra.Command{
		Use: "usage [BUCKET... | SANDBOX]", Short: "Show what buckets or a sandbox take, or the whole store",
		Long: `Show what buckets take: 'unique' is what deleting one would give back, 'shared' what others hold as
well, 'index' what its own list of keys takes. Without a bucket, the whole store: 'size' counts each
bucket as if it were alone, 'payload' and 'index' are what is on the disk. Of a sandbox: processors,
memory, storage and network that it used so far.`,
		Example: a.example(`
  agentrun usage
  agentrun usage agent-base task-42`),
		ValidArgsFunction: a.completeBuckets(-1),
		Args:              cobra.ArbitraryArgs,
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			if len(args) == 0 {
				u, err := c.StoreUsage(ctx)
				if err != nil {
					return err
				}
				if a.json {
					return a.out.json(u)
				}
				t := newTable(">BUCKETS", ">OBJECTS", ">SIZE", ">PAYLOAD", ">INDEX")
				t.add(count(u.Buckets, ""), count(u.Objects, ""), size(u.Bytes), size(u.Payload), size(u.Index))
				a.out.table(t)
				return nil
			}
			all := map[string]*api.Usage{}
			t := newTable("NAME", ">OBJECTS", ">SIZE", ">UNIQUE", ">SHARED", ">INDEX")
			for _, name := range args {
				u, err := c.Usage(ctx, name)
				if len(args) == 1 && a.isSandbox(ctx, c, name, err) {
					used, err := c.SandboxUsage(ctx, name)
					if err != nil || a.json {
						return errors.Join(err, a.out.json(used))
					}
					a.used(used)
					return nil
				}
				if err != nil {
					return err
				}
				all[name] = u
				t.add(name, count(u.Objects, ""), size(u.Bytes), size(u.Unique), size(u.Shared), size(u.Metadata))
			}
			if a.json {
				return a.out.json(all)
			}
			a.out.table(t)
			return nil
		}),
	}
}

// yesFlag takes a flag that Tigris' tools have: nothing here asks.
func yesFlag(cmd *cobra.Command) {
	cmd.Flags().BoolP("yes", "y", false, "")
	_ = cmd.Flags().MarkHidden("yes")
}

// delete deletes things one after the other, up to the first that fails.
func (a *app) delete(names []string, f func(name string) error) error {
	deleted := []string{}
	for _, name := range names {
		if err := f(name); err != nil {
			return err
		}
		deleted = append(deleted, name)
		if !a.json {
			a.out.printf("deleted %s\n", name)
		}
	}
	if a.json {
		return a.out.json(map[string][]string{"deleted": deleted})
	}
	return nil
}
