package coreutils_test

import (
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func TestGetopt(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Loose: true,
		Lines: []string{"getopt a b c", "getopt ab: -a x -b y z", "getopt -o a --", "getopt -o a -l long -- -a --long a", "getopt -o a -l one: -- -a --one arg", "getopt -o a -l one:: -- -a --one=arg --one x", `getopt -o a -- "it's"`, "getopt -n unlikely a -x", "getopt -o ab:c:: -- -b1 -c -c2 x -a y", "getopt -o a -l one,only -- --on", "getopt -a -o x -l one: -- -one 3 -x", "getopt -u -o b: -- -b 'x y' z", "getopt -T", "getopt", "getopt -o +a -- -a x -a", "getopt -o -a -- x -a y", "getopt -q -o a -- -z -a", "getopt -Q -o a -- -a", "getopt -s csh -o a: -- -a 'x!y\\z'", "getopt -s zsh -o a", "getopt -o b: -- -b", "getopt -o '' -l v -- --v=3", "getopt -o a -- -a -- -a"},
	})
}
