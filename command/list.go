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
	{"basename", coreutils.Basename},
	{"cat", coreutils.Cat},
	{"chgrp", coreutils.Chgrp},
	{"chmod", coreutils.Chmod},
	{"chown", coreutils.Chown},
	{"cp", coreutils.Cp},
	{"cut", coreutils.Cut},
	{"dirname", coreutils.Dirname},
	{"echo", coreutils.Echo},
	{"egrep", grep.Egrep},
	{"env", coreutils.Env},
	{"false", coreutils.False},
	{"fgrep", grep.Fgrep},
	{"find", find.Find},
	{"grep", grep.Grep},
	{"head", coreutils.Head},
	{"ln", coreutils.Ln},
	{"ls", coreutils.Ls},
	{"mkdir", coreutils.Mkdir},
	{"mv", coreutils.Mv},
	{"printenv", coreutils.Printenv},
	{"printf", coreutils.Printf},
	{"pwd", coreutils.Pwd},
	{"readlink", coreutils.Readlink},
	{"realpath", coreutils.Realpath},
	{"rm", coreutils.Rm},
	{"rmdir", coreutils.Rmdir},
	{"sed", sed.Sed},
	{"seq", coreutils.Seq},
	{"sleep", coreutils.Sleep},
	{"sort", sort.Sort},
	{"tail", coreutils.Tail},
	{"tee", coreutils.Tee},
	{"test", coreutils.Test},
	{"touch", coreutils.Touch},
	{"true", coreutils.True},
	{"uniq", coreutils.Uniq},
	{"wc", coreutils.Wc},
	{"yes", coreutils.Yes},
}
