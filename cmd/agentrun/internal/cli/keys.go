package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"agentrun.dev/api"
	"agentrun.dev/client"
)

func (a *app) keys() *cobra.Command {
	g := a.group("keys", "Create, list and revoke access keys", a.keysCreate(), a.keysList(), a.keysRevoke())
	g.Aliases = []string{"key"}
	return g
}

func (a *app) keysCreate() *cobra.Command {
	var scopes []string
	var in api.CreateKey
	var expires string
	cmd := &cobra.Command{
		Use:   "create {--bucket BUCKET[:ro|:rw]... | --principal NAME [--role ROLE] | --e2b} [--name NAME] [--expires 24h]",
		Short: "Create an access key for buckets, or of a principal",
		Long: `Create an access key. It works with S3 clients, with the API and with this program, but only for the
objects of its buckets: about others it learns nothing, and it can't fork, snapshot or merge. It is
void once its bucket is deleted, even if the name comes back. With --principal it is that principal's:
it may what that one may, or less, with --role. With --e2b it has the form that E2B's SDKs take, and
is your own unless --principal says whose it is; it is printed alone. The secret is shown only now.`,
		Example: a.example(`
  agentrun keys create --bucket task-42
  agentrun keys create --bucket datasets:ro --bucket task-42 --name agent-42 --expires 24h
  agentrun keys create --principal alice --role viewer
  export E2B_API_KEY=$(agentrun keys create --e2b)`),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.withServer(func(ctx context.Context, c *client.Client, _ []string) error {
			ways := 0
			for _, given := range []bool{in.Root, len(scopes) > 0, in.Principal != ""} {
				if given {
					ways++
				}
			}
			if ways != 1 && !(ways == 0 && in.E2B) {
				return usage("--bucket", "for which bucket is the key?").
					WithHint("--bucket NAME[:ro|:rw], more than once for several; or --root for a key that may do everything; or --principal NAME; or --e2b")
			}
			var err error
			if in.Lifetime, err = parseLifetime("--expires", expires); err != nil {
				return err
			}
			for _, s := range scopes {
				name, role, ok := strings.Cut(s, ":")
				if !ok {
					role = api.ReadWrite
				}
				if role != api.ReadOnly && role != api.ReadWrite {
					return usage("--bucket "+s, "want BUCKET, BUCKET:ro or BUCKET:rw")
				}
				in.Scopes = append(in.Scopes, api.Scope{Bucket: name, Role: role})
			}
			k, err := c.CreateKey(ctx, in)
			if err != nil {
				return err
			}
			if a.json {
				return a.out.json(k)
			}
			if in.E2B { // alone, to be put into a variable
				fmt.Fprintf(a.Stderr, "key %s of %s; it is shown only now, and expires: %s\n", k.ID, principalText(*k), moment(k.Expires))
				a.out.printf("%s\n", k.APIKey)
				return nil
			}
			line := func(label, value string) { a.out.printf("%s %s\n", a.out.paint(dim, pad(label, 18)), value) }
			line("access key id", k.ID)
			line("secret access key", k.Secret)
			line("API key", k.APIKey)
			if k.Principal != "" {
				line("principal", principalText(*k))
			} else {
				line("buckets", scopeText(*k))
			}
			line("expires", moment(k.Expires))
			return nil
		}),
	}
	f := cmd.Flags()
	f.StringArrayVar(&scopes, "bucket", nil, "a `BUCKET` that the key is for, with :ro to only read it (repeatable)")
	f.StringVar(&in.Name, "name", "", "`NAME` of the key, for people")
	f.StringVar(&expires, "expires", "", "revoke it after `TIME`: 90m, 24h, 7d (default: never)")
	f.BoolVar(&in.Root, "root", false, "a key that may do everything")
	f.StringVar(&in.Principal, "principal", "", "`NAME` of the principal that the key acts as")
	f.StringVar(&in.Role, "role", "", "at most this `ROLE` of the principal's: admin, operator, user or viewer")
	f.BoolVar(&in.E2B, "e2b", false, "a key that E2B's SDKs take, too: e2b_ and hexadecimal digits")
	a.bucketFlag(cmd, "bucket")
	return cmd
}

// principalText words whom a key acts as.
func principalText(k api.Key) string {
	if k.Role != "" {
		return k.Principal + ", as " + k.Role
	}
	return k.Principal
}

// scopeText words what a key may do.
func scopeText(k api.Key) string {
	if k.Root {
		return "all, as root"
	}
	var parts []string
	if k.Principal != "" {
		parts = append(parts, "as "+principalText(k))
	}
	for _, s := range k.Scopes {
		text := s.Bucket + ":" + s.Role
		if s.Gone {
			text += " (deleted)"
		}
		parts = append(parts, text)
	}
	return first(strings.Join(parts, ", "), "none")
}

func (a *app) keysList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List access keys, without their secrets",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.withServer(func(ctx context.Context, c *client.Client, _ []string) error {
			list, err := c.Keys(ctx)
			if err != nil {
				return err
			}
			if a.json {
				return a.out.json(api.Keys{Keys: list})
			}
			t := newTable("ID", "NAME", "BUCKETS", "CREATED", "EXPIRES")
			for _, k := range list {
				t.add(k.ID, first(printable(k.Name), "-"), scopeText(k), moment(k.Created), moment(k.Expires))
			}
			a.out.table(t)
			return nil
		}),
	}
}

func (a *app) keysRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID...", Aliases: []string{"delete", "rm"}, Short: "Revoke access keys, at once",
		Example:           a.example(`  agentrun keys revoke ARJ4QDGYV2XO6ZLM5KTA`),
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			revoked := []string{}
			for _, id := range args {
				if err := c.RevokeKey(ctx, id); err != nil {
					return err
				}
				revoked = append(revoked, id)
				if !a.json {
					a.out.printf("revoked %s\n", id)
				}
			}
			if a.json {
				return a.out.json(map[string][]string{"revoked": revoked})
			}
			return nil
		}),
	}
}
