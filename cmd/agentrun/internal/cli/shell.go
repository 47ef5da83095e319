package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"agentrun.dev/api"
	"agentrun.dev/client"
	"agentrun.dev/cmd/agentrun/internal/sandbox"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
)

func (a *app) shell() *cobra.Command {
	var f runFlags
	var keep bool
	cmd := &cobra.Command{
		Use:   "shell [BUCKET] [--keep] [-v HOSTDIR:PATH[:ro]]... [-w DIR] [-e NAME=VALUE]...",
		Short: "Open a shell in a sandbox, on a fork of a bucket",
		Long: `Open a shell in a sandbox. With a BUCKET, or BUCKET@SNAPSHOT, the server runs it on a fork of the
bucket, at /workspace: nothing that is done there reaches the bucket, and the fork is gone when the
shell ends, unless --keep keeps it for 'diff' and 'merge'. Without a BUCKET the shell runs in this
process, in memory and in folders that are given with -v; with --data too, on a fork in a store that no
server has open.

Without a terminal it runs the commands that it reads. The exit status is the shell's own; 125 if
AgentRun failed.`,
		Example: a.example(`
  agentrun shell
  agentrun shell base
  agentrun shell base --keep
  agentrun shell -v .:/src:ro -w /src`),
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeBuckets(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.wrapped = true
			return a.openShell(cmd.Context(), &f, args, keep)
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&keep, "keep", false, "keep the fork, as a bucket")
	fs.StringArrayVarP(&f.volumes, "volume", "v", nil, "a folder of this machine, `HOSTDIR:PATH[:ro]` (repeatable)")
	fs.StringVarP(&f.dir, "workdir", "w", "", "start directory `DIR` (default /workspace)")
	fs.StringArrayVarP(&f.env, "env", "e", nil, "a variable of the shell's environment, `NAME=VALUE` (repeatable)")
	fs.StringArrayVar(&f.network, "allow-net", nil, "a `HOST[:PORT]` that may be connected to, *.HOST for all below it, * for any public one (repeatable)")
	fs.StringVar(&f.data, "data", "", "`DIR` of a store that no server has open")
	return cmd
}

// shellSession is a shell that this process' terminal is connected to, or its standard streams.
type shellSession struct {
	bucket  string    // that is forked: BUCKET or BUCKET@SNAPSHOT; "" for none
	size    *api.Size // of the terminal; nil without one
	resizes chan api.Size
	keep    bool
	kept    []api.Mount
	ended   os.Signal // what has ended it from outside
}

// in makes a sandbox of this process the session's.
func (s *shellSession) in(spec *sandbox.Spec) {
	if s.size != nil {
		spec.TTY, spec.Resizes = &engine.Size{Cols: s.size.Cols, Rows: s.size.Rows}, s.resizes
	}
	if s.keep {
		spec.Kept = func(names map[string]string) error {
			for path, name := range names {
				s.kept = append(s.kept, api.Mount{Bucket: name, Path: path})
			}
			return nil
		}
	}
}

// over makes an execution on the server the session's.
func (s *shellSession) over(e *api.Exec, streams *client.Streams) {
	e.TTY, e.Keep, streams.Resizes = s.size, s.keep, s.resizes
	streams.Kept = func(k []api.Mount) { s.kept = k }
}

// openShell runs the shell, and restores the terminal however it ends.
func (a *app) openShell(ctx context.Context, f *runFlags, args []string, keep bool) (err error) {
	s := &shellSession{keep: keep, resizes: make(chan api.Size, 1)}
	f.shell = s
	of := "in memory"
	if len(args) > 0 {
		s.bucket, of = args[0], "on a fork of "+args[0]
	} else if keep {
		return usage("--keep", "which bucket's fork?").WithHint("agentrun shell BUCKET --keep")
	}
	if isTerminal(a.Stdin) && isTerminal(a.Stdout) {
		fmt.Fprintf(a.Stderr, "A sandbox %s. It ends with this shell; try 'snapshot --help'.\n", of)
		f.env = append(a.terminalEnv(), f.env...)
		var restore func()
		if ctx, restore, err = s.raw(ctx, a.Stdin, a.Stdout); err != nil {
			return errs.New(errs.Other, "shell", "terminal", err)
		}
		defer func() { // what is said from here on needs a terminal as it was
			restore()
			if s.ended != nil {
				a.status, err = 128+int(s.ended.(syscall.Signal)), nil
			}
			for _, m := range s.kept {
				fmt.Fprintf(a.Stderr, "kept as bucket %s\n", m.Bucket)
			}
		}()
		return a.runCommand(ctx, f, []string{"bash", "-l"})
	}
	err = a.runCommand(ctx, f, []string{"bash", "-l"})
	for _, m := range s.kept {
		fmt.Fprintf(a.Stderr, "kept as bucket %s\n", m.Bucket)
	}
	return err
}

// terminalEnv is what programs must know of this terminal and its user's language.
func (a *app) terminalEnv() (env []string) {
	for _, name := range []string{"TERM", "COLORTERM", "NO_COLOR", "LANG", "LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_MESSAGES", "LC_NUMERIC", "LC_TIME"} {
		if v := a.Getenv(name); v != "" && !strings.ContainsRune(v, 0) {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// raw hands the terminal's keys to the session: until restore, none is a signal or an edit here. The context ends when this
// process is told to. A terminal that changes its size, and one that comes back from a stop, are taken care of.
func (s *shellSession) raw(ctx context.Context, in, out *os.File) (_ context.Context, restore func(), err error) {
	fd := int(in.Fd())
	old, err := term.MakeRaw(fd)
	if err != nil {
		return nil, nil, err
	}
	size := func() api.Size {
		w, h, err := term.GetSize(int(out.Fd()))
		if err != nil || w < 0 || h < 0 || w > api.MaxSize || h > api.MaxSize {
			return api.Size{Cols: 80, Rows: 24}
		}
		return api.Size{Cols: w, Rows: h}
	}
	first := size()
	s.size = &first
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGWINCH, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGCONT)
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-done:
				return
			case sig := <-signals:
				switch sig {
				case syscall.SIGWINCH:
					s.resize(size())
				case syscall.SIGCONT: // whoever had the terminal meanwhile has set it otherwise
					_, _ = term.MakeRaw(fd)
					s.resize(size())
				default:
					s.ended = sig
					cancel()
					return
				}
			}
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		watching.Wait()
		cancel()
		_ = term.Restore(fd, old)
	}, nil
}

// resize leaves the newest size for whoever passes it on.
func (s *shellSession) resize(size api.Size) {
	select {
	case <-s.resizes:
	default:
	}
	s.resizes <- size
}
