package command

import (
	"agentrun.dev/command/awk"
	"agentrun.dev/command/coreutils"
	"agentrun.dev/command/find"
	"agentrun.dev/command/grep"
	"agentrun.dev/command/jq"
	"agentrun.dev/command/sed"
	"agentrun.dev/command/sort"
)

// list is every command that there is. It is never changed.
var list = []Command{
	{"[", coreutils.Test},
	{"awk", awk.Awk},
	{"b2sum", coreutils.B2sum},
	{"base32", coreutils.Base32},
	{"base64", coreutils.Base64},
	{"basename", coreutils.Basename},
	{"cat", coreutils.Cat},
	{"chgrp", coreutils.Chgrp},
	{"chmod", coreutils.Chmod},
	{"chown", coreutils.Chown},
	{"cp", coreutils.Cp},
	{"cut", coreutils.Cut},
	{"date", coreutils.Date},
	{"dirname", coreutils.Dirname},
	{"echo", coreutils.Echo},
	{"egrep", grep.Egrep},
	{"env", coreutils.Env},
	{"expr", coreutils.Expr},
	{"false", coreutils.False},
	{"fgrep", grep.Fgrep},
	{"find", find.Find},
	{"gawk", awk.Awk},
	{"grep", grep.Grep},
	{"head", coreutils.Head},
	{"jq", jq.Jq},
	{"ln", coreutils.Ln},
	{"ls", coreutils.Ls},
	{"mawk", awk.Awk},
	{"md5sum", coreutils.Md5sum},
	{"mkdir", coreutils.Mkdir},
	{"mv", coreutils.Mv},
	{"paste", coreutils.Paste},
	{"printenv", coreutils.Printenv},
	{"printf", coreutils.Printf},
	{"pwd", coreutils.Pwd},
	{"readlink", coreutils.Readlink},
	{"realpath", coreutils.Realpath},
	{"rev", coreutils.Rev},
	{"rm", coreutils.Rm},
	{"rmdir", coreutils.Rmdir},
	{"sed", sed.Sed},
	{"seq", coreutils.Seq},
	{"sha1sum", coreutils.Sha1sum},
	{"sha224sum", coreutils.Sha224sum},
	{"sha256sum", coreutils.Sha256sum},
	{"sha384sum", coreutils.Sha384sum},
	{"sha512sum", coreutils.Sha512sum},
	{"sleep", coreutils.Sleep},
	{"sort", sort.Sort},
	{"tac", coreutils.Tac},
	{"tail", coreutils.Tail},
	{"tee", coreutils.Tee},
	{"test", coreutils.Test},
	{"touch", coreutils.Touch},
	{"tr", coreutils.Tr},
	{"true", coreutils.True},
	{"uniq", coreutils.Uniq},
	{"wc", coreutils.Wc},
	{"xargs", coreutils.Xargs},
	{"yes", coreutils.Yes},
}
