package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentrun.dev/api"
	"agentrun.dev/client"
	"agentrun.dev/errs"
)

// objectGroup is the commands to look at and delete objects of a kind.
func (a *app) objectGroup(k *objectKind, use, short string, more ...*cobra.Command) *cobra.Command {
	complete := func(n int) cobra.CompletionFunc {
		return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if n >= 0 && len(args) >= n {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return a.objectNames(cmd.Context(), k.names[0], prefix), cobra.ShellCompDirectiveNoFileComp
		}
	}
	list := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List them", Args: cobra.NoArgs,
		RunE: a.withServer(func(ctx context.Context, c *client.Client, _ []string) error {
			t, items := newTable(k.heads...), []any{}
			if err := k.list(ctx, c, func(item any, row []string) { items = append(items, item); t.add(row...) }); err != nil {
				return err
			}
			if a.json {
				return a.out.json(map[string]any{"items": items})
			}
			a.out.table(t)
			return nil
		}),
	}
	info := &cobra.Command{
		Use: "info NAME", Aliases: []string{"show", "get"}, Short: "Describe one, as JSON", Args: cobra.ExactArgs(1), ValidArgsFunction: complete(1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			item, _, err := k.get(ctx, c, args[0])
			if err != nil {
				return err
			}
			return a.out.json(item)
		}),
	}
	remove := &cobra.Command{
		Use: "delete NAME...", Aliases: []string{"rm"}, Short: "Delete them", Args: cobra.MinimumNArgs(1), ValidArgsFunction: complete(-1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			return a.delete(args, func(name string) error { return k.delete(ctx, c, name) })
		}),
	}
	yesFlag(remove)
	g := a.group(use, short, append([]*cobra.Command{list, info, remove}, more...)...)
	g.Aliases = []string{strings.TrimSuffix(use, "s")}
	return g
}

func (a *app) templates() *cobra.Command {
	return a.objectGroup(templateKind(), "templates", "Look at templates: what sandboxes look like; 'apply -f' makes them")
}

func (a *app) pools() *cobra.Command {
	scale := &cobra.Command{
		Use: "scale NAME REPLICAS", Short: "Keep more warm sandboxes, or fewer", Args: cobra.ExactArgs(2),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			n, err := strconv.Atoi(args[1])
			if err != nil || n < 0 || n > api.MaxReplicas {
				return usage(args[1], fmt.Sprintf("want 0 to %d", api.MaxReplicas))
			}
			p, err := c.Pool(ctx, args[0])
			if err != nil {
				return err
			}
			p.Spec.Replicas = n
			if p, err = c.PutPool(ctx, args[0], p.Spec); err != nil {
				return err
			}
			if a.json {
				return a.out.json(p)
			}
			a.out.printf("%s keeps %d warm\n", p.Name, p.Spec.Replicas)
			return nil
		}),
	}
	return a.objectGroup(poolKind(), "pools", "Look at pools of warm sandboxes, and scale them; 'apply -f' makes them", scale)
}

func (a *app) logs() *cobra.Command {
	var version int
	var follow bool
	cmd := &cobra.Command{
		Use: "logs TEMPLATE", Short: "Show what the build of a template printed",
		Example: a.example(`
  agentrun logs python-agent
  agentrun logs python-agent --follow`),
		Args: cobra.ExactArgs(1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			return c.BuildLog(ctx, args[0], version, follow, func(l *api.BuildLine) error {
				if a.json {
					b, err := json.Marshal(l)
					if err == nil {
						a.out.printf("%s\n", b)
					}
					return err
				}
				a.out.printf("%s\n", safe(l.Text))
				return nil
			})
		}),
	}
	cmd.Flags().IntVar(&version, "version", 0, "of which version: `N` (default the newest)")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "until the build has ended")
	return cmd
}

// safe takes what could move a terminal's cursor from a line that a sandbox wrote.
func safe(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == '\u2028' || r == '\u202e' {
			return '\ufffd'
		}
		return r
	}, s)
}

