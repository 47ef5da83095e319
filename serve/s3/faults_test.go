package s3

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentrun.dev/blob/dir"
	bmemory "agentrun.dev/blob/memory"
	"agentrun.dev/bucket"
)

// TestFaults is a table of requests that can't succeed. Bucket "bkt" holds "key", 10 bytes; "ver" keeps versions.
func TestFaults(t *testing.T) {
	s := start(t)
	s.mkBucket("bkt")
	s.mkBucket("ver")
	s.must(200, req{method: "PUT", path: "/ver?versioning", body: "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"})
	s.put("/bkt/key", "0123456789")
	long := strings.Repeat("k", 1025)
	for _, tc := range []struct {
		name   string
		status int
		code   string
		q      req
	}{
		{"anonymous", 403, "AccessDenied", req{path: "/bkt/key", anonymous: true}},
		{"unknown key", 403, "InvalidAccessKeyId", req{path: "/bkt/key", id: "NOBODY", secret: "x"}},
		{"wrong secret", 403, "SignatureDoesNotMatch", req{path: "/bkt/key", id: rootID, secret: "wrong"}},
		{"no bucket", 404, "NoSuchBucket", req{path: "/nothing/key"}},
		{"no key", 404, "NoSuchKey", req{path: "/bkt/nothing"}},
		{"list no bucket", 404, "NoSuchBucket", req{path: "/nothing?list-type=2"}},
		{"bad bucket name", 400, "InvalidBucketName", req{method: "PUT", path: "/Bad_Name"}},
		{"short bucket name", 400, "InvalidBucketName", req{method: "PUT", path: "/ab"}},
		{"bucket exists", 409, "BucketAlreadyOwnedByYou", req{method: "PUT", path: "/bkt"}},
		{"bucket not empty", 409, "BucketNotEmpty", req{method: "DELETE", path: "/bkt"}},
		{"delete no bucket", 404, "NoSuchBucket", req{method: "DELETE", path: "/nothing"}},
		{"bad location", 400, "InvalidLocationConstraint", req{method: "PUT", path: "/fresh", body: "<CreateBucketConfiguration><LocationConstraint>a b</LocationConstraint></CreateBucketConfiguration>"}},
		{"malformed location", 400, "MalformedXML", req{method: "PUT", path: "/fresh", body: "<Create"}},
		{"long key", 400, "KeyTooLongError", req{method: "PUT", path: "/bkt/" + long, body: "x"}},
		{"key that isn't UTF-8", 400, "InvalidURI", req{method: "PUT", path: "/bkt/%ff", body: "x"}},
		{"key with NUL", 400, "InvalidURI", req{method: "PUT", path: "/bkt/a%00b", body: "x"}},
		{"key that leaves the bucket", 400, "400", req{method: "PUT", path: "/bkt/a/%2e%2e/%2e%2e/b", body: "x"}},
		{"headers too large", 400, "RequestHeaderSectionTooLarge", req{path: "/bkt/key", header: map[string]string{"X-Amz-Meta-Big": strings.Repeat("x", 9000)}}},
		{"metadata too large", 400, "MetadataTooLarge", req{method: "PUT", path: "/bkt/m", header: map[string]string{"X-Amz-Meta-Big": strings.Repeat("x", 2048)}}},
		{"wrong payload hash", 400, "XAmzContentSHA256Mismatch", req{method: "PUT", path: "/bkt/x", body: "abc", header: map[string]string{"X-Amz-Content-Sha256": strings.Repeat("0", 64)}}},
		{"malformed payload hash", 400, "InvalidArgument", req{method: "PUT", path: "/bkt/x", body: "abc", header: map[string]string{"X-Amz-Content-Sha256": "abc"}}},
		{"wrong MD5", 400, "BadDigest", req{method: "PUT", path: "/bkt/x", body: "abc", header: map[string]string{"Content-Md5": "1B2M2Y8AsgTpgAmY7PhCfg=="}}},
		{"malformed MD5", 400, "InvalidDigest", req{method: "PUT", path: "/bkt/x", body: "abc", header: map[string]string{"Content-Md5": "abc"}}},
		{"wrong checksum", 400, "BadDigest", req{method: "PUT", path: "/bkt/x", body: "abc", header: map[string]string{"X-Amz-Checksum-Crc32": "AAAAAA=="}}},
		{"malformed checksum", 400, "InvalidRequest", req{method: "PUT", path: "/bkt/x", body: "abc", header: map[string]string{"X-Amz-Checksum-Crc32": "AAAA"}}},
		{"two checksums", 400, "InvalidRequest", req{method: "PUT", path: "/bkt/x", body: "abc", header: map[string]string{"X-Amz-Checksum-Crc32": "AAAAAA==", "X-Amz-Checksum-Crc32c": "AAAAAA=="}}},
		{"unknown checksum", 400, "InvalidRequest", req{method: "PUT", path: "/bkt/x", body: "abc", header: map[string]string{"X-Amz-Checksum-Crc99": "AAAAAA=="}}},
		{"If-None-Match", 412, "PreconditionFailed", req{method: "PUT", path: "/bkt/key", body: "x", header: map[string]string{"If-None-Match": "*"}}},
		{"If-Match", 412, "PreconditionFailed", req{method: "PUT", path: "/bkt/key", body: "x", header: map[string]string{"If-Match": `"abc"`}}},
		{"If-Match on nothing", 404, "NoSuchKey", req{method: "PUT", path: "/bkt/none", body: "x", header: map[string]string{"If-Match": `"abc"`}}},
		{"If-None-Match with an ETag", 501, "NotImplemented", req{method: "PUT", path: "/bkt/key", body: "x", header: map[string]string{"If-None-Match": `"abc"`}}},
		{"GET If-Match", 412, "PreconditionFailed", req{path: "/bkt/key", header: map[string]string{"If-Match": `"abc"`}}},
		{"GET not modified", 304, "", req{path: "/bkt/key", header: map[string]string{"If-None-Match": "*"}}},
		{"range", 416, "InvalidRange", req{path: "/bkt/key", header: map[string]string{"Range": "bytes=10-"}}},
		{"part number", 416, "InvalidPartNumber", req{path: "/bkt/key?partNumber=2"}},
		{"malformed part number", 400, "InvalidArgument", req{path: "/bkt/key?partNumber=x"}},
		{"range and part number", 400, "InvalidRequest", req{path: "/bkt/key?partNumber=1", header: map[string]string{"Range": "bytes=0-1"}}},
		{"version", 404, "NoSuchVersion", req{path: "/ver/key?versionId=123"}},
		{"malformed version", 400, "InvalidArgument", req{path: "/ver/key?versionId=a_b"}},
		{"max-keys", 400, "InvalidArgument", req{path: "/bkt?max-keys=x"}},
		{"negative max-keys", 400, "InvalidArgument", req{path: "/bkt?max-keys=-1"}},
		{"continuation token", 400, "InvalidArgument", req{path: "/bkt?list-type=2&continuation-token=!"}},
		{"encoding type", 400, "InvalidArgument", req{path: "/bkt?encoding-type=x"}},
		{"upload", 404, "NoSuchUpload", req{method: "PUT", path: "/bkt/x?partNumber=1&uploadId=none", body: "x"}},
		{"part number of a part", 400, "InvalidArgument", req{method: "PUT", path: "/bkt/x?partNumber=10001&uploadId=none", body: "x"}},
		{"complete no upload", 404, "NoSuchUpload", req{method: "POST", path: "/bkt/x?uploadId=none", body: "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>x</ETag></Part></CompleteMultipartUpload>"}},
		{"complete nothing", 400, "MalformedXML", req{method: "POST", path: "/bkt/x?uploadId=none", body: "<CompleteMultipartUpload></CompleteMultipartUpload>"}},
		{"abort no upload", 404, "NoSuchUpload", req{method: "DELETE", path: "/bkt/x?uploadId=none"}},
		{"delete nothing", 400, "MalformedXML", req{method: "POST", path: "/bkt?delete", body: "<Delete></Delete>"}},
		{"not XML", 400, "MalformedXML", req{method: "POST", path: "/bkt?delete", body: "{}"}},
		{"XML with more", 400, "MalformedXML", req{method: "PUT", path: "/bkt?versioning", body: "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration><x/>"}},
		{"no body", 400, "MissingRequestBodyError", req{method: "PUT", path: "/bkt?versioning"}},
		{"large body", 400, "MaxMessageLengthExceeded", req{method: "PUT", path: "/bkt?tagging", body: strings.Repeat(" ", maxSettings+1)}},
		{"versioning", 400, "MalformedXML", req{method: "PUT", path: "/bkt?versioning", body: "<VersioningConfiguration><Status>Perhaps</Status></VersioningConfiguration>"}},
		{"copy nothing", 404, "NoSuchKey", req{method: "PUT", path: "/bkt/c", header: map[string]string{"X-Amz-Copy-Source": "/bkt/none"}}},
		{"copy to itself", 400, "InvalidRequest", req{method: "PUT", path: "/bkt/key", header: map[string]string{"X-Amz-Copy-Source": "/bkt/key"}}},
		{"copy source", 400, "InvalidArgument", req{method: "PUT", path: "/bkt/c", header: map[string]string{"X-Amz-Copy-Source": "%zz"}}},
		{"copy condition", 412, "PreconditionFailed", req{method: "PUT", path: "/bkt/c", header: map[string]string{"X-Amz-Copy-Source": "/bkt/key", "X-Amz-Copy-Source-If-Match": "abc"}}},
		{"directive", 400, "InvalidArgument", req{method: "PUT", path: "/bkt/c", header: map[string]string{"X-Amz-Copy-Source": "/bkt/key", "X-Amz-Metadata-Directive": "X"}}},
		{"tags twice", 400, "InvalidArgument", req{method: "PUT", path: "/bkt/c", header: map[string]string{"X-Amz-Tagging": "a=1&a=2"}}},
		{"tag", 400, "InvalidTag", req{method: "PUT", path: "/bkt/c", header: map[string]string{"X-Amz-Tagging": "a!=1"}}},
		{"eleven tags", 400, "BadRequest", req{method: "PUT", path: "/bkt/c", header: map[string]string{"X-Amz-Tagging": "a&b&c&d&e&f&g&h&i&j&k"}}},
		{"no tags", 404, "NoSuchTagSet", req{path: "/bkt?tagging"}},
		{"no CORS", 404, "NoSuchCORSConfiguration", req{path: "/bkt?cors"}},
		{"no policy", 404, "NoSuchBucketPolicy", req{path: "/bkt?policy"}},
		{"no lifecycle", 404, "NoSuchLifecycleConfiguration", req{path: "/bkt?lifecycle"}},
		{"no object lock", 404, "ObjectLockConfigurationNotFoundError", req{path: "/bkt?object-lock"}},
		{"no public access block", 404, "NoSuchPublicAccessBlockConfiguration", req{path: "/bkt?publicAccessBlock"}},
		{"put policy", 501, "NotImplemented", req{method: "PUT", path: "/bkt?policy", body: "{}"}},
		{"encryption with a client's key", 501, "NotImplemented", req{method: "PUT", path: "/bkt/e", body: "x", header: map[string]string{"X-Amz-Server-Side-Encryption-Customer-Algorithm": "AES256"}}},
		{"ACL", 400, "AccessControlListNotSupported", req{method: "PUT", path: "/bkt/e", body: "x", header: map[string]string{"X-Amz-Acl": "public-read"}}},
		{"method", 405, "MethodNotAllowed", req{method: "PATCH", path: "/bkt/key"}},
		{"storage class", 400, "InvalidStorageClass", req{method: "PUT", path: "/bkt/e", body: "x", header: map[string]string{"X-Amz-Storage-Class": "FLOPPY"}}},
		{"session token", 400, "InvalidToken", req{path: "/bkt/key", header: map[string]string{"X-Amz-Security-Token": "x"}}},
		{"attributes", 400, "InvalidRequest", req{path: "/bkt/key?attributes"}},
		{"malformed attributes", 400, "InvalidArgument", req{path: "/bkt/key?attributes", header: map[string]string{"X-Amz-Object-Attributes": "X"}}},
		{"malformed query", 400, "InvalidURI", req{path: "/bkt?a=%zz", anonymous: true}},
		{"unknown action", 501, "NotImplemented", req{method: "POST", path: "/?Action=DoIt"}},
		{"snapshot", 404, "NoSuchSnapshot", req{path: "/bkt/key", header: map[string]string{"X-Tigris-Snapshot-Version": "12345"}}},
		{"malformed snapshot", 404, "NoSuchSnapshot", req{path: "/bkt/key", header: map[string]string{"X-Tigris-Snapshot-Version": "first"}}},
		{"list at a snapshot", 404, "NoSuchSnapshot", req{path: "/bkt?list-type=2", header: map[string]string{"X-Tigris-Snapshot-Version": "12345"}}},
		{"delete a snapshot", 404, "NoSuchSnapshot", req{method: "DELETE", path: "/bkt", header: map[string]string{"X-Tigris-Snapshot-Version": "12345"}}},
		{"fork of nothing", 404, "NoSuchBucket", req{method: "PUT", path: "/fork", header: map[string]string{"X-Tigris-Fork-Source-Bucket": "nothing"}}},
		{"fork at an unknown snapshot", 404, "NoSuchSnapshot", req{method: "PUT", path: "/fork", header: map[string]string{"X-Tigris-Fork-Source-Bucket": "bkt", "X-Tigris-Fork-Source-Bucket-Snapshot": "12345"}}},
		{"merge of nothing", 404, "NoSuchBucket", req{method: "PUT", path: "/bkt", header: map[string]string{"X-Tigris-Merge-Source-Bucket": "nothing"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s.t = t
			s.fails(tc.status, tc.code, tc.q)
		})
	}
	s.t = t
	if n := s.count("bkt"); n != 1 {
		t.Errorf("%d objects after failed requests, want 1", n)
	}
	if a := s.must(200, req{path: "/bkt/key"}); a.body != "0123456789" {
		t.Errorf("the object changed: %q", a.body)
	}
}

func TestClockSkew(t *testing.T) {
	s := start(t)
	s.mkBucket("bkt")
	for d, ok := range map[time.Duration]bool{14 * time.Minute: true, -14 * time.Minute: true, 16 * time.Minute: false, -16 * time.Minute: false} {
		s.now = func() time.Time { return time.Now().Add(d) }
		if ok {
			s.must(200, req{path: "/bkt"})
		} else {
			s.fails(403, "RequestTimeTooSkewed", req{path: "/bkt"})
		}
	}
}

func TestPresigned(t *testing.T) {
	s := start(t)
	s.mkBucket("bkt")
	s.put("/bkt/key", "hello")
	u, err := s.root().Presign(context.Background(), "GET", "bkt", "key", time.Hour, nil)
	if err != nil {
		t.Fatal(err)
	}
	get := func() answer {
		return s.do(req{path: strings.TrimPrefix(u.String(), s.url), anonymous: true, header: map[string]string{"X-Amz-Content-Sha256": ""}})
	}
	plain := func() answer {
		resp, err := http.Get(u.String())
		if err != nil {
			t.Fatal(err)
		}
		return s.read(resp)
	}
	if a := plain(); a.status != 200 || a.body != "hello" {
		t.Fatal(a)
	}
	if a := get(); a.status != 403 {
		t.Errorf("an unsigned x-amz- header was taken: %d", a.status)
	}
	s.now = func() time.Time { return time.Now().Add(61 * time.Minute) }
	if a := plain(); a.status != 403 || a.code != "AccessDenied" || !strings.Contains(a.body, "expired") {
		t.Fatal(a)
	}
	s.now = func() time.Time { return time.Now().Add(-time.Hour) }
	if a := plain(); a.status != 403 || a.code != "AccessDenied" {
		t.Fatal(a)
	}
	s.now = time.Now
	u.Path = "/bkt/other"
	if a := plain(); a.status != 403 || a.code != "SignatureDoesNotMatch" {
		t.Fatal(a)
	}
}

// TestTruncatedUpload ends a body before its announced length: nothing may be stored.
func TestTruncatedUpload(t *testing.T) {
	s := start(t)
	s.mkBucket("bkt")
	for _, size := range []int{10, 100_000, 9 << 20} {
		r := s.request(req{method: "PUT", path: "/bkt/cut", body: strings.Repeat("x", size)})
		conn, err := net.Dial("tcp", s.http.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		var head bytes.Buffer
		body := r.Body
		r.Body = io.NopCloser(io.LimitReader(body, int64(size)/2))
		r.Write(&head) // ends with an error, since the body is short
		if _, err := conn.Write(head.Bytes()); err != nil {
			t.Fatal(err)
		}
		conn.(*net.TCPConn).CloseWrite()
		resp, err := http.ReadResponse(bufio.NewReader(conn), r)
		if err == nil {
			if a := s.read(resp); a.status != 400 || a.code != "IncompleteBody" {
				t.Errorf("%d bytes: %d %s", size, a.status, a.code)
			}
		}
		conn.Close()
	}
	s.http.CloseClientConnections()
	if n := s.count("bkt"); n != 0 {
		t.Errorf("%d objects were stored", n)
	}
}

func TestNoSpace(t *testing.T) {
	blobs := bmemory.New(bmemory.Options{Limit: 6 << 20})
	s := startWith(t, setup{blobs: blobs})
	s.mkBucket("bkt")
	s.put("/bkt/small", "x")
	big := strings.Repeat("y", 12<<20)
	s.fails(507, "InsufficientStorage", req{method: "PUT", path: "/bkt/big", body: big})
	s.fails(404, "NoSuchKey", req{path: "/bkt/big"})
	if a := s.must(200, req{path: "/bkt/small"}); a.body != "x" {
		t.Errorf("the old object reads %q", a.body)
	}
	s.put("/bkt/more", strings.Repeat("z", 1<<20))
}

// TestCorruptSegment damages stored bytes: the client must learn that it can't have them.
func TestCorruptSegment(t *testing.T) {
	root := t.TempDir()
	blobs, err := dir.Open(root, dir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := startWith(t, setup{blobs: blobs})
	s.mkBucket("bkt")
	payload := strings.Repeat("payload-to-be-damaged/", 20_000)
	s.put("/bkt/key", payload)
	damaged := 0
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if at := bytes.Index(data, []byte("to-be-damaged")); at >= 0 {
			damaged++
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteAt([]byte("TO-BE"), int64(at))
			return err
		}
		return nil
	})
	if err != nil || damaged == 0 {
		t.Fatal(damaged, err)
	}
	s.fails(500, "InternalError", req{path: "/bkt/key"})
}

func TestMergeWithoutCommonBase(t *testing.T) {
	s := start(t)
	s.mkBucket("one")
	s.mkBucket("two")
	s.put("/one/a", "1")
	s.put("/two/a", "2")
	a := s.do(req{method: "PUT", path: "/one", header: map[string]string{"X-Tigris-Merge-Source-Bucket": "two"}})
	if a.status < 400 || a.status >= 500 {
		t.Fatalf("%d: %s", a.status, a.body)
	}
	if got := s.must(200, req{path: "/one/a"}); got.body != "1" {
		t.Errorf("the target changed to %q", got.body)
	}
}

// TestLargestNames stores what is just within the limits.
func TestLargestNames(t *testing.T) {
	s := start(t)
	s.mkBucket("bkt")
	key := strings.Repeat("k", bucket.MaxKey)
	s.put("/bkt/"+key, "x")
	s.must(200, req{path: "/bkt/" + key})
	meta := map[string]string{}
	for i := range 20 {
		meta[fmt.Sprintf("X-Amz-Meta-%02d", i)] = strings.Repeat("v", 98)
	}
	s.must(200, req{method: "PUT", path: "/bkt/meta", body: "x", header: meta})
	a := s.must(200, req{method: "HEAD", path: "/bkt/meta"})
	if a.header.Get("X-Amz-Meta-07") != strings.Repeat("v", 98) {
		t.Error("metadata was lost")
	}
}
