package find_test

import (
	"strings"
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

// FuzzExpression runs expressions that are split at blanks. They start no other commands, which may run for ever.
func FuzzExpression(f *testing.F) {
	for _, s := range []string{". -name a -o ( -type f,d ! -size +1k )", "( ( (", ") -a", "-maxdepth 1 -printf %99999999999p%T@%Ak%#m\\c%", "-newermt @99999999999999999999", "-perm /u+x,g=w -perm -7777 -perm 9", "-regextype posix-extended -regex .*(a|b)+ -print0",
		"-size 99999999999999999999c -links -1", "-mtime +1.5 -amin -99999999999", "-name [ -path *[!-]* -iname [[:foo:]]", "! ! -not , -true -false -quit -prune -depth", "-printf \\400%-10.3s%{%", "-printf %", "-printf %A", "-printf \\", "-type", "-user nope -uid +0 -nouser", "-samefile . -lname *", "-ls -fprintf out %f"} {
		f.Add(s)
	}
	set := command.NewSet(nil)
	f.Fuzz(func(t *testing.T, expression string) {
		for _, no := range []string{"exec", "ok", "\x00", "/"} {
			if strings.Contains(expression, no) {
				t.Skip("other commands and other directories aren't part of it")
			}
		}
		table := &commandtest.Table{Setup: []string{"f a x", "d d", "f d/b yy", "l l nowhere"}}
		table.Survives(t, set, append([]string{"find"}, strings.Split(expression, " ")...)...)
	})
}
