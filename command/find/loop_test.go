package find_test

import (
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

// Links that lead back to where the walk is are told, and not followed.
func TestLoops(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"d d", "d d/e", "f d/x foo\n", "l d/up ..", "l d/self .", "l d/e/d ../../d", "l d/ring1 ring2", "l d/ring2 ring1", "l two d", "l file d/x", "l d/gone nowhere"}, Sorted: true,
		Lines: []string{"find -L d", "find -L .", "find -L d -type l", "find -L d -name x", "find -H two", "find -L two -maxdepth 2", "find -L d/ring1", "find -L d -depth", "find d -follow -type f", "find -P d",
			"grep -R foo d", "grep -R foo .", "grep -r foo d two", "grep -rl foo", "grep -R foo two", "ls -RL d/e", "chmod -R u+w d"},
	})
}
