package sigv4

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentrun.dev/serve/s3/fault"
)

// CheckTime refuses a request whose time is more than MaxSkew away, or whose presigned URL is not yet or no longer good.
func (s *Signature) CheckTime(now time.Time) error {
	if !s.Presigned {
		if d := now.Sub(s.Time); d > MaxSkew || d < -MaxSkew {
			return fault.RequestTimeTooSkewed.With("RequestTime", s.stamp, "ServerTime", now.UTC().Format(time.RFC3339),
				"MaxAllowedSkewMilliseconds", strconv.FormatInt(MaxSkew.Milliseconds(), 10))
		}
		return nil
	}
	if s.Time.Sub(now) > MaxSkew {
		return fault.AccessDenied.Text("Request is not valid yet.")
	}
	if end := s.Time.Add(s.Expires); now.After(end) {
		return fault.AccessDenied.Text("Request has expired.").With("X-Amz-Expires", strconv.FormatInt(int64(s.Expires/time.Second), 10),
			"Expires", end.Format(time.RFC3339), "ServerTime", now.UTC().Format(time.RFC3339))
	}
	return nil
}

// CheckPayloadHash refuses anything but 64 hexadecimal digits or one of the words that S3 knows.
func (s *Signature) CheckPayloadHash() error {
	switch s.PayloadHash {
	case Unsigned, StreamingSigned, StreamingSignedTrailer, StreamingUnsignedTrailer:
		return nil
	case "":
		return fault.Request("Missing required header for this request: x-amz-content-sha256")
	}
	if _, err := hex.DecodeString(s.PayloadHash); err != nil || len(s.PayloadHash) != 64 {
		return fault.Argument("x-amz-content-sha256", s.PayloadHash, "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, "+
			"STREAMING-UNSIGNED-PAYLOAD-TRAILER, STREAMING-AWS4-HMAC-SHA256-PAYLOAD, STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER, "+
			"STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD, STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD-TRAILER or a valid sha256 value.")
	}
	return nil
}

// buffers hold canonical requests while they are built.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 2048); return &b }}

// Verify checks the signature against a secret. Errors are faults.
func (s *Signature) Verify(r *http.Request, q Query, secret string, cache *Cache) error {
	if err := s.checkSigned(r); err != nil {
		return err
	}
	key, cached := cache.key(secret, s.Credential)
	pooled := buffers.Get().(*[]byte)
	defer buffers.Put(pooled)
	buf := s.appendCanonical((*pooled)[:0], r, q)
	canonical := len(buf)
	sum := sha256.Sum256(buf)
	buf = append(buf, algorithm+"\n"...)
	buf = append(buf, s.stamp...)
	buf = append(buf, '\n')
	buf = s.appendScope(buf)
	buf = append(buf, '\n')
	buf = hex.AppendEncode(buf, sum[:])
	*pooled = buf
	want := key.sign(buf[canonical:])
	if !Equal(string(want[:]), s.Signature) {
		return fault.SignatureDoesNotMatch.With("AWSAccessKeyId", s.AccessKey, "StringToSign", string(buf[canonical:]),
			"SignatureProvided", s.Signature, "CanonicalRequest", string(buf[:canonical]))
	}
	if !cached {
		cache.add(s.Credential, key)
	}
	s.key = key
	return nil
}

func (c *Credential) appendScope(dst []byte) []byte {
	dst = append(dst, c.Date...)
	dst = append(dst, '/')
	dst = append(dst, c.Region...)
	dst = append(dst, '/')
	dst = append(dst, c.Service...)
	return append(dst, "/"+terminal...)
}

// appendCanonical appends the canonical request.
func (s *Signature) appendCanonical(dst []byte, r *http.Request, q Query) []byte {
	dst = append(dst, r.Method...)
	dst = append(dst, '\n')
	dst = appendEncoded(dst, r.URL.Path, true)
	if r.URL.Path == "" {
		dst = append(dst, '/')
	}
	dst = append(dst, '\n')
	dst = q.appendCanonical(dst)
	dst = append(dst, '\n')
	for rest := s.SignedHeaders; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, ";")
		dst = append(dst, name...)
		dst = append(dst, ':')
		dst = appendHeader(dst, r, name)
		dst = append(dst, '\n')
	}
	dst = append(dst, '\n')
	dst = append(dst, s.SignedHeaders...)
	dst = append(dst, '\n')
	return append(dst, s.PayloadHash...)
}

