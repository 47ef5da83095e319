package e2e

import (
	"regexp"
	"strings"
	"testing"

	"agentrun.dev/test/harness"
)

// TestTigrisCLI scripts the unmodified @tigrisdata/cli, whose wire protocol for snapshots and forks AgentRun speaks.
func TestTigrisCLI(t *testing.T) {
	s := startAgentRun(t)
	tigris := harness.Tool(t, "tigris")
	run := func(s *script, args ...string) string { return s.Run(tigris, args...) }
	s.Write("one.txt", []byte("first"))
	s.Write("two.txt", []byte("second"))
	var version string

	s.step("buckets create with snapshots", func(s *script) {
		run(s, "buckets", "create", "base", "--enable-snapshots")
		contains(s, "list", run(s, "buckets", "list", "--json"), `"base"`)
		contains(s, "get", run(s, "buckets", "get", "base", "--json"), "base")
		contains(s, "ls", run(s, "ls"), "base")
	})
	s.step("objects put, list, get", func(s *script) {
		run(s, "objects", "put", "base", "dir/file.txt", "one.txt")
		contains(s, "list", run(s, "objects", "list", "base", "--prefix", "dir/", "--json"), "dir/file.txt")
		equal(s, "get", strings.TrimSpace(run(s, "objects", "get", "base", "dir/file.txt")), "first")
		contains(s, "info", run(s, "objects", "info", "base", "dir/file.txt"), "5")
		run(s, "cp", "two.txt", "t3://base/copied.txt")
		run(s, "mv", "t3://base/copied.txt", "t3://base/moved.txt", "-f")
		list := run(s, "ls", "t3://base")
		contains(s, "ls", list, "moved.txt")
		lacks(s, "ls", list, "copied.txt")
	})
	s.step("snapshots take and list", func(s *script) {
		out := run(s, "snapshots", "take", "base", "before", "--json")
		version = regexp.MustCompile(`\d{19}`).FindString(out)
		if version == "" {
			s.t.Fatalf("no version in %s", out)
		}
		run(s, "objects", "put", "base", "dir/file.txt", "two.txt")
		contains(s, "list", run(s, "snapshots", "list", "base", "--json"), version, "before")
	})
	s.step("forks of now and of a snapshot", func(s *script) {
		run(s, "buckets", "create", "fork-now", "--fork-of", "base")
		run(s, "buckets", "create", "fork-then", "--fork-of", "base", "--source-snapshot", version)
		equal(s, "now", strings.TrimSpace(run(s, "objects", "get", "fork-now", "dir/file.txt")), "second")
		equal(s, "then", strings.TrimSpace(run(s, "objects", "get", "fork-then", "dir/file.txt")), "first")
		forks := run(s, "buckets", "list", "--forks-of", "base", "--json")
		contains(s, "forks", forks, "fork-now", "fork-then")
		contains(s, "info", run(s, "buckets", "get", "fork-now"), "base")
	})
	s.step("a fork's writes stay in it until they are merged", func(s *script) {
		run(s, "objects", "put", "fork-now", "result.txt", "one.txt")
		s.Fails(nil, tigris, "objects", "get", "base", "result.txt")
		run(s, "buckets", "merge", "fork-now", "--yes")
		equal(s, "merged", strings.TrimSpace(run(s, "objects", "get", "base", "result.txt")), "first")
	})
	s.step("rebase brings the base's news", func(s *script) {
		run(s, "objects", "put", "base", "news.txt", "one.txt")
		run(s, "buckets", "rebase", "fork-now", "--yes")
		equal(s, "news", strings.TrimSpace(run(s, "objects", "get", "fork-now", "news.txt")), "first")
	})
	s.step("a merge that conflicts is refused", func(s *script) {
		run(s, "buckets", "create", "fork-conflict", "--fork-of", "base")
		run(s, "objects", "put", "fork-conflict", "news.txt", "two.txt")
		s.Write("three.txt", []byte("third"))
		run(s, "objects", "put", "base", "news.txt", "three.txt")
		s.Fails(nil, tigris, "buckets", "merge", "fork-conflict", "--yes")
		equal(s, "unchanged", strings.TrimSpace(run(s, "objects", "get", "base", "news.txt")), "third")
	})
	s.step("a bundle of objects", func(s *script) {
		run(s, "bundle", "base", "--keys", "dir/file.txt,result.txt", "--output", "bundle.tar")
		list := s.Run("tar", "-tf", "bundle.tar")
		contains(s, "bundle", list, "dir/file.txt", "result.txt")
	})
	s.step("a presigned link works alone", func(s *script) {
		link := regexp.MustCompile(`https?://\S+`).FindString(run(s, "presign", "t3://base/result.txt"))
		link = strings.Trim(link, `"'`)
		status, body := get(s, link)
		equal(s, "status", status, 200)
		equal(s, "body", body, "first")
	})
	s.step("access keys for one bucket", func(s *script) {
		created := run(s, "access-keys", "create", "agent-key", "--json")
		id := field(created, "id", "accessKeyId", "accessKey")
		secret := field(created, "secret", "secretAccessKey", "secretKey")
		if id == "" || secret == "" {
			s.t.Fatalf("no key in %s", created)
		}
		run(s, "access-keys", "assign", id, "--bucket", "fork-then", "--role", "Editor")
		contains(s, "list", run(s, "access-keys", "list", "--json"), id)
		agent := s.For(s.t)
		agent.Set("AWS_ACCESS_KEY_ID", id)
		agent.Set("AWS_SECRET_ACCESS_KEY", secret)
		aws := harness.Tool(t, "aws")
		agent.Run(aws, "s3", "cp", "one.txt", "s3://fork-then/by-agent")
		agent.Fails([]string{"AccessDenied"}, aws, "s3", "cp", "one.txt", "s3://base/by-agent")
		agent.Fails([]string{"403"}, aws, "s3", "cp", "s3://base/dir/file.txt", "-")
		run(s, "access-keys", "delete", id, "--force")
		agent.Fails([]string{"InvalidAccessKeyId"}, aws, "s3", "cp", "one.txt", "s3://fork-then/by-agent")
	})
	s.step("buckets delete", func(s *script) {
		for _, b := range []string{"base", "fork-now", "fork-then", "fork-conflict"} {
			run(s, "rm", "t3://"+b, "-r", "-f")
		}
	})
}

// field returns the first of the named string fields in JSON text.
func field(text string, names ...string) string {
	for _, n := range names {
		if m := regexp.MustCompile(`(?i)"` + n + `":\s*"([^"]+)"`).FindStringSubmatch(text); m != nil {
			return m[1]
		}
	}
	return ""
}