func (a *app) events() *cobra.Command {
	var after uint64
	var sandbox, kind string
	var follow bool
	cmd := &cobra.Command{
		Use: "events [--follow]", Short: "Show what happened to sandboxes",
		Example: a.example(`
  agentrun events
  agentrun events --sandbox alice --follow`),
		Args: cobra.NoArgs,
		RunE: a.withServer(func(ctx context.Context, c *client.Client, _ []string) error {
			for {
				page, err := c.Events(ctx, after, sandbox, kind, 0)
				if err != nil {
					return err
				}
				for i := range page.Events {
					a.event(&page.Events[i])
				}
				if page.Next > after {
					after = page.Next
				}
				if len(page.Events) == 0 {
					break
				}
			}
			if !follow {
				return nil
			}
			return c.Follow(ctx, after, sandbox, kind, func(e *api.Event) error {
				a.event(e)
				return nil
			})
		}),
	}
	fs := cmd.Flags()
	fs.Uint64Var(&after, "after", 0, "what came after this position: `SEQ`")
	fs.StringVar(&sandbox, "sandbox", "", "of one sandbox: `ID`")
	fs.StringVar(&kind, "kind", "", "of one `KIND`: created, started, forked, hibernated, expiring, ended, failed …")
	fs.BoolVarP(&follow, "follow", "f", false, "go on, as they happen")
	return cmd
}

func (a *app) event(e *api.Event) {
	if a.json {
		if b, err := json.Marshal(e); err == nil {
			a.out.printf("%s\n", b)
		}
		return
	}
	about := first(e.Sandbox, e.Template, e.Pool, e.Node)
	a.out.printf("%d  %s  %-10s  %s  %s\n", e.Seq, moment(e.Time), e.Kind, about, safe(e.Text))
}

func (a *app) auditCut() *cobra.Command {
	var before string
	cmd := &cobra.Command{
		Use: "cut --before TIME", Short: "Cut off the beginning of the log; export it first", Args: cobra.NoArgs,
		Long: `Cut off the entries that are older than a time: a date, or an age such as 90d. The cut is an entry itself, with the
hash of the last that went, so that what was exported before can be checked ever after.`,
		Example: a.example(`
  agentrun audit list --json > audit.jsonl
  agentrun audit cut --before 90d`),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, _ []string) error {
			at, err := time.Parse(time.RFC3339, before)
			if err != nil {
				at, err = time.Parse(time.DateOnly, before)
			}
			if err != nil {
				seconds, lerr := parseLifetime("--before", before)
				if lerr != nil || seconds <= 0 {
					return usage("--before "+before, "want a time, such as 2026-11-21T10:00:00Z or 2026-11-21, or an age, such as 90d")
				}
				at = time.Now().Add(-time.Duration(seconds) * time.Second)
			}
			n, err := c.CutAudit(ctx, at)
			if err != nil {
				return err
			}
			if a.json {
				return a.out.json(api.AuditCut{Entries: n})
			}
			a.out.printf("cut off %s\n", count(n, "entry"))
			return nil
		}),
	}
	cmd.Flags().StringVar(&before, "before", "", "what is older than `TIME`")
	_ = cmd.MarkFlagRequired("before")
	return cmd
}

func (a *app) audit() *cobra.Command {
	var after uint64
	verify := &cobra.Command{
		Use: "verify", Short: "Check that nothing in the log was changed, removed or put in between", Args: cobra.NoArgs,
		RunE: a.withServer(func(ctx context.Context, c *client.Client, _ []string) error {
			v, err := c.VerifyAudit(ctx)
			if err != nil {
				return err
			}
			if a.json {
				err = a.out.json(v)
			} else if v.Broken == 0 {
				a.out.printf("%s, all in their chain; the last is %s\n", count(v.Entries, "entry"), v.Last)
			} else {
				a.out.printf("the chain breaks at entry %d\n", v.Broken)
			}
			if v.Broken != 0 {
				a.status = exitFailed
			}
			return err
		}),
	}
	list := &cobra.Command{
		Use: "list", Aliases: []string{"export"}, Short: "Print the log: who wanted what, and whether it was allowed; with --json as it is chained", Args: cobra.NoArgs,
		RunE: a.withServer(func(ctx context.Context, c *client.Client, _ []string) error {
			begun := time.Now()
			for {
				page, err := c.Audit(ctx, after, api.MaxPage)
				if err != nil {
					return err
				}
				for i := range page.Entries {
					e := &page.Entries[i]
					if e.Time.After(begun) { // this reading is in the log, too, and never ends
						return nil
					}
					if a.json {
						b, err := json.Marshal(e)
						if err != nil {
							return err
						}
						a.out.printf("%s\n", b)
						continue
					}
					verdict := a.out.paint(green, "allowed")
					if !e.Allowed {
						verdict = a.out.paint(red, "denied ")
					}
					a.out.printf("%d  %s  %s  %s  %s  %s  %s\n", e.Seq, moment(e.Time), verdict, first(e.Principal, "-"), e.Action, first(safe(e.Thing), "-"), e.Rule)
				}
				if !page.More {
					return nil
				}
				after = page.Next
			}
		}),
	}
	list.Flags().Uint64Var(&after, "after", 0, "what came after this position: `SEQ`")
	return a.group("audit", "Read, check and cut the log of every decision", list, verify, a.auditCut())
}

