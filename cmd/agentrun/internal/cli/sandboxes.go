package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentrun.dev/api"
	"agentrun.dev/client"
	"agentrun.dev/errs"
)

func (a *app) sandboxes() *cobra.Command {
	g := a.group("sandboxes", "Create, fork, compare, merge and end sandboxes", a.sandboxesCreate(), a.sandboxesList(), a.sandboxesInfo(),
		a.sandboxesFork(), a.sandboxesTree(), a.sandboxesDiff(), a.sandboxesMerge(), a.sandboxesPromote(), a.sandboxesSnapshot(),
		a.sandboxesHibernate(),
		a.sandboxesAct("resume", "Wake a sandbox up", (*client.Client).ResumeSandbox),
		a.sandboxesExtend(), a.sandboxesNetwork(), a.sandboxesMetrics(), a.sandboxesCredentials(), a.sandboxesEnd())
	g.Aliases = []string{"sandbox", "sb"}
	return g
}

// sandboxFlags are what a new sandbox is given.
type sandboxFlags struct {
	in         api.CreateSandbox
	env        []string
	secrets    []string
	labels     []string
	lease      time.Duration
	onExpiry   string
	mode, wake string // of the lease
	mounts     []string
	visibility string
}

func (f *sandboxFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVarP(&f.in.Name, "name", "n", "", "what it is called: `NAME`")
	fs.StringArrayVarP(&f.env, "env", "e", nil, "a variable of all its commands, `NAME=VALUE` (repeatable)")
	fs.StringArrayVar(&f.secrets, "secret", nil, "a secret's value as a variable, `SECRET/KEY[=VARIABLE]` (repeatable)")
	fs.StringArrayVarP(&f.labels, "label", "l", nil, "a label, `NAME=VALUE` (repeatable)")
	fs.DurationVar(&f.lease, "lease", 0, "how long it lives unless it is used, `TIME` (default the template's)")
	fs.StringVar(&f.onExpiry, "on-expiry", "", "`hibernate` or end, when the lease has run out (default the template's)")
	fs.StringArrayVar(&f.mounts, "mount", nil, "mount a volume, `VOLUME:PATH[:ro]` (repeatable)")
	fs.StringVar(&f.mode, "lease-mode", "", "`sliding`, where every use moves the end of the lease, or fixed (default the template's)")
	fs.StringVar(&f.wake, "wake", "", "what wakes it up when it hibernates: any `use`, or resume alone (default the template's)")
	fs.StringVar(&f.in.Visibility, "visibility", "", "who sees it beside its owner: `private`, team or all")
	fs.StringVar(&f.in.Owner, "owner", "", "`PRINCIPAL` that it is for (default yourself)")
}

// request returns what was asked for.
func (f *sandboxFlags) request() (in api.CreateSandbox, err error) {
	in = f.in
	if in.Env, err = pairs("-e", f.env); err != nil {
		return in, err
	}
	labels, err := pairs("--label", f.labels)
	if err != nil {
		return in, err
	}
	in.Labels = labels
	for _, s := range f.secrets {
		at, variable, _ := strings.Cut(s, "=")
		name, key, ok := strings.Cut(at, "/")
		if !ok || name == "" || key == "" {
			return in, usage("--secret "+s, "want SECRET/KEY or SECRET/KEY=VARIABLE")
		}
		in.Secrets = append(in.Secrets, api.SecretUse{Ref: api.SecretRef{Name: name, Key: key}, Env: variable})
	}
	for _, text := range f.mounts {
		m, err := readMount(text)
		if err != nil {
			return in, err
		}
		in.Volumes = append(in.Volumes, m)
	}
	if f.lease < 0 || f.lease > 0 && f.lease < time.Second {
		return in, usage("--lease "+f.lease.String(), "want a second or more")
	}
	if l := (api.Lease{Duration: int64(f.lease / time.Second), OnExpiry: f.onExpiry, Mode: f.mode, Wake: f.wake}); l != (api.Lease{}) {
		in.Lease = &l
	}
	return in, nil
}

// pairs reads NAME=VALUE.
func pairs(flag string, list []string) (map[string]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	out := make(map[string]string, len(list))
	for _, s := range list {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return nil, usage(flag+" "+s, "want NAME=VALUE")
		}
		out[name] = value
	}
	return out, nil
}

