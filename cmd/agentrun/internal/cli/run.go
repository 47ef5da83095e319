package cli

import (
	"context"
	"os"
	"os/signal"
	"path"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"agentrun.dev/api"
	"agentrun.dev/bucket"
	"agentrun.dev/client"
	"agentrun.dev/cmd/agentrun/internal/sandbox"
	"agentrun.dev/cmd/agentrun/internal/server"
	"agentrun.dev/engine/userspace"
	"agentrun.dev/errs"
	"agentrun.dev/node"
)

// runFlags are what 'run' was asked for.
type runFlags struct {
	buckets, volumes, env []string
	network               []string
	dir, data             string
	shell                 *shellSession // nil for run
}

func (a *app) run() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [--bucket NAME[:PATH][:ro] | -v HOSTDIR:PATH[:ro]]... [-w DIR] [-e NAME=VALUE]... [--] COMMAND [ARG...]",
		Short: "Run a command in a sandbox, over a fork or by itself",
		Long: `Run a command in a sandbox. It sees nothing of this machine but what is given to it. A COMMAND by
itself is a shell script; with arguments, it is run as it stands.

With --bucket the server runs it over the bucket, which is the start directory, /workspace: what it
writes are objects at once, and 'rm -rf /' harms that bucket only. Further buckets are at /NAME.

Without --bucket it runs in this process, in memory, and leaves nothing behind, except in folders that
are given with -v. With --data too, over a bucket of a store that no server has open. It has no network
but for what --allow-net names.

The exit status is the command's own; 125 if AgentRun failed, 126 if the command can't be run, 127 if
there is none.`,
		Example: a.example(`
  agentrun run -- 'echo hello | wc -c'
  agentrun run --bucket task-42 -- grep -rn TODO src
  agentrun run --bucket task-42 --bucket datasets:/data:ro -- 'wc -l /data/*.csv > counts.txt'
  agentrun run -v .:/src:ro -w /src -- 'find . -name "*.go" | wc -l'
  agentrun run --allow-net example.org:443 -- 'curl -s https://example.org | wc -c'`),
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			a.wrapped = true
			if len(args) == 0 || args[0] == "" {
				return usage("run", "which command?").WithHint("agentrun run [--bucket NAME] -- COMMAND")
			}
			if len(args) == 1 {
				args = []string{"sh", "-c", args[0]}
			}
			return a.runCommand(cmd.Context(), &f, args)
		},
	}
	fs := cmd.Flags()
	fs.SetInterspersed(false) // the command's own flags are its own
	fs.StringArrayVar(&f.buckets, "bucket", nil, "a bucket, `NAME[:PATH][:ro]`; the first is at /workspace, others at /NAME (repeatable)")
	fs.StringArrayVarP(&f.volumes, "volume", "v", nil, "a folder of this machine, `HOSTDIR:PATH[:ro]` (repeatable)")
	fs.StringVarP(&f.dir, "workdir", "w", "", "start directory `DIR` (default /workspace)")
	fs.StringArrayVarP(&f.env, "env", "e", nil, "a variable of the command's environment, `NAME=VALUE` (repeatable)")
	fs.StringArrayVar(&f.network, "allow-net", nil, "a `HOST[:PORT]` that may be connected to, *.HOST for all below it, * for any public one (repeatable)")
	fs.StringVar(&f.data, "data", "", "`DIR` of a store that no server has open")
	a.bucketFlag(cmd, "bucket")
	return cmd
}

// runCommand checks what was asked for, then runs it on the server or here.
func (a *app) runCommand(ctx context.Context, f *runFlags, args []string) error {
	mounts, err := parseMounts(f.buckets)
	if err != nil {
		return err
	}
	if f.shell != nil && f.shell.bucket != "" {
		mounts = []api.Mount{{Bucket: f.shell.bucket, Fork: true}}
	}
	hosts, err := parseVolumes(f.volumes)
	if err != nil {
		return err
	}
	for _, e := range f.env {
		if strings.IndexByte(e, '=') <= 0 {
			return usage("-e "+e, "want NAME=VALUE")
		}
	}
	if f.dir != "" && !path.IsAbs(f.dir) {
		return usage("-w "+f.dir, "want an absolute path of the sandbox")
	}
	taken := map[string]bool{}
	for i, m := range mounts {
		at := m.Path
		if at == "" {
			at = "/" + m.Bucket
			if i == 0 {
				at = sandbox.Workspace
			}
		}
		if taken[at] {
			return usage("--bucket "+m.Bucket, "there is one at "+at+" already")
		}
		taken[at] = true
	}
	for _, h := range hosts {
		if taken[h.Path] {
			return usage("-v "+h.Host+":"+h.Path, "there is something at "+h.Path+" already")
		}
		taken[h.Path] = true
	}
	if f.data != "" && len(mounts) == 0 {
		return usage("--data", "which bucket of it?").WithHint("add --bucket NAME")
	}
	e := api.Exec{Args: args, Env: f.env, Dir: f.dir, Mounts: mounts}
	if len(mounts) > 0 && f.data == "" {
		if len(f.network) > 0 {
			return usage("--allow-net", "the server runs the command, and its sandboxes have no network").
				WithHint("leave out --bucket, or give the store itself with --data DIR")
		}
		if len(hosts) > 0 {
			return usage("-v", "the server runs the command, and has no folders of this machine").
				WithHint("leave out --bucket, or give the store itself with --data DIR")
		}
		return a.runRemote(ctx, f, e)
	}
	return a.runHere(ctx, f, e, hosts)
}

