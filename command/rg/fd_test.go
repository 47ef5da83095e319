package rg_test

import (
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func TestFd(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup:  []string{"d a", "d a/b", "f a/x.txt 12345", "x a/b/Y.TXT y", "d .h", "f .h/z.txt z", "f w.go go", "f .hid h", "f sp_ace ", "f .gitignore *.go\n", "f .ignore x.txt\n", "l l a", "f big " + string(make([]byte, 3000)), "f a/main.rs r", "d a/.git", "f a/ig.log x", "f a/.gitignore *.log\n", "f cust b\n"},
		Sorted: true,
		Lines:  []string{"fdfind", "fdfind txt", "fdfind -H txt", "fdfind -I", "fdfind -u", "fdfind -HI", "fdfind -e txt", "fdfind -e .go -I", "fdfind -t d", "fdfind -t l", "fdfind -t x", "fdfind -t e", "fdfind -t f -t l", "fdfind --type file b", "fdfind . a", "fdfind txt a", "fdfind -a w -I", "fdfind -g '*.txt' -I", "fdfind -g 'Y*'", "fdfind -p a/b", "fdfind -0 sp", "fdfind -x echo", "fdfind -x echo {/} {.} {//} {/.}", "fdfind -I Y -X echo", "fdfind -d 1", "fdfind --min-depth 2", "fdfind --exact-depth 2", "fdfind nope", "fdfind . nodir", "fdfind a/b", "fdfind -E a", "fdfind -E '*.rs'", "fdfind -S +2k", "fdfind -S -10b", "fdfind -S 5b -I", "fdfind -S x", "fdfind -q txt", "fdfind -q nope", "fdfind --max-results 1 Y", "fdfind -1 Y", "fdfind -L . l", "fdfind --zz", "fdfind -t z", "fdfind --changed-within x", "fdfind --changed-within 1d", "fdfind --changed-before 2024-01-02 -u", "fdfind --newer '2024-01-02 03:10:00' -t f", "fdfind -s y.txt", "fdfind y.txt", "fdfind Y", "fdfind -i Y.txt", "fdfind -F .", "fdfind -F .rs", "fdfind --strip-cwd-prefix x -I", "fdfind '' a", "fdfind . ./a", "fdfind . a/", "fdfind --base-directory a", "fdfind -x false", "fdfind -x echo a{}b", "fdfind --path-separator=: b", "fdfind --prune b", "fdfind --no-ignore-vcs", "fdfind --ignore-file cust", "fdfind '^[a-s]'", "fdfind --and x t -I", "fdfind -x echo {} \\;", "fdfind --search-path a rs", "fdfind -V", "fdfind -t d -x echo d:", "fdfind -o root b"},
	})
}