func (a *app) sandboxesCreate() *cobra.Command {
	var f sandboxFlags
	cmd := &cobra.Command{
		Use:   "create (--template NAME | --pool NAME | --snapshot ID) [--name NAME]",
		Short: "Make a sandbox, or claim one from a pool",
		Example: a.example(`
  agentrun sandboxes create --template python-agent --name alice
  agentrun sandboxes create --pool python-agent-pool -e SESSION_ID=abc-123`),
		Args: cobra.NoArgs,
		RunE: a.withServer(func(ctx context.Context, c *client.Client, _ []string) error {
			in, err := f.request()
			if err != nil {
				return err
			}
			if in.Template == "" && in.Pool == "" && in.Snapshot == "" {
				return usage("create", "of what?").WithHint("give --template, --pool or --snapshot; 'agentrun templates list' shows what there is")
			}
			s, err := c.CreateSandbox(ctx, in)
			if err != nil {
				return err
			}
			return a.made(s)
		}),
	}
	fs := cmd.Flags()
	fs.StringVar(&f.in.Template, "template", "", "`NAME` of the template")
	fs.StringVar(&f.in.Pool, "pool", "", "`NAME` of the pool")
	fs.StringVar(&f.in.Snapshot, "snapshot", "", "`ID` of a snapshot of a sandbox")
	f.add(cmd)
	return cmd
}

// made prints a new sandbox: its id alone, which scripts take.
func (a *app) made(s *api.Sandbox) error {
	if a.json {
		return a.out.json(s)
	}
	a.out.printf("%s\n", s.ID)
	return nil
}

func (a *app) claim() *cobra.Command {
	var f sandboxFlags
	cmd := &cobra.Command{
		Use:   "claim POOL [--name NAME]",
		Short: "Claim a warm sandbox from a pool, and print its id",
		Example: a.example(`
  agentrun claim python-agent-pool
  agentrun claim python-agent-pool --name alice -e SESSION_ID=abc-123 --secret agent-secrets/OPENAI_API_KEY`),
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
			return a.objectNames(cmd.Context(), "pool", prefix), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			in, err := f.request()
			if err != nil {
				return err
			}
			in.Pool = args[0]
			s, err := c.CreateSandbox(ctx, in)
			if err != nil {
				return err
			}
			return a.made(s)
		}),
	}
	f.add(cmd)
	return cmd
}

func (a *app) sandboxesList() *cobra.Command {
	var f client.SandboxFilter
	var labels []string
	var every bool
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List sandboxes, newest first",
		Example: a.example(`
  agentrun sandboxes list
  agentrun sandboxes list --state hibernated --owner alice
  agentrun sandboxes list --all`),
		Args: cobra.NoArgs,
		RunE: a.withServer(func(ctx context.Context, c *client.Client, _ []string) error {
			var err error
			if f.Labels, err = pairs("--label", labels); err != nil {
				return err
			}
			if every {
				f.State = "any"
			}
			t, items := newTable(sandboxKind().heads...), []api.Sandbox{}
			if err := eachSandbox(ctx, c, f, func(s *api.Sandbox) { items = append(items, *s); t.add(sandboxRow(s)...) }); err != nil {
				return err
			}
			if a.json {
				return a.out.json(api.Sandboxes{Sandboxes: items})
			}
			a.out.table(t)
			return nil
		}),
	}
	fs := cmd.Flags()
	fs.BoolVarP(&every, "all", "a", false, "warm and ended ones, too")
	fs.StringVar(&f.State, "state", "", "those in a `STATE`: running, hibernated, ended, failed, warm …")
	fs.StringVar(&f.Owner, "owner", "", "those of a `PRINCIPAL`")
	fs.StringVar(&f.Template, "template", "", "those of a template: `NAME`")
	fs.StringVar(&f.Pool, "pool", "", "those of a pool: `NAME`")
	fs.StringVar(&f.Root, "root", "", "those of the tree that begins with the sandbox of this `ID`")
	fs.StringArrayVarP(&labels, "label", "l", nil, "those with a label, `NAME=VALUE` (repeatable)")
	return cmd
}

