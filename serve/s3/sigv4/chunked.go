package sigv4

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"strings"
	"sync"

	"agentrun.dev/serve/s3/fault"
)

// Limits of an aws-chunked body.
const (
	minChunk    = 8192    // bytes in every chunk but the last
	maxLine     = 4 << 10 // bytes in a chunk's header or a trailer line
	maxTrailers = 16
)

// Trailer is a trailing header, its name in lower case.
type Trailer struct{ Name, Value string }

// Chunked decodes an aws-chunked body: chunks of data with their size and perhaps a signature before each, then
// perhaps trailing headers. It never yields more than the decoded length that was announced, and its Read returns
// io.EOF only after everything to the end was there, was well formed and had the right signatures.
type Chunked struct {
	br       *bufio.Reader
	size     int64 // announced and not yet read
	chunk    int64 // left of the present chunk
	short    bool  // a chunk below minChunk was read
	trailers []Trailer
	wantTail bool
	err      error

	key  *SigningKey // nil: chunks aren't signed
	sig  *Signature
	prev string // signature of the previous chunk
	this string // signature announced for the present chunk
	hash hash.Hash
}

var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 16<<10) }}

// NewChunked decodes body, of which decoded bytes are announced, as the signature's payload word says. s must have
// been verified, or be nil for an anonymous body with trailers. Close it to give its buffer back.
func NewChunked(body io.Reader, s *Signature, decoded int64) *Chunked {
	c := &Chunked{br: readers.Get().(*bufio.Reader), size: decoded, sig: s}
	c.br.Reset(body)
	c.wantTail = s == nil || s.PayloadHash != StreamingSigned
	if s != nil && s.PayloadHash != StreamingUnsignedTrailer {
		c.key, c.prev, c.hash = s.key, s.Signature, sha256.New()
	}
	return c
}

// Close releases what the decoder holds. The body itself isn't closed.
func (c *Chunked) Close() {
	if c.br != nil {
		c.br.Reset(nil)
		readers.Put(c.br)
		c.br = nil
	}
	if c.err == nil {
		c.err = io.ErrClosedPipe
	}
}

// Trailers returns the trailing headers, once Read has returned io.EOF.
func (c *Chunked) Trailers() []Trailer { return c.trailers }

// Read decodes. Errors are faults.
func (c *Chunked) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for c.err == nil && c.chunk == 0 {
		c.err = c.next()
	}
	if c.err != nil {
		return 0, c.err
	}
	if int64(len(p)) > c.chunk {
		p = p[:c.chunk]
	}
	n, err := c.br.Read(p)
	c.chunk -= int64(n)
	if c.hash != nil {
		c.hash.Write(p[:n])
	}
	if err == nil && c.chunk == 0 {
		err = c.endChunk()
	}
	if err != nil {
		c.err = truncated(err)
	}
	return n, c.err
}

// truncated turns the end of a body that isn't complete into what S3 calls it.
func truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.IncompleteBody
	}
	return err
}

// line reads to the next CRLF, without it.
func (c *Chunked) line() (string, error) {
	l, err := c.br.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) || len(l) > maxLine {
		return "", badChunk()
	}
	if err != nil {
		return "", truncated(err)
	}
	if len(l) < 2 || l[len(l)-2] != '\r' {
		return "", badChunk()
	}
	return string(l[:len(l)-2]), nil
}

// trailerLine reads a trailer to its CRLF, without it. S3's specification writes them "name:value\n\r\n", and minio-go does so,
// too: a line break before the CRLF belongs to neither name nor value.
func (c *Chunked) trailerLine() (string, error) {
	l, err := c.br.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) || len(l) > maxLine {
		return "", badChunk()
	}
	if err != nil {
		return "", truncated(err)
	}
	if text, ok := strings.CutSuffix(string(l), "\r\n"); ok {
		return text, nil
	}
	text := string(l[:len(l)-1]) // the next read reuses l
	if rest, err := c.line(); err != nil || rest != "" || text == "" {
		return "", cmp.Or(err, badChunk())
	}
	return text, nil
}

func badChunk() error { return fault.IncompleteBody }

// next reads a chunk's header. After the last chunk it reads the rest and returns io.EOF.
func (c *Chunked) next() error {
	l, err := c.line()
	if err != nil {
		return err
	}
	digits, ext, _ := strings.Cut(l, ";")
	size, ok := parseHex(digits)
	if !ok {
		return badChunk()
	}
	if c.key != nil {
		sig, ok := strings.CutPrefix(ext, "chunk-signature=")
		if !ok || len(sig) != 64 {
			return badChunk()
		}
		c.this = sig
		c.hash.Reset()
	} else if ext != "" {
		return badChunk()
	}
	if size == 0 {
		return c.end()
	}
	if c.short {
		return fault.InvalidChunkSize
	}
	c.short = size < minChunk
	if size > c.size {
		return c.overrun(size)
	}
	c.size -= size
	c.chunk = size
	return nil
}

