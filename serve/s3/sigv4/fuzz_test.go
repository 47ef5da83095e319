package sigv4

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
)

// encodeSigned writes parts as signed chunks, followed by a signed trailer unless it is empty.
func encodeSigned(c *Chunked, parts []string, trailer string) []byte {
	var b bytes.Buffer
	chunk := func(data string) {
		sum := sha256.Sum256([]byte(data))
		empty := sha256.Sum256(nil)
		text := append(c.stringToSign("AWS4-HMAC-SHA256-PAYLOAD\n"), hex.EncodeToString(empty[:])+"\n"+hex.EncodeToString(sum[:])...)
		c.prev = c.key.Sign(text)
		fmt.Fprintf(&b, "%x;chunk-signature=%s\r\n", len(data), c.prev)
		if data != "" {
			b.WriteString(data + "\r\n")
		}
	}
	for _, p := range parts {
		chunk(p)
	}
	chunk("")
	if trailer != "" {
		sum := sha256.Sum256([]byte(trailer + "\n"))
		sig := c.key.Sign(append(c.stringToSign("AWS4-HMAC-SHA256-TRAILER\n"), hex.EncodeToString(sum[:])...))
		b.WriteString(trailer + "\r\nx-amz-trailer-signature:" + sig + "\r\n")
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

func FuzzAuthorization(f *testing.F) {
	f.Add("AWS4-HMAC-SHA256 Credential=AK/20130524/us-east-1/s3/aws4_request,SignedHeaders=host;x-amz-date,Signature=aa", "X-Amz-Date=1&a=b")
	f.Add("AWS4-HMAC-SHA256 ,,=,", "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=a/b/c/d/e")
	f.Add("", "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AK%2F20130524%2Fr%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host;;a&X-Amz-Signature=aa")
	f.Fuzz(func(t *testing.T, auth, raw string) {
		q, ok := ParseQuery(raw)
		if !ok {
			return
		}
		r := &http.Request{Method: "GET", Host: "h", URL: &url.URL{Path: "/x"}, Header: http.Header{"X-Amz-Date": {"20130524T000000Z"}}}
		if auth != "" {
			r.Header["Authorization"] = []string{auth}
		}
		s, err := Parse(r, q)
		if err != nil || s == nil {
			return
		}
		if s.Verify(r, q, "secret", &Cache{}) == nil {
			t.Fatalf("a signature that nobody made was right: %q %q", auth, raw)
		}
	})
}

func FuzzChunked(f *testing.F) {
	f.Add([]byte("5\r\nhello\r\n0\r\nx-amz-checksum-crc32:abc\r\n\r\n"), int64(5))
	f.Add([]byte("0\r\n\r\n"), int64(0))
	f.Add(chunkedBody(), int64(66560))
	signed := verified(f, chunkedRequest)
	f.Fuzz(func(t *testing.T, body []byte, decoded int64) {
		for _, s := range []*Signature{signed, {PayloadHash: StreamingUnsignedTrailer}} {
			c := NewChunked(bytes.NewReader(body), s, decoded)
			got, err := io.ReadAll(c)
			c.Close()
			if decoded >= 0 && int64(len(got)) > decoded {
				t.Fatalf("%d bytes of %d announced", len(got), decoded)
			}
			if err == nil && int64(len(got)) != decoded {
				t.Fatalf("complete with %d of %d bytes", len(got), decoded)
			}
			if err == nil && s == signed && !bytes.Equal(body, chunkedBody()) && decoded > 0 {
				t.Fatalf("a body that nobody signed was taken: %q", body)
			}
		}
	})
}
