package suites

import (
	"regexp"
	"strings"
	"testing"

	"agentrun.dev/test/harness"
)

// result finds what the suite prints for a case. Lines of cases that run beside each other may share a line.
var result = regexp.MustCompile(`\x1b\[3[0-9]m(PASS|FAIL) \x1b\[0m([A-Za-z0-9_]+)(?:: ([^\x1b\n]*))?`)

// alone are the cases that need a server which holds nothing; others leave buckets behind when they fail.
var alone = []string{"ListBuckets_empty_success"}

// TestVersitygw runs versitygw's full flow twice, each time on a new server: without and with versioning. A case that is part
// of both has to pass in both.
func TestVersitygw(t *testing.T) {
	run := func(args ...string) [][]string {
		s := harness.NewSession(t, harness.Start(t))
		defer s.Server.Stop()
		// The suite starts ./versitygw for calls of its own admin interface; there is none in the session's folder.
		r := s.Exec(harness.Tool(t, "versitygw"), append([]string{"test", "--access", s.Server.AccessKey, "--secret", s.Server.SecretKey,
			"--endpoint", s.Server.Endpoint}, args...)...)
		found := result.FindAllStringSubmatch(r.Stdout, -1)
		if len(args) > 1 && !strings.Contains(r.Stdout, "RAN: ") || len(found) == 0 {
			t.Fatalf("the suite didn't come to its end:\n%s\n%s", r.Stdout, r.Stderr)
		}
		return found
	}
	results := map[string]outcome{}
	for _, args := range [][]string{{"full-flow", "--parallel"}, {"full-flow", "--versioning-enabled", "--parallel"}} {
		found := run(args...)
		if len(found) < 650 {
			t.Fatalf("only %d results of %v", len(found), args)
		}
		for _, m := range found {
			if old, ok := results[m[2]]; !ok || old.pass {
				results[m[2]] = outcome{m[1] == "PASS", strings.TrimSpace(m[3])}
			}
		}
	}
	for _, name := range alone {
		for _, m := range run(name) {
			results[m[2]] = outcome{m[1] == "PASS", strings.TrimSpace(m[3])}
		}
	}
	judge(t, "versitygw", results)
}
