package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"agentrun.dev/test/harness"
)

// TestAWSCLI scripts aws-cli: the high-level commands that people type, and the API commands that scripts are made of.
func TestAWSCLI(t *testing.T) {
	s := start(t)
	aws := harness.Tool(t, "aws")
	large := harness.Random(1, 20<<20) // three parts at aws-cli's default of 8 MiB
	s.Write("small.txt", []byte("hello\n"))
	if s.Server.Kind == harness.Versitygw {
		s.Run(aws, "configure", "set", "default.s3.signature_version", "s3v4") // else it presigns with SigV2 in us-east-1
	}
	s.Write("large.bin", large)

	s.step("mb makes a bucket that ls shows", func(s *script) {
		contains(s, "mb", s.Run(aws, "s3", "mb", "s3://clibucket"), "make_bucket: clibucket")
		contains(s, "ls", s.Run(aws, "s3", "ls"), " clibucket\n")
		s.Fails([]string{"BucketAlreadyOwnedByYou"}, aws, "s3api", "create-bucket", "--bucket", "clibucket")
		s.Fails([]string{"InvalidBucketName"}, aws, "s3api", "create-bucket", "--bucket", "Not_A_Bucket")
	})
	s.step("cp takes a small file there and back", func(s *script) {
		s.Run(aws, "s3", "cp", "small.txt", "s3://clibucket/dir/small.txt")
		equal(s, "content", s.Run(aws, "s3", "cp", "s3://clibucket/dir/small.txt", "-"), "hello\n")
		s.RunInput("from a pipe", aws, "s3", "cp", "-", "s3://clibucket/piped")
		equal(s, "piped", s.Run(aws, "s3", "cp", "s3://clibucket/piped", "-"), "from a pipe")
		s.Fails([]string{"404"}, aws, "s3", "cp", "s3://clibucket/none", "-")
	})
	s.step("cp takes a multipart file there and back", func(s *script) {
		s.Run(aws, "s3", "cp", "--no-progress", "large.bin", "s3://clibucket/large.bin")
		s.Run(aws, "s3", "cp", "--no-progress", "s3://clibucket/large.bin", "large.back")
		equal(s, "same bytes", bytes.Equal(s.Read("large.back"), large), true)
		head := s.Run(aws, "s3api", "head-object", "--bucket", "clibucket", "--key", "large.bin")
		contains(s, "head", head, `"ContentLength": 20971520`, `-3\""`)
	})
	s.step("cp copies on the server", func(s *script) {
		s.Run(aws, "s3", "cp", "--no-progress", "s3://clibucket/large.bin", "s3://clibucket/copy.bin")
		s.Run(aws, "s3", "cp", "--no-progress", "s3://clibucket/copy.bin", "copy.back")
		equal(s, "same bytes", bytes.Equal(s.Read("copy.back"), large), true)
		s.Run(aws, "s3", "mv", "s3://clibucket/dir/small.txt", "s3://clibucket/dir/moved.txt")
		contains(s, "ls", s.Run(aws, "s3", "ls", "s3://clibucket/dir/"), " 6 moved.txt\n")
		lacks(s, "ls", s.Run(aws, "s3", "ls", "s3://clibucket/dir/"), "small.txt")
	})
	s.step("ls shows folders, sizes and sums", func(s *script) {
		top := s.Run(aws, "s3", "ls", "s3://clibucket")
		contains(s, "top", top, "PRE dir/", "20971520 large.bin", "11 piped")
		all := s.Run(aws, "s3", "ls", "--recursive", "--summarize", "s3://clibucket")
		contains(s, "all", all, "6 dir/moved.txt", "Total Objects: 4", fmt.Sprintf("Total Size: %d", 2*len(large)+6+11))
	})
	s.step("sync sends what changed and deletes on request", func(s *script) {
		names := []string{"a.txt", "b/c.txt", "b/d e+f.txt", "ünïcode/ключ.txt", "b/(1)=~.txt"}
		for _, n := range names {
			s.Write("tree/"+n, []byte("content of "+n))
		}
		s.Run(aws, "s3", "sync", "tree", "s3://clibucket/tree")
		s.Run(aws, "s3", "sync", "s3://clibucket/tree", "tree.back")
		for _, n := range names {
			equal(s, n, string(s.Read("tree.back/"+n)), "content of "+n)
		}
		equal(s, "second sync", s.Run(aws, "s3", "sync", "tree", "s3://clibucket/tree"), "")
		s.Write("tree/a.txt", []byte("a content that is longer"))
		s.Run("rm", "-r", "tree/b")
		out := s.Run(aws, "s3", "sync", "--delete", "tree", "s3://clibucket/tree")
		contains(s, "third sync", out, "upload: tree/a.txt", "delete: s3://clibucket/tree/b/c.txt", "delete: s3://clibucket/tree/b/(1)=~.txt")
		equal(s, "left", len(strings.Fields(s.Run(aws, "s3api", "list-objects-v2", "--bucket", "clibucket", "--prefix", "tree/",
			"--query", "Contents[].Size", "--output", "text"))), 2)
	})
	s.step("presign gives a URL that works alone and not when changed", func(s *script) {
		url := strings.TrimSpace(s.Run(aws, "s3", "presign", "s3://clibucket/piped", "--expires-in", "600"))
		status, body := get(s, url)
		equal(s, "status", status, 200)
		equal(s, "body", body, "from a pipe")
		status, body = get(s, strings.Replace(url, "/piped", "/large.bin", 1))
		equal(s, "changed", status, 403)
		contains(s, "changed", body, "<Code>SignatureDoesNotMatch</Code>")
		status, _ = get(s, s.Server.Endpoint+"/clibucket/piped")
		equal(s, "unsigned", status, 403)
	})
	s.step("wrong keys are refused", func(s *script) {
		bad := s.For(s.t)
		bad.Set("AWS_SECRET_ACCESS_KEY", "not the secret")
		bad.Fails([]string{"SignatureDoesNotMatch"}, aws, "s3api", "list-buckets")
		bad.Set("AWS_ACCESS_KEY_ID", "AKIANOBODY")
		bad.Fails([]string{"InvalidAccessKeyId"}, aws, "s3api", "list-buckets")
	})
	s.step("any region signs", func(s *script) {
		if s.Server.Kind != harness.AgentRun {
			s.t.Skip("only AgentRun takes every region")
		}
		for _, region := range []string{"auto", "eu-central-1"} {
			contains(s, region, s.Run(aws, "--region", region, "s3", "ls"), "clibucket")
			s.Run(aws, "--region", region, "s3", "mb", "s3://in-"+region)
			s.Run(aws, "--region", region, "s3", "rb", "s3://in-"+region)
		}
	})
	awsConditions(s, aws)
	awsChecksums(s, aws)
	awsProperties(s, aws)
	awsVersions(s, aws)
	awsMultipart(s, aws, large)
	s.step("rm and rb leave nothing", func(s *script) {
		s.Fails([]string{"BucketNotEmpty"}, aws, "s3", "rb", "s3://clibucket")
		s.Run(aws, "s3", "rm", "--recursive", "--quiet", "s3://clibucket")
		equal(s, "left", s.Run(aws, "s3", "ls", "s3://clibucket"), "")
		contains(s, "rb", s.Run(aws, "s3", "rb", "s3://clibucket"), "remove_bucket: clibucket")
		s.Fails([]string{"NoSuchBucket"}, aws, "s3", "ls", "s3://clibucket")
	})
}

