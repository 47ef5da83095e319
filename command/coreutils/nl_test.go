package coreutils_test

import (
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func TestNl(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: []string{"f a one\n\ntwo\n\n\nthree\n", "f p h\n\\:\\:\\:\nhead\n\\:\\:\nbody\n\\:\nfoot\n"}, Stdin: "x\n", Lines: []string{
		"nl a", "nl", "nl -ba a", "nl -bn a", "nl -b pt a", "nl -w3 -s: a", "nl -n ln a", "nl -n rz a", "nl -v 5 -i 2 a", "nl -ba -l2 a", "nl p", "nl -ha -fa p", "nl -p p", "nl -b x a", "nl -n x a", "nl -w 0 a", "nl nope a"}})
}
