// Package suites runs other projects' test suites against a real server: versitygw's integration tests and minio-go's
// functional tests of S3, and schemathesis, which makes up requests of the API from its OpenAPI document.
//
// Beside each suite of S3 stand two lists. SUITE.excluded names the cases that ask for something outside AgentRun's S3, by
// category; they are run but not counted. SUITE.expected names the counted cases that don't pass, each with its reason. A
// case that fails without standing on a list fails the test, and so does a pass
// rate of the counted cases below 95 %. `go test ./test/suites -count=1 -v -table | grep '^|'`
// prints the results as Markdown.
package suites

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"agentrun.dev/test/harness"
)

var table = flag.Bool("table", false, "print the results as Markdown tables")

// wanted is the least share of the counted cases that must pass, in percent.
const wanted = 95

// outcome is how one case ended.
type outcome struct {
	pass   bool
	detail string // what the suite said about a failure
}

// rule is a line of a list: a regular expression that matches a whole case name, and what stands behind it.
type rule struct {
	cases  *regexp.Regexp
	text   string
	unused bool
}

// rules reads a list: a pattern, a tab, a text a line; # starts a comment line.
func rules(t *testing.T, file string) []*rule {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []*rule
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pattern, text, ok := strings.Cut(line, "\t")
		if !ok || strings.TrimSpace(text) == "" {
			t.Fatalf("%s: want a pattern, a tab and a text: %s", file, line)
		}
		re, err := regexp.Compile("^(?:" + pattern + ")$")
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		list = append(list, &rule{re, strings.TrimSpace(text), true})
	}
	return list
}

func match(list []*rule, name string) *rule {
	for _, r := range list {
		if r.cases.MatchString(name) {
			r.unused = false
			return r
		}
	}
	return nil
}

// judge compares a suite's results with its lists; each counted case is a subtest.
func judge(t *testing.T, suite string, results map[string]outcome) {
	t.Helper()
	excluded, expected := rules(t, suite+".excluded"), rules(t, suite+".expected")
	reference := harness.Under(t) != harness.AgentRun
	categories := map[string]int{}
	counted, passed, failed := 0, 0, 0
	var reasons []string
	for _, name := range slices.Sorted(maps.Keys(results)) {
		if r := match(excluded, name); r != nil {
			categories[r.text]++
			continue
		}
		counted++
		result, known := results[name], match(expected, name)
		if result.pass {
			passed++
		}
		t.Run(name, func(t *testing.T) {
			switch {
			case reference && !result.pass:
				t.Logf("another server fails this, too: %s", result.detail)
			case result.pass && known != nil && !reference:
				// No failure: some of these depend on timing.
				t.Logf("PASSES NOW: take it off %s.expected if it keeps doing so", suite)
			case !result.pass && known == nil:
				failed++
				t.Error(result.detail)
			case !result.pass:
				reasons = append(reasons, fmt.Sprintf("| `%s` | %s |", name, known.text))
			}
		})
	}
	for _, r := range slices.Concat(excluded, expected) {
		if r.unused {
			t.Errorf("no case matches %s in the lists of %s", r.cases, suite)
		}
	}
	if !reference && passed*100 < counted*wanted || counted == 0 {
		t.Errorf("%s: %d of %d counted cases pass, want %d %%", suite, passed, counted, wanted)
	}
	report(suite, counted, passed, failed, categories, reasons)
}

// report prints a summary, as a table if asked for.
func report(suite string, counted, passed, failed int, categories map[string]int, reasons []string) {
	var out []string
	for category, n := range categories {
		out = append(out, fmt.Sprintf("%d %s", n, category))
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Compare(b, a) })
	share := 100 * float64(passed) / float64(max(counted, 1))
	if *table {
		fmt.Printf("| suite | cases counted | pass | share | not counted |\n|-|-|-|-|-|\n| %s | %d | %d | %.1f %% | %s |\n", suite, counted,
			passed, share, strings.Join(out, ", "))
		if len(reasons) > 0 {
			fmt.Printf("\n| case that doesn't pass | reason |\n|-|-|\n%s\n\n", strings.Join(reasons, "\n"))
		}
		return
	}
	fmt.Printf("%s: %d of %d counted cases pass (%.1f %%), %d unexpected; not counted: %s\n", suite, passed, counted, share, failed,
		strings.Join(out, ", "))
}
