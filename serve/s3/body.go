package s3

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	"agentrun.dev/serve/s3/fault"
	"agentrun.dev/serve/s3/sigv4"
)

// body is a request's payload on its way in: decoded if it came in signed chunks, hashed once by whatever the request
// announces, and never longer than announced.
type body struct {
	src     io.Reader
	chunked *sigv4.Chunked
	size    int64 // decoded
	left    int64
	err     error // the first read error

	sha     hash.Hash // nil: the payload isn't signed as a whole
	wantSHA string
	wanted
	sum     hash.Hash // nil: no checksum, or MD5, which the store computes anyway
	also    *algorithm
	alsoSum hash.Hash // a second checksum, nil without one
	md5     [md5.Size]byte
	haveMD5 bool
}

var sha256Pool = sync.Pool{New: func() any { return sha256.New() }}

// openBody prepares the request's body. Without an announced checksum, the default one is computed; fallback, if not
// nil, replaces it, and also is computed beside. The body must be closed.
func (c *call) openBody(fallback, also *algorithm) (*body, error) {
	b := &body{src: c.r.Body}
	var err error
	if b.wanted, err = wantChecksum(c.r.Header); err != nil {
		return nil, err
	}
	if b.alg == nil {
		b.alg = fallback
		if fallback == nil {
			b.alg = findAlgorithm(c.r.Header.Get("X-Amz-Checksum-Algorithm")) // minio-go names it and leaves the sum to us
		}
		if b.alg == nil {
			b.alg = algorithms[0]
		}
	}
	if v := c.r.Header["Content-Md5"]; v != nil {
		raw, err := base64.StdEncoding.DecodeString(v[0])
		if err != nil || len(raw) != md5.Size {
			return nil, fault.InvalidDigest.With("Content-MD5", v[0])
		}
		copy(b.md5[:], raw)
		b.haveMD5 = true
	}
	payload := sigv4.Unsigned
	if c.sig != nil {
		payload = c.sig.PayloadHash
	}
	switch payload {
	case sigv4.StreamingSigned, sigv4.StreamingSignedTrailer, sigv4.StreamingUnsignedTrailer:
		if b.size, err = strconv.ParseInt(c.r.Header.Get("X-Amz-Decoded-Content-Length"), 10, 64); err != nil || b.size < 0 {
			return nil, fault.MissingContentLength
		}
	default:
		if c.r.ContentLength < 0 {
			return nil, fault.MissingContentLength
		}
		b.size = c.r.ContentLength
	}
	if b.size > c.o.MaxObject {
		return nil, fault.EntityTooLarge.With("ProposedSize", strconv.FormatInt(b.size, 10), "MaxSizeAllowed", strconv.FormatInt(c.o.MaxObject, 10))
	}
	b.left = b.size
	switch payload {
	case sigv4.Unsigned:
	case sigv4.StreamingSigned, sigv4.StreamingSignedTrailer, sigv4.StreamingUnsignedTrailer:
		b.chunked = sigv4.NewChunked(c.r.Body, c.sig, b.size)
		b.src = b.chunked
	default:
		b.sha, b.wantSHA = sha256Pool.Get().(hash.Hash), payload
		b.sha.Reset()
	}
	if b.alg.name != "MD5" {
		b.sum = b.alg.get()
	}
	if also != nil && also != b.alg {
		b.also, b.alsoSum = also, also.get()
	}
	return b, nil
}

func (b *body) close() {
	if b.chunked != nil {
		b.chunked.Close()
	}
	if b.sha != nil {
		sha256Pool.Put(b.sha)
		b.sha = nil
	}
	if b.sum != nil {
		b.alg.put(b.sum)
		b.sum = nil
	}
	if b.alsoSum != nil {
		b.also.put(b.alsoSum)
		b.alsoSum = nil
	}
}

// Read yields the decoded payload. It fails with a fault.
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.src.Read(p)
	if int64(n) > b.left {
		n = int(b.left)
		err = fault.IncompleteBody
	}
	b.left -= int64(n)
	if b.sha != nil {
		b.sha.Write(p[:n])
	}
	if b.sum != nil {
		b.sum.Write(p[:n])
	}
	if b.alsoSum != nil {
		b.alsoSum.Write(p[:n])
	}
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		if b.left > 0 {
			err = fault.IncompleteBody
		}
	default:
		err = readFault(err)
	}
	b.err = err
	return n, err
}

// readFault says what a client is told when its body can't be read to the end.
func readFault(err error) error {
	var f *fault.Fault
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return fault.RequestTimeout
	}
	return fault.IncompleteBody
}

