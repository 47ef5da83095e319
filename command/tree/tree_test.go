package tree_test

import (
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func TestTree(t *testing.T) {
	setup := []string{"d e", "d d", "f d/a.txt hi\n", "f d/B.c x", "d d/sub", "f d/sub/c.c int\n", "d d/sub/deep", "f d/sub/deep/q q", "d .h", "f .h/x y", "f big " + string(make([]byte, 3000)), "l d/ln a.txt", "l dang nope", "l dl d", "x run #!/bin/sh\n", "l rl run", "f \xc3\xa4\"\\ 1", "f new\nl x", "f raw\xff x"}
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: setup, Loose: true, Lines: []string{
		"tree", "tree -a", "tree -d", "tree -F", "tree -f", "tree -s run", "tree -hs big", "tree -sJ big", "tree -p", "tree -pF", "tree -P *.c", "tree -P *.c --prune", "tree -P 'C*|a*' --ignore-case d", "tree -I '*.c|sub'", "tree -I sub/ d", "tree --noreport", "tree -J", "tree -Jp", "tree -Jf d", "tree -iJ d", "tree -J d e", "tree -J e", "tree -dJ", "tree -J -L 1", "tree -J --noreport d", "tree -J run", "tree -J nope",
		"tree --dirsfirst", "tree --filesfirst", "tree --dirsfirst -r", "tree -i", "tree -if", "tree -r", "tree -t", "tree -tr", "tree -L 1", "tree -L2", "tree -aL 1", "tree -L 0", "tree -L x", "tree -L", "tree -L 1 --prune", "tree --prune", "tree -d --prune", "tree e", "tree d e", "tree nope", "tree nope d", "tree run", "tree d/", "tree -f d/", "tree -F d/", "tree dl", "tree dang", "tree -pF run", "tree -D d", "tree -N", "tree -Q", "tree -x1", "tree --zz", "tree -- d", "tree -aI .h", "tree -P", "tree -a -P '*'", "tree -fi --noreport d"}})
}
