// Package e2e drives a real server with the real clients that people have: aws-cli, boto3, rclone, s3cmd, minio-go,
// Tigris' own CLI and SDK, and the shell lines of the guide that AgentRun was built after. Each client has one file (and a
// script in its own language where it is a library); each step checks values, not just that nothing failed.
//
// The tools come from test/setup.sh. AGENTRUN_TEST_SERVER=versitygw runs the plain S3 steps against another server,
// which shows that they ask for S3 and not for something that only AgentRun does.
package e2e

import (
	"bufio"
	"encoding/json"
	"strings"
	"testing"

	"agentrun.dev/test/harness"
)

// script is one client's test: a session whose steps are subtests and share what earlier ones have done.
type script struct {
	*harness.Session
	t *testing.T
}

// start starts a server and opens a session on it. Every script has a server of its own; they run beside each other.
func start(t *testing.T) *script {
	t.Parallel()
	return &script{harness.NewSession(t, harness.Start(t)), t}
}

// startAgentRun is start for what only AgentRun can do.
func startAgentRun(t *testing.T) *script {
	t.Helper()
	if k := harness.Under(t); k != harness.AgentRun {
		t.Skipf("%s has no snapshots and forks: this runs against AgentRun only", k)
	}
	return start(t)
}

// step runs one named step. Later steps run even if it fails, so that one defect doesn't hide others.
func (s *script) step(name string, f func(s *script)) {
	s.t.Helper()
	s.t.Run(name, func(t *testing.T) { f(&script{s.For(t), t}) })
}

// equal fails the step unless got is want.
func equal[T comparable](s *script, what string, got, want T) {
	s.t.Helper()
	if got != want {
		s.t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// contains fails the step unless text holds every word.
func contains(s *script, what, text string, words ...string) {
	s.t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			s.t.Fatalf("%s: no %q in\n%s", what, w, text)
		}
	}
}

// lacks fails the step if text holds any of the words.
func lacks(s *script, what, text string, words ...string) {
	s.t.Helper()
	for _, w := range words {
		if strings.Contains(text, w) {
			s.t.Fatalf("%s: %q in\n%s", what, w, text)
		}
	}
}

// parse reads JSON output into a value.
func parse[T any](s *script, what, text string) (v T) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		s.t.Fatalf("%s: %v in\n%s", what, err, text)
	}
	return v
}

// tap runs a client script written in another language, which reports "ok NAME" and "not ok NAME: WHY" a line
// (an escaped line break in WHY is \n), and turns each report into a subtest. A script that reports fewer than atLeast steps,
// or that fails without a report, fails.
func (s *script) tap(atLeast int, name string, args ...string) {
	s.t.Helper()
	r := s.Exec(name, args...)
	steps, bad := 0, 0
	for sc := bufio.NewScanner(strings.NewReader(r.Stdout)); sc.Scan(); {
		line := sc.Text()
		if step, ok := strings.CutPrefix(line, "ok "); ok {
			steps++
			s.t.Run(step, func(*testing.T) {})
		} else if report, ok := strings.CutPrefix(line, "not ok "); ok {
			step, why, _ := strings.Cut(report, ": ")
			steps, bad = steps+1, bad+1
			s.t.Run(step, func(t *testing.T) { t.Error(strings.ReplaceAll(why, `\n`, "\n")) })
		}
	}
	if steps < atLeast || (r.Exit != 0) != (bad > 0) {
		s.t.Errorf("%s: exit status %d after %d of at least %d steps, %d bad\n%s\n%s", r.Line, r.Exit, steps, atLeast, bad, r.Stdout, r.Stderr)
	}
}
