package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"agentrun.dev/api"
	"agentrun.dev/client"
	"agentrun.dev/errs"
)

// execFlags are what 'exec' was asked for.
type execFlags struct {
	env             []string
	dir, lang, sess string
	tty             bool
	timeout         int64
}

func (a *app) exec() *cobra.Command {
	var f execFlags
	cmd := &cobra.Command{
		Use:   "exec ID [-t] [-w DIR] [-e NAME=VALUE]... [-l LANGUAGE] [--] [COMMAND [ARG...]]",
		Short: "Run a command in a sandbox that lives on",
		Long: `Run a command in a sandbox, by its id or name; one that hibernates wakes up. A COMMAND by itself is a
shell script; with arguments, it is run as it stands; without one it is a shell, on a terminal.

With -l python or javascript the text is run by an interpreter that lives in the sandbox: names and
imports stay from one call to the next, and forks of the sandbox have them too.

The exit status is the command's own; 125 if AgentRun failed, 126 if the command can't be run, 127 if
there is none.`,
		Example: a.example(`
  agentrun exec alice                            # a shell
  agentrun exec alice -- 'ls | wc -l'
  agentrun exec alice -l python 'import math; x = math.pi'
  agentrun exec alice -l python 'x'
  tar c . | agentrun exec alice -- tar x -C /workspace`),
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completeSandboxes(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.wrapped = true
			c, err := a.connect()
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
			if f.lang != "" {
				return a.advise(a.execCode(cmd.Context(), c, &f, args[0], args[1:]))
			}
			return a.advise(a.execCommand(cmd.Context(), c, &f, args[0], args[1:]))
		},
	}
	fs := cmd.Flags()
	fs.SetInterspersed(true)
	fs.StringVarP(&f.dir, "workdir", "w", "", "start directory `DIR` (default the sandbox's)")
	fs.StringArrayVarP(&f.env, "env", "e", nil, "a variable of the command's environment, `NAME=VALUE` (repeatable)")
	fs.StringVarP(&f.lang, "language", "l", "", "what the text is: `python`, javascript, shell, or auto")
	fs.StringVar(&f.sess, "session", "", "`NAME` of the interpreter, where there are several")
	fs.BoolVarP(&f.tty, "tty", "t", false, "with a terminal (default when it is a shell on one)")
	fs.Int64Var(&f.timeout, "timeout", 0, "end it after so many `SECONDS`")
	return cmd
}

// execCommand runs a command with our own streams, or terminal.
func (a *app) execCommand(ctx context.Context, c *client.Client, f *execFlags, id string, args []string) (err error) {
	terminal := isTerminal(a.Stdin) && isTerminal(a.Stdout)
	tty := f.tty
	switch len(args) {
	case 0:
		args, tty = []string{"bash", "-l"}, terminal
	case 1:
		args = []string{"bash", "-c", args[0]}
	}
	e := api.Exec{Args: args, Env: f.env, Dir: f.dir, Mounts: []api.Mount{}, Timeout: f.timeout}
	s := &shellSession{resizes: make(chan api.Size, 1)}
	if tty {
		if !terminal {
			return usage("-t", "the standard input and output aren't a terminal")
		}
		e.Env = append(a.terminalEnv(), e.Env...)
		var restore func()
		if ctx, restore, err = s.raw(ctx, a.Stdin, a.Stdout); err != nil {
			return errs.New(errs.Other, "exec", "terminal", err)
		}
		defer restore()
		e.TTY = s.size
	}
	withSignals(func(sig os.Signal) string { return forwarded[sig] }, func(names <-chan string) {
		streams := client.Streams{Stdin: a.Stdin, Stdout: a.Stdout, Stderr: a.Stderr, Resizes: s.resizes}
		if !tty {
			streams.Signals = names
		}
		a.status, err = c.ExecIn(ctx, id, e, streams)
	})
	return err
}

// execCode runs a text by an interpreter of the sandbox.
func (a *app) execCode(ctx context.Context, c *client.Client, f *execFlags, id string, args []string) error {
	code := strings.Join(args, " ")
	if len(args) == 0 || code == "-" {
		text, err := io.ReadAll(io.LimitReader(a.Stdin, api.MaxBody))
		if err != nil {
			return errs.New(errs.Other, "exec", "standard input", err)
		}
		code = string(text)
	}
	in := api.Run{Code: code, Language: f.lang, Session: f.sess, Dir: f.dir, Timeout: float64(f.timeout)}
	if f.lang == "auto" {
		in.Language = ""
	}
	var err error
	if in.Env, err = pairs("-e", f.env); err != nil {
		return err
	}
	res, err := c.Run(ctx, id, in)
	if err != nil {
		return err
	}
	a.status = res.ExitCode
	if a.json {
		return a.out.json(res)
	}
	fmt.Fprint(a.Stdout, res.Stdout)
	fmt.Fprint(a.Stderr, res.Stderr)
	if res.Truncated {
		fmt.Fprintf(a.Stderr, "%s: the middle of the output was left out\n", a.Name)
	}
	return nil
}