// get reads a URL without credentials.
func get(s *script, url string) (status int, body string) {
	s.t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// awsConditions: conditional writes and reads, ranges.
func awsConditions(s *script, aws string) {
	api := func(s *script, args ...string) string { return s.Run(aws, append([]string{"s3api"}, args...)...) }
	s.step("put If-None-Match creates once", func(s *script) {
		s.Write("one", []byte("one"))
		s.Write("two", []byte("two"))
		api(s, "put-object", "--bucket", "clibucket", "--key", "cond", "--body", "one", "--if-none-match", "*")
		s.Fails([]string{"PreconditionFailed"}, aws, "s3api", "put-object", "--bucket", "clibucket", "--key", "cond", "--body", "two",
			"--if-none-match", "*")
		equal(s, "content", s.Run(aws, "s3", "cp", "s3://clibucket/cond", "-"), "one")
	})
	s.step("put If-Match replaces what was seen", func(s *script) {
		etag := strings.TrimSpace(api(s, "head-object", "--bucket", "clibucket", "--key", "cond", "--query", "ETag", "--output", "text"))
		equal(s, "etag is the MD5", etag, `"f97c5d29941bfb1b2fdab0874906ab82"`)
		s.Fails([]string{"PreconditionFailed"}, aws, "s3api", "put-object", "--bucket", "clibucket", "--key", "cond", "--body", "two",
			"--if-match", `"00000000000000000000000000000000"`)
		api(s, "put-object", "--bucket", "clibucket", "--key", "cond", "--body", "two", "--if-match", etag)
		equal(s, "content", s.Run(aws, "s3", "cp", "s3://clibucket/cond", "-"), "two")
		s.Fails([]string{"NoSuchKey"}, aws, "s3api", "put-object", "--bucket", "clibucket", "--key", "cond-none", "--body", "two",
			"--if-match", etag)
	})
	s.step("get If-Match, If-None-Match and by date", func(s *script) {
		etag := strings.TrimSpace(api(s, "head-object", "--bucket", "clibucket", "--key", "cond", "--query", "ETag", "--output", "text"))
		args := []string{"get-object", "--bucket", "clibucket", "--key", "cond"}
		api(s, append(args, "--if-match", etag, "got")...)
		equal(s, "got", string(s.Read("got")), "two")
		s.Fails([]string{"304"}, aws, append(append([]string{"s3api"}, args...), "--if-none-match", etag, "got")...)
		s.Fails([]string{"PreconditionFailed"}, aws, append(append([]string{"s3api"}, args...), "--if-unmodified-since", "2001-01-01T00:00:00Z", "got")...)
		api(s, append(args, "--if-modified-since", "2001-01-01T00:00:00Z", "got")...)
		if s.Server.Kind == harness.Versitygw {
			return // it compares with the nanoseconds that its answer doesn't show
		}
		date := strings.TrimSpace(api(s, "head-object", "--bucket", "clibucket", "--key", "cond", "--query", "LastModified", "--output", "text"))
		s.Fails([]string{"304"}, aws, append(append([]string{"s3api"}, args...), "--if-modified-since", date, "got")...)
	})
	s.step("ranges", func(s *script) {
		for _, c := range []struct{ ask, content, header string }{
			{"bytes=0-1", "tw", "bytes 0-1/3"}, {"bytes=1-", "wo", "bytes 1-2/3"}, {"bytes=-1", "o", "bytes 2-2/3"},
			{"bytes=1-100", "wo", "bytes 1-2/3"}, {"bytes=-100", "two", "bytes 0-2/3"},
		} {
			out := api(s, "get-object", "--bucket", "clibucket", "--key", "cond", "--range", c.ask, "got")
			equal(s, c.ask, string(s.Read("got")), c.content)
			contains(s, c.ask, out, c.header)
		}
		s.Fails([]string{"InvalidRange"}, aws, "s3api", "get-object", "--bucket", "clibucket", "--key", "cond", "--range", "bytes=3-", "got")
	})
}

// awsChecksums: every algorithm is computed by the client, checked and returned by the server.
func awsChecksums(s *script, aws string) {
	s.Write("digits", []byte("123456789"))
	sum := sha256.Sum256([]byte("123456789"))
	for _, c := range []struct{ algorithm, flag, want string }{
		{"CRC32", "--checksum-crc32", "y/Q5Jg=="},
		{"CRC32C", "--checksum-crc32-c", "4waSgw=="},
		{"CRC64NVME", "--checksum-crc64-nvme", "rosUhgp5mIg="},
		{"SHA1", "--checksum-sha1", "98O8HYCOBHMq32eZZczDTKeuNEE="},
		{"SHA256", "--checksum-sha256", base64.StdEncoding.EncodeToString(sum[:])},
	} {
		s.step("checksum "+c.algorithm, func(s *script) {
			key := "sum-" + c.algorithm
			contains(s, "put", s.Run(aws, "s3api", "put-object", "--bucket", "clibucket", "--key", key, "--body", "digits",
				"--checksum-algorithm", c.algorithm), c.want)
			contains(s, "head", s.Run(aws, "s3api", "head-object", "--bucket", "clibucket", "--key", key, "--checksum-mode", "ENABLED"), c.want)
			contains(s, "attributes", s.Run(aws, "s3api", "get-object-attributes", "--bucket", "clibucket", "--key", key,
				"--object-attributes", "ETag", "Checksum", "ObjectSize"), c.want, `"ObjectSize": 9`, `"25f9e794323b453885f5181f1b624d0b"`)
			wrong := base64.StdEncoding.EncodeToString(make([]byte, len(c.want)/4*3-strings.Count(c.want, "=")))
			s.Fails([]string{"BadDigest"}, aws, "s3api", "put-object", "--bucket", "clibucket", "--key", key, "--body", "one", c.flag, wrong)
			equal(s, "kept", s.Run(aws, "s3", "cp", "s3://clibucket/"+key, "-"), "123456789")
		})
	}
	s.step("checksum Content-MD5", func(s *script) {
		s.Fails([]string{"BadDigest"}, aws, "s3api", "put-object", "--bucket", "clibucket", "--key", "md5", "--body", "one",
			"--content-md5", "AAAAAAAAAAAAAAAAAAAAAA==")
		s.Run(aws, "s3api", "put-object", "--bucket", "clibucket", "--key", "md5", "--body", "one", "--content-md5", "+XxdKZQb+xsv2rCHSQargg==")
	})
}

// awsProperties: metadata, tags, CORS, location and the answers about owners.
func awsProperties(s *script, aws string) {
	api := func(s *script, args ...string) string { return s.Run(aws, append([]string{"s3api"}, args...)...) }
	s.step("metadata and headers stay, and change by copy", func(s *script) {
		api(s, "put-object", "--bucket", "clibucket", "--key", "meta", "--body", "one", "--metadata", "color=blue,shape=round",
			"--content-type", "text/x-one", "--cache-control", "max-age=5", "--content-disposition", "inline", "--content-language", "de")
		head := api(s, "head-object", "--bucket", "clibucket", "--key", "meta")
		contains(s, "head", head, `"color": "blue"`, `"shape": "round"`, "text/x-one", "max-age=5", `"inline"`, `"de"`)
		api(s, "copy-object", "--bucket", "clibucket", "--key", "meta2", "--copy-source", "clibucket/meta")
		contains(s, "copied", api(s, "head-object", "--bucket", "clibucket", "--key", "meta2"), `"color": "blue"`, "text/x-one")
		api(s, "copy-object", "--bucket", "clibucket", "--key", "meta2", "--copy-source", "clibucket/meta",
			"--metadata-directive", "REPLACE", "--metadata", "color=red")
		head = api(s, "head-object", "--bucket", "clibucket", "--key", "meta2")
		contains(s, "replaced", head, `"color": "red"`)
		lacks(s, "replaced", head, "shape", "text/x-one")
		s.Fails([]string{"InvalidRequest"}, aws, "s3api", "copy-object", "--bucket", "clibucket", "--key", "meta", "--copy-source", "clibucket/meta")
	})
	s.step("object tags", func(s *script) {
		api(s, "put-object", "--bucket", "clibucket", "--key", "tagged", "--body", "one", "--tagging", "a=1&b=two%20words")
		tags := api(s, "get-object-tagging", "--bucket", "clibucket", "--key", "tagged")
		contains(s, "tags", tags, `"two words"`)
		api(s, "put-object-tagging", "--bucket", "clibucket", "--key", "tagged", "--tagging", "TagSet=[{Key=c,Value=3}]")
		tags = api(s, "get-object-tagging", "--bucket", "clibucket", "--key", "tagged", "--query", "TagSet[].[Key,Value]", "--output", "text")
		equal(s, "tags", strings.Join(strings.Fields(tags), " "), "c 3")
		contains(s, "count", api(s, "get-object", "--bucket", "clibucket", "--key", "tagged", "got"), `"TagCount": 1`)
		api(s, "delete-object-tagging", "--bucket", "clibucket", "--key", "tagged")
		contains(s, "none", api(s, "get-object-tagging", "--bucket", "clibucket", "--key", "tagged"), `"TagSet": []`)
	})
	s.step("bucket tags", func(s *script) {
		s.Fails([]string{"NoSuchTagSet"}, aws, "s3api", "get-bucket-tagging", "--bucket", "clibucket")
		api(s, "put-bucket-tagging", "--bucket", "clibucket", "--tagging", "TagSet=[{Key=team,Value=agents}]")
		contains(s, "tags", api(s, "get-bucket-tagging", "--bucket", "clibucket"), `"agents"`)
		api(s, "delete-bucket-tagging", "--bucket", "clibucket")
		s.Fails([]string{"NoSuchTagSet"}, aws, "s3api", "get-bucket-tagging", "--bucket", "clibucket")
	})
	s.step("CORS", func(s *script) {
		s.Fails([]string{"NoSuchCORSConfiguration"}, aws, "s3api", "get-bucket-cors", "--bucket", "clibucket")
		api(s, "put-bucket-cors", "--bucket", "clibucket", "--cors-configuration",
			`{"CORSRules":[{"AllowedOrigins":["https://app.example"],"AllowedMethods":["GET","PUT"],"AllowedHeaders":["*"],"MaxAgeSeconds":60}]}`)
		contains(s, "cors", api(s, "get-bucket-cors", "--bucket", "clibucket"), "https://app.example", `"MaxAgeSeconds": 60`)
		req, _ := http.NewRequest(http.MethodOptions, s.Server.Endpoint+"/clibucket/piped", nil)
		req.Header.Set("Origin", "https://app.example")
		req.Header.Set("Access-Control-Request-Method", "PUT")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			s.t.Fatal(err)
		}
		resp.Body.Close()
		equal(s, "preflight", resp.StatusCode, 200)
		equal(s, "origin", resp.Header.Get("Access-Control-Allow-Origin"), "https://app.example")
		api(s, "delete-bucket-cors", "--bucket", "clibucket")
		s.Fails([]string{"NoSuchCORSConfiguration"}, aws, "s3api", "get-bucket-cors", "--bucket", "clibucket")
	})
	s.step("location, owner and ACL answers", func(s *script) {
		api(s, "get-bucket-location", "--bucket", "clibucket")
		contains(s, "bucket ACL", api(s, "get-bucket-acl", "--bucket", "clibucket"), "FULL_CONTROL")
		contains(s, "ownership", api(s, "get-bucket-ownership-controls", "--bucket", "clibucket"), "BucketOwnerEnforced")
	})
}

