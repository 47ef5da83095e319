package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentrun.dev/api"
	"agentrun.dev/client"
	"agentrun.dev/manifest"
)

// objectKind is a kind of declared object, as 'get', 'delete' and 'apply' handle it.
type objectKind struct {
	kind    string   // in manifests
	names   []string // on the command line, the first as it is printed
	heads   []string
	list    func(ctx context.Context, c *client.Client, each func(item any, row []string)) error
	get     func(ctx context.Context, c *client.Client, name string) (item any, row []string, err error)
	delete  func(ctx context.Context, c *client.Client, name string) error
	apply   func(ctx context.Context, c *client.Client, o *manifest.Object) (string, error) // what it did: created, configured, unchanged
	pending func(item any) (waiting bool, why string, err error)
}

// all walks all pages of a list.
func all(list func(p client.Page) (next string, err error)) error {
	var p client.Page
	for {
		next, err := list(p)
		if err != nil || next == "" {
			return err
		}
		p.Cursor = next
	}
}

// titled is a state as the tables of Kubernetes show it.
func titled(state string) string {
	if state == "" {
		return ""
	}
	return strings.ToUpper(state[:1]) + state[1:]
}

// age words how long ago something was, as kubectl does.
func age(t time.Time) string {
	d := time.Since(t)
	switch {
	case t.IsZero():
		return "-"
	case d < 0:
		return "0s"
	case d < 2*time.Minute:
		return strconv.Itoa(int(d.Seconds())) + "s"
	case d < 2*time.Hour:
		return strconv.Itoa(int(d.Minutes())) + "m"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + "h"
	}
	return strconv.Itoa(int(d.Hours()/24)) + "d"
}

func templateRow(t *api.Template) []string {
	return []string{t.Name, strconv.Itoa(t.Version), titled(t.State), first(t.Spec.Engine, api.Userspace), first(t.Spec.Image, "-"), age(t.Created)}
}

func poolRow(p *api.Pool) []string {
	return []string{p.Name, strconv.Itoa(p.Ready), strconv.Itoa(p.Snapshots), age(p.Created)}
}

func claimRow(c *api.Claim) []string {
	return []string{c.Name, titled(c.State), first(c.Endpoint, "-"), age(c.Created)}
}

func forkRow(f *api.Fork) []string {
	return []string{f.Name, strconv.Itoa(f.Count), titled(f.State), age(f.Created)}
}

func sandboxRow(s *api.Sandbox) []string {
	left := "-"
	if !s.Expires.IsZero() {
		left = strings.TrimPrefix(time.Until(s.Expires).Round(time.Second).String(), "-")
		if time.Until(s.Expires) < 0 {
			left = "now"
		}
	}
	return []string{s.ID, first(s.Name, "-"), titled(s.State), first(s.Template, "-"), first(s.Owner, "-"), left, age(s.Created)}
}

// objectKinds are the kinds that there are.
func objectKinds() []*objectKind {
	return []*objectKind{templateKind(), poolKind(), claimKind(), forkKind(), sandboxKind()}
}

func templateKind() *objectKind {
	return &objectKind{
		kind: manifest.SandboxTemplate, names: []string{"sandboxtemplate", "sandboxtemplates", "template", "templates"},
		heads: []string{"NAME", ">VERSION", "STATUS", "ENGINE", "IMAGE", "AGE"},
		list: func(ctx context.Context, c *client.Client, each func(any, []string)) error {
			return all(func(p client.Page) (string, error) {
				page, err := c.Templates(ctx, p)
				if err != nil {
					return "", err
				}
				for i := range page.Templates {
					each(&page.Templates[i], templateRow(&page.Templates[i]))
				}
				return page.Next, nil
			})
		},
		get: func(ctx context.Context, c *client.Client, name string) (any, []string, error) {
			t, err := c.Template(ctx, name, 0)
			if err != nil {
				return nil, nil, err
			}
			return t, templateRow(t), nil
		},
		delete: func(ctx context.Context, c *client.Client, name string) error { return c.DeleteTemplate(ctx, name) },
		apply: func(ctx context.Context, c *client.Client, o *manifest.Object) (string, error) {
			before, err := c.Template(ctx, o.Name, 0)
			after, err := changed(before, err, func() (*api.Template, error) { return c.PutTemplate(ctx, o.Name, *o.Template) })
			if err != nil {
				return "", err
			}
			if before != nil && before.Version == after.Version && after.State == api.BuildFailed {
				_, err := c.RebuildTemplate(ctx, o.Name) // what was in its way may be gone
				return "built again", err
			}
			return done(before != nil, before != nil && before.Version == after.Version), nil
		},
		pending: func(item any) (bool, string, error) {
			t := item.(*api.Template)
			if t.State == api.BuildFailed {
				return false, "", usageFailed("build", t.Name, t.Error).WithHint("'agentrun logs " + t.Name + "' shows what its init printed")
			}
			return t.State != api.BuildReady, fmt.Sprintf("template %s: %s %.0f %%", t.Name, t.State, t.Progress*100), nil
		},
	}
}

