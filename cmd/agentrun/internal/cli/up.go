package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"agentrun.dev/cmd/agentrun/internal/server"
	"agentrun.dev/cmd/agentrun/internal/settings"
	"agentrun.dev/errs"
	"agentrun.dev/serve/mcp"
)

func (a *app) up() *cobra.Command {
	c := server.Config{Version: version(), GuestCache: a.guestCache()}
	var auditKeep, mcpBase string
	var vm *microVMs
	cmd := &cobra.Command{
		Use:   "up [--data DIR] [--listen HOST:PORT] [--s3-listen HOST:PORT] [--ssh-listen HOST:PORT [--ssh-base BUCKET] [--ssh-auth open|keys]]",
		Short: "Run a server until it is told to end",
		Long: `Run a server until SIGINT or SIGTERM: the API at --listen, S3 at --s3-listen, everything kept in one
directory. Port 0 takes a free one; what is printed is what was taken. The other commands find the
server through a file in the user's configuration folder.

The root key comes from AGENTRUN_ACCESS_KEY_ID and AGENTRUN_SECRET_ACCESS_KEY; without them one is
made in DIR/root-key.json. Addresses that others can reach need TLS. /healthz, /readyz and /metrics
are at the API's address.

With --ssh-listen, 'ssh -p PORT HOST' is a shell in a sandbox on a fork of --ssh-base (or of the bucket
that BUCKET_NAME names; an empty bucket without either), which is gone when the client disconnects; so
are scp, sftp and rsync. 'ssh BUCKET@HOST' forks that bucket instead; 'ssh +TEMPLATE@HOST' is a sandbox
of a template, of whichever engine. With --ssh-auth keys, a client
shows an API key as the password, or a public key of the file --ssh-authorized-keys, and forks what that
key may read; with open, it is let in. Open is the default where only this machine can connect; said
for other addresses, it gives everyone the base, and no other bucket. Without a key there is no template
but --ssh-template.

Models connect at /mcp of the API's address, with the Model Context Protocol; see 'agentrun mcp'.

With --microvm-kernel, templates may say 'engine: microvm': their sandboxes are virtual machines on KVM,
each with a Linux of its own. The kernel and its modules are the host's or those of a package, such as
Debian's linux-image-cloud-amd64; 'agentrun doctor' says what the host lacks. Without it, or where KVM
doesn't do, such templates are refused, and all else works.`,
		Example: a.example(`
  agentrun up
  agentrun up --data /var/lib/agentrun --listen 0.0.0.0:7070 --s3-listen 0.0.0.0:7071 --tls-self-signed
  agentrun up --ssh-listen 127.0.0.1:7022 --ssh-base base
  agentrun up --microvm-kernel /boot/vmlinuz-6.1.0-41-cloud-amd64 --microvm-modules /lib/modules/6.1.0-41-cloud-amd64
  agentrun up --listen 127.0.0.1:0 --s3-listen 127.0.0.1:0 --json`),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.Data == "" {
				dir, err := a.dataDir()
				if err != nil {
					return err
				}
				c.Data = dir
			}
			abs, err := filepath.Abs(c.Data)
			if err != nil {
				return errs.New(errs.Invalid, "up", c.Data, err)
			}
			c.Data = abs
			c.Root = settings.RootKey{ID: a.Getenv("AGENTRUN_ACCESS_KEY_ID"), Secret: a.Getenv("AGENTRUN_SECRET_ACCESS_KEY")}
			keep, err := parseLifetime("--audit-keep", auditKeep)
			if err != nil {
				return err
			}
			c.AuditKeep = time.Duration(keep) * time.Second
			if err := vm.complete(); err != nil {
				return err
			}
			if c.MCP.Base, err = mcp.ParseBase(mcpBase); err != nil {
				return err
			}
			if c.SSH.Base == "" {
				c.SSH.Base = a.Getenv("BUCKET_NAME")
			}
			c.Log = slog.New(slog.NewTextHandler(a.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
			return a.serve(cmd.Context(), c)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Data, "data", "", "`DIR` of the store (default ~/.local/share/agentrun)")
	f.StringVar(&c.Listen, "listen", "127.0.0.1:7070", "address of the API, `HOST:PORT`")
	f.StringVar(&c.S3Listen, "s3-listen", "127.0.0.1:7071", "address of S3, `HOST:PORT`")
	f.StringVar(&c.TLSCert, "tls-cert", "", "`FILE` with the certificate, in PEM")
	f.StringVar(&c.TLSKey, "tls-key", "", "`FILE` with its private key, in PEM")
	f.BoolVar(&c.SelfSigned, "tls-self-signed", false, "make a certificate, and keep it in DIR/tls")
	f.StringSliceVar(&c.Domains, "s3-domain", nil, "`DOMAIN` below which the first label names a bucket (repeatable)")
	f.DurationVar(&c.History, "history", time.Hour, "`TIME` for which any past moment of a bucket can be read")
	f.StringVar(&c.SSH.Listen, "ssh-listen", "", "address of SSH, `HOST:PORT` (default: none)")
	f.StringVar(&c.SSH.Base, "ssh-base", "", "`BUCKET`, or BUCKET@SNAPSHOT, that SSH sessions fork (default $BUCKET_NAME, else an empty one)")
	f.StringVar(&c.SSH.Template, "ssh-template", "", "`TEMPLATE` whose sandboxes SSH sessions get where the user's name isn't a bucket's (default: the server's own, on --ssh-base)")
	f.StringVar(&c.SSH.Auth, "ssh-auth", "", "who may log in, `open|keys` (default: open where only this machine can connect, else keys)")
	f.StringVar(&c.SSH.Authorized, "ssh-authorized-keys", "", "`FILE` of public keys, as OpenSSH has it, with access-key=\"ID\" as an option (default DIR/ssh/authorized_keys)")
	f.BoolVar(&c.SSH.Keep, "ssh-keep", false, "keep the forks of SSH sessions; without it a client asks by setting AGENTRUN_KEEP=1")
	f.StringArrayVar(&c.SSH.Network, "ssh-allow-net", nil, "a `HOST[:PORT]` that SSH sessions may connect to, as run --allow-net has it (repeatable)")
	f.DurationVar(&c.SSH.Idle, "ssh-idle", 4*time.Hour, "`TIME` without a byte after which a session ends")
	f.StringVar(&c.PortHost, "port-host", "", "`DOMAIN` beneath which PORT-ID.DOMAIN is a server in a sandbox (default localhost)")
	f.StringVar(&c.E2BDomain, "e2b-domain", "", "`DOMAIN[:PORT]` beneath which E2B's clients find api and PORT-ID (default: that of --port-host, with the API's port)")
	f.BoolVar(&c.NoLocalNode, "no-local-node", false, "run the service's sandboxes on other hosts only")
	f.StringVar(&c.NodeListen, "node-listen", "", "address for nodes on other hosts, `HOST:PORT` (default: none)")
	f.StringArrayVar(&c.BuildNetwork, "build-network", nil, "a `HOST[:PORT]` that init lines of templates may connect to, as run --allow-net has it (repeatable)")
	f.StringVar(&mcpBase, "mcp-base", "", "what sandboxes of models' conversations are made of, `KIND=NAME` with template, pool, snapshot, fork or sandbox (default template=base)")
	f.StringArrayVar(&c.MCP.Origins, "mcp-origin", nil, "`ORIGIN` of browsers' pages that may connect to /mcp, such as https://console.example (repeatable)")
	f.StringVar(&auditKeep, "audit-keep", "", "`TIME` that entries of the audit log are kept, such as 90d (default: for ever)")
	vm = microVMFlags(f, &c.MicroVM)
	f.IntVar(&c.SSH.Max, "ssh-max", 2000, "`N` connections at once")
	return cmd
}

// dataDir is where a server keeps its store if nobody says otherwise.
func (a *app) dataDir() (string, error) {
	if dir := a.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "agentrun"), nil
	}
	home, err := a.HomeDir()
	if err != nil {
		return "", errs.New(errs.Invalid, "up", "", err).WithHint("say where to keep the store: --data DIR")
	}
	return filepath.Join(home, ".local", "share", "agentrun"), nil
}

