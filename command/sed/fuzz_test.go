package sed

import "testing"

// FuzzScript parses scripts; running them isn't fuzzed, since a script may loop on purpose.
func FuzzScript(f *testing.F) {
	for _, s := range []string{"s/a/b/gw out\np", "#n\n/x/I,+3{y/ab/cd/;!d}", ":a;N;$!ba;s/\\n/,/g", "1~2a\\\nfoo\\", "s\\a\\b\\", "y/\\\\/\\n/", "0,/[/]]/s//&/2M", "\\,x,c", "r", "}", "s/\\(x\\)\\{2\\}\\1/\\U&\\E\\cA\\o101/e", "99999999999999999999p", "[", "s/[[:alpha:][.-.][=a=]]/\n/", "b x;t;T a;:a", "l 99999999999999999999"} {
		f.Add(s, false)
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, script string, extended bool) {
		half := len(script) / 2
		for _, chunks := range [][]chunk{{{text: script}}, {{text: script[:half]}, {text: script[half:]}}} {
			cmds, err := newParser(chunks, options{extended: extended}).program()
			if err != nil && err.Error() == "" {
				t.Error("an error without a text")
			}
			for _, c := range cmds {
				if c.target < 0 || c.target > len(cmds) {
					t.Errorf("jump to %d of %d", c.target, len(cmds))
				}
			}
		}
	})
}
