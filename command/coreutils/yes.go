package coreutils

import (
	"bytes"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

var yesSpec = tool.Spec{
	Usage:   []string{"[STRING]...", "OPTION"},
	About:   "Repeatedly output a line with all specified STRING(s), or 'y'.",
	Package: tool.Coreutils, Order: getopt.POSIX,
}

// Yes repeats a line until nobody reads any more.
func Yes(t *tool.T) int {
	_, args := t.Parse(&yesSpec)
	line := "y\n"
	if len(args) > 0 {
		line = strings.Join(args, " ") + "\n"
	}
	block := bytes.Repeat([]byte(line), max(1, (16<<10)/len(line)))
	for {
		t.Out.Write(block)
	}
}