// completeSandboxes offers sandboxes' names for the first n arguments.
func (a *app) completeSandboxes(n int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if n >= 0 && len(args) >= n {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.objectNames(cmd.Context(), "sandbox", prefix), cobra.ShellCompDirectiveNoFileComp
	}
}

func (a *app) sandboxesInfo() *cobra.Command {
	return &cobra.Command{
		Use: "info ID", Aliases: []string{"show", "get"}, Short: "Describe a sandbox, by its id or name",
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeSandboxes(1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			s, err := c.Sandbox(ctx, args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.out.json(s)
			}
			line := func(name, value string) {
				if value != "" {
					a.out.printf("%-11s %s\n", name, value)
				}
			}
			line("id", s.ID)
			line("name", printable(s.Name))
			line("state", s.State+strings.TrimSuffix(" ("+printable(s.Reason)+")", " ()"))
			line("template", s.Template+fmt.Sprintf(" version %d, %s", s.Version, s.Engine))
			line("pool", s.Pool)
			line("parent", s.Parent)
			line("owner", s.Owner)
			line("visibility", s.Visibility)
			line("node", s.Node)
			line("endpoint", s.Endpoint)
			line("created", moment(s.Created))
			if !s.Expires.IsZero() {
				line("expires", moment(s.Expires)+", then "+first(s.Lease.OnExpiry, api.Hibernate))
			}
			if !s.Ended.IsZero() {
				line("ended", moment(s.Ended))
			}
			for _, v := range s.Volumes {
				mode := ""
				if v.ReadOnly {
					mode = ", read-only"
				}
				holds := "memory"
				if v.Bucket != "" {
					holds = "bucket " + v.Bucket
				}
				line("volume", v.Path+" "+holds+mode+", "+v.ForkPolicy)
			}
			for k, v := range s.Labels {
				line("label", printable(k+"="+v))
			}
			return nil
		}),
	}
}

func (a *app) sandboxesFork() *cobra.Command {
	var in api.ForkSandbox
	var env []string
	cmd := &cobra.Command{
		Use:   "fork ID [-n COUNT] [--name NAME]",
		Short: "Copy a running sandbox: memory, processes and files of one instant",
		Long: `Copy a running sandbox. The copies start as it is at one instant, with its files, its running processes
and their memory, and go on by themselves, each under its own id. It prints their ids. One that
hibernates wakes up for it.`,
		Example: a.example(`
  agentrun sandboxes fork alice -n 3
  agentrun sandboxes fork alice --name plan -n 2     # plan-1 and plan-2`),
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeSandboxes(1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			var err error
			if in.Env, err = pairs("-e", env); err != nil {
				return err
			}
			if in.Count < 1 || in.Count > api.MaxForks {
				return usage(fmt.Sprintf("-n %d", in.Count), fmt.Sprintf("want 1 to %d", api.MaxForks))
			}
			f, err := c.ForkSandbox(ctx, args[0], in)
			if err != nil {
				return err
			}
			if a.json {
				return a.out.json(f)
			}
			for _, s := range f.Sandboxes {
				a.out.printf("%s\n", s.ID)
			}
			return nil
		}),
	}
	fs := cmd.Flags()
	fs.IntVarP(&in.Count, "count", "n", 1, "how many: `COUNT`")
	fs.StringVar(&in.Name, "name", "", "`NAME` of the copy; of several NAME-1, NAME-2 …")
	fs.StringArrayVarP(&env, "env", "e", nil, "a variable of all their commands, `NAME=VALUE` (repeatable)")
	fs.BoolVar(&in.Kill, "kill", false, "leave processes out that can't be copied, instead of failing")
	return cmd
}

