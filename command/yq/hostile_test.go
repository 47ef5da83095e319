package yq_test

import (
	"strings"
	"testing"

	"agentrun.dev/command/commandtest"
)

// TestHostile runs inputs that shall be refused, or at least end.
func TestHostile(t *testing.T) {
	laughs := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 12; i++ {
		n := string(rune('a'+i)) + "0"
		before := string(rune('a'+i-1)) + "0"
		laughs += n + ": &" + n + " [" + strings.Repeat("*"+before+",", 9) + "*" + before + "]\n"
	}
	deep := strings.Repeat("[", 100000)
	table := commandtest.Table{Setup: []string{"f laughs.yml " + laughs, "f deep.yml " + deep, "f deep.json " + deep,
		"f deep.xml " + strings.Repeat("<a>", 100000), "f deep.toml a = " + deep, "f self.yml a: &a\n  b: *a\n", "f bomb.xml <!DOCTYPE l [<!ENTITY a \"x\"><!ENTITY b \"&a;&a;\">]><l>&b;</l>"}}
	for _, words := range [][]string{
		{"-o", "json", ".", "laughs.yml"}, {"explode(.)", "laughs.yml"}, {"-o", "props", ".", "laughs.yml"}, {".", "deep.yml"}, {".", "deep.json"}, {".", "deep.xml"},
		{".", "deep.toml"}, {"explode(.)", "self.yml"}, {"-o=json", ".", "self.yml"}, {"..", "self.yml"}, {".", "bomb.xml"}, {"-n", strings.Repeat("(", 100000)},
		{"-n", strings.Repeat("[", 5000) + strings.Repeat("]", 5000)}, {"-n", `"x" * 1000000000`}, {"-n", ".[1000000000] = 1"}, {"-n", `"a" | test("(a*)*b")`}, {"-n", `eval("eval(\"1\")")`},
		{"-n", `"\(`}, {"-n", `.["`}, {"-n", "env("}, {"-n", ".a as $x"}, {"-n", "..."}, {"-n", "@foo"},
	} {
		table.Survives(t, commands, append([]string{"yq"}, words...)...)
	}
}

// FuzzExpression evaluates expressions on a small document.
func FuzzExpression(f *testing.F) {
	for _, s := range []string{".a.b[0] |= 5", `{"a": .b[]} | to_entries`, `.. | select(tag == "!!int")`, `[.[] as $x | $x + 1]`, `.a ref $r | $r = 2`, `"\(.a)-x" | sub("a","b")`, ".a[1:2] *+d {}"} {
		f.Add(s, "a: [1, {b: x}]\nc: &d {e: f}\ng: *d\n")
	}
	f.Fuzz(func(t *testing.T, expression, text string) {
		if strings.ContainsRune(text+expression, 0) || len(text) > 4096 || len(expression) > 4096 {
			return
		}
		table := commandtest.Table{Stdin: text}
		table.Survives(t, commands, "yq", "--expression", expression, "-")
		table.Survives(t, commands, "yq", "-o=json", "--expression", expression, "-")
	})
}
