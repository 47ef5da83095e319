package getopt

import (
	"fmt"
	"strings"
	"testing"
)

var options = []Option{
	{Short: 'a', Long: "all"}, {Short: 'n', Long: "number", Arg: Required, Name: "N"}, {Short: 'c', Long: "color", Arg: Optional},
	{Long: "colour", Key: 'c', Arg: Optional}, {Long: "numeric", Key: 0x110000}, {Short: 'é'},
}

func show(found []Opt, operands []string, err error) string {
	var b strings.Builder
	for _, o := range found {
		fmt.Fprintf(&b, "%c", o.Key)
		if o.Has {
			b.WriteString("=" + o.Arg)
		}
		b.WriteByte(' ')
	}
	fmt.Fprintf(&b, "%q", operands)
	if err != nil {
		b.WriteString(" " + err.Error())
	}
	return b.String()
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		args  string
		order Order
		want  string
	}{
		{"-a x -n 3 y", Permute, `a n=3 ["x" "y"]`},
		{"-a x -n 3 y", POSIX, `a ["x" "-n" "3" "y"]`},
		{"-a x -n3", InOrder, "a \x01=x n=3 []"},
		{"-an3", Permute, `a n=3 []`},
		{"-a -- -n", Permute, `a ["-n"]`},
		{"x - -a", Permute, `a ["x" "-"]`},
		{"--al --number=4 --numb 5", Permute, `a n=4 n=5 []`},
		{"--col --color= --colo=x", Permute, `c c= c=x []`},
		{"-cx -c x", Permute, `c=x c ["x"]`},
		{"-é", Permute, `é []`},
		{"--num", Permute, `[] option '--num' is ambiguous; possibilities: '--number' '--numeric'`},
		{"--zap=1", Permute, `[] unrecognized option '--zap=1'`},
		{"--all=1", Permute, `[] option '--all' doesn't allow an argument`},
		{"--number", Permute, `[] option '--number' requires an argument`},
		{"-a -z", Permute, `a [] invalid option -- 'z'`},
		{"-n", Permute, `[] option requires an argument -- 'n'`},
		{"-all -a", LongOnly, `a a []`},
	} {
		if got := show(Parse(options, strings.Fields(c.args), c.order)); got != c.want {
			t.Errorf("%q: got %s, want %s", c.args, got, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("-a --number=3 -- x", uint8(0))
	f.Add("--n -cc --", uint8(2))
	f.Fuzz(func(t *testing.T, s string, order uint8) {
		args := strings.Split(s, " ")
		found, operands, _ := Parse(options, args, Order(order%4))
		if len(found)+len(operands) > len(s)+len(args) {
			t.Errorf("%q: more results than characters", s)
		}
	})
}