func (a *app) sandboxesTree() *cobra.Command {
	var root bool
	cmd := &cobra.Command{
		Use: "tree ID", Short: "Show a sandbox with all that were forked from it, and what each of them costs",
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeSandboxes(1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			t, err := c.SandboxTree(ctx, args[0], root)
			if err != nil {
				return err
			}
			if a.json {
				return a.out.json(t)
			}
			rows := newTable("SANDBOX", "STATUS", ">CPU", ">MEMORY", ">STORAGE", ">TREE")
			addTree(rows, t, "", "")
			a.out.table(rows)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&root, "root", false, "from the first of its tree")
	return cmd
}

// addTree adds a row for each sandbox, drawn as a tree.
func addTree(rows *table, t *api.Tree, lead, below string) {
	cells := []string{lead + first(t.Sandbox.Name, t.Sandbox.ID), t.Sandbox.State, "", "", "", ""}
	if u := t.Usage; u != nil {
		cells[2], cells[3], cells[4] = fmt.Sprintf("%.2fs", u.CPUSeconds), size(uint64(max(0, u.Memory))), size(uint64(max(0, u.Storage)))
	}
	if u := t.Total; u != nil {
		cells[5] = fmt.Sprintf("%.2fs", u.CPUSeconds)
	}
	rows.add(cells...)
	for i := range t.Children {
		if i == len(t.Children)-1 {
			addTree(rows, &t.Children[i], below+"└─ ", below+"   ")
		} else {
			addTree(rows, &t.Children[i], below+"├─ ", below+"│  ")
		}
	}
}

func (a *app) sandboxesDiff() *cobra.Command {
	var prefix string
	cmd := &cobra.Command{
		Use:   "diff ID [OTHER]",
		Short: "List what differs between the files of two sandboxes",
		Long: `List the files that OTHER has added (A), modified (M) or deleted (D) compared with ID. Without OTHER, it is
what ID changed since it was forked or claimed.`,
		Example: a.example(`
  agentrun sandboxes diff plan-1 plan-2
  agentrun sandboxes diff plan-1 --path /workspace/src`),
		Args: cobra.RangeArgs(1, 2), ValidArgsFunction: a.completeSandboxes(2),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			to := ""
			if len(args) > 1 {
				to = args[1]
			}
			return a.sandboxDiff(ctx, c, args[0], to, prefix)
		}),
	}
	cmd.Flags().StringVar(&prefix, "path", "", "only this `PATH` and what lies beneath")
	return cmd
}

// sandboxDiff prints what differs between the files of two sandboxes.
func (a *app) sandboxDiff(ctx context.Context, c *client.Client, from, to, prefix string) error {
	changes := []api.FileChange{}
	marks := map[string][2]string{"added": {"A", green}, "modified": {"M", yellow}, "deleted": {"D", red}, "metadata": {"m", cyan}}
	res, err := c.SandboxDiff(ctx, from, to, prefix, func(f *api.FileChange) error {
		if a.json {
			changes = append(changes, *f)
			return nil
		}
		mark := marks[f.Kind]
		a.out.printf("%s %s\n", a.out.paint(mark[1], first(mark[0], "?")), printable(f.Path))
		return nil
	})
	if err != nil {
		return err
	}
	if a.json {
		return a.out.json(struct {
			*api.FileDiff
			Changes []api.FileChange `json:"changes"`
		}{res, changes})
	}
	return nil
}

func (a *app) sandboxesMerge() *cobra.Command {
	var in api.MergeSandbox
	cmd := &cobra.Command{
		Use:   "merge ID [--into OTHER]",
		Short: "Merge what a sandbox changed in its files into its parent, or another",
		Long: `Merge the files of a sandbox into those of its parent, or of another that was forked from the same. What
both changed is a conflict: then nothing happens and the status is 3, unless --conflicts says whose is
taken.`,
		Example: a.example(`
  agentrun sandboxes merge plan-2
  agentrun sandboxes merge plan-2 --into alice --conflicts theirs`),
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeSandboxes(1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			return a.sandboxMerge(ctx, c, args[0], in)
		}),
	}
	fs := cmd.Flags()
	fs.StringVar(&in.Into, "into", "", "`ID` of the sandbox that is changed (default the parent)")
	fs.StringVar(&in.Conflicts, "conflicts", "", "`fail`, ours (the target's) or theirs")
	fs.BoolVar(&in.DryRun, "dry-run", false, "only say what would happen")
	return cmd
}