// awsVersions: versioning, delete markers, and bulk deletion.
func awsVersions(s *script, aws string) {
	api := func(s *script, args ...string) string { return s.Run(aws, append([]string{"s3api"}, args...)...) }
	s.step("versions stay readable until deleted", func(s *script) {
		api(s, "create-bucket", "--bucket", "cliversions")
		equal(s, "status", strings.TrimSpace(api(s, "get-bucket-versioning", "--bucket", "cliversions")), "")
		api(s, "put-bucket-versioning", "--bucket", "cliversions", "--versioning-configuration", "Status=Enabled")
		contains(s, "status", api(s, "get-bucket-versioning", "--bucket", "cliversions"), `"Enabled"`)
		put := func(body string) string {
			return strings.TrimSpace(api(s, "put-object", "--bucket", "cliversions", "--key", "k", "--body", body, "--query", "VersionId",
				"--output", "text"))
		}
		v1, v2 := put("one"), put("two")
		if v1 == v2 || v1 == "None" {
			s.t.Fatalf("versions %q and %q", v1, v2)
		}
		api(s, "get-object", "--bucket", "cliversions", "--key", "k", "--version-id", v1, "got")
		equal(s, "old", string(s.Read("got")), "one")
		marker := parse[struct {
			DeleteMarker bool
			VersionId    string
		}](s, "delete", api(s, "delete-object", "--bucket", "cliversions", "--key", "k"))
		equal(s, "marker", marker.DeleteMarker, true)
		s.Fails([]string{"NoSuchKey"}, aws, "s3api", "get-object", "--bucket", "cliversions", "--key", "k", "got")
		list := parse[struct {
			Versions      []struct{ VersionId string }
			DeleteMarkers []struct {
				VersionId string
				IsLatest  bool
			}
		}](s, "versions", api(s, "list-object-versions", "--bucket", "cliversions"))
		equal(s, "versions", len(list.Versions), 2)
		equal(s, "newest first", list.Versions[0].VersionId, v2)
		equal(s, "markers", len(list.DeleteMarkers), 1)
		equal(s, "marker is latest", list.DeleteMarkers[0].IsLatest, true)
		api(s, "delete-object", "--bucket", "cliversions", "--key", "k", "--version-id", marker.VersionId)
		api(s, "get-object", "--bucket", "cliversions", "--key", "k", "got")
		equal(s, "back", string(s.Read("got")), "two")
		api(s, "delete-object", "--bucket", "cliversions", "--key", "k", "--version-id", v2)
		api(s, "get-object", "--bucket", "cliversions", "--key", "k", "got")
		equal(s, "older", string(s.Read("got")), "one")
		s.Fails([]string{"NoSuchVersion"}, aws, "s3api", "get-object", "--bucket", "cliversions", "--key", "k", "--version-id", v2, "got")
		api(s, "delete-object", "--bucket", "cliversions", "--key", "k", "--version-id", v1)
		api(s, "delete-bucket", "--bucket", "cliversions")
	})
	s.step("delete-objects reports each key", func(s *script) {
		for _, k := range []string{"bulk/1", "bulk/2"} {
			api(s, "put-object", "--bucket", "clibucket", "--key", k, "--body", "one")
		}
		out := api(s, "delete-objects", "--bucket", "clibucket", "--delete", `{"Objects":[{"Key":"bulk/1"},{"Key":"bulk/2"},{"Key":"bulk/none"}]}`)
		contains(s, "deleted", out, "bulk/1", "bulk/2", "bulk/none")
		lacks(s, "errors", out, "Errors")
		equal(s, "left", strings.TrimSpace(api(s, "list-objects-v2", "--bucket", "clibucket", "--prefix", "bulk/", "--query", "KeyCount")), "null")
		if s.Server.Kind == harness.Versitygw {
			return // it names deleted keys even when asked to be quiet
		}
		equal(s, "quiet", strings.TrimSpace(api(s, "delete-objects", "--bucket", "clibucket", "--delete", `{"Objects":[{"Key":"x"}],"Quiet":true}`)), "")
	})
}