func poolKind() *objectKind {
	return &objectKind{
		kind: manifest.SandboxPool, names: []string{"sandboxpool", "sandboxpools", "pool", "pools"},
		heads: []string{"NAME", "READY", "SNAPSHOTS", "AGE"},
		list: func(ctx context.Context, c *client.Client, each func(any, []string)) error {
			return all(func(p client.Page) (string, error) {
				page, err := c.Pools(ctx, p)
				if err != nil {
					return "", err
				}
				for i := range page.Pools {
					each(&page.Pools[i], poolRow(&page.Pools[i]))
				}
				return page.Next, nil
			})
		},
		get: func(ctx context.Context, c *client.Client, name string) (any, []string, error) {
			p, err := c.Pool(ctx, name)
			if err != nil {
				return nil, nil, err
			}
			return p, poolRow(p), nil
		},
		delete: func(ctx context.Context, c *client.Client, name string) error { return c.DeletePool(ctx, name) },
		apply: func(ctx context.Context, c *client.Client, o *manifest.Object) (string, error) {
			before, err := c.Pool(ctx, o.Name)
			after, err := changed(before, err, func() (*api.Pool, error) { return c.PutPool(ctx, o.Name, *o.Pool) })
			if err != nil {
				return "", err
			}
			return done(before != nil, before != nil && samePool(before.Spec, after.Spec)), nil
		},
		pending: func(item any) (bool, string, error) {
			p := item.(*api.Pool)
			if p.State == "failed" {
				return false, "", usageFailed("fill pool", p.Name, p.Error)
			}
			return p.Ready+p.Reserved < p.Spec.Replicas, fmt.Sprintf("pool %s: %d of %d ready", p.Name, p.Ready, p.Spec.Replicas), nil
		},
	}
}

func samePool(a, b api.PoolSpec) bool {
	return a.Template == b.Template && a.Replicas == b.Replicas && a.MaxSandboxes == b.MaxSandboxes
}

func claimKind() *objectKind {
	return &objectKind{
		kind: manifest.SandboxClaim, names: []string{"sandboxclaim", "sandboxclaims", "claim", "claims"},
		heads: []string{"NAME", "STATUS", "ENDPOINT", "AGE"},
		list: func(ctx context.Context, c *client.Client, each func(any, []string)) error {
			return all(func(p client.Page) (string, error) {
				page, err := c.Claims(ctx, p)
				if err != nil {
					return "", err
				}
				for i := range page.Claims {
					each(&page.Claims[i], claimRow(&page.Claims[i]))
				}
				return page.Next, nil
			})
		},
		get: func(ctx context.Context, c *client.Client, name string) (any, []string, error) {
			cl, err := c.Claim(ctx, name)
			if err != nil {
				return nil, nil, err
			}
			return cl, claimRow(cl), nil
		},
		delete: func(ctx context.Context, c *client.Client, name string) error { return c.DeleteClaim(ctx, name) },
		apply: func(ctx context.Context, c *client.Client, o *manifest.Object) (string, error) {
			before, err := c.Claim(ctx, o.Name)
			_, err = changed(before, err, func() (*api.Claim, error) { return c.PutClaim(ctx, o.Name, *o.Claim) })
			if err != nil {
				return "", err
			}
			return done(before != nil, true), nil
		},
		pending: func(item any) (bool, string, error) {
			cl := item.(*api.Claim)
			if cl.State == "failed" {
				return false, "", usageFailed("claim", cl.Name, cl.Reason)
			}
			return cl.State == "pending", "claim " + cl.Name + ": " + first(cl.Reason, cl.State), nil
		},
	}
}

