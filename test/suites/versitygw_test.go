package suites

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"agentrun.dev/test/harness"
)

// result finds what the suite prints for a case. Lines of cases that run beside each other may share a line.
var result = regexp.MustCompile(`\x1b\[3[0-9]m(PASS|FAIL) \x1b\[0m([A-Za-z0-9_]+)(?:: ([^\x1b\n]*))?`)

// alone are the cases that need a server which holds nothing; others leave buckets behind when they fail.
var alone = []string{"ListBuckets_empty_success"}

// TestVersitygw runs versitygw's full flow twice, each time on a new server: without and with versioning. A case that is part
// of both has to pass in both. A case that crashes takes the whole run with it; what then has no result runs once more alone.
func TestVersitygw(t *testing.T) {
	results := map[string]outcome{}
	note := func(found map[string]outcome) {
		for name, o := range found {
			if old, ok := results[name]; !ok || old.pass {
				results[name] = o
			}
		}
	}
	for _, flow := range [][]string{{"full-flow", "--parallel"}, {"full-flow", "--versioning-enabled", "--parallel"}} {
		names := versitygwCases(t, flow)
		found := versitygwRun(t, flow...)
		if missing := len(names) - len(found); missing > 0 {
			t.Logf("%v broke off: %d of %d cases run alone", flow, missing, len(names))
		}
		for _, name := range names {
			if _, ok := found[name]; !ok {
				found[name] = versitygwAlone(t, name)
			}
		}
		note(found)
	}
	for _, name := range alone {
		results[name] = versitygwAlone(t, name)
	}
	judge(t, "versitygw", results)
}

// versitygwCases returns the names of the cases of a flow: it lets them fail at a port that nothing listens on.
func versitygwCases(t *testing.T, flow []string) (names []string) {
	t.Helper()
	c := harness.NewSession(t, harness.Start(t))
	c.Server.Stop()
	for name := range parse(c.Exec(harness.Tool(t, "versitygw"), versitygwArgs(c, flow)...).Stdout) {
		names = append(names, name)
	}
	if len(names) < 650 {
		t.Fatalf("%v has only %d cases", flow, len(names))
	}
	slices.Sort(names)
	return names
}

// versitygwRun runs a flow, or one case, on a new server and returns the results that it has printed.
func versitygwRun(t *testing.T, flow ...string) map[string]outcome {
	t.Helper()
	c := harness.NewSession(t, harness.Start(t))
	defer c.Server.Stop()
	r := c.Exec(harness.Tool(t, "versitygw"), versitygwArgs(c, flow)...)
	found := parse(r.Stdout)
	if len(found) == 0 {
		found[flow[0]] = outcome{false, "no result: " + strings.Join(strings.Fields(r.Stderr), " ")}
	}
	return found
}

// versitygwAlone runs one case.
func versitygwAlone(t *testing.T, name string) outcome {
	t.Helper()
	return versitygwRun(t, name)[name]
}

// versitygwArgs says how to run a flow or a case. The suite starts ./versitygw for calls of its own admin interface; there is
// none in the session's folder.
func versitygwArgs(c *harness.Session, flow []string) []string {
	return append([]string{"test", "--access", c.Server.AccessKey, "--secret", c.Server.SecretKey, "--endpoint", c.Server.Endpoint}, flow...)
}

// parse reads the results from what the suite prints.
func parse(output string) map[string]outcome {
	found := map[string]outcome{}
	for _, m := range result.FindAllStringSubmatch(output, -1) {
		if old, ok := found[m[2]]; !ok || old.pass {
			found[m[2]] = outcome{m[1] == "PASS", strings.TrimSpace(m[3])}
		}
	}
	return found
}
