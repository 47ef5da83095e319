package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"agentrun.dev/api"
	"agentrun.dev/client"
	"agentrun.dev/cmd/agentrun/internal/server"
	"agentrun.dev/errs"
)

func (a *app) forkd() *cobra.Command {
	c := server.NodeConfig{Version: version(), GuestCache: a.guestCache()}
	var file string
	var vm *microVMs
	cmd := &cobra.Command{
		Use:   "forkd --join HOST:PORT --certificate FILE [--listen HOST:PORT] [--data DIR]",
		Short: "Run a node: sandboxes for a service on another host",
		Long: `Run a node until SIGINT or SIGTERM. It makes itself known to the service at --join, which then has it run
sandboxes. Both prove by certificates who they are: 'agentrun nodes certificate NAME', where the service
runs, makes the node's. The service must reach the node at --listen, or at --advertise where that is
another address. With --microvm-kernel it runs microVMs, too, as 'up' does.`,
		Example: a.example(`
  agentrun up --node-listen 0.0.0.0:7072                     # where the service runs
  agentrun nodes certificate node-1 > node-1.pem
  agentrun forkd --join service.example.org:7072 --certificate node-1.pem --listen 0.0.0.0:7073`),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return usage("--certificate", "which file?").WithHint("'agentrun nodes certificate NAME' makes it, where the service runs")
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return usage("--certificate "+file, fileError("open", file, err).Error())
			}
			c.Certificate = text
			if err := vm.complete(); err != nil {
				return err
			}
			if c.Data == "" {
				dir, err := a.dataDir()
				if err != nil {
					return err
				}
				c.Data = filepath.Join(filepath.Dir(dir), "agentrun-node")
			}
			if c.Data, err = filepath.Abs(c.Data); err != nil {
				return errs.New(errs.Invalid, "forkd", c.Data, err)
			}
			c.Log = slog.New(slog.NewTextHandler(a.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
			return a.serveNode(cmd.Context(), c)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Join, "join", "", "address of the service's nodes, its --node-listen: `HOST:PORT`")
	f.StringVar(&file, "certificate", "", "`FILE` that 'agentrun nodes certificate' made")
	f.StringVar(&c.Listen, "listen", "127.0.0.1:7073", "address at which the service reaches this node, `HOST:PORT`")
	f.StringVar(&c.Advertise, "advertise", "", "that address as the service sees it, `HOST:PORT` (default --listen)")
	f.StringVar(&c.Data, "data", "", "`DIR` of the node's store (default ~/.local/share/agentrun-node)")
	vm = microVMFlags(f, &c.MicroVM)
	f.IntVar(&c.Max, "max-sandboxes", 0, "`N` sandboxes at once (default: as memory allows)")
	return cmd
}

func (a *app) serveNode(ctx context.Context, c server.NodeConfig) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	n, err := server.StartNode(ctx, c)
	if err != nil {
		return err
	}
	if a.json {
		b, _ := json.Marshal(map[string]string{"node": n.Name, "address": n.Endpoint, "service": c.Join, "data": c.Data})
		a.out.printf("%s\n", b)
	} else {
		a.out.printf("node %s at %s, for the service at %s\n", n.Name, n.Endpoint, c.Join)
	}
	go func() { // ends with ctx, which ends with this function
		<-ctx.Done()
		stop()
	}()
	return n.Run(ctx)
}

func (a *app) nodes() *cobra.Command {
	list := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the nodes that run sandboxes", Args: cobra.NoArgs,
		RunE: a.withServer(func(ctx context.Context, c *client.Client, _ []string) error {
			list, err := c.Nodes(ctx)
			if err != nil {
				return err
			}
			if a.json {
				return a.out.json(list)
			}
			t := newTable("NAME", "STATUS", ">SANDBOXES", "ENGINES", ">MEMORY", ">FREE", "SEEN")
			for _, n := range list.Nodes {
				var engines []string
				for name, why := range n.Engines {
					if why == "" {
						engines = append(engines, name)
					}
				}
				slices.Sort(engines)
				t.add(n.Name, titled(n.State), strconv.Itoa(n.Sandboxes), strings.Join(engines, ","), size(uint64(n.Memory)), size(uint64(n.Free)), age(n.Seen))
			}
			a.out.table(t)
			return nil
		}),
	}
	get := &cobra.Command{
		Use: "get NAME", Aliases: []string{"show"}, Short: "Show a node: what it has, and which engines work there, or why not", Args: cobra.ExactArgs(1),
		RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
			n, err := c.Node(ctx, args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.out.json(n)
			}
			line := func(label, format string, v ...any) {
				a.out.printf("%s %s\n", pad(label, 10), fmt.Sprintf(format, v...))
			}
			line("name", "%s", n.Name)
			line("status", "%s, seen %s ago", titled(n.State), age(n.Seen))
			if n.Address != "" {
				line("address", "%s", n.Address)
			}
			line("memory", "%s, %s free", size(uint64(max(0, n.Memory))), size(uint64(max(0, n.Free))))
			line("processors", "%d", n.CPUs)
			line("sandboxes", "%d", n.Sandboxes)
			for _, name := range slices.Sorted(maps.Keys(n.Engines)) {
				line("engine", "%s: %s", name, first(n.Engines[name], "works"))
			}
			for _, t := range n.Templates {
				line("template", "%s", t)
			}
			return nil
		}),
	}
	var data string
	certificate := &cobra.Command{
		Use: "certificate NAME [--data DIR]", Short: "Make the certificate with which a node joins, where the service's data is",
		Long: `Make a certificate for a node and print it with its key, in PEM: keep it secret. It needs no server, only
the service's data directory, where the authority that makes certificates is kept. Whoever has the
certificate can take the node's place; it lasts two years.`,
		Example: a.example(`  agentrun nodes certificate node-1 > node-1.pem`),
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if !api.ValidName(args[0]) {
				return usage(args[0], "a node's name is 1 to 63 of a-z, 0-9 and '-', with no '-' at either end")
			}
			if data == "" {
				var err error
				if data, err = a.dataDir(); err != nil {
					return err
				}
			}
			text, err := server.NodeBundle(data, args[0])
			if err != nil {
				return err
			}
			a.out.printf("%s", text)
			return nil
		},
	}
	certificate.Flags().StringVar(&data, "data", "", "`DIR` of the service's store (default ~/.local/share/agentrun)")
	drain := func(use, short string, on bool) *cobra.Command {
		return &cobra.Command{Use: use + " NAME", Short: short, Args: cobra.ExactArgs(1),
			RunE: a.withServer(func(ctx context.Context, c *client.Client, args []string) error {
				n, err := c.DrainNode(ctx, args[0], on)
				if err != nil {
					return err
				}
				if a.json {
					return a.out.json(n)
				}
				a.out.printf("%s is %s\n", n.Name, n.State)
				return nil
			})}
	}
	g := a.group("nodes", "List nodes, let them join, and drain them", list, get, certificate,
		drain("drain", "Start nothing new on a node", true), drain("undrain", "Use a node again", false))
	g.Aliases = []string{"node"}
	return g
}
