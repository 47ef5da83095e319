package coreutils_test

import (
	"fmt"
	"strings"
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func TestPr(t *testing.T) {
	var many strings.Builder
	for i := 1; i <= 130; i++ {
		fmt.Fprintf(&many, "line %d\n", i)
	}
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f n 1\n2\n3\n4\n5\n", "f many " + many.String(), "f tabs a\tb\n\tc\n", "f long " + strings.Repeat("word ", 30) + "\nx\n", "f ff a\n\fb\nc\fd\n", "f ctl a\x01\xffb\n", "f e ", "f g x\ny\n", "d dir", "f u äöü\nxyz\n"},
		Lines: []string{"pr n", "pr many", "pr -t n", "pr -t -2 n", "pr -2 many", "pr -3 -l 20 many", "pr -t -3 -l 2 n", "pr -m -t n g", "pr -m many n", "pr -t -n n", "pr -n many", "pr -h T -l 15 n", "pr -d -t n", "pr -d -l 20 many", "pr -o 3 -t n", "pr -o 9 n", "pr -s: -2 -t n", "pr -s -2 -t n", "pr -a -2 -t n", "pr -a -3 -l 20 many", "pr -w 30 -2 -t n", "pr -t -e tabs", "pr -t -e4 tabs", "pr -t -i n", "pr -2 -t tabs", "pr +2 -l 12 n", "pr +2:3 -l 20 many", "pr -F -l 11 n", "pr -f many", "pr -J -m -t n g", "pr -N 10 -n:3 -t n", "pr nope", "pr -x", "pr -t -v ctl", "pr -t -c ctl", "pr -T ff", "pr -t ff", "pr ff", "pr '-S|' -2 -t n", "pr -S -2 -t n", "pr -m -s, -t n g", "pr -W 20 -t long", "pr -2 -t long", "pr -t long", "pr -D %Y -h x n", "pr e", "pr -t e", "pr n g", "pr -r nope", "pr -l 10 n", "pr -l 0 n", "pr -2 -m n g", "pr -n -2 -t n", "pr -n -m -t n g", "pr -w x n", "pr -t -2 u", "pr dir", "pr -h '' n", "pr -3 -t -w 20 n", "pr -l 66 -t many", "pr -0 n", "pr --columns=2 -t n", "pr --pages=2 many", "pr -J -2 -t n", "pr -a -s, -5 -t n"},
	})
}
