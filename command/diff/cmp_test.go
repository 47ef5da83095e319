package diff_test

import (
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func TestCmp(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f a one\ntwo\nthree\n", "f b one\ntwO\nthree\x01\xff", "f c one\ntw", "f d one\n", "f e "}, Stdin: "one\ntwx", Loose: true,
		Lines: []string{"cmp a b", "cmp a a", "cmp -l a b", "cmp -b a b", "cmp -bl a b", "cmp -s a b", "cmp -s a nope", "cmp a nope", "cmp a c", "cmp a d", "cmp e a", "cmp -l a c", "cmp a", "cmp a -", "cmp -n 3 a b", "cmp -n 7 a b", "cmp -i 7 a b", "cmp -i 1:2 a b", "cmp a b 7 7", "cmp a b 2", "cmp -l -s a b", "cmp", "cmp -n x a b", "cmp -s a c", "cmp -i 1k a b"},
	})
}