// parseMounts reads NAME[:PATH][:ro].
func parseMounts(list []string) ([]api.Mount, error) {
	var out []api.Mount
	for _, s := range list {
		m := api.Mount{Bucket: s}
		m.Bucket, m.ReadOnly = cutMode(s)
		if name, at, ok := strings.Cut(m.Bucket, ":"); ok {
			m.Bucket, m.Path = name, at
			if !path.IsAbs(at) {
				return nil, usage("--bucket "+s, "want NAME, NAME:PATH or NAME:PATH:ro, with an absolute path")
			}
			m.Path = path.Clean(at)
		}
		if m.Bucket == "" || m.Path == "/" {
			return nil, usage("--bucket "+s, "want NAME, NAME:PATH or NAME:PATH:ro")
		}
		out = append(out, m)
	}
	return out, nil
}

// parseVolumes reads HOSTDIR:PATH[:ro].
func parseVolumes(list []string) ([]sandbox.Host, error) {
	var out []sandbox.Host
	for _, s := range list {
		rest, ro := cutMode(s)
		i := strings.LastIndexByte(rest, ':')
		if i <= 0 || !path.IsAbs(rest[i+1:]) || path.Clean(rest[i+1:]) == "/" {
			return nil, usage("-v "+s, "want HOSTDIR:PATH or HOSTDIR:PATH:ro, with an absolute path of the sandbox")
		}
		h := sandbox.Host{Host: rest[:i], Path: path.Clean(rest[i+1:]), ReadOnly: ro}
		if st, err := os.Stat(h.Host); err != nil {
			return nil, usage("-v "+s, fileError("open", h.Host, err).Error())
		} else if !st.IsDir() {
			return nil, usage("-v "+s, h.Host+" isn't a folder")
		}
		out = append(out, h)
	}
	return out, nil
}

// cutMode takes :ro or :rw from the end.
func cutMode(s string) (rest string, readOnly bool) {
	if rest, ok := strings.CutSuffix(s, ":ro"); ok {
		return rest, true
	}
	return strings.TrimSuffix(s, ":rw"), false
}

// forwarded are the signals that are the command's to handle, with their names.
var forwarded = map[os.Signal]string{syscall.SIGHUP: "HUP", syscall.SIGINT: "INT", syscall.SIGQUIT: "QUIT", syscall.SIGTERM: "TERM",
	syscall.SIGUSR1: "USR1", syscall.SIGUSR2: "USR2"}

// withSignals calls f with the signals that this process gets meanwhile, in the form that f wants.
func withSignals[T any](form func(os.Signal) T, f func(<-chan T)) {
	in := make(chan os.Signal, 8)
	for s := range forwarded {
		signal.Notify(in, s)
	}
	out, done := make(chan T, 8), make(chan struct{})
	var passing sync.WaitGroup
	passing.Go(func() {
		for {
			select {
			case s := <-in:
				select {
				case out <- form(s):
				default: // as a kernel does with what is pending already
				}
			case <-done:
				return
			}
		}
	})
	f(out)
	signal.Stop(in)
	close(done)
	passing.Wait()
}

// runRemote has the server run the command.
func (a *app) runRemote(ctx context.Context, f *runFlags, e api.Exec) (err error) {
	c, err := a.connect()
	if err != nil {
		return err
	}
	withSignals(func(s os.Signal) string { return forwarded[s] }, func(names <-chan string) {
		streams := client.Streams{Stdin: a.Stdin, Stdout: a.Stdout, Stderr: a.Stderr, Signals: names}
		if f.shell != nil {
			f.shell.over(&e, &streams)
		}
		a.status, err = c.Exec(ctx, e, streams)
	})
	return a.advise(err)
}

// runHere runs the command in this process: over a store's buckets or, without one, in memory.
func (a *app) runHere(ctx context.Context, f *runFlags, e api.Exec, hosts []sandbox.Host) (err error) {
	guests := userspace.NewGuests(userspace.GuestOptions{CacheDir: a.guestCache()})
	defer guests.Close()
	s := sandbox.Spec{Network: f.network, Args: e.Args, Env: e.Env, Dir: e.Dir, Hosts: hosts, Stdin: a.Stdin, Stdout: a.Stdout, Stderr: a.Stderr}
	var buckets *bucket.Store
	if f.data != "" {
		store, err := server.OpenStore(ctx, f.data, server.StoreOptions{Existing: true})
		if err != nil {
			return err
		}
		defer func() {
			if closeErr := store.Close(); err == nil {
				err = closeErr
			}
		}()
		buckets = store.Store
		for i, m := range e.Mounts {
			name, fork := m.Bucket, ""
			if m.Fork {
				fork = m.Bucket
				name, _, _ = strings.Cut(name, "@")
			}
			info, err := store.Info(ctx, name)
			if err != nil {
				return err
			}
			at := m.Path
			if at == "" {
				at = "/" + m.Bucket
				if i == 0 {
					at = sandbox.Workspace
				}
			}
			s.Buckets = append(s.Buckets, sandbox.Bucket{Info: info, Path: at, ReadOnly: m.ReadOnly, Fork: fork})
		}
	}
	n := node.New(sandbox.NodeOptions(buckets, guests))
	if buckets != nil {
		if _, err := n.Sweep(ctx); err != nil {
			return err
		}
	}
	if f.shell != nil {
		f.shell.in(&s)
	}
	withSignals(func(s os.Signal) int { return int(s.(syscall.Signal)) }, func(numbers <-chan int) {
		if f.shell == nil || f.shell.size == nil { // a terminal's keys are the sandbox's own
			s.Signals = numbers
		}
		a.status, err = sandbox.Run(ctx, n, s)
	})
	if err != nil && errs.KindOf(err) == errs.Other {
		return errs.New(errs.Other, "run", e.Args[0], err)
	}
	return err
}