// finish checks, once the payload was read, that it ended where and as it should, and returns its checksum.
func (b *body) finish(sum [md5.Size]byte) ([]bucket.Checksum, error) {
	if b.err == nil {
		var one [1]byte
		if n, err := b.Read(one[:]); n > 0 || !errors.Is(err, io.EOF) {
			if n > 0 || err == nil {
				return nil, fault.IncompleteBody
			}
			return nil, err
		}
	}
	if !errors.Is(b.err, io.EOF) {
		return nil, b.err
	}
	if b.sha != nil {
		var buf [sha256.Size]byte
		if got := hex.EncodeToString(b.sha.Sum(buf[:0])); !strings.EqualFold(got, b.wantSHA) {
			return nil, fault.XAmzContentSHA256Mismatch.With("ClientComputedContentSHA256", b.wantSHA, "S3ComputedContentSHA256", got)
		}
	}
	if b.haveMD5 && sum != b.md5 {
		return nil, fault.BadDigest.With("ExpectedDigest", hex.EncodeToString(b.md5[:]),
			"CalculatedDigest", base64.StdEncoding.EncodeToString(sum[:]))
	}
	if err := b.checkTrailers(); err != nil {
		return nil, err
	}
	raw := sum[:]
	if b.sum != nil {
		var buf [64]byte
		raw = b.sum.Sum(buf[:0])
	}
	got := base64.StdEncoding.EncodeToString(raw)
	if b.value != "" && got != b.value {
		return nil, b.alg.badDigest(b.value, got)
	}
	sums := []bucket.Checksum{{Algorithm: b.alg.name, Value: got}}
	if b.alsoSum != nil {
		sums = append(sums, bucket.Checksum{Algorithm: b.also.name, Value: encodeSum(b.alsoSum.Sum(nil))})
	}
	return sums, nil
}

// checkTrailers takes the checksum from the trailer that was announced; exactly that one must have come.
func (b *body) checkTrailers() error {
	var got []sigv4.Trailer
	if b.chunked != nil {
		got = b.chunked.Trailers()
	}
	if b.trailer == "" {
		if len(got) > 0 {
			return fault.MalformedTrailer
		}
		return nil
	}
	if len(got) != 1 || got[0].Name != b.trailer {
		return fault.MalformedTrailer
	}
	if b.value = got[0].Value; !b.alg.valid(b.value) {
		return fault.Request(fmt.Sprintf("Value for %s trailing header is invalid.", b.trailer))
	}
	return nil
}

// stage stores the request's body and checks it. On success the payload must be used or discarded.
func (c *call) stage(fallback, also *algorithm) (*bucket.Payload, []bucket.Checksum, error) {
	b, err := c.openBody(fallback, also)
	if err != nil {
		return nil, nil, err
	}
	defer b.close()
	return c.stageBody(b)
}

func (c *call) stageBody(b *body) (*bucket.Payload, []bucket.Checksum, error) {
	p, err := c.store.Stage(c.r.Context(), b, b.size)
	if err != nil {
		if b.err != nil && !errors.Is(b.err, io.EOF) {
			return nil, nil, b.err
		}
		return nil, nil, err
	}
	sums, err := b.finish(p.MD5)
	if err != nil {
		p.Discard()
		return nil, nil, err
	}
	return p, sums, nil
}

// readDocument reads a small body whole and checks it as a payload is checked.
func (c *call) readDocument(limit int64) ([]byte, error) {
	if c.r.ContentLength > limit {
		return nil, fault.MaxMessageLengthExceeded.With("MaxMessageLengthBytes", strconv.FormatInt(limit, 10))
	}
	if c.r.ContentLength < 0 {
		data, err := io.ReadAll(io.LimitReader(c.r.Body, limit+1))
		if err != nil {
			return nil, readFault(err)
		}
		if int64(len(data)) > limit {
			return nil, fault.MaxMessageLengthExceeded.With("MaxMessageLengthBytes", strconv.FormatInt(limit, 10))
		}
		c.r.Body, c.r.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	}
	b, err := c.openBody(nil, nil)
	if err != nil {
		return nil, err
	}
	defer b.close()
	data, err := io.ReadAll(b)
	if err != nil {
		return nil, err
	}
	if _, err := b.finish(md5.Sum(data)); err != nil {
		return nil, err
	}
	return data, nil
}

// checkStreaming refuses bodies in chunks where S3 takes none.
func (c *call) checkStreaming(op *operation) error {
	if c.sig != nil && !op.streams && strings.HasPrefix(c.sig.PayloadHash, "STREAMING-") {
		return fault.Request("The value of x-amz-content-sha256 header is invalid.")
	}
	return nil
}

// hashForm lets calls of other services, which don't announce their payload's hash, be verified: the hash is computed.
func (c *call) hashForm(sig *sigv4.Signature) error {
	data, err := io.ReadAll(io.LimitReader(c.r.Body, maxSettings+1))
	if err != nil {
		return readFault(err)
	}
	if len(data) > maxSettings {
		return fault.MaxMessageLengthExceeded
	}
	sum := sha256.Sum256(data)
	sig.PayloadHash = hex.EncodeToString(sum[:])
	c.r.Body, c.r.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	return nil
}

// stageFault makes what staging and applying returns into S3's terms.
func stageFault(err error) error {
	return as(err, errs.Invalid, fault.IncompleteBody)
}
