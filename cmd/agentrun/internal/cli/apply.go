package cli

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentrun.dev/api"
	"agentrun.dev/client"
	"agentrun.dev/errs"
	"agentrun.dev/manifest"
)

// usageFailed is an error of something that was asked for and failed at the server.
func usageFailed(op, thing, why string) *errs.Error {
	return errs.Msg(errs.Other, op, thing, first(why, "failed"))
}

// changed makes something be as it is declared, where err is what reading it before said.
func changed[T any](before *T, err error, put func() (*T, error)) (*T, error) {
	if err != nil && !errs.Is(err, errs.NotFound) {
		return before, err
	}
	return put()
}

// done words what became of a declared object.
func done(existed, same bool) string {
	switch {
	case !existed:
		return "created"
	case same:
		return "unchanged"
	}
	return "configured"
}

// readManifests reads files, folders and "-", the standard input. Templates come before what refers to them, in any order of files.
func (a *app) readManifests(names []string) ([]manifest.Object, error) {
	if len(names) == 0 {
		return nil, usage("-f", "which file?").WithHint("agentrun apply -f FILE; '-' is the standard input")
	}
	var out []manifest.Object
	read := func(name string, f *os.File) error {
		objects, err := manifest.Read(name, f)
		out = append(out, objects...)
		return err
	}
	for _, name := range names {
		if name == "-" {
			if err := read("standard input", a.Stdin); err != nil {
				return nil, err
			}
			continue
		}
		files := []string{name}
		if st, err := os.Stat(name); err == nil && st.IsDir() {
			files = nil
			for _, pattern := range []string{"*.yaml", "*.yml", "*.json"} {
				found, _ := filepath.Glob(filepath.Join(name, pattern))
				files = append(files, found...)
			}
			slices.Sort(files)
			if len(files) == 0 {
				return nil, usage("-f "+name, "there are no .yaml, .yml or .json files in this folder")
			}
		}
		for _, file := range files {
			f, err := os.Open(file)
			if err != nil {
				return nil, usage("-f "+file, fileError("open", file, err).Error())
			}
			err = read(file, f)
			f.Close()
			if err != nil {
				return nil, err
			}
		}
	}
	order := []string{manifest.SandboxTemplate, manifest.SandboxPool, manifest.SandboxClaim, manifest.SandboxFork}
	slices.SortStableFunc(out, func(x, y manifest.Object) int { return slices.Index(order, x.Kind) - slices.Index(order, y.Kind) })
	return out, nil
}

// kindOf returns the kind of a declared object.
func kindOf(o *manifest.Object) *objectKind {
	k, _ := findKind(o.Kind)
	return k
}

func (a *app) apply() *cobra.Command {
	var files []string
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "apply -f FILE...",
		Short: "Make templates, pools, claims and forks be as files declare them",
		Long: `Make templates, pools, claims and forks be as files of YAML declare them: the same that kubectl takes.
What is there already as declared is left alone. It waits until all of it is ready, unless told not to.`,
		Example: a.example(`
  agentrun apply -f examples/python-pool.yaml
  agentrun apply -f examples/claim.yaml -f examples/fork.yaml
  cat pool.yaml | agentrun apply -f -`),
		Args: cobra.NoArgs,
		RunE: a.withServer(func(ctx context.Context, c *client.Client, _ []string) error {
			objects, err := a.readManifests(files)
			if err != nil {
				return err
			}
			if wait {
				var cancel context.CancelFunc
				late := errs.Msg(errs.Unavailable, "apply", "", "not ready after "+timeout.String()).WithHint("it goes on; look with 'agentrun get', or give a longer --timeout")
				ctx, cancel = context.WithTimeoutCause(ctx, timeout, late)
				defer cancel()
			}
			return a.applyAll(ctx, c, objects, wait)
		}),
	}
	f := cmd.Flags()
	f.StringArrayVarP(&files, "filename", "f", nil, "`FILE`, folder, or - for the standard input (repeatable)")
	f.BoolVar(&wait, "wait", true, "wait until what was applied is ready")
	f.DurationVar(&timeout, "timeout", 10*time.Minute, "how long to wait: `TIME`")
	return cmd
}

// applied is what 'apply' prints as JSON.
type applied struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Result string `json:"result"`
}

func (a *app) applyAll(ctx context.Context, c *client.Client, objects []manifest.Object, wait bool) error {
	results := []applied{}
	m := a.out.meter()
	defer m.done()
	for i := range objects {
		o := &objects[i]
		k := kindOf(o)
		var did string
		err := a.until(ctx, m, wait, func() (bool, string, error) {
			var err error
			did, err = k.apply(ctx, c, o)
			if wait && errs.Is(err, errs.Unavailable) && !errs.Is(err, errs.Canceled) { // a pool that is empty for now, a template that is built
				return true, err.Error(), nil
			}
			return false, "", err
		})
		if err != nil {
			return errs.New(errs.KindOf(err), "apply", o.Kind+" "+o.Name, err).WithHint(errs.HintOf(err))
		}
		results = append(results, applied{o.Kind, o.Name, did})
		if !a.json {
			m.done()
			a.out.printf("%s.agentrun.dev/%s %s\n", k.names[0], o.Name, did)
		}
		if !wait {
			continue
		}
		err = a.until(ctx, m, true, func() (bool, string, error) {
			item, _, err := k.get(ctx, c, o.Name)
			if err != nil {
				return false, "", err
			}
			return k.pending(item)
		})
		if err != nil {
			return err
		}
	}
	if a.json {
		return a.out.json(map[string]any{"applied": results})
	}
	return nil
}

// until asks again and again, ever more seldom, while there is something to wait for. What that is, a terminal shows.
func (a *app) until(ctx context.Context, m *meter, wait bool, ask func() (waiting bool, why string, err error)) error {
	for pause := 5 * time.Millisecond; ; pause = min(pause*3/2, time.Second) {
		waiting, why, err := ask()
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil || !waiting || !wait {
			return err
		}
		m.update(api.Progress{Phase: strings.TrimSpace(why)})
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

func (a *app) deleteObjects() *cobra.Command {
	var files []string
	cmd := &cobra.Command{
		Use:   "delete -f FILE... | delete KIND NAME...",
		Short: "Delete what files declare: sandboxes end with their claims and forks",
		Example: a.example(`
  agentrun delete -f examples/fork.yaml
  agentrun delete sandboxclaim agent-session-1`),
		Args: cobra.ArbitraryArgs,
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			if len(files) == 0 {
				if len(args) < 2 {
					return usage("delete", "want -f FILE, or a kind and names")
				}
				k, err := findKind(args[0])
				if err != nil {
					return err
				}
				return a.delete(args[1:], func(name string) error { return k.delete(ctx, c, name) })
			}
			objects, err := a.readManifests(files)
			if err != nil {
				return err
			}
			slices.Reverse(objects) // what refers goes before what it refers to
			for i := range objects {
				o := &objects[i]
				k := kindOf(o)
				did := "deleted"
				if err := k.delete(ctx, c, o.Name); errs.Is(err, errs.NotFound) {
					did = "not found"
				} else if err != nil {
					return err
				}
				if !a.json {
					a.out.printf("%s.agentrun.dev/%s %s\n", k.names[0], o.Name, did)
				}
			}
			return nil
		}),
	}
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "`FILE`, folder, or - for the standard input (repeatable)")
	yesFlag(cmd)
	return cmd
}
