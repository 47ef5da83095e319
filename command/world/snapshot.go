package world

import (
	"context"
	"fmt"
	"path"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/services"
	"agentrun.dev/command/tool"
)

const snapshotAbout = `Freeze the files of this sandbox, look at what changed since, and go back.

A snapshot costs nothing to take and shares all its data with the files: take
one before anything risky. It holds the files of the bucket that is the workspace; other
volumes and processes aren't part of it (see fork for those).

Commands:
  take [NAME]             freeze the files as they are now; prints the name
  list                    list the snapshots, oldest first
  diff [A [B]] [-- PATH]  what changed from snapshot A (by default the last
                          one) to snapshot B (by default the files as they are)
  restore NAME            make the files what they were in the snapshot; what
                          they are now is kept as a snapshot first
  delete NAME...          forget snapshots`

const snapshotNotes = `Examples:
  snapshot take before-upgrade      # freeze
  make install; snapshot diff       # what did that change?
  snapshot diff before-upgrade -- /workspace/etc
  snapshot restore before-upgrade   # undo all of it
  snapshot take --json | jq -r .name

In the output of diff, A is for an added file, M for a modified, D for a deleted
and R for a renamed one. Exit status: 0 done, 1 failed (diff --exit-code: there
are differences), 2 usage, 3 the name is taken, 4 no such snapshot, 5 this
sandbox has nothing to snapshot.

See also: fork --help, merge --help.`

const (
	keyJSON = tool.KeyOwn + iota
	keyExitCode
	keyNameOnly
	keyLease
	keyKill
	keyConflicts
)

var snapshotSpec = tool.Spec{
	Usage: []string{"take [--json] [NAME]", "list [--json]", "diff [--json] [-q] [A [B]] [-- PATH...]", "restore [--json] NAME", "delete NAME..."},
	About: snapshotAbout,
	Options: []getopt.Option{
		{Long: "json", Key: keyJSON, Help: "print JSON: an object, or one a line for list and diff"},
		{Short: 'q', Long: "quiet", Help: "print nothing but errors"},
		{Long: "name-only", Key: keyNameOnly, Help: "diff: print paths alone"},
		{Long: "exit-code", Key: keyExitCode, Help: "diff: exit with 1 if there are differences"},
	},
	Notes: snapshotNotes, Package: tool.Own, Fail: misused,
}

// snapshot is one call of the command.
type snapshot struct {
	t                               *tool.T
	c                               services.Control
	ctx                             context.Context
	json, quiet, nameOnly, exitCode bool
	args                            []string // operands after the subcommand
	paths                           []string // what stands after "--"
}

// Snapshot takes, lists, compares and restores snapshots.
func Snapshot(t *tool.T) int {
	s := &snapshot{t: t, ctx: t.Context()}
	args := t.Args()[1:]
	for i, a := range args {
		if a == "--" {
			args, s.paths = args[:i], args[i+1:]
			break
		}
	}
	opts, operands := t.ParseArgs(&snapshotSpec, args)
	for _, o := range opts {
		switch o.Key {
		case keyJSON:
			s.json = true
		case 'q':
			s.quiet = true
		case keyNameOnly:
			s.nameOnly = true
		case keyExitCode:
			s.exitCode = true
		}
	}
	if len(operands) == 0 {
		t.UsageError(misused, "missing command: take, list, diff, restore or delete")
	}
	verbs := map[string]struct {
		run      func() int
		min, max int
	}{
		"take": {s.take, 0, 1}, "create": {s.take, 0, 1}, "list": {s.list, 0, 0}, "ls": {s.list, 0, 0}, "diff": {s.diff, 0, 2},
		"restore": {s.restore, 1, 1}, "delete": {s.delete, 1, 1 << 20}, "rm": {s.delete, 1, 1 << 20},
	}
	verb, ok := verbs[operands[0]]
	s.args = operands[1:]
	if operands[0] != "diff" {
		s.args = append(s.args, s.paths...)
	}
	switch {
	case operands[0] == "help":
		t.Help(&snapshotSpec)
		return 0
	case !ok:
		t.UsageError(misused, "unknown command %s", tool.Quote(operands[0]))
	case len(s.args) < verb.min:
		t.UsageError(misused, "%s: missing the name of a snapshot", operands[0])
	case len(s.args) > verb.max:
		t.Extra(misused, s.args[verb.max])
	}
	s.c = control(t)
	return verb.run()
}

