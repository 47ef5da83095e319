package world

import (
	"fmt"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/services"
	"agentrun.dev/command/tool"
)

const mergeAbout = `Bring what another fork changed into the files of this sandbox.

The merge is three-way, file by file: what only the fork changed since it was
made (or last merged) is taken, what only this sandbox changed stays. Where both
changed the same file differently there is a conflict. FORK is the name or id
that fork printed, or a bucket that is related to this one.`

const mergeNotes = `What to do about conflicts, --conflicts=:
  fail     change nothing and list them (the default)
  ours     keep this sandbox's file
  theirs   take the fork's file

Examples:
  merge --dry-run try-1             # what would come?
  merge try-1
  merge --conflicts=theirs try-1

Exit status: 0 done, 1 failed, 2 usage, 3 conflicts: nothing was changed, 4 no
such fork, 5 this sandbox can't be merged into. To merge branches of a git
repository, use git merge.

See also: fork --help, snapshot --help.`

var mergeSpec = tool.Spec{
	Usage: []string{"[--conflicts=HOW] [--dry-run] [--json] FORK"},
	About: mergeAbout,
	Options: []getopt.Option{
		{Long: "conflicts", Key: keyConflicts, Arg: getopt.Required, Name: "HOW", Help: "what to do about conflicts: fail, ours or theirs"},
		{Long: "strategy", Key: keyConflicts, Arg: getopt.Required, Name: "HOW", Hidden: true},
		{Short: 'n', Long: "dry-run", Help: "report only; change nothing"},
		{Short: 'q', Long: "quiet", Help: "print nothing but conflicts and errors"},
		{Long: "json", Key: keyJSON, Help: "print the report as JSON"},
	},
	Notes: mergeNotes, Package: tool.Own, Fail: misused,
}

// merged is the report in JSON.
type merged struct {
	From      string       `json:"from"`
	Applied   bool         `json:"applied"`
	Added     int          `json:"added"`
	Modified  int          `json:"modified"`
	Deleted   int          `json:"deleted"`
	Conflicts []conflicted `json:"conflicts"`
}

type conflicted struct {
	Path   string `json:"path"`
	Ours   string `json:"ours"`
	Theirs string `json:"theirs"`
}

// Merge merges a fork into this sandbox's files.
func Merge(t *tool.T) int {
	opts, operands := t.Parse(&mergeSpec)
	o := services.MergeOptions{Strategy: services.Fail}
	quiet, asJSON := false, false
	for _, opt := range opts {
		switch opt.Key {
		case keyConflicts:
			words := []services.Strategy{services.Fail, services.Ours, services.Theirs}
			o.Strategy = words[t.Choice(misused, "--conflicts", opt.Arg, [][]string{{"fail"}, {"ours"}, {"theirs"}})]
		case 'n':
			o.DryRun = true
		case 'q':
			quiet = true
		case keyJSON:
			asJSON = true
		}
	}
	switch len(operands) {
	case 0:
		t.UsageError(misused, "missing the name of a fork")
	case 1:
	default:
		t.Extra(misused, operands[1])
	}
	m, err := control(t).Merge(t.Context(), operands[0], o)
	check(t, err)
	if asJSON {
		r := merged{m.From, m.Applied, m.Added, m.Modified, m.Deleted, []conflicted{}}
		for _, c := range m.Conflicts {
			r.Conflicts = append(r.Conflicts, conflicted{c.Path, string(rune(c.Ours)), string(rune(c.Theirs))})
		}
		printJSON(t, r)
	} else {
		report(t, m, o, quiet)
	}
	if len(m.Conflicts) > 0 && o.Strategy == services.Fail {
		return conflict
	}
	return 0
}

// report prints a merge for people: conflicts to standard error if they are in the way.
func report(t *tool.T, m services.Merged, o services.MergeOptions, quiet bool) {
	for _, c := range m.Conflicts {
		line := fmt.Sprintf("conflict: %s (ours %s, theirs %s)", clean(c.Path), word(c.Ours), word(c.Theirs))
		if o.Strategy == services.Fail {
			t.Out.Flush()
			fmt.Fprintln(t.Stderr(), line)
		} else if !quiet {
			fmt.Fprintf(t.Out, "%s: kept %s\n", line, o.Strategy)
		}
	}
	if len(m.Conflicts) > 0 && o.Strategy == services.Fail {
		t.Warn("%d conflicts; nothing was changed", len(m.Conflicts))
		hint(t, "choose a side with --conflicts=ours or --conflicts=theirs, or make one of the files like the other first")
		return
	}
	if quiet {
		return
	}
	verb := "merged"
	if o.DryRun {
		verb = "would merge"
	}
	fmt.Fprintf(t.Out, "%s %s: %d added, %d modified, %d deleted\n", verb, clean(m.From), m.Added, m.Modified, m.Deleted)
}

func word(k services.Kind) string {
	switch k {
	case services.Added:
		return "added"
	case services.Deleted:
		return "deleted"
	case services.Renamed:
		return "renamed"
	}
	return "modified"
}
