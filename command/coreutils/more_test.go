package coreutils_test

import (
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func TestMore(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: []string{"f a a\nb\nd\n", "f b b\nc\nd\n", "f u b\na\n", "f w the quick brown fox jumps\n\tover\nthe lazy dog", "f e "}, Stdin: "b\n", Lines: []string{
		"id -u", "id -un", "id -g", "id -x", "id -ug", "id -n", "whoami", "whoami x", "uname", "uname -s", "uname -so", "uname x", "mktemp xx", "mktemp -u a b", "mktemp nope/XXX",
		"comm a b", "comm -12 a b", "comm -3 a b", "comm -23 a b", "comm a -", "comm a", "comm", "comm a nope", "comm u a", "comm --check-order u a", "comm --total a b", "comm --output-delimiter=, a b", "comm a e",
		"fold -w 10 w", "fold -s -w 10 w", "fold -b -w 5 w", "fold w", "fold -w 0 w", "fold -5 w", "fold nope"}})
}
