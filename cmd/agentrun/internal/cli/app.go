// Package cli is the command line of AgentRun: each command parses its arguments, makes its requests and prints.
//
// Everything that a command takes from its surroundings comes through App. Results go to the standard output, as a
// table or, with --json, as JSON; errors, hints and progress go to the standard error.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"agentrun.dev/api"
	"agentrun.dev/client"
	"agentrun.dev/errs"
)

// Exit statuses. Commands that run a command return that one's own, or one of the last three.
const (
	exitDone     = 0
	exitFailed   = 1
	exitUsage    = 2
	exitConflict = 3
	exitNotFound = 4
	exitDenied   = 5

	exitAgentRun  = 125 // AgentRun itself failed
	exitCantRun   = 126
	exitNoCommand = 127
)

// App is the program's surroundings.
type App struct {
	Name           string // as it was called: agentrun or tigris
	Stdin          *os.File
	Stdout, Stderr *os.File
	Getenv         func(string) string
	ConfigDir      func() (string, error)
	HomeDir        func() (string, error)
	CacheDir       func() (string, error)
}

// guestCache returns where compiled guests are kept, "" for nowhere.
func (a *App) guestCache() string {
	if a.CacheDir == nil {
		return ""
	}
	dir, err := a.CacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "agentrun", "wasm")
}

// app is an App in a run.
type app struct {
	App
	json     bool
	endpoint string
	key      string
	caCert   string
	client   *client.Client // once connected
	out      *output
	inRun    bool // the command itself was begun: what fails is no longer a matter of usage
	wrapped  bool // the command is one that returns another's exit status
	status   int  // exit status of a command that did its work
}

// Run runs one command line and returns the exit status.
func (a App) Run(ctx context.Context, args []string) int {
	if a.Name != "tigris" {
		a.Name = "agentrun"
	}
	x := &app{App: a}
	x.out = newOutput(x)
	root := x.root()
	root.SetArgs(args)
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	err := root.ExecuteContext(ctx)
	if x.client != nil {
		x.client.Close()
	}
	if err != nil {
		return x.fail(err)
	}
	return x.status
}

// fail prints an error and returns its exit status.
func (a *app) fail(err error) int {
	status := a.exitStatus(err)
	if errors.Is(err, errSilent) {
		return status
	}
	text, hint := err.Error(), errs.HintOf(err)
	if !a.inRun { // cobra's own words
		first, rest, _ := strings.Cut(text, "\n")
		text = strings.ToLower(first[:min(1, len(first))]) + first[min(1, len(first)):]
		if rest = strings.TrimSpace(rest); rest != "" {
			hint = strings.Join(strings.Fields(strings.ReplaceAll(rest, "Did you mean this?", "did you mean")), " ") + "?"
		}
	}
	if a.json {
		p := api.Problem{Title: "error", Status: status, Detail: text, Kind: errs.KindOf(err).String(), Hint: hint}
		if !a.inRun {
			p.Kind = errs.Invalid.String()
		}
		p.Type = api.ProblemType + strings.ReplaceAll(p.Kind, " ", "-")
		var e *client.Error
		if errors.As(err, &e) {
			p.Merge = e.Problem.Merge
		}
		b, _ := json.Marshal(struct {
			Error api.Problem `json:"error"`
		}{p})
		fmt.Fprintf(a.Stderr, "%s\n", b)
		return status
	}
	fmt.Fprintf(a.Stderr, "%s: %s\n", a.Name, text)
	if hint != "" {
		fmt.Fprintf(a.Stderr, "  %s\n", strings.ReplaceAll(hint, "'agentrun ", "'"+a.Name+" "))
	}
	return status
}

// errSilent ends a command whose failure was told already.
var errSilent = errors.New("told already")

// exitStatus translates an error.
func (a *app) exitStatus(err error) int {
	if !a.inRun {
		return exitUsage
	}
	kind := errs.KindOf(err)
	if a.wrapped {
		if kind == errs.Invalid {
			return exitUsage
		}
		return exitAgentRun
	}
	switch kind {
	case errs.Invalid:
		return exitUsage
	case errs.Conflict, errs.Exists, errs.NotEmpty, errs.Precondition:
		return exitConflict
	case errs.NotFound:
		return exitNotFound
	case errs.Denied, errs.Unauthorized:
		return exitDenied
	}
	return exitFailed
}

// usage is an error of the command line itself.
func usage(thing, text string) *errs.Error { return errs.Msg(errs.Invalid, "usage", thing, text) }