// serve runs a server until a signal. A second signal ends the process at once.
func (a *app) serve(ctx context.Context, c server.Config) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if c.History == 0 {
		c.History = -1 // none, as the flag's zero says
	}
	s, err := server.Start(ctx, c)
	if err != nil {
		return err
	}
	found := &settings.Context{Endpoint: s.Endpoint, S3Endpoint: s.S3Endpoint, Region: "auto", APIKey: s.Root.Token(),
		CACert: s.CACert, CACertFile: s.CACertFile, Data: c.Data, PID: os.Getpid(), Started: time.Now().UTC()}
	file, err := a.contextFile()
	if err == nil {
		err = settings.WriteContext(file, found)
	}
	if err != nil { // the server runs all the same; commands must be told where
		fmt.Fprintf(a.Stderr, "%s: %v\n  other commands need --endpoint %s and --key\n", a.Name, err, s.Endpoint)
	} else {
		defer settings.RemoveContext(file, found)
	}
	of := "on a fork of " + first(c.SSH.Base, "an empty bucket")
	if c.SSH.Template != "" {
		of = "of template " + c.SSH.Template
	}
	a.announce(s, found, file, of)
	go func() { // ends with ctx, which ends with this function
		<-ctx.Done()
		stop()
	}()
	return s.Run(ctx)
}

