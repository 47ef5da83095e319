package coreutils_test

import (
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

// Directories' own sizes, links and block totals depend on the file system, so long listings name files or use -d on files.
func TestLs(t *testing.T) {
	set := command.NewSet(nil)
	commandtest.Run(t, set, commandtest.Table{Setup: []string{
		"f b.txt hello\n", "f a.txt hello world\n", "f c.go 123456789012345", "x run #!/bin/sh\n", "d dir", "f dir/inner x", "d dir/sub", "f dir/sub/deep yy", "d empty",
		"f .hidden h", "f back~ b", "f file10 a", "f file9 bb", "f file1 ccc", "f Zed z", "f noext", "f x.tar.gz gzgz", "f x.c c", "h hard a.txt",
	}, Lines: []string{
		"ls", "ls -1", "ls -a", "ls -A", "ls -aA", "ls -Aa", "ls -f -1 empty", "ls -r", "ls -t", "ls -tr", "ls -X", "ls -Xr", "ls -v", "ls -vr", "ls -v -A",
		"ls -U a.txt b.txt", "ls -U b.txt a.txt run", "ls --sort=none run a.txt", "ls --sort=time", "ls --sort=version", "ls --sort=extension", "ls --sort=width", "ls --sort=widt", "ls --sort=x", "ls --sort=",
		"ls -d", "ls -d dir empty", "ls -d .", "ls -dF dir run a.txt", "ls -F", "ls -p", "ls --file-type", "ls --indicator-style=slash", "ls --indicator-style=none", "ls --indicator-style=bad", "ls --classify", "ls --classify=always", "ls --classify=never", "ls --classify=auto",
		"ls -R", "ls -RF", "ls -R dir", "ls -R dir empty", "ls -aR dir", "ls -AR", "ls -1R dir/", "ls -Rr", "ls -Rt", "ls -RC", "ls -m -R dir",
		"ls -C", "ls -x", "ls -m", "ls -w 20 -C", "ls -w 20 -x", "ls -w 20 -m", "ls -C -w 1", "ls -C -w 2", "ls -C -w 3", "ls -C -w 4", "ls -C -w 5", "ls -C -w 6", "ls -C -w 7", "ls -x -w 4", "ls -x -w 7", "ls -m -w 4", "ls -m -w 1", "ls -C -w 0", "ls -x -w 0", "ls -m -w 0",
		"ls -C -w 30", "ls -C -w 33", "ls -C -w 40", "ls -C -w 41", "ls -C -w 60", "ls -C -w 100", "ls -C -w 1000", "ls -x -w 50", "ls -C -T 0", "ls -C -T 4", "ls -C -T 1 -w 40", "ls -x -T 3 -w 40", "ls -CF -w 30", "ls -Cp -w 30", "ls -w -1", "ls -w x", "ls -w 0x10 -C", "ls -w 010 -C", "ls -w ''", "ls -T x", "ls -C -w 99999999999999999999", "ls -T -1", "ls -C -w 9999999999",
		"ls -l a.txt", "ls -n a.txt b.txt run", "ls -l dir/inner a.txt", "ls -g a.txt", "ls -o a.txt", "ls -go a.txt", "ls -G a.txt", "ls -lG a.txt", "ls -nG a.txt", "ls -no a.txt", "ls -l --author a.txt", "ls -n --author a.txt", "ls --author", "ls -l -1 a.txt", "ls -1l a.txt", "ls -lC a.txt b.txt", "ls -Cl a.txt b.txt", "ls -lm a.txt b.txt",
		"ls -lh a.txt c.go", "ls -l --si c.go", "ls -h", "ls -lk a.txt", "ls -l --block-size=1 a.txt", "ls -l --block-size=K a.txt", "ls -l --block-size=1K a.txt", "ls -l --block-size=KB a.txt", "ls -l --block-size=KiB a.txt", "ls -l --block-size=M a.txt", "ls -l --block-size=3 a.txt", "ls -l --block-size=x a.txt", "ls --block-size=0", "ls -l --block-size=human-readable a.txt", "ls -l --block-size=si a.txt", "ls -l \"--block-size='1\" a.txt", "ls --block-size=", "ls --block-size=99999999999999999999999",
		"ls --full-time a.txt b.txt", "ls -l --time-style=full-iso a.txt", "ls -l --time-style=long-iso a.txt", "ls -l --time-style=iso a.txt", "ls -l --time-style=locale a.txt", "ls -l --time-style=posix-long-iso a.txt", "ls -l --time-style=+%s a.txt", "ls -l $'--time-style=+%Y\\n%m' a.txt", "ls -l $'--time-style=+%Y\\n%m\\n%d' a.txt", "ls -l --time-style=+ a.txt", "ls -l --time-style=bad a.txt", "ls -l --time-style=long a.txt", "ls -l --time-style=l a.txt", "ls --time-style=bad a.txt", "ls -l --time-style= a.txt",
		"ls -lu a.txt", "ls -u", "ls -lt a.txt b.txt c.go", "ls -ltr a.txt b.txt c.go", "ls -lS a.txt b.txt c.go", "ls --time=atime", "ls --time=access -t", "ls -lut a.txt c.go run", "ls -lU run a.txt",
		"ls -B", "ls -I *.txt", "ls --ignore=*.txt --ignore=file*", "ls --hide=*.txt", "ls -a --hide=*.txt", "ls -A --hide=*.txt", "ls -a -I .*", "ls -A -I '.h*'", "ls -I '[a-f]*'", "ls -I '?un'", "ls --hide=", "ls -I '.*'", "ls --hide='*'",
		"ls --group-directories-first", "ls --group-directories-first -r", "ls --group-directories-first dir a.txt empty -d", "ls --group-directories-first -U a.txt dir run -d",
		"ls a.txt dir", "ls dir a.txt empty b.txt", "ls dir dir", "ls dir empty", "ls empty", "ls -C empty", "ls -m empty", "ls ./a.txt dir/inner dir/../b.txt", "ls dir//", "ls a.txt a.txt", "ls -r dir empty a.txt b.txt", "ls -t dir empty a.txt b.txt", "ls -S a.txt b.txt c.go dir/inner",
		"ls nope", "ls nope a.txt", "ls nope dir", "ls a.txt/", "ls a.txt/x", "ls nope nope2", "ls 'no pe'", "ls \"no'pe\"", "ls $'no\\npe'", "ls ''", "ls -d ''", "ls -l nope a.txt", "ls -C nope", "ls --bad", "ls -y", "ls --colo=bad", "ls --format", "ls -w",
		"ls --format=long a.txt", "ls --format=verbose a.txt", "ls --format=commas", "ls --format=across", "ls --format=horizontal", "ls --format=vertical", "ls --format=single-column", "ls --format=bad", "ls --format=v",
		"ls --color=always", "env TERM=xterm ls --color=always", "env TERM=dumb ls --color=always", "env COLORTERM=1 ls --color=always -F", "env TERM=xterm-256color ls --color=always -C -w 30", "env TERM=linux ls --color=always -R", "env TERM=screen.x ls --color -m", "env LS_COLORS=di=1:*.txt=31:ex=: ls --color", "env LS_COLORS=di=1 ls --color=always -n a.txt run", "env LS_COLORS=x ls --color", "ls --color", "ls -S *.none a.txt b.txt c.go run noext", "ls -Sr a.txt b.txt c.go run noext hard", "ls --color=never", "ls --color=auto", "ls --color=bad", "ls --color=always -C", "ls --color=always -F", "ls --color=always -1 empty", "ls --color=always -n a.txt run", "ls --color=always -R dir", "ls --color=always -m", "ls --color=always -x -w 40", "ls --color=always -d dir", "ls --color=always a.txt", "ls --color=tty", "ls --color=yes dir",
		"ls -Q", "ls -b", "ls -N", "ls -q", "ls --quoting-style=shell", "ls --quoting-style=bad", "ls --quoting-style=shell-always", "ls --zero", "ls --zero -C", "ls --zero -l a.txt b.txt", "ls --zero -R dir", "ls -z", "ls --zero -m", "ls -Z a.txt", "ls -D a.txt", "ls --hyperlink=never", "ls -Cm", "ls -mC", "ls -x1", "ls -1x", "ls -sh empty",
	}}, commandtest.Table{Setup: []string{
		"f plain 1", "f 'sq 2", `f dq" 3`, "f back\\slash 4", "f tab\there 5", "f nl\nhere 6", "f uml\u00e4ut 7", "f \u65e5\u672c 8", "f bad\xffbyte 9", "f $dollar 10", "f ~tilde 11", "f #hash 12", "f a*b 13", "f -dash 14", "f esc\x1b[0m 15", "f bell\a 16", "f both'\" 17", "f a=b 18", "f zw\u200bx 19", "f e\u0301 20", "f del\x7f 21", "d {}", "d d:d",
	}, Lines: []string{
		"ls", "ls -1", "ls -Q", "ls -b", "ls -N", "ls -q", "ls -bq", "ls -Qq", "ls -Nq", "ls -C", "ls -CQ", "ls -Cb", "ls -Cq", "ls -xq", "ls -m", "ls -mq", "ls -mQ", "ls -C -w 40", "ls -Cq -w 30", "ls -v", "ls -X", "ls -r", "ls --sort=width",
		"ls --quoting-style=literal", "ls --quoting-style=locale", "ls --quoting-style=clocale", "ls --quoting-style=shell", "ls --quoting-style=shell-always", "ls --quoting-style=shell-escape", "ls --quoting-style=shell-escape-always", "ls --quoting-style=c", "ls --quoting-style=c-maybe", "ls --quoting-style=escape",
		"ls --quoting-style=shell-escape -q", "ls --quoting-style=shell -q", "ls --quoting-style=c --show-control-chars", "ls --show-control-chars", "ls -C --quoting-style=shell-escape", "ls -m --quoting-style=shell", "ls -CR", "ls -RQ", "ls -R", "ls -QF", "ls -QFR", "ls -Rb", "ls -R --quoting-style=shell-escape", "ls --color=always -Q", "ls --color=always", "ls --color=always -C -w 40", "ls -- -dash", "ls -n -- -dash plain", "ls --zero -Q", "ls -C --quoting-style=locale",
	}}, commandtest.Table{Setup: []string{
		"f file 123", "d dir", "f dir/in x", "l tofile file", "l todir dir", "l broken nowhere", "l loop loop", "l dir/up ..", "x prog p", "l toprog prog", "l dir/rel in",
	}, Lines: []string{
		"ls", "ls -F", "ls -p", "ls --file-type", "ls todir", "ls todir/", "ls -d todir", "ls -d todir/", "ls -F todir", "ls -H todir", "ls -L todir", "ls -FH todir", "ls -FL", "ls -L", "ls -1L broken", "ls -H broken", "ls broken", "ls loop", "ls -L loop", "ls -H loop", "ls -l --time-style=+ broken", "ls -l --time-style=+ tofile", "ls -l --time-style=+ todir",
		"ls -lF --time-style=+ tofile todir toprog broken", "ls -lH --time-style=+ tofile", "ls -lL --time-style=+ tofile", "ls -lH --time-style=+ broken", "ls -lp --time-style=+ todir toprog", "ls -l --file-type --time-style=+ todir toprog", "ls -lQ --time-style=+ tofile", "ls --dereference-command-line-symlink-to-dir -F todir tofile broken", "ls --dereference-command-line-symlink-to-dir -l --time-style=+ tofile",
		"env TERM=xterm ls --color=always", "env TERM=xterm ls --color=always -F", "env TERM=xterm ls --color=always -l --time-style=+ tofile broken toprog todir", "env LS_COLORS=or=31:mi=32 ls --color=always -l --time-style=+ tofile broken toprog todir", "env LS_COLORS=ln=target ls --color=always", "env LS_COLORS=or=31 ls --color broken", "env TERM=xterm ls --color=always -L tofile prog", "ls -R", "ls -R todir", "ls -RH todir", "ls -RL dir", "ls -RL todir", "ls --color=always", "ls --color=always -F", "ls --color=always -l --time-style=+ tofile broken toprog", "ls --color=always -L tofile", "ls --color=always broken", "ls --color=always -d todir", "ls --group-directories-first", "ls -S -L file tofile prog", "ls -X", "ls -C -F", "ls -C -p -w 20", "ls broken nope file", "ls -l --time-style=+ nope broken", "ls -dL broken", "ls -dH todir tofile", "ls -dF todir",
	}})
}