func forkKind() *objectKind {
	return &objectKind{
		kind: manifest.SandboxFork, names: []string{"sandboxfork", "sandboxforks"},
		heads: []string{"NAME", "FORKS", "STATUS", "AGE"},
		list: func(ctx context.Context, c *client.Client, each func(any, []string)) error {
			return all(func(p client.Page) (string, error) {
				page, err := c.SandboxForks(ctx, p)
				if err != nil {
					return "", err
				}
				for i := range page.Forks {
					each(&page.Forks[i], forkRow(&page.Forks[i]))
				}
				return page.Next, nil
			})
		},
		get: func(ctx context.Context, c *client.Client, name string) (any, []string, error) {
			f, err := c.Fork(ctx, name)
			if err != nil {
				return nil, nil, err
			}
			return f, forkRow(f), nil
		},
		delete: func(ctx context.Context, c *client.Client, name string) error { return c.DeleteFork(ctx, name) },
		apply: func(ctx context.Context, c *client.Client, o *manifest.Object) (string, error) {
			before, err := c.Fork(ctx, o.Name)
			_, err = changed(before, err, func() (*api.Fork, error) { return c.PutFork(ctx, o.Name, *o.Fork) })
			if err != nil {
				return "", err
			}
			return done(before != nil, true), nil
		},
		pending: func(item any) (bool, string, error) {
			f := item.(*api.Fork)
			if f.State == "failed" {
				return false, "", usageFailed("fork", f.Name, f.Reason)
			}
			return f.State == "pending", "fork " + f.Name + ": " + first(f.Reason, f.State), nil
		},
	}
}

func sandboxKind() *objectKind {
	return &objectKind{
		names: []string{"sandbox", "sandboxes"}, heads: []string{"ID", "NAME", "STATUS", "TEMPLATE", "OWNER", "EXPIRES", "AGE"},
		list: func(ctx context.Context, c *client.Client, each func(any, []string)) error {
			return eachSandbox(ctx, c, client.SandboxFilter{}, func(s *api.Sandbox) { each(s, sandboxRow(s)) })
		},
		get: func(ctx context.Context, c *client.Client, name string) (any, []string, error) {
			s, err := c.Sandbox(ctx, name)
			if err != nil {
				return nil, nil, err
			}
			return s, sandboxRow(s), nil
		},
		delete: func(ctx context.Context, c *client.Client, name string) error { return c.EndSandbox(ctx, name) },
	}
}

func eachSandbox(ctx context.Context, c *client.Client, f client.SandboxFilter, each func(*api.Sandbox)) error {
	return all(func(p client.Page) (string, error) {
		f.Page = p
		page, err := c.Sandboxes(ctx, f)
		if err != nil {
			return "", err
		}
		for i := range page.Sandboxes {
			each(&page.Sandboxes[i])
		}
		return page.Next, nil
	})
}

// findKind returns the kind of a name, case aside and with or without the group.
func findKind(name string) (*objectKind, error) {
	plain, _, _ := strings.Cut(strings.ToLower(name), ".")
	var known []string
	for _, k := range objectKinds() {
		if slices.Contains(k.names, plain) {
			return k, nil
		}
		known = append(known, k.names[0])
	}
	return nil, usage(name, "no such kind; there are "+strings.Join(known, ", "))
}

func (a *app) get() *cobra.Command {
	return &cobra.Command{
		Use:   "get KIND [NAME...]",
		Short: "Show templates, pools, claims, forks or sandboxes",
		Long: `Show declared objects, or sandboxes, in the columns that kubectl shows. KIND is sandboxtemplate,
sandboxpool, sandboxclaim, sandboxfork or sandbox.`,
		Example: a.example(`
  agentrun get sandboxpool
  agentrun get sandboxpool python-agent-pool
  agentrun get sandboxclaim agent-session-1 --json`),
		Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return a.objectNames(cmd.Context(), args[0], prefix), cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, k := range objectKinds() {
				names = append(names, k.names[0])
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			k, err := findKind(args[0])
			if err != nil {
				return err
			}
			t, items := newTable(k.heads...), []any{}
			add := func(item any, row []string) {
				items = append(items, item)
				t.add(row...)
			}
			if len(args) == 1 {
				if err := k.list(ctx, c, add); err != nil {
					return err
				}
			}
			for _, name := range args[1:] {
				item, row, err := k.get(ctx, c, name)
				if err != nil {
					return err
				}
				add(item, row)
			}
			switch {
			case a.json && len(args) == 2:
				return a.out.json(items[0])
			case a.json:
				return a.out.json(map[string]any{"items": items})
			}
			a.out.table(t)
			return nil
		}),
	}
}

// objectNames offers the names of a kind's objects for completion.
func (a *app) objectNames(ctx context.Context, kind, prefix string) (names []string) {
	k, err := findKind(kind)
	if err != nil {
		return nil
	}
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	c, err := a.connect()
	if err != nil {
		return nil
	}
	_ = k.list(ctx, c, func(item any, row []string) {
		for _, name := range row[:min(2, len(row))] {
			if strings.HasPrefix(name, prefix) && (name == row[0] || k.names[0] == "sandbox" && name != "-") {
				names = append(names, name)
			}
		}
	})
	return names
}
