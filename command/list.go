package command

import (
	"agentrun.dev/command/coreutils"
	"agentrun.dev/command/find"
	"agentrun.dev/command/grep"
	"agentrun.dev/command/sed"
	"agentrun.dev/command/sort"
)

// list is every command that there is. It is never changed.
var list = []Command{
	{"[", coreutils.Test},
	{"cat", coreutils.Cat},
	{"cp", coreutils.Cp},
	{"cut", coreutils.Cut},
	{"echo", coreutils.Echo},
	{"false", coreutils.False},
	{"egrep", grep.Egrep},
	{"fgrep", grep.Fgrep},
	{"find", find.Find},
	{"grep", grep.Grep},
	{"head", coreutils.Head},
	{"ls", coreutils.Ls},
	{"mkdir", coreutils.Mkdir},
	{"mv", coreutils.Mv},
	{"printf", coreutils.Printf},
	{"rm", coreutils.Rm},
	{"rmdir", coreutils.Rmdir},
	{"sed", sed.Sed},
	{"sort", sort.Sort},
	{"tail", coreutils.Tail},
	{"test", coreutils.Test},
	{"touch", coreutils.Touch},
	{"true", coreutils.True},
	{"uniq", coreutils.Uniq},
	{"wc", coreutils.Wc},
}