// appendHeader appends a header's values as they are signed: trimmed, runs of spaces made one, joined by commas.
func appendHeader(dst []byte, r *http.Request, name string) []byte {
	switch name {
	case "host":
		return append(dst, r.Host...)
	case "content-length":
		if r.ContentLength >= 0 {
			return strconv.AppendInt(dst, r.ContentLength, 10)
		}
	case "transfer-encoding":
		return append(dst, strings.Join(r.TransferEncoding, ",")...)
	}
	for i, v := range header(r.Header, name) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendTrimmed(dst, v)
	}
	return dst
}

// header looks a lower-case name up without allocating.
func header(h http.Header, name string) []string {
	var stack [64]byte
	canonical := append(stack[:0], name...)
	upper := true
	for i, c := range canonical {
		if upper && 'a' <= c && c <= 'z' {
			canonical[i] = c - 'a' + 'A'
		}
		upper = c == '-'
	}
	return h[string(canonical)]
}

func appendTrimmed(dst []byte, v string) []byte {
	v = strings.Trim(v, " \t")
	if !strings.Contains(v, "  ") {
		return append(dst, v...)
	}
	for i := 0; i < len(v); i++ {
		if v[i] != ' ' || v[i-1] != ' ' {
			dst = append(dst, v[i])
		}
	}
	return dst
}

// checkSigned refuses requests that leave what they ask for out of the signature: the host, and every x-amz- and
// x-tigris- header. Otherwise whoever holds a presigned URL could add some.
func (s *Signature) checkSigned(r *http.Request) error {
	var missing []string
	if !s.signs("host") {
		missing = append(missing, "host")
	}
	for name := range r.Header {
		if len(name) > 6 && (strings.HasPrefix(name, "X-Amz-") || strings.HasPrefix(name, "X-Tigris-") || strings.HasPrefix(name, "Tigris-")) {
			if !s.signs(name) {
				missing = append(missing, strings.ToLower(name))
			}
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return fault.AccessDenied.Text("There were headers present in the request which were not signed").
			With("HeadersNotSigned", strings.Join(missing, ", "))
	}
	return nil
}

// signs reports whether a header is among the signed ones, whatever the case of the name asked for.
func (s *Signature) signs(name string) bool {
	for rest := s.SignedHeaders; rest != ""; {
		var signed string
		signed, rest, _ = strings.Cut(rest, ";")
		if len(signed) == len(name) && strings.EqualFold(signed, name) {
			return true
		}
	}
	return false
}

// Presign returns the query of a URL that lets its bearer do one request until it expires. q holds further parameters.
func Presign(method, host, path string, q Query, accessKey, secret, region string, now time.Time, expires time.Duration) string {
	s := &Signature{Credential: Credential{accessKey, now.UTC().Format("20060102"), region, "s3"}, SignedHeaders: "host",
		PayloadHash: Unsigned, stamp: now.UTC().Format(stampLayout)}
	q = append(append(Query(nil), q...), Param{"X-Amz-Algorithm", algorithm},
		Param{"X-Amz-Credential", accessKey + "/" + string(s.appendScope(nil))}, Param{"X-Amz-Date", s.stamp},
		Param{"X-Amz-Expires", strconv.FormatInt(int64(expires/time.Second), 10)}, Param{"X-Amz-SignedHeaders", "host"})
	r := &http.Request{Method: method, Host: host, URL: &url.URL{Path: path}}
	sum := sha256.Sum256(s.appendCanonical(nil, r, q))
	text := append(append([]byte(algorithm+"\n"+s.stamp+"\n"), s.appendScope(nil)...), '\n')
	sig := DeriveKey(secret, s.Credential).Sign(hex.AppendEncode(text, sum[:]))
	return string(q.appendCanonical(nil)) + "&X-Amz-Signature=" + sig
}
