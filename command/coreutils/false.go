package coreutils

import "agentrun.dev/command/tool"

var falseSpec = tool.Spec{
	Usage: []string{"[ignored command line arguments]", "OPTION"},
	About: "Exit with a status code indicating failure.", Package: tool.Coreutils,
}

// False does nothing, unsuccessfully.
func False(t *tool.T) int { return constant(t, &falseSpec, 1) }