func (a *app) secrets() *cobra.Command {
	var team string
	set := &cobra.Command{
		Use: "set NAME KEY[=VALUE]...", Short: "Keep values that sandboxes may be given; a VALUE that isn't there is read from the standard input",
		Long: `Keep values under a name, sealed. Sandboxes are given them by name, in their environment, and no snapshot
or log has them. Those that the name had before and aren't given go. A value on the command line is seen
by whoever lists processes: leave it out, and it is read from the standard input.`,
		Example: a.example(`
  agentrun secrets set agent-secrets OPENAI_API_KEY < key.txt
  agentrun claim python-agent-pool --secret agent-secrets/OPENAI_API_KEY`),
		Args: cobra.MinimumNArgs(2),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			in := api.Secret{Data: map[string]string{}, Team: team}
			for _, s := range args[1:] {
				key, value, ok := strings.Cut(s, "=")
				if !ok {
					if len(args) > 2 {
						return usage(s, "only a single value can come from the standard input")
					}
					text, err := readSecret(a.Stdin)
					if err != nil {
						return err
					}
					value = text
				}
				in.Data[key] = value
			}
			s, err := c.PutSecret(ctx, args[0], in)
			if err != nil {
				return err
			}
			if a.json {
				return a.out.json(s)
			}
			a.out.printf("%s holds %s\n", s.Name, strings.Join(s.Keys, ", "))
			return nil
		}),
	}
	set.Flags().StringVar(&team, "team", "", "whose members may use it, too: `TEAM`")
	list := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List names and keys, never values", Args: cobra.NoArgs,
		RunE: a.withServer(func(ctx context.Context, c *client.Client, _ []string) error {
			t, items := newTable("NAME", "KEYS", "OWNER", "CHANGED"), []api.Secret{}
			err := all(func(p client.Page) (string, error) {
				page, err := c.Secrets(ctx, p)
				if err != nil {
					return "", err
				}
				for _, s := range page.Secrets {
					items = append(items, s)
					t.add(s.Name, strings.Join(s.Keys, ","), first(s.Owner, "-"), moment(s.Changed))
				}
				return page.Next, nil
			})
			if err != nil {
				return err
			}
			if a.json {
				return a.out.json(api.Secrets{Secrets: items})
			}
			a.out.table(t)
			return nil
		}),
	}
	remove := &cobra.Command{
		Use: "delete NAME...", Aliases: []string{"rm"}, Short: "Delete secrets; sandboxes that were given them keep them", Args: cobra.MinimumNArgs(1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			return a.delete(args, func(name string) error { return c.DeleteSecret(ctx, name) })
		}),
	}
	yesFlag(remove)
	return a.group("secrets", "Keep values that sandboxes are given by name", set, list, remove)
}

// readSecret reads one value, without the newline that ends a file of one line.
func readSecret(f *os.File) (string, error) {
	buf := make([]byte, 64<<10+2)
	n := 0
	for n < len(buf) {
		k, err := f.Read(buf[n:])
		n += k
		if err != nil || k == 0 {
			break
		}
	}
	if n == len(buf) {
		return "", errs.Msg(errs.TooLarge, "read", "standard input", "a value has at most 64 KiB")
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(buf[:n]), "\n"), "\r"), nil
}

