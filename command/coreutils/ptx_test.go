package coreutils_test

import (
	"strings"
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func TestPtx(t *testing.T) {
	long := strings.Repeat("several words of a sentence that is rather long, ", 6) + "and ends.\nAnother one! \"Quoted.\"  Next {one} 50% of \\x & $5_a #1\n"
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f p the quick brown fox\njumps over the lazy dog\n", "f q One. Two? Three!  Four\nfive\tsix\n\nseven", "f long " + long, "f refs r1 alpha beta\nr22 gamma delta\nr3\nr4 eps", "f gaps r1 a\n\nr2 b\n", "f ig the\nover\n", "f only fox\nDOG\n", "f br aeiou", "f e ", "f uni größe ist ä\n", "f blank \n\n   \n", "f words a-b c_d 12 x9\n"}, Stdin: "from standard input\n",
		Lines: []string{"ptx p", "ptx q", "ptx long", "ptx p q", "ptx", "ptx -", "ptx e", "ptx blank", "ptx uni", "ptx words", "ptx -A p", "ptx -A p q long", "ptx -A -R p", "ptx -A", "ptx -r refs", "ptx -rR refs", "ptx -r -O refs", "ptx -r -T refs", "ptx -r p", "ptx -r gaps", "ptx gaps", "ptx -O p", "ptx -T p", "ptx -O long", "ptx -T long", "ptx -G p", "ptx -G long", "ptx -G p out", "ptx -G p out x", "ptx -w 40 p", "ptx -w 20 long", "ptx -w 1 p", "ptx -w 200 long", "ptx -w 0 p", "ptx -w x p", "ptx -g 1 p", "ptx -g 10 p", "ptx -g x p", "ptx -f p q", "ptx -i ig p", "ptx -o only p", "ptx -f -o only p", "ptx -b br p",
			"ptx -W '[a-z]*o[a-z]*' p", "ptx -W '\\w+' words", "ptx -S '\\n' p", "ptx -S '' p", "ptx -F XX -w 30 p", "ptx -F '' -w 30 p", "ptx -M zz -O p", "ptx --format=roff p", "ptx --format=tex p", "ptx --format=x p", "ptx nope", "ptx -Z", "ptx -A -O p", "ptx -A -T p", "ptx -fA -w 30 q p", "ptx -t p"},
	})
	hostile := commandtest.Table{Setup: []string{"f n \x00\xff \x00a b\n" + strings.Repeat("a ", 5000)}}
	for _, o := range []string{"-w1", "-A", "-r", "-T", "-g1000", "-W.", "-S.", "-w1000"} {
		hostile.Survives(t, command.NewSet(nil), "ptx", o, "n")
	}
}
