package sigv4

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentrun.dev/serve/s3/fault"
)

// The access key and requests of the examples in "Authenticating Requests (AWS Signature Version 4)".
const (
	awsKey    = "AKIAIOSFODNN7EXAMPLE"
	awsSecret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
)

func request(t testing.TB, raw string) (*http.Request, Query) {
	t.Helper()
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(strings.ReplaceAll(raw, "\n", "\r\n"))))
	if err != nil {
		t.Fatal(err)
	}
	q, ok := ParseQuery(r.URL.RawQuery)
	if !ok {
		t.Fatal("query")
	}
	return r, q
}

var awsExamples = []struct{ name, request string }{
	{"get object", `GET /test.txt HTTP/1.1
Host: examplebucket.s3.amazonaws.com
Range: bytes=0-9
x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
x-amz-date: 20130524T000000Z
Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41

`},
	{"put object", `PUT /test$file.text HTTP/1.1
Host: examplebucket.s3.amazonaws.com
Date: Fri, 24 May 2013 00:00:00 GMT
x-amz-date: 20130524T000000Z
x-amz-storage-class: REDUCED_REDUNDANCY
x-amz-content-sha256: 44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072
Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class,Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd

`},
	{"bucket lifecycle", `GET /?lifecycle HTTP/1.1
Host: examplebucket.s3.amazonaws.com
x-amz-date: 20130524T000000Z
x-amz-content-sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=host;x-amz-content-sha256;x-amz-date,Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543

`},
	{"list objects", `GET /?max-keys=2&prefix=J HTTP/1.1
Host: examplebucket.s3.amazonaws.com
x-amz-date: 20130524T000000Z
x-amz-content-sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=host;x-amz-content-sha256;x-amz-date,Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7

`},
	{"presigned", `GET /test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404 HTTP/1.1
Host: examplebucket.s3.amazonaws.com

`},
}

func TestAWSExamples(t *testing.T) {
	var cache Cache
	for _, ex := range awsExamples {
		r, q := request(t, ex.request)
		s, err := Parse(r, q)
		if err != nil || s == nil {
			t.Errorf("%s: %v", ex.name, err)
			continue
		}
		if s.AccessKey != awsKey || s.Region != "us-east-1" {
			t.Errorf("%s: %+v", ex.name, s)
		}
		for range 2 { // the second time with a cached key
			if err := s.Verify(r, q, awsSecret, &cache); err != nil {
				t.Errorf("%s: %v", ex.name, err)
			}
		}
		if err := s.Verify(r, q, awsSecret+"x", &cache); !errors.Is(err, fault.SignatureDoesNotMatch) {
			t.Errorf("%s: a wrong secret gives %v", ex.name, err)
		}
		r.URL.Path += "x"
		if err := s.Verify(r, q, awsSecret, &cache); !errors.Is(err, fault.SignatureDoesNotMatch) {
			t.Errorf("%s: another path gives %v", ex.name, err)
		}
		if err := s.CheckTime(s.Time.Add(10 * time.Minute)); err != nil {
			t.Errorf("%s: %v", ex.name, err)
		}
		if err := s.CheckTime(s.Time.Add(48 * time.Hour)); err == nil {
			t.Errorf("%s: too late, but taken", ex.name)
		}
		if err := s.CheckTime(s.Time.Add(-16 * time.Minute)); err == nil {
			t.Errorf("%s: too early, but taken", ex.name)
		}
	}
}

// chunkedRequest is the documentation's example of a body in chunks of 64 KiB.
const chunkedRequest = `PUT /examplebucket/chunkObject.txt HTTP/1.1
Host: s3.amazonaws.com
x-amz-date: 20130524T000000Z
x-amz-storage-class: REDUCED_REDUNDANCY
Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class,Signature=4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9
x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD
Content-Encoding: aws-chunked
x-amz-decoded-content-length: 66560
Content-Length: 66824

`

func chunkedBody() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "10000;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648\r\n%s\r\n", strings.Repeat("a", 65536))
	fmt.Fprintf(&b, "400;chunk-signature=0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497\r\n%s\r\n", strings.Repeat("a", 1024))
	b.WriteString("0;chunk-signature=b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9\r\n\r\n")
	return b.Bytes()
}

