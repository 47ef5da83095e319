package e2e

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"agentrun.dev/test/harness"
)

// TestRclone scripts rclone: whole trees there and back, compared by content, and changes on both sides.
func TestRclone(t *testing.T) {
	s := start(t)
	rclone := harness.Tool(t, "rclone")
	s.Set("RCLONE_CONFIG_R_TYPE", "s3")
	s.Set("RCLONE_CONFIG_R_PROVIDER", "Other")
	s.Set("RCLONE_CONFIG_R_ENV_AUTH", "true")
	s.Set("RCLONE_CONFIG_R_ENDPOINT", s.Server.Endpoint)
	s.Set("RCLONE_CONFIG_R_REGION", s.Get("AWS_REGION"))
	s.Set("RCLONE_CONFIG_R_CHUNK_SIZE", "5Mi")
	s.Set("RCLONE_CONFIG_R_UPLOAD_CUTOFF", "6Mi")
	s.Set("RCLONE_CONFIG", "/dev/null")
	s.Set("RCLONE_LOW_LEVEL_RETRIES", "1")
	s.Set("RCLONE_RETRIES", "1")

	for i := range 120 {
		s.Write(fmt.Sprintf("src/d%d/f%d.txt", i%7, i), []byte(strings.Repeat(fmt.Sprint(i, " "), i)))
	}
	s.Write("src/ünï cødé/+&=?#%.txt", []byte("odd name"))
	s.Write("src/empty", nil)
	large := harness.Random(2, 12<<20)
	s.Write("src/large.bin", large)

	s.step("copy a tree and check every byte", func(s *script) {
		s.Run(rclone, "mkdir", "R:rclonebucket")
		contains(s, "lsd", s.Run(rclone, "lsd", "R:"), "rclonebucket")
		s.Run(rclone, "copy", "src", "R:rclonebucket/tree")
		s.Run(rclone, "check", "--download", "src", "R:rclonebucket/tree")
		s.Run(rclone, "check", "src", "R:rclonebucket/tree") // by MD5
		contains(s, "size", s.Run(rclone, "size", "R:rclonebucket/tree"), "Total objects: 123")
	})
	s.step("times survive", func(s *script) {
		equal(s, "second copy", transferred(s.Exec(rclone, "copy", "-v", "src", "R:rclonebucket/tree")), 0)
		s.Run(rclone, "copy", "R:rclonebucket/tree", "back")
		s.Run("diff", "-r", "src", "back")
		equal(s, "copy back again", transferred(s.Exec(rclone, "copy", "-v", "R:rclonebucket/tree", "back")), 0)
	})
	s.step("sync makes the target equal", func(s *script) {
		s.Write("src/new.txt", []byte("new"))
		s.Run("rm", "-r", "src/d3")
		s.Run(rclone, "sync", "src", "R:rclonebucket/tree")
		s.Run(rclone, "check", "--download", "src", "R:rclonebucket/tree")
		equal(s, "deleted", s.Run(rclone, "lsf", "-R", "--include", "/d3/**", "R:rclonebucket/tree"), "")
	})
	s.step("copy and move on the server", func(s *script) {
		s.Run(rclone, "copy", "R:rclonebucket/tree", "R:rclonebucket/copied")
		s.Run(rclone, "check", "--download", "R:rclonebucket/tree", "R:rclonebucket/copied")
		s.Run(rclone, "move", "R:rclonebucket/copied", "R:rclonebucket/moved")
		equal(s, "moved away", s.Run(rclone, "lsf", "R:rclonebucket/copied"), "")
		s.Run(rclone, "check", "--download", "src", "R:rclonebucket/moved")
	})
	s.step("parts of a large file, in a part's range", func(s *script) {
		out := s.Run(rclone, "cat", "--offset", "5242870", "--count", "20", "R:rclonebucket/tree/large.bin")
		equal(s, "range", bytes.Equal([]byte(out), large[5242870:5242890]), true)
		s.Set("RCLONE_CONFIG_R_COPY_CUTOFF", "5Mi") // copies in parts on the server
		s.Run(rclone, "copyto", "R:rclonebucket/tree/large.bin", "R:rclonebucket/large.copy")
		equal(s, "copied in parts", bytes.Equal([]byte(s.Run(rclone, "cat", "R:rclonebucket/large.copy")), large), true)
	})
	s.step("a stream of unknown length", func(s *script) {
		s.RunInput(string(large[:7<<20]), rclone, "rcat", "R:rclonebucket/streamed")
		equal(s, "streamed", s.Run(rclone, "cat", "R:rclonebucket/streamed") == string(large[:7<<20]), true)
		s.Fails([]string{"directory not found"}, rclone, "lsf", "R:no-such-bucket")
	})
	s.step("bisync carries changes both ways", func(s *script) {
		s.Write("two/a.txt", []byte("a"))
		s.Write("two/b.txt", []byte("b"))
		s.Run(rclone, "bisync", "--resync", "two", "R:rclonebucket/two")
		s.Write("two/a.txt", []byte("a changed here"))
		s.RunInput("from there", rclone, "rcat", "R:rclonebucket/two/c.txt")
		s.Run(rclone, "deletefile", "R:rclonebucket/two/b.txt")
		s.Run(rclone, "bisync", "--force", "two", "R:rclonebucket/two")
		equal(s, "there", s.Run(rclone, "cat", "R:rclonebucket/two/a.txt"), "a changed here")
		equal(s, "here", string(s.Read("two/c.txt")), "from there")
		equal(s, "both", s.Run(rclone, "lsf", "R:rclonebucket/two"), "a.txt\nc.txt\n")
		s.Run("test", "!", "-e", "two/b.txt")
	})
	s.step("metadata and tiers of an object", func(s *script) {
		s.Run(rclone, "copyto", "--metadata", "--metadata-set", "color=blue", "src/new.txt", "R:rclonebucket/meta.txt")
		contains(s, "metadata", s.Run(rclone, "lsjson", "--metadata", "--stat", "R:rclonebucket/meta.txt"), `"color": "blue"`)
	})
	s.step("a link that works alone", func(s *script) {
		status, body := get(s, strings.TrimSpace(s.Run(rclone, "link", "--expire", "1m", "R:rclonebucket/meta.txt")))
		equal(s, "status", status, 200)
		equal(s, "body", body, "new")
	})
	s.step("names in every encoding", func(s *script) {
		out := s.Run(rclone, "test", "info", "--check-length=false", "--check-normalization=false", "--check-control=false", "--check-streaming", "R:rclonebucket/info")
		lacks(s, "info", out, "FAIL")
	})
	s.step("unfinished uploads are listed and cleaned", func(s *script) {
		equal(s, "unfinished", strings.TrimSpace(s.Run(rclone, "backend", "list-multipart-uploads", "R:rclonebucket")), `{`+"\n\t"+`"rclonebucket": []`+"\n}")
	})
	s.step("purge leaves nothing", func(s *script) {
		s.Run(rclone, "purge", "R:rclonebucket")
		lacks(s, "lsd", s.Run(rclone, "lsd", "R:"), "rclonebucket")
	})
}

// transferred returns the number of files that a verbose rclone run says it has copied.
func transferred(r harness.Result) int {
	return strings.Count(r.Stderr, ": Copied (")
}
