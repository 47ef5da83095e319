package coreutils_test

import (
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func TestStat(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: []string{"f a hello\n", "f e ", "x x y", "d d", "l ln a"}, Lines: []string{
		"stat -c %s a", "stat -c '%n %a %A %F' a e d ln x", "stat -c '%U %G %u %g' a", "stat -c %y a", "stat -c '%Y %h' a", "stat -c '%N' a ln", "stat -L -c %F ln", "stat --printf '%n\\t%s\\n' a", "stat -c '%10s|%-10s|%010s|%#a' a", "stat -c '%f %%' a", "stat -c %Q a", "stat nope", "stat", "stat -c '%04a' a", "stat --format=%s a e"}})
}