func (s *snapshot) take() int {
	name := ""
	if len(s.args) > 0 {
		name = s.args[0]
	}
	snap, err := s.c.SnapshotTake(s.ctx, name)
	check(s.t, err)
	switch {
	case s.json:
		printJSON(s.t, snap)
	case !s.quiet:
		fmt.Fprintln(s.t.Out, clean(snap.Name))
	}
	return 0
}

func (s *snapshot) list() int {
	list, err := s.c.Snapshots(s.ctx)
	check(s.t, err)
	wide := len("NAME")
	for i := range list {
		wide = max(wide, len(clean(list[i].Name)))
	}
	if !s.json && len(list) > 0 {
		fmt.Fprintf(s.t.Out, "%-*s  %-19s  %6s  %s\n", wide, "NAME", "TAKEN", "SIZE", "FILES")
	}
	for i := range list {
		if s.json {
			printJSON(s.t, list[i])
			continue
		}
		bytes, files := "-", "-"
		if list[i].Files > 0 {
			bytes, files = size(list[i].Bytes), fmt.Sprint(list[i].Files)
		}
		taken := list[i].Created.In(s.t.Location()).Format("2006-01-02 15:04:05")
		fmt.Fprintf(s.t.Out, "%-*s  %s  %6s  %s\n", wide, clean(list[i].Name), taken, bytes, files)
	}
	return 0
}

// change is a difference in JSON.
type change struct {
	Path    string `json:"path"`
	From    string `json:"from,omitempty"`
	Kind    string `json:"kind"`
	OldSize int64  `json:"oldSize"`
	NewSize int64  `json:"newSize"`
}

func (s *snapshot) diff() int {
	a, b := "", ""
	switch len(s.args) {
	case 2:
		a, b = s.args[0], s.args[1]
	case 1:
		a = s.args[0]
	default:
		list, err := s.c.Snapshots(s.ctx)
		check(s.t, err)
		if len(list) == 0 {
			s.t.Warn("diff: there is no snapshot to compare with")
			hint(s.t, "take one first: snapshot take")
			return missing
		}
		a = list[len(list)-1].Name
	}
	for i, p := range s.paths {
		if !path.IsAbs(p) {
			p = s.t.Getwd() + "/" + p
		}
		s.paths[i] = path.Clean(p)
	}
	found := false
	for c, err := range s.c.Diff(s.ctx, a, b, s.paths) {
		check(s.t, err)
		found = true
		s.print(c)
	}
	if found && s.exitCode {
		return failed
	}
	return 0
}

func (s *snapshot) print(c services.Change) {
	name := clean(c.Path)
	if c.From != "" {
		name = clean(c.From) + " -> " + name
	}
	switch {
	case s.quiet:
	case s.json:
		printJSON(s.t, change{c.Path, c.From, string(rune(c.Kind)), c.OldSize, c.NewSize})
	case s.nameOnly:
		fmt.Fprintln(s.t.Out, clean(c.Path))
	case c.Kind == services.Added:
		fmt.Fprintf(s.t.Out, "A %s (%s)\n", name, size(c.NewSize))
	case c.Kind == services.Deleted:
		fmt.Fprintf(s.t.Out, "D %s (%s)\n", name, size(c.OldSize))
	default:
		fmt.Fprintf(s.t.Out, "%c %s (%s -> %s)\n", c.Kind, name, size(c.OldSize), size(c.NewSize))
	}
}

func (s *snapshot) restore() int {
	before, err := s.c.SnapshotRestore(s.ctx, s.args[0])
	check(s.t, err)
	switch {
	case s.json:
		printJSON(s.t, map[string]any{"restored": s.args[0], "before": before})
	case !s.quiet:
		fmt.Fprintf(s.t.Out, "restored %s", clean(s.args[0]))
		if before.Name != "" {
			fmt.Fprintf(s.t.Out, "; what was here is snapshot %s", clean(before.Name))
		}
		s.t.Out.WriteByte('\n')
		if wd := s.t.Getwd(); wd != "/" {
			if _, err := s.t.Stat(wd); err != nil {
				hint(s.t, "the directory "+strings.TrimSpace(clean(wd))+" isn't there any more: cd elsewhere")
			}
		}
	}
	return 0
}

func (s *snapshot) delete() int {
	for _, name := range s.args {
		check(s.t, s.c.SnapshotDelete(s.ctx, name))
		if !s.quiet && !s.json {
			fmt.Fprintf(s.t.Out, "deleted %s\n", clean(name))
		}
	}
	return 0
}
