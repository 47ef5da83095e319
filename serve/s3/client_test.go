package s3

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/cors"
	"github.com/minio/minio-go/v7/pkg/encrypt"
	"github.com/minio/minio-go/v7/pkg/tags"
)

func randomBytes(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	r.Read(b)
	return b
}

func read(t *testing.T, c *minio.Core, bucket, key string, o minio.GetObjectOptions) []byte {
	t.Helper()
	r, _, _, err := c.GetObject(context.Background(), bucket, key, o)
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return data
}

func TestPutGet(t *testing.T) {
	s, ctx := start(t), context.Background()
	c := s.root()
	s.mkBucket("bkt")
	for i, size := range []int{0, 1, 4096, 65536, 65537, 1 << 20, 9<<20 + 1} {
		data := randomBytes(uint64(i), size)
		key := fmt.Sprintf("dir %d/ключ+%d", i, size)
		up, err := c.Client.PutObject(ctx, "bkt", key, bytes.NewReader(data), int64(size), minio.PutObjectOptions{
			ContentType: "text/x-test", UserMetadata: map[string]string{"Color": "blue"}, UserTags: map[string]string{"a": "b"}, DisableMultipart: true})
		if err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if got := read(t, c, "bkt", key, minio.GetObjectOptions{}); !bytes.Equal(got, data) {
			t.Fatalf("%d bytes: read something else", size)
		}
		st, err := c.Client.StatObject(ctx, "bkt", key, minio.StatObjectOptions{Checksum: true})
		if err != nil || st.Size != int64(size) || st.ETag != up.ETag || st.ContentType != "text/x-test" || st.UserMetadata["Color"] != "blue" || st.UserTagCount != 1 {
			t.Fatalf("%+v, %v", st, err)
		}
		if size > 10 {
			o := minio.GetObjectOptions{}
			o.SetRange(3, 8)
			if got := read(t, c, "bkt", key, o); !bytes.Equal(got, data[3:9]) {
				t.Fatalf("range of %d bytes: %x", size, got)
			}
			o = minio.GetObjectOptions{}
			o.SetRange(0, -5)
			if got := read(t, c, "bkt", key, o); !bytes.Equal(got, data[size-5:]) {
				t.Fatalf("suffix of %d bytes: %x", size, got)
			}
		}
	}
}

func TestChecksums(t *testing.T) {
	s, ctx := start(t), context.Background()
	c := s.root()
	s.mkBucket("bkt")
	for _, ct := range []minio.ChecksumType{minio.ChecksumCRC32, minio.ChecksumCRC32C, minio.ChecksumCRC64NVME, minio.ChecksumSHA1, minio.ChecksumSHA256} {
		data := randomBytes(7, 100_000)
		// minio-go sends the checksum in a trailer.
		if _, err := c.Client.PutObject(ctx, "bkt", ct.String(), bytes.NewReader(data), -1, minio.PutObjectOptions{Checksum: ct, PartSize: 5 << 20}); err != nil {
			t.Fatal(ct, err)
		}
		st, err := c.Client.StatObject(ctx, "bkt", ct.String(), minio.StatObjectOptions{Checksum: true})
		if err != nil {
			t.Fatal(ct, err)
		}
		got := map[string]string{"CRC32": st.ChecksumCRC32, "CRC32C": st.ChecksumCRC32C, "CRC64NVME": st.ChecksumCRC64NVME, "SHA1": st.ChecksumSHA1, "SHA256": st.ChecksumSHA256}
		if got[ct.String()] == "" {
			t.Errorf("%v: no checksum came back: %v", ct, got)
		}
	}
	a := s.must(200, req{method: "PUT", path: "/bkt/x", body: "hello world"})
	if got := a.header.Get("X-Amz-Checksum-Crc64nvme"); got != "jSnVw/bqjr4=" {
		t.Errorf("default checksum %q", got)
	}
	a = s.must(200, req{method: "HEAD", path: "/bkt/x", header: map[string]string{"X-Amz-Checksum-Mode": "ENABLED"}})
	if a.header.Get("X-Amz-Checksum-Crc64nvme") != "jSnVw/bqjr4=" || a.header.Get("X-Amz-Checksum-Type") != "FULL_OBJECT" {
		t.Errorf("%v", a.header)
	}
}

