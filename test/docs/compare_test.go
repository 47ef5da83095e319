package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"agentrun.dev/test/harness"
)

// varying are what differs from run to run, and what stands for it on both sides of a comparison.
var varying = []struct {
	pattern *regexp.Regexp
	name    string
}{
	{regexp.MustCompile(`\b1[0-9]{18}\b`), "VERSION"},
	{regexp.MustCompile(`\b20[0-9]{2}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z?`), "TIME"},
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "ID"},
	{regexp.MustCompile(`\bAR[A-Z2-7]{18}\b`), "KEY"},
	{regexp.MustCompile(`\b[a-z2-7]{40}\b`), "SECRET"},
	{regexp.MustCompile(`\bprocess [0-9]+\b`), "process PID"},
	{regexp.MustCompile(`\bin [0-9.]+ s\b`), "in SECONDS"},
	{regexp.MustCompile(`\bdevel-[0-9a-f]{12}\b|\bv[0-9]+\.[0-9]+\.[0-9]+[-+.0-9a-z]*`), "RELEASE"},
	{regexp.MustCompile(`[ \t]+`), " "},
}

func normal(line string) string {
	for _, v := range varying {
		line = v.pattern.ReplaceAllString(line, v.name)
	}
	return strings.TrimSpace(line)
}

// matches compares a line of a document, in which … stands for anything, with what was printed.
func matches(want, got string) bool {
	want, got = normal(want), normal(got)
	if !strings.Contains(want, "…") {
		return want == got
	}
	parts := strings.Split(want, "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(strings.TrimSpace(parts[i]))
	}
	return regexp.MustCompile(`^` + strings.Join(parts, `.*`) + `$`).MatchString(got)
}

// matchLines compares whole outputs; a line that is only … stands for any number of lines.
func matchLines(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if strings.TrimSpace(want[0]) == "…" {
		for i := range len(got) + 1 {
			if matchLines(want[1:], got[i:]) {
				return true
			}
		}
		return false
	}
	return len(got) > 0 && matches(want[0], got[0]) && matchLines(want[1:], got[1:])
}

// compare checks what a command printed.
func (s *session) compare(c *command, out string) {
	s.t.Helper()
	out = strings.NewReplacer(":"+s.api, ":7070", ":"+s.s3, ":7071", s.work, "/home/you/work", s.home, "/home/you").Replace(out)
	var got []string
	if out != "" {
		got = strings.Split(strings.TrimRight(out, "\n"), "\n")
	}
	want := c.expected
	for len(want) > 0 && want[len(want)-1] == "" { // what sets commands apart
		want = want[:len(want)-1]
	}
	if matchLines(want, got) {
		return
	}
	if *update {
		for i := range got {
			got[i] = strings.TrimRight(got[i], " ")
		}
		s.replaced = append(s.replaced, replacement{c.outLine, c.outLine + len(want), got})
		return
	}
	s.t.Errorf("%s:%d: %s\nthe document says:\n%s\nthe command prints:\n%s", s.d.path, c.line+1, strings.Join(c.text, "\n"),
		strings.Join(want, "\n"), strings.Join(got, "\n"))
}

// rewrite puts the outputs that differed into the document.
func (s *session) rewrite() {
	if len(s.replaced) == 0 {
		return
	}
	lines := slices.Clone(s.d.lines)
	for _, r := range slices.Backward(s.replaced) {
		lines = slices.Replace(lines, r.from, r.to, r.text...)
	}
	if err := os.WriteFile(filepath.Join(harness.Root(), s.d.path), []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		s.t.Fatal(err)
	}
	s.t.Logf("%s: %d outputs updated", s.d.path, len(s.replaced))
}
