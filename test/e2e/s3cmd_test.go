package e2e

import (
	"bytes"
	"fmt"
	"testing"

	"agentrun.dev/test/harness"
)

// TestS3cmd scripts s3cmd, an old client that signs and lists in the ways of its time.
func TestS3cmd(t *testing.T) {
	s := start(t)
	s3cmd := harness.Tool(t, "s3cmd")
	host := s.Server.Host()
	s.Write("s3cfg", fmt.Appendf(nil, `[default]
access_key = %s
secret_key = %s
host_base = %s
host_bucket = %s
bucket_location = US
use_https = False
signature_v2 = False
multipart_chunk_size_mb = 5
max_retries = 1
progress_meter = False
`, s.Get("AWS_ACCESS_KEY_ID"), s.Get("AWS_SECRET_ACCESS_KEY"), host, host))
	run := func(s *script, args ...string) string {
		return s.Run(s3cmd, append([]string{"-c", "s3cfg"}, args...)...)
	}
	large := harness.Random(3, 12<<20)
	s.Write("small.txt", []byte("hello s3cmd\n"))
	s.Write("large.bin", large)

	s.step("mb and ls", func(s *script) {
		contains(s, "mb", run(s, "mb", "s3://cmdbucket"), "Bucket 's3://cmdbucket/' created")
		contains(s, "ls", run(s, "ls"), "s3://cmdbucket")
	})
	s.step("put and get a small file", func(s *script) {
		run(s, "put", "--add-header=x-amz-meta-color:blue", "--mime-type=text/x-small", "small.txt", "s3://cmdbucket/dir/small.txt")
		run(s, "get", "--force", "s3://cmdbucket/dir/small.txt", "small.back")
		equal(s, "content", string(s.Read("small.back")), "hello s3cmd\n")
	})
	s.step("put and get in parts", func(s *script) {
		run(s, "put", "large.bin", "s3://cmdbucket/large.bin")
		run(s, "get", "--force", "s3://cmdbucket/large.bin", "large.back")
		equal(s, "same bytes", bytes.Equal(s.Read("large.back"), large), true)
	})
	s.step("info and ls tell what is there", func(s *script) {
		info := run(s, "info", "s3://cmdbucket/dir/small.txt")
		contains(s, "info", info, "File size: 12", "text/x-small", "x-amz-meta-color: blue", "MD5 sum:   7455733dfd067c36d35c663ce9910a0d")
		ls := run(s, "ls", "s3://cmdbucket")
		contains(s, "ls", ls, "DIR  s3://cmdbucket/dir/", "12582912  s3://cmdbucket/large.bin")
		contains(s, "la", run(s, "la", "--recursive"), "s3://cmdbucket/dir/small.txt")
		contains(s, "du", run(s, "du", "s3://cmdbucket"), "12582924")
		contains(s, "bucket", run(s, "info", "s3://cmdbucket"), "Location:")
	})
	s.step("cp and mv on the server", func(s *script) {
		run(s, "cp", "s3://cmdbucket/dir/small.txt", "s3://cmdbucket/copied +&.txt")
		run(s, "mv", "s3://cmdbucket/copied +&.txt", "s3://cmdbucket/moved")
		equal(s, "moved", run(s, "get", "s3://cmdbucket/moved", "-"), "hello s3cmd\n")
		lacks(s, "ls", run(s, "ls", "s3://cmdbucket"), "copied")
	})
	s.step("sync both ways", func(s *script) {
		for _, n := range []string{"a.txt", "b/c d.txt", "b/ünï.txt"} {
			s.Write("tree/"+n, []byte("content of "+n))
		}
		run(s, "sync", "tree/", "s3://cmdbucket/tree/")
		lacks(s, "second sync", run(s, "sync", "tree/", "s3://cmdbucket/tree/"), "upload:")
		run(s, "sync", "s3://cmdbucket/tree/", "back/")
		s.Run("diff", "-r", "tree", "back")
		s.Run("rm", "tree/a.txt")
		contains(s, "sync --delete", run(s, "sync", "--delete-removed", "tree/", "s3://cmdbucket/tree/"), "delete: 's3://cmdbucket/tree/a.txt'")
	})
	s.step("multipart by hand is listed and aborted", func(s *script) {
		contains(s, "none", run(s, "multipart", "s3://cmdbucket"), "Initiated\tPath\tId")
		s.Fails([]string{"404"}, s3cmd, "-c", "s3cfg", "abortmp", "s3://cmdbucket/none", "3e4f5b5c-0000-4000-8000-000000000000")
	})
	s.step("modify and headers", func(s *script) {
		run(s, "modify", "--add-header=x-amz-meta-color:red", "s3://cmdbucket/dir/small.txt")
		contains(s, "info", run(s, "info", "s3://cmdbucket/dir/small.txt"), "x-amz-meta-color: red")
	})
	s.step("setacl is answered", func(s *script) {
		// Objects belong to the bucket's owner; a canned ACL that says just that is taken, anything else is refused in words.
		r := s.Exec(s3cmd, "-c", "s3cfg", "setacl", "--acl-private", "s3://cmdbucket/moved")
		if r.Exit != 0 {
			code := "AccessControlListNotSupported"
			if s.Server.Kind == harness.Versitygw {
				code = "NotImplemented"
			}
			contains(s, "setacl", r.Stderr, code)
		}
	})
	s.step("del and rb", func(s *script) {
		s.Fails([]string{"BucketNotEmpty"}, s3cmd, "-c", "s3cfg", "rb", "s3://cmdbucket")
		run(s, "del", "s3://cmdbucket/moved")
		run(s, "del", "--recursive", "--force", "s3://cmdbucket")
		equal(s, "left", run(s, "ls", "s3://cmdbucket"), "")
		run(s, "rb", "s3://cmdbucket")
		s.Fails([]string{"NoSuchBucket"}, s3cmd, "-c", "s3cfg", "ls", "s3://cmdbucket")
	})
}
