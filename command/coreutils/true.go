package coreutils

import "agentrun.dev/command/tool"

var trueSpec = tool.Spec{
	Usage: []string{"[ignored command line arguments]", "OPTION"},
	About: "Exit with a status code indicating success.", Package: tool.Coreutils,
}

// True does nothing, successfully.
func True(t *tool.T) int { return constant(t, &trueSpec, 0) }

// constant is true and false: an option counts only when it is the sole argument.
func constant(t *tool.T, s *tool.Spec, status int) int {
	if args := t.Args(); len(args) == 2 {
		switch args[1] {
		case "--help":
			t.Help(s)
		case "--version":
			t.Version(s)
		}
	}
	return status
}