// announce says where the server is and how to use it; of is what SSH sessions are made of. It never prints the secret.
func (a *app) announce(s *server.Server, c *settings.Context, file, of string) {
	if a.json {
		b, _ := json.Marshal(struct {
			Endpoint    string `json:"endpoint"`
			S3Endpoint  string `json:"s3Endpoint"`
			SSH         string `json:"ssh,omitempty"`
			Region      string `json:"region"`
			AccessKeyID string `json:"accessKeyId"`
			RootKeyFile string `json:"rootKeyFile,omitempty"`
			CACertFile  string `json:"caCertFile,omitempty"`
			Data        string `json:"data"`
			Context     string `json:"context"`
			PID         int    `json:"pid"`
		}{s.Endpoint, s.S3Endpoint, s.SSHEndpoint, c.Region, s.Root.ID, s.RootKeyFile, s.CACertFile, c.Data, file, c.PID})
		a.out.printf("%s\n", b)
		return
	}
	line := func(label, value string) { a.out.printf("  %s %s\n", a.out.paint(dim, pad(label, 9)), value) }
	a.out.printf("%s\n", a.out.paint(bold, "AgentRun is up"))
	line("API", s.Endpoint)
	line("S3", s.S3Endpoint+"  (any region, path or virtual-host style)")
	if s.SSHEndpoint != "" {
		host, port, _ := net.SplitHostPort(s.SSHEndpoint)
		who := "by key"
		if s.SSHOpen {
			who = "open to whoever can connect"
		}
		line("SSH", "ssh -p "+port+" "+host+"  (a sandbox each, "+of+"; "+who+")")
	}
	line("data", c.Data)
	if s.RootKeyFile != "" {
		line("root key", s.Root.ID+", its secret in "+s.RootKeyFile)
	} else {
		line("root key", s.Root.ID+", from the environment")
	}
	if s.CACertFile != "" {
		line("trust", s.CACertFile)
	}
	a.out.printf(`
Use it from another terminal:
  eval "$(agentrun env)"                      # for aws-cli, S3 SDKs, rclone, tigris
  agentrun buckets create base
  agentrun cp -r . s3://base/
  agentrun forks create base --name task-1    # at once, whatever the size
  agentrun run --bucket task-1 -- 'ls | wc -l'

Ctrl-C ends it.
`)
}