func verified(t testing.TB, raw string) *Signature {
	t.Helper()
	r, q := request(t, raw)
	s, err := Parse(r, q)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(r, q, awsSecret, &Cache{}); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAWSChunkedExample(t *testing.T) {
	s, body := verified(t, chunkedRequest), chunkedBody()
	if len(body) != 66824 {
		t.Fatal(len(body))
	}
	c := NewChunked(bytes.NewReader(body), s, 66560)
	got, err := io.ReadAll(c)
	if err != nil || len(got) != 66560 {
		t.Fatal(len(got), err)
	}
	c.Close()
	// Whatever byte is changed or wherever the body ends, it must not be taken for complete.
	for _, at := range []int{0, 4, 5, 30, 86, 90, 40000, 65600, 65622, 65630, 66700, 66730, 66740, 66800, 66823} {
		broken := bytes.Clone(body)
		broken[at] ^= 1
		if _, err := io.ReadAll(NewChunked(bytes.NewReader(broken), s, 66560)); err == nil {
			t.Errorf("byte %d changed, but taken", at)
		}
		_, err := io.ReadAll(NewChunked(bytes.NewReader(body[:at]), s, 66560))
		if !errors.Is(err, fault.IncompleteBody) {
			t.Errorf("cut at %d: %v", at, err)
		}
	}
	for _, n := range []int64{0, 66559, 66561} {
		if _, err := io.ReadAll(NewChunked(bytes.NewReader(body), s, n)); err == nil {
			t.Errorf("announced as %d, but taken", n)
		}
	}
}

func TestChunkedUnsigned(t *testing.T) {
	s := &Signature{PayloadHash: StreamingUnsignedTrailer}
	big := strings.Repeat("x", 8192)
	for _, tc := range []struct {
		body    string
		decoded int64
		want    error
		trailer string
	}{
		{"5\r\nhello\r\n0\r\n\r\n", 5, nil, ""},
		{"5\r\nhello\r\n0\r\nx-amz-checksum-crc32:abc\r\n\r\n", 5, nil, "x-amz-checksum-crc32:abc"},
		{"0\r\n\r\n", 0, nil, ""},
		{"2000\r\n" + big + "\r\n1\r\ny\r\n0\r\n\r\n", 8193, nil, ""},
		{"1\r\ny\r\n2000\r\n" + big + "\r\n0\r\n\r\n", 8193, fault.InvalidChunkSize, ""},
		{"5\r\nhello\r\n0\r\n:v\r\n\r\n", 5, fault.MalformedTrailer, ""},
		{"5\r\nhello\r\n0\r\nnocolon\r\n\r\n", 5, fault.MalformedTrailer, ""},
		{"5\r\nhello\r\n0\r\n" + strings.Repeat("a:b\r\n", 17) + "\r\n", 5, fault.MalformedTrailer, ""},
		{"5\nhello\r\n0\r\n\r\n", 5, fault.IncompleteBody, ""},
		{"5\r\nhello0\r\n\r\n", 5, fault.IncompleteBody, ""},
		{"-5\r\nhello\r\n0\r\n\r\n", 5, fault.IncompleteBody, ""},
		{"\r\nhello\r\n0\r\n\r\n", 5, fault.IncompleteBody, ""},
		{"ffffffffffffffff\r\nhello", 5, fault.IncompleteBody, ""},
		{"fffffffffffffff\r\nhello", 5, tooMuch(), ""},
		{"5\r\nhello\r\n0\r\n\r\nmore", 5, fault.IncompleteBody, ""},
		{"5\r\nhello\r\n0\r\n", 5, fault.IncompleteBody, ""},
		{"5;x=y\r\nhello\r\n0\r\n\r\n", 5, fault.IncompleteBody, ""},
		{"5\r\nhello\r\n0\r\n\r\n", 6, tooMuch(), ""},
		{"6\r\nhello!\r\n0\r\n\r\n", 5, tooMuch(), ""},
		{strings.Repeat("0", 9000), 5, fault.IncompleteBody, ""},
	} {
		c := NewChunked(iotestOneByte{strings.NewReader(tc.body)}, s, tc.decoded)
		got, err := io.ReadAll(c)
		if tc.want == nil && err != nil || tc.want != nil && !errors.Is(err, tc.want) {
			t.Errorf("%.40q: got %v, want %v", tc.body, err, tc.want)
			continue
		}
		if int64(len(got)) > tc.decoded || tc.want == nil && int64(len(got)) != tc.decoded {
			t.Errorf("%.40q: %d bytes", tc.body, len(got))
		}
		if tc.trailer != "" && (len(c.Trailers()) != 1 || c.Trailers()[0].Name+":"+c.Trailers()[0].Value != tc.trailer) {
			t.Errorf("%.40q: trailers %v", tc.body, c.Trailers())
		}
		c.Close()
	}
}

type iotestOneByte struct{ r io.Reader }

func (o iotestOneByte) Read(p []byte) (int, error) { return o.r.Read(p[:min(1, len(p))]) }

func TestSignedTrailer(t *testing.T) {
	s := verified(t, chunkedRequest)
	s.PayloadHash = StreamingSignedTrailer
	enc := &Chunked{key: s.key, sig: s, prev: s.Signature}
	body := encodeSigned(enc, []string{"hello"}, "x-amz-checksum-crc32c:sOO8/Q==")
	c := NewChunked(bytes.NewReader(body), s, 5)
	if got, err := io.ReadAll(c); err != nil || string(got) != "hello" {
		t.Fatal(string(got), err)
	}
	if tr := c.Trailers(); len(tr) != 1 || tr[0].Value != "sOO8/Q==" {
		t.Fatal(tr)
	}
	for i := range body {
		broken := bytes.Clone(body)
		broken[i] ^= 4
		if _, err := io.ReadAll(NewChunked(bytes.NewReader(broken), s, 5)); err == nil {
			t.Errorf("byte %d (%q) changed, but taken", i, body[i])
		}
	}
}

func TestParseFaults(t *testing.T) {
	const ok = "AWS4-HMAC-SHA256 Credential=AK/20130524/us-east-1/s3/aws4_request,SignedHeaders=host,Signature=aa"
	for _, tc := range []struct{ auth, date, want string }{
		{ok, "20130524T000000Z", ""},
		{"x", "20130524T000000Z", "InvalidArgument"},
		{"AWS AK:sig", "20130524T000000Z", "InvalidRequest"},
		{"Basic Zm9v", "20130524T000000Z", "InvalidArgument"},
		{"AWS4-HMAC-SHA256 x", "20130524T000000Z", "AuthorizationHeaderMalformed"},
		{"AWS4-HMAC-SHA256 Credential=a/b,SignedHeaders=h,Signature=s", "20130524T000000Z", "AuthorizationHeaderMalformed"},
		{strings.Replace(ok, "aws4_request", "aws5_request", 1), "20130524T000000Z", "AuthorizationHeaderMalformed"},
		{strings.Replace(ok, "/s3/", "/ec2/", 1), "20130524T000000Z", "AuthorizationHeaderMalformed"},
		{strings.Replace(ok, "20130524", "20139924", 1), "20130524T000000Z", "AuthorizationHeaderMalformed"},
		{strings.Replace(ok, "AK/", "AK/x/", 1), "20130524T000000Z", "AuthorizationHeaderMalformed"},
		{ok, "20130525T000000Z", "AuthorizationHeaderMalformed"},
		{ok, "20130524T0000", "AccessDenied"},
		{ok, "20130524T250000Z", "AccessDenied"},
		{ok, "", "AccessDenied"},
	} {
		r, q := request(t, "GET / HTTP/1.1\nHost: h\nAuthorization: "+tc.auth+"\nX-Amz-Date: "+tc.date+"\n\n")
		_, err := Parse(r, q)
		checkCode(t, tc.auth+" "+tc.date, err, tc.want)
	}
	const query = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AK%2F20130524%2Fr%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Signature=aa"
	for _, tc := range []struct{ old, new, want string }{
		{"", "", ""}, {"=60", "=x", "AuthorizationQueryParametersError"}, {"=60", "=-1", "AuthorizationQueryParametersError"},
		{"=60", "=604801", "AuthorizationQueryParametersError"}, {"=60", "=604800", ""}, {"&X-Amz-Expires=60", "", "AuthorizationQueryParametersError"},
		{"SHA256&", "SHA1&", "AuthorizationQueryParametersError"}, {"T000000Z", "", "AuthorizationQueryParametersError"},
		{"Date=2013", "Date=2014", "AuthorizationQueryParametersError"}, {"&X-Amz-Signature=aa", "", "AuthorizationQueryParametersError"},
		{"%2Fs3", "%2Fs4", "AuthorizationQueryParametersError"},
	} {
		r, q := request(t, "GET /?"+strings.Replace(query, tc.old, tc.new, 1)+" HTTP/1.1\nHost: h\n\n")
		_, err := Parse(r, q)
		checkCode(t, tc.old+" → "+tc.new, err, tc.want)
	}
	r, q := request(t, "GET /?AWSAccessKeyId=x&Signature=y HTTP/1.1\nHost: h\n\n")
	_, err := Parse(r, q)
	checkCode(t, "SigV2 query", err, "InvalidRequest")
	r, q = request(t, "GET /?x HTTP/1.1\nHost: h\n\n")
	if s, err := Parse(r, q); s != nil || err != nil {
		t.Error("anonymous:", s, err)
	}
}

func checkCode(t *testing.T, what string, err error, want string) {
	t.Helper()
	var f *fault.Fault
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v", what, err)
	case want != "" && (!errors.As(err, &f) || f.Code != want):
		t.Errorf("%s: got %v, want %s", what, err, want)
	}
}

func TestUnsignedHeaders(t *testing.T) {
	r, q := request(t, awsExamples[0].request)
	s, _ := Parse(r, q)
	for _, h := range []string{"X-Amz-Acl", "X-Tigris-Fork-Source-Bucket", "Tigris-Force-Delete"} {
		r.Header.Set(h, "x")
		checkCode(t, h, s.Verify(r, q, awsSecret, &Cache{}), "AccessDenied")
		r.Header.Del(h)
	}
	s.SignedHeaders = "range"
	checkCode(t, "host", s.Verify(r, q, awsSecret, &Cache{}), "AccessDenied")
}

func TestPayloadHash(t *testing.T) {
	for hash, want := range map[string]string{Unsigned: "", strings.Repeat("0a", 32): "", "": "InvalidRequest", "abc": "InvalidArgument",
		strings.Repeat("zz", 32): "InvalidArgument"} {
		checkCode(t, hash, (&Signature{PayloadHash: hash}).CheckPayloadHash(), want)
	}
}

func BenchmarkVerify(b *testing.B) {
	r, q := request(b, awsExamples[0].request)
	s, _ := Parse(r, q)
	var cache Cache
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Verify(r, q, awsSecret, &cache); err != nil {
			b.Fatal(err)
		}
	}
}
