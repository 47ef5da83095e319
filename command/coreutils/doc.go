// Package coreutils holds the commands of GNU coreutils, one a file: the function of a command is named after it.
//
// Each behaves as version 9.1 in the locale C.UTF-8: options, output, messages, exit statuses. A command's Spec is its
// line; the function reads it with T.Parse and works through the T, see package tool.
package coreutils

import (
	"strconv"

	"agentrun.dev/command/tool"
)

// names returns the operands, or standard input if there are none.
func names(operands []string) []string {
	if len(operands) == 0 {
		return []string{"-"}
	}
	return operands
}

// status turns a failure into an exit status.
func status(failed bool) int {
	if failed {
		return 1
	}
	return 0
}

// noOperands ends the command if there are operands.
func noOperands(t *tool.T, operands []string) {
	if len(operands) > 0 {
		t.Extra(1, operands[0])
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