// sandboxMerge merges the files of a sandbox and prints what came of it.
func (a *app) sandboxMerge(ctx context.Context, c *client.Client, id string, in api.MergeSandbox) error {
	m, err := c.MergeSandbox(ctx, id, in)
	if err != nil {
		return err
	}
	if a.json {
		if err := a.out.json(m); err != nil {
			return err
		}
	} else {
		verb := "merged"
		if m.DryRun {
			verb = "would merge"
		}
		a.out.printf("%s %s into %s: %d added, %d modified, %d deleted\n", verb, m.Source, m.Target, m.Added, m.Modified, m.Deleted)
		for _, p := range m.Conflicts {
			a.out.printf("conflict: %s\n", printable(p))
		}
		if m.MoreConflicts > 0 {
			a.out.printf("and %d more conflicts\n", m.MoreConflicts)
		}
	}
	if len(m.Conflicts) > 0 && (in.Conflicts == "" || in.Conflicts == api.Fail) {
		a.status = exitConflict
	}
	return nil
}

// isSandbox reports whether what isn't a bucket is a sandbox: names of both kinds work in diff, merge and usage.
func (a *app) isSandbox(ctx context.Context, c *client.Client, name string, err error) bool {
	if !errs.Is(err, errs.NotFound) && !errs.Is(err, errs.Invalid) {
		return false
	}
	_, err = c.Sandbox(ctx, name)
	return err == nil
}

func (a *app) sandboxesPromote() *cobra.Command {
	return &cobra.Command{
		Use: "promote ID", Short: "Put a fork in its parent's place: its name, claim and conversations; the parent ends",
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeSandboxes(1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			s, err := c.PromoteSandbox(ctx, args[0])
			if err != nil {
				return err
			}
			return a.made(s)
		}),
	}
}

func (a *app) sandboxesSnapshot() *cobra.Command {
	var in api.TakeSandboxSnapshot
	cmd := &cobra.Command{
		Use: "snapshot ID [--name NAME] [--memory [--kill]]", Short: "Keep a sandbox as it is, its files or all of it; new sandboxes can be made of that",
		Long: `Keep the files of a sandbox's durable volumes as they are at one instant; with --memory its memory and processes, too.
A sandbox that is made of it (sandboxes create --snapshot ID) goes on from there. The sandbox itself goes on as well.`,
		Example: `agentrun sandboxes snapshot worker --name before-upgrade
agentrun sandboxes snapshot worker --memory`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeSandboxes(1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			s, err := c.SnapshotSandbox(ctx, args[0], in)
			if err != nil {
				return err
			}
			if a.json {
				return a.out.json(s)
			}
			a.out.printf("%s\n", s.ID)
			return nil
		}),
	}
	cmd.Flags().StringVar(&in.Name, "name", "", "what it is called: `NAME`")
	cmd.Flags().BoolVar(&in.Memory, "memory", false, "with its memory and processes")
	cmd.Flags().BoolVar(&in.Kill, "kill", false, "leave out processes that can't be copied, instead of failing")
	return cmd
}

// sandboxesAct is a command that does one thing to sandboxes.
func (a *app) sandboxesAct(verb, short string, f func(*client.Client, context.Context, string) (*api.Sandbox, error)) *cobra.Command {
	return &cobra.Command{
		Use: verb + " ID...", Short: short, Args: cobra.MinimumNArgs(1), ValidArgsFunction: a.completeSandboxes(-1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			out := []*api.Sandbox{}
			for _, id := range args {
				s, err := f(c, ctx, id)
				if err != nil {
					return err
				}
				if out = append(out, s); !a.json {
					a.out.printf("%s %s\n", s.State, first(s.Name, s.ID))
				}
			}
			if a.json {
				return a.out.json(out)
			}
			return nil
		}),
	}
}

func (a *app) sandboxesHibernate() *cobra.Command {
	var in api.HibernateSandbox
	cmd := a.sandboxesAct("hibernate", "Save a sandbox to disk and free its memory; the next use wakes it up", func(c *client.Client, ctx context.Context, id string) (*api.Sandbox, error) {
		return c.PauseSandbox(ctx, id, in)
	})
	cmd.Flags().BoolVar(&in.Force, "force", false, "also while somebody uses it: what runs goes to sleep with it, as far as it can")
	return cmd
}