// root makes the tree of commands. Called tigris, it has those of the storage only.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   a.Name,
		Short: "Every agent gets its own copy of the world: forkable buckets, and sandboxes on them",
		Long: `Every agent gets its own copy of the world, at once. It works in it without being able to harm
anything, and what it did can be looked at, compared, merged or thrown away.

Exit status: 0 done, 1 failed, 2 usage, 3 conflict, 4 not found, 5 denied. 'run' returns the
command's own; 125 AgentRun itself failed, 126 the command can't be run, 127 there is none.`,
		Example: a.example(`
  agentrun up                                # in one terminal
  agentrun buckets create base               # in another
  agentrun cp -r . s3://base/
  agentrun forks create base --name task-1
  agentrun run --bucket task-1 -- 'ls | wc -l'
  agentrun diff base task-1
  agentrun merge task-1`),
		Version:           version(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
		Args:              cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
	}
	root.SuggestionsMinimumDistance = 2
	f := root.PersistentFlags()
	f.StringVar(&a.endpoint, "endpoint", "", "`URL` of the server's API (default AGENTRUN_ENDPOINT, else the server that 'up' started)")
	f.StringVar(&a.key, "key", "", "API key, `ID.SECRET` (default AGENTRUN_API_KEY, else the key of that server)")
	f.StringVar(&a.caCert, "ca-cert", "", "`FILE` with certificates to trust, in PEM (default AGENTRUN_CA_CERT)")
	f.BoolVar(&a.json, "json", false, "print JSON")
	grouped := func(id, title string, commands ...*cobra.Command) {
		root.AddGroup(&cobra.Group{ID: id, Title: title + ":"})
		for _, c := range commands {
			c.GroupID = id
		}
		root.AddCommand(commands...)
	}
	if a.Name == "agentrun" {
		grouped("now", "A sandbox for one command", a.run(), a.shell())
		grouped("service", "Sandboxes that live on", a.apply(), a.get(), a.deleteObjects(), a.claim(), a.exec(), a.sandboxes(), a.volumes(), a.templates(), a.pools(),
			a.logs(), a.events(), a.secrets(), a.mcp())
	}
	grouped("storage", "Buckets", a.buckets(), a.snapshots(), a.forks(), a.diff(), a.merge(), a.rebase(), a.cp(), a.usage(), a.env())
	grouped("who", "Administration", a.keys())
	if a.Name == "agentrun" {
		for _, c := range []*cobra.Command{a.up(), a.forkd(), a.nodes(), a.principals(), a.audit(), a.gc(), a.fsck(), a.doctor()} {
			c.GroupID = "who"
			root.AddCommand(c)
		}
		root.AddCommand(a.version())
	}
	a.prepare(root)
	return root
}

// prepare gives every command what all have in common.
func (a *app) prepare(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return errs.New(errs.Invalid, subcommand(c), "", err).WithHint("see '" + c.CommandPath() + " --help'")
	})
	cmd.Flags().SortFlags = false
	cmd.DisableFlagsInUseLine = true
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(c *cobra.Command, args []string) error {
			a.inRun = true
			return run(c, args)
		}
	}
	if check := cmd.Args; check != nil {
		cmd.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return errs.New(errs.Invalid, subcommand(c), "", plainly(err, len(args))).WithHint("usage: " + c.UseLine())
			}
			return nil
		}
	}
	for _, c := range cmd.Commands() {
		a.prepare(c)
	}
}

// group is a command that only holds others.
func (a *app) group(use, short string, commands ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs, RunE: func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(cmd, args[0])
		}
		cmd.SetOut(a.Stderr)
		_ = cmd.Help()
		return errs.New(errs.Invalid, "", "", errSilent)
	}}
	g.AddCommand(commands...)
	return g
}

// subcommand returns a command's path without the program's name, which every error begins with anyway.
func subcommand(cmd *cobra.Command) string {
	return strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()), " ")
}

// plainly says of how many arguments there are in words, where cobra says "accepts 1 arg(s), received 0".
func plainly(err error, n int) error {
	want, ok := strings.CutPrefix(err.Error(), "accepts ")
	if !ok {
		if want, ok = strings.CutPrefix(err.Error(), "requires "); !ok {
			return err
		}
	}
	want, _, _ = strings.Cut(want, " arg(s)")
	return fmt.Errorf("want %s, got %d", strings.Replace(want+" arguments", "1 arguments", "1 argument", 1), n)
}

func unknownCommand(cmd *cobra.Command, name string) error {
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	hint := "see '" + cmd.CommandPath() + " --help'"
	if s := cmd.SuggestionsFor(name); len(s) > 0 {
		hint = "did you mean '" + cmd.CommandPath() + " " + strings.Join(s, "' or '"+cmd.CommandPath()+" ") + "'?"
	}
	return errs.Msg(errs.Invalid, subcommand(cmd), name, "no such command").WithHint(hint)
}

// example sets a help text's examples under the program's own name.
func (a *app) example(s string) string {
	return strings.ReplaceAll(strings.Trim(s, "\n"), "agentrun ", a.Name+" ")
}

// version returns the module's version, as it was built.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "devel"
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				v += "-" + s.Value[:12]
			}
		}
	}
	return v
}

func (a *app) version() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print the program's version", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
		if a.json {
			return a.out.json(map[string]string{"version": version()})
		}
		a.out.printf("%s %s\n", a.Name, version())
		return nil
	}}
}
