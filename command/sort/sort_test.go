package sort_test

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func TestSort(t *testing.T) {
	setup := []string{"f a banana\napple\ncherry\nApple\n\nbanana\n", "f n 10\n9\n-1\n1.5\n1.05\n  3\nx\n007\n1e2\n+5\n", "f k b 2 x\na 10 y\nc 1 z\na 2 w\n", "f c x:3:b\ny:1:a\nz:3:a\n", "f h 1K\n2M\n512\n1G\n3k\n-1M\n0\n", "f m MAR\njan\nFeb\nfoo\nDEC\n", "f v v1.10\nv1.9\nv1.2.3\nv1.2\na.tar.gz\na1.tar.gz\na10\na9\n~\n", "f last b\na", "f z b\x00a\x00", "f s1 a\nc\n", "f s2 b\nd\n", "f u a 1\na 2\nb 1\n", "f b  b\n a\n   c\nd\n", "f list a\x00n\x00", "f i a-b\nab\na b\nA_C\n", "d d"}
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: setup, Stdin: "c\nb\na\n", Lines: []string{
		"sort", "sort a", "sort -r a", "sort -u a", "sort -f a", "sort -fu a", "sort -n n", "sort -rn n", "sort -g n", "sort -h h", "sort -rh h", "sort -M m", "sort -V v", "sort -rV v", "sort -b b", "sort b", "sort -d i", "sort -i i", "sort -df i", "sort a n", "sort -k2 k", "sort -k2n k", "sort -k2,2n -k1,1 k", "sort -k1,1 -k2,2nr k", "sort -t: -k2 c", "sort -t: -k2,2n -k3 c", "sort -t : -k 3 c", "sort -t: -k2.1,2.1 c", "sort -k1.2 a", "sort -k 2b k", "sort -k1,1 -s u", "sort -s -k1,1r u", "sort -u -k1,1 u", "sort -k2 -n k", "sort -nk2 -k1 k", "sort last", "sort -z z", "sort -m s1 s2", "sort -mu s1 s1 s2", "sort -o out a", "sort -o a a", "sort -m -o s1 s1 s2", "sort -c a", "sort -c s1", "sort -C a", "sort -cu s1", "sort -cr s1", "sort -c -u last", "sort --check=quiet a", "sort --files0-from=list", "sort nope", "sort d", "sort -k0 a", "sort -kx a", "sort -k1.0 a", "sort -k1z a", "sort -k1,0 a", "sort -t '' a", "sort -t xx a", "sort -nM a", "sort -nd a", "sort -c a n", "sort -S x a", "sort -S 1M a", "sort +1 k", "sort +1 -2 k", "sort --sort=numeric n", "sort --sort=x n", "sort --nope", "sort -y a", "sort --parallel=2 a", "sort -T /tmp a", "sort -o nope/x a", "sort -t: -k2,2 -t, c", "sort -uf a", "sort -un n", "sort -k1,1n -k2 n", "sort -bk2 b", "sort -k 1.1b,1.2 b", "sort -t '\\0' a", "sort - a", "sort -ru a", "sort -k2,1 k", "sort -k3 -k2r k", "sort --reverse --key=2 k", "sort -cC a", "sort -k1,1,1 a"}})
}

// Inputs beyond the memory allowed are sorted in runs; the result must be the same.
func TestSpill(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	var b strings.Builder
	for range 40000 {
		fmt.Fprintf(&b, "%d key%d\n", rnd.Intn(1e6), rnd.Intn(100))
	}
	table := commandtest.Table{}
	set := command.NewSet(nil)
	for _, opts := range [][]string{{"-n"}, {"-k2,2", "-s"}, {"-u", "-k2,2"}, {"-r"}} {
		whole := table.Sandbox(t, set, append([]string{"sort"}, opts...), b.String())
		runs := table.Sandbox(t, set, append([]string{"sort", "-S", "1K"}, opts...), b.String())
		if whole.Stdout != runs.Stdout || whole.Status != 0 || len(whole.Stdout) == 0 {
			t.Errorf("%v: sorting in runs differs (status %d, %d and %d bytes): %s", opts, runs.Status, len(whole.Stdout), len(runs.Stdout), runs.Stderr)
		}
	}
}

func TestRandom(t *testing.T) {
	table := commandtest.Table{}
	r := table.Sandbox(t, command.NewSet(nil), []string{"sort", "-R"}, "a\nb\na\nc\nb\na\n")
	groups := strings.Count(strings.ReplaceAll(r.Stdout, "\n", ""), "aaa") + strings.Count(strings.ReplaceAll(r.Stdout, "\n", ""), "bb")
	if groups != 2 || len(r.Stdout) != 12 {
		t.Errorf("got %q", r.Stdout)
	}
}
