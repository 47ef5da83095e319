package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"agentrun.dev/api"
	"agentrun.dev/client"
)

// volumes are the commands for volumes that outlive sandboxes.
func (a *app) volumes() *cobra.Command {
	var in api.CreateVolume
	create := &cobra.Command{
		Use: "create NAME", Short: "Make a volume, which sandboxes mount and which outlives them",
		Example: a.example(`
  agentrun volumes create models
  agentrun sandboxes create --template python-agent --mount models:/models`),
		Args: cobra.ExactArgs(1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			in.Name = args[0]
			v, err := c.CreateVolume(ctx, in)
			if err != nil {
				return err
			}
			if a.json {
				return a.out.json(v)
			}
			a.out.printf("%s\n", v.ID)
			return nil
		}),
	}
	create.Flags().Int64Var(&in.Size, "size", 0, "`BYTES` that its files may have together (default no limit of its own)")
	create.Flags().StringVar(&in.Owner, "owner", "", "`PRINCIPAL` that it is for (default yourself)")
	remove := &cobra.Command{
		Use: "delete VOLUME...", Aliases: []string{"rm"}, Short: "Delete volumes with what they hold; those that a sandbox has mounted stay",
		Args: cobra.MinimumNArgs(1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			return a.delete(args, func(id string) error { return c.DeleteVolume(ctx, id) })
		}),
	}
	yesFlag(remove)
	return a.group("volumes", "Make, list and delete volumes that outlive sandboxes", create, a.volumesList(), remove)
}

func (a *app) volumesList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List volumes, oldest first", Args: cobra.NoArgs,
		RunE: a.withServer(func(ctx context.Context, c *client.Client, _ []string) error {
			out := []api.StoredVolume{}
			for p := (client.Page{}); ; {
				list, err := c.Volumes(ctx, p)
				if err != nil {
					return err
				}
				out = append(out, list.Volumes...)
				if p.Cursor = list.Next; p.Cursor == "" {
					break
				}
			}
			if a.json {
				return a.out.json(out)
			}
			t := newTable("NAME", "ID", "OWNER", "CREATED", ">MOUNTED")
			for _, v := range out {
				t.add(v.Name, v.ID, v.Owner, moment(v.Created), count(uint64(len(v.Sandboxes)), ""))
			}
			a.out.table(t)
			return nil
		}),
	}
}

// readMount reads VOLUME:PATH[:ro].
func readMount(text string) (m api.VolumeMount, err error) {
	name, path, ok := strings.Cut(text, ":")
	path, ro := strings.CutSuffix(path, ":ro")
	if !ok || name == "" || path == "" || path[0] != '/' {
		return m, usage("--mount "+text, "want VOLUME:PATH or VOLUME:PATH:ro, with an absolute path")
	}
	return api.VolumeMount{Volume: name, Path: path, ReadOnly: ro}, nil
}