// awsMultipart: the multipart calls one by one, with a part copied on the server.
func awsMultipart(s *script, aws string, large []byte) {
	api := func(s *script, args ...string) string { return s.Run(aws, append([]string{"s3api"}, args...)...) }
	s.step("multipart by hand", func(s *script) {
		s.Write("part1", large[:5<<20])
		api(s, "put-object", "--bucket", "clibucket", "--key", "plain.bin", "--body", "large.bin")
		id := strings.TrimSpace(api(s, "create-multipart-upload", "--bucket", "clibucket", "--key", "mp", "--query", "UploadId", "--output", "text",
			"--checksum-algorithm", "CRC32"))
		contains(s, "uploads", api(s, "list-multipart-uploads", "--bucket", "clibucket"), id)
		etag := func(query string, args ...string) string {
			return strings.TrimSpace(api(s, append(args, "--query", query, "--output", "text")...))
		}
		e1 := etag("ETag", "upload-part", "--bucket", "clibucket", "--key", "mp", "--upload-id", id, "--part-number", "1", "--body", "part1",
			"--checksum-algorithm", "CRC32")
		e2 := etag("CopyPartResult.ETag", "upload-part-copy", "--bucket", "clibucket", "--key", "mp", "--upload-id", id, "--part-number", "2",
			"--copy-source", "clibucket/plain.bin", "--copy-source-range", "bytes=5242880-10485759")
		list := api(s, "list-parts", "--bucket", "clibucket", "--key", "mp", "--upload-id", id, "--query", "Parts[].Size", "--output", "text")
		equal(s, "sizes", strings.Join(strings.Fields(list), " "), "5242880 5242880")
		s.Fails([]string{"InvalidPart"}, aws, "s3api", "complete-multipart-upload", "--bucket", "clibucket", "--key", "mp", "--upload-id", id,
			"--multipart-upload", `{"Parts":[{"PartNumber":1,"ETag":"\"00000000000000000000000000000000\""}]}`)
		sums := api(s, "list-parts", "--bucket", "clibucket", "--key", "mp", "--upload-id", id, "--query", "Parts[].ChecksumCRC32", "--output", "text")
		c := strings.Fields(sums)
		equal(s, "part checksums", len(c), 2)
		s.Fails([]string{"InvalidPartOrder"}, aws, "s3api", "complete-multipart-upload", "--bucket", "clibucket", "--key", "mp", "--upload-id", id,
			"--multipart-upload", fmt.Sprintf(`{"Parts":[{"PartNumber":2,"ETag":%q,"ChecksumCRC32":%q},{"PartNumber":1,"ETag":%q,"ChecksumCRC32":%q}]}`,
				e2, c[1], e1, c[0]))
		api(s, "complete-multipart-upload", "--bucket", "clibucket", "--key", "mp", "--upload-id", id, "--multipart-upload",
			fmt.Sprintf(`{"Parts":[{"PartNumber":1,"ETag":%q,"ChecksumCRC32":%q},{"PartNumber":2,"ETag":%q,"ChecksumCRC32":%q}]}`, e1, c[0], e2, c[1]))
		s.Run(aws, "s3", "cp", "--no-progress", "s3://clibucket/mp", "mp.back")
		equal(s, "same bytes", bytes.Equal(s.Read("mp.back"), large[:10<<20]), true)
		api(s, "get-object", "--bucket", "clibucket", "--key", "mp", "--part-number", "2", "mp.part")
		equal(s, "part 2", bytes.Equal(s.Read("mp.part"), large[5<<20:10<<20]), true)
		if s.Server.Kind == harness.Versitygw {
			return // it forgets the parts
		}
		parts := api(s, "get-object-attributes", "--bucket", "clibucket", "--key", "mp", "--object-attributes", "ObjectParts")
		contains(s, "parts", parts, `"TotalPartsCount": 2`)
	})
	s.step("an aborted upload is gone", func(s *script) {
		id := strings.TrimSpace(api(s, "create-multipart-upload", "--bucket", "clibucket", "--key", "gone", "--query", "UploadId", "--output", "text"))
		api(s, "upload-part", "--bucket", "clibucket", "--key", "gone", "--upload-id", id, "--part-number", "1", "--body", "part1")
		api(s, "abort-multipart-upload", "--bucket", "clibucket", "--key", "gone", "--upload-id", id)
		s.Fails([]string{"NoSuchUpload"}, aws, "s3api", "list-parts", "--bucket", "clibucket", "--key", "gone", "--upload-id", id)
		lacks(s, "uploads", api(s, "list-multipart-uploads", "--bucket", "clibucket"), id)
	})
}