func (a *app) principals() *cobra.Command {
	var in api.Principal
	var budget api.Budget
	var tags []string
	set := &cobra.Command{
		Use: "set NAME --role ROLE", Short: "Make a user, an agent or a service known, or change it",
		Example: a.example(`
  agentrun principals set alice --role user --team red
  agentrun keys create --principal alice`),
		Args: cobra.ExactArgs(1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			var err error
			if in.Tags, err = pairs("--tag", tags); err != nil {
				return err
			}
			in.Name = args[0]
			if budget != (api.Budget{}) {
				in.Budget = &budget
			}
			p, err := c.PutPrincipal(ctx, args[0], in)
			if err != nil {
				return err
			}
			if a.json {
				return a.out.json(p)
			}
			a.out.printf("%s is %s %s\n", p.Name, article(p.Role), p.Role)
			return nil
		}),
	}
	fs := set.Flags()
	fs.StringVar(&in.Role, "role", api.RoleUser, "`ROLE`: admin, operator, user or viewer")
	fs.StringVar(&in.Kind, "kind", "", "`KIND`: user, agent or service (default user)")
	fs.StringSliceVar(&in.Teams, "team", nil, "`TEAM` that it belongs to (repeatable)")
	fs.StringVar(&in.Parent, "parent", "", "`PRINCIPAL` on whose behalf it acts, and pays")
	fs.StringArrayVar(&tags, "tag", nil, "a tag, `NAME=VALUE` (repeatable)")
	fs.BoolVar(&in.Disabled, "disabled", false, "its keys are refused")
	fs.IntVar(&budget.Sandboxes, "sandboxes", 0, "at most `N` of its sandboxes run at once (default: no bound)")
	fs.Float64Var(&budget.CPUSeconds, "cpu-seconds", 0, "its sandboxes may use `N` CPU-seconds (default: no bound)")
	fs.Float64Var(&budget.MemoryGiBSeconds, "memory", 0, "its sandboxes may use `N` GiB-seconds of memory (default: no bound)")
	fs.Float64Var(&budget.StorageGiBSeconds, "storage", 0, "its sandboxes may use `N` GiB-seconds of storage (default: no bound)")
	fs.Int64Var(&budget.NetworkBytes, "network", 0, "its sandboxes may move `N` bytes over the network (default: no bound)")
	list := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List them", Args: cobra.NoArgs,
		RunE: a.withServer(func(ctx context.Context, c *client.Client, _ []string) error {
			t, items := newTable("NAME", "KIND", "ROLE", "TEAMS", "PARENT", "CREATED"), []api.Principal{}
			err := all(func(p client.Page) (string, error) {
				page, err := c.Principals(ctx, p)
				if err != nil {
					return "", err
				}
				for _, p := range page.Principals {
					items = append(items, p)
					t.add(p.Name, first(p.Kind, "user"), p.Role, first(strings.Join(p.Teams, ","), "-"), first(p.Parent, "-"), moment(p.Created))
				}
				return page.Next, nil
			})
			if err != nil {
				return err
			}
			if a.json {
				return a.out.json(api.Principals{Principals: items})
			}
			a.out.table(t)
			return nil
		}),
	}
	remove := &cobra.Command{
		Use: "delete NAME...", Aliases: []string{"rm"}, Short: "Forget them; their keys are void", Args: cobra.MinimumNArgs(1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			return a.delete(args, func(name string) error { return c.DeletePrincipal(ctx, name) })
		}),
	}
	yesFlag(remove)
	usage := &cobra.Command{
		Use: "usage NAME", Short: "Show what a principal's sandboxes used, and its budget", Args: cobra.ExactArgs(1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			u, err := c.PrincipalUsage(ctx, args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.out.json(u)
			}
			a.out.printf("running    %d sandboxes\n", u.Running)
			a.used(&u.Usage)
			return nil
		}),
	}
	return a.group("principals", "Manage who may do what: users, agents and services", set, list, remove, usage)
}

func article(s string) string {
	if s != "" && strings.ContainsRune("aeio", rune(s[0])) {
		return "an"
	}
	return "a"
}

// used prints what was used.
func (a *app) used(u *api.SandboxUsage) {
	a.out.printf("cpu        %.2f s\n", u.CPUSeconds)
	a.out.printf("memory     %.4f GiB·s, %s now\n", u.MemoryGiBSeconds, size(uint64(max(0, u.Memory))))
	a.out.printf("storage    %.4f GiB·s, %s now\n", u.StorageGiBSeconds, size(uint64(max(0, u.Storage))))
	a.out.printf("network    %s in, %s out\n", size(uint64(max(0, u.NetworkIn))), size(uint64(max(0, u.NetworkOut))))
	a.out.printf("ran        %s\n", time.Duration(u.Seconds*float64(time.Second)).Round(time.Millisecond))
}
