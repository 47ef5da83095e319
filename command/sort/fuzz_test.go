package sort_test

import (
	"strings"
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func FuzzKey(f *testing.F) {
	for _, s := range []string{"1", "1,2", "2.3n,4.5r", "0", "1.0", "1,0", "99999999999999999999.99999999999999999999,99999999999999999999.99999999999999999999", "1bdfghiMnRrV", "1b,1.0b", ",", "", "1.", "1,2.", "-1", "2147483647.2147483647b,2147483647.2147483647b", "1x"} {
		f.Add(s, "b 2\na  1\n\n 10 c\n", "")
		f.Add(s, "x,y\x00é,\xff\n1e9,Jan", ",")
	}
	set := command.NewSet(nil)
	f.Fuzz(func(t *testing.T, key, input, tab string) {
		if strings.ContainsRune(key+tab, 0) {
			t.Skip("an argument has no NUL")
		}
		table := &commandtest.Table{Stdin: input}
		table.Survives(t, set, "sort", "-k", key)
		table.Survives(t, set, "sort", "-s", "-u", "-t", tab, "-k", key, "-k2,2n")
		table.Survives(t, set, "sort", "+"+key)
	})
}