func (a *app) sandboxesNetwork() *cobra.Command {
	var p api.NetworkPolicy
	cmd := &cobra.Command{
		Use: "network ID [--egress allow] [--allow RULE]... [--deny RULE]...", Short: "Replace what a sandbox may connect to, at once",
		Long: `Replace what a sandbox may connect to: at most what its template, and the fork that made it, allow. Without a flag, nothing.
Connections that the new rules don't allow are closed. A rule is HOST[:PORT], *.HOST[:PORT] or CIDR[:PORT].`,
		Example: a.example(`
  agentrun sandboxes network worker --allow api.openai.com:443 --allow api.anthropic.com:443
  agentrun sandboxes network worker --egress allow --deny '*.ads.example'`),
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeSandboxes(1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			s, err := c.ChangeSandbox(ctx, args[0], api.ChangeSandbox{Network: &p})
			if err != nil {
				return err
			}
			return a.made(s)
		}),
	}
	cmd.Flags().StringVar(&p.Egress, "egress", "", "what no rule names: `deny` or allow")
	cmd.Flags().StringArrayVar(&p.Allow, "allow", nil, "a `RULE` of what it may connect to (repeatable)")
	cmd.Flags().StringArrayVar(&p.Deny, "deny", nil, "with --egress allow, a `RULE` of what it may not, unless --allow names it (repeatable)")
	return cmd
}

func (a *app) sandboxesMetrics() *cobra.Command {
	return &cobra.Command{
		Use: "metrics ID", Short: "Show what a sandbox used over time", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeSandboxes(1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			m, err := c.SandboxMetrics(ctx, args[0], time.Time{}, time.Time{})
			if err != nil {
				return err
			}
			if a.json {
				return a.out.json(m)
			}
			t := newTable("TIME", ">CPU", ">MEMORY", ">DISK", ">PROCESSES", ">IN", ">OUT")
			for _, s := range m.Samples {
				t.add(moment(s.Time), fmt.Sprintf("%.1f%%", s.CPU), size(uint64(s.Memory)), size(uint64(s.Disk)), fmt.Sprint(s.Processes), size(uint64(s.NetworkIn)), size(uint64(s.NetworkOut)))
			}
			a.out.table(t)
			return nil
		}),
	}
}

func (a *app) sandboxesExtend() *cobra.Command {
	var by time.Duration
	var exact bool
	cmd := &cobra.Command{
		Use: "extend ID [--by TIME [--exact]]", Short: "Move the end of a sandbox's lease", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeSandboxes(1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			s, err := c.ExtendSandbox(ctx, args[0], api.Extend{Seconds: int64(by / time.Second), Exact: exact})
			if err != nil {
				return err
			}
			if a.json {
				return a.out.json(s)
			}
			a.out.printf("expires %s\n", moment(s.Expires))
			return nil
		}),
	}
	cmd.Flags().BoolVar(&exact, "exact", false, "also if that is earlier")
	cmd.Flags().DurationVar(&by, "by", 0, "from now on, `TIME` (default what a use extends it by)")
	return cmd
}

func (a *app) sandboxesCredentials() *cobra.Command {
	return &cobra.Command{
		Use: "credentials ID", Short: "Make S3 keys for the buckets of one sandbox, as shell variables",
		Example: a.example(`  eval "$(agentrun sandboxes credentials alice)"`),
		Args:    cobra.ExactArgs(1), ValidArgsFunction: a.completeSandboxes(1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			k, err := c.SandboxCredentials(ctx, args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.out.json(k)
			}
			a.out.printf("export AWS_ENDPOINT_URL=%s\nexport AWS_REGION=%s\nexport AWS_ACCESS_KEY_ID=%s\nexport AWS_SECRET_ACCESS_KEY=%s\n",
				k.Endpoint, k.Region, k.AccessKeyID, k.SecretAccessKey)
			for path, b := range k.Buckets {
				a.out.printf("# s3://%s is %s\n", b, printable(path))
			}
			return nil
		}),
	}
}

func (a *app) sandboxesEnd() *cobra.Command {
	cmd := &cobra.Command{
		Use: "end ID...", Aliases: []string{"delete", "rm", "terminate"}, Short: "End sandboxes, and delete what they hold",
		Args: cobra.MinimumNArgs(1), ValidArgsFunction: a.completeSandboxes(-1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			return a.delete(args, func(id string) error { return c.EndSandbox(ctx, id) })
		}),
	}
	yesFlag(cmd)
	return cmd
}