func TestMultipart(t *testing.T) {
	s, ctx := start(t), context.Background()
	c := s.root()
	s.mkBucket("bkt")
	data := randomBytes(3, 12<<20)
	for _, ct := range []minio.ChecksumType{minio.ChecksumNone, minio.ChecksumCRC32, minio.ChecksumFullObjectCRC32C, minio.ChecksumCRC64NVME, minio.ChecksumSHA256} {
		key := "multi-" + ct.String()
		up, err := c.Client.PutObject(ctx, "bkt", key, bytes.NewReader(data), int64(len(data)), minio.PutObjectOptions{PartSize: 5 << 20, Checksum: ct, ContentType: "a/b"})
		if err != nil {
			t.Fatal(ct, err)
		}
		if !strings.HasSuffix(up.ETag, "-3") {
			t.Errorf("%v: ETag %s", ct, up.ETag)
		}
		if got := read(t, c, "bkt", key, minio.GetObjectOptions{}); !bytes.Equal(got, data) {
			t.Fatalf("%v: read something else", ct)
		}
		if got := read(t, c, "bkt", key, minio.GetObjectOptions{PartNumber: 3}); !bytes.Equal(got, data[10<<20:]) {
			t.Fatalf("%v: part 3 is something else", ct)
		}
		if ct == minio.ChecksumFullObjectCRC32C || ct == minio.ChecksumCRC64NVME {
			// The combined checksum must be the one of a single PUT of the same bytes.
			single, err := c.Client.PutObject(ctx, "bkt", "single", bytes.NewReader(data), int64(len(data)), minio.PutObjectOptions{DisableMultipart: true, Checksum: ct})
			if err != nil {
				t.Fatal(err)
			}
			st, err := c.Client.StatObject(ctx, "bkt", key, minio.StatObjectOptions{Checksum: true})
			if err != nil || st.ChecksumCRC32C != single.ChecksumCRC32C || st.ChecksumCRC64NVME != single.ChecksumCRC64NVME {
				t.Errorf("%v: combined %q %q, single %q %q, %v", ct, st.ChecksumCRC32C, st.ChecksumCRC64NVME, single.ChecksumCRC32C, single.ChecksumCRC64NVME, err)
			}
		}
	}
	id, err := c.NewMultipartUpload(ctx, "bkt", "left", minio.PutObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.PutObjectPart(ctx, "bkt", "left", id, 2, bytes.NewReader(data[:100]), 100, minio.PutObjectPartOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CopyObjectPart(ctx, "bkt", "single", "bkt", "left", id, 1, 100, 5<<20, nil); err != nil {
		t.Fatal(err)
	}
	parts, err := c.ListObjectParts(ctx, "bkt", "left", id, 0, 10)
	if err != nil || len(parts.ObjectParts) != 2 {
		t.Fatal(parts, err)
	}
	ups, err := c.ListMultipartUploads(ctx, "bkt", "", "", "", "", 10)
	if err != nil || len(ups.Uploads) != 1 || ups.Uploads[0].Key != "left" {
		t.Fatal(ups, err)
	}
	var done []minio.CompletePart
	for _, p := range parts.ObjectParts {
		done = append(done, minio.CompletePart{PartNumber: p.PartNumber, ETag: p.ETag})
	}
	for range 2 { // the second time is a retry, which gets the same answer
		if _, err := c.CompleteMultipartUpload(ctx, "bkt", "left", id, done, minio.PutObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, c, "bkt", "left", minio.GetObjectOptions{}); !bytes.Equal(got, append(slices.Clone(data[100:100+5<<20]), data[:100]...)) {
		t.Fatal("read something else")
	}
	s.fails(404, "NoSuchUpload", req{path: "/bkt/left?uploadId=" + id})
}

func TestMultipartFaults(t *testing.T) {
	s, ctx := start(t), context.Background()
	c := s.root()
	s.mkBucket("bkt")
	id, err := c.NewMultipartUpload(ctx, "bkt", "key", minio.PutObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	etag := map[int]string{}
	for n := 1; n <= 2; n++ {
		p, err := c.PutObjectPart(ctx, "bkt", "key", id, n, strings.NewReader("tiny"), 4, minio.PutObjectPartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		etag[n] = p.ETag
	}
	part := func(n int, e string) string {
		return fmt.Sprintf("<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>", n, e)
	}
	path := "/bkt/key?uploadId=" + id
	for _, tc := range []struct{ code, parts string }{
		{"EntityTooSmall", part(1, etag[1]) + part(2, etag[2])},
		{"InvalidPartOrder", part(2, etag[2]) + part(1, etag[1])},
		{"InvalidPartOrder", part(1, etag[1]) + part(1, etag[1])},
		{"InvalidPart", part(1, "abc")},
		{"InvalidPart", part(3, etag[1])},
		{"InvalidArgument", part(0, etag[1])},
		{"MalformedXML", "<Part><ETag>x</ETag></Part>"},
		{"InvalidPart", "<Part><PartNumber>1</PartNumber><ETag>" + etag[1] + "</ETag><ChecksumCRC64NVME>AAAAAAAAAAA=</ChecksumCRC64NVME></Part>"},
		{"InvalidArgument", "<Part><PartNumber>1</PartNumber><ETag>" + etag[1] + "</ETag><ChecksumCRC64NVME>A</ChecksumCRC64NVME></Part>"},
	} {
		s.fails(400, tc.code, req{method: "POST", path: path, body: "<CompleteMultipartUpload>" + tc.parts + "</CompleteMultipartUpload>"})
	}
	ok := "<CompleteMultipartUpload>" + part(1, etag[1]) + "</CompleteMultipartUpload>"
	s.fails(400, "InvalidRequest", req{method: "POST", path: path, body: ok, header: map[string]string{"X-Amz-Mp-Object-Size": "5"}})
	s.put("/bkt/key", "already here")
	s.fails(412, "PreconditionFailed", req{method: "POST", path: path, body: ok, header: map[string]string{"If-None-Match": "*"}})
	s.must(200, req{method: "POST", path: path, body: ok})
	s.fails(400, "InvalidRequest", req{method: "POST", path: "/bkt/k?uploads", header: map[string]string{"X-Amz-Checksum-Algorithm": "CRC99"}})
	s.fails(400, "InvalidRequest", req{method: "POST", path: "/bkt/k?uploads", header: map[string]string{"X-Amz-Checksum-Algorithm": "SHA1", "X-Amz-Checksum-Type": "FULL_OBJECT"}})
}

func TestList(t *testing.T) {
	s, ctx := start(t), context.Background()
	c := s.root()
	s.mkBucket("bkt")
	var keys []string
	for i := range 30 {
		for _, k := range []string{fmt.Sprintf("a/%02d", i), fmt.Sprintf("b/%d/x", i%3), fmt.Sprintf("top %02d", i)} {
			if !slices.Contains(keys, k) {
				keys = append(keys, k)
				s.put("/bkt/"+strings.ReplaceAll(k, " ", "%20"), k)
			}
		}
	}
	slices.Sort(keys)
	for _, size := range []int{1, 7, 1000} {
		for _, v1 := range []bool{false, true} {
			var got []string
			for o := range c.Client.ListObjects(ctx, "bkt", minio.ListObjectsOptions{Recursive: true, MaxKeys: size, UseV1: v1}) {
				if o.Err != nil {
					t.Fatal(o.Err)
				}
				got = append(got, o.Key)
			}
			if !slices.Equal(got, keys) {
				t.Errorf("pages of %d, v1 %v: %v", size, v1, got)
			}
			var top []string
			for o := range c.Client.ListObjects(ctx, "bkt", minio.ListObjectsOptions{MaxKeys: size, UseV1: v1}) {
				top = append(top, o.Key)
			}
			slices.Sort(top)
			if len(top) != 32 || top[0] != "a/" || top[1] != "b/" || top[2] != "top 00" {
				t.Errorf("pages of %d, v1 %v, by folder: %v", size, v1, top)
			}
			var sub []string
			for o := range c.Client.ListObjects(ctx, "bkt", minio.ListObjectsOptions{Prefix: "b/", MaxKeys: size, UseV1: v1}) {
				sub = append(sub, o.Key)
			}
			if strings.Join(sub, " ") != "b/0/ b/1/ b/2/" {
				t.Errorf("pages of %d, v1 %v, below b/: %v", size, v1, sub)
			}
		}
	}
	var after []string
	for o := range c.Client.ListObjects(ctx, "bkt", minio.ListObjectsOptions{Recursive: true, StartAfter: "top 27"}) {
		after = append(after, o.Key)
	}
	if strings.Join(after, ",") != "top 28,top 29" {
		t.Errorf("start-after: %v", after)
	}
	if a := s.must(200, req{path: "/bkt?max-keys=0"}); !strings.Contains(a.body, "<IsTruncated>false") || strings.Contains(a.body, "<Contents>") {
		t.Error(a.body)
	}
}

// TestStrangeKeys puts keys of every legal kind and finds them again.
func TestStrangeKeys(t *testing.T) {
	s, ctx := start(t), context.Background()
	c := s.root()
	s.mkBucket("bkt")
	keys := []string{"a b", "a+b", "a%b", "a&b=c", "a?b#c", "<x>&\"'", "ü/ß/日本", "a//b", "dir/", "\x01\x7f", "~!@$^*()[]{}|\\;:,.", strings.Repeat("é", 512), "...", "a/.b", "new\nline"}
	for _, k := range keys {
		if _, err := c.Client.PutObject(ctx, "bkt", k, strings.NewReader(k), int64(len(k)), minio.PutObjectOptions{}); err != nil {
			t.Errorf("%q: %v", k, err)
			continue
		}
		if got := read(t, c, "bkt", k, minio.GetObjectOptions{}); string(got) != k {
			t.Errorf("%q reads %q", k, got)
		}
	}
	slices.Sort(keys)
	var got []string
	for o := range c.Client.ListObjects(ctx, "bkt", minio.ListObjectsOptions{Recursive: true}) {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		got = append(got, o.Key)
	}
	if !slices.Equal(got, keys) {
		t.Errorf("got  %q\nwant %q", got, keys)
	}
	for e := range c.Client.RemoveObjectsWithResult(ctx, "bkt", feed(keys), minio.RemoveObjectsOptions{}) {
		if e.Err != nil {
			t.Errorf("%q: %v", e.ObjectName, e.Err)
		}
	}
	if n := s.count("bkt"); n != 0 {
		t.Errorf("%d objects are left", n)
	}
}

func feed(keys []string) <-chan minio.ObjectInfo {
	ch := make(chan minio.ObjectInfo, len(keys))
	for _, k := range keys {
		ch <- minio.ObjectInfo{Key: k}
	}
	close(ch)
	return ch
}

func TestVersions(t *testing.T) {
	s, ctx := start(t), context.Background()
	c := s.root()
	s.mkBucket("bkt")
	s.put("/bkt/key", "null version")
	if err := c.Client.EnableVersioning(ctx, "bkt"); err != nil {
		t.Fatal(err)
	}
	ids := []string{"null"}
	for i := range 3 {
		a := s.must(200, req{method: "PUT", path: "/bkt/key", body: fmt.Sprint(i)})
		ids = append(ids, a.header.Get("X-Amz-Version-Id"))
	}
	a := s.must(204, req{method: "DELETE", path: "/bkt/key"})
	marker := a.header.Get("X-Amz-Version-Id")
	if a.header.Get("X-Amz-Delete-Marker") != "true" || marker == "" {
		t.Fatal(a.header)
	}
	gone := s.fails(404, "NoSuchKey", req{path: "/bkt/key"})
	if gone.header.Get("X-Amz-Delete-Marker") != "true" {
		t.Error("a deleted key doesn't say that it has a marker")
	}
	s.fails(405, "MethodNotAllowed", req{path: "/bkt/key?versionId=" + marker})
	for i, id := range ids {
		want := fmt.Sprint(i - 1)
		if i == 0 {
			want = "null version"
		}
		if a := s.must(200, req{path: "/bkt/key?versionId=" + id}); a.body != want {
			t.Errorf("version %s reads %q, want %q", id, a.body, want)
		}
	}
	for _, size := range []int{1, 2, 100} {
		var got []string
		for o := range c.Client.ListObjects(ctx, "bkt", minio.ListObjectsOptions{WithVersions: true, Recursive: true, MaxKeys: size}) {
			if o.Err != nil {
				t.Fatal(o.Err)
			}
			got = append(got, o.VersionID)
		}
		want := []string{marker, ids[3], ids[2], ids[1], "null"}
		if size == 100 {
			slices.Sort(got)
			slices.Sort(want)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d: %v, want %v", size, got, want)
		}
	}
	s.must(204, req{method: "DELETE", path: "/bkt/key?versionId=" + marker})
	if a := s.must(200, req{path: "/bkt/key"}); a.body != "2" {
		t.Errorf("without its marker the key reads %q", a.body)
	}
	s.must(200, req{method: "PUT", path: "/bkt/old?x-id=CopyObject", header: map[string]string{"X-Amz-Copy-Source": "/bkt/key?versionId=" + ids[1]}})
	if a := s.must(200, req{path: "/bkt/old"}); a.body != "0" {
		t.Errorf("a copy of a version reads %q", a.body)
	}
	s.must(200, req{method: "PUT", path: "/bkt/key?tagging&versionId=" + ids[2], body: "<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>"})
	if a := s.must(200, req{path: "/bkt/key?tagging&versionId=" + ids[2]}); !strings.Contains(a.body, "<Value>v</Value>") {
		t.Error(a.body)
	}
	if a := s.must(200, req{path: "/bkt/key?tagging"}); strings.Contains(a.body, "<Value>") {
		t.Error(a.body)
	}
	s.fails(409, "BucketNotEmpty", req{method: "DELETE", path: "/bkt"})
	s.must(204, req{method: "DELETE", path: "/bkt", header: map[string]string{"Tigris-Force-Delete": "true"}})
}

func TestCopyAndTags(t *testing.T) {
	s, ctx := start(t), context.Background()
	c := s.root()
	s.mkBucket("one")
	s.mkBucket("two")
	s.must(200, req{method: "PUT", path: "/one/src", body: "text", header: map[string]string{"X-Amz-Meta-A": "1", "Content-Type": "a/b", "X-Amz-Tagging": "t=1"}})
	s.must(200, req{method: "PUT", path: "/two/dst", header: map[string]string{"X-Amz-Copy-Source": "one/src"}})
	a := s.must(200, req{path: "/two/dst"})
	if a.body != "text" || a.header.Get("X-Amz-Meta-A") != "1" || a.header.Get("Content-Type") != "a/b" || a.header.Get("X-Amz-Tagging-Count") != "1" {
		t.Error(a)
	}
	s.must(200, req{method: "PUT", path: "/two/dst", header: map[string]string{"X-Amz-Copy-Source": "two/dst", "X-Amz-Metadata-Directive": "REPLACE",
		"X-Amz-Meta-B": "2", "X-Amz-Tagging-Directive": "REPLACE"}})
	a = s.must(200, req{path: "/two/dst"})
	if a.body != "text" || a.header.Get("X-Amz-Meta-A") != "" || a.header.Get("X-Amz-Meta-B") != "2" || a.header.Get("X-Amz-Tagging-Count") != "" {
		t.Error(a.header)
	}
	tg, err := tags.NewTags(map[string]string{"x": "y"}, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Client.PutObjectTagging(ctx, "two", "dst", tg, minio.PutObjectTaggingOptions{}); err != nil {
		t.Fatal(err)
	}
	got, err := c.Client.GetObjectTagging(ctx, "two", "dst", minio.GetObjectTaggingOptions{})
	if err != nil || got.ToMap()["x"] != "y" {
		t.Fatal(got, err)
	}
	if err := c.Client.RemoveObjectTagging(ctx, "two", "dst", minio.RemoveObjectTaggingOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Client.SetBucketTagging(ctx, "two", tg); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Client.GetBucketTagging(ctx, "two"); err != nil || got.ToMap()["x"] != "y" {
		t.Fatal(got, err)
	}
	attrs, err := c.Client.GetObjectAttributes(ctx, "two", "dst", minio.ObjectAttributesOptions{})
	if err != nil || attrs.ObjectSize != 4 {
		t.Fatal(attrs, err)
	}
	if sse := encrypt.NewSSE(); c.Client.SetBucketEncryption(ctx, "two", nil) == nil && sse != nil {
		t.Error("encryption was taken")
	}
}

func TestCORS(t *testing.T) {
	s, ctx := start(t), context.Background()
	s.mkBucket("bkt")
	s.put("/bkt/key", "x")
	cfg := cors.NewConfig([]cors.Rule{{AllowedOrigin: []string{"https://*.example.com"}, AllowedMethod: []string{"GET", "PUT"}, AllowedHeader: []string{"x-amz-*"}, MaxAgeSeconds: 60}})
	if err := s.root().Client.SetBucketCors(ctx, "bkt", cfg); err != nil {
		t.Fatal(err)
	}
	ask := func(origin, method, headers string) answer {
		return s.do(req{method: "OPTIONS", path: "/bkt/key", anonymous: true, header: map[string]string{"Origin": origin,
			"Access-Control-Request-Method": method, "Access-Control-Request-Headers": headers}})
	}
	a := ask("https://app.example.com", "PUT", "x-amz-date")
	if a.status != 200 || a.header.Get("Access-Control-Allow-Origin") != "https://app.example.com" || a.header.Get("Access-Control-Max-Age") != "60" {
		t.Error(a)
	}
	for _, bad := range [][3]string{{"https://example.org", "PUT", ""}, {"https://app.example.com", "DELETE", ""}, {"https://app.example.com", "PUT", "authorization"}} {
		if a := ask(bad[0], bad[1], bad[2]); a.status != 403 || a.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%v: %d", bad, a.status)
		}
	}
	a = s.must(200, req{path: "/bkt/key", header: map[string]string{"Origin": "https://app.example.com"}})
	if a.header.Get("Access-Control-Allow-Origin") != "https://app.example.com" {
		t.Error(a.header)
	}
	if err := s.root().Client.SetBucketCors(ctx, "bkt", nil); err != nil {
		t.Fatal(err)
	}
	if a := ask("https://app.example.com", "PUT", ""); a.status != 403 {
		t.Error(a)
	}
}

func TestPostPolicy(t *testing.T) {
	s, ctx := start(t), context.Background()
	s.mkBucket("bkt")
	p := minio.NewPostPolicy()
	for _, err := range []error{p.SetBucket("bkt"), p.SetKeyStartsWith("up/"), p.SetContentLengthRange(1, 10), p.SetExpires(s.now().Add(3600e9))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	u, fields, err := s.root().Client.PresignedPostPolicy(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	post := func(key, file string) answer {
		var b bytes.Buffer
		w := newForm(&b)
		for k, v := range fields {
			if k != "key" {
				w.WriteField(k, v)
			}
		}
		w.WriteField("key", key)
		fw, err := w.CreateFormFile("file", "name.txt")
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(fw, file)
		w.Close()
		resp, err := http.Post(u.String(), w.FormDataContentType(), &b)
		if err != nil {
			t.Fatal(err)
		}
		return s.read(resp)
	}
	if a := post("up/${filename}", "hello"); a.status != 204 {
		t.Fatal(a)
	}
	if a := s.must(200, req{path: "/bkt/up/name.txt"}); a.body != "hello" {
		t.Error(a.body)
	}
	for _, tc := range []struct{ key, file, code string }{{"other/x", "hello", "AccessDenied"}, {"up/x", "12345678901", "EntityTooLarge"}, {"up/x", "", "EntityTooSmall"}} {
		if a := post(tc.key, tc.file); a.code != tc.code {
			t.Errorf("%v: %d %s", tc, a.status, a.code)
		}
	}
	fields["x-amz-signature"] = strings.Repeat("0", 64)
	if a := post("up/x", "hello"); a.code != "SignatureDoesNotMatch" {
		t.Error(a)
	}
	if n := s.count("bkt"); n != 1 {
		t.Errorf("%d objects", n)
	}
}

func TestVirtualHost(t *testing.T) {
	s := startWith(t, setup{options: Options{Domains: []string{"s3.example.com"}, Region: "eu-west-1"}})
	s.mkBucket("bkt")
	s.put("/bkt/a/b", "text")
	r := s.request(req{path: "/a/b", anonymous: true})
	r.Host = "bkt.s3.example.com:7071"
	r.URL.Host = s.http.Listener.Addr().String()
	signed := *r
	resp, err := s.http.Client().Transport.RoundTrip(signHost(&signed))
	if err != nil {
		t.Fatal(err)
	}
	if a := s.read(resp); a.status != 200 || a.body != "text" {
		t.Fatal(a)
	}
	var loc struct {
		Region string `xml:",chardata"`
	}
	if err := xml.Unmarshal([]byte(s.must(200, req{path: "/bkt?location"}).body), &loc); err != nil || loc.Region != "eu-west-1" {
		t.Fatal(loc, err)
	}
}
