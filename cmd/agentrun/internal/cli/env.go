package cli

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"agentrun.dev/client"
	"agentrun.dev/errs"
)

// variable is one variable of the environment.
type variable struct{ name, value string }

func (a *app) env() *cobra.Command {
	var shell, bucketName string
	cmd := &cobra.Command{
		Use: "env [--shell NAME] [--bucket NAME]", Short: "Print what S3 clients need in their environment",
		Long: `Print the variables by which aws-cli, the S3 SDKs, rclone and Tigris' own tools find the server, for
the shell to take in. The key is the one that this program would use itself: give a limited one with
--key. For rclone, add RCLONE_CONFIG_<NAME>_TYPE=s3 and RCLONE_CONFIG_<NAME>_ENV_AUTH=true.`,
		Example: a.example(`
  eval "$(agentrun env)"             # sh, bash, zsh
  agentrun env --shell fish | source
  agentrun env --json`),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			quote, err := quoting(first(shell, shellName(a.Getenv("SHELL"))))
			if err != nil {
				return err
			}
			vars, err := a.variables(cmd.Context(), bucketName)
			if err != nil {
				return a.advise(err)
			}
			if a.json {
				m := map[string]string{}
				for _, v := range vars {
					m[v.name] = v.value
				}
				return a.out.json(m)
			}
			for _, v := range vars {
				a.out.printf("%s\n", quote(v))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&shell, "shell", "", "`SHELL`: sh, bash, zsh, fish, powershell or cmd (default: from the variable SHELL)")
	cmd.Flags().StringVar(&bucketName, "bucket", "", "also set TIGRIS_STORAGE_BUCKET, to `BUCKET`")
	a.bucketFlag(cmd, "bucket")
	return cmd
}

// shellName takes a shell's name from its path; one that isn't known is taken for one like sh.
func shellName(path string) string {
	name := filepath.Base(path)
	if name == "fish" {
		return name
	}
	return "sh"
}

// quoting returns how a shell is told a variable.
func quoting(shell string) (func(variable) string, error) {
	switch shell {
	case "sh", "bash", "zsh", "dash", "ksh":
		return func(v variable) string { return "export " + v.name + "=" + quotePOSIX(v.value) }, nil
	case "fish":
		return func(v variable) string {
			return "set -gx " + v.name + " '" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(v.value) + "'"
		}, nil
	case "powershell", "pwsh":
		return func(v variable) string {
			return "$Env:" + v.name + " = '" + strings.ReplaceAll(v.value, "'", "''") + "'"
		}, nil
	case "cmd":
		// cmd has no quoting: % would be expanded, and nothing but doubling it helps in a file.
		return func(v variable) string { return `set "` + v.name + "=" + strings.ReplaceAll(v.value, "%", "%%") + `"` }, nil
	}
	return nil, usage("--shell "+shell, "want sh, bash, zsh, fish, powershell or cmd")
}

// quotePOSIX quotes a word for sh, unless nothing in it is special.
func quotePOSIX(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && !strings.ContainsRune("-_./:@%+,", r)
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// variables returns what clients need, from the context or, if the server was named otherwise, from the server.
func (a *app) variables(ctx context.Context, bucketName string) ([]variable, error) {
	t, err := a.find()
	if err != nil {
		return nil, err
	}
	s3, region, caFile := "", "auto", first(a.caCert, a.Getenv("AGENTRUN_CA_CERT"))
	if t.context != nil {
		s3, region, caFile = t.context.S3Endpoint, first(t.context.Region, region), first(caFile, t.context.CACertFile)
	} else {
		c, err := client.New(t.endpoint, t.key, client.Options{CA: t.ca})
		if err != nil {
			return nil, err
		}
		defer c.Close()
		s, err := c.Server(ctx)
		if err != nil {
			return nil, err
		}
		s3, region = s.S3Endpoint, s.Region
	}
	id, secret, ok := strings.Cut(t.key, ".")
	if !ok || id == "" || secret == "" {
		return nil, errs.Msg(errs.Invalid, "env", "key", "want <id>.<secret>")
	}
	vars := []variable{
		{"AGENTRUN_ENDPOINT", t.endpoint},
		{"AGENTRUN_API_KEY", t.key},
		{"AWS_ENDPOINT_URL", s3},
		{"AWS_ENDPOINT_URL_S3", s3},
		{"AWS_ENDPOINT_URL_IAM", s3},
		{"AWS_ACCESS_KEY_ID", id},
		{"AWS_SECRET_ACCESS_KEY", secret},
		{"AWS_REGION", region},
		{"AWS_DEFAULT_REGION", region},
		{"TIGRIS_STORAGE_ENDPOINT", s3},
		{"TIGRIS_STORAGE_ACCESS_KEY_ID", id},
		{"TIGRIS_STORAGE_SECRET_ACCESS_KEY", secret},
		{"TIGRIS_FORCE_PATH_STYLE", "1"},
		{"TIGRIS_NO_TELEMETRY", "1"},
		{"TIGRIS_NO_UPDATE_CHECK", "1"},
	}
	if bucketName != "" {
		vars = append(vars, variable{"TIGRIS_STORAGE_BUCKET", bucketName})
	}
	if caFile != "" {
		vars = append(vars, variable{"AGENTRUN_CA_CERT", caFile}, variable{"AWS_CA_BUNDLE", caFile}, variable{"NODE_EXTRA_CA_CERTS", caFile})
	}
	return vars, nil
}
