package coreutils_test

import (
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func TestSimple(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: []string{"f a x\n", "d d", "f d/f y", "l ln a", "l dl d", "l dang nope", "l ll ln", "x x x"}, Stdin: "in\nput\n", Lines: []string{
		"env -i A=1 B=2", "env -i", "env -u HOME -i A=b", "env nocommand", "env -i A=1 printenv A", "env -0 -i A=1", "env -z", "env - A=1", "env -S'-i A=1 B=2'", "printenv HOME", "printenv NOPE", "printenv HOME NOPE TZ",
		"pwd", "pwd -P", "pwd x", "basename a/b", "basename a/b.c .c", "basename /", "basename //", "basename a/", "basename ''", "basename .c .c", "basename -a a/b c/d", "basename -s .c a.c b.c", "basename", "basename a b c", "basename -z a", "dirname a/b", "dirname a", "dirname /a", "dirname /", "dirname a//b//", "dirname ''", "dirname", "dirname a/b c/d",
		"tee", "tee out", "tee -a a", "tee out o2", "tee nope/x", "tee d", "seq 3", "seq 2 5", "seq 1 2 9", "seq 5 -1 1", "seq 5", "seq 3 1", "seq 0.5 0.5 2", "seq -w 8 11", "seq -s, 3", "seq -f %03g 3", "seq -f 'x%.2fy' 2", "seq 1 0.1 1.3", "seq -1", "seq -2 1", "seq -w -1 0.5 1", "seq", "seq x", "seq 1 0 2", "seq 1 2 3 4", "seq -f x 1", "seq -f %d 1", "seq -f '%g%g' 1", "seq 1e1", "seq 0x5", "seq -w 1 10", "seq -w 1 1.5 5", "seq 10 -3 -5", "seq 99999999999999999999 99999999999999999999", "seq 1.10 0.05 1.20", "seq -s '' 3", "seq 1 -1 3", "seq -f %% 1", "seq -w 5.0 10",
		"ln a b", "ln -s a b", "ln -s a ln", "ln -sf a ln", "ln a d", "ln -s a d", "ln nope b", "ln d b", "ln -s a b c", "ln", "ln -s", "ln -sv a b", "ln -v a b", "ln -sn d dl", "ln -sfn a dl", "ln -sf a dl", "ln -sr d/f b", "ln -sr a d/b", "ln -f a a", "ln -b a x", "ln -sT a d", "ln -t d a", "ln -s a nope/b", "ln -r a b", "ln -s /abs/x", "ln a x",
		"readlink ln", "readlink a", "readlink nope", "readlink -v a", "readlink -f ln", "readlink -f ll", "readlink -f dang", "readlink -e dang", "readlink -m nope/x/y", "readlink -f nope/x", "readlink -n ln", "readlink -f d/../a", "readlink", "readlink -f dl/f", "readlink -f .", "readlink ln ll", "readlink -z ln", "readlink -f a/", "realpath a", "realpath ln", "realpath nope", "realpath -e nope", "realpath nope/x", "realpath -m nope/x", "realpath -s ln", "realpath --relative-to=d a", "realpath --relative-to d d/f", "realpath --relative-base=d d/f a", "realpath", "realpath ''", "realpath -q nope/x", "realpath dl/f", "realpath -L dl/..", "realpath dl/..", "realpath .",
		"chmod 600 a", "chmod u+x a", "chmod go-r a", "chmod a=r a", "chmod +x a", "chmod -x x", "chmod -r a", "chmod u=rwx,go=rx a", "chmod 4755 x", "chmod u+s,g+s x", "chmod +t d", "chmod -R 700 d", "chmod -R a+X d", "chmod -v 600 a", "chmod -c 644 a", "chmod -c 600 a x", "chmod --reference=x a", "chmod 600 nope", "chmod 600", "chmod", "chmod z a", "chmod 888 a", "chmod 600 dang", "chmod g=u a", "chmod o+g,u-w a", "chmod =r a", "chmod u+x,u-x a", "chmod 0644 ln", "chmod -v -R 755 d", "chmod -f 600 nope", "chmod u a", "chmod +X a x", "chmod 755 -- a", "chmod a-w+x a", "chmod 07777 a", "chmod 00755 d", "chmod g+w,o= d", "chmod u=g a",
		"chown root a", "chown root:root a", "chown 12:34 a", "chown nobodyatall a", "chown :nogroupatall a", "chown", "chown root", "chown root nope", "chgrp root a", "chgrp nogroupatall a", "chown -R root d",
		"sleep 0", "sleep 0.01", "sleep", "sleep x", "sleep 1x", "sleep -1", "sleep 0 0s", "sleep 1 x y"}})
}
