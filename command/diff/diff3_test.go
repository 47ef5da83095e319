package diff_test

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func TestDiff3(t *testing.T) {
	var lines []string
	for _, files := range []string{"m o y", "y o m", "m o m", "o o y", "m m m", "e o y", "m e y", "m o e", "cut o y", "m cut dots", "dots o y", "dots e m"} {
		for _, o := range []string{"", "-m", "-e", "-A", "-x", "-3", "-E", "-X", "-m -e", "-m -E", "-m -3", "-m -x", "-m -X", "-T"} {
			lines = append(lines, strings.Join(strings.Fields("diff3 "+o+" "+files), " "))
		}
	}
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f m 1\nmine\n3\n4\n5\n6\n", "f o 1\n2\n3\n4\n5\n6\n", "f y 1\nyours\n3\n4\nfive\n6\n7\n", "f e ", "f cut 1\n2\n3x", "f dots .\n..a\n1\n2\n.3\n", "f crlf 1\r\n2\r\n3\r\n"}, Stdin: "1\n2\n3\nin\n", Loose: true,
		Lines: append(lines, "diff3", "diff3 m", "diff3 m o", "diff3 m o y e", "diff3 nope o y", "diff3 - o y", "diff3 m - y", "diff3 m o -", "diff3 -m m - y", "diff3 -A -i m o y", "diff3 -i m o y", "diff3 -im m o y", "diff3 -e -x m o y", "diff3 -m -L a -L b -L c m o y", "diff3 -A -L a m o y",
			"diff3 -L a m o y", "diff3 -m -L 1 -L 2 -L 3 -L 4 m o y", "diff3 --strip-trailing-cr crlf o y", "diff3 crlf o y", "diff3 -Z m o y", "diff3 --label=x -m m o y", "diff3 --show-overlap m o y"),
	})
}

// Random texts, which share most lines.
func TestDiff3Random(t *testing.T) {
	r := rand.New(rand.NewSource(3))
	for n := range 12 {
		var setup, old []string
		for range 30 {
			old = append(old, fmt.Sprint(r.Intn(8)))
		}
		for _, name := range []string{"m", "o", "y"} {
			l := append([]string{}, old...)
			for k := 0; name != "o" && k < 5; k++ {
				at := r.Intn(len(l))
				switch r.Intn(3) {
				case 0:
					l = append(l[:at], l[at+1:]...)
				case 1:
					l = append(l[:at], append([]string{fmt.Sprint("x", r.Intn(3))}, l[at:]...)...)
				default:
					l[at] = fmt.Sprint("y", r.Intn(3))
				}
			}
			setup = append(setup, "f "+name+" "+strings.Join(l, "\n")+"\n")
		}
		_ = n
		commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: setup, Lines: []string{"diff3 m o y", "diff3 -m m o y", "diff3 -A m o y", "diff3 -e m o y", "diff3 -m -X m o y"}})
	}
}

func TestSdiff(t *testing.T) {
	table := commandtest.Table{
		Setup: []string{"f m 1\nmine\n3\n4\n5\n6\n", "f y 1\nyours\n3\n4\nfive\n6\n7\n", "f blank 1\n\nmine\n3\n4\n5\n6\n", "f cut 1\nmine", "f e ", "d d", "f d/m 1\n", "f case 1\nMINE\n3\n4 \n5\n6\n"}, Stdin: "l\nr\nl\n", Loose: true,
		Lines: []string{"sdiff m y", "sdiff m m", "sdiff -s m y", "sdiff -l m y", "sdiff -w 40 m y", "sdiff -t -w 60 m y", "sdiff -i m case", "sdiff -b m case", "sdiff -W m case", "sdiff -Z m case", "sdiff m", "sdiff", "sdiff m y e", "sdiff nope m", "sdiff m cut", "sdiff e m", "sdiff -o", "sdiff -Q m y", "sdiff m d", "sdiff -I mine m y",
			"sdiff -o out m y", "sdiff -s -o out m y", "sdiff -l -o out m y", "sdiff -o out m m", "sdiff -o out e m", "sdiff -o out m cut", "sdiff -o out nope m", "sdiff -o out m blank", "sdiff --output=out m y"},
	}
	commandtest.Run(t, command.NewSet(nil), table)
	for _, in := range []string{"1\n2\n1\n", "q\n", "", "s\nl\nl\nl\n", "v\nl\nr\nq\n", "what\nl\nl\nl\n", "l\nl\n"} {
		table.Stdin, table.Lines = in, []string{"sdiff -o out m y"}
		commandtest.Run(t, command.NewSet(nil), table)
	}
}
