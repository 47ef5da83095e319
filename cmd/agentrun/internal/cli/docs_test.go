package cli

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write docs/cli.md")

const cliPage = "../../../../docs/cli.md"

const cliHead = `# The command line

This page is made from the commands' own help texts: ` + "`go test ./cmd/agentrun/internal/cli -run TestPage -update`" + ` writes it, and the same test
without the flag fails when it isn't what the commands say. How things hang together is in [storage.md](storage.md), [sandbox.md](sandbox.md) and
[operations.md](operations.md).

## Exit status

| status | of most commands | of ` + "`run`" + ` |
|-|-|-|
| 0 | done | the command ended with 0 |
| 1 | failed; ` + "`fsck`" + `: something is wrong and wasn't repaired | the command's own |
| 2 | the command line is wrong | the command line is wrong, or the command's own |
| 3 | conflict: nothing was changed (merge conflicts, a name that is taken, a bucket that isn't empty) | the command's own |
| 4 | not found | the command's own |
| 5 | denied, or the key isn't known | the command's own |
| 125 | – | AgentRun itself failed: no server, no such bucket, a limit |
| 126 | – | the command can't be run |
| 127 | – | there is no such command |
| 128 + n | – | signal n ended the command |

Results go to the standard output, everything else (errors, hints, progress) to the standard error. With ` + "`--json`" + ` results are JSON and errors are
` + "`{\"error\": {\"title\", \"status\", \"detail\", \"kind\", \"hint\"}}`" + `, where ` + "`status`" + ` is the exit status.

## The server, and the key

| | endpoint | key |
|-|-|-|
| 1. | ` + "`--endpoint`" + ` | ` + "`--key`" + ` |
| 2. | ` + "`AGENTRUN_ENDPOINT`" + ` | ` + "`AGENTRUN_API_KEY`" + ` |
| 3. | the file ` + "`agentrun/context.json`" + ` in the user's configuration folder (` + "`~/.config`" + `), which ` + "`agentrun up`" + ` writes and removes | the same file, for its own endpoint only |
| 4. | ` + "`http://127.0.0.1:7070`" + ` | none |

A key is written ` + "`<access key id>.<secret access key>`" + `.
`

// TestPage compares docs/cli.md with what the commands say about themselves.
func TestPage(t *testing.T) {
	a := &app{App: App{Name: "agentrun"}}
	a.out = newOutput(&app{App: App{Getenv: func(string) string { return "" }}})
	root := a.root()
	var b strings.Builder
	b.WriteString(cliHead)
	b.WriteString("\n## Flags of every command\n\n")
	flags(&b, root.PersistentFlags())
	var all []*cobra.Command
	collect(root, &all)
	b.WriteString("\n## Commands\n\n| command | what it does |\n|-|-|\n")
	for _, c := range all {
		path := c.CommandPath()
		anchor := strings.ReplaceAll(path, " ", "-")
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", strings.TrimPrefix(path, "agentrun "), anchor, c.Short)
	}
	for _, c := range all {
		describe(&b, c)
	}
	got := b.String()
	if *update {
		if err := os.WriteFile(cliPage, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(cliPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) == got {
		return
	}
	was, is := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range max(len(was), len(is)) {
		if i >= len(was) || i >= len(is) || was[i] != is[i] {
			t.Fatalf("docs/cli.md isn't what the commands say, from line %d on; write it with -update:\n%s\n%s", i+1, at(was, i), at(is, i))
		}
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(end)"
}

// collect gathers the commands that do something, in the order in which help lists them.
func collect(c *cobra.Command, all *[]*cobra.Command) {
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() || sub.Name() == "help" || sub.Name() == "completion" {
			continue
		}
		if sub.HasAvailableSubCommands() {
			collect(sub, all)
			continue
		}
		*all = append(*all, sub)
	}
}

func describe(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n", c.CommandPath(), sentence(c))
	use := strings.TrimSuffix(c.UseLine(), " [flags]")
	fmt.Fprintf(b, "\n```text\n%s\n```\n", use)
	if len(c.Aliases) > 0 {
		fmt.Fprintf(b, "\nAlso: `%s`.\n", strings.Join(c.Aliases, "`, `"))
	}
	if local := c.LocalNonPersistentFlags(); local.HasAvailableFlags() {
		b.WriteString("\n")
		flags(b, local)
	}
	if c.Example != "" {
		b.WriteString("\n```sh\n")
		for line := range strings.SplitSeq(c.Example, "\n") {
			b.WriteString(strings.TrimPrefix(line, "  ") + "\n")
		}
		b.WriteString("```\n")
	}
}

// sentence returns what a command says about itself at length. Its line breaks are for terminals, and stay as they are.
func sentence(c *cobra.Command) string {
	if c.Long != "" {
		return escape(c.Long)
	}
	return escape(c.Short) + "."
}

// escape keeps what Markdown would take for an element as it is.
func escape(s string) string {
	return strings.NewReplacer("<", "&lt;", ">", "&gt;", "*", `\*`, "_", `\_`).Replace(s)
}

func flags(b *strings.Builder, f *pflag.FlagSet) {
	b.WriteString("| flag | what it does | default |\n|-|-|-|\n")
	f.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" || f.Name == "version" {
			return
		}
		name := "`--" + f.Name
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		kind, usage := pflag.UnquoteUsage(f)
		if kind != "" {
			name += " " + kind
		}
		def := "`" + f.DefValue + "`"
		if f.DefValue == "" || f.DefValue == "false" || f.DefValue == "[]" {
			def = ""
		}
		fmt.Fprintf(b, "| %s` | %s | %s |\n", name, strings.ReplaceAll(escape(usage), "|", `\|`), def)
	})
}
