package coreutils

import (
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

var whichSpec = tool.Spec{Usage: []string{"[-a] args"}, About: "Print the full names of commands.", Options: []getopt.Option{{Short: 'a', Help: "print all matching names of each argument"},
	{Short: 's', Help: "print nothing, only tell by the exit status"}}, Package: tool.Own}

// Which finds commands in PATH.
func Which(t *tool.T) int {
	opts, args := t.Parse(&whichSpec)
	all, silent := false, false
	for _, o := range opts {
		all, silent = all || o.Key == 'a', silent || o.Key == 's'
	}
	missing := len(args) == 0
	for _, a := range args {
		found := false
		for _, name := range candidates(t, a) {
			at, err := t.Stat(name)
			if err != nil || !at.Mode.IsRegular() || t.Access(name, 1) != nil {
				continue
			}
			found = true
			if !silent {
				t.Out.WriteString(name + "\n")
			}
			if !all {
				break
			}
		}
		missing = missing || !found
	}
	return status(missing)
}

func candidates(t *tool.T, name string) []string {
	if strings.Contains(name, "/") {
		return []string{name}
	}
	var out []string
	for _, dir := range strings.Split(t.Getenv("PATH"), ":") {
		if dir == "" {
			dir = "."
		}
		out = append(out, joinPath(dir, name))
	}
	return out
}