// overrun tells a well-formed body that is longer than announced from one whose framing is broken.
func (c *Chunked) overrun(size int64) error {
	if size <= 1<<20 {
		if _, err := io.CopyN(io.Discard, c.br, size); err != nil {
			return truncated(err)
		}
		var crlf [2]byte
		if _, err := io.ReadFull(c.br, crlf[:]); err != nil || crlf != [2]byte{'\r', '\n'} {
			return badChunk()
		}
	}
	return tooMuch()
}

func tooMuch() error {
	return fault.IncompleteBody.Text("You did not provide the number of bytes specified by the Content-Length HTTP header")
}

// parseHex reads up to 15 hexadecimal digits.
func parseHex(s string) (n int64, ok bool) {
	if s == "" || len(s) > 15 {
		return 0, false
	}
	for _, ch := range []byte(s) {
		switch {
		case '0' <= ch && ch <= '9':
			n = n<<4 | int64(ch-'0')
		case 'a' <= ch && ch <= 'f':
			n = n<<4 | int64(ch-'a'+10)
		case 'A' <= ch && ch <= 'F':
			n = n<<4 | int64(ch-'A'+10)
		default:
			return 0, false
		}
	}
	return n, true
}

// endChunk reads what follows a chunk's data and checks its signature.
func (c *Chunked) endChunk() error {
	var crlf [2]byte
	if _, err := io.ReadFull(c.br, crlf[:]); err != nil {
		return truncated(err)
	}
	if crlf != [2]byte{'\r', '\n'} {
		return badChunk()
	}
	return c.checkChunk()
}

func (c *Chunked) checkChunk() error {
	if c.key == nil {
		return nil
	}
	var sum [sha256.Size]byte
	c.hash.Sum(sum[:0])
	const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	text := c.stringToSign("AWS4-HMAC-SHA256-PAYLOAD\n")
	text = append(text, emptyHash+"\n"...)
	return c.compare(hex.AppendEncode(text, sum[:]), c.this)
}

// stringToSign begins what a chunk's or the trailers' signature covers: algorithm, time, scope, previous signature.
func (c *Chunked) stringToSign(alg string) []byte {
	text := make([]byte, 0, 512)
	text = append(text, alg...)
	text = append(text, c.sig.stamp...)
	text = append(text, '\n')
	text = c.sig.appendScope(text)
	text = append(text, '\n')
	text = append(text, c.prev...)
	return append(text, '\n')
}

func (c *Chunked) compare(text []byte, given string) error {
	want := c.key.sign(text)
	if !Equal(string(want[:]), given) {
		return fault.SignatureDoesNotMatch.With("StringToSign", string(text), "SignatureProvided", given)
	}
	c.prev = given
	return nil
}

// end reads what follows the empty last chunk.
func (c *Chunked) end() error {
	if err := c.checkChunk(); err != nil {
		return err
	}
	if c.size != 0 {
		return tooMuch()
	}
	if err := c.readTrailers(); err != nil {
		return err
	}
	if _, err := c.br.ReadByte(); err != io.EOF {
		if err == nil {
			return badChunk()
		}
		return truncated(err)
	}
	return io.EOF
}

// readTrailers reads trailing headers up to an empty line; the last of a signed body is their signature.
func (c *Chunked) readTrailers() error {
	var signed []byte
	var signature string
	for {
		l, err := c.trailerLine()
		if err != nil {
			return err
		}
		if l == "" {
			break
		}
		name, value, ok := strings.Cut(l, ":")
		name, value = strings.ToLower(strings.Trim(name, " ")), strings.Trim(value, " ")
		if !ok || name == "" || !c.wantTail || len(c.trailers) == maxTrailers || signature != "" {
			return fault.MalformedTrailer
		}
		if c.key != nil && name == "x-amz-trailer-signature" {
			signature = value
			continue
		}
		c.trailers = append(c.trailers, Trailer{name, value})
		signed = append(append(append(append(signed, name...), ':'), value...), '\n')
	}
	if c.key == nil || !c.wantTail {
		return nil
	}
	if signature == "" && len(c.trailers) == 0 {
		return fault.MalformedTrailer
	}
	if len(signature) != 64 {
		return fault.IncompleteBody
	}
	sum := sha256.Sum256(signed)
	return c.compare(hex.AppendEncode(c.stringToSign("AWS4-HMAC-SHA256-TRAILER\n"), sum[:]), signature)
}
